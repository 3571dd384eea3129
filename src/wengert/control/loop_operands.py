"""The graphs of bodies in the order of the operands of loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from wengert.control.subgraphs import permute
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import Parts

Flags = Sequence[bool]


def interleave(pushed: Graph, wide: Parts, carried: Flags, left: Flags, width: int) -> Graph:
    """Return a graph of values and what moves with them in the order of a loop's body: by role, values first."""
    inputs: list[int] = []
    value, moved = 0, len(wide.inner)
    for flags in (wide.constants, wide.carried, wide.sequences):
        own, more = len(flags), width * sum(flags)
        inputs += [*range(value, value + own), *range(moved, moved + more)]
        value, moved = value + own, moved + more
    outs, total = len(carried), len(carried) + len(left)
    middle = total + width * sum(carried)
    outputs = [*range(outs), *range(total, middle), *range(outs, total), *range(middle, len(pushed.outputs))]
    return permute(pushed, inputs, outputs)


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
