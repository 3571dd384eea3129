"""Variants of entries: how native code is called for arguments of some kinds, where one program is all of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph
from wengert.native.entries.callee import Callee
from wengert.native.entries.entry import Variant
from wengert.native.entries.kinds import (
    MANY_LEAVES,
    ArrayKind,
    Beside,
    ContainerKind,
    Kind,
    PlaceKind,
    leaves,
    with_leaves,
)
from wengert.passes.segments import kind_for, result_kind


def variant_of(
    callee: Callee,
    graph: Graph,
    arguments: Sequence[Kind | None],
    names: Sequence[str],
    arranged: Callable[[Sequence[Kind]], Kind | None] | None,
    beside: Beside,
) -> Variant | None:
    """Return the variant that calls the program of a graph; None if kernels do not read or write these kinds.

    Args:
        callee: the program.
        graph: the graph.
        arguments: the kinds of the entry's arguments; None for those that have none.
        names: of those that are given by name, the last ones.
        arranged: gives the kind of the result for those of the outputs; a tuple of them, if there is none.
        beside: what else is read and written; the last outputs are those that donated arguments get.

    Raises:
        UnavailableError: there are no variants here.
    """
    known = known_kinds([*arguments, *[kind for _, kind in beside.captured]])
    results = known_kinds(list(map(result_kind, graph.outputs)))
    if known is None or results is None:
        return None
    visible = len(results) - len(beside.donated)
    result = arranged(results[:visible]) if arranged else ContainerKind(tuple, tuple(results[:visible]))
    more = [kind for kind in results[visible:] if isinstance(kind, ArrayKind)]
    given = given_kinds(known, graph.inputs)
    if result is None or given is None or len(list(leaves([*given, result, *more]))) > MANY_LEAVES:
        return None
    inputs = list(leaves(given))
    if [inputs[place] for place, _ in beside.donated] != results[visible:]:
        return None
    first, copied = len(list(leaves((result,)))), []
    for place, k in beside.donated:
        if (place, first + k) in callee.overwritten:
            more[k] = PlaceKind(more[k], place)
        else:
            copied.append((place, k))
    captured = tuple(zip([x for x, _ in beside.captured], given[len(arguments) :], strict=True))
    around = beside.replace(captured=captured, donated=tuple(copied))
    return Variant(given[: len(arguments)], result, callee, names, around, more)


def known_kinds(kinds: Sequence[Kind | None]) -> list[Kind] | None:
    """Return kinds if all are known."""
    known = [kind for kind in kinds if kind is not None]
    return known if len(known) == len(kinds) else None


def given_kinds(kinds: Sequence[Kind], variables: Sequence[Variable]) -> list[Kind] | None:
    """Return the kinds of what kernels get for variables where arguments of some kinds are given, if they suit."""
    parts = list(leaves(kinds))
    if len(parts) != len(variables):
        return None
    found = known_kinds(list(map(kind_for, variables, parts)))
    return None if found is None else with_leaves(kinds, iter(found))
