"""Derivatives attached to solutions that somebody found: what every solver, of the library or not, is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.side_effects import Reach
from wengert.control.subgraphs import trace_closed, trace_within
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError
from wengert.implicit.matrix_free import NearbyFactors, OwnSolver, SolverOperands, holds_trace
from wengert.implicit.newton_iteration import LastStep
from wengert.implicit.solution import implicit_solution as solution_operation
from wengert.implicit.systems import FIXED, MINIMUM_NORM, TOLERANCE, weight_of_giving_up
from wengert.implicit.vectors import residual_vector, vector_of
from wengert.primitives.sparse.direct_solves import SYMMETRIC
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.primitives.sparse.storage_pattern import StoragePattern, pattern_of
from wengert.sparse.patterns.find_pattern import find_small_pattern
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.sparse_functions import jacobian as sparse_jacobian
from wengert.support.caches import Recent
from wengert.traces.batch import Batch
from wengert.transforms.reverse import stop_gradient
from wengert.transforms.tracing import trace_converting

SPARSE = "sparse"
SPARSE_JACOBIANS: Recent[Graph, tuple[Graph, StoragePattern]] = Recent(64)
FACTOR_LENGTHS: Recent[Graph, float] = Recent(64)
DENSE = 2000
"""Unknown numbers up to which Jacobians are made by default: they take 32 MB then, and their factors as much."""
SPARSE_SYSTEM, SPARSE_ELEMENT = 3e6, 5.7e3
"""Of how many unknown numbers the cube is that dense factors take as long by as a system with sparse factors, and an
element of these: of 1,024 equations with three numbers each, chained, a gradient takes 0.5 ms for 22, with others at
random 6 for 24, of 196 0.26 for 0.21 and 0.55 for 0.22; factors that are there already take half of it."""


def implicit_solution(
    residual: Callable[..., Any],
    solution: Any,
    args: tuple[Any, ...],
    *,
    name: str,
    tol: float = TOLERANCE,
    singular: str = FIXED,
    linear_solver: Any = "auto",
    symmetric: bool = False,
    success: Any = None,
    own_tol: float | None = None,
    jacobian: Callable[..., Any] | None = None,
    last: LastStep | None = None,
) -> Any:
    """Attach the derivatives to a solution that has been found: of x with residual(x, *args) = 0 by all that it reads.

    It is what every solver ends with, whoever wrote it. Find x by whatever means from `stop_gradient(args)`, so that
    nothing of that is recorded, and hand it on to this function: the result is the same x, with derivatives of any
    order, in every mode. Where nothing is differentiated it is x itself, and nothing is computed.

    Args:
        residual: `residual(x, *args)`: as many real numbers as x has, in any containers, zero at the solution. What it
            captures is differentiated like its arguments. It is traced once, so it may not look at elements.
        solution: x, in any containers of real or complex floats; no derivative of it is used.
        args: what the residual gets besides, in any containers.
        name: what the user called, for errors.
        tol: by how much of their terms the equations may be missed before a derivative is refused; see
            `wengert.implicit.systems.excess_of`.
        singular: "raise", or "minimum_norm" for the smallest of all derivatives where the Jacobian is singular; of
            functions that do not have this parameter, and `tol`, `FIXED`.
        linear_solver: what solves systems with the Jacobian: "dense", "sparse", the pattern of its stored elements, one
            of `METHODS`, an `OwnSolver`, or "auto": dense factors of up to `DENSE` unknown numbers, sparse ones where
            these take less, else "minres" or "gmres".
        symmetric: whether the Jacobian is symmetric, as that of a gradient is.
        success: whether the solver said that it has converged, if it did: what one that gave up has left may still be
            a solution, since solvers give up where rounding stops them, but has to be a better one.
        own_tol: by how much of their terms a solver of equations that did converge misses them at most.
        jacobian: from what the residual gets, and nothing else, to the transpose of its Jacobian by x, of shape (n, n),
            where it is known; by default it is made by forward mode.
        last: the step of Newton's method that led to the solution, whose factors are used again where it was small.

    Returns:
        The solution.

    Raises:
        NumericalError: when a derivative is asked for: x misses the equations, or their Jacobian is singular.
        ShapeError: there are not as many equations as unknown numbers.
        DtypeError: the solution has elements that are no floats.
        GraphError: the residual looked at the elements of an array.

    >>> import numpy as np
    >>> import wengert as wg
    >>> def square_root(a):
    ...     x = np.sqrt(wg.stop_gradient(a))
    ...     return implicit_solution(lambda x, a: x * x - a, x, (a,), name="square_root")
    >>> wg.grad(square_root)(4.0), wg.grad(wg.grad(square_root))(4.0)
    (0.25, -0.03125)
    """
    given, structure = flatten(args)
    places = [i for i, leaf in enumerate(given) if is_operand(leaf)]
    moving = any(type(leaf) is Tensor and leaf._trace is not None for leaf in given)
    if not moving and not reaches_traced(name, residual):
        return solution
    vector, leaves = vector_of(name, "a solution", stop_gradient(solution))
    start = vector.join(leaves)
    operands = [given[i] for i in places]
    heavier = [] if success is None else [weight_of_giving_up(success, start.dtype, tol, own_tol)]

    def columns(form: Callable[..., Any], x: Any, *values: Any) -> Sequence[Any]:
        inside = list(given)
        for place, value in zip(places, values, strict=False):
            inside[place] = value
        return [form(vector.pack(x), *unflatten(structure, inside))]

    def flat(form: Callable[..., Any], x: Any, *values: Any) -> Sequence[Any]:
        missed = residual_vector(name, vector, *columns(form, x, *values))
        for weight in values[len(places) : len(places) + len(heavier)]:  # the Jacobian stays as it is
            missed = missed + weight.astype(missed.dtype) * stop_gradient(missed)
        return [missed]

    operands += heavier
    if last is not None:
        operands += [last.packed, last.pivots, success]
    if isinstance(linear_solver, OwnSolver):
        operands += stop_gradient(list(linear_solver.captured.tensors))
    graph, captured = trace_closing(name, residual, flat, [start, *operands])
    linear_solver = NearbyFactors(-len(captured) - 3) if last is not None else with_places(linear_solver, len(captured))
    slope = None if jacobian is None else trace_closing(name, jacobian, columns, [start, *operands])[0]
    if linear_solver == "auto" and singular != MINIMUM_NORM and slope is None and takes_less(graph, name):
        linear_solver = SPARSE
    if linear_solver == SPARSE:
        slope, linear_solver = sparse_jacobian_graph(graph, name)
    params = {
        "residual": graph,
        "jacobian": slope,
        "lanes": (),
        "name": name,
        "tol": float(tol),
        "singular": singular,
        "linear": resolve_solver(linear_solver, vector.size, symmetric),
    }
    return vector.pack(apply(solution_operation, start, *operands, *captured, **params))


def with_places(solver: Any, captured: int) -> Any:
    """Return a solver that knows where among operands those are that it captures: last but for the residual's own."""
    if not isinstance(solver, OwnSolver):
        return solver
    own = solver.captured.tensors
    return solver._replace(captured=SolverOperands(own, -captured - len(own)))


