"""Branches: `cond` and `switch`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import contents_before, find_writes, require_apart
from wengert.control.branch import branch, choose_lanes
from wengert.control.repeated_containers import watch_repeated
from wengert.control.subgraphs import trace_closed
from wengert.control.traced_bodies import (
    FlatFunction,
    any_staged,
    check_alike,
    own_results,
    start_leaves,
    with_common_constants,
)
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_number, shown
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.primitives.signatures import called_with
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply, conform
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.tensor import Tensor, is_concrete, is_staged, raw
from wengert.errors import DtypeError, ShapeError, UsageError

Function = Callable[..., Any]


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """Return what one of two functions gives for the operands.

    Under `vmap`, where the predicate may differ between lanes, both are run and their results selected; while a
    function is being traced, both become graphs of one equation.

    Args:
        pred: one boolean; a number counts as true unless it is zero.
        true_fun: called with the operands if it is true.
        false_fun: called otherwise; its results have the same containers, shapes and dtypes.
        *operands: arrays, Tensors and numbers in any containers.

    Returns:
        The function's result.

    Raises:
        UsageError: the functions return different containers.
        ShapeError: shapes of their results differ, or the predicate is not one value.
        DtypeError: dtypes of their results differ.

    >>> import wengert as wg
    >>> wg.grad(lambda x: cond(x > 0, lambda x: x**2, lambda x: -x, x))(3.0)
    6.0
    """
    require_callable("cond", true_fun, "true_fun")
    require_callable("cond", false_fun, "false_fun")
    check_scalar("cond", "predicate", pred)
    if is_concrete(pred):
        chosen = (true_fun, "true_fun") if bool(raw(pred)) else (false_fun, "false_fun")
        return run_branch("cond", *chosen, operands)
    truth = pred if pred.dtype.kind == "b" else pred != 0
    return choose("cond", truth, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Return what one of several functions gives for the operands.

    Args:
        index: which one, an integer; values beyond either end choose the first or last.
        branches: functions of the operands, whose results have the same containers, shapes and dtypes.
        *operands: arrays, Tensors and numbers in any containers.

    Returns:
        The function's result.

    Raises:
        UsageError: there are no functions, or they return different containers.
        ShapeError: shapes of their results differ, or the index is not one value.
        DtypeError: dtypes of their results differ, or the index is not an integer.

    >>> import wengert as wg
    >>> wg.grad(lambda x: switch(2, [np.sin, np.cos, np.exp], x))(0.0)
    1.0
    """
    if not isinstance(branches, list | tuple) or not branches:
        given = "no branches" if isinstance(branches, list | tuple) else f"{shown(branches)} as the branches"
        raise UsageError("switch", given, "a list with at least one function is needed", "Pass a list")
    functions = tuple(branches)
    for i, function in enumerate(functions):
        require_callable("switch", function, f"branch {i}")
    check_scalar("switch", "index", index)
    if aval_of(index).dtype.kind not in "iu":
        raise DtypeError("switch", f"an index of dtype {aval_of(index).dtype}", "an integer is needed", "Convert it")
    if is_concrete(index):
        place = min(max(int(raw(index)), 0), len(functions) - 1)
        return run_branch("switch", functions[place], f"branch {place}", operands)
    wide = index if index.dtype.itemsize > 1 else index.astype(np.intp)  # 8 bits may have no room for their number
    clipped = np.clip(wide, 0, len(functions) - 1)
    return choose("switch", clipped, functions, [f"branch {i}" for i in range(len(functions))], operands)


def check_scalar(name: str, what: str, value: Any) -> None:
    """Raise unless a value is one."""
    if require_number(name, f"the {what}", value).shape != ():
        action = "Reduce it, with .any() or .all() for instance, or choose element by element with wengert.numpy.where"
        raise ShapeError(name, f"a {what} of shape {aval_of(value).shape}", "one value, of shape (), is needed", action)


def call_branch(name: str, own: str, function: Function, given: Sequence[Any], operands: Sequence[Any]) -> Any:
    """Call one of the functions with the operands, which stand for those that were given."""
    with watch_repeated(name, (given, {}), (operands, {})):
        return called_with(f"{name} ({own})", function, "*operands", operands)


def run_branch(name: str, function: Function, own: str, operands: Sequence[Any]) -> Any:
    """Call the function that has been chosen."""
    leaves, structure = flatten(tuple(operands))
    inside = start_leaves(leaves)
    before = contents_before(inside)
    found, result_structure = leaves_of_result(call_branch(name, own, function, operands, unflatten(structure, inside)))
    require_apart(name, leaves, find_writes(inside, before))
    tensors = any(type(leaf) is Tensor for leaf in leaves)
    return unflatten(result_structure, own_results(found, tensors if leaves else None))


def choose(name: str, index: Any, functions: Sequence[Function], names: Sequence[str], operands: Sequence[Any]) -> Any:
    """Call functions with an index that cannot be looked at."""
    leaves, structure = flatten(tuple(operands))
    for leaf in leaves:
        require_number(name, "an operand", leaf)
    calls = [functools.partial(call_branch, name, own, f, operands) for own, f in zip(names, functions, strict=True)]
    flat = [FlatFunction(name, call, structure, shared=leaves, in_order=True) for call in calls]
    if is_staged(index) or any_staged(leaves):
        return stage_choice(name, index, flat, names, leaves)
    results = choose_lanes(with_compared_results(name, flat, names), index, leaves)
    return unflatten(flat[0].structure, own_results(results))


def stage_choice(
    name: str, index: Any, functions: Sequence[FlatFunction], names: Sequence[str], leaves: Sequence[Any]
) -> Any:
    """Write a choice down as one equation."""
    graphs, constants = with_common_constants(functions, [leaves] * len(functions), name)
    first = functions[0].structure
    for own, function, graph in zip(names, functions, graphs, strict=True):
        check_alike(name, (names[0], own), (first, function.structure), (graphs[0].outputs, graph.outputs))
    graphs = unify_weakness(graphs)
    return unflatten(first, apply(branch, index, *constants, *leaves, branches=tuple(graphs)))


def unify_weakness(graphs: Sequence[Graph]) -> list[Graph]:
    """Return graphs whose outputs are Python numbers everywhere or nowhere."""
    columns = zip(*([aval_of(x) for x in graph.outputs] for graph in graphs), strict=True)
    wanted = [column[0] if all(a.weak for a in column) else column[0].firm for column in columns]
    if all([aval_of(x) for x in graph.outputs] == wanted for graph in graphs):
        return list(graphs)
    return [
        trace_closed(
            lambda *xs, graph=graph: list(map(conform, evaluate(graph, xs), wanted)),
            graph.inputs,
            "",
        )
        for graph in graphs
    ]


def with_compared_results(
    name: str, functions: Sequence[FlatFunction], names: Sequence[str]
) -> list[Callable[..., list[Any]]]:
    """Return functions that compare what they return with what the first that was called returned."""
    known: list[tuple[str, Any, list[Any]]] = []

    def checking(own: str, function: FlatFunction) -> Callable[..., list[Any]]:
        def call(*xs: Any) -> list[Any]:
            results = function(*start_leaves(xs))
            known.append((own, function.structure, results))
            other, structure, found = known[0]
            check_alike(name, (other, own), (structure, function.structure), (found, results))
            functions[0].structure = structure
            return results

        return call

    return [checking(own, f) for own, f in zip(names, functions, strict=True)]
