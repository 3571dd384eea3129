"""NumPy's attributes and methods of Tensors: each is the function of the same name."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, Never

import numpy as np

from wengert.core.values.dispatch import weaken
from wengert.core.values.members import ArrayLike, Axis
from wengert.core.values.numpy_overrides import RAISED, carry_out
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, UsageError
from wengert.numpy import (
    _accumulations,
    _axes,
    _contractions,
    _conversion,
    _indexing,
    _joining,
    _reductions,
    _results,
    _selection,
    _shapes,
    _sorting,
    _statistics,
)
from wengert.numpy._ufuncs import OF_UFUNCS
from wengert.support.hints import unexpected_parameter

STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the array API standard that `wengert.numpy` conforms to."""
conjugate = OF_UFUNCS[np.conjugate]


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Tensor:
    """Call a function; what it is told to write to holds its result, whatever NumPy raises about numbers."""
    try:
        result: Tensor = function(*args, **kwargs)
    except RAISED:
        carry_out(function, *args, **kwargs)
        raise
    return result


def not_numpys(name: str, elsewhere: Mapping[str, Any]) -> TypeError:
    """Return the error about parameters that methods of ndarrays have not; PyTorch's say what to write."""
    return unexpected_parameter(f"Tensor.{name}", next(iter(elsewhere)), "numpy")


