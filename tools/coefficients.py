"""Compute the polynomials of the native functions: run `python -m tools.coefficients` after a change here.

`--special` computes those of SciPy's functions instead, which primitives give as their `scalar`.

Each polynomial is the one of the least greatest weighted error, found by exchange (E. Ya. Remez, 1934) on a grid of
Chebyshev points, with as many terms as its goal needs: 2**-goal of the function that is computed from it.
"""

from __future__ import annotations

import functools
import json
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

SOURCE = Path(__file__).resolve().parent.parent / "src" / "wengert"
WRITTEN = SOURCE / "kernel" / "functions" / "coefficients.json"
WRITTEN_SPECIAL = SOURCE / "primitives" / "polynomial_coefficients.json"
GRID = 320
DOUBLE, SINGLE, MIXED = "float64", "float32", "mixed"
Number = Any  # a number of mpmath


@dataclass(frozen=True)
class Fit:
    """A polynomial to find.

    Attributes:
        name: of the coefficients.
        says: what the polynomial is.
        function: what it approximates.
        weight: what an error of it is multiplied by in the result that is computed with it.
        interval: where.
        goals: the error of each dtype, as bits; "mixed" is double precision for results of single.
    """

    name: str
    says: str
    function: Callable[[Number], Number]
    weight: Callable[[Number], Number]
    interval: tuple[Number, Number]
    goals: dict[str, float]


def half_atanh_tail(z: Number) -> Number:
    """Return (2 atanh(s) - 2 s) / s**3, z = s**2."""
    return mpmath.nsum(lambda k: 2 * z**k / (2 * k + 3), [0, mpmath.inf]) if z < mpf("1e-6") else log_tail(z)


def log_tail(z: Number) -> Number:
    """Return the same away from zero."""
    s = mpmath.sqrt(z)
    return (2 * mpmath.atanh(s) - 2 * s) / s**3


def odd_tail(function: Callable[[Number], Number]) -> Callable[[Number], Number]:
    """Return (f(x) - x) / x**3 of z = x**2."""

    def tail(z: Number) -> Number:
        x = mpmath.sqrt(z)
        return (function(x) - x) / x**3

    return tail


def cosine_tail(z: Number) -> Number:
    """Return (cos(x) - 1 + z / 2) / z**2, z = x**2."""
    return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2


def erf_tail(z: Number) -> Number:
    """Return erf(x) / x - 1, z = x**2."""
    x = mpmath.sqrt(z)
    return mpmath.erf(x) / x - 1


MIDDLE, NORMAL_MIDDLE = 4, 2.875
"""The middles of the variables of erfc and of normal numbers: the points that are mapped to 0."""


def erfc_scaled(t: Number) -> Number:
    """Return (1 + 2 x) exp(x**2) erfc(x), t = (x - 4) / (x + 4)."""
    x = MIDDLE * (1 + t) / (1 - t)
    return (1 + 2 * x) * mpmath.exp(x * x) * mpmath.erfc(x)


def lgamma_quotient(t: Number) -> Number:
    """Return lgamma(x) / ((x - 1) (x - 2)), x = t + 1.5."""
    x = t + mpf("1.5")
    return mpmath.loggamma(x) / ((x - 1) * (x - 2))


def stirling(z: Number) -> Number:
    """Return what Stirling's formula leaves of lgamma(x), times x, z = 1 / x**2."""
    x = 1 / mpmath.sqrt(z)
    return x * (mpmath.loggamma(x) - ((x - mpf(1) / 2) * mpmath.log(x) - x + mpmath.log(2 * mpmath.pi) / 2))


@functools.cache
def digamma_root() -> Number:
    """Return where digamma(x) is zero."""
    return mpmath.findroot(mpmath.digamma, mpf("1.4616"))


def digamma_slope(x: Number) -> Number:
    """Return digamma(x) / (x - root) of x - 3/2."""
    return mpmath.digamma(x + mpf(3) / 2) / (x + mpf(3) / 2 - digamma_root())


