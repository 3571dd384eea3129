"""What Python calls by itself on objects of the user's, with traced choices in it: operators, truths, items, `with`."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, TracedTruthError


class Pair:
    """Two numbers; each operator chooses by one of them."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __add__(self, other: Any) -> Pair:
        if isinstance(other, Pair):
            return Pair(self.x + other.x, self.y + other.y)
        if other > 0:
            return Pair(self.x + other, self.y)
        return Pair(self.x, self.y - other)

    __radd__ = __add__

    def __mul__(self, factor: Any) -> Pair:
        if factor < 0:
            return Pair(-self.x, factor * self.y)
        return Pair(factor * self.x, self.y)

    def __rmul__(self, factor: Any) -> Pair:
        return self * factor

    def __imul__(self, factor: Any) -> Pair:
        if factor > 1:
            self.x = self.x * factor
        return self

    def __neg__(self) -> Pair:
        return Pair(-self.x, self.y) if self.x > 0 else Pair(self.x, -self.y)

    def __abs__(self) -> Any:
        return self.x if self.x > self.y else self.y

    def __lt__(self, other: Pair) -> Any:
        if self.x < other.x:
            return True
        return self.y < other.y

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Pair):
            return NotImplemented
        return self.y == other.y if self.x == other.x else False

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> Any:
        found = False
        if self.x > 1:
            found = True
        return found

    def __contains__(self, value: Any) -> Any:
        if value < self.x:
            return False
        return value < self.y

    def __getitem__(self, factor: Any) -> Any:
        if self.x > 1:
            return self.x * factor
        return self.y

    def __setitem__(self, factor: Any, value: Any) -> None:
        if value > 0:
            self.x = value * factor
        else:
            self.y = value

    def __delitem__(self, factor: Any) -> None:
        if self.x > 1:
            self.x = self.y * factor

    def __enter__(self) -> Any:
        if self.x > 1:
            return self.x
        return self.y

    def __exit__(self, *error: object) -> None:
        if self.x < 1:
            self.x = self.x * 3.0

    @property
    def clipped(self) -> Any:
        return self.x

    @clipped.setter
    def clipped(self, value: Any) -> None:
        if value > 2:
            value = 2 * value
        self.x = value


class Triple(Pair):
    """Have reflected operators that go first, as those of subclasses do."""

    def __radd__(self, other: Any) -> Pair:
        if self.x > 1:
            return Pair(self.x * 7, other.x)
        return Pair(other.x, self.x * 5)

    def __ge__(self, other: Pair) -> Any:
        return True if self.x * other.y > 1 else other.x < 2


class Positive:
    """Be a descriptor that refuses what is not positive."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        value = getattr(instance, self.name)
        if value > 1:
            return value
        return 2 * value

    def __set__(self, instance: Any, value: Any) -> None:
        if value <= 0:
            raise ValueError(f"{self.name} is to be positive")
        setattr(instance, self.name, value)


class Spring:
    """Have attributes that are checked when they are set."""

    stiffness = Positive()

    def __init__(self, stiffness: Any) -> None:
        self.stiffness = stiffness


class Limited:
    """Check every attribute that is set."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __setattr__(self, name: str, value: Any) -> None:
        if value > 2:
            value = value * 0.5
        object.__setattr__(self, name, value)


def from_the_left(x: Any) -> Any:
    pair = (Pair(x, 2 * x) + x) * x
    return pair.x * pair.y


def from_the_right(x: Any) -> Any:
    pair = 3.0 * (x + Pair(x, 2 * x)) + np.float64(1.0)
    return pair.x * pair.y


def alone(x: Any) -> Any:
    return (-Pair(x, 2 * x)).x + abs(Pair(x, x * x))


def compared(x: Any) -> Any:
    less = x * 3 if Pair(x, x) < Pair(1.0, -1.0) else x * x
    equal = x * 2 if Pair(x, x) == Pair(1.5, 1.5) else x * 7
    unequal = x * 2 if Pair(x, x) != Pair(1.5, 1.5) else x * 5
    more = x if Pair(0.5, x) > Pair(x, 0.5) else x + 1
    return less + equal * unequal + more


def of_subclasses(x: Any) -> Any:
    pair = Pair(x, 2.0) + Triple(x, 3.0)
    return pair.x * pair.y if Pair(x, 1.0) <= Triple(x, 2.0) else pair.x


def found_inside(x: Any) -> Any:
    inside = x * 2 if x in Pair(0.5, 2.0) else x * x
    listed = x * 3 if Pair(x, x) in [Pair(1.5, 1.5), Pair(-1.0, -1.0)] else x
    return inside * listed


