"""Sparse arrays whose stored elements are Tensors: what SciPy's are while they are differentiated or traced."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.container_classes import register
from wengert.core.diagnostics.argument_checks import shown
from wengert.core.diagnostics.conversion_hints import asked_for_product
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError
from wengert.native.entries.kinds import ATTRIBUTES, Attributes
from wengert.primitives.indexing.elements import gather
from wengert.primitives.sparse import places
from wengert.primitives.sparse.products import add_up, entries, require_elements, sparse_product
from wengert.primitives.sparse.storage_pattern import NAMES, StoragePattern, pattern_of
from wengert.primitives.sparse.stored_elements import StoredElements


class SparseTensor(StoredElements):
    """Be a sparse array or matrix with SciPy's methods, whose stored elements are a Tensor.

    What a transformation is given as a matrix of `scipy.sparse` is this to the function, and so is what
    `wengert.scipy.sparse` makes. Where elements are stored is known, does not depend on values, and stays: elements
    that become zero are stored as zeros. What the function returns with ndarrays in it is SciPy's again.

    Attributes:
        data: the stored elements, a Tensor of the shape that SciPy's `data` has. With more axes in front, as
            `wengert.vmap` and Jacobians by matrices give them, it is a stack of matrices: `stack[i]` is one of them,
            `stack.toarray()` are all in one array, and what can be computed of single elements can be of a stack.
            `wengert.jacobian` of a function that returns a matrix gives more axes behind: `data[i]` is the derivative
            of a stored element, an array or a matrix like the argument.

    >>> import scipy.sparse
    >>> import wengert as wg
    >>> matrix = scipy.sparse.csr_array([[2.0, 0.0], [1.0, 3.0]])
    >>> gradient = wg.grad(lambda a: np.sum((a @ np.array([1.0, 2.0])) ** 2))(matrix)
    >>> type(gradient).__name__, gradient.toarray().tolist()
    ('csr_array', [[4.0, 0.0], [14.0, 28.0]])
    """

    __slots__ = ()
    __array_ufunc__ = None
    __array_priority__ = 100.0

    def __init__(self, pattern: StoragePattern, data: Any) -> None:
        register_sparse()
        super().__init__(pattern, data)

    # What others take

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if asked_for_product(sys._getframe(1)):  # SciPy leaves the product to what is such an array
            found = np.empty((), object)
            found[()] = self
            return found
        given = f"a sparse array of shape {self.shape} whose elements are a Tensor"
        action = "Use wengert.scipy.sparse's functions, .toarray(), or .detach().numpy() for SciPy's own"
        raise UsageError("asarray", given, "an array of all elements is needed", action)

    def detach(self) -> SparseTensor:
        """Return the same without a gradient; see `Tensor.detach`."""
        return SparseTensor(self._pattern, as_tensor(self.data).detach())

    def numpy(self) -> Any:
        """Return SciPy's matrix of these elements, which shares their memory; see `Tensor.numpy`."""
        return self._pattern.matrix(as_tensor(self.data).numpy())

    # Dense results

    def toarray(self, order: Any = None, out: None = None) -> Any:
        """Return all elements as a Tensor of the full shape, or an array where a stack holds one."""
        del order, out
        if self.stack:
            matrices = [self[i].toarray() for i in range(len(self))]
            return np.stack(matrices) if matrices else np.zeros(self.shape, self.dtype)
        values = entries(self.data, self._pattern)
        return np.reshape(add_up(values, self._pattern.keys, int(np.prod(self.shape))), self.shape)

    todense = toarray

    def diagonal(self, k: int = 0) -> Any:
        """Return a diagonal as a vector."""
        chosen, where, length = self._pattern.derive(("diagonal", k), lambda: places.diagonal_of(self._pattern, k))
        return add_up(gather(entries(self.data, self._pattern), chosen), where, length)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of a diagonal."""
        return np.sum(self.diagonal(offset))

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """Return the sum of all elements, or those of columns (axis 0) or rows (axis 1)."""
        del out
        values = entries(self.data, self._pattern)
        kind = np.sum(np.zeros(1, aval_of(values).dtype), dtype=dtype).dtype
        values = values if aval_of(values).dtype == kind else values.astype(kind)
        axes = tuple(axis) if isinstance(axis, tuple) else (axis,)
        if axis is None or self.ndim == 1 or len(axes) == 2:
            return np.sum(values)
        if self.ndim != 2 or not -2 <= axes[0] < 2:
            given = f"axis={axis!r:.40} of a sparse array of shape {self.shape}"
            raise UsageError("sum", given, "None, 0 or 1 is needed", "Use .toarray()")
        along = axes[0] % 2
        found = add_up(values, self._pattern.coordinates[1 - along], self.shape[1 - along])
        return found if self._pattern.is_array else np.expand_dims(found, along)

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """Return the mean of all elements, or those of columns (axis 0) or rows (axis 1)."""
        count = int(np.prod(self.shape)) if axis is None else self.shape[axis]
        return self.sum(axis, dtype) / count

    # Operators

    def dot(self, other: Any) -> Any:
        """Return the product with a vector, a matrix, or a sparse matrix; a multiple for a number."""
        return self * other if is_scalar(other) else self @ other

    def __matmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        beside = as_sparse(other)
        if beside is not None:
            return sparse_by_sparse(self, beside)
        return multiply_dense(self, as_dense(other))

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        beside = as_sparse(other)
        if beside is not None:
            return sparse_by_sparse(beside, self)
        return np.transpose(multiply_dense(self.T, np.transpose(as_dense(other))))

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if self._pattern.is_array or is_scalar(other) else self @ other

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if self._pattern.is_array or is_scalar(other) else other @ self

    def multiply(self, other: Any) -> Any:
        """Return the products of elements, with a number, an array of the shape or one that broadcasts, or a matrix."""
        if is_scalar(other):
            return self.map_elements(lambda x: x * other)
        beside = as_sparse(other)
        return at_places(self, as_dense(other), np.multiply) if beside is None else intersection(self, beside)

    def __truediv__(self, other: Any) -> Any:
        if is_scalar(other):
            return self.map_elements(lambda x: x / other)
        if as_sparse(other) is not None:
            raise without_meaning("divide", "two sparse arrays", "an array below is needed, since 0 / 0 is no number")
        return at_places(self, as_dense(other), np.true_divide)

    def __pow__(self, n: Any) -> Any:
        if self._pattern.is_array:
            return self.power(n)
        if type(n) is not int or n < 1:
            raise UsageError("pow", f"the power {shown(n)} of a matrix", "an integer from 1 is needed", "Use .power(n)")
        return functools.reduce(lambda found, _: found @ self, range(n - 1), self)

    def __add__(self, other: Any) -> Any:
        return sum_of(self, other, np.add)

    def __radd__(self, other: Any) -> Any:
        return sum_of(self, other, np.add)

    def __sub__(self, other: Any) -> Any:
        return sum_of(self, other, np.subtract)

    def __rsub__(self, other: Any) -> Any:
        return sum_of(-self, other, np.add)


# Operands


def is_scalar(value: Any) -> bool:
    """Tell whether an operand is one number."""
    return not isinstance(value, SparseTensor) and not hasattr(value, "tocsr") and np.ndim(value) == 0


def as_sparse(value: Any) -> SparseTensor | None:
    """Return a sparse operand as one of Tensors; None if it is none."""
    if isinstance(value, SparseTensor):
        return value
    return sparse_tensor(value) if hasattr(value, "tocsr") else None


def sparse_tensor(matrix: Any) -> SparseTensor:
    """Return a matrix of SciPy's as one of Tensors, in a format with an array of stored elements."""
    matrix = matrix if hasattr(matrix, "data") and matrix.format not in ("lil", "dok") else matrix.tocsr()
    return SparseTensor(pattern_of(matrix), as_tensor(matrix.data))


