"""The branch primitive: run the graph that an index chooses.

Operands are the index and what every branch receives. Parameter `branches`: graphs of equal inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np

from wengert.compile.dead_code import narrowed, needed_inputs
from wengert.control.sequence import zeros
from wengert.control.subgraphs import (
    GuardedHalves,
    batched_graph,
    dependent_outputs,
    fill_inactive,
    find_staged,
    forward_graph,
    joint_variable,
    keep_places,
    restrict_condition,
    restrict_lanes,
    scatter_flagged,
    scatter_parts,
    select,
    select_flagged,
    split_gradient,
    trace_closed,
    with_zeros,
)
from wengert.core.forms.form import Region
from wengert.core.graph.graph import Graph, Variable, evaluate
from wengert.core.primitives.primitive import Pullback, Structured, StructuredLowering, register
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_concrete, is_staged, raw
from wengert.traces.linearity import Moves, NotLinear, joined

__all__ = ["Branch", "branch", "choose_lanes"]

Params = Mapping[str, Any]
Flags = Sequence[bool]


def choose_lanes(branches: Sequence[Any], index: Any, operands: Sequence[Any]) -> list[Any]:
    """Run every branch that some lane takes, and select.

    Args:
        branches: functions of the operands that return sequences of equal length.
        index: which one, in each lane.
        operands: what they receive.
    """
    result: list[Any] | None = None
    for i, function in enumerate(branches):
        taken = restrict_condition(index == i)
        if not is_staged(taken) and not np.any(raw(taken)):
            continue
        with restrict_lanes(taken):
            found = list(function(*(fill_inactive(x, taken) for x in operands)))
        result = found if result is None else [select(taken, x, y) for x, y in zip(found, result, strict=True)]
    return list(branches[0](*operands)) if result is None else result  # without lanes none is taken


def pick_lanes(index: Any, size: int, column: Sequence[Any]) -> Any:
    """Return from the results of several branches, batch axes in front, that of the branch each lane takes."""
    result = column[0]
    for i, item in enumerate(column[1:], 1):
        rank = len(aval_of(item).shape)
        result = select((index == i).reshape((size, *(1,) * (rank - 1))), item, result)
    return result


class Branch(Structured):
    """Choose between graphs."""

    def __init__(self) -> None:
        super().__init__("cond", self.choose, form=Region(self.results), whole_bits=62)

    def choose(self, index: Any, *operands: Any, branches: Sequence[Graph]) -> tuple[Any, ...]:
        """Run the chosen branch on values that have elements."""
        if is_concrete(index):
            return evaluate(branches[int(raw(index))], operands)
        functions = [lambda *xs, graph=graph: evaluate(graph, xs) for graph in branches]
        return tuple(choose_lanes(functions, index, operands))

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as graphs of which one is chosen."""
        return lowering.branch(params["branches"])

    def results(self, _inputs: Sequence[Any], params: Params) -> list[Variable]:
        """Return what is as the results are, which lie in memory as one of the branches leaves them."""
        columns = zip(*(graph.outputs for graph in params["branches"]), strict=True)
        return [joint_variable(column) for column in columns]

    def reach(self, flags: Flags, params: Params, smooth: bool) -> list[bool]:
        """Return which results depend on the flagged operands in some branch."""
        graphs = params["branches"]
        found = [dependent_outputs(graph, flags[1:], smooth=smooth) for graph in graphs]
        reached = [any(column) for column in zip(*found, strict=True)]
        if smooth or not flags[0]:
            return reached
        # of a sequence there is only one that is not zeros, so nothing has to be selected
        return [r or UNKNOWN not in aval_of(x).shape for r, x in zip(reached, graphs[0].outputs, strict=True)]

    def trimmed(self, used: Flags, params: Params) -> tuple[Flags, Flags, Params] | None:
        """Return which operands some branch needs for the used results, and the branches of these alone."""
        needed = [any(column) for column in zip(*(needed_inputs(g, used) for g in params["branches"]), strict=True)]
        if all(used) and all(needed):
            return None
        branches = tuple(narrowed(graph, needed, used) for graph in params["branches"])
        return [True, *needed], used, {**params, "branches": branches}

    def following(self, moves: Sequence[Moves], params: Params, followed: Callable[..., list[Moves]]) -> list[Moves]:
        """Follow through every branch; the index must be the same whatever moves."""
        if moves[0] is Moves.LINEAR:
            raise NotLinear
        columns = zip(*(followed(graph, moves[1:]) for graph in params["branches"]), strict=True)
        return [reduce(joined, column) for column in columns]

    def moved(self, values: Sequence[Any], parts: Sequence[Any], params: Params, order: int | None) -> Any:
        """Let branches return values and tangents."""
        flags = [part is not None for part in parts]
        results = self.reach(flags, params, True)
        branches = tuple(forward_graph(graph, flags[1:], results, order) for graph in params["branches"])
        found = apply(self, *values, *chain(*select_flagged(parts, flags)), branches=branches)
        return found[: len(results)], scatter_parts(found[len(results) :], results, order)

    def lanes(self, size: int, values: Sequence[Any], batched: Flags, params: Params) -> Any:
        """Choose for all lanes at once; where the index differs between them, run every branch and select."""
        results = self.reach(batched, params, False)
        inputs = params["branches"][0].inputs
        functions = [lambda *xs, graph=graph: evaluate(graph, xs) for graph in params["branches"]]
        if not batched[0]:
            branches = tuple(batched_graph(f, size, inputs, batched[1:], results) for f in functions)
            return apply(self, *values, branches=branches), results
        return self.selected_lanes(size, values, batched, results, functions, inputs), results

    def selected_lanes(
        self,
        size: int,
        values: Sequence[Any],
        batched: Flags,
        results: Flags,
        functions: Sequence[Callable[..., Sequence[Any]]],
        inputs: Sequence[Variable],
    ) -> Sequence[Any]:
        """Run every branch that some lane takes, for all lanes, and select."""
        index_aval = Aval((), aval_of(values[0]).dtype)
        found: list[Any] = []
        for i, function in enumerate(functions):
            taken = batched_graph(
                lambda index, *xs, i=i, function=function: function(*(fill_inactive(x, index == i) for x in xs)),
                size,
                [index_aval, *inputs],
                batched,
                results,
            )
            nothing = trace_closed(
                lambda *xs, taken=taken: [zeros(aval_of(x), xs[0]) for x in taken.outputs],
                [v.aval for v in taken.inputs],
                self.name,
            )
            needed = np.any(values[0] == i)
            found.append(apply(self, needed, *values, branches=(nothing, taken)))
        index = values[0]
        return [pick_lanes(index, size, column) for column in zip(*found, strict=True)]

    def linearized(self, values: Sequence[Any], wanted: Flags, params: Params) -> Any:
        """Run the forward half of the chosen branch; the pullback runs its backward half."""
        results = self.reach(wanted, params, True)
        graphs = params["branches"]
        steady, nothing = [True] * len(values[1:]), [False] * len(values[1:])
        cuts = [
            split_gradient(
                graph,
                wanted[1:],
                results,
                at_hand=steady,
                fixed=nothing,
                summed=nothing,
                name=f"the gradient of {self.name}",
            )
            for graph in graphs
        ]
        slots, places = shared_slots([item.residuals for item in cuts])
        inputs = graphs[0].inputs
        outs = [aval_of(x) for x in graphs[0].outputs]
        index, operands = values[0], list(values[1:])
        found = apply(
            self,
            *values,
            branches=tuple(
                forward_branch(item, inputs, len(outs), slots, place) for item, place in zip(cuts, places, strict=True)
            ),
        )
        residuals = found[len(outs) :]
        near = find_staged(values)
        cts_avals = [a.firm for a in select_flagged(outs, results)]

        def pull(cts: Any, masked: bool) -> list[Any]:
            given = with_zeros(select_flagged(cts, results), cts_avals, near)
            examples = [*inputs, *slots, *cts_avals]
            branches = tuple(
                backward_branch(item, masked, examples, len(inputs), len(slots), place)
                for item, place in zip(cuts, places, strict=True)
            )
            pulled = apply(self, index, *operands, *residuals, *given, branches=branches)
            return [None, *keep_places(scatter_flagged(pulled, wanted[1:]), reached)]

        reached = frozenset[int]().union(*(item.reached for item in cuts))
        masks = any(item.masks or item.reached != reached for item in cuts)
        needed = select_flagged(range(len(outs)), results)
        return found[: len(outs)], results, Pullback(self.name, len(outs), pull, masks, needed)


