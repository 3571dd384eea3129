"""Programs of machine code: what is kept of one, as plain data, and one in memory as a function of arrays."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.native.availability import UnavailableError
from wengert.native.entries.callee import Callee
from wengert.native.entries.entry import Entry, Variant
from wengert.native.entries.kinds import MANY_LEAVES, ArrayKind, ContainerKind
from wengert.native.loader import Code, load_code
from wengert.native.threads.elementwise import SHARING
from wengert.support.caches import cached
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.machine import MACHINE
from wengert.support.records import FieldRecord

if TYPE_CHECKING:
    from wengert.native.elf import Linked

Shape = tuple[int, ...]
Content = bytes | np.ndarray[Any, np.dtype[np.uint8]]

UNKNOWN = -1
"""The length, in shapes, of rows that grow."""

ENDLESS = 1 << 36
"""Rows that all lie at one place: more than anybody reads, of at most so many elements as NumPy may count then."""


class Image(FieldRecord):
    """A program as machine code, with all that is needed to call it: numbers, strings and bytes alone.

    Attributes:
        code: linked, or object code; its function `run` is given the addresses of inputs and outputs, the arena, and
            the memory of the team or nothing. Empty, if the first function outside is that function.
        outside: the names of the functions that it calls and does not have.
        inputs, outputs: the dtype and the shape of each.
        size: bytes of the arena.
        constants: what it holds at first: places, bytes, perhaps as arrays that nobody writes, and whether these stay
            where they are: their address, then.
        cycles: about how long it takes.
        looks: whether it looks up itself when it takes long, see `interrupts`.
        overwritten: the places of inputs, each with that of an output that may lie in its memory.
    """

    code: Linked | bytes
    outside: tuple[str, ...]
    inputs: tuple[tuple[str, Shape], ...]
    outputs: tuple[tuple[str, Shape], ...]
    size: int
    constants: tuple[tuple[int, Content, bool], ...]
    cycles: float
    looks: bool
    overwritten: tuple[tuple[int, int], ...]

    def check(self) -> None:
        """Raise a ValueError or TypeError unless places are inside of what they are in."""
        sound = all(0 <= n < len(self.inputs) and 0 <= m < len(self.outputs) for n, m in self.overwritten)
        if not sound or type(self.size) is not int or self.size < 0 or type(self.cycles) not in (int, float):
            raise ValueError("a number out of range")
        if self.code and not all(type(name) is str for name in self.outside):
            raise TypeError("a name that is no text")


class Executable:
    """Run a program natively.

    Args:
        image: the program.
        address_of: gives the addresses of functions that it calls and does not have.
        team: where the address of a team's memory stands; that of this process, if none is given.

    Attributes:
        callee: what entries call.

    Raises:
        UnavailableError: it cannot be brought into memory here.
    """

    def __init__(self, image: Image, address_of: Callable[[str], int], team: ctypes.c_void_p = SHARING.place) -> None:
        self.image = image
        outside = {name: address_of(name) for name in image.outside}
        code = load_code(image.code, outside) if image.code else Code({"run": outside[image.outside[0]]}, None)
        if "share" in image.outside and team is SHARING.place:
            SHARING.want()
        self.callee = Callee(
            code.addresses["run"],
            size=image.size,
            contents=[(place, written_address(x) if is_far else x) for place, x, is_far in image.constants],
            team=team,
            releases=image.cycles > MACHINE.short,
            looks=image.looks,
            overwritten=image.overwritten,
            owner=(code, image.constants),  # these are read where they are
        )
        self.given = [ArrayKind(np.dtype(dtype), shape) for dtype, shape in image.inputs]
        self.made = [ArrayKind(np.dtype(dtype), shape) for dtype, shape in image.outputs]

    @cached
    def entry(self) -> Callable[..., list[Any]]:
        """The program as a function of arrays that are what it is given."""
        given, made = ({i: x for i, x in enumerate(kinds) if UNKNOWN in x.shape} for kinds in (self.given, self.made))
        if not given and not made:
            return OfArrays(self.callee, self.given, self.made)
        with UNSTOPPED:
            from wengert.native.growing_rows import GROWN, RowsProgram  # which few programs have

        kinds = ([GROWN if UNKNOWN in x.shape else x for x in xs] for xs in (self.given, self.made))
        return RowsProgram(OfArrays(self.callee, *kinds), given, made)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the outputs for arrays that are the inputs, of their dtypes and shapes."""
        return self.entry(*map(check_array, arrays, self.given))


def written_address(content: Content) -> bytes:
    """Return where bytes lie, as the bytes of an address."""
    return np.uintp(np.frombuffer(content, np.uint8).ctypes.data).tobytes()


class OfArrays(Entry):
    """Be a program as a function of arrays, called natively from the second call on where it can be.

    Attributes:
        calls: how many calls went through ctypes, each a tenth of what a variant costs.
    """

    def __init__(self, callee: Callee, given: Sequence[ArrayKind], made: Sequence[ArrayKind]) -> None:
        self.callee, self.given, self.made = callee, given, made
        self.calls = 0

    def __call__(self, *arrays: Any) -> list[Any]:
        """Return the outputs."""
        self.calls = calls = self.calls + 1
        if calls == 2 and len(self.given) + len(self.made) <= MANY_LEAVES:
            with contextlib.suppress(UnavailableError):  # it can do without
                self.add(Variant(self.given, ContainerKind(list, tuple(self.made)), self.callee))
        made = [np.empty(kind.shape, kind.dtype) for kind in self.made]
        self.callee.call([array.ctypes.data for array in (*arrays, *made)])
        return made


def check_array(array: Any, kind: ArrayKind) -> Any:
    """Return an array that must be of a dtype and a shape, its elements side by side; rows that grow as they are."""
    if kind.shape[:1] == (UNKNOWN,) and array.dtype == kind.dtype and array.shape[1:] == kind.shape[1:]:
        return array
    if array.dtype != kind.dtype or array.shape != kind.shape:
        raise TypeError(f"an input is {kind.dtype}{kind.shape}, {array.dtype}{array.shape} was given")
    return np.asarray(array, order="C")
