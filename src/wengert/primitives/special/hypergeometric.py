"""Hypergeometric functions by their last argument, orthogonal polynomials by theirs, and Lambert's function."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import is_weak
from wengert.primitives.special.declaration import refusing, special


def by_last(ufunc: np.ufunc, names: str, slope: Any, *, steep: bool = False) -> Elementwise:
    """Declare a function of named parameters, by which there is no derivative, and an argument; `slope` is by that."""
    parameters = [refusing(ufunc.__name__, f"the parameter {name}") for name in names]

    def rule(t: Any, _out: Any, *operands: Any) -> Any:
        """Differentiate by the argument."""
        return t * slope(*operands)

    return special(ufunc, *parameters, rule, steep=steep)


def over(x: Any, c: Any) -> Any:
    """Return x / c, infinite for c = 0, by which Python's numbers do not divide."""
    return np.divide(x, c) if is_weak(c) and c == 0 else x / c


def multiple(factor: Any, function: Any) -> Any:
    """Return a multiple of a function, and 0 where the factor is 0, also where the function has no value."""
    return np.where(np.equal(factor, 0), 0.0, factor * function)


# Hypergeometric functions (Abramowitz & Stegun 1964, 13.4.8, 13.4.21, 15.2.1)

by_last(sp.hyp0f1, "v", lambda v, z: over(sp.hyp0f1(v + 1, z), v))
by_last(sp.hyp1f1, "ab", lambda a, b, z: multiple(over(a, b), sp.hyp1f1(a + 1, b + 1, z)))
by_last(sp.hyp2f1, "abc", lambda a, b, c, z: multiple(over(a * b, c), sp.hyp2f1(a + 1, b + 1, c + 1, z)), steep=True)
by_last(sp.hyperu, "ab", lambda a, b, z: multiple(-a, sp.hyperu(a + 1, b + 1, z)), steep=True)


# Orthogonal polynomials: derivatives are of the family with larger parameters and of the degree below (22.5, 22.7)


def next_lower(factor: Any, n: Any, polynomial: Any) -> Any:
    """Return factor polynomial(n - 1), and 0 for n = 0."""
    constant = np.equal(n, 0)
    return multiple(np.where(constant, 0.0, factor), polynomial(n - np.where(constant, 0, 1)))


def legendre(n: Any, x: Any) -> Any:
    """Return the derivative of Legendre's polynomial, which is Jacobi's with parameters 1 times (n + 1) / 2.

    Of a negative degree n it is that of the degree -1 - n.
    """
    n = np.maximum(n, -1 - n)
    return next_lower((n + 1) / 2, n, lambda k: sp.eval_jacobi(k, 1.0, 1.0, x))


def chebyshev_first(n: Any, x: Any) -> Any:
    """Return the derivative of Chebyshev's polynomial T."""
    return next_lower(n, n, lambda k: sp.eval_chebyu(k, x))


def gegenbauer(n: Any, a: Any, x: Any) -> Any:
    """Return the derivative of Gegenbauer's polynomial."""
    return next_lower(2 * a, n, lambda k: sp.eval_gegenbauer(k, a + 1, x))


def jacobi(n: Any, a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of Jacobi's polynomial."""
    return next_lower((n + a + b + 1) / 2, n, lambda k: sp.eval_jacobi(k, a + 1, b + 1, x))


def chebyshev_second(n: Any, x: Any) -> Any:
    """Return the derivative of Chebyshev's polynomial U, which is Gegenbauer's with parameter 1.

    Of a negative degree n it is that of the degree -2 - n, with the other sign, and so 0 of -1.
    """
    return np.where(n < -1, -1.0, 1.0) * gegenbauer(np.where(np.equal(n, -1), 0, np.maximum(n, -2 - n)), 1.0, x)


by_last(sp.eval_legendre, "n", legendre)
by_last(sp.eval_sh_legendre, "n", lambda n, x: 2 * legendre(n, 2 * x - 1))
by_last(sp.eval_chebyt, "n", chebyshev_first, steep=True)
by_last(sp.eval_chebyu, "n", chebyshev_second)
by_last(sp.eval_sh_chebyt, "n", lambda n, x: 2 * chebyshev_first(n, 2 * x - 1), steep=True)
by_last(sp.eval_sh_chebyu, "n", lambda n, x: 2 * chebyshev_second(n, 2 * x - 1))
by_last(sp.eval_chebyc, "n", lambda n, x: chebyshev_first(n, x / 2), steep=True)
by_last(sp.eval_chebys, "n", lambda n, x: chebyshev_second(n, x / 2) / 2)
by_last(sp.eval_gegenbauer, "na", gegenbauer)
by_last(sp.eval_jacobi, "nab", jacobi)
by_last(sp.eval_hermite, "n", lambda n, x: next_lower(2.0 * n, n, lambda k: sp.eval_hermite(k, x)))
by_last(sp.eval_hermitenorm, "n", lambda n, x: next_lower(1.0 * n, n, lambda k: sp.eval_hermitenorm(k, x)))
by_last(sp.eval_laguerre, "n", lambda n, x: next_lower(-1.0, n, lambda k: sp.eval_genlaguerre(k, 1.0, x)))
by_last(sp.eval_genlaguerre, "na", lambda n, a, x: next_lower(-1.0, n, lambda k: sp.eval_genlaguerre(k, a + 1, x)))


# Lambert's function

lambertw = elementwise(
    "lambertw",
    lambda z, *, k, tol: sp.lambertw(z, k, tol),
    d=lambda t, out, _z, *, k, tol: t * np.exp(-out) / (1 + out),
    singular=True,
    steep=True,
)
