"""Samples of linear systems in Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import fixed, normal, sample
from wengert.core.values.dispatch import apply
from wengert.implicit.banded import band_factors, band_solution
from wengert.implicit.factored import factored_solution, factors, substituted
from wengert.implicit.frontal import front_factors, front_solution
from wengert.implicit.fronts import Fronts
from wengert.implicit.newton_iteration import regular_solution
from wengert.implicit.quadratic_programs.interior_point import factor_if_positive
from wengert.implicit.quadratic_programs.programs import QuadraticProgram
from wengert.implicit.quadratic_programs.traced_programs import examined
from wengert.implicit.systems import certified, linear_solution


def solved(columns: Any, b: Any, transposed: bool) -> Any:
    """Return the solution of a system or its transpose."""
    return apply(linear_solution, columns, b, transposed=transposed, name="sample", singular="raise", tol=1e-3)


def solved_by_factors(columns: Any, b: Any, transposed: bool) -> Any:
    """Return the solution of a system, or of its transpose, by factors of the matrix, as graphs find it."""
    packed, pivots = apply(factors, columns)
    solved = apply(substituted, packed, b, pivots, transposed=transposed)
    options = {"transposed": transposed, "name": "sample", "singular": "raise", "tol": 1e-3}
    gate = np.arange(columns.shape[-1], dtype=np.int32)
    return apply(factored_solution, columns, packed, b, pivots, solved, gate, **options)


def substituted_factors(matrix: Any, b: Any, transposed: bool) -> Any:
    """Return a solution without derivatives."""
    packed, pivots = apply(factors, matrix)
    return apply(substituted, packed, b, pivots, transposed=transposed)


def solved_if_regular(matrix: Any, b: Any) -> Any:
    """Return the solution of a system."""
    return apply(regular_solution, matrix, b)


def certified_side(right: Any, excess: Any) -> Any:
    """Return a right-hand side at a point that solves its equations."""
    return apply(certified, right, excess, name="sample", tol=1e-3, singular="raise")


def regular(count: int) -> Any:
    """Return a matrix whose diagonal outweighs the rest."""
    return normal(count, count) + 4 * np.eye(count)


def examined_solution(solution: Any, *data: Any) -> Any:
    """Return a solution of a program as it is."""
    return apply(examined, solution, np.arange(3, dtype=np.int32), *data, again=QuadraticProgram)


def positive_factor(matrix: Any) -> Any:
    """Return Cholesky's factor of a matrix that has one."""
    return apply(factor_if_positive, matrix)


FRONTS = Fronts(3, np.array([0, 0, 1, 2, 2]), np.array([0, 2, 1, 0, 2]))


def factors_of_fronts(elements: Any) -> Any:
    """Return the factors of a matrix of two fronts, and of one that nothing is left to."""
    return apply(front_factors, elements, FRONTS.table, fronts=FRONTS)


def solution_by_fronts(elements: Any, b: Any) -> Any:
    """Return the solution of the transposed system."""
    packed = factors_of_fronts(elements)
    return apply(front_solution, packed, b, FRONTS.table, fronts=FRONTS, transposed=True)


def banded_solution(bands: Any, b: Any) -> Any:
    """Return the solution of a tridiagonal system, by factors of its matrix."""
    options = {"below": 1, "above": 1}
    packed, pivots = apply(band_factors, bands, **options)
    return apply(band_solution, packed, b, pivots, **options, transposed=True)


TRIDIAGONAL = fixed(np.array([[0.0, 3.0, 1.0], [2.0, 5.0, 1.0], [1.0, 4.0, 0.0]]))
REGULAR_ELEMENTS = fixed(np.array([[4.0], [1.0], [2.0], [1.0], [3.0]]))
REGULAR_SYSTEM = fixed(np.array([[3.0, 1.0], [1.0, 2.0]])), fixed(np.eye(2))
PROGRAM = [fixed(np.ones(shape)) for shape in ((1, 1), 1, (1, 1), 1, (1, 1), 1)]
SAMPLES = [
    sample("linear_solution", solved, regular(3), normal(3, 2), transposed=False),
    sample("linear_solution", solved, regular(3), normal(3, 1), transposed=True),
    sample("regular_solution", solved_if_regular, regular(2), normal(2, 2)),
    sample("factored_solution", solved_by_factors, regular(3), normal(3, 2), transposed=False),
    sample("factored_solution", solved_by_factors, regular(3), normal(3, 1), transposed=True),
    sample("substituted_factors", substituted_factors, *REGULAR_SYSTEM, transposed=True),
    sample("jacobian_factors", lambda a: apply(factors, a)[0], fixed(np.array([[3.0, 1.0], [1.0, 2.0]]))),
    sample("band_factors", lambda a: apply(band_factors, a, below=1, above=1)[0], TRIDIAGONAL),
    sample("front_factors", factors_of_fronts, REGULAR_ELEMENTS),
    sample("front_solution", solution_by_fronts, REGULAR_ELEMENTS, fixed(np.eye(3, 2))),
    sample("band_solution", banded_solution, TRIDIAGONAL, fixed(np.eye(3, 2))),
    sample("examined_program", examined_solution, fixed(np.ones((3, 1))), *PROGRAM),
    sample("factor_if_positive", positive_factor, REGULAR_SYSTEM[0]),
    sample("certified", certified_side, normal(3), fixed(np.float64(0.5))),
]
