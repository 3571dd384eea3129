"""A call of a function on a tape of its own, as reverse mode sweeps it, and what its result may be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import origin_of, protect_argument, require_apart
from wengert.control.repeated_containers import watch_repeated
from wengert.control.store_analysis import never_writes
from wengert.core.containers.tree_leaves import flatten, map_leaves, unflatten, unflatten_each
from wengert.core.diagnostics.source_positions import caller
from wengert.core.diagnostics.store_guard import call_user
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.recording import next_level
from wengert.core.values.tensor import Tensor, innermost_trace
from wengert.errors import DtypeError, ShapeError
from wengert.traces.nodes import Node
from wengert.traces.sweep import sweep
from wengert.traces.tape import Tape, make_leaf
from wengert.transforms.boundary import (
    alive_result,
    as_given,
    declare_holomorphic,
    inner_value,
    name_of,
    require_argument,
    require_complex,
    result_below,
    result_example,
    selected_leaves,
    split_aux,
)

Function = Callable[..., Any]
HELD = (np.ndarray, Tensor)
ONE = np.float64(1)


class Recording:
    """Run a function on leaves of a new tape, and keep what is needed to sweep it.

    Attributes:
        leaves: the differentiated leaves as given.
        outputs: the leaves of the function's result.
        structure: the containers of the result.
        aux: the auxiliary result, as seen one level below.
        masks: whether the last sweep passed a mask.
        steep: whether it may have passed an infinite partial.
        reached: which of the leaves the last sweep came to; the others got zeros.

    Where the arguments are copies, `originals` are what they are copies of, which may share memory. With `at_once`
    nothing of the user's runs between the function and the sweep.
    """

    def __init__(
        self,
        name: str,
        function: Function,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: Sequence[int],
        has_aux: bool,
        tape: type[Tape] = Tape,
        originals: Sequence[Any] = (),
        at_once: bool = False,
    ) -> None:
        self.name = name
        self.tape = tape(next_level(), functools.partial(name_of, name, function))
        if at_once:
            self.tape.unwritten = functools.partial(never_writes, function, (args, kwargs))
        self.masks = self.steep = False
        self.reached: list[bool] = []
        self.leaves: list[Any] = []
        self.structures: list[tuple[Any, int]] = []
        self.inputs: list[Tensor] = []
        arguments = list(args)
        place = caller(2)
        for position in argnums:
            require_argument(name, args[position])
            found, structure = flatten(args[position])
            chosen = selected_leaves(name, function, position, args[position], found)
            traced = [make_leaf(inner_value(leaf), self.tape, place) for leaf in chosen]
            for leaf, tensor in zip(found, traced, strict=True):
                tensor._kept = isinstance(leaf, HELD)
                protect_argument(tensor, leaf)
            self.leaves += found
            self.inputs += traced
            self.structures.append((structure, len(found)))
            arguments[position] = unflatten(structure, traced)
        self.nodes: list[Node] = [tensor._node for tensor in self.inputs]
        try:
            with watch_repeated(name, (originals or args, kwargs), (arguments, kwargs)):
                result = call_user(function, arguments, kwargs)
            if [x._node for x in self.inputs] != self.nodes:
                self.require_apart(originals or args, arguments)
            self.aux = None
            if has_aux:
                result, aux = split_aux(name, result)
                self.aux = map_leaves(self.in_given_form, aux)
            found, self.structure = leaves_of_result(result)
            self.outputs = [alive_result(leaf, self.tape) if type(leaf) is Tensor else leaf for leaf in found]
        finally:
            self.tape.end()

    def require_apart(self, args: Sequence[Any], arguments: Sequence[Any]) -> None:
        """Raise if the function wrote to an argument that shares memory with another."""
        changed = {id(x) for x, node in zip(self.inputs, self.nodes, strict=True) if x._node is not node}
        leaves = flatten(tuple(arguments))[0]
        written = {i: origin_of(x) for i, x in enumerate(leaves) if id(x) in changed}
        require_apart(self.name, flatten(tuple(args))[0], written)

    def in_given_form(self, leaf: Any) -> Any:
        """Return a leaf of a result in the form in which the differentiated leaves were given."""
        if type(leaf) is not Tensor:
            return leaf
        return as_given(result_below(leaf, self.tape), result_example(self.leaves))

    def values(self) -> list[Any]:
        """Return the leaves of the function's result as they are one level below."""
        return [result_below(leaf, self.tape) for leaf in self.outputs]

    def result(self) -> Any:
        """Return the function's result."""
        return unflatten(self.structure, [self.in_given_form(leaf) for leaf in self.outputs])

    def cotangents(
        self, cts: Sequence[Any], *, retain: bool, watch: Callable[[Node, Any], None] | None = None
    ) -> tuple[Any, ...]:
        """Sweep from cotangents of the outputs; return those of the differentiated arguments, in their form."""
        return self.in_containers(list(map(as_given, self.sweep(cts, retain=retain, watch=watch), self.leaves)))

    def sweep(
        self,
        cts: Sequence[Any],
        *,
        retain: bool,
        watch: Callable[[Node, Any], None] | None = None,
        masked: bool = False,
        steep: bool = False,
    ) -> list[Any]:
        """Sweep from cotangents of the outputs; return those of the differentiated leaves as they are below."""
        seeds = []
        for leaf, ct in zip(self.outputs, cts, strict=True):
            if type(leaf) is Tensor and leaf._trace is self.tape and ct is not None:
                seeds.append((leaf._node, ct))
        run = sweep(seeds, retain=retain, watch=watch, masked=masked, steep=steep)
        self.masks, self.steep = run.masks, run.steep
        found = list(map(run.result, self.nodes))
        self.reached = [ct is not None for ct in found]
        return [
            np.zeros(node.shape, node.dtype)[()] if ct is None else ct
            for node, ct in zip(self.nodes, found, strict=True)
        ]

    def in_containers(self, found: Sequence[Any]) -> tuple[Any, ...]:
        """Return one value for each differentiated leaf in the containers of their arguments."""
        return tuple(unflatten_each(self.structures, found))


