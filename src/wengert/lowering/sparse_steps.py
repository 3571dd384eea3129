"""Products with sparse matrices as steps of programs, which read where elements stand from a table of the pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.emission.routines.sparse_routines import DTYPES, SPARSE
from wengert.lowering.matrix_steps import PARTS, MatrixRoutine, how_it_lies, is_dense
from wengert.primitives.sparse.products import sampled_product, sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern
from wengert.support.machine import MACHINE

CYCLES = 500.0, 4.0
"""Cycles for a product, and for a stored element and column."""


def sparse_step(equation: Equation) -> MatrixRoutine | None:
    """Return the sparse product of an equation as a step; None if it is another, or NumPy's."""
    primitive, (out, *_) = equation.primitive, equation.outputs
    if primitive not in (sparse_product, sampled_product) or type(out) is not Variable:
        return None
    pattern: StoragePattern = equation.params["pattern"]
    table, operands = pattern.line_table, list(equation.inputs)
    if table is None or out.dtype.name not in DTYPES or any(UNKNOWN in aval_of(x).shape for x in operands):
        return None
    is_by_rows, lines, rows = pattern.format == "csr", len(pattern.arrays[1]) - 1, 0
    if primitive is sparse_product:
        routine = "gathered_lines" if is_by_rows != equation.params["transposed"] else "scattered_lines"
        rows = out.shape[0]
    else:
        routine, operands = "sampled_lines", operands if is_by_rows else operands[::-1]
    arrays = [as_lying(x, out.dtype) for x in operands]
    columns = int(np.prod(aval_of(operands[1]).shape[1:]))
    if pattern.size == 0 or columns == 0:
        return None
    fields = {"count": lines, "columns": columns, "rows": rows}
    for i, x in zip((0, 1, 3), (*arrays, out), strict=True):
        lies = how_it_lies(x, len(x.shape), ())
        if lies is None or not is_dense(x, len(x.shape), lies):
            return None
        fields |= {f"row_{i}": lies[0], f"column_{i}": lies[1]}
    cycles = CYCLES[0] + CYCLES[1] * pattern.size * columns
    parts = 1 if routine == "scattered_lines" else max(1, min(lines, PARTS, int(cycles / MACHINE.short)))
    fields["parts"], name = parts, f"{SPARSE}.{routine}.{out.dtype.name}"
    inputs = [*arrays, as_lying(table, table.dtype)]
    return MatrixRoutine(equation, [*operands, table], name, fields, 0, cycles, inputs)


def as_lying(x: Any, dtype: np.dtype[Any]) -> Variable:
    """Return an operand of the dtype of the result, whose columns lie side by side: where it is, if it is such."""
    if type(x) is Variable and x.dtype == dtype and lies_by_rows(x):
        return x
    return Variable.of(Aval(aval_of(x).shape, dtype), "")


def lies_by_rows(x: Variable) -> bool:
    """Tell whether an array lies row by row: others are copied, since columns far apart take five times as long."""
    lies = how_it_lies(x, len(x.shape), ())
    return len(x.shape) < 2 or lies is None or lies[1] == 1
