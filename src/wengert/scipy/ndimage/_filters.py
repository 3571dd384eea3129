"""Filters of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.diagnostics.argument_checks import as_whole, require_one_number
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import is_concrete
from wengert.errors import ShapeError, UsageError
from wengert.primitives.signals.convolution import correlation
from wengert.transforms.reverse import stop_gradient

PADDING = {
    **dict.fromkeys(("reflect", "grid-mirror"), "symmetric"),
    **dict.fromkeys(("constant", "grid-constant"), "constant"),
    "nearest": "edge",
    "mirror": "reflect",
    **dict.fromkeys(("wrap", "grid-wrap"), "wrap"),
}
"""NumPy's names of what is beyond the edges of images, by SciPy's."""


def correlate_images(
    x: Any, w: Any, low: Sequence[int] = (), high: Sequence[int] = (), stride: int = 1, spread: int = 1
) -> Any:
    """Return the correlation of images, behind three axes, with weights; `low` and `high` count zeros around them."""
    rank = w.ndim
    ones, none = (1,) * rank, (0,) * rank
    steps = {"stride": (stride,) * rank, "dilation": ones, "spread": (spread,) * rank}
    return apply(correlation, x, w[None, None, None], **steps, low=tuple(low) or none, high=tuple(high) or none)


def correlate_rows(x: Any, w: Any, stride: int = 1, spread: int = 1) -> Any:
    """Return the correlation along the last axis with weights in one row, wherever these meet an element."""
    around = (len(w) - 1,)
    rows = x.reshape(1, math.prod(x.shape[:-1]), 1, x.shape[-1])
    found = correlate_images(rows, w, around, around, stride, spread)
    return found.reshape(*x.shape[:-1], found.shape[-1])


def per_axis(value: Any, count: int) -> list[Any]:
    """Return a value for each axis; one alone is that of all."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value] * count