def digamma_tail(z: Number) -> Number:
    """Return (log(x) - 1 / (2 x) - digamma(x)) x**2, z = 1 / x**2."""
    x = 1 / mpmath.sqrt(z)
    return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) * x * x


LOG2 = mpmath.log(2) / 2 * mpf("1.0005")
QUARTER = (mpmath.pi / 4 * mpf("1.0005")) ** 2
FITS = (
    Fit(
        "EXPM1",
        "(expm1(r) - r) / r**2, |r| <= log(2) / 2",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: r**2 / abs(mpmath.expm1(r)),
        (-LOG2, LOG2),
        {DOUBLE: 55.5, SINGLE: 25.9, MIXED: 30},
    ),
    Fit(
        "LOG",
        "(2 atanh(s) - 2 s) / s**3 of s**2, |s| <= 1/5",
        half_atanh_tail,
        lambda z: z / 2,
        (mpf("1e-9"), mpf("0.04001")),
        {DOUBLE: 55.5, SINGLE: 25.9, MIXED: 38},
    ),
    Fit(
        "LOG_LONG",
        "(2 atanh(s) - 2 s - 2 s**3 / 3) / s**5 of s**2, |s| <= 1/5",
        lambda z: (half_atanh_tail(z) - mpf(2) / 3) / z,
        lambda z: z**2 / 2,
        (mpf("1e-6"), mpf("0.04001")),
        {DOUBLE: 68},
    ),
    Fit(
        "SIN",
        "(sin(r) - r) / r**3 of r**2, |r| <= pi / 4",
        odd_tail(mpmath.sin),
        lambda z: z,
        (mpf("1e-9"), QUARTER),
        {DOUBLE: 55.5, SINGLE: 25.9, MIXED: 30},
    ),
    Fit(
        "COS",
        "(cos(r) - 1 + r**2 / 2) / r**4 of r**2, |r| <= pi / 4",
        cosine_tail,
        lambda z: z**2,
        (mpf("1e-9"), QUARTER),
        {DOUBLE: 55.5, SINGLE: 25.9, MIXED: 30},
    ),
    Fit(
        "ATAN",
        "(atan(q) - q) / q**3 of q**2, |q| <= 1",
        odd_tail(mpmath.atan),
        lambda z: z,
        (mpf("1e-9"), mpf(1)),
        {DOUBLE: 55.5, SINGLE: 25.9},
    ),
    Fit(
        "ASIN",
        "(asin(x) - x) / x**3 of x**2, |x| <= 1/2",
        odd_tail(mpmath.asin),
        lambda z: z,
        (mpf("1e-9"), mpf("0.2501")),
        {DOUBLE: 55.5, SINGLE: 25.9},
    ),
    Fit(
        "ERF",
        "erf(x) / x - 1 of x**2, |x| <= 1",
        erf_tail,
        lambda z: mpf(1),
        (mpf("1e-9"), mpf("1.0001")),
        {DOUBLE: 55.5, SINGLE: 25.9, MIXED: 30},
    ),
    Fit(
        "ERF_LOG",
        "-log(erfc(1 + t))",
        lambda t: -mpmath.log(mpmath.erfc(1 + t)),
        lambda t: mpmath.erfc(1 + t),
        (mpf(0), mpf(5)),
        {DOUBLE: 55.5, SINGLE: 25.9},
    ),
    Fit(
        "ERFC",
        "(1 + 2 x) exp(x**2) erfc(x) of (x - 4) / (x + 4), x >= 0.8",
        erfc_scaled,
        lambda t: mpf(1),
        (-mpf("0.667"), mpf("0.747")),
        {DOUBLE: 56, MIXED: 30},
    ),
    Fit(
        "CBRT",
        "x**(-1/3) of x - 9/8, 3/4 <= x <= 3/2",
        lambda t: (t + mpf(9) / 8) ** (-mpf(1) / 3),
        lambda t: mpf(1),
        (-mpf("0.375"), mpf("0.375")),
        {DOUBLE: 14, SINGLE: 14},
    ),
    Fit(
        "LGAMMA",
        "lgamma(x) / ((x - 1) (x - 2)) of x - 3/2, 0.93 <= x < 2.13",
        lgamma_quotient,
        lambda t: mpf(2),
        (-mpf("0.57"), mpf("0.63")),
        {DOUBLE: 56, MIXED: 32},
    ),
    Fit(
        "STIRLING",
        "what Stirling's formula leaves of lgamma(x), times x, of 1 / x**2, x >= 8",
        stirling,
        lambda z: mpmath.sqrt(z) / 8,
        (mpf("1e-7"), mpf("0.0157")),
        {DOUBLE: 57, MIXED: 32},
    ),
    Fit(
        "DIGAMMA",
        "digamma(x) / (x - root) of x - 3/2, 1 <= x <= 2",
        digamma_slope,
        lambda x: mpf(1),
        (-mpf("0.5001"), mpf("0.5001")),
        {DOUBLE: 56, MIXED: 32},
    ),
    Fit(
        "DIGAMMA_TAIL",
        "(log(x) - 1 / (2 x) - digamma(x)) x**2 of 1 / x**2, x >= 6",
        digamma_tail,
        lambda z: z,
        (mpf("1e-7"), mpf("0.0278")),
        {DOUBLE: 57, MIXED: 32},
    ),
)
"""The polynomials of opcodes."""


