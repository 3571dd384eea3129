"""Distribution functions that are incomplete gamma and beta functions of other arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.complaints import silence
from wengert.core.declare import elementwise
from wengert.core.dispatch import at_once
from wengert.core.kinds import Elementwise
from wengert.primitives.special.declaration import special
from wengert.primitives.special.error import normal_density
from wengert.primitives.special.incomplete import (
    beta_body,
    beta_density_at,
    betainc_by_shapes,
    gamma_density_at,
    moved_by_shape,
    shape_slope,
)
from wengert.primitives.trigonometric import faded

# Gamma, chi-square and Poisson distributions

special(
    sp.chdtr,
    lambda t, _out, v, x: t * shape_slope(v / 2, x / 2) / 2,
    lambda t, _out, v, x: t * gamma_density_at(v / 2, x / 2) / 2,
)
special(
    sp.chdtrc,
    lambda t, _out, v, x: -t * shape_slope(v / 2, x / 2) / 2,
    lambda t, _out, v, x: -t * gamma_density_at(v / 2, x / 2) / 2,
)
special(
    sp.chdtri,
    lambda t, out, v, _p: t * moved_by_shape(v / 2, out / 2),
    lambda t, out, v, _p: -t * 2 / gamma_density_at(v / 2, out / 2),
)
special(
    sp.gdtr,
    lambda t, _out, a, b, x: t * x * gamma_density_at(b, a * x),
    lambda t, _out, a, b, x: t * shape_slope(b, a * x),
    lambda t, _out, a, b, x: t * a * gamma_density_at(b, a * x),
)
special(
    sp.gdtrc,
    lambda t, _out, a, b, x: -t * x * gamma_density_at(b, a * x),
    lambda t, _out, a, b, x: -t * shape_slope(b, a * x),
    lambda t, _out, a, b, x: -t * a * gamma_density_at(b, a * x),
)
special(sp.pdtr, None, lambda t, _out, k, m: -t * gamma_density_at(np.floor(k) + 1, m))
special(sp.pdtrc, None, lambda t, _out, k, m: t * gamma_density_at(np.floor(k) + 1, m))


# Student's distribution: I_z(1/2, v/2) with z = x^2 / (v + x^2), or 1 - z where that is the smaller one


def student_density(v: Any, x: Any) -> Any:
    """Return the density of Student's distribution, the normal one for infinite degrees of freedom."""
    normal = np.isinf(v)
    v = np.where(normal, 1.0, v)
    found = at_once(student_body, v, x) / (np.sqrt(v) * sp.beta(0.5, v / 2))
    return np.where(normal, normal_density(x), found)


def student_body_value(v: Any, x: Any) -> Any:
    """Evaluate (1 + x^2 / v)^(-(v + 1) / 2), of the largest x, too."""
    with silence():
        return np.exp(-(v + 1) / 2 * np.log1p(x * x / v))


student_body: Elementwise = elementwise(
    "student_body",
    student_body_value,
    d=(
        lambda t, out, v, x: t * at_once(faded, out, (v + 1) * x * x / (v * (v + x * x)) - np.log1p(x * x / v)) / 2,
        lambda t, out, v, x: t * -(v + 1) * at_once(faded, out, x) / (v + x * x),
    ),
    singular=True,
)


def student_slope(v: Any, x: Any) -> Any:
    """Return the derivative of Student's distribution function by its degrees of freedom: none if they are infinite."""
    normal = np.isinf(v)
    v = np.where(normal, 1.0, v)
    total = v + x * x
    inner = x * x < v
    z, rest = np.where(inner, x * x / total, 0.5), np.where(inner, 0.5, v / total)
    near = beta_body(0.5, v / 2, z) * (at_once(betainc_by_shapes, 0.5, v / 2, z, i=0, j=1) - 1 / (1 + v))
    far = beta_body(v / 2, 0.5, rest) * (at_once(betainc_by_shapes, v / 2, 0.5, rest, i=1, j=0) + 1 / (1 + v))
    return np.where(normal, 0.0, np.sign(x) / 4 * np.where(inner, near, -far))


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


def f_place(m: Any, n: Any, x: Any) -> Any:
    """Return where the incomplete beta function is taken: z = m x / (n + m x), at infinity 1."""
    low = m * x < n
    far = 1 / (1 + n / (m * np.where(low, 1.0, x)))
    return np.where(low, m * x / (n + m * np.where(low, x, 0.0)), far)


def f_body(m: Any, n: Any, z: Any) -> Any:
    """Return z (1 - z) times the beta density of m / 2 and n / 2, over m n / (m + n)."""
    return beta_body(m / 2, n / 2, z) / 2


def f_by_first(m: Any, n: Any, x: Any) -> Any:
    """Return the derivative of the F distribution function by m: where F is 0 or 1 it has none."""
    none = np.isinf(x) | ((x == 0) & (m > 2))
    z = f_place(m, n, np.where(none, 1.0, x))
    return np.where(none, 0.0, f_body(m, n, z) * (at_once(betainc_by_shapes, m / 2, n / 2, z, i=1, j=0) + n / (m + n)))


def f_by_second(m: Any, n: Any, x: Any) -> Any:
    """Return the derivative of the F distribution function by n, likewise."""
    none = np.isinf(x) | ((x == 0) & (m > 2))
    z = f_place(m, n, np.where(none, 1.0, x))
    return np.where(none, 0.0, f_body(m, n, z) * (at_once(betainc_by_shapes, m / 2, n / 2, z, i=0, j=1) - m / (m + n)))


def f_density(m: Any, n: Any, x: Any) -> Any:
    """Return the density of the F distribution, at infinity 0 without derivatives."""
    far = np.isinf(x)
    x = np.where(far, 1.0, x)
    z = f_place(m, n, x)
    low = m * x < n
    near = beta_density_at(m / 2, n / 2, np.where(low, z, 0.5)) * m * n / (n + m * x) ** 2
    return np.where(far, 0.0, np.where(low, near, f_body(m, n, z) * m * n / ((m + n) * x)))


special(
    sp.fdtr,
    lambda t, _out, m, n, x: t * f_by_first(m, n, x),
    lambda t, _out, m, n, x: t * f_by_second(m, n, x),
    lambda t, _out, m, n, x: t * f_density(m, n, x),
)
special(
    sp.fdtrc,
    lambda t, _out, m, n, x: -t * f_by_first(m, n, x),
    lambda t, _out, m, n, x: -t * f_by_second(m, n, x),
    lambda t, _out, m, n, x: -t * f_density(m, n, x),
)
special(
    sp.fdtri,
    lambda t, out, m, n, _p: -t * f_by_first(m, n, out) / f_density(m, n, out),
    lambda t, out, m, n, _p: -t * f_by_second(m, n, out) / f_density(m, n, out),
    lambda t, out, m, n, _p: t / f_density(m, n, out),
)
