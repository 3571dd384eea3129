"""Loops of machine code: a program is run again and again, each time on what it gave before."""

from __future__ import annotations

from wengert.native.builder import Builder
from wengert.native.functions import Function
from wengert.native.interrupts import give_back, is_stopped, looking
from wengert.native.structs import I8, I64, POINTER, Pointer, Signature, Struct
from wengert.native.tables import KERNEL
from wengert.native.values import Value

REPEAT = "repeat"
ENDED, FAILED = 1, 2

LINK = Struct(
    "Link",
    into=I64,  # the place, among the addresses, of what the program reads
    out=I64,  # of what it has written, which it reads next
    swaps=I64,  # whether it writes next to where it has read
)

MOVE = Struct(
    "Move",
    place=I64,  # among the addresses, of one of a row of arrays
    step=I64,  # bytes from one to the next
)

REPETITION = Struct(
    "Repetition",
    run=Pointer(KERNEL),
    addresses=Pointer(POINTER),  # of what the program reads and writes, and of what it is to read once
    memory=POINTER,
    team=POINTER,
    going=I64,  # the place of what the program says of whether to go on
    failing=I64,  # and of whether it cannot do what is to be done
    links=I64,
    link=Pointer(LINK),
    moves=I64,
    move=Pointer(MOVE),
    often=I64,  # rounds after which to look up, see `interrupts`
    state=I64,  # ENDED, FAILED, or neither
)
"""A program, and how its arguments follow each other."""


def run_again(b: Builder, repetition: Value, most: Value) -> None:
    """Run a program again and again, at most so many times, at least once; return how many times it ran to its end.

    It has failed, too, where an error of Python's is to go on.
    """
    addresses, look = repetition.get("addresses"), looking(b)

    def end(rounds: Value) -> None:
        give_back(b, look)
        b.give(rounds)

    with b.loop(most, certain=True) as parts:
        stop = b.least(parts.index + repetition.get("often"), most)
        with b.loop(stop, parts.index, certain=True) as each:
            b.do(repetition.get("run"), addresses, repetition.get("memory"), repetition.get("team"))
            going, failing = (addresses.at(repetition.get(name)).load().to(I8).load() for name in ("going", "failing"))
            with b.when(failing.differs(0)):
                repetition.set("state", FAILED)
                end(each.index)
            with b.loop(repetition.get("links")) as links:
                link = repetition.get("link").at(links.index)
                into, out = (addresses.at(link.get(name)) for name in ("into", "out"))
                before = into.load()
                into.store(out.load())
                with b.when(link.get("swaps").differs(0)):
                    out.store(before)
            with b.loop(repetition.get("moves")) as moves:
                move = repetition.get("move").at(moves.index)
                address = addresses.at(move.get("place"))
                address.store(address.load().to(I8).at(move.get("step")).as_address())
            with b.when(going.equals(0)):
                repetition.set("state", ENDED)
                end(each.index + 1)
        parts.step = repetition.get("often")
        with b.when(stop < most), b.when(is_stopped(b, look)):
            repetition.set("state", FAILED)
            end(stop)
    end(most)


repeat = Function(REPEAT, Signature(I64, (Pointer(REPETITION), I64)), run_again)
