"""Selections by masks whose elements are not there yet: `y[mask]` while tracing, or where it differs between lanes.

Nobody knows how many elements there are, so such a selection is all of the array until it is put back, as by
`y[mask] *= s`: then `where` decides. Operations on each element by itself are carried out on all; elements that the
mask leaves out are replaced by the first that it chooses, lest NumPy warn of what it would not have computed. Anything
else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from wengert.core.aval import shape_of
from wengert.core.dispatch import apply
from wengert.core.form import Pointwise, form_of
from wengert.core.primitive import Primitive
from wengert.core.source import Position, caller, position_of
from wengert.core.tensor import Tensor, is_concrete, make_tensor
from wengert.core.trace import Trace
from wengert.core.views import current, share
from wengert.errors import GraphError, UsageError, describe
from wengert.primitives.barriers import barrier
from wengert.primitives.index_layout import text_of_masks
from wengert.primitives.selection import where

__all__ = ["Masked", "differs_between_lanes", "is_undecided", "put_back", "selected", "unknown_mask_error"]


class Chosen(NamedTuple):
    """Hold what a selection stands for.

    Attributes:
        whole: the array of which the mask chooses elements.
        mask: the mask.
        place: where in the user's program it was selected.
    """

    whole: Tensor
    mask: Tensor
    place: Position

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.whole.dtype

    def is_of(self, mask: Any) -> bool:
        """Tell whether this selects by a mask, which has not been written to since."""
        return type(mask) is Tensor and current(mask)._value is self.mask._value

    def error(self) -> GraphError | UsageError:
        """Return the error about any other use than in operations on each element, or to put it back."""
        return unknown_mask_error(self.mask, self.place)


class Masked(Trace):
    """Be the trace of all such selections."""

    __slots__ = ()

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Carry out what acts on each element by itself."""
        chosen = [x._value for x in operands if type(x) is Tensor and x._trace is self]
        first: Chosen = chosen[0]
        trailing = first.whole.ndim - first.mask.ndim
        fits = all(one.is_of(first.mask) and one.whole.ndim == first.whole.ndim for one in chosen)
        if not fits or not (primitive.kind == "elementwise" or isinstance(form_of(primitive), Pointwise)):
            raise first.error()
        if any(np.ndim(x) > trailing for x in operands if not (type(x) is Tensor and x._trace is self)):
            raise first.error()
        wholes = [x._value.whole if type(x) is Tensor and x._trace is self else x for x in operands]
        return selection(Chosen(apply(primitive, *wholes, **params), first.mask, first.place))

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


def selection(chosen: Chosen) -> Tensor:
    """Return the Tensor of a selection."""
    return make_tensor(chosen, MASKED, None)


def is_undecided(mask: Any) -> bool:
    """Tell whether an index is a mask without elements of its own: traced, or one for each lane."""
    return type(mask) is Tensor and mask.dtype.kind == "b" and mask.ndim > 0 and not is_concrete(mask)


def differs_between_lanes(mask: Tensor) -> bool:
    """Tell whether a mask has elements of its own in each lane of a batch."""
    return mask._trace is not None and not mask._trace.staged


def selected(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements that such a mask chooses, which has the lengths of the first axes of the array."""
    kept = share(mask)
    whole: Tensor = x
    if 0 not in kept.shape:
        rest = x.shape[kept.ndim :]
        rows = x.reshape(math.prod(kept.shape), *rest)
        first = rows[kept.argmax().reshape(1)]
        spare = apply(where, np.any(kept), apply(barrier, first), np.ones((), x.dtype))
        whole = apply(where, with_trailing_axes(kept, x.ndim), x, spare)
    return selection(Chosen(whole, kept, position_of(*caller())))


def with_trailing_axes(mask: Tensor, rank: int) -> Tensor:
    """Return a mask with axes of length one behind its own."""
    return mask.reshape(*mask.shape, *(1,) * (rank - mask.ndim))


def put_back(target: Tensor, mask: Tensor, value: Any) -> Any:
    """Return an array with a value where such a mask holds: numbers, rows, or a selection by the same mask."""
    if type(value) is Tensor and type(value._trace) is Masked:
        chosen = value._value
        if not chosen.is_of(mask) or chosen.whole.ndim != target.ndim:
            raise chosen.error()
        value = chosen.whole
    elif len(shape_of(value)) > target.ndim - mask.ndim:
        raise unknown_mask_error(mask, position_of(*caller()))
    if value.dtype != target.dtype and value.dtype.kind != "c":
        value = value.astype(target.dtype)
    return apply(where, with_trailing_axes(mask, target.ndim), value, target)


def unknown_mask_error(mask: Any, place: Position | None = None) -> GraphError | UsageError:
    """Return the error about what a mask chooses whose elements are not there."""
    line = f"\n  {place}" if place is not None else ""
    if type(mask) is Tensor and differs_between_lanes(mask):
        return UsageError(text_of_masks() + line)
    return GraphError(
        describe(
            "getitem",
            f"a mask of shape {shape_of(mask)} whose elements are unknown while tracing",
            "a result whose shape does not depend on elements is needed",
            "Use numpy.where(mask, x, 0), or a mask that does not depend on the traced arguments",
        )
        + line
    )
