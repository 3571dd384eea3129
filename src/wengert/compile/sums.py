"""Reductions of nodes; what is constant along a sum is taken out of it where no bit but roundings can change."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wengert.compile.index_maps import Index, identity_map
from wengert.compile.nodes import Access, Nodes, Shape

__all__ = ["reduced", "restored"]


def reduced(nodes: Nodes, combine: str, x: Access, shape: Shape, axes: Sequence[int]) -> Access:
    """Return the combination of the elements of an array along axes, which are gone then.

    Args:
        nodes: what makes nodes.
        combine: add, multiply, maximum, minimum, and, or.
        x: the array.
        shape: its shape.
        axes: the axes, from 0.
    """
    used = {d for _, terms in x.map for d, _ in terms}
    if combine == "multiply":
        used |= set(axes)
    repeats = math.prod([shape[k] for k in axes if k not in used])
    space = tuple([1 if k in axes and k not in used else n for k, n in enumerate(shape)])
    moving = tuple([k for k in sorted(axes) if space[k] > 1])
    value = combined(nodes, combine, x, space, moving) if moving else x
    kept = [k for k in range(len(shape)) if k not in moving] if moving else list(range(len(shape)))
    left = [k for k in range(len(shape)) if k not in axes]
    result = tuple([shape[k] for k in left])
    ones = dict(zip(left, identity_map(result), strict=True))
    value = value.through(tuple([ones.get(k, Index(0)) for k in kept]))
    if repeats > 1 and combine == "add":
        value = nodes.point("multiply", x.node.dtype, result, value, nodes.constant(repeats, x.node.dtype))
    return value


def combined(nodes: Nodes, combine: str, x: Access, shape: Shape, axes: tuple[int, ...]) -> Access:
    """Return a reduction, behind which stand the factors that can be taken out of it."""
    after: list[tuple[str, tuple[Access, ...]]] = []
    while combine == "add" and (found := factored(x)) is not None:
        name, x, factor = found
        after.append((name, factor))
    kept = tuple([n for k, n in enumerate(shape) if k not in axes])
    dtype = x.node.dtype
    node = nodes.make("reduce", combine, kept, dtype, [x.through(identity_map(shape))], axes=axes, space=shape)
    value = Access(node, identity_map(kept))
    for name, factor in reversed(after):
        value = nodes.point(name, dtype, kept, value, *factor)
    return value


def factored(x: Access) -> tuple[str, Access, tuple[Access, ...]] | None:
    """Return an opcode, what it is done to, and with what, if it can as well be done to the sum; None if not."""
    if x.node.kind != "point" or x.node.name not in ("negative", "multiply"):
        return None
    operands = [a.through(x.map) for a in x.node.args]
    if x.node.name == "negative":
        return "negative", operands[0], ()
    for factor, other in (operands, operands[::-1]):
        if is_safe_factor(factor):
            return "multiply", other, (factor,)
    return None


def is_safe_factor(x: Access) -> bool:
    """Tell whether a sum of products with a factor may be the product of the sum.

    Of whole numbers always. A float that is not smaller than one lets the sum overflow no earlier, and has no part in
    making NaN; other factors and divisors, zero and infinity among them, would give other special values.
    """
    if x.node.kind != "constant":
        return False
    return x.node.dtype.kind in "iu" or (x.node.dtype.kind == "f" and 1 <= abs(x.node.value) < np.inf)


def restored(x: Access, shape: Shape, axes: Sequence[int]) -> Access:
    """Return a reduction with its axes put back, of one element each."""
    kept = [k for k in range(len(shape)) if k not in axes]
    return x.through(tuple([Index(0) if shape[k] == 1 else Index(0, ((k, 1),)) for k in kept]))
