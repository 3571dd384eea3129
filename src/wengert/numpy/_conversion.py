"""Conversions, rounding and predicates, and what is answered from shape, dtype and memory, with NumPy's signatures."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.memory.memory_layout import is_scalar
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply, as_tensor, implements, weaken
from wengert.core.values.numpy_overrides import NOTHING
from wengert.core.values.plain_functions import call_plain_method
from wengert.core.values.tensor import Tensor, concrete, constant_tensor, innermost_trace, is_concrete, make_tensor, raw
from wengert.errors import DtypeError, GraphError
from wengert.numpy._namespace import enter_as
from wengert.numpy._results import as_0d_like, lay_in_order, lay_like, replace, with_out
from wengert.numpy._shapes import flat_or_axis
from wengert.primitives import angles, conversion, exponentials, floating_point, shapes, trigonometric
from wengert.traces.eager import eager
from wengert.traces.operands import operand

apply_astype = eager(conversion.astype)


@implements(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return the elements converted to another dtype; see `numpy.astype`."""
    dtype = np.dtype(dtype)
    plain = type(x) is Tensor and x._trace is None and copy and dtype.kind in "biufc"
    if plain and (found := call_plain_method("astype", x, dtype)) is not None:
        return found
    tensor = as_tensor(x)
    if dtype == tensor.dtype and not copy:
        return tensor
    if dtype.kind not in "biufc" and innermost_trace(tensor) is not None:
        given = f"dtype {dtype} for a Tensor that is being differentiated or traced"
        raise GraphError("astype", given, "a numeric dtype is needed", "Call .detach() first")
    return as_0d_like(tensor, apply_astype(tensor, {"dtype": dtype}))


def astype_method(x: Tensor, dtype: Any, order: str, casting: Any, copy: bool) -> Any:
    """Return the elements converted to another dtype, as NumPy's method does."""
    if casting != "unsafe" and not np.can_cast(x.dtype, dtype, casting):
        given = f"a Tensor of dtype {x.dtype} for dtype {np.dtype(dtype)}"
        raise DtypeError("astype", given, f"a conversion by the rule {casting!r} is needed", "Pass casting='unsafe'")
    if x._trace is not None and np.dtype(dtype).kind in "iu":
        x._refuse_draws()
    result = astype(x, dtype, copy=copy)
    return lay_in_order("astype", result, order)


# Complex numbers


@implements(np.real)
def real(val: Any) -> Any:
    """Return the real part; see `numpy.real`. That of a Python number is one, as in NumPy."""
    return apply(conversion.real, val if type(val) is Tensor else as_tensor(val))


@implements(np.imag)
def imag(val: Any) -> Any:
    """Return the imaginary part; see `numpy.imag`. That of reals is read-only, as in NumPy."""
    x = val if type(val) is Tensor else as_tensor(val)
    if x.dtype.kind == "c" or is_scalar(x):
        return apply(conversion.imag, x)
    return apply(shapes.read_only, lay_like(constant_tensor(np.zeros(x.shape, x.dtype)), x, "A"))


@implements(np.angle, by="z")
def angle(z: Any, deg: bool = False) -> Any:
    """Return the angle of complex numbers; see `numpy.angle`."""
    x = as_tensor(z)
    if x.dtype.kind != "c":
        return apply(conversion.angle_of_real, x, deg=bool(deg))
    turn = apply(angles.arctan2, x.imag, x.real)
    return turn * (180 / np.pi) if deg else turn


