"""Factors of sparse matrices of one pattern, front by front, and solutions by them, as parts of programs.

Neither has derivatives: these are of the solutions, by the rules of whoever holds the factors. Rows change places
within fronts only. Where a pivot is nothing beside the elements of its column in other rows, factors are NaN, so that
solutions are; whoever asked takes a shorter step then, whose matrix is nearer to one that has pivots on its diagonal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.declare import constant
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.aval import Aval, aval_of
from wengert.implicit.fronts import Fronts, whole
from wengert.implicit.systems import batch_solution
from wengert.primitives.linear_algebra.matrices import over_stacks

LARGEST = 1e9
"""What a row may be subtracted times at most, as in `wengert.emission.routines.front_routines`."""
Array = np.ndarray[Any, Any]


class FactorForm(Routine):
    """Factors: a vector of a length that the fronts say."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Return the shape, without an example."""
        elements = aval_of(inputs[0])
        return (Aval((*elements.shape[:-2], params["fronts"].length, 1), elements.dtype),), None


class SolutionForm(Routine):
    """Solutions: of the shape of right-hand sides, in lanes of either."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], _params: Mapping[str, Any]) -> Results:
        """Return the shape, without an example."""
        packed, right = map(aval_of, inputs[:2])
        stack = np.broadcast_shapes(packed.shape[:-2], right.shape[:-2])
        return (Aval((*stack, *right.shape[-2:]), right.dtype),), None


def evaluate_factors(elements: Any, _table: Any, *, fronts: Fronts) -> Any:
    """Evaluate `front_factors`."""
    return over_stacks(lambda own: factorise(own[:, 0], fronts)[:, None], (2,), elements)


def factorise(elements: Array, fronts: Fronts) -> Array:
    """Return the factors of a matrix: of each front exchanges, a square, and what is beside it and below, turned."""
    found, left = np.zeros(fronts.length), dict[int, Array]()
    with np.errstate(all="ignore"):
        for n, (front, (own, targets)) in enumerate(zip(fronts.members, fronts.entries, strict=True)):
            count, w = len(front.rows), front.width
            full = np.zeros((count, whole(count)))
            full.reshape(-1)[targets] = elements[own]
            full = full[:, :count]
            for child in front.children:
                places = np.searchsorted(front.rows, fronts.members[child].rest)
                full[places[:, None], places] += left.pop(child)
            exchanges = eliminate(full, w)
            if not np.all(np.abs(full[w:, :w]) <= LARGEST):
                return np.full(fronts.length, np.nan)
            left[n] = full[w:, w:]
            exchanged, square, beside, below = parts_of_factor(found, fronts, n)
            exchanged[:], square[...] = exchanges, full[:w, :w]
            beside[:, : count - w], below[:, : count - w] = full[:w, w:], full[w:, :w].T
    return found


def eliminate(full: Array, width: int) -> Array:
    """Eliminate some columns of a matrix in its place; return which row each was exchanged with."""
    exchanges = np.zeros(width)
    for k in range(width):
        chosen = k + int(np.argmax(np.abs(full[k:width, k])))
        exchanges[k] = chosen
        full[[k, chosen]] = full[[chosen, k]]
        full[k + 1 :, k] /= full[k, k]
        full[k + 1 :, k + 1 :] -= full[k + 1 :, k, None] * full[k, k + 1 :]
    return exchanges


def parts_of_factor(packed: Array, fronts: Fronts, n: int) -> tuple[Array, Array, Array, Array]:
    """Return the exchanges of a front, its square, and what is beside and below that."""
    front, start = fronts.members[n], fronts.starts[n]
    w, long = front.width, whole(len(front.rest))
    bounds = start + np.cumsum([0, w, w * w, w * long, w * long])
    parts = [packed[one:other] for one, other in itertools.pairwise(bounds)]
    return parts[0], parts[1].reshape(w, w), parts[2].reshape(w, long), parts[3].reshape(w, long)


def evaluate_solution(packed: Any, right: Any, _table: Any, *, fronts: Fronts, transposed: bool) -> Any:
    """Evaluate `front_solution`."""

    def one(packed: Array, right: Array) -> Array:
        with np.errstate(all="ignore"):
            return substitute(packed[:, 0], np.array(right), fronts, transposed)

    return over_stacks(one, (2, 2), packed, right)


def substitute(packed: Array, x: Array, fronts: Fronts, transposed: bool) -> Array:
    """Solve a system, or that of the transpose, in the place of its right-hand sides."""
    places, least, most = fronts.exchanges
    exchanges = packed[places]
    if not np.all((exchanges >= least) & (exchanges <= most)):  # NaN, or no factors at all, as where shapes are found
        return np.full(x.shape, np.nan)

    def solve(square: Array, b: Array, lower: bool) -> Array:
        turned = square.T if transposed else square
        found = b.copy()
        for k in range(len(b)) if lower else range(len(b) - 1, -1, -1):
            others = slice(0, k) if lower else slice(k + 1, None)
            found[k] -= turned[k, others] @ found[others]
            found[k] /= 1.0 if lower != transposed else turned[k, k]
        return found

    count = len(fronts.members)
    parts = [parts_of_factor(packed, fronts, n) for n in range(count)]
    rows = [fronts.order[front.rows] for front in fronts.members]
    for (exchanges, square, beside, below), places in zip(parts, rows, strict=True):
        w, rest = len(square), places[len(square) :]
        own = x[places[:w]]
        if not transposed:
            exchange(own, exchanges, range(w))
        x[places[:w]] = own = solve(square, own, True)
        x[rest] -= (beside if transposed else below)[:, : len(rest)].T @ own
    for (exchanges, square, beside, below), places in zip(reversed(parts), reversed(rows), strict=True):
        w, rest = len(square), places[len(square) :]
        own = solve(square, x[places[:w]] - (below if transposed else beside)[:, : len(rest)] @ x[rest], False)
        if transposed:
            exchange(own, exchanges, range(w - 1, -1, -1))
        x[places[:w]] = own
    return x


def exchange(x: Array, exchanges: Array, steps: range) -> None:
    """Exchange rows in their place."""
    for k in steps:
        other = int(exchanges[k])
        x[[k, other]] = x[[other, k]]


def routine_of_factors(*, fronts: Fronts) -> RoutineCall:
    """Return how native code is called."""
    fields = {"fronts": len(fronts.members), "space": fronts.room, "length": fronts.length}
    return RoutineCall("front_factors", (), fields)


front_factors: Primitive = constant(
    "front_factors",
    evaluate_factors,
    form=FactorForm("(e,k),(t)->(p,k)"),
    routine=routine_of_factors,
)
"""The factors of a matrix given by its elements, beside the table of `Fronts` that kernels read."""


def routine_of_solution(*, fronts: Fronts, transposed: bool) -> RoutineCall:
    """Return how native code is called."""
    fields = {"fronts": len(fronts.members), "space": fronts.longest, "length": fronts.size}
    return RoutineCall("front_solution", (), {**fields, "backward": int(transposed)})


front_solution: Primitive = constant(
    "front_solution",
    evaluate_solution,
    form=SolutionForm("(p,k),(n,m),(t)->(n,m)"),
    batch=batch_solution,
    routine=routine_of_solution,
)
"""The solution X of A X = B, or with `transposed` that of A^T X = B, by the factors of A."""
