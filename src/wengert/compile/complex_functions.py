"""Functions of complex numbers in terms of their parts, by opcodes: with the branches and special values of C.

Products, quotients and what NumPy computes itself (`expm1`, `log1p`) are its own formulas; the others are those of W.
Kahan, Branch cuts for complex elementary functions, in The state of the art in numerical analysis (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wengert.compile.scalars import Scalar, operate, select
from wengert.primitives.complements import LEAST

__all__ = ["EXPRESSIONS"]

Parts = tuple[Scalar, Scalar]
MOST_PRODUCTS = 100
"""Powers up to which NumPy multiplies."""


def multiplied(x: Parts, y: Parts) -> Parts:
    """Return a product as NumPy computes it."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def divided(x: Parts, y: Parts) -> Parts:
    """Return a quotient as NumPy computes it: Smith, Algorithm 116: Complex division, CACM 5 (1962) 435."""
    (a, b), (c, d) = x, y
    wide = operate("absolute", c) >= operate("absolute", d)
    zero = c.equals(0) & d.equals(0)
    large, small = select(wide, c, d), select(wide, d, c)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = select(wide, a + b * ratio, a * ratio + b) * scale
    imaginary = select(wide, b - a * ratio, b * ratio - a) * scale
    size = operate("absolute", c)
    return select(zero, a / size, real), select(zero, b / size, imaginary)


def exponential(x: Parts) -> Parts:
    """Return exp(a) (cos b + i sin b); in two factors, the first of which does not overflow before the product does."""
    half = operate("exp", x[0] * 0.5)
    plain, gone = x[1].equals(0), x[0].equals(-math.inf) & is_wild(x[1])
    real = select(plain, operate("exp", x[0]), (half * operate("cos", x[1])) * half)
    imaginary = select(plain, x[1], (half * operate("sin", x[1])) * half)
    real = select(x[0].equals(math.inf) & is_wild(x[1]), math.inf, real)
    return select(gone, 0, real), select(gone, 0, imaginary)


def is_wide(x: Scalar) -> Scalar:
    """Tell whether a number is infinite."""
    return operate("absolute", x).equals(math.inf)


def is_wild(x: Scalar) -> Scalar:
    """Tell whether a number has no sine."""
    return ~(operate("absolute", x) < math.inf)


def root(x: Parts) -> Parts:
    """Return the square root with a real part that is not negative, at a scale where nothing overflows or is lost."""
    limits = np.finfo(x[0].dtype)
    size = operate("maximum", *[operate("absolute", part) for part in x])
    large, small = size > float(limits.max) / 4, size < float(limits.smallest_normal) * 4
    one = x[0].constant(1)
    factor, back = (select(large, u, select(small, v, one)) for u, v in ((0.0625, 2.0**54), (4.0, 2.0**-27)))
    a, b = x[0] * factor, x[1] * factor
    half = operate("sqrt", (operate("absolute", a) + operate("hypot", a, b)) * 0.5)
    other = operate("absolute", b) / (half * 2)
    right = a >= 0
    real, imaginary = (select(right, u, v) * back for u, v in ((half, other), (other, half)))
    real, imaginary = (select(size.equals(0), 0, part) for part in (real, imaginary))
    flat = is_wide(x[0]) & (operate("absolute", x[1]) < math.inf)  # along the real axis
    real = select(flat, select(right, x[0], 0), real)
    imaginary = select(flat, select(right, 0, -x[0]), imaginary)
    lost = x[0].equals(-math.inf) & x[1].differs(x[1])
    real, imaginary = select(lost, math.nan, real), select(lost, math.inf, imaginary)
    real = select(x[0].equals(math.inf), math.inf, real)
    tall = is_wide(x[1])
    return select(tall, math.inf, real), operate("copysign", select(tall, math.inf, imaginary), x[1])


def logarithm(x: Parts) -> Parts:
    """Return (log |z|, arg z), next to the unit circle from how far z is from it."""
    limits = np.finfo(x[0].dtype)
    sizes = [operate("absolute", part) for part in x]
    most, least = operate("maximum", *sizes), operate("minimum", *sizes)
    near = (most > 0.5) & (most < 1.5)
    excess = (most - 1) * (most + 1) + least * least
    small, large = most < float(limits.smallest_normal) * 2.0**60, most > float(limits.max) / 4
    one = most.constant(1)
    scale, lost = (
        select(small, u, select(large, v, one * w))
        for u, v, w in ((2.0**100, 0.5, 1.0), (100 * math.log(2), -math.log(2), 0.0))
    )
    length = operate("log", operate("hypot", most * scale, least * scale)) - lost
    size = select(near, operate("log1p", excess) * 0.5, length)
    return select(is_wide(x[0]) | is_wide(x[1]), math.inf, size), operate("arctan2", x[1], x[0])


