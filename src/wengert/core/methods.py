"""NumPy's attributes and methods of Tensors: each is the function of the same name, found in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from wengert.core.members import ArrayLike, Members
from wengert.errors import DtypeError, describe

if TYPE_CHECKING:
    from wengert.core.tensor import Tensor

__all__ = ["DIRECT", "FUNCTIONS", "RAISED", "ArrayMethods", "call", "carry_out"]

Axis: TypeAlias = "int | Sequence[int] | None"

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""What a NumPy function (or ufunc) does with Tensors: filled by `implements`, used by protocols and methods."""
DIRECT: dict[Any, Callable[..., Any] | None] = {}
"""Short ways of ufuncs, for operands alone, around the third of a microsecond that options take, and of functions that
NumPy computes itself of plain Tensors; they give `NotImplemented` for operands that are for `FUNCTIONS` to look at."""
RAISED = (FloatingPointError, RuntimeWarning)
"""What NumPy raises about numbers where `numpy.errstate` or a filter of warnings asks for errors."""


def call(function: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Call what a NumPy function means for Tensors."""
    meaning = FUNCTIONS[function]
    try:
        result: Tensor = meaning(*args, **kwargs)
    except RAISED:
        carry_out(meaning, *args, **kwargs)
        raise
    return result


def carry_out(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call a function once more, without the error about numbers that it ended with.

    NumPy raises it when all is computed, so what is written to (by `out=` or in place) holds the results.
    """
    with np.errstate(all="ignore"):
        function(*args, **kwargs)


class FlatElements:
    """Show the elements of a Tensor in C order, as NumPy's `flat` does."""

    __slots__ = ("_elements", "_tensor")

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self._elements: Iterator[Tensor] | None = None

    def __iter__(self) -> Iterator[Tensor]:
        return self

    def __next__(self) -> Tensor:
        if self._elements is None:
            self._elements = iter(call(np.ravel, self._tensor))
        return next(self._elements)

    def __len__(self) -> int:
        return int(self._tensor.size)

    def __getitem__(self, index: Any) -> Tensor:
        return call(np.copy, call(np.ravel, self._tensor)[index])

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        elements = call(np.copy, call(np.ravel, self._tensor))
        if isinstance(index, slice):  # whose places take the elements of the value in turn, whatever its shape
            call(np.put, elements, np.arange(len(elements))[index], value)
        else:
            elements[index] = value
        self._tensor[...] = call(np.reshape, elements, self._tensor.shape)


class ArrayMethods(Members):
    """Give Tensors what they share with ndarrays; the class itself holds nothing."""

    __slots__ = ()

    @property
    def T(self) -> Tensor:  # noqa: N802 - NumPy's name
        """The transpose: all axes reversed."""
        transposed: Tensor = FUNCTIONS["T"](self)
        return transposed

    @property
    def mT(self) -> Tensor:  # noqa: N802 - NumPy's name
        """The matrix transpose: the last two axes exchanged."""
        return call(np.matrix_transpose, self)

    @property
    def real(self) -> Tensor:
        """The real part."""
        return call(np.real, self)

    @real.setter
    def real(self, value: ArrayLike) -> None:
        call(np.real, self)[...] = value

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return call(np.imag, self)

    @imag.setter
    def imag(self, value: ArrayLike) -> None:
        if self.dtype.kind != "c":
            raise DtypeError(
                describe("imag", f"dtype {self.dtype}", "a complex dtype is needed to set it", "Use .astype(complex)")
            )
        call(np.imag, self)[...] = value

    @property
    def flat(self) -> FlatElements:
        """The elements in C order: to iterate over, to index and to set."""
        return FlatElements(self)

    @flat.setter
    def flat(self, value: ArrayLike) -> None:
        FlatElements(self)[:] = value

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Tensor:
        """Return the elements converted to another dtype."""
        return call("astype", self, dtype, order, casting, copy)

    def copy(self, order: str = "C") -> Tensor:
        """Return a copy, with the gradient following; `order` is the memory layout, as in NumPy."""
        return call("copy", self, order)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
        """Return the elements in another shape."""
        lengths = shape[0] if len(shape) == 1 else shape
        if order == "C" and copy is None:
            return FUNCTIONS["reshape"](self, lengths)  # type: ignore[no-any-return]  # as `call` does
        return FUNCTIONS[np.reshape](self, lengths, order, copy=copy)  # type: ignore[no-any-return]  # as `call` does

    def transpose(self, *axes: Any) -> Tensor:
        """Return the Tensor with its axes permuted, reversed by default."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None)
        return call(np.transpose, self, order)

    def fill(self, value: ArrayLike) -> None:
        """Set every element to a number; nothing of a scalar, which is no array, as in NumPy."""
        call("fill", self, value)

    def all(self, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: ArrayLike = True) -> Tensor:
        """Tell whether all elements along the axes are true."""
        return call(np.all, self, axis, out, keepdims, where=where)

    def any(self, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: ArrayLike = True) -> Tensor:
        """Tell whether any element along the axes is true."""
        return call(np.any, self, axis, out, keepdims, where=where)

    def argmax(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return the index of the greatest element."""
        return call(np.argmax, self, axis, out, keepdims=keepdims)

    def argmin(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
        """Return the index of the least element."""
        return call(np.argmin, self, axis, out, keepdims=keepdims)

    def argsort(
        self,
        axis: int | None = -1,
        kind: Any = None,
        order: Any = None,
        *,
        stable: bool | None = None,
        descending: bool | None = None,
    ) -> Tensor:
        """Return the indices that sort along an axis."""
        return call(np.argsort, self, axis, kind, order, stable=stable, descending=descending)

    def clip(
        self, min: ArrayLike | None = None, max: ArrayLike | None = None, out: Any = None, **options: Any
    ) -> Tensor:
        """Return the elements limited to an interval."""
        return call(np.clip, self, min=min, max=max, out=out, **options)

    def conj(self) -> Tensor:
        """Return the complex conjugate; of real numbers, the Tensor itself."""
        if self.dtype.kind == "b" and cast("Tensor", self).weak:  # Python's is an integer
            return +self
        return call(np.conjugate, self) if self.dtype.kind == "c" else cast("Tensor", self)

    def conjugate(self) -> Tensor:
        """Return the complex conjugate; of real numbers, the Tensor itself."""
        return self.conj()

    def cumprod(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Return the cumulative products."""
        return call(np.cumprod, self, axis, dtype, out)

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Return the cumulative sums."""
        return call(np.cumsum, self, axis, dtype, out)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return a diagonal."""
        return call(np.diagonal, self, offset=offset, axis1=axis1, axis2=axis2)

    def dot(self, other: ArrayLike, out: Any = None) -> Tensor:
        """Return the dot product with another array."""
        return call(np.dot, self, other, out)

    def max(
        self,
        axis: Axis = None,
        out: Any = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike = True,
    ) -> Tensor:
        """Return the greatest element along the axes."""
        return call(np.max, self, axis, out, keepdims, initial, where)

    def mean(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
    ) -> Tensor:
        """Return the mean along the axes."""
        if out is None:  # likewise
            return FUNCTIONS[np.mean](self, axis, dtype, None, keepdims, where=where)  # type: ignore[no-any-return]  # as `call` does
        return call(np.mean, self, axis, dtype, out, keepdims, where=where)

    def min(
        self,
        axis: Axis = None,
        out: Any = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike = True,
    ) -> Tensor:
        """Return the least element along the axes."""
        return call(np.min, self, axis, out, keepdims, initial, where)

    def prod(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike = True,
    ) -> Tensor:
        """Return the product along the axes."""
        return call(np.prod, self, axis, dtype, out, keepdims, initial, where)

    def ravel(self, order: str = "C") -> Tensor:
        """Return the elements along one axis, as a view where possible."""
        return call(np.ravel, self, order=order)

    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        """Return each element repeated."""
        return call(np.repeat, self, repeats, axis=axis)

    def round(self, decimals: int = 0, out: Any = None) -> Tensor:
        """Return the elements rounded."""
        return call(np.round, self, decimals, out)

    def squeeze(self, axis: Axis = None) -> Tensor:
        """Return the Tensor without axes of length one."""
        return call(np.squeeze, self, axis=axis)

    def std(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
        mean: ArrayLike | None = None,
    ) -> Tensor:
        """Return the standard deviation along the axes."""
        options = {} if mean is None else {"mean": mean}
        return call(np.std, self, axis, dtype, out, ddof, keepdims, where=where, **options)

    def sum(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike = True,
    ) -> Tensor:
        """Return the sum along the axes."""
        if out is None:  # so that nothing is to be carried out
            return FUNCTIONS[np.sum](self, axis, dtype, None, keepdims, initial, where)  # type: ignore[no-any-return]  # as `call` does
        return call(np.sum, self, axis, dtype, out, keepdims, initial, where)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return the Tensor with two axes exchanged."""
        return call(np.swapaxes, self, axis1, axis2)

    def take(self, indices: ArrayLike, axis: int | None = None, out: Any = None, mode: str = "raise") -> Tensor:
        """Return the elements at indices along an axis."""
        return call(np.take, self, indices, axis, out, mode)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Tensor:
        """Return the sum of a diagonal."""
        return call(np.trace, self, offset, axis1, axis2, dtype, out)

    def var(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
        mean: ArrayLike | None = None,
    ) -> Tensor:
        """Return the variance along the axes."""
        options = {} if mean is None else {"mean": mean}
        return call(np.var, self, axis, dtype, out, ddof, keepdims, where=where, **options)

    def nonzero(self) -> Tensor:
        """Return the indices of the elements that are not zero."""
        return call(np.nonzero, self)

    def flatten(self, order: str = "C") -> Tensor:
        """Return a copy of the elements along one axis."""
        return call(np.copy, call(np.ravel, self, order=order))

    def sort(
        self,
        axis: int = -1,
        kind: Any = None,
        order: Any = None,
        *,
        stable: bool | None = None,
        descending: bool | None = None,
    ) -> None:
        """Sort along an axis, in place."""
        self[...] = call(np.sort, self, axis, kind, order, stable=stable, descending=descending)

    def argpartition(self, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Tensor:
        """Return the indices that partition along an axis."""
        return call(np.argpartition, self, kth, axis, kind, order)

    def choose(self, choices: Any, out: Any = None, mode: str = "raise") -> Tensor:
        """Return elements of the choices, picked by the elements of this Tensor."""
        return call(np.choose, self, choices, out, mode)

    def compress(self, condition: ArrayLike, axis: int | None = None, out: Any = None) -> Tensor:
        """Return the elements along an axis where a condition holds."""
        return call(np.compress, condition, self, axis, out)

    def searchsorted(self, v: ArrayLike, side: Any = "left", sorter: Any = None) -> Tensor:
        """Return where values belong in this sorted Tensor."""
        return call(np.searchsorted, self, v, side, sorter)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
        """Partition along an axis, in place."""
        self[...] = call(np.partition, self, kth, axis, kind, order)

    def put(self, indices: ArrayLike, values: ArrayLike, mode: str = "raise") -> None:
        """Set elements by flat index, in place; nothing of a scalar, which is no array, as in NumPy."""
        call("put", self, indices, values, mode)


for _name, _method in vars(ArrayMethods).items():
    if callable(_method):
        _method.__qualname__ = f"Tensor.{_name}"  # what Python's errors about arguments call it
