"""Graphs as expressions: what is computed, written as one formula for each output, with no part named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.printing import constant_text, formula, sign_of, variable_names
from wengert.support.records import NamedTuple

CONVERSIONS = ("astype", "copy", "guarded", "number")
"""Primitives that give their first operand, for derivatives in exact arithmetic."""
LONGEST = 400
"""Letters of an expression that are kept."""
STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "@": 2, "**": 4}
SIGN, CALL = 3, 5


class WrittenExpression(NamedTuple):
    """Hold the text of an expression, how strongly its outermost operation binds, and how many operations it has."""

    text: str
    strength: int
    operations: int


def expressions(graph: Graph) -> list[WrittenExpression]:
    """Return an expression for each output of a graph, in which shared parts are written out wherever they are used.

    >>> import numpy as np, wengert as wg
    >>> [found] = expressions(wg.graph.trace(lambda x, y: (x + y) * (x + y))(1.0, 2.0))
    >>> found.text, found.operations
    ('(x + y) * (x + y)', 3)
    """
    names = variable_names(graph)
    known = {variable: WrittenExpression(names[variable], CALL, 0) for variable in graph.inputs}
    for equation in graph.equations:
        for i, variable in enumerate(equation.outputs):
            known[variable] = write_equation(equation, [operand(known, x) for x in equation.inputs], i)
    return [operand(known, x) for x in graph.outputs]


def operations(graph: Graph) -> int:
    """Return how many operations a graph carries out."""
    return sum(equation.primitive.name not in CONVERSIONS for equation in graph.equations)


def operand(known: dict[Variable, WrittenExpression], value: Any) -> WrittenExpression:
    """Return the expression of a variable or literal."""
    if type(value) is Variable:
        return known[value]
    text = constant_text(value)
    return WrittenExpression(text, 0 if text.startswith("-") else CALL, 0)


def write_equation(equation: Equation, operands: Sequence[WrittenExpression], output: int) -> WrittenExpression:
    """Return what an equation makes of its operands."""
    name, params = equation.primitive.name, equation.params
    if name in CONVERSIONS:
        return operands[0]
    count = 1 + sum(x.operations for x in operands)
    sign = sign_of(name)
    if sign in STRENGTH and len(operands) == 2 and not params:
        strength = STRENGTH[sign]
        left, right = operands
        first = enclose(left, strength + (sign == "**"))
        second = enclose(right, strength if sign in ("+", "*", "**") else strength + 1)
        return shorten(f"{first} {sign} {second}", strength, count)
    if sign and len(operands) == 1:
        return shorten(sign + enclose(operands[0], SIGN), SIGN, count)
    shapes = [x.shape if type(x) is Variable else np.shape(x) for x in equation.inputs]
    texts = [enclose(x, CALL) if name == "getitem" else x.text for x in operands]
    text = formula(name, texts, shapes, params)
    if len(equation.outputs) > 1:
        text = f"{text}[{output}]"
    return shorten(text, CALL if text.endswith((")", "]")) else 0, count)


def enclose(expression: WrittenExpression, strength: int) -> str:
    """Return the text of an operand, in parentheses if it binds less strongly."""
    return expression.text if expression.strength >= strength else f"({expression.text})"


def shorten(text: str, strength: int, count: int) -> WrittenExpression:
    """Return an expression without the end of a very long one."""
    return WrittenExpression(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...", strength, count)
