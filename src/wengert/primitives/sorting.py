"""Sorting, searching and set operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import Selection
from wengert.core.primitives.declare import constant, opaque
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import visible_array
from wengert.primitives.floating_point import is_nan
from wengert.support.machine import MACHINE

ALONG, PICK = Routine("(n)->(n)", "axis"), Routine("(n)->()", "axis")


def order_of(x: Any, axis: int) -> Any:
    """Return `argsort` along an axis where equal elements keep their order.

    Of 100,000 without equal ones NumPy's quick sort takes 1.3 ms, the stable one 8, and a look at whether they all
    differ 0.1 to 0.9.
    """
    known = visible_array(x)
    if type(known) is np.ndarray and known.shape == x.shape:  # the order has no derivative
        x = known
    if type(x) is np.ndarray and x.dtype.kind == "f" and x.size >= MACHINE.call_elements:
        order = np.argsort(x, axis)
        ascending = np.moveaxis(take_places(x, order, axis), axis, -1)
        if (ascending[..., 1:] > ascending[..., :-1]).all():
            return order
    return np.argsort(x, axis=axis, kind="stable")


def evaluate_ranks(x: Any, *, axis: int) -> Any:
    """Evaluate `ranks`."""
    order = order_of(x, axis)
    numbers = np.arange(order.shape[axis]).reshape([-1 if i == axis else 1 for i in range(order.ndim)])
    return put_back(np.broadcast_to(numbers, order.shape), order, axis)


SHORT = 16
"""Elements of rows up to which kernels sort them, by comparing all pairs: calls of NumPy's functions take longer."""


def ranked_at(x: Any, *, axis: int) -> Any:
    """Return the places that the elements take in a kernel."""
    if x.shape[axis] > SHORT:
        return None
    return x.count_before((axis % len(x.shape),), "ranked")


ranked = constant("ranks", evaluate_ranks, form=ALONG, scalar=ranked_at, loop=range(1))


def ranks(x: Any, axis: int) -> Any:
    """Return the places that the elements take when sorted along an axis; the inverse of `argsort`."""
    known = visible_array(x)
    if type(known) is np.ndarray and known.shape == x.shape:  # ranks have no derivative
        return evaluate_ranks(known, axis=axis)
    return apply(ranked, x, axis=axis)


def sorted_at(x: Any, *, axis: int, kind: Any = None, stable: Any = None) -> Any:
    """Return the elements sorted along an axis in a kernel; of equal elements the first comes first."""
    if x.shape[axis] > SHORT:
        return None
    if not is_stable(kind, stable):
        require_one_zero(x, (axis % len(x.shape),))
    return x.write_at_places(ranked_at(x, axis=axis), axis % len(x.shape))


def require_one_zero(x: Any, axes: Sequence[int]) -> None:
    """Have NumPy compute everything where there are zeros of both signs, which alone show the order of equal elements.

    Sorts that are not stable leave it to the processor, and networks of least and greatest even make more of one sign.
    """
    if x.dtype.kind == "f":
        signs: Any = np.signbit(x), ~np.signbit(x)
        found: list[Any] = [np.any((x == 0) & sign, axis=tuple(axes), keepdims=True) for sign in signs]
        (~(found[0] & found[1])).require()


def order_at(x: Any, *, axis: int, kind: Any = None, stable: Any = None) -> Any:
    """Return the indices that sort along an axis in a kernel; of equal elements the first comes first.

    Kinds of sorts that are not stable leave their order to the processor: with some NumPy computes everything, and
    numbers that are not floating-point ones, of which some mostly are equal, are left to it at once.
    """
    axes = (axis % len(x.shape),)
    if x.shape[axis] > SHORT:
        return None
    if not is_stable(kind, stable):
        if x.dtype.kind != "f":
            return None
        (x.count_before(axes, "equal") == 1).require()
    return x.positions(axes).write_at_places(ranked_at(x, axis=axis), *axes)


