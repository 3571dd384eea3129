"""`wengert grad` and `wengert compare`: how a formula and its derivatives are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.cli.commands import unusable
from wengert.cli.derivative_comparison import Comparison, compare
from wengert.cli.formula_parser import Formula
from wengert.core.graph.graph import Graph
from wengert.core.values.tensor import raw
from wengert.explanation import Explanation, explanation
from wengert.explanation.forward import forward_explanation
from wengert.transforms.jacobian import jacfwd, jacrev
from wengert.transforms.tracing import trace_function

MODES: dict[str, Callable[..., Any]] = {"reverse": jacrev, "forward": jacfwd}
MOST = 10_000
"""Elements of a derivative that are computed."""
HIGHEST = 8
"""Order of the highest derivative; each takes some three times as long as the one before."""
MOST_COMPARED = 100
"""Elements of variables and results whose derivatives are compared: each is a pass."""


def explain_formula(formula: Formula, mode: str, order: int) -> Explanation:
    """Explain a formula and its gradient, with the derivatives up to some order.

    Args:
        formula: what gives one number.
        mode: forward or reverse.
        order: of the highest derivative.
    """
    require_few(formula, order)
    with formula.evaluating():
        if mode == "forward":
            require_real(formula)
            found = forward_explanation(formula.scalar, formula.values, formula.names, formula.title)
        else:
            found = explanation(formula.scalar, formula.values, {}, formula.names, formula.title)
        higher = [derivative(formula, mode, k)(*formula.values) for k in range(2, order + 1)]
        return replace(found, higher=tuple(higher))


def compare_formula(formula: Formula) -> Comparison:
    """Compare the ways to the derivative of a formula."""
    require_real(formula)
    require_few(formula, 1, MOST_COMPARED)
    with formula.evaluating():
        size = np.size(raw(formula.array(*formula.values)))
        if not 0 < size <= MOST_COMPARED:
            raise unusable(
                f"a formula that gives {size} numbers", f"1 to {MOST_COMPARED} are needed", "Take smaller arrays"
            )
        return compare(formula.array, formula.values, formula.names, formula.title)


def derivative(formula: Formula, mode: str, order: int) -> Callable[..., Any]:
    """Return the function that computes a derivative of some order by all variables."""
    argnums = 0 if len(formula.names) == 1 else tuple(range(len(formula.names)))
    function: Callable[..., Any] = formula.scalar
    for _ in range(order):
        function = MODES[mode](function, argnums)
    return function


def graph_of_derivative(formula: Formula, mode: str, order: int) -> Graph:
    """Return the graph of the value and the derivative of some order."""
    compute = derivative(formula, mode, order)

    def both(*values: Any) -> Any:
        return formula.scalar(*values), compute(*values)

    leaves = [np.asarray(value)[()] for value in formula.values]
    with formula.evaluating():
        return trace_function(both, "grad", leaves, lambda xs: (tuple(xs), {}), formula.names).graph


def require_few(formula: Formula, order: int, most: int = MOST) -> None:
    """Raise a UsageError if a derivative has very many elements, or is of a very high order."""
    if order > HIGHEST:
        raise unusable(
            f"--order {order}",
            f"at most {HIGHEST} is needed",
            "Use wengert.taylor in Python, whose time grows with the square of the order",
        )
    count = sum(np.size(value) for value in formula.values)
    if count**order > most:
        raise unusable(
            f"variables of {count} elements, with {count**order} derivatives" + f" of order {order}" * (order > 1),
            f"at most {most} are needed",
            "Take smaller arrays, or use wengert.grad in Python",
        )


def require_real(formula: Formula) -> None:
    """Raise a UsageError if a variable is complex."""
    for name, value in formula.variables.items():
        if np.iscomplexobj(value):
            raise unusable(f"complex {name}", "real variables are needed here", "Take real and imaginary part apart")
