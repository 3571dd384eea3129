"""Linear systems in a Jacobian that is never made: solved by products with it, by SciPy's methods or those of the user.

Right-hand sides are scaled to unit length, since methods stop at absolute tolerances and squares of small numbers
underflow. What has not converged is an error: derivatives have no other way to say so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.control.subgraphs import trace_closed
from wengert.core.forms.batching import lead
from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import Like
from wengert.core.graph.graph import Graph, evaluate, fitting
from wengert.core.memory.views import current
from wengert.core.primitives.opaque_kinds import Constant
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import NumericalError
from wengert.implicit.factored import substituted
from wengert.implicit.solver_call import in_plain_form, solve_without_derivatives
from wengert.implicit.systems import require_solved
from wengert.implicit.vectors import Vector
from wengert.primitives.linear_algebra.matrices import length_of
from wengert.support.caches import Recent
from wengert.support.records import NamedTuple
from wengert.traces.jet import Jet
from wengert.transforms.captured_gradients import CapturedSubstitution
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back
from wengert.transforms.traced_form import EAGER, TracedForm, call_form

Values = Sequence[Any]
METHODS = ("cg", "minres", "gmres", "lsmr")
SYMMETRIC = ("cg", "minres")
"""Those for symmetric systems, whose transposes are the same."""
PRECISION = 1e-10
"""By how much of the right-hand side systems may be missed, in double precision; of single precision 1e-5."""
ALLOWED = 1e-6
"""By how much of a right-hand side a user's solver may miss a system."""
REFINEMENTS = 3
"""How often MINRES solves for what it has missed, at most: it stops by |A| |x|, large where A is nearly singular."""
RESTART = 50
"""Vectors that GMRES keeps."""


@dataclasses.dataclass(frozen=True, eq=False)
class SolverOperands:
    """Hold the Tensors that a user's solver captures, which are operands of equations: it may run when they are gone.

    Attributes:
        tensors: what is captured.
        place: where the first of them is among the operands, from the end.
    """

    tensors: Sequence[Tensor]
    place: int = 0

    def of(self, operands: Values) -> Values:
        """Return what stands for them."""
        start = len(operands) + self.place
        return operands[start : start + len(self.tensors)]


class OwnSolver(NamedTuple):
    """Hold a user's solver of linear systems.

    Attributes:
        solve: from a function that multiplies a container of arrays, and a right-hand side, to the solution.
        transpose_solve: the same for the transpose.
        vector: the containers that they know.
        symmetric: whether the system is its own transpose.
        captured: by either.
    """

    solve: Callable[..., Any]
    transpose_solve: Callable[..., Any]
    vector: Vector
    symmetric: bool
    captured: SolverOperands = SolverOperands(())

    @property
    def transposed_solver(self) -> OwnSolver:
        """The same for the transposed system."""
        return self._replace(solve=self.transpose_solve, transpose_solve=self.solve)

    def __call__(self, multiply: Callable[[Any], Any], right: Any, operands: Values) -> Any:
        """Return the solution of a system of vectors; what is captured is among the operands of the equations."""
        vector, standing = self.vector, list(map(as_tensor, self.captured.of(operands)))
        with CapturedSubstitution("linear_solve", self.solve, self.captured.tensors) as substitution:
            found = substitution.called(
                standing, lambda y: vector.pack(multiply(vector.flatten(y))), vector.pack(right)
            )
            return vector.flatten(found)


class NearbyFactors(NamedTuple):
    """Say where among the operands of equations the factors of a Jacobian nearby are, and whether they may be used.

    Attributes:
        place: of `LastStep.packed`, the exchanges, and a truth, from the end.
        transposed: whether the system is the transpose of theirs.
    """

    place: int
    transposed: bool = False

    @property
    def transposed_solver(self) -> NearbyFactors:
        """The same for the transposed system."""
        return NearbyFactors(self.place, not self.transposed)

    def of(self, operands: Values) -> Values:
        """Return the factors, the exchanges, and the truth."""
        own: Values = operands[len(operands) + self.place :][:3]
        return own

    def __call__(self, operands: Values, right: Any) -> Any:
        """Return the solution of the system nearby."""
        packed, pivots, _ = self.of(operands)
        return apply(substituted, packed, right[:, None], pivots, transposed=not self.transposed)[:, 0]


