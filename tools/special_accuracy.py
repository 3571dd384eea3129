"""Compare special functions and their derivatives with mpmath's.

Usage: python -m tools.special_accuracy [--points N] [--page] [NAME ...]

Prints for each function and operand the largest error of the value, SciPy's own, and of both first derivatives at N
random points of its range, tails included: relative to what is right, or to a thousandth of what it changes by when
the operand doubles, whichever is larger, so that a rounding of the operand counts as a few roundings of the result.
`--page` writes the bounds to `docs/special-functions.md`, and what kernels do not compute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special

import wengert as wg
from wengert.scipy import special

__all__ = [
    "APART",
    "MORE_ROUNDINGS",
    "PAGE",
    "ROUNDINGS",
    "ROWS",
    "WITHOUT_KERNEL",
    "Row",
    "errors",
    "page",
    "roundings",
]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "special-functions.md"
HEAD = """# Special functions

How near values, which are SciPy's own bit for bit, and first and second derivatives by each operand are to the exact
ones, at points all over the ranges, tails included. Errors are relative to what is right, or to a thousandth of what it
changes by when the operand doubles, whichever is larger: one cannot be nearer to a zero than a rounding of the operand
allows. Points between positive numbers are drawn by their logarithm. `python -m tools.special_accuracy --page` writes
this page; without `--page` it measures the errors, with mpmath, and tests do so at a few points.
"""
FOOT = """
Beyond these ranges, to the smallest and largest numbers, derivatives are as good as SciPy's values, of which they are
made. Those are infinite, 0 or NaN before the function is, or have no digit, in these places:

* `gammaln`, `loggamma`, `iv`, `kv`, `kn`, `jv`, `jn`, `modstruve` and scaled Bessel functions of subnormal numbers;
  `iv` and `jv` where they are below 1e-300; `kv`, `kn` and `spherical_kn` from 700 on, where `k0` and `k1` go on;
* `spherical_jn` and `spherical_in` of numbers below 1e-150, whose values and derivatives are 0 there;
* derivatives by degrees of freedom, orders and shapes above 1e12, but for `stdtr`;
* `psi`, `digamma` and `polygamma` from 1e100 on, whose second and higher derivatives are 0 there, as SciPy's `zeta` is;
* `sindg`, `cosdg`, `tandg` and `cotdg` from 1e14 on, `cotdg` below 1e-14;
* Bessel's and Struve's functions from 1e15 on, and `struve` where it is infinite;
* `rgamma` left of -170 at whole numbers, of the second order;
* `i0e`, `i1e` and `ive` have a kink at 0, where the sign is 0, as that of `abs` is.

`hyp1f1` of SciPy 1.17 takes time in proportion to a large positive argument, seconds from 1e11 on, here as there: its
exponential overflows from 710 on, so keep arguments below.
"""

NORMAL = sys.float_info.min
"""Smaller numbers have fewer digits."""
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
        value: bound for the error of the value, which is SciPy's own.
        digits: with how many digits the exact function is evaluated.
        fixed: leading operands that are not differentiated.
        part: what is compared of results that are complex or several: "real", "imag" or which.
        whole: whether the exact function leaves whole numbers out, which would hide small tails.
        slow: whether mpmath takes long.
    """

    name: str
    exact: Callable[..., Any]
    ranges: Sequence[Range]
    first: float = 1e-12
    second: float = 1e-11
    fixed: Sequence[Any] = ()
    part: str | int = ""
    whole: bool = False
    slow: bool = False
    value: float = 1e-12
    digits: int = 34

    @property
    def bounds(self) -> tuple[float, float, float]:
        """Return the bounds of value, first and second derivative."""
        return self.value, self.first, self.second

    def function(self, *xs: Any) -> Any:
        """Call the function here."""
        found = getattr(special, self.name)(*self.fixed, *xs)
        if isinstance(self.part, int):
            return found[self.part]
        return getattr(found, self.part) if self.part else found

    def drawn(self, generator: np.random.Generator) -> list[float]:
        """Draw a point."""
        return [
            float(np.exp(generator.uniform(np.log(low), np.log(high))) if low > 0 else generator.uniform(low, high))
            for low, high in self.ranges
        ]


