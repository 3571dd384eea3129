"""Points where a rule is patched, a branch begins, or a parameter is whole: all derivatives there, in every mode.

A rule that chooses between two formulas at a point, or takes a sign or a maximum there, may have the right value and
the wrong derivative. So derivatives to third order, mixed ones in every order of the operands, are compared with
mpmath's differences, or with limits that were found by hand.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

import wengert as wg
from tests.cases import OPTIONS, together
from tests.test_stats import CONTINUOUS, SHAPES
from tools.special_accuracy import ROWS, Row
from wengert.scipy import special, stats

pytestmark = pytest.mark.filterwarnings("ignore::wengert.errors.DetachedWarning")  # of derivatives that are 0
Function = Callable[..., Any]
Transformation = Callable[[Function, int], Function]


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def reverse(f: Function, i: int) -> Function:
    return wg.grad(f, argnums=i)


def forward(f: Function, i: int) -> Function:
    return lambda *xs: wg.jvp(lambda x: f(*xs[:i], x, *xs[i + 1 :]), (xs[i],), (1.0,))[1]


def traced(f: Function, i: int) -> Function:
    return wg.jit(wg.grad(f, argnums=i))


def as_element(f: Function) -> Function:
    """Return a function of numbers that computes it as one element of two, where masks select and do not decide."""
    return lambda *xs: f(*[np.stack([x, 0.6]) for x in xs])[0]


def ways(combination: Sequence[int]) -> list[tuple[Sequence[int], Sequence[Transformation], bool]]:
    """Return the ways to differentiate by operands: orders of them, and of the modes, of a number or an element."""
    orders = sorted(set(itertools.permutations(combination)))
    modes = list(itertools.product((reverse, forward), repeat=len(combination)))
    modes.append((*[reverse] * (len(combination) - 1), traced))
    return list(itertools.product(orders, modes, (False, True)))


def found(f: Function, at: Sequence[float], way: tuple[Sequence[int], Sequence[Transformation], bool]) -> float:
    """Return a derivative, taken in one way."""
    order, modes, element = way
    f = as_element(f) if element else f
    for i, mode in zip(order, modes, strict=True):
        f = mode(f, i)
    return float(f(*at))


def combinations(count: int, order: int) -> list[tuple[int, ...]]:
    """Return by which operands derivatives up to an order are taken."""
    return [one for n in range(1, order + 1) for one in itertools.combinations_with_replacement(range(count), n)]


def few(cases: Sequence[Any], seed: str, count: int) -> Sequence[Any]:
    """Return some cases, others for each seed; all if pytest is told `--every`."""
    return cases if OPTIONS.every else random.Random(seed).sample(cases, min(count, len(cases)))


def require(name: str, f: Function, at: Sequence[float], combination: Sequence[int], right: float) -> None:
    """Compare all ways to take a derivative, or some of them, with what is right."""
    for way in few(ways(combination), f"{name} {at} {combination}", 2):
        given = found(f, at, way)
        assert np.isclose(given, right, rtol=1e-9, atol=1e-13, equal_nan=True), (name, at, way, given, right)


# Smooth functions


@dataclass(frozen=True)
class Smooth:
    """A function, the same in mpmath, and points between which it is smooth."""

    function: Function
    exact: Function
    points: Sequence[tuple[float, ...]]
    order: int = 3


@functools.cache
def difference(exact: Function, at: tuple[float, ...], orders: tuple[int, ...]) -> float:
    """Return a derivative by mpmath's differences."""
    with mp.workdps(25):
        return float(mp.re(mp.diff(exact, tuple(map(mp.mpf, at)), orders)))


def vonmises(x: Any, kappa: Any) -> Any:
    """Return the distribution function, by the integral of the density."""
    whole = 2 * mp.pi * mp.besseli(0, kappa)
    return 0.5 + mp.quad(lambda s: x * mp.exp(kappa * mp.cos(x * s)), [0, 1]) / whole


