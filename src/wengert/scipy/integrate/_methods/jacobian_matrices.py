"""Jacobians of implicit methods, and systems with matrices made of these: what methods ask for, and full matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.values.dispatch import apply, as_tensor
from wengert.primitives.linear_algebra import lu
from wengert.scipy.integrate._methods.held_factors import Solver, solvers_by
from wengert.scipy.integrate._methods.tableaux import jacobian_by_state
from wengert.sparse.patterns.pattern import Pattern
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

Array = np.ndarray[Any, Any]
Slope = Callable[[Any, Any], Any]


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
        solve_transposed: the same with the transpose.
        solve_many: what `solve` is of what `prepare` gives.
    """

    solve: Solver
    solve_transposed: Solver
    solve_many: Solver

    @property
    def are_kept(self) -> bool:
        """Whether reverse mode keeps the factors of all steps, rather than to make them again."""
        return True

    @property
    @abstractmethod
    def transpose(self) -> Matrices:
        """How transposes are held, which are Jacobians of equations for cotangents."""

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
            return substitute(factors, b, int(transposed))

        self.solve, self.solve_transposed = solvers_by(solve, outer, self.product)
        self.solve_many, _ = solvers_by(self.product, outer, self.product)

    @property
    def transpose(self) -> Matrices:
        """How transposes are held, which are full, too."""
        return self

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
        return apply(lu.lu_factor, as_tensor(matrix), check_finite=False)

    def substitute(self, factors: Any, b: Any) -> Any:
        """Return the solution for a right-hand side."""
        return substitute(factors, b)

    def prepare(self, matrix: Any) -> Any:
        """Return the inverse, held constant."""
        return stop_gradient(np.linalg.inv(stop_gradient(matrix)))


def substitute(factors: Any, b: Any, trans: int = 0) -> Any:
    """Return the solution for right-hand sides, a vector or columns, of a matrix, or 1 its transpose, by its factors.

    `wengert.scipy.linalg` has this, too, but enters what it means for SciPy's functions, which take 200 ms to import.
    """
    packed, pivots, right = map(as_tensor, (*factors, b))
    columns = right[..., None] if right.ndim == 1 else right
    found = apply(lu.lu_solve, packed, columns, pivots, trans=trans, check_finite=False)
    return np.squeeze(found, -1) if right.ndim == 1 else found


def outer(rows: Any, columns: Any) -> Any:
    """Return the matrix of products of two vectors."""
    return rows[:, None] * columns[None, :]


FULL = FullMatrices()
