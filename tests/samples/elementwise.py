"""Samples of the elementwise primitives, away from kinks and jumps."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.samples.base import Sample, fixed, integers, normal, positive, sample, spaced, uniform
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply
from wengert.primitives import angles, exponentials, powers, trigonometric

Array = np.ndarray[Any, Any]
COMPLEX = normal(3, seed=1) + 1j * normal(3, seed=2)


def unary(function: Callable[..., Any], make: Callable[..., Array] = normal) -> list[Sample]:
    """Return samples of a function of one operand: a matrix, a vector, a 0-d and an empty array."""
    shapes = [(2, 3), (4,), (), (0, 2)]
    return [sample(function.__name__, function, make(*shape)) for shape in shapes]


def binary(
    function: Callable[..., Any],
    left: Callable[..., Array] = normal,
    right: Callable[..., Array] = normal,
    order: int = 2,
) -> list[Sample]:
    """Return samples of a function of two operands: alike, broadcast, 0-d, a Python number on either side."""
    name = function.__name__
    return [
        sample(name, function, left(2, 3, seed=1), right(2, 3, seed=2), order=order),
        sample(name, function, left(2, 1, seed=1), right(3, seed=2), order=order),
        sample(name, function, left(seed=1), right(3, seed=2), order=order),
        sample(name, function, left(0, 2, seed=1), right(2, seed=2), order=order),
        sample(name, function, left(3, seed=1), float(right(1, seed=2)[0]), order=order),
        sample(name, function, float(left(1, seed=1)[0]), right(3, seed=2), order=order),
    ]


def inside(*shape: int, seed: int = 0) -> Array:
    """Return numbers between -0.9 and 0.9."""
    return uniform(-0.9, 0.9, *shape, seed=seed)


def above_one(*shape: int, seed: int = 0) -> Array:
    """Return numbers between 1.2 and 3."""
    return uniform(1.2, 3.0, *shape, seed=seed)


def off_zero(*shape: int, seed: int = 0) -> Array:
    """Return numbers of either sign, at least 0.3 from zero."""
    numbers = normal(*shape, seed=seed)
    return np.asarray(numbers + np.copysign(0.3, numbers))


def off_integers(*shape: int, seed: int = 0) -> Array:
    """Return numbers of either sign, at least 0.2 from every integer."""
    return np.asarray(np.floor(uniform(-3, 3, *shape, seed=seed)) + uniform(0.2, 0.8, *shape, seed=seed + 100))


def low(*shape: int, seed: int = 0) -> Array:
    """Return numbers between 2.1 and 2.9, which are 4 to 12 of `tenths`."""
    return uniform(2.1, 2.9, *shape, seed=seed)


def large(*shape: int, seed: int = 0) -> Array:
    """Return numbers between 1.6 and 1.9: between 1 and 2 of them make a `low`."""
    return uniform(1.6, 1.9, *shape, seed=seed)


def special(name: str, **params: Any) -> Callable[..., Any]:
    """Return a primitive that is no function of NumPy's as a function."""

    def function(*operands: Any) -> Any:
        return apply(PRIMITIVES[name], *operands, **params)

    function.__name__ = name
    return function


def slope_of_power(x: Any, y: Any) -> Any:
    """Return the derivative of x**y by both."""
    return apply(powers.power_derivative, x, y, x**y, base=1, exponent=1)


INVERSES = ("arcsin", "arctan", "arcsinh", "arccosh", "arctanh")

ARITHMETIC = [
    *binary(np.add),
    *binary(np.subtract),
    *binary(np.multiply),
    *binary(np.divide, normal, off_zero),
    *binary(np.power, positive),
    *binary(np.float_power, positive),
    *binary(np.remainder, low, large),
    *binary(np.fmod, low, large),
    *unary(np.negative),
    *unary(np.positive),
    *unary(np.reciprocal, off_zero),
    *unary(np.square),
    sample("pow", operator.pow, normal(3), 2),
    sample("pow", operator.pow, normal(3), 3),
    sample("pow", operator.pow, off_zero(3), -1.0),
    sample("pow", operator.pow, positive(3), 0.5),
    sample("pow", operator.pow, normal(3), 0),
    sample("pow", operator.pow, 2.0, normal(3)),
    sample("power", np.power, normal(3), fixed(np.array([0.0, 1.0, 2.0]))),
    sample("power", np.power, np.zeros(4), fixed(np.array([0.0, 1.0, 2.0, 3.0]))),
    sample("pow", operator.pow, positive(2, 1), normal(3)),
    sample("complex_product", special("complex_product"), np.array(0.5 - 1.5j), np.array(2.0 + 0.25j)),
    sample("complex_size", special("complex_size"), np.array(COMPLEX[0])),
    sample("multiply", lambda x: x * x, normal(3)),
    sample("multiply", operator.mul, COMPLEX, COMPLEX[::-1].copy()),
    sample("divide", operator.truediv, COMPLEX, 2.0 + COMPLEX[::-1]),
    sample("add", np.add.outer, normal(2), normal(3)),
    sample("multiply", np.multiply.outer, normal(2), normal(2, 2)),
]

