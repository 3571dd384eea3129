"""Loops of programs, by a table of the addresses of what an iteration reads and writes, or by registers.

Where few numbers are handed from one iteration to the next, they and what is read in each round are values of the code,
so that nothing waits for what was stored just before; only rows that are left behind, and results at the end, are
written to memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from wengert.emission.arena import Room, lies_outside
from wengert.emission.driver import Driver, DriverFrame, Kernels, bytes_of, copy_bytes
from wengert.emission.parallel_split import lanes_of
from wengert.emission.programs import typed_address
from wengert.emission.registers import Places, Registers, number_of, write_number
from wengert.kernel.durations import cycles_of
from wengert.kernel.kernel import Carried, Loop, Row
from wengert.native.growing_rows import GROWING
from wengert.native.row_pool import TAKE_ROOM
from wengert.native.structs import I8, I64, POINTER, Array
from wengert.native.values import Value
from wengert.support.machine import MACHINE

FIRST_ROWS = 32
"""How many of them there is room for at first, where a condition ends a loop: a power of two."""
MOST_CARRIED = 64
"""Numbers that a loop hands from one iteration to the next in registers."""


def loop_writer(driver: Driver, loop: Loop) -> Callable[[DriverFrame], None]:
    """Return what writes a loop: with what it carries in registers, where these are few numbers."""
    part, used = driver.module.part(loop.body), driver.module.uses[driver.module.number(loop.body)]
    if used <= 1 and isinstance(part, Kernels) and part.emission.numbers is not None:
        carried = [loop.body.buffers_by_name[x.into] for x in loop.carried]
        is_small = sum([buffer.size for buffer in carried]) <= MOST_CARRIED
        lie_outside = {row.row for row in (*loop.rows, *loop.constants)}
        others = [name for name in (*loop.body.inputs, *loop.body.outputs) if name not in lie_outside]
        if is_small and part.emission.are_held(others):
            return RepeatingNumbers(driver, loop, part).write
    return Repeating(driver, loop).write


class Repeating:
    """Write a loop.

    Attributes:
        slots: the places in its table of what the body reads and writes, then of values that are known.
        own: the places in the arena of what is the loop's own: copies of what is carried at first, results of the body.
        lent: what is carried in the memory of its result instead; what no iteration reads, such as the factors of the
            last step of Newton's method, is written there by each, and changes no places.
        often: after how many iterations it looks up: a power of two.
        results: the outputs of the body that are these, and which.
        swaps: which carried values change places with what they are overwritten by: one for each output of the body.
        left: rows that the loop leaves behind and that grow.
    """

    def __init__(self, driver: Driver, loop: Loop) -> None:
        self.driver, self.loop, module = driver, loop, driver.module
        self.block = module.block(driver.block)
        module.part(loop.body, self.block)
        self.buffers = loop.body.buffers_by_name
        self.slots = {name: n for n, name in enumerate((*loop.body.inputs, *loop.body.outputs))}
        taken = {row.row for row in loop.rows}
        own = [x for x in loop.body.outputs if x not in taken]
        self.swaps: dict[str, str] = {}
        for x in loop.carried:
            if x.out and x.out != x.into and x.out not in taken:
                taken.add(x.out)
                self.swaps[x.into] = x.out
        self.lent = self.in_results()
        read = {name for step in loop.body.steps for name in step.reads}
        unread = [x for x in self.lent if loop.body.is_nested and x.into not in read]
        outs = Counter([x.out for x in loop.carried])
        self.results = {x.out: x.result for x in unread if outs[x.out] == 1}
        self.swaps = {into: out for into, out in self.swaps.items() if out not in self.results}
        self.own = {x: self.room(x) for x in own if x not in self.results}
        self.own |= {x: self.room(x) for x in self.swaps if x not in {v.into for v in self.lent}}
        self.left = [x for x in loop.rows if driver.buffers[x.buffer].grows and x.row in loop.body.outputs]
        module.has_pool |= bool(self.left)
        each = cycles_of(loop.body, lanes_of(module.target)) + MACHINE.iteration
        self.often = 1 << (max(int(MACHINE.moment / each), 1).bit_length() - 1)

    def in_results(self) -> list[Carried]:
        """Return the large values that may be carried in the memory of the result, which nothing else is in."""
        uses = Counter([*self.loop.reads, *self.loop.writes])
        alone = [x for x in self.loop.carried if uses[x.result] == 1 + (x.result == x.start)]
        return [x for x in alone if x.into in self.swaps and bytes_of(self.buffers[x.into]) >= MACHINE.gap]

    def room(self, name: str) -> Room:
        """Return a place for a buffer of the body."""
        size = bytes_of(self.buffers[name])
        return Room(self.driver.module.room(size)) if size < MACHINE.gap else self.block.room(size + MACHINE.gap)

    def write(self, frame: DriverFrame) -> None:
        """Write what runs the loop."""
        b, loop = frame.b, self.loop
        table = b.stack(Array(POINTER, len(self.slots)))
        for constant in loop.constants:
            self.slot(table, constant.row).store(frame.at(constant.buffer).as_address())
        for name, place in self.own.items():
            self.slot(table, name).store(self.driver.module.at(frame.memory, place).as_address())
        for name, result in self.results.items():
            self.slot(table, name).store(frame.at(result).as_address())
        self.begin(frame, table)
        times = self.times(frame)
        self.make_room(frame, times)
        for row in loop.rows:
            self.slot(table, row.row).store(self.beginning(frame, row, times)[0].as_address())
        self.run(frame, table, times)
        self.finish(frame, table)

    def begin(self, frame: DriverFrame, table: Value) -> None:
        """Write what puts what is carried at first where the first iteration reads it."""
        for x in self.loop.carried:
            start, _ = frame.at(x.start), x.known and frame.at(x.known)  # both where all that follows has them
            first, size = self.slot(table, x.into), bytes_of(self.buffers[x.into])
            is_there = x.out == x.into or x in self.lent
            if is_there:
                first.store(frame.at(x.result).as_address())
            if is_there and x.result == x.start:
                continue
            if is_there or x.into in self.swaps:
                copy_bytes(frame.b, first.load().to(I8), start, size)
            else:
                first.store(start.as_address())

    def finish(self, frame: DriverFrame, table: Value) -> None:
        """Write what puts what is carried at the end into the results."""
        for x in self.loop.carried:
            if x.out == x.into:
                continue
            last, result, size = self.slot(table, x.into).load(), frame.at(x.result), bytes_of(self.buffers[x.into])
            if x in self.lent:
                with frame.b.when(last.differs(result.as_address())):
                    copy_bytes(frame.b, result, last, size)
            else:
                copy_bytes(frame.b, result, last, size)

    def times(self, frame: DriverFrame) -> Value:
        """Return how many iterations there are at most."""
        found = frame.b.constant(I64, self.loop.rounds)
        if self.loop.count:
            found = frame.at(self.loop.count).to(I64).load()
            frame.fail_if(frame.b.constant(I64, self.loop.rounds) < found)
        return found

    def make_room(self, frame: DriverFrame, times: Value) -> None:
        """Write that there is room for the rows that the loop leaves behind and that grow."""
        b, goes = frame.b, bool(self.loop.going)
        for row in self.left:
            count = b.constant(I64, FIRST_ROWS) if goes else b.select(times < 0, b.constant(I64, 0), times)
            self.take_room(frame, row, count, b.constant(I64, 0))
            frame.at(row.buffer).to(GROWING).set("count", 0 if goes else count)

    def beginning(self, frame: DriverFrame, row: Row, times: Value) -> tuple[Value, Value | int]:
        """Return where the row of the first iteration lies, and how many bytes it is to the next."""
        first, step = self.first_row(frame, row)
        return (first.at((times - 1) * step), step * -1) if self.loop.reverse else (first, step)

    def first_row(self, frame: DriverFrame, row: Row) -> tuple[Value, Value | int]:
        """Return where the first row lies, and how many bytes it is to the next."""
        place = frame.at(row.buffer)
        if not self.driver.buffers[row.buffer].grows:
            return place.to(I8), bytes_of(self.buffers[row.row])
        rows = place.to(GROWING)
        return rows.get("first").to(I8), bytes_of(self.buffers[row.row]) if row in self.left else rows.get("step")

    def take_room(self, frame: DriverFrame, row: Row, count: Value, before: Value) -> None:
        """Write that rows get more room, of which there are some."""
        take, rows = self.driver.module.declare(TAKE_ROOM), frame.at(row.buffer).to(GROWING)
        step = bytes_of(self.buffers[row.row])
        frame.fail_if(frame.b.call(take, frame.pool, rows, count, step, before))

    def run(self, frame: DriverFrame, table: Value, times: Value) -> None:
        """Write what runs the iterations, if there are any."""
        condition = self.condition(frame, times)
        if condition is None:
            if self.loop.rounds:
                self.repeat(frame, table, times)
            return
        with frame.b.when(condition):
            self.repeat(frame, table, times)

    def condition(self, frame: DriverFrame, times: Value) -> Value | None:
        """Return whether there is an iteration; None where that is known."""
        found = None if not self.loop.count else frame.b.constant(I64, 0) < times
        if self.loop.starts:
            starts = frame.at(self.loop.starts).to(I8).load().differs(0)
            found = starts if found is None else found & starts
        return found

    def slot(self, table: Value, name: str) -> Value:
        """Return the place in a table of what the body reads or writes."""
        return table.at(self.slots[name])

    def repeat(self, frame: DriverFrame, table: Value, most: Value) -> None:
        """Write the iterations, of which there is one at least."""
        b, loop = frame.b, self.loop
        growing = self.left if loop.going else []
        others = [row for row in loop.rows if row not in growing]
        steady = [(row, self.slot(table, row.row).load().to(I8), self.first_row(frame, row)[1]) for row in others]
        room = b.stack(I64)
        if growing:
            room.store(FIRST_ROWS)

        def each(index: Value, end: Callable[[], None]) -> None:
            self.driver.module.run(frame, loop.body, table)
            going = self.slot(table, loop.going).load().to(I8).load() if loop.going else None
            self.hand_on(frame, table)
            done = index + 1
            for row, first, step in steady:
                self.slot(table, row.row).store(self.row_after(first, step, done).as_address())
            self.end_of_iteration(frame, going, done, room, end)
            for row in growing:
                place = self.row_after(*self.first_row(frame, row), done)
                self.slot(table, row.row).store(place.as_address())

        with b.section() as end:
            with b.loop(most, certain=True) as steps:
                each(steps.index, end)
            if loop.going:
                frame.fail()

    def row_after(self, first: Value, step: Value | int, done: Value) -> Value:
        """Return where the row lies that comes after some iterations."""
        return first.at(done * step * (-1 if self.loop.reverse else 1))

    def end_of_iteration(
        self, frame: DriverFrame, going: Value | None, done: Value, room: Value, end: Callable[[], None]
    ) -> None:
        """Write what tells whether there is a next iteration, and makes room for its rows."""
        b, growing = frame.b, self.left if self.loop.going else []
        if going is not None:
            with b.when(going.equals(0)):
                for row in growing:
                    frame.at(row.buffer).to(GROWING).set("count", done)
                end()
        if growing:
            with b.when(done.equals(room.load())):
                self.grow(frame, growing, room, done)
        self.look_up(frame, done)

    def grow(self, frame: DriverFrame, growing: Sequence[Row], room: Value, done: Value) -> None:
        """Write that rows get twice the room."""
        room.store(done + done)
        for row in growing:
            self.take_room(frame, row, done + done, done)

    def look_up(self, frame: DriverFrame, done: Value) -> None:
        """Write that the loop looks up after some iterations."""
        if self.often < self.loop.rounds:
            with frame.b.when((done & (self.often - 1)).equals(0)):
                frame.look_up()

    def hand_on(self, frame: DriverFrame, table: Value) -> None:
        """Write what lets the next iteration read what this one wrote, first where nothing changes places."""
        for x in self.loop.carried:
            if x.into not in self.swaps and x.out != x.into:
                out = self.slot(table, x.out).load() if x.out else frame.at(x.known).as_address()
                self.slot(table, x.into).store(out)
        pairs = [(self.slot(table, into), self.slot(table, out)) for into, out in self.swaps.items()]
        for into, out in pairs:
            before = into.load()
            into.store(out.load())
            out.store(before)


class RepeatingNumbers(Repeating):
    """Write a loop whose iterations hand on numbers in registers.

    Attributes:
        part: the program of an iteration.
    """

    def __init__(self, driver: Driver, loop: Loop, part: Kernels) -> None:
        super().__init__(driver, loop)
        self.part = part

    def write(self, frame: DriverFrame) -> None:
        """Write what runs the loop."""
        loop = self.loop
        for name in (*loop.reads, *loop.writes):
            frame.at(name)  # all that follows has them, whether there is an iteration or not
        times = self.times(frame)
        self.make_room(frame, times)
        condition = self.condition(frame, times)
        if condition is None:
            self.iterate(frame, times) if loop.rounds else self.skip(frame)
            return
        with frame.b.when(condition) as otherwise:
            self.iterate(frame, times)
        with otherwise:
            self.skip(frame)

    def skip(self, frame: DriverFrame) -> None:
        """Write what is done if there is no iteration."""
        for x in self.loop.carried:
            if x.result != x.start:
                copy_bytes(frame.b, frame.at(x.result), frame.at(x.start), bytes_of(self.buffers[x.into]))

    def iterate(self, frame: DriverFrame, times: Value) -> None:
        """Write the iterations, of which there is one at least, and their results."""
        b, loop = frame.b, self.loop
        growing = self.left if loop.going else []
        begins = {x.row: self.beginning(frame, x, times) for x in loop.rows if x not in growing}
        places = [(x, place) for x in loop.carried for place in range(self.buffers[x.into].size)]
        constants, known, starts = Places(), Places(), Places()
        for own in loop.constants:
            read = [place for name, place in self.part.reads if name == own.row]
            constants.update(self.numbers(frame, own.buffer, own.row, read))
        for x in loop.carried:
            each = range(self.buffers[x.into].size)
            starts.update(self.numbers(frame, x.start, x.into, each))
            known.update({} if x.out else self.numbers(frame, x.known, x.into, each))
        room = b.stack(I64)
        if growing:
            room.store(FIRST_ROWS)
        first = [starts[x.into, place] for x, place in places]
        with b.section() as end:
            with b.loop(times, carry=first, certain=True) as steps:
                rows = {name: begin.at(steps.index * step) for name, (begin, step) in begins.items()}
                registers = self.registers(frame, {**rows, **self.growing_rows(frame, steps.index)})
                carried = {(x.into, n): value for (x, n), value in zip(places, steps.values, strict=True)}
                registers.values.update({**constants, **carried})
                self.part.emission.run_in(registers)
                if loop.body.failing:
                    frame.fail_if(registers.load(loop.body.failing, 0))
                following = [registers.load(x.out, n) if x.out else known[x.into, n] for x, n in places]
                registers.write_back([row.row for row in loop.rows])
                steps.next(*following)
                going = registers.load(loop.going, 0) if loop.going else None
                self.end_of_iteration(frame, going, steps.index + 1, room, end)
            if loop.going:
                frame.fail()
        for (x, place), value in zip(places, following, strict=True):
            write_number(value, typed_address(self.buffers[x.into], frame.at(x.result)), place)

    def growing_rows(self, frame: DriverFrame, index: Value) -> dict[str, Value]:
        """Return the addresses of the rows of an iteration that may lie elsewhere in the next one."""
        found = {}
        for row in self.left if self.loop.going else []:
            first, step = self.first_row(frame, row)
            found[row.row] = first.at(index * step)
        return found

    def registers(self, frame: DriverFrame, rows: Mapping[str, Value]) -> Registers:
        """Return the registers of an iteration, whose rows have some addresses."""
        places = {**{x.row: frame.at(x.buffer) for x in self.loop.constants}, **rows}
        emission = self.part.emission

        def address(name: str) -> Value:
            place = places.get(name)
            if place is None:
                place = self.driver.module.at(frame.memory, self.part.place).at(emission.arena.places[name])
                place = place.to(POINTER).load() if lies_outside(emission.buffers[name]) else place
            return typed_address(emission.buffers[name], place)

        assert emission.numbers is not None
        return Registers(frame.b, emission.buffers, emission.numbers, address)

    def numbers(self, frame: DriverFrame, name: str, into: str, places: Iterable[int]) -> Places:
        """Return the numbers of a buffer that the body has by another name."""
        buffer = self.driver.buffers[name]
        return {(into, n): number_of(frame.b, buffer, n, lambda: typed_address(buffer, frame.at(name))) for n in places}
