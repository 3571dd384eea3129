"""Parts of a graph: native ones and those of NumPy in turns.

Each equation runs as early as what it needs allows, so that there are as few cuts as possible, however the two kinds of
equations are mixed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, must_run, subgraphs
from wengert.passes.equations import Changes, distinct_variables, may_be_step, variables
from wengert.primitives.indexing.parts import assign, getitem

INDEXING = frozenset((getitem, assign))
"""What native code does and fails at for some elements."""


def parts_of(
    graph: Graph, refused: Collection[int], kept: Sequence[Variable], alone: Collection[Equation], changes: Changes
) -> Iterator[tuple[list[int], Graph, tuple[Variable, ...]]]:
    """Iterate over the parts of a graph, native ones and those of NumPy in turns.

    Args:
        graph: the graph.
        refused: the places of the equations that are NumPy's.
        kept: the variables that are read in the end.
        alone: equations that are parts by themselves.
        changes: what equations change in place, after all who read it.

    Yields:
        the places of the equations, the part, and the variables that nothing reads after it.
    """
    turns = turns_of(graph, refused, alone, changes)
    members: dict[tuple[int, int], list[int]] = {turn: [] for turn in sorted(set(turns))}
    needed: dict[Variable, int] = dict.fromkeys(kept, len(members))
    numbers = {turn: place for place, turn in enumerate(members)}
    for i, (turn, equation) in enumerate(zip(turns, graph.equations, strict=True)):
        members[turn].append(i)
        for x in distinct_variables(equation.inputs):
            needed[x] = max(needed.get(x, 0), numbers[turn])
    for place, places in enumerate(members.values()):
        equations = [graph.equations[i] for i in places]
        part = subgraph(equations, {v for e in equations for v in e.outputs if needed.get(v, -1) > place})
        yield places, part, tuple([v for v in part.inputs if needed[v] == place])


def turns_of(
    graph: Graph, refused: Collection[int], alone: Collection[Equation], changes: Changes
) -> list[tuple[int, int]]:
    """Return for each equation the numbers of its segment: first even for native ones, odd for others.

    What might fail, or never end, does not run before a check that stands before it.
    """
    turns: list[tuple[int, int]] = []
    known: dict[Variable, int] = {}
    read: dict[Variable, int] = {}
    checked, numbers, ended = -1, dict[int, int](), set[int]()
    for i, equation in enumerate(graph.equations):
        is_alone = equation in alone
        own = int(is_alone or i in refused)
        needs = [known[x] for x in equation.inputs if type(x) is Variable and x in known]
        needs += [read[x] for x, _ in changes.get(equation, ()) if x in read]
        turn = max([need + (need % 2 != own) for need in needs], default=-own)
        if own or may_fail(equation):
            turn = max(turn, checked + (checked % 2 != own))
        if must_run(equation):
            checked = max(checked, turn)
        if is_alone or turn in ended:
            numbers[turn] = numbers.get(turn, 0) + 1
            (ended.add if is_alone else ended.discard)(turn)
        turns.append((turn, numbers.get(turn, 0)))
        known.update(dict.fromkeys(equation.outputs, turn))
        for x in variables(equation.inputs):
            read[x] = max(read.get(x, turn), turn)
    return turns


def may_fail(equation: Equation) -> bool:
    """Tell whether native code may fail at an equation, or run for ever, or at one in the graphs that it runs."""
    return (
        equation.primitive in INDEXING
        or may_be_step(equation)
        or any(may_fail(inner) for _, graph in subgraphs(equation.params) for inner in graph.equations)
    )


def subgraph(equations: Sequence[Equation], later: set[Variable]) -> Graph:
    """Return a graph of some equations, from what they read to what is read later."""
    own = {v for equation in equations for v in equation.outputs}
    read = [v for v in distinct_variables(x for equation in equations for x in equation.inputs) if v not in own]
    return Graph(read, equations, [v for equation in equations for v in equation.outputs if v in later])
