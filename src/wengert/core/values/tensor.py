"""The one array class, and the traces that tell what its operations mean while it is differentiated or staged."""

from __future__ import annotations

import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, ClassVar, NoReturn, final

import numpy as np

from wengert.core.diagnostics.conversion_hints import (
    Asked,
    asked_for_array,
    asked_for_product,
    is_bound_for_c,
    is_drawing,
    is_scipy_asking,
    library_that_asks,
    remedy_by_source,
)
from wengert.core.diagnostics.source_positions import caller, position_of, writes_at
from wengert.core.diagnostics.store_guard import LOSES, is_assigning, is_reading, is_storing, stored_in_ndarray
from wengert.core.memory.buffers import copy_alike, keep
from wengert.core.memory.memory_layout import Strides, strides_of
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import NUMBERS, is_differentiable, shape_of, strong
from wengert.core.values.interop import ours
from wengert.core.values.members import Members
from wengert.errors import DtypeError, GraphError, TracedTruthError, UsageError, describe

ndarray = np.ndarray
LOOKED_AT = "Choose with wengert.numpy.where, or compute the value outside of the function"
DECIDED_BY = "Choose with wengert.numpy.where, or use wengert.jit(wengert.vmap(function)), which converts branches"


class Trace:
    """Give meaning to operations on the Tensors that carry it.

    An operation goes to the trace with the highest level among its operands; to that trace the other operands are
    constants. `fast` is true while the compact operator paths of the tape may be used: only on a live tape.
    """

    __slots__ = ("fast", "level")
    concrete: ClassVar[bool] = True  # whether the values under this trace can be looked at (truth, float, indices)
    staged: ClassVar[bool] = False  # whether they have no elements at all yet

    def __init__(self, level: int) -> None:
        self.level: float = level
        self.fast = False

    @property
    def owner_name(self) -> str:
        """The transformation and its function, for errors; only traces of transformations have one."""
        raise NotImplementedError

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape of a Tensor of this trace."""
        return shape_of(tensor._value)

    def rank(self, tensor: Tensor) -> int:
        """Return the number of axes of a Tensor of this trace."""
        return len(tensor.shape)

    def strides(self, tensor: Tensor) -> Strides:
        """Return the strides of a Tensor of this trace; see `wengert.core.memory.memory_layout`."""
        return strides_of(tensor._value)

    def current(self, tensor: Tensor) -> Tensor:
        """Return the Tensor that a handle of this trace stands for: itself, unless it is a view."""
        return tensor

    def below(self, tensor: Tensor) -> Any:
        """Return the value one level below that holds the elements of a Tensor of this trace."""
        return tensor._value

    def tangent_below(self, operand: Any) -> Any:  # what traces of forward mode know
        """Return the tangent of an operand, a value one level below; None if there is none."""
        return None

    def owner(self, tensor: Tensor) -> Any:
        """Return the value one level below that owns the memory of a Tensor of this trace."""
        return tensor._value

    def value_below(self, operand: Any) -> Any:
        """Return an operand as seen one level below."""
        if type(operand) is Tensor and (operand._trace is self or operand._trace is None):
            return operand._value
        return operand

    def handle_below(self, handle: Tensor) -> Any:
        """Return the value of a handle that is about to be re-bound by this trace, as seen one level below."""
        if handle._trace is self or handle._trace is None:
            return handle._value
        below = make_tensor(handle._value, handle._trace, handle._node)
        below._kept = handle._kept
        return below

    def alike(self, one: Tensor, other: Tensor) -> bool:
        """Tell whether two Tensors of this trace certainly have the same elements."""
        return alike(one._value, other._value)

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return the same value, known to this trace in the same way, in a buffer of its own."""
        return make_tensor(copy_alike(tensor._value), self, tensor._node)

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says of this trace."""
        raise NotImplementedError

    def original(self, tensor: Tensor) -> Tensor:
        """Return the Tensor of the user that another handle stands for: the leaf that it is, if that is still there."""
        return tensor

    def is_leaf(self, tensor: Tensor) -> bool:
        """Tell whether a Tensor is a leaf of the base tape, which stands for itself and not for a computation."""
        return False

    def state(self, tensor: Tensor) -> Any:
        """Return what a pickle of a Tensor keeps besides its elements, or raise if it means nothing elsewhere."""
        raise NotImplementedError

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Apply a primitive of which at least one operand carries this trace."""
        raise NotImplementedError

    def offer(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor | None:
        """Return what a primitive gives by a quick way, if the trace has one for that; else None."""
        return None

    def lanes_in_front(self, tensor: Tensor) -> Any:
        """Return the lanes of a Tensor of this trace as an ndarray with the batch axis in front; None without such."""
        return None

    def assign(self, handle: Tensor, primitive: Any, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Re-bind `handle` to the result of a primitive that replaces part of it (operand 0), a linear one."""
        raise NotImplementedError

    def overwrite(self, handle: Tensor, index: Any, value: Any) -> bool:
        """Write to part of a Tensor of this trace by a quick way, if it has one, and tell whether it had."""
        return False

    def require_writable(self, handle: Tensor) -> None:
        """Raise if a handle of this trace must not be written to now."""

    def succeed(self, earlier: Tensor, later: Tensor) -> None:
        """Let what was asked of a Tensor of this trace hold for the one that takes its place in a handle."""

    def rebind(self, handle: Tensor, result: Tensor) -> None:
        """Let a handle of this trace stand for another value, which may be of any trace."""
        handle._value, handle._trace, handle._node = result._value, result._trace, result._node
        handle._kept = result._kept = True


class MadeByFunctions(type):
    """Be the class of `Tensor`, which only functions make: it says which, where Python would say of no arguments."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse the call."""
        action = "Use wengert.tensor(data), or wengert.numpy.zeros(shape)"
        raise TypeError(describe("Tensor", "a call of the class", "a function that makes Tensors is needed", action))


@final
class Tensor(Members, metaclass=MadeByFunctions):
    """Hold an array together with what a trace knows about it.

    Make one with `wengert.tensor` or `wengert.asarray`. It behaves as a NumPy array; while it is being
    differentiated, operations on it are recorded.

    >>> import wengert as wg
    >>> x = wg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> x.shape, x.dtype
    ((2, 2), dtype('float64'))
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.],
            [6., 8.]])
    """

    __slots__ = ("__weakref__", "_array", "_fixed", "_kept", "_mutated", "_node", "_trace", "_value")
    __array_priority__ = 1000.0

    # `_value` is an ndarray, a NumPy scalar, or the Tensor one level below; `_trace` is None for plain values;
    # `_node` is what the trace knows (a tape's node). `_kept` tells that somebody else relies on the buffer's
    # present content, so that a write must copy it first (`BORROWED` if the memory is an ndarray that its owner may
    # write to, so that whoever saves it must copy it). `_mutated`, set at the first write into a part, lets views
    # give copies to whoever keeps them, so that later writes stay cheap. `_array`, set where the value is a scalar
    # that stands for an array without axes, with which NumPy would take ten times as long, holds the strides of
    # that. `_fixed` is set where the Tensor stands for a read-only ndarray, that it must not be written to.
    _value: Any
    _trace: Trace | None
    _node: Any
    _kept: Any
    _mutated: bool
    _array: tuple[int, ...]
    _fixed: bool

    def __init_subclass__(cls, **kwargs: Any) -> NoReturn:
        given = f"a subclass {cls.__name__}"
        raise TypeError(describe("Tensor", given, "Tensor is final", "Hold a Tensor in your class instead"))

    # Array attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        trace, value = self._trace, self._value
        if type(value) is not ndarray and type(value) in NUMBERS:
            return ()
        return value.shape if trace is None or trace.fast else trace.shape(self)

    @shape.setter
    def shape(self, value: Any) -> None:
        self._set_shape(value)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        value = self._value
        return value.dtype if type(value) is ndarray else NUMBERS.get(type(value)) or value.dtype

    @property
    def weak(self) -> bool:
        """Whether the Tensor stands for a Python number, whose dtype gives way to that of arrays."""
        value: Any = self
        while type(value) is Tensor:
            if type(value._node) is tuple and value._node[2:] == TRUTH:
                return True
            value = value._value
        return type(value) in NUMBERS or getattr(value, "weak", False)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        trace = self._trace
        if trace is None or trace.fast:
            return self._value.ndim if type(self._value) is ndarray else len(self.shape)
        return trace.rank(self)

    @property
    def size(self) -> int:
        """The number of elements."""
        trace = self._trace
        if (trace is None or trace.fast) and type(self._value) is ndarray:
            return self._value.size
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
    def flags(self) -> Any:
        """How the elements lie in memory, as NumPy tells of arrays; to be read."""
        array = np.asarray(concrete("flags", self)).view()
        array.flags.writeable = False
        return array.flags

    # The array API standard

    @property
    def device(self) -> str:
        """Where the elements are: always "cpu"."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """Return the Tensor on a device, of which there is one: "cpu"."""
        if not isinstance(device, str) or device != "cpu":
            raise UsageError("to_device", f"device {device!r:.40}", "'cpu' is needed", "Leave the Tensor where it is")
        return self

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
        """Return one element as a Python number, the only one without arguments.

        No gradient follows it: on the tape it is for looking at, and transformations refuse it.

        Raises:
            GraphError: a transformation is differentiating the Tensor.
        """
        self._refuse_in_transformations("item")
        return concrete("item", self).item(*args)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the only element as a pair whose quotient it is, as Python's `statistics` asks for; see `item`."""
        self._refuse_in_transformations("as_integer_ratio")
        numerator, denominator = self.item().as_integer_ratio()
        return numerator, denominator

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; see `item`."""
        self._refuse_in_transformations("tolist")
        return concrete("tolist", self).tolist()

    def tobytes(self) -> bytes:
        """Return the elements' bytes in C order; see `item`."""
        self._refuse_in_transformations("tobytes")
        return bytes(concrete("tobytes", self).tobytes())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if is_differentiable(self.dtype) and innermost_trace(self) is not None and is_assigning(sys._getframe(1)):
            raise self._storage_error(sys._getframe(1))
        if innermost_trace(self) is not None:
            if asked_for_product(sys._getframe(1)):
                found = np.empty((), object)
                found[()] = self
                return found
            self._require_plain("asarray", asked_for_array(sys._getframe(1), is_concrete(self)))
        elif copy is None and is_scipy_asking(sys._getframe(1)):
            copy = True  # it may write to what it takes for its own
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __buffer__(self, flags: int) -> memoryview:
        if is_scipy_asking(sys._getframe(1)) or (
            innermost_trace(self) is not None and asked_for_product(sys._getframe(1))
        ):
            raise BufferError  # NumPy asks __array__ then
        return memoryview(self.numpy())  # type: ignore[arg-type]  # ndarrays are buffers since Python 3.12

    def __dlpack__(self, **kwargs: Any) -> Any:
        self._require_plain("__dlpack__")
        if kwargs.get("copy") is not False:  # whoever takes shared memory may write to it, and nobody would know
            return np.array(raw(self)).__dlpack__(**kwargs)
        keep(self)
        return np.asarray(raw(self)).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _require_plain(self, name: str, asked: Asked | None = None) -> None:
        if innermost_trace(self) is not None:
            name, action, position = asked[:3] if asked else (name, "Use functions of wengert.numpy", None)
            if position is not None and is_staged(self):
                needed = "a plain value is needed, because an ndarray holds numbers"
                raise TracedTruthError(name, f"{self._shown()} ({position})", needed, action)
            concrete(name, self, LEAVING if asked is None else action, stores=asked is not None)
            needed = f"a plain value is needed, because {LOSES}"
            error = GraphError(name, self._shown(), needed, f"{action}, or call .detach() first")
            error.writes = asked is not None
            raise error

    def _shown(self) -> str:
        known = "differs from lane to lane" if not is_staged(self) else "is being traced"
        return f"a Tensor of shape {self.shape} that {'is being differentiated' if is_concrete(self) else known}"

    def _storage_error(self, caller: FrameType | None = None) -> GraphError:
        reason = LOSES if is_concrete(self) else "an ndarray holds numbers"
        error = stored_in_ndarray(self._shown(), reason, library_that_asks(caller))
        error.writes = True
        return error

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, _args: Any = (), _kwargs: Any = None) -> NoReturn:
        """Refuse functions of PyTorch's: of this one it would say that it "must be Tensor, not Tensor"."""
        name = getattr(function, "__name__", "function")
        write = f"np.{name}" if hasattr(np, name) else "it with NumPy's functions"
        action = f"Write {write}, or convert the Tensor first, by torch.tensor(x.numpy())"
        raise DtypeError(f"torch.{name}", "a Tensor of Wengert", "one of PyTorch is needed", action)

    # Python protocols

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            given = "a 0-d Tensor"
            raise TypeError(describe("len", given, "at least one axis is needed", "Use .size for a number of elements"))
        return shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        length = len(self)  # raises at once; each element is read when it is its turn, as in NumPy
        return (self[i] for i in range(length))

    def __contains__(self, element: Any) -> bool:
        return bool((concrete("in", self) == concrete("in", element)).any())

    def __bool__(self) -> bool:
        return bool(self._concrete("bool", DECIDED_BY))

    def __int__(self) -> int:
        self._refuse_draws()
        return int(self._number("int"))

    def __index__(self) -> int:
        kind = self.dtype.kind
        if kind not in "iu" and not (kind == "b" and self.weak):
            mask = "Use .detach().numpy() as a mask for ndarrays, or index a Tensor"
            action = mask if kind == "b" else "Convert it with int()"
            raise DtypeError("index", f"a Tensor of dtype {self.dtype}", "an integer is needed", action)
        return operator.index(self._number("index"))

    def __float__(self) -> float:
        self._refuse_silent_cut("float", sys._getframe(1))
        return float(self._number("float"))

    def __complex__(self) -> complex:
        self._refuse_silent_cut("complex", sys._getframe(1))
        return complex(self._number("complex"))

    def _concrete(self, name: str, action: str = LOOKED_AT) -> Any:
        if self.size != 1:
            raise not_one_element(name, self.shape)
        return concrete(name, self, action).item()

    def _number(self, name: str) -> Any:
        if self.size == 1 and self.ndim:  # as in NumPy
            needed = "one without axes is needed"
            raise DtypeError(name, f"a Tensor of shape {self.shape}", needed, "Call .item(), or index it")
        return self._concrete(name)

    def _refuse_silent_cut(self, name: str, caller: FrameType) -> None:
        trace = innermost_trace(self)
        if trace is not None and is_storing(caller):
            raise self._storage_error(caller)
        self._refuse_in_transformations(name)
        if trace is not None and not is_reading(caller):
            given = f"{self._shown()}, given to a function that may store it as a number"
            needed = "a plain value is needed, because a Python number would silently lose the gradient"
            action = library_that_asks(caller) or "Use wengert.numpy, or give it float(x) or x.detach()"
            raise GraphError(name, given, needed, action)

    def _refuse_in_transformations(self, name: str) -> None:
        concrete(name, self)
        trace = innermost_trace(self)
        if trace is not None and trace.level > 0 and not is_ended(trace):
            remedy = remedy_by_source(*caller()) or f"Leave {name} out, {PLAIN_NUMBERS}"
            needed = "a plain value is needed, because a Python number would silently lose the gradient"
            action = library_that_asks(sys._getframe(2)) or f"{remedy}, or apply wengert.stop_gradient first"
            raise GraphError(name, "a Tensor that a transformation is differentiating", needed, action)

    def _refuse_c_code(self) -> None:
        """Refuse to be handed on by functions of SciPy's whose C code would tell another error than ours."""
        if innermost_trace(self) is not None and is_bound_for_c(frame := sys._getframe(1)):
            self._require_plain("asarray", asked_for_array(frame, is_concrete(self)))

    def _refuse_draws(self) -> None:
        """Refuse to be made an integer by SciPy's `rvs`, which adds `loc` first."""
        if self._trace is None or not (is_differentiable(self.dtype) and is_drawing(sys._getframe(1))):
            return
        if innermost_trace(self) is not None:
            needed = "a plain value is needed, because draws are made integers, which silently lose the gradient"
            raise GraphError("rvs", f"{self._shown()} as loc", needed, "Add loc to what rvs draws without it")

    def __hash__(self) -> int:
        """Return the hash of the identity; of a scalar that no tape records that of its number, as NumPy's is."""
        if self.ndim or hasattr(self, "_array"):
            return object.__hash__(self)
        trace = innermost_trace(self)
        if trace is not None and (trace.level < 1 or is_ended(trace)):
            return object.__hash__(self)
        number = concrete("hash", self)
        if trace is not None:
            raise GraphError(
                "hash",
                "a Tensor that a transformation is differentiating, looked up or stored by its value",
                "a plain number is needed",
                library_that_asks(sys._getframe(1))
                or "Convert it with int() or round(), or compare with == what it may be",
                place=position_of(*caller()),
            )
        return hash(number)

    def __format__(self, specification: str) -> str:
        if specification and not self.ndim:
            return format(concrete("format", self).item(), specification)
        try:
            return format(str(self), specification)
        except ValueError:
            given = f"a Tensor of shape {self.shape} with the format {specification!r}"
            action = "Format its elements, or write np.array2string(x, precision=3)"
            raise DtypeError("format", given, "one number is needed", action) from None

    def __repr__(self) -> str:
        if is_staged(self):
            found = current(self)
            known = found._trace.describe(found) if found._trace is not None else ""
            return f"tensor(shape={self.shape}, dtype={self.dtype}, {known})"
        value = raw(self)
        body = np.array2string(np.asarray(value), separator=", ", prefix="tensor(")
        details = []
        if value.dtype not in (np.float64, np.int64, np.bool_):
            details.append(f"dtype={value.dtype}")
        found = current(self)
        if found._trace is not None:
            details.append(found._trace.describe(found))
        return f"tensor({', '.join([body, *details])})"

    def __reduce__(self) -> Any:
        found = current(self)
        state = None if found._trace is None else found._trace.state(found)
        value = raw(self)
        is_scalar = isinstance(value, np.generic) and not hasattr(found, "_array")
        return restore, (value if is_scalar else np.array(value), state)

    def __copy__(self) -> Tensor:
        return self.copy("K")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        found = current(self)
        if found._trace is None or found._trace.is_leaf(found):
            return restore(*self.__reduce__()[1])
        return self.copy("K")


ours(Tensor)
new_tensor: Callable[[], Tensor] = type.__call__.__get__(Tensor)
"""Make a Tensor without content: calling a class as classes are, in C, costs no more than `Tensor()` would."""


TRUTH = ("truth",)
"""What the nodes of lanes end with that stand for truths of Python's, which count as 0 and 1."""


def make_tensor(value: Any, trace: Trace | None, node: Any) -> Tensor:
    """Return a Tensor of a trace; the buffer of `value` is the Tensor's to overwrite."""
    tensor = new_tensor()
    tensor._value = value
    tensor._trace = trace
    tensor._node = node
    tensor._kept = False
    if WATCHES and WATCHING.stack:
        WATCHING.stack[-1].born.add(id(tensor))
    return tensor


def plain_tensor(value: Any) -> Tensor:
    """Return the plain Tensor of a result that nobody else has, where nothing watches what is made."""
    tensor = new_tensor()
    tensor._value = value
    tensor._trace = tensor._node = None
    tensor._kept = False
    return tensor


class Watching(threading.local):
    """Hold the watches of this thread, innermost last, and whether a write is being handed on."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.sharing = False


WATCHES: list[Any] = []
"""The watches of all threads: as long as there are none, nobody pays for a thread-local look-up."""
WATCHING = Watching()


def array_tensor(value: Any) -> Tensor:
    """Return a plain Tensor around a new ndarray; one without axes is held as a scalar."""
    if value.ndim:
        return make_tensor(value, None, None)
    tensor = make_tensor(value[()], None, None)
    tensor._array = ()
    return tensor


def constant_tensor(value: Any) -> Tensor:
    """Return a plain Tensor around an ndarray or NumPy scalar; a Tensor comes back as it is."""
    return value if type(value) is Tensor else make_tensor(value, None, None)


def alike(one: Any, other: Any) -> bool:
    """Tell whether two values certainly have the same elements: truths, whose derivatives are nobody's."""
    if one is other:
        return True
    if type(one) is Tensor and type(other) is Tensor:
        return one._trace is other._trace and (
            alike(one._value, other._value) if one._trace is None else one._trace.alike(one, other)
        )
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)


