"""Jacobians of implicit methods by the elements of a pattern, and systems with matrices made of these.

The elements are a vector, computed in as many lanes as the columns of the pattern have colours. They are factorised as
a banded matrix, or front by front, with no more elements than the order of elimination adds.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import Any

import numpy as np

from wengert.core.values.dispatch import apply
from wengert.implicit.banded import band_factors, band_solution
from wengert.implicit.frontal import front_factors, front_solution
from wengert.implicit.fronts import Fronts
from wengert.scipy.integrate._methods.held_factors import solvers_by
from wengert.scipy.integrate._methods.jacobian_matrices import Matrices, Slope
from wengert.sparse.coloring.coloring_methods import color
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.plans.lanes import lane_elements
from wengert.support.machine import MACHINE

Array = np.ndarray[Any, Any]
NAME = "solve_ivp"
MOST_KEPT = 1 << 15
"""Elements of factors up to which reverse mode keeps those of all steps: of 3,600 states in the plane, gradients by
Rodas5P take 0.77 of the time where these are made again, of 200 states on a line 1.17."""
CYCLES_OF_ROW, CYCLES_OF_BANDS = 40.0, (1.0, 0.4)
"""About how many cycles a row of bands takes, and an element that is subtracted, with few and with many of them."""


class ElementMatrices(Matrices):
    """Hold the elements of a pattern, which has the diagonal, as a vector.

    Attributes:
        size: how many rows and columns there are.
        rows, columns: of each element.
        packed: how many bands above the diagonal Jacobians of the user have, which are packed; None if they are not.
    """

    def __init__(self, size: int, rows: Array, columns: Array, packed: int | None = None) -> None:
        self.size, self.rows, self.columns, self.packed = size, rows, columns, packed
        self.diagonal = (rows == columns).astype(float)
        self.by_line = [line_places(rows, size), line_places(columns, size)]
        self.stages: dict[int, ElementMatrices] = {}
        self.coloring: Any = None
        self.solve, self.solve_transposed = solvers_by(self.solution, self.outer, self.product)
        self.solve_many = self.solve

    @functools.cached_property
    def transpose(self) -> ElementMatrices:
        """How transposes are held, by the elements at the same places, row by row as `jacobian` gives them."""
        order = np.lexsort((self.rows, self.columns))
        return self.of_blocks(1, self.columns[order], self.rows[order])

    @property
    def are_kept(self) -> bool:
        """Whether reverse mode keeps the factors of all steps, rather than to make them again."""
        return self.factor_length <= MOST_KEPT

    @property
    @abstractmethod
    def factor_length(self) -> int:
        """How many elements the factors have."""

    @abstractmethod
    def solution(self, factors: Any, b: Any, transposed: bool) -> Any:
        """Return the solution of a system with a matrix or its transpose."""

    @abstractmethod
    def of_blocks(self, count: int, rows: Array, columns: Array) -> ElementMatrices:
        """Return how matrices of so many blocks in each row and column are held, all of the pattern of this one."""

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
        elements = mass[:, None, None] * np.eye(count) - weights * jacobians.T[:, None, :]
        return self.blocks(count), elements.reshape(-1)

    def blocks(self, count: int) -> ElementMatrices:
        """Return how matrices of so many blocks in each row and column are held, all of the pattern of this one."""
        if count not in self.stages:
            stages, shape = np.arange(count), (len(self.rows), count, count)
            rows = self.rows[:, None, None] + self.size * stages[:, None]
            columns = self.columns[:, None, None] + self.size * stages
            self.stages[count] = self.of_blocks(
                count, *[np.broadcast_to(x, shape).reshape(-1) for x in (rows, columns)]
            )
        return self.stages[count]

    def substitute(self, factors: Any, b: Any) -> Any:
        """Return the solution for a right-hand side."""
        return self.solution(factors, b, False)

    def outer(self, rows: Any, columns: Any) -> Any:
        """Return the elements of the matrix of products of two vectors."""
        return rows[self.rows] * columns[self.columns]

    def product(self, matrix: Any, x: Any, transposed: bool) -> Any:
        """Return the product of a matrix or its transpose with a vector."""
        terms = matrix * x[self.rows if transposed else self.columns]
        return np.sum(with_zero(terms)[self.by_line[transposed]], axis=1)


class BandedMatrices(ElementMatrices):
    """Bring elements into bands to factorise them.

    Attributes:
        order: which row and column is the first, the second and so on in the banded matrix; None as they are.
        below, above: how many bands that has on either side of the diagonal.
        places: which element stands where in it, column by column; one more than there are for none.
    """

    def __init__(self, size: int, rows: Array, columns: Array, order: Array | None, packed: int | None = None) -> None:
        super().__init__(size, rows, columns, packed)
        self.order, self.back = order, None if order is None else np.argsort(order)
        self.below, self.above = bandwidth(rows, columns, self.back)
        self.places = np.full((size, self.below + self.above + 1), len(rows), np.int32)
        first, second = (x if self.back is None else self.back[x] for x in (rows, columns))
        self.places[second, self.above + first - second] = np.arange(len(rows))

    @property
    def width(self) -> int:
        """How many elements the factors have in a row."""
        return 2 * self.below + self.above + 1

    @property
    def factor_length(self) -> int:
        """How many elements the factors have."""
        return self.size * self.width

    @property
    def cost(self) -> float:
        """About how many cycles a factorisation takes."""
        cycles = CYCLES_OF_BANDS[self.below >= MACHINE.lapack_bands]
        return self.size * (CYCLES_OF_ROW + cycles * self.below * (self.below + self.above))

    def of_blocks(self, count: int, rows: Array, columns: Array) -> BandedMatrices:
        """Return how matrices of blocks are held: the same row of each beside each other."""
        order = np.arange(self.size) if self.order is None else self.order
        order = (order[:, None] + self.size * np.arange(count)).reshape(-1)
        return BandedMatrices(self.size * count, rows, columns, order)

    def factors(self, matrix: Any) -> Any:
        """Return the factors of a matrix."""
        return apply(band_factors, with_zero(matrix)[self.places], below=self.below, above=self.above)

    def solution(self, factors: Any, b: Any, transposed: bool) -> Any:
        """Return the solution of a system with a matrix or its transpose."""
        packed, pivots = factors
        right = b if self.order is None else b[self.order]
        options = {"below": self.below, "above": self.above, "transposed": transposed}
        found = apply(band_solution, packed, right[:, None], pivots, **options)[:, 0]
        return found if self.back is None else found[self.back]


class FrontMatrices(ElementMatrices):
    """Factorise elements front by front, in an order that few are added in.

    Complex matrices are real ones of two blocks in each row, of the real and of the imaginary part.

    Attributes:
        fronts: the order, and what follows from the pattern.
    """

    def __init__(self, size: int, rows: Array, columns: Array) -> None:
        super().__init__(size, rows, columns)
        self.fronts = Fronts(size, rows, columns)

    @property
    def factor_length(self) -> int:
        """How many elements the factors have."""
        return self.fronts.length

    def of_blocks(self, count: int, rows: Array, columns: Array) -> FrontMatrices:
        """Return how matrices of blocks are held."""
        return FrontMatrices(self.size * count, rows, columns)

    def factors(self, matrix: Any) -> Any:
        """Return the factors of a matrix."""
        if matrix.dtype.kind == "c":
            parts = np.stack([matrix.real, -matrix.imag, matrix.imag, matrix.real], axis=1)
            return self.blocks(2).factors(parts.reshape(-1))
        return apply(front_factors, matrix[:, None], self.fronts.table, fronts=self.fronts)

    def solution(self, factors: Any, b: Any, transposed: bool) -> Any:
        """Return the solution of a system with a matrix or its transpose."""
        if b.dtype.kind == "c":
            found = self.blocks(2).solution(factors, np.concatenate([b.real, b.imag]), transposed)
            return found[: self.size] + 1j * found[self.size :]
        options = {"fronts": self.fronts, "transposed": transposed}
        return apply(front_solution, factors, b[:, None], self.fronts.table, **options)[:, 0]


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
