"""What floating-point numbers are: NaN, infinite, of a sign, a fraction and an exponent, beside others."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.declare import constant, elementwise, opaque
from wengert.native.threads.elementwise import LARGE, share_ufunc

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


# What numbers lack of 1, for derivatives that vanish where a function saturates: there the difference has no digits. A
# rule takes the difference where it has digits enough, which one look at the least of all tells, and a formula by the
# argument elsewhere. The look takes as long as is saved by the 1 being an array already.

multiply_large, subtract_large = share_ufunc(np.multiply), share_ufunc(np.subtract)
ONE = {char: np.ones((), char) for char in "efdgFDG"}
LEAST = {"e": 2.0**-3, "f": 2.0**-5, "F": 2.0**-5} | dict.fromkeys("dgDG", 2.0**-16)
"""Differences from 1 below which too few digits are left, by the characters of dtypes."""


def one_less(x: Any) -> tuple[Any, Any]:
    """Return 1 - x for floats, and the indices of where it has too few digits, or None if that is nowhere."""
    if type(x) is not np.ndarray:
        rest = 1 - x
    else:
        rest = (np.subtract if x.size < LARGE else subtract_large)(ONE[x.dtype.char], x)
    return rest, without_digits(rest)


def less_square(x: Any) -> tuple[Any, Any]:
    """Return 1 - x^2 for floats, and such indices or None."""
    if type(x) is not np.ndarray:
        return one_less(x * x)
    rest = x * x if x.size < LARGE else multiply_large(x, x)
    np.subtract(ONE[x.dtype.char], rest, rest)  # in place one thread is as quick as two that need new memory
    return rest, without_digits(rest)


def without_digits(rest: Any) -> Any:
    """Return the indices of differences from 1 that have too few digits; None if that is nowhere."""
    least = LEAST[rest.dtype.char]
    if rest.dtype.kind == "f" and rest.size:
        smallest = rest.item(rest.argmin()) if type(rest) is np.ndarray else rest
        if smallest >= least:
            return None
        return indices_of(rest < least) if rest.ndim else () if rest < least else None
    return indices_of(np.abs(rest) < least) if rest.ndim else () if np.abs(rest) < least else None


def indices_of(mask: Any) -> Any:
    """Return the indices of true elements: in one row NumPy finds them in a quarter of the time of several axes.

    >>> indices_of(np.array([[False, True], [False, True]]))
    (array([0, 1]), array([1, 1]))
    """
    return mask.nonzero() if mask.ndim < 2 else np.unravel_index(mask.ravel().nonzero()[0], mask.shape)


# Of what expressions of special functions at a point are made


def in_double(expression: Callable[..., Any]) -> Callable[..., Any]:
    """Return an expression that is computed in double precision, as SciPy computes numbers of single precision, too."""

    @functools.wraps(expression)
    def wide(*xs: Any, **params: Any) -> Any:
        found = expression(*[x.astype(np.float64) for x in xs], **params)
        return found if found is None else found.astype(xs[-1].dtype)

    return wide


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return the value of a polynomial, of which the coefficient of the lowest power comes first."""
    *rest, found = coefficients
    for coefficient in reversed(rest):
        found = found * x + coefficient
    return found
