"""Routines of small matrices as steps of programs: a call of LAPACK takes longer than the work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wengert.core.forms.form import form_of
from wengert.core.forms.routine import Routine, cores
from wengert.core.graph.equation import Equation
from wengert.core.graph.variable import Variable
from wengert.core.values.aval import UNKNOWN, aval_of
from wengert.emission.matrix_routines import SCALARS, SMALL
from wengert.passes.equations import keyword_parameters, unknown_parameters
from wengert.passes.output_aliasing import axes_in_kernels

Params = Mapping[str, Any]

LARGEST = 32
"""Rows of matrices up to which a call of LAPACK by NumPy takes longer: systems of 4, 16, 32 and 48 rows take 0.2, 1.0,
3.9 and 10.5 us, by NumPy 4.1, 6.0, 9.5 and 16.4; Cholesky's factor 0.2, 1.5, 4.9 and 14.3, by NumPy 3.6, 4.2, 6.0 and
12.3."""
CYCLE, CALL = 1.5, 100.0
"""Cycles for an element of a row that is subtracted, and for each problem."""


class SmallMatrices:
    """Hold a routine of small matrices that can be a step.

    Args:
        equation: of the routine.
        name: of the kernel.
        fields: MATRICES.
        work: bytes of the room for the elimination.
        cycles: about how long it takes.
    """

    def __init__(self, equation: Equation, name: str, fields: Mapping[str, int], work: int, cycles: float) -> None:
        self.inputs, self.outputs = list(map(as_variable, equation.inputs)), equation.outputs
        self.name, self.fields, self.work, self.cycles = name, fields, work, cycles


def small_matrices(equation: Equation) -> SmallMatrices | None:
    """Return the routine of an equation as a step; None if it is another, or of large matrices."""
    routine, params = equation.primitive.routine, equation.params
    if routine is None or unknown_parameters(params, known := keyword_parameters(routine)):
        return None
    if not all(type(x) is Variable for x in equation.outputs):
        return None
    call = routine(**{name: value for name, value in params.items() if name in known})
    arrays = [*map(as_variable, equation.inputs), *equation.outputs]
    if call is None:
        return None
    dtype, size = arrays[0].dtype, arrays[0].shape[-1]
    alike = all(x.dtype == dtype and UNKNOWN not in x.shape and 0 not in x.shape for x in arrays)
    if dtype.name not in SCALARS or not alike or size > LARGEST:
        return None
    ranks = ranks_of(equation)
    result = arrays[-1]
    stack = result.shape[: len(result.shape) - ranks[-1]]
    columns = result.shape[-1] if ranks[-1] == 2 else 1
    fields = {"count": math.prod(stack), "size": size, "columns": columns, **call.fields}
    for i, (x, rank) in enumerate(zip(arrays, ranks, strict=True)):
        lies = how_it_lies(x, rank, stack)
        if lies is None:
            return None
        row, column, step = lies
        fields |= {f"row_{i}": row, f"column_{i}": column, f"step_{i}": step}
        if i in call.turned:
            fields |= {f"row_{i}": column, f"column_{i}": row}
    work = size * (2 * size + columns)
    cycles = fields["count"] * (CALL + CYCLE * size * (size + columns) ** 2)
    return SmallMatrices(equation, f"{SMALL}.{call.routine}.{dtype.name}", fields, work * dtype.itemsize, cycles)


def ranks_of(equation: Equation) -> list[int]:
    """Return how many axes the problem itself has in each operand and result; all others are of the stack."""
    form = form_of(equation.primitive)
    assert isinstance(form, Routine)
    operands, results = cores(form.signature, len(equation.inputs))
    ranks = [*map(len, operands), *map(len, results)]
    is_vector = len(equation.inputs) == 2 and len(aval_of(equation.inputs[1]).shape) == 1  # of `numpy.linalg.solve`
    return [2, 1, 1] if is_vector else ranks


def how_it_lies(x: Variable, rank: int, stack: Sequence[int]) -> tuple[int, int, int] | None:
    """Return how many elements it is to the next row, column and problem; None if problems lie at no regular distance.

    Args:
        x: the operand or result.
        rank: how many axes the problem itself has.
        stack: the lengths of the others in the result.
    """
    steps = dict.fromkeys(range(len(x.shape)), 0)
    step = 1
    for axis in reversed(axes_in_kernels(x)):
        steps[axis] = step
        step *= x.shape[axis]
    outer = len(x.shape) - rank
    row, column = [*[steps[axis] for axis in range(outer, len(x.shape))], 0, 0][:2]
    lengths = x.shape[:outer]
    if all(n == 1 for n in lengths):
        return row, column, 0
    regular = all(steps[i] == steps[i + 1] * lengths[i + 1] for i in range(outer - 1))
    return (row, column, steps[outer - 1]) if regular and lengths == tuple(stack) else None


def as_variable(x: Any) -> Variable:
    """Return what is as a literal is; a variable as it is."""
    return x if type(x) is Variable else Variable.of(aval_of(x), "")
