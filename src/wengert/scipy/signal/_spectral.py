"""Spectra of signals: of windowed pieces, means of those, spectra over time, and signals from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import elements, require_choice, require_one_number
from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError
from wengert.scipy.signal._filters import detrend as without_trend
from wengert.scipy.signal._filters import extend_ends, pad_zeros
from wengert.support.records import NamedTuple

SCALINGS = ("density", "spectrum")
Detrend = str | bool | Callable[[Any], Any] | None


class Pieces(NamedTuple):
    """Say how signals are cut and transformed.

    Attributes:
        window: the weights of the elements of a piece.
        hop: how far the next piece begins.
        nfft: to how many elements a piece is extended by zeros.
        onesided: whether negative frequencies are left out.
    """

    window: Any
    hop: int
    nfft: int
    onesided: bool


def require_rate(name: str, fs: Any) -> None:
    """Raise a UsageError unless there are some elements in a unit of time."""
    require_one_number(name, "fs", fs)
    known = elements(fs)
    if known is not None and not known > 0:
        raise UsageError(name, f"fs={known}", "more than 0 is needed", "Pass how many elements a second has")


def require_trend(name: str, detrend: Any) -> None:
    """Raise a UsageError unless `detrend` names a trend, is a function, or is False or None."""
    if not (callable(detrend) or detrend is False or detrend is None or detrend in ("constant", "linear")):
        needed = "'constant', 'linear', a function or False is needed"
        raise UsageError(name, f"detrend={detrend!r:.40}", needed, "Correct it")


def plan_pieces(
    name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, count: int, onesided: bool, shared: int = 2
) -> Pieces:
    """Return how signals are cut, checked as SciPy does; the next piece has the `shared` part if it is not given."""
    if isinstance(window, str | tuple):
        length = min(256 if nperseg is None else int(nperseg), count)
        weights = as_tensor(scipy.signal.get_window(window, max(length, 1)))
    else:
        weights = as_tensor(window)
        length = weights.size if nperseg is None else int(nperseg)
    if weights.shape != (length,) or not 0 < length <= count:
        given = f"pieces of {length} elements, a window of shape {weights.shape} and signals of {count}"
        needed = "pieces as long as the window, and no longer than the signals, are needed"
        raise UsageError(name, given, needed, "Pass another nperseg= or window=")
    overlap = length // shared if noverlap is None else int(noverlap)
    whole = length if nfft is None else int(nfft)
    if overlap >= length or whole < length:
        given = f"nperseg={length}, noverlap={overlap} and nfft={whole}"
        needed = "noverlap below nperseg, and nfft not below it, are needed"
        raise UsageError(name, given, needed, "Pass other lengths, or leave them out")
    return Pieces(weights, length - overlap, whole, onesided)


def transform_pieces(x: Any, cut: Pieces, detrend: Detrend) -> Any:
    """Return the transforms of the windowed pieces of real or complex signals: axes of pieces and frequencies last."""
    windows = np.lib.stride_tricks.sliding_window_view(x, cut.window.shape[0], axis=-1)
    found = windows[..., :: cut.hop, :]
    if isinstance(detrend, str):
        found = without_trend(found, type=detrend)
    elif callable(detrend):
        found = detrend(found)
    found = found * cut.window
    if found.dtype.kind == "c":
        return np.fft.fft(found, cut.nfft)
    half = np.fft.rfft(found, cut.nfft)
    if cut.onesided:
        return half
    middle = (cut.nfft + 1) // 2
    ends = np.conjugate(half[..., :1]), np.conjugate(half[..., cut.nfft // 2 : 0 : -1])  # zeros have SciPy's signs
    return np.concatenate([ends[0], half[..., 1:middle], ends[1]], axis=-1)


def frequencies(cut: Pieces, fs: Any) -> Any:
    """Return the frequencies of transforms."""
    whole = np.fft.rfftfreq(cut.nfft) if cut.onesided else np.fft.fftfreq(cut.nfft)
    return as_tensor(np.rint(whole * cut.nfft) * (1.0 / (cut.nfft * (1.0 / fs))))


def double_between_ends(power: Any, cut: Pieces) -> Any:
    """Return a spectrum with what negative frequencies would have, where these are left out."""
    if not cut.onesided:
        return power
    factors = np.full(power.shape[-1], 2.0, power.real.dtype)
    factors[0] = 1.0
    if cut.nfft % 2 == 0:
        factors[-1] = 1.0
    return power * factors


def as_signal(x: Any) -> Any:
    """Return a signal as a Tensor of floats or complex numbers."""
    found: Any = as_tensor(x)
    return found if found.dtype.kind in "fc" else found.astype(float)


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
    count = signal.shape[normalize_axis_index(axis, signal.ndim)]
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


BOUNDARIES = ("even", "odd", "constant", "zeros", None)
MODES = ("psd", "complex", "magnitude", "angle", "phase")


def spectra_over_time(
    name: str,
    x: Any,
    fs: Any,
    pieces: tuple[Any, Any, Any, Any],
    detrend: Detrend,
    onesided: bool,
    scaling: str,
    axis: int,
    *,
    shared: int = 2,
    power: bool = False,
    boundary: str | None = None,
    padded: bool = False,
) -> tuple[Any, Any, Any]:
    """Return frequencies, times, and scaled transforms of pieces of signals, or their powers, with SciPy's steps.

    `pieces` are the window, and `nperseg`, `noverlap` and `nfft`.
    """
    require_rate(name, fs)
    require_trend(name, detrend)
    x = as_signal(x)
    at = normalize_axis_index(axis, x.ndim)
    kind = np.result_type(x.dtype, np.complex64)
    x = np.moveaxis(x, at, -1)
    cut = plan_pieces(name, *pieces, count=x.shape[-1], onesided=onesided and x.dtype.kind != "c", shared=shared)
    length = cut.window.shape[0]
    x = extend_ends(x, length // 2, boundary)
    if padded:
        x = pad_zeros(x, x.shape[-1] + (-(x.shape[-1] - length) % cut.hop) % length)
    window = cut.window.astype(kind if cut.window.dtype.kind == "c" else np.empty(0, kind).real.dtype)
    scale = 1.0 / (fs * np.sum(window * window)) if scaling == "density" else 1.0 / np.sum(window) ** 2
    found = transform_pieces(x, cut._replace(window=window), detrend)
    found = double_between_ends((np.conjugate(found) * found).real * scale, cut) if power else found * np.sqrt(scale)
    times = np.arange(length / 2, x.shape[-1] - length / 2 + 1, cut.hop) / fs
    if boundary is not None:
        times = times - (length / 2) / fs
    return frequencies(cut, fs), as_tensor(times), np.moveaxis(found, -1, at)


def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Any, Any, Any]:
    """Return frequencies, times and the spectra of pieces of a signal; see `scipy.signal.spectrogram`.

    Args:
        x: a signal, real or complex.
        fs: how many elements there are in a unit of time.
        window: as in `csd`.
        nperseg: the length of a piece, 256 or that of the window if it is not given.
        noverlap: how many elements a piece shares with the next, an eighth of them if it is not given.
        nfft: to how many elements a piece is extended by zeros.
        detrend: "constant", "linear", a function of pieces along the last axis, or False.
        return_onesided: whether negative frequencies are left out for real signals.
        scaling: "density" or "spectrum".
        axis: the axis of time; that of the pieces is the last of the result.
        mode: "psd", "complex", "magnitude", "angle" or "phase".

    Raises:
        UsageError: an option is unknown, or lengths contradict each other.

    >>> spectrogram([1.0, 0.0, -1.0, 0.0], window="boxcar", nperseg=4)[2]
    tensor([[0.],
            [2.],
            [0.]])
    """
    require_choice("spectrogram", "mode", mode, MODES)
    require_choice("spectrogram", "scaling", scaling, SCALINGS)
    pieces = window, nperseg, noverlap, nfft
    rates, times, found = spectra_over_time(
        "spectrogram", x, fs, pieces, detrend, return_onesided, scaling, axis, shared=8, power=mode == "psd"
    )
    if mode == "magnitude":
        found = np.abs(found)
    elif mode in ("angle", "phase"):
        found = np.angle(found)
        if mode == "phase":
            found = np.unwrap(found, axis=axis - 1 if axis < 0 else axis)  # the pieces are behind the frequencies
    return rates, times, found


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Any, Any, Any]:
    """Return frequencies, times and the short-time Fourier transform of a signal; see `scipy.signal.stft`.

    Args:
        x: a signal, real or complex.
        fs: how many elements there are in a unit of time.
        window: as in `csd`.
        nperseg: the length of a piece.
        noverlap: how many elements a piece shares with the next, half of them if it is not given.
        nfft: to how many elements a piece is extended by zeros.
        detrend: "constant", "linear", a function of pieces along the last axis, or False.
        return_onesided: whether negative frequencies are left out for real signals.
        boundary: how the signal goes on by half a piece at both ends: "even", "odd", "constant", "zeros", or None.
        padded: whether zeros follow until a whole number of pieces fits.
        axis: the axis of time; that of the pieces is the last of the result.
        scaling: "spectrum" or "psd".

    Raises:
        UsageError: an option is unknown, or lengths contradict each other.

    >>> stft([1.0, 0.0, -1.0, 0.0], window="boxcar", nperseg=4, boundary=None)[2].real.round(12)
    tensor([[0. ],
            [0.5],
            [0. ]])
    """
    require_choice("stft", "scaling", scaling, ("spectrum", "psd"))
    require_choice("stft", "boundary", boundary, BOUNDARIES)
    pieces, scale = (window, nperseg, noverlap, nfft), "density" if scaling == "psd" else scaling
    return spectra_over_time(
        "stft", x, fs, pieces, detrend, return_onesided, scale, axis, boundary=boundary, padded=padded
    )


def istft(
    Zxx: Any,  # noqa: N803 - SciPy's name
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Any, Any]:
    """Return times and the signal that has a short-time Fourier transform; see `scipy.signal.istft`.

    (D. W. Griffin and J. S. Lim, Signal estimation from modified short-time Fourier transform, 1984.)

    Args:
        Zxx: the transforms of pieces.
        fs: how many elements of the signal there are in a unit of time.
        window: the window with which they were taken.
        nperseg: the length of a piece, all that was transformed if it is not given.
        noverlap: how many elements a piece shares with the next, half of them if it is not given.
        nfft: to how many elements a piece was extended.
        input_onesided: whether negative frequencies are left out.
        boundary: whether half a piece at both ends is left out.
        time_axis: the axis of the pieces.
        freq_axis: the axis of the frequencies.
        scaling: "spectrum" or "psd".

    Raises:
        ShapeError: the transforms have not got both axes.
        UsageError: the scaling is unknown, or lengths contradict each other.

    >>> x = np.arange(8.0)
    >>> istft(stft(x, nperseg=4)[2])[1].round(12)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    require_choice("istft", "scaling", scaling, ("spectrum", "psd"))
    require_rate("istft", fs)
    spectra: Any = as_tensor(Zxx)
    if spectra.ndim < 2 or (time_axis - freq_axis) % spectra.ndim == 0:
        given = f"shape {spectra.shape}, freq_axis={freq_axis} and time_axis={time_axis}"
        raise ShapeError("istft", given, "an axis of frequencies and one of times are needed", "Pass others")
    spectra = np.moveaxis(spectra + 0j, (time_axis, freq_axis), (-2, -1))
    count, rates = spectra.shape[-2:]
    usual = 2 * (rates - 1) if input_onesided else rates
    length = usual if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = length if input_onesided and length == usual + 1 else usual
    cut = plan_pieces("istft", window, length, noverlap, nfft, length, input_onesided)
    found = (np.fft.irfft if input_onesided else np.fft.ifft)(spectra, cut.nfft)[..., :length]
    weights = cut.window.astype(found.dtype)
    found = found * (np.sum(weights) if scaling == "spectrum" else np.sqrt(fs * np.sum(weights**2)))
    places = np.arange(count)[:, np.newaxis] * cut.hop + np.arange(length)
    size = length + (count - 1) * cut.hop
    both = [
        overlap_add(np.broadcast_to(x, (*x.shape[:-2], count, length)), places, size)
        for x in (found * weights, (weights**2)[np.newaxis])
    ]
    if boundary:
        both = [x[..., length // 2 : size - length // 2] for x in both]
    signal, norm = both
    signal = signal / np.where(norm > 1e-10, norm, 1.0)
    times = np.arange(signal.shape[0]) / fs
    at = normalize_axis_index(time_axis, spectra.ndim) - (freq_axis % spectra.ndim < time_axis % spectra.ndim)
    return as_tensor(times), np.moveaxis(signal, -1, at)


def overlap_add(pieces: Any, places: Any, size: int) -> Any:
    """Return the sum of pieces at their places along the last axis."""
    found = np.zeros_like(pieces, shape=(*pieces.shape[:-2], size))
    at: Any = (..., places)
    np.add.at(found, at, pieces)
    return found
