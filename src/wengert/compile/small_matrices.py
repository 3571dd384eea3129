"""Routines of small matrices natively, by themselves and in chains: a call of LAPACK takes longer than the work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert.compile.equations import unknown_parameters
from wengert.compile.layouts import array_kind, as_array, as_value, axes_in_kernels
from wengert.compile.programs import address_of
from wengert.core.forms.form import form_of
from wengert.core.forms.routine import Routine, cores
from wengert.core.graph.graph import Equation, Variable
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import UNKNOWN, aval_of
from wengert.native.callee import Callee
from wengert.native.executable import OfArrays
from wengert.native.kinds import ArrayKind
from wengert.native.matrices import MATRICES, SCALARS, SMALL
from wengert.native.processor import LINE
from wengert.primitives import counterparts, linear_algebra, triangular
from wengert.support.cached import cached

if TYPE_CHECKING:
    from wengert.compile.program_steps import Chain

__all__ = ["SmallMatrices", "small_matrices"]

Params = Mapping[str, Any]

LARGEST = 32
"""Rows of matrices up to which a call of LAPACK by NumPy takes longer: systems of 4, 16, 32 and 48 rows take 0.2, 1.0,
3.9 and 10.5 us, by NumPy 4.1, 6.0, 9.5 and 16.4; Cholesky's factor 0.2, 1.5, 4.9 and 14.3, by NumPy 3.6, 4.2, 6.0 and
12.3."""
CYCLE, CALL = 1.5, 100.0
"""Cycles for an element of a row that is subtracted, and for each problem."""


class Call(NamedTuple):
    """Say how a routine is called.

    Attributes:
        routine: what the kernel computes.
        turned: the places of operands and results of which it takes rows as columns.
        fields: further ones of MATRICES.
    """

    routine: str
    turned: Sequence[int] = ()
    fields: Mapping[str, int] = {}


def finite_in(params: Params) -> dict[str, int]:
    """Return the field that says whether operands must be finite, as only SciPy asks."""
    return {"finite": int(params.get("check_finite", False))}


def plain(routine: str) -> Callable[[Params], Call]:
    """Return how a routine without options is called."""
    return lambda params: Call(routine, (), finite_in(params))


def call_of_solve_triangular(params: Params) -> Call:
    """Return how `solve_triangular` is called: rows are columns of the transpose, whose other half is read."""
    transposed, unit = bool(params["trans"]), int(params["unit_diagonal"])
    backward = int(bool(params["lower"]) == transposed)
    fields = {**finite_in(params), "unit": unit, "backward": backward}
    return Call("solve_triangular", (0,) if transposed else (), fields)


def call_of_cho_solve(params: Params) -> Call:
    """Return how `cho_solve` is called, with the lower factor."""
    return Call("cho_solve", (0,) if params["upper"] else (), finite_in(params))


def call_of_cholesky(params: Params) -> Call:
    """Return how `cholesky` is called: the upper factor is the transpose of that of the transpose."""
    return Call("cholesky", (0, 1) if params["upper"] else (), finite_in(params))


def call_of_scipy_solve(params: Params) -> Call | None:
    """Return how SciPy's `solve` is called, which reads one triangle of what is said to be positive definite."""
    structure = params.get("assume_a")
    if structure in ("pos", "positive definite"):
        return Call("solve_positive", () if params.get("lower") else (0,), finite_in(params))
    return Call("solve_conditioned", (), finite_in(params)) if structure in (None, "gen", "general") else None


CALLS: dict[Primitive, tuple[Callable[[Params], Call | None], tuple[str, ...]]] = {
    linear_algebra.solve: (plain("solve"), ()),
    linear_algebra.inv: (plain("inv"), ()),
    linear_algebra.det: (plain("det"), ()),
    linear_algebra.slogdet: (plain("slogdet"), ()),
    triangular.solve_triangular: (call_of_solve_triangular, ("trans", "lower", "unit_diagonal", "check_finite")),
    triangular.cho_solve: (call_of_cho_solve, ("upper", "check_finite")),
    triangular.cholesky: (call_of_cholesky, ("upper",)),
    triangular.scipy_cholesky: (call_of_cholesky, ("upper", "check_finite")),
    counterparts.solve: (call_of_scipy_solve, ("assume_a", "lower", "check_finite")),
    counterparts.inv: (plain("inv_conditioned"), ("check_finite",)),
    counterparts.det: (plain("det"), ("check_finite",)),
}
"""How routines are called, and the parameters that this knows; those with others are NumPy's or SciPy's."""


class SmallMatrices:
    """Run a routine of small matrices natively, as a step of a chain or by itself.

    Args:
        equation: of the routine.
        name: of the kernel.
        fields: MATRICES.
        work: bytes of the room for the elimination.
        cycles: about how long it takes.
    """

    can_join = True

    def __init__(self, equation: Equation, name: str, fields: Mapping[str, int], work: int, cycles: float) -> None:
        self.primitive, self.params, self.outputs = equation.primitive, equation.params, equation.outputs
        self.inputs = list(map(as_variable, equation.inputs))
        self.name, self.fields, self.work, self.cycles = name, fields, work, cycles

    def join(self, chain: Chain, equation: Equation) -> None:
        """Add the routine to a chain."""
        places = [*map(chain.place, equation.inputs, self.inputs), *map(chain.place, equation.outputs, self.outputs)]
        chain.step(self.callee(), [*places, chain.holding(bytes(1))], self.cycles, failing=len(places))

    def callee(self) -> Callee:
        """Return the kernel with what it is to know."""
        start = -(-MATRICES.size // LINE) * LINE
        fields = bytes(MATRICES.ctype(**self.fields, work=start))
        return Callee(address_of(self.name), size=start + self.work, contents=[(0, fields)])

    @cached
    def entry(self) -> OfArrays:
        """The kernel as a function of arrays."""
        made = [*map(array_kind, self.outputs), ArrayKind(np.dtype(bool), ())]
        return OfArrays(self.callee(), list(map(array_kind, self.inputs)), made)

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Return the results."""
        *made, failed = self.entry(*map(as_array, self.inputs, operands))
        if failed:
            found = self.primitive.evaluate(*operands, **self.params)
            return found if len(self.outputs) > 1 else (found,)
        return tuple(map(as_value, self.outputs, made))


def small_matrices(equation: Equation) -> SmallMatrices | None:
    """Return the routine of an equation as a step of a chain; None if it is another, or of large matrices."""
    described, known = CALLS.get(equation.primitive, (None, ()))
    if described is None or unknown_parameters(equation.params, known):
        return None
    if not all(type(x) is Variable for x in equation.outputs):
        return None
    call, arrays = described(equation.params), [*map(as_variable, equation.inputs), *equation.outputs]
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
    is_vector = equation.primitive is linear_algebra.solve and len(aval_of(equation.inputs[1]).shape) == 1
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
