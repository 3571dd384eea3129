"""Convolutions and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from wengert.core.diagnostics.argument_checks import require_one_number
from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError
from wengert.numpy._contractions import convolve as convolve_sequences
from wengert.scipy.ndimage._filters import correlate_images

MODES = ("full", "same", "valid")


def as_signal_pair(name: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    """Return two signals with as many axes, the longer one first where only overlaps are wanted."""
    if mode not in MODES:
        raise UsageError(name, f"mode={mode!r}", "'full', 'same' or 'valid' is needed", "Pass one of these")
    x: Any = as_tensor(in1)
    y: Any = as_tensor(in2)
    if x.ndim != y.ndim:
        given = f"signals with {x.ndim} and {y.ndim} axes"
        raise ShapeError(name, given, "as many axes are needed", "Reshape one of them")
    return x, y


def must_swap(name: str, x: Any, y: Any, mode: str, axes: tuple[int, ...]) -> bool:
    """Tell whether the second signal covers the first, of which only overlaps are wanted."""
    longer = [x.shape[i] >= y.shape[i] for i in axes]
    if mode != "valid" or all(longer):
        return False
    if not all(y.shape[i] >= x.shape[i] for i in axes):
        given = f"shapes {x.shape} and {y.shape} with mode='valid'"
        raise ShapeError(name, given, "one as long as the other along every axis is needed", "Pad one")
    return True


def correlate_windows(x: Any, y: Any, mode: str) -> Any:
    """Return the correlation of real or complex signals, all axes of which are of space, without conjugation."""
    lengths = y.shape
    full = tuple(n - 1 for n in lengths)
    low = {"full": full, "same": tuple(n // 2 for n in lengths), "valid": ()}[mode]
    high = low if mode != "same" else tuple(n - a for n, a in zip(full, low, strict=True))
    kinds = np.result_type(x.dtype, y.dtype)
    kind = kinds if kinds.kind in "fc" else np.dtype(float)
    found = correlate_images(x.astype(kind)[None, None, None], y.astype(kind), low, high)[0, 0, 0]
    return found if kind == kinds else np.round(found).astype(kinds)


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Return the convolution of two signals along all axes; see `scipy.signal.convolve`.

    Args:
        in1: a signal.
        in2: another, with as many axes.
        mode: "full", "same" (as long as the first) or "valid" (where one covers the other).
        method: "direct", "fft", or "auto", which is the former here.

    Raises:
        ShapeError: the shapes do not fit.
        UsageError: the mode or method is unknown.

    >>> convolve([1.0, 2.0, 3.0], [0.0, 1.0], mode="same")
    tensor([0., 1., 2.])
    """
    x, y = as_signal_pair("convolve", in1, in2, mode)
    if method == "fft":
        return fftconvolve(x, y, mode)
    if method not in ("auto", "direct"):
        raise UsageError("convolve", f"method={method!r}", "'auto', 'direct' or 'fft' is needed", "Leave it out")
    if not x.ndim:
        return x * y
    if must_swap("convolve", x, y, mode, tuple(range(x.ndim))):
        x, y = y, x
    if x.ndim == 1 and (mode != "same" or len(x) >= len(y)):
        return convolve_sequences(x, y, mode)
    return correlate_in_mode(x, np.flip(y), mode)


def correlate_in_mode(x: Any, y: Any, mode: str) -> Any:
    """Return a correlation whose part for "same" is that of SciPy's convolutions, in the middle of the full one."""
    if mode != "same":
        return correlate_windows(x, y, mode)
    found = correlate_windows(x, y, "full")
    return crop_middle(found, x.shape)


