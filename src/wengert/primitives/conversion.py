"""Conversions: copies, barriers, dtypes, real and imaginary parts, rounding, predicates, evenly spaced numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import lead
from wengert.core.forms.element_maps import broadcast_maps
from wengert.core.forms.form import Form, Params, Pointwise
from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import Region, View
from wengert.core.maps.box_maps import BoxMap
from wengert.core.primitives.cotangent import match_dtype, unbroadcast
from wengert.core.primitives.declare import constant, elementwise, linear, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.python_numbers import LARGEST
from wengert.errors import RangeError, UsageError
from wengert.primitives import rewrites
from wengert.primitives.floating_point import is_finite, is_nan, of_floats


def convert(x: Any, *, dtype: Any) -> Any:
    """Evaluate `astype`, always into memory of its own."""
    return x.astype(dtype) if isinstance(x, np.ndarray | np.generic) else np.asarray(x).astype(dtype)[()]


def duplicate(x: Any, *, order: Any = "K") -> Any:
    """Evaluate `copy`."""
    return x.copy(order) if isinstance(x, np.ndarray) else x


def duplicate_as(x: Any, pattern: Any, *, order: str) -> Any:
    """Evaluate `laid_as`: a copy that lies in memory as `numpy.empty_like` of a pattern would."""
    made = np.empty_like(pattern, np.asarray(x).dtype, order, shape=np.shape(x))  # type: ignore[call-overload]  # the stub wants literals
    made[...] = x
    return made


def to_whole(x: Any) -> Any:
    """Evaluate `int` of scalars: what has no room in 64 bits is refused, where Python's integers have any size."""
    found = np.trunc(x)
    if found.dtype.kind not in "bi" and not np.all(abs(found) < LARGEST):
        needed = "a whole number of 64 bits is needed where values are traced"
        if np.any(np.isnan(found)):  # a ValueError, as Python's
            raise UsageError("int", "NaN", needed, "Look for NaN before, or use numpy.floor")
        given = "a number that is not finite, or has more than 64 bits"
        raise RangeError("int", given, needed, "Convert it before, or use numpy.floor")
    return found.astype(np.int64)


def whole_at(x: Any) -> Any:
    """Return `int` of a number; the least there is where it has no room, which those who use it tell."""
    return (np.minimum(x, LARGEST) if x.dtype == np.uint64 else x).astype(np.int64)


def transpose_imaginary(ct: Any, aval: Aval) -> Any:
    """Return -i ct: the imaginary part is the real part of -i z."""
    return ct * np.asarray(-1j, dtype=aval.dtype) if aval.dtype.kind == "c" else np.zeros(aval.shape, aval.dtype)


astype = linear(
    "astype",
    convert,
    transpose=lambda ct, aval, dtype: match_dtype(ct, aval.dtype),
    scales=(0,),
    form=Pointwise(),
    scalar="copy",
    rewrites=(rewrites.drop_identity,),
)
copy = linear(
    "copy",
    duplicate,
    transpose=lambda ct, _aval, order="K": ct,
    scales=(0,),
    form=Pointwise(),
    scalar="copy",
    parts="each",
    rewrites=(rewrites.drop_identity,),
)


