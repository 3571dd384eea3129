"""What integrators of other libraries are given: tolerances, and Jacobians in the form that each takes."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from wengert.errors import UsageError
from wengert.scipy.integrate._methods.adaptive_steps import TOO_MANY, TOO_SMALL
from wengert.scipy.integrate._methods.element_matrices import ElementMatrices, bandwidth
from wengert.scipy.integrate._methods.matrix_choice import NARROW
from wengert.scipy.integrate._programs import IntegrationProgram
from wengert.scipy.integrate._results import MESSAGES
from wengert.scipy.integrate._right_hand_side import NAME

MOST_STILL = 8
"""How many steps after each other may end where they begin."""


def integrator_class(
    name: str, program: IntegrationProgram, leaves: Any, mass: Any, sizes: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the class of an integrator, of SciPy's kind, and its options.

    Args:
        name: of the method.
        program: has compiled functions.
        leaves: what they read.
        mass: the matrix M of M y' = f(t, y), None for that of ones.
        sizes: tolerances, the largest step and the first one, 0 if it is not given.

    Raises:
        UsageError: the package that has it is not installed.
    """
    rtol, atol, largest, first = sizes
    if name == "LSODA":
        from scipy.integrate import LSODA

        options = {"rtol": rtol, "atol": atol, "max_step": float(largest), "first_step": float(first) or None}
        return LSODA, {**options, **jacobian_in_bands(program, leaves)}
    if importlib.util.find_spec("sksundae") is None:
        given = f"method={name!r}, and the package scikit-sundae is not installed"
        action = "Run pip install 'wengert[sundials]', or pass method='BDF'"
        raise UsageError(NAME, given, "scikit-sundae, which has SUNDIALS, is needed", action)
    from wengert.scipy.integrate._sundials import SundialsSolver, sundials_options

    return SundialsSolver, sundials_options(name, program, leaves, mass, sizes)


def jacobian_in_bands(program: IntegrationProgram, leaves: Any) -> dict[str, Any]:
    """Return the Jacobian as ODEPACK takes it: in bands, where states as they stand have few, or in full."""
    matrices = program.matrices
    if not isinstance(matrices, ElementMatrices):
        return {"jac": lambda t, y: program.jacobian_at(leaves, t, y)}
    rows, columns, size = matrices.rows, matrices.columns, matrices.size
    below, above = bandwidth(rows, columns, None)
    is_banded = 2 * below + above + 1 <= NARROW * size
    places = (above + rows - columns if is_banded else rows), columns

    def jacobian(t: Any, y: Any) -> Any:
        found = np.zeros((below + above + 1 if is_banded else size, size))
        found[places] = program.jacobian_at(leaves, t, y)
        return found

    return {"jac": jacobian, **({"lband": below, "uband": above} if is_banded else {})}


@functools.cache
def limited_class(solver: Any) -> Any:
    """Return a class of integrators that gives up after `most` steps, or where times stay the same.

    SciPy's LSODA takes such steps for ever.
    """

    def begin(self: Any, *given: Any, most: int, **options: Any) -> None:
        self.most, self.taken, self.still = most, 0, 0
        solver.__init__(self, *given, **options)

    def take_step(self: Any) -> tuple[bool, str | None]:
        if self.taken == self.most:
            return False, MESSAGES[TOO_MANY]
        before = self.t
        found: tuple[bool, str | None] = solver._step_impl(self)
        self.taken, self.still = self.taken + 1, self.still + 1 if self.t == before else 0
        return (False, MESSAGES[TOO_SMALL]) if self.still > MOST_STILL else found

    return type(solver.__name__, (solver,), {"__init__": begin, "_step_impl": take_step})
