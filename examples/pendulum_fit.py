"""Pendulum: its length and friction from a film, through a solver that iterates until it has converged.

The angle of a pendulum obeys a'' = -(g / l) sin a - c a'. In the state x = (a, a') the implicit midpoint rule goes on
by

    x_(n+1) = x_n + h f((x_n + x_(n+1)) / 2),

which keeps the energy of a pendulum without friction for ever nearly, and is an equation for x_(n+1). Newton's method
solves it, a while loop with as many iterations as it takes; under `jit` the loop becomes part of the graph, and the
gradient goes back through the iterations that were made. Least squares then finds length, friction and the state at the
start from the angles seen.

Source: E. Hairer, C. Lubich and G. Wanner, Geometric numerical integration, 2nd edition, 2006, sections I.1 and VI.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert import optim

GRAVITY = 9.81
STEP = 0.05  # seconds between two pictures of the film


class Pendulum(NamedTuple):
    """Hold what is unknown."""

    length: float  # in metres
    friction: float  # c, in 1 / s
    start: Array  # shape (2,): angle and speed in the first picture


TRUE = Pendulum(0.8, 0.15, np.array([2.5, 0.0]))


class Result(NamedTuple):
    """Hold what the film says."""

    seen: Array  # shape (pictures,), angles with noise
    fitted: Array  # shape (pictures,)
    length: float  # in metres
    friction: float  # in 1 / s
    drift: float  # by how much the energy of the pendulum without friction changes, relatively, over the film


def slope(pendulum: Pendulum, x: Any) -> Any:
    """Return the time derivative of a state."""
    angle, speed = x
    return np.stack([speed, -GRAVITY / pendulum.length * np.sin(angle) - pendulum.friction * speed])


def stepped(pendulum: Pendulum, x: Any) -> Any:
    """Return the next state."""

    def miss(new: Any) -> Any:
        return new - x - STEP * slope(pendulum, (x + new) / 2)

    new, change = x, 1.0
    while change > 1e-12:
        correction = np.linalg.solve(wg.jacobian(miss)(new), miss(new))
        new, change = new - correction, np.max(np.abs(correction))
    return new


def states(pendulum: Pendulum, pictures: int) -> Any:
    """Return all states, of shape (pictures, 2)."""
    return wg.scan(lambda x, _: (stepped(pendulum, x), x), pendulum.start, length=pictures)[1]


def energy(pendulum: Pendulum, x: Array) -> Any:
    """Return the energy of states, for a mass of 1."""
    return pendulum.length**2 * x[..., 1] ** 2 / 2 + GRAVITY * pendulum.length * (1 - np.cos(x[..., 0]))


def main(pictures: int = 120, noise: float = 0.05, seed: int = 0) -> Result:
    """Fit a pendulum to a simulated film."""
    film = wg.jit(states, static_argnums=1)
    seen = film(TRUE, pictures)[:, 0] + noise * np.random.default_rng(seed).standard_normal(pictures)
    guess = Pendulum(1.0, 0.0, np.array([seen[0], 0.0]))
    found = optim.least_squares(lambda pendulum: film(pendulum, pictures)[:, 0] - seen, guess).x
    free = TRUE._replace(friction=0.0)
    energies = energy(free, film(free, pictures))
    drift = float(np.ptp(energies) / energies[0])
    return Result(seen, film(found, pictures)[:, 0], found.length, found.friction, drift)


def draw(result: Result) -> object:
    """Draw the angles seen and fitted."""
    drawn, ax = figure(1, 1)
    time = STEP * np.arange(len(result.seen))
    ax.plot(time, result.seen, "k.", markersize=3, label="seen")
    ax.plot(time, result.fitted, linewidth=1, label=f"fitted: {result.length:.3f} m")
    ax.set(xlabel="time [s]", ylabel="angle [rad]")
    ax.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
