"""A user's function of containers as SciPy's drivers see it: of one vector, with derivatives."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from wengert import tree
from wengert.control.argument_aliasing import own_copies
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_flag, require_result, shown
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.scipy.optimize._containers_of_floats import as_example, as_floats, is_array
from wengert.scipy.optimize._eager_calls import EagerAtFirst, in_better_mode
from wengert.scipy.optimize._outer_functions import OUTER, ProblemPlan, find_outer_function
from wengert.scipy.optimize._solving import asking
from wengert.sparse.derivatives import SparseDerivative
from wengert.sparse.low_fill import if_low_fill
from wengert.sparse.sparse_functions import hessian as sparse_hessian
from wengert.sparse.sparse_functions import jacobian as sparse_jacobian
from wengert.support.attributes import resemble
from wengert.support.caches import cached
from wengert.transforms.boundary import note_refusals
from wengert.transforms.function_cache import FunctionCache
from wengert.transforms.jacobian import hessian, jacobian
from wengert.transforms.jacobian_products import hvp
from wengert.transforms.jit import jit as jitted
from wengert.transforms.outer_values import OutdatedProgram, OuterValues
from wengert.transforms.reverse import value_and_grad

Vector = np.ndarray[Any, np.dtype[np.float64]]
Base = Callable[[str, Callable[..., Any], Callable[[Any], Any]], Callable[..., Any]]
"""What makes a function of a vector of the user's, and of the way back from vectors to containers."""

KEPT: FunctionCache[dict[str, Any]] = FunctionCache(most=128)
"""What was traced of functions, by names."""
FEW_ELEMENTS, FEW_VALUES = 4096, 300
"""Elements of an array, and values, that a function of a small problem holds at most."""
FEW_UNKNOWNS = 100
"""The numbers looked for in a small problem."""
UNTRACED_VALUES, UNTRACED_GRADIENTS, UNTRACED_JACOBIANS = 100, 6, 14
"""How many first calls of a small problem are of the function itself, before it is traced at all."""


