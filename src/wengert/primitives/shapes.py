"""Shapes: the same elements in another arrangement, mostly views, as in NumPy; and several arrays joined in one."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.element_maps import rolled_maps
from wengert.core.forms.form import Flags, Lanes, Params, Shape, Steps
from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import SIZE, Boxes, Place, View
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate
from wengert.core.memory.masked_selection import select_where, select_where_not
from wengert.core.memory.views import Step
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import linear
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import apply, at_once
from wengert.core.values.interop import without_dispatch
from wengert.core.values.tensor import Tensor
from wengert.primitives import rewrites
from wengert.support.machine import MACHINE

Axes = tuple[int, ...]
BROADCAST = without_dispatch(np.broadcast_to)


def broadcast(x: Any, *, shape: Shape) -> Any:
    """Evaluate `broadcast_to`."""
    return BROADCAST(x, shape)


@functools.lru_cache(maxsize=256)
def inverse(axes: Axes) -> Axes:
    """Return the permutation that undoes one; working it out takes longer than the transpose.

    >>> inverse((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


class Reshape(View):
    """Fortran's order is C's order with all axes reversed: lanes stay in front."""

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Read every lane alike."""
        target = params["shape"]
        if params["order"] == "C":
            return operands, [(primitive, {"shape": (size, *target), "order": "C"})]
        return operands, [
            (transpose, {"axes": (0, *range(len(operands[0].shape) - 1, 0, -1))}),
            (primitive, {"shape": (size, *target[::-1]), "order": "C"}),
            (transpose, {"axes": (0, *range(len(target), 0, -1))}),
        ]

    def compose(self, primitive: Primitive, params: Params, shape: Shape, before: Step) -> Steps | None:
        """Leave a reshape in C order before another out: where both are views, so is the other alone."""
        other, step = before
        plain = other is primitive and params["order"] == "C" == dict(step)["order"]
        return [(primitive, dict(params))] if plain else None


class Permutation(View):
    """Permutations of axes: one after another is one."""

    def compose(self, primitive: Primitive, params: Params, shape: Shape, before: Step) -> Steps | None:
        """Join a permutation to a permutation."""
        other, step = before
        if other is not primitive:
            return None
        axes = dict(step)["axes"]
        return [(primitive, {"axes": tuple([axes[axis] for axis in params["axes"]])})]


class Broadcast(View):
    """Axes are aligned from the right: new ones stand behind the batch axis."""

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Give every lane its new axes first."""
        target, shape = params["shape"], operands[0].shape[1:]
        aligned = (size, *(1,) * (len(target) - len(shape)), *shape)
        return operands, [
            (reshape, {"shape": aligned, "order": "C"}),
            (primitive, {"shape": (size, *target)}),
        ]


reshape = linear(
    "reshape",
    lambda x, shape, order: x.reshape(shape) if order == "C" else x.reshape(shape, order=order),
    transpose=lambda ct, aval, *, shape, order: (
        ct.reshape(aval.shape) if order == "C" else ct.reshape(aval.shape, order=order)
    ),
    view=True,
    form=Reshape(),
    rewrites=(rewrites.merge_reshapes,),
)
broadcast_to = linear(
    "broadcast_to",
    broadcast,
    transpose=lambda ct, aval, shape: unbroadcast(ct, aval.shape),
    view=True,
    form=Broadcast(),
    rewrites=(rewrites.merge_broadcasts,),
)
transpose = linear(
    "transpose",
    lambda x, axes: x.transpose(axes),
    transpose=lambda ct, _aval, *, axes: ct.transpose(inverse(axes)),
    view=True,
    form=Permutation(("axes",), (("axes", 0),)),
    rewrites=(rewrites.merge_transposes,),
)


def reverse(x: Any, axis: Axes) -> Any:
    """Evaluate `flip`."""
    return x[tuple([BACKWARDS if i in axis else ALL for i in range(x.ndim)])]


ALL, BACKWARDS = slice(None), slice(None, None, -1)
flip = linear(
    "flip",
    reverse,
    transpose=lambda ct, _aval, axis: reverse(ct, axis),
    view=True,
    form=View(("axis",)),
)


def unwritable(x: Any) -> Any:
    """Evaluate a view that cannot be written to."""
    window = np.asarray(x).view()
    window.flags.writeable = False
    return window


read_only = linear("read_only", unwritable, transpose=lambda ct, _aval: ct, view=True, form=View(), scalar="copy")


# Diagonals: taking one and placing one are each other's transposes


def put_diagonal(x: Any, *, shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    """Evaluate the array of zeros with `x` as a diagonal."""
    out = np.zeros(shape, x.dtype)
    window = out.diagonal(offset, axis1, axis2)
    window.flags.writeable = True  # NumPy says that it may be at some time
    window[...] = x
    return out


def transpose_diagonal(ct: Any, aval: Aval, *, offset: int, axis1: int, axis2: int) -> Any:
    """Place the cotangent on the diagonal it came from."""
    return at_once(place_diagonal, ct, shape=aval.shape, offset=offset, axis1=axis1, axis2=axis2)


diagonal = linear(
    "diagonal",
    lambda x, offset, axis1, axis2: x.diagonal(offset, axis1, axis2),
    transpose=transpose_diagonal,
    view=True,
    fresh=True,
    form=View(("axis1", "axis2")),
)
place_diagonal = linear(
    "place_diagonal",
    put_diagonal,
    transpose=lambda ct, _aval, shape, offset, axis1, axis2: np.diagonal(ct, offset, axis1, axis2),
    form=Place(("axis1", "axis2"), (("shape", SIZE),)),
)


def transpose_trace(ct: Any, aval: Aval, *, offset: int, axis1: int, axis2: int) -> Any:
    """Place the cotangent on the whole diagonal."""
    if type(ct) is not Tensor:
        return put_diagonal(ct[..., None], shape=aval.shape, offset=offset, axis1=axis1, axis2=axis2)
    rows, columns = aval.shape[axis1], aval.shape[axis2]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    elements = np.broadcast_to(ct[..., None], (*ct.shape, length))
    return apply(place_diagonal, elements, shape=aval.shape, offset=offset, axis1=axis1, axis2=axis2)


def diagonal_links(_position: int, core: Shape, _out: Shape, params: Params) -> list[BoxMap]:
    """Return where the diagonal is that `trace` adds up."""
    offset = params["offset"]
    row, column = max(-offset, 0), max(offset, 0)
    length = max(0, min(core[0] - row, core[1] - column))
    return [BoxMap((length,), (), (Coordinate.along(0, 1, row), Coordinate.along(0, 1, column)))] if length else []


trace = linear(
    "trace",
    lambda x, offset, axis1, axis2: x.trace(offset, axis1, axis2),
    transpose=transpose_trace,
    fresh=True,
    form=Routine("(n,m)->()", ("axis1", "axis2"), links=diagonal_links),
    parts="each",
)


# Triangles


small_mask: Any = functools.lru_cache(maxsize=64)(np.tri)  # which takes longer than all the rest; nobody writes to it


def triangle_of(x: Any, *, k: int, upper: bool) -> Any:
    """Evaluate `tril` of matrices, or `triu`."""
    rows, columns = x.shape[-2:]
    make = small_mask if rows * columns <= 2 * MACHINE.call_elements else np.tri
    mask = make(rows, columns, k - 1 if upper else k, bool)
    if type(x) is np.ndarray and x.dtype.kind == "f":
        return select_where_not(mask, x) if upper else select_where(mask, x)
    zeros = np.zeros(1, x.dtype)
    return np.where(mask, zeros, x) if upper else np.where(mask, x, zeros)


def triangle_links(_position: int, core: Shape, _out: Shape, params: Params) -> list[BoxMap]:
    """Return the elements that `tril` or `triu` keeps."""
    mask = np.tri(core[0], core[1], params["k"] - 1 if params["upper"] else params["k"], bool)
    rows, columns = np.nonzero(~mask if params["upper"] else mask)
    own = [Coordinate.from_table(0, rows), Coordinate.from_table(0, columns)]
    return [BoxMap((len(rows),), own, own)] if len(rows) else []


triangle: Linear = linear(
    "triangle",
    triangle_of,
    transpose=lambda ct, _aval, k, upper: at_once(triangle, ct, k=k, upper=upper),
    fresh=True,
    form=Routine("(n,m)->(n,m)", links=triangle_links),
    parts="each",
)


# Sliding windows: taking them and adding them up are each other's transposes


def slide(x: Any, *, window: Shape, axis: Axes) -> Any:
    """Evaluate `sliding_window_view`."""
    return np.lib.stride_tricks.sliding_window_view(x, window, axis)


def add_windows(windows: Any, *, shape: Shape, window: Shape, axis: Axes) -> Any:
    """Evaluate the sum of windows, each at its place: one addition of slices for each element of a window."""
    out = np.zeros(shape, windows.dtype)
    for offsets in np.ndindex(window):
        starts = [0] * len(shape)
        for dimension, offset in zip(axis, offsets, strict=True):
            starts[dimension] += offset
        places = tuple(slice(start, start + windows.shape[i]) for i, start in enumerate(starts))
        out[places] += windows[(..., *offsets)]
    return out


def transpose_slide(ct: Any, aval: Aval, *, window: Shape, axis: Axes) -> Any:
    """Add the cotangents of windows up where they overlap."""
    return at_once(place_windows, ct, shape=aval.shape, window=window, axis=axis)


sliding_windows = linear(
    "sliding_windows", slide, transpose=transpose_slide, view=True, fresh=True, form=View(("axis",))
)
place_windows = linear(
    "place_windows",
    add_windows,
    transpose=lambda ct, _aval, shape, window, axis: np.lib.stride_tricks.sliding_window_view(ct, window, axis),
    form=Place(("axis",), (("shape", SIZE),)),
)


# Several arrays in one


Widths = tuple[tuple[int, int], ...]


def join_arrays(*xs: Any, axis: int, lengths: Sequence[int] = (), dtype: Any = None, casting: str = "same_kind") -> Any:
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


def join_layers(*xs: Any, axis: int, dtype: Any, casting: str) -> Any:
    """Evaluate `stack` of arrays of one shape, as NumPy does once it has found that out."""
    layer = (*(slice(None),) * axis, None)
    return join_arrays(*[x[layer] for x in xs], axis=axis, dtype=dtype, casting=casting)


def transpose_layers(ct: Any, avals: Sequence[Aval | None], *, axis: int, dtype: Any, casting: str) -> list[Any]:
    """Take the layers apart."""
    before = (slice(None),) * axis
    return [None if aval is None else ct[(*before, i)] for i, aval in enumerate(avals)]


concatenate = linear(
    "concatenate",
    join_arrays,
    transpose=transpose_join,
    variadic=True,
    form=Place(("axis",)),
)
stack = linear("stack", join_layers, transpose=transpose_layers, variadic=True, form=Place(("axis",)))


# One array, repeated


def roll_elements(x: Any, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Any:
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


class Roll(Boxes):
    """Two copies along each axis."""

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap]:
        """Shift both parts."""
        return rolled_maps(out.shape, params["shift"], params["axis"])


roll: Linear = linear(
    "roll",
    roll_elements,
    transpose=lambda ct, _aval, shift, axis: at_once(roll, ct, shift=tuple([-by for by in shift]), axis=axis),
    fresh=True,
    form=Roll(("axis",)),
)


# One array, extended


def inside_padding(widths: Widths, shape: Sequence[int]) -> tuple[slice, ...]:
    """Return the index of the original elements in a padded array."""
    return tuple(slice(left, left + length) for (left, _), length in zip(widths, shape, strict=True))


def surround_with_zeros(x: Any, *, widths: Widths) -> Any:
    """Evaluate `pad` with zeros, in the memory order in which NumPy does."""
    shape = [left + length + right for (left, right), length in zip(widths, x.shape, strict=True)]
    out = np.zeros(shape, x.dtype, "F" if type(x) is np.ndarray and x.flags.fnc else "C")
    out[inside_padding(widths, x.shape)] = x
    return out


pad = linear(
    "pad",
    surround_with_zeros,
    transpose=lambda ct, aval, widths: ct[inside_padding(widths, aval.shape)],
    form=Place(front=(("widths", (0, 0)),)),
)
