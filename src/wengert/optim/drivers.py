"""SciPy's drivers on any container, with derivatives in the same call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert import tree
from wengert.control.mutable_state import content_of
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_flag, shown
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.support.attributes import own_attributes, resemble, signature
from wengert.support.cached import cached
from wengert.support.hints import hint_parameters
from wengert.traces.nodes import CREATED
from wengert.transforms.jacobian import hessian, jacobian
from wengert.transforms.jacobian_products import hvp
from wengert.transforms.jit import jit as jitted
from wengert.transforms.reverse import value_and_grad
from wengert.tree import leaves

Vector = np.ndarray[Any, np.dtype[np.float64]]


FEW_UNKNOWNS = 100
FEW_ELEMENTS = 4096
FEW_OPERATIONS = 300
"""Of a small problem: the numbers looked for, the elements of an array it holds, the operations of an evaluation."""
EAGER_VALUES, EAGER_GRADIENTS, EAGER_JACOBIANS = 100, 6, 14
"""Evaluations of a small problem that take no longer than tracing; of gradients fewer, as most searches take many."""
MANY_HELD = 300
"""Values that a function of a small problem holds at most."""


class VectorProblem:
    """Be a user's function of containers as SciPy's drivers see it: of one vector of double precision."""

    def __init__(self, name: str, function: Callable[..., Any], start: Any, args: Any, compiled: bool) -> None:
        require_callable(name, function)
        require_flag(name, jit=compiled)
        self.name = name
        args = args if isinstance(args, tuple) else (args,)
        self.args = tuple(filter(is_traced, args))
        if len(self.args) < len(args):
            function = fix_arguments(function, args)
        self.compiled = compiled
        self.operations = 0
        self.reached = (function, self.args)
        self.example = as_example(start)
        vector, self.back = tree.ravel_named(name, "x0", self.example)
        require_real(name, "x0", vector)
        if not vector.size:
            raise UsageError(name, f"{shown(start)} for x0", "one number or more is needed", "Pass where to start")
        self.start: Vector = np.array(vector, dtype=float)
        self.scalar = as_scalar(name, function, self.back)
        self.residuals = as_residuals(name, function, self.back)

    def run(
        self, transformed: Callable[..., Any], eager_calls: int = 0, eagerly: Callable[..., Any] | None = None
    ) -> Callable[..., Any]:
        """Return a function of vectors, jitted unless the user passed jit=False.

        Of a small problem the first `eager_calls` are not: to trace a function takes as long as some of them do. These
        are of `eagerly`, if something else gives the same then.
        """
        plain = eagerly or transformed
        if not self.compiled:
            return plain
        compiled = note_refusals(self.name, jitted(transformed))
        if not eager_calls or not self.is_small:
            return compiled
        calls = 0

        def run(*args: Any) -> Any:
            nonlocal calls
            if calls >= eager_calls or self.operations > FEW_OPERATIONS:
                return compiled(*args)
            calls += 1
            before = next(CREATED)
            found = plain(*args)
            self.operations = max(self.operations, next(CREATED) - before)
            return found

        return run

    @cached
    def is_small(self) -> bool:
        """Whether vectors, and the arrays that the function holds, have few elements."""
        return self.start.size <= FEW_UNKNOWNS and holds_little(self.reached)

    @cached
    def value(self) -> Callable[[Vector], Any]:
        """The value at a vector."""
        run = self.run(self.scalar)
        return lambda x: as_float(run(x, *self.args))

    @cached
    def value_and_gradient(self) -> Callable[[Vector], tuple[float, Vector]]:
        """The value and the gradient at a vector."""
        run = self.run(value_and_grad(self.scalar), EAGER_GRADIENTS)

        def at(x: Vector) -> tuple[float, Vector]:
            value, gradient = run(x, *self.args)
            return as_float(value), np.asarray(gradient, dtype=float)

        return at

    @cached
    def product(self) -> Callable[[Vector, Vector], Vector]:
        """The Hessian at a vector times another one."""
        scalar = self.scalar
        run = self.run(lambda x, p, *args: hvp(lambda v: scalar(v, *args), (x,), (p,))[0])
        return lambda x, p: np.asarray(run(x, np.asarray(p, dtype=float), *self.args))

    @cached
    def hessian(self) -> Callable[[Vector], Any]:
        """The Hessian at a vector."""
        run = self.run(hessian(self.scalar))
        return lambda x: np.asarray(run(x, *self.args))

    def residuals_and_jacobian(self) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Any]]:
        """Return the residuals at a vector, and their Jacobian."""
        residuals = self.residuals
        modes = {mode: jacobian(residuals, mode=mode) for mode in ("auto", "fwd", "rev")}
        mode = "auto"

        def eagerly(x: Vector, *args: Any) -> Any:
            """Return the Jacobian in the mode that its shape asks for, once that is known."""
            nonlocal mode
            found = modes[mode](x, *args)
            mode = "fwd" if found.shape[0] >= found.shape[1] else "rev"
            return found

        value, slope = self.run(residuals, EAGER_VALUES), self.run(modes["auto"], EAGER_JACOBIANS, eagerly)
        return (
            lambda x: np.asarray(value(x, *self.args), dtype=float),
            lambda x: np.asarray(slope(x, *self.args), dtype=float),
        )

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
        if self.start.size != 2 or any(isinstance(x, int | float | np.number) for x in bounds):
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

    def constraint(self, given: Any, *, curved: bool) -> Any:
        """Return a constraint with its derivatives, if it is of a function and has none.

        Methods that take no second derivatives, which are not `curved`, warn of those of a NonlinearConstraint.
        """
        from scipy.optimize import NonlinearConstraint

        slope = given.get("jac") if isinstance(given, dict) else getattr(given, "jac", None)
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
            inner = VectorProblem(self.name, given.fun, self.example, (), self.compiled)
            value, slope = inner.residuals_and_jacobian()
            residuals = inner.residuals
            weighted = inner.run(hessian(lambda x, weights: np.sum(residuals(x) * weights)))
            return NonlinearConstraint(
                value,
                given.lb,
                given.ub,
                jac=slope,
                hess=(lambda x, v: np.asarray(weighted(x, v))) if curved else given.hess,
                keep_feasible=given.keep_feasible,
            )
        return given


def holds_little(values: Any) -> bool:
    """Tell whether what functions, objects and containers hold, or name as global variables, has few elements each."""
    queue, seen = [values], set()
    while queue:
        value = queue.pop()
        kind = type(value)
        if isinstance(value, np.ndarray | Tensor):
            if value.size > FEW_ELEMENTS:
                return False
        elif id(value) not in seen and (issubclass(kind, FunctionType | MethodType | partial) or not callable(value)):
            seen.add(id(value))
            if len(seen) > MANY_HELD:
                return False
            queue += held_by(value)
    return True


def held_by(value: Any) -> list[Any]:
    """Return what a function, method, container or object holds."""
    if isinstance(value, FunctionType):
        names, cells = value.__code__.co_names, value.__closure__ or ()
        known = [value.__globals__[name] for name in names if name in value.__globals__]
        return [*map(content_of, cells), *known, *(value.__defaults__ or ())]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, ModuleType):
        return []
    leaves = flatten(value)[0]
    return list(own_attributes(value).values()) if len(leaves) == 1 and leaves[0] is value else leaves


# The user's functions are cells of closures, where `jit` finds them to convert their control flow.


def note_refusals(name: str, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return a jitted function whose refusals tell of the driver's own parameter, which users of it can reach."""

    def run(*args: Any) -> Any:
        try:
            return compiled(*args)
        except GraphError as error:
            error.add_note(f"{name} traces its functions; with jit=False they are called as they are.")
            raise

    return run