class Relaid(Form):
    """The elements of operand 0 in another memory order."""

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Leave all where they are; what lies in that order already says nothing about the result."""
        return [] if position else broadcast_maps(out.shape, out.shape)


laid_as = linear(
    "laid_as",
    duplicate_as,
    transpose=lambda ct, _aval, _pattern, order: ct,
    batch=lambda _primitive, size, operands, batched, _params: np.copy(lead(operands[0], batched[0], size)),
    form=Relaid(),
)
number = linear(
    "number",
    lambda x: x.item() if isinstance(x, np.ndarray | np.generic) else x,
    transpose=lambda ct, aval: match_dtype(ct, aval.dtype),
    form=Pointwise(),
    batch=lambda _primitive, _size, operands, *_: operands[0],  # numbers that differ between lanes are an array
    scalar="copy",
    parts="each",
    gives_number=True,
    whole_bits=62,
    rewrites=(rewrites.drop_identity,),
)
real = linear(
    "real",
    np.real,
    transpose=lambda ct, aval: ct.astype(aval.dtype),
    view=True,
    form=View(),
    scalar="copy",
    operator=operator.attrgetter("real"),
    rewrites=(rewrites.drop_identity_of_reals,),
)
# z + i v has the cotangent of v i ct, whose real part is minus the imaginary part of ct
imag = linear(
    "imag",
    np.imag,
    transpose=transpose_imaginary,
    view=True,
    form=View(),
    negates=True,
    operator=operator.attrgetter("imag"),
)


# Rounding and replacing


MOST_DECIMALS = 22
"""Up to which powers of ten are exact."""


def round_at(x: Any, *, decimals: int) -> Any:
    """Return a value rounded to decimals, in NumPy's steps; whole numbers have none."""
    if x.dtype.kind in "biu":
        return x if decimals >= 0 else None
    if abs(decimals) > MOST_DECIMALS:
        return None
    power = 10.0 ** abs(decimals)
    if decimals < 0:
        return np.rint(x / power) * power
    return np.rint(x * power) / power if decimals else np.rint(x)


# what has no room, in 64 bits or the dtype, is refused whether or not it is used
whole = constant("whole", to_whole, form=Pointwise(), scalar=whole_at, loop=(0,), must_run=True)
fitted = constant("fitted", lambda x, *, dtype: np.asarray(x, dtype)[()], form=Pointwise(), firm=False, must_run=True)
round_ = constant("round", np.round, form=Pointwise(), scalar=round_at)


def nan_to_num_at(x: Any, *, nan: float, posinf: float | None, neginf: float | None) -> Any:
    """Return numbers for NaN and infinities."""
    limits = np.finfo(x.dtype)
    low = float(limits.min) if neginf is None else neginf
    high = float(limits.max) if posinf is None else posinf
    return np.where(is_nan(x), nan, np.where(x == math.inf, high, np.where(x == -math.inf, low, x)))


nan_to_num = constant(
    "nan_to_num", np.nan_to_num, form=Pointwise(), scalar=nan_to_num_at, kink="Elements that are replaced get 0."
)  # of elements that are replaced
unwrap = opaque(
    "unwrap",
    np.unwrap,
    vjp=lambda ct, _out, _p, **_options: ct,
    jvp=lambda tangents, _out, _p, **_options: tangents[0],
    form=Routine("(n)->(n)", "axis"),
)
angle_of_real = constant(
    "angle", np.angle, form=Pointwise(), scalar=lambda x, *, deg: np.arctan2(0, x) * (180 / math.pi if deg else 1.0)
)


# Predicates


def isclose_at(x: Any, y: Any, rtol: Any, atol: Any, *, equal_nan: bool) -> Any:
    """Tell whether two values are nearly equal; whole numbers as floats, which NumPy makes of the second."""
    x, y, rtol, atol = (value.astype(np.result_type(x.dtype, y.dtype, 1.0)) for value in (x, y, rtol, atol))
    size = np.absolute(y)
    near = (np.absolute(x - y) <= atol + rtol * size) & is_finite(y) | (x == y)
    return near | is_nan(x) & is_nan(y) if equal_nan else near


isclose = constant("isclose", np.isclose, form=Pointwise(), scalar=isclose_at, loop=range(4))
array_equal = constant("array_equal", np.array_equal)
array_equiv = constant("array_equiv", np.array_equiv)
isreal = constant(
    "isreal",
    np.isreal,
    form=Pointwise(),
    scalar=lambda x: np.full_like(x, True, bool),
    parts=lambda x: x[1] == 0,
    loop=range(1),
)
iscomplex = constant(
    "iscomplex",
    np.iscomplex,
    form=Pointwise(),
    scalar=lambda x: np.full_like(x, False, bool),
    parts=lambda x: x[1] != 0,
    loop=range(1),
)
isposinf = constant("isposinf", np.isposinf, form=Pointwise(), scalar=of_floats(lambda x: x == math.inf), loop=range(1))
isneginf = constant(
    "isneginf", np.isneginf, form=Pointwise(), scalar=of_floats(lambda x: x == -math.inf), loop=range(1)
)


# Creation from Tensors


def space_evenly(start: Any, stop: Any, *, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """Evaluate `linspace`."""
    return np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype, axis=axis)


