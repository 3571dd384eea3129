"""Einstein sums, in NumPy's notation, which becomes a record of labels.

Names are numbers here. The axes that an ellipsis stands for are labelled -1, -2, ... from the right, which aligns
them as broadcasting does. As in NumPy, an axis of length one goes with any length of the same label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.labels import Labels, labelled
from wengert.core.primitives.declare import linear, multilinear
from wengert.core.values.bounded_cache import MOST_KNOWN
from wengert.core.values.interop import undispatched
from wengert.errors import ShapeError

Names = tuple[int, ...]
Subscripts = str | tuple[tuple[Any, ...], ...]


EINSUM = undispatched(np.einsum)
"""Of arrays."""


def call(operands: Sequence[Any], subscripts: Subscripts, optimize: Any, **options: Any) -> Any:
    """Call `numpy.einsum` in the form in which the user did."""
    if isinstance(optimize, tuple):
        optimize = list(optimize)
    if isinstance(subscripts, str):
        if optimize is False and not options:  # arguments by name take longer
            return EINSUM(subscripts, *operands)
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


def without_ellipsis(term: Iterable[Any], count: int) -> Names:
    """Return labels with those of `count` axes in the place of an ellipsis."""
    labels: list[int] = []
    for label in term:
        labels += range(-count, 0) if label is Ellipsis else [label]
    return tuple(labels)


@lru_cache(maxsize=1024)
def parse(subscripts: Subscripts, ndims: tuple[int, ...]) -> tuple[tuple[Names, ...], Names]:
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


def evaluate(*operands: Any, subscripts: Subscripts, optimize: Any, **options: Any) -> Any:
    """Evaluate an Einstein sum."""
    if 0 in [getattr(x, "size", 1) for x in operands]:  # NumPy's view of unequal axes, one empty, is of foreign memory
        check_lengths(subscripts, operands)
    try:
        return call(operands, subscripts, optimize, **options)
    except ValueError as error:
        check_lengths(subscripts, operands, error)
        raise


def check_lengths(subscripts: Subscripts, operands: Sequence[Any], error: ValueError | None = None) -> None:
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
            given = f"{what}, in shapes {' and '.join(map(str, shapes))}"
            needed = "one length for each label is needed"
            raise ShapeError("einsum", given, needed, "Correct the subscripts, or transpose an operand") from error


def spelled(label: int, subscripts: Subscripts) -> str:
    """Return how the user wrote a label."""
    if label < 0:
        return "an axis of the ellipsis"
    return f"label {chr(label)!r}" if isinstance(subscripts, str) else f"label {label}"


@lru_cache(maxsize=MOST_KNOWN)
def einsum_labels(*shapes: tuple[int, ...], subscripts: Subscripts, **_options: Any) -> Labels:
    """Return the labels that are written."""
    operands, result = parse(subscripts, tuple(map(len, shapes)))
    return labelled(shapes, operands, result)


einsum_one = linear("einsum_one", evaluate, view=True, form=Contraction(einsum_labels))
einsum = multilinear("einsum", evaluate, form=Contraction(einsum_labels))
