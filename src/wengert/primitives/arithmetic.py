"""Sums, products, quotients and remainders: NumPy's ufuncs and Python's operators."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert.core.primitives.declare import constant, elementwise
from wengert.primitives import complex_parts, rewrites

AT_JUMPS = "At a jump the derivative is that beside it."


def relay(t: Any, _out: Any, _x: Any, _y: Any) -> Any:
    """Pass on what comes: the rule of a term in a sum."""
    return t


add = elementwise(
    "add",
    np.add,
    d=(relay, relay),
    passes=True,
    parts="each",
    linear_in=((0, 1),),
    not_negative=(0, 1),
    operator=operator.add,
    counts=True,
    whole_bits=62,
    cheap=True,
    rewrites=(rewrites.neutral_term,),
)
subtract = elementwise(
    "subtract",
    np.subtract,
    d=(relay, lambda t, _out, _x, _y: -t),
    passes=True,
    parts="each",
    linear_in=((0, 1),),
    operator=operator.sub,
    counts=True,
    whole_bits=62,
    cheap=True,
    rewrites=(rewrites.neutral_subtrahend,),
)
multiply = elementwise(
    "multiply",
    np.multiply,
    d=(lambda t, _out, _x, y: t * y, lambda t, _out, x, _y: t * x),
    overwrite=np.multiply,
    scales=(0, 1),
    parts=complex_parts.multiply_pairs,
    linear_in=((0,), (1,)),
    not_negative=(0, 1),
    operator=operator.mul,
    counts=True,
    whole_bits=31,
    cheap=True,
    rewrites=(
        rewrites.neutral_factor,
        rewrites.negated_factor,
    ),
)
# of numbers alone, which Python's operator multiplies to other bits than NumPy's ufunc
complex_product = elementwise(
    "complex_product",
    operator.mul,
    d=multiply.rules,
    parts=complex_parts.multiply_pairs,
    linear_in=((0,), (1,)),
    operator=operator.mul,
    counts=True,
)
divide = elementwise(
    "divide",
    np.divide,
    d=(lambda t, _out, _x, y: t / y, lambda t, out, _x, y: -(t * out) / y),
    singular=True,
    scales=(0,),
    parts=complex_parts.divide_pairs,
    linear_in=((0,),),
    not_negative=(0, 1),
    operator=operator.truediv,
    counts=True,
    cheap=True,
    rewrites=(
        rewrites.neutral_divisor,
        rewrites.negated_factor,
    ),
)
negative = elementwise(
    "negative",
    np.negative,
    d=lambda t, _out, _x: -t,
    passes=True,
    scales=(0,),
    parts="each",
    linear_in=((0,),),
    operator=operator.neg,
    counts=True,
    whole_bits=62,
    cheap=True,
    rewrites=(rewrites.drop_pair,),
)
positive = elementwise(
    "positive",
    np.positive,
    d=lambda t, _out, _x: t,
    passes=True,
    scalar="copy",
    parts="each",
    linear_in=((0,),),
    operator=operator.pos,
    counts=True,
    rewrites=(rewrites.drop_identity,),
)
reciprocal = elementwise(
    "reciprocal",
    np.reciprocal,
    d=lambda t, out, x: -(t * out) / x,
    singular=True,
    scalar=lambda x: 1 / x,
    parts=complex_parts.reciprocal,
)
square = elementwise(
    "square",
    np.square,
    d=lambda t, _out, x: t * (2 * x),
    raises=True,
    scalar=lambda x: x * x,
    parts=lambda x: complex_parts.multiply_pairs(x, x),
    not_negative=(),
    cheap=True,
)
conjugate = elementwise(
    "conjugate",
    np.conjugate,
    d=lambda t, _out, _x: np.conjugate(t),
    scalar="copy",
    parts=lambda x: (x[0], -x[1]),
    linear_in=((0,),),
    cheap=True,
    rewrites=(
        rewrites.drop_identity_of_reals,
        rewrites.drop_pair,
    ),
)


# Division


def remainder_at(x: Any, y: Any) -> Any:
    """Return what is left of x after dividing by y, with the sign of y."""
    if x.dtype.kind != "f":
        return np.where(y == 0, 0, x - np.floor_divide(x, y) * y)
    rest = np.fmod(x, y)
    other = (rest < 0) ^ (y < 0)
    return np.where(rest == 0, np.copysign(0, y), np.where(other, rest + y, rest))


def fmod_at(x: Any, y: Any) -> Any:
    """Return what is left of x after dividing by y, with the sign of x."""
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    rest = remainder_at(x, y)
    if x.dtype.kind == "u":
        return rest
    other = (x < 0) ^ (y < 0)
    return np.where(other & (rest != 0), rest - y, rest)


def floor_divide_at(x: Any, y: Any) -> Any:
    """Return how often y fits into x, rounded down; of floats from the remainder, as NumPy does."""
    if x.dtype.kind != "f":
        return np.floor_divide(x, y)
    rest = np.fmod(x, y)
    other = ((rest < 0) ^ (y < 0)) & (rest != 0)
    quotient = (x - rest) / y
    quotient = np.where(other, quotient - 1, quotient)
    down = np.floor(quotient)
    nearest = np.where(quotient - down > 0.5, down + 1, down)
    plain = x / y
    found = np.where(quotient == 0, np.copysign(0, plain), nearest)
    return np.where(y == 0, plain, found)


remainder = elementwise(
    "remainder",
    np.remainder,
    d=(lambda t, _out, _x, _y: t, lambda t, _out, x, y: -t * np.floor(np.divide(x, y))),
    scalar=remainder_at,
    cost=40,
    operator=operator.mod,
    counts=True,
    whole_bits=62,
    kink=AT_JUMPS,
)
fmod = elementwise(
    "fmod",
    np.fmod,
    d=(lambda t, _out, _x, _y: t, lambda t, _out, x, y: -t * np.trunc(x / y)),
    scalar=fmod_at,
    cost=40,
    kink=AT_JUMPS,
)
floor_divide = constant(
    "floor_divide", np.floor_divide, scalar=floor_divide_at, operator=operator.floordiv, counts=True, whole_bits=62
)
gcd = constant("gcd", np.gcd)
lcm = constant("lcm", np.lcm)
