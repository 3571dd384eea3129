"""Functions of matrices, with SciPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from wengert.core.values.dispatch import apply, implements
from wengert.errors import UsageError
from wengert.numpy._namespace import document_as
from wengert.primitives.linear_algebra import matrix_functions
from wengert.scipy._linear_algebra import known_square, solve, square_matrices

NOT_GIVEN: Any = object()


@implements(scipy.linalg.expm)
def expm(A: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the exponential of a matrix; see `scipy.linalg.expm`."""
    return apply(matrix_functions.expm, square_matrices("expm", A))


def refuse_error_estimate(name: str, disp: Any) -> None:
    """Refuse to return an estimate of the error."""
    if disp is not NOT_GIVEN and not disp:
        raise UsageError(name, "disp=False", "the result alone is needed", "Leave it out; SciPy has deprecated it")


@implements(scipy.linalg.logm)
def logm(A: Any, disp: Any = NOT_GIVEN) -> Any:  # noqa: N803 - SciPy's name
    """Return the logarithm of a matrix; see `scipy.linalg.logm`."""
    refuse_error_estimate("logm", disp)
    return apply(matrix_functions.logm, known_square("logm", A))


@implements(scipy.linalg.sqrtm)
def sqrtm(A: Any, disp: Any = NOT_GIVEN, blocksize: Any = NOT_GIVEN) -> Any:  # noqa: N803 - SciPy's name
    """Return the square root of a matrix; see `scipy.linalg.sqrtm`."""
    refuse_error_estimate("sqrtm", disp)
    return apply(matrix_functions.sqrtm, known_square("sqrtm", A))


@implements(scipy.linalg.fractional_matrix_power)
def fractional_matrix_power(A: Any, t: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return a power of a matrix, which is constant to differentiation; see `scipy.linalg.fractional_matrix_power`."""
    x = square_matrices("fractional_matrix_power", A)
    if float(t) == int(t):
        return np.linalg.matrix_power(x, int(t))
    known_matrix = known_square("fractional_matrix_power", x)
    return apply(matrix_functions.fractional_matrix_power, known_matrix, exponent=float(t))


def enter_by_exponential(
    scipys: Callable[..., Any], summary: str, formula: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Enter and return a function of square matrices that is made of exponentials."""
    name = scipys.__name__

    @implements(scipys)
    @document_as(name, summary, "scipy.linalg")
    def compute(A: Any) -> Any:  # noqa: N803 - SciPy's name
        return formula(square_matrices(name, A))

    return compute


cosm = enter_by_exponential(
    scipy.linalg.cosm,
    "Return the cosine of a matrix",
    lambda x: 0.5 * (expm(1j * x) + expm(-1j * x)) if x.dtype.kind == "c" else expm(1j * x).real,
)
sinm = enter_by_exponential(
    scipy.linalg.sinm,
    "Return the sine of a matrix",
    lambda x: -0.5j * (expm(1j * x) - expm(-1j * x)) if x.dtype.kind == "c" else expm(1j * x).imag,
)
coshm = enter_by_exponential(
    scipy.linalg.coshm, "Return the hyperbolic cosine of a matrix", lambda x: 0.5 * (expm(x) + expm(-x))
)
sinhm = enter_by_exponential(
    scipy.linalg.sinhm, "Return the hyperbolic sine of a matrix", lambda x: 0.5 * (expm(x) - expm(-x))
)


@implements(scipy.linalg.tanm)
def tanm(A: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the tangent of a matrix; see `scipy.linalg.tanm`."""
    return solve(cosm(A), sinm(A))


@implements(scipy.linalg.tanhm)
def tanhm(A: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the hyperbolic tangent of a matrix; see `scipy.linalg.tanhm`."""
    return solve(coshm(A), sinhm(A))
