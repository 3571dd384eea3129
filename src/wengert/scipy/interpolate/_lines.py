"""Interpolation along one axis by lines, steps or splines."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, UsageError
from wengert.numpy._shapes import add_axes
from wengert.scipy.interpolate._bsplines import make_interp_spline
from wengert.scipy.interpolate._piecewise import move_place_axes, require_within

DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
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
        self.degree = DEGREES.get(kind) if isinstance(kind, str) else kind
        if self.degree is None and kind not in ("linear", *STEPS):
            known = ", ".join(["linear", *STEPS, *DEGREES])
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