# Of SciPy's functions, whose expressions are in double precision


def far_from(x: Number, t: Number) -> Number:
    """Return the number that t = (y - x) / (y + x) is of."""
    return x * (1 + t) / (1 - t)


def erfcx_slope(t: Number) -> Number:
    """Return -(1 + x)**2 times the derivative of exp(x**2) erfc(x), t = (x - 4) / (x + 4)."""
    x = far_from(mpf(MIDDLE), t)
    with mpmath.workdps(70):
        return (1 + x) ** 2 * (2 / mpmath.sqrt(mpmath.pi) - 2 * x * mpmath.exp(x * x) * mpmath.erfc(x))


def normal_tail(p: Number) -> Number:
    """Return how many standard deviations the tail of probability p is away, p < 1/2, by Newton's method."""
    log = mpmath.log(p)
    near = -mpmath.log(4 * mpmath.pi * -log) - 2 * log
    x = mpmath.sqrt(near) if near > 1 else mpf(1)
    for _ in range(12):
        tail = mpmath.erfc(x / mpmath.sqrt(2)) / 2
        x += (mpmath.log(tail) - log) * tail * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(x * x / 2)
    return x


def quantile_near(z: Number) -> Number:
    """Return the quantile of the normal distribution for 1/2 + q, over q, z = q**2."""
    q = mpmath.sqrt(z)
    return normal_tail(mpf(1) / 2 - q) / q


def quantile_far(t: Number) -> Number:
    """Return that of the tail exp(-r**2), over r, t = (r - 4) / (r + 4)."""
    r = far_from(mpf(MIDDLE), t)
    return normal_tail(mpmath.exp(-r * r)) / r


def normal_far(t: Number) -> Number:
    """Return the same less r, t = (r - 2.875) / (r + 2.875)."""
    r = far_from(mpf(NORMAL_MIDDLE), t)
    return normal_tail(mpmath.exp(-r * r)) - r


def even_bessel_i(v: int) -> Callable[[Number], Number]:
    """Return I_v(x) / x**v of x**2."""
    return lambda z: mpmath.besseli(v, mpmath.sqrt(z)) / mpmath.sqrt(z) ** v


def far_bessel_i(v: int) -> Callable[[Number], Number]:
    """Return sqrt(x) exp(-x) I_v(x) of 8 / x."""
    return lambda s: mpmath.besseli(v, 8 / s) * mpmath.exp(-8 / s) * mpmath.sqrt(8 / s)


