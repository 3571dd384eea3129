"""Loops that a traced value decides about: trace the body until what it carries is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from wengert.control.ambiguous_identity import has_other_name, holders_in, identity_error
from wengert.control.reachable_state import ReachableState
from wengert.control.subgraphs import row_variable
from wengert.control.variable_places import Holder, StatementSite
from wengert.conversion.appended_lists import Appended, AppendedLists
from wengert.conversion.branch_statements import and_
from wengert.conversion.carried_values import Aliases, CarriedLeaf, CarriedPlace
from wengert.conversion.known_numbers import kind_of
from wengert.conversion.known_rounds import KnownRounds, Numbers, Source
from wengert.conversion.tabulated_calls import CarriedNumber, Columns, Tables, TracedRounds
from wengert.conversion.traced_regions import (
    TracedRegion,
    is_unchanged,
    shared_text,
    trace_region,
)
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.graph.equation import Variable
from wengert.core.memory.possible_aliases import may_share
from wengert.core.memory.views import base_and_path
from wengert.core.values.aval import Aval, is_number
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError, WengertError
from wengert.support.caches import Cache
from wengert.support.function_contents import UNBOUND
from wengert.support.records import NamedTuple
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.staging import Staging
from wengert.traces.whole_number_bounds import not_alike, set_bounds
from wengert.traces.written_out import ROLLING

Thunk = Callable[[], Any]
EXPECTED: Cache[CodeType, dict[str, list[Aval | None]]] = Cache()
"""As what a loop was found to carry the leaves of its variables, by its code: nested loops are traced many times."""
COUNTER = Aval((), np.dtype(np.int64), weak=True)


class Counted(NamedTuple):
    """Hold how often a loop runs, and what gives the item of each iteration, by its number.

    `rounds` is what it goes through, and `appended` lists that it appends to, if it is known how often it runs.
    """

    count: Any
    item: Callable[[Any], Any]
    rounds: KnownRounds | None = None
    appended: Appended = ()


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
        self.traced_rounds: TracedRounds | None = None
        self.tables: Tables = {}
        self.columns: Columns = {}
        self.columns_may_come = True
        self.row_written = self.changes_kind = False
        self.peeled = peeled
        self.aliases = Aliases(shared_text(self.note))
        self.lists = AppendedLists(self.heap, counted.appended if counted is not None and test is None else ())
        self.slots.update({x.place.identity: x for x in self.lists.last_items(self.note)})
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

    def settle(self, optional: bool) -> None:
        """Trace the body until what is carried is known.

        Raises:
            TracedTruthError: the loop is optional, and rounds that are written out may differ.
        """
        defined = [slot for slot in self.slots.values() if slot.undefined is None]
        while True:
            if not self.traced_once():
                continue
            surprises = [slot.is_surprised(self.value_left(slot)) for slot in self.slots.values()]
            if any(surprises):
                continue
            if optional:
                self.require_same_holders()
            if self.arrays_written():
                continue
            news = [
                slot.grow(self.value_left(slot), self.region, self.certain, slot.place.name in self.heap.halves)
                for slot in self.slots.values()
            ]
            if self.arrays_shared():
                continue
            news += [slot.lie_anew(self.region) for slot in self.slots.values()]
            news += [self.others_changed(), self.others_written(), self.others_lost(), self.others_aliased()]
            changed = [slot.place.spelled for slot in defined if slot.spoiled]
            self.changes_kind = bool(changed)
            if optional:
                self.require_same_kinds(changed)
            if not any(news) and not self.other_columns():
                if optional:
                    self.require_worth()
                self.require_one_name()
                self.remember()
                return

    def require_same_holders(self) -> None:
        """Raise if a round changes the length of a container, or writes to an ndarray that was there before."""
        if resized := self.resized_holders():
            what = "which a round changes, and does not append to alone (an array may be written to in its place)"
            raise not_alike(f"the length or the keys of {resized[0].name}, {what}")
        if self.region.arrays:
            error = not_alike("an ndarray that a round writes to")
            error.writes = True
            raise error
        if not self.lists.fit(self.region):
            raise not_alike("a list to which a round appends what is no array, number or constant of its own")

    def begins(self) -> Any:
        """Return whether there is an iteration, asked before the loop."""
        more: Any = True if self.counted is None else self.counted.count > 0
        return more if self.test is None else and_(more, self.test)

    def require_same_kinds(self, changed: Sequence[str]) -> None:
        """Raise if a round writes to rows that the loop goes through, or leaves other types and shapes."""
        if self.writes_rows():
            raise not_alike("the rows that it goes through, which a round writes to")
        if changed:
            raise not_alike(f"{changed[0]}, which has another type or shape after a round than before")

    def require_worth(self) -> None:
        """Raise if nothing traced is in a round, or one may write to what another one appended to a list."""
        if not self.depends_on_traced():
            raise not_alike("numbers that are known alone")
        if not self.appends_alone():
            raise not_alike("arrays that a round appends to a list, and another one may write to")

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
        if any(unexpected) or self.numbers_rounds():
            forgive(count)
            return False
        if error is not None:
            raise error
        return True

    def numbers_rounds(self) -> bool:
        """Let rounds that go through rows alone have a number, if a table was asked for; tell whether it was."""
        if self.rounds is None or self.traced_rounds is None or not self.traced_rounds.asks_for_number:
            return False
        self.traced_rounds = None
        self.rounds = self.rounds._replace(sources=(*self.rounds.sources, Numbers(0, 1)))
        return True

    def value_left(self, slot: CarriedPlace) -> Any:
        """Return what an iteration leaves in a place."""
        return slot.value_left(self.region)

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
                "Use an array that is long enough, or wengert.scan, or pass in static_argnums how often it runs",
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
        counted, around = self.counted, ROLLING.rounds

        def begin(stage: Staging) -> None:
            self.items = [item_input(stage, x, counted.count if counted else 0) for x in self.sources]
            self.traced_rounds = ROLLING.rounds = self.begin_rounds(stage)
            pairs = zip(self.items, self.sources, strict=True)
            self.aliases.rows = [(item, source) for item, source in pairs if type(source) is Tensor]
            self.start(stage)
            if self.traced_rounds is not None:
                self.traced_rounds.carried = [number for number, _ in self.carried_numbers()]

        def run() -> None:
            if counted is None:
                self.body()
            elif self.rounds is None:
                self.body(counted.item(self.items[0]))
            else:
                before = [x._value for x in self.items]
                self.body(self.rounds.build(self.items))
                self.row_written = any(x._value is not y for x, y in zip(self.items, before, strict=True))

        try:
            return trace_region(self.note, self.heap, run, begin)
        finally:
            ROLLING.rounds = around

    def begin_rounds(self, stage: Staging) -> TracedRounds | None:
        """Return what is known of the rounds while one is traced; None if nobody knows what they go through."""
        pairs = zip(self.items, self.sources, strict=True)
        counters = [(item, source) for item, source in pairs if type(source) is Numbers]
        if self.counted is None or not is_number(self.counted.count):
            return None
        return TracedRounds(
            stage, self.counted.count, counters, self.tables, self.columns, may_come=self.columns_may_come
        )

    def carried_numbers(self) -> list[tuple[CarriedNumber, int]]:
        """Return the numbers of Python's that are carried, each with its place among all that is."""
        carried = [
            (CarriedNumber((slot.place.identity, k), x[1], slot.leaves[k]))
            for slot in self.slots.values()
            for k, x in enumerate(slot.inputs)
            if x is not None
        ]
        return [(x, k) for k, x in enumerate(carried) if x.variable.weak and type(x.start) is kind_of(x.variable)]

    def other_columns(self) -> bool:
        """Look what numbers rounds carry, if calls of Python's ask; tell whether they are answered otherwise now."""
        traced = self.traced_rounds
        if traced is None or not (traced.expected or self.columns):
            return False
        ends = [x for slot in self.slots.values() for x in slot.outputs(self.region)]
        columns = traced.look_up_carried([ends[k] for _, k in self.carried_numbers()])
        if not traced.expected and columns == self.columns:
            return False
        self.columns_may_come = bool(traced.expected) and columns.keys() > self.columns.keys()
        if not traced.expected and not columns.keys() > self.columns.keys():
            raise not_alike("a number that Python's functions are called with, and that rounds change otherwise")
        self.columns = columns
        self.tables.clear()
        return True


def item_input(stage: Staging, source: Source, count: Any) -> Tensor:
    """Return what stands for an element or a row of something in any of its rounds."""
    if type(source) is Tensor:
        row = row_variable(source)
        return stage.input(row.aval, "", row.strides)
    item = stage.input(COUNTER)
    if is_number(count):
        set_bounds(item._value, *sorted((source.at(0), source.at(count - 1))))
    return item