class FlatProblem:
    """Be a user's function of containers as a function of one vector, with what was traced of it before.

    Attributes:
        args: further arguments that are traced; the others are part of the function.
        example: where to start, in the user's containers.
        vector: the same as one vector.
        back: from such vectors to the containers.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        start: Any,
        args: Any,
        compiled: bool,
        options: Hashable = (),
        keep: bool = True,
    ) -> None:
        require_callable(name, function)
        require_flag(name, jit=compiled)
        self.name = name
        args = args if isinstance(args, tuple) else (args,)
        self.args = tuple(filter(is_traced, args))
        if len(self.args) < len(args):
            function = fix_arguments(function, tuple(None if is_traced(x) else (x,) for x in args))
        self.compiled = compiled
        self.function = function
        self.example = as_example(start)
        self.vector, self.back = tree.ravel_named(name, "x0", self.example)
        require_real(name, "x0", self.vector)
        if not self.vector.size:
            raise UsageError(name, f"{shown(start)} for x0", "one number or more is needed", "Pass where to start")
        found, structure = flatten(self.example)
        places = tuple((type(leaf), np.shape(leaf), aval_of(leaf).dtype) for leaf in found)
        self.kind = name, compiled, structure, places, options
        self.keep = keep
        self.residuals = as_residuals(name, function, self.back)

    @cached
    def outer_values(self) -> OuterValues:
        """What the function holds, the other arguments with it."""
        return OuterValues((self.function,), lifted=False, by_identity=True)

    @cached
    def plan(self) -> ProblemPlan:
        """What is traced, and what was, unless that is not to be kept, or the function holds large arrays."""
        kept = self.keep and self.holds_small_arrays
        if not (kept and (self.outer_values.key, self.kind) in KEPT.known) and self.compiled and self.has_few_unknowns:
            found = find_outer_function(self.name, self.function, self.kind, self.example, self.args, not self.keep)
            if found is not None:
                return found
        return ProblemPlan(self.function, self.args, KEPT.find(self.outer_values, self.kind, dict) if kept else {})

    def run(
        self,
        what: str,
        base: Base,
        make: Callable[[Callable[..., Any]], Callable[..., Any]],
        untraced_calls: int = 0,
        make_eager: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> Callable[..., Any]:
        """Return a function of vectors, jitted unless the user passed jit=False, and kept by the name of `what` it is.

        It is what `make` makes of the `base`, `as_scalar` or `as_residuals`, and gets the further arguments by itself.
        Of a small problem the first `untraced_calls` are not traced: that takes as long as some of them. These are of
        what `make_eager` makes, if something else gives the same then.
        """
        plan = self.plan
        is_own = plan.function is self.function

        def plain() -> Callable[..., Any]:
            return (make_eager or make)(base(self.name, self.function, self.back))

        if what not in plan.made:
            made = plain() if not self.compiled else make(base(self.name, plan.function, self.back))
            if self.compiled:
                made = note_refusals(self.name, jitted(made))
                if untraced_calls > 0 and self.is_small:
                    made = EagerAtFirst(made, plain() if is_own else made, untraced_calls)
            plan.made[what] = made
        run: Callable[..., Any] = plan.made[what]
        if is_own:
            return lambda *args: run(*args, *plan.args)
        if isinstance(run, EagerAtFirst) and run.calls > 0:
            eager = plain()
            run = run.with_plain(lambda *args: eager(*args[: len(args) - len(plan.args)], *self.args))

        def run_planned(*args: Any) -> Any:
            try:
                return run(*args, *plan.args)
            except OutdatedProgram:
                self.forget_plan()
                return self.run(what, base, make, untraced_calls, make_eager)(*args)

        return run_planned

    def forget_plan(self) -> None:
        """Trace the function itself from now on."""
        OUTER.forget((self.function,), self.kind)
        vars(self)["plan"] = ProblemPlan(self.function, self.args, {})

    def is_asked(self, values: Any = (), functions: Sequence[Any] = ()) -> bool:
        """Tell whether a transformation asks, for which what is found is differentiated, or differs in its lanes.

        It may be of further values, or of what further functions capture.
        """
        return asking(self.name, (self.vector, self.args, values), (self.function, *functions)).traced

    @property
    def has_few_unknowns(self) -> bool:
        """Whether vectors have few elements."""
        return bool(self.vector.size <= FEW_UNKNOWNS)

    @cached
    def is_small(self) -> bool:
        """Whether vectors, and the arrays that the function holds, have few elements."""
        few = self.has_few_unknowns and len(self.outer_values.known) <= FEW_VALUES
        return few and self.holds_small_arrays and all(np.size(x) <= FEW_ELEMENTS for x in flatten(self.args)[0])

    @property
    def holds_small_arrays(self) -> bool:
        """Whether arrays that the function holds have few elements."""
        return all(x.size <= FEW_ELEMENTS for x in self.outer_values.arrays())


class VectorProblem(FlatProblem):
    """Be a user's function of containers as SciPy's drivers see it: of one vector of double precision."""

    def __init__(
        self, name: str, function: Callable[..., Any], start: Any, args: Any, compiled: bool, keep: bool = True
    ) -> None:
        super().__init__(name, function, start, args, compiled, keep=keep)
        self.scalar = as_scalar(name, self.function, self.back)

    @cached
    def start(self) -> Vector:
        """Where to start, in double precision."""
        return np.array(self.vector, dtype=float)

    @cached
    def value(self) -> Callable[[Vector], Any]:
        """The value at a vector."""
        run = self.run("value", as_scalar, lambda scalar: scalar)
        return lambda x: as_float(run(as_floats(x)))

    @cached
    def value_and_gradient(self) -> Callable[[Vector], tuple[float, Vector]]:
        """The value and the gradient at a vector."""
        run = self.run("value_and_gradient", as_scalar, value_and_grad, UNTRACED_GRADIENTS)

        def at(x: Vector) -> tuple[float, Vector]:
            value, gradient = run(as_floats(x))
            return as_float(value), np.asarray(gradient, dtype=float)

        return at

    @cached
    def product(self) -> Callable[[Vector, Vector], Vector]:
        """The Hessian at a vector times another one."""
        run = self.run("product", as_scalar, hessian_product)
        return lambda x, p: np.asarray(run(x, np.asarray(p, dtype=float)))

    @cached
    def hessian(self) -> Callable[[Vector], Any]:
        """The Hessian at a vector."""
        run = self.run("hessian", as_scalar, hessian)
        return lambda x: np.asarray(run(x))

    def residuals_and_jacobian(self) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Any]]:
        """Return the residuals at a vector, and their Jacobian."""
        value = self.run("residuals", as_residuals, lambda residuals: residuals, UNTRACED_VALUES)
        slope = self.run("jacobian", as_residuals, jacobian, UNTRACED_JACOBIANS, in_better_mode)
        return (
            lambda x: np.asarray(value(as_floats(x)), dtype=float),
            lambda x: np.asarray(slope(as_floats(x)), dtype=float),
        )

    def sparse_jacobian(self) -> Callable[[Vector], Any] | None:
        """Return the Jacobian of the residuals as sparse arrays, if there are many unknowns and few elements."""
        return self.with_low_fill(sparse_jacobian, self.residuals)

    def sparse_hessian(self) -> Callable[[Vector], Any] | None:
        """Return the Hessian as sparse arrays, if there are many unknowns and few elements."""
        return self.with_low_fill(sparse_hessian, self.scalar)

    def with_low_fill(
        self, derivative: Callable[..., SparseDerivative], function: Callable[..., Any], *more: Any
    ) -> Callable[..., Any] | None:
        """Return a sparse derivative of a function of vectors and the further arguments, if few elements are stored."""
        if not self.compiled:
            return None
        examples = as_floats(self.start), *more, *self.args
        what = f"{derivative.__name__} of {[(np.shape(x), aval_of(x).dtype) for x in flatten(examples)[0]]}"
        if what not in self.plan.made:
            self.plan.made[what] = if_low_fill(derivative(function), *examples)
        found = self.plan.made[what]
        return None if found is None else lambda x, *others: found(as_floats(x), *others, *self.args)

    def result(self, found: Any) -> Any:
        """Return SciPy's result with the user's containers in place of vectors."""
        found.x = self.back(found.x)
        for key in ("jac", "grad"):
            slope = getattr(found, key, None)  # of several constraints it may be a list of their Jacobians
            if isinstance(slope, np.ndarray) and slope.shape == self.start.shape:
                found[key] = self.back(found[key])
        return found

    def limits(self, bounds: Any, *, pairs: bool = False) -> Any:
        """Return bounds as SciPy takes them, whose own are `pairs` for each number or a pair of vectors."""
        from scipy.optimize import Bounds

        if bounds is None or isinstance(bounds, Bounds):
            return bounds
        if flatten(self.example)[1] is None and not (pairs and self.are_sides(bounds)):
            return bounds
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            needed = "a pair of lowest and highest values is needed, each a number or a container like x0"
            action = "Pass (0.0, upper), say; numpy.inf where there is no bound"
            raise UsageError(self.name, f"{shown(bounds)} for bounds", needed, action)
        return Bounds(self.side(bounds[0]), self.side(bounds[1]))

    def are_sides(self, bounds: Any) -> bool:
        """Tell whether bounds of a number or an array are lowest and highest values, not SciPy's pair for each number.

        Two things without a number among them could be either where there are two numbers: then they are SciPy's,
        unless they are arrays, as lowest and highest values mostly are and pairs mostly are not.
        """
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            return False
        if self.vector.size != 2 or any(isinstance(x, int | float | np.number) for x in bounds):
            return True
        if not any(isinstance(x, np.ndarray | Tensor) for x in bounds):
            return False
        needed = "what tells whether they are lowest and highest values, or a pair for each number, is needed"
        action = "Pass scipy.optimize.Bounds(lowest, highest), or a list of tuples"
        raise UsageError(self.name, "two arrays for the bounds of two numbers", needed, action)

    def side(self, limit: Any) -> Vector:
        """Return lowest or highest values as a vector."""
        leaves, structure = flatten(self.example)
        given, other = flatten(np.array(limit, dtype=float) if structure is None and is_array(limit) else limit)
        if other is None:
            given = given * len(leaves)
        elif other != structure:
            needed = "a pair of lowest and highest values is needed, each a number or a container like x0"
            raise UsageError(self.name, "bounds of other containers than x0", needed, "Build both like x0")
        shapes = [(np.shape(x), np.shape(leaf)) for x, leaf in zip(given, leaves, strict=True)]
        for shape, wanted in shapes:
            if shape not in ((), wanted):
                needed = "a number or that shape is needed"
                action = "Build them like x0"
                raise ShapeError(self.name, f"bounds of shape {shape} for x0 of shape {wanted}", needed, action)
        wide = [np.broadcast_to(x, shape) for x, (_, shape) in zip(given, shapes, strict=True)]
        return np.array(tree.ravel(unflatten(structure, [np.array(x, float) for x in wide]))[0])

    def flat_constraint(self, given: Any) -> Any:
        """Return a constraint whose function is of vectors, without derivatives."""
        from scipy.optimize import NonlinearConstraint

        if isinstance(given, dict) and "fun" in given:
            return {**given, "fun": as_residuals(self.name, given["fun"], self.back)}
        if isinstance(given, NonlinearConstraint):
            function = as_residuals(self.name, getattr(given, "function", given.fun), self.back)
            found = NonlinearConstraint(function, given.lb, given.ub, keep_feasible=given.keep_feasible)
            if hasattr(given, "function"):
                found.function, found.args = function, given.args
            return found
        return given

    def constraint(self, given: Any, *, curved: bool) -> Any:
        """Return a constraint with its derivatives, if it is of a function and has none.

        Methods that take no second derivatives, which are not `curved`, warn of those of a NonlinearConstraint.
        """
        from scipy.optimize import NonlinearConstraint

        slope = constraint_field(given, "jac")
        own = getattr(given, "function", None)  # of `optim.constraint`, whose derivatives are made anew
        args = () if own is None else given.args
        if own is not None:
            given = NonlinearConstraint(own, given.lb, given.ub, keep_feasible=given.keep_feasible)
            slope = None
        if callable(slope):
            if isinstance(self.example, np.ndarray | Tensor) and self.example.ndim == 1:
                return given
            needed = "one without is needed where x0 is not one vector"
            action = "Leave jac out, for derivatives are filled in"
            raise UsageError(self.name, "a constraint with its own jac", needed, action)
        if isinstance(given, dict) and "fun" in given:
            inner = VectorProblem(self.name, given["fun"], self.example, given.get("args", ()), self.compiled)
            value, slope = inner.residuals_and_jacobian()
            return {**given, "fun": value, "jac": slope, "args": ()}
        if isinstance(given, NonlinearConstraint):
            inner = VectorProblem(self.name, given.fun, self.example, args, self.compiled)
            value, slope = inner.residuals_and_jacobian()
            sparse = inner.sparse_jacobian() if curved else None
            if sparse is not None:
                return inner.sparse_constraint(given, value, sparse)
            weighted = inner.run("weighted", as_residuals, lambda residuals: hessian(weighted_sum(residuals)))
            given = copy.copy(given)
            given.fun, given.jac = value, slope
            if curved:
                given.hess = lambda x, v: np.asarray(weighted(x, v))
        return given

    def sparse_constraint(self, given: Any, value: Callable[..., Any], slope: Callable[..., Any]) -> Any:
        """Return a constraint with sparse derivatives."""
        if "curvature" not in self.plan.made:
            self.plan.made["curvature"] = sparse_hessian(weighted_sum(self.residuals))
            self.plan.made["curvature"].is_fixed = True
        weighted = self.plan.made["curvature"]
        found = copy.copy(given)
        found.fun, found.jac, found.is_sparse = value, slope, True
        found.hess = lambda x, v: weighted(as_floats(x), np.asarray(v, dtype=float), *self.args)
        return found


def hessian_product(scalar: Callable[..., Any]) -> Callable[..., Any]:
    """Return the product of the Hessian at a vector with another one, a function of these and further arguments."""
    return lambda x, p, *args: hvp(lambda v: scalar(v, *args), (x,), (p,))[0]


def weighted_sum(residuals: Callable[..., Any]) -> Callable[..., Any]:
    """Return the sum of residuals with weights, a function of a vector, these and further arguments."""
    return lambda x, weights, *args: np.sum(residuals(x, *args) * weights)


# The user's functions are cells of closures, where `jit` finds them to convert their control flow.


def constraint_field(constraint: Any, name: str) -> Any:
    """Return an entry of a constraint, a dictionary or one of SciPy's classes; None where it has none."""
    return constraint.get(name) if isinstance(constraint, dict) else getattr(constraint, name, None)


