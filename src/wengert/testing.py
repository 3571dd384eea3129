"""Tools for testing derivatives.

`check_grads` compares derivatives with differences of the function itself, `check_rule` the rules that a user gave
with each other too.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._tree import flatten, unflatten
from wengert.core.aval import aval_of, is_differentiable
from wengert.core.tensor import Tensor, raw
from wengert.errors import DtypeError, UsageError, describe
from wengert.traces.function import Function
from wengert.transforms.boundary import as_given, name_of
from wengert.transforms.custom_rule import CustomRule
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import vjp

__all__ = ["check_grads", "check_rule"]

Array = np.ndarray[Any, Any]
Leaves = list[Any]

STEP = 0.02
HALVINGS = 14
COLUMNS = 6
IMAGINARY_STEP = 1e-20
LARGEST_SEARCH = 64


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("rev",),
    *,
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
        args: a tuple of arguments: floats, arrays or Tensors of float or complex dtype, or containers of them.
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
    >>> check_grads(lambda x, y: np.sin(x["angle"]) * y, ({"angle": np.array([0.5, 2.0])}, 3.0), order=3)
    """
    if not callable(f):
        raise usage_error(f"f={f!r}", "a function is needed", "Pass the function first, then its arguments")
    name = name_of("check_grads", f)
    first = problem_of(f, args)
    check_options(order, modes, rtol, step)
    for mode in modes:
        generator = np.random.default_rng(seed)
        pending: list[tuple[Problem, tuple[str, ...]]] = [(first, (mode,))]
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
        if mode not in MODES:
            raise usage_error(f"mode {mode!r}", f"one of {known} is needed", "Leave it out of modes")
    for option, value in (("rtol", rtol), ("step", step)):
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
        if not number and (option, value) != ("rtol", None):
            raise usage_error(f"{option}={value!r}", "a positive number is needed", f"Leave {option} out")


def usage_error(given: str, needed: str, action: str) -> UsageError:
    """Return the error about an argument of `check_grads`."""
    return UsageError(describe("check_grads", given, needed, action))


@dataclass(frozen=True)
class Problem:
    """Hold a function of leaves that returns leaves, the point to differentiate it at, and names of its inputs."""

    function: Callable[[Leaves], Leaves]
    point: Leaves
    labels: list[str]

    def outputs(self) -> Leaves:
        """Return the function's outputs at the point."""
        return self.function(self.point)


def problem_of(f: Callable[..., Any], args: Any) -> Problem:
    """Return a function of containers as a function of leaves, which returns its float and complex results only."""
    if not isinstance(args, tuple | list):
        raise usage_error(
            f"args of type {type(args).__name__}", "a tuple of arguments is needed", "Write (x,) for a single one"
        )
    arguments = tuple(args)
    leaves, structure = flatten(arguments)
    labels = [f"argument {label}" for label in names_of(structure)]
    for label, leaf in zip(labels, leaves, strict=True):
        check_leaf(label, leaf)
    if not leaves:
        raise usage_error("args without any array", "something to differentiate is needed", "Pass an argument")

    def function(values: Leaves) -> Leaves:
        found, _ = flatten(f(*unflatten(structure, values)))
        return [leaf for leaf in found if is_differentiable(aval_of(leaf).dtype)]

    return Problem(function, leaves, labels)


def names_of(structure: Any) -> Iterator[str]:
    """Return how each leaf of a tuple of arguments is reached: its position, then keys and indices."""
    for accessor in structure.accessors():
        yield str(accessor[0].entry) + accessor[1:].codify("")


def check_leaf(label: str, leaf: Any) -> None:
    """Raise a DtypeError unless a leaf can be differentiated."""
    dtype = aval_of(leaf).dtype
    if not is_differentiable(dtype):
        given = f"dtype {dtype}" if dtype.kind in "?biu" else f"type {type(leaf).__name__}"
        raise DtypeError(
            describe(
                "check_grads",
                f"{label} has {given}",
                "floats, arrays or Tensors of a float or complex dtype are needed",
                "Fix other arguments in a lambda around the function",
            )
        )