def lower_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def student(v: Any, x: Any) -> Any:
    """Return Student's distribution function, as a smooth function of x."""
    scale = mp.gamma((v + 1) / 2) / (mp.sqrt(mp.pi * v) * mp.gamma(v / 2))
    return 0.5 + x * scale * mp.hyp2f1(0.5, (v + 1) / 2, 1.5, -x * x / v)


WHOLE = [(float(n), float(k)) for n in range(4) for k in range(-2, 6)]
SMOOTH = {
    "binom": Smooth(sp.binom, mp.binomial, [*WHOLE, (0.5, 2.0), (2.5, 3.5), (-0.5, 1.0), (10.0, 3.0), (3.0, 12.0)]),
    "beta": Smooth(sp.beta, mp.beta, [(-0.5, 0.5), (0.6, -0.6), (1.2, -3.2), (-1.99999, 2.0), (-0.7, -0.9)]),
    "poch": Smooth(sp.poch, mp.rf, [(1e-3, -1.0), (-30.3, 20.0), (-1.3, 0.2), (0.7, 0.3), (-2.0001, 1.0), (0.4, 2.0)]),
    "legendre of a negative degree": Smooth(lambda x: sp.eval_legendre(-2, x), lambda x: x, [(3.0,), (-1.0,)]),
    "second Chebyshev of a negative degree": Smooth(lambda x: sp.eval_chebyu(-4, x), lambda x: 1 - 4 * x * x, [(0.3,)]),
    "polynomial beyond 1": Smooth(lambda x: sp.hyp2f1(-1.0, 3.0, 0.5, x), lambda x: 1 - 6 * x, [(5.0,), (1.0,)]),
    "log_ndtr": Smooth(sp.log_ndtr, lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), [(0.0,), (-1.0,), (5.0,)]),
    "logistic.logpdf": Smooth(stats.logistic.logpdf, lambda x: -2 * mp.log(2 * mp.cosh(x / 2)), [(0.0,), (1.0,)]),
    "vonmises.cdf": Smooth(stats.vonmises.cdf, vonmises, [(0.0, 1.0), (0.0, 0.5), (0.5, 1.0), (0.0, 2.0)], 2),
    "power": Smooth(lambda x, y: x**y, mp.power, [(1.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.5, -1.0), (1.0, 2.0)]),
    "power of negative numbers": Smooth(lambda x: x**2.0, lambda x: x * x, [(-2.0,), (-1.0,), (0.0,)]),
    "array power of negative numbers": Smooth(lambda x: np.power(x, np.array(3.0)), lambda x: x**3, [(-2.0,), (0.0,)]),
    "powm1": Smooth(sp.powm1, lambda x, y: x**y - 1, [(1.0, 0.0), (2.0, 0.0), (0.5, 1.0), (1.0, 1.0)]),
    "spence": Smooth(sp.spence, lambda x: mp.polylog(2, 1 - x), [(1.0,), (0.5,), (1.5,), (2.0,), (1e-3,)]),
    "struve 0": Smooth(lambda x: sp.struve(0.0, x), lambda x: mp.struveh(0, x), [(0.0,), (1e-5,), (3.0,), (-1.0,)]),
    "modstruve 1": Smooth(lambda x: sp.modstruve(1.0, x), lambda x: mp.struvel(1, x), [(0.0,), (1e-5,), (12.0,)]),
    "gammainc": Smooth(sp.gammainc, lower_gamma, [(1.0, 1.0), (1.0, 0.5), (2.0, 1.0), (1.0, 3.0)]),
    "betainc": Smooth(sp.betainc, lower_beta, [(1.0, 1.0, 0.3), (2.0, 1.0, 0.6), (1.0, 3.0, 0.5)], 2),
    "stdtr": Smooth(sp.stdtr, student, [(1.0, 0.0), (3.0, 0.0), (2.0, 1.0), (3.0, -1.0)]),
    "gammaincinv": Smooth(lambda a, x: sp.gammaincinv(a, sp.gammainc(a, x)), lambda _a, x: x, [(1.0, 0.5), (2.0, 1.5)]),
    "xlogy": Smooth(sp.xlogy, lambda x, y: x * mp.log(y), [(0.0, 1.0), (0.0, 2.0), (1.0, 1.0)]),
}


