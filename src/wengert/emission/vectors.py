"""The values of a stage's operations, for each row of a tile and each vector of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert.emission.instructions import Case, from_memory, in_memory, in_register, instructions_of, literal
from wengert.emission.lane_masks import Condition, Lanes, WrittenOut, all_of, select_where
from wengert.emission.mathematics import Specialisation, called_outside, function_of_body, template_of
from wengert.emission.plans import LoopPlan, accesses
from wengert.emission.prefetch import Ahead
from wengert.emission.registers import Registers
from wengert.emission.routines.searches import RowSearch
from wengert.kernel.durations import LANES
from wengert.kernel.functions import FUNCTIONS
from wengert.kernel.kernel import Affine, Buffer, Guard, Operation, Stage
from wengert.kernel.opcodes import SEARCHING
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.structs import BOOL, I8, I64, Type, VectorType, like, vector, vector_of
from wengert.native.values import Value
from wengert.support.machine import MACHINE
from wengert.support.records import FieldRecord

Index = Value | int
"""A place along a dimension: one that is known while the code is written, or not."""

Key = tuple[object, ...]
"""What something is and what it is computed of: equal ones are one."""


class Module(FieldRecord):
    """What the kernels of a program share.

    Attributes:
        target: the processor.
        buffers: by name.
        outside: the names of the functions that the code calls and does not have.
    """

    target: Target
    buffers: dict[str, Buffer]
    outside: set[str]


class KernelFrame:
    """What the stages of a kernel share.

    Attributes:
        b: what the code is written with.
        module: what kernels share.
        bases: for each buffer of the kernel its address; for a buffer of the row that of the first row of a tile.
        apart: for each buffer how many elements the copies lie apart that rows of a tile have, if they have any.
        numbers: those of the rows, for each row of the tile.
        results: what is computed once for the rows, whichever stages need it, by what it is and of what; addresses too.
        ahead: what each stage brings into the caches ahead.
        waiting: for buffers of the row the vectors that are not in memory yet, by row and first element: a stage that
            reads these alone has no need of memory, and what no other stage reads is never written.
        registers: the numbers of buffers that are not in memory, where all is computed number by number.
    """

    def __init__(
        self,
        b: Builder,
        module: Module,
        bases: dict[str, Value],
        apart: dict[str, int],
        ahead: list[list[Ahead]],
        registers: Registers | None = None,
    ) -> None:
        self.b, self.module, self.bases, self.apart, self.ahead = b, module, bases, apart, ahead
        self.registers = registers
        self.numbers: dict[str, list[Value]] = {}
        self.results: dict[Key, list[Value]] = {}
        self.waiting: dict[str, dict[tuple[int, int], Value]] = {}

    def holds(self, buffer: str) -> bool:
        """Tell whether the numbers of a buffer are in registers."""
        return self.registers is not None and buffer in self.registers.names


class Values:
    """Write the operations of a stage."""

    def __init__(self, frame: KernelFrame, stage: Stage, rows: list[Index], ahead: Sequence[Ahead]) -> None:
        self.frame, self.stage, self.rows, self.ahead = frame, stage, rows, ahead
        self.b, self.target = frame.b, frame.module.target
        self.plan = LoopPlan(stage, frame.module.buffers, frame.module.target, len(rows))
        self.index: dict[int, Index] = {}
        self.lanes: Lanes = WrittenOut(0, self.plan.width, 1, self.b)
        self.found: dict[int, list[list[Value]]] = {}  # operation -> row -> unit
        self.spread: dict[int, list[Value]] = {}  # operation -> row
        self.conditions: dict[tuple[Guard, int, int], Condition] = {}
        self.results = frame.results  # and in loops those of functions, by name and arguments
        self.ends = {o: self.b.stack(I64) for o in stage.operations if o.name in SEARCHING}  # of the last searches
        for end in self.ends.values():
            end.store(0)
        self.places: dict[tuple[str, tuple[int, ...]], Value] = {}  # of the first row, as far as loops are known
        for buffer, at in (*accesses(stage), *((item.buffer, item.at) for item in ahead)):
            if frame.holds(buffer):
                continue
            given = frame.bases[buffer], rows[0], at.coefficients[0]
            self.places[buffer, at.coefficients] = self.once(("moved", given[0].text, given[2]), move_address, *given)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget afterwards what is computed here: it does not hold outside of the loop."""
        kept = self.found, self.spread, self.conditions, self.results, self.places, self.index, self.lanes
        self.found, self.spread, self.conditions = dict(self.found), dict(self.spread), dict(self.conditions)
        self.results, self.places, self.index = dict(self.results), dict(self.places), dict(self.index)
        yield
        self.found, self.spread, self.conditions, self.results, self.places, self.index, self.lanes = kept

    def once(self, key: Key, write: Callable[..., Value], *arguments: Any) -> Value:
        """Return what a function writes; what it wrote for this key before, if that holds here."""
        if key not in self.results:
            self.results[key] = [write(*arguments)]
        return self.results[key][0]

    def enter(self, dimension: int, index: Index) -> None:
        """Stand at a place along a dimension."""
        self.index[dimension] = index
        steps: dict[int, Value] = {}
        done: dict[tuple[str, int], Value] = {}
        for key, place in self.places.items():
            coefficient = key[1][dimension]
            if not coefficient or isinstance(index, int):
                continue
            if coefficient not in steps:
                steps[coefficient] = index if coefficient == 1 else index * coefficient
            same = place.text, coefficient
            if same not in done:
                done[same] = place.at(steps[coefficient])
            self.places[key] = done[same]

    # ---------------------------------------------------------------- conditions

    def holds(self, guard: Guard, row: int, unit: int) -> Condition:
        """Return where a guard holds."""
        if not self.lanes.is_masked:
            return self.plan.is_decided(guard)
        key = guard, row, unit
        if key not in self.conditions:
            found: Condition = True
            for bound in guard:
                if bound.dimension == self.plan.lane and bound.dimension:
                    continue
                place = self.index[bound.dimension] if bound.dimension else self.rows[row]
                found = all_of(found, within(place, bound.low, bound.high, self.stage.extents[bound.dimension]))
            self.conditions[key] = found
        return self.conditions[key]

    def there(self, guard: Guard, row: int, unit: int) -> Condition:
        """Return where a guard holds and lanes are there."""
        low, high = 0, self.stage.extents[self.plan.lane]
        for bound in guard:
            if bound.dimension == self.plan.lane:
                low, high = max(low, bound.low), min(high, bound.high)
        held = self.holds(guard, row, unit)
        return all_of(held, self.lanes.within(low, high, unit)) if self.plan.lane else held

    # ---------------------------------------------------------------- memory

    def place(self, buffer: str, at: Affine, row: int, unit: int) -> Value:
        """Return the address of the first element for a vector, or of the element."""
        self.write_waiting(buffer)
        offset = at.constant + unit * self.plan.width * at.coefficients[self.plan.lane] * bool(self.plan.lane)
        offset += row * (at.coefficients[0] + self.frame.apart[buffer])
        for dimension, index in (*self.index.items(), (0, self.rows[0])):
            if isinstance(index, int):
                offset += index * at.coefficients[dimension]
        place = self.places[buffer, at.coefficients]
        return place.at(offset) if offset else place

    def bring_ahead(self) -> None:
        """Ask for what a step of the lanes brings into the caches ahead, line by line."""
        for item in self.ahead:
            line = MACHINE.line // self.frame.module.buffers[item.buffer].dtype.itemsize
            far = item.rows * item.at.coefficients[0]
            for row in range(len(self.rows)):
                place = self.place(item.buffer, item.at, row, 0)
                for first in range(0, self.lanes.units * self.plan.width, line):
                    place.at(first + far).bring(item.written)

    def cell(self, buffer: str, at: Affine, row: int, unit: int) -> tuple[int, int] | None:
        """Return the row and the first place of a vector of a buffer of the row, unless it stands in a loop."""
        first = self.lanes.start
        if not isinstance(first, int) or not self.has_room(buffer, at):
            return None
        straight = all(isinstance(index, int) for index in self.index.values())
        return (row, first + unit * self.plan.width) if straight else None

    def write_waiting(self, buffer: str) -> None:
        """Store the vectors of a buffer that are not in memory yet."""
        for (row, first), value in self.frame.waiting.pop(buffer, {}).items():
            offset = first + row * self.frame.apart[buffer]
            place = self.frame.bases[buffer]
            stored = self.to_memory(value)
            (place.at(offset) if offset else place).to(stored.type).store(stored)

    def to_memory(self, value: Value) -> Value:
        """Return a value in the type that it has in memory."""
        return self.b.convert("zext", value, I8) if value.type == like(value.type, BOOL) else value

    def load(self, operation: Operation, row: int, unit: int, wide: bool) -> Value:
        """Write a load."""
        assert operation.at is not None
        if wide and not operation.guard and (operation.buffer, operation.at) in self.plan.twins:
            return self.twin(operation, operation.at, row, unit)
        there = self.there(operation.guard, row, unit) if wide else self.holds(operation.guard, row, unit)
        return self.load_or_zero(operation, operation.at, row, unit, wide, there)

    def twin(self, operation: Operation, at: Affine, row: int, unit: int) -> Value:
        """Write the loads of two accesses together, once, and return what one of them gives."""
        own, width = self.plan.twins[operation.buffer, at], self.plan.width
        first = at.replace(constant=at.constant - own)
        key = "twins", operation.buffer, first, row, unit
        if key not in self.results:
            kind = vector_of(in_memory(operation.dtype), 2 * width)
            there = self.lanes.each(self.stage.extents[self.plan.lane], unit, 2)
            place = self.place(operation.buffer, first, row, unit).to(kind)
            both = self.b.constant(kind, 0)
            if there is not False:
                both = place.load() if there is True else place.load_where(mask(self.b, there, 2 * width))
            self.results[key] = [self.b.shuffle(both, range(part, 2 * width, 2)) for part in range(2)]
        return from_memory(self.results[key][own], operation.dtype)

    def store_block(self, buffer: str, at: Affine, row: int, unit: int, values: list[Value]) -> None:
        """Write the stores of a block of numbers that lie beside each other for each lane."""
        values, size, step = [self.to_memory(value) for value in values], len(values), at.coefficients[self.plan.lane]
        while len(values) > 1:
            parts = 3 if len(values) == 3 else 2
            each = len(values) // parts
            values = [self.by_turns(values[first::each]) for first in range(each)]
        (numbers,), high, place = values, self.stage.extents[self.plan.lane], self.place(buffer, at, row, unit)
        if size == step:
            self.store_some(place, numbers, self.lanes.each(high, unit, size))
            return
        for lane in range(self.plan.width):
            there = self.lanes.one(high, unit * self.plan.width + lane)
            own = self.b.shuffle(numbers, range(lane * size, (lane + 1) * size))
            self.store_some(place.at(lane * step), own, there)

    def by_turns(self, values: list[Value]) -> Value:
        """Return the numbers of two or three vectors, by turns."""
        x, y, *others = values
        size = vector(x.type).count
        turns = [part * size + n for n in range(size) for part in range(len(values))]
        for z in others:
            x, y = self.b.beside(x, y), self.b.beside(z, z)
        return self.b.shuffle_pair(x, y, turns)

    def load_some(self, place: Value, there: Condition) -> Value:
        """Load those numbers of a vector that are there, or a number."""
        return place.load() if there is True else place.load_where(mask(self.b, there, self.plan.width))

    def store_some(self, place: Value, value: Value, there: Condition) -> None:
        """Store those numbers of a vector that are there."""
        if there is True:
            place.to(value.type).store(value)
        elif there is not False:
            place.to(value.type).store_where(value, mask(self.b, there, vector(value.type).count))

    def load_or_zero(self, item: Operation, at: Affine, row: int, unit: int, wide: bool, there: Condition) -> Value:
        """Return the elements of a buffer at an index map: zero where it is not to be read."""
        b, scalar = self.b, in_memory(item.dtype)
        kind = vector_of(scalar, self.plan.width) if wide else scalar
        if there is False:
            return from_memory(b.constant(kind, 0), item.dtype)
        if self.frame.registers is not None and self.frame.holds(item.buffer):
            return self.frame.registers.load(item.buffer, at.constant)
        cell = self.cell(item.buffer, at, row, unit) if wide and not item.guard else None
        waiting = self.frame.waiting.get(item.buffer, {}).get(cell) if cell else None
        if waiting is not None and waiting.type == self.kind(item, wide):
            return waiting
        place = self.place(item.buffer, at, row, unit)
        step = at.coefficients[self.plan.lane] if wide else 0
        if there is True and step == len(self.rows) and self.lie_side_by_side(item, at):
            return from_memory(self.side_by_side(item, at, row, unit), item.dtype)
        if step == 1:
            found = self.load_some(place.to(kind), there if item.guard or not self.has_room(item.buffer, at) else True)
        elif step:
            found = place.gather(self.steps(step), mask(b, there, self.plan.width))
        elif wide:
            held = self.holds(tuple(bound for bound in item.guard if bound.dimension != self.plan.lane), row, unit)
            one = b.spread(self.load_one(place, item, held), self.plan.width)
            found = select_where(there, one, b.constant(kind, 0))
        else:
            found = self.load_one(place, item, there)
        return from_memory(found, item.dtype)

    def load_one(self, place: Value, item: Operation, held: Condition) -> Value:
        """Load one number, or zero where a guard does not hold for the point; then something else is read."""
        if held is True:
            return place.load()
        zero = self.b.constant(in_memory(item.dtype), 0)
        if held is False:
            return zero
        return self.b.select(held, self.b.select(held, place, self.frame.bases[item.buffer]).load(), zero)

    def lie_side_by_side(self, item: Operation, at: Affine) -> bool:
        """Tell whether rows of a tile, as many as lanes lie apart, read beside each other what nothing writes."""
        is_fixed = self.frame.module.buffers[item.buffer].kind in ("input", "constant")
        return is_fixed and not item.guard and at.coefficients[0] == 1 < len(self.rows) < LANES

    def side_by_side(self, item: Operation, at: Affine, row: int, unit: int) -> Value:
        """Return a row's own of the numbers that a tile of rows reads, which lie side by side row by row.

        They are loaded once, and sorted by shuffles: in 0.3 to 0.4 of the time of gathers (eight rows: 1.0).
        """
        key, size = ("side by side", item.buffer, at, unit), len(self.rows) * self.plan.width
        if key not in self.results:
            all_rows = self.place(item.buffer, at, 0, unit).to(vector_of(in_memory(item.dtype), size)).load()
            each = range(len(self.rows))
            self.results[key] = [self.b.shuffle(all_rows, range(n, size, len(self.rows))) for n in each]
        return self.results[key][row]

    def has_room(self, buffer: str, at: Affine) -> bool:
        """Whether the lanes are all of a buffer of the row: what lies behind is its own, up to a whole vector.

        No mask is needed then; loads that follow masked stores would wait for them.
        """
        found = self.frame.module.buffers[buffer]
        alone = sum(map(abs, at.coefficients)) == 1 and at.coefficients[self.plan.lane] == 1
        return alone and found.kind == "row" and not at.constant and found.size == self.stage.extents[self.plan.lane]

    def steps(self, step: int) -> Value:
        """Return how far lanes lie apart in memory."""
        return self.b.numbers(I64, [lane * step for lane in range(self.plan.width)])

    def gather(self, operation: Operation, row: int, unit: int, wide: bool) -> Value:
        """Write a load from a computed place."""
        b, at = self.b, operation.at
        assert at is not None
        there = self.there(operation.guard, row, unit) if wide else self.holds(operation.guard, row, unit)
        if there is False:
            return from_memory(
                b.constant(like(self.kind(operation, wide), in_memory(operation.dtype)), 0), operation.dtype
            )
        (index,) = self.operands(operation, row, unit, wide)
        if index.type != like(index.type, I64):
            dtype = self.stage.operations[operation.operands[0]].dtype
            index = b.convert("zext" if dtype.kind == "u" else "sext", index, I64)
        place = self.place(operation.buffer, at, row, unit)
        if not wide:
            found = self.load_one(place.at(index), operation, there)
        else:
            step = at.coefficients[self.plan.lane]
            indices = index + self.steps(step) if step else index
            found = place.gather(indices, mask(b, there, self.plan.width))
        return from_memory(found, operation.dtype)

    def search(self, operation: Operation, row: int, unit: int, wide: bool) -> Value:
        """Write a search of a sorted row."""
        assert operation.at is not None
        (x,) = self.operands(operation, row, unit, wide)
        buffer, place = self.frame.module.buffers[operation.buffer], self.place(operation.buffer, operation.at, row, 0)
        return RowSearch(self.b, operation, buffer, place, self.target, x, self.ends[operation]).write()

    def store(
        self, buffer: str, at: Affine, row: int, unit: int, value: Value, there: Condition, guard: Guard = ()
    ) -> None:
        """Write a store of a number or of a vector."""
        if there is False:
            return
        if self.frame.registers is not None and self.frame.holds(buffer):
            self.frame.registers.store(buffer, at.constant, value)
            return
        cell = self.cell(buffer, at, row, unit)
        if cell is not None and not guard and isinstance(value.type, VectorType):
            self.frame.waiting.setdefault(buffer, {})[cell] = value
            return
        b, value = self.b, self.to_memory(value)
        place = self.place(buffer, at, row, unit)
        if not isinstance(value.type, VectorType):
            if there is True:
                place.store(value)
            else:
                with b.when(there):
                    place.store(value)
            return
        step = at.coefficients[self.plan.lane]
        if step != 1:
            place.scatter(value, self.steps(step), mask(b, there, self.plan.width))
        else:
            self.store_some(place, value, there if guard or not self.has_room(buffer, at) else True)

    # ---------------------------------------------------------------- operations

    def value(self, n: int, row: int, unit: int, wide: bool) -> Value:
        """Return the value of an operation, as a vector or as a number."""
        operation = self.stage.operations[n]
        if operation.name == "constant":
            return self.b.constant(self.kind(operation, wide), literal(operation.dtype, operation.value))
        if wide and not self.plan.wide[n]:
            return self.spread[n][row]
        return self.found[n][row][unit if wide else 0]

    def operands(self, operation: Operation, row: int, unit: int, wide: bool) -> list[Value]:
        """Return the values of an operation's operands."""
        return [self.value(n, row, unit, wide) for n in operation.operands]

    def kind(self, operation: Operation, wide: bool) -> Type:
        """Return the type of an operation's value."""
        scalar = in_register(operation.dtype)
        return vector_of(scalar, self.plan.width) if wide else scalar

    def compute(self, level: int) -> None:
        """Write the operations that stand in so many loops."""
        plan, stage = self.plan, self.stage
        live = plan.live[not self.lanes.is_masked] - plan.fused - plan.counted
        for n, operation in enumerate(stage.operations):
            if plan.level[n] != level or n not in live or operation.name == "constant":
                continue
            wide = plan.wide[n]
            units = self.lanes.units if wide else 1
            each = range(len(self.rows)) if 0 in plan.depends[n] else (0,)
            found = [[self.write(operation, row, unit, wide) for unit in range(units)] for row in each]
            self.found[n] = found if len(found) == len(self.rows) else found * len(self.rows)
            if n in plan.spread:
                spread = [self.once(("spread", x.text, plan.width), self.b.spread, x, plan.width) for (x, *_) in found]
                self.spread[n] = spread if len(spread) == len(self.rows) else spread * len(self.rows)

    def write(self, operation: Operation, row: int, unit: int, wide: bool) -> Value:
        """Write one operation."""
        special = SPECIAL.get(operation.name)
        if special is not None:
            return special(self, operation, row, unit, wide)
        operands = self.operands(operation, row, unit, wide)
        if operation.name in FUNCTIONS:
            return self.function(operation, operands, wide)
        case = Case(self.stage.operations[operation.operands[-1]].dtype, operation.dtype, self.target)
        write = instructions_of(operation.name)
        if wide:
            return write(self.b, case, *operands)
        key = operation.name, operation.dtype, *map(str, operands)
        return self.once(key, write, self.b, case, *operands)

    def function(self, operation: Operation, operands: list[Value], wide: bool) -> Value:
        """Write a function; several of one argument that have a common body are one evaluation of it."""
        name, result = function_of_body(operation.name)
        key = name, *map(str, operands)
        if key not in self.results:
            form = Specialisation(name, operation.dtype, self.plan.width if wide else 0, self.target)
            self.results[key] = self.b.paste(template_of(form), *operands)
            self.frame.module.outside.update(called_outside(form))
        return self.results[key][result]

    def number(self, operation: Operation, row: int, unit: int, wide: bool) -> Value:
        """Return a number of the row."""
        return self.frame.numbers[operation.buffer][row]

    def pick(self, operation: Operation, row: int, unit: int, wide: bool) -> Value:
        """Write a choice by place."""
        there = self.there(operation.guard, row, unit) if wide else self.holds(operation.guard, row, unit)
        first, second = operation.operands
        if isinstance(there, bool):
            return self.value(first if there else second, row, unit, wide)
        x, y = self.operands(operation, row, unit, wide)
        return select_where(there, x, y)

    def place_index(self, operation: Operation, row: int, unit: int, wide: bool) -> Value:
        """Write the place itself."""
        b, at = self.b, operation.at
        assert at is not None
        known, found = at.constant, b.constant(I64, 0)
        for dimension, index in (*self.index.items(), (0, self.rows[row])):
            coefficient = at.coefficients[dimension]
            if isinstance(index, int):
                known += index * coefficient
            elif coefficient:
                found = found + index * coefficient
        found = found + known
        if wide:
            steps = [
                (unit * self.plan.width + lane) * at.coefficients[self.plan.lane] for lane in range(self.plan.width)
            ]
            found = b.spread(found, self.plan.width) + b.numbers(I64, steps)
        scalar = in_register(operation.dtype)
        return found if scalar == I64 else b.convert("trunc", found, scalar)


SPECIAL = {
    "load": Values.load,
    "gather": Values.gather,
    "search_left": Values.search,
    "search_right": Values.search,
    "number": Values.number,
    "pick": Values.pick,
    "index": Values.place_index,
}
"""What reads memory and places."""


def move_address(place: Value, index: Index, coefficient: int) -> Value:
    """Return an address moved along a dimension; by what is known it moves when it is used."""
    if isinstance(index, int) or not coefficient:
        return place
    return place.at(index if coefficient == 1 else index * coefficient)


def within(place: Index, low: int, high: int, extent: int) -> Condition:
    """Return whether a place is in a range of a dimension."""
    if isinstance(place, int):
        return low <= place < high
    found: Condition = True
    if low > 0:
        found = place >= low
    return all_of(found, place < high) if high < extent else found


def mask(b: Builder, there: Condition, width: int) -> Value:
    """Return a condition as a vector."""
    if isinstance(there, bool):
        return b.constant(vector_of(BOOL, width), there)
    return b.spread(there, width) if there.type is BOOL else there
