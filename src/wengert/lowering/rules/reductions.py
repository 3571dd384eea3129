"""Reductions by one ufunc, diagonals, and scans; other reductions say in their statements what they are made of.

Scans are running sums, products and extrema, and linear recurrences, which their derivatives are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wengert.core.forms.form import Reduction, Scan, form_of
from wengert.core.maps.index_maps import AxisIndex, identity_map
from wengert.lowering.nodes import BOOL, LONG, Access, Nodes, Shape
from wengert.lowering.rules.joins import Part, choice
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.scalars import OF_BOOLS, Scalar, convert, operate, reduce_axes, select, with_axes_restored
from wengert.lowering.rules.view_index_maps import view_access

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
    x = call.convert_operand(0, BOOL if logical else call.out.dtype)
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
    found = reduce_axes(call.nodes, combine, x, shape, axis)
    if call.params["keepdims"]:
        found = with_axes_restored(found, call.out.shape, axis)
    if "initial" in places:
        start = call.scalar(places["initial"], x.node.dtype)
        found = operate(combine, start, Scalar(call.nodes, found, call.out.shape)).access
    return found


def trace(call: Call) -> Found:
    """Lower the sum of a diagonal."""
    x, shape = call.convert_operand(0, call.out.dtype), call.shapes[0]
    diagonal = view_access(call.nodes, x, shape, lambda whole: whole.diagonal(**call.params))
    length = np.empty(shape, np.int8).diagonal(**call.params).shape
    if diagonal is None or 0 in length:
        return Refused("arrays without elements")
    return reduce_axes(call.nodes, "add", diagonal, length, (len(length) - 1,))


def reverse_axis(x: Access, shape: Shape, axis: int, reverse: bool) -> Access:
    """Return an array from its end along an axis, or as it is."""
    if not reverse:
        return x
    read = [*identity_map(shape)]
    if shape[axis] > 1:
        read[axis] = AxisIndex(shape[axis] - 1, ((axis, -1),))
    return x.through(tuple(read))


def next_along(x: Access, shape: Shape, axis: int) -> Access:
    """Return an array read one place further along an axis."""
    read = [*identity_map(shape)]
    read[axis] = AxisIndex(1, ((axis, 1),))
    return x.through(tuple(read))


def scan_axis(nodes: Nodes, combine: str, shape: Shape, axis: int, x: Access, factor: Access | None = None) -> Access:
    """Return the combination of the elements so far at each step along an axis."""
    if shape[axis] == 1:
        return x
    args = [y.through(identity_map(shape)) for y in (x, factor) if y is not None]
    node = nodes.make("scan", combine, shape, x.node.dtype, args, axes=(axis,), space=shape)
    return Access(node, identity_map(shape))


# The rules


def scan(call: Call) -> Found:
    """Lower a running sum, product or extremum."""
    form = form_of(call.primitive)
    assert isinstance(form, Scan)
    ufunc = call.params["ufunc"] if form.combine == "ufunc" else form.combine
    if ufunc not in COMBINING:
        return Refused("steps that no opcode takes")
    logical = ufunc in (np.logical_and, np.logical_or)
    dtype, shape = call.out.dtype, call.shapes[0]
    axis, reverse = call.params["axis"], bool(call.params.get("reverse"))
    combine = COMBINING[ufunc]
    x = call.convert_operand(0, BOOL if logical else dtype)
    if dtype.kind == "b":
        combine = OF_BOOLS.get(combine, combine)
    if x.node.dtype != dtype:
        return Refused("steps of another dtype")
    found = scan_axis(call.nodes, combine, shape, axis, reverse_axis(x, shape, axis, reverse))
    return reverse_axis(found, shape, axis, reverse)


def recurrence(call: Call) -> Found:
    """Lower h[i] = a[i - 1] h[i - 1] + b[i], or backwards h[i] = a[i] h[i + 1] + b[i]: from its end it is the same."""
    dtype, shape = call.out.dtype, call.out.shape
    axis, reverse = call.params["axis"], call.params["reverse"]
    if dtype.kind != "f":
        return Refused("recurrences of whole numbers")
    b = reverse_axis(call.convert_operand(1, dtype), shape, axis, reverse)
    if shape[axis] == 1:
        return b
    less = (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :])
    a = reverse_axis(call.convert_operand(0, dtype), less, axis, reverse)
    box = tuple([(int(k == axis), n) for k, n in enumerate(shape)])
    whole = tuple([(0, n) for n in shape])
    one = call.nodes.constant(1, dtype)
    # of an axis of one element the index map has no steps
    read = [*identity_map(shape)]
    read[axis] = AxisIndex(-1, ((axis, 1),))
    factor = choice(call.nodes, shape, dtype, [Part(a.through(tuple(read)), box, False), Part(one, whole, False)])
    return reverse_axis(scan_axis(call.nodes, "add", shape, axis, b, factor), shape, axis, reverse)


def extremum_partials(call: Call) -> Found:
    """Lower the partials of a running extremum: elements that are tied so far share equally."""
    nodes, dtype, shape, axis = call.nodes, call.out.dtype, call.shapes[0], call.params["axis"]
    less = call.out.shape

    def late(value: Scalar) -> Scalar:
        return Scalar(nodes, next_along(value.access, less, axis), less)

    def early(value: Scalar) -> Scalar:
        return Scalar(nodes, value.access.through(identity_map(less)), less)

    def running(combine: str, value: Scalar) -> Scalar:
        return Scalar(nodes, scan_axis(nodes, combine, shape, axis, value.access), shape)

    def equal(one: Scalar, other: Scalar) -> Scalar:
        return (one == other) | (one != one) & (other != other)

    y, x = (Scalar(nodes, call.args[i].through(identity_map(shape)), shape) for i in (0, 1))
    hit = equal(x, y)
    hits = running("add", convert(hit, LONG))
    before = hits - convert(hit, LONG)
    same = equal(late(y), early(y))
    box = tuple([(int(k == axis), n) for k, n in enumerate(shape)])
    read = [*identity_map(shape)]
    read[axis] = AxisIndex(-1, ((axis, 1),))
    new = select(same, 0, late(before)).access.through(tuple(read))
    first = Part(before.access, tuple([(0, n) for n in shape]), False)
    starts = Scalar(nodes, choice(nodes, shape, LONG, [Part(new, box, False), first]), shape)
    tied = hits - running("maximum", starts)
    count = convert(late(tied), dtype)
    if call.result == 0:
        return select(same, convert(early(tied), dtype) / count, 0).access
    return (convert(late(hit), dtype) / count).access