def near_bessel_k(v: int) -> Callable[[Number], Number]:
    """Return what log(x / 2) I_v(x), subtracted for K0 and added for K1, leaves of K_v(x), times x**v, of x**2."""

    def rest(z: Number) -> Number:
        x = mpmath.sqrt(z)
        return x**v * (mpmath.besselk(v, x) + (-1) ** v * mpmath.log(x / 2) * mpmath.besseli(v, x))

    return rest


def far_bessel_k(v: int) -> Callable[[Number], Number]:
    """Return sqrt(x) exp(x) K_v(x) of 4 / x - 1."""

    def scaled(t: Number) -> Number:
        x = 4 / (1 + t)
        return mpmath.besselk(v, x) * mpmath.exp(x) * mpmath.sqrt(x)

    return scaled


@functools.cache
def square_of_zero(v: int, k: int) -> Number:
    """Return the square of a zero of J_v."""
    return mpmath.besseljzero(v, k) ** 2


def without_zeros(v: int) -> Callable[[Number], Number]:
    """Return J_v(x) / x**v of x**2, divided by what it is zero at twice."""

    def rest(z: Number) -> Number:
        zeros = (z - square_of_zero(v, 1)) * (z - square_of_zero(v, 2))
        return mpmath.besselj(v, mpmath.sqrt(z)) / mpmath.sqrt(z) ** v / zeros

    return rest


def near_bessel_y(v: int) -> Callable[[Number], Number]:
    """Return what 2 / pi (log(x) J_v(x) - v / x) leaves of Y_v(x), over x**v, of x**2."""

    def rest(z: Number) -> Number:
        x = mpmath.sqrt(z)
        known = 2 / mpmath.pi * (mpmath.log(x) * mpmath.besselj(v, x) - v / x)
        return (mpmath.bessely(v, x) - known) / x**v

    return rest


def far_bessel(v: int, sine: bool) -> Callable[[Number], Number]:
    """Return P, or x Q with the sine, of 25 / x**2.

    J_v(x) = sqrt(2 / (pi x)) (P cos(c) - Q sin(c)), c = x - (2 v + 1) pi / 4.
    """

    def part(s: Number) -> Number:
        x = 5 / mpmath.sqrt(s)
        angle = x - (2 * v + 1) * mpmath.pi / 4
        one, other = mpmath.besselj(v, x), mpmath.bessely(v, x)
        cos, sin = mpmath.cos(angle), mpmath.sin(angle)
        found = x * (other * cos - one * sin) if sine else one * cos + other * sin
        return found * mpmath.sqrt(mpmath.pi * x / 2)

    return part


def gamma_stirling(s: Number) -> Number:
    """Return gamma(x) / (sqrt(2 pi) x**(x - 1/2) exp(-x)) of 1 / x."""
    x = 1 / s
    return mpmath.gamma(x) * mpmath.exp(x) / x ** (x - mpf(1) / 2) / mpmath.sqrt(2 * mpmath.pi)


def relative(name: str, says: str, function: Callable[[Number], Number], low: float | str, high: float | str) -> Fit:
    """Return the fit of a function between two numbers by the error relative to it."""
    return Fit(name, says, function, lambda x: 1 / abs(function(x)), (mpf(low), mpf(high)), {DOUBLE: 55.5})


