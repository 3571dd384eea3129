"""Sparse systems, least squares and eigenvalues with SciPy's signatures: `wengert.scipy.sparse.linalg`.

SciPy solves; derivatives by the right-hand side and by the stored elements of the matrix are solutions of the same
matrix or its transpose, in both modes and to any order. One factor of a matrix serves values, tangents, cotangents and
lanes. Iterative solutions are as exact as `rtol` says, their derivatives, too; what has not converged has none.

>>> import numpy as np
>>> import wengert as wg
>>> from wengert.scipy import sparse
>>> def deflection(k):
...     stiffness = sparse.diags_array([k[1:] + k[:-1], -k[1:-1], -k[1:-1]], offsets=[0, 1, -1])
...     return spsolve(stiffness, np.ones(3)).sum()
>>> wg.grad(deflection)(np.ones(4)).round(6)
array([-2.25, -0.25, -0.25, -2.25])
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole, require_choice
from wengert.core.values.aval import shape_of
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.implicit.solver_call import captured_values
from wengert.primitives.sparse import iterative_solves
from wengert.primitives.sparse.direct_solves import factor_of, sparse_solve
from wengert.primitives.sparse.exponentials import exponential_product
from wengert.primitives.sparse.iterative_solves import iterative_solve
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.scipy.sparse._eigenvalues import eigsh, svds
from wengert.scipy.sparse._operands import given_options, right_side, sparse_operand
from wengert.scipy.sparse._operators import LinearOperator, as_scipy, fit_damped, fit_operator, solve_operator
from wengert.scipy.sparse._square_eigenvalues import eigs
from wengert.support.caches import FACTORS
from wengert.support.hints import names_on_demand

__all__ = [
    "LinearOperator",
    "SparseFactors",
    "bicgstab",
    "cg",
    "eigs",
    "eigsh",
    "expm_multiply",
    "factorized",
    "gmres",
    "lsmr",
    "lsqr",
    "minres",
    "splu",
    "spsolve",
    "svds",
]


# Direct solutions


class SparseFactors:
    """Be the factor of a sparse matrix, as `splu` gives it.

    Attributes:
        shape: of the matrix.
    """

    def __init__(self, matrix: SparseTensor, options: tuple[tuple[str, Any], ...]) -> None:
        self.shape = matrix.shape
        self._matrix, self._options = matrix, options
        self.__wrapped__ = matrix  # where what it holds is looked for
        self._factor = None
        if is_concrete(matrix.data):  # singular matrices are told at once, and the factor lives as long as this
            self._factor = factor_of("splu", matrix._pattern, options, np.asarray(raw(matrix.data)))

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Return the solution of a system with the matrix, its transpose ("T") or its adjoint ("H").

        Args:
            rhs: the right-hand side, of shape (n,) or (n, k).
            trans: which.

        Returns:
            A Tensor of the shape of `rhs`.

        Raises:
            ShapeError: `rhs` has another length.
            UsageError: `trans` is something else.
            NumericalError: the matrix is singular.
        """
        require_choice("solve", "trans", trans, ("N", "T", "H"), action="Leave it out")
        b = right_side("solve", self.shape[0], rhs, 2)
        if self._factor is not None:
            FACTORS.remember(self._factor)
        params = {"pattern": self._matrix._pattern, "options": self._options, "name": "splu"}
        if trans == "H":
            return np.conj(apply(sparse_solve, self._matrix.data, np.conj(b), transposed=True, **params))
        return apply(sparse_solve, self._matrix.data, b, transposed=trans == "T", **params)


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:  # noqa: N803 - SciPy's
    """Return the solution of a sparse linear system; see `scipy.sparse.linalg.spsolve`.

    Args:
        A: a square sparse array.
        b: the right-hand side, of shape (n,) or (n, k).
        permc_spec: how SuperLU orders columns.
        use_umfpack: not used: SuperLU solves.

    Returns:
        A Tensor of the shape of `b`.

    Raises:
        NumericalError: the matrix is singular.
        ShapeError: it is not square, or `b` has another length.
        DtypeError: it is not sparse, or `b` is.

    >>> from wengert.scipy.sparse import diags_array
    >>> spsolve(diags_array(np.array([2.0, 4.0])), np.ones(2))
    tensor([0.5 , 0.25])
    """
    matrix = sparse_operand("spsolve", A)
    params = {"pattern": matrix._pattern, "options": given_options(permc_spec=permc_spec), "name": "spsolve"}
    right = right_side("spsolve", matrix.shape[0], b, 2)
    return apply(sparse_solve, as_tensor(matrix.data), right, transposed=False, **params)


