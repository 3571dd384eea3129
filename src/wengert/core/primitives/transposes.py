"""Transposes as operations: what a sweep that is recorded itself records in place of what the rules are made of.

Where a rule does not depend on the elements of operands, or depends on them linearly, its own derivatives are rules of
the same operation. So the rules run on arrays, as in any sweep, and one operation is recorded for each cotangent.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.kinds import Elementwise, Linear, Multilinear
from wengert.core.primitives.opaque_kinds import Opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.signatures import Rule
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor

Params = Mapping[str, Any]


def perform(primitive: Primitive, operands: Sequence[Any], params: Params) -> Any:
    """Do an operation on arrays, or on Tensors."""
    if Tensor in map(type, operands):
        return apply(primitive, *operands, **params)
    return primitive.evaluate(*operands, **params)


def cotangent(
    primitive: Primitive, i: int, ct: Any, aval: Aval, out: Any, operands: Sequence[Any], params: Params
) -> Any:
    """Return the cotangent of operand i of an operation."""
    avals: list[Aval | None] = [None] * len(operands)
    avals[i] = aval
    return primitive.vjp(ct, out, operands, avals, params)[i]


def insert_item(items: Sequence[Any], place: int, item: Any) -> tuple[Any, ...]:
    """Return items with another one at a place.

    >>> insert_item("ac", 1, "b")
    ('a', 'b', 'c')
    """
    return (*items[:place], item, *items[place:])


class Transposed(Linear):
    """Be the transpose of a linear operation on one operand; its transpose is that operation.

    >>> halve = Linear("halve", lambda x: x / 2, transpose=lambda ct, _aval: ct / 2)
    >>> primitive, params = transposition(halve, Aval((2,), np.dtype(float)), {}, ())
    >>> primitive.evaluate(np.ones(2), **params)
    array([0.5, 0.5])
    >>> transposition(primitive, Aval((2,), np.dtype(float)), params, ())
    (<linear primitive halve>, {})
    """

    def __init__(self, original: Linear) -> None:
        super().__init__(f"{original.name} transposed", self.transpose, self.back, fresh=not original.view)
        self.original = original

    def transpose(self, ct: Any, *, aval: Aval, params: Params, constants: Sequence[Any]) -> Any:
        """Evaluate the transpose."""
        return self.original.transposes[0](ct, aval, *constants, **params)

    def back(self, ct: Any, _aval: Aval, *, aval: Aval, params: Params, constants: Sequence[Any]) -> Any:
        """Do the operation itself."""
        return perform(self.original, (ct, *constants), params)

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return those of the operation."""
        return self.original.vjp_rules()


transposed = functools.cache(Transposed)


def transposition(
    primitive: Linear, aval: Aval, params: Params, constants: Sequence[Any]
) -> tuple[Linear, dict[str, Any]]:
    """Return the operation that is the transpose of a linear one on an operand of this aval, and its parameters."""
    if type(primitive) is Transposed and not params["constants"]:
        return primitive.original, params["params"]
    return transposed(primitive), {"aval": aval, "params": params, "constants": constants}


# Linear on pieces


class Slope(Linear):
    """Be what gives the cotangent of one operand of an operation that is linear on pieces, at a point.

    Its parameters are that point (the result, where the rules need it, and the operands), the avals of result and
    operand, and the parameters of the operation.
    """

    def __init__(self, original: Elementwise | Opaque, position: int) -> None:
        super().__init__(f"{original.name} transposed", self.pull, self.push)
        self.original = original
        self.position = position

    def pull(self, ct: Any, *, out: Any, operands: Sequence[Any], avals: tuple[Aval, Aval], params: Params) -> Any:
        """Return the cotangent of the operand."""
        return cotangent(self.original, self.position, ct, avals[1], out, operands, params)

    def push(
        self, t: Any, _aval: Aval, *, out: Any, operands: Sequence[Any], avals: tuple[Aval, Aval], params: Params
    ) -> Any:
        """Return the tangent of the result for one of the operand."""
        if isinstance(self.original, Elementwise):
            rule = self.original.rules[self.position]
            assert rule is not None
            return rule(
                t if t.shape == avals[0].shape else np.broadcast_to(t, avals[0].shape), out, *operands, **params
            )
        tangents: list[Any] = [None] * len(operands)
        tangents[self.position] = t
        assert self.original.jvp is not None
        return self.original.jvp(tangents, out, *operands, **params)

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return those of the operation."""
        return self.original.vjp_rules()


slope_of = functools.cache(Slope)


# Linear in each operand


class Factor(Multilinear):
    """Be what gives the cotangent of one operand of a multilinear operation, from that of the result and the others.

    It is linear in each of these, too: what was `<ct, f(x, y)>` is read as a function of another two of the three.
    """

    def __init__(self, original: Multilinear, position: int) -> None:
        Primitive.__init__(self, f"{original.name} transposed", self.pull)
        self.original = original
        self.position = position

    def pull(self, ct: Any, *others: Any, aval: Aval, params: Params) -> Any:
        """Return the cotangent of the operand."""
        return cotangent(self.original, self.position, ct, aval, None, insert_item(others, self.position, None), params)

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Do the operation itself for what was the cotangent, and give other operands theirs with `ct` as this one."""
        given, *others = operands
        inner = params["params"]
        found = [None if avals[0] is None else perform(self.original, insert_item(others, self.position, ct), inner)]
        for i, aval in enumerate(avals[1:]):
            j = i + (i >= self.position)
            if aval is None:
                found.append(None)
            else:
                factors = insert_item(others, self.position, ct)
                found.append(cotangent(self.original, j, given, aval, None, factors, inner))
        return found

    def vjp_rules(self) -> Sequence[Rule | None]:
        """Return those of the operation."""
        return self.original.vjp_rules()


factor_of = functools.cache(Factor)
