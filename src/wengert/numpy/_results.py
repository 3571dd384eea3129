"""What becomes of results: the memory order they lie in, and what they are written into by `out=`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_order
from wengert.core.memory.memory_layout import (
    axes_by_stride,
    example,
    is_scalar,
    strides_of,
    ways_of,
    with_axes_in_memory,
)
from wengert.core.memory.possible_aliases import part_of
from wengert.core.memory.views import base_and_path, undecided_text
from wengert.core.memory.write_watches import note_write, rebind_handle
from wengert.core.values.dispatch import apply, as_tensor, implements
from wengert.core.values.plain_functions import call_plain_method
from wengert.core.values.tensor import Tensor, innermost_trace, is_concrete, raw
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.primitives import conversion
from wengert.primitives.masked import Masked, is_selection
from wengert.support.records import NamedTuple
from wengert.support.refusals import refusal
from wengert.traces.eager import eager
from wengert.traces.eager_indexing import write_through

TARGETS = (Tensor, np.ndarray)


def fill_out(result: Any, out: Any) -> Any:
    """Return the result of a ufunc in the shape of `out=`, which takes part in broadcasting."""
    target = out[0] if isinstance(out, tuple) else out
    shape = None if target is None else np.shape(target)
    if shape is None or shape == result.shape:
        return result
    try:
        fits = np.broadcast_shapes(shape, result.shape) == shape
    except ValueError:  # which is told when it is to be written
        fits = False
    return np.broadcast_to(result, shape) if fits else result


DEFAULTS: dict[str, Any] = {"casting": "same_kind", "order": "K", "subok": True, "signature": None}


def refuse_options(name: str, options: Mapping[str, Any], supported: str) -> None:
    """Raise a UsageError for options of a ufunc that are not at their defaults."""
    unknown = sorted(key for key, value in options.items() if key not in DEFAULTS or DEFAULTS[key] != value)
    if unknown:
        raise UsageError(name, f"options {unknown}", f"{supported} alone are supported", "Leave them out")


class OutRule(NamedTuple):
    """Which dtypes of `out=` a function of NumPy takes for a result of a dtype, and what an error says of it."""

    takes: Callable[[np.dtype[Any], np.dtype[Any]], bool]
    needed: str


WITHIN_KIND = OutRule(
    lambda result, out: np.can_cast(result, out, "same_kind"), "a dtype that casts within its kind is needed"
)
HOLDS_RESULT = OutRule(
    lambda result, out: np.can_cast(result, out, "safe"), "a dtype that has room for every result is needed"
)
FITS_RESULT = OutRule(
    lambda result, out: np.can_cast(result, out, "same_kind") and np.can_cast(out, result, "safe"),
    "a dtype of its kind, and no larger one, is needed, because NumPy casts out= to it and back",
)
SAME = OutRule(lambda result, out: result == out, "the same dtype is needed")


def with_out(name: str, result: Any, out: Any, where: Any = True, rule: OutRule = WITHIN_KIND) -> Tensor:
    """Return a result, or write it into `out` where `where` holds; that goes back to the caller as it is."""
    found: Tensor = result
    if writes_to_out(name, out, where):
        found = writer(name, result, out[0] if isinstance(out, tuple) else out, where, rule)()
    return found


def with_outs(name: str, results: Sequence[Any], out: Any, where: Any = True) -> Any:
    """Return several results, or write them into the arrays of `out`; None, and arrays left out, stand for new ones."""
    if not writes_to_out(name, out, where):
        return results
    targets = zip_longest(results, out if isinstance(out, tuple) else (out,))
    writing = [partial(lambda r: r, r) if o is None else writer(name, fill_out(r, o), o, where) for r, o in targets]
    return tuple([write() for write in writing])


def writes_to_out(name: str, out: Any, where: Any) -> bool:
    """Tell whether `out=` says where to write; `where=` needs it."""
    if out is None or (isinstance(out, tuple) and all(target is None for target in out)):
        if where is not True:
            needed = "out= is needed, because the other elements would be uninitialised"
            raise UsageError(name, "where= without out=", needed, "Pass out=, or use wengert.numpy.where")
        return False
    return True


def dtype_within(x: Any, dtype: Any, out: Any) -> Any:
    """Return the dtype in which NumPy reduces and accumulates: `out=` takes part as an operand does."""
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    return np.promote_types(x.dtype, target.dtype) if dtype is None and isinstance(target, TARGETS) else dtype


def writer(name: str, result: Any, out: Any, where: Any, rule: OutRule = WITHIN_KIND) -> Callable[[], Any]:
    """Return how to write a result into the Tensor given as `out=`, or into an ndarray if it is numbers and no more.

    What is refused is refused here, before anything is written.
    """
    if isinstance(out, bool):
        raise DtypeError(name, f"out={out}", "a Tensor is needed", f"Write keepdims={out}, if that is meant")
    if isinstance(out, np.ndarray) and innermost_trace(result) is None and innermost_trace(where) is None:
        require_fit(name, result, out, rule)
        numbers = result.numpy() if type(result) is Tensor else result
        return partial(copy_numbers, out, numbers, where if where is True else np.asarray(where))
    if type(out) is not Tensor:
        reason, otherwise = "holds numbers", ""
        if is_concrete(result):
            reason, otherwise = "would lose the gradient", ", or call .detach().numpy() on the operands"
        given = f"a result that is a Tensor, to be written (by out= or in place) into type {type(out).__name__}"
        needed = f"a Tensor is needed, because an ndarray {reason}"
        action = f"Write x = x + y for x += y, or make the array with wengert.numpy{otherwise}"
        error = refusal(DtypeError(name, given, needed, action))
        error.writes = True
        raise error
    result = as_tensor(result if where is True else np.where(where, result, out))
    require_fit(name, result, out, rule)
    return partial(replace, name, out, result)


def copy_numbers(target: np.ndarray[Any, Any], numbers: Any, where: Any) -> Any:
    """Write numbers into an ndarray, as NumPy does: a mask, say, which nothing is differentiated by."""
    np.copyto(target, numbers, where=where)
    return target


def require_fit(name: str, result: Any, target: Any, rule: OutRule = WITHIN_KIND) -> None:
    """Raise unless a result has the shape of the target of a write, and a dtype that NumPy writes there."""
    kind = "a Tensor" if type(target) is Tensor else "an ndarray"
    is_masked = type(target) is Tensor and type(target._trace) is Masked  # nobody knows its shape
    if not is_masked and result.shape != target.shape:
        given = f"a result of shape {result.shape} for {kind} of shape {target.shape}"
        needed = "the same shape is needed to write in place"
        raise ShapeError(name, given, needed, "Use the operation that makes a new Tensor")
    before, after = result.dtype, target.dtype
    if before is not after and not rule.takes(before, after):
        given = f"a result of dtype {before} for {kind} of dtype {after}"
        needed = f"{rule.needed} to write in place"
        raise DtypeError(name, given, needed, f"Convert the {kind.split()[1]} with .astype first")


def require_c_order(name: str, target: Any) -> None:
    """Raise if the target of a write is an array that lies in memory, or may lie there, in another order than C."""
    memories = [target] if isinstance(target, np.ndarray) else layout_examples(target) if type(target) is Tensor else []
    if not all(memory.flags.c_contiguous for memory in memories):
        given = "an array as out= that does not lie in C order"
        raise UsageError(name, given, "one that does is needed", "Assign the result to a part of it: y[...] = ...")


def replace(name: str, target: Tensor, result: Any) -> Tensor:
    """Let a Tensor hold a result of its own shape, cast to its dtype as NumPy's in-place operations do."""
    found = as_tensor(result)
    require_fit(name, found, target)
    if found.dtype != target.dtype:
        found = found.astype(target.dtype)
    if type(target._trace) is Masked:
        note_write(target)
        rebind_handle(target, found)
    else:
        write_through(target, found)
    return target


