"""Images between their elements with SciPy's parameters, by B-splines of degree 0 to 5.

(M. Unser, A. Aldroubi and M. Eden, Fast B-spline transforms for continuous image representation and interpolation,
1991.) The coefficients of B-splines solve banded systems, which SciPy solves by recursive filters: values agree to
rounding, but in mode "reflect", where SciPy's filter is off by up to the root of the polynomial of splines to the power
of twice the length (0.268 for cubic splines): 1e-7 of an image of 6 elements, 1e-15 of one of 13.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import (
    as_dtype,
    as_items,
    as_whole,
    elements,
    require_flag,
    require_one_number,
    require_real,
)
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.numpy._shapes import add_axes
from wengert.primitives.linear_algebra.matrix_equations import banded_solution
from wengert.scipy import _special  # noqa: F401 - it gives sines of degrees a meaning for Tensors
from wengert.scipy.ndimage._filters import per_axis

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


def as_image(name: str, input: Any, order: int, mode: str, output: Any, cval: Any = 0.0, least: int = 0) -> Any:
    """Return an image, after it was looked whether the degree, the mode, the dtype and the value are usable."""
    if order not in range(least, 6):
        raise UsageError(name, f"order={order!r:.40}", f"a degree from {least} to 5 is needed", "Pass one of them")
    if mode not in BEYOND:
        raise UsageError(name, f"mode={mode!r:.40}", f"one of {', '.join(BEYOND)} is needed", "Pass one of them")
    x: Any = as_tensor(input)
    if not x.ndim:
        raise ShapeError(name, "an image without axes", "one axis at least is needed", "Reshape it")
    require_one_number(name, "cval", cval, real=x.dtype.kind != "c")
    if isinstance(output, Tensor):
        raise DtypeError(name, "a Tensor for output", "a dtype is needed", "Use the result")
    if output is not None and as_dtype(name, output).kind not in "biufc":
        raise DtypeError(name, f"output={output!r:.40}", "a numeric dtype is needed", "Leave it out")
    return x


def real_per_axis(name: str, what: str, value: Any, count: int) -> Any:
    """Return real numbers, one for each axis of an image; one alone is that of all."""
    x: Any = as_tensor(value)
    require_real(name, what, x.dtype)
    if x.shape not in ((), (count,)):
        needed = f"a number, or {count} of them, one for each axis, are needed"
        raise ShapeError(name, f"{what} of shape {x.shape}", needed, "Correct it")
    return np.broadcast_to(x.astype(float), (count,))


def cast_result(found: Any, x: Any, output: Any) -> Any:
    """Return a result with the dtype of the image, or the one that is asked for; integers are rounded."""
    kind = x.dtype if output is None else np.dtype(output)
    if found.dtype == kind:
        return found
    if kind.kind in "iu":
        found = np.trunc(found + np.where(found > 0, 0.5, -0.5 if kind.kind == "i" else 0.0))
        found = np.clip(found, np.iinfo(kind).min, np.iinfo(kind).max)
    return found.astype(kind)


def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    """Return the coefficients of the splines along an axis that go through an image; see SciPy's function.

    Args:
        input: the image.
        order: the degree, from 0 to 5.
        axis: the axis.
        output: the dtype of the result.
        mode: what is beyond the edges.

    Raises:
        UsageError: the degree or mode is unknown.

    >>> spline_filter1d([1.0, 1.0, 1.0])
    tensor([1., 1., 1.])
    """
    x = as_image("spline_filter1d", input, order, mode, output)
    at = normalize_axis_index(axis, x.ndim)
    found = coefficients(as_doubles(x), order, at, BEYOND[mode])
    return found if found.dtype.kind == "c" else found.astype(output)


def as_doubles(x: Any) -> Any:
    """Return an image of doubles."""
    return x.astype(complex if x.dtype.kind == "c" else float)


def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """Return the coefficients of the spline that goes through an image; see `scipy.ndimage.spline_filter`.

    Args:
        input: the image.
        order: the degree, from 2 to 5.
        output: the dtype of the result.
        mode: what is beyond the edges.

    Raises:
        UsageError: the degree or mode is unknown.

    >>> spline_filter([1.0, 1.0, 1.0])
    tensor([1., 1., 1.])
    """
    x = as_image("spline_filter", input, order, mode, output, least=2)
    for axis in range(x.ndim):
        x = spline_filter1d(x, order, axis, output, mode)
    return x


def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Return an image between its elements; see `scipy.ndimage.map_coordinates`.

    Args:
        input: the image, real or complex.
        coordinates: places, a row for each axis of the image; they are differentiated.
        output: the dtype of the result; that of the image if it is not given.
        order: the degree of splines: 0 for the nearest element, 1 for linear interpolation, up to 5.
        mode: what is beyond the edges: "constant", "nearest", "mirror", "reflect", "wrap", "grid-constant",
            "grid-mirror" or "grid-wrap".
        cval: the value there, where the mode says "constant".
        prefilter: whether splines go through the elements; else these are their coefficients.

    Raises:
        ShapeError: there is another number of rows.
        UsageError: the degree or mode is unknown.

    >>> map_coordinates([[1.0, 2.0], [3.0, 4.0]], [[0.5], [0.5]], order=1)
    tensor([2.5])
    """
    x = as_image("map_coordinates", input, order, mode, output, cval)
    if not x.size:
        given = f"an image of shape {x.shape}"
        raise ShapeError("map_coordinates", given, "one element at least is needed", "Correct it")
    places: Any = as_tensor(coordinates)
    require_real("map_coordinates", "coordinates", places.dtype)
    if places.ndim < 2 or len(places) != x.ndim:
        given = f"coordinates of shape {places.shape} for an image with {x.ndim} axes"
        needed = "a row for each axis is needed"
        raise ShapeError("map_coordinates", given, needed, "Transpose them, or write a place as [[i], [j]]")
    places = places.astype(float)
    kind = BEYOND[mode]
    ready, pad = prepare_image(x, range(x.ndim), order, kind, cval, prefilter)
    rows = [places[i] + pad if pad else places[i] for i in range(x.ndim)]
    return cast_result(interpolate_at(ready, rows, order, kind, cval, apart=False), x, output)


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Sequence[int] | None = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Return an image whose element o is that at matrix @ o + offset; see `scipy.ndimage.affine_transform`.

    Args:
        input: the image.
        matrix: a matrix, its diagonal, or one of homogeneous coordinates, which has the offset; it is differentiated.
        offset: a number, or one for each axis; it is differentiated.
        output_shape: the shape of the result; that of the image if it is not given.
        output: the dtype of the result.
        order: the degree of splines, from 0 to 5.
        mode: what is beyond the edges, as in `map_coordinates`.
        cval: the value there.
        prefilter: whether splines go through the elements.

    Raises:
        ShapeError: the matrix has another shape.
        UsageError: the degree or mode is unknown, or the last row of homogeneous coordinates is not 0, ..., 0, 1.

    >>> affine_transform([1.0, 2.0, 4.0], [[1.0]], 0.5, order=1, mode="nearest")
    tensor([1.5, 3. , 4. ])
    """
    x = as_image("affine_transform", input, order, mode, output, cval)
    m: Any = as_tensor(matrix)
    require_real("affine_transform", "matrix", m.dtype)
    m = m.astype(float)
    start = real_per_axis("affine_transform", "offset", offset, x.ndim)
    lengths = x.shape if output_shape is None else as_items("affine_transform", "output_shape", output_shape)
    shape = tuple(as_whole("affine_transform", "output_shape", n, 0) for n in lengths)
    if m.ndim == 2 and m.shape[1] == x.ndim + 1 and m.shape[0] in (x.ndim, x.ndim + 1):
        last = None if elements(m) is None else elements(m)[x.ndim :]
        if last is not None and not np.array_equal(last, np.eye(x.ndim + 1)[x.ndim : m.shape[0]]):
            given = f"a matrix of homogeneous coordinates whose last row is {last[0].tolist()}"
            raise UsageError("affine_transform", given, "0, ..., 0, 1 is needed there", "Leave the row out")
        m, start = m[: x.ndim, : x.ndim], m[: x.ndim, x.ndim]
    if m.shape not in ((x.ndim,), (x.ndim, len(shape))):
        given = f"a matrix of shape {m.shape} from results with {len(shape)} axes to an image with {x.ndim}"
        raise ShapeError("affine_transform", given, "a row for each axis is needed", "Transpose it")
    found = resample_affine(x, m, start, shape, order, mode, cval, prefilter)
    return cast_result(found, x, output)


def resample_affine(
    x: Any, m: Any, start: Any, shape: tuple[int, ...], order: int, mode: str, cval: Any, prefilter: bool
) -> Any:
    """Return an image at the places that an affine map gives of those of the result, along as many first axes."""
    count = m.shape[0]
    kind = BEYOND[mode]
    ready, pad = prepare_image(x, range(count), order, kind, cval, prefilter)
    if m.ndim == 1:
        rows = [(np.arange(n) + start[i] / m[i]) * m[i] + pad for i, n in enumerate(shape)]
        return interpolate_at(ready, rows, order, kind, cval, apart=True)
    grid = np.meshgrid(*map(np.arange, shape), indexing="ij")
    rows = [sum(grid[j] * m[i, j] for j in range(len(shape))) + start[i] + pad for i in range(count)]
    return interpolate_at(ready, rows, order, kind, cval, apart=False)


def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Return an image that is moved; see `scipy.ndimage.shift`.

    Args:
        input: the image.
        shift: by how much, a number or one for each axis; it is differentiated.
        output: the dtype of the result.
        order: the degree of splines, from 0 to 5.
        mode: what is beyond the edges, as in `map_coordinates`.
        cval: the value there.
        prefilter: whether splines go through the elements.

    Raises:
        UsageError: the degree or mode is unknown.

    >>> shift([1.0, 2.0, 4.0], 0.5, order=1, mode="nearest")
    tensor([1. , 1.5, 3. ])
    """
    x = as_image("shift", input, order, mode, output, cval)
    moved = real_per_axis("shift", "shift", shift, x.ndim)
    found = resample_affine(x, np.ones(x.ndim), -moved, x.shape, order, mode, cval, prefilter)
    return cast_result(found, x, output)


