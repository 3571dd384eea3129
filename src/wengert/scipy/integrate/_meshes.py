"""Meshes of the unit interval that are cut where functions need it, and integrals over them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from wengert.control.while_loop import while_loop

FINE, COARSE = 20, 10
"""Places of Gauss's rule that gives the integral over an interval, and of that which it is compared with."""


class Intervals(NamedTuple):
    """Hold the intervals of a mesh of the unit interval, of which there is room for a number.

    Attributes:
        low: where each begins.
        high: where it ends.
        value: the integrals of all components over it.
        error: how far these may be off.
        count: how many there are.
    """

    low: Any
    high: Any
    value: Any
    error: Any
    count: Any


@functools.cache
def rule() -> tuple[Any, Any, Any]:
    """Return the places of both rules in the unit interval, and the weights of the finer and of the coarser one."""
    fine, weights = scipy.special.roots_legendre(FINE)
    coarse, others = scipy.special.roots_legendre(COARSE)
    return (np.concatenate([fine, coarse]) + 1.0) / 2.0, weights / 2.0, others / 2.0


def measure(function: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any]:
    """Return integrals of a function over intervals, of shape (intervals, components), and how far these may be off.

    The estimate is that of Piessens et al., *QUADPACK* (1983), section 2.2.4.1, of the difference of two rules.
    """
    places, weights, others = rule()
    width = high - low
    values = function((low[:, None] + width[:, None] * places).reshape(-1)).reshape(len(low), len(places), -1)
    fine, coarse = values[:, :FINE], values[:, FINE:]
    width, weights, others = width[:, None], weights[:, None], others[:, None]
    value = np.sum(fine * weights, axis=1)
    difference = np.abs(width * (value - np.sum(coarse * others, axis=1)))
    spread = width * np.sum(np.abs(fine - value[:, None]) * weights, axis=1)
    size = width * np.sum(np.abs(fine) * weights, axis=1)
    ratio = np.minimum(1.0, (200.0 * difference / np.where(spread > 0, spread, 1.0)) ** 1.5)
    error = np.where((spread > 0) & (difference > 0), spread * ratio, difference)
    return width * value, np.maximum(error, 50.0 * np.finfo(float).eps * size)


def shares(mesh: Intervals, errors: Any, epsabs: Any, epsrel: Any) -> Any:
    """Return errors of components as parts of what these may be."""
    wanted = np.maximum(epsabs, epsrel * np.abs(np.sum(mesh.value, axis=0)))
    return errors / np.maximum(wanted, np.finfo(float).tiny)


def cut(function: Callable[[Any], Any], epsabs: Any, epsrel: Any, mesh: Intervals) -> Intervals:
    """Return a mesh with the interval of the greatest error in two halves."""
    worst = np.argmax(np.max(shares(mesh, mesh.error, epsabs, epsrel), axis=1, initial=0.0))
    low, high = mesh.low[worst], mesh.high[worst]
    middle = (low + high) / 2.0
    value, error = measure(function, np.stack([low, middle]), np.stack([middle, high]))
    numbers = np.arange(len(mesh.low))

    def replace(old: Any, first: Any, second: Any) -> Any:
        count = numbers if old.ndim == 1 else numbers[:, None]
        return np.where(count == worst, first, np.where(count == mesh.count, second, old))

    return Intervals(
        replace(mesh.low, low, middle),
        replace(mesh.high, middle, high),
        replace(mesh.value, value[0], value[1]),
        replace(mesh.error, error[0], error[1]),
        mesh.count + 1,
    )


def refine(function: Callable[[Any], Any], ends: Any, limit: int, epsabs: Any, epsrel: Any) -> Intervals:
    """Return the mesh on which the integral of a function is as exact as wanted, or one with as many as there may be.

    Args:
        function: of places in the unit interval, an array, with a row of components for each.
        ends: the ends of the intervals to begin with.
        limit: how many intervals there may be.
        epsabs: the error that the integral may have.
        epsrel: the same, as a share of it.
    """
    count = len(ends) - 1
    low, high = np.zeros(limit), np.zeros(limit)
    low[:count], high[:count] = ends[:-1], ends[1:]
    value, error = measure(function, low[:count], high[:count])
    none = np.zeros((limit - count, value.shape[1]))
    filled = [np.concatenate([x, none.astype(x.dtype)]) for x in (value, error)]
    first = Intervals(low, high, filled[0], filled[1], count)

    def goes_on(mesh: Intervals) -> Any:
        total = shares(mesh, np.sum(mesh.error, axis=0), epsabs, epsrel)
        return (np.max(total, initial=0.0) > 1.0) & (mesh.count < limit)

    mesh: Intervals = while_loop(goes_on, functools.partial(cut, function, epsabs, epsrel), first)
    return mesh


def integrate(function: Callable[[Any], Any], limit: int, epsabs: Any, epsrel: Any) -> Any:
    """Return the integrals of a function of several components over the unit interval, and below how far they are off.

    All components are integrated on one mesh, until the last one is as exact as wanted.
    """
    mesh = refine(function, np.array([0.0, 1.0]), limit, epsabs, epsrel)
    value, error = np.sum(mesh.value, axis=0), np.sum(mesh.error, axis=0)
    return np.stack([value, error if error.dtype == value.dtype else error.astype(value.dtype)])
