"""Integrals of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import require_one_number
from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError
from wengert.numpy._shapes import slice_axis


def widths(name: str, y: Any, x: Any, axis: int) -> Any:
    """Return the distances between places of samples along an axis."""
    places: Any = as_tensor(x)
    if places.ndim not in (1, y.ndim) or places.shape[axis if places.ndim > 1 else 0] != y.shape[axis]:
        needed = f"one place for each sample along axis {axis}, or the shape of the samples, is needed"
        raise ShapeError(name, f"x of shape {places.shape} for samples of shape {y.shape}", needed, "Reshape x")
    if places.ndim == 1:
        return np.diff(places).reshape((1,) * axis + (-1,) + (1,) * (y.ndim - axis - 1))
    return np.diff(places, axis=axis)


def distance(name: str, dx: Any) -> Any:
    """Return the distance between samples, which is one number."""
    require_one_number(name, "dx", dx)
    return dx


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Return the integrals up to each sample by the trapezoidal rule; see `scipy.integrate.cumulative_trapezoid`.

    Args:
        y: samples.
        x: their places.
        dx: the distance between them, where x is not given.
        axis: the axis to integrate along.
        initial: 0, to have an integral up to the first sample.

    Raises:
        ShapeError: there are no samples, or not as many places.
        UsageError: `initial` is something else.

    >>> cumulative_trapezoid([0.0, 2.0, 4.0], initial=0)
    tensor([0., 1., 4.])
    """
    heights: Any = as_tensor(y)
    at = normalize_axis_index(axis, heights.ndim)
    if not heights.shape[at]:
        given = f"samples of shape {heights.shape}"
        raise ShapeError("cumulative_trapezoid", given, "a sample at least is needed", "Pass some")
    distances = distance("cumulative_trapezoid", dx) if x is None else widths("cumulative_trapezoid", heights, x, at)
    found: Any = np.cumulative_sum(
        distances * (slice_axis(heights, at, 1, None) + slice_axis(heights, at, None, -1)) / 2.0, axis=at
    )
    if initial is None:
        return found
    if initial != 0:
        raise UsageError("cumulative_trapezoid", f"initial={initial!r}", "0 or None is needed", "Add it to the result")
    zeros = np.zeros((*found.shape[:at], 1, *found.shape[at + 1 :]), found.dtype)
    return np.concatenate([zeros, found], axis=at)


def first_halves(y: Any, h: Any, axis: int) -> Any:
    """Return the integral over the first interval of each three samples, of the parabola through them."""
    a, b, c = (slice_axis(y, axis, i, y.shape[axis] - 2 + i) for i in range(3))
    if np.ndim(h) == 0:
        return h / 12.0 * (5.0 * a + 8.0 * b - c)
    first, second = slice_axis(h, axis, None, -1), slice_axis(h, axis, 1, None)
    share, bend = first / (first + second), first**2 / (second * (first + second))
    return first / 6.0 * ((3.0 - share) * a + (3.0 + bend + share) * b - bend * c)


