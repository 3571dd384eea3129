"""The compact paths of operators: two type tests, the operation, one node, one Tensor.

The functions are made by factories from a primitive's rules. Whatever is not a plain or tape-recorded Tensor (or a
Python number), and whatever happens while a thread records in a special way, goes the general way of `apply`.
"""

from __future__ import annotations

import numbers
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.diagnostics.source_positions import RECENT, caller, is_operator
from wengert.core.memory.buffers import BORROWED, as_fixed, lend
from wengert.core.memory.memory_layout import is_scalar
from wengert.core.memory.views import ALIAS, with_views_resolved
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.aval import NUMBERS, strong
from wengert.core.values.broadcast import check_broadcast
from wengert.core.values.dispatch import (
    apply,
    as_tensor,
    checked,
    dispatch,
    is_weak,
    plain_array,
    strengthened,
    weakened,
)
from wengert.core.values.interop import deferred, foreign, reflects
from wengert.core.values.object_arrays import holds_objects, read_objects
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import WATCHES, Tensor, make_tensor, new_tensor, plain_tensor
from wengert.errors import DtypeError, GraphError
from wengert.native.elementwise import LARGE
from wengert.support.attributes import attribute, has_class_attribute
from wengert.support.deferred_warnings import require_warning, unregister
from wengert.support.refusals import refusal
from wengert.traces.batch import Batch
from wengert.traces.eager_functions import NO_PARAMS, REAL
from wengert.traces.nodes import CREATED, NOTHING, LargeResiduals, Node, record_result

unregister(globals())  # what would warn goes the general way, and warns there
Operator = Callable[[Any, Any], Any]
_getframe = sys._getframe
array = np.array
DOUBLE = np.dtype(np.float64)
NUMERIC = "biufc"
"""The kinds of dtypes of ndarrays that are operands as they are."""
HELD = frozenset({ndarray, np.float64})
"""Types of values beside which an ndarray needs no further look."""
float64 = np.float64
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
"""Operations that are given arrays instead of Python numbers, with which NumPy takes twice as long."""
LEAST_PRIORITY: float = np.float64(0.0).__array_priority__
"""That of NumPy's scalars, and of what says none."""


def eager_binary(
    primitive: Elementwise, compute: Operator, of_complex: Elementwise | None = None, *, reflected: bool = False
) -> Operator:
    """Return `a (op) b` for a Tensor `a` and anything `b`; reflected, `b (op) a` for a `b` that is no Tensor.

    Args:
        primitive: an elementwise primitive with rules for both operands.
        compute: the operation on values one level below.
        of_complex: the primitive for two numbers, if NumPy's arithmetic of complex ones has other bits.
        reflected: whether the Tensor is the second operand.
    """
    compute_large = strict(primitive.evaluate_large or compute)
    converts = compute in ARITHMETIC
    any_out = primitive.needs_out(1) or (not reflected and primitive.needs_out(0))
    left_own, left_other = primitive.needs(0, 0), primitive.needs(0, 1)
    right_own, right_other = primitive.needs(1, int(reflected)), primitive.needs(1, int(not reflected))
    general = (reflected_in_general if reflected else binary_in_general)(primitive, compute, of_complex)

    def operate(a: Any, b: Any) -> Any:
        trace = a._trace
        kind = type(b)
        right = None
        if kind is Tensor:
            other, beside = b._value, b._trace
            if beside is trace:
                right = b._node
            elif trace is None:
                trace, right = beside, b._node
            elif beside is not None:
                return general(operate, a, b)
        elif (
            kind is float
            or kind is int
            or (kind is ndarray and (b.dtype is DOUBLE or (b.ndim and b.dtype.kind in REAL)))
        ):
            other = b
        else:
            return general(operate, a, b)
        if WATCHES or (trace is not None and (SPECIAL or not trace.fast)):
            return general(operate, a, b)
        own = a._value
        large = False
        try:
            if type(own) is ndarray:
                if own.size >= LARGE:
                    large = type(other) is not Tensor and not (reflected and kind is ndarray and b.shape != own.shape)
                elif kind is not Tensor and converts and kind is not ndarray and trace and own.dtype is DOUBLE:
                    other = array(other, DOUBLE)
            if large:
                out = compute_large(other, own) if reflected else compute_large(own, other)
            else:
                out = compute(other, own) if reflected else compute(own, other)
        except (ArithmeticError, TypeError, ValueError) as error:
            return general(operate, a, b, error)
        result = new_tensor()
        result._value = out
        if trace is None:
            result._trace = result._node = None
            result._kept = False
            return result
        if type(out) is complex:
            return general(operate, a, b)
        left = None if a._trace is None else a._node
        if reflected:
            left, right = None, left
        x = y = None
        if (left_own and left is not None) or (right_own and right is not None):
            x = own if a._kept is not BORROWED else lend(a)
            a._kept = True
        if (left_other and left is not None) or (right_other and right is not None):
            y = other
            if kind is Tensor:
                y = other if b._kept is not BORROWED else lend(b)
                b._kept = True
            elif kind is ndarray:  # whose owner may write to it
                y = b.copy() if b.flags.writeable else as_fixed(b)
        node = result._node = Node()
        node.number = next(CREATED)
        node.primitive = primitive
        node.inputs = left, right
        node.given = NO_PARAMS
        node.saved = NOTHING[2] if x is None and y is None else (y, x) if reflected else (x, y)
        if type(out) is float:
            node.shape, node.dtype = (), DOUBLE
        else:
            node.shape = out.shape
            node.dtype = out.dtype
        node.hooks = None
        code = (frame := _getframe(1)).f_code
        if code is RECENT[0]:
            node.code = code
            node.offset = frame.f_lasti
        else:
            node.code, node.offset = caller(2)
        if large:
            node.saved = LargeResiduals(node.saved)
        node.out = out if any_out else None
        result._trace = trace
        result._kept = any_out
        return result

    return operate


