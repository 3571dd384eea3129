"""Pictures of matrices: which parts have elements that may be other than zero, and how many."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MOST_LINES, MOST_LETTERS = 12, 24
SHADES = " .:+#"
SIDE = 96
"""Squares along the longer side of a picture in a notebook or on a page."""


def cells(shape: tuple[int, int], rows: Array, columns: Array, size: tuple[int, int]) -> tuple[Array, Array]:
    """Return in which row and column of a picture of some size elements are."""
    (m, n), (height, width) = shape, size
    down = np.minimum(rows.astype(np.int64) * height // max(m, 1), height - 1)
    return down, np.minimum(columns.astype(np.int64) * width // max(n, 1), width - 1)


def shares(shape: tuple[int, int], rows: Array, columns: Array, size: tuple[int, int]) -> Array:
    """Return which share of each cell of a picture of some size has elements."""
    (m, n), (height, width) = shape, size
    down, right = cells(shape, rows, columns, size)
    counts = np.bincount(down * width + right, minlength=height * width).reshape(height, width)
    heights = np.diff(np.ceil(np.arange(height + 1) * m / height))
    widths = np.diff(np.ceil(np.arange(width + 1) * n / width))
    return np.asarray(counts / np.maximum(np.outer(heights, widths), 1))


def pattern_lines(shape: tuple[int, int], rows: Array, columns: Array) -> list[str]:
    """Return a small picture in letters of the elements of a matrix at some rows and columns.

    >>> pattern_lines((3, 4), np.array([0, 1, 2]), np.array([0, 1, 3]))
    ['|#   |', '| #  |', '|   #|']
    """
    m, n = shape
    if not m or not n:
        return []
    found = shares(shape, rows, columns, (min(m, MOST_LINES), min(n, MOST_LETTERS)))
    top = len(SHADES) - 1
    levels = np.where(found > 0, np.clip(np.ceil(found * top), 1, top), 0).astype(int)
    return ["|" + "".join(SHADES[level] for level in row) + "|" for row in levels]


def pattern_svg(shape: tuple[int, int], rows: Array, columns: Array, colours: Array | None = None) -> str:
    """Return a picture as the text of an `.svg` file: the darker, the more elements are not zero.

    Args:
        shape: of the matrix.
        rows: of its elements.
        columns: likewise.
        colours: for each element the number of its colour, which are drawn a golden angle apart; None if all have one.

    >>> pattern_svg((3, 4), np.array([0, 1]), np.array([0, 1])).count("<rect")
    3
    """
    m, n = shape
    longest = max(m, n, 1)
    height, width = (max(1, min(size, round(SIDE * size / longest))) for size in shape)
    found = shares(shape, rows, columns, (height, width)) if len(rows) else np.zeros((height, width))
    fills = np.full((height, width), "", object)
    if colours is not None and len(rows):
        texts = np.array([f' fill="hsl({137.5 * k % 360:.0f} 65% 45%)"' for k in range(int(colours.max()) + 1)], object)
        fills[cells(shape, rows, columns, (height, width))] = texts[colours]
    squares = [
        f'<rect x="{x}" y="{y}" width="1" height="1"{fills[y, x]}'
        f' fill-opacity="{0.25 + 0.75 * min(found[y, x], 1):.2f}"/>'
        for y, x in zip(*(axis.tolist() for axis in np.nonzero(found)), strict=True)
    ]
    size = 3 * SIDE / max(height, width)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * size:.0f}" height="{height * size:.0f}"'
        f' viewBox="0 0 {width} {height}"><title>{m} x {n}, {len(rows)} elements</title>'
        f'<rect width="{width}" height="{height}" fill="#ffffff" stroke="#5f6f7f" stroke-width="0.3"/>'
        f'<g fill="#2f6ea5">{"".join(squares)}</g></svg>'
    )
