"""Comparisons, and logic of truths and bits: what has no derivative."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.primitives.declare import constant
from wengert.primitives import rewrites

BOOL = np.dtype(bool)


# Comparisons

equal = constant(
    "equal",
    np.equal,
    parts=lambda x, y: (x[0] == y[0]) & (x[1] == y[1]),
    operator=operator.eq,
    cheap=True,
    rewrites=(rewrites.compared_with_itself(equal=True),),
)
not_equal = constant(
    "not_equal",
    np.not_equal,
    parts=lambda x, y: (x[0] != y[0]) | (x[1] != y[1]),
    operator=operator.ne,
    cheap=True,
    rewrites=(rewrites.compared_with_itself(equal=False),),
)
less = constant("less", np.less, operator=operator.lt, cheap=True)
less_equal = constant("less_equal", np.less_equal, operator=operator.le, cheap=True)
greater = constant("greater", np.greater, operator=operator.gt, cheap=True)
greater_equal = constant("greater_equal", np.greater_equal, operator=operator.ge, cheap=True)


# Logic, of truths and of bits

logical_not = constant(
    "logical_not", np.logical_not, scalar=lambda x: x == 0 if x.dtype.kind != "b" else ~x, cheap=True
)
logical_and = constant(
    "logical_and",
    np.logical_and,
    scalar=lambda x, y: x.astype(BOOL) & y.astype(BOOL),
    cheap=True,
    rewrites=(rewrites.logic(conjunction=True),),
)
logical_or = constant(
    "logical_or",
    np.logical_or,
    scalar=lambda x, y: x.astype(BOOL) | y.astype(BOOL),
    cheap=True,
    rewrites=(rewrites.logic(conjunction=False),),
)
logical_xor = constant("logical_xor", np.logical_xor, scalar=lambda x, y: x.astype(BOOL) ^ y.astype(BOOL))
bitwise_and = constant(
    "bitwise_and",
    np.bitwise_and,
    operator=operator.and_,
    whole_bits=62,
    cheap=True,
    rewrites=(rewrites.logic(conjunction=True),),
)
bitwise_or = constant(
    "bitwise_or",
    np.bitwise_or,
    operator=operator.or_,
    whole_bits=62,
    cheap=True,
    rewrites=(rewrites.logic(conjunction=False),),
)
bitwise_xor = constant("bitwise_xor", np.bitwise_xor, operator=operator.xor, whole_bits=62)
bitwise_count = constant("bitwise_count", np.bitwise_count)


def invert_number(x: Any) -> Any:
    """Return ~x of Python's numbers, of a bool, too, as long as Python only warns of that."""
    return ~(int(x) if type(x) is bool else x)


invert = constant(
    "invert",
    np.invert,
    operator=invert_number,
    counts=True,
    whole_bits=62,
    cheap=True,
    rewrites=(rewrites.drop_pair,),
)


def shifted_at(shift: np.ufunc) -> Callable[..., Any]:
    """Return a shift of bits, which leaves those of the sign where it is by more than there are."""

    def expression(x: Any, count: Any) -> Any:
        bits = 8 * x.dtype.itemsize
        fits = count < bits if x.dtype.kind == "u" else (count < bits) & (count >= 0)
        if shift is np.right_shift and x.dtype.kind == "i":
            return shift(x, np.where(fits, count, bits - 1))
        return np.where(fits, shift(x, np.where(fits, count, 0)), 0)

    return expression


def bits_to_shift(x: Any, count: Any) -> int | tuple[tuple[int, int], ...]:
    """Return what whole numbers of Python's may be to be shifted to the left: one of them may be known."""
    if type(count) is int:
        return 62 - count if 0 <= count <= 32 else 0
    bits = x.bit_length() if type(x) is int else 31
    return ((-(1 << bits), 1 << bits), (0, 64 - bits)) if bits < 64 else 0


left_shift = constant(
    "left_shift",
    np.left_shift,
    scalar=shifted_at(np.left_shift),
    operator=operator.lshift,
    counts=True,
    whole_bits=bits_to_shift,
)
right_shift = constant(
    "right_shift",
    np.right_shift,
    scalar=shifted_at(np.right_shift),
    operator=operator.rshift,
    counts=True,
    whole_bits=lambda _x, _count: ((-(1 << 62), 1 << 62), (0, 1 << 62)),
)
