"""What rules about matrices share: adjoints, triangles, LAPACK's routines for one matrix or for stacks of them.

Rules are written with gradients g = conj(ct), for which papers have their formulas: Re tr(g^H dA) is the change of the
loss. Inside of the engine cotangents are transposes without conjugation (ADR 0002), so what they find is conjugated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.primitive import RoutineCall
from wengert.errors import describe
from wengert.primitives.contractions import conj

OF_ELIMINATION = 40
"""Cycles of a vector, about, that NumPy takes for an element of matrices of 10 to 300 rows, of which triangular factors
are computed: 5 to 9 ns. For inverses and Q it is 3 times as much, for eigenvalues of symmetric matrices 4, with vectors
10, for singular values 6 and 16, for eigenvalues of others 15 and 30."""
SHOWN = 6
"""Up to how many numbers of a vector errors show."""
REMEMBERED = 256
"""Up to how many rows a mask is kept for the next call: making one takes longer than using it."""


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return conj(x.mT)


def product(x: Any, y: Any) -> Any:
    """Return the product of matrices; of two small arrays `dot` takes a third of the time that `@` does."""
    return x.dot(y) if type(x) is np.ndarray is type(y) and x.ndim == y.ndim == 2 else x @ y


def total(*terms: Any) -> Any:
    """Return the sum of the terms that are not None."""
    given = [term for term in terms if term is not None]
    return sum(given[1:], given[0])


# Systems op(A) X = B, where op is nothing or the transpose, whatever solves them


def pull_back_solution(ct_b: Any, out: Any, a: Any, b: Any, transposed: bool = False) -> tuple[Any, Any]:
    """Return the cotangents of A and B for the solution ct_B of op(A)^T ct_B = ct, with ct_op(A) = -ct_B X^T."""
    ct_a = -(out @ ct_b.mT) if transposed else -(ct_b @ out.mT)
    return unbroadcast(ct_a, a.shape), unbroadcast(ct_b, b.shape)


def tangent_side(da: Any, db: Any, out: Any, transposed: bool = False) -> Any:
    """Return the right-hand side of the system whose solution is the tangent: op(A) dX = dB - op(dA) X."""
    return total(db, None if da is None else -((da.mT if transposed else da) @ out))


# Triangles


def make_mask(rows: int, columns: int, offset: int, dtype: str, half: bool) -> Any:
    """Return a matrix of ones on and below a diagonal, with halves on it if asked for, and zeros above."""
    mask = np.tri(rows, columns, offset, dtype=dtype)
    if half:
        np.fill_diagonal(mask, 0.5)
    mask.flags.writeable = False
    return mask


remembered_mask = functools.lru_cache(maxsize=256)(make_mask)


def mask_of(x: Any, offset: int, dtype: str = "?", half: bool = False) -> Any:
    """Return the mask for the matrices of an array."""
    rows, columns = x.shape[-2:]
    make = remembered_mask if max(rows, columns) <= REMEMBERED else make_mask
    return make(rows, columns, offset, dtype, half)


def lower_triangle(x: Any, offset: int = 0) -> Any:
    """Return matrices with zeros above a diagonal."""
    return np.where(mask_of(x, offset), x, 0)


def upper_triangle(x: Any, offset: int = 0) -> Any:
    """Return matrices with zeros below a diagonal."""
    return np.where(mask_of(x, offset - 1), 0, x)


def half_lower(x: Any) -> Any:
    """Return lower triangles with their diagonals halved; of a Hermitian matrix, which is this plus its adjoint.

    >>> half_lower(np.full((2, 2), 2.0))
    array([[1., 0.],
           [2., 1.]])
    """
    return x * mask_of(x, 0, x.dtype.char.lower(), True)


# Diagonals


def diagonal_of(x: Any) -> Any:
    """Return the diagonals of matrices."""
    return np.diagonal(x, axis1=-2, axis2=-1)


def make_identity(count: int, dtype: str) -> Any:
    """Return an identity matrix, for nobody to write to."""
    found = np.eye(count, dtype=dtype)
    found.flags.writeable = False
    return found


remembered_identity = functools.lru_cache(maxsize=256)(make_identity)


def identity_of(count: int, dtype: str) -> Any:
    """Return an identity matrix."""
    return (remembered_identity if count <= REMEMBERED else make_identity)(count, dtype)


def on_diagonal(x: Any) -> Any:
    """Return matrices with these diagonals."""
    return x[..., None] * identity_of(x.shape[-1], x.dtype.char)


# LAPACK


@functools.cache
def lapack(name: str, kind: str) -> Any:
    """Return a routine of LAPACK for the kind of dtype, one of "fdFD"; SciPy is imported for the first.

    >>> lapack("trtrs", "d").__name__
    'function dtrtrs'
    """
    from scipy.linalg import lapack as routines

    return getattr(routines, {"f": "s", "d": "d", "F": "c", "D": "z"}[kind] + name)


def vector_text(vector: Any) -> str:
    """Return a vector of unit length as errors show it: the first numbers, rounding errors as zeros.

    >>> vector_text(np.array([1e-17, 0.6, -0.8]))
    '(0, 0.6, -0.8)'
    """
    shown = ", ".join(f"{x if abs(x) > 1e-12 else 0:.3g}" for x in vector[:SHOWN])
    return f"({shown}{', ...' if len(vector) > SHOWN else ''})"


def over_stacks(function: Callable[..., Any], cores: Sequence[int], *arrays: Any) -> Any:
    """Return the results of a function of vectors and matrices for stacks of them, which broadcast.

    Args:
        function: from one array for each operand, with as many axes as `cores` says, to an array or a tuple of them.
        cores: the number of last axes that one call takes of each operand.
        *arrays: the operands.

    >>> over_stacks(np.trace, [2], np.ones((4, 3, 3)))
    array([3., 3., 3., 3.])
    """
    stacks = [x.shape[: x.ndim - core] for x, core in zip(arrays, cores, strict=True)]
    if not any(stacks):
        return function(*arrays)
    stack = np.broadcast_shapes(*stacks)
    shapes = [x.shape[x.ndim - core :] for x, core in zip(arrays, cores, strict=True)]
    wide = [np.broadcast_to(x, stack + shape) for x, shape in zip(arrays, shapes, strict=True)]
    found = [function(*[x[place] for x in wide]) for place in np.ndindex(stack)]
    if not found:  # there are shapes and dtypes all the same
        found = [function(*[example(shape, x.dtype) for shape, x in zip(shapes, arrays, strict=True)])]

    def join_results(items: Sequence[Any]) -> Any:
        return np.resize(np.stack(items), (*stack, *np.shape(items[0])))

    return tuple(map(join_results, zip(*found, strict=True))) if isinstance(found[0], tuple) else join_results(found)


def of_scipy(call: Callable[..., Any], *cores: int, like: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the evaluation of stacks by `scipy.linalg`, which is imported for the first.

    Args:
        call: from that module, one array for each operand, and the parameters.
        *cores: the number of axes of each of these arrays.
        like: what the result is like, where identities are no example for stacks without elements.
    """

    def evaluate(*arrays: Any, **params: Any) -> Any:
        from scipy import linalg

        if like is not None and any(0 in x.shape for x in arrays):
            return like(*arrays, **params)
        return over_stacks(functools.partial(call, linalg, **params), cores, *arrays)

    return evaluate


