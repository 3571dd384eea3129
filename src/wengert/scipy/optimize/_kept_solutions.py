"""What gives solutions their derivatives: of few unknowns traced once for all functions of one code, and kept.

Equations of a solution were traced at each call, which took half of what a gradient takes beyond the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from wengert.core.diagnostics.store_guard import NUMPYS, writes_traced
from wengert.errors import WengertError
from wengert.implicit.attaching import reaches_traced
from wengert.implicit.matrix_free import holds_trace
from wengert.scipy.optimize._vector_problem import FEW_UNKNOWNS, UNTRACED_GRADIENTS, FlatProblem
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.batch import Batch

Function = Callable[..., Any]


def with_derivatives(
    name: str,
    values: Function,
    args: tuple[Any, ...],
    shape: tuple[int, ...],
    make: Callable[[Function], Function],
    found: tuple[Any, ...],
    options: Hashable = (),
    keep: bool = True,
) -> Any:
    """Return a solution with its derivatives.

    Args:
        name: what the user called.
        values: the user's functions as one, of unknowns and of `args`.
        args: what it reads besides, of any kind.
        shape: of the unknowns.
        make: from the values to the function of `found`, and then of `args`, to the solution with its derivatives.
        found: the solution, and what its equations depend on besides.
        options: what else the function that is made depends on.
        keep: whether what is traced is kept also for functions that capture no other numbers.
    """
    example = np.zeros(shape)
    if not 0 < example.size <= FEW_UNKNOWNS:
        return make(values)(*found, *args)
    problem = FlatProblem(name, values, example, args, True, ("solution", options), keep)
    return problem.run("solution", as_given, make, UNTRACED_GRADIENTS)(*found)


def value_at(name: str, function: Function, x: Any, *args: Any) -> Any:
    """Return the value of a user's function at a solution.

    It is that of the traced form, which is converted, in lanes, where it may decide by values, and where NumPy would
    make ndarrays of what is followed.
    """
    if not holds_trace(x, Batch) or not x.size:
        before = refusal_count()
        try:
            return function(x, *args)
        except (WengertError, *NUMPYS) as error:
            if not writes_traced(error):
                raise
            forgive(before)
    captures = reaches_traced(name, function)
    problem = FlatProblem(name, function, np.zeros(x.shape), args, True, ("value",), keep=not captures)
    return problem.run("value", as_given, lambda form: form)(x)


def as_given(_name: str, function: Function, _back: Function) -> Function:
    """Return a function of unknowns as it is."""
    return function
