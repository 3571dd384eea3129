"""Right-hand sides that jump: derivatives of steps over a jump lack those by its time, without any error of the values.

At a jump one attempt after the other is rejected, each shorter, since an error falls with the size there and not with a
power of it. So the place where the most attempts in a row were is looked at: halves in which the slope changes more are
halved again, and where it changes as much in parts that are a million times shorter, it jumps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.tensor import is_concrete, raw
from wengert.scipy.integrate._unseen_derivatives import is_any_traced
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

FEWEST = 2
"""Rejected attempts in a row from which a place is looked at."""
HALVINGS = 20
FALLS = 0.7
"""What a change of a slope falls by with each half, at least, where it does not jump: by 2, save what is curved."""
LAST, STAYS = 5, 0.9
"""Of how many last halves the change of a slope is as much, nearly, where it jumps: roots, which are steep at 0, fall
slowly, by 0.18 of square roots."""
NOTHING = 1e-6
"""The change of a slope, as a part of it, that no jump is told by."""
AHEAD = 1.5
"""How far beyond an attempt its place is looked at: where it jumps by the state, that may come a little later."""


class Rejections(NamedTuple):
    """Hold where attempts were rejected, all of it constant.

    Attributes:
        in_row: how many were since the last good one.
        most: how many were in a row, at the place that is held.
        t, h, y: where the last of these began, its size with its sign, and the state.
    """

    in_row: Any
    most: Any
    t: Any
    h: Any
    y: Any

    def after(self, rejected: Any, t: Any, h: Any, y: Any) -> Rejections:
        """Return the record of rejections after an attempt of size h from a time and a state."""
        in_row = np.where(rejected, self.in_row + 1, 0)
        is_worst = (in_row >= FEWEST) & (in_row >= self.most)
        known = (in_row, *stop_gradient((t, h, y)))
        return Rejections(in_row, *(np.where(is_worst, new, old) for new, old in zip(known, self[1:], strict=True)))


def no_rejections(t: Any, y: Any) -> Rejections:
    """Return the record of rejections with which an integration begins: there were none."""
    t, y = stop_gradient((t, y))
    return Rejections(0, 0, t, 0.0 * t, y)


def warn_if_jumping(
    rejections: Rejections, moving: Callable[[], Sequence[Any]], slope: Callable[[Any, Any], Any]
) -> None:
    """Warn if derivatives are being taken of an integration over a jump.

    Args:
        rejections: those of the integration.
        moving: gives the initial state, and what functions are given.
        slope: of a time and a state, as arrays.
    """
    if not all(map(is_concrete, rejections)) or raw(rejections.most) < FEWEST:
        return
    if not is_any_traced(moving()):
        return
    t, h, y = (np.asarray(raw(x)) for x in (rejections.t, rejections.h, rejections.y))
    with np.errstate(all="ignore"):  # a slope may not be defined ahead, behind the end, say
        place = jump_in(t, h, y, slope)
    if place is None:
        return
    text = f"solve_ivp: the right-hand side jumps at t = {place:.6g}, over which steps were taken: derivatives by what "
    text += "that time depends on are missing. Integrate up to it, or to an event, and from there on, in two calls "
    text += "with the function of each side"
    warnings.warn(text, UserWarning, stacklevel=user_stacklevel())


def jump_in(t: Any, h: Any, y: Any, slope: Callable[[Any, Any], Any]) -> float | None:
    """Return the time near an attempt at which a slope jumps; None if it does not."""
    first = slope(t, y)

    def at(part: float) -> Any:
        return slope(t + part * h, y + part * h * first)

    low, high, before, after = 0.0, AHEAD, first, at(AHEAD)
    changes = [np.max(np.abs(after - before))]
    for k in range(1, HALVINGS + 1):
        if not changes[-1] > max(NOTHING * np.max(np.abs(before)), FALLS**k * changes[0]):  # NaN, too
            return None
        middle = 0.5 * (low + high)
        between = at(middle)
        if np.max(np.abs(between - before)) > np.max(np.abs(after - between)):
            high, after = middle, between
        else:
            low, before = middle, between
        changes.append(np.max(np.abs(after - before)))
    return float(t + high * h) if changes[-1] > STAYS * changes[-1 - LAST] else None
