"""Discrete Fourier transforms along one axis or two: linear, and each the transpose of another up to weights.

The matrix of `fft` is symmetric, so its transpose is itself; an argument that is cut or filled up with zeros to n
elements is filled up or cut on the way back. `rfft` and `irfft` are linear over the real numbers alone, and so are
their transposes. Those over more axes are several of these.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Literal

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval
from wengert.primitives.contractions import conj

Norm = Literal["backward", "ortho", "forward"] | None
SWAPPED: dict[Norm, Norm] = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The normalisation that a transform in the other direction has with the same factor."""

LARGE = 1 << 13
"""Elements of an array that do not fit the nearest cache."""

UFUNCS: Any = sys.modules.get(f"{np.fft.__name__}._pocketfft_umath")  # private: without it NumPy's functions are called
COMPLEX = {"d": "D", "D": "D", "f": "F", "F": "F"}
RESULTS = {"fft": COMPLEX, "ifft": COMPLEX, "rfft": {"d": "D", "f": "F"}, "irfft": {"D": "d", "F": "f"}}
"""The dtypes that a ufunc gives, of those it is called with."""

ALIASED = 1 << 11
"""Bytes of which rows are no multiple while columns are transformed: their elements would compete for few places in
the caches. 256 x 256 take 0.55 of the time then, with the copies there and back."""

GAP = 64
"""Bytes behind such rows."""


def cut_or_pad(x: Any, length: int, axis: int) -> Any:
    """Return an array cut or filled up with zeros to a length along an axis."""
    own = x.shape[axis]
    if own >= length:
        return x if own == length else x[(slice(None),) * axis + (slice(length),)]
    return np.pad(x, [(0, length - own) if i == axis else (0, 0) for i in range(x.ndim)])


def receive_cotangent(ct: Any, aval: Aval, *axes: int) -> Any:
    """Return the cotangent of an operand from that of its first elements along some axes, in memory of its own."""
    for axis in axes:
        ct = cut_or_pad(ct, aval.shape[axis], axis)
    found = ct if aval.dtype.kind == "c" else ct.real
    return np.array(found) if type(found) is np.ndarray and found.base is not None else found


def weights(x: Any, n: int, axis: int, inner: float) -> Any:
    """Return the weights of the elements of half a spectrum: 1 for those that stand for one frequency, not for two."""
    found = np.full(x.shape[axis], inner, x.real.dtype)
    found[0] = 1
    if n % 2 == 0:
        found[-1] = 1
    return found.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


@functools.lru_cache(maxsize=1024)
def factor(n: int, norm: Norm, real: str, exact: bool) -> Any:
    """Return the factor of NumPy's normalisation of a transform, in the precision of a dtype.

    Its integer 1 has the ufuncs compute in double precision. If that need not be, single takes half of the time.
    """
    if norm in (None, "backward"):
        return 1 if exact and real == "f" else np.dtype(real).type(1)
    return np.reciprocal(np.sqrt(n, dtype=real) if norm == "ortho" else n, dtype=real)


def transform_along(name: str, x: Any, n: int, axis: int, norm: Norm, out: Any = None, *, exact: bool = True) -> Any:
    """Return a transform along one axis by the ufunc beneath `numpy.fft`, whose functions take 2 us around it.

    Args:
        name: of the function.
        x: an array.
        n: the number of elements that are transformed.
        axis: counted from 0.
        norm: the normalisation.
        out: memory for the result, that of `x` for instance.
        exact: whether the result has NumPy's bits.
    """
    dtype = RESULTS[name].get(x.dtype.char)
    if dtype is None or UFUNCS is None:
        return getattr(np.fft, name)(x, n, axis, norm, out)
    if name == "rfft":
        ufunc, count = f"rfft_n_{'odd' if n % 2 else 'even'}", n // 2 + 1
    else:
        ufunc, count = name, n
    if out is None:
        shape = x.shape
        shape = None if shape[axis] == count else (*shape[:axis], count, *shape[axis + 1 :])
        out = np.empty_like(x, dtype, shape=shape)
    scale = factor(n, norm if name in ("fft", "rfft") else SWAPPED[norm], dtype.lower(), exact)
    return getattr(UFUNCS, ufunc)(x, scale, out, axes=[(axis,), (), (axis,)])


