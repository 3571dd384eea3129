"""Functions of `numpy.linalg` with NumPy's signatures: inverses, decompositions, norms and products of matrices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply, implements
from wengert.core.values.plain_functions import enter_by_numpy
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import GraphError, ShapeError, UsageError, describe
from wengert.numpy import _contractions
from wengert.numpy._contractions import array
from wengert.numpy._namespace import document_as
from wengert.numpy._results import drop_zero_imaginary, with_out
from wengert.primitives.linear_algebra import (
    determinants,
    eigenvalues,
    inverses,
    least_squares,
    orthogonal,
    singular_values,
    square_eigenvalues,
    triangular,
)
from wengert.traces.eager import SEVERAL, eager

NUMPYS_ERROR = np.linalg.LinAlgError
"""What is raised for another shape; functions of SciPy raise something else."""


def matrices(name: str, value: Any, error: type[Exception] = NUMPYS_ERROR) -> Any:
    """Return an operand that is a stack of matrices."""
    x = array(name, value)
    if x.ndim < 2:
        raise error(describe(name, f"shape {x.shape}", "matrices along the last two axes are needed", "Reshape it"))
    return x


def square_matrices(name: str, value: Any, error: type[Exception] = NUMPYS_ERROR) -> Any:
    """Return an operand that is a stack of square matrices."""
    x = array(name, value)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        needed = "square matrices along the last two axes are needed"
        raise error(describe(name, f"shape {x.shape}", needed, "Reshape it"))
    return x


def known_square(name: str, value: Any, error: type[Exception] = NUMPYS_ERROR) -> Any:
    """Return square matrices whose function may be complex where they are real, as their elements say."""
    x = square_matrices(name, value, error)
    if x.dtype.kind != "c" and not is_concrete(x):
        given = f"a real matrix of shape {x.shape} whose elements are unknown in a trace or differ between lanes"
        needed = "complex elements are needed, because it depends on real ones whether results are real"
        action = "Convert it with .astype(complex), and take .real of a result that is known to be real"
        raise GraphError(name, given, needed, action)
    return x


apply_solve = eager(inverses.solve, SEVERAL)
apply_cholesky = eager(triangular.cholesky)

hermitian_values = eager(eigenvalues.eigvalsh)
apply_svdvals = eager(singular_values.svdvals)

ONE = np.ones((1, 1))
SlogdetResult: Any = type(np.linalg.slogdet(ONE))  # NumPy has no public names for these
EighResult: Any = type(np.linalg.eigh(ONE))
EigResult: Any = type(np.linalg.eig(ONE))
SVDResult: Any = type(np.linalg.svd(ONE))
QRResult: Any = type(np.linalg.qr(ONE))


def eager_results(primitive: Primitive, kind: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of an operand and parameters that gives several results, as NumPy's named tuple."""
    operate = eager(primitive)
    return lambda a, params: kind(*operate(a, params))


hermitian_vectors = eager_results(eigenvalues.eigh, EighResult)
singular_vectors = eager_results(singular_values.svd, SVDResult)
orthogonal_and_triangular = eager_results(orthogonal.qr, QRResult)


# Inverses and determinants


def enter_square(numpys: Callable[..., Any], operation: Callable[..., Any], summary: str) -> Callable[[Any], Any]:
    """Enter and return a function of square matrices and nothing else."""
    name = numpys.__name__

    @implements(numpys)
    @document_as(name, summary, "numpy.linalg")
    def compute(a: Any) -> Any:
        return operation(square_matrices(name, a), {})

    return compute


inv = enter_square(np.linalg.inv, eager(inverses.inv), "Return the inverse")
det = enter_square(np.linalg.det, eager(determinants.det), "Return the determinant")
slogdet = enter_square(
    np.linalg.slogdet,
    eager_results(determinants.slogdet, SlogdetResult),
    "Return the sign and the logarithm of the absolute value of the determinant",
)


@implements(np.linalg.solve, by="a b")
def solve(a: Any, b: Any) -> Any:
    """Return the solution x of a x = b; see `numpy.linalg.solve`."""
    return apply_solve((square_matrices("solve", a), array("solve", b)), {})


