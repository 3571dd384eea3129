"""The drivers of the tape API: `backward` accumulates into leaves, `grad` returns cotangents."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.memory.buffers import BORROWED, may_overwrite, own, own_memory, read_only
from wengert.core.memory.views import base_and_path, current, lasting
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.recording import FLOOR, floor_at, next_level
from wengert.core.values.tensor import Tensor, constant_tensor, innermost_trace, is_staged, unwrap_plain
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.support.hints import hint_parameters
from wengert.traces.nodes import Leaf, Node
from wengert.traces.sweep import Sweep, sweep
from wengert.traces.tape import BASE_TAPE


class Accumulation:
    """Be what one thread at a time may do: add to `.grad` of leaves."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Let nobody be doing it, as in a process that was forked, of whose other threads one may have been."""
        self.lock = threading.Lock()


ACCUMULATION = Accumulation()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ACCUMULATION.begin)
OneOrMany = Tensor | Sequence[Tensor]


def backward(
    tensors: OneOrMany,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: OneOrMany | None = None,
) -> None:
    """Add the gradients of Tensors with respect to the leaves they depend on into `.grad`.

    Args:
        tensors: one or several outputs.
        grad_tensors: their cotangents, of the same shapes; None for outputs of one element.
        retain_graph: keep what the sweep needs for another one; by default as `create_graph`.
        create_graph: record the sweep itself, so that gradients can be differentiated.
        inputs: the Tensors to accumulate into; all leaves by default.

    Raises:
        GraphError: an output does not require grad, or its graph was released.
        ShapeError: a cotangent is missing or has another shape than its output.

    >>> import wengert as wg
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    outputs = as_list("backward", tensors)
    cotangents = as_cotangents(grad_tensors, len(outputs))
    nodes = None
    if inputs is not None:
        nodes = list(dict.fromkeys(node_of("backward", x) for x in as_list("backward", inputs)))
    run = run_sweep("backward", outputs, cotangents, retain_graph, create_graph, nodes)
    leaves = [node for node in run.cts if type(node) is Leaf and requires_grad(node)] if nodes is None else nodes
    received = [(node, ct) for node in leaves if (ct := run.cotangent_of(node)) is not None]
    asked = set(leaves)
    received += [(node, ct) for node, ct in run.retained if node not in asked]
    with ACCUMULATION.lock:
        accumulate(run, received, cotangents, create_graph)
    for node, _ in received:
        if type(node) is Leaf and node.hooks is not None:
            tensor = node.tensor()
            if tensor is not None:
                for hook in list(node.hooks.accumulated.values()):
                    hook(tensor)


@hint_parameters("autograd.grad")
def grad(
    outputs: OneOrMany,
    inputs: OneOrMany,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of outputs with respect to inputs, leaving every `.grad` alone.

    Args:
        outputs: one or several outputs.
        inputs: the Tensors to differentiate with respect to; they need not be leaves.
        grad_outputs: cotangents of the outputs, of the same shapes; None for outputs of one element.
        retain_graph: keep what the sweep needs for another one; by default as `create_graph`.
        create_graph: record the sweep itself, so that the results can be differentiated.
        allow_unused: give None for inputs that the outputs do not depend on, in place of an error.
        materialize_grads: give zeros for such inputs.

    Returns:
        A tuple with one Tensor for each input.

    Raises:
        GraphError: an input is unused, an output does not require grad, or the graph was released.
        ShapeError: a cotangent is missing or has another shape than its output.

    >>> import wengert as wg
    >>> x = wg.tensor(3.0, requires_grad=True)
    >>> grad(x * x * x, x)
    (tensor(27.),)
    """
    sources = as_list("grad", inputs)
    nodes = [node_of("grad", x) for x in sources]
    targets = as_list("grad", outputs)
    cotangents = as_cotangents(grad_outputs, len(targets))
    run = run_sweep("grad", targets, cotangents, retain_graph, create_graph, nodes)
    results: list[Tensor | None] = []
    for position, (x, node) in enumerate(zip(sources, nodes, strict=True)):
        ct = run.result(node, cotangents)
        if ct is None and materialize_grads:
            ct = np.zeros(x.shape, x.dtype)
        elif ct is None and not allow_unused:
            given = f"input {position}, of shape {x.shape}, on which no output depends"
            action = "Pass allow_unused=True for None, or materialize_grads=True for zeros"
            raise GraphError("grad", given, "inputs that the outputs were computed from are needed", action)
        results.append(None if ct is None else constant_tensor(conjugate(ct)))
    return tuple(results)


