"""Exponentials of sparse matrices times arrays, which are never made in full, and what their derivatives need.

    Y = exp(A) B:    A' -> the upper part of exp([[A, A'], [0, A]]) [0; B],    Y* -> exp(A)^T Y*
    a* = K(A; L, R):    the integral of exp(s A)^T L (exp((1 - s) A) R)^T for s from 0 to 1, where A has elements

K is the gradient of sum(L * exp(A) R) by the stored elements, so that those of A have a* = K(A; Y*, B). It is linear in
L and R, and its derivative along A' is K of the matrix of blocks, too: derivatives of both are one of them again, to
any order. Products are SciPy's. K is summed up step by step: each is integrated by a Gauss-Legendre rule, whose nodes
share the Taylor terms (A/S)^k R / k! and (A^T/S)^j L / j! of the step. (A. Al-Mohy and N. Higham, Computing the action
of the matrix exponential, 2011; I. Najfeld and T. Havel, Derivatives of the matrix exponential and their computation,
1995.)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Form
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.cotangent import match_dtype
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.native.lapack import on_one_thread
from wengert.primitives.conversion import barrier
from wengert.primitives.indexing.elements import scatter
from wengert.primitives.sparse.iterative_solves import batch_iterative
from wengert.primitives.sparse.products import entries, evaluate_sampled, require_elements
from wengert.primitives.sparse.storage_pattern import StoragePattern, known_pattern
from wengert.support.records import NamedTuple

Params = Mapping[str, Any]
Array = np.ndarray[Any, Any]
LARGEST = 4.0
"""The norm of a matrix that is one step: terms grow to exp(4), so that few digits cancel, and there are few steps."""
TINY = 1e-8
"""Lengths of steps below it are taken for it."""
ROOM = 1 << 22
"""How many numbers may be held of steps before the one that is summed up."""


class ExponentialForm(Form):
    """A product with an exponential is like the other factor; elements are as the pattern says.

    Attributes:
        gives_elements: whether the result is the stored elements of a matrix.
    """

    gives_elements: bool

    def evaluation(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """Let libraries use one thread: those that they wake for norms of vectors take longer than all else."""

        def evaluate_alone(*operands: Any, **params: Any) -> Any:
            return on_one_thread(evaluate, operands, params)

        return functools.wraps(evaluate)(evaluate_alone)

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Params) -> Results:
        """Return the shapes that the other factor and the pattern tell."""
        dtype = floating_of(*[aval_of(x).dtype for x in inputs])
        return (Aval(params["pattern"].data_shape if self.gives_elements else aval_of(inputs[1]).shape, dtype),), None


def floating_of(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of floats in which numbers of some dtypes are computed with."""
    dtype = np.result_type(*dtypes)
    return dtype if dtype.kind in "fc" else np.dtype(float)


# Matrices of blocks


def double_pattern(pattern: StoragePattern) -> StoragePattern:
    """Return the pattern of [[A, A'], [0, A]], whose elements are those of A, of A' and of A again."""

    def make() -> StoragePattern:
        size, (rows, columns) = pattern.shape[0], pattern.coordinates
        places = [np.concatenate(x) for x in ([rows, rows, rows + size], [columns, columns + size, columns + size])]
        dtype = np.int32 if max(2 * size, 3 * len(rows)) < 1 << 31 else np.int64
        shape, count = (2 * size, 2 * size), (3 * len(rows),)
        return known_pattern("coo", pattern.is_array, shape, count, [x.astype(dtype) for x in places])

    found: StoragePattern = pattern.derive("doubled", make)
    return found


def doubled_elements(data: Any, moved: Any, pattern: StoragePattern) -> tuple[Any, Any]:
    """Return the elements of [[A, A' / c], [0, A]], and the largest of A', c, of which what is computed is a multiple.

    Of large tangents powers of the matrix, by which SciPy tells steps, would be infinite. c is a constant, as nothing
    that is multiplied by it again depends on it.
    """
    own, beside = entries(data, pattern), entries(moved, pattern)
    peak = apply(barrier, np.max(np.abs(beside), initial=0.0))
    size = np.where(peak == 0, np.ones((), aval_of(peak).dtype), peak)
    return np.concatenate([own, beside / size, own]), size


def own_elements(both: Any, pattern: StoragePattern) -> Any:
    """Return what elements of A gain, given that of those of [[A, A'], [0, A]]."""
    count = len(pattern.coordinates[0])
    found = both[:count] + both[2 * count :]
    if pattern.inside is not None:
        found = scatter(found, pattern.inside, np.zeros(pattern.size, aval_of(found).dtype))
    return np.reshape(found, pattern.data_shape)


def beside_zeros(x: Any, first: bool) -> Any:
    """Return an array with as many zeros below it, or above."""
    zeros = np.zeros(shape_of(x), aval_of(x).dtype)
    return np.concatenate([x, zeros] if first else [zeros, x])


