"""What functions of sparse matrices are given: matrices, right-hand sides and options."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError
from wengert.primitives.sparse.sparse_tensor import SparseTensor, sparse_tensor


def sparse_operand(name: str, a: Any, is_square: bool = True, in_full: str = "numpy.linalg.solve") -> SparseTensor:
    """Return the matrix of a system as a sparse array of Tensors; `in_full` names what takes matrices in full."""
    if not hasattr(a, "tocsr"):
        given = f"a matrix of type {type(a).__name__}"
        action = f"Convert it by wengert.scipy.sparse.csr_array, or use {in_full} for arrays in full"
        if hasattr(a, "matvec"):  # an operator of SciPy's, whose products keep no derivatives
            action = "Write wengert.scipy.sparse.linalg.LinearOperator(shape, matvec), with matvec in NumPy"
        raise DtypeError(name, given, "a sparse array is needed", action)
    found = a if isinstance(a, SparseTensor) else sparse_tensor(a)
    if found.ndim != 2 or (is_square and found.shape[0] != found.shape[1]):
        needed = "a square one is needed" if is_square else "one of two axes is needed"
        raise ShapeError(
            name, f"a matrix of shape {found.shape}", needed, "Use lsqr for others" if is_square else "Reshape it"
        )
    return found


def right_side(name: str, rows: int, b: Any, most: int) -> Any:
    """Return the right-hand side of a system of so many equations: a vector, or up to so many axes."""
    if hasattr(b, "tocsr"):
        raise DtypeError(name, "a sparse right-hand side", "an array is needed", "Convert it with .toarray()")
    x: Any = b if type(b) is Tensor else as_tensor(b)
    if not 1 <= x.ndim <= 2 or x.shape[0] != rows or (most == 1 and x.ndim == 2 and x.shape[1] != 1):
        needed = f"shape ({rows},){'' if most == 1 else f' or ({rows}, k)'} is needed"
        raise ShapeError(name, f"shape {x.shape} on the right of {rows} equations", needed, "Reshape it")
    return x if most == 2 or x.ndim == 1 else np.reshape(x, (rows,))


def given_options(**options: Any) -> tuple[tuple[str, Any], ...]:
    """Return the options that are given, in order."""
    return tuple([(name, options[name]) for name in sorted(options) if options[name] is not None])