def scaled_logarithm(factor: float) -> Callable[[Parts], Parts]:
    """Return the logarithm to another base, as NumPy computes it."""

    def expression(x: Parts) -> Parts:
        real, imaginary = logarithm(x)
        return real * factor, imaginary * factor

    return expression


def logarithm_from_one(x: Parts) -> Parts:
    """Return log(1 + z) as NumPy computes it."""
    more = x[0] + 1
    return operate("log", operate("hypot", more, x[1])), operate("arctan2", x[1], more)


def exponential_less_one(x: Parts) -> Parts:
    """Return exp(z) - 1 as NumPy computes it."""
    half = operate("sin", x[1] * 0.5)
    real = operate("expm1", x[0]) * operate("cos", x[1]) - 2 * half * half
    return real, operate("exp", x[0]) * operate("sin", x[1])


def hyperbolic(even: bool) -> Callable[[Parts], Parts]:
    """Return cosh (even) or sinh: products of real ones, in two factors where the first of them would overflow."""

    def expression(x: Parts) -> Parts:
        (a, b), size = x, operate("absolute", x[0])
        far = (size > (700.0 if a.dtype.itemsize == 8 else 88.0)) & (size < math.inf)
        half = operate("exp", size * 0.5)
        cosh, sinh = operate("cosh", a), operate("sinh", a)
        cos, sin = operate("cos", b), operate("sin", b)
        turn = operate("copysign", a.constant(1), a)
        first, second = (cosh, sinh) if even else (sinh, cosh)
        real = select(far, half * (0.5 * (cos if even else cos * turn)) * half, first * cos)
        imaginary = select(far, half * (0.5 * (sin * turn if even else sin)) * half, second * sin)
        straight = b * turn if even else b
        wild = is_wild(b)
        imaginary = select(b.equals(0), straight, select(a.equals(0) & wild, 0 * turn if even else math.nan, imaginary))
        real = select(a.equals(0) & wild, math.nan if even else a, real)
        real = select(is_wide(a) & wild, math.inf, real)
        return real, imaginary

    return expression


def tangent(x: Parts) -> Parts:
    """Return tanh."""
    a, b = x
    size = operate("absolute", a)
    far = size > (20.0 if a.dtype.itemsize == 8 else 10.0)
    near = select(far, 0, a)
    t, s = operate("tan", b), operate("sinh", near)
    beta, rho = 1 + t * t, operate("cosh", near)
    steep = is_wide(beta)
    below = 1 + beta * s * s
    real = select(steep, rho / s, beta * rho * s / below)
    imaginary = select(steep, 1 / t, t / below)
    wave = operate("exp", -size)
    slope = 4 * operate("sin", b) * operate("cos", b) * wave * wave
    wild = is_wild(b)
    slope = select(wild & is_wide(a), 0, slope)
    limit = select(wild & (size < math.inf), math.nan, operate("copysign", a.constant(1), a))
    real = select(a.equals(0) & wild, a, select(far, limit, real))
    return real, select(b.equals(0), b, select(far, slope, imaginary))


