"""Optimal control: a pendulum is swung up by a weak motor, by the iterative linear quadratic regulator.

States x and controls u follow x' = f(x, u) in discrete time; the cost sum_t l(x_t, u_t) + m(x_N) shall be least. Along
a trajectory, f is made linear and the costs quadratic; the best small changes then are du = k + K dx, with the
quadratic value V(x) of a state found backwards in time:

    Q_x = l_x + f_x^T V_x,      Q_u = l_u + f_u^T V_x,
    Q_xx = l_xx + f_x^T V_xx f_x,  Q_ux = l_ux + f_u^T V_xx f_x,  Q_uu = l_uu + f_u^T V_xx f_u,
    k = -Q_uu^-1 Q_u,  K = -Q_uu^-1 Q_ux,  V_x = Q_x + K^T Q_u,  V_xx = Q_xx + K^T Q_ux.

The new controls are tried with steps a k, a = 1, 1/2, 1/4, ..., until the cost is lower. Jacobians and Hessians at all
times are lanes of `vmap`. For a linear f and quadratic costs the first step is the answer.

Source: W. Li and E. Todorov, Iterative linear quadratic regulator design for nonlinear biological movement systems,
ICINCO 2004; line search: Y. Tassa, T. Erez and E. Todorov, IROS 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import wengert as wg
from examples._program import command, figure

Array = NDArray[np.float64]
STEP = 0.05
"""Seconds between two controls."""


class Result(NamedTuple):
    """Hold the best trajectory.

    Attributes:
        states: shape (steps + 1, 2): angle, 0 being upright, and its speed.
        controls: shape (steps, 1): the motor's torque.
        gains: shape (steps, 1, 2): the feedback K along it.
        costs: of the trajectories on the way.
        end: the last state.
    """

    states: Array
    controls: Array
    gains: Array
    costs: Array
    end: Array


class Problem(NamedTuple):
    """Hold what is to be controlled."""

    dynamics: Callable[[Any, Any], Any]
    cost: Callable[[Any, Any], Any]
    final: Callable[[Any], Any]


def regulated(problem: Problem, start: Array, controls: Array, iterations: int) -> tuple[Array, Array, Array, Array]:
    """Return the states, controls, gains and costs of the iterative linear quadratic regulator."""
    follow = wg.jit(lambda *arguments: followed(problem, *arguments))
    expand = wg.jit(wg.vmap(lambda x, u: expanded(problem, x, u)))
    end = wg.jit(lambda x: (wg.grad(problem.final)(x), wg.hessian(problem.final)(x)))
    size, inputs = len(start), controls.shape[1]
    gains = np.zeros((len(controls), inputs, size))
    still = np.zeros((len(controls) + 1, size))
    states, controls, cost = follow(start, still, controls, np.zeros_like(controls), gains, 0.0)
    costs = [float(cost)]
    for _ in range(iterations):
        slopes, gradients, hessians = expand(states[:-1], controls)
        changes, gains = backwards(slopes, gradients, hessians, *end(states[-1]))
        for share in 0.5 ** np.arange(12):
            new = follow(start, states, controls, changes, gains, share)
            if new[2] < costs[-1]:
                break
        gained = costs[-1] - new[2]
        if gained < 1e-6 * costs[-1]:
            break
        states, controls, cost = new
        costs.append(float(cost))
    return states, controls, gains, np.array(costs)


def followed(problem: Problem, start: Any, states: Any, controls: Any, changes: Any, gains: Any, share: Any) -> Any:
    """Return the states, controls and cost with a share of the changes, and feedback to the states before."""

    def step(carried: Any, given: Any) -> Any:
        x, cost = carried
        before, u, change, gain = given
        u = u + share * change + gain @ (x - before)
        return (problem.dynamics(x, u), cost + problem.cost(x, u)), (x, u)

    (last, cost), (found, new) = wg.scan(step, (start, 0.0), (states[:-1], controls, changes, gains))
    return np.vstack([found, last]), new, cost + problem.final(last)


def expanded(problem: Problem, x: Any, u: Any) -> Any:
    """Return the derivatives of dynamics and cost at one time."""
    slopes = wg.jacobian(problem.dynamics, (0, 1))(x, u)
    return slopes, wg.grad(problem.cost, (0, 1))(x, u), wg.hessian(problem.cost, (0, 1))(x, u)


def backwards(slopes: Any, gradients: Any, hessians: Any, value_x: Array, value_xx: Array) -> tuple[Array, Array]:
    """Return the changes k and the gains K for each time."""
    changes, gains = [], []
    for t in reversed(range(len(slopes[0]))):
        f_x, f_u = slopes[0][t], slopes[1][t]
        q_x, q_u = gradients[0][t] + f_x.T @ value_x, gradients[1][t] + f_u.T @ value_x
        q_xx = hessians[0][0][t] + f_x.T @ value_xx @ f_x
        q_ux = hessians[1][0][t] + f_u.T @ value_xx @ f_x
        q_uu = hessians[1][1][t] + f_u.T @ value_xx @ f_u
        k, gain = -np.linalg.solve(q_uu, q_u), -np.linalg.solve(q_uu, q_ux)
        value_x, value_xx = q_x + gain.T @ q_u, q_xx + gain.T @ q_ux
        changes.append(k)
        gains.append(gain)
    return np.array(changes[::-1]), np.array(gains[::-1])


def pendulum(x: Any, u: Any) -> Any:
    """Return the state after a step of a pendulum of length and mass 1: speed first, then angle."""
    speed = x[1] + STEP * (9.81 * np.sin(x[0]) + u[0] - 0.1 * x[1])
    return np.stack([x[0] + STEP * speed, speed])


def main(steps: int = 100, iterations: int = 60, weight: float = 0.1) -> Result:
    """Swing the pendulum up from hanging still; the weight of the torque in the cost makes the motor weak."""
    problem = Problem(
        pendulum,
        lambda x, u: STEP * weight * np.sum(u**2),
        lambda x: 100 * x[0] ** 2 + 10 * x[1] ** 2,
    )
    controls = 0.1 * np.sin(np.arange(steps) * STEP)[:, None]
    states, controls, gains, costs = regulated(problem, np.array([np.pi, 0.0]), controls, iterations)
    return Result(states, controls, gains, costs, states[-1])


def draw(result: Result) -> object:
    """Draw angle and torque over time, and the cost."""
    drawn, (left, right) = figure(1, 2)
    time = STEP * np.arange(len(result.states))
    left.plot(time, result.states[:, 0], label="angle [rad]")
    left.step(time[:-1], result.controls[:, 0], where="post", label="torque [N m]")
    left.set_xlabel("time [s]")
    left.legend()
    right.semilogy(result.costs, "o-", markersize=3)
    right.set(xlabel="iteration", ylabel="cost")
    return drawn


if __name__ == "__main__":
    command(main, draw)
