"""Batching: `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from wengert.control.argument_aliasing import (
    apart,
    contents_before,
    find_writes,
    own_copies,
    protect_argument,
    require_apart,
)
from wengert.control.repeated_containers import Call, watch_repeated
from wengert.control.scan import scan
from wengert.core.containers.tree_leaves import flatten, flatten_prefix, unflatten, unflatten_each
from wengert.core.diagnostics.argument_checks import as_whole, require_callable, require_number
from wengert.core.diagnostics.store_guard import call_user
from wengert.core.memory.views import current
from wengert.core.values.aval import shape_of
from wengert.core.values.dispatch import plain_array
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.recording import has_ended, next_level
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.support.hints import hint_parameters
from wengert.support.records import NamedTuple
from wengert.traces.batch import Batch, make_batched
from wengert.transforms.boundary import as_given, inner_value, name_of, place_error, result_example
from wengert.transforms.result_checks import require_arrays
from wengert.transforms.transformed_function import Derived, make_transformed

Function = Callable[..., Any]
Computed = tuple[list[Any], list[int | None], Any]
P = ParamSpec("P")
R = TypeVar("R")


@hint_parameters("vmap")
def vmap(fun: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0, *, batch_size: int | None = None) -> Derived[P, R]:
    """Return a function that applies another one to every lane of its arguments at once.

    Args:
        fun: a function of arrays, in any containers.
        in_axes: for each positional argument the axis that counts lanes, or None where all lanes share it; an int
            for all; for containers, the same containers of ints or None, or an int for all their leaves. Keyword
            arguments have theirs in front.
        out_axes: where the results get that axis, in the same form.
        batch_size: how many lanes are computed at once, if all do not fit into memory; the last batch may have fewer.
            All at once by default. Under `jit` the batches are rounds of a `scan`. Each has what all lanes share as it
            was, and if the function writes to that, what the last batch wrote stays.

    Returns:
        A function of the same arguments, each with its extra axis.

    Raises:
        ShapeError: the arguments disagree on the number of lanes, or they or the results lack the axis.
        UsageError: no argument has lanes, or `in_axes` does not fit the arguments.

    >>> vmap(lambda x: x * x.sum())(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 3.,  6.],
           [21., 28.]])
    """
    require_callable("vmap", fun)

    size = None if batch_size is None else as_whole("vmap", "batch_size", batch_size, least=1)
    return cast("Derived[P, R]", make_transformed("vmap", map_lanes, fun, in_axes, out_axes, size))


def map_lanes(fun: Function, in_axes: Any, out_axes: Any, batch_size: int | None, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `vmap` makes gives for arguments."""
    if isinstance(in_axes, list | tuple) and len(in_axes) != len(args):
        given = f"in_axes of length {len(in_axes)} for {len(args)} arguments"
        raise UsageError("vmap", given, "one entry for each is needed", "Pass None for arguments shared by all lanes")
    wanted = in_axes if isinstance(in_axes, list | tuple) else (in_axes,) * len(args)
    leaves: list[Any] = []
    axes: list[int | None] = []
    structures = []
    for prefix, tree in zip((*wanted, *(0 for _ in kwargs)), (*args, *kwargs.values()), strict=True):
        found, structure = flatten(tree)
        leaves += found
        axes += axes_of("in_axes", prefix, structure, tree)
        structures.append((structure, len(found)))
    try:
        size = lane_count(leaves, axes)
    except (DtypeError, ShapeError) as error:
        raise place_error(error, fun, args, kwargs, find_without_lanes(leaves, axes)) from None
    lanes = MappedLanes(fun, (args, kwargs), structures, tuple(kwargs), axes, out_axes)
    if batch_size is None or size <= batch_size:
        values, _, structure = lanes.compute(leaves)
        return unflatten(structure, values)
    start = size - size % batch_size if any(map(is_staged, leaves)) else 0
    joined = JoinedBatches(size)
    if start:
        joined.add(lanes.scan_batches(lanes.part(leaves, 0, start), batch_size, start == size))
    for at in range(start, size, batch_size):
        found = lanes.part(leaves, at, at + batch_size)
        joined.add(lanes.compute(found if at + batch_size >= size else lanes.with_own_shared(found)))
    return joined.result()


