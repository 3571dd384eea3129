"""The memory that `calling` reads: entries, variants, and tables of what their arguments and results are."""

from __future__ import annotations

import ctypes
import enum
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.native.entries.kinds import (
    AbsentKind,
    AnyKind,
    ArrayKind,
    ContainerKind,
    CopyKind,
    EqualKind,
    Kind,
    NumberKind,
    PlaceKind,
    SameKind,
    leaves,
)
from wengert.native.objects import ALIGNED, CONTIGUOUS, HEAD, WRITEABLE
from wengert.native.structs import I32, I64, POINTER, VOID, Array, Pointer, Signature, Struct

MANY_VARIANTS = 64
"""How many variants an entry keeps: 64 comparisons take less than a microsecond."""
FEW_LEAVES = 256
"""How many arrays and numbers have room on the stack."""


class Way(enum.IntEnum):
    """How an argument is compared and where its data lie, or how a result is made."""

    ARRAY = 0
    IN_PLACE = 1  # a number of whose object the data are a part, or an output that lies in an argument
    INT = 2
    BOOL = 3
    FLOAT = 4
    COMPLEX = 5
    SCALAR = 6  # of NumPy's
    SAME = 7
    EQUAL = 8  # an int or a string
    SAME_BITS = 9  # a float
    TUPLE = 10
    LIST = 11
    DICT = 12
    OBJECT = 13
    CALLED = 14  # a result: what a class gives for some items
    ANY = 15
    COPY = 16
    EQUAL_ARRAY = 17
    ABSENT = 18  # an attribute


KERNEL = Signature(VOID, (Pointer(POINTER), POINTER, POINTER))
"""A kernel: the addresses of inputs and outputs, the arena, and the memory of the team or nothing."""

NODE = Struct(
    "Node",
    way=I32,
    rank=I32,
    flags=I32,  # that an array must have
    slot=I32,  # which of a kernel's addresses is its
    held=I32,  # how many attributes the dictionary of an OBJECT has, or any number
    type=POINTER,
    dtype=POINTER,
    shape=Pointer(I64),
    strides=Pointer(I64),  # none: elements side by side in C order
    value=POINTER,  # of SAME, COPY and EQUAL_ARRAY; what makes an OBJECT
    items=POINTER,  # NODEs
    names=Pointer(POINTER),
    count=I64,  # of items; the bytes of an EQUAL_ARRAY; which argument an output lies in
)
"""An argument or a result, or a part of one."""

VARIANT = Struct(
    "Variant",
    head=HEAD,
    kernel=Pointer(KERNEL),
    nodes=POINTER,  # NODEs of the arguments
    made=POINTER,  # NODEs of the arrays and numbers of the result
    result=POINTER,  # the NODE of the result
    names=Pointer(POINTER),  # of the arguments that are given by name, the last ones
    arguments=I64,
    positional=I64,
    inputs=I64,
    outputs=I64,
    arena=POINTER,
    size=I64,  # of the arena
    pieces=POINTER,  # PIECEs of which an arena of one's own is made
    count=I64,  # how many these are
    busy=Pointer(I64),  # to the generation of the process while a thread uses the arena; none if no other can meanwhile
    generation=Pointer(I64),  # see `callee.GENERATION`
    team=Pointer(POINTER),  # where the address of the team's memory stands; none for no team
    releases=I64,  # 1 if the interpreter lock is released
    copied=Pointer(I64),  # the places of arguments of which the kernel gets copies
    copies=I64,  # how many these are
    holds=I64,  # 1 if arguments are held: those in containers, which others could empty, and copies
    captured=Pointer(POINTER),  # objects whose nodes are those after the arguments
    others=I64,  # how many these are
    spans=Pointer(I64),  # for each input where its elements begin and end, in bytes after its data
    written=Pointer(I64),  # the places of inputs that share memory with no other
    writes=I64,  # how many these are
    donated=Pointer(I64),  # for each array that a result is copied to: its place, that of the result, bytes
    donations=I64,  # how many these are
    room=I64,  # bytes that a frame needs beside itself; 0 if what it has will do
    kept=POINTER,  # the owner of all these tables; Python's from here on
    next=POINTER,
    plan=POINTER,
)
"""A way to call a kernel."""

PIECE = Struct(
    "Piece",
    place=I64,
    size=I64,
    source=POINTER,
)
"""A part of an arena that must hold something, and what: the rest may hold anything."""

ENTRY = Struct(
    "Entry",
    head=HEAD,
    vectorcall=POINTER,
    fallback=POINTER,  # Python's from here on
    first=POINTER,
)
"""What is called: a list of variants, and a function for arguments that suit none."""

FRAME = Struct(
    "Frame",
    failed=I64,  # whether there are no results, which a kernel may say after them
    holds=I64,  # that of the variant
    numbers=Pointer(I64),  # two words each
    addresses=Pointer(POINTER),  # and that of `failed`
    objects=Pointer(POINTER),  # that belong to the addresses
    room=Array(I64, 4 * FEW_LEAVES + 1),
)
"""What one call has on the stack."""


def room_for(leaves: int) -> int:
    """Return the bytes that a call with so many arrays and numbers needs beside a frame."""
    return 0 if leaves <= FEW_LEAVES else 8 * (4 * leaves + 1)


NUMBERS: dict[type, Way] = {int: Way.INT, bool: Way.BOOL}
RESULTS: dict[type, Way] = {float: Way.FLOAT, complex: Way.COMPLEX, **NUMBERS}
CONSTANTS: dict[type, Way] = {int: Way.EQUAL, str: Way.EQUAL, float: Way.SAME_BITS}
CONTAINERS: dict[type, Way] = {tuple: Way.TUPLE, list: Way.LIST, dict: Way.DICT}


