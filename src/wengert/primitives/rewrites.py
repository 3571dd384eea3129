"""Identities that hold for every value, NaN, infinities and the sign of zero included; statements name their own.

A rewrite is a function of one equation and of the equations before it, by the variables they bind. It returns what the
result is (a variable or a literal), another equation for the same result, or None where it does not apply.

What does not hold is not here: x + 0 is 0.0 for x = -0.0, x * 0 is NaN for infinities, x / x for 0, and a complex x * 1
is NaN where a part of x is infinite. Not counted as part of a value are the bits of a NaN. What lies in memory in
another order is another value: NumPy groups the terms of sums by it, and what is a view depends on it when the graph is
evaluated under a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.aval import NUMBERS, aval_of

Definitions = Mapping[Variable, Equation]
Rewrite = Callable[[Equation, Definitions], Any]

BASIC = (int, slice, type(Ellipsis))


def constant(value: Any, variable: Variable) -> Any:
    """Return a literal of a variable's shape and dtype with one value everywhere, in the memory of one element."""
    if variable.weak:
        return variable.aval.number(value)
    element = np.asarray(value, variable.dtype)
    return np.broadcast_to(element, variable.shape) if variable.shape else element[()]


def holds(value: Any, number: float) -> bool:
    """Tell whether a value is a literal whose elements all are a number, with its sign if that is 0."""
    if type(value) is Variable or (type(value) in NUMBERS and value != number) or not np.size(value):
        return False
    first = np.asarray(value).flat[0]
    if first != number:  # as in most arrays
        return False
    value = first if is_repeated(value) else value
    equal = np.all(np.equal(value, number))
    return bool(equal and (number != 0 or np.all(np.signbit(value) == np.signbit(number))))


def has_no_zero(value: Any) -> bool:
    """Tell whether no element of a literal is 0."""
    return bool(np.all(np.not_equal(value.flat[0] if is_repeated(value) else value, 0)))


def is_repeated(value: Any) -> bool:
    """Tell whether a value is an array of one element in memory, of which some arrays show millions."""
    return type(value) is np.ndarray and value.size > 0 and not any(value.strides)


def is_true(value: Any) -> bool:
    """Tell whether a value is a boolean literal that is true everywhere."""
    return is_boolean(value) and bool(np.all(value))


def is_false(value: Any) -> bool:
    """Tell whether a value is a boolean literal that is false everywhere."""
    return is_boolean(value) and not np.any(value)


def is_boolean(value: Any) -> bool:
    """Tell whether a value is a boolean literal."""
    return type(value) is not Variable and np.asarray(value).dtype.kind == "b"


def same_aval(value: Any, variable: Variable) -> bool:
    """Tell whether a value has a variable's shape, dtype and weakness; literal numbers are not considered."""
    if type(value) is Variable:
        weak = value.weak
    elif isinstance(value, np.ndarray | np.generic):
        weak = False
    else:
        return False
    return value.shape == variable.shape and value.dtype == variable.dtype and weak == variable.weak


# Arithmetic on reals


def is_real(variable: Variable) -> bool:
    """Tell whether the elements are floats or signed integers."""
    return variable.dtype.kind in "fi"


def neutral_factor(equation: Equation, _definitions: Definitions) -> Any:
    """Replace x * 1 by x and x * -1 by -x: both are exact for reals.

    Complex products add parts times 0, which are NaN for infinities, so these are left alone.
    """
    variable, (x, y) = equation.outputs[0], equation.inputs
    for kept, factor in ((x, y), (y, x)):
        if type(factor) is not Variable and is_real(variable):
            if is_number_of(kept, variable) and holds(factor, 1):
                params = {"dtype": variable.dtype}
                return Equation(PRIMITIVES["astype"], (kept,), params, equation.outputs, equation.origin)
            if not same_aval(kept, variable):
                continue
            if holds(factor, 1):
                return kept
            if holds(factor, -1):
                return negate_equation(equation, kept)
    return None


def is_number_of(value: Any, variable: Variable) -> bool:
    """Tell whether a value is a variable for a Python number, and another one for an array of its dtype."""
    return type(value) is Variable and value.weak and value.aval.firm == variable.aval


def neutral_divisor(equation: Equation, _definitions: Definitions) -> Any:
    """Replace x / 1 by x and x / -1 by -x: both are exact for reals."""
    variable, (x, y) = equation.outputs[0], equation.inputs
    if type(y) is Variable or not is_real(variable) or not same_aval(x, variable):
        return None
    if holds(y, 1):
        return x
    return negate_equation(equation, x) if holds(y, -1) else None


def negate_equation(equation: Equation, x: Any) -> Equation:
    """Return the equation that binds -x in place of another."""
    return Equation(PRIMITIVES["negative"], (x,), {}, equation.outputs, equation.origin)


