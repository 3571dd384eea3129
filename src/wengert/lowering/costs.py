"""What graphs take by NumPy, and to compile: estimated from types alone, so that decisions are the same in all runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import aval_of
from wengert.kernel.opcodes import OPCODES
from wengert.passes.inlining import body_of
from wengert.primitives.signals.convolution import Sliding
from wengert.support.machine import MACHINE

AT_ONCE = 8
"""Evaluations up to which a graph is compiled at its first call if they take as long as compiling it."""


def calls_before(graph: Graph) -> int:
    """Return how many calls of a graph NumPy evaluates before it is compiled: as many as take as long as compiling.

    So what is called a few times is never compiled, and nothing takes more than twice as long as what would have been
    better. What takes long is compiled at once.
    """
    count = count_of(graph)
    compiling = MACHINE.compiling[0] + MACHINE.compiling[1] * count
    calls = int(compiling / call_time(graph))
    return calls if calls > AT_ONCE else 0


def call_time(graph: Graph, usual: int = MACHINE.usual_rounds) -> float:
    """Return about how many microseconds NumPy takes for a call of a graph, whose loops have so many rounds."""
    return MACHINE.evaluating[0] + evaluation_time(graph.equations, usual)


def round_times(graph: Graph) -> dict[int, float]:
    """Return the microseconds of a round of each loop of unknown length, by its body, but for such loops inside."""
    times = {}
    for e in graph.equations:
        inner = graphs_run(e)
        for own in inner:
            times.update(round_times(own))
        if isinstance(e.primitive, Structured) and e.primitive.rounds(e.params) is None:
            times[id(e.params["body"])] = sum([evaluation_time(own.equations, 0) for own in inner])
    return times


def count_of(graph: Graph) -> int:
    """Return how many equations a graph has, with those of the graphs that it runs."""
    return len(graph.equations) + sum([count_of(own) for e in graph.equations for own in graphs_run(e)])


def graphs_run(equation: Equation) -> list[Graph]:
    """Return the graphs that an equation runs: those among its parameters, or that of a user's function with rules."""
    if not equation.primitive.structured:
        return []
    inner = [own for _, own in subgraphs(equation.params)]
    called = None if inner else body_of(equation)
    return inner if called is None else [called]


def is_worthwhile(part: Graph) -> bool:
    """Tell whether a part of a graph takes less time natively, as one of several, than if NumPy evaluates it."""
    arrays = (*part.inputs, *part.outputs)
    return evaluation_time(part.equations) > MACHINE.calling + MACHINE.passing * sum(map(size_of, arrays))


def evaluation_time(equations: Iterable[Equation], usual: int = MACHINE.usual_rounds) -> float:
    """Return about how many microseconds NumPy takes for equations; loops of unknown length have so many rounds."""
    return sum([MACHINE.evaluating[1] + time_of(equation, usual) for equation in equations])


def time_of(equation: Equation, usual: int = MACHINE.usual_rounds) -> float:
    """Return about how many microseconds NumPy takes for the elements of an equation, and for the graphs it runs."""
    primitive = equation.primitive
    if graphs := graphs_run(equation):
        rounds = primitive.rounds(equation.params) if isinstance(primitive, Structured) else 1
        return (usual if rounds is None else rounds) * sum([evaluation_time(own.equations, usual) for own in graphs])
    sizes = [size_of(x) for x in (*equation.inputs, *equation.outputs)]
    if primitive.view and len(equation.inputs) == 1:
        return 0.0
    if isinstance(form_of(primitive), Contraction) and len(sizes) == 3:
        return MACHINE.passing * math.sqrt(math.prod(sizes))  # a product of m k and k n elements has m k n terms
    if isinstance(form_of(primitive), Sliding):  # BLAS multiplies windows, some ten times in that time
        kernel = aval_of(equation.inputs[1]).shape[-len(equation.params["stride"]) - 1 :]
        return MACHINE.passing / 10 * sizes[-1] * math.prod(kernel)
    opcode = OPCODES.get(primitive.name)
    cycles = primitive.cost if opcode is None else opcode.cost
    return max(sizes) * (MACHINE.passing + MACHINE.numpy_cycle * cycles)


def size_of(x: Any) -> int:
    """Return how many elements a variable or literal has."""
    return math.prod(aval_of(x).shape)