NEAR_ZERO = "1e-12"
SPECIAL_FITS = (
    relative("ERFCX", "(1 + 2 x) erfcx(x) of (x - 4) / (x + 4), x >= 0", erfc_scaled, -1, "0.99999"),
    relative("ERFCX_SLOPE", "-(1 + x)**2 erfcx'(x) of (x - 4) / (x + 4), x >= 0", erfcx_slope, -1, "0.999"),
    relative(
        "QUANTILE", "the normal quantile of 1/2 + q, over q, of q**2, |q| <= 0.35", quantile_near, NEAR_ZERO, "0.1226"
    ),
    relative("QUANTILE_FAR", "that of exp(-r**2), over r, of (r - 4) / (r + 4)", quantile_far, "-0.4880", "0.7452"),
    Fit(
        "NORMAL_FAR",
        "that of exp(-r**2) less r, of (r - 2.875) / (r + 2.875), 0.15 >= exp(-r**2) >= 2**-53",
        normal_far,
        lambda t: 1 / (normal_far(t) + far_from(mpf(NORMAL_MIDDLE), t)),
        (mpf("-0.3523"), mpf("0.3566")),
        {DOUBLE: 55.5},
    ),
    relative("I0", "I0(x) of x**2, x <= 8", even_bessel_i(0), NEAR_ZERO, 64),
    relative("I0_FAR", "sqrt(x) exp(-x) I0(x) of 8 / x", far_bessel_i(0), "1e-4", 1),
    relative("I1", "I1(x) / x of x**2, x <= 8", even_bessel_i(1), NEAR_ZERO, 64),
    relative("I1_FAR", "sqrt(x) exp(-x) I1(x) of 8 / x", far_bessel_i(1), "1e-4", 1),
    relative("K0", "K0(x) + log(x / 2) I0(x) of x**2, x <= 2", near_bessel_k(0), NEAR_ZERO, 4),
    relative("K0_FAR", "sqrt(x) exp(x) K0(x) of 4 / x - 1", far_bessel_k(0), "-0.9999", 1),
    relative("K1", "x (K1(x) - log(x / 2) I1(x)) of x**2, x <= 2", near_bessel_k(1), NEAR_ZERO, 4),
    relative("K1_FAR", "sqrt(x) exp(x) K1(x) of 4 / x - 1", far_bessel_k(1), "-0.9999", 1),
    relative("J0", "J0(x) without its zeros of x**2, x <= 5", without_zeros(0), NEAR_ZERO, 25),
    relative("J1", "J1(x) / x without its zeros of x**2, x <= 5", without_zeros(1), NEAR_ZERO, 25),
    relative("P0", "the factor of the cosine in J0(x) of 25 / x**2", far_bessel(0, False), "1e-6", 1),
    relative("Q0", "x times that of the sine", far_bessel(0, True), "1e-6", 1),
    relative("P1", "the factor of the cosine in J1(x) of 25 / x**2", far_bessel(1, False), "1e-6", 1),
    relative("Q1", "x times that of the sine", far_bessel(1, True), "1e-6", 1),
    Fit(
        "Y0",
        "Y0(x) - 2 / pi log(x) J0(x) of x**2, x <= 5",
        near_bessel_y(0),
        lambda z: mpf(1),
        (mpf(NEAR_ZERO), mpf(25)),
        {DOUBLE: 55.5},
    ),
    Fit(
        "Y1",
        "(Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x of x**2, x <= 5",
        near_bessel_y(1),
        mpmath.sqrt,
        (mpf(NEAR_ZERO), mpf(25)),
        {DOUBLE: 55.5},
    ),
    relative("GAMMA", "gamma(x) of x - 5/2, 2 <= x <= 3", lambda t: mpmath.gamma(t + mpf(5) / 2), "-0.5", "0.5"),
    relative(
        "GAMMA_FAR", "what Stirling's formula leaves of gamma(x), of 1 / x, x >= 12", gamma_stirling, "1e-3", "0.0834"
    ),
)
"""The polynomials of SciPy's functions."""


def polynomial(coefficients: Sequence[Number], x: Number) -> Number:
    """Return the value of a polynomial, lowest power first."""
    return functools.reduce(lambda value, coefficient: value * x + coefficient, reversed(coefficients))