class MappedLanes(NamedTuple):
    """Know how a function is called for lanes of its arguments.

    Attributes:
        fun: the function.
        given: its arguments, as they were given.
        structures: the containers of its arguments, and how many leaves each has.
        names: of the arguments given by name, which come last.
        axes: the axis of each leaf that counts lanes.
        out_axes: where the results get it.
    """

    fun: Function
    given: Call
    structures: Sequence[tuple[Any, int]]
    names: tuple[str, ...]
    axes: Sequence[int | None]
    out_axes: Any

    def part(self, leaves: Sequence[Any], start: int, stop: int) -> list[Any]:
        """Return the leaves of some of the lanes."""
        return [
            leaf if axis is None else leaf[(*(slice(None),) * (axis % leaf.ndim), slice(start, stop))]
            for leaf, axis in zip(leaves, self.axes, strict=True)
        ]

    def with_own_shared(self, leaves: Sequence[Any]) -> list[Any]:
        """Return leaves with copies for those that all lanes share: the next batch has them as they were."""
        return [own_copies(leaf) if axis is None else leaf for leaf, axis in zip(leaves, self.axes, strict=True)]

    def scan_batches(self, leaves: Sequence[Any], batch_size: int, is_last: bool) -> Computed:
        """Return what `computed` does, in whole batches, each a round of a loop in the graph.

        If they are the last ones, what the last one wrote to Tensors that all lanes share is written to these.
        """
        fronted = self._replace(axes=[None if axis is None else 0 for axis in self.axes])
        batches = [
            leaf
            if axis is None
            else np.reshape(front := np.moveaxis(leaf, axis, 0), (-1, batch_size, *front.shape[1:]))
            for leaf, axis in zip(leaves, self.axes, strict=True)
        ]
        rows = [x for x, axis in zip(batches, self.axes, strict=True) if axis is not None]
        arrays = [type(x) is Tensor and not x.weak for x in leaves]
        shared = [i for i, axis in enumerate(self.axes) if axis is None and arrays[i]]
        written: dict[int, Any] = {}

        def step(carried: Any, row: Any) -> Any:
            given = iter(row)
            found = [x if axis is None else next(given) for x, axis in zip(batches, self.axes, strict=True)]
            copies = {i: own_copies(found[i]) for i in shared}
            before = [(x._value, x._node) for x in copies.values()]
            values, _, structure = fronted.compute([copies.get(i, x) for i, x in enumerate(found)])
            written.clear()
            for (i, x), (value, node) in zip(copies.items(), before, strict=True):
                if (x._value is not value or x._node is not node) and not has_ended(x._trace):
                    written[i] = x
            return carried, (unflatten(structure, values), list(written.values()))

        result, ends = scan(step, (), rows)[1]
        for i, end in zip(written, ends, strict=True):
            if is_last:
                leaves[i][...] = end[-1]
        found, structure = flatten(result)
        places = axes_of("out_axes", self.out_axes, structure, result)
        return [unbatch(x, place) for x, place in zip(found, places, strict=True)], places, structure

    def compute(self, leaves: Sequence[Any]) -> Computed:
        """Call the function for all lanes of some leaves; return leaves of the result, their axes, and containers."""
        fun, axes = self.fun, self.axes
        size = lane_count(leaves, axes)
        trace = Batch(next_level(), size, functools.partial(name_of, "vmap", fun))
        lanes = [leaf if axis is None else lane(trace, leaf, axis) for leaf, axis in zip(leaves, axes, strict=True)]
        given = unflatten_each(self.structures, lanes)
        count = len(given) - len(self.names)
        before = contents_before(lanes)
        try:
            keywords = dict(zip(self.names, given[count:], strict=True))
            with watch_repeated("vmap", self.given, (given[:count], keywords)):
                result = call_user(fun, given[:count], keywords)
            require_apart("vmap", leaves, find_writes(lanes, before))
            found, out_structure = leaves_of_result(result)
            require_arrays("vmap", found, out_structure)
            places = axes_of("out_axes", self.out_axes, out_structure, result)
            example = result_example([leaf for leaf, axis in zip(leaves, axes, strict=True) if axis is not None])
            values = [
                as_given(gather_lanes(trace, leaf, place), example) for leaf, place in zip(found, places, strict=True)
            ]
        finally:
            trace.end()
        return apart(values, leaves), places, out_structure


def unbatch(value: Any, place: int | None) -> Any:
    """Return results of batches, stacked, as one; the first where all lanes have the same."""
    if place is None:
        return value[0]
    place %= value.ndim - 1
    rows = np.moveaxis(value, 0, place)
    return np.reshape(rows, (*rows.shape[:place], -1, *rows.shape[place + 2 :]))


class JoinedBatches:
    """Join the results of batches of lanes as they come, so that there is never more than all of them, and a batch.

    Args:
        size: the number of all lanes.
    """

    def __init__(self, size: int) -> None:
        self.size, self.start = size, 0
        self.places: list[int | None] = []
        self.structure: Any = None
        self.columns: list[Any] = []

    def add(self, computed: Computed) -> None:
        """Take the results of the next batch; what all lanes have the same is that of the first."""
        values, places, structure = computed
        if not self.columns:
            self.places, self.structure = places, structure
            self.columns = [self.room_for(value, place) for value, place in zip(values, places, strict=True)]
        count = next((np.shape(x)[place] for x, place in zip(values, self.places, strict=True) if place is not None), 0)
        for column, value, place in zip(self.columns, values, self.places, strict=True):
            if isinstance(column, list):
                column.append(value)
            elif place is not None:
                front = np.moveaxis(column, place, 0)
                front[self.start : self.start + count] = np.moveaxis(value, place, 0)
        self.start += count

    def room_for(self, value: Any, place: int | None) -> Any:
        """Return an array for the results of all lanes, or a list of them where elements are not plain numbers."""
        if place is None:
            return value
        if type(value) is not np.ndarray or value.dtype.hasobject:
            return []
        shape = list(value.shape)
        shape[place] = self.size
        return np.empty(shape, value.dtype)

    def result(self) -> Any:
        """Return the results of all lanes."""
        pairs = zip(self.columns, self.places, strict=True)
        joined = [np.concatenate(x, axis=place) if isinstance(x, list) else x for x, place in pairs]
        return unflatten(self.structure, joined)


