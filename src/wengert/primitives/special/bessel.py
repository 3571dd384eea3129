"""Bessel functions, derived by their argument; there are no derivatives by the order.

Derivatives are sums of neighbours in the order (Abramowitz & Stegun 1964, 9.1.27, 9.6.26, 10.1.20, 10.2.20).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise, opaque
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import apply, at_once
from wengert.errors import DtypeError
from wengert.primitives import polynomial_coefficients as coefficients
from wengert.primitives.exponentials import bessel_i_at
from wengert.primitives.floating_point import in_double, polynomial
from wengert.primitives.special.declaration import OF_SCIPY, Rule, flat, is_complex, refusing, special
from wengert.support.refusals import refusal


def by_order(ufunc: np.ufunc, slope: Any, *, steep: bool = False) -> Elementwise:
    """Declare a function of an order, by which there is no derivative, and an argument; `slope(v, x, out)` by that."""
    return special(
        ufunc,
        refusing(ufunc.__name__, "the order v"),
        lambda t, out, v, x: t * slope(v, x, out),
        steep=steep,
    )


def real(name: str, x: Any) -> Any:
    """Refuse complex numbers, for which scaled functions have no complex derivative."""
    if is_complex(x):
        given = "a complex argument, whose absolute parts scale the function, is being differentiated"
        action = "Scale the function without the letter e yourself"
        raise refusal(DtypeError(f"scipy.special.{name}", given, "a real one is needed", action))
    return x


def second_kind(v: Any, x: Any) -> Any:
    """Return the derivative of Y_v, in which the smaller neighbour does not count where both are infinite, near 0."""
    below, above = sp.yv(v - 1, x), sp.yv(v + 1, x)
    below = np.where(np.isinf(above) & (v > 0), 0.0, below)
    return (below - np.where(np.isinf(below) & (v < 0), 0.0, above)) / 2


by_order(sp.jv, lambda v, x, _out: (sp.jv(v - 1, x) - sp.jv(v + 1, x)) / 2, steep=True)
by_order(sp.yv, lambda v, x, _out: second_kind(v, x))
by_order(sp.iv, lambda v, x, _out: (sp.iv(v - 1, x) + sp.iv(v + 1, x)) / 2, steep=True)
by_order(sp.kv, lambda v, x, _out: -(sp.kv(v - 1, x) + sp.kv(v + 1, x)) / 2)
by_order(sp.hankel1, lambda v, x, _out: (sp.hankel1(v - 1, x) - sp.hankel1(v + 1, x)) / 2)
by_order(sp.hankel2, lambda v, x, _out: (sp.hankel2(v - 1, x) - sp.hankel2(v + 1, x)) / 2)
by_order(sp.jve, lambda v, x, _out: (sp.jv(v - 1, real("jve", x)) - sp.jv(v + 1, x)) / 2, steep=True)
by_order(sp.yve, lambda v, x, _out: (sp.yve(v - 1, real("yve", x)) - sp.yve(v + 1, x)) / 2)
by_order(sp.yn, lambda n, x, _out: second_kind(n, x))
by_order(sp.kn, lambda n, x, _out: -(sp.kv(n - 1, x) + sp.kv(n + 1, x)) / 2)


# Of orders 0 and 1 kernels compute polynomials on both sides of a number, far away of 1 / x


def bessel_k_at(v: int, scaled: bool = False) -> Rule:
    """Return K_v(x) at a point, or exp(x) times it."""

    def expression(x: Any) -> Any:
        near, far = (coefficients.K1, coefficients.K1_FAR) if v else (coefficients.K0, coefficients.K0_FAR)
        rest, log = polynomial(x * x, near), np.log(0.5 * x)
        left = (
            rest / x + log * (x * polynomial(x * x, coefficients.I1))
            if v
            else rest - log * polynomial(x * x, coefficients.I0)
        )
        right = polynomial(4 / x - 1, far) / np.sqrt(x)
        left, right = (np.exp(x) * left, right) if scaled else (left, np.exp(-x) * right)
        found = np.where(x <= 2, left, right)
        return np.where(x == 0, np.inf, np.where(x < 0, np.nan, found))

    return in_double(expression)


def near_bessel_j_at(x: Any, v: int) -> Any:
    """Return J_v(x) near zero."""
    first, second = ZEROS[v]
    z = x * x
    found = (z - first) * (z - second) * polynomial(z, coefficients.J1 if v else coefficients.J0)
    return x * found if v else found


def far_bessel_at(x: Any, v: int) -> tuple[Any, Any]:
    """Return J_v(x) and Y_v(x) for large x, with the sine and cosine of the phase by those of x."""
    p, q = (coefficients.P1, coefficients.Q1) if v else (coefficients.P0, coefficients.Q0)
    z = 25 / (x * x)
    even, odd = polynomial(z, p), polynomial(z, q) / x
    sin, cos, size = np.sin(x), np.cos(x), math.sqrt(math.pi) * np.sqrt(x)
    one, other = (sin - cos, -(sin + cos)) if v else (sin + cos, sin - cos)
    return (even * one - odd * other) / size, (even * other + odd * one) / size


ZEROS = (5.783185962946784, 30.471262343662087), (14.681970642123893, 49.2184563216946)
"""The squares of the first two zeros of J_0 and J_1."""


@in_double
def j0_at(x: Any) -> Any:
    """Return J_0(x); SciPy's phases of large x have fewer digits."""
    size = np.absolute(x)
    return np.where(size <= 5, near_bessel_j_at(x, 0), far_bessel_at(size, 0)[0])


