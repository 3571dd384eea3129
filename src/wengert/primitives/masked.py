"""Selections by masks whose elements are not there yet: `y[mask]` while tracing, or where it differs between lanes.

Nobody knows how many elements there are, so such a selection is all of the array until it is put back, as by
`y[mask] *= s`: then `where` decides. Operations on each element by itself are carried out on all, and so are those that
look each up in a table; elements that the mask leaves out are replaced by the first that it chooses, lest NumPy warn of
what it would not have computed. Sums and the like are those of all with `where=mask`. Anything else is refused.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from wengert.core.diagnostics.source_positions import Position, caller, position_of
from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Pointwise, Reduction, form_of
from wengert.core.forms.routine import Routine
from wengert.core.memory.views import current, share
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, Trace, alike, constant_tensor, is_concrete, make_tensor
from wengert.errors import GraphError, UsageError, describe
from wengert.primitives.conversion import barrier
from wengert.primitives.indexing.index_layout import OPERAND, Entries, text_of_masks
from wengert.primitives.selection import where
from wengert.support.records import NamedTuple


class Chosen(NamedTuple):
    """Hold what a selection stands for.

    Attributes:
        whole: the array of which the mask chooses elements.
        mask: the mask.
        place: where in the user's program it was selected.
        before: the number of axes before those of the mask.
        axis: the axis of the mask of which these are the places where it holds, as `numpy.nonzero` gives them.
    """

    whole: Tensor
    mask: Tensor
    place: Position
    before: int = 0
    axis: int | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.whole.dtype

    @property
    def trailing(self) -> int:
        """The number of axes behind those of the mask."""
        return self.whole.ndim - self.before - self.mask.ndim

    def is_of(self, mask: Any, rank: int, before: int) -> bool:
        """Tell whether this selects by a mask, or one that holds the same, from an array of as many axes."""
        alike_in_axes = self.whole.ndim == rank and self.before == before and self.mask.ndim == mask.ndim
        return alike_in_axes and alike(current(mask), self.mask)

    def of(self, whole: Any) -> Tensor:
        """Return the selection of another array by the same mask."""
        return selection(self._replace(whole=whole, axis=None))

    def spread_mask(self) -> Tensor:
        """Return the mask with axes of length one behind its own."""
        return with_trailing_axes(self.mask, self.trailing)

    def with_zeros(self) -> Tensor:
        """Return the array with zeros where the mask does not hold."""
        found: Tensor = apply(where, self.spread_mask(), self.whole, np.zeros((), self.dtype))
        return found

    def error(self) -> GraphError | UsageError:
        """Return the error about any other use than in operations on each element, or to put it back."""
        return unknown_mask_error(self.mask, self.place, "getitem" if self.axis is None else "nonzero")


class Masked(Trace):
    """Be the trace of all such selections."""

    __slots__ = ()

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Carry out what acts on each element by itself."""
        chosen = [x._value for x in operands if type(x) is Tensor and x._trace is self]
        first: Chosen = chosen[0]
        form = form_of(primitive)
        if isinstance(form, Reduction) and len(chosen) == 1 and operands[0]._value is first:
            return reduce_selection(first, primitive, form, operands[1:], params)
        if isinstance(form, Contraction) and len(chosen) == 2 == len(operands):
            return multiply_chosen(primitive, form, chosen, params)
        fits = all(one.is_of(first.mask, first.whole.ndim, first.before) for one in chosen[1:])
        acts_alone = primitive.kind == "elementwise" or isinstance(form, Pointwise)
        if not fits or not (acts_alone or (isinstance(form, Routine) and looks_up(form, operands))):
            raise first.error()
        rest: Any = partial(beside, first) if acts_alone else lambda table: table
        wholes = [x._value.whole if is_selection(x) else rest(x) for x in operands]
        return first.of(apply(primitive, *wholes, **params))

    def rank(self, tensor: Tensor) -> int:
        """Return the number of axes: one in place of those of the mask."""
        chosen = tensor._value
        return int(1 + chosen.whole.ndim - chosen.mask.ndim)

    def strides(self, tensor: Tensor) -> None:
        """Say that nothing is known of how the elements lie."""

    def shape(self, tensor: Tensor) -> NoReturn:
        """Refuse: the first length depends on elements."""
        raise tensor._value.error()

    def current(self, tensor: Tensor) -> NoReturn:
        """Refuse: nothing else may be done with it."""
        raise tensor._value.error()

    def below(self, tensor: Tensor) -> NoReturn:
        """Refuse likewise."""
        raise tensor._value.error()

    def assign(self, handle: Tensor, primitive: Any, operands: Sequence[Any], params: dict[str, Any]) -> NoReturn:
        """Refuse likewise."""
        raise next(x for x in (handle, *operands) if type(x) is Tensor and x._trace is self)._value.error()


MASKED = Masked(0)
MASKED.level = math.inf


