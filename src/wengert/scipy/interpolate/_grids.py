"""Interpolation along one axis by lines, steps or splines, and on grids of any dimension."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import require_callable, require_one_number
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, UsageError
from wengert.numpy._shapes import add_axes
from wengert.scipy.interpolate._bsplines import BSpline, basis, make_interp_spline
from wengert.scipy.interpolate._cubic import PchipInterpolator
from wengert.scipy.interpolate._piecewise import (
    as_places,
    increasing_places,
    interval,
    move_place_axes,
    numbers,
    power_sum,
    require_within,
)

DEGREES_OF_KINDS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
STEPS = ("nearest", "nearest-up", "previous", "next")


def is_extrapolated(fill_value: Any) -> bool:
    """Tell whether samples are continued beyond the ends."""
    return isinstance(fill_value, str) and fill_value == "extrapolate"


class interp1d:  # noqa: N801 - SciPy's name
    """Go through samples by lines, steps or splines; see `scipy.interpolate.interp1d`.

    Args:
        x: the places of samples.
        y: samples, real or complex.
        kind: "linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", or the
            degree of a spline.
        axis: the axis of samples.
        copy: not needed: nothing is written to.
        bounds_error: whether places outside are an error; they are, unless there is a value to fill in.
        fill_value: what is outside, or a pair of what is below and above, or "extrapolate".
        assume_sorted: whether the places increase already.

    Raises:
        ShapeError: there are not as many samples, or too few.
        UsageError: the kind is unknown, or places outside are to be an error and to be continued.
        ValueError: of a call with a place outside.

    >>> interp1d([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])([0.5, 1.5])
    tensor([0.5, 2.5])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        places: Any = as_tensor(x)
        heights: Any = as_tensor(y)
        self.axis = normalize_axis_index(axis, heights.ndim)
        if places.ndim != 1 or heights.shape[self.axis] != places.shape[0]:
            given = f"places of shape {places.shape} for samples of shape {heights.shape}"
            raise ShapeError("interp1d", given, f"one for each along axis {axis} is needed", "Correct them")
        heights = heights if heights.dtype.kind in "fc" else heights.astype(float)
        moved: Any = np.moveaxis(heights, self.axis, 0)
        if not assume_sorted and not (is_concrete(places) and np.all(np.diff(np.asarray(raw(places))) >= 0)):
            order = np.argsort(places, kind="stable")
            places, moved = places[order], moved[order]
        self.x, self.y, self.kind = places, moved, kind
        self.degree = DEGREES_OF_KINDS.get(kind) if isinstance(kind, str) else kind
        if self.degree is None and kind not in ("linear", *STEPS):
            known = ", ".join(["linear", *STEPS, *DEGREES_OF_KINDS])
            needed = f"one of {known}, or a degree, is needed"
            raise UsageError("interp1d", f"kind={kind!r:.40}", needed, "Pass one of them")
        if places.shape[0] < (self.degree or 0) + 1:
            given = f"{places.shape[0]} samples for kind={kind!r:.40}"
            raise ShapeError("interp1d", given, f"{(self.degree or 0) + 1} are needed", "Pass more")
        self.spline = (
            None if self.degree is None else make_interp_spline(places, moved, self.degree, check_finite=False)
        )
        self.fill_value = fill_value
        if is_extrapolated(fill_value) and bounds_error:
            given = "bounds_error=True and fill_value='extrapolate'"
            raise UsageError("interp1d", given, "one of them is needed", "Leave one out")
        self.bounds_error = not is_extrapolated(fill_value) if bounds_error is None else bounds_error

    def __call__(self, x: Any) -> Any:
        """Return values."""
        places: Any = as_tensor(x)
        places = places if places.dtype.kind in "fc" else places.astype(float)
        if self.bounds_error:
            places = require_within("interp1d", places, self.x[0], self.x[-1])
        found = self.evaluate(places)
        beyond = self.beyond()
        if beyond is not None:
            below, above = (as_tensor(value).astype(found.dtype) for value in beyond)
            found = np.where(add_axes(places < self.x[0], found), below, found)
            found = np.where(add_axes(places > self.x[-1], found), above, found)
        return move_place_axes(found, places.ndim, self.axis)

    def beyond(self) -> tuple[Any, Any] | None:
        """Return the values below and above the places; None where samples are continued, or no place is outside."""
        if self.bounds_error:
            return None
        if not is_extrapolated(self.fill_value):
            pair = isinstance(self.fill_value, tuple) and len(self.fill_value) == 2
            return self.fill_value if pair else (self.fill_value, self.fill_value)
        return {"previous": (np.nan, self.y[-1]), "next": (self.y[0], np.nan)}.get(self.kind)

    def evaluate(self, x: Any) -> Any:
        """Return values as if all places were inside."""
        if self.spline is not None:
            return self.spline(x)
        if self.kind == "linear":
            return self.on_lines(x)
        count = self.x.shape[0]
        if self.kind == "previous":
            j = np.searchsorted(np.nextafter(self.x, -np.inf), x, side="left")
            return self.y[np.clip(j, 1, count) - 1]
        if self.kind == "next":
            return self.y[np.clip(np.searchsorted(np.nextafter(self.x, np.inf), x, side="right"), 0, count - 1)]
        halves = self.x / 2.0  # before they are added, which may overflow
        j = np.searchsorted(halves[1:] + halves[:-1], x, side="left" if self.kind == "nearest" else "right")
        return self.y[np.clip(j, 0, count - 1)]

    def on_lines(self, x: Any) -> Any:
        """Return values on the lines between samples."""
        real = all(z.dtype == np.float64 or z.dtype.kind == "i" for z in (self.x, self.y))
        if real and self.y.ndim == 1 and not is_extrapolated(self.fill_value):
            return np.interp(x, self.x, self.y)
        j = np.clip(np.searchsorted(self.x, x), 1, self.x.shape[0] - 1)
        low, high = self.y[j - 1], self.y[j]
        length = self.x[j] - self.x[j - 1]
        if np.lib.NumpyVersion(scipy.__version__) >= "1.18.0":
            weights = (x - self.x[j - 1]) / length, (self.x[j] - x) / length
            return add_axes(weights[0], low) * high + add_axes(weights[1], low) * low
        return (high - low) / add_axes(length, low) * add_axes(x - self.x[j - 1], low) + low


DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5, "slinear_legacy": 1, "cubic_legacy": 3, "quintic_legacy": 5}
METHODS = ("linear", "nearest", "pchip", *DEGREES)


def require_method(name: str, method: Any) -> None:
    """Raise a UsageError of a method that is unknown."""
    if method not in METHODS:
        raise UsageError(name, f"method={method!r:.40}", f"one of {', '.join(METHODS)} is needed", "Pass one of them")


def coordinates(name: str, xi: Any, rank: int) -> Any:
    """Return places whose coordinates are the last axis."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        found: Any = np.stack(np.broadcast_arrays(*[as_places(name, x) for x in xi]), axis=-1)
    else:
        found = as_places(name, xi)
        found = found.reshape(-1, rank) if found.ndim == 1 and found.shape[0] % rank == 0 else found
    if not found.ndim or found.shape[-1] != rank:
        given = f"places of shape {found.shape} on a grid with {rank} axes"
        raise ShapeError(name, given, "a coordinate for each axis is needed", "Transpose them")
    return found


class RegularGridInterpolator:
    """Go through samples on a grid; see `scipy.interpolate.RegularGridInterpolator`.

    Splines are those of SciPy's methods "..._legacy": its others solve for coefficients by iteration, to 1e-6.

    Args:
        points: the places of samples along each axis, which increase or, where they are known, decrease.
        values: samples, real or complex; further axes are carried along.
        method: "linear", "nearest", "slinear", "cubic", "quintic" or "pchip".
        bounds_error: whether places outside are an error.
        fill_value: what is outside; None to continue the samples.
        solver: a function, which is not needed: systems are solved directly.
        solver_args: not needed.

    Raises:
        ShapeError: the places do not fit the samples.
        UsageError: the method is unknown.
        ValueError: of a call with a place outside.

    >>> grid = RegularGridInterpolator(([0.0, 1.0], [0.0, 2.0]), [[0.0, 2.0], [1.0, 3.0]])
    >>> grid([[0.5, 1.0], [1.0, 2.0]])
    tensor([1.5, 3. ])
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        name = "RegularGridInterpolator"
        require_method(name, method)
        heights: Any = as_tensor(values)
        heights = heights if heights.dtype.kind in "fc" else heights.astype(float)
        rows = [numbers(p) for p in points]
        if [p.shape for p in rows] != [(n,) for n in heights.shape[: len(rows)]]:
            given = f"places of shapes {[p.shape for p in rows]} for samples of shape {heights.shape}"
            raise ShapeError(name, given, "a row for each axis is needed", "Correct them")
        grid = []
        for axis, p in enumerate(rows):
            if p.shape[0] > 1 and is_concrete(p) and np.all(np.diff(np.asarray(raw(p))) < 0):
                p, heights = np.flip(p), np.flip(heights, axis)
            grid.append(increasing_places(name, p, 1))
        self.grid, self.values = tuple(grid), heights
        if solver is not None:
            require_callable(name, solver, "solver")
        if fill_value is not None:
            require_one_number(name, "fill_value", fill_value, real=heights.dtype.kind != "c")
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value

    def __call__(self, xi: Any, method: str | None = None, *, nu: Sequence[int] | None = None) -> Any:
        """Return values at places, whose coordinates are the last axis.

        Args:
            xi: places.
            method: another method.
            nu: which derivative along each axis, of splines.
        """
        name, chosen = "RegularGridInterpolator", self.method if method is None else method
        require_method(name, chosen)
        if nu is not None and chosen not in DEGREES:
            raise UsageError(name, f"nu={nu} with method={chosen!r}", "a spline is needed", "Use wengert.jvp")
        rank = len(self.grid)
        places = coordinates(name, xi, rank)
        rows = [places[..., i] for i in range(rank)]
        shape = places.shape[:-1]
        rows = [row.reshape(-1) for row in rows]
        if self.bounds_error:
            rows = [require_within(name, row, p[0], p[-1]) for row, p in zip(rows, self.grid, strict=True)]
        found = self.evaluate(rows, chosen, nu)
        outside = [(row < p[0]) | (row > p[-1]) for row, p in zip(rows, self.grid, strict=True)]
        if not self.bounds_error and self.fill_value is not None:
            found = np.where(add_axes(np.any(np.stack(outside), axis=0), found), as_tensor(self.fill_value), found)
        if chosen == "nearest":
            missing = np.any(np.stack([np.isnan(row) for row in rows]), axis=0)
            found = np.where(add_axes(missing, found), np.nan, found)
        return found.reshape(*shape, *self.values.shape[rank:])

    def evaluate(self, rows: Sequence[Any], method: str, nu: Sequence[int] | None) -> Any:
        """Return values as if all places were inside."""
        if method in DEGREES:
            degrees = [DEGREES[method]] * len(rows)
            return self.splines(degrees)(rows, nu or [0] * len(rows))
        if method == "pchip":
            return self.monotone(rows)
        lows, parts = zip(*[locate_places(p, row) for p, row in zip(self.grid, rows, strict=True)], strict=True)
        if method == "nearest":
            return self.values[
                tuple(np.where(part <= 0.5, low, low + 1) for low, part in zip(lows, parts, strict=True))
            ]
        return multilinear(self.values, lows, parts)

    def splines(self, degrees: Sequence[int]) -> TensorSpline:
        """Return the product of splines along each axis that goes through the samples."""
        return TensorSpline.through(self.grid, self.values, degrees)

    def monotone(self, rows: Sequence[Any]) -> Any:
        """Return values of monotone cubic interpolants of interpolants, from the last axis on."""
        rank = len(rows)
        found = PchipInterpolator(self.grid[-1], self.values, axis=rank - 1)(rows[-1])
        found = np.moveaxis(found, rank - 1, 0)
        each = np.arange(rows[-1].shape[0])
        for axis in reversed(range(rank - 1)):
            c = PchipInterpolator(self.grid[axis], found, axis=axis + 1).c
            j = interval(self.grid[axis], rows[axis], 0, self.grid[axis].shape[0] - 2)
            c = c[:, j, each]
            found = power_sum(c, add_axes(rows[axis] - self.grid[axis][j], c[0]))
        return found


