"""Methods of integration by their names, and what they have in common."""

from __future__ import annotations

from typing import Any

from wengert.scipy.integrate._radau import Radau
from wengert.scipy.integrate._rosenbrock import Rosenbrock
from wengert.scipy.integrate._steps import OneStepMethod
from wengert.scipy.integrate._tableaux import tableau

EXPLICIT = ("RK23", "RK45", "DOP853", "Tsit5")
WITH_JACOBIAN = ("Radau",)
"""Those that take the user's."""
METHODS = (*EXPLICIT, *WITH_JACOBIAN, "Rodas5P")


def method_named(name: str, mass: Any = None, jacobian: Any = None) -> OneStepMethod | Radau:
    """Return a method; one for M y' = f(t, y), if a mass matrix is given; the Jacobian, if the user gives it."""
    if name == "Radau":
        return Radau(jacobian)
    return tableau(name) if name in EXPLICIT else Rosenbrock(mass)
