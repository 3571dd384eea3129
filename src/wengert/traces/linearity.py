"""Whether a rule that a user gave is linear in what it carries: only then does the other mode follow from it.

The rule is traced to a graph, and the kinds of the primitives decide. What the kinds leave open, opaque operations and
loops, is tried with numbers, in the place of what it captures too where that has none yet or differs from lane to lane;
so is a rule that looks at values, and cannot be traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._refusals import forgive, refusals_noted
from wengert.core.aval import Aval, aval_of, is_differentiable
from wengert.core.graph import Equation, Graph, Variable, evaluate
from wengert.core.identity import registered_name
from wengert.core.kinds import Elementwise, Linear, Multilinear
from wengert.core.primitive import Primitive
from wengert.core.stores import called
from wengert.core.tensor import Tensor, current, is_staged
from wengert.errors import GraphError, TracedTruthError, describe
from wengert.traces.staging import staged

__all__ = ["require_linear"]

TERMS = frozenset({"add", "subtract", "where"})
"""Elementwise operations that are linear in all of their array operands together."""
FACTORS = frozenset({"multiply", "complex_product"})
SCALED = frozenset({"negative", "positive", "conjugate", "divide", "ldexp", "deg2rad", "rad2deg", "radians", "degrees"})
"""Those that are linear in the first."""

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
    """Raise a GraphError unless a rule is linear.

    Args:
        primitive: whose rule it is.
        kind: "vjp" or "jvp".
        rule: from the cotangents of the results to those of the operands, None where there are none; or from the
            tangents of the operands to those of the results.
        avals: those of what it is given.
    """
    try:
        graph, captured = traced(primitive, kind, rule, avals)
    except TracedTruthError:
        linear = tried(rule, avals)
    else:
        known = linear_by_kinds(graph, len(avals))
        linear = tried(with_numbers(graph, captured), avals) if known is None else known
    if not linear:
        raise GraphError(describe(f"{primitive.name} ({kind} rule)", *NEEDED[kind]))


def traced(primitive: Primitive, kind: str, rule: Rule, avals: Sequence[Aval]) -> tuple[Graph, Sequence[Tensor]]:
    """Return the graph of a rule, and the Tensors that its last inputs stand for.

    Raises:
        TracedTruthError: the rule looks at values; it may be called with numbers instead.
    """
    label = f"the {kind} rule of {primitive.name}"
    before = refusals_noted()
    try:
        return staged(lambda xs: [x for x in called(rule, (xs,), {}) if x is not None], avals, label)
    except TracedTruthError:
        forgive(before)
        raise


def with_numbers(graph: Graph, captured: Sequence[Tensor]) -> Rule:
    """Return the rule that a graph is, with numbers in the place of what it captures."""
    numbers = list(map(numbers_for, captured))
    return lambda cts: evaluate(graph, [*cts, *numbers])


def linear_by_kinds(graph: Graph, count: int) -> bool | None:
    """Return whether the kinds of what a graph does make it linear in its first inputs; None if they do not tell."""
    return Walk().graph(graph, [i < count for i in range(len(graph.inputs))])


class Walk:
    """Follow the cotangents, or tangents, through a graph.

    Attributes:
        linear: the variables that are linear in them.
        zeros: those that are zero.
        steps: those that are constant where they are smooth: comparisons of cotangents.
    """

    def __init__(self) -> None:
        self.linear: set[Variable] = set()
        self.zeros: set[Variable] = set()
        self.steps: set[Variable] = set()

    def graph(self, graph: Graph, flags: Sequence[bool]) -> bool | None:
        """Return whether all outputs are linear in the flagged inputs; None if that is not known."""
        self.linear.update(v for v, flag in zip(graph.inputs, flags, strict=True) if flag)
        for equation in graph.equations:
            if not self.follow(equation):
                return self.answer
        return all(map(self.fits, graph.outputs))

    answer: bool | None = False

    def follow(self, equation: Equation) -> bool:
        """Take in an equation; return False, with `answer` set, if it is not linear or that is not known."""
        inputs = equation.inputs
        if any(type(x) is Variable and x in self.steps for x in inputs):
            self.answer = False
            return False
        moving = [type(x) is Variable and x in self.linear for x in inputs]
        primitive, name = equation.primitive, registered_name(equation.primitive)
        if not any(moving):
            if isinstance(primitive, Linear) and all(map(self.is_zero, arguments_of(primitive, inputs))):
                self.zeros.update(equation.outputs)
            return True
        if primitive.kind == "constant":
            self.steps.update(equation.outputs)
            return True
        if isinstance(primitive, Linear):
            count = len(arguments_of(primitive, inputs))
            good = not any(moving[count:]) and all(map(self.fits, inputs[:count]))
        elif isinstance(primitive, Multilinear) or name in FACTORS:
            good = sum(moving) == 1
        elif name in TERMS:
            first = int(name == "where")
            good = not any(moving[:first]) and all(map(self.fits, inputs[first:]))
        elif name in SCALED:
            good = not any(moving[1:])
        else:
            self.answer = False if isinstance(primitive, Elementwise) and name else None
            return False
        self.answer = False
        self.linear.update(equation.outputs)
        return good

    def fits(self, value: Any) -> bool:
        """Tell whether a value is linear in the cotangents: zero is."""
        return (type(value) is Variable and value in self.linear) or self.is_zero(value)

    def is_zero(self, value: Any) -> bool:
        """Tell whether a value is known to be zero."""
        return value in self.zeros if type(value) is Variable else not np.any(value)


def arguments_of(primitive: Linear, inputs: Sequence[Any]) -> Sequence[Any]:
    """Return the operands in which an operation is linear."""
    return inputs if primitive.variadic else inputs[: len(primitive.transposes)]


def tried(rule: Rule, avals: Sequence[Aval]) -> bool:
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
