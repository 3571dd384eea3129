"""Functions that are expressions of opcodes, written out: once for each kind of argument, then pasted.

What an expression computes rarely (sines of huge numbers) is a function that programs call: it is compiled once, since
it takes longer to compile than most programs do.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from wengert.emission.instructions import Case, in_register, instructions_of, literal
from wengert.kernel.functions import FUNCTIONS, Expression, Features, Rare, expression_of_results
from wengert.kernel.functions.coefficients import TABLES
from wengert.kernel.kernel import Operation
from wengert.native.builder import Builder, template
from wengert.native.engine import Target
from wengert.native.functions import ConstantTable, NativeFunction, Template
from wengert.native.structs import BOOL, I64, Integer, Signature, Type, VectorType, element, like, vector_of
from wengert.native.values import Value
from wengert.support.records import FieldRecord

Dtype = np.dtype[np.generic]
RARE = ".rare"
CAREFUL = "intel_ocl_bicc"
"""A convention by which half of the vector registers, the upper ones, are left alone by what is called."""
WHOLE_REGISTERS = "-vzeroupper"
"""Makes that true with AVX2: else LLVM clears the upper halves of all 16 registers where a result has 16 bytes."""


class Specialisation(FieldRecord):
    """For what a function is written out.

    Attributes:
        name: of the function.
        dtype: of its arguments and its results.
        width: how many lanes; 0 for numbers.
        target: the processor.
    """

    name: str
    dtype: Dtype
    width: int
    target: Target

    @property
    def kind(self) -> Type:
        """The type of its arguments and results."""
        scalar = in_register(self.dtype)
        return vector_of(scalar, self.width) if self.width else scalar

    def rare(self, number: int) -> Specialisation:
        """Return the form of what is computed instead where one of its conditions holds."""
        return self.replace(name=f"{self.name}{RARE}{number}")

    @property
    def is_outside(self) -> bool:
        """Whether it is computed rarely, by a function that programs call and do not have."""
        return self.name.count(RARE) == 1

    @property
    def text(self) -> str:
        """Its name in native code."""
        return f"{self.name}.{self.dtype.name}x{self.width}"

    @classmethod
    def from_name(cls, text: str, target: Target) -> Specialisation:
        """Return the form of a name in native code."""
        name, _, kind = text.rpartition(".")
        dtype, _, width = kind.partition("x")
        return cls(name, np.dtype(dtype), int(width), target)


def function_of_body(name: str) -> tuple[str, int]:
    """Return the first function that has the same body as another, and which of the results the other is."""
    function = FUNCTIONS[name]
    first = next(other for other, it in FUNCTIONS.items() if it.body == function.body)
    return first, function.result


@functools.cache
def template_of(form: Specialisation) -> Template:
    """Return a function's instructions, with all results of its body: sine and cosine of one argument are one."""
    expression = expression_of_results(form.name, form.dtype, features(form))
    kinds = [form.kind] * expression.arity
    return template(kinds, lambda b, *arguments: write_expression(b, form, expression, arguments))


def features(form: Specialisation) -> Features:
    """Return what functions need to know of a processor, and of what they are written out for."""
    return Features(fma=form.target.fuses, scaling=form.target.scales, numbers=not form.width)


def write_expression(
    b: Builder, form: Specialisation, expression: Expression, arguments: Sequence[Value]
) -> list[Value]:
    """Write an expression and return its results."""
    values: list[Value] = []
    for operation in expression.operations:
        if operation.name == "argument":
            values.append(arguments[len(values)])
        elif operation.name == "constant":
            kind = like(form.kind, in_register(operation.dtype))
            values.append(b.constant(kind, literal(operation.dtype, operation.value)))
        elif operation.name == "entry":
            values.append(entry(b, operation, values[operation.operands[0]]))
        else:
            given = expression.operations[operation.operands[-1]].dtype
            case = Case(given, operation.dtype, form.target)
            values.append(instructions_of(operation.name)(b, case, *(values[n] for n in operation.operands)))
    results = [values[n] for n in expression.results]
    for number, rare in enumerate(expression.rare):
        operands = [values[place] for place in rare.operands]
        results = replace_rare(b, form.rare(number), rare, values[rare.condition], operands, results)
    return results


