"""Integrals of functions by their values at places that are fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from wengert.control.argument_aliasing import own_copies
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import UsageError


def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5) -> tuple[Any, None]:
    """Return the integral of a function by Gauss's quadrature, and None; see `scipy.integrate.fixed_quad`.

    Args:
        func: a function of many places at once, the last axis.
        a: the lower limit.
        b: the upper limit.
        args: further arguments of the function.
        n: the number of places.

    Raises:
        UsageError: a limit is infinite.

    >>> fixed_quad(lambda x: x**2, 0.0, 3.0)[0]
    tensor(9.)
    """
    places, weights = scipy.special.roots_legendre(n)
    low, high = as_tensor(a), as_tensor(b)
    if any(is_concrete(end) and np.any(np.isinf(raw(end))) for end in (low, high)):
        needed, remedy = "finite ones are needed", "Substitute a variable that stays finite, as t / (1 - t)"
        raise UsageError("fixed_quad", "an infinite limit", needed, remedy)
    values = func((high - low) * (places + 1) / 2.0 + low, *own_copies(args))
    return (high - low) / 2.0 * np.sum(weights * values, axis=-1), None