def normal_integral(x: Any) -> Any:
    """Return the distribution function of the normal distribution, from the side where it is small."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_normal_integral(x: Any) -> Any:
    """Return its logarithm."""
    return mp.log(normal_integral(x)) if x < 0 else mp.log1p(-normal_integral(-x))


def owen(h: Any, a: Any) -> Any:
    """Return Owen's function, by its definition."""
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a / 8, a / 2, a]) / (2 * mp.pi)


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
    Row("erfinv", mp.erfinv, [(1e-300, 0.1)]),
    Row("erfcinv", inverse(mp.erfc, scipy.special.erfcinv), [(1e-300, 1.9)]),
    Row("ndtr", normal_integral, [(-37, 8)]),
    Row("log_ndtr", log_normal_integral, [(-1e3, 30)]),
    Row("log_ndtr", log_normal_integral, [(-1e8, -1e3)], slow=True),
    Row("ndtri_exp", inverse(log_normal_integral, scipy.special.ndtri_exp), [(-1e4, -1e-2)]),
    Row("wofz", lambda x: mp.exp(-x * x), [(-20, 20)], part="real"),
    Row("wofz", lambda x: mp.exp(-x * x) * mp.erfi(x), [(-20, 20)], part="imag"),
    Row("wofz", lambda x: mp.exp(-x * x) * mp.erfi(x), [(1, 1e4)], part="imag"),
    Row("owens_t", owen, [(-4, 4), (-2, 2)], slow=True),
    Row("ndtri", inverse(normal_integral, scipy.special.ndtri), [(1e-300, 0.9)]),
    Row("dawsn", lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2, [(-20, 20)]),
    Row("dawsn", lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2, [(1, 50)]),
]
GAMMA = [
    Row("gamma", mp.gamma, [(-9.9, 30)]),
    Row("gamma", mp.gamma, [(1e-100, 170)]),
    Row("factorial", mp.factorial, [(1e-10, 150)]),
    Row("gammaln", lambda x: mp.log(abs(mp.gamma(x))), [(1e-100, 1e10)]),
    Row("gammaln", mp.loggamma, [(1e10, 1e150)], slow=True),
    Row("gammaln", mp.loggamma, [(0.99, 2.01)]),
    Row("gammaln", lambda x: mp.log(abs(mp.gamma(x))), [(-20, 0)]),
    Row("loggamma", mp.loggamma, [(1e-3, 1e5)]),
    Row("digamma", mp.digamma, [(1e-100, 1e100)]),
    Row("digamma", mp.digamma, [(-10, 0)]),
    Row("digamma", mp.digamma, [(1.46, 1.4633)]),
    Row("psi", mp.digamma, [(1e-5, 1e5)]),
    Row("rgamma", mp.rgamma, [(-20, 50)]),
    Row("polygamma", lambda x: mp.polygamma(2, x), [(1e-10, 1e10)], fixed=(2,)),
    Row("poch", mp.rf, [(1e-3, 1e3), (1e-3, 1e2)], first=1e-11, second=1e-10, value=1e-11),
    Row("binom", mp.binomial, [(5, 100), (1e-3, 4)]),
    Row("comb", mp.binomial, [(5, 100), (1e-3, 4)]),
    Row("zeta", mp.zeta, [(1.01, 20), (1e-3, 1e3)], slow=True, value=1e-8),
    Row("zeta", mp.zeta, [(-10, 0.9)]),
    Row("zeta", mp.zeta, [(-0.01, 0.01)]),
    Row("zeta", mp.zeta, [(1.001, 30)]),
    Row("zeta", mp.zeta, [(30, 500)], digits=200, slow=True),
]


def gamma_integral(a: Any, x: Any) -> Any:
    """Return the incomplete gamma function, but for a constant from the side where it is small."""
    return mp.gammainc(a, 0, x, regularized=True) if x < a else -mp.gammainc(a, x, regularized=True)


def beta_integral(a: Any, b: Any, x: Any) -> Any:
    """Return the incomplete beta function likewise."""
    lower = x < a / (a + b)
    return beta_lower(a, b, x) if lower else -beta_lower(b, a, 1 - x)


