"""Half precision: sums and counts of rules in single precision, as NumPy's own sums are.

A float16 has no number above 65,504, which counts and sums soon are, and 11 bits, of which a sum one by one keeps none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["HALF", "in_single_precision", "widened"]

HALF = np.dtype(np.float16)
SINGLE = np.dtype(np.float32)


def widened(x: Any) -> Any:
    """Return what is of half precision in single precision, and all else as it is."""
    return x.astype(SINGLE) if getattr(x, "dtype", None) == HALF else x


def in_single_precision(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """Return an evaluation, or a rule, that computes in single precision what is of half precision."""

    @functools.wraps(evaluate)
    def evaluate_wide(x: Any, *rest: Any, **params: Any) -> Any:
        if x.dtype != HALF:
            return evaluate(x, *rest, **params)
        return narrowed(evaluate(widened(x), *map(widened, rest), **params))

    return evaluate_wide


def narrowed(found: Any) -> Any:
    """Return what was computed in single precision in half precision; of several results each."""
    if isinstance(found, tuple | list):
        return type(found)(map(narrowed, found))
    return found.astype(HALF) if getattr(found, "dtype", None) == SINGLE else found
