"""The primitive: an integral over the unit interval, whose derivatives are integrals with meshes of their own.

A mesh on which an integrand is summed exactly may say nothing of its derivatives: where a parameter of an oscillating
part is 0 there is nothing to see of it. So the rules are written in integrals again, of what the integrand's tangent or
cotangents are, each as exact as was asked for, and derivatives of any order, in any order of modes, follow.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.control.structured_checks import require
from wengert.control.subgraphs import trace_closed
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.forms.view_forms import Region
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.primitives.primitive import Primitive, register
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.scipy.integrate._integrals.meshes import Accuracy, integrate
from wengert.support.caches import Recent
from wengert.traces.rules.calls import StandInGraph, readable, value_below
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back, stop_gradient
from wengert.transforms.vmap import vmap

NAME = "quad"
Values = Sequence[Any]
Params = Mapping[str, Any]
GRAPHS: Recent[Any, Graph] = Recent(64)
"""What was made of graphs of integrands: their tangents, cotangents and lanes, and what integrates them."""


class Integral(Primitive):
    """Be the integral of a function of places in the unit interval, and how far it may be off: two rows.

    Operands are the absolute and the relative error wanted, and what the function reads besides. Parameters:
    `integrand`, its graph, from a place and the others to a vector; `limit`, `norm` and `groups`, as of
    `meshes.Accuracy`.
    """

    kind = "opaque"

    def __init__(self) -> None:
        super().__init__("integral", self.compute, form=Region(lambda _inputs, params: [rows_like(params)]))
        self.batch = self.batch_lanes

    def compute(self, *operands: Any, **params: Any) -> Any:
        """Return the integral of plain arrays; warn where it is not as exact as wanted."""
        found = in_graph.call(*operands, **params)
        warn_if_inexact(found, params["limit"])
        return found

    def lasting(self, _inputs: Values, _outputs: Sequence[Variable], _in_vain: Counter[Any]) -> Primitive:
        """Return what stands for it in a graph."""
        return in_graph

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save the operands."""
        return False, lambda operand: True

    def batch_lanes(
        self, _primitive: Primitive, size: int, operands: Values, batched: Sequence[bool], params: Params
    ) -> Any:
        """Integrate all lanes on one mesh, by the smallest of their tolerances."""
        wanted = [np.min(x, axis=0) if own else x for x, own in zip(operands[:2], batched[:2], strict=True)]
        graph = in_lanes(params["integrand"], size, tuple(batched[2:]))
        further = {**params, "integrand": graph, "groups": size * params["groups"]}
        found = apply(self, *wanted, *operands[2:], **further)
        return np.moveaxis(np.reshape(found, (2, size, -1)), 1, 0)

    def vjp(self, ct: Any, out: Any, operands: Values, avals: Sequence[Aval | None], params: Params) -> Values:
        """Integrate the cotangents of what the integrand reads."""
        wanted = tuple(aval is not None and 0 not in aval.shape for aval in avals[2:])
        results: list[Any] = [None] * len(operands)
        if any(wanted):
            given, tolerances = list(map(readable, operands[2:])), map(readable, operands[:2])
            weights, size = scale_directions([readable(ct)[0]])
            further = {
                **params,
                "integrand": cotangents(params["integrand"], wanted),
                "groups": min(params["groups"], 1),
            }
            found = apply(self, *tolerances, *given, *weights, **further)[0] * size
            place = 0
            for i, aval in enumerate(avals[2:], 2):
                if aval is not None and 0 not in aval.shape:
                    count = int(np.prod(aval.shape))
                    part = np.reshape(found[place : place + count], aval.shape)
                    results[i] = value_below(part if part.dtype == aval.dtype else cast(part, aval.dtype))
                    place += count
        return results

    def jvp(self, tangents: Values, out: Any, *operands: Any, **params: Any) -> Any:
        """Integrate the tangent of the integrand."""
        moved = tuple(t is not None and np.size(t) > 0 for t in tangents[2:])
        if not any(moved):
            return np.zeros(out.shape, out.dtype)
        given, tolerances = list(map(readable, operands[2:])), map(readable, operands[:2])
        directions, size = scale_directions([readable(t) for t, flag in zip(tangents[2:], moved, strict=True) if flag])
        further = {**params, "integrand": tangent(params["integrand"], moved)}
        found = apply(self, *tolerances, *given, *directions, **further)[0] * size
        return value_below(np.stack([found, np.zeros_like(found)]))


