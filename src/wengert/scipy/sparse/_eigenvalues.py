"""Some eigenvalues and singular values of sparse matrices, as `wengert.scipy.sparse.linalg` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_choice, shown
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError
from wengert.primitives.linear_algebra.matrices import adjoint
from wengert.primitives.sparse.eigenpairs import sparse_eigh, sparse_eigvalsh
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.scipy.sparse._construction import block_array
from wengert.scipy.sparse._operands import given_options, sparse_operand
from wengert.scipy.sparse._operators import LinearOperator, eigenpairs_of_operator, require_square

VECTORS = (True, False, "u", "vh")


def start_vector(name: str, v0: Any, size: int) -> Any:
    """Return the vector to begin with, or an empty one if there is none."""
    start = np.zeros(0) if v0 is None else v0
    if v0 is not None and np.shape(start) != (size,):
        given = f"v0 of shape {np.shape(start)}"
        raise ShapeError(name, given, f"shape ({size},) is needed", "Leave it out, to begin with the same each time")
    return start if type(start) is Tensor else np.asarray(start)


def require_none(name: str, **given: Any) -> None:
    """Refuse arguments of SciPy's that are not taken."""
    for key, value in given.items():
        if value is not None:
            needed = "the problem A v = w v of a sparse array is needed"
            raise UsageError(name, f"{key}={shown(value)}", needed, "Leave it out, or use eigh of wengert.scipy.linalg")


def require_count(name: str, k: Any, size: int) -> int:
    """Return how many are asked for, which must be less than there are."""
    if not isinstance(k, int | np.integer) or not 0 < k < size:
        needed = f"a whole number from 1 to {size - 1} is needed"
        action = "Use numpy.linalg of the whole matrix, A.toarray(), for all of them"
        raise UsageError(name, f"k={shown(k)} of {size}", needed, action)
    return int(k)


def eigsh(
    A: Any,  # noqa: N803 - SciPy's name
    k: int = 6,
    M: Any = None,  # noqa: N803 - SciPy's name
    sigma: float | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,  # noqa: N803 - SciPy's name
    OPinv: Any = None,  # noqa: N803 - SciPy's name
    mode: str = "normal",
    rng: Any = None,
) -> Any:
    """Return some eigenvalues of a sparse Hermitian matrix, and vectors; see `scipy.sparse.linalg.eigsh`.

    Derivatives are by the elements of (A + A^H) / 2. Those of values alone take no more than products; those of vectors
    a system for each, by MINRES, with the factor of A - sigma if there is sigma. As of `numpy.linalg.eigh`, vectors of
    one repeated eigenvalue have derivatives in functions that do not depend on how they were chosen. Values of one that
    was found in part, which does not show, have those along the vectors that were found: choose k so that a gap is
    behind.

    Args:
        A: a sparse array, equal to its adjoint; or a `LinearOperator` that is, with its dtype if that is not
            float64, whose product is differentiated by what it captures, where no eigenvalue found is repeated.
        k: how many, fewer than there are.
        M: not taken.
        sigma: the number near to which they are; its factor A - sigma is made once for values and derivatives.
        which: "LM", "SM", "LA", "SA" or "BE", as SciPy has it; with sigma, of 1 / (w - sigma).
        v0: the vector to begin with, of shape (n,); by default the same each time, so that signs of vectors are, too.
        ncv: the number of Lanczos vectors.
        maxiter: the most iterations.
        tol: how exact they are; derivatives are as exact. By default as exact as can be.
        return_eigenvectors: whether vectors are returned.
        Minv: not taken.
        OPinv: not taken.
        mode: "normal".
        rng: not taken: nothing is random.

    Returns:
        Eigenvalues in ascending order, of shape (k,), and vectors as columns, of shape (n, k); or the values alone.

    Raises:
        scipy.sparse.linalg.ArpackNoConvergence: not all have been found; it has those that have.
        NumericalError: A - sigma is singular, or vectors of a repeated eigenvalue that was found in part are
            differentiated.
        UsageError: `k` is too large, or something is not taken.
        ShapeError: the matrix is not square, or `v0` has another length.
        DtypeError: it is not sparse.

    >>> import wengert as wg
    >>> from wengert.scipy.sparse import diags_array
    >>> stiffness = diags_array([np.full(9, 2.0), -np.ones(8), -np.ones(8)], offsets=[0, 1, -1])
    >>> lowest = lambda a: eigsh(a, 2, sigma=0.0, return_eigenvectors=False)
    >>> lowest(stiffness).round(6)
    tensor([0.097887, 0.381966])
    >>> wg.jvp(lowest, (stiffness,), (stiffness,))[1].round(6)
    tensor([0.097887, 0.381966])
    """
    operator = A if isinstance(A, LinearOperator) else None
    matrix: Any = operator or sparse_operand("eigsh", A, in_full="numpy.linalg.eigh")
    require_choice("eigsh", "which", which, ("LM", "SM", "LA", "SA", "BE"))
    require_none("eigsh", M=M, Minv=Minv, OPinv=OPinv, rng=rng, mode=None if mode == "normal" else mode)
    if operator is not None:
        require_square("eigsh", operator.shape)
    count, size = require_count("eigsh", k, matrix.shape[0]), matrix.shape[0]
    shift = None if sigma is None else float(sigma)
    options = {"k": count, "sigma": shift, "which": which, "ncv": ncv, "maxiter": maxiter, "tol": float(tol)}
    if operator is not None:
        if sigma is not None:
            needed = "a sparse array is needed, whose factor A - sigma is made"
            raise UsageError("eigsh", "sigma of a LinearOperator", needed, "Leave sigma out, or make the array")
        pairs = eigenpairs_of_operator(operator, start_vector("eigsh", v0, size), options)
        return pairs if return_eigenvectors else pairs[0]
    params = {"pattern": matrix._pattern, "options": given_options(**options)}
    primitive = sparse_eigh if return_eigenvectors else sparse_eigvalsh
    return apply(primitive, as_tensor(matrix.data), start_vector("eigsh", v0, size), **params)