@in_double
def j1_at(x: Any) -> Any:
    """Return J_1(x)."""
    size = np.absolute(x)
    far = far_bessel_at(size, 1)[0]
    return np.where(size <= 5, near_bessel_j_at(x, 1), np.where(x < 0, -far, far))


@in_double
def y0_at(x: Any) -> Any:
    """Return Y_0(x)."""
    near = polynomial(x * x, coefficients.Y0) + 2 / math.pi * (np.log(x) * near_bessel_j_at(x, 0))
    return np.where(x <= 5, near, far_bessel_at(x, 0)[1])


@in_double
def y1_at(x: Any) -> Any:
    """Return Y_1(x)."""
    known = np.log(x) * near_bessel_j_at(x, 1) - 1 / x
    near = x * polynomial(x * x, coefficients.Y1) + 2 / math.pi * known
    return np.where(x == 0, -np.inf, np.where(x <= 5, near, far_bessel_at(x, 1)[1]))


def y1_slope(out: Any, x: Any) -> Any:
    """Return the derivative of Y1, at 0 the infinity of -Y1(x)."""
    pole = np.equal(x, 0)
    inner = np.where(pole, 1.0, x)
    return np.where(pole, -out, sp.y0(inner) - out / inner)


def modified_second(x: Any) -> Any:
    """Return I_2(x), for small x as its first term: SciPy's is NaN of subnormal numbers."""
    small = np.abs(x) < 1e-100
    return np.where(small, x * x / 8, sp.iv(2.0, np.where(small, 1.0, x)))


special(sp.j0, lambda t, _out, x: -t * sp.j1(x), scalar=j0_at, cost=150)
special(sp.j1, lambda t, _out, x: t * (sp.j0(x) - sp.jv(2.0, x)) / 2, scalar=j1_at, cost=150)
special(sp.y0, lambda t, _out, x: -t * sp.y1(x), scalar=y0_at, cost=200)
special(sp.y1, lambda t, out, x: t * y1_slope(out, x), scalar=y1_at, cost=200)
special(sp.i0, lambda t, _out, x: t * sp.i1(x), scalar=bessel_i_at(0), cost=100)
special(sp.i1, lambda t, _out, x: t * (sp.i0(x) + modified_second(x)) / 2, scalar=bessel_i_at(1), cost=100)
special(sp.k0, lambda t, _out, x: -t * sp.k1(x), scalar=bessel_k_at(0), cost=150)
special(sp.k1, lambda t, out, x: -t * (sp.k0(x) + out / x), scalar=bessel_k_at(1), cost=150)  # kv(2, x) is 0 too early


# Modified functions scaled by exponentials: the difference of neighbours and function cancels for large x


