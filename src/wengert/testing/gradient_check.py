"""`check_grads`: compare derivatives of all orders, in both modes, with differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.values.aval import aval_of
from wengert.support.hints import hint_parameters
from wengert.testing.difference_check import (
    STEP,
    Array,
    Check,
    LeafProblem,
    Leaves,
    arguments_of,
    default_tolerance,
    pair_product,
    problem_of,
    smooth_outputs,
    usage_error,
)
from wengert.transforms.boundary import as_given, name_of
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import vjp


def check_reverse(problem: LeafProblem, check: Check) -> LeafProblem:
    """Check the vjp of a problem; return the vjp as a function of point and cotangents."""
    cts = [check.direction(leaf) for leaf in smooth_outputs(problem)]
    gradients = pull_back(problem.function, problem.point, cts)
    for i, gradient in enumerate(gradients):
        check.compare(problem, i, cts, product_with(gradient))
    count = len(problem.point)

    def derivative(leaves: Leaves) -> Leaves:
        return pull_back(problem.function, leaves[:count], leaves[count:])

    labels = [f"the cotangent of output {i} (order {check.order})" for i in range(len(cts))]
    return LeafProblem(derivative, [*problem.point, *cts], [*problem.labels, *labels])


def product_with(gradient: Any) -> Callable[[Any], Any]:
    """Return the function that pairs a gradient with a direction."""
    return lambda direction: pair_product([gradient], [direction])


def pull_back(function: Callable[[Leaves], Leaves], point: Leaves, cts: Leaves) -> Leaves:
    """Return the vjp of a function of leaves."""
    _, pullback = vjp(lambda *leaves: function(list(leaves)), *point)
    return list(pullback(list(cts)))


def check_forward(problem: LeafProblem, check: Check) -> LeafProblem:
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
    return LeafProblem(derivative, [*problem.point, *tangents], [*problem.labels, *labels])


def push_forward(function: Callable[[Leaves], Leaves], point: Leaves, tangents: Leaves) -> Leaves:
    """Return the jvp of a function of leaves."""
    return list(jvp(lambda *leaves: function(list(leaves)), point, tangents)[1])


MODES: dict[str, Callable[[LeafProblem, Check], LeafProblem]] = {"rev": check_reverse, "fwd": check_forward}


@hint_parameters("check_grads")
def check_grads(
    f: Callable[..., Any],
    *args: Any,
    order: int = 2,
    modes: Sequence[str] = ("rev",),
    rtol: float | None = None,
    step: float = STEP,
    seed: int = 0,
) -> None:
    """Check the derivatives of a function against differences, up to an order.

    Each argument moves along a random direction, and the change of the outputs, weighted with random cotangents, is
    differenced: central differences, halving the step and extrapolating (Richardson) until they have converged.
    Where they do not, and the function is analytic and takes complex arguments, the complex step decides. Higher
    orders check the derivative of the derivative in the same way, with respect to the cotangents too.

    Sources: C. J. F. Ridders, Accurate computation of F'(x) and F'(x) F''(x), 1982 (the extrapolation); W. Squire and
    G. Trapp, Using complex variables to estimate derivatives of real functions, 1998 (the complex step).

    Args:
        f: a function of `args`, returning arrays in any containers; integer results are not looked at.
        *args: its arguments: floats, arrays or Tensors of float or complex dtype, or containers of them; or all of them
            as one tuple, so a tuple that is the only argument is written `((a, b),)`.
        order: the highest order of derivatives to check, 1 or more.
        modes: the modes of differentiation to check: "rev" is reverse mode, "fwd" forward mode; with both, higher
            orders are checked in all combinations, "fwd over rev" among them.
        rtol: tolerance relative to max(1, derivative along the direction); by default ten times the root of the
            precision of the least precise dtype, which is 1.5e-7 for float64.
        step: the first step of the differences, relative to max(1, magnitude of the argument); smaller near kinks.
        seed: of the random directions.

    Raises:
        AssertionError: a derivative differs; the text names argument, order and both numbers.
        UsageError: order, modes or tolerance cannot be used, or `f` returned nothing that has derivatives.
        DtypeError: an argument has a dtype without derivatives.

    >>> import numpy as np
    >>> check_grads(lambda x, y: np.sin(x["angle"]) * y, {"angle": np.array([0.5, 2.0])}, 3.0, order=3)
    >>> check_grads(lambda x, y: x * y, (2.0, 3.0))
    """
    if not callable(f):
        raise usage_error(f"f={f!r}", "a function is needed", "Pass the function first, then its arguments")
    name = name_of("check_grads", f)
    first = problem_of(f, arguments_of(args))
    check_options(order, modes, rtol, step)
    seed = as_whole("check_grads", "seed", seed, 0)
    for mode in modes:
        generator = np.random.default_rng(seed)
        pending: list[tuple[LeafProblem, tuple[str, ...]]] = [(first, (mode,))]
        while pending:
            problem, chain = pending.pop()
            tolerance = default_tolerance(problem) if rtol is None else rtol
            check = Check(name, title_of(chain), len(chain), tolerance, step, generator)
            derivative = MODES[chain[-1]](problem, check)
            if len(chain) < order:
                pending += [(derivative, (*chain, outer)) for outer in modes]


def title_of(chain: tuple[str, ...]) -> str:
    """Return the name of modes that were applied one after the other."""
    return chain[0] if len(set(chain)) == 1 else " over ".join(reversed(chain))


def check_options(order: Any, modes: Any, rtol: Any, step: Any) -> None:
    """Raise a UsageError unless the options of `check_grads` can be used."""
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 1:
        raise usage_error(f"order={order!r}", "an integer of 1 or more is needed", "Pass order=1 or order=2")
    known = ", ".join(repr(mode) for mode in MODES)
    if isinstance(modes, str) or not isinstance(modes, Sequence) or not modes:
        raise usage_error(f"modes={modes!r}", f"a tuple of modes is needed, of {known}", "Pass modes=('rev',)")
    for mode in modes:
        if not isinstance(mode, str) or mode not in MODES:
            raise usage_error(f"mode {mode!r:.40}", f"one of {known} is needed", "Leave it out of modes")
    for option, value in (("rtol", rtol), ("step", step)):
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
        if not number and not (option == "rtol" and value is None):
            raise usage_error(f"{option}={value!r}", "a positive number is needed", f"Leave {option} out")
