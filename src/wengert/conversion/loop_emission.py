"""Loops whose body is traced, appended to the graph as one equation; the places then hold what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from wengert.control.ambiguous_identity import forbid_changes, holders_in, keep_apart
from wengert.control.loop import scan_loop, while_loop
from wengert.control.reachable_state import ReachableState
from wengert.control.subgraphs import row_variable
from wengert.control.traced_bodies import with_common_constants
from wengert.control.variable_places import StatementSite
from wengert.conversion.branch_statements import choose
from wengert.conversion.known_numbers import NumbersInRounds
from wengert.conversion.known_rounds import Numbers
from wengert.conversion.staged_loop import Counted, StagedLoop, Thunk
from wengert.conversion.traced_regions import TracedRegion, as_truth, operand_of, trace_region
from wengert.core.diagnostics.store_guard import writes_traced
from wengert.core.graph.loop_spec import LoopSpec
from wengert.core.memory.write_watches import lose
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError, WengertError
from wengert.primitives.indexing.parts import rebind
from wengert.support.config import LOGGED
from wengert.support.function_contents import UNBOUND
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.written_out import ROLLING, strictly


class LoopEmission:
    """Append a loop to the graph, of which is known what it carries.

    Inputs of its pieces are the counter or row, what is carried, and the Tensors that it reads or writes to.

    Args:
        loop: traced until that was known.

    Attributes:
        own: how many arrays and numbers of places it carries; after these, the Tensors that it writes to.
    """

    def __init__(self, loop: StagedLoop) -> None:
        self.loop = loop
        self.own = 0

    def emit(self) -> None:
        """Append the loop to the graph, and let the places hold what it leaves."""
        loop, slots = self.loop, self.loop.slots.values()
        init = [x for slot in slots for x in slot.initial()]
        examples: list[Any] = [x for slot in slots for x in slot.examples]
        self.own = len(init)
        outputs = [x for slot in slots for x in slot.outputs(loop.region)]
        written = [x for x in loop.handles if id(x) in loop.written]
        init += map(operand_of, written)
        examples += init[self.own :]
        outputs += map(loop.region.end_of, written)
        left = loop.lists.leaves()
        avals = [*(a for slot in slots for a in slot.avals), *map(aval_of, written), *map(aval_of, left)]
        step = loop.region.function([*outputs, *map(loop.region.end_of, left)], avals)
        runs = bool(init or left) or loop.region.checks
        late = [slot for slot in slots if slot.late and not loop.certain]
        begun = loop.begins() if late else True
        results = list(self.repeat(step, init, examples) if runs else ())
        for k, known in self.known_numbers(init, [*outputs, *left]).items():
            results[k] = known
        if not runs:
            self.decision()  # refuses a condition that changes something
        self.leave(results, written)
        for slot in late:
            slot.leave_where(begun)

    def leave(self, results: Sequence[Any], written: Sequence[Tensor]) -> None:
        """Let places, Tensors that it writes to, and lists hold the results of the loop, in this order."""
        loop, slots, rest = self.loop, self.loop.slots.values(), iter(results)
        leaves = loop.carried_leaves()
        carried = [x for slot in slots for x in slot.finish([next(rest) for _ in slot.avals])]
        for slot in loop.twice_there():
            forbid_changes(list(holders_in(slot.place.read())), carried[0], loop.note)
        for slot in slots:
            if slot.replaces and not loop.certain:
                keep_apart(slot.value, slot.place.read(), loop.heap.around, carried[0], loop.note)
        for handle in written:
            rebind(handle, next(rest))
        for handle, text in loop.heap.lost.values():
            lose(handle, text)
        loop.aliases.finish(leaves, carried, loop.region, loop.certain)
        rows = list(rest)
        loop.lists.share(loop.region, rows, leaves, carried)
        loop.lists.extend(rows, 0 if loop.rounds is None else loop.rounds.length)

    def known_numbers(self, init: Sequence[Any], ends: Sequence[Any]) -> dict[int, Any]:
        """Return which results are Python's numbers that nothing traced decides, by their positions."""
        loop = self.loop
        if loop.rounds is None:
            return {}
        pairs = zip(loop.items, loop.sources, strict=True)
        counters = [(x._value, source) for x, source in pairs if isinstance(source, Numbers)]
        inputs = [x for slot in loop.slots.values() for x in slot.inputs if x is not None]
        carried = [(variable, start) for (_, variable), start in zip(inputs, init, strict=False)]
        numbers = NumbersInRounds(loop.region.stage.equations, counters, carried, ends)
        return numbers.run(loop.rounds.length, len(init))

    def arguments(self, carried: Sequence[Any], read: Sequence[Any]) -> list[Any]:
        """Return the inputs of a traced piece, but for the item, from what is carried and what is only read."""
        changing, rest = iter(carried[self.own :]), iter(read)
        more = [next(changing if id(x) in self.loop.written else rest) for x in self.loop.handles]
        return [*carried[: self.own], *more]

    def read(self) -> list[Any]:
        """Return what the loop reads and does not change."""
        return [operand_of(x) for x in self.loop.handles if id(x) not in self.loop.written]

    def repeat(self, step: Callable[..., Any], init: list[Any], examples: list[Any]) -> Sequence[Any]:
        """Append the loop to the graph, and return what it carries at its end, and then the rows that it leaves behind.

        `examples` are of what it carries in any iteration.
        """
        if self.loop.rounds is not None:
            return self.repeat_rounds(step, init, examples)
        count = len(self.read())
        decide = self.decision()
        if self.loop.counted is None:
            pieces = [lambda *xs, f=f: f(*self.arguments(xs[count:], xs[:count])) for f in (step, decide)]
            return self.apply(while_loop, pieces, init, examples)
        most = self.loop.counted.count

        def advance(*xs: Any) -> list[Any]:
            return [xs[count] + 1, *step(xs[count], *self.arguments(xs[count + 1 :], xs[:count]))]

        def go_on(*xs: Any) -> list[Any]:
            more = xs[count] < most
            if self.loop.test is None:
                return [more]
            return [np.logical_and(more, decide(*self.arguments(xs[count + 1 :], xs[:count]))[0])]

        return self.apply(while_loop, [advance, go_on], [0, *init], [0, *examples])[1:]

    def repeat_rounds(self, step: Callable[..., Any], init: list[Any], examples: list[Any]) -> Sequence[Any]:
        """Do that for a loop whose rounds are known: it carries numbers, and reads rows."""
        numbers = [x for x in self.loop.sources if isinstance(x, Numbers)]
        starts = [x.start for x in numbers]
        first = len(self.read())
        second = first + len(init)
        third = second + len(numbers)

        def advance(*xs: Any) -> list[Any]:
            own, rows = iter(xs[second:third]), iter(xs[third:])
            parts = [next(own) if isinstance(x, Numbers) else next(rows) for x in self.loop.sources]
            found = step(*parts, *self.arguments(xs[first:second], xs[:first]))
            following = [x + number.step for x, number in zip(xs[second:third], numbers, strict=True)]
            return [*found[: len(init)], *following, *found[len(init) :]]

        found = self.apply(scan_loop, [advance], [*init, *starts], [*examples, *starts])
        return [*found[: len(init)], *found[len(init) + len(numbers) :]]

    def apply(
        self,
        primitive: Any,
        functions: Sequence[Callable[..., Sequence[Any]]],
        init: Sequence[Any],
        examples: Sequence[Any],
    ) -> Sequence[Any]:
        """Append a loop with a body and a condition of (what is read, what is carried, rows)."""
        loop = self.loop
        read = self.read()
        given = [*read, *examples]
        rows = list(map(row_variable, loop.sequences))
        graphs, captured = with_common_constants(functions, [[*given, *rows], given][: len(functions)], loop.kind)
        length = None if loop.rounds is None else loop.rounds.length
        results: Sequence[Any] = apply(
            primitive,
            *captured,
            *read,
            *init,
            *loop.sequences,
            body=graphs[0],
            cond=graphs[1] if len(graphs) > 1 else None,
            spec=LoopSpec(len(captured) + len(read), len(init), length),
        )
        return results

    def decision(self) -> Callable[..., Sequence[Any]]:
        """Return whether to go on as a function of what is carried and read."""
        loop = self.loop
        test = loop.test
        if test is None:
            return lambda *_: [np.True_]
        asked = trace_region(loop.note, loop.heap, test, loop.start)
        if asked.written or changes(asked):
            raise GraphError(
                loop.kind,
                "a condition that changes what there was before it",
                "a condition that only reads is needed",
                "Make the changes in the body",
                place=loop.note[2],
            )
        truth = asked.result
        if not is_staged(truth):
            constant = np.bool_(bool(truth))
            return lambda *_: [constant]
        decide = asked.function([asked.end_of(truth)], [aval_of(truth)])
        return lambda *xs: [as_truth(decide(*xs)[0])]


