"""`check_rule`: compare the rules that a user gave with differences and with each other.

A form is true if what lanes and tracing take from it is what evaluations one by one give, and if the primitive leaves
the memory of others alone.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NoReturn

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.forms.abstract_evaluation import abstract
from wengert.core.forms.form import form_of
from wengert.core.forms.view_forms import Selection
from wengert.core.graph.equation import Variable
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of, is_differentiable, strong
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, raw
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
from wengert.testing.gradient_check import pull_back, push_forward
from wengert.traces.rules.function import Function
from wengert.transforms.boundary import name_of
from wengert.transforms.custom_rule import CustomRule
from wengert.transforms.vmap import vmap


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


def check_form(
    primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], generator: np.random.Generator
) -> None:
    """Raise an AssertionError where lanes or traced shapes of a primitive are not what evaluating it gives."""
    if isinstance(form_of(primitive), Selection):  # shapes depend on elements: nothing follows from it
        return
    values = [strong(raw(x)) for x in operands]
    check_memory(primitive, values, params)
    found = results_of(primitive, values, params)
    told = abstract(primitive, [Variable(*aval_of(x)[:2]) for x in values], params)
    for x, aval in zip(found, told, strict=True):
        if (x.shape, x.dtype) != (aval.shape, aval.dtype):
            given = (
                f"an evaluation gave {x.dtype}{list(x.shape)}, and from its form follows {aval.dtype}{list(aval.shape)}"
            )
            raise AssertionError(describe(f"check_rule({primitive.name})", given, "both alike are needed", CORRECT))
    check_lanes(primitive, values, params, generator)


CORRECT = "Correct the form of the declaration, or leave it out"


def check_memory(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
    """Raise an AssertionError where an evaluation writes to its operands, or to the results of the one before."""
    given = [np.array(x) if isinstance(x, np.ndarray) else x for x in operands]
    first = results_of(primitive, given, params)
    kept = [np.array(x) for x in first]
    if not all(map(are_equal, given, operands)):
        refuse_memory(primitive, "an evaluation wrote to an operand", "operands left as they are are needed")
    smaller = [x * aval_of(x).dtype.type(0.9) if is_differentiable(aval_of(x).dtype) else x for x in given]
    results_of(primitive, smaller, params)
    if not all(map(are_equal, first, kept)):
        refuse_memory(primitive, "an evaluation wrote to the result of the one before", "new memory is needed")


def are_equal(one: Any, other: Any) -> bool:
    """Tell whether two arrays have equal elements, NaN among them."""
    return np.array_equal(one, other, equal_nan=aval_of(one).dtype.kind in "fc")


def refuse_memory(primitive: Primitive, given: str, needed: str) -> NoReturn:
    """Raise an AssertionError about what an evaluation writes to."""
    raise AssertionError(describe(f"check_rule({primitive.name})", given, needed, "Evaluate on a copy, or return one"))


def results_of(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the results of a primitive as arrays."""
    found = apply(primitive, *operands, **params)
    return [np.asarray(raw(x)) for x in (found if isinstance(found, tuple) else (found,))]


def check_lanes(
    primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], generator: np.random.Generator
) -> None:
    """Raise an AssertionError where all lanes at once are not what one after the other is.

    Each operand that has derivatives has lanes by itself, then all have: each is the operand made up to a tenth
    smaller, which leaves few domains. There are as many lanes as no axis is long.
    """
    smooth = [i for i, x in enumerate(operands) if is_differentiable(aval_of(x).dtype)]
    size = next(n for n in count(2) if all(n not in aval_of(x).shape for x in operands))
    lanes = {i: np.stack([operands[i] * scale(operands[i], generator) for _ in range(size)]) for i in smooth}
    for chosen in [*([i] for i in smooth), smooth] if len(smooth) > 1 else [smooth] if smooth else []:
        given = [lanes[i] if i in chosen else x for i, x in enumerate(operands)]
        axes = tuple([0 if i in chosen else None for i in range(len(operands))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that they run one after the other
            together = vmap(lambda *xs: apply(primitive, *xs, **params), axes)(*given)
        alone = zip(
            *[
                results_of(primitive, [x[k] if i in chosen else x for i, x in enumerate(given)], params)
                for k in range(size)
            ],
            strict=True,
        )
        for x, y in zip(together if isinstance(together, tuple) else (together,), alone, strict=True):
            compare(primitive, np.asarray(x), np.stack(y))


def scale(value: Any, generator: np.random.Generator) -> Any:
    """Return factors between 0.9 and 1 in the dtype of a value."""
    return generator.uniform(0.9, 1.0, aval_of(value).shape).astype(value.real.dtype)


def compare(primitive: Primitive, together: np.ndarray[Any, Any], alone: np.ndarray[Any, Any]) -> None:
    """Raise an AssertionError unless lanes are equal up to rounding."""
    given = ""
    if together.shape != alone.shape:
        given = f"vmap gave shape {together.shape}, and a loop over {len(alone)} lanes {alone.shape}"
    elif not np.allclose(together, alone, rtol=tolerance(alone), atol=tolerance(alone), equal_nan=True):
        wrong = ~np.isclose(together, alone, rtol=tolerance(alone), atol=tolerance(alone), equal_nan=True)
        place = tuple(map(int, np.argwhere(wrong)[0]))
        given = f"vmap gave {together[place]!s} at {place}, and a loop over the lanes {alone[place]!s}"
    if given:
        raise AssertionError(describe(f"check_rule({primitive.name})", given, "both alike are needed", CORRECT))


def tolerance(array: np.ndarray[Any, Any]) -> float:
    """Return a thousand roundings of an array's dtype; nothing for whole numbers."""
    return 1e3 * float(np.finfo(array.dtype).eps) if array.dtype.kind in "fc" else 0.0
