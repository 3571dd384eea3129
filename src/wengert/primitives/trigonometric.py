"""Trigonometric and hyperbolic functions, their inverses, angles and lengths: NumPy's ufuncs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import silently
from wengert.core.primitives.cotangent import has_finite_square
from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import apply, at_once
from wengert.primitives import complex_parts
from wengert.primitives.floating_point import LEAST, ONE, indices_of, less_square, polynomial
from wengert.primitives.half_precision import in_single_precision

DOUBLE = np.dtype(np.float64)
UNIT, ENOUGH = ONE["d"], LEAST["d"]
FOUR, MINUS_TWO = np.array(4.0), np.array(-2.0)

sin = elementwise("sin", np.sin, d=lambda t, _out, x: t * np.cos(x), parts=complex_parts.sine, own=True)
cos = elementwise("cos", np.cos, d=lambda t, _out, x: -t * np.sin(x), parts=complex_parts.cosine, own=True)
tan = elementwise(
    "tan", np.tan, d=lambda t, out, _x: t * (1 + out * out), parts=complex_parts.turn_argument(complex_parts.tangent)
)
sinh = elementwise("sinh", np.sinh, d=lambda t, _out, x: t * np.cosh(x), parts=complex_parts.hyperbolic(even=False))
cosh = elementwise("cosh", np.cosh, d=lambda t, _out, x: t * np.sinh(x), parts=complex_parts.hyperbolic(even=True))


def tanh_derivative_value(y: Any, x: Any) -> Any:
    """Evaluate 1 / cosh(x)^2 for y = tanh(x): 1 - y^2, and where that cancels 4 p / (1 + p)^2, p = exp(-2 |x|)."""
    slope, tail = less_square(y)
    if tail is None:
        return slope
    if type(x) is type(slope) is np.ndarray and x.shape == slope.shape and x.dtype is DOUBLE:
        slope[tail] = inverse_square_of_cosh(x[tail])
        return slope
    x, slope = np.broadcast_to(x, slope.shape)[tail], np.asarray(slope)
    power = np.exp(-2 * np.where(x.real < 0, -x, x))
    slope[tail] = 4 * power / (1 + power) / (1 + power)
    return slope[()]


def inverse_square_of_cosh(x: Any) -> Any:
    """Return 4 p / (1 + p)^2, p = exp(-2 |x|), for an array that is written to: of few elements each call counts."""
    np.absolute(x, x)
    x *= MINUS_TWO
    np.exp(x, x)
    other = x + UNIT
    x *= FOUR
    x /= other
    x /= other
    return x


def tanh_rule(t: Any, out: Any, x: Any) -> Any:
    """Differentiate tanh; what the primitive evaluates to where nothing cancels takes half as long without it."""
    if type(out) is np.ndarray and out.dtype is DOUBLE and out.size and out.ndim:
        slope = out * out
        np.subtract(UNIT, slope, slope)
        if not slope.item(slope.argmin()) >= ENOUGH:
            tail = indices_of(slope < ENOUGH)
            slope[tail] = inverse_square_of_cosh(x[tail])
        return t * slope
    return t * at_once(tanh_derivative, out, x)


tanh_derivative: Elementwise = elementwise(
    "tanh_derivative",
    tanh_derivative_value,
    d=(None, lambda t, out, y, _x: t * (-2 * y * out)),
    scalar="tanh_derivative",
    parts=complex_parts.slope_of_tanh,
    evaluate_large=tanh_derivative_value,
)
tanh = elementwise("tanh", np.tanh, d=tanh_rule, parts=complex_parts.tangent, own=True)


# Their inverses: derivatives are primitives whose own are products, of which none cancels, overflows or meets 0 times
# infinity, so that derivatives of every order are right near 0, at +-1 and for the largest arguments. For complex
# arguments on a branch cut the sign of a zero part tells the side: x - (-1) keeps it, x + 1 does not (-0.0 + 0.0).


def faded_value(f: Any, x: Any) -> Any:
    """Evaluate f * x, and 0 where f is 0, whatever x is."""
    found = silently(operator.mul, f, x)
    return but(found, np.isnan(found) & (f == 0), lambda: 0.0)


faded: Elementwise = elementwise(
    "faded",
    faded_value,
    d=(lambda t, _out, _f, x: t * x, lambda t, _out, f, _x: at_once(faded, f, t)),
    singular=True,
    scalar=lambda f, x: np.where(f == 0, 0, f * x),
)
"""The product in rules of what has decayed to 0 at infinity, faster than the other factor grew (ADR 0017)."""


def arcsin_derivative_value(x: Any) -> Any:
    """Evaluate (1 - x^2)^(-1/2), on the side of the cuts on which `numpy.arcsin` is."""
    if x.dtype.kind == "c":
        return 1 / (np.sqrt(-(x - 1)) * np.sqrt(x - (-1)))
    return 1 / np.sqrt((1 - x) * (1 + x))


def arctan_derivative_value(x: Any) -> Any:
    """Evaluate 1 / (1 + x^2), without overflow of the square."""
    if x.dtype.kind == "c":
        return 1 / (x - 1j) / (x + 1j)
    square, finite = square_or_infinity(x)
    found = 1 / (1 + square)
    return found if finite else but(found, np.isinf(square), lambda: 1 / x / x)


def square_or_infinity(x: Any) -> tuple[Any, bool]:
    """Return x^2, or infinity, and whether it is known to be finite everywhere."""
    with np.errstate(over="ignore"):
        return x * x, has_finite_square(x)


def but(found: Any, there: Any, other: Callable[[], Any]) -> Any:
    """Return values but other ones where a condition holds; what an element is does not depend on its neighbours."""
    return np.where(there, other(), found)[()] if there.any() else found


def arctan_derivative_at(x: Any) -> Any:
    """Return 1 / (1 + x^2), without overflow of the square."""
    square = x * x
    return np.where(square == math.inf, (1 / x) / x, 1 / (1 + square))


def arcsinh_derivative_at(x: Any) -> Any:
    """Return (1 + x^2)^(-1/2), without overflow of the square."""
    square = x * x
    return np.where(square == math.inf, 1 / np.absolute(x), 1 / np.sqrt(1 + square))


def arcsinh_derivative_value(x: Any) -> Any:
    """Evaluate (1 + x^2)^(-1/2), without overflow of the square; for complex x by arcsinh(x) = -i arcsin(i x)."""
    if x.dtype.kind != "c":
        square, finite = square_or_infinity(x)
        found = 1 / np.sqrt(1 + square)
        return found if finite else but(found, np.isinf(square), lambda: 1 / np.abs(x))
    turned = np.empty_like(x)
    turned.real, turned.imag = -x.imag, x.real
    return arcsin_derivative_value(turned)


def arccosh_derivative_value(x: Any) -> Any:
    """Evaluate (x^2 - 1)^(-1/2), on the side of the cut on which `numpy.arccosh` is."""
    return 1 / np.sqrt(x - 1) / np.sqrt(x - (-1))


def arctanh_derivative_value(x: Any) -> Any:
    """Evaluate 1 / (1 - x^2)."""
    return 1 / ((1 - x) * (1 + x))


arcsin_derivative = elementwise(
    "arcsin_derivative",
    arcsin_derivative_value,
    d=lambda t, out, x: t * (x * out) * out * out,
    singular=True,
    scalar=lambda x: 1 / np.sqrt((1 - x) * (1 + x)),
    parts=complex_parts.sine_slope,
)
arctan_derivative = elementwise(
    "arctan_derivative",
    arctan_derivative_value,
    d=lambda t, out, x: t * (-2 * at_once(faded, out, x)) * out,
    singular=True,
    scalar=arctan_derivative_at,
    parts=complex_parts.tangent_slope,
)
arcsinh_derivative = elementwise(
    "arcsinh_derivative",
    arcsinh_derivative_value,
    d=lambda t, out, x: -(t * at_once(faded, out, x) * out * out),
    singular=True,
    scalar=arcsinh_derivative_at,
    parts=lambda x: complex_parts.sine_slope((-x[1], x[0])),
)
arccosh_derivative = elementwise(
    "arccosh_derivative",
    arccosh_derivative_value,
    d=lambda t, out, x: -(t * out * (1 / (x - 1) + 1 / (x + 1))) / 2,  # all terms have one sign at 1, at every order
    singular=True,
    scalar=lambda x: 1 / np.sqrt(x - 1) / np.sqrt(x + 1),
    parts=complex_parts.cosh_slope,
)
arctanh_derivative = elementwise(
    "arctanh_derivative",
    arctanh_derivative_value,
    d=lambda t, out, x: t * (2 * (x * out)) * out,
    singular=True,
    scalar=arctanh_derivative_value,
    parts=complex_parts.tanh_slope,
)

arcsin = elementwise(
    "arcsin",
    np.arcsin,
    d=lambda t, _out, x: t * at_once(arcsin_derivative, x),
    singular=True,
    steep=True,
    parts=complex_parts.inverse_sine,
)
arccos = elementwise(
    "arccos",
    np.arccos,
    d=lambda t, _out, x: -(t * at_once(arcsin_derivative, x)),
    singular=True,
    steep=True,
    parts=complex_parts.inverse_cosine,
)
arctan = elementwise(
    "arctan",
    np.arctan,
    d=lambda t, _out, x: t * at_once(arctan_derivative, x),
    singular=True,
    parts=complex_parts.turn_argument(complex_parts.inverse_tangent),
    own=True,
)
arcsinh = elementwise(
    "arcsinh",
    np.arcsinh,
    d=lambda t, _out, x: t * at_once(arcsinh_derivative, x),
    singular=True,
    parts=complex_parts.turn_argument(complex_parts.inverse_sine),
)
arccosh = elementwise(
    "arccosh",
    np.arccosh,
    d=lambda t, _out, x: t * at_once(arccosh_derivative, x),
    singular=True,
    steep=True,
    parts=complex_parts.inverse_cosh,
)
arctanh = elementwise(
    "arctanh",
    np.arctanh,
    d=lambda t, _out, x: t * at_once(arctanh_derivative, x),
    singular=True,
    parts=complex_parts.inverse_tangent,
)


# Functions whose derivatives of every order are primitives, so that no order loses accuracy


@in_single_precision
def sinc_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of s(y) = sin(y) / y, y = pi x.

    Where |y| is not small, from the derivatives of y s(y) = sin(y): y s^(n) + n s^(n-1) = sin(y + n pi / 2). Elsewhere,
    where that cancels, from the power series, sum over 2k >= n of (-1)^k y^(2k - n) / ((2k + 1) (2k - n)!).
    """
    y = np.pi * np.asarray(x)
    near = np.abs(y) < order + 1
    inner, outer = np.where(near, y, 0), np.where(near, 1, y)
    inner = inner.astype(np.result_type(inner, float))  # factorials are too large for singles
    series = np.zeros_like(inner)
    for k in range((order + 1) // 2, order + 20):
        series += (-1) ** k * inner ** (2 * k - order) / ((2 * k + 1) * math.factorial(2 * k - order))
    recurrence = np.sin(outer) / outer
    for n in range(1, order + 1):
        recurrence = (np.sin(outer + n * (np.pi / 2)) - n * recurrence) / outer
    return (np.pi**order * np.where(near, series.astype(y.dtype), recurrence))[()]


def sinc_at(x: Any) -> Any:
    """Return sin(pi x) / (pi x), and 1 at zero."""
    y = x * math.pi
    return np.where(y == 0, 1, np.sin(y) / y)


def sinc_derivative_at(x: Any, *, order: int) -> Any:
    """Return a derivative of sinc as it is evaluated; of the first orders, since the series is longer for others."""
    if order > 3:
        return None
    y = math.pi * x
    far = np.sin(y) / y
    waves = (np.sin(y), np.cos(y), -np.sin(y), -np.cos(y))
    for n in range(1, order + 1):
        far = (waves[n % 4] - n * far) / y
    terms = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k - order)) for k in range((order + 1) // 2, order + 20)]
    series = polynomial(y * y, terms) * (y if order % 2 else 1)
    return math.pi**order * np.where(np.absolute(y) < order + 1, series, far)


sinc_derivative: Elementwise = elementwise(
    "sinc_derivative",
    sinc_derivative_value,
    d=lambda t, _out, x, *, order: t * apply(sinc_derivative, x, order=order + 1),
    scalar=sinc_derivative_at,
    cost=120,
)
sinc = elementwise("sinc", np.sinc, d=lambda t, _out, x: t * apply(sinc_derivative, x, order=1), scalar=sinc_at)
