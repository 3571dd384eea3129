"""`custom_rule`: functions that bring their own derivative or batch rule; whatever is missing is derived."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._tree import flatten, unflatten
from wengert.core.aval import Aval, aval_of, is_differentiable
from wengert.core.dispatch import apply, as_tensor
from wengert.core.primitive import Primitive
from wengert.core.tensor import Tensor, constant_tensor, innermost_trace, raw, settled
from wengert.core.views import current
from wengert.errors import GraphError, ShapeError, UsageError, describe
from wengert.transforms.reverse import vjp

__all__ = ["CustomRule", "custom_rule"]

Function = Callable[..., Any]


class CustomRule:
    """Be a function with rules of its own; made by `custom_rule`."""

    def __init__(self, fun: Function) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.forward: Function | None = None
        self.backward: Function | None = None
        self.pushforward: Function | None = None
        self.batching: Function | None = None

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Give the reverse rule.

        Args:
            forward: `forward(*args)` returns (output, residuals).
            backward: `backward(residuals, ct)`, linear in `ct`, returns a tuple with a cotangent for each argument,
                in its containers; None where there is none.
        """
        self.forward, self.backward = forward, backward

    def defjvp(self, rule: Function) -> Function:
        """Give the forward rule; usable as a decorator.

        Args:
            rule: `rule(primals, tangents)`, linear in `tangents`, returns (output, tangent of the output).

        Returns:
            The rule.
        """
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
        self.batching = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        """Call the function; its rules apply wherever the call is differentiated or batched."""
        leaves, structure = flatten(args)
        places = [i for i, leaf in enumerate(leaves) if type(leaf) is Tensor]
        if not places:
            return self.fun(*args)
        call = CustomCall(self, leaves, structure, places)
        results = apply(call, *(leaves[i] for i in places))
        return unflatten(call.out_structure, list(results) if call.outputs > 1 else [results])