def exchanged(
    values: Sequence[Number], weights: Sequence[Number], points: Sequence[Number], terms: int
) -> tuple[list[Number], Number]:
    """Return the coefficients of the best polynomial on a grid, and its greatest weighted error."""
    chosen = [round(i * (len(points) - 1) / terms) for i in range(terms + 1)]
    found: list[Number] = []
    worst = mpf(0)
    for _ in range(12):
        matrix = mpmath.matrix(terms + 1, terms + 1)
        for row, place in enumerate(chosen):
            for k in range(terms):
                matrix[row, k] = points[place] ** k
            matrix[row, terms] = (-1) ** row / weights[place]
        solution = mpmath.lu_solve(matrix, mpmath.matrix([values[place] for place in chosen]))
        found = list(solution)[:terms]
        errors = [w * (v - polynomial(found, p)) for p, v, w in zip(points, values, weights, strict=True)]
        worst = max(map(abs, errors))
        if worst < abs(solution[terms]) * mpf("1.02"):
            break
        chosen = alternating(errors, terms + 1)
    return found, worst


def alternating(errors: Sequence[Number], count: int) -> list[int]:
    """Return the places of the greatest errors of alternating sign."""
    runs: list[int] = []
    for place, error in enumerate(errors):
        if runs and (error > 0) == (errors[runs[-1]] > 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = place
        else:
            runs.append(place)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def solved(fit: Fit, dtype: str) -> list[Number]:
    """Return the coefficients of a fit, as few as its goal allows."""
    low, high = fit.interval
    points = [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * i / (GRID - 1)) for i in range(GRID)]
    points = [p if p else mpf("1e-12") for p in points]
    values, weights = [fit.function(p) for p in points], [fit.weight(p) for p in points]
    goal = mpf(2) ** -fit.goals[dtype]
    for terms in range(3, 36):
        found, worst = exchanged(values, weights, points, terms)
        print(f"{fit.name} {dtype}: {terms} terms, 2**{float(mpmath.log(worst, 2)):.1f}", file=sys.stderr)
        if worst < goal:
            return found
    raise ValueError(f"{fit.name}: no polynomial of 35 terms is good enough")


PARTS: dict[str, tuple[Callable[[], Number], dict[str, tuple[int, ...]]]] = {
    "LN2": (
        lambda: mpmath.log(2),
        {"float64": (53, 53), "float32": (24, 24), "float64 short": (42, 53), "float32 short": (15, 24)},
    ),
    "LOG10_2": (lambda: mpmath.log10(2), {"float64": (42, 53), "float32": (15, 24)}),
    "LOG2_E": (lambda: 1 / mpmath.log(2), {"float64": (53, 53), "float32": (24, 24)}),
    "LOG10_E": (lambda: 1 / mpmath.log(10), {"float64": (53, 53), "float32": (24, 24)}),
    "HALF_PI": (
        lambda: mpmath.pi / 2,
        {"float64": (53, 28, 53), "float32": (24, 14, 24), "float64 short": (33, 33, 53)},
    ),
    "QUARTER_TURN": (lambda: mpmath.pi / 2, {"float64": (53, 53), "float32": (24, 24)}),
    "TWO_THIRDS": (lambda: mpf(2) / 3, {"float64": (53, 53)}),
    "DIGAMMA_ROOT": (digamma_root, {"float64": (53, 53)}),
}
"""Constants as sums of numbers of so many bits, each cut off; "short" ones have exact products with small integers."""


def parts(value: Number, bits: tuple[int, ...]) -> list[Number]:
    """Return numbers of so many bits each whose sum is a value."""
    found = []
    for count in bits:
        unit = mpf(2) ** (mpmath.floor(mpmath.log(value, 2)) + 1 - count)
        found.append(mpmath.floor(value / unit) * unit)
        value -= found[-1]
    return found