def quantile(ufunc: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the inverse of a function in its last operand, which SciPy approximates."""

    def found(*operands: Any) -> Any:
        *rest, y = operands
        numbers = [float(x) for x in rest]
        return inverse(lambda x: function(*rest, x), lambda y: float(ufunc(*numbers, y)))(y)

    return found


def gamma_lower(a: Any, x: Any) -> Any:
    """Return the incomplete gamma function, by a series of positive terms."""
    return x**a * mp.exp(-x) / mp.gamma(a + 1) * mp.hyp1f1(1, a + 1, x, maxterms=10**6)


def gamma_upper(a: Any, x: Any) -> Any:
    """Return what it lacks of 1."""
    return mp.gammainc(a, x, regularized=True)


def beta_lower(a: Any, b: Any, x: Any) -> Any:
    """Return the incomplete beta function, by a series of positive terms."""
    return x**a * (1 - x) ** b / (a * mp.beta(a, b)) * mp.hyp2f1(1, a + b, a + 1, x)


def beta_upper(a: Any, b: Any, x: Any) -> Any:
    """Return what it lacks of 1."""
    return beta_lower(b, a, 1 - x)


INCOMPLETE = [
    Row("beta", mp.beta, [(1e-10, 1e2), (1e-10, 1e2)]),
    Row("betaln", lambda a, b: mp.log(mp.beta(a, b)), [(1e-10, 1e5), (1e-10, 1e5)], value=1e-10),
    Row("gammainc", gamma_integral, [(1e-3, 10), (1e-8, 20)], whole=True),
    Row("gammainc", gamma_integral, [(10, 1e3), (5, 1e3)], whole=True),
    Row("gammainc", gamma_integral, [(1e-8, 1e-3), (1e-100, 500)], whole=True),
    Row("gammainc", gamma_lower, [(5e4, 5.1e4), (5e4, 5.1e4)], slow=True),
    Row("gammaincc", lambda a, x: -gamma_integral(a, x), [(1e-3, 10), (1e-3, 50)], whole=True),
    Row("gammaincc", lambda a, x: -gamma_integral(a, x), [(10, 1e3), (5, 1e3)], whole=True),
    Row("gammaincinv", quantile(scipy.special.gammaincinv, gamma_lower), [(0.1, 10), (1e-5, 0.99)]),
    Row("gammaincinv", quantile(scipy.special.gammaincinv, gamma_lower), [(10, 1e3), (1e-100, 0.9)], slow=True),
    Row("gammainccinv", quantile(scipy.special.gammainccinv, gamma_upper), [(0.1, 10), (1e-100, 0.9)], slow=True),
    Row("betainc", beta_integral, [(1e-2, 20), (1e-2, 20), (1e-3, 0.99)], whole=True),
    Row("betainc", beta_integral, [(1e-4, 1e-2), (1, 20), (1e-12, 1e-3)], whole=True),
    Row("betainc", beta_integral, [(1e-8, 1), (1e-8, 1), (1e-100, 0.99)], whole=True),
    Row("betainc", beta_integral, [(50, 1e3), (50, 1e3), (0.15, 0.9)], whole=True),
    Row("betaincc", lambda a, b, x: -beta_integral(a, b, x), [(1, 200), (1, 100), (0.1, 0.9)], whole=True),
    Row("betaincinv", quantile(scipy.special.betaincinv, beta_lower), [(0.5, 10), (0.5, 10), (1e-3, 0.9)], slow=True),
    Row("betainccinv", quantile(scipy.special.betainccinv, beta_upper), [(0.5, 10), (0.5, 10), (1e-3, 0.9)]),
]


def student(v: Any, x: Any) -> Any:
    """Return Student's distribution function, but for a constant."""
    tail = mp.betainc(v / 2, mp.mpf(1) / 2, 0, v / (v + x * x), regularized=True) / 2
    return tail if x < 0 else -tail


def f_integral(m: Any, n: Any, x: Any) -> Any:
    """Return the F distribution function, but for a constant."""
    return beta_integral(m / 2, n / 2, m * x / (n + m * x))


def gamma_scaled(a: Any, b: Any, x: Any) -> Any:
    """Return the gamma distribution function, but for a constant."""
    return gamma_integral(b, a * x)


def chi_upper(v: Any, x: Any) -> Any:
    """Return the probability that the chi-squared distribution has above x."""
    return gamma_upper(v / 2, x / 2)


def f_lower(m: Any, n: Any, x: Any) -> Any:
    """Return the F distribution function."""
    return beta_lower(m / 2, n / 2, m * x / (n + m * x))


def student_quantile(v: Any, y: Any) -> Any:
    """Return the quantile of Student's distribution, by that of the beta distribution of v / (v + t**2)."""
    tail = mp.mpf(min(y, 1 - y))
    start = float(abs(scipy.special.stdtrit(float(v), float(tail))))
    t = mp.findroot(lambda t: beta_lower(v / 2, mp.mpf(1) / 2, v / (v + t * t)) / (2 * tail) - 1, (start, start * 1.01))
    return -t if y < 0.5 else t


DISTRIBUTION = [
    Row("chdtr", lambda v, x: gamma_integral(v / 2, x / 2), [(0.5, 40), (0.1, 80)], whole=True),
    Row("chdtrc", lambda v, x: -gamma_integral(v / 2, x / 2), [(0.5, 40), (0.1, 80)], whole=True),
    Row("chdtri", quantile(scipy.special.chdtri, chi_upper), [(0.5, 40), (1e-20, 0.9)], slow=True),
    Row("gdtr", gamma_scaled, [(0.1, 4), (0.5, 20), (0.1, 10)], whole=True),
    Row("gdtrc", lambda a, b, x: -gamma_scaled(a, b, x), [(0.1, 4), (0.5, 20), (0.1, 10)], whole=True),
    Row("pdtr", lambda m: mp.gammainc(4, m, regularized=True), [(0.1, 30)], fixed=(3.0,)),
    Row("pdtrc", lambda m: mp.gammainc(4, 0, m, regularized=True), [(0.1, 30)], fixed=(3.0,)),
    Row("stdtr", student, [(0.5, 100), (-8, 8)], whole=True),
    Row("stdtrit", student_quantile, [(1, 100), (1e-3, 0.4)], slow=True),
    Row("fdtr", f_integral, [(0.5, 40), (0.5, 40), (0.1, 4)], first=1e-11, whole=True),
    Row("fdtrc", lambda m, n, x: -f_integral(m, n, x), [(0.5, 40), (0.5, 40), (0.1, 4)], first=1e-11, whole=True),
    Row("fdtri", quantile(scipy.special.fdtri, f_lower), [(1, 40), (1, 40), (0.01, 0.9)], slow=True, first=1e-10),
]


def huber(d: Any, r: Any) -> Any:
    """Return Huber's loss."""
    return r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2)


