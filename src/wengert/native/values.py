"""What native code computes: values with types, and the instructions that work on them."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Literal

from wengert.native.functions import BEGIN, ConstantTable, NativeFunction, intrinsic, join_by_commas
from wengert.native.structs import (
    BOOL,
    I32,
    I64,
    POINTER,
    VOID,
    Array,
    Float,
    Integer,
    Pointer,
    Scalar,
    Signature,
    Struct,
    Type,
    VectorType,
    Void,
    element,
    integer,
    like,
    numeric,
    size,
    vector,
    vector_of,
)

Stored = Integer | Float | Pointer | VectorType
"""The types of what is loaded and stored."""

Order = Literal["monotonic", "acquire", "release", "acq_rel", "seq_cst"]
"""How an atomic operation is ordered among others of its thread: LLVM's names, which are those of C11."""


Conversion = Literal["trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "bitcast"]
"""How numbers become those of another type: LLVM's names."""

DOUBLE = struct.Struct(">d")
FLOATING = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
ORDERED = {"slt": "olt", "sle": "ole", "sgt": "ogt", "sge": "oge", "eq": "oeq", "ne": "une"}
"""LLVM's names of operations on integers that floating-point numbers have as well."""


def binary(operation: str) -> Callable[[Value, Operand], Value]:
    """Return the method for an operation on two numbers."""

    def method(x: Value, y: Operand) -> Value:
        return x.b.binary(operation, x, y)

    return method


def comparison(how: str) -> Callable[[Value, Operand], Value]:
    """Return the method for a relation of two numbers or addresses."""

    def method(x: Value, y: Operand) -> Value:
        return x.b.compare(how, x, y)

    return method


class Value:
    """Be something that native code computes, with its type; prints as LLVM's language has it."""

    __slots__ = ("b", "text", "type")

    def __init__(self, b: Instructions, kind: Type, text: str) -> None:
        self.b = b
        self.type = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"

    def __bool__(self) -> bool:
        raise TypeError("it is not known before the code runs; use `when`, `&` and `|`")

    def __neg__(self) -> Value:
        if not isinstance(element(self.type), Float):
            return self.b.constant(self.type, 0) - self
        return self.b.new(self.type, f"fneg {self}")

    __add__ = __radd__ = binary("add")
    __mul__ = __rmul__ = binary("mul")
    __and__ = __rand__ = binary("and")
    __or__ = __ror__ = binary("or")
    __sub__, __truediv__, __floordiv__, __mod__ = map(binary, ("sub", "div", "udiv", "urem"))
    __lt__, __le__, __gt__, __ge__ = map(comparison, ("slt", "sle", "sgt", "sge"))
    equals, differs = map(comparison, ("eq", "ne"))  # of numbers and addresses

    def __rsub__(self, other: Operand) -> Value:
        return self.b.constant(self.type, other) - self

    def widen(self, kind: Integer) -> Value:
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
        kind = self.stored_type()
        if order is None:
            return self.b.new(kind, f"load {kind}, {self}, align {size(kind)}")
        return self.b.new(kind, f"load atomic {kind}, {self} {order}, align {size(kind)}")

    def store(self, value: Operand, order: Order | None = None) -> None:
        """Store a value at this address; atomically, if an order is given."""
        kind = self.stored_type()
        stored = self.b.operand(value, kind)
        if order is None:
            self.b.put(f"store {stored}, {self}, align {size(kind)}")
        else:
            self.b.put(f"store atomic {stored}, {self} {order}, align {size(kind)}")

    def load_where(self, mask: Value) -> Value:
        """Load those numbers of a vector for which a mask is set; the others are zero and are not touched."""
        kind = self.stored_type()
        zero = self.b.constant(kind, 0)
        return self.b.intrinsic("masked.load", kind, self.as_address(), size(kind), mask, zero, of=(kind, POINTER))

    def store_where(self, value: Value, mask: Value) -> None:
        """Store those numbers of a vector for which a mask is set.

        One of which it is known that it is alone is stored by itself: where it comes of a wider whole number, LLVM 22
        makes one store of all bytes of that instead of a masked one, and so writes over what lies beside it.
        """
        flags = mask.text[1:-1].split(", ") if mask.text.startswith("<") else []
        if flags.count("i1 1") == 1:
            place = flags.index("i1 1")
            self.to(element(value.type)).at(place).store(self.b.extract(value, place))
            return
        of = self.stored_type(), POINTER
        self.b.do_intrinsic("masked.store", value, self.as_address(), size(value.type), mask, of=of)

    def bring(self, written: bool) -> None:
        """Ask for the line of memory at this address, which need not exist, because it will be read or written."""
        nearest, data = 3, 1
        numbers = (self.b.constant(I32, n) for n in (written, nearest, data))
        self.b.do_intrinsic("prefetch", self.as_address(), *numbers, of=(POINTER,))

    def gather(self, indices: Value, mask: Value) -> Value:
        """Load the numbers at several indices from this address, where a mask is set; the others are zero."""
        count = vector(indices.type).count
        kind, addresses = VectorType(numeric(self.stored_type()), count), self.addresses(indices)
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
        kind = VectorType(POINTER, vector(indices.type).count)
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
        kind = self.stored_type()
        return self.b.new(kind, f"atomicrmw {operation} {self}, {self.b.operand(value, integer(kind))} {order}")

    def compare_exchange(self, old: Operand, new: Operand, order: Order) -> Value:
        """Store `new` at this address if `old` is there, atomically; return whether it was."""
        kind = integer(self.stored_type())
        operands = f"{self.b.operand(old, kind)}, {self.b.operand(new, kind)}"
        pair = self.b.name()
        self.b.put(f"{pair} = cmpxchg {self}, {operands} {order} {order}")
        return self.b.new(BOOL, f"extractvalue {{ {kind}, i1 }} {pair}, 1")

    def pointee(self) -> Type | Signature | None:
        """Return the type of what this is the address of."""
        if not isinstance(self.type, Pointer):
            raise TypeError(f"{self.type!r} is no address")
        return self.type.to

    def stored_type(self) -> Stored:
        """Return the type of the number, the address or the vector that this is the address of."""
        kind = self.pointee()
        if not isinstance(kind, Stored):
            raise TypeError(f"{kind!r} is no number and no address")
        return kind


Operand = Value | NativeFunction | float | None
"""What may be given where a value of a known type is needed: a number, None for no address, a function for its own."""


class Instructions:
    """Write instructions that give values, one after the other."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.stacked: list[str] = []
        self.lines: list[str] = []
        self.called: dict[NativeFunction | ConstantTable, None] = {}
        self.block: str | None = BEGIN if mark else "entry"  # none where the code before has returned
        self.names = 0

    # ---------------------------------------------------------------- values

    def constant(self, kind: Type, value: Operand) -> Value:
        """Return a number, or the address of nothing, as a value."""
        return Value(self, kind, written_constant(kind, value))

    def operand(self, value: Operand, kind: Type) -> Value:
        """Return a value that must be of a type; Python's numbers become constants of it, functions their addresses."""
        if type(value) is Value and value.type is kind and value.b is self:
            return value
        if isinstance(value, NativeFunction):
            self.called[value] = None
            value = Value(self, Pointer(value.signature), f"@{value.name}")
        if not isinstance(value, Value):
            return self.constant(kind, value)
        if value.b is not self:
            raise TypeError(f"{value} belongs to another function")
        if (
            value.type is not kind
            and value.type != kind
            and not (isinstance(kind, Pointer) and kind.accepts(value.type))
        ):
            raise TypeError(f"{kind!r} is needed, {value.type!r} was given: {value.text}")
        return value

    def binary(self, operation: str, x: Value, y: Operand) -> Value:
        """Return what an operation on two numbers gives."""
        kind = x.type
        if isinstance(element(kind), Float):
            if operation not in FLOATING:
                raise TypeError(f"{kind!r} has no {operation}")
            operation = FLOATING[operation]
        elif not isinstance(element(kind), Integer):
            raise TypeError(f"{kind!r} is no number")
        return self.new(kind, f"{operation} {self.operand(x, kind)}, {self.operand(y, kind).text}")

    def compare(self, how: str, x: Value, y: Operand) -> Value:
        """Return whether two numbers, or two addresses, stand in a relation; NaN stands in none but `ne`."""
        kind = x.type
        scalar = element(kind)
        if isinstance(scalar, Float):
            instruction = f"fcmp {ORDERED.get(how, how)}"
        else:
            instruction = f"icmp {how}"
            if how not in ("eq", "ne"):
                integer(scalar)
        return self.new(like(kind, BOOL), f"{instruction} {self.operand(x, kind)}, {self.operand(y, kind).text}")

    def select(self, condition: Value, x: Value, y: Operand) -> Value:
        """Return one of two values, or of two vectors' numbers; both are computed."""
        chosen, other = self.operand(x, x.type), self.operand(y, x.type)
        by = condition.type if condition.type is BOOL else like(x.type, BOOL)
        return self.new(x.type, f"select {self.operand(condition, by)}, {chosen}, {other}")

    def convert(self, how: Conversion, x: Value, scalar: Scalar) -> Value:
        """Return numbers as those of another type; `how` is LLVM's name for what is done with their bits."""
        kind = like(x.type, scalar)
        return self.new(kind, f"{how} {x} to {kind}")

    def intrinsic(self, name: str, kind: Type, *arguments: Operand, of: tuple[Type, ...] | None = None) -> Value:
        """Call one of LLVM's functions that exist for many types.

        Args:
            name: without what it begins and ends with.
            kind: of the result; Python's whole numbers among the arguments are I32, its conditions BOOL.
            arguments: what it is given.
            of: the types that its name ends in; that of the result, if not given.
        """
        given = [self.flag(x) for x in arguments]
        return self.call(intrinsic(name, (kind,) if of is None else of, kind, tuple(x.type for x in given)), *given)

    def do_intrinsic(self, name: str, *arguments: Operand, of: tuple[Type, ...]) -> None:
        """Call one of LLVM's functions that gives nothing."""
        given = [self.flag(x) for x in arguments]
        self.do(intrinsic(name, of, VOID, tuple(x.type for x in given)), *given)

    def flag(self, value: Operand) -> Value:
        """Return a number that says how something is done as a value."""
        return value if isinstance(value, Value) else self.constant(BOOL if isinstance(value, bool) else I32, value)

    # ---------------------------------------------------------------- vectors

    def spread(self, x: Value, count: int) -> Value:
        """Return a vector that has a number everywhere."""
        kind = vector_of(numeric(x.type), count)
        one = self.new(kind, f"insertelement {kind} poison, {x}, i32 0")
        return self.new(kind, f"shufflevector {one}, {kind} poison, <{count} x i32> zeroinitializer")

    def numbers(self, scalar: Scalar, values: Sequence[int]) -> Value:
        """Return a vector of constants."""
        kind = VectorType(scalar, len(values))
        return Value(
            self, kind, f"<{join_by_commas([f'{scalar.text} {written_constant(scalar, value)}' for value in values])}>"
        )

    def shuffle(self, x: Value, places: Sequence[int]) -> Value:
        """Return a vector of some numbers of another."""
        kind = vector(x.type)
        found = vector_of(kind.element, len(places))
        return self.new(found, f"shufflevector {x}, {kind} poison, {written_places(tuple(places))}")

    def beside(self, x: Value, y: Value) -> Value:
        """Return a vector of the numbers of two."""
        return self.shuffle_pair(x, y, range(2 * vector(x.type).count))

    def shuffle_pair(self, x: Value, y: Value, places: Sequence[int]) -> Value:
        """Return a vector of some numbers of two, which are counted one after the other."""
        found = vector_of(vector(x.type).element, len(places))
        return self.new(found, f"shufflevector {x}, {y}, {written_places(tuple(places))}")

    def bits(self, conditions: Value) -> Value:
        """Return a vector of conditions as the bits of one number."""
        kind = Integer(vector(conditions.type).count)
        return self.new(kind, f"bitcast {conditions} to {kind}")

    def extract(self, x: Value, place: int) -> Value:
        """Return one number of a vector."""
        return self.new(vector(x.type).element, f"extractelement {x}, i64 {place}")

    # ---------------------------------------------------------------- memory and calls

    def least(self, x: Value, y: Operand) -> Value:
        """Return the smaller of two numbers."""
        return self.select(x < y, x, y)

    def stack(self, kind: Type) -> Value:
        """Return the address of memory that the function has while it runs; of an array's first element."""
        name = self.name()
        self.stacked.append(f"  {name} = alloca {kind}, align 16")
        return Value(self, Pointer(kind.element if isinstance(kind, Array) else kind), name)

    def call(self, function: NativeFunction | Value, *arguments: Operand) -> Value:
        """Call a function, or what is at the address of one, for its result."""
        signature, text = self.called_as(function, arguments)
        if isinstance(signature.returns, Void):
            raise TypeError(f"{text} gives nothing; `do` it")
        return self.new(signature.returns, text)

    def do(self, function: NativeFunction | Value, *arguments: Operand) -> None:
        """Call a function, or what is at the address of one, and leave its result."""
        self.put(self.called_as(function, arguments)[1])

    def called_as(self, function: NativeFunction | Value, arguments: Sequence[Operand]) -> tuple[Signature, str]:
        """Return the signature of a function and the text of a call."""
        if isinstance(function, NativeFunction):
            self.called[function] = None
            signature, head = function.signature, function.head
        else:
            found = function.pointee()
            if not isinstance(found, Signature):
                raise TypeError(f"{function.type!r} is not that of a function")
            signature, head = found, f"{found.returns} {function.text}"
        if len(arguments) != len(signature.parameters):
            raise TypeError(f"{head}: {len(arguments)} arguments for {len(signature.parameters)} parameters")
        given = [self.operand(x, kind) for x, kind in zip(arguments, signature.parameters, strict=True)]
        return signature, f"call {head}({join_by_commas(given)})"

    def table(self, table: ConstantTable) -> Value:
        """Return the address of the first of some constants."""
        self.called[table] = None
        return Value(self, Pointer(table.scalar), f"@{table.name}")

    # ---------------------------------------------------------------- text

    def name(self, of: str = "") -> str:
        """Return a name for a value that nothing else has."""
        self.names += 1
        return f"%{self.mark}{of}.{self.names}"

    def put(self, instruction: str) -> None:
        """Write an instruction that gives nothing."""
        if self.block is None:
            raise TypeError(f"the function has returned before: {instruction}")
        self.lines.append(f"  {instruction}")

    def new(self, kind: Type, instruction: str, of: str = "") -> Value:
        """Write an instruction and return the value that it gives."""
        if self.block is None:
            raise TypeError(f"the function has returned before: {instruction}")
        self.names += 1
        name = f"%{self.mark}{of}.{self.names}"
        self.lines.append(f"  {name} = {instruction}")
        return Value(self, kind, name)


def written_constant(kind: Type, value: Operand) -> str:
    """Return a number, or the address of nothing, as LLVM's language has it; of a float the digits of a double."""
    if type(kind) is VectorType:
        return f"splat ({kind.element.text} {written_constant(kind.element, value)})"
    if type(kind) is Float and isinstance(value, (float, int)):
        return f"0x{DOUBLE.pack(value if kind.bits == 64 else kind.ctype(value).value).hex()}"
    if type(kind) is Integer and isinstance(value, int) and kind.holds(value):
        return str(int(value))
    if type(kind) is Pointer and value is None:
        return "null"
    raise TypeError(f"{value!r} is not {kind!r}")


@functools.cache
def written_places(places: tuple[int, ...]) -> str:
    """Return which elements of vectors a shuffle takes."""
    return f"<{len(places)} x i32> <{join_by_commas([f'i32 {place}' for place in places])}>"
