"""Windowed pieces of signals, and their transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.signal

from wengert.core.diagnostics.argument_checks import elements, require_one_number
from wengert.core.values.dispatch import as_tensor
from wengert.errors import UsageError
from wengert.scipy.signal._filters import detrend as without_trend

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
    """Return how signals of so many elements are cut, checked as SciPy does.

    The part of a piece that the next has, too, is the `shared` part if it is not given.

    Raises:
        UsageError: lengths that contradict each other.
    """
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


def require_choice(name: str, what: str, given: Any, choices: tuple[str | None, ...]) -> None:
    """Raise a UsageError unless an option is one of its choices."""
    if given not in choices:
        needed = f"one of {', '.join(map(repr, choices))} is needed"
        raise UsageError(name, f"{what}={given!r:.40}", needed, "Correct it")