def beside(chosen: Chosen, value: Any) -> Any:
    """Return an operand that is the same for all elements that a mask selects, with axes for those of the mask."""
    shape = shape_of(value)
    place = len(shape) - chosen.trailing - 1
    if place < 0:
        return value
    if shape[place] != 1:
        raise chosen.error()
    return np.reshape(value, (*shape[:place], *(1,) * chosen.mask.ndim, *shape[place + 1 :]))


def looks_up(form: Routine, operands: Sequence[Any]) -> bool:
    """Tell whether a routine takes each element of selections by itself, and of all others the whole."""
    given, result = form.signature.split("->")
    cores = given.removeprefix("(").removesuffix(")").split("),(")
    pairs = zip(cores, operands, strict=False)
    return result == "()" and all(is_selection(x) == (not core) for core, x in pairs)


def looked_up(x: Tensor, entries: Entries, place: Tensor) -> Tensor:
    """Return the elements of a table at the places that a mask selects.

    Args:
        x: the table.
        entries: the index, in which these places are the only array, beside whole axes.
        place: the places, whole numbers.
    """
    chosen: Chosen = place._value
    if len(entries) - entries.count(Ellipsis) > x.ndim or not all(map(is_whole_axis, entries)):
        raise chosen.error()
    first = entries.index(OPERAND)
    before = first if Ellipsis not in entries[:first] else x.ndim - (len(entries) - first)
    there: Any = apply(where, chosen.spread_mask(), chosen.whole, np.zeros((), chosen.dtype))
    whole = x[(slice(None),) * before + (there,)]
    return selection(chosen._replace(whole=whole, before=before + chosen.before, axis=None))


def part_of_each(x: Tensor, entries: Entries) -> Tensor:
    """Return what a selection holds at a number along each of its first axes, which are before those of the mask."""
    chosen: Chosen = x._value
    if len(entries) > chosen.before or any(type(entry) is not int for entry in entries):
        raise chosen.error()
    return selection(chosen._replace(whole=chosen.whole[entries], before=chosen.before - len(entries), axis=None))


def is_whole_axis(entry: Any) -> bool:
    """Tell whether an entry of an index is an array or takes all of an axis."""
    return entry is OPERAND or entry is Ellipsis or entry == slice(None)


@functools.cache
def takes_extras(evaluate: Callable[..., Any]) -> bool:
    """Tell whether a reduction takes operands that a parameter names, a mask among them."""
    return "extras" in inspect.signature(evaluate).parameters


def reduce_selection(
    chosen: Chosen, primitive: Primitive, form: Reduction, others: Sequence[Any], params: Mapping[str, Any]
) -> Tensor:
    """Carry out a reduction of a selection; along the axis of the mask over the elements that this leaves.

    Args:
        chosen: the selection.
        primitive: the reduction.
        form: its form.
        others: its operands after the first.
        params: its parameters.
    """
    if primitive.name == "norm" and params["order"] is params["axis"] is None and not params["keepdims"]:
        length: Tensor = apply(primitive, chosen.with_zeros(), **params)
        return length
    if not isinstance(params["axis"], tuple):
        raise chosen.error()
    axis, keepdims, before, more = params["axis"], params["keepdims"], chosen.before, chosen.mask.ndim - 1
    given = tuple(params.get("extras", form.operands)[: len(others)])
    if "where" in given or any(shape_of(x) for x in others):
        raise chosen.error()
    moved = tuple(j for i in axis for j in (range(i, i + more + 1) if i == before else [i + more * (i > before)]))
    if before not in axis:
        left = before if keepdims else before - sum(i < before for i in axis)
        whole = apply(primitive, chosen.whole, *others, **{**params, "axis": moved})
        return selection(chosen._replace(whole=whole, before=left))
    mask = chosen.spread_mask()
    if primitive.name == "count_nonzero":
        result = apply(primitive, chosen.with_zeros(), **{**params, "axis": moved})
    elif form.operands[-1:] == ("where",):
        result = apply(primitive, chosen.whole, *others, mask, **{**params, "axis": moved})
    elif takes_extras(primitive.evaluate):
        ufunc = params.get("ufunc", form.combine)
        starts = "initial" in given or ufunc is None or ufunc.identity is not None
        if not starts and "ufunc" in params:
            raise chosen.error()
        changed = {**params, "axis": moved, "extras": (*given, "where" if starts else "chosen")}
        result = apply(primitive, chosen.whole, *others, mask, **changed)
    else:
        raise chosen.error()
    if keepdims and more:
        shape = result.shape
        result = result.reshape(*shape[:before], *shape[before + more :])
    found: Tensor = result
    return found


def multiply_chosen(
    primitive: Primitive, form: Contraction, chosen: Sequence[Chosen], params: Mapping[str, Any]
) -> Tensor:
    """Carry out a product that sums over the axis of a mask by which both operands are selected."""
    one, other = chosen
    flat = one.mask.ndim == other.mask.ndim == 1
    if not (flat and alike(one.mask, other.mask) and sums_over_masks(form, chosen, params)):
        raise one.error()
    found: Tensor = apply(primitive, one.with_zeros(), other.with_zeros(), **params)
    return found


