"""Object code as LLVM writes it, ELF of x86-64 and AArch64, linked by hand to code that can lie anywhere in memory.

Sections are put one after the other, and what they say of each other's places is written into them. What is called from
outside is reached through slots behind them, each a jump and the address to jump to. What is linked holds no
addresses but says where they stand, so that it can be kept, and `loader` only fills them in. It has no data that
it writes to. All sizes and places in the image are checked before they are used: an image that is damaged is refused.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import Any

from wengert.errors import FileFormatError, describe
from wengert.native.availability import UnavailableError
from wengert.support.records import NamedTuple

MAGIC = b"\x7fELF"
HEADER = struct.Struct("<4s12sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
SLOT = 16  # bytes: a jump, and 8 bytes later the address
HALF = 8
SYMBOLS, RELOCATIONS, WITHOUT_DATA = 2, 4, 8  # kinds of sections
WRITTEN, ALLOCATED = 1, 2  # flags of sections
UNDEFINED, SPECIAL = 0, 0xFF00  # sections of symbols
LOCAL = 0  # the binding of symbols that other objects do not see
RELOCATABLE, LITTLE_ENDIAN_64 = 1, b"\x02\x01"
TABLE = "_GLOBAL_OFFSET_TABLE_"  # which whoever links makes
PAGE_SIZES = 1 << 16  # alignments up to this are those of code

Linked = tuple[bytes, tuple[tuple[int, int], ...], tuple[tuple[int, str], ...], tuple[tuple[str, int], ...]]
"""Code that can lie anywhere in memory: its bytes, without addresses; the places of addresses in it, and to which
places they belong; those of addresses of what it does not define, and what that is; what can be called from outside,
and where that is."""

Write = Callable[[bytearray, int, int, int], None]
"""Write the target of a relocation: into memory, at a place in it, to a target, with the address of that place."""


class ObjectCodeError(FileFormatError, UnavailableError):
    """Say that object code cannot be linked; graphs are evaluated then, as where LLVM has none."""


class UnknownRelocationError(ObjectCodeError):
    """Say that this is for want of a relocation: LLVM's own loader may know it."""


