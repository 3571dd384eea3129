"""Minima by IPOPT, with sparse derivatives and their patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import accumulate, compress, pairwise
from types import FrameType
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_limits, shown
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import Tensor, raw
from wengert.errors import GraphError, UsageError
from wengert.scipy.optimize._constraints import sides_of, spread
from wengert.scipy.optimize._ipopt_packages import MESSAGES, installed_solver
from wengert.scipy.optimize._solving import as_tuple
from wengert.scipy.optimize._vector_problem import (
    Base,
    VectorProblem,
    as_float,
    as_residuals,
    constraint_field,
    fix_arguments,
    is_traced,
)
from wengert.sparse.sparse_functions import hessian as sparse_hessian
from wengert.sparse.sparse_functions import jacobian as sparse_jacobian
from wengert.support.attributes import signature
from wengert.support.held_interrupts import HeldInterrupts
from wengert.support.records import NamedTuple
from wengert.transforms.boundary import note_refusals
from wengert.transforms.jacobian import hessian, jacobian
from wengert.transforms.reverse import grad
from wengert.tree import leaves

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
IPOPT = "ipopt"
SOLVED = frozenset({0, 1, 6})
"""Statuses of IPOPT that are solutions: to the tolerance, to the acceptable one, and of a system of equations."""


class Limited(NamedTuple):
    """Be functions of a vector between limits: a constraint.

    Attributes:
        function: of a vector and `args`, giving a vector.
        lower: the lowest values, for all or each.
        upper: the highest ones.
        args: further arguments that are traced: what is planned serves others of them.
    """

    function: Function
    lower: Any
    upper: Any
    args: tuple[Any, ...] = ()


def limited_function(problem: VectorProblem, given: Any) -> Limited:
    """Return one of SciPy's constraints, or of `optim.constraint`, whose functions are of the user's containers."""
    name = problem.name
    own = getattr(given, "function", None)  # of `optim.constraint`, whose derivatives are made anew
    slope = constraint_field(given, "jac")
    if own is None and callable(slope):
        action = "Leave jac out, for derivatives are filled in"
        raise UsageError(name, "a constraint with its own jac", "one without is needed for IPOPT", action)
    if isinstance(given, dict) and given.get("type") in ("eq", "ineq") and callable(given.get("fun")):
        return limited_with_args(
            problem, given["fun"], given.get("args", ()), 0.0, 0.0 if given["type"] == "eq" else np.inf
        )
    if any(isinstance(side, Tensor) and side._trace is not None for side in sides_given(given)):
        action = "Call .detach() first: what IPOPT finds has no derivatives by limits"
        given_text = "limits of a constraint that are differentiated, batched or traced"
        raise GraphError(name, given_text, "numbers are needed for IPOPT", action)
    if hasattr(given, "A"):
        matrix = given.A if hasattr(given.A, "toarray") else np.atleast_2d(given.A)
        return Limited(lambda x: matrix @ x, given.lb, given.ub)
    if own is not None:
        return limited_with_args(problem, own, given.args, given.lb, given.ub)
    if hasattr(given, "fun"):
        return limited_with_args(problem, given.fun, (), given.lb, given.ub)
    needed = "a dictionary with type and fun, optim.constraint(...) or one of SciPy's is needed"
    raise UsageError(name, f"{shown(given)} for a constraint", needed, "Pass one, or several in a list")


def limited_with_args(problem: VectorProblem, function: Function, args: Any, lower: Any, upper: Any) -> Limited:
    """Return a constraint of the user's containers, whose further arguments of floats are arguments of what is planned.

    Integers and truths may choose elements, and with them the pattern, so they are part of the function.
    """
    args = as_tuple(args)
    is_given = [is_traced(x) and all(aval_of(leaf).dtype.kind in "fc" for leaf in leaves(x)) for x in args]
    if not all(is_given):
        known = tuple(None if given else (x,) for given, x in zip(is_given, args, strict=True))
        function = fix_arguments(function, known)
    residuals = as_residuals(problem.name, function, problem.back)
    return Limited(residuals, lower, upper, tuple(compress(args, is_given)))


def sides_given(given: Any) -> list[Any]:
    """Return the limits of one of SciPy's constraints."""
    return [getattr(given, name, None) for name in ("lb", "ub")]


class FirstFailure(AbstractContextManager[None]):
    """Keep an exception that is raised inside, of any kind: IPOPT's packages print or lose some, so it is raised after.

    Attributes:
        error: the first exception.
        inside: whether a function of the user's is running.
    """

    error: BaseException | None = None
    inside = False

    def __enter__(self) -> None:
        """Note that a function is running."""
        self.inside = True

    def __exit__(self, _kind: Any, error: BaseException | None, _traceback: Any) -> bool:
        """Keep an exception."""
        self.inside = False
        self.error = self.error if error is None else error
        return error is not None


class KeptInterrupts(HeldInterrupts):
    """Keep what Ctrl-C raises while IPOPT itself is running: a callback would raise it before it has begun.

    Args:
        failure: what keeps it.
    """

    def __init__(self, failure: FirstFailure) -> None:
        self.failure = failure

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Let it be raised in a function of the user's, and else be kept, so that IPOPT ends."""
        if self.failure.inside:
            self.before(number, frame)
        else:
            with self.failure:
                self.before(number, frame)


