"""Loops that end when a condition says so, or after a number of steps: `while_loop` and `fori_loop`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from wengert.control import loop
from wengert.control.repeated_containers import refuse_changes_to_repeated
from wengert.control.subgraphs import joint_variable, restrict_condition, row_variable
from wengert.control.traced_bodies import (
    CARRIED,
    FlatFunction,
    PairFunction,
    any_staged,
    as_given,
    check_carried,
    check_containers,
    own_leaves,
    start_leaves,
    with_common_constants,
)
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import as_whole, require_callable, require_flag, require_number
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.loop_spec import LoopSpec
from wengert.core.memory.memory_layout import strides_of
from wengert.core.primitives.signatures import called_with
from wengert.core.values.aval import Aval, aval_of, is_number, unite_scalars
from wengert.core.values.dispatch import apply, as_index, conform, is_weak
from wengert.core.values.python_numbers import calculate
from wengert.core.values.recording import has_budget
from wengert.core.values.tensor import Tensor, is_concrete, is_staged, raw
from wengert.errors import DtypeError, ShapeError, UsageError

Function = Callable[..., Any]


class LoopBody(Protocol):
    """Be a function of flat arguments that remembers the containers of what it returned to be carried."""

    structure: Any

    def __call__(self, *leaves: Any) -> list[Any]:
        """Take one step."""


def while_loop(
    cond_fun: Function, body_fun: Function, init_val: Any, *, rows: bool = False, max_rounds: int | None = None
) -> Any:
    """Apply a function to a value again and again while a condition holds.

    Derivatives of any order follow the iterations that really happen, in both modes. Under `vmap` the loop runs until
    all lanes are done, and finished lanes keep their values; while a function is being traced, the loop becomes one
    equation.

    Args:
        cond_fun: tells of a value whether to go on: one boolean.
        body_fun: gives the next value, in the containers, shapes and dtypes of the one before.
        init_val: the first value: arrays, Tensors and numbers in any containers.
        rows: whether `body_fun` gives a pair, of the next value and of what is left behind, as the function of `scan`
            does.
        max_rounds: after how many steps the loop ends in any case. Rows of loops that are being traced, and of lanes
            that end on their own, need it: shapes are known before anything is computed.

    Returns:
        The last value. With `rows` (last value, rows), which have the containers of what was left behind, and one more
        axis in front of each array, as long as there were steps. With `rows` and `max_rounds` (last value, rows,
        count): the rows are `max_rounds` long, and those from `count` on, the number of steps, are zero.

    Raises:
        UsageError: `body_fun` returned other containers, or the number of rows is not known.
        ShapeError: it changed a shape, or the condition is not one value.
        DtypeError: it changed a dtype, or the condition is a float.

    >>> import wengert as wg
    >>> def root(a):
    ...     return while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
    >>> root(9.0), wg.grad(root)(9.0)
    (3.0, 0.16666666666666669)

    >>> def halves(x, most=None):
    ...     return while_loop(lambda x: x > 1.0, lambda x: (x / 2, x), x, rows=True, max_rounds=most)
    >>> halves(6.0)
    (0.75, array([6. , 3. , 1.5]))
    >>> wg.jit(lambda x: halves(x, most=5))(6.0)
    (0.75, array([6. , 3. , 1.5, 0. , 0. ]), 3)
    """
    require_callable("while_loop", cond_fun, "cond_fun")
    require_callable("while_loop", body_fun, "body_fun")
    require_flag("while_loop", rows=rows)
    body_fun = refuse_changes_to_repeated("while_loop", body_fun, (init_val,))
    most = None if max_rounds is None else as_whole("while_loop", "max_rounds", max_rounds, least=0)
    if rows:
        return leave_rows(cond_fun, body_fun, init_val, most)
    if most is None:
        return repeat_while("while_loop", cond_fun, body_fun, init_val)
    count = bound_rounds(cond_fun, most)
    step = FlatFunction("while_loop", body_fun, flatten(init_val)[1])
    return repeat_while("while_loop", count, lambda s: (counted_step(step, s[0]), s[1] + 1), (init_val, 0))[0]


def bound_rounds(cond_fun: Function, most: int) -> Function:
    """Return a condition of states that begin with a value and end with a count."""

    def cond(state: Any) -> Any:
        return np.logical_and(tell_whether(cond_fun, state[0]), state[-1] < most)

    return cond


def tell_whether(cond_fun: Function, value: Any) -> Any:
    """Return what a condition says of a value."""
    return check_condition(called_with("while_loop (cond_fun)", cond_fun, "value", (value,)))


def counted_step(step: LoopBody, value: Any) -> Any:
    """Take a step of a loop that counts; its containers are compared here, where the count is not among them."""
    leaves, structure = flatten(value)
    found = step(*leaves)
    check_containers("while_loop", CARRIED, step.structure, structure)
    return unflatten(structure, found)


def leave_rows(cond_fun: Function, body_fun: Function, init_val: Any, most: int | None) -> Any:
    """Do what `while_loop` does with rows: step by step if that can be, else with all rows carried."""
    leaves, structure = carried_leaves("while_loop", init_val)
    step = PairFunction("while_loop", "body_fun", "value", body_fun, [(structure, len(leaves))], leaves)
    found = collect_rows(cond_fun, step, leaves, structure, most)
    if found is None:
        if most is None:
            given = "rows=True without max_rounds in a function that is being traced, or in lanes of `vmap`"
            needed = "the most rows there can be are needed, since shapes are known before anything is computed"
            raise UsageError("while_loop", given, needed, "Pass max_rounds; the count comes with the rows")
        return leave_rows_of_graph(cond_fun, step, leaves, structure, most)
    carried, left = found
    length = len(left) if most is None else most
    if left:
        rows = [pad_rows(np.stack(column), length) for column in zip(*left, strict=True)]
    else:
        rows = empty_rows(graph_of_step(step, leaves, structure)[1], len(leaves), length)
    tensors = any(type(x) is Tensor for x in leaves)
    result = finish_loop(structure, carried, leaves), unflatten(step.left, [as_given(x, tensors) for x in rows])
    return result if most is None else (*result, len(left))


def leave_rows_of_graph(
    cond_fun: Function, step: PairFunction, leaves: Sequence[Any], structure: Any, most: int
) -> tuple[Any, Any, Any]:
    """Carry all rows, by the graph that told what they are, so that the function is traced once."""
    examples, graph, constants = graph_of_step(step, leaves, structure)
    first = unflatten(structure, [conform(x, example.aval) for x, example in zip(leaves, examples, strict=True)])
    body = RowWriter(lambda *xs: evaluate(graph, [*constants, *xs]), structure, len(leaves))
    start = first, empty_rows(graph, len(leaves), most), 0
    last, rows, count = repeat_while("while_loop", bound_rounds(cond_fun, most), body, start)
    return last, unflatten(step.left, rows), count


def collect_rows(
    cond_fun: Function, step: PairFunction, leaves: Sequence[Any], structure: Any, most: int | None
) -> tuple[list[Any], list[list[Any]]] | None:
    """Take the steps one by one; return None where it is not known whether to go on."""
    count = len(leaves)
    carried, left = start_leaves(leaves), list[list[Any]]()
    while len(left) != most:
        going = None if any_staged(carried) else tell_whether(cond_fun, unflatten(structure, carried))
        if going is None or not is_concrete(going):
            return None
        if not raw(going):
            break
        found = step(*carried)
        if any_staged(found):
            return None
        if left:
            check_rows("while_loop", left[0], found[count:])
        else:
            check_carried("while_loop", carried, found[:count], find_weak(leaves))
        carried = start_leaves(found[:count])
        left.append(own_leaves(found[count:]))
    return carried, left


def check_rows(name: str, first: Sequence[Any], found: Sequence[Any]) -> None:
    """Raise unless what a step leaves behind has the shapes of what the first one left."""
    shapes = tuple([aval_of(x).shape for x in first]), tuple([aval_of(x).shape for x in found])
    if shapes[0] != shapes[1]:
        one, other = (", ".join(map(str, x)) or "nothing" for x in shapes)
        given = f"the body left behind shape {other} where it had left {one}"
        raise ShapeError(name, given, "rows of one shape are needed", "Carry what changes its shape")


def graph_of_step(
    step: PairFunction, leaves: Sequence[Any], structure: Any
) -> tuple[list[Variable], Graph, list[Tensor]]:
    """Return what a step carries, its graph, and what that reads besides."""
    examples = [Variable.of(aval_of(x), "", strides_of(x)) for x in leaves]
    examples, (graph,), constants = carried_graphs("while_loop", step, None, examples, [], structure, find_weak(leaves))
    return examples, graph, constants


def empty_rows(graph: Graph, carried: int, length: int) -> list[Any]:
    """Return zeros in place of rows, of which the graph of a step tells what they are."""
    return [np.zeros((length, *x.shape), x.dtype) for x in map(aval_of, graph.outputs[carried:])]


def pad_rows(rows: Any, length: int) -> Any:
    """Return rows with zeros after them."""
    if len(rows) == length:
        return rows
    return np.concatenate([rows, np.zeros((length - len(rows), *rows.shape[1:]), rows.dtype)])


class RowWriter:
    """Be the body of a loop that carries a value, the rows that it leaves behind, and how many these are."""

    def __init__(self, step: Callable[..., Sequence[Any]], structure: Any, leaves: int) -> None:
        self.step = step
        self.structure = structure
        self.leaves = leaves

    def __call__(self, state: Any) -> Any:
        """Take one step."""
        value, rows, count = state
        found = self.step(*flatten(value)[0])
        for row, y in zip(rows, found[self.leaves :], strict=True):
            row[count] = y
        return unflatten(self.structure, found[: self.leaves]), rows, count + 1


def repeat_while(name: str, cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    """Do what `while_loop` does, under the name of the public function."""
    leaves, structure = carried_leaves(name, init_val)
    body = FlatFunction(name, body_fun, structure, shared=leaves)
    carried = start_leaves(leaves)
    first = True

    def cond(*xs: Any) -> list[Any]:
        return [check_condition(called_with("while_loop (cond_fun)", cond_fun, "value", (unflatten(structure, xs),)))]

    while True:
        active = None if any_staged(carried) or has_budget() else restrict_condition(cond(*carried)[0])
        if active is None or is_staged(active):
            return unflatten(structure, loop_equation(name, body, cond, leaves, structure))
        if not np.any(raw(active)):
            return finish_loop(structure, carried, leaves)
        found = (
            body(*carried)
            if is_concrete(active)
            else loop.step_lanes(lambda xs: body(*start_leaves(xs)), active, carried, slice(0, len(carried)))
        )
        if first or body.structure != structure:
            check_containers(name, CARRIED, body.structure, structure)
            check_carried(name, carried, found, find_weak(leaves))
        carried, first = start_leaves(found), False


def carried_leaves(name: str, init_val: Any) -> tuple[list[Any], Any]:
    """Return the leaves of what a loop carries, which must be numbers and arrays, and its containers."""
    leaves, structure = flatten(init_val)
    for leaf in leaves:
        require_number(name, "a leaf of init_val", leaf)
    return leaves, structure


def check_condition(value: Any) -> Any:
    """Return what a condition gave, which must be one boolean."""
    aval = require_number("while_loop", "what cond_fun returned", value)
    if aval.shape != ():
        given = f"cond_fun returned shape {aval.shape}"
        needed = "one boolean, of shape (), is needed"
        raise ShapeError("while_loop", given, needed, "Reduce it, with .any() or .all() for instance")
    if aval.dtype.kind in "fc":  # what a step gives, if the two functions were swapped: such a loop may never end
        remedy = "Compare it, with x != 0 for instance; the condition is the first function, the step the second"
        raise DtypeError("while_loop", f"cond_fun returned dtype {aval.dtype}", "one boolean is needed", remedy)
    return value if aval.dtype.kind == "b" else value != 0


def find_weak(leaves: Sequence[Any]) -> list[bool]:
    """Return which leaves are Python numbers, whose dtype gives way."""
    return list(map(is_weak, leaves))


def finish_loop(structure: Any, carried: Sequence[Any], leaves: Sequence[Any]) -> Any:
    """Return the last carried values in the containers, and as Tensors or arrays, that the first ones came in."""
    tensors = any(type(leaf) is Tensor for leaf in leaves)
    return unflatten(structure, [as_given(leaf, tensors) for leaf in carried])


def loop_equation(
    name: str,
    body: LoopBody,
    cond: Callable[..., list[Any]] | None,
    leaves: Sequence[Any],
    structure: Any,
    *,
    length: int | None = None,
    sequences: Sequence[Any] = (),
    reverse: bool = False,
) -> Sequence[Any]:
    """Write a loop down as one equation; return its results.

    Args:
        name: the public function.
        body: the function of what is carried and of one element of each sequence.
        cond: the condition; None where the length is known.
        leaves: what is carried at first.
        structure: its containers.
        length: the number of iterations.
        sequences: arrays that the iterations read one after the other.
        reverse: whether from their ends.
    """
    starts = [leaf if isinstance(leaf, Tensor) or is_number(leaf) else np.asarray(leaf)[()] for leaf in leaves]
    examples = [Variable.of(aval_of(x), "", strides_of(x)) for x in starts]
    rows = list(map(row_variable, sequences))
    examples, graphs, constants = carried_graphs(name, body, cond, examples, rows, structure, find_weak(leaves))
    results: Sequence[Any] = apply(
        loop.scan_loop if cond is None else loop.while_loop,
        *constants,
        *(conform(x, example.aval) for x, example in zip(starts, examples, strict=True)),
        *sequences,
        body=graphs[0],
        cond=None if cond is None else graphs[1],
        spec=LoopSpec(len(constants), len(starts), length, reverse),
    )
    return results


def carried_graphs(
    name: str,
    body: LoopBody,
    cond: Callable[..., list[Any]] | None,
    examples: list[Variable],
    rows: list[Variable],
    structure: Any,
    weak: Sequence[bool],
) -> tuple[list[Variable], list[Graph], list[Tensor]]:
    """Trace a body and a condition.

    Python numbers that a loop starts from take the dtype that the body gives them; arrays lie in memory as the first
    ones do, or as those that the body gives.

    Args:
        name: the public function.
        body: the function of what is carried and of an element of each sequence.
        cond: the condition; None where the length is known.
        examples: of what is carried at first.
        rows: of what the body receives besides.
        structure: the containers of what is carried.
        weak: which leaves may change their dtype.
    """
    functions: list[Callable[..., list[Any]]] = [body] if cond is None else [body, cond]
    graphs, constants = with_common_constants(functions, [[*examples, *rows], examples][: len(functions)], name)
    check_containers(name, CARRIED, body.structure, structure)
    ends = graphs[0].outputs[: len(examples)]
    avals, found = [x.aval for x in examples], list(map(aval_of, ends))
    check_carried(name, examples, ends, weak, graphs[0])
    joint = [joint_variable(pair) if pair[0].shape else pair[0] for pair in zip(examples, ends, strict=True)]
    if found == avals and [x.strides for x in joint] == [x.strides for x in examples]:
        return examples, graphs, constants
    grown = [unite_scalars(a, b) if a.weak else a for a, b in zip(avals, found, strict=True)]
    next_body = ConformingBody(body, avals) if grown == avals != found else body
    examples = [Variable.of(a, "", x.strides) for a, x in zip(grown, joint, strict=True)]
    return carried_graphs(name, next_body, cond, examples, rows, structure, [a.weak for a in grown])


class ConformingBody:
    """Be a body that gives what a loop carries: a Python number in place of an array without axes, or the reverse."""

    def __init__(self, body: LoopBody, avals: Sequence[Aval]) -> None:
        self.body = body
        self.avals = avals
        self.structure: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Take one step."""
        found = self.body(*leaves)
        self.structure = self.body.structure
        count = len(self.avals)
        return [*map(conform, found[:count], self.avals), *found[count:]]