def degrees(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of an angle in degrees."""
    return lambda x: function(x * mp.pi / 180)


def small_spence(x: Any) -> Any:
    """Return Spence's function Li2(1 - x) by that of x."""
    return mp.pi**2 / 6 - mp.log(x) * mp.log1p(-x) - mp.polylog(2, x)


ELEMENTARY = [
    Row("expit", lambda x: 1 / (1 + mp.exp(-x)), [(-700, 40)]),
    Row("log_expit", lambda x: -mp.log1p(mp.exp(-x)), [(-700, 700)]),
    Row("logit", lambda x: mp.log(x / (1 - x)), [(1e-300, 0.99)]),
    Row("entr", lambda x: -x * mp.log(x), [(1e-100, 10)]),
    Row("rel_entr", lambda x, y: x * mp.log(x / y), [(1e-3, 10), (1e-3, 10)]),
    Row("kl_div", lambda x, y: x * mp.log(x / y) - x + y, [(0.9, 1.1), (0.9, 1.1)], value=1e-8),
    Row("xlogy", lambda x, y: x * mp.log(y), [(-5, 5), (1e-5, 10)]),
    Row("xlog1py", lambda x, y: x * mp.log(1 + y), [(-5, 5), (1e-10, 10)]),
    Row("huber", huber, [(1e-3, 10), (-10, 10)]),
    Row("pseudo_huber", lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1), [(1e-3, 10), (-10, 10)]),
    Row("exprel", lambda x: mp.expm1(x) / x, [(-50, 50)]),
    Row("exprel", lambda x: mp.expm1(x) / x, [(-4, 4)]),
    Row("boxcox", lambda x, y: (x**y - 1) / y, [(1e-2, 10), (-2, 2)]),
    Row("boxcox", lambda x, y: (x**y - 1) / y, [(1e-2, 10), (1e-9, 0.1)]),
    Row("inv_boxcox", lambda x, y: (1 + x * y) ** (1 / y), [(0.1, 10), (1e-9, 2)]),
    Row("boxcox1p", lambda x, y: ((1 + x) ** y - 1) / y, [(1e-10, 10), (-2, 2)]),
    Row("inv_boxcox1p", lambda x, y: (1 + x * y) ** (1 / y) - 1, [(0.1, 10), (1e-9, 2)]),
    Row("powm1", lambda x, y: x**y - 1, [(1e-2, 1e2), (-20, 20)], digits=80),
    Row("cosm1", lambda x: mp.cos(x) - 1, [(-3, 3)]),
    Row("cosm1", lambda x: -2 * mp.sin(x / 2) ** 2, [(1e-100, 1)]),
    Row("spence", lambda x: mp.polylog(2, 1 - x), [(1e-3, 0.99)]),
    Row("spence", small_spence, [(1e-17, 1e-3)], digits=60),
    Row("spence", lambda x: mp.polylog(2, 1 - x).real, [(1, 1e10)]),
    Row("cbrt", mp.cbrt, [(1e-300, 1e300)]),
    Row("exp2", lambda x: mp.mpf(2) ** x, [(-1000, 1000)]),
    Row("exp10", lambda x: mp.mpf(10) ** x, [(-300, 300)]),
    Row("expm1", mp.expm1, [(-40, 700)]),
    Row("expm1", mp.expm1, [(1e-300, 1)]),
    Row("log1p", mp.log1p, [(1e-300, 1e300)]),
    Row("log1p", mp.log1p, [(-0.999, 1)]),
    Row("sinc", mp.sincpi, [(-20, 20)]),
    Row("sinc", mp.sincpi, [(1e-10, 0.1)]),
    Row("softplus", lambda x: mp.log1p(mp.exp(x)), [(-100, 40)]),
    *(
        Row(name, degrees(exact), [(1, 89)])
        for name, exact in (("sindg", mp.sin), ("cosdg", mp.cos), ("tandg", mp.tan), ("cotdg", mp.cot))
    ),
]
BESSEL = [
    *(
        Row(name, lambda x, exact=exact: exact(2.5, x), [(1e-2, 60)], fixed=(2.5,), first=1e-11, second=1e-10)
        for name, exact in (("jv", mp.besselj), ("yv", mp.bessely), ("iv", mp.besseli), ("kv", mp.besselk))
    ),
    *(
        Row(name, lambda x, exact=exact, v=v: exact(v, x), [(1e-2, 60)], 1e-11, 1e-10, slow=name[0] in "yk")
        for v, names in enumerate(("j0 y0 i0 k0", "j1 y1 i1 k1"))
        for name, exact in zip(names.split(), (mp.besselj, mp.bessely, mp.besseli, mp.besselk), strict=True)
    ),
    *(
        Row(name, lambda x, exact=exact, v=v: exact(v, x), [(1e-100, 1e-2)], fixed=(v,), slow=v > 1)
        for name, exact in (("jv", mp.besselj), ("yv", mp.bessely), ("iv", mp.besseli), ("kv", mp.besselk))
        for v in (0.5, 2.0)
    ),
    *(
        Row(name, lambda x, exact=exact, v=v: exact(v, x), [(1e-100, 1e-2)])
        for v, name, exact in (
            (1, "j1", mp.besselj),
            (1, "i1", mp.besseli),
            (0, "k0", mp.besselk),
            (1, "k1", mp.besselk),
        )
    ),
    Row("ive", lambda x: mp.besseli(1.5, x) * mp.exp(-x), [(1e-2, 1e6)], fixed=(1.5,)),
    Row("kve", lambda x: mp.besselk(1.5, x) * mp.exp(x), [(1e-2, 1e6)], fixed=(1.5,)),
    *(Row(f"i{v}e", lambda x, v=v: mp.besseli(v, x) * mp.exp(-abs(x)), [(-100, 100)]) for v in (0, 1)),
    *(Row(f"k{v}e", lambda x, v=v: mp.besselk(v, x) * mp.exp(x), [(1e-2, 1e6)]) for v in (0, 1)),
    Row("spherical_jn", lambda x: mp.sqrt(mp.pi / 2 / x) * mp.besselj(2.5, x), [(0.1, 20)], fixed=(2,), second=1e-10),
    Row("spherical_kn", lambda x: mp.sqrt(mp.pi / 2 / x) * mp.besselk(2.5, x), [(0.1, 20)], fixed=(2,)),
    *(
        Row(name, lambda x, exact=exact, v=v: exact(v, x), [span], 1e-11, fixed=(v,), slow=v > 2)
        for name, exact in (("struve", mp.struveh), ("modstruve", mp.struvel))
        for v in (0.0, 1.5, -0.5, 8.0)
        for span in ((1e-5, 1e-1), (0.1, 100.0))
    ),
    *(
        Row(name, lambda x, exact=exact: exact(2, x), [(1e-2, 60)], 1e-11, 1e-10, (2,), slow=name != "jn")
        for name, exact in (("jn", mp.besselj), ("yn", mp.bessely), ("kn", mp.besselk))
    ),
    *(
        Row(name, lambda x, exact=exact: exact(2.5, x), [(1, 60)], 1e-11, 1e-10, (2.5,), part)
        for names, exact, part in (
            ("jve", mp.besselj, ""),
            ("yve", mp.bessely, ""),
            ("hankel1 hankel2", mp.besselj, "real"),
            ("hankel1", mp.bessely, "imag"),
            ("hankel2", lambda v, x: -mp.bessely(v, x), "imag"),
        )
        for name in names.split()
    ),
    Row("spherical_yn", lambda x: mp.sqrt(mp.pi / 2 / x) * mp.bessely(2.5, x), [(0.1, 20)], fixed=(2,), second=1e-10),
    Row("spherical_in", lambda x: mp.sqrt(mp.pi / 2 / x) * mp.besseli(2.5, x), [(0.1, 20)], fixed=(2,), second=1e-10),
    *(
        Row("airy", lambda x, exact=exact, n=part % 2: exact(x, derivative=n), [(-10, 10)], 1e-11, 1e-10, (), part)
        for part, exact in enumerate((mp.airyai, mp.airyai, mp.airybi, mp.airybi))
    ),
]
INTEGRALS = [
    Row("expi", mp.ei, [(-20, 20)]),
    Row("exp1", mp.e1, [(1e-5, 100)]),
    Row("expn", lambda x: mp.expint(3, x), [(1e-5, 100)], fixed=(3,)),
    Row("ellipk", mp.ellipk, [(-10, 0.999)]),
    Row("ellipkm1", lambda p: mp.pi / 2 / mp.agm(1, mp.sqrt(p)), [(1e-100, 3)]),
    Row("ellipe", mp.ellipe, [(-10, 0.999)]),
    *(
        Row(name, exact, [(1e-5, high)], part=part)
        for name, part, exact, high in (
            ("fresnel", 0, mp.fresnels, 20),
            ("fresnel", 1, mp.fresnelc, 20),
            ("sici", 0, mp.si, 1e3),
            ("sici", 1, mp.ci, 1e3),
            ("shichi", 0, mp.shi, 100),
            ("shichi", 1, mp.chi, 100),
        )
    ),
    Row("ellipkinc", mp.ellipf, [(-6, 6), (-10, 0.999)]),
    Row("ellipeinc", mp.ellipe, [(-6, 6), (-10, 0.999)]),
]
HYPERGEOMETRIC = [
    Row("hyp0f1", lambda z: mp.hyp0f1(1.5, z), [(-5, 20)], fixed=(1.5,)),
    Row("hyp1f1", lambda z: mp.hyp1f1(0.5, 1.5, z), [(-5, 20)], fixed=(0.5, 1.5)),
    Row("hyp1f1", lambda z: mp.hyp1f1(1.3, 2.7, z), [(-100, 100)], fixed=(1.3, 2.7)),
    Row("hyperu", lambda z: mp.hyperu(1.5, 2.2, z), [(1e-3, 1e3)], 1e-8, 1e-8, (1.5, 2.2), value=1e-7),
    Row("hyp2f1", lambda z: mp.hyp2f1(0.5, 1.2, 1.9, z), [(-5, 0.9)], fixed=(0.5, 1.2, 1.9)),
    Row("eval_legendre", lambda x: mp.legendre(5, x), [(-1, 1)], fixed=(5,)),
    Row("eval_chebyt", lambda x: mp.chebyt(5, x), [(-1, 1)], fixed=(5,)),
    Row("eval_jacobi", lambda x: mp.jacobi(4, 0.5, 1.5, x), [(-1, 1)], fixed=(4, 0.5, 1.5)),
    *(
        Row(f"eval_{name}", exact, [(-1, 1)], fixed=fixed)
        for name, fixed, exact in (
            ("chebyu", (5,), lambda x: mp.chebyu(5, x)),
            ("chebyc", (5,), lambda x: 2 * mp.chebyt(5, x / 2)),
            ("chebys", (5,), lambda x: mp.chebyu(5, x / 2)),
            ("sh_legendre", (5,), lambda x: mp.legendre(5, 2 * x - 1)),
            ("sh_chebyt", (5,), lambda x: mp.chebyt(5, 2 * x - 1)),
            ("sh_chebyu", (5,), lambda x: mp.chebyu(5, 2 * x - 1)),
            ("gegenbauer", (4, 0.7), lambda x: mp.gegenbauer(4, mp.mpf(0.7), x)),
        )
    ),
    Row("eval_hermite", lambda x: mp.hermite(5, x), [(-4, 4)], fixed=(5,)),
    Row("eval_hermitenorm", lambda x: mp.hermite(5, x / mp.sqrt(2)) / mp.sqrt(2) ** 5, [(-4, 4)], fixed=(5,)),
    Row("eval_laguerre", lambda x: mp.laguerre(4, 0, x), [(-2, 9)], fixed=(4,)),
    Row("eval_genlaguerre", lambda x: mp.laguerre(4, 0.5, x), [(-2, 9)], fixed=(4, 0.5)),
]
LAMBERT = [
    Row("lambertw", mp.lambertw, [(-0.36, 1)], part="real"),
    Row("lambertw", mp.lambertw, [(1e-300, 1e300)], part="real"),
    Row("wrightomega", lambda x: mp.lambertw(mp.exp(x)), [(-600, 600)]),
    Row("wrightomega", lambda x: mp.lambertw(mp.exp(x)), [(-5, 5)]),
    Row("wrightomega", lambda x: mp.lambertw(mp.exp(x)), [(600, 1e6)], digits=60, slow=True),
]
ROWS = [*LAMBERT, *ERROR, *GAMMA, *INCOMPLETE, *DISTRIBUTION, *ELEMENTARY, *BESSEL, *INTEGRALS, *HYPERGEOMETRIC]


