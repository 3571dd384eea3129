"""The loop primitives: `while_loop` and `scan`, which share everything but what ends them.

Operands are [count,] constants, carried values, sequences; results are the carried values after the last iteration
and sequences of what each iteration left behind. Parameters:

* body: the graph from (constants, carried values, one element of each sequence) to (carried values, what is left).
* cond: the graph from (constants, carried values) to whether to go on; None for `scan`.
* spec: how many constants and carried values there are, and how the iterations follow each other (`LoopSpec`).

Reverse mode of a loop is a loop: the forward one leaves the residuals of its body's forward half behind and counts
its iterations, the backward one reads them from the end, carries the cotangents of carried values and adds up those of
constants. Both are ordinary loops, so second order needs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from operator import and_, gt
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import apart
from wengert.control.loop_segments import COUNTER, SegmentedLoop
from wengert.control.loop_snapshots import reversal_of
from wengert.control.structured_checks import check_loop
from wengert.control.subgraph_gradients import (
    SweptHalves,
    backward_body,
    split_gradient,
    with_forward_half,
    with_zeros,
)
from wengert.control.subgraphs import (
    batched_graph,
    dependent_outputs,
    find_staged,
    forward_graph,
    in_active_lanes,
    interleave,
    joint_variable,
    keep_places,
    restrict_condition,
    scatter_flagged,
    scatter_parts,
    select,
    select_flagged,
)
from wengert.control.zero_sequence import RowCollector, zeros
from wengert.core.forms.view_forms import Region
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.loop_spec import Parts, is_counted, parts, sequence_aval
from wengert.core.memory.memory_layout import Joined, arranged_as, strides_of, strides_of_stack
from wengert.core.primitives.primitive import register
from wengert.core.primitives.structured import NOTHING_PASSED, Passed, Pullback, Structured, StructuredLowering
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.execution_state import ACTIVE, COUNTING
from wengert.core.values.recording import budget_for_each, share_of_budget
from wengert.core.values.tensor import is_concrete, is_staged, raw
from wengert.passes.dead_code import narrow_graph, needed_inputs
from wengert.passes.equations import with_extra_inputs
from wengert.traces.rules.calls import lane_number
from wengert.traces.rules.linearity import Moves, NotLinear, join_moves
from wengert.traces.steepness import may_be_infinite

Params = Mapping[str, Any]
Flags = Sequence[bool]


def step_lanes(
    step: Callable[[Sequence[Any]], Sequence[Any]], active: Any, inner: Sequence[Any], carried: slice
) -> list[Any]:
    """Take a step in the active lanes alone: others keep what they carry."""
    if not is_staged(active) and np.all(raw(active)):
        return list(step(inner))
    found = list(in_active_lanes(active, lambda *inner: step(inner), inner))
    for i, old in enumerate(inner[carried]):
        merged = select(active, found[i], old)
        found[i] = merged if type(strides_of(merged)) is Joined else arranged_as(merged, found[i])
    return found


class LoopPrimitive(Structured):
    """Repeat a graph."""

    repeats = True

    def __init__(self, name: str) -> None:
        super().__init__(name, self.repeat, form=Region(self.results))

    def check(self, inputs: Sequence[Any], params: Params) -> None:
        """Check that body and condition fit the operands, and that the body gives what it receives."""
        check_loop(inputs, params)

    # Evaluation

    def repeat(self, *operands: Any, **params: Any) -> tuple[Any, ...]:
        """Run the loop on values that have elements."""
        given = parts(operands, params)
        spec = params["spec"]
        left = [RowCollector(aval_of(x), spec.length, spec.reverse) for x in params["body"].outputs[spec.carried :]]
        run = self.iterate if params["cond"] is None else self.iterate_while
        carried = run(given, params, left)
        return (*apart(carried, operands), *[rows.stack_rows() for rows in left])

    def iterate_while(self, given: Parts, params: Params, left: list[RowCollector]) -> list[Any]:
        """Repeat while the condition holds in some lane; return what is carried at the end."""
        carried = given.carried
        for position in count():
            active = restrict_condition(evaluate(params["cond"], [*given.constants, *carried])[0])
            if not np.any(raw(active)):
                break
            carried = self.iteration(given, carried, position, active, params, left)
        return carried

    def iterate(self, given: Parts, params: Params, left: list[RowCollector]) -> list[Any]:
        """Repeat a number of times; return what is carried at the end."""
        carried = given.carried
        limit = given.limit[0] if params["spec"].length is None else params["spec"].length
        if not is_concrete(limit) and ACTIVE.mask is not None:
            limit = np.where(ACTIVE.mask, limit, 0)
        last = int(np.max(raw(limit), initial=0))
        for position in range(last - 1, -1, -1) if params["spec"].reverse else range(last):
            active = True if is_concrete(limit) else position < limit
            carried = self.iteration(given, carried, position, active, params, left)
        return carried

    def iteration(
        self, given: Parts, carried: list[Any], position: int, active: Any, params: Params, left: list[RowCollector]
    ) -> list[Any]:
        """Evaluate the body once, put what it leaves behind into lists, and return what it carries."""
        if params["spec"].length is None and COUNTING.counter is not None:
            COUNTING.counter.count(params["body"])
        inner = [*given.constants, *carried, *(sequence[position] for sequence in given.sequences)]
        own = params["spec"].constants
        found = (
            evaluate(params["body"], inner)
            if is_concrete(active)
            else step_lanes(lambda xs: evaluate(params["body"], xs), active, inner, slice(own, own + len(carried)))
        )
        for rows, item in zip(left, found[len(carried) :], strict=True):
            rows.append(item)
        return list(found[: len(carried)])

    def rounds(self, params: Params) -> int | None:
        """Return how many iterations there are; None if nobody knows."""
        length: int | None = params["spec"].length
        return length

    def changes(self, params: Params) -> Sequence[tuple[int, int]]:
        """Return pairs of positions: of a carried operand, and of the result that may lie in its memory."""
        first = int(is_counted(params)) + params["spec"].constants
        return [(first + i, i) for i in range(params["spec"].carried)]

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as a loop."""
        return lowering.loop(params)

    # What can be said without elements

    def avals(self, inputs: Sequence[Any], params: Params) -> tuple[Aval, ...]:
        """Return the avals of the results."""
        found = [aval_of(x) for x in params["body"].outputs]
        carried = params["spec"].carried
        return (*found[:carried], *(sequence_aval(aval, params["spec"].length) for aval in found[carried:]))

    def results(self, inputs: Sequence[Any], params: Params) -> list[Variable]:
        """Return variables like the results, which lie in memory as at the beginning where no iteration is sure."""
        count, ends = params["spec"].carried, params["body"].outputs
        olds = parts(inputs, params).carried
        values = [
            joint_variable((x,) if params["spec"].length else (x, old))
            for x, old in zip(ends[:count], olds, strict=True)
        ]
        avals = self.avals(inputs, params)[count:]
        return values + [stack_of(aval, x) for aval, x in zip(avals, ends[count:], strict=True)]

    def dependents(self, flags: Parts, params: Params, *, smooth: bool) -> tuple[list[bool], list[bool]]:
        """Return which carried values and which sequences left behind depend on the flagged operands, in the end."""
        carried = list(flags.carried)
        while True:
            found = dependent_outputs(params["body"], [*flags.constants, *carried, *flags.sequences], smooth=smooth)
            grown = [a or b for a, b in zip(carried, found[: len(carried)], strict=True)]
            if not smooth and self.differs(flags, carried, params):
                grown = [True] * len(carried)
            if grown == carried:
                return carried, found[len(carried) :]
            carried = grown

    def differs(self, flags: Parts, carried: Flags, params: Params) -> bool:
        """Tell whether what ends the loop depends on flagged values."""
        if params["cond"] is None:
            return any(flags.limit)
        return dependent_outputs(params["cond"], [*flags.constants, *carried], smooth=False)[0]

    def reach(self, flags: Flags, params: Params, smooth: bool) -> list[bool]:
        """Return which results depend on the flagged operands."""
        carried, left = self.dependents(parts(flags, params), params, smooth=smooth)
        return [*carried, *left]

    def needs(self, used: Flags, params: Params) -> tuple[Flags, Flags] | None:
        """Return which operands and results the used results need.

        A carried value is needed if it is used afterwards, decides whether to go on, or enters another that is needed.
        """
        body, cond, own = params["body"], params["cond"], params["spec"].constants
        ahead = own + params["spec"].carried
        deciding = [False] * len(body.inputs)
        if cond is not None:
            deciding[:ahead] = needed_inputs(cond, [True])
        results = list(used)
        while True:
            inner = [a or b for a, b in zip(deciding, needed_inputs(body, results), strict=True)]
            carried = [a or b for a, b in zip(results, inner[own:ahead], strict=False)]
            if carried == results[: len(carried)]:
                break
            results[: len(carried)] = carried
        inner[own:ahead] = carried
        return None if all(results) and all(inner) else ([*[True] * int(is_counted(params)), *inner], results)

    def trim(self, operands: Flags, results: Flags, params: Params) -> Params:
        """Return the graphs of needed operands and results alone."""
        spec, inner = params["spec"], operands[int(is_counted(params)) :]
        ahead = spec.constants + spec.carried
        return {
            **params,
            "body": narrow_graph(params["body"], inner, results),
            "cond": params["cond"] and narrow_graph(params["cond"], inner[:ahead], [True]),
            "spec": spec.holding(sum(inner[: spec.constants]), sum(results[: spec.carried])),
        }

    def following(self, moves: Sequence[Moves], params: Params, followed: Callable[..., list[Moves]]) -> list[Moves]:
        """Follow through iterations until nothing changes; when the loop ends must be the same whatever moves."""
        given = parts(moves, params)
        carried = list(given.carried)
        while True:
            found = followed(params["body"], [*given.constants, *carried, *given.sequences])
            grown = list(map(join_moves, carried, found[: len(carried)]))
            if grown == carried:
                break
            carried = grown
        ends = given.limit if params["cond"] is None else followed(params["cond"], [*given.constants, *carried])
        if Moves.LINEAR in ends or Moves.STEP in ends:
            raise NotLinear
        return [*carried, *found[len(carried) :]]

    # Forward mode

    def push(
        self, values: Sequence[Any], given_parts: Sequence[Any], params: Params, order: int | None, passed: Passed
    ) -> Any:
        """Carry values and what moves with them; through an infinite partial to the iterations behind it."""
        given, moving = parts(values, params), parts(given_parts, params)
        flags = parts([part is not None for part in given_parts], params)
        carried, left = self.dependents(flags, params, smooth=True)
        wide = Parts([], flags.constants, carried, flags.sequences)
        width = 1 if order is None else order
        beginnings = zip(given.carried, flags.carried, carried, strict=True)
        still = [x for x, moves, will in beginnings if will and not moves and not is_staged(x)]
        passed = passed._replace(masked=passed.masked or any(map(may_be_infinite, still)))
        body, ends = forward_graph(params["body"], wide.inner, [*carried, *left], order, passed)
        while ends != passed:
            passed = ends
            body, ends = forward_graph(params["body"], wide.inner, [*carried, *left], order, passed)
        near = find_staged((*values, *chain(*(part for part in given_parts if part is not None))))
        starts = [
            (zeros(aval_of(x), near),) * width if part is None else part
            for x, part in zip(given.carried, moving.carried, strict=True)
        ]
        constants, moved = (
            list(chain(*select_flagged(moving.constants, flags.constants))),
            list(chain(*select_flagged(starts, carried))),
        )
        results = apply(
            self,
            *given.limit,
            *given.constants,
            *constants,
            *given.carried,
            *moved,
            *given.sequences,
            *chain(*select_flagged(moving.sequences, flags.sequences)),
            **{
                **params,
                "body": interleave(body, wide, carried, left, width),
                "cond": None if params["cond"] is None else self.wider_cond(params, constants, moved),
                "spec": params["spec"].holding(len(given.constants) + len(constants), len(carried) + len(moved)),
            },
        )
        first, second = len(carried), len(carried) + len(moved)
        third = second + len(left)
        of_carried = scatter_parts(results[first:second], carried, order)
        of_left = scatter_parts(results[third:], left, order)
        return [*results[:first], *results[second:third]], [*of_carried, *of_left], ends

    def wider_cond(self, params: Params, constants: Sequence[Any], carried: Sequence[Any]) -> Graph:
        """Return the condition of a loop that has further constants and carries more."""
        own = params["spec"].constants
        return with_extra_inputs(
            params["cond"],
            [
                *range(own),
                *map(aval_of, constants),
                *range(own, own + params["spec"].carried),
                *map(aval_of, carried),
            ],
        )

    # Batching

    def lanes(self, size: int, values: Sequence[Any], batched: Flags, params: Params) -> Any:
        """Run until all lanes are done."""
        given, flags = parts(values, params), parts(batched, params)
        carried, left = self.dependents(flags, params, smooth=False)
        wide = Parts(flags.limit, flags.constants, carried, flags.sequences)
        starts = [
            np.broadcast_to(x, (size, *aval_of(x).shape)) if flag and not was else x
            for x, flag, was in zip(given.carried, carried, flags.carried, strict=True)
        ]
        inward = [swap_lanes(x) if flag else x for x, flag in zip(given.sequences, flags.sequences, strict=True)]
        given = given._replace(carried=starts, sequences=inward)
        if not self.differs(flags, carried, params):
            results = self.same_lanes(size, given, wide, left, params)
        elif params["cond"] is None:
            results = self.counted_lanes(size, given, wide, left, params)
        else:
            results = self.masked_lanes(size, given, wide, left, params)
        ends = [of_each_lane(x) if flag else x for x, flag in zip(results[len(carried) :], left, strict=True)]
        return [*results[: len(carried)], *ends], [*carried, *left]

    def same_lanes(self, size: int, given: Parts, wide: Parts, left: Flags, params: Params) -> Any:
        """Repeat equally often in all lanes."""
        inputs = params["body"].inputs
        ahead = params["spec"].constants + params["spec"].carried
        body = batched_graph(lambda *xs: evaluate(params["body"], xs), size, inputs, wide.inner, [*wide.carried, *left])
        cond = params["cond"] and batched_graph(
            lambda *xs: evaluate(params["cond"], xs), size, inputs[:ahead], [*wide.constants, *wide.carried], [False]
        )
        return apply(self, *given.limit, *given.inner, **{**params, "body": body, "cond": cond})

    def masked_lanes(self, size: int, given: Parts, wide: Parts, left: Flags, params: Params) -> Any:
        """Repeat while any lane goes on."""
        inputs = params["body"].inputs
        own, ahead = params["spec"].constants, params["spec"].constants + params["spec"].carried

        def step(*xs: Any) -> Sequence[Any]:
            active = evaluate(params["cond"], xs[:ahead])[0]
            return step_lanes(lambda ys: evaluate(params["body"], ys), active, xs, slice(own, ahead))

        def go_on(*xs: Any) -> Sequence[Any]:
            active = evaluate(params["cond"], xs)[0]
            return [np.any(active._value)]

        body = batched_graph(step, size, inputs, wide.inner, [*wide.carried, *left])
        cond = batched_graph(go_on, size, inputs[:ahead], [*wide.constants, *wide.carried], [False])
        return apply(self, *given.inner, **{**params, "body": body, "cond": cond})

    def counted_lanes(self, size: int, given: Parts, wide: Parts, left: Flags, params: Params) -> Any:
        """Repeat as often as the lane with the most iterations, and carry the position."""
        inputs = params["body"].inputs
        own, reverse = params["spec"].constants, params["spec"].reverse

        def step(limit: Any, *xs: Any) -> Sequence[Any]:
            position, inner = xs[own], [*xs[:own], *xs[own + 1 :]]
            found = step_lanes(
                lambda ys: evaluate(params["body"], ys),
                position < limit,
                inner,
                slice(own, own + params["spec"].carried),
            )
            return [position - 1 if reverse else position + 1, *found]

        limit = given.limit[0]
        most = np.max(limit) if size else np.int64(0)
        body = batched_graph(
            step,
            size,
            [Aval((), aval_of(limit).dtype), *inputs[:own], COUNTER, *inputs[own:]],
            [True, *wide.constants, False, *wide.carried, *wide.sequences],
            [False, *wide.carried, *left],
        )
        results = apply(
            self,
            most,
            limit,
            *given.constants,
            most - 1 if reverse else np.int64(0),
            *given.carried,
            *given.sequences,
            **{**params, "body": body, "spec": params["spec"].holding(own + 1, params["spec"].carried + 1)},
        )
        return results[1:]

    # Reverse mode

    def linearize(
        self,
        values: Sequence[Any],
        wanted: Flags,
        params: Params,
        passed: Passed = NOTHING_PASSED,
        needed: tuple[Flags, Flags] | None = None,
    ) -> Any:
        """Run the forward loop; the pullback runs the backward one.

        What `passed` has made is not made again if it has all that the backward half reads. Of operands and results
        that are not `needed` there are no cotangents: zeros would go through all iterations for them, and be NaN where
        a partial is infinite.
        """
        given, flags = parts(values, params), parts(wanted, params)
        carried, left = self.dependents(flags, params, smooth=True)
        if needed is not None:
            flags = parts(list(map(and_, wanted, needed[0])), params)
            carried, left = list(map(and_, carried, needed[1])), list(map(and_, left, needed[1][len(carried) :]))
        wide = Parts([], flags.constants, carried, flags.sequences)
        own, there = params["spec"].constants, params["spec"].constants + params["spec"].carried
        with budget_for_each(lane_number(values)):
            cuts, reversal, ended = self.forward_half(given, wide, left, params, passed)
        ends, rows, saved = ended
        made = passed._replace(made=(cuts.forward, reversal, ended))
        outs = [*ends, *rows]
        near = find_staged(values)
        avals = self.avals(values, params)
        out_avals = [a.firm for a in select_flagged(avals, [*carried, *left])]
        sums = [aval_of(x).firm for x in select_flagged(given.constants, wide.constants)]

        reached = cuts.reached.union(range(own, there))
        masks = cuts.masked or (bool(sums) and not params["spec"].length)

        def pull(cts: Any, masked: bool) -> Sequence[Any]:
            used = self.needs([ct is not None for ct in cts], params)
            fewer = used is not None and any(map(gt, carried, used[1]))
            if fewer or (masked and not cuts.masked):
                behind = made._replace(masked=masked), used if fewer else needed
                pullback: Pullback = self.linearize(values, wanted, params, *behind)[2]
                return pullback.send_back(cts, masked)
            given_cts = with_zeros(select_flagged(cts, [*carried, *left]), out_avals, near)
            moving, backward = sum(carried), self.backward_half(cuts, wide, left, params)
            found, of_rows = reversal._replace(loop=reversal.loop._replace(backward=backward)).sweep(
                given,
                saved,
                [*given_cts[:moving], *(zeros(aval, near) for aval in sums)],
                given_cts[moving:],
            )
            of_constants = scatter_flagged(found[moving:], wide.constants)
            of_carried = scatter_flagged(found[:moving], carried)
            of_sequences = scatter_flagged(of_rows, wide.sequences)
            inner = keep_places([*of_constants, *of_carried, *of_sequences], reached)
            return [*(None for _ in given.limit), *inner]

        # of what is carried the last value alone, which is often of no use, has zeros: guards would take a third longer
        missed = select_flagged(range(len(carried), len(outs)), left)
        reverse = Pullback(
            self.name,
            len(outs),
            pull,
            masks=masks,
            steep=cuts.steep,
            again=lambda: self.linearize(values, wanted, params, made._replace(steep=True), needed)[2],
            needed=missed,
        )
        return outs, [*carried, *left], reverse

    def forward_half(self, given: Parts, wide: Parts, left: Flags, params: Params, passed: Passed) -> Any:
        """Run the forward loop, unless an earlier one has made what is read; return how to go back through it, too.

        `wide` and `left` say what of an iteration has cotangents.
        """
        cuts = self.split(wide.inner, [*wide.carried, *left], params, passed)
        same = None if passed.made is None else with_forward_half(cuts, passed.made[0])
        cuts = same or cuts
        own_graphs = params["body"], params["cond"], cuts.forward, cuts.backward
        whole = SegmentedLoop(self, scan_loop, *own_graphs, params["spec"], cuts.read)
        if same:
            _, reversal, ended = passed.made
            return cuts, reversal._replace(loop=whole), ended
        reversal = reversal_of(whole, cuts.residuals, while_loop)
        return cuts, reversal, reversal.keep(given)

    def backward_half(self, cuts: SweptHalves, wide: Parts, left: Flags, params: Params) -> Graph:
        """Return the body of the backward loop, which adds up the cotangents of constants."""
        constants = sum(i < params["spec"].constants for i in cuts.read)
        others = len(cuts.read) - constants
        return backward_body(cuts.backward, constants, others, len(cuts.residuals), wide.carried, left, wide)

    def split(self, wanted: Flags, results: Flags, params: Params, passed: Passed) -> SweptHalves:
        """Return the halves of an iteration's gradient: what a loop inside of it keeps is multiplied by the rounds."""
        own, there = params["spec"].constants, params["spec"].constants + params["spec"].carried
        places = range(len(params["body"].inputs))
        with share_of_budget():
            return split_gradient(
                params["body"],
                wanted,
                results,
                at_hand=[not own <= i < there for i in places],
                fixed=[i < own for i in places],
                summed=[i < own for i in places],
                carried=[own <= i < there and wanted[i] for i in places],
                name=f"the gradient of {self.name}",
                masked=passed.masked,
                steep=passed.steep,
            )


def stack_of(aval: Aval, one: Any) -> Variable:
    """Return a variable of some aval, that of a sequence of arrays which lie in memory as one does."""
    known = UNKNOWN not in aval.shape
    return Variable.of(aval, "", strides_of_stack(aval.shape, strides_of(one), aval.dtype.itemsize) if known else None)


def swap_lanes(array: Any) -> Any:
    """Return the array of a sequence with its lanes in front of its elements, or the other way round."""
    return array if UNKNOWN in aval_of(array).shape else np.swapaxes(array, 0, 1)


def of_each_lane(array: Any) -> Any:
    """Return the rows that all lanes leave with lanes in front, and each lane's one behind the other, as without lanes.

    What a program writes through `ravel` or `reshape` is seen there, so these must be the views that they are in NumPy.
    """
    found = swap_lanes(array)
    return found.copy() if found is not array and found.ndim > 2 else found


while_loop = LoopPrimitive("while_loop")
scan_loop = LoopPrimitive("scan")
register(while_loop)
register(scan_loop)
