"""Dispatch: one primitive, some operands, and the innermost trace among them decides."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray

from wengert.core.containers.tree_leaves import nesting_error
from wengert.core.diagnostics.numpy_warnings import call_with_warnings
from wengert.core.memory.buffers import BORROWED, forbid_writes, may_change
from wengert.core.memory.views import Derivation, apply_view
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import MOST_AXES, NUMBERS, Aval, strong
from wengert.core.values.evaluation import evaluate_primitive
from wengert.core.values.execution_state import ACTIVE
from wengert.core.values.interop import is_lazy, lazy_error
from wengert.core.values.numpy_overrides import DIFFERENTIABLE_BY, DIRECT, FUNCTIONS
from wengert.core.values.object_arrays import array_of_lists, holds_objects, read_objects
from wengert.core.values.recording import has_budget
from wengert.core.values.tensor import Tensor, Trace, constant_tensor, is_staged, make_tensor
from wengert.errors import DtypeError
from wengert.support.attributes import attribute
from wengert.support.deferred_warnings import require_warning
from wengert.support.refusals import refusal

ARRAYS = (ndarray, np.generic)
INTEGER = np.dtype(np.int64)
F = TypeVar("F", bound=Callable[..., Any])


def innermost(operands: Iterable[Any]) -> tuple[Trace | None, bool]:
    """Return the trace with the highest level among operands, and whether there is any Tensor at all."""
    found: Trace | None = None
    any_tensor = False
    for operand in operands:
        if type(operand) is Tensor:
            any_tensor = True
            trace = operand._trace
            if trace is not None and (found is None or trace.level > found.level):
                found = trace
    return found, any_tensor


def apply(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """Apply a primitive to operands of any kind.

    Args:
        primitive: the operation.
        *operands: Tensors, ndarrays or Python numbers.
        **params: its parameters, which are not differentiated.

    Returns:
        A Tensor if any operand is one, otherwise what NumPy returns; a tuple of them for several outputs.

    Raises:
        DtypeError: it is no primitive.

    >>> import numpy as np
    >>> from wengert.core.primitives.opaque_kinds import Constant
    >>> apply(Constant("signum", np.sign), -2.0)
    np.float64(-1.0)
    """
    try:
        structured = primitive.structured
    except AttributeError:
        given = f"a {type(primitive).__name__}"
        raise DtypeError("apply", given, "a primitive is needed", "Declare one with wengert.extend") from None
    if primitive.view and type(operands[0]) is Tensor:
        return apply_view(primitive, operands, params)
    if structured and (primitive.unfolds or not (any(map(is_staged, operands)) or is_budgeted(primitive))):
        return primitive.evaluate(*operands, **params)  # its graphs run as they are
    return dispatch(primitive, operands, params)


def is_budgeted(primitive: Primitive) -> bool:
    """Tell whether a primitive is to be differentiated as one operation, as a byte budget wants it of loops.

    Not in lanes some of which are not active: as one operation it would have to end there, too.
    """
    return primitive.repeats and has_budget() and ACTIVE.mask is None


def at_once(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """Apply a primitive for a rule: to ndarrays at once, which takes half of the time."""
    for x in operands:
        if type(x) is not ndarray:
            return apply(primitive, *operands, **params)
    try:
        return primitive.strict(*operands, **params)
    except TypeError as error:  # as in `at_users_line`, whose call would unpack all once more
        require_warning(error)
        return call_with_warnings(primitive.strict, operands, params)


applied: Callable[..., Tensor] = apply
"""The same function, for those who know that some operand is a Tensor and that there is one result."""


def dispatch(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Hand a primitive to the innermost trace of its operands, or evaluate it where there is none."""
    trace, any_tensor = innermost(operands)
    if trace is not None:
        return trace.process(primitive, operands, params)
    if not any_tensor:
        return evaluate_primitive(primitive, operands, params)
    out = evaluate_primitive(primitive, [x._value if type(x) is Tensor else x for x in operands], params)
    if primitive.outputs == 1:
        return make_tensor(check_numeric(primitive.name, out), None, None)
    return tuple(make_tensor(check_numeric(primitive.name, item), None, None) for item in out)


Derivation.dispatch = staticmethod(dispatch)


