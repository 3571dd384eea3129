"""How large whole numbers of Python's may become in a round of a loop that could be written out as well.

Written out, they are Python's, of any size; in a graph they have 64 bits, and more of them are an error. So a loop that
need not be one equation is one only if its whole numbers are known to stay small: what counts rounds, what grows by a
bounded number in each, and what is computed of these without growing beyond 2^53.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.graph.equation import Variable
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of
from wengert.errors import TracedTruthError
from wengert.traces.written_out import ROLLING

Bounds: TypeAlias = tuple[int, int]
LARGEST = 1 << 53
"""Up to here a whole number is a float, too."""


def of_products(xs: Bounds, ys: Bounds) -> Bounds:
    """Return the bounds of a product."""
    found = [x * y for x in xs for y in ys]
    return min(found), max(found)


def of_quotients(xs: Bounds, ys: Bounds) -> Bounds | None:
    """Return the bounds of a quotient without its rest; None if the divisor may be zero."""
    if ys[0] <= 0 <= ys[1]:
        return None
    found = [x // y for x in xs for y in ys]
    return min(found), max(found)


def of_rests(_xs: Bounds, ys: Bounds) -> Bounds | None:
    """Return the bounds of the rest of a division, which has the sign of the divisor."""
    if ys[0] <= 0 <= ys[1]:
        return None
    return (0, ys[1] - 1) if ys[0] > 0 else (ys[0] + 1, 0)


def of_powers(xs: Bounds, ys: Bounds) -> Bounds | None:
    """Return the bounds of a power; None if the exponent may be negative, or the power large."""
    largest = max(map(abs, xs))
    if ys[0] < 0 or (largest > 1 and ys[1] * math.log2(largest) > math.log2(LARGEST)):
        return None
    bound = int(largest ** ys[1])
    return -bound, bound


RULES: dict[str, Callable[..., Bounds | None]] = {
    "add": lambda xs, ys: (xs[0] + ys[0], xs[1] + ys[1]),
    "subtract": lambda xs, ys: (xs[0] - ys[1], xs[1] - ys[0]),
    "multiply": of_products,
    "negative": lambda xs: (-xs[1], -xs[0]),
    "floor_divide": of_quotients,
    "remainder": of_rests,
    "pow": of_powers,
    "power": of_powers,
}
"""The bounds of a result by those of the operands; others that whole numbers give are no larger than these."""
POWERS = frozenset(("pow", "power"))
GROWING = frozenset(("multiply", "left_shift", *POWERS))
"""What makes of numbers of unknown size ones that are too large in some rounds."""


def bounds_of(value: Any) -> Bounds | None:
    """Return between which numbers a whole number of Python's lies; None if that is not known, or it is none."""
    if type(value) is Variable:
        return (0, 1) if value.weak and value.dtype.kind == "b" else ROLLING.bounds.get(value)
    return (int(value), int(value)) if type(value) in (int, bool) else None


def set_bounds(variable: Variable, low: int, high: int) -> None:
    """Enter between which numbers a variable lies."""
    ROLLING.bounds[variable] = low, high


def copy_bounds(old: Any, new: Variable) -> None:
    """Enter what is known of a variable for one that stands for it."""
    if ROLLING.bounds and type(old) is Variable and (found := ROLLING.bounds.get(old)) is not None:
        ROLLING.bounds[new] = found


def enter_bounds(primitive: Primitive, inputs: Sequence[Any], outputs: Sequence[Variable]) -> None:
    """Enter the bounds of what an equation gives.

    Raises:
        TracedTruthError: a whole number may become too large, or is none of Python's where it is written out.
    """
    out = outputs[0]
    numbers = [x for x in inputs if type(x) is Variable and x.weak and x.dtype.kind == "i"]
    if out.weak and out.dtype.kind == "f" and primitive.name in POWERS and not is_power_of_floats(*inputs):
        raise not_alike("a power that Python may not have as a float")
    if not numbers or out.dtype.kind not in "iu":
        return
    if not out.weak:
        if out.dtype.itemsize < aval_of(numbers[0]).dtype.itemsize or out.dtype.kind == "u":
            raise not_alike("a whole number of Python's beside NumPy's short ones")
        return
    operands = list(map(bounds_of, inputs))
    rule = RULES.get(primitive.name)
    if rule is None or None in operands:
        if primitive.name in GROWING or (primitive.name in ("add", "subtract") and operands.count(None) > 1):
            raise not_alike("a whole number that may grow beyond 64 bits")
        return
    found = rule(*operands)
    if found is None or max(map(abs, found)) > LARGEST:
        raise not_alike("a whole number that may grow beyond 64 bits")
    ROLLING.bounds[out] = found


def is_power_of_floats(base: Any, exponent: Any) -> bool:
    """Tell whether Python has a power of numbers as a float, neither as a complex number nor as too large a one."""
    if type(exponent) in (int, float):
        return float(exponent).is_integer() and 0 <= exponent <= MOST_EXPONENT
    bounds = bounds_of(exponent)
    if bounds is None or type(base) not in (int, float) or base == 0:
        return False
    return max(map(abs, bounds)) * abs(math.log2(abs(base))) < MOST_BITS


MOST_EXPONENT, MOST_BITS = 4, 1000


def not_alike(what: str) -> TracedTruthError:
    """Return the error about a round that is not the same as one that is written out, with the user's line."""
    given, needed = f"{what} ({position_of(*caller())})", "rounds that a graph can repeat are needed"
    return TracedTruthError("for", given, needed, "Nothing has to be done: the loop is written out")
