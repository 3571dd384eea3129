"""Products whose axes are permuted afterwards: products by other labels, which write where the permutation would."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from wengert.core.forms.abstract_evaluation import avals_and_strides
from wengert.core.forms.form import is_elementwise
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.memory.memory_layout import lie_alike
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.aval import aval_of
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import rename_known, throughout, variables
from wengert.passes.products_after_loops import labels_of_product
from wengert.primitives.shapes import reshape, transpose


@throughout
def permute_labels(graph: Graph) -> Graph:
    """Return a graph whose products write in C order what nobody reads but permuted, so that no copy follows.

    That holds where all readers compute element by element or reshape, and give results that lie in memory as before.
    Permutations that others read stay: products read in place what these are views of, and sums round as memory lies.
    """
    turned = [e for e in graph.equations if e.primitive is transpose and type(e.inputs[0]) is Variable]
    if not turned:
        return graph
    made = {v: equation for equation in graph.equations for v in equation.outputs}
    readers: dict[Any, list[Equation]] = defaultdict(list)
    for equation in graph.equations:
        for x in variables(equation.inputs):
            readers[x].append(equation)
    results = variables(graph.outputs)
    found = {
        e: permuted_product(e, made)
        for e in turned
        if readers[e.inputs[0]] == [e]
        and results.isdisjoint((e.inputs[0], e.outputs[0]))
        and all(lies_alike_of(e.outputs[0], reader) for reader in readers[e.outputs[0]])
    }
    known = {e.outputs[0]: product.outputs[0] for e, product in found.items() if product is not None}
    if not known:
        return graph
    equations = [found.get(e) or rename_operands(e, known) for e in graph.equations]
    return eliminate_dead(Graph(graph.inputs, equations, graph.outputs))


def lies_alike_of(permuted: Variable, reader: Equation) -> bool:
    """Tell whether an equation gives the same, lying in memory as it does, of a permutation's elements in C order."""
    if not is_elementwise(reader.primitive) and reader.primitive is not reshape:
        return False
    inputs = rename_known({permuted: Variable.of(permuted.aval)}, reader.inputs)
    strides = avals_and_strides(reader.primitive, inputs, reader.params)[1] or [None] * len(reader.outputs)
    return all(lie_alike(v.shape, v.strides, x) for v, x in zip(reader.outputs, strides, strict=True))


def rename_operands(equation: Equation, known: dict[Variable, Any]) -> Equation:
    """Return an equation whose operands have other names where these are known; the same one if none has."""
    inputs = rename_known(known, equation.inputs)
    return equation if inputs is equation.inputs else equation.using(inputs)


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
