"""Programs whose steps run others: functions that run the steps, in one module with the kernels of all.

Each program that differs from the others is one function, and has one place in the arena, since no two run at a time
but one inside of the other. The address of each argument stands in a table, as an entry would give it; a loop
hands rows and carried values on by other addresses in its table, so that only what is carried at first is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from wengert.emission.arena import ADDRESS, Block, Room, constant_entry, laid_out, lies_outside
from wengert.emission.external_functions import declaration_of
from wengert.emission.parallel_split import lanes_of
from wengert.emission.programs import RUN, Emission
from wengert.emission.routines.routine_calls import KernelCall, given_bytes, routine_of, start_of_work
from wengert.kernel.durations import cycles_of
from wengert.kernel.kernel import Buffer, Copy, Invoke, Loop, Product, Program, ProgramStep, Run, Switch
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.growing_rows import GROWING
from wengert.native.interrupts import LOOK, LOOK_UP, give_back, looking
from wengert.native.row_pool import (
    POOL,
    begin_pool,
    hand_out,
    mark_pool,
    move_bytes,
    release_pool,
    repeat_row,
    reuse_pool,
)
from wengert.native.structs import BOOL, I8, I32, I64, POINTER, Array, Pointer, Signature
from wengert.native.threads.jobs import SHARE
from wengert.native.values import Value
from wengert.support.caches import cached
from wengert.support.machine import MACHINE, whole_lines

STEPS = Signature(BOOL, (*RUN.parameters, Pointer(LOOK)))
"""What runs steps, and tells whether one failed: as RUN, with the LOOK of the call."""
FIRST_POOL = 1 << 15
"""Bytes of the arena that rows which grow lie in at first."""


class Assembly:
    """Hold the programs of one module.

    Args:
        target: the processor.
        loops: returns what writes a loop.

    Attributes:
        outside: the names of the functions that the code calls and does not have.
        numbers: of the programs that differ; and by what is one in memory, since it takes long to compare them.
        parts: the programs, by number.
        uses: how often each is run in the text: one that is run once has no function of its own.
        size: bytes of the arena so far: of what stays from call to call, and then of the blocks.
        blocks: the memory of programs and steps.
        constants: what it must hold before the first call, but for what routines are given.
        routines: these: where each lies, what calls it, and the memory that it works in.
        has_pool: whether loops leave rows behind that grow.
    """

    def __init__(self, target: Target, loops: Callable[[Driver, Loop], Callable[[DriverFrame], None]]) -> None:
        self.target, self.loops, self.has_pool = target, loops, False
        self.outside: set[str] = set()
        self.parts: dict[int, Driver | Kernels] = {}
        self.uses = Counter[int]()
        self.numbers: dict[Program, int] = {}
        self.known: dict[int, int] = {}
        self.size = 0
        self.blocks: list[Block] = []
        self.constants: list[tuple[int, bytes, bool]] = []
        self.routines: list[tuple[int, KernelCall, Room]] = []

    def block(self, caller: Block | None = None) -> Block:
        """Return memory for what is run by the owner of some other."""
        self.blocks.append(Block(caller))
        return self.blocks[-1]

    @cached
    def block_place(self) -> int:
        """The place in the arena of all blocks, once all programs are known."""
        return self.room(max([block.end for block in self.blocks], default=0))

    def at(self, memory: Value, room: Room) -> Value:
        """Return the address of a place in the arena."""
        return memory.at(self.place_of(room))

    def place_of(self, room: Room) -> int:
        """Return a place as bytes from the beginning of the arena, once all programs are known."""
        return room.offset if room.block is None else self.block_place + room.block.start + room.offset

    @cached
    def pool(self) -> int:
        """The place in the arena of the POOL for rows that grow, and behind it of its first memory."""
        return self.room(MACHINE.apart + FIRST_POOL)

    def room(self, size: int) -> int:
        """Return a place in the arena for so many bytes, at the beginning of a cache line."""
        start = whole_lines(self.size)
        self.size = start + size
        return start

    def contents(self) -> tuple[tuple[int, bytes, bool], ...]:
        """Return what the arena must hold before the first call, once all programs are known."""
        given = [(place, given_bytes(call, self.place_of(work) - place), False) for place, call, work in self.routines]
        return (*self.constants, *given)

    def holding(self, buffer: Buffer) -> int:
        """Return a place in the arena for constants, or for their address."""
        place = self.room(ADDRESS if lies_outside(buffer) else len(buffer.contents))
        self.constants.append(constant_entry(buffer, place))
        return place

    def entry(self, program: Program) -> NativeFunction:
        """Return the function that is called from outside, which looks up as seldom as all inside together."""
        self.count_uses(program)
        driver, flag = Driver(self, program, "p."), len(program.inputs) + len(program.outputs) - 1

        def run(b: Builder, addresses: Value, memory: Value, team: Value) -> None:
            look = looking(b) if program.repeats else b.constant(Pointer(LOOK), None)
            failed = addresses.at(flag).load().to(I8) if program.failing else b.stack(I8)
            failed.store(1)
            frame = DriverFrame(driver, b, addresses, memory, team, look, lambda: None)
            if self.has_pool:
                begin_pool(frame.pool, memory.at(self.pool + MACHINE.apart), FIRST_POOL)
            with b.section() as frame.fail:
                driver.write(frame)
                for name in program.outputs:
                    if driver.buffers[name].grows:
                        frame.fail_if(hand_out(b, frame.at(name).to(GROWING)))
                failed.store(0)
            if self.has_pool:
                release_pool(b, frame.pool)
            if program.repeats:
                give_back(b, look)

        return NativeFunction("run", RUN, run)

    def count_uses(self, program: Program) -> None:
        """Count how often programs are run in the text, which is once for each step of a program that differs."""
        for inner in program.programs:
            number = self.number(inner)
            self.uses[number] += 1
            if self.uses[number] == 1:
                self.count_uses(inner)

    def number(self, program: Program) -> int:
        """Return the number of a program, which equal ones share."""
        known = self.known.get(id(program))
        if known is None:
            known = self.known[id(program)] = self.numbers.setdefault(program, len(self.numbers))
        return known

    def part(self, program: Program, caller: Block | None = None) -> Driver | Kernels:
        """Return a program as a part of the module, which some block's owner runs."""
        number = self.number(program)
        if number not in self.parts:
            self.parts[number] = (Driver if program.is_nested else Kernels)(self, program, f"p{number}.")
        if caller is not None:
            self.parts[number].block.callers.append(caller)
        return self.parts[number]

    def run(self, frame: DriverFrame, program: Program, table: Value) -> None:
        """Write that a program is run, whose arguments stand in a table, and that all fails if it does."""
        part, b, own = self.part(program), frame.b, self.uses[self.number(program)] == 1
        if isinstance(part, Driver):
            if own:
                part.write(DriverFrame(part, b, table, frame.memory, frame.team, frame.look, frame.fail))
            else:
                frame.fail_if(b.call(part.function, table, frame.memory, frame.team, frame.look))
            return
        memory, function = self.at(frame.memory, part.place), part.emission.function
        if own and not function.brief:
            part.emission.run(b, table, memory, frame.team)
        else:
            b.do(function, table, memory, frame.team)
        if program.failing:
            failed = table.at((*program.inputs, *program.outputs).index(program.failing)).load().to(I8)
            frame.fail_if(failed.load().differs(0))

    def declare(self, name: str) -> NativeFunction:
        """Return a function that the module does not have."""
        self.outside.add(name)
        return declaration_of(name, self.target)


