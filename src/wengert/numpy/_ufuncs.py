"""NumPy's ufuncs for Tensors, and the operators of Tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.memory.memory_layout import is_scalar, may_be_scalar
from wengert.core.memory.possible_aliases import after
from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.opaque_kinds import Constant
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply, implements, is_weak, strengthen, with_dtype
from wengert.core.values.interop import any_decides, defer, foreign
from wengert.core.values.numpy_overrides import AT_ONCE, RAISED, carry_out
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, describe
from wengert.numpy._namespace import document_as
from wengert.numpy._results import fill_out, refuse_options, replace, with_out, with_outs
from wengert.primitives import arithmetic, comparisons, kinks, powers
from wengert.primitives import exponentials as exponentials  # which enters its primitives, as the others do
from wengert.primitives import trigonometric as trigonometric  # likewise
from wengert.traces.eager_in_place import eager_overwrite, replace_plain
from wengert.traces.eager_indexing import read_part, write_part
from wengert.traces.operands import of_operand, of_operands, operand, operand_beside, steps_back, ufunc_pair


def ufunc_function(ufunc: np.ufunc, primitive: Primitive, module: str = "numpy") -> Callable[..., Any]:
    """Return a function with the signature of a module's ufunc that applies its primitive to Tensors."""
    name = ufunc.__name__
    count = ufunc.nin
    compact: Callable[[Any], Any] | None = None
    direct: Callable[..., Any] | None = None
    of_two: Callable[[Any, Any], Any] | None = None
    if isinstance(primitive, Elementwise) and count == 2:
        of_two = of_operands(primitive, ufunc)
        direct = ufunc_pair(ufunc, of_two, of_operands(primitive, ufunc, reflected=True))
    elif isinstance(primitive, Elementwise | Constant) and count == 1:
        direct = compact = of_operand(primitive, ufunc)

    @document_as(name, "Apply the ufunc to Tensors or arrays", module)
    def function(*args: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        if direct is not None and out is None and where is True and not options and len(args) == count:
            result = direct(*args)
            if result is not NotImplemented:
                return result
        if any_decides(args):
            given = {"out": (out, None), "where": (where, True)}  # pandas takes where=True for one that it cannot heed
            return ufunc(*args, **{key: x for key, (x, usual) in given.items() if x is not usual}, **options)
        if len(args) > count + ufunc.nout:
            needed = f"{count} are needed"
            raise TypeError(describe(name, f"{len(args)} operands", needed, "Pass the operands, and out= by name"))
        if len(args) > count:
            out = args[count:] if ufunc.nout > 1 else args[count]
        operands = [operand(name, x) for x in args[:count]]
        if len(operands) < count:
            needed = f"{count} are needed"
            raise TypeError(describe(name, f"{len(operands)} operands", needed, "Pass all operands of the ufunc"))
        dtype = options.pop("dtype", None)
        refuse_options(name, options, "out, where and dtype")
        if dtype is not None:
            operands = calculated_in(ufunc, operands, np.dtype(dtype))
        if where is not True:
            operands = harmless(where, operands)
        if primitive.operator is not None and all(map(is_weak, operands)):
            operands[0] = strengthen(operands[0])  # a function of NumPy never gives a Python number
        result = apply(primitive, *operands)
        if out is None and where is True:
            return result
        if isinstance(result, tuple):
            return with_outs(name, result, out, where)
        return with_out(name, fill_out(result, out), out, where)

    if direct is not None:
        AT_ONCE.add(ufunc)
        function.direct = direct  # type: ignore[attr-defined]  # read by `implements`
    if compact is not None:
        function.of_tensor = compact  # type: ignore[attr-defined]  # read by those who have a Tensor and no options
    if of_two is not None:
        function.of_two = of_two  # type: ignore[attr-defined]  # as above, with a Tensor or number beside it
    return function


def harmless(where: Any, operands: list[Any]) -> list[Any]:
    """Return operands that are harmless where a mask leaves them out: NumPy neither computes nor warns there.

    1 divides integers, and 0.5 is in the domain of all functions of floats but arccosh, and has finite derivatives.
    """

    def mask_operand(x: Any) -> Any:
        dtype = aval_of(x).dtype
        return np.where(where, x, dtype.type(0.5 if dtype.kind in "fc" else 1))

    return [x if is_weak(x) else mask_operand(x) for x in operands]


def calculated_in(ufunc: np.ufunc, operands: list[Any], dtype: np.dtype[Any]) -> list[Any]:
    """Return operands in the dtypes with which a ufunc gives results of the dtype that it is asked for.

    Raises:
        DtypeError: it never does, or NumPy would not convert the operands, as floats to integers.
    """
    avals = [aval_of(x) for x in operands]
    given = [kind.number if kind.weak and kind.dtype.kind != "b" else kind.dtype for kind in avals]
    wanted = (*[None] * ufunc.nin, *[dtype] * ufunc.nout)
    try:
        loop = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), signature=wanted, casting="same_kind")
    except TypeError as error:  # NumPy says why in terms of loops
        dtypes = ", ".join(str(kind.dtype) for kind in avals)
        needed = "a dtype that it can have is needed, to which operands are cast by the rule 'same_kind'"
        action = "Convert the operands, or the result, with .astype"
        raise DtypeError(ufunc.__name__, f"dtype={dtype} for operands of dtype {dtypes}", needed, action) from error
    return [with_dtype(x, found) for x, found in zip(operands, loop, strict=False)]


OPERANDS = frozenset({Tensor, ndarray, float, int})
"""Types of operands with which the result is new; that of a stranger's method may be somebody's."""


def in_place(name: str, operate: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """Return the in-place form of a binary operator."""

    def operator_in_place(self: Tensor, other: Any) -> Any:
        try:
            result = operate(self, other)
        except RAISED:
            carry_out(operator_in_place, self, other)
            raise
        if type(other) in OPERANDS and type(result) is Tensor and result._trace is None and replace_plain(self, result):
            return self
        if result is NotImplemented or is_scalar(self):
            return result
        decided = self._trace is None or not may_be_scalar(self)
        return replace(name, self if decided else after(self), result)

    return operator_in_place


def through_function(
    function: Any, meaning: Callable[..., Any], *, reflected: bool = False
) -> Callable[[Any, Any], Any]:
    """Return a binary operator that calls what a NumPy function means, or for Python numbers Python's."""
    primitive = PRIMITIVES.get(function.__name__)

    def operate(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is not Tensor and kind is not np.ndarray:
            if foreign(kind):
                return defer(function, kind, other, self) if reflected else defer(function, kind, self, other)
            if not reflected and steps_back(function.__name__, self, other):
                return NotImplemented
            other = operand_beside(function.__name__, self, other)
            if other is NotImplemented:
                return NotImplemented
        if is_weak(other) and self.weak:
            operands = (other, self) if reflected else (self, other)
            return apply(primitive, *operands) if primitive else divmod_of_numbers(*operands)
        return meaning(other, self) if reflected else meaning(self, other)

    return operate


def divmod_of_numbers(x: Any, y: Any) -> Any:
    """Return quotient and remainder of Python numbers."""
    return x // y, x % y


def divmod_function(x: Any, y: Any, /, *outs: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
    """Return quotient and remainder, as `numpy.divmod`."""
    if len(outs) > 2:
        raise TypeError(describe("divmod", f"{2 + len(outs)} operands", "2 are needed", "Pass the operands, and out="))
    if where is not True:
        x, y = harmless(where, [operand("divmod", x), operand("divmod", y)])
    results = OF_UFUNCS[np.floor_divide](x, y, **options), OF_UFUNCS[np.remainder](x, y, **options)
    return with_outs("divmod", results, outs or out, where)


OF_UFUNCS: dict[Any, Callable[..., Any]] = {}
"""What the ufuncs of NumPy do with Tensors, but for those that are products of matrices and vectors."""

for _name in sorted(vars(np)):  # not dir(np), whose names load the rest of NumPy
    _ufunc = getattr(np, _name)
    if isinstance(_ufunc, np.ufunc) and _ufunc.signature is None and _ufunc.__name__ in PRIMITIVES:
        OF_UFUNCS[_ufunc] = implements(_ufunc)(ufunc_function(_ufunc, PRIMITIVES[_ufunc.__name__]))
OF_UFUNCS[np.divmod] = implements(np.divmod)(divmod_function)

_sign_of_real = OF_UFUNCS[np.sign]
_sign_of_complex = ufunc_function(np.sign, kinks.direction)


@implements(np.sign, by="x")
def sign(x: Any, *args: Any, **options: Any) -> Any:
    """Return -1, 0 or 1, and x / |x| for complex numbers; see `numpy.sign`."""
    x = operand("sign", x)
    of_complex = x.dtype.kind == "c" if isinstance(x, Tensor | np.ndarray | np.generic) else isinstance(x, complex)
    return (_sign_of_complex if of_complex else _sign_of_real)(x, *args, **options)


OF_UFUNCS[np.sign] = sign


COMPACT: dict[str, tuple[Elementwise, Callable[[Any, Any], Any]]] = {
    "add": (arithmetic.add, operator.add),
    "sub": (arithmetic.subtract, operator.sub),
    "mul": (arithmetic.multiply, operator.mul),
    "truediv": (arithmetic.divide, operator.truediv),
    "pow": (powers.raised, operator.pow),
    "mod": (arithmetic.remainder, operator.mod),
}
GENERAL: dict[str, Any] = {
    "floordiv": np.floor_divide,
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
    """Make a function the special method of Tensor with that name, which Python's errors about arguments say."""
    if isinstance(function, FunctionType):
        function.__qualname__ = f"Tensor.__{name}__"
    setattr(Tensor, f"__{name}__", function)


for _name, (_primitive, _compute) in COMPACT.items():
    _of_complex = arithmetic.complex_product if _name == "mul" else None
    _operate = of_operands(_primitive, _compute, _of_complex)
    install(_name, _operate)
    install(f"r{_name}", of_operands(_primitive, _compute, _of_complex, reflected=True))
    install(f"i{_name}", eager_overwrite(getattr(operator, f"i{_name}"), in_place(_primitive.name, _operate)))
for _name, _function in GENERAL.items():
    install(_name, through_function(_function, OF_UFUNCS[_function]))
    install(f"r{_name}", through_function(_function, OF_UFUNCS[_function], reflected=True))
    if _name != "divmod":
        _operate = in_place(_function.__name__, through_function(_function, OF_UFUNCS[_function]))
        install(f"i{_name}", eager_overwrite(getattr(operator, f"i{_name}"), _operate))
for _name, (_function, _compute) in COMPARISONS.items():
    _rest = through_function(_function, OF_UFUNCS[_function])
    install(_name, of_operands(PRIMITIVES[_function.__name__], _compute, rest=_rest))
install("neg", of_operand(arithmetic.negative, operator.neg))
install("abs", of_operand(kinks.absolute, operator.abs, kinks.complex_size))
install("pos", lambda self: apply(arithmetic.positive, self))
install("invert", of_operand(comparisons.invert, operator.invert))
install("getitem", read_part)
install("setitem", strict(write_part))
