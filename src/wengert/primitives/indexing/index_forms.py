"""How parts are read and written: shapes, lanes, and one index for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import lead
from wengert.core.forms.element_maps import arranged_maps, outside
from wengert.core.forms.form import Flags, Form, Lanes, Params, form_of
from wengert.core.forms.shape_probes import Results, example_of, unfilled_like
from wengert.core.graph.equation import Variable
from wengert.core.maps.box_maps import BoxMap, identity
from wengert.core.memory.memory_layout import example, is_full, strides_of, strides_of_copy
from wengert.core.memory.views import Step
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.rule import rule_error
from wengert.core.values.aval import Aval, aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.primitives.indexing.index_layout import (
    Entries,
    batched_index,
    composed_index,
    index_before,
    join_index,
    unit_axes,
)
from wengert.primitives.indexing.part_maps import (
    is_of_parts,
    last_of_places,
    outside_part,
    part_maps,
    places_written,
    written_map,
)
from wengert.primitives.masked import unknown_mask_error
from wengert.primitives.shapes import reshape, transpose


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
