"""Bounds on what checking an equation of an untrusted file may make NumPy compute.

The shapes of results are found by asking NumPy, so an equation whose result would be enormous has to be refused
before it is checked. The estimates are upper bounds of the elements of a result, or of the work where that is more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of, shape_of

Shapes = Sequence[tuple[int, ...]]
Params = Mapping[str, Any]

HARMLESS = frozenset(
    (
        *("axis", "axes", "axis1", "axis2", "ddof", "decimals", "dims", "index", "kth", "lengths"),
        *("offset", "optimize", "order", "shift", "subscripts"),
    )
)
"""Parameters whose integers do not decide how large a result is."""


def count_claimed(primitive: Primitive, inputs: Sequence[Any], params: Params) -> int:
    """Return about how many elements an equation claims, at most: of its result, or in the course of it."""
    if primitive.name in ("getitem", "assign"):
        return of_part(primitive.name, inputs, params)
    shapes = [shape_of(x) for x in inputs]
    own = ESTIMATES.get(primitive.name)
    if own is not None:
        return max(own(shapes, params), 1)
    found = [of_numbers(value) for key, value in params.items() if key not in HARMLESS]
    found += [broadcast(shapes), broadcast([s[:-2] for s in shapes]) * max((size(s[-2:]) for s in shapes), default=1)]
    if not isinstance(primitive, Elementwise):
        found.append(sum(map(size, shapes)))
    return max(found)


def size(shape: Iterable[int]) -> int:
    """Return the number of elements, counting empty axes as one."""
    return math.prod(abs(n) for n in shape if n)


def broadcast(shapes: Shapes) -> int:
    """Return the size of the broadcast shape; 1 if there is none."""
    try:
        return size(np.broadcast_shapes(*(tuple(map(abs, shape)) for shape in shapes)))
    except ValueError:
        return 1


def of_numbers(value: Any) -> int:
    """Return the product of the integers in a parameter, in tuples of tuples, too."""
    if isinstance(value, tuple | list):
        return math.prod(max(1, of_numbers(item)) for item in value)
    return abs(value) if type(value) is int else 1


def of_part(name: str, inputs: Sequence[Any], params: Params) -> int:
    """Bound an indexed part: the broadcast indices, or those of a mask, times the axes that they may leave."""
    x, arrays = shape_of(inputs[0]), inputs[1 if name == "getitem" else 2 :]
    masks = [size(shape_of(a)) for a in arrays if aval_of(a).dtype.kind == "b"]
    indices = broadcast([shape_of(a) for a in arrays if aval_of(a).dtype.kind != "b"])
    part = max(indices, *masks, 1) * size(sorted(x)[len(arrays) :])
    steps = [of_numbers(value) for _, step in params.get("path", ()) for key, value in step if key not in HARMLESS]
    return max(part, *steps, *(size(shape_of(a)) for a in inputs))


def of_pad(shapes: Shapes, params: Params) -> int:
    """Bound a padded array: each axis grows by the widths on both sides."""
    widths = params["widths"]
    return size(n + abs(before) + abs(after) for n, (before, after) in zip(shapes[0], widths, strict=True))


def times(name: str) -> Callable[[Shapes, Params], int]:
    """Return the bound of a primitive that makes the product of a parameter's integers copies."""
    return lambda shapes, params: broadcast(shapes) * max(1, of_numbers(params[name]))


def product(shapes: Shapes, _params: Params) -> int:
    """Bound what combines each element of one operand with each of the other."""
    return math.prod(map(size, shapes))


def of_square(shapes: Shapes, _params: Params) -> int:
    """Bound the square matrices of decompositions, each as large as the longer side."""
    *batch, rows, columns = shapes[0]
    return size(batch) * max(abs(rows), abs(columns), 1) ** 2


def of_contraction(_shapes: Shapes, params: Params) -> int:
    """Bound the products that are summed."""
    return size(params["labels"].lengths)


ESTIMATES: Mapping[str, Callable[[Shapes, Params], int]] = {
    "contract": of_contraction,
    "pad": of_pad,
    "tile": times("reps"),
    "repeat": times("repeats"),
    **dict.fromkeys(("qr", "scipy_qr", "svd"), of_square),
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "fft2", "ifft2"), times("n")),
    "linspace": times("num"),
    "sharing": lambda shapes, _params: size(shapes[0]) * abs(shapes[0][-1]),
    "unravel_index": lambda shapes, params: size(shapes[0]) * len(params["shape"]),
    **dict.fromkeys(("outer", "kron", "convolve", "correlate"), product),
}