APART = {
    "multigammaln": "a sum of gammaln",
    "gammasgn": "constant between jumps",
    "round": "constant between jumps",
    "log_softmax": "of arrays",
    "logsumexp": "of arrays",
    "softmax": "of arrays",
}
"""Functions without rows, and why."""


def compared(row: Row, operand: int, point: Sequence[float]) -> Iterator[tuple[float, Any, Any]]:
    """Yield for value, first and second derivative what is found, what is right, and what is added to its size."""

    def varied(x: Any) -> Any:
        return row.function(*point[:operand], x, *point[operand + 1 :])

    def exact(s: Any) -> Any:
        return row.exact(*map(mp.mpf, point[:operand]), centre * (1 + s), *map(mp.mpf, point[operand + 1 :]))

    first = wg.grad(varied)
    with mp.workdps(row.digits):
        centre = mp.mpf(point[operand])
        right = [mp.diff(exact, 0, n) / centre**n for n in range(4)]
        value = float(varied(point[operand]))
        left_out = mp.nint(value - right[0]) if row.whole else 0
        yield value, right[0] + left_out, abs(right[1] * centre) / 1000
        yield first(point[operand]), right[1], abs(right[2] * centre) / 1000
        small = abs(right[1] / centre) * SMALLEST
        yield wg.grad(first)(point[operand]), right[2], abs(right[3] * centre) / 1000 + small