def fractions(num: int, endpoint: bool, ct: Any, axis: int) -> Any:
    """Return how far along each of the evenly spaced numbers lies, from 0 to 1, shaped to multiply `ct`."""
    steps = num - 1 if endpoint else num
    along = np.arange(num, dtype=np.result_type(ct.real.dtype, np.float32)) / max(steps, 1)
    shape = [1] * ct.ndim
    shape[axis] = num
    return along.reshape(shape)


def transpose_start(ct: Any, aval: Aval, *, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """Sum the cotangents weighted by how near the start they lie."""
    weighted = ct * (1 - fractions(num, endpoint, ct, axis))
    return match_dtype(unbroadcast(weighted.sum(axis=axis), aval.shape), aval.dtype)


def transpose_stop(ct: Any, aval: Aval, *, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """Sum the cotangents weighted by how near the stop they lie."""
    weighted = ct * fractions(num, endpoint, ct, axis)
    return match_dtype(unbroadcast(weighted.sum(axis=axis), aval.shape), aval.dtype)


def space_evenly_at(start: Any, stop: Any, *, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """Return evenly spaced numbers in a kernel, in NumPy's steps: a step of 0, which some may be, is a product less."""
    if dtype is not None and np.dtype(dtype).kind != "f":
        return None
    rank = len(np.broadcast_shapes(start.shape, stop.shape))
    axis %= rank + 1
    first, last = (np.expand_dims(np.expand_dims(x, range(rank - len(x.shape))), (axis,)) for x in (start, stop))
    place: Any = np.expand_dims(np.arange(num, like=start), [k for k in range(rank + 1) if k != axis])
    along, delta, count = place.astype(first.dtype), last - first, num - 1 if endpoint else num
    if count == 0:
        return along * delta + first
    step = delta / count
    still = np.any(step == 0, axis=tuple(range(rank + 1)), keepdims=True)
    found = np.where(still, along / count * delta, along * step) + first
    return np.where(place == num - 1, last, found) if endpoint else found


linspace = linear(
    "linspace",
    space_evenly,
    transpose=(transpose_start, transpose_stop),
    scalar=space_evenly_at,
    form=Routine("(),()->(n)", "axis"),
    firm=False,
)


# Bits of bytes

packbits = constant("packbits", np.packbits, form=Routine("(n)->(m)", "axis"))
unpackbits = constant("unpackbits", np.unpackbits, form=Routine("(n)->(m)", "axis"))


# Barriers: values pass, derivatives do not


def own_copy(x: Any) -> Any:
    """Return a value in memory of its own, which lies as it does."""
    return x.copy(order="K") if isinstance(x, np.ndarray) else x


barrier = constant("stop_gradient", own_copy, form=Pointwise(), scalar="copy", parts="each")

stand_in = constant("stand_in", own_copy, form=Pointwise(), scalar="copy", parts="each")
"""What stands where nobody reads results, such as in lanes that take another branch; for linearity it is as zeros."""


def replace_value(old: Any, new: Any) -> Any:
    """Return the second value in memory of its own, for every lane that the first has."""
    lanes = np.shape(old) != np.shape(new)
    return own_copy(np.broadcast_to(new, np.broadcast_shapes(np.shape(old), np.shape(new))) if lanes else new)


overwritten = elementwise(
    "overwritten", replace_value, d=(lambda t, _out, _old, _new: t, None), scalar=lambda _old, new: new, parts="each"
)
"""The second value with the derivatives of the first: what a write under `no_grad` leaves, as in PyTorch, and what is
known better than by what it moves with. Code does not compute the first for its sake (`drop_barriers`)."""


# Errors of the user's program that a traced value decides about: raised when the graph runs


def require_none(failed: Any, *, error: Exception) -> Any:
    """Raise an error where a truth says so, or one of those of all lanes."""
    if np.any(failed):
        raise error.with_traceback(None)
    return failed


raised = constant(
    "raised",
    require_none,
    form=Region(lambda inputs, _params: [aval_of(inputs[0])]),
    batch=lambda primitive, _size, operands, _batched, params: apply(primitive, operands[0], **params),
    must_run=True,
)
