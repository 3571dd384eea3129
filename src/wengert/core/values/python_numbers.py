"""Python's own arithmetic: what operators give for Python numbers alone.

A Tensor may stand for a Python number, as an array of no axes does not: its dtype gives way to that of arrays (NEP
50). Such a Tensor holds the number itself, so that NumPy is asked with it wherever it meets an array. An operator
between Python numbers gives one again; a function of NumPy gives a NumPy scalar.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from wengert.core.values.aval import NUMBERS, strong
from wengert.errors import RangeError

LARGEST = 2**63
"""The least integer that has no room in 64 bits."""


def calculate(name: str, compute: Callable[..., Any], evaluate: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Return what an operator gives for Python numbers.

    Floats calculate as NumPy's do where Python would raise or turn complex: 1.0 / 0.0 is infinite, in every mode.

    Args:
        name: the operation, for errors.
        compute: Python's operator.
        evaluate: NumPy's function.
        values: the numbers.

    Raises:
        RangeError: an integer has more than 64 bits.
        ZeroDivisionError: an integer is divided by zero.

    >>> import numpy as np
    >>> calculate("divide", operator.truediv, np.divide, (1, 4)), calculate("add", operator.add, np.add, (2, True))
    (0.25, 3)
    """
    whole = all(type(x) is int or type(x) is bool for x in values)
    try:
        result = compute(*values)
    except ArithmeticError:
        if whole:
            raise
        return evaluate(*map(strong, values)).item()
    kind = type(result)
    if kind is complex and complex not in map(type, values):
        return evaluate(*map(strong, values)).item()
    if kind is int and not -LARGEST <= result < LARGEST:
        given = f"an integer of {result.bit_length()} bits"
        needed = "at most 63 and a sign are needed where values are traced or differentiated"
        raise RangeError(name, given, needed, "Use floats, or calculate it beforehand")
    if whole and kind is float and compute is operator.pow:
        given = f"the integer {values[0]} to the power {values[1]}"
        needed = "an exponent from 0 is needed between integers"
        raise RangeError(name, given, needed, f"Write {float(values[0])} for the base")
    return result if kind in NUMBERS else evaluate(*map(strong, values))
