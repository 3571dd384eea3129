"""Functions of complex numbers in terms of their parts, which are scalars: with the branches and special values of C.

Products, quotients and what NumPy computes itself are its own formulas; the others are those of W.
Kahan, Branch cuts for complex elementary functions, in The state of the art in numerical analysis (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.primitives.angles import length
from wengert.primitives.floating_point import LEAST, has_infinity, has_nan, is_finite, is_infinite

Parts = tuple[Any, Any]
MOST_PRODUCTS = 100
"""Powers up to which NumPy multiplies."""


def multiply_pairs(x: Parts, y: Parts) -> Parts:
    """Return a product as NumPy computes it."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def divide_pairs(x: Parts, y: Parts) -> Parts:
    """Return a quotient as NumPy computes it: Smith, Algorithm 116: Complex division, CACM 5 (1962) 435."""
    (a, b), (c, d) = x, y
    wide = np.absolute(c) >= np.absolute(d)
    zero = (c == 0) & (d == 0)
    large: Any = np.where(wide, c, d)
    small: Any = np.where(wide, d, c)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = np.where(wide, a + b * ratio, a * ratio + b) * scale
    imaginary = np.where(wide, b - a * ratio, b * ratio - a) * scale
    size = np.absolute(c)
    return np.where(zero, a / size, real), np.where(zero, b / size, imaginary)


def exponential(x: Parts) -> Parts:
    """Return exp(a) (cos b + i sin b); in two factors, the first of which does not overflow before the product does."""
    half = np.exp(x[0] * 0.5)
    plain, gone = x[1] == 0, (x[0] == -math.inf) & ~is_finite(x[1])
    real = np.where(plain, np.exp(x[0]), (half * np.cos(x[1])) * half)
    imaginary = np.where(plain, x[1], (half * np.sin(x[1])) * half)
    real = np.where((x[0] == math.inf) & ~is_finite(x[1]), math.inf, real)
    return np.where(gone, 0, real), np.where(gone, 0, imaginary)


def root(x: Parts) -> Parts:
    """Return the square root with a real part that is not negative, at a scale where nothing overflows or is lost."""
    limits = np.finfo(x[0].dtype)
    size = np.maximum(*[np.absolute(part) for part in x])
    large, small = size > float(limits.max) / 4, size < float(limits.smallest_normal) * 4
    one = np.full_like(x[0], 1)
    factor, back = (np.where(large, u, np.where(small, v, one)) for u, v in ((0.0625, 2.0**54), (4.0, 2.0**-27)))
    a, b = x[0] * factor, x[1] * factor
    half = np.sqrt((np.absolute(a) + length((a, b))) * 0.5)
    other = np.absolute(b) / (half * 2)
    right = a >= 0
    real, imaginary = (np.where(right, u, v) * back for u, v in ((half, other), (other, half)))
    real, imaginary = (np.where(size == 0, 0, part) for part in (real, imaginary))
    flat = is_infinite(x[0]) & (np.absolute(x[1]) < math.inf)  # along the real axis
    real = np.where(flat, np.where(right, x[0], 0), real)
    imaginary = np.where(flat, np.where(right, 0, -x[0]), imaginary)
    lost = (x[0] == -math.inf) & np.isnan(x[1])
    real, imaginary = np.where(lost, math.nan, real), np.where(lost, math.inf, imaginary)
    real = np.where(x[0] == math.inf, math.inf, real)
    tall = is_infinite(x[1])
    return np.where(tall, math.inf, real), np.copysign(np.where(tall, math.inf, imaginary), x[1])


def logarithm(x: Parts) -> Parts:
    """Return (log |z|, arg z), next to the unit circle from how far z is from it."""
    limits = np.finfo(x[0].dtype)
    sizes = [np.absolute(part) for part in x]
    most, least = np.maximum(*sizes), np.minimum(*sizes)
    near = (most > 0.5) & (most < 1.5)
    excess = (most - 1) * (most + 1) + least * least
    small, large = most < float(limits.smallest_normal) * 2.0**60, most > float(limits.max) / 4
    one = np.full_like(most, 1)
    scale, lost = (
        np.where(small, u, np.where(large, v, one * w))
        for u, v, w in ((2.0**100, 0.5, 1.0), (100 * math.log(2), -math.log(2), 0.0))
    )
    far = np.log(length((most * scale, least * scale))) - lost
    size = np.where(near, np.log1p(excess) * 0.5, far)
    return np.where(has_infinity(x), math.inf, size), np.arctan2(x[1], x[0])


def scaled_logarithm(factor: float) -> Callable[[Parts], Parts]:
    """Return the logarithm to another base, as NumPy computes it."""

    def expression(x: Parts) -> Parts:
        real, imaginary = logarithm(x)
        return real * factor, imaginary * factor

    return expression


def logarithm_from_one(x: Parts) -> Parts:
    """Return log(1 + z) as NumPy computes it."""
    more = x[0] + 1
    return np.log(length((more, x[1]))), np.arctan2(x[1], more)


