"""Calls whose lanes run some at a time: iterations of many steps, whose data of few lanes stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.branch import Params
from wengert.control.call import CallPrimitive, stage_call
from wengert.control.scan import scan
from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.primitives.primitive import register
from wengert.core.values.aval import shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged


class CallInBlocks(CallPrimitive):
    """Run a graph; for the lanes of a batch `most` at a time, each block to its own end."""

    def run(self, *operands: Any, graph: Graph, name: str, most: int = 1) -> tuple[Any, ...]:
        """Evaluate the graph."""
        return evaluate(graph, operands)

    def lanes(self, size: int, values: Sequence[Any], batched: Sequence[bool], params: Params) -> Any:
        """Run the graph block by block; the last lane fills up the last one."""
        if not any(batched) or size <= params["most"] > 1:
            return super().lanes(size, values, batched, params)
        count = -(-size // params["most"])
        length = -(-size // count)

        def run(_: Any, block: Sequence[Any]) -> Any:
            own = iter(block)
            given = [next(own) if flag else x for x, flag in zip(values, batched, strict=True)]
            if length == 1:
                return 0, tuple(apply(self, *given, **params))
            found, flags = CallPrimitive.lanes(self, length, given, batched, params)
            parts = zip(found, flags, strict=True)
            return 0, tuple(x if flag else np.broadcast_to(x, (length, *shape_of(x))) for x, flag in parts)

        blocks = [in_blocks(x, count, length) for x, flag in zip(values, batched, strict=True) if flag]
        found = scan(run, 0, tuple(blocks), length=count)[1]
        if length > 1:
            found = [np.reshape(x, (count * length, *shape_of(x)[2:]))[:size] for x in found]
        return found, [True] * len(found)


def in_blocks(x: Any, count: int, length: int) -> Any:
    """Return the lanes of an array as so many blocks, or as they are if each is one."""
    if length == 1:
        return x
    rest = shape_of(x)[1:]
    more = count * length - shape_of(x)[0]
    whole = np.concatenate([x, np.broadcast_to(x[-1:], (more, *rest))]) if more else x
    return np.reshape(whole, (count, length, *rest))


call_in_blocks = CallInBlocks("call_in_blocks")
register(call_in_blocks)


def run_lanes_in_blocks(function: Callable[..., Any], most: int, *args: Any) -> Any:
    """Call a function of arrays; while it is traced, as one equation whose lanes run at most so many at a time."""
    leaves, structure = flatten(args)
    staged = [is_staged(leaf) for leaf in leaves]
    if not any(staged):
        return function(*args)
    params = {"most": most}
    return stage_call(call_in_blocks, function, lambda given: function(*given), leaves, structure, staged, params)
