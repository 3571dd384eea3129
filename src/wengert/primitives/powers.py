"""Powers and roots: NumPy's ufuncs, and Python's operator."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import silence
from wengert.core.primitives.cotangent import has_finite_square
from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.aval import strong
from wengert.core.values.dispatch import apply, at_once
from wengert.native.threads.elementwise import share_ufunc
from wengert.primitives import complex_parts
from wengert.primitives.comparisons import shifted_at
from wengert.primitives.floating_point import is_nan
from wengert.primitives.half_precision import SINGLE, is_half

LITERAL = (int, float)
MOST_WHOLE = 4
"""Up to which exponents products of whole numbers are written out."""


# Powers


def falling(y: Any, count: int, order: int) -> list[Any]:
    """Return y (y - 1) ... (y - count + 1) and its derivatives up to an order."""
    found: list[Any] = [1.0] + [0.0] * order
    for n in range(count):
        found = [(y - n) * found[q] + (q * found[q - 1] if q else 0.0) for q in range(order + 1)]
    return found


def power_derivative_value(x: Any, y: Any, out: Any, *, base: int, exponent: int) -> Any:
    """Evaluate the derivative of x**y, which is `out`, of the order `base` by x and `exponent` by y.

    That is x^(y - base) times a polynomial in log(x), whose coefficients are derivatives by y of the falling factorial.
    """
    with silence():
        alike = type(x) is type(y) is np.ndarray and x.dtype == y.dtype and not is_half(x.dtype)
        if alike and base + exponent == 1:  # as most are
            found = y * x ** (y - 1) if base else out * np.log(x)
            if np.isfinite(found).all():
                return found
        dtype = np.result_type(x, y)
        wide = SINGLE if is_half(dtype) else dtype
        x, y = np.asarray(x, wide), np.asarray(y, wide)
        factors = falling(y, base, exponent)
        coefficients = [math.comb(exponent, k) * factors[exponent - k] for k in range(exponent + 1)]
        power = x ** (y - base) if base else np.asarray(out)
        log = np.log(x) if exponent else x
        found = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            found = found * log + coefficient
        found = power * found
        if not np.isfinite(found).all():
            found = np.where(np.isnan(found) & (power == 0) & ~(x.real < 0), 0, found)
            found = np.where(x == 0, power_at_zero(y, power, coefficients), found)
        shape = np.shape(out)
    if found.shape != shape and len(shape) >= found.ndim:  # which graphs may have narrowed the other operands of
        found = np.broadcast_to(found, np.broadcast_shapes(found.shape, shape))
    return np.asarray(found, dtype)[()]


def power_at_zero(y: Any, power: Any, coefficients: list[Any]) -> Any:
    """Return the limit of 0**e, which is `power`, times a polynomial in log(0); 0 for a base of the power y = 0."""
    found, rest = np.zeros_like(power), (power != 0) & (y != 0)
    for k in reversed(range(len(coefficients))):
        there = rest & (coefficients[k] != 0)
        found = np.where(there, power * coefficients[k] * (-np.inf if k % 2 else np.inf if k else 1.0), found)
        rest = rest & ~there
    return found


def power_derivative_at(x: Any, y: Any, out: Any, *, base: int, exponent: int) -> Any:
    """Return a derivative of x**y, which is `out`, as the primitive's value is computed; None for complex numbers."""
    if x.dtype.kind != "f":
        return None
    factors = [np.full_like(y, 1.0), *[np.full_like(y, 0.0)] * exponent]
    for n in range(base):
        lower = [q * factors[q - 1] if q else None for q in range(exponent + 1)]
        factors = [
            (y - n) * factor if rest is None else (y - n) * factor + rest
            for factor, rest in zip(factors, lower, strict=True)
        ]
    coefficients = [math.comb(exponent, k) * factors[exponent - k] for k in range(exponent + 1)]
    power = np.power(x, y - base) if base else out
    found, at_zero = coefficients[-1], np.full_like(y, 0.0)
    for k, coefficient in enumerate(coefficients):
        limit = power * coefficient * (-math.inf if k % 2 else math.inf if k else 1.0)
        at_zero = np.where(coefficient == 0, at_zero, limit)
    for coefficient in coefficients[-2::-1]:
        found = found * np.log(x) + coefficient
    found = power * found
    found = np.where(is_nan(found) & (power == 0) & (x >= 0), 0, found)
    return np.where(x == 0, np.where((power == 0) | (y == 0), 0, at_zero), found)


