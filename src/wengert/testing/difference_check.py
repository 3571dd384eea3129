"""The comparison of a derivative along random directions with what differences give."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import raw
from wengert.errors import describe
from wengert.testing.problem import LeafProblem, Leaves
from wengert.transforms.boundary import as_given

Array = np.ndarray[Any, Any]

STEP = 0.02
HALVINGS = 14
COLUMNS = 6
IMAGINARY_STEP = 1e-20


def pair_product(cts: Leaves, values: Leaves) -> float:
    """Return the sum of products of cotangents and values, its real part: no factor is conjugated."""
    return sum(float(np.sum(widen(ct) * widen(value)).real) for ct, value in zip(cts, values, strict=True))


def widen(value: Any) -> Array:
    """Return an array in double precision at least."""
    array = np.asarray(raw(value))
    return array.astype(np.result_type(array.dtype, np.float64))


def difference_quotient(problem: LeafProblem, i: int, direction: Array, cts: Leaves) -> Callable[[float], float]:
    """Return the function from a step to the central difference quotient of the weighted outputs."""
    wide = [as_given(widen(leaf)[()], leaf) for leaf in problem.point]
    start, leaf = widen(wide[i]), problem.point[i]

    def outputs(step: float) -> Leaves:
        wide[i] = as_given((start + step * direction)[()], leaf)
        return problem.function(list(wide))

    def quotient(step: float) -> float:
        pairs = zip(outputs(step), outputs(-step), strict=True)
        return pair_product(cts, [widen(right) - widen(left) for right, left in pairs]) / (2 * step)

    return quotient


def extrapolate(quotient: Callable[[float], float], step: float, target: float) -> tuple[float, float]:
    """Return the limit of a difference quotient whose error is even in the step, and an estimate of its error.

    Steps that leave the domain or cross a kink spoil only the rows of the tableau that they are part of.
    """
    best, error = math.nan, math.inf
    above: list[float] = []
    for _ in range(HALVINGS):
        row = [quotient(step)]
        for column, coarse in enumerate(above[:COLUMNS]):
            better = row[column] + (row[column] - coarse) / (4.0 ** (column + 1) - 1)
            uncertainty = max(abs(better - row[column]), abs(better - coarse))
            row.append(better)
            if uncertainty < error:
                best, error = better, uncertainty
        if error <= target * max(1.0, abs(best)):
            break
        above = row
        step /= 2
    return best, error


def complex_step(problem: LeafProblem, i: int, direction: Array, cts: Leaves) -> float | None:
    """Return the derivative by an imaginary step, free of cancellation; None where complex arguments are refused."""
    leaves = [raw(leaf) for leaf in problem.point]
    if any(aval_of(leaf).dtype.kind == "c" for leaf in (*leaves, *cts)):
        return None
    point = [as_given(np.asarray(leaf).astype(np.complex128)[()], problem.point[j]) for j, leaf in enumerate(leaves)]
    point[i] = as_given((widen(leaves[i]) + 1j * IMAGINARY_STEP * direction)[()], problem.point[i])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            outputs = problem.function(point)
    except (TypeError, ValueError, RuntimeError, AttributeError, np.exceptions.ComplexWarning):
        return None
    return pair_product(cts, [widen(out).imag for out in outputs]) / IMAGINARY_STEP


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

    def compare(self, problem: LeafProblem, i: int, cts: Leaves, along: Callable[[Array], float]) -> None:
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
        expected, error = self.expect(problem, i, direction, cts)
        if not abs(found - expected) <= self.rtol * max(1.0, abs(found), abs(expected)):
            worst = self.worst_element(problem, i, cts, along)
            raise AssertionError(self.report(problem.labels[i], found, expected, error, worst))

    def expect(self, problem: LeafProblem, i: int, direction: Array, cts: Leaves) -> tuple[float, float]:
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
        self, problem: LeafProblem, i: int, cts: Leaves, along: Callable[[Array], float]
    ) -> tuple[tuple[int, ...], float, float] | None:
        """Return the element of an input with the largest error, found and expected; None if there are many."""
        shape, dtype, _ = aval_of(problem.point[i])
        if not shape or math.prod(shape) > LARGEST_SEARCH:
            return None
        found = []
        for index in np.ndindex(shape):
            unit = np.zeros(shape, dtype)
            unit[index] = 1.0
            found.append((index, along(unit), self.expect(problem, i, unit, cts)[0]))
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
