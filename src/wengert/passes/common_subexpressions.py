"""Common sub-expressions: each is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.identity import Elements, identity, identity_of_params
from wengert.core.graph.loop_spec import is_counted
from wengert.core.memory.memory_layout import is_full
from wengert.passes.equations import (
    Known,
    enter,
    everywhere,
    holds_graphs,
    loop_parameters,
    rename_known,
    throughout,
    with_equations,
)
from wengert.primitives.conversion import barrier, overwritten

BARRIERS = barrier, overwritten
"""What gives the value of its last operand with other derivatives."""
LARGE = 1 << 16
"""Bytes of a literal array from which those of the same elements become one array, which is known by its place then."""
SAMPLE = 64
"""Elements of a large literal that tell most apart."""


@everywhere
def merge_common(graph: Graph) -> Graph:
    """Compute each expression once, in the graphs inside, too."""
    return merge_equal(graph)


def merge_equal(graph: Graph) -> Graph:
    """Compute each expression once: primitives are functions, so equal operands give equal results.

    Variables are told apart by identity. Literals are equal if their bits and dtypes are; a Python number differs from
    a NumPy one, whose dtype is stronger. Large ones that are equal become one, so that programs hold, read and keep
    the identity that a function and its gradient multiply by once.
    """
    arrays: dict[Any, Any] = {}
    seen: dict[Any, tuple[Variable, ...]] = {}
    known: Known = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = share_large(arrays, rename_known(known, equation.inputs))
        key = (
            equation.primitive,
            identity_of_params(equation.params),
            *[x if type(x) is Variable else literal_key(x) for x in inputs],
        )
        earlier = seen.setdefault(key, equation.outputs)
        if earlier is not equation.outputs:
            known.update(zip(equation.outputs, earlier, strict=True))
        else:
            kept.append(equation if inputs is equation.inputs else equation.using(inputs))
    return with_equations(graph, kept) if not known else Graph(graph.inputs, kept, rename_known(known, graph.outputs))


def share_large(arrays: dict[Any, Any], operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return operands with the first array of the same elements for each large literal; the same tuple if these are."""
    if not any(map(is_large, operands)):
        return operands
    shared = tuple([arrays.setdefault(elements_key(x), x) if is_large(x) else x for x in operands])
    return operands if all(map(is_, shared, operands)) else shared


def is_large(value: Any) -> bool:
    """Tell whether an operand is a literal whose elements it takes long to digest."""
    return type(value) is np.ndarray and value.nbytes > LARGE and not is_full(value)


def elements_key(array: Any) -> tuple[Any, ...]:
    """Return what large literals share that may take each other's place: their elements, where they lie alike."""
    return array.strides, array.flat[:: array.size // SAMPLE].tobytes(), Elements(array)


def literal_key(value: Any) -> Any:
    """Return what tells literals apart: their bits, or of large ones which array they are."""
    return ("array", id(value)) if is_large(value) else identity(value)


# Before graphs become code: no derivative is taken any more


@throughout
def drop_barriers(graph: Graph) -> Graph:
    """Replace values with other derivatives, or none, by the values: what is on both sides is computed once.

    What gives the derivatives is not computed for their sake.
    """
    if not any(equation.primitive in BARRIERS for equation in graph.equations):
        return graph
    known: Known = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = rename_known(known, equation.inputs)
        if equation.primitive in BARRIERS and is_same_array(inputs[-1], equation.outputs[0]):
            known[equation.outputs[0]] = inputs[-1]
        else:
            kept.append(equation if inputs is equation.inputs else equation.using(inputs))
    return Graph(graph.inputs, kept, rename_known(known, graph.outputs))


def is_same_array(value: object, result: Variable) -> bool:
    """Tell whether a result lies in memory as an operand does, and gives way to other dtypes as it does."""
    return type(value) is Variable and value.aval == result.aval and value.strides == result.strides


def share_constants(graph: Graph) -> Graph:
    """Let loops read each value once, and compute once in them what is the same then.

    What has been moved out of a loop twice may have become one value there, and what loops in it read of it, too.
    """
    if not holds_graphs(graph):
        return graph
    return Graph(graph.inputs, list(map(with_shared_constants, graph.equations)), graph.outputs)


def with_shared_constants(equation: Equation) -> Equation:
    """Return an equation whose loop, and those inside, have each constant once."""
    if not equation.primitive.structured:
        return equation
    params = equation.params
    if loop_parameters(equation) is params:
        limit = int(is_counted(params))
        own = params["spec"].constants
        sources = same_constants(equation.inputs[limit : limit + own], params["body"].inputs)
        kept = [i for i, source in enumerate(sources) if i == source]
        if len(kept) < own:
            cond = params["cond"]
            changed = {
                **params,
                "body": merge_equal(with_sources(params["body"], sources)),
                "cond": None if cond is None else with_sources(cond, sources),
                "spec": params["spec"].holding(len(kept), params["spec"].carried),
            }
            places = [*range(limit), *(limit + i for i in kept), *range(limit + own, len(equation.inputs))]
            inputs = tuple([equation.inputs[i] for i in places])
            equation = Equation(equation.primitive, inputs, changed, equation.outputs, equation.origin)
    return enter(equation, share_constants)


def same_constants(operands: Sequence[Any], inputs: Sequence[Variable]) -> list[int]:
    """Return for each of the constants which is the first of the same value, in the same memory order."""
    first: dict[Any, int] = {}
    pairs = zip(operands, inputs, strict=False)
    return [first.setdefault((x, v.aval, v.strides) if type(x) is Variable else i, i) for i, (x, v) in enumerate(pairs)]


def with_sources(graph: Graph, sources: Sequence[int]) -> Graph:
    """Return a graph whose first inputs are those alone that are sources, in place of the others, too."""
    known = {graph.inputs[i]: graph.inputs[source] for i, source in enumerate(sources) if i != source}
    inputs = [*(graph.inputs[i] for i, source in enumerate(sources) if i == source), *graph.inputs[len(sources) :]]
    equations = [equation.using(rename_known(known, equation.inputs)) for equation in graph.equations]
    return Graph(inputs, equations, rename_known(known, graph.outputs))