def exponential_less_one(x: Parts) -> Parts:
    """Return exp(z) - 1 as NumPy computes it."""
    half = np.sin(x[1] * 0.5)
    real = np.expm1(x[0]) * np.cos(x[1]) - 2 * half * half
    return real, np.exp(x[0]) * np.sin(x[1])


def hyperbolic(even: bool) -> Callable[[Parts], Parts]:
    """Return cosh (even) or sinh: products of real ones, in two factors where the first of them would overflow."""

    def expression(x: Parts) -> Parts:
        (a, b), size = x, np.absolute(x[0])
        far = (size > (700.0 if a.dtype.itemsize == 8 else 88.0)) & (size < math.inf)
        half = np.exp(size * 0.5)
        cosh, sinh = np.cosh(a), np.sinh(a)
        cos, sin = np.cos(b), np.sin(b)
        turn = np.copysign(np.full_like(a, 1), a)
        first, second = (cosh, sinh) if even else (sinh, cosh)
        real = np.where(far, half * (0.5 * (cos if even else cos * turn)) * half, first * cos)
        imaginary = np.where(far, half * (0.5 * (sin * turn if even else sin)) * half, second * sin)
        straight = b * turn if even else b
        wild = ~is_finite(b)
        imaginary = np.where(b == 0, straight, np.where((a == 0) & wild, 0 * turn if even else math.nan, imaginary))
        real = np.where((a == 0) & wild, math.nan if even else a, real)
        real = np.where(is_infinite(a) & wild, math.inf, real)
        return real, imaginary

    return expression


def tangent(x: Parts) -> Parts:
    """Return the hyperbolic tangent."""
    a, b = x
    size = np.absolute(a)
    far = size > (20.0 if a.dtype.itemsize == 8 else 10.0)
    near = np.where(far, 0, a)
    t, s = np.tan(b), np.sinh(near)
    beta, rho = 1 + t * t, np.cosh(near)
    steep = is_infinite(beta)
    below = 1 + beta * s * s
    real = np.where(steep, rho / s, beta * rho * s / below)
    imaginary = np.where(steep, 1 / t, t / below)
    wave = np.exp(-size)
    slope = 4 * np.sin(b) * np.cos(b) * wave * wave
    wild = ~is_finite(b)
    slope = np.where(wild & is_infinite(a), 0, slope)
    limit = np.where(wild & (size < math.inf), math.nan, np.copysign(np.full_like(a, 1), a))
    real = np.where((a == 0) & wild, a, np.where(far, limit, real))
    return real, np.where(b == 0, b, np.where(far, slope, imaginary))


