"""Hooks on nodes: functions that users register to see, or replace, cotangents during a sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, Protocol

import numpy as np

from wengert.core.memory.buffers import BORROWED, may_change, read_only
from wengert.core.memory.views import share
from wengert.core.primitives.cotangent import match_dtype
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor, constant_tensor
from wengert.errors import ShapeError, UsageError
from wengert.support.scopes import Restore, StateScope

_ids = count()


class RemovableHandle(StateScope):
    """Take a hook away again with `remove`, or at the end of a `with` block.

    >>> import wengert as wg
    >>> x = wg.tensor(1.0, requires_grad=True)
    >>> with x.register_hook(print):
    ...     (x * 2).backward()
    tensor(2.)
    """

    def __init__(self, registered: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        super().__init__()
        self.id = next(_ids)
        self.registered = registered
        registered[self.id] = hook

    def undo(self) -> Restore:
        """Return what takes the hook away; doing so again does nothing."""
        return partial(self.registered.pop, self.id, None)

    def remove(self) -> None:
        """Take the hook away; doing so again does nothing."""
        self.undo()()


class Hooked(Protocol):
    """Be a node, as far as its hooks are concerned; `wengert.traces.nodes` has them."""

    hooks: Hooks | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Hooks:
    """Hold what is registered on a node, each kind in registration order.

    Attributes:
        tensor: `hook(ct)` on the value's cotangent once it is complete; a result that is not None replaces it.
        before: `hook(cts)` on the tuple of output cotangents, before the operation's vjp.
        after: `hook(input_cts, output_cts)` after it; a result replaces the input cotangents.
        accumulated: `hook(tensor)` on a leaf after its `.grad` has changed.
        retains, grad: whether a non-leaf keeps its gradient, and the sum of those so far.
    """

    __slots__ = ("accumulated", "after", "before", "grad", "retains", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}
        self.retains = False
        self.grad: Tensor | None = None

    def replace_ct(self, node: Hooked, ct: Any) -> Any:
        """Pass a complete cotangent through the tensor hooks."""
        lifted = type(ct) is Tensor
        for hook in list(self.tensor.values()):
            result = hook(visible(ct))
            if result is not None:
                ct = fitting("register_hook", for_sweep(result, lifted), node.shape, node.dtype)
        return ct

    def replace_before(self, ct: Any) -> Any:
        """Pass the cotangents of an operation's results through the hooks that run before it."""
        cts: Sequence[Any] = ct if type(ct) is list else [ct]
        for hook in list(self.before.values()):
            cts = hook_result("register_prehook", hook(tuple(map(visible, cts))), cts)
        return cts if type(ct) is list else cts[0]

    def replace_after(self, cts: Sequence[Any], ct: Any) -> Sequence[Any]:
        """Pass the cotangents of an operation's operands through the hooks that run after it."""
        outputs = ct if type(ct) is list else [ct]
        for hook in list(self.after.values()):
            cts = hook_result(
                "grad_fn.register_hook", hook(tuple(map(visible, cts)), tuple(map(visible, outputs))), cts
            )
        return cts


def hand_on(earlier: Hooked, later: Hooked) -> None:
    """Let a value that takes the place of another in a Tensor keep the gradient that was to be kept of that.

    Other hooks stay with the value that they were registered on.
    """
    before = earlier.hooks
    if before is None or earlier is later or not (before.retains or before.grad is not None):
        return
    hooks = hooks_of(later)
    hooks.retains, hooks.grad = before.retains, before.grad
    before.retains, before.grad = False, None


def hook_result(name: str, result: Any, olds: Sequence[Any]) -> Sequence[Any]:
    """Return the cotangents that go on after a hook on an operation; None stops one."""
    if result is None:
        return olds
    news = result if isinstance(result, tuple | list) else (result,)
    if len(news) != len(olds):
        action = "Return as many as the hook received, None where there is none, or None alone to change nothing"
        raise UsageError(name, f"a hook returned {len(news)} cotangents", f"{len(olds)} are needed", action)
    lifted = any(type(old) is Tensor for old in olds)
    plains = [for_sweep(new, lifted) for new in news]
    return [
        new if new is None or old is None else fitting(name, new, old.shape, old.dtype)
        for new, old in zip(plains, olds, strict=True)
    ]


def fitting(name: str, new: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return what a hook put in a cotangent's place in the dtype of that, checking its shape."""
    if new.shape != shape:
        given = f"a hook returned a cotangent of shape {new.shape}"
        needed = f"the shape {shape} is needed"
        raise ShapeError(name, given, needed, "Return an array of that shape, or None to leave the cotangent as it is")
    return match_dtype(new, dtype)


def visible(ct: Any) -> Any:
    """Return a cotangent as hooks see it: a Tensor whose writes do not reach the sweep; None stays None.

    Complex ones are shown as everywhere in the tape API: conjugated, the direction of descent.
    """
    if ct is None:
        return None
    if ct.dtype.kind == "c":
        return constant_tensor(ct.conj())
    if type(ct) is np.ndarray and not ct.flags.writeable and may_change(ct):  # an array of the user's
        return constant_tensor(ct.copy())
    return share(constant_tensor(ct))


def for_sweep(new: Any, lifted: bool) -> Any:
    """Return what a hook returned in the form that the sweep works with."""
    if new is None:
        return None
    tensor = as_tensor(new)
    if tensor.dtype.kind == "c":
        tensor = tensor.conj()
    if lifted:
        return tensor
    value = tensor.detach()._value
    return read_only(value) if tensor._kept is BORROWED and type(value) is np.ndarray else value


def hooks_of(node: Hooked) -> Hooks:
    """Return the hooks of a node, made at the first registration."""
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks
