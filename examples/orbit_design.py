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
from numpy.typing import NDArray

import wengert as wg
from examples._program import command, figure
from wengert import optim

Array = NDArray[np.float64]


class Plan(NamedTuple):
    """Hold what is decided.

    Attributes:
        departure: the change of velocity that begins the flight, of shape (2,).
        arrival: the one that ends it, of shape (2,).
        duration: of the flight.
    """

    departure: Array
    arrival: Array
    duration: float


class Result(NamedTuple):
    """Hold the best transfer.

    Attributes:
        plan: the decisions.
        cost: the sum of the changes of velocity.
        hohmann: that of Hohmann's transfer.
        duration: of the flight.
        half_ellipse: that of Hohmann's transfer.
        path: shape (steps + 1, 2), the places on the way.
        radius: of the orbit reached.
    """

    plan: Plan
    cost: float
    hohmann: float
    duration: float
    half_ellipse: float
    path: Array
    radius: float


def slope(state: Any) -> Any:
    """Return the time derivative of (place, velocity), of shape (2, 2)."""
    place, velocity = state
    return np.stack([velocity, -place / np.sum(place**2) ** 1.5])


def flight(plan: Plan, steps: int) -> tuple[Any, Any]:
    """Return the state at the arrival, before the last change of velocity, and all places on the way."""
    h = plan.duration / steps

    def step(state: Any, _: None) -> tuple[Any, Any]:
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        k3 = slope(state + h / 2 * k2)
        k4 = slope(state + h * k3)
        return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), state[0]

    start = np.stack([np.array([1.0, 0.0]), np.array([0.0, 1.0]) + plan.departure])
    return wg.scan(step, start, length=steps)


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
