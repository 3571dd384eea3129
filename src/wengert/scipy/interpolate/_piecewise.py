"""Samples and their places, and the piecewise polynomials that go through them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import require_finite, require_real
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.plain_functions import by_arrays
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, describe
from wengert.numpy._shapes import add_axes
from wengert.primitives.indexing.elements import within


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


def monotone_places(value: Any) -> tuple[Any, Any]:
    """Return places in one row, which go up or down, and the sign that turns them up; None where they are known to."""
    x = numbers(value)
    if x.dtype.kind == "c" or x.ndim != 1 or x.shape[0] < 2:
        given = f"places of shape {x.shape} and dtype {x.dtype}"
        raise ShapeError("PPoly", given, "a row of 2 real numbers or more is needed", "Correct them")
    if not is_concrete(x):
        return x, np.where(x[-1] < x[0], -1.0, 1.0)
    steps = np.diff(np.asarray(raw(x)))
    if np.all(steps >= 0):
        return x, None
    if np.all(steps <= 0):
        return x, -1.0
    given = "places that go up and down"
    raise ValueError(describe("PPoly", given, "those that do not turn, and no NaN, are needed", "Sort them"))


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


def power_sum(coefficients: Sequence[Any], s: Any, nu: int = 0) -> Any:
    """Return a derivative of the polynomial with these coefficients, the highest power first.

    Terms are added from the lowest on, as SciPy does, so that the bits are its.
    """
    total: Any = 0.0
    power: Any = None
    for order in range(nu, len(coefficients)):
        term = coefficients[-1 - order]
        term = term if power is None else term * power
        total = total + (term * float(math.perm(order, nu)) if nu else term)
        power = s if power is None else power * s
    return total


@by_arrays
def evaluate_pieces(c: Any, breaks: Any, turn: Any, places: Any, nu: int, beyond: Any, axis: int) -> Any:
    """Return values of a piecewise polynomial, or of a derivative; `turn` is the sign that turns its breaks up."""
    first, last = breaks[0], breaks[-1]
    if beyond == "periodic":
        places = first + (places - first) % (last - first)
    ends, along = (breaks, places) if turn is None else (turn * breaks, turn * places)
    j = interval(ends, along, 0, breaks.shape[0] - 2)
    c, count = c[:, j], len(c)
    found = (
        c[0] * 0.0 if nu >= count else power_sum([c[k] for k in range(count)], add_axes(places - breaks[j], c[0]), nu)
    )
    if beyond is False:
        found = np.where(add_axes((along >= ends[0]) & (along <= ends[-1]), found), found, np.nan)
    elif count <= nu + 1:  # a constant does not see that a place is NaN
        found = np.where(add_axes(np.isnan(places), found), np.nan, found)
    return move_place_axes(found, places.ndim, axis)


class PPoly:
    """Be a piecewise polynomial; see `scipy.interpolate.PPoly`.

    Args:
        c: coefficients, the highest power along the first axis, intervals along the second one.
        x: the ends of the intervals, which do not turn.
        extrapolate: whether the first and last polynomials go on beyond the ends, where else it is NaN; "periodic" to
            repeat all.
        axis: which axis of values those of the places replace.

    Raises:
        ShapeError: there are not as many intervals.

    >>> PPoly([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 2.0])([0.5, 1.5])
    tensor([0.5, 1. ])
    """

    turn: Any = None

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self.x, self.turn = monotone_places(x)
        found = numbers(c)
        if axis:
            found = np.moveaxis(found, (axis, axis + 1), (0, 1))
        if found.ndim < 2 or not found.shape[0] or found.shape[1] != self.x.shape[0] - 1:
            given = f"coefficients of shape {found.shape} for {self.x.shape[0] - 1} intervals"
            raise ShapeError("PPoly", given, "powers, then as many intervals, are needed", "Transpose them")
        self.c = found
        self.extrapolate = extrapolation(extrapolate)
        self.axis = axis

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Self:
        """Return a piecewise polynomial of coefficients and breaks that are not checked."""
        made = object.__new__(cls)
        made.c, made.x, made.extrapolate, made.axis = c, x, True if extrapolate is None else extrapolate, axis
        return made

    def of(self, c: Any) -> PPoly:
        """Return a piecewise polynomial with other coefficients."""
        made = PPoly.construct_fast(c, self.x, self.extrapolate, self.axis)
        made.turn = self.turn
        return made

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return values, or those of a derivative.

        Args:
            x: places.
            nu: which derivative.
            extrapolate: see the class.
        """
        beyond = extrapolation(extrapolate, self.extrapolate)
        return evaluate_pieces(self.c, self.x, self.turn, as_places(type(self).__name__, x), nu, beyond, self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """Return a derivative as a piecewise polynomial."""
        if nu < 0:
            return self.antiderivative(-nu)
        count = self.c.shape[0]
        if nu >= count:
            found = np.zeros_like(self.c[:1])
        else:
            factors = np.array([float(math.perm(count - 1 - i, nu)) for i in range(count - nu)])
            found = self.c[: count - nu] * factors.reshape(-1, *(1,) * (self.c.ndim - 1))
        return self.of(found)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the integral from the first end on as a piecewise polynomial; nu times."""
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        for _ in range(nu):
            powers = np.arange(len(c), 0, -1.0).reshape(-1, *(1,) * (c.ndim - 1))
            risen = c / powers
            width = add_axes(np.diff(self.x), c[0])
            pieces = power_sum(risen, width) * width
            before = np.concatenate([np.zeros_like(pieces[:1]), np.cumsum(pieces[:-1], axis=0)])
            c = np.concatenate([risen, before[None]])
        made = self.of(c)
        made.extrapolate = False if self.extrapolate == "periodic" and nu else self.extrapolate
        return made

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral from a to b."""
        beyond = extrapolation(extrapolate, self.extrapolate)
        whole = PPoly.construct_fast(self.antiderivative().c, self.x)
        whole.turn = self.turn
        return integral(whole, numbers(a), numbers(b), self.x[0], self.x[-1], beyond)


def integral(whole: Any, a: Any, b: Any, first: Any, last: Any, beyond: Any) -> Any:
    """Return the difference of an antiderivative at b and a, of a function that may repeat."""
    if beyond != "periodic":
        return whole(b, extrapolate=beyond) - whole(a, extrapolate=beyond)
    period = last - first
    start = first + (a - first) % period
    turns = np.floor((b - a) / period)
    stop = start + (b - a) - turns * period
    over = stop > last
    each = whole(last) - whole(first)
    return (turns + over) * each + whole(np.where(over, stop - period, stop)) - whole(start)