def sparse_jacobian_graph(residual: Graph, name: str) -> tuple[Graph, StoragePattern]:
    """Return the graph of the elements of a Jacobian that may be other than zero, and where these are."""

    def trace() -> tuple[Graph, StoragePattern]:
        derivative, patterns = sparse_jacobian(lambda *values: evaluate(residual, values)[0]), list[StoragePattern]()

        def elements(*values: Any) -> list[Any]:
            matrix = derivative(*values)
            patterns.append(matrix._pattern if isinstance(matrix, SparseTensor) else pattern_of(matrix))
            return [matrix.data]  # an array where the equations are linear, with numbers that are known

        return trace_closed(elements, residual.inputs, name), patterns[-1]

    return SPARSE_JACOBIANS.find(residual, trace)


def takes_less(residual: Graph, name: str) -> bool:
    """Tell whether sparse factors of the Jacobian of a residual by its first input take less time than dense ones.

    Of more than `DENSE` unknown numbers they may take as much as those of so many.
    """
    size = residual.inputs[0].shape[0]
    if size**3 <= SPARSE_SYSTEM:
        return False
    most = (min(size, DENSE) ** 3 - SPARSE_SYSTEM) / SPARSE_ELEMENT
    return FACTOR_LENGTHS.find(residual, lambda: length_of_factors(residual, most, name)) < most


def length_of_factors(residual: Graph, most: float, name: str) -> float:
    """Return how many elements sparse factors of that Jacobian have, if pivots are on the diagonal.

    Values are made up, of which the diagonal is the largest. It is infinite if there are more than `most`, or nobody
    should try: large systems whose elements are not near the diagonal in any order that is quickly found.
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    examples = [np.zeros(x.shape, x.dtype) for x in residual.inputs]
    try:
        pattern = find_small_pattern(lambda *values: evaluate(residual, values)[0], examples, (0,), most, name)
    except GraphError:
        return np.inf
    size = examples[0].size
    if pattern is None or (size > DENSE and size * narrowest_band(pattern) ** 2 > DENSE**3):
        return np.inf
    matrix = pattern.to_scipy().astype(float) + size * sparse.eye_array(size)
    factor = splu(matrix.tocsc(), **dict(SYMMETRIC))
    return float(factor.L.nnz + factor.U.nnz)


def narrowest_band(pattern: Pattern) -> int:
    """Return how far from the diagonal elements are in the order that brings them near to it."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    places = np.argsort(reverse_cuthill_mckee(pattern.to_scipy().astype(float)))
    return int(np.max(np.abs(places[pattern.rows] - places[pattern.indices]), initial=0))


def resolve_solver(linear_solver: Any, size: int, symmetric: bool) -> Any:
    """Return what solves linear systems of a size, if that is left to us."""
    if linear_solver != "auto":
        return linear_solver
    if size <= DENSE:
        return "dense"
    return "minres" if symmetric else "gmres"


def trace_closing(
    name: str, function: Callable[..., Any], flat: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> tuple[Graph, list[Tensor]]:
    """Return the graph of a user's function, converted where it decides, and the Tensors that it captured.

    Args:
        name: of what was called, for errors.
        function: the user's.
        flat: calls a form of it, the first argument, with the operands.
        operands: inputs of the graph, before what is captured.
    """

    def trace(form: Callable[..., Any], reach: Reach) -> tuple[Graph, list[Tensor]]:
        lanes = [x for x, _ in reach.tensors if holds_trace(x, Batch)]  # by which it may decide
        return trace_within(reach, lambda *values: flat(form, *values), operands, name, lanes)

    return trace_converting(name, function, trace, by_elements=True)[0]


def is_operand(leaf: Any) -> bool:
    """Tell whether a leaf of the arguments is an array that equations read."""
    return type(leaf) is Tensor or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc")


def reaches_traced(name: str, function: Callable[..., Any]) -> bool:
    """Tell whether a function captures a Tensor that is differentiated, traced or in lanes."""
    return any(x._trace is not None for x, _ in Reach(name, function).tensors)
