"""What the tape API adds to Tensors: `grad`, `requires_grad`, `grad_fn`, hooks, `backward`, `detach`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from wengert.core.diagnostics.argument_checks import require_callable, require_flag
from wengert.core.diagnostics.source_positions import Position, caller, position_of, user_stacklevel
from wengert.core.memory.buffers import keep, own_memory
from wengert.core.memory.views import ALIAS, base_and_path, current, reshape_in_place
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import applied, as_tensor
from wengert.core.values.frozen import Frozen, unfreeze
from wengert.core.values.members import ArrayLike
from wengert.core.values.tensor import (
    WATCHING,
    Tensor,
    check_dtype,
    innermost_trace,
    is_concrete,
    is_staged,
    make_tensor,
    raw,
)
from wengert.errors import DtypeError, GraphError, ShapeError, describe
from wengert.traces.backward import backward, inside_of_transformation
from wengert.traces.hooks import RemovableHandle, hooks_of
from wengert.traces.nodes import Leaf, Node, new_leaf, source_of
from wengert.traces.tape import BASE_TAPE


def _frozen_node(tensor: Tensor) -> Frozen | None:
    return tensor._node if type(tensor._node) is Frozen else None


def _node(tensor: Tensor) -> Node | None:
    node = current(tensor)._node
    return node if isinstance(node, Node) else None  # other traces than tapes keep something else there


def _last_node(tensor: Tensor) -> Node | None:
    """Return the node of a Tensor; of a view that of when it was last used, where sweeps since then left gradients."""
    found = tensor._value.found if tensor._trace is ALIAS else tensor
    return found._node if type(found) is Tensor and isinstance(found._node, Node) else None


def _needed_node(tensor: Tensor, name: str) -> Node:
    node = _node(tensor)
    if node is None and tensor.requires_grad:
        given = f"a Tensor of shape {tensor.shape} that is recorded beneath lanes or forward mode"
        action = "Use it inside of the innermost transformation, as in wengert.vmap(wengert.grad(f))"
        raise GraphError(name, given, "one that is recorded itself is needed", action)
    if node is None:
        given = f"a Tensor of shape {tensor.shape} that does not require grad"
        raise GraphError(name, given, "a Tensor that is being differentiated is needed", "Call .requires_grad_() first")
    return node


def _get_requires_grad(self: Tensor) -> bool:
    """Tell whether operations on the Tensor are recorded, at whatever level; a leaf's can be set."""
    below: Any = self
    while type(below) is Tensor:
        if _node(below) is not None:
            return True
        trace = below._trace
        below = None if trace is None or trace.staged else trace.below(below)
    return False


def _set_requires_grad(self: Tensor, value: bool) -> None:
    self.requires_grad_(value)


def _set_shape(self: Tensor, shape: Any) -> None:
    """Give the Tensor another shape without copying; other views of its memory keep theirs.

    Raises:
        AttributeError: its elements lie so that they would have to be copied, as in NumPy.
        GraphError: a leaf that requires grad would stop being one, or a piece of a program that is traced would
            change the shape of what was there before.
    """
    if type(_node(self)) is Leaf:
        given = "a leaf Tensor that requires grad"
        raise GraphError("shape", given, "one that is not a leaf is needed", "Use reshape, or set it before")
    if WATCHING.stack and id(self) not in WATCHING.stack[-1].born:
        given = "a Tensor that was there before the piece of a program that is being traced"
        needed = "one made there is needed, because its shape would change for all that comes after"
        raise GraphError("shape", given, needed, "Use reshape", place=position_of(*caller()))
    reshaped = self.reshape(shape)
    if reshaped._trace is not ALIAS:
        given = f"a Tensor of shape {self.shape} whose elements lie apart or in another order"
        raise AttributeError(describe("shape", given, "elements side by side are needed", "Use reshape, which copies"))
    reshape_in_place(self, reshaped)


