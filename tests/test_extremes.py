"""First and second derivatives of elementwise functions at extreme arguments, in every mode, against 60 digits.

Tiny, subnormal and huge arguments, those next to a singular point, and the singular points themselves, where the
derivative is the limit; and complex arguments on both sides of branch cuts, where it goes with NumPy's value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import wengert as wg
from tests.cases import OPTIONS, together
from wengert.nn import functional
from wengert.scipy import special, stats

Function = Callable[[Any], Any]
MOST_ULPS = 8


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"), mpmath.workdps(60):
        yield


def root(x: Any) -> Any:
    return mpmath.sqrt(x)


def cross_entropy_of_two(x: Any) -> Any:
    """Return the losses of a logit and of 0, where the first is right."""
    logits = np.stack([x, x * 0], -1).reshape(-1, 2)
    return functional.cross_entropy(logits, np.zeros(len(logits), int), "none").reshape(x.shape)


HALVES = (lambda x: 1 / (2 * root(x)), lambda x: -1 / (4 * root(x) ** 3))
EXACT: dict[str, tuple[Function, Function, Function]] = {
    "sin": (np.sin, mpmath.cos, lambda x: -mpmath.sin(x)),
    "tan": (np.tan, lambda x: 1 + mpmath.tan(x) ** 2, lambda x: 2 * mpmath.tan(x) * (1 + mpmath.tan(x) ** 2)),
    "arcsin": (np.arcsin, lambda x: 1 / root(1 - x * x), lambda x: x / root(1 - x * x) ** 3),
    "arccos": (np.arccos, lambda x: -1 / root(1 - x * x), lambda x: -x / root(1 - x * x) ** 3),
    "arctan": (np.arctan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "sinh": (np.sinh, mpmath.cosh, mpmath.sinh),
    "cosh": (np.cosh, mpmath.sinh, mpmath.cosh),
    "arcsinh": (np.arcsinh, lambda x: 1 / root(1 + x * x), lambda x: -x / root(1 + x * x) ** 3),
    "arccosh": (np.arccosh, lambda x: 1 / root(x * x - 1), lambda x: -x / root(x * x - 1) ** 3),
    "arctanh": (np.arctanh, lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2),
    "exp": (np.exp, mpmath.exp, mpmath.exp),
    "expm1": (np.expm1, mpmath.exp, mpmath.exp),
    "exp2": (np.exp2, lambda x: 2**x * mpmath.ln2, lambda x: 2**x * mpmath.ln2**2),
    "2**x": (lambda x: 2.0**x, lambda x: 2**x * mpmath.ln2, lambda x: 2**x * mpmath.ln2**2),
    "log": (np.log, lambda x: 1 / x, lambda x: -1 / x**2),
    "log2": (np.log2, lambda x: 1 / x / mpmath.ln2, lambda x: -1 / x**2 / mpmath.ln2),
    "log10": (np.log10, lambda x: 1 / x / mpmath.ln10, lambda x: -1 / x**2 / mpmath.ln10),
    "log1p": (np.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2),
    "sqrt": (np.sqrt, *HALVES),
    "x**0.5": (lambda x: x**0.5, *HALVES),
    "x**3": (lambda x: x**3, lambda x: 3 * x * x, lambda x: 6 * x),
    "x**-1": (lambda x: x**-1, lambda x: -1 / x**2, lambda x: 2 / x**3),
    "tanh": (np.tanh, lambda x: steepness(x), lambda x: -2 * mpmath.tanh(x) * steepness(x)),
    "sigmoid": (functional.sigmoid, lambda x: bend(x), lambda x: -bend(x) * mpmath.tanh(x / 2)),
    "silu": (
        functional.silu,
        lambda x: share(x) + x * bend(x),
        lambda x: bend(x) * (2 - x * mpmath.tanh(x / 2)),
    ),
    "softplus": (functional.softplus, lambda x: share(x), lambda x: bend(x)),
    "logsigmoid": (functional.logsigmoid, lambda x: share(-x), lambda x: -bend(x)),
    "softsign": (
        functional.softsign,
        lambda x: 1 / (1 + abs(x)) ** 2,
        lambda x: -2 * mpmath.sign(x) / (1 + abs(x)) ** 3,
    ),
    "elu": (functional.elu, lambda x: mpmath.exp(min(x, 0)), lambda x: 0 if x > 0 else mpmath.exp(x)),
    "mish": (
        functional.mish,
        lambda x: mpmath.tanh(mp_softplus(x)) + x * steepness(mp_softplus(x)) * share(x),
        lambda x: (
            2 * steepness(mp_softplus(x)) * share(x)
            + x * steepness(mp_softplus(x)) * (bend(x) - 2 * mpmath.tanh(mp_softplus(x)) * share(x) ** 2)
        ),
    ),
    "gelu": (
        functional.gelu,
        lambda x: mpmath.ncdf(x) + x * mpmath.npdf(x) if x > -100 else mpmath.mpf(0),
        lambda x: mpmath.npdf(x) * (2 - x * x) if abs(x) < 100 else mpmath.mpf(0),
    ),
    "gelu by tanh": (
        lambda x: functional.gelu(x, "tanh"),
        lambda x: share(cubic(x)) + x * bend(cubic(x)) * cubic(x, 1),
        lambda x: (
            2 * bend(cubic(x)) * cubic(x, 1)
            + x * bend(cubic(x)) * (cubic(x, 2) - mpmath.tanh(cubic(x) / 2) * cubic(x, 1) ** 2)
        ),
    ),
    "softplus of beta 2": (lambda x: functional.softplus(x, 2.0), lambda x: share(2 * x), lambda x: 2 * bend(2 * x)),
    "selu": (
        functional.selu,
        lambda x: SELU[0] * (1 if x > 0 else SELU[1] * mpmath.exp(x)),
        lambda x: 0 if x > 0 else SELU[0] * SELU[1] * mpmath.exp(x),
    ),
    "glu": (
        lambda x: functional.glu(np.stack([x * 0 + 3, x]), 0).reshape(x.shape),
        lambda x: 3 * bend(x),
        lambda x: -3 * bend(x) * mpmath.tanh(x / 2),
    ),
    "bce with logits": (
        lambda x: functional.binary_cross_entropy_with_logits(x, x * 0 + 1, "none"),
        lambda x: -share(-x),
        lambda x: bend(x),
    ),
    "bce of class 0 with logits": (
        lambda x: functional.binary_cross_entropy_with_logits(x, x * 0, "none"),
        lambda x: share(x),
        lambda x: bend(x),
    ),
    "bce": (
        lambda x: functional.binary_cross_entropy(x, np.ones(x.shape), "none"),
        lambda x: -1 / x,
        lambda x: 1 / x**2,
    ),
    "huber_loss": (
        lambda x: functional.huber_loss(x, x * 0, "none"),
        lambda x: max(-1, min(1, x)) * mpmath.mpf(1),
        lambda x: mpmath.mpf(abs(x) < 1) if abs(x) != 1 else None,
    ),
    "cross_entropy": (cross_entropy_of_two, lambda x: -share(-x), lambda x: bend(x)),
    "cbrt": (
        np.cbrt,
        lambda x: 1 / (3 * mpmath.cbrt(abs(x)) ** 2),
        lambda x: -2 / (9 * mpmath.cbrt(abs(x)) ** 5) * mpmath.sign(x),
    ),
    "x**2.5": (lambda x: x**2.5, lambda x: 2.5 * mpmath.sqrt(x) ** 3, lambda x: 3.75 * root(x)),
    "power of 3": (
        lambda x: np.float_power(3.0, x),
        lambda x: mpmath.mpf(3) ** x * mpmath.log(3),
        lambda x: mpmath.mpf(3) ** x * mpmath.log(3) ** 2,
    ),
    "reciprocal": (np.reciprocal, lambda x: -1 / x**2, lambda x: 2 / x**3),
    "square": (np.square, lambda x: 2 * x, lambda _: mpmath.mpf(2)),
    "cos": (np.cos, lambda x: -mpmath.sin(x), lambda x: -mpmath.cos(x)),
    "deg2rad": (np.deg2rad, lambda _: mpmath.pi / 180, lambda _: mpmath.mpf(0)),
    "hypot": (lambda x: np.hypot(x, 1e-8), lambda x: x / root(x * x + S**2), lambda x: S**2 / root(x * x + S**2) ** 3),
    "hypot of a tiny one": (lambda x: np.hypot(5e-324, x), lambda x: x / root(x * x + T**2), lambda _: None),
    "arctan2": (lambda x: np.arctan2(x, 1.0), lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "arctan2 below": (lambda x: np.arctan2(1.0, x), lambda x: -1 / (1 + x * x), lambda x: 2 * x / (1 + x * x) ** 2),
    "arctan2 of a tiny one": (lambda x: np.arctan2(x, 5e-324), lambda x: T / (T * T + x * x), lambda _: None),
    "logaddexp": (lambda x: np.logaddexp(x, 0.0), lambda x: share(x), lambda x: share(x) * share(-x)),
    "logaddexp2": (
        lambda x: np.logaddexp2(0.0, x),
        lambda x: share(x * mpmath.ln2),
        lambda x: mpmath.ln2 * share(x * mpmath.ln2) * share(-x * mpmath.ln2),
    ),
}
SELU = mpmath.mpf(1.0507009873554805), mpmath.mpf(1.6732632423543772)
FEWER_DIGITS = {
    "tanh": 2e3,
    "sigmoid": 2e3,
    "glu": 2e3,
    "softplus": 2e3,
    "softplus of beta 2": 2e3,
    "logsigmoid": 2e3,
    "bce with logits": 2e3,
    "bce of class 0 with logits": 2e3,
    "cross_entropy": 2e3,
    "silu": 2e3,
    "mish": 2e3,
    "gelu": 4e3,
    "gelu by tanh": 4e3,
}
"""Units of the last place where a difference from 1 is taken, or the exponential of a large number."""
S, T = mpmath.mpf(1e-8), mpmath.mpf(5e-324)


def share(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)) for x that may be too large for exp."""
    return mpmath.mpf(x > 0) if abs(x) > 1e5 else 1 / (1 + mpmath.exp(-x))