def moved_product(data: Any, moved: Any, x: Any, pattern: StoragePattern, transposed: bool) -> Any:
    """Return the tangent of exp(A) X, or of exp(A)^T X, along A'."""
    block, size = doubled_elements(data, moved, pattern)
    found = apply(
        exponential_product, block, beside_zeros(x, transposed), pattern=double_pattern(pattern), transposed=transposed
    )
    rows = shape_of(x)[0]
    return (found[rows:] if transposed else found[:rows]) * size


def moved_elements(data: Any, moved: Any, left: Any, right: Any, pattern: StoragePattern) -> Any:
    """Return the tangent of K(A; L, R) along A', which is the cotangent of A given that of K, too."""
    block, size = doubled_elements(data, moved, pattern)
    sides = beside_zeros(left, True), beside_zeros(right, False)
    return own_elements(apply(exponential_elements, block, *sides, pattern=double_pattern(pattern)), pattern) * size


# Products


def evaluate_exponential(data: Any, x: Any, *, pattern: StoragePattern, transposed: bool) -> Any:
    """Evaluate `exponential_product` by SciPy; of a matrix that is not finite nothing is known."""
    from scipy.sparse import linalg

    require_elements(data, pattern)
    dtype = floating_of(data.dtype, x.dtype)
    if x.size == 0 or not np.isfinite(data).all():
        return np.full(x.shape, np.nan, dtype)
    matrix = pattern.matrix(data.astype(floating_of(data.dtype), copy=False)).tocsr()
    matrix = matrix.T.tocsr() if transposed else matrix
    found = linalg.expm_multiply(matrix, x.astype(dtype, copy=False), traceA=matrix.diagonal().sum())
    return np.asarray(found).astype(dtype, copy=False)


def product_to_matrix(ct: Any, aval: Aval, _out: Any, data: Any, x: Any, **params: Any) -> Any:
    """Return the elements of K."""
    sides = (x, ct) if params["transposed"] else (ct, x)
    return match_dtype(apply(exponential_elements, data, *sides, pattern=params["pattern"]), aval.dtype)


def product_to_factor(ct: Any, aval: Aval, _out: Any, data: Any, _x: Any, **params: Any) -> Any:
    """Multiply by the transpose."""
    turned = {**params, "transposed": not params["transposed"]}
    return match_dtype(apply(exponential_product, data, ct, **turned), aval.dtype)


def jvp_exponential(tangents: Sequence[Any], _out: Any, data: Any, x: Any, **params: Any) -> Any:
    """Multiply the tangent of the factor, and take that of the matrix from blocks."""
    moved, dx = tangents
    by_x = None if dx is None else apply(exponential_product, data, dx, **params)
    if moved is None:
        return by_x
    by_data = moved_product(data, moved, x, params["pattern"], params["transposed"])
    return by_data if by_x is None else by_data + by_x


exponential_product: Primitive = opaque(
    "exponential_product",
    evaluate_exponential,
    vjp=(product_to_matrix, product_to_factor),
    jvp=jvp_exponential,
    form=ExponentialForm(False),
    batch=batch_iterative,
)


# Elements of K


class TaylorSteps(NamedTuple):
    """Hold a matrix whose trace is none, divided into steps whose terms are few.

    Attributes:
        matrix: the step (A - mu) / S.
        growth: exp(mu / S), which each step has further.
        number: how many steps, S, there are.
        terms: how many terms each takes.
        nodes: how many of a Gauss-Legendre rule the integral over a step takes.
    """

    matrix: Any
    growth: Any
    number: int
    terms: int
    nodes: int

    def expand(self, matrix: Any, x: Array) -> Array:
        """Return the terms of exp(matrix) X, along the first axis."""
        found = np.empty((self.terms, *x.shape), x.dtype)
        found[0] = x
        for k in range(1, self.terms):
            np.divide(matrix @ found[k - 1], k, out=found[k])
        return found

    def advance(self, terms: Array) -> Array:
        """Return exp(A / S) X, given the terms of it without the trace."""
        end: Array = self.growth * terms.sum(axis=0)
        return end

    def walk(self, x: Array, count: int, every: int) -> list[Array]:
        """Return what X is before so many steps, but only before each so-many-th."""
        found = [x]
        for i in range(1, (count - 1) // every * every + 1):
            x = self.advance(self.expand(self.matrix, x))
            if i % every == 0:
                found.append(x)
        return found


def steps_of(matrix: Any) -> TaylorSteps:
    """Divide a matrix into steps, by the smaller one of two norms."""
    from scipy import sparse

    size = matrix.shape[0]
    mean = matrix.diagonal().sum() / size
    centred = (matrix - mean * sparse.eye_array(size, dtype=matrix.dtype, format="csr")).tocsr()
    sums = [np.max(abs(centred).sum(axis=axis)) for axis in (0, 1)]
    count = max(1, math.ceil(min(sums) / LARGEST))
    length, terms, last = float(min(sums)) / count, 1, 1.0
    while last > np.finfo(matrix.dtype).eps / LARGEST:
        last *= length / terms
        terms += 1
    return TaylorSteps(centred / count, np.exp(mean / count), count, terms, nodes_for(length, matrix.dtype))


def nodes_for(length: float, dtype: np.dtype[Any]) -> int:
    """Return how many nodes integrate exp(s A) X exp((1 - s) A), by the error q!^4 (2 |A|)^(2 q) / (2 q)!^3 of q."""
    q, limit, wide = 1, math.log(np.finfo(dtype).eps / LARGEST), math.log(max(2 * length, TINY))
    while 4 * math.lgamma(q + 1) - 3 * math.lgamma(2 * q + 1) + 2 * q * wide > limit:
        q += 1
    return q


@functools.cache
def powers_at_nodes(nodes: int, terms: int) -> tuple[Array, Array]:
    """Return w s^j and (1 - s)^k of the nodes s of a rule on [0, 1] and its weights w."""
    places, weights = np.polynomial.legendre.leggauss(nodes)
    powers = ((1 + places[:, None]) / 2) ** np.arange(terms)
    return weights[:, None] / 2 * powers, powers[::-1]


def evaluate_elements(data: Any, left: Any, right: Any, *, pattern: StoragePattern) -> Any:
    """Evaluate `exponential_elements`; of a matrix that is not finite nothing is known."""
    require_elements(data, pattern)
    dtype = floating_of(data.dtype, left.dtype, right.dtype)
    found = np.zeros(pattern.data_shape, dtype)
    if left.size == 0 or not np.isfinite(data).all():
        return found if left.size == 0 else np.full_like(found, np.nan)
    steps = steps_of(pattern.matrix(data.astype(dtype, copy=False)).tocsr())
    size, back = left.shape[0], steps.matrix.T.tocsr()
    x, y = (z.astype(dtype, copy=False).reshape(size, -1) for z in (right, left))
    weighted, reversed_powers = (z.astype(found.real.dtype) for z in powers_at_nodes(steps.nodes, steps.terms))
    every = max(math.isqrt(steps.number) + 1, ROOM // x.size)  # of many steps but few are held: others follow from them
    held = steps.walk(x, steps.number, every)
    for i in reversed(range(len(held))):
        for start in reversed(steps.walk(held[i], min(every, steps.number - i * every), 1)):
            ahead, behind = steps.expand(steps.matrix, start), steps.expand(back, y)
            at_nodes = np.tensordot(weighted, behind, 1), np.tensordot(reversed_powers, ahead, 1)
            found += evaluate_sampled(*[np.moveaxis(z, 0, 1).reshape(size, -1) for z in at_nodes], pattern=pattern)
            y = steps.advance(behind)
    return (found * (steps.growth / steps.number)).astype(dtype, copy=False)


def elements_to_matrix(
    ct: Any, aval: Aval, _out: Any, data: Any, left: Any, right: Any, *, pattern: StoragePattern
) -> Any:
    """Return the tangent of K along the cotangent."""
    return match_dtype(moved_elements(data, ct, left, right, pattern), aval.dtype)


def elements_to_left(
    ct: Any, aval: Aval, _out: Any, data: Any, _left: Any, right: Any, *, pattern: StoragePattern
) -> Any:
    """Return the tangent of exp(A) R along the cotangent."""
    return match_dtype(moved_product(data, ct, right, pattern, False), aval.dtype)


def elements_to_right(
    ct: Any, aval: Aval, _out: Any, data: Any, left: Any, _right: Any, *, pattern: StoragePattern
) -> Any:
    """Return the tangent of exp(A)^T L along the cotangent."""
    return match_dtype(moved_product(data, ct, left, pattern, True), aval.dtype)


def jvp_elements(
    tangents: Sequence[Any], _out: Any, data: Any, left: Any, right: Any, *, pattern: StoragePattern
) -> Any:
    """Take K of each tangent of its factors, and its own along that of A."""
    moved, dleft, dright = tangents
    parts = [
        None if dleft is None else apply(exponential_elements, data, dleft, right, pattern=pattern),
        None if dright is None else apply(exponential_elements, data, left, dright, pattern=pattern),
        None if moved is None else moved_elements(data, moved, left, right, pattern),
    ]
    first, *others = [part for part in parts if part is not None]
    return sum(others, first)


exponential_elements: Primitive = opaque(
    "exponential_elements",
    evaluate_elements,
    vjp=(elements_to_matrix, elements_to_left, elements_to_right),
    jvp=jvp_elements,
    form=ExponentialForm(True),
    batch=batch_iterative,
)
