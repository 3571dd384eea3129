"""Functions of Python applied to parts of arrays, with NumPy's signatures: each call sees Tensors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.values.dispatch import as_tensor, implements
from wengert.errors import ShapeError, UsageError

Function = Callable[..., Any]
Shape = tuple[int, ...]


@implements(np.apply_along_axis, by="arr")
def apply_along_axis(func1d: Function, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a function gives for each row along an axis; see `numpy.apply_along_axis`."""
    x: Any = as_tensor(arr)
    axis = normalize_axis_index(axis, x.ndim)
    rows = np.moveaxis(x, axis, -1)
    outer = rows.shape[:-1]
    if 0 in outer:
        needed = "at least one row is needed, to see what the function gives"
        raise ShapeError("apply_along_axis", f"shape {x.shape}", needed, "Treat empty arrays apart")
    found = [as_tensor(func1d(rows[place], *args, **kwargs)) for place in np.ndindex(outer)]
    dtype = found[0].dtype
    joined: Any = np.stack([y if y.dtype == dtype else y.astype(dtype) for y in found]).reshape(outer + found[0].shape)
    core = tuple(range(len(outer), joined.ndim))
    return np.moveaxis(joined, core, tuple(range(axis, axis + len(core))))


@implements(np.apply_over_axes, by="a")
def apply_over_axes(func: Function, a: Any, axes: Any) -> Any:
    """Return what a function gives over one axis after the other; see `numpy.apply_over_axes`."""
    value: Any = as_tensor(a)
    rank = value.ndim
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        place = axis + rank if axis < 0 else axis
        found = func(value, place)
        value = found if found.ndim == value.ndim else np.expand_dims(found, place)
        if value.ndim != rank:
            needed = "a function that keeps the axes, or leaves out the one it is given, is needed"
            raise ShapeError("apply_over_axes", f"a result of shape {found.shape}", needed, "Correct it")
    return value


@implements(np.vectorize)
class vectorize(np.vectorize):  # noqa: N801 - NumPy's name
    """Apply a function of scalars, or of cores by a signature, to all elements; see `numpy.vectorize`.

    It is called once for each element, so that it may look at it; `wengert.vmap` calls a function once for all.
    """

    def __init__(
        self,
        pyfunc: Function | None = None,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        if pyfunc is not None:
            self.pyfunc = pyfunc
            functools.update_wrapper(self, pyfunc)
        if doc is not None:
            self.__doc__ = doc
        self.otypes, self.excluded, self.cache, self.signature = otypes, set(excluded or ()), cache, signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self, "pyfunc"):  # a decorator with options
            doc = vars(self).get("__doc__")
            return vectorize(args[0], self.otypes, doc, self.excluded, self.cache, self.signature)
        places = [i for i in range(len(args)) if i not in self.excluded]
        names = [name for name in kwargs if name not in self.excluded]
        operands = [as_tensor(args[i]) for i in places] + [as_tensor(kwargs[name]) for name in names]

        def call_core(*cores: Any) -> Any:
            positional, named = list(args), dict(kwargs)
            for i, core in zip(places, cores, strict=False):
                positional[i] = core
            named.update(zip(names, cores[len(places) :], strict=True))
            return self.pyfunc(*positional, **named)

        ranks = [0] * len(operands) if self.signature is None else core_ranks(self.signature, len(operands))
        return map_cores(call_core, operands, ranks, self.otypes)


def core_ranks(signature: str, count: int) -> list[int]:
    """Return how many axes the cores of operands have."""
    left, arrow, _ = signature.partition("->")
    found = [len(re.findall(r"\w+", core)) for core in re.findall(r"\((.*?)\)", left)]
    if not arrow or len(found) != count:
        given = f"the signature {signature!r} for {count} operands"
        raise UsageError("vectorize", given, "cores for each, as in '(n),(n)->()', are needed", "Correct it")
    return found


def map_cores(function: Function, operands: Sequence[Any], ranks: Sequence[int], otypes: Any) -> Any:
    """Return the results of a function for all cores, joined."""
    shapes = [x.shape[: x.ndim - rank] for x, rank in zip(operands, ranks, strict=True)]
    shape = np.broadcast_shapes(*shapes)
    if 0 in shape:
        if otypes is None:
            needed = "elements, or otypes, are needed to know the dtype"
            raise ShapeError("vectorize", f"operands that broadcast to shape {shape}", needed, "Pass otypes")
        empty = [as_tensor(np.zeros(shape, otype)) for otype in otypes]
        return empty[0] if len(empty) == 1 else tuple(empty)
    arrays = [np.broadcast_to(x, shape + x.shape[x.ndim - r :]) for x, r in zip(operands, ranks, strict=True)]
    found = [function(*[x[place] for x in arrays]) for place in np.ndindex(shape)]
    if not isinstance(found[0], tuple):
        return join_results(found, shape, None if otypes is None else otypes[0])
    columns = zip(*found, strict=True)
    return tuple(join_results(column, shape, None if otypes is None else otypes[i]) for i, column in enumerate(columns))


def join_results(results: Sequence[Any], shape: Shape, dtype: Any) -> Any:
    """Return results as one array, of the dtype of the first, as NumPy has it."""
    tensors = [as_tensor(result) for result in results]
    dtype = tensors[0].dtype if dtype is None else np.dtype(dtype)
    found: Any = np.stack([x if x.dtype == dtype else x.astype(dtype) for x in tensors])
    return found.reshape(shape + found.shape[1:])
