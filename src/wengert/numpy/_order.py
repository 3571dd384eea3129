"""Memory order of results that are composed of several operations, where NumPy makes them in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.order import arranged, example, permuted, strides_of
from wengert.core.requirements import as_order
from wengert.core.tensor import Tensor

__all__ = ["laid_out", "lies_in", "like", "memory_of", "order_of_copy"]


def memory_of(x: Tensor) -> Any:
    """Return an array that lies in memory as a Tensor does (as one lane of it, in a batch), for its flags."""
    return np.asarray(example(x.shape, strides_of(x), x.dtype))


def lies_in(order: Any, x: Tensor) -> bool:
    """Tell whether a Tensor lies in order C or F; every one does in the others."""
    flags = memory_of(x).flags
    wanted = as_order(order, "K")
    return bool(flags.c_contiguous if wanted == "C" else flags.f_contiguous if wanted == "F" else True)


def laid_out(x: Tensor, order: str) -> Any:
    """Return a value in order C or F: itself where it lies so."""
    return x if lies_in(order, x) else np.copy(x, order=order)  # type: ignore[call-overload]  # the stub wants literals


def order_of_copy(x: Tensor) -> str:
    """Return the order of the new array into which NumPy copies parts of another, in `pad` for instance."""
    return "F" if memory_of(x).flags.fnc else "C"


def like(result: Tensor, x: Tensor) -> Any:
    """Return a result of the shape of another Tensor, in memory that lies as `empty_like` of that one would."""
    return arranged(result, permuted(np.empty_like(memory_of(x)).strides))
