"""Orbit design: from a low orbit to a high one with the least fuel, by shooting.

A spacecraft moves about the Earth by r'' = -r / |r|^3 (lengths in radii of the first orbit, times so that its speed is
1). It may change its velocity twice: when it leaves its circular orbit of radius 1, and when it arrives on that of
radius R, after a flight whose duration is free, too. The flight is integrated by the classical method of Runge and
Kutta in equal steps, and the changes |dv1| + |dv2| are minimised under the condition that the craft arrives with the
circular velocity there; derivatives go through the integration. The best is Hohmann's transfer, half of an ellipse:

    |dv1| + |dv2| = sqrt(2 R / (1 + R)) - 1 + sqrt(1 / R) (1 - sqrt(2 / (1 + R))),   duration pi ((1 + R) / 2)^(3/2).

Source: H. D. Curtis, Orbital mechanics for engineering students, 4th edition, 2020, section 6.2; J. T. Betts, Practical
methods for optimal control using nonlinear programming, 2nd edition, 2010, section 3.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._methods import runge_kutta
from examples._program import Array, command, figure
from wengert import optim


class Plan(NamedTuple):
    """Hold what is decided."""

    departure: Array  # the change of velocity that begins the flight, of shape (2,)
    arrival: Array  # the one that ends it, of shape (2,)
    duration: float  # of the flight


class Result(NamedTuple):
    """Hold the best transfer."""

    plan: Plan  # the decisions
    cost: float  # the sum of the changes of velocity
    hohmann: float  # that of Hohmann's transfer
    duration: float  # of the flight
    half_ellipse: float  # that of Hohmann's transfer
    path: Array  # shape (steps + 1, 2), the places on the way
    radius: float  # of the orbit reached


def slope(state: Any) -> Any:
    """Return the time derivative of (place, velocity), of shape (2, 2)."""
    place, velocity = state
    return np.stack([velocity, -place / np.sum(place**2) ** 1.5])


def flight(plan: Plan, steps: int) -> tuple[Any, Any]:
    """Return the state at the arrival, before the last change of velocity, and all places on the way."""
    h = plan.duration / steps

    start = np.stack([np.array([1.0, 0.0]), np.array([0.0, 1.0]) + plan.departure])
    return wg.scan(lambda state, _: (runge_kutta(slope, state, h), state[0]), start, length=steps)


def main(radius: float = 4.0, steps: int = 100) -> Result:
    """Find the best transfer to an orbit of some radius."""

    def cost(plan: Plan) -> Any:
        return np.linalg.norm(plan.departure) + np.linalg.norm(plan.arrival)

    def misses(plan: Plan) -> Any:
        place, velocity = flight(plan, steps)[0]
        velocity = velocity + plan.arrival
        along = np.array([-place[1], place[0]], like=place)
        wanted = along / radius**1.5  # the circular velocity
        return np.append(velocity - wanted, np.sum(place**2) - radius**2)

    guess = Plan(np.array([0.1, 0.3]), np.array([0.1, -0.2]), 10.0)
    found = optim.minimize(cost, guess, method="SLSQP", constraints={"type": "eq", "fun": misses})
    end, path = flight(found.x, steps)
    hohmann = np.sqrt(2 * radius / (1 + radius)) - 1 + np.sqrt(1 / radius) * (1 - np.sqrt(2 / (1 + radius)))
    half = np.pi * ((1 + radius) / 2) ** 1.5
    return Result(found.x, found.fun, hohmann, found.x.duration, half, np.vstack([path, end[:1]]), radius)


def draw(result: Result) -> object:
    """Draw both orbits and the transfer, with its changes of velocity."""
    drawn, ax = figure(1, 1)
    angle = np.linspace(0, 2 * np.pi, 100)
    for radius in (1.0, result.radius):
        ax.plot(radius * np.cos(angle), radius * np.sin(angle), color="gray", linewidth=0.8)
    ax.plot(*result.path.T, label=f"transfer, {result.cost:.4f}")
    for place, change in zip(result.path[[0, -1]], result.plan[:2], strict=True):
        ax.quiver(*place, *change, angles="xy", color="C1", scale=1.5, width=0.012)
    ax.set_aspect("equal")
    ax.legend(loc="upper right")
    return drawn


if __name__ == "__main__":
    command(main, draw)