def changes(asked: TracedRegion) -> bool:
    """Tell whether a condition changes variables or containers."""
    return bool(asked.arrays) or any(
        value is not asked.starts.get(identity, {}).get(key, UNBOUND)
        for identity, contents in asked.contents.items()
        for key, value in contents.items()
    )


def settled_or_refused(found: StagedLoop) -> bool:
    """Trace the body of a loop that may be written out; return False if it must be."""
    before = refusal_count()
    try:
        with strictly(True):
            found.settle(True)
    except WengertError as error:  # of what the loop might raise as well if it is written out
        if writes_traced(error) and not ROLLING.making:
            raise
        forgive(before)
        say_loop(found, f"is written out, {error.args[0]}")
        return False
    return True


def say_loop(loop: StagedLoop, what: str) -> None:
    """Say what became of a loop of known rounds, if somebody asks."""
    if "loops" in LOGGED:
        from wengert.support.logs import say

        count = f" of {loop.rounds.length} rounds" if loop.kind == "for" and loop.rounds is not None else ""
        say("loops", f"{loop.note[2]}\n  a loop{count} {what}")


def staged_loop(
    kind: str,
    site: StatementSite,
    body: Callable[..., Any],
    test: Thunk | None,
    functions: Sequence[FunctionType],
    counted: Counted | None = None,
    peeled: bool = False,
) -> None:
    """Carry out a loop that a traced value decides about.

    `test` is whether to go on, beside the count, and `peeled` whether the first iteration has been carried out apart.
    """
    found = StagedLoop(kind, site, body, test, functions, counted, peeled)
    found.settle(False)
    if peeled or not found.first_differs():
        LoopEmission(found).emit()
        return
    more = found.begins()

    def first_and_rest() -> None:
        rest = counted
        if counted is None:
            body()
        else:
            body(counted.item(0))
            rest = Counted(counted.count - 1, lambda k: counted.item(k + 1))
        staged_loop(kind, site, body, test, functions, rest, peeled=True)

    if is_staged(more):
        choose(as_truth(more), ReachableState(functions, site), first_and_rest, lambda: None, found.note)
    elif more:
        first_and_rest()


def roll_loop(
    site: StatementSite,
    body: FunctionType,
    test: Thunk | None,
    counted: Counted,
    peeled: bool,
    each: Callable[[Any], Any] | None = None,
) -> tuple[bool, bool]:
    """Carry out a loop that could be written out as one equation, or do nothing; `each` calls a body without items.

    Returns:
        Whether it was carried out, and, if not, whether it may be once its first iteration has been.
    """
    found = StagedLoop("for", site, each or body, test, [body], counted, peeled)
    if not settled_or_refused(found):
        return False, found.changes_kind
    if not peeled and found.first_differs():
        return False, True
    LoopEmission(found).emit()
    say_loop(found, "is one equation")
    return True, False