def binary_in_general(primitive: Elementwise, compute: Operator, of_complex: Elementwise | None) -> Callable[..., Any]:
    """Return `a (op) b` for a Tensor `a` and whatever the compact path does not know, or raised for."""
    function = isinstance(compute, np.ufunc)
    ufunc: np.ufunc = compute if isinstance(compute, np.ufunc) else getattr(np, primitive.name)

    def operate(compact: Operator, a: Any, b: Any, error: Exception | None = None) -> Any:
        kind = type(b)
        beside = b._trace if kind is Tensor else None
        if error is not None:
            if isinstance(error, ValueError):
                check_broadcast(primitive.name, (a._value, b._value if kind is Tensor else b))
                raise error
            if isinstance(error, TypeError):
                require_warning(error)
        trace = a._trace
        if trace is ALIAS or beside is ALIAS:
            return with_views_resolved(compact, a, b)
        if trace is None:
            trace = beside
        if (
            type(trace) is Batch
            and (kind is Tensor or kind is float or kind is int or is_familiar(b))
            and (a._trace is None or beside is None or a._trace is beside)
            and (of_complex is None or is_double(a, b))
            and (not function or type(a._value) is ndarray)
        ):
            return trace.process(primitive, (a, b), {})
        if function and is_weak(b):
            a = strengthened(a)
        trace = a._trace
        if of_complex is not None and are_complex(a, b):
            return apply(of_complex, a, b)
        if trace is not None and (kind is float or kind is int or (kind is Tensor and beside is trace)):
            return trace.process(primitive, (a, b), {})
        if kind is Tensor or kind is float or kind is int:
            return dispatch(primitive, (a, b), {})
        if kind is ndarray and b.dtype.kind in NUMERIC:
            return apply(primitive, a, b)
        if foreign(kind):
            return deferred(ufunc, kind, a, b)
        if repeats(primitive, a, b):
            return b * operator.index(a)
        if not function and steps_back(primitive.name, a, b):
            return NotImplemented
        y = operator_operand(primitive.name, b)
        if y is NotImplemented:
            y = number_beside(primitive.name, a, b)
        return y if y is NotImplemented else apply(primitive, a, y)

    return operate