def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Make the Tensor a leaf that gradients are taken with respect to, or stop that; return it.

    A leaf has memory of its own: a view of a Tensor that requires no grad is cut from that, and later writes to either
    do not reach the other. One that required grad before is the same leaf again, with its hooks.

    Raises:
        DtypeError: the dtype has no derivatives.
        GraphError: the Tensor was computed, so it is no leaf.

    >>> import wengert as wg
    >>> wg.tensor([1.0]).requires_grad_()
    tensor([1.], requires_grad=True)
    """
    require_flag("requires_grad_", requires_grad=requires_grad)
    trace = innermost_trace(self)
    if trace is not None and trace is not BASE_TAPE:
        if requires_grad and self.requires_grad:
            return self
        action = "Use wengert.stop_gradient to cut it, or differentiate it with wengert.grad"
        raise inside_of_transformation("requires_grad_", self, action)
    node = _node(self)
    if node is not None and type(node) is not Leaf:
        if requires_grad:
            return self
        given = f"a Tensor that {node.name} computed"
        raise GraphError("requires_grad_", given, "a leaf is needed to stop differentiating", "Use .detach()")
    if not requires_grad:
        if node is not None:
            self._trace = None
            self._node = Frozen(node.grad, node)
        return self
    if node is None:
        frozen = _frozen_node(self)
        check_dtype("requires_grad", self.dtype)
        value = raw(self)
        if value is not self._value:  # a view becomes a value of its own
            keep(self)
            self._kept = True
        self._value = value
        own_memory(self)
        value = self._value
        unfreeze(self)
        self._trace = BASE_TAPE
        leaf = None if frozen is None else frozen.leaf
        if leaf is None or leaf.tensor() is not self or (leaf.shape, leaf.dtype) != (value.shape, value.dtype):
            leaf = new_leaf(value.shape, value.dtype, self)
        leaf.grad = None if frozen is None else frozen.grad
        self._node = leaf
    return self


def _get_grad(self: Tensor) -> Tensor | None:
    """Return the gradient that `backward` has accumulated; None before the first."""
    node = _last_node(self)
    if node is None:
        require_untraced(self)
        frozen = _frozen_node(self)
        return None if frozen is None else frozen.grad
    if type(node) is Leaf:
        return node.grad
    hooks = node.hooks
    if hooks is not None and (hooks.retains or hooks.grad is not None):
        return hooks.grad
    if innermost_trace(self) is BASE_TAPE:  # transformations have no `.grad` to be kept
        warnings.warn(
            f"grad: a Tensor that {node.name} computed, at {node.position}, is no leaf, so backward keeps no gradient "
            "of it. Call .retain_grad() on it before, or look at the leaf that it was computed from",
            UserWarning,
            stacklevel=user_stacklevel(),
        )
    return None


def require_untraced(tensor: Tensor) -> None:
    """Raise a GraphError about `.grad` of a Tensor that is traced: the sweeps that would set it are not."""
    if tensor._trace is not None and is_staged(tensor):
        raise inside_of_transformation(".grad", tensor, "")


def _set_grad(self: Tensor, value: ArrayLike | None) -> None:
    require_untraced(self)
    if value is None and _node(self) is None:
        if (frozen := _frozen_node(self)) is not None:
            self._node = Frozen(None, frozen.leaf)
        return
    node = _needed_node(self, "grad")
    grad = None if value is None else as_tensor(value)
    if grad is not None and grad.shape != self.shape:
        given = f"a gradient of shape {grad.shape} for a Tensor of shape {self.shape}"
        raise ShapeError("grad", given, "the same shape is needed", "Reshape it")
    if grad is not None and grad.dtype != self.dtype:
        given = f"a gradient of dtype {grad.dtype} for a Tensor of dtype {self.dtype}"
        raise DtypeError("grad", given, "the same dtype is needed", "Convert it with .astype")
    if type(node) is Leaf:
        node.grad = grad
    else:
        hooks_of(node).grad = grad


def _is_leaf(self: Tensor) -> bool:
    """Tell whether the Tensor was not computed by a recorded operation."""
    node = _node(self)
    return node is None or type(node) is Leaf


def _grad_fn(self: Tensor) -> GradFunction | None:
    """Return the recorded operation that computed the Tensor; None for leaves."""
    node = _node(self)
    return None if node is None or type(node) is Leaf else GradFunction(node)


def _backward(
    self: Tensor,
    gradient: ArrayLike | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of this Tensor into the `.grad` of the leaves it depends on; see `autograd.backward`."""
    backward(self, None if gradient is None else (gradient,), retain_graph, create_graph, inputs)


