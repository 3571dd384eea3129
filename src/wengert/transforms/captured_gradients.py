"""Gradients with respect to what a function closes over: for the time of the call others stand in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from types import FunctionType, MethodType
from typing import Any

from wengert.control.code_owners import is_library
from wengert.core.containers.tree_leaves import flatten, places_in
from wengert.core.diagnostics.argument_checks import shown
from wengert.core.memory.write_watches import rebind_handle, rebinding, snapshot
from wengert.core.values.aval import is_differentiable
from wengert.core.values.frozen import unfreeze
from wengert.core.values.tensor import WATCHING, Tensor
from wengert.errors import DtypeError, GraphError, UsageError
from wengert.support.attributes import attribute, own_attributes
from wengert.support.function_contents import closure_of, defaults_of, reach, variables_of
from wengert.support.scopes import Restore, StateScope, calling_all
from wengert.traces.staging import Staging

LIBRARIES = ("numpy", "scipy", "wengert", "builtins")


class CapturedSubstitution(StateScope):
    """Let others stand for captured Tensors, wherever these are reached from, while a function runs and is swept.

    A context, at whose end the captured Tensors are again what they were.

    Attributes:
        called: takes what is to stand for them, as a list, and then the arguments of the function.
    """

    def __init__(self, name: str, function: Callable[..., Any], captured: Sequence[Tensor]) -> None:
        super().__init__()
        self.name = name
        self.captured = captured
        self.ends: list[Restore] = []
        self.starts: Sequence[Tensor] = ()

        @functools.wraps(function)
        def call(standing: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
            self.begin(standing)
            return function(*args, **kwargs)

        self.called = call

    def begin(self, standing: Sequence[Tensor]) -> None:
        """Let the others stand for the captured Tensors from now on."""
        for handle in self.captured:
            before = snapshot(handle)
            self.ends += rebinding(handle, before), partial(setattr, handle, "_kept", before._kept)
            unfreeze(handle)
        self.starts = [snapshot(start) for start in standing]
        for handle, start in zip(self.captured, standing, strict=True):
            rebind_handle(handle, start)

    def undo(self) -> Restore:
        """Return what lets the captured Tensors be what they were; `begin` is when others begin to stand for them."""
        return calling_all(self.ends)

    def require_unwritten(self) -> None:
        """Raise if captured Tensors were written to, while others stand for them."""
        pairs = zip(self.captured, self.starts, strict=False)
        written = [
            i for i, (x, start) in enumerate(pairs) if x._node is not start._node or x._value is not start._value
        ]
        if written:
            given = f"a write to captured[{written[0]}], of shape {self.captured[written[0]].shape}"
            needed = "what is differentiated must stay as it is"
            raise GraphError(self.name, given, needed, "Write to a copy (x.copy()) in the function")


def captured_tensors(name: str, function: Callable[..., Any], captured: Any) -> dict[str, Tensor] | list[Tensor]:
    """Return the Tensors that are meant: those listed, or with True those that require grad, by how they are spelled.

    Raises:
        UsageError: something else is listed, a Tensor twice, or nothing is captured.
    """
    if captured is not True:
        return listed_tensors(name, captured)
    found = {place: x for place, x in reached_tensors(function) if needs_gradient(x)}
    if not found:
        given = "captured=True for a function that captures no Tensor that requires grad"
        raise UsageError(name, given, "some are needed", "List them: captured=[w, b]")
    return found


def listed_tensors(name: str, captured: Any) -> list[Tensor]:
    """Return a list of different Tensors, or raise a UsageError."""
    items = captured if isinstance(captured, list | tuple) else [captured]
    for item in items:
        if type(item) is not Tensor:
            given = f"{shown(item)} in captured"
            raise UsageError(name, given, "a list of Tensors, or True, is needed", "Make it one with wengert.tensor")
    for i, item in enumerate(items):
        if not is_differentiable(item.dtype):
            needed = "a float or complex dtype is needed to differentiate"
            raise DtypeError(name, f"dtype {item.dtype} at captured[{i}]", needed, "Convert it with .astype(float)")
    if len({id(x) for x in items}) < len(items):
        raise UsageError(name, "a Tensor that is listed twice in captured", "each once is needed", "Leave it out")
    return list(items)


def needs_gradient(tensor: Tensor) -> bool:
    """Tell whether a Tensor requires grad, or stands for one that does while something is being traced."""
    for watch in WATCHING.stack:  # the outermost piece that it is an input of
        if id(tensor) in watch.log:
            tensor = watch.log[id(tensor)][1]
            break
    trace = tensor._trace
    if not isinstance(trace, Staging):
        return tensor.requires_grad
    found = [item for item in trace.captured.values() if item.variable is tensor._value]
    # a Tensor from outside that stands for its own variable meanwhile is one that is being differentiated
    return any(item.tensor._value is item.variable or needs_gradient(item.tensor) for item in found)


def reached_tensors(function: Any) -> Iterator[tuple[str, Tensor]]:
    """Return the Tensors that a function reaches through its variables, and how they are spelled."""
    reached = reach([("", function)], parts_of, own=itemgetter(1))
    return (pair for pair in reached if type(pair[1]) is Tensor)


def parts_of(pair: tuple[str, Any]) -> list[tuple[str, Any]]:
    """Return what a function, a container or an object of the user's holds, and how that is spelled."""
    name, value = pair
    if type(value) is Tensor:
        return []
    if isinstance(value, FunctionType):
        variables = closure_of(value) if is_library(value.__code__) else variables_of(value)
        return variables + defaults_of(value) + wrapped_by(value)
    if isinstance(value, MethodType):
        return [("self", value.__self__), ("", value.__func__)]
    if isinstance(value, functools.partial):
        return [("", x) for x in (value.func, *value.args, value.keywords)]
    leaves, structure = flatten(value)
    if structure is not None:
        return list(zip(places_in(structure, name), leaves, strict=True))
    if issubclass(type(value), type) or type(value).__module__.partition(".")[0] in LIBRARIES:
        return wrapped_by(value)
    return [(f"{name}.{key}", item) for key, item in own_attributes(value).items()]


def wrapped_by(value: Any) -> list[tuple[str, Any]]:
    """Return the function that another one, or a jitted one, was made of."""
    wrapped = attribute(value, "__wrapped__")
    return [] if wrapped is None else [("", wrapped)]
