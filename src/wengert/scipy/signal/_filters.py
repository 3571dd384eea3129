"""Filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import as_whole, elements, require_real
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.primitives.accumulations import feedback
from wengert.scipy.ndimage import convolve1d
from wengert.scipy.ndimage._filters import correlate_rows
from wengert.scipy.signal._convolution import convolve


def coefficient_row(name: str, what: str, value: Any) -> Any:
    """Return coefficients of a filter."""
    x: Any = np.atleast_1d(as_tensor(value))
    if x.ndim != 1 or not len(x):
        raise ShapeError(name, f"{what} of shape {x.shape}", "coefficients in one row are needed", "Reshape")
    return x


def require_first(name: str, what: str, coefficients: Any) -> None:
    """Raise a UsageError if the first coefficient of a filter is known to be 0."""
    known = elements(coefficients)
    if known is not None and not known[0]:
        needed = "another first coefficient is needed"
        raise UsageError(name, f"{what} that begins with 0", needed, "Leave leading zeros out")


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Return a signal after a linear filter; see `scipy.signal.lfilter`.

    Args:
        b: coefficients of the numerator.
        a: coefficients of the denominator, the first of which is not 0.
        x: the signal.
        axis: the axis of time.
        zi: the state before, one less than there are coefficients along the axis; zeros, and no state is returned, if
            it is not given.

    Returns:
        The signal, or a pair of it and the state after.

    Raises:
        ShapeError: the coefficients are no rows.

    >>> lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0])
    tensor([1.  , 0.5 , 0.25])
    """
    top, bottom = coefficient_row("lfilter", "b", b), coefficient_row("lfilter", "a", a)
    signal: Any = as_tensor(x)
    at = normalize_axis_index(axis, signal.ndim)
    count = max(len(top), len(bottom))
    kinds = [z.dtype for z in (top, bottom, signal)] + ([] if zi is None else [as_tensor(zi).dtype])
    kind = np.result_type(*kinds)
    kind = kind if kind.kind in "fc" else np.dtype(float)
    top, bottom, signal = (z.astype(kind) for z in (pad_zeros(top, count), pad_zeros(bottom, count), signal))
    signal = np.moveaxis(signal, at, -1)
    length = signal.shape[-1]
    driven = sum_of_delays(top, signal)
    if zi is not None:
        state: Any = as_tensor(zi)
        state = np.moveaxis(state, at, -1) * bottom[0]
        state = np.broadcast_to(state, (*signal.shape[:-1], count - 1))
        driven = driven + np.concatenate([state, np.zeros(signal.shape, kind)], axis=-1)
    found = apply(feedback, bottom, driven[..., :length])
    if zi is None:
        return np.moveaxis(found, -1, at)
    after = (driven - sum_of_delays(bottom, found))[..., length:] / bottom[0]
    return np.moveaxis(found, -1, at), np.moveaxis(after, -1, at)


def pad_zeros(x: Any, count: int) -> Any:
    """Return rows along the last axis with zeros at their ends, as long as they are to be."""
    more = count - x.shape[-1]
    return np.concatenate([x, np.zeros((*x.shape[:-1], more), x.dtype)], axis=-1) if more else x


def sum_of_delays(c: Any, x: Any) -> Any:
    """Return the sums over k of c[k] x[n - k] along the last axis, for all n where they are not zero."""
    return correlate_rows(x, np.flip(c))


def lfilter_zi(b: Any, a: Any) -> Any:
    """Return the state of a filter in which a signal of ones stays; see `scipy.signal.lfilter_zi`.

    Args:
        b: coefficients of the numerator.
        a: coefficients of the denominator.

    Raises:
        ShapeError: the coefficients are no rows.

    >>> lfilter_zi([1.0], [1.0, -0.5])
    tensor([1.])
    """
    top, bottom = coefficient_row("lfilter_zi", "b", b), coefficient_row("lfilter_zi", "a", a)
    require_first("lfilter_zi", "a", bottom)
    count = max(len(top), len(bottom))
    top, bottom = (pad_zeros(c / bottom[0], count) for c in (top, bottom))
    rest = top[1:] - bottom[1:] * top[0]
    first = np.sum(rest) / np.sum(bottom)
    return np.cumsum(bottom)[:-1] * first - (np.cumsum(rest) - rest)