def sums_over_masks(form: Contraction, chosen: Sequence[Chosen], params: Mapping[str, Any]) -> bool:
    """Tell whether a product sums over the axes of masks of both of its operands together."""
    try:
        labels = form.record([x.whole.shape for x in chosen], params)
    except ValueError:  # lengths that do not fit
        return False
    first, second = (own[x.before] for own, x in zip(labels.operands, chosen, strict=True))
    return first == second and first not in labels.result


def places_of(mask: Tensor) -> tuple[Tensor, ...]:
    """Return the places where a mask holds whose elements are not there, one selection for each axis."""
    kept, place = share(mask), position_of(*caller())
    grids = np.indices(kept.shape)
    return tuple(selection(Chosen(constant_tensor(grid), kept, place, 0, axis)) for axis, grid in enumerate(grids))


def by_masks(index: Any) -> Any:
    """Return an index with a mask in place of the places where it holds."""
    entries = index if isinstance(index, tuple) else (index,)
    found: list[Any] = []
    rest = list(entries)
    while rest:
        entry = rest.pop(0)
        chosen = entry._value if type(entry) is Tensor and entry._trace is MASKED else None
        if chosen is not None and chosen.axis == 0:
            count = chosen.mask.ndim - 1
            others = [x._value for x in rest[:count] if type(x) is Tensor and x._trace is MASKED]
            if [x.axis for x in others] == [*range(1, count + 1)] and all(x.mask is chosen.mask for x in others):
                entry, rest = chosen.mask, rest[count:]
        found.append(entry)
    return tuple(found)


def selection(chosen: Chosen) -> Tensor:
    """Return the Tensor of a selection."""
    return make_tensor(chosen, MASKED, None)


def is_selection(value: Any) -> bool:
    """Tell whether a value is such a selection."""
    return type(value) is Tensor and value._trace is MASKED


def is_undecided(mask: Any) -> bool:
    """Tell whether an index is a mask without elements of its own: traced, or one for each lane."""
    return type(mask) is Tensor and mask.dtype.kind == "b" and mask.ndim > 0 and not is_concrete(mask)


def differs_between_lanes(mask: Tensor) -> bool:
    """Tell whether a mask has elements of its own in each lane of a batch."""
    return mask._trace is not None and not mask._trace.staged


def select_elements(x: Tensor, mask: Tensor, before: int = 0) -> Tensor:
    """Return the elements that such a mask chooses.

    Args:
        x: the array.
        mask: the mask, which has the lengths of the array's axes behind the first ones.
        before: how many axes these are.
    """
    kept = share(mask)
    chosen = Chosen(x, kept, position_of(*caller()), before)
    if 0 in kept.shape:
        return selection(chosen)
    first, rest = x.shape[:before], x.shape[before + kept.ndim :]
    lines = x.reshape(*first, math.prod(kept.shape), *rest)
    line = lines[(slice(None),) * before + (kept.argmax().reshape(1),)]
    line = line.reshape(*first, *(1,) * kept.ndim, *rest)
    spare = apply(where, np.any(kept), apply(barrier, line), np.ones((), x.dtype))
    return chosen.of(apply(where, chosen.spread_mask(), x, spare))


def with_trailing_axes(mask: Tensor, count: int) -> Tensor:
    """Return a mask with so many axes of length one behind its own."""
    return mask.reshape(*mask.shape, *(1,) * count) if count else mask


def put_back(target: Tensor, mask: Tensor, value: Any, before: int = 0) -> Any:
    """Return an array with a value where such a mask holds: numbers, rows, or a selection by the same mask."""
    chosen = Chosen(target, mask, position_of(*caller()), before)
    if type(value) is Tensor and type(value._trace) is Masked:
        given = value._value
        if not given.is_of(mask, target.ndim, before):
            raise given.error()
        value = given.whole
    else:
        value = beside(chosen, value)
    if value.dtype != target.dtype and value.dtype.kind != "c":
        value = value.astype(target.dtype)
    return apply(where, chosen.spread_mask(), value, target)


def unknown_mask_error(mask: Tensor, place: Position | None = None, name: str = "getitem") -> GraphError | UsageError:
    """Return the error about what a mask chooses whose elements are not there."""
    line = f"\n  {place}" if place is not None else ""
    if type(mask) is Tensor and differs_between_lanes(mask):
        return UsageError(text_of_masks() + line)
    return GraphError(
        describe(
            name,
            f"a mask of shape {shape_of(mask)} whose elements are unknown while tracing",
            "a result whose shape does not depend on elements is needed",
            "Use numpy.where(mask, x, 0), mask.sum() for their number, or a mask that does not depend on the traced"
            " arguments",
        )
        + line
    )