def errors(row: Row, points: int, seed: int = 0) -> Iterator[tuple[int, int, float, list[float]]]:
    """Yield operand, order, error and point at random points."""
    generator = np.random.default_rng(seed)
    for _ in range(points):
        point = row.drawn(generator)
        for operand in range(len(row.ranges)):
            for order, (found, right, slack) in enumerate(compared(row, operand, point)):
                same = found == float(right)  # also where both are too large or too small for a float
                yield operand, order, 0.0 if same else float(abs(found - right) / (abs(right) + slack + NORMAL)), point


# Kernels

ROUNDINGS = 12.0
"""The bound of the errors of kernels: in roundings of the result and of each operand."""
MORE_ROUNDINGS = {"kl_div": 1e12}
"""Those of functions that are differences, as SciPy's are."""

WITHOUT_KERNEL = {
    "Their series, recurrence, iteration or quadrature is as long as their operands need": (
        "betainc betaincc betaincinv betainccinv chdtr chdtrc chdtri ellipeinc ellipkinc elliptic_derivative expn "
        "eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite "
        "eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_legendre fdtr "
        "fdtrc fdtri gammainc gammaincc gammaincinv gammainccinv gcd gdtr gdtrc hyp0f1 hyp1f1 hyp2f1 hyperu "
        "incomplete_elliptic_derivative invgauss_isf invgauss_ppf iv ive jv jve kn kv kve lambertw lcm modstruve "
        "ndtri_exp owens_t pdtr pdtrc polygamma riemann_zeta scaled_bessel skewnorm_cdf skewnorm_isf skewnorm_ppf "
        "spherical_in spherical_jn spherical_kn spherical_yn stdtr stdtrit struve struve_derivative vonmises_isf "
        "vonmises_ppf wrightomega yn yv yve zeta zeta_derivative"
    ),
    "They are integrals and sums over points that NumPy evaluates at once": (
        "beta_density betainc_by_shapes betainc_derivative dawsn_derivative exponential_over f_density f_place "
        "gamma_density gammainc_by_shape gammainc_derivative log1p_ratio log_ratio polygamma_difference "
        "sinhc_derivative"
    ),
    "They are complex, of which kernels have what expressions of both parts give": (
        "complex_polygamma hankel1 hankel2 loggamma wofz wofz_derivative"
    ),
    "They would lose digits as expressions of what kernels have, and have no polynomial of their own yet": (
        "beta betaln binom cosdg cotdg dawsn ellipe ellipk ellipkm1 erfi exp1 expi poch powm1 rgamma shichi sici sindg "
        "spence tandg"
    ),
    "They look at all elements along an axis, or raise an error that depends on elements": (
        "converged fitted ravel_multi_index within"
    ),
    "There is no opcode that counts bits": "bitwise_count",
    "Its numbers are those of NumPy's generator for each key": "gamma_path",
    "It is constant between jumps, and SciPy's for large numbers are not where the function has them": "gammasgn",
}
"""Pointwise primitives for which there are no kernels, by the reason."""


