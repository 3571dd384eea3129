"""What a step visits: computed when it is tried, with everything held, and differentiated when it was taken.

An attempt that is rejected may have gone where functions overflow. Nothing of it is in the solution, but a matrix that
is multiplied there gets cotangents of zero times infinity. So an attempt is gone through twice: as values, which say
whether it is good, and as what moves with these; where it is not, functions are differentiated where it began.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.scipy.integrate._methods.held_factors import moving_root, moving_with
from wengert.transforms.reverse import stop_gradient

Slope = Callable[[Any, Any], Any]


class Visits(ABC):
    """Give the slopes, and the roots of equations, that a step asks for."""

    @abstractmethod
    def place(self, t: Any, y: Any) -> tuple[Any, Any]:
        """Return the time and the state where functions are evaluated for those that a step visits."""

    @abstractmethod
    def slope(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the slope at a time and a state."""

    @abstractmethod
    def root(self, find: Callable[[], Any], equations: Callable[[Any], tuple[Any, Any, Any]]) -> Any:
        """Return the state that equations determine; `find` computes it."""


class Tried(Visits):
    """Compute them, held constant.

    Attributes:
        values: those so far.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []

    def place(self, t: Any, y: Any) -> tuple[Any, Any]:
        """Return both as they are."""
        return t, y

    def slope(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the slope."""
        return self.noted(slope(t, y))

    def root(self, find: Callable[[], Any], equations: Callable[[Any], tuple[Any, Any, Any]]) -> Any:
        """Return what is found."""
        return self.noted(find())

    def noted(self, value: Any) -> Any:
        """Return a value, held constant, which is known from then on."""
        self.values.append(stop_gradient(value))
        return self.values[-1]


class Taken(Visits):
    """Give the same values, with derivatives: those that functions have there, or where a rejected attempt began."""

    def __init__(self, tried: Tried, is_good: Any, t: Any, y: Any) -> None:
        self.values, self.is_good, self.start = iter(tried.values), is_good, stop_gradient((t, y))

    def anew(self) -> Again:
        """Return what computes all of it again, with derivatives."""
        return Again(self.place)

    def place(self, t: Any, y: Any) -> tuple[Any, Any]:
        """Return where the attempt began, unless it is good."""
        time, state = self.start
        return np.where(self.is_good, t, time), np.where(self.is_good, y, state)

    def slope(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the slope, which moves as it does at that place."""
        return moving_with(next(self.values), slope(*self.place(t, y)))

    def root(self, find: Callable[[], Any], equations: Callable[[Any], tuple[Any, Any, Any]]) -> Any:
        """Return the state, which moves as equations say."""
        return moving_root(equations, np.where(self.is_good, next(self.values), self.start[1]))


class Again(Visits):
    """Compute slopes again where others were looked at.

    Attributes:
        place: gives that time and state.
    """

    def __init__(self, place: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self.place_of = place

    def place(self, t: Any, y: Any) -> tuple[Any, Any]:
        """Return the same."""
        return self.place_of(t, y)

    def slope(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the slope."""
        return slope(*self.place(t, y))

    def root(self, find: Callable[[], Any], equations: Callable[[Any], tuple[Any, Any, Any]]) -> Any:
        """Return the state that is found."""
        return moving_root(equations, find())
