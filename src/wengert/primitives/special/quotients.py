"""Quotients h(x) / x of functions that are 0 at 0, and what is made of them: Box and Cox's functions, dilogarithm.

Each is the integral of h'(x s) over s from 0 to 1, and so are its derivatives, which serves near 0; elsewhere they
follow from g = h / x by x g^(n) = h^(n) - n g^(n-1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.primitive import PointRules
from wengert.core.values.dispatch import at_once
from wengert.primitives.floating_point import in_double, polynomial
from wengert.primitives.special.declaration import LEGENDRE, flat, is_complex, special

Slope = Callable[[Any, int], Any]


def quotient(
    name: str,
    value: Callable[[Any], Any],
    slope: Slope,
    near: float,
    zero: float = 0.0,
    **points: Unpack[PointRules],
) -> Elementwise:
    """Declare a derivative, of the order that is a parameter, of h(x) / (x - zero), where h is 0 at that zero.

    Args:
        name: its name.
        value: the quotient itself.
        slope: `slope(x, n)`: the derivative of h of order n > 0.
        near: up to which |x - zero| the integral is exact with 48 points.
        zero: where h is 0.
        **points: what kernels know of it.
    """

    def evaluate(x: Any, *, order: int) -> Any:
        dtype, (x,) = flat(x)
        y = x - zero
        inside = np.abs(y) < near
        nodes, weights = LEGENDRE[48]
        integral = (nodes**order * slope(zero + np.where(inside, y, 0.0) * nodes, order + 1)) @ weights
        x, y, inside = x[..., 0], y[..., 0], inside[..., 0]
        outer, apart = np.where(inside, zero + 1.0, x), np.where(inside, 1.0, y)
        found = value(outer)
        for n in range(1, order + 1):
            found = (slope(outer, n) - n * found) / apart
        return np.where(inside, integral, found).astype(dtype)[()]

    primitive = elementwise(
        name,
        evaluate,
        d=lambda t, _out, x, *, order: t * at_once(primitive, x, order=order + 1),
        singular=True,
        **points,
    )
    return primitive


def slope_of_log(x: Any, n: int) -> Any:
    """Return a derivative of log(x)."""
    return -math.factorial(n - 1) / (-x) ** n


def exprel_value(x: Any) -> Any:
    """Return (exp(x) - 1) / x, of complex numbers, too."""
    return np.expm1(x) / x if is_complex(x) else sp.exprel(x)


@in_double
def exprel_at(x: Any) -> Any:
    """Return (exp(x) - 1) / x."""
    return np.where(np.absolute(x) < 1e-16, 1, np.where(x > 717, np.inf, np.expm1(x) / x))


TERMS = 30
"""Of the power series of exprel, whose derivative of order n is the sum over k of x^k / k! / (n + 1 + k)."""


@in_double
def exprel_derivative_at(x: Any, *, order: int) -> Any:
    """Return a derivative of exprel of the first or second order: the power series, or the recurrence."""
    if order > 2:
        return None
    far = exprel_at(x)
    for n in range(1, order + 1):
        far = (np.exp(x) - n * far) / x
    near = polynomial(x, [1 / math.factorial(k) / (order + 1 + k) for k in range(TERMS)])
    return np.where(np.absolute(x) < 2, near, far)


exprel_derivative = quotient(
    "exprel_derivative", exprel_value, lambda x, _n: np.exp(x), near=3.0, scalar=exprel_derivative_at, cost=60
)
log1p_ratio = quotient("log1p_ratio", lambda x: np.log1p(x) / x, lambda x, n: slope_of_log(1 + x, n), near=0.5)
log_ratio = quotient("log_ratio", lambda x: np.log(x) / (x - 1), slope_of_log, near=0.5, zero=1.0)
sinhc_derivative = quotient(
    "sinhc_derivative", lambda x: np.sinh(x) / x, lambda x, n: np.cosh(x) if n % 2 else np.sinh(x), near=3.0
)
special(sp.exprel, lambda t, _out, x: t * at_once(exprel_derivative, x, order=1), scalar=exprel_at, cost=40)


# Box and Cox's (x^y - 1) / y = log(x) exprel(y log(x)), its inverse (1 + x y)^(1 / y), and both of 1 + x


def slope_by_power(y: Any, log: Any) -> Any:
    """Return the derivative of log exprel(y log) by y, also where the power is 0 and -1 / y left."""
    ends = np.isinf(log) & (y * log < 0)
    log = np.where(ends, 1.0, log)
    return np.where(ends, 1 / np.where(ends, y * y, 1.0), log * log * at_once(exprel_derivative, y * log, order=1))


def end_of_inverse(x: Any, y: Any) -> tuple[Any, Any]:
    """Return where 1 + x y is 0 or infinite, and there its power 1 / y - 1, a limit."""
    base = 1 + x * y
    end = (base == 0) | (np.isinf(x) & (y != 0))
    return end, np.where(end, base, 1.0) ** (1 / np.where(end, y, 1.0) - 1)


def slope_of_inverse(out: Any, x: Any, y: Any) -> Any:
    """Return the derivative of (1 + x y)^(1 / y) by x, that of exp(x) for y = 0."""
    end, power = end_of_inverse(x, y)
    base = 1 + np.where(end | np.isinf(x), 0.0, x) * y
    return np.where(end, power, out / base)


def slope_of_inverse_by_power(out: Any, x: Any, y: Any) -> Any:
    """Return the derivative of (1 + x y)^(1 / y) by y."""
    end, power = end_of_inverse(x, y)
    far = np.isinf(x)
    inner = np.where(end | far, 1.0, x)
    usual = out * (inner * inner) * at_once(log1p_ratio, inner * np.where(end, 0.0, y), order=1)
    return np.where(far, -out, np.where(end, -(x * x) * power, usual))


MOST = 709.78
"""The largest exponent of an exponential that is finite."""
LARGEST = float(np.finfo(np.float64).max)


def power_less_one_at(log: Any, y: Any) -> Any:
    """Return (exp(y log) - 1) / y, where the exponential is infinite as one of two terms."""
    size = np.absolute(y)
    far = np.copysign(1, y) * np.exp(y * log - np.log(size)) - 1 / y
    found = np.where(y * log < MOST, np.expm1(y * log) / y, far)
    return np.where((size < 1e-19) | ((np.absolute(log) < 1e-289) & (size < 1e273)), log, found)


def root_at(exponential: np.ufunc) -> Callable[..., Any]:
    """Return the exponential of log(1 + x y) / y, also where the product is infinite."""

    def expression(x: Any, y: Any) -> Any:
        size, sign = np.absolute(y), np.copysign(1, y)
        far = np.log(sign * (x + 1 / y)) + np.log(size)
        found = exponential(np.where(x * y < LARGEST, np.log1p(x * y), far) / y)
        if exponential is np.expm1:
            found = np.where(np.absolute(x * y) < 1e-154, x, found)  # as SciPy has it
        return np.where(y == 0, exponential(x), found)

    return in_double(expression)


special(
    sp.boxcox,
    lambda t, _out, x, y: t * x ** (y - 1),
    lambda t, _out, x, y: t * slope_by_power(y, np.log(x)),
    scalar=in_double(lambda x, y: power_less_one_at(np.log(x), y)),
    cost=120,
    steep=True,
)
special(
    sp.boxcox1p,
    lambda t, _out, x, y: t * np.exp(sp.xlog1py(y - 1, x)),
    lambda t, _out, x, y: t * slope_by_power(y, np.log1p(x)),
    scalar=in_double(lambda x, y: power_less_one_at(np.log1p(x), y)),
    cost=120,
    steep=True,
)
special(
    sp.inv_boxcox,
    lambda t, out, x, y: t * slope_of_inverse(out, x, y),
    lambda t, out, x, y: t * slope_of_inverse_by_power(out, x, y),
    scalar=root_at(np.exp),
    cost=120,
    steep=True,
)
special(
    sp.inv_boxcox1p,
    lambda t, _out, x, y: t * slope_of_inverse(sp.inv_boxcox(x, y), x, y),  # of -1 the digits are lost
    lambda t, _out, x, y: t * slope_of_inverse_by_power(sp.inv_boxcox(x, y), x, y),
    scalar=root_at(np.expm1),
    cost=120,
    steep=True,
)
special(sp.spence, lambda t, _out, x: -t * at_once(log_ratio, x, order=0), steep=True)
