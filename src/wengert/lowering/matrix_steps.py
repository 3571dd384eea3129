"""Routines of matrices as steps of programs: kernels of our own for small ones, and calls of LAPACK for others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wengert.core.forms.form import form_of
from wengert.core.forms.routine import Routine, cores
from wengert.core.graph.equation import Equation, Variable
from wengert.core.values.aval import UNKNOWN, aval_of
from wengert.emission.products.tiled_functions import SCALARS
from wengert.emission.routines.band_routines import BANDED, is_banded, room_of_bands
from wengert.emission.routines.band_routines import is_available as has_bands
from wengert.emission.routines.front_routines import FRONTS, is_of_fronts
from wengert.emission.routines.front_routines import SPARE as ENDS
from wengert.emission.routines.lapack_problems import LAPACK, PANEL, ROOM
from wengert.emission.routines.lapack_routines import SPECTRAL, is_available
from wengert.emission.routines.matrix_lanes import LANES, lanes_of
from wengert.emission.routines.matrix_routines import CONDITIONED, SMALL, TRIANGULAR, dtypes_of
from wengert.passes.equations import keyword_parameters, unknown_parameters
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.support.machine import MACHINE, whole_lines

LARGEST = 512
"""Rows of real matrices up to which a call of LAPACK takes longer: systems of 30, 100, 200, 400 and 600 rows take 2.1,
29, 150, 1,270 and 4,400 us, by LAPACK 10 (48 rows), 45, 260, 1,500 and 4,900; Cholesky's factor 1.6, 20, 100, 760 and
3,450, by LAPACK 7, 33, 178, 940 and 3,080."""
FEW = 48
"""Rows up to which it does so, too, where the inverse is needed for the condition."""
LEAST_SHARED = 4
"""Rows from which on it takes less to factorise once for several systems: each solution by factors is a step, too."""
LANES_MOST = 9216
"""Elements of a problem, right sides included, up to which lanes are computed at once: 64 systems, inverses and LU
factors of 64 rows take 5.6, 18.3 and 7.2 us each, one after the other 12.4, 27.7 and 12.9; of 128 rows 42, 160 and 52,
and 64, 180 and 75, but with room of two megabytes for each thread."""
MOST = 1024
"""Rows from which on it does not matter who calls LAPACK, and its room in the arena does."""
CYCLES = {SMALL: (500.0, 0.15), LANES: (100.0, 0.08), LAPACK: (1000.0, 0.3), BANDED: (200.0, 0.0), FRONTS: (500.0, 0.0)}
"""Cycles for each problem, and for an element of a row that is subtracted."""
CYCLES_OF_BAND = 4.0
"""Cycles for each element of the bands, and of factors of fronts."""
MOST_SPECTRAL = 400
"""Rows and columns of theirs, for which some ten times as much room is needed."""
COLUMNS = 16
"""Columns of the room beside those for a factor or an inverse: pivots, and what conditions take."""
SPARE = 3 * 16 + 2
"""Columns of the room for small matrices: the ends of vectors, of three matrices, and pivots."""
SPARE_OF_LANES = 3
"""Columns of that of many at once: pivots, and what makes the distance of rows odd."""
BLOCKS, WIDE = 4, 64
"""Blocks that the right sides of one triangular system are problems of their own in, and their columns at least."""
PARTS = 16
"""Shares of problems at most."""


class MatrixRoutine:
    """Hold a routine of matrices that can be a step.

    Args:
        equation: of the routine.
        operands: of the equation, those that the kernel reads.
        name: of the kernel.
        fields: MATRICES.
        work: bytes of the room for the elimination.
        cycles: about how long it takes.
        inputs: variables that lie as the kernel reads operands, where these need not.
    """

    def __init__(
        self,
        equation: Equation,
        operands: Sequence[Any],
        name: str,
        fields: Mapping[str, int],
        work: int,
        cycles: float,
        inputs: Sequence[Variable] = (),
    ) -> None:
        self.operands = operands
        self.inputs: Sequence[Variable] = inputs or list(map(as_variable, operands))
        self.outputs: Sequence[Variable] = equation.outputs
        self.name, self.fields, self.work, self.cycles = name, fields, work, cycles


def matrix_routine(equation: Equation) -> MatrixRoutine | None:
    """Return the routine of an equation as a step; None if it is another, or of large matrices."""
    routine, params = equation.primitive.routine, equation.params
    if routine is None or unknown_parameters(params, known := keyword_parameters(routine)):
        return None
    if not all(type(x) is Variable for x in equation.outputs):
        return None
    call = routine(**{name: value for name, value in params.items() if name in known})
    if call is None:
        return None
    places = range(len(equation.inputs)) if call.operands is None else call.operands
    operands = [equation.inputs[place] for place in places]
    arrays = [*map(as_variable, operands), *equation.outputs]
    if any(UNKNOWN in x.shape or 0 in x.shape for x in arrays):
        return None
    dtype, size, ranks = arrays[0].dtype, arrays[0].shape[-1], ranks_of(equation, places)
    result, rank = arrays[len(operands)], ranks[len(operands)]
    stack = result.shape[: len(result.shape) - rank]
    columns, count = result.shape[-1] if rank == 2 else 1, math.prod(stack)
    family = family_of(call.routine, arrays, count, columns)
    if family is None:
        return None
    rows, blocks = arrays[0].shape[-2], 1
    if family is SMALL and call.routine in TRIANGULAR and count == 1:
        blocks = BLOCKS if columns % BLOCKS == 0 and columns >= BLOCKS * WIDE else 1
        count, columns = blocks, columns // blocks
    fields = {"count": count, "size": size, "columns": columns, "rows": rows, **call.fields}
    for i, (x, rank) in enumerate(zip(arrays, ranks, strict=True)):
        lies = how_it_lies(x, rank, stack)
        if lies is None or (family in (LAPACK, BANDED, FRONTS) and not is_dense(x, rank, lies)):
            return None
        row, column, step = lies
        if blocks > 1 and i > 0:
            step = columns * column
        fields |= {f"row_{i}": row, f"column_{i}": column, f"step_{i}": step}
        if i in call.turned:
            fields |= {f"row_{i}": column, f"column_{i}": row}
    longest = max(size, rows)
    each, lanes = cycles_of(family, longest, columns), lanes_of(dtype.name) if family is LANES else 1
    room = room_of_spectrum(rows, size) if call.routine in SPECTRAL else room_of(family, longest, columns)
    if family is BANDED:
        each, room = CYCLES_OF_BAND * rows * size * columns, room_of_bands(rows, columns)
    elif family is FRONTS:
        each, room = CYCLES_OF_BAND * call.fields["length"] * columns, call.fields["space"] + ENDS
    name = f"{family}.{call.routine}.{dtype.name}"
    return step_of_problems(equation, operands, name, fields, each, room * lanes * dtype.itemsize, lanes)


def step_of_problems(
    equation: Equation,
    operands: Sequence[Any],
    name: str,
    fields: dict[str, int],
    each: float,
    work: int,
    together: int,
) -> MatrixRoutine:
    """Return a step whose problems are shared among threads.

    Args:
        equation: of the routine.
        operands: see `MatrixRoutine`.
        name: of the kernel.
        fields: MATRICES, but for how problems are shared.
        each: cycles of a problem.
        work: bytes of the room for some problems.
        together: how many these are.
    """
    count = fields["count"]
    parts = max(1, min(-(-count // together), PARTS, int(count * each / MACHINE.short)))
    fields |= {"parts": parts, "room": whole_lines(work)}
    return MatrixRoutine(equation, operands, name, fields, fields["room"] * parts, count * each)


def family_of(routine: str, arrays: Sequence[Variable], count: int, columns: int) -> str | None:
    """Return the family of kernels that compute a routine of so many problems; None if none does."""
    dtypes, size = [x.dtype for x in arrays], max(arrays[0].shape[-2:])
    if is_of_fronts(routine):
        return FRONTS if dtypes[0].name == "float64" else None
    if is_banded(routine):
        return BANDED if has_bands(dtypes[0]) else None
    if routine in SPECTRAL:
        return LAPACK if size <= MOST_SPECTRAL and is_available(routine, dtypes) else None
    is_vector = routine in (*TRIANGULAR, "lu_solve") and columns == 1
    largest = MOST if is_vector else LARGEST
    is_own = dtypes[0].name in SCALARS and dtypes == dtypes_of(routine, dtypes[0]) and size <= largest
    if is_own and size * (size + columns) <= LANES_MOST and count >= lanes_of(dtypes[0].name):
        return LANES
    if is_own and not (routine in CONDITIONED and size > FEW):
        return SMALL
    return LAPACK if size <= MOST and is_available(routine, dtypes) else None


def cycles_of(family: str, size: int, columns: int) -> float:
    """Return about how long one problem takes."""
    call, cycle = CYCLES[family]
    return call + cycle * size * (size + columns) ** 2


def room_of(family: str, size: int, columns: int) -> int:
    """Return how many elements there must be room for."""
    if family is LAPACK:
        return size * (size + PANEL + COLUMNS) + ROOM
    return size * (2 * size + columns + (SPARE if family is SMALL else SPARE_OF_LANES))


def room_of_spectrum(rows: int, columns: int) -> int:
    """Return how many elements there must be room for: copies, vectors, and what LAPACK works in."""
    least, most = sorted((rows, columns))
    return (
        rows * columns + rows * rows + columns * columns + 7 * least * (least + 1) + 2 * least * most + 80 * most + ROOM
    )


def ranks_of(equation: Equation, places: Sequence[int]) -> list[int]:
    """Return how many axes the problem has in each operand at some places, and result; all others are of the stack."""
    form = form_of(equation.primitive)
    assert isinstance(form, Routine)
    operands, results = cores(form.signature, len(equation.inputs))
    ranks = [*[len(operands[place]) for place in places], *map(len, results)]
    given = [len(aval_of(x).shape) for x in equation.inputs]
    is_vector = len(given) > 1 and ranks[1] == ranks[-1] == 2 and given[1] == 1  # of `numpy.linalg.solve`
    return [2, 1, *ranks[2:-1], 1] if is_vector else ranks


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


def is_dense(x: Variable, rank: int, lies: tuple[int, int, int]) -> bool:
    """Tell whether the elements of a problem lie side by side, row by row or column by column."""
    lengths = [n for n in x.shape[len(x.shape) - rank :] if n != 1]
    steps = [step for n, step in zip(x.shape[len(x.shape) - rank :], lies, strict=False) if n != 1]
    return sorted(steps) == [1, lengths[steps.index(1)]][: len(steps)] if 1 in steps else not steps


def as_variable(x: Any) -> Variable:
    """Return the operand itself if it is a variable, else a variable with the shape and dtype of the literal."""
    return x if type(x) is Variable else Variable.of(aval_of(x), "")