def example(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array on which every routine is defined."""
    return np.eye(*shape, dtype=dtype) if len(shape) == 2 else np.ones(shape, dtype)


# Hermitian matrices of which one triangle is read


def hermitian_from(x: Any, uplo: str) -> Any:
    """Return the Hermitian matrices whose triangle, "L" or "U", is that of some matrices."""
    half = half_lower(x if uplo == "L" else adjoint(x))
    return half + adjoint(half)


def fold_triangle(g: Any, uplo: str) -> Any:
    """Return the gradient by the triangle that is read, from a Hermitian one by all elements."""
    half = half_lower(g + adjoint(g))
    return half if uplo == "L" else adjoint(half)


# Errors


def matrix_error(name: str, given: str, needed: str, action: str) -> np.linalg.LinAlgError:
    """Return the error about a matrix of which there is no result, or no derivative."""
    return np.linalg.LinAlgError(describe(name, given, needed, action))


def depends_on_others(name: str, instead: str) -> np.linalg.LinAlgError:
    """Return the error about factors of a matrix whose columns are not independent."""
    given = "a matrix with a column that depends on those before it, of which factors have no derivatives"
    needed = "independent columns are needed, or a function of the columns before it"
    return matrix_error(name, given, needed, f"Put such columns last, or use {instead}")


# Native code


def plain_routine(routine: str) -> Callable[..., RoutineCall]:
    """Return how a routine without options is called; only SciPy asks whether operands must be finite."""
    return lambda *, check_finite=False: RoutineCall(routine, (), {"finite": int(check_finite)})


def length_of(vector: Any) -> float:
    """Return the length of a vector of numbers, also of tiny ones, whose squares are none, and of huge ones."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) if 0 < largest < np.inf else largest