def locate_places(p: Any, x: Any) -> tuple[Any, Any]:
    """Return the interval of each place and where in it this lies, from 0 to 1."""
    if p.shape[0] == 1:
        return np.zeros(x.shape, int), x * 0.0
    low = interval(p, x, 0, p.shape[0] - 2)
    return low, (x - p[low]) / (p[low + 1] - p[low])


def multilinear(values: Any, lows: Sequence[Any], parts: Sequence[Any]) -> Any:
    """Return the mean of the samples around each place, weighted by the volumes opposite."""
    found: Any = 0.0
    for corner in itertools.product((0, 1), repeat=len(lows)):
        index = [np.minimum(low + c, n - 1) for low, c, n in zip(lows, corner, values.shape, strict=False)]
        shares = [part if c else 1 - part for part, c in zip(parts, corner, strict=True)]
        term = values[tuple(index)]
        found = found + term * add_axes(math.prod(shares[1:], start=shares[0]), term)
    return found


class TensorSpline:
    """Be a sum of products of B-splines, one along each axis."""

    def __init__(self, knots: Sequence[Any], c: Any, degrees: Sequence[int]) -> None:
        self.knots, self.c, self.degrees = tuple(knots), c, tuple(degrees)

    @classmethod
    def through(cls, grid: Sequence[Any], values: Any, degrees: Sequence[int]) -> TensorSpline:
        """Return the one that goes through samples on a grid."""
        knots, c = [], values
        for axis, (p, k) in enumerate(zip(grid, degrees, strict=True)):
            made = make_interp_spline(p, c, k, axis=axis, check_finite=False)
            knots.append(made.t)
            c = np.moveaxis(made.c, 0, axis)
        return cls(knots, c, degrees)

    def __call__(self, rows: Sequence[Any], nu: Sequence[int]) -> Any:
        """Return values at places, given by a row of coordinates for each axis."""
        index, weights = [], []
        rank = len(rows)
        for axis, (t, k, x, order) in enumerate(zip(self.knots, self.degrees, rows, nu, strict=True)):
            left = interval(t, x, k, t.shape[0] - k - 2)
            places = left[:, None] - k + np.arange(k + 1)
            index.append(places.reshape(-1, *(k + 1 if i == axis else 1 for i in range(rank))))
            weights.append(basis(t, k, x, left, order).T)
        found = self.c[tuple(index)]
        for weight in weights:
            found = np.sum(found * add_axes(weight, found), axis=1)
        return found


