"""Checkpoints: keep no residuals of a function, and compute them again on the sweep.

While the function runs, each residual is replaced by its number. The first one that the sweep asks for makes the
function run again on the same arguments, which yields them all in the same order. Values that the function captures
get their gradients as ever, because the recorded graph is the ordinary one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from wengert.control.mutable_state import content_of, holder_of
from wengert.core.containers.tree_leaves import flatten, map_leaves
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.graph.identity import identity
from wengert.core.graph.variable import Variable
from wengert.core.memory.buffers import lend
from wengert.core.memory.views import base_and_path, lasting
from wengert.core.memory.write_watches import Witness, rebound
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.recording import next_level, recording_from, settings
from wengert.core.values.tensor import WATCHING, Tensor, is_staged, make_tensor, raw
from wengert.errors import GraphError
from wengert.support.hints import hint_parameters
from wengert.traces.calls import InGraph
from wengert.traces.dual import Dual
from wengert.traces.grad_modes import reviving, saved_tensors_hooks
from wengert.traces.staging import Staging
from wengert.transforms.boundary import name_of
from wengert.transforms.custom_rule import CustomRule
from wengert.transforms.transformed_function import Derived, make_transformed

Names = Mapping[Variable, tuple[str, int]]


def name_variables(equations: Sequence[Equation], arguments: Names) -> Names:
    """Return names for variables: those of the arguments, and of results by the place where they are computed."""
    results = {x: (f"result of {i}", place) for i, step in enumerate(equations) for place, x in enumerate(step.outputs)}
    return {**arguments, **results}


class Likeness:
    """Compare what two runs wrote down.

    Functions and objects that each run makes are alike if they are made of what is alike; what has no part that could
    be looked at is like itself alone. Pairs that have been met count as alike, as they may lead back to themselves.
    `first` and `second` name the variables of the runs; `variables_of` gives those that a Tensor is made of.
    """

    def __init__(self, first: Names, second: Names, variables_of: Callable[[Any], list[Variable]]) -> None:
        self.first = first
        self.second = second
        self.variables_of = variables_of
        self.met: dict[tuple[int, int], tuple[Any, Any]] = {}

    def of_equations(self, one: Equation, other: Equation) -> bool:
        """Tell whether two equations do the same with operands of the same names."""
        return (
            len(one.inputs) == len(other.inputs)
            and all(map(self.of_operands, one.inputs, other.inputs))
            and self.of_primitives(one.primitive, other.primitive)
            and self.of_values(dict(one.params), dict(other.params))
        )

    def of_graphs(self, one: Graph, other: Graph) -> bool:
        """Tell whether two graphs do the same with the same inputs."""
        if identity(one) == identity(other):
            return True
        first, second = (
            name_variables(x.equations, {v: ("input", i) for i, v in enumerate(x.inputs)}) for x in (one, other)
        )
        inner = Likeness(first, second, self.variables_of)
        return (
            [x.aval for x in one.inputs] == [x.aval for x in other.inputs]
            and len(one.equations) == len(other.equations)
            and len(one.outputs) == len(other.outputs)
            and all(map(inner.of_equations, one.equations, other.equations))
            and all(map(inner.of_operands, one.outputs, other.outputs))
        )

    def of_operands(self, one: Any, other: Any) -> bool:
        """Tell whether two operands are the same: variables of one name, or constants."""
        if type(one) is Variable and type(other) is Variable:
            return self.first.get(one, one) == self.second.get(other, other)
        return identity(one) == identity(other)

    def of_primitives(self, one: Primitive, other: Primitive) -> bool:
        """Tell whether two primitives are one; calls of functions with rules are made anew."""
        if isinstance(one, InGraph) and isinstance(other, InGraph):
            (known, made), (known_too, made_too) = one.fresh_call.likeness, other.fresh_call.likeness
            return bool(known == known_too) and self.of_values(made, made_too)
        return identity(one) == identity(other)

    def of_values(self, one: Any, other: Any) -> bool:
        """Tell whether two values may take each other's place."""
        if one is other or (id(one), id(other)) in self.met:
            return True
        if type(one) is not type(other):
            return False
        if type(one) is Tensor and (variables := self.variables_of(one)):
            found = self.variables_of(other)
            return len(variables) == len(found) and all(map(self.of_operands, variables, found))
        if type(one) is Graph:
            return self.of_graphs(one, other)
        parts, parts_too = (list(self.parts_of(x)) for x in (one, other))
        if not parts:
            return identity(one) == identity(other)
        self.met[id(one), id(other)] = one, other
        return len(parts) == len(parts_too) and all(map(self.of_values, parts, parts_too))

    def parts_of(self, value: Any) -> Iterator[Any]:
        """Yield what a value is made of; nothing for values that are compared as a whole."""
        if type(value) in (tuple, list):
            yield from (len(value), *value)
        elif type(value) is dict:
            yield from (list(value), *value.values())
        elif isinstance(value, Exception):
            yield vars(value).get("__notes__")  # the line that raises it; what it carries changes no gradient
        elif type(value) is FunctionType:
            cells = list(map(content_of, value.__closure__ or ()))
            yield from (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
        elif type(value) is MethodType:
            yield from (value.__func__, value.__self__)
        elif isinstance(value, CustomRule):
            yield value.functions if value.closures is None else value.closures.owner
        elif not isinstance(value, type) and (holder := holder_of(value, "")) is not None:
            yield holder.contents()


Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


class _Frame:
    """Hold one call: its arguments, how many residuals it has, and those computed again that no sweep has used yet.

    While the function runs its residuals are kept, because it may itself sweep what it records.
    """

    def __init__(self, function: Function, args: Any, kwargs: Any) -> None:
        self.function = function
        self.packing = settings().packing[-1] if settings().packing else None
        self.floor = settings().floor
        self.level = next_level()  # newer than the traces that its sweep may find ended
        self.variables: list[Variable] = []
        self.arguments = map_leaves(self.snapshot, (args, kwargs))
        self.running = True
        self.count = 0
        self.values: dict[int, Any] = {}
        self.prints: list[tuple[Any, ...]] = []
        self.traced: list[Equation] | None = None
        self.end = 0

    def snapshot(self, leaf: Any) -> Any:
        """Return what to keep of an argument so that no later write changes it."""
        if isinstance(leaf, np.ndarray):
            return leaf.copy(order="K")
        if type(leaf) is not Tensor:
            return leaf
        found = lasting(leaf)
        lend(found)
        self.variables += variables_of(found)
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
        self.traced = equations_of(result)
        self.end = 0 if self.traced is None else len(self.traced)

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

        variables: list[Variable] = []

        def restore_values(leaf: Any) -> Any:
            if type(leaf) is not _Kept:
                return leaf
            argument = leaf.restore()
            variables.extend(variables_of(argument))
            return argument

        args, kwargs = map_leaves(restore_values, self.arguments)
        start = 0 if self.traced is None else len(self.traced)
        with recording_from(self.floor), reviving(self.level), saved_tensors_hooks(collect, found.__getitem__):
            result = self.function(*args, **kwargs)
        if len(found) != self.count:
            raise self.change_error(f"saved {self.count} values at first and {len(found)} when run again")
        if not are_same_prints(self.prints, fingerprints(result)):
            raise self.change_error("returned something else when run again")
        if self.traced is not None and not self.traced_alike(self.traced[start:], variables):
            raise self.change_error("computed from other values when run again, or did something else")
        self.values = dict(enumerate(found))

    def traced_alike(self, again: list[Equation], variables: Sequence[Variable]) -> bool:
        """Tell whether equations traced when it ran again are those that its first run ended with.

        Arguments may have other variables then: those of a checkpoint inside another are computed again, too.
        """
        assert self.traced is not None
        first = self.traced[max(0, self.end - len(again)) : self.end]
        names = name_arguments(self.variables)
        compared = Likeness(
            name_variables(first, names), name_variables(again, names | name_arguments(variables)), variables_of
        )
        return len(first) == len(again) and all(map(compared.of_equations, first, again))

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


def equations_of(result: Any) -> list[Equation] | None:
    """Return the equations of the trace that a result belongs to, as they grow; None if it is not being traced."""
    for leaf in flatten(result)[0]:
        for trace, _ in traced_parts(leaf):
            return trace.equations
    return None


def traced_parts(value: Any) -> Iterator[tuple[Staging, Variable]]:
    """Yield the variables that a value, and what moves with it, are made of while traced, each with its trace."""
    pending = [value]
    while pending:
        part = pending.pop()
        if type(part) is not Tensor or part._trace is None:
            continue
        if isinstance(part._trace, Staging):
            yield part._trace, part._value
            continue
        if isinstance(part._trace, Dual):
            pending.append(part._node.tangent)
        pending.append(part._trace.below(part))


def variables_of(value: Any) -> list[Variable]:
    """Return the variables that a value is made of."""
    return [variable for _, variable in traced_parts(value)]


def name_arguments(variables: Sequence[Variable]) -> dict[Variable, tuple[str, int]]:
    """Return names for the variables of arguments, by their places."""
    return {x: ("argument", place) for place, x in enumerate(variables)}


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
        rebound(handle, witness.log[id(handle)][1])
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
        GraphError: `fun` writes to a Tensor that it captured, or, during the sweep, did something else the second time.

    >>> import wengert as wg
    >>> wg.grad(checkpoint(lambda x: np.sin(x) * x))(1.0) == wg.grad(lambda x: np.sin(x) * x)(1.0)
    True
    """
    require_callable("checkpoint", fun)
    return cast("Derived[P, R]", make_transformed("checkpoint", call_checkpointed, fun))


def call_checkpointed(fun: Function, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `checkpoint` makes gives for arguments."""
    frame = _Frame(fun, args, kwargs)
    with saved_tensors_hooks(frame.pack, frame.unpack):
        result = fun(*args, **kwargs) if WATCHING.stack else call_witnessed(fun, args, kwargs)
    frame.finish(result)
    return result
