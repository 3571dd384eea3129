"""`check_rule`: compare the rules that a user gave with differences and with each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.forms.abstract_evaluation import abstract
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of, is_differentiable
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError, describe
from wengert.testing.difference_check import (
    STEP,
    Check,
    LeafProblem,
    Leaves,
    arguments_of,
    default_tolerance,
    leaf_problem,
    pair_product,
    smooth_outputs,
    widen,
)
from wengert.testing.form_check import check_form
from wengert.testing.gradient_check import pull_back, push_forward
from wengert.traces.function import Function
from wengert.transforms.boundary import name_of
from wengert.transforms.custom_rule import CustomRule


def check_rule(fun: Any, *args: Any, rtol: float | None = None, seed: int = 0, **params: Any) -> None:
    """Check the derivative rules given to a `custom_rule`, an `autograd.Function` or a primitive at a point.

    Each of vjp and jvp that was given must agree with differences of the function, be linear, and, if there are two,
    give the same number for any direction and cotangent. Of a primitive declared with `wengert.extend` both modes are
    checked, and its form: lanes must give what a loop over them does, and tracing must tell shapes and dtypes as they
    are. Its evaluation must not write to its operands, nor to earlier results. That it holds at one point says nothing
    of others, where a rule may divide by zero or branch.

    Args:
        fun: what `custom_rule` returned, a subclass of `Function`, or a primitive.
        *args: its arguments, or all of them as one tuple, as for `check_grads`; those of float or complex dtype are
            differentiated.
        rtol: tolerance of the comparison with differences, as in `check_grads`.
        seed: of the random directions.
        **params: the parameters of a primitive.

    Raises:
        AssertionError: a rule is wrong; the text names it.
        UsageError: `fun` has no rules of its own, or nothing among `args` can be differentiated.

    >>> import wengert as wg, numpy as np
    >>> cube = wg.custom_rule(lambda x: x**3)
    >>> cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))
    >>> _ = cube.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))
    >>> check_rule(cube, np.array([1.0, 2.0]))
    """
    args = arguments_of(args)
    seed = as_whole("check_rule", "seed", seed, 0)
    if isinstance(fun, Primitive):
        check_form(fun, args, params, np.random.default_rng(seed))
        if fun.kind == "constant" and not any(is_differentiable(x.dtype) for x in abstract(fun, args, params)):
            return
    elif params:
        option = next(iter(params))
        text = describe("check_rule", f"{option}=", "only primitives have parameters", "Pass it among the arguments")
        raise UsageError(text)
    given = rules_of(fun, params)
    problem = smooth_part(given["function"], args)
    tolerance = default_tolerance(problem) if rtol is None else rtol
    name = f"check_rule({fun.name})" if isinstance(fun, Primitive) else name_of("check_rule", fun)
    check = Check(name, "", 1, tolerance, STEP, np.random.default_rng(seed))
    cts = [check.direction(leaf) for leaf in smooth_outputs(problem)]
    directions = [check.direction(leaf) for leaf in problem.point]
    found: dict[str, list[float]] = {}
    if "vjp" in given:
        pull = RuleMap("vjp", check.name, functools.partial(pull_back, smooth_part(given["vjp"], args).function))
        found["vjp"] = [
            pair_product([g], [v]) for g, v in zip(pull.linear(problem.point, cts, check), directions, strict=True)
        ]
    if "jvp" in given:
        push = RuleMap("jvp", check.name, functools.partial(push_forward, smooth_part(given["jvp"], args).function))
        found["jvp"] = [
            pair_product(cts, push.linear(problem.point, alone(directions, i), check)) for i in range(len(directions))
        ]
    compare_rules(problem, check, directions, cts, found)


def rules_of(fun: Any, params: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return a function, and for each rule given to it the function that has this rule alone."""
    if isinstance(fun, Primitive):
        return dict.fromkeys(("function", "vjp", "jvp"), functools.partial(apply, fun, **params))
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
    given = f"{fun!r}, which has no derivative rule of its own"
    needed = "a custom_rule with a vjp or jvp, a Function or a primitive is needed"
    raise UsageError("check_rule", given, needed, "Use check_grads for other functions")


def smooth_part(function: Callable[..., Any], args: tuple[Any, ...]) -> LeafProblem:
    """Return a function as one of those leaves of its arguments that have derivatives, with results that have."""
    leaves, _ = flatten(args)
    chosen = [i for i, leaf in enumerate(leaves) if is_smooth(leaf)]
    if not chosen:
        given = "no float or complex argument"
        raise UsageError("check_rule", given, "something to differentiate is needed", "Pass one")
    return leaf_problem(function, args, chosen)


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
            x, y, z = widen(x), widen(y), widen(z)
            size = np.max(np.abs(x) + np.abs(y), initial=0.0)
            if not np.allclose(z, 2 * x - 3 * y, rtol=0, atol=rounding(point, vectors) * size, equal_nan=True):
                given = f"the {self.rule} of 2 a - 3 b is not twice that of a less three times that of b"
                needed = f"a {self.rule} linear in its {'cotangent' if self.rule == 'vjp' else 'tangents'} is needed"
                raise AssertionError(describe(self.name, given, needed, "Correct that rule"))
        return one


def rounding(*groups: Leaves) -> float:
    """Return what rounding may change, relative to the largest term."""
    return 1e4 * max(float(np.finfo(aval_of(leaf).dtype).eps) for group in groups for leaf in group)


def compare_rules(
    problem: LeafProblem, check: Check, directions: Leaves, cts: Leaves, found: dict[str, list[float]]
) -> None:
    """Raise an AssertionError where a rule differs from differences, or the two from each other."""
    for i, (label, direction) in enumerate(zip(problem.labels, directions, strict=True)):
        expected, error = check.expect(problem, i, direction, cts)
        for rule, values in found.items():
            if not abs(values[i] - expected) <= check.rtol * max(1.0, abs(values[i]), abs(expected)):
                given = f"the {rule} gives {values[i]:.12g} in {label} along a random direction"
                needed = f"{expected:.12g} is needed by differences good to {error:.1g}"
                action = f"Correct the {rule}, or choose a point away from kinks and jumps"
                raise AssertionError(describe(check.name, given, needed, action))
        if len(found) == 2:
            a, b = found["vjp"][i], found["jvp"][i]
            if not abs(a - b) <= rounding(problem.point, cts) * max(1.0, abs(a), abs(b)):
                given = f"the vjp gives {a:.17g} and the jvp {b:.17g} in {label} along a random direction"
                needed = "the same number is needed"
                raise AssertionError(describe(check.name, given, needed, "Correct the less accurate rule"))