def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Return the integrals up to each sample by Simpson's rule; see `scipy.integrate.cumulative_simpson`.

    Args:
        y: samples.
        x: their places.
        dx: the distance between them, where x is not given.
        axis: the axis to integrate along.
        initial: the integral up to the first sample, which is added to all; without it there is none for that.

    Raises:
        ShapeError: there are no two samples, or not as many places.

    >>> cumulative_simpson([0.0, 1.0, 4.0, 9.0], initial=0)
    tensor([0.        , 0.33333333, 2.66666667, 9.        ])
    """
    name = "cumulative_simpson"
    heights: Any = as_tensor(y)
    at = normalize_axis_index(axis, heights.ndim)
    count = heights.shape[at]
    if count < 2:
        raise ShapeError(name, f"samples of shape {heights.shape}", "two samples at least are needed", "Pass some")
    if count == 2:
        return cumulative_trapezoid(heights, x, dx, axis, None if initial is None else 0) + (initial or 0.0)
    h = distance(name, dx) if x is None else widths(name, heights, x, at).astype(float)
    back = h if np.ndim(h) == 0 else np.flip(h, at)
    forward = first_halves(heights, h, at)
    backward = np.flip(first_halves(np.flip(heights, at), back, at), at)
    # the first interval of each pair from the parabola that begins there, the second from the one that ends there
    odd = (np.arange(count - 1) % 2 == 1) | (np.arange(count - 1) == count - 2)
    places = np.reshape(odd, (1,) * at + (-1,) + (1,) * (heights.ndim - at - 1))
    first = slice_axis(backward, at, 0, 1)
    parts = np.where(places, np.concatenate([first, backward], at), np.concatenate([forward, first], at))
    found: Any = np.cumulative_sum(parts, axis=at)
    if initial is None:
        return found
    start = np.broadcast_to(initial, (*found.shape[:at], 1, *found.shape[at + 1 :]))
    return np.concatenate([start, found + initial], axis=at)


def quotient(x: Any, y: Any) -> Any:
    """Return x / y, and 0 where y is 0."""
    fine = y != 0
    return np.where(fine, x / np.where(fine, y, 1.0), 0.0)


def parabolas(y: Any, h: Any, axis: int, stop: int) -> Any:
    """Integrate the parabolas through each three samples, from the first to one before `stop` + 2."""
    a, b, c = (slice_axis(y, axis, i, stop + i, 2) for i in range(3))
    if np.ndim(h) == 0:
        return np.sum(a + 4.0 * b + c, axis=axis) * (h / 3.0)
    h0, h1 = slice_axis(h, axis, 0, stop, 2), slice_axis(h, axis, 1, stop + 1, 2)
    both, ratio = h0 + h1, quotient(h0, h1)
    terms = a * (2.0 - quotient(1.0, ratio)) + b * (both * quotient(both, h0 * h1)) + c * (2.0 - ratio)
    return np.sum(both / 6.0 * terms, axis=axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral by Simpson's rule; see `scipy.integrate.simpson`.

    Of an even number of samples, the last interval is corrected as Cartwright has it (*Simpson's rule cumulative
    integration with MS Excel and irregularly-spaced data*, 2017, equation 8).

    Args:
        y: samples.
        x: their places.
        dx: the distance between them, where x is not given.
        axis: the axis to integrate along.

    Raises:
        ShapeError: there are no samples, or not as many places.

    >>> simpson([0.0, 1.0, 4.0])
    tensor(2.66666667)
    """
    heights: Any = as_tensor(y)
    at = normalize_axis_index(axis, heights.ndim)
    count = heights.shape[at]
    if not count:
        raise ShapeError("simpson", f"samples of shape {heights.shape}", "a sample is needed", "Pass some")
    h = distance("simpson", dx) if x is None else widths("simpson", heights, x, at).astype(float)
    if count % 2:
        return parabolas(heights, h, at, count - 2)
    last, second, third = (np.take(heights, count - i, axis=at) if count >= i else 0.0 for i in (1, 2, 3))
    h0, h1 = (h, h) if x is None else (np.take(h, np.maximum(i, -h.shape[at]), axis=at) for i in (-2, -1))
    if count == 2:
        return 0.5 * h1 * (last + second)
    alpha = quotient(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = quotient(h1**2 + 3.0 * h0 * h1, 6 * h0)
    eta = quotient(h1**3, 6 * h0 * (h0 + h1))
    return parabolas(heights, h, at, count - 3) + (alpha * last + beta * second - eta * third)


def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Return the integral by Romberg's method; see `scipy.integrate.romb`, whose table is not printed here.

    Args:
        y: samples, one more than a power of two.
        dx: the distance between them.
        axis: the axis to integrate along.
        show: whether to print the table, which is not done.

    Raises:
        ShapeError: their number is another.

    >>> romb([0.0, 1.0, 4.0])
    tensor(2.66666667)
    """
    heights: Any = as_tensor(y)
    at = normalize_axis_index(axis, heights.ndim)
    intervals = heights.shape[at] - 1
    if intervals < 1 or intervals & (intervals - 1):
        given = f"{intervals + 1} samples along axis {axis}"
        raise ShapeError("romb", given, "one more than a power of two is needed", "Use simpson")
    h = intervals * distance("romb", dx)
    row = [(np.take(heights, 0, axis=at) + np.take(heights, intervals, axis=at)) / 2.0 * h]
    step = intervals
    while step > 1:
        start, step, before = step // 2, step // 2, row
        row = [0.5 * (before[0] + h * np.sum(slice_axis(heights, at, start, intervals, 2 * step), axis=at))]
        for j, coarse in enumerate(before, 1):
            row.append(row[-1] + (row[-1] - coarse) / ((1 << (2 * j)) - 1))
        h = h / 2.0
    return row[-1]