apply_copy = eager(conversion.copy)


def drop_zero_imaginary(given: Any, *results: Any) -> tuple[Any, ...]:
    """Return complex results as real ones where the operand and all eigenvalues, which come first, are real."""
    if given.dtype.kind == "c" or np.any(raw(results[0]).imag != 0):
        return results
    return tuple([x.real for x in results])


def layout_examples(x: Tensor) -> list[Any]:
    """Return an array for each way in which a Tensor (one lane of it, in a batch) may lie in memory, for its flags."""
    return [np.asarray(example(x.shape, way, x.dtype)) for way in ways_of(strides_of(x))]


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """Return a copy, as an array; see `numpy.copy`."""
    if type(a) is Tensor and a._trace is None and (found := call_plain_method("copy", a, order)) is not None:
        return found
    x = as_tensor(a)
    return x[...] if is_scalar(x) else copy_method(x, order)


def copy_method(x: Tensor, order: str) -> Any:
    """Return a copy: of a scalar a scalar, of an array without axes an array."""
    if x._trace is None and (found := call_plain_method("copy", x, order)) is not None:
        return found
    return as_0d_like(x, apply_copy(x, {"order": order}))


def as_0d_like(x: Tensor, result: Tensor) -> Tensor:
    """Return a scalar newly computed from an array without axes, which may be held as one, as such an array."""
    trace = result._trace
    if isinstance(result._value, np.generic) and (trace is None or trace.fast):
        if hasattr(x, "_array"):
            result._array = ()
        return result
    return result[...] if not x.ndim and is_scalar(result) and not is_scalar(x) else result


def lay_in_order(name: str, x: Tensor, order: Any) -> Tensor:
    """Return a value in some order: itself where it lies so, else a copy.

    Where traced values decide which of the two it is, a write to either loses the other.
    """
    wanted: Any = as_order(order, "K")
    if wanted not in ("C", "F"):
        return x
    flags = [memory.flags for memory in layout_examples(x)]
    lies = [one.c_contiguous if wanted == "C" else one.f_contiguous for one in flags]
    if all(lies):
        return x
    copied = copy(x, wanted)
    if any(lies):
        part_of(base_and_path(x)[0], copied, None, undecided_text(name))
    return copied


def lay_like(result: Any, x: Tensor, order: str = "K") -> Any:
    """Return a result of this library's making in memory that lies as `empty_like` of another Tensor would."""
    if is_selection(x):  # of which nobody knows how it lies
        return result
    made = [np.empty_like(memory, order=order, shape=result.shape) for memory in layout_examples(x)]  # type: ignore[call-overload]  # the stub wants literals
    axes = {tuple(axes_by_stride(memory.strides)) for memory in made}
    if len(axes) == 1:
        return with_axes_in_memory(result, axes.pop())
    return apply(conversion.laid_as, result, apply(conversion.barrier, x), order=order)