def filtfilt(b: Any, a: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None) -> Any:
    """Return a signal after a filter that runs forwards and then backwards; see `scipy.signal.filtfilt`.

    Args:
        b: coefficients of the numerator.
        a: coefficients of the denominator.
        x: the signal.
        axis: the axis of time.
        padtype: how the signal goes on beyond its ends: "odd", "even", "constant" or None.
        padlen: how far; three times the number of coefficients if it is not given.

    Raises:
        ShapeError: the signal is shorter.
        UsageError: the kind of padding is unknown.

    >>> filtfilt([1.0], [2.0], [1.0, 2.0], padtype=None)
    tensor([0.25, 0.5 ])
    """
    top, bottom = coefficient_row("filtfilt", "b", b), coefficient_row("filtfilt", "a", a)
    wanted = 0 if padtype is None else 3 * max(len(top), len(bottom)) if padlen is None else padlen
    wanted = as_whole("filtfilt", "padlen", wanted, 0)
    ends, edge = extend_signal("filtfilt", x, axis, padtype, wanted)
    state = lfilter_zi(top, bottom)
    return run_both_ways(lambda y, start: lfilter(top, bottom, y, zi=state * start)[0], ends, edge, axis)


def run_both_ways(run: Callable[[Any, Any], Any], x: Any, edge: int, axis: int) -> Any:
    """Return a signal, time along the last axis, after a filter runs forwards and backwards from its first element."""
    for _ in range(2):
        x = np.flip(run(x, x[..., :1]), -1)
    return np.moveaxis(x[..., edge : x.shape[-1] - edge], -1, axis)


def extend_signal(name: str, x: Any, axis: int, padtype: str | None, edge: int) -> tuple[Any, int]:
    """Return a signal with time along the last axis that goes on beyond its ends, and how far."""
    signal: Any = as_tensor(x)
    signal = np.moveaxis(signal, axis, -1)
    if signal.shape[-1] <= edge:
        given = f"{signal.shape[-1]} elements along the axis, to be continued by {edge}"
        raise ShapeError(name, given, "more are needed", "Pass another padlen")
    if edge and padtype not in ("odd", "even", "constant", None):
        raise UsageError(name, f"padtype={padtype!r}", "'odd', 'even', 'constant' or None is needed", "Correct it")
    return extend_ends(signal, edge, padtype), edge


def extend_ends(x: Any, count: int, how: str | None) -> Any:
    """Return signals along the last axis that go on by so many elements at both ends, in one of SciPy's ways."""
    if how is None or not count:
        return x
    before, after = x[..., count:0:-1], x[..., -2 : -(count + 2) : -1]
    first, last = x[..., :1], x[..., -1:]
    if how == "odd":
        before, after = 2 * first - before, 2 * last - after
    elif how == "constant":
        before, after = (np.broadcast_to(end, (*x.shape[:-1], count)) for end in (first, last))
    elif how == "zeros":
        before = after = np.zeros((*x.shape[:-1], count), x.dtype)
    return np.concatenate([before, x, after], axis=-1)


