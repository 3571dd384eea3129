"""Elementwise primitives: NumPy's ufuncs on floats.

Rules divide where the identity divides (`t / x`, not `t * (1 / x)`): it saves an operation and a rounding, and lets
the strong zero of singular primitives see the division by zero itself.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import silence
from wengert.core.memory.masked_selection import chosen as select
from wengert.core.primitives.cotangent import has_finite_square
from wengert.core.primitives.declare import constant, elementwise, opaque
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.aval import strong
from wengert.core.values.dispatch import apply, at_once
from wengert.core.values.tensor import seen, unwrapped
from wengert.native.elementwise import shared
from wengert.primitives import complex_parts, rewrites, scalars
from wengert.primitives.complements import one_less

BOOL = np.dtype(bool)
LN2 = np.log(2.0)
LN10 = np.log(10.0)
LITERAL = (int, float)
HALVES = "Where both are equal, each gets half."
AT_ZERO = "At 0 the derivative is 0."
AT_JUMPS = "At a jump the derivative is that beside it."


# Arithmetic


def passed(t: Any, _out: Any, _x: Any, _y: Any) -> Any:
    """Pass on what comes: the rule of a term in a sum."""
    return t


def negated(t: Any, _out: Any, _x: Any, _y: Any) -> Any:
    """Be the rule of an operand that is subtracted."""
    return -t


add = elementwise(
    "add",
    np.add,
    d=(passed, passed),
    passes=True,
    parts="each",
    linear_in=((0, 1),),
    operator=operator.add,
    counts=True,
    whole_bits=62,
    cheap=True,
    rewrites=(rewrites.neutral_term,),
)
subtract = elementwise(
    "subtract",
    np.subtract,
    d=(passed, negated),
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
    parts=complex_parts.multiplied,
    linear_in=((0,), (1,)),
    operator=operator.mul,
    counts=True,
    whole_bits=31,
    cheap=True,
    rewrites=(
        rewrites.neutral_factor,
        rewrites.negated_factor,
    ),
)
divide = elementwise(
    "divide",
    np.divide,
    d=(lambda t, _out, _x, y: t / y, lambda t, out, _x, y: -(t * out) / y),
    singular=True,
    scales=(0,),
    parts=complex_parts.divided,
    linear_in=((0,),),
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
    parts=lambda x: complex_parts.multiplied(x, x),
    cheap=True,
)


def falling(y: Any, count: int, order: int) -> list[Any]:
    """Return y (y - 1) ... (y - count + 1) and its derivatives up to an order."""
    found: list[Any] = [1.0] + [0.0] * order
    for n in range(count):
        found = [(y - n) * found[q] + (q * found[q - 1] if q else 0.0) for q in range(order + 1)]
    return found


def power_derivative_value(x: Any, y: Any, out: Any, *, base: int, exponent: int) -> Any:
    """Evaluate the derivative of x**y, which is `out`, of the order `base` by x and `exponent` by y.

    That is x^(y - base) times a polynomial in log(x), whose coefficients are derivatives by y of the falling factorial.
    """
    with silence():
        if type(x) is type(y) is np.ndarray and x.dtype == y.dtype and base + exponent == 1:  # as most are
            found = y * x ** (y - 1) if base else out * np.log(x)
            if np.isfinite(found).all():
                return found
        dtype = np.result_type(x, y)
        x, y = np.asarray(x, dtype), np.asarray(y, dtype)
        factors = falling(y, base, exponent)
        coefficients = [math.comb(exponent, k) * factors[exponent - k] for k in range(exponent + 1)]
        power = x ** (y - base) if base else np.asarray(out)
        log = np.log(x) if exponent else x
        found = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            found = found * log + coefficient
        found = power * found
        if not np.isfinite(found).all():
            found = np.where(np.isnan(found) & (power == 0) & ~(x.real < 0), 0, found)
            found = np.where(x == 0, power_at_zero(y, power, coefficients), found)
    return np.asarray(found, dtype)[()]


def power_at_zero(y: Any, power: Any, coefficients: list[Any]) -> Any:
    """Return the limit of 0**e, which is `power`, times a polynomial in log(0); 0 for a base of the power y = 0."""
    found, rest = np.zeros_like(power), (power != 0) & (y != 0)
    for k in reversed(range(len(coefficients))):
        there = rest & (coefficients[k] != 0)
        found = np.where(there, power * coefficients[k] * (-np.inf if k % 2 else np.inf if k else 1.0), found)
        rest = rest & ~there
    return found


power_derivative: Elementwise = elementwise(
    "power_derivative",
    power_derivative_value,
    d=(
        lambda t, _out, x, y, out, *, base, exponent: (
            t * apply(power_derivative, x, y, out, base=base + 1, exponent=exponent)
        ),
        lambda t, _out, x, y, out, *, base, exponent: (
            t * apply(power_derivative, x, y, out, base=base, exponent=exponent + 1)
        ),
        None,
    ),
    singular=True,
    scalar=scalars.power_derivative,
)


def power_base(t: Any, out: Any, x: Any, y: Any) -> Any:
    """Differentiate x**y by x: y x**(y - 1), which is 0 for y = 0, 0**0 included."""
    if isinstance(y, LITERAL):
        if y == 2:
            return t * (2 * x)
        return t * (y * strong(x) ** (y - 1)) if y else t * 0.0  # Python's 0.0 raises for a negative exponent
    if type(x) is type(y) is np.ndarray and x.dtype == y.dtype and has_finite_square(found := y * x ** (y - 1)):
        return t * found  # as the primitive does, in two thirds of its time
    return t * at_once(power_derivative, x, y, out, base=1, exponent=0)


def power_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:
    """Differentiate x**y by y: x**y log x, which tends to 0 for x = 0 and y > 0."""
    if isinstance(x, LITERAL) and x > 0:
        return (t * out) * np.log(x)
    if type(x) is type(y) is np.ndarray and x.dtype == y.dtype and has_finite_square(found := out * np.log(x)):
        return t * found
    return t * at_once(power_derivative, x, y, out, base=0, exponent=1)


def is_smooth_power(x: Any, y: Any) -> bool:
    """Tell whether x**y is differentiable everywhere: for a literal y of 0 or at least 1, or a positive literal x."""
    return (isinstance(y, LITERAL) and (y >= 1 or y == 0)) or (isinstance(x, LITERAL) and x > 0)


POWER: Any = {
    "d": (power_base, power_exponent),
    "singular": True,
    "regular": is_smooth_power,
    "raises": True,
    "kink": "By `x1` the derivative is 0 where `x2` is 0.",
    "steep": True,
}
RAISED: Any = {
    "scalar": scalars.raised,
    "parts": complex_parts.power,
    "operator": operator.pow,
    "counts": True,
}
power = elementwise("power", np.power, **POWER, **RAISED)
power_large = shared(np.power)


def raised_large(x: Any, y: Any) -> Any:
    """Evaluate x**y for large arrays: on several threads, unless the power is a number, for which NumPy is quicker."""
    return power_large(x, y) if type(x) is type(y) is np.ndarray else x**y


# Python's operators where NumPy evaluates them to other bits than its ufunc: x**2 is a square, and numbers are raised,
# and complex numbers multiplied and measured, by scalar arithmetic

raised = elementwise("pow", operator.pow, **POWER, **RAISED, loop=np.power, cost=90, evaluate_large=raised_large)
complex_product = elementwise(
    "complex_product",
    operator.mul,
    d=multiply.rules,
    parts=complex_parts.multiplied,
    linear_in=((0,), (1,)),
    operator=operator.mul,
    counts=True,
)
float_power = elementwise(
    "float_power", np.float_power, **POWER, scalar=lambda x, y: scalars.raised(x, y, by_root=False), cost=90
)


def remainder_divisor(t: Any, _out: Any, x: Any, y: Any) -> Any:
    """Differentiate x mod y = x - y floor(x / y) by y, away from the jumps."""
    return -t * np.floor(np.divide(x, y))


remainder = elementwise(
    "remainder",
    np.remainder,
    d=(lambda t, _out, _x, _y: t, remainder_divisor),
    scalar=scalars.remainder,
    cost=40,
    operator=operator.mod,
    counts=True,
    kink=AT_JUMPS,
)
fmod = elementwise(
    "fmod",
    np.fmod,
    d=(lambda t, _out, _x, _y: t, lambda t, _out, x, y: -t * np.trunc(x / y)),
    scalar=scalars.c_remainder,
    cost=40,
    kink=AT_JUMPS,
)


# Exponentials and logarithms

exp = elementwise("exp", np.exp, d=lambda t, out, _x: t * out, parts=complex_parts.exponential, own=True)
exp2 = elementwise(
    "exp2",
    np.exp2,
    d=lambda t, out, _x: t * out * LN2,
    parts=lambda x: complex_parts.exponential((x[0] * math.log(2), x[1] * math.log(2))),
    own=True,
)
expm1 = elementwise(
    "expm1", np.expm1, d=lambda t, _out, x: t * np.exp(x), parts=complex_parts.exponential_less_one, own=True
)  # out + 1 is 0 from x = -37 on
log = elementwise("log", np.log, d=lambda t, _out, x: t / x, singular=True, parts=complex_parts.logarithm)
log2 = elementwise(
    "log2",
    np.log2,
    d=lambda t, _out, x: t * (1 / LN2) / x,
    singular=True,
    parts=complex_parts.scaled_logarithm(1 / math.log(2)),
)
log10 = elementwise(
    "log10",
    np.log10,
    d=lambda t, _out, x: t * (1 / LN10) / x,
    singular=True,
    parts=complex_parts.scaled_logarithm(1 / math.log(10)),
)
log1p = elementwise(
    "log1p", np.log1p, d=lambda t, _out, x: t / (1 + x), singular=True, parts=complex_parts.logarithm_from_one
)
square_of_sqrt = Elementwise(  # NaN where there is no root
    "square of sqrt", lambda x: np.square(np.sqrt(x)), d=lambda t, out, _x: t + 0 * out, singular=True
)
sqrt = elementwise(
    "sqrt",
    np.sqrt,
    d=lambda t, out, _x: t / (2 * out),
    singular=True,
    steep=True,
    degree=2,
    square=lambda: square_of_sqrt,
    parts=complex_parts.root,
)
cbrt = elementwise("cbrt", np.cbrt, d=lambda t, out, _x: t / (3 * out * out), singular=True, steep=True, degree=3)


def largest(x: Any) -> Any:
    """Return the greatest absolute value among elements; NaN if one is."""
    return np.absolute(x).max(initial=0.0)


def logistic_value(x: Any, *, base: int, sign: int) -> Any:
    """Evaluate 1 / (1 + b**(-sign x)), for b = e (base 1) or 2, where no tail loses accuracy or overflows."""
    exponential = np.exp2 if base == 2 else np.exp
    power = exponential(-np.abs(x))
    return np.maximum(power, sign * x >= 0) / (1 + power)  # `where` takes ten times as long on an unpredictable mask


def logistic_derivative_value(y: Any, x: Any, *, base: int) -> Any:
    """Evaluate y (1 - y) for y = 1 / (1 + b**(+-x)); where the difference has no digits, by x."""
    rest, tail = one_less(y)
    if tail is not None:
        rest = np.asarray(rest)
        rest[tail] = logistic_value(np.abs(np.broadcast_to(x, rest.shape)[tail]), base=base, sign=-1)
    return rest * y


def scaled(t: Any, base: int, sign: int) -> Any:
    """Return t times the logarithm of the base, with a sign."""
    return t * (sign * LN2) if base == 2 else t if sign == 1 else -t


def logistic_rule(t: Any, out: Any, x: Any, *, base: int, sign: int) -> Any:
    """Differentiate the logistic function: out (1 - out)."""
    return scaled(t * at_once(logistic_derivative, out, x, base=base), base, sign)


def logistic_curvature(t: Any, out: Any, _y: Any, x: Any, *, base: int) -> Any:
    """Differentiate y (1 - y) by x, of whose sign it does not depend: by y it is 1 - 2 y, which is -tanh(x / 2)."""
    return scaled(t * (out * np.tanh(scaled(0.5 * x, base, 1))), base, -1)


logistic_derivative: Elementwise = elementwise(
    "logistic_derivative",
    logistic_derivative_value,
    d=(None, logistic_curvature),
    scalar=scalars.logistic_derivative,
    cost=40,
)
logistic: Elementwise = elementwise("logistic", logistic_value, d=logistic_rule, scalar=scalars.logistic, cost=40)


def softsign_rule(t: Any, _out: Any, x: Any) -> Any:
    """Differentiate x / (1 + |x|): 1 / (1 + |x|)^2, in two steps, for the square overflows."""
    size = 1 + np.abs(x)
    return t / size / size


softsign = elementwise(
    "softsign", lambda x: x / (1 + np.abs(x)), d=softsign_rule, scalar=lambda x: x / (1 + np.absolute(x))
)


def portion(t: Any, x: Any, y: Any, base: int, sign: int) -> Any:
    """Return the part of t that x (sign 1) or y (sign -1) has in b**x + b**y; equal ones where both are infinite."""
    known = seen(x)
    if type(known) is np.ndarray and known.dtype.kind == "f" and largest(known) < np.inf:
        return t * at_once(logistic, x - y, base=base, sign=sign)
    tied = (x == y) & np.isinf(x)
    difference = np.where(tied, 0.0, x) - np.where(tied, 0.0, y)
    return t * apply(logistic, difference, base=base, sign=sign)


logaddexp = elementwise(
    "logaddexp",
    np.logaddexp,
    d=(lambda t, _out, x, y: portion(t, x, y, 1, 1), lambda t, _out, x, y: portion(t, x, y, 1, -1)),
    scalar=scalars.added_exponents(np.exp, 1),
    cost=70,
)
logaddexp2 = elementwise(
    "logaddexp2",
    np.logaddexp2,
    d=(lambda t, _out, x, y: portion(t, x, y, 2, 1), lambda t, _out, x, y: portion(t, x, y, 2, -1)),
    scalar=scalars.added_exponents(np.exp2, math.log(2)),
    cost=70,
)


# Functions whose derivatives of every order are primitives, so that no order loses accuracy


def sinc_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of s(y) = sin(y) / y, y = pi x.

    Where |y| is not small, from the derivatives of y s(y) = sin(y): y s^(n) + n s^(n-1) = sin(y + n pi / 2). Elsewhere,
    where that cancels, from the power series, sum over 2k >= n of (-1)^k y^(2k - n) / ((2k + 1) (2k - n)!).
    """
    y = np.pi * np.asarray(x)
    near = np.abs(y) < order + 1
    inner, outer = np.where(near, y, 0), np.where(near, 1, y)
    series = np.zeros_like(inner)
    for k in range((order + 1) // 2, order + 20):
        series += (-1) ** k * inner ** (2 * k - order) / ((2 * k + 1) * math.factorial(2 * k - order))
    recurrence = np.sin(outer) / outer
    for n in range(1, order + 1):
        recurrence = (np.sin(outer + n * (np.pi / 2)) - n * recurrence) / outer
    return (np.pi**order * np.where(near, series, recurrence))[()]


def i0_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of the modified Bessel function I0; the first one is I1."""
    from scipy import special  # only here, because importing it takes longer than importing Wengert

    value = special.i1(x) if order == 1 else special.ivp(0, x, order)
    return value.astype(np.result_type(x))


sinc_derivative: Elementwise = elementwise(
    "sinc_derivative",
    sinc_derivative_value,
    d=lambda t, _out, x, *, order: t * apply(sinc_derivative, x, order=order + 1),
)
sinc = elementwise("sinc", np.sinc, d=lambda t, _out, x: t * apply(sinc_derivative, x, order=1), scalar=scalars.sinc)
i0_derivative: Elementwise = elementwise(
    "i0_derivative",
    i0_derivative_value,
    d=lambda t, _out, x, *, order: t * apply(i0_derivative, x, order=order + 1),
)
i0 = elementwise("numpy.i0", np.i0, d=lambda t, _out, x: t * apply(i0_derivative, x, order=1))


# Kinks: the derivative there is a choice (see "Kinks and ties" in docs/choices.md)


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
ROOT: Any = {"square": lambda: square_of_absolute}
absolute = elementwise(
    "absolute",
    np.absolute,
    d=absolute_rule,
    **ROOT,
    parts=complex_parts.length,
    operator=operator.abs,
    counts=True,
    whole_bits=62,
    kink=AT_ZERO,
)
complex_size = elementwise(
    "complex_size",
    operator.abs,
    d=absolute_rule,
    **ROOT,
    scalar=np.absolute,
    parts=complex_parts.length,
    operator=operator.abs,
    counts=True,
)
fabs = elementwise("fabs", np.fabs, d=lambda t, _out, x: t * np.sign(x), **ROOT, scalar=np.absolute, kink=AT_ZERO)


def split_at_ties(t: Any, chosen: Any, tied: Any) -> Any:
    """Return t where an operand was chosen, half of it where the two are tied, and 0 elsewhere."""
    if type(tied) is np.bool_ and type(t) is np.float64:
        return 0.5 * t if tied else t if chosen else np.float64(0)
    found, known = select(chosen, t), unwrapped(tied)  # large arrays come as Tensors
    if type(known) is np.ndarray and not np.count_nonzero(known):
        return found
    return np.where(tied, 0.5 * t, found)


maximum = elementwise(
    "maximum",
    np.maximum,
    d=(lambda t, _out, x, y: split_at_ties(t, x > y, x == y), lambda t, _out, x, y: split_at_ties(t, y > x, x == y)),
    passes=True,
    whole_bits=62,
    kink=HALVES,
)
minimum = elementwise(
    "minimum",
    np.minimum,
    d=(lambda t, _out, x, y: split_at_ties(t, x < y, x == y), lambda t, _out, x, y: split_at_ties(t, y < x, x == y)),
    passes=True,
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
    masks=True,
    scalar=scalars.larger,
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
    masks=True,
    scalar=scalars.smaller,
    kink=HALVES,
)
copysign = elementwise("copysign", np.copysign, d=(lambda t, out, x, _y: t * (np.sign(x) * np.sign(out)), None))
nextafter = elementwise("nextafter", np.nextafter, d=(lambda t, _out, _x, _y: t, None))
heaviside = elementwise(
    "heaviside", np.heaviside, d=(None, lambda t, _out, x, _y: np.where(x == 0, t, 0)), scalar=scalars.heaviside
)
ldexp = elementwise(
    "ldexp",
    np.ldexp,
    d=(lambda t, _out, _x, y: np.ldexp(t, y), None),
    scalar=lambda x, n: np.ldexp(x, n.astype(x.dtype)),
    linear_in=((0,),),
)


# Complex parts

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


# Structural zeros

sign = constant(
    "sign",
    np.sign,
    scalar=scalars.sign,
    parts=complex_parts.direction,
    kink="Of real numbers the derivative is zero, of complex ones that of x / |x|, and 0 at 0.",
)
floor = constant("floor", np.floor)
ceil = constant("ceil", np.ceil)
trunc = constant("trunc", np.trunc)
rint = constant("rint", np.rint)
floor_divide = constant(
    "floor_divide", np.floor_divide, scalar=scalars.floor_quotient, operator=operator.floordiv, counts=True
)
spacing = constant("spacing", np.spacing)

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
left_shift = constant(
    "left_shift", np.left_shift, scalar=scalars.shifted(np.left_shift), operator=operator.lshift, counts=True
)
right_shift = constant(
    "right_shift", np.right_shift, scalar=scalars.shifted(np.right_shift), operator=operator.rshift, counts=True
)
isnan = constant("isnan", np.isnan, scalar=scalars.of_floats(scalars.is_nan), parts=complex_parts.has_nan)
isinf = constant("isinf", np.isinf, scalar=scalars.of_floats(scalars.is_infinite), parts=complex_parts.has_infinity)
isfinite = constant(
    "isfinite", np.isfinite, scalar=scalars.of_floats(scalars.is_finite, True), parts=complex_parts.is_finite
)
signbit = constant("signbit", np.signbit, scalar=lambda x: np.copysign(1, x) < 0)

bitwise_and = constant(
    "bitwise_and", np.bitwise_and, operator=operator.and_, cheap=True, rewrites=(rewrites.logic(conjunction=True),)
)
bitwise_or = constant(
    "bitwise_or", np.bitwise_or, operator=operator.or_, cheap=True, rewrites=(rewrites.logic(conjunction=False),)
)
bitwise_xor = constant("bitwise_xor", np.bitwise_xor, operator=operator.xor)
bitwise_count = constant("bitwise_count", np.bitwise_count)
less = constant("less", np.less, operator=operator.lt, cheap=True)
less_equal = constant("less_equal", np.less_equal, operator=operator.le, cheap=True)
greater = constant("greater", np.greater, operator=operator.gt, cheap=True)
greater_equal = constant("greater_equal", np.greater_equal, operator=operator.ge, cheap=True)
gcd = constant("gcd", np.gcd)
lcm = constant("lcm", np.lcm)


def inverted(x: Any) -> Any:
    """Return ~x of Python's numbers, of a bool, too, as long as Python only warns of that."""
    return ~(int(x) if type(x) is bool else x)


invert = constant("invert", np.invert, operator=inverted, counts=True, cheap=True, rewrites=(rewrites.drop_pair,))


# Several results


def modf_vjp(ct: Any, _out: Any, _x: Any) -> Any:
    """Pass on the cotangent of the fractional part; the integral part is constant between jumps."""
    return ct[0]


def frexp_vjp(ct: Any, out: Any, _x: Any) -> Any:
    """Scale the cotangent of the mantissa x / 2**e; the exponent is constant between jumps."""
    return None if ct[0] is None else np.ldexp(ct[0], -out[1])


def direction_vjp(ct: Any, out: Any, z: Any) -> Any:
    """Differentiate s = z / |z|: |z| ds = dz - s Re(conj(s) dz); 0 at 0."""
    size = np.abs(z)
    there = size != 0
    return np.where(there, (ct - np.conjugate(out) * (out * ct).real) / np.where(there, size, 1.0), 0.0)


direction = opaque("direction", np.sign, vjp=direction_vjp, parts=complex_parts.direction)
modf = opaque("modf", np.modf, vjp=modf_vjp, outputs=2, scalar=scalars.in_parts)
frexp = opaque("frexp", np.frexp, vjp=frexp_vjp, outputs=2, scalar=("frexp_mantissa", "frexp_exponent"))