@together("name", SMOOTH)
def test_derivatives_where_rules_choose_are_those_of_the_smooth_function(name: str) -> None:
    case = SMOOTH[name]
    tasks = [(at, one) for at in case.points for one in combinations(len(at), case.order)]
    for at, one in few(tasks, name, 4):
        orders = tuple(one.count(i) for i in range(len(at)))
        require(name, case.function, at, one, difference(case.exact, at, orders))


# Limits at ends

INF, NAN = np.inf, np.nan


def limits(slopes: str) -> dict[tuple[int, ...], float]:
    """Return derivatives of a function of a shape and a place, by the latter first."""
    return dict(zip([(1,), (0,), (1, 1), (0, 1), (0, 0)], map(float, slopes.split()), strict=True))


def chi_square(a: Any, x: Any) -> Any:
    """Return the incomplete gamma function as the distribution function that it is."""
    return sp.chdtr(2 * a, 2 * x)


LIMITS: dict[str, tuple[Function, tuple[float, ...], dict[tuple[int, ...], float]]] = {
    "power, negative base": (
        lambda x, y: x**y,
        (-2.0, 2.0),
        {(0,): -4, (1,): NAN, (0, 0): 2, (0, 1): NAN, (1, 1): NAN},
    ),
    "power, 0**2": (np.power, (0.0, 2.0), {(0,): 0, (1,): 0, (0, 0): 2, (0, 1): 0, (1, 1): 0, (0, 0, 1): -INF}),
    "power, 0**1": (np.power, (0.0, 1.0), {(0,): 1, (1,): 0, (0, 0): 0, (0, 1): -INF, (1, 1): 0, (0, 0, 1): INF}),
    "power, 0**0.5": (np.power, (0.0, 0.5), {(0,): INF, (1,): 0, (0, 0): -INF, (0, 1): -INF, (1, 1): 0}),
    "power, 0**0": (np.power, (0.0, 0.0), dict.fromkeys([(0,), (1,), (0, 0), (0, 1), (1, 1), (0, 0, 1)], 0.0)),
    "powm1, 0**1 - 1": (sp.powm1, (0.0, 1.0), {(0,): 1, (1,): 0, (0, 0): 0, (0, 1): -INF, (1, 1): 0}),
    "powm1, negative base": (sp.powm1, (-2.0, 2.0), {(0,): -4, (1,): NAN, (0, 0): 2, (0, 1): NAN}),
    "xlogy, 0 log 0": (sp.xlogy, (0.0, 0.0), dict.fromkeys([(0,), (1,), (0, 1), (1, 1), (0, 1, 1)], 0.0)),
    "xlog1py, 0 log -1": (sp.xlog1py, (0.0, -2.0), dict.fromkeys([(0,), (1,), (0, 1), (1, 1), (0, 1, 1)], 0.0)),
    "huber, delta 0": (sp.huber, (0.0, -1.0), {(0,): 1, (1,): 0, (0, 1): -1, (1, 1): 0, (0, 0): -1}),
    "huber, tie": (sp.huber, (1.0, 1.0), {(0,): 0, (1,): 1, (0, 1): 0.5, (1, 1): 0.5, (0, 0): -0.5}),
    **{
        f"{name} at 0, shape {a}": (f, (a, 0.0), limits(slopes))
        for a, slopes in {
            0.5: "inf 0 -inf -inf 0",
            1.0: "1 0 -1 -inf 0",
            1.5: "0 0 inf 0 0",
            2.0: "0 0 1 0 0",
            3.0: "0 0 0 0 0",
        }.items()
        for name, f in (("gammainc", sp.gammainc), ("gdtr", lambda b, x: sp.gdtr(1.0, b, x)), ("chdtr", chi_square))
    },
    "gammainc, third": (sp.gammainc, (2.0, 0.0), {(0, 1, 1): -INF, (0, 0, 1): 0, (1, 1, 1): -2}),
    "gdtr, rate": (sp.gdtr, (2.0, 1.0, 0.0), {(0,): 0, (0, 0): 0, (0, 1): 0, (0, 2): 1, (2, 2): -4, (1, 2): -INF}),
    "betainc at 0": (sp.betainc, (1.0, 3.0, 0.0), {(2,): 3, (0, 2): -INF, (1, 2): 1, (2, 2): -6, (0, 1): 0, (0, 0): 0}),
    "betainc at 1": (sp.betainc, (3.0, 1.0, 1.0), {(2,): 3, (1, 2): -INF, (0, 2): 1, (2, 2): 6, (0, 1): 0, (1, 1): 0}),
    "betainc at 0, steep": (
        sp.betainc,
        (0.5, 2.0, 0.0),
        {(2,): INF, (0, 2): -INF, (1, 2): INF, (2, 2): -INF, (0, 0): 0},
    ),
    "fdtr at 0": (sp.fdtr, (2.0, 4.0, 0.0), {(2,): 1, (0, 2): -INF, (1, 2): 0, (2, 2): -1.5, (0, 0): 0, (0, 1): 0}),
    "fdtr at 0, steep": (sp.fdtr, (1.0, 1.0, 0.0), {(2,): INF, (0, 2): -INF, (1, 2): INF, (2, 2): -INF, (1, 1): 0}),
    "fdtr at 0, flat": (sp.fdtr, (4.0, 2.0, 0.0), {(2,): 0, (0, 2): 0, (1, 2): 0, (2, 2): 8, (0, 0): 0}),
    "rel_entr, 0 log 0": (sp.rel_entr, (0.0, 2.0), {(0,): -INF, (1,): 0, (0, 1): -0.5, (1, 1): 0, (0, 0): INF}),
    "kl_div, 0 log 0": (sp.kl_div, (0.0, 2.0), {(0,): -INF, (1,): 1, (0, 1): -0.5, (1, 1): 0, (0, 0): INF}),
    "beta, both poles": (sp.beta, (1.0, -2.0), {(1,): -0.25, (1, 1): -0.25}),
    "betaln, both poles": (sp.betaln, (-2.0, 1.0), {(0,): 0.5, (0, 0): 0.25}),
    "vonmises, uniform": (
        stats.vonmises.logpdf,
        (1.0, 0.0),
        {(1,): math.cos(1.0), (0, 1): -math.sin(1.0), (1, 1): -0.5},
    ),
    "vonmises.entropy": (stats.vonmises.entropy, (0.0,), {(0,): 0, (0, 0): -0.5}),
    "gammaincinv at 0": (lambda y: special.gammaincinv(0.5, y), (0.0,), {(0,): 0, (0, 0): math.pi / 2, (0, 0, 0): 0}),
    "gammaincinv at 1": (lambda y: special.gammaincinv(2.0, y), (1.0,), {(0,): math.inf, (0, 0): math.inf}),
    "gammainccinv": (lambda y: special.gammainccinv(2.0, y), (1.0,), {(0,): -math.inf, (0, 0): -math.inf}),
    "betaincinv at 0": (lambda y: special.betaincinv(0.5, 0.5, y), (0.0,), {(0,): 0, (0, 0): math.pi**2 / 2}),
    "betaincinv at 1": (lambda y: special.betaincinv(0.5, 3.0, y), (1.0,), {(0,): math.inf, (0, 0): math.inf}),
    "betainccinv": (lambda y: special.betainccinv(0.25, 1.0, y), (1.0,), {(0,): 0, (0, 0): 0, (0, 0, 0, 0): 24.0}),
    **{
        f"{name}, shape {a}": (f, (a, end), {(0,): 0, (0, 0): 0, (0, 1): -sign * INF if a > 1 else 0, (1, 1): twice})
        for a, twice in ((0.3, 0), (2.0, -INF))
        for name, f, end, sign in (
            ("gammaincinv at 0", special.gammaincinv, 0.0, -1),
            ("gammainccinv at 1", special.gammainccinv, 1.0, 1),
            ("chdtri at 1", lambda a, p: special.chdtri(2 * a, p), 1.0, 1),
        )
    },
    "betaincinv, shapes": (
        special.betaincinv,
        (2.0, 3.0, 0.0),
        {(2,): INF, (0, 2): INF, (1, 2): -INF, (2, 2): -INF, (0, 0): 0, (0, 1): 0, (1, 1): 0},
    ),
    "betainccinv, shapes": (
        special.betainccinv,
        (0.5, 3.0, 0.0),
        {(2,): -INF, (0, 2): INF, (1, 2): -INF, (2, 2): INF, (0, 0): 0, (0, 1): 0, (1, 1): 0},
    ),
    "laplace.cdf, centre": (stats.laplace.cdf, (0.0,), {(0,): 0.5, (0, 0): 0}),
    "laplace.logpdf, centre": (stats.laplace.logpdf, (0.0,), {(0,): 0, (0, 0): 0}),
}
"""A function, a point, and its derivatives there by operands; what is not real is NaN (see docs/choices.md)."""


