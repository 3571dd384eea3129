"""Whether a rule that a user gave is linear in what it carries: only then does the other mode follow from it.

The rule is traced to a graph, and the kinds of the primitives decide, also those in loops and branches. What the kinds
leave open, opaque operations, is tried with numbers, in the place of what it captures too where that has none yet or
differs from lane to lane; so is a rule that looks at values, and cannot be traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

import numpy as np

from wengert.core.diagnostics.store_guard import call_user
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.loop_spec import Items
from wengert.core.primitives.kinds import Elementwise, Linear, Multilinear
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import UNKNOWN, Aval, aval_of, is_differentiable
from wengert.core.values.tensor import Tensor, current, is_staged
from wengert.errors import GraphError, TracedTruthError, describe
from wengert.primitives.conversion import stand_in
from wengert.primitives.selection import guarded
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.staging import stage_function

Rule = Callable[[Sequence[Any]], Sequence[Any]]


NEEDED = {
    "vjp": (
        "a rule that is not linear in the cotangent (one that clips it, or joins it with other values)",
        "a jvp rule is needed for forward mode, which follows only from a linear one",
        "Give a jvp: defjvp of a custom_rule, or the static method jvp of a Function",
    ),
    "jvp": (
        "a rule that is not linear in the tangents (one that clips them, or joins them with other values)",
        "a vjp rule is needed for reverse mode, which follows only from a linear one, as linearize does",
        "Give a vjp: defvjp of a custom_rule; or make the rule linear",
    ),
}
"""What errors say of rules that are not linear: what was given, what is needed, what to do."""


def require_linear(primitive: Primitive, kind: str, rule: Rule, avals: Sequence[Aval]) -> None:
    """Raise a GraphError unless a primitive's rule, a "vjp" or "jvp" of arrays of these avals, is linear.

    A vjp leads from the cotangents of the results to those of the operands, None where there are none; a jvp from the
    tangents of the operands to those of the results.
    """
    try:
        graph, captured = trace_rule(primitive, kind, rule, avals)
    except TracedTruthError:
        linear = try_numbers(rule, avals)
    else:
        known = linear_by_kinds(graph, len(avals))
        if known is None and any(UNKNOWN in aval_of(x).shape for x in captured):
            known = False  # numbers in the place of sequences would have to fit each other
        linear = try_numbers(with_numbers(graph, captured), avals) if known is None else known
    if not linear:
        raise GraphError(describe(f"{primitive.name} ({kind} rule)", *NEEDED[kind]))


def trace_rule(primitive: Primitive, kind: str, rule: Rule, avals: Sequence[Aval]) -> tuple[Graph, Sequence[Tensor]]:
    """Return the graph of a rule, and the Tensors that its last inputs stand for.

    Raises:
        TracedTruthError: the rule looks at values; it may be called with numbers instead.
    """
    label = f"the {kind} rule of {primitive.name}"
    before = refusal_count()
    try:
        return stage_function(lambda xs: [x for x in call_user(rule, (xs,), {}) if x is not None], avals, label)
    except TracedTruthError:
        forgive(before)
        raise


def with_numbers(graph: Graph, captured: Sequence[Tensor]) -> Rule:
    """Return the rule that a graph is, with numbers in the place of what it captures."""
    numbers = list(map(numbers_for, captured))
    return lambda cts: evaluate(graph, [*cts, *numbers])


class Moves(Enum):
    """Say how a value follows what a rule carries, its cotangents or tangents.

    A step is constant where it is smooth: a comparison of them.
    """

    CONSTANT = auto()
    ZERO = auto()
    LINEAR = auto()
    STEP = auto()


class NotLinear(Exception):
    """Say that an operation is not linear; `known` is False where its kind does not tell."""

    def __init__(self, known: bool = True) -> None:
        super().__init__()
        self.known = known


def join_moves(one: Moves, other: Moves) -> Moves:
    """Return how a value follows that is either of two.

    Raises:
        NotLinear: it is linear, or a constant.

    >>> join_moves(Moves.ZERO, Moves.LINEAR)
    <Moves.LINEAR: 3>
    """
    if one is other or other is Moves.ZERO:
        return one
    if one is Moves.ZERO:
        return other
    raise NotLinear


def linear_by_kinds(graph: Graph, count: int) -> bool | None:
    """Return whether the kinds of what a graph does make it linear in its first inputs; None if they do not tell."""
    given = [Moves.LINEAR if i < count else Moves.CONSTANT for i in range(len(graph.inputs))]
    try:
        return all(moves in (Moves.LINEAR, Moves.ZERO) for moves in follow(graph, given))
    except NotLinear as error:
        return False if error.known else None


def follow(graph: Graph, given: Sequence[Moves]) -> list[Moves]:
    """Return how the outputs of a graph follow, from how its inputs do.

    Raises:
        NotLinear: something in it is not linear, or that is not known.
    """
    known = dict(zip(graph.inputs, given, strict=True))

    def of(value: Any) -> Moves:
        if type(value) is Variable:
            return known[value]
        is_zero = value.arrays is None if isinstance(value, Items) else not np.any(value)
        return Moves.ZERO if is_zero else Moves.CONSTANT

    for equation in graph.equations:
        moves = [of(x) for x in equation.inputs]
        known.update(zip(equation.outputs, results_of(equation, moves), strict=True))
    return list(map(of, graph.outputs))


def results_of(equation: Equation, moves: Sequence[Moves]) -> Sequence[Moves]:
    """Return how the results of an equation follow."""
    primitive = equation.primitive
    if Moves.STEP in moves:
        raise NotLinear
    if isinstance(primitive, Structured) and {Moves.LINEAR, Moves.ZERO}.intersection(moves):
        found: Sequence[Moves] | None = primitive.following(moves, equation.params, follow)
        if found is None:
            raise NotLinear(known=False)
        return found
    return [result_of(primitive, moves)] * len(equation.outputs)


def result_of(primitive: Primitive, moves: Sequence[Moves]) -> Moves:
    """Return how each result of an operation follows."""
    groups = linear_operands(primitive, len(moves))
    if Moves.LINEAR not in moves:
        is_zero = isinstance(primitive, Linear) and all(moves[i] is Moves.ZERO for i in groups[0])
        return Moves.ZERO if is_zero else Moves.CONSTANT
    if primitive.kind == "constant":
        return Moves.ZERO if primitive is stand_in else Moves.STEP
    if primitive is guarded:  # the others tell where it is 0 in place of NaN, which is where they are linear
        return moves[0]
    if not groups:
        raise NotLinear(known=isinstance(primitive, Elementwise) and primitive.registered)
    for group in groups:
        inside, outside = [moves[i] for i in group], [x for i, x in enumerate(moves) if i not in group]
        if Moves.LINEAR not in outside and Moves.CONSTANT not in inside:
            return Moves.LINEAR
    raise NotLinear


def linear_operands(primitive: Primitive, count: int) -> Sequence[Sequence[int]]:
    """Return the groups of operands in which an operation on so many is linear, in those of one together."""
    if isinstance(primitive, Linear):  # in its first operands, or all
        return (range(count if primitive.variadic else len(primitive.transposes)),)
    if isinstance(primitive, Multilinear):
        return [(i,) for i in range(count)]
    return primitive.linear_in if primitive.registered else ()


def try_numbers(rule: Rule, avals: Sequence[Aval]) -> bool:
    """Return whether a rule is linear for a few numbers; not where it gives none, or an error."""
    generator = np.random.default_rng(len(avals))

    def some() -> list[Any]:
        return [np.asarray(np.abs(generator.normal(size=a.shape)) * 10.0).astype(a.dtype)[()] for a in avals]

    x, y = some(), [-a for a in some()]
    both = [-1.75 * a + b for a, b in zip(x, y, strict=True)]
    try:
        found = [rule(cts) for cts in (x, y, [b.astype(a.dtype) for a, b in zip(avals, both, strict=True)])]
    except (ArithmeticError, np.linalg.LinAlgError):  # of what it captures there may be numbers that do not fit
        return False
    for a, b, c in zip(*found, strict=True):
        values = [0.0 if item is None else item for item in (a, b, c)]
        if any(map(is_staged, values)):
            return False
        p, q, r = map(all_lanes, values)
        size = 100 * np.finfo(aval_of(r).dtype if aval_of(r).dtype.kind in "fc" else float).eps
        scale = np.max(np.abs(p), initial=0.0) + np.max(np.abs(q), initial=0.0)
        if not np.all(np.abs(-1.75 * p + q - r) <= 100 * size * scale):
            return False
    return True


def all_lanes(value: Any) -> Any:
    """Return the array below a value, with the lanes of all batches in front."""
    while type(value) is Tensor:
        value = current(value)._value
    return value


def numbers_for(value: Tensor) -> Any:
    """Return what a rule is tried with in the place of what it captures: its own numbers, of one lane if it has many.

    Where there are none yet, a matrix is well-conditioned, and integers, which may be indices, are zero.
    """
    found = all_lanes(value)
    if not is_staged(value):
        lanes = np.asarray(found)
        return lanes.reshape(-1, *value.shape)[0] if lanes.ndim > len(value.shape) else lanes
    shape, dtype, _ = aval_of(value)
    if not is_differentiable(dtype):
        return np.zeros(shape, dtype)
    numbers = 0.5 + np.random.default_rng(1).random(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        numbers = numbers + shape[-1] * np.eye(shape[-1])
    return numbers.astype(dtype)
