"""Some eigenvalues of sparse matrices that are not Hermitian, as `wengert.scipy.sparse.linalg.eigs` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_choice
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply, as_tensor
from wengert.errors import UsageError
from wengert.implicit.attaching import implicit_solution
from wengert.implicit.solver_call import solve_without_derivatives
from wengert.primitives.sparse.direct_solves import factor_dtype
from wengert.primitives.sparse.eigenpairs import start_of
from wengert.primitives.sparse.products import sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern
from wengert.scipy.sparse._construction import coo_array
from wengert.scipy.sparse._eigenvalues import require_count, require_none, start_vector
from wengert.scipy.sparse._operands import sparse_operand
from wengert.scipy.sparse._operators import LinearOperator, product_of, require_square, settling
from wengert.transforms.reverse import stop_gradient


def eigs(
    A: Any,  # noqa: N803 - SciPy's name
    k: int = 6,
    M: Any = None,  # noqa: N803 - SciPy's name
    sigma: complex | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,  # noqa: N803 - SciPy's name
    OPinv: Any = None,  # noqa: N803 - SciPy's name
    OPpart: Any = None,  # noqa: N803 - SciPy's name
    rng: Any = None,
) -> Any:
    """Return some eigenvalues of a sparse square matrix, and vectors; see `scipy.sparse.linalg.eigs`.

    Derivatives are those of A v = w v, where v keeps its length of one and the phase of its largest element: for each
    eigenvalue one sparse factor, of twice as many rows, serves all. (R. Nelson, Simplified calculation of eigenvector
    derivatives, 1976.)

    Args:
        A: a sparse array; or a `LinearOperator`, whose product is differentiated by what it captures.
        k: how many, fewer than there are less one.
        M: not taken.
        sigma: the number near to which they are; of a sparse array.
        which: "LM", "SM", "LR", "SR", "LI" or "SI", as SciPy has it; with sigma, of 1 / (w - sigma).
        v0: the vector to begin with, of shape (n,); by default the same each time.
        ncv: the number of Arnoldi vectors.
        maxiter: the most iterations.
        tol: how exact they are; derivatives are as exact. By default as exact as can be.
        return_eigenvectors: whether vectors are returned.
        Minv: not taken.
        OPinv: not taken.
        OPpart: not taken.
        rng: not taken: nothing is random.

    Returns:
        Eigenvalues, complex numbers in SciPy's order, of shape (k,), and vectors as columns, of shape (n, k); or the
        values alone.

    Raises:
        scipy.sparse.linalg.ArpackNoConvergence: not all have been found; it has those that have.
        NumericalError: when differentiated: an eigenvalue is repeated.
        UsageError: `k` is too large, or something is not taken.
        ShapeError: the matrix is not square, or `v0` has another length.
        DtypeError: it is not sparse.

    >>> import wengert as wg
    >>> from wengert.scipy.sparse import csr_array
    >>> turn = lambda a: csr_array(np.array([[0.0, -1.0, 0, 0], [1, 0, 0, 0], [0, 0, 0.3, 1], [0, 0, 0, 0.2]])) * a
    >>> largest = lambda a: np.abs(eigs(turn(a), 1, which="LI", return_eigenvectors=False)[0])
    >>> round(float(largest(2.0)), 9), round(float(wg.grad(largest)(2.0)), 9)
    (2.0, 1.0)
    """
    operator = A if isinstance(A, LinearOperator) else None
    matrix: Any = operator or sparse_operand("eigs", A, in_full="numpy.linalg.eig")
    require_choice("eigs", "which", which, ("LM", "SM", "LR", "SR", "LI", "SI"))
    require_none("eigs", M=M, Minv=Minv, OPinv=OPinv, OPpart=OPpart, rng=rng)
    if operator is not None:
        require_square("eigs", operator.shape)
        if sigma is not None:
            needed = "a sparse array is needed, whose factor A - sigma is made"
            raise UsageError("eigs", "sigma of a LinearOperator", needed, "Leave sigma out, or make the array")
    size = matrix.shape[0]
    options = {"k": require_count("eigs", k, size - 1), "which": which, "ncv": ncv, "maxiter": maxiter}
    options |= {"sigma": sigma, "tol": float(tol)}
    start = start_vector("eigs", v0, size)
    pairs = pairs_of_operator(operator, start, options) if operator else pairs_of_matrix(matrix, start, options)
    return pairs if return_eigenvectors else pairs[0]


def pairs_of_matrix(matrix: Any, v0: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return eigenvalues and vectors of a sparse array."""
    matrix = matrix.tocsr()  # in which each element has one place in a vector
    pattern, data = matrix._pattern, as_tensor(matrix.data)

    def product(v: Any, data: Any) -> Any:
        return apply(sparse_product, data, v, pattern=pattern, transposed=False)

    places, whole = bordered_places(pattern)

    def elements(pair: Any, fixed: Any, data: Any) -> Any:
        """Return the stored elements of the Jacobian of the equations of a pair."""
        return coo_array((bordered_elements(pair, fixed, data), places), shape=(2 * len(pair[1]) + 2,) * 2).tocsr().data

    dtype = np.result_type(factor_dtype(aval_of(data).dtype), np.complex64)
    found = found_pairs(lambda data: pattern.matrix(data), (data,), v0, pattern.shape[0], dtype, options)
    return attach_derivatives(product, found, (data,), {"jacobian": elements, "linear_solver": whole})