def splu(
    A: Any,  # noqa: N803 - SciPy's name
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
) -> SparseFactors:
    """Return the factor of a sparse matrix, whose method `solve` solves systems; see `scipy.sparse.linalg.splu`.

    Args:
        A: a square sparse array.
        permc_spec: how SuperLU orders columns.
        diag_pivot_thresh: from which part of the largest element of a column on the diagonal is its pivot.
        relax: how many columns may be merged.
        panel_size: how many columns are worked on at once.

    Returns:
        An object with a method `solve(rhs, trans="N")`, whose derivatives are by `A` and `rhs`.

    Raises:
        NumericalError: the matrix is singular.
        ShapeError: it is not square.
        DtypeError: it is not sparse.

    >>> from wengert.scipy.sparse import diags_array
    >>> splu(diags_array(np.array([2.0, 4.0]))).solve(np.ones(2), "T")
    tensor([0.5 , 0.25])
    """
    options = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax}
    return SparseFactors(sparse_operand("splu", A), given_options(**options, panel_size=panel_size))


def factorized(A: Any) -> Callable[[Any], Any]:  # noqa: N803 - SciPy's name
    """Return the function that solves systems with a sparse matrix; see `scipy.sparse.linalg.factorized`.

    Args:
        A: a square sparse array.

    Returns:
        A function of the right-hand side.

    Raises:
        NumericalError: the matrix is singular.
        ShapeError: it is not square.

    >>> from wengert.scipy.sparse import diags_array
    >>> factorized(diags_array(np.array([2.0, 4.0])))(np.ones(2))
    tensor([0.5 , 0.25])
    """
    return splu(A).solve


# Iterative solutions