def turned(function: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """Return f(i z) / i for a function f: sin of sinh, arctan of arctanh."""

    def expression(x: Parts) -> Parts:
        real, imaginary = function((-x[1], x[0]))
        return imaginary, -real

    return expression


def sine(x: Parts) -> Parts:
    """Return sin z = sinh(i z) / i; C leaves a sign to the library where neither part tells it."""
    real, imaginary = turned(hyperbolic(even=False))(x)
    return real, select(is_wide(x[1]) & is_wild(x[0]), math.inf, imaginary)


def cosine(x: Parts) -> Parts:
    """Return cos z = cosh(i z)."""
    return hyperbolic(even=True)((-x[1], x[0]))


def inverse_cosine(x: Parts) -> Parts:
    """Return arccos."""
    less, more = root((1 - x[0], -x[1])), root((1 + x[0], x[1]))
    angle = 2 * operate("arctan2", less[0], more[0])
    size = operate("arcsinh", more[0] * less[1] - more[1] * less[0])
    endless = is_wide(x[0]) | is_wide(x[1])
    angle = select(endless, operate("arctan2", operate("absolute", x[1]), x[0]), angle)
    angle = select(x[0].equals(0) & x[1].differs(x[1]), math.pi / 2, angle)
    return angle, select(endless, -operate("copysign", x[0].constant(math.inf), x[1]), size)


def inverse_sine(x: Parts) -> Parts:
    """Return arcsin."""
    less, more = root((1 - x[0], -x[1])), root((1 + x[0], x[1]))
    angle = operate("arctan2", x[0], less[0] * more[0] - less[1] * more[1])
    size = operate("arcsinh", less[0] * more[1] - less[1] * more[0])
    endless = is_wide(x[0]) | is_wide(x[1])
    angle = select(endless, operate("arctan2", x[0], operate("absolute", x[1])), angle)
    angle = select(x[0].equals(0) & x[1].differs(x[1]), x[0], angle)
    return angle, select(endless, operate("copysign", x[0].constant(math.inf), x[1]), size)


def inverse_cosh(x: Parts) -> Parts:
    """Return arccosh."""
    less, more = root((x[0] - 1, x[1])), root((x[0] + 1, x[1]))
    size = operate("arcsinh", less[0] * more[0] + less[1] * more[1])
    angle = 2 * operate("arctan2", less[1], more[0])
    endless = is_wide(x[0]) | is_wide(x[1])
    angle = select(endless, operate("arctan2", x[1], x[0]), angle)
    angle = select(x[0].equals(0) & x[1].differs(x[1]), math.pi / 2, angle)
    return select(endless, math.inf, size), angle


def inverse_tangent(x: Parts) -> Parts:
    """Return arctanh."""
    a, b = operate("absolute", x[0]), operate("absolute", x[1])
    limit = math.sqrt(float(np.finfo(a.dtype).max)) / 4
    far = (a > limit) | (b > limit)
    u, v = select(far, 1, a), select(far, 1, b)
    apart = (1 - u) * (1 - u) + v * v
    size = operate("log1p", 4 * u / apart) * 0.25
    close = apart < float(np.finfo(a.dtype).smallest_normal) * 2.0**60  # to 1
    size = select(close, (math.log(2) - operate("log", operate("hypot", 1 - u, v))) * 0.5, size)
    angle = operate("arctan2", 2 * v, (1 - u) * (1 + u) - v * v) * 0.5
    ratio = operate("minimum", a, b) / operate("maximum", a, b)
    distant = (select(a > b, 1, ratio) / operate("maximum", a, b)) / (1 + ratio * ratio)
    distant = select(is_wide(a) | is_wide(b), 0, distant)
    there = far & b.equals(b) & (a.equals(a) | is_wide(b))
    real, imaginary = select(far, distant, size), select(there, math.pi / 2, angle + 0 * (a + b))
    real = select(a.equals(0) & b.differs(b), 0, real)
    return operate("copysign", real, x[0]), operate("copysign", imaginary, x[1])


def reciprocal(x: Parts) -> Parts:
    """Return 1 / z as NumPy computes its function of that name."""
    (a, b), one = x, x[0].constant(1)
    wide = operate("absolute", b) <= operate("absolute", a)
    ratio = select(wide, b / a, a / b)
    scale = select(wide, a + b * ratio, a * ratio + b)
    return select(wide, one, ratio) / scale, -(select(wide, ratio, one) / scale)


def inverted(x: Parts) -> Parts:
    """Return 1 / z."""
    one = x[0].constant(1)
    return divided((one, x[0].constant(0)), x)


def direction(x: Parts) -> Parts:
    """Return z / |z|, and 0 for 0, as NumPy's sign."""
    size = operate("hypot", *x)
    none, endless = size.equals(0), size.equals(math.inf)
    both = is_wide(x[0]) & is_wide(x[1])
    found = []
    for part in x:
        limit = select(is_wide(part), operate("copysign", part.constant(1), part), 0)
        found.append(select(both, math.nan, select(endless, limit, select(none, 0, part / size))))
    return found[0], found[1]


def guarded(x: Parts, r: Parts, t: Parts, *, masked: bool = False, steep: bool = False) -> Parts:
    """Return x, and 0 where r is NaN although t is 0, or infinite behind an infinite partial."""
    ends = t[0].equals(0) & t[1].equals(0)
    if steep:
        ends = ends | operate("absolute", t[0]).equals(math.inf) | operate("absolute", t[1]).equals(math.inf)
    none = (r[0].differs(r[0]) | r[1].differs(r[1])) & ends
    return select(none, 0, x[0]), select(none, 0, x[1])


def sine_slope(x: Parts) -> Parts:
    """Return (1 - z^2)^(-1/2)."""
    return inverted(multiplied(root((-(x[0] - 1), -x[1])), root((x[0] + 1, x[1]))))


def tangent_slope(x: Parts) -> Parts:
    """Return 1 / (1 + z^2)."""
    return divided(inverted((x[0], x[1] - 1)), (x[0], x[1] + 1))


def cosh_slope(x: Parts) -> Parts:
    """Return (z^2 - 1)^(-1/2)."""
    return divided(inverted(root((x[0] - 1, x[1]))), root((x[0] + 1, x[1])))


def tanh_slope(x: Parts) -> Parts:
    """Return 1 / (1 - z^2)."""
    return inverted(multiplied((1 - x[0], -x[1]), (1 + x[0], x[1])))


def power(x: Parts, y: Parts) -> Parts | None:
    """Return a small whole power that is known, by products."""
    nodes = [part.access.node for part in y]
    if not all(node.kind == "constant" for node in nodes) or nodes[1].value != 0:
        return None
    exponent = nodes[0].value
    if not 1 <= abs(exponent) <= MOST_PRODUCTS or exponent != int(exponent):
        return None
    found, square, left = None, x, int(abs(exponent))
    while left:
        if left & 1:
            found = square if found is None else multiplied(found, square)
        square, left = multiplied(square, square), left >> 1
    assert found is not None
    return found if exponent > 0 else inverted(found)


def of_each_part(name: str) -> Callable[[Parts], Scalar]:
    """Return what tells something of both parts."""

    def told(x: Parts) -> Scalar:
        sizes = [operate("absolute", part) for part in x]
        if name == "isnan":
            return x[0].differs(x[0]) | x[1].differs(x[1])
        if name == "isinf":
            return sizes[0].equals(math.inf) | sizes[1].equals(math.inf)
        return (sizes[0] < math.inf) & (sizes[1] < math.inf)

    return told


def slope_of_tanh(y: Parts, x: Parts) -> Parts:
    """Return 1 / cosh(x)^2 for y = tanh(x): 1 - y^2, and where that cancels 4 p / (1 + p)^2, p = exp(-2 |x|)."""
    slope = multiplied((1 - y[0], -y[1]), (1 + y[0], y[1]))
    left = x[0] < 0
    p = exponential((select(left, x[0], -x[0]) * 2, select(left, x[1], -x[1]) * 2))
    q = inverted((1 + p[0], p[1]))
    a, b = multiplied(multiplied(p, q), q)
    tail = operate("hypot", *slope) < LEAST[x[0].dtype.char]
    return select(tail, a * 4, slope[0]), select(tail, b * 4, slope[1])


EXPRESSIONS: dict[str, Callable[..., Scalar | Parts | None]] = {
    "multiply": multiplied,
    "complex_product": multiplied,
    "divide": divided,
    "square": lambda x: multiplied(x, x),
    "conjugate": lambda x: (x[0], -x[1]),
    "absolute": lambda x: operate("hypot", *x),
    "complex_size": lambda x: operate("hypot", *x),
    "exp": exponential,
    "exp2": lambda x: exponential((x[0] * math.log(2), x[1] * math.log(2))),
    "expm1": exponential_less_one,
    "log": logarithm,
    "log2": scaled_logarithm(1 / math.log(2)),
    "log10": scaled_logarithm(1 / math.log(10)),
    "log1p": logarithm_from_one,
    "sqrt": root,
    "sinh": hyperbolic(even=False),
    "cosh": hyperbolic(even=True),
    "tanh": tangent,
    "tanh_derivative": slope_of_tanh,
    "sin": sine,
    "cos": cosine,
    "tan": turned(tangent),
    "arcsin": inverse_sine,
    "arccos": inverse_cosine,
    "arctan": turned(inverse_tangent),
    "arcsinh": turned(inverse_sine),
    "arccosh": inverse_cosh,
    "arctanh": inverse_tangent,
    "arcsin_derivative": sine_slope,
    "arctan_derivative": tangent_slope,
    "arcsinh_derivative": lambda x: sine_slope((-x[1], x[0])),
    "arccosh_derivative": cosh_slope,
    "arctanh_derivative": tanh_slope,
    "reciprocal": reciprocal,
    "guarded": guarded,
    "direction": direction,
    "sign": direction,
    "power": power,
    "pow": power,
    "angle": lambda x: operate("arctan2", x[1], x[0]),
    "equal": lambda x, y: x[0].equals(y[0]) & x[1].equals(y[1]),
    "not_equal": lambda x, y: x[0].differs(y[0]) | x[1].differs(y[1]),
    "isreal": lambda x: x[1].equals(0),
    "iscomplex": lambda x: x[1].differs(0),
    **{name: of_each_part(name) for name in ("isnan", "isinf", "isfinite")},
}
"""By the names of primitives, in terms of the parts."""
