"""What several programs compute with: training by gradients, and steps in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import wengert as wg
from examples._program import Array
from wengert import optim, tree

__all__ = ["moved", "runge_kutta", "trained"]


def trained(
    loss: Callable[..., Any], parameters: Any, rule: optim.Rule, batches: Iterable[tuple[Any, ...]]
) -> tuple[Any, Array]:
    """Return parameters after a step for each batch, and the losses on the way.

    Args:
        loss: takes the parameters, and what makes up a batch.
        parameters: where to begin, in any containers.
        rule: of `wengert.optim`.
        batches: what the loss takes besides, as tuples.
    """
    init, update = rule

    @wg.jit
    def step(parameters: Any, state: Any, batch: Any) -> Any:
        value, gradient = wg.value_and_grad(loss)(parameters, *batch)
        return value, *update(gradient, state, parameters)

    state, losses = init(parameters), []
    for batch in batches:
        value, parameters, state = step(parameters, state, batch)
        losses.append(float(value))
    return parameters, np.array(losses)


def moved(y: Any, k: Any, h: Any) -> Any:
    """Return y + h k for any containers."""
    return tree.map(lambda a, b: a + h * b, y, k)


def runge_kutta(slope: Callable[[Any], Any], y: Any, h: float) -> Any:
    """Return where y' = slope(y) leads in the time h, by a step of the classical method; y may be any container."""
    k1 = slope(y)
    k2 = slope(moved(y, k1, h / 2))
    k3 = slope(moved(y, k2, h / 2))
    k4 = slope(moved(y, k3, h))
    return tree.map(lambda y, *k: y + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3]), y, k1, k2, k3, k4)
