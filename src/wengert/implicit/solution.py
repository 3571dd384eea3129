"""The primitive: a solution that somebody found, with the derivatives that its equations give it.

Of x with F(x, a) = 0 the differential is J dx = -dF, where J is the Jacobian by x and dF what the change of a alone
makes of F: one linear system, in tangents or, transposed, in cotangents. The rules are written in operations on Tensors
at the level below, with x the result itself, whose own derivative they see there, so that derivatives of any order, in
any order of modes, follow. The value is what was found, so nothing of how it was found is differentiated or runs again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.control.cond import cond
from wengert.control.structured_checks import require
from wengert.core.forms.batching import lead
from wengert.core.forms.view_forms import Region
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph
from wengert.core.memory.views import current
from wengert.core.primitives.primitive import Primitive, register
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, constant_tensor, raw
from wengert.implicit.factored import NEARLY_DEPENDENT, solution_of
from wengert.implicit.matrix_free import (
    ALLOWED,
    NearbyFactors,
    OwnSolver,
    certified_solution,
    holds_trace,
    is_symmetric,
    jitted_graph,
    lengths,
    product_graph,
    products_with,
    solve_by_products,
)
from wengert.implicit.systems import TOLERANCE, certified, excess_of, excess_of_terms
from wengert.passes.output_aliasing import copying
from wengert.primitives.sparse.direct_solves import REGULAR, sparse_solve
from wengert.primitives.sparse.products import sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern
from wengert.support.caches import WeakIdentityMap
from wengert.support.records import NamedTuple
from wengert.traces.batch import Batch
from wengert.traces.rules.calls import StandInGraph, readable, value_below
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back, stop_gradient
from wengert.transforms.vmap import vmap

Values = Sequence[Any]
Params = Mapping[str, Any]


class Lanes(NamedTuple):
    """Say which operands of a solution have a batch axis in front; the solution itself has.

    Attributes:
        size: the number of lanes.
        flags: a flag for each operand after the solution.
    """

    size: int
    flags: tuple[bool, ...]


class ImplicitSolution(Primitive):
    """Be a solution x of F(x, *operands) = 0, with its derivatives by the operands.

    Operands are x, a vector of real numbers that is a constant, and what F reads besides. Parameters: `residual`, the
    graph of F, from and to vectors of n numbers; `jacobian`, the graph of the transpose of its Jacobian from the same
    operands, of a sparse Jacobian that of its stored elements, or None; `lanes`, a `Lanes` for each batch, from the
    outermost in; the `name` of what was called, for errors; `tol`, by which x may miss the equations; `singular`, as
    `custom_root` has it; `linear`, what solves their linear systems: "dense", the pattern of a sparse Jacobian, the
    name of a method without a matrix, an `OwnSolver`, or `NearbyFactors`.
    """

    kind = "opaque"

    def __init__(self) -> None:
        super().__init__("implicit_solution", np.copy, form=Region(lambda inputs, _params: [vector_like(inputs[0])]))
        self.evaluate = lambda x, *_operands, **_params: np.array(x)
        self.batch = self.batch_lanes

    def lasting(self, _inputs: Values, _outputs: Sequence[Variable], _in_vain: Counter[Any]) -> Primitive:
        """Return what stands for it in a graph."""
        return in_graph

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save the solution, and the operands of the equations."""
        return True, lambda operand: operand > 0

    def batch_lanes(
        self, _primitive: Primitive, size: int, operands: Values, batched: Sequence[bool], params: Params
    ) -> Any:
        """Let each lane have a solution of its own."""
        x = lead(operands[0], batched[0], size)
        lanes = (Lanes(size, tuple(batched[1:])), *params["lanes"])
        return apply(self, x, *operands[1:], **{**params, "lanes": lanes})

    def vjp(self, ct: Any, out: Any, operands: Values, avals: Sequence[Aval | None], params: Params) -> Values:
        """Solve J^T w = ct, and pull -w back through the equations."""
        wanted = [aval is not None for aval in avals[1:]]

        def pull(given: Values) -> Values:
            equations = Equations(given[1], given[2:], params)
            return equations.pull(given[0], wanted)

        given = [ct, out, *operands[1:]]
        flags = [(True, True, *lanes.flags) for lanes in params["lanes"]]
        found = iter(in_lanes(pull, flags)([x if x is None else readable(x) for x in given]))
        results: list[Any] = [None]
        for i, want in enumerate(wanted):
            results.append(value_below(over_shared_lanes(next(found), i, params["lanes"])) if want else None)
        return results

    def jvp(self, tangents: Values, out: Any, *operands: Any, **params: Any) -> Any:
        """Solve J dx = -dF."""
        moved = [t is not None for t in tangents[1:]]
        if not any(moved):
            return np.zeros(out.shape, out.dtype)

        def push(given: Values) -> Values:
            count = 1 + len(moved)
            equations = Equations(given[0], given[1:count], params)
            return [equations.push(given[count:], moved)]

        present = [t for t in tangents[1:] if t is not None]
        flags = [
            (True, *lanes.flags, *(f for f, t in zip(lanes.flags, moved, strict=True) if t))
            for lanes in params["lanes"]
        ]
        (found,) = in_lanes(push, flags)(list(map(readable, (out, *operands[1:], *present))))
        return value_below(found)


