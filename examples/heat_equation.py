"""Heat equation: how well each part of a rod conducts, found from its temperatures at a few places.

The temperature u(x, t) of a rod between ends held at 0 obeys u_t = (k(x) u_x)_x. On a grid with spacing h and time step
dt, the flow of heat between neighbours is f_i = k_i (u_(i+1) - u_i) / h, and each inner point changes by

    u_i += dt (f_i - f_(i-1)) / h,

written in place as one writes it in NumPy. Thermometers at every fourth point record the temperature while a pulse of
heat spreads. The logarithm of k between the points is found from the records by least squares: of the errors, in units
of their standard deviation, and of second differences of log k, which should be small where the records say little. The
Jacobian is one pass through all the writes with a lane for each unknown.

Source: H. W. Engl, M. Hanke and A. Neubauer, Regularization of inverse problems, 1996, section 1.6; scheme: R. J.
LeVeque, Finite difference methods, 2007, section 2.15.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from examples._program import Array, command, figure
from wengert import optim

STEP = 0.4  # dt k / h^2 for the largest conductivity, 1; the scheme is stable below 0.5
ROUGHNESS = 30.0  # the weight of second differences of log k


class Result(NamedTuple):
    """Hold what was found."""

    places: Array  # shape (points - 1,), the middles between the points
    true: Array  # shape (points - 1,), the conductivity there
    found: Array  # shape (points - 1,), what the records say
    largest_error: float  # of these, relative, where the heat comes by
    records: Array  # shape (steps, thermometers)


def records(conductivity: Any, start: Array, steps: int) -> Any:
    """Return the temperatures at every fourth point after each step."""
    temperature = np.array(start, like=conductivity)
    recorded = np.zeros((steps, len(start[::4])), like=conductivity)
    for i in range(steps):
        flow = conductivity * (temperature[1:] - temperature[:-1])
        temperature[1:-1] += STEP * (flow[1:] - flow[:-1])
        recorded[i] = temperature[::4]
    return recorded


def main(points: int = 33, steps: int = 200, noise: float = 1e-4, seed: int = 0) -> Result:
    """Recover a conductivity with a gap from simulated records."""
    x = np.linspace(0.0, 1.0, points)
    places = (x[1:] + x[:-1]) / 2
    true = 0.9 - 0.6 * np.exp(-(((places - 0.6) / 0.1) ** 2))
    start = np.exp(-(((x - 0.35) / 0.1) ** 2))
    start[[0, -1]] = 0.0
    random = np.random.default_rng(seed)
    measured = records(true, start, steps) + noise * random.standard_normal((steps, len(start[::4])))

    def residuals(logs: Any) -> Any:
        return (records(np.exp(logs), start, steps) - measured) / noise, ROUGHNESS * np.diff(logs, 2)

    # not traced: a graph would hold the equations of all steps
    found = optim.least_squares(residuals, np.full(points - 1, np.log(0.5)), jit=False)
    conductivity = np.exp(found.x)
    inner = (places > 0.1) & (places < 0.9)
    error = float(np.max(np.abs(conductivity / true - 1)[inner]))
    return Result(places, true, conductivity, error, measured)


def draw(result: Result) -> object:
    """Draw the conductivity, and the records it was found from."""
    drawn, (left, right) = figure(1, 2)
    left.plot(result.places, result.true, "k", linewidth=1, label="true")
    left.plot(result.places, result.found, "o", markersize=3, label="found")
    left.set(xlabel="x", ylabel="conductivity", ylim=(0, 1.2))
    left.legend()
    right.plot(result.records)
    right.set(xlabel="step", ylabel="recorded temperatures")
    return drawn


if __name__ == "__main__":
    command(main, draw)