def check_numeric(name: str, value: Any) -> Any:
    """Return an evaluated value as ndarray, NumPy scalar or Python number; what is not numeric is refused."""
    if type(value) in NUMBERS:
        return value
    if type(value) is not ndarray and not isinstance(value, ARRAYS):
        value = array_of_any(value)[()]
    if not isinstance(value, ARRAYS) or value.dtype.kind not in "biufc":
        action = "Convert it with .toarray()" if hasattr(value, "toarray") else "Convert it with .astype(float)"
        raise DtypeError(name, f"data of dtype {array_of_any(value).dtype}", "a numeric dtype is needed", action)
    return value


def implements(*functions: Any, by: str | None = None) -> Callable[[F], F]:
    """Enter a function as the meaning of NumPy functions for Tensors.

    A function may have a short way for operands alone, its attribute `direct`; see `DIRECT`.

    Args:
        *functions: NumPy functions, ufuncs, or pairs (ufunc, method name).
        by: the parameters that there are derivatives by, if not by what `DIFFERENTIABLE_BY` says; "" for none.

    Returns:
        A decorator that returns its function unchanged.

    >>> import numpy as np
    >>> import wengert as wg
    >>> twice = np.frompyfunc(lambda x: 2 * x, 1, 1)
    >>> @implements(twice)
    ... def twice_of_tensor(x):
    ...     return 2 * x
    >>> twice(wg.tensor(3.0))
    tensor(6.)
    """

    def enter(function: F) -> F:
        for name in functions:
            FUNCTIONS[name] = function
            DIRECT[name] = getattr(function, "direct", None)
            if by is not None:
                DIFFERENTIABLE_BY[name] = by
        return function

    return enter


def plain_array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return a value as an ndarray; masked arrays, matrices and quantities with units are refused.

    >>> plain_array("sum", 2.0)
    array(2.)
    """
    kind = type(value)
    if kind is not np.ndarray and issubclass(kind, np.ndarray) and not _calculates_as_ndarray(kind):
        needed = "an ndarray is needed, because other classes calculate in their own way, which derivatives would miss"
        action = "Convert it with numpy.asarray, and take masks or units into account yourself"
        raise refusal(DtypeError(name, f"an array of type {kind.__name__}", needed, action))
    if kind is not np.ndarray and is_lazy(value):
        raise refusal(lazy_error(name, value))
    return array_of_any(value)


def array_of_any(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return what NumPy makes of a value; of an object whose `__getattr__` is no array's answer, that object.

    >>> from unittest.mock import Mock
    >>> array_of_any([1, 2]), array_of_any(Mock()).dtype
    (array([1, 2]), dtype('O'))
    """
    try:
        return np.asarray(value, dtype)
    except ValueError:
        if attribute(value, "__getattr__") is None:
            raise
    found = np.empty((), object)
    found[()] = value
    return found


def require_plain(name: str, leaves: Sequence[Any]) -> None:
    """Refuse arrays of classes that calculate in their own way, or have no elements yet, as `plain_array` does."""
    for leaf in leaves:
        if isinstance(leaf, np.ndarray) or is_lazy(leaf):
            plain_array(name, leaf)


def _calculates_as_ndarray(kind: type[np.ndarray[Any, Any]]) -> bool:
    """Tell whether a subclass leaves arithmetic to ndarray, as memmap does."""
    return kind.__mul__ is np.ndarray.__mul__ and kind.__array_ufunc__ is np.ndarray.__array_ufunc__


def is_weak(value: Any) -> bool:
    """Tell whether a value is, or stands for, a Python number."""
    return value.weak if type(value) is Tensor else type(value) in NUMBERS


def strengthen(value: Any) -> Any:
    """Return a value that is, or stands for, a Python number as a NumPy scalar or Tensor with a dtype of its own."""
    if type(value) is Tensor:
        return apply(PRIMITIVES["astype"], value, dtype=value.dtype) if value.weak else value
    return strong(value)


def weaken(value: Any) -> Any:
    """Return a value without axes as what stands for a Python number; others as they are."""
    if type(value) is Tensor:
        return value if value.weak or value.shape != () else apply(PRIMITIVES["number"], value)
    return value.item() if isinstance(value, ARRAYS) and not value.ndim else value


def truth_as_integer(value: Any) -> Any:
    """Return what stands for one of Python's truths as what stands for an integer; others as they are."""
    if type(value) is Tensor and value.dtype == np.bool_:
        return as_whole_number(value)
    return int(value) if type(value) is bool else value


