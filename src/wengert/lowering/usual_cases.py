"""Routines as graphs of other operations, in the case that is usual: eigenvalues apart, matrices of full rank.

What a routine does where eigenvalues are one, or rank is missing, is NumPy's: the program fails there, as it does where
a matrix is singular, and the routine is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.values.aval import UNKNOWN, aval_of
from wengert.core.values.dispatch import apply
from wengert.primitives.selection import required
from wengert.traces.staging import stage_function


def usual_graph(equation: Equation) -> Graph | None:
    """Return what an equation computes in the usual case, as a graph; None if its primitive does not say that of it.

    An output behind its results, if there is one, is a truth that has to hold.
    """
    usual, results = equation.primitive.usual_case, equation.outputs
    if usual is None or any(UNKNOWN in aval_of(x).shape for x in (*equation.inputs, *results)):
        return None

    def write(operands: Sequence[Any]) -> list[Any]:
        answer = usual(*operands, **equation.params)
        if answer is None:
            return []
        found, holds = answer
        values = found if isinstance(found, tuple) else (found,)
        like = zip(values, results, strict=True)
        own = [np.broadcast_to(x, v.shape).astype(v.dtype) for x, v in like]
        return own if holds is None else [*own, apply(required, holds)]

    orders = [x.strides if type(x) is Variable else None for x in equation.inputs]
    name = equation.primitive.name
    graph, captured = stage_function(write, list(map(aval_of, equation.inputs)), name, orders=orders)
    return graph if graph.outputs and not captured else None
