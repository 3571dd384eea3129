"""How parts are read and written: shapes, lanes, one index for several, and which elements they reach, as maps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import lead
from wengert.core.forms.element_maps import along, arranged_maps, outside, unflatten_coordinate, view_maps
from wengert.core.forms.form import Flags, Form, Lanes, Params, form_of
from wengert.core.forms.shape_probes import Results, example_of, unfilled_like
from wengert.core.graph.equation import Variable
from wengert.core.maps.box_maps import BoxMap, affine, identity
from wengert.core.maps.coordinates import Array, Coordinate, Table
from wengert.core.maps.index_maps import AxisIndex, Shape, broadcast_map
from wengert.core.memory.memory_layout import example, is_full, strides_of, strides_of_copy
from wengert.core.memory.views import Step
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.signatures import rule_error
from wengert.core.values.aval import Aval, aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.primitives.indexing.index_layout import (
    OPERAND,
    Entries,
    batched_index,
    composed_index,
    expand_index,
    index_before,
    join_index,
    unit_axes,
)
from wengert.primitives.masked import unknown_mask_error
from wengert.primitives.shapes import reshape, transpose


def part_maps(shape: Shape, index: Entries, arrays: Sequence[Any], out: Shape | None) -> list[BoxMap]:
    """Return the map from an array to its part at an index.

    Args:
        shape: of the array.
        index: the static form of the index.
        arrays: those in it; along the axes of one that is not known, any element may be read.
        out: the shape of the part, if it is known; it is told by the index else.
    """
    if not arrays:
        whole = index if Ellipsis in index else (*index, ...)
        return view_maps(shape, lambda x: x[whole], True)
    known = [array if hasattr(array, "dtype") else np.asarray(array) for array in arrays]
    entries, tables, _ = expand_index(len(shape), index, known, [False] * len(known))
    spread = np.broadcast_shapes(*[table.shape for table in tables])
    advanced = [n for n, entry in enumerate(entries) if entry is OPERAND or type(entry) is int]
    together = advanced != [] and advanced[-1] - advanced[0] + 1 == len(advanced)  # a truth alone adds an axis
    first = sum([entry is None or isinstance(entry, slice) for entry in entries[: advanced[0]]]) if together else 0
    source, extents, more = indexed_axes(shape, entries, tables, spread, first)
    rank = len(extents)
    return [BoxMap((*extents, *more), along(range(rank)), source)]


def indexed_axes(
    shape: Shape, entries: Sequence[Any], tables: Sequence[Any], spread: Shape, first: int
) -> tuple[list[Coordinate], Shape, list[int]]:
    """Return where each axis of an array is read, the shape of the part, and the lengths of axes read anywhere.

    Args:
        shape: of the array.
        entries: the index, with an entry for each axis, and for each new one.
        tables: the arrays in it.
        spread: the shape that they broadcast to.
        first: how many axes of the part stand before those of the arrays.
    """
    lengths = iter(shape)
    sizes: list[int] = []
    plans: list[tuple[Any, int]] = []
    for entry in entries:
        n = 1 if entry is None else next(lengths)
        if entry is None:
            sizes.append(1)
        else:
            plans.append((entry, n))
            if isinstance(entry, slice):
                sizes.append(len(range(*entry.indices(n))))
    extents = (*sizes[:first], *spread, *sizes[first:])
    slots = iter([*range(first), *range(first + len(spread), len(extents))])
    arrays, source, more = iter(tables), list[Coordinate](), list[int]()
    for entry in entries:
        if entry is None:
            next(slots)
            continue
        entry, n = plans.pop(0)
        if isinstance(entry, slice):
            start, _, step = entry.indices(n)
            source.append(Coordinate.along(next(slots), step, start))
        elif entry is OPERAND:
            array = next(arrays)
            if isinstance(array, np.ndarray | np.generic):
                source.append(place_of(np.asarray(array), n, first + len(spread)))
            else:
                source.append(Coordinate.along(len(extents) + len(more)))
                more.append(n)
        else:
            source.append(Coordinate.at(entry % n))
    return source, extents, more


def place_of(array: Array, length: int, end: int) -> Coordinate:
    """Return the places that an index array says along an axis of some length, its own axes ending at a dimension."""
    values = np.where(array < 0, array + length, array).astype(np.int64)
    dims = [end - array.ndim + k for k, n in enumerate(array.shape) if n != 1]
    values = values.reshape([n for n in array.shape if n != 1])
    if not dims:
        return Coordinate.at(int(values))
    return (
        Coordinate.from_table(dims[0], values) if len(dims) == 1 else Coordinate(AxisIndex(0), (Table(dims, values),))
    )


def places_written(shape: Shape, path: Sequence[Step], index: Entries, arrays: Sequence[Any]) -> Array:
    """Return the places in an array, counted in C order, of a part behind a path of views.

    Both parts of complex numbers are in the same place, and so are their negatives.
    """
    window: Any = np.arange(math.prod(shape)).reshape(shape) * (1 + 1j)
    for primitive, params in path:
        window = apply(primitive, window, **dict(params))
    places: Array = np.abs(np.asarray(window[join_index(index, arrays)]).real).astype(np.int64)
    return places


def is_of_parts(path: Sequence[Step]) -> bool:
    """Tell whether a path of views leads to the real or imaginary parts of complex numbers."""
    window: Any = np.zeros(1, complex)
    return any(apply(primitive, window, **dict(params)).dtype.kind == "f" for primitive, params in path if not params)


def last_of_places(places: Array) -> Array:
    """Tell which of several places are not named again later."""
    flat = places.reshape(-1)
    last = np.zeros(flat.size, bool)
    last[flat.size - 1 - np.unique(flat[::-1], return_index=True)[1]] = True
    return last.reshape(places.shape)


def written_map(part: BoxMap, shape: Shape, value: Shape) -> BoxMap:
    """Return the map from a value, which is broadcast, to the array that it is written into.

    Args:
        part: the map from that array to the part.
        shape: the shape of the array.
        value: that of the value, which may have further axes of one element in front.
    """
    rank = len(part.target)
    excess = max(0, len(value) - rank)
    read = affine(broadcast_map(value[excess:], rank))
    source = [c.through(part.target, part.extents) for c in read]
    target = unflatten_coordinate(part.source, shape, part.extents)
    return BoxMap(part.extents, target, [*[Coordinate.at(0)] * excess, *source])


def outside_part(shape: Shape, index: Entries) -> list[BoxMap]:
    """Return the maps to themselves of the elements of an array that are not in the part at an index of slices."""
    whole = index if Ellipsis in index else (*index, ...)
    entries, _, _ = expand_index(len(shape), whole, (), ())
    ranges = [
        range(*entry.indices(n)) if isinstance(entry, slice) else range(entry % n, entry % n + 1)
        for entry, n in zip([entry for entry in entries if entry is not None], shape, strict=True)
    ]
    found: list[BoxMap] = []
    inside: list[range] = []
    for own, n in zip(ranges, shape, strict=True):
        ordered = own if len(own) == 0 or own.step > 0 else own[::-1]
        if not len(ordered):
            return [*found, BoxMap(*kept_box(shape, inside))]
        step = ordered.step if len(ordered) > 1 else 1
        low, high = ordered[0], ordered[-1] + 1
        gaps = [range(low), range(high, n), *[range(low + k, high, step) for k in range(1, step)]]
        found += [BoxMap(*kept_box(shape, [*inside, gap])) for gap in gaps if len(gap)]
        inside.append(ordered)
    return found


def kept_box(shape: Shape, ranges: Sequence[range]) -> tuple[Shape, list[Coordinate], list[Coordinate]]:
    """Return the box of the elements of an array within ranges along its first axes, as a map to themselves."""
    rest = [range(n) for n in shape[len(ranges) :]]
    every = [*ranges, *rest]
    own = [Coordinate.along(d, r.step if len(r) > 1 else 1, r.start) for d, r in enumerate(every)]
    return tuple(map(len, every)), own, own


def window_of(target: Any, path: Sequence[Step]) -> Any:
    """Follow the steps of a view from its base."""
    for primitive, params in path:
        target = apply(primitive, target, **dict(params))
    return target


def unknown_mask(array: Any) -> bool:
    """Tell whether an index array is a mask without elements yet, the variable of a graph."""
    return not isinstance(array, np.ndarray | np.generic) and aval_of(array).dtype.kind == "b"


class Index(Form):
    """The elements at an index with arrays among the operands; a view where there are none."""

    def results(self, primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Ask for the part, which an unknown mask does not tell."""
        for array in filter(unknown_mask, inputs[1:]):
            raise unknown_mask_error(array)
        return super().results(primitive, list(map(unfilled_like, inputs)), params)

    def compose(
        self, primitive: Primitive, params: Mapping[str, Any], shape: tuple[int, ...], before: Step
    ) -> list[tuple[Primitive, dict[str, Any]]] | None:
        """Join an index to what is one, and put it before a permutation."""
        index = params["index"]
        other, step = before[0], dict(before[1])
        if other is transpose:
            pair = index_before(step["axes"], index)
            if pair is None:
                return None
            moved, axes = pair
            rest = [] if axes == tuple(range(len(axes))) else [(transpose, {"axes": axes})]
            return [(primitive, {"index": moved}), *rest]
        first = step["index"] if other is primitive else unit_axes(shape, step["shape"]) if other is reshape else None
        found = None if first is None else composed_index(shape, first, index)
        return None if found is None else [(primitive, {"index": found})]

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Read in every lane; lanes of the array, of the index or of both are one more axis of the index."""
        x, *arrays = operands
        if not arrays:
            return operands, [(primitive, {"index": (slice(None), *params["index"])})]
        rank = len(shape_of(x)) - batched[0]
        found = batched_index(size, rank, params["index"], arrays, batched[1:], batched[0])
        if not found.source:
            return (x, *found.arrays), [(primitive, {"index": found.entries})]
        part = apply(primitive, x, *found.arrays, index=found.entries)
        return [np.moveaxis(part, found.source, found.target)], []

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Read where the index says; along axes where an array says it that is not known, any element."""
        x, *arrays = operands
        return part_maps(shape_of(x), params["index"], arrays, out.shape)


