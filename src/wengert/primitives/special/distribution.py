"""Distribution functions that are incomplete gamma and beta functions of other arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.diagnostics.numpy_warnings import silently
from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.primitives.special.declaration import special
from wengert.primitives.special.densities import beta_body, beta_density, beta_density_at, gamma_density_at
from wengert.primitives.special.error import normal_density
from wengert.primitives.special.gamma import polygamma_difference
from wengert.primitives.special.incomplete import (
    betainc_by_shapes,
    gamma_inverse_by_shape,
    gamma_inverse_slope,
    shape_slope,
)
from wengert.primitives.trigonometric import faded

# Gamma, chi-square and Poisson distributions

special(
    sp.chdtr,
    lambda t, _out, v, x: t * shape_slope(v / 2, x / 2) / 2,
    lambda t, _out, v, x: t * gamma_density_at(v / 2, x / 2) / 2,
    steep=True,
)
special(
    sp.chdtrc,
    lambda t, _out, v, x: -t * shape_slope(v / 2, x / 2) / 2,
    lambda t, _out, v, x: -t * gamma_density_at(v / 2, x / 2) / 2,
    steep=True,
)
special(
    sp.chdtri,
    lambda t, out, v, p: t * gamma_inverse_by_shape(v / 2, out / 2, 1 - p),
    lambda t, out, v, p: -t * 2 * gamma_inverse_slope(v / 2, out / 2, 1 - p, p),
    steep=True,
)


def gamma_place(a: Any, x: Any) -> Any:
    """Return a x, for functions whose slopes may be infinite where it is 0."""
    return at_once(faded_product, a, x)


faded_product: Elementwise = elementwise(
    "faded_product",
    lambda a, x: a * x,
    d=(lambda t, _out, _x, y: at_once(faded, y, t), lambda t, _out, x, _y: at_once(faded, x, t)),
    singular=True,
    scalar=lambda a, x: a * x,
)
special(
    sp.gdtr,
    lambda t, _out, a, b, x: t * at_once(faded, x, gamma_density_at(b, gamma_place(a, x))),
    lambda t, _out, a, b, x: t * shape_slope(b, gamma_place(a, x)),
    lambda t, _out, a, b, x: t * at_once(faded, a, gamma_density_at(b, gamma_place(a, x))),
    steep=True,
)
special(
    sp.gdtrc,
    lambda t, _out, a, b, x: -t * at_once(faded, x, gamma_density_at(b, gamma_place(a, x))),
    lambda t, _out, a, b, x: -t * shape_slope(b, gamma_place(a, x)),
    lambda t, _out, a, b, x: -t * at_once(faded, a, gamma_density_at(b, gamma_place(a, x))),
    steep=True,
)
special(sp.pdtr, None, lambda t, _out, k, m: -t * gamma_density_at(np.floor(k) + 1, m))
special(sp.pdtrc, None, lambda t, _out, k, m: t * gamma_density_at(np.floor(k) + 1, m))


# Student's distribution: I_z(1/2, v/2) with z = x^2 / (v + x^2), or 1 - z where that is the smaller one


FARTHEST = 1e150
"""The square of what is beyond may overflow."""


def student_density(v: Any, x: Any) -> Any:
    """Return the density of Student's distribution, the normal one for infinite degrees of freedom."""
    normal = np.isinf(v)
    v = np.where(normal, 1.0, v)
    found = at_once(student_body, v, x) / (np.sqrt(v) * sp.beta(0.5, v / 2))
    return np.where(normal, normal_density(x), found)


def student_growth(v: Any, x: Any) -> Any:
    """Return log(1 + x^2 / v), of places whose squares overflow, too."""
    far = np.abs(x) > FARTHEST
    near = np.where(far, 1.0, x)
    return np.where(far, 2 * np.log(np.where(far, np.abs(x), 1.0)) - np.log(v), np.log1p(near * near / v))


def student_body_at(v: Any, x: Any) -> Any:
    """Return (1 + x^2 / v)^(-(v + 1) / 2)."""
    return np.exp(-(v + 1) / 2 * student_growth(v, x))


def student_share(v: Any, x: Any) -> Any:
    """Return v / (v + x^2), likewise."""
    outer = np.abs(x) > 1
    far, near = np.where(outer, x, 1.0), np.where(outer, 0.0, x)
    rest = v / far / far
    return np.where(outer, rest / (1 + rest), v / (v + near * near))


def student_body_value(v: Any, x: Any) -> Any:
    """Evaluate (1 + x^2 / v)^(-(v + 1) / 2), of the largest x, too."""
    return silently(student_body_at, v, x)


