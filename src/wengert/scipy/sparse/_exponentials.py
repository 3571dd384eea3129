"""Exponentials of sparse matrices times arrays, as `wengert.scipy.sparse.linalg` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.values.dispatch import apply, as_tensor
from wengert.errors import ShapeError, UsageError
from wengert.primitives.sparse.exponentials import exponential_product
from wengert.scipy.sparse._operands import right_side, sparse_operand

SAMPLES = 50
"""How many times there are if nobody says it, as in `numpy.linspace`."""


def expm_multiply(
    A: Any,  # noqa: N803 - SciPy's name
    B: Any,  # noqa: N803 - SciPy's name
    start: Any = None,
    stop: Any = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: Any = None,  # noqa: N803 - SciPy's name
) -> Any:
    """Return the exponential of a sparse matrix times an array, exp(A) B; see `scipy.sparse.linalg.expm_multiply`.

    Derivatives are by the stored elements of `A`, by `B`, `start` and `stop`, in both modes and to any order, and no
    matrix in full is made. At several times each is made from the one before.

    Args:
        A: a square sparse array of shape (n, n).
        B: an array of shape (n,) or (n, k).
        start: the first time t of exp(t A) B, a number, if there are several.
        stop: the last one, a number.
        num: how many times there are, evenly spaced; by default 50.
        endpoint: whether `stop` is one of them, which it is by default.
        traceA: not used: the trace is summed up.

    Returns:
        A Tensor of the shape of `B`; at several times of the shape (num, *B.shape).

    Raises:
        ShapeError: `A` is not square, or `B` has another length.
        DtypeError: `A` is not sparse, or `B` is.
        UsageError: only one of `start` and `stop` is given, or `num` or `endpoint` without them.

    >>> import wengert as wg
    >>> from wengert.scipy.sparse import csr_array
    >>> turned = lambda angle: expm_multiply(csr_array([[0.0, -1.0], [1.0, 0.0]]) * angle, np.array([1.0, 0.0]))
    >>> turned(np.pi / 2).round(6)
    tensor([0., 1.])
    >>> wg.jvp(turned, (np.pi / 2,), (1.0,))[1].round(6)
    array([-1.,  0.])
    """
    matrix = sparse_operand("expm_multiply", A, False, "wengert.scipy.linalg.expm")
    if matrix.shape[0] != matrix.shape[1]:
        given = f"a matrix of shape {matrix.shape}"
        raise ShapeError("expm_multiply", given, "a square one is needed", "Only square matrices have exponentials")
    x, data = right_side("expm_multiply", matrix.shape[0], B, 2), as_tensor(matrix.data)
    params = {"pattern": matrix._pattern, "transposed": False}
    if start is None and stop is None and num is None and endpoint is None:
        return apply(exponential_product, data, x, **params)
    if start is None or stop is None or np.shape(start) != () or np.shape(stop) != ():
        given = "times of which start or stop is none or no number"
        raise UsageError("expm_multiply", given, "both are needed as numbers", "Pass both, or leave all out")
    count = SAMPLES if num is None else as_whole("expm_multiply", "num", num, 1)
    step = data * ((stop - start) / max(1, count - (endpoint is None or bool(endpoint))))
    found = [apply(exponential_product, data * start, x, **params)]
    for _ in range(count - 1):
        found.append(apply(exponential_product, step, found[-1], **params))
    return np.stack(found)
