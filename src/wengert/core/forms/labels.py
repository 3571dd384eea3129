"""Labels: sums of products of arrays, by a name for each axis.

One record, closed under what transformations need: a batch axis is one more label, and for the cotangent of an operand
it and the result change places. NumPy computes: two operands as a product of matrices, more of them two by two.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.label_products import (
    Frame,
    MatrixProduct,
    Sequences,
    convolution,
    diagonal,
    frame_axes,
    kept_labels,
    multiply_labelled,
    order_of_pairs,
    product_of,
    sum_of_two,
    windows,
)
from wengert.core.graph.identity import Composite
from wengert.errors import ShapeError
from wengert.support.caches import Cache, cached
from wengert.support.records import FieldRecord

Shape = tuple[int, ...]
Names = tuple[int, ...]
MOST_DERIVED = 256


class Relation(FieldRecord):
    """Bind three labels by an equation: the sum of sign * label is a constant. What lies outside of an array is zero.

    Convolutions have one: the place in the result is that in one sequence plus that in the other.
    """

    labels: Names
    signs: Names
    constant: int

    def check(self) -> None:
        """Raise an error if the fields do not fit together: they may come from a file."""
        if type(self.labels) is not tuple or type(self.signs) is not tuple or type(self.constant) is not int:
            raise TypeError(f"{self!r:.80}")
        if not len(set(self.labels)) == len(self.labels) == len(self.signs) == 3 or not {*self.signs} <= {1, -1}:
            raise ValueError(f"labels {self.labels} with signs {self.signs}")
        require_counts((*self.labels, abs(self.constant)))

    def solve_for(self, label: int) -> tuple[int, dict[int, int]]:
        """Return a label in terms of the others: a start, and by how much each of them moves it.

        >>> Relation((0, 1, 2), (1, 1, -1), 0).solve_for(2)
        (0, {0: 1, 1: 1})
        """
        signs = dict(zip(self.labels, self.signs, strict=True))
        own = signs.pop(label)
        return self.constant * own, {name: -sign * own for name, sign in signs.items()}


class Labels(FieldRecord, Composite):
    """Describe result[r] = the sum, over all other labels, of the product of operands[i][labels of i].

    Attributes:
        operands: for each operand a label for each of its axes.
        result: the labels of the result.
        lengths: the length of each label; an axis of length one that is repeated has a label of its own.
        conjugated: whether each operand is conjugated.
        relation: an equation between three labels.
        merged: the shape that the result is given at last, where it is not that of its labels.
    """

    operands: tuple[Names, ...]
    result: Names
    lengths: Shape
    conjugated: tuple[bool, ...]
    relation: Relation | None = None
    merged: Shape | None = None

    def __repr__(self) -> str:
        return f"{','.join(map(spell_labels, self.operands))}->{spell_labels(self.result)}"

    def check(self) -> None:
        """Raise an error if the fields do not fit together: they may come from a file."""
        require_counts(self.lengths)
        if type(self.operands) is not tuple or type(self.conjugated) is not tuple:
            raise TypeError(f"{self.operands!r:.80}, conjugated {self.conjugated!r:.80}, in the place of tuples")
        if len(self.conjugated) != len(self.operands) or not {*map(type, self.conjugated)} <= {bool}:
            raise ValueError(f"{len(self.operands)} operands, conjugated {self.conjugated}")
        for own in (*self.operands, self.result):
            require_counts(own)
            self.lengths_of(own)
        if self.merged is not None:
            require_counts(self.merged)
            if math.prod(self.merged) != math.prod(self.lengths_of(self.result)):
                raise ValueError(f"{self} merged to {self.merged}")
        if self.relation is not None:
            if type(self.relation) is not Relation:
                raise TypeError(f"{self.relation!r:.80} in the place of a relation")
            self.relation.check()
            places = [own.count(label) for label in self.relation.labels for own in (*self.operands, self.result)]
            if len(self.operands) != 2 or sorted(places) != [0] * 6 + [1] * 3:
                raise ValueError(f"{self} with {self.relation}")

    def structure(self) -> Hashable:
        """Return what it holds."""
        relation = self.relation and (self.relation.labels, self.relation.signs, self.relation.constant)
        return self.operands, self.result, self.lengths, self.conjugated, relation, self.merged

    @cached
    def shape(self) -> Shape:
        """The shape of the result."""
        return self.lengths_of(self.result) if self.merged is None else self.merged

    @cached
    def rearranges(self) -> bool:
        """Whether one operand is only read in another way, without a sum."""
        return len(self.operands) == 1 and set(self.operands[0]) == set(self.result)

    def require(self, shapes: Sequence[Shape]) -> None:
        """Raise a ValueError if operands of these shapes do not have as many elements as the labels say."""
        sizes = [math.prod(self.lengths_of(own)) for own in self.operands]
        if sizes != list(map(math.prod, shapes)):
            raise ValueError(f"shapes {shapes} for {self}")

    def lengths_of(self, labels: Names) -> Shape:
        """Return the shape of an array with these labels."""
        return tuple([self.lengths[label] for label in labels])

    # Transformations

    @cached
    def derived_labels(self) -> Cache[Any, Labels]:
        """The records that were derived from this one: the same few are asked for again and again."""
        return Cache(most=MOST_DERIVED)

    def add_lane(self, size: int, batched: Sequence[bool]) -> Labels:
        """Return the labels with one more in front of the result, and of those operands that have lanes."""
        key = (size, *batched)
        found = self.derived_labels.get(key)
        if found is None:
            lane = (len(self.lengths),)
            found = self.derived_labels[key] = self.replace(
                operands=tuple([lane * flag + own for own, flag in zip(self.operands, batched, strict=True)]),
                result=lane + self.result,
                lengths=(*self.lengths, size),
                merged=None if self.merged is None else (size, *self.merged),
            )
        return found

    def transpose(self, i: int) -> Labels:
        """Return the labels of the cotangent of operand i, from that of the result and the other operands."""
        found = self.derived_labels.get(i)
        if found is None:
            others = [j for j in range(len(self.operands)) if j != i]
            flip = self.conjugated[i]
            found = self.derived_labels[i] = self.replace(
                operands=(self.result, *[self.operands[j] for j in others]),
                result=self.operands[i],
                conjugated=(flip, *[self.conjugated[j] != flip for j in others]),
                merged=None,
            )
        return found

    # Evaluation

    def evaluate(self, *arrays: Any) -> Any:
        """Compute the result on ndarrays, in new memory and C order; a scalar if it has no axes."""
        if len(self.operands) > 2:
            return self.evaluated_by_pairs(arrays)
        if True in self.conjugated:
            arrays = tuple([x.conj() if flag else x for x, flag in zip(arrays, self.conjugated, strict=True)])
        if self.product is not None:
            found = multiply_labelled(arrays[0], arrays[1], self.product)
        else:
            xs = [x.reshape(own) for x, own in zip(arrays, self.shapes, strict=True)]
            found = self.contract(xs, self.operands) if self.relation is None else self.convolve(*xs)
        if self.merged is not None:
            found = found.reshape(self.merged)
        return np.ascontiguousarray(found) if found.ndim else found[()]

    def evaluated_by_pairs(self, arrays: Sequence[Any]) -> Any:
        """Compute the result of several ndarrays two by two, in the dtype that all of them have together."""
        dtype = np.result_type(*arrays)
        xs = [x if x.dtype == dtype else x.astype(dtype) for x in arrays]
        for left, right, labels in self.pairs:
            found = labels.evaluate(xs[left], xs[right])
            xs = [found, *[x for i, x in enumerate(xs) if i not in (left, right)]]
        return xs[0]

    @cached
    def pairs(self) -> tuple[tuple[int, int, Labels], ...]:
        """The products of two that several operands are: their places, and labels; each is the first operand then."""
        found: list[tuple[int, int, Labels]] = []
        operands, flags = self.operands, self.conjugated
        _, order = order_of_pairs(operands, self.result, self.lengths)
        for n, (left, right, result) in enumerate(order, 1):
            two, own = (operands[left], operands[right]), (flags[left], flags[right])
            merged = self.merged if n == len(order) else None
            shapes = list(map(self.lengths_of, two))
            alone = {label: self.lengths[label] for label in result}  # which may be of no operand
            labels = labelled(shapes, two, result, conjugated=own, lengths=alone, merged=merged)
            found.append((left, right, labels))
            others = [i for i in range(len(operands)) if i not in (left, right)]
            operands = result, *[operands[i] for i in others]
            flags = False, *[flags[i] for i in others]
        return tuple(found)

    @cached
    def permutation(self) -> Names | None:
        """The order in which the result takes the axes of the only operand, if that is all there is to it."""
        own = self.operands[0]
        if len(self.operands) > 1 or self.conjugated[0] or self.merged is not None or not own:
            return None
        if sorted(set(own)) != sorted(self.result) or len(own) != len(self.result):
            return None
        return tuple([own.index(label) for label in self.result])

    @cached
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the operands, an axis for each label."""
        return tuple(map(self.lengths_of, self.operands))

    @cached
    def product(self) -> MatrixProduct | None:
        """How the result is a product of matrices, where every label is in two of the operands and the result."""
        if len(self.operands) != 2 or self.relation is not None:
            return None
        return product_of(*self.operands, self.result, self.lengths)

    @cached
    def sequences(self) -> Sequences | None:
        """How sequences are convolved; None if there are stacks of them."""
        assert self.relation is not None
        (left, *others), (right, *more), (label, *rest) = *self.operands, self.result
        if others or more or rest:
            return None
        start, steps = self.relation.solve_for(label)
        flips = tuple([slice(None, None, steps[own]) for own in (left, right)])
        lengths = [self.lengths[own] for own in (left, right)]
        start -= sum([n - 1 for own, n in zip((left, right), lengths, strict=True) if steps[own] < 0])
        shorter, longer = sorted(lengths)
        count = self.lengths[label]
        if shorter - 1 <= -start and count - start <= longer:  # no term goes over an end of the longer one
            first = 1 - shorter - start
            return Sequences(flips, "valid", slice(first, first + count), None)
        low, high = max(start, 0), min(start + longer + shorter - 1, count)
        filled = None if (low, high) == (0, count) else (count, slice(low, high))
        return Sequences(flips, "full", slice(low - start, high - start), filled)

    def contract(self, xs: Sequence[Any], names: Sequence[Names]) -> Any:
        """Return the result where labels are repeated or alone, or there is one operand."""
        if len(xs) == 2:
            first, second, kept, plan = sum_of_two(names[0], names[1], self.result, self.lengths)
            found = multiply_labelled(first.reduce(xs[0]), second.reduce(xs[1]), plan)
            if kept == self.result:
                return found
        else:
            (own,), (x,) = names, xs
            kept = kept_labels(self.result, names)
            found = x if kept == own else np.einsum(x, list(map(own.index, own)), list(map(own.index, kept)))
        return self.stretch(found, kept)

    def stretch(self, found: Any, kept: Names) -> Any:
        """Repeat what was found along the labels that it lacks, and put it on the diagonals of repeated ones."""
        distinct = tuple(dict.fromkeys(self.result))
        there = [self.lengths[label] if label in kept else 1 for label in distinct]
        repeated = distinct != self.result
        out: Any = (np.zeros if repeated else np.empty)(self.lengths_of(self.result), found.dtype)
        (diagonal(out, self.result, distinct) if repeated else out)[...] = found.reshape(there)
        return out

    def convolve(self, x: Any, y: Any) -> Any:
        """Return the result where labels are bound: of sequences by `convolve`, of stacks by products with windows."""
        if self.sequences is not None:
            return convolution(x, y, *self.sequences)
        axis, frame, names = self.moving
        return self.contract([windows(x, axis, frame), y], names)

    @cached
    def moving(self) -> tuple[int, Frame, tuple[Names, Names]]:
        """The axis of the first operand along which windows move, how they do, and the labels with theirs."""
        assert self.relation is not None
        left, right = self.operands
        label = next(name for name in left if name in self.relation.labels)
        start, steps = self.relation.solve_for(label)
        axis = left.index(label)
        moves = [(step, self.lengths[name]) for name, step in steps.items()]
        frame = frame_axes(self.lengths[label], start, moves)
        return axis, frame, ((*left[:axis], *steps, *left[axis + 1 :]), right)