def as_dense(value: Any) -> Any:
    """Return a dense operand as a Tensor or array."""
    return value if type(value) is Tensor or type(value) is np.ndarray else as_tensor(value)


def without_meaning(name: str, given: str, needed: str) -> UsageError:
    """Return the error about an operation that would fill all places."""
    return UsageError(name, given, needed, "Use .toarray()")


def multiply_dense(matrix: SparseTensor, x: Any) -> Any:
    """Return the product of a matrix and a vector or matrix."""
    if len(matrix.shape) == 1:
        values, (where,) = entries(matrix.data, matrix._pattern), matrix._pattern.coordinates
        if not x.ndim or x.shape[0] != matrix.shape[0]:
            raise unequal_lengths(matrix, x)
        return values @ gather(x, where)
    require_elements(matrix.data, matrix._pattern)
    if matrix.ndim != 2 or x.ndim not in (1, 2) or x.shape[0] != matrix.shape[1]:
        raise unequal_lengths(matrix, x)
    found = apply(sparse_product, matrix.data, x, pattern=matrix._pattern, transposed=False)
    gives_number = matrix._pattern.format == "coo" and matrix._pattern.is_array and found.shape == (1,)
    return found[0] if gives_number else found  # as SciPy's (1.17) for one row


def unequal_lengths(matrix: Any, x: Any) -> ShapeError:
    """Return the error about factors that do not fit."""
    given = f"a sparse matrix of shape {matrix.shape} and a Tensor of shape {x.shape}"
    needed = "a vector or a matrix with as many rows as the sparse matrix has columns is needed"
    return ShapeError("matmul", given, needed, "Reshape it")


