"""Loops of programs: those that hand few numbers from one iteration to the next keep them in registers.

What an iteration reads in each round, and what it is handed, are values of the code, so that nothing waits for what was
stored just before; only rows that are left behind, and results at the end, are written to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from wengert.emission.arena import lies_outside
from wengert.emission.driver import FIRST_ROWS, Driver, DriverFrame, Kernels, Repeating, bytes_of, copy_bytes
from wengert.emission.programs import typed
from wengert.emission.registers import Places, Registers, number_of, write_number
from wengert.kernel.kernel import Loop
from wengert.native.growing_rows import GROWING
from wengert.native.structs import I64, POINTER
from wengert.native.values import Value

MOST_CARRIED = 64
"""Numbers that a loop hands from one iteration to the next in registers."""


def repeating(driver: Driver, loop: Loop) -> Repeating:
    """Return what writes a loop: with what it carries in registers, where these are few numbers."""
    part, used = driver.module.part(loop.body), driver.module.uses[driver.module.number(loop.body)]
    if used > 1 or not isinstance(part, Kernels) or part.emission.numbers is None:
        return Repeating(driver, loop)
    carried = [loop.body.named[x.into] for x in loop.carried]
    is_small = sum([buffer.size for buffer in carried]) <= MOST_CARRIED
    if not is_small or not part.emission.are_held([buffer.name for buffer in carried]):
        return Repeating(driver, loop)
    return RepeatingNumbers(driver, loop, part)


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
                self.end_of_iteration(frame, registers, steps.index + 1, room, end)
            if loop.going:
                frame.fail()
        for (x, place), value in zip(places, following, strict=True):
            write_number(value, typed(self.buffers[x.into], frame.at(x.result)), place)

    def growing_rows(self, frame: DriverFrame, index: Value) -> dict[str, Value]:
        """Return the addresses of the rows of an iteration that may lie elsewhere in the next one."""
        found = {}
        for row in self.left if self.loop.going else []:
            first, step = self.first_row(frame, row)
            found[row.row] = first.at(index * step)
        return found

    def end_of_iteration(
        self, frame: DriverFrame, registers: Registers, done: Value, room: Value, end: Callable[[], None]
    ) -> None:
        """Write what tells whether there is a next iteration, and makes room for its rows."""
        b, growing = frame.b, self.left if self.loop.going else []
        if self.loop.going:
            with b.when(registers.load(self.loop.going, 0).equals(0)):
                for row in growing:
                    frame.at(row.buffer).to(GROWING).set("count", done)
                end()
        if growing:
            with b.when(done.equals(room.load())):
                self.grow(frame, growing, room, done)
        self.look_up(frame, done)

    def registers(self, frame: DriverFrame, rows: Mapping[str, Value]) -> Registers:
        """Return the registers of an iteration, whose rows have some addresses."""
        places = {**{x.row: frame.at(x.buffer) for x in self.loop.constants}, **rows}
        emission = self.part.emission

        def address(name: str) -> Value:
            place = places.get(name)
            if place is None:
                place = self.driver.module.at(frame.memory, self.part.place).at(emission.arena.places[name])
                place = place.to(POINTER).load() if lies_outside(emission.buffers[name]) else place
            return typed(emission.buffers[name], place)

        assert emission.numbers is not None
        return Registers(frame.b, emission.buffers, emission.numbers, address)

    def numbers(self, frame: DriverFrame, name: str, into: str, places: Iterable[int]) -> Places:
        """Return the numbers of a buffer that the body has by another name."""
        buffer = self.driver.buffers[name]
        return {(into, n): number_of(frame.b, buffer, n, lambda: typed(buffer, frame.at(name))) for n in places}
