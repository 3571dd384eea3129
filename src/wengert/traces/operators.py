"""The compact paths of operators: two type tests, the operation, one node, one Tensor.

The functions are made by factories from a primitive's rules. Whatever is not a plain or tape-recorded Tensor (or a
Python number), and whatever happens while a thread records in a special way, goes the general way of `apply`. The
lines that the functions share are written out: a call costs 70 nanoseconds, a tenth of an operation's bookkeeping.
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
from wengert.core.memory.buffers import BORROWED, fixed
from wengert.core.memory.memory_layout import is_scalar
from wengert.core.memory.views import ALIAS, resolved
from wengert.core.memory.write_watches import WATCHES
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
from wengert.core.values.tensor import Tensor, make_tensor, new_tensor
from wengert.errors import DtypeError, GraphError, describe
from wengert.native.elementwise import LARGE
from wengert.support.attributes import attribute, has_class_attribute
from wengert.support.deferred_warnings import require_warning, unregister
from wengert.support.refusals import refusal
from wengert.traces.batch import Batch
from wengert.traces.nodes import CREATED, Binary, LargeBinary, LargeUnary, Raised, Squared, Steep, Unary
from wengert.traces.recorders import REAL

__all__ = [
    "binary_operator",
    "number_beside",
    "operand",
    "operator_operand",
    "reflected_operator",
    "steps_back",
    "ufunc_pair",
    "unary_function",
]

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


def binary_operator(primitive: Elementwise, compute: Operator, of_complex: Elementwise | None = None) -> Operator:
    """Return `a (op) b` for a Tensor `a` and anything `b`.

    Args:
        primitive: an elementwise primitive with rules for both operands.
        compute: the operation on values one level below.
        of_complex: the primitive for two numbers, if NumPy's arithmetic of complex ones has other bits.
    """
    compute_large = strict(primitive.evaluate_large or compute)
    converts = compute in ARITHMETIC
    function = isinstance(compute, np.ufunc)
    record = Raised if primitive.raises else Binary
    left_out, right_out = primitive.needs_out(0), primitive.needs_out(1)
    left_x, left_y = primitive.needs(0, 0), primitive.needs(0, 1)
    right_x, right_y = primitive.needs(1, 0), primitive.needs(1, 1)
    any_out = left_out or right_out
    ufunc: np.ufunc = compute if isinstance(compute, np.ufunc) else getattr(np, primitive.name)

    def operate(a: Any, b: Any) -> Any:
        node: Binary
        trace = a._trace
        kind = type(b)
        if kind is Tensor:
            other = b._trace
            y = b._value
            right = b._node
            if other is not trace:
                if trace is None:
                    if a._kept is BORROWED:
                        return general(a, b)
                    trace = other
                elif other is not None or b._kept is BORROWED:
                    return general(a, b)
                else:
                    right = None
        elif (
            kind is float
            or kind is int
            or (kind is ndarray and (b.dtype is DOUBLE or (b.ndim and b.dtype.kind in REAL)))
        ):
            y = b
            right = None
        else:
            return general(a, b)
        if trace is None:
            if WATCHES:
                return general(a, b)
            result = new_tensor()
            try:
                x = a._value
                result._value = compute_large(x, y) if type(x) is ndarray and x.size >= LARGE else compute(x, y)
            except ValueError:
                check_broadcast(primitive.name, (a._value, y))
                raise
            except ArithmeticError:
                return general(a, b)
            except TypeError as error:
                require_warning(error)
                return general(a, b)
            result._trace = result._node = None
            result._kept = False
            return result
        if SPECIAL or WATCHES or not trace.fast:
            if (
                type(trace) is Batch
                and (of_complex is None or is_double(a, b))
                and (not function or type(a._value) is ndarray)
            ):
                return trace.process(primitive, (a, b), {})
            return resolved(operate, a, b) if trace is ALIAS else general(a, b)
        x = a._value
        left = None if a._trace is None else a._node
        try:
            if type(x) is not ndarray:
                out = compute(x, y)
                node = record()
                if type(out) is float64 or type(out) is float:
                    node.shape, node.dtype = (), DOUBLE
                elif type(out) is complex:
                    return general(a, b)
                else:
                    node.shape, node.dtype = out.shape, out.dtype
            elif x.size >= LARGE and type(y) is not Tensor:
                out = compute_large(x, y)
                node = LargeBinary()
                node.shape, node.dtype = out.shape, out.dtype
            else:
                if kind is not Tensor and converts and x.dtype is DOUBLE and kind is not ndarray:
                    y = array(y, DOUBLE)
                out = compute(x, y)
                node = record()
                node.shape, node.dtype = out.shape, out.dtype
        except ValueError:
            check_broadcast(primitive.name, (x, y))
            raise
        except ArithmeticError:  # Python numbers raise where NumPy's are infinite
            return general(a, b)
        except TypeError as error:
            require_warning(error)
            return general(a, b)
        node.number = next(CREATED)
        node.primitive = primitive
        node.hooks = None
        node.left = left
        node.right = right
        if (left_x and left is not None) or (right_x and right is not None):
            node.x = x
            a._kept = True
        else:
            node.x = None
        if (left_y and left is not None) or (right_y and right is not None):
            if kind is Tensor:
                b._kept = True
            elif kind is ndarray:  # whose owner may write to it
                y = b.copy() if b.flags.writeable else fixed(b)
            node.y = y
        else:
            node.y = None
        node.out = out if any_out else None
        code = (frame := _getframe(1)).f_code
        if code is RECENT[0]:
            node.code = code
            node.offset = frame.f_lasti
        else:
            node.code, node.offset = caller(2)
        result = new_tensor()
        result._value = out
        result._trace = trace
        result._node = node
        result._kept = any_out
        return result

    def general(a: Any, b: Any) -> Any:
        if a._trace is ALIAS or (type(b) is Tensor and b._trace is ALIAS):
            return resolved(operate, a, b)
        if function and is_weak(b):
            a = strengthened(a)
        trace = a._trace
        if of_complex is not None and are_complex(a, b):
            return apply(of_complex, a, b)
        if trace is not None and (type(b) is float or type(b) is int or (type(b) is Tensor and b._trace is trace)):
            return trace.process(primitive, (a, b), {})
        if type(b) is Tensor or type(b) is float or type(b) is int:
            return dispatch(primitive, (a, b), {})
        if type(b) is ndarray and b.dtype.kind in NUMERIC:
            return apply(primitive, a, b)
        if foreign(type(b)):
            return deferred(ufunc, type(b), a, b)
        if repeats(primitive, a, b):
            return b * operator.index(a)
        if not function and steps_back(primitive.name, a, b):
            return NotImplemented
        y = operator_operand(primitive.name, b)
        if y is NotImplemented:
            y = number_beside(primitive.name, a, b)
        return y if y is NotImplemented else apply(primitive, a, y)

    return operate


def reflected_operator(primitive: Elementwise, compute: Operator, of_complex: Elementwise | None = None) -> Operator:
    """Return `b (op) a` for a Tensor `a` and a `b` that is none.

    Args:
        primitive: an elementwise primitive with rules for both operands.
        compute: the operation on values one level below.
        of_complex: the primitive for two numbers, if NumPy's arithmetic of complex ones has other bits.
    """
    compute_large = strict(primitive.evaluate_large or compute)
    converts = compute in ARITHMETIC
    needs_x, needs_y, needs_out = primitive.needs(1, 0), primitive.needs(1, 1), primitive.needs_out(1)
    ufunc: np.ufunc = compute if isinstance(compute, np.ufunc) else getattr(np, primitive.name)

    def operate(a: Any, b: Any) -> Any:
        node: Binary
        trace = a._trace
        kind = type(b)
        if not (
            kind is float
            or kind is int
            or (kind is ndarray and (b.dtype is DOUBLE or (b.ndim and b.dtype.kind in REAL)))
        ):
            return general(a, b)
        y = a._value
        if trace is None:
            if WATCHES:
                return general(a, b)
            result = new_tensor()
            large = type(y) is ndarray and y.size >= LARGE and (kind is not ndarray or b.shape == y.shape)
            try:
                result._value = compute_large(b, y) if large else compute(b, y)
            except (ArithmeticError, ValueError):
                return general(a, b)
            except TypeError as error:
                require_warning(error)
                return general(a, b)
            result._trace = result._node = None
            result._kept = False
            return result
        if SPECIAL or WATCHES or not trace.fast:
            if type(trace) is Batch and (of_complex is None or is_double(a, b)):
                return trace.process(primitive, (b, a), {})
            return resolved(operate, a, b) if trace is ALIAS else general(a, b)
        try:
            if type(y) is not ndarray:
                out = compute(b, y)
                node = Binary()
                if type(out) is complex:
                    return general(a, b)
            elif y.size >= LARGE and (kind is not ndarray or b.shape == y.shape):
                out = compute_large(b, y)
                node = LargeBinary()
            else:
                if converts and y.dtype is DOUBLE and kind is not ndarray:
                    b = array(b, DOUBLE)
                out = compute(b, y)
                node = Binary()
        except (ArithmeticError, ValueError):
            return general(a, b)
        except TypeError as error:
            require_warning(error)
            return general(a, b)
        node.number = next(CREATED)
        node.primitive = primitive
        if type(out) is float:
            node.shape, node.dtype = (), DOUBLE
        else:
            node.shape, node.dtype = out.shape, out.dtype
        node.hooks = None
        node.left = None
        node.right = a._node
        node.x = (b if kind is not ndarray else b.copy() if b.flags.writeable else fixed(b)) if needs_x else None
        node.y = y if needs_y else None
        node.out = out if needs_out else None
        code = (frame := _getframe(1)).f_code
        if code is RECENT[0]:
            node.code = code
            node.offset = frame.f_lasti
        else:
            node.code, node.offset = caller(2)
        if needs_y:
            a._kept = True
        result = new_tensor()
        result._value = out
        result._trace = trace
        result._node = node
        result._kept = needs_out
        return result

    def general(a: Any, b: Any) -> Any:
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


def unary_function(
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
    record = Squared if primitive.raises else Steep if primitive.steep else Unary

    def operate(a: Any) -> Any:
        if type(a) is not Tensor:
            given = operand(primitive.name, a)  # of a number, a function gives no number
            return apply(primitive, strengthened(given) if function else given)
        trace = a._trace
        x = a._value
        if trace is None:
            try:
                out = compute_large(x) if type(x) is ndarray and x.size >= LARGE else compute(x)
            except TypeError as error:
                require_warning(error)
                return general(a)
            if WATCHES:
                return make_tensor(out, None, None)
            result = new_tensor()
            result._value = out
            result._trace = result._node = None
            result._kept = False
            return result
        if SPECIAL or WATCHES or not trace.fast:
            if type(trace) is Batch and (of_complex is None or is_double(a)):
                return trace.process(primitive, (a,), {})
            return resolved(operate, a) if trace is ALIAS else general(a)
        try:
            if type(x) is not ndarray:
                if type(x) is float or type(x) is complex:
                    if not function:
                        return apply(primitive, a)
                    x = strong(x)
                out = compute(x)
                node: Unary = record()
            elif x.size >= LARGE:
                out = compute_large(x)
                node = LargeUnary()
            else:
                out = compute(x)
                node = record()
        except TypeError as error:
            require_warning(error)
            return general(a)
        node.number = next(CREATED)
        node.primitive = primitive
        node.shape = out.shape
        node.dtype = out.dtype
        node.hooks = None
        node.parent = a._node
        node.code, node.offset = caller(2)
        result = new_tensor()
        result._value = out
        result._trace = trace
        result._node = node
        if needs_x:
            node.x = x
            a._kept = True
        else:
            node.x = None
        if needs_out:
            node.out = out
            result._kept = True
        else:
            node.out = None
            result._kept = False
        return result

    def general(a: Tensor) -> Any:
        if of_complex is not None and are_complex(a):
            return apply(of_complex, a)
        return apply(primitive, strengthened(a) if function and primitive.operator is not None else a)

    return operate


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
                describe(
                    name,
                    f"a sparse matrix and a Tensor of shape {tensor.shape}",
                    "two arrays are needed",
                    "Write matrix @ x or x @ matrix, take the matrix in full with .toarray(), or declare a rule with "
                    "wengert.extend",
                )
            )
        )
    if not isinstance(value, numbers.Rational):
        return NotImplemented
    if tensor.dtype == DOUBLE and is_scalar(tensor):
        return float(value)
    raise refusal(
        DtypeError(
            describe(
                name,
                f"a {type(value).__name__} and a Tensor of shape {tensor.shape} and dtype {tensor.dtype}",
                "a float is needed, as NumPy would make an array of objects",
                "Write float(fraction)",
            )
        )
    )
