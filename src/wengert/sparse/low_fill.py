"""Where sparse derivatives pay without being asked for: in drivers of problems with many unknowns and low fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.errors import GraphError
from wengert.sparse.derivative_program import make_program
from wengert.sparse.derivatives import SparseDerivative

MANY_UNKNOWNS = 300
"""Unknowns from which a pattern is looked for: below, dense linear algebra takes no longer than sparse."""
LOW_FILL = 0.05
"""The share of elements that are stored up to which solvers of sparse systems are the faster ones."""
LOW_COST = 0.5
"""What the plan takes by the dense derivative."""


def if_low_fill(derivative: SparseDerivative, *args: Any) -> Callable[..., Any] | None:
    """Return a sparse derivative, planned for arguments, if few of its elements are stored; else None.

    Whoever solves equations lets all calls have what the function captured at the beginning.

    Args:
        derivative: the derivative.
        *args: the arguments, the first of which is one vector of unknowns.

    >>> import numpy as np
    >>> from wengert.sparse import jacobian
    >>> if_low_fill(jacobian(lambda x: x[1:] * x[:-1]), np.ones(5))
    >>> if_low_fill(jacobian(lambda x: x[1:] * x[:-1]), np.ones(500))
    <sparse.jacobian(<lambda>)>
    """
    if args[0].size < MANY_UNKNOWNS:
        return None
    call = derivative.take_apart(args, {})
    try:
        program = make_program(derivative.fun, derivative.request, call)
    except GraphError:  # the dense derivative says so, too
        return None
    m, n = program.plan.shape
    if program.plan.nnz > LOW_FILL * m * n or program.plan.cost > LOW_COST:
        return None
    derivative.keep_fixed(call, program)
    return derivative