class CustomCall(Primitive):
    """Be one call of a function with rules: a primitive whose operands are the Tensors among its arguments' leaves."""

    kind = "opaque"

    def __init__(self, rule: CustomRule, leaves: Sequence[Any], structure: Any, places: Sequence[int]) -> None:
        super().__init__(getattr(rule, "__qualname__", repr(rule.fun)), self.run)
        self.rule = rule
        self.leaves = leaves
        self.structure = structure
        self.places = places
        self.out_structure: Any = None
        if rule.pushforward is not None:
            self.jvp = self.push
        if rule.batching is not None:
            self.batch = self.run_batched

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with other values for the operands."""
        leaves = list(self.leaves)
        for place, value in zip(self.places, values, strict=True):
            leaves[place] = held(value)
        return unflatten(self.structure, leaves)  # type: ignore[no-any-return]

    def run(self, *values: Any) -> Any:
        """Call the function on plain Tensors."""
        return self.arrays(self.rule.fun(*self.arguments(values)))

    def arrays(self, result: Any) -> Any:
        """Return the arrays of a result, noting its containers."""
        found, self.out_structure = flatten(result)
        self.outputs = len(found)
        values = tuple(self.array(leaf) for leaf in found)
        return values if self.outputs > 1 else values[0]

    def array(self, leaf: Any) -> Any:
        """Return the array of a result, which must not depend on what the function captured."""
        if type(leaf) is Tensor and innermost_trace(leaf) is not None:
            raise GraphError(
                describe(
                    self.name,
                    "a captured value that is being differentiated",
                    "a function with rules of its own must take such values as arguments",
                    "Add it to the arguments",
                )
            )
        return raw(as_tensor(leaf))

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save every operand."""
        return False, lambda operand: True

    def structured_ct(self, ct: Any, out_avals: Sequence[Aval] | None = None) -> Any:
        """Return cotangents (or tangents) of the outputs in the output's containers."""
        cts = ct if self.outputs > 1 else [ct]
        return unflatten(self.out_structure, [None if c is None else held(c) for c in cts])

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Apply the reverse rule, or what follows from the forward rule, or from the function itself."""
        args = self.arguments(operands)
        rule = self.rule
        if rule.forward is not None and rule.backward is not None:
            output, residuals = rule.forward(*args)
            cts = rule.backward(residuals, self.completed(ct, output))
            return self.checked(cts, avals)
        varying = [i for i, aval in enumerate(avals) if aval is not None]

        def function(*values: Any) -> Any:
            if rule.pushforward is None:
                moved = list(operands)
                for i, value in zip(varying, values, strict=True):
                    moved[i] = value
                return rule.fun(*self.arguments(moved))
            return rule.pushforward(args, self.tangents(operands, dict(zip(varying, values, strict=True))))[1]

        primals = [held(operands[i]) for i in varying]
        output, pullback = vjp(function, *primals)
        found = pullback(self.completed(ct, output))
        results: list[Any] = [None] * len(operands)
        for i, value in zip(varying, found, strict=True):
            results[i] = settled(current(as_tensor(value)))
        return results

    def completed(self, ct: Any, output: Any) -> Any:
        """Return the cotangent in the output's containers, with zeros for what received none."""
        found, structure = flatten(output)
        cts = ct if self.outputs > 1 else [ct]
        full = []
        for c, leaf in zip(cts, found, strict=True):
            aval = aval_of(leaf)
            full.append(constant_tensor(np.zeros(aval.shape, aval.dtype)[()]) if c is None else held(c))
        return unflatten(structure, full)

    def tangents(self, operands: Sequence[Any], given: Mapping[int, Any]) -> tuple[Any, ...]:
        """Return tangents in the containers of the arguments; zeros where none is given."""
        leaves = []
        values = dict(zip(self.places, range(len(operands)), strict=True))
        for place, leaf in enumerate(self.leaves):
            operand = values.get(place)
            if operand is not None and given.get(operand) is not None:
                leaves.append(held(given[operand]))
                continue
            aval = aval_of(leaf)
            leaves.append(held(np.zeros(aval.shape, aval.dtype if is_differentiable(aval.dtype) else float)[()]))
        return unflatten(self.structure, leaves)  # type: ignore[no-any-return]

    def push(self, tangents: Sequence[Any], out: Any, *operands: Any) -> Any:
        """Apply the forward rule."""
        assert self.rule.pushforward is not None
        given = {i: t for i, t in enumerate(tangents) if t is not None}
        _, moved = self.rule.pushforward(self.arguments(operands), self.tangents(operands, given))
        found = [settled(current(as_tensor(leaf))) for leaf in flatten(moved)[0]]
        return tuple(found) if self.outputs > 1 else found[0]

    def run_batched(
        self, _primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Any
    ) -> Any:
        """Apply the batch rule."""
        assert self.rule.batching is not None
        flags = [False] * len(self.leaves)
        for place, flag in zip(self.places, batched, strict=True):
            flags[place] = flag
        result, lanes = self.rule.batching(size, unflatten(self.structure, flags), *self.arguments(operands))
        found, self.out_structure = flatten(result)
        self.outputs = len(found)
        has_lanes = flatten(lanes)[0] if not isinstance(lanes, bool) else [lanes] * self.outputs
        values = []
        for leaf, flag in zip(found, has_lanes, strict=True):
            tensor = as_tensor(leaf)
            lanes_first = tensor if flag else as_tensor(np.broadcast_to(tensor, (size, *tensor.shape)))
            values.append(settled(current(lanes_first)))
        return tuple(values) if self.outputs > 1 else values[0]

    def checked(self, cts: Any, avals: Sequence[Aval | None]) -> list[Any]:
        """Return the cotangents of the operands, checking containers and shapes."""
        args = unflatten(self.structure, list(range(len(self.leaves))))
        if not isinstance(cts, tuple) or len(cts) != len(args):
            given = f"{len(cts)} cotangents" if isinstance(cts, tuple) else f"a {type(cts).__name__}"
            raise UsageError(
                describe(
                    f"{self.name} (vjp rule)",
                    given,
                    f"a tuple of {len(args)} is needed, one for each argument",
                    "Return None for arguments without a cotangent",
                )
            )
        by_place: dict[int, Any] = {}
        for argument, ct in zip(args, cts, strict=True):
            places, structure = flatten(argument)
            if ct is None:
                continue
            found, given_structure = flatten(ct)
            if given_structure != structure and len(found) != len(places):
                raise UsageError(
                    describe(
                        f"{self.name} (vjp rule)",
                        f"a cotangent of structure {given_structure}",
                        f"that of its argument, {structure}, is needed",
                        "Build it like the argument",
                    )
                )
            by_place.update(zip(places, found, strict=True))
        results: list[Any] = []
        for place, aval in zip(self.places, avals, strict=True):
            ct = by_place.get(place)
            if aval is None or ct is None:
                results.append(None)
                continue
            tensor = current(as_tensor(ct))
            if tensor.shape != aval.shape:
                raise ShapeError(
                    describe(
                        f"{self.name} (vjp rule)",
                        f"a cotangent of shape {tensor.shape} for leaf {place} of the arguments",
                        f"its shape {aval.shape} is needed",
                        "Sum over what the function broadcast",
                    )
                )
            results.append(settled(tensor))
        return results


def held(value: Any) -> Any:
    """Return a value from below as a Tensor that may be read but not overwritten."""
    tensor = constant_tensor(value)
    tensor._kept = True
    return tensor


def custom_rule(fun: Function) -> CustomRule:
    """Return a function that can be given its own derivative and batch rules.

    Any subset may be given: a missing jvp is derived from the vjp (which is linear in the cotangent, so its transpose
    is the Jacobian), a missing vjp from the jvp in the same way, a missing batch rule by a loop over lanes. Without
    any the function differentiates as it would by itself.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers. Values to differentiate by
            must be arguments, not captured.

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