class LagrangianDerivatives:
    """Give what IPOPT asks for: values, gradient, Jacobian and Hessian of an objective and of all constraints as one.

    Once something has failed, nothing is called again, and the next iteration ends: values are NaN until then, and
    matrices, whose factors would have no pivots and fill up (75 s of 3,000 unknowns), zero.

    Attributes:
        start: where to start.
        args: further arguments of the objective and of all constraints, one after the other.
        sizes: of how many values each constraint is.
        count: of values of all constraints.
        counts: how often values, gradients and Hessians were asked for, and of iterations.
        made: what was planned and traced, which serves other arguments.
        failure: what a function raised, or how it was interrupted.
        iterate: gives the last iterate, during a callback.
    """

    def __init__(self, problem: VectorProblem, many: Sequence[Limited], exact: bool) -> None:
        self.start, self.failure = problem.start, FirstFailure()
        self.iterate: Callable[[], Array] = lambda: problem.start
        self.counts = {"nit": 0, "nfev": 0, "njev": 0, "nhev": 0}
        ends = tuple(accumulate((len(c.args) for c in many), initial=len(problem.args)))
        self.args = *problem.args, *(x for c in many for x in c.args)
        scalar = with_own_args(problem.scalar, 0, ends[0])
        values = join_functions([with_own_args(c.function, *own) for c, own in zip(many, pairwise(ends), strict=True)])

        def pieces(x: Any, *args: Any) -> Any:
            return [scalar(x, *args), values(x, *args)]

        joint = VectorProblem(problem.name, pieces, problem.start, self.args, problem.compiled, problem.keep)
        self.made = joint.plan.made
        one: Base = objective_of if problem.compiled else lambda *_: scalar  # of graphs what nothing reads is left out
        others: Base = values_of if problem.compiled else lambda *_: values
        self.value = joint.run("value", one, lambda objective: objective)
        self.slope = joint.run("gradient", one, grad)
        self.rest = joint.run("constraints", others, lambda values: values)
        self.intermediate: Any = None
        self.sizes = [np.size(c.function(self.start, *c.args)) for c in many]
        self.count = sum(self.sizes)
        none: Any = (np.zeros(0, int), np.zeros(0, int))
        self.first, self.places, self.second, self.second_places = self.rest, none, self.rest, none
        if many:
            self.first, self.places = plan_derivative(joint, "first", others, sparse_jacobian, jacobian, self.start)
        if exact:
            ways = partial(sparse_hessian, lower=True), hessian
            given = self.start, np.ones(self.count), np.ones(())
            self.second, self.second_places = plan_derivative(joint, "second", lagrangian_of, *ways, *given)

    def ask(self, shape: Any, rest: float, function: Function, *args: Any) -> Any:
        """Return the values of a function; once something has failed, as many times the same number."""
        if self.failure.error is None:
            with self.failure:
                return function(*args)
        return np.full(shape, rest)

    def objective(self, x: Array) -> Any:
        """Return the value of the objective."""
        self.counts["nfev"] += 1
        return float(self.ask((), np.nan, lambda: as_float(self.value(x))))

    def gradient(self, x: Array) -> Any:
        """Return the gradient of the objective."""
        self.counts["njev"] += 1
        return self.ask(self.start.shape, np.nan, self.slope, x)

    def constraints(self, x: Array) -> Any:
        """Return the values of all constraints."""
        return self.ask(self.count, np.nan, self.rest, x) if self.count else np.zeros(0)

    def jacobianstructure(self) -> Any:
        """Return rows and columns of the Jacobian's elements."""
        return self.places

    def jacobian(self, x: Array) -> Any:
        """Return the elements of the Jacobian of the constraints."""
        return self.ask(len(self.places[0]), 0.0, self.first, x)

    def hessianstructure(self) -> Any:
        """Return rows and columns of the elements in the lower triangle of the Lagrangian's Hessian."""
        return self.second_places

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Any:
        """Return the elements of the lower triangle of the Lagrangian's Hessian."""
        self.counts["nhev"] += 1
        return self.ask(len(self.second_places[0]), 0.0, self.second, x, multipliers, np.array(weight))


class Iterations:
    """Call the user's callback after each iteration of IPOPT, as SciPy does; StopIteration ends them."""

    def __init__(self, derivatives: LagrangianDerivatives, callback: Function | None) -> None:
        self.derivatives, self.callback = derivatives, callback
        self.asks = callback is not None and "intermediate_result" in signature(callback).parameters

    def __call__(self, _mode: int, count: int, value: float, violation: float, *_more: Any) -> bool:
        """Take note of an iteration; return whether to go on."""
        failure = self.derivatives.failure
        if failure.error is not None:
            return False
        self.derivatives.counts["nit"] = count
        if self.callback is None:
            return True
        from scipy.optimize import OptimizeResult

        with failure:
            result = OptimizeResult(x=self.derivatives.iterate(), fun=value, nit=count, maxcv=violation)
            try:
                self.callback(intermediate_result=result) if self.asks else self.callback(result.x)
            except StopIteration:
                return False
        return failure.error is None


