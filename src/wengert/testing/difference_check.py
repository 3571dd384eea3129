"""The comparison of a derivative along random directions with what differences give, of a function of leaves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import accessors_of, flatten, unflatten
from wengert.core.values.aval import aval_of, is_differentiable
from wengert.core.values.tensor import Tensor, raw
from wengert.errors import DtypeError, UsageError, describe
from wengert.transforms.boundary import as_given

Leaves = list[Any]


@dataclass(frozen=True)
class LeafProblem:
    """Hold a function of leaves that returns leaves, the point to differentiate it at, and names of its inputs."""

    function: Callable[[Leaves], Leaves]
    point: Leaves
    labels: list[str]

    def outputs(self) -> Leaves:
        """Return the function's outputs at the point."""
        return self.function(self.point)


def arguments_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a function, given one by one, or all as one tuple.

    >>> arguments_of((1.0, 2.0)) == arguments_of(((1.0, 2.0),))
    True
    """
    return args[0] if len(args) == 1 and type(args[0]) is tuple else args


def problem_of(f: Callable[..., Any], arguments: tuple[Any, ...]) -> LeafProblem:
    """Return a function of containers as a function of leaves, which returns its float and complex results only."""
    problem = leaf_problem(f, arguments, range(len(flatten(arguments)[0])))
    for label, leaf in zip(problem.labels, problem.point, strict=True):
        check_leaf(label, leaf)
    if not problem.point:
        raise usage_error("no argument that holds an array", "something to differentiate is needed", "Pass one")
    return problem


def leaf_problem(f: Callable[..., Any], arguments: tuple[Any, ...], chosen: Sequence[int]) -> LeafProblem:
    """Return a function of containers as one of the leaves in some places, with its float and complex results only."""
    leaves, structure = flatten(arguments)
    labels = [f"argument {label}" for label in names_of(structure)]

    def function(values: Leaves) -> Leaves:
        everything = list(leaves)
        for i, value in zip(chosen, values, strict=True):
            everything[i] = value
        found, _ = flatten(f(*unflatten(structure, everything)))
        return [leaf for leaf in found if is_differentiable(aval_of(leaf).dtype)]

    return LeafProblem(function, [leaves[i] for i in chosen], [labels[i] for i in chosen])


def names_of(structure: Any) -> Iterator[str]:
    """Return how each leaf of a tuple of arguments is reached: its position, then keys and indices."""
    for accessor in accessors_of(structure):
        yield str(accessor[0].entry) + accessor[1:].codify("")


def check_leaf(label: str, leaf: Any) -> None:
    """Raise a DtypeError unless a leaf can be differentiated."""
    array = np.asarray(leaf) if not isinstance(leaf, Tensor) else leaf
    if not is_differentiable(array.dtype):
        given = f"dtype {array.dtype}" if array.dtype.kind in "?biu" else f"type {type(leaf).__name__}"
        given = f"{label} has {given}"
        needed = "floats, arrays or Tensors of a float or complex dtype are needed"
        raise DtypeError("check_grads", given, needed, "Fix other arguments in a lambda around the function")


def smooth_outputs(problem: LeafProblem) -> Leaves:
    """Return the outputs of a problem, of which there must be one."""
    outputs = problem.outputs()
    if not outputs:
        raise usage_error(
            "a function that returned no float or complex array",
            "a result that has derivatives is needed",
            "Return the float results of the function",
        )
    return outputs


def default_tolerance(problem: LeafProblem) -> float:
    """Return ten times the root of the precision of the least precise dtype of inputs and outputs."""
    dtypes = [aval_of(leaf).dtype for leaf in (*problem.point, *problem.outputs())]
    return 10 * math.sqrt(max(float(np.finfo(dtype).eps) for dtype in dtypes))


def usage_error(given: str, needed: str, action: str) -> UsageError:
    """Return the error about an argument of `check_grads`."""
    return UsageError("check_grads", given, needed, action)


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
