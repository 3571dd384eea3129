"""Jacobians of implicit methods, and systems with matrices made of these: of all elements, or of those of a pattern.

Of a pattern the elements are a vector, computed in as many lanes as its columns have colours; in an order of rows and
columns that brings them near to the diagonal (reverse Cuthill-McKee: E. Cuthill and J. McKee, Reducing the bandwidth of
sparse symmetric matrices, Proc. ACM 24, 1969) they are factorised as a banded matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import UsageError
from wengert.implicit.banded import band_factors, band_solution
from wengert.scipy._linear_algebra import lu_factor, lu_solve
from wengert.scipy.integrate._methods.adaptive_steps import MISSED, Walk
from wengert.scipy.integrate._methods.held_factors import solver_by
from wengert.scipy.integrate._methods.tableaux import jacobian_by_state
from wengert.sparse.coloring.coloring_methods import color
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.plans.lanes import lane_elements
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient

Array = np.ndarray[Any, Any]
Slope = Callable[[Any, Any], Any]
NAME = "solve_ivp"
MISSED_PART = 1e-9
"""The part of products with a Jacobian that may be missing, as that of rounding errors."""
FEWEST = 10
"""States from which a pattern is looked for."""
NARROW = 0.6
"""The share of a row that factors, and elements, may take: of two species in a row of 4, 6 and 8 points, with 7 places
for the 8, 12 and 16 of a row, values take 1.08, 0.91 and 0.78 of the time by Rodas5P, gradients 1.2, 0.97 and 0.92."""


class GivenPattern(NamedTuple):
    """Say which elements of a Jacobian may be other than zero, as the user does; the key of programs has it.

    Attributes:
        size: how many rows and columns there are.
        places: which elements of all, row by row, as bytes of an array.
        packed: how many bands above the diagonal a packed Jacobian has; None if it is not packed.
        bands: how many it has in all.
    """

    size: int
    places: bytes
    packed: int | None = None
    bands: int | None = None

    @property
    def pattern(self) -> Pattern:
        """The pattern."""
        places = np.frombuffer(self.places, np.int64)
        return Pattern.of_pairs((self.size, self.size), places // self.size, places % self.size)


class Matrices(ABC):
    """Know how Jacobians of a number of states are held.

    Attributes:
        solve: gives, of factors, the matrix and a right-hand side, the solution with derivatives by the last two.
        solve_many: the same of what `prepare` gives.
    """

    solve: Callable[[Any, Any, Any], Any]
    solve_many: Callable[[Any, Any, Any], Any]

    @abstractmethod
    def jacobian(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the Jacobian of a slope by the state."""

    @abstractmethod
    def of_user(self, jacobian: Any) -> Any:
        """Return a Jacobian that the user gave as a matrix."""

    @abstractmethod
    def of_mass(self, mass: Any) -> Any:
        """Return a mass matrix."""

    @abstractmethod
    def identity(self, jacobian: Any) -> Any:
        """Return the identity, for a Jacobian."""

    @abstractmethod
    def by_mass(self, mass: Any, change: Any) -> Any:
        """Return the product of a mass matrix with a vector, or with each row of some."""

    @abstractmethod
    def of_stages(self, mass: Any, weights: Any, jacobians: Any) -> tuple[Matrices, Any]:
        """Return how the matrix of several stages, one after the other, is held, and this.

        Args:
            mass: what stands on the diagonal.
            weights: by what the Jacobian of each stage, the column, is subtracted in each, the row.
            jacobians: of the stages.
        """

    @abstractmethod
    def product(self, matrix: Any, x: Any, transposed: bool) -> Any:
        """Return the product of a matrix or its transpose with a vector."""

    @abstractmethod
    def factors(self, matrix: Any) -> Any:
        """Return the factors of a matrix."""

    @abstractmethod
    def substitute(self, factors: Any, b: Any) -> Any:
        """Return the solution for a right-hand side."""

    def prepare(self, matrix: Any) -> Any:
        """Return what solves many systems with a matrix, held constant."""
        return self.factors(stop_gradient(matrix))


