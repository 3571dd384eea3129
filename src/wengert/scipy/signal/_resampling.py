"""Signals at other times, and their analytic continuation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.signal
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError
from wengert.scipy.ndimage._filters import correlate_rows


def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:  # noqa: N803 - SciPy's name
    """Return the analytic signal; see `scipy.signal.hilbert`.

    Args:
        x: a real signal.
        N: how many elements are taken; all if it is not given.
        axis: the axis of time.

    Raises:
        UsageError: the signal is complex.

    >>> hilbert([1.0, 0.0, -1.0, 0.0]).imag
    tensor([ 0.,  1.,  0., -1.])
    """
    signal: Any = as_tensor(x)
    if signal.dtype.kind == "c":
        raise UsageError("hilbert", "a complex signal", "a real one is needed", "Pass its real part")
    at = normalize_axis_index(axis, signal.ndim)
    count = signal.shape[at] if N is None else as_whole("hilbert", "N", N, 1)
    weights = np.zeros(count)
    weights[0] = 1
    weights[1 : (count + 1) // 2] = 2
    if count % 2 == 0:
        weights[count // 2] = 1
    shaped = weights.reshape(-1, *(1,) * (signal.ndim - at - 1))
    return np.fft.ifft(np.fft.fft(signal, count, axis=at) * shaped, axis=at)


def resample_real(x: Any, num: int) -> Any:
    """Return a real signal at so many times along the last axis; what has the highest frequency stays real."""
    count = x.shape[-1]
    half = min(num, count) // 2
    spectrum: Any = np.fft.rfft(x)[..., : half + 1]
    if 2 * half == min(num, count) and num != count:
        scale = np.ones(half + 1)
        scale[half] = 2.0 if num < count else 0.5
        spectrum = spectrum * scale
    return np.fft.irfft(spectrum, num)


def resample_complex(x: Any, num: int) -> Any:
    """Return a complex signal at so many times along the last axis; the highest frequency is shared by both signs."""
    count = x.shape[-1]
    shared = min(num, count)
    half = shared // 2
    spectrum: Any = np.fft.fft(x)
    low, high = spectrum[..., : (shared + 1) // 2], spectrum[..., count - (shared - 1) // 2 :]
    middle, again = [], []
    if shared % 2 == 0:
        both = spectrum[..., half : half + 1]
        if num < count:
            both = both + spectrum[..., count - half : count - half + 1]
        elif num > count:
            both = both * 0.5
            again = [both]
        middle = [both]
    gap = num - shared - len(again) + (shared - low.shape[-1] - high.shape[-1] - len(middle))
    zeros = np.zeros((*spectrum.shape[:-1], gap), spectrum.dtype)
    return np.fft.ifft(np.concatenate([low, *middle, zeros, *again, high], axis=-1))


def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """Return a signal that repeats at another number of times, by Fourier transforms; see `scipy.signal.resample`.

    Args:
        x: the signal, real or complex.
        num: how many elements the result has.
        t: the times of the signal; those of the result are returned too if they are given.
        axis: the axis of time.
        window: not supported.
        domain: "time".

    Raises:
        UsageError: a window, or another domain, is given.

    >>> resample([1.0, 0.0, -1.0, 0.0], 8).round(12)[::2]
    tensor([ 1.,  0., -1.,  0.])
    """
    if window is not None or domain != "time":
        given = f"window={window!r:.40} and domain={domain!r:.40}"
        raise UsageError("resample", given, "their defaults are needed", "Multiply the transform yourself")
    num = as_whole("resample", "num", num, 1)
    signal: Any = as_tensor(x)
    at = normalize_axis_index(axis, signal.ndim)
    signal = np.moveaxis(signal if signal.dtype.kind in "fc" else signal.astype(float), at, -1)
    count = signal.shape[-1]
    found = resample_complex(signal, num) if signal.dtype.kind == "c" else resample_real(signal, num)
    found = np.moveaxis(found * (float(num) / float(count)), -1, at)
    if t is None:
        return found
    times: Any = as_tensor(t)
    return found, np.arange(num) * (times[1] - times[0]) * count / float(num) + times[0]


def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0) -> Any:
    """Return a signal with zeros between its elements, convolved, of which some elements are left: see SciPy's.

    Args:
        h: the coefficients of the convolution.
        x: the signal.
        up: how far its elements are moved apart.
        down: of how many elements of the result one is left.
        axis: the axis of time.
        mode: "constant".
        cval: 0.

    Raises:
        ShapeError: the coefficients are no row.
        UsageError: the signal is to go on in another way, or a factor is no whole number above 0.

    >>> upfirdn([1.0, 1.0], [1.0, 2.0], 2)
    tensor([1., 1., 2., 2.])
    """
    up, down = as_whole("upfirdn", "up", up, 1), as_whole("upfirdn", "down", down, 1)
    kernel: Any = as_tensor(h)
    signal: Any = as_tensor(x)
    if kernel.ndim != 1 or not len(kernel):
        raise ShapeError("upfirdn", f"h of shape {kernel.shape}", "a row is needed", "Reshape it")
    if mode != "constant" or cval:
        given = f"mode={mode!r:.40} and cval={cval!r:.40}"
        raise UsageError("upfirdn", given, "zeros around the signal are needed", "Pad it with numpy.pad")
    kind = np.result_type(kernel.dtype, signal.dtype, np.float32)
    moved = np.moveaxis(signal.astype(kind), axis, -1)
    return np.moveaxis(correlate_rows(moved, np.flip(kernel.astype(kind)), down, up), -1, axis)


def resample_poly(
    x: Any,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: Any = None,
) -> Any:
    """Return a signal at up / down as many times, by a filter between; see `scipy.signal.resample_poly`.

    Args:
        x: the signal.
        up: how far its elements are moved apart.
        down: of how many elements one is left.
        axis: the axis of time.
        window: the window of the filter, by SciPy's names, or its coefficients.
        padtype: "constant".
        cval: 0, if it is given.

    Raises:
        UsageError: the signal is to go on in another way.

    >>> resample_poly([1.0, 1.0, 1.0, 1.0], 1, 2).shape
    (2,)
    """
    if padtype != "constant" or cval:
        given = f"padtype={padtype!r:.40} and cval={cval!r:.40}"
        raise UsageError("resample_poly", given, "zeros around the signal are needed", "Pad it with numpy.pad")
    signal: Any = as_tensor(x)
    signal = signal if signal.dtype.kind in "fc" else signal.astype(float)
    up, down = as_whole("resample_poly", "up", up, 1), as_whole("resample_poly", "down", down, 1)
    common = math.gcd(up, down)
    up, down = up // common, down // common
    if up == down == 1:
        return signal.copy()
    count = signal.shape[axis]
    wanted = -(-count * up // down)
    if not isinstance(window, list | np.ndarray | Tensor):
        half = 10 * max(up, down)
        kernel: Any = scipy.signal.firwin(2 * half + 1, 1.0 / max(up, down), window=window).astype(signal.real.dtype)
    else:
        kernel = as_tensor(window)
        half = (len(kernel) - 1) // 2
    before = down - half % down
    skipped = (half + before) // down
    behind = max(0, (wanted + skipped - 1) * down + 1 - (count - 1) * up - len(kernel) - before)
    kernel = np.concatenate([np.zeros(before, kernel.dtype), kernel * up, np.zeros(behind, kernel.dtype)])
    found = np.moveaxis(upfirdn(kernel, signal, up, down, axis), axis, -1)
    return np.moveaxis(found[..., skipped : skipped + wanted], -1, axis)