def shared_slots(residuals: Sequence[Sequence[Aval]]) -> tuple[list[Aval], list[list[int]]]:
    """Return slots that the residuals of any one branch fit into, and the places of each branch's among them.

    Sequences have slots of their own, so that zeros are all that other branches put there.
    """
    slots: list[Aval] = []
    places = []
    for avals in residuals:
        free = list(range(len(slots)))
        mine = []
        for aval in avals:
            slot = next((i for i in free if slots[i] == aval and UNKNOWN not in aval.shape), None)
            if slot is None:
                slot = len(slots)
                slots.append(aval)
            else:
                free.remove(slot)
            mine.append(slot)
        places.append(mine)
    return slots, places


def forward_branch(
    cuts: GuardedHalves, inputs: Sequence[Any], results: int, slots: Sequence[Aval], places: Sequence[int]
) -> Graph:
    """Return the forward half of a branch with its residuals in their slots, and zeros in the others."""

    def run(*xs: Any) -> list[Any]:
        found = evaluate(cuts.forward, xs)
        filling = dict(zip(places, found[results:], strict=True))
        rest = [filling[i] if i in filling else zeros(aval, xs[0]) for i, aval in enumerate(slots)]
        return [*found[:results], *rest]

    return trace_closed(run, inputs, "cond")


def backward_branch(
    cuts: GuardedHalves, masked: bool, inputs: Sequence[Any], operands: int, slots: int, places: Sequence[int]
) -> Graph:
    """Return the backward half of a branch as a graph of all operands, slots and cotangents."""

    def run(*xs: Any) -> Sequence[Any]:
        residuals = xs[operands : operands + slots]
        given = [*(xs[i] for i in cuts.read), *(residuals[i] for i in places), *xs[operands + slots :]]
        return evaluate(cuts.guarded if masked else cuts.backward, given)

    return trace_closed(run, inputs, "cond")


branch = Branch()
register(branch)
