"""Which elements the elements of correlations depend on: for each tap of a kernel those at its place in all windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.element_maps import FEW_TAPS, along, is_known
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate, read
from wengert.core.values.aval import UNKNOWN, shape_of
from wengert.primitives.signals.windows import Geometry


def window_maps(position: int, operands: Sequence[Any], out: tuple[int, ...], space: Geometry) -> list[BoxMap] | None:
    """Return the maps of images, or of kernels, with the other operand as coefficients; None where there are many taps.

    Args:
        position: 0 for images, 1 for kernels.
        operands: both.
        out: the shape of the result.
        space: where windows are.
    """
    images, kernels = map(shape_of, operands[:2])
    rank = len(space.stride)
    if math.prod(kernels[-rank:]) > FEW_TAPS or UNKNOWN in (*images, *kernels):
        return None
    groups = len(images) - rank - 2
    stack = along(range(groups))
    image, kernel, channel, *places = along(range(groups, groups + 3 + rank))
    lead = (*images[: groups + 1], kernels[groups], kernels[groups + 1])
    found = []
    for tap in np.ndindex(*kernels[-rank:]):
        axes = zip(tap, images[-rank:], out[-rank:], *space[:4], strict=True)
        windows = [reaching_windows(*axis) for axis in axes]
        if any(len(own) == 0 for own, _ in windows):
            continue
        extents = (*lead, *[len(own) for own, _ in windows])
        moved = [[line_of(place, line[side]) for place, line in zip(places, windows, strict=True)] for side in (0, 1)]
        target = [*stack, image, kernel, *moved[0]]
        sides = [*stack, image, channel, *moved[1]], [*stack, kernel, channel, *map(Coordinate.at, tap)]
        other = operands[1 - position]
        factor = read(other, sides[1 - position], extents) if is_known(other) else None
        found.append(BoxMap(extents, target, sides[position], factor))
    return found


def reaching_windows(
    tap: int, length: int, count: int, stride: int, dilation: int, spread: int, low: int
) -> tuple[range, range]:
    """Return along an axis the windows of which a tap meets an element, and these elements.

    >>> reaching_windows(0, 3, 3, 1, 1, 1, 1)
    (range(1, 3), range(0, 2))
    """
    at = np.arange(count) * stride + tap * dilation - low
    windows = np.flatnonzero((at % spread == 0) & (at >= 0) & (at < length * spread))
    return progression(windows), progression(at[windows] // spread)


def progression(numbers: np.ndarray[Any, Any]) -> range:
    """Return numbers of equal steps as a range."""
    if not len(numbers):
        return range(0)
    step = int(numbers[1] - numbers[0]) if len(numbers) > 1 else 1
    return range(int(numbers[0]), int(numbers[0]) + step * len(numbers), step)


def line_of(place: Coordinate, line: range) -> Coordinate:
    """Return a coordinate that follows a range."""
    return place.scale(line.step).plus_offset(line.start)
