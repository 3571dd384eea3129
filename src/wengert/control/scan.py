"""Loops over the elements of arrays: `scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from wengert.control.repeated_containers import refuse_changes_to_repeated
from wengert.control.traced_bodies import PairFunction, any_staged, as_given, check_carried, own_leaves, start_leaves
from wengert.control.while_loop import check_rows, find_weak, loop_equation
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import as_whole, require_callable, require_flag, require_number
from wengert.core.values.recording import has_budget
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError

C = TypeVar("C")
"""What is carried: by what the function gives, as a first value made in place has a narrower type for checkers."""


def scan(
    f: Callable[[Any, Any], tuple[C, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[C, Any]:
    """Apply a function to a carried value and each element of arrays in turn, and stack what it leaves behind.

    Args:
        f: `f(carried, x)` gives (next carried value, y); the carried value keeps containers, shapes and dtypes.
        init: the first carried value.
        xs: arrays of equal length along axis 0, in any containers; None for none.
        length: the number of steps, needed where there are no `xs`.
        reverse: whether to go from the last element to the first; results keep their places.
        unroll: True, or a number not below that of the steps, writes all of them out where the call is traced, so
            that the graph has no loop; fewer leave the loop as it is. It changes no result.

    Returns:
        (last carried value, ys), where `ys` has the containers of y and one more axis in front of each array.

    Raises:
        UsageError: `f` does not return a pair or changed the containers, or no length is known.
        ShapeError: lengths differ, or `f` changed the shape of the carried value.
        DtypeError: `f` changed its dtype.

    >>> total, sums = scan(lambda s, x: (s + x, s + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(total), sums
    (6.0, array([1., 3., 6.]))
    """
    require_callable("scan", f)
    require_flag("scan", reverse=reverse)
    f = refuse_changes_to_repeated("scan", f, (init,))
    unroll = unroll is True or as_whole("scan", "unroll", unroll, least=1)
    length = None if length is None else as_whole("scan", "length", length, least=0)
    leaves, structure = flatten(init)
    items, elements = flatten(xs)
    for x in (*leaves, *items):
        require_number("scan", "a leaf of init or xs", x)
    arrays = [x if isinstance(x, Tensor) else np.asarray(x) for x in items]
    steps = common_length(arrays, length)
    step = PairFunction("scan", "f", "carried, x", f, [(structure, len(leaves)), (elements, len(items))], leaves)
    given = (*leaves, *arrays)
    results: Sequence[Any] | None = None
    whole = unroll is True or unroll >= steps
    if steps > 0 and (whole or not (any_staged(given) or has_budget())):
        results = take_steps(step, leaves, arrays, steps, reverse, whole)
    if results is None:  # the function is being traced, or its results have to be known without a step
        results = loop_equation("scan", step, None, leaves, structure, length=steps, sequences=arrays, reverse=reverse)
    tensors = any(type(x) is Tensor for x in given)
    found = [as_given(x, tensors) for x in results]
    return unflatten(structure, found[: len(leaves)]), unflatten(step.left, found[len(leaves) :])


def common_length(arrays: Sequence[Any], length: int | None) -> int:
    """Return the number of steps."""
    if any(x.ndim == 0 for x in arrays):
        needed, action = "arrays with at least one axis are needed", "Carry it, or make an array of a list of numbers"
        raise ShapeError("scan", "xs with an array of shape ()", needed, action)
    found = sorted({*(x.shape[0] for x in arrays), *(() if length is None else (length,))})
    if not found:
        raise UsageError("scan", "neither xs nor a length", "one of them is needed", "Pass length=")
    if len(found) > 1:
        given = f"lengths {' and '.join(map(str, found))}"
        raise ShapeError("scan", given, "one length of all xs along axis 0 is needed", "Cut them to the same length")
    return int(found[0])


def take_steps(
    step: PairFunction, leaves: Sequence[Any], arrays: Sequence[Any], steps: int, reverse: bool, whole: bool
) -> list[Any] | None:
    """Take the steps one by one; return None where the function turns out to be traced, unless `whole`."""
    carried, sources = start_leaves(leaves), start_leaves(arrays)
    left: list[list[Any]] = []
    places = range(steps - 1, -1, -1) if reverse else range(steps)
    for i in places:
        found = step(*carried, *(x[i] for x in sources))
        if any_staged(found) and not whole:
            return None
        if i == places[0]:
            check_carried("scan", carried, found[: len(leaves)], find_weak(leaves))
        else:
            check_rows("scan", left[0], found[len(leaves) :])
        carried = start_leaves(found[: len(leaves)])
        left.append(own_leaves(found[len(leaves) :]))
    if reverse:
        left.reverse()
    return [*carried, *(np.stack(column) for column in zip(*left, strict=True))]
