"""Angles and lengths: hypotenuses, arcs, degrees."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import apply


def length(x: tuple[Any, Any]) -> Any:
    """Return the length of a vector of two parts, as a complex number has."""
    return np.hypot(*x)


def cosine_value(x: Any, y: Any, length: Any) -> Any:
    """Evaluate x / length for the length hypot(x, y), and 0 at the origin, as for the derivative of every norm."""
    least = smallest_normal(length.dtype)
    short = length < least
    if not short.any():
        return x / length
    scale = np.where(short, 1 / least, 1)  # it has few digits there: the triangle is measured at a larger scale
    x, length = x * scale, np.hypot(x * scale, y * scale)
    return x / np.where(length == 0, 1, length)


@functools.cache
def smallest_normal(dtype: np.dtype[Any]) -> Any:
    """Return the smallest number of a dtype with all its digits: asking NumPy takes as long as a rule."""
    return np.finfo(dtype).smallest_normal


def cosine_by_x(t: Any, _out: Any, x: Any, y: Any, length: Any) -> Any:
    """Differentiate x / r by x: y^2 / r^3, which is not taken from the difference of 1 and x^2 / r^2."""
    sine = apply(cosine, y, x, length)
    return t * sine * (sine / np.where(length == 0, 1, length))


def cosine_by_y(t: Any, out: Any, x: Any, y: Any, length: Any) -> Any:
    """Differentiate x / r by y: -x y / r^3."""
    return -t * out * (apply(cosine, y, x, length) / np.where(length == 0, 1, length))


def cosine_at(x: Any, y: Any, length: Any) -> Any:
    """Return x / length for the length of (x, y), at a larger scale where it has few digits, and 0 at the origin."""
    least = float(np.finfo(x.dtype).smallest_normal)
    short, scale = length < least, 1 / least
    longer = np.hypot(x * scale, y * scale)
    measured = (x * scale) / np.where(longer == 0, 1, longer)
    return np.where(short, measured, x / length)


def angle_derivative_value(x: Any, y: Any) -> Any:
    """Evaluate x / (x^2 + y^2), without overflow or underflow of the squares; by `hypot` it took ten times as long."""
    dtype = np.result_type(x, y)
    if not (type(x) is type(y) is np.ndarray):
        x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    with np.errstate(all="ignore"):
        square = np.square(x, dtype=dtype) + np.square(y, dtype=dtype)
        extreme = (square < smallest_normal(dtype)) | (square == np.inf)
        return np.where(extreme, angle_by_ratio(x, y), x / square)[()] if np.count_nonzero(extreme) else x / square


def angle_derivative_at(x: Any, y: Any) -> Any:
    """Return x / (x^2 + y^2), from the ratio of the smaller to the larger where the squares have no room."""
    square = x * x + y * y
    extreme = (square < float(np.finfo(x.dtype).smallest_normal)) | (square == math.inf)
    wide = np.absolute(x) >= np.absolute(y)
    larger = np.where(wide, x, y)
    ratio = np.where(wide, y, x) / larger
    return np.where(extreme, np.where(wide, 1, ratio) / (1 + ratio * ratio) / larger, x / square)


def angle_by_ratio(x: Any, y: Any) -> Any:
    """Evaluate x / (x^2 + y^2) from the ratio of the smaller to the larger."""
    wide = np.absolute(x) >= np.absolute(y)
    larger = np.where(wide, x, y)
    ratio = np.where(wide, y, x) / larger
    return np.where(wide, 1, ratio) / (1 + ratio * ratio) / larger


def angle_derivative_by_x(t: Any, out: Any, x: Any, y: Any) -> Any:
    """Differentiate x / r^2 by x: (y^2 - x^2) / r^4."""
    other = apply(angle_derivative, y, x)
    return t * (other - out) * (other + out)


cosine: Elementwise = elementwise("cosine", cosine_value, d=(cosine_by_x, cosine_by_y, None), scalar=cosine_at)
angle_derivative: Elementwise = elementwise(
    "angle_derivative",
    angle_derivative_value,
    d=(angle_derivative_by_x, lambda t, out, x, y: t * (-2 * (out * apply(angle_derivative, y, x)))),
    singular=True,
    scalar=angle_derivative_at,
)
square_of_hypot = Elementwise(
    "square of hypot",
    lambda x, y: np.square(np.hypot(x, y)),
    d=(lambda t, _out, x, _y: t * (2 * x), lambda t, _out, _x, y: t * (2 * y)),
)
hypot = elementwise(
    "hypot",
    np.hypot,
    d=(lambda t, out, x, y: t * apply(cosine, x, y, out), lambda t, out, x, y: t * apply(cosine, y, x, out)),
    square=lambda: square_of_hypot,
    own=True,
    kink="At (0, 0) both derivatives are 0.",
)
arctan2 = elementwise(
    "arctan2",
    np.arctan2,
    d=(
        lambda t, _out, y, x: t * apply(angle_derivative, x, y),
        lambda t, _out, y, x: -(t * apply(angle_derivative, y, x)),
    ),
    singular=True,
    own=True,
)


def scaling_primitive(ufunc: np.ufunc, factor: float) -> Elementwise:
    """Return the primitive of a function of NumPy that multiplies by a factor."""
    return elementwise(
        ufunc.__name__, ufunc, d=lambda t, _out, _x: t * factor, scalar=lambda x: x * factor, linear_in=((0,),)
    )


deg2rad, rad2deg = scaling_primitive(np.deg2rad, math.pi / 180), scaling_primitive(np.rad2deg, 180 / math.pi)
radians, degrees = scaling_primitive(np.radians, math.pi / 180), scaling_primitive(np.degrees, 180 / math.pi)