def is_stable(kind: str | None, stable: bool | None) -> bool:
    """Tell whether a sort of NumPy's keeps the order of equal elements."""
    return bool(stable) or (kind is not None and kind[:1].lower() in ("s", "m"))  # NumPy reads the first letter


def put_back(t: Any, order: Any, axis: int) -> Any:
    """Return the array whose elements at some places along an axis, each of them once, are given."""
    found = np.empty(t.shape, t.dtype)
    if t.ndim == 1:
        found[order] = t
    else:
        np.put_along_axis(found, order, t, axis)
    return found


def transfer(t: Any, source: Any, target: Any, axis: int) -> Any:
    """Move what belongs to the elements of `source` to the same elements where `target` has them.

    Both hold the same elements along the axis, in different orders; equal elements keep their order.
    """
    t = np.take_along_axis(t, order_of(source, axis), axis)
    return np.take_along_axis(t, ranks(target, axis), axis)


def rearranged_vjp(ct: Any, out: Any, x: Any, *, axis: int, **_options: Any) -> Any:
    """Give each element the cotangent of the place that it went to."""
    return transfer(ct, out, x, axis)


def rearranged_jvp(tangents: Any, out: Any, x: Any, *, axis: int, **_options: Any) -> Any:
    """Let the tangents follow their elements."""
    return transfer(tangents[0], x, out, axis)


def take_places(t: Any, places: Any, axis: int) -> Any:
    """Return the elements at places along an axis."""
    return t[places] if type(places) is np.ndarray and places.ndim == 1 else np.take_along_axis(t, places, axis)


def sorted_vjp(ct: Any, _out: Any, x: Any, *, axis: int, **_options: Any) -> Any:
    """Give each element the cotangent of the place that it went to."""
    if type(ct) is np.ndarray and type(x) is np.ndarray:
        return put_back(ct, order_of(x, axis), axis)
    return take_places(ct, ranks(x, axis), axis)


def sorted_jvp(tangents: Any, _out: Any, x: Any, *, axis: int, **_options: Any) -> Any:
    """Let the tangents follow their elements."""
    return take_places(tangents[0], order_of(x, axis), axis)


def method(name: str) -> Callable[..., Any]:
    """Return the evaluation by an array's method, in half of the time of NumPy's function that calls it."""

    def evaluate(x: Any, **options: Any) -> Any:
        return getattr(x, name)(**options)

    return evaluate


def evaluate_sort(x: Any, *, axis: int, **options: Any) -> Any:
    """Evaluate `sort`, as NumPy does."""
    if type(x) is not np.ndarray:
        return np.sort(x, axis=axis, **options)
    out = x.copy("K")
    out.sort(axis, **options)
    return out


sort = opaque("sort", evaluate_sort, vjp=sorted_vjp, jvp=sorted_jvp, piecewise=True, form=ALONG, scalar=sorted_at)
partition = opaque("partition", np.partition, vjp=rearranged_vjp, jvp=rearranged_jvp, piecewise=True, form=ALONG)

argsort = constant("argsort", method("argsort"), form=ALONG, scalar=order_at, loop=range(1))
argpartition = constant("argpartition", np.argpartition, form=ALONG)


lexsort = constant("lexsort", lambda *keys, axis: np.lexsort(keys, axis=axis), form=ALONG)