def solve_by(name: str, a: Any, b: Any, x0: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the solution that one of SciPy's methods finds, and what it says of it."""
    if isinstance(a, LinearOperator):
        return solve_operator(name, a, b, x0, options)
    matrix, inverse = sparse_operand(name, a), options.get("M")
    right = right_side(name, matrix.shape[0], b, 1)
    if inverse is not None and captured_values(functools.partial(as_scipy, inverse)):
        product = functools.partial(operator.matmul, matrix)  # where what is captured is looked for
        return solve_operator(name, LinearOperator((len(right), len(right)), product), b, x0, options)
    options = {**options, "M": as_scipy(inverse)}
    start = np.zeros(right.shape, right.dtype) if x0 is None else right_side(name, matrix.shape[0], x0, 1)
    params = {"method": name, "pattern": matrix._pattern, "options": given_options(**options)}
    x, info = apply(iterative_solve, as_tensor(matrix.data), right, start, transposed=False, unit=False, **params)
    return x, info


def method_of(name: str, summary: str, more: dict[str, tuple[Any, str]]) -> Callable[..., tuple[Any, Any]]:
    """Return the function that solves systems by one of SciPy's methods."""

    def method(
        A: Any,  # noqa: N803 - SciPy's name
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        **options: Any,
    ) -> tuple[Any, Any]:
        unknown = options.keys() - more.keys() - {"maxiter", "M", "callback"}
        if unknown:
            raise TypeError(f"{name}() got an unexpected keyword argument {min(unknown)!r}")
        return solve_by(name, A, b, x0, {"rtol": rtol, **options})

    lines = "".join([f"        {key}: {text}\n" for key, (_, text) in more.items()])
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""Return the solution of a sparse linear system by {summary}; see `scipy.sparse.linalg.{name}`.

    Args:
        A: a square sparse array, or a `LinearOperator`.
        b: the right-hand side, of shape (n,) or (n, 1).
        x0: where to begin; no derivative depends on it.
        rtol: how small the residual is to be, for a right-hand side of length one. Derivatives are as exact.
{lines}        maxiter: the most iterations.
        M: a preconditioner: what is like the inverse of `A`, a sparse array, a `LinearOperator`, or one of SciPy's; it
            may capture what is differentiated, and no derivative depends on it.
        callback: called after each iteration, as SciPy calls it.

    Returns:
        The solution, a Tensor of shape (n,), and SciPy's `info`: 0, or how many iterations were not enough, or less.
        Of a `LinearOperator` it is 0 or `maxiter`, as the residual tells.

    Raises:
        NumericalError: when differentiated: it, or the system of the derivative, has not converged; of a
            `LinearOperator` that is one of normal equations, by conjugate gradients.
        ShapeError: the matrix is not square, or `b` has another length.
        DtypeError: it is not sparse.

    >>> from wengert.scipy.sparse import diags_array
    >>> x, info = {name}(diags_array(np.array([2.0, 4.0])), np.ones(2), rtol=1e-10)
    >>> x.round(6), int(info)
    (tensor([0.5 , 0.25]), 0)
    """
    return method


ATOL = {"atol": (0.0, "how small it is to be at least, whatever the right-hand side.")}
cg = method_of("cg", "conjugate gradients, for positive definite matrices", ATOL)
bicgstab = method_of("bicgstab", "stabilised biconjugate gradients", ATOL)
gmres = method_of(
    "gmres",
    "generalised minimal residuals",
    {
        **ATOL,
        "restart": (None, "iterations between two restarts."),
        "callback_type": (None, "what the callback is given, as SciPy has it."),
    },
)
minres = method_of(
    "minres",
    "minimal residuals, for symmetric matrices",
    {"shift": (0.0, "a multiple of the identity that is subtracted from `A`.")},
)


def least_squares_by(name: str, a: Any, b: Any, damp: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return what `lsqr` or `lsmr` gives."""
    if shape_of(damp) != ():
        given = f"damp of shape {shape_of(damp)}"
        raise ShapeError(name, given, "one number is needed", "Divide columns of the matrix by weights")
    if isinstance(a, LinearOperator):
        return fit_operator(name, a, b, damp, options)
    matrix = sparse_operand(name, a, is_square=False)
    if "c" in (matrix.dtype.kind, np.asarray(b).dtype.kind if type(b) is not Tensor else b.dtype.kind):
        needed = "real numbers are needed"
        raise DtypeError(name, "complex numbers", needed, "Write the system in real and imaginary parts")
    if type(damp) is Tensor:  # by which solutions are differentiated as those of equations are
        return fit_damped(name, matrix, b, damp, options)
    right = right_side(name, matrix.shape[0], b, 1)
    params = {"method": name, "pattern": matrix._pattern, "damp": float(damp), "options": given_options(**options)}
    found: tuple[Any, ...] = apply(getattr(iterative_solves, name), as_tensor(matrix.data), right, **params)
    return found


def lsqr(
    A: Any,  # noqa: N803 - SciPy's name
    b: Any,
    damp: Any = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    calc_var: bool = False,
) -> tuple[Any, ...]:
    """Return the least squares solution of a sparse system; see `scipy.sparse.linalg.lsqr`.

    Args:
        A: a sparse array of shape (m, n), or a `LinearOperator`, whose product is differentiated by what it captures.
            Its columns are to be independent if there is no damping and it is differentiated.
        b: the right-hand side, of shape (m,) or (m, 1).
        damp: the damping d, a number: what is minimised is |A x - b|^2 + d^2 |x|^2. The solution is differentiated by
            it, too, with systems of normal equations, by conjugate gradients.
        atol: how exact the elements of `A` are; derivatives are as exact.
        btol: how exact those of `b` are.
        conlim: the greatest condition.
        iter_lim: the most iterations.
        calc_var: whether variances are computed.

    Returns:
        The solution, a Tensor of shape (n,), and eight numbers and variances as SciPy has them, without derivatives.

    Raises:
        NumericalError: when differentiated: it, or the system of the derivative, has not converged; of a
            `LinearOperator` that is one of normal equations, by conjugate gradients.
        UsageError: something else than the solution is differentiated.
        ShapeError: `b` has another length.
        DtypeError: the matrix is not sparse.

    >>> from wengert.scipy.sparse import csr_array
    >>> lsqr(csr_array(np.array([[1.0], [1.0]])), np.array([1.0, 3.0]))[0].round(6)
    tensor([2.])
    """
    options = {"atol": atol, "btol": btol, "conlim": conlim, "iter_lim": iter_lim, "calc_var": calc_var}
    return least_squares_by("lsqr", A, b, damp, options)


def lsmr(
    A: Any,  # noqa: N803 - SciPy's name
    b: Any,
    damp: Any = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
) -> tuple[Any, ...]:
    """Return the least squares solution of a sparse system; see `scipy.sparse.linalg.lsmr`.

    Args:
        A: a sparse array of shape (m, n), or a `LinearOperator`, whose product is differentiated by what it captures.
            Its columns are to be independent if there is no damping and it is differentiated.
        b: the right-hand side, of shape (m,) or (m, 1).
        damp: the damping d, a number: what is minimised is |A x - b|^2 + d^2 |x|^2. The solution is differentiated by
            it, too, with systems of normal equations, by conjugate gradients.
        atol: how exact the elements of `A` are; derivatives are as exact.
        btol: how exact those of `b` are.
        conlim: the greatest condition.
        maxiter: the most iterations.

    Returns:
        The solution, a Tensor of shape (n,), and seven numbers as SciPy has them, without derivatives.

    Raises:
        NumericalError: when differentiated: it, or the system of the derivative, has not converged; of a
            `LinearOperator` that is one of normal equations, by conjugate gradients.
        UsageError: something else than the solution is differentiated.
        ShapeError: `b` has another length.
        DtypeError: the matrix is not sparse.

    >>> from wengert.scipy.sparse import csr_array
    >>> lsmr(csr_array(np.array([[1.0], [1.0]])), np.array([1.0, 3.0]))[0].round(6)
    tensor([2.])
    """
    return least_squares_by("lsmr", A, b, damp, {"atol": atol, "btol": btol, "conlim": conlim, "maxiter": maxiter})


if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.sparse.linalg")


SAMPLES = 50
"""How many times there are if nobody says it, as in `numpy.linspace`."""


def expm_multiply(
    A: Any,  # noqa: N803 - SciPy's name
    B: Any,  # noqa: N803 - SciPy's name
    start: Any = None,
    stop: Any = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: Any = None,  # noqa: N803 - SciPy's name
) -> Any:
    """Return the exponential of a sparse matrix times an array, exp(A) B; see `scipy.sparse.linalg.expm_multiply`.

    Derivatives are by the stored elements of `A`, by `B`, `start` and `stop`, in both modes and to any order, and no
    matrix in full is made. At several times each is made from the one before.

    Args:
        A: a square sparse array of shape (n, n).
        B: an array of shape (n,) or (n, k).
        start: the first time t of exp(t A) B, a number, if there are several.
        stop: the last one, a number.
        num: how many times there are, evenly spaced; by default 50.
        endpoint: whether `stop` is one of them, which it is by default.
        traceA: not used: the trace is summed up.

    Returns:
        A Tensor of the shape of `B`; at several times of the shape (num, *B.shape).

    Raises:
        ShapeError: `A` is not square, or `B` has another length.
        DtypeError: `A` is not sparse, or `B` is.
        UsageError: only one of `start` and `stop` is given, or `num` or `endpoint` without them.

    >>> import wengert as wg
    >>> from wengert.scipy.sparse import csr_array
    >>> turned = lambda angle: expm_multiply(csr_array([[0.0, -1.0], [1.0, 0.0]]) * angle, np.array([1.0, 0.0]))
    >>> turned(np.pi / 2).round(6)
    tensor([0., 1.])
    >>> wg.jvp(turned, (np.pi / 2,), (1.0,))[1].round(6)
    array([-1.,  0.])
    """
    matrix = sparse_operand("expm_multiply", A, False, "wengert.scipy.linalg.expm")
    if matrix.shape[0] != matrix.shape[1]:
        given = f"a matrix of shape {matrix.shape}"
        raise ShapeError("expm_multiply", given, "a square one is needed", "Only square matrices have exponentials")
    x, data = right_side("expm_multiply", matrix.shape[0], B, 2), as_tensor(matrix.data)
    params = {"pattern": matrix._pattern, "transposed": False}
    if start is None and stop is None and num is None and endpoint is None:
        return apply(exponential_product, data, x, **params)
    if start is None or stop is None or np.shape(start) != () or np.shape(stop) != ():
        given = "times of which start or stop is none or no number"
        raise UsageError("expm_multiply", given, "both are needed as numbers", "Pass both, or leave all out")
    count = SAMPLES if num is None else as_whole("expm_multiply", "num", num, 1)
    step = data * ((stop - start) / max(1, count - (endpoint is None or bool(endpoint))))
    found = [apply(exponential_product, data * start, x, **params)]
    for _ in range(count - 1):
        found.append(apply(exponential_product, step, found[-1], **params))
    return np.stack(found)
