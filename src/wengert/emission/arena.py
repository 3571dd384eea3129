"""One block of memory for a program, laid out while it is compiled: memory is used again after its last kernel."""

from __future__ import annotations

import ctypes
import sys
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from wengert.kernel.kernel import Buffer
from wengert.native.structs import POINTER
from wengert.support.caches import cached
from wengert.support.machine import MACHINE, whole_lines
from wengert.support.records import FieldRecord, NamedTuple

ADDRESS = ctypes.sizeof(POINTER.ctype)
MOVED = 1 << 12
"""Bytes up to which constants lie in arenas, some of which are made anew for each call: of larger ones, the address."""
ROOM = 2
"""Lines of which buffers of the row, and those of parts, are whole multiples, so that their vectors need no masks."""


class Arena(FieldRecord):
    """Where buffers lie.

    Attributes:
        places: in bytes from the beginning, by name.
        size: in bytes.
    """

    places: dict[str, int]
    size: int


class Block:
    """Be memory of the arena that is used while a program or a step runs: it lies behind that of all who run it.

    What runs at different times shares memory so.
    """

    def __init__(self, caller: Block | None = None) -> None:
        self.callers = [] if caller is None else [caller]
        self.size = 0

    def room(self, size: int) -> Room:
        """Return a place in the block for so many bytes, at the beginning of a cache line."""
        start = whole_lines(self.size)
        self.size = start + size
        return Room(start, self)

    @cached
    def start(self) -> int:
        """Where the block begins, once all who run it are known."""
        return max([whole_lines(caller.end) for caller in self.callers], default=0)

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + self.size


class Room(NamedTuple):
    """Be a place in the arena: in a block, or, without one, of what stays from call to call."""

    offset: int
    block: Block | None = None


def lies_outside(buffer: Buffer) -> bool:
    """Whether a buffer is of constants that are read where they are, since a call would take long to copy them."""
    return buffer.kind == "constant" and len(buffer.contents) > MOVED


def constant_entry(buffer: Buffer, place: int) -> tuple[int, bytes, bool]:
    """Return what an arena must hold at the place of constants."""
    return place, buffer.contents, lies_outside(buffer)


def padded_size(size: int) -> int:
    """Return the bytes that a buffer has with room for whole steps."""
    return -(-size // (ROOM * MACHINE.line)) * ROOM * MACHINE.line


def laid_out(uses: Sequence[Iterable[str]], buffers: dict[str, Buffer], size: Callable[[Buffer], int]) -> Arena:
    """Lay out what no caller gives."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for n, names in enumerate(uses):
        for name in names:
            if buffers[name].kind not in ("input", "changed", "output"):
                first.setdefault(name, n)
                last[name] = n
    for name, buffer in buffers.items():
        if buffer.kind == "constant":
            first[name], last[name] = 0, len(uses)
    places: dict[str, int] = {}
    busy: list[tuple[int, int, int]] = []  # the last time, and (begin, end) in memory
    free, end = [(0, sys.maxsize)], 0
    for name in sorted(first, key=lambda name: (buffers[name].kind != "constant", first[name], name)):
        while busy and busy[0][0] < first[name]:
            release(free, *heappop(busy)[1:])
        length = ADDRESS if lies_outside(buffers[name]) else size(buffers[name])
        length = -(-length // MACHINE.line) * MACHINE.line + MACHINE.gap
        places[name] = place = take(free, length)
        heappush(busy, (last[name], place, place + length))
        end = max(end, place + length)
    return Arena(places, end)


def take(free: list[tuple[int, int]], length: int) -> int:
    """Return the first place that is free for so many bytes, which is not free from now on."""
    k, (begin, end) = next((k, hole) for k, hole in enumerate(free) if hole[1] - hole[0] >= length)
    free[k : k + 1] = [(begin + length, end)] if begin + length < end else []
    return begin


def release(free: list[tuple[int, int]], begin: int, end: int) -> None:
    """Let memory be free again, as one with what is free beside it."""
    k = bisect(free, (begin, end))
    if free[k][0] == end:
        end = free.pop(k)[1]
    if k and free[k - 1][1] == begin:
        k -= 1
        begin = free.pop(k)[0]
    free.insert(k, (begin, end))
