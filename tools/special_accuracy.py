"""Compare the derivatives of special functions with mpmath's.

Usage: python -m tools.special_accuracy [--points N] [NAME ...]

Prints for each function and operand the largest error of the first and second derivative at N random points of its
range, tails included: relative to the derivative, or to a thousandth of what it changes by when the operand doubles,
whichever is larger, so that a rounding of the operand counts as a few roundings of the result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special

import wengert as wg
from wengert.scipy import special

__all__ = ["ROWS", "Row", "errors"]

DIGITS = 34
SMALLEST = 1e-20
"""Second derivatives that much smaller than first ones are what differences leave of zero."""
Range = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """A function of some operands.

    Attributes:
        name: its name in `wengert.scipy.special`.
        exact: the same function in mpmath.
        ranges: of each operand the values between which it is drawn; both positive ones are drawn by their logarithm.
        first, second: bounds for the errors of derivatives.
        fixed: leading operands that are not differentiated.
    """

    name: str
    exact: Callable[..., Any]
    ranges: Sequence[Range]
    first: float = 1e-12
    second: float = 1e-11
    fixed: Sequence[Any] = ()

    def function(self, *xs: Any) -> Any:
        """Call the function here."""
        return getattr(special, self.name)(*self.fixed, *xs)

    def drawn(self, generator: np.random.Generator) -> list[float]:
        """Draw a point."""
        return [
            float(np.exp(generator.uniform(np.log(low), np.log(high))) if low > 0 else generator.uniform(low, high))
            for low, high in self.ranges
        ]


def normal_integral(x: Any) -> Any:
    """Return the distribution function of the normal distribution, from the side where it is small."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def inverse(function: Callable[[Any], Any], near: Callable[[Any], float]) -> Callable[[Any], Any]:
    """Return the inverse of a function, found from an approximation."""

    def found(y: Any) -> Any:
        start = near(float(y))
        return mp.findroot(lambda x: function(x) / y - 1, (start, start * (1 + 1e-10)))

    return found