def tables_of_powers() -> list[tuple[str, str, list[float]]]:
    """Return the tables by which powers are computed number by number (see `kernel/functions/powers.py`).

    An inverse has so few digits that its product with a number of its interval, less 1, is exact in double precision.
    """
    inverses: list[float] = []
    for i in range(POWER_PARTS):
        low = [POWER_LEAST + k / (2 * POWER_PARTS) for k in (i, i + 1)]
        first, last = low if low[0] < 1 else [2 * x - 1 for x in low]
        parts = POWER_PARTS if last <= 1 else 2 * POWER_PARTS
        inverses.append(1.0 if 1 in (first, last) else round(parts * 2 / (first + last)) / parts)
        assert all(abs(x * inverses[-1] - 1) <= 1 / POWER_PARTS for x in (first, last))
    with mpmath.workprec(200):
        logarithms = [-mpmath.log(x) for x in inverses]
        high = [float(mpmath.nint(x * 2**42) / 2**42) for x in logarithms]
        powers = [mpmath.power(2, mpf(j) / POWER_PARTS) for j in range(POWER_PARTS)]
        return [
            ("inverses", "1 / x for parts of the numbers from 11/16 to 11/8", inverses),
            ("logarithms", "log(x) for these, to 42 bits after the point", high),
            ("logarithms_rest", "what they lack", [float(x - y) for x, y in zip(logarithms, high, strict=True)]),
            ("roots", "2**(j / 128)", list(map(float, powers))),
            ("roots_rest", "what they lack, as a part of them", [float(x / float(x) - 1) for x in powers]),
        ]


POWER_PARTS, POWER_LEAST = 128, 11 / 16
"""How many entries tables of powers have, and the least number that they are for."""


def two_over_pi() -> list[int]:
    """Return 48 bits of 2 / pi from each 24th on, after two times 24 zeros; an index of six bits and 8 are the last."""
    with mpmath.workprec(2000):
        whole = int(mpmath.floor(2 / mpmath.pi * mpf(2) ** 1800))
    return [whole >> (1800 + 24 * (2 - k) - 48) & (2**48 - 1) for k in range(72)]


def hexadecimal(number: Number, dtype: str) -> str:
    """Return the nearest number of a dtype."""
    return float(np.dtype(dtype).type(str(number)) if dtype == SINGLE else number).hex()


def data() -> str:
    """Return the text of the coefficients of opcodes: tables by name, and what they are, under "says"."""
    says = {fit.name: fit.says for fit in FITS} | {"two_over_pi": "48 bits from each 24th on, from two zeros on"}
    tables: dict[str, dict[str, list[Any]]] = {}
    for fit in FITS:
        tables[fit.name] = {dtype: [hexadecimal(c, dtype) for c in solved(fit, dtype)] for dtype in fit.goals}
    for name, (value, widths) in PARTS.items():
        tables[name] = {key: [float(part).hex() for part in parts(value(), bits)] for key, bits in widths.items()}
    tables["TABLES"] = {"two_over_pi": two_over_pi()}
    for name, text, entries in tables_of_powers():
        tables["TABLES"][name], says[name] = entries, text
    return data_text({"says": says, **tables})


def data_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return tables in JSON, the numbers of each in lines of 120 characters."""
    written = []
    for name, rows in tables.items():
        lines = []
        for key, value in rows.items():
            items = textwrap.wrap(json.dumps(value), 116, initial_indent="      ", subsequent_indent="      ")
            lines.append(f"    {json.dumps(key)}:\n" + "\n".join(items))
        written.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(written) + "\n}\n"


def special_data() -> str:
    """Return the text of the coefficients of SciPy's functions, as numbers that Python reads exactly."""
    says = {fit.name: fit.says for fit in SPECIAL_FITS}
    found = {fit.name: [float(c) for c in solved(fit, DOUBLE)] for fit in SPECIAL_FITS}
    return data_text({"says": says, "polynomials": found})


if __name__ == "__main__":
    mpmath.mp.dps = 50
    if sys.argv[1:] == ["--special"]:
        WRITTEN_SPECIAL.write_text(special_data())
    else:
        WRITTEN.write_text(data())
