"""Derivatives of a function in one place, in both modes and along directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert as wg

__all__ = ["along", "derivatives_along", "require_derivatives"]

STEP = 1e-6


def require_derivatives(function: Callable[..., Any], arguments: Sequence[Any], rtol: float = 1e-6) -> None:
    """Require forward and reverse mode, nested too, to give what differences of the function and its gradient do."""
    rng = np.random.default_rng(5)
    directions = tuple(rng.normal(size=np.shape(x)) for x in arguments)
    weights = rng.normal(size=np.shape(function(*arguments)))
    every = tuple(range(len(arguments)))

    def total(*xs: Any) -> Any:
        return np.sum(weights * function(*xs))

    def slope(*xs: Any) -> Any:
        return wg.jvp(total, xs, directions)[1]

    def difference(f: Callable[..., Any]) -> Any:
        ahead, back = (f(*(x + h * d for x, d in zip(arguments, directions, strict=True))) for h in (STEP, -STEP))
        return [(np.asarray(a) - np.asarray(b)) / (2 * STEP) for a, b in zip(ahead, back, strict=True)]

    gradient = wg.grad(total, every)
    (want,) = difference(lambda *xs: (wg.stop_gradient(total(*xs)),))
    np.testing.assert_allclose(slope(*arguments), want, rtol=rtol, atol=0.1 * rtol)
    dot = sum(np.sum(g * d) for g, d in zip(gradient(*arguments), directions, strict=True))
    np.testing.assert_allclose(dot, slope(*arguments), rtol=1e-9, atol=1e-10)
    seconds = wg.jvp(gradient, tuple(arguments), directions)[1]
    for found, other, wanted in zip(seconds, wg.grad(slope, every)(*arguments), difference(gradient), strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(found, wanted, rtol=10 * rtol, atol=10 * rtol)


def along(function: Callable[[Any], Any], direction: Any) -> Callable[[Any], Any]:
    """Return the derivative of a function along a direction, which takes less than all of them."""
    return lambda x: wg.jvp(function, (x,), (direction,))[1]


def derivatives_along(function: Callable[[Any], Any], direction: Any, count: int) -> Callable[[Any], list[Any]]:
    """Return a function that gives the first derivatives along a direction, the value first."""
    if count == 1:
        return lambda x: [function(x)]

    def all_of_them(x: Any) -> list[Any]:
        values, changes = wg.jvp(derivatives_along(function, direction, count - 1), (x,), (direction,))
        return [*values, changes[-1]]

    return all_of_them