def truth(x: Any) -> Any:
    found = x * 2 if Pair(x, x) else x
    if not Pair(x, 1.0):
        found = found * 3
    while Pair(found, x):
        found = found * 0.5
    return found + bool(Pair(x, x))


def items(x: Any) -> Any:
    pair = Pair(x, x * x)
    pair[2.0] = pair[3.0] - 1
    del pair[0.5]
    return pair.x * pair.y


def set_and_augmented(x: Any) -> Any:
    pair = Pair(x, x)
    pair.clipped = x * x
    pair.clipped += 1.0
    same, pairs = pair, {"one": Pair(x, 2.0), "other": [Pair(x, x)]}
    pair *= x
    pairs["one"] *= x + 1
    pairs["other"][0] += x  # type: ignore[index]
    total = 1.0
    total += x
    other: Any = 0.5
    other += Pair(x, total)
    return same.x * pair.y + pairs["one"].x * pairs["other"][0].x * other.x + other.y  # type: ignore[index, union-attr]


def described(x: Any) -> Any:
    spring, limited = Spring(x + 0.1), Limited(x * 2)
    spring.stiffness = spring.stiffness * x
    limited.value += x * x
    return spring.stiffness * limited.value


def managed(x: Any) -> Any:
    pair = Pair(x, x * x)
    with pair as entered:
        found = entered * x
    return found * pair.x


def summed(x: Any) -> Any:
    pairs = [Pair(x, x), Pair(1.0, x), Pair(x * x, 1.0)]
    total, other = sum(pairs, Pair(0.0, x)), sum(pairs)
    return total.x * total.y + other.x  # type: ignore[union-attr]


def called_by_functions(x: Any) -> Any:
    pairs = [Pair(x, 2.0), Pair(1.0, x), Pair(x * x, 1.0)]
    total = functools.reduce(operator.add, [*pairs, x])
    negative = operator.neg(total).x if operator.lt(pairs[0], pairs[1]) else total.y
    extreme = min(pairs).x * max(pairs, key=lambda pair: pair.x).y  # type: ignore[type-var]
    return negative + extreme + sum(spring.stiffness for spring in map(Spring, [x + 3, 2 * x + 3]))


def looped(x: Any) -> Any:
    pair = Pair(x, 1.0)
    for _ in range(3):
        pair = pair + Pair(x, 1.0) * x
    while pair < Pair(10.0, 10.0):
        pair = pair + Pair(1.0, 1.0)
    return pair.x * pair.y


PROGRAMS = (
    from_the_left,
    from_the_right,
    alone,
    compared,
    of_subclasses,
    found_inside,
    truth,
    items,
    set_and_augmented,
    described,
    managed,
    summed,
    called_by_functions,
    looped,
)


def outcome(function: Callable[[Any], Any], x: float) -> tuple[str, Any]:
    """Return what a function raises, and what it gives."""
    try:
        return "", float(f"{float(function(x)):.12g}")
    except ValueError as error:
        return f"{type(error).__name__}: {error}", None


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda x: x.__name__)
def test_compiled_programs_do_what_python_does(program: Callable[[Any], Any]) -> None:
    compiled = wg.jit(program)
    ways = wg.jit(wg.grad(program)), wg.grad(compiled)
    for x in (1.5, -1.0, 3.0, 0.3, -0.2):
        assert outcome(compiled, x) == outcome(program, x)
        for way in ways:
            assert outcome(way, x) == outcome(wg.grad(program), x)


def test_operands_that_no_method_knows_are_refused_as_python_does() -> None:
    def added(x: Any) -> Any:
        return (x if x > 0 else -x) + Spring(x + Pair(1.0, x))

    def ordered(x: Any) -> Any:
        return x if x > 0 and Pair(x, x) <= Pair(x, x) else -x  # type: ignore[operator]

    with pytest.raises(TypeError, match="'<=' not supported between instances of 'Pair' and 'int'"):
        wg.jit(added)(1.0)
    with pytest.raises(wg.errors.GraphError, match="'<=' not supported between instances of 'Pair' and 'Pair'"):
        wg.jit(ordered)(1.0)


def test_texts_are_filled_with_objects_themselves() -> None:
    class Named(Pair):
        def __str__(self) -> str:
            return "a pair"

        def __rmod__(self, other: Any) -> Any:
            return 0.0 if self.x > 0 else 1.0

    seen = []

    def f(x: Any) -> Any:
        template = "%s of numbers"
        seen.append(template % Named(1.0, 2.0))
        return x if x > 0 else -x

    assert wg.jit(f)(-2.0) == 2.0
    assert seen[-1] == "a pair of numbers"


