"""Products whose axes are permuted afterwards: products by other labels, which write where the permutation would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.aval import aval_of
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import rename_known, throughout, variables
from wengert.passes.products_after_loops import labels_of_product
from wengert.primitives.shapes import transpose


@throughout
def permute_labels(graph: Graph) -> Graph:
    """Return a graph whose products write in C order what nobody reads but permuted, so that no copy follows.

    Permutations that other products read stay: they read what these are views of in place. So do results.
    """
    turned = [equation for equation in graph.equations if equation.primitive is transpose]
    if not turned:
        return graph
    made = {v: equation for equation in graph.equations for v in equation.outputs}
    uses = Counter([x for e in graph.equations for x in e.inputs if type(x) is Variable])
    uses.update(variables(graph.outputs))
    kept = variables(x for e in graph.equations if labels_of_product(e) is not None for x in e.inputs)
    kept |= variables(graph.outputs)
    found = {e: permuted_product(e, made) for e in turned if uses[e.inputs[0]] == 1 and e.outputs[0] not in kept}
    known = {e.outputs[0]: product.outputs[0] for e, product in found.items() if product is not None}
    if not known:
        return graph
    equations = [found.get(e) or with_inputs(e, rename_known(known, e.inputs)) for e in graph.equations]
    return eliminate_dead(Graph(graph.inputs, equations, graph.outputs))


def with_inputs(equation: Equation, inputs: tuple[Any, ...]) -> Equation:
    """Return an equation of other operands; the same one if they are its own."""
    if inputs is equation.inputs:
        return equation
    return Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.origin)


def permuted_product(equation: Equation, made: Mapping[Variable, Equation]) -> Equation | None:
    """Return a permutation of a product of two factors as one product; None of all else."""
    (x,), (out,) = equation.inputs, equation.outputs
    product = made.get(x) if type(x) is Variable else None
    labels = None if product is None else labels_of_product(product)
    if product is None or labels is None or labels.relation is not None or labels.merged is not None:
        return None
    if len(product.inputs) != 2 or {aval_of(factor).dtype for factor in product.inputs} != {out.dtype}:
        return None
    axes = equation.params["axes"]
    result = labels.result[::-1] if axes is None else tuple([labels.result[axis] for axis in axes])
    params = {"labels": labels.replace(result=result)}
    return Equation(PRIMITIVES["contract"], product.inputs, params, (Variable.of(out.aval, out.name),), equation.origin)
