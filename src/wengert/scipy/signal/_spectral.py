"""Spectra of signals: means of those of their windowed pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.scipy.signal._filters import pad_zeros
from wengert.scipy.signal._pieces import (
    SCALINGS,
    Detrend,
    as_signal,
    double_between_ends,
    frequencies,
    plan_pieces,
    require_choice,
    require_rate,
    require_trend,
    transform_pieces,
)


def sum_in_order(x: Any) -> Any:
    """Return the sum of a row from the left, as Python's own is."""
    return np.cumsum(x)[-1]


def mean_of_pieces(power: Any, average: str) -> Any:
    """Return the mean of spectra along the last axis, or the median less its bias, of each part of complex ones.

    The bias is that of Allen, Anderson, Brady, Brown & Creighton 2012, "FINDCHIRP", appendix B.
    """
    count = power.shape[-1]
    if count == 1:
        return power[..., 0]
    if average == "mean":
        return np.mean(power, axis=-1)
    even = 2 * np.arange(1.0, (count - 1) // 2 + 1)
    bias = 1 + np.sum(1.0 / (even + 1) - 1.0 / even)
    if power.dtype.kind == "c":
        return (np.median(power.real, axis=-1) + np.median(power.imag, axis=-1) * 1j) / bias
    return np.median(power, axis=-1) / bias


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Return frequencies and the cross spectral density of two signals by Welch's method; see `scipy.signal.csd`.

    Args:
        x: a signal, real or complex.
        y: another, which broadcasts with it; the shorter one is extended by zeros.
        fs: how many elements there are in a unit of time.
        window: the window's name, name and parameters, or weights, which are differentiated.
        nperseg: the length of a piece, 256 or that of the window if it is not given.
        noverlap: how many elements a piece shares with the next, half of them if it is not given.
        nfft: to how many elements a piece is extended by zeros.
        detrend: "constant", "linear", a function of pieces along the last axis, or False.
        return_onesided: whether negative frequencies are left out for real signals.
        scaling: "density" or "spectrum".
        axis: the axis of time.
        average: "mean" or "median" over the pieces.

    Raises:
        UsageError: an option is unknown, or lengths contradict each other.

    >>> frequencies, power = csd([1.0, 0.0, -1.0, 0.0], [1.0, 0.0, -1.0, 0.0], window="boxcar", nperseg=4)
    >>> frequencies, power.real
    (tensor([0.  , 0.25, 0.5 ]), tensor([0., 2., 0.]))
    """
    require_choice("csd", "scaling", scaling, SCALINGS)
    require_choice("csd", "average", average, ("mean", "median"))
    require_rate("csd", fs)
    require_trend("csd", detrend)
    same = y is x
    first, rank = as_signal(x), np.ndim(x)
    second = first if same else as_signal(y)
    kind = np.result_type(first.dtype, second.dtype, np.complex64)
    first = np.copy(np.moveaxis(first, axis, -1), order="A")  # in which order means are summed
    second = first if same else np.copy(np.moveaxis(second, axis, -1), order="A")
    count = max(first.shape[-1], second.shape[-1])
    onesided = return_onesided and first.dtype.kind != "c"
    cut = plan_pieces("csd", window, nperseg, noverlap, nfft, count, onesided)
    if scaling == "density":
        size = 1 / np.sqrt(sum_in_order(cut.window.real**2 + cut.window.imag**2) / (1.0 / fs))
    else:
        size = 1 / np.abs(sum_in_order(cut.window))
    scaled = cut._replace(window=np.conjugate(cut.window * size))
    left = transform_pieces(pad_zeros(first, count), scaled, detrend)
    if same:
        power = left.real**2 + left.imag**2
    else:
        power = transform_pieces(pad_zeros(second, count), scaled, detrend) * np.conjugate(left)
    # along rows in memory, where NumPy sums as SciPy does
    rows = np.copy(np.swapaxes(double_between_ends(power, cut), -1, -2), order="C")
    found = mean_of_pieces(rows, average).astype(np.empty(0, kind).real.dtype if same else kind)
    return frequencies(cut, fs), np.moveaxis(found, -1, axis) if rank > 1 else found


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Return frequencies and the power spectral density by Welch's method; see `scipy.signal.welch`.

    (P. D. Welch, The use of the fast Fourier transform for the estimation of power spectra, 1967.)

    Args:
        x: a signal, real or complex.
        fs: how many elements there are in a unit of time.
        window: as in `csd`, as are all that follow.
        nperseg: the length of a piece.
        noverlap: how many elements a piece shares with the next.
        nfft: to how many elements a piece is extended by zeros.
        detrend: what is taken from each piece.
        return_onesided: whether negative frequencies are left out for real signals.
        scaling: "density" or "spectrum".
        axis: the axis of time.
        average: "mean" or "median" over the pieces.

    Raises:
        UsageError: an option is unknown, or lengths contradict each other.

    >>> welch([1.0, 0.0, -1.0, 0.0], window="boxcar", nperseg=4)
    (tensor([0.  , 0.25, 0.5 ]), tensor([0., 2., 0.]))
    """
    return csd(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Any, Any]:
    """Return frequencies and the power spectral density of a signal as one piece; see `scipy.signal.periodogram`.

    Args:
        x: a signal, real or complex.
        fs: how many elements there are in a unit of time.
        window: as in `csd`, or None for none.
        nfft: to how many elements the signal is extended by zeros, or cut.
        detrend: what is taken from the signal.
        return_onesided: whether negative frequencies are left out for real signals.
        scaling: "density" or "spectrum".
        axis: the axis of time.

    Raises:
        UsageError: an option is unknown, or the window is not as long as the signal.

    >>> periodogram([1.0, 0.0, -1.0, 0.0])
    (tensor([0.  , 0.25, 0.5 ]), tensor([0., 2., 0.]))
    """
    signal = as_signal(x)
    count = signal.shape[axis]
    if nfft is not None and nfft < count:
        signal = np.moveaxis(np.moveaxis(signal, axis, -1)[..., :nfft], -1, axis)
        count = nfft
    weights = "boxcar" if window is None else window
    return welch(signal, fs, weights, count, 0, nfft, detrend, return_onesided, scaling, axis)


def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    axis: int = -1,
) -> tuple[Any, Any]:
    """Return frequencies and the squared coherence of two signals by Welch's method; see `scipy.signal.coherence`.

    Args:
        x: a signal, real or complex.
        y: another.
        fs: how many elements there are in a unit of time.
        window: as in `csd`, as are all that follow.
        nperseg: the length of a piece.
        noverlap: how many elements a piece shares with the next.
        nfft: to how many elements a piece is extended by zeros.
        detrend: what is taken from each piece.
        axis: the axis of time.

    Raises:
        UsageError: lengths contradict each other.

    >>> x = np.cos(np.arange(16.0))
    >>> coherence(x, 2 * x, nperseg=4)[1].round(12)
    tensor([1., 1., 1.])
    """
    options: dict[str, Any] = {"nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend, "axis": axis}
    rates, first = welch(x, fs, window, **options)
    _, second = welch(y, fs, window, **options)
    _, both = csd(x, y, fs, window, **options)
    return rates, np.abs(both) ** 2 / first / second
