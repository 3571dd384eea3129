"""What native code computes: values with types, and the instructions that work on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from wengert.native.functions import Function
from wengert.native.structs import (
    BOOL,
    I32,
    I64,
    POINTER,
    Array,
    Float,
    Integer,
    Pointer,
    Signature,
    Struct,
    Type,
    Vector,
    element,
    integer,
    numeric,
    size,
    vector,
)

if TYPE_CHECKING:
    from wengert.native.builder import Builder

__all__ = ["Operand", "Order", "Value"]

Stored = Integer | Float | Pointer | Vector
"""The types of what is loaded and stored."""

Order = Literal["monotonic", "acquire", "release", "acq_rel", "seq_cst"]
"""How an atomic operation is ordered among others of its thread: LLVM's names, which are those of C11."""


class Value:
    """Be something that native code computes, with its type; prints as LLVM's language has it."""

    __slots__ = ("b", "text", "type")

    def __init__(self, b: Builder, kind: Type, text: str) -> None:
        self.b = b
        self.type = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"

    def __bool__(self) -> bool:
        raise TypeError("it is not known before the code runs; use `when`, `&` and `|`")

    def __add__(self, other: Operand) -> Value:
        return self.b.binary("add", self, other)

    def __sub__(self, other: Operand) -> Value:
        return self.b.binary("sub", self, other)

    def __mul__(self, other: Operand) -> Value:
        return self.b.binary("mul", self, other)

    def __truediv__(self, other: Operand) -> Value:
        return self.b.binary("div", self, other)

    def __neg__(self) -> Value:
        if not isinstance(element(self.type), Float):
            return self.b.constant(self.type, 0) - self
        return self.b.new(self.type, f"fneg {self}")

    def __floordiv__(self, other: Operand) -> Value:
        return self.b.binary("udiv", self, other)

    def __mod__(self, other: Operand) -> Value:
        return self.b.binary("urem", self, other)

    def __and__(self, other: Operand) -> Value:
        return self.b.binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.b.binary("or", self, other)

    __radd__, __rmul__, __rand__, __ror__ = __add__, __mul__, __and__, __or__

    def __rsub__(self, other: Operand) -> Value:
        return self.b.constant(self.type, other) - self

    def __lt__(self, other: Operand) -> Value:
        return self.b.compare("slt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.b.compare("sle", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.b.compare("sgt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.b.compare("sge", self, other)

    def equals(self, other: Operand) -> Value:
        """Whether two numbers or addresses are the same."""
        return self.b.compare("eq", self, other)

    def differs(self, other: Operand) -> Value:
        """Whether two numbers or addresses are not the same."""
        return self.b.compare("ne", self, other)

    def widened(self, kind: Integer) -> Value:
        """Return the same number in more bits; it must not be negative."""
        if not isinstance(self.type, Integer) or self.type.bits >= kind.bits:
            raise TypeError(f"{self.type!r} cannot be widened to {kind!r}")
        return self.b.new(kind, f"zext {self} to {kind}")

    def to(self, target: Type) -> Value:
        """Return an address as that of something of another type."""
        self.pointee()
        return Value(self.b, Pointer(target), self.text)

    def field(self, name: str) -> Value:
        """Return the address of a structure's field; of an array's first element, if the field is one."""
        struct = self.pointee()
        if not isinstance(struct, Struct) or name not in struct.fields:
            raise TypeError(f"{struct!r} has no field {name!r}")
        kind = struct.fields[name]
        target = Pointer(kind.element if isinstance(kind, Array) else kind)
        return self.b.new(target, f"getelementptr i8, {self}, i64 {struct.offset(name)}", name)

    def at(self, index: Operand) -> Value:
        """Return the address of an element, counted from the one that this is the address of."""
        if type(index) is int and index == 0:
            return self
        return self.b.new(self.type, f"getelementptr {self.pointee()}, {self}, {self.b.operand(index, I64)}")

    def get(self, name: str) -> Value:
        """Load a field."""
        return self.field(name).load()

    def set(self, name: str, value: Operand) -> None:
        """Store a field."""
        self.field(name).store(value)

    def load(self, order: Order | None = None) -> Value:
        """Load what is at this address; atomically, if an order is given."""
        kind = self.stored()
        if order is None:
            return self.b.new(kind, f"load {kind}, {self}, align {size(kind)}")
        return self.b.new(kind, f"load atomic {kind}, {self} {order}, align {size(kind)}")

    def store(self, value: Operand, order: Order | None = None) -> None:
        """Store a value at this address; atomically, if an order is given."""
        kind = self.stored()
        stored = self.b.operand(value, kind)
        if order is None:
            self.b.put(f"store {stored}, {self}, align {size(kind)}")
        else:
            self.b.put(f"store atomic {stored}, {self} {order}, align {size(kind)}")

    def load_where(self, mask: Value) -> Value:
        """Load those numbers of a vector for which a mask is set; the others are zero and are not touched."""
        kind = self.stored()
        zero = self.b.constant(kind, 0)
        return self.b.intrinsic("masked.load", kind, self.as_address(), size(kind), mask, zero, of=(kind, POINTER))

    def store_where(self, value: Value, mask: Value) -> None:
        """Store those numbers of a vector for which a mask is set."""
        of = self.stored(), POINTER
        self.b.do_intrinsic("masked.store", value, self.as_address(), size(value.type), mask, of=of)

    def bring(self, written: bool) -> None:
        """Ask for the line of memory at this address, which need not exist, because it will be read or written."""
        nearest, data = 3, 1
        numbers = (self.b.constant(I32, n) for n in (written, nearest, data))
        self.b.do_intrinsic("prefetch", self.as_address(), *numbers, of=(POINTER,))

    def gather(self, indices: Value, mask: Value) -> Value:
        """Load the numbers at several indices from this address, where a mask is set; the others are zero."""
        count = vector(indices.type).count
        kind, addresses = Vector(numeric(self.stored()), count), self.addresses(indices)
        zero = self.b.constant(kind, 0)
        of = kind, addresses.type
        return self.b.intrinsic("masked.gather", kind, addresses, size(kind), mask, zero, of=of)

    def scatter(self, value: Value, indices: Value, mask: Value) -> None:
        """Store numbers at several indices from this address, where a mask is set."""
        addresses = self.addresses(indices)
        of = value.type, addresses.type
        self.b.do_intrinsic("masked.scatter", value, addresses, size(value.type), mask, of=of)

    def addresses(self, indices: Value) -> Value:
        """Return the addresses of several elements, counted from the one that this is the address of."""
        kind = Vector(POINTER, vector(indices.type).count)
        return self.b.new(kind, f"getelementptr {self.pointee()}, {self}, {indices}")

    def as_address(self) -> Value:
        """Return an address as that of anything."""
        return Value(self.b, POINTER, self.text)

    def fetch_add(self, value: Operand, order: Order) -> Value:
        """Add to the number at this address, atomically; return what was there before."""
        return self.update("add", value, order)

    def fetch_or(self, value: Operand, order: Order) -> Value:
        """Set bits of the number at this address, atomically; return what was there before."""
        return self.update("or", value, order)

    def update(self, operation: str, value: Operand, order: Order) -> Value:
        """Combine the number at this address with another, atomically."""
        kind = self.stored()
        return self.b.new(kind, f"atomicrmw {operation} {self}, {self.b.operand(value, integer(kind))} {order}")

    def compare_exchange(self, old: Operand, new: Operand, order: Order) -> Value:
        """Store `new` at this address if `old` is there, atomically; return whether it was."""
        kind = integer(self.stored())
        operands = f"{self.b.operand(old, kind)}, {self.b.operand(new, kind)}"
        pair = self.b.name()
        self.b.put(f"{pair} = cmpxchg {self}, {operands} {order} {order}")
        return self.b.new(BOOL, f"extractvalue {{ {kind}, i1 }} {pair}, 1")

    def pointee(self) -> Type | Signature | None:
        """Return the type of what this is the address of."""
        if not isinstance(self.type, Pointer):
            raise TypeError(f"{self.type!r} is no address")
        return self.type.to

    def stored(self) -> Stored:
        """Return the type of the number, the address or the vector that this is the address of."""
        kind = self.pointee()
        if not isinstance(kind, Stored):
            raise TypeError(f"{kind!r} is no number and no address")
        return kind


Operand = Value | Function | float | None
"""What may be given where a value of a known type is needed: a number, None for no address, a function for its own."""
