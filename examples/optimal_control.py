"""Optimal control: a pendulum is swung up by a weak motor, by the iterative linear quadratic regulator.

States x and controls u follow x' = f(x, u); the cost sum_t l(x_t, u_t) + m(x_N) shall be least. Along a trajectory f is
made linear and the costs quadratic; the best changes then are du = k + K dx, with V(x), found backwards:

    Q_x = l_x + f_x^T V_x,      Q_u = l_u + f_u^T V_x,
    Q_xx = l_xx + f_x^T V_xx f_x,  Q_ux = l_ux + f_u^T V_xx f_x,  Q_uu = l_uu + f_u^T V_xx f_u,
    k = -Q_uu^-1 Q_u,  K = -Q_uu^-1 Q_ux,  V_x = Q_x + K^T Q_u,  V_xx = Q_xx + K^T Q_ux.

Steps a k, a = 1, 1/2, 1/4, ..., are tried until the cost is lower. Derivatives at all times are lanes of `vmap`.

Source: W. Li and E. Todorov, Iterative linear quadratic regulator design for nonlinear biological movement systems,
ICINCO 2004; line search: Y. Tassa, T. Erez and E. Todorov, IROS 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure

STEP = 0.05  # seconds between two controls
Problem = tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]  # f, l and m


class Result(NamedTuple):
    """Hold the best trajectory."""

    states: Array  # shape (steps + 1, 2): angle, 0 being upright, and its speed
    controls: Array  # shape (steps, 1): the motor's torque
    costs: Array  # of the trajectories on the way


def regulated(problem: Problem, start: Array, controls: Array, iterations: int) -> tuple[Array, Array, Array, Array]:
    """Return the states, controls, gains and costs of the iterative linear quadratic regulator."""
    follow = wg.jit(lambda *arguments: followed(problem, *arguments))
    dynamics, cost_of, final = problem
    expand = wg.jit(wg.vmap(lambda x, u: (wg.jacobian(dynamics, (0, 1))(x, u), *quadratic(cost_of, (0, 1))(x, u))))
    end = wg.jit(quadratic(final))
    states, gains = np.zeros((len(controls) + 1, len(start))), np.zeros((*controls.shape, len(start)))
    states, controls, cost = follow(start, states, controls, 0.0 * controls, gains, 0.0)
    costs = [float(cost)]
    for _ in range(iterations):
        changes, gains = backwards(expand(states[:-1], controls), end(states[-1]))
        tried = (follow(start, states, controls, changes, gains, share) for share in 0.5 ** np.arange(12))
        new = next((found for found in tried if found[2] < costs[-1]), (states, controls, cost))
        if costs[-1] - new[2] < 1e-6 * costs[-1]:
            break
        states, controls, cost = new
        costs.append(float(cost))
    return states, controls, gains, np.array(costs)


def followed(problem: Problem, start: Any, states: Any, controls: Any, changes: Any, gains: Any, share: Any) -> Any:
    """Return the states, controls and cost with a share of the changes, and feedback to the states before."""
    dynamics, cost_of, final = problem

    def step(carried: Any, given: Any) -> Any:
        x, cost = carried
        before, u, change, gain = given
        u = u + share * change + gain @ (x - before)
        return (dynamics(x, u), cost + cost_of(x, u)), (x, u)

    (last, cost), (found, new) = wg.scan(step, (start, 0.0), (states[:-1], controls, changes, gains))
    return np.vstack([found, last]), new, cost + final(last)


def quadratic(cost: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """Return the function that gives gradient and Hessian of a cost."""
    return lambda *args: (wg.grad(cost, argnums)(*args), wg.hessian(cost, argnums)(*args))


@wg.jit
def backwards(derivatives: Any, end: Any) -> Any:
    """Return the changes k and the gains K for each time."""

    def step(value: Any, given: Any) -> Any:
        (f_x, f_u), (l_x, l_u), ((l_xx, _), (l_ux, l_uu)) = given
        v_x, v_xx = value
        q_x, q_u = l_x + f_x.T @ v_x, l_u + f_u.T @ v_x
        q_xx, q_ux, q_uu = l_xx + f_x.T @ v_xx @ f_x, l_ux + f_u.T @ v_xx @ f_x, l_uu + f_u.T @ v_xx @ f_u
        k, gain = -np.linalg.solve(q_uu, q_u), -np.linalg.solve(q_uu, q_ux)
        return (q_x + gain.T @ q_u, q_xx + gain.T @ q_ux), (k, gain)

    return wg.scan(step, end, derivatives, reverse=True)[1]


def pendulum(x: Any, u: Any) -> Any:
    """Return the state after a step of a pendulum of length and mass 1: speed first, then angle."""
    speed = x[1] + STEP * (9.81 * np.sin(x[0]) + u[0] - 0.1 * x[1])
    return np.stack([x[0] + STEP * speed, speed])


def main(steps: int = 100, iterations: int = 60, weight: float = 0.1) -> Result:
    """Swing the pendulum up from hanging still; the weight of the torque in the cost makes the motor weak."""
    problem = pendulum, lambda x, u: STEP * weight * u[0] ** 2, lambda x: 100 * x[0] ** 2 + 10 * x[1] ** 2
    begin = 0.1 * np.sin(np.arange(steps) * STEP)[:, None]
    states, controls, _, costs = regulated(problem, np.array([np.pi, 0.0]), begin, iterations)
    return Result(states, controls, costs)


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