EXPONENTIALS = [
    *unary(np.exp),
    *unary(np.exp2),
    *unary(np.expm1),
    *unary(np.log, positive),
    *unary(np.log2, positive),
    *unary(np.log10, positive),
    *unary(np.log1p, positive),
    *unary(np.sqrt, positive),
    *unary(np.cbrt, off_zero),
    *binary(np.logaddexp),
    *binary(np.logaddexp2),
    sample("logaddexp", np.logaddexp, np.array([1000.0, -1000.0]), np.array([999.0, -1001.5])),
    sample("exp", np.exp, COMPLEX),
    sample("log", np.log, COMPLEX),
    sample("sqrt", np.sqrt, 2.0 + COMPLEX),
]

CIRCULAR = [
    *unary(np.sin),
    *unary(np.cos),
    *unary(np.tan, inside),
    *unary(np.arcsin, inside),
    *unary(np.arccos, inside),
    *unary(np.arctan),
    *unary(np.sinh),
    *unary(np.cosh),
    *unary(np.tanh),
    *unary(np.arcsinh),
    *unary(np.arccosh, above_one),
    *unary(np.arctanh, inside),
    *unary(np.deg2rad),
    *unary(np.rad2deg),
    *unary(np.radians),
    *unary(np.degrees),
    *binary(np.arctan2, off_zero, off_zero),
    *binary(np.hypot, off_zero, off_zero),
    sample("sin", np.sin, COMPLEX),
    sample("tanh", np.tanh, COMPLEX),
]


def slope_of_logistic(x: Any, base: int = 1) -> Any:
    """Return the derivative of the logistic function from its value."""
    y = apply(exponentials.logistic, x, base=base, sign=1)
    return apply(exponentials.logistic_derivative, y, x, base=base)


DERIVATIVES = [
    *unary(special("arcsin_derivative"), inside),
    *unary(special("arctan_derivative")),
    sample("faded", lambda f, x: apply(trigonometric.faded, f, x), off_zero(3), off_zero(2, 1)),
    *unary(special("arcsinh_derivative")),
    *unary(special("arccosh_derivative"), above_one),
    *unary(special("arctanh_derivative"), inside),
    *(sample(f"{name}_derivative", special(f"{name}_derivative"), COMPLEX) for name in INVERSES),
    *(sample(name, getattr(np, name), COMPLEX) for name in INVERSES),
    *unary(special("softsign"), off_zero),
    sample("power_derivative", slope_of_power, positive(3), off_zero(2, 1)),
    *unary(special("size_power", exponent=2.5, parity="half"), positive),
    *unary(special("size_power", exponent=2, parity="odd"), off_zero),
    *unary(special("size_power", exponent=1 / 3, parity="even"), off_zero),
    *unary(special("logistic", base=1, sign=1)),
    *unary(special("logistic", base=2, sign=-1)),
    sample("logistic_derivative", lambda x: slope_of_logistic(3 * x), normal(5)),
    sample("logistic_derivative", lambda x: slope_of_logistic(9 * x), normal(2, 3)),
    sample("tanh_derivative", lambda x: apply(trigonometric.tanh_derivative, np.tanh(3 * x), 3 * x), normal(5)),
    sample("tanh_derivative", lambda x: apply(trigonometric.tanh_derivative, np.tanh(x), x), COMPLEX),
    sample("angle_derivative", lambda x, y: apply(angles.angle_derivative, x, y), off_zero(3), off_zero(2, 1)),
    sample("cosine", lambda x, y: apply(angles.cosine, x, y, np.hypot(x, y)), off_zero(3), off_zero(2, 1)),
]

