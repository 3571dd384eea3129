"""What modules above set on `Tensor` when they are imported: operators, indexing, the tape API, methods.

At run time the class here is empty; type checkers read of its members in the stub beside this file, which
`python -m tools.stubs` writes by what is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

ArrayLike: TypeAlias = Any
Axis: TypeAlias = "int | Sequence[int] | None"


class Members:
    """Stand for what other modules define of Tensors."""

    __slots__ = ()
