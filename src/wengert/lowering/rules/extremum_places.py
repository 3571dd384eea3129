"""The place of an extremum: the least of those that hold it, or NaN."""

from __future__ import annotations

import math

import numpy as np

from wengert.lowering.index_maps import AxisIndex, broadcast_map, strides_for
from wengert.lowering.nodes import BOOL
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.scalars import Scalar, reduced, select, with_axes_restored

MOST = 4096
"""Elements up to which two passes that other kernels may share take less than NumPy's one and going there."""


def place_of_extremum(call: Call) -> Found:
    """Lower `argmax` and `argmin`."""
    shape, axis = call.shapes[0], call.params["axis"]
    if call.avals[0].dtype.kind == "c":
        return Refused("the largest of complex numbers")
    if math.prod(shape) > MOST:
        return Refused("a search, at which NumPy is quicker")
    axes = tuple(range(len(shape))) if axis is None else (axis % len(shape),)
    length = math.prod([shape[k] for k in axes])
    strides = strides_for([shape[k] for k in axes])
    at = AxisIndex(0, tuple([(k, step) for k, step in zip(axes, strides, strict=True) if shape[k] > 1]))
    place = Scalar(call.nodes, call.nodes.index(at, length), shape)
    first = reduced(call.nodes, "minimum", select(holders(call, axes), place, length).access, shape, axes)
    found = Scalar(call.nodes, first, [n for k, n in enumerate(shape) if k not in axes])
    found = select(found == length, 0, found)  # where none of some truths holds, they are all the extremum
    return with_axes_restored(found.access, call.out.shape, axes) if call.params.get("keepdims") else found.access


def holders(call: Call, axes: tuple[int, ...]) -> Scalar:
    """Return which elements are the extremum along axes, or NaN, which comes before it; of truths, if any is it."""
    shape, largest = call.shapes[0], call.primitive.name == "argmax"
    x = call.scalar(0, call.avals[0].dtype, shape)
    if x.dtype == BOOL:
        return x if largest else ~x
    best = reduced(call.nodes, "maximum" if largest else "minimum", x.access, shape, axes)
    kept = tuple([1 if k in axes else n for k, n in enumerate(shape)])
    best = with_axes_restored(best, kept, axes).through(broadcast_map(kept, len(shape)))
    found = x == Scalar(call.nodes, best, shape)
    return found | np.isnan(x) if x.dtype.kind == "f" else found
