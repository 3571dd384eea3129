"""Pointwise primitives in opcodes: a ufunc that an opcode evaluates is that opcode; of others the expression is here.

Expressions take the operands at one point, of the dtypes of NumPy's own loop, and the parameters. They agree with the
evaluations of the primitives to a few roundings, at infinities, NaN and both zeros too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from wengert.compile.nodes import LONG
from wengert.compile.operands import Call, Found, Refused
from wengert.compile.scalars import Scalar, convert, operate, select
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval
from wengert.kernel.checking import DTYPES
from wengert.kernel.opcodes import OPCODES

__all__ = ["BOOLEAN", "COPIES", "EXPRESSIONS", "PARAMETERS", "WHOLE", "expression_of", "loop_dtypes", "pointwise"]

DType = np.dtype[Any]
Expression = Callable[..., "Scalar | tuple[Scalar, ...] | None"]
LN2 = math.log(2)

BY_EVALUATION: dict[Any, str] = {
    row.evaluate: row.name for row in OPCODES.values() if isinstance(row.evaluate, np.ufunc)
}
"""The opcodes of ufuncs."""

BOOLEAN = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and", "not_equal": "xor"}
"""What NumPy's loops of bools compute."""

WHOLE = frozenset({"floor", "ceil", "trunc", "rint", "round"})
"""What leaves whole numbers as they are."""

COPIES = frozenset({"copy", "stop_gradient", "stand_in", "number", "real", "read_only", "conjugate", "positive"})
"""The value of the operand, for real numbers; the conjugate of a truth is a number."""


def expression_of(primitive: Primitive) -> Expression | None:
    """Return what computes a primitive at one point; None if nothing here does."""
    found = EXPRESSIONS.get(primitive.name) if primitive.registered else None
    if found is None and isinstance(primitive.evaluate, np.ufunc):
        name = BY_EVALUATION.get(primitive.evaluate)
        if name is not None:
            return lambda *xs: operate(name, *xs)
    return found


# Values


def is_nan(x: Scalar) -> Scalar:
    """Tell whether a value is NaN."""
    return x.differs(x)


def is_infinite(x: Scalar) -> Scalar:
    """Tell whether a value is infinite."""
    return operate("absolute", x).equals(math.inf)


def is_finite(x: Scalar) -> Scalar:
    """Tell whether a value is neither infinite nor NaN."""
    return operate("absolute", x) < math.inf


def exactly(kind: str, expression: Expression) -> Expression:
    """Return an expression of floats that is one number for all values of other kinds, which have no NaN."""
    return lambda x: expression(x) if x.dtype.kind == "f" else x.constant(kind == "finite", np.dtype(bool))


def sign(x: Scalar) -> Scalar:
    """Return -1, 0 or 1, and NaN for NaN."""
    negative = select(x < 0, -1, select(x.equals(0), 0, x)) if x.dtype.kind in "fi" else x.constant(0)
    return select(x > 0, 1, negative)


def heaviside(x: Scalar, at_zero: Scalar) -> Scalar:
    """Return 0 below zero, 1 above it, and something else there."""
    return select(x < 0, 0, select(x > 0, 1, select(x.equals(0), at_zero, x)))


def larger(x: Scalar, y: Scalar) -> Scalar:
    """Return the larger of two values, of which NaN is none."""
    return select(is_nan(x), y, select(is_nan(y), x, operate("maximum", x, y)))


def smaller(x: Scalar, y: Scalar) -> Scalar:
    """Return the smaller of two values, of which NaN is none."""
    return select(is_nan(x), y, select(is_nan(y), x, operate("minimum", x, y)))


