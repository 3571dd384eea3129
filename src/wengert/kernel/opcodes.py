"""Opcodes: one row for each scalar operation of a kernel, with what NumPy computes for it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from wengert.kernel import fused
from wengert.support.records import FieldRecord

Gives = Literal["operand", "bool", "stated"]
"""The dtype of a result: that of the last operand, bool, or what the operation states."""
Takes = Literal["numbers", "bits", "any"]
"""The dtypes of operands: all but bool, all but floating-point ones, or all."""


class Expansion(FieldRecord):
    """What is an expression of other opcodes: our own mathematics.

    Errors are the greatest, with and without fma, in units in the last place: those of the exact result, at least of
    the smallest number. It is that of the value at 1 - x, if that is greater, for lgamma and digamma of x < 0, which
    have zeros between their poles; at least that of 1/4 for digamma; that of the derivative of tanh is of its formula
    by tanh(x), where this is used, for a value without error. tools/accuracy.py measures them.

    Attributes:
        body: what writes it, a function of a module of `wengert.kernel.functions`; several functions may share it.
        double: the errors of double precision.
        single: those of single precision.
        result: which of the results of the body this is.
    """

    body: str
    double: tuple[float, float]
    single: tuple[float, float]
    result: int = 0


class Opcode(FieldRecord):
    """A scalar operation.

    Attributes:
        name: as kernels write it.
        arity: how many operands it takes.
        evaluate: its values in NumPy; None for those that read memory or places, which the evaluation knows.
        gives: the dtype of its result.
        cost: processor cycles for a vector, about; what costs more than a load is not computed twice.
        function: how it is made of others, if the processor does not have it.
        never_negative: whether no result is negative.
        takes: the dtypes of its operands.
        combines: whether reductions may combine by it, since it is associative.
        moves: whether it moves or chooses numbers, and computes none.
    """

    name: str
    arity: int
    evaluate: Callable[..., Any] | None = None
    gives: Gives = "operand"
    cost: int = 1
    function: Expansion | None = None
    never_negative: bool = False
    takes: Takes = "numbers"
    combines: bool = False
    moves: bool = False


def special(name: str) -> Callable[..., Any]:
    """Return a function of SciPy, which is imported when it is used: that takes longer than importing Wengert."""

    def evaluate(*operands: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*operands)

    return evaluate


def table(*rows: Opcode) -> dict[str, Opcode]:
    """Return rows by name."""
    return {row.name: row for row in rows}


SEARCHING = frozenset({"search_left", "search_right"})
READING = frozenset({"load", "gather", *SEARCHING})
"""What reads a buffer."""

OPCODES = table(
    # what reads memory, numbers of the row and places
    Opcode("load", 0, gives="stated", cost=0, moves=True),
    Opcode("gather", 1, gives="stated", cost=8, moves=True),
    Opcode("search_left", 1, gives="stated", cost=60, takes="any"),
    Opcode("search_right", 1, gives="stated", cost=60, takes="any"),
    Opcode("constant", 0, gives="stated", cost=0, moves=True),
    Opcode("number", 0, gives="stated", cost=0, moves=True),
    Opcode("index", 0, gives="stated", moves=True),
    Opcode("pick", 2, takes="any", moves=True),
    # arithmetic
    Opcode("add", 2, np.add, combines=True),
    Opcode("subtract", 2, np.subtract),
    Opcode("multiply", 2, np.multiply, combines=True),
    Opcode("product", 2, operator.mul),  # in a sum of products, as of matrices: rounded with the sum, or by itself
    Opcode("divide", 2, np.divide, cost=6),
    Opcode("negative", 1, np.negative),
    Opcode("absolute", 1, np.absolute, never_negative=True),
    Opcode("sqrt", 1, np.sqrt, cost=12, never_negative=True),
    Opcode("maximum", 2, np.maximum, cost=3, combines=True),
    Opcode("minimum", 2, np.minimum, cost=3, combines=True),
    Opcode("floor", 1, np.floor),
    Opcode("ceil", 1, np.ceil),
    Opcode("rint", 1, np.rint),
    Opcode("trunc", 1, np.trunc),
    Opcode("copysign", 2, np.copysign),
    Opcode("floor_divide", 2, np.floor_divide, cost=40),  # of whole numbers; by zero it is zero
    Opcode("long_remainder", 2, np.fmod, cost=90),  # of any two floating-point numbers
    # comparisons and logic; NaN is unequal to everything
    Opcode("equal", 2, np.equal, "bool", takes="any"),
    Opcode("not_equal", 2, np.not_equal, "bool", takes="any"),
    Opcode("less", 2, np.less, "bool"),
    Opcode("less_equal", 2, np.less_equal, "bool"),
    Opcode("greater", 2, np.greater, "bool"),
    Opcode("greater_equal", 2, np.greater_equal, "bool"),
    Opcode("and", 2, np.bitwise_and, takes="bits", combines=True),
    Opcode("or", 2, np.bitwise_or, takes="bits", combines=True),
    Opcode("xor", 2, np.bitwise_xor, takes="bits"),
    Opcode("not", 1, np.invert, takes="bits"),
    Opcode("select", 3, np.where, takes="any", moves=True),
    Opcode("guarded", 2, fused.strong_zero, cost=2),
    Opcode("convert", 1, gives="stated", takes="any", moves=True),
    # what expressions of functions are made of besides; `argument` is what a function is of
    Opcode("argument", 0, gives="stated", cost=0, moves=True),
    Opcode("fma", 3, fused.fma),
    Opcode("bitcast", 1, gives="stated", moves=True),
    Opcode("entry", 1, gives="stated", cost=8, moves=True),  # of a table of constants, named by the operation's buffer
    Opcode("shift_left", 2, np.left_shift),
    Opcode("shift_right", 2, np.right_shift),
    # as AVX-512 has them: getexp, getmant of |x| from 3/4 to 3/2, scalef
    Opcode("exponent", 1, fused.exponent, cost=2),
    Opcode("fraction", 1, fused.fraction, cost=2),
    Opcode("scale", 2, fused.scale_by_power, cost=2),
    # functions
    Opcode(
        "exp", 1, np.exp, cost=20, function=Expansion("exponential.exp", (1.2, 1.2), (1.1, 1.1)), never_negative=True
    ),
    Opcode(
        "exp2", 1, np.exp2, cost=20, function=Expansion("exponential.exp2", (1.3, 1.3), (1.2, 1.2)), never_negative=True
    ),
    Opcode("expm1", 1, np.expm1, cost=30, function=Expansion("exponential.expm1", (1.3, 1.3), (1.2, 1.2))),
    Opcode("log", 1, np.log, cost=25, function=Expansion("logarithm.log", (1.1, 1.1), (1.1, 1.1))),
    Opcode("log2", 1, np.log2, cost=25, function=Expansion("logarithm.log2", (1.3, 1.3), (1.3, 1.3))),
    Opcode("log10", 1, np.log10, cost=25, function=Expansion("logarithm.log10", (1.3, 1.3), (1.3, 1.3))),
    Opcode("log1p", 1, np.log1p, cost=30, function=Expansion("logarithm.log1p", (1.1, 1.1), (1, 1))),
    Opcode("sin", 1, np.sin, cost=30, function=Expansion("trigonometric.sincos", (1.2, 1.5), (1.2, 0.51))),
    Opcode("cos", 1, np.cos, cost=30, function=Expansion("trigonometric.sincos", (1.2, 1.5), (1.2, 0.51), result=1)),
    Opcode("tan", 1, np.tan, cost=40, function=Expansion("trigonometric.tan", (1.8, 2.2), (1.8, 0.51))),
    Opcode("arcsin", 1, np.arcsin, cost=30, function=Expansion("trigonometric.arcsin", (1, 1), (1, 1))),
    Opcode("arccos", 1, np.arccos, cost=30, function=Expansion("trigonometric.arccos", (1, 1), (1, 1))),
    Opcode("arctan", 1, np.arctan, cost=30, function=Expansion("trigonometric.arctan", (2, 2.5), (1.6, 1.6))),
    Opcode("arctan2", 2, np.arctan2, cost=40, function=Expansion("trigonometric.arctan2", (2, 2.5), (1.6, 2))),
    Opcode("sinh", 1, np.sinh, cost=30, function=Expansion("exponential.sinh", (2.5, 2.5), (2.5, 2.5))),
    Opcode(
        "cosh", 1, np.cosh, cost=30, function=Expansion("exponential.cosh", (1.5, 1.5), (1.5, 1.5)), never_negative=True
    ),
    Opcode("tanh", 1, np.tanh, cost=30, function=Expansion("exponential.tanh", (2.7, 2.7), (2.7, 2.7))),
    Opcode(
        "tanh_derivative",
        2,
        fused.tanh_derivative,
        cost=5,
        function=Expansion("exponential.tanh_derivative", (4, 4), (4, 4)),
    ),
    Opcode("arcsinh", 1, np.arcsinh, cost=40, function=Expansion("logarithm.arcsinh", (1.5, 1.5), (1.5, 1.5))),
    Opcode("arccosh", 1, np.arccosh, cost=40, function=Expansion("logarithm.arccosh", (1.5, 1.5), (1.5, 1.5))),
    Opcode("arctanh", 1, np.arctanh, cost=40, function=Expansion("logarithm.arctanh", (1.5, 1.5), (1.5, 1.5))),
    Opcode("power", 2, np.power, cost=90, function=Expansion("powers.power", (1.6, 1.6), (0.51, 0.51))),
    Opcode("cbrt", 1, np.cbrt, cost=45, function=Expansion("powers.cbrt", (0.6, 0.6), (0.6, 0.6))),
    Opcode("fmod", 2, np.fmod, cost=15, function=Expansion("division.fmod", (0, 0), (0, 0))),
    Opcode("frexp_mantissa", 1, fused.mantissa, cost=5, function=Expansion("division.frexp", (0, 0), (0, 0))),
    Opcode("frexp_exponent", 1, fused.power, cost=5, function=Expansion("division.frexp", (0, 0), (0, 0), result=1)),
    Opcode("ldexp", 2, fused.scale_by_power, cost=5, function=Expansion("division.ldexp", (0.5, 0.5), (0.5, 0.5))),
    Opcode("nextafter", 2, np.nextafter, cost=5, function=Expansion("division.nextafter", (0, 0), (0, 0))),
    Opcode("spacing", 1, np.spacing, cost=5, function=Expansion("division.spacing", (0, 0), (0, 0))),
    Opcode("hypot", 2, np.hypot, cost=20, function=Expansion("powers.hypot", (1, 1.3), (1, 1.3)), never_negative=True),
    Opcode(
        "expit",
        1,
        special("expit"),
        cost=30,
        function=Expansion("exponential.expit", (2.5, 2.5), (2.5, 2.5)),
        never_negative=True,
    ),
    Opcode("log_expit", 1, special("log_expit"), cost=55, function=Expansion("logarithm.log_expit", (2, 2), (2, 2))),
    Opcode("erf", 1, special("erf"), cost=55, function=Expansion("special.erf", (2, 2), (2, 2))),
    Opcode(
        "erfc",
        1,
        special("erfc"),
        cost=90,
        function=Expansion("special.erfc", (3.5, 3.5), (0.51, 0.51)),
        never_negative=True,
    ),
    Opcode("lgamma", 1, special("gammaln"), cost=110, function=Expansion("special.lgamma", (4, 4), (0.51, 0.51))),
    Opcode("digamma", 1, special("digamma"), cost=90, function=Expansion("special.digamma", (5, 5), (0.51, 0.51))),
)
"""Every opcode by name; the names are NumPy's where it has the function."""


def evaluate_opcode(name: str, dtype: np.dtype[np.generic], operands: Sequence[Any]) -> Any:
    """Return the values of dtype that an opcode makes of operands.

    Raises:
        TypeError: it reads memory or places, which whoever evaluates knows.
    """
    if name == "convert":
        return operands[0].astype(dtype)
    if name == "bitcast":
        return operands[0].view(dtype)
    compute = OPCODES[name].evaluate
    if compute is None:
        raise TypeError(f"{name} reads memory, which is not known here")
    return compute(*operands)