ERROR = [
    Row("erf", mp.erf, [(-6, 6)]),
    Row("erfc", mp.erfc, [(-6, 26)]),
    Row("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), [(-20, 20)]),
    Row("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), [(1, 1e6)]),
    Row("erfi", mp.erfi, [(-20, 20)]),
    Row("erfinv", mp.erfinv, [(-0.99, 0.99)]),
    Row("erfcinv", inverse(mp.erfc, scipy.special.erfcinv), [(1e-150, 1.9)]),
    Row("ndtr", normal_integral, [(-37, 8)]),
    Row("log_ndtr", lambda x: mp.log(normal_integral(x)), [(-1e3, 30)]),
    Row("ndtri", inverse(normal_integral, scipy.special.ndtri), [(1e-150, 0.9)]),
    Row("dawsn", lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2, [(-20, 20)]),
    Row("dawsn", lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2, [(1, 50)]),
]
GAMMA = [
    Row("gamma", mp.gamma, [(-9.9, 30)]),
    Row("gammaln", lambda x: mp.log(abs(mp.gamma(x))), [(1e-10, 1e10)]),
    Row("gammaln", lambda x: mp.log(abs(mp.gamma(x))), [(-20, 0)]),
    Row("loggamma", mp.loggamma, [(1e-3, 1e5)]),
    Row("digamma", mp.digamma, [(1e-5, 1e5)]),
    Row("rgamma", mp.rgamma, [(-20, 50)]),
    Row("polygamma", lambda x: mp.polygamma(2, x), [(1e-2, 1e3)], fixed=(2,)),
    Row("poch", mp.rf, [(1e-3, 1e3), (1e-3, 1e2)]),
    Row("binom", mp.binomial, [(5, 100), (1e-3, 4)]),
    Row("zeta", mp.zeta, [(1.01, 20), (1e-3, 1e3)]),
    Row("zeta", mp.zeta, [(-10, 0.9)]),
    Row("zeta", mp.zeta, [(1.001, 30)]),
]


def gamma_integral(a: Any, x: Any) -> Any:
    """Return the incomplete gamma function, but for a constant from the side where it is small."""
    return mp.gammainc(a, 0, x, regularized=True) if x < a else -mp.gammainc(a, x, regularized=True)


def beta_integral(a: Any, b: Any, x: Any) -> Any:
    """Return the incomplete beta function likewise."""
    lower = x < a / (a + b)
    return mp.betainc(a, b, 0, x, regularized=True) if lower else -mp.betainc(b, a, 0, 1 - x, regularized=True)


def gamma_quantile(a: Any, y: Any) -> Any:
    """Return the inverse of the incomplete gamma function."""
    return inverse(lambda x: mp.gammainc(a, 0, x, regularized=True), lambda y: scipy.special.gammaincinv(float(a), y))(
        y
    )


def beta_quantile(a: Any, b: Any, y: Any) -> Any:
    """Return the inverse of the incomplete beta function."""
    quantile = inverse(
        lambda x: mp.betainc(a, b, 0, x, regularized=True),
        lambda y: scipy.special.betaincinv(float(a), float(b), y),
    )
    return quantile(y)


INCOMPLETE = [
    Row("beta", mp.beta, [(1e-3, 1e2), (1e-3, 1e2)]),
    Row("betaln", lambda a, b: mp.log(mp.beta(a, b)), [(1e-3, 1e5), (1e-3, 1e5)]),
    Row("gammainc", gamma_integral, [(1e-3, 10), (1e-8, 20)]),
    Row("gammainc", gamma_integral, [(10, 1e3), (5, 1e3)]),
    Row("gammaincc", lambda a, x: mp.gammainc(a, x, regularized=True), [(1e-3, 10), (1e-3, 50)]),
    Row("gammaincinv", gamma_quantile, [(0.1, 10), (1e-5, 0.99)]),
    Row("betainc", beta_integral, [(1e-2, 20), (1e-2, 20), (1e-3, 0.99)]),
    Row("betainc", beta_integral, [(1e-4, 1e-2), (1, 20), (1e-12, 1e-3)]),
    Row("betaincc", lambda a, b, x: -beta_integral(a, b, x), [(1, 200), (1, 100), (0.1, 0.9)]),
    Row("betaincinv", beta_quantile, [(0.5, 10), (0.5, 10), (1e-3, 0.9)]),
]


def student(v: Any, x: Any) -> Any:
    """Return Student's distribution function, but for a constant."""
    tail = mp.betainc(v / 2, mp.mpf(1) / 2, 0, v / (v + x * x), regularized=True) / 2
    return tail if x < 0 else -tail


def f_integral(m: Any, n: Any, x: Any) -> Any:
    """Return the F distribution function, but for a constant."""
    return beta_integral(m / 2, n / 2, m * x / (n + m * x))


DISTRIBUTION = [
    Row("chdtr", lambda v, x: gamma_integral(v / 2, x / 2), [(0.5, 40), (0.1, 80)]),
    Row("gdtr", lambda a, b, x: gamma_integral(b, a * x), [(0.1, 4), (0.5, 20), (0.1, 10)]),
    Row("pdtr", lambda m: mp.gammainc(4, m, regularized=True), [(0.1, 30)], fixed=(3.0,)),
    Row("stdtr", student, [(0.5, 100), (-8, 8)], second=1e-9),
    Row("fdtr", f_integral, [(0.5, 40), (0.5, 40), (0.1, 4)], second=1e-9),
]
ELEMENTARY = [
    Row("expit", lambda x: 1 / (1 + mp.exp(-x)), [(-100, 40)]),
    Row("log_expit", lambda x: -mp.log(1 + mp.exp(-x)), [(-40, 100)]),
    Row("logit", lambda x: mp.log(x / (1 - x)), [(1e-300, 0.99)]),
    Row("entr", lambda x: -x * mp.log(x), [(1e-100, 10)]),
    Row("rel_entr", lambda x, y: x * mp.log(x / y), [(1e-3, 10), (1e-3, 10)]),
    Row("kl_div", lambda x, y: x * mp.log(x / y) - x + y, [(0.9, 1.1), (0.9, 1.1)]),
    Row("xlogy", lambda x, y: x * mp.log(y), [(-5, 5), (1e-5, 10)]),
    Row("xlog1py", lambda x, y: x * mp.log(1 + y), [(-5, 5), (1e-10, 10)]),
    Row("pseudo_huber", lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1), [(1e-3, 10), (-10, 10)]),
    Row("exprel", lambda x: mp.expm1(x) / x, [(-50, 50)]),
    Row("exprel", lambda x: mp.expm1(x) / x, [(-4, 4)]),
    Row("boxcox", lambda x, y: (x**y - 1) / y, [(1e-2, 10), (-2, 2)]),
    Row("boxcox", lambda x, y: (x**y - 1) / y, [(1e-2, 10), (1e-9, 0.1)]),
    Row("inv_boxcox", lambda x, y: (1 + x * y) ** (1 / y), [(0.1, 10), (1e-9, 2)]),
    Row("cosm1", lambda x: mp.cos(x) - 1, [(-3, 3)]),
    Row("spence", lambda x: mp.polylog(2, 1 - x), [(1e-3, 0.99)]),
]
BESSEL = [
    *(
        Row(name, lambda x, exact=exact: exact(2.5, x), [(1e-2, 60)], fixed=(2.5,), first=1e-11, second=1e-10)
        for name, exact in (("jv", mp.besselj), ("yv", mp.bessely), ("iv", mp.besseli), ("kv", mp.besselk))
    ),
    *(
        Row(name, lambda x, exact=exact, v=v: exact(v, x), [(1e-2, 60)], first=1e-11, second=1e-10)
        for v, names in enumerate(("j0 y0 i0 k0", "j1 y1 i1 k1"))
        for name, exact in zip(names.split(), (mp.besselj, mp.bessely, mp.besseli, mp.besselk), strict=True)
    ),
    Row("ive", lambda x: mp.besseli(1.5, x) * mp.exp(-x), [(1e-2, 1e6)], fixed=(1.5,)),
    Row("kve", lambda x: mp.besselk(1.5, x) * mp.exp(x), [(1e-2, 1e6)], fixed=(1.5,)),
    *(Row(f"i{v}e", lambda x, v=v: mp.besseli(v, x) * mp.exp(-abs(x)), [(-100, 100)]) for v in (0, 1)),
    *(Row(f"k{v}e", lambda x, v=v: mp.besselk(v, x) * mp.exp(x), [(1e-2, 1e6)]) for v in (0, 1)),
    Row("spherical_jn", lambda x: mp.sqrt(mp.pi / 2 / x) * mp.besselj(2.5, x), [(0.1, 20)], fixed=(2,), second=1e-10),
    Row("spherical_kn", lambda x: mp.sqrt(mp.pi / 2 / x) * mp.besselk(2.5, x), [(0.1, 20)], fixed=(2,)),
    Row("struve", lambda x: mp.struveh(1.5, x), [(0.1, 20)], fixed=(1.5,), first=1e-11, second=1e-9),
]
INTEGRALS = [
    Row("expi", mp.ei, [(-20, 20)]),
    Row("exp1", mp.e1, [(1e-5, 100)]),
    Row("expn", lambda x: mp.expint(3, x), [(1e-5, 100)], fixed=(3,)),
    Row("ellipk", mp.ellipk, [(-10, 0.999)]),
    Row("ellipkm1", lambda p: mp.pi / 2 / mp.agm(1, mp.sqrt(p)), [(1e-100, 3)]),
    Row("ellipe", mp.ellipe, [(-10, 0.999)]),
    Row("ellipkinc", mp.ellipf, [(-6, 6), (-10, 0.999)]),
    Row("ellipeinc", mp.ellipe, [(-6, 6), (-10, 0.999)]),
]
HYPERGEOMETRIC = [
    Row("hyp0f1", lambda z: mp.hyp0f1(1.5, z), [(-5, 20)], fixed=(1.5,)),
    Row("hyp1f1", lambda z: mp.hyp1f1(0.5, 1.5, z), [(-5, 20)], fixed=(0.5, 1.5)),
    Row("hyp2f1", lambda z: mp.hyp2f1(0.5, 1.2, 1.9, z), [(-5, 0.9)], fixed=(0.5, 1.2, 1.9)),
    Row("eval_legendre", lambda x: mp.legendre(5, x), [(-1, 1)], fixed=(5,)),
    Row("eval_chebyt", lambda x: mp.chebyt(5, x), [(-1, 1)], fixed=(5,)),
    Row("eval_jacobi", lambda x: mp.jacobi(4, 0.5, 1.5, x), [(-1, 1)], fixed=(4, 0.5, 1.5)),
    Row("eval_hermite", lambda x: mp.hermite(5, x), [(-4, 4)], fixed=(5,)),
    Row("eval_genlaguerre", lambda x: mp.laguerre(4, 0.5, x), [(-2, 9)], fixed=(4, 0.5)),
]
ROWS = [*ERROR, *GAMMA, *INCOMPLETE, *DISTRIBUTION, *ELEMENTARY, *BESSEL, *INTEGRALS, *HYPERGEOMETRIC]


def derivatives(row: Row, operand: int, point: Sequence[float]) -> Iterator[tuple[float, Any, Any]]:
    """Yield for the first and second derivative what is found, what is right, and what is added to its size."""

    def varied(x: Any) -> Any:
        return row.function(*point[:operand], x, *point[operand + 1 :])

    def exact(s: Any) -> Any:
        return row.exact(*map(mp.mpf, point[:operand]), centre * (1 + s), *map(mp.mpf, point[operand + 1 :]))

    first = wg.grad(varied)
    with mp.workdps(DIGITS):
        centre = mp.mpf(point[operand])
        right = [mp.diff(exact, 0, n) / centre**n for n in (1, 2, 3)]
        yield first(point[operand]), right[0], abs(right[1] * centre) / 1000
        small = abs(right[0] / centre) * SMALLEST
        yield wg.grad(first)(point[operand]), right[1], abs(right[2] * centre) / 1000 + small


def errors(row: Row, points: int, seed: int = 0) -> Iterator[tuple[int, int, float, list[float]]]:
    """Yield operand, order, error and point at random points."""
    generator = np.random.default_rng(seed)
    for _ in range(points):
        point = row.drawn(generator)
        for operand in range(len(row.ranges)):
            for order, (found, right, slack) in enumerate(derivatives(row, operand, point), 1):
                size = abs(right) + slack
                yield operand, order, float(abs(found - right) / size), point


def main(arguments: list[str]) -> int:
    """Print a line for each function, operand and order; return how many exceed their bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    exceeded = 0
    for row in ROWS:
        if options.names and row.name not in options.names:
            continue
        worst: dict[tuple[int, int], tuple[float, list[float]]] = {}
        for operand, order, error, point in errors(row, options.points, options.seed):
            worst[operand, order] = max(worst.get((operand, order), (0.0, point)), (error, point))
        for (operand, order), (error, point) in sorted(worst.items()):
            high = not error <= (row.first if order == 1 else row.second)
            exceeded += high
            print(f"{row.name:20} operand {operand} order {order}: {error:8.1e} at {point}{'  EXCEEDS' * high}")
    return exceeded


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
