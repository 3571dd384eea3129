"""Operations that run one of several graphs: a call has one, a branch an index that chooses.

Operands of a branch are the index and what every graph receives. Parameter `branches`: graphs of equal inputs and
outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from wengert.control.structured_checks import check_branch
from wengert.control.subgraph_gradients import split_gradient, with_zeros
from wengert.control.subgraphs import (
    batched_graph,
    dependent_outputs,
    fill_inactive,
    find_staged,
    forward_graph,
    in_active_lanes,
    joint_variable,
    keep_places,
    restrict_condition,
    scatter_flagged,
    scatter_parts,
    select,
    select_flagged,
    trace_closed,
)
from wengert.control.zero_sequence import zeros, zeros_like
from wengert.core.forms.view_forms import Region
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.primitives.primitive import register
from wengert.core.primitives.structured import NOTHING_PASSED, Passed, Pullback, Structured, StructuredLowering
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_concrete, is_staged, raw
from wengert.passes.dead_code import narrow_graph, needed_inputs
from wengert.traces.rules.linearity import Moves, NotLinear, join_moves

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
        found = list(in_active_lanes(taken, function, operands))
        result = found if result is None else [select(taken, x, y) for x, y in zip(found, result, strict=True)]
    return list(branches[0](*operands)) if result is None else result  # without lanes none is taken


def pick_lanes(index: Any, size: int, column: Sequence[Any]) -> Any:
    """Return from the results of several branches, batch axes in front, that of the branch each lane takes."""
    result = column[0]
    for i, item in enumerate(column[1:], 1):
        rank = len(aval_of(item).shape)
        result = select((index == i).reshape((size, *(1,) * (rank - 1))), item, result)
    return result


class Alternatives(Structured):
    """Run one of several graphs with equal inputs and outputs.

    Attributes:
        ahead: how many operands come before those that the graphs receive, and say which one runs.
        again: what computes again, of the operands, what the reverse needs; None where that is kept.
    """

    ahead: ClassVar[int]
    again: Alternatives | None = None

    def graphs(self, params: Params) -> Sequence[Graph]:
        """Return the graphs among the parameters."""
        raise NotImplementedError

    def with_graphs(self, params: Params, graphs: Sequence[Graph]) -> Params:
        """Return the parameters with other graphs."""
        raise NotImplementedError

    def gradient_name(self, params: Params) -> str:
        """Return what errors call the gradient."""
        return f"the gradient of {self.name}"

    def reach(self, flags: Flags, params: Params, smooth: bool) -> list[bool]:
        """Return which results depend on the flagged operands in some graph."""
        found = [dependent_outputs(graph, flags[self.ahead :], smooth=smooth) for graph in self.graphs(params)]
        return [any(column) for column in zip(*found, strict=True)]

    def needs(self, used: Flags, params: Params) -> tuple[Flags, Flags] | None:
        """Return which operands some graph needs for the used results."""
        columns = zip(*(needed_inputs(graph, used) for graph in self.graphs(params)), strict=True)
        needed = list(map(any, columns))
        return None if all(used) and all(needed) else ([*[True] * self.ahead, *needed], used)

    def trim(self, operands: Flags, results: Flags, params: Params) -> Params:
        """Return the graphs of needed operands and results alone."""
        return self.with_graphs(
            params, [narrow_graph(graph, operands[self.ahead :], results) for graph in self.graphs(params)]
        )

    def following(self, moves: Sequence[Moves], params: Params, followed: Callable[..., list[Moves]]) -> list[Moves]:
        """Follow through every graph."""
        columns = zip(*(followed(graph, moves[self.ahead :]) for graph in self.graphs(params)), strict=True)
        return [reduce(join_moves, column) for column in columns]

    def push(
        self, values: Sequence[Any], parts: Sequence[Any], params: Params, order: int | None, passed: Passed
    ) -> Any:
        """Run graphs of values and what moves with them."""
        flags = [part is not None for part in parts]
        results = self.reach(flags, params, True)
        pushed = [forward_graph(graph, flags[self.ahead :], results, order, passed) for graph in self.graphs(params)]
        graphs = [graph for graph, _ in pushed]
        found = apply(self, *values, *chain(*select_flagged(parts, flags)), **self.with_graphs(params, graphs))
        moved = scatter_parts(found[len(results) :], results, order)
        masked, steep = (any(getattr(ends, name) for _, ends in pushed) for name in ("masked", "steep"))
        return found[: len(results)], moved, Passed(masked, steep)

    def lanes(self, size: int, values: Sequence[Any], batched: Flags, params: Params) -> Any:
        """Run graphs for all lanes at once."""
        results, graphs = self.reach(batched, params, False), self.graphs(params)
        wide = [
            batched_graph(
                lambda *xs, graph=graph: evaluate(graph, xs), size, graphs[0].inputs, batched[self.ahead :], results
            )
            for graph in graphs
        ]
        return apply(self, *values, **self.with_graphs(params, wide)), results

    def linearize(self, values: Sequence[Any], wanted: Flags, params: Params, passed: Passed = NOTHING_PASSED) -> Any:
        """Run the forward half of a graph; the pullback runs its backward half."""
        results, graphs, ahead = self.reach(wanted, params, True), self.graphs(params), self.ahead
        inputs, outs = graphs[0].inputs, [aval_of(x) for x in graphs[0].outputs]
        fixed = [self.again is not None] * len(inputs)
        name, masked, steep = self.gradient_name(params), passed.masked, passed.steep
        cuts = [
            split_gradient(x, wanted[ahead:], results, name=name, fixed=fixed, masked=masked, steep=steep)
            for x in graphs
        ]
        slots, places = shared_slots([item.residuals for item in cuts])
        forward = [item.forward for item in cuts]
        if len(cuts) > 1:
            pairs = zip(forward, places, strict=True)
            forward = [forward_half(half, inputs, len(outs), slots, place) for half, place in pairs]
        same = passed.made is not None and passed.made[0] == forward
        found = passed.made[1] if same else apply(self, *values, **self.with_graphs(params, forward))
        near, cts_avals = find_staged(values), [a.firm for a in select_flagged(outs, results)]
        read = list(dict.fromkeys(i for item in cuts for i in item.read))

        def pull(cts: Any, behind_mask: bool) -> Sequence[Any]:
            if behind_mask and not masked:
                pullback: Pullback = self.linearize(values, wanted, params, made._replace(masked=True))[2]
                return pullback.send_back(cts, True)
            given = with_zeros(select_flagged(cts, results), cts_avals, near)
            examples = [*(inputs[i] for i in read), *slots, *cts_avals]
            halves = [item.backward for item in cuts]
            if len(cuts) > 1:
                pairs = zip(halves, cuts, places, strict=True)
                halves = [
                    backward_half(half, item.read, place, examples, read, len(slots)) for half, item, place in pairs
                ]
            operands = [values[ahead + i] for i in read]
            pulled = apply(
                self.again or self,
                *values[:ahead],
                *operands,
                *found[len(outs) :],
                *given,
                **self.with_graphs(params, halves),
            )
            return [*[None] * ahead, *keep_places(scatter_flagged(pulled, wanted[ahead:]), reached)]

        reached = frozenset[int]().union(*(item.reached for item in cuts))
        masks = any(item.masks or item.reached != reached for item in cuts)
        needed = select_flagged(range(len(outs)), results)
        made = passed._replace(made=(forward, found))
        pullback = Pullback(
            self.name,
            len(outs),
            pull,
            masks=masks,
            steep=any(item.steep for item in cuts),
            again=lambda: self.linearize(values, wanted, params, made._replace(steep=True))[2],
            needed=needed,
        )
        return found[: len(outs)], results, pullback


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


def forward_half(
    half: Graph, inputs: Sequence[Any], results: int, slots: Sequence[Aval], places: Sequence[int]
) -> Graph:
    """Return the forward half of one of several graphs with its residuals in their slots, and zeros in the others."""

    def run(*xs: Any) -> list[Any]:
        found = evaluate(half, xs)
        filling = dict(zip(places, found[results:], strict=True))
        rest = [filling[i] if i in filling else zeros(aval, xs[0]) for i, aval in enumerate(slots)]
        return [*found[:results], *rest]

    return trace_closed(run, inputs, "cond")


def backward_half(
    half: Graph, own: Sequence[int], places: Sequence[int], inputs: Sequence[Any], read: Sequence[int], slots: int
) -> Graph:
    """Return the backward half of one of several graphs as a graph of what all of them read, slots and cotangents.

    Args:
        half: a graph of (what it reads, its residuals, cotangents).
        own: the positions of the operands that it reads.
        places: where its residuals are among the slots.
        inputs: examples of the inputs of the new graph.
        read: the positions of the operands that any of the graphs reads.
        slots: how many slots there are.
    """
    first = len(read)

    def run(*xs: Any) -> Sequence[Any]:
        operands = dict(zip(read, xs, strict=False))
        return evaluate(half, [*(operands[i] for i in own), *(xs[first + i] for i in places), *xs[first + slots :]])

    return trace_closed(run, inputs, "cond")


class Branch(Alternatives):
    """Choose between graphs by an index."""

    ahead = 1

    def __init__(self) -> None:
        super().__init__("cond", self.choose, form=Region(self.results), whole_bits=62)

    def check(self, inputs: Sequence[Any], params: Params) -> None:
        """Check that every branch receives the operands after the index, and that all give the same."""
        check_branch(inputs, params)

    def choose(self, index: Any, *operands: Any, branches: Sequence[Graph]) -> tuple[Any, ...]:
        """Run the chosen branch on values that have elements."""
        if is_concrete(index):
            return evaluate(branches[int(raw(index))], operands)
        functions = [lambda *xs, graph=graph: evaluate(graph, xs) for graph in branches]
        return tuple(choose_lanes(functions, index, operands))

    def graphs(self, params: Params) -> Sequence[Graph]:
        """Return the branches."""
        return params["branches"]  # type: ignore[no-any-return]  # as declared

    def with_graphs(self, params: Params, graphs: Sequence[Graph]) -> Params:
        """Return other branches as parameters."""
        return {**params, "branches": tuple(graphs)}

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as graphs of which one is chosen."""
        return lowering.branch(params["branches"])

    def results(self, _inputs: Sequence[Any], params: Params) -> list[Variable]:
        """Return variables like the results, which lie in memory as one of the branches leaves them."""
        columns = zip(*(graph.outputs for graph in params["branches"]), strict=True)
        return [joint_variable(column) for column in columns]

    def reach(self, flags: Flags, params: Params, smooth: bool) -> list[bool]:
        """Return which results depend on the flagged operands in some branch, or on the index."""
        reached = super().reach(flags, params, smooth)
        if smooth or not flags[0]:
            return reached
        # of a sequence there is only one that is not zeros, so nothing has to be selected
        outputs = params["branches"][0].outputs
        return [r or UNKNOWN not in aval_of(x).shape for r, x in zip(reached, outputs, strict=True)]

    def following(self, moves: Sequence[Moves], params: Params, followed: Callable[..., list[Moves]]) -> list[Moves]:
        """Follow through every branch; the index must be the same whatever moves."""
        if moves[0] is Moves.LINEAR:
            raise NotLinear
        return super().following(moves, params, followed)

    def lanes(self, size: int, values: Sequence[Any], batched: Flags, params: Params) -> Any:
        """Choose for all lanes at once; where the index differs between them, run every branch and select."""
        if not batched[0]:
            return super().lanes(size, values, batched, params)
        results = self.reach(batched, params, False)
        return self.selected_lanes(size, values, batched, results, params["branches"]), results

    def selected_lanes(
        self, size: int, values: Sequence[Any], batched: Flags, results: Flags, graphs: Sequence[Graph]
    ) -> Sequence[Any]:
        """Run every branch that some lane takes, for all lanes, and select."""
        index = values[0]
        inputs = [Aval((), aval_of(index).dtype), *graphs[0].inputs]
        found: list[Any] = []
        for i, graph in enumerate(graphs):
            taken = batched_graph(
                lambda k, *xs, i=i, graph=graph: evaluate(graph, [fill_inactive(x, k == i) for x in xs]),
                size,
                inputs,
                batched,
                results,
            )
            nothing = trace_closed(
                lambda *xs, taken=taken: [zeros_like(x, xs[0]) for x in taken.outputs],
                [v.aval for v in taken.inputs],
                self.name,
            )
            found.append(apply(self, np.any(index == i), *values, branches=(nothing, taken)))
        return [pick_lanes(index, size, column) for column in zip(*found, strict=True)]


branch = Branch()
register(branch)