SERIES = [
    sample("sinc", np.sinc, normal(2, 3)),
    sample("sinc", np.sinc, normal()),
    sample("sinc", np.sinc, np.array([0.0, 1e-4, -0.3, 1.0, 2.5])),
    sample("sinc_derivative", lambda x: apply(trigonometric.sinc_derivative, x, order=1), np.array([0.2, 0.0, -1.5])),
    sample("sinc_derivative", lambda x: apply(trigonometric.sinc_derivative, x, order=3), np.array([0.2, 0.0, -1.5])),
    sample("numpy.i0", np.i0, normal(2, 3)),
    sample("numpy.i0", np.i0, np.array([0.0, 1e-3, 9.5, -3.0])),
    sample("i0_derivative", lambda x: apply(exponentials.i0_derivative, x, order=1), np.array([0.2, 0.0, -1.5])),
    sample("i0_derivative", lambda x: apply(exponentials.i0_derivative, x, order=2), np.array([0.2, 0.0, -1.5])),
]

KINKS = [
    *unary(np.absolute, off_zero),
    *unary(np.fabs, off_zero),
    *binary(np.maximum),
    *binary(np.minimum),
    *binary(np.fmax),
    *binary(np.fmin),
    *binary(np.copysign, off_zero, off_zero),
    sample("absolute", abs, off_zero(3)),
    sample("absolute", np.absolute, COMPLEX),
    sample("fmax", np.fmax, np.array([1.0, 2.0]), fixed(np.array([np.nan, 3.0]))),
    sample("fmin", np.fmin, np.array([1.0, 2.0]), fixed(np.array([np.nan, 1.0]))),
    sample("nextafter", np.nextafter, normal(3), normal(3, seed=1)),
    sample("nextafter", np.nextafter, normal(2, 1), normal(3, seed=1)),
    *binary(np.heaviside, off_zero, normal, order=1),
    sample("heaviside", np.heaviside, fixed(np.array([0.0, -1.0, 0.0, 2.0])), normal(4), order=1),
    sample("heaviside", np.heaviside, 0.0, normal(2, 3), order=1),
    sample("ldexp", np.ldexp, normal(3), integers(-3, 4, 3)),
    sample("ldexp", np.ldexp, normal(2, 1), integers(-3, 4, 3)),
    sample("conjugate", np.conjugate, normal(2, 3)),
    sample("conjugate", np.conjugate, COMPLEX),
]

CONSTANTS = [
    *unary(np.sign, off_zero),
    *unary(np.floor, off_integers),
    *unary(np.ceil, off_integers),
    *unary(np.trunc, off_integers),
    *unary(np.rint, lambda *shape, seed=0: np.asarray(off_integers(*shape, seed=seed) * 0.7)),
    *binary(np.floor_divide, low, large),
    *unary(np.spacing, positive),
    *binary(np.equal, spaced, normal),
    *binary(np.not_equal, spaced, normal),
    *binary(np.less, spaced, normal),
    *binary(np.less_equal, spaced, normal),
    *binary(np.greater, spaced, normal),
    *binary(np.greater_equal, spaced, normal),
    *binary(np.logical_and),
    *binary(np.logical_or),
    *binary(np.logical_xor),
    *unary(np.logical_not),
    *unary(np.isnan),
    *unary(np.isinf),
    *unary(np.isfinite),
    *unary(np.signbit, off_zero),
    sample("bitwise_and", np.bitwise_and, integers(0, 9, 3), integers(0, 9, 2, 1)),
    sample("bitwise_or", np.bitwise_or, integers(0, 9, 3), integers(0, 9, 2, 1)),
    sample("bitwise_xor", np.bitwise_xor, integers(0, 9, 3), integers(0, 9, 2, 1)),
    sample("bitwise_count", np.bitwise_count, integers(0, 9, 3)),
    sample("invert", np.invert, integers(0, 9, 3)),
    sample("left_shift", np.left_shift, integers(0, 9, 3), integers(0, 4, 2, 1)),
    sample("right_shift", np.right_shift, integers(0, 9, 3), integers(0, 4, 2, 1)),
    sample("gcd", np.gcd, integers(1, 30, 3), integers(1, 30, 2, 1)),
    sample("lcm", np.lcm, integers(1, 30, 3), integers(1, 30, 2, 1)),
]

SEVERAL = [
    sample("direction", np.sign, COMPLEX),
    sample("direction", np.sign, COMPLEX[0]),
    sample("direction", np.sign, COMPLEX[:0]),
    sample("modf", np.modf, off_integers(2, 3)),
    sample("modf", np.modf, off_integers()),
    sample("frexp", np.frexp, off_zero(2, 3)),
    sample("frexp", np.frexp, positive()),
]

SAMPLES = [*ARITHMETIC, *EXPONENTIALS, *CIRCULAR, *DERIVATIVES, *SERIES, *KINKS, *CONSTANTS, *SEVERAL]