def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """Return an image that is larger or smaller; see `scipy.ndimage.zoom`.

    Args:
        input: the image.
        zoom: by which factor, a number or one for each axis; it says what the shape will be, so that no gradient
            follows it.
        output: the dtype of the result.
        order: the degree of splines, from 0 to 5.
        mode: what is beyond the edges, as in `map_coordinates`.
        cval: the value there.
        prefilter: whether splines go through the elements.
        grid_mode: whether elements have an extent, so that lengths are those of all, not those between their centers.

    Raises:
        UsageError: the degree or mode is unknown, or a factor is negative.

    >>> zoom([1.0, 2.0, 4.0], 5 / 3, order=1)
    tensor([1. , 1.5, 2. , 3. , 4. ])
    """
    x = as_image("zoom", input, order, mode, output, cval)
    require_flag("zoom", grid_mode=grid_mode)
    factors = [float(np.asarray(factor)) for factor in per_axis(zoom, x.ndim)]
    if not all(0 <= factor < np.inf for factor in factors):
        needed = "numbers, 0 or more, are needed"
        raise UsageError("zoom", f"zoom={tuple(factors)}", needed, "Use numpy.flip to turn an axis round")
    shape = [round(n * factor) for n, factor in zip(x.shape, factors, strict=True)]
    if all(factor == 1 for factor in factors) and prefilter:
        return cast_result(x, x, output)
    suggested = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode)
    if grid_mode and suggested:
        text = f"It is recommended to use mode = {suggested} instead of {mode} when grid_mode is True."
        warnings.warn(text, stacklevel=2)
    less = 0 if grid_mode else 1
    steps = [(n - less) / (m - less) if m != less else 1.0 for n, m in zip(x.shape, shape, strict=True)]
    kind = BEYOND[mode]
    ready, pad = prepare_image(x, range(x.ndim), order, kind, cval, prefilter)
    half = 0.5 if grid_mode else 0.0
    rows = [(np.arange(n) + half) * step - half + pad for n, step in zip(shape, steps, strict=True)]
    return cast_result(interpolate_at(ready, rows, order, kind, cval, apart=True), x, output)


