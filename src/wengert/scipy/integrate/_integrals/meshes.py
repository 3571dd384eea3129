"""Meshes of the unit interval that are cut where functions need it, and integrals over them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.control.cond import cond
from wengert.control.while_loop import while_loop
from wengert.support.records import NamedTuple

ROOMS = 64, 1024
"""For how many intervals there is room at first, and then; few integrals need more."""
FINE, COARSE = 20, 10
"""Places of Gauss's rule that gives the integral over an interval, and of that which it is compared with."""


class Accuracy(NamedTuple):
    """Hold how exact integrals are to be.

    Attributes:
        epsabs: the error that they may have.
        epsrel: the same, as a share of their size.
        limit: how many intervals there may be.
        norm: what the size of a group of components is, "2" or "max".
        groups: how many groups there are; 0 if each component is one.
    """

    epsabs: Any
    epsrel: Any
    limit: int
    norm: str = "max"
    groups: int = 0

    def sizes(self, x: Any) -> Any:
        """Return the sizes of groups of components, which are along the last axis."""
        if not self.groups:
            return np.abs(x)
        parts = np.abs(np.reshape(x, (*x.shape[:-1], self.groups, -1)))
        return np.max(parts, axis=-1, initial=0.0) if self.norm == "max" else np.sqrt(np.sum(parts * parts, axis=-1))

    def shares(self, mesh: Intervals, errors: Any) -> Any:
        """Return errors of components as parts of what these may be; of groups, those of rounding may always be."""
        sizes = np.maximum(self.epsabs, self.epsrel * self.sizes(np.sum(mesh.value, axis=0)))
        if self.groups:
            sizes = np.maximum(sizes, 100.0 * np.finfo(float).eps * self.sizes(np.sum(np.abs(mesh.value), axis=0)))
        return self.sizes(errors) / np.maximum(sizes, np.finfo(float).tiny)

    def is_missed(self, mesh: Intervals) -> Any:
        """Tell whether integrals are not as exact as that."""
        return np.max(self.shares(mesh, np.sum(mesh.error, axis=0)), initial=0.0) > 1.0

    def asks_for_more(self, room: int, mesh: Intervals) -> Any:
        """Tell whether integrals are not as exact as that, and there is room for another interval."""
        return self.is_missed(mesh) & (mesh.count < room)


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


def gauss_rule(count: int) -> tuple[Any, Any]:
    """Return places in the interval from -1 to 1, and the weights of Gauss's quadrature with so many."""
    from scipy.special import roots_legendre  # with all of SciPy's special functions, which take 200 ms

    places, weights = roots_legendre(count)
    return places, weights


@functools.cache
def rule() -> tuple[Any, Any, Any]:
    """Return the places of both rules in the unit interval, and the weights of the finer and of the coarser one."""
    fine, weights = gauss_rule(FINE)
    coarse, others = gauss_rule(COARSE)
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


def cut(function: Callable[[Any], Any], wanted: Accuracy, mesh: Intervals) -> Intervals:
    """Return a mesh with the interval of the greatest error in two halves."""
    worst = np.argmax(np.max(wanted.shares(mesh, mesh.error), axis=1, initial=0.0))
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


def with_room(mesh: Intervals, room: int) -> Intervals:
    """Return a mesh with room for a number of intervals."""

    def extend(x: Any) -> Any:
        return np.concatenate([x, np.zeros((room - len(x), *x.shape[1:]), x.dtype)])

    return mesh._replace(
        low=extend(mesh.low), high=extend(mesh.high), value=extend(mesh.value), error=extend(mesh.error)
    )


def integrate(function: Callable[[Any], Any], wanted: Accuracy) -> Any:
    """Return the integrals of a function of several components over the unit interval, and below how far they are off.

    All components are integrated on one mesh, until the last one is as exact as wanted. Where one is not, errors are
    negative.

    Args:
        function: of places in the unit interval, an array, with a row of components for each.
        wanted: how exact integrals are to be.
    """
    rooms = sorted({min(room, wanted.limit) for room in (*ROOMS, wanted.limit)})

    def refine(mesh: Intervals, level: int) -> Any:
        room = rooms[level]
        go_on = functools.partial(wanted.asks_for_more, room)
        mesh = while_loop(go_on, functools.partial(cut, function, wanted), with_room(mesh, room))
        if level + 1 == len(rooms):
            return rows_of(mesh)
        return cond(wanted.is_missed(mesh), lambda mesh: refine(mesh, level + 1), rows_of, mesh)

    def rows_of(mesh: Intervals) -> Any:
        value, error = np.sum(mesh.value, axis=0), np.sum(mesh.error, axis=0)
        error = np.where(wanted.is_missed(mesh), -error, error)
        return np.stack([value, error if error.dtype == value.dtype else error.astype(value.dtype)])

    low, high = np.zeros(1), np.ones(1)
    return refine(Intervals(low, high, *measure(function, low, high), 1), 0)