def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """Apply a function to a value once for each integer of a range.

    Args:
        lower: the first integer.
        upper: the integer after the last; where it is not larger, nothing happens.
        body_fun: `body_fun(i, value)` gives the next value, in the containers, shapes and dtypes of the one before.
        init_val: the first value.

    Returns:
        The last value.

    Raises:
        UsageError: `body_fun` returned other containers.
        ShapeError: it changed a shape.
        DtypeError: it changed a dtype, or a bound is not an integer.

    >>> import wengert as wg
    >>> wg.grad(lambda x: fori_loop(0, 3, lambda i, y: y * x, 1.0))(2.0)
    12.0
    """
    require_callable("fori_loop", body_fun, "body_fun")
    body_fun = refuse_changes_to_repeated("fori_loop", body_fun, (lower, init_val))
    for bound in (lower, upper):
        shape, dtype, _ = require_number("fori_loop", "a bound", bound)
        if dtype.kind not in "iu" or shape != ():
            given = f"a bound of dtype {dtype}" if shape == () else f"a bound of shape {shape}"
            raise DtypeError("fori_loop", given, "an integer is needed", "Convert it")
    if not (is_concrete(lower) and is_concrete(upper)):
        start = (init_val, as_index(lower), as_index(upper))
        return repeat_while(
            "fori_loop", lambda s: s[1] < s[2], lambda s: (take_step(body_fun, s[1], s[0]), s[1] + 1, s[2]), start
        )[0]
    first, last = int(raw(lower)), int(raw(upper))
    leaves, structure = carried_leaves("fori_loop", init_val)
    carried = start_leaves(leaves)
    body = FlatFunction("fori_loop", body_fun, structure, leading=1, shared=leaves)
    if first < last and (any_staged(carried) or has_budget()):
        return stage_counted_loop(first, last, body_fun, init_val)
    for i in range(first, last):
        found = body(i, *carried)
        if any_staged(found):
            return stage_counted_loop(first, last, body_fun, init_val)
        if i == first or body.structure != structure:
            check_containers("fori_loop", CARRIED, body.structure, structure)
            check_carried("fori_loop", carried, found, find_weak(leaves))
        carried = start_leaves(found)
    return finish_loop(structure, carried, leaves)


def take_step(body_fun: Function, i: Any, value: Any) -> Any:
    """Take one step of a loop over integers; its containers are compared here, where the counter is not among them."""
    found = called_with("fori_loop (body_fun)", body_fun, "i, value", (i, value))
    check_containers("fori_loop", CARRIED, flatten(found)[1], flatten(value)[1])
    return found


def stage_counted_loop(first: int, last: int, body_fun: Function, init_val: Any) -> Any:
    """Write a loop of known length down as one equation; the counter comes last, as errors count values."""
    first, last = [calculate("fori_loop", operator.pos, np.positive, (n,)) for n in (first, last)]
    leaves, structure = flatten((init_val, first))
    step = FlatFunction("fori_loop", lambda s: (take_step(body_fun, s[1], s[0]), s[1] + 1), structure, shared=leaves)
    return unflatten(structure, loop_equation("fori_loop", step, None, leaves, structure, length=last - first))[0]
