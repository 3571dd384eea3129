"""Types of native code, each declared once: its name in LLVM's language and its counterpart in ctypes.

ctypes lays structures out as the platform's C compiler would, and native code addresses their fields by the offsets
that ctypes found, so the two cannot differ.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, ClassVar, TypeVar

from wengert.support.machine import MACHINE
from wengert.support.records import Record

CTYPES: dict[str, Any] = {
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
"""What ctypes calls numbers, by their names in LLVM's language."""


class Void(Record):
    """What a function returns that returns nothing."""

    def __repr__(self) -> str:
        return "void"


class Named(Record):
    """A type that its name in LLVM's language tells from all others: caches are asked for it hundreds of times.

    Attributes:
        text: the name, which is written often.
    """

    text: str

    @property
    def ctype(self) -> Any:
        """What ctypes calls it."""
        return CTYPES[self.text]

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


class Integer(Named):
    """A whole number of so many bits; signed, and in one bit a condition.

    Attributes:
        bits: how many.
    """

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.text = f"i{bits}"

    def holds(self, number: int) -> bool:
        """Whether a number can be represented."""
        return 0 <= number <= 1 if self.bits == 1 else -(1 << self.bits - 1) <= number < 1 << self.bits - 1


class Float(Named):
    """A floating-point number of so many bits.

    Attributes:
        bits: how many.
    """

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.text = "float" if bits == 32 else "double"


class VectorType(Named):
    """So many numbers of a type, which one instruction treats alike.

    Attributes:
        element: the type.
        count: how many.
    """

    def __init__(self, element: Integer | Float | Pointer, count: int) -> None:
        self.element, self.count = element, count
        self.text = f"<{count} x {element.text}>"

    @property
    def ctype(self) -> Any:
        """What ctypes calls it."""
        return self.element.ctype * self.count


@functools.cache
def vector_of(element: Integer | Float | Pointer, count: int) -> VectorType:
    """Return the type of vectors of so many numbers: always the same object, which is compared sooner."""
    return VectorType(element, count)


class Pointer(Record):
    """The address of something of a type; of anything, if there is none."""

    def __init__(self, to: Type | Signature | None = None) -> None:
        self.to = to

    ctype: ClassVar[Any] = ctypes.c_void_p
    text: ClassVar[str] = "ptr"

    def __repr__(self) -> str:
        return "an address" if self.to is None else f"the address of {self.to!r}"

    def __str__(self) -> str:
        return self.text

    def accepts(self, other: object) -> bool:
        """Whether a value of a type may stand where this pointer is needed."""
        return isinstance(other, Pointer) and self.to in (None, other.to)


class Array(Record):
    """So many elements of a type, one after another."""

    def __init__(self, element: Type, count: int) -> None:
        self.element, self.count = element, count

    @property
    def ctype(self) -> Any:
        """What ctypes calls it."""
        return self.element.ctype * self.count

    @property
    def text(self) -> str:
        """Its name in LLVM's language."""
        return f"[{self.count} x {self.element.text}]"

    def __str__(self) -> str:
        return self.text


class Struct:
    """Fields in memory, by name.

    Args:
        name: of the structure.
        fields: their types in order; an `OwnLine` begins a cache line, and so does then the structure.

    >>> point = Struct("Point", x=I32, y=I64)
    >>> point.offset("y"), point.size
    (8, 16)
    """

    def __init__(self, name: str, **fields: Type | OwnLine) -> None:
        self.name = name
        self.fields = {field: kind.type if isinstance(kind, OwnLine) else kind for field, kind in fields.items()}
        members: list[tuple[str, Any]] = []
        for field, kind in fields.items():
            if isinstance(kind, OwnLine):
                members += padding(members)
            members.append((field, self.fields[field].ctype))
        if any(isinstance(kind, OwnLine) for kind in fields.values()):
            members += padding(members)
        self.ctype: Any = structure(name, members)
        self.size = ctypes.sizeof(self.ctype)

    def offset(self, field: str) -> int:
        """Return how many bytes after the structure's beginning a field lies."""
        return int(getattr(self.ctype, field).offset)

    def view(self, address: int) -> Any:
        """Return the structure at an address for reading and writing its fields by name."""
        return self.ctype.from_address(address)

    @property
    def text(self) -> str:
        """What stands for it in LLVM's language: its bytes."""
        return f"[{self.size} x i8]"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.name


class OwnLine(Record):
    """A field that shares its cache line with none before it, so that threads do not slow each other down."""

    def __init__(self, type: Type) -> None:
        self.type = type


class Signature(Record):
    """The type of a function: what it returns, and its parameters."""

    def __init__(self, returns: Type | Void, parameters: tuple[Type, ...]) -> None:
        self.returns, self.parameters = returns, parameters


T = TypeVar("T")
Scalar = Integer | Float
Type = Integer | Float | VectorType | Pointer | Array | Struct
VOID, BOOL, I8, I32, I64, POINTER = Void(), Integer(1), Integer(8), Integer(32), Integer(64), Pointer()
F32, F64 = Float(32), Float(64)


def structure(name: str, members: list[tuple[str, Any]]) -> Any:
    """Return a ctypes.Structure."""
    return type(name, (ctypes.Structure,), {"_fields_": members})


def padding(members: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the unused bytes, if any, after which members reach the end of a cache line."""
    unused = -ctypes.sizeof(structure("Members", members)) % MACHINE.apart
    return [(f"unused{len(members)}", ctypes.c_int8 * unused)] if unused else []


# Questions about types


def integer(kind: Type) -> Integer:
    """Return a type that must be one of integers."""
    return require_type(kind, Integer, "number")


def numeric(kind: Type) -> Scalar:
    """Return a type that must be one of numbers."""
    return kind if isinstance(kind, Float) else integer(kind)


def vector(kind: Type) -> VectorType:
    """Return a type that must be one of vectors."""
    return require_type(kind, VectorType, "vector")


def require_type(kind: Type, sort: type[T], what: str) -> T:
    """Return a type that must be one of a sort."""
    if not isinstance(kind, sort):
        raise TypeError(f"{kind!r} is no {what}")
    return kind


def element(kind: Type) -> Type:
    """Return the type of a vector's elements; other types as they are."""
    return kind.element if isinstance(kind, VectorType) else kind


def like(kind: Type, scalar: Scalar) -> Type:
    """Return a type of other numbers: of as many, if it is a vector."""
    return vector_of(scalar, kind.count) if isinstance(kind, VectorType) else scalar


def size(kind: Type) -> int:
    """Return the bytes of a number or an address, or of a vector's element: its alignment."""
    kind = element(kind)
    return kind.bits // 8 if isinstance(kind, Scalar) else 8


def suffix(kind: Type) -> str:
    """Return what the names of LLVM's functions end in that exist for many types."""
    if isinstance(kind, VectorType):
        return f"v{kind.count}{suffix(kind.element)}"
    if isinstance(kind, Float):
        return f"f{kind.bits}"
    return f"i{integer(kind).bits}" if not isinstance(kind, Pointer) else "p0"
