"""Loops with few snapshots: under a byte budget that segments cannot keep, reverse mode keeps a fixed number of states.

Griewank and Walther (2000): with s snapshots and r passes more, binomial(s + r, s) steps can be reversed, and no
schedule takes fewer. The forward loop puts what is carried at its places into rows that it carries, the backward one
goes from the last step to the first: from the last snapshot before a step on it takes the steps up to there again, and
puts further snapshots into the rows that are free. Where they go follows from how many steps and rows there are, so
the loops carry their numbers alone, and the rows are written in place.

A. Griewank, A. Walther: Algorithm 799: revolve, ACM Transactions on Mathematical Software 26, 19-45.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from wengert.control.loop_segments import (
    SegmentedLoop,
    SegmentReversal,
    bytes_kept,
    bytes_of,
    row_of,
    sizes_for,
    sizes_for_any_length,
    too_little,
)
from wengert.control.subgraphs import trace_closed
from wengert.core.graph.graph import evaluate
from wengert.core.graph.loop_spec import LoopSpec, Parts
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.recording import byte_budget
from wengert.primitives.indexing.index_layout import split_index
from wengert.primitives.indexing.parts import assign
from wengert.support.records import NamedTuple

Results = tuple[list[Any], list[Any]]


def fewest_passes(length: int, count: int) -> int:
    """Return how often each step is taken again at most, with so many snapshots.

    >>> fewest_passes(10_000, 10), fewest_passes(1, 1)
    (7, 0)
    """
    return next(passes for passes in range(length) if math.comb(count + passes, count) >= length)


def reversible_steps(length: int, count: int) -> np.ndarray[Any, Any]:
    """Return how many steps can be reversed with (0 to `count` snapshots, 0 to the fewest passes more).

    >>> reversible_steps(6, 2)
    array([[1, 1, 1],
           [1, 2, 3],
           [1, 3, 6]])
    """
    passes = range(fewest_passes(length, count) + 1)
    return np.array([[min(math.comb(s + r, s), length) for r in passes] for s in range(count + 1)], np.int64)


def steps_ahead(table: Any, length: Any, count: Any) -> Any:
    """Return after how many steps the next snapshot is taken, of so many, two at least.

    Args:
        table: what `reversible_steps` gives.
        length: how many steps there are from the last snapshot on.
        count: how many snapshots there may be from there on, two at least.

    >>> int(steps_ahead(reversible_steps(6, 2), 6, 2))
    3
    """
    passes = np.sum(table[count] < length)
    before = np.where(passes > 1, table[count, np.maximum(passes - 2, 0)], 1)
    return np.maximum(before, length - table[count - 1, passes])


class SnapshotReversal(NamedTuple):
    """Reverse a loop of known length with few snapshots.

    Attributes:
        loop: what is reversed.
        most: how many snapshots there are, at most.
        while_loop: the primitive of loops that a condition ends.
    """

    loop: SegmentedLoop
    most: int
    while_loop: Primitive

    @property
    def length(self) -> int:
        """How many steps the loop has."""
        return int(self.loop.spec.length or 0)

    @property
    def variables(self) -> Parts:
        """What a step is given."""
        return self.loop.by_role(self.loop.body.inputs)

    def keep(self, given: Parts) -> tuple[list[Any], list[Any], list[Any]]:
        """Return what steps carry, what they leave behind, and what their reverse needs: rows of states.

        A row is written by a loop of one iteration, where there is one: in place, whatever the steps do.
        """
        loop, variables = self.loop, self.variables
        own, states = len(variables.constants), len(variables.carried)
        places = as_tensor(np.array([*first_places(self.length, self.most), self.length]))
        rows = [np.broadcast_to(np.zeros((), x.dtype), (self.most, *x.shape)) for x in variables.carried]

        def put(number: Any, *xs: Any) -> list[Any]:
            return [number + 1, *[put_row(*pair, number) for pair in zip(xs[:states], xs[states:], strict=True)]]

        def step(*xs: Any) -> list[Any]:
            values = iter(xs)
            constants, (position, number), held, begun, elements = (
                list(islice(values, size)) for size in (own, 2, states, states, len(xs))
            )
            here = np.equal(places[number], position) * np.int64(1)
            number, *held = self.repeat_counted(put, [number, *held], begun, here)
            return [position + 1, number, *held, *evaluate(loop.body, [*constants, *begun, *elements])]

        start = [np.int64(0), np.int64(0), *rows]
        examples = [*variables.constants, *map(aval_of, start), *variables.carried, *variables.sequences]
        body = trace_closed(step, examples, loop.scan.name)
        spec = loop.spec.holding(own, len(start) + states)
        operands = [*given.constants, *start, *given.carried, *given.sequences]
        results = iter(apply(loop.scan, *operands, body=body, cond=None, spec=spec))
        _, held, carried, left = (list(islice(results, size)) for size in (2, states, states, loop.stacked_count))
        return carried, left, held

    def sweep(self, given: Parts, kept: Sequence[Any], cts: Sequence[Any], rows: Sequence[Any]) -> Results:
        """Return cotangents of carried values, with sums, and of sequences, as segments do, from those of the ends."""
        places = first_places(self.length, self.most)
        numbers = np.array([*places, *[0] * (self.most - len(places))])
        own, sizes = [*given.constants, *given.sequences], (len(given.sequences), len(rows))
        start = [np.int64(self.length - 1), np.int64(len(places) - 1), numbers, *kept, *cts]

        def step(*xs: Any) -> list[Any]:
            values = iter(xs)
            steady, (position, top, numbers), held, moving, elements, outer = (
                list(islice(values, size)) for size in (len(own), 3, len(kept), len(cts), *sizes)
            )
            top, numbers, *held = self.snapshots_before(position, top, numbers, held, steady)
            begun = [x[top] for x in held]
            begun = self.steps_again(steady, begun, numbers[top], position - numbers[top])
            found = self.one_back(steady[: len(given.constants)], begun, moving, elements, outer)
            after = top - np.equal(numbers[top], position) * np.int64(1)
            return [position - 1, after, numbers, *held, *found]

        variables = self.variables
        states = [*map(aval_of, own), *map(aval_of, start)]
        body = trace_closed(step, [*states, *variables.sequences, *map(row_of, rows)], self.loop.scan.name)
        found, of_rows = self.loop.back(body, [], own, start, [*given.sequences, *rows], self.length)
        return found[3 + len(kept) :], of_rows

    def snapshots_before(
        self, position: Any, top: Any, numbers: Any, held: Sequence[Any], steady: Sequence[Any]
    ) -> list[Any]:
        """Take snapshots up to a step, in the rows that are free; return how many there are less one, where, and they.

        Args:
            position: the number of the step.
            top: the number of the last snapshot.
            numbers: before which steps snapshots are.
            held: the snapshots.
            steady: constants and sequences.
        """
        table = as_tensor(reversible_steps(self.length, self.most))

        def goes_on(*xs: Any) -> list[Any]:
            position, top, numbers = xs[len(steady) : len(steady) + 3]
            return [np.logical_and(numbers[top] < position, top < self.most - 1)]

        def step(*xs: Any) -> list[Any]:
            own, (position, top, numbers, *held) = xs[: len(steady)], xs[len(steady) :]
            number = steps_ahead(table, position + 1 - numbers[top], self.most - top)
            states = self.steps_again(own, [x[top] for x in held], numbers[top], number)
            numbers = put_row(numbers, numbers[top] + number, top + 1)
            return [position, top + 1, numbers, *[put_row(*pair, top + 1) for pair in zip(held, states, strict=True)]]

        carried = [position, top, numbers, *held]
        examples = [*map(aval_of, steady), *map(aval_of, carried)]
        body, cond = (trace_closed(f, examples, self.while_loop.name) for f in (step, goes_on))
        spec = LoopSpec(len(steady), len(carried))
        return list(apply(self.while_loop, *steady, *carried, body=body, cond=cond, spec=spec))[1:]

    def steps_again(self, steady: Sequence[Any], states: Sequence[Any], first: Any, number: Any) -> list[Any]:
        """Take a number of steps again, from some step on; return what is carried then."""
        loop, count = self.loop, len(self.variables.constants)

        def step(position: Any, *xs: Any) -> list[Any]:
            own, carried = xs[-len(steady) :] if steady else (), xs[: len(states)]
            place = self.length - 1 - position if loop.spec.reverse else position
            elements = [x[place] for x in own[count:]]
            found = evaluate(loop.body, [*own[:count], *carried, *elements])
            return [position + 1, *found[: len(states)]]

        return self.repeat_counted(step, [first, *states], steady, number)[1:]

    def repeat_counted(self, step: Any, carried: Sequence[Any], constants: Sequence[Any], number: Any) -> list[Any]:
        """Repeat a function of (carried values, constants) a number of times."""
        held, scan = len(constants), self.loop.scan
        examples = [*map(aval_of, constants), *map(aval_of, carried)]
        body = trace_closed(lambda *xs: step(*xs[held:], *xs[:held]), examples, scan.name)
        spec = LoopSpec(held, len(carried))
        return list(apply(scan, number, *constants, *carried, body=body, cond=None, spec=spec))

    def one_back(
        self,
        constants: Sequence[Any],
        begun: Sequence[Any],
        cts: Sequence[Any],
        elements: Sequence[Any],
        rows: Sequence[Any],
    ) -> list[Any]:
        """Return the cotangents of one step: of carried values, with sums, and of elements of sequences."""
        loop = self.loop
        found = evaluate(loop.forward, [*constants, *begun, *elements])
        first, second = len(constants), len(constants) + len(begun)
        read = [constants[i] for i in loop.read if i < first]
        rest = [elements[i - second] for i in loop.read if i >= first]
        residuals = found[len(loop.body.outputs) :]
        return list(evaluate(loop.backward, [*read, *cts, *rest, *residuals, *rows]))


def first_places(length: int, count: int) -> list[int]:
    """Return before which steps the first pass takes snapshots, of so many.

    >>> first_places(10, 3)
    [0, 4, 7]
    """
    found, table = [0], reversible_steps(length, count)
    while len(found) < count and found[-1] < length - 1:
        found.append(found[-1] + int(steps_ahead(table, length - found[-1], count - len(found) + 1)))
    return found


def put_row(rows: Any, row: Any, place: Any) -> Any:
    """Return rows, one of which is another."""
    index, arrays = split_index(place)
    return apply(assign, rows, row, *arrays, path=(), index=index, add=False)


def reversal_of(
    loop: SegmentedLoop, residuals: Sequence[Aval], while_loop: Primitive
) -> SegmentReversal | SnapshotReversal:
    """Return how a loop is reversed under the byte budget of this context.

    With segments, if they fit and take no more passes than snapshots would.
    """
    (budget, is_share), length = byte_budget(), loop.spec.length
    ends = loop.cond is not None and len(loop.body.inputs) == len(loop.cond.inputs) and not loop.stacked_count
    rows = loop.body.outputs[loop.spec.carried :]
    if budget == math.inf or not (length or ends) or bytes_of([aval_of(x) for x in rows]) == math.inf:
        return SegmentReversal(loop, ())  # rows whose number differs from step to step are in one array alone
    states = loop.by_role(loop.body.inputs).carried
    state, kept = bytes_of([x.aval for x in states]), bytes_of(residuals)
    if kept == math.inf:  # of loops inside that end when a condition says so
        kept = budget / 2
    if not length:
        return SegmentReversal(loop, sizes_for_any_length(state, kept, budget, is_share))
    sizes = sizes_for(length, state, kept, budget)
    least = bytes_kept(length, sizes, state, kept)
    beside = max(kept - 2 * state, 0)  # of one step, while no others are taken, which work with two states
    count = min(int((budget - beside) // max(state, 1)), length)
    passes = fewest_passes(length, count) if count > 0 else length
    if passes < len(sizes) or (least > budget and count > 0 and not is_share):
        return SnapshotReversal(loop, count, while_loop)
    if least > budget and not is_share:
        raise too_little(budget, length, state, state + beside)
    return SegmentReversal(loop, sizes)
