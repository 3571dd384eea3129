"""Graph passes, `Graph -> Graph`, each preserving values to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.aval import aval_of
from wengert.core.graph import Equation, Graph, Variable, hashable, literal, subgraphs

__all__ = ["PIPELINE", "eliminate_dead", "merge_common", "simplified"]


def eliminate_dead(graph: Graph) -> Graph:
    """Drop the equations whose results nothing uses."""
    live = {x for x in graph.outputs if type(x) is Variable}
    kept: list[Equation] = []
    for equation in reversed(graph.equations):
        if any(v in live for v in equation.outputs):
            live.update(x for x in equation.inputs if type(x) is Variable)
            kept.append(equation)
    return Graph(graph.inputs, kept[::-1], graph.outputs)


def merge_common(graph: Graph) -> Graph:
    """Compute each expression once: primitives are functions, so equal operands give equal results."""
    seen: dict[Any, tuple[Variable, ...]] = {}
    renamed: dict[Variable, Any] = {}
    numbers: dict[Variable, int] = {}

    def key_of(value: Any) -> Any:
        return numbers.setdefault(value, len(numbers)) if type(value) is Variable else hashable(value)

    kept = []
    for equation in graph.equations:
        inputs = tuple(renamed.get(x, x) if type(x) is Variable else x for x in equation.inputs)
        key = (
            id(equation.primitive),
            tuple(map(key_of, inputs)),
            tuple((k, repr(hashable(v))) for k, v in sorted(equation.params.items())),
        )
        known = seen.get(key)
        if known is not None:
            renamed.update(zip(equation.outputs, known, strict=True))
            continue
        seen[key] = equation.outputs
        kept.append(Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.position))
    outputs = tuple(renamed.get(x, x) if type(x) is Variable else x for x in graph.outputs)
    return Graph(graph.inputs, kept, outputs)


LARGEST_FOLDED = 1 << 16
Rewrite = Callable[[Equation], Any]


def fold(equation: Equation) -> Any:
    """Evaluate an operation on literals alone; return None if there are variables."""
    if (
        any(type(x) is Variable for x in equation.inputs)
        or len(equation.outputs) != 1
        or any(True for _ in subgraphs(equation.params))
    ):
        return None
    if equation.outputs[0].shape and math.prod(equation.outputs[0].shape) > LARGEST_FOLDED:
        return None
    with np.errstate(all="ignore"):
        return literal(equation.primitive.evaluate(*equation.inputs, **equation.params))


def drop_neutral(equation: Equation) -> Any:
    """Replace x * 1, x / 1 and x ** 1 by x: exact for every x, NaN and the sign of zero included.

    x + 0 is not x for x = -0.0, so sums are left alone; so is anything that would change dtype or shape.
    """
    if equation.primitive.name not in ("multiply", "divide", "power"):
        return None
    x, y = equation.inputs
    if is_one(y) and same_aval(x, equation.outputs[0]):
        return x
    if equation.primitive.name == "multiply" and is_one(x) and same_aval(y, equation.outputs[0]):
        return y
    return None


def choose_constant(equation: Equation) -> Any:
    """Replace a selection whose condition is known by the operand chosen, and an `and` with False by False."""
    name, inputs = equation.primitive.name, equation.inputs
    if name == "where" and is_constant_bool(inputs[0]):
        chosen = inputs[1] if bool(np.all(inputs[0])) else inputs[2]
        return chosen if same_aval(chosen, equation.outputs[0]) else None
    if name == "bitwise_and" and equation.outputs[0].dtype == np.bool_:
        false = np.zeros(equation.outputs[0].shape, np.bool_)[()]
        if any(is_constant_bool(x) and not np.any(x) for x in inputs):
            return literal(false)
    return None


def is_one(value: Any) -> bool:
    """Tell whether a value is a literal of ones, of no more axes than what it multiplies."""
    return type(value) is not Variable and np.ndim(value) == 0 and bool(value == 1)


def is_constant_bool(value: Any) -> bool:
    """Tell whether a value is a boolean literal, all true or all false."""
    return (
        type(value) is not Variable and np.asarray(value).dtype == np.bool_ and bool(np.all(value) or not np.any(value))
    )


def same_aval(value: Any, variable: Variable) -> bool:
    """Tell whether a value has a variable's shape and dtype."""
    return type(value) is not float and type(value) is not int and aval_of(value) == variable.aval


def simplify(graph: Graph) -> Graph:
    """Apply the rewrites to each equation in turn: each preserves values to the bit."""
    known: dict[Variable, Any] = {}
    kept = []
    for equation in graph.equations:
        inputs = tuple(known.get(x, x) if type(x) is Variable else x for x in equation.inputs)
        equation = Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.position)
        for rewrite in REWRITES:
            found = rewrite(equation)
            if found is not None:
                known[equation.outputs[0]] = found
                break
        else:
            kept.append(equation)
    return Graph(graph.inputs, kept, tuple(known.get(x, x) if type(x) is Variable else x for x in graph.outputs))


REWRITES: tuple[Rewrite, ...] = (fold, drop_neutral, choose_constant)
PIPELINE = (eliminate_dead, simplify, merge_common, eliminate_dead)


def simplified(graph: Graph) -> Graph:
    """Run the pipeline."""
    for step in PIPELINE:
        graph = step(graph)
    return graph
