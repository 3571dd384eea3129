"""Loops that a traced value decides about: trace the body until what it carries is known, then emit one loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from wengert.control import loop
from wengert.control.ambiguous_identity import forbid_changes, has_other_name, holders_in, identity_error, keep_apart
from wengert.control.reachable_state import ReachableState
from wengert.control.subgraphs import row_variable
from wengert.control.traced_bodies import with_common_constants
from wengert.control.variable_places import Holder, StatementSite
from wengert.conversion.appended_lists import AppendedLists
from wengert.conversion.branch_statements import and_, choose
from wengert.conversion.carried_values import Aliases, CarriedLeaf, CarriedPlace
from wengert.conversion.known_numbers import NumbersInRounds
from wengert.conversion.known_rounds import KnownRounds, Numbers, Source
from wengert.conversion.traced_regions import (
    TracedRegion,
    as_truth,
    is_unchanged,
    operand_of,
    shared_text,
    trace_region,
)
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.graph.equation import Variable
from wengert.core.graph.loop_spec import LoopSpec
from wengert.core.memory.possible_aliases import may_share
from wengert.core.memory.views import base_and_path
from wengert.core.memory.write_watches import lose
from wengert.core.values.aval import Aval, aval_of, is_number
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError, WengertError
from wengert.primitives.indexing.parts import rebind
from wengert.support.caches import Cache
from wengert.support.function_contents import UNBOUND
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.staging import Staging
from wengert.traces.whole_number_bounds import set_bounds
from wengert.traces.written_out import strictly

Thunk = Callable[[], Any]
EXPECTED: Cache[CodeType, dict[str, list[Aval | None]]] = Cache()
"""As what a loop was found to carry the leaves of its variables, by its code: nested loops are traced many times."""
COUNTER = Aval((), np.dtype(np.int64), weak=True)


class Counted(NamedTuple):
    """Hold how often a loop runs, and what gives the item of each iteration, by its number.

    `rounds` is what it goes through, and `appended` the names of what it does nothing but append to, if it is known
    how often it runs.
    """

    count: Any
    item: Callable[[Any], Any]
    rounds: KnownRounds | None = None
    appended: Sequence[str] = ()


class StagedLoop:
    """Be a loop that a traced value decides about.

    Inputs of its traced pieces are the counter or row, what is carried, and the Tensors that it reads or writes to.

    Attributes:
        heap: what it can reach.
        slots: the places that it changes, by identity.
        aliases: which arrays may share memory at the beginning of an iteration.
        certain: whether it has an iteration for sure.
        handles: the Tensors that it reads or writes to.
        written: the identities of those that an iteration was found to write to.
        changes_kind: whether an iteration leaves a variable another shape or type than it had before the loop.
        region: the traced body.
        shared: the ndarrays that others hold too and that what is carried may be, by identity.
    """

    region: TracedRegion
    shared: Sequence[int] = ()

    def __init__(
        self,
        kind: str,
        site: StatementSite,
        body: Callable[..., Any],
        test: Thunk | None,
        functions: Sequence[FunctionType],
        counted: Counted | None,
        peeled: bool,
    ) -> None:
        self.kind = kind
        self.note = (kind, "iterations", position_of(*caller()))
        self.heap = ReachableState(functions, site)
        self.slots = {place.identity: CarriedPlace(place, self.note) for place in self.heap.variables_of(site)}
        self.body = body
        self.test = test
        self.code = functions[0].__code__
        known = EXPECTED.get(self.code)
        for slot in self.slots.values():
            slot.expect(None if known is None else known.get(slot.place.spelled, ()))
        self.counted = counted
        self.written: set[int] = set()
        self.passes = self.strangers = 0
        self.rounds = counted.rounds if counted is not None and test is None else None
        self.items: list[Tensor] = []
        self.row_written = self.changes_kind = False
        self.peeled = peeled
        self.aliases = Aliases(shared_text(self.note))
        self.lists = AppendedLists(self.heap, counted.appended if counted is not None and test is None else ())
        more = counted is not None and is_number(counted.count) and counted.count > 0
        self.certain = more and (test is None or test() is True)

    @property
    def handles(self) -> list[Tensor]:
        """The Tensors that the loop reads or writes to."""
        return list(self.heap.handles.values())

    def start(self, stage: Staging) -> None:
        """Let the places hold what they do at the beginning of an iteration."""
        for slot in self.slots.values():
            slot.start(stage)
        starts = {key: x[0] for slot in self.slots.values() for key, x in slot.starts()}
        self.aliases.start(starts)

    def settle(self, optional: bool) -> bool:
        """Trace the body until what is carried is known; return False if the loop is optional and it cannot be."""
        defined = [slot for slot in self.slots.values() if slot.undefined is None]
        while True:
            if not self.traced_once():
                continue
            surprises = [slot.is_surprised(self.value_left(slot)) for slot in self.slots.values()]
            if any(surprises):
                continue
            if optional and (self.resized_holders() or self.region.arrays or not self.lists.fit(self.region)):
                return False
            if self.arrays_written():
                continue
            news = [slot.grow(self.value_left(slot), self.region, self.certain) for slot in self.slots.values()]
            if self.arrays_shared():
                continue
            news += [slot.lie_anew(self.region) for slot in self.slots.values()]
            news += [self.others_changed(), self.others_written(), self.others_lost(), self.others_aliased()]
            self.changes_kind = any(slot.spoiled for slot in defined)
            if optional and (self.writes_rows() or self.changes_kind):
                return False
            if not any(news):
                if optional and not (self.depends_on_traced() and self.appends_alone()):
                    return False
                self.require_one_name()
                self.remember()
                return True

    def appends_alone(self) -> bool:
        """Tell whether no iteration writes to what another one appended to a list."""
        starts = [x for slot in self.slots.values() for x in slot.inputs if x is not None]
        written = any(x._value is not value for x, value in starts)
        return self.lists.stand_alone(self.carried_leaves(), written)

    def depends_on_traced(self) -> bool:
        """Tell whether an iteration reads something that is traced besides its number."""
        used = {x for equation in self.region.stage.equations for x in equation.inputs if type(x) is Variable}
        given = [*self.sequences, *self.region.stage.captured_tensors()]
        starts = self.region.stage.inputs[len(self.region.stage.inputs) - len(self.handles) :]
        given += [x for x, start in zip(self.handles, starts, strict=True) if start in used]
        given += [x for slot in self.slots.values() for x in slot.olds]
        return any(map(is_staged, given))

    @property
    def sources(self) -> Sequence[Source]:
        """What an iteration receives an element or a row of: its number alone, or nothing, if that is all."""
        if self.rounds is not None:
            return self.rounds.sources
        return () if self.counted is None else (Numbers(0, 1),)

    @property
    def sequences(self) -> list[Tensor]:
        """The arrays of which an iteration receives a row."""
        return [x for x in self.sources if type(x) is Tensor]

    def twice_there(self) -> list[CarriedPlace]:
        """Return the places where an iteration leaves a container or object that is in two of them, or twice in one.

        Each place begins the next iteration with one of its own, which must stay as it is.
        """
        held = {slot: list(holders_in(self.value_left(slot))) for slot in self.slots.values() if slot.replaces}
        times = Counter(id(holder.target) for holders in held.values() for holder in holders)
        return [slot for slot, holders in held.items() if any(times[id(x.target)] > 1 for x in holders)]

    def require_one_name(self) -> None:
        """Raise if an iteration changes what the one before it left in two places."""
        for slot in self.twice_there():
            if slot.wrote or slot.wrote_inside:
                raise identity_error(slot.value, self.note)

    def traced_once(self) -> bool:
        """Trace the body; tell whether that counts: not if it refuses what is only expected to be no constant."""
        count = refusal_count()
        error = None
        try:
            self.region = self.iteration()
            for slot in self.slots.values():
                slot.look(self.region)
        except WengertError as raised:
            error = raised
        if error is None and refusal_count() == count:
            return True
        unexpected = [slot.unexpect() for slot in self.slots.values()]
        if any(unexpected):
            forgive(count)
            return False
        if error is not None:
            raise error
        return True

    def value_left(self, slot: CarriedPlace) -> Any:
        """Return what an iteration leaves in a place."""
        return self.region.value(slot.place.holder, slot.place.key)

    def remember(self) -> None:
        """Let the next trace of this loop expect what has been found out."""
        EXPECTED[self.code] = {slot.place.spelled: slot.replaced_avals for slot in self.slots.values()}

    def writes_rows(self) -> bool:
        """Tell whether the body writes to the rows that the loop goes through."""
        return self.row_written or any(id(base_and_path(x)[0]) in self.written for x in self.sequences)

    def resized_holders(self) -> list[Holder]:
        """Return the containers whose length or keys an iteration changes."""
        changed = {x: found for x, found in self.region.contents.items() if x not in self.lists.holders}
        holders = [(self.heap.holders[x], self.heap.kept[x], found) for x, found in changed.items()]
        return [
            x for x, kept, found in holders if not x.variable and x.differs(dict.fromkeys(kept), dict.fromkeys(found))
        ]

    def others_changed(self) -> bool:
        """Take in the places besides the loop's own variables that the body changes; tell whether there are more."""
        for holder in self.resized_holders():
            raise GraphError(
                self.kind,
                f"an iteration changes the length or the keys of the {type(holder.target).__name__} {holder.name}",
                "a loop that a traced value decides about must keep containers",
                "Use an array that is long enough, or wengert.scan",
                place=self.note[2],
            )
        before = len(self.slots)
        for identity, contents in self.region.contents.items():
            if identity in self.lists.holders:
                continue
            holder, kept = self.heap.holders[identity], self.heap.kept[identity]
            for key in {**kept, **contents}:
                one, other = kept.get(key, UNBOUND), contents.get(key, UNBOUND)
                if (identity, key) not in self.slots and not is_unchanged(one, other):
                    slot = self.slots[identity, key] = CarriedPlace(self.heap.place(holder, key), self.note)
                    slot.grow(other, self.region, self.certain)
        return len(self.slots) > before

    def others_written(self) -> bool:
        """Take in the Tensors that the body wrote to; tell whether some were no inputs and have to become some.

        Those that it makes anew in each iteration cannot be told from those of outside if the tape made them. There
        are as many of them each time.
        """
        self.passes += 1
        handles = self.heap.handles
        strangers = {id(x): x for x in self.region.written if id(x) not in handles}
        anew = self.passes > 2 and len(strangers) == self.strangers
        self.strangers = len(strangers)
        self.heap.handles.update({} if anew else strangers)
        self.written |= {id(x) for x in self.region.written} & handles.keys()
        return bool(strangers) and not anew

    def others_lost(self) -> bool:
        """Leave out the Tensors of which nobody knows what they hold then; tell whether there are new ones."""
        before = len(self.heap.lost)
        self.heap.lost.update(self.region.lost)
        for identity in self.heap.lost:
            self.heap.handles.pop(identity, None)
        return len(self.heap.lost) > before

    def others_aliased(self) -> bool:
        """Take in which arrays may share memory at the beginning of an iteration; tell whether there are more."""
        leaves = self.carried_leaves()
        grown = self.aliases.grow({leaf.key: leaf.end for leaf in leaves}, self.region)
        return (self.peeled and self.aliases.grow({leaf.key: leaf.old for leaf in leaves}, self.region)) or grown

    def carried_leaves(self) -> list[CarriedLeaf]:
        """Return the leaves that are carried, with Tensors that stand for ndarrays."""

        def handle_of(value: Any) -> Any:
            return self.region.handle_of(value, self.shared)

        return [leaf._replace(old=handle_of(leaf.old), end=handle_of(leaf.end)) for leaf in self.leaves()]

    def leaves(self) -> list[CarriedLeaf]:
        """Return the leaves that are carried."""
        return [leaf for slot in self.slots.values() for leaf in slot.carries(self.region)]

    def arrays_written(self) -> bool:
        """Let Tensors take the place of the ndarrays that the body wrote to; tell whether there are any."""
        arrays = self.region.arrays
        self.promote(arrays)
        return bool(arrays)

    def arrays_shared(self) -> bool:
        """Let Tensors take the place of the ndarrays that others hold too and that what is carried may be.

        Returns:
            Whether there are any.
        """
        replaced = Counter(id(slot.value) for slot in self.slots.values() if slot.avals)
        self.shared = self.heap.find_shared([x for leaf in self.leaves() for x in (leaf.old, leaf.end)], replaced)
        promoted = list(filter(self.heap.can_promote, self.shared))
        self.promote(promoted)
        return bool(promoted)

    def promote(self, identities: Sequence[int]) -> None:
        """Let Tensors take the place of ndarrays."""
        tensors = self.heap.promote(identities, self.note)
        for slot in self.slots.values() if tensors else ():
            slot.replace(tensors)

    def first_differs(self) -> bool:
        """Tell whether the first iteration writes to an array that others may hold too, which later ones do not.

        The variable that holds it before the loop gets another one in each iteration. Or the variable sees what the
        first iteration writes to that array by another road. So it is with containers and objects.
        """
        replacing = [slot for slot in self.slots.values() if slot.replaces]
        if any(
            slot.wrote_inside or (slot.wrote and has_other_name(slot.value, self.heap.around, slot.place))
            for slot in replacing
        ):
            return True
        written = [x for x in self.handles if id(x) in self.written]
        olds = [base for leaf in self.carried_leaves() if (base := self.aliases.base(leaf.old)) is not None]
        return not self.written <= {id(x) for x in self.region.written} or any(
            may_share(old, x) for old in olds for x in written
        )

    def iteration(self) -> TracedRegion:
        """Trace one iteration."""
        counted = self.counted

        def begin(stage: Staging) -> None:
            self.items = [item_input(stage, x, counted.count if counted else 0) for x in self.sources]
            pairs = zip(self.items, self.sources, strict=True)
            self.aliases.rows = [(item, source) for item, source in pairs if type(source) is Tensor]
            self.start(stage)

        def run() -> None:
            if counted is None:
                self.body()
            elif self.rounds is None:
                self.body(counted.item(self.items[0]))
            else:
                before = [x._value for x in self.items]
                self.body(self.rounds.build(self.items))
                self.row_written = any(x._value is not y for x, y in zip(self.items, before, strict=True))

        return trace_region(self.note, self.heap, run, begin)

    def emit(self) -> None:
        """Append the loop to the graph, and let the places hold what it leaves."""
        slots = self.slots.values()
        init = [x for slot in slots for x in slot.initial()]
        examples: list[Any] = [x for slot in slots for x in slot.examples]
        self.own = len(init)
        outputs = [x for slot in slots for x in slot.outputs(self.region)]
        written = [x for x in self.handles if id(x) in self.written]
        init += map(operand_of, written)
        examples += init[self.own :]
        outputs += map(self.region.end_of, written)
        left = self.lists.leaves()
        avals = [*(a for slot in slots for a in slot.avals), *map(aval_of, written), *map(aval_of, left)]
        step = self.region.function([*outputs, *map(self.region.end_of, left)], avals)
        runs = bool(init or left) or self.region.checks
        results = list(self.repeat(step, init, examples) if runs else ())
        for k, known in self.known_numbers(init, [*outputs, *left]).items():
            results[k] = known
        if not runs:
            self.decision()  # refuses a condition that changes something
        rest = iter(results)
        leaves = self.carried_leaves()
        carried = [x for slot in slots for x in slot.finish([next(rest) for _ in slot.avals])]
        for slot in self.twice_there():
            forbid_changes(list(holders_in(slot.place.read())), carried[0], self.note)
        for slot in slots:
            if slot.replaces and not self.certain:
                keep_apart(slot.value, slot.place.read(), self.heap.around, carried[0], self.note)
        for handle in written:
            rebind(handle, next(rest))
        for handle, text in self.heap.lost.values():
            lose(handle, text)
        self.aliases.finish(leaves, carried, self.region, self.certain)
        rows = list(rest)
        self.lists.share(self.region, rows, leaves, carried)
        self.lists.extend(rows, 0 if self.rounds is None else self.rounds.length)

    def known_numbers(self, init: Sequence[Any], ends: Sequence[Any]) -> dict[int, Any]:
        """Return which results are Python's numbers that nothing traced decides, by their positions."""
        if self.rounds is None:
            return {}
        counters = [(x._value, s) for x, s in zip(self.items, self.sources, strict=True) if isinstance(s, Numbers)]
        inputs = [x for slot in self.slots.values() for x in slot.inputs if x is not None]
        carried = [(variable, start) for (_, variable), start in zip(inputs, init, strict=False)]
        numbers = NumbersInRounds(self.region.stage.equations, counters, carried, ends)
        return numbers.run(self.rounds.length, len(init))

    def arguments(self, carried: Sequence[Any], read: Sequence[Any]) -> list[Any]:
        """Return the inputs of a traced piece, but for the item, from what is carried and what is only read."""
        changing, rest = iter(carried[self.own :]), iter(read)
        return [*carried[: self.own], *(next(changing if id(x) in self.written else rest) for x in self.handles)]

    def read(self) -> list[Any]:
        """Return what the loop reads and does not change."""
        return [operand_of(x) for x in self.handles if id(x) not in self.written]

    def repeat(self, step: Callable[..., Any], init: list[Any], examples: list[Any]) -> Sequence[Any]:
        """Append the loop to the graph, and return what it carries at its end, and then the rows that it leaves behind.

        `examples` are of what it carries in any iteration.
        """
        if self.rounds is not None:
            return self.repeat_rounds(step, init, examples)
        count = len(self.read())
        decide = self.decision()
        if self.counted is None:
            pieces = [lambda *xs, f=f: f(*self.arguments(xs[count:], xs[:count])) for f in (step, decide)]
            return self.apply(loop.while_loop, pieces, init, examples)
        most = self.counted.count

        def advance(*xs: Any) -> list[Any]:
            return [xs[count] + 1, *step(xs[count], *self.arguments(xs[count + 1 :], xs[:count]))]

        def go_on(*xs: Any) -> list[Any]:
            more = xs[count] < most
            if self.test is None:
                return [more]
            return [np.logical_and(more, decide(*self.arguments(xs[count + 1 :], xs[:count]))[0])]

        return self.apply(loop.while_loop, [advance, go_on], [0, *init], [0, *examples])[1:]

    def repeat_rounds(self, step: Callable[..., Any], init: list[Any], examples: list[Any]) -> Sequence[Any]:
        """Do that for a loop whose rounds are known: it carries numbers, and reads rows."""
        numbers = [x for x in self.sources if isinstance(x, Numbers)]
        starts = [x.start for x in numbers]
        first = len(self.read())
        second = first + len(init)
        third = second + len(numbers)

        def advance(*xs: Any) -> list[Any]:
            own, rows = iter(xs[second:third]), iter(xs[third:])
            parts = [next(own) if isinstance(x, Numbers) else next(rows) for x in self.sources]
            found = step(*parts, *self.arguments(xs[first:second], xs[:first]))
            following = [x + number.step for x, number in zip(xs[second:third], numbers, strict=True)]
            return [*found[: len(init)], *following, *found[len(init) :]]

        found = self.apply(loop.scan_loop, [advance], [*init, *starts], [*examples, *starts])
        return [*found[: len(init)], *found[len(init) + len(numbers) :]]

    def apply(
        self,
        primitive: Any,
        functions: Sequence[Callable[..., Sequence[Any]]],
        init: Sequence[Any],
        examples: Sequence[Any],
    ) -> Sequence[Any]:
        """Append a loop with a body and a condition of (what is read, what is carried, rows)."""
        read = self.read()
        given = [*read, *examples]
        rows = list(map(row_variable, self.sequences))
        graphs, captured = with_common_constants(functions, [[*given, *rows], given][: len(functions)], self.kind)
        results: Sequence[Any] = apply(
            primitive,
            *captured,
            *read,
            *init,
            *self.sequences,
            body=graphs[0],
            cond=graphs[1] if len(graphs) > 1 else None,
            spec=LoopSpec(len(captured) + len(read), len(init), None if self.rounds is None else self.rounds.length),
        )
        return results

    def changes(self, asked: TracedRegion) -> bool:
        """Tell whether the condition changes variables or containers."""
        return bool(asked.arrays) or any(
            value is not asked.starts.get(identity, {}).get(key, UNBOUND)
            for identity, contents in asked.contents.items()
            for key, value in contents.items()
        )

    def decision(self) -> Callable[..., Sequence[Any]]:
        """Return whether to go on as a function of what is carried and read."""
        test = self.test
        if test is None:
            return lambda *_: [np.True_]
        asked = trace_region(self.note, self.heap, test, self.start)
        if asked.written or self.changes(asked):
            raise GraphError(
                self.kind,
                "a condition that changes what there was before it",
                "a condition that only reads is needed",
                "Make the changes in the body",
                place=self.note[2],
            )
        truth = asked.result
        if not is_staged(truth):
            constant = np.bool_(bool(truth))
            return lambda *_: [constant]
        decide = asked.function([asked.end_of(truth)], [aval_of(truth)])
        return lambda *xs: [as_truth(decide(*xs)[0])]


