"""Sparse arrays made of stored elements, of dense arrays, and of other sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.primitives.sparse.places import selected_by
from wengert.primitives.sparse.products import entries
from wengert.primitives.sparse.sparse_tensor import SparseTensor, sparse_tensor
from wengert.primitives.sparse.storage_pattern import known_pattern, pattern_of

BELOW = "Give (data, (row, col))"
SHORT = 1 << 31


def issparse(x: Any) -> bool:
    """Tell whether a value is a sparse array: SciPy's, or one of Tensors; see `scipy.sparse.issparse`.

    >>> issparse(eye_array(2)), issparse(np.eye(2))
    (True, False)
    """
    return isinstance(x, SparseTensor) or bool(scipy.sparse.issparse(x))


def as_sparse_tensor(name: str, value: Any) -> SparseTensor:
    """Return a sparse array of Tensors of one, of one of SciPy's, or of a dense array whose elements are known."""
    if isinstance(value, SparseTensor):
        return value
    if scipy.sparse.issparse(value):
        return sparse_tensor(value)
    if type(value) is Tensor and not (is_concrete(value) and value._trace is None and value._node is None):
        given = "an array in full that is being differentiated or traced"
        raise GraphError(name, given, "to know where its elements are not zero is needed", BELOW)
    known = raw(value) if type(value) is Tensor else np.asarray(value)
    if known.dtype.kind not in "biufc":
        raise DtypeError(name, f"data of dtype {known.dtype}", "numbers are needed", "Convert it")
    return sparse_tensor(scipy.sparse.coo_array(known))


def known_array(value: Any) -> np.ndarray[Any, Any]:
    """Return an index array, of which the elements must be known."""
    if type(value) is Tensor and not is_concrete(value):
        given = "an index array that is being traced"
        raise GraphError("sparse", given, "to know where elements are stored is needed", "Pass an ndarray")
    return np.asarray(raw(value) if type(value) is Tensor else value)


def numbers_like(data: Any) -> np.ndarray[Any, Any]:
    """Return the number of each stored element, from 1, in their shape."""
    shape = shape_of(data)
    return np.arange(1, int(np.prod(shape)) + 1).reshape(shape)


def of_parts(name: str, format: str, arg1: Any, shape: Any) -> SparseTensor:
    """Return a sparse array of what SciPy's constructors take in a tuple."""
    kind = getattr(scipy.sparse, f"{format}_array")
    data, *rest = arg1
    if len(arg1) == 2 and np.ndim(data) == 0 and np.ndim(rest[0]) == 0 and format != "dia":  # a shape
        return sparse_tensor(kind(arg1))
    if type(data) is not Tensor and any(type(x) is Tensor for x in data):
        data = np.stack(list(data))
    data = as_tensor(data)
    is_placed = len(rest) == 1 and format != "dia"
    if is_placed:
        rest = [tuple(map(known_array, rest[0]))]
        kind = scipy.sparse.coo_array
    else:
        rest = list(map(known_array, rest))
    if len(rest) not in (1, 2):
        given, needed = f"a tuple of {len(arg1)}", "(data, indices, indptr), (data, (row, col)) or a shape is needed"
        raise UsageError(name, given, needed, "See SciPy's documentation")
    found = kind((numbers_like(data), *rest), shape=shape)
    pattern = pattern_of(found)
    if pattern.data_shape != data.shape:
        given = f"elements of shape {data.shape} for places of shape {pattern.data_shape}"
        raise ShapeError(name, given, "an element for each place is needed", "Correct one of them")
    return SparseTensor(pattern, data)


