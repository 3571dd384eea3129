"""System identification: mass, damping and stiffness of an oscillator, from how it answers a known force.

A mass on a spring and a damper obeys m y'' + c y' + k y = u(t), with y seen at equal times under noise. In the state x
= (y, y') this is x' = A x + B u; for a force that is constant between two times the state after the step h is exactly

    x_(t+1) = F x_t + G u_t,   exp([[A, B], [0, 0]] h) = [[F, G], [0, 1]].

Least squares finds (m, c, k) between bounds; with the Jacobian J at the minimum and the noise's variance s^2 their
covariance is s^2 (J^T J)^-1. If it is known besides how far a resting force of 1 stretches the spring, 1 / k is given:
the fit is then a minimisation under a constraint, and the standard errors are those of J restricted to directions that
keep it.

Source: L. Ljung, System identification: theory for the user, 2nd edition, 1999, sections 4.3 and 9.4; exponential: C.
F. Van Loan, Computing integrals involving the matrix exponential, IEEE Transactions on automatic control 23, 1978.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert import optim
from wengert.scipy.linalg import expm

STEP = 0.1  # seconds between two samples


@dataclass
class Oscillator:
    """Hold what is unknown."""

    mass: float
    damping: float
    stiffness: float


TRUE = Oscillator(1.5, 0.6, 5.0)


class Result(NamedTuple):
    """Hold both fits."""

    force: Array  # shape (samples,)
    seen: Array  # shape (samples,)
    fitted: Array  # shape (samples,), by the fit under the constraint
    free: Array  # mass, damping and stiffness
    free_errors: Array  # their standard errors
    constrained: Array  # the same, where the stiffness is known
    constrained_errors: Array  # their standard errors


def answer(system: Oscillator, force: Array) -> Any:
    """Return y at all times, from rest."""
    m, c, k = system.mass, system.damping, system.stiffness
    matrix = wg.numpy.array([[0.0, 1.0, 0.0], [-k / m, -c / m, 1 / m], [0.0, 0.0, 0.0]])
    steps = expm(STEP * matrix)

    def step(x: Any, u: Any) -> tuple[Any, Any]:
        return steps[:2, :2] @ x + steps[:2, 2] * u, x[0]

    return wg.scan(step, np.zeros(2), force)[1]


def main(samples: int = 200, noise: float = 0.02, seed: int = 0) -> Result:
    """Fit an oscillator to a simulated record, with and without knowing its stiffness."""
    random = np.random.default_rng(seed)
    force = np.repeat(random.choice([-1.0, 1.0], samples // 10 + 1), 10)[:samples]
    seen = answer(TRUE, force) + noise * random.standard_normal(samples)

    def residuals(system: Oscillator) -> Any:
        return (answer(system, force) - seen) / noise

    start = Oscillator(1.0, 1.0, 3.0)
    free = optim.least_squares(residuals, start, bounds=(0.01, 100.0)).x
    known = {"type": "eq", "fun": lambda system: 1 / system.stiffness - 1 / TRUE.stiffness}
    held = optim.minimize(
        lambda system: np.sum(residuals(system) ** 2) / 2,
        start,
        bounds=(0.01, 100.0),
        constraints=known,
        method="SLSQP",
    ).x
    errors = []
    for system, directions in ((free, np.eye(3)), (held, np.eye(3)[:, :2])):
        vector, back = wg.tree.ravel(system)
        jacobian = wg.jacfwd(lambda v, back=back: residuals(back(v)))(vector) @ directions
        covariance = directions @ np.linalg.inv(jacobian.T @ jacobian) @ directions.T
        errors.append(np.sqrt(np.diag(covariance)))
    return Result(
        force, seen, answer(held, force), np.array(astuple(free)), errors[0], np.array(astuple(held)), errors[1]
    )


def draw(result: Result) -> object:
    """Draw the record, and both fits with two standard errors."""
    drawn, (left, right) = figure(1, 2)
    time = STEP * np.arange(len(result.seen))
    left.plot(time, result.seen, "k.", markersize=2, label="seen")
    left.plot(time, result.fitted, linewidth=1, label="fitted")
    left.set(xlabel="time [s]", ylabel="y")
    left.legend()
    true = np.array(astuple(TRUE))
    for shift, fit, error, name in (
        (-0.1, result.free, result.free_errors, "free"),
        (0.1, result.constrained, result.constrained_errors, "stiffness known"),
    ):
        right.errorbar(np.arange(3) + shift, fit / true - 1, 2 * error / true, fmt="o", label=name)
    right.axhline(0.0, color="gray", linewidth=0.5)
    right.set_xticks(range(3), ["mass", "damping", "stiffness"])
    right.set_ylabel("relative error")
    right.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
