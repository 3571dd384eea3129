"""`wengert grad` lists how a formula and its derivative are computed; `wengert compare` computes it in four ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.cli.commands import unusable
from wengert.cli.formula_parser import Formula
from wengert.cli.graph_expressions import WrittenExpression, expressions, operations
from wengert.core.graph.graph import Graph
from wengert.core.graph.printing import exact_text, value_text
from wengert.core.values.tensor import raw
from wengert.explanation import (
    Explanation,
    explanation,
    forward_explanation,
    gradient_text,
    jacobian_explanation,
    stack_tangents,
    unit_vectors,
)
from wengert.explanation.steps import ListRow, ListSection, as_rich, as_text
from wengert.transforms.forward import jvp
from wengert.transforms.jacobian import jacfwd, jacrev
from wengert.transforms.reverse import vjp
from wengert.transforms.tracing import trace_function

if TYPE_CHECKING:
    from rich.console import RenderableType


STEPS = tuple(10.0**-k for k in range(1, 13))

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold derivatives by differences with one step, and their largest errors.

    Attributes:
        step: how far apart the arguments are.
        one_sided: (f(x + h) - f(x)) / h, for each argument.
        central: (f(x + h) - f(x - h)) / 2h.
        errors: of both, the largest of all elements.
    """

    step: float
    one_sided: tuple[Any, ...]
    central: tuple[Any, ...]
    errors: tuple[float, float]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Show a derivative in four ways.

    Attributes:
        title: of what.
        forward, reverse: how both modes compute it.
        differences: numeric derivatives, by their steps.
        symbolic: an expression for each argument.
        directional: whether these are along directions, which is so for results and arguments with several elements.
        evaluated: the derivatives that the expressions give.
        counts: numbers of operations: of the value, of the expressions when shared parts are computed once, of one
            pass forward and of one pass in reverse.
    """

    title: str
    forward: Explanation
    reverse: Explanation
    differences: tuple[Difference, ...]
    symbolic: tuple[WrittenExpression, ...]
    directional: bool
    evaluated: tuple[Any, ...]
    counts: tuple[int, int, int, int]

    def __repr__(self) -> str:
        return as_text(*self.layout())

    def __rich__(self) -> RenderableType:
        return as_rich(*self.layout())

    @property
    def names(self) -> list[str]:
        """What the arguments are called."""
        return [step.name for step in self.reverse.inputs]

    @property
    def sizes(self) -> tuple[int, int]:
        """How many elements the arguments have together, and the result."""
        return sum(np.size(step.value) for step in self.reverse.inputs), np.size(raw(self.reverse.value))

    def layout(self) -> tuple[str, list[ListSection], list[tuple[str, str]]]:
        """Return title, sections and results as text."""
        sections = [self.numeric_section(), self.symbolic_section(), self.modes_section(), self.summary()]
        results = [
            ("value", exact_text(raw(self.reverse.value))),
            ("derivative", gradient_text(self.reverse.gradient)),
            ("mode", self.advice()),
        ]
        return self.title, sections, results

    def numeric_section(self) -> ListSection:
        """Return the differences, by their steps."""
        columns: tuple[str, ...] = ("one-sided", "its error", "central", "its error")
        if self.sizes != (1, 1):
            columns = ("error, one-sided", "error, central")
        texts: list[tuple[str, ...]] = [
            (value_text(d.one_sided[0]), error_text(d.errors[0]), value_text(d.central[0]), error_text(d.errors[1]))
            for d in self.differences
        ]
        if self.sizes != (1, 1):
            texts = [found[1::2] for found in texts]
        rows = [
            ListRow(f"h = {d.step:.0e}", "", found[0], None, found[1:])
            for d, found in zip(self.differences, texts, strict=True)
        ]
        return ListSection("numeric", rows, columns)

    def symbolic_section(self) -> ListSection:
        """Return the expressions of the derivatives."""
        rows = []
        for name, found in zip(self.names, self.symbolic, strict=True):
            left = f"d/d{name}" + f" along d{name}" * self.directional
            rows.append(ListRow(left, found.text, count_text(found.operations, "operation", "operations")))
        return ListSection("symbolic", rows, ("before sharing",))

    def modes_section(self) -> ListSection:
        """Return the Wengert list with what both modes compute at each step."""
        adjoints = {adjoint.name.removesuffix("'"): adjoint.value for adjoint in self.reverse.reverse}
        steps = self.forward.steps()
        rows = []
        for row in steps.rows:
            adjoint = value_text(adjoints[row.name]) if row.name in adjoints else ""
            rows.append(ListRow(row.name, row.formula, row.value, None, (*row.more, adjoint)))
        return ListSection("modes", rows, (*steps.columns, "adjoint"))

    def summary(self) -> ListSection:
        """Return what each way gives and costs, and how far it is from reverse mode."""
        inputs, outputs = self.sizes
        value, shared, forward, reverse = self.counts
        best = min(self.differences, key=lambda d: (np.isnan(d.errors[1]), d.errors[1], d.step))
        written = sum(found.operations for found in self.symbolic)
        exact, moved = self.blocks(self.reverse), self.blocks(self.forward)

        def row(name: str, found: Sequence[Any], count: int, note: str) -> ListRow:
            error = error_text(largest_error(found, exact))
            return ListRow(name, "", join_texts(found), None, (error, str(count), note))

        rows = [
            row("numeric", best.central, 2 * inputs * value, f"central, h = {best.step:.0e}: {2 * inputs} evaluations"),
            row("symbolic", self.evaluated, shared, f"{written} before sharing"),
            row("forward mode", moved, forward * inputs, count_text(inputs, "pass", "passes")),
            row("reverse mode", exact, reverse * outputs, count_text(outputs, "pass", "passes")),
        ]
        return ListSection("compared", rows, ("derivative", "from reverse", "operations", ""))

    def blocks(self, explanation: Explanation) -> Sequence[Any]:
        """Return the derivatives by each argument."""
        found: Sequence[Any] = explanation.gradient if len(self.names) > 1 else (explanation.gradient,)
        return found

    def advice(self) -> str:
        """Return which mode suits the shape."""
        inputs, outputs = self.sizes
        shape = f"{count_text(inputs, 'input', 'inputs')}, {count_text(outputs, 'output', 'outputs')}"
        if inputs > outputs:
            return f"reverse: {shape}; forward mode takes {inputs / outputs:.3g} times as many passes"
        if inputs < outputs:
            return f"forward: {shape}; reverse mode takes {outputs / inputs:.3g} times as many passes"
        return f"either: {shape}; as many passes, and forward mode keeps nothing for later"


def compare(fun: Function, args: Sequence[Any], names: Sequence[str], title: str) -> Comparison:
    """Compare the ways to a derivative."""
    reverse = jacobian_explanation(fun, args, names, title)
    forward = forward_explanation(fun, args, names, title)
    exact = reverse.gradient if len(args) > 1 else (reverse.gradient,)
    firm = [np.float64(x) if np.ndim(x) == 0 else x for x in args]
    found, evaluated, shared, directional = symbolic_derivatives(fun, firm, names, exact)
    along = trace_plain(lambda *xs: jvp(fun, xs[: len(firm)], xs[len(firm) :]), [*firm, *firm])
    back = trace_plain(lambda ct, *xs: pull_back(fun, ct, xs), [np.asarray(raw(reverse.value))[()], *firm])
    counts = (operations(trace_plain(fun, firm)), shared, operations(along), operations(back))
    return Comparison(
        title=title,
        forward=forward,
        reverse=reverse,
        differences=tuple(difference(fun, firm, step, exact) for step in STEPS),
        symbolic=tuple(found),
        directional=directional,
        evaluated=evaluated,
        counts=counts,
    )


def trace_plain(fun: Function, args: Sequence[Any], names: Sequence[str] = ()) -> Graph:
    """Return the graph of a function of numbers and arrays."""
    return trace_function(fun, "compare", args, lambda xs: (tuple(xs), {}), names).graph


def pull_back(fun: Function, ct: Any, xs: Sequence[Any]) -> Any:
    """Return the value of a function and the products of a cotangent with its Jacobians."""
    value, pullback = vjp(fun, *xs)
    return value, pullback(ct)


def symbolic_derivatives(
    fun: Function, args: Sequence[Any], names: Sequence[str], exact: Sequence[Any]
) -> tuple[list[WrittenExpression], tuple[Any, ...], int, bool]:
    """Return an expression of the derivative by each argument, what these give, and how many operations they share.

    The derivative of one number is its gradient; that of an array is taken along a direction, which is 1 for numbers.
    """
    count = len(args)
    if all(np.ndim(found) == np.ndim(x) for found, x in zip(exact, args, strict=True)):
        graph = trace_plain(lambda *xs: vjp(fun, *xs)[1](np.float64(1.0)), args, names)
        return expressions(graph), graph(*args), operations(graph), False

    def slopes(*xs: Any) -> Any:
        directions = [x if np.ndim(x) else np.float64(1.0) for x in xs[count:]]
        return tuple(
            jvp(lambda x, i=i: fun(*xs[:i], x, *xs[i + 1 : count]), (xs[i],), (directions[i],))[1] for i in range(count)
        )

    graph = trace_plain(slopes, [*args, *args], name_directions(names))
    evaluated = tuple(column(graph, args, i) for i in range(count))
    return expressions(graph), evaluated, operations(graph), any(np.ndim(x) for x in args)


def name_directions(names: Sequence[str]) -> list[str]:
    """Return names with those of directions after them: dx for x, or another if there is a dx."""
    found = list(names)
    for name in names:
        direction = f"d{name}"
        while direction in found:
            direction += "_"
        found.append(direction)
    return found


def column(graph: Graph, args: Sequence[Any], i: int) -> Any:
    """Return the Jacobian by an argument that an expression gives, direction by direction."""
    found = [graph(*args, *(unit if k == i else x for k, x in enumerate(args)))[i] for unit in unit_vectors(args[i])]
    return stack_tangents(found, np.shape(args[i]))


def difference(fun: Function, args: Sequence[Any], step: float, exact: Sequence[Any]) -> Difference:
    """Return the derivatives by differences with one step."""
    middle = value_of(fun, args)
    one_sided, central = [], []
    for i, x in enumerate(args):
        ahead, behind = (
            [value_of(fun, [*args[:i], x + sign * step * unit, *args[i + 1 :]]) for unit in unit_vectors(x)]
            for sign in (1, -1)
        )
        one_sided.append(stack_tangents([(a - middle) / step for a in ahead], np.shape(x)))
        central.append(stack_tangents([(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)], np.shape(x)))
    errors = largest_error(one_sided, exact), largest_error(central, exact)
    return Difference(step, tuple(one_sided), tuple(central), errors)


def value_of(fun: Function, args: Sequence[Any]) -> Any:
    """Return the value of a function as an array."""
    return np.asarray(raw(fun(*args)), dtype=float)


def largest_error(found: Sequence[Any], exact: Sequence[Any]) -> float:
    """Return how far derivatives are apart at most; NaN where only one of them is a number."""
    largest = 0.0
    for a, b in zip(found, exact, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        with np.errstate(invalid="ignore"):
            gaps = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        largest = float(np.max([largest, *gaps.reshape(-1)]))
    return largest


def join_texts(values: Sequence[Any]) -> str:
    """Return derivatives by one or several arguments as text."""
    texts = list(map(value_text, values))
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def count_text(count: int, one: str, many: str) -> str:
    """Return a number of things.

    >>> count_text(1, "pass", "passes"), count_text(3, "pass", "passes")
    ('1 pass', '3 passes')
    """
    return f"{count} {one if count == 1 else many}"


def error_text(error: float) -> str:
    """Return an error in short."""
    return f"{error:.1e}" if error else "0"


MODES: dict[str, Callable[..., Any]] = {"reverse": jacrev, "forward": jacfwd}
MOST = 10_000
"""Elements of a derivative that are computed."""
HIGHEST = 8
"""Order of the highest derivative; each takes some three times as long as the one before."""
MOST_COMPARED = 100
"""Elements of variables and results whose derivatives are compared: each is a pass."""


def explain_formula(formula: Formula, mode: str, order: int) -> Explanation:
    """Explain a formula and its gradient, with the derivatives up to some order."""
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
