"""`custom_rule`: functions that bring their own derivative or batch rule; whatever is missing is derived."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from wengert.control.repeated_containers import UnchangedContainers
from wengert.core.containers.tree_leaves import flatten, leaves_up_to, map_leaves, structure_text, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, shown
from wengert.core.memory.views import current
from wengert.core.primitives.declaration_checks import in_form
from wengert.core.primitives.signatures import called_with
from wengert.core.values.aval import Aval, aval_of, is_differentiable
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.tensor import Tensor, constant_tensor, unwrap_plain
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.support.attributes import function_name, resemble, signature
from wengert.support.function_protocol import LikeFunction
from wengert.support.functions_by_value import reduce_function
from wengert.support.hints import hint_attributes, hint_parameters
from wengert.support.refusals import REFUSALS
from wengert.traces.batch import Batch
from wengert.traces.rules.calls import (
    LEFT_AS_THEY_ARE,
    InLanes,
    UserCall,
    belongs_to,
    numeric,
    readable,
    require_unwritten,
    traces_of,
    value_below,
)
from wengert.traces.rules.linearity import require_linear
from wengert.traces.tape import Tape
from wengert.transforms.reverse import pull_back
from wengert.transforms.rule_closures import Closures, OfFunctions, close_rule

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


@hint_attributes("defjvps", "defvmap")
class CustomRule(LikeFunction, OfFunctions, Generic[P, R]):
    """Be a function with rules of its own; made by `custom_rule`."""

    __wrapped__: Callable[P, R]

    def __init__(self, fun: Callable[P, R]) -> None:
        require_callable("custom_rule", fun)
        resemble(self, fun)
        self.fun: Function = fun
        self.forward: Function | None = None
        self.backward: Function | None = None
        self.pushforward: Function | None = None
        self.batching: Function | None = None
        self.closures: Closures | None = None

    @property
    def functions(self) -> Sequence[Function | None]:
        """The function and its rules."""
        return self.fun, self.forward, self.backward, self.pushforward, self.batching

    def of(self, functions: Sequence[Any]) -> CustomRule[..., Any]:
        """Return another function with rules of its own."""
        return with_rules(*functions)

    def __repr__(self) -> str:
        """Return the name of the function."""
        return f"<custom_rule({function_name(self.fun, '__name__')})>"

    def __reduce__(self) -> Any:
        """Return the name under which a module has it, as functions do, or what it is made of."""
        return reduce_function(self, with_rules, tuple(self.functions))

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Give the reverse rule.

        Args:
            forward: `forward(*args)` returns (output, residuals).
            backward: `backward(residuals, ct)`, linear in `ct`, returns a tuple with a cotangent for each argument,
                in its containers; None where there is none.
        """
        require_callable("defvjp", forward, "forward rule")
        require_callable("defvjp", backward, "backward rule")
        self.forward, self.backward = forward, backward

    def defjvp(self, rule: Function) -> Function:
        """Give the forward rule; usable as a decorator.

        Args:
            rule: `rule(primals, tangents)`, linear in `tangents`, returns (output, tangent of the output).

        Returns:
            The rule.
        """
        require_callable("defjvp", rule, "rule")
        self.pushforward = rule
        return rule

    def defbatch(self, rule: Function) -> Function:
        """Give the batch rule; usable as a decorator.

        Args:
            rule: `rule(size, batched, *args)` gets the number of lanes, for each argument whether it has lanes (in
                front), and the arguments; it returns (output, whether it has lanes), both in the output's containers.

        Returns:
            The rule.
        """
        require_callable("defbatch", rule, "rule")
        self.batching = rule
        return rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; its rules apply wherever the call is differentiated or batched."""
        given: tuple[Any, ...] = positional_arguments(self.fun, args, kwargs) if kwargs else args
        if REFUSALS.noted is not None and (closures := Closures(self)).captured:  # it is called by a transformation
            return cast(R, close_rule(self, closures)(closures.captured, *given))
        leaves, structure = flatten(given)
        places = [i for i, leaf in enumerate(leaves) if type(leaf) is Tensor]
        found: R
        if places:
            fixed = [None if type(leaf) is Tensor else leaf for leaf in leaves]
            call = CustomCall(self, fixed, structure, places)
            results = apply(call, *(leaves[i] for i in places))
            found = unflatten(call.out_structure, list(results) if call.outputs > 1 else [results])
        else:
            found = map_leaves(functools.partial(separate_memory, leaves), self.fun(*given))
        return found


def with_rules(fun: Function, *rules: Function | None) -> CustomRule[..., Any]:
    """Return a function with rules of its own, or none."""
    made: CustomRule[..., Any] = CustomRule(fun)
    made.forward, made.backward, made.pushforward, made.batching = rules
    return made


def separate_memory(arguments: Sequence[Any], result: Any) -> Any:
    """Return a result of a function in memory that is none of its arguments', as it has with Tensors."""
    if isinstance(result, np.ndarray) and any(
        isinstance(x, np.ndarray) and np.may_share_memory(x, result) for x in arguments
    ):
        return result.copy(order="K")
    return result


