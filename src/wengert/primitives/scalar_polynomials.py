"""What expressions of special functions at a point are made of: polynomials, in double precision."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Expression = Callable[..., Any]


def in_double(expression: Expression) -> Expression:
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
