"""Operands of functions of `scipy.linalg`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.errors import ShapeError
from wengert.numpy import _linalg
from wengert.numpy._contractions import array

LAPACKS = {"e": np.float32, "g": np.float64, "G": np.complex128}
"""What SciPy converts dtypes to for which LAPACK has no routines."""


def as_lapack_dtype(x: Any) -> Any:
    """Return an operand in a dtype for which LAPACK has routines, or integers."""
    kind = LAPACKS.get(x.dtype.char)
    return x if kind is None else x.astype(kind)


def matrices(name: str, value: Any) -> Any:
    """Return an operand that is a stack of matrices."""
    return as_lapack_dtype(_linalg.matrices(name, value, ShapeError))


def square_matrices(name: str, value: Any) -> Any:
    """Return an operand that is a stack of square matrices."""
    return as_lapack_dtype(_linalg.square_matrices(name, value, ShapeError))


def known_square(name: str, value: Any) -> Any:
    """Return square matrices whose function may be complex where they are real, as their elements say."""
    return as_lapack_dtype(_linalg.known_square(name, value, ShapeError))


def right_side(name: str, rows: int, b: Any) -> Any:
    """Return the right-hand side of a linear system of so many equations: a vector, or stacks of matrices."""
    x = array(name, b)
    if not x.ndim or x.shape[-2 if x.ndim > 1 else 0] != rows:
        needed = "as many elements, or rows, on the right as the matrix has are needed"
        raise ShapeError(name, f"shape {x.shape} on the right of {rows} equations", needed, "Reshape it")
    return as_lapack_dtype(x)


def solve_columns(solve: Callable[[Any], Any], b: Any) -> Any:
    """Return the solutions for matrices on the right-hand side, or for a vector as their only column."""
    return np.squeeze(solve(b[..., None]), -1) if b.ndim == 1 else solve(b)
