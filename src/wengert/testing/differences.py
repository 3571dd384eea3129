"""The numbers to compare with: difference quotients, extrapolated to a step of zero, and the complex step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import raw
from wengert.testing.problem import Leaves, Problem
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


def difference_quotient(problem: Problem, i: int, direction: Array, cts: Leaves) -> Callable[[float], float]:
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


def complex_step(problem: Problem, i: int, direction: Array, cts: Leaves) -> float | None:
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