def bend(x: Any) -> Any:
    """Return the derivative of the logistic function."""
    return share(x) * share(-x)


def steepness(x: Any) -> Any:
    """Return the derivative of tanh."""
    return mpmath.mpf(0) if abs(x) > 1e5 else 1 / mpmath.cosh(x) ** 2


def mp_softplus(x: Any) -> Any:
    """Return log(1 + exp(x))."""
    return max(x, 0) + mpmath.log1p(mpmath.exp(-abs(x)))


def cubic(x: Any, order: int = 0) -> Any:
    """Return twice the argument of tanh in the approximation of gelu, or a derivative."""
    a, b = mpmath.sqrt(8 / mpmath.pi), mpmath.mpf(0.044715)
    return a * (x + b * x**3, 1 + 3 * b * x * x, 6 * b * x)[order]


SMALL = [5e-324, 1e-310, 2.3e-308, 1e-200, 1e-100, 1e-20, 1e-8, 1e-3]
MIDDLE = [0.3, 0.5, 1 - 2**-53, 1 - 2**-30, 1.0, 1 + 2**-52, 1.5, 3.7, 20.0, 40.0, 300.0, 700.0, 712.0]
LARGE = [1e8, 1e20, 1e100, 1.2e154, 1.4e154, 1e160, 1e200, 1e300, 1e308, 1.7e308]
POINTS = [0.0, -0.0, *(sign * x for x in [*SMALL, *MIDDLE, *LARGE] for sign in (1, -1))]


