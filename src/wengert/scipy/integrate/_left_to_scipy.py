"""Integrations by SciPy itself, of functions that no graph can have: they look at numbers, or keep a list of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wengert.core.containers.tree_leaves import flatten
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError
from wengert.implicit.attaching import reaches_traced
from wengert.support.refusals import forgive, refusal_count


def integrate_or_leave_to_scipy(
    name: str, traced: Callable[[], Any], functions: Sequence[Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Return what an integration by a graph gives; SciPy's of arrays whose functions cannot be traced.

    Args:
        name: the public function, which SciPy has, too.
        traced: integrates by a graph.
        functions: the user's among the arguments, with None among them.
        args: the arguments for SciPy.
        keywords: those by name.

    Raises:
        GraphError: functions cannot be traced, and derivatives are being taken, or lanes or graphs made.
    """
    before = refusal_count()
    try:
        return traced()
    except GraphError:
        if any(type(x) is Tensor for x in flatten((args, keywords))[0]):
            raise
        if any(reaches_traced(name, function) for function in functions if callable(function)):
            raise
    forgive(before)
    from scipy import integrate  # which takes 50 ms

    return getattr(integrate, name)(*args, **keywords)
