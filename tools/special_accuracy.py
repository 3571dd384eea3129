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

DIGITS = 50
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
    return lambda y: mp.findroot(lambda x: function(x) / y - 1, near(float(y)))


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
    Row("zeta", lambda q: mp.zeta(2.5, q), [(1e-3, 1e5)], fixed=(2.5,)),
]
ROWS = [*ERROR, *GAMMA]


def derivatives(row: Row, operand: int, point: Sequence[float]) -> Iterator[tuple[float, Any, Any]]:
    """Yield for the first and second derivative what is found, what is right, and the derivative of that."""

    def varied(x: Any) -> Any:
        return row.function(*point[:operand], x, *point[operand + 1 :])

    def exact(s: Any) -> Any:
        return row.exact(*map(mp.mpf, point[:operand]), centre * (1 + s), *map(mp.mpf, point[operand + 1 :]))

    first = wg.grad(varied)
    with mp.workdps(DIGITS):
        centre = mp.mpf(point[operand])
        right = [mp.diff(exact, 0, n) / centre**n for n in (1, 2, 3)]
        yield first(point[operand]), right[0], right[1]
        yield wg.grad(first)(point[operand]), right[1], right[2]


def errors(row: Row, points: int, seed: int = 0) -> Iterator[tuple[int, int, float, list[float]]]:
    """Yield operand, order, error and point at random points."""
    generator = np.random.default_rng(seed)
    for _ in range(points):
        point = row.drawn(generator)
        for operand in range(len(row.ranges)):
            for order, (found, right, change) in enumerate(derivatives(row, operand, point), 1):
                size = abs(right) + abs(change * point[operand]) / 1000 + np.finfo(float).tiny / 1e-12
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
