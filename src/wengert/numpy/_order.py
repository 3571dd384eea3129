"""Memory order of results that are composed of several operations, where NumPy makes them in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.dispatch import apply
from wengert.core.methods import call
from wengert.core.order import arranged, example, permuted, strides_of, ways_of
from wengert.core.requirements import as_order
from wengert.core.sharing import part_of
from wengert.core.tensor import Tensor
from wengert.core.views import base_and_path, undecided_text
from wengert.primitives import barriers, conversion

__all__ = ["laid_as", "laid_out", "layouts_of"]


def layouts_of(x: Tensor) -> list[Any]:
    """Return an array for each way in which a Tensor (one lane of it, in a batch) may lie in memory, for its flags."""
    return [np.asarray(example(x.shape, way, x.dtype)) for way in ways_of(strides_of(x))]


def laid_out(name: str, x: Tensor, order: Any) -> Tensor:
    """Return a value in some order: itself where it lies so, else a copy.

    Where traced values decide which of the two it is, a write to either loses the other.
    """
    wanted: Any = as_order(order, "K")
    if wanted not in ("C", "F"):
        return x
    flags = [memory.flags for memory in layouts_of(x)]
    lies = [one.c_contiguous if wanted == "C" else one.f_contiguous for one in flags]
    if all(lies):
        return x
    copied = call(np.copy, x, order=wanted)
    if any(lies):
        part_of(base_and_path(x)[0], copied, None, undecided_text(name))
    return copied


def laid_as(result: Any, x: Tensor, order: str = "K") -> Any:
    """Return a result of this library's making in memory that lies as `empty_like` of another Tensor would."""
    made = [np.empty_like(memory, order=order, shape=result.shape) for memory in layouts_of(x)]  # type: ignore[call-overload]  # the stub wants literals
    axes = {tuple(permuted(memory.strides)) for memory in made}
    if len(axes) == 1:
        return arranged(result, axes.pop())
    return apply(conversion.laid_as, result, apply(barriers.barrier, x), order=order)
