"""Derivatives of a function in one place, in both modes and to second order, along random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert as wg

__all__ = ["require_derivatives"]

STEP = 1e-6


def require_derivatives(function: Callable[..., Any], arguments: Sequence[Any], rtol: float = 1e-6) -> None:
    """Require forward and reverse mode, nested too, to give what differences of the function and its gradient do."""
    rng = np.random.default_rng(5)
    along = tuple(rng.normal(size=np.shape(x)) for x in arguments)
    weights = rng.normal(size=np.shape(function(*arguments)))
    every = tuple(range(len(arguments)))

    def total(*xs: Any) -> Any:
        return np.sum(weights * function(*xs))

    def slope(*xs: Any) -> Any:
        return wg.jvp(total, xs, along)[1]

    def difference(f: Callable[..., Any]) -> Any:
        ahead, back = (f(*(x + h * d for x, d in zip(arguments, along, strict=True))) for h in (STEP, -STEP))
        return [(np.asarray(a) - np.asarray(b)) / (2 * STEP) for a, b in zip(ahead, back, strict=True)]

    gradient = wg.grad(total, every)
    (want,) = difference(lambda *xs: (wg.stop_gradient(total(*xs)),))
    np.testing.assert_allclose(slope(*arguments), want, rtol=rtol, atol=0.1 * rtol)
    dot = sum(np.sum(g * d) for g, d in zip(gradient(*arguments), along, strict=True))
    np.testing.assert_allclose(dot, slope(*arguments), rtol=1e-9, atol=1e-10)
    seconds = wg.jvp(gradient, tuple(arguments), along)[1]
    for found, other, wanted in zip(seconds, wg.grad(slope, every)(*arguments), difference(gradient), strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(found, wanted, rtol=10 * rtol, atol=10 * rtol)
