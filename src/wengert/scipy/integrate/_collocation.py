"""The collocation equations of boundary value problems: Lobatto's of order 4, as SciPy solves them, and their Jacobian.

The solution is a cubic between nodes, with the slopes of the equation there; it satisfies the equation in the middle of
each interval, too. (J. Kierzenka and L. F. Shampine, A BVP solver based on residual control and the Matlab PSE, 2001.)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.values.tensor import Tensor
from wengert.creation import asarray
from wengert.errors import NumericalError, ShapeError, UsageError
from wengert.support.caches import cached
from wengert.support.records import NamedTuple
from wengert.transforms.forward import jvp
from wengert.transforms.tracing import call_converting
from wengert.transforms.vmap import vmap

NAME = "solve_bvp"
Function = Callable[..., Any]


class CollocationEquations(NamedTuple):
    """Hold the equations of a boundary value problem.

    Attributes:
        fun: slopes at all nodes.
        bc: what is zero of both ends.
        unknown: whether there are unknown parameters, which both get then.
    """

    fun: Function
    bc: Function
    unknown: bool

    def call(self, function: Function, first: Any, second: Any, p: Any) -> Any:
        """Return what one of the functions gives."""
        given = (first, second, p) if self.unknown else (first, second)
        call = call_converting if any(type(x) is Tensor for x in given) else operator.call  # SciPy's are numbers
        found = call(function, *given)
        if found is None:
            raise UsageError(NAME, "a function that returned None", "numbers are needed", "Return what it computes")
        return found if isinstance(found, np.ndarray | Tensor) else asarray(found)

    def numbers(self) -> tuple[Function, Function]:
        """Return both functions as SciPy calls them."""

        def slopes(x: Any, y: Any, p: Any = None) -> Any:
            return np.array(self.slope(x, y, p, None, None))  # which SciPy writes to

        def conditions(first: Any, last: Any, p: Any = None) -> Any:
            return np.asarray(self.call(self.bc, first, last, p))

        return slopes, conditions

    def slope(self, x: Any, y: Any, p: Any, singular: Any, start: Any) -> Any:
        """Return the slopes at places behind the start, with the singular term."""
        found = self.call(self.fun, x, y, p)
        if found.shape != y.shape:
            given = f"fun that gives shape {found.shape} for y of shape {y.shape}"
            raise ShapeError(NAME, given, "the same shape is needed", "Return a slope for each element")
        return found if singular is None else found + asarray(singular) @ y / (x - start)

    def slope_at_nodes(self, x: Any, y: Any, p: Any, singular: Any) -> Any:
        """Return the slopes at all nodes; the first is the limit there where the product with y is 0."""
        if singular is None:
            return self.slope(x, y, p, None, None)
        singular, found = asarray(singular), self.slope(x, y, p, None, None)
        first = np.linalg.pinv(np.eye(singular.shape[0]) - singular) @ found[:, :1]
        return np.concatenate([first, found[:, 1:] + singular @ y[:, 1:] / (x[1:] - x[0])], axis=1)

    def residual(self, unknown: Any, x: Any, singular: Any) -> Any:
        """Return by how much the equations are missed: the conditions last, in the shapes of what is unknown.

        Args:
            unknown: the states at the nodes, of shape (m, n), and the parameters.
            x: the nodes.
            singular: the matrix of the singular term, or None.
        """
        y, p = unknown[0].T, unknown[1]
        h = x[1:] - x[:-1]
        slopes = self.slope_at_nodes(x, y, p, singular)
        middle = middle_of(y, slopes, h)
        between = self.slope(x[:-1] + 0.5 * h, middle, p, singular, x[0])
        missed = y[:, 1:] - y[:, :-1] - h / 6 * (slopes[:, :-1] + slopes[:, 1:] + 4 * between)
        rows = np.concatenate([missed.T.ravel(), self.call(self.bc, y[:, 0], y[:, -1], p)])
        return rows[: y.size].reshape(unknown[0].shape), rows[y.size :]

    def residual_by_functions(self) -> Function:
        """Return `residual` as a function with the user's functions as variables, where their conversion finds them."""
        fun, bc = self.fun, self.bc

        def residual(unknown: Any, x: Any, singular: Any) -> Any:
            return self._replace(fun=fun, bc=bc).residual(unknown, x, singular)

        return residual

    # Jacobians

    def slopes(self, x: Any, y: Any, p: Any = None) -> Any:
        """Return the Jacobians of `fun` by y and p, as SciPy takes them."""
        parts = derivatives_of_columns(lambda y, p: self.call(self.fun, x, y, p), y, p)
        return parts if self.unknown else parts[0]

    def slopes_of_conditions(self, first: Any, last: Any, p: Any = None) -> Any:
        """Return the Jacobians of `bc` by the states at both ends and p, as SciPy takes them."""
        parts = derivatives(
            lambda first, last, p: self.call(self.bc, first, last, p), (first, last, as_vector(p, first))
        )
        found = [np.moveaxis(part, 0, 1) for part in parts]
        return found if self.unknown else found[:2]

    def jacobian(self, found: Any, singular: Any) -> Any:
        """Return the Jacobian of the residual at a solution of SciPy's, a sparse array.

        Differences of the middle state are y0 / 2 + h / 8 A0 y0 for those at the left, and likewise at the right.
        """
        from scipy import sparse

        x, y, p = found.x, found.y, as_vector(found.p, found.y)
        (count, nodes), size = y.shape, len(p)
        h = np.diff(x)
        middle = middle_of(y, np.asarray(self.slope_at_nodes(x, y, p, singular)), h)
        at = derivatives_of_columns(lambda y, p: self.slope_at_nodes(x, y, p, singular), y, p)
        of = derivatives_of_columns(lambda y, p: self.slope(x[:-1] + 0.5 * h, y, p, singular, x[0]), middle, p)
        (a, ap), (b, bp) = ([np.moveaxis(part, -1, 0) for part in parts] for parts in (at, of))
        h, one = h[:, None, None], np.eye(count)
        left = -one - h / 6 * (a[:-1] + 2 * b) - h**2 / 12 * (b @ a[:-1])
        right = one - h / 6 * (a[1:] + 2 * b) + h**2 / 12 * (b @ a[1:])
        further = -h / 6 * (ap[:-1] + ap[1:] + 4 * bp) - h**2 / 12 * (b @ (ap[:-1] - ap[1:]))
        order = np.arange(nodes - 1)
        shape = ((nodes - 1) * count, nodes * count)
        blocks = np.stack([left, right], axis=1).reshape(-1, count, count)
        columns, starts = np.stack([order, order + 1], axis=1).ravel(), np.arange(0, 2 * nodes - 1, 2)
        inner = sparse.bsr_array((blocks, columns, starts), shape=shape)
        first, last, by_p = derivatives(lambda *given: self.call(self.bc, *given), (y[:, 0], y[:, -1], p))
        ends = np.zeros((count + size, shape[1] + size), y.dtype)
        ends[:, :count] += first.T
        ends[:, shape[1] - count : shape[1]] += last.T
        ends[:, shape[1] :] = by_p.T
        upper = sparse.hstack([inner, sparse.coo_array(further.reshape(shape[0], size))])
        return sparse.vstack([upper, sparse.coo_array(ends)]).tocsc()