@together("name", LIMITS)
def test_derivatives_at_ends_are_limits_in_every_mode(name: str) -> None:
    f, at, limits = LIMITS[name]
    for combination, right in limits.items():
        require(name, f, at, combination, right)


# Kinds of numbers

KINDS: dict[str, Callable[[float], Any]] = {
    "float": float,
    "NumPy's float": np.float64,
    "0-d": np.array,
    "one element": lambda x: np.array([x]),
    "elements": lambda x: np.array([x, x]),
}


def slopes(f: Function, point: Sequence[float], make: Callable[[float], Any]) -> list[float]:
    """Return the value of a function of numbers of one kind, and its derivatives."""
    given = [make(x) for x in point]
    value, gradient = wg.value_and_grad(lambda *xs: np.sum(f(*xs)), argnums=tuple(range(len(given))))(*given)
    return [float(value) / np.size(given[0]), *[float(np.ravel(ct)[0]) for ct in gradient]]


def require_alike(name: str, f: Function, point: Sequence[float]) -> None:
    """Compare what numbers of each kind give."""
    found = {kind: slopes(f, point, make) for kind, make in KINDS.items()}
    for kind, one in found.items():
        np.testing.assert_allclose(one, found["elements"], rtol=1e-12, err_msg=f"{name} {point} {kind}")


