"""Calls of functions that have no derivatives here, with Tensors that need none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.memory.buffers import BORROWED, forbid_writes, may_change
from wengert.core.values.tensor import Tensor, innermost_trace, is_concrete, is_staged, make_tensor
from wengert.errors import DtypeError
from wengert.support.refusals import refusal


def call_plainly(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function that has no derivatives here, such as one that writes a file, with Tensors that need none.

    What it returns of numbers comes back as Tensors.
    """
    leaves, structure = flatten((args, kwargs))
    tensors = [x for x in leaves if type(x) is Tensor]
    traced = next((x for x in tensors if innermost_trace(x) is not None), None)
    if traced is not None:
        if is_staged(traced):
            raise unsupported_error(name, "a Tensor that is being traced, whose elements are not there yet", "")
        if not is_concrete(traced):
            raise unsupported_error(name, "a Tensor that differs from lane to lane of a batch", "")
        raise unsupported_error(name, "a Tensor that is being differentiated", ", or pass .detach()")
    if not tensors:
        raise unsupported_error(name, "Tensors in a container that Wengert does not know", "")
    if any(type(x) is Tensor for x in flatten(kwargs.get("out"))[0]):
        raise unsupported_error(name, "a Tensor to write to, given as out=", ", or leave out= away")
    plain_args, plain_kwargs = unflatten(structure, [x.numpy() if type(x) is Tensor else x for x in leaves])
    results, form = flatten(function(*plain_args, **plain_kwargs))
    return unflatten(form, [result_of_numpy(x) for x in results])


def unsupported_error(name: str, given: str, otherwise: str) -> DtypeError:
    """Return the error about a function of NumPy that has no derivative here."""
    action = "Use another function of wengert.numpy, declare a primitive with wengert.extend"
    needed = "a function that Wengert knows how to differentiate is needed"
    return refusal(DtypeError(name, given, needed, action + otherwise))


def result_of_numpy(value: Any) -> Any:
    """Return a result as a Tensor if it is numeric; memory that may be somebody else's is copied where it is kept."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "?biufc":
        return value
    tensor = make_tensor(value, None, None)
    tensor._kept = BORROWED if isinstance(value, np.ndarray) and may_change(value) else True
    read_only = isinstance(value, np.ndarray) and not value.flags.writeable  # a window on an operand, say
    return forbid_writes(tensor) if read_only else tensor
