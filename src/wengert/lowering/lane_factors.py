"""Factors of many small matrices as their kernels leave them: the elements of all lanes side by side.

They are arrays of one program, which nothing sees but these kernels and what reads diagonals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.values.aval import Aval
from wengert.emission.routines.matrix_lanes import LANES, lanes_of
from wengert.lowering.matrix_steps import (
    MatrixRoutine,
    as_variable,
    cycles_of,
    family_of,
    how_it_lies,
    room_of,
    step_of_problems,
)

Lies = tuple[int, int, int]
"""How far it is to the next row, column and problem."""


def tiles_of(matrix: Variable) -> tuple[Variable, Variable] | None:
    """Return factors of a stack, and with which row each was exchanged, if kernels of lanes compute them; else None."""
    *stack, rows, _ = matrix.shape
    exchanges = Variable.of(Aval((*stack, rows), np.dtype(np.int32)))
    if family_of("lu_factor", [matrix, matrix, exchanges], math.prod(stack), 0) is not LANES:
        return None
    lanes = lanes_of(matrix.dtype.name)
    groups = -(-math.prod(stack) // lanes)
    factors = Variable.of(Aval((groups, rows, rows | 1, lanes), matrix.dtype))
    return factors, Variable.of(Aval((groups, rows, lanes), np.dtype(np.int64)))


def is_tiled(exchanges: Variable) -> bool:
    """Tell whether exchanges of rows are those of `tiles_of`."""
    return exchanges.dtype == np.int64


def factorisation(equation: Equation) -> MatrixRoutine | None:
    """Return what leaves such factors as a step."""
    (matrix,) = equation.inputs
    *stack, rows, _ = matrix.shape
    lies = [how_it_lies(matrix, 2, stack), *tiles_lie(rows)]
    return step_in_lanes(equation, "factors_in_place", lies, stack, 0, {})


def solution(equation: Equation, stack: Sequence[int]) -> MatrixRoutine | None:
    """Return what solves the systems of a stack by such factors as a step."""
    right, (x,) = as_variable(equation.inputs[1]), equation.outputs
    rank = len(x.shape) - len(stack)
    factors, exchanges = tiles_lie(equation.inputs[0].shape[1])
    lies = [factors, how_it_lies(right, min(rank, len(right.shape)), stack), exchanges, how_it_lies(x, rank, stack)]
    columns, fields = x.shape[-1] if rank == 2 else 1, {"backward": int(equation.params["trans"] > 0)}
    return step_in_lanes(equation, "solve_in_place", lies, stack, columns, fields)


def tiles_lie(rows: int) -> tuple[Lies, Lies]:
    """Return how factors and exchanges of so many rows lie, counted in vectors."""
    return (rows | 1, 1, rows * (rows | 1)), (1, 0, rows)


def step_in_lanes(
    equation: Equation,
    routine: str,
    lies: Sequence[Lies | None],
    stack: Sequence[int],
    columns: int,
    further: Mapping[str, int],
) -> MatrixRoutine | None:
    """Return a routine of lanes as a step; None if an array lies at no regular distance."""
    dtype, size = equation.inputs[0].dtype, equation.inputs[-1].shape[-2 if columns == 0 else 1]
    fields = {"count": math.prod(stack), "size": size, "columns": columns, "rows": size, "finite": 0, **further}
    for i, found in enumerate(lies):
        if found is None:
            return None
        fields |= dict(zip((f"row_{i}", f"column_{i}", f"step_{i}"), found, strict=True))
    lanes, each = lanes_of(dtype.name), cycles_of(LANES, size, columns) * (2 / size if columns else 1)
    work = room_of(LANES, size, columns) * lanes * dtype.itemsize
    name = f"{LANES}.{routine}.{dtype.name}"
    return step_of_problems(equation, list[Any](equation.inputs), name, fields, each, work, lanes)
