"""Functions of matrices.

A function of a matrix [[A, E], [0, A]] has f(A) on its diagonal and the derivative of f at A along E in its corner.
That is a function of a matrix again, so derivatives of every order follow, at repeated eigenvalues and defective
matrices, too.
(I. Najfeld and T. F. Havel, Derivatives of the matrix exponential and their computation, 1995; R. Mathias, A chain rule
for matrix functions and applications, 1996; N. J. Higham, Functions of Matrices, 2008, theorem 3.6.)
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.declare import opaque
from wengert.core.dispatch import apply
from wengert.core.primitive import Primitive
from wengert.core.routine import Routine
from wengert.primitives.matrices import over_stacks
from wengert.primitives.matrix_equations import solve_sylvester

Tangents = Sequence[Any]


def along(primitive: Primitive, a: Any, direction: Any, **params: Any) -> Any:
    """Return the derivative of a function of matrices at A along a direction."""
    n = a.shape[-1]
    upper = np.concatenate([a, direction], axis=-1)
    lower = np.concatenate([np.zeros_like(a), a], axis=-1)
    found = apply(primitive, np.concatenate([upper, lower], axis=-2), **params)
    return found[..., :n, n:]


def function_of_matrix(name: str, evaluate: Any, **derived: Any) -> Primitive:
    """Declare a function of matrices; `derived` are its parameters where its derivative is computed."""

    def vjp(ct: Any, _out: Any, a: Any, **params: Any) -> Any:
        return along(primitive, a.mT, ct, **{**params, **derived})

    def jvp(tangents: Tangents, _out: Any, a: Any, **params: Any) -> Any:
        return along(primitive, a, tangents[0], **{**params, **derived})

    primitive: Primitive = opaque(name, evaluate, vjp=vjp, jvp=jvp, form=Routine("(n,n)->(n,n)"))
    return primitive


def evaluate_expm(a: Any) -> Any:
    """Evaluate `scipy.linalg.expm`."""
    from scipy import linalg

    return linalg.expm(a)


TURN = 1e-2
"""By which angle matrices are turned whose eigenvalues lie on the cut of the logarithm, or half as far from it."""


def turn_of(a: Any) -> float:
    """Return the angle by which a matrix with pairs of equal eigenvalues is turned to have none on the negative axis.

    There rounding would put the two of a pair on both sides of the cut, and the corner, the difference of their
    logarithms over that of them, would be arbitrary. Four that are equal are found to the fourth root of the precision.
    """
    angles = np.angle(np.linalg.eigvals(a))
    near = angles[np.abs(angles) > np.pi - TURN / 2]
    return 0.0 if not near.size else TURN if np.any(near > 0) else -TURN


def evaluate_logm(a: Any, *, quiet: bool) -> Any:
    """Evaluate `scipy.linalg.logm`; quietly for derivatives, without its warnings about accuracy."""
    from scipy import linalg

    def turned(x: Any) -> Any:
        angle = turn_of(x)
        return linalg.logm(x * np.exp(-1j * angle)) + 1j * angle * np.eye(len(x)) if angle else linalg.logm(x)

    with warnings.catch_warnings() if quiet else contextlib.nullcontext():
        if quiet:
            warnings.simplefilter("ignore")
        return over_stacks(turned if quiet else linalg.logm, [2], a)


def evaluate_power(a: Any, *, exponent: float, doubled: bool) -> Any:
    """Evaluate `scipy.linalg.fractional_matrix_power`, doubled for derivatives."""
    from scipy import linalg

    def turned(x: Any) -> Any:
        angle = turn_of(x) if doubled else 0.0
        if not angle:
            return linalg.fractional_matrix_power(x, exponent)
        return linalg.fractional_matrix_power(x * np.exp(-1j * angle), exponent) * np.exp(1j * angle * exponent)

    return over_stacks(turned, [2], a)


expm = function_of_matrix("expm", evaluate_expm)
logm = function_of_matrix("logm", evaluate_logm, quiet=True)
fractional_matrix_power = function_of_matrix("fractional_matrix_power", evaluate_power, doubled=True)


# Square roots


def evaluate_sqrtm(a: Any) -> Any:
    """Evaluate `scipy.linalg.sqrtm`."""
    from scipy import linalg

    return over_stacks(linalg.sqrtm, [2], a)


def vjp_sqrtm(ct: Any, out: Any, _a: Any) -> Any:
    """Solve X^T Y + Y X^T = ct: the transpose of X dX + dX X = dA (Higham 2008, section 6.1)."""
    return apply(solve_sylvester, out.mT, out.mT, ct)


def jvp_sqrtm(tangents: Tangents, out: Any, _a: Any) -> Any:
    """Solve X dX + dX X = dA."""
    return apply(solve_sylvester, out, out, tangents[0])


sqrtm = opaque("sqrtm", evaluate_sqrtm, vjp=vjp_sqrtm, jvp=jvp_sqrtm, form=Routine("(n,n)->(n,n)"))