def pulled(f: Function) -> Function:
    return wg.elementwise_grad(f)


def pushed(f: Function) -> Function:
    return lambda x: wg.jvp(f, (x,), (np.ones(x.shape),))[1]


FIRST: dict[str, Callable[[Function], Function]] = {
    "vjp": pulled,
    "jvp": pushed,
    "jit of vjp": lambda f: wg.jit(pulled(f)),
    "vjp of jit": lambda f: pulled(wg.jit(f)),
    "jit of jvp": lambda f: wg.jit(pushed(f)),
    "vmap of grad": lambda f: wg.vmap(wg.grad(f)),
    "taylor": lambda f: lambda x: wg.taylor(f, (x,), (np.ones(x.shape),), 1)[1],
}
SECOND: dict[str, Callable[[Function], Function]] = {
    "vjp of vjp": lambda f: pulled(pulled(f)),
    "jvp of vjp": lambda f: pushed(pulled(f)),
    "vjp of jvp": lambda f: pulled(pushed(f)),
    "jvp of jvp": lambda f: pushed(pushed(f)),
    "jit of vjp of vjp": lambda f: wg.jit(pulled(pulled(f))),
    "vjp of vjp of jit": lambda f: pulled(pulled(wg.jit(f))),
    "vmap of hessian": lambda f: wg.vmap(wg.hessian(f)),
    "taylor": lambda f: lambda x: 2 * wg.taylor(f, (x,), (np.ones(x.shape),), 2)[2],
}


OFTEN = ("vjp", "jit of jvp", "vjp of vjp", "jvp of vjp", "vjp of jvp", "jit of vjp of vjp")
"""Modes of second order of which the others are made, and two of first order."""


def rounded(exact: Function, x: float) -> float:
    """Return a derivative of 60 digits as a float; NaN where there is none to compare with."""
    try:
        found = exact(mpmath.mpf(x))
    except (ZeroDivisionError, ValueError):
        return np.nan
    return float(found) if isinstance(found, mpmath.mpf) else np.nan


def ulps(found: Any, wanted: Any) -> Any:
    """Return the difference in units of the last place."""
    return np.where(found == wanted, 0.0, np.abs(found - wanted) / np.spacing(np.abs(wanted)))