def item_input(stage: Staging, source: Source, count: Any) -> Tensor:
    """Return what stands for an element or a row of something in any of its rounds."""
    if type(source) is Tensor:
        row = row_variable(source)
        return stage.input(row.aval, "", row.strides)
    item = stage.input(COUNTER)
    if is_number(count):
        set_bounds(item._value, *sorted((source.at(0), source.at(count - 1))))
    return item


def settled_or_refused(found: StagedLoop) -> bool:
    """Trace the body of a loop that may be written out; return False if it must be."""
    before = refusal_count()
    try:
        with strictly(True):
            return found.settle(True)
    except WengertError:  # of what the loop might raise as well if it is written out
        forgive(before)
        return False


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
        found.emit()
        return
    more: Any = True if counted is None else counted.count > 0
    if test is not None:
        more = and_(more, test)

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
    site: StatementSite, body: FunctionType, test: Thunk | None, counted: Counted, peeled: bool
) -> tuple[bool, bool]:
    """Carry out a loop that could be written out as one equation, or do nothing.

    Returns:
        Whether it was carried out, and, if not, whether it may be once its first iteration has been.
    """
    found = StagedLoop("for", site, body, test, [body], counted, peeled)
    if not settled_or_refused(found):
        return False, found.changes_kind
    if not peeled and found.first_differs():
        return False, True
    found.emit()
    return True, False
