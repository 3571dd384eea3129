"""Reductions of nodes; what is constant along a sum is taken out of it where no bit can change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wengert.core.forms.form import Reduction, form_of
from wengert.lowering.index_maps import Index, broadcast_map, identity_map
from wengert.lowering.nodes import BOOL, Access, Nodes, Shape
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.scalars import OF_BOOLS, Scalar, convert, operate, select
from wengert.lowering.rules.view_index_maps import reshaped, viewed
from wengert.primitives.shares import LARGEST_LOGARITHM, LARGEST_SHARE, NEARLY_ALONE


def reduced(nodes: Nodes, combine: str, x: Access, shape: Shape, axes: Sequence[int]) -> Access:
    """Return the combination of the elements of an array along axes, which are gone then.

    Args:
        nodes: what makes nodes.
        combine: add, multiply, maximum, minimum, and, or.
        x: the array.
        shape: its shape.
        axes: the axes, from 0.
    """
    used = {d for _, terms in x.map for d, _ in terms}
    if combine == "multiply":
        used |= set(axes)
    repeats = math.prod([shape[k] for k in axes if k not in used])
    space = tuple([1 if k in axes and k not in used else n for k, n in enumerate(shape)])
    moving = tuple([k for k in sorted(axes) if space[k] > 1])
    value = combined(nodes, combine, x, space, moving) if moving else x
    kept = [k for k in range(len(shape)) if k not in moving] if moving else list(range(len(shape)))
    left = [k for k in range(len(shape)) if k not in axes]
    result = tuple([shape[k] for k in left])
    ones = dict(zip(left, identity_map(result), strict=True))
    value = value.through(tuple([ones.get(k, Index(0)) for k in kept]))
    if repeats > 1 and combine == "add":
        value = nodes.point("multiply", x.node.dtype, result, value, nodes.constant(repeats, x.node.dtype))
    return value


def combined(nodes: Nodes, combine: str, x: Access, shape: Shape, axes: tuple[int, ...]) -> Access:
    """Return a reduction, behind which stand the factors that can be taken out of it."""
    after: list[tuple[str, Access]] = []
    while combine == "add" and (found := factored(nodes, x)) is not None:
        name, x, factor = found
        after.append((name, factor))
    kept = tuple([n for k, n in enumerate(shape) if k not in axes])
    dtype = x.node.dtype
    node = nodes.make("reduce", combine, kept, dtype, [x.through(identity_map(shape))], axes=axes, space=shape)
    value = Access(node, identity_map(kept))
    for name, factor in reversed(after):
        value = nodes.point(name, dtype, kept, factor, value)
    return value


def factored(nodes: Nodes, x: Access) -> tuple[str, Access, Access] | None:
    """Return what a sum is as well: an opcode of a number and of another sum; None if there is none of the same bits.

    A sum of negative numbers is 0 less their sum, which is never -0.0. Factors of whole numbers are taken out; those of
    floats are not, for then a term may be finite that is infinite where it is multiplied first.
    """
    if x.node.kind != "point" or x.node.name not in ("negative", "multiply"):
        return None
    operands = [a.through(x.map) for a in x.node.args]
    if x.node.name == "negative":
        return "subtract", operands[0], nodes.constant(0, x.node.dtype)
    for factor, other in (operands, operands[::-1]):
        if factor.node.kind == "constant" and factor.node.dtype.kind in "iu":
            return "multiply", other, factor
    return None


def with_axes_restored(x: Access, shape: Shape, axes: Sequence[int]) -> Access:
    """Return a reduction with its axes put back, of one element each."""
    kept = [k for k in range(len(shape)) if k not in axes]
    return x.through(tuple([Index(0) if shape[k] == 1 else Index(0, ((k, 1),)) for k in kept]))


# The rules


COMBINING = {
    np.add: "add",
    np.multiply: "multiply",
    np.maximum: "maximum",
    np.minimum: "minimum",
    np.logical_and: "and",
    np.logical_or: "or",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
}


SKIPPING = {np.fmax: np.maximum, np.fmin: np.minimum}
"""What leaves NaN out."""


def reduction(call: Call) -> Found:
    """Lower a sum, product, extremum, or a predicate of all elements or any."""
    form = form_of(call.primitive)
    assert isinstance(form, Reduction)
    given = call.params.get("ufunc", form.combine)
    ufunc = SKIPPING.get(given, given)
    if ufunc not in COMBINING:
        return Refused("several passes over its operand")
    logical = ufunc in (np.logical_and, np.logical_or)
    x = call.converted(0, BOOL if logical else call.out.dtype)
    if (call.params.get("skipna") or given in SKIPPING) and x.node.dtype.kind == "f":
        return extremum_of_numbers(call, COMBINING[ufunc], x)
    return reduced_call(call, COMBINING[ufunc], x, call.params.get("extras", form.operands))


def extremum_of_numbers(call: Call, combine: str, x: Access) -> Found:
    """Return the extremum of what is not NaN, which it is if nothing else is there."""
    if len(call.args) > 1:
        return Refused("reductions that leave NaN out, of elements that a mask tells")
    values = Scalar(call.nodes, x, call.shapes[0])
    missing = np.isnan(values)
    numbers = select(missing, -math.inf if combine == "maximum" else math.inf, values)
    found, none = (reduced_call(call, name, y.access) for name, y in ((combine, numbers), ("and", missing)))
    assert isinstance(found, Access)
    assert isinstance(none, Access)
    extremum, nothing = (Scalar(call.nodes, y, call.out.shape) for y in (found, none))
    return select(nothing, math.nan, extremum).access


IDENTITY = {"add": 0, "multiply": 1, "or": False, "and": True}


def reduced_call(call: Call, combine: str, x: Access, extras: Sequence[str] = ("where",)) -> Found:
    """Return the combination of an array in the shape of the first operand.

    Args:
        call: the equation.
        combine: the opcode.
        x: the array.
        extras: what the operands after the first are: a mask ("where"), a starting value ("initial").
    """
    shape, axis = call.shapes[0], call.params["axis"]
    if x.node.dtype.kind == "b" and combine not in ("and", "or"):
        combine = OF_BOOLS[combine]
    places = {name: i for i, name in enumerate(extras, 1) if i < len(call.args)}
    if "initial" in places and not call.has_room(places["initial"], x.node.dtype):
        return Refused("a number for which whole ones may have no room")
    if "chosen" in places:
        return Refused("extrema of what a mask chooses, which is an error if that is nothing")
    if "where" in places:
        start = call.scalar(places["initial"], x.node.dtype, shape) if "initial" in places else IDENTITY.get(combine)
        fill = IDENTITY.get(combine, start)
        if fill is None:
            return Refused("extrema of elements that a mask tells, without a starting value")
        mask = call.scalar(places["where"], BOOL, shape)
        x = select(mask, Scalar(call.nodes, x, shape), fill).access
    found = reduced(call.nodes, combine, x, shape, axis)
    if call.params["keepdims"]:
        found = with_axes_restored(found, call.out.shape, axis)
    if "initial" in places:
        start = call.scalar(places["initial"], x.node.dtype)
        found = operate(combine, start, Scalar(call.nodes, found, call.out.shape)).access
    return found


def norm(call: Call) -> Found:
    """Lower the length of vectors: the root of a sum of squares."""
    order, axis, dtype = call.params["order"], call.params["axis"], call.out.dtype
    rank = len(call.shapes[0])
    axes = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if order is not None and not (order == 2 and len(axes) == 1) and order not in ("fro", "f"):
        return Refused(f"the norm of order {order}")
    x = Scalar(call.nodes, call.converted(0, dtype), call.shapes[0])
    own = replace(call, params={"axis": tuple([k % rank for k in axes]), "keepdims": call.params["keepdims"]})
    total = reduced_call(own, "add", (x * x).access)
    if isinstance(total, Refused):
        return total
    return operate("sqrt", Scalar(call.nodes, total, call.out.shape)).access


def mean(call: Call) -> Found:
    """Lower a mean: the sum by the count, which a mask tells."""
    if call.out.dtype.kind != "f":
        return Refused("means that are no floats")
    total = reduced_call(call, "add", call.converted(0, call.out.dtype))
    assert isinstance(total, Access)
    shape, axis = call.shapes[0], call.params["axis"]
    count = call.nodes.constant(math.prod([shape[k] for k in axis]), call.out.dtype)
    if len(call.args) > 1:
        counted_mask = call.scalar(1, BOOL, shape)
        count = reduced(call.nodes, "add", convert(counted_mask, call.out.dtype).access, shape, axis)
        count = with_axes_restored(count, call.out.shape, axis) if call.params["keepdims"] else count
    return call.nodes.point("divide", call.out.dtype, call.out.shape, total, count)


def count_nonzero(call: Call) -> Found:
    """Lower the number of elements that are not zero."""
    flags = Scalar(call.nodes, call.converted(0, BOOL), call.shapes[0])
    return reduced_call(call, "add", convert(flags, call.out.dtype).access)


def variance(call: Call) -> Found:
    """Lower a variance, or its root: the mean of the squares of deviations from the mean."""
    dtype, shape, axis = call.out.dtype, call.shapes[0], call.params["axis"]
    if len(call.args) > 1:
        return Refused("masks or means that are given")
    if call.avals[0].dtype != dtype:
        return Refused("deviations of whole numbers")
    count = math.prod([shape[k] for k in axis])
    x = Scalar(call.nodes, call.args[0], shape)
    center = reduced(call.nodes, "add", x.access, shape, axis)
    kept = tuple([1 if k in axis else n for k, n in enumerate(shape)])
    center = with_axes_restored(center, kept, axis).through(broadcast_map(kept, len(shape)))
    deviation = x - Scalar(call.nodes, center, shape) / float(count)
    total = reduced(call.nodes, "add", (deviation * deviation).access, shape, axis)
    total = with_axes_restored(total, call.out.shape, axis) if call.params["keepdims"] else total
    found = Scalar(call.nodes, total, call.out.shape) / float(max(count - call.params["ddof"], 0))
    return (operate("sqrt", found) if call.primitive.name == "std" else found).access


def logsumexp(call: Call) -> Found:
    """Lower log(sum(exp(x))), from the largest element."""
    dtype, shape, axis = call.out.dtype, call.shapes[0], call.params["axis"]
    kept = tuple([1 if k in axis else n for k, n in enumerate(shape)])
    x = call.scalar(0, dtype, shape)
    top = with_axes_restored(reduced(call.nodes, "maximum", x.access, shape, axis), kept, axis)
    largest = Scalar(call.nodes, top, kept)
    finite = select(operate("absolute", largest) < math.inf, largest, 0)
    there = Scalar(call.nodes, finite.access.through(broadcast_map(kept, len(shape))), shape)
    total = with_axes_restored(reduced(call.nodes, "add", operate("exp", x - there).access, shape, axis), kept, axis)
    found = finite + operate("log", Scalar(call.nodes, total, kept))
    return reshaped(call.nodes, found.access, kept, call.out.shape)


def sum_along(call: Call, x: Scalar, combine: str = "add") -> Scalar:
    """Return sums, or maxima, of values at the points of the result along axes of it, at each of its points."""
    shape, axis = call.out.shape, call.params["axis"]
    axes = sorted([k % len(shape) for k in (axis if isinstance(axis, tuple) else (axis,))])
    kept = tuple([1 if k in axes else n for k, n in enumerate(shape)])
    total = with_axes_restored(reduced(call.nodes, combine, x.access, shape, axes), kept, axes)
    return Scalar(call.nodes, total.through(broadcast_map(kept, len(shape))), shape)


def softmax(call: Call) -> Found:
    """Lower exp(x) / sum(exp(x)), from the largest element."""
    x = call.scalar(0, call.out.dtype)
    terms = operate("exp", x - sum_along(call, x, "maximum"))
    return (terms / sum_along(call, terms)).access


def log_softmax(call: Call) -> Found:
    """Lower x - log(sum(exp(x))), from the largest element; where that is nearly the whole sum, by the others."""
    x = call.scalar(0, call.out.dtype)
    largest = sum_along(call, x, "maximum")
    moved = x - select(operate("absolute", largest) < math.inf, largest, 0)
    first = moved == 0
    others = sum_along(call, select(first, 0, operate("exp", moved)))
    count = sum_along(call, convert(first, x.dtype))
    nearly_alone = (count == 1) & (others <= NEARLY_ALONE - 1)
    total = select(nearly_alone, operate("log1p", others), operate("log", others + count))
    return (moved - total).access


def shares_of_sum(call: Call) -> Found:
    """Lower exp(x - out) for the logarithm of a sum, of which elements that are infinite with it share equally."""
    out, x = (call.scalar(i, call.out.dtype) for i in (0, 1))
    endless = operate("absolute", out) == math.inf
    tied = endless & (x == out)
    count = operate("maximum", sum_along(call, convert(tied, x.dtype)), 1)
    found = operate("exp", select(endless, -math.inf, x) - select(endless, 0, out))
    return select(tied, 1 / count, found).access


def mended_product(call: Call, found: Scalar, v: Scalar, large: Scalar) -> Found:
    """Return products whose rows sum to 0: one where a share is large from the others, and 0 for NaN of zeros."""
    others = sum_along(call, select(large, 0, found))
    found = select(large, -others, found)
    moving = sum_along(call, convert(v != 0, found.dtype))
    return select(np.isnan(found) & (moving == 0), 0, found).access


def softmax_product(call: Call) -> Found:
    """Lower the product of the Jacobian of softmax with a vector."""
    v, p = (call.scalar(i, call.out.dtype) for i in (0, 1))
    return mended_product(call, p * (v - sum_along(call, v * p)), v, p > LARGEST_SHARE[p.dtype])


def log_softmax_transposed(call: Call) -> Found:
    """Lower the product of the transposed Jacobian of the logarithm of softmax with a vector."""
    v, logs = (call.scalar(i, call.out.dtype) for i in (0, 1))
    found = v - operate("exp", logs) * sum_along(call, v)
    return mended_product(call, found, v, logs > LARGEST_LOGARITHM[logs.dtype])


def trace(call: Call) -> Found:
    """Lower the sum of a diagonal."""
    x, shape = call.converted(0, call.out.dtype), call.shapes[0]
    diagonal = viewed(call.nodes, x, shape, lambda whole: whole.diagonal(**call.params))
    length = np.empty(shape, np.int8).diagonal(**call.params).shape
    if diagonal is None or 0 in length:
        return Refused("arrays without elements")
    return reduced(call.nodes, "add", diagonal, length, (len(length) - 1,))