class Kernels:
    """Be a program of kernels in a module.

    Attributes:
        emission: writes it.
        place: where in the arena it works.
        held: the buffers that may be held in registers.
    """

    def __init__(self, module: Assembly, program: Program, prefix: str) -> None:
        self.emission = Emission(program, module.target, module.outside, prefix)
        self.block, size, constants = module.block(), self.emission.arena.size, self.emission.constants
        self.place = Room(module.room(size)) if constants else self.block.room(size)
        self.held = self.emission.numbers or frozenset()
        module.constants += [(self.place.offset + offset, x, is_far) for offset, x, is_far in constants]

    @cached
    def reads(self) -> list[tuple[str, int]]:
        """The places of buffers that are read and held in registers."""
        loads = [o for step in self.emission.steps for stage in step.kernel.stages for o in stage.operations if o.at]
        return list(dict.fromkeys([(o.buffer, o.at.constant) for o in loads if o.at and o.buffer in self.held]))


class Driver:
    """Write the function that runs the steps of a program, none of which is a kernel."""

    def __init__(self, module: Assembly, program: Program, prefix: str) -> None:
        self.module, self.program, self.prefix = module, program, prefix
        self.buffers = program.buffers_by_name
        self.given = {name: n for n, name in enumerate((*program.inputs, *program.outputs))}
        self.block = module.block()
        self.places = self.shared_places()
        for buffer in program.buffers:
            if buffer.kind == "constant":
                self.places[buffer.name] = Room(module.holding(buffer))
            elif buffer.name not in self.given and buffer.name not in self.places:
                self.places[buffer.name] = Room(module.room(bytes_of(buffer)))
        self.writers = list(map(self.writer, program.steps))

    def shared_places(self) -> dict[str, Room]:
        """Return the places of large temporaries, which lie where others do that are read no more."""
        large = {x.name: x for x in self.program.buffers if x.kind == "temporary" and bytes_of(x) >= MACHINE.gap}
        uses = [[name for name in (*step.reads, *step.writes) if name in large] for step in self.program.steps]
        arena = laid_out(uses, large, bytes_of)
        self.block.room(arena.size)
        return {name: Room(place, self.block) for name, place in arena.places.items()}

    @cached
    def function(self) -> NativeFunction:
        """The function that runs the steps, and tells whether one failed, where several programs run them."""

        def run(b: Builder, addresses: Value, memory: Value, team: Value, look: Value) -> None:
            self.write(DriverFrame(self, b, addresses, memory, team, look, lambda: b.give(True)))
            b.give(False)

        return NativeFunction(f"{self.prefix}run", STEPS, run)

    def writer(self, step: ProgramStep) -> Callable[[DriverFrame], None]:
        """Return what writes a step."""
        match step:
            case Run():
                return self.running(step)
            case Invoke() | Product():
                return self.calling(routine_of(step, self.buffers, self.module.target))
            case Copy():
                source, target = self.buffers[step.source], self.buffers[step.target]
                if target.holds_rows_of(source):
                    return lambda frame: repeat_row(frame.at(target.name), frame.at(source.name))
                return lambda frame: copy_bytes(frame.b, frame.at(target.name), frame.at(source.name), bytes_of(source))
            case Switch():
                return self.choosing(step)
            case Loop():
                return self.module.loops(self, step)
        raise TypeError(step)

    def write(self, frame: DriverFrame) -> None:
        """Write what runs all steps; where one fails, or an error of Python's is to go on, all fails.

        Rows that grow are forgotten at the end, if none are among the results.
        """
        grown = {name for name, buffer in self.buffers.items() if buffer.grows}
        mark = (
            mark_pool(frame.pool) if grown.difference(self.given) and grown.isdisjoint(self.program.outputs) else None
        )
        unseen, repeats = 0.0, self.program.repeats
        for step, write in zip(self.program.steps, self.writers, strict=True):
            unseen += cycles_of(Program((), (), (), (step,)), lanes_of(self.module.target))
            if unseen > MACHINE.moment and repeats:
                frame.look_up()
                unseen = 0.0
            write(frame)
        if mark is not None:
            reuse_pool(frame.b, frame.pool, mark)

    def running(self, step: Run) -> Callable[[DriverFrame], None]:
        """Return what writes that a program is run."""
        can_fail = bool(step.program.failing)
        failed = self.module.room(1) if can_fail else 0
        self.module.part(step.program, self.block)

        def write(frame: DriverFrame) -> None:
            addresses = [*map(frame.at, step.arguments), *[frame.memory.at(failed)] * can_fail]
            self.module.run(frame, step.program, frame.table(addresses))

        return write

    def choosing(self, step: Switch) -> Callable[[DriverFrame], None]:
        """Return what writes that one of several programs is run."""
        kind = I8 if self.buffers[step.index].dtype.itemsize == 1 else I64
        first, *others = list(map(self.running, step.cases))

        def write(frame: DriverFrame) -> None:
            for name in (*step.reads, *step.writes):
                frame.at(name)  # all of them have it, whichever is run
            index = frame.at(step.index).to(kind).load()
            with frame.b.section() as end:
                for n, other in enumerate(others, 1):
                    with frame.b.when(index.equals(n)):
                        other(frame)
                        end()
                first(frame)

        return write

    def calling(self, routine: KernelCall) -> Callable[[DriverFrame], None]:
        """Return what writes that a routine is called."""
        module = self.module
        function, failed = module.declare(routine.name), module.room(1) if routine.may_fail else 0
        place = module.room(start_of_work(routine))
        module.routines.append((place, routine, module.block(self.block).room(routine.work)))
        if routine.is_shared:
            module.outside.add(SHARE)

        def write(frame: DriverFrame) -> None:
            addresses = [*map(frame.at, routine.arguments), *[frame.memory.at(failed)] * routine.may_fail]
            frame.b.do(function, frame.table(addresses), frame.memory.at(place).as_address(), frame.team.as_address())
            if routine.may_fail:
                frame.fail_if(frame.memory.at(failed).load().differs(0))

        return write


