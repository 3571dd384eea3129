"""Samples of Fourier transforms."""

from __future__ import annotations

import numpy as np

import wengert.numpy.fft
import wengert.scipy.fft  # noqa: F401 - both declare their primitives when they are first asked for
from tests.samples.base import Sample, normal, sample
from tests.samples.linear_algebra import of_scipy


def waves(*shape: int) -> np.ndarray:
    """Return complex normal numbers."""
    return normal(*shape) + 1j * normal(*shape, seed=1)


SAMPLES: list[Sample] = [
    sample("fft", np.fft.fft, waves(3)),
    sample("fft", np.fft.fft, normal(2, 3), n=2, norm="ortho"),
    sample("fft", np.fft.fft, normal(3, 2), n=5, axis=0, norm="forward"),
    sample("fft", np.fft.fftn, waves(2, 3), axes=(1, 1)),
    sample("fft2", np.fft.fftn, waves(2, 3)),
    sample("fft2", np.fft.fft2, normal(2, 2, 3), s=(3, -1), axes=(0, 2)),
    sample("fft2", np.fft.fftn, normal(2, 3, 2), norm="ortho"),
    sample("fft", lambda x: np.fft.fftshift(np.fft.fft(x)), normal(3)),
    sample("ifft", np.fft.ifft, waves(4), n=3, norm="forward"),
    sample("ifft", np.fft.ifftn, normal(2, 3), axes=(0,)),
    sample("ifft2", lambda x: np.fft.ifft2(np.fft.ifftshift(x, axes=1)), waves(2, 3)),
    sample("ifft2", np.fft.ifft2, waves(2, 3), s=(3, 2), axes=(1, 0), norm="forward"),
    sample("rfft", np.fft.rfft, normal(4)),
    sample("rfft", np.fft.rfft, normal(2, 5), norm="ortho"),
    sample("rfft", np.fft.rfft, normal(3, 2), n=5, axis=0),
    sample("rfft", np.fft.rfftn, normal(2, 3), s=(3, 2), axes=(1, 0), norm="forward"),
    sample("rfft", np.fft.rfft2, normal(2, 3)),
    sample("rfft", np.fft.ihfft, normal(5), n=4, norm="forward"),
    sample("irfft", np.fft.irfft, waves(3)),
    sample("irfft", np.fft.irfft, waves(3, 2), n=5, axis=0, norm="ortho"),
    sample("irfft", np.fft.irfft, normal(3), n=7),
    sample("irfft", np.fft.irfftn, waves(2, 3)),
    sample("irfft", np.fft.irfft2, waves(2, 3), s=(3, 4)),
    sample("irfft", np.fft.hfft, waves(3), norm="ortho"),
    *[
        sample("real_fourier", of_scipy(name, module="fft"), normal(2, 4), type=kind, n=n, norm=norm)
        for name in ("dct", "dst")
        for kind, n, norm in ((1, 3, None), (2, 5, "forward"), (3, None, None), (4, None, "ortho"))
    ],
    sample("real_fourier", of_scipy("idct", module="fft"), normal(3, 2), axis=0, norm="forward", orthogonalize=True),
    sample("real_fourier", of_scipy("idst", module="fft"), waves(4), type=3, norm="ortho", orthogonalize=False),
]