class FullMatrices(Matrices):
    """Hold all elements."""

    def __init__(self) -> None:
        def solve(factors: Any, b: Any, transposed: bool) -> Any:
            return lu_solve(factors, b, trans=int(transposed), check_finite=False)

        self.solve = solver_by(solve, outer, self.product)
        self.solve_many = solver_by(self.product, outer, self.product)

    def jacobian(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the Jacobian of a slope by the state."""
        return jacobian_by_state(slope, t, y)

    def of_user(self, jacobian: Any) -> Any:
        """Return a Jacobian that the user gave as a matrix."""
        return jacobian

    def of_mass(self, mass: Any) -> Any:
        """Return a mass matrix."""
        return mass

    def identity(self, jacobian: Any) -> Any:
        """Return the identity, for a Jacobian."""
        return np.eye(jacobian.shape[0], dtype=jacobian.dtype)

    def by_mass(self, mass: Any, change: Any) -> Any:
        """Return the product of a mass matrix with a vector, or with each row of some."""
        return change @ mass.T

    def of_stages(self, mass: Any, weights: Any, jacobians: Any) -> tuple[Matrices, Any]:
        """Return how the matrix of several stages, one after the other, is held, and this."""
        count, n, _ = jacobians.shape
        blocks = weights[:, None, :, None] * np.swapaxes(jacobians, 0, 1)[None]
        return self, np.kron(np.eye(count), mass) - blocks.reshape(count * n, count * n)

    def product(self, matrix: Any, x: Any, transposed: bool) -> Any:
        """Return the product of a matrix or its transpose with a vector."""
        return (matrix.T if transposed else matrix) @ x

    def factors(self, matrix: Any) -> Any:
        """Return the factors of a matrix."""
        return lu_factor(matrix, check_finite=False)

    def substitute(self, factors: Any, b: Any) -> Any:
        """Return the solution for a right-hand side."""
        return lu_solve(factors, b, check_finite=False)

    def prepare(self, matrix: Any) -> Any:
        """Return the inverse, held constant."""
        return stop_gradient(np.linalg.inv(stop_gradient(matrix)))


def outer(rows: Any, columns: Any) -> Any:
    """Return the matrix of products of two vectors."""
    return rows[:, None] * columns[None, :]


FULL = FullMatrices()


class BandedMatrices(Matrices):
    """Hold the elements of a pattern, which has the diagonal, as a vector.

    Attributes:
        size: how many rows and columns there are.
        rows, columns: of each element.
        order: which row and column is the first, the second and so on in the banded matrix; None as they are.
        below, above: how many bands that has on either side of the diagonal.
        places: which element stands where in it, column by column; one more than there are for none.
        packed: how many bands above the diagonal Jacobians of the user have, which are packed; None if they are not.
    """

    def __init__(self, size: int, rows: Array, columns: Array, order: Array | None, packed: int | None = None) -> None:
        self.size, self.rows, self.columns, self.order, self.packed = size, rows, columns, order, packed
        self.back = None if order is None else np.argsort(order)
        self.below, self.above = bandwidth(rows, columns, self.back)
        self.places = np.full((size, self.below + self.above + 1), len(rows), np.int32)
        first, second = (x if self.back is None else self.back[x] for x in (rows, columns))
        self.places[second, self.above + first - second] = np.arange(len(rows))
        self.diagonal = (rows == columns).astype(float)
        self.by_line = [line_places(rows, size), line_places(columns, size)]
        self.stages: dict[int, BandedMatrices] = {}
        self.coloring: Any = None
        self.solve = self.solve_many = solver_by(self.solution, self.outer, self.product)

    @property
    def width(self) -> int:
        """How many elements the factors have in a row."""
        return 2 * self.below + self.above + 1

    def jacobian(self, slope: Slope, t: Any, y: Any) -> Any:
        """Return the Jacobian of a slope by the state."""
        if self.coloring is None:
            self.coloring = color(Pattern.of_pairs((self.size, self.size), self.rows, self.columns))
        places = self.coloring.lane_places
        return lane_elements(NAME, lambda state: slope(t, state), (y,), self.coloring, places)

    def of_user(self, jacobian: Any) -> Any:
        """Return a Jacobian that the user gave as a matrix."""
        return jacobian[self.rows if self.packed is None else self.packed + self.rows - self.columns, self.columns]

    def of_mass(self, mass: Any) -> Any:
        """Return the elements of a mass matrix."""
        return mass[self.rows, self.columns]

    def identity(self, jacobian: Any) -> Any:
        """Return the elements of the identity."""
        return self.diagonal

    def by_mass(self, mass: Any, change: Any) -> Any:
        """Return the product of a mass matrix with a vector, or with each row of some."""
        own = self.of_mass(mass)
        if change.ndim == 1:
            return self.product(own, change, False)
        return np.stack([self.product(own, row, False) for row in change])

    def of_stages(self, mass: Any, weights: Any, jacobians: Any) -> tuple[Matrices, Any]:
        """Return how the matrix of several stages, one after the other, is held, and this."""
        count = len(weights)
        matrices = self.stages.get(count)
        if matrices is None:
            stages, shape = np.arange(count), (len(self.rows), count, count)
            rows = self.rows[:, None, None] + self.size * stages[:, None]
            columns = self.columns[:, None, None] + self.size * stages
            order = np.arange(self.size) if self.order is None else self.order
            order = (order[:, None] + self.size * stages).reshape(-1)
            both = [np.broadcast_to(x, shape).reshape(-1) for x in (rows, columns)]
            matrices = self.stages[count] = BandedMatrices(self.size * count, both[0], both[1], order)
        elements = mass[:, None, None] * np.eye(count) - weights * jacobians.T[:, None, :]
        return matrices, elements.reshape(-1)

    def factors(self, matrix: Any) -> Any:
        """Return the factors of a matrix."""
        return apply(band_factors, with_zero(matrix)[self.places], below=self.below, above=self.above)

    def substitute(self, factors: Any, b: Any) -> Any:
        """Return the solution for a right-hand side."""
        return self.solution(factors, b, False)

    def solution(self, factors: Any, b: Any, transposed: bool) -> Any:
        """Return the solution of a system with a matrix or its transpose."""
        packed, pivots = factors
        right = b if self.order is None else b[self.order]
        options = {"below": self.below, "above": self.above, "transposed": transposed}
        found = apply(band_solution, packed, right[:, None], pivots, **options)[:, 0]
        return found if self.back is None else found[self.back]

    def outer(self, rows: Any, columns: Any) -> Any:
        """Return the elements of the matrix of products of two vectors."""
        return rows[self.rows] * columns[self.columns]

    def product(self, matrix: Any, x: Any, transposed: bool) -> Any:
        """Return the product of a matrix or its transpose with a vector."""
        terms = matrix * x[self.rows if transposed else self.columns]
        return np.sum(with_zero(terms)[self.by_line[transposed]], axis=1)


def with_zero(elements: Any) -> Any:
    """Return elements and one more, which is zero."""
    return np.concatenate([elements, np.zeros(1)])


def line_places(lines: Array, count: int) -> Array:
    """Return which elements each line has, of shape (count, most that one has); one more than there are for none."""
    order = np.argsort(lines, kind="stable")
    lengths = np.bincount(lines, minlength=count)
    found = np.full((count, int(lengths.max())), len(lines), np.int32)
    within = np.arange(len(lines)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    found[lines[order], within] = order
    return found


def bandwidth(rows: Array, columns: Array, places: Array | None) -> tuple[int, int]:
    """Return how many bands there are below and above the diagonal, where rows and columns have these places."""
    distances = rows - columns if places is None else places[rows] - places[columns]
    return int(max(distances.max(), 0)), int(max(-distances.min(), 0))


def banded_matrices(pattern: Pattern, packed: int | None = None) -> BandedMatrices:
    """Return how matrices of a pattern and of the diagonal are held: packed ones as they are.

    Others are in the order of states with fewer bands.
    """
    size = pattern.shape[0]
    diagonal = np.arange(size)
    pairs = (np.concatenate([x, diagonal]) for x in (pattern.rows, pattern.indices))
    whole = Pattern.of_pairs(pattern.shape, *pairs)
    rows, columns = whole.rows.astype(np.intp), whole.indices.astype(np.intp)
    order = None if packed is not None else narrower_order(whole, rows, columns)
    return BandedMatrices(size, rows, columns, order, packed)


def narrower_order(pattern: Pattern, rows: Array, columns: Array) -> Array | None:
    """Return the order of rows and columns in which there are fewer bands; None for that as they are."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order: Array = reverse_cuthill_mckee(pattern.to_scipy().astype(float)).astype(np.intp)
    widths = [2 * below + above for below, above in (bandwidth(rows, columns, x) for x in (None, np.argsort(order)))]
    return order if widths[1] < widths[0] else None


def matrices_for(pattern: Pattern) -> Matrices:
    """Return how matrices of a pattern are held: as banded ones where these are narrow."""
    size = pattern.shape[0]
    if size < FEWEST or pattern.count > NARROW * size * size:
        return FullMatrices()
    found = banded_matrices(pattern)
    return found if found.width <= NARROW * size else FullMatrices()


# What the user says of the elements


def checked_elements(matrices: Matrices, slope: Slope, walk: Walk) -> Walk:
    """Return where an integration begins, or that it does not, as the Jacobian has further elements there."""
    t, y = stop_gradient((walk.t, walk.y))
    direction = 1.0 + np.cos(np.arange(y.shape[0]) ** 2)
    found = jvp(lambda state: slope(t, state), (y,), (direction,))[1]
    elements = matrices.jacobian(slope, t, y)
    wanted, most = (matrices.product(x, direction, False) for x in (elements, np.abs(elements)))
    missed = np.any(np.abs(stop_gradient(found - wanted)) > MISSED_PART * (np.abs(found) + stop_gradient(most)))
    return walk._replace(failure=np.where(missed, MISSED, walk.failure))


def require_elements(walk: Walk) -> None:
    """Raise if it is known that an integration did not begin as the user's pattern lacks elements."""
    if is_concrete(walk.failure) and raw(walk.failure) == MISSED:
        given = "a Jacobian with elements where jac_sparsity, or lband and uband, say that there are none"
        needed = "all that may be other than zero are needed, as steps and derivatives have no others"
        raise UsageError(NAME, given, needed, "Leave it out, or give more of them")