def find_without_lanes(leaves: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """Return the first leaf that has not got the axis that is to count its lanes; None if all have."""
    for leaf, axis in zip(leaves, axes, strict=True):
        try:
            if axis is not None:
                lane_count([leaf], [axis])
        except (DtypeError, ShapeError):
            return leaf
    return None


def axes_of(name: str, prefix: Any, structure: Any, tree: Any) -> list[int | None]:
    """Return the axis that counts lanes for each leaf of a tree, given in its containers or fewer of them."""
    try:
        axes = flatten_prefix(prefix, structure, tree)
    except ValueError:
        place, given = next(differences(prefix, tree), ("", "other containers"))
        where = f" at {place}" if place else ""
        needed = "the containers of the values, or an int or None in the place of some of them, are needed"
        raise UsageError("vmap", f"{name} with {given}{where}", needed, "Build it like the values") from None
    return [None if axis is None else as_whole("vmap", name, axis) for axis in axes]


def differences(prefix: Any, tree: Any) -> Iterator[tuple[str, str]]:
    """Give where containers differ from those of some values, though they may stop earlier, and how.

    >>> list(differences({"a": [0, None], "b": 0}, {"a": [1.0], "b": (2.0, 3.0)}))
    [("['a']", 'length 2 where there is 1')]
    """
    queue = [("", prefix, tree)]
    while queue:
        place, axes, values = queue.pop(0)
        if axes is None or isinstance(axes, int):
            continue
        if not isinstance(axes, list | tuple | dict) or type(axes) is not type(values):
            yield place, f"a {type(axes).__name__} where there is a {type(values).__name__}"
        elif isinstance(axes, dict) and set(axes) != set(values):
            yield place, f"the keys {list(axes)} where there are {list(values)}"
        elif len(axes) != len(values):
            yield place, f"length {len(axes)} where there is {len(values)}"
        else:
            keys = axes if isinstance(axes, dict) else range(len(axes))
            queue += [(f"{place}[{key!r}]", axes[key], values[key]) for key in keys]


def lane_count(leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
    """Return the number of lanes, on which all arguments must agree."""
    counts = set()
    for leaf, axis in zip(leaves, axes, strict=True):
        if axis is None:
            continue
        shape = require_number("vmap", "an argument", leaf).shape
        if not -len(shape) <= axis < len(shape):
            given = f"an argument of shape {shape} with in_axes {axis}"
            needed = "an argument that has that axis is needed"
            raise ShapeError("vmap", given, needed, "Pass in_axes=None for arguments shared by all lanes")
        counts.add(shape[axis])
    if not counts:
        raise UsageError("vmap", "no argument with lanes", "at least one is needed", "Pass an axis for it in in_axes")
    if len(counts) > 1:
        given = f"arguments with {' and '.join(map(str, sorted(counts)))} lanes"
        raise ShapeError("vmap", given, "the same number in all is needed", "Check in_axes")
    return int(counts.pop())


def lane(trace: Batch, leaf: Any, axis: int) -> Tensor:
    """Return an argument as one lane sees it."""
    value = inner_value(leaf if isinstance(leaf, Tensor) else plain_array("vmap", leaf))
    tensor = make_batched(value if axis == 0 else np.moveaxis(value, axis, 0), trace)
    tensor._kept = True
    return protect_argument(tensor, leaf)


def gather_lanes(trace: Batch, leaf: Any, place: int | None) -> Any:
    """Return a result with the axis that counts lanes in its place; the same for all lanes if it had none."""
    found = current(leaf) if type(leaf) is Tensor else leaf
    if type(found) is Tensor and found._trace is trace:
        if place is None:
            given = "out_axes=None for a result that differs from lane to lane"
            raise UsageError("vmap", given, "an axis for it is needed", "Pass an int in out_axes")
        value = found._value
        found._kept = True
    else:
        value = found._value if type(found) is Tensor and found._trace is None else found
        if place is None:
            return value if isinstance(value, Tensor) else np.asarray(value)
        value = np.broadcast_to(value, (trace.size, *shape_of(value))).copy()
    if not -value.ndim <= place < value.ndim:
        given = f"out_axes {place} for a result of shape {value.shape[1:]} in each lane"
        needed = f"an axis from {-value.ndim} to {value.ndim - 1} is needed"
        raise ShapeError("vmap", given, needed, "Count the axis of the lanes among the result's axes")
    return value if place % value.ndim == 0 else np.moveaxis(value, 0, place)
