"""What NumPy's functions mean for Tensors: the tables that its protocols look at, and nothing else calls by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""What a NumPy function (or ufunc) does with Tensors: filled by `implements`, used by NumPy's protocols."""
DIRECT: dict[Any, Callable[..., Any] | None] = {}
"""Short ways of ufuncs, for operands alone, around the third of a microsecond that options take, and of functions that
NumPy computes itself of plain Tensors; they give `NotImplemented` for operands that are for `FUNCTIONS` to look at."""
DIFFERENTIABLE_BY: dict[Any, str] = {}
"""The parameters that a function has derivatives by, where these are not its first one, or what a primitive says."""
NOTHING = "nothing"
"""What stands there of functions that make arrays of no others, or that look at types, shapes, files and settings."""
AT_ONCE: set[np.ufunc] = set()
"""Ufuncs that mean for plain Tensors what they mean for their arrays, and have a short way for others."""
RAISED = (FloatingPointError, RuntimeWarning)
"""What NumPy raises about numbers where `numpy.errstate` or a filter of warnings asks for errors."""


def carry_out(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call a function once more, without the error about numbers that it ended with.

    NumPy raises it when all is computed, so what is written to (by `out=` or in place) holds the results.
    """
    with np.errstate(all="ignore"):
        function(*args, **kwargs)
