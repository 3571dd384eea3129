"""What entries call: a kernel, with the memory that it works in."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.support.machine import MACHINE, whole_lines

WORDS = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
NEAR = 1 << 12
"""Bytes between two constants up to which they are copied together."""
GENERATION = ctypes.c_int64(1)
"""How many processes were forked from each other to this one: what other threads were at when it was forked never ends
here, so what they held is free."""


def begin_anew() -> None:
    """Be another process, which has none of the threads of the one that it was forked from."""
    GENERATION.value += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=begin_anew)


class Callee:
    """Hold what a call of a kernel needs.

    Args:
        address: of a tables.KERNEL, which gets the addresses of the arrays and numbers of the arguments, then of the
            result, each in the order in which `kinds.leaves` has them, and that of a byte, which is zero: if it makes
            that one, there is no result, and Python does what is to be done.
        size: bytes of its arena, memory in whole cache lines in which one call at a time works.
        contents: what the arena holds at first, and at each call if it is there that the kernel does not write: places,
            and bytes. All else is undefined.
        team: where the address of a team's memory stands, for the kernel; none for no team.
        releases: whether other threads may run Python meanwhile, which is worth while above 5 microseconds of work.
        looks: whether it looks up itself when it takes long, see `interrupts`.
        overwritten: the places of inputs, each with that of an output that may lie in its memory.
        owner: what the kernel's code belongs to.

    Attributes:
        arena: the memory for the next call; none if each one has its own.
        busy: the GENERATION of the process while a native call uses the arena, else 0.
    """

    def __init__(
        self,
        address: int,
        *,
        size: int = 0,
        contents: Sequence[tuple[int, bytes | np.ndarray[Any, Any]]] = (),
        team: ctypes.c_void_p | None = None,
        releases: bool = False,
        looks: bool = False,
        overwritten: Sequence[tuple[int, int]] = (),
        owner: Any = None,
    ) -> None:
        self.address, self.contents = address, tuple(contents)
        self.size = max(whole_lines(size), MACHINE.apart)
        self.team, self.releases, self.looks, self.owner = team, releases, looks, owner
        self.overwritten = frozenset(overwritten)
        self.arena = self.new_arena() if self.size <= MACHINE.kept_arena else None
        self.busy = ctypes.c_int64() if self.size <= MACHINE.kept_arena else GENERATION

    @property
    def is_left(self) -> bool:
        """Whether other calls may begin before one ends, or each one needs an arena of its own."""
        return self.releases or self.looks or self.arena is None

    def new_arena(self) -> np.ndarray[Any, Any]:
        """Return an arena for one call."""
        memory = room(self.size)
        for place, content in self.contents:
            memory[place : place + len(content)] = np.frombuffer(content, np.uint8)
        return memory

    def pieces(self) -> list[tuple[int, int, np.ndarray[Any, Any]]]:
        """Return what an arena of one's own is made of: places, sizes, and memory to be copied there."""
        if self.arena is not None:
            return [(0, self.size, self.arena)]
        found: list[tuple[int, bytearray]] = []
        for place, content in sorted(self.contents):
            if not found or place - found[-1][0] - len(found[-1][1]) > NEAR:
                found.append((place, bytearray()))
            start, before = found[-1]
            before += bytes(max(place - start - len(before), 0))
            before[place - start : place - start + len(content)] = content
        return [(place, len(content), np.frombuffer(bytes(content), np.uint8)) for place, content in found]

    def call(self, addresses: Sequence[int]) -> None:
        """Call the kernel through ctypes, in an arena of its own, since native calls may be using the other."""
        releases = self.releases and not self.looks  # what looks releases the lock itself, and errors come from there
        function = (ctypes.CFUNCTYPE if releases else ctypes.PYFUNCTYPE)(None, *WORDS)(self.address)
        arena, team = self.new_arena(), None if self.team is None else self.team.value
        function((ctypes.c_void_p * max(len(addresses), 1))(*addresses), address(arena), team)


def room(size: int) -> np.ndarray[Any, Any]:
    """Return memory of whole cache lines, of one at least, for so many bytes; nothing is in it yet."""
    line = MACHINE.apart
    lines = max(-(-size // line), 1)
    memory = np.empty((lines + 1) * line, np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + lines * line]


def address(array: np.ndarray[Any, Any]) -> int:
    """Return where the elements of an array begin, which lie side by side if they may be written to."""
    if array.flags.writeable and array.size:  # a fifth of the time
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    return array.ctypes.data
