"""Creation with NumPy's signatures: of data, files, ranges and grids. Tensors in nested lists keep their gradients."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_order, as_whole
from wengert.core.memory.memory_layout import is_scalar
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply, as_tensor, check_numeric, implements, is_weak, stacked_lists, with_dtype
from wengert.core.values.numpy_overrides import NOTHING
from wengert.core.values.tensor import Tensor, concrete, constant_tensor, is_concrete, is_staged
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.numpy._indexing import copyto
from wengert.numpy._joining import concatenate
from wengert.numpy._namespace import enter_as
from wengert.numpy._results import lay_in_order, lay_like, layout_examples
from wengert.numpy._shapes import as_shape
from wengert.primitives import conversion
from wengert.primitives.masked import is_selection
from wengert.primitives.powers import power

# From data


@implements(np.asarray, np.asanyarray)
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None, like: Any = None
) -> Any:
    """Return data as a Tensor, without copying where possible; see `numpy.asarray`."""
    if type(a) is np.ndarray and dtype is None and order is None and not copy:
        return as_tensor(a)
    return array(a, dtype, copy=copy, order=order)


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return data as a Tensor in C order, with at least one axis; see `numpy.ascontiguousarray`."""
    return array(a, dtype, copy=None, order="C", ndmin=1)


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return data as a Tensor in Fortran's order, with at least one axis; see `numpy.asfortranarray`."""
    return array(a, dtype, copy=None, order="F", ndmin=1)