def turn_argument(function: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """Return f(i z) / i for a function f: sin of sinh, arctan of arctanh."""

    def expression(x: Parts) -> Parts:
        real, imaginary = function((-x[1], x[0]))
        return imaginary, -real

    return expression


def sine(x: Parts) -> Parts:
    """Return sin z = sinh(i z) / i; C leaves a sign to the library where neither part tells it."""
    real, imaginary = turn_argument(hyperbolic(even=False))(x)
    return real, np.where(is_infinite(x[1]) & ~is_finite(x[0]), math.inf, imaginary)


def cosine(x: Parts) -> Parts:
    """Return cos z = cosh(i z)."""
    return hyperbolic(even=True)((-x[1], x[0]))


def inverse_cosine(x: Parts) -> Parts:
    """Return arccos."""
    less, more = root((1 - x[0], -x[1])), root((1 + x[0], x[1]))
    angle = 2 * np.arctan2(less[0], more[0])
    size = np.arcsinh(more[0] * less[1] - more[1] * less[0])
    endless = has_infinity(x)
    angle = np.where(endless, np.arctan2(np.absolute(x[1]), x[0]), angle)
    angle = np.where((x[0] == 0) & np.isnan(x[1]), math.pi / 2, angle)
    return angle, np.where(endless, -np.copysign(np.full_like(x[0], math.inf), x[1]), size)


def inverse_sine(x: Parts) -> Parts:
    """Return arcsin."""
    less, more = root((1 - x[0], -x[1])), root((1 + x[0], x[1]))
    angle = np.arctan2(x[0], less[0] * more[0] - less[1] * more[1])
    size = np.arcsinh(less[0] * more[1] - less[1] * more[0])
    endless = has_infinity(x)
    angle = np.where(endless, np.arctan2(x[0], np.absolute(x[1])), angle)
    angle = np.where((x[0] == 0) & np.isnan(x[1]), x[0], angle)
    return angle, np.where(endless, np.copysign(np.full_like(x[0], math.inf), x[1]), size)


def inverse_cosh(x: Parts) -> Parts:
    """Return arccosh."""
    less, more = root((x[0] - 1, x[1])), root((x[0] + 1, x[1]))
    size = np.arcsinh(less[0] * more[0] + less[1] * more[1])
    angle = 2 * np.arctan2(less[1], more[0])
    endless = has_infinity(x)
    angle = np.where(endless, np.arctan2(x[1], x[0]), angle)
    angle = np.where((x[0] == 0) & np.isnan(x[1]), math.pi / 2, angle)
    return np.where(endless, math.inf, size), angle


def inverse_tangent(x: Parts) -> Parts:
    """Return arctanh."""
    a, b = np.absolute(x[0]), np.absolute(x[1])
    limit = math.sqrt(float(np.finfo(a.dtype).max)) / 4
    far = (a > limit) | (b > limit)
    u, v = np.where(far, 1, a), np.where(far, 1, b)
    apart = (1 - u) * (1 - u) + v * v
    size = np.log1p(4 * u / apart) * 0.25
    close = apart < float(np.finfo(a.dtype).smallest_normal) * 2.0**60  # to 1
    size = np.where(close, (math.log(2) - np.log(length((1 - u, v)))) * 0.5, size)
    angle = np.arctan2(2 * v, (1 - u) * (1 + u) - v * v) * 0.5
    ratio = np.minimum(a, b) / np.maximum(a, b)
    distant = (np.where(a > b, 1, ratio) / np.maximum(a, b)) / (1 + ratio * ratio)
    distant = np.where(is_infinite(a) | is_infinite(b), 0, distant)
    there = far & (b == b) & ((a == a) | is_infinite(b))
    real, imaginary = np.where(far, distant, size), np.where(there, math.pi / 2, angle + 0 * (a + b))
    real = np.where((a == 0) & np.isnan(b), 0, real)
    return np.copysign(real, x[0]), np.copysign(imaginary, x[1])


def reciprocal(x: Parts) -> Parts:
    """Return 1 / z as NumPy computes its function of that name."""
    (a, b), one = x, np.full_like(x[0], 1)
    wide = np.absolute(b) <= np.absolute(a)
    ratio = np.where(wide, b / a, a / b)
    scale = np.where(wide, a + b * ratio, a * ratio + b)
    return np.where(wide, one, ratio) / scale, -(np.where(wide, ratio, one) / scale)


def invert_pair(x: Parts) -> Parts:
    """Return 1 / z."""
    one = np.full_like(x[0], 1)
    return divide_pairs((one, np.full_like(x[0], 0)), x)


def direction(x: Parts) -> Parts:
    """Return z / |z|, and 0 for 0, as NumPy's sign."""
    size = length(x)
    none, endless = size == 0, size == math.inf
    both = is_infinite(x[0]) & is_infinite(x[1])
    found = []
    for part in x:
        limit = np.where(is_infinite(part), np.copysign(np.full_like(part, 1), part), 0)
        found.append(np.where(both, math.nan, np.where(endless, limit, np.where(none, 0, part / size))))
    return found[0], found[1]


def guard_pair(x: Parts, r: Parts, t: Parts, *, masked: bool = False, multiple: bool = True) -> Parts:
    """Return x, and 0 where r is NaN although t is 0; at `masked` only sweeps look, at `multiple` kernels of reals."""
    none = (has_nan(r)) & ((t[0] == 0) & (t[1] == 0))
    return np.where(none, 0, x[0]), np.where(none, 0, x[1])


def sine_slope(x: Parts) -> Parts:
    """Return (1 - z^2)^(-1/2)."""
    return invert_pair(multiply_pairs(root((-(x[0] - 1), -x[1])), root((x[0] + 1, x[1]))))


def tangent_slope(x: Parts) -> Parts:
    """Return 1 / (1 + z^2)."""
    return divide_pairs(invert_pair((x[0], x[1] - 1)), (x[0], x[1] + 1))


def cosh_slope(x: Parts) -> Parts:
    """Return (z^2 - 1)^(-1/2)."""
    return divide_pairs(invert_pair(root((x[0] - 1, x[1]))), root((x[0] + 1, x[1])))


def tanh_slope(x: Parts) -> Parts:
    """Return 1 / (1 - z^2)."""
    return invert_pair(multiply_pairs((1 - x[0], -x[1]), (1 + x[0], x[1])))


def power(x: Parts, y: Parts) -> Parts | None:
    """Return a small whole power that is known, by products."""
    exponent = y[0].constant_value
    if exponent is None or y[1].constant_value != 0:
        return None
    if not 1 <= abs(exponent) <= MOST_PRODUCTS or exponent != int(exponent):
        return None
    found, square, left = None, x, int(abs(exponent))
    while left:
        if left & 1:
            found = square if found is None else multiply_pairs(found, square)
        square, left = multiply_pairs(square, square), left >> 1
    assert found is not None
    return found if exponent > 0 else invert_pair(found)


def slope_of_tanh(y: Parts, x: Parts) -> Parts:
    """Return 1 / cosh(x)^2, 1 - y^2 for a hyperbolic tangent y; if that cancels 4 p / (1 + p)^2, p = exp(-2|x|)."""
    slope = multiply_pairs((1 - y[0], -y[1]), (1 + y[0], y[1]))
    left = x[0] < 0
    p = exponential((np.where(left, x[0], -x[0]) * 2, np.where(left, x[1], -x[1]) * 2))
    q = invert_pair((1 + p[0], p[1]))
    a, b = multiply_pairs(multiply_pairs(p, q), q)
    tail = length(slope) < LEAST[x[0].dtype.char]
    return np.where(tail, a * 4, slope[0]), np.where(tail, b * 4, slope[1])