@together("row", [row for row in ROWS if OPTIONS.every or not row.slow])
def test_special_functions_are_the_same_of_numbers_of_every_kind(row: Row) -> None:
    for seed in range(3 if OPTIONS.every else 1):
        require_alike(row.name, row.function, row.drawn(np.random.default_rng(seed)))


@together("name", CONTINUOUS)
def test_distributions_are_the_same_of_numbers_of_every_kind(name: str) -> None:
    distribution = getattr(stats, name)
    for method in few(("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"), name, 3):
        for x in (0.3, 0.8) if OPTIONS.every else (0.8,):
            require_alike(f"{name}.{method}", getattr(distribution, method), (x, *SHAPES.get(name, ()), 0.1, 1.3))


SMALL = [
    (sp.beta, 2, 1.25),
    (sp.boxcox1p, 1, 1.25),
    (sp.chdtr, 1, 1.25),
    (sp.gammainc, 2, 0.7),
    (special.spherical_jn, 2, 1.25),
    (special.spherical_kn, 1, 0.7),
    (sp.jv, 2, 0.7),
    (sp.eval_legendre, 3, 0.7),
    (sp.eval_chebyu, 4, 0.3),
]


@together("f, n, x", SMALL)
def test_whole_numbers_of_few_bits_do_not_shorten_floats(f: Function, n: int, x: float) -> None:
    right = wg.grad(lambda x: f(n, x))(x)
    for dtype in (
        ("u1", "i1", "u2", "i2", "i4", "u8", "?") if n == 1 and f is sp.chdtr else ("u1", "i1", "u2", "i2", "u8")
    ):
        for number in (np.array(n, dtype), np.array([n], dtype), np.dtype(dtype).type(n)):

            def along(x: Any, number: Any = number) -> Any:
                return np.sum(f(number, x))

            for found in (wg.grad(along)(x), wg.jvp(along, (x,), (1.0,))[1]):
                np.testing.assert_allclose(found, right, rtol=1e-14, err_msg=dtype)