def innermost_trace(value: Any) -> Trace | None:
    """Return the trace that decides what an operation on a value means; None for plain values."""
    return current(value)._trace if type(value) is Tensor else None


def is_ended(trace: Trace) -> bool:
    """Tell whether a trace belongs to a transformation that is over: its values may be looked at."""
    return getattr(trace, "ended", False)


def current(tensor: Tensor) -> Tensor:
    """Return the Tensor that a handle stands for: itself, unless it is a view (as `views.current`, which is above)."""
    return tensor if tensor._trace is None else tensor._trace.current(tensor)


def raw(value: Any) -> Any:
    """Return the array at the bottom of a value: ndarray, NumPy scalar, or whatever else was given.

    >>> import wengert as wg
    >>> raw(wg.tensor([1.0]))
    array([1.])
    """
    if type(value) is not Tensor:
        return value
    while type(value) is Tensor:
        trace = value._trace
        value = value._value if trace is None else trace.below(value)
    return strong(value)


PLAIN_NUMBERS = "use wengert.numpy functions in place of math"
LEAVING = "Use wengert.numpy functions (stack for a list), or wengert.asarray(array)[index] to index an array with it"


def not_one_element(name: str, shape: tuple[int, ...]) -> DtypeError:
    """Return the error about an array where one number is needed, or one truth."""
    action = "Reduce it first, with .any() or .all() for instance, or choose element by element with np.where"
    if name != "bool":
        action = "Reduce it first, with .sum() or .max() for instance, or take one element"
    return DtypeError(name, f"a Tensor of shape {shape}", "a Tensor with exactly one element is needed", action)