def run_sweep(
    name: str,
    outputs: Sequence[Tensor],
    cotangents: Sequence[Any],
    retain_graph: bool | None,
    create_graph: bool,
    wanted: Sequence[Node] | None,
) -> Sweep:
    """Sweep the base tape from some outputs."""
    seeds = []
    for output, given in zip(outputs, cotangents, strict=True):
        output = current(output)
        seeds.append((node_of(name, output), seed(name, output, given, create_graph)))
    retain = create_graph if retain_graph is None else retain_graph
    before = FLOOR.get()
    try:
        FLOOR.set(-math.inf if create_graph else floor_at(next_level()))
        return sweep(
            seeds,
            retain=retain,
            lift_to=BASE_TAPE if create_graph else None,
            wanted=None if wanted is None else frozenset(wanted),
        )
    finally:
        FLOOR.set(before)  # at once: Ctrl-C comes before what C does, or after it


def requires_grad(leaf: Leaf) -> bool:
    """Tell whether a Tensor still is the leaf that it was recorded as, and was not told to require no grad since."""
    tensor = leaf.tensor()
    return tensor is None or tensor._node is leaf


def inside_of_transformation(name: str, tensor: Tensor, action: str) -> GraphError:
    """Return the error about what the tape alone does, for a Tensor of a transformation.

    The action is for a transformation that computes; one that traces ends before there are gradients.
    """
    trace = innermost_trace(tensor)
    needed = "a Tensor outside of transformations is needed"
    if is_staged(tensor):
        action = (
            "Jit the loss alone, and call .backward() and change parameters outside, or take gradients inside by "
            "wengert.grad(loss, captured=[w])"
        )
    return GraphError(name, f"a Tensor of {getattr(trace, 'owner_name', '')}", needed, action)


def node_of(name: str, tensor: Any) -> Node:
    """Return the node of a Tensor on the base tape."""
    if type(tensor) is Tensor and tensor._trace is BASE_TAPE:  # as most are
        return tensor._node  # type: ignore[no-any-return]  # of a trace of any kind
    found = current(tensor) if type(tensor) is Tensor else tensor
    if type(found) is Tensor and found._trace is not None and found._trace is not BASE_TAPE:
        raise inside_of_transformation(
            name, found, "Use wengert.grad or wengert.vjp inside the function that is transformed"
        )
    if type(found) is not Tensor or found._trace is not BASE_TAPE:
        what = f"a Tensor of shape {found.shape}" if type(found) is Tensor else f"a {type(tensor).__name__}"
        raise GraphError(
            name,
            f"{what} that does not require grad",
            "a Tensor recorded by the tape is needed",
            "Set requires_grad=True on the inputs, and compute it outside no_grad; gradients are recorded by "
            "sweeps with create_graph=True",
        )
    node: Node = found._node
    return node


