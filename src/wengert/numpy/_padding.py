"""Arrays with borders: NumPy's `pad`, whose modes are compositions of joins, reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.values.dispatch import apply, implements, with_dtype
from wengert.core.values.tensor import Tensor, constant_tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.numpy._joining import concatenate, pick
from wengert.numpy._results import lay_like
from wengert.numpy._shapes import array_operand, slice_axis
from wengert.primitives import shapes
from wengert.traces.eager import eager

Pair = tuple[Any, Any]

OPTIONS: dict[str, str | None] = {
    "constant": "constant_values",
    "edge": None,
    "empty": None,
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": None,
}

STATISTICS: dict[str, Callable[..., Any]] = {"maximum": np.max, "mean": np.mean, "median": np.median, "minimum": np.min}

apply_pad = eager(shapes.pad)


@implements(np.pad, by="array kwargs")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Return an array extended on all sides; see `numpy.pad`.

    The mode "empty" gives zeros. A function as the mode is refused, as it would write into ndarrays.
    """
    x = array_operand("pad", array)
    if type(pad_width) is int and pad_width >= 0 and mode == "constant" and not kwargs:
        return apply_pad(x, {"widths": ((pad_width, pad_width),) * x.ndim})
    return lay_like(pad_by_mode(x, pad_width, mode, kwargs), x, "A")


def pad_by_mode(x: Any, pad_width: Any, mode: Any, kwargs: dict[str, Any]) -> Any:
    """Return an array extended on all sides, in any memory order."""
    option = mode_option(mode, kwargs)
    widths = width_pairs(pad_width, x.ndim)
    if mode == "empty":
        return apply(shapes.pad, x, widths=widths)
    if mode == "constant":
        return pad_constant(x, widths, 0 if option is None else option)
    check_extensible(x, widths, mode)
    if not x.size:
        return apply(shapes.pad, x, widths=widths)
    if mode in ("edge", "wrap") or (mode in ("reflect", "symmetric") and option in (None, "even")):
        return extend_axes(x, widths, lambda y, axis, pair: pad_gathered(y, axis, pair, mode))
    if mode in ("reflect", "symmetric"):
        return extend_axes(x, widths, lambda y, axis, pair: pad_odd(y, axis, pair, mode))
    options = pairs(option, x.ndim) if mode == "linear_ramp" else length_pairs(option, x.ndim, mode)
    if mode == "linear_ramp":
        return extend_axes(x, widths, lambda y, axis, pair: pad_ramp(y, axis, pair, options[axis]))
    return extend_axes(x, widths, lambda y, axis, pair: pad_statistic(y, axis, pair, options[axis], mode))


def extend_axes(x: Any, widths: Sequence[Pair], extend: Callable[[Any, int, Pair], Any]) -> Any:
    """Extend one axis after the other, where there is anything to add."""
    extended = x
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            extended = extend(extended, axis, pair)
    return np.copy(x) if extended is x else extended


def mode_option(mode: Any, given: dict[str, Any]) -> Any:
    """Return the option that belongs to a mode, None if it was not given."""
    if not isinstance(mode, str) or mode not in OPTIONS:
        needed = f"one of {', '.join(OPTIONS)} is needed"
        action = "Build another padding with numpy.concatenate"
        raise UsageError("pad", f"mode {mode!r}" if isinstance(mode, str) else "a function as mode", needed, action)
    unknown = set(given) - {OPTIONS[mode]}
    if unknown:
        needed = f"{OPTIONS[mode]} alone is allowed" if OPTIONS[mode] else "none is allowed"
        raise UsageError("pad", f"the options {sorted(unknown)} for mode {mode!r}", needed, "Leave them out")
    return given.get(OPTIONS[mode] or "")


def pairs(values: Any, ndim: int) -> Sequence[Pair]:
    """Return values, which may be Tensors, as one pair for each axis."""
    if values is None:
        values = 0
    given = array_operand("pad", values)
    if given._trace is None:
        given = np.asarray(given)
    if given.size == 1 or (given.size == 2 and given.ndim < 3 and given.shape != (2, 1)):
        flat = np.ravel(given)
        return ((flat[0], flat[-1]),) * ndim
    pairs = np.broadcast_to(given, (ndim, 2))
    if isinstance(pairs, np.ndarray):
        return tuple((left, right) for left, right in pairs.tolist())
    return tuple((row[0], row[1]) for row in pairs)


