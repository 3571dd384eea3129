"""Sums of products of arrays with a label for each axis: two by two, as products of matrices, and as convolutions.

Plans say from the labels alone how it is done, and are made once; the rest applies them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.support.caches import MOST_KNOWN
from wengert.support.records import NamedTuple

Shape = tuple[int, ...]
Names = tuple[int, ...]
Side = tuple[Shape | None, Names | None, Shape]
CALLED = 5000
"""Terms of a sum of products that take as long as calling what computes it."""


class MatrixProduct(NamedTuple):
    """Hold how a product of two arrays, whose labels are each in two of them and the result, is one of matrices.

    Attributes:
        swapped: whether the second operand is on the left.
        sides: for each side its shape and the order in which its axes are taken, if not as they are, else None and
            None; and the shape of its matrices.
        shape: the shape of their product with an axis for each label; None if elements are multiplied without a sum.
        order: the order in which the result takes these axes, None as they are.
    """

    swapped: bool
    sides: tuple[Side, ...]
    shape: Shape | None
    order: Names | None


class Pairing(NamedTuple):
    """Hold which two of some operands are multiplied, and the labels of their product, the first operand from then on.

    Attributes:
        left, right: the places of the two.
        result: the labels.
    """

    left: int
    right: int
    result: Names


class Sequences(NamedTuple):
    """Hold how two sequences are convolved.

    Attributes:
        flips: the slices that reverse them, or not.
        mode: as of `numpy.convolve`.
        part: what of that is taken.
        filled: the length of the result and the places that this part fills, where it does not fill all.
    """

    flips: tuple[slice, ...]
    mode: str
    part: slice
    filled: tuple[int, slice] | None


# Products of two arrays


@lru_cache(maxsize=MOST_KNOWN)
def product_of(left: Names, right: Names, result: Names, lengths: Shape) -> MatrixProduct | None:
    """Return the plan of a product; None if a label is repeated in an array, or in one of the three alone.

    Labels in both operands and the result count a stack of matrices. So do those with which the result and the right
    operand begin: one side is broadcast, and nothing is copied.
    """
    count = [(label in left) + (label in right) + (label in result) for label in {*left, *right, *result}]
    if min(count, default=2) < 2 or any(len(set(own)) < len(own) for own in (left, right, result)):
        return None
    free = [n for n in result if n not in left or n not in right]
    columns = [n for n in free if n in right]
    swapped = bool(columns) and free[: len(columns)] == columns  # their product has the order of the result
    if swapped:
        left, right = right, left
    inner = [n for n in left if n in right and n not in result]

    def side(own: Names, order: list[int], shape: list[int]) -> Side:
        places = [own.index(n) for n in order]
        plain = places == sorted(places)
        return None if plain else tuple([lengths[n] for n in own]), None if plain else tuple(places), tuple(shape)

    if not inner:  # every element with every element: multiplied where they belong
        sides = [
            side(own, [n for n in result if n in own], [lengths[n] if n in own else 1 for n in result])
            for own in (left, right)
        ]
        return MatrixProduct(swapped, tuple(sides), None, None)
    lead = [n for n, m in zip(result, right, strict=False) if n == m and n not in left]
    lead = [n for i, n in enumerate(lead) if result[i] == n]
    stack = [n for n in left if n in right and n in result]
    rows, columns = [n for n in left if n not in right], [n for n in right if n not in left and n not in lead]

    def matrix(stack: list[int], *groups: list[int]) -> list[int]:
        vector = not lead and not stack and [] in groups  # NumPy takes these as they are
        sizes = [math.prod([lengths[n] for n in group]) for group in groups if group or not vector]
        return [lengths[n] for n in stack] + sizes

    names = lead + stack + rows + columns
    one = side(left, stack + rows + inner, matrix(stack, rows, inner))
    other = side(right, lead + stack + inner + columns, matrix(lead + stack, inner, columns))
    order = [names.index(n) for n in result]
    given = None if order == sorted(order) else tuple(order)
    return MatrixProduct(swapped, (one, other), tuple([lengths[n] for n in names]), given)


def multiply_labelled(x: Any, y: Any, plan: MatrixProduct) -> Any:
    """Return a product of two arrays, in new memory."""
    swapped, (left, right), shape, order = plan
    x, y = (
        (as_matrices(y, *left), as_matrices(x, *right)) if swapped else (as_matrices(x, *left), as_matrices(y, *right))
    )
    if shape is None:
        return x * y
    x, y = for_blas(x), for_blas(y)
    if order is not None and x.dtype is y.dtype and x.ndim == y.ndim and shape_of_product(x, y) == shape:
        found = np.empty([shape[i] for i in order], x.dtype)
        np.matmul(x, y, found.transpose([order.index(i) for i in range(len(order))]))
        return found
    out = x @ y
    out = out if out.shape == shape else out.reshape(shape)
    return out if order is None else out.transpose(order)


def for_blas(x: Any) -> Any:
    """Return stacked matrices, or a vector, such that NumPy calls BLAS: others, repeated ones say, take far longer.

    >>> ones = np.broadcast_to(1.0, (3, 4))
    >>> for_blas(ones).strides, for_blas(np.ones((4, 3)).T).strides
    ((32, 8), (8, 24))
    """
    if x.flags.forc or x.dtype.kind not in "fc":
        return x
    if x.ndim > 1:
        size, (rows, columns), (down, along) = x.itemsize, x.shape[-2:], x.strides[-2:]
        if (along == size and down >= columns * size) or (down == size and along >= rows * size):
            return x
    return np.array(x, order="C")


def shape_of_product(x: Any, y: Any) -> Shape:
    """Return the shape of a product of stacked matrices, of which the second ones have all stacks."""
    return (*y.shape[:-2], x.shape[-2], y.shape[-1]) if x.ndim > 1 else ()


def as_matrices(x: Any, own: Shape | None, order: Names | None, shape: Shape) -> Any:
    """Return an array with its axes in an order, in the shape of stacked matrices."""
    if order is not None:
        x = (x if x.shape == own else x.reshape(own)).transpose(order)
    return x if x.shape == shape else x.reshape(shape)


class Lone(NamedTuple):
    """Hold how an array is read on its diagonals, and summed over the labels that are nowhere else.

    Attributes:
        own, distinct: its labels, and each of them once.
        axes: those of the latter that are summed over.
        left: the labels that are left.
    """

    own: Names
    distinct: Names
    axes: Names
    left: Names

    def reduce(self, x: Any) -> Any:
        """Return the diagonals and sums of an array that the product needs."""
        if self.distinct != self.own:
            x = diagonal(x, self.own, self.distinct)
        return np.add.reduce(x, self.axes, x.dtype) if self.axes else x


def alone(own: Names, elsewhere: Names) -> Lone:
    """Say what is left of an array with some labels where others are elsewhere."""
    distinct = tuple(dict.fromkeys(own))
    axes = tuple([i for i, label in enumerate(distinct) if label not in elsewhere])
    return Lone(own, distinct, axes, tuple([n for n in distinct if n in elsewhere]))


def kept_labels(result: Names, names: Sequence[Names]) -> Names:
    """Return the labels of a result that some operand has, each once."""
    return tuple([label for label in dict.fromkeys(result) if any(label in own for own in names)])


@lru_cache(maxsize=MOST_KNOWN)
def sum_of_two(left: Names, right: Names, result: Names, lengths: Shape) -> tuple[Lone, Lone, Names, MatrixProduct]:
    """Say how a sum of products of two arrays is computed, and which labels of the result it has."""
    kept = kept_labels(result, (left, right))
    first = alone(left, (*right, *kept))
    second = alone(right, (*first.left, *kept))
    plan = product_of(first.left, second.left, kept, lengths)
    assert plan is not None
    return first, second, kept, plan


def diagonal(x: Any, own: Names, distinct: Names) -> Any:
    """Return the view of an array on the diagonals that repeated labels select."""
    return np.einsum(x, [distinct.index(label) for label in own], list(range(len(distinct))))


# Products of several arrays


MOST_TRIED = 5
"""Operands up to which all orders of multiplying two by two are tried; of more, the least product comes first."""


@lru_cache(maxsize=MOST_KNOWN)
def order_of_pairs(operands: tuple[Names, ...], result: Names, lengths: Shape) -> tuple[float, tuple[Pairing, ...]]:
    """Return how several arrays are multiplied two by two, and how many products and numbers written that takes.

    >>> order_of_pairs(((0, 1), (0,), (0, 2)), (1, 2), (100, 5, 5))[1]
    (Pairing(left=0, right=1, result=(0, 1)), Pairing(left=0, right=1, result=(1, 2)))
    """
    found: list[tuple[float, tuple[Pairing, ...]]] = []
    for left, right in pairs_tried(operands, result, lengths):
        cost, own, rest = multiply_pair(operands, left, right, result, lengths)
        if len(rest) == 1:
            return cost, (Pairing(left, right, result),)
        more, others = order_of_pairs(rest, result, lengths)
        found.append((cost + more, (Pairing(left, right, own), *others)))
    return min(found)


def pairs_tried(operands: tuple[Names, ...], result: Names, lengths: Shape) -> list[tuple[int, int]]:
    """Return the pairs of some operands that may be multiplied first: the cheapest one alone if there are many."""
    pairs = list(itertools.combinations(range(len(operands)), 2))
    if len(operands) <= MOST_TRIED:
        return pairs
    return [min(pairs, key=lambda pair: multiply_pair(operands, pair[0], pair[1], result, lengths)[0])]


def multiply_pair(
    operands: tuple[Names, ...], left: int, right: int, result: Names, lengths: Shape
) -> tuple[int, Names, tuple[Names, ...]]:
    """Return the cost of a product of two of several operands, its labels, and the operands from then on."""
    others = [own for i, own in enumerate(operands) if i not in (left, right)]
    elsewhere = {*result, *itertools.chain(*others)}
    names = tuple(dict.fromkeys((*operands[left], *operands[right])))
    own = tuple([n for n in names if n in elsewhere])
    cost = sum([math.prod([lengths[n] for n in group]) for group in (names, own)])
    return cost, own, (own, *others)


# Convolutions


def convolution(x: Any, y: Any, flips: tuple[slice, ...], mode: Any, part: slice, filled: Any) -> Any:
    """Return the convolution of two sequences."""
    x, y = x[flips[0]], y[flips[1]]
    shorter, count = min(len(x), len(y)), part.stop - part.start
    is_short = mode == "full" and count * (shorter + CALLED) < (len(x) + len(y)) * shorter
    found = sums_at(x, y, range(part.start, part.stop)) if is_short else np.convolve(x, y, mode)[part]
    if filled is None:
        return found
    count, places = filled
    out = np.zeros(count, found.dtype)
    out[places] = found
    return out


def sums_at(x: Any, y: Any, places: range) -> Any:
    """Return the convolution of two sequences at some places, each a sum of products: of few others are not computed.

    >>> sums_at(np.array([1, 2, 3]), np.array([4, 5]), range(1, 3))
    array([13, 22])
    """
    found = np.empty(len(places), np.result_type(x, y))
    for n, place in enumerate(places):
        low, high = max(place + 1 - len(y), 0), min(place + 1, len(x))
        found[n] = np.convolve(x[low:high], y[place + 1 - high : place + 1 - low], "valid")[0]
    return found


class Frame(NamedTuple):
    """Hold how two axes move along one that has zeros around it.

    Attributes:
        before: the number of zeros before it.
        length: its length with them.
        first: where the first element is.
        counts, steps: the lengths of the two axes, and by how much each moves.
    """

    before: int
    length: int
    first: int
    counts: tuple[int, ...]
    steps: tuple[int, ...]


def frame_axes(length: int, start: int, moves: Sequence[tuple[int, int]]) -> Frame:
    """Return how axes, each a step and a length, move along one of some length, from a start."""
    reach = [step * (n - 1) for step, n in moves]
    low, high = start + sum(min(r, 0) for r in reach), start + sum(max(r, 0) for r in reach)
    before = max(0, -low)
    steps, counts = zip(*moves, strict=True)
    return Frame(before, max(length, high + 1) + before, start + before, counts, steps)


def windows(x: Any, axis: int, frame: Frame) -> Any:
    """Return an array with an axis replaced by two that move along it; it is zero outside.

    >>> windows(np.array([1, 2, 3]), 0, frame_axes(3, -1, [(1, 3), (1, 2)]))
    array([[0, 1],
           [1, 2],
           [2, 3]])
    """
    before, length, first, counts, steps = frame
    shape = x.shape
    padded = np.zeros((*shape[:axis], length, *shape[axis + 1 :]), x.dtype)
    padded[(*(slice(None),) * axis, slice(before, before + shape[axis]))] = x
    strides = padded.strides
    own = strides[axis]
    moved = (*strides[:axis], *[step * own for step in steps], *strides[axis + 1 :])
    return np.ndarray((*shape[:axis], *counts, *shape[axis + 1 :]), x.dtype, padded, first * own, moved)