def seed(name: str, output: Tensor, given: Any, create_graph: bool) -> Any:
    """Return the cotangent that a sweep starts with."""
    shape, dtype = output.shape, output.dtype
    if given is None:
        if output.size != 1:
            needed = "an output with one element is needed"
            action = "Reduce it, pass gradient=, or use wengert.vjp or wengert.jacobian"
            raise ShapeError(name, f"an output of shape {shape} without a gradient", needed, action)
        if dtype.kind == "c":
            needed = "a real output is needed, because a complex one has no direction of descent"
            action = "Take its real part or absolute value, or pass gradient="
            raise DtypeError(name, f"an output of dtype {dtype} without a gradient", needed, action)
        ct: Any = np.ones(shape, dtype)[()]
        return constant_tensor(ct) if create_graph else ct
    if type(given) is Tensor and given._trace is None and given._kept is not BORROWED and not create_graph:
        value = given._value  # as most are
        if type(value) is np.ndarray and value.dtype is dtype and value.shape == shape and dtype.kind in "fc":
            return np.conjugate(value) if dtype.kind == "c" else value
    holder = as_tensor(given)
    tensor = current(holder)
    if tensor.shape != shape:
        needed = "the same shape is needed"
        action = "Broadcast or reshape the gradient"
        raise ShapeError(name, f"a gradient of shape {tensor.shape} for an output of shape {shape}", needed, action)
    if create_graph:  # what is recorded may be windows on it
        tensor = lasting(holder)
        own_memory(tensor)
        return conjugate(tensor)
    tensor = conjugate(tensor)
    value = tensor._value if tensor._trace is None else tensor.detach()._value
    if value.dtype != dtype:
        return value.astype(dtype)
    borrowed = type(given) is not Tensor or base_and_path(given)[0]._kept is BORROWED
    return read_only(value) if borrowed and type(value) is np.ndarray else value


def accumulate(run: Sweep, received: Sequence[tuple[Node, Any]], given: Sequence[Any], create_graph: bool) -> None:
    """Add what nodes received into their `.grad`: in place, unless the gradient itself is recorded."""
    contributions: list[tuple[Tensor, Any]] = []
    alone = True
    for node, ct in received:
        holder = grad_holder(node)
        total = holder.grad
        value = ct if type(ct) is ndarray else unwrap_plain(ct)
        if total is None or create_graph or total._trace is not None or type(value) is Tensor:
            ct = conjugate(run.hand_over(node, ct, given))
            holder.grad = constant_tensor(ct) if total is None else total + ct
        else:
            contributions.append((total, conjugate(value)))
            alone = alone and node in run.owned and run.cts.get(node) is ct
    if not alone and len(contributions) > 1:  # one may be a gradient that was given and is now written to
        written = {id(memory_of(total._value)) for total, _ in contributions}
        contributions = [(t, own(ct) if id(memory_of(ct)) in written else ct) for t, ct in contributions]
    for total, ct in contributions:
        add_in_place(total, ct)


def memory_of(array: Any) -> Any:
    """Return what owns the memory of an array."""
    base = getattr(array, "base", None)
    while base is not None:
        array, base = base, getattr(base, "base", None)
    return array


def add_in_place(total: Tensor, ct: Any) -> None:
    """Add into a plain Tensor's own buffer, or into a copy if somebody else relies on that."""
    if may_overwrite(total._value, total._kept):
        total._value += ct
    else:
        total._value = total._value + ct
        total._kept = False


def grad_holder(node: Node) -> Any:
    """Return what holds the `.grad` of a node."""
    if type(node) is Leaf:
        return node
    if node.hooks is None:
        from wengert.traces.hooks import hooks_of

        return hooks_of(node)
    return node.hooks


def conjugate(ct: Any) -> Any:
    """Return the conjugate of a complex cotangent.

    Inside the engine cotangents are transposed without conjugation; the tape API shows the descent direction.
    """
    return ct.conj() if ct.dtype.kind == "c" else ct


def as_list(name: str, tensors: Any) -> list[Tensor]:
    """Return one Tensor or several as a list."""
    found = [tensors] if type(tensors) is Tensor else list(tensors) if isinstance(tensors, Iterable) else [tensors]
    for item in found:
        if type(item) is not Tensor:
            raise UsageError(name, f"a {type(item).__name__}", "Tensors are needed", "Make one with wengert.tensor")
    return found


def as_cotangents(given: Any, count: int) -> list[Any]:
    """Return the given cotangents, one for each output."""
    if given is None:
        return [None] * count
    found = list(given) if isinstance(given, list | tuple) and (count > 1 or len(given) == 1) else [given]
    if len(found) != count:
        needed = "one for each is needed"
        raise UsageError("backward", f"{len(found)} gradients for {count} outputs", needed, "Pass as many")
    return found