student_body: Elementwise = elementwise(
    "student_body",
    student_body_value,
    d=(
        lambda t, out, v, x: (
            t * at_once(faded, out, (1 + 1 / v) * (1 - student_share(v, x)) - student_growth(v, x)) / 2
        ),
        lambda t, out, v, x: t * -(1 + 1 / v) * at_once(faded, out, x) * student_share(v, x),
    ),
    singular=True,
    scalar=student_body_at,
)


FISHER = (
    (1 / 4, (1, 1)),
    (2 / 96, (-3, -5, -7, 3)),
    (3 / 384, (-15, -3, 6, 14, -11, 1)),
    (4 / 92160, (945, 915, -213, -939, -2141, 2225, -375, 15)),
    (5 / 368640, (17955, 5355, 180, 1140, 2490, 5994, -7516, 1764, -133, 3)),
)
"""Fisher (1925), "Expansion of Student's integral in powers of n^-1", Metron 5, differentiated by n: for each power of
1/n a factor, and the coefficients of a polynomial of x^2."""


def student_slope_far(v: Any, x: Any) -> Any:
    """Return what `student_slope` does for many degrees of freedom: there its own terms cancel to 1 / v of them."""
    found: Any = 0.0
    for factor, coefficients in reversed(FISHER):
        polynomial: Any = float(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            polynomial = polynomial * (x * x) + coefficient
        found = (found + factor * polynomial) / v
    return normal_density(x) * x * found / v


def student_slope(v: Any, x: Any) -> Any:
    """Return the derivative of Student's distribution function by its degrees of freedom: none if they are infinite.

    It is x times the density, (1 + v) / (2 v), and a smooth function of x^2.
    """
    normal = np.isinf(v)
    many = (np.sqrt(v) > 10 * (1 + np.square(np.clip(x, -FARTHEST, FARTHEST)))) & ~normal
    beyond = student_slope_far(np.where(many, v, 1.0), np.where(many, x, 0.0))
    v = np.where(normal | many, 1.0, v)
    share = student_share(v, x)
    inner = share > 0.5
    place = np.where(inner, x, 1.0)
    z, rest = np.where(inner, place * place / (v + place * place), 0.5), np.where(inner, 0.5, share)
    near = at_once(betainc_by_shapes, 0.5, v / 2, z, i=0, j=1) - 1 / (1 + v)
    beyond_all = np.abs(x) > FARTHEST  # where one term of the series is all
    a, rest = v / 2, np.where(beyond_all, 0.5, rest)
    limit = (at_once(polygamma_difference, a, 0.5, order=0) - student_growth(v, x) - 1 / a) / (1 + v)
    far = np.where(beyond_all, limit, at_once(betainc_by_shapes, a, 0.5, rest, i=1, j=0)) + 1 / (1 + v)
    scale = at_once(faded, student_density(v, x), x) * (1 + v) / (2 * v)
    return np.where(normal, 0.0, np.where(many, beyond, at_once(faded, scale, np.where(inner, near, -far))))


special(
    sp.stdtr,
    lambda t, _out, v, x: t * student_slope(v, x),
    lambda t, _out, v, x: t * student_density(v, x),
)
special(
    sp.stdtrit,
    lambda t, out, v, _p: -t * student_slope(v, out) / student_density(v, out),
    lambda t, out, v, _p: t / student_density(v, out),
)


# The F distribution: I_z(m/2, n/2) with z = m x / (n + m x)


def f_place_value(m: Any, n: Any, x: Any) -> Any:
    """Evaluate z = m x / (n + m x), at infinity 1."""
    low = m * x < n
    far = 1 / (1 + n / (m * np.where(low, 1.0, x)))
    return np.where(low, m * x / (n + m * np.where(low, x, 0.0)), far)[()]


def moved_place(t: Any, m: Any, n: Any, x: Any, part: Any) -> Any:
    """Return t part (1 - z) / (n + m x), and 0 where the part is, though slopes there may be infinite."""
    total = n + m * x
    return at_once(faded, part / total, t * (n / total))


f_place_of: Elementwise = elementwise(
    "f_place",
    f_place_value,
    d=(
        lambda t, _out, m, n, x: moved_place(t, m, n, x, x),
        lambda t, _out, m, n, x: moved_place(t, m, n, x, -(m * x) / n),
        lambda t, _out, m, n, x: moved_place(t, m, n, x, m),
    ),
    singular=True,
)


def f_place(m: Any, n: Any, x: Any) -> Any:
    """Return where the incomplete beta function is taken."""
    return at_once(f_place_of, m, n, x)


def f_body(m: Any, n: Any, z: Any) -> Any:
    """Return z (1 - z) times the beta density of m / 2 and n / 2, over m n / (m + n)."""
    return beta_body(m / 2, n / 2, z) / 2


def f_by_shapes(m: Any, n: Any, x: Any, i: int, more: Any) -> Any:
    """Return the derivative of the F distribution function by m (i = 1) or n: where F is 0 or 1 it has none.

    Where z is the larger one it has no digits of 1 - z, of which the function is one of the other tail.
    """
    none = np.isinf(x) | ((x == 0) & (m > 2))
    x = np.where(none, 1.0, x)
    low = m * x < n
    z, rest = f_place(m, n, np.where(low, x, 1.0)), f_place(n, m, 1 / np.where(low, 1.0, x))
    near = at_once(betainc_by_shapes, m / 2, n / 2, z, i=i, j=1 - i)
    far = at_once(betainc_by_shapes, n / 2, m / 2, rest, i=1 - i, j=i)
    body = np.where(low, f_body(m, n, z), f_body(n, m, rest))
    return np.where(none, 0.0, at_once(faded, body, np.where(low, near, -far) + more / (m + n)))


def f_by_first(m: Any, n: Any, x: Any) -> Any:
    """Return the derivative of the F distribution function by m."""
    return f_by_shapes(m, n, x, 1, n)


def f_by_second(m: Any, n: Any, x: Any) -> Any:
    """Return the derivative of the F distribution function by n."""
    return f_by_shapes(m, n, x, 0, -m)


def f_density_value(m: Any, n: Any, x: Any) -> Any:
    """Evaluate the density of the F distribution."""
    far = np.isinf(x)
    x = np.where(far, 1.0, x)
    z = f_place(m, n, x)
    low = m * x < n
    near = beta_density_at(m / 2, n / 2, np.where(low, z, 0.5)) * m * n / (n + m * np.where(low, x, 0.0)) ** 2
    above = np.where(low, 1.0, x)
    rest = f_body(n, m, 1 / (1 + m * above / n)) * m * n / ((m + n) * above)  # by 1 - z, which z has no digits of
    return np.where(far, 0.0, np.where(low, near, rest))[()]


def f_scores(m: Any, n: Any, x: Any) -> tuple[Any, Any]:
    """Return the derivatives of the logarithm of the density by m and n."""
    log, part = np.log1p(m * x / n), (1 - x) / (n + m * x)
    first = np.log(m * x / n) - log + at_once(polygamma_difference, m / 2, n / 2, order=0) + n * part
    second = -log + at_once(polygamma_difference, n / 2, m / 2, order=0) - m * part
    return first / 2, second / 2


def f_density_slope(out: Any, m: Any, n: Any, x: Any) -> Any:
    """Return the derivative of the density by x: at 0 that of a beta density of z = m x / (n + m x)."""
    end = x == 0
    inner, zero = np.where(end, 1.0, x), np.where(end, x, 0.0)
    score = (m / 2 - 1) / inner - (m + n) * m / (2 * (n + m * inner))
    total = n + m * zero
    z, slope = m * zero / total, m * n / total**2
    steep = at_once(beta_density, m / 2, n / 2, z, i=0, j=0, by_place=1)
    at_zero = steep * slope**2 - beta_density_at(m / 2, n / 2, z) * slope * 2 * m / total
    return np.where(end, at_zero, at_once(faded, np.where(end, 0.0, out), score))


f_density_of: Elementwise = elementwise(
    "f_density",
    f_density_value,
    d=(
        lambda t, out, m, n, x: t * at_once(faded, out, f_scores(m, n, np.where(np.isinf(x), 1.0, x))[0]),
        lambda t, out, m, n, x: t * at_once(faded, out, f_scores(m, n, np.where(np.isinf(x), 1.0, x))[1]),
        lambda t, out, m, n, x: t * f_density_slope(out, m, n, np.where(np.isinf(x), 1.0, x)),
    ),
    singular=True,
    steep=True,
)


def f_density(m: Any, n: Any, x: Any) -> Any:
    """Return the density of the F distribution, at infinity 0 without derivatives."""
    return at_once(f_density_of, m, n, x)


special(
    sp.fdtr,
    lambda t, _out, m, n, x: t * f_by_first(m, n, x),
    lambda t, _out, m, n, x: t * f_by_second(m, n, x),
    lambda t, _out, m, n, x: t * f_density(m, n, x),
    steep=True,
)
special(
    sp.fdtrc,
    lambda t, _out, m, n, x: -t * f_by_first(m, n, x),
    lambda t, _out, m, n, x: -t * f_by_second(m, n, x),
    lambda t, _out, m, n, x: -t * f_density(m, n, x),
    steep=True,
)
special(
    sp.fdtri,
    lambda t, out, m, n, _p: -t * f_by_first(m, n, out) / f_density(m, n, out),
    lambda t, out, m, n, _p: -t * f_by_second(m, n, out) / f_density(m, n, out),
    lambda t, out, m, n, _p: t / f_density(m, n, out),
    steep=True,
)
