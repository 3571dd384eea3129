"""Roots and fixed points by any solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import own_copies
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_choice, shown
from wengert.core.values.object_arrays import leaves_of_result
from wengert.errors import ShapeError, UsageError
from wengert.implicit.attaching import SPARSE, implicit_solution
from wengert.implicit.matrix_free import METHODS
from wengert.implicit.solver_call import SolverNotes, solve_without_derivatives
from wengert.implicit.systems import MINIMUM_NORM, TOLERANCE
from wengert.support.attributes import function_name, resemble
from wengert.support.function_protocol import LikeFunction
from wengert.support.hints import hint_parameters

Function = Callable[..., Any]
SOLVERS = ("auto", "dense", SPARSE, *METHODS)


class ImplicitFunction(LikeFunction):
    """Be a solver whose results are differentiated by the equations that they solve.

    Attributes:
        solver: the user's, called once for each solution.
        residual: from a solution and the arguments of the solver to what is zero.
        like: from these arguments to what the solution is like, or None.
        options: of `wengert.implicit.attaching.implicit_solution`.
    """

    def __init__(
        self, name: str, solver: Function, residual: Function, like: Function | None, options: dict[str, Any]
    ) -> None:
        require_callable(name, solver, "solver")
        resemble(self, solver)
        self.name = name
        self.solver = solver
        self.residual = residual
        self.like = like
        self.options = options
        self.notes = SolverNotes()

    def __repr__(self) -> str:
        """Return the name of the solver."""
        return f"<{self.name}({function_name(self.solver, '__name__')})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Solve, once; derivatives of the result are those of the solution."""
        found = solve_without_derivatives(self.solver, args, kwargs, self.like, self.notes)
        equations = self.residual

        def residual(x: Any, args: Any, kwargs: Any) -> Any:
            return equations(x, *args, **kwargs)

        return implicit_solution(residual, found, (args, kwargs), name=self.name, **self.options)


def options_of(name: str, linear_solver: str, tol: float, singular: str) -> dict[str, Any]:
    """Return the options of a decorator, or raise a UsageError."""
    require_choice(name, "linear_solver", linear_solver, SOLVERS)
    require_choice(name, "singular", singular, ("raise", MINIMUM_NORM))
    if linear_solver == SPARSE and singular != "raise":
        needed = "'raise' is needed with sparse factors, of which there is no smallest solution"
        raise UsageError(name, f"singular={singular!r}", needed, "Pass linear_solver='dense'")
    if isinstance(tol, bool) or not isinstance(tol, int | float) or not 0 < tol < np.inf:
        raise UsageError(name, f"tol={shown(tol)}", "a positive, finite number is needed", "Leave it out")
    return {"linear_solver": linear_solver, "tol": float(tol), "singular": singular}