def scaled_bessel_value(v: Any, x: Any, *, kind: str, order: int) -> Any:
    """Evaluate a derivative of ive or kve: a binomial sum over neighbours, or term by term of the asymptotic series.

    The series is the sum over k of (-1)^k a_k(v) / x^k / sqrt(2 pi x), for kve sqrt(pi / (2 x)) without the signs
    (Abramowitz & Stegun 1964, 9.7.1 and 9.7.2); for x > 25 + v^2 its smallest term is below exp(-50).
    """
    dtype, (v, x) = flat(v, x)
    v, x = v[..., 0], x[..., 0]
    function, sign = (sp.ive, 1) if kind == "i" else (sp.kve, -1)
    scale = -np.sign(x) if kind == "i" else 1.0
    found = np.zeros_like(x)
    for i in range(order + 1):
        for j in range(i + 1):
            neighbour = function(v - i + 2 * j, x)
            if kind == "i":  # SciPy's scaled one of negative orders is NaN at 0
                neighbour = np.where(x == 0, sp.iv(v - i + 2 * j, x), neighbour)
            found += math.comb(order, i) * math.comb(i, j) * scale ** (order - i) * (sign / 2) ** i * neighbour
    size = np.abs(x)
    far = size > 25 + v * v
    y = np.where(far, size, 1.0)
    series, term = np.zeros_like(y), np.sqrt((0.5 / np.pi if kind == "i" else np.pi / 2) / y) / (-y) ** order
    for k in range(40):
        series += term * math.prod(k + 0.5 + m for m in range(order))
        term = term * -sign * (4 * v * v - (2 * k + 1) ** 2) / (8 * (k + 1) * y)
        term = np.where(np.abs(term) < np.abs(series) * 1e-30, 0.0, term)
    mirrored = np.where(x < 0, (-1.0) ** order * np.where(v % 2 == 1, -1.0, 1.0), 1.0)
    found = np.where(far & ((x > 0) | (v % 1 == 0)), series * mirrored, found)
    if kind == "k":
        found = np.where((x == 0) | (np.isnan(found) & (x > 0) & (x < 1)), (-1.0) ** order * np.inf, found)
    return found.astype(dtype)[()]


scaled_bessel: Elementwise = elementwise(
    "scaled_bessel",
    scaled_bessel_value,
    d=(
        refusing("ive", "the order v"),
        lambda t, _out, v, x, *, kind, order: t * apply(scaled_bessel, v, x, kind=kind, order=order + 1),
    ),
    singular=True,
)
for _ufunc, _kind in ((sp.ive, "i"), (sp.kve, "k")):
    by_order(
        _ufunc,
        lambda v, x, _out, kind=_kind: apply(scaled_bessel, v, real(f"{kind}ve", x), kind=kind, order=1),
        steep=_kind == "i",
    )
for _ufunc, _kind, _order in ((sp.i0e, "i", 0), (sp.i1e, "i", 1), (sp.k0e, "k", 0), (sp.k1e, "k", 1)):
    special(
        _ufunc,
        lambda t, _out, x, *, kind=_kind, v=float(_order): t * apply(scaled_bessel, v, x, kind=kind, order=1),
        scalar=(bessel_i_at if _kind == "i" else bessel_k_at)(_order, scaled=True),
        cost=150,
    )


# Airy's functions


def airy_vjp(cts: Any, out: Any, x: Any) -> Any:
    """Differentiate Ai, Ai', Bi and Bi': Ai'' = x Ai."""
    slopes = (out[1], x * out[0], out[3], x * out[2])
    terms = [ct * slope for ct, slope in zip(cts, slopes, strict=True) if ct is not None]
    return sum(terms[1:], start=terms[0])


OF_SCIPY[sp.airy] = opaque("airy", sp.airy, vjp=airy_vjp, outputs=4)


# Struve's functions, whose neighbours in the order cancel for small x: there their power series is differentiated


