"""Selection with NumPy's signatures: choosing elements by conditions, masks and numbers; counting."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.memory.masked_selection import MANY, either
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import ARRAYS, apply, as_tensor, implements, is_weak, one_array, strengthen
from wengert.core.values.interop import without_dispatch
from wengert.core.values.tensor import (
    WATCHES,
    Tensor,
    array_tensor,
    constant_tensor,
    is_concrete,
    is_staged,
    raw,
    visible_array,
)
from wengert.errors import DtypeError, ShapeError, UsageError, describe
from wengert.numpy._results import FITS_RESULT, lay_in_order, lay_like, with_out
from wengert.numpy._shapes import flat_or_axis, flatten
from wengert.primitives import arithmetic, kinks, selection
from wengert.primitives.conversion import raised
from wengert.primitives.indexing.parts import full_of_zeros
from wengert.primitives.masked import is_selection, is_undecided, places_of
from wengert.traces.eager import REAL, SEVERAL, eager
from wengert.traces.operands import operand

TAKEN = (Tensor, float)
"""Types of operands that need no look."""
WHERE = without_dispatch(np.where)
apply_where = eager(selection.where, SEVERAL)
apply_clip = eager(selection.clip, SEVERAL)


def plain_where(condition: Any, x: Any, y: Any) -> Tensor | None:
    """Return elements of an array and of a plain Tensor or a number; None where these or the condition are others."""
    if type(condition) is Tensor:
        mask = condition._value if condition._trace is None else None
    else:
        mask = condition if type(condition) is np.ndarray and condition.dtype.kind in REAL else None
    if type(y) is Tensor:
        other = y._value if y._trace is None else None
    else:
        other = y if type(y) is float or (type(y) is np.ndarray and y.dtype.kind in REAL) else None
    if not isinstance(mask, ARRAYS) or not isinstance(x, ARRAYS) or WATCHES:
        return None
    if type(other) is not float and not isinstance(other, ARRAYS):
        return None
    if type(x) is np.float64 and isinstance(other, float) and not mask.ndim:
        return array_tensor(np.float64(x if mask else other))
    try:
        return constant_tensor(WHERE(mask, x, other) if x.size < MANY else either(mask, x, other))
    except ValueError:  # of which more is said elsewhere
        return None


def as_mask(condition: Any) -> Any:
    """Return a condition as an array of booleans, whose cotangents hide NaN (ADR 0006)."""
    if type(condition) in (bool, int, float, complex):
        return condition != 0
    return condition if condition.dtype.kind == "b" else condition != 0


@implements(np.where, by="x y")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return elements of x where the condition holds and of y elsewhere; see `numpy.where`."""
    if x is None and y is None:
        return nonzero(condition)
    if type(x) is Tensor and x._trace is None and (found := plain_where(condition, x._value, y)) is not None:
        return found
    operands = (
        as_mask(condition if type(condition) is Tensor else operand("where", condition)),
        x if type(x) is Tensor else operand("where", x),
        y if type(y) in TAKEN else operand("where", y),
    )
    return apply_where(operands, {})


@implements(np.clip, by="a a_min a_max")
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    """Return the elements limited to an interval; see `numpy.clip`."""
    if options and (a_min is not None or a_max is not None) and not options.keys().isdisjoint(("min", "max")):
        needed = "one name for each is needed"
        raise UsageError("clip", "min or max beside a_min or a_max", needed, "Leave one of them out")
    low, high = options.pop("min", a_min), options.pop("max", a_max)
    dtype = options.pop("dtype", None)
    if options:
        needed = "a, the bounds, out and dtype are supported"
        raise UsageError("clip", f"options {sorted(options)}", needed, "Leave them out")
    x = operand("clip", a)
    if dtype is not None:
        x, low, high = (None if v is None else as_tensor(v).astype(dtype) for v in (x, low, high))
    if low is None and high is None:
        result = apply(arithmetic.positive, strengthen(x))
    elif low is None:
        result = apply(kinks.minimum, x, operand("clip", high))
    elif high is None:
        result = apply(kinks.maximum, x, operand("clip", low))
    else:
        result = apply_clip((x, operand("clip", low), operand("clip", high)), {})
    return result if out is None else with_out("clip", result, out)


def promote_choices(choices: Sequence[Any]) -> list[Tensor]:
    """Return the choices as Tensors of their common dtype, in which Python numbers do not count."""
    known = [x if is_weak(x) else as_tensor(x) for x in choices]
    dtype = np.result_type(*(aval_of(x).number(0) if is_weak(x) else x.dtype for x in known))
    return [as_tensor(x).astype(dtype, copy=False) for x in known]


