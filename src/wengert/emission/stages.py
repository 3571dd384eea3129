"""One stage of a kernel: its loops, and the sums that they carry."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from wengert.emission.instructions import Case, in_register, instructions_of, literal, multiply_add
from wengert.emission.lane_masks import Clean, Condition, MaskedLanes, WrittenOut, all_of
from wengert.emission.plans import LoopPlan, accesses
from wengert.emission.prefetch import Ahead
from wengert.emission.vectors import Index, KernelFrame, Values, within
from wengert.kernel.kernel import Operation, Reduce, Stage, Store, Update
from wengert.native.builder import Builder, template
from wengert.native.functions import Template
from wengert.native.structs import I64, Type, VectorType, vector_of
from wengert.native.values import Value
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

Sums = list[list[Value]]
"""The accumulators of a reduction, for each row of the tile and each vector of a step."""


class Span(NamedTuple):
    """A part of a loop: where to start and to stop, and how long all parts but the last are."""

    start: Index
    stop: Index
    each: int


def write_stage(frame: KernelFrame, stage: Stage, rows: list[Index], span: Span | None, ahead: Sequence[Ahead]) -> None:
    """Write a stage for the rows of a tile; for a part of its outermost loop, if one is given."""
    StageEmitter(frame, stage, rows, span, ahead).write_all()


class StageEmitter(Values):
    """Write the loops of a stage."""

    def __init__(
        self, frame: KernelFrame, stage: Stage, rows: list[Index], span: Span | None, ahead: Sequence[Ahead]
    ) -> None:
        super().__init__(frame, stage, rows, ahead)
        self.span = span
        self.block: tuple[Index, Index] | None = None
        self.sums: dict[int, Sums] = {}
        self.totals: dict[int, Sums] = {}

    def write_all(self) -> None:
        """Write the stage; what it may read in a loop must be in memory before."""
        if self.plan.nest and not (self.plan.nest == (self.plan.lane,) and self.plan.written_out):
            for buffer, _ in accesses(self.stage):
                self.write_waiting(buffer)
        self.compute(0)
        self.loops(0)

    def loops(self, depth: int) -> None:
        """Write the loops from one of them on, and what they reduce."""
        plan = self.plan
        starting = [n for n, start in enumerate(plan.starts) if start == depth]
        outside = plan.lane in plan.nest[depth:]
        for n in starting:
            reduction = self.stage.reductions[n]
            one, count = self.start(reduction), plan.units if outside else self.lanes.units
            if n in plan.blocked:
                self.totals[n] = [[one] * ((1 if outside else count) * self.numbers) for _ in self.rows]
            else:
                self.sums[n] = [[one] * count for _ in self.rows]
        if plan.blocks is not None and plan.blocks.depth == depth:
            self.in_blocks(depth, plan.blocks.size)
        else:
            self.loop_or_point(depth)
        for n in starting:
            reduction = self.stage.reductions[n]
            sums = (
                [list(self.correct_totals(row)) for row in self.totals.pop(n)]
                if n in plan.blocked
                else self.sums.pop(n)
            )
            if outside and reduction.kind != "scan":
                sums = [[self.across(reduction, self.join_vectors(reduction, row))] for row in sums]
            self.finish(reduction, sums)

    def loop_or_point(self, depth: int) -> None:
        """Write one of the loops, or what is done within all of them."""
        if depth == len(self.plan.nest):
            self.point()
        elif self.plan.nest[depth] == self.plan.lane:
            self.along_lanes(depth)
        else:
            self.write_counted_loop(depth)

    def in_blocks(self, depth: int, size: int) -> None:
        """Write a loop block by block, after each of which what long sums have of it is added to their totals.

        The rounding of a total is known, but where a block has more than all before, and is kept beside it; so what
        errors there are do not depend on how many blocks there are.
        """
        first, stop = self.range_of(depth)
        inside = self.plan.lane in self.plan.nest[depth:]
        is_whole = isinstance(stop, int) and stop % size == 0
        with (
            self.scope(),
            self.b.loop(stop, first, self.carried_values(), size, certain=not isinstance(stop, int)) as loop,
        ):
            self.carry_on(loop.values)
            end = loop.index + size
            self.block = loop.index, end if is_whole else self.b.least(end, stop)
            for n in self.plan.blocked:
                one = self.start(self.stage.reductions[n])
                self.sums[n] = [[one] * (self.plan.units if inside else self.lanes.units) for _ in self.rows]
            self.loop_or_point(depth)
            for n in sorted(self.plan.blocked):
                self.add_block(n, self.sums.pop(n))
            self.block = None
            loop.next(*self.carried_values())
        self.carry_on(loop.results)

    def add_block(self, n: int, sums: Sums) -> None:
        """Add what a block gave to the totals: all vectors of a step to one total, or each to its own.

        There is one where the sum is over the lanes, too, be the blocks outside of these or within.
        """
        for row, found in enumerate(sums):
            totals: list[Value] = []
            is_one = len(self.totals[n][row]) == self.numbers
            parts = [self.join_vectors(self.stage.reductions[n], found)] if is_one else found
            for part, (total, *lost) in zip(parts, batches(self.totals[n][row], self.numbers), strict=True):
                if lost:
                    new, error = added_exactly(total, part)
                    totals += new, lost[0] + error
                else:
                    totals.append(total + part)
            self.totals[n][row] = totals

    @property
    def numbers(self) -> int:
        """How many numbers a total has: itself, and what its roundings lost."""
        return 2 if self.plan.blocks is not None and self.plan.blocks.exact else 1

    def correct_totals(self, totals: list[Value]) -> Iterator[Value]:
        """Yield totals with what their roundings lost."""
        for total, *lost in batches(totals, self.numbers):
            yield correct_total(total, *lost) if lost else total

    def write_counted_loop(self, depth: int) -> None:
        """Write a loop that takes one step at a time."""
        dimension = self.plan.nest[depth]
        first, stop = self.range_of(depth)
        is_part = not isinstance(stop, int)  # none is empty
        with self.scope(), self.b.loop(stop, first, carry=self.carried_values(), certain=is_part) as loop:
            self.carry_on(loop.values)
            self.enter(dimension, loop.index)
            self.compute(depth + 1)
            self.loops(depth + 1)
            loop.next(*self.carried_values())
        self.carry_on(loop.results)

    def along_lanes(self, depth: int) -> None:
        """Write the loop over the lanes: written out, or with a clean body, one with masks, or both."""
        b, plan = self.b, self.plan
        extent = self.stage.extents[plan.lane]
        first, stop = self.range_of(depth)
        if plan.written_out and isinstance(stop, int):
            self.body(depth, WrittenOut(0, plan.width, plan.vectors, b))
            return
        step = plan.units * plan.width
        whole = isinstance(stop, int) or self.span is None or depth > 0 or self.span.each % step == 0
        worth = [part for part in plan.bodies() if self.has_steps(part)]
        parts = [(part, inside) for part in worth if (inside := self.in_clean_ranges(part)) is not False]
        all_clean = extent % step == 0 and not plan.clean and bool(parts) and whole
        if plan.masked_alone or all_clean:
            parts = []
        ranges = [part.clean.get(plan.lane, (0, extent)) for part, _ in parts]
        limits = [high - step if isinstance(stop, int) else b.least(stop, high) - step for _, high in ranges]
        with b.loop(stop, first, carry=self.carried_values(), certain=not isinstance(stop, int)) as loop:
            j = loop.index

            def clean(part: LoopPlan) -> list[Value]:
                self.carry_on(loop.values)
                self.plan = part
                self.body(depth, Clean(j, plan.width, plan.units))
                self.plan = plan
                return [*self.carried_values(), b.constant(I64, step)]

            def masked_step() -> list[Value]:
                self.carry_on(loop.values)
                units = plan.units if plan.masked_alone else 1
                self.body(depth, MaskedLanes(j, plan.width, units, extent))
                return [*self.carried_values(), b.constant(I64, units * plan.width)]

            def if_it_fits(n: int, otherwise: Callable[[], list[Value]]) -> list[Value]:
                (part, inside), (low, _) = parts[n], ranges[n]
                fits = all_of(all_of(j <= limits[n], j >= low if low > 0 else True), inside)
                assert isinstance(fits, Value)
                return b.either(fits, partial(clean, part), otherwise)

            step_of_lanes: Callable[[], list[Value]] = partial(clean, plan) if all_clean else masked_step
            for n in reversed(range(len(parts))):
                step_of_lanes = partial(if_it_fits, n, step_of_lanes)
            *sums, loop.step = step_of_lanes()
            loop.next(*sums)
        self.carry_on(loop.results)

    def has_steps(self, part: LoopPlan) -> bool:
        """Whether there are enough whole steps of the lanes where a part of the plan has all guards decided."""
        extent, step = self.stage.extents[part.lane], part.units * part.width
        low, high = part.clean.get(part.lane, (0, extent))
        fewest = MACHINE.piece_steps if part.pieces else MACHINE.written_vectors
        return (high - low) // step >= fewest or (high - low == extent and extent % step == 0)

    def range_of(self, depth: int) -> tuple[Index, Index]:
        """Return where a loop starts and stops."""
        if self.block is not None and self.plan.blocks is not None and self.plan.blocks.depth == depth:
            return self.block
        if depth == 0 and self.span is not None:
            return self.span.start, self.span.stop
        return 0, self.stage.extents[self.plan.nest[depth]]

    def in_clean_ranges(self, part: LoopPlan) -> Condition:
        """Return whether all dimensions but the lanes are where guards are decided; of loops within none is."""
        found: Condition = True
        for dimension, (low, high) in part.clean.items():
            if dimension == part.lane:
                continue
            if dimension and dimension not in self.index:
                return False
            places = [self.index[dimension]] if dimension else self.rows
            for place in places:
                found = all_of(found, within(place, low, high, self.stage.extents[dimension]))
        return found

    def body(self, depth: int, lanes: Clean) -> None:
        """Write what is done for a step of the lanes."""
        with self.scope():
            self.lanes = lanes
            self.enter(self.plan.lane, lanes.start)
            self.bring_ahead()
            for unit in range(lanes.units):
                self.there((), 0, unit)  # the masks of the tail, before loops that need them
            self.compute(depth + 1)
            self.loops(depth + 1)

    def point(self) -> None:
        """Write what is done at a point of the iteration space: sums and stores."""
        plan, stage = self.plan, self.stage
        units = range(self.lanes.units)
        for n, reduction in enumerate(stage.reductions):
            if plan.starts[n] is None:
                self.in_memory(reduction)
                continue
            for row in self.tile:
                sums = self.sums[n][row] = list(self.sums[n][row])
                for u in units:
                    sums[u % len(sums)] = self.accumulate(reduction, sums[u % len(sums)], row, u)
                    if reduction.kind == "scan" and reduction.at is not None:
                        there = self.there((), row, u)
                        self.store(reduction.into, reduction.at, row, u, sums[u % len(sums)], there)
        for update in stage.updates:
            for u in units:
                self.update(update, u)
        for block in plan.stores:
            for row in self.tile:
                for u in units:
                    self.write_stores(block, row, u)

    def write_stores(self, block: list[Store], row: int, unit: int) -> None:
        """Write a store, or several of numbers that lie beside each other for each lane."""
        first = block[0]
        values = [self.value(store.value, row, unit, bool(self.plan.lane)) for store in block]
        if len(block) == 1:
            there = self.there(first.guard, row, unit)
            self.store(first.buffer, first.at, row, unit, values[0], there, first.guard)
        else:
            self.store_block(first.buffer, first.at, row, unit, values)

    def update(self, update: Update, unit: int) -> None:
        """Change a number in memory at a computed place, or numbers side by side from there on."""
        operation, there = self.stage.operations[update.value], self.there((), 0, unit)
        place = self.place(update.buffer, update.at, 0, unit).at(self.value(update.index, 0, unit, False))
        value = self.value(update.value, 0, unit, bool(self.plan.lane))
        if update.add:
            case = Case(operation.dtype, operation.dtype, self.target)
            value = instructions_of("add")(self.b, case, self.load_some(place.to(value.type), there), value)
        self.store_some(place, self.to_memory(value), there)

    @property
    def tile(self) -> range:
        """The rows of the tile."""
        return range(len(self.rows))

    # ---------------------------------------------------------------- reductions

    def carried_values(self) -> list[Value]:
        """Return all sums, and totals of sums, in a row."""
        return [x for kept in (self.sums, self.totals) for sums in kept.values() for row in sums for x in row]

    def carry_on(self, values: Sequence[Value]) -> None:
        """Take sums that were handed on."""
        waiting = iter(values)
        self.sums, self.totals = [
            {n: [[next(waiting) for _ in row] for row in sums] for n, sums in kept.items()}
            for kept in (self.sums, self.totals)
        ]

    def start(self, reduction: Reduce) -> Value:
        """Return what a sum begins with."""
        scalar = in_register(self.stage.operations[reduction.value].dtype)
        wide = self.plan.lane and reduction.value not in self.plan.counted
        kind: Type = vector_of(scalar, self.plan.width) if wide else scalar
        dtype = self.dtype(reduction)
        first = neutral(reduction.combine, dtype)
        if reduction.kind == "scan" and reduction.combine == "add" and dtype.kind == "f":
            first = -0.0  # which leaves -0.0 as it is
        return self.b.constant(kind, literal(dtype, first))

    def count(self, reduction: Reduce, row: int, unit: int, there: Condition) -> Value:
        """Return in how many lanes a condition holds."""
        operation = self.stage.operations[reduction.value]
        condition = all_of(self.value(operation.operands[0], row, unit, True), there)
        assert isinstance(condition, Value)
        bits = self.b.bits(condition)
        found = self.b.intrinsic("ctpop", bits.type, bits)
        return found if found.type == I64 else self.b.convert("zext", found, I64)

    def is_first(self, reduction: Reduce, old: Value) -> bool:
        """Whether what is combined with is what a reduction begins with, which changes no bit of a value."""
        if reduction.kind == "scan" or (reduction.combine == "add" and self.dtype(reduction).kind == "f"):
            return False  # 0.0 makes 0.0 of -0.0
        return old.text == self.start(reduction).text

    def dtype(self, reduction: Reduce) -> np.dtype[np.generic]:
        """Return the dtype of what is reduced."""
        return self.stage.operations[reduction.value].dtype

    def accumulate(self, reduction: Reduce, old: Value, row: int, unit: int) -> Value:
        """Return a sum with one more value; lanes that are not there leave it, if others count on it."""
        there = self.there((), row, unit)
        if there is False:
            return old
        if reduction.value in self.plan.counted:
            return old + self.count(reduction, row, unit, there)
        new = self.add_value(reduction, old, row, unit)
        return new if there is True or self.plan.lane not in reduction.over else self.b.select(there, new, old)

    def add_value(self, reduction: Reduce, old: Value, row: int, unit: int) -> Value:
        """Return a sum with one more value; a product is multiplied and added at once."""
        wide = bool(self.plan.lane)
        if reduction.value in self.plan.fused:
            x, y = (self.value(n, row, unit, wide) for n in self.stage.operations[reduction.value].operands)
            return multiply_add(self.b, self.case(reduction), x, y, old)
        value = self.value(reduction.value, row, unit, wide)
        if self.is_first(reduction, old):
            return value
        if reduction.factor is not None:  # rounded, as it is step by step: what is infinite then stays so
            old = self.value(reduction.factor, row, unit, wide) * old
        return self.combine(reduction, value, old)

    def combine(self, reduction: Reduce, x: Value, y: Value) -> Value:
        """Combine two values of a reduction."""
        return instructions_of(reduction.combine)(self.b, self.case(reduction), x, y)

    def case(self, reduction: Reduce) -> Case:
        """Return for what the opcode of a reduction is written."""
        dtype = self.dtype(reduction)
        return Case(dtype, dtype, self.target)

    def join_vectors(self, reduction: Reduce, sums: list[Value]) -> Value:
        """Combine the vectors of a sum to one, pair by pair."""
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=False)
            sums = [self.combine(reduction, x, y) for x, y in pairs] + sums[len(sums) // 2 * 2 :]
        (found,) = sums
        return found

    def across(self, reduction: Reduce, found: Value) -> Value:
        """Combine the numbers of a vector to one."""
        if not isinstance(found.type, VectorType):
            return found
        return self.b.paste(across(reduction.combine, self.case(reduction), found.type), found)[0]

    def finish(self, reduction: Reduce, sums: Sums) -> None:
        """Use what a reduction gave for each row of the tile: numbers, or vectors of which each lane is a result."""
        if reduction.kind == "scan":
            return
        if reduction.kind == "row":
            self.frame.numbers[reduction.into] = [found for (found,) in sums]
            return
        assert reduction.at is not None
        for unit in range(len(sums[0])):
            there = self.there((), 0, unit) if isinstance(sums[0][0].type, VectorType) else True
            if reduction.kind == "nested":
                for row in self.tile:
                    self.store(reduction.into, reduction.at, row, unit, sums[row][unit], there)
            elif there is not False:
                new = self.load_shared(reduction, unit, isinstance(sums[0][0].type, VectorType), there)
                for found in sums:
                    new = self.combine(reduction, found[unit], new)
                self.store(reduction.into, reduction.at, 0, unit, new, there)

    def in_memory(self, reduction: Reduce) -> None:
        """Combine the values of a point with what is in memory, which all rows share."""
        assert reduction.at is not None
        wide = bool(self.plan.lane)
        for unit in range(self.lanes.units):
            there = self.there((), 0, unit) if wide else True
            if there is False:
                continue
            if reduction.kind == "nested":
                raise NotImplementedError("a nested reduction around loops that it keeps")
            new = self.load_shared(reduction, unit, wide, there)
            for row in self.tile:
                new = self.add_value(reduction, new, row, unit)
            self.store(reduction.into, reduction.at, 0, unit, new, there)

    def load_shared(self, reduction: Reduce, unit: int, wide: bool, there: Condition) -> Value:
        """Load the sum so far of a reduction whose memory all rows share."""
        assert reduction.at is not None
        item = Operation("load", (), self.dtype(reduction), reduction.into, reduction.at)
        return self.load_or_zero(item, reduction.at, 0, unit, wide, there)


def batches(values: list[Value], size: int) -> Iterator[list[Value]]:
    """Yield so many values at a time."""
    for first in range(0, len(values), size):
        yield values[first : first + size]


def added_exactly(total: Value, part: Value) -> tuple[Value, Value]:
    """Return a sum and what its rounding lost, if the first number is not the smaller one (Dekker 1971)."""
    new = total + part
    return new, part - (new - total)


def correct_total(total: Value, lost: Value) -> Value:
    """Return a total with what its roundings lost, which is no number where the total is infinite."""
    b, whole = total.b, total + lost
    return b.select(b.compare("uno", whole, whole), total, whole)


@functools.cache
def across(name: str, case: Case, kind: VectorType) -> Template:
    """Return what combines the numbers of a vector to one, half by half: each row of a tile does it."""
    combine = instructions_of(name)

    def write(b: Builder, found: Value) -> list[Value]:
        width = kind.count
        while width > 2:
            width //= 2
            found = combine(b, case, *(b.shuffle(found, range(k, k + width)) for k in (0, width)))
        return [combine(b, case, b.extract(found, 0), b.extract(found, 1))]

    return template([kind], write)


def neutral(combine: str, dtype: np.dtype[np.generic]) -> float | int:
    """Return what changes nothing when it is combined with a number."""
    if combine in ("maximum", "minimum"):
        return extreme(dtype, lowest=combine == "maximum")
    if combine == "and":
        return 1 if dtype.kind == "b" else -1
    return 1 if combine == "multiply" else 0


def extreme(dtype: np.dtype[np.generic], lowest: bool) -> float | int:
    """Return the lowest or the greatest number of a dtype."""
    if dtype.kind == "f":
        return -np.inf if lowest else np.inf
    if dtype.kind == "b":
        return 0 if lowest else 1
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return 0 if lowest else (1 << bits) - 1
    return -(1 << bits - 1) if lowest else (1 << bits - 1) - 1
