"""Making Tensors from data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_dtype, require_flag
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.dispatch import ARRAYS, array_of_any, as_tensor, check_numeric, plain_array
from wengert.core.values.members import ArrayLike
from wengert.core.values.object_arrays import array_of_lists
from wengert.core.values.tensor import Tensor, array_tensor, check_dtype, concrete, innermost_trace
from wengert.errors import DetachedWarning, GraphError
from wengert.support.hints import hint_parameters
from wengert.support.refusals import refusal
from wengert.traces.grad_modes import is_grad_enabled


@hint_parameters("creation")
def tensor(data: ArrayLike, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a Tensor with a copy of some data.

    Args:
        data: numbers, nested lists of them, an array or a Tensor (whose gradient is not followed).
        dtype: the dtype; NumPy's choice by default.
        requires_grad: whether gradients will be taken with respect to it.

    Returns:
        A leaf Tensor.

    Raises:
        DtypeError: the data are not numeric, or `requires_grad` is set and the dtype has no derivatives.

    Warns:
        DetachedWarning: the data are a Tensor that is being differentiated, whose gradient ends here.

    >>> tensor([1, 2], dtype=float)
    tensor([1., 2.])
    """
    require_flag("tensor", requires_grad=requires_grad)
    dtype = None if dtype is None else as_dtype("tensor", dtype)
    found = concrete("tensor", data, "Use wengert.numpy.copy")
    if not requires_grad and type(data) is Tensor and innermost_trace(data) is not None and is_grad_enabled():
        warnings.warn(
            "tensor: a Tensor that is being differentiated, copied as a constant; no gradient follows the copy. "
            "Write wengert.asarray(x), x.copy() or x alone to keep it, x.detach() if a constant is meant.",
            DetachedWarning,
            stacklevel=user_stacklevel(),
        )
    if isinstance(found, np.ndarray):
        found = plain_array("tensor", found)
    if isinstance(found, list | tuple):
        try:
            found = array_of_lists("tensor", lambda nested: np.array(nested, dtype=dtype), found)
        except GraphError as error:
            given = "lists of Tensors that are being differentiated"
            needed = "numbers are needed, because a copy of these would lose the gradient"
            action = "Write np.stack for a list of Tensors, wengert.numpy.array for lists in lists"
            raise refusal(GraphError("tensor", given, needed, action)) from error
    elif not isinstance(found, ARRAYS):
        found = array_of_any(found, dtype)
    made = array_tensor(check_numeric("tensor", np.array(found, dtype=dtype)))
    if not requires_grad:
        return made
    check_dtype("tensor", made.dtype, "Write 3.0 in place of 3, or pass dtype=float")
    return made.requires_grad_()


def asarray(data: ArrayLike, dtype: Any = None) -> Tensor:
    """Return data as a Tensor without copying where possible; a Tensor keeps its gradient.

    The memory of an ndarray is shared until the Tensor is written to, is made a leaf, or is saved by an operation that
    is recorded; then it is copied, so that what happens to the ndarray later changes no gradient.

    Args:
        data: numbers, nested lists of them, an array or a Tensor.
        dtype: the dtype to convert to, if it differs.

    Returns:
        A Tensor.

    Raises:
        DtypeError: the data are not numeric.

    >>> asarray([1.0, 2.0])
    tensor([1., 2.])
    """
    found = as_tensor(data)
    dtype = None if dtype is None else as_dtype("asarray", dtype)
    if dtype is None or found.dtype == dtype:
        return found
    return found.astype(dtype)
