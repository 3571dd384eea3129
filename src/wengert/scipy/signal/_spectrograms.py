"""Spectra of signals over time, and signals from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError
from wengert.scipy.signal._filters import extend_ends, pad_zeros
from wengert.scipy.signal._pieces import (
    SCALINGS,
    Detrend,
    Pieces,
    as_signal,
    double_between_ends,
    frequencies,
    plan_pieces,
    require_choice,
    require_rate,
    require_trend,
    transform_pieces,
)

BOUNDARIES = ("even", "odd", "constant", "zeros", None)
MODES = ("psd", "complex", "magnitude", "angle", "phase")


def spectra_over_time(
    x: Any,
    fs: Any,
    cut: Pieces,
    detrend: Detrend,
    scaling: str,
    power: bool,
    boundary: str | None = None,
    padded: bool = False,
) -> tuple[Any, Any, Any]:
    """Return frequencies, times, and scaled transforms of pieces of signals, or their powers, with SciPy's steps."""
    length = cut.window.shape[0]
    kind = np.result_type(x.dtype, np.complex64)
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
    return frequencies(cut, fs), as_tensor(times), found


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
    require_rate("spectrogram", fs)
    require_trend("spectrogram", detrend)
    signal = as_signal(x)
    moved = np.moveaxis(signal, normalize_axis_index(axis, signal.ndim), -1)
    onesided = return_onesided and signal.dtype.kind != "c"
    cut = plan_pieces("spectrogram", window, nperseg, noverlap, nfft, moved.shape[-1], onesided, shared=8)
    rates, times, found = spectra_over_time(moved, fs, cut, detrend, scaling, mode == "psd")
    if mode == "magnitude":
        found = np.abs(found)
    elif mode in ("angle", "phase"):
        found = np.angle(found)
        if mode == "phase":
            found = np.unwrap(found, axis=-1)
    return rates, times, np.moveaxis(found, -1, normalize_axis_index(axis, signal.ndim))


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
    require_rate("stft", fs)
    require_trend("stft", detrend)
    signal = as_signal(x)
    moved = np.moveaxis(signal, normalize_axis_index(axis, signal.ndim), -1)
    onesided = return_onesided and signal.dtype.kind != "c"
    cut = plan_pieces("stft", window, nperseg, noverlap, nfft, moved.shape[-1], onesided)
    scale = "density" if scaling == "psd" else scaling
    rates, times, found = spectra_over_time(moved, fs, cut, detrend, scale, False, boundary, padded)
    return rates, times, np.moveaxis(found, -1, normalize_axis_index(axis, signal.ndim))


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