def neutral_term(equation: Equation, _definitions: Definitions) -> Any:
    """Replace x + -0.0 by x: rounding to nearest gives 0.0 + -0.0 = 0.0.

    x + 0.0 is left alone, for -0.0 + 0.0 = 0.0; so are complex numbers, where a real zero has an imaginary part 0.0.
    """
    variable, (x, y) = equation.outputs[0], equation.inputs
    if is_real(variable):
        for kept, term in ((x, y), (y, x)):
            if holds(term, -0.0) and same_aval(kept, variable):
                return kept
    return None


def neutral_subtrahend(equation: Equation, _definitions: Definitions) -> Any:
    """Replace x - 0.0 by x: rounding to nearest gives -0.0 - 0.0 = -0.0."""
    variable, (x, y) = equation.outputs[0], equation.inputs
    return x if is_real(variable) and holds(y, 0.0) and same_aval(x, variable) else None


def drop_pair(equation: Equation, definitions: Definitions) -> Any:
    """Replace f(f(x)) by x for f its own inverse to the bit: negation, conjugation, inversion of bits."""
    before = binding(equation.inputs[0], definitions)
    return before.inputs[0] if before is not None and before.primitive is equation.primitive else None


def negated_factor(equation: Equation, definitions: Definitions) -> Any:
    """Replace -x * -y by x * y, and quotients alike: the signs of floats, zeros and infinities included, cancel."""
    before = [binding(x, definitions) for x in equation.inputs]
    inner = [e.inputs[0] for e in before if e is not None and e.primitive is PRIMITIVES["negative"]]
    floats = len(inner) == 2 and all(type(x) is Variable and x.dtype.kind == "f" for x in inner)
    return equation.using(tuple(inner)) if floats else None


def drop_identity(equation: Equation, _definitions: Definitions) -> Any:
    """Replace what gives its operand itself: +x, a copy, a conversion to the same dtype.

    Graphs have no memory that could be written to, so a copy is the same value.
    """
    x = equation.inputs[0]
    return x if same_aval(x, equation.outputs[0]) else None


def drop_identity_of_reals(equation: Equation, definitions: Definitions) -> Any:
    """Replace likewise what is no identity for complex numbers."""
    return None if aval_of(equation.inputs[0]).dtype.kind == "c" else drop_identity(equation, definitions)


# Choices


def choose(equation: Equation, _definitions: Definitions) -> Any:
    """Replace a selection between equal operands, or by a known condition, by the operand chosen."""
    condition, x, y = equation.inputs
    variable = equation.outputs[0]
    if is_true(condition) or (type(x) is Variable and x is y):
        chosen = x
    elif is_false(condition):
        chosen = y
    else:
        return None
    if same_aval(chosen, variable):
        return chosen
    if isinstance(chosen, bool | int | float | complex):
        return constant(chosen, variable)
    if aval_of(chosen).dtype != variable.dtype:
        return None
    return Equation(PRIMITIVES["broadcast_to"], (chosen,), {"shape": variable.shape}, equation.outputs, equation.origin)


def drop_guard(equation: Equation, definitions: Definitions) -> Any:
    """Replace a guard (the strong zero) by what it guards where it can never act.

    A guard chooses 0 where r = t / c or t * c is NaN although t is 0. For a literal c that is neither 0 nor NaN (nor
    infinite, in products) t = 0 gives r = 0, so the condition holds nowhere; nor does it for a literal t without 0.
    """
    x, r, t = equation.inputs
    if not same_aval(x, equation.outputs[0]):
        return None
    if type(t) is not Variable:
        return x if has_no_zero(t) else None
    result = binding(r, definitions)
    return x if result is not None and regular_in(result, t) else None


def regular_in(equation: Equation, t: Variable) -> bool:
    """Tell whether an equation is t / c or t * c for a real t and a finite literal c other than 0."""
    quotient = equation.primitive is PRIMITIVES["divide"]
    if not (quotient or equation.primitive is PRIMITIVES["multiply"]) or t.dtype.kind != "f":
        return False
    x, y = equation.inputs
    c = y if x is t else x if y is t and not quotient else None
    if c is None or type(c) is Variable or np.asarray(c).dtype.kind == "c":
        return False
    with np.errstate(over="ignore"):
        value = np.asarray(c, equation.outputs[0].dtype)
    return bool(np.all(np.isfinite(value) & (value != 0)))


def binding(x: Any, definitions: Definitions) -> Equation | None:
    """Return the equation that binds an operand, of a declared primitive; None for inputs, literals and others."""
    return definitions.get(x) if type(x) is Variable else None


def logic(conjunction: bool) -> Rewrite:
    """Return the rewrite of `and`, or of `or`."""
    absorbing, neutral = (is_false, is_true) if conjunction else (is_true, is_false)

    def rewrite(equation: Equation, _definitions: Definitions) -> Any:
        """Replace `and` with False by False, `or` with True by True, and with the other constant by the operand."""
        variable, (x, y) = equation.outputs[0], equation.inputs
        if variable.dtype.kind != "b":
            return None
        if absorbing(x) or absorbing(y):
            return constant(not conjunction, variable)
        for kept, other in ((x, y), (y, x)):
            if neutral(other) and same_aval(kept, variable):
                return kept
        return x if x is y and same_aval(x, variable) else None

    return rewrite


