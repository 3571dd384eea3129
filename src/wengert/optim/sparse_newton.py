"""Steps of Newton's method by those elements of a Jacobian that may be other than zero, where these are few.

Which these are follows from the equations, not from numbers. They are computed in as many lanes as columns have
colours, and factorised in bands or front by front, as those of stiff differential equations are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.control.cond import cond
from wengert.errors import GraphError
from wengert.implicit.newton_iteration import Function, StepFrom, solve_system
from wengert.scipy.integrate._methods.element_matrices import ElementMatrices, FrontMatrices
from wengert.scipy.integrate._methods.matrix_choice import matrices_for
from wengert.sparse.coloring.coloring_methods import color
from wengert.sparse.patterns.find_pattern import find_pattern
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.plans.lanes import lane_elements

FEW = 15
"""Unknown numbers up to which no pattern is looked for: of 16 with two elements in a row the method takes 2.7 us by
these, 4.0 in full, of 32 4.9 and 17, in each of many lanes 2.5 and 2.9, 5.1 and 11."""


def few_elements(name: str, function: Function, x: Any) -> ElementMatrices | None:
    """Return how Jacobians of a function of one vector are held by their elements; None if they are held in full.

    Args:
        name: who asks, for errors.
        function: of equations; it is traced.
        x: what is like the unknown numbers.
    """
    if x.size <= FEW or x.dtype != float:
        return None
    try:
        pattern = find_pattern(function, (x,), (0,), name=name)
    except GraphError:  # it looks at numbers: the iteration does, too, or says so
        return None
    found = matrices_for(pattern) if pattern.shape == (x.size, x.size) else None
    return found if isinstance(found, ElementMatrices) else None


def step_by_elements(name: str, matrices: ElementMatrices) -> StepFrom:
    """Return the function from equations and a point to their value there, and the step from it.

    Fronts exchange rows within themselves alone; where they have no pivots all elements are written in full.
    """
    size, shape = matrices.size, (matrices.size, matrices.size)
    coloring = color(Pattern.of_pairs(shape, matrices.rows, matrices.columns))

    def step_from(function: Function, x: Any) -> tuple[Any, Any]:
        value = function(x)
        elements = lane_elements(name, function, (x,), coloring, coloring.lane_places)
        step = matrices.substitute(matrices.factors(elements), -value)
        if not isinstance(matrices, FrontMatrices):
            return value, step

        def step_in_full(elements: Any, value: Any) -> Any:
            full = np.zeros(size * size, like=elements)
            full[matrices.rows * size + matrices.columns] = elements
            return solve_system(np.reshape(full, shape), -value)

        return value, cond(np.all(np.isfinite(step)), lambda *_: step, step_in_full, elements, value)

    return step_from