# Graphs of equations


FORMS: Recent[tuple[Graph, str], TracedForm] = Recent(64)


def jitted_graph(graph: Graph, name: str) -> Callable[..., Any]:
    """Return a graph of one result as a function of values of any kind, like `jit` makes one.

    What lanes, tangents and cotangents make of its loops, of an integration say, are programs that are made once (see
    `wengert.transforms.traced_form.call_form`); operation by operation they would be rounds of NumPy.

    Args:
        graph: the graph.
        name: of what was called, for errors.
    """
    form = FORMS.find((graph, name), lambda: TracedForm(name, graph, None, (), (), EAGER))

    def function(*values: Any) -> Any:
        if any(holds_trace(x, Jet) for x in values):  # whose coefficients are not all there yet, as programs need them
            return evaluate(graph, values)[0]
        return call_form(form, list(map(fitting, graph.inputs, values)))[0]

    return function


def holds_trace(value: Any, kind: type) -> bool:
    """Tell whether a value, or what it is beneath other traces, is of a trace of some kind: a series, or lanes."""
    while type(value) is Tensor and (own := current(value))._trace is not None:
        if isinstance(own._trace, kind):
            return True
        value = own._trace.value_below(own)
    return False


# Products with a Jacobian


PRODUCTS: Recent[tuple[Graph, bool], Graph] = Recent(64)


def product_graph(residual: Graph, transposed: bool, name: str) -> Graph:
    """Return the graph from (y, right, x, *operands) to op(J) y - right, where J is the Jacobian of a residual by x."""

    def trace() -> Graph:
        x = residual.inputs[0]
        return trace_closed(product_with_jacobian(residual, transposed, name), [x, x, *residual.inputs], name)

    return PRODUCTS.find((residual, transposed), trace)


def product_with_jacobian(residual: Graph, transposed: bool, name: str) -> Callable[..., list[Any]]:
    """Return the function of which that is the graph."""

    def difference(y: Any, right: Any, x: Any, *operands: Any) -> list[Any]:
        def equations(x: Any) -> Any:
            return evaluate(residual, (x, *operands))[0]

        if transposed:
            (product,) = pull_back(name, equations, (x,), any_result=True)[1](y)
        else:
            product = push_forward(name, equations, (x,), (y,))[1]
        return [product - right]

    return difference


def products_with(graph: Graph, right: Any, held: Values, name: str) -> Callable[[Any], Any]:
    """Return the function from y to op(J) y, as its graph has it.

    Args:
        graph: of op(J) y - right.
        right: what is like a right-hand side.
        held: x and the operands of the residual.
        name: of what was called, for errors.
    """
    function = jitted_graph(graph, name)
    rest = [in_plain_form(x) if type(x) is Tensor else x for x in (np.zeros_like(right), *held)]
    return lambda y: function(y, *rest)


def is_symmetric(linear: Any) -> bool:
    """Tell whether systems are their own transposes, by the name of a method or an `OwnSolver`."""
    return linear.symmetric if isinstance(linear, OwnSolver) else linear in SYMMETRIC


# Solutions


def solve_by_products(linear: Any, graphs: tuple[Graph, Graph], right: Any, held: Values, name: str) -> Any:
    """Return the solution of a system, as a constant.

    Args:
        linear: the name of a method, or an `OwnSolver` for the system that is meant.
        graphs: of op(J) y - right, and of its transpose.
        right: the right-hand side.
        held: x and the operands of the residual.
        name: of what was called, for errors.
    """
    if isinstance(linear, OwnSolver):

        def solver(right: Any, *held: Any) -> Any:
            size = np.max(np.abs(right), initial=0.0)
            size = np.where((size > 0) & (size < np.inf), size, 1.0).astype(right.dtype)
            return linear(products_with(graphs[0], right, held, name), right / size, held) * size

        return solve_without_derivatives(solver, (right, *held), {}, lambda right, *_: right, captured=())
    return apply(iteration, right, *held, product=graphs[0], back=graphs[1], method=linear, name=name)


