"""What implicit methods have in common: a Jacobian, Newton's method, and changes of the state between steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.scipy.integrate._algebraic import rate_of
from wengert.scipy.integrate._methods.adaptive_steps import Control, Counts, Step, Walk
from wengert.scipy.integrate._methods.held_factors import moving_with
from wengert.scipy.integrate._methods.jacobian_matrices import FULL, Matrices
from wengert.scipy.integrate._methods.visits import Slope
from wengert.transforms.reverse import stop_gradient

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class ImplicitMethod(ABC):
    """Be a method whose steps know of those before, and solve their equations by Newton's method.

    Attributes:
        jacobian: the user's function of time and state, or matrix; None if it is to be derived.
        mass: the matrix M of M y' = f(t, y), None for that of ones.
        algebraic: the equations without a slope, None if there are none, or nobody knows.
        matrices: how Jacobians are held.
    """

    jacobian: Any = None
    mass: Any = None
    algebraic: Any = None
    matrices: Matrices = FULL

    @property
    def more(self) -> Any:
        """Further stages that the continuous extension has, None."""
        return None

    @property
    @abstractmethod
    def order(self) -> int:
        """The order by which the first size is chosen."""

    @property
    def is_constant(self) -> bool:
        """Whether the Jacobian is a given matrix."""
        return self.jacobian is not None and not callable(self.jacobian)

    def jacobian_at(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the Jacobian of the slope by the state, held constant."""
        if self.jacobian is None:
            return stop_gradient(self.matrices.jacobian(slope, t, y))
        given = self.jacobian(t, y) if callable(self.jacobian) else self.jacobian
        return stop_gradient(self.matrices.of_user(given))

    def rate(self, slope: Slope) -> Slope:
        """Return the function that gives how the state changes, where `slope` gives the right-hand side."""
        return rate_of(slope, self.mass, self.algebraic)

    def by_mass(self, change: Any) -> Any:
        """Return the product of the mass matrix with a change of the state, or with one in each row."""
        return change if self.mass is None else self.matrices.by_mass(self.mass, change)

    def mass_like(self, jacobian: Any) -> Any:
        """Return the mass matrix, for a Jacobian."""
        return self.matrices.identity(jacobian) if self.mass is None else self.matrices.of_mass(self.mass)

    def first_counts(self, chosen: bool) -> Counts:
        """Return how often what was computed before the first step; `chosen` says that the user gave its size."""
        return Counts(1 if chosen else 2, 0 if self.is_constant else 1, 0)

    @abstractmethod
    def start(self, slope: Slope, walk: Walk, direction: Any, chosen: bool, moves: bool) -> Walk:
        """Return where an integration begins, with what its first step knows; `moves` says that its time may move."""

    @abstractmethod
    def restart(self, slope: Slope, walk: Walk, direction: Any, where: Any) -> Walk:
        """Return where an integration goes on, with what the first step after a change of the state knows."""

    @abstractmethod
    def try_step(self, slope: Slope, walk: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
        """Make one attempt at a step; see `wengert.scipy.integrate._methods.adaptive_steps.try_step`."""

    @abstractmethod
    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""

    @abstractmethod
    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""

    @abstractmethod
    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return what the stages of a step along a slope would give."""


def newton_tolerance(rtol: Any) -> Any:
    """Return how far Newton's method may be from what it converges to, as a part of the tolerance."""
    return np.maximum(rounding_error(rtol), np.max(np.minimum(0.03, np.sqrt(rtol))))


def rounding_error(rtol: Any) -> Any:
    """Return how far rounding errors may take a state, as a part of the tolerance."""
    return np.max(10 * EPS / rtol)


def newton_progress(norm: Any, before: Any, rounds: Any, most: int, tolerance: Any) -> tuple[Any, Any, Any]:
    """Return how fast Newton's method converges, whether it will not within its rounds, and whether it has.

    Args:
        norm: of its last step.
        before: of the one before.
        rounds: how many steps there were before.
        most: how many there may be.
        tolerance: how far it may be from what it converges to.
    """
    known = rounds > 0
    rate = np.where(known, norm / np.where(before == 0, 1.0, before), 0.0)
    ahead = np.where(rate >= 1, np.inf, rate / np.where(rate >= 1, 1.0, 1.0 - rate) * norm)
    hopeless = known & np.logical_not(rate ** (most - 1 - rounds) * ahead <= tolerance)
    return rate, hopeless, (norm == 0) | (known & (ahead < tolerance))


def at_held_time(slope: Slope, t: Any, y: Any) -> Any:
    """Return a state as that of a time which is held constant, to the third order."""
    return at_other_time(slope, t, stop_gradient(t), y)


def at_other_time(slope: Slope, t: Any, other: Any, y: Any) -> Any:
    """Return a state as that of another time which is the same number, to the third order.

    A step of Heun's method of order 3 from the time to itself has the derivatives that the solution has. Those of the
    innermost slope are of higher order.
    """
    way = other - t
    first = slope(t, y)
    second = slope(t + way / 3, y + way / 3 * stop_gradient(first))
    third = slope(t + way * (2 / 3), y + way * (2 / 3) * second)
    return moving_with(y, y + way / 4 * (first + 3 * third))
