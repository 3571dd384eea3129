"""Primitives in opcodes, as their statements say: a ufunc that is an opcode, or their `scalar`.

Whole numbers of Python's have 64 bits, and the program tells if one may need more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.core.forms.form import Form, Pointwise, Reduction, form_of
from wengert.core.forms.view_forms import Like
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.whole_number_errors import DIVIDING, raises_in_python
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.kernel.checking import DTYPES
from wengert.lowering.nodes import LONG, Access, Nodes, Shape
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.scalars import Scalar, Unwritten, apply_ufunc, convert, opcode_of, operate
from wengert.lowering.rules.view_index_maps import reshape_access
from wengert.support.caches import MOST_KNOWN

DType = np.dtype[Any]
Expression = Callable[..., "Scalar | tuple[Scalar, ...] | None"]


def expression_of(primitive: Primitive) -> Expression | None:
    """Return what computes a primitive at one point; None if nothing does."""
    scalar = primitive.scalar
    if isinstance(scalar, str):
        return lambda *xs: operate(scalar, *xs)
    if isinstance(scalar, tuple):
        return lambda *xs: tuple([operate(name, *xs) for name in scalar])
    ufunc = primitive.evaluate
    if scalar is None and isinstance(ufunc, np.ufunc) and opcode_of(ufunc) is not None:
        return lambda *xs: apply_ufunc(ufunc, xs)
    return scalar


def loop_dtypes(primitive: Primitive, given: Sequence[Any], result: DType) -> Sequence[DType]:
    """Return the dtypes in which NumPy evaluates operands: a ufunc tells.

    Args:
        primitive: the primitive.
        given: for each operand its dtype, or Python's type of a number whose dtype gives way.
        result: the dtype of the result.
    """
    loop = primitive.loop
    if all(x is int for x in given):
        given = [LONG] * len(given)  # which NumPy compares as objects
    if isinstance(loop, np.ufunc):
        return resolve_dtypes(loop, tuple(given))
    return [np.dtype(x) if i in loop else result for i, x in enumerate(given)]


@lru_cache(maxsize=MOST_KNOWN)
def resolve_dtypes(ufunc: np.ufunc, given: tuple[Any, ...]) -> Sequence[DType]:
    """Return the dtypes in which a ufunc evaluates operands, as it tells."""
    return ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))[: len(given)]


def pointwise(call: Call) -> Found:
    """Lower what does the same at every point, or what a reduction is made of."""
    primitive, out = call.primitive, call.out
    if primitive.scalar == "copy":
        return call.scalar(0, out.dtype).access
    expression = expression_of(primitive)
    if expression is None:
        return Refused("no opcodes for it yet")
    loop = loop_dtypes(primitive, list(map(own_type, call.avals)), out.dtype)
    if not DTYPES.issuperset(loop):
        return Refused(f"values of dtype {', '.join(map(str, loop))}")
    if not all(map(has_room, loop, call.operands)):
        return Refused("a number that the dtype of the others has no room for")
    spaces = spaces_of(form_of(primitive), call)
    xs = [call.scalar(i, dtype, space) for i, (dtype, space) in enumerate(zip(loop, spaces, strict=True))]
    if all(x.access.node.kind == "constant" for x in xs) and not any((out.shape, *call.shapes)):
        return known_number(call, [dtype.type(x.access.node.value) for x, dtype in zip(xs, loop, strict=True)])
    try:
        found = expression(*xs, **call.params)
    except Unwritten as unwritten:
        return Refused(f"no opcodes for {unwritten}")
    if isinstance(found, tuple):
        found = found[call.result]
    if found is None:
        return Refused("operands that no opcode takes")
    return reshape_access(call.nodes, convert(found, out.dtype).access, found.shape, out.shape)


def known_number(call: Call, operands: Sequence[Any]) -> Found:
    """Return what NumPy makes of numbers that are known, unless it warns, which it is to do whenever the graph runs."""
    try:
        with np.errstate(all="raise"):
            found = call.primitive.evaluate(*operands, **call.params)
    except FloatingPointError:
        return Refused("numbers that are known")
    return call.nodes.constant(found[call.result] if isinstance(found, tuple) else found, call.out.dtype)


def spaces_of(form: Form, call: Call) -> Sequence[Shape]:
    """Return the space of each operand: its own where it is no point of the result, or of what is reduced."""
    if isinstance(form, Pointwise | Like):
        return [call.out.shape] * len(call.args)
    return [call.shapes[0]] * len(call.args) if isinstance(form, Reduction) else call.shapes


def has_room(dtype: DType, operand: Any) -> bool:
    """Tell whether a dtype has room for a whole number of Python's: where not, NumPy raises, or compares exactly."""
    if type(operand) is not int or dtype.kind not in "iu":
        return True
    limits = np.iinfo(dtype)
    return bool(limits.min <= operand <= limits.max)