def interpn(
    points: Sequence[Any],
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Return values between samples on a grid; see `scipy.interpolate.interpn`.

    Args:
        points: the places of samples along each axis.
        values: samples.
        xi: places.
        method: one of those of `RegularGridInterpolator`, or "splinef2d".
        bounds_error: whether places outside are an error.
        fill_value: what is outside; None to continue the samples.

    Raises:
        ShapeError: the places do not fit the samples.
        UsageError: the method is unknown.

    >>> interpn(([0.0, 1.0], [0.0, 2.0]), [[0.0, 2.0], [1.0, 3.0]], [0.5, 1.0])
    tensor([1.5])
    """
    chosen = "cubic" if method == "splinef2d" else method
    if method == "splinef2d" and (len(points) != 2 or np.ndim(values) != 2):
        given = f"method='splinef2d' for samples with {np.ndim(values)} axes"
        raise UsageError("interpn", given, "two are needed", "Pass method='cubic'")
    require_method("interpn", chosen)
    return RegularGridInterpolator(points, values, chosen, bounds_error, fill_value)(xi)


class RectBivariateSpline:
    """Be the product of splines through samples on a grid; see `scipy.interpolate.RectBivariateSpline`.

    Outside it has the values at the edge.

    Args:
        x: the places of samples along the first axis, which increase.
        y: those along the second one.
        z: samples.
        bbox: not supported.
        kx: the degree along the first axis.
        ky: that along the second one.
        s: 0: splines that smooth choose their knots by the samples.
        maxit: not needed.

    Raises:
        ShapeError: the places do not fit the samples.
        UsageError: what is not supported is given.

    >>> x = np.arange(4.0)
    >>> RectBivariateSpline(x, x, x[:, None] * x)(1.5, 2.5).round(12)
    tensor([[3.75]])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any,
        bbox: Sequence[Any] = (None, None, None, None),
        kx: int = 3,
        ky: int = 3,
        s: float = 0,
        maxit: int = 20,
    ) -> None:
        name = "RectBivariateSpline"
        if s or any(end is not None for end in bbox):
            raise UsageError(name, "bounds, or smoothing", "a spline through all samples is needed", "Leave them out")
        grid, heights = (increasing_places(name, x), increasing_places(name, y)), numbers(z)
        if heights.shape != tuple(p.shape[0] for p in grid):
            given = f"samples of shape {heights.shape} for {grid[0].shape[0]} and {grid[1].shape[0]} places"
            raise ShapeError(name, given, "one for each pair is needed", "Transpose them")
        self.spline = TensorSpline.through(grid, heights, (kx, ky))
        self.degrees = kx, ky

    @property
    def tck(self) -> tuple[Any, Any, Any]:
        """Knots along both axes, and coefficients in one row."""
        return (*self.spline.knots, self.spline.c.reshape(-1))

    def inside(self, x: Any, y: Any, orders: tuple[int, int]) -> list[Any]:
        """Return coordinates moved to the edge if they lie beyond, where there are no derivatives."""
        rows = [
            (as_places("RectBivariateSpline", z), t[0], t[-1]) for z, t in zip((x, y), self.spline.knots, strict=True)
        ]
        if any(orders):
            return [require_within("RectBivariateSpline", *row) for row in rows]
        return [np.clip(*row) for row in rows]

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """Return values, or those of derivatives, on the grid of coordinates or at pairs of them."""
        if not grid:
            return self.ev(x, y, dx, dy)
        rows = [row.reshape(-1) for row in self.inside(x, y, (dx, dy))]
        (tx, ty), (kx, ky) = self.spline.knots, self.degrees
        along = BSpline.construct_fast(tx, self.spline.c, kx)(rows[0], dx)
        return BSpline.construct_fast(ty, np.moveaxis(along, 1, 0), ky, axis=1)(rows[1], dy)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Return values, or those of derivatives, at pairs of coordinates."""
        x, y = np.broadcast_arrays(*self.inside(xi, yi, (dx, dy)))
        return self.spline([x.reshape(-1), y.reshape(-1)], (dx, dy)).reshape(x.shape)

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
        """Return the integral over a rectangle, zero outside."""
        (tx, ty), (kx, ky) = self.spline.knots, self.degrees
        along = BSpline.construct_fast(tx, self.spline.c, kx).integrate(xa, xb, extrapolate=False)
        return BSpline.construct_fast(ty, along, ky).integrate(ya, yb, extrapolate=False)
