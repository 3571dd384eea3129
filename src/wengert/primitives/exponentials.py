"""Exponentials, logarithms, the logistic function, and the modified Bessel function, a mean of exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import apply, at_once
from wengert.core.values.tensor import visible_array
from wengert.primitives import complex_parts
from wengert.primitives import polynomial_coefficients as coefficients
from wengert.primitives.floating_point import in_double, one_less, polynomial

LN2 = np.log(2.0)
LN10 = np.log(10.0)
exp = elementwise(
    "exp", np.exp, d=lambda t, out, _x: t * out, parts=complex_parts.exponential, not_negative=(), own=True
)
exp2 = elementwise(
    "exp2",
    np.exp2,
    d=lambda t, out, _x: t * out * LN2,
    parts=lambda x: complex_parts.exponential((x[0] * math.log(2), x[1] * math.log(2))),
    own=True,
)
expm1 = elementwise(
    "expm1", np.expm1, d=lambda t, _out, x: t * np.exp(x), parts=complex_parts.exponential_less_one, own=True
)  # out + 1 is 0 from x = -37 on
log = elementwise("log", np.log, d=lambda t, _out, x: t / x, singular=True, parts=complex_parts.logarithm)
log2 = elementwise(
    "log2",
    np.log2,
    d=lambda t, _out, x: t * (1 / LN2) / x,
    singular=True,
    parts=complex_parts.scaled_logarithm(1 / math.log(2)),
)
log10 = elementwise(
    "log10",
    np.log10,
    d=lambda t, _out, x: t * (1 / LN10) / x,
    singular=True,
    parts=complex_parts.scaled_logarithm(1 / math.log(10)),
)
log1p = elementwise(
    "log1p", np.log1p, d=lambda t, _out, x: t / (1 + x), singular=True, parts=complex_parts.logarithm_from_one
)


# The logistic function


def logistic_value(x: Any, *, base: int, sign: int) -> Any:
    """Evaluate 1 / (1 + b**(-sign x)), for b = e (base 1) or 2, where no tail loses accuracy or overflows."""
    exponential = np.exp2 if base == 2 else np.exp
    power = exponential(-np.abs(x))
    return np.maximum(power, sign * x >= 0) / (1 + power)  # `where` takes ten times as long on an unpredictable mask


def logistic_at(x: Any, *, base: int, sign: int) -> Any:
    """Return 1 / (1 + b**(-sign x)), where no tail loses accuracy or overflows."""
    x = x if sign == 1 else -x
    power = (np.exp2 if base == 2 else np.exp)(-np.absolute(x))
    return np.where(x >= 0, 1, power) / (1 + power)


def logistic_derivative_value(y: Any, x: Any, *, base: int) -> Any:
    """Evaluate y (1 - y) for y = 1 / (1 + b**(+-x)); where the difference has no digits, by x."""
    rest, tail = one_less(y)
    if tail is not None:
        rest = np.asarray(rest)
        rest[tail] = logistic_value(np.abs(np.broadcast_to(x, rest.shape)[tail]), base=base, sign=-1)
    return rest * y


def logistic_derivative_at(_y: Any, x: Any, *, base: int) -> Any:
    """Return y (1 - y) for the logistic function y of x, by the argument, so that no tail loses accuracy."""
    power = (np.exp2 if base == 2 else np.exp)(-np.absolute(x))
    return power / (1 + power) / (1 + power)


def scale_by_logarithm(t: Any, base: int, sign: int) -> Any:
    """Return t times the logarithm of the base, with a sign."""
    return t * (sign * LN2) if base == 2 else t if sign == 1 else -t


def logistic_rule(t: Any, out: Any, x: Any, *, base: int, sign: int) -> Any:
    """Differentiate the logistic function: out (1 - out)."""
    return scale_by_logarithm(t * at_once(logistic_derivative, out, x, base=base), base, sign)


def logistic_curvature(t: Any, out: Any, _y: Any, x: Any, *, base: int) -> Any:
    """Differentiate y (1 - y) by x, of whose sign it does not depend: by y it is 1 - 2 y, which is -tanh(x / 2)."""
    return scale_by_logarithm(t * (out * np.tanh(scale_by_logarithm(0.5 * x, base, 1))), base, -1)


logistic_derivative: Elementwise = elementwise(
    "logistic_derivative",
    logistic_derivative_value,
    d=(None, logistic_curvature),
    scalar=logistic_derivative_at,
    cost=40,
)
logistic: Elementwise = elementwise("logistic", logistic_value, d=logistic_rule, scalar=logistic_at, cost=40)


# Sums of exponentials


def largest(x: Any) -> Any:
    """Return the greatest absolute value among elements; NaN if one is."""
    return np.absolute(x).max(initial=0.0)


def portion(t: Any, x: Any, y: Any, base: int, sign: int) -> Any:
    """Return the part of t that x (sign 1) or y (sign -1) has in b**x + b**y; equal ones where both are infinite."""
    known = visible_array(x)
    if type(known) is np.ndarray and known.dtype.kind == "f" and largest(known) < np.inf:
        return t * at_once(logistic, x - y, base=base, sign=sign)
    tied = (x == y) & np.isinf(x)
    difference = np.where(tied, 0.0, x) - np.where(tied, 0.0, y)
    return t * apply(logistic, difference, base=base, sign=sign)


def logaddexp_at(power: np.ufunc, scale: float) -> Callable[..., Any]:
    """Return log(b**x + b**y), from the larger of the two, and 2 b**x where they are equal, infinities included."""

    def expression(x: Any, y: Any) -> Any:
        term = np.log1p(power(-np.absolute(x - y)))
        term = term if scale == 1 else term / scale
        return np.where(x == y, x + (LN2 if scale == 1 else 1.0), np.maximum(x, y) + term)

    return expression


logaddexp = elementwise(
    "logaddexp",
    np.logaddexp,
    d=(lambda t, _out, x, y: portion(t, x, y, 1, 1), lambda t, _out, x, y: portion(t, x, y, 1, -1)),
    scalar=logaddexp_at(np.exp, 1),
    cost=70,
)
logaddexp2 = elementwise(
    "logaddexp2",
    np.logaddexp2,
    d=(lambda t, _out, x, y: portion(t, x, y, 2, 1), lambda t, _out, x, y: portion(t, x, y, 2, -1)),
    scalar=logaddexp_at(np.exp2, math.log(2)),
    cost=70,
)


# The modified Bessel function that NumPy has, and its derivatives


def bessel_i_at(v: int, scaled: bool = False) -> Callable[..., Any]:
    """Return I_v(x) at a point, or exp(-|x|) times it; infinity is NaN to SciPy, too."""

    def expression(x: Any) -> Any:
        near, far = (coefficients.I1, coefficients.I1_FAR) if v else (coefficients.I0, coefficients.I0_FAR)
        size = np.absolute(x)
        left, right = polynomial(x * x, near), polynomial(8 / size, far) / np.sqrt(size)
        left, right = (x * left + 0, np.copysign(right, x)) if v else (left, right)  # of -0.0, too, it is 0.0
        if scaled:
            return np.where(size <= 8, np.exp(-size) * left, right)
        return np.where(size <= 8, left, np.exp(size) * right)

    return in_double(expression)


def i0_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of the modified Bessel function I0; the first one is I1."""
    from scipy import special  # only here, because importing it takes longer than importing Wengert

    value = special.i1(x) if order == 1 else special.ivp(0, x, order)
    return value.astype(np.result_type(x))


i0_derivative: Elementwise = elementwise(
    "i0_derivative",
    i0_derivative_value,
    d=lambda t, _out, x, *, order: t * apply(i0_derivative, x, order=order + 1),
    scalar=lambda x, *, order: bessel_i_at(1)(x) if order == 1 else None,
    cost=100,
)
i0 = elementwise(
    "numpy.i0",
    np.i0,
    d=lambda t, _out, x: t * apply(i0_derivative, x, order=1),
    scalar=bessel_i_at(0),
    cost=100,
)