def own_type(aval: Aval) -> Any:
    """Return what NumPy is asked with about an operand: its dtype, or Python's type of a number that gives way."""
    return aval.number if aval.weak and aval.dtype.kind != "b" else aval.dtype


LONGEST_EXACT = 1 << 53
"""The whole numbers up to which floats are exact."""


def is_whole_number(x: Any) -> bool:
    """Tell whether an operand is a whole number of Python's that is not known."""
    return type(x) is Variable and x.weak and x.dtype.kind == "i"


def whole_ranges(equation: Equation) -> Sequence[tuple[int, int]]:
    """Return from where to below where Python's whole numbers must be for a result of 64 bits, or () if unknown."""
    bits = equation.primitive.whole_bits
    found = bits(*equation.inputs) if callable(bits) else bits
    if isinstance(found, tuple):
        return found
    return [(-(1 << found), 1 << found)] * len(equation.inputs) if found else ()


def too_large(nodes: Nodes, equation: Equation, args: Sequence[Access]) -> list[Access]:
    """Return for each operand of a whole number whether it is so large that the result may need more than 64 bits."""
    pairs = zip(args, whole_ranges(equation), strict=True)
    return [beyond(nodes, x, *limits) for x, limits in pairs if may_be_beyond(x, *limits)]


def divides_by_zero(nodes: Nodes, equation: Equation, args: Sequence[Access]) -> list[Access]:
    """Return whether a whole number of Python's is divided by 0, if that is not known."""
    if equation.primitive.operator not in DIVIDING or not raises_in_python(equation):
        return []
    divisor = args[1]
    return [] if divisor.node.kind == "constant" and divisor.node.value else [(Scalar(nodes, divisor, ()) == 0).access]


def too_long_to_compare(nodes: Nodes, equation: Equation, args: Sequence[Access]) -> list[Access]:
    """Return whether a whole number is too long for a float, if it is compared with one of Python's, which is exact."""
    if equation.primitive.operator is None or equation.outputs[0].dtype.kind != "b":
        return []
    avals = list(map(aval_of, equation.inputs))
    if {aval.dtype.kind for aval in avals if aval.weak} != {"i", "f"}:
        return []
    if any(x.node.kind == "constant" and abs(x.node.value) < LONGEST_EXACT for x in args):
        return []  # what the longer ones are rounded to is on the same side
    exact = -LONGEST_EXACT, LONGEST_EXACT
    return [beyond(nodes, x, *exact) for x in args if may_be_beyond(x, *exact)]


def may_be_beyond(x: Access, low: int, high: int) -> bool:
    """Tell whether a number is a whole one that may be less than a limit, or not less than another one."""
    known = x.node.kind == "constant" and low <= x.node.value < high
    return x.node.dtype == LONG and not known


def beyond(nodes: Nodes, x: Access, low: int, high: int) -> Access:
    """Return whether a whole number is less than a limit, or not less than another one, which is no result's yet."""
    value = Scalar(nodes, x, ())
    return ((value < low) | (value >= high)).access
