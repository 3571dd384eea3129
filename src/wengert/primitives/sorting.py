"""Sorting, searching and set operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.abstract import unknown_shape
from wengert.core.batching import along, lead
from wengert.core.declare import constant, opaque
from wengert.core.dispatch import apply
from wengert.core.primitive import Primitive


def ranks(x: Any, axis: int) -> Any:
    """Return the places that the elements take when sorted along an axis; the inverse of `argsort`."""
    return np.argsort(np.argsort(x, axis=axis, kind="stable"), axis=axis, kind="stable")


def transfer(t: Any, source: Any, target: Any, axis: int) -> Any:
    """Move what belongs to the elements of `source` to the same elements where `target` has them.

    Both hold the same elements along the axis, in different orders; equal elements keep their order.
    """
    t = np.take_along_axis(t, np.argsort(source, axis=axis, kind="stable"), axis)
    return np.take_along_axis(t, ranks(target, axis), axis)


def rearranged_vjp(ct: Any, out: Any, x: Any, *, axis: int, **_options: Any) -> Any:
    """Give each element the cotangent of the place that it went to."""
    return transfer(ct, out, x, axis)


def rearranged_jvp(tangents: Any, out: Any, x: Any, *, axis: int, **_options: Any) -> Any:
    """Let the tangents follow their elements."""
    return transfer(tangents[0], x, out, axis)


sort = opaque("sort", np.sort, vjp=rearranged_vjp, jvp=rearranged_jvp, steps=along("axis"))
partition = opaque("partition", np.partition, vjp=rearranged_vjp, jvp=rearranged_jvp, steps=along("axis"))

argsort = constant("argsort", np.argsort, steps=along("axis"))
argpartition = constant("argpartition", np.argpartition, steps=along("axis"))


def batch_keys(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]
) -> Any:
    """Sort by the keys of every lane; the axis is counted from the back."""
    return apply(primitive, *(lead(x, flag, size) for x, flag in zip(operands, batched, strict=True)), **params)


lexsort = constant("lexsort", lambda *keys, axis: np.lexsort(keys, axis=axis), batch=batch_keys)
argmax = constant("argmax", np.argmax, steps=along("axis"))
argmin = constant("argmin", np.argmin, steps=along("axis"))
nanargmax = constant("nanargmax", np.nanargmax, steps=along("axis"))
nanargmin = constant("nanargmin", np.nanargmin, steps=along("axis"))


def search(a: Any, v: Any, *sorter: Any, side: Any) -> Any:
    """Evaluate `searchsorted`, with or without a sorter."""
    return np.searchsorted(a, v, side, *sorter)


def batch_look_up(position: int) -> Any:
    """Return the batch rule of a search that treats each element of one operand alike: in one go, or lane by lane."""

    def batch(
        primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]
    ) -> Any:
        if sum(batched) == batched[position]:
            return apply(primitive, *operands, **params)
        lanes = [[x[i] if flag else x for x, flag in zip(operands, batched, strict=True)] for i in range(size)]
        return np.stack([apply(primitive, *lane, **params) for lane in lanes])

    return batch


searchsorted = constant("searchsorted", search, batch=batch_look_up(1))
digitize = constant("digitize", np.digitize, batch=batch_look_up(0))
isin = constant("isin", np.isin, batch=batch_look_up(0))


def first_occurrences(x: Any, *, axis: int | None, equal_nan: bool) -> tuple[Any, Any, Any]:
    """Return, for each of the distinct elements in order: its first index, the inverse of all, and its count."""
    _, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan
    )
    return first, inverse, counts


unique = constant(
    "unique",
    first_occurrences,
    outputs=3,
    abstract=unknown_shape("unique", "Find the distinct elements outside of the traced function", first_occurrences),
)
