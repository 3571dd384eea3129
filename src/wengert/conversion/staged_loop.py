"""Loops that a traced value decides about: trace the body until what it carries is known, then emit one loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from wengert.control import loop
from wengert.control.staged import with_common_constants
from wengert.conversion.branches import inputs_of, private
from wengert.conversion.places import UNBOUND, Place, read_by
from wengert.conversion.regions import Region, as_truth, content_of, is_traced, noted, traced
from wengert.conversion.slots import Slot
from wengert.core.aval import Aval, aval_of
from wengert.core.dispatch import apply
from wengert.core.source import caller, position_of
from wengert.core.tensor import Tensor
from wengert.traces.staging import Stage

__all__ = ["Counted", "staged_loop"]

Thunk = Callable[[], Any]
COUNTER = Aval((), np.dtype(np.int64))


class Counted(NamedTuple):
    """Hold how often a loop runs, and what gives the item of each iteration: rows of `rows` if that is there."""

    count: Any
    item: Callable[[Any], Any]
    rows: Tensor | None = None


class StagedLoop:
    """Be a loop that a traced value decides about.

    Inputs of its traced pieces are the counter or row, what is carried, and the variables that it only reads.

    Attributes:
        slots: the variables that it changes.
        readers: those that it reads.
        region: the traced body.
    """

    region: Region

    def __init__(
        self,
        kind: str,
        places: Sequence[Place],
        body: Callable[..., Any],
        test: Thunk | None,
        functions: Sequence[FunctionType],
        counted: Counted | None,
    ) -> None:
        self.kind = kind
        self.readers = read_by(functions, places)
        self.places = [*places, *self.readers]
        self.slots = [Slot(place, content_of(place.read())) for place in places]
        self.body = body
        self.test = test
        self.counted = counted
        self.note = (kind, "iterations", position_of(*caller()))
        self.rows = counted.rows if counted is not None and test is None else None

    def starts(self, stage: Stage) -> list[Any]:
        """Return what the places hold at the beginning of an iteration."""
        return [*(slot.start(stage) for slot in self.slots), *private(self.readers, stage)]

    def settle(self, optional: bool) -> bool:
        """Trace the body until what is carried is known; return False if the loop is optional and it cannot be."""
        defined = [slot for slot in self.slots if slot.undefined is None]
        while True:
            self.region = self.iteration()
            found = self.region.found[: len(self.slots)]
            grown = [slot.grow(content) for slot, content in zip(self.slots, found, strict=True)]
            if optional and any(slot.spoiled for slot in defined):
                return False
            if not any(grown):
                return True

    def iteration(self) -> Region:
        """Trace one iteration."""
        counted, items = self.counted, []

        def begin(stage: Stage) -> list[Any]:
            if counted is not None:
                row = None if self.rows is None else aval_of(self.rows)
                items.append(stage.input(COUNTER if row is None else Aval(row.shape[1:], row.dtype)))
            return self.starts(stage)

        def run() -> None:
            if counted is None:
                self.body()
            else:
                self.body(items[0] if self.rows is not None else counted.item(items[0]))

        with noted(*self.note):
            return traced(self.kind, self.places, begin, run)

    def emit(self) -> None:
        """Append the loop to the graph, and let the places hold what it leaves."""
        found = self.region.found[: len(self.slots)]
        pairs = list(zip(found, self.region.given, strict=False))
        init = [x for slot in self.slots for x in slot.initial()]
        outputs = [x for slot, content in zip(self.slots, found, strict=True) for x in slot.outputs(content)]
        step = self.region.function(outputs, [aval for slot in self.slots for aval in slot.avals])
        results = iter(self.repeated(step, init) if init else ())
        for slot, (after, before) in zip(self.slots, pairs, strict=True):
            slot.finish(results, after.value is before.value and slot.content.value is not UNBOUND)

    def repeated(self, step: Callable[..., Any], init: list[Any]) -> Sequence[Any]:
        """Append the loop to the graph, and return what it carries at its end."""
        read = inputs_of(self.readers)
        if self.rows is not None:
            end = len(read) + len(init)
            return self.apply(loop.scan_loop, [lambda *xs: step(xs[end], *xs[len(read) : end], *xs[: len(read)])], init)
        decide = self.decision()
        if self.counted is None:
            count = len(read)
            return self.apply(
                loop.while_loop,
                [lambda *xs: step(*xs[count:], *xs[:count]), lambda *xs: decide(*xs[count:], *xs[:count])],
                init,
            )
        count, most = len(read), self.counted.count

        def advance(*xs: Any) -> list[Any]:
            return [xs[count] + 1, *step(*xs[count:], *xs[:count])]

        def go_on(*xs: Any) -> list[Any]:
            more = xs[count] < most
            return [more if self.test is None else np.logical_and(more, decide(*xs[count + 1 :], *xs[:count])[0])]

        return self.apply(loop.while_loop, [advance, go_on], [np.int64(0), *init])[1:]

    def apply(
        self, primitive: Any, functions: Sequence[Callable[..., Sequence[Any]]], init: Sequence[Any]
    ) -> Sequence[Any]:
        """Append a loop with a body and a condition of (what is read, what is carried, a row)."""
        read = inputs_of(self.readers)
        avals = [aval_of(x) for x in (*read, *init)]
        row = [] if self.rows is None else [Aval(self.rows.shape[1:], self.rows.dtype)]
        graphs, captured = with_common_constants(functions, [[*avals, *row], avals][: len(functions)], self.kind)
        results: Sequence[Any] = apply(
            primitive,
            *captured,
            *read,
            *init,
            *([] if self.rows is None else [self.rows]),
            body=graphs[0],
            cond=graphs[1] if len(graphs) > 1 else None,
            constants=len(captured) + len(read),
            carried=len(init),
            length=None if self.rows is None else len(self.rows),
            reverse=False,
        )
        return results

    def decision(self) -> Callable[..., Sequence[Any]]:
        """Return whether to go on as a function of what is carried and read."""
        test = self.test
        if test is None:
            return lambda *_: [np.True_]
        with noted(*self.note):
            asked = traced(self.kind, self.places, self.starts, test)
        truth = asked.result
        if not is_traced(truth):
            constant = np.bool_(bool(truth))
            return lambda *_: [constant]
        decide = asked.function([truth], [aval_of(truth)])
        return lambda *xs: [as_truth(decide(*xs)[0])]


def staged_loop(
    kind: str,
    places: Sequence[Place],
    body: Callable[..., Any],
    test: Thunk | None,
    functions: Sequence[FunctionType],
    counted: Counted | None = None,
    optional: bool = False,
) -> bool:
    """Carry out a loop that a traced value decides about.

    Args:
        kind: the statement, for errors.
        places: the variables that the loop changes.
        body: one iteration, called with an item if the loop is counted.
        test: whether to go on, beside the count.
        functions: what the parts of the statement became.
        counted: how often it runs, for `for`.
        optional: whether to do nothing, and return False, if a variable cannot be carried.
    """
    found = StagedLoop(kind, places, body, test, functions, counted)
    if not found.settle(optional):
        return False
    found.emit()
    return True