class Tables:
    """Tables in memory, with all that they refer to.

    Attributes:
        kept: what must live as long as the tables.
        slots: how many arrays and numbers have got a place among a kernel's addresses.
        copied: the places of the arguments of which the kernel gets copies.
        written: those that can be written to.
    """

    def __init__(self, written: Sequence[int] = ()) -> None:
        self.kept: list[Any] = []
        self.slots = 0
        self.copied: list[int] = []
        self.written = written

    def arguments(self, kinds: Sequence[Kind]) -> int:
        """Write the nodes of arguments; return their address."""
        return self.nodes(kinds, NUMBERS, Way.IN_PLACE)

    def result(self, kind: Kind, more: Sequence[Kind]) -> tuple[int, int]:
        """Write the node of a result, and those of its arrays and numbers and of more; return their addresses."""
        first = self.slots
        whole = self.nodes((kind,), RESULTS, Way.SCALAR)
        self.slots = first
        return whole, self.nodes(list(leaves((kind, *more))), RESULTS, Way.SCALAR)

    def nodes(self, kinds: Sequence[Kind], numbers: dict[type, Way], other: Way) -> int:
        """Write nodes side by side; return their address.

        Args:
            kinds: what they describe.
            numbers: how numbers of some types are treated.
            other: how numbers of the others are.
        """
        table = (NODE.ctype * max(len(kinds), 1))()
        self.kept.append(table)
        for node, kind in zip(table, kinds, strict=False):
            if isinstance(kind, SameKind):
                node.way = CONSTANTS.get(type(kind.value), Way.SAME) if other is Way.IN_PLACE else Way.SAME
                node.type, node.value = self.address(type(kind.value)), self.address(kind.value)
            elif isinstance(kind, CopyKind):
                node.way, node.value = Way.COPY, self.address(kind.value)
            elif isinstance(kind, EqualKind):
                self.describe_array(node, ArrayKind(kind.value.dtype, kind.value.shape))
                node.way, node.value, node.count = Way.EQUAL_ARRAY, self.address(kind.value), kind.value.nbytes
            elif isinstance(kind, AnyKind):
                node.way, node.type = Way.ANY, self.address(kind.type)
            elif isinstance(kind, AbsentKind):
                node.way = Way.ABSENT
            elif isinstance(kind, ContainerKind):
                node.way, node.type = way_of(kind, other is not Way.IN_PLACE), self.address(kind.type)
                node.items, node.count = self.nodes(kind.items, numbers, other), len(kind.items)
                node.names, node.held = self.names(kind.names), kind.held
                node.value = self.address(object.__new__)
            elif isinstance(kind, PlaceKind):
                node.way, node.count, self.slots = Way.IN_PLACE, kind.place, self.slots + 1
            else:
                node.slot, self.slots = self.slots, self.slots + 1
                if isinstance(kind, NumberKind):
                    node.way, node.type = numbers.get(kind.type, other), self.address(kind.type)
                    node.dtype = self.address(np.dtype(kind.type))
                else:
                    self.describe_array(node, kind)
                    self.copied += [node.slot] * kind.is_copied
        return ctypes.addressof(table)

    def describe_array(self, node: Any, kind: ArrayKind) -> None:
        """Fill the node of an array."""
        node.way, node.type, node.dtype = Way.ARRAY, self.address(np.ndarray), self.address(kind.dtype)
        node.rank, node.shape = len(kind.shape), self.words(kind.shape)
        node.flags = ALIGNED | (CONTIGUOUS if kind.strides is None else 0)
        node.flags |= WRITEABLE if node.slot in self.written else 0
        node.strides = None if kind.strides is None else self.words(kind.strides)

    def pieces(self, pieces: Sequence[tuple[int, int, np.ndarray[Any, Any]]]) -> int:
        """Write PIECEs side by side; return their address."""
        rows = [(place, size, source.ctypes.data) for place, size, source in pieces]
        table = (PIECE.ctype * max(len(rows), 1))(*rows)
        self.kept += [table, pieces]
        return ctypes.addressof(table)

    def spans(self, kinds: Sequence[Kind]) -> int:
        """Write where the elements of arrays and numbers begin and end; return the address."""
        return self.words([place for kind in leaves(kinds) for place in span(kind)])

    def address(self, value: Any) -> int:
        """Return the address of an object, and keep it."""
        self.kept.append(value)
        return id(value)

    def words(self, numbers: Sequence[int]) -> int:
        """Write numbers side by side; return their address."""
        table = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        self.kept.append(table)
        return ctypes.addressof(table)

    def names(self, names: Sequence[Any]) -> int:
        """Write the addresses of names or keys, which are those of the same names in Python's code; return where."""
        return self.words([self.address(sys.intern(name) if type(name) is str else name) for name in names])


def span(kind: ArrayKind | NumberKind) -> tuple[int, int]:
    """Return where the elements of an array begin and end, in bytes after its data."""
    if isinstance(kind, NumberKind) or 0 in kind.shape:
        return 0, 0
    size = kind.dtype.itemsize
    if kind.strides is None:
        return 0, math.prod(kind.shape) * size
    reached = [(n - 1) * step for n, step in zip(kind.shape, kind.strides, strict=True)]
    return sum([x for x in reached if x < 0]), sum([x for x in reached if x > 0]) + size


def way_of(kind: ContainerKind, is_result: bool) -> Way:
    """Return how a container is looked into, or made."""
    if kind.type in CONTAINERS:
        return CONTAINERS[kind.type]
    if issubclass(kind.type, tuple):
        return Way.CALLED if is_result else Way.TUPLE
    return Way.OBJECT
