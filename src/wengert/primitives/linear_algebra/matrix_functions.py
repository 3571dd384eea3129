"""Functions of matrices.

A function of a matrix [[A, E], [0, A]] has f(A) on its diagonal and the derivative of f at A along E in its corner.
That is a function of a matrix again, so derivatives of every order follow, at repeated eigenvalues and defective
matrices, too.
(I. Najfeld and T. F. Havel, Derivatives of the matrix exponential and their computation, 1995; R. Mathias, A chain rule
for matrix functions and applications, 1996; N. J. Higham, Functions of Matrices, 2008, theorem 3.6.)

The derivative of order k is linear in each of its k directions, and symmetric in them. So each is brought to one size
before it stands in such a matrix, whose function would lose what is small beside a large one; and the transpose is a
derivative along the transposes, which needs no larger matrix.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.primitives.linear_algebra.matrices import of_scipy, over_stacks
from wengert.primitives.linear_algebra.matrix_equations import solve_sylvester

Tangents = Sequence[Any]
Function = Callable[..., Any]


# Derivatives by blocks


def exponent_of(x: Any) -> int:
    """Return the exponent of the power of two above the largest element of an array."""
    return int(np.frexp(np.max(np.abs(x), initial=0.0))[1])


def times_power(x: Any, exponent: int) -> Any:
    """Return an array times a power of two, which may be larger than any number."""
    if x.dtype.kind != "c":
        return np.ldexp(x, exponent)
    found = np.empty_like(x)
    found.real, found.imag = np.ldexp(x.real, exponent), np.ldexp(x.imag, exponent)
    return found


def with_blocks(a: Any, directions: Sequence[Any]) -> Any:
    """Return the matrix whose function has the derivative along all directions in its upper right corner."""
    for i, direction in enumerate(directions):
        wide = np.kron(np.eye(2**i, dtype=direction.dtype), direction)
        a = np.block([[a, wide], [np.zeros_like(wide), a]])
    return a


def derivative_along(function: Function, a: Any, directions: Sequence[Any]) -> Any:
    """Return the derivative of a function of matrices along directions, each of which is made as large as A.

    But not larger than 1, for what is not above the range of numbers shall not be in the corner, either. A direction is
    divided by its largest element, so that multiples of one have the same roundings.
    """
    n, size = len(a), min(exponent_of(a), 0) if np.any(a) else 0
    fractions, exponents = zip(*[np.frexp(np.max(np.abs(x))) for x in directions], strict=True)
    unit = [times_power(x, size - e) / f for x, f, e in zip(directions, fractions, exponents, strict=True)]
    found = function(with_blocks(a, unit))[:n, -n:] * math.prod(fractions)
    return times_power(found, sum(map(int, exponents)) - size * len(directions))


def along(derivative: Function, a: Any, directions: Sequence[Any]) -> Any:
    """Return a derivative along directions for stacks of matrices; it is 0 where one of these is, whatever A is."""

    def one(a: Any, *directions: Any) -> Any:
        return derivative(a, directions) if all(np.any(x) for x in directions) else np.zeros(a.shape, kind)

    kind = np.result_type(a, *directions)
    return over_stacks(one, [2] * (1 + len(directions)), a, *directions)


def function_of_matrix(name: str, evaluate: Any) -> Primitive:
    """Declare a function of matrices, evaluated by `evaluate(a, *directions, **params)`."""

    def vjp(ct: Any, _out: Any, a: Any, *directions: Any, **params: Any) -> Any:
        turned = [x.mT for x in directions]
        found = [apply(primitive, a.mT, *turned, ct, **params)]
        for i in range(len(turned)):
            found.append(apply(primitive, a.mT, *turned[:i], *turned[i + 1 :], ct, **params))
        return tuple([unbroadcast(x, y.shape) for x, y in zip(found, (a, *directions), strict=True)])

    def jvp(tangents: Tangents, _out: Any, a: Any, *directions: Any, **params: Any) -> Any:
        moved, *others = tangents
        found = [] if moved is None else [apply(primitive, a, *directions, moved, **params)]
        for i, t in enumerate(others):
            if t is not None:
                found.append(apply(primitive, a, *directions[:i], t, *directions[i + 1 :], **params))
        return sum(found[1:], found[0])

    primitive: Primitive = opaque(name, evaluate, vjp=vjp, jvp=jvp, form=Routine("(n,n)->(n,n)", waking=True))
    return primitive


def evaluate_expm(a: Any, *directions: Any) -> Any:
    """Evaluate `scipy.linalg.expm`, or its derivative along directions."""
    from scipy import linalg

    return along(functools.partial(derivative_along, linalg.expm), a, directions) if directions else linalg.expm(a)


def by_triangles(function: Function, a: Any, directions: Sequence[Any]) -> Any:
    """Return the derivative along directions by way of the Schur form of A.

    In blocks of it each eigenvalue occurs in one form only, where those of blocks of A may be rounded to both sides of
    the cut along the negative axis. If A has none there, real directions have real derivatives.
    """
    from scipy import linalg

    triangle, basis = linalg.schur(a)
    paired = np.zeros(len(a) + 1, bool)
    real = triangle.dtype.kind != "c"
    if real:
        paired[1:-1] = np.diagonal(triangle, -1) != 0
        negative = (np.diagonal(triangle) < 0) & ~paired[1:] & ~paired[:-1]
        if np.any(paired) or np.any(negative):
            triangle, basis = linalg.rsf2csf(triangle, basis)
        real = not np.any(negative) and all(x.dtype.kind != "c" for x in directions)
    adjoint = basis.conj().T
    found = basis @ derivative_along(function, triangle, [adjoint @ x @ basis for x in directions]) @ adjoint
    return found.real if real else found


def evaluate_logm(a: Any, *directions: Any) -> Any:
    """Evaluate `scipy.linalg.logm`, or, without its warnings about accuracy, its derivative along directions."""
    from scipy import linalg

    if not directions:
        return over_stacks(linalg.logm, [2], a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return along(functools.partial(by_triangles, linalg.logm), a, directions)


def evaluate_power(a: Any, *directions: Any, exponent: float) -> Any:
    """Evaluate `scipy.linalg.fractional_matrix_power`, or its derivative along directions."""
    from scipy import linalg

    def power(x: Any) -> Any:
        return linalg.fractional_matrix_power(x, exponent)

    if not directions:
        return over_stacks(power, [2], a)
    return along(functools.partial(by_triangles, power), a, directions)


expm = function_of_matrix("expm", evaluate_expm)
logm = function_of_matrix("logm", evaluate_logm)
fractional_matrix_power = function_of_matrix("fractional_matrix_power", evaluate_power)


# Square roots


# X dX + dX X = dA, and its transpose (Higham 2008, section 6.1)
sqrtm = opaque(
    "sqrtm",
    of_scipy(lambda linalg, a: linalg.sqrtm(a), 2),
    vjp=lambda ct, out, _a: apply(solve_sylvester, out.mT, out.mT, ct),
    jvp=lambda tangents, out, _a: apply(solve_sylvester, out, out, tangents[0]),
    form=Routine("(n,n)->(n,n)"),
)
