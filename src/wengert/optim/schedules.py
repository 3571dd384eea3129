"""Schedules: step sizes as functions of the number of steps before, which can be traced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_items, as_whole
from wengert.errors import UsageError
from wengert.optim.rules import require

Schedule = Callable[[Any], Any]


def linear(start: float, end: float, steps: int) -> Schedule:
    """Return the schedule that goes from one rate to another in a line, and stays there.

    Args:
        start: the rate at first.
        end: the rate after `steps`.
        steps: how many steps it takes, 1 or more.

    Returns:
        The schedule.

    Raises:
        UsageError: a rate is negative, or `steps` no whole number of 1 or more.

    >>> rate = linear(1.0, 0.0, 4)
    >>> float(rate(1)), float(rate(9))
    (0.75, 0.0)
    """
    require("linear", "start", start)
    require("linear", "end", end)
    count = as_whole("optim.linear", "steps", steps, 1)
    return functools.partial(linear_rate, start, end, count)


def linear_rate(start: float, end: float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    return start + (end - start) * np.minimum(step / count, 1.0)


def exponential(start: float, factor: float, steps: int = 1) -> Schedule:
    """Return the schedule that multiplies the rate by a factor in each so many steps, smoothly.

    Args:
        start: the rate at first.
        factor: what it is multiplied by.
        steps: in how many steps, 1 or more.

    Returns:
        The schedule.

    Raises:
        UsageError: a number is negative, or `steps` no whole number of 1 or more.

    >>> float(exponential(1.0, 0.5, 10)(20))
    0.25
    """
    require("exponential", "start", start)
    require("exponential", "factor", factor)
    count = as_whole("optim.exponential", "steps", steps, 1)
    return functools.partial(exponential_rate, start, factor, count)


def exponential_rate(start: float, factor: float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    return start * factor ** (step / count)


def cosine(start: float, steps: int, end: float = 0.0) -> Schedule:
    """Return the schedule that goes down as half a cosine wave (Loshchilov and Hutter, SGDR, 2017), and stays there.

    Args:
        start: the rate at first.
        steps: how many steps it takes, 1 or more.
        end: the rate after them.

    Returns:
        The schedule.

    Raises:
        UsageError: a rate is negative, or `steps` no whole number of 1 or more.

    >>> rate = cosine(1.0, 10)
    >>> round(float(rate(5)), 12), round(float(rate(10)), 12)
    (0.5, 0.0)
    """
    require("cosine", "start", start)
    require("cosine", "end", end)
    count = as_whole("optim.cosine", "steps", steps, 1)
    return functools.partial(cosine_rate, start, end, count)


def cosine_rate(start: float, end: float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    return end + 0.5 * (start - end) * (1.0 + np.cos(np.pi * np.minimum(step / count, 1.0)))


def piecewise(rates: Sequence[float], bounds: Sequence[int]) -> Schedule:
    """Return the schedule with one rate after another.

    Args:
        rates: the rates.
        bounds: the steps at which the second and later ones begin, increasing.

    Returns:
        The schedule.

    Raises:
        UsageError: there is not one bound less than rates, or bounds do not increase.

    >>> rate = piecewise([1.0, 0.1], [3])
    >>> float(rate(2)), float(rate(3))
    (1.0, 0.1)
    """
    values = as_items("optim.piecewise", "rates", rates)
    limits = [as_whole("optim.piecewise", "a bound", b) for b in as_items("optim.piecewise", "bounds", bounds)]
    if len(values) != len(limits) + 1 or any(a >= b for a, b in pairwise(limits)):
        given = f"{len(values)} rates and bounds {limits!r:.40}"
        needed = "one bound less than rates is needed, increasing"
        raise UsageError("optim.piecewise", given, needed, "Pass the step at which each later rate begins")
    for rate in values:
        require("piecewise", "a rate", rate)
    return functools.partial(table_rate, np.array(values, float), np.array(limits))


def table_rate(rates: Any, begins: Any, step: Any) -> Any:
    """Return the rate of a step."""
    return np.sum(np.where(np.arange(len(rates)) == np.sum(step >= begins), rates, 0.0))


def warmed_up(schedule: Schedule | float, steps: int) -> Schedule:
    """Return a schedule that begins small: in the first steps it grows from 0 in a line.

    Args:
        schedule: a rate, or the schedule that begins after these steps.
        steps: their number, 1 or more.

    Returns:
        The schedule.

    Raises:
        UsageError: a rate is negative, or `steps` no whole number of 1 or more.

    >>> rate = warmed_up(1.0, 4)
    >>> float(rate(0)), float(rate(2)), float(rate(9))
    (0.0, 0.5, 1.0)
    """
    count = as_whole("optim.warmed_up", "steps", steps, 1)
    if not callable(schedule):
        require("warmed_up", "schedule", schedule)
        schedule = float(schedule)
    return functools.partial(ramp_rate, schedule, count)


def ramp_rate(schedule: Schedule | float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    rate = schedule(np.maximum(step - count, 0)) if callable(schedule) else schedule
    return rate * np.minimum(step / count, 1.0)