def rotate(
    input: Any,
    angle: Any,
    axes: Sequence[int] = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """Return an image that is turned in a plane; see `scipy.ndimage.rotate`.

    Args:
        input: the image.
        angle: by how much, in degrees; it is differentiated.
        axes: those of the plane.
        reshape: whether the result is as large as what is turned needs, for which the angle has to be known.
        output: the dtype of the result.
        order: the degree of splines, from 0 to 5.
        mode: what is beyond the edges, as in `map_coordinates`.
        cval: the value there.
        prefilter: whether splines go through the elements.

    Raises:
        ShapeError: there is no such plane.
        UsageError: the degree or mode is unknown.
        GraphError: the shape would depend on an angle that is unknown in a trace, or differs between lanes.

    >>> rotate([[1.0, 2.0], [3.0, 4.0]], 90, order=1)
    tensor([[2., 4.],
            [1., 3.]])
    """
    x = as_image("rotate", input, order, mode, output, cval)
    require_one_number("rotate", "angle", angle)
    plane = sorted(normalize_axis_index(axis, x.ndim) for axis in axes)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise ShapeError("rotate", f"axes={axes!r:.40}", "two different axes are needed", "Correct them")
    turn: Any = as_tensor(angle).astype(float)
    cosine, sine = scipy.special.cosdg(turn), scipy.special.sindg(turn)
    matrix = np.stack([np.stack([cosine, sine]), np.stack([-sine, cosine])])
    lengths = np.array([x.shape[axis] for axis in plane])
    if reshape:
        if not is_concrete(turn):
            given = "an angle that is unknown in a trace or differs between lanes"
            raise GraphError("rotate", given, "a known one is needed, on which the shape depends", "Pass reshape=False")
        corners = np.asarray(raw(matrix)) @ np.array([[0, 0, lengths[0], lengths[0]], [0, lengths[1], 0, lengths[1]]])
        size = (np.ptp(corners, axis=1) + 0.5).astype(int)
    else:
        size = lengths
    start = (lengths - 1) / 2 - matrix @ ((size - 1) / 2)
    moved = np.moveaxis(x, plane, (0, 1))
    found = resample_affine(moved, matrix, start, tuple(size.tolist()), order, mode, cval, prefilter)
    return cast_result(np.moveaxis(found, (0, 1), plane), x, output)
