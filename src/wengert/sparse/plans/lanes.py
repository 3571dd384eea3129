"""Products of a Jacobian with constant seeds, in lanes: one for each colour of columns, and one for each of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.values.aval import aval_of
from wengert.sparse.coloring.coloring import Coloring
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back
from wengert.transforms.vmap import map_lanes

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def lane_elements(name: str, fun: Function, arguments: tuple[Any, ...], coloring: Coloring, places: Array) -> Any:
    """Return elements of a Jacobian, from the sums of the columns and rows of each colour.

    Args:
        name: who asks, for errors.
        fun: the function.
        arguments: its arguments, by all leaves of which it is differentiated.
        coloring: of the Jacobian, in the order of `wengert.tree.ravel`.
        places: where the elements stand in lanes, as `Coloring.lane_places` says.
    """
    return lane_sums(name, fun, arguments, coloring)[places]


def lane_sums(name: str, fun: Function, arguments: tuple[Any, ...], coloring: Coloring) -> Any:
    """Return the sums of the columns and rows of each colour, one after the other, for the same arguments."""
    parts = []
    if coloring.columns is not None:
        parts.append(push_columns(name, fun, arguments, coloring.columns, coloring.column_count))
    if coloring.rows is not None:
        parts.append(pull_rows(name, fun, arguments, coloring.rows, coloring.row_count))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def push_columns(name: str, fun: Function, arguments: tuple[Any, ...], colours: Array, count: int) -> Any:
    """Return the sums of the columns of each colour, one after the other."""
    leaves, structure = flatten(arguments)
    parts = split_like(colours, leaves)

    def push(colour: Any) -> list[Any]:
        seeds = [seed_of(part, colour, leaf) for part, leaf in zip(parts, leaves, strict=True)]
        return flatten(push_forward(name, fun, arguments, unflatten(structure, seeds))[1])[0]

    return joined_lanes(push, count)


def pull_rows(name: str, fun: Function, arguments: tuple[Any, ...], colours: Array, count: int) -> Any:
    """Return the sums of the rows of each colour, one after the other."""
    output, pullback = pull_back(name, fun, arguments)
    leaves, structure = flatten(output)
    parts = split_like(colours, leaves)

    def pull(colour: Any) -> list[Any]:
        seeds = [seed_of(part, colour, leaf) for part, leaf in zip(parts, leaves, strict=True)]
        return flatten(pullback(unflatten(structure, seeds)))[0]

    return joined_lanes(pull, count)


def joined_lanes(product: Callable[[Any], list[Any]], count: int) -> Any:
    """Return the products for each colour as one vector: of each lane the elements of all leaves."""
    lanes = map_lanes(product, 0, 0, None, np.arange(count, dtype=np.int32))
    rows = [np.reshape(lane, (count, math.prod(aval_of(lane).shape[1:]))) for lane in lanes]
    return np.reshape(rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1), (-1,))


def seed_of(colours: Array, colour: Any, leaf: Any) -> Any:
    """Return ones where elements have a colour, else zeros, like a leaf."""
    kind = aval_of(leaf).dtype.type
    return np.where(colours == colour, kind(1), kind(0))


def split_like(colours: Array, leaves: Sequence[Any]) -> list[Array]:
    """Return a vector, with a number for each element of some leaves, as arrays of their shapes."""
    shapes = [aval_of(leaf).shape for leaf in leaves]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(colours, ends[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