def place_at(x: Any, *, axis: int | None, keepdims: bool = False, largest: bool, skipna: bool) -> Any:
    """Return the place of an extreme element in a kernel: the least of those that hold it, or NaN, which comes before.

    Where none of some truths holds, they are all the extremum. That of nothing but NaN, if they are left out, is an
    error. Truths are searched however many there are: loops over lanes ask for an active one in each round.
    """
    del keepdims
    if x.dtype.kind != "b" and math.prod(x.shape) > MACHINE.searched:
        return None
    axes = tuple(range(len(x.shape))) if axis is None else (axis % len(x.shape),)
    length = math.prod([x.shape[k] for k in axes])
    if x.dtype.kind == "b":
        holds = x if largest else ~x
    else:
        if skipna and x.dtype.kind == "f":
            missing = is_nan(x)
            (~np.all(missing, axis=axes, keepdims=True)).require()
            x = np.where(missing, -math.inf if largest else math.inf, x)
        holds = x == (np.max if largest else np.min)(x, axis=axes, keepdims=True)
        if x.dtype.kind == "f" and not skipna:
            holds = holds | is_nan(x)
    place = np.min(np.where(holds, x.positions(axes), length), axis=axes, keepdims=True)
    return np.where(place == length, 0, place)


def extreme_place(name: str, evaluate: Callable[..., Any], largest: bool) -> Any:
    """Declare the place of an extreme element; with NaN left out, if the name says so."""
    scalar = functools.partial(place_at, largest=largest, skipna=name.startswith("nan"))
    return constant(name, evaluate, form=PICK, scalar=scalar, loop=range(1))


argmax = extreme_place("argmax", method("argmax"), largest=True)
argmin = extreme_place("argmin", method("argmin"), largest=False)
nanargmax = extreme_place("nanargmax", np.nanargmax, largest=True)
nanargmin = extreme_place("nanargmin", np.nanargmin, largest=False)


def search(a: Any, v: Any, *sorter: Any, side: Any) -> Any:
    """Evaluate `searchsorted`, with or without a sorter."""
    return np.searchsorted(a, v, side, *sorter)


searchsorted = constant(
    "searchsorted",
    search,
    form=Routine("(n),(),(n)->()", stacked=False),
    scalar=lambda a, v, *sorter, side: np.searchsorted(np.take(a, *sorter) if sorter else a, v, side),
    loop=range(3),
)


def digitize_at(x: Any, bins: Any, *, right: bool) -> Any:
    """Return the numbers of bins in a kernel, whose edges rise or fall; else NumPy raises its error."""
    (count,) = bins.shape
    side: Any = "left" if right else "right"
    if count == 1:
        return np.searchsorted(bins, x, side)
    place: Any = np.arange(count - 1, like=bins)
    low, high = np.take(bins, place), np.take(bins, place + 1)
    rises, falls = [np.all(order, axis=(0,), keepdims=True) for order in (low <= high, low >= high)]
    (rises | falls).require()
    backwards = np.take(bins, np.arange(count, like=bins) * -1 + (count - 1))
    from_start, from_end = np.searchsorted(bins, x, side), count - np.searchsorted(backwards, x, side)
    return np.where(np.take(rises, 0), from_start, from_end)


def isin_at(x: Any, tested: Any, *, assume_unique: bool, invert: bool, kind: Any) -> Any:
    """Tell which elements equal one of others in a kernel, by comparing all pairs."""
    del assume_unique, kind
    if math.prod((*x.shape, *tested.shape)) > MACHINE.compared or x.dtype != tested.dtype:
        return None
    front, back = range(len(x.shape)), range(len(x.shape), len(x.shape) + len(tested.shape))
    equal = np.expand_dims(x, back) == np.expand_dims(tested, front)
    found = np.any(equal, axis=tuple(back), keepdims=True)
    return ~found if invert else found


digitize = constant(
    "digitize", np.digitize, form=Routine("(),(n)->()", stacked=False), scalar=digitize_at, loop=range(2)
)
isin = constant("isin", np.isin, form=Routine("(),(n)->()", stacked=False), scalar=isin_at, loop=range(2))


def first_occurrences(x: Any, *, axis: int | None, equal_nan: bool) -> tuple[Any, Any, Any]:
    """Return, for each of the distinct elements in order: its first index, the inverse of all, and its count."""
    _, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan
    )
    return first, inverse, counts


unique = constant(
    "unique",
    first_occurrences,
    outputs=3,
    form=Selection("Find the distinct elements outside of the traced function"),
)