@pytest.mark.long
@together("order, modes", [(1, FIRST), (2, SECOND)])
@together("name", EXACT)
def test_derivatives_are_right_to_a_few_units_of_the_last_place(name: str, order: int, modes: Any) -> None:
    f = EXACT[name][0]
    points = np.array([x for x in POINTS if np.isfinite(f(np.float64(x)))])
    wanted = np.array([rounded(EXACT[name][order], x) for x in points])
    known = ~np.isnan(wanted)
    for mode, transformation in modes.items():
        if (name, mode) == ("x**2.5", "taylor"):
            continue  # a coefficient comes from the one before, which is too small for a number
        found = transformation(f)(points)
        wrong = known & ~(ulps(found, wanted) <= FEWER_DIGITS.get(name, MOST_ULPS))
        report = list(zip(points[wrong], found[wrong], wanted[wrong], strict=True))
        assert not report, f"{mode}: {report}"


NOT_IN_SINGLE = {"hypot of a tiny one", "arctan2 of a tiny one"}
"""Functions with a number in them that single precision has not."""
BOUNDS = {np.float64: 3e-11, np.float32: 2e-5}
"""Errors relative to what is right and what a rounding of the argument changes, but for those of subnormal factors."""


def at_random(dtype: Any, count: int, seed: int) -> Any:
    """Draw so many numbers, thrice: of ordinary size, over the range of exponentials, and of every size."""
    rng = np.random.default_rng(seed)
    far, wide = (700, 300) if dtype == np.float64 else (87, 37)
    sizes = 10.0 ** rng.uniform(-wide, wide, count) * rng.choice([-1.0, 1.0], count)
    return np.concatenate([rng.normal(size=count) * 4, rng.uniform(-far, far, count), sizes]).astype(dtype)


@together("dtype", BOUNDS)
@together("name", EXACT)
def test_derivatives_are_right_at_random_points_in_both_precisions(name: str, dtype: Any) -> None:
    if dtype == np.float32 and name in NOT_IN_SINGLE:
        return
    f, *exact = EXACT[name]
    points = at_random(dtype, 100 if OPTIONS.every else 2, len(name))
    points = points[np.isfinite(f(points))]
    wanted = [np.array([rounded(derivative, float(x)) for x in points]) for derivative in exact]
    changes = np.abs(points * wanted[1].astype(float)), np.abs(wanted[0])
    limits = np.finfo(dtype)
    for want, change, modes in zip(wanted, changes, (FIRST, SECOND), strict=True):
        scale = np.abs(want) + np.nan_to_num(change) + limits.smallest_normal * 1e6 / BOUNDS[dtype] * limits.eps
        known = np.isfinite(want) & (np.abs(want) < limits.max)
        chosen = modes if OPTIONS.every else {way: modes[way] for way in OFTEN if way in modes}
        for way, transformation in chosen.items():
            if way != "taylor":
                found = transformation(f)(points).astype(float)
                off = known & ~(np.abs(found - want) <= BOUNDS[dtype] * scale)
                assert not off.any(), (way, list(zip(points[off], found[off], want[off], strict=True)))


LIMITS = [
    (np.arcsin, 1.0, np.inf, np.inf),
    (np.arcsin, -1.0, np.inf, -np.inf),
    (np.arccos, 1.0, -np.inf, -np.inf),
    (np.arccos, -1.0, -np.inf, np.inf),
    (np.arccosh, 1.0, np.inf, -np.inf),
    (np.arctanh, 1.0, np.inf, np.inf),
    (np.sqrt, 0.0, np.inf, -np.inf),
    (np.arctan, 1e308, 0.0, 0.0),
    (np.arctan, -1.7e308, 0.0, 0.0),
]


@pytest.mark.parametrize(("f", "x", "first", "second"), LIMITS)
def test_derivatives_at_singular_points_are_the_limits_in_every_mode(
    f: Any, x: float, first: float, second: float
) -> None:
    point = np.array([x])
    assert {mode: make(f)(point)[0] for mode, make in FIRST.items()} == dict.fromkeys(FIRST, first)
    assert {mode: make(f)(point)[0] for mode, make in SECOND.items()} == dict.fromkeys(SECOND, second)


@pytest.mark.parametrize("make", [wg.hessian, lambda f: wg.jacfwd(wg.jacfwd(f)), lambda f: wg.jacrev(wg.jacrev(f))])
@pytest.mark.parametrize("f", [np.arcsin, np.arccos, np.arctanh])
def test_other_elements_do_not_see_a_singular_point(f: Any, make: Any) -> None:
    found = make(lambda x: np.sum(f(x)))(np.array([1.0, 0.5]))
    assert np.isinf(found[0, 0])
    assert found[0, 1] == found[1, 0] == 0.0