def constructor(format: str) -> Callable[..., SparseTensor]:
    """Return the function that makes sparse arrays of a format."""
    name = f"{format}_array"
    parts = {
        "coo": "(data, (row, col))",
        "dia": "(data, offsets)",
        "bsr": "(data, indices, indptr) with data of shape (blocks, rows, columns), or (data, (row, col))",
    }.get(format, "(data, indices, indptr), or (data, (row, col)) with elements at one place added up")
    example = "([1.0, 2.0], (np.array([0, 1]), np.array([1, 0])))"
    if format == "dia":
        example = "(np.array([[1.0, 2.0]]), np.array([0])), shape=(2, 2)"

    def make(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> SparseTensor:
        found = of_parts(name, format, arg1, shape) if type(arg1) is tuple else as_sparse_tensor(name, arg1)
        found = found.asformat(format)
        return found if dtype is None else found.astype(dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Return a sparse array of Tensors in the format {format}; see `scipy.sparse.{name}`.

    Args:
        arg1: {parts};
            or a sparse array; or an array in full whose elements are known, of which those that are not 0 are stored;
            or a shape. Index arrays are known numbers.
        shape: of the array, two lengths; by default as large as the places are.
        dtype: of its elements; by default as they are.
        copy: not used: elements are never written to.

    Returns:
        A `SparseTensor`.

    Raises:
        GraphError: an array in full is being differentiated or traced, or places are.
        ShapeError: there are not as many elements as places.

    >>> import numpy as np
    >>> {name}({example.removesuffix(", shape=(2, 2)")}{", shape=(2, 2)" if format == "dia" else ""}).toarray()
    {"tensor([[1., 0.]," if format == "dia" else "tensor([[0., 1.],"}
            {"[0., 2.]])" if format == "dia" else "[2., 0.]])"}
    """
    return make


bsr_array = constructor("bsr")
coo_array = constructor("coo")
csc_array = constructor("csc")
csr_array = constructor("csr")
dia_array = constructor("dia")


def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None
) -> SparseTensor:
    """Return a sparse array with diagonals, of which each may be being differentiated; see `scipy.sparse.diags_array`.

    Args:
        diagonals: vectors, each of the length of its diagonal or a number for all of it, or one vector.
        offsets: which diagonals: 0 for the main one, more above; whole numbers, one for each.
        shape: of the array; by default square and large enough.
        format: SciPy's name of the format; by default dia.
        dtype: of its elements.

    Returns:
        A `SparseTensor`.

    Raises:
        ShapeError: a diagonal has another length.

    >>> diags_array([np.ones(2), np.array([5.0])], offsets=[0, 1]).toarray()
    tensor([[1., 5.],
            [0., 1.]])
    """
    is_one = np.ndim(offsets) == 0
    rows = [as_tensor(x) for x in ([diagonals] if is_one and np.ndim(diagonals[0]) == 0 else diagonals)]
    places = [int(offsets)] if is_one else [int(k) for k in offsets]
    if len(rows) != len(places) or len(set(places)) != len(places):
        given = f"{len(rows)} diagonals and {len(places)} offsets"
        raise UsageError("diags_array", given, "as many are needed, each offset once", "Correct one of them")
    if shape is None:
        shape = (len(rows[0]) + abs(places[0]),) * 2
    elements, ends = [], []
    for x, k in zip(rows, places, strict=True):
        length = max(0, min(shape[0] + min(k, 0), shape[1] - max(k, 0)))
        if x.ndim > 1 or (x.ndim == 1 and len(x) not in (1, length)):
            given = f"a diagonal of shape {x.shape} at offset {k} of shape {tuple(shape)}"
            raise ShapeError("diags_array", given, f"{length} elements are needed", "Correct it, or the shape")
        elements.append(np.broadcast_to(x, (length,)))
        ends.append((max(-k, 0), max(k, 0), length))
    row = np.concatenate([np.arange(i, i + n) for i, _, n in ends])
    column = np.concatenate([np.arange(j, j + n) for _, j, n in ends])
    made = coo_array((np.concatenate(elements), (row, column)), shape=shape).asformat(format or "dia")
    return made if dtype is None else made.astype(dtype)


def eye_array(
    m: int, n: int | None = None, *, k: int = 0, dtype: Any = float, format: str | None = None
) -> SparseTensor:
    """Return ones on a diagonal; see `scipy.sparse.eye_array`.

    Args:
        m: how many rows.
        n: how many columns; by default as many.
        k: which diagonal: 0 for the main one, more above.
        dtype: of the elements.
        format: SciPy's name of the format; by default dia.

    Returns:
        A `SparseTensor`.

    >>> eye_array(2, k=1).toarray()
    tensor([[0., 1.],
            [0., 0.]])
    """
    return sparse_tensor(scipy.sparse.eye_array(m, n, k=k, dtype=dtype, format=format))


# Of other sparse arrays


def join_blocks(
    blocks: Sequence[SparseTensor], operate: Callable[[list[Any]], Any], format: Any, dtype: Any
) -> SparseTensor:
    """Return what an operation of SciPy's that puts matrices side by side makes of some, with elements of a dtype."""
    whole = [block.sum_duplicates_of() for block in blocks]
    flat = [np.reshape(block.data, (block._pattern.size,)) for block in whole]
    numbered, first = [], 1
    for block in whole:
        size = block._pattern.size
        numbered.append(block._pattern.matrix(np.arange(first, first + size).reshape(block._pattern.data_shape)))
        first += size
    made = operate(numbered)
    made = made if made.format in ("csr", "csc", "coo") else made.tocoo()
    common = np.result_type(*[aval_of(x).dtype for x in flat])
    data = np.concatenate([x if aval_of(x).dtype == common else x.astype(common) for x in flat])[made.data - 1]
    found = SparseTensor(pattern_of(made), data).asformat(format)
    return found if dtype is None else found.astype(dtype)


def of_blocks(name: str, blocks: Any) -> list[SparseTensor]:
    """Return matrices as sparse arrays of Tensors."""
    found = [as_sparse_tensor(name, block) for block in blocks]
    if not found:
        raise ShapeError(name, "no blocks", "one at least is needed", "Pass some")
    return found


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> SparseTensor:
    """Return matrices side by side; see `scipy.sparse.hstack`.

    Args:
        blocks: sparse arrays, or arrays in full whose elements are known, of as many rows.
        format: SciPy's name of the format of the result.
        dtype: of its elements.

    Returns:
        A `SparseTensor`.

    Raises:
        ShapeError: there are none.

    >>> hstack([eye_array(2), eye_array(2)]).toarray()
    tensor([[1., 0., 1., 0.],
            [0., 1., 0., 1.]])
    """
    return join_blocks(of_blocks("hstack", blocks), scipy.sparse.hstack, format, dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> SparseTensor:
    """Return matrices one below the other; see `scipy.sparse.vstack`.

    Args:
        blocks: sparse arrays, or arrays in full whose elements are known, of as many columns.
        format: SciPy's name of the format of the result.
        dtype: of its elements.

    Returns:
        A `SparseTensor`.

    Raises:
        ShapeError: there are none.

    >>> vstack([eye_array(1), 2.0 * eye_array(1)]).toarray()
    tensor([[1.],
            [2.]])
    """
    return join_blocks(of_blocks("vstack", blocks), scipy.sparse.vstack, format, dtype)


def block_array(blocks: Any, *, format: str | None = None, dtype: Any = None) -> SparseTensor:
    """Return a sparse array of blocks in rows and columns; see `scipy.sparse.block_array`.

    Args:
        blocks: rows of sparse arrays, or of arrays in full whose elements are known; None for zeros.
        format: SciPy's name of the format of the result.
        dtype: of its elements.

    Returns:
        A `SparseTensor`.

    Raises:
        ShapeError: there are none.

    >>> block_array([[eye_array(1), None], [None, 3.0 * eye_array(1)]]).toarray()
    tensor([[1., 0.],
            [0., 3.]])
    """
    table = [list(row) for row in blocks]
    whole = of_blocks("block_array", [block for row in table for block in row if block is not None])

    def operate(numbered: list[Any]) -> Any:
        rest = iter(numbered)
        return scipy.sparse.block_array([[None if block is None else next(rest) for block in row] for row in table])

    return join_blocks(whole, operate, format, dtype)


def block_diag(mats: Any, format: str | None = None, dtype: Any = None) -> SparseTensor:
    """Return matrices along a diagonal; see `scipy.sparse.block_diag`.

    Args:
        mats: sparse arrays, or arrays in full whose elements are known.
        format: SciPy's name of the format of the result.
        dtype: of its elements.

    Returns:
        A `SparseTensor`.

    Raises:
        ShapeError: there are none.

    >>> block_diag([eye_array(1), 2.0 * eye_array(1)]).toarray()
    tensor([[1., 0.],
            [0., 2.]])
    """
    return join_blocks(of_blocks("block_diag", mats), scipy.sparse.block_diag, format, dtype)


def kron(A: Any, B: Any, format: str | None = None) -> SparseTensor:  # noqa: N803 - SciPy's names
    """Return the Kronecker product of two matrices; see `scipy.sparse.kron`.

    Args:
        A: a sparse array, or an array in full whose elements are known.
        B: another one.
        format: SciPy's name of the format of the result; by default coo.

    Returns:
        A `SparseTensor`.

    >>> kron(eye_array(2), csr_array(([3.0], ([0], [1])), shape=(1, 2))).toarray()
    tensor([[0., 3., 0., 0.],
            [0., 0., 0., 3.]])
    """
    a, b = as_sparse_tensor("kron", A), as_sparse_tensor("kron", B)
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    dtype = np.int32 if max(shape) < SHORT else np.int64
    coords = [
        (x[:, None] * n + y).reshape(-1).astype(dtype)
        for x, y, n in zip(a._pattern.coordinates, b._pattern.coordinates, b.shape, strict=True)
    ]
    data = np.reshape(entries(a.data, a._pattern)[:, None] * entries(b.data, b._pattern), (len(coords[0]),))
    return SparseTensor(known_pattern("coo", True, shape, (len(coords[0]),), coords), data).asformat(format)


def triangle_of(name: str, x: Any, k: int, format: str | None) -> SparseTensor:
    """Return one triangle of a matrix."""
    matrix = as_sparse_tensor(name, x).sum_duplicates_of().tocoo()
    function = getattr(scipy.sparse, name)
    chosen = selected_by(matrix._pattern, lambda x: function(x, k=k, format="coo"))
    source = np.arange(matrix.nnz) if chosen.source is None else chosen.source
    assert chosen.pattern is not None
    return SparseTensor(chosen.pattern, matrix.data[source]).asformat(format)


def tril(A: Any, k: int = 0, format: str | None = None) -> SparseTensor:  # noqa: N803 - SciPy's name
    """Return the elements on and below a diagonal; see `scipy.sparse.tril`.

    Args:
        A: a sparse array, or an array in full whose elements are known.
        k: which diagonal: 0 for the main one, more above.
        format: SciPy's name of the format of the result; by default coo.

    Returns:
        A `SparseTensor`.

    >>> tril(np.ones((2, 2))).toarray()
    tensor([[1., 0.],
            [1., 1.]])
    """
    return triangle_of("tril", A, k, format)


def triu(A: Any, k: int = 0, format: str | None = None) -> SparseTensor:  # noqa: N803 - SciPy's name
    """Return the elements on and above a diagonal; see `scipy.sparse.triu`.

    Args:
        A: a sparse array, or an array in full whose elements are known.
        k: which diagonal: 0 for the main one, more above.
        format: SciPy's name of the format of the result; by default coo.

    Returns:
        A `SparseTensor`.

    >>> triu(np.ones((2, 2))).toarray()
    tensor([[1., 1.],
            [0., 1.]])
    """
    return triangle_of("triu", A, k, format)
