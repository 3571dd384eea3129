"""Checkpoints: keep no residuals of a function, and compute them again on the sweep.

While the function runs, each residual is replaced by its number. The first one that the sweep asks for makes the
function run again on the same arguments, which yields them all in the same order. Values that the function captures
get their gradients as ever, because the recorded graph is the ordinary one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._tree import map_leaves
from wengert.core.tensor import Tensor, make_tensor, own_memory
from wengert.core.views import current
from wengert.errors import GraphError, describe
from wengert.traces.modes import STATE, enable_grad, reviving, saved_tensors_hooks

__all__ = ["checkpoint"]

Function = Callable[..., Any]


class _Frame:
    """Hold one call: its arguments, how many residuals it has, and those computed again."""

    def __init__(self, function: Function, args: Any, kwargs: Any) -> None:
        self.function = function
        self.packing = STATE.packing[-1] if STATE.packing else None
        self.arguments = map_leaves(self.snapshot, (args, kwargs))
        self.count = 0
        self.unread: set[int] = set()
        self.values: list[Any] = []

    def snapshot(self, leaf: Any) -> Any:
        """Return what to keep of an argument so that no later write changes it."""
        if isinstance(leaf, np.ndarray):
            return leaf.copy()
        if type(leaf) is not Tensor:
            return leaf
        found = current(leaf)
        own_memory(found)
        found._kept = True
        return _Kept(found, self.packing)

    def pack(self, _tensor: Tensor) -> int:
        """Give a residual its number."""
        self.count += 1
        self.unread.add(self.count - 1)
        return self.count - 1

    def unpack(self, number: int) -> Any:
        """Return a residual, computing all of them if they are not there."""
        if not self.values:
            self.recompute()
        value = self.values[number]
        self.unread.discard(number)
        if not self.unread:
            self.values = []
            self.unread = set(range(self.count))
        return value

    def recompute(self) -> None:
        """Run the function again and collect its residuals."""
        found: list[Any] = []

        def collect(tensor: Tensor) -> int:
            found.append(tensor)
            return len(found) - 1

        args, kwargs = map_leaves(lambda leaf: leaf.restore() if type(leaf) is _Kept else leaf, self.arguments)
        with enable_grad(), reviving(), saved_tensors_hooks(collect, found.__getitem__):
            self.function(*args, **kwargs)
        if len(found) != self.count:
            raise GraphError(
                describe(
                    "checkpoint",
                    f"a function that saved {self.count} values at first and {len(found)} when run again",
                    "a function that does the same each time is needed",
                    "Pass random numbers and other state as arguments",
                )
            )
        self.values = found


class _Kept:
    """Hold an argument, its value passed through the saved-tensor hooks that surround the checkpoint."""

    def __init__(self, tensor: Tensor, packing: Any) -> None:
        self.trace, self.node = tensor._trace, tensor._node
        self.unpack = None if packing is None else packing[1]
        value = make_tensor(tensor._value, None, None) if type(tensor._value) is not Tensor else tensor._value
        self.value = tensor._value if packing is None else packing[0](value)

    def restore(self) -> Tensor:
        """Return the argument."""
        value = self.value
        if self.unpack is not None:
            value = self.unpack(value)
            value = value._value if type(value) is Tensor and value._trace is None else value
        tensor = make_tensor(value, self.trace, self.node)
        tensor._kept = True
        return tensor


def checkpoint(fun: Function) -> Function:
    """Return a function that keeps no residuals and runs again during the sweep: less memory for more time.

    Checkpoints nest. Saved-tensor hooks around the call are applied to its arguments, those inside it to what is
    saved there.

    Args:
        fun: a function that does the same each time it is called with the same arguments.

    Returns:
        A function of the same arguments and results.

    Raises:
        GraphError: during the sweep, if `fun` did something else the second time.

    >>> import wengert as wg
    >>> wg.grad(checkpoint(lambda x: np.sin(x) * x))(1.0) == wg.grad(lambda x: np.sin(x) * x)(1.0)
    True
    """

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        frame = _Frame(fun, args, kwargs)
        with saved_tensors_hooks(frame.pack, frame.unpack):
            return fun(*args, **kwargs)

    return checkpointed
