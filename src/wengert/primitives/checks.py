"""Errors of the user's program that a traced value decides about: raised when the graph runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Region
from wengert.core.primitives.declare import constant
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply


def require_none(failed: Any, *, error: Exception) -> Any:
    """Raise an error where a truth says so, or one of those of all lanes."""
    if np.any(failed):
        raise error.with_traceback(None)
    return failed


def in_lanes(
    primitive: Primitive, _size: int, operands: Sequence[Any], _batched: Sequence[bool], params: Mapping[str, Any]
) -> Any:
    """Ask all lanes at once."""
    return apply(primitive, operands[0], **params)


raised = constant(
    "raised", require_none, form=Region(lambda inputs, _params: [aval_of(inputs[0])]), batch=in_lanes, must_run=True
)