def fix_arguments(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function that takes those of some further arguments that are traced; the others stay as they are."""

    def call(first: Any, *traced: Any) -> Any:
        rest = iter(traced)
        return function(first, *(next(rest) if is_traced(x) else x for x in args))

    return resemble(call, function, updated=False)


def as_scalar(name: str, function: Callable[..., Any], back: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of a vector that calls the user's, whose result is one number."""

    def scalar(vector: Any, *args: Any) -> Any:
        found = require_result(name, function(back(vector), *args))
        if flatten(found)[1] is not None:
            remedy = "Return the value alone, and compute the rest from x when that is found"
            raise UsageError(name, f"a function that returned {shown(found)}", "one number is needed", remedy)
        return np.reshape(found, ()) if np.shape(found) and np.size(found) == 1 else found

    return resemble(scalar, function, updated=False)


def as_residuals(name: str, function: Callable[..., Any], back: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of a vector that calls the user's, whose result is one vector, or containers of arrays."""

    def residuals(vector: Any, *args: Any) -> Any:
        found = require_result(name, function(back(vector), *args))
        if isinstance(found, np.ndarray | Tensor):
            vector = found if found.ndim == 1 else np.reshape(found, (-1,))
        else:
            vector = tree.ravel_named(name, "fun(x)", as_example(found))[0]
        require_real(name, "fun(x)", vector)
        return vector

    return resemble(residuals, function, updated=False)


def require_result(name: str, found: Any) -> Any:
    """Return the result of the user's function; raise a UsageError if it is None."""
    if found is None:
        raise UsageError(name, "a function that returned None", "numbers are needed", "Return what it computes")
    return found


def require_real(name: str, label: str, vector: Any) -> None:
    """Raise a DtypeError of complex numbers, whose imaginary parts SciPy's drivers would drop."""
    if vector.dtype.kind == "c":
        action = "Write an array of the real parts and one of the imaginary parts"
        raise DtypeError(name, f"complex numbers in {label}", "real ones are needed", action)


def is_traced(value: Any) -> bool:
    """Tell whether a further argument is made of arrays and floats alone; integers may count iterations."""
    return all(isinstance(x, Tensor | np.ndarray | np.number | float | complex) for x in flatten(value)[0])


def as_example(value: Any) -> Any:
    """Return containers of floats; lists and tuples of numbers as arrays, and integers as floats, as SciPy does."""
    leaves, structure = flatten(np.array(value, dtype=float) if is_array(value) else value)
    return unflatten(structure, [as_floats(leaf) for leaf in leaves])


def is_array(value: Any) -> bool:
    """Tell whether something is a list of numbers or of rows of them; named tuples are containers with fields."""
    if type(value) not in (list, tuple):
        return False
    rows = value if value and all(type(x) in (list, tuple) for x in value) else [value]
    numbers = all(isinstance(x, int | float | np.number) for row in rows for x in row)
    return numbers and len({len(row) for row in rows}) == 1


def as_floats(leaf: Any) -> Any:
    """Return a leaf of integers as one of floats; any other as it is."""
    if isinstance(leaf, int) and not isinstance(leaf, bool):
        return float(leaf)
    return leaf.astype(float) if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "iu" else leaf


def as_float(value: Any) -> float:
    """Return a value of one element as a float."""
    return float(value.item() if isinstance(value, Tensor) else value)


WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
WITH_PRODUCTS = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
WITH_HESSIAN = frozenset({"dogleg", "trust-exact"})


@hint_parameters("drivers", "minimize")
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    jit: bool = True,
    progress: bool = False,
) -> Any:
    """Minimise a function of containers by one of SciPy's methods; see `scipy.optimize.minimize`.

    Values come with their gradient, and methods that use second derivatives get products with the Hessian
    (Newton-CG, trust-ncg, trust-krylov, trust-constr) or the Hessian (dogleg, trust-exact).

    Args:
        fun: the function: of a container like `x0`, and of `args`; returns a number.
        x0: where to start: an array, a number, or containers of floats. Lists of numbers are arrays, as in SciPy.
        args: further arguments, of any kind.
        method: SciPy's name of a method.
        bounds: a pair of lowest and highest values, each a number or a container like `x0`; or as in SciPy if `x0` is
            an array. (Of two numbers, two lists are SciPy's pairs, and two arrays are refused.)
        constraints: as in SciPy, their functions of a container like `x0`; derivatives are filled in.
        tol: as in SciPy.
        callback: is called after each iteration, with a container like `x0`, or SciPy's result by the name of
            `intermediate_result`.
        options: as in SciPy.
        jit: whether functions are traced once and compiled, those of small problems after some calls; pass False where
            tracing refuses something.
        progress: whether a line is printed after each iteration.

    Returns:
        SciPy's result: `x` in the containers of `x0`, `fun`, `jac`, `success`, `message`, `nit` and others.

    Raises:
        UsageError: bounds are none, are of other containers, or could be read in two ways.
        ShapeError: bounds have another shape than `x0`.
        DtypeError: `fun` cannot be called, or `x0` has leaves that are no real numbers.

    >>> def banana(p):
    ...     return 100.0 * (p["b"] - p["a"] ** 2) ** 2 + (1.0 - p["a"]) ** 2
    >>> found = minimize(banana, {"a": -1.0, "b": 2.0}, method="trust-exact")
    >>> round(found.x["a"], 4), round(found.x["b"], 4)
    (1.0, 1.0)
    """
    from scipy import optimize

    require_flag("optim.minimize", progress=progress)
    problem = VectorProblem("optim.minimize", fun, x0, args, jit)
    name = (method or "").lower()
    derivatives: dict[str, Any] = {}
    if name not in WITHOUT_GRADIENT:
        derivatives["jac"] = True
    if name in WITH_PRODUCTS:
        derivatives["hessp"] = problem.product
    if name in WITH_HESSIAN:
        derivatives["hess"] = problem.hessian
    many = constraints if isinstance(constraints, list | tuple) else (constraints,)
    found = optimize.minimize(
        problem.value if name in WITHOUT_GRADIENT else problem.value_and_gradient,
        problem.start,
        method=method,
        bounds=problem.limits(bounds, pairs=True),
        constraints=[problem.constraint(c, curved=name == "trust-constr") for c in many],
        tol=tol,
        callback=reporter(problem, callback, progress),
        options=options,
        **derivatives,
    )
    return problem.result(found)


def reporter(problem: VectorProblem, callback: Callable[..., Any] | None, progress: bool) -> Callable[..., Any] | None:
    """Return the callback that SciPy calls after each iteration; None if there is neither a callback nor a report."""
    if callback is None and not progress:
        return None
    asks = callback is not None and "intermediate_result" in signature(callback).parameters
    count = 0

    def report(intermediate_result: Any) -> Any:
        nonlocal count
        count += 1
        result = type(intermediate_result)(intermediate_result)
        if progress:
            print(f"{count:5d}  f = {as_float(np.ravel(result.fun)[0]):.10g}", flush=True)
        if callback is None:
            return None
        result.x = problem.back(np.array(result.x))
        return callback(intermediate_result=result) if asks else callback(result.x)

    return report


@hint_parameters("drivers")
def least_squares(
    fun: Callable[..., Any], x0: Any, args: Any = (), *, bounds: Any = None, jit: bool = True, **options: Any
) -> Any:
    """Minimise a sum of squares by SciPy's methods, with the Jacobian; see `scipy.optimize.least_squares`.

    Args:
        fun: the residuals: of a container like `x0`, and of `args`; returns an array, or containers of arrays.
        x0: where to start: an array, a number, or containers of floats.
        args: further arguments, of any kind.
        bounds: as in SciPy if `x0` is an array; otherwise a pair of lowest and highest values, each a number or a
            container like `x0`.
        jit: whether functions are traced once and compiled, those of small problems after some calls.
        options: others of SciPy, such as `method`, `loss`, `f_scale`, `x_scale`, `xtol`.

    Returns:
        SciPy's result: `x` in the containers of `x0`, `cost`, `fun`, `jac` (of vectors) and others.

    Raises:
        UsageError: bounds do not fit.
        DtypeError: `fun` cannot be called, or `x0` has leaves that are no real numbers.

    >>> t = np.linspace(0.0, 1.0, 20)
    >>> y = 3.0 * np.exp(-2.0 * t)
    >>> found = least_squares(lambda p: p["a"] * np.exp(-p["k"] * t) - y, {"a": 1.0, "k": 1.0})
    >>> round(found.x["a"], 6), round(found.x["k"], 6)
    (3.0, 2.0)
    """
    from scipy import optimize

    if "kwargs" in options:
        fun = partial(fun, **options.pop("kwargs"))
    problem = VectorProblem("optim.least_squares", fun, x0, args, jit)
    value, slope = problem.residuals_and_jacobian()
    limits = problem.limits(bounds)
    found = optimize.least_squares(
        value, problem.start, jac=slope, bounds=(-np.inf, np.inf) if limits is None else limits, **options
    )
    return problem.result(found)


@hint_parameters("drivers")
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    *,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
    jit: bool = True,
) -> Any:
    """Find where a function of containers is zero, by SciPy's methods with the Jacobian; see `scipy.optimize.root`.

    Args:
        fun: the function: of a container like `x0`, and of `args`; returns as many numbers as `x0` has, in an array
            or containers.
        x0: where to start: an array, a number, or containers of floats.
        args: further arguments, of any kind.
        method: SciPy's name of a method.
        tol: as in SciPy.
        options: as in SciPy.
        jit: whether functions are traced once and compiled, those of small problems after some calls.

    Returns:
        SciPy's result, with `x` in the containers of `x0`.

    Raises:
        DtypeError: `fun` cannot be called, or `x0` has leaves that are no real numbers.
        ShapeError: there are not as many equations as unknowns.

    >>> found = root(lambda p: (p["x"] ** 2 + p["y"] - 3.0, p["x"] - p["y"] + 1.0), {"x": 1.0, "y": 1.0})
    >>> round(found.x["x"], 6), round(found.x["y"], 6)
    (1.0, 2.0)
    """
    from scipy import optimize

    problem = VectorProblem("optim.root", fun, x0, args, jit)
    value, slope = problem.residuals_and_jacobian()
    count = value(problem.start).size
    if count != problem.start.size:
        given = f"{count} equations for {problem.start.size} unknowns"
        raise ShapeError("optim.root", given, "as many are needed", "Use wengert.optim.least_squares otherwise")
    uses_jacobian = method in ("hybr", "lm")
    return problem.result(
        optimize.root(
            value, problem.start, method=method, jac=slope if uses_jacobian else None, tol=tol, options=options
        )
    )