def default_tolerance(problem: Problem) -> float:
    """Return ten times the root of the precision of the least precise dtype of inputs and outputs."""
    dtypes = [aval_of(leaf).dtype for leaf in (*problem.point, *problem.outputs())]
    return 10 * math.sqrt(max(float(np.finfo(dtype).eps) for dtype in dtypes))


# Modes: each checks the first derivative of a problem and returns the problem whose first derivative is the next order


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
        shape, dtype = aval_of(leaf)
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
            found, error = extrapolated(quotient, self.step, target)
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
        shape, dtype = aval_of(problem.point[i])
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


def product_with(gradient: Any) -> Callable[[Any], Any]:
    """Return the function that pairs a gradient with a direction."""
    return lambda direction: paired([gradient], [direction])


def reverse(problem: Problem, check: Check) -> Problem:
    """Check the vjp of a problem; return the vjp as a function of point and cotangents."""
    cts = [check.direction(leaf) for leaf in smooth_outputs(problem)]
    gradients = pulled_back(problem.function, problem.point, cts)
    for i, gradient in enumerate(gradients):
        check.compare(problem, i, cts, product_with(gradient))
    count = len(problem.point)

    def derivative(leaves: Leaves) -> Leaves:
        return pulled_back(problem.function, leaves[:count], leaves[count:])

    labels = [f"the cotangent of output {i} (order {check.order})" for i in range(len(cts))]
    return Problem(derivative, [*problem.point, *cts], [*problem.labels, *labels])


def pulled_back(function: Callable[[Leaves], Leaves], point: Leaves, cts: Leaves) -> Leaves:
    """Return the vjp of a function of leaves."""
    _, pullback = vjp(lambda *leaves: function(list(leaves)), *point)
    return list(pullback(list(cts)))


def smooth_outputs(problem: Problem) -> Leaves:
    """Return the outputs of a problem, of which there must be one."""
    outputs = problem.outputs()
    if not outputs:
        raise usage_error(
            "a function that returned no float or complex array",
            "a result that has derivatives is needed",
            "Return the float results of the function",
        )
    return outputs


def forward(problem: Problem, check: Check) -> Problem:
    """Check the jvp of a problem; return the jvp as a function of point and tangents."""
    cts = [check.direction(leaf) for leaf in smooth_outputs(problem)]
    zeros = [np.zeros(*aval_of(leaf)) for leaf in problem.point]
    for i in range(len(zeros)):

        def along(direction: Array, i: int = i) -> float:
            tangents: Leaves = [*zeros[:i], direction, *zeros[i + 1 :]]
            return paired(cts, pushed_forward(problem.function, problem.point, tangents))

        check.compare(problem, i, cts, along)
    count = len(problem.point)

    def derivative(leaves: Leaves) -> Leaves:
        return pushed_forward(problem.function, leaves[:count], leaves[count:])

    labels = [f"the tangent of {label} (order {check.order})" for label in problem.labels]
    tangents = [as_given(check.direction(leaf)[()], leaf) for leaf in problem.point]
    return Problem(derivative, [*problem.point, *tangents], [*problem.labels, *labels])


def pushed_forward(function: Callable[[Leaves], Leaves], point: Leaves, tangents: Leaves) -> Leaves:
    """Return the jvp of a function of leaves."""
    return list(jvp(lambda *leaves: function(list(leaves)), point, tangents)[1])


MODES: dict[str, Callable[[Problem, Check], Problem]] = {"rev": reverse, "fwd": forward}


# Rules that users give