def concrete(name: str, value: Any, action: str = LOOKED_AT, *, stores: bool = False) -> Any:
    """Return the array at the bottom of a value, as `raw` does, for a function that has to look at, or stores, numbers.

    Raises:
        GraphError: it differs from lane to lane, so that there is no one array to look at; `action` says what to do.
    """
    below = value
    while type(below) is Tensor:
        trace = below._trace
        if trace is not None and not trace.concrete and not trace.staged:
            kind = TracedTruthError if is_staged(below) else GraphError
            given = f"a value that differs from lane to lane of {trace.owner_name}"
            needed = "one value for all lanes is needed where a program looks at numbers"
            error = kind(describe(name, given, needed, remedy_by_source(*caller()) or action))
            error.writes = stores or (kind is TracedTruthError and writes_at(*caller()))
            raise error
        below = below._value if trace is None else trace.below(below)
    return strong(below)


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
    return staging_of(value) is not None


def staging_of(value: Any) -> Any:
    """Return the trace that writes down the graph of whose variables a value stands for one; None for other values."""
    while type(value) is Tensor:
        trace = value._trace
        if trace is None or trace.staged:
            return trace
        value = trace.below(value)
    return None


def visible_array(value: Any) -> Any:
    """Return the array at the bottom of a value, of all lanes, for rules that choose by it; None if there is none yet.

    >>> import wengert as wg
    >>> visible_array(wg.tensor([1.0], requires_grad=True))
    array([1.])
    """
    return value if type(value) is not Tensor else None if is_staged(value) else raw(value)


