"""Functions as expressions of opcodes, and what writes them as mathematics: operators on terms append operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.kernel import opcodes
from wengert.kernel.functions.coefficients import TABLES
from wengert.kernel.kernel import Operation
from wengert.support.records import FieldRecord

__all__ = [
    "Body",
    "Expression",
    "ExpressionBuilder",
    "Features",
    "FloatFormat",
    "Rare",
    "Table",
    "Term",
    "evaluate_expression",
    "write_expression",
]

Float = np.dtype[np.generic]
Array = Any
Table = Mapping[str, Sequence[str]]
"""Hexadecimal numbers by dtype."""
BOOL: Float = np.dtype(np.bool_)
DOUBLE: Float = np.dtype(np.float64)
SHORT = 6
"""Up to so many coefficients a polynomial is one chain of operations."""


class Features(FieldRecord):
    """Say what a processor can do.

    Attributes:
        fma: it has fused multiply-add; where not, products are rounded.
        scaling: it has `exponent`, `fraction` and `scale`, as AVX-512; where not, bits are worked on.
        numbers: it computes number by number, each of which waits for those before: tables are as fast as arithmetic.
    """

    fma: bool = True
    scaling: bool = True
    numbers: bool = False


class Rare(FieldRecord):
    """Say what is computed instead, where a condition holds: only if it does for any lane.

    Attributes:
        condition: the place of a truth value.
        operands: the places of what the expression is of: the arguments or others that are known.
        expression: with the same results.
    """

    condition: int
    operands: tuple[int, ...]
    expression: Expression


class Expression(FieldRecord):
    """Operations on arguments.

    Attributes:
        operations: in order of evaluation; the arguments come first.
        results: places of the results.
        rare: what holds for few numbers; later ones replace earlier ones.
    """

    operations: tuple[Operation, ...]
    results: tuple[int, ...]
    rare: tuple[Rare, ...] = ()

    @property
    def arity(self) -> int:
        """How many arguments it has."""
        return sum(operation.name == "argument" for operation in self.operations)


class FloatFormat(FieldRecord):
    """A floating-point format.

    Attributes:
        digits: bits after the point of the fraction.
        bias: of the exponent.
        integer: the dtype of its bits.
    """

    digits: int
    bias: int
    integer: Float

    @property
    def magic(self) -> float:
        """What rounds to whole numbers when it is added: 3/2 2**digits; they are then the lowest bits."""
        return 1.5 * 2.0**self.digits

    @property
    def sign(self) -> int:
        """The sign bit alone."""
        return int(-(2 ** (self.integer.itemsize * 8 - 1)))

    @property
    def smallest(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


FORMATS = {
    DOUBLE: FloatFormat(52, 1023, np.dtype(np.int64)),
    np.dtype(np.float32): FloatFormat(23, 127, np.dtype(np.int32)),
}


def unary(name: str) -> Callable[[Term], Term]:
    """Return the method for an opcode of one operand."""

    def method(x: Term) -> Term:
        return x.b.append(name, x.dtype, x)

    return method


def binary(name: str, swapped: bool = False) -> Callable[[Term, Operand], Term]:
    """Return the method for an opcode of two operands of one dtype, perhaps with the other operand first."""

    def method(x: Term, y: Operand) -> Term:
        first, second = (x.b.constant(y, x.dtype), x) if swapped else (x, y)
        return x.b.binary(name, first, second)

    return method


def comparison(name: str) -> Callable[[Term, Operand], Term]:
    """Return the method for a comparison."""

    def method(x: Term, y: Operand) -> Term:
        return x.b.append(name, BOOL, x, x.b.constant(y, x.dtype))

    return method


class Term:
    """A value of an expression."""

    __slots__ = ("b", "place")

    def __init__(self, b: ExpressionBuilder, place: int) -> None:
        self.b = b
        self.place = place

    @property
    def dtype(self) -> Float:
        """The dtype of its values."""
        return self.b.operations[self.place].dtype

    @property
    def format(self) -> FloatFormat:
        """The floating-point format of its values."""
        return FORMATS[self.dtype]

    def coefficients(self, table: Table) -> list[float]:
        """Return the row of its dtype in a table of hexadecimal numbers: "mixed" where the result is single."""
        row = "mixed" if self.b.mixed and "mixed" in table and self.dtype == DOUBLE else self.dtype.name
        return [float.fromhex(number) for number in table[row]]

    def parts(self, table: Table) -> list[float]:
        """Return the parts of a constant whose first products with small whole numbers are exact, or fused."""
        row = self.dtype.name if self.b.features.fma else self.dtype.name + " short"
        return [float.fromhex(number) for number in table[row]]

    def __bool__(self) -> bool:
        raise TypeError("a term has no truth value while it is written; use `select`")

    __add__ = __radd__ = binary("add")
    __sub__, __rsub__ = binary("subtract"), binary("subtract", swapped=True)
    __mul__ = __rmul__ = binary("multiply")
    __truediv__, __rtruediv__ = binary("divide"), binary("divide", swapped=True)
    __and__, __or__, __xor__ = binary("and"), binary("or"), binary("xor")
    __lshift__, __rshift__ = binary("shift_left"), binary("shift_right")
    __lt__, __le__, __gt__, __ge__ = map(comparison, ("less", "less_equal", "greater", "greater_equal"))
    __neg__, __abs__, __invert__ = map(unary, ("negative", "absolute", "not"))
    equals, differs = map(comparison, ("equal", "not_equal"))  # NaN is not equal to itself


Operand = Term | float
Body = Callable[..., Term | tuple[Term, ...]]


def opcode(name: str) -> Callable[[ExpressionBuilder, Term], Term]:
    """Return the method of a builder for an opcode of one operand."""

    def method(b: ExpressionBuilder, x: Term) -> Term:
        return b.append(name, x.dtype, x)

    return method


class ExpressionBuilder:
    """Collect operations; equal ones are one."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.operations: list[Operation] = []
        self.mixed = False
        """Whether double precision is for results of single precision."""
        self.rare: list[tuple[Term, tuple[Term, ...], Body]] = []
        self.places: dict[tuple[Operation, str], int] = {}

    # How operations are appended

    def append(self, name: str, dtype: Float, *operands: Term, value: float = 0.0, buffer: str = "") -> Term:
        """Append an operation, if there is none like it, and return its value."""
        places = tuple(operand.place for operand in operands)
        operation = Operation(name, places, dtype, value=value, buffer=buffer)
        key = operation, repr(value)  # -0.0 equals 0.0
        if key not in self.places:
            self.places[key] = len(self.operations)
            self.operations.append(operation)
        return Term(self, self.places[key])

    def constant(self, value: Operand, dtype: Float) -> Term:
        """Return a number of a dtype."""
        if isinstance(value, Term):
            return value
        return self.append("constant", dtype, value=dtype.type(value).item())

    def binary(self, name: str, x: Term, y: Operand) -> Term:
        """Return what an opcode makes of two values of one dtype."""
        return self.append(name, x.dtype, x, self.constant(y, x.dtype))

    def rarely(self, condition: Term, body: Body, *operands: Term) -> None:
        """Replace the results, where a condition holds, by what another function gives for some operands."""
        self.rare.append((condition, operands, body))

    # Opcodes that are not operators. Where the processor can, exponent gives floor(log2 |x|), and fraction the digits
    # of x from 3/4 to 3/2, NaN of negative numbers.

    sqrt, rint, floor = map(opcode, ("sqrt", "rint", "floor"))
    exponent, fraction = map(opcode, ("exponent", "fraction"))

    def fma(self, x: Term, y: Operand, z: Operand) -> Term:
        """Return x y + z, rounded once where the processor can."""
        y, z = self.constant(y, x.dtype), self.constant(z, x.dtype)
        return self.append("fma", x.dtype, x, y, z) if self.features.fma else x * y + z

    def select(self, condition: Term, x: Operand, y: Operand) -> Term:
        """Return x where a condition holds, y elsewhere."""
        dtype = x.dtype if isinstance(x, Term) else y.dtype if isinstance(y, Term) else DOUBLE
        return self.append("select", dtype, condition, self.constant(x, dtype), self.constant(y, dtype))

    def copysign(self, x: Term, y: Term) -> Term:
        """Return |x| with the sign of y."""
        return self.append("copysign", x.dtype, x, y)

    def convert(self, x: Term, dtype: Float) -> Term:
        """Return the nearest number of another dtype."""
        return x if x.dtype == dtype else self.append("convert", dtype, x)

    def bits(self, x: Term) -> Term:
        """Return the bits of a number as an integer."""
        return self.append("bitcast", x.format.integer, x)

    def number(self, bits: Term, dtype: Float) -> Term:
        """Return the number of some bits."""
        return self.append("bitcast", dtype, bits)

    def entry(self, table: str, index: Term, dtype: Float) -> Term:
        """Return an entry of a table of constants."""
        return self.append("entry", dtype, index, buffer=table)

    def scale(self, x: Term, n: Term) -> Term:
        """Return x 2**n for whole numbers n, where the processor can."""
        return self.append("scale", x.dtype, x, n)

    # What more than one function needs

    def within(self, x: Term, low: float, high: float) -> Term:
        """Return the nearest number between two; NaN stays."""
        x = self.select(x < low, low, x)
        return self.select(x > high, high, x)

    def polynomial(self, x: Term, coefficients: Sequence[float]) -> Term:
        """Return a polynomial, the lowest power first: by Horner's scheme, in two chains where it is long.

        More chains take more operations; these two are as fast as any, because processors work ahead.
        """
        if len(coefficients) <= SHORT:
            return self.chain(x, coefficients)
        square = x * x
        even, odd = (self.chain(square, coefficients[k::2]) for k in (0, 1))
        return self.fma(x, odd, even)

    def chain(self, x: Term, coefficients: Sequence[float]) -> Term:
        """Return a polynomial by Horner's scheme."""
        found = self.constant(coefficients[-1], x.dtype)
        for coefficient in coefficients[-2::-1]:
            found = self.fma(found, x, coefficient)
        return found

    def accurate(self, x: Term, coefficients: Sequence[float]) -> Term:
        """Return a polynomial whose first two coefficients, the greatest, are added last: each rounds once."""
        first, second, *others = coefficients
        return self.fma(x, self.fma(x, self.polynomial(x, others), second), first)

    def split(self, x: Term) -> tuple[Term, Term]:
        """Return two numbers of half the digits whose sum is x."""
        shift = (x.format.digits + 2) // 2
        high = self.number(self.bits(x) & -(2**shift), x.dtype)
        return high, x - high

    def product(self, x: Term, y: Operand) -> tuple[Term, Term]:
        """Return x y and what its rounding lost (T. J. Dekker, 1971, where there is no fma)."""
        y = self.constant(y, x.dtype)
        found = x * y
        if self.features.fma:
            return found, self.fma(x, y, -found)
        (a, b), (c, d) = self.split(x), self.split(y)
        return found, (((a * c - found) + a * d) + b * c) + b * d

    def sum(self, x: Term, y: Operand) -> tuple[Term, Term]:
        """Return x + y and what its rounding lost, where |x| is not smaller than |y| (Dekker)."""
        found = x + y
        return found, (x - found) + y

    def total(self, x: Term, y: Term) -> tuple[Term, Term]:
        """Return x + y and what its rounding lost (D. E. Knuth)."""
        found = x + y
        part = found - x
        return found, (x - (found - part)) + (y - part)

    def remainder(self, x: Term, q: Term, y: Term) -> Term:
        """Return x - q y, where q is about x / y."""
        if self.features.fma:
            return self.fma(-q, y, x)
        high, low = self.product(q, y)
        return (x - high) - low

    def nearest(self, x: Term, factor: float) -> tuple[Term, Term]:
        """Return the whole number nearest to factor x, and bits of which the lowest are that number."""
        magic = x.format.magic
        shifted = self.fma(x, factor, magic)
        return shifted - magic, self.bits(shifted)

    def power_of_two(self, bits: Term, dtype: Float, offset: int = 0) -> Term:
        """Return 2**(n + offset), for bits of which the lowest are n, if it is a normal number."""
        form = FORMATS[dtype]
        return self.number((bits + (form.bias + offset)) << form.digits, dtype)