# Branch cuts

CUT: dict[str, Function] = {
    name: getattr(np, name) for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "sqrt", "log")
} | {"z**0.5": lambda z: z**0.5, "z**1.5": lambda z: z**1.5, "z**(0.3+0.2j)": lambda z: z ** (0.3 + 0.2j)}
ZEROS = (0.0, -0.0)
ON_AXES = [
    *(complex(a, zero) for a, zero in itertools.product((-3.0, -2.0, -0.5, 0.5, 2.0, 3.0), ZEROS)),
    *(complex(zero, b) for b, zero in itertools.product((-3.0, -2.0, -0.5, 0.5, 2.0, 3.0), ZEROS)),
    complex(1.3, 0.4),
]


def along_axis(z: complex, step: float) -> Any:
    """Return a number a step further along its axis, on the same side of it."""
    return np.array(complex(z.real, z.imag + step) if z.real == 0 else complex(z.real + step, z.imag))


def difference(f: Function, z: complex, h: float = 1e-3) -> Any:
    """Return the derivative of f along the axis that z is on, by central differences of fourth order."""
    near = f(along_axis(z, h)) - f(along_axis(z, -h))
    far = f(along_axis(z, 2 * h)) - f(along_axis(z, -2 * h))
    return (8 * near - far) / (12 * h)