def roundings(row: Row, found: float, point: Sequence[float]) -> float:
    """Return the error of a value in roundings: of the result, and of what it changes by with each operand."""
    with mp.workdps(row.digits):
        operands = list(map(mp.mpf, point))
        right, size = row.exact(*operands), mp.mpf(0)
        for i, x in enumerate(operands):
            size += abs(mp.diff(lambda s, i=i, x=x: row.exact(*operands[:i], x * (1 + s), *operands[i + 1 :]), 0))
        if found == float(right) or row.whole:
            return 0.0
        return float(abs(found - right) / (abs(right) + size + NORMAL) * 2**53)


def kernels_section() -> list[str]:
    """Return the lines of the page about native code."""
    return [
        "## Native code",
        "",
        "Kernels compute what has an expression of stated accuracy, with SciPy's values at infinities, NaN and both "
        "zeros.",
        f"Their errors are within {text(ROUNDINGS)} roundings (2^-53) of the result and of each operand, of most "
        "functions within 3;",
        "single precision is computed in double, as SciPy does. Between kernels NumPy and SciPy compute these:",
        "",
        *(f"* {why}: {', '.join(f'`{name}`' for name in names.split())}." for why, names in WITHOUT_KERNEL.items()),
    ]


def text(number: float) -> str:
    """Return a number as short as it can be."""
    return f"{number:g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def line(row: Row) -> str:
    """Return the line of a function in the page."""
    part = {"": "", "real": ", real part", "imag": ", imaginary part"}.get(str(row.part), f", result {row.part}")
    fixed = "".join(f"{number}, " for number in row.fixed)
    ranges = ", ".join(f"{text(low)} ... {text(high)}" for low, high in row.ranges)
    return f"| `{row.name}`{part} | {fixed}{ranges} | " + " | ".join(map(text, row.bounds)) + " |"


