"""Iterations that solve equations, as loops that can be traced, compiled and run in lanes.

Each takes a function of one vector and where to start, and gives a `Solution`, which has the derivatives that its
equations give it, unless those of the steps are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.control.while_loop import while_loop
from wengert.implicit.newton_iteration import Limits, Solution, is_small
from wengert.transforms.forward import jvp

Function = Callable[[Any], Any]
ALMOST = {8: 1e-10, 4: 1e-5}
"""What is added to the squares of changes of residuals that are parallel but for rounding, by the bytes of numbers."""


def iterate(function: Function, start: Any, limits: Limits) -> Solution:
    """Find a fixed point by applying a function until it changes little."""

    def go_on(state: Any) -> Any:
        x, change, count = state
        return ~is_small(change, x, limits.tol) & np.isfinite(np.sum(change)) & (count < limits.most)

    def advance(state: Any) -> Any:
        x, _, count = state
        found = function(x)
        return found, found - x, count + 1

    x, change, count = while_loop(go_on, advance, advance((start, start, 0)))
    return Solution(x, is_small(change, x, limits.tol), count)


def accelerate(function: Function, start: Any, limits: Limits, memory: int, mixing: float) -> Solution:
    """Find a fixed point by Anderson's acceleration of its iteration.

    Walker and Ni, *Anderson acceleration for fixed-point iterations*, SIAM Journal on Numerical Analysis 49, 2011,
    section 2: with changes F of the last residuals f and changes G of the last values g, the next point is
    g - G y for the y that makes the norm of f - F y least. Changes are scaled to norm 1.
    """
    size, kind = start.size, start.dtype.type
    almost = kind(ALMOST.get(start.dtype.itemsize, 1e-2)) * np.eye(memory, dtype=start.dtype)

    def go_on(state: Any) -> Any:
        x, residual, *_, count = state
        return ~is_small(residual, x, limits.tol) & np.isfinite(np.sum(residual)) & (count < limits.most)

    def advance(state: Any) -> Any:
        x, residual, changes, moves, count = state
        squares = np.sum(changes * changes, axis=1)
        scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))  # a root of zero has no slope
        unit = changes * scale[:, None]
        weights = np.linalg.solve(unit @ unit.T + almost, unit @ residual) * scale
        other = x + kind(mixing) * residual - weights @ (moves + kind(mixing) * changes)
        found = function(other) - other
        row = (np.arange(memory) == count % memory)[:, None]
        changes = np.where(row, found - residual, changes)
        moves = np.where(row, other - x, moves)
        return other, found, changes, moves, count + 1

    rows = np.zeros((memory, size), start.dtype)
    x, residual, _, _, count = while_loop(go_on, advance, (start, function(start) - start, rows, rows, 0))
    converged = is_small(residual, x, limits.tol)
    return Solution(np.where(converged, x + residual, x), converged, count + 1)


def newton_scalar(function: Function, start: Any, limits: Limits) -> Solution:
    """Find a root of a function of one number by Newton's method, without halving steps, as SciPy's `newton`."""

    def step_at(x: Any) -> Any:
        value, slope = jvp(function, (x,), (np.ones_like(x),))
        return -value / slope

    def go_on(state: Any) -> Any:
        x, step, count = state
        return ~is_small(step, x, limits.tol) & np.isfinite(step) & (count < limits.most)

    def advance(state: Any) -> Any:
        x, step, count = state
        return x + step, step_at(x + step), count + 1

    x, step, count = while_loop(go_on, advance, (start, step_at(start), 0))
    converged = is_small(step, x, limits.tol)
    return Solution(np.where(converged, x + step, x), converged, count)


def secant(function: Function, start: Any, other: Any, limits: Limits) -> Solution:
    """Find a root of a function of one number by the secant method."""

    def go_on(state: Any) -> Any:
        _, _, x, value, step, count = state
        return ~is_small(step, x, limits.tol) & (value != 0.0) & np.isfinite(step) & (count < limits.most)

    def advance(state: Any) -> Any:
        last, last_value, x, value, _, count = state
        step = -value * (x - last) / (value - last_value)
        return x, value, x + step, function(x + step), step, count + 1

    begin = start, function(start), other, function(other), other - start, 0
    _, _, x, value, step, count = while_loop(go_on, advance, begin)
    return Solution(x, is_small(step, x, limits.tol) | (value == 0.0), count)


def bisect(function: Function, low: Any, high: Any, limits: Limits) -> Solution:
    """Find a root of a function of one number between two places of different signs by bisection."""

    def go_on(state: Any) -> Any:
        a, b, _, count = state
        return ~is_small(b - a, a, limits.tol) & (count < limits.most)

    def advance(state: Any) -> Any:
        a, b, value, count = state
        middle = a + 0.5 * (b - a)
        found = function(middle)
        left = (found > 0.0) == (value > 0.0)  # the root is on the other side
        zero = found == 0.0
        return (
            np.where(left | zero, middle, a),
            np.where(left & ~zero, b, middle),
            np.where(left & ~zero, found, value),
            count + 1,
        )

    first, last = function(low), function(high)
    a, b, _, count = while_loop(go_on, advance, (low, high, first, 0))
    x = np.where(first == 0.0, low, np.where(last == 0.0, high, a + 0.5 * (b - a)))
    return Solution(x, is_small(b - a, a, limits.tol) & (first * last <= 0.0), count)


def brent(function: Function, low: Any, high: Any, limits: Limits) -> Solution:
    """Find a root of a function of one number between two places of different signs by Brent's method.

    Brent, *Algorithms for Minimization without Derivatives*, 1973, chapter 4, procedure zero: b is the best place, a
    the one before, c one of the other sign; inverse quadratic or linear interpolation, and bisection where these
    are slow.
    """
    eps = 2.0 * np.finfo(low.dtype).eps

    def margin(b: Any) -> Any:
        return eps * np.abs(b) + 0.5 * limits.tol * (1.0 + np.abs(b))

    def go_on(state: Any) -> Any:
        _, b, c, _, fb, *_, count = state
        return (np.abs(0.5 * (c - b)) > margin(b)) & (fb != 0.0) & (count < limits.most)

    def advance(state: Any) -> Any:
        a, b, c, fa, fb, fc, d, e, count = state
        tol, m = margin(b), 0.5 * (c - b)
        s = fb / fa
        linear = a == c
        q, r = fa / np.where(linear, 1.0, fc), fb / np.where(linear, 1.0, fc)
        p = np.where(linear, 2.0 * m * s, s * (2.0 * m * q * (q - r) - (b - a) * (r - 1.0)))
        q = np.where(linear, 1.0 - s, (q - 1.0) * (r - 1.0) * (s - 1.0))
        q = np.where(p > 0.0, -q, q)
        p = np.abs(p)
        fast = (np.abs(e) >= tol) & (np.abs(fa) > np.abs(fb))
        fast &= (2.0 * p < 3.0 * m * q - np.abs(tol * q)) & (p < np.abs(0.5 * e * q))
        e = np.where(fast, d, m)
        d = np.where(fast, p / np.where(fast, q, 1.0), m)
        other = b + np.where(np.abs(d) > tol, d, np.where(m > 0.0, tol, -tol))
        return (*order_places(b, other, c, fb, function(other), fc, d, e), count + 1)

    first, last = function(low), function(high)
    begin = order_places(low, high, low, first, last, first, high - low, high - low)
    _, b, c, _, fb, *_, count = while_loop(go_on, advance, (*begin, 0))
    converged = (np.abs(0.5 * (c - b)) <= margin(b)) | (fb == 0.0)
    return Solution(b, converged & (first * last <= 0.0), count)


def order_places(a: Any, b: Any, c: Any, fa: Any, fb: Any, fc: Any, d: Any, e: Any) -> tuple[Any, ...]:
    """Return the state of Brent's method with a root between b and c, and b the better place of the two."""
    same = (fb > 0.0) == (fc > 0.0)
    c, fc = np.where(same, a, c), np.where(same, fa, fc)
    d = np.where(same, b - a, d)
    e = np.where(same, d, e)
    worse = np.abs(fc) < np.abs(fb)
    a, b, c = np.where(worse, b, a), np.where(worse, c, b), np.where(worse, b, c)
    fa, fb, fc = np.where(worse, fb, fa), np.where(worse, fc, fb), np.where(worse, fb, fc)
    return a, b, c, fa, fb, fc, d, e