def correlate_centered(name: str, x: Any, w: Any, mode: str, cval: Any, origins: Sequence[int]) -> Any:
    """Return the correlation of an image with weights, whose centers are moved by the origins."""
    if mode not in PADDING:
        known = ", ".join(PADDING)
        raise UsageError(name, f"mode={mode!r}", f"one of {known} is needed", "Pass one of them")
    if w.ndim != x.ndim:
        given = f"weights with {w.ndim} axes for an image with {x.ndim}"
        raise ShapeError(name, given, "as many axes are needed", "Reshape the weights")
    require_one_number(name, "cval", cval, real=x.dtype.kind != "c")
    low = [n // 2 + a for n, a in zip(w.shape, origins, strict=True)]
    if any(not 0 <= a < n for a, n in zip(low, w.shape, strict=True)):
        given = f"origin {tuple(origins)} for weights of shape {w.shape}"
        raise UsageError(name, given, "a center inside of the weights is needed", "Correct it")
    options: dict[str, Any] = {"constant_values": cval} if PADDING[mode] == "constant" else {}
    width = [(a, n - 1 - a) for a, n in zip(low, w.shape, strict=True)]
    around: Any = PADDING[mode]
    kind = np.result_type(x.dtype, w.dtype, *(() if x.dtype.kind in "fc" else (float,)))
    framed: Any = np.pad(x.astype(kind), width, around, **options)
    found = correlate_images(framed[None, None, None], w.astype(kind))[0, 0, 0]
    return found if found.dtype == x.dtype or x.dtype.kind != "c" == kind.kind else found.astype(x.dtype)


def correlate(input: Any, weights: Any, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Any:
    """Return an image whose elements are weighted sums of those around; see `scipy.ndimage.correlate`.

    Args:
        input: the image.
        weights: weights, with as many axes; the conjugates of complex ones are taken.
        mode: what is beyond the edges: "reflect", "constant", "nearest", "mirror" or "wrap".
        cval: the value there, where the mode is "constant".
        origin: by how much the center of the weights is moved, for all axes or for each.

    Raises:
        ShapeError: the weights have another number of axes.
        UsageError: the mode is unknown, or the center outside of the weights.

    >>> correlate([1.0, 2.0, 4.0], [1.0, 0.0, -1.0])
    tensor([-1., -3., -2.])
    """
    x = as_tensor(input)
    return correlate_centered("correlate", x, conjugate_weights(weights), mode, cval, per_axis(origin, x.ndim))


def conjugate_weights(weights: Any) -> Any:
    """Return the weights of a correlation, conjugated if they are complex, as SciPy does."""
    w = as_tensor(weights)
    return np.conjugate(w) if w.dtype.kind == "c" else w


def convolve(input: Any, weights: Any, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0) -> Any:
    """Return the convolution of an image with weights; see `scipy.ndimage.convolve`.

    Args:
        input: the image.
        weights: weights, with as many axes.
        mode: what is beyond the edges: "reflect", "constant", "nearest", "mirror" or "wrap".
        cval: the value there, where the mode is "constant".
        origin: by how much the center of the weights is moved, for all axes or for each.

    Raises:
        ShapeError: the weights have another number of axes.
        UsageError: the mode is unknown, or the center outside of the weights.

    >>> convolve([1.0, 2.0, 4.0], [1.0, 0.0, -1.0])
    tensor([1., 3., 2.])
    """
    x, w = as_tensor(input), as_tensor(weights)
    moved = [-a - (n % 2 == 0) for a, n in zip(per_axis(origin, x.ndim), w.shape, strict=False)]
    turned: Any = np.flip(w)
    return correlate_centered("convolve", x, turned, mode, cval, moved)


def correlate_along(name: str, x: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int) -> Any:
    """Return the correlation of an image with weights along an axis."""
    at = normalize_axis_index(axis, x.ndim)
    w = as_tensor(weights)
    if w.ndim != 1:
        raise ShapeError(name, f"weights of shape {w.shape}", "one row is needed", "Reshape them")
    kernel = w.reshape((1,) * at + (-1,) + (1,) * (x.ndim - at - 1))
    return correlate_centered(name, x, kernel, mode, cval, [origin if i == at else 0 for i in range(x.ndim)])


def correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """Return the correlation of an image with weights along an axis; see `scipy.ndimage.correlate1d`.

    >>> correlate1d([[1.0, 2.0, 4.0]], [1.0, 0.0, -1.0])
    tensor([[-1., -3., -2.]])
    """
    return correlate_along("correlate1d", as_tensor(input), conjugate_weights(weights), axis, mode, cval, origin)


def convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """Return the convolution of an image with weights along an axis; see `scipy.ndimage.convolve1d`.

    >>> convolve1d([[1.0, 2.0, 4.0]], [1.0, 0.0, -1.0])
    tensor([[1., 3., 2.]])
    """
    w: Any = as_tensor(weights)
    return correlate_along("convolve1d", as_tensor(input), np.flip(w), axis, mode, cval, -origin - (len(w) % 2 == 0))


def gaussian_weights(sigma: Any, order: int, radius: int) -> Any:
    """Return a Gaussian, or a derivative of it, as weights of a convolution."""
    x = np.arange(-radius, radius + 1.0)
    variance = sigma * sigma
    bell = np.exp(-0.5 / variance * x**2)
    bell = bell / np.sum(bell)
    polynomial: list[Any] = [1.0]  # of the derivative: p' - x p / variance, from the lowest power on
    for _ in range(order):
        slope = [*[k * c for k, c in enumerate(polynomial)][1:], 0.0, 0.0]
        rise = [0.0, *(-c / variance for c in polynomial)]
        polynomial = [a + b for a, b in zip(slope, rise, strict=True)]
    return sum(c * x**k for k, c in enumerate(polynomial)) * bell


def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    radius: int | None = None,
) -> Any:
    """Return an image smoothed by a Gaussian along an axis; see `scipy.ndimage.gaussian_filter1d`.

    Args:
        input: the image.
        sigma: the standard deviation, which is differentiated.
        axis: the axis.
        order: of which derivative of the Gaussian the weights are.
        mode: what is beyond the edges: "reflect", "constant", "nearest", "mirror" or "wrap".
        cval: the value there, where the mode is "constant".
        truncate: at how many standard deviations the weights end.
        radius: where they end instead; needed of a sigma that is traced, or differs from lane to lane.

    >>> gaussian_filter1d([0.0, 1.0, 0.0], 1.0, radius=1)
    tensor([0.27406862, 0.45186276, 0.27406862])
    """
    require_one_number("gaussian_filter", "sigma", sigma)
    require_one_number("gaussian_filter", "truncate", truncate)
    known: Any = stop_gradient(sigma)
    if is_concrete(known) and not 0 <= float(np.asarray(known)) < np.inf:
        given = f"sigma={float(np.asarray(known))}"
        raise UsageError("gaussian_filter", given, "a finite number, 0 or more, is needed", "Correct it")
    if radius is None and not is_concrete(known):
        given = "a sigma that is being traced, or differs from lane to lane, without a radius"
        needed = "how many weights there are follows from sigma, and has to be known"
        raise UsageError("gaussian_filter", given, needed, "Pass radius=int(truncate * sigma + 0.5) of a usual sigma")
    width = int(truncate * float(np.asarray(known)) + 0.5) if radius is None else radius
    width, order = as_whole("gaussian_filter", "radius", width, 0), as_whole("gaussian_filter", "order", order, 0)
    weights = np.flip(as_tensor(gaussian_weights(sigma, order, width)))
    return correlate_along("gaussian_filter1d", as_tensor(input), weights, axis, mode, cval, 0)


def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """Return an image smoothed by a Gaussian along axes; see `scipy.ndimage.gaussian_filter`.

    Args:
        input: the image.
        sigma: the standard deviation, for all axes or for each; so are the next ones. Along axes for which it is known
            to be 0, nothing is smoothed.
        order: of which derivative of the Gaussian the weights are.
        mode: what is beyond the edges: "reflect", "constant", "nearest", "mirror" or "wrap".
        cval: the value there, where the mode is "constant".
        truncate: at how many standard deviations the weights end.
        radius: where they end instead; needed of a sigma that is traced, or differs from lane to lane.
        axes: the axes, all if they are not given.

    >>> gaussian_filter([[0.0, 1.0, 0.0]], 1.0, radius=1, axes=1)
    tensor([[0.27406862, 0.45186276, 0.27406862]])
    """
    image = as_tensor(input)
    x = image
    chosen = tuple(range(image.ndim)) if axes is None else normalize_axis_tuple(axes, image.ndim)
    settings = [per_axis(value, len(chosen)) for value in (sigma, order, mode, radius)]
    for axis, width, derivative, around, end in zip(chosen, *settings, strict=True):
        if not vanishes(width):
            x = gaussian_filter1d(x, width, axis, derivative, around, cval, truncate, end)
    return np.copy(x) if x is image else x


def vanishes(sigma: Any) -> bool:
    """Tell whether a standard deviation is known to be so small that SciPy leaves the axis as it is."""
    known: Any = stop_gradient(sigma)
    return is_concrete(known) and float(np.asarray(known)) <= 1e-15


def uniform_filter1d(
    input: Any, size: int, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """Return the means of so many elements along an axis; see `scipy.ndimage.uniform_filter1d`.

    >>> uniform_filter1d([3.0, 6.0, 0.0], 3)
    tensor([4., 3., 2.])
    """
    length = as_whole("uniform_filter1d", "size", size, 1)
    return correlate_along("uniform_filter1d", as_tensor(input), np.full(length, 1 / length), axis, mode, cval, origin)


def uniform_filter(input: Any, size: Any = 3, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0) -> Any:
    """Return the means over boxes; see `scipy.ndimage.uniform_filter`.

    >>> uniform_filter([[3.0, 6.0, 0.0]], (1, 3))
    tensor([[4., 3., 2.]])
    """
    x = as_tensor(input)
    settings = [per_axis(value, x.ndim) for value in (size, mode, origin)]
    if any(len(values) != x.ndim for values in settings):
        given = f"size={size!r:.40}, mode={mode!r:.40} and origin={origin!r:.40} for an image with {x.ndim} axes"
        raise ShapeError("uniform_filter", given, "one for each axis is needed", "Or pass one for all")
    for axis, length, around, center in zip(range(x.ndim), *settings, strict=True):
        x = uniform_filter1d(x, length, axis, around, cval, center) if length > 1 else x
    return x


def smooth_difference(name: str, input: Any, axis: int, mode: str, cval: Any, smooth: Sequence[float]) -> Any:
    """Return differences along an axis, smoothed along the others."""
    x = as_tensor(input)
    at = normalize_axis_index(axis, x.ndim)
    found = correlate_along(name, x, [-1.0, 0.0, 1.0], at, mode, cval, 0)
    for other in range(x.ndim):
        found = found if other == at else correlate_along(name, found, list(smooth), other, mode, cval, 0)
    return found


def sobel(input: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """Return the slopes of an image by Sobel's filter; see `scipy.ndimage.sobel`.

    >>> sobel([[1.0, 2.0, 4.0]])
    tensor([[ 4., 12.,  8.]])
    """
    return smooth_difference("sobel", input, axis, mode, cval, (1.0, 2.0, 1.0))


def prewitt(input: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """Return the slopes of an image by Prewitt's filter; see `scipy.ndimage.prewitt`.

    >>> prewitt([[1.0, 2.0, 4.0]])
    tensor([[3., 9., 6.]])
    """
    return smooth_difference("prewitt", input, axis, mode, cval, (1.0, 1.0, 1.0))


def laplace(input: Any, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """Return the sum of second differences along all axes; see `scipy.ndimage.laplace`.

    >>> laplace([1.0, 2.0, 4.0])
    tensor([ 1.,  1., -2.])
    """
    x = as_tensor(input)
    if not x.ndim:
        raise ShapeError("laplace", "an image without axes", "one axis at least is needed", "Reshape it")
    parts = [correlate_along("laplace", x, [1.0, -2.0, 1.0], axis, mode, cval, 0) for axis in range(x.ndim)]
    return sum(parts[1:], parts[0])


def normalise_axes(name: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Return axes counted from 0, all if they are not given."""
    chosen = tuple(range(rank)) if axes is None else normalize_axis_tuple(axes, rank)
    if not chosen:
        raise UsageError(name, "no axes", "one at least is needed", "Leave axes out for all")
    return chosen


def slopes(
    x: Any, sigma: Any, order: int, mode: Any, cval: Any, chosen: Sequence[int], smoothed: Sequence[int], options: Any
) -> list[Any]:
    """Return the derivatives of an order along each of some axes of an image that a Gaussian smooths along others."""
    return [
        gaussian_filter(x, sigma, [order * (other == axis) for other in smoothed], m, cval, axes=smoothed, **options)
        for axis, m in zip(chosen, per_axis(mode, len(chosen)), strict=True)
    ]


def gaussian_laplace(
    input: Any, sigma: Any, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None, **kwargs: Any
) -> Any:
    """Return the sum of second derivatives of an image smoothed by a Gaussian; see `scipy.ndimage.gaussian_laplace`.

    Args:
        input: the image.
        sigma: the standard deviation, for all axes or for each.
        mode: what is beyond the edges: "reflect", "constant", "nearest", "mirror" or "wrap".
        cval: the value there, where the mode is "constant".
        axes: the axes, all if they are not given.
        **kwargs: `truncate` and `radius` of `gaussian_filter`.

    >>> gaussian_laplace([0.0, 1.0, 0.0], 1.0, radius=1)
    tensor([ 0.        , -0.45186276,  0.        ])
    """
    x = as_tensor(input)
    chosen = normalise_axes("gaussian_laplace", axes, x.ndim)
    parts = slopes(x, sigma, 2, mode, cval, chosen, chosen, kwargs)
    return sum(parts[1:], parts[0])


def gaussian_gradient_magnitude(
    input: Any, sigma: Any, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None, **kwargs: Any
) -> Any:
    """Return the slopes of a smoothed image, whatever their direction; see `scipy.ndimage.gaussian_gradient_magnitude`.

    Where an image is flat the derivative is 0, as that of a norm at 0 is.

    Args:
        input: the image.
        sigma: the standard deviation, for all axes or for each.
        mode: what is beyond the edges: "reflect", "constant", "nearest", "mirror" or "wrap".
        cval: the value there, where the mode is "constant".
        axes: the axes of slopes, all if they are not given; it is smoothed along all.
        **kwargs: `truncate` and `radius` of `gaussian_filter`.

    >>> gaussian_gradient_magnitude([0.0, 1.0, 0.0], 1.0, radius=1)
    tensor([0.27406862, 0.        , 0.27406862])
    """
    x = as_tensor(input)
    chosen = normalise_axes("gaussian_gradient_magnitude", axes, x.ndim)
    parts = slopes(x, sigma, 1, mode, cval, chosen, range(x.ndim), kwargs)
    stack = np.stack(parts)
    total = np.sqrt(np.sum(stack * stack, axis=0)) if x.dtype.kind == "c" else np.linalg.norm(stack, axis=0)
    return total if total.dtype == x.dtype else total.astype(x.dtype)