# Decompositions


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Return the Cholesky factor; see `numpy.linalg.cholesky`."""
    return apply_cholesky(square_matrices("cholesky", a), {"upper": bool(upper)})


def triangle_name(name: str, value: Any) -> str:
    """Return which triangle is read, "L" or "U"."""
    uplo = value.upper() if isinstance(value, str) else value
    if uplo not in ("L", "U"):
        raise ValueError(describe(name, f"UPLO={value!r}", "'L' or 'U' is needed", "Leave it out for 'L'"))
    return str(uplo)


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return the QR decomposition; see `numpy.linalg.qr`.

    Raises:
        UsageError: of mode "raw", whose results are LAPACK's own.
    """
    x = matrices("qr", a)
    if mode == "r":
        return apply(orthogonal.qr_r, x)
    if mode not in ("reduced", "complete"):
        needed = "'reduced', 'complete' or 'r' is needed"
        raise UsageError("qr", f"mode={mode!r:.40}", needed, "Leave it out for 'reduced'")
    return orthogonal_and_triangular(x, {"mode": mode})


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Return eigenvalues and eigenvectors of Hermitian matrices; see `numpy.linalg.eigh`."""
    return hermitian_vectors(square_matrices("eigh", a), {"uplo": triangle_name("eigh", UPLO)})


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Return the eigenvalues of Hermitian matrices; see `numpy.linalg.eigvalsh`."""
    return hermitian_values(square_matrices("eigvalsh", a), {"uplo": triangle_name("eigvalsh", UPLO)})


def require_finite_elements(name: str, x: Any) -> Any:
    """Return a matrix, after it was looked whether all elements that are known are finite."""
    if is_concrete(x) and not np.isfinite(raw(x)).all():
        given = "infinite or NaN elements"
        raise np.linalg.LinAlgError(describe(name, given, "finite ones are needed", "Look at where they come from"))
    return x