def crop_middle(x: Any, shape: tuple[int, ...]) -> Any:
    """Return the middle part of a shape."""
    starts = [(n - m) // 2 for n, m in zip(x.shape, shape, strict=True)]
    return x[tuple(slice(a, a + m) for a, m in zip(starts, shape, strict=True))]


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Return the correlation of two signals along all axes, the second conjugated; see `scipy.signal.correlate`.

    Args:
        in1: a signal.
        in2: another, with as many axes.
        mode: "full", "same" (as long as the first) or "valid" (where one covers the other).
        method: "direct", "fft", or "auto", which is the former here.

    Raises:
        ShapeError: the shapes do not fit.
        UsageError: the mode or method is unknown.

    >>> correlate([1.0, 2.0, 3.0], [0.0, 1.0], mode="valid")
    tensor([2., 3.])
    """
    x, y = as_signal_pair("correlate", in1, in2, mode)
    other = np.conjugate(y) if y.dtype.kind == "c" else y
    if not x.ndim:
        return x * other
    return convolve(x, np.flip(other), mode, method)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """Return the convolution of two images; see `scipy.signal.convolve2d`.

    Args:
        in1: an image.
        in2: another.
        mode: "full", "same" (as large as the first) or "valid" (where one covers the other).
        boundary: what is around the first image: "fill", "wrap" or "symm".
        fillvalue: the number with which it is filled.

    Raises:
        ShapeError: they have not got two axes each.
        UsageError: the mode or boundary is unknown.

    >>> convolve2d([[1.0, 2.0]], [[1.0, 1.0]], boundary="wrap")
    tensor([[3., 3., 3.]])
    """
    return convolve_images("convolve2d", in1, in2, mode, boundary, fillvalue, later=0)


def convolve_images(name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, later: int) -> Any:
    """Return the convolution of two images; the middle is one `later` where the second has an even length."""
    x, y = as_signal_pair(name, in1, in2, mode)
    around: Any = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}.get(boundary)
    if around is None:
        raise UsageError(name, f"boundary={boundary!r}", "'fill', 'wrap' or 'symm' is needed", "Pass one of these")
    if boundary == "fill":
        require_one_number(name, "fillvalue", fillvalue, real="c" not in x.dtype.kind + y.dtype.kind)
    if x.ndim != 2:
        raise ShapeError(name, f"signals with {x.ndim} axes", "two are needed", "Use convolve")
    if must_swap(name, x, y, mode, (0, 1)):
        x, y = y, x
    if mode == "valid":
        return correlate_windows(x, np.flip(y), "valid")
    width = [(n - 1, n - 1) for n in y.shape]
    options: dict[str, Any] = {"constant_values": fillvalue} if boundary == "fill" else {}
    framed: Any = np.pad(x, width, around, **options)
    found = correlate_windows(framed, np.flip(y), "valid")
    if mode == "full":
        return found
    return found[
        tuple(slice((k - 1 + later) // 2, (k - 1 + later) // 2 + n) for n, k in zip(x.shape, y.shape, strict=True))
    ]


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """Return the correlation of two images, the second conjugated; see `scipy.signal.correlate2d`.

    Args:
        in1: an image.
        in2: another.
        mode: "full", "same" (as large as the first) or "valid" (where one covers the other).
        boundary: what is around the first image: "fill", "wrap" or "symm".
        fillvalue: the number with which it is filled.

    Raises:
        ShapeError: they have not got two axes each.
        UsageError: the mode or boundary is unknown.

    >>> correlate2d([[1.0, 2.0]], [[0.0, 1.0]], mode="valid")
    tensor([[2.]])
    """
    y: Any = as_tensor(in2)
    other = np.conjugate(y) if y.dtype.kind == "c" else y
    return convolve_images("correlate2d", in1, np.flip(other), mode, boundary, fillvalue, later=1)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Return the convolution of two signals along axes by Fourier transforms; see `scipy.signal.fftconvolve`.

    Args:
        in1: a signal.
        in2: another, with as many axes.
        mode: "full", "same" (as long as the first) or "valid" (where one covers the other).
        axes: the axes to convolve along, all if they are not given; the others broadcast.

    Raises:
        ShapeError: the shapes do not fit.
        UsageError: the mode is unknown.

    >>> fftconvolve([1.0, 2.0, 3.0], [0.0, 1.0]).round(6)
    tensor([0., 1., 2., 3.])
    """
    import scipy.fft

    x, y = as_signal_pair("fftconvolve", in1, in2, mode)
    if not x.ndim:
        return x * y
    if 0 in x.shape or 0 in y.shape:
        return as_tensor(np.array([]))
    along = tuple(range(x.ndim)) if axes is None else normalize_axis_tuple(axes, x.ndim)
    along = tuple(i for i in along if x.shape[i] != 1 and y.shape[i] != 1)
    if must_swap("fftconvolve", x, y, mode, along):
        x, y = y, x
    shape = np.broadcast_shapes(*(tuple(1 if i in along else n for i, n in enumerate(z.shape)) for z in (x, y)))
    full = tuple(x.shape[i] + y.shape[i] - 1 if i in along else n for i, n in enumerate(shape))
    real = x.dtype.kind != "c" and y.dtype.kind != "c"
    if not along:
        found = x * y
    else:
        lengths = [scipy.fft.next_fast_len(full[i], real) for i in along]
        forward, backward = (np.fft.rfftn, np.fft.irfftn) if real else (np.fft.fftn, np.fft.ifftn)
        product = forward(x, lengths, axes=along) * forward(y, lengths, axes=along)
        found = backward(product, lengths, axes=along)[tuple(map(slice, full))]
    if mode == "full":
        return found
    if mode == "same":
        return crop_middle(found, (x if x.shape != () else y).shape)
    return crop_middle(found, tuple(x.shape[i] - y.shape[i] + 1 if i in along else n for i, n in enumerate(full)))


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Return what `fftconvolve` does, in one piece; see `scipy.signal.oaconvolve`.

    Args:
        in1: a signal.
        in2: another, with as many axes.
        mode: "full", "same" (as long as the first) or "valid" (where one covers the other).
        axes: the axes to convolve along, all if they are not given; the others broadcast.

    >>> oaconvolve([1.0, 2.0, 3.0], [0.0, 1.0], mode="valid").round(6)
    tensor([1., 2.])
    """
    return fftconvolve(in1, in2, mode, axes)
