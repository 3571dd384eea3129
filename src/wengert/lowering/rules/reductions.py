"""Reductions by one ufunc, and diagonals; others say in their statements what they are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wengert.core.forms.form import Reduction, form_of
from wengert.lowering.nodes import BOOL, Access
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.scalars import OF_BOOLS, Scalar, operate, reduced, select, with_axes_restored
from wengert.lowering.rules.view_index_maps import viewed

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


def trace(call: Call) -> Found:
    """Lower the sum of a diagonal."""
    x, shape = call.converted(0, call.out.dtype), call.shapes[0]
    diagonal = viewed(call.nodes, x, shape, lambda whole: whole.diagonal(**call.params))
    length = np.empty(shape, np.int8).diagonal(**call.params).shape
    if diagonal is None or 0 in length:
        return Refused("arrays without elements")
    return reduced(call.nodes, "add", diagonal, length, (len(length) - 1,))
