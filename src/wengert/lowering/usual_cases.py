"""Routines that are graphs of other operations in the case that is usual: eigenvalues apart, matrices of full rank.

What a routine does where eigenvalues are one, or rank is missing, is NumPy's: the program fails there, as it does where
a matrix is singular, and the routine is evaluated.

Such a graph is a step of its own, but where it decomposes a matrix that other equations decompose, too, as the gradient
of eigenvalues does: there it stands among them, and the matrix is decomposed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import UNKNOWN, aval_of
from wengert.core.values.dispatch import apply
from wengert.lowering.convolution_graphs import convolution_graph
from wengert.lowering.matrix_steps import LEAST_SHARED
from wengert.lowering.program_steps import with_results_like
from wengert.passes.equations import Known, rename_known
from wengert.passes.inlining import splice
from wengert.primitives.linear_algebra.determinants import det, slogdet
from wengert.primitives.linear_algebra.eigenvalues import eigh, eigvalsh, scipy_eigvalsh
from wengert.primitives.linear_algebra.inverses import inv, solve
from wengert.primitives.linear_algebra.singular_values import scipy_svdvals, svd, svdvals
from wengert.primitives.selection import required
from wengert.traces.staging import stage_function

VALUES: dict[Primitive, int] = {eigh: 0, svd: 1}
"""What decomposes matrices into vectors and values, and which result the values are."""
BY_VECTORS: dict[Primitive, Primitive] = {
    **dict.fromkeys((eigh, eigvalsh, scipy_eigvalsh), eigh),
    **dict.fromkeys((svd, svdvals, scipy_svdvals), svd),
}
"""What is read off a decomposition."""
BY_ELIMINATION = frozenset((det, slogdet, inv, solve))
"""What `shared_factors` has one factor for."""

Decomposition = tuple[Primitive, Any, tuple[Any, ...]]


def is_usual(graph: Graph) -> bool:
    """Tell whether a graph is one of a usual case, in which that has been asked for."""
    return any(equation.primitive is required for equation in graph.equations)


def usual_graph(equation: Equation, is_inner: bool) -> Graph | None:
    """Return what an equation computes in the usual case, as a graph; None if its primitive does not say that of it.

    An output behind its results, if there is one, is a truth that has to hold. An equation may be in such a graph.
    """
    results = equation.outputs
    if any(UNKNOWN in aval_of(x).shape for x in (*equation.inputs, *results)):
        return None
    usual = equation.primitive.usual_case or convolution_graph(equation, is_inner)
    if usual is None:
        return None

    def write(operands: Sequence[Any]) -> list[Any]:
        answer = usual(*operands, **equation.params)
        if answer is None:
            return []
        found, holds = answer
        values = found if isinstance(found, tuple) else (found,)
        like = zip(values, results, strict=True)
        own = [np.broadcast_to(x, v.shape).astype(v.dtype) for x, v in like]
        return own if holds is None else [*own, apply(required, holds)]

    orders = [x.strides if type(x) is Variable else None for x in equation.inputs]
    name = equation.primitive.name
    graph, captured = stage_function(write, list(map(aval_of, equation.inputs)), name, orders=orders)
    return graph if graph.outputs and not captured else None


def decomposition_of(equation: Equation) -> Decomposition | None:
    """Return what decomposes a matrix, the matrix, which triangle is read and how values lie; None if nothing does."""
    primitive, matrix = equation.primitive, equation.inputs[0] if equation.inputs else None
    if type(matrix) is not Variable or equation.params.get("full_matrices"):
        return None
    if primitive in BY_ELIMINATION:
        return (solve, matrix, ()) if matrix.shape[-1] >= LEAST_SHARED else None
    if primitive not in BY_VECTORS:
        return None
    values = equation.outputs[VALUES.get(primitive, 0)]
    return BY_VECTORS[primitive], matrix, (equation.params.get("uplo"), values.strides)


def decompositions_inside(equation: Equation, usual: Graph) -> list[Decomposition]:
    """Return how the usual case of an equation decomposes the operands of the equation."""
    operands = dict(zip(usual.inputs, equation.inputs, strict=True))
    found = [decomposition_of(own) for own in usual.equations]
    return [(by, operands[x], side) for by, x, side in filter(None, found) if type(operands.get(x)) is Variable]


def with_shared_decompositions(graph: Graph, usual: Mapping[Equation, Graph]) -> tuple[Graph, int] | None:
    """Return a graph that decomposes no matrix twice, with usual cases in it, and how many truths have to hold.

    Args:
        graph: the graph.
        usual: the usual cases of some of its equations, which have what has to hold behind their results.

    Returns:
        the graph, whose last outputs these truths are, and their number; None if nothing would be shared.
    """
    inside = {e: decompositions_inside(e, own) for e, own in usual.items()}
    counts = Counter(filter(None, map(decomposition_of, graph.equations)))
    shared = {x for x, n in (counts + Counter(x for own in inside.values() for x in own)).items() if n > 1}
    written = {e for e, own in inside.items() if not shared.isdisjoint(own)}
    if not written and not any(by in VALUES for by, _, _ in shared):
        return None
    known: Known = {}
    equations, truths = list[Equation](), list[Any]()
    for equation in graph.equations:
        inputs = rename_known(known, equation.inputs)
        if equation in written:
            own, count = usual[equation], len(equation.outputs)
            body = with_results_like(own, [*equation.outputs, *own.outputs[count:]])
            results = splice(body, inputs, equations)
            known.update(zip(equation.outputs, results[:count], strict=True))
            truths += results[count:]
        else:
            equations.append(equation if inputs is equation.inputs else equation.using(inputs))
    outputs = [*rename_known(known, graph.outputs), *truths]
    return decomposed_once(Graph(graph.inputs, equations, outputs)), len(truths)


def decomposed_once(graph: Graph) -> Graph:
    """Return a graph that reads eigenvalues, or singular ones, off decompositions with vectors that it has, too."""
    with_vectors = {decomposition_of(e): e for e in graph.equations if e.primitive in VALUES}
    known: Known = {}
    kept, made = list[Equation](), dict[Any, Sequence[Variable]]()
    for equation in graph.equations:
        source = decomposition_of(equation)
        whole = None if source is None else with_vectors.get(source)
        if whole is None:
            inputs = rename_known(known, equation.inputs)
            kept.append(equation if inputs is equation.inputs else equation.using(inputs))
            continue
        if source not in made:
            made[source] = [Variable.of(v.aval, v.name, v.strides) for v in whole.outputs]
            inputs = rename_known(known, whole.inputs)
            kept.append(Equation(whole.primitive, inputs, whole.params, tuple(made[source]), equation.origin))
        results = made[source]
        if equation.primitive not in VALUES:
            results = [results[VALUES[whole.primitive]]]
        known.update(zip(equation.outputs, results, strict=True))
    return Graph(graph.inputs, kept, rename_known(known, graph.outputs))