@implements(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Return data as a Tensor if they are finite; see `numpy.asarray_chkfinite`."""
    found = asarray(a, dtype, order)
    if not np.isfinite(concrete("asarray_chkfinite", found)).all():
        raise UsageError("asarray_chkfinite", "NaN or infinities", "finite numbers are needed", "Find them")
    return found


@implements(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """Return data as a Tensor that meets requirements about its order; see `numpy.require`."""
    wanted = {name.upper()[:1] for name in ([requirements] if isinstance(requirements, str) else requirements or ())}
    found = array(a, dtype, copy=None, order="C" if "C" in wanted else "F" if "F" in wanted else "K")
    return np.copy(found) if wanted & {"W", "O"} else found


@implements(np.array)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """Return data as a Tensor; see `numpy.array`. Tensors in nested lists keep their gradients.

    >>> import wengert as wg
    >>> wg.grad(lambda x: array([x, [2 * x, 1.0][0]]).sum())(1.0)
    3.0
    """
    data: Any = stacked_lists(object, dtype)
    if type(data) is not Tensor:
        deep: dict[str, Any] = {} if type(ndmax) is int and ndmax == 0 else {"ndmax": ndmax}  # since NumPy 2.4
        made = np.array(data, dtype=dtype, copy=copy, order=order, ndmin=ndmin, **deep)
        if made.dtype.kind == "O":
            return as_tensor(made)
        if made is data or not made.flags.owndata:
            return as_tensor(made)
        return constant_tensor(check_numeric("array", made))
    if type(ndmax) is not int or ndmax != 0:
        np.array(0.0, ndmax=ndmax)  # NumPy's error, if it is none
    if dtype is not None and data.dtype != dtype:
        data = with_dtype(data, dtype)
    elif is_scalar(data):
        data = data[...]
    elif copy and data is object:
        data = np.copy(data, order=order or "K")
    data = lay_in_order("array", data, order)
    return data.reshape((1,) * (ndmin - data.ndim) + data.shape) if data.ndim < ndmin else data


# Filled with constants: these are NumPy's results as Tensors


def enter_creation(function: Callable[..., Any]) -> None:
    """Enter a function whose results do not depend on Tensors."""

    @enter_as(function, "Return NumPy's result as Tensors", NOTHING)
    def create(*args: Any, **kwargs: Any) -> Any:
        return own_as_tensors(function(*args, **kwargs))


def own_as_tensors(made: Any) -> Any:
    """Return new arrays as Tensors that own them."""
    if isinstance(made, tuple | list):
        return type(made)(own_as_tensors(item) for item in made)
    if isinstance(made, np.ndarray) and made.base is not None:  # of memory that belongs to somebody else
        return as_tensor(made)
    return constant_tensor(check_numeric("creation", made))


_MAKING: tuple[Callable[..., Any], ...] = (
    *(np.zeros, np.ones, np.eye, np.identity, np.tri, np.indices, np.diag_indices, np.tril_indices, np.triu_indices),
    *(np.mask_indices, np.frombuffer, np.fromstring, np.from_dlpack),
    *(np.hanning, np.hamming, np.blackman, np.bartlett),
)
for _function in _MAKING:
    enter_creation(_function)


@enter_as(np.empty, "Return NumPy's result as Tensors", NOTHING)
def empty(*args: Any, **kwargs: Any) -> Any:
    # Zeros cost as little, and whatever keeps them, a graph or a checkpoint, is the same each time.
    return own_as_tensors(np.zeros(*args, **kwargs))


@implements(np.fromiter, by="iter")
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """Return a Tensor of the numbers that an iterable gives; see `numpy.fromiter`."""
    items = list(itertools.islice(iter, count if count >= 0 else None))
    values = stacked_lists(items)
    if type(values) is not Tensor or len(items) < count or values.ndim != 1:  # of the latter NumPy says what is wrong
        return own_as_tensors(np.fromiter(items, dtype, count))
    check_numeric("fromiter", np.empty(0, dtype))
    made: Any = own_as_tensors(np.zeros(len(items), dtype))
    made[...] = values
    return made


@implements(np.kaiser, by="beta")
def kaiser(M: int, beta: Any) -> Any:  # noqa: N803 - NumPy's name
    """Return the Kaiser window of a length; see `numpy.kaiser`."""
    if type(beta) is not Tensor:
        return own_as_tensors(np.kaiser(M, beta))
    if beta.ndim:
        raise ShapeError("kaiser", f"beta of shape {beta.shape}", "one number is needed", "Use wengert.vmap")
    beta = beta.astype(np.result_type(beta.dtype, float))
    if M == 1:
        return own_as_tensors(np.ones(1))
    center = (M - 1) / 2.0
    places = np.arange(0, float(M))
    return np.i0(beta * np.sqrt(1 - ((places - center) / center) ** 2.0)) / np.i0(beta)


@implements(np.full, by="fill_value")
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Return a Tensor filled with a value; see `numpy.full`."""
    value = stacked_lists(fill_value)
    as_order(order, "C")
    if dtype is not None:
        check_numeric("full", np.empty(0, dtype))
    value = (
        as_tensor(value) if dtype is None else full_like(np.zeros(np.shape(value), dtype), value)
    )  # a graph keeps them
    return np.broadcast_to(value, as_shape(shape)).copy()


# Of the shape and dtype of an array


@implements(np.full_like, by="fill_value")
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Return a Tensor like another, filled with a value; see `numpy.full_like`."""
    if is_selection(a) and shape is None and np.ndim(fill_value) == 0:
        return a._value.of(full_like(a._value.whole, fill_value, dtype))
    made: Any = empty_like(a, dtype, order, subok, shape)
    copyto(made, stacked_lists(fill_value), casting="unsafe")
    return made


def enter_filled_like(function: Any) -> Callable[..., Any]:
    """Enter and return a function that returns a Tensor filled with a constant, in the shape of another."""

    @enter_as(function, "Return a constant Tensor of another's shape and dtype", NOTHING)
    def create(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Any:
        x = as_tensor(a)
        if is_selection(x) and shape is None:
            alike: Tensor = x._value.of(create(x._value.whole, dtype))
            return alike
        memories = layout_examples(x)
        is_kept = function is np.empty_like and is_staged(x)  # by a graph, for which it should be the same each time
        fill: Any = np.zeros_like if is_kept else function
        made = constant_tensor(fill(memories[0], dtype=dtype, order=order, shape=shape))
        return made if len(memories) == 1 else lay_like(made, x, order)

    return create


enter_filled_like(np.zeros_like)
enter_filled_like(np.ones_like)
empty_like = enter_filled_like(np.empty_like)


@implements(np.diag_indices_from, by=NOTHING)
def diag_indices_from(arr: Any) -> Any:
    """Return the indices of the main diagonal; see `numpy.diag_indices_from`."""
    return own_as_tensors(np.diag_indices_from(np.empty(as_tensor(arr).shape, bool)))


@implements(np.tril_indices_from, by=NOTHING)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the lower triangle; see `numpy.tril_indices_from`."""
    return own_as_tensors(np.tril_indices_from(np.empty(as_tensor(arr).shape, bool), k))


@implements(np.triu_indices_from, by=NOTHING)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the upper triangle; see `numpy.triu_indices_from`."""
    return own_as_tensors(np.triu_indices_from(np.empty(as_tensor(arr).shape, bool), k))


@implements(np.fromfunction, by=NOTHING)
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """Return what a function gives for the indices of every element; see `numpy.fromfunction`."""
    return function(*(constant_tensor(index) for index in np.indices(shape, dtype=dtype)), **kwargs)


# Sequences: differentiable in their ends


@implements(np.arange, by=NOTHING)
def arange(
    *args: Any,
    start: Any = None,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Return evenly spaced numbers; see `numpy.arange`. Their number is constant in the arguments."""
    if start is not None or stop is not None or step is not None:
        limits = [*args, *(start, stop, 1 if step is None else step)[len(args) :]]
        first, last, width = limits
        args = (0, first, width) if last is None else (0 if first is None else first, last, width)
    limits = [float(np.asarray(x.detach())) if type(x) is Tensor and x.dtype.kind == "f" else x for x in args]
    limits = [operator.index(x) if type(x) is Tensor else x for x in limits]
    made = np.arange(*limits, dtype=dtype)
    if made.dtype.kind != "f" or not any(type(x) is Tensor and x.dtype.kind == "f" for x in args) or made.size == 0:
        return constant_tensor(made)
    start, step = (args[0] if len(args) > 1 else 0.0), (args[2] if len(args) > 2 else 1.0)
    increment = (start + step) - start
    return as_tensor(start + increment * np.arange(made.size, dtype=made.dtype))


@implements(np.linspace, by="start stop")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return evenly spaced numbers between two ends, differentiable in both; see `numpy.linspace`."""
    ends = [x if is_weak(x) else as_tensor(stacked_lists(x)) for x in (start, stop)]
    num, axis = operator.index(num), as_whole("linspace", "axis", axis)
    made = apply(conversion.linspace, *ends, num=num, endpoint=bool(endpoint), dtype=dtype, axis=axis)
    if not retstep:
        return made
    count = num - 1 if endpoint else num
    return made, (ends[1] - ends[0]) / count if count > 0 else np.nan


@implements(np.logspace, by="start stop base")
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Return numbers evenly spaced on a logarithmic scale; see `numpy.logspace`."""
    if np.ndim(base):
        count = max(np.ndim(start), np.ndim(stop), np.ndim(base))
        start, stop, base = (array(x, copy=None, ndmin=count) for x in (start, stop, base))
        base = np.expand_dims(base, axis)
    result = apply(power, base, linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else as_tensor(result).astype(dtype)


@implements(np.geomspace, by="start stop")
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return numbers evenly spaced by their ratio; see `numpy.geomspace`."""
    first, last = as_tensor(start), as_tensor(stop)
    if any(is_concrete(x) and np.any(x == 0) for x in (first, last)):
        raise UsageError("geomspace", "an end that is zero", "ratios need ends other than zero", "Use linspace")
    common = np.result_type(first.dtype, last.dtype, float, np.zeros((), dtype).dtype)
    first, last = first.astype(common), last.astype(common)
    sign = np.sign(first)
    first, last = first / sign, last / sign
    made: Any = np.copy(as_tensor(logspace(np.log10(first), np.log10(last), num, endpoint, 10.0, common)))
    if num > 0:
        made[0] = first
    if num > 1 and endpoint:
        made[-1] = last
    made *= sign
    if axis != 0:
        made = np.moveaxis(made, 0, axis)
    return made if dtype is None else made.astype(dtype)


def as_ndarray(value: Any) -> Any:
    """Return a Tensor as a read-only ndarray; other values as they are."""
    return value.numpy() if type(value) is Tensor else value


def enter_writer(function: Callable[..., None]) -> None:
    """Enter a function that writes arrays into a file."""

    @enter_as(function, "Write arrays into a file", NOTHING)
    def write(*args: Any, **options: Any) -> None:
        function(*map(as_ndarray, args), **{name: as_ndarray(value) for name, value in options.items()})


def enter_reader(function: Callable[..., Any]) -> None:
    """Enter a function that reads arrays from a file."""

    @enter_as(function, "Read from a file; arrays come as Tensors", NOTHING)
    def read(*args: Any, **options: Any) -> Any:
        if args and type(args[0]) is Tensor:
            raise DtypeError(function.__name__, "a Tensor as the file", "a path or an open file is needed", "Pass one")
        found = function(*args, **options)
        return as_tensor(found) if type(found) is np.ndarray and found.dtype.kind in "biufc" else found


_WRITING: tuple[Callable[..., None], ...] = (np.save, np.savez, np.savez_compressed, np.savetxt)
_READING: tuple[Callable[..., Any], ...] = (np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.fromregex)
for _function in _WRITING:
    enter_writer(_function)
for _function in _READING:
    enter_reader(_function)


class Joiner:
    """Join what stands in brackets, slices standing for ranges, as `numpy.r_` and `numpy.c_` do."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
        self.name = name
        self.settings = axis, ndmin, trans1d

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        axis, ndmin, trans1d = self.settings
        if parts and isinstance(parts[0], str):
            axis, ndmin, trans1d = self.parse_settings(parts[0])
            parts = parts[1:]
        arrays = [self.part(item, ndmin, trans1d) for item in parts]
        kinds = [
            item if type(item) in np.ScalarType else aval_of(item).number(1) if is_weak(item) else x.dtype
            for item, x in zip(parts, arrays, strict=True)
        ]
        dtype = np.result_type(*kinds) if kinds else None
        return concatenate([x.astype(dtype) if x.dtype != dtype else x for x in arrays], axis=axis)

    def parse_settings(self, text: str) -> tuple[int, int, int]:
        """Return the settings that a string at the beginning gives."""
        axis, ndmin, trans1d = self.settings
        try:
            numbers = [int(number) for number in text.split(",")]
        except ValueError as error:
            needed = "one to three integers are needed: axis, least number of axes, place of the first"
            action = "Make matrices with numpy.reshape" if text in ("r", "c") else "Correct the string"
            raise UsageError(self.name, repr(text), needed, action) from error
        return (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])[:3]  # type: ignore[return-value]  # three

    def part(self, item: Any, ndmin: int, trans1d: int) -> Any:
        """Return one operand in the brackets as a Tensor with at least `ndmin` axes."""
        if isinstance(item, slice):
            found: Any = slice_range(item)
        elif isinstance(item, str):
            raise UsageError(self.name, repr(item), "a string may stand first alone", "Move it there")
        else:
            found = asarray(item)
        rank = found.ndim
        if rank >= ndmin:
            return found
        found = found.reshape((1,) * (ndmin - rank) + found.shape)
        if trans1d == -1 or type(item) in np.ScalarType:
            return found
        if isinstance(item, slice):
            return found.swapaxes(-1, trans1d)
        new = ndmin - rank
        place = trans1d + new + 1 if trans1d < 0 else trans1d
        axes = list(range(ndmin))
        return found.transpose(axes[:place] + axes[new:] + axes[place:new])


def slice_range(item: slice) -> Any:
    """Return the numbers that a slice stands for: an imaginary step is their number."""
    start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
    if isinstance(step, complex | np.complexfloating):
        number: Any = abs(step)
        return linspace(start, item.stop, num=int(number))
    return arange(start, item.stop, step)


class Grid:
    """Return the grids that NumPy's object of this name gives, as Tensors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: Any) -> Any:
        return own_as_tensors(getattr(np, self.name)[key])


class BroadcastIterator:
    """Tell the shape that arrays broadcast to, and iterate over their elements together; see `numpy.broadcast`."""

    def __init__(self, *args: Any) -> None:
        self.operands = tuple(map(as_tensor, args))
        self.shape = np.broadcast_shapes(*[x.shape for x in self.operands])
        self.ndim = self.nd = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.numiter = len(args)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        arrays = [np.broadcast_to(x, self.shape) for x in self.operands]
        return (tuple(x[place] for x in arrays) for place in np.ndindex(self.shape))


@implements(np.ndenumerate)
def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Return pairs of the index and the element, in C order; see `numpy.ndenumerate`."""
    x = as_tensor(arr)
    return ((place, x[place]) for place in np.ndindex(x.shape))


class NdarrayType(type):
    """Be the class of `ndarray`: arrays are instances, whether they are Tensors or NumPy's; scalars are not."""

    def __instancecheck__(cls, value: Any) -> bool:
        return not is_scalar(value) if type(value) is Tensor else isinstance(value, np.ndarray)

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is Tensor or issubclass(kind, np.ndarray)


class ndarray(metaclass=NdarrayType):  # noqa: N801 - NumPy's name
    """Stand for the arrays of both libraries in `isinstance`; called, return a Tensor of a shape with any elements."""

    def __new__(cls, shape: Any, dtype: Any = float, order: Any = "C") -> Any:
        return own_as_tensors(np.zeros(shape, dtype, order))


OBJECTS: dict[str, Any] = {
    "r_": Joiner("r_", 0, 1, -1),
    "c_": Joiner("c_", -1, 2, 0),
    "mgrid": Grid("mgrid"),
    "ogrid": Grid("ogrid"),
    "broadcast": BroadcastIterator,
    "ndenumerate": ndenumerate,
    "ndarray": ndarray,
}
"""What NumPy's objects of these names are for Tensors."""
for _name in ("r_", "c_"):
    implements(getattr(np, _name))(OBJECTS[_name].__getitem__)
