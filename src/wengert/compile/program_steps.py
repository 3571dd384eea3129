"""Chains: graphs whose parts are programs, and loops of programs, as one kernel that entries can call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wengert.compile.layouts import array_kind, as_array, axes_in_kernels
from wengert.compile.programs import Kernel, address_of
from wengert.compile.segments import Segment
from wengert.core.graph.graph import Equation, Graph, Variable
from wengert.core.values.aval import UNKNOWN, Aval
from wengert.native.callee import Callee
from wengert.native.chains import CHAIN, CHAINED, COPIED, COPYING, PLACE, STEP
from wengert.native.executable import LONG, Executable
from wengert.native.interrupts import OFTEN
from wengert.native.kinds import ArrayKind
from wengert.native.processor import LINE

__all__ = ["Chain", "Joining", "Place", "Unchained", "bytes_of"]

MOST = 1 << 24
"""Bytes of an arena up to which it is worth while to keep them for the next call."""


ROWS = 1024, 256, 64
"""Rows that a chain has room for where nobody knows how many there will be; fewer if they would take too much."""
HANDED = 128
"""Such rows that there is room for where a loop leaves them behind in a round of another loop."""


class Unchained(Exception):
    """Say that something cannot be a step of a chain."""


class Place(NamedTuple):
    """Say where something is: an argument of the chain, or -1 for its arena; and how many bytes behind its start."""

    argument: int
    offset: int = 0

    def after(self, size: int) -> Place:
        """Return the place so many bytes further."""
        return self._replace(offset=self.offset + size)


class Joining(Protocol):
    """Be an evaluation that can be a step of a chain.

    Attributes:
        can_join: whether it can, as far as its parameters tell.
    """

    can_join: bool

    def join(self, chain: Chain, equation: Equation) -> None:
        """Add it to a chain, or raise Unchained."""


class Chain:
    """Lay a chain out.

    Args:
        graph: what it computes: its inputs, then its outputs, are the arguments.
        rows: how many there is room for of what loops leave behind whose rounds nobody knows.

    Attributes:
        places: of variables.
        sequences: those of such rows, with what one is as, and how many there is room for.
        unchanged: where inputs are to be that are outputs, too.
        size: bytes of the arena so far.
        contents: what it holds at first: places, and bytes.
        steps: their fields.
        cycles: about how long they take.
        unseen: how long those do that follow the last one that looks up.
        owners: what must live as long as the chain.
        team: where the address of a team's memory stands, if some program wants one.
    """

    def __init__(self, graph: Graph, rows: int) -> None:
        self.graph, self.rows = graph, rows
        if len(set(graph.outputs)) < len(graph.outputs):
            raise Unchained
        self.places: dict[Variable, Place] = {v: Place(i) for i, v in enumerate(graph.inputs)}
        ends = {v: Place(i) for i, v in enumerate(graph.outputs, len(graph.inputs))}
        self.unchanged = {v: place for v, place in ends.items() if v in self.places}
        self.places = {**ends, **self.places}
        self.sequences = {v: (self.places[v], row_of(v), HANDED) for v in graph.inputs if UNKNOWN in v.shape}
        self.size, self.contents = CHAIN.size, list[tuple[int, bytes]]()
        self.steps: list[dict[str, int]] = []
        self.cycles = self.unseen = 0.0
        self.owners: list[Any] = []
        self.team: ctypes.c_void_p | None = None

    def room(self, size: int) -> Place:
        """Return a place in the arena for so many bytes, at the beginning of a cache line."""
        start = -(-self.size // LINE) * LINE
        self.size = start + size
        return Place(-1, start)

    def holding(self, contents: bytes) -> Place:
        """Return a place in the arena that holds bytes at first."""
        place = self.room(len(contents))
        self.contents.append((place.offset, contents))
        return place

    def place(self, x: Any, like: Variable) -> Place:
        """Return the place of what is read for a variable of a part, or written: another variable, or a literal.

        Raises:
            Unchained: it does not lie as the part wants it.
        """
        if type(x) is not Variable:
            return self.holding(as_array(like, x).tobytes())
        require_alike(x, like)
        if UNKNOWN in x.shape:
            raise Unchained
        if x not in self.places:
            self.places[x] = self.room(bytes_of(x))
        return self.places[x]

    def place_of_rows(self, x: Any, like: Variable, is_made: bool, count: int | None) -> Place:
        """Return the place of rows of which nobody knows how many there will be, or how many each of them will have.

        Args:
            x: all of them.
            like: what a part has as one of them.
            is_made: whether the part writes them.
            count: how many there are; None if nobody knows.

        Raises:
            Unchained: no part has written them, or not as this one wants them.
        """
        if type(x) is not Variable or (x in self.sequences) == is_made:
            raise Unchained
        if is_made:
            most = HANDED if x in self.places else count or self.rows
            self.sequences[x] = self.places.get(x) or self.room(bytes_of(like) * most), like, most
        place, row, most = self.sequences[x]
        require_alike(row, like)
        if count is not None and count > most:
            raise Unchained
        return place

    def step(self, callee: Callee, places: Sequence[Place], cycles: float, **fields: int) -> None:
        """Add a step that calls a kernel with what is at some places, which takes about so many cycles."""
        self.cycles += cycles
        self.unseen += cycles
        looks = self.unseen > OFTEN
        self.unseen = 0.0 if looks else self.unseen
        memory = self.room(callee.size)
        self.contents += [(memory.offset + place, contents) for place, contents in callee.contents]
        self.steps.append(
            {
                "run": callee.address,
                "memory": memory.offset,
                "table": self.room(ctypes.sizeof(ctypes.c_void_p) * len(places)).offset,
                **self.listed("places", "place", PLACE, places),
                "looks": int(looks),
                **fields,
            }
        )
        self.owners.append(callee)
        self.team = self.team or callee.team

    def listed(self, count: str, where: str, struct: Any, rows: Sequence[Sequence[int]]) -> dict[str, int]:
        """Return the fields of a step that say how many rows of a table there are, and where they stand."""
        table = (struct.ctype * len(rows))(*[tuple(row) for row in rows])
        return {count: len(rows), where: self.holding(bytes(table)).offset}

    def run(self, part: Segment[Executable]) -> None:
        """Add a program."""
        program = part.program
        assert program is not None
        places = [self.place(v, v) for v in (*part.graph.inputs, *part.graph.outputs) if is_variable(v)]
        self.step(program.callee, [*places, self.holding(bytes(1))], program.image.cycles, failing=len(places))

    def copy(self, source: Place, target: Place, size: int) -> None:
        """Add a step that copies so many bytes."""
        fields = bytes(COPYING.ctype(size=size))
        callee = Callee(address_of(COPIED), size=COPYING.size, contents=[(0, fields)])
        self.step(callee, [source, target, self.holding(bytes(1))], size / LINE, failing=2)

    def kernel(self) -> Kernel:
        """Return the chain."""
        for v, place in self.unchanged.items():
            self.copy(self.places[v], place, bytes_of(v))
        steps = (STEP.ctype * len(self.steps))(*[STEP.ctype(**fields) for fields in self.steps])
        at = self.holding(bytes(steps))
        head = CHAIN.ctype(
            steps=len(self.steps), step=at.offset, failed=len(self.graph.inputs) + len(self.graph.outputs)
        )
        callee = Callee(
            address_of(CHAINED),
            size=self.size,
            contents=[(0, bytes(head)), *self.contents],
            team=self.team,
            releases=self.cycles > LONG,
            looks=True,
            owner=self.owners,
        )
        return Kernel(callee, [*map(array_kind, self.graph.outputs), ArrayKind(np.dtype(bool), ())], self.cycles)


def require_alike(x: Variable, like: Variable) -> None:
    """Raise Unchained if two values do not lie in memory alike, wherever axes of length one stand."""
    if x.dtype != like.dtype or x.shape != like.shape or long_axes(x) != long_axes(like):
        raise Unchained


def long_axes(variable: Variable) -> list[int]:
    """Return the axes along which there is more than one element, in the order in which kernels have them."""
    return [axis for axis in axes_in_kernels(variable) if variable.shape[axis] != 1]


def bytes_of(variable: Variable) -> int:
    """Return how many bytes a value takes; a sequence of rows of which nobody knows how many there are, at most."""
    return variable.dtype.itemsize * math.prod(lengths_of(variable))


def lengths_of(variable: Variable) -> list[int]:
    """Return the lengths of the axes of a value, and at most where nobody knows them."""
    return [HANDED if n == UNKNOWN else n for n in variable.shape]


def row_of(variable: Variable) -> Variable:
    """Return what is as one of the rows that a sequence holds, of which nobody knows how many there are."""
    return Variable.of(Aval(variable.shape[1:], variable.dtype), "")


def is_variable(v: Any) -> bool:
    """Tell whether a result is not known; raise Unchained if it is an array, which somebody has to write."""
    if type(v) is not Variable:
        raise Unchained
    return True
