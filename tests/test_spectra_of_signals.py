"""Spectra of signals: SciPy's values, to the bit in double precision, and derivatives by signals, windows and rates."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import wengert as wg
from tests.derivatives import require_derivatives
from wengert.errors import ShapeError, UsageError
from wengert.scipy import fft, signal
from wengert.testing import check_grads

RNG = np.random.default_rng(0)
SIGNALS = [((300,), -1), ((2, 300), -1), ((300, 2), 0), ((2, 300, 2), 1), ((2, 300, 2), -2)]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"nperseg": 64, "noverlap": 20, "nfft": 80, "fs": 3.0},
    {"nperseg": 63, "detrend": "linear"},
    {"nperseg": 64, "scaling": "spectrum", "detrend": False, "return_onesided": False},
    {"window": scipy.signal.get_window("blackman", 50), "detrend": lambda x: x - 0.5},
]


@pytest.fixture(autouse=True)
def _without_warnings_of_short_signals() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


AS_NOW = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17)
"""Older versions scale spectra after the transform."""


def same(found: Any, want: Any, bits: bool) -> None:
    for one, other in zip(found, want, strict=True):
        assert type(one) is wg.Tensor
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if bits and AS_NOW:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize(("shape", "axis"), SIGNALS)
def test_spectra_are_scipys(dtype: Any, shape: Any, axis: int) -> None:
    x = RNG.normal(size=shape).astype(dtype)
    x = x + np.roll(x, 1) * (1j if np.dtype(dtype).kind == "c" else 1)
    y = np.roll(x, 3) + x
    for options in OPTIONS:
        bits = dtype in (np.float64, np.complex128) and options.get("detrend") != "linear"
        given = {**options, "axis": axis}
        for average in ("mean", "median"):
            same(signal.welch(x, average=average, **given), scipy.signal.welch(x, average=average, **given), bits)
            same(signal.csd(x, y, average=average, **given), scipy.signal.csd(x, y, average=average, **given), bits)
        for mode in ("psd", "complex", "magnitude"):
            same(signal.spectrogram(x, mode=mode, **given), scipy.signal.spectrogram(x, mode=mode, **given), bits)
    for nfft in (None, 100, 400):
        found = signal.periodogram(x, nfft=nfft, axis=axis)
        same(found, scipy.signal.periodogram(x, nfft=nfft, axis=axis), dtype in (np.float64, np.complex128))
    same(signal.coherence(x, y, axis=axis), scipy.signal.coherence(x, y, axis=axis), False)


@pytest.mark.parametrize("boundary", ["even", "odd", "constant", "zeros", None])
@pytest.mark.parametrize(("shape", "axis"), SIGNALS)
def test_transforms_of_pieces_and_back_are_scipys(boundary: Any, shape: Any, axis: int) -> None:
    x = RNG.normal(size=shape)
    given: dict[str, Any]
    for given in ({}, {"nperseg": 63, "noverlap": 40, "fs": 2.0}, {"nperseg": 64, "scaling": "psd"}):
        for padded in (True, False):
            options = {"boundary": boundary, "padded": padded, "axis": axis, **given}
            want = scipy.signal.stft(x, **options)
            same(signal.stft(x, **options), want, True)
            back = {"boundary": boundary is not None, "freq_axis": axis - (axis < 0), **given}
            same(signal.istft(want[2], **back), scipy.signal.istft(want[2], **back), True)


def test_phases_are_scipys() -> None:
    x = RNG.normal(size=200)
    for mode in ("angle", "phase"):
        for onesided in (True, False):
            options = {"mode": mode, "nperseg": 32, "detrend": False, "return_onesided": onesided}
            same(signal.spectrogram(x, **options), scipy.signal.spectrogram(x, **options), True)


X, Y = RNG.normal(size=(2, 24))
WINDOW = RNG.uniform(0.5, 1.5, size=8)
FUNCTIONS = {
    "welch": lambda x: signal.welch(x, nperseg=8)[1],
    "median": lambda x: signal.welch(x, nperseg=8, average="median")[1],
    "csd": lambda x: np.abs(signal.csd(x, Y, nperseg=8)[1]) ** 2,
    "coherence": lambda x: signal.coherence(x, Y, nperseg=8)[1],
    "periodogram": lambda x: signal.periodogram(x, window="hann", detrend="linear")[1],
    "spectrogram": lambda x: signal.spectrogram(x, nperseg=8)[2],
    "magnitude": lambda x: signal.spectrogram(x, nperseg=8, mode="magnitude", window="hann")[2][1:-1],
    "stft": lambda x: signal.stft(x, nperseg=8)[2].imag,
    "back": lambda x: signal.istft(signal.stft(x, nperseg=8)[2] ** 2)[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_lanes_and_traces_of_spectra(name: str) -> None:
    function = FUNCTIONS[name]
    check_grads(function, (X,), order=2)
    require_derivatives(function, (X,))
    weight = RNG.normal(size=np.shape(function(X)))
    slope = wg.grad(lambda x: np.sum(function(x) * weight))
    np.testing.assert_allclose(wg.jit(slope)(X), slope(X), rtol=1e-9, atol=1e-12)
    lanes = wg.vmap(slope)(np.stack([X, Y]))
    np.testing.assert_allclose(lanes, [slope(X), slope(Y)], rtol=1e-9, atol=1e-12)


def test_windows_and_rates_are_differentiated() -> None:
    def power(window: Any, fs: Any) -> Any:
        return signal.welch(X, fs, window)[1]

    check_grads(power, (WINDOW, 3.0), order=2)
    check_grads(lambda fs: signal.welch(X, fs, nperseg=8)[0], (3.0,))
    check_grads(lambda window: signal.istft(signal.stft(X, window=window, nperseg=8)[2])[1], (WINDOW,))
    check_grads(lambda fs: signal.stft(X, fs, nperseg=8, scaling="psd")[2].real, (3.0,))


def test_signals_shorter_than_a_piece_are_one_piece() -> None:
    same(signal.welch(X), scipy.signal.welch(X), True)
    same(signal.csd(X, Y[:20], nperseg=8), scipy.signal.csd(X, Y[:20], nperseg=8), True)


def test_what_does_not_fit_says_what_to_pass() -> None:
    with pytest.raises(UsageError, match=r"csd: pieces of 8 elements, a window of shape \(4,\) and signals of 24; pie"):
        signal.welch(X, window=np.ones(4), nperseg=8)
    with pytest.raises(UsageError, match=r"stft: nperseg=8, noverlap=8 and nfft=8; noverlap below nperseg, and nfft"):
        signal.stft(X, nperseg=8, noverlap=8)
    with pytest.raises(UsageError, match=r"spectrogram: mode='power'; 'psd', 'complex', 'magnitude', 'angle' or"):
        signal.spectrogram(X, mode="power")
    with pytest.raises(UsageError, match=r"csd: average='max'; 'mean' or 'median' is needed. Pass one of these."):
        signal.welch(X, average="max")
    with pytest.raises(UsageError, match=r"stft: boundary='periodic'; 'even', 'odd', 'constant', 'zeros' or None"):
        signal.stft(X, boundary="periodic")
    with pytest.raises(ShapeError, match=r"istft: shape \(24,\), freq_axis=-2 and time_axis=-1; an axis of frequencie"):
        signal.istft(X)
    with pytest.raises(AttributeError, match=r"scipy.signal.ShortTimeFFT has no derivative in Wengert; use stft, istf"):
        signal.ShortTimeFFT  # noqa: B018 - asking is the test


def test_transforms_of_halves_are_single_as_scipys_are() -> None:
    halves = np.arange(12.0).reshape(3, 4).astype(np.float16)
    for name in ("fft", "irfft", "hfft", "ihfft", "irfft2", "irfftn", "dct", "idstn"):
        own, want = getattr(fft, name)(halves), getattr(scipy.fft, name)(halves)
        assert own.dtype == want.dtype
        np.testing.assert_allclose(own, want, rtol=1e-5, atol=1e-5)
