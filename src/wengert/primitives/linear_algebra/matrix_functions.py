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


def function_of_matrix(name: str, evaluate: Any, usual_case: Any = None) -> Primitive:
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

    primitive: Primitive = opaque(
        name, evaluate, vjp=vjp, jvp=jvp, form=Routine("(n,n)->(n,n)", waking=True), usual_case=usual_case
    )
    return primitive


def evaluate_expm(a: Any, *directions: Any) -> Any:
    """Evaluate `scipy.linalg.expm`, or its derivative along directions."""
    from scipy import linalg

    return along(functools.partial(derivative_along, linalg.expm), a, directions) if directions else linalg.expm(a)


PADE = tuple([math.comb(13, k) * math.factorial(26 - k) // math.factorial(13) for k in range(14)])
"""The coefficients of the approximant of degree 13 of exp(x): p(x) / p(-x)."""
WITHIN = 4.74
"""The size of a matrix for which it, and its derivative, are exact but for roundings (Al-Mohy and Higham 2009)."""
SQUARINGS = 4
"""How often a matrix is halved, and its exponential squared, in the usual case at most."""
LARGEST = 32
"""Rows from which on the usual case is none: SciPy halves as often as it takes, and calls are short beside that."""


class MovingMatrix:
    """Be a matrix with what it changes by along directions, and along several of them together.

    Args:
        parts: the matrix, and behind it the changes: the bits of their places say along which directions.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def add_multiples(self, *terms: tuple[float, MovingMatrix], ones: float = 0.0) -> MovingMatrix:
        """Return a multiple of the identity added to it, and multiples of others."""
        found = [x + sum_of([c * y.parts[i] for c, y in terms]) for i, x in enumerate(self.parts)]
        return MovingMatrix([found[0] + ones * np.eye(found[0].shape[-1]), *found[1:]])

    def times(self, number: Any) -> MovingMatrix:
        """Return a multiple."""
        return MovingMatrix([number * x for x in self.parts])

    def __matmul__(self, other: MovingMatrix) -> MovingMatrix:
        """Return the product, and by Leibniz's rule how it changes."""
        pairs = [[(own, whole ^ own) for own in subsets(whole)] for whole in range(len(self.parts))]
        return MovingMatrix([sum_of([self.parts[i] @ other.parts[j] for i, j in own]) for own in pairs])

    def solve(self, right: MovingMatrix) -> MovingMatrix:
        """Return the solution of systems with this matrix, and how it changes."""
        found: list[Any] = []
        for whole, side in enumerate(right.parts):
            known = [self.parts[own] @ found[whole ^ own] for own in subsets(whole) if own]
            found.append(np.linalg.solve(self.parts[0], side - sum_of(known) if known else side))
        return MovingMatrix(found)


def subsets(whole: int) -> list[int]:
    """Return the numbers whose bits are all in another one."""
    return [own for own in range(whole + 1) if own & whole == own]


def sum_of(terms: Sequence[Any]) -> Any:
    """Return the sum of matrices, of which there is one at least."""
    return sum(terms[1:], terms[0])


def usual_expm(a: Any, *directions: Any) -> tuple[Any, Any] | None:
    """Return the exponential, or its derivative along directions, of matrices that are not large.

    By the approximant of degree 13 of a matrix halved until it is small enough, squared as often (A. H. Al-Mohy and
    N. J. Higham, Computing the Fréchet derivative of the matrix exponential, with an application to condition number
    estimation, 2009, section 6).
    """
    if a.shape[-1] > LARGEST or len(directions) > 2 or a.dtype.char not in "dD":
        return None
    size = np.max(np.sum(np.abs(a), axis=-2), axis=-1, initial=0)[..., None, None]
    powers = [size > WITHIN * 2.0**k for k in range(SQUARINGS)]
    scale = np.ones_like(size)
    for is_large in powers:
        scale = np.where(is_large, scale / 2, scale)
    parts = [scale * x for x in (a, *directions)]
    if len(directions) > 1:
        parts.append(np.zeros_like(parts[0]))
    found = approximant(MovingMatrix(parts))
    for is_large in powers:
        squared = found @ found
        pairs = zip(squared.parts, found.parts, strict=True)
        found = MovingMatrix([np.where(is_large, y, x) for y, x in pairs])
    return found.parts[-1], np.all(size <= WITHIN * 2.0**SQUARINGS)


def approximant(x: MovingMatrix) -> MovingMatrix:
    """Return the exponential of matrices that are small."""
    second = x @ x
    fourth = second @ second
    sixth = fourth @ second

    def sum_from(k: int, start: MovingMatrix, ones: float = 0.0) -> MovingMatrix:
        return start.add_multiples((PADE[k + 4], sixth), (PADE[k + 2], fourth), (PADE[k], second), ones=ones)

    zero = x.times(0.0)
    odd = x @ sum_from(3, sixth @ sum_from(9, zero), PADE[1])
    even = sum_from(2, sixth @ sum_from(8, zero), PADE[0])
    return even.add_multiples((-1.0, odd)).solve(even.add_multiples((1.0, odd)))


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


expm = function_of_matrix("expm", evaluate_expm, usual_expm)
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
