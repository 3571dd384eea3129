"""Sorting, searching and set operations with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.memory.memory_layout import with_axes_in_memory
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply, as_tensor, implements
from wengert.core.values.plain_functions import call_plain
from wengert.core.values.tensor import Tensor, constant_tensor, is_staged
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.numpy._namespace import enter_as
from wengert.numpy._results import FITS_RESULT, with_out
from wengert.numpy._shapes import flat_or_axis, row_and_axis
from wengert.primitives import sorting
from wengert.support.records import NamedTuple
from wengert.traces.eager import eager


def refuse_fields(name: str, order: Any) -> None:
    """Raise a UsageError if fields to sort by are given: Tensors have none."""
    if order is not None:
        raise UsageError(name, f"order={order!r}", "arrays without fields have no order of fields", "Leave order out")


apply_sort = eager(sorting.sort)
apply_argsort = eager(sorting.argsort)


def evaluate_sort(x: Any, axis: int | None) -> Any:
    """Evaluate `sort` without options."""
    found = x.flatten() if axis is None else x.copy("K")
    found.sort(-1 if axis is None else axis)
    return found


@implements(np.sort)
def sort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> Tensor:
    """Return the elements sorted along an axis; see `numpy.sort`."""
    if descending:
        x, axis = flat_or_axis(as_tensor(a), axis)
        return cast(
            Tensor, np.take_along_axis(cast(Any, x), cast(Any, argsort(x, axis, None, order, descending=True)), axis)
        )
    plain = type(a) is Tensor and a._trace is None and kind is None and order is None and stable is None
    if plain and (found := call_plain(evaluate_sort, a, axis)) is not None:
        return found
    refuse_fields("sort", order)
    x, axis = flat_or_axis(as_tensor(a), axis)
    return apply_sort(x, {"axis": axis, "kind": kind, "stable": stable})


@implements(np.argsort)
def argsort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> Tensor:
    """Return the indices that sort along an axis; see `numpy.argsort`."""
    if descending:
        refuse_fields("argsort", order)
        x, axis = row_and_axis(a, axis)
        negated: Any = np.invert(x) if x.dtype.kind in "biu" else np.negative(x)  # NaN stays last
        return apply_argsort(negated, {"axis": axis, "kind": "stable", "stable": None})
    plain = type(a) is Tensor and a._trace is None and kind is None and order is None and stable is None
    if plain and (found := call_plain(np.ndarray.argsort, a, axis)) is not None:
        return found
    refuse_fields("argsort", order)
    x, axis = row_and_axis(a, axis)
    return apply_argsort(x, {"axis": axis, "kind": kind, "stable": stable})


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Return the elements partly sorted along an axis; see `numpy.partition`."""
    refuse_fields("partition", order)
    x, axis = flat_or_axis(as_tensor(a), axis)
    return apply(sorting.partition, x, kth=np.asarray(kth), axis=axis, kind=kind)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Return the indices that partly sort along an axis; see `numpy.argpartition`."""
    refuse_fields("argpartition", order)
    x, axis = row_and_axis(a, axis)
    return apply(sorting.argpartition, x, kth=np.asarray(kth), axis=axis, kind=kind)


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Return the elements sorted as complex numbers; see `numpy.sort_complex`."""
    ordered = sort(a)
    narrow = ordered.dtype.char in "bhBH"  # as NumPy has it: integers of one or two bytes, but not float32
    return ordered if ordered.dtype.kind == "c" else ordered.astype(np.complex64 if narrow else np.complex128)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Return the indices that sort by several keys, the last one first; see `numpy.lexsort`."""
    columns = [as_tensor(key) for key in keys]
    if not columns:
        raise UsageError("lexsort", "no keys", "at least one is needed", "Pass the arrays to sort by")
    rank = columns[0].ndim
    if any(key.shape != columns[0].shape for key in columns):
        needed = "keys of one shape are needed"
        raise ShapeError("lexsort", f"shapes {[key.shape for key in columns]}", needed, "Broadcast them")
    if not rank:  # one place, whatever the keys are
        return constant_tensor(np.lexsort(np.zeros(len(columns)), axis=axis))
    return apply(sorting.lexsort, *columns, axis=normalize_axis_index(axis, rank) - rank)


def enter_extreme_place(function: Any, primitive: Primitive) -> Callable[..., Tensor]:
    """Enter and return a function that returns the place of an extreme element."""
    found = eager(primitive)

    @enter_as(function, "Return the index of an extreme element", "")
    def place(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
        x, line = flat_or_axis(as_tensor(a), axis)
        result = found(x, {"axis": line, "keepdims": bool(keepdims and axis is not None)})
        if keepdims and axis is None:
            result = result.reshape((1,) * as_tensor(a).ndim)
        return result if out is None else with_out(function.__name__, result, out, rule=FITS_RESULT)

    return place


argmax = enter_extreme_place(np.argmax, sorting.argmax)
argmin = enter_extreme_place(np.argmin, sorting.argmin)
enter_extreme_place(np.nanargmax, sorting.nanargmax)
enter_extreme_place(np.nanargmin, sorting.nanargmin)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return the indices at which elements would keep an array sorted; see `numpy.searchsorted`."""
    order = () if sorter is None else (as_tensor(sorter),)
    return apply(sorting.searchsorted, as_tensor(a), as_tensor(v), *order, side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the number of the bin that each element lies in; see `numpy.digitize`."""
    return apply(sorting.digitize, as_tensor(x), as_tensor(bins), right=bool(right))


# Sets: the distinct elements are those that occur first, and gradients go to them


class UniqueAllResult(NamedTuple):
    """Hold distinct values, their first indices, the inverse indices and the counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """Hold distinct values and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """Hold distinct values and the indices that give the original elements back."""

    values: Tensor
    inverse_indices: Tensor


OUTSIDE = "Find the distinct elements outside of the traced function"
MARKED = "with s = np.sort(x) they are where np.append(True, s[1:] != s[:-1]) holds, and its sum is their number"
MARKS = {
    "intersect1d": "np.isin(ar1, ar2) tells which elements of ar1 they are",
    "setdiff1d": "np.isin(ar1, ar2, invert=True) tells which elements of ar1 they are",
    "setxor1d": "np.isin(ar1, ar2, invert=True) and np.isin(ar2, ar1, invert=True) tell which elements they are",
    "union1d": f"of x = np.append(ar1, ar2), {MARKED}",
}
"""How the elements are marked, which has a shape that is known, by the name of the function."""


def require_known(name: str, *arrays: Any) -> None:
    """Raise a GraphError if there are arrays among some whose elements are not there yet."""
    for x in arrays:
        if type(x) is Tensor and is_staged(x):
            given = f"an array of shape {x.shape} whose elements are unknown while tracing"
            needed = "a result whose shape does not depend on elements is needed"
            marked = MARKS.get(name, MARKED)
            raise GraphError(name, given, needed, f"Mark them: {marked}; choose by numpy.where. {OUTSIDE}")


def distinct_elements(name: str, ar: Any, axis: int | None, equal_nan: bool) -> Any:
    """Return the distinct elements, their first indices, the inverse and the counts, for a function of this name."""
    x = as_tensor(ar)
    require_known(name, x)
    first, inverse, counts = apply(sorting.unique, x, axis=axis, equal_nan=equal_nan)
    values = np.take(x, first, axis=axis)
    if axis is not None:
        along = normalize_axis_index(axis, x.ndim)
        values = with_axes_in_memory(values, [along, *(i for i in range(x.ndim) if i != along)])
    return values, first, inverse, counts


@implements(np.unique, by="ar")
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the distinct elements in order; see `numpy.unique`."""
    values, *rest = distinct_elements("unique", ar, axis, equal_nan)
    chosen = [
        extra for extra, wanted in zip(rest, (return_index, return_inverse, return_counts), strict=True) if wanted
    ]
    return (values, *chosen) if chosen else values


@implements(np.unique_values)
def unique_values(x: Any) -> Any:
    """Return the distinct elements; see `numpy.unique_values`."""
    return distinct_elements("unique_values", x, None, False)[0]


@implements(np.unique_counts)
def unique_counts(x: Any) -> UniqueCountsResult:
    """Return the distinct elements and their counts; see `numpy.unique_counts`."""
    values, _, _, counts = distinct_elements("unique_counts", x, None, False)
    return UniqueCountsResult(values, counts)


@implements(np.unique_inverse)
def unique_inverse(x: Any) -> UniqueInverseResult:
    """Return the distinct elements and the inverse indices; see `numpy.unique_inverse`."""
    values, _, inverse, _ = distinct_elements("unique_inverse", x, None, False)
    return UniqueInverseResult(values, inverse)


@implements(np.unique_all)
def unique_all(x: Any) -> UniqueAllResult:
    """Return the distinct elements, first indices, inverse indices and counts; see `numpy.unique_all`."""
    return UniqueAllResult(*distinct_elements("unique_all", x, None, False))


@implements(np.union1d, by="ar1 ar2")
def union1d(ar1: Any, ar2: Any) -> Any:
    """Return the distinct elements of two arrays; see `numpy.union1d`."""
    require_known("union1d", ar1, ar2)
    return unique(np.concatenate([ar1, ar2], axis=None))


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    """Tell which elements occur in another array; see `numpy.isin`."""
    return apply(
        sorting.isin,
        as_tensor(element),
        as_tensor(test_elements),
        assume_unique=assume_unique,
        invert=invert,
        kind=kind,
    )


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the distinct elements of one array that are not in another; see `numpy.setdiff1d`."""
    require_known("setdiff1d", ar1, ar2)
    values = as_tensor(ar1).reshape(-1) if assume_unique else unique(ar1)
    return values[isin(values, as_tensor(ar2), assume_unique=True, invert=True)]


@implements(np.setxor1d, by="ar1 ar2")
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the distinct elements that are in one of two arrays alone; see `numpy.setxor1d`."""
    require_known("setxor1d", ar1, ar2)
    left, right = (as_tensor(x) if assume_unique else unique(x) for x in (ar1, ar2))
    ordered: Any = sort(np.concatenate([left, right], axis=None))
    if not ordered.size:
        return ordered
    changes = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return ordered[changes[1:] & changes[:-1]]


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the distinct elements that two arrays share, those of the first; see `numpy.intersect1d`."""
    require_known("intersect1d", ar1, ar2)
    left, right = as_tensor(ar1).reshape(-1), as_tensor(ar2).reshape(-1)
    left = left.astype(np.promote_types(left.dtype, right.dtype))
    values, first, _, _ = distinct_elements("intersect1d", left, None, True)
    shared = isin(values, right)
    if not return_indices:
        return values[shared]
    others, second, _, _ = distinct_elements("intersect1d", right, None, True)
    return values[shared], first[shared], second[isin(others, left)]
