"""The operands of loops by their roles, and the graphs of bodies in the order of these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from wengert.control.subgraphs import permuted
from wengert.core.forms.record import FieldRecord
from wengert.core.graph.graph import Graph
from wengert.core.graph.identity import Composite

__all__ = ["LoopSpec", "Parts", "backward_body", "interleaved", "is_counted", "parts"]

Params = Mapping[str, Any]
Flags = Sequence[bool]


class LoopSpec(FieldRecord, Composite):
    """Say what the operands of a loop are, and how its iterations follow each other.

    Attributes:
        constants: how many operands are what every iteration reads.
        carried: how many after these are what one iteration hands to the next; sequences are the others.
        length: the number of iterations; None for a `while_loop`, and for a `scan` that gets it as operand 0.
        reverse: whether sequences are read and written from their ends.
    """

    constants: int
    carried: int
    length: int | None = None
    reverse: bool = False

    def structure(self) -> Hashable:
        """Return what it is made of: whole numbers and a flag."""
        return self.constants, self.carried, self.length, self.reverse

    def check(self) -> None:
        """Raise an error if a field is not what it should be: they may come from a file."""
        counts = (self.constants, self.carried, 0 if self.length is None else self.length)
        if not all(type(n) is int and n >= 0 for n in counts) or type(self.reverse) is not bool:
            raise ValueError(f"{self!r:.80}")

    def holding(self, constants: int, carried: int) -> LoopSpec:
        """Return what is said of the same loop with other numbers of operands."""
        return self.replaced(constants=constants, carried=carried)


class Parts(NamedTuple):
    """Hold the operands of a loop, or something about each of them, by their roles; `limit` has one item or none."""

    limit: list[Any]
    constants: list[Any]
    carried: list[Any]
    sequences: list[Any]

    @property
    def inner(self) -> list[Any]:
        """What the body receives."""
        return [*self.constants, *self.carried, *self.sequences]


def parts(items: Sequence[Any], params: Params) -> Parts:
    """Sort what belongs to operands by their roles."""
    first = int(is_counted(params))
    second = first + params["spec"].constants
    third = second + params["spec"].carried
    return Parts(list(items[:first]), list(items[first:second]), list(items[second:third]), list(items[third:]))


def is_counted(params: Params) -> bool:
    """Tell whether operand 0 is the number of iterations."""
    return params["cond"] is None and params["spec"].length is None


def interleaved(pushed: Graph, wide: Parts, carried: Flags, left: Flags, width: int) -> Graph:
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
    return permuted(pushed, inputs, outputs)


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
    return permuted(backward, [*steady, *moving, *sums, *read, *residuals, *leaving], outputs)
