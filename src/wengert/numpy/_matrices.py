"""Operands that are matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.values.tensor import is_concrete
from wengert.errors import GraphError, describe
from wengert.numpy._contractions import array

NUMPYS_ERROR = np.linalg.LinAlgError
"""What is raised for another shape; functions of SciPy raise something else."""


def matrices(name: str, value: Any, error: type[Exception] = NUMPYS_ERROR) -> Any:
    """Return an operand that is a stack of matrices."""
    x = array(name, value)
    if x.ndim < 2:
        raise error(describe(name, f"shape {x.shape}", "matrices along the last two axes are needed", "Reshape it"))
    return x


def square_matrices(name: str, value: Any, error: type[Exception] = NUMPYS_ERROR) -> Any:
    """Return an operand that is a stack of square matrices."""
    x = array(name, value)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        needed = "square matrices along the last two axes are needed"
        raise error(describe(name, f"shape {x.shape}", needed, "Reshape it"))
    return x


def known_square(name: str, value: Any, error: type[Exception] = NUMPYS_ERROR) -> Any:
    """Return square matrices whose function may be complex where they are real, as their elements say."""
    x = square_matrices(name, value, error)
    if x.dtype.kind != "c" and not is_concrete(x):
        given = f"a real matrix of shape {x.shape} whose elements are unknown in a trace or differ between lanes"
        needed = "complex elements are needed, because it depends on real ones whether results are real"
        action = "Convert it with .astype(complex), and take .real of a result that is known to be real"
        raise GraphError(name, given, needed, action)
    return x