def write_expression(body: Body, arguments: Sequence[Float], features: Features) -> Expression:
    """Return the expression that a function writes."""
    b = ExpressionBuilder(features)
    terms = [b.append("argument", dtype, buffer=f"x{k}") for k, dtype in enumerate(arguments)]
    found = body(b, *terms)
    results = found if isinstance(found, tuple) else (found,)
    rare = tuple(
        Rare(
            condition.place,
            tuple(x.place for x in operands),
            write_expression(other, [x.dtype for x in operands], features),
        )
        for condition, operands, other in b.rare
    )
    return needed_alone(Expression(tuple(b.operations), tuple(result.place for result in results), rare))


def needed_alone(expression: Expression) -> Expression:
    """Return an expression without what its results do not need; its arguments stay."""
    needed = {*expression.results, *(place for rare in expression.rare for place in (rare.condition, *rare.operands))}
    for place, operation in reversed(list(enumerate(expression.operations))):
        if place in needed:
            needed.update(operation.operands)
    kept = [n for n, operation in enumerate(expression.operations) if n in needed or operation.name == "argument"]
    new = {place: n for n, place in enumerate(kept)}
    operations = [expression.operations[n] for n in kept]
    return Expression(
        tuple(o.replace(operands=tuple(new[place] for place in o.operands)) for o in operations),
        tuple(new[place] for place in expression.results),
        tuple(
            Rare(new[rare.condition], tuple(new[place] for place in rare.operands), rare.expression)
            for rare in expression.rare
        ),
    )