def clip(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """Return a value within two bounds."""
    return operate("minimum", operate("maximum", x, low), high)


def replaced(x: Scalar, *, nan: float, posinf: float | None, neginf: float | None) -> Scalar:
    """Return numbers for NaN and infinities."""
    limits = np.finfo(x.dtype)
    low = float(limits.min) if neginf is None else neginf
    high = float(limits.max) if posinf is None else posinf
    return select(is_nan(x), nan, select(x.equals(math.inf), high, select(x.equals(-math.inf), low, x)))


def guarded(x: Scalar, r: Scalar, t: Scalar, *, masked: bool = False, steep: bool = False) -> Scalar:
    """Return x, and 0 where r is NaN although t is 0, or infinite behind an infinite partial."""
    if steep:
        return select(is_nan(r) & (t.equals(0) | is_infinite(t)), 0, x)
    if x.access == r.access and r.dtype == t.dtype and r.dtype.kind == "f":
        return operate("guarded", r, t)
    return select(is_nan(r) & t.equals(0), 0, x)


def is_close(x: Scalar, y: Scalar, rtol: Scalar, atol: Scalar, *, equal_nan: bool) -> Scalar:
    """Tell whether two values are nearly equal; whole numbers as floats, which NumPy makes of the second."""
    x, y, rtol, atol = (convert(value, np.result_type(x.dtype, y.dtype, 1.0)) for value in (x, y, rtol, atol))
    size = operate("absolute", y)
    near = (operate("absolute", x - y) <= atol + rtol * size) & is_finite(y) | x.equals(y)
    return near | is_nan(x) & is_nan(y) if equal_nan else near


# Division


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """Return what is left of x after dividing by y, with the sign of y."""
    if x.dtype.kind != "f":
        return select(y.equals(0), 0, x - operate("floor_divide", x, y) * y)
    rest = operate("fmod", x, y)
    other = operate("xor", rest < 0, y < 0)
    return select(rest.equals(0), operate("copysign", y.constant(0), y), select(other, rest + y, rest))


def c_remainder(x: Scalar, y: Scalar) -> Scalar:
    """Return what is left of x after dividing by y, with the sign of x."""
    if x.dtype.kind == "f":
        return operate("fmod", x, y)
    rest = remainder(x, y)
    if x.dtype.kind == "u":
        return rest
    other = operate("xor", x < 0, y < 0)
    return select(other & rest.differs(0), rest - y, rest)


def floor_quotient(x: Scalar, y: Scalar) -> Scalar:
    """Return how often y fits into x, rounded down; of floats from the remainder, as NumPy does."""
    if x.dtype.kind != "f":
        return operate("floor_divide", x, y)
    rest = operate("fmod", x, y)
    other = operate("xor", rest < 0, y < 0) & rest.differs(0)
    quotient = (x - rest) / y
    quotient = select(other, quotient - 1, quotient)
    down = operate("floor", quotient)
    nearest = select(quotient - down > 0.5, down + 1, down)
    plain = x / y
    found = select(quotient.equals(0), operate("copysign", x.constant(0), plain), nearest)
    return select(y.equals(0), plain, found)


def in_parts(x: Scalar) -> tuple[Scalar, Scalar]:
    """Return the fraction of a number and the whole number towards zero."""
    whole = operate("trunc", x)
    fraction = select(is_infinite(x), 0, x - whole)
    return operate("copysign", fraction, x), whole


def in_binary(x: Scalar) -> tuple[Scalar, Scalar]:
    """Return m and n of x = m 2**n, 1/2 <= |m| < 1."""
    return operate("frexp_mantissa", x), operate("frexp_exponent", x)


def shifted(name: str) -> Expression:
    """Return a shift of bits, which leaves those of the sign where it is by more than there are."""

    def expression(x: Scalar, count: Scalar) -> Scalar:
        bits = 8 * x.dtype.itemsize
        fits = count < bits if x.dtype.kind == "u" else (count < bits) & (count >= 0)
        if name == "shift_right" and x.dtype.kind == "i":
            return operate(name, x, select(fits, count, bits - 1))
        return select(fits, operate(name, x, select(fits, count, 0)), 0)

    return expression


# Powers


def raised(x: Scalar, y: Scalar, by_root: bool = True) -> Scalar | None:
    """Return x**y for a small whole exponent that is known, or of floats.

    Args:
        x: the base.
        y: the exponent.
        by_root: whether arrays to the power 1/2 are square roots, as for NumPy, which makes -inf NaN and keeps -0.0.
    """
    exponent = y.access.node.value if y.access.node.kind == "constant" else None
    powers: Mapping[float, Callable[[], Scalar]] = {
        0: lambda: x.constant(1),
        1: lambda: x,
        2: lambda: x * x,
        3: lambda: x * x * x,
        4: lambda: (x * x) * (x * x),
    }
    inverse: Mapping[float, Callable[[], Scalar]] = {
        -1: lambda: 1 / x,
        -2: lambda: (1 / x) * (1 / x),  # x * x can be infinite where x**-2 is not yet zero
    }
    known = powers.get(exponent) if exponent is not None else None
    if known is not None:
        return known()
    if x.dtype.kind != "f":
        return None
    if exponent == 0.5 and by_root and x.shape:
        return operate("sqrt", x)
    known = inverse.get(exponent) if exponent is not None else None
    return known() if known is not None else operate("power", x, y)


def power_derivative(x: Scalar, y: Scalar, out: Scalar, *, base: int, exponent: int) -> Scalar | None:
    """Return a derivative of x**y, which is `out`, as the primitive's value is computed; None for complex numbers."""
    if x.dtype.kind != "f":
        return None
    factors = [y.constant(1.0), *[y.constant(0.0)] * exponent]
    for n in range(base):
        lower = [q * factors[q - 1] if q else None for q in range(exponent + 1)]
        factors = [
            (y - n) * factor if rest is None else (y - n) * factor + rest
            for factor, rest in zip(factors, lower, strict=True)
        ]
    coefficients = [math.comb(exponent, k) * factors[exponent - k] for k in range(exponent + 1)]
    power = operate("power", x, y - base) if base else out
    found, at_zero = coefficients[-1], y.constant(0.0)
    for k, coefficient in enumerate(coefficients):
        limit = power * coefficient * (-math.inf if k % 2 else math.inf if k else 1.0)
        at_zero = select(coefficient.equals(0), at_zero, limit)
    for coefficient in coefficients[-2::-1]:
        found = found * operate("log", x) + coefficient
    found = power * found
    found = select(is_nan(found) & power.equals(0) & (x >= 0), 0, found)
    return select(x.equals(0), select(power.equals(0) | y.equals(0), 0, at_zero), found)


def logistic(x: Scalar, *, base: int, sign: int) -> Scalar:
    """Return 1 / (1 + b**(-sign x)), where no tail loses accuracy or overflows."""
    x = x if sign == 1 else -x
    power = operate("exp2" if base == 2 else "exp", -operate("absolute", x))
    return select(x >= 0, 1, power) / (1 + power)


def logistic_derivative(_y: Scalar, x: Scalar, *, base: int) -> Scalar:
    """Return y (1 - y) for the logistic function y of x, by the argument, so that no tail loses accuracy."""
    power = operate("exp2" if base == 2 else "exp", -operate("absolute", x))
    return power / (1 + power) / (1 + power)


def sinc(x: Scalar) -> Scalar:
    """Return sin(pi x) / (pi x), and 1 at zero."""
    y = x * math.pi
    return select(y.equals(0), 1, operate("sin", y) / y)


def added_exponents(name: str, scale: float) -> Expression:
    """Return log(b**x + b**y), from the larger of the two, and 2 b**x where they are equal, infinities included."""

    def expression(x: Scalar, y: Scalar) -> Scalar:
        term = operate("log1p", operate(name, -operate("absolute", x - y)))
        term = term if scale == 1 else term / scale
        return select(x.equals(y), x + (LN2 if scale == 1 else 1.0), operate("maximum", x, y) + term)

    return expression


# Of SciPy


def logit(x: Scalar) -> Scalar:
    """Return log(x / (1 - x)), near 1/2, where it is small, from its difference from zero."""
    near = (x > 0.3) & (x < 0.65)
    return select(near, operate("log1p", (2 * x - 1) / (1 - x)), operate("log", x / (1 - x)))


def weighed_logarithm(name: str) -> Expression:
    """Return x log(y), and 0 for x = 0 whatever y is, but for NaN."""
    return lambda x, y: select(x.equals(0) & y.equals(y), 0, x * operate(name, y))


def entropy(x: Scalar) -> Scalar:
    """Return -x log(x), and -infinity below zero."""
    return select(x.equals(0), 0, select(x < 0, -math.inf, -x * operate("log", x)))


def huber(delta: Scalar, r: Scalar) -> Scalar:
    """Return r^2 / 2 up to delta, and what goes on linearly beyond."""
    size = operate("absolute", r)
    found = select(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return select(delta < 0, math.inf, found)


# Derivatives that are primitives


def faded(f: Scalar, x: Scalar) -> Scalar:
    """Return f * x, and 0 where f is 0."""
    return select(f.equals(0), 0, f * x)


def gaussian(x: Scalar, *, over: float) -> Scalar:
    """Return exp(-x^2 / over)."""
    square = -(x * x)
    return operate("exp", square if over == 1 else square / over)


def student_body(v: Scalar, x: Scalar) -> Scalar:
    """Return (1 + x^2 / v)^(-(v + 1) / 2)."""
    return operate("exp", -(v + 1) / 2 * operate("log1p", x * x / v))


def arctan_derivative(x: Scalar) -> Scalar:
    """Return 1 / (1 + x^2), without overflow of the square."""
    square = x * x
    return select(square.equals(math.inf), (1 / x) / x, 1 / (1 + square))


def arcsinh_derivative(x: Scalar) -> Scalar:
    """Return (1 + x^2)^(-1/2), without overflow of the square."""
    square = x * x
    return select(square.equals(math.inf), 1 / operate("absolute", x), 1 / operate("sqrt", 1 + square))


def arccosh_derivative(x: Scalar) -> Scalar:
    """Return (x^2 - 1)^(-1/2)."""
    return 1 / operate("sqrt", x - 1) / operate("sqrt", x + 1)


def cosine(x: Scalar, y: Scalar, length: Scalar) -> Scalar:
    """Return x / length for the length of (x, y), at a larger scale where it has few digits, and 0 at the origin."""
    least = float(np.finfo(x.dtype).smallest_normal)
    short, scale = length < least, 1 / least
    longer = operate("hypot", x * scale, y * scale)
    measured = (x * scale) / select(longer.equals(0), 1, longer)
    return select(short, measured, x / length)


def angle_derivative(x: Scalar, y: Scalar) -> Scalar:
    """Return x / (x^2 + y^2), from the ratio of the smaller to the larger where the squares have no room."""
    square = x * x + y * y
    extreme = (square < float(np.finfo(x.dtype).smallest_normal)) | square.equals(math.inf)
    wide = operate("absolute", x) >= operate("absolute", y)
    larger = select(wide, x, y)
    ratio = select(wide, y, x) / larger
    return select(extreme, select(wide, 1, ratio) / (1 + ratio * ratio) / larger, x / square)


EXPRESSIONS: dict[str, Expression] = {
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "fabs": lambda x: operate("absolute", x),
    "sign": sign,
    "heaviside": heaviside,
    "fmax": larger,
    "fmin": smaller,
    "signbit": lambda x: operate("copysign", x.constant(1), x) < 0,
    "isnan": exactly("nan", is_nan),
    "isinf": exactly("infinite", is_infinite),
    "isfinite": exactly("finite", is_finite),
    "isposinf": exactly("infinite", lambda x: x.equals(math.inf)),
    "isneginf": exactly("infinite", lambda x: x.equals(-math.inf)),
    "isreal": lambda x: x.constant(True, np.dtype(bool)),
    "iscomplex": lambda x: x.constant(False, np.dtype(bool)),
    "logical_not": lambda x: x.equals(0) if x.dtype.kind != "b" else ~x,
    "logical_and": lambda x, y: convert(x, np.dtype(bool)) & convert(y, np.dtype(bool)),
    "logical_or": lambda x, y: convert(x, np.dtype(bool)) | convert(y, np.dtype(bool)),
    "logical_xor": lambda x, y: operate("xor", convert(x, np.dtype(bool)), convert(y, np.dtype(bool))),
    "where": lambda condition, x, y: select(convert(condition, np.dtype(bool)), x, y),
    "guarded": guarded,
    "clip": clip,
    "overwritten": lambda _old, new: new,
    "nan_to_num": replaced,
    "replace_nan": lambda x, *, value: select(is_nan(x), value, x),
    "isclose": is_close,
    "round": lambda x, *, decimals: operate("rint", x) if decimals == 0 else None,
    "deg2rad": lambda x: x * (math.pi / 180),
    "radians": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "degrees": lambda x: x * (180 / math.pi),
    "power": raised,
    "pow": raised,
    "float_power": lambda x, y: raised(x, y, by_root=False),
    "complex_size": lambda x: operate("absolute", x),
    "power_derivative": power_derivative,
    "logistic": logistic,
    "logistic_derivative": logistic_derivative,
    "tanh_derivative": lambda y, x: operate("tanh_derivative", y, x),
    "softsign": lambda x: x / (1 + operate("absolute", x)),
    "sinc": sinc,
    "logaddexp": added_exponents("exp", 1),
    "logaddexp2": added_exponents("exp2", LN2),
    "arcsin_derivative": lambda x: 1 / operate("sqrt", (1 - x) * (1 + x)),
    "arctan_derivative": arctan_derivative,
    "faded": faded,
    "gaussian": gaussian,
    "student_body": student_body,
    "arcsinh_derivative": arcsinh_derivative,
    "arccosh_derivative": arccosh_derivative,
    "arctanh_derivative": lambda x: 1 / ((1 - x) * (1 + x)),
    "cosine": cosine,
    "angle_derivative": angle_derivative,
    "erf": lambda x: operate("erf", x),
    "erfc": lambda x: operate("erfc", x),
    "remainder": remainder,
    "fmod": c_remainder,
    "floor_divide": floor_quotient,
    "modf": in_parts,
    "frexp": in_binary,
    "ldexp": lambda x, n: operate("ldexp", x, convert(n, x.dtype)),
    "nextafter": lambda x, y: operate("nextafter", x, y),
    "spacing": lambda x: operate("spacing", x),
    "left_shift": shifted("shift_left"),
    "right_shift": shifted("shift_right"),
    "angle": lambda x, *, deg: operate("arctan2", x.constant(0), x) * (180 / math.pi if deg else 1.0),
    "expit": lambda x: operate("expit", x),
    "log_expit": lambda x: operate("log_expit", x),
    "logit": logit,
    "xlogy": weighed_logarithm("log"),
    "xlog1py": weighed_logarithm("log1p"),
    "entr": entropy,
    "huber": huber,
    "scipy.exp2": lambda x: operate("exp2", x),
    "scipy.expm1": lambda x: operate("expm1", x),
    "scipy.log1p": lambda x: operate("log1p", x),
    "scipy.cbrt": lambda x: operate("cbrt", x),
    "scipy.round": lambda x: operate("rint", x),
    "exp10": lambda x: operate("power", x.constant(10), x),
    "psi": lambda x: operate("digamma", x),
    "gammaln": lambda x: operate("lgamma", x),
    "digamma": lambda x: operate("digamma", x),
}
"""By the names of registered primitives; what gives None has parameters or operands that no opcode knows."""


PARAMETERS = {
    name: tuple([p.name for p in signature(expression).parameters.values() if p.kind == p.KEYWORD_ONLY])
    for name, expression in EXPRESSIONS.items()
} | {"astype": ("dtype",), "copy": ("order",)}
"""The parameters that primitives have at a point: those that expressions take, and how copies lie in memory."""

OWN_DTYPE = {
    **dict.fromkeys(("isposinf", "isneginf", "isreal", "iscomplex", "isclose"), range(4)),
    "guarded": range(1, 3),
    "where": range(1),
}
"""The operands that primitives which are no ufuncs take as they are; others are of the dtype of the result."""


SIGNED = {
    "less": lambda x, y: (x < 0) | (convert(x, y.dtype) < y),
    "less_equal": lambda x, y: (x < 0) | (convert(x, y.dtype) <= y),
    "greater": lambda x, y: (x >= 0) & (convert(x, y.dtype) > y),
    "greater_equal": lambda x, y: (x >= 0) & (convert(x, y.dtype) >= y),
    "equal": lambda x, y: (x >= 0) & convert(x, y.dtype).equals(y),
    "not_equal": lambda x, y: (x < 0) | convert(x, y.dtype).differs(y),
}
"""Comparisons of a number that has a sign with one that has not, for which NumPy has loops of 64 bits."""

MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
"""Comparisons by what they are with their operands exchanged."""


def loop_dtypes(primitive: Primitive, given: Sequence[Any], result: DType) -> Sequence[DType]:
    """Return the dtypes in which NumPy evaluates operands: a ufunc tells.

    Args:
        primitive: the primitive.
        given: for each operand its dtype, or Python's type of a number whose dtype gives way.
        result: the dtype of the result.
    """
    ufunc = np.power if primitive.name == "pow" else primitive.evaluate
    if all(x is int for x in given):
        given = [LONG] * len(given)  # which NumPy compares as objects
    if isinstance(ufunc, np.ufunc):
        return ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))[: len(given)]
    own = OWN_DTYPE.get(primitive.name, ())
    return [np.dtype(x) if i in own else result for i, x in enumerate(given)]