@pytest.mark.parametrize("name", CUT)
def test_complex_derivatives_are_on_numpys_side_of_branch_cuts(name: str) -> None:
    f = CUT[name]

    def slope(z: Any) -> Any:
        return wg.grad(f, holomorphic=True)(z)

    jitted = wg.jit(slope)
    for z in ON_AXES:
        point, direction = np.array(z), np.array(1j if z.real == 0 else 1.0 + 0j)
        first = difference(f, z)
        np.testing.assert_allclose(slope(point) * direction, first, rtol=1e-7, atol=1e-7, err_msg=str(z))
        np.testing.assert_allclose(wg.jvp(f, (point,), (direction,))[1], first, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(jitted(point) * direction, first, rtol=1e-7, atol=1e-7)
        second = difference(slope, z)
        np.testing.assert_allclose(wg.jvp(slope, (point,), (direction,))[1], second, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(wg.grad(slope, holomorphic=True)(point) * direction, second, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("f", [np.arctan, np.arcsinh, lambda x: np.logaddexp(x, 0.3), np.tanh])
def test_a_derivative_does_not_depend_on_other_elements(f):
    points = np.array([300.0, 0.123, 1.1, 2.7, 1e200, -1e200, np.inf])
    gradient = wg.grad(f)
    np.testing.assert_array_equal(wg.vmap(gradient)(points), [gradient(x) for x in points])


INF, HUGE = [np.inf, -np.inf], [1e308, -1e308]
FADING: dict[str, tuple[Function, list[float], float, float]] = {
    "arctan": (np.arctan, INF + HUGE, 0.0, 0.0),
    "arcsinh": (np.arcsinh, INF, 0.0, 0.0),
    "arccosh": (np.arccosh, [np.inf], 0.0, 0.0),
    "erf": (special.erf, INF + HUGE, 0.0, 0.0),
    "erfc": (special.erfc, INF + HUGE, 0.0, 0.0),
    "ndtr": (special.ndtr, INF + HUGE, 0.0, 0.0),
    "log_ndtr": (special.log_ndtr, [np.inf, 1e308], 0.0, 0.0),
    "stdtr": (lambda x: special.stdtr(3.0, x), INF + HUGE, 0.0, 0.0),
    "gammainc": (lambda x: special.gammainc(0.5, x), [np.inf, 1e308], 0.0, 0.0),
    "gammaincc": (lambda x: special.gammaincc(2.0, x), [np.inf, 1e308], 0.0, 0.0),
    "chdtr": (lambda x: special.chdtr(3.0, x), [np.inf, 1e308], 0.0, 0.0),
    "gammainc of 1 at 0": (lambda x: special.gammainc(1.0, x), [0.0, 1e-200, 5e-324], 1.0, -1.0),
    "gammainc of 2 at 0": (lambda x: special.gammainc(2.0, x), [0.0, 1e-200, 5e-324], 0.0, 1.0),
    "gammainc of 3 at 0": (lambda x: special.gammainc(3.0, x), [0.0, 1e-200], 0.0, 0.0),
    "gammainc of 1.5 at 0": (lambda x: special.gammainc(1.5, x), [0.0], 0.0, np.inf),
    "gammainc of 0.5 at 0": (lambda x: special.gammainc(0.5, x), [0.0], np.inf, -np.inf),
    "chdtr of 4 at 0": (lambda x: special.chdtr(4.0, x), [0.0], 0.0, 0.25),
    "betainc of 2, 3 at 0": (lambda x: special.betainc(2.0, 3.0, x), [0.0], 0.0, 12.0),
    "betainc of 2, 3 at 1": (lambda x: special.betainc(2.0, 3.0, x), [1.0], 0.0, 0.0),
    "betainc of 3, 2 at 1": (lambda x: special.betainc(3.0, 2.0, x), [1.0], 0.0, -12.0),
    "betainc of 1, 3 at 0": (lambda x: special.betainc(1.0, 3.0, x), [0.0], 3.0, -6.0),
    "betainc of 3, 1 at 1": (lambda x: special.betainc(3.0, 1.0, x), [1.0], 3.0, 6.0),
    "betainc of 1, 3 at 1": (lambda x: special.betainc(1.0, 3.0, x), [1.0], 0.0, 0.0),
    "betainc of 1, 1": (lambda x: special.betainc(1.0, 1.0, x), [0.0, 0.5, 1.0], 1.0, 0.0),
    "fdtr at 0": (lambda x: special.fdtr(4.0, 2.0, x), [0.0], 0.0, 8.0),
}
"""Functions, points at the ends of their ranges, and both derivatives there: limits, by hand."""


@together("order", [1, 2])
@together("name", FADING)
def test_derivatives_at_the_ends_are_limits(name: str, order: int) -> None:
    f, points, *wanted = FADING[name]
    x = np.array(points)
    modes = {1: FIRST, 2: SECOND}[order]
    for mode, transformation in modes.items():
        if mode == "taylor" and not np.isfinite([*points, *wanted]).all():
            continue  # coefficients of lower order are infinite, or the point is
        found = transformation(f)(x)
        np.testing.assert_allclose(found, wanted[order - 1], rtol=1e-13, atol=1e-150, err_msg=mode)


INF = np.inf
LIMITS: dict[str, tuple[Function, dict[float, tuple[float, float | None]]]] = {
    "owens_t, by a": (lambda x: scipy.special.owens_t(0.5, x), {INF: (0.0, 0.0), -INF: (0.0, 0.0)}),
    "owens_t at 0, by a": (lambda x: scipy.special.owens_t(0.0, x), {INF: (0.0, None)}),
    "fdtr": (lambda x: scipy.special.fdtr(2.0, 3.0, x), {INF: (0.0, 0.0)}),
    "fdtrc": (lambda x: scipy.special.fdtrc(4.0, 3.0, x), {INF: (0.0, 0.0)}),
    "fdtr at infinity": (lambda x: scipy.special.fdtr(x, 3.0, INF), {2.0: (0.0, None)}),
    "rgamma": (scipy.special.rgamma, {INF: (0.0, 0.0)}),
    "erfcx": (scipy.special.erfcx, {INF: (0.0, 0.0)}),
    "expi": (scipy.special.expi, {INF: (INF, INF), -INF: (0.0, 0.0), 0.0: (INF, -INF)}),
    "expn": (lambda x: scipy.special.expn(2, x), {0.0: (-INF, INF)}),
    "ellipk": (scipy.special.ellipk, {-INF: (0.0, 0.0), 1.0: (INF, INF)}),
    "ellipe": (scipy.special.ellipe, {-INF: (0.0, 0.0), 1.0: (-INF, -INF)}),
    "pseudo_huber": (lambda x: scipy.special.pseudo_huber(1.0, x), {INF: (1.0, 0.0), -INF: (-1.0, 0.0)}),
    "pseudo_huber, by delta": (lambda x: scipy.special.pseudo_huber(x, 2.0), {0.0: (2.0, -2.0), INF: (0.0, None)}),
    "norm.pdf": (stats.norm.pdf, {INF: (0.0, 0.0), -INF: (0.0, 0.0), 1e200: (0.0, 0.0)}),
    "norm.pdf at infinity": (lambda x: stats.norm.pdf(INF, x, 1 + x * x), {1.0: (0.0, 0.0)}),
    "norm.logpdf": (stats.norm.logpdf, {INF: (-INF, -1.0)}),
    "t.pdf": (lambda x: stats.t.pdf(x, 3.0), {INF: (0.0, 0.0), -INF: (0.0, 0.0)}),
    "t.logpdf": (lambda x: stats.t.logpdf(x, 3.0), {INF: (0.0, 0.0), 1e200: (-4e-200, 0.0)}),
    "cauchy.pdf": (stats.cauchy.pdf, {INF: (0.0, 0.0), -INF: (0.0, 0.0), 1e200: (0.0, 0.0)}),
    "cauchy.logpdf": (stats.cauchy.logpdf, {INF: (0.0, 0.0), -1e200: (2e-200, 0.0), 1e120: (-2e-120, 2e-240)}),
    "cauchy.logcdf": (stats.cauchy.logcdf, {-1e120: (1e-120, 1e-240), -1e200: (1e-200, 0.0)}),
    "halfcauchy.logsf": (stats.halfcauchy.logsf, {1e120: (-1e-120, 1e-240), INF: (0.0, 0.0)}),
    "lognorm.pdf": (lambda x: stats.lognorm.pdf(x, 1.0), {INF: (0.0, 0.0)}),
    "gumbel_r.pdf": (stats.gumbel_r.pdf, {-800.0: (0.0, 0.0), INF: (0.0, 0.0)}),
    "gumbel_l.pdf": (stats.gumbel_l.pdf, {800.0: (0.0, 0.0), -INF: (0.0, 0.0)}),
    "gumbel_r.cdf": (stats.gumbel_r.cdf, {-800.0: (0.0, 0.0)}),
    "gumbel_l.sf": (stats.gumbel_l.sf, {800.0: (0.0, 0.0)}),
    "k0e": (scipy.special.k0e, {0.0: (-INF, INF)}),
    "k1e": (scipy.special.k1e, {0.0: (-INF, INF)}),
    "y0": (scipy.special.y0, {0.0: (INF, -INF)}),
    "y1": (scipy.special.y1, {0.0: (INF, -INF)}),
    "digamma": (scipy.special.digamma, {INF: (0.0, 0.0)}),
}
"""At the ends of ranges, and where densities underflow: the limits of the first and second derivative; None: NaN."""


@together("name", LIMITS)
def test_limits_of_special_functions_and_densities(name: str) -> None:
    f, points = LIMITS[name]
    for x, (first, second) in points.items():
        given = np.array([x, 0.6])
        found = {mode: transformed(f)(given)[0] for mode, transformed in FIRST.items() if mode != "taylor"}
        assert found == dict.fromkeys(found, first), (x, found)
        if second is not None:
            found = {mode: transformed(f)(given) for mode, transformed in SECOND.items() if mode in OFTEN}
            found = {mode: np.ravel(value)[0] for mode, value in found.items()}
            assert found == dict.fromkeys(found, second), (x, found)


ENDS_OF_TWO: dict[str, tuple[Callable[..., Any], tuple[float, ...], list[float], list[list[float]]]] = {
    "owens_t, h": (special.owens_t, (np.inf, 1.0), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    "owens_t, a": (special.owens_t, (0.0, np.inf), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    "owens_t, both": (special.owens_t, (np.inf, -np.inf), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    "owens_t, neither": (special.owens_t, (np.inf, 0.0), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    "fdtr": (special.fdtr, (4.0, 5.0, np.inf), [0.0] * 3, [[0.0] * 3] * 3),
    "fdtrc": (special.fdtrc, (4.0, 5.0, np.inf), [0.0] * 3, [[0.0] * 3] * 3),
    "fdtr, 0": (special.fdtr, (4.0, 5.0, 0.0), [0.0] * 3, [[0.0] * 3, [0.0] * 3, [0.0, 0.0, 5.6]]),
    "pseudo_huber": (special.pseudo_huber, (1e-300, 1.0), [1.0, 1e-300], [[-2.0, 1.0], [1.0, 0.0]]),
    "pseudo_huber, large": (special.pseudo_huber, (1.0, 1e300), [1e300, 1.0], [[-2.0, 1.0], [1.0, 0.0]]),
    "pseudo_huber, delta": (special.pseudo_huber, (np.inf, 1.0), [0.0, 1.0], [[0.0, 0.0], [0.0, 1.0]]),
    "gammainc, 0": (special.gammainc, (2.0, 0.0), [0.0, 0.0], [[0.0, 0.0], [0.0, 1.0]]),
    "gammaincc": (special.gammaincc, (2.0, np.inf), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    "betainc, 0": (special.betainc, (2.0, 3.0, 0.0), [0.0] * 3, [[0.0] * 3, [0.0] * 3, [0.0, 0.0, 12.0]]),
    "betainc, 1": (special.betainc, (2.0, 3.0, 1.0), [0.0] * 3, [[0.0] * 3] * 3),
    "sine integral": (lambda x: special.sici(x)[0], (np.inf,), [0.0], [[0.0]]),
    "cosine integral": (lambda x: special.sici(x)[1], (np.inf,), [0.0], [[0.0]]),
    "cosine integral, 0": (lambda x: special.sici(x)[1], (0.0,), [np.inf], [[-np.inf]]),
    "hyperbolic integrals": (lambda x: special.shichi(x)[0], (np.inf,), [np.inf], [[np.inf]]),
    "hyperbolic integrals, large": (lambda x: special.shichi(x)[1], (-720.0,), [-np.inf], [[np.inf]]),
    "hyperbolic integrals, 0": (lambda x: special.shichi(x)[1], (0.0,), [np.inf], [[-np.inf]]),
}
"""Functions where limits meet: a point, the first derivatives there, and the second ones."""


@together("case", ENDS_OF_TWO)
def test_second_derivatives_at_ends_are_the_same_limits_in_every_mode(case: str) -> None:
    f, point, first, second = ENDS_OF_TWO[case]

    def reverse(f: Any, i: int) -> Any:
        return wg.grad(f, argnums=i)

    def forward(f: Any, i: int) -> Any:
        return lambda *xs: wg.jvp(lambda x: f(*xs[:i], x, *xs[i + 1 :]), (xs[i],), (1.0,))[1]

    with np.errstate(all="ignore"):
        for i in range(len(point)):
            for once in (reverse, forward):
                np.testing.assert_allclose(once(f, i)(*point), first[i], rtol=1e-13, atol=1e-15)
                for j in range(len(point)):
                    for again in (reverse, forward):
                        found = again(once(f, i), j)(*point)
                        np.testing.assert_allclose(found, second[i][j], rtol=1e-13, atol=1e-15, err_msg=f"{i} {j}")


@pytest.mark.parametrize("f", [np.sinc, special.log_ndtr, special.expi, lambda x: x**3.5])
def test_rules_in_half_precision_have_the_room_of_single_precision(f: Any) -> None:
    """Over all its numbers, but those where the value is infinite."""
    halves = np.arange(65_536, dtype=np.uint16).view(np.float16)[::17]
    halves = halves[np.isfinite(halves) & (abs(halves) < 20_000)]
    for slope in (wg.elementwise_grad(f), wg.elementwise_grad(wg.elementwise_grad(f))):
        with np.errstate(all="ignore"):
            found, right = slope(halves), slope(halves.astype(float))
        assert found.dtype == np.float16
        room = ~(abs(right) > 30_000)
        np.testing.assert_allclose(found[room].astype(float), right[room], rtol=0.03, atol=1e-3)


FAR: list[tuple[Function, float, float, float]] = [
    (lambda x: special.wofz(x).imag, 1e180, 0.0, 0.0),
    (special.zeta, 1e20, 0.0, 0.0),
    (special.i1, 5e-324, 0.5, 0.0),
    (special.i0, 1e-310, 5e-311, 0.5),
    (lambda x: special.zeta(x, 1.5), 1e100, 0.0, 0.0),
    (lambda x: special.fdtr(4.0, 2.0, x), 1e60, 1e-120, -2e-180),
    (lambda x: special.inv_boxcox1p(x, 1e-6), -90.0, np.exp(-90 * (1 - 1e-6) - 90**2 / 2e6), np.nan),
]
"""Functions where their values have no digits of their derivatives, which are these."""


@together("f, x, first, second", FAR)
def test_derivatives_have_digits_where_values_have_none(f: Function, x: float, first: float, second: float) -> None:
    assert wg.grad(f)(x) == pytest.approx(first, rel=1e-6, abs=0)
    if np.isfinite(second):
        assert wg.grad(wg.grad(f))(x) == pytest.approx(second, rel=1e-6, abs=0)


@together("v, x", [(1e6, 2.6), (1e12, -1.0)])
def test_students_distribution_by_many_degrees_of_freedom(v: float, x: float) -> None:
    """By v that is the integral of the density times the derivative of its logarithm."""
    mpmath.mp.dps = 40  # which the fixture puts back
    many = mpmath.mpf(v)
    constant = mpmath.loggamma((many + 1) / 2) - mpmath.loggamma(many / 2) - mpmath.log(many * mpmath.pi) / 2

    def moved(t: Any) -> Any:
        power = mpmath.log1p(t * t / many)
        score = mpmath.digamma((many + 1) / 2) - mpmath.digamma(many / 2) - 1 / many
        score += (many + 1) * t * t / (many * (many + t * t)) - power
        return mpmath.exp(constant - (many + 1) / 2 * power) * score / 2

    right = mpmath.quad(moved, [0, x], maxdegree=5)
    assert wg.grad(special.stdtr)(v, x) == pytest.approx(float(right), rel=1e-9)
