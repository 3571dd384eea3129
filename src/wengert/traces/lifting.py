"""Residuals as the Tensors they were, so that a sweep whose rules run on them is itself recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.values.aval import is_number
from wengert.core.values.tensor import make_tensor
from wengert.traces.nodes import Node
from wengert.traces.tape import Tape


def lifted(value: Any, node: Node | None, tape: Tape) -> Any:
    """Return a residual as the Tensor it was, so that rules applied to it are recorded."""
    if type(value) is not np.ndarray and not isinstance(value, np.generic) and (node is None or not is_number(value)):
        return value
    tensor = make_tensor(value, None if node is None else tape, node)
    tensor._kept = True
    return tensor


def lifted_output(out: Any, node: Node, tape: Tape) -> Any:
    """Return a saved output, or what was saved of several, as the Tensors they were."""
    if type(out) is not tuple:
        return lifted(out, node, tape)
    return tuple(lifted_part(item, i, node, tape) for i, item in enumerate(out))


def lifted_part(value: Any, index: int, node: Node, tape: Tape) -> Any:
    """Return one of several saved outputs as the Tensor it was."""
    if not isinstance(value, np.ndarray | np.generic) and not is_number(value):
        return value
    tensor = tape.output(node, index, value, True)
    tensor._kept = True
    return tensor
