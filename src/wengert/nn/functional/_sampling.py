"""Images at other places, and in other sizes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError
from wengert.nn.functional._arguments import hinted, layer, per_axis

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
"""Names of linear interpolation, with the number of axes of space."""

SHARPNESS = -0.75
"""The slope of the cubic kernel at 1, which PyTorch has (R. Keys, Cubic convolution interpolation, 1981)."""


def cubic_weights(t: Any) -> list[Any]:
    """Return the weights of the elements at -1, 0, 1 and 2 for a place between 0 and 1."""
    a = SHARPNESS

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


# At places


def reflect(x: Any, low: float, high: float) -> Any:
    """Return coordinates that are thrown back at both ends."""
    if low == high:
        return x * 0.0
    span = high - low
    apart = np.abs(x - low)
    turns = np.floor(apart / span)
    rest = apart - turns * span
    return np.where(turns % 2 == 0, rest + low, high - rest)


def bring_into_image(x: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """Return coordinates as the padding moves them into the image."""
    if padding_mode == "reflection":
        x = reflect(x, 0.0, n - 1.0) if align_corners else reflect(x, -0.5, n - 0.5)
    return x if padding_mode == "zeros" else np.clip(x, 0, n - 1)


def taps(x: Any, n: int, mode: str, padding_mode: str, align_corners: bool) -> list[tuple[Any, Any]]:
    """Return the indices of elements around coordinates along an axis, each with its weight."""
    if mode == "bicubic":
        start = np.floor(x)
        places = [bring_into_image(start + i, n, padding_mode, align_corners) for i in (-1, 0, 1, 2)]
        found = list(zip(places, cubic_weights(x - start), strict=True))
    else:
        x = bring_into_image(x, n, padding_mode, align_corners)
        if mode == "nearest":
            found = [(np.rint(x), np.ones(()))]
        else:
            start = np.floor(x)
            found = [(start, start + 1 - x), (start + 1, x - start)]
    rows = []
    for place, weight in found:
        inside = (place >= 0) & (place <= n - 1)
        rows.append((np.clip(place, 0, n - 1).astype(int), np.where(inside, weight, 0.0).astype(x.dtype)))
    return rows


@layer
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """Return images at the places of a grid, which is differentiated too.

    Args:
        input: images of two or three axes of space, (batch, channels, ...).
        grid: places, (batch, ..., 2 or 3), whose coordinates, the last axis of space first, are -1 and 1 at the edges.
        mode: "bilinear", "nearest", or "bicubic", of two axes.
        padding_mode: what is beyond the edges: "zeros", "border" (the elements there) or "reflection".
        align_corners: whether -1 and 1 are the centers of the elements at the edges, not the edges themselves.

    Returns:
        A Tensor of shape (batch, channels, ...), with the axes of the grid.

    Raises:
        ShapeError: the shapes do not fit.
        UsageError: a mode is unknown.

    >>> grid_sample(np.arange(4.0).reshape(1, 1, 2, 2), np.zeros((1, 1, 1, 2)))
    tensor([[[[1.5]]]])
    """
    x: Any = as_tensor(input)
    places: Any = as_tensor(grid)
    rank = x.ndim - 2
    if rank not in (2, 3) or places.ndim != x.ndim or places.shape[0] != x.shape[0] or places.shape[-1] != rank:
        given = f"images of shape {x.shape} and a grid of shape {places.shape}"
        needed = "(batch, channels, ...) and (batch, ..., axes of space), 2 or 3, are needed"
        raise ShapeError("grid_sample", given, needed, "Correct the grid")
    if mode not in ("bilinear", "nearest") and (mode, rank) != ("bicubic", 2):
        needed = "'bilinear', 'nearest' or, of two axes of space, 'bicubic' is needed"
        raise UsageError("grid_sample", f"mode={mode!r:.40}", needed, "Pass one of these")
    if padding_mode not in ("zeros", "border", "reflection"):
        needed = "'zeros', 'border' or 'reflection' is needed"
        raise UsageError("grid_sample", f"padding_mode={padding_mode!r:.40}", needed, "Pass one of these")
    rows = []
    for axis, n in enumerate(x.shape[2:]):
        turned = places[..., rank - 1 - axis]
        place = (turned + 1) / 2 * (n - 1) if align_corners else ((turned + 1) * n - 1) / 2
        rows.append(taps(place, n, mode, padding_mode, bool(align_corners)))
    batch = np.arange(x.shape[0]).reshape(-1, *(1,) * rank)
    last = np.moveaxis(x, 1, -1)
    found = sum_taps(last, (batch,), rows)
    return np.moveaxis(found, -1, 1)


def sum_taps(x: Any, index: tuple[Any, ...], rows: Sequence[Sequence[tuple[Any, Any]]]) -> Any:
    """Return the sums over all combinations of taps, one of each axis that is left, of elements times weights."""
    found: Any = None
    taken: list[tuple[tuple[Any, ...], Any]] = [((), None)]
    for row in rows:
        taken = [
            ((*places, place), weight if factor is None else factor * weight)
            for places, factor in taken
            for place, weight in row
        ]
    for places, weight in taken:
        term = x[(*index, *places)] * weight[..., None]
        found = term if found is None else found + term
    return found


# In other sizes


@functools.lru_cache(maxsize=64)
def resized_taps(n: int, m: int, scale: float, mode: str, align_corners: bool) -> list[tuple[Any, Any]]:
    """Return the indices of the elements, with weights, from which those of a resized axis are made."""
    place = np.arange(m)
    if mode == "nearest":
        return [(np.minimum(np.floor(place * scale), n - 1).astype(int), None)]
    if mode == "nearest-exact":
        return [(np.minimum(np.floor((place + 0.5) * scale), n - 1).astype(int), None)]
    x = place * ((n - 1) / (m - 1) if m > 1 else 0.0) if align_corners else scale * (place + 0.5) - 0.5
    if mode == "bicubic":
        start = np.floor(x).astype(int)
        return [(np.clip(start + i, 0, n - 1), w) for i, w in zip((-1, 0, 1, 2), cubic_weights(x - start), strict=True)]
    x = np.maximum(x, 0.0)
    start = np.minimum(np.floor(x).astype(int), n - 1)
    return [(start, 1 - (x - start)), (np.minimum(start + 1, n - 1), x - start)]


@layer
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:
    """Return images in another size.

    Args:
        input: images, (batch, channels, ...).
        size: the lengths of the axes of space, or one for all.
        scale_factor: by which factor they are longer, or one for each.
        mode: "nearest", "nearest-exact", "linear", "bilinear" and "trilinear" by the number of axes of space, or
            "bicubic", of two.
        align_corners: whether the centers of the elements at the edges stay where they are, not the edges.
        recompute_scale_factor: whether places are by the quotient of the lengths, not by the factor.

    Returns:
        A Tensor of shape (batch, channels, ...), with axes of space of those lengths.

    Raises:
        ShapeError: the images have another number of axes.
        UsageError: the mode is unknown, neither or both of size and factor are given, or nothing would be left.

    >>> interpolate([[[1.0, 3.0]]], 4, mode="linear")
    tensor([[[1. , 1.5, 2.5, 3. ]]])
    """
    x: Any = as_tensor(input)
    rank = x.ndim - 2
    known = {**LINEAR, "bicubic": 2}
    if mode not in ("nearest", "nearest-exact", *known):
        needed = f"one of nearest, nearest-exact, {', '.join(known)} is needed"
        raise UsageError("interpolate", f"mode={mode!r:.40}", needed, "Pass one of them")
    if rank < 1 or known.get(mode, rank) != rank:
        needed = f"(batch, channels) and {known.get(mode, 'some')} axes of space are needed"
        raise ShapeError("interpolate", f"images of shape {x.shape} with mode={mode!r}", needed, "Reshape them")
    if (size is None) == (scale_factor is None):
        given = f"size={size} and scale_factor={scale_factor}"
        raise UsageError("interpolate", given, "one of them is needed", "Pass one")
    inner = x.shape[2:]
    if size is None:
        factors = list(scale_factor) if isinstance(scale_factor, Sequence) else [scale_factor] * rank
        if len(factors) != rank or not all(1 <= n * f < math.inf for n, f in zip(inner, factors, strict=True)):
            given = f"scale_factor={scale_factor!r:.40} for axes of lengths {inner}"
            needed = f"one or {rank} factors that leave an element of each are needed"
            raise UsageError("interpolate", given, needed, "Correct it")
        lengths = tuple([math.floor(n * factor) for n, factor in zip(inner, factors, strict=True)])
    else:
        factors, lengths = [None] * rank, per_axis("interpolate", "size", size, rank)
    linear = "linear" if mode in LINEAR else mode
    for axis, (n, m, factor) in enumerate(zip(inner, lengths, factors, strict=True), 2):
        scale = n / m if factor is None or recompute_scale_factor else 1.0 / factor
        found: Any = None
        for place, weight in resized_taps(n, operator.index(m), scale, linear, bool(align_corners)):
            term = np.take(x, place, axis=axis)
            if weight is not None:
                term = term * weight.reshape(-1, *(1,) * (x.ndim - axis - 1)).astype(x.dtype)
            found = term if found is None else found + term
        x = found
    return x


@hinted
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """Return images in another size, as `interpolate` does.

    Args:
        input: images, (batch, channels, ...).
        size: the lengths of the axes of space, or one for all.
        scale_factor: by which factor they are longer, or one for each.
        mode: as in `interpolate`.
        align_corners: whether the centers of the elements at the edges stay where they are, not the edges.

    Returns:
        A Tensor, as `interpolate` returns it.

    >>> upsample([[[1.0, 3.0]]], scale_factor=2)
    tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)