def require_writable_window(base: Any, path: Sequence[Step]) -> None:
    """Raise what NumPy raises where a view that is written to is read-only."""
    if path:
        strides = strides_of(base) if base.shape else ()  # cotangents of arrays without axes are scalars
        window = window_of(example(base.shape, strides, aval_of(base).dtype), path)
        window[(slice(0, 0),) * window.ndim] = 0


def stand_in(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return an array to try an assignment on: one float stands for all (a bool would take any object)."""
    return np.ndarray(tuple(shape), np.float64, bytearray(8), 0, (0,) * len(shape))


def require_fit(
    shape: Sequence[int], path: Sequence[Step], index: Entries, arrays: Sequence[Any], value: Sequence[int]
) -> None:
    """Raise what NumPy raises where a value of a shape does not fit the part that it is assigned to.

    Args:
        shape: the shape of the array that is written to.
        path: the steps to the view through which it is.
        index: the static form of the index.
        arrays: the arrays in the index, or what stands for them.
        value: the shape of the value.
    """
    window = stand_in(shape)
    for view, step in path:
        window = view.evaluate(window, **dict(step))
    stand_in(window.shape)[join_index(index, list(map(example_of, arrays)))] = np.broadcast_to(0.0, value)


class PartUpdate(Form):
    """The first operand with a part replaced, or added to: the part at an index behind a path of views."""

    def results(self, primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Keep shape, dtype and order; NumPy says if the value does not fit, where no mask is unknown."""
        x, value, arrays = aval_of(inputs[0]), aval_of(inputs[1]).shape, inputs[2:]
        require_writable_window(inputs[0], params["path"])
        if value and not any(map(unknown_mask, arrays)):
            require_fit(x.shape, params["path"], params["index"], arrays, value)
        full = type(inputs[0]) is np.ndarray and is_full(inputs[0])  # of which a copy is in C order
        strides = None if full else strides_of_copy(inputs[0]) if x.shape else strides_of(inputs[0])
        return (x,), None if strides is None else (strides,)

    def require_fit_of_lane(self, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]) -> None:
        """Raise what NumPy raises where a value does not fit the part of one lane, the base having its lanes."""
        base, value, *arrays = operands
        lanes = [Variable(x.shape[1:], x.dtype) if flag else x for x, flag in zip(arrays, batched[2:], strict=True)]
        if not any(map(unknown_mask, lanes)):
            require_fit(base.shape[1:], params["path"], params["index"], lanes, shape_of(value)[batched[1] :])

    def batch(self, update: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params) -> Lanes:
        """Assign in every lane of a base with its batch axis in front."""
        base, value, *arrays = lead(operands[0], batched[0], size), *operands[1:]
        path: list[Step] = []
        shape = base.shape[1:]
        for primitive, step in params["path"]:
            lanes = np.broadcast_to(np.empty(()), (size, *shape))
            views = form_of(primitive).batch(primitive, size, [lanes], [True], dict(step))
            if views is None:
                needed = "View(...) is needed to write through it in lanes"
                raise rule_error(primitive.name, "no form was declared", needed)
            path += [(p, tuple(q.items())) for p, q in views[1]]
            shape = primitive.evaluate(np.broadcast_to(np.empty(()), shape), **dict(step)).shape
        found = batched_index(size, len(shape), params["index"], arrays, batched[2:], True)
        lane = shape_of(value)[batched[1] :]
        excess = max(0, len(lane) - found.rank)
        if excess:
            self.require_fit_of_lane((base, *operands[1:]), batched, params)
        if batched[1]:
            value = value.reshape((size, *(1,) * (found.rank - len(lane)), *lane[excess:]))
        elif excess or (found.source and lane):
            value = np.reshape(value, ((1,) * (found.rank + 1 - len(lane)) + lane)[excess:])
        if found.source and shape_of(value):
            value = np.moveaxis(value, found.target, found.source)
        changed = {"path": tuple(path), "index": found.entries, "add": params["add"]}
        return [base, value, *found.arrays], [(update, changed)]

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Keep what is not written to, and put what is written in its places, the last of several in one."""
        shape, path, index, add = out.shape, params["path"], params["index"], params["add"]
        value, arrays = operands[1], operands[2:]
        known = [isinstance(array, np.ndarray | np.generic | int) for array in arrays]
        unknown = not all(known)
        if position == 0:
            if add or unknown or (out.dtype.kind == "c" and is_of_parts(path)):
                return [identity(shape)]
            if not path and not arrays:
                return outside_part(shape, index)
            mask = np.zeros(shape, bool)
            mask.reshape(-1)[places_written(shape, path, index, arrays)] = True
            return outside(shape, mask)
        if position > 1 or (unknown and path):
            return None
        if unknown or not path:
            found = part_maps(shape, index, arrays, None)
        else:
            found = arranged_maps(places_written(shape, path, index, arrays))
        if not add and not unknown and arrays:
            mask = last_of_places(places_written(shape, path, index, arrays))
            found = [kept for one in found if (kept := one.where(mask)) is not None]
        return [written_map(one, shape, shape_of(value)) for one in found]
