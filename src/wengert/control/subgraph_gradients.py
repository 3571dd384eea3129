"""The gradient of a graph that is part of an equation, cut in two halves.

The forward half also returns residuals, the backward half takes them with the cotangents of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from wengert.control.subgraphs import (
    Flags,
    current_value,
    derive_traced,
    keep_handle,
    permute,
    select_flagged,
    trace_closed,
)
from wengert.control.zero_sequence import zeros
from wengert.core.graph.graph import Graph, derive, evaluate
from wengert.core.graph.loop_spec import Parts
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.recording import next_level
from wengert.core.values.tensor import Tensor
from wengert.passes.gradient_split import cut, residual_places
from wengert.support.records import NamedTuple
from wengert.traces.guarded_cotangents import is_mask
from wengert.traces.sweep import sweep
from wengert.traces.tape import Tape, make_leaf


class SweptHalves(NamedTuple):
    """Hold a graph cut in two, as `wengert.passes.gradient_split.Halves`, with what its sweep passes.

    Attributes:
        forward, backward, read, residuals: as there.
        masked: whether the backward half is for sweeps that have passed a mask.
        masks: whether the backward half passes a mask.
        steep: whether it may pass an infinite partial.
        reached: the positions of the inputs whose cotangents depend on those of the outputs.
    """

    forward: Graph
    backward: Graph
    read: tuple[int, ...]
    residuals: tuple[Aval, ...]
    masked: bool
    masks: bool
    steep: bool
    reached: frozenset[int]


def split_gradient(
    graph: Graph,
    wanted: Flags,
    results: Flags,
    *,
    name: str,
    at_hand: Flags = (),
    fixed: Flags = (),
    summed: Flags = (),
    carried: Flags = (),
    masked: bool = False,
    steep: bool = False,
) -> SweptHalves:
    """Cut a graph in two for reverse mode.

    Args:
        graph: the graph.
        wanted: the inputs that shall have cotangents.
        results: the outputs whose cotangents are given.
        name: for errors.
        at_hand: the inputs that the backward half can read without their being saved; all by default.
        fixed: those among them from which it may compute again what it needs; none by default.
        summed: the inputs whose cotangents are added to sums that are given; none by default.
        carried: of the body of a loop, the inputs whose cotangents the iteration before receives. That one comes behind
            what this one passes, and if one of them is not reached, behind zeros: they are like a mask.
        masked: whether the halves are for sweeps that have passed a mask.
        steep: whether they are for sweeps that have passed an infinite partial.
    """
    none = [False] * len(graph.inputs)
    groups = wanted, results, at_hand or [True] * len(none), fixed or none, summed or none, carried
    flags = tuple(map(tuple, groups))
    key = "halves", name, flags, masked, steep
    return derive_traced(graph, key, lambda: trace_halves(graph, flags, name, masked, steep))


def trace_halves(graph: Graph, flags: Sequence[Flags], name: str, masked: bool, steep: bool) -> SweptHalves:
    """Return these halves, traced, for flags in the order of the arguments above.

    The sweep of a loop's body is made again behind what it has passed itself; of the first one nothing is used.
    """
    wanted, results, at_hand, fixed, summed, carried = flags
    count = len(graph.inputs)
    given = sum(results)

    def joint(*args: Tensor) -> list[Any]:
        primals, cts, sums = args[:count], args[count : count + given], iter(args[count + given :])
        tape = Tape(next_level(), name)
        leaves = {i: make_leaf(keep_handle(x), tape) for i, x in enumerate(primals) if wanted[i]}
        with tape:
            outs = [current_value(x) for x in evaluate(graph, [leaves.get(i, x) for i, x in enumerate(primals)])]
        pairs = zip([x for x, flag in zip(outs, results, strict=True) if flag], cts, strict=True)
        seeds = [(x._node, ct) for x, ct in pairs if type(x) is Tensor and x._trace is tape]
        starts = {leaves[i]._node: next(sums) for i in leaves if summed[i]}
        begin = [*seeds, *starts.items()]
        nodes = {i: leaf._node for i, leaf in leaves.items()}
        behind, ahead = None, (masked or (bool(carried) and any(is_mask(node) for node, _ in seeds)), steep)
        while behind != ahead:
            behind = ahead
            run = sweep(begin, retain=True, masked=behind[0], steep=behind[1])
            reached = frozenset(i for i, node in nodes.items() if run.cotangent_of(node) is not starts.get(node))
            if carried:
                ahead = run.masks or not reached.issuperset(moving), run.steep
        passed.append((behind[0], run.masks, run.steep, reached))
        found = [(i, run.result(node)) for i, node in nodes.items()]
        cotangents = [zeros(aval_of(primals[i]).firm, args[0]) if ct is None else ct for i, ct in found]
        return [*(tape.value_below(x) for x in outs), *cotangents]

    moving = select_flagged(range(count), carried) if carried else []
    passed: list[tuple[bool, bool, bool, frozenset[int]]] = []

    outs = [aval_of(x) for x in graph.outputs]
    added = [v.aval for v, want, flag in zip(graph.inputs, wanted, summed, strict=True) if want and flag]
    whole = trace_closed(joint, [*graph.inputs, *(a.firm for a in (*select_flagged(outs, results), *added))], name)
    return SweptHalves(*cut(whole, count, len(outs), at_hand, fixed), *passed[-1])


def with_forward_half(halves: SweptHalves, forward: Graph) -> SweptHalves | None:
    """Return halves whose forward one is another of the same graph; None if that does not keep all that is read."""
    if halves.forward == forward:
        return halves

    def make() -> tuple[SweptHalves | None]:
        count = len(halves.forward.outputs) - len(halves.residuals)
        places = residual_places(forward, halves.forward, count)
        if places is None:
            return (None,)
        kept, backward, first = forward.outputs[count:], halves.backward, len(halves.read)
        own = dict(zip(places, backward.inputs[first : first + len(places)], strict=True))
        saved = [own.get(i, v) for i, v in enumerate(kept)]
        inputs = [*backward.inputs[:first], *saved, *backward.inputs[first + len(places) :]]
        graph = Graph(inputs, backward.equations, backward.outputs)
        return (halves._replace(forward=forward, backward=graph, residuals=tuple([v.aval for v in kept])),)

    return derive(halves.backward, ("behind", forward), make)[0]


def with_zeros(cts: Sequence[Any], avals: Sequence[Aval], near: Any) -> list[Any]:
    """Return the cotangents of all outputs, zeros for those without.

    Args:
        cts: the cotangents, None where there is none.
        avals: what all of them are.
        near: a value, for zeros that need one.
    """
    return [zeros(a, near) if ct is None else ct for ct, a in zip(cts, avals, strict=True)]


def backward_body(
    backward: Graph, constants: int, sequences: int, saved: int, carried: Flags, left: Flags, wide: Parts
) -> Graph:
    """Return the backward half in the order of a loop's body.

    It has (constants, sequences, residuals, cotangents of carried values, of what is left, sums), and returns the
    cotangents of (constants, carried values, elements of sequences).
    """
    ends = [0]
    for n in (constants, sequences, saved, sum(carried), sum(left), sum(wide.constants)):
        ends.append(ends[-1] + n)
    ranges = [range(a, b) for a, b in pairwise(ends)]
    steady, read, residuals, moving, leaving, sums = ranges
    first, second = sum(wide.constants), sum(wide.constants) + sum(carried)
    outputs = [*range(first, second), *range(first), *range(second, len(backward.outputs))]
    return permute(backward, [*steady, *moving, *sums, *read, *residuals, *leaving], outputs)