class DriverFrame:
    """Hold what the steps of a function share while it is written.

    Attributes:
        b: what the code is written with.
        memory: the address of the arena.
        team: that of the team's memory.
        look: the LOOK of the call.
        fail: writes what is done where a step fails.
    """

    def __init__(
        self,
        driver: Driver,
        b: Builder,
        addresses: Value,
        memory: Value,
        team: Value,
        look: Value,
        fail: Callable[[], None],
    ) -> None:
        self.driver, self.b, self.addresses = driver, b, addresses
        self.memory, self.team, self.look, self.fail = memory, team, look, fail
        self.known: dict[str, Value] = {}

    @property
    def pool(self) -> Value:
        """The POOL for rows that grow."""
        return self.memory.at(self.driver.module.pool).to(POOL)

    def at(self, name: str) -> Value:
        """Return the address of a buffer."""
        if name not in self.known:
            given = self.driver.given.get(name)
            is_own, module = given is None, self.driver.module
            place = module.at(self.memory, self.driver.places[name]) if is_own else self.addresses.at(given)
            is_far = not is_own or lies_outside(self.driver.buffers[name])
            self.known[name] = place.to(POINTER).load().to(I8) if is_far else place
        return self.known[name]

    def table(self, addresses: Sequence[Value]) -> Value:
        """Write addresses into a table; return its own."""
        table = self.b.stack(Array(POINTER, len(addresses)))
        for n, address in enumerate(addresses):
            table.at(n).store(address.as_address())
        return table

    def fail_if(self, condition: Value) -> None:
        """Fail if a condition holds."""
        with self.b.when(condition):
            self.fail()

    def look_up(self) -> None:
        """Let other threads run, and Python answer signals; fail if an error is to go on."""
        self.fail_if(self.b.call(self.driver.module.declare(LOOK_UP), self.look))


def copy_bytes(b: Builder, target: Value, source: Value, size: int) -> None:
    """Copy so many bytes from one address to another."""
    if size > MACHINE.copied_words:
        b.do(move_bytes, target.as_address(), source.as_address(), size)
        return
    done = 0
    for kind, width in ((I64, 8), (I32, 4), (I8, 1)):
        while size - done >= width:
            target.to(I8).at(done).to(kind).store(source.to(I8).at(done).to(kind).load())
            done += width


def bytes_of(buffer: Buffer) -> int:
    """Return how much memory a buffer needs; rows that grow have theirs elsewhere."""
    return GROWING.size if buffer.grows else buffer.size * buffer.dtype.itemsize
