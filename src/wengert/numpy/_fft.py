"""Functions of `numpy.fft` with NumPy's signatures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import implements
from wengert.core.values.numpy_overrides import NOTHING
from wengert.core.values.plain_functions import enter_by_numpy
from wengert.errors import UsageError, describe
from wengert.numpy._contractions import array
from wengert.numpy._namespace import document_as
from wengert.numpy._results import with_out
from wengert.primitives.signals import fourier
from wengert.traces.eager import eager

Transform = Callable[..., Any]


def normalisation(name: str, norm: Any) -> Any:
    """Return the name of a normalisation, None for the usual one."""
    if not (norm is None or (isinstance(norm, str) and norm in fourier.SWAPPED)):
        needed = "'backward', 'ortho' or 'forward' is needed"
        raise ValueError(describe(name, f"norm={norm!r:.40}", needed, "Leave it out for 'backward'"))
    return norm


def as_length(name: str, n: Any) -> int:
    """Return a number of elements that is not zero."""
    count = operator.index(n)
    if count < 1:
        given = f"{count} elements to transform"
        raise ValueError(describe(name, given, "one at least is needed", "Pass n=, or leave empty axes out"))
    return count


def transform(name: str, primitive: Primitive, summary: str, default: Callable[[int], int]) -> Transform:
    """Return the function of a transform along one axis; `default` is its length for that of the operand."""
    transformed = eager(primitive)

    @document_as(f"fft.{name}", summary)
    def function(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        x = array(name, a)
        place = normalize_axis_index(axis, x.ndim)
        count = as_length(name, default(x.shape[place]) if n is None else n)
        if name == "rfft" and x.dtype.kind == "c":
            given = f"dtype {x.dtype}"
            raise TypeError(describe("rfft", given, "real elements are needed", "Use fft, or pass the real part"))
        return with_out(name, transformed(x, {"n": count, "axis": place, "norm": normalisation(name, norm)}), out)

    return function


def whole(count: int) -> int:
    """Return the length of a whole spectrum."""
    return count


def double(count: int) -> int:
    """Return the even length of what has a half spectrum."""
    return 2 * (count - 1)


fft = implements(np.fft.fft)(transform("fft", fourier.fft, "Return the discrete Fourier transform", whole))
ifft = implements(np.fft.ifft)(transform("ifft", fourier.ifft, "Return the inverse Fourier transform", whole))
rfft = implements(np.fft.rfft)(transform("rfft", fourier.rfft, "Return half of the spectrum of real values", whole))
irfft = implements(np.fft.irfft)(transform("irfft", fourier.irfft, "Return real values of half a spectrum", double))


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return the real spectrum of half of a Hermitian signal; see `numpy.fft.hfft`."""
    x = array("hfft", a)
    return irfft(np.conjugate(x), n, axis, fourier.SWAPPED[normalisation("hfft", norm)], out)


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return half of the Hermitian signal of a real spectrum; see `numpy.fft.ihfft`."""
    found = np.conjugate(rfft(a, n, axis, fourier.SWAPPED[normalisation("ihfft", norm)]))
    return with_out("ihfft", found, out)


# Several axes


def transform_axes(name: str, x: Any, s: Any, axes: Any) -> list[tuple[Any, int]]:
    """Return lengths and axes to transform; a length of -1 or None is that of the operand."""
    if axes is None:
        axes = range(-(x.ndim if s is None else len(s)), 0)
    lengths: Sequence[Any] = [None] * len(axes) if s is None else [None if n in (-1, None) else n for n in s]
    if len(lengths) != len(axes):
        given = f"{len(lengths)} lengths for {len(axes)} axes"
        raise ValueError(describe(name, given, "one for each axis is needed", "Pass s and axes of the same length"))
    return list(zip(lengths, map(operator.index, axes), strict=True))


def nd_transform(name: str, primitives: tuple[Primitive, Primitive], summary: str, default: Any = None) -> Transform:
    """Return the function that transforms along one axis after the other, the last first, as NumPy does.

    It takes two at once as long as there are, which are different.
    """
    along, planes = map(eager, primitives)

    @document_as(f"fft.{name}", summary)
    def function(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        x = array(name, a)
        rank, norm = x.ndim, normalisation(name, norm)
        found = [(n, normalize_axis_index(axis, rank)) for n, axis in transform_axes(name, x, s, axes)]
        while found:
            n, inner = found.pop()
            inside = as_length(name, x.shape[inner] if n is None else n)
            if found and found[-1][1] != inner:
                n, outer = found.pop()
                lengths = as_length(name, x.shape[outer] if n is None else n), inside
                x = planes(x, {"n": lengths, "outer": outer, "inner": inner, "norm": norm})
            else:
                x = along(x, {"n": inside, "axis": inner, "norm": norm})
        return with_out(name, x, out)

    return function


def real_transform(name: str, default: Any = None, *, inverse: bool = False) -> Transform:
    """Return the transform of real values to half a spectrum along the last axis, and along the others as usual.

    Its inverse begins with the first axis.
    """
    what = "real values of half a spectrum" if inverse else "half of the spectrum of real values"

    @document_as(f"fft.{name}", f"Return {what} over several axes")
    def function(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        x = array(name, a)
        found = transform_axes(name, x, s, axes)
        if not found:
            raise UsageError(name, "no axes", "one at least is needed", "Pass axes, or an array that has some")
        *rest, (n, axis) = found
        if not inverse:
            x = rfft(x, n, axis, norm)
        for count, place in rest if inverse else reversed(rest):
            x = (ifft if inverse else fft)(x, count, place, norm)
        if inverse:  # a length of -1 means the operand's, as it is
            x = irfft(x, x.shape[axis] if s is not None and n is None else n, axis, norm)
        return with_out(name, x, out)

    return function


PLANE = (-2, -1)
FORWARD, INVERSE = (fourier.fft, fourier.fft2), (fourier.ifft, fourier.ifft2)
implements(np.fft.fftn)(nd_transform("fftn", FORWARD, "Return the Fourier transform over several axes"))
implements(np.fft.ifftn)(nd_transform("ifftn", INVERSE, "Return the inverse Fourier transform over several axes"))
implements(np.fft.fft2)(nd_transform("fft2", FORWARD, "Return the Fourier transform over two axes", PLANE))
implements(np.fft.ifft2)(nd_transform("ifft2", INVERSE, "Return the inverse Fourier transform over two axes", PLANE))
implements(np.fft.rfftn)(real_transform("rfftn"))
implements(np.fft.rfft2)(real_transform("rfft2", PLANE))
implements(np.fft.irfftn)(real_transform("irfftn", inverse=True))
implements(np.fft.irfft2)(real_transform("irfft2", PLANE, inverse=True))


# Shifts and frequencies


def roll_half(name: str, x: Any, axes: Any, sign: int) -> Any:
    """Return an array whose halves along some axes have changed places."""
    x = array(name, x)
    if axes is None:
        axes = tuple(range(x.ndim))
    if isinstance(axes, int | np.integer):
        return np.roll(x, sign * (x.shape[axes] // 2), axes)
    return np.roll(x, [sign * (x.shape[axis] // 2) for axis in axes], axes)


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """Return a spectrum with the frequency zero in the middle; see `numpy.fft.fftshift`."""
    return roll_half("fftshift", x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """Return a spectrum with the frequency zero in front; see `numpy.fft.ifftshift`."""
    return roll_half("ifftshift", x, axes, -1)


def sample_count(name: str, n: Any) -> int:
    """Return a number of samples, as NumPy takes it."""
    if not isinstance(n, int | np.integer):
        raise ValueError(describe(name, f"n={n!r:.40}", "an integer is needed", "Convert it with int()"))
    return int(n)


@implements(np.fft.fftfreq, by=NOTHING)
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of a spectrum; see `numpy.fft.fftfreq`."""
    count = sample_count("fftfreq", n)
    middle = (count - 1) // 2 + 1
    return np.concatenate([np.arange(middle), np.arange(-(count // 2), 0)]) * (1.0 / (count * d))


@implements(np.fft.rfftfreq, by=NOTHING)
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of half a spectrum; see `numpy.fft.rfftfreq`."""
    count = sample_count("rfftfreq", n)
    return np.arange(count // 2 + 1) * (1.0 / (count * d))


enter_by_numpy(
    *(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft, np.fft.fft2, np.fft.irfft2),
    *(np.fft.rfft2, np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn),
    most=1,
)
