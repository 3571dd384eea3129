"""Einstein sums: the cotangent of an operand is an Einstein sum of the output's cotangent with the other operands.

Labels are numbers here. The axes that an ellipsis stands for are labelled -1, -2, ... from the right, which aligns
them as broadcasting does. As in NumPy, an axis of length one goes with any length of the same label.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.core.aval import Aval
from wengert.core.declare import bilinear, linear, opaque
from wengert.core.primitive import Primitive
from wengert.errors import ShapeError, describe
from wengert.primitives.product_batches import Flags, Params, ranks
from wengert.primitives.product_shapes import abstract_einsum, order_of_einsum

Labels = tuple[int, ...]
Subscripts = str | tuple[tuple[Any, ...], ...]
WORTH_A_PATH = 100_000  # products from which the search for a path, some 50 microseconds, pays


def call(operands: Sequence[Any], subscripts: Subscripts, optimize: Any, **options: Any) -> Any:
    """Call `numpy.einsum` in the form in which the user did."""
    if isinstance(optimize, tuple):
        optimize = list(optimize)
    if isinstance(subscripts, str):
        return np.einsum(subscripts, *operands, optimize=optimize, **options)
    lists = [list(labels) for labels in subscripts]
    pairs = [item for pair in zip(operands, lists, strict=False) for item in pair]
    return np.einsum(*pairs, *lists[len(operands) :], optimize=optimize, **options)


def terms(subscripts: Subscripts, count: int) -> tuple[list[list[Any]], list[Any] | None]:
    """Return labels and ellipses of each operand, and of the output if it was given."""
    if not isinstance(subscripts, str):
        given = [list(labels) for labels in subscripts]
        return given[:count], given[count] if len(given) > count else None
    operands, arrow, output = subscripts.replace(" ", "").partition("->")
    return [symbols(term) for term in operands.split(",")], symbols(output) if arrow else None


def symbols(term: str) -> list[Any]:
    """Return the labels of a term as numbers, with Ellipsis for the three dots."""
    return [Ellipsis if symbol == "." else ord(symbol) for symbol in term.replace("...", ".")]


def without_ellipsis(term: Iterable[Any], count: int) -> Labels:
    """Return labels with those of `count` axes in the place of an ellipsis."""
    labels: list[int] = []
    for label in term:
        labels += range(-count, 0) if label is Ellipsis else [label]
    return tuple(labels)


@lru_cache(maxsize=1024)
def parse(subscripts: Subscripts, ndims: tuple[int, ...]) -> tuple[tuple[Labels, ...], Labels]:
    """Return the labels of operands with given numbers of axes, and those of the output.

    >>> parse("ij,jk", (2, 2)) == (((105, 106), (106, 107)), (105, 107))
    True
    """
    given, output = terms(subscripts, len(ndims))
    hidden = [ndim - len(term) + 1 if Ellipsis in term else 0 for term, ndim in zip(given, ndims, strict=True)]
    operands = tuple(map(without_ellipsis, given, hidden))
    most = max(hidden, default=0)
    if output is not None:
        return operands, without_ellipsis(output, most)
    named = Counter(label for labels in operands for label in labels if label >= 0)
    return operands, (*range(-most, 0), *sorted(label for label, times in named.items() if times == 1))


def lengths_of(labels: Sequence[Labels], shapes: Sequence[tuple[int, ...]]) -> dict[int, int]:
    """Return the length of each label: that of its axes, of which some may be 1."""
    lengths: dict[int, int] = {}
    for names, shape in zip(labels, shapes, strict=True):
        for name, length in zip(names, shape, strict=True):
            if lengths.get(name, 1) == 1:
                lengths[name] = length
    return lengths


def einsum_of(labels: Sequence[Labels], arrays: Sequence[Any], output: Labels) -> Any:
    """Return the Einstein sum of arrays by labels, along a path where that is worth its search."""
    if len(arrays) == 1 and labels[0] == output:
        return arrays[0]
    short = {label: i for i, label in enumerate(dict.fromkeys(label for names in labels for label in names))}
    shapes = [x.shape for x in arrays]
    lengths = lengths_of(labels, shapes)
    equal = all(
        lengths[label] == length
        for names, shape in zip(labels, shapes, strict=True)
        for label, length in zip(names, shape, strict=True)
    )
    pairs: list[Any] = []
    for names, x in zip(labels, arrays, strict=True):
        pairs += [x, [short[label] for label in names]]
    optimize = equal and len(arrays) > 1 and math.prod(lengths.values()) >= WORTH_A_PATH
    return np.einsum(*pairs, [short[label] for label in output], optimize=optimize)


def cotangent(ct: Any, output: Labels, own: Labels, shape: tuple[int, ...], labels: Any, others: Any) -> Any:
    """Return the cotangent of one operand of an Einstein sum.

    Args:
        ct: the cotangent of the output.
        output: the labels of the output.
        own: the labels of the operand.
        shape: its shape.
        labels: the labels of the other operands.
        others: the other operands.

    The operand's labels each get one of its axes, the first that has the full length. What the sum has to give are
    those that occur elsewhere; along the others the cotangent is constant. A repeated label selects a diagonal.
    """
    if 0 in shape:
        return np.zeros(shape, ct.dtype)
    arrays, names = [ct, *others], [output, *labels]
    elsewhere = lengths_of(names, [x.shape for x in arrays])
    mine = lengths_of([own], [shape])
    place = {label: list(zip(own, shape, strict=True)).index((label, mine[label])) for label in mine}
    kept = [
        label
        for label in sorted(place, key=place.__getitem__)
        if label in elsewhere and not (mine[label] == 1 and elsewhere[label] != 1)
    ]
    found = einsum_of(names, arrays, tuple(kept))
    lengths = [1] * len(shape)
    for label, length in zip(kept, found.shape, strict=True):
        lengths[place[label]] = length
    return on_diagonals(found.reshape(lengths), own, shape, place)


def on_diagonals(ct: Any, own: Labels, shape: tuple[int, ...], place: dict[int, int]) -> Any:
    """Broadcast a cotangent to a shape, with zeros off the diagonals that repeated labels select."""
    repeats = [
        (place[label], axis)
        for axis, (label, length) in enumerate(zip(own, shape, strict=True))
        if axis != place[label] and length == shape[place[label]]
    ]
    if not repeats:
        return ct if ct.shape == shape else np.broadcast_to(ct, shape).copy()
    grid = np.ogrid[tuple(slice(n) for n in shape)]
    mask = np.ones((1,) * len(shape), np.bool_)
    for first, second in repeats:
        mask = mask & (grid[first] == grid[second])
    return np.where(np.broadcast_to(mask, shape), ct, 0)


def transpose_one(ct: Any, aval: Aval, *, subscripts: Subscripts, **_options: Any) -> Any:
    """Return the cotangent of the only operand."""
    (own,), output = parse(subscripts, (len(aval.shape),))
    return cotangent(ct, output, own, aval.shape, [], [])


def transpose_left(ct: Any, aval: Aval, right: Any, *, subscripts: Subscripts, **_options: Any) -> Any:
    """Return the cotangent of the first of two operands."""
    (own, other), output = parse(subscripts, (len(aval.shape), right.ndim))
    return cotangent(ct, output, own, aval.shape, [other], [right])


def transpose_right(ct: Any, aval: Aval, left: Any, *, subscripts: Subscripts, **_options: Any) -> Any:
    """Return the cotangent of the second of two operands."""
    (other, own), output = parse(subscripts, (left.ndim, len(aval.shape)))
    return cotangent(ct, output, own, aval.shape, [other], [left])


def vjp_many(ct: Any, _out: Any, *operands: Any, subscripts: Subscripts, **_options: Any) -> tuple[Any, ...]:
    """Return the cotangents of all operands."""
    labels, output = parse(subscripts, tuple(x.ndim for x in operands))
    return tuple(
        cotangent(ct, output, own, x.shape, [*labels[:i], *labels[i + 1 :]], [*operands[:i], *operands[i + 1 :]])
        for i, (own, x) in enumerate(zip(labels, operands, strict=True))
    )


def evaluate(*operands: Any, subscripts: Subscripts, optimize: Any, **options: Any) -> Any:
    """Evaluate an Einstein sum."""
    try:
        return call(operands, subscripts, optimize, **options)
    except ValueError as error:
        check_lengths(subscripts, operands, error)
        raise


def check_lengths(subscripts: Subscripts, operands: Sequence[Any], error: ValueError) -> None:
    """Raise a ShapeError if axes of one label have different lengths; other mistakes NumPy's error tells."""
    shapes = [np.shape(x) for x in operands]
    try:
        labels, _ = parse(subscripts, tuple(map(len, shapes)))
        pairs = [pair for names, shape in zip(labels, shapes, strict=True) for pair in zip(names, shape, strict=True)]
    except ValueError:
        return
    for label in dict(pairs):
        found = sorted({length for name, length in pairs if name == label} - {1})
        if len(found) > 1:
            what = f"axes of lengths {' and '.join(map(str, found))} for {spelled(label, subscripts)}"
            raise ShapeError(
                describe(
                    "einsum",
                    f"{what}, in shapes {' and '.join(map(str, shapes))}",
                    "one length for each label is needed",
                    "Correct the subscripts, or transpose an operand",
                )
            ) from error


