"""Checkpoints: keep no residuals of a function, and compute them again on the sweep.

While the function runs, each residual is replaced by its number. The first one that the sweep asks for makes the
function run again on the same arguments, which yields them all in the same order. Values that the function captures
get their gradients as ever, because the recorded graph is the ordinary one.

While the function is being traced it becomes one equation, whose reverse computes what it needs again from the operands
(`wengert.control.call.Recomputation`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from wengert.control.call import checkpoint as operation
from wengert.control.call import stage_call
from wengert.control.repeated_containers import UnchangedContainers
from wengert.control.traced_bodies import own_results
from wengert.core.containers.tree_leaves import flatten, map_leaves, unflatten
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.memory.buffers import lend
from wengert.core.memory.views import base_and_path, lasting
from wengert.core.memory.write_watches import Witness, rebind_handle
from wengert.core.values.recording import FLOOR, PACKING, next_level, recording_from
from wengert.core.values.tensor import WATCHING, Tensor, is_staged, make_tensor, raw
from wengert.errors import GraphError
from wengert.support.hints import hint_parameters
from wengert.traces.grad_modes import reviving, saved_tensors_hooks
from wengert.transforms.boundary import name_of
from wengert.transforms.transformed_function import Derived, make_transformed

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


class _Frame:
    """Hold one call: its arguments, how many residuals it has, and those computed again that no sweep has used yet.

    While the function runs its residuals are kept, because it may itself sweep what it records.
    """

    def __init__(self, function: Function, args: Any, kwargs: Any) -> None:
        self.function = function
        self.packing = PACKING.get()[-1] if PACKING.get() else None
        self.floor = float(FLOOR.get())
        self.level = next_level()  # newer than the traces that its sweep may find ended
        self.arguments = map_leaves(self.snapshot, (args, kwargs))
        self.running = True
        self.count = 0
        self.values: dict[int, Any] = {}
        self.prints: list[tuple[Any, ...]] = []

    def snapshot(self, leaf: Any) -> Any:
        """Return what to keep of an argument so that no later write changes it."""
        if isinstance(leaf, np.ndarray):
            return leaf.copy(order="K")
        if type(leaf) is not Tensor:
            return leaf
        found = lasting(leaf)
        lend(found)
        return _Kept(found, self.packing)

    def pack(self, tensor: Tensor) -> int:
        """Give a residual its number."""
        number = self.count
        self.count += 1
        if self.running:
            self.values[number] = tensor
        return number

    def finish(self, result: Any) -> None:
        """Let the residuals go, and remember what the function returned."""
        self.running = False
        self.values = {}
        self.prints = fingerprints(result)

    def unpack(self, number: int) -> Any:
        """Return a residual, computing all of them if it is not there; it goes to the sweep that asks."""
        if self.running:
            return self.values[number]
        if number not in self.values:
            self.recompute()
        return self.values.pop(number)

    def recompute(self) -> None:
        """Run the function again and collect its residuals."""
        found: list[Any] = []

        def collect(tensor: Tensor) -> int:
            found.append(tensor)
            return len(found) - 1

        args, kwargs = map_leaves(lambda leaf: leaf.restore() if type(leaf) is _Kept else leaf, self.arguments)
        with recording_from(self.floor), reviving(self.level), saved_tensors_hooks(collect, found.__getitem__):
            result = self.function(*args, **kwargs)
        if len(found) != self.count:
            raise self.change_error(f"saved {self.count} values at first and {len(found)} when run again")
        if not are_same_prints(self.prints, fingerprints(result)):
            raise self.change_error("returned something else when run again")
        self.values = dict(enumerate(found))

    @staticmethod
    def change_error(what: str) -> GraphError:
        """Return the error about a function that did something else the second time."""
        given = f"a function that {what}"
        action = "Pass random numbers and other state as arguments, and change captured values after the sweep"
        return GraphError("checkpoint", given, "a function that does the same each time is needed", action)


def fingerprints(result: Any) -> list[tuple[Any, ...]]:
    """Return what tells results apart without keeping them: shapes, sums, and the rounding that sums may differ by."""
    found = []
    for leaf in flatten(result)[0]:
        array = np.zeros(leaf.shape) if is_staged(leaf) else np.asarray(raw(leaf))  # traced, it has no numbers yet
        numbers = array if array.dtype.kind in "biufc" else np.zeros(())
        with np.errstate(all="ignore"):
            size = np.abs(numbers).sum()
            rounding = 100 * np.finfo(array.dtype).eps * size if array.dtype.kind in "fc" else 0.0
            found.append((array.shape, numbers.sum(), size, rounding))
    return found


def are_same_prints(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> bool:
    """Tell whether two fingerprints are of the same results, up to rounding."""
    return len(first) == len(second) and all(
        a[0] == b[0] and np.allclose(a[1:3], b[1:3], rtol=0, atol=a[3], equal_nan=True)
        for a, b in zip(first, second, strict=True)
    )


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


def call_witnessed(fun: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function, which must not write to Tensors that it captured: it would find other values the next time."""
    own = {id(base_and_path(x)[0]) for x in flatten((args, kwargs))[0] if type(x) is Tensor}
    witness = Witness()
    with witness:
        result = fun(*args, **kwargs)
    written = [x for x in witness.written_handles() if id(x) not in own]
    for handle in written:
        rebind_handle(handle, witness.log[id(handle)][1])
    if written:
        given = f"a function that writes to a Tensor of shape {written[0].shape} that it captured"
        needed = "a function that does the same each time is needed"
        raise GraphError(name_of("checkpoint", fun), given, needed, "Write into a copy and return it")
    return result


@hint_parameters("checkpoint")
def checkpoint(fun: Callable[P, R]) -> Derived[P, R]:
    """Return a function that keeps no residuals and runs again during the sweep: less memory for more time.

    Checkpoints nest. Saved-tensor hooks around the call are applied to its arguments, those inside it to what is
    saved there.

    Args:
        fun: a function that does the same each time it is called with the same arguments.

    Returns:
        A function of the same arguments and results.

    Raises:
        GraphError: `fun` writes to a Tensor that it captured, changes a list among its arguments in a graph, or, during
            the sweep, did something else the second time.

    >>> import wengert as wg
    >>> wg.grad(checkpoint(lambda x: np.sin(x) * x))(1.0) == wg.grad(lambda x: np.sin(x) * x)(1.0)
    True
    """
    require_callable("checkpoint", fun)
    return cast("Derived[P, R]", make_transformed("checkpoint", call_checkpointed, fun))


UNCHANGED_IN_GRAPHS = "in a graph, a function that runs again must leave its arguments as they are"


def call_checkpointed(fun: Function, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `checkpoint` makes gives for arguments."""
    leaves, structure = flatten((args, kwargs))
    staged = list(map(is_staged, leaves))
    if not any(staged):
        frame = _Frame(fun, args, kwargs)
        with saved_tensors_hooks(frame.pack, frame.unpack):
            result = fun(*args, **kwargs) if WATCHING.stack else call_witnessed(fun, args, kwargs)
        if not any(map(is_staged, flatten(result)[0])):
            frame.finish(result)
            found, containers = flatten(result)
            return unflatten(containers, own_results(found))

    def call(given: tuple[Sequence[Any], Mapping[str, Any]]) -> Any:
        with UnchangedContainers(name_of("checkpoint", fun), UNCHANGED_IN_GRAPHS, given):
            return fun(*given[0], **given[1])

    return stage_call(operation, fun, call, leaves, structure, staged)