def test_arrays_leave_operators_to_objects_that_ask_for_it() -> None:
    class Scale:
        __array_ufunc__ = None

        def __init__(self, factor: Any) -> None:
            self.factor = factor

        def __rmul__(self, other: Any) -> Any:
            if self.factor > 1:
                return other * self.factor
            return other

    def f(x: Any) -> Any:
        return np.sum(np.arange(3.0) * Scale(x)) * x

    for x in (2.0, 0.5):
        assert wg.jit(f)(x) == f(x)
        assert wg.jit(wg.grad(f))(x) == wg.grad(f)(x)


def test_arrays_are_changed_in_place_by_objects() -> None:
    class Field:
        def __init__(self, values: Any) -> None:
            self.values = values

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.asarray(self.values, dtype)

        def __radd__(self, other: Any) -> Any:
            return other + self.values if self.values[0] > 0 else other

    def f(x: Any) -> Any:
        array = np.ones(2)
        same, held = array, {"one": [array]}
        array += Field([-1.0, 2.0])
        held["one"][0] += Field([3.0, 4.0])
        return (same[0] * x if x > 0 else same[1] * x) + array[1]

    for x in (2.0, -3.0):
        assert wg.jit(f)(x) == f(x)


@functools.total_ordering
class Ordered:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return self.value == other.value  # type: ignore[no-any-return]

    def __lt__(self, other: Any) -> bool:
        return self.value < other.value  # type: ignore[no-any-return]

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "chosen",
    [
        lambda a, b: a.value if a >= b else b.value,
        lambda a, b: a.value if a > b else b.value,
        lambda a, b: a.value if a <= b else b.value,
        lambda a, b: max(a, b).value,
    ],
)
def test_comparisons_of_total_ordering_are_converted(chosen: Callable[[Any, Any], Any]) -> None:
    def f(x: Any) -> Any:
        return chosen(Ordered(x * x), Ordered(2 * x)) * x

    jitted, slope = wg.jit(f), wg.jit(wg.grad(f))
    for x in (1.0, 3.0, 2.0):
        assert jitted(x) == f(x)
        assert slope(x) == wg.grad(f)(x)


class Compared:
    """Give what a comparison gives, and the value itself for a number."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __bool__(self) -> Any:
        return self.value > 1.0

    def __float__(self) -> Any:
        return self.value

    __int__ = __index__ = __complex__ = __float__


def test_truths_that_are_comparisons_decide_under_jit() -> None:
    def f(x: Any) -> Any:
        y = x * 3.0 if not Compared(x) else -x
        if Compared(x):
            y = y * x
        if any([Compared(-x), Compared(x)]) and not all((Compared(x), Compared(x / 10))):
            y = 2 * y
        while Compared(y) and operator.truth(y < 9.0):
            y = y + x
        return y if bool(Compared(x)) or Compared(y / 2) or operator.not_(Compared(y)) else y + 1.0

    for x in (0.55, 0.85, 1.6):
        assert wg.jit(f)(x) == pytest.approx(f(x))
        assert wg.jit(wg.grad(f))(x) == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)
        assert wg.jit(wg.vmap(f))(np.full(2, x))[1] == pytest.approx(f(x))


@together(
    "ask, kind, action",
    [
        (bool, "bool", r"Write bool\(\.\.\.\) around what it returns"),
        *[
            (ask, ask.__name__, "Compute with the Tensor itself, in place of the object")
            for ask in (float, complex, int)
        ],
        ([1.0, 2.0].__getitem__, "index", "Compute with the Tensor itself, in place of the object"),
        (math.sin, "float", "Compute with the Tensor itself"),
    ],
)
def test_numbers_of_objects_that_are_tensors_are_refused_at_the_line(ask: Any, kind: str, action: str) -> None:
    def f(x: Any) -> Any:
        return ask(Compared(x)) * x  # here

    text = rf"^__{kind}__: a method that returned a Tensor \(File .*, in .*f: .*# here\); what Python takes .*{action}"
    for g in [wg.grad(f), lambda x: wg.jvp(f, (x,), (1.0,))] + [wg.jit(f)] * (ask is not bool):
        with pytest.raises(TracedTruthError, match=text):
            g(1.5)


def test_powers_modulo_a_number_are_refused() -> None:
    for g in (wg.grad(lambda x: pow(x, 2, 7)), wg.jit(lambda x: pow(x, 2, 7))):
        with pytest.raises(DtypeError, match=r"^pow: three arguments, of which one is a Tensor; two .*x\*\*y % z"):
            g(3.0)