power_derivative: Elementwise = elementwise(
    "power_derivative",
    power_derivative_value,
    d=(
        lambda t, _out, x, y, out, *, base, exponent: (
            t * apply(power_derivative, x, y, out, base=base + 1, exponent=exponent)
        ),
        lambda t, _out, x, y, out, *, base, exponent: (
            t * apply(power_derivative, x, y, out, base=base, exponent=exponent + 1)
        ),
        None,
    ),
    singular=True,
    steep=True,
    scalar=power_derivative_at,
)


def power_base(t: Any, out: Any, x: Any, y: Any) -> Any:
    """Differentiate x**y by x: y x**(y - 1), which is 0 for y = 0, 0**0 included."""
    if isinstance(y, LITERAL):
        if y == 2:
            return t * (2 * x)
        return t * (y * strong(x) ** (y - 1)) if y else t * 0.0  # Python's 0.0 raises for a negative exponent
    if type(x) is type(y) is np.ndarray and x.dtype == y.dtype and has_finite_square(found := y * x ** (y - 1)):
        return t * found  # as the primitive does, in two thirds of its time
    return t * at_once(power_derivative, x, y, out, base=1, exponent=0)


def power_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:
    """Differentiate x**y by y: x**y log x, which tends to 0 for x = 0 and y > 0."""
    if isinstance(x, LITERAL) and x > 0:
        return (t * out) * np.log(x)
    if type(x) is type(y) is np.ndarray and x.dtype == y.dtype and has_finite_square(found := out * np.log(x)):
        return t * found
    return t * at_once(power_derivative, x, y, out, base=0, exponent=1)


def is_smooth_power(x: Any, y: Any) -> bool:
    """Tell whether x**y is differentiable everywhere: for a literal y of 0 or at least 1, or a positive literal x."""
    return (isinstance(y, LITERAL) and (y >= 1 or y == 0)) or (isinstance(x, LITERAL) and x > 0)


def raised_at(x: Any, y: Any, by_root: bool = True) -> Any:
    """Return x**y for a small whole exponent that is known, or of floats.

    Args:
        x: the base.
        y: the exponent.
        by_root: whether arrays to the power 1/2 are square roots, as for NumPy, which makes -inf NaN and keeps -0.0.
    """
    exponent = y.constant_value
    powers: Mapping[float, Callable[[], Any]] = {
        0: lambda: np.full_like(x, 1),
        1: lambda: x,
        2: lambda: x * x,
        3: lambda: x * x * x,
        4: lambda: (x * x) * (x * x),
    }
    inverse: Mapping[float, Callable[[], Any]] = {
        -1: lambda: 1 / x,
        -2: lambda: (1 / x) * (1 / x),  # x * x can be infinite where x**-2 is not yet zero
    }
    known = powers.get(exponent) if exponent is not None else None
    if known is not None:
        return known()
    if x.dtype.kind != "f":
        return power_of_two(int(x.constant_value), y) if x.constant_value is not None and y.dtype == np.int64 else None
    if exponent == 0.5 and by_root and x.shape:
        return np.sqrt(x)
    known = inverse.get(exponent) if exponent is not None else None
    return known() if known is not None else np.power(x, y)


def power_of_two(x: int, y: Any) -> Any:
    """Return a power of two to some power by a shift; None of other numbers. NumPy raises where it is negative."""
    if not is_power_of_two(x):
        return None
    (y >= 0).require()
    return shifted_at(np.left_shift)(np.full_like(y, 1), np.minimum(y, 64) * (x.bit_length() - 1))


