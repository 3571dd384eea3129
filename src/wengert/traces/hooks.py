"""Hooks on nodes: functions that users register to see, or replace, cotangents during a sweep."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from wengert.core.tensor import Tensor, constant_tensor, make_tensor
from wengert.errors import ShapeError, describe

if TYPE_CHECKING:
    from wengert.traces.tape import Node

__all__ = ["Hooks", "RemovableHandle", "hooks_of"]

_ids = count()


class RemovableHandle:
    """Take a hook away again with `remove`, or at the end of a `with` block."""

    def __init__(self, registered: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.id = next(_ids)
        self.registered = registered
        registered[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; doing so again does nothing."""
        self.registered.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Hooks:
    """Hold what is registered on a node, each kind in registration order.

    Attributes:
        tensor: `hook(ct)` on the value's cotangent once it is complete; a result that is not None replaces it.
        before: `hook(cts)` on the tuple of output cotangents, before the operation's vjp.
        after: `hook(input_cts, output_cts)` after it; a result replaces the input cotangents.
        accumulated: `hook(tensor)` on a leaf after its `.grad` has changed.
        retains, grad: whether a non-leaf keeps its cotangent, and the one kept.
    """

    __slots__ = ("accumulated", "after", "before", "grad", "retains", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}
        self.retains = False
        self.grad: Tensor | None = None

    def replace_ct(self, node: Node, ct: Any) -> Any:
        """Pass a complete cotangent through the tensor hooks."""
        lifted = type(ct) is Tensor
        for hook in list(self.tensor.values()):
            ct = self.replaced(node, "register_hook", hook(shown(ct)), ct, lifted)
        return ct

    def replace_before(self, node: Node, ct: Any) -> Any:
        """Pass the cotangents of an operation's outputs through the hooks that run before it."""
        many = type(ct) is list
        for hook in list(self.before.values()):
            result = hook(tuple(map(shown, ct)) if many else (shown(ct),))
            if result is None:
                continue
            results = result if isinstance(result, tuple) else (result,)
            if many:
                ct = [plain(new, type(old) is Tensor) for new, old in zip(results, ct, strict=True)]
            else:
                ct = self.replaced(node, "register_prehook", results[0], ct, type(ct) is Tensor)
        return ct

    def replace_after(self, cts: list[Any], ct: Any) -> list[Any]:
        """Pass the cotangents of an operation's operands through the hooks that run after it."""
        outputs = tuple(map(shown, ct)) if type(ct) is list else (shown(ct),)
        for hook in list(self.after.values()):
            result = hook(tuple(map(shown, cts)), outputs)
            if result is not None:
                lifted = any(type(old) is Tensor for old in cts)
                cts = [plain(new, lifted) for new in result]
        return cts

    @staticmethod
    def replaced(node: Node, name: str, new: Any, old: Any, lifted: bool) -> Any:
        """Return the cotangent that goes on after a hook, checking its shape."""
        if new is None:
            return old
        new = plain(new, lifted)
        if new.shape != node.shape:
            raise ShapeError(
                describe(
                    name,
                    f"a hook returned a cotangent of shape {new.shape}",
                    f"the shape {node.shape} of the value is needed",
                    "Return an array of that shape, or None to leave the cotangent as it is",
                )
            )
        return new


def shown(ct: Any) -> Any:
    """Return a cotangent as hooks see it: a Tensor whose writes do not reach the sweep; None stays None."""
    if ct is None or type(ct) is Tensor:
        return ct
    tensor = make_tensor(ct, None, None)
    tensor._kept = True
    return tensor


def plain(new: Any, lifted: bool) -> Any:
    """Return what a hook returned in the form that the sweep works with."""
    if new is None:
        return None
    from wengert.core.dispatch import as_tensor

    tensor = as_tensor(new)
    return tensor if lifted else constant_tensor(tensor).detach()._value


def hooks_of(node: Node) -> Hooks:
    """Return the hooks of a node, made at the first registration."""
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks
