"""Products of sparse matrices and arrays: one primitive, and the one that its derivatives need.

With the product A X, linear in the stored elements a of A and in X, and the elements of L R^T at the places of a,
linear in L and in R, all derivatives of both are one of them again:

    y = A(a) X:    a' -> A(a') X,    X' -> A(a) X',    y* -> (y* X^T at a),    y* -> A(a)^T y*
    s = L R^T at a:    s* -> A(s*) R,    s* -> A(s*)^T L

So jvp, vjp, any order and lanes follow, and a matrix of the full size is never made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import lead
from wengert.core.forms.element_maps import is_known, unflatten_coordinate
from wengert.core.forms.form import Form
from wengert.core.forms.shape_probes import Results
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate, read
from wengert.core.primitives.cotangent import match_dtype
from wengert.core.primitives.declare import multilinear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of, shape_of
from wengert.core.values.dispatch import apply, as_tensor
from wengert.errors import ShapeError
from wengert.primitives.indexing.elements import gather, scatter
from wengert.primitives.sparse.storage_pattern import StoragePattern

Params = Mapping[str, Any]

MOST_DIAGONALS = 32
"""Diagonals of a matrix that are multiplied one by one natively."""
ROOM = 1 << 16
"""Elements of rows that are gathered at once, so that they stay in the cache."""


class SparseForm(Form):
    """A sparse matrix, of which the pattern is a parameter: shapes follow from that, and nobody need compute them.

    Attributes:
        gives_elements: whether the result is the stored elements of a matrix, else its product with the last operand.
    """

    gives_elements: bool

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Params) -> Results:
        """Return the shape that the pattern tells."""
        avals = [aval_of(x) for x in inputs]
        dtype = np.result_type(*[aval.dtype for aval in avals])
        pattern: StoragePattern = params["pattern"]
        if self.gives_elements:
            return (Aval(pattern.data_shape, dtype),), None
        rows = pattern.shape[1 if params["transposed"] else 0]
        return (Aval((rows, *avals[1].shape[1:]), dtype),), None

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> list[BoxMap]:
        """Join the rows and columns of the stored elements, as often as there are further columns."""
        pattern: StoragePattern = params["pattern"]
        rows, columns = pattern.coordinates[:: -1 if params.get("transposed") else 1]
        count, wide = len(rows), shape_of(operands[-1])[1:]
        more = [Coordinate.along(d) for d in range(1, 1 + len(wide))]
        inside = np.arange(count) if pattern.inside is None else np.asarray(pattern.inside)
        element = [Coordinate.from_table(0, inside.astype(np.int64))]
        sides = [[Coordinate.from_table(0, places.astype(np.int64)), *more] for places in (rows, columns)]
        if self.gives_elements:
            target, sources, shapes = element, sides, [shape_of(x) for x in operands]
        else:
            target, sources, shapes = sides[0], [element, sides[1]], [(pattern.size,), shape_of(operands[1])]
        extents = (count, *wide)
        factor: Any = None
        if is_known(operands[1 - position]):
            other = np.reshape(operands[1 - position], shapes[1 - position])
            factor = read(other, sources[1 - position], extents)
        if self.gives_elements and len(out.shape) != 1:
            target = list(unflatten_coordinate(target, out.shape, extents))
        return [BoxMap(extents, target, sources[position], factor)]


def evaluate_product(data: Any, x: Any, *, pattern: StoragePattern, transposed: bool) -> Any:
    """Evaluate `sparse_product` by SciPy."""
    matrix = pattern.matrix(data)
    found = (matrix.T if transposed else matrix) @ x
    shape = (pattern.shape[1 if transposed else 0], *x.shape[1:])
    return found if found.shape == shape else found.reshape(shape)  # SciPy gives a number for one element in coo


def evaluate_sampled(left: Any, right: Any, *, pattern: StoragePattern) -> Any:
    """Evaluate `sampled_product`: of the rows of both at the place of each stored element."""
    rows, columns = pattern.coordinates
    if left.ndim == 1:
        found = left.take(rows)
        found = np.multiply(found, right.take(columns), out=found if found.dtype == result_of(left, right) else None)
    else:
        found = np.empty(len(rows), result_of(left, right))
        step = max(1, ROOM // max(1, left.shape[1]))
        for i in range(0, len(rows), step):
            part = slice(i, i + step)
            np.einsum("km,km->k", left[rows[part]], right[columns[part]], out=found[part])
    if pattern.inside is not None:
        inner, found = found, np.zeros(pattern.size, found.dtype)
        found[pattern.inside] = inner
    return found.reshape(pattern.data_shape)


def result_of(left: Any, right: Any) -> np.dtype[Any]:
    """Return the dtype of a product of arrays."""
    return np.result_type(left.dtype, right.dtype)


def transpose_to_elements(ct: Any, aval: Aval, x: Any, *, pattern: StoragePattern, transposed: bool) -> Any:
    """Return the cotangent of the stored elements of a matrix, given that of its product."""
    left, right = (x, ct) if transposed else (ct, x)
    return match_dtype(apply(sampled_product, left, right, pattern=pattern), aval.dtype)


def transpose_to_factor(ct: Any, aval: Aval, data: Any, *, pattern: StoragePattern, transposed: bool) -> Any:
    """Return the cotangent of the other factor."""
    return match_dtype(apply(sparse_product, data, ct, pattern=pattern, transposed=not transposed), aval.dtype)


def batch_product(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Params
) -> Any:
    """Multiply (or solve) with the lanes as further columns, or one matrix that has theirs along its diagonal."""
    (data, x), pattern, transposed = operands, params["pattern"], params["transposed"]
    if not batched[0]:
        columns = np.moveaxis(x, 0, -1)
        rest = shape_of(columns)
        width = size * (rest[1] if len(rest) == 3 else 1)
        found = apply(primitive, data, np.reshape(columns, (rest[0], width)), **params)
        return np.moveaxis(np.reshape(found, (shape_of(found)[0], *rest[1:])), -1, 0)
    many = pattern.repeat_lanes(size)
    stacked = lead(x, batched[1], size)
    rest = shape_of(stacked)
    flat = np.reshape(stacked, (size * rest[1], *rest[2:]))
    found = apply(primitive, stacked_elements(data, pattern, many), flat, **{**params, "pattern": many})
    return np.reshape(found, (size, pattern.shape[1 if transposed else 0], *rest[2:]))


def stacked_elements(data: Any, pattern: StoragePattern, many: StoragePattern) -> Any:
    """Return the stored elements of a matrix that has those of all lanes along its diagonal."""
    if pattern.inside is not None:
        data = np.reshape(data, (shape_of(data)[0], pattern.size))[:, pattern.inside]
    return np.reshape(data, many.data_shape)


def batch_sampled(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Params
) -> Any:
    """Take the elements of one matrix that has those of the lanes along its diagonal."""
    pattern = params["pattern"]
    many = pattern.repeat_lanes(size)
    stacked = [lead(x, flag, size) for x, flag in zip(operands, batched, strict=True)]
    left, right = (np.reshape(x, (size * shape_of(x)[1], *shape_of(x)[2:])) for x in stacked)
    found = apply(primitive, left, right, pattern=many)
    if pattern.inside is None:
        return np.reshape(found, (size, *pattern.data_shape))
    places = (np.arange(size)[:, None] * pattern.size + pattern.inside).reshape(-1)
    whole = scatter(found, places, np.zeros(size * pattern.size, aval_of(found).dtype))
    return np.reshape(whole, (size, *pattern.data_shape))


def product_by_elements(data: Any, x: Any, *, pattern: StoragePattern, transposed: bool) -> tuple[Any, None]:
    """Return what native code computes of a matrix that has no lines: its diagonals, or elements one by one."""
    like = np.zeros((pattern.shape[1 if transposed else 0], *x.shape[1:]), np.result_type(data.dtype, x.dtype))
    if pattern.format == "dia" and len(pattern.arrays[0]) <= MOST_DIAGONALS:
        return product_by_diagonals(data, x, as_tensor(like), pattern, transposed), None
    targets, sources = pattern.coordinates[:: -1 if transposed else 1]
    values = as_column(entries(data, pattern), x) * gather(x, sources)
    return scatter(values.astype(like.dtype), targets, like), None


def product_by_diagonals(data: Any, x: Any, found: Any, pattern: StoragePattern, transposed: bool) -> Any:
    """Return zeros with the products of each diagonal with the part of a factor beside it added."""
    rows, columns = pattern.shape
    for n, offset in enumerate(map(int, pattern.arrays[0])):
        start, stop = max(0, offset), min(columns, rows + offset, pattern.data_shape[1])
        if start < stop:
            target, source = slice(start - offset, stop - offset), slice(start, stop)
            if transposed:
                target, source = source, target
            found[target] += as_column(data[n, start:stop], x) * x[source]
    return found


def as_column(values: Any, x: Any) -> Any:
    """Return numbers as they are multiplied with the rows of an array."""
    return values if x.ndim == 1 else values[:, None]


def sampled_by_elements(left: Any, right: Any, *, pattern: StoragePattern) -> tuple[Any, None]:
    """Return what native code computes of the elements of L R^T where a matrix has some that has no lines."""
    rows, columns = pattern.coordinates
    found = gather(left, rows) * gather(right, columns)
    found = found if left.ndim == 1 else np.sum(found, axis=1)
    if pattern.inside is not None:
        found = add_up(found, pattern.inside, pattern.size)
    return np.reshape(found, pattern.data_shape), None


sparse_product: Primitive = multilinear(
    "sparse_product",
    evaluate_product,
    (transpose_to_elements, transpose_to_factor),
    form=SparseForm(False),
    batch=batch_product,
    usual_case=product_by_elements,
)
sampled_product: Primitive = multilinear(
    "sampled_product",
    evaluate_sampled,
    (
        lambda ct, aval, right, *, pattern: match_dtype(
            apply(sparse_product, ct, right, pattern=pattern, transposed=False), aval.dtype
        ),
        lambda ct, aval, left, *, pattern: match_dtype(
            apply(sparse_product, ct, left, pattern=pattern, transposed=True), aval.dtype
        ),
    ),
    form=SparseForm(True),
    batch=batch_sampled,
    usual_case=sampled_by_elements,
)


# Other linear maps of the stored elements


def require_elements(data: Any, pattern: StoragePattern) -> None:
    """Raise a ShapeError unless there are as many stored elements as a pattern has places: lanes may be others."""
    lanes = stack_of(data, pattern)
    if lanes:
        given = f"a stack of {' x '.join(map(str, lanes))} sparse arrays"
        action = "Take one of them by stack[i], or use .toarray(), .data, or wengert.vmap"
        raise ShapeError("sparse", given, "one sparse array is needed", action)
    shape, axes = shape_of(data), len(pattern.data_shape)
    if shape[:axes] == pattern.data_shape and len(shape) > axes:
        given = f"a sparse array whose elements are arrays of shape {shape[axes:]}, as derivatives of one are"
        action = (
            "Take one of them by .data[i], or use wengert.sparse.jacobian or hessian, which give one matrix of numbers"
        )
        raise ShapeError("sparse", given, "a sparse array of numbers is needed", action)
    if shape != pattern.data_shape:
        given = f"a sparse array with elements of shape {shape}"
        action = "Make it of those of one lane, by matrix.with_data(elements) inside of the function, say"
        raise ShapeError("sparse", given, f"shape {pattern.data_shape} is needed, one for each place", action)


def stack_of(data: Any, pattern: StoragePattern) -> tuple[int, ...]:
    """Return how many matrices of a pattern there are along each axis in front of stored elements; () if it is one."""
    is_array = hasattr(data, "shape") and not hasattr(type(data), "tocsr")  # else an array of such in each place
    shape = shape_of(data) if is_array else ()
    axes = len(shape) - len(pattern.data_shape)
    return shape[:axes] if axes > 0 and shape[axes:] == pattern.data_shape else ()


def entries(data: Any, pattern: StoragePattern) -> Any:
    """Return the stored elements that are in the matrix as a vector, in the order of the pattern's coordinates."""
    require_elements(data, pattern)
    flat = np.reshape(data, (pattern.size,)) if len(pattern.data_shape) != 1 else data
    return flat if pattern.inside is None else gather(flat, pattern.inside)


def add_up(values: Any, places: np.ndarray[Any, Any], size: int) -> Any:
    """Return sums of values, each at its place among so many."""
    return scatter(values, places, np.zeros(size, aval_of(values).dtype))
