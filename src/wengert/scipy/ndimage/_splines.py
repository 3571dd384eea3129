"""Images between their elements, by B-splines of degree 0 to 5.

(M. Unser, A. Aldroubi and M. Eden, Fast B-spline transforms for continuous image representation and interpolation,
1991.) The coefficients of B-splines solve banded systems, which SciPy solves by recursive filters: values agree to
rounding, but in mode "reflect", where SciPy's filter is off by up to the root of the polynomial of splines to the power
of twice the length (0.268 for cubic splines): 1e-7 of an image of 6 elements, 1e-15 of one of 13.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.numpy._shapes import add_axes
from wengert.primitives.linear_algebra.matrix_equations import banded_solution

Row = Any
"""Coordinates along one axis."""

BEYOND = {
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "constant": "constant",
    "grid-constant": "grid-constant",
    "nearest": "nearest",
    "mirror": "mirror",
    "wrap": "wrap",
    "grid-wrap": "grid-wrap",
}
"""What is beyond the edges of images, by SciPy's names."""

PADDING = 12
"""By how many elements SciPy continues images whose mode has no spline of its own."""

CONTINUED = {"constant": "mirror", "wrap": "mirror"}
"""How the coefficients of splines go on, where not as the mode says: SciPy has no such splines."""


def fold_coordinates(x: Any, n: int, mode: str) -> Any:
    """Return coordinates, or indices, of the image that go on as the mode says."""
    if mode in ("constant", "grid-constant"):
        return x
    if n == 1:
        return x * 0
    if mode == "nearest":
        return np.clip(x, 0, n - 1)
    if mode == "mirror":
        inside = x - (2 * n - 2) * np.floor_divide(x, 2 * n - 2)
        return np.where(inside > n - 1, 2 * n - 2 - inside, inside)
    if mode == "reflect":
        inside = x - 2 * n * np.floor_divide(x, 2 * n)
        return np.where(inside >= n, 2 * n - 1 - inside, inside)
    if mode == "grid-wrap":
        return x - n * np.floor_divide(x, n)
    below = x + (n - 1) * (np.floor_divide(-x, n - 1) + 1)
    return np.where(x < 0, below, np.where(x > n - 1, x - (n - 1) * np.floor_divide(x, n - 1), x))


def bspline_weights(x: Any, order: int) -> list[Any]:
    """Return the B-splines of a degree that are not zero at coordinates, those of the lowest index first."""
    if order == 0:
        return [x * 0.0 + 1.0]
    x = x - (np.floor(x) if order % 2 else np.floor(x + 0.5))
    if order == 1:
        found = [1.0 - x]
    elif order == 2:
        found = [0.5 * (0.5 - x) ** 2, 0.75 - x * x]
    elif order == 3:
        z = 1.0 - x
        found = [z * z * z / 6.0, *((y * y * (y - 2.0) * 3.0 + 4.0) / 6.0 for y in (x, z))]
    elif order == 4:
        t = x * x
        y, z, rest = 1.0 + x, 1.0 - x, (0.5 - x) ** 2
        sides = [u * (u * (u * (5.0 - u) / 6.0 - 1.25) + 5.0 / 24.0) + 55.0 / 96.0 for u in (y, z)]
        found = [rest * rest / 24.0, sides[0], t * (t * 0.25 - 0.625) + 115.0 / 192.0, sides[1]]
    else:
        z = 1.0 - x
        middle = [u * u * (u * u * (0.25 - u / 12.0) - 0.5) + 0.55 for u in (x, z)]
        sides = [u * (u * (u * (u * (u / 24.0 - 0.375) + 1.25) - 1.75) + 0.625) + 0.425 for u in (x + 1, z + 1)]
        found = [z * (z * z) ** 2 / 120.0, sides[0], *middle, sides[1]]
    return [*found, 1.0 - sum(found[1:], start=found[0])]


@functools.lru_cache(maxsize=16)
def spline_bands(n: int, order: int, mode: str) -> np.ndarray[Any, Any]:
    """Return the diagonals of the matrix from the coefficients of a spline to its values at the elements.

    Element (i, j) stands at (2 h + i - j, j), where twice half the degree, 2 h, is how far elements are from the
    diagonal; only if the image goes round are there others, which are left out.
    """
    half = order // 2
    reach = 2 * half
    found = np.zeros((2 * reach + 1, n))
    for offset, weight in enumerate(bspline_weights(np.zeros(()), order)):
        row = np.arange(n)
        column = np.asarray(fold_coordinates(row + offset - half, n, mode))
        near = np.abs(row - column) <= reach
        np.add.at(found, (reach + row[near] - column[near], column[near]), float(weight))
    return found


