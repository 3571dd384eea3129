"""Writes as steps of programs: they change memory in place, whereas kernels make all of what they give anew.

A result may have the memory of an operand that nothing reads any more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.memory.memory_layout import lie_alike
from wengert.core.values.aval import aval_of
from wengert.kernel.kernel import Program
from wengert.lowering.kernel_stages import program_of
from wengert.lowering.nodes import Bounds, Nodes
from wengert.lowering.rules.complexes import is_complex
from wengert.lowering.rules.joins import MOST_BOXES, write_in_place
from wengert.lowering.rules.lower import UNBOUNDED, Lowered, Lowering, reason_refused
from wengert.lowering.rules.operands import Refused
from wengert.passes.equations import Change, Changes, distinct_variables, variables
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.primitives.indexing.parts import assign, getitem
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

SAVED = 4
"""Elements of an array, at least, that a cycle of a write has to save from being copied."""


class WriteStep(NamedTuple):
    """Hold a write that a step can be.

    Attributes:
        program: of kernels; the first of its inputs is what it changes.
        inputs: the variables that are its inputs.
    """

    program: Program
    inputs: tuple[Variable, ...]


def write_step(
    equation: Equation, bounds: Mapping[Variable, Bounds] = UNBOUNDED, *, is_small: bool = False
) -> WriteStep | None:
    """Return an equation as a write in place; None if it is none, or if native code cannot write so.

    Args:
        equation: any.
        bounds: of variables whose least and greatest whole numbers are known, these.
        is_small: whether it must write so little of an array that to copy the array would take longer than a step.
    """
    avals = list(map(aval_of, equation.inputs))
    if equation.primitive is not assign or reason_refused(equation, avals) is not None:
        return None
    inputs = tuple(distinct_variables(equation.inputs))
    base: Any = equation.inputs[0]
    if type(base) is not Variable or inputs.index(base) or any(is_complex(v.aval) for v in inputs):
        return None
    lowering = Lowering(Graph(inputs, (), ()), Nodes(), bounds)
    lowering.give_inputs()
    values = list(map(lowering.value, equation.inputs))
    found = write_in_place(lowering.call(equation, values, avals), axes_in_kernels(base))
    if isinstance(found, Refused):
        return None
    access, extents, window = found
    size, part = math.prod(base.shape), math.prod(access.node.space if access.node.kind == "scatter" else extents)
    if is_small and size - SAVED * part <= SAVED * MACHINE.routine:
        return None
    outputs = ((access, extents), *lowering.outside())
    buffers = tuple(map(lowering.buffer, inputs))
    return WriteStep(program_of(Lowered(lowering.nodes, buffers, outputs, {}), window), inputs)


def last_readers(equations: Sequence[Equation], outputs: Sequence[Any]) -> dict[Equation, list[Change]]:
    """Return the equations that change arrays which no equation after them reads, and these, in order.

    A view that is read later must be a copy then, made before.
    """
    last: dict[Variable, int] = {}
    for i, values in enumerate((*[equation.inputs for equation in equations], outputs)):
        last.update(dict.fromkeys([x for x in values if type(x) is Variable], i))
    found = {}
    for i, equation in enumerate(equations):
        own = [(x, v) for x, v in changed_by(equation) if last[x] == i and sum(y is x for y in equation.inputs) == 1]
        if own:
            found[equation] = own
    return found


def changed_by(equation: Equation) -> Iterator[Change]:
    """Iterate over the operands that an equation changes in place, if it may, and what they are then."""
    for operand, result in equation.primitive.changes(equation.params):
        x, v = equation.inputs[operand], equation.outputs[result]
        if type(x) is Variable and x.shape and x.dtype == v.dtype and lie_alike(x.shape, x.strides, v.strides):
            yield x, v


def first_of(before: Mapping[Variable, Variable], v: Variable) -> Variable:
    """Return what a variable was before all changes."""
    while v in before:
        v = before[v]
    return v


def writes_in_place(
    graph: Graph,
    readers: Changes,
    lent: Mapping[Variable, Variable],
    parts: Mapping[Variable, Variable],
    bounds: Mapping[Variable, Bounds],
) -> dict[Equation, WriteStep]:
    """Return the writes, and their steps, for which it pays to change memory: of little, into what is in memory.

    That is what is lent, what products are added to parts of (`parts`, by what it is then), and what more of them write
    to, one after the other, than a kernel chooses from at once, those counted again that others read between writes.
    """
    steps = [(equation, write_step(equation, bounds, is_small=True)) for equation in readers]
    found = {equation: step for equation, step in steps if step is not None}
    written = {v: (x, equation) for equation in found for x, v in readers[equation]}
    before = {**{v: x for v, (x, _) in written.items()}, **parts}
    first = {v: first_of(before, v) for v in before}
    counts = Counter(first.values())
    later, depths = {x for x, _ in written.values()}, dict[Variable, int]()
    for v, (x, _) in written.items():
        depths[v] = depths.get(x, 0) + 1
    for equation in graph.equations:
        if equation not in found and equation.primitive is not getitem:
            counts.update({first[x]: depths[x] for x in variables(equation.inputs) if x in later and x in depths})
    own = {first[v] for v in graph.outputs if type(v) is Variable and v in first and first[v] is lent.get(v)}
    own.update([first[v] for v in parts])
    return {e: found[e] for v, (_, e) in written.items() if counts[first[v]] > MOST_BOXES or first[v] in own}