@implements(np.select, by="choicelist default")
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Return elements of the first choice whose condition holds; see `numpy.select`."""
    if len(condlist) != len(choicelist) or not len(condlist):
        given = f"{len(condlist)} conditions and {len(choicelist)} choices"
        action = "Pass one choice for each condition, and default= for the rest"
        raise UsageError("select", given, "as many, and at least one, are needed", action)
    conditions = [as_tensor(condition) for condition in condlist]
    for position, condition in enumerate(conditions):
        if condition.dtype.kind != "b":
            given = f"condition {position} of dtype {condition.dtype}"
            raise DtypeError("select", given, "bool is needed", "Write the condition as a comparison")
    converted = promote_choices((*choicelist, default))
    result: Any = converted.pop()
    undecided = any(map(is_selection, (*conditions, *converted, result)))
    if not undecided:
        result = np.broadcast_to(result, np.broadcast_shapes(*(x.shape for x in (*conditions, *converted, result))))
    for condition, choice in zip(reversed(conditions), reversed(converted), strict=True):
        result = where(condition, choice, result)
    return result if undecided else lay_in_order("select", result, "C")


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Return what functions, or values, give where their conditions hold; see `numpy.piecewise`.

    Under `jit` and in lanes nobody knows how many elements there are: functions may do with them what may be done with
    `x[mask]`, which are operations on each element by itself, tables, sums and the like.
    """
    x = as_tensor(x)
    conditions = [as_tensor(condition).astype(bool) for condition in condition_list(x, condlist)]
    count = len(funclist)
    if count == len(conditions) + 1:
        conditions.append(~functools.reduce(operator.or_, conditions))
    elif count != len(conditions):
        given = f"{len(conditions)} conditions and {count} functions"
        needed = "as many functions, or one more for the rest, are needed"
        raise UsageError("piecewise", given, needed, "Pass one function for each condition")
    if is_selection(x):
        chosen = x._value
        wholes = [condition._value.whole & chosen.spread_mask() for condition in conditions]
        return chosen.of(piecewise(chosen.whole, wholes, funclist, *args, **kw))
    result = lay_like(as_tensor(np.zeros(x.shape, x.dtype)[()]), x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not x.ndim and not is_concrete(condition):
            value = function(x, *args, **kw) if callable(function) else function
            result = where(condition, as_tensor(value).astype(x.dtype), result)
        elif is_undecided(condition) or condition.any():
            result[condition] = function(x[condition], *args, **kw) if callable(function) else function
    return lay_like(result, x)


def condition_list(x: Tensor, condlist: Any) -> list[Any]:
    """Return the conditions of `piecewise` as a list; one alone may be given without it."""
    if type(condlist) not in (list, tuple) and np.ndim(condlist) == 0:
        return [condlist]
    return [condlist] if x.ndim != 0 and np.ndim(condlist[0]) == 0 else list(condlist)


@implements(np.choose, by="choices")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Return elements of the choice that each number names; see `numpy.choose`."""
    options = promote_choices(choices)
    number = as_tensor(a)
    if not np.can_cast(number.dtype, np.intp, "safe"):
        needed = f"a dtype that casts safely to {np.dtype(np.intp)} is needed"
        raise DtypeError("choose", f"numbers of dtype {number.dtype}", needed, "Convert with .astype(int)")
    number = number.astype(int) if number.dtype == bool else number
    shape = np.broadcast_shapes(number.shape, *(choice.shape for choice in options))
    chosen = bring_into_range("choose", number, len(options), mode, negative=False)
    found: Any = np.copy(np.broadcast_to(options[0], shape))  # of one choice alone it is the result
    for i, option in enumerate(options[1:], 1):  # masks, which no NaN passes, as no index would say
        found = np.where(chosen == i, option, found)
    return with_out("choose", found, out)


def bring_into_range(name: str, indices: Any, length: int, mode: str, *, negative: bool = True) -> Any:
    """Return integer indices brought into range(length) as NumPy's `mode` says; traced ones raise when graphs run."""
    if indices.dtype.itemsize < np.dtype(np.intp).itemsize:  # and may have no room for the length
        indices = indices.astype(np.intp)
    if mode == "wrap":
        return indices % length
    if mode == "clip":
        return np.clip(indices, 0, length - 1)
    if mode != "raise":
        raise UsageError(name, f"mode={mode!r}", "'raise', 'wrap' or 'clip' is needed", "Leave it out to raise")
    bad = (indices < (-length if negative else 0)) | (indices >= length)
    if not is_concrete(bad):
        apply(raised, np.any(bad), error=out_of_range(name, "an index", length))
    elif np.any(bad):
        raise out_of_range(name, f"index {int(indices[bad][0])}", length)
    return np.where(indices < 0, indices + length, indices) if negative else indices


def out_of_range(
    name: str, index: str, length: int, otherwise: str = ", or pass mode='wrap' or mode='clip'"
) -> IndexError:
    """Return the error about an index that is not in range(length)."""
    action = f"Correct the index{otherwise}"
    return IndexError(describe(name, f"{index} for {length} elements", "indices inside the array are needed", action))


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, one array for each axis; see `numpy.nonzero`."""
    x = as_tensor(a)
    if x.ndim and not is_concrete(x) and (is_staged(x) or np.ptp(raw(np.count_nonzero(x)))):  # as many in each lane?
        return places_of(as_mask(x))
    return tuple(apply(selection.nonzero, x))


@implements(np.flatnonzero, by="")
def flatnonzero(a: Any) -> Any:
    """Return the flat indices of the elements that are not zero; see `numpy.flatnonzero`."""
    return nonzero(flatten(as_tensor(a)))[0]


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    """Return the indices of the elements that are not zero, one row for each; see `numpy.argwhere`."""
    return apply(selection.argwhere, as_tensor(a))


@implements(np.extract, by="arr")
def extract(condition: Any, arr: Any) -> Any:
    """Return the elements where a condition holds, along one axis; see `numpy.extract`."""
    return compress(flatten(as_tensor(condition)), arr)


@implements(np.compress, by="a")
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Return the slices along an axis where a condition holds; see `numpy.compress`."""
    condition = as_tensor(condition)
    if condition.ndim != 1:
        raise ShapeError("compress", f"a condition of shape {condition.shape}", "one axis is needed", "Flatten it")
    x, along = flat_or_axis(as_tensor(a), axis)
    if is_concrete(condition) and condition.shape[0] != x.shape[along]:  # a short one leaves out the rest
        return np.take(x, flatnonzero(condition), axis=along, out=out)
    mask = condition if condition.dtype.kind == "b" else condition != 0
    return with_out("compress", x[(*[slice(None)] * along, mask)], out, rule=FITS_RESULT)


@implements(np.bincount, by="weights")
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each number occurs, or add up its weights; see `numpy.bincount`."""
    if isinstance(x, list | tuple) and not x:
        x = np.zeros(0, np.intp)  # what is empty has no dtype of its own
    minlength = as_whole("bincount", "minlength", minlength, 0)
    if minlength and visible_array(x) is None:
        return count_within(x, weights, minlength)
    if weights is None:
        return apply(selection.occurrences, as_tensor(x), minlength=minlength)
    numbers = x if type(x) is Tensor else np.asarray(x)
    if numbers.dtype == bool:  # where the cotangent is looked up, truths would be a mask
        numbers = numbers.astype(np.intp)
    weight = as_tensor(weights)
    if weight.ndim > 1:
        raise ShapeError("bincount", f"weights of shape {weight.shape}", "a row is needed", "Flatten them")
    return apply(selection.bincount, weight, numbers, minlength=minlength)


def count_within(x: Any, weights: Any, length: int) -> Any:
    """Return as many counts as are asked for of numbers that are not there yet; larger ones raise when a graph runs."""
    likewise: Any = [None if y is None else full_of_zeros(*aval_of(y)[:2]) for y in (x, weights)]
    counts: Any = as_tensor(
        np.zeros_like(np.bincount(likewise[0], likewise[1], length))
    )  # what NumPy refuses it refuses here
    numbers = x.astype(np.intp)
    needed = f"numbers from 0 to {length - 1} are needed, as minlength is {length} and they are not known while tracing"
    error = ValueError(describe("bincount", "a number that is not counted", needed, "Pass a larger minlength"))
    apply(raised, np.any((numbers < 0) | (numbers >= length)), error=error)
    np.add.at(counts, numbers, 1 if weights is None else weights)
    return counts


@implements(np.histogram, by="weights")
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """Count the elements in bins, or add up their weights; see `numpy.histogram`.

    The counts are constant in the data, as are the edges, and linear in the weights.
    """
    x, weights = as_tensor(a), one_array(weights)
    edges = histogram_bin_edges(x, bins, range, weights)
    bins = bins if isinstance(bins, int | str) else np.asarray(bins)
    if weights is None:
        counts = apply(selection.histogram_counts, x, bins=bins, range=range)
    else:
        counts = apply(selection.histogram, as_tensor(weights), x, bins=bins, range=range)
    if density:
        counts = counts / np.diff(edges).astype(float) / counts.sum()
    return counts, edges


def require_weights(a: Any, bins: Any, weights: Any) -> None:
    """Raise a ShapeError or UsageError unless each element has a weight and nobody counts the bins for weights."""
    if np.shape(weights) != np.shape(a):
        given = f"weights of shape {np.shape(weights)} for data of shape {np.shape(a)}"
        raise ShapeError("histogram", given, "the same shape is needed", "Broadcast the weights")
    if isinstance(bins, str):
        needed = "a number of bins, or edges, are needed beside weights"
        raise UsageError("histogram", f"bins={bins!r}", needed, "Count the bins")


@implements(np.histogram_bin_edges, by="")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of the bins of a histogram; see `numpy.histogram_bin_edges`."""
    given = bins
    if weights is not None:
        require_weights(a, bins, weights)
    bins = bins if isinstance(bins, int | str) else np.asarray(bins)
    edges = apply(selection.histogram_bin_edges, as_tensor(a), bins=bins, range=range)
    return as_tensor(given) if np.ndim(bins) else edges


def grid_edges(x: Any, bins: Any, range: Any) -> Any:
    """Return the edges of one axis of a histogram."""
    if np.ndim(bins):
        edges = as_tensor(bins)
        if is_concrete(edges) and np.any(edges[:-1] > edges[1:]):
            raise UsageError("histogramdd", "edges that decrease", "edges in order are needed", "Sort them")
        return edges
    return histogram_bin_edges(x, operator.index(bins), range)


@implements(np.histogramdd, by="weights")
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, list[Any]]:
    """Count points in the cells of a grid, or add up their weights; see `numpy.histogramdd`.

    The counts are constant in the points, as are the edges, and linear in the weights.
    """
    columns = point_columns(sample)
    shapes = {x.shape for x in (*columns, *([] if weights is None else [as_tensor(weights)]))}
    if len(shapes) > 1 or len(next(iter(shapes), (0,))) != 1:
        given = f"coordinates, or weights, of shapes {sorted(shapes)}"
        raise ShapeError("histogramdd", given, "rows of equal lengths are needed", "Correct them")
    ranges = (None,) * len(columns) if range is None else range
    many = list(bins) if np.iterable(bins) else [bins] * len(columns)
    if len(many) != len(columns) or len(ranges) != len(columns):
        given = f"bins for {len(many)} axes and ranges for {len(ranges)} of points with {len(columns)} coordinates"
        raise UsageError("histogramdd", given, "one for each coordinate is needed", "Correct them")
    edges = [grid_edges(x, b, r) for x, b, r in zip(columns, many, ranges, strict=True)]
    shape = tuple(len(edge) + 1 for edge in edges)  # with a cell on each end for what lies outside
    places = []
    for x, edge in zip(columns, edges, strict=True):
        found = np.searchsorted(edge, x, side="right")
        places.append(np.where(x == edge[-1], found - 1, found))
    counts: Any = as_tensor(np.zeros(shape))
    np.add.at(counts, tuple(places), 1.0 if weights is None else as_tensor(weights))
    counts = counts[(slice(1, -1),) * len(edges)]
    if density:
        total = counts.sum()
        for axis, edge in enumerate(edges):
            counts = counts / np.diff(edge).reshape((-1,) + (1,) * (len(edges) - axis - 1))
        counts = counts / total
    return counts, edges


def point_columns(sample: Any) -> list[Any]:
    """Return the coordinates of points: columns of one array, or a sequence with an array for each."""
    if isinstance(sample, list | tuple) and any(np.ndim(x) for x in sample):
        return [as_tensor(x) for x in sample]
    x: Any = as_tensor(sample)
    x = x if x.ndim == 2 else np.atleast_2d(x).T
    return [x[:, i] for i in builtins.range(x.shape[1])]


@implements(np.histogram2d, by="weights")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    """Count points of the plane in the cells of a grid; see `numpy.histogram2d`."""
    shared = np.iterable(bins) and len(list(bins)) not in (1, 2)
    x, y = as_tensor(x), as_tensor(y)
    common = np.result_type(x.dtype, y.dtype)
    x, y = (z if z.dtype == common else z.astype(common) for z in (x, y))
    counts, (xedges, yedges) = histogramdd([x, y], [bins, bins] if shared else bins, range, density, weights)
    return counts, xedges, yedges