def evaluate_expression(expression: Expression, *arguments: Array) -> tuple[Array, ...]:
    """Return the results of an expression, evaluated in NumPy."""
    with np.errstate(all="ignore"):
        values: list[Array] = []
        for operation in expression.operations:
            operands = [values[place] for place in operation.operands]
            values.append(value_of(operation, operands, arguments[len(values) :]))
        results = tuple(
            np.array(np.broadcast_to(values[place], np.shape(arguments[0]))) for place in expression.results
        )
        for rare in expression.rare:
            where = np.broadcast_to(values[rare.condition], np.shape(arguments[0]))
            if where.any():
                chosen = (np.broadcast_to(values[place], where.shape)[where] for place in rare.operands)
                others = evaluate_expression(rare.expression, *chosen)
                for result, other in zip(results, others, strict=True):
                    result[where] = other
    return results


def value_of(operation: Operation, operands: Sequence[Array], arguments: Sequence[Array]) -> Array:
    """Return the values of one operation; an argument is the first of those that are left."""
    if operation.name == "argument":
        return arguments[0]
    if operation.name == "constant":
        return operation.dtype.type(operation.value)
    if operation.name == "entry":
        return np.array(TABLES[operation.buffer], operation.dtype)[operands[0]]
    return opcodes.evaluate_opcode(operation.name, operation.dtype, operands)