# Functions in variables of functions, by which what was made for others of the same code is found


def with_own_args(function: Function, start: int, stop: int) -> Function:
    """Return a function of a vector and the further arguments of all functions, of which some are its own."""
    return lambda x, *args: function(x, *args[start:stop])


def join_functions(functions: Sequence[Function]) -> Function:
    """Return the function that gives what all give, one after the other: none of many is deep inside of others."""
    while len(functions) > 1:
        pairs = zip(functions[::2], functions[1::2], strict=False)
        functions = [join_pair(*pair) for pair in pairs] + list(functions[2 * (len(functions) // 2) :])
    return functions[0] if functions else lambda _x, *_args: np.zeros(0)


def join_pair(one: Function, other: Function) -> Function:
    """Return the function that gives what two give."""
    return lambda x, *args: np.concatenate([one(x, *args), other(x, *args)])


def objective_of(_name: str, pieces: Function, _back: Function) -> Function:
    """Return the first of two functions of a vector in one: the objective."""
    return lambda x, *args: pieces(x, *args)[0]


def values_of(_name: str, pieces: Function, _back: Function) -> Function:
    """Return the second one: the values of all constraints."""
    return lambda x, *args: pieces(x, *args)[1]


def lagrangian_of(_name: str, pieces: Function, _back: Function) -> Function:
    """Return both with weights, as a function of x, multipliers, the weight of the objective and further arguments."""

    def lagrangian(x: Any, multipliers: Any, weight: Any, *args: Any) -> Any:
        objective, values = pieces(x, *args)
        return weight * objective + np.sum(multipliers * values)

    return lagrangian


def plan_derivative(
    problem: VectorProblem, what: str, base: Base, sparse: Function, dense: Function, *args: Any
) -> tuple[Function, Any]:
    """Return the function of the elements of a derivative of vectors, and their rows and columns.

    All calls have what functions captured at the beginning. A Hessian has its lower triangle alone.
    """
    if problem.compiled:
        plan = problem.plan
        if what not in plan.made:
            plan.made[what] = sparse(base(problem.name, plan.function, problem.back))
            plan.made[what].is_fixed = True  # another plan is found for what a function captures otherwise
        program = note_refusals(problem.name, plan.made[what].program)(*args, *plan.args)
        return lambda *own: program.run(*own, *plan.args)[0], program.layout.blocks[0].matrix.tocoo().coords
    run = problem.run(what, base, dense)
    shape = np.shape(run(*args))
    places = np.tril_indices(len(args[0])) if what == "second" else tuple(np.indices(shape).reshape(2, -1))
    return lambda *own: np.asarray(run(*own))[places], places


def solve_by_ipopt(
    problem: VectorProblem,
    bounds: Any,
    constraints: Any,
    tol: float | None,
    callback: Function | None,
    options: dict[str, Any] | None,
) -> Any:
    """Return SciPy's result of a problem that IPOPT solves, its x a vector.

    Wachter and Biegler, *On the implementation of an interior-point filter line-search algorithm for large-scale
    nonlinear programming*, Mathematical Programming 106, 2006.

    Raises:
        UsageError: no package for IPOPT is installed, there is no such option, or a constraint is none.
        ShapeError: there are not as many limits as values.
    """
    name = problem.name
    from scipy.optimize import OptimizeResult

    solve = installed_solver(name)
    settings = {"print_level": 0, "sb": "yes", **({} if tol is None else {"tol": float(tol)}), **(options or {})}
    many = [
        limited_function(problem, c) for c in (constraints if isinstance(constraints, list | tuple) else [constraints])
    ]
    exact = settings.get("hessian_approximation") != "limited-memory"
    derivatives = LagrangianDerivatives(problem, many, exact)
    size = derivatives.start.size
    box = sides_of(name, bounds, size) or (np.full(size, -np.inf), np.full(size, np.inf))
    rows = [np.zeros(0)], [np.zeros(0)]
    for c, count in zip(many, derivatives.sizes, strict=True):
        for side, limit in zip(rows, (c.lower, c.upper), strict=True):
            side.append(spread(name, limit, count))
    lower, upper = (np.asarray(raw(np.concatenate(side)), float) for side in rows)
    require_limits(name, "x", *box)
    require_limits(name, "constraints", lower, upper)
    derivatives.intermediate = Iterations(derivatives, callback)
    with KeptInterrupts(derivatives.failure):
        found = solve(name, derivatives, box, (lower, upper), settings)
    if derivatives.failure.error is not None:
        raise derivatives.failure.error
    message = MESSAGES.get(found.status, f"IPOPT ended with status {found.status}.")
    fields = {"status": found.status, "success": found.status in SOLVED, "message": message}
    slope = np.asarray(derivatives.slope(found.x), dtype=float)
    return OptimizeResult(
        x=found.x, fun=found.value, jac=slope, multipliers=-found.multipliers, **fields, **derivatives.counts
    )