@hint_parameters("custom_root")
def custom_root(
    residual: Function,
    *,
    argnums: int = 0,
    linear_solver: str = "auto",
    like: Function | None = None,
    tol: float = TOLERANCE,
    singular: str = "raise",
) -> Callable[[Function], ImplicitFunction]:
    """Return a decorator for solvers of equations, of any origin, after which their solutions are differentiable.

    The derivative of x with residual(x, a) = 0 follows from the equations alone (the implicit function theorem): the
    solver is called once, on ndarrays, in every mode and order, and how it came to its solution does not matter. It may
    call SciPy, a compiled library or another program. What the residual captures is differentiated like its arguments.

    Under `jit` a solver that can be traced is part of the graph, native loops included; another one is called by Python
    each time that the graph runs. Under `vmap` it is called for all lanes at once if it can be, else for each.

    Args:
        residual: `residual(x, *args)` gives as many real numbers as x has, in any containers; zero at the solution. It
            gets what the solver gets, after x, and may be differentiated twice and more, so it is written in NumPy.
        argnums: where x stands among the arguments of the residual.
        linear_solver: what solves systems with the Jacobian of the residual by x: "dense" factors; "sparse" ones, of
            the elements that may not be zero, as `wengert.sparse.jacobian` finds them; or without a matrix "cg"
            (symmetric positive definite), "minres" (symmetric), "gmres", "lsmr". "auto" is "sparse" where that takes
            less time than "dense" of up to 2,000 unknown numbers; else "dense" for up to 2,000, then "gmres".
        like: from the arguments to arrays of the shapes and dtypes of the solution, for solvers that cannot be traced
            under `jit`. Without it they are called once more there, with made-up numbers, to see what comes.
        tol: by which part of their terms the equations may be missed. The solution is looked at when a derivative is
            asked for: of a point that solves nothing there is none.
        singular: what to do where the Jacobian is singular: "raise" a NumericalError that names the direction that is
            left free, or take the derivative of "minimum_norm".

    Returns:
        A decorator. What it makes of `solver(*args)`, which returns x in any containers, is a function of the same
        arguments and results.

    Raises:
        NumericalError: when differentiated: x misses the equations, their Jacobian is singular, or a linear solver did
            not converge.
        ShapeError: the residual has not as many real numbers as the solution.
        UsageError: an option is none of those above.

    >>> import wengert as wg
    >>> from scipy import optimize
    >>> @custom_root(lambda x, a: x**3 + x - a)
    ... def solve(a):
    ...     return optimize.brentq(lambda x: x**3 + x - a, -10.0, 10.0)
    >>> round(wg.grad(solve)(2.0), 9), round(wg.grad(wg.grad(solve))(2.0), 9)
    (0.25, -0.09375)
    >>> wg.jacobian(wg.vmap(solve))(np.array([0.0, 2.0])).round(9)
    array([[1.  , 0.  ],
           [0.  , 0.25]])
    """
    require_callable("custom_root", residual)
    if isinstance(argnums, bool) or not isinstance(argnums, int) or argnums < 0:
        needed = "the position of the solution among the residual's arguments is needed"
        raise UsageError("custom_root", f"argnums={shown(argnums)}", needed, "Leave it out if that is the first")
    options = options_of("custom_root", linear_solver, tol, singular)

    def equations(x: Any, *args: Any, **kwargs: Any) -> Any:
        return residual(*args[:argnums], x, *args[argnums:], **kwargs)

    def decorate(solver: Function) -> ImplicitFunction:
        return ImplicitFunction("custom_root", solver, equations if argnums else residual, like, options)

    return decorate


@hint_parameters("custom_fixed_point")
def custom_fixed_point(
    step: Function,
    *,
    linear_solver: str = "auto",
    like: Function | None = None,
    tol: float = TOLERANCE,
    singular: str = "raise",
) -> Callable[[Function], ImplicitFunction]:
    """Return a decorator for solvers of x = step(x, *args), after which their solutions are differentiable.

    It is `custom_root` with the residual step(x, *args) - x: whether the iteration converges does not matter to the
    derivative, nor how many steps it took.

    Args:
        step: `step(x, *args)` returns what has the containers and shapes of x.
        linear_solver: as for `custom_root`.
        like: as for `custom_root`.
        tol: as for `custom_root`.
        singular: as for `custom_root`.

    Returns:
        A decorator of `solver(*args)`.

    Raises:
        NumericalError: as for `custom_root`.
        ShapeError: the step changes containers or shapes.
        UsageError: an option is none of those that there are.

    >>> import wengert as wg
    >>> @custom_fixed_point(lambda x, a: (x + a / x) / 2)
    ... def square_root(a):
    ...     x = a
    ...     for _ in range(50):
    ...         x = (x + a / x) / 2
    ...     return x
    >>> wg.grad(square_root)(4.0), wg.grad(wg.grad(square_root))(4.0)
    (0.25, -0.03125)
    """
    require_callable("custom_fixed_point", step)
    options = options_of("custom_fixed_point", linear_solver, tol, singular)

    def difference(x: Any, *args: Any, **kwargs: Any) -> Any:
        before, structure = flatten(x)
        after, other = leaves_of_result(step(*own_copies((x, *args)), **own_copies(kwargs)))
        if other != structure or [np.shape(y) for y in after] != [np.shape(y) for y in before]:
            given = f"a step from shapes {[np.shape(y) for y in before]} to {[np.shape(y) for y in after]}"
            raise ShapeError("custom_fixed_point", given, "the same containers and shapes are needed", "Keep them")
        return unflatten(structure, [y - x for x, y in zip(before, after, strict=True)])

    equations = resemble(difference, step, updated=False)
    return lambda solver: ImplicitFunction("custom_fixed_point", solver, equations, like, options)
