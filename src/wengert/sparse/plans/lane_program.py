"""Small functions that are computed for each lane, cut out of graphs: before what puts lanes together again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.maps.coordinates import Array
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged, raw
from wengert.passes.dead_code import eliminate_dead, narrow_graph
from wengert.sparse.patterns.column_maps import Maps, column_maps
from wengert.sparse.plans.lane_numbers import LaneArray, LaneOperations, NotByLanes
from wengert.sparse.plans.value_walk import InnerValues, ValueWalk
from wengert.support.records import NamedTuple
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back
from wengert.transforms.tracing import as_function, trace


class LaneProgram:
    """Hold a graph as a function of the numbers of lanes, and what is linear in its results.

    Attributes:
        graph: from the numbers of what is gathered, vectors over the lanes, and inputs that are still, to results.
        gathered: for each input of the graph that is a number, the places of its lanes among all that is gathered.
        results: for each result the places of its lanes among all results.
        tail: from the results as arrays, and inputs that are still, to the outputs.
        joined: of the results as arrays.
    """

    def __init__(self, graph: Graph, count: int) -> None:
        """Cut a graph.

        Args:
            graph: whose first inputs are gathered, with the lanes along their first axis.
            count: how many of them.
        """
        self.whole, self.count = graph, count
        self.joined: list[Variable] = []
        self.axes: list[int] = []
        self.after: list[Equation] = []
        moving, still = graph.inputs[:count], graph.inputs[count:]
        if any(not v.shape for v in moving):
            raise NotByLanes
        vectors = [np.ones(v.shape[0], v.dtype) for v in moving for _ in range(math.prod(v.shape[1:]))]
        self.graph: Graph = trace(self.numbers)(vectors, [np.ones(v.shape, v.dtype) for v in still])
        self.vectors = len(vectors)
        self.gathered = places_of_numbers([v.shape for v in moving], [0] * count)
        self.results = places_of_numbers([v.shape for v in self.joined], self.axes)
        self.tail = eliminate_dead(Graph([*self.joined, *still], self.after, graph.outputs))

    def numbers(self, vectors: Sequence[Any], still: Sequence[Any]) -> list[Any]:
        """Return the numbers of results from those that are gathered, and set what is computed of them."""
        known: dict[Variable, Any] = dict(zip(self.whole.inputs[self.count :], still, strict=True))
        start = 0
        for v in self.whole.inputs[: self.count]:
            size = math.prod(v.shape[1:])
            known[v] = LaneArray.of(vectors[start : start + size], v.shape, 0)
            start += size
        lanes = LaneOperations(lambda x: known[x] if type(x) is Variable else x)
        joined: dict[Variable, None] = {}
        after: list[Equation] = []
        late: set[Variable] = set()
        for equation in self.whole.equations:
            names = [x for x in equation.inputs if type(x) is Variable]
            if not any(x in late or isinstance(known[x], LaneArray) for x in names):
                compute(equation, known)
                after.append(equation)
                continue
            try:
                if late.intersection(names):
                    raise NotByLanes
                known[equation.outputs[0]] = lanes.run(equation)
            except NotByLanes:
                late.update(equation.outputs)
                after.append(equation)
                joined.update((x, None) for x in names if x not in late and isinstance(known[x], LaneArray))
        outputs = [x for x in self.whole.outputs if type(x) is Variable and isinstance(known.get(x), LaneArray)]
        joined.update((x, None) for x in outputs)
        self.joined, self.after = [*joined], after
        self.axes = [known[v].axis for v in joined]
        return [as_vector(x, known[v].length) for v in joined for x in known[v].numbers.flat]

    def tail_maps(self, still: Sequence[Any]) -> list[Maps]:
        """Return the maps from results to the outputs; raise a `NotByMaps` if these are not linear in them."""
        shapes = [v.shape for v in self.joined]
        walk = ValueWalk(sum([math.prod(shape) for shape in shapes]), InnerValues)
        maps = dict(zip(self.joined, column_maps(shapes, 1.0), strict=True))
        return walk.run(self.tail, dict(zip(self.tail.inputs[len(shapes) :], still, strict=True)), maps)

    def weights(self, still: Sequence[Any]) -> list[Any]:
        """Return the derivatives of the only output by each result, which does not depend on results."""
        given = [np.zeros(v.shape, v.dtype) for v in self.joined]
        tail = as_function(self.tail)
        _, pull = pull_back("sparse.hessian", lambda *xs: tail(*xs, *still)[0], given)
        found = []
        for x, axis in zip(pull(np.ones((), self.tail.outputs[0].dtype)), self.axes, strict=True):
            rows = np.moveaxis(x, axis, -1)
            rows = np.reshape(rows, (-1, rows.shape[-1]))
            found += [rows[k] for k in range(rows.shape[0])]
        return found

    def weighted_graph(self, still: Sequence[Any]) -> Graph:
        """Return a graph like that of the numbers, of weighted sums of results: one for each number of lanes."""
        own = as_function(self.graph)

        def total(vectors: Sequence[Any], still: Sequence[Any]) -> list[Any]:
            sums: dict[int, Any] = {}
            for x, weight in zip(own(*vectors, *still), self.weights(still), strict=True):
                if not (isinstance(weight, np.ndarray) and np.all(weight == 1.0)):
                    x = x * weight
                n = x.shape[0]
                sums[n] = sums[n] + x if n in sums else x
            return [*sums.values()]

        vectors = [np.ones(v.shape, v.dtype) for v in self.graph.inputs[: self.vectors]]
        found: Graph = trace(total)(vectors, list(still))
        return found


class LaneDerivative(NamedTuple):
    """Hold a number of each lane that a derivative has.

    Attributes:
        row, column: which number of the results, or of what is gathered, is differentiated by which of the latter.
        values: a vector over the lanes.
    """

    row: int
    column: int
    values: Any


def jacobian_entries(graph: Graph, count: int, args: Sequence[Any]) -> list[LaneDerivative]:
    """Return the derivatives of each output of a graph of numbers by each of its first inputs, where it depends on it.

    Args:
        graph: of vectors over lanes, each lane of which is computed from the same lane of others.
        count: of the inputs by which it is differentiated.
        args: its inputs.
    """
    if len(graph.outputs) > count:
        return pushed_entries(graph, count, args)
    found = []
    for row, out in enumerate(graph.outputs):
        part, used = used_part(graph, [k == row for k in range(len(graph.outputs))], count)
        if used:
            run = partial_function(part, args, used)
            pull = pull_back("sparse.jacobian", run, [args[k] for k in used])[1]
            cts = pull([np.ones(shape_of(out), aval_of(out).dtype)])
            found += [LaneDerivative(row, k, ct) for k, ct in zip(used, cts, strict=True) if not is_zero(ct)]
    return found


def pushed_entries(graph: Graph, count: int, args: Sequence[Any], lower: bool = False) -> list[LaneDerivative]:
    """Return the same from the columns; of a symmetric matrix those in the lower half alone."""
    found = []
    for column in range(count):
        wanted = [row >= column or not lower for row in range(len(graph.outputs))]
        part, used = used_part(graph, wanted, count)
        if column in used:
            x = args[column]
            seed = np.ones(shape_of(x), aval_of(x).dtype)
            tangents = push_forward("sparse.jacobian", partial_function(part, args, [column]), [x], [seed])[1]
            rows = [row for row, flag in enumerate(wanted) if flag]
            found += [LaneDerivative(row, column, t) for row, t in zip(rows, tangents, strict=True) if not is_zero(t)]
    return found


def hessian_entries(graph: Graph, count: int, args: Sequence[Any]) -> list[LaneDerivative]:
    """Return the second derivatives of the sum of the outputs of a graph of numbers, in the lower half."""
    run = as_function(graph)

    def slopes(vectors: Sequence[Any], still: Sequence[Any]) -> list[Any]:
        totals, pull = pull_back("sparse.hessian", lambda *xs: [*run(*xs, *still)], vectors)
        return [*pull([np.ones(x.shape, x.dtype) for x in totals])]

    examples = [np.ones(v.shape, v.dtype) for v in graph.inputs]
    return pushed_entries(trace(slopes)(examples[:count], examples[count:]), count, args, lower=True)


def used_part(graph: Graph, outputs: Sequence[bool], count: int) -> tuple[Graph, list[int]]:
    """Return a graph of some outputs, and which of its first inputs it uses."""
    part = narrow_graph(graph, [True] * len(graph.inputs), outputs)
    used = {x for values in (part.outputs, *[e.inputs for e in part.equations]) for x in values if type(x) is Variable}
    return part, [k for k, v in enumerate(graph.inputs[:count]) if v in used]


def partial_function(graph: Graph, args: Sequence[Any], moving: Sequence[int]) -> Callable[..., list[Any]]:
    """Return a graph as a function of some of its inputs, the others as they are."""
    run = as_function(graph)

    def of_moving(*xs: Any) -> list[Any]:
        given = list(args)
        for k, x in zip(moving, xs, strict=True):
            given[k] = x
        return [*run(*given)]

    return of_moving


def is_zero(x: Any) -> bool:
    """Tell whether an array is known to be zero everywhere."""
    return not is_staged(x) and not np.any(raw(x))


def compute(equation: Equation, known: dict[Variable, Any]) -> None:
    """Compute the results of an equation from what is known."""
    given = [known[x] if type(x) is Variable else x for x in equation.inputs]
    with np.errstate(all="ignore"):
        found = apply(equation.primitive, *given, **equation.params)
    several = len(equation.outputs) != 1 or isinstance(found, tuple)
    known.update(zip(equation.outputs, found if several else (found,), strict=True))


def as_vector(x: Any, length: int) -> Any:
    """Return a number of lanes as a vector over them."""
    return x if shape_of(x) == (length,) else np.broadcast_to(x, (length,))


def places_of_numbers(shapes: Sequence[tuple[int, ...]], axes: Sequence[int]) -> list[Array]:
    """Return for each number of some arrays, one behind the other, the places of its lanes, which lie along axes."""
    found: list[Array] = []
    start = 0
    for shape, axis in zip(shapes, axes, strict=True):
        size = math.prod(shape)
        rows = np.moveaxis(np.arange(start, start + size).reshape(shape), axis, -1)
        found += [*rows.reshape(-1, shape[axis])]
        start += size
    return found