def single_output(name: str, run: Recording) -> Any:
    """Return the one array that a function returned."""
    if run.structure is not None or len(run.outputs) != 1:
        given = f"a function that returned a container of {len(run.outputs)} values"
        needed = "one array is needed"
        raise ShapeError(name, given, needed, "Return further results through has_aux=True, or use wengert.vjp")
    return run.outputs[0]


def scalar_output(name: str, run: Recording, holomorphic: bool) -> Any:
    """Return the one scalar that a function returned, checking that its dtype suits."""
    output = single_output(name, run)
    if type(output) is Tensor and output._trace is run.tape and not holomorphic:  # as most are
        node = output._node
        if node.shape == () and node.dtype.kind == "f":
            return output
    shape = np.shape(output) if type(output) is not Tensor else output.shape
    if shape != ():
        action = "Reduce it, for instance with .sum(), or use wengert.elementwise_grad, wengert.vjp or wengert.jacobian"
        raise ShapeError(name, f"a function that returned shape {shape}", "a scalar, of shape (), is needed", action)
    require_kind(name, run, output, holomorphic)
    return output


def require_kind(name: str, run: Recording, output: Any, holomorphic: bool) -> None:
    """Raise a DtypeError unless an output is real, or with `holomorphic` it and the arguments are complex."""
    if holomorphic:
        require_complex(name, "an argument", run.leaves, True, "Convert it with .astype(complex)")
    dtype = output.dtype if isinstance(output, Tensor) else np.asarray(output).dtype
    if (dtype.kind == "c") != holomorphic and (holomorphic or type(output) is Tensor):
        raise DtypeError(
            name,
            f"a function that returned dtype {dtype} with holomorphic={holomorphic}",
            "a complex result is needed" if holomorphic else "a real result is needed",
            "Leave holomorphic out, or pass complex arguments"
            if holomorphic
            else declare_holomorphic(run.leaves, "Return .real, .imag or abs() of it"),
        )


def ones_for(output: Any) -> Any:
    """Return the cotangent of ones for an output."""
    if type(output) is not Tensor or innermost_trace(output) is None:
        return None
    if type(output._value) is np.float64:  # as most are
        return ONE
    shape = output.shape
    return np.ones(shape, output.dtype) if shape else output.dtype.type(1)
