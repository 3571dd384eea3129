"""NumPy's ufuncs for Tensors, and the operators of Tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy import ndarray

from wengert._refusals import refusal
from wengert.core.complaints import strict
from wengert.core.dispatch import apply, as_tensor, implements, is_weak, strengthened
from wengert.core.foreign import any_decides, deferred, foreign
from wengert.core.order import is_scalar, may_be_scalar
from wengert.core.primitive import PRIMITIVES, Constant, Elementwise, Primitive
from wengert.core.sharing import after
from wengert.core.tensor import FUNCTIONS, Tensor
from wengert.errors import DtypeError, ShapeError, UsageError, describe
from wengert.numpy._naming import documented
from wengert.primitives import elementwise
from wengert.traces.operators import (
    binary_operator,
    constant_function,
    constant_operator,
    operand,
    operator_operand,
    reflected_operator,
    unary_function,
)
from wengert.traces.parts import read_part, write_part, write_through
from wengert.traces.recorders import REAL

__all__ = ["dtype_within", "install", "refuse_options", "replace", "through_function", "with_out"]


def is_direct(x: Any) -> bool:
    """Tell whether the compact paths know what to do with an operand."""
    kind = type(x)
    return kind is Tensor or kind is float or (kind is ndarray and x.dtype.kind in REAL) or kind is int


def ufunc_function(ufunc: np.ufunc, primitive: Primitive) -> Callable[..., Any]:
    """Return a function with a ufunc's signature that applies its primitive to Tensors."""
    name = ufunc.__name__
    count = ufunc.nin
    compact = unary_function(primitive, ufunc) if isinstance(primitive, Elementwise) and count == 1 else None
    compact_binary = binary_operator(primitive, ufunc) if isinstance(primitive, Elementwise) and count == 2 else None
    reflected = reflected_operator(primitive, ufunc) if isinstance(primitive, Elementwise) and count == 2 else None

    if isinstance(primitive, Constant) and count == 1:
        compact = constant_function(primitive, ufunc)

    @documented(name, "Apply the ufunc to Tensors or arrays")
    def function(*args: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        if compact is not None and out is None and where is True and not options and len(args) == 1:
            return compact(args[0])
        if compact_binary is not None and out is None and where is True and not options and len(args) == 2:
            x, y = args
            if type(x) is Tensor:
                if is_direct(y):
                    return compact_binary(x, y)
            elif type(y) is Tensor and type(y._value) is ndarray and is_direct(x):
                return reflected(y, x)  # type: ignore[misc]  # it is there as the other is
        if any_decides(args):
            return ufunc(*args, out=out, where=where, **options)
        if len(args) > count + ufunc.nout:
            raise TypeError(
                describe(name, f"{len(args)} operands", f"{count} are needed", "Pass the operands, and out= by name")
            )
        if len(args) > count:
            out = args[count:] if ufunc.nout > 1 else args[count]
        operands = [operand(name, x) for x in args[:count]]
        if len(operands) < count:
            raise TypeError(
                describe(name, f"{len(operands)} operands", f"{count} are needed", "Pass all operands of the ufunc")
            )
        dtype = options.pop("dtype", None)
        refuse_options(name, options, "out, where and dtype")
        if dtype is not None:
            operands = [FUNCTIONS[np.astype](as_tensor(x), dtype) for x in operands]
        if primitive.operator is not None and all(map(is_weak, operands)):
            operands[0] = strengthened(operands[0])  # a function of NumPy never gives a Python number
        result = apply(primitive, *operands)
        return result if out is None and where is True else with_out(name, filling(result, out), out, where)

    if compact is not None:
        function.of_tensor = compact  # type: ignore[attr-defined]  # read by those who have a Tensor and no options
    if compact_binary is not None:
        function.of_two = compact_binary  # type: ignore[attr-defined]  # as above, with a Tensor or number beside it
    return function


def filling(result: Any, out: Any) -> Any:
    """Return the result of a ufunc in the shape of `out=`, which takes part in broadcasting."""
    target = out[0] if isinstance(out, tuple) else out
    shape = np.shape(target) if type(result) is Tensor and target is not None else None
    if shape is None or shape == result.shape or np.broadcast_shapes(shape, result.shape) != shape:
        return result
    return FUNCTIONS[np.broadcast_to](result, shape)


DEFAULTS: dict[str, Any] = {"casting": "same_kind", "order": "K", "subok": True, "signature": None}


def refuse_options(name: str, options: Mapping[str, Any], supported: str) -> None:
    """Raise a UsageError for options of a ufunc that are not at their defaults."""
    unknown = sorted(key for key, value in options.items() if DEFAULTS.get(key, DEFAULTS) != value)
    if unknown:
        raise refusal(
            UsageError(describe(name, f"options {unknown}", f"{supported} alone are supported", "Leave them out"))
        )


def with_out(name: str, result: Any, out: Any, where: Any = True) -> Any:
    """Return a result, or write it into `out` where `where` holds."""
    if out is None or (isinstance(out, tuple) and all(target is None for target in out)):
        if where is not True:
            raise refusal(
                UsageError(
                    describe(
                        name,
                        "where= without out=",
                        "out= is needed, because the other elements would be uninitialised",
                        "Pass out=, or use wengert.numpy.where",
                    )
                )
            )
        return result
    if isinstance(result, tuple):
        outs = out if isinstance(out, tuple) else (out,)
        return tuple(store(name, r, o, where) for r, o in zip(result, outs, strict=True))
    return store(name, result, out[0] if isinstance(out, tuple) else out, where)


def dtype_within(x: Any, dtype: Any, out: Any) -> Any:
    """Return the dtype in which NumPy reduces and accumulates: `out=` takes part as an operand does."""
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    return np.promote_types(x.dtype, target.dtype) if dtype is None and type(target) is Tensor else dtype


def store(name: str, result: Any, out: Any, where: Any) -> Any:
    """Write a result into the Tensor given as `out=`."""
    if type(out) is not Tensor:
        raise refusal(
            DtypeError(
                describe(
                    name,
                    f"a result that is a Tensor, to be written (by out= or in place) into type {type(out).__name__}",
                    "a Tensor is needed, because an ndarray would lose the gradient",
                    "Make the array with wengert.numpy, or call .detach().numpy() on the operands",
                )
            )
        )
    if where is not True:
        result = FUNCTIONS[np.where](where, result, out)
    return replace(name, out, result)


def replace(name: str, target: Tensor, result: Any) -> Tensor:
    """Let a Tensor hold a result of its own shape, cast to its dtype as NumPy's in-place operations do."""
    found = as_tensor(result)
    if found.shape != target.shape:
        raise ShapeError(
            describe(
                name,
                f"a result of shape {found.shape} for a Tensor of shape {target.shape}",
                "the same shape is needed to write in place",
                "Use the operation that makes a new Tensor",
            )
        )
    if found.dtype != target.dtype:
        if not np.can_cast(found.dtype, target.dtype, "same_kind"):
            raise DtypeError(
                describe(
                    name,
                    f"a result of dtype {found.dtype} for a Tensor of dtype {target.dtype}",
                    "a dtype that casts within its kind is needed to write in place",
                    "Convert the Tensor with .astype first",
                )
            )
        found = FUNCTIONS[np.astype](found, target.dtype)
    write_through(target, found)
    return target


def in_place(name: str, operate: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """Return the in-place form of a binary operator."""

    def operator_in_place(self: Tensor, other: Any) -> Any:
        result = operate(self, other)
        if result is NotImplemented or is_scalar(self):
            return result
        decided = self._trace is None or not may_be_scalar(self)
        return replace(name, self if decided else after(self), result)

    return operator_in_place


def through_function(function: Any, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return a binary operator that calls the meaning of a NumPy function, or for Python numbers Python's."""
    primitive = PRIMITIVES.get(function.__name__)

    def operate(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is not Tensor and kind is not np.ndarray:
            if foreign(kind):
                return deferred(function, kind, other, self) if reflected else deferred(function, kind, self, other)
            other = operator_operand(function.__name__, other)
            if other is NotImplemented:
                return NotImplemented
        if is_weak(other) and self.weak:
            operands = (other, self) if reflected else (self, other)
            return apply(primitive, *operands) if primitive else divmod_of_numbers(*operands)
        meaning = FUNCTIONS[function]
        return meaning(other, self) if reflected else meaning(self, other)

    return operate


def divmod_of_numbers(x: Any, y: Any) -> Any:
    """Return quotient and remainder of Python numbers."""
    return x // y, x % y


def divmod_function(x: Any, y: Any, **options: Any) -> Any:
    """Return quotient and remainder, as `numpy.divmod`."""
    return FUNCTIONS[np.floor_divide](x, y, **options), FUNCTIONS[np.remainder](x, y, **options)


for _name in sorted(vars(np)):  # not dir(np), whose names load the rest of NumPy
    _ufunc = getattr(np, _name)
    if isinstance(_ufunc, np.ufunc) and _ufunc.__name__ in PRIMITIVES:
        implements(_ufunc)(ufunc_function(_ufunc, PRIMITIVES[_ufunc.__name__]))
implements(np.divmod)(divmod_function)

_sign_of_real = FUNCTIONS[np.sign]
_sign_of_complex = ufunc_function(np.sign, elementwise.direction)


@implements(np.sign)
def sign(x: Any, *args: Any, **options: Any) -> Any:
    """Return -1, 0 or 1, and x / |x| for complex numbers; see `numpy.sign`."""
    x = operand("sign", x)
    of_complex = x.dtype.kind == "c" if isinstance(x, Tensor | np.ndarray | np.generic) else isinstance(x, complex)
    return (_sign_of_complex if of_complex else _sign_of_real)(x, *args, **options)


COMPACT: dict[str, tuple[Elementwise, Callable[[Any, Any], Any]]] = {
    "add": (elementwise.add, operator.add),
    "sub": (elementwise.subtract, operator.sub),
    "mul": (elementwise.multiply, operator.mul),
    "truediv": (elementwise.divide, operator.truediv),
    "pow": (elementwise.raised, operator.pow),
    "mod": (elementwise.remainder, operator.mod),
}
GENERAL: dict[str, Any] = {
    "floordiv": np.floor_divide,
    "matmul": np.matmul,
    "divmod": np.divmod,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
COMPARISONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "lt": (np.less, operator.lt),
    "le": (np.less_equal, operator.le),
    "gt": (np.greater, operator.gt),
    "ge": (np.greater_equal, operator.ge),
    "eq": (np.equal, operator.eq),
    "ne": (np.not_equal, operator.ne),
}


def install(name: str, function: Callable[..., Any]) -> None:
    """Make a function the special method of Tensor with that name."""
    setattr(Tensor, f"__{name}__", function)


for _name, (_primitive, _compute) in COMPACT.items():
    _of_complex = elementwise.complex_product if _name == "mul" else None
    _operate = binary_operator(_primitive, _compute, _of_complex)
    install(_name, _operate)
    install(f"r{_name}", reflected_operator(_primitive, _compute, _of_complex))
    install(f"i{_name}", in_place(_primitive.name, _operate))
for _name, _function in GENERAL.items():
    install(_name, through_function(_function))
    install(f"r{_name}", through_function(_function, reflected=True))
    if _name != "divmod":
        install(f"i{_name}", in_place(_function.__name__, through_function(_function)))
for _name, (_function, _compute) in COMPARISONS.items():
    install(_name, constant_operator(_function.__name__, _compute, through_function(_function)))
install("neg", unary_function(elementwise.negative, operator.neg))
install("abs", unary_function(elementwise.absolute, operator.abs, elementwise.complex_size))
install("pos", lambda self: apply(elementwise.positive, self))
install("invert", lambda self: FUNCTIONS[np.invert](self))
install("getitem", read_part)
install("setitem", strict(write_part))
