"""Loops in segments: under a byte budget reverse mode keeps what is carried where segments begin.

What else the reverse needs of the iterations is computed again, segment after segment from the last one on. A segment
that would itself keep too much is cut into segments again. All is made of loops: the forward one runs a loop for each
segment and leaves behind what it began with, the backward one reads that from the end, and runs for each segment both
loops of an ordinary reverse. So the same steps are taken in the same order as without a budget, and derivatives, lanes
and native code follow.

With `levels` of segments each step is taken so many times more than once, and as many states are kept as for so many
levels have segments: for the least memory as many in each, the root of their product.

A loop that a condition ends is cut for the most steps that fit, up to a million. Its segments end early when the
condition says so, and there are as many of the outermost as it takes: each of these keeps a state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.control.subgraphs import trace_closed
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.loop_spec import LoopSpec, Parts, parts
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.errors import RangeError
from wengert.passes.equations import with_extra_inputs
from wengert.support.records import NamedTuple

Sizes = tuple[int, ...]
"""How many steps segments have, those of the outermost level first; what is cut no further keeps all residuals."""
MOST_LEVELS = 40
LONGEST, CONDITION_LEVELS = 2**20, 3
"""For how many steps loops that a condition ends are cut, and in how many levels: all of them, however few steps."""
COUNTER = Aval((), np.dtype(np.int64), weak=True)


def bytes_of(avals: Sequence[Aval]) -> float:
    """Return how many bytes arrays take; infinity where nobody knows."""
    return sum(math.inf if UNKNOWN in a.shape else math.prod(a.shape) * a.dtype.itemsize for a in avals)


def below(sizes: Sizes, length: int) -> Sizes:
    """Return the sizes of segments that cut so many steps."""
    return tuple([size for size in sizes if size < length])


def bytes_kept(length: int, sizes: Sizes, state: float, residuals: float) -> float:
    """Return how many bytes are kept at most at once for the reverse of a loop in segments.

    >>> bytes_kept(100, (), 8, 24), bytes_kept(100, (10,), 8, 24)
    (2400, 320)
    """
    sizes = below(sizes, length)
    if not sizes:
        return length * residuals
    count, rest = divmod(length, sizes[0])
    inner = bytes_kept(sizes[0], sizes[1:], state, residuals)
    return count * state + max(inner, bytes_kept(rest, sizes[1:], state, residuals))


def sizes_for(length: int, state: float, residuals: float, budget: float, most: int = MOST_LEVELS) -> Sizes:
    """Return the fewest levels of segments, each in the sizes of the least memory, that fit into a budget, or nearly.

    Args:
        length: how many steps there are.
        state: how many bytes are carried.
        residuals: how many bytes a step keeps.
        budget: how many bytes may be kept.
        most: how many levels there may be.

    >>> sizes_for(100, 8, 24, 2400), sizes_for(100, 8, 24, 1000), sizes_for(100, 8, 24, 200)
    ((), (6,), (18, 3))
    """
    found: list[tuple[float, Sizes]] = []
    per_state = max(residuals, 1) / max(state, 1)
    for levels in range(most + 1):
        count = (length * per_state) ** (1 / (levels + 1))
        choices = [sizes_of(length, levels, max(2, number)) for number in (math.floor(count), math.ceil(count))]
        found.append(min((bytes_kept(length, sizes, state, residuals), sizes) for sizes in choices))
        if found[-1][0] <= budget or found[-1][1][-1:] == (1,):
            break
    return min(found)[1]


def sizes_of(length: int, levels: int, count: int) -> Sizes:
    """Return the sizes of segments in levels, each cut into so many of the next, which leaves no step over in them.

    >>> sizes_of(100, 2, 4)
    (28, 7)
    """
    size = max(1, math.ceil(length / count**levels))
    return tuple([size * count**level for level in reversed(range(levels))])


def sizes_for_any_length(state: float, residuals: float, budget: float, is_share: bool) -> Sizes:
    """Return the sizes of segments of a loop that a condition ends: for the most steps that fit into a budget.

    Args:
        state: how many bytes are carried.
        residuals: how many bytes a step keeps.
        budget: how many bytes may be kept.
        is_share: whether to take the least memory where one step is too much.

    Raises:
        RangeError: one step is too much.
    """
    for length in [LONGEST >> k for k in range(LONGEST.bit_length())]:
        sizes = sizes_for(length, state, residuals, budget, CONDITION_LEVELS)
        least = bytes_kept(length, sizes, state, residuals)
        if least <= budget or (is_share and length == 1):
            return sizes or (() if length == LONGEST else (length,))
    raise too_little(budget, 1, state, least)


def too_little(budget: float, length: int, state: float, least: float) -> RangeError:
    """Return the error that says that a budget is too small."""
    return RangeError(
        "memory_budget",
        f"{budget:,.0f} bytes for the reverse of a loop of {length:,} steps that carries {state:,.0f} bytes",
        f"at least {least:,.0f} bytes are needed",
        "Raise the budget, or let the loop carry less",
    )


class SegmentedLoop(NamedTuple):
    """Hold what is needed to run a loop in segments, from its beginning to its end.

    Attributes:
        primitive: of the loop.
        scan: of loops that no condition ends.
        body: one step.
        cond: whether to go on; None if no condition ends the loop.
        forward: one that leaves its residuals behind.
        backward: the cotangents of one step, of (constants, cotangents of carried values, sums, sequences, residuals,
            cotangents of what is left).
        spec: how many constants and carried values there are.
        read: the positions of the inputs that `backward` reads.
    """

    primitive: Primitive
    scan: Primitive
    body: Graph
    cond: Graph | None
    forward: Graph
    backward: Graph
    spec: LoopSpec
    read: tuple[int, ...]

    @property
    def stacked_count(self) -> int:
        """How many arrays a step leaves behind."""
        return len(self.body.outputs) - self.spec.carried

    def run(self, body: Graph, given: Parts, length: int | None) -> tuple[list[Any], list[Any]]:
        """Return what a number of steps carry, and what they leave behind."""
        spec = self.spec.replace(length=length)
        results = apply(self.scan, *given.limit, *given.inner, body=body, cond=None, spec=spec)
        return list(results[: spec.carried]), list(results[spec.carried :])

    def run_while(self, body: Graph, given: Parts, limit: int | None) -> list[Any]:
        """Return how many steps there are while the condition holds, a number at most, and what the loop gives."""
        assert self.cond is not None
        own, cond = self.spec.constants, self.cond
        places = [*range(own), COUNTER, *range(own, own + self.spec.carried)]

        def step(*xs: Any) -> list[Any]:
            return [xs[own] + 1, *evaluate(body, [*xs[:own], *xs[own + 1 :]])]

        def goes_on(*xs: Any) -> list[Any]:
            return [np.logical_and(xs[own] < limit, *evaluate(cond, [*xs[:own], *xs[own + 1 :]]))]

        ends = with_extra_inputs(cond, places)
        results = apply(
            self.primitive,
            *given.constants,
            0,
            *given.carried,
            *given.sequences,
            body=trace_closed(step, [*body.inputs[:own], COUNTER, *body.inputs[own:]], self.primitive.name),
            cond=ends if limit is None else trace_closed(goes_on, ends.inputs, self.primitive.name),
            spec=self.spec.holding(own, self.spec.carried + 1),
        )
        return list(results)

    def keep(self, given: Parts, length: int | None, sizes: Sizes) -> tuple[list[Any], list[Any], list[Any]]:
        """Return what steps carry, what they leave behind, and what their reverse needs.

        Args:
            given: the operands.
            length: how many steps there are, at most if a condition ends them; None if nobody knows: then, and if a
                condition does, that number comes first in what the reverse needs.
            sizes: of segments.
        """
        if self.cond is not None:
            return self.keep_while(given, length, sizes)
        count, sizes = self.stacked_count, () if length is None else below(sizes, length)
        if length is None or not sizes:
            carried, left = self.run(self.forward, given, length)
            return carried, left[:count], [*given.limit, *left[count:]]
        whole, size = length // sizes[0], sizes[0]

        def segment(*xs: Any) -> list[Any]:
            inner = self.by_role(xs)
            carried, left = self.run(self.body, inner, size)
            return [*carried, *left, *inner.carried]

        head, rest = self.cut(given.sequences, whole, size)
        variables = self.by_role(self.body.inputs)
        examples = [*variables.constants, *variables.carried, *map(row_of, head)]
        body = trace_closed(segment, examples, self.scan.name)
        carried, left = self.run(body, given._replace(sequences=head), whole)
        left, kept = list(map(join_segments, left[:count])), left[count:]
        if whole * size < length:
            after = given._replace(carried=carried, sequences=rest)
            carried, others, more = self.keep(after, length - whole * size, sizes[1:])
            left, kept = list(map(self.concatenate, left, others)), [*kept, *more]
        return carried, left, kept

    def keep_while(self, given: Parts, limit: int | None, sizes: Sizes) -> tuple[list[Any], list[Any], list[Any]]:
        """Do what `keep` does while the condition holds."""

        def segment(*xs: Any) -> list[Any]:
            inner = self.by_role(xs)
            return [*self.run_while(self.body, inner, sizes[0])[1:], *inner.carried]

        body = self.forward
        if sizes:
            body = trace_closed(segment, self.body.inputs, self.primitive.name)
            limit = None if limit is None else limit // sizes[0]
        steps, *results = self.run_while(body, given, limit)
        first, second = self.spec.carried, len(self.body.outputs)
        return results[:first], results[first:second], [steps, *results[second:]]

    def by_role(self, values: Sequence[Any]) -> Parts:
        """Return the values of a body by their roles."""
        return parts(values, {"cond": None, "spec": self.spec.replace(length=0)})

    def sweep(
        self,
        given: tuple[list[Any], list[Any]],
        kept: Sequence[Any],
        length: int | None,
        sizes: Sizes,
        cts: Sequence[Any],
        rows: Sequence[Any],
    ) -> tuple[list[Any], list[Any]]:
        """Return cotangents of carried values, with sums, and of sequences.

        Args:
            given: constants and sequences.
            kept: what `keep` gave.
            length: how many steps there are.
            sizes: of segments.
            cts: cotangents of what is carried at the end, and sums.
            rows: cotangents of what is left behind.
        """
        constants, sequences = given
        steps, kept = ([], kept) if length is not None else (kept[:1], kept[1:])
        sizes = sizes if length is None else below(sizes, length)
        if not sizes:
            first = self.spec.constants
            read = [constants[i] for i in self.read if i < first]
            rest = [sequences[i - first - self.spec.carried] for i in self.read if i >= first]
            return self.back(self.backward, steps, read, cts, [*rest, *kept, *rows], length)
        size, states = sizes[0], self.spec.carried
        whole, part = (None, None) if length is None else (length // size, size)
        (head, rest), (early, late) = (self.cut(x, whole or 0, size) for x in (sequences, rows))
        after: list[Any] = []
        if length is not None and whole is not None and whole * size < length:
            more = length - whole * size
            cts, after = self.sweep((constants, rest), kept[states:], more, sizes[1:], cts, late)

        def segment(*xs: Any) -> list[Any]:
            values = iter(xs)
            own, moving, inner, begun, outer = (
                [next(values) for _ in items] for items in (constants, cts, head, range(states), early)
            )
            _, _, needed = self.keep(Parts([], own, begun, inner), size, sizes[1:])
            found, of_rows = self.sweep((own, inner), needed, part, sizes[1:], moving, outer)
            return [*found, *of_rows]

        variables = self.by_role(self.body.inputs)
        examples = [*variables.constants, *map(aval_of, cts), *map(row_of, head), *variables.carried]
        body = trace_closed(segment, [*examples, *map(row_of, early)], self.scan.name)
        found, of_rows = self.back(body, steps, constants, cts, [*head, *kept[:states], *early], whole)
        of_rows = list(map(join_segments, of_rows))
        return found, list(map(self.concatenate, of_rows, after)) if after else of_rows

    def back(
        self,
        body: Graph,
        steps: Sequence[Any],
        constants: Sequence[Any],
        cts: Sequence[Any],
        sequences: Sequence[Any],
        length: int | None,
    ) -> tuple[list[Any], list[Any]]:
        """Run a loop from the last step to the first; return what it carries, and what it leaves behind."""
        spec = LoopSpec(len(constants), len(cts), length, not self.spec.reverse)
        results = apply(self.scan, *steps, *constants, *cts, *sequences, body=body, cond=None, spec=spec)
        return list(results[: len(cts)]), list(results[len(cts) :])

    def cut(self, sequences: Sequence[Any], count: int, size: int) -> tuple[list[Any], list[Any]]:
        """Return the rows of sequences in so many segments, and those of the steps after them."""
        pairs = []
        for x in sequences:
            rest = len(x) - count * size
            head, others = (x[rest:], x[:rest]) if self.spec.reverse else (x[: count * size], x[count * size :])
            pairs.append((np.reshape(head if rest else x, (count, size, *x.shape[1:])), others))
        return [head for head, _ in pairs], [others for _, others in pairs]

    def concatenate(self, first: Any, second: Any) -> Any:
        """Return the rows of some steps and of those after them."""
        return np.concatenate([second, first] if self.spec.reverse else [first, second])


class SegmentReversal(NamedTuple):
    """Reverse a loop in segments of some sizes."""

    loop: SegmentedLoop
    sizes: Sizes

    def keep(self, given: Parts) -> tuple[list[Any], list[Any], list[Any]]:
        """Return what steps carry, what they leave behind, and what their reverse needs."""
        return self.loop.keep(given, self.loop.spec.length, self.sizes)

    def sweep(
        self, given: Parts, kept: Sequence[Any], cts: Sequence[Any], rows: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return cotangents of carried values, with sums, and of sequences, from those of the ends."""
        own, length = (given.constants, given.sequences), self.loop.spec.length
        return self.loop.sweep(own, kept, length, self.sizes, cts, rows)


def row_of(sequence: Any) -> Aval:
    """Return the aval of the rows of a sequence."""
    shape, dtype, _ = aval_of(sequence)
    return Aval(shape[1:], dtype)


def join_segments(rows: Any) -> Any:
    """Return the rows of all segments, one behind the other."""
    return np.reshape(rows, (-1, *rows.shape[2:]))
