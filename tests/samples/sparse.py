"""Samples of products with sparse matrices, of products that are sampled where one has elements, and of systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tests.samples.base import Sample, fixed, normal, positive, sample
from wengert.core.values.dispatch import apply
from wengert.primitives.sparse import iterative_solves
from wengert.primitives.sparse.direct_solves import sparse_solve
from wengert.primitives.sparse.eigenpairs import apart, bordered, equal, sparse_eigh, sparse_eigvalsh
from wengert.primitives.sparse.exponentials import exponential_elements, exponential_product
from wengert.primitives.sparse.products import sampled_product, sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern, pattern_of

FULL = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 4.0, 0.0, 5.0]])


def pattern(format: str) -> StoragePattern:
    """Return the pattern of a matrix of three rows and four columns, one row empty."""
    return pattern_of(scipy.sparse.csr_array(FULL).asformat(format))


def multiplied(data: Any, x: Any, format: str, transposed: bool) -> Any:
    """Multiply a matrix of three rows, or columns, by an array."""
    return apply(sparse_product, data, x, pattern=pattern(format), transposed=transposed)


def sampled(left: Any, right: Any, format: str) -> Any:
    """Multiply two arrays where a matrix has elements."""
    return apply(sampled_product, left, right, pattern=pattern(format))


def product_of(x: Any, format: str = "csr", transposed: bool = False, dtype: Any = float) -> Sample:
    """Return the sample of a product of a matrix in a format."""
    data = normal(*pattern(format).data_shape).astype(dtype)
    return sample("sparse_product", multiplied, data, x, format=format, transposed=transposed)


SQUARE = pattern_of(scipy.sparse.csc_array(np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])))
"""The places of matrices that are symmetric, and regular, if elements are near to 1."""


def solved(data: Any, b: Any, transposed: bool) -> Any:
    """Solve a sparse system."""
    params: dict[str, Any] = {"name": "spsolve", "pattern": SQUARE, "options": ()}
    return apply(sparse_solve, data, b, transposed=transposed, **params)


def iterated(data: Any, b: Any, x0: Any) -> Any:
    """Solve a sparse system by iterations."""
    options = ("atol", 0.0), ("rtol", 1e-14 if data.dtype == float else 1e-5)
    params: dict[str, Any] = {"method": "gmres", "pattern": SQUARE, "options": options}
    return apply(iterative_solves.iterative_solve, data, b, x0, transposed=False, unit=False, **params)[0]


def fitted(data: Any, b: Any, method: str) -> Any:
    """Solve a least squares problem with a sparse matrix."""
    options = ("atol", 1e-15), ("btol", 1e-15), ("conlim", 0.0)
    params: dict[str, Any] = {"method": method, "pattern": pattern("csr"), "damp": 0.5, "options": options}
    primitive = {"lsqr": iterative_solves.lsqr, "lsmr": iterative_solves.lsmr}[method]
    return apply(primitive, data, b, **params)[0]


def normal_solution(data: Any, b: Any) -> Any:
    """Solve the normal equations of a sparse matrix."""
    options = ("atol", 1e-15), ("btol", 1e-15), ("conlim", 0.0)
    params: dict[str, Any] = {"method": "lsqr", "pattern": pattern("csr"), "damp": 0.5, "options": options}
    return apply(iterative_solves.normal_solve, data, b, **params)


def exponential(data: Any, x: Any, transposed: bool) -> Any:
    """Multiply the exponential of a sparse matrix by an array."""
    return apply(exponential_product, data, x, pattern=SQUARE, transposed=transposed)


def integrated(data: Any, left: Any, right: Any, format: str) -> Any:
    """Return what the elements of a sparse matrix gain from two arrays beside its exponential."""
    return apply(exponential_elements, data, left, right, pattern=formatted(format))


def formatted(format: str) -> StoragePattern:
    """Return the places of a square matrix in a format."""
    return pattern_of(SQUARE.matrix(np.ones(SQUARE.data_shape)).asformat(format))


def passed_on(x: Any) -> Any:
    """Pass on what is given, since a method has converged."""
    return apply(iterative_solves.converged, x, np.int64(0), name="cg")


CHAIN = pattern_of(scipy.sparse.csr_array(np.eye(5) + np.eye(5, k=1) + np.eye(5, k=-1)))
"""The places of a matrix of three diagonals."""
PAIRS: dict[str, Any] = {"pattern": CHAIN, "options": (("k", 2), ("which", "LA"))}


def chain(diagonal: Any, beside: Any) -> Any:
    """Return the elements of a Hermitian matrix at these places."""
    whole = diagonal * np.eye(5) + np.diag(beside, 1) + np.diag(np.conj(beside), -1)
    return whole[CHAIN.coordinates]


def eigenvalues(diagonal: Any, beside: Any) -> Any:
    """Return two eigenvalues."""
    return apply(sparse_eigvalsh, chain(diagonal, beside), np.zeros(0), **PAIRS)


def eigenpairs(diagonal: Any, beside: Any) -> Any:
    """Return two eigenvalues, and the sizes of elements of their vectors."""
    w, v = apply(sparse_eigh, chain(diagonal, beside), np.zeros(0), **PAIRS)
    return w + np.abs(v) ** 2


def bordered_solution(diagonal: Any, beside: Any, right: Any, below: Any) -> Any:
    """Solve with eigenvectors as the border; the sum with them does not depend on their signs."""
    data = chain(diagonal, beside)
    w, v = apply(sparse_eigh, data, np.zeros(0), **PAIRS)
    x, m = apply(bordered, data, w, v, right, np.conj(v.T) @ below, **PAIRS)
    return x + v @ m


def equal_ones(g: Any) -> Any:
    """Look whether what belongs to one eigenvalue is one number."""
    return g + apply(equal, g, np.array([1.0, 1.0, 2.0]))


def settled_ones(g: Any) -> Any:
    """Look whether eigenvalues are apart."""
    return g + apply(apart, g, np.array([1.0, 1.5, 2.0]), name="eigsh")


SPREAD = np.array([1.0, 2.5, 4.5, 7.0, 11.0])
"""What diagonals are added to, so that eigenvalues are apart."""

SAMPLES = [
    sample("sparse_eigvalsh", eigenvalues, SPREAD + normal(5), positive(4)),
    sample("sparse_eigh", eigenpairs, SPREAD + normal(5), positive(4)),
    sample("sparse_eigh", eigenpairs, SPREAD + normal(5), positive(4) + 0.5j),
    sample("bordered_solve", bordered_solution, SPREAD + normal(5), positive(4), normal(5, 2), normal(5, 2)),
    sample("equal_in_clusters", equal_ones, fixed(np.array([1.0, 1.0, 3.0]))),
    sample("apart", settled_ones, fixed(np.array([1.0, 2.0, 3.0]))),
    sample("sparse_solve", solved, positive(6), normal(3), transposed=False),
    sample("sparse_solve", solved, positive(6), normal(3, 2), transposed=True),
    sample("sparse_solve", solved, positive(6) + 1j, normal(3), transposed=False),
    sample("sparse_solve", solved, positive(6), normal(3) + 1j, transposed=True),
    sample("iterative_solve", iterated, positive(6), normal(3), fixed(np.zeros(3))),
    sample("sparse_lsqr", fitted, normal(5), normal(3), method="lsqr"),
    sample("sparse_lsmr", fitted, normal(5), normal(3), method="lsmr"),
    sample("normal_solve", normal_solution, normal(5), normal(4)),
    sample("exponential_product", exponential, normal(6), normal(3), transposed=False),
    sample("exponential_product", exponential, normal(6) + 1j, normal(3, 2), transposed=True),
    sample("exponential_elements", integrated, normal(6), normal(3, 2), normal(3, 2, seed=1), format="csc"),
    sample("exponential_elements", integrated, normal(3, 3), normal(3), normal(3) + 1j, format="dia"),
    sample("converged", passed_on, normal(3)),
    product_of(normal(4)),
    product_of(normal(3), transposed=True),
    product_of(normal(4, 2)),
    product_of(normal(4, 2) + 1j * normal(4, 2, seed=1), dtype=complex),
    product_of(np.asfortranarray(normal(3, 2)), "csc", transposed=True),
    product_of(normal(4).astype(np.float32), dtype=np.float32),
    product_of(normal(4), "coo"),
    product_of(normal(4), "dia"),
    product_of(normal(3, 2), "dia", transposed=True),
    product_of(normal(4), "bsr"),
    sample("sampled_product", sampled, normal(3), normal(4), format="csr"),
    sample("sampled_product", sampled, normal(3, 2), normal(4, 2), format="csc"),
    sample("sampled_product", sampled, normal(3), normal(4), format="dia"),
    sample("sampled_product", sampled, normal(3) + 1j, normal(4) - 2j, format="coo"),
]
