"""Scans: running sums, products and extrema, and linear recurrences, which their derivatives are."""

from __future__ import annotations

import numpy as np

from wengert.core.forms.form import Scan, form_of
from wengert.core.maps.index_maps import AxisIndex, identity_map
from wengert.lowering.nodes import BOOL, LONG, Access, Nodes, Shape
from wengert.lowering.rules.joins import Part, choice
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.reductions import COMBINING
from wengert.lowering.rules.scalars import OF_BOOLS, Scalar, convert, select


def turned(x: Access, shape: Shape, axis: int, reverse: bool) -> Access:
    """Return an array from its end along an axis, or as it is."""
    if not reverse:
        return x
    read = [*identity_map(shape)]
    if shape[axis] > 1:
        read[axis] = AxisIndex(shape[axis] - 1, ((axis, -1),))
    return x.through(tuple(read))


def moved(x: Access, shape: Shape, axis: int, by: int) -> Access:
    """Return what reads an array of a shape some places further along an axis."""
    read = [*identity_map(shape)]
    read[axis] = AxisIndex(by, ((axis, 1),))
    return x.through(tuple(read))


def scanned(nodes: Nodes, combine: str, shape: Shape, axis: int, x: Access, factor: Access | None = None) -> Access:
    """Return what has been combined so far at each step along an axis."""
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
    x = call.converted(0, BOOL if logical else dtype)
    if dtype.kind == "b":
        combine = OF_BOOLS.get(combine, combine)
    if x.node.dtype != dtype:
        return Refused("steps of another dtype")
    found = scanned(call.nodes, combine, shape, axis, turned(x, shape, axis, reverse))
    return turned(found, shape, axis, reverse)


def recurrence(call: Call) -> Found:
    """Lower h[i] = a[i - 1] h[i - 1] + b[i], or backwards h[i] = a[i] h[i + 1] + b[i]: from its end it is the same."""
    dtype, shape = call.out.dtype, call.out.shape
    axis, reverse = call.params["axis"], call.params["reverse"]
    if dtype.kind != "f":
        return Refused("recurrences of whole numbers")
    b = turned(call.converted(1, dtype), shape, axis, reverse)
    if shape[axis] == 1:
        return b
    less = (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :])
    a = turned(call.converted(0, dtype), less, axis, reverse)
    box = tuple([(int(k == axis), n) for k, n in enumerate(shape)])
    whole = tuple([(0, n) for n in shape])
    one = call.nodes.constant(1, dtype)
    # of an axis of one element the index map has no steps
    read = [*identity_map(shape)]
    read[axis] = AxisIndex(-1, ((axis, 1),))
    factor = choice(call.nodes, shape, dtype, [Part(a.through(tuple(read)), box, False), Part(one, whole, False)])
    return turned(scanned(call.nodes, "add", shape, axis, b, factor), shape, axis, reverse)


def extremum_partials(call: Call) -> Found:
    """Lower the partials of a running extremum: elements that are tied so far share equally."""
    nodes, dtype, shape, axis = call.nodes, call.out.dtype, call.shapes[0], call.params["axis"]
    less = call.out.shape

    def late(value: Scalar) -> Scalar:
        return Scalar(nodes, moved(value.access, less, axis, 1), less)

    def early(value: Scalar) -> Scalar:
        return Scalar(nodes, value.access.through(identity_map(less)), less)

    def running(combine: str, value: Scalar) -> Scalar:
        return Scalar(nodes, scanned(nodes, combine, shape, axis, value.access), shape)

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
