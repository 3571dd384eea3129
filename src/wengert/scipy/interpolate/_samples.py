"""What interpolants are made of: samples and their places."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import require_finite, require_real
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.plain_functions import by_arrays
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, describe
from wengert.primitives.indexing.interpolation import within


def numbers(value: Any) -> Any:
    """Return an array of doubles, real or complex."""
    x: Any = as_tensor(value)
    return x if x.dtype.char in "dD" else x.astype(complex if x.dtype.kind == "c" else float)


def as_places(name: str, value: Any) -> Any:
    """Return places, which are real, as doubles."""
    x: Any = as_tensor(value)
    require_real(name, "places", x.dtype)
    return numbers(x)


def increasing_places(name: str, value: Any, least: int = 2) -> Any:
    """Return places in one row; those that are known increase."""
    x = numbers(value)
    if x.dtype.kind == "c" or x.ndim != 1 or x.shape[0] < least:
        given = f"places of shape {x.shape} and dtype {x.dtype}"
        raise ShapeError(name, given, f"a row of {least} real numbers or more is needed", "Correct them")
    if is_concrete(x):
        places = np.asarray(raw(x))
        if not (np.all(np.diff(places) > 0) and np.all(np.isfinite(places))):
            given = "places that do not increase"
            raise ValueError(describe(name, given, "finite ones, each greater than the last, are needed", "Sort them"))
    return x


def monotone_places(name: str, value: Any) -> tuple[Any, Any]:
    """Return places in one row, which go up or down, and the sign that turns them up; None where they are known to."""
    x = numbers(value)
    if x.dtype.kind == "c" or x.ndim != 1 or x.shape[0] < 2:
        given = f"places of shape {x.shape} and dtype {x.dtype}"
        raise ShapeError(name, given, "a row of 2 real numbers or more is needed", "Correct them")
    if not is_concrete(x):
        return x, np.where(x[-1] < x[0], -1.0, 1.0)
    steps = np.diff(np.asarray(raw(x)))
    if np.all(steps >= 0):
        return x, None
    if np.all(steps <= 0):
        return x, -1.0
    given = "places that go up and down"
    raise ValueError(describe(name, given, "those that do not turn, and no NaN, are needed", "Sort them"))


def extrapolation(extrapolate: Any, default: Any = True) -> Any:
    """Return whether an interpolant goes on beyond its ends, or "periodic"."""
    chosen = default if extrapolate is None else extrapolate
    return chosen if isinstance(chosen, str) and chosen == "periodic" else bool(chosen)


def samples(name: str, value: Any, axis: int, count: int) -> tuple[Any, int]:
    """Return samples with their axis in front, one for each place, and which axis it was."""
    y = numbers(value)
    at = normalize_axis_index(axis, y.ndim)
    if y.shape[at] != count:
        given = f"{count} places for samples of shape {y.shape}"
        raise ShapeError(name, given, f"as many samples along axis {axis} are needed", "Correct one of them")
    return np.moveaxis(y, at, 0), at


def finite_samples(name: str, what: str, value: Any, axis: int, count: int) -> tuple[Any, int]:
    """Return samples with their axis in front, and which axis it was; known ones have to be finite."""
    found = samples(name, value, axis, count)
    require_finite(name, what, found[0])
    return found


@by_arrays
def interval(breaks: Any, x: Any, first: int, last: int) -> Any:
    """Return the interval [b[j], b[j + 1]) that each x lies in; the first and last ones go on."""
    return np.minimum(np.maximum(np.searchsorted(breaks, x, side="right") - 1, first), last)


def move_place_axes(found: Any, rank: int, axis: int) -> Any:
    """Return values whose first axes, those of the places, stand where the axis of the samples was."""
    if not axis:
        return found
    order = [*range(rank, rank + axis), *range(rank), *range(rank + axis, found.ndim)]
    return found.transpose(order)


def require_within(name: str, x: Any, low: Any, high: Any) -> Any:
    """Return places as they are; a ValueError is raised, when they are known, if one lies outside."""
    return apply(within, x, low, high, name=name)