def _detach(self: Tensor) -> Tensor:
    """Return the same value as a plain Tensor; the memory is shared until either is written to.

    >>> import wengert as wg
    >>> (wg.tensor(2.0, requires_grad=True) * 3).detach()
    tensor(6.)
    """
    if not is_concrete(self):
        return applied(PRIMITIVES["stop_gradient"], self)
    keep(self)
    result = make_tensor(raw(self), None, None)
    result._kept = base_and_path(self)[0]._kept
    return result


def _retain_grad(self: Tensor) -> None:
    """Keep the gradient of this Tensor in `.grad` although it is not a leaf."""
    node = _needed_node(self, "retain_grad")
    if type(node) is not Leaf:
        hooks_of(node).retains = True


def _register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(ct)` with the complete gradient of this Tensor, once a sweep.

    Args:
        self: a Tensor that is being differentiated.
        hook: it may return a Tensor or ndarray of the same shape, which is then propagated and captured instead.

    Returns:
        A handle whose `remove` takes the hook away.

    >>> import wengert as wg
    >>> x = wg.tensor(1.0, requires_grad=True)
    >>> handle = x.register_hook(lambda ct: ct * 10)
    >>> (x * 2).backward()
    >>> x.grad
    tensor(20.)
    """
    require_callable("register_hook", hook, "hook")
    return RemovableHandle(hooks_of(_needed_node(self, "register_hook")).tensor, hook)


def _register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(tensor)` after `backward` has changed this leaf's `.grad`."""
    require_callable("register_post_accumulate_grad_hook", hook, "hook")
    node = _needed_node(self, "register_post_accumulate_grad_hook")
    if type(node) is not Leaf:
        given = f"a Tensor that {node.name} computed"
        needed = "a leaf is needed"
        raise GraphError("register_post_accumulate_grad_hook", given, needed, "Use register_hook for others")
    return RemovableHandle(hooks_of(node).accumulated, hook)


class GradFunction:
    """Show a recorded operation: its name, what it was computed from, and where; and take hooks.

    >>> import wengert as wg
    >>> y = wg.tensor(2.0, requires_grad=True) * 3
    >>> y.grad_fn
    <grad_fn multiply>
    """

    __slots__ = ("_node", "_value_node")

    def __init__(self, node: Node) -> None:
        self._value_node = node
        self._node = source_of(node)

    @property
    def name(self) -> str:
        """The name of the primitive, or "leaf"."""
        return self._node.name

    @property
    def number(self) -> int:
        """The creation number; greater than those of what it was computed from."""
        return self._node.number

    @property
    def next_functions(self) -> tuple[GradFunction | None, ...]:
        """What the operands were computed by, leaves included; None for constants."""
        return tuple(None if parent is None else GradFunction(parent) for parent in self._node.inputs)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Shape and dtype of the value, the parameters of the operation, and its source position."""
        node, value = self._node, self._value_node
        return {"shape": value.shape, "dtype": value.dtype, "params": dict(node.params), "position": node.position}

    @property
    def position(self) -> Position:
        """The source position that recorded the operation."""
        return self._node.position

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the operation's vjp; a tuple that it returns takes their place.

        The tuples have one entry for each result of the operation, None where no cotangent arrived.
        """
        return RemovableHandle(hooks_of(self._node).before, hook)

    def register_hook(self, hook: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the vjp; a tuple it returns takes the place of the former.

        `grad_inputs` has one entry for each operand, None where it needs no cotangent.
        """
        return RemovableHandle(hooks_of(self._node).after, hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GradFunction) and other._node is self._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return f"<grad_fn {self.name}>"


MEMBERS: dict[str, Any] = {
    "_set_shape": _set_shape,
    "requires_grad": property(_get_requires_grad, _set_requires_grad),
    "grad": property(_get_grad, _set_grad),
    "is_leaf": property(_is_leaf),
    "grad_fn": property(_grad_fn),
    "requires_grad_": _requires_grad_,
    "backward": _backward,
    "detach": _detach,
    "retain_grad": _retain_grad,
    "register_hook": _register_hook,
    "register_post_accumulate_grad_hook": _register_post_accumulate_grad_hook,
}
for _name, _member in MEMBERS.items():
    setattr(Tensor, _name, _member)