@implements(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """Return the real part if all imaginary parts are close to zero; see `numpy.real_if_close`."""
    x = as_tensor(a)
    x = x[...] if is_scalar(x) else x  # NumPy's is an array, too
    if x.dtype.kind != "c":
        return x
    limit = np.finfo(x.dtype).eps * tol if tol > 1 else tol
    return x.real if np.all(np.absolute(x.imag) < limit) else x


# Rounding and replacing


@implements(np.round, np.around, by="")
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Return the elements rounded to decimals; see `numpy.round`."""
    return with_out("round", apply(conversion.round_, as_tensor(a), decimals=decimals), out)


@implements(np.fix, by="")
def fix(x: Any, out: Any = None) -> Any:
    """Return the elements rounded towards zero; see `numpy.fix`."""
    return with_out("fix", apply(floating_point.trunc, as_tensor(x)), out)


@implements(np.nan_to_num, by="x nan posinf neginf")
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Return the elements with NaN and infinities replaced by numbers; see `numpy.nan_to_num`."""
    tensor = as_tensor(x)
    result: Any
    if tensor.dtype.kind == "c":
        result = nan_to_num(tensor.real, True, nan, posinf, neginf) + 1j * nan_to_num(
            tensor.imag, True, nan, posinf, neginf
        )
    elif tensor.dtype.kind != "f":
        result = tensor.copy(order="K")
    elif any(type(fill) is Tensor for fill in (nan, posinf, neginf)):
        limits = np.finfo(tensor.dtype)
        result = np.where(np.isnan(tensor), nan, tensor)
        result = np.where(np.isposinf(tensor), limits.max if posinf is None else posinf, result)
        result = np.where(np.isneginf(tensor), limits.min if neginf is None else neginf, result)
    else:
        fills = apply(conversion.nan_to_num, tensor, nan=nan, posinf=posinf, neginf=neginf)
        chosen = np.where(np.isfinite(tensor), tensor, fills)  # which sends nothing back to what is replaced
        result = lay_like(chosen, tensor)
    if copy:
        return result
    written = replace("nan_to_num", tensor, result)
    return written if written.ndim else written.copy()[()]  # NumPy gives a number there


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """Return sin(pi x) / (pi x); see `numpy.sinc`."""
    return apply(trigonometric.sinc, as_tensor(x))


@implements(np.i0)
def i0(x: Any) -> Any:
    """Return the modified Bessel function of the first kind, order 0; see `numpy.i0`."""
    return apply(exponentials.i0, as_tensor(x))


@implements(np.unwrap)
def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    """Return the elements with jumps of a period taken out; see `numpy.unwrap`."""
    return apply(conversion.unwrap, as_tensor(p), discont=discont, axis=axis, period=period)


# Predicates


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Tell where elements are nearly equal; see `numpy.isclose`."""
    operands = [operand("isclose", x) for x in (a, b, rtol, atol)]
    return apply(conversion.isclose, *operands, equal_nan=bool(equal_nan))


def as_truth(found: Any) -> Any:
    """Return a truth as Python's, or as what stands for one where its element is not there, or differs by lanes."""
    return bool(found) if is_concrete(found) else weaken(found)


@implements(np.allclose, by="")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Tell whether all elements are nearly equal; see `numpy.allclose`."""
    return as_truth(np.all(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal, by="")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Tell whether two arrays have the same shape and elements; see `numpy.array_equal`."""
    return as_truth(apply(conversion.array_equal, as_tensor(a1), as_tensor(a2), equal_nan=bool(equal_nan)))


@implements(np.array_equiv, by="")
def array_equiv(a1: Any, a2: Any) -> Any:
    """Tell whether two arrays have the same elements after broadcasting; see `numpy.array_equiv`."""
    return as_truth(apply(conversion.array_equiv, as_tensor(a1), as_tensor(a2)))


def enter_predicate(function: Any, primitive: Primitive) -> None:
    """Enter a function that tells something of each element."""

    @enter_as(function, "Tell something of each element", "")
    def tell(x: Any, out: Any = None) -> Any:
        return with_out(function.__name__, apply(primitive, as_tensor(x)), out)


enter_predicate(np.isreal, conversion.isreal)
enter_predicate(np.iscomplex, conversion.iscomplex)
enter_predicate(np.isposinf, conversion.isposinf)
enter_predicate(np.isneginf, conversion.isneginf)


# Bits of bytes


@implements(np.packbits)
def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    """Return truth values as the bits of bytes; see `numpy.packbits`."""
    x, along = flat_or_axis(as_tensor(a), axis)
    return apply(conversion.packbits, x, axis=along, bitorder=bitorder)


@implements(np.unpackbits)
def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """Return the bits of bytes; see `numpy.unpackbits`."""
    x, along = flat_or_axis(as_tensor(a), axis)
    return apply(conversion.unpackbits, x, axis=along, count=count, bitorder=bitorder)


@implements(np.shape, by=NOTHING)
def shape(a: Any) -> tuple[int, ...]:
    """Return the lengths of the axes; see `numpy.shape`."""
    return as_tensor(a).shape


@implements(np.ndim, by=NOTHING)
def ndim(a: Any) -> int:
    """Return the number of axes; see `numpy.ndim`."""
    return as_tensor(a).ndim


@implements(np.size, by=NOTHING)
def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements, or of those along axes; see `numpy.size`."""
    x = as_tensor(a)
    return int(np.size(np.broadcast_to(np.zeros((), x.dtype), x.shape), axis))


def round_scalar(x: Tensor, ndigits: Any) -> Any:
    """Round as NumPy's scalars do: to a Python integer, which no gradient follows, or to a scalar; arrays do not."""
    if not is_scalar(x):
        given = f"an array of shape {x.shape}"
        raise DtypeError("round", given, "a scalar is needed, as by arrays of NumPy", "Use numpy.round")
    if ndigits is None:
        return builtins.round(concrete("round", x).item())
    if x.weak:  # Python rounds decimal digits of its numbers in its own way
        return make_tensor(builtins.round(concrete("round", x).item(), ndigits), None, None)
    return np.round(x, ndigits)


def truncate_scalar(x: Tensor) -> int:
    """Return what is before the point of a scalar, as a Python integer, which no gradient follows; arrays have none."""
    if not is_scalar(x) or x.dtype.kind not in "iuf":
        given = f"an array of shape {x.shape} and dtype {x.dtype}"
        raise DtypeError("trunc", given, "a real scalar is needed, as by arrays of NumPy", "Use numpy.trunc")
    return int(x)


def dtype_or_value(value: Any) -> Any:
    """Return the dtype of a Tensor; other values as they are."""
    return value.dtype if type(value) is Tensor else value


@implements(np.result_type, by=NOTHING)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype that an operation on the operands gives; see `numpy.result_type`."""
    return np.result_type(*map(dtype_or_value, arrays_and_dtypes))


@implements(np.can_cast, by=NOTHING)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Tell whether a dtype can be converted to another; see `numpy.can_cast`."""
    return np.can_cast(dtype_or_value(from_), to, casting)


@implements(np.common_type, by=NOTHING)
def common_type(*arrays: Any) -> Any:
    """Return a float or complex dtype that fits all arrays; see `numpy.common_type`."""
    return np.common_type(*(np.empty(0, as_tensor(x).dtype) for x in arrays))


@implements(np.min_scalar_type, by=NOTHING)
def min_scalar_type(a: Any, /) -> np.dtype[Any]:
    """Return the smallest dtype that holds a scalar; see `numpy.min_scalar_type`."""
    return np.min_scalar_type(raw(a))


@implements(np.iscomplexobj, by=NOTHING)
def iscomplexobj(x: Any) -> bool:
    """Tell whether the dtype is complex; see `numpy.iscomplexobj`."""
    return as_tensor(x).dtype.kind == "c"


@implements(np.isrealobj, by=NOTHING)
def isrealobj(x: Any) -> bool:
    """Tell whether the dtype is not complex; see `numpy.isrealobj`."""
    return not iscomplexobj(x)


def enter_query(function: Any) -> None:
    """Enter a function that only looks at the arrays under Tensors."""

    @enter_as(function, "Look at the arrays under Tensors", NOTHING)
    def look(*args: Any, **kwargs: Any) -> Any:
        return function(*map(raw, args), **kwargs)


_LOOKING: tuple[Callable[..., Any], ...] = (
    np.shares_memory,
    np.may_share_memory,
    np.array2string,
    np.array_str,
    np.isfortran,
)
for _function in _LOOKING:
    enter_query(_function)


@implements(np.array_repr, by=NOTHING)
def array_repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    """Return the printed form; see `numpy.array_repr`."""
    return repr(arr) if type(arr) is Tensor else np.array_repr(arr, *args, **kwargs)