def sparse_by_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Return the product of two sparse matrices, which has an element where terms meet, zero or not."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        given = f"sparse matrices of shapes {a.shape} and {b.shape}"
        needed = "as many rows in the second as columns in the first are needed"
        raise ShapeError("matmul", given, needed, "Transpose one")
    pairs = places.product_pairs(a._pattern, b._pattern)
    terms = gather(entries(a.data, a._pattern), pairs.left) * gather(entries(b.data, b._pattern), pairs.right)
    return SparseTensor(pairs.pattern, add_up(terms, pairs.places, pairs.pattern.size))


def require_same_shape(name: str, a: SparseTensor, b: Any) -> None:
    """Raise a ShapeError unless two operands have one shape."""
    if a.shape != shape_of(b):
        given = f"a sparse array of shape {a.shape} and one of shape {shape_of(b)}"
        raise ShapeError(name, given, "one shape is needed", "Reshape one of them")


def at_places(a: SparseTensor, x: Any, function: Callable[[Any, Any], Any]) -> SparseTensor:
    """Return a function of elements and those of an array, where elements are stored; elsewhere it is zero."""
    require_elements(a.data, a._pattern)
    try:
        fits = np.broadcast_shapes(a.shape, x.shape) == a.shape
    except ValueError:
        fits = False
    if not fits:
        given = f"a sparse array of shape {a.shape} and an array of shape {x.shape}"
        raise ShapeError(
            "multiply", given, "a shape that broadcasts to that of the sparse array is needed", "Reshape it"
        )
    beside = np.broadcast_to(x, a.shape)
    if a._pattern.inside is None:
        where = tuple([at.reshape(a._pattern.data_shape) for at in a._pattern.coordinates])
        return SparseTensor(a._pattern, function(a.data, beside[where]))
    values = function(entries(a.data, a._pattern), beside[a._pattern.coordinates])
    whole = add_up(values, a._pattern.inside, a._pattern.size)
    return SparseTensor(a._pattern, np.reshape(whole, a._pattern.data_shape))


def intersection(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Return the products of the elements that are stored in both of two matrices."""
    require_same_shape("multiply", a, b)
    a, b = a.sum_duplicates_of(), b.sum_duplicates_of()
    if a._pattern == b._pattern:
        return SparseTensor(a._pattern, a.data * b.data)
    pairs = places.common_pairs(a._pattern, b._pattern)
    left = gather(entries(a.data, a._pattern), pairs.left)
    return SparseTensor(pairs.pattern, left * gather(entries(b.data, b._pattern), pairs.right))


def sum_of(a: SparseTensor, other: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Return a sum or difference: sparse of two sparse matrices, else an array."""
    beside = as_sparse(other)
    if beside is None:
        if is_scalar(other) and not (isinstance(other, int | float) and other == 0):
            needed = "an array is needed, or 0: a number would fill all places"
            raise without_meaning(function.__name__, f"a sparse array and the number {shown(other)}", needed)
        return a if is_scalar(other) else function(a.toarray(), as_dense(other))
    require_same_shape(function.__name__, a, beside)
    if a._pattern == beside._pattern:
        return SparseTensor(a._pattern, function(a.data, beside.data))
    pairs = places.sum_pairs(a._pattern, beside._pattern)
    left, right = (
        add_up(entries(x.data, x._pattern), where, pairs.pattern.size)
        for x, where in zip((a, beside), pairs.places, strict=True)
    )
    return SparseTensor(pairs.pattern, function(left, right))


# As a container


def put_together(pattern: StoragePattern, children: Iterable[Any]) -> Any:
    """Return a matrix around its stored elements: SciPy's if they are an ndarray."""
    return SparseTensor.around(pattern, *children)


def take_apart(matrix: SparseTensor) -> tuple[Sequence[Any], StoragePattern]:
    """Return the stored elements of a matrix, and where they stand."""
    return (matrix.data,), matrix._pattern


@functools.cache
def register_sparse() -> None:
    """Let sparse arrays of Tensors be containers with the one leaf `data`."""
    register(SparseTensor, take_apart, put_together, lambda _: ("data",), "GetAttrEntry")
    known = Attributes(("data",), ("_pattern",))
    ATTRIBUTES[SparseTensor] = lambda _: known


def stand_in(matrix: Any) -> SparseTensor:
    """Return the container that stands for a matrix of SciPy's."""
    ATTRIBUTES[type(matrix)] = stored_attributes
    return SparseTensor(pattern_of(matrix), matrix.data)


def stored_attributes(matrix: Any) -> Attributes:
    """Return what of a matrix of SciPy's native code reads, and what it compares: index arrays with the pattern's."""
    pattern = pattern_of(matrix)
    arrays = pattern.arrays if pattern.format != "coo" else (pattern.arrays,)
    known = dict(zip(NAMES.get(pattern.format, ("coords",)), arrays, strict=True))
    return Attributes(("data",), [name for name in vars(matrix) if name != "data"], known=known)