JACOBIANS: WeakIdentityMap[np.ndarray[Any, Any], np.ndarray[Any, Any]] = WeakIdentityMap()
"""The Jacobians, transposed, at results of the primitive, which nobody writes to: further cotangents use them again."""


class Equations(NamedTuple):
    """Hold equations F(x, *operands) = 0 at a solution, on Tensors."""

    x: Any
    operands: Values
    params: Params

    def residual(self, x: Any, operands: Values) -> Any:
        """Return F."""
        return jitted_graph(self.params["residual"], self.params["name"])(x, *operands)

    def moving(self, flags: Sequence[bool]) -> tuple[Callable[..., Any], list[Any]]:
        """Return F as a function of the flagged operands alone, and what they are."""

        def function(*values: Any) -> Any:
            rest = iter(values)
            return self.residual(
                self.x, [next(rest) if flag else x for x, flag in zip(self.operands, flags, strict=True)]
            )

        return function, [x for x, flag in zip(self.operands, flags, strict=True) if flag]

    def pull(self, ct: Any, wanted: Sequence[bool]) -> Values:
        """Return the cotangents of the wanted operands."""
        function, primals = self.moving(wanted)
        residual, pullback = pull_back(self.params["name"], function, primals, any_result=True)
        return list(pullback(-self.solve(residual, ct, True)))

    def push(self, tangents: Values, moved: Sequence[bool]) -> Any:
        """Return the tangent of the solution."""
        function, primals = self.moving(moved)
        residual, change = push_forward(self.params["name"], function, primals, tangents)
        return -self.solve(residual, change, False)

    def solve(self, residual: Any, right: Any, transposed: bool) -> Any:
        """Solve with the Jacobian by x, or its transpose, if x solves the equations; `residual` is F there."""
        options = {key: self.params[key] for key in ("name", "singular", "tol")}
        if isinstance(self.params["linear"], StoragePattern):
            return self.solve_stored(residual, right, transposed, options)
        if isinstance(self.params["linear"], NearbyFactors):
            if not any(holds_trace(x, Batch) for x in (self.x, *self.operands)):  # whose lanes would do both
                return self.solve_refined(residual, right, transposed)
        elif self.params["linear"] != "dense":
            return self.solve_by_products(residual, right, transposed)
        columns = self.columns()
        excess = excess_of(*stop_gradient((residual, columns, self.x)), options["tol"])
        right = apply(certified, right, excess, **options)
        growing = 1.0 if self.params["jacobian"] is None else NEARLY_DEPENDENT
        return solution_of(columns, right, excess, not transposed, options, growing)

    def solve_stored(self, residual: Any, right: Any, transposed: bool, options: dict[str, Any]) -> Any:
        """Solve with sparse factors, which are known by the stored elements of the Jacobian."""
        graph, pattern = self.params["jacobian"], self.params["linear"]
        data = jitted_graph(graph, options["name"])(self.x, *self.operands[: len(graph.inputs) - 1])
        missed, held, x = stop_gradient((residual, data, self.x))
        terms = apply(sparse_product, np.abs(held), 1 + np.abs(x), pattern=pattern, transposed=False)
        right = apply(certified, right, excess_of_terms(missed, terms, options["tol"]), **options)
        own = {"pattern": pattern, "transposed": transposed, "options": REGULAR, "name": options["name"]}
        return apply(sparse_solve, data, right, **own)

    def columns(self) -> Any:
        """Return the transpose of the Jacobian, each row what comes of one direction; made once of plain arrays."""
        plain = all(type(x) is not Tensor or current(x)._trace is None for x in (self.x, *self.operands))
        key = raw(self.x) if plain else None
        known = None if key is None else JACOBIANS.get(key)
        if known is not None:
            return constant_tensor(known)
        name = self.params["name"]

        def push(direction: Any) -> Any:
            return push_forward(name, lambda x: self.residual(x, self.operands), (self.x,), (direction,))[1]

        graph = self.params["jacobian"]
        if graph is not None:
            columns = jitted_graph(graph, name)(self.x, *self.operands[: len(graph.inputs) - 1])
        else:
            columns = vmap(push)(constant_tensor(np.eye(self.x.size, dtype=self.x.dtype)))
        if key is None:
            return columns
        known = JACOBIANS[key] = np.asarray(raw(columns))
        return constant_tensor(known)

    def products(self, transposed: bool) -> tuple[Graph, Graph]:
        """Return the graph of products with the Jacobian, or its transpose, and that of the other."""
        own = self.params["residual"], self.params["name"]
        direct, turned = (product_graph(own[0], way, own[1]) for way in (False, True))
        return (turned, direct) if transposed else (direct, turned)

    def solve_linear(self, found: Any, right: Any, graph: Graph, linear: Any) -> Any:
        """Return what solves a linear system, whose graph is given: the solution is again one of equations."""
        params = {**self.params, "residual": graph, "jacobian": None, "lanes": (), "linear": linear, "tol": TOLERANCE}
        return apply(implicit_solution, found, right, self.x, *self.operands, **params)

    def solve_refined(self, residual: Any, right: Any, transposed: bool) -> Any:
        """Solve by the factors of a Jacobian nearby, and refine the solution by a product with the one at hand.

        What the solution misses is the part by which the Jacobians differ, and is squared by that. Where it is too
        much, or x may not solve its equations, all is solved in full.
        """
        name, linear = self.params["name"], self.params["linear"]
        own = linear.transposed_solver if transposed else linear
        graph, _ = self.products(transposed)
        missed, side, *held = stop_gradient((residual, right, self.x, *self.operands))
        first = own(held[1:], side)
        change = own(held[1:], -jitted_graph(graph, name)(first, side, *held))
        found = first + change
        close = float(np.finfo(found.dtype).eps) ** 0.45
        if transposed:  # w F = ct J^-1 F: by how much what is differentiated would change if x were moved to solve
            is_solved = np.abs(found) @ np.abs(missed) <= close * (np.abs(side) @ (1.0 + np.abs(held[0])))
        else:
            further = own(held[1:], missed)
            is_solved = np.max(np.abs(further)) <= close * (1.0 + np.max(np.abs(held[0])))
        is_usable = own.of(held[1:])[2] & is_solved & (np.max(np.abs(change)) <= close * np.max(np.abs(first)))

        def solve_in_full(_: Any, missed: Any, side: Any, x: Any, *operands: Any) -> Any:
            return Equations(x, operands, {**self.params, "linear": "dense"}).solve(missed, side, transposed)

        found = cond(is_usable, lambda found, *_: found, solve_in_full, found, missed, side, *held)
        return self.solve_linear(found, right, graph, own)

    def solve_by_products(self, residual: Any, right: Any, transposed: bool) -> Any:
        """Solve without a matrix: the solution is again one of equations, which are linear."""
        name, tol, linear, singular = (self.params[key] for key in ("name", "tol", "linear", "singular"))
        graphs = self.products(transposed)
        meant, direct = graphs[0], graphs[int(transposed)]
        if is_symmetric(linear):  # the direct product takes less; what is found must solve the system that is meant
            graphs = (direct, direct)
        own = linear.transposed_solver if transposed and isinstance(linear, OwnSolver) else linear
        held = stop_gradient((right, self.x, *self.operands))
        found = solve_by_products(own, graphs, held[0], held[1:], name)
        missed = lengths(jitted_graph(meant, name)(found, *held), held[0]) / ALLOWED
        sizes = products_with(direct, held[1], held[1:], name)(1 + np.abs(held[1]))
        excess = lengths(stop_gradient(residual), sizes) / tol
        found = apply(certified_solution, found, missed, excess, name=name, tol=tol, singular=singular)
        return self.solve_linear(found, right, graphs[0], own)