def as_whole_number(value: Tensor) -> Any:
    """Return what stands for `int` of a value without axes: what has no room in 64 bits is refused when that is known.

    Integers that have room are only converted: a loop that may refuse its bound has to run though nobody reads it.
    """
    has_room = value.dtype.kind in "bi" or (value.dtype.kind == "u" and value.dtype.itemsize < INTEGER.itemsize)
    found = apply(PRIMITIVES["astype"], value, dtype=INTEGER) if has_room else apply(PRIMITIVES["whole"], value)
    return weaken(found)


def as_index(value: Any) -> Any:
    """Return an integer without axes as what stands for one of Python's, as its `__index__` does."""
    if type(value) is not Tensor:
        return operator.index(value)
    return value if value.weak and value.dtype.kind == "i" else as_whole_number(value)


def conform(value: Any, aval: Aval) -> Any:
    """Return a scalar, or an array of the same dtype, as an aval says: as a Python number, or with its dtype."""
    if type(value) in NUMBERS:
        return aval.number(value) if aval.weak else np.asarray(value, aval.dtype)[()]
    if value.dtype == aval.dtype:
        converted = value
    elif aval.weak and value.dtype.kind == "u":  # which may have no room in 64 bits with a sign
        converted = as_whole_number(value)
    else:
        converted = value.astype(aval.dtype)
    return weaken(converted) if aval.weak else strengthen(converted)


def as_tensor(value: Any) -> Tensor:
    """Return a value as a Tensor: itself, or a constant around its array. Python numbers become arrays without axes."""
    if type(value) is Tensor:
        return value if type(value._value) is ndarray else strengthen(value)
    if type(value) is ndarray and value.dtype.kind in "biufc":
        tensor = constant_tensor(value)
        tensor._kept = BORROWED if may_change(value) else True
        return tensor if value.flags.writeable else forbid_writes(tensor)
    if isinstance(value, list | tuple):  # there may be Tensors in it, whose gradients are kept
        return array_of_lists("asarray", tensor_of_lists, value)  # type: ignore[no-any-return]  # a Tensor
    array = plain_array("asarray", value)
    if holds_objects(value):
        return constant_tensor(read_objects("asarray", value))
    is_object = array.dtype.kind == "O"  # which comes out of its array as what it was
    return constant_tensor(check_numeric("asarray", array if is_object else array[()]))


def tensor_of_lists(data: Any) -> Tensor:
    """Return nested lists as a Tensor; those in them keep their gradients."""
    found = stacked_lists(data)
    if type(found) is Tensor:
        return found
    made = np.array(data)
    return as_tensor(made) if made.dtype.kind == "O" else constant_tensor(check_numeric("array", made))


def stacked_lists(data: Any, dtype: Any = None, axes: int = MOST_AXES) -> Any:
    """Return nested lists as a Tensor, of a dtype if one is given, if there are Tensors in them; others as they are.

    Raises:
        UsageError: they are nested deeper than arrays have axes. Walking on until Python stops would let finalizers
            that the garbage collector calls meanwhile fail, too.
    """
    if not isinstance(data, list | tuple):
        return data
    if axes == 0:
        raise nesting_error("array", data)
    items = [stacked_lists(item, dtype, axes - 1) for item in data]
    if not any(type(item) is Tensor for item in items):
        return data
    return np.stack([as_tensor(item) if dtype is None else with_dtype(item, dtype, True) for item in items])


def one_array(data: Any) -> Any:
    """Return nested lists as one array, or as a Tensor if there are Tensors in them; others as they are."""
    found = stacked_lists(data)
    return np.asarray(found) if isinstance(found, list | tuple) else found


def with_dtype(value: Any, dtype: Any, element: bool = False) -> Any:
    """Return a value as a Tensor of a dtype, as `numpy.array` does: whole ones must have room for Python's numbers.

    Args:
        value: what is converted.
        dtype: to which dtype.
        element: whether NumPy sets an element to it if it is a number of its own, which must have room, too.
    """
    whole = np.dtype(dtype).kind in "iu"
    if whole and is_weak(value):
        return as_tensor(apply(PRIMITIVES["fitted"], value, dtype=np.dtype(dtype)))
    if not whole or not element or np.ndim(value):
        return as_tensor(value).astype(dtype, copy=False)
    made = constant_tensor(np.zeros((), dtype))
    made[...] = value
    return made