def fix_arguments(function: Callable[..., Any], fixed: tuple[tuple[Any] | None, ...]) -> Callable[..., Any]:
    """Return a function of the further arguments that are traced, in place of None; the others stay as they are."""

    def call(first: Any, *traced: Any) -> Any:
        rest = iter(traced)
        return function(first, *(next(rest) if x is None else x[0] for x in fixed))

    return resemble(call, function, updated=False)


def as_scalar(name: str, function: Callable[..., Any], back: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of a vector that calls the user's, whose result is one number."""

    def scalar(vector: Any, *args: Any) -> Any:
        found = require_result(name, function(*own_copies((back(vector), *args))))
        if flatten(found)[1] is not None:
            remedy = "Return the value alone, and compute the rest from x when that is found"
            raise UsageError(name, f"a function that returned {shown(found)}", "one number is needed", remedy)
        return np.reshape(found, ()) if np.shape(found) and np.size(found) == 1 else found

    return resemble(scalar, function, updated=False)


def as_residuals(name: str, function: Callable[..., Any], back: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of a vector that calls the user's, whose result is one vector, or containers of arrays."""

    def residuals(vector: Any, *args: Any) -> Any:
        found = require_result(name, function(*own_copies((back(vector), *args))))
        if isinstance(found, np.ndarray | Tensor):
            vector = found if found.ndim == 1 else np.reshape(found, (-1,))
        else:
            vector = tree.ravel_named(name, "fun(x)", as_example(found))[0]
        require_real(name, "fun(x)", vector)
        return vector

    return resemble(residuals, function, updated=False)


def require_real(name: str, label: str, vector: Any) -> None:
    """Raise a DtypeError of complex numbers, whose imaginary parts SciPy's drivers would drop."""
    if vector.dtype.kind == "c":
        action = "Write an array of the real parts and one of the imaginary parts"
        raise DtypeError(name, f"complex numbers in {label}", "real ones are needed", action)


def is_traced(value: Any) -> bool:
    """Tell whether a further argument is made of arrays and floats alone; integers may count iterations."""
    return all(isinstance(x, Tensor | np.ndarray | np.number | float | complex) for x in flatten(value)[0])


def as_float(value: Any) -> float:
    """Return a value of one element as a float."""
    return float(value.item() if isinstance(value, Tensor) else value)
