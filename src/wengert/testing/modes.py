"""Modes: each checks the first derivative of a problem and returns the problem whose derivative is the next order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.values.aval import aval_of
from wengert.testing.difference_check import Check
from wengert.testing.differences import Array, pair_product
from wengert.testing.problem import Leaves, Problem, smooth_outputs
from wengert.transforms.boundary import as_given
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import vjp


def check_reverse(problem: Problem, check: Check) -> Problem:
    """Check the vjp of a problem; return the vjp as a function of point and cotangents."""
    cts = [check.direction(leaf) for leaf in smooth_outputs(problem)]
    gradients = pull_back(problem.function, problem.point, cts)
    for i, gradient in enumerate(gradients):
        check.compare(problem, i, cts, product_with(gradient))
    count = len(problem.point)

    def derivative(leaves: Leaves) -> Leaves:
        return pull_back(problem.function, leaves[:count], leaves[count:])

    labels = [f"the cotangent of output {i} (order {check.order})" for i in range(len(cts))]
    return Problem(derivative, [*problem.point, *cts], [*problem.labels, *labels])


def product_with(gradient: Any) -> Callable[[Any], Any]:
    """Return the function that pairs a gradient with a direction."""
    return lambda direction: pair_product([gradient], [direction])


def pull_back(function: Callable[[Leaves], Leaves], point: Leaves, cts: Leaves) -> Leaves:
    """Return the vjp of a function of leaves."""
    _, pullback = vjp(lambda *leaves: function(list(leaves)), *point)
    return list(pullback(list(cts)))


def check_forward(problem: Problem, check: Check) -> Problem:
    """Check the jvp of a problem; return the jvp as a function of point and tangents."""
    cts = [check.direction(leaf) for leaf in smooth_outputs(problem)]
    zeros = [np.zeros(*aval_of(leaf)[:2]) for leaf in problem.point]
    for i in range(len(zeros)):

        def along(direction: Array, i: int = i) -> float:
            tangents: Leaves = [*zeros[:i], direction, *zeros[i + 1 :]]
            return pair_product(cts, push_forward(problem.function, problem.point, tangents))

        check.compare(problem, i, cts, along)
    count = len(problem.point)

    def derivative(leaves: Leaves) -> Leaves:
        return push_forward(problem.function, leaves[:count], leaves[count:])

    labels = [f"the tangent of {label} (order {check.order})" for label in problem.labels]
    tangents = [as_given(check.direction(leaf)[()], leaf) for leaf in problem.point]
    return Problem(derivative, [*problem.point, *tangents], [*problem.labels, *labels])


def push_forward(function: Callable[[Leaves], Leaves], point: Leaves, tangents: Leaves) -> Leaves:
    """Return the jvp of a function of leaves."""
    return list(jvp(lambda *leaves: function(list(leaves)), point, tangents)[1])


MODES: dict[str, Callable[[Problem, Check], Problem]] = {"rev": check_reverse, "fwd": check_forward}
