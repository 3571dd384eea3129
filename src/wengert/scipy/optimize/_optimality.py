"""Conditions of optimality: which bounds and constraints are active at a minimum, and the equations that it solves.

Of f(x) with lower <= c(x) <= upper and bounds on x these are Karush's, Kuhn's and Tucker's: the gradient of the
Lagrangian f - y c is zero for each x that is at no bound, each active constraint holds with equality, and multipliers y
of the others are zero. See Nocedal and Wright, *Numerical Optimization*, 2006, theorem 12.1, and, for their
derivatives, Fiacco, *Introduction to Sensitivity and Stability Analysis*, 1983, theorem 3.2.2.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.implicit.quadratic_programs.dependent_rows import rows_left_out
from wengert.implicit.quadratic_programs.programs import multipliers_within
from wengert.support.records import NamedTuple

NEAR = 1e-4
"""How near to a limit, relative to it, solvers that approach it from inside leave what is active."""
AT = 1e-7
"""How near what is at a limit beyond doubt."""
STRICT = 1e-6
"""The part of the largest gradient below which a multiplier is as good as zero."""


class Sides(NamedTuple):
    """Be the lowest and highest values of numbers, infinite where there are none."""

    lower: Any
    upper: Any

    def near(self, values: Any, sizes: Any, margin: float = NEAR) -> tuple[Any, Any]:
        """Tell which numbers are near their lowest, and which near their highest values, for numbers of these sizes."""
        low, high = (np.where(np.isfinite(side), side, 0.0) for side in self)
        return (
            np.isfinite(self.lower) & (np.abs(values - low) <= margin * (sizes + np.abs(low))),
            np.isfinite(self.upper) & (np.abs(values - high) <= margin * (sizes + np.abs(high))),
        )

    def gap(self, values: Any, active: Any, otherwise: Any) -> Any:
        """Return what is zero: how far active numbers are from their limit, or something else of the others.

        `active` is -1 at the lowest, 1 at the highest value, and 0 elsewhere.
        """
        low, high = (np.where(np.isfinite(side), side, 0.0) for side in self)
        return np.where(active < 0, values - low, np.where(active > 0, values - high, otherwise))


class Active(NamedTuple):
    """Be what is active at a solution, as `Sides.gap` takes it, and the multipliers.

    Attributes:
        bounds: of each unknown.
        constraints: of each constraint.
        multipliers: of each constraint: positive at its lowest value.
    """

    bounds: Any
    constraints: Any
    multipliers: Any


class Normal(NamedTuple):
    """Be one limit that a solution may lie at: its gradient, and the sign that its multiplier has, 0 for either."""

    gradient: Any
    sign: int
    place: tuple[str, int, int]
    certain: bool

    @property
    def text(self) -> str:
        """How one writes it."""
        what, index, side = self.place
        if what == "x":
            return f"x[{index}] at its {'lower' if side < 0 else 'upper'} bound"
        return f"constraint {index}"


def active_set(
    name: str,
    x: Any,
    gradient: Any,
    bounds: Sides,
    values: Any,
    slopes: Any,
    limits: Sides,
    differentiated: bool,
    start: tuple[Any, Any],
) -> Active:
    """Return the active bounds and constraints at a solution, and their multipliers.

    Args:
        name: what the user called.
        x: the solution, of shape (n,).
        gradient: of the function.
        bounds: of x.
        values: of the constraints, of shape (m,).
        slopes: their Jacobian, of shape (m, n).
        limits: of the constraints.
        differentiated: whether derivatives of the solution are going to be taken.
        start: where the solver began, and the gradient there: sizes of x and the gradient where those found are zero.
    """
    size = size_at_most_one(x, start[0], *(np.where(np.isfinite(side), side, 0.0) for side in bounds))
    sizes = np.minimum(1.0, size * np.sum(np.abs(slopes), axis=1))
    normals = [*normals_of("x", x, np.eye(x.size), bounds, size), *normals_of("c", values, slopes, limits, sizes)]
    found = multipliers_of(normals, gradient)
    least = STRICT * max(size_at_most_one(start[1]), float(np.max(np.abs(gradient), initial=0.0)))
    forces = np.abs(found) * np.array([np.max(np.abs(n.gradient)) for n in normals], float)
    holds = (forces > least) | np.array([n.sign == 0 for n in normals], bool)
    strict = [n for n, own in zip(normals, holds, strict=True) if own]
    weak = [n for n, own in zip(normals, holds, strict=True) if n.certain and not own]
    if weak and differentiated:
        given = f"weakly active at the solution: {joined_texts(weak)}"
        warn_of_side(name, f"{given}. Its derivatives are those of the side on which these are inactive")
    if differentiated:
        strict = independent_limits(name, strict, found[holds])
    marks = {"x": np.zeros(x.size), "c": np.zeros(values.size)}
    multipliers = np.zeros(values.size)
    for normal, number in zip(strict, multipliers_of(strict, gradient), strict=True):
        what, index, side = normal.place
        marks[what][index] = side
        if what == "c":
            multipliers[index] = number
    return Active(marks["x"], marks["c"], multipliers)


def size_at_most_one(*parts: Any) -> float:
    """Return the size of numbers, but no more than one, which is that of zeros, too."""
    largest = max(float(np.max(np.abs(part), initial=0.0)) for part in parts)
    return min(largest, 1.0) or 1.0


def normals_of(what: str, values: Any, slopes: Any, sides: Sides, sizes: Any) -> list[Normal]:
    """Return the limits that numbers of these sizes may lie at."""
    fixed = np.broadcast_to(np.equal(sides.lower, sides.upper), values.shape)
    (low, high), (at_low, at_high) = sides.near(values, sizes), sides.near(values, sizes, AT)
    found = []
    for i, slope in enumerate(slopes):
        if fixed[i]:
            found.append(Normal(slope, 0, (what, i, -1), True))
            continue
        found += [Normal(slope, 1, (what, i, -1), bool(at_low[i]))] if low[i] else []
        found += [Normal(slope, -1, (what, i, 1), bool(at_high[i]))] if high[i] else []
    return found


def multipliers_of(normals: Sequence[Normal], gradient: Any) -> Any:
    """Return the multipliers, of the signs they have, with which normals add up to the gradient as nearly as can be."""
    if not normals:
        return np.zeros(0)
    columns = np.stack([n.gradient for n in normals], axis=1)
    lower = np.array([0.0 if n.sign > 0 else -np.inf for n in normals])
    upper = np.array([0.0 if n.sign < 0 else np.inf for n in normals])
    return multipliers_within(columns, gradient, (lower, upper))


def joined_texts(normals: Sequence[Normal]) -> str:
    """Return how one writes some limits, the first of them if there are many."""
    return ", ".join(n.text for n in normals[:5]) + (", ..." if len(normals) > 5 else "")


def warn_of_side(name: str, text: str) -> None:
    """Warn of derivatives that are those of one side, or of one choice of multipliers."""
    warnings.warn(f"{name}: {text}.", UserWarning, stacklevel=user_stacklevel())


def independent_limits(name: str, normals: Sequence[Normal], multipliers: Any) -> list[Normal]:
    """Return active limits of which none follows from others; warn of those that are left out."""
    if not normals:
        return []
    gradients = np.array([n.gradient for n in normals])
    left = rows_left_out(gradients, multipliers, np.array([n.sign != 0 for n in normals]))
    if left:
        given = f"active limits that follow from others at the solution: {joined_texts([normals[i] for i in left])}"
        warn_of_side(name, f"{given}. Its derivatives are those without them, as are multipliers, which are not unique")
    return [normal for i, normal in enumerate(normals) if i not in left]
