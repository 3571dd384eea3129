"""Convolutions, filters and spectra with SciPy's names and signatures: `wengert.scipy.signal`.

Signals, kernels and the coefficients of filters are differentiated. Where SciPy chooses between sums and Fourier
transforms, sums are taken here unless the transforms are asked for by name.
"""

from typing import TYPE_CHECKING

from wengert.scipy.signal._convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from wengert.scipy.signal._filters import (
    deconvolve,
    detrend,
    filtfilt,
    lfilter,
    lfilter_zi,
    lfiltic,
    medfilt,
    savgol_coeffs,
    savgol_filter,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from wengert.scipy.signal._resampling import hilbert, resample, resample_poly, upfirdn
from wengert.scipy.signal._spectral import coherence, csd, istft, periodogram, spectrogram, stft, welch
from wengert.support.hints import names_on_demand

__all__ = [
    "coherence",
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "deconvolve",
    "detrend",
    "fftconvolve",
    "filtfilt",
    "hilbert",
    "istft",
    "lfilter",
    "lfilter_zi",
    "lfiltic",
    "medfilt",
    "oaconvolve",
    "periodogram",
    "resample",
    "resample_poly",
    "savgol_coeffs",
    "savgol_filter",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "spectrogram",
    "stft",
    "upfirdn",
    "welch",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.signal")