def width_pairs(pad_width: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """Return the numbers of elements to add before and after along each axis."""
    if isinstance(pad_width, dict):
        chosen: list[Any] = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            chosen[axis] = (width, width) if np.ndim(width) == 0 else tuple(width)
        pad_width = chosen
    widths = np.asarray(pad_width)
    if widths.dtype.kind != "i" and widths.size:
        raise DtypeError("pad", f"pad_width of dtype {widths.dtype}", "whole numbers are needed", "Convert them to int")
    return whole_pairs("pad_width", widths, ndim)


def whole_pairs(name: str, values: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """Return numbers from 0 as one pair for each axis."""
    found = tuple((int(left), int(right)) for left, right in pairs(values, ndim))
    if np.any(np.less(values, 0)):
        raise UsageError("pad", f"a negative {name}", "numbers from 0 are needed", "Use slices to remove")
    return found


def length_pairs(lengths: Any, ndim: int, mode: str) -> Sequence[Pair]:
    """Return the numbers of elements that statistics are taken of; None for all."""
    if lengths is None:
        return ((None, None),) * ndim
    found = whole_pairs("stat_length", np.round(lengths), ndim)
    if mode in ("maximum", "minimum") and not np.all(found):
        given = f"stat_length 0 for mode {mode!r}"
        raise UsageError("pad", given, "elements are needed", "Pass a positive stat_length")
    return found


def check_extensible(x: Tensor, widths: Sequence[Pair], mode: str) -> None:
    """Raise a ShapeError if an empty axis is to be extended by its own elements."""
    for axis, (length, pair) in enumerate(zip(x.shape, widths, strict=True)):
        if length == 0 and any(pair):
            given = f"an empty axis {axis} with mode {mode!r}"
            raise ShapeError("pad", given, "elements are needed", 'Use the mode "constant"')


def pad_constant(x: Tensor, widths: tuple[tuple[int, int], ...], values: Any) -> Any:
    """Extend by constants: later axes decide in the corners."""
    chosen = pairs(values, x.ndim)
    if any(type(value) is Tensor for pair in chosen for value in pair):
        return extend_axes(x, widths, lambda y, axis, pair: pad_filled(y, axis, pair, chosen[axis]))
    if not np.any(chosen):
        return apply(shapes.pad, x, widths=widths)
    frame = np.pad(np.zeros(x.shape, x.dtype), widths, constant_values=np.asarray(values))
    result = constant_tensor(frame)
    result[shapes.inside_padding(widths, x.shape)] = x
    return result


def pad_filled(x: Any, axis: int, widths: Pair, values: Pair) -> Any:
    """Extend along an axis by two values of length one there, or 0-d, either of which may be a Tensor."""
    left, right = (
        np.broadcast_to(
            with_dtype(array_operand("pad", value), x.dtype, True), (*x.shape[:axis], width, *x.shape[axis + 1 :])
        )
        for value, width in zip(values, widths, strict=True)
    )
    return concatenate([left, x, right], axis)


def pad_gathered(x: Any, axis: int, widths: Pair, mode: Any) -> Any:
    """Extend along an axis by its own elements, in the order in which NumPy extends a range of numbers."""
    return pick(x, np.pad(np.arange(x.shape[axis]), widths, mode=mode), axis)


def pad_odd(x: Any, axis: int, widths: Pair, mode: str) -> Any:
    """Extend along an axis by point reflection at its ends, several times where the pads are longer than it."""
    period = x.shape[axis]
    if period == 1:
        return pad_gathered(x, axis, widths, "edge")
    left, right = widths
    shared = 0 if mode == "symmetric" else 1  # whether the edge is an element of both sides, or repeated
    while left or right:
        length = x.shape[axis]
        most = (length - shared) // (period - shared) * (period - shared)
        first, last = min(most, left), min(most, right)
        head = slice_axis(x, axis, shared, shared + first)
        tail = slice_axis(x, axis, length - shared - last, length - shared)
        parts = [
            2 * slice_axis(x, axis, 0, 1) - np.flip(head, axis),
            x,
            2 * slice_axis(x, axis, length - 1, length) - np.flip(tail, axis),
        ]
        x = concatenate(parts, axis, dtype=x.dtype, casting="unsafe")
        left, right = left - first, right - last
    return x


def pad_ramp(x: Any, axis: int, widths: Pair, ends: Pair) -> Any:
    """Extend along an axis by straight lines from the end values to the edges."""
    before = (slice(None),) * axis
    ramps = [
        np.linspace(end, x[(*before, edge)], width, endpoint=False, dtype=x.dtype, axis=axis)
        for end, edge, width in zip(ends, (0, x.shape[axis] - 1), widths, strict=True)
    ]
    return concatenate([ramps[0], x, np.flip(ramps[1], axis)], axis)


def pad_statistic(x: Any, axis: int, widths: Pair, lengths: Pair, mode: str) -> Any:
    """Extend along an axis by a statistic of the elements near each edge."""
    length = x.shape[axis]
    first, last = (length if n is None else min(n, length) for n in lengths)
    left = statistic(slice_axis(x, axis, 0, first), axis, mode)
    right = left if first == last == length else statistic(slice_axis(x, axis, length - last, length), axis, mode)
    return pad_filled(x, axis, widths, (left, right))


def statistic(x: Any, axis: int, mode: str) -> Any:
    """Return a statistic along an axis, rounded for whole numbers."""
    value = STATISTICS[mode](x, axis=axis, keepdims=True)
    return np.rint(value) if x.dtype.kind in "iu" else value