def real_as_numpy(given: Any, *results: Any) -> tuple[Any, ...]:
    """Return complex results as NumPy does: as real ones where they can be, before its version 2.5."""
    return results if np.lib.NumpyVersion(np.__version__) >= "2.5.0" else drop_zero_imaginary(given, *results)


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    """Return eigenvalues and eigenvectors of square matrices; see `numpy.linalg.eig`."""
    x = require_finite_elements("eig", known_square("eig", a))
    return EigResult(*real_as_numpy(x, *apply(square_eigenvalues.eig, x)))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """Return the eigenvalues of square matrices; see `numpy.linalg.eigvals`."""
    x = require_finite_elements("eigvals", known_square("eigvals", a))
    return real_as_numpy(x, apply(square_eigenvalues.eigvals, x))[0]


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return the singular value decomposition; see `numpy.linalg.svd`."""
    if hermitian:
        return hermitian_svd(square_matrices("svd", a), compute_uv)
    x = matrices("svd", a)
    if not compute_uv:
        return apply_svdvals(x, {})
    return singular_vectors(x, {"full_matrices": bool(full_matrices)})


def hermitian_svd(x: Any, compute_uv: bool) -> Any:
    """Return the singular value decomposition of Hermitian matrices from their eigenvalues."""
    if not compute_uv:
        return np.sort(np.abs(eigvalsh(x)))[..., ::-1]
    w, v = eigh(x)
    order = np.argsort(np.abs(w))[..., ::-1]
    sign = np.take_along_axis(np.copysign(1.0, w), order, axis=-1)
    u = np.take_along_axis(v, order[..., None, :], axis=-1)
    s = np.take_along_axis(np.abs(w), order, axis=-1)
    return SVDResult(u, s, np.conjugate((u * sign[..., None, :]).mT))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """Return the singular values; see `numpy.linalg.svdvals`."""
    return apply_svdvals(matrices("svdvals", x), {})


# Generalised inverses


NOT_GIVEN: Any = object()


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NOT_GIVEN) -> Any:
    """Return the generalised inverse; see `numpy.linalg.pinv`."""
    x = matrices("pinv", a)
    if rcond is not None and rtol is not NOT_GIVEN:
        raise ValueError(describe("pinv", "rcond and rtol", "one of them is needed", "Leave one out"))
    if rcond is None:
        rcond = 1e-15 if rtol is NOT_GIVEN else rtol
        if rcond is None:
            rcond = max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return apply(least_squares.pinv, x, rcond=rcond, hermitian=bool(hermitian))


@implements(np.linalg.lstsq, by="a b")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return the solution of least squares, residuals, rank and singular values; see `numpy.linalg.lstsq`."""
    x, y = array("lstsq", a), array("lstsq", b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        needed = "a matrix, and a vector or matrix with as many rows are needed"
        raise np.linalg.LinAlgError(describe("lstsq", f"shapes {x.shape} and {y.shape}", needed, "Reshape them"))
    columns = y[:, None] if y.ndim == 1 else y
    solution, *rest = with_residuals(x, y, apply(least_squares.lstsq, x, columns, rcond=rcond))
    return solution[:, 0] if y.ndim == 1 else solution, *rest


def with_residuals(a: Any, b: Any, found: Any) -> tuple[Any, Any, Any, Any]:
    """Return a solution of least squares with residuals as NumPy has them: none where the rank is not full."""
    solution, residuals, rank, s = found
    rows, columns = a.shape[-2:]
    if rows > columns:
        if not (is_concrete(a) and is_concrete(b)):
            residuals = apply(least_squares.residuals_of_full_rank, residuals, columns - rank)
        elif np.any(raw(rank) < columns):
            residuals = residuals[..., :0]
    return solution, residuals, rank, s


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:  # noqa: N803 - NumPy's name
    """Return the rank, which is constant to differentiation; see `numpy.linalg.matrix_rank`."""
    x = array("matrix_rank", A)
    if x.ndim < 2:
        found = np.any(x != 0)
        return int(raw(found)) if is_concrete(found) else found.astype(int)
    return apply(least_squares.matrix_rank, x, tol=tol, hermitian=bool(hermitian), rtol=rtol)


# Linear maps of arrays with several axes


@implements(np.linalg.tensorsolve, by="a b")
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Return the solution x of a x = b for arrays with several axes; see `numpy.linalg.tensorsolve`."""
    x, y = array("tensorsolve", a), array("tensorsolve", b)
    if axes is not None:
        moved = [axis % x.ndim for axis in axes]
        x = np.transpose(x, [*[i for i in range(x.ndim) if i not in moved], *moved])
    shape = x.shape[y.ndim - x.ndim :] if x.ndim > y.ndim else ()
    count = math.prod(shape)
    if math.prod(x.shape) != count**2:
        needed = "as many unknowns, along the last axes, as equations, along the first, are needed"
        action = "Reshape them, or name the axes of the unknowns with axes="
        raise np.linalg.LinAlgError(describe("tensorsolve", f"shapes {x.shape} and {y.shape}", needed, action))
    return np.reshape(solve(np.reshape(x, (count, count)), np.ravel(y)), shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """Return the inverse of a linear map of arrays with several axes; see `numpy.linalg.tensorinv`."""
    x = array("tensorinv", a)
    if ind <= 0:
        given = f"ind={ind}"
        raise ValueError(describe("tensorinv", given, "a positive number of axes is needed", "Leave it out for 2"))
    inverse = inv(np.reshape(x, (math.prod(x.shape[ind:]), -1)))
    return np.reshape(inverse, (*x.shape[ind:], *x.shape[:ind]))


enter_by_numpy(np.linalg.eig, np.linalg.eigh, np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.svd, np.linalg.svdvals)
enter_by_numpy(np.linalg.det, np.linalg.inv, np.linalg.matrix_rank, np.linalg.pinv, np.linalg.slogdet, np.linalg.solve)
enter_by_numpy(np.linalg.cholesky, np.linalg.qr, np.linalg.tensorinv, np.linalg.tensorsolve)


apply_norm = eager(inverses.norm)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a norm of vectors or matrices; see `numpy.linalg.norm`."""
    x = array("norm", x)
    if x.dtype.kind not in "fc":
        x = x.astype(float)
    axis = axis if axis is None or isinstance(axis, tuple) else (operator.index(axis),)
    count = x.ndim if axis is None else len(axis)
    if x.ndim == 0 and axis is None and isinstance(ord, int | float) and ord != 0:
        return np.absolute(x)  # a number, which programs tell from arrays by its type, is one of axes no less in traces
    if (axis is None and ord is None) or (count <= 2 and is_smooth(ord, count)):
        return apply_norm(x, {"order": ord, "axis": axis, "keepdims": bool(keepdims)})
    if count == 1:
        return extreme_vector_norm(x, ord, axis, keepdims)
    if count == 2 and ord in (1, -1, np.inf, -np.inf, 2, -2, "nuc"):
        rows, columns = (normalize_axis_index(i, x.ndim) for i in (axis or (0, 1)))
        return keep_axes(matrix_norm_of_order(x, ord, rows, columns), x.shape, (rows, columns), keepdims)
    return np.linalg.norm(np.empty(x.shape), ord, axis, keepdims)  # NumPy's error about order or axes


def is_smooth(order: Any, count: int) -> bool:
    """Tell whether a norm over one axis or two is a root of a sum of powers."""
    if count == 2:
        return order is None or order in ("fro", "f")
    return count == 1 and not isinstance(order, str) and (order is None or order not in (0, 1, np.inf, -np.inf))


def extreme_vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    """Return the norm of order 0, 1 or infinity."""
    if order == 0:
        return np.sum((x != 0).astype(x.real.dtype), axis=axis, keepdims=keepdims)
    size = np.absolute(x)
    if order == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    if order == np.inf:
        return greatest_size(size, axis, keepdims)
    if order == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    raise ValueError(describe("norm", f"order {order!r} for vectors", "a number is needed", "Pass ord=2, for instance"))


def greatest_size(size: Any, axis: Any, keepdims: bool = False) -> Any:
    """Return the maximum of values that are not negative, 0 if there are none."""
    options: dict[str, Any] = {"initial": 0} if 0 in size.shape else {}
    return np.max(size, axis=axis, keepdims=keepdims, **options)


def matrix_norm_of_order(x: Any, order: Any, rows: int, columns: int) -> Any:
    """Return an operator norm of the matrices along two axes."""
    if order in (2, -2, "nuc"):
        values = apply_svdvals(np.moveaxis(x, (rows, columns), (-2, -1)), {"still": True, "shared": order != "nuc"})
        if order == "nuc":
            return np.sum(values, axis=-1)
        return greatest_size(values, -1) if order == 2 else np.min(values, axis=-1)
    summed, other = (rows, columns) if order in (1, -1) else (columns, rows)
    sums = np.sum(np.absolute(x), axis=summed)
    other -= other > summed
    return greatest_size(sums, other) if order > 0 else np.min(sums, axis=other)


def keep_axes(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return a reduced value, with the reduced axes as axes of length one if they are to be kept."""
    return result.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape))) if keepdims else result


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return the norm of vectors along one or several axes; see `numpy.linalg.vector_norm`."""
    x = array("vector_norm", x)
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    flat, place = x, axis
    if axis is None:
        flat, place = x.reshape(math.prod(x.shape)), 0
    elif isinstance(axis, tuple):
        rest = [i for i in range(x.ndim) if i not in axes]
        lengths = [x.shape[i] for i in rest]
        flat = np.transpose(x, (*axes, *rest)).reshape((math.prod(x.shape[i] for i in axes), *lengths))
        place = 0
    return keep_axes(norm(flat, ord, place), x.shape, axes, keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return a norm of the matrices along the last two axes; see `numpy.linalg.matrix_norm`."""
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """Return condition numbers; see `numpy.linalg.cond`."""
    x = matrices("cond", x)
    if 0 in x.shape[-2:]:
        needed = "rows and columns are needed"
        raise np.linalg.LinAlgError(describe("cond", f"shape {x.shape}", needed, "Leave empty matrices out"))
    with np.errstate(all="ignore"):
        if p is None or p in (2, -2):
            s = apply_svdvals(x, {"still": True, "shared": True})
            ratio: Any = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        else:
            ratio = condition_by_inverse(square_matrices("cond", x), p)
        if not is_concrete(ratio) or np.isnan(raw(ratio)).any():
            ratio = np.where(np.isnan(ratio) & ~np.any(np.isnan(x), axis=(-2, -1)), np.inf, ratio)
    return ratio


def condition_by_inverse(x: Any, order: Any) -> Any:
    """Return the norms of matrices times those of their inverses; infinity for singular ones."""
    try:
        return norm(x, order, (-2, -1)) * norm(inv(x), order, (-2, -1))
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return np.full((), np.inf, x.real.dtype)[()]
    return np.reshape(np.stack([condition_by_inverse(m, order) for m in x.reshape((-1, *x.shape[-2:]))]), x.shape[:-2])


enter_by_numpy(np.linalg.matrix_norm, np.linalg.norm, np.linalg.vector_norm, most=1)


@implements(np.linalg.matmul, by="x1 x2")
def matmul(x1: Any, x2: Any, /) -> Any:
    """Return the matrix product; see `numpy.linalg.matmul`."""
    return _contractions.matmul(x1, x2)


@implements(np.linalg.tensordot, by="x1 x2")
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Return the sum of products over given axes; see `numpy.linalg.tensordot`."""
    return _contractions.tensordot(x1, x2, axes=axes)


@implements(np.linalg.vecdot, by="x1 x2")
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the products of the vectors along an axis, summed; see `numpy.linalg.vecdot`."""
    return _contractions.vecdot(x1, x2, axis=axis)


@implements(np.linalg.outer, by="x1 x2")
def outer(x1: Any, x2: Any, /) -> Any:
    """Return the products of every element with every element; see `numpy.linalg.outer`."""
    x, y = array("outer", x1), array("outer", x2)
    if x.ndim != 1 or y.ndim != 1:
        given = f"shapes {x.shape} and {y.shape}"
        raise ShapeError("outer", given, "one axis each is needed", "Use wengert.numpy.outer")
    return _contractions.outer(x, y)


@implements(np.linalg.cross, by="x1 x2")
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the cross products of vectors of space; see `numpy.linalg.cross`."""
    x, y = array("cross", x1), array("cross", x2)
    if any(not v.ndim or v.shape[axis] != 3 for v in (x, y)):
        needed = f"vectors with 3 elements along axis {axis} are needed"
        raise ShapeError("cross", f"shapes {x.shape} and {y.shape}", needed, "Append a zero to vectors of the plane")
    return _contractions.cross(x, y, axis=axis)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Return the product of several matrices, in the cheapest order; see `numpy.linalg.multi_dot`."""
    factors = [array("multi_dot", x) for x in arrays]
    dot: Any = _contractions.dot
    if len(factors) < 2:
        raise UsageError("multi_dot", f"{len(factors)} arrays", "at least two are needed", "Pass the factors as a list")
    if len(factors) == 2:
        return dot(*factors, out=out)
    first, last = factors[0].ndim, factors[-1].ndim
    if first == 1:
        factors[0] = factors[0][None, :]
    if last == 1:
        factors[-1] = factors[-1][None, :].T
    if any(x.ndim != 2 for x in factors):
        given = f"shapes {', '.join(str(x.shape) for x in factors)}"
        needed = "matrices are needed, or vectors at the ends"
        raise ShapeError("multi_dot", given, needed, "Use matmul for stacks of matrices")
    splits = cheapest_splits((*(x.shape[0] for x in factors), factors[-1].shape[1]))

    def product(start: int, stop: int) -> Any:
        if stop - start == 1:
            return factors[start]
        middle = splits[start, stop]
        return dot(product(start, middle), product(middle, stop))

    result = product(0, len(factors))
    if first == 1 and last == 1:
        result = result[0, 0]
    elif 1 in (first, last):
        result = result.reshape(-1)
    return with_out("multi_dot", result, out)


def cheapest_splits(lengths: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Return where to split the factors from start to stop for the fewest products, for each run (start, stop).

    Shorter runs come first, since longer ones are made of them. Of equally cheap places the first counts, as in NumPy.

    >>> cheapest_splits((10, 100, 5, 50))
    {(0, 2): 1, (1, 3): 2, (0, 3): 2}
    """
    count = len(lengths) - 1
    costs = {(i, i + 1): 0 for i in range(count)}
    splits = {}
    for size in range(2, count + 1):
        for start in range(count - size + 1):
            stop = start + size
            ends = lengths[start] * lengths[stop]
            costs[start, stop], splits[start, stop] = min(
                (costs[start, middle] + costs[middle, stop] + ends * lengths[middle], middle)
                for middle in range(start + 1, stop)
            )
    return splits


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """Return a square matrix to an integer power; see `numpy.linalg.matrix_power`."""
    x = square_matrices("matrix_power", a)
    n = operator.index(n)
    if n == 0:
        return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape) + np.zeros_like(x)
    if n < 0:
        x, n = inv(x), -n
    if n == 3:
        return (x @ x) @ x
    result = None
    while n > 0:
        n, odd = divmod(n, 2)
        if odd:
            result = x if result is None else result @ x
        if n:
            x = x @ x
    return result


enter_by_numpy(np.linalg.tensordot, np.linalg.vecdot)
