"""Functions of `scipy.fft` with SciPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.values.dispatch import apply, implements
from wengert.errors import describe
from wengert.numpy import fft as numpys
from wengert.numpy._contractions import array
from wengert.numpy._fft import as_length, normalisation, transform_axes
from wengert.numpy._namespace import document_as
from wengert.primitives.signals.fourier import SWAPPED
from wengert.primitives.signals.real_fourier import TRANSPOSED, real_fourier

PLANE = (-2, -1)


# Complex transforms, which are NumPy's


def numpy_transform(name: str) -> tuple[Callable[..., Any], str]:
    """Return a function of `wengert.numpy.fft`, and its summary."""
    transform = getattr(numpys, name)
    return transform, str(transform.__doc__).partition(";")[0]


def single_for_half(name: str, x: Any) -> Any:
    """Return an array, of halves in single precision: NumPy's inverses give halves again, SciPy's do not."""
    found = array(name, x)
    return found.astype(np.float32) if found.dtype == np.float16 else found


def enter_along(name: str) -> None:
    """Enter NumPy's transform along one axis, with SciPy's parameters."""
    transform, summary = numpy_transform(name)

    @implements(getattr(scipy.fft, name))
    @document_as(name, summary, "scipy.fft")
    def along(
        x: Any,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: Any = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return transform(single_for_half(name, x), n, axis, norm)


def enter_over(name: str, usual: tuple[int, int] | None) -> None:
    """Enter NumPy's transform over several axes, of which some are usual, with SciPy's parameters."""
    transform, summary = numpy_transform(name)

    @implements(getattr(scipy.fft, name))
    @document_as(name, summary, "scipy.fft")
    def over_axes(
        x: Any,
        s: Any = None,
        axes: Any = usual,
        norm: Any = None,
        overwrite_x: Any = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return transform(single_for_half(name, x), s, axes, norm)


for one in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    enter_along(one)
for plane in ("fft2", "ifft2", "rfft2", "irfft2"):
    enter_over(plane, PLANE)
for several in ("fftn", "ifftn", "rfftn", "irfftn"):
    enter_over(several, None)


@implements(scipy.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """Return a spectrum with the frequency zero in the middle; see `scipy.fft.fftshift`."""
    return numpys.fftshift(x, axes)


@implements(scipy.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """Return a spectrum with the frequency zero in front; see `scipy.fft.ifftshift`."""
    return numpys.ifftshift(x, axes)


# Cosine and sine transforms


def transform_along(name: str, x: Any, kind: Any, n: Any, axis: int, norm: Any, orthogonalize: Any) -> Any:
    """Return a transform along one axis; of an inverse's type 2 and 3 change places, and its normalisation faces."""
    norm = normalisation(name, norm)
    if kind not in TRANSPOSED:
        raise ValueError(describe(name, f"type={kind!r:.40}", "1, 2, 3 or 4 is needed", "Leave it out for 2"))
    if name.startswith("i"):
        kind, norm = TRANSPOSED[kind], SWAPPED[norm]
    place = normalize_axis_index(axis, x.ndim)
    params = {"n": as_length(name, x.shape[place] if n is None else n), "axis": place, "norm": norm}
    # SciPy looks at `orthogonalize` of real values alone (1.18).
    orthogonal = norm == "ortho" if orthogonalize is None or x.dtype.kind == "c" else bool(orthogonalize)
    wave = "dct" if "dct" in name else "dst"
    return apply(real_fourier, x, wave=wave, kind=int(kind), **params, orthogonalize=orthogonal)


def enter_waves(name: str, summary: str) -> None:
    """Enter the functions of a transform along one axis and along several."""

    @implements(getattr(scipy.fft, name))
    @document_as(name, summary, "scipy.fft")
    def along(
        x: Any,
        type: Any = 2,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: Any = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Any:
        return transform_along(name, array(name, x), type, n, axis, norm, orthogonalize)

    several = name + "n"

    @implements(getattr(scipy.fft, several))
    @document_as(several, f"{summary} over several axes", "scipy.fft")
    def over_axes(
        x: Any,
        type: Any = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: Any = False,
        workers: Any = None,
        *,
        orthogonalize: Any = None,
    ) -> Any:
        found = array(several, x)
        s, axes = ([y] if isinstance(y, int) else y for y in (s, axes))
        for n, axis in transform_axes(several, found, s, axes):
            found = transform_along(several, found, type, n, axis, norm, orthogonalize)
        return found


enter_waves("dct", "Return the discrete cosine transform")
enter_waves("idct", "Return the inverse discrete cosine transform")
enter_waves("dst", "Return the discrete sine transform")
enter_waves("idst", "Return the inverse discrete sine transform")
