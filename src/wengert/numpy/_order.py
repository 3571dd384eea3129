"""Memory order of results that are composed of several operations, where NumPy makes them in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_order
from wengert.core.memory.memory_layout import (
    axes_by_stride,
    example,
    is_scalar,
    strides_of,
    ways_of,
    with_axes_in_memory,
)
from wengert.core.memory.possible_aliases import part_of
from wengert.core.memory.views import base_and_path, undecided_text
from wengert.core.values.dispatch import apply, as_tensor, implements
from wengert.core.values.plain_functions import renewed
from wengert.core.values.tensor import Tensor
from wengert.primitives import barriers, conversion
from wengert.primitives.masked import is_selection
from wengert.traces.eager_functions import eager_single

apply_copy = eager_single(conversion.copy)


def layout_examples(x: Tensor) -> list[Any]:
    """Return an array for each way in which a Tensor (one lane of it, in a batch) may lie in memory, for its flags."""
    return [np.asarray(example(x.shape, way, x.dtype)) for way in ways_of(strides_of(x))]


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """Return a copy, as an array; see `numpy.copy`."""
    if type(a) is Tensor and a._trace is None and (found := renewed("copy", a, order)) is not None:
        return found
    x = as_tensor(a)
    return x[...] if is_scalar(x) else copy_method(x, order)


def copy_method(x: Tensor, order: str) -> Any:
    """Return a copy: of a scalar a scalar, of an array without axes an array."""
    if x._trace is None and (found := renewed("copy", x, order)) is not None:
        return found
    return as_0d_like(x, apply_copy(x, {"order": order}))


def as_0d_like(x: Tensor, result: Tensor) -> Tensor:
    """Return a scalar newly computed from an array without axes, which may be held as one, as such an array."""
    trace = result._trace
    if isinstance(result._value, np.generic) and (trace is None or trace.fast):
        if hasattr(x, "_array"):
            result._array = ()
        return result
    return result[...] if not x.ndim and is_scalar(result) and not is_scalar(x) else result


def lay_in_order(name: str, x: Tensor, order: Any) -> Tensor:
    """Return a value in some order: itself where it lies so, else a copy.

    Where traced values decide which of the two it is, a write to either loses the other.
    """
    wanted: Any = as_order(order, "K")
    if wanted not in ("C", "F"):
        return x
    flags = [memory.flags for memory in layout_examples(x)]
    lies = [one.c_contiguous if wanted == "C" else one.f_contiguous for one in flags]
    if all(lies):
        return x
    copied = copy(x, wanted)
    if any(lies):
        part_of(base_and_path(x)[0], copied, None, undecided_text(name))
    return copied


def lay_like(result: Any, x: Tensor, order: str = "K") -> Any:
    """Return a result of this library's making in memory that lies as `empty_like` of another Tensor would."""
    if is_selection(x):  # of which nobody knows how it lies
        return result
    made = [np.empty_like(memory, order=order, shape=result.shape) for memory in layout_examples(x)]  # type: ignore[call-overload]  # the stub wants literals
    axes = {tuple(axes_by_stride(memory.strides)) for memory in made}
    if len(axes) == 1:
        return with_axes_in_memory(result, axes.pop())
    return apply(conversion.laid_as, result, apply(barriers.barrier, x), order=order)