def spelled(label: int, subscripts: Subscripts) -> str:
    """Return how the user wrote a label."""
    if label < 0:
        return "an axis of the ellipsis"
    return f"label {chr(label)!r}" if isinstance(subscripts, str) else f"label {label}"


def batch_einsum(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, params: Params) -> Any:
    """Give the batch axes a label of their own, which the output has in front."""
    labels, output = parse(params["subscripts"], tuple(ranks(operands, batched)))
    batch = max((label for names in labels for label in names), default=0) + 1
    named = [(batch, *names) if flag else names for names, flag in zip(labels, batched, strict=True)]
    result = einsum_of(named, operands, (batch, *output))
    dtype = params.get("dtype")
    return result if dtype is None else result.astype(dtype)


def steps_of_einsum(
    primitive: Primitive, _size: int, shape: tuple[int, ...], params: Params
) -> list[tuple[Primitive, dict[str, Any]]]:
    """Give the batch axis of the only operand a label of its own, which the output has in front too."""
    (own,), output = parse(params["subscripts"], (len(shape),))
    labels = {label: i for i, label in enumerate(dict.fromkeys(own), 1)}
    subscripts = tuple((0, *[labels[label] for label in names]) for names in (own, output))
    return [(primitive, {**params, "subscripts": subscripts})]


einsum_one = linear(
    "einsum_one",
    evaluate,
    transpose=transpose_one,
    view=True,
    steps=steps_of_einsum,
    abstract=abstract_einsum(evaluate, parse),
    order=order_of_einsum(evaluate, parse),
)
einsum_two = bilinear(
    "einsum_two",
    evaluate,
    (transpose_left, transpose_right),
    batch=batch_einsum,
    abstract=abstract_einsum(evaluate, parse),
)
einsum_many = opaque(
    "einsum_many", evaluate, vjp=vjp_many, batch=batch_einsum, abstract=abstract_einsum(evaluate, parse)
)
