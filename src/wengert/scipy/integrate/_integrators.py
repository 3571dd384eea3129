"""What integrators of other libraries are given: tolerances, and Jacobians in the form that each takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.scipy.integrate._methods.element_matrices import ElementMatrices, bandwidth
from wengert.scipy.integrate._methods.matrix_choice import NARROW
from wengert.scipy.integrate._programs import IntegrationProgram


def integrator_options(
    name: str, program: IntegrationProgram, leaves: Any, size: int, sizes: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the class of an integrator, and its options.

    Args:
        name: of the method.
        program: has compiled functions.
        leaves: what they read.
        size: how many states there are.
        sizes: tolerances, the largest step and the first one, 0 if it is not given.
    """
    from scipy.integrate import LSODA

    rtol, atol, largest, first = sizes
    options = {"rtol": rtol, "atol": atol, "max_step": float(largest), "first_step": float(first) or None}
    return LSODA, {**options, **jacobian_in_bands(program, leaves, size)}


def jacobian_in_bands(program: IntegrationProgram, leaves: Any, size: int) -> dict[str, Any]:
    """Return the Jacobian as ODEPACK takes it: in bands, where states as they stand have few, or in full."""
    matrices = program.matrices
    if not isinstance(matrices, ElementMatrices):
        return {"jac": lambda t, y: program.jacobian_at(leaves, t, y)}
    rows, columns = matrices.rows, matrices.columns
    below, above = bandwidth(rows, columns, None)
    if 2 * below + above + 1 <= NARROW * size:
        places, shape = (above + rows - columns, columns), (below + above + 1, size)
        bands = {"lband": below, "uband": above}
    else:
        places, shape, bands = (rows, columns), (size, size), {}
    return {"jac": jacobian_function(program, leaves, places, shape), **bands}


def jacobian_function(
    program: IntegrationProgram, leaves: Any, places: Any, shape: tuple[int, int]
) -> Callable[..., Any]:
    """Return the Jacobian as a function whose elements stand at some places of a matrix."""

    def jacobian(t: Any, y: Any) -> Any:
        found = np.zeros(shape)
        found[places] = program.jacobian_at(leaves, t, y)
        return found

    return jacobian
