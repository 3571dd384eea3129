"""Functions with kinks and jumps, where the derivative is a choice (see "Kinks and ties" in docs/choices.md)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert.core.memory.masked_selection import select_where as select
from wengert.core.primitives.declare import constant, elementwise, opaque
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.tensor import unwrap_plain
from wengert.primitives import complex_parts
from wengert.primitives.angles import length
from wengert.primitives.floating_point import is_nan

HALVES = "Where both are equal, each gets half."
AT_ZERO = "At 0 the derivative is 0."


# Absolute values


def absolute_rule(t: Any, out: Any, x: Any) -> Any:
    """Differentiate |x|: sign(x) t, for complex x the real part of conj(x) t / |x|; 0 at 0."""
    if x.dtype.kind == "c":
        return np.conjugate(x) * (t / np.where(out == 0, 1.0, out))
    return t * np.sign(x)


square_of_absolute = Elementwise(
    "square of absolute",
    lambda x: np.square(np.absolute(x)),
    d=lambda t, _out, x: t * (2 * (np.conjugate(x) if x.dtype.kind == "c" else x)),
)
ROOT: Any = {"square": lambda: square_of_absolute, "degree": 1}
absolute = elementwise(
    "absolute",
    np.absolute,
    d=absolute_rule,
    not_negative=(),
    **ROOT,
    parts=length,
    operator=operator.abs,
    counts=True,
    whole_bits=62,
    kink=AT_ZERO,
)
# of numbers alone, which Python's operator measures to other bits
complex_size = elementwise(
    "complex_size",
    operator.abs,
    d=absolute_rule,
    **ROOT,
    scalar=np.absolute,
    parts=length,
    operator=operator.abs,
    counts=True,
)
fabs = elementwise("fabs", np.fabs, d=lambda t, _out, x: t * np.sign(x), **ROOT, scalar=np.absolute, kink=AT_ZERO)


def softsign_rule(t: Any, _out: Any, x: Any) -> Any:
    """Differentiate x / (1 + |x|): 1 / (1 + |x|)^2, in two steps, for the square overflows."""
    size = 1 + np.abs(x)
    return t / size / size


softsign = elementwise(
    "softsign", lambda x: x / (1 + np.abs(x)), d=softsign_rule, scalar=lambda x: x / (1 + np.absolute(x))
)


# The larger and the smaller of two


def split_at_ties(t: Any, chosen: Any, tied: Any) -> Any:
    """Return t where an operand was chosen, half of it where the two are tied, and 0 elsewhere."""
    if type(tied) is np.bool_ and type(t) is np.float64:
        return 0.5 * t if tied else t if chosen else np.float64(0)
    found, known = select(chosen, t), tied if type(tied) is np.ndarray else unwrap_plain(tied)  # Tensors if large
    if type(known) is np.ndarray and not np.count_nonzero(known):
        return found
    return np.where(tied, 0.5 * t, found)


maximum = elementwise(
    "maximum",
    np.maximum,
    d=(lambda t, _out, x, y: split_at_ties(t, x > y, x == y), lambda t, _out, x, y: split_at_ties(t, y > x, x == y)),
    passes=True,
    joins=True,
    not_negative=(0, 1),
    whole_bits=62,
    kink=HALVES,
)
minimum = elementwise(
    "minimum",
    np.minimum,
    d=(lambda t, _out, x, y: split_at_ties(t, x < y, x == y), lambda t, _out, x, y: split_at_ties(t, y < x, x == y)),
    passes=True,
    joins=True,
    whole_bits=62,
    kink=HALVES,
)
fmax = elementwise(
    "fmax",
    np.fmax,
    d=(
        lambda t, _out, x, y: split_at_ties(t, (x > y) | np.isnan(y), x == y),
        lambda t, _out, x, y: split_at_ties(t, (y > x) | np.isnan(x), x == y),
    ),
    passes=True,
    joins=True,
    masks=True,
    scalar=lambda x, y: np.where(is_nan(x), y, np.where(is_nan(y), x, np.maximum(x, y))),
    kink=HALVES,
)
fmin = elementwise(
    "fmin",
    np.fmin,
    d=(
        lambda t, _out, x, y: split_at_ties(t, (x < y) | np.isnan(y), x == y),
        lambda t, _out, x, y: split_at_ties(t, (y < x) | np.isnan(x), x == y),
    ),
    passes=True,
    joins=True,
    masks=True,
    scalar=lambda x, y: np.where(is_nan(x), y, np.where(is_nan(y), x, np.minimum(x, y))),
    kink=HALVES,
)


# Signs


def sign_at(x: Any) -> Any:
    """Return -1, 0 or 1, and NaN for NaN."""
    negative = np.where(x < 0, -1, np.where(x == 0, 0, x)) if x.dtype.kind in "fi" else np.full_like(x, 0)
    return np.where(x > 0, 1, negative)


def heaviside_at(x: Any, at_zero: Any) -> Any:
    """Return 0 below zero, 1 above it, and something else there."""
    return np.where(x < 0, 0, np.where(x > 0, 1, np.where(x == 0, at_zero, x)))


def direction_vjp(ct: Any, out: Any, z: Any) -> Any:
    """Differentiate s = z / |z|: |z| ds = dz - s Re(conj(s) dz); 0 at 0."""
    size = np.abs(z)
    there = size != 0
    return np.where(there, (ct - np.conjugate(out) * (out * ct).real) / np.where(there, size, 1.0), 0.0)


sign = constant(
    "sign",
    np.sign,
    scalar=sign_at,
    parts=complex_parts.direction,
    kink="Of real numbers the derivative is zero, of complex ones that of x / |x|, and 0 at 0.",
)
direction = opaque("direction", np.sign, vjp=direction_vjp, parts=complex_parts.direction)
heaviside = elementwise(
    "heaviside", np.heaviside, d=(None, lambda t, _out, x, _y: np.where(x == 0, t, 0)), scalar=heaviside_at
)