@functools.lru_cache(maxsize=16)
def round_matrix(n: int, order: int) -> np.ndarray[Any, Any]:
    """Return the matrix from coefficients to values of a periodic image, whose bands go round."""
    found = np.zeros((n, n))
    for offset, weight in enumerate(bspline_weights(np.zeros(()), order)):
        np.add.at(found, (np.arange(n), (np.arange(n) + offset - order // 2) % n), float(weight))
    return found


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """Return the coefficients of the splines along an axis that go through the elements."""
    n = x.shape[axis]
    if order < 2 or n == 1 or not x.size:
        return x
    moved = np.moveaxis(x, axis, 0)
    columns = moved.reshape(n, -1)
    if mode == "grid-wrap":
        found = np.linalg.solve(round_matrix(n, order), columns)
    else:
        kind = "reflect" if mode in ("reflect", "nearest") else "mirror"
        found = banded_solution(spline_bands(n, order, kind), columns, order // 2 * 2, order // 2 * 2)
    return np.moveaxis(found.reshape(moved.shape), 0, axis)


def prepare_image(x: Any, axes: Sequence[int], order: int, mode: str, cval: Any, prefilter: bool) -> tuple[Any, int]:
    """Return the coefficients of an image along axes, and by how many elements it was continued."""
    if not prefilter or order < 2:
        return x, 0
    pad = PADDING if mode in ("nearest", "grid-constant") else 0
    if pad:
        width = [(pad, pad) if axis in axes else (0, 0) for axis in range(x.ndim)]
        x = np.pad(x, width, "edge") if mode == "nearest" else np.pad(x, width, constant_values=cval)
    x = x if x.dtype.char in "dD" else x.astype(complex if x.dtype.kind == "c" else float)
    for axis in axes:
        x = coefficients(x, order, axis, mode)
    return x, pad


def taps(row: Row, n: int, order: int, mode: str) -> tuple[Any, Any, Any, Any]:
    """Return the indices of elements around coordinates, their weights, and which of both are inside; last axis."""
    place = row if mode == "nearest" else fold_coordinates(row, n, mode)
    start = (np.floor(place) if order % 2 else np.floor(place + 0.5)).astype(int) - order // 2
    index = start[..., None] + np.arange(order + 1)
    inside = (index >= 0) & (index < n)
    index = np.clip(fold_coordinates(index, n, CONTINUED.get(mode, mode)), 0, n - 1)
    known = (row >= 0) & (row <= n - 1)
    return index, np.stack(bspline_weights(place, order), axis=-1), inside, known


def interpolate_at(x: Any, rows: Sequence[Row], order: int, mode: str, cval: Any, apart: bool) -> Any:
    """Return an image at coordinates, a row for each of its first axes.

    Rows are coordinates of places, or, `apart`, each those of one axis of the result.
    """
    count, found, known = len(rows), x, []
    parts = [taps(row, n, order, mode) for row, n in zip(rows, x.shape, strict=False)]
    if not apart:
        rank = rows[0].ndim
        index = [part[0].reshape(*rows[0].shape, *axis_shape(order + 1, i, count)) for i, part in enumerate(parts)]
        found = x[tuple(index)]
        if mode == "grid-constant":
            shapes = [part[2].reshape(*rows[0].shape, *axis_shape(order + 1, i, count)) for i, part in enumerate(parts)]
            found = np.where(add_axes(functools.reduce(np.logical_and, shapes), found), found, cval)
        for _, weight, _, inside in parts:
            found = np.sum(found * add_axes(weight, found), axis=rank)
            known.append(inside)
    else:
        for axis, (index, weight, inside, whole) in enumerate(parts):
            found = np.take(found, index, axis=axis)
            shape = axis_shape(weight.shape, axis, found.ndim - 1)
            if mode == "grid-constant":
                found = np.where(inside.reshape(shape), found, cval)
            found = np.sum(found * weight.reshape(shape), axis=axis + 1)
            known.append(whole.reshape(axis_shape(whole.shape, axis, found.ndim)))
    if mode != "constant":
        return found
    return np.where(add_axes(functools.reduce(np.logical_and, known), found), found, cval)


def axis_shape(lengths: Any, axis: int, count: int) -> tuple[int, ...]:
    """Return a shape with lengths in place of one of some axes, the others of length 1."""
    inner = lengths if isinstance(lengths, tuple) else (lengths,)
    return (*(1,) * axis, *inner, *(1,) * (count - axis - 1))
