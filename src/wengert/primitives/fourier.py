"""Discrete Fourier transforms along one axis: linear, and each the transpose of another up to weights.

The matrix of `fft` is symmetric, so its transpose is itself; an argument that is cut or filled up with zeros to n
elements is filled up or cut on the way back. `rfft` and `irfft` are linear over the real numbers alone, and so are
their transposes. Those over several axes are several of these.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from wengert.core.aval import Aval
from wengert.core.declare import linear
from wengert.core.primitive import Primitive
from wengert.core.routine import Routine
from wengert.primitives.contractions import conj

Norm = Literal["backward", "ortho", "forward"] | None
SWAPPED: dict[Norm, Norm] = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The normalisation that a transform in the other direction has with the same factor."""

LARGE = 1 << 13
"""Elements of an array of which many lines are transformed at once."""


def transform(name: str, evaluate: Any, transpose: Any) -> Primitive:
    """Declare a transform along the axis that its parameter counts from 0."""
    return linear(name, evaluate, transpose=transpose, form=Routine("(n)->(m)", "axis"))


def fitted(x: Any, length: int, axis: int) -> Any:
    """Return an array cut or filled up with zeros to a length along an axis."""
    own = x.shape[axis]
    if own >= length:
        return x if own == length else x[(slice(None),) * axis + (slice(length),)]
    return np.pad(x, [(0, length - own) if i == axis else (0, 0) for i in range(x.ndim)])


def received(ct: Any, aval: Aval, axis: int) -> Any:
    """Return the cotangent of an operand from that of its first elements along an axis."""
    found = fitted(ct, aval.shape[axis], axis)
    return found if aval.dtype.kind == "c" else found.real


def weights(x: Any, n: int, axis: int, inner: float) -> Any:
    """Return what elements of the half of a spectrum count that stand for two; 1 for those that stand for one."""
    found = np.full(x.shape[axis], inner, x.real.dtype)
    found[0] = 1
    if n % 2 == 0:
        found[-1] = 1
    return found.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


def transform_of_cotangent(name: str, x: Any, n: int, axis: int, norm: Norm) -> Any:
    """Return a transform of a cotangent, which need not have NumPy's bits: SciPy takes a third of the time in float32.

    It transforms several lines at once, as NumPy does not.
    """
    if type(x) is np.ndarray and x.size >= LARGE and x.dtype.char in "fF":
        from scipy import fft

        return getattr(fft, name)(x, n, axis, norm)
    return getattr(np.fft, name)(x, n, axis, norm)


def evaluate_fft(x: Any, *, n: int, axis: int, norm: Norm) -> Any:
    """Evaluate `numpy.fft.fft`."""
    return np.fft.fft(x, n, axis, norm)


def transpose_fft(ct: Any, aval: Aval, *, n: int, axis: int, norm: Norm) -> Any:
    """Transform in the same direction."""
    return received(transform_of_cotangent("fft", ct, n, axis, norm), aval, axis)


def evaluate_ifft(x: Any, *, n: int, axis: int, norm: Norm) -> Any:
    """Evaluate `numpy.fft.ifft`."""
    return np.fft.ifft(x, n, axis, norm)


def transpose_ifft(ct: Any, aval: Aval, *, n: int, axis: int, norm: Norm) -> Any:
    """Transform in the same direction."""
    return received(transform_of_cotangent("ifft", ct, n, axis, norm), aval, axis)


def evaluate_rfft(x: Any, *, n: int, axis: int, norm: Norm) -> Any:
    """Evaluate `numpy.fft.rfft`."""
    return np.fft.rfft(x, n, axis, norm)


def transpose_rfft(ct: Any, aval: Aval, *, n: int, axis: int, norm: Norm) -> Any:
    """Return Re(sum over k of ct_k exp(-2 pi i j k / n)): the conjugates back, of which `irfft` counts most twice."""
    halves = conj(ct) * weights(ct, n, axis, 0.5)
    return received(transform_of_cotangent("irfft", halves, n, axis, SWAPPED[norm]), aval, axis)


def evaluate_irfft(x: Any, *, n: int, axis: int, norm: Norm) -> Any:
    """Evaluate `numpy.fft.irfft`."""
    return np.fft.irfft(x, n, axis, norm)


def transpose_irfft(ct: Any, aval: Aval, *, n: int, axis: int, norm: Norm) -> Any:
    """Return the conjugate spectrum, whose inner elements count twice."""
    found = transform_of_cotangent("rfft", ct, n, axis, SWAPPED[norm])
    return received(conj(found) * weights(found, n, axis, 2.0), aval, axis)


fft = transform("fft", evaluate_fft, transpose_fft)
ifft = transform("ifft", evaluate_ifft, transpose_ifft)
rfft = transform("rfft", evaluate_rfft, transpose_rfft)
irfft = transform("irfft", evaluate_irfft, transpose_irfft)