# Lanes


def in_lanes(rule: Callable[[Values], Values], flags: Sequence[Sequence[bool]]) -> Callable[[Values], Values]:
    """Return a rule of one lane as one of all lanes of batches, from the outermost in, with flags for its values."""
    run = rule
    for own in reversed(flags):
        run = all_lanes(run, own)
    return run


def all_lanes(rule: Callable[[Values], Values], flags: Sequence[bool]) -> Callable[[Values], Values]:
    """Return a rule for all lanes of one batch."""
    return lambda given: vmap(lambda *xs: rule(xs), tuple(0 if flag else None for flag in flags))(*given)


def over_shared_lanes(ct: Any, place: int, lanes: Sequence[Lanes]) -> Any:
    """Return the cotangent of an operand from those of all lanes: their sum over batches that share the operand."""
    axes = tuple(axis for axis, own in enumerate(lanes) if not own.flags[place])
    return np.sum(ct, axis=axes) if axes else ct


def vector_like(x: Any) -> Variable:
    """Return a variable for a copy of a solution."""
    aval = aval_of(x)
    return Variable(aval.shape, aval.dtype)


# In graphs


class SolutionInGraph(StandInGraph):
    """Stand for a solution in a graph: the same again as long as derivatives are taken; its value is what was found."""

    def __init__(self) -> None:
        form = Region(lambda inputs, _params: [vector_like(inputs[0])])
        super().__init__("implicit_solution", self.call, form=form)

    def check(self, inputs: Values, params: Params) -> None:
        """Check that the equations are as many as there are numbers, and read the operands."""
        residual, lanes = params["residual"], params["lanes"]
        require(isinstance(residual, Graph), f"residual={residual!r:.80}", "a graph is needed")
        count = len(lanes)
        for i, (own, x) in enumerate(zip(residual.inputs, inputs, strict=True)):
            depth = count if i == 0 else sum(batch.flags[i - 1] for batch in lanes)
            shape = aval_of(x).shape[depth:]
            require(own.shape == shape, f"an operand of shape {shape}", f"{own.shape} is needed")

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as a copy of what was found."""
        return lowering.call(copying_graph(params["residual"], params["lanes"]))

    def call(self, x: Any, *operands: Any, **params: Any) -> Any:
        """Return the solution; what differentiates sees it as it is outside of graphs."""
        if any(type(value) is Tensor for value in (x, *operands)):
            return apply(implicit_solution, x, *operands, **params)
        return np.array(x)


def copying_graph(residual: Graph, lanes: Sequence[Lanes]) -> Graph:
    """Return the graph from the operands of a solution to a copy of it."""
    flags = [(True, *own.flags) for own in lanes]
    inputs = []
    for i, variable in enumerate(residual.inputs):
        sizes = tuple(own.size for own, given in zip(lanes, flags, strict=True) if given[i])
        aval = variable.aval
        inputs.append(Variable.of(Aval((*sizes, *aval.shape), aval.dtype, aval.weak and not sizes)))
    equation = copying(inputs[0], "C")
    return Graph(inputs, [equation], list(equation.outputs))


implicit_solution = ImplicitSolution()
in_graph = SolutionInGraph()
register(in_graph)
