"""Products as they are steps of a graph: with the views that factors are, and the sums that take them in."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from wengert.control.call import primitive as call
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.values.aval import UNKNOWN
from wengert.lowering.products import Views, index_of_view, labels_of_step, product_step, views_behind
from wengert.lowering.rules.lower import uses_of
from wengert.passes.equations import distinct_variables
from wengert.primitives.arithmetic import add
from wengert.primitives.indexing.parts import assign

Origins = Mapping[Equation, Sequence[Equation]]
"""The equations of a graph that others stand for."""


def with_product_steps(graph: Graph) -> tuple[Graph, Origins]:
    """Return a graph as products are steps of it, and what its equations stand for.

    Products read what factors are views of where it is, and add what is added to them: these are calls of views, a
    product, and a sum.
    """
    made = {v: equation for equation in graph.equations for v in equation.outputs}
    steps = with_sums(graph, made)
    bodies = {last: with_views(body, made, steps) for last, body in steps.items()}
    origins = {as_call(body): body for body in bodies.values() if len(body) > 1}
    calls = {body[-1]: equation for equation, body in origins.items()}
    inner = {own for body in steps.values() for own in body[:-1]}
    equations = [calls.get(e, e) for e in graph.equations if e not in inner]
    views = {own for body in origins.values() for own in body if own.primitive.view}
    return without_unused(graph, equations, views), origins


def with_sums(graph: Graph, made: Views) -> dict[Equation, list[Equation]]:
    """Return the products of a graph that are steps, each with the sum that its step computes, by the last of these.

    What is added to a part of an array is added in place if nothing else reads the array, without the part by itself.
    """
    found = {e: [e] for e in graph.equations if labels_of_step(e) is not None}
    uses = uses_of(graph)
    products = {e.outputs[0]: e for e in found if uses[e.outputs[0]] == 1}
    for addition in [e for e in graph.equations if e.primitive is add]:
        for x in reversed(addition.inputs):
            product = products.get(x) if type(x) is Variable else None
            if product is not None and product_step((product, addition)) is not None:
                del found[product]
                found[addition] = [product, addition]
                break
    for addition in [e for e in graph.equations if e.primitive is assign]:
        base, value = addition.inputs[:2]
        behind = [*views_behind(value, made), addition]
        source = value if len(behind) == 1 else behind[0].inputs[0]
        product = products.get(source) if type(source) is Variable and type(base) is Variable else None
        if product in found and uses[base] == 1 and all(uses[e.outputs[0]] == 1 for e in behind[:-1]):
            body = [product, *behind]
            if product_step(body) is not None:
                del found[product]
                found[addition] = body
    return found


def as_call(body: Sequence[Equation]) -> Equation:
    """Return the call of some equations, the last of which gives its result."""
    bound = {v for equation in body for v in equation.outputs}
    inputs = tuple([x for x in distinct_variables(x for e in body for x in e.inputs) if x not in bound])
    graph, last = Graph(inputs, tuple(body), body[-1].outputs), body[-1]
    return Equation(call, inputs, {"graph": graph, "name": "product"}, last.outputs, last.origin)


def with_views(body: list[Equation], made: Views, steps: Container[Equation]) -> list[Equation]:
    """Return a product, and its sum, behind the views that its factors are, as far as a step reads these in place.

    What is added has to be in memory, so it is no view of the step's own.
    """
    product, labels = body[0], labels_of_step(body[0])
    added = {x for equation in body[1:] for x in equation.inputs if type(x) is Variable}
    assert labels is not None
    factors = list(zip(product.inputs, map(labels.lengths_of, labels.operands), strict=True))
    views: list[Equation] = []
    for x, shape in factors:
        chain = views_behind(x, made)
        while chain and not (
            added.isdisjoint([view.outputs[0] for view in chain])
            and is_read_in_place(chain, shape, product.outputs[0].dtype, made, steps)
        ):
            chain = chain[1:]
        views += [view for view in chain if view not in views]
    whole = [*views, *body]
    return whole if views and product_step(whole) is not None else body


def is_read_in_place(
    views: Sequence[Equation], shape: tuple[int, ...], dtype: Any, made: Views, steps: Container[Equation]
) -> bool:
    """Tell whether a product can, and should, read the last of some views where their source lies in memory.

    What kernels compute they write where products read it, so parts of that are no views.

    Args:
        views: the equations.
        shape: in which the product reads it.
        dtype: of the product.
        made: by what variables are bound.
        steps: the equations whose results steps leave in memory.
    """
    (source,), (x,) = views[0].inputs, views[-1].outputs
    if type(source) is not Variable or not source.dtype == x.dtype == dtype or UNKNOWN in source.shape:
        return False
    size, whole = math.prod(shape), math.prod(source.shape)
    is_there = source not in made or made[source].primitive.structured or made[source] in steps
    if size > whole or (size < whole and not is_there):
        return False
    found = index_of_view(source, views, shape)
    return found is not None and len(found.terms) == sum([n > 1 for n in shape])


def without_unused(graph: Graph, equations: Sequence[Equation], views: Container[Equation]) -> Graph:
    """Return a graph of other equations, without those among some views whose results nothing reads."""
    live = {x for x in graph.outputs if type(x) is Variable}
    kept: list[Equation] = []
    for equation in reversed(equations):
        if equation not in views or not live.isdisjoint(equation.outputs):
            live.update([x for x in equation.inputs if type(x) is Variable])
            kept.append(equation)
    return Graph(graph.inputs, kept[::-1], graph.outputs)


def originals(part: Graph, origins: Origins) -> Graph:
    """Return a part of a graph of products as steps in the equations of the graph that this was made of."""
    given = set(part.inputs)
    found = [own for equation in part.equations for own in origins.get(equation, (equation,))]
    distinct = [equation for equation in dict.fromkeys(found) if given.isdisjoint(equation.outputs)]
    return Graph(part.inputs, distinct, part.outputs)
