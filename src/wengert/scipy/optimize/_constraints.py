"""Bounds and constraints as SciPy takes them, taken apart into what is differentiated, and put together of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.dispatch import one_array
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError
from wengert.scipy.optimize._optimality import Sides
from wengert.support.records import NamedTuple
from wengert.transforms.tracing import call_converting

Function = Callable[..., Any]


def sides_of(name: str, bounds: Any, size: int) -> Sides | None:
    """Return lowest and highest values of SciPy's bounds; None if there are none."""
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        return Sides(*(spread(name, side, size) for side in (bounds.lb, bounds.ub)))
    if isinstance(bounds, Tensor | np.ndarray):
        pairs: Any = [(row[0], row[1]) for row in bounds] if bounds.ndim == 2 and bounds.shape[1] == 2 else None
    else:
        pairs = list(bounds)
    if pairs is None or len(pairs) != size or any(not hasattr(pair, "__len__") or len(pair) != 2 for pair in pairs):
        needed = f"a pair (lowest, highest) for each of {size} numbers is needed, None where there is no bound"
        raise UsageError(name, f"{shown(bounds)} for bounds", needed, "Pass them, or scipy.optimize.Bounds")
    low = [-np.inf if pair[0] is None else pair[0] for pair in pairs]
    high = [np.inf if pair[1] is None else pair[1] for pair in pairs]
    return Sides(*(stack_numbers(side) for side in (low, high)))


def stack_numbers(numbers: Sequence[Any]) -> Any:
    """Return numbers, of which some may be Tensors, as one vector of floats."""
    if not any(isinstance(x, Tensor) for x in numbers):
        return np.array(numbers, dtype=float).reshape(len(numbers))
    parts: list[Any] = [np.reshape(x, ()) if isinstance(x, Tensor) else np.float64(x) for x in numbers]
    return np.stack(parts)


def spread(name: str, side: Any, size: int) -> Any:
    """Return a limit, or one for each number, as a vector."""
    side = one_array(side)
    if np.size(side) not in (1, size):
        raise ShapeError(name, f"{np.size(side)} limits for {size} numbers", "one for each is needed", "Pass as many")
    flat = np.reshape(side, (-1,)) if isinstance(side, Tensor) else np.ravel(np.asarray(side, dtype=float))
    return np.broadcast_to(flat, (size,))


class Constraint(NamedTuple):
    """Be one of SciPy's constraints, lower <= c(x) <= upper, taken apart.

    Attributes:
        given: what the user gave.
        value: c, of x and `args`.
        args: what else is read, the limits included, in a dictionary.
        equal: whether the limits are the same, as those of the type "eq".
        size: how many numbers c gives.
    """

    given: Any
    value: Function
    args: dict[str, Any]
    equal: bool
    size: int

    def sides(self, args: dict[str, Any]) -> Sides:
        """Return the limits."""
        if "lb" not in args:
            zeros = np.zeros(self.size)
            return Sides(zeros, zeros if self.equal else np.full(self.size, np.inf))
        return Sides(*(spread("constraints", args[side], self.size) for side in ("lb", "ub")))

    def anew(self, args: dict[str, Any]) -> Any:
        """Return SciPy's constraint of numbers."""
        from scipy.optimize import LinearConstraint, NonlinearConstraint

        given = self.given
        if isinstance(given, dict):
            return {**given, "args": args["args"]}
        if isinstance(given, LinearConstraint):
            return LinearConstraint(args["A"], args["lb"], args["ub"], given.keep_feasible)
        found = NonlinearConstraint(
            given.fun,
            args["lb"],
            args["ub"],
            given.jac,
            given.hess,
            given.keep_feasible,
            given.finite_diff_rel_step,
            given.finite_diff_jac_sparsity,
        )
        if hasattr(given, "function"):
            found.function, found.args = given.function, args["args"]
        return found


def taken_apart(name: str, constraints: Any, x0: Any) -> list[Constraint]:
    """Return constraints taken apart: equations first, as SciPy orders multipliers."""
    many = constraints if isinstance(constraints, list | tuple) else [constraints]
    found = [constraint_of(name, given, x0) for given in many]
    return [c for c in found if c.equal] + [c for c in found if not c.equal]


def constraint_of(name: str, given: Any, x0: Any) -> Constraint:
    """Return a constraint taken apart."""
    if isinstance(given, dict):
        if given.get("type") not in ("eq", "ineq") or not callable(given.get("fun")):
            needed = "a dictionary with type 'eq' or 'ineq', and fun, is needed"
            raise UsageError(name, "a constraint without them", needed, "Pass {'type': 'ineq', 'fun': ...}")
        args = given.get("args", ())
        args = args if isinstance(args, tuple) else (args,)
        function = given["fun"]

        def of_dictionary(x: Any, args: dict[str, Any]) -> Any:
            return one_array(function(x, *args["args"]))

        return Constraint(given, of_dictionary, {"args": args}, given["type"] == "eq", size_at(of_dictionary, x0, args))
    if hasattr(given, "A"):
        matrix = given.A if isinstance(given.A, Tensor) else dense(given.A)
        limits = {"A": matrix, "lb": given.lb, "ub": given.ub}
        return Constraint(given, of_matrix, limits, has_equal_limits(given), matrix.shape[0])
    if hasattr(given, "fun"):
        own = getattr(given, "function", None)  # of `optim.constraint`, which has further arguments
        function, further = (given.fun, ()) if own is None else (own, given.args)

        def of_function(x: Any, args: dict[str, Any]) -> Any:
            return one_array(function(x, *args["args"]))

        limits = {"lb": given.lb, "ub": given.ub, "args": further}
        size = size_at(of_function, x0, further)
        return Constraint(given, of_function, limits, has_equal_limits(given), size)
    needed = "a dictionary, a LinearConstraint or a NonlinearConstraint of scipy.optimize is needed"
    raise UsageError(name, f"{shown(given)} for a constraint", needed, "Pass one, or several in a list")


def of_matrix(x: Any, args: dict[str, Any]) -> Any:
    """Return the values of linear constraints."""
    return args["A"] @ x


def dense(matrix: Any) -> Any:
    """Return a matrix, also one of scipy.sparse, as an array with two axes."""
    return np.atleast_2d(np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float))


def size_at(function: Function, x0: Any, args: tuple[Any, ...]) -> int:
    """Return how many numbers a constraint gives."""
    return int(np.size(call_converting(function, x0, {"args": args})))


def has_equal_limits(given: Any) -> bool:
    """Tell whether the limits are the same numbers, known to be so."""
    if isinstance(given.lb, Tensor) or isinstance(given.ub, Tensor):
        return given.lb is given.ub
    return bool(np.all(np.equal(given.lb, given.ub)))
