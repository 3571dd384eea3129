"""Methods of integration by their names, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from wengert.scipy.integrate._rosenbrock import Rosenbrock
from wengert.scipy.integrate._tableaux import Slope, tableau

EXPLICIT = ("RK23", "RK45", "DOP853", "Tsit5")
METHODS = (*EXPLICIT, "Rodas5P")


class Method(Protocol):
    """Be a one-step method with an error estimate and a continuous extension."""

    @property
    def order(self) -> int:
        """The order of the error estimate."""

    @property
    def evaluations(self) -> int:
        """The number of evaluations of the slope in a step."""

    @property
    def jacobians(self) -> int:
        """The number of Jacobians of the slope in a step, each with factors of a matrix."""

    @property
    def more(self) -> Any:
        """Further stages that the continuous extension has, and where these are; None if there are none."""

    def stages(self, slope: Slope, t: Any, y: Any, f: Any, h: Any) -> tuple[list[Any], Any, Any]:
        """Return what the stages of a step give, the state at its end, and the slope there."""

    def error_norm(self, slopes: Sequence[Any], scale: Any, h: Any) -> Any:
        """Return the norm of the error estimate; below 1 the step is good."""

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return what the stages of a step along a slope would give."""


def method_named(name: str, mass: Any = None) -> Method:
    """Return a method; one for M y' = f(t, y), if a mass matrix is given."""
    return tableau(name) if name in EXPLICIT else Rosenbrock(mass)