def middle_of(y: Any, slopes: Any, h: Any) -> Any:
    """Return the states in the middle of intervals."""
    return 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (slopes[:, 1:] - slopes[:, :-1])


def as_vector(p: Any, y: Any) -> Any:
    """Return parameters of the dtype of states, none if there are none."""
    return np.zeros(0, y.dtype) if p is None else p


def derivatives(function: Function, primals: Sequence[Any]) -> list[Any]:
    """Return the derivatives of a function by the elements of vectors, one row for each."""
    sizes = [len(x) for x in primals]
    rows = np.eye(sum(sizes), dtype=np.result_type(*primals))
    found = forward_rows(function, primals, np.split(rows, np.cumsum(sizes)[:-1], axis=1))
    return np.split(found, np.cumsum(sizes)[:-1], axis=0)


def derivatives_of_columns(function: Function, y: Any, p: Any) -> list[Any]:
    """Return the derivatives, of shapes (n, n, m) and (n, k, m), of a function whose columns are those of y alone."""
    count, p = len(y), as_vector(p, y)
    rows = np.eye(count + len(p), dtype=y.dtype)
    wide = np.broadcast_to(rows[:, :count, None], (len(rows), *y.shape))
    found = np.moveaxis(forward_rows(function, (y, p), (wide, rows[:, count:])), 0, 1)
    return [found[:, :count], found[:, count:]]


def forward_rows(function: Function, primals: Sequence[Any], directions: Sequence[Any]) -> Any:
    """Return the derivatives of a function along many directions, as an ndarray."""
    return np.array(vmap(lambda *ways: jvp(function, tuple(primals), ways)[1])(*directions))


class CollocationFactors:
    """Be what solves systems with the Jacobian at a solution, factorised when the first one is.

    Args:
        matrix: the Jacobian; None if there is no solution.
        message: what SciPy says of the solution.
    """

    def __init__(self, matrix: Any, message: str) -> None:
        self.matrix, self.message = matrix, message

    @cached
    def factors(self) -> Any:
        """The factors by SuperLU."""
        from scipy.sparse.linalg import splu

        if self.matrix is None:
            given = f"a solution that is none: {self.message}"
            action = "Pass a better guess, more max_nodes, or a larger tol"
            raise NumericalError(NAME, given, "one that converged is needed to differentiate", action)
        try:
            return splu(self.matrix)
        except RuntimeError as error:
            given, needed = "collocation equations that are singular at the solution", "regular ones are needed"
            raise NumericalError(NAME, given, f"{needed} to differentiate", "Add a condition that fixes it") from error

    def solve(self, _multiply: Function, right: Any) -> Any:
        """Return the solution of a system, in the containers of its right-hand side."""
        return self.substitute(right, "N")

    def solve_transposed(self, _multiply: Function, right: Any) -> Any:
        """Return the solution of the transposed system; of complex numbers with the adjoint."""
        return self.substitute(right, "H")

    def substitute(self, right: Any, way: str) -> Any:
        """Return the solution of a system."""
        vector = np.concatenate([np.ravel(np.asarray(part)) for part in right])
        found = self.factors.solve(vector, way)
        count = right[0].size
        return found[:count].reshape(right[0].shape), found[count:]
