"""Parts of floating-point numbers and the fused multiply-add, in NumPy: what some processors have as instructions.

And functions that are opcodes, and none of NumPy's.

The fused multiply-add follows S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms
using rounding to odd, IEEE Transactions on Computers 57 (2008): what is lost in the sum is rounded to odd, so that the
last addition rounds as one that is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

Array = Any  # arrays and scalars of NumPy

SPLITTER = 2.0**27 + 1
SAFE = 2.0**400
"""Between 1 / SAFE**2 and SAFE**2 nothing that is lost is below the smallest number."""


def fma(x: Array, y: Array, z: Array) -> Array:
    """Return x y + z, rounded once."""
    with np.errstate(all="ignore"):
        return fused_single(x, y, z) if np.result_type(x, y, z) == np.float32 else fused_double(x, y, z)


def fused_single(x: Array, y: Array, z: Array) -> Array:
    """Return x y + z of single precision: the product is exact in double precision, where the sum is rounded to odd."""
    product = np.asarray(x, np.float64) * y
    total, lost = two_sum(product, np.asarray(z, np.float64))
    found: Array = np.where(np.isfinite(total), odd(total, lost), total)
    return found.astype(np.float32)[()]


def fused_double(x: Array, y: Array, z: Array) -> Array:
    """Return x y + z of double precision."""
    bounded = np.isfinite(x) & np.isfinite(y)
    product = x * y
    plain = ~bounded | ~np.isfinite(z) | (x == 0) | (y == 0)
    high, low = two_product(x, y)
    first, rest = two_sum(z, low)
    second, lost = two_sum(first, high)
    found = np.where(plain, np.where(bounded & np.isinf(z), z, product + z), second + odd(*two_sum(lost, rest)))
    factors, size, total = np.maximum(np.absolute(x), np.absolute(y)), np.absolute(product), np.absolute(product + z)
    safe = (factors < SAFE) & (size > SAFE**-2) & ((total > SAFE**-2) | (total == 0)) & (np.absolute(z) < SAFE**2)
    return exactly(found, ~(safe | plain), x, y, z)


def exactly(found: Array, unsafe: Array, x: Array, y: Array, z: Array) -> Array:
    """Return what was found, with rational numbers where it is not safe."""
    if not np.any(unsafe):
        return found[()]
    from fractions import Fraction  # which takes as long to load as all opcodes, and is needed for few numbers

    found, unsafe, x, y, z = (np.array(a) for a in np.broadcast_arrays(found, unsafe, x, y, z))
    for place in zip(*np.nonzero(unsafe), strict=True):
        found[place] = nearest_float(Fraction(float(x[place])) * Fraction(float(y[place])) + Fraction(float(z[place])))
    return found[()]


def nearest_float(number: Fraction) -> float:
    """Return the nearest floating-point number."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x + y and what its rounding lost."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x y and what its rounding lost, by halves of the digits."""
    (a, b), (c, d) = halves(x), halves(y)
    product = x * y
    return product, b * d - (((product - a * c) - b * c) - a * d)


def halves(x: Array) -> tuple[Array, Array]:
    """Return two numbers of half the digits whose sum is x."""
    shifted = SPLITTER * x
    high = shifted - (shifted - x)
    return high, x - high


def odd(total: Array, lost: Array) -> Array:
    """Return a sum rounded to odd: of the two neighbours of the exact one, that whose last bit is set."""
    even = np.asarray(total).view(np.int64) & 1 == 0
    return np.where((lost != 0) & even, np.nextafter(total, np.copysign(np.inf, lost)), total)


def strong_zero(x: Array, t: Array) -> Array:
    """Return x, a multiple of t, and 0 where t is 0, even if x is NaN: the strong zero."""
    return np.where(t == 0, x.dtype.type(0), x)[()]


def parts(x: Array) -> tuple[Array, Array]:
    """Return the digits of |x| as a number from 1 to 2, and its power of two."""
    digits, power = np.frexp(np.absolute(x))
    return digits * 2, power - 1


def mantissa(x: Array) -> Array:
    """Return m of x = m 2**n, 1/2 <= |m| < 1, as C's frexp."""
    return np.frexp(x)[0]


def power(x: Array) -> Array:
    """Return n of x = m 2**n, 1/2 <= |m| < 1, as a floating-point number; 0 for zero and what is not finite."""
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(x.dtype)[()]


def exponent(x: Array) -> Array:
    """Return floor(log2 |x|): -inf for zero, inf for infinity."""
    power = parts(x)[1].astype(x.dtype)
    return np.where(x == 0, x.dtype.type(-np.inf), np.where(np.isfinite(x), power, np.absolute(x)))[()]


def fraction(x: Array) -> Array:
    """Return the digits of x as a number from 3/4 to 3/2: 1 for zero and infinity, NaN for negative numbers."""
    digits = parts(x)[0]
    digits = np.where(digits >= 1.5, digits / 2, digits)
    one = (x == 0) | np.isinf(x)
    return np.where(x < 0, x.dtype.type(np.nan), np.where(one, x.dtype.type(1), digits))[()]


def scale_by_power(x: Array, n: Array) -> Array:
    """Return x 2**n, rounded once, for whole numbers n that are floating-point ones."""
    with np.errstate(all="ignore"):
        limited = np.clip(np.nan_to_num(n), -5000, 5000)
        return np.where(np.isnan(n), n, np.ldexp(x, limited.astype(np.int32)))[()]


def tanh_derivative(y: Array, x: Array) -> Array:
    """Return 1 / cosh(x)**2 for the hyperbolic tangent y: 1 - y**2, unless that has too few digits."""
    with np.errstate(all="ignore"):
        power, size = np.exp(-2 * np.absolute(x)), np.absolute(y)
        slope = (1 - size) * (1 + size)
        least = 2.0**-8 if slope.dtype == np.float32 else 2.0**-9
        return np.where(slope < least, 4 * power / (1 + power) / (1 + power), slope)[()]