def check_rule(fun: Any, *args: Any, rtol: float | None = None, seed: int = 0) -> None:
    """Check the derivative rules given to a `custom_rule` or `autograd.Function` at a point.

    Each of vjp and jvp that was given must agree with differences of the function, be linear, and, if there are two,
    give the same number for any direction and cotangent.

    Args:
        fun: what `custom_rule` returned, or a subclass of `Function`.
        *args: its arguments; those of float or complex dtype are differentiated.
        rtol: tolerance of the comparison with differences, as in `check_grads`.
        seed: of the random directions.

    Raises:
        AssertionError: a rule is wrong; the text names it.
        UsageError: `fun` has no rules of its own, or nothing among `args` can be differentiated.

    >>> import wengert as wg, numpy as np
    >>> cube = wg.custom_rule(lambda x: x**3)
    >>> cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))
    >>> _ = cube.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))
    >>> check_rule(cube, np.array([1.0, 2.0]))
    """
    given = rules_of(fun)
    problem = smooth_part(given["function"], args)
    tolerance = default_tolerance(problem) if rtol is None else rtol
    check = Check(name_of("check_rule", fun), "", 1, tolerance, STEP, np.random.default_rng(seed))
    cts = [check.direction(leaf) for leaf in smooth_outputs(problem)]
    directions = [check.direction(leaf) for leaf in problem.point]
    found: dict[str, list[float]] = {}
    if "vjp" in given:
        pull = RuleMap("vjp", check.name, functools.partial(pulled_back, smooth_part(given["vjp"], args).function))
        found["vjp"] = [
            paired([g], [v]) for g, v in zip(pull.linear(problem.point, cts, check), directions, strict=True)
        ]
    if "jvp" in given:
        push = RuleMap("jvp", check.name, functools.partial(pushed_forward, smooth_part(given["jvp"], args).function))
        found["jvp"] = [
            paired(cts, push.linear(problem.point, alone(directions, i), check)) for i in range(len(directions))
        ]
    compare_rules(problem, check, directions, cts, found)


def rules_of(fun: Any) -> dict[str, Callable[..., Any]]:
    """Return a function, and for each rule given to it the function that has this rule alone."""
    if isinstance(fun, CustomRule):
        found: dict[str, Callable[..., Any]] = {}
        if fun.forward is not None and fun.backward is not None:
            found["vjp"] = one = CustomRule(fun.fun)
            one.defvjp(fun.forward, fun.backward)
        if fun.pushforward is not None:
            found["jvp"] = one = CustomRule(fun.fun)
            one.defjvp(fun.pushforward)
        if found:
            return {"function": fun.fun, **found}
    elif isinstance(fun, type) and issubclass(fun, Function):
        known = {"vjp": fun.backward is not Function.backward, "jvp": hasattr(fun, "jvp")}
        if any(known.values()):
            return {"function": fun.apply, **{rule: fun.apply for rule, flag in known.items() if flag}}
    raise UsageError(
        describe(
            "check_rule",
            f"{fun!r}, which has no derivative rule of its own",
            "a custom_rule with a vjp or jvp, or a Function, is needed",
            "Use check_grads for other functions",
        )
    )


def smooth_part(function: Callable[..., Any], args: tuple[Any, ...]) -> Problem:
    """Return a function as one of those leaves of its arguments that have derivatives, with results that have."""
    leaves, structure = flatten(args)
    labels = list(names_of(structure))
    chosen = [i for i, leaf in enumerate(leaves) if is_smooth(leaf)]
    if not chosen:
        raise UsageError(
            describe("check_rule", "no float or complex argument", "something to differentiate is needed", "Pass one")
        )

    def narrowed(values: Leaves) -> Leaves:
        everything = list(leaves)
        for i, value in zip(chosen, values, strict=True):
            everything[i] = value
        found, _ = flatten(function(*unflatten(structure, everything)))
        return [leaf for leaf in found if is_differentiable(aval_of(leaf).dtype)]

    return Problem(narrowed, [leaves[i] for i in chosen], [f"argument {labels[i]}" for i in chosen])


def is_smooth(leaf: Any) -> bool:
    """Tell whether a leaf is an array or number that has derivatives."""
    return isinstance(leaf, Tensor | np.ndarray | np.generic | float | complex) and is_differentiable(
        aval_of(leaf).dtype
    )


def alone(directions: Leaves, i: int) -> Leaves:
    """Return one of the directions, with zeros for the others."""
    return [v if j == i else np.zeros_like(v) for j, v in enumerate(directions)]


