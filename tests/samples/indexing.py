"""Samples of reading and writing parts of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.samples.base import fixed, integers, normal, sample

MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])


def part(*index: Any) -> Callable[[Any], Any]:
    """Return the function that reads an index."""
    return lambda x: x[index]


def written(*index: Any) -> Callable[[Any, Any], Any]:
    """Return the function that assigns to an index of a copy."""

    def write(x: Any, value: Any) -> Any:
        target = x * 1.0
        target[index] = value
        return target

    return write


def after(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that changes a copy in place and returns it."""

    def changed(x: Any, *args: Any) -> Any:
        target = np.copy(x)
        change(target, *args)
        return target

    return changed


READS = [
    part(1),
    part(-1, 2),
    part(slice(None, None, -2)),
    part(slice(2, 0, -1), slice(1, 3)),
    part(..., 0),
    part(None, 1, ..., None),
    part(np.array([0, 2, 2, -1])),
    part([0, 2], [1, 1]),
    part(np.array([[0], [2]]), np.array([1, 1, 3])),
    part(slice(None), [3, 0, 0]),
    part([], 1),
    part(MASK),
    part(MASK[:, 0]),
    part(slice(None), MASK[0]),
    part(True),
    part(False),
    part(*np.ix_([0, 2], [1, 3])),
    part([1, 1], None, slice(None, None, 2)),
]

WRITES = [
    (written(1), ()),
    (written(1), (4,)),
    (written(slice(None, None, -2)), (2, 4)),
    (written(..., slice(0, 2)), (3, 1)),
    (written([0, 2]), (4,)),
    (written([0, 2], [1, 1]), (2,)),
    (written([0, 0, 1]), (3, 4)),
    (written(MASK), ()),
    (written(MASK), (6,)),
    (written(MASK[:, 0]), (4,)),
    (written(slice(None), None, 1), (3, 1)),
    (written(...), (3, 4)),
    (written([]), ()),
]

SAMPLES = [
    *[sample("getitem", read, normal(3, 4)) for read in READS],
    *[sample("assign", write, normal(3, 4), normal(*shape, seed=1)) for write, shape in WRITES],
    sample("getitem", lambda x: x[()], normal()),
    sample("getitem", lambda x: x[None], normal()),
    sample("getitem", np.take, normal(3, 4), fixed([0, 5, -1])),
    sample("getitem", np.take, normal(3, 4), fixed([[0, 2], [2, 1]]), axis=0),
    sample("getitem", np.take, normal(3, 4), fixed(1), axis=1),
    sample("getitem", np.take, normal(3, 4), fixed([5, -7]), axis=1, mode="wrap"),
    sample("getitem", np.take, normal(3, 4), fixed([5, -7]), axis=1, mode="clip"),
    sample("getitem", np.take_along_axis, normal(3, 4), integers(0, 3, 2, 4), axis=0),
    sample("getitem", np.take_along_axis, normal(3, 4), integers(0, 4, 3, 2), axis=-1),
    sample("getitem", np.take_along_axis, normal(3, 4), integers(0, 12, 5), axis=None),
    sample("assign", after(np.put), normal(3, 4), fixed([0, 5, -1]), normal(3, seed=1)),
    sample("assign", after(np.put), normal(3, 4), fixed([0, 5, 0]), normal(2, seed=1)),
    sample("assign", after(lambda x, v: np.put(x, [13, -20], v, mode="wrap")), normal(3, 4), normal(2, seed=1)),
    sample("assign", after(lambda x, v: np.put(x, [13, -20], v, mode="clip")), normal(3, 4), normal(2, seed=1)),
    sample(
        "assign",
        after(lambda x, v: np.put_along_axis(x, np.array([[0, 2, 1, 1]]), v, 0)),
        normal(3, 4),
        normal(1, 4, seed=1),
    ),
    sample("assign", after(np.copyto), normal(3, 4), normal(4, seed=1)),
    sample("assign", after(lambda x, v: np.copyto(x, v, where=MASK)), normal(3, 4), normal(4, seed=1)),
    sample("assign", after(np.place), normal(3, 4), fixed(MASK), normal(4, seed=1)),
    sample("assign", after(np.putmask), normal(3, 4), fixed(MASK), normal(3, 4, seed=1)),
    sample("assign", after(np.putmask), normal(3, 4), fixed(MASK), normal(5, seed=1)),
    sample("assign", after(np.fill_diagonal), normal(3, 3), normal(seed=1)),
    sample("assign", after(np.fill_diagonal), normal(3, 3), normal(2, seed=1)),
    sample("assign", after(lambda x, v: np.fill_diagonal(x, v, wrap=True)), normal(5, 2), normal(seed=1)),
    sample("assign", after(np.fill_diagonal), normal(2, 2, 2), normal(seed=1)),
    sample("assign", after(np.add.at), normal(4), fixed([0, 3, 3]), normal(3, seed=1)),
    sample("assign", after(np.add.at), normal(3, 4), fixed(([0, 0], [1, 1])), normal(seed=1)),
    sample("assign", after(np.subtract.at), normal(4), fixed([0, 3, 3]), normal(3, seed=1)),
    sample("assign", after(np.multiply.at), normal(4), fixed([0, 3, 3, 3]), normal(4, seed=1)),
    sample("extremes_at", after(np.maximum.at), normal(3, 4), fixed(([0, 0, 1], [1, 1, 2])), normal(3, seed=1)),
    sample("assign", after(np.negative.at), normal(4), fixed([0, 3, 3])),
    sample("getitem", lambda x: x[np.tril_indices(3)], normal(3, 3)),
]