def restore(value: Any, state: Any) -> Tensor:
    """Make the Tensor that was pickled or copied as an array or scalar, and the state its trace gave."""
    tensor = array_tensor(value) if isinstance(value, np.ndarray) else make_tensor(value, None, None)
    return tensor if state is None else tensor.requires_grad_()


def check_dtype(name: str, dtype: np.dtype[Any], action: str = "Convert it with .astype(float)") -> None:
    """Raise a DtypeError unless a dtype has derivatives; `action` says what to do."""
    if not is_differentiable(dtype):
        raise DtypeError(name, f"dtype {dtype}", "a float or complex dtype is needed to differentiate", action)


def unwrap_plain(out: Any) -> Any:
    """Return a value from below without the Tensor around it if it is a plain one."""
    return out._value if type(out) is Tensor and out._trace is None else out


def wrapped_constant(out: Any) -> Tensor:
    """Return a value from below as a Tensor."""
    if type(out) is Tensor:
        return out
    kept = isinstance(out, np.ndarray | np.generic) or type(out) in NUMBERS
    return make_tensor(out if kept else np.asarray(out)[()], None, None)


def wrapped_constants(out: Any) -> Any:
    """Return a value from below as a Tensor, or a tuple of them as Tensors."""
    return tuple(map(wrapped_constant, out)) if isinstance(out, tuple) else wrapped_constant(out)