def entry(b: Builder, operation: Operation, index: Value) -> Value:
    """Write the look-up in a table of constants."""
    scalar = in_register(operation.dtype)
    name = f"{operation.buffer}.{operation.dtype.name}"
    place = b.table(table_of(name, operation.buffer, operation.dtype))
    if element(index.type) != I64:
        index = b.convert("sext", index, I64)
    if not isinstance(index.type, VectorType):
        return place.at(index).load()
    assert not isinstance(scalar, Integer)
    return place.gather(index, b.constant(vector_of(BOOL, index.type.count), 1))


@functools.cache
def table_of(name: str, table: str, dtype: Dtype) -> ConstantTable:
    """Return a table as constants of a dtype."""
    return ConstantTable(name, in_register(dtype), tuple(map(float, TABLES[table])))


def replace_rare(
    b: Builder, form: Specialisation, rare: Rare, condition: Value, operands: Sequence[Value], results: list[Value]
) -> list[Value]:
    """Write what replaces results where a condition holds: a call, if it does for any lane."""
    some = condition
    if isinstance(condition.type, VectorType):
        some = b.intrinsic("vector.reduce.or", BOOL, condition, of=(condition.type,))

    def yes() -> list[Value]:
        called = declaration_of_rare(form) if form.is_outside else rare_function(form, rare.expression)
        found = b.call(called, *operands)
        others = [part(b, found, n, form.width) for n in range(len(results))] if len(results) > 1 else [found]
        return [b.select(condition, other, x) for other, x in zip(others, results, strict=True)]

    return b.either(some, yes, lambda: results)


def part(b: Builder, found: Value, number: int, width: int) -> Value:
    """Return one of several results."""
    return b.shuffle(found, range(number * width, (number + 1) * width)) if width else b.extract(found, number)


# What is computed rarely: functions of their own, compiled once for all programs


def rare_function(form: Specialisation, expression: Expression) -> NativeFunction:
    """Return the function that computes the results of an expression, all in one vector if there are several."""

    def body(b: Builder, *arguments: Value) -> None:
        results = write_expression(b, form, expression, arguments)
        vectors = results if form.width or len(results) == 1 else [b.spread(x, 1) for x in results]
        b.give(functools.reduce(b.beside, vectors))

    count = len(expression.results)
    returns = vector_of(in_register(form.dtype), max(form.width, 1) * count) if count > 1 else form.kind
    parameters = tuple(f"x{n}" for n in range(expression.arity))
    kinds = [in_register(o.dtype) for o in expression.operations if o.name == "argument"]
    signature = Signature(returns, tuple(like(form.kind, scalar) for scalar in kinds))
    if not form.target.is_x86:
        return NativeFunction(form.text, signature, body, parameters, rare=True)
    able = ",".join(filter(None, (form.target.features, WHOLE_REGISTERS)))
    return NativeFunction(form.text, signature, body, parameters, rare=True, convention=CAREFUL, features=able)


@functools.cache
def rare_of(form: Specialisation) -> NativeFunction:
    """Return the function of one of a function's conditions."""
    name, number = form.name.split(RARE)
    expression = expression_of_results(name, form.dtype, features(form))
    return rare_function(form, expression.rare[int(number)].expression)


@functools.cache
def declaration_of_rare(form: Specialisation) -> NativeFunction:
    """Return the declaration of a rare function, for programs that call it and have its body elsewhere."""
    return rare_of(form).replace(body=None)


def called_outside(form: Specialisation) -> list[str]:
    """Return the names of the functions that are not in a program which has another."""
    expression = expression_of_results(form.name, form.dtype, features(form))
    return [form.rare(number).text for number in range(len(expression.rare))]


def is_rare(name: str) -> bool:
    """Whether the name of a function is that of what another computes rarely."""
    return RARE in name
