"""The stored elements of sparse arrays: other values at the same places, and the same values at others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Self

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.graph.identity import identity
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.primitives.indexing.elements import gather
from wengert.primitives.sparse import places
from wengert.primitives.sparse.products import add_up, entries, require_elements, stack_of
from wengert.primitives.sparse.storage_pattern import StoragePattern

ELEMENTWISE = (
    *("arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg", "rint"),
    *("sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
"""Methods of SciPy's that are functions with f(0) = 0 of each stored element."""


class StoredElements:
    """Hold stored elements, and where they stand; see `wengert.primitives.sparse.sparse_tensor.SparseTensor`."""

    __slots__ = ("_pattern", "data")

    def __init__(self, pattern: StoragePattern, data: Any) -> None:
        self._pattern, self.data = pattern, data

    @classmethod
    def around(cls, pattern: StoragePattern, data: Any) -> Any:
        """Return a matrix around its stored elements: SciPy's if they are an ndarray."""
        if type(data) is np.ndarray and data.shape == pattern.data_shape and data.dtype.kind in "biufc":
            return pattern.matrix(data)
        return cls(pattern, data)

    # What it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of its axes."""
        return (*self.stack, *self._pattern.shape)

    @property
    def stack(self) -> tuple[int, ...]:
        """Return the lengths of the axes of a stack of matrices; () if it is one matrix."""
        return stack_of(self.data, self._pattern)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of its elements."""
        return aval_of(self.data).dtype

    @property
    def format(self) -> str:
        """Return SciPy's name of its format."""
        return self._pattern.format

    @property
    def nnz(self) -> int:
        """Return how many elements are stored, in each matrix of a stack."""
        return len(self._pattern.coordinates[0])

    size = nnz

    def getnnz(self) -> int:
        """Return how many elements are stored."""
        return self.nnz

    def __getattr__(self, name: str) -> Any:
        if name in ("indices", "indptr", "offsets", "coords", "row", "col", "blocksize", "has_sorted_indices"):
            return getattr(self._pattern.template, name)
        raise AttributeError(
            f"a sparse array of Tensors has no {name!r} (in format {self._pattern.format!r}); "
            "take its elements with .data, or all of it with .toarray()"
        )

    def __reduce__(self) -> Any:
        return type(self), (self._pattern, self.data)

    def __repr__(self) -> str:
        kind = "array" if self._pattern.is_array else "matrix"
        if self.stack:
            count, each = " x ".join(map(str, self.stack)), "arrays" if self._pattern.is_array else "matrices"
            text = f"<stack of {count} sparse {self.format} {each} of shape {self._pattern.shape}"
            return f"{text} with {self.nnz} stored each: {self.data!r}>"
        return f"<sparse {self.format} {kind} of shape {self.shape} with {self.nnz} stored: {self.data!r}>"

    def __len__(self) -> int:
        if self.stack:
            return self.stack[0]
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0]")

    def __bool__(self) -> NoReturn:
        raise ValueError("The truth value of a sparse array with more than one element is ambiguous.")

    def __eq__(self, other: object) -> Any:
        return refuse_comparison(other)

    def __ne__(self, other: object) -> Any:
        return refuse_comparison(other)

    __hash__ = object.__hash__

    # Other values at the same places

    def with_data(self, data: Any) -> Self:
        """Return a matrix with other stored elements, at the same places.

        Raises:
            ShapeError: there are more or fewer.
        """
        if shape_of(data) != self._pattern.data_shape:
            given = f"elements of shape {shape_of(data)}"
            needed = f"shape {self._pattern.data_shape} is needed, as that of .data"
            raise ShapeError("with_data", given, needed, "Reshape them")
        return type(self)(self._pattern, as_tensor(data))

    def map_elements(self, function: Callable[[Any], Any]) -> Self:
        """Return a matrix with what a function gives for the stored elements."""
        return type(self)(self._pattern, function(self.data))

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Self:
        """Return the matrix in another dtype."""
        return self.map_elements(lambda x: x.astype(dtype, casting=casting, copy=copy))

    def copy(self) -> Self:
        """Return a copy."""
        return self.map_elements(lambda x: x.copy())

    def conj(self, copy: bool = True) -> Self:
        """Return the matrix of complex conjugates."""
        return self.map_elements(np.conj)

    conjugate = conj

    @property
    def real(self) -> Self:
        """Return the real parts."""
        return self.map_elements(np.real)

    @property
    def imag(self) -> Self:
        """Return the imaginary parts."""
        return self.map_elements(np.imag)

    def power(self, n: Any, dtype: Any = None) -> Self:
        """Return each element to a power that is not 0, since 0**0 is 1."""
        if np.ndim(n) or n == 0:
            raise UsageError("power", f"the power {shown(n)}", "a number that is not 0 is needed", "Use .toarray()")
        found = self.sum_duplicates_of().map_elements(lambda x: x**n)
        return found if dtype is None else found.astype(dtype)

    def __neg__(self) -> Self:
        return self.map_elements(np.negative)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return self.sum_duplicates_of().map_elements(np.abs)

    # The same values elsewhere

    def apply_selection(self, name: Any, operate: Callable[[Any], Any]) -> Any:
        """Return what an operation of SciPy's that moves elements makes of the matrix; it is found out once."""
        chosen: places.Selected = self._pattern.derive(name, lambda: places.selected_by(self._pattern, operate))
        require_elements(self.data, self._pattern)
        flat = np.reshape(self.data, (self._pattern.size,))
        if chosen.source is not None:
            flat = gather(flat, chosen.source)
        if chosen.target is not None:
            flat = add_up(flat, chosen.target, int(np.prod(chosen.shape)))
        found = np.reshape(flat, chosen.shape)
        return found if chosen.pattern is None else type(self)(chosen.pattern, found)

    def sum_duplicates_of(self) -> Self:
        """Return a matrix in which each place is stored once: itself, if that is so."""
        if self._pattern.is_canonical:
            return self
        pattern, where = places.without_duplicates(self._pattern)
        return type(self)(pattern, add_up(entries(self.data, self._pattern), where, pattern.size))

    @property
    def T(self) -> Self:  # noqa: N802 - SciPy's name
        """Return the transpose."""
        return self.transpose()

    @property
    def mT(self) -> Self:  # noqa: N802 - SciPy's name
        """Return the transpose."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Self:
        """Return the transpose; of one axis the array itself."""
        if axes is not None and tuple(axes) != tuple(range(self.ndim))[::-1]:
            needed = "all axes in the reverse order are needed"
            raise UsageError("transpose", f"axes={axes!r:.40} of a sparse array", needed, "Leave axes out")
        found: Self = self.apply_selection("transpose", lambda x: x.transpose())
        return found

    def asformat(self, format: str | None, copy: bool = False) -> Self:
        """Return the matrix in another of SciPy's formats."""
        if format is None or format == self.format:
            return self
        if format not in ("bsr", "coo", "csc", "csr", "dia"):
            needed = "csr, csc, coo, bsr or dia is needed"
            raise UsageError("asformat", f"format={format!r:.40}", needed, "Choose one of these")
        keeps = format == "coo" or (self.format in ("csr", "csc") and format in ("csr", "csc"))
        whole = self if keeps else self.sum_duplicates_of()
        found: Self = whole.apply_selection(("asformat", format), lambda x: x.asformat(format))
        return found

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Self:
        """Return the elements in another shape, as a coo array."""
        found: Self = self.sum_duplicates_of().apply_selection(
            ("reshape", shape, order), lambda x: x.reshape(*shape, order=order)
        )
        return found

    def __getitem__(self, key: Any) -> Any:
        parts = key if type(key) is tuple else (key,)
        if self.stack:
            outer, inner = parts[: len(self.stack)], parts[len(self.stack) :]
            chosen = self.around(self._pattern, self.data[outer])
            if inner:
                require_elements(chosen.data, self._pattern)
            return chosen[inner] if inner else chosen
        if any(type(part) is Tensor and part._trace is not None for part in parts):
            given = "a place that is being traced or differentiated"
            raise GraphError("getitem", given, "places that are known are needed", "Use .toarray()[i]")
        known = tuple([np.asarray(part) if type(part) is Tensor else part for part in parts])
        return self.sum_duplicates_of().apply_selection(("getitem", identity(known)), lambda x: x[known])

    def getrow(self, i: int) -> Self:
        """Return a row, of two axes."""
        return self[[i], :] if self._pattern.is_array else self[i]  # type: ignore[no-any-return]  # one of these

    def getcol(self, j: int) -> Self:
        """Return a column, of two axes."""
        return self[:, [j]]  # type: ignore[no-any-return]  # one of these


def refuse_comparison(_other: object) -> NoReturn:
    """Raise a GraphError: of comparisons there are no derivatives."""
    needed = "numbers or arrays are needed"
    raise GraphError("equal", "a sparse array of Tensors", needed, "Compare its .data, or .toarray()")


def conversion_to(format: str) -> Callable[..., StoredElements]:
    """Return the method that converts to a format."""

    def convert(self: StoredElements, copy: bool = False) -> StoredElements:
        return self.asformat(format)

    convert.__doc__ = f"Return the matrix in the format {format}."
    return convert


def elementwise_method(name: str) -> Callable[[StoredElements], StoredElements]:
    """Return the method that applies a function of NumPy's to the stored elements."""
    function = getattr(np, name)

    def method(self: StoredElements) -> StoredElements:
        return self.sum_duplicates_of().map_elements(function)  # SciPy sums them in place, too

    method.__doc__ = f"Return numpy.{name} of each element."
    return method


for _format in ("bsr", "coo", "csc", "csr", "dia"):
    setattr(StoredElements, f"to{_format}", conversion_to(_format))
for _name in ELEMENTWISE:
    setattr(StoredElements, _name, elementwise_method(_name))
