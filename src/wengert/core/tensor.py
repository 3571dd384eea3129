"""The one array class. What its operations mean is told by its trace."""

from __future__ import annotations

import math
import opcode
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, final

import numpy as np

from wengert.core.aval import is_differentiable
from wengert.errors import DtypeError, GraphError, TracedTruthError, UsageError, describe

if TYPE_CHECKING:
    from wengert.core.trace import Trace

__all__ = [
    "BORROWED",
    "FUNCTIONS",
    "ArrayLike",
    "Tensor",
    "check_dtype",
    "concrete",
    "constant_tensor",
    "innermost_trace",
    "keep",
    "make_tensor",
    "own_memory",
    "raw",
    "refuse_object_arrays",
    "settled",
    "wrapped_constant",
]

ArrayLike: TypeAlias = Any
Axis: TypeAlias = "int | Sequence[int] | None"

BORROWED = "borrowed"
STORE_SUBSCR = opcode.opmap["STORE_SUBSCR"]

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""What a NumPy function (or ufunc) does with Tensors: filled by `implements`, used by protocols and methods."""


@final
class Tensor:
    """Hold an array together with what a trace knows about it.

    Make one with `wengert.tensor` or `wengert.asarray`. It behaves as a NumPy array; while it is being
    differentiated, operations on it are recorded.

    The slots belong to the library. `_value` is an ndarray, a NumPy scalar, or the Tensor one level below; `_trace`
    is None for plain values; `_node` is what the trace knows (a tape's node); `_kept` tells that somebody else
    relies on the buffer's present content, so that a write must copy it first (`BORROWED` if the memory is an ndarray
    that its owner may write to, so that whoever saves it must copy it); `_mutated`, set at the first write
    into a part, lets views give copies to whoever keeps them, so that later writes stay cheap.

    >>> import wengert as wg
    >>> x = wg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> x.shape, x.dtype
    ((2, 2), dtype('float64'))
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.],
            [6., 8.]])
    """

    __slots__ = ("__weakref__", "_kept", "_mutated", "_node", "_trace", "_value")
    __array_priority__ = 1000.0

    _value: Any
    _trace: Trace | None
    _node: Any
    _kept: Any
    _mutated: bool

    def __init_subclass__(cls, **kwargs: Any) -> NoReturn:
        raise TypeError(
            describe("Tensor", f"a subclass {cls.__name__}", "Tensor is final", "Hold a Tensor in your class instead")
        )

    # Array attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        trace = self._trace
        return self._value.shape if trace is None else trace.shape(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self._value.dtype  # type: ignore[no-any-return]  # whatever the trace, its value has one

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the elements take."""
        return self.size * self.itemsize

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def T(self) -> Tensor:  # noqa: N802 - NumPy's name
        """The transpose: all axes reversed."""
        return _call(np.transpose, self)

    @property
    def mT(self) -> Tensor:  # noqa: N802 - NumPy's name
        """The matrix transpose: the last two axes exchanged."""
        return _call(np.matrix_transpose, self)

    @property
    def real(self) -> Tensor:
        """The real part."""
        return _call(np.real, self)

    @real.setter
    def real(self, value: ArrayLike) -> None:
        _call(np.real, self)[...] = value

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return _call(np.imag, self)

    @imag.setter
    def imag(self, value: ArrayLike) -> None:
        if self.dtype.kind != "c":
            raise DtypeError(
                describe("imag", f"dtype {self.dtype}", "a complex dtype is needed to set it", "Use .astype(complex)")
            )
        _call(np.imag, self)[...] = value

    @property
    def flat(self) -> Iterator[Tensor]:
        """An iterator over the elements in C order."""
        return iter(_call(np.ravel, self))

    # The array API standard

    @property
    def device(self) -> str:
        """Where the elements are: always "cpu"."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """Return the Tensor on a device, of which there is one: "cpu"."""
        if device != "cpu":
            raise UsageError(
                describe("to_device", f"device {device!r}", "'cpu' is needed", "Leave the Tensor where it is")
            )
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return FUNCTIONS["__array_namespace__"]()

    # Leaving the library

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the elements as a read-only ndarray that shares memory with the Tensor where that is possible.

        Raises:
            GraphError: the Tensor is being differentiated.

        >>> import wengert as wg
        >>> wg.tensor([1.0, 2.0]).numpy()
        array([1., 2.])
        """
        self._require_plain("numpy")
        array = np.asarray(raw(self)).view()
        array.flags.writeable = False
        keep(self)
        return array

    def item(self, *args: Any) -> Any:
        """Return one element as a Python number; without arguments the Tensor must have exactly one."""
        return concrete("item", self).item(*args)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return concrete("tolist", self).tolist()

    def tobytes(self) -> bytes:
        """Return the elements' bytes in C order."""
        return bytes(concrete("tobytes", self).tobytes())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if is_differentiable(self.dtype) and innermost_trace(self) is not None and _is_storing(sys._getframe(1)):
            raise self._stored_in_ndarray()
        self._require_plain("asarray")
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.numpy())  # type: ignore[arg-type]  # ndarrays are buffers since Python 3.12

    def __dlpack__(self, **kwargs: Any) -> Any:
        self._require_plain("__dlpack__")
        if kwargs.get("copy") is not False:  # whoever takes shared memory may write to it, and nobody would know
            return np.array(raw(self)).__dlpack__(**kwargs)
        keep(self)
        return np.asarray(raw(self)).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _require_plain(self, name: str) -> None:
        if innermost_trace(self) is not None:
            concrete(name, self, LEAVING)
            raise GraphError(
                describe(
                    name,
                    f"a Tensor of shape {self.shape} that is being differentiated",
                    "a plain value is needed, because an ndarray would silently lose the gradient",
                    "Use functions of wengert.numpy (for a list of Tensors np.stack, wengert.numpy.array or "
                    "np.array(..., like=x) with a Tensor x), or call .detach() first",
                )
            )

    def _stored_in_ndarray(self) -> GraphError:
        return GraphError(
            describe(
                "assignment",
                f"a Tensor of shape {self.shape} that is being differentiated, stored into an ndarray",
                "a Tensor is needed to hold it, because an ndarray would silently lose the gradient",
                "Make the array with wengert.numpy (zeros, empty, or asarray for one that exists), or store .detach()",
            )
        )

    # Python protocols

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError(
                describe("len", "a 0-d Tensor", "at least one axis is needed", "Use .size for a number of elements")
            )
        return shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[i] for i in range(len(self))])

    def __contains__(self, element: Any) -> bool:
        return bool((concrete("in", self) == concrete("in", element)).any())

    def __bool__(self) -> bool:
        return bool(self._concrete("bool"))

    def __int__(self) -> int:
        return int(self._concrete("int"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DtypeError(
                describe(
                    "index",
                    f"a Tensor of dtype {self.dtype}",
                    "an integer is needed",
                    "Use .detach().numpy() as a mask for ndarrays, or index a Tensor",
                )
            )
        return operator.index(self._concrete("index"))

    def __float__(self) -> float:
        self._refuse_silent_cut("float", sys._getframe(1))
        return float(self._concrete("float"))

    def __complex__(self) -> complex:
        self._refuse_silent_cut("complex", sys._getframe(1))
        return complex(self._concrete("complex"))

    def _concrete(self, name: str) -> Any:
        if self.size != 1:
            raise DtypeError(
                describe(
                    name,
                    f"a Tensor of shape {self.shape}",
                    "a Tensor with exactly one element is needed",
                    "Reduce it first, with .any(), .all() or .sum() for instance",
                )
            )
        return concrete(name, self).item()

    def _refuse_silent_cut(self, name: str, caller: FrameType) -> None:
        trace = innermost_trace(self)
        if trace is not None and _is_storing(caller):
            raise self._stored_in_ndarray()
        concrete(name, self)
        if trace is not None and trace.level > 0:
            raise GraphError(
                describe(
                    name,
                    "a Tensor that a transformation is differentiating",
                    "a plain value is needed, because a Python number would silently lose the gradient",
                    "Use wengert.numpy functions in place of math, or wengert.stop_gradient first",
                )
            )

    __hash__ = object.__hash__

    def __format__(self, specification: str) -> str:
        return format(self.item() if self.size == 1 and specification else str(self), specification)

    def __repr__(self) -> str:
        if is_staged(self):
            found = standing(self)
            known = found._trace.describe(found) if found._trace is not None else ""
            return f"tensor(shape={self.shape}, dtype={self.dtype}, {known})"
        value = raw(self)
        body = np.array2string(np.asarray(value), separator=", ", prefix="tensor(")
        details = []
        if value.dtype not in (np.float64, np.int64, np.bool_):
            details.append(f"dtype={value.dtype}")
        found = standing(self)
        if found._trace is not None:
            details.append(found._trace.describe(found))
        return f"tensor({', '.join([body, *details])})"

    def __reduce__(self) -> Any:
        found = standing(self)
        state = None if found._trace is None else found._trace.state(found)
        return restore, (np.array(raw(self)), state)

    def __copy__(self) -> Tensor:
        return _call(np.copy, self)

    # Differentiation: the tape API fills these in (see wengert.traces.handles)

    if TYPE_CHECKING:

        @property
        def grad(self) -> Tensor | None:
            """The gradient that `backward` has accumulated."""

        @grad.setter
        def grad(self, value: Tensor | None) -> None: ...
        @property
        def requires_grad(self) -> bool:
            """Whether operations on the Tensor are recorded."""

        @requires_grad.setter
        def requires_grad(self, value: bool) -> None: ...
        @property
        def is_leaf(self) -> bool:
            """Whether the Tensor was not computed by a recorded operation."""

        @property
        def grad_fn(self) -> Any:
            """The recorded operation that computed the Tensor; None for leaves."""

        def backward(
            self,
            gradient: ArrayLike | None = None,
            retain_graph: bool | None = None,
            create_graph: bool = False,
            inputs: Any = None,
        ) -> None:
            """Add the gradients of this Tensor into the `.grad` of leaves."""

        def detach(self) -> Tensor:
            """Return the same value as a plain Tensor."""

        def requires_grad_(self, requires_grad: bool = True) -> Tensor:
            """Make the Tensor a leaf that gradients are taken with respect to."""

        def retain_grad(self) -> None:
            """Keep the gradient of a Tensor that is not a leaf."""

        def register_hook(self, hook: Callable[[Any], Any]) -> Any:
            """Call a function with the complete cotangent in each sweep."""

        def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
            """Call a function after `.grad` has changed."""

        # Operators (see wengert.traces.operators)

        def __add__(self, other: ArrayLike) -> Tensor: ...
        def __radd__(self, other: ArrayLike) -> Tensor: ...
        def __iadd__(self, other: ArrayLike) -> Tensor: ...
        def __sub__(self, other: ArrayLike) -> Tensor: ...
        def __rsub__(self, other: ArrayLike) -> Tensor: ...
        def __isub__(self, other: ArrayLike) -> Tensor: ...
        def __mul__(self, other: ArrayLike) -> Tensor: ...
        def __rmul__(self, other: ArrayLike) -> Tensor: ...
        def __imul__(self, other: ArrayLike) -> Tensor: ...
        def __truediv__(self, other: ArrayLike) -> Tensor: ...
        def __rtruediv__(self, other: ArrayLike) -> Tensor: ...
        def __itruediv__(self, other: ArrayLike) -> Tensor: ...
        def __floordiv__(self, other: ArrayLike) -> Tensor: ...
        def __rfloordiv__(self, other: ArrayLike) -> Tensor: ...
        def __ifloordiv__(self, other: ArrayLike) -> Tensor: ...
        def __mod__(self, other: ArrayLike) -> Tensor: ...
        def __rmod__(self, other: ArrayLike) -> Tensor: ...
        def __imod__(self, other: ArrayLike) -> Tensor: ...
        def __pow__(self, other: ArrayLike) -> Tensor: ...
        def __rpow__(self, other: ArrayLike) -> Tensor: ...
        def __ipow__(self, other: ArrayLike) -> Tensor: ...
        def __matmul__(self, other: ArrayLike) -> Tensor: ...
        def __rmatmul__(self, other: ArrayLike) -> Tensor: ...
        def __imatmul__(self, other: ArrayLike) -> Tensor: ...
        def __divmod__(self, other: ArrayLike) -> tuple[Tensor, Tensor]: ...
        def __rdivmod__(self, other: ArrayLike) -> tuple[Tensor, Tensor]: ...
        def __and__(self, other: ArrayLike) -> Tensor: ...
        def __rand__(self, other: ArrayLike) -> Tensor: ...
        def __iand__(self, other: ArrayLike) -> Tensor: ...
        def __or__(self, other: ArrayLike) -> Tensor: ...
        def __ror__(self, other: ArrayLike) -> Tensor: ...
        def __ior__(self, other: ArrayLike) -> Tensor: ...
        def __xor__(self, other: ArrayLike) -> Tensor: ...
        def __rxor__(self, other: ArrayLike) -> Tensor: ...
        def __ixor__(self, other: ArrayLike) -> Tensor: ...
        def __lshift__(self, other: ArrayLike) -> Tensor: ...
        def __rlshift__(self, other: ArrayLike) -> Tensor: ...
        def __ilshift__(self, other: ArrayLike) -> Tensor: ...
        def __rshift__(self, other: ArrayLike) -> Tensor: ...
        def __rrshift__(self, other: ArrayLike) -> Tensor: ...
        def __irshift__(self, other: ArrayLike) -> Tensor: ...
        def __lt__(self, other: ArrayLike) -> Tensor: ...
        def __le__(self, other: ArrayLike) -> Tensor: ...
        def __gt__(self, other: ArrayLike) -> Tensor: ...
        def __ge__(self, other: ArrayLike) -> Tensor: ...
        def __eq__(self, other: ArrayLike) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: ArrayLike) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: ArrayLike) -> None: ...

        # Methods that work in place (see wengert.numpy._in_place)

        abs_: Callable[..., Tensor]
        acos_: Callable[..., Tensor]
        add_: Callable[..., Tensor]
        addcdiv_: Callable[..., Tensor]
        addcmul_: Callable[..., Tensor]
        asin_: Callable[..., Tensor]
        atan_: Callable[..., Tensor]
        ceil_: Callable[..., Tensor]
        clamp_: Callable[..., Tensor]
        clip_: Callable[..., Tensor]
        conj_: Callable[..., Tensor]
        copy_: Callable[..., Tensor]
        cos_: Callable[..., Tensor]
        cosh_: Callable[..., Tensor]
        div_: Callable[..., Tensor]
        exp2_: Callable[..., Tensor]
        exp_: Callable[..., Tensor]
        expm1_: Callable[..., Tensor]
        fill_: Callable[..., Tensor]
        floor_: Callable[..., Tensor]
        floor_divide_: Callable[..., Tensor]
        lerp_: Callable[..., Tensor]
        log10_: Callable[..., Tensor]
        log1p_: Callable[..., Tensor]
        log2_: Callable[..., Tensor]
        log_: Callable[..., Tensor]
        masked_fill_: Callable[..., Tensor]
        mul_: Callable[..., Tensor]
        nan_to_num_: Callable[..., Tensor]
        neg_: Callable[..., Tensor]
        pow_: Callable[..., Tensor]
        reciprocal_: Callable[..., Tensor]
        remainder_: Callable[..., Tensor]
        round_: Callable[..., Tensor]
        sign_: Callable[..., Tensor]
        sin_: Callable[..., Tensor]
        sinh_: Callable[..., Tensor]
        sqrt_: Callable[..., Tensor]
        square_: Callable[..., Tensor]
        sub_: Callable[..., Tensor]
        tan_: Callable[..., Tensor]
        tanh_: Callable[..., Tensor]
        trunc_: Callable[..., Tensor]
        zero_: Callable[..., Tensor]

    # NumPy's methods

    def astype(self, dtype: Any) -> Tensor:
        """Return the elements converted to another dtype."""
        return _call(np.astype, self, dtype)

    def copy(self, order: str = "C") -> Tensor:
        """Return a copy, with the gradient following; `order` is the memory layout, as in NumPy."""
        return _call(np.copy, self, order=order)

    def reshape(self, *shape: Any, order: str = "C") -> Tensor:
        """Return the elements in another shape."""
        return _call(np.reshape, self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Tensor:
        """Return the Tensor with its axes permuted, reversed by default."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None)
        return _call(np.transpose, self, order)

    def fill(self, value: ArrayLike) -> None:
        """Set every element to a value."""
        self[...] = value

    def all(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Tell whether all elements along the axes are true."""
        return _call(np.all, self, axis=axis, keepdims=keepdims)

    def any(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Tell whether any element along the axes is true."""
        return _call(np.any, self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the greatest element."""
        return _call(np.argmax, self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the least element."""
        return _call(np.argmin, self, axis=axis, keepdims=keepdims)

    def argsort(self, axis: int | None = -1, kind: Any = None) -> Tensor:
        """Return the indices that sort along an axis."""
        return _call(np.argsort, self, axis=axis, kind=kind)

    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        """Return the elements limited to an interval."""
        return _call(np.clip, self, min=min, max=max)

    def conj(self) -> Tensor:
        """Return the complex conjugate."""
        return _call(np.conjugate, self)

    def conjugate(self) -> Tensor:
        """Return the complex conjugate."""
        return _call(np.conjugate, self)

    def cumprod(self, axis: int | None = None) -> Tensor:
        """Return the cumulative products."""
        return _call(np.cumprod, self, axis=axis)

    def cumsum(self, axis: int | None = None) -> Tensor:
        """Return the cumulative sums."""
        return _call(np.cumsum, self, axis=axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return a diagonal."""
        return _call(np.diagonal, self, offset=offset, axis1=axis1, axis2=axis2)

    def dot(self, other: ArrayLike) -> Tensor:
        """Return the dot product with another array."""
        return _call(np.dot, self, other)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the greatest element along the axes."""
        return _call(np.max, self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the mean along the axes."""
        return _call(np.mean, self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the least element along the axes."""
        return _call(np.min, self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the product along the axes."""
        return _call(np.prod, self, axis=axis, keepdims=keepdims)

    def ravel(self, order: str = "C") -> Tensor:
        """Return the elements along one axis, as a view where possible."""
        return _call(np.ravel, self, order=order)

    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        """Return each element repeated."""
        return _call(np.repeat, self, repeats, axis=axis)

    def round(self, decimals: int = 0) -> Tensor:
        """Return the elements rounded."""
        return _call(np.round, self, decimals=decimals)

    def squeeze(self, axis: Axis = None) -> Tensor:
        """Return the Tensor without axes of length one."""
        return _call(np.squeeze, self, axis=axis)

    def std(self, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
        """Return the standard deviation along the axes."""
        return _call(np.std, self, axis=axis, ddof=ddof, keepdims=keepdims)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the sum along the axes."""
        return _call(np.sum, self, axis=axis, keepdims=keepdims)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return the Tensor with two axes exchanged."""
        return _call(np.swapaxes, self, axis1, axis2)

    def take(self, indices: ArrayLike, axis: int | None = None) -> Tensor:
        """Return the elements at indices along an axis."""
        return _call(np.take, self, indices, axis=axis)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return the sum of a diagonal."""
        return _call(np.trace, self, offset=offset, axis1=axis1, axis2=axis2)

    def var(self, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
        """Return the variance along the axes."""
        return _call(np.var, self, axis=axis, ddof=ddof, keepdims=keepdims)

    def nonzero(self) -> Tensor:
        """Return the indices of the elements that are not zero."""
        return _call(np.nonzero, self)

    def flatten(self, order: str = "C") -> Tensor:
        """Return a copy of the elements along one axis."""
        return _call(np.copy, _call(np.ravel, self, order=order))

    def sort(self, axis: int = -1) -> None:
        """Sort along an axis, in place."""
        self[...] = _call(np.sort, self, axis=axis)

    def argpartition(self, kth: Any, axis: int | None = -1) -> Tensor:
        """Return the indices that partition along an axis."""
        return _call(np.argpartition, self, kth, axis=axis)

    def choose(self, choices: Any, mode: str = "raise") -> Tensor:
        """Return elements of the choices, picked by the elements of this Tensor."""
        return _call(np.choose, self, choices, mode=mode)

    def compress(self, condition: ArrayLike, axis: int | None = None) -> Tensor:
        """Return the elements along an axis where a condition holds."""
        return _call(np.compress, condition, self, axis=axis)

    def searchsorted(self, v: ArrayLike, side: Any = "left") -> Tensor:
        """Return where values belong in this sorted Tensor."""
        return _call(np.searchsorted, self, v, side=side)

    def partition(self, kth: Any, axis: int = -1) -> None:
        """Partition along an axis, in place."""
        self[...] = _call(np.partition, self, kth, axis=axis)

    def put(self, indices: ArrayLike, values: ArrayLike) -> None:
        """Set elements by flat index, in place."""
        _call(np.put, self, indices, values)

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = FUNCTIONS.get(ufunc if method == "__call__" else (ufunc, method))
        if function is None:
            origin = "numpy." if getattr(np, ufunc.__name__, None) is ufunc else ""
            raise _unsupported(origin + ufunc.__name__ + ("" if method == "__call__" else f".{method}"))
        refuse_object_arrays(ufunc.__name__, inputs)
        return function(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        function = FUNCTIONS.get(func)
        if function is None:
            raise _unsupported(f"{func.__module__}.{func.__name__}")
        return function(*args, **kwargs)


def _is_storing(frame: FrameType) -> bool:
    """Tell whether a frame is at `target[index] = value`: NumPy then asks the value for a number or an array."""
    return frame.f_code.co_code[frame.f_lasti] == STORE_SUBSCR


def _unsupported(name: str) -> DtypeError:
    return DtypeError(
        describe(
            name,
            "a Tensor",
            "a function that Wengert knows how to differentiate is needed",
            "Use another function of wengert.numpy, declare a primitive with wengert.extend, or pass .detach().numpy()",
        )
    )


def refuse_object_arrays(name: str, operands: Sequence[Any]) -> None:
    """Raise a DtypeError if an operand is an array of Python objects (one that holds Tensors, for instance)."""
    for operand in operands:
        if type(operand) is np.ndarray and operand.dtype.kind not in "?biufc":
            raise DtypeError(
                describe(
                    name,
                    f"an array of dtype {operand.dtype}",
                    "a numeric dtype is needed",
                    "Convert it, or build it with wengert.numpy.stack or wengert.numpy.array",
                )
            )


def _call(function: Any, *args: Any, **kwargs: Any) -> Tensor:
    result: Tensor = FUNCTIONS[function](*args, **kwargs)
    return result


def make_tensor(value: Any, trace: Trace | None, node: Any) -> Tensor:
    """Return a Tensor of a trace; the buffer of `value` is the Tensor's to overwrite."""
    tensor = Tensor()
    tensor._value = value
    tensor._trace = trace
    tensor._node = node
    tensor._kept = False
    return tensor


def constant_tensor(value: Any) -> Tensor:
    """Return a plain Tensor around an ndarray or NumPy scalar; a Tensor comes back as it is."""
    return value if type(value) is Tensor else make_tensor(value, None, None)


def innermost_trace(value: Any) -> Trace | None:
    """Return the trace that decides what an operation on a value means; None for plain values."""
    return standing(value)._trace if type(value) is Tensor else None


def standing(tensor: Tensor) -> Tensor:
    """Return the Tensor that a handle stands for: itself, unless it is a view."""
    return tensor if tensor._trace is None else tensor._trace.standing(tensor)


def raw(value: Any) -> Any:
    """Return the array at the bottom of a value: ndarray, NumPy scalar, or whatever else was given.

    >>> import wengert as wg
    >>> raw(wg.tensor([1.0]))
    array([1.])
    """
    while type(value) is Tensor:
        trace = value._trace
        value = value._value if trace is None else trace.below(value)
    return value


LOOKED_AT = "Choose with wengert.numpy.where, or compute the value outside of the function"
LEAVING = "Use wengert.numpy functions (stack for a list), or wengert.asarray(array)[index] to index an array with it"


def concrete(name: str, value: Any, action: str = LOOKED_AT) -> Any:
    """Return the array at the bottom of a value, as `raw` does, for a function that has to look at the numbers.

    Raises:
        GraphError: it differs from lane to lane, so that there is no one array to look at; `action` says what to do.
    """
    below = value
    while type(below) is Tensor:
        trace = below._trace
        if trace is not None and not trace.concrete and not trace.staged:
            kind = TracedTruthError if is_staged(below) else GraphError
            raise kind(
                describe(
                    name,
                    f"a value that differs from lane to lane of {trace.owner_name}",
                    "one value for all lanes is needed where a program looks at numbers",
                    action,
                )
            )
        below = below._value if trace is None else trace.below(below)
    return below


def is_concrete(value: Any) -> bool:
    """Tell whether a value has elements that can be looked at, one set of them: not batched, not being staged."""
    while type(value) is Tensor:
        trace = value._trace
        if trace is None:
            return True
        if not trace.concrete:
            return False
        value = trace.below(value)
    return True


def is_staged(value: Any) -> bool:
    """Tell whether a value has no elements yet, because it stands for a variable of a graph."""
    while type(value) is Tensor:
        trace = value._trace
        if trace is None:
            return False
        if trace.staged:
            return True
        value = trace.below(value)
    return False


def keep(tensor: Tensor) -> None:
    """Mark the buffer under a Tensor, down to the lowest level, as relied upon by somebody else."""
    value: Any = tensor
    while type(value) is Tensor:
        value._kept = value._kept or True
        trace = value._trace
        value = value._value if trace is None else trace.owner(value)


def own_memory(tensor: Tensor) -> None:
    """Replace memory that belongs to an ndarray of the user, who may write to it, by a copy."""
    if tensor._kept is BORROWED:
        tensor._value = tensor._value.copy(order="K")
        tensor._kept = True


def restore(array: np.ndarray[Any, Any], state: Any) -> Tensor:
    """Make the Tensor that was pickled or copied as `array` and the state its trace gave."""
    tensor = make_tensor(array if array.ndim else array[()], None, None)
    return tensor if state is None else tensor.requires_grad_()


def check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    """Raise a DtypeError unless a dtype has derivatives."""
    if not is_differentiable(dtype):
        raise DtypeError(
            describe(
                name,
                f"dtype {dtype}",
                "a float or complex dtype is needed to differentiate",
                "Convert it with .astype(float)",
            )
        )


def settled(out: Any) -> Any:
    """Return a value from below without the Tensor around it if it is a plain one."""
    return out._value if type(out) is Tensor and out._trace is None else out


def wrapped_constant(out: Any) -> Any:
    """Return a value from below, or a tuple of them, as Tensors."""
    if isinstance(out, tuple):
        return tuple(map(wrapped_constant, out))
    if type(out) is Tensor:
        return out
    return make_tensor(out if isinstance(out, np.ndarray | np.generic) else np.asarray(out)[()], None, None)