def transform_twice(name: str, x: Any, n: tuple[int, int], axes: tuple[int, int], norm: Norm, *, exact: bool) -> Any:
    """Return a transform along two axes, the second first, in memory that may have gaps."""
    fits = (x.shape[axes[0]], x.shape[axes[1]]) == n
    room = staggered_memory(x) if fits and x.ndim - 1 in axes else None
    found = transform_along(name, x, n[1], axes[1], norm, room, exact=exact)
    return transform_along(name, found, n[0], axes[0], norm, found if fits else None, exact=exact)


def staggered_memory(x: Any) -> Any:
    """Return memory for the spectrum of an array whose rows are not a multiple of `ALIASED` apart; None if none are."""
    dtype = COMPLEX.get(x.dtype.char)
    if dtype is None or x.size < LARGE or not x.flags.c_contiguous:
        return None
    *stack, length = x.shape
    item = np.dtype(dtype).itemsize
    if length * item % ALIASED:
        return None
    return np.empty((*stack, length + GAP // item), dtype)[..., :length]


def transform_of_cotangent(name: str, x: Any, n: int, axis: int, norm: Norm) -> Any:
    """Return a transform of a cotangent, which need not have NumPy's bits."""
    if type(x) is not np.ndarray:
        return getattr(np.fft, name)(x, n, axis, norm)
    return transform_along(name, x, n, axis, norm, exact=False)


# Along one axis


def evaluate_along(name: str) -> Any:
    """Return the evaluation of a function of `numpy.fft`."""

    def evaluate(x: Any, *, n: int, axis: int, norm: Norm) -> Any:
        return transform_along(name, x, n, axis, norm)

    return evaluate


def transpose_along(name: str) -> Any:
    """Return the transpose of `fft` or `ifft`, which transforms in the same direction."""

    def transpose(ct: Any, aval: Aval, *, n: int, axis: int, norm: Norm) -> Any:
        return receive_cotangent(transform_of_cotangent(name, ct, n, axis, norm), aval, axis)

    return transpose


def transpose_rfft(ct: Any, aval: Aval, *, n: int, axis: int, norm: Norm) -> Any:
    """Return Re(sum over k of ct_k exp(-2 pi i j k / n)): the conjugates back, of which `irfft` counts most twice."""
    halves = conj(ct) * weights(ct, n, axis, 0.5)
    return receive_cotangent(transform_of_cotangent("irfft", halves, n, axis, SWAPPED[norm]), aval, axis)


def transpose_irfft(ct: Any, aval: Aval, *, n: int, axis: int, norm: Norm) -> Any:
    """Return the conjugate spectrum, whose inner elements count twice."""
    found = transform_of_cotangent("rfft", ct, n, axis, SWAPPED[norm])
    return receive_cotangent(conj(found) * weights(found, n, axis, 2.0), aval, axis)


def transform(name: str, transpose: Any) -> Primitive:
    """Declare a transform along the axis that its parameter counts from 0."""
    form = Routine("(n)->(m)", "axis")
    return linear(name, evaluate_along(name), transpose=transpose, form=form, fresh=True)


fft = transform("fft", transpose_along("fft"))
ifft = transform("ifft", transpose_along("ifft"))
rfft = transform("rfft", transpose_rfft)
irfft = transform("irfft", transpose_irfft)


# Along two axes


def transform_of_planes(name: str, of_one: str) -> Primitive:
    """Declare a transform along two different axes, the inner one first, whose intermediate values stay in place."""

    def evaluate(x: Any, *, n: tuple[int, int], outer: int, inner: int, norm: Norm) -> Any:
        found = transform_twice(of_one, x, n, (outer, inner), norm, exact=True)
        return found if found.base is None else found.copy(order="K")

    def transpose(ct: Any, aval: Aval, *, n: tuple[int, int], outer: int, inner: int, norm: Norm) -> Any:
        axes = outer, inner
        if type(ct) is np.ndarray:
            found = transform_twice(of_one, ct, n, axes, norm, exact=False)
        else:
            found = getattr(np.fft, name)(ct, n, axes, norm)
        return receive_cotangent(found, aval, *axes)

    form = Routine("(n,m)->(k,l)", ("outer", "inner"))
    return linear(name, evaluate, transpose=transpose, form=form, fresh=True)


fft2 = transform_of_planes("fft2", "fft")
ifft2 = transform_of_planes("ifft2", "ifft")