def bits_of_base(x: Any, y: Any) -> int | tuple[tuple[int, int], ...]:
    """Return how many bits a whole number of Python's may have whose power is to have 64; 0 for unusual powers.

    Of a known power of two a range for what it is raised to.
    """
    if type(x) is int and is_power_of_two(x):
        return (1, x + 1), (0, 62 // (x.bit_length() - 1) + 1)
    return min(63 // y, 62) if type(y) is int and 0 < y <= MOST_WHOLE else 0


def is_power_of_two(x: float) -> bool:
    """Tell whether a whole number is 2, or 2 to some power below 63."""
    return x == int(x) and 1 < x < 1 << 63 and int(x).bit_count() == 1


POWER: Any = {
    "d": (power_base, power_exponent),
    "singular": True,
    "regular": is_smooth_power,
    "raises": True,
    "kink": "By `x1` the derivative is 0 where `x2` is 0.",
    "steep": True,
}
RAISED: Any = {
    "scalar": raised_at,
    "parts": complex_parts.power,
    "operator": operator.pow,
    "counts": True,
    "whole_bits": bits_of_base,
}
power = elementwise("power", np.power, **POWER, **RAISED)
power_large = share_ufunc(np.power)


def raised_large(x: Any, y: Any) -> Any:
    """Evaluate x**y for large arrays: on several threads, unless the power is a number, for which NumPy is quicker."""
    return power_large(x, y) if type(x) is type(y) is np.ndarray else x**y


# As Python's operator computes it, to other bits: x**2 is a square, and numbers are raised by scalar arithmetic

raised = elementwise("pow", operator.pow, **POWER, **RAISED, loop=np.power, cost=90, evaluate_large=raised_large)
float_power = elementwise(
    "float_power", np.float_power, **POWER, scalar=lambda x, y: raised_at(x, y, by_root=False), cost=90
)


# Roots

ODD, EVEN, HALF = "odd", "even", "half"
"""What a power is below 0: the negative of what it is above, the same, or nothing."""


def compose_parity(outer: str, inner: str) -> str:
    """Return the parity of a power of a power."""
    if outer == ODD or inner == HALF:
        return inner
    return EVEN if outer == EVEN or inner == EVEN else HALF


def product_parity(one: str, other: str) -> str:
    """Return the parity of a product of two powers."""
    if HALF in (one, other):
        return HALF
    return EVEN if one == other else ODD


def size_power_value(x: Any, *, exponent: float, parity: str) -> Any:
    """Evaluate |x|**exponent, with the sign of x if odd; where x is 0 an odd one is the mean of both sides."""
    with silence():
        found = (x if parity == HALF else np.abs(x)) ** exponent
        if parity == HALF:
            return found if exponent % 1 else np.where(x >= 0, found, np.nan)[()]
        if parity == EVEN:
            return found
        return np.where(x == 0, x, np.where(x < 0, -found, found))[()]


def size_power_at(x: Any, *, exponent: float, parity: str) -> Any:
    """Return |x|**exponent at one point, in NumPy's functions; see `size_power_value`."""
    found = np.power(x if parity == HALF else np.absolute(x), np.full_like(x, exponent))
    if parity == HALF:
        return found if exponent % 1 else np.where(x >= 0, found, math.nan)
    return found if parity == EVEN else np.where(x == 0, x, np.where(x < 0, -found, found))


def size_power_rule(t: Any, _out: Any, x: Any, *, exponent: float, parity: str) -> Any:
    """Differentiate a power of a size: by one whose parity is the other."""
    if exponent == 0:
        return t * 0.0
    turned = {ODD: EVEN, EVEN: ODD, HALF: HALF}[parity]
    return t * (exponent * apply(size_power, x, exponent=exponent - 1, parity=turned))


size_power: Elementwise = elementwise(
    "size_power",
    size_power_value,
    d=size_power_rule,
    singular=True,
    steep=True,
    raises=True,
    scalar=size_power_at,
    cost=90,
)
sqrt = elementwise(
    "sqrt",
    np.sqrt,
    d=lambda t, out, _x: t / (2 * out),
    singular=True,
    steep=True,
    degree=2,
    parts=complex_parts.root,
    not_negative=(),
)
cbrt = elementwise("cbrt", np.cbrt, d=lambda t, out, _x: t / (3 * out) / out, singular=True, steep=True, degree=3)
