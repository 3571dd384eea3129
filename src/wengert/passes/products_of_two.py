"""Sums of products of several factors as those of two, before graphs become code: in the order that takes least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.forms.labels import Labels
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.primitives.conversion import astype

LABELLED = frozenset(("labels", "subscripts", "optimize"))
"""Parameters that say nothing but labels, and in which order NumPy multiplies."""


def multiply_in_pairs(graph: Graph) -> Graph:
    """Return a graph without products of several factors; their sums are rounded as those of two then."""
    if not any(labels_of_several(equation) for equation in graph.equations):
        return graph
    return Graph(graph.inputs, [own for equation in graph.equations for own in in_pairs(equation)], graph.outputs)


def labels_of_several(equation: Equation) -> Labels | None:
    """Return the labels of a sum of products of several factors; None of all else, and where lengths are not known."""
    return labels_of_product(equation) if len(equation.inputs) > 2 else None


def labels_of_product(equation: Equation) -> Labels | None:
    """Return the labels of a sum of products; None of all else, and where lengths are not known, or none."""
    form = form_of(equation.primitive) if equation.primitive.registered else None
    if not isinstance(form, Contraction) or not LABELLED.issuperset(equation.params):
        return None
    shapes = [aval_of(x).shape for x in equation.inputs]
    return None if any(n < 1 for shape in shapes for n in shape) else form.record(shapes, equation.params)


def in_pairs(equation: Equation) -> list[Equation]:
    """Return a sum of products of several factors as those of two, in its dtype; other equations as they are."""
    labels = labels_of_several(equation)
    if labels is None:
        return [equation]
    (out,), found = equation.outputs, list[Equation]()

    def new(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any], v: Variable) -> Variable:
        found.append(Equation(primitive, tuple(inputs), params, (v,), equation.origin))
        return v

    def like(shape: tuple[int, ...]) -> Variable:
        return Variable.of(Aval(shape, out.dtype))

    factors = [
        x if aval_of(x).dtype == out.dtype else new(astype, [x], {"dtype": out.dtype}, like(aval_of(x).shape))
        for x in equation.inputs
    ]
    for n, (left, right, own) in enumerate(labels.pairs, 1):
        v = out if n == len(labels.pairs) else like(own.shape)
        made = new(PRIMITIVES["contract"], [factors[left], factors[right]], {"labels": own}, v)
        factors = [made, *[x for i, x in enumerate(factors) if i not in (left, right)]]
    return found
