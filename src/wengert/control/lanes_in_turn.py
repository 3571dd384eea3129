"""Calls whose lanes run one after the other: iterations of many steps, whose data of one lane stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.control.branch import Params
from wengert.control.call import CallPrimitive, stage_call
from wengert.control.scan import scan
from wengert.core.containers.tree_leaves import flatten
from wengert.core.primitives.primitive import register
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged


class CallInTurn(CallPrimitive):
    """Run a graph; for the lanes of a batch in turn, each to its own end."""

    def lanes(self, size: int, values: Sequence[Any], batched: Sequence[bool], params: Params) -> Any:
        """Run the graph lane by lane."""

        def run(_: Any, lane: Sequence[Any]) -> Any:
            own = iter(lane)
            given = [next(own) if flag else x for x, flag in zip(values, batched, strict=True)]
            return 0, tuple(apply(self, *given, **params))

        if not any(batched):
            return apply(self, *values, **params), [False] * len(params["graph"].outputs)
        found = scan(run, 0, tuple(x for x, flag in zip(values, batched, strict=True) if flag), length=size)[1]
        return found, [True] * len(found)


call_in_turn = CallInTurn("call_in_turn")
register(call_in_turn)


def run_lanes_in_turn(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of arrays; while it is traced, as one equation whose lanes run in turn."""
    leaves, structure = flatten(args)
    staged = [is_staged(leaf) for leaf in leaves]
    if not any(staged):
        return function(*args)
    return stage_call(call_in_turn, function, lambda given: function(*given), leaves, structure, staged)