class CustomCall(UserCall):
    """Be one call of a function with rules of its own.

    Its leaves are those of its arguments, None for those that are operands, which stand at `places`.
    """

    def __init__(
        self, rule: CustomRule[..., Any], leaves: Sequence[Any], structure: Any, places: Sequence[int]
    ) -> None:
        super().__init__(rule, function_name(rule.fun), places, rule.pushforward is not None)
        self.rule = rule
        self.leaves = leaves
        self.structure = structure
        self.out_structure: Any = None
        self.given_by_user = rule.backward is not None

    @property
    def code(self) -> Any:
        """The code of the function and of its rules."""
        return tuple([x.__code__ if isinstance(x, FunctionType) else type(x) for x in self.rule.functions])

    def user_functions(self) -> Sequence[Any]:
        """Return the function and its rules, unless these have taken what they captured."""
        return () if self.rule.closures is not None else self.rule.functions

    def anew(self, _operands: Sequence[Any]) -> CustomCall:
        """Return the same call, not made yet."""
        return CustomCall(self.rule, self.leaves, self.structure, self.places)

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with other values for the operands."""
        leaves = list(self.leaves)
        for place, value in zip(self.places, values, strict=True):
            leaves[place] = readable(value)
        return unflatten(self.structure, leaves)  # type: ignore[no-any-return]  # the user's containers

    def compute(self, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Call the function; its results must not depend on what it captured."""
        arguments = self.arguments(operands)
        taken = [leaf for leaf in flatten(arguments)[0] if type(leaf) is Tensor]
        before = [x._value for x in taken]
        with UnchangedContainers(self.name, LEFT_AS_THEY_ARE, (arguments, {})):
            result = in_form(operands, self.rule.fun, lambda form: form(*arguments))
        found, self.out_structure = leaves_of_result(result)
        require_unwritten(self.name, taken, before, "Write into a copy")
        if not found:
            raise self.error("a function that returned no array", "at least one is needed", "Return the results")
        strange = next((leaf for leaf in found if not belongs_to(leaf, operands)), None)
        if strange is not None:
            raise self.captures(condition_text(strange, operands))
        return list(map(as_tensor, found))

    def captures(self, condition: str) -> GraphError:
        """Return the error about a value that the function captured."""
        needed = "a function with rules of its own must take such values as arguments"
        return GraphError(self.name, f"a captured value that {condition}", needed, "Add it to the arguments")

    def require_constant(self, moving: Sequence[Any]) -> None:
        """Raise if what the function captured is being differentiated: the rules say nothing of it.

        What moves has something else than None in `moving`.
        """
        if self.rule.closures is not None:
            captured = len(self.rule.closures.captured)
            if any(x is not None and i < captured for i, x in zip(self.places, moving, strict=True)):
                raise self.captures("is being differentiated")

    def compute_lanes(self, lanes: InLanes, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Call the batch rule, if there is one."""
        if self.rule.batching is None:
            return super().compute_lanes(lanes, operands)
        flags = [False] * len(self.leaves)
        for place, flag in zip(self.places, lanes.flags, strict=True):
            flags[place] = flag
        args = lanes.size, unflatten(self.structure, flags), *self.arguments(operands)
        result = self.call("batch", self.rule.batching, "size, batched, *args", args)
        output, has_lanes = self.pair(result, "batch", "(output, whether it has lanes)")
        found, self.out_structure = flatten(output)
        if not found:
            raise self.error("an output without arrays", "at least one is needed", "Return the results", "batch")
        marks = [has_lanes] * len(found) if isinstance(has_lanes, bool) else flatten(has_lanes)[0]
        if len(marks) != len(found):
            given = f"{len(marks)} flags for {len(found)} arrays"
            raise self.error(given, "one for each is needed", "Build them like the output, or return one bool", "batch")
        self.outputs = len(found)
        return [self.in_front(leaf, mark, lanes.size) for leaf, mark in zip(found, marks, strict=True)]

    def in_front(self, leaf: Any, has_lanes: bool, size: int) -> Tensor:
        """Return a result of the batch rule with its lanes in front."""
        tensor = numeric(f"{self.name} (batch rule)", "an output", leaf)
        if not isinstance(has_lanes, bool | np.bool_):
            given = f"{shown(has_lanes)} for whether the output has lanes"
            raise self.error(given, "True or False is needed", "Return a pair (output, whether it has lanes)", "batch")
        if not has_lanes:
            return as_tensor(np.broadcast_to(tensor, (size, *tensor.shape)).copy())
        if tensor.shape[:1] != (size,):
            given = f"an output of shape {tensor.shape} for {size} lanes"
            needed = "the axis that counts lanes is needed in front"
            action = "Move it there, or return False if the output is the same for all lanes"
            raise ShapeError(f"{self.name} (batch rule)", given, needed, action)
        return tensor

    def error(self, given: str, needed: str, action: str, rule: str = "") -> UsageError:
        """Return an error about the function or one of its rules."""
        return UsageError(f"{self.name} ({rule} rule)" if rule else self.name, given, needed, action)

    def call(
        self, rule: str, function: Function, parameters: str, arguments: Sequence[Any], near: Sequence[Any] = ()
    ) -> Any:
        """Call a rule of the user's; `near` are the values that it computes with, of which some may be traced."""
        name = f"{self.name} ({rule} rule)"
        return in_form(near, function, lambda form: called_with(name, form, parameters, arguments))

    def pair(self, result: Any, rule: str, needed: str) -> tuple[Any, Any]:
        """Return the two things that a rule returned."""
        if not isinstance(result, tuple) or len(result) != 2:
            given = f"a tuple of {len(result)}" if isinstance(result, tuple) else f"a {type(result).__name__}"
            raise self.error(given, f"a pair {needed} is needed", "Return a tuple of two", rule)
        return result

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save every operand."""
        return False, lambda operand: True

    def pull(self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None]) -> Sequence[Any]:
        """Apply the reverse rule, or what follows from the forward rule, or from the function itself."""
        self.require_constant(avals)
        args = self.arguments(operands)
        rule = self.rule
        near = (*operands, *(ct if self.outputs > 1 else [ct]))
        if rule.forward is not None and rule.backward is not None:
            result = self.call("forward", rule.forward, "*args", args, near)
            output, residuals = self.pair(result, "vjp", "(output, residuals)")
            given = residuals, self.complete(ct, output)
            cts = self.call("backward", rule.backward, "residuals, ct", given, near)
            return self.check_cotangents(cts, avals)
        varying = [i for i, aval in enumerate(avals) if aval is not None]

        def function(*values: Any) -> Any:
            if rule.pushforward is None:
                moved = list(operands)
                for i, value in zip(varying, values, strict=True):
                    moved[i] = value
                return in_form(near, rule.fun, lambda form: form(*self.arguments(moved)))
            return self.push_tangents(args, self.tangents(operands, dict(zip(varying, values, strict=True))))

        primals = [readable(operands[i]) for i in varying]
        output, pullback = pull_back(self.name, function, primals, any_result=True)
        found = pullback(self.complete(ct, output))
        if rule.pushforward is not None:
            self.require_linear_pushforward(args, operands)
        results: list[Any] = [None] * len(operands)
        for i, value in zip(varying, found, strict=True):
            results[i] = value_below(value)
        return results

    def complete(self, ct: Any, output: Any) -> Any:
        """Return the cotangent in the output's containers, with zeros for what received none."""
        found, structure = flatten(output)
        cts = ct if self.outputs > 1 else [ct]
        if len(found) != len(cts):
            given = f"an output of {len(found)} arrays"
            raise self.error(given, f"the {len(cts)} of the function are needed", "Return the function's output", "vjp")
        full = []
        for c, leaf in zip(cts, found, strict=True):
            aval = aval_of(leaf)
            full.append(constant_tensor(np.zeros(aval.shape, aval.dtype)[()]) if c is None else readable(c))
        return unflatten(structure, full)

    def require_linear_pushforward(self, args: tuple[Any, ...], operands: Sequence[Any]) -> None:
        """Raise a GraphError unless the forward rule is linear in the tangents of all arguments together."""
        zeros, structure = flatten(self.tangents(operands, {}))

        def rule(tangents: Sequence[Any]) -> Sequence[Any]:
            return flatten(self.push_tangents(args, unflatten(structure, tangents)))[0]

        require_linear(self, "jvp", rule, [aval_of(x).firm for x in zeros])

    def tangents(self, operands: Sequence[Any], given: Mapping[int, Any]) -> tuple[Any, ...]:
        """Return tangents in the containers of the arguments; zeros where none is given."""
        leaves = list(map(zero_tangent, self.leaves))
        for i, place in enumerate(self.places):
            tangent = given.get(i)
            leaves[place] = zero_tangent(operands[i]) if tangent is None else readable(tangent)
        return unflatten(self.structure, leaves)  # type: ignore[no-any-return]  # the user's containers

    def push(self, tangents: Sequence[Any], out: Any, operands: Sequence[Any]) -> Any:
        """Apply the forward rule; it must be linear where its tangents are differentiated, as by `linearize`."""
        self.require_constant(tangents)
        given = {i: t for i, t in enumerate(tangents) if t is not None}
        if any(isinstance(trace, Tape) for t in given.values() for trace in traces_of(t)):
            self.require_linear_pushforward(self.arguments(operands), operands)
        found = flatten(self.push_tangents(self.arguments(operands), self.tangents(operands, given)))[0]
        moved = []
        for tangent, value in zip(found, out if self.outputs > 1 else (out,), strict=True):
            tensor = current(as_tensor(tangent))
            if tensor.shape != value.shape:
                raise ShapeError(
                    f"{self.name} (jvp rule)",
                    f"a tangent of shape {tensor.shape} for an output of shape {value.shape}",
                    "the same shape is needed",
                    "Broadcast it as the function does",
                )
            moved.append(unwrap_plain(tensor))
        return tuple(moved) if self.outputs > 1 else moved[0]

    def push_tangents(self, args: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        """Return the tangent of the output that the forward rule gives."""
        assert self.rule.pushforward is not None
        result = self.call(
            "jvp", self.rule.pushforward, "primals, tangents", (args, tangents), flatten((args, tangents))[0]
        )
        _, moved = self.pair(result, "jvp", "(output, tangent of the output)")
        found, structure = flatten(moved)
        if len(found) != self.outputs:
            needed = f"{self.outputs} are needed, one for each array of the output"
            raise self.error(f"{len(found)} tangents", needed, "Build them like the output", "jvp")
        if (structure is None) != (self.out_structure is None):
            given_text = f"a tangent of type {type(moved).__name__}"
            raise self.error(given_text, "the containers of the output are needed", "Build it like the output", "jvp")
        return unflatten(structure, [numeric(f"{self.name} (jvp rule)", "a tangent", leaf) for leaf in found])

    def check_cotangents(self, cts: Any, avals: Sequence[Aval | None]) -> list[Any]:
        """Return the cotangents of the operands, checking containers and shapes."""
        args = unflatten(self.structure, list(range(len(self.leaves))))
        if not isinstance(cts, tuple) or len(cts) != len(args):
            given = f"{len(cts)} cotangents" if isinstance(cts, tuple) else f"a {type(cts).__name__}"
            needed = f"a tuple of {len(args)} is needed, one for each argument"
            raise UsageError(f"{self.name} (vjp rule)", given, needed, "Return None for arguments without a cotangent")
        by_place: dict[int, Any] = {}
        for argument, ct in zip(args, cts, strict=True):
            if ct is not None:
                by_place.update(zip(flatten(argument)[0], self.match_leaves(argument, ct), strict=True))
        results: list[Any] = []
        for place, aval in zip(self.places, avals, strict=True):
            ct = by_place.get(place)
            if aval is None or ct is None:
                results.append(None)
                continue
            tensor = numeric(f"{self.name} (vjp rule)", f"a cotangent for leaf {place} of the arguments", ct)
            if tensor.shape != aval.shape:
                given = f"a cotangent of shape {tensor.shape} for leaf {place} of the arguments"
                needed = f"its shape {aval.shape} is needed"
                raise ShapeError(f"{self.name} (vjp rule)", given, needed, "Sum over what the function broadcast")
            results.append(unwrap_plain(tensor))
        return results

    def match_leaves(self, argument: Any, ct: Any) -> list[Any]:
        """Return the cotangents of an argument's leaves, None for those without."""
        structure = flatten(argument)[1]
        try:
            return leaves_up_to(structure, ct)
        except ValueError as error:
            raise self.error(
                f"a cotangent of structure {structure_text(flatten(ct)[1])}",
                f"that of its argument, {structure_text(structure)}, is needed",
                "Build it like the argument",
                "vjp",
            ) from error


def condition_text(value: Any, operands: Sequence[Tensor]) -> str:
    """Return what a value that depends on more than the operands of a call is in the middle of."""
    known = {trace for x in operands for trace in traces_of(x)}
    trace = max(traces_of(value) - known, key=lambda trace: trace.level)
    if trace.staged:
        return "is being traced"
    return "differs from lane to lane" if isinstance(trace, Batch) else "is being differentiated"


def positional_arguments(fun: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return arguments that were passed by keyword in their positions."""
    bound = signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        needed = "a function with rules of its own has positional arguments, of which its rules speak"
        action = "Fix others in a lambda or functools.partial around the function"
        raise UsageError(function_name(fun), f"the keyword-only argument {next(iter(bound.kwargs))}", needed, action)
    return bound.args


def zero_tangent(leaf: Any) -> Any:
    """Return the tangent of an argument that does not move; None for what is no array."""
    if not isinstance(leaf, Tensor | np.ndarray | np.generic | numbers.Number):
        return None
    aval = aval_of(leaf)
    return readable(np.zeros(aval.shape, aval.dtype if is_differentiable(aval.dtype) else float)[()])


@hint_parameters("custom_rule")
def custom_rule(fun: Callable[P, R]) -> CustomRule[P, R]:
    """Return a function that can be given its own derivative and batch rules.

    Any subset may be given: a missing jvp is derived from the vjp (which is linear in the cotangent, so its transpose
    is the Jacobian), a missing vjp from the jvp in the same way, a missing batch rule from the function and its
    rules, which `vmap` calls once for all lanes (lane by lane where they look at elements). Without any the function
    differentiates as it would by itself.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers. Values to differentiate by
            must be arguments, not captured; constants may be captured, those of lanes and of traced functions too.

    Returns:
        A callable with methods `defvjp`, `defjvp` and `defbatch`.

    >>> import wengert as wg
    >>> @custom_rule
    ... def softplus(x):
    ...     return np.logaddexp(0.0, x)
    >>> softplus.defvjp(lambda x: (softplus(x), x), lambda x, ct: (ct / (1 + np.exp(-x)),))
    >>> wg.grad(softplus)(0.0)
    0.5
    >>> wg.jvp(softplus, (0.0,), (2.0,))[1]
    1.0
    """
    return CustomRule(fun)
