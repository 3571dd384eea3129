"""What operators and functions mean of the operands that the door of `eager` does not know.

These are operands of other libraries, sequences, numbers of all sorts beside Tensors, and those that a trace decides.
"""

from __future__ import annotations

import inspect
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.containers.container_classes import stand_in_maker
from wengert.core.diagnostics.source_positions import caller, is_operator
from wengert.core.memory.memory_layout import is_scalar
from wengert.core.memory.views import ALIAS, with_views_resolved
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import NUMBERS, check_broadcast
from wengert.core.values.dispatch import (
    apply,
    as_tensor,
    check_numeric,
    dispatch,
    is_weak,
    plain_array,
    strengthen,
    weaken,
)
from wengert.core.values.interop import defer, foreign, reflects
from wengert.core.values.object_arrays import holds_objects, read_objects
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, GraphError
from wengert.support.attributes import attribute, has_class_attribute
from wengert.support.deferred_warnings import require_warning
from wengert.support.refusals import refusal
from wengert.traces.eager import REAL, eager

Operator = Callable[[Any, Any], Any]
DOUBLE = np.dtype(np.float64)
NUMERIC = "biufc"
"""The kinds of dtypes of ndarrays that are operands as they are."""
HELD = frozenset({ndarray, np.float64})
"""Types of values beside which an ndarray needs no further look."""
OF_ONE = inspect.Signature([inspect.Parameter("a", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
"""What operators take, where functions take parameters, too."""
LEAST_PRIORITY: float = np.float64(0.0).__array_priority__
"""That of NumPy's scalars, and of what says none."""


def of_operand(
    primitive: Primitive, compute: Callable[[Any], Any], of_complex: Primitive | None = None
) -> Callable[[Any], Any]:
    """Return an operation of one operand, which may be anything.

    Args:
        primitive: the operation.
        compute: the operator, or ufunc, which gives no Python number for one.
        of_complex: the primitive for a number, if NumPy's arithmetic of complex ones has other bits.
    """
    firm = isinstance(compute, np.ufunc) and primitive.operator is not None

    def general(a: Any, _params: Any) -> Any:
        if type(a) is not Tensor:
            a = operand(primitive.name, a)
        elif of_complex is not None and are_complex(a):
            return apply(of_complex, a)
        return apply(primitive, strengthen(a) if firm else a)

    door = eager(primitive, 1, compute, general)
    vars(door)["__signature__"] = OF_ONE
    return door


def of_operands(
    primitive: Primitive,
    compute: Operator,
    of_complex: Primitive | None = None,
    *,
    reflected: bool = False,
    rest: Operator | None = None,
) -> Operator:
    """Return `a (op) b` for a Tensor `a` and anything `b`.

    Args:
        primitive: the operation.
        compute: the operator, or ufunc.
        of_complex: the primitive for two numbers, if NumPy's arithmetic of complex ones has other bits.
        reflected: whether it is `b (op) a`, of a `b` that is no Tensor.
        rest: what it means of operands that are neither Tensors, numbers nor arrays, if that is said elsewhere.
    """
    function = isinstance(compute, np.ufunc)
    ufunc: np.ufunc = compute if isinstance(compute, np.ufunc) else getattr(np, primitive.name)

    def general(door: Operator, a: Any, b: Any, error: Exception | None = None) -> Any:
        kind = type(b)
        trace, beside = a._trace, b._trace if kind is Tensor else None
        if error is not None:
            raise_unless_decided(primitive.name, error, a, b, reflected)
        elif trace is ALIAS or beside is ALIAS:
            return with_views_resolved(door, a, b)
        elif (
            (kind is float or kind is int or is_familiar(b))
            and (of_complex is None or is_double(a, b))
            and (type(a._value) is ndarray or not function)
        ):
            operands = (b, a) if reflected else (a, b)
            if trace is None or (beside is not None and beside is not trace):
                return dispatch(primitive, operands, {})
            return trace.process(primitive, operands, {})
        if rest is not None:
            return rest(a, b)
        if reflected:
            return apply_reflected(primitive, ufunc, of_complex, a, b)
        if function and is_weak(b):
            a = strengthen(a)
        if of_complex is not None and are_complex(a, b):
            return apply(of_complex, a, b)
        if kind is Tensor or kind is float or kind is int:
            return dispatch(primitive, (a, b), {})
        if kind is ndarray and b.dtype.kind in NUMERIC:
            return apply(primitive, a, b)
        if primitive.name in BESIDE_SPARSE and stand_in_maker(kind) is not None:
            return BESIDE_SPARSE[primitive.name](a, sparse_operand(b))
        if foreign(kind):
            return defer(ufunc, kind, a, b)
        if repeats(primitive, a, b):
            return b * operator.index(a)
        if not function and steps_back(primitive.name, a, b):
            return NotImplemented
        y = operand_beside(primitive.name, a, b)
        return y if y is NotImplemented else apply(primitive, a, y)

    return eager(primitive, 2, compute, general, reflected=reflected)


BESIDE_SPARSE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
"""The operators that sparse arrays have beside arrays and numbers."""


def sparse_operand(matrix: Any) -> Any:
    """Return a matrix of `scipy.sparse` as one of Tensors, whose operators say what it does beside a Tensor."""
    from wengert.primitives.sparse.sparse_tensor import sparse_tensor

    return sparse_tensor(matrix)


def apply_reflected(primitive: Primitive, ufunc: np.ufunc, of_complex: Primitive | None, a: Any, b: Any) -> Any:
    """Return `b (op) a` for a Tensor `a` and whatever the door does not know beside it; see `of_operands`."""
    kind = type(b)
    if kind is ndarray and b.dtype.kind in NUMERIC and (b.ndim or a.ndim):
        return apply(primitive, b, a)
    if primitive.name in BESIDE_SPARSE and stand_in_maker(kind) is not None:
        return BESIDE_SPARSE[primitive.name](sparse_operand(b), a)
    if foreign(kind):
        return defer(ufunc, kind, b, a)
    if repeats(primitive, a, b):
        return b * operator.index(a)
    if kind is complex and a.dtype == DOUBLE and is_scalar(a):
        a = weaken(a)  # np.float64 is a float to Python's complex numbers, which calculate with it themselves
    x = operand_beside(primitive.name, a, b)
    if x is NotImplemented:
        return x
    if of_complex is not None and np.ndim(x) == 0 == a.ndim and "c" in (np.asarray(x).dtype.kind, a.dtype.kind):
        return apply(of_complex, x, a)
    return apply(primitive, x, a)


def raise_unless_decided(name: str, error: Exception, a: Any, b: Any, reflected: bool = False) -> None:
    """Raise what NumPy raised for two operands again, unless the general way decides what is raised or warned of."""
    if isinstance(error, TypeError):
        require_warning(error)
    elif isinstance(error, ValueError):
        values = a._value, b._value if type(b) is Tensor else b
        check_broadcast(name, values[::-1] if reflected else values)
        raise error


def is_familiar(b: Any) -> bool:
    """Tell whether the compact paths know the type of an operand beside a Tensor."""
    kind = type(b)
    if kind is ndarray:
        return b.dtype is DOUBLE or (b.ndim > 0 and b.dtype.kind in REAL)
    return kind is Tensor or kind is float or kind is int


OPERATOR_OF = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "power": "__rpow__",
    "remainder": "__rmod__",
}
"""The operators of scalars on the left: NumPy gives them as ufuncs, some of which round in other ways."""


def ufunc_pair(ufunc: np.ufunc, operate: Operator, reflected: Operator) -> Operator:
    """Return what a ufunc gives for operands of the compact paths, one of them a Tensor; NotImplemented for others.

    Args:
        ufunc: a function of two operands.
        operate: computes it for a Tensor and anything.
        reflected: computes it for the second operand, a Tensor, and anything else as the first.
    """
    name = ufunc.__name__

    def of_pair(x: Any, y: Any) -> Any:
        kind = type(x)
        if kind is ndarray:  # as in `ndarray * Tensor`, which NumPy calls it for
            if type(y) is not Tensor or (x.dtype is not DOUBLE and x.dtype.kind not in REAL):
                return NotImplemented
            return reflected(y, x) if type(y._value) in HELD else NotImplemented
        if kind is Tensor:
            other = type(y)
            if other is Tensor or other is float or other is int or (other is ndarray and y.dtype.kind in REAL):
                return operate(x, y)
        elif type(y) is Tensor:
            if (kind is float or kind is int) and type(y._value) is ndarray:
                return reflected(y, x)
            if name in OPERATOR_OF and isinstance(x, np.generic) and is_scalar(y) and is_operator(*caller()):
                return getattr(y, OPERATOR_OF[name])(x)
        return NotImplemented

    return of_pair


def repeats(primitive: Primitive, a: Tensor, b: Any) -> bool:
    """Tell whether an operator repeats a sequence: integers do with lists and tuples, arrays multiply."""
    return isinstance(b, list | tuple) and primitive.name == "multiply" and a.dtype.kind in "iub" and is_scalar(a)


def is_double(a: Tensor, b: Any = 0.0) -> bool:
    """Tell whether a Tensor is of the usual dtype, and another operand too if it is one: cheaper than `are_complex`."""
    return a.dtype is DOUBLE and (type(b) is not Tensor or b.dtype is DOUBLE)


def are_complex(a: Tensor, b: Any = 0) -> bool:
    """Tell whether operands are numbers, of no axes, and at least one Tensor among them is complex."""
    if a.dtype.kind != "c" and (type(b) is not Tensor or b.dtype.kind != "c"):
        return False
    return np.ndim(a) == 0 and np.ndim(b) == 0


def operand(name: str, value: Any) -> Any:
    """Return an operand of a function as a Tensor, an ndarray or a Python number.

    Raises:
        DtypeError: it is not numeric.
    """
    kind = type(value)
    if kind is Tensor or (kind is ndarray and value.dtype.kind in NUMERIC):
        return value
    known = operator_operand(name, value)
    return check_numeric(name, value) if known is NotImplemented else known


def operator_operand(name: str, value: Any) -> Any:
    """Return an operand of an operator likewise, but NotImplemented if it is no array: its own method may do it."""
    kind = type(value)
    if kind is Tensor or kind in NUMBERS or isinstance(value, np.generic):
        return value
    if kind is ndarray and value.dtype.kind in NUMERIC:
        return value
    if isinstance(value, list | tuple):
        return as_tensor(value)
    if holds_objects(value):
        return read_objects(name, value)
    array = plain_array(name, value)
    return NotImplemented if array.dtype.kind == "O" else check_numeric(name, array)


def operand_beside(name: str, tensor: Tensor, value: Any) -> Any:
    """Return an operand of an operator beside a Tensor, numbers of all sorts included; NotImplemented as above."""
    found = operator_operand(name, value)
    return number_beside(name, tensor, value) if found is NotImplemented else found


def steps_back(name: str, tensor: Tensor, value: Any) -> bool:
    """Tell whether an operator leaves it to what might be an array, but has a method of its own for that.

    A Python number always does, arrays and scalars of NumPy's where its `__array_priority__` is higher than theirs. So
    do all, but for comparisons with == and !=, which would be told apart without a word, beside a sequence of which
    NumPy can make no array, as numbers in it are being differentiated.
    """
    if not reflects(type(value), name):
        return False
    priority = LEAST_PRIORITY if is_scalar(tensor) else 0.0
    if tensor.weak or attribute(value, "__array_priority__", LEAST_PRIORITY) > priority:
        return True
    if (
        name in ("equal", "not_equal")
        or isinstance(value, list | tuple)
        or not has_class_attribute(type(value), "__len__")
    ):
        return False
    return any(type(x) is Tensor and x._trace is not None for x in value)


def number_beside(name: str, tensor: Tensor, value: Any) -> Any:
    """Return what stands beside a Tensor and is no array as an operand, or NotImplemented if its own method may do it.

    A fraction beside a number of double precision is a float, as Python has it.

    Raises:
        GraphError: it is a sparse matrix.
        DtypeError: it is a fraction of which NumPy would make an array of objects.
    """
    if has_class_attribute(type(value), "toarray"):
        raise refusal(
            GraphError(
                name,
                f"a sparse matrix and a Tensor of shape {tensor.shape}",
                "two arrays are needed",
                "Write matrix @ x or x @ matrix, take wengert.scipy.sparse.csr_array(matrix) in its place, or the "
                "matrix in full with .toarray()",
            )
        )
    if not isinstance(value, numbers.Rational):
        return NotImplemented
    if tensor.dtype == DOUBLE and is_scalar(tensor):
        return float(value)
    given = f"a {type(value).__name__} and a Tensor of shape {tensor.shape} and dtype {tensor.dtype}"
    needed = "a float is needed, as NumPy would make an array of objects"
    raise refusal(DtypeError(name, given, needed, "Write float(fraction)"))