class Section(NamedTuple):
    """A section of an object, with the numbers that ELF has of it."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    each: int


class Symbol(NamedTuple):
    """A name of an object: in which section it is defined, if in any, and where."""

    name: str
    section: int
    value: int
    is_global: bool


class Format(NamedTuple):
    """What differs between processors: ELF's number, the jump of a slot, how relocations are written.

    Attributes:
        machine: ELF's number.
        jump: instructions that jump to the address after them.
        absolute: the relocation to an address.
        direct: relocations to what a symbol stands for, relative to their place.
        through_slots: relocations to the address in a symbol's slot.
    """

    machine: int
    jump: bytes
    absolute: int
    direct: dict[int, Write]
    through_slots: dict[int, Write]


def link_image(image: bytes, machine: str) -> Linked:
    """Return object code linked.

    Raises:
        ObjectCodeError: the image is damaged, of another processor, or needs what is not provided for.
    """
    with damage_errors():
        return ElfImage(image, FORMATS[machine]).link()


def undefined_names(image: bytes, machine: str) -> list[str]:
    """Return the names that object code uses and does not define.

    Raises:
        ObjectCodeError: the image is damaged, or of another processor.
    """
    with damage_errors():
        symbols = ElfImage(image, FORMATS[machine]).symbols
    return [symbol.name for symbol in symbols if symbol.section == UNDEFINED and symbol.name not in ("", TABLE)]


@contextlib.contextmanager
def damage_errors() -> Iterator[None]:
    """Raise an ObjectCodeError for a number that does not fit, or a place outside of an image."""
    try:
        yield
    except (struct.error, IndexError) as error:
        raise damage_error(f"a part that lies outside of it or does not fit ({error})") from error


class ElfImage:
    """An object as it lies in its file, with the places that its sections will have in memory.

    Attributes:
        places: of the sections that are needed when the code runs, by number.
        slots: the places of the slots, by the number of their symbol.
        size: bytes of memory.
    """

    def __init__(self, image: bytes, form: Format) -> None:
        self.image = image
        self.form = form
        magic, ident, kind, machine, _, _, _, table, _, _, _, _, entry_size, count, _ = HEADER.unpack_from(image)
        require((magic, ident[:2], kind) == (MAGIC, LITTLE_ENDIAN_64, RELOCATABLE), "no relocatable ELF object")
        require(machine == form.machine, f"code of another processor ({machine})")
        require(count == 0 or entry_size == SECTION.size, f"sections of {entry_size} bytes")
        require(table + count * SECTION.size <= len(image), "sections outside of the image")
        self.sections = [Section(*SECTION.unpack_from(image, table + i * SECTION.size)) for i in range(count)]
        self.symbols = self.read_symbols()
        self.relocations = list(self.read_relocations())
        self.places, end = self.places_of_sections()
        self.slots, self.size = self.slots_after(end)

    def records(self, section: Section, layout: struct.Struct) -> Iterator[tuple[Any, ...]]:
        """Return the records of a section."""
        require(section.size % layout.size == 0, "a table with a part of a record")
        return layout.iter_unpack(self.content(section))

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section."""
        require(section.offset + section.size <= len(self.image), "a section outside of the image")
        return self.image[section.offset : section.offset + section.size]

    def read_symbols(self) -> list[Symbol]:
        """Return the symbols."""
        tables = [section for section in self.sections if section.kind == SYMBOLS]
        require(len(tables) <= 1, "several tables of symbols")
        found = []
        for table in tables:
            names = self.content(self.sections[table.link])
            for name, info, _, section, value, _ in self.records(table, SYMBOL):
                end = names.find(b"\0", name)
                require(end >= 0, "a name without an end")
                text = names[name:end].decode("ascii", "replace")
                found.append(Symbol(text, section, value, info >> 4 != LOCAL))
        return found

    def read_relocations(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Return the section, the place in it, the kind, the symbol and the addend of each relocation."""
        for table in self.sections:
            if table.kind == RELOCATIONS and self.sections[table.info].flags & ALLOCATED:
                for offset, info, addend in self.records(table, RELOCATION):
                    require(info >> 32 < len(self.symbols), "a relocation to no symbol")
                    yield table.info, offset, info & 0xFFFFFFFF, info >> 32, addend

    def places_of_sections(self) -> tuple[dict[int, int], int]:
        """Return where sections will lie, and where the last of them ends."""
        places, end, content = {}, 0, 0
        for number, section in enumerate(self.sections):
            if section.flags & ALLOCATED and section.size:
                require(not section.flags & WRITTEN and section.kind != WITHOUT_DATA, "data that is written to")
                align = max(section.align, 1)
                require(align & (align - 1) == 0 and align <= PAGE_SIZES, f"an alignment of {align}")
                content += section.size
                require(content <= len(self.image), "sections that overlap")
                places[number] = -(-end // align) * align
                end = places[number] + section.size
        return places, end

    def slots_after(self, end: int) -> tuple[dict[int, int], int]:
        """Return where slots will lie, for what is not defined here or needs an address in memory, and their end."""
        wanted = dict.fromkeys(
            symbol
            for _, _, kind, symbol, _ in self.relocations
            if kind in self.form.through_slots or self.symbols[symbol].section == UNDEFINED
        )
        start = -(-end // SLOT) * SLOT
        return {symbol: start + i * SLOT for i, symbol in enumerate(wanted)}, start + len(wanted) * SLOT

    def place_of(self, symbol: Symbol) -> int:
        """Return where a symbol that is defined here will lie."""
        require(symbol.section < SPECIAL and symbol.section in self.places, f"{symbol.name!r}, which is nowhere")
        require(symbol.value <= self.sections[symbol.section].size, f"{symbol.name!r} outside of its section")
        return self.places[symbol.section] + symbol.value

    def link(self) -> Linked:
        """Return the code and where addresses stand in it."""
        content = bytearray(self.size)
        for number, place in self.places.items():
            content[place : place + self.sections[number].size] = self.content(self.sections[number])
        inside, outside = [], []
        for number, place in self.slots.items():
            symbol = self.symbols[number]
            content[place : place + HALF] = self.form.jump.ljust(HALF, b"\0")
            if symbol.section == UNDEFINED:
                outside.append((place + HALF, symbol.name))
            else:
                inside.append((place + HALF, self.place_of(symbol)))
        for section, offset, kind, number, addend in self.relocations:
            size = 8 if kind == self.form.absolute else 4
            held = section in self.places and offset + size <= self.sections[section].size
            require(held, "a relocation of nothing")
            at = self.places[section] + offset
            if kind == self.form.absolute:
                target = self.target_of(number) + addend
                require(0 <= target <= self.size, "an address outside of the code")
                inside.append((at, target))
            elif kind in self.form.direct:
                self.form.direct[kind](content, at, self.target_of(number) + addend, at)
            else:
                if kind not in self.form.through_slots:
                    raise damage_error(f"a relocation of kind {kind}, which is not known", UnknownRelocationError)
                self.form.through_slots[kind](content, at, self.slots[number] + HALF + addend, at)
        functions = [(x.name, self.place_of(x)) for x in self.symbols if x.is_global and x.section != UNDEFINED]
        return bytes(content), tuple(inside), tuple(outside), tuple(functions)

    def target_of(self, number: int) -> int:
        """Return where what a symbol stands for will lie: itself, or the jump to it."""
        symbol = self.symbols[number]
        return self.slots[number] if symbol.section == UNDEFINED else self.place_of(symbol)


def require(condition: bool, found: str) -> None:
    """Raise an ObjectCodeError saying what was found in an image, unless a condition holds."""
    if not condition:
        raise damage_error(found)


def damage_error(found: str, error: type[ObjectCodeError] = ObjectCodeError) -> ObjectCodeError:
    """Return the error for an image in which something was found."""
    needed = "code of this processor as LLVM writes it is needed"
    return error(describe("object code", found, needed, "Remove it from where it was kept"))


# ------------------------------------------------------------------------------------------------ x86-64


def relative32(memory: bytearray, at: int, target: int, own: int) -> None:
    """Write a distance in 32 bits."""
    struct.pack_into("<i", memory, at, target - own)


def relative64(memory: bytearray, at: int, target: int, own: int) -> None:
    """Write a distance in 64 bits."""
    struct.pack_into("<q", memory, at, target - own)


X86_64 = Format(
    machine=62,
    jump=b"\xff\x25\x02\x00\x00\x00\x0f\x0b",  # jmp *[rip + 2]; ud2
    absolute=1,
    direct={2: relative32, 4: relative32, 24: relative64},
    through_slots=dict.fromkeys((9, 41, 42), relative32),
)

# ------------------------------------------------------------------------------------------------ AArch64


def patch_field(memory: bytearray, at: int, bits: int, low: int, width: int) -> None:
    """Set a field of the instruction at a place."""
    (instruction,) = struct.unpack_from("<I", memory, at)
    mask = (1 << width) - 1
    struct.pack_into("<I", memory, at, instruction & ~(mask << low) | (bits & mask) << low)


def branch26(memory: bytearray, at: int, target: int, own: int) -> None:
    """Write the distance of a branch, in instructions."""
    distance = target - own
    require(distance % 4 == 0 and -(1 << 27) <= distance < 1 << 27, "a branch that is too far")
    patch_field(memory, at, distance >> 2, 0, 26)


def page21(memory: bytearray, at: int, target: int, own: int) -> None:
    """Write a distance in pages into an ADRP."""
    distance21(memory, at, (target >> 12) - (own >> 12))


def near21(memory: bytearray, at: int, target: int, own: int) -> None:
    """Write a distance in bytes into an ADR."""
    distance21(memory, at, target - own)


def distance21(memory: bytearray, at: int, distance: int) -> None:
    """Write a number of 21 bits in the two fields of ADR and ADRP."""
    require(-(1 << 20) <= distance < 1 << 20, "an address that is too far")
    patch_field(memory, at, distance, 29, 2)
    patch_field(memory, at, distance >> 2, 5, 19)


def low12(shift: int) -> Write:
    """Return what writes the place within a page, counted in units of 1 << shift bytes."""

    def write(memory: bytearray, at: int, target: int, _own: int) -> None:
        require(target % (1 << shift) == 0, "an address between two numbers")
        patch_field(memory, at, (target & 0xFFF) >> shift, 10, 12)

    return write


AARCH64 = Format(
    machine=183,
    jump=b"\x50\x00\x00\x58\x00\x02\x1f\xd6",  # ldr x16, #8; br x16
    absolute=257,
    direct={260: relative64, 261: relative32, 282: branch26, 283: branch26}
    | {274: near21, 275: page21, 276: page21, 277: low12(0)}
    | {278: low12(0), 284: low12(1), 285: low12(2), 286: low12(3), 299: low12(4)},
    through_slots={311: page21, 312: low12(3)},
)

FORMATS = {"x86_64": X86_64, "aarch64": AARCH64}
"""By the system's names of the processors. Elsewhere object code has other formats, which LLVM can load."""
