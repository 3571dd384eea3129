"""What numbers lack of 1, for derivatives that vanish where a function saturates: there the difference has no digits.

A rule takes the difference where it has digits enough, which one look at the least of all tells, and a formula by the
argument elsewhere. The look takes as long as is saved by the 1 being an array already.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.native.elementwise import LARGE, shared

ndarray = np.ndarray
multiply_large, subtract_large = shared(np.multiply), shared(np.subtract)
ONE = {char: np.ones((), char) for char in "efdgFDG"}
LEAST = {"e": 2.0**-3, "f": 2.0**-5, "F": 2.0**-5} | dict.fromkeys("dgDG", 2.0**-16)
"""Differences from 1 below which too few digits are left, by the characters of dtypes."""


def one_less(x: Any) -> tuple[Any, Any]:
    """Return 1 - x for floats, and the indices of where it has too few digits, or None if that is nowhere."""
    if type(x) is not ndarray:
        rest = 1 - x
    else:
        rest = (np.subtract if x.size < LARGE else subtract_large)(ONE[x.dtype.char], x)
    return rest, without_digits(rest)


def less_square(x: Any) -> tuple[Any, Any]:
    """Return 1 - x^2 for floats, and such indices or None."""
    if type(x) is not ndarray:
        return one_less(x * x)
    rest = x * x if x.size < LARGE else multiply_large(x, x)
    np.subtract(ONE[x.dtype.char], rest, rest)  # in place one thread is as quick as two that need new memory
    return rest, without_digits(rest)


def without_digits(rest: Any) -> Any:
    """Return the indices of differences from 1 that have too few digits; None if that is nowhere."""
    least = LEAST[rest.dtype.char]
    if rest.dtype.kind == "f" and rest.size:
        smallest = rest.item(rest.argmin()) if type(rest) is ndarray else rest
        if smallest >= least:
            return None
        return np.nonzero(rest < least) if rest.ndim else () if rest < least else None
    return np.nonzero(np.abs(rest) < least) if rest.ndim else () if np.abs(rest) < least else None
