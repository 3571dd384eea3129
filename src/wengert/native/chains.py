"""Chains: programs and loops of programs in order, as one kernel.

All that a chain needs to know stands in its arena, by offsets, since a second thread gets a copy of the arena: steps,
where their arguments are, the arenas of programs, constants, and what one step hands to the next.
"""

from __future__ import annotations

from wengert.native.builder import Builder
from wengert.native.functions import Function, external
from wengert.native.interrupts import give_back, is_stopped, looking
from wengert.native.repeating import ENDED, LINK, MOVE, REPETITION, repeat
from wengert.native.structs import I8, I64, POINTER, Pointer, Struct
from wengert.native.tables import KERNEL
from wengert.native.values import Value

__all__ = ["CHAIN", "CHAINED", "COPIED", "COPY", "COPYING", "PLACE", "STEP", "chain", "copied"]

CHAINED = "chain"
COPIED = "copied"

CHAIN = Struct(
    "Chain",
    steps=I64,
    step=I64,  # where STEPs stand
    failed=I64,  # which argument is the byte that says that Python is to do it
)
"""What stands at the beginning of the arena."""

PLACE = Struct(
    "Place",
    argument=I64,  # which argument of the chain; -1 for the arena
    offset=I64,
)

COPY = Struct(
    "Copy",
    index=I64,  # in the table of a step
    argument=I64,  # where it is to be, as in PLACE
    offset=I64,
    size=I64,
)

STEP = Struct(
    "Step",
    run=Pointer(KERNEL),
    memory=I64,  # where the arena of the program begins
    table=I64,  # where the addresses of its arguments are to stand
    places=I64,
    place=I64,
    failing=I64,  # the index of whether it cannot do what is to be done
    looks=I64,  # whether to look up before, see `interrupts`
    most=I64,  # how often it runs; 0 for a program that is no loop
    counted=I64,  # the index of how often it runs, at most as often as that; -1 if it is as often
    often=I64,  # rounds after which to look up
    sure=I64,  # whether it runs as often as that, or until it says that it ends
    starting=I64,  # the index of whether there is a first time
    going=I64,
    links=I64,
    link=I64,
    moves=I64,
    move=I64,
    copies=I64,
    copy=I64,
    ends=I64,
    end=I64,
)

COPYING = Struct("Copying", size=I64)
"""What stands in the arena of `copied`."""

move_bytes = external("memcpy", POINTER, POINTER, POINTER, I64)


def run_chain(b: Builder, addresses: Value, arena: Value, team: Value) -> None:
    """Run all steps; where one fails, or an error of Python's is to go on, say that the chain failed."""
    memory = arena.to(I8)
    whole = arena.to(CHAIN)
    failed = addresses.at(whole.get("failed")).load().to(I8)
    failed.store(0)
    repetition, look = b.stack(REPETITION), looking(b)

    def fail() -> None:
        failed.store(1)
        give_back(b, look)
        b.give()

    with b.loop(whole.get("steps")) as each:
        step = memory.at(whole.get("step")).to(STEP).at(each.index)
        with b.when(step.get("looks").differs(0)), b.when(is_stopped(b, look)):
            fail()
        table = memory.at(step.get("table")).to(POINTER)
        with b.loop(step.get("places")) as places:
            place = memory.at(step.get("place")).to(PLACE).at(places.index)
            table.at(places.index).store(found(b, addresses, memory, place))
        with b.when(step.get("most").equals(0)) as otherwise:
            b.do(step.get("run"), table, memory.at(step.get("memory")).as_address(), team)
            with b.when(table.at(step.get("failing")).load().to(I8).load().differs(0)):
                fail()
        with otherwise:
            with b.loop(step.get("copies")) as copies:
                copy = memory.at(step.get("copy")).to(COPY).at(copies.index)
                target = found(b, addresses, memory, copy)
                source = table.at(copy.get("index"))
                b.do(move_bytes, target, source.load(), copy.get("size"))
                source.store(target)
            times = rounds(b, step, table)
            with b.when(step.get("most") < times):
                fail()
            going = table.at(step.get("starting")).load().to(I8).load().differs(0)
            with b.when(going & (b.constant(I64, 0) < times)):
                begin_with_the_last(b, memory, step, table, times)
                for name in ("run", "going", "failing", "links", "moves", "often"):
                    repetition.set(name, step.get(name))
                repetition.set("addresses", table)
                repetition.set("memory", memory.at(step.get("memory")).as_address())
                repetition.set("team", team)
                repetition.set("link", memory.at(step.get("link")).to(LINK))
                repetition.set("move", memory.at(step.get("move")).to(MOVE))
                repetition.set("state", 0)
                run = b.call(repeat, repetition, times)
                with b.when(step.get("often") < run), b.when(is_stopped(b, look)):
                    fail()
                state = repetition.get("state")
                with b.when(state.differs(b.select(step.get("sure").differs(0), b.constant(I64, 0), ENDED))):
                    fail()
            with b.loop(step.get("ends")) as ends:
                end = memory.at(step.get("end")).to(COPY).at(ends.index)
                target = found(b, addresses, memory, end)
                b.do(move_bytes, target, table.at(end.get("index")).load(), end.get("size"))
    give_back(b, look)
    b.give()


def rounds(b: Builder, step: Value, table: Value) -> Value:
    """Return how often a step runs."""
    counted = step.get("counted")

    def told() -> list[Value]:
        return [table.at(counted).load().to(I64).load()]

    return b.either(counted < 0, lambda: [step.get("most")], told)[0]


def begin_with_the_last(b: Builder, memory: Value, step: Value, table: Value, times: Value) -> None:
    """Let a loop from the end begin with the last row, where only the number of rows tells which that is."""
    with b.when(b.constant(I64, -1) < step.get("counted")), b.loop(step.get("moves")) as moves:
        move = memory.at(step.get("move")).to(MOVE).at(moves.index)
        back = b.select(move.get("step") < 0, move.get("step"), 0)
        place = table.at(move.get("place"))
        place.store(place.load().to(I8).at(b.constant(I64, 0) - back * (times - 1)).as_address())


def found(b: Builder, addresses: Value, memory: Value, place: Value) -> Value:
    """Return the address of a place."""
    argument, offset = place.get("argument"), place.get("offset")
    given = addresses.at(b.select(argument < 0, b.constant(I64, 0), argument)).load().to(I8)
    return b.select(argument < 0, memory.at(offset).as_address(), given.at(offset).as_address())


def copy_all(b: Builder, addresses: Value, arena: Value, _team: Value) -> None:
    """Copy so many bytes from the first address to the second."""
    source, target, failed = (addresses.at(i).load() for i in range(3))
    b.do(move_bytes, target, source, arena.to(COPYING).get("size"))
    failed.to(I8).store(0)


chain = Function(CHAINED, KERNEL, run_chain)
copied = Function(COPIED, KERNEL, copy_all)
