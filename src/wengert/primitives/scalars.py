"""What pointwise primitives compute at one point, in NumPy functions of scalars, from which their kernels follow.

The operands of these expressions have the dtypes of NumPy's own loop, and are arrays or what
`wengert.lowering.rules.scalars` passes; parameters go by keyword. They agree with the evaluations of the primitives to
a few roundings, at infinities, NaN and both zeros too. One that gives None has parameters or operands for which there
is no expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Scalar = Any
Expression = Callable[..., Any]
BOOL = np.dtype(bool)
LN2 = math.log(2)

# Values


def is_nan(x: Scalar) -> Scalar:
    """Tell whether a value is NaN."""
    return x != x


def is_infinite(x: Scalar) -> Scalar:
    """Tell whether a value is infinite."""
    return np.absolute(x) == math.inf


def is_finite(x: Scalar) -> Scalar:
    """Tell whether a value is neither infinite nor NaN."""
    return np.absolute(x) < math.inf


def of_floats(expression: Expression, otherwise: bool = False) -> Expression:
    """Return an expression of floats that is one truth for all values of other kinds, which have no NaN."""
    return lambda x: expression(x) if x.dtype.kind == "f" else np.full_like(x, otherwise, BOOL)


def sign(x: Scalar) -> Scalar:
    """Return -1, 0 or 1, and NaN for NaN."""
    negative = np.where(x < 0, -1, np.where(x == 0, 0, x)) if x.dtype.kind in "fi" else np.full_like(x, 0)
    return np.where(x > 0, 1, negative)


def heaviside(x: Scalar, at_zero: Scalar) -> Scalar:
    """Return 0 below zero, 1 above it, and something else there."""
    return np.where(x < 0, 0, np.where(x > 0, 1, np.where(x == 0, at_zero, x)))


def larger(x: Scalar, y: Scalar) -> Scalar:
    """Return the larger of two values, of which NaN is none."""
    return np.where(is_nan(x), y, np.where(is_nan(y), x, np.maximum(x, y)))


def smaller(x: Scalar, y: Scalar) -> Scalar:
    """Return the smaller of two values, of which NaN is none."""
    return np.where(is_nan(x), y, np.where(is_nan(y), x, np.minimum(x, y)))


def replaced(x: Scalar, *, nan: float, posinf: float | None, neginf: float | None) -> Scalar:
    """Return numbers for NaN and infinities."""
    limits = np.finfo(x.dtype)
    low = float(limits.min) if neginf is None else neginf
    high = float(limits.max) if posinf is None else posinf
    return np.where(is_nan(x), nan, np.where(x == math.inf, high, np.where(x == -math.inf, low, x)))


def guarded(x: Scalar, r: Scalar, t: Scalar, *, masked: bool = False, steep: bool = False) -> Scalar:
    """Return x, and 0 where r is NaN although t is 0, or infinite behind an infinite partial."""
    if steep:
        return np.where(is_nan(r) & ((t == 0) | is_infinite(t)), 0, x)
    if x.is_same(r) and r.dtype == t.dtype and r.dtype.kind == "f":
        return r.opcode("guarded", t)
    return np.where(is_nan(r) & (t == 0), 0, x)


def is_close(x: Scalar, y: Scalar, rtol: Scalar, atol: Scalar, *, equal_nan: bool) -> Scalar:
    """Tell whether two values are nearly equal; whole numbers as floats, which NumPy makes of the second."""
    x, y, rtol, atol = (value.astype(np.result_type(x.dtype, y.dtype, 1.0)) for value in (x, y, rtol, atol))
    size = np.absolute(y)
    near = (np.absolute(x - y) <= atol + rtol * size) & is_finite(y) | (x == y)
    return near | is_nan(x) & is_nan(y) if equal_nan else near


# Division


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """Return what is left of x after dividing by y, with the sign of y."""
    if x.dtype.kind != "f":
        return np.where(y == 0, 0, x - np.floor_divide(x, y) * y)
    rest = np.fmod(x, y)
    other = (rest < 0) ^ (y < 0)
    return np.where(rest == 0, np.copysign(0, y), np.where(other, rest + y, rest))


def c_remainder(x: Scalar, y: Scalar) -> Scalar:
    """Return what is left of x after dividing by y, with the sign of x."""
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    rest = remainder(x, y)
    if x.dtype.kind == "u":
        return rest
    other = (x < 0) ^ (y < 0)
    return np.where(other & (rest != 0), rest - y, rest)


def floor_quotient(x: Scalar, y: Scalar) -> Scalar:
    """Return how often y fits into x, rounded down; of floats from the remainder, as NumPy does."""
    if x.dtype.kind != "f":
        return np.floor_divide(x, y)
    rest = np.fmod(x, y)
    other = ((rest < 0) ^ (y < 0)) & (rest != 0)
    quotient = (x - rest) / y
    quotient = np.where(other, quotient - 1, quotient)
    down = np.floor(quotient)
    nearest = np.where(quotient - down > 0.5, down + 1, down)
    plain = x / y
    found = np.where(quotient == 0, np.copysign(0, plain), nearest)
    return np.where(y == 0, plain, found)


def in_parts(x: Scalar) -> tuple[Scalar, Scalar]:
    """Return the fraction of a number and the whole number towards zero."""
    whole = np.trunc(x)
    fraction = np.where(is_infinite(x), 0, x - whole)
    return np.copysign(fraction, x), whole


def shifted(shift: np.ufunc) -> Expression:
    """Return a shift of bits, which leaves those of the sign where it is by more than there are."""

    def expression(x: Scalar, count: Scalar) -> Scalar:
        bits = 8 * x.dtype.itemsize
        fits = count < bits if x.dtype.kind == "u" else (count < bits) & (count >= 0)
        if shift is np.right_shift and x.dtype.kind == "i":
            return shift(x, np.where(fits, count, bits - 1))
        return np.where(fits, shift(x, np.where(fits, count, 0)), 0)

    return expression


# Powers


def raised(x: Scalar, y: Scalar, by_root: bool = True) -> Scalar | None:
    """Return x**y for a small whole exponent that is known, or of floats.

    Args:
        x: the base.
        y: the exponent.
        by_root: whether arrays to the power 1/2 are square roots, as for NumPy, which makes -inf NaN and keeps -0.0.
    """
    exponent = y.known
    powers: Mapping[float, Callable[[], Scalar]] = {
        0: lambda: np.full_like(x, 1),
        1: lambda: x,
        2: lambda: x * x,
        3: lambda: x * x * x,
        4: lambda: (x * x) * (x * x),
    }
    inverse: Mapping[float, Callable[[], Scalar]] = {
        -1: lambda: 1 / x,
        -2: lambda: (1 / x) * (1 / x),  # x * x can be infinite where x**-2 is not yet zero
    }
    known = powers.get(exponent) if exponent is not None else None
    if known is not None:
        return known()
    if x.dtype.kind != "f":
        return None
    if exponent == 0.5 and by_root and x.shape:
        return np.sqrt(x)
    known = inverse.get(exponent) if exponent is not None else None
    return known() if known is not None else np.power(x, y)


def power_derivative(x: Scalar, y: Scalar, out: Scalar, *, base: int, exponent: int) -> Scalar | None:
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


def logistic(x: Scalar, *, base: int, sign: int) -> Scalar:
    """Return 1 / (1 + b**(-sign x)), where no tail loses accuracy or overflows."""
    x = x if sign == 1 else -x
    power = (np.exp2 if base == 2 else np.exp)(-np.absolute(x))
    return np.where(x >= 0, 1, power) / (1 + power)


def logistic_derivative(_y: Scalar, x: Scalar, *, base: int) -> Scalar:
    """Return y (1 - y) for the logistic function y of x, by the argument, so that no tail loses accuracy."""
    power = (np.exp2 if base == 2 else np.exp)(-np.absolute(x))
    return power / (1 + power) / (1 + power)


def sinc(x: Scalar) -> Scalar:
    """Return sin(pi x) / (pi x), and 1 at zero."""
    y = x * math.pi
    return np.where(y == 0, 1, np.sin(y) / y)


def added_exponents(power: np.ufunc, scale: float) -> Expression:
    """Return log(b**x + b**y), from the larger of the two, and 2 b**x where they are equal, infinities included."""

    def expression(x: Scalar, y: Scalar) -> Scalar:
        term = np.log1p(power(-np.absolute(x - y)))
        term = term if scale == 1 else term / scale
        return np.where(x == y, x + (LN2 if scale == 1 else 1.0), np.maximum(x, y) + term)

    return expression