def compared_with_itself(equal: bool) -> Rewrite:
    """Return the rewrite of `==`, or of `!=`."""

    def rewrite(equation: Equation, _definitions: Definitions) -> Any:
        """Replace x == x and x != x of integers and booleans, which have no NaN, by what they are."""
        x, y = equation.inputs
        if type(x) is Variable and x is y and x.dtype.kind in "iub":
            return constant(equal, equation.outputs[0])
        return None

    return rewrite


# Arrangement


def merge_parts(equation: Equation, definitions: Definitions) -> Any:
    """Read a part of a part at once, and the whole as itself: no element changes."""
    if len(equation.inputs) != 1:
        return None
    (x,), out = equation.inputs, equation.outputs[0]
    ranges = ranges_of(equation.params["index"], x.shape)
    if ranges is None or out.weak:
        return None
    if same_aval(x, out) and all(type(r) is range and r.step > 0 for r in ranges):
        return x
    before = binding(x, definitions)
    if before is None or before.primitive is not equation.primitive or len(before.inputs) != 1:
        return None
    inner = ranges_of(before.params["index"], aval_of(before.inputs[0]).shape)
    if inner is None:
        return None
    outer = iter(ranges)
    index = tuple([r if type(r) is int else entry_for(r, next(outer)) for r in inner])
    return Equation(equation.primitive, before.inputs, {"index": index}, equation.outputs, equation.origin)


def take_written(equation: Equation, _definitions: Definitions) -> Any:
    """Take what is written in place of the array: a write to all of an array leaves nothing of what was there."""
    base, value = equation.inputs[:2]
    params = equation.params
    if len(equation.inputs) > 2 or params["path"] or params["add"] or type(value) is not Variable:
        return None
    shape = equation.outputs[0].shape
    is_whole = ranges_of(params["index"], shape) == [range(n) for n in shape]
    return value if is_whole and type(base) is Variable and same_aval(value, equation.outputs[0]) else None


def ranges_of(index: tuple[Any, ...], shape: tuple[int, ...]) -> list[Any] | None:
    """Return the places that an index reads along each axis, a number or a range; None where it does something else."""
    if not all(type(entry) in BASIC for entry in index) or min(shape, default=0) < 0:
        return None
    missing = [slice(None)] * (len(shape) - len(index) + (Ellipsis in index))
    at = index.index(Ellipsis) if Ellipsis in index else len(index)
    entries = (*index[:at], *missing, *index[at + 1 :])
    return [range(n)[entry] for entry, n in zip(entries, shape, strict=True)]


def entry_for(places: range, chosen: Any) -> Any:
    """Return the entry of an index that reads some of the places of a range: a number, or a slice."""
    if type(chosen) is int:
        return places[chosen]
    found = places[chosen.start : stop_of(chosen) : chosen.step] if chosen else range(0)
    return slice(found.start, stop_of(found), found.step)


def stop_of(places: range) -> int | None:
    """Return where a slice ends that reads the places of a range; an end before the first is None."""
    return None if places.stop < 0 else places.stop


def merge_reshapes(equation: Equation, definitions: Definitions) -> Any:
    """Reshape once where it is done twice: in C order both read the same elements in the same order."""
    if equation.params["order"] != "C":
        return None
    if same_aval(equation.inputs[0], equation.outputs[0]):
        return equation.inputs[0]
    before = binding(equation.inputs[0], definitions)
    if before is None or before.primitive is not equation.primitive or before.params["order"] != "C":
        return None
    return equation.using(before.inputs)


def merge_transposes(equation: Equation, definitions: Definitions) -> Any:
    """Permute axes once where it is done twice, and not at all where they stay: no element changes."""
    axes = equation.params["axes"]
    if axes is None or any(axis < 0 for axis in axes):
        return None
    if all(axis == i for i, axis in enumerate(axes)):
        return equation.inputs[0] if same_aval(equation.inputs[0], equation.outputs[0]) else None
    before = binding(equation.inputs[0], definitions)
    if before is None or before.primitive is not equation.primitive:
        return None
    inner = before.params["axes"]
    if inner is None or any(axis < 0 for axis in inner):
        return None
    params = {"axes": tuple([inner[axis] for axis in axes])}
    return Equation(equation.primitive, before.inputs, params, equation.outputs, equation.origin)


def merge_broadcasts(equation: Equation, definitions: Definitions) -> Any:
    """Broadcast once where it is done twice, and not at all to the same shape: no element changes."""
    if same_aval(equation.inputs[0], equation.outputs[0]):
        return equation.inputs[0]
    before = binding(equation.inputs[0], definitions)
    return equation.using(before.inputs) if before is not None and before.primitive is equation.primitive else None
