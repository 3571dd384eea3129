"""What each opcode is in instructions: a table from its name to a small function, for numbers and for vectors alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.structs import BOOL, F32, F64, I8, I32, I64, Float, Integer, Scalar, VectorType, element, like
from wengert.native.values import Value
from wengert.support.records import NamedTuple

Dtype = np.dtype[np.generic]


class Case(NamedTuple):
    """For what an opcode is written.

    Attributes:
        given: the dtype of the last operand.
        wanted: the dtype of the result.
        target: the processor.
    """

    given: Dtype
    wanted: Dtype
    target: Target


Write = Callable[..., Value]
"""A function that writes an operation: (builder, case, operands...) -> result."""


INTEGERS = {1: I8, 2: Integer(16), 4: I32, 8: I64}
"""By their bytes: always the same objects, which are compared sooner."""


def in_register(dtype: Dtype) -> Scalar:
    """Return what an element of an array is while it is computed with; conditions have one bit."""
    if dtype.kind == "b":
        return BOOL
    if dtype.kind in "iu":
        return INTEGERS[dtype.itemsize]
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        return F32 if dtype.itemsize == 4 else F64
    raise TypeError(f"kernels have no {dtype}")


def in_memory(dtype: Dtype) -> Scalar:
    """Return what an element of an array is in memory."""
    return I8 if dtype.kind == "b" else in_register(dtype)


def from_memory(x: Value, dtype: Dtype) -> Value:
    """Return a value from memory in the type that it is computed in: truths are bits there."""
    return x.b.compare("ne", x, x.b.constant(x.type, 0)) if dtype.kind == "b" else x


def literal(dtype: Dtype, value: float) -> float:
    """Return a constant of a dtype as LLVM writes it: it has no unsigned numbers."""
    if dtype.kind == "f":
        return float(value)
    number = int(value)
    return number - (1 << 8 * dtype.itemsize) if dtype.kind == "u" and number >> 8 * dtype.itemsize - 1 else number


def is_signed(dtype: Dtype) -> bool:
    """Whether numbers of a dtype can be negative."""
    return dtype.kind not in "bu"


def arithmetic(name: str, of_conditions: str = "") -> Write:
    """Write an instruction that floating-point and whole numbers have; on conditions, another."""
    return lambda b, case, x, y: b.binary(of_conditions if case.given.kind == "b" else name, x, y)


def comparison(how: str) -> Write:
    """Write a comparison."""

    def write(b: Builder, case: Case, x: Value, y: Value) -> Value:
        plain = how in ("eq", "ne") or is_signed(case.given)
        return b.compare(how if plain else f"u{how[1:]}", x, y)

    return write


def negative(b: Builder, case: Case, x: Value) -> Value:
    """Write -x."""
    return -x


def absolute(b: Builder, case: Case, x: Value) -> Value:
    """Write |x|."""
    if case.given.kind == "f":
        return b.intrinsic("fabs", x.type, x)
    return b.select(x < 0, -x, x) if is_signed(case.given) else x


def sqrt(b: Builder, case: Case, x: Value) -> Value:
    """Write the square root."""
    return b.intrinsic("sqrt", x.type, x)


def greatest(how: str) -> Write:
    """Write the greater or the smaller of two numbers; what is no number wins."""

    def write(b: Builder, case: Case, x: Value, y: Value) -> Value:
        if case.given.kind == "b":
            return x | y if how == "sgt" else x & y
        found = b.select(
            b.compare(how if is_signed(case.given) else f"u{how[1:]}", x, y), x, y
        )  # y, if it is no number
        return b.select(b.compare("uno", x, x), x, found) if case.given.kind == "f" else found

    return write


def rounding(name: str) -> Write:
    """Write a rounding to whole numbers."""

    def write(b: Builder, case: Case, x: Value) -> Value:
        if case.given.kind != "f":
            return x
        if case.target.rounds:
            return b.intrinsic(name, x.type, x)
        return rounded_by_adding(b, name, x)

    return write


def rounded_by_adding(b: Builder, name: str, x: Value) -> Value:
    """Round where the processor cannot: numbers from `large` on are whole, so adding it leaves no fraction.

    A call of the C library for each number would be ten times as slow.
    """
    scalar = element(x.type)
    assert isinstance(scalar, Float)
    large = b.constant(x.type, 2.0**52 if scalar.bits == 64 else 2.0**23)
    size = b.intrinsic("fabs", x.type, x)
    whole = size + large - large
    one, none = b.constant(x.type, 1.0), b.constant(x.type, 0.0)
    if name == "trunc":
        whole = whole - b.select(whole > size, one, none)
    whole = b.intrinsic("copysign", x.type, whole, x)
    if name in ("floor", "ceil"):
        over, step = (whole > x, -one) if name == "floor" else (whole < x, one)
        whole = b.intrinsic("copysign", x.type, b.select(over, whole + step, whole), x)
    return b.select(b.compare("olt", size, large), whole, x)


def copysign(b: Builder, case: Case, x: Value, y: Value) -> Value:
    """Write the size of x with the sign of y."""
    return b.intrinsic("copysign", x.type, x, y)


def floor_divide(b: Builder, case: Case, x: Value, y: Value) -> Value:
    """Write the whole quotient, rounded down: 0 by zero, which the processor refuses, as it does what -1 overflows."""
    zero, one = b.constant(x.type, 0), b.constant(x.type, 1)
    none = b.compare("eq", y, zero)
    if not is_signed(case.given):
        return b.select(none, zero, b.binary("udiv", x, b.select(none, one, y)))
    minus = b.compare("eq", y, b.constant(x.type, -1))
    divisor = b.select(none | minus, one, y)
    found = b.binary("sdiv", x, divisor)
    rest = x - found * divisor
    below = b.compare("ne", rest, zero) & b.compare("slt", b.binary("xor", rest, divisor), zero)
    return b.select(none, zero, b.select(minus, -x, b.select(below, found - one, found)))


def bitwise(name: str) -> Write:
    """Write an instruction on bits."""
    return lambda b, case, x, y: b.binary(name, x, y)


def invert(b: Builder, case: Case, x: Value) -> Value:
    """Write what has all bits the other way."""
    return b.binary("xor", x, 1 if case.given.kind == "b" else -1)


def select(b: Builder, case: Case, condition: Value, x: Value, y: Value) -> Value:
    """Write a choice."""
    return b.select(condition, x, y)


def convert(b: Builder, case: Case, x: Value) -> Value:
    """Write a number as one of another dtype, as NumPy casts."""
    given, wanted, scalar = case.given, case.wanted, in_register(case.wanted)
    if given == wanted:
        return x
    if wanted.kind == "b":
        return b.compare("ne", x, b.constant(x.type, 0))
    if given.kind == "b":
        kind = like(x.type, scalar)
        if wanted.kind == "f":
            return b.select(x, b.constant(kind, 1), b.constant(kind, 0))
        return b.convert("zext", x, scalar)
    if given.kind == "f":
        return from_floating(b, case, scalar, x)
    if wanted.kind == "f":
        return b.convert("sitofp" if is_signed(given) else "uitofp", x, scalar)
    if given.itemsize == wanted.itemsize:
        return x
    if given.itemsize > wanted.itemsize:
        return b.convert("trunc", x, scalar)
    return b.convert("sext" if is_signed(given) else "zext", x, scalar)


def from_floating(b: Builder, case: Case, scalar: Scalar, x: Value) -> Value:
    """Write a floating-point number as one of another dtype; small integers come from larger ones, as in C."""
    given, wanted, target = case.given, case.wanted, case.target
    if wanted.kind == "f":
        return b.convert("fptrunc" if given.itemsize > wanted.itemsize else "fpext", x, scalar)
    if wanted.itemsize == 8:
        if is_signed(wanted) or not target.is_x86:
            return b.convert("fptosi" if is_signed(wanted) else "fptoui", x, scalar)
        half = b.constant(x.type, 2.0**63)  # as compilers of C do, whose results NumPy has beyond 64 bits, too
        low, high = b.convert("fptosi", x, scalar), b.convert("fptosi", x - half, scalar)
        return b.select(b.compare("oge", x, half), b.binary("xor", high, -(1 << 63)), low)
    if wanted == np.int32:
        return b.convert("fptosi", x, scalar)
    through = I64 if wanted.itemsize == 4 else I32
    return b.convert("trunc", b.convert("fptosi", x, through), scalar)


def bitcast(b: Builder, case: Case, x: Value) -> Value:
    """Write the bits of a number as those of another dtype."""
    return b.convert("bitcast", x, in_register(case.wanted))


def shift_right(b: Builder, case: Case, x: Value, y: Value) -> Value:
    """Write a shift to the right, which keeps the sign."""
    return b.binary("ashr" if is_signed(case.given) else "lshr", x, y)


def write_guard(b: Builder, case: Case, x: Value, t: Value) -> Value:
    """Write x, a multiple of t, and 0 where t is 0, even if x is NaN: what does not wait for x."""
    zero = b.constant(x.type, 0)
    return b.select(b.compare("une", t, zero), x, zero)


def taken_apart(name: str, *options: int) -> Write:
    """Write one of the instructions of AVX-512 on the parts of floating-point numbers, vector by vector."""

    def write(b: Builder, case: Case, *operands: Value) -> Value:
        kind = operands[0].type
        if not case.target.scales:
            raise NotImplementedError(f"{case.target.processor} does not take numbers apart")
        if not isinstance(kind, VectorType):
            wide = [b.spread(x, 16 // case.given.itemsize) for x in operands]
            return b.extract(write(b, case, *wide), 0)
        if kind.count * case.given.itemsize > case.target.vector_bytes:
            halves = (range(kind.count // 2), range(kind.count // 2, kind.count))
            return b.beside(*(write(b, case, *(b.shuffle(x, half) for x in operands)) for half in halves))
        bits = 8 * kind.count * case.given.itemsize
        all_lanes = b.constant(Integer(max(8, kind.count)), -1)
        last = [4] if bits == 512 else []  # no other rounding
        full = f"x86.avx512.mask.{name}.p{'sd'[case.given.itemsize // 8]}.{bits}"
        return b.intrinsic(full, kind, *operands, *options, b.constant(kind, 0), all_lanes, *last, of=())

    return write


def multiply_add(b: Builder, case: Case, x: Value, y: Value, z: Value) -> Value:
    """Write x y + z, rounded once where the processor can; elsewhere each number would be a call of the C library."""
    if case.target.fuses and case.given.kind == "f":
        return b.intrinsic("fma", x.type, x, y, z)
    return x * y + z


INSTRUCTIONS: dict[str, Write] = {
    "add": arithmetic("add", "or"),
    "subtract": arithmetic("sub", "xor"),
    "multiply": arithmetic("mul", "and"),
    "product": arithmetic("mul", "and"),
    "divide": arithmetic("div"),
    "negative": negative,
    "absolute": absolute,
    "sqrt": sqrt,
    "maximum": greatest("sgt"),
    "minimum": greatest("slt"),
    "floor": rounding("floor"),
    "ceil": rounding("ceil"),
    "rint": rounding("rint"),
    "trunc": rounding("trunc"),
    "copysign": copysign,
    "floor_divide": floor_divide,
    "long_remainder": arithmetic("rem"),
    "equal": comparison("eq"),
    "not_equal": comparison("ne"),
    "less": comparison("slt"),
    "less_equal": comparison("sle"),
    "greater": comparison("sgt"),
    "greater_equal": comparison("sge"),
    "and": bitwise("and"),
    "or": bitwise("or"),
    "xor": bitwise("xor"),
    "not": invert,
    "select": select,
    "fma": multiply_add,
    "bitcast": bitcast,
    "shift_left": bitwise("shl"),
    "shift_right": shift_right,
    "exponent": taken_apart("getexp"),
    "fraction": taken_apart("getmant", 15),  # from 3/4 to 3/2, NaN below zero
    "scale": taken_apart("scalef"),
    "guarded": write_guard,
    "convert": convert,
}
"""What writes each opcode but those that read memory and places, which a stage writes."""


def instructions_of(name: str) -> Write:
    """Return what writes an opcode.

    Raises:
        NotImplementedError: nothing does.
    """
    if name not in INSTRUCTIONS:
        raise NotImplementedError(f"no instructions for the opcode {name}")
    return INSTRUCTIONS[name]
