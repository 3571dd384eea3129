"""What floating-point numbers are: NaN, infinite, of a sign, a fraction and an exponent, beside others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.primitives.declare import constant, elementwise, opaque

Parts = tuple[Any, Any]
BOOL = np.dtype(bool)


# Kinds of numbers


def is_nan(x: Any) -> Any:
    """Tell whether a value is NaN."""
    return x != x


def is_infinite(x: Any) -> Any:
    """Tell whether a value is infinite."""
    return np.absolute(x) == math.inf


def is_finite(x: Any) -> Any:
    """Tell whether a value is neither infinite nor NaN."""
    return np.absolute(x) < math.inf


def of_floats(expression: Callable[..., Any], otherwise: bool = False) -> Callable[..., Any]:
    """Return an expression of floats that is one truth for all values of other kinds, which have no NaN."""
    return lambda x: expression(x) if x.dtype.kind == "f" else np.full_like(x, otherwise, BOOL)


def has_nan(x: Parts) -> Any:
    """Tell whether a part is NaN."""
    return is_nan(x[0]) | is_nan(x[1])


def has_infinity(x: Parts) -> Any:
    """Tell whether a part is infinite."""
    return is_infinite(x[0]) | is_infinite(x[1])


def are_finite(x: Parts) -> Any:
    """Tell whether both parts are finite."""
    return is_finite(x[0]) & is_finite(x[1])


isnan = constant("isnan", np.isnan, scalar=of_floats(is_nan), parts=has_nan)
isinf = constant("isinf", np.isinf, scalar=of_floats(is_infinite), parts=has_infinity)
isfinite = constant("isfinite", np.isfinite, scalar=of_floats(is_finite, True), parts=are_finite)


# Signs, fractions and exponents

signbit = constant("signbit", np.signbit, scalar=lambda x: np.copysign(1, x) < 0)
copysign = elementwise("copysign", np.copysign, d=(lambda t, out, x, _y: t * (np.sign(x) * np.sign(out)), None))


def modf_at(x: Any) -> tuple[Any, Any]:
    """Return the fraction of a number and the whole number towards zero."""
    whole = np.trunc(x)
    fraction = np.where(is_infinite(x), 0, x - whole)
    return np.copysign(fraction, x), whole


def modf_vjp(ct: Any, _out: Any, _x: Any) -> Any:
    """Pass on the cotangent of the fractional part; the integral part is constant between jumps."""
    return ct[0]


def frexp_vjp(ct: Any, out: Any, _x: Any) -> Any:
    """Scale the cotangent of the mantissa x / 2**e; the exponent is constant between jumps."""
    return None if ct[0] is None else np.ldexp(ct[0], -out[1])


modf = opaque("modf", np.modf, vjp=modf_vjp, outputs=2, scalar=modf_at)
frexp = opaque("frexp", np.frexp, vjp=frexp_vjp, outputs=2, scalar=("frexp_mantissa", "frexp_exponent"))
ldexp = elementwise(
    "ldexp",
    np.ldexp,
    d=(lambda t, _out, _x, y: np.ldexp(t, y), None),
    scalar=lambda x, n: np.ldexp(x, n.astype(x.dtype)),
    linear_in=((0,),),
)


# Neighbours

nextafter = elementwise("nextafter", np.nextafter, d=(lambda t, _out, _x, _y: t, None))
spacing = constant("spacing", np.spacing)
floor = constant("floor", np.floor)
ceil = constant("ceil", np.ceil)
trunc = constant("trunc", np.trunc)
rint = constant("rint", np.rint)