def method_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that calls a function with the Tensor first, and takes the parameters behind that."""
    name = function.__name__

    def method(self: Tensor, *args: Any, **options: Any) -> Any:
        try:
            return function(self, *args, **options)
        except RAISED:
            carry_out(function, self, *args, **options)
            raise
        except TypeError:
            require_arguments(name, function, (self, *args), options)
            raise

    first, *others = (parameters := inspect.signature(function)).parameters.values()
    gives = "Tensor" if parameters.return_annotation == "Any" else parameters.return_annotation
    vars(method)["__signature__"] = inspect.Signature([first.replace(name="self"), *others], return_annotation=gives)
    method.__name__, method.__doc__ = name, function.__doc__
    return method


def require_arguments(name: str, function: Callable[..., Any], args: Any, options: Mapping[str, Any]) -> None:
    """Raise a TypeError that names the method if a function has not the parameters for some arguments."""
    parameters = inspect.signature(function)
    if unknown := {key: value for key, value in options.items() if key not in parameters.parameters}:
        raise not_numpys(name, unknown)
    try:
        parameters.bind(*args, **options)
    except TypeError as error:
        raise TypeError(f"Tensor.{name}() {error}") from None


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
            self._elements = iter(_shapes.ravel(self._tensor))
        return next(self._elements)

    def __len__(self) -> int:
        return int(self._tensor.size)

    def __getitem__(self, index: Any) -> Tensor:
        return _results.copy(_shapes.ravel(self._tensor)[index])

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        elements = _results.copy(_shapes.ravel(self._tensor))
        if isinstance(index, slice):  # whose places take the elements of the value in turn, whatever its shape
            call(_indexing.put, elements, np.arange(len(elements))[index], value)
        else:
            elements[index] = value
        self._tensor[...] = _shapes.reshape(elements, self._tensor.shape)


class ArrayMethods:
    """Hold what Tensors share with ndarrays; Tensors themselves get it below."""

    @property
    def T(self: Any) -> Tensor:  # noqa: N802 - NumPy's name
        """The transpose: all axes reversed."""
        return _axes.reverse_axes(self)

    @property
    def mT(self) -> Tensor:  # noqa: N802 - NumPy's name
        """The matrix transpose: the last two axes exchanged."""
        return call(_axes.matrix_transpose, self)

    @property
    def real(self) -> Tensor:
        """The real part."""
        return call(_conversion.real, self)

    @real.setter
    def real(self, value: ArrayLike) -> None:
        _conversion.real(self)[...] = value

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return call(_conversion.imag, self)

    @imag.setter
    def imag(self: Any, value: ArrayLike) -> None:
        if self.dtype.kind != "c":
            given = f"dtype {self.dtype}"
            raise DtypeError("imag", given, "a complex dtype is needed to set it", "Use .astype(complex)")
        _conversion.imag(self)[...] = value

    def __round__(self: Any, ndigits: Any = None) -> Any:
        return _conversion.round_scalar(self, ndigits)

    def __trunc__(self: Any) -> int:
        return _conversion.truncate_scalar(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in (None, *STANDARDS):
            needed = f"one of {', '.join(STANDARDS)} is needed"
            raise UsageError("__array_namespace__", f"api_version={api_version!r}", needed, "Leave it out")
        return sys.modules["wengert.numpy"]

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
        return call(_conversion.astype_method, self, dtype, order, casting, copy)

    def copy(self, order: str = "C") -> Tensor:
        """Return a copy, with the gradient following; `order` is the memory layout, as in NumPy."""
        return call(_results.copy_method, self, order)

    def reshape(self: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
        """Return the elements in another shape."""
        lengths = shape[0] if len(shape) == 1 else shape
        if order == "C" and copy is None:
            return _shapes.reshape_in_c_order(self, lengths)
        return _shapes.reshape(self, lengths, order, copy=copy)

    def transpose(self, *axes: Any) -> Tensor:
        """Return the Tensor with its axes permuted, reversed by default."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None)
        return _axes.transpose(self, order)

    def fill(self, value: ArrayLike) -> None:
        """Set every element to a number; nothing of a scalar, which is no array, as in NumPy."""
        call(_indexing.fill_method, self, value)

    def argsort(
        self,
        axis: int | None = -1,
        kind: Any = None,
        order: Any = None,
        *,
        stable: bool | None = None,
        descending: bool | None = None,
        **elsewhere: Never,
    ) -> Tensor:
        """Return the indices that sort along an axis."""
        if elsewhere:
            raise not_numpys("argsort", elsewhere)
        return _sorting.argsort(self, axis, kind, order, stable=stable, descending=descending)

    def clip(
        self, min: ArrayLike | None = None, max: ArrayLike | None = None, out: Any = None, **options: Any
    ) -> Tensor:
        """Return the elements limited to an interval."""
        return call(_selection.clip, self, min=min, max=max, out=out, **options)

    def conj(self: Any) -> Tensor:
        """Return the complex conjugate; of real numbers, the Tensor itself."""
        if self.dtype.kind == "b" and self.weak:  # Python's is an integer
            return call(operator.pos, self)
        found = call(conjugate, self) if self.dtype.kind == "c" else self
        return call(weaken, found) if self.weak else found

    def conjugate(self) -> Tensor:
        """Return the complex conjugate; of real numbers, the Tensor itself."""
        return self.conj()

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return a diagonal."""
        return _axes.diagonal(self, offset=offset, axis1=axis1, axis2=axis2)

    def dot(self, other: ArrayLike, out: Any = None) -> Tensor:
        """Return the dot product with another array."""
        return call(_contractions.dot, self, other, out)

    def mean(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
        **elsewhere: Never,
    ) -> Tensor:
        """Return the mean along the axes."""
        if elsewhere:
            raise not_numpys("mean", elsewhere)
        if out is None:
            return _reductions.mean(self, axis, dtype, None, keepdims, where=where)
        return call(_reductions.mean, self, axis, dtype, out, keepdims, where=where)

    def ravel(self, order: str = "C") -> Tensor:
        """Return the elements along one axis, as a view where possible."""
        return _shapes.ravel(self, order=order)

    def repeat(self, repeats: Any, axis: int | None = None, **elsewhere: Never) -> Tensor:
        """Return each element repeated."""
        if elsewhere:
            raise not_numpys("repeat", elsewhere)
        return _joining.repeat(self, repeats, axis=axis)

    def squeeze(self, axis: Axis = None, **elsewhere: Never) -> Tensor:
        """Return the Tensor without axes of length one."""
        if elsewhere:
            raise not_numpys("squeeze", elsewhere)
        return _shapes.squeeze(self, axis=axis)

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
        **elsewhere: Never,
    ) -> Tensor:
        """Return the standard deviation along the axes."""
        if elsewhere:
            raise not_numpys("std", elsewhere)
        options = {} if mean is None else {"mean": mean}
        return call(_statistics.std, self, axis, dtype, out, ddof, keepdims, where=where, **options)

    def sum(
        self,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike = True,
        **elsewhere: Never,
    ) -> Tensor:
        """Return the sum along the axes."""
        if elsewhere:
            raise not_numpys("sum", elsewhere)
        if out is None:
            return _reductions.sum(self, axis, dtype, None, keepdims, initial, where)
        return call(_reductions.sum, self, axis, dtype, out, keepdims, initial, where)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return the Tensor with two axes exchanged."""
        return _axes.swapaxes(self, axis1, axis2)

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
        **elsewhere: Never,
    ) -> Tensor:
        """Return the variance along the axes."""
        if elsewhere:
            raise not_numpys("var", elsewhere)
        options = {} if mean is None else {"mean": mean}
        return call(_statistics.var, self, axis, dtype, out, ddof, keepdims, where=where, **options)

    def flatten(self, order: str = "C", **elsewhere: Never) -> Tensor:
        """Return a copy of the elements along one axis."""
        if elsewhere:
            raise not_numpys("flatten", elsewhere)
        if isinstance(order, int):
            needed = "no axis is needed, because all axes become one, as NumPy has it"
            action = "Write x.reshape(*x.shape[:first], -1), or leave it out"
            raise DtypeError("flatten", f"the axis {order}", needed, action)
        return _results.copy(_shapes.ravel(self, order=order))

    def sort(
        self: Any,
        axis: int = -1,
        kind: Any = None,
        order: Any = None,
        *,
        stable: bool | None = None,
        descending: bool | None = None,
        **elsewhere: Never,
    ) -> None:
        """Sort along an axis, in place."""
        if elsewhere:
            raise not_numpys("sort", elsewhere)
        self[...] = _sorting.sort(self, axis, kind, order, stable=stable, descending=descending)

    def compress(self, condition: ArrayLike, axis: int | None = None, out: Any = None, **elsewhere: Never) -> Tensor:
        """Return the elements along an axis where a condition holds."""
        if elsewhere:
            raise not_numpys("compress", elsewhere)
        return call(_selection.compress, condition, self, axis, out)

    def partition(
        self: Any, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None, **elsewhere: Never
    ) -> None:
        """Partition along an axis, in place."""
        if elsewhere:
            raise not_numpys("partition", elsewhere)
        self[...] = _sorting.partition(self, kth, axis, kind, order)

    def put(self, indices: ArrayLike, values: ArrayLike, mode: str = "raise") -> None:
        """Set elements by flat index, in place; nothing of a scalar, which is no array, as in NumPy."""
        call(_indexing.put, self, indices, values, mode)


ALIKE: tuple[Callable[..., Any], ...] = (
    _accumulations.cumprod,
    _accumulations.cumsum,
    _conversion.round,
    _axes.trace,
    _indexing.take,
    _reductions.all,
    _reductions.any,
    _reductions.max,
    _reductions.min,
    _reductions.prod,
    _selection.choose,
    _selection.nonzero,
    _sorting.argmax,
    _sorting.argmin,
    _sorting.argpartition,
    _sorting.searchsorted,
)
"""The functions whose methods take what they take."""
for _function in ALIKE:
    setattr(ArrayMethods, _function.__name__, method_of(_function))
for _name, _member in vars(ArrayMethods).items():
    if isinstance(_member, FunctionType):
        _member.__qualname__ = f"Tensor.{_name}"  # what Python's errors about arguments call it
    if isinstance(_member, FunctionType | property):
        setattr(Tensor, _name, _member)
