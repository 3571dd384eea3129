"""Sorts of long rows as steps of programs, by NumPy's own functions."""

from __future__ import annotations

import math

from wengert.core.graph.equation import Equation, Variable
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.emission.routines.sort_routines import SORTS
from wengert.kernel.checking import DTYPES
from wengert.lowering.matrix_steps import MatrixRoutine, as_variable, step_of_problems
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.primitives.sorting import argsort, is_stable, ranked, sort
from wengert.support.machine import whole_lines

ROUTINES = {sort: "sort", argsort: "argsort", ranked: "ranks"}
CALL = 100.0
"""Cycles of a call."""
CYCLES = {"quick": 4.0, "stable": 12.0}
"""Cycles for each element and halving of a row."""
MOST = 1 << 22
"""Bytes of room for a row with gaps, or a row whose places are inverted, that programs have."""


def sort_step(equation: Equation) -> MatrixRoutine | None:
    """Return the sort of an equation as a step; None if it is another operation, or NumPy's."""
    routine, (out, *_) = ROUTINES.get(equation.primitive), equation.outputs
    if routine is None or type(out) is not Variable:
        return None
    aval, params = aval_of(equation.inputs[0]), equation.params
    if UNKNOWN in aval.shape or 0 in aval.shape or aval.dtype not in DTYPES:
        return None
    x = as_variable(equation.inputs[0])
    if axes_in_kernels(x) != axes_in_kernels(out):  # both are copied
        x, out = (Variable.of(Aval(y.shape, y.dtype)) for y in (x, out))
    axes, kind = axes_in_kernels(x), kind_of(routine, params.get("kind"), params.get("stable"))
    if not kind:
        return None
    lengths, place = [x.shape[k] for k in axes], axes.index(params["axis"] % len(axes))
    size, count, rows = lengths[place], math.prod(lengths[:place]), math.prod(lengths[place + 1 :])
    space = whole_lines(size * x.dtype.itemsize)
    work = space + 8 * size if rows > 1 or routine == "ranks" else 0
    if work > MOST:
        return None
    fields = {"count": count, "size": size, "rows": rows, "space": space}
    for i in range(2):
        fields |= {f"row_{i}": 1, f"column_{i}": rows, f"step_{i}": rows * size}
    each, name = rows * (CALL + CYCLES[kind] * size * math.log2(size)), f"{SORTS}.{routine}.{kind}.{x.dtype.name}"
    step = step_of_problems(equation, equation.inputs, name, fields, each, work, 1)
    step.inputs, step.outputs = [x], [out]
    return step


def kind_of(routine: str, kind: str | None, stable: bool | None) -> str:
    """Return NumPy's kind of a sort, which it knows by its first letter; none of heap sorts, whose order varies."""
    if routine == "ranks" or is_stable(kind, stable):
        return "stable"
    return "" if kind is not None and kind[:1].lower() == "h" else "quick"
