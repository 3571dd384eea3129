"""Minimisations of functions within bounds and constraints, whoever solves them, with the derivatives of solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.errors import GraphError
from wengert.implicit.attaching import implicit_solution
from wengert.scipy.optimize._constraints import Constraint
from wengert.scipy.optimize._kept_solutions import with_derivatives
from wengert.scipy.optimize._optimality import Active, Sides, active_set
from wengert.scipy.optimize._solving import COUNTS, Answer, asking, call_scipy, is_traced_now
from wengert.scipy.optimize._vector_problem import VectorProblem
from wengert.support.records import NamedTuple
from wengert.support.refusals import forgive, refusal_count
from wengert.transforms.reverse import grad

Function = Callable[..., Any]


class Optimum(NamedTuple):
    """Be what was found.

    Attributes:
        answer: SciPy's.
        x: the solution, with its derivatives.
        multipliers: of the constraints, with their derivatives.
        marks: which of the unknowns, and of the constraints, are at a limit, as `Sides.gap` takes it.
    """

    answer: Answer
    x: Any
    multipliers: Any
    marks: Any


class NonlinearProgram:
    """Be a minimisation.

    Args:
        name: what the user called.
        value: the function: of a vector of `size` numbers, and of `args`.
        args: further arguments.
        size: the number of unknowns.
        sides: their bounds, or None.
        many: the constraints.
    """

    def __init__(
        self, name: str, value: Function, args: Any, size: int, sides: Sides | None, many: Sequence[Constraint] = ()
    ) -> None:
        self.name = name
        self.value = value
        self.args = args
        self.size = size
        self.sides = sides
        self.many = many
        self.count = sum(c.size for c in many)
        self.functions = [value, *(c.value for c in many)]
        self.limits = [c.args for c in many]
        self.values = values_of(self.functions, len(args))
        self.asked = asking(name, (args, sides, self.limits), self.functions)
        self.keeps = not asking(name, (), self.functions).differentiated  # `args` are numbers to solvers

    def solution(self, solve: Function, start: Any, counted: Sequence[str] = COUNTS) -> Optimum:
        """Return what SciPy finds, with the derivatives of a solution.

        Args:
            solve: calls SciPy, with `start`, `args`, bounds and what constraints read, all of them numbers.
            start: where it begins.
            counted: the numbers of its result, as `call_scipy` takes them.
        """
        values = self.values
        program = self

        def run(start: Any, args: Any, sides: Any, limits: Any) -> Any:
            assert values is not None  # through which what functions capture is found
            found = solve(start, args, sides, limits)
            x = np.reshape(found.x, (program.size,))
            active = program.active_if_known(x, start, args, sides, limits)
            return found, [x, active.bounds, active.constraints, active.multipliers]

        shapes = [(self.size,), (self.size,), (self.count,), (self.count,)]
        traced = self.asked.traced or is_traced_now(start)
        given = (self.args, self.sides, self.limits)
        answer = call_scipy(self.name, run, (start, *given), shapes, counted, traced)
        x, *marks, multipliers = answer.arrays
        if not traced:
            return Optimum(answer, x, multipliers, marks)
        name, free, read = self.name, self.sides is None and not self.many, (*self.args, *self.limits)
        known = (
            self.sides or everywhere(self.size),
            self.limits_of(self.limits),
            tuple(marks),
            answer.counts[counted[0]],
        )

        def make(values: Function) -> Function:
            return differentiable_solution(name, values, free)

        found = (x, multipliers), *known
        x, multipliers = with_derivatives(name, values, read, (self.size,), make, found, free, self.keeps)
        return Optimum(answer, x, multipliers, marks)

    def active_if_known(self, x: Any, start: Any, args: Any, sides: Any, limits: Any) -> Active:
        """Return the same as `active`; multipliers are NaN where functions have no derivatives, and nobody asks."""
        if self.asked.traced:
            return self.active(x, start, args, sides, limits)
        before = refusal_count()
        try:
            return self.active(x, start, args, sides, limits)
        except (GraphError, TypeError):
            forgive(before)
        return Active(np.zeros(x.size), np.zeros(self.count), np.full(self.count, np.nan))

    def active(self, x: Any, start: Any, args: Any, sides: Any, limits: Any) -> Active:
        """Return what is active at a solution, all of numbers; nothing is computed where there are no limits."""
        none = np.zeros(0)
        unlimited = not self.many and (sides is None or not self.asked.traced)  # nobody asks which bounds are active
        if unlimited or not x.size or not np.all(np.isfinite(x)):
            return Active(np.zeros(x.size), np.zeros(self.count), np.zeros(self.count))
        begin = x if start is None or np.size(start) != self.size else np.reshape(start, (self.size,))
        slope = VectorProblem(self.name, self.value, x, args, True, keep=self.keeps).value_and_gradient
        gradient, before = slope(x)[1], np.nan_to_num(slope(begin)[1])
        parts = [
            VectorProblem(self.name, c.value, x, (own,), True, keep=self.keeps).residuals_and_jacobian()
            for c, own in zip(self.many, limits, strict=True)
        ]
        values = np.concatenate([value(x) for value, _ in parts]) if parts else none
        slopes = np.concatenate([slope(x) for _, slope in parts]) if parts else np.zeros((0, x.size))
        bounds = sides or everywhere(self.size)
        known = x, gradient, bounds, values, slopes, self.limits_of(limits)
        return active_set(self.name, *known, self.asked.differentiated, (begin, before))

    def limits_of(self, limits: Any) -> Sides:
        """Return the limits of all constraints."""
        own = [c.sides(args) for c, args in zip(self.many, limits, strict=True)]
        if not own:
            return everywhere(0)
        return Sides(*(np.concatenate(sides) for sides in zip(*own, strict=True)))

    def slope(self, x: Any, multipliers: Any) -> Any:
        """Return the gradient of the Lagrangian by x."""
        return grad(lagrangian(self.values, multipliers, (*self.args, *self.limits)), has_aux=True)(x)[0]


def values_of(functions: Sequence[Function], count: int) -> Function:
    """Return a function of x, and of what functions read, to the value and the constraints; None if there are none.

    So many of what is read are the value's, each further one is that of a constraint. They are functions in variables
    of functions, through which conversions pass, and by which what was made for others of the same code is found.
    """
    value, *constraints = functions

    def values(x: Any, *args: Any) -> tuple[Any, Any]:
        found = value(x, *args[:count])
        return np.sum(found) if np.ndim(found) else found, None

    for place, constraint in enumerate(constraints, count):
        values = with_constraint(values, constraint, place)
    return values


def with_constraint(values: Function, constraint: Function, place: int) -> Function:
    """Return the same function with one more constraint, which reads what is at a place."""

    def more(x: Any, *args: Any) -> tuple[Any, Any]:
        value, others = values(x, *args)
        own = np.reshape(constraint(x, args[place]), (-1,))
        return value, own if others is None else np.concatenate([others, own])

    return more


def lagrangian(values: Function, multipliers: Any, args: Any) -> Function:
    """Return f - y c as a function of x, beside c."""

    def function(x: Any) -> tuple[Any, Any]:
        value, constraints = values(x, *args)
        return value if constraints is None else value - np.sum(multipliers * constraints), constraints

    return function


def differentiable_solution(name: str, values: Function, symmetric: bool) -> Function:
    """Return the function from x and multipliers, all limits, what is active and what `values` read to them again.

    They have the derivatives of the equations that hold where the marked limits are active.
    """

    def residual(solution: Any, bounds: Sides, limits: Sides, marks: Sequence[Any], *args: Any) -> Any:
        x, multipliers = solution
        slope, constraints = grad(lagrangian(values, multipliers, args), has_aux=True)(x)
        others = multipliers if constraints is None else limits.gap(constraints, marks[1], multipliers)
        return bounds.gap(x, marks[0], slope), others

    def solution(found: Any, bounds: Sides, limits: Sides, marks: Sequence[Any], success: Any, *args: Any) -> Any:
        given = bounds, limits, marks, *args
        return implicit_solution(residual, found, given, name=name, symmetric=symmetric, success=success)

    return solution


def everywhere(size: int) -> Sides:
    """Return the bounds of numbers that have none."""
    return Sides(np.full(size, -np.inf), np.full(size, np.inf))
