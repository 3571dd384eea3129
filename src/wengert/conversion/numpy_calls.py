"""NumPy's functions that converted code calls: of traced values in lists, and those that make arrays to write to.

NumPy's protocols ask a Tensor that stands by itself among the arguments, or is in a list of arrays to be joined,
but not one in any other list, of which NumPy makes an array of numbers. An array that the program makes and writes
traced values into is a Tensor, as the same call of `wengert.numpy` gives it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from types import BuiltinMethodType
from typing import Any

import numpy as np

from wengert.core.values.aval import MOST_AXES
from wengert.core.values.dispatch import stacked_lists
from wengert.core.values.protocols import array_function
from wengert.core.values.tensor import Tensor, constant_tensor, innermost_trace
from wengert.traces.written_out import ROLLING

BUILDERS: tuple[Callable[..., Any], ...] = (
    *(np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require, np.ndenumerate),
)
"""Functions that make an ndarray of whatever they are given, or go through it, and ask no Tensor about it."""
MAKERS: tuple[Callable[..., Any], ...] = (
    *(np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.arange, np.tri, np.fromiter),
)
"""Functions that are given no arrays, of which NumPy's protocols would know."""
UNSET = (np.empty, np.empty_like)
WRITING = frozenset(("fill", "put"))
DISPATCHED = (np.ufunc, type(np.stack))
"""The types of NumPy's functions that have a meaning for Tensors."""


def is_followed(value: Any) -> bool:
    """Tell whether a value is a Tensor of a trace: converted code may also be called by transformations that run it."""
    return type(value) is Tensor and innermost_trace(value) is not None


def traced_in(value: Any) -> Tensor | None:
    """Return a traced value in nested lists, as deep as arrays have axes; None if there is none."""
    lists: Iterable[Any] = (value,) if isinstance(value, list | tuple) else ()
    for _ in range(MOST_AXES):
        if not lists:
            break
        items = [item for inner in lists for item in inner]
        found: Tensor | None = next(filter(is_followed, items), None)
        if found is not None:
            return found
        lists = {id(item): item for item in items if isinstance(item, list | tuple)}.values()
    return None


def traced_among(values: Iterable[Any]) -> Tensor | None:
    """Return the first traced value among some values and the lists among them; None if there is none."""
    for value in values:
        found = value if is_followed(value) else traced_in(value)
        if found is not None:
            return found
    return None


@functools.lru_cache(1024)  # functions that programs make, too
def called_in_place(function: Any) -> Callable[..., Any]:
    """Return what is called in place of a function of NumPy's, which may be given traced values in lists."""
    is_ufunc, is_builder = isinstance(function, np.ufunc), function in BUILDERS
    is_maker = function in MAKERS

    def call(*args: Any, **kwargs: Any) -> Any:
        if function is np.fromiter:
            args, kwargs = with_listed_items(*args, **kwargs)
        given = (*args, *kwargs.values())
        asking = is_builder or (is_maker and "like" not in kwargs)  # else NumPy asks a Tensor that is given itself
        traced = traced_among([x for x in given if asking or not is_followed(x)])
        if traced is None and is_builder and ROLLING.making:  # what the program has made, which may be written to
            traced = next((x for x in given if type(x) is Tensor), None)
        if traced is not None:
            if is_ufunc:
                return function(*map(stacked_lists, args), **kwargs)
            return array_function(traced, function, (Tensor,), args, kwargs)
        made = function(*args, **kwargs)
        return own_tensor(made, given, function in UNSET) if ROLLING.making else made

    return call


def own_tensor(made: Any, given: Sequence[Any] = (), unset: bool = False) -> Any:
    """Return a new array of numbers, made of what was `given`, as a Tensor that owns it; all else as it is.

    What lends its memory, such as a file or an object of another library, is to see what is written there. If nobody
    has set its elements, they are zeros: whatever keeps them, a graph or a file, is the same each time.
    """
    if type(made) is not np.ndarray or made.dtype.kind not in "biufc":
        return made
    if any(np.may_share_memory(made, x) for x in given if not isinstance(x, Tensor | list | tuple)):
        return made
    if unset:
        made[...] = 0
    return constant_tensor(made)


def with_listed_items(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of `numpy.fromiter` with a list of the items that it takes, lest a traced one be hidden."""
    given = {**dict(zip(("iter", "dtype", "count"), args, strict=False)), **kwargs}
    if "iter" in given:
        count = given.get("count", -1)
        given["iter"] = list(itertools.islice(given["iter"], count if count >= 0 else None))
    return args[3:], given


def method_in_place(method: BuiltinMethodType) -> Callable[..., Any]:
    """Return what is called in place of a method of an ndarray's: of whole numbers, `fill` would ask a traced value."""
    if method.__name__ in WRITING:
        return functools.partial(written_by, method)
    if method.__name__ != "copy" or not ROLLING.making:
        return method
    return lambda *args, **kwargs: own_tensor(method(*args, **kwargs))


def written_by(method: BuiltinMethodType, *args: Any, **kwargs: Any) -> Any:
    """Call a method that writes values into an ndarray.

    Raises:
        GraphError: a traced value is among them.
    """
    if (traced := traced_among((*args, *kwargs.values()))) is not None:
        raise traced._storage_error()
    return method(*args, **kwargs)
