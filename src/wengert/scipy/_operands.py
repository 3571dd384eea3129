"""Operands of functions of `scipy.linalg`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.tensor import is_concrete
from wengert.errors import GraphError, ShapeError, describe
from wengert.numpy._contractions import array

__all__ = ["array", "known", "matrices", "of_columns", "square", "system"]


def square(name: str, value: Any) -> Any:
    """Return an operand that is a stack of square matrices."""
    x = array(name, value)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            describe(name, f"shape {x.shape}", "square matrices along the last two axes are needed", "Reshape it")
        )
    return x


def known(name: str, value: Any) -> Any:
    """Return an operand whose function may be complex where it is real, as its elements say."""
    x = square(name, value)
    if x.dtype.kind != "c" and not is_concrete(x):
        raise GraphError(
            describe(
                name,
                f"a real matrix of shape {x.shape} whose elements are unknown in a trace or differ between lanes",
                "complex elements are needed, because it depends on real ones whether the result is real",
                "Convert it with .astype(complex)",
            )
        )
    return x


def matrices(name: str, value: Any) -> Any:
    """Return an operand that is a stack of matrices."""
    x = array(name, value)
    if x.ndim < 2:
        raise ShapeError(
            describe(name, f"shape {x.shape}", "matrices along the last two axes are needed", "Reshape it")
        )
    return x


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
