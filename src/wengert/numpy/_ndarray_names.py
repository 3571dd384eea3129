"""Names of ndarrays, and of what libraries take for matrices, that Tensors have not: what to write instead.

SciPy's functions get a Tensor from NumPy's where they count on an ndarray. If one of them asks for such a name, the
error says what to use instead of it.
"""

from __future__ import annotations

import sys
from typing import Any

from wengert.core.diagnostics.conversion_hints import asked_for_array
from wengert.core.values.tensor import Tensor, innermost_trace
from wengert.errors import DtypeError
from wengert.support.hints import MissingAttribute

OF_MEMORY = "base byteswap ctypes dump dumps getfield resize setfield setflags strides tofile"
OF_OPERATORS = "matvec"
"""What `scipy.sparse.linalg` looks for in what is no ndarray, when it is given a matrix."""


class OfNdarrays(MissingAttribute):
    """Be a name that Tensors have not; SciPy's functions get an error that names theirs."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Raise an AttributeError, or say to whoever calls SciPy what to use instead."""
        frame = sys._getframe(1)
        asked = None
        if instance is not None and str(frame.f_globals.get("__name__", "")).startswith("scipy."):
            asked = asked_for_array(frame)
        if asked is not None and asked.by_library:
            action = asked.action if innermost_trace(instance) is not None else "Give it the array, x.numpy()"
            needed = "an ndarray is needed, because SciPy takes it apart in memory"
            raise DtypeError("asarray", f"a Tensor of shape {instance.shape}", needed, action)
        return super().__get__(instance, owner)


for _name in f"{OF_MEMORY} {OF_OPERATORS}".split():
    setattr(Tensor, _name, OfNdarrays("Tensor", _name))