def svds(
    A: Any,  # noqa: N803 - SciPy's name
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: bool | str = True,
    solver: str = "arpack",
    rng: Any = None,
    options: Any = None,
) -> Any:
    """Return some singular values of a sparse matrix, and vectors; see `scipy.sparse.linalg.svds`.

    They are eigenvalues and vectors of the Hermitian matrix with A and its adjoint beside its diagonal, by which their
    derivatives are those of `eigsh`.

    Args:
        A: a sparse array of shape (m, n).
        k: how many, fewer than min(m, n).
        ncv: the number of Lanczos vectors.
        tol: how exact they are; by default as exact as can be.
        which: "LM" for the largest ones, "SM" for the smallest.
        v0: the vector to begin with, of shape (min(m, n),); by default the same each time.
        maxiter: the most iterations.
        return_singular_vectors: whether vectors are returned; "u" or "vh" for these alone.
        solver: "arpack" or "lobpcg".
        rng: not taken: nothing is random.
        options: not taken.

    Returns:
        U of shape (m, k), singular values in ascending order, of shape (k,), and V^H of shape (k, n); or values alone.

    Raises:
        scipy.sparse.linalg.ArpackNoConvergence: not all have been found; it has those that have.
        NumericalError: a repeated value was found in part, and its vectors differentiated.
        UsageError: `k` is too large, or something is not taken.
        ShapeError: `v0` has another length.
        DtypeError: the matrix is not sparse.

    >>> from wengert.scipy.sparse import csr_array
    >>> svds(csr_array(np.diag([3.0, 1.0, 2.0])), 2, return_singular_vectors=False).round(6)
    tensor([2., 3.])
    """
    matrix = sparse_operand("svds", A, is_square=False)
    require_none("svds", rng=rng, options=options)
    if return_singular_vectors not in VECTORS or solver not in ("arpack", "lobpcg"):
        given = f"return_singular_vectors={shown(return_singular_vectors)} and solver={shown(solver)}"
        needed = "True, False, 'u' or 'vh' and 'arpack' or 'lobpcg' are needed"
        raise UsageError("svds", given, needed, "Leave them out")
    rows, least = matrix.shape[0], min(matrix.shape)
    count = require_count("svds", k, least)
    both: SparseTensor = block_array([[None, matrix], [matrix.T.conj(), None]], format="csr")
    others = {"ncv": ncv, "tol": float(tol), "which": which, "maxiter": maxiter, "solver": solver}
    params = {"pattern": both._pattern, "options": given_options(k=count, split=rows, **others)}
    start = start_vector("svds", v0, least)
    if not return_singular_vectors:
        return apply(sparse_eigvalsh, as_tensor(both.data), start, **params)
    s, v = apply(sparse_eigh, as_tensor(both.data), start, **params)
    root = np.sqrt(s.dtype.type(2))
    u = v[:rows] * root if return_singular_vectors != "vh" else None
    vh = adjoint(v[rows:]) * root if return_singular_vectors != "u" else None
    return u, s, vh
