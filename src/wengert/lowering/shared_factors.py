"""Systems, inverses and determinants of one matrix, or one stack: factorised once, whichever have its transpose.

That is how a gradient solves with the matrix of the value, and divides by a determinant. One that no round of a loop
changes is factorised before the loop. Only programs do so: what one could not compute, as of a singular matrix, NumPy
computes by the equations as they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.lowering.lane_factors import factorisation, is_tiled, solution, tiles_of
from wengert.lowering.matrix_steps import LEAST_SHARED, MatrixRoutine, matrix_routine
from wengert.lowering.product_bodies import without_unused
from wengert.passes.equations import holds_graphs, loop_parameters, rename_known
from wengert.passes.hoisting import hoist
from wengert.primitives.linear_algebra.determinants import det, slogdet
from wengert.primitives.linear_algebra.inverses import inv, solve
from wengert.primitives.linear_algebra.lu import lu_factor, lu_solve
from wengert.primitives.shapes import place_diagonal, transpose
from wengert.traces.staging import stage_function

BY_FACTORS = frozenset((solve, inv, slogdet, det))
"""What is computed by the factors of a matrix, with the same errors of singular ones."""
INDICES = np.dtype(np.int32)


def with_shared_factors(graph: Graph) -> tuple[Graph, Mapping[Equation, MatrixRoutine]]:
    """Return a graph that factorises matrices once that several equations have, and what routines are steps of it."""
    uses = [e for e in graph.equations if e.primitive in BY_FACTORS and is_of_one_matrix(e)]
    if len(uses) < 2:
        return graph, {}
    definitions = {e.outputs[0]: e for e in graph.equations if e.primitive is transpose}
    groups: dict[Variable, list[tuple[Equation, bool]]] = {}
    for equation in uses:
        matrix, is_transposed = source_of(equation.inputs[0], definitions)
        groups.setdefault(matrix, []).append((equation, is_transposed))
    steps: dict[Equation, MatrixRoutine] = {}
    instead: dict[Equation, Sequence[Equation]] = {}
    for matrix, members in groups.items():
        if len(members) > 1:
            found = replacements(matrix, members)
            routines = {e: routine_of(e, matrix) for own in found.values() for e in own if e.primitive.routine}
            known = {e: routine for e, routine in routines.items() if routine is not None}
            if len(known) == len(routines):
                steps |= known
                instead |= found
    if not instead:
        return graph, {}
    equations = [own for e in graph.equations for own in instead.get(e, (e,))]
    return without_unused(graph, equations, set(definitions.values())), steps


def with_factors_before_loops(graph: Graph) -> tuple[Graph, Mapping[Equation, Equation]]:
    """Return a graph that factorises before loops what their rounds solve systems with, and which loops are which."""
    if not holds_graphs(graph):
        return graph, {}
    equations, loops = list[Equation](), dict[Equation, Equation]()
    for equation in graph.equations:
        own = factors_before(equation)
        equations += own
        if len(own) > 1:
            loops[own[-1]] = equation
    return (Graph(graph.inputs, equations, graph.outputs), loops) if loops else (graph, {})


def factors_before(equation: Equation) -> list[Equation]:
    """Return the factors of matrices that no round of a loop changes, and the loop, which has them."""
    params = loop_parameters(equation)
    if params is None or params is not equation.params:
        return [equation]
    body, _ = with_factors_before_loops(params["body"])
    definitions = {e.outputs[0]: e for e in body.equations if e.primitive is transpose}
    steady = set(body.inputs[: params["spec"].constants])
    instead: dict[Equation, Sequence[Equation]] = {}
    known: dict[Variable, Equation] = {}
    for inner in body.equations:
        if inner.primitive is solve and is_of_one_matrix(inner):
            matrix, is_transposed = source_of(inner.inputs[0], definitions)
            if matrix in steady:
                packed, pivots = known.setdefault(matrix, factor_equation(matrix, inner)).outputs
                instead[inner] = by_factors(inner, packed, pivots, is_transposed)
    if not instead and body is params["body"]:
        return [equation]
    inside = [*known.values(), *[own for e in body.equations for own in instead.get(e, (e,))]]
    body = without_unused(body, inside, set(definitions.values()))
    loop = Equation(equation.primitive, equation.inputs, {**params, "body": body}, equation.outputs, equation.origin)
    found = hoist(loop, is_safe=True)
    return [equation] if found is None or found[1] else found[0]


def is_of_one_matrix(equation: Equation) -> bool:
    """Tell whether what an equation does is done of one matrix that is not known, or of one stack, natively."""
    matrix = equation.inputs[0]
    if type(matrix) is not Variable or matrix.shape[-1] < LEAST_SHARED:
        return False
    if equation.primitive in OF_DIAGONAL and matrix.dtype.kind == "c":
        return False
    stack, most = matrix.shape[:-2], len(matrix.shape)
    is_of_it = all(v.shape[: most - 2] == stack and len(v.shape) <= most for v in equation.outputs)
    return is_of_it and matrix_routine(equation) is not None


def source_of(matrix: Variable, definitions: Mapping[Variable, Equation]) -> tuple[Variable, bool]:
    """Return what a matrix is, or is the transpose of, and whether it is that."""
    is_transposed, most = False, len(matrix.shape)
    *stack, row, column = range(most)
    while matrix in definitions and type(definitions[matrix].inputs[0]) is Variable:
        equation = definitions[matrix]
        axes = equation.params["axes"]
        if sorted(axes[-2:]) != [row, column]:
            break
        is_transposed ^= tuple(axes) == (*stack, column, row)
        matrix = equation.inputs[0]
    return matrix, is_transposed


def replacements(matrix: Variable, members: Sequence[tuple[Equation, bool]]) -> dict[Equation, list[Equation]]:
    """Return what equations with one matrix are by its factors; the first has these, too."""
    first = members[0][0]
    factors = factor_equation(matrix, first, tiles_of(matrix))
    packed, pivots = factors.outputs
    found = {e: by_factors(e, packed, pivots, is_transposed) for e, is_transposed in members}
    found[first].insert(0, factors)
    return found


def routine_of(equation: Equation, matrix: Variable) -> MatrixRoutine | None:
    """Return an equation of factors of a matrix as a step; None if it is none."""
    if equation.primitive is lu_factor and is_tiled(equation.outputs[1]):
        return factorisation(equation)
    if equation.primitive is lu_solve and is_tiled(equation.inputs[2]):
        return solution(equation, matrix.shape[:-2])
    return matrix_routine(equation)


def factor_equation(matrix: Variable, reader: Equation, outputs: tuple[Variable, Variable] | None = None) -> Equation:
    """Return what factorises the matrix of an equation."""
    if outputs is None:
        outputs = Variable.of(aval_of(matrix)), Variable.of(Aval(matrix.shape[:-1], INDICES))
    return Equation(lu_factor, (matrix,), {"check_finite": False}, outputs, reader.origin)


def by_factors(equation: Equation, packed: Variable, pivots: Variable, is_transposed: bool) -> list[Equation]:
    """Return what an equation is by the factors of its matrix, or of the transpose."""

    def make_equation(
        primitive: Primitive, inputs: tuple[Any, ...], outputs: Sequence[Variable], **params: Any
    ) -> Equation:
        return Equation(primitive, inputs, params, tuple(outputs), equation.origin)

    if equation.primitive in OF_DIAGONAL:
        of_diagonal, stack = OF_DIAGONAL[equation.primitive], equation.inputs[0].shape[:-2]

        def function(operands: Sequence[Any]) -> tuple[Any, ...]:
            return of_diagonal(*diagonal_and_exchanges(operands, stack))

        graph, _ = stage_function(function, [aval_of(packed), aval_of(pivots)], equation.primitive.name)
        known: dict[Any, Any] = dict(
            zip((*graph.inputs, *graph.outputs), (packed, pivots, *equation.outputs), strict=True)
        )
        return [
            make_equation(e.primitive, rename_known(known, e.inputs), [known.get(v, v) for v in e.outputs], **e.params)
            for e in graph.equations
        ]
    before, right = list[Equation](), equation.inputs[-1]
    if equation.primitive is inv:
        right, shape = Variable.of(aval_of(equation.inputs[0])), equation.inputs[0].shape
        ones, row = np.broadcast_to(np.ones((), packed.dtype), shape[:-1]), len(shape) - 2
        by: dict[str, Any] = {"shape": shape, "offset": 0, "axis1": row, "axis2": row + 1}
        before = [make_equation(place_diagonal, (ones,), [right], **by)]
    options = {"trans": int(is_transposed), "check_finite": False}
    return [*before, make_equation(lu_solve, (packed, right, pivots), equation.outputs, **options)]


def diagonal_and_exchanges(factors: Sequence[Any], stack: Sequence[int]) -> tuple[Any, Any]:
    """Return the diagonals of triangular factors, and with which row each was exchanged, for each matrix of a stack."""
    packed, exchanges = factors
    if exchanges.dtype == INDICES:
        return np.diagonal(packed, axis1=-2, axis2=-1), exchanges
    found = np.diagonal(packed, axis1=1, axis2=2), np.transpose(exchanges, (0, 2, 1))
    rows, count = exchanges.shape[1], math.prod(stack)
    elements, exchanges = (np.reshape(np.reshape(x, (-1, rows))[:count], (*stack, rows)) for x in found)
    return elements, exchanges


def signs_and_logarithms(elements: Any, exchanges: Any) -> tuple[Any, Any]:
    """Return the sign of a determinant and the logarithm of its size, from triangular factors and exchanges of rows."""
    moved = np.sum(exchanges != np.arange(exchanges.shape[-1], dtype=exchanges.dtype), axis=-1)
    signs = np.prod(np.where(elements < 0, -1.0, 1.0).astype(elements.dtype), axis=-1)
    return signs * (1 - 2 * (moved % 2)).astype(elements.dtype), np.sum(np.log(np.abs(elements)), axis=-1)


def determinants(elements: Any, exchanges: Any) -> tuple[Any]:
    """Return a determinant as NumPy computes it, which no product of diagonal elements on the way can overflow."""
    sign, logarithm = signs_and_logarithms(elements, exchanges)
    return (sign * np.exp(logarithm),)


OF_DIAGONAL = {slogdet: signs_and_logarithms, det: determinants}
"""What is computed by the diagonal of a factor alone, and how."""