def page() -> str:
    """Return the text of the page."""
    table = ["| | operands | value | first | second |", "|---|---|---|---|---|"]
    rows = sorted(ROWS, key=lambda row: row.name)
    apart = [f"* `{name}`: {reason}" for name, reason in sorted(APART.items())]
    end = [*kernels_section(), ""]
    return "\n".join([HEAD, *table, *map(line, rows), "", "Not measured:", "", *apart, FOOT, *end])


def main(arguments: list[str]) -> int:
    """Print a line for each function, operand and order; return how many exceed their bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write the bounds to docs/special-functions.md")
    options = parser.parse_args(arguments)
    if options.page:
        PAGE.write_text(page())
        return 0
    exceeded = 0
    for row in ROWS:
        if options.names and row.name not in options.names:
            continue
        worst: dict[tuple[int, int], tuple[float, list[float]]] = {}
        for operand, order, error, point in errors(row, options.points, options.seed):
            worst[operand, order] = max(worst.get((operand, order), (0.0, point)), (error, point))
        for (operand, order), (error, point) in sorted(worst.items()):
            high = not error <= row.bounds[order]
            exceeded += high
            print(f"{row.name:20} operand {operand} order {order}: {error:8.1e} at {point}{'  EXCEEDS' * high}")
    return exceeded


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
