"""The functions that kernels have beside machine operations: our own mathematics, as expressions of opcodes."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from wengert.kernel.functions import angles, division, exponential, gamma, logarithm, normal, powers, trigonometric
from wengert.kernel.functions.expression import Body, Expression, Features, Rare, evaluated, written

__all__ = [
    "FUNCTIONS",
    "Expression",
    "Features",
    "Function",
    "Rare",
    "evaluated",
    "expression_of",
    "expression_of_results",
]


@dataclass(frozen=True)
class Function:
    """A function of kernels.

    Attributes:
        name: the opcode.
        body: what writes it; several functions of one argument may share it.
        double: the greatest error of double precision, with and without fma, in units in the last place.
        single: that of single precision.
        result: which of the results of the body this is.
        arity: how many arguments it has.
    """

    name: str
    body: Body
    double: tuple[float, float]
    single: tuple[float, float]
    result: int = 0
    arity: int = 1


def table(*rows: Function) -> dict[str, Function]:
    """Return rows by name."""
    return {row.name: row for row in rows}


FUNCTIONS = table(
    Function("exp", exponential.exp, (1.2, 1.2), (1.1, 1.1)),
    Function("exp2", exponential.exp2, (1.3, 1.3), (1.2, 1.2)),
    Function("expm1", exponential.expm1, (1.3, 1.3), (1.2, 1.2)),
    Function("sinh", exponential.sinh, (2.5, 2.5), (2.5, 2.5)),
    Function("cosh", exponential.cosh, (1.5, 1.5), (1.5, 1.5)),
    Function("tanh", exponential.tanh, (2.7, 2.7), (2.7, 2.7)),
    Function("tanh_derivative", exponential.tanh_derivative, (4, 4), (4, 4), arity=2),
    Function("expit", exponential.expit, (2.5, 2.5), (2.5, 2.5)),
    Function("log", logarithm.log, (1.1, 1.1), (1.1, 1.1)),
    Function("log1p", logarithm.log1p, (1.1, 1.1), (1, 1)),
    Function("log2", logarithm.log2, (1.3, 1.3), (1.3, 1.3)),
    Function("log10", logarithm.log10, (1.3, 1.3), (1.3, 1.3)),
    Function("arcsinh", logarithm.arcsinh, (1.5, 1.5), (1.5, 1.5)),
    Function("arccosh", logarithm.arccosh, (1.5, 1.5), (1.5, 1.5)),
    Function("arctanh", logarithm.arctanh, (1.5, 1.5), (1.5, 1.5)),
    Function("log_expit", logarithm.log_expit, (2, 2), (2, 2)),
    Function("sin", trigonometric.sincos, (1.2, 1.5), (1.2, 0.51)),
    Function("cos", trigonometric.sincos, (1.2, 1.5), (1.2, 0.51), result=1),
    Function("tan", trigonometric.tan, (1.8, 2.2), (1.8, 0.51)),
    Function("arcsin", angles.arcsin, (1, 1), (1, 1)),
    Function("arccos", angles.arccos, (1, 1), (1, 1)),
    Function("arctan", angles.arctan, (2, 2.5), (1.6, 1.6)),
    Function("arctan2", angles.arctan2, (2, 2.5), (1.6, 2), arity=2),
    Function("power", powers.power, (1.6, 1.6), (0.51, 0.51), arity=2),
    Function("cbrt", powers.cbrt, (0.6, 0.6), (0.6, 0.6)),
    Function("hypot", powers.hypot, (1, 1.3), (1, 1.3), arity=2),
    Function("fmod", division.fmod, (0, 0), (0, 0), arity=2),
    Function("frexp_mantissa", division.frexp, (0, 0), (0, 0)),
    Function("frexp_exponent", division.frexp, (0, 0), (0, 0), result=1),
    Function("ldexp", division.ldexp, (0.5, 0.5), (0.5, 0.5), arity=2),
    Function("nextafter", division.nextafter, (0, 0), (0, 0), arity=2),
    Function("spacing", division.spacing, (0, 0), (0, 0)),
    Function("erf", normal.erf, (2, 2), (2, 2)),
    Function("erfc", normal.erfc, (3.5, 3.5), (0.51, 0.51)),
    Function("lgamma", gamma.lgamma, (4, 4), (0.51, 0.51)),
    Function("digamma", gamma.digamma, (5, 5), (0.51, 0.51)),
)
"""Every function by name, with the greatest errors of double and of single precision, with and without fma, in ulp.

A unit in the last place is that of the exact result, at least the smallest number. It is that of the value at 1 - x, if
that is greater, for lgamma and digamma of x < 0, which have zeros between their poles; at least that of 1/4 for
digamma; that of the derivative of tanh is of its formula by tanh(x), where this is used, for a value without error.
tools/accuracy.py measures them."""


def expression_of_results(name: str, dtype: np.dtype[np.generic], features: Features) -> Expression:
    """Return the expression of a function with all results of its body: sine and cosine of one argument are one.

    Args:
        name: of a function.
        dtype: of its arguments and results: float64 or float32.
        features: what the processor can do.
    """
    function = FUNCTIONS[name]
    return expression_of_body(function.body, function.arity, dtype, features)


@functools.cache
def expression_of_body(body: Body, arity: int, dtype: np.dtype[np.generic], features: Features) -> Expression:
    """Return the expression of a body, which is written once."""
    return written(body, (dtype,) * arity, features)


def expression_of(name: str, dtype: np.dtype[np.generic], features: Features) -> Expression:
    """Return the expression of one function, with its result alone.

    Args:
        name: of a function.
        dtype: of its arguments and result: float64 or float32.
        features: what the processor can do.
    """
    return with_result(expression_of_results(name, dtype, features), FUNCTIONS[name].result)


def with_result(expression: Expression, result: int) -> Expression:
    """Return an expression with one of its results."""
    rare = tuple(Rare(r.condition, r.operands, with_result(r.expression, result)) for r in expression.rare)
    return Expression(expression.operations, (expression.results[result],), rare)