@dataclass(frozen=True)
class RuleMap:
    """Hold what a rule computes: a map of (point, vectors) that must be linear in the vectors."""

    rule: str
    name: str
    apply: Callable[[Leaves, Leaves], Leaves]

    def linear(self, point: Leaves, vectors: Leaves, check: Check) -> Leaves:
        """Return the map of some vectors; raise an AssertionError if it is not linear."""
        others = [check.direction(vector) * (np.abs(vector) > 0) for vector in vectors]
        one, other = self.apply(point, vectors), self.apply(point, others)
        both = self.apply(point, [2 * x - 3 * y for x, y in zip(vectors, others, strict=True)])
        for x, y, z in zip(one, other, both, strict=True):
            x, y, z = widened(x), widened(y), widened(z)
            size = np.max(np.abs(x) + np.abs(y), initial=0.0)
            if not np.allclose(z, 2 * x - 3 * y, rtol=0, atol=rounding(point, vectors) * size, equal_nan=True):
                raise AssertionError(
                    describe(
                        self.name,
                        f"the {self.rule} of 2 a - 3 b is not twice that of a less three times that of b",
                        f"a {self.rule} linear in its {'cotangent' if self.rule == 'vjp' else 'tangents'} is needed",
                        "Correct that rule",
                    )
                )
        return one


def rounding(*groups: Leaves) -> float:
    """Return what rounding may change, relative to the largest term."""
    return 1e4 * max(float(np.finfo(aval_of(leaf).dtype).eps) for group in groups for leaf in group)


def compare_rules(
    problem: Problem, check: Check, directions: Leaves, cts: Leaves, found: dict[str, list[float]]
) -> None:
    """Raise an AssertionError where a rule differs from differences, or the two from each other."""
    for i, (label, direction) in enumerate(zip(problem.labels, directions, strict=True)):
        expected, error = check.expected(problem, i, direction, cts)
        for rule, values in found.items():
            if not abs(values[i] - expected) <= check.rtol * max(1.0, abs(values[i]), abs(expected)):
                raise AssertionError(
                    describe(
                        check.name,
                        f"the {rule} gives {values[i]:.12g} in {label} along a random direction",
                        f"{expected:.12g} is needed by differences good to {error:.1g}",
                        f"Correct the {rule}, or choose a point away from kinks and jumps",
                    )
                )
        if len(found) == 2:
            a, b = found["vjp"][i], found["jvp"][i]
            if not abs(a - b) <= rounding(problem.point, cts) * max(1.0, abs(a), abs(b)):
                raise AssertionError(
                    describe(
                        check.name,
                        f"the vjp gives {a:.17g} and the jvp {b:.17g} in {label} along a random direction",
                        "the same number is needed",
                        "Correct the less accurate rule",
                    )
                )


# The numbers to compare with


def paired(cts: Leaves, values: Leaves) -> float:
    """Return the sum of products of cotangents and values, its real part: no factor is conjugated."""
    return sum(float(np.sum(widened(ct) * widened(value)).real) for ct, value in zip(cts, values, strict=True))


def widened(value: Any) -> Array:
    """Return an array in double precision at least."""
    array = np.asarray(raw(value))
    return array.astype(np.result_type(array.dtype, np.float64))


def difference_quotient(problem: Problem, i: int, direction: Array, cts: Leaves) -> Callable[[float], float]:
    """Return the function from a step to the central difference quotient of the weighted outputs."""
    wide = [as_given(widened(leaf)[()], leaf) for leaf in problem.point]
    start, leaf = widened(wide[i]), problem.point[i]

    def outputs(step: float) -> Leaves:
        wide[i] = as_given((start + step * direction)[()], leaf)
        return problem.function(list(wide))

    def quotient(step: float) -> float:
        pairs = zip(outputs(step), outputs(-step), strict=True)
        return paired(cts, [widened(right) - widened(left) for right, left in pairs]) / (2 * step)

    return quotient


def extrapolated(quotient: Callable[[float], float], step: float, target: float) -> tuple[float, float]:
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
    point[i] = as_given((widened(leaves[i]) + 1j * IMAGINARY_STEP * direction)[()], problem.point[i])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            outputs = problem.function(point)
    except (TypeError, ValueError, RuntimeError, AttributeError, np.exceptions.ComplexWarning):
        return None
    return paired(cts, [widened(out).imag for out in outputs]) / IMAGINARY_STEP