def pairs_of_operator(a: LinearOperator, v0: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return eigenvalues and vectors of a matrix that is known by its products."""
    from scipy.sparse import linalg

    own = np.dtype(a.dtype or float)
    product = product_of("eigs", a.matvec, a.shape, is_real=False)

    def operator() -> Any:
        return linalg.LinearOperator(a.shape, matvec=product, dtype=own)

    found = found_pairs(operator, (), v0, a.shape[0], np.result_type(own, np.complex64), options)
    return attach_derivatives(product, found, (), {})


def found_pairs(
    matrix: Callable[..., Any], args: Any, v0: Any, size: int, dtype: np.dtype[Any], options: dict[str, Any]
) -> tuple[Any, Any]:
    """Return what SciPy finds, without derivatives."""
    from scipy.sparse import linalg

    given = {key: value for key, value in options.items() if value is not None}

    def solve(v0: Any, *args: Any) -> tuple[Any, Any]:
        whole = matrix(*args)
        start, others = start_of(v0, size, factor_dtype(whole.dtype))
        values, vectors = linalg.eigs(whole, v0=start, **given, **others)
        return values.astype(dtype), vectors.astype(dtype)

    def like(*_: Any) -> tuple[Any, Any]:
        return np.zeros(given["k"], dtype), np.zeros((size, given["k"]), dtype)

    found: tuple[Any, Any] = solve_without_derivatives(solve, (v0, *args), {}, like)
    return found


def attach_derivatives(product: Callable[..., Any], found: Any, args: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return eigenvalues and vectors with the derivatives of their equations."""

    def equations(pair: Any, fixed: Any, *args: Any) -> Any:
        w, v = pair
        return [product(v, *args) - w * v, (1 - np.sum(np.abs(v) ** 2)) / 2, np.sum(np.conj(fixed) * v).imag]

    w, v = found
    pairs = []
    for i in range(w.shape[0]):
        own = stop_gradient(v[:, i])
        fixed = np.where(np.arange(own.shape[0]) == np.argmax(np.abs(own)), own, 0)
        pairs.append(implicit_solution(equations, (w[i], v[:, i]), (fixed, *args), name="eigs", **options))
    values, vectors = settled(*[np.stack(parts) for parts in zip(*pairs, strict=True)])
    return as_tensor(values), as_tensor(vectors).T


settled = settling("eigs")


# The Jacobian by the real and imaginary parts of w and v, in this order


def bordered_places(pattern: StoragePattern) -> tuple[tuple[Any, Any], StoragePattern]:
    """Return the rows and columns of the elements of the Jacobian, and where these are stored."""

    def make() -> tuple[tuple[Any, Any], StoragePattern]:
        n = pattern.shape[0]
        own, (rows, columns) = np.arange(n), pattern.coordinates
        blocks = [(0, 2), (0, n + 2), (n, 2), (n, n + 2)]
        inner = [(rows + i, columns + j) for i, j in blocks] + [(own + i, own + j) for i, j in blocks]
        beside = [(own + i, np.full(n, j)) for i in (0, n) for j in (0, 1)]
        below = [(np.full(n, 2 * n + i), own + j) for i in (0, 1) for j in (2, n + 2)]
        found = tuple(np.concatenate(part) for part in zip(*inner, *beside, *below, strict=True))
        ones = coo_array((as_tensor(np.ones(len(found[0]))), found), shape=(2 * n + 2,) * 2)
        return (found[0], found[1]), ones.tocsr()._pattern

    found: tuple[tuple[Any, Any], StoragePattern] = pattern.derive("bordered", make)
    return found


def bordered_elements(pair: Any, fixed: Any, data: Any) -> Any:
    """Return the elements at these places; some places come up twice."""
    w, v = pair
    one = np.ones(v.shape[0], v.real.dtype)
    inner = [data.real, -data.imag, data.imag, data.real, -w.real * one, w.imag * one, -w.imag * one, -w.real * one]
    return np.concatenate([*inner, -v.real, v.imag, -v.imag, -v.real, -v.real, -v.imag, -fixed.imag, fixed.real])
