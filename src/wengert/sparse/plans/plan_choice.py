"""Which plan a sparse derivative gets: the one that was given, or of those that there are the one that takes least."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.graph.identity import digest, identity
from wengert.errors import ShapeError, UsageError
from wengert.sparse.coloring.coloring import Coloring
from wengert.sparse.coloring.coloring_methods import (
    as_pattern,
    color_general,
    color_symmetric,
    require_symmetric,
    with_transpose,
)
from wengert.sparse.derivative_arguments import Positional
from wengert.sparse.patterns.find_pattern import pattern_with_causes
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.patterns.tangent_program import TangentProgram
from wengert.sparse.patterns.walk import FEW_LINES
from wengert.sparse.plans.element_plan import ElementPlan, plan_by_elements
from wengert.sparse.plans.lane_plan import LanePlan
from wengert.sparse.plans.map_plan import MapPlan, plan_by_maps
from wengert.sparse.plans.plan import VERSION, Identity, Plan
from wengert.sparse.plans.plan_times import (
    FEW_POINTS,
    NEAR,
    fewest_colors,
    least_time_by_maps,
    most_points,
    time_by_colors,
    work_of,
)
from wengert.sparse.plans.value_walk import TooManyPoints
from wengert.support.records import NamedTuple
from wengert.transforms.transformed_function import DerivativeOptions

METHODS = ("auto", "maps", "elements", "colors", "dense")
MANY = 0.5
"""The share of rows or columns from which colours are so many that it is told."""
NAMED = 3
"""How many rows or columns a warning names."""


Means = MapPlan | ElementPlan | LanePlan
"""What carries out a plan by maps or elements."""


class Request(NamedTuple):
    """Hold what is asked for.

    Attributes:
        options: the name of the function, which arguments, and whether there is an auxiliary result.
        second: whether it is a Hessian.
        with_value: whether the value is returned, too.
        pattern: the pattern that the user gave.
        plan: the name of a method, or a plan.
        format: of the matrices: "csr", "csc", or "flat" for one of all.
        reuse: whether elements are written into the memory of what was returned before.
        lower: whether elements above the diagonal are left out.
        check: whether a pattern is compared with two random products.
    """

    options: DerivativeOptions
    second: bool
    with_value: bool = False
    pattern: Any = None
    plan: Any = "auto"
    format: str = "csr"
    reuse: bool = False
    lower: bool = False
    check: bool = False


class Wanted(NamedTuple):
    """Hold what a plan is wanted for.

    Attributes:
        name: the derivative, for errors.
        inputs: shapes and dtypes of arguments.
        second: whether it is a Hessian.
        shape: the numbers of rows and columns.
        graph: of the function.
        value: of the function without its auxiliary result.
    """

    name: str
    inputs: str
    second: bool
    shape: tuple[int, int]
    graph: Graph
    value: Graph

    def identity(self) -> Identity:
        """Return what tells the plan from those for other functions, arguments and versions."""
        own = digest(identity((self.graph, self.second, VERSION)))
        return Identity("hessian" if self.second else "jacobian", self.inputs, "" if own is None else own.hex())


def choose_plan(wanted: Wanted, of: Positional, request: Request) -> tuple[Plan, Means | None]:
    """Return the plan that was given, if it is of this function and these arguments, or the one that takes least.

    With a plan by maps or elements comes what carries it out.
    """
    own = wanted.identity()
    if isinstance(request.plan, Plan):
        if request.pattern is not None:
            raise UsageError(wanted.name, "a pattern beside a plan", "one of them is needed", "Leave pattern out")
        require_same(wanted.name, request.plan.identity, own)
        given = request.plan
        if given.method == "elements":
            return given, require_elements(wanted, of, given.coloring)
        return given, require_maps(wanted, of) if given.method == "maps" else None
    if request.pattern is not None:
        pattern = given_pattern(wanted, request.pattern)
        if request.plan in ("maps", "elements"):
            given_both = f"a pattern beside plan={request.plan!r}"
            action = f"Leave pattern out: {request.plan} find their own"
            raise UsageError(wanted.name, given_both, "one of them is needed", action)
        return plan_for_pattern(wanted, own, pattern, request.plan, []), None
    if request.plan == "maps":
        maps = require_maps(wanted, of)
        return maps_plan(own, maps), maps
    if request.plan == "elements":
        elements = require_elements(wanted, of, None)
        return elements_plan(own, elements), elements
    lines = LinePlans(wanted, own, TangentProgram(wanted.name, of, of.values, of.argnums))
    return least_plan(lines, of) if request.plan == "auto" else (lines.plan(request.plan), None)


def least_plan(lines: LinePlans, of: Positional) -> tuple[Plan, Means | None]:
    """Return the plan that seems to take least: by maps, by elements or by colours.

    Maps of what is gathered more than once are large, and are not tried where lanes are sure to take less than colours.
    """
    wanted, own, program = lines.wanted, lines.own, lines.program
    elements = plan_by_elements(wanted.name, wanted.value, of, wanted.second)
    is_shared = isinstance(elements, LanePlan) and len(elements.cut.columns) > program.columns
    if elements is not None and is_shared and elements.time <= lines.shortest(elements.pattern):
        return elements_plan(own, elements), elements
    maps = plan_by_few_points(program, of.values, lines)
    is_best = elements is not None and (maps is None or maps.time > NEAR * elements.time)
    if elements is not None and is_best and lines.take_longer(elements, elements.pattern):
        return elements_plan(own, elements), elements
    if maps is None:
        return lines.by_colors, None
    lines.know(maps)
    if lines.take_longer(maps, lines.pattern[0]):
        return maps_plan(own, maps), maps
    return lines.by_colors, None


class LinePlans:
    """Make plans that compute rows and columns, of a pattern that is found when it is asked for."""

    def __init__(self, wanted: Wanted, own: Identity, program: TangentProgram) -> None:
        self.wanted, self.own, self.program = wanted, own, program
        self.work = work_of(program.graph, program.tangents)

    def plan(self, method: str) -> Plan:
        """Return the plan by colours, or the dense one."""
        pattern, reasons = self.pattern
        return plan_for_pattern(self.wanted, self.own, pattern, method, reasons)

    @functools.cached_property
    def by_colors(self) -> Plan:
        """The plan by colours."""
        return self.plan("colors")

    @functools.cached_property
    def pattern(self) -> tuple[Pattern, list[str]]:
        """The pattern, and what makes it dense."""
        pattern, dense = pattern_with_causes(self.program, False)
        return with_transpose(pattern) if self.wanted.second else pattern, reasons_of(dense)

    def know(self, maps: MapPlan) -> None:
        """Take the pattern that a plan by maps has found, unless there is one."""
        if "pattern" not in vars(self):
            pattern = with_transpose(maps.pattern) if self.wanted.second else maps.pattern
            self.pattern = pattern, reasons_of(maps.dense)

    def shortest(self, pattern: Pattern) -> float:
        """Return about how many microseconds as few colours as may be take for some elements."""
        least = fewest_colors(pattern.shape, pattern.count, self.wanted.second)
        return time_by_colors(self.work, least, pattern.count)

    def take_longer(self, means: Means, pattern: Pattern) -> bool:
        """Tell whether colours take longer for some elements: as few as may be, or else those that are found."""
        if means.time <= NEAR * self.shortest(pattern):
            return True
        assert self.by_colors.coloring is not None
        return means.time <= NEAR * time_by_colors(self.work, self.by_colors.coloring.count, pattern.count)

    @property
    def longest(self) -> float:
        """About how many microseconds all rows or columns take, whatever the pattern."""
        rows, columns = self.wanted.shape
        return time_by_colors(self.work, min(rows, columns), rows * columns)

    def limits(self) -> Iterator[float]:
        """Yield up to how many points of a value maps may be the plan that takes least: each limit takes more to know.

        The first is what the program computes itself; then what as few colours as may be take, and the colours found.
        """
        yield max(FEW_POINTS, self.work.moving + self.work.still)
        pattern = self.pattern[0]
        least = fewest_colors(pattern.shape, pattern.count, self.wanted.second)
        yield most_points(self.work, least, pattern.count)
        assert self.by_colors.coloring is not None
        yield most_points(self.work, self.by_colors.coloring.count, pattern.count)


def plan_by_few_points(program: TangentProgram, args: Sequence[Any], lines: LinePlans) -> MapPlan | None:
    """Return the plan by maps; None where there is none, or where its equations or tables take longer than colours do.

    Programs written number by number, of 10^4 equations for three unknowns, took longer to follow than all else.
    """
    if least_time_by_maps(program.graph, program.tangents) > NEAR * lines.longest:
        return None
    for most in lines.limits():
        try:
            return plan_by_maps(program, args, most)
        except TooManyPoints:
            continue
    return None


def reasons_of(dense: Sequence[Equation]) -> list[str]:
    """Return what is said of the equations that made a derivative dense."""
    return [f"{e.primitive.name} makes it dense, {e.position or 'of the library'}" for e in dense[:NAMED]]


def maps_plan(own: Identity, maps: MapPlan) -> Plan:
    """Return the plan by maps."""
    return Plan(own, "maps", maps.pattern, None, maps.count, reasons_of(maps.dense))


def elements_plan(own: Identity, elements: ElementPlan | LanePlan) -> Plan:
    """Return the plan by elements."""
    count = elements.count if isinstance(elements, LanePlan) else 0
    return Plan(own, "elements", elements.pattern, elements.coloring, count)


def require_maps(wanted: Wanted, of: Positional) -> MapPlan:
    """Return the plan by maps; raise a UsageError if there is none."""
    maps = plan_by_maps(TangentProgram(wanted.name, of, of.values, of.argnums), of.values)
    if maps is None:
        given = "plan='maps' of a function with an operation that maps do not follow"
        needed = "gathers, sums, products and functions of each element are needed"
        raise UsageError(wanted.name, given, needed, "Leave plan out")
    return maps


def require_elements(wanted: Wanted, of: Positional, coloring: Coloring | None) -> ElementPlan | LanePlan:
    """Return the plan by elements, with colours if they are known; raise a UsageError if there is none."""
    elements = plan_by_elements(wanted.name, wanted.value, of, wanted.second, coloring, True)
    if elements is None:
        given = "plan='elements' of a function that gathers nothing from its arguments"
        needed = "parts of arguments at known places are needed"
        raise UsageError(wanted.name, given, needed, "Leave plan out")
    return elements


def plan_for_pattern(wanted: Wanted, own: Identity, pattern: Pattern, method: str, reasons: Sequence[str]) -> Plan:
    """Return the plan by colours of a pattern, or the dense one if that is asked for."""
    if method == "dense":
        return Plan(own, "dense", pattern, each_line(pattern), 0, reasons)
    coloring = color_symmetric(pattern, "auto") if wanted.second else color_general(pattern, "auto", "auto")
    return Plan(own, "colors", pattern, coloring, 0, reasons)


def require_same(name: str, plan: Identity, own: Identity) -> None:
    """Raise a UsageError of a plan of another derivative, function or version, or for other arguments."""
    if plan == own and own.digest:
        return
    if plan.name != own.name:
        given = f"a plan of a {plan.name}"
    elif plan.inputs != own.inputs:
        given = f"a plan for arguments {plan.inputs}, not {own.inputs}"
    else:
        given = "a plan of another function, or of another version of this one or of Wengert"
    raise UsageError(name, given, "one of this function is needed", "Leave plan out, and save the new one")


def given_pattern(wanted: Wanted, given: Any) -> Pattern:
    """Return the pattern that the user gave; raise a ShapeError if it is not of the shape of the derivative."""
    pattern = as_pattern(wanted.name, given)
    if pattern.shape != wanted.shape:
        text = f"a pattern of {pattern.shape[0]} x {pattern.shape[1]}"
        needed = f"{wanted.shape[0]} x {wanted.shape[1]} is needed, all results by all arguments"
        raise ShapeError(wanted.name, text, needed, "Count elements in the order of wengert.tree.ravel")
    if wanted.second:
        require_symmetric(wanted.name, pattern)
    return pattern


def each_line(pattern: Pattern) -> Coloring:
    """Return the coloring in which each column, or each row if these are fewer, has a colour of its own."""
    m, n = pattern.shape
    if n <= m:
        places = np.ones(pattern.count, bool), pattern.rows, pattern.indices
        return Coloring(pattern, "general", (np.arange(n, dtype=np.int32), n), None, places)
    places = np.zeros(pattern.count, bool), pattern.indices, pattern.rows
    return Coloring(pattern, "general", None, (np.arange(m, dtype=np.int32), m), places)


def warn_of_many(name: str, plan: Plan) -> None:
    """Warn if a plan has so many colours that the dense derivative is no more work, and say what causes it."""
    coloring, shape = plan.coloring, plan.shape
    if plan.method != "colors" or coloring is None or min(shape) <= FEW_LINES or plan.cost <= MANY:
        return
    by_rows = coloring.columns is not None
    lengths = np.diff(plan.sparsity.indptr) if by_rows else np.bincount(plan.sparsity.indices, minlength=shape[1])
    longest = np.argsort(-lengths, kind="stable")[:NAMED]
    lines = ", ".join(f"{i} ({lengths[i]} elements)" for i in longest)
    text = (
        f"{name}: {coloring.count} colours for {shape[0]} x {shape[1]}, as many products as {plan.cost:.0%} of the "
        f"dense derivative takes; the longest {'rows' if by_rows else 'columns'} are {lines}"
    )
    warnings.warn("; ".join([text, *plan.reasons]) + ".", stacklevel=user_stacklevel())