def by_lower_orders(function: Any, v: Any, x: Any, order: int) -> Any:
    """Return a derivative of a function with f_v' = f_(v-1) - v f_v / x, as Struve's are (Abramowitz & Stegun 12.1.11).

    It is the sum over j of c_j x^(j - order) f_(v-j).
    """
    factors: list[Any] = [1.0]
    for n in range(order):
        same = [-(n + v - 2 * j) * factor for j, factor in enumerate(factors)]
        factors = [a + b for a, b in zip([*same, 0.0], [0.0, *factors], strict=True)]
    return sum(factor * function(v - j, x) * x ** (j - float(order)) for j, factor in enumerate(factors))


STEPS = np.arange(40.0)
"""The terms of the power series, which are exact to |x| = 12, and for small orders lose no digit to |x| = 3."""


def struve_series(v: Any, x: Any, sign: int, order: int) -> Any:
    """Return a derivative of the sum over k of sign^k (x / 2)^(2k + v + 1) / gamma(k + 3/2) / gamma(k + v + 3/2)."""
    power = 2 * STEPS + v + 1
    factor = 0.5**power * float(sign) ** STEPS * sp.rgamma(STEPS + 1.5) * sp.rgamma(STEPS + v + 1.5)
    for n in range(order):
        factor = factor * (power - n)
    with np.errstate(all="ignore"):
        terms = np.where(factor == 0, 0.0, factor * x ** (power - order))
    return np.sum(terms, axis=-1)


def struve_derivative_value(v: Any, x: Any, *, modified: bool, order: int) -> Any:
    """Evaluate a derivative of H_v, or of the modified function L_v."""
    dtype, (v, x) = flat(v, x)
    near = np.abs(x) < (12.0 if modified else np.sqrt(6 * np.maximum(v + 1.5, 1.0)))
    series = struve_series(v, np.where(near, x, 1.0), 1 if modified else -1, order)
    v, x, near = v[..., 0], x[..., 0], near[..., 0]
    function, far = (sp.modstruve if modified else sp.struve), np.where(near, 12.0, x)
    rest = by_lower_orders(function, v, far, order)
    if modified:  # where it is infinite, and differences have no value, it is as large as its neighbours
        rest = np.where(np.isinf(function(v, far)), function(v - order, far), rest)
    return np.where(near, series, rest).astype(dtype)[()]


struve_derivative: Elementwise = elementwise(
    "struve_derivative",
    struve_derivative_value,
    d=(
        refusing("struve", "the order v"),
        lambda t, _out, v, x, *, modified, order: (
            t * at_once(struve_derivative, v, x, modified=modified, order=order + 1)
        ),
    ),
    singular=True,
)
by_order(sp.struve, lambda v, x, _out: at_once(struve_derivative, v, x, modified=False, order=1), steep=True)
by_order(sp.modstruve, lambda v, x, _out: at_once(struve_derivative, v, x, modified=True, order=1), steep=True)


# Spherical Bessel functions


def spherical(name: str, lower: float, upper: float) -> Elementwise:
    """Declare a spherical Bessel function f, whose derivative is (lower n f_(n-1) + upper (n + 1) f_(n+1)) / (2 n + 1).

    The parameter `derivative` says whether SciPy's derivative is meant.
    """
    function = getattr(sp, name)

    def evaluate(n: Any, z: Any, *, derivative: bool) -> Any:
        return function(n, z, derivative)

    def rule(t: Any, _out: Any, n: Any, z: Any, *, derivative: bool) -> Any:
        """Differentiate by z, with nothing of order -1; orders without a sign have no negative factor."""
        n = n.astype(np.int64) if hasattr(n, "dtype") else n
        below = at_order(np.maximum(n - 1, 0), z, derivative) * (lower * n)
        return t * (below + at_order(n + 1, z, derivative) * (upper * (n + 1))) / (2 * n + 1)

    def at_order(n: Any, z: Any, derivative: bool) -> Any:
        return at_once(primitive, n, z, derivative=derivative)

    primitive = elementwise(name, evaluate, d=(refusing(name, "the order n"), rule), singular=True)
    return primitive


SPHERICAL = {
    "spherical_jn": spherical("spherical_jn", 1, -1),
    "spherical_yn": spherical("spherical_yn", 1, -1),
    "spherical_in": spherical("spherical_in", 1, 1),
    "spherical_kn": spherical("spherical_kn", -1, -1),
}
