"""Operands of functions of `scipy.linalg`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.errors import ShapeError, describe
from wengert.numpy import _matrices
from wengert.numpy._contractions import array

__all__ = ["array", "known", "matrices", "of_columns", "square", "system"]

matrices = functools.partial(_matrices.matrices, error=ShapeError)
square = functools.partial(_matrices.square, error=ShapeError)
known = functools.partial(_matrices.known, error=ShapeError)


def system(name: str, rows: int, b: Any) -> Any:
    """Return the right-hand side of a linear system of so many equations: a vector, or stacks of matrices."""
    x = array(name, b)
    if not x.ndim or x.shape[-2 if x.ndim > 1 else 0] != rows:
        needed = "as many elements, or rows, on the right as the matrix has are needed"
        raise ShapeError(describe(name, f"shape {x.shape} on the right of {rows} equations", needed, "Reshape it"))
    return x


def of_columns(solve: Callable[[Any], Any], b: Any) -> Any:
    """Return what a solver of matrices on the right gives for them, or for a vector as the only column."""
    return np.squeeze(solve(b[..., None]), -1) if b.ndim == 1 else solve(b)
