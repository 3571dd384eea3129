"""Steps that another library's integrator took, as those of a method: a walk goes along them, and they are held.

What is known of each step is its end, the state there and the integrator's own continuous extension, which is a
polynomial of the part of the step. So output times, events and equations for cotangents and tangents are what they are
for methods of this library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.scipy.integrate._methods.adaptive_steps import GAVE_UP, Control, Step, Walk
from wengert.scipy.integrate._methods.implicit_method import ImplicitMethod
from wengert.scipy.integrate._methods.visits import Slope
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]
ORDER = 12
"""The highest order that multistep methods of other libraries have: Adams's in ODEPACK."""
UNLIMITED = float(np.nextafter(1e100, 0.0))
"""The absolute tolerance of states in whose errors nobody is interested; that itself, which nobody writes, of the rates
of residuals alone."""
POWERS = np.arange(ORDER + 1)


def polynomial_places(order: int) -> tuple[Array, Array]:
    """Return the parts of a step by whose states a polynomial is known, and what makes coefficients of these.

    They are P. L. Chebyshev's, with both ends; the polynomial is one of 2 x - 1, of lowest powers first.
    """
    places = 0.5 - 0.5 * np.cos(np.pi * np.arange(order + 1) / order)
    return places, np.linalg.inv((2.0 * places[:, None] - 1.0) ** np.arange(order + 1))


PLACES, COEFFICIENTS_OF = polynomial_places(ORDER)


class StepRecord(NamedTuple):
    """Hold the steps of an integration, with room for more.

    Attributes:
        ends: the times at which steps end, of shape (room,).
        states: those there, of shape (room, n).
        terms: of each step's extension the coefficients of powers, of shape (room, ORDER + 1, n).
        count: how many steps there are.
    """

    ends: Any
    states: Any
    terms: Any
    count: Any


class RecordedSteps(ImplicitMethod):
    """Go along the steps of a record."""

    @property
    def order(self) -> int:
        """The order by which the first size is chosen, which it is not."""
        return 1

    def start(self, slope: Slope, walk: Walk, direction: Any, chosen: bool, moves: bool) -> Walk:
        """Return where an integration begins."""
        return walk

    def restart(self, slope: Slope, walk: Walk, direction: Any, where: Any) -> Walk:
        """Return where an integration goes on after a change of the state."""
        return walk

    def try_step(self, slope: Slope, walk: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
        """Take the next step of the record, which ends an integration where there is none."""
        record: StepRecord = control.record
        place = np.minimum(walk.attempts, record.ends.shape[0] - 1)
        is_there = walk.attempts < record.count
        t = np.where(is_there, record.ends[place], walk.t)
        y = np.where(is_there, record.states[place], walk.y)
        h = np.where(is_there, t - walk.t, 1.0)
        failure = np.where(is_there, walk.failure, GAVE_UP)
        step = Step(walk.t, walk.y, h, y, (record.terms[place],))
        attempts = walk.attempts + np.where(is_there, 1, 0)
        return walk._replace(t=t, y=y, rejected=~is_there, attempts=attempts, failure=failure), step

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""
        return list(slopes)

    def basis(self, x: Any) -> list[Any]:
        """Return the powers of the part of a step that the continuous extension is a sum of, as one vector."""
        return [(2.0 * x - 1.0) ** POWERS]

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return the coefficients of a step along a slope."""
        way = 0.5 * h * f
        return [np.concatenate([np.stack([way, way]), np.zeros((ORDER - 1, f.shape[0]))])]


def record_of(interpolants: Sequence[Any], y0: Array, room: int | None) -> StepRecord:
    """Return the record of steps whose continuous extensions SciPy knows as functions of time.

    Args:
        interpolants: one for each step, with the times `t_old` and `t` of its ends.
        y0: the state at the beginning.
        room: for how many steps there has to be room; None for the next power of two.
    """
    count = len(interpolants)
    room = 1 << max(count - 1, 0).bit_length() if room is None else room
    ends, states = np.zeros(room), np.zeros((room, len(y0)))
    terms = np.zeros((room, ORDER + 1, len(y0)))
    start = y0
    for i, extension in enumerate(interpolants):
        first, last = extension.t_old, extension.t
        samples = extension(first + PLACES * (last - first)).T
        ends[i], states[i] = last, samples[-1]
        terms[i] = COEFFICIENTS_OF @ samples
        terms[i, 0] -= start
        start = states[i]
    return StepRecord(ends, states, terms, np.array(count))
