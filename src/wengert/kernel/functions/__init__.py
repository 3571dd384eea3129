"""The functions that kernels have beside machine operations: our own mathematics, as expressions of opcodes."""

from __future__ import annotations

import functools

import numpy as np

from wengert.kernel.functions import division, exponential, logarithm, powers, special, trigonometric
from wengert.kernel.functions.expression import Body, Expression, Features, Rare, evaluate_expression, write_expression
from wengert.kernel.opcodes import OPCODES, Expansion

__all__ = [
    "FUNCTIONS",
    "Expression",
    "Features",
    "Rare",
    "evaluate_expression",
    "expression_of",
    "expression_of_results",
]


BODIES: dict[str, Body] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module in (division, exponential, logarithm, powers, special, trigonometric)
    for name in module.__all__
}
"""What writes functions, by the modules that have it."""

FUNCTIONS: dict[str, Expansion] = {row.name: row.function for row in OPCODES.values() if row.function is not None}
"""The opcodes that are functions."""


def expression_of_results(name: str, dtype: np.dtype[np.generic], features: Features) -> Expression:
    """Return the expression of a function with all results of its body: sine and cosine of one argument are one."""
    function = FUNCTIONS[name]
    return expression_of_body(BODIES[function.body], OPCODES[name].arity, dtype, features)


@functools.cache
def expression_of_body(body: Body, arity: int, dtype: np.dtype[np.generic], features: Features) -> Expression:
    """Return the expression of a body, which is written once."""
    return write_expression(body, (dtype,) * arity, features)


def expression_of(name: str, dtype: np.dtype[np.generic], features: Features) -> Expression:
    """Return the expression of one function, with its result alone."""
    return with_result(expression_of_results(name, dtype, features), FUNCTIONS[name].result)


def with_result(expression: Expression, result: int) -> Expression:
    """Return an expression with one of its results."""
    rare = tuple(Rare(r.condition, r.operands, with_result(r.expression, result)) for r in expression.rare)
    return Expression(expression.operations, (expression.results[result],), rare)