@hint_parameters("drivers")
def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    *,
    absolute_sigma: bool = False,
    bounds: Any = None,
    jit: bool = True,
    **options: Any,
) -> tuple[Any, Any]:
    """Fit a model to data by SciPy's `curve_fit`, with the Jacobian.

    Args:
        f: the model, `f(xdata, *parameters)`; if `p0` is a container, `f(xdata, container)`.
        xdata: what the model is evaluated at.
        ydata: the data, of shape (m,).
        p0: where to start: an array of parameters, or containers of floats. By default ones, as many as `f` has.
        sigma: the standard deviations of the data, of shape (m,), or their covariance matrix.
        absolute_sigma: whether `sigma` is in the data's units; otherwise only ratios count.
        bounds: as in SciPy if parameters are an array; otherwise a pair of lowest and highest values, each a number
            or a container like `p0`.
        jit: whether functions are traced once and compiled, those of small problems after some calls.
        options: others of SciPy.

    Returns:
        parameters: an array of shape (n,), or containers like `p0`.
        covariance: the covariance matrix of the parameters, of shape (n, n), in the order of `wengert.tree.ravel`.

    Raises:
        UsageError: the number of parameters cannot be known, or bounds do not fit.
        UsageError: there are NaN or infinite numbers in `xdata`, unless options say so.
        ShapeError: the model gives another number of values than there are in `ydata`.
        DtypeError: `f` cannot be called.
        RuntimeError: no minimum was found.

    >>> t = np.linspace(0.0, 1.0, 20)
    >>> parameters, covariance = curve_fit(lambda t, a, k: a * np.exp(-k * t), t, 3.0 * np.exp(-2.0 * t))
    >>> np.round(parameters, 6)
    array([3., 2.])
    """
    from scipy import optimize

    name = "optim.curve_fit"
    require_callable(name, f)
    if getattr(xdata, "ndim", 0) == 1 and hasattr(xdata, "to_numpy"):  # a column of pandas takes no Tensors beside it
        xdata = xdata.to_numpy()
    start = np.ones(parameter_count(name, f)) if p0 is None else as_example(p0)
    flat = isinstance(start, np.ndarray)

    def model(parameters: Any) -> Any:
        return f(xdata, *parameters) if flat else f(xdata, parameters)

    problem = VectorProblem(name, model, start, (), jit)
    value, slope = problem.residuals_and_jacobian()
    limits = problem.limits(bounds)
    if hasattr(limits, "lb"):
        limits = (limits.lb, limits.ub)
    require_finite(name, xdata, options)
    places, ydata = np.arange(np.size(ydata)), np.asarray(ydata)
    if options.get("nan_policy") is not None and isinstance(xdata, np.ndarray | list | tuple):
        ydata = np.where(np.isnan(xdata).reshape(-1, ydata.size).any(axis=0), np.nan, ydata)

    def model_at_places(at: Any, *p: float) -> Any:
        """Return the values of the model at the places that SciPy has not left out."""
        found = value(np.array(p))
        if len(found) != places.size:  # places would leave the rest out
            given = f"{len(found)} values of the model for {places.size} of ydata"
            raise ShapeError(name, given, "as many are needed", "Give xdata and ydata one length")
        return found[at.astype(int)]

    found, covariance, *more = optimize.curve_fit(
        model_at_places,
        places,
        ydata,
        problem.start,
        sigma,
        absolute_sigma,
        bounds=(-np.inf, np.inf) if limits is None else limits,
        jac=lambda at, *p: slope(np.array(p))[at.astype(int)],
        **options,
    )
    return (problem.back(found), covariance, *more)


def require_finite(name: str, xdata: Any, options: Mapping[str, Any]) -> None:
    """Raise a UsageError where SciPy, which is given places in place of `xdata`, would refuse it."""
    asked = options.get("check_finite")
    if asked is None:
        asked = options.get("nan_policy") is None
    if asked and not all(np.all(np.isfinite(leaf)) for leaf in leaves(xdata) if aval_of(leaf).dtype.kind in "fc"):
        remedy = "Leave those points out, or pass nan_policy='omit'"
        raise UsageError(name, "NaN or infinite numbers in xdata", "finite ones are needed", remedy)


def parameter_count(name: str, model: Callable[..., Any]) -> int:
    """Return how many parameters a model has after the points it is evaluated at."""
    kinds = [p.kind for p in signature(model).parameters.values()]
    if len(kinds) < 2 or inspect.Parameter.VAR_POSITIONAL in kinds:
        given = "a model whose parameters cannot be counted"
        raise UsageError(name, given, "p0 is needed", "Pass p0, an array or a container")
    return len(kinds) - 1