def reflected_in_general(
    primitive: Elementwise, compute: Operator, of_complex: Elementwise | None
) -> Callable[..., Any]:
    """Return `b (op) a` for a Tensor `a` and whatever the compact path does not know, or raised for."""
    ufunc: np.ufunc = compute if isinstance(compute, np.ufunc) else getattr(np, primitive.name)

    def operate(compact: Operator, a: Any, b: Any, error: Exception | None = None) -> Any:
        if isinstance(error, TypeError):
            require_warning(error)
        if error is None and is_familiar(b):
            if type(a._trace) is Batch and (of_complex is None or is_double(a)):
                return a._trace.process(primitive, (b, a), {})
            if a._trace is ALIAS:
                return with_views_resolved(compact, a, b)
        if type(b) is ndarray and b.dtype.kind in NUMERIC and (b.ndim or a.ndim):
            return apply(primitive, b, a)
        if foreign(type(b)):
            return deferred(ufunc, type(b), b, a)
        if repeats(primitive, a, b):
            return b * operator.index(a)
        if type(b) is complex and a.dtype == DOUBLE and is_scalar(a):
            a = weakened(a)  # np.float64 is a float to Python's complex numbers, which calculate with it themselves
        x = operator_operand(primitive.name, b)
        if x is NotImplemented:
            x = number_beside(primitive.name, a, b)
        if x is NotImplemented:
            return x
        if of_complex is not None and np.ndim(x) == 0 == a.ndim and "c" in (np.asarray(x).dtype.kind, a.dtype.kind):
            return apply(of_complex, x, a)
        return apply(primitive, x, a)

    return operate


def eager_unary(
    primitive: Elementwise, compute: Callable[[Any], Any], of_complex: Elementwise | None = None
) -> Callable[[Any], Any]:
    """Return a function of one operand.

    Args:
        primitive: an elementwise primitive of one operand.
        compute: the operation on values one level below.
        of_complex: the primitive for a number, if NumPy's arithmetic of complex ones has other bits.
    """
    compute_large = strict(primitive.evaluate_large or compute)
    function = isinstance(compute, np.ufunc)
    needs_x, needs_out = primitive.needs(0, 0), primitive.needs_out(0)

    def operate(a: Any) -> Any:
        if type(a) is not Tensor:
            given = operand(primitive.name, a)  # of a number, a function gives no number
            return apply(primitive, strengthened(given) if function else given)
        trace = a._trace
        x = a._value
        if trace is not None:
            if SPECIAL or WATCHES or not trace.fast:
                if type(trace) is Batch and (of_complex is None or is_double(a)):
                    return trace.process(primitive, (a,), {})
                return with_views_resolved(operate, a) if trace is ALIAS else general(a)
            if type(x) is float or type(x) is complex:
                if not function:
                    return apply(primitive, a)
                x = strong(x)
        large = type(x) is ndarray and x.size >= LARGE
        try:
            out = compute_large(x) if large else compute(x)
        except TypeError as error:
            require_warning(error)
            return general(a)
        if trace is None:
            return make_tensor(out, None, None) if WATCHES else plain_tensor(out)
        if needs_x:
            a._kept = True
        saved = (x,) if needs_x else NOTHING[1]
        if large:
            saved = LargeResiduals(saved)
        return record_result(out, trace, primitive, (a._node,), NO_PARAMS, saved, needs_out, caller(2))

    def general(a: Tensor) -> Any:
        if of_complex is not None and are_complex(a):
            return apply(of_complex, a)
        return apply(primitive, strengthened(a) if function and primitive.operator is not None else a)

    return operate


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


def repeats(primitive: Elementwise, a: Tensor, b: Any) -> bool:
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
    return checked(name, value) if known is NotImplemented else known


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
    return NotImplemented if array.dtype.kind == "O" else checked(name, array)


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
                "Write matrix @ x or x @ matrix, take the matrix in full with .toarray(), or declare a rule with "
                "wengert.extend",
            )
        )
    if not isinstance(value, numbers.Rational):
        return NotImplemented
    if tensor.dtype == DOUBLE and is_scalar(tensor):
        return float(value)
    given = f"a {type(value).__name__} and a Tensor of shape {tensor.shape} and dtype {tensor.dtype}"
    needed = "a float is needed, as NumPy would make an array of objects"
    raise refusal(DtypeError(name, given, needed, "Write float(fraction)"))