# The rule


def pointwise(call: Call) -> Found:
    """Lower what does the same at every point."""
    primitive, out = call.primitive, call.out
    name = primitive.name
    if name in COPIES:
        return call.args[0] if out.dtype == call.avals[0].dtype else call.scalar(0, out.dtype).access
    if name in CONVERSIONS:
        return call.scalar(0, out.dtype).access
    expression = expression_of(primitive)
    if expression is None:
        return Refused("no opcodes for it yet")
    loop = loop_dtypes(primitive, list(map(own_type, call.avals)), out.dtype)
    if not DTYPES.issuperset(loop):
        return Refused(f"values of dtype {', '.join(map(str, loop))}")
    if not all(map(has_room, loop, call.operands)):
        return Refused("a number that the dtype of the others has no room for")
    xs = [call.scalar(i, dtype) for i, dtype in enumerate(loop)]
    if name in MIRRORED and loop[0] != loop[1]:
        found: Scalar | tuple[Scalar, ...] | None = (
            SIGNED[name](*xs) if loop[0].kind == "i" else SIGNED[MIRRORED[name]](*xs[::-1])
        )
    elif loop[0].kind in "biu" and name in WHOLE:
        found = xs[0]
    elif loop[0].kind == "b" and name in BOOLEAN:
        found = operate(BOOLEAN[name], *xs)
    elif loop[0].kind == "b" and name in ORDERED:
        found = expression(*[convert(x, np.dtype(np.uint8)) for x in xs])
    elif all(x.access.node.kind == "constant" for x in xs) and not out.shape:
        return Refused("numbers that are known")
    else:
        found = expression(*xs, **call.params)
    if isinstance(found, tuple):
        found = found[call.result]
    return Refused("operands that no opcode takes") if found is None else convert(found, out.dtype).access


def has_room(dtype: DType, operand: Any) -> bool:
    """Tell whether a dtype has room for a whole number of Python's: where not, NumPy raises, or compares exactly."""
    if type(operand) is not int or dtype.kind not in "iu":
        return True
    limits = np.iinfo(dtype)
    return bool(limits.min <= operand <= limits.max)


CONVERSIONS = frozenset({"astype", "whole"})
ORDERED = frozenset({"less", "less_equal", "greater", "greater_equal"})


def own_type(aval: Aval) -> Any:
    """Return what NumPy is asked with about an operand: its dtype, or Python's type of a number that gives way."""
    return aval.number if aval.weak and aval.dtype.kind != "b" else aval.dtype