def second_order_sections(name: str, sos: Any) -> Any:
    """Return the coefficients of filters of the second order; the fourth ones, if they are known, are 1."""
    sections: Any = as_tensor(sos)
    if sections.ndim != 2 or sections.shape[1] != 6 or not len(sections):
        raise ShapeError(name, f"shape {sections.shape}", "rows of six are needed", "Reshape them")
    known = elements(sections)
    if known is not None and np.any(known[:, 3] != 1):
        needed, action = "ones are needed", "Divide each row by its fourth coefficient"
        raise UsageError(name, f"{known[:, 3].tolist()!s:.40} for sos[:, 3]", needed, action)
    return sections


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Return a signal after filters of the second order, one after the other; see `scipy.signal.sosfilt`.

    Args:
        sos: a row of six coefficients for each filter.
        x: the signal.
        axis: the axis of time.
        zi: the states before, those of each filter along the first axis; none are returned if they are not given.

    Returns:
        The signal, or a pair of it and the states after.

    Raises:
        ShapeError: there are no rows of six coefficients.

    >>> sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], [1.0, 0.0, 0.0])
    tensor([1.  , 0.5 , 0.25])
    """
    sections = second_order_sections("sosfilt", sos)
    found, states = x, []
    for i in range(len(sections)):
        if zi is None:
            found = lfilter(sections[i, :3], sections[i, 3:], found, axis)
        else:
            found, state = lfilter(sections[i, :3], sections[i, 3:], found, axis, as_tensor(zi)[i])
            states.append(state)
    return found if zi is None else (found, np.stack(states))


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    """Return a signal less its mean, or less the line that fits it best; see `scipy.signal.detrend`.

    Args:
        data: the signal.
        axis: the axis of time.
        type: "linear" or "constant".
        bp: 0: lines that begin anew inside are not supported.
        overwrite_data: not needed: nothing is written to.

    Raises:
        UsageError: the type is unknown, or there are such lines.

    >>> detrend([1.0, 3.0], type="constant")
    tensor([-1.,  1.])
    """
    if type not in ("linear", "constant"):
        raise UsageError("detrend", f"type={type!r}", "'linear' or 'constant' is needed", "Correct it")
    x: Any = as_tensor(data)
    if np.any(np.asarray(bp)):
        needed = "one line for the whole signal, 0, is needed"
        raise UsageError("detrend", f"bp={bp!r:.40}", needed, "Detrend the parts and join them")
    if not x.size:
        raise ShapeError("detrend", f"shape {x.shape}", "elements are needed", "Pass a signal")
    rest = x - np.mean(x, axis=axis, keepdims=True)
    if type == "constant" or x.shape[axis] == 1:
        return rest
    times = (np.arange(x.shape[axis]) - (x.shape[axis] - 1) / 2).astype(rest.real.dtype)
    times = times.reshape((-1,) + (1,) * (x.ndim - 1 - normalize_axis_index(axis, x.ndim)))
    return rest - times * (np.sum(times * rest, axis=axis, keepdims=True) / np.sum(times**2))


def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """Return the state of a filter after what it gave and was given, the last first; see `scipy.signal.lfiltic`.

    Args:
        b: coefficients of the numerator.
        a: coefficients of the denominator.
        y: what it gave.
        x: what it was given; zeros if it is not given.

    Raises:
        ShapeError: the coefficients are no rows.

    >>> lfiltic([1.0], [1.0, -0.5], [2.0])
    tensor([1.])
    """
    top, bottom = coefficient_row("lfiltic", "b", b), coefficient_row("lfiltic", "a", a)
    require_first("lfiltic", "a", bottom)
    top, bottom = top / bottom[0], bottom / bottom[0]
    count = max(len(top), len(bottom)) - 1
    after = past_sums(top, np.zeros(0) if x is None else x, count)
    return after - past_sums(bottom, y, count)


def past_sums(c: Any, past: Any, count: int) -> Any:
    """Return for each of the next `count` times the sum of coefficients times elements before the present."""
    known = np.atleast_1d(as_tensor(past))[: len(c) - 1]
    known = pad_zeros(known, len(c) - 1) if len(c) > 1 else known
    sums = [np.sum(c[m + 1 :] * known[: len(c) - 1 - m]) for m in range(len(c) - 1)]
    return np.stack([*sums, *[np.zeros(())] * (count - len(sums))]) if count else np.zeros(0)


def deconvolve(signal: Any, divisor: Any) -> tuple[Any, Any]:
    """Return what convolved with the divisor is the signal, and what is left; see `scipy.signal.deconvolve`.

    Args:
        signal: the signal.
        divisor: a row of numbers, the first of which is not 0.

    Raises:
        ShapeError: one of them is no row.

    >>> deconvolve([1.0, 3.0, 2.0], [1.0, 1.0])
    (tensor([1., 2.]), tensor([0., 0., 0.]))
    """
    top, bottom = coefficient_row("deconvolve", "signal", signal), coefficient_row("deconvolve", "divisor", divisor)
    if len(bottom) > len(top):
        return top[:0], top
    quotient = lfilter(top, bottom, 1.0 * (np.arange(len(top) - len(bottom) + 1) == 0))
    return quotient, top - convolve(bottom, quotient)


def sosfilt_zi(sos: Any) -> Any:
    """Return the states of filters in which a signal of ones stays; see `scipy.signal.sosfilt_zi`.

    Args:
        sos: a row of six coefficients for each filter.

    Raises:
        ShapeError: there are no rows of six coefficients.

    >>> sosfilt_zi([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])
    tensor([[1., 0.]])
    """
    sections = second_order_sections("sosfilt_zi", sos)
    scale: Any = 1.0
    found = []
    for section in sections:
        found.append(scale * lfilter_zi(section[:3], section[3:]))
        scale = scale * (np.sum(section[:3]) / np.sum(section[3:]))
    return np.stack(found)


def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None) -> Any:
    """Return a signal after filters that run forwards and then backwards; see `scipy.signal.sosfiltfilt`.

    Args:
        sos: a row of six coefficients for each filter.
        x: the signal.
        axis: the axis of time.
        padtype: how the signal goes on beyond its ends: "odd", "even", "constant" or None.
        padlen: how far; three times the number of coefficients that are not 0 at the end if it is not given.

    Raises:
        ShapeError: the signal is shorter, or there are no rows of six coefficients.
        UsageError: the kind of padding is unknown.
        GraphError: `padlen` is not given, and the coefficients are unknown in a trace or differ between lanes.

    >>> sosfiltfilt([[0.5, 0.0, 0.0, 1.0, 0.0, 0.0]], [1.0, 2.0], padtype=None)
    tensor([0.25, 0.5 ])
    """
    sections = second_order_sections("sosfiltfilt", sos)
    if padtype is not None and padlen is None:
        if not is_concrete(sections):
            given = "coefficients that are unknown in a trace or differ between lanes"
            needed = "known ones are needed, because how many are zero says how far the signal goes on"
            raise GraphError("sosfiltfilt", given, needed, "Pass padlen")
        known = np.asarray(raw(sections))
        padlen = int(3 * (2 * len(known) + 1 - min(np.sum(known[:, 2] == 0), np.sum(known[:, 5] == 0))))
    signal, edge = extend_signal(
        "sosfiltfilt", x, axis, padtype, 0 if padtype is None else as_whole("sosfiltfilt", "padlen", padlen, 0)
    )
    state = sosfilt_zi(sections)
    state = state.reshape(len(state), *(1,) * (signal.ndim - 1), 2)
    return run_both_ways(lambda y, start: sosfilt(sections, y, zi=state * start)[0], signal, edge, axis)


def savgol_coeffs(
    window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, pos: Any = None, use: str = "conv"
) -> Any:
    """Return the weights of the value, or a derivative, of the polynomial that fits a window best: see SciPy's.

    Args:
        window_length: how many elements the window has.
        polyorder: the degree of polynomials.
        deriv: which derivative.
        delta: how far samples are apart.
        pos: the place in the window; its middle if it is not given.
        use: "conv" for weights of a convolution, "dot" for those of a product.

    >>> savgol_coeffs(3, 1)
    tensor([0.33333333, 0.33333333, 0.33333333])
    """
    return as_tensor(scipy.signal.savgol_coeffs(window_length, polyorder, deriv, delta, pos, use))


def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
    """Return values, or derivatives, of the polynomials that fit windows best; see `scipy.signal.savgol_filter`.

    (A. Savitzky and M. J. E. Golay, Smoothing and differentiation of data by simplified least squares, 1964.)

    Args:
        x: the signal.
        window_length: how many elements windows have.
        polyorder: the degree of polynomials.
        deriv: which derivative.
        delta: how far samples are apart.
        axis: the axis of time.
        mode: what is beyond the ends: "interp" (the first and last polynomials), "mirror", "constant", "nearest" or
            "wrap".
        cval: the value there, where the mode is "constant".

    Raises:
        ShapeError: the signal is shorter than a window.

    >>> savgol_filter([0.0, 1.0, 4.0, 9.0, 16.0], 3, 2).round(12)
    tensor([ 0.,  1.,  4.,  9., 16.])
    """
    signal: Any = as_tensor(x)
    require_real("savgol_filter", "x", signal.dtype)
    signal = signal if signal.dtype.kind == "f" else signal.astype(float)
    window_length = as_whole("savgol_filter", "window_length", window_length, 1)
    polyorder = as_whole("savgol_filter", "polyorder", polyorder, 0)
    weights = scipy.signal.savgol_coeffs(window_length, polyorder, deriv, delta)
    if mode != "interp":
        return convolve1d(signal, weights, axis, mode, cval)
    count = signal.shape[axis]
    if window_length > count:
        given = f"{count} elements along the axis for windows of {window_length}"
        raise ShapeError("savgol_filter", given, "a window at least is needed", "Pass another mode")
    inner = np.moveaxis(convolve1d(signal, weights, axis, "constant"), axis, -1)
    moved, half = np.moveaxis(signal, axis, -1), window_length // 2
    ends = end_weights(window_length, polyorder, deriv, delta).astype(signal.dtype)
    first = moved[..., :window_length] @ ends[:half].T
    last = moved[..., count - window_length :] @ ends[window_length - half :].T
    return np.moveaxis(np.concatenate([first, inner[..., half : count - half], last], axis=-1), -1, axis)


def end_weights(window_length: int, polyorder: int, deriv: int, delta: float) -> Any:
    """Return for each place in a window the weights of its elements."""
    rows = [
        scipy.signal.savgol_coeffs(window_length, polyorder, deriv, delta, pos=place, use="dot")
        for place in range(window_length)
    ]
    return np.stack(rows)


def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """Return the medians of windows, with zeros around; see `scipy.signal.medfilt`.

    Args:
        volume: a signal of any dimension.
        kernel_size: the lengths of windows, odd, for all axes or for each; 3 if they are not given.

    Raises:
        UsageError: a length is even.

    >>> medfilt([1.0, 5.0, 2.0])
    tensor([1., 2., 2.])
    """
    x: Any = np.atleast_1d(as_tensor(volume))
    sizes = np.broadcast_to(3 if kernel_size is None else kernel_size, (x.ndim,)).tolist()
    if not all(size % 2 for size in sizes):
        raise UsageError("medfilt", f"kernel_size={kernel_size}", "odd lengths are needed", "Add one")
    if not x.size:
        return x.copy()
    framed = np.pad(x, [(size // 2, size // 2) for size in sizes])
    windows = np.lib.stride_tricks.sliding_window_view(framed, tuple(sizes))
    windows = windows.reshape(*x.shape, -1)
    return np.sort(windows, axis=-1)[..., windows.shape[-1] // 2]