def scale_directions(directions: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return tangents or cotangents whose largest number is 1, for which tolerances mean something, and its size."""
    sizes = [np.max(np.abs(stop_gradient(x)), initial=0.0) for x in directions]
    size = stop_gradient(np.max(np.stack([np.reshape(x, ()).astype(float) for x in sizes])))
    size = np.where((size > 0) & np.isfinite(size), size, 1.0)
    return [cast(x / size, x.dtype) for x in directions], size


def cast(x: Any, dtype: Any) -> Any:
    """Return real or complex numbers as others; the imaginary part of such a cotangent is none."""
    dtype = np.dtype(dtype)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    return x if x.dtype == dtype else x.astype(dtype)


def warn_if_inexact(rows: Any, limit: int) -> None:
    """Warn if integrals are known not to be as exact as wanted."""
    if is_concrete(rows):
        error = raw(rows)[1].real
        if np.any(error < 0):
            from scipy.integrate import IntegrationWarning  # with all else of it, which takes 50 ms

            text = f"quad: {limit} intervals leave an error of {-np.min(error):.2g}; a smooth integrand is needed. "
            text += "Pass points where it is not smooth, or a larger limit; derivatives of it count, too"
            warnings.warn(text, IntegrationWarning, stacklevel=user_stacklevel())


def kept_graph(key: Any, function: Callable[..., Values], examples: Sequence[Any]) -> Graph:
    """Return the graph of a function, made once for a key."""
    return GRAPHS.find(key, lambda: trace_closed(function, examples, NAME))


def like(variable: Any, size: int | None = None) -> Variable:
    """Return a variable like another one, with lanes in front where a size is given."""
    aval = aval_of(variable)
    return Variable(aval.shape if size is None else (size, *aval.shape), aval.dtype)


def moving(graph: Graph, x: Any, values: Values, flags: Sequence[bool]) -> tuple[Callable[..., Any], list[Any]]:
    """Return an integrand at a place as a function of the flagged operands alone, and what they are."""

    def function(*some: Any) -> Any:
        rest = iter(some)
        inside = [next(rest) if flag else value for value, flag in zip(values, flags, strict=True)]
        return evaluate(graph, (x, *inside))[0]

    return function, [value for value, flag in zip(values, flags, strict=True) if flag]


def tangent(graph: Graph, moved: tuple[bool, ...]) -> Graph:
    """Return the graph of the tangent of an integrand, from its inputs and the tangents of the flagged operands."""

    def push(x: Any, *given: Any) -> Values:
        function, primals = moving(graph, x, given[: len(moved)], moved)
        return [push_forward(NAME, function, primals, given[len(moved) :])[1]]

    further = [like(v) for v, flag in zip(graph.inputs[1:], moved, strict=True) if flag]
    return kept_graph((graph, "tangent", moved), push, [*map(like, graph.inputs), *further])


def cotangents(graph: Graph, wanted: tuple[bool, ...]) -> Graph:
    """Return the graph of the cotangents of the flagged operands, one vector, from inputs and a cotangent."""

    def pull(x: Any, *given: Any) -> Values:
        function, primals = moving(graph, x, given[:-1], wanted)
        found = pull_back(NAME, function, primals, any_result=True)[1](given[-1])
        parts = [np.reshape(np.asarray(part) if type(part) is not Tensor else part, (-1,)) for part in found]
        return [np.concatenate(parts) if len(parts) > 1 else parts[0]]

    examples = [*map(like, graph.inputs), like(graph.outputs[0])]
    return kept_graph((graph, "cotangents", wanted), pull, examples)


def in_lanes(graph: Graph, size: int, flags: tuple[bool, ...]) -> Graph:
    """Return the graph of an integrand for all lanes, one after the other; the flagged operands have them in front."""

    def run(x: Any, *given: Any) -> Values:
        axes = tuple(0 if flag else None for flag in flags)
        return [np.reshape(vmap(lambda *xs: evaluate(graph, (x, *xs))[0], axes)(*given), (-1,))]

    inputs = [like(v, size if flag else None) for v, flag in zip(graph.inputs[1:], flags, strict=True)]
    return kept_graph((graph, "lanes", size, flags), run, [like(graph.inputs[0]), *inputs])


def integrating(integrand: Graph, limit: int, norm: str, groups: int) -> Graph:
    """Return the graph from tolerances, and what an integrand reads, to its integral and how far that may be off."""

    def run(epsabs: Any, epsrel: Any, *given: Any) -> Values:
        def function(places: Any) -> Any:
            return vmap(lambda x: evaluate(integrand, (x, *given))[0])(places)

        return [integrate(function, Accuracy(epsabs, epsrel, limit, norm, groups))]

    number = Variable((), np.dtype(float))
    return kept_graph(
        (integrand, "integral", limit, norm, groups), run, [number, like(number), *map(like, integrand.inputs[1:])]
    )


def rows_like(params: Params) -> Variable:
    """Return a variable for the integral and its error."""
    aval = aval_of(params["integrand"].outputs[0])
    return Variable((2, *aval.shape), np.dtype(aval.dtype))


class IntegralInGraph(StandInGraph):
    """Stand for an integral in a graph: a loop that cuts intervals, or the same again as derivatives are taken."""

    def __init__(self) -> None:
        form = Region(lambda _inputs, params: [rows_like(params)])
        super().__init__("integral", self.call, form=form)

    def check(self, inputs: Values, params: Params) -> None:
        """Check that the integrand reads the operands."""
        graph = params["integrand"]
        require(isinstance(graph, Graph), f"integrand={graph!r:.80}", "a graph is needed")
        for own, x in zip(graph.inputs[1:], inputs[2:], strict=True):
            shape = aval_of(x).shape
            require(own.shape == shape, f"an operand of shape {shape}", f"{own.shape} is needed")

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as the loop."""
        return lowering.call(integrating(**params))

    def call(self, *operands: Any, **params: Any) -> Any:
        """Return the integral; what differentiates sees it as it is outside of graphs."""
        if any(type(value) is Tensor for value in operands):
            return apply(integral, *operands, **params)
        return np.array(evaluate(integrating(**params), operands)[0])


integral = Integral()
in_graph = IntegralInGraph()
register(in_graph)
