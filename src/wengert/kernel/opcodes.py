"""Opcodes: one row for each scalar operation of a kernel, with what NumPy computes for it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from wengert.kernel import fused

__all__ = ["OPCODES", "Opcode"]

Gives = Literal["operand", "bool", "stated"]
"""The dtype of a result: that of the last operand, bool, or what the operation states."""


@dataclass(frozen=True)
class Opcode:
    """A scalar operation.

    Attributes:
        name: as kernels write it.
        arity: how many operands it takes.
        evaluate: its values in NumPy; None for those that read memory or places, which the evaluation knows.
        gives: the dtype of its result.
        cost: processor cycles for a vector, about; what costs more than a load is not computed twice.
    """

    name: str
    arity: int
    evaluate: Callable[..., Any] | None = None
    gives: Gives = "operand"
    cost: int = 1


def special(name: str) -> Callable[..., Any]:
    """Return a function of SciPy, which is imported when it is used: that takes longer than importing Wengert."""

    def evaluate(*operands: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*operands)

    return evaluate


def table(*rows: Opcode) -> dict[str, Opcode]:
    """Return rows by name."""
    return {row.name: row for row in rows}


OPCODES = table(
    # what reads memory, numbers of the row and places
    Opcode("load", 0, gives="stated", cost=0),
    Opcode("gather", 1, gives="stated", cost=8),
    Opcode("constant", 0, gives="stated", cost=0),
    Opcode("number", 0, gives="stated", cost=0),
    Opcode("index", 0, gives="stated"),
    Opcode("pick", 2),
    # arithmetic
    Opcode("add", 2, np.add),
    Opcode("subtract", 2, np.subtract),
    Opcode("multiply", 2, np.multiply),
    Opcode("product", 2, operator.mul),  # in a sum of products, as of matrices: rounded with the sum, or by itself
    Opcode("divide", 2, np.divide, cost=6),
    Opcode("negative", 1, np.negative),
    Opcode("absolute", 1, np.absolute),
    Opcode("sqrt", 1, np.sqrt, cost=12),
    Opcode("maximum", 2, np.maximum, cost=3),
    Opcode("minimum", 2, np.minimum, cost=3),
    Opcode("floor", 1, np.floor),
    Opcode("ceil", 1, np.ceil),
    Opcode("rint", 1, np.rint),
    Opcode("trunc", 1, np.trunc),
    Opcode("copysign", 2, np.copysign),
    Opcode("floor_divide", 2, np.floor_divide, cost=40),  # of whole numbers; by zero it is zero
    Opcode("long_remainder", 2, np.fmod, cost=90),  # of any two floating-point numbers
    # comparisons and logic; NaN is unequal to everything
    Opcode("equal", 2, np.equal, "bool"),
    Opcode("not_equal", 2, np.not_equal, "bool"),
    Opcode("less", 2, np.less, "bool"),
    Opcode("less_equal", 2, np.less_equal, "bool"),
    Opcode("greater", 2, np.greater, "bool"),
    Opcode("greater_equal", 2, np.greater_equal, "bool"),
    Opcode("and", 2, np.bitwise_and),
    Opcode("or", 2, np.bitwise_or),
    Opcode("xor", 2, np.bitwise_xor),
    Opcode("not", 1, np.invert),
    Opcode("select", 3, np.where),
    Opcode("guarded", 2, fused.guarded, cost=2),
    Opcode("convert", 1, gives="stated"),
    # what expressions of functions are made of besides; `argument` is what a function is of
    Opcode("argument", 0, gives="stated", cost=0),
    Opcode("fma", 3, fused.fused),
    Opcode("bitcast", 1, gives="stated"),
    Opcode("entry", 1, gives="stated", cost=8),  # of a table of constants, named by the operation's buffer
    Opcode("shift_left", 2, np.left_shift),
    Opcode("shift_right", 2, np.right_shift),
    # as AVX-512 has them: getexp, getmant of |x| from 3/4 to 3/2, scalef
    Opcode("exponent", 1, fused.exponent, cost=2),
    Opcode("fraction", 1, fused.fraction, cost=2),
    Opcode("scale", 2, fused.scaled, cost=2),
    # functions: expressions of the others, of which functions.py knows what they are
    Opcode("exp", 1, np.exp, cost=20),
    Opcode("exp2", 1, np.exp2, cost=20),
    Opcode("expm1", 1, np.expm1, cost=30),
    Opcode("log", 1, np.log, cost=25),
    Opcode("log2", 1, np.log2, cost=25),
    Opcode("log10", 1, np.log10, cost=25),
    Opcode("log1p", 1, np.log1p, cost=30),
    Opcode("sin", 1, np.sin, cost=30),
    Opcode("cos", 1, np.cos, cost=30),
    Opcode("tan", 1, np.tan, cost=40),
    Opcode("arcsin", 1, np.arcsin, cost=30),
    Opcode("arccos", 1, np.arccos, cost=30),
    Opcode("arctan", 1, np.arctan, cost=30),
    Opcode("arctan2", 2, np.arctan2, cost=40),
    Opcode("sinh", 1, np.sinh, cost=30),
    Opcode("cosh", 1, np.cosh, cost=30),
    Opcode("tanh", 1, np.tanh, cost=30),
    Opcode("tanh_derivative", 2, fused.tanh_derivative, cost=5),
    Opcode("arcsinh", 1, np.arcsinh, cost=40),
    Opcode("arccosh", 1, np.arccosh, cost=40),
    Opcode("arctanh", 1, np.arctanh, cost=40),
    Opcode("power", 2, np.power, cost=90),
    Opcode("cbrt", 1, np.cbrt, cost=45),
    Opcode("fmod", 2, np.fmod, cost=15),
    Opcode("frexp_mantissa", 1, fused.mantissa, cost=5),
    Opcode("frexp_exponent", 1, fused.power, cost=5),
    Opcode("ldexp", 2, fused.scaled, cost=5),
    Opcode("nextafter", 2, np.nextafter, cost=5),
    Opcode("spacing", 1, np.spacing, cost=5),
    Opcode("hypot", 2, np.hypot, cost=20),
    Opcode("expit", 1, special("expit"), cost=30),
    Opcode("log_expit", 1, special("log_expit"), cost=55),
    Opcode("erf", 1, special("erf"), cost=55),
    Opcode("erfc", 1, special("erfc"), cost=90),
    Opcode("lgamma", 1, special("gammaln"), cost=110),
    Opcode("digamma", 1, special("digamma"), cost=90),
)
"""Every opcode by name; the names are NumPy's where it has the function."""
