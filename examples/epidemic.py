"""Epidemic: influenza in a boarding school, when it was worst, and what isolation from some day on would have changed.

Of 763 boys s can still be infected and i are ill; the ill infect others at a rate a, and recover at a rate r:

    s' = -a c s i / 763,   i' = a c s i / 763 - r i,

with c = 1 for their contacts. Rates, and how many were ill at first, are fitted to the number in bed on each day. An
event is where i' = 0, the worst day; the derivatives of its time by what was fitted, and the covariance of that, give
its standard error. Another is where a number in bed is reached, from where on c is less; the worst number then depends
on when that is decided, and its derivatives with it: events tell how their times move, and states after them.

Sources: Influenza in a boarding school, British Medical Journal 1, 1978, page 587 (numbers read off its figure); J. D.
Murray, Mathematical biology I, 2002, section 10.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert import optim
from wengert.scipy.integrate import solve_ivp

BOYS = 763.0
IN_BED = np.array([3.0, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
DAYS = np.arange(len(IN_BED), dtype=float)
FIRST = {"infection": 1.5, "recovery": 0.5, "ill": 3.0}


class Result(NamedTuple):
    """Hold what was found."""

    days: Array  # shape (times,)
    fitted: Array  # shape (times,), how many are ill
    isolated: Array  # shape (times,), with isolation
    errors: Array  # the standard errors of infection and recovery
    infection: float  # a, a day
    recovery: float  # r, a day
    worst_day: float
    worst_day_error: float  # its standard error
    worst: float  # how many were ill then
    worst_isolated: float  # and with isolation
    by_decision: float  # the derivative of that by the number at which isolation begins


def slope(_t: Any, y: Any, p: Any) -> Any:
    """Return how fast boys become ill and recover; their contacts change at events only."""
    susceptible, ill, contacts = y
    new = p["infection"] * contacts * susceptible * ill / BOYS
    return [-new, new - p["recovery"] * ill, 0.0 * contacts]


def ill_at(days: Any, p: Any, **options: Any) -> Any:
    """Return the solution at some days."""
    start = np.stack([BOYS - p["ill"], p["ill"], np.ones(())])
    return solve_ivp(slope, (0.0, DAYS[-1]), start, t_eval=days, args=(p,), rtol=1e-8, atol=1e-8, **options)


def worst(t: Any, y: Any, p: Any) -> Any:
    """Return what falls through 0 where most are ill."""
    return slope(t, y, p)[1]


worst.direction = -1  # type: ignore[attr-defined]  # SciPy's


def peak(p: Any) -> Any:
    """Return the worst day, and how many are ill then."""
    found = ill_at(DAYS[-1:], p, events=worst)
    return found.t_events[0][0], found.y_events[0][0, 1]


def isolation(number: Any, contacts: float) -> Any:
    """Return an event: from where a number is reached contacts are fewer."""

    def reached(_t: Any, y: Any, _p: Any) -> Any:
        return y[1] - number

    reached.direction = 1  # type: ignore[attr-defined]  # SciPy's
    reached.reset = lambda _t, y, _p: [y[0], y[1], contacts + 0.0 * y[2]]  # type: ignore[attr-defined]
    return reached


def isolated_peak(number: Any, contacts: float, p: Any) -> Any:
    """Return how many are ill at worst with isolation."""
    return ill_at(DAYS[-1:], p, events=[isolation(number, contacts), worst]).y_events[1][0, 1]


def main(number: float = 50.0, contacts: float = 0.6, points: int = 200) -> Result:
    """Fit the rates, and ask about the worst day."""
    p, covariance = optim.curve_fit(lambda t, p: ill_at(t, p).y[1], DAYS, IN_BED, FIRST)
    _, by_infection, by_recovery = np.sqrt(np.diag(covariance))  # of containers: by name
    day, most = peak(p)
    by_fitted = wg.tree.ravel(wg.grad(lambda p: peak(p)[0])(p))[0]
    decided, by_number = wg.value_and_grad(isolated_peak)(number, contacts, p)
    day_error = np.sqrt(by_fitted @ covariance @ by_fitted)
    numbers = (p["infection"], p["recovery"], day, day_error, most, decided, by_number)
    days = np.linspace(0.0, DAYS[-1], points)
    fitted, isolated = (ill_at(days, p, events=e).y[1] for e in (None, isolation(number, contacts)))
    errors = np.array([by_infection, by_recovery])
    return Result(days, fitted, isolated, errors, *map(float, numbers))


def draw(result: Result) -> object:
    """Draw the numbers in bed, the fit, and the same with isolation."""
    drawn, axes = figure(1, 1)
    axes.plot(DAYS, IN_BED, "k.", label="in bed")
    axes.plot(result.days, result.fitted, "C0", label="fitted")
    axes.plot(result.days, result.isolated, "C2", label="with isolation")
    axes.axvspan(*(result.worst_day + 2 * result.worst_day_error * np.array([-1, 1])), alpha=0.15)
    axes.set(xlabel="day", ylabel="boys who are ill")
    axes.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
