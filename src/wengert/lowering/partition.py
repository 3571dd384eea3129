"""Cutting a graph into segments: programs, and what NumPy computes between them.

Segments take turns as `wengert.passes.graph_parts` says. A native one is one program: of kernels, or of steps if it has
loops or small matrices, between which kernels are cut into programs in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, must_run
from wengert.core.graph.loop_spec import is_counted
from wengert.core.primitives.structured import Structured, StructuredLowering
from wengert.core.values.aval import UNKNOWN, aval_of
from wengert.kernel.checking import check_step
from wengert.kernel.kernel import Program
from wengert.lowering.correlation_steps import correlation_step
from wengert.lowering.iterations import LoopIteration, iteration_of
from wengert.lowering.kernel_stages import program_of
from wengert.lowering.matrix_steps import matrix_routine
from wengert.lowering.nodes import Bounds
from wengert.lowering.product_bodies import originals, with_product_steps
from wengert.lowering.products import ProductStep, product_step
from wengert.lowering.program_steps import (
    EMPTY,
    Choice,
    GraphStep,
    Lent,
    Once,
    Rounds,
    StepsWriter,
    UnfitError,
    ZeroRows,
    with_results_like,
)
from wengert.lowering.rules.lower import UNBOUNDED, lower
from wengert.lowering.shared_factors import with_factors_before_loops, with_shared_factors
from wengert.lowering.sort_steps import sort_step
from wengert.lowering.sparse_steps import sparse_step
from wengert.lowering.usual_cases import is_usual, usual_graph, with_shared_decompositions
from wengert.lowering.writes import last_readers, write_step, writes_in_place
from wengert.passes.dead_code import narrow_graph, needed_inputs
from wengert.passes.equations import Changes, distinct_variables, is_view, loop_parameters
from wengert.passes.graph_parts import parts_of, subgraph
from wengert.passes.output_aliasing import sharing_views
from wengert.passes.pipeline import flatten_calls
from wengert.passes.segments import Segment, Segments, without_numbers
from wengert.primitives.linear_algebra.lu import lu_factor


def partition_graph(
    graph: Graph,
    least: Callable[[Graph], bool] | None = None,
    *,
    is_apart: bool = False,
    lent: Lent | None = None,
    bounds: Mapping[Variable, Bounds] = UNBOUNDED,
) -> Segments:
    """Return a graph in segments.

    Args:
        graph: without calls; see `wengert.passes.pipeline.flatten_calls`.
        least: tells whether a part is worth a segment of its own, if it is not all of the graph; all are by default. If
            it is given, graphs of views alone are left to NumPy, too.
        is_apart: whether each loop, and each routine of small matrices, is a segment of its own, as they are where they
            do not fit together.
        lent: if a loop runs it, so that what it reads and gives may be rows of rows that grow, the outputs that may lie
            in the memory of inputs, and these.
        bounds: of those inputs whose least and greatest whole numbers are known, these.
    """
    partition = Partition(graph, lent, bounds=bounds)
    try:
        return partition.segments(least, is_apart)
    except UnfitError:
        return partition.segments(least, True)


class StepLowering(StructuredLowering):
    """Lower loops to programs of iterations, branches to programs, and calls to products with views and sums.

    Args:
        operands: of what is lowered.
        bounds: of those of them whose least and greatest whole numbers are known, these.
    """

    def __init__(self, operands: Sequence[Any] = (), bounds: Mapping[Variable, Bounds] = UNBOUNDED) -> None:
        self.operands, self.bounds = operands, bounds

    def call(self, graph: Graph) -> ProductStep | None:
        """Return a product; None if it is another graph."""
        return product_step(graph.equations)

    def recomputation(self, graph: Graph) -> Once | None:
        """Return the program of a graph; None if no program computes all of it."""
        graph = flatten_calls(graph)
        graph = with_results_like(graph, variables_like(graph.outputs))
        program = partition_graph(graph, lent=EMPTY).whole
        return None if program is None else Once(graph, program)

    def branch(self, graphs: Sequence[Graph]) -> Choice | None:
        """Return the programs; None if one of them cannot compute all of its graph."""
        flat = list(map(flatten_calls, graphs))
        results = variables_like(flat[0].outputs)
        cases = []
        for graph in flat:
            graph = with_results_like(graph, results)
            everything = [True] * len(results)
            needed = needed_inputs(graph, everything)
            graph = narrow_graph(graph, needed, everything)
            program = partition_graph(graph, lent=EMPTY).whole
            if program is None:
                return None
            cases.append((needed, graph, program))
        return Choice(cases, results)

    def zero_rows(self, depth: int) -> ZeroRows:
        """Return the step that makes rows of zeros, so many loops deep."""
        return ZeroRows(depth)

    def loop(self, params: Any) -> Rounds | None:
        """Return the programs; None if they cannot compute all of an iteration."""
        iteration = iteration_of(params) if params["spec"].length != 0 else None
        condition = None if params["cond"] is None else flatten_calls(params["cond"])
        if iteration is None or (condition is not None and type(condition.outputs[0]) is not Variable):
            return None
        bounds = self.bounds_within(iteration)
        body = partition_graph(iteration.graph, lent=iteration.lent, bounds=bounds).whole
        first = None if condition is None else partition_graph(condition, lent=EMPTY).whole
        if body is None or (condition is not None and first is None):
            return None
        return Rounds(iteration, body, first)

    def bounds_within(self, iteration: LoopIteration) -> dict[Variable, Bounds]:
        """Return the bounds of what an iteration reads: of constants and rows, since what is carried changes."""
        first, count = iteration.spec.constants, iteration.spec.carried
        pairs = [*zip(self.operands[int(is_counted(iteration.params)) :], iteration.inputs, strict=True)]
        del pairs[first : first + count]
        found = [(v, self.bounds.get(x) if type(x) is Variable else bounds_of(x)) for x, v in pairs]
        return {v: bounds for v, bounds in found if bounds is not None}


STEPS = StepLowering()


def bounds_of(x: Any) -> Bounds | None:
    """Return the least and the greatest whole number of an array; None if it has none."""
    is_known = type(x) is np.ndarray and x.dtype.kind in "iu" and x.size
    return (int(x.min()), int(x.max())) if is_known else None


def with_bounds_of_views(graph: Graph, bounds: Mapping[Variable, Bounds]) -> Mapping[Variable, Bounds]:
    """Return bounds with those of views of what has some."""
    found = dict(bounds)
    for equation in graph.equations if bounds else ():
        own = found.get(equation.inputs[0]) if is_view(equation) else None
        if own is not None:
            found[equation.outputs[0]] = own
    return found


def step_of(equation: Equation, bounds: Mapping[Variable, Bounds], is_inner: bool) -> GraphStep | None:
    """Return an equation that no kernel computes as what a program has a step for; None if NumPy has to compute it."""
    if isinstance(equation.primitive, Structured):
        lowering = StepLowering(equation.inputs, bounds)
        found: GraphStep | None = equation.primitive.lower(equation.params, lowering)
        return found
    found = product_step((equation,)) or matrix_routine(equation) or sparse_step(equation)
    found = found or sort_step(equation) or correlation_step(equation, is_inner) or write_step(equation, bounds)
    usual = usual_graph(equation, is_inner) if found is None else None
    return found if usual is None else STEPS.recomputation(usual)


def known_step(
    equation: Equation,
    bounds: Mapping[Variable, Bounds],
    is_inner: bool,
    known: dict[Hashable, GraphStep | None],
) -> GraphStep | None:
    """Return the same as `step_of`, once for loops that differ in operands alone, of which `known` is made."""
    params = loop_parameters(equation) if equation.primitive.structured else None
    if params is None:
        return step_of(equation, bounds, is_inner)
    own = [bounds.get(x) if type(x) is Variable else bounds_of(x) for x in equation.inputs]
    key = (equation.primitive, id(params["body"]), id(params["cond"]), params["spec"], *own)
    if key not in known:
        known[key] = step_of(equation, bounds, is_inner)
    return known[key]


def variables_like(outputs: Sequence[Any]) -> list[Variable]:
    """Return variables as they are, and some for numbers."""
    return [x if type(x) is Variable else Variable.of(aval_of(x).firm) for x in outputs]


class Partition:
    """Cut a graph into segments.

    Args:
        graph: without calls.
        lent: see `partition_graph`.
        required: how many of the last outputs are truths that have to hold, and no results.
        bounds: see `partition_graph`; with those of views.

    Attributes:
        given: the graph as it is given; `graph` has products as they are steps.
        origins: the equations of `given` that those of `graph` stand for.
        whole: the graph without the results that are known numbers.
        reasons: the equations that are not of kernels, by their places, and why.
        steps: those that a program has other steps for.
        changes: what these change in place, and what it is then.
    """

    def __init__(
        self,
        graph: Graph,
        lent: Lent | None,
        required: int = 0,
        bounds: Mapping[Variable, Bounds] = UNBOUNDED,
    ) -> None:
        self.given, self.lent, self.required = graph, lent, required
        graph, self.origins = with_product_steps(graph)
        self.bounds = bounds = with_bounds_of_views(graph, bounds)
        self.graph = graph
        self.whole = Graph(graph.inputs, graph.equations, without_numbers(graph.outputs))
        self.lowered = lower(self.whole, bounds)
        self.reasons = {i: found.reason for i, found in self.lowered.refused.items()}
        self.is_usual = is_usual(graph)
        known: dict[Hashable, GraphStep | None] = {}  # loops that differ in operands alone are lowered once
        found = [(e, known_step(e, bounds, self.is_usual, known)) for e in [graph.equations[i] for i in self.reasons]]
        is_inner = lent is not None
        self.steps = {e: step for e, step in found if step is not None and (is_inner or not isinstance(step, ZeroRows))}
        readers = last_readers(graph.equations, graph.outputs)
        parts = {e.outputs[0]: s.base for e, s in self.steps.items() if isinstance(s, ProductStep) and s.base}
        self.steps |= writes_in_place(graph, readers, lent or EMPTY, parts, bounds)
        self.changes = {equation: pairs for equation, pairs in readers.items() if equation in self.steps}
        self.changes |= {e: [(parts[v], v)] for e in self.steps for v in e.outputs if v in parts}

    def segments(self, least: Callable[[Graph], bool] | None, is_apart: bool) -> Segments:
        """Return the segments; raise UnfitError if steps do not fit together."""
        graph, outputs = self.graph, self.whole.outputs
        steps = {e for e in self.steps if not is_apart or self.is_alone(e)}
        refused = {i: reason for i, reason in self.reasons.items() if graph.equations[i] not in steps}
        refused |= dict.fromkeys(sharing_views(graph), "memory that is also another result's")
        if least is not None and is_of_views(graph):
            refused |= dict.fromkeys(range(len(graph.equations)), "a view, and nothing else to compute")
        if not refused and are_apart(outputs) and self.is_whole(is_apart):
            program = self.whole_program() if self.steps else program_of(self.lowered)
            whole = Graph(graph.inputs, self.given.equations, self.whole.outputs)
            return Segments(self.given, (Segment(whole, program, (), (), is_whole=True),))
        bound = {v for equation in graph.equations for v in equation.outputs}
        kept = distinct_variables(outputs)
        part = subgraph(graph.equations, bound.intersection(kept))
        alone = steps if is_apart else set[Equation]()
        while least is not None and (small := small_parts(part, refused, kept, steps, alone, self.changes, least)):
            refused |= dict.fromkeys(small, "too little work for a call of native code")
        found: list[Segment] = []
        for places, own, dropped in parts_of(part, refused, kept, alone, self.changes):
            is_refused, given = places[0] in refused, originals(own, self.origins)
            pairs = [(graph.equations[i], refused.get(i, "")) for i in places]
            told = {e: reason for equation, reason in pairs for e in self.origins.get(equation, (equation,))}
            reasons = tuple([told[e] for e in given.equations]) if is_refused else ()
            found.append(Segment(given, None if is_refused else self.program(own), reasons, dropped))
        return Segments(self.given, tuple(found))

    def is_whole(self, is_apart: bool) -> bool:
        """Tell whether one program computes all results from all inputs, as far as their types tell."""
        outputs, is_one = self.whole.outputs, not is_apart or len(self.graph.equations) == 1
        if not self.steps:
            return bool(outputs) and None not in self.lowered.inputs
        takes_all = all(0 not in x.shape for x in self.whole.inputs)  # programs of steps have no empty buffers
        return bool(outputs) and is_one and takes_all and all(type(x) is Variable for x in outputs)

    def is_alone(self, equation: Equation) -> bool:
        """Tell whether a step can be a program by itself."""
        try:
            self.program(Graph(distinct_variables(equation.inputs), (equation,), equation.outputs))
        except UnfitError:
            return False
        return True

    def with_factors(self, part: Graph) -> tuple[Graph, dict[Equation, GraphStep], Changes]:
        """Return a part that factorises no matrix twice, nor in each round of a loop; its steps; what they change."""
        changed, loops = with_factors_before_loops(part)
        own = {
            e: step_of(e, self.bounds, self.is_usual)
            for e in changed.equations
            if e in loops or e.primitive is lu_factor
        }
        known = {e: step for e, step in own.items() if step is not None}
        part, shared = with_shared_factors(changed if len(known) == len(own) else part)
        steps = {**{e: self.steps[e] for e in part.equations if e in self.steps}, **known, **shared}
        return part, steps, {e: self.changes.get(loops.get(e, e), ()) for e in part.equations}

    def whole_program(self) -> Program:
        """Return the graph as a program that decomposes no matrix twice."""
        steps = [(e, x) for e, x in self.steps.items() if isinstance(x, Once) and e.primitive.usual_case is not None]
        usual = {self.origins.get(equation, (equation,))[0]: step.graph for equation, step in steps}
        shared = with_shared_decompositions(self.given, usual)
        if shared is not None:
            graph, required = shared
            other = Partition(graph, self.lent, required, self.bounds)
            if all(other.graph.equations[i] in other.steps for i in other.reasons) and not sharing_views(other.graph):
                return other.program(other.whole)
        return self.program(self.whole)

    def program(self, part: Graph) -> Program:
        """Return a part of the graph as a program; raise UnfitError if its steps do not fit together."""
        part, steps, changes = self.with_factors(part)
        if not steps:
            return program_of(lower(part, self.bounds))
        if self.lent is None and any(x.shape.count(UNKNOWN) > 1 for x in (*part.inputs, *part.outputs)):
            raise UnfitError
        results = Graph(part.inputs, part.equations, part.outputs[: len(part.outputs) - self.required])
        writer = StepsWriter(results, [pair for pairs in changes.values() for pair in pairs], self.lent or EMPTY)
        for _, own, _ in parts_of(part, (), distinct_variables(part.outputs), steps, changes):
            step = steps.get(own.equations[0])
            if step is None:
                rest = writer.without_aliases(own)
                own = subgraph(rest.equations, set(distinct_variables(rest.outputs)))
            if own.outputs or any(map(must_run, own.equations)):
                writer.add(own, program_of(lower(own, self.bounds)) if step is None else step)
        return check_step("steps", writer.program())


def small_parts(
    graph: Graph,
    refused: Collection[int],
    kept: Sequence[Variable],
    steps: set[Equation],
    alone: Collection[Equation],
    changes: Changes,
    least: Callable[[Graph], bool],
) -> list[int]:
    """Return the equations, by their places, of the native parts of a graph that are not worth it."""
    parts = [x for x in parts_of(graph, refused, kept, alone, changes) if x[0][0] not in refused]
    small = [x for x in parts if steps.isdisjoint(x[1].equations) and (is_of_views(x[1]) or not least(x[1]))]
    return [i for places, _, _ in small for i in places]


def is_of_views(graph: Graph) -> bool:
    """Tell whether a graph computes nothing: kernels copy what NumPy hands over as it lies."""
    return all(e.primitive.view and len(e.inputs) == 1 for e in graph.equations)


def are_apart(outputs: Sequence[Any]) -> bool:
    """Tell whether no array is two of some results."""
    arrays = [x for x in outputs if type(x) is Variable and x.shape]
    return len(set(arrays)) == len(arrays)
