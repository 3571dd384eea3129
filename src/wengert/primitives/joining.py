"""Joining: several arrays in one, and one array repeated or extended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Place, View
from wengert.core.primitives.declare import linear
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import at_once

Params = Mapping[str, Any]
Steps = list[tuple[Primitive, dict[str, Any]]]
Widths = tuple[tuple[int, int], ...]


# Several arrays


def join(*xs: Any, axis: int, lengths: Sequence[int] = (), dtype: Any = None, casting: str = "same_kind") -> Any:
    """Evaluate `concatenate`; without options NumPy takes less time."""
    if dtype is None and casting == "same_kind":
        return np.concatenate(xs, axis)
    return np.concatenate(xs, axis=axis, dtype=dtype, casting=casting)  # type: ignore[call-overload]  # the stub wants literals


def transpose_join(
    ct: Any, avals: Sequence[Aval | None], *, axis: int, lengths: Sequence[int], dtype: Any, casting: str
) -> list[Any]:
    """Cut the cotangent into the parts that were joined."""
    parts, start = [], 0
    for aval, length in zip(avals, lengths, strict=True):
        part = (*(slice(None),) * axis, slice(start, start + length))
        parts.append(None if aval is None else ct[part])
        start += length
    return parts


def pile(*xs: Any, axis: int, dtype: Any, casting: str) -> Any:
    """Evaluate `stack` of arrays of one shape, as NumPy does once it has found that out."""
    layer = (*(slice(None),) * axis, None)
    return join(*[x[layer] for x in xs], axis=axis, dtype=dtype, casting=casting)


def transpose_pile(ct: Any, avals: Sequence[Aval | None], *, axis: int, dtype: Any, casting: str) -> list[Any]:
    """Take the layers apart."""
    before = (slice(None),) * axis
    return [None if aval is None else ct[(*before, i)] for i, aval in enumerate(avals)]


concatenate = linear(
    "concatenate",
    join,
    transpose=transpose_join,
    variadic=True,
    form=Place(("axis",)),
)
stack = linear("stack", pile, transpose=transpose_pile, variadic=True, form=Place(("axis",)))


# One array, repeated


def turn(x: Any, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Any:
    """Evaluate `roll`: two copies, for which NumPy takes 8 us."""
    length = x.shape[axis[0]] if len(axis) == 1 else 0
    if not length:
        return np.roll(x, shift, axis)
    by = shift[0] % length
    out = np.empty_like(x)
    before = (slice(None),) * axis[0]
    out[(*before, slice(by, None))] = x[(*before, slice(None, length - by))]
    out[(*before, slice(None, by))] = x[(*before, slice(length - by, None))]
    return out


def transpose_tile(ct: Any, aval: Aval, *, reps: tuple[int, ...]) -> Any:
    """Sum the cotangents of the copies."""
    interleaved = tuple(length for pair in zip(reps, aval.shape, strict=True) for length in pair)
    return ct.reshape(interleaved).sum(axis=tuple(range(0, len(interleaved), 2)))


def transpose_repeat(ct: Any, aval: Aval, *, repeats: int, axis: int) -> Any:
    """Sum the cotangents of the copies of each element."""
    before, after = aval.shape[: axis + 1], aval.shape[axis + 1 :]
    return ct.reshape((*before, repeats, *after)).sum(axis=axis + 1)


tile = linear(
    "tile", lambda x, reps: np.tile(x, reps), transpose=transpose_tile, fresh=True, form=View(front=(("reps", 1),))
)
repeat = linear(
    "repeat",
    lambda x, repeats, axis: np.repeat(x, repeats, axis),
    transpose=transpose_repeat,
    fresh=True,
    form=View(("axis",)),
)
roll: Linear = linear(
    "roll",
    turn,
    transpose=lambda ct, _aval, shift, axis: at_once(roll, ct, shift=tuple([-by for by in shift]), axis=axis),
    fresh=True,
    form=View(("axis",)),
)


# One array, extended


def inner(widths: Widths, shape: Sequence[int]) -> tuple[slice, ...]:
    """Return the index of the original elements in a padded array."""
    return tuple(slice(left, left + length) for (left, _), length in zip(widths, shape, strict=True))


def surround(x: Any, *, widths: Widths) -> Any:
    """Evaluate `pad` with zeros, in the memory order in which NumPy does."""
    shape = [left + length + right for (left, right), length in zip(widths, x.shape, strict=True)]
    out = np.zeros(shape, x.dtype, "F" if type(x) is np.ndarray and x.flags.fnc else "C")
    out[inner(widths, x.shape)] = x
    return out


pad = linear(
    "pad",
    surround,
    transpose=lambda ct, aval, widths: ct[inner(widths, aval.shape)],
    form=Place(front=(("widths", (0, 0)),)),
)
