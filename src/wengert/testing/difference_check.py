"""The comparison of a derivative along random directions with what differences give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import raw
from wengert.errors import describe
from wengert.testing.differences import Array, complex_step, difference_quotient, extrapolate
from wengert.testing.problem import Leaves, Problem

LARGEST_SEARCH = 64


@dataclass(frozen=True)
class Check:
    """Hold what the checks of one order and mode have in common."""

    name: str
    mode: str
    order: int
    rtol: float
    step: float
    generator: np.random.Generator

    def direction(self, leaf: Any) -> Array:
        """Return a random direction or cotangent for a leaf, with no element near zero."""
        shape, dtype, _ = aval_of(leaf)
        found = self.generator.uniform(0.5, 1.0, shape) * self.generator.choice([-1.0, 1.0], shape)
        if dtype.kind == "c":
            found = found + 1j * self.generator.uniform(0.5, 1.0, shape) * self.generator.choice([-1.0, 1.0], shape)
        return np.asarray(found).astype(dtype)

    def compare(self, problem: Problem, i: int, cts: Leaves, along: Callable[[Array], float]) -> None:
        """Raise an AssertionError unless a derivative in input `i` is that of the function along a random direction.

        `cts` are the weights of the outputs, `along` the derivative under test: that of the weighted outputs along a
        direction of that input.
        """
        leaf = problem.point[i]
        if aval_of(leaf).shape and 0 in aval_of(leaf).shape:
            return
        size = np.abs(raw(leaf))
        direction = self.direction(leaf) * np.where(np.isfinite(size), np.maximum(1.0, size), 1.0)
        found = along(direction)
        expected, error = self.expected(problem, i, direction, cts)
        if not abs(found - expected) <= self.rtol * max(1.0, abs(found), abs(expected)):
            worst = self.worst_element(problem, i, cts, along)
            raise AssertionError(self.report(problem.labels[i], found, expected, error, worst))

    def expected(self, problem: Problem, i: int, direction: Array, cts: Leaves) -> tuple[float, float]:
        """Return the derivative that differences give, or the complex step where they are too rough; and its error."""
        target = self.rtol / 100
        with np.errstate(all="ignore"):
            quotient = difference_quotient(problem, i, direction, cts)
            found, error = extrapolate(quotient, self.step, target)
            if error <= target * max(1.0, abs(found)):
                return found, error
            better = complex_step(problem, i, direction, cts)
        if better is not None and abs(better - found) <= 10 * error:
            return better, 0.0
        return found, error

    def worst_element(
        self, problem: Problem, i: int, cts: Leaves, along: Callable[[Array], float]
    ) -> tuple[tuple[int, ...], float, float] | None:
        """Return the element of an input with the largest error, found and expected; None if there are many."""
        shape, dtype, _ = aval_of(problem.point[i])
        if not shape or math.prod(shape) > LARGEST_SEARCH:
            return None
        found = []
        for index in np.ndindex(shape):
            unit = np.zeros(shape, dtype)
            unit[index] = 1.0
            found.append((index, along(unit), self.expected(problem, i, unit, cts)[0]))
        return max(found, key=lambda entry: distance(entry[1], entry[2]))

    def report(
        self,
        label: str,
        found: float,
        expected: float,
        error: float,
        worst: tuple[tuple[int, ...], float, float] | None,
    ) -> str:
        """Return the text about a derivative that differs."""
        given = f"a derivative of order {self.order} in {label} (mode {self.mode!r}) is {found:.12g}"
        needed = f"{expected:.12g} is needed by differences good to {error:.1g}"
        if worst is not None:
            index, part, whole = worst
            given += f" along a random direction ({part:.12g} along element [{', '.join(map(str, index))}])"
            needed += f" ({whole:.12g} along that element)"
        return describe(self.name, given, needed, "Correct the rule of an operation it uses, or avoid kinks and jumps")


def distance(found: float, expected: float) -> float:
    """Return the distance of two numbers; infinite if either is NaN."""
    error = abs(found - expected)
    return math.inf if math.isnan(error) else error
