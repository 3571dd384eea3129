"""Numbers that stay in registers: those of buffers of which each access is at a place that is known.

Where a program computes number by number, a number that is stored is not read again from memory, and what several
stages compute of the same numbers is computed once. Only results are written to memory, after all else.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from math import prod

import numpy as np

from wengert.emission.arena import lies_outside
from wengert.emission.instructions import from_memory, in_register, literal
from wengert.kernel.kernel import Buffer, Kernel
from wengert.native.builder import Builder
from wengert.native.structs import BOOL, I8
from wengert.native.values import Value

Places = dict[tuple[str, int], Value]
"""The values of elements, by the names of buffers and their places in these."""


class Registers:
    """Hold the numbers of buffers while code is written that runs once.

    Args:
        b: what the code is written with.
        buffers: by name.
        names: of those that are held.
        address: gives the address in memory of one.

    Attributes:
        values: what is known.
        changed: the places that are to be written to memory.
    """

    def __init__(
        self, b: Builder, buffers: dict[str, Buffer], names: Container[str], address: Callable[[str], Value]
    ) -> None:
        self.b, self.buffers, self.names, self.address = b, buffers, names, address
        self.values: Places = {}
        self.changed: dict[tuple[str, int], None] = {}

    def load(self, name: str, place: int) -> Value:
        """Return a number."""
        key = name, place
        if key not in self.values:
            self.values[key] = number_of(self.b, self.buffers[name], place, lambda: self.address(name))
        return self.values[key]

    def store(self, name: str, place: int, value: Value) -> None:
        """Take a number."""
        self.values[name, place] = value
        self.changed[name, place] = None

    def write_back(self, names: Iterable[str]) -> None:
        """Write to memory what buffers have become."""
        wanted = set(names)
        for name, place in [key for key in self.changed if key[0] in wanted]:
            write_number(self.values[name, place], self.address(name), place)
            del self.changed[name, place]


def number_of(b: Builder, buffer: Buffer, place: int, address: Callable[[], Value]) -> Value:
    """Return a number of a buffer: that of a constant as such, else what lies in memory."""
    if buffer.kind == "constant" and not lies_outside(buffer):
        known = np.frombuffer(buffer.contents, buffer.dtype)[place].item()
        return b.constant(in_register(buffer.dtype), literal(buffer.dtype, known))
    first = address()
    return from_memory((first.at(place) if place else first).load(), buffer.dtype)


def write_number(value: Value, address: Value, place: int) -> None:
    """Write a number to its place in a buffer."""
    stored = value.b.convert("zext", value, I8) if value.type == BOOL else value
    (address.at(place) if place else address).store(stored)


def names_in_registers(kernels: Iterable[Kernel]) -> frozenset[str] | None:
    """Return the buffers that may be held in registers; None if not all is computed number by number."""
    found: set[str] = set()
    searched: set[str] = set()
    for kernel in kernels:
        if kernel.rows != 1 or kernel.kept:
            return None
        for stage in kernel.stages:
            if len(stage.extents) != 1 or prod(stage.extents) != 1 or stage.updates or stage.reductions:
                return None
            found.update([o.buffer for o in stage.operations if o.name == "load"], [x.buffer for x in stage.stores])
            searched.update([o.buffer for o in stage.operations if o.name != "load"])
    return frozenset(found - searched)