def spell_labels(labels: Names) -> str:
    """Return labels as letters, the 27th and further ones as numbers."""
    return "".join([chr(ord("a") + n) if n < 26 else f"({n})" for n in labels])


# Making records


def require_counts(values: Any) -> None:
    """Raise a ValueError if something is not a tuple of integers from 0."""
    if type(values) is not tuple or not all(type(n) is int and n >= 0 for n in values):
        raise ValueError(f"{values!r:.80} in the place of a tuple of integers from 0")


def labelled(
    shapes: Sequence[Shape],
    operands: Sequence[Sequence[Any]],
    result: Sequence[Any],
    *,
    conjugated: Sequence[bool] = (),
    relation: tuple[Mapping[Any, int], int] | None = None,
    lengths: Mapping[Any, int] | None = None,
    merged: Shape | None = None,
) -> Labels:
    """Return the labels of operands of these shapes; an axis of length one is repeated where its label is longer.

    Args:
        shapes: the shapes of the operands.
        operands: names for their axes, of any kind.
        result: names for the axes of the result.
        conjugated: whether each operand is conjugated, if any is.
        relation: the signs of three names and a constant; see `Relation`.
        lengths: lengths of names that are the result's alone.
        merged: the shape that the result is given at last.

    Returns:
        The labels, which the form of a contraction holds.

    Raises:
        ValueError: axes of one name have different lengths.

    >>> labelled(((2, 3), (3, 4)), ("ij", "jk"), "ik")
    ab,bc->ac
    """
    found: dict[Any, int] = dict(lengths or {})
    try:
        for own, shape in zip(operands, shapes, strict=True):
            for name, n in zip(own, shape, strict=True):
                if found.setdefault(name, n) == 1:
                    found[name] = n
        if unknown := [name for name in result if name not in found]:
            raise KeyError(unknown[0])
    except (TypeError, ValueError, KeyError) as error:
        wrong = f"labels {operands!r:.80} of shapes {shapes!r:.80}, and {result!r:.80} of the result"
        needed = "a hashable name for each axis of each operand is needed, and those of the result among them"
        raise ShapeError("labelled", wrong, needed, "Name all axes, or pass lengths") from error
    numbers: dict[Any, int] = {}
    sizes: list[int] = []

    def number(name: Any, n: int) -> int:
        if n != found[name]:
            if n != 1:
                raise ValueError(f"lengths {n} and {found[name]} of {name!r}")
            name = object()  # a label of its own
        if name not in numbers:
            numbers[name] = len(sizes)
            sizes.append(n)
        return numbers[name]

    own_labels = tuple([tuple(map(number, own, shape)) for own, shape in zip(operands, shapes, strict=True)])
    given = tuple([number(name, found[name]) for name in result])
    bound = None
    if relation is not None:
        signs, constant = relation
        bound = Relation(tuple(numbers[name] for name in signs), tuple(signs.values()), constant)
    flags = tuple(conjugated) or (False,) * len(operands)
    return Labels(own_labels, given, tuple(sizes), flags, bound, merged)