def evaluate_iteration(right: Any, *held: Any, product: Graph, back: Graph, method: str, name: str) -> Any:
    """Solve one system by a method of SciPy's."""
    from scipy.sparse.linalg import LinearOperator

    size = length_of(right)
    if size == 0 or not np.isfinite(size):
        return np.array(right)
    count = 0

    def counting_product(graph: Graph) -> Callable[[Any], Any]:
        multiply = products_with(graph, right, held, name)

        def product(y: Any) -> Any:
            nonlocal count
            count += 1
            return multiply(np.asarray(y, right.dtype).reshape(-1))

        return product

    shape = (right.size, right.size)
    operator = LinearOperator(
        shape, matvec=counting_product(product), rmatvec=counting_product(back), dtype=right.dtype
    )
    unit = right / size
    precision = PRECISION if right.dtype.itemsize > 4 else 1e-5
    with np.errstate(all="ignore"):  # what has broken down is told below
        found = run_method(method, operator, unit, precision)
    missed = float(np.linalg.norm(operator.matvec(found) - unit))
    if not missed <= 10 * precision * max(1.0, float(np.linalg.norm(found)) * precision):
        given = f"a linear system that {method} left with a residual of {missed:.1e} after {count} products"
        action = "Rescale the equations, or where there is linear_solver, pass another ('dense' makes the Jacobian)"
        raise NumericalError(name, given, f"one of {10 * precision:.0e} is needed to differentiate", action)
    return np.asarray(found * size, right.dtype)


def run_method(method: str, operator: Any, right: Any, precision: float) -> Any:
    """Return what a method of SciPy's finds."""
    from scipy.sparse import linalg

    most = 10 * right.size
    if method == "cg":
        return linalg.cg(operator, right, rtol=precision, maxiter=most)[0]
    if method == "minres":
        found = np.zeros_like(right)
        for _ in range(REFINEMENTS):
            missed = right - operator.matvec(found)
            if np.linalg.norm(missed) <= precision:
                break
            found = found + linalg.minres(operator, missed, rtol=precision * 0.1, maxiter=most)[0]
        return found
    if method == "lsmr":
        return linalg.lsmr(operator, right, atol=precision * 0.1, btol=precision * 0.1, conlim=0, maxiter=most)[0]
    restart = min(RESTART, right.size)
    return linalg.gmres(operator, right, rtol=precision, restart=restart, maxiter=-(-most // restart))[0]


def batch_iteration(
    _primitive: Any, size: int, operands: Values, batched: Sequence[bool], params: Mapping[str, Any]
) -> Any:
    """Solve the systems of all lanes, one after the other."""
    lanes = [
        apply(iteration, *(x[i] if flag else x for x, flag in zip(operands, batched, strict=True)), **params)
        for i in range(size)
    ]
    return np.stack(lanes) if lanes else lead(operands[0], batched[0], size)


iteration = Constant(
    "implicit_iteration", evaluate_iteration, form=Like(lambda right, *_, **__: right), batch=batch_iteration
)


# What was found


def evaluate_certified_solution(found: Any, missed: Any, excess: Any, *, name: str, tol: float, singular: str) -> Any:
    """Evaluate `certified_solution`."""
    require_solved(excess, name, tol, singular)
    if not np.all(missed <= 1):
        given = f"a linear system of which {float(np.max(missed)) * ALLOWED:.1e} of the right-hand side remains"
        action = (
            "Solve the system that matvec gives, to about ten digits; give transpose_solve for the transpose, and "
            "symmetric only where matvec is its own"
        )
        raise NumericalError(name, given, f"at most {ALLOWED:.0e} is needed to differentiate", action)
    return found.copy()


certified_solution = Constant(
    "certified_solution", evaluate_certified_solution, form=Routine("(n),(),()->(n)", stacked=True)
)


def lengths(x: Any, whole: Any) -> Any:
    """Return the largest element of a vector as a part of that of another one; 0 for that of two zeros."""
    size, scale = np.max(np.abs(x), initial=0.0), np.max(np.abs(whole), initial=0.0)
    return np.where(size == 0, 0.0, np.where(scale == 0, np.inf, size / np.where(scale == 0, 1.0, scale)))
