"""Iterations of loops as graphs: the body, followed by the condition on what it gives.

What an iteration writes is what the next one reads, so carried values change places with those before them, and
sequences are read and written row by row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.memory.memory_layout import strides_of_stack
from wengert.core.values.aval import Aval
from wengert.lowering.aligned_rows import matrices_in_longer_rows
from wengert.passes.equations import distinct_variables
from wengert.passes.inlining import splice
from wengert.passes.output_aliasing import axes_in_kernels, reading_in_c_order, with_own_results
from wengert.passes.pipeline import flatten_calls

Params = Mapping[str, Any]

MOST_ROUNDS = 1 << 62
"""Iterations of a loop at most, of which nobody knows how many there are."""


class LoopIteration:
    """Be an iteration of a loop as a graph.

    Args:
        params: of the loop.
        graph: without results that are known or occur twice.
        outputs: all results: those of the body, and whether to go on.

    Attributes:
        inputs: what it reads: constants, carried values, rows.
        carried, left: what it hands to the next one, and what it leaves behind: variables, or known values.
        going: whether to go on: a variable, or a truth.
    """

    def __init__(self, params: Params, graph: Graph, outputs: Sequence[Any]) -> None:
        self.params, self.spec, self.graph = params, params["spec"], graph
        self.inputs, total = graph.inputs, len(params["body"].outputs)
        self.carried, self.left = list(outputs[: self.spec.carried]), list(outputs[self.spec.carried : total])
        self.going = outputs[-1] if len(outputs) > total else True

    @property
    def lent(self) -> dict[Variable, Variable]:
        """What it hands on alone, and what that was, whose memory it may have: nobody needs what was handed on."""
        inputs = self.inputs[self.spec.constants : self.spec.constants + self.spec.carried]
        kept = {x for x in (*self.left, self.going) if type(x) is Variable}
        counts = Counter([x for x in self.carried if type(x) is Variable])
        pairs = zip(self.carried, inputs, strict=True)
        return {x: v for x, v in pairs if type(x) is Variable and x not in kept and counts[x] == 1}

    @property
    def is_once(self) -> bool:
        """Whether it is known that there is one iteration if there are any."""
        return type(self.going) is not Variable and not self.going


def iteration_of(params: Params) -> LoopIteration | None:
    """Return an iteration of a loop as a graph of distinct results; None if kernels cannot hand on what they write.

    Rows of which nobody knows how many there are lie in C order, whatever loop leaves and whatever loop reads them.
    """
    spec, body, cond = params["spec"], params["body"], params["cond"]
    inputs, equations, outputs = list(body.inputs), list[Equation](), body.outputs
    has_length = spec.length is not None
    for i in range(len(inputs) if has_length else spec.constants + spec.carried, len(inputs)):
        if axes_in_kernels(inputs[i]) != tuple(range(len(inputs[i].shape))):
            equations += reading_in_c_order(inputs[i])
            inputs[i] = equations[-3].inputs[0]
    for i, part in matrices_in_longer_rows(body, spec) if cond is None else ():
        equations.append(part)
        inputs[i] = part.inputs[0]
    equations += body.equations
    if cond is not None:
        given = (*body.inputs[: spec.constants], *body.outputs[: spec.carried])
        outputs = (*outputs, *splice(cond, given, equations))
    rows = range(spec.carried, spec.carried if has_length else len(body.outputs))
    graph = with_own_results(flatten_calls(Graph(inputs, equations, outputs)), rows)
    outputs = graph.outputs
    rows_of_loop = [*graph.inputs[spec.constants + spec.carried :], *outputs[spec.carried : len(body.outputs)]]
    if any(type(x) is not Variable for x in rows_of_loop):
        return None
    carried = zip(graph.inputs[spec.constants :], outputs[: spec.carried], strict=False)
    if any(type(x) is Variable and axes_in_kernels(x) != axes_in_kernels(v) for v, x in carried):
        return None  # what is written is read next: it would have to be put in another order
    distinct = distinct_variables(outputs)
    return LoopIteration(params, Graph(graph.inputs, graph.equations, distinct), outputs) if distinct else None


def behind(axes: Sequence[int]) -> list[int]:
    """Return the axes of a sequence of arrays that have their axes in some order."""
    return [0, *[axis + 1 for axis in axes]]


def sequence_of(variable: Variable, length: int) -> Variable:
    """Return a variable for a sequence of so many arrays, each of which is like another variable."""
    shape = length, *variable.shape
    return Variable.of(
        Aval(shape, variable.dtype), "", strides_of_stack(shape, variable.strides, variable.dtype.itemsize)
    )
