"""Methods of integration by their names, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.scipy.integrate._methods.adaptive_steps import OneStepMethod
from wengert.scipy.integrate._methods.bdf import BackwardDifferences
from wengert.scipy.integrate._methods.esdirk import Kvaerno
from wengert.scipy.integrate._methods.implicit_method import ImplicitMethod
from wengert.scipy.integrate._methods.jacobian_matrices import FULL, Matrices
from wengert.scipy.integrate._methods.radau import Radau
from wengert.scipy.integrate._methods.recorded_steps import RecordedSteps
from wengert.scipy.integrate._methods.rosenbrock import Rosenbrock
from wengert.scipy.integrate._methods.tableaux import FIXED, fixed_step_method, tableau

__all__ = ["FIXED", "METHODS", "OUTSIDE", "WITH_JACOBIAN", "WITH_MASS", "WITH_PATTERN", "AnyMethod", "method_named"]

EXPLICIT = ("RK23", "RK45", "DOP853", "Tsit5")
IMPLICIT: dict[str, Callable[[Any, Any, Any, Matrices], ImplicitMethod]] = {
    "Radau": Radau,
    "BDF": BackwardDifferences,
    "Kvaerno5": Kvaerno,
}
OUTSIDE = ("LSODA", "CVODE", "IDA")
"""Integrators of other libraries."""
WITH_JACOBIAN = (*IMPLICIT, *OUTSIDE)
"""Those that take the user's."""
AnyMethod = OneStepMethod | ImplicitMethod
WITH_MASS = (*IMPLICIT, "Rodas5P", "IDA")
WITH_PATTERN = (*WITH_MASS, "LSODA", "CVODE")
METHODS = (*EXPLICIT, *IMPLICIT, "Rodas5P", *FIXED, *OUTSIDE)


def method_named(
    name: str, mass: Any = None, algebraic: Any = None, jacobian: Any = None, matrices: Matrices = FULL
) -> AnyMethod:
    """Return a method.

    Args:
        name: of the method.
        mass: the matrix M of M y' = f(t, y), if there is one.
        algebraic: the combinations of equations without a slope, if there are any.
        jacobian: the user's, if there is one.
        matrices: how Jacobians are held.
    """
    if name in OUTSIDE:
        return RecordedSteps(jacobian, mass, algebraic, matrices)
    if name in IMPLICIT:
        return IMPLICIT[name](jacobian, mass, algebraic, matrices)
    if name in FIXED:
        return fixed_step_method(name)
    return tableau(name) if name in EXPLICIT else Rosenbrock(matrices, mass)
