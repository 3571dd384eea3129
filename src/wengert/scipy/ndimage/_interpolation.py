"""Images between their elements with SciPy's parameters; `_splines` has the mathematics."""

from __future__ import annotations

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
from wengert.scipy import _special  # noqa: F401 - it gives sines of degrees a meaning for Tensors
from wengert.scipy.ndimage._filters import per_axis
from wengert.scipy.ndimage._splines import BEYOND, coefficients, interpolate_at, prepare_image


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
