"""Contractions: sums of products, each a spelling of one record (see `wengert.core.forms.labels`) that NumPy evaluates.

A product declares its labels as a function of the operands' shapes. Batched products and the cotangents of operands are
`contract`, which evaluates any such record.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Params
from wengert.core.forms.labels import Labels, labelled
from wengert.core.forms.routine import Routine
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import linear, multilinear
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.interop import without_dispatch
from wengert.errors import ShapeError
from wengert.support.caches import MOST_KNOWN

Axes = tuple[int, ...]
Shape = tuple[int, ...]
remembered = lru_cache(maxsize=MOST_KNOWN)


contract = multilinear("contract", lambda *xs, labels: labels.evaluate(*xs), form=Contraction())


def conj(x: Any) -> Any:
    """Return the conjugate of a complex value, and a real one as it is."""
    return np.conjugate(x) if x.dtype.kind == "c" else x


def shape_mismatch(name: str, x: Any, y: Any, needed: str) -> ShapeError:
    """Return the error about two shapes that cannot be contracted."""
    given = f"shapes {aval_of(x).shape} and {aval_of(y).shape}"
    return ShapeError(name, given, needed, "Transpose or reshape one of them")


def product(name: str, evaluate: Callable[..., Any], labels: Callable[..., Labels], needed: str, **form: Any) -> Any:
    """Declare a product of two arrays; `needed` says which shapes fit, for the error."""

    def evaluate_product(x: Any, y: Any, **params: Any) -> Any:
        try:
            return evaluate(x, y, **params)
        except ValueError as error:
            raise shape_mismatch(name, x, y, needed) from error

    return multilinear(name, evaluate_product, form=Contraction(remembered(labels), **form))


# Products of matrices and vectors along the last axes, of stacks of them


def stack_labels(rank: int, *core: str) -> tuple[Any, ...]:
    """Return the labels of an operand: numbers from the right for its stack, then those of its core."""
    return (*range(len(core) - rank, 0), *core)


def along_core(shapes: Sequence[Shape], operands: Sequence[tuple[Any, ...]], result: Any, **form: Any) -> Labels:
    """Label operands whose axes `k` are as long as each other: NumPy repeats axes of length one in stacks only."""
    lengths = [dict(zip(names, shape, strict=True))["k"] for names, shape in zip(operands, shapes, strict=True)]
    if len(set(lengths)) > 1:
        raise ValueError(f"axes of lengths {lengths}")
    return labelled(shapes, operands, result, **form)


def matmul_labels(x: Shape, y: Shape) -> Labels:
    """Label rows and columns; vectors have one of them."""
    rows, columns = ("i",) * (len(x) > 1), ("j",) * (len(y) > 1)
    left, right = stack_labels(len(x), *rows, "k"), stack_labels(len(y), "k", *columns)
    rank = max(len(x) - len(rows), len(y) - len(columns)) - 1
    return along_core((x, y), (left, right), (*stack_labels(rank), *rows, *columns))


def matvec_labels(x: Shape, y: Shape) -> Labels:
    """Label the rows of a matrix and the elements of a vector."""
    operands = stack_labels(len(x), "i", "k"), stack_labels(len(y), "k")
    return along_core((x, y), operands, (*stack_labels(max(len(x) - 2, len(y) - 1)), "i"))


def vecmat_labels(x: Shape, y: Shape) -> Labels:
    """Label the elements of a vector, which is conjugated, and the columns of a matrix."""
    operands = stack_labels(len(x), "k"), stack_labels(len(y), "k", "j")
    result = (*stack_labels(max(len(x) - 1, len(y) - 2)), "j")
    return along_core((x, y), operands, result, conjugated=(True, False))


def vecdot_labels(x: Shape, y: Shape, axis: int = -1) -> Labels:
    """Label vectors along an axis, counted from the back, of which the first is conjugated."""

    def own(shape: Shape) -> tuple[Any, ...]:
        stack = stack_labels(len(shape) - 1)
        place = len(stack) + axis + 1
        return (*stack[:place], "k", *stack[place:])

    return along_core((x, y), (own(x), own(y)), stack_labels(max(len(x), len(y)) - 1), conjugated=(True, False))


matmul = product(
    "matmul",
    np.matmul,
    matmul_labels,
    "as many columns on the left as rows on the right are needed, and leading axes that broadcast",
    matrices=True,
    stacked=True,
)
vecdot = product(
    "vecdot",
    np.vecdot,
    vecdot_labels,
    "last axes of equal length are needed, and others that broadcast",
)
matvec = product(
    "matvec",
    np.matvec,
    matvec_labels,
    "as many columns as elements are needed, and leading axes that broadcast",
)
vecmat = product(
    "vecmat",
    np.vecmat,
    vecmat_labels,
    "as many elements as rows are needed, and leading axes that broadcast",
)


# Products over given axes


def tensordot_labels(x: Shape, y: Shape, axes: tuple[Axes, Axes]) -> Labels:
    """Let pairs of axes share a label."""
    left, right = [("x", i) for i in range(len(x))], [("y", i) for i in range(len(y))]
    for i, j in zip(*axes, strict=True):
        if x[i] != y[j]:
            raise ValueError(f"axes of lengths {x[i]} and {y[j]}")
        right[j] = left[i]
    return labelled((x, y), (left, right), [n for n in left if n not in right] + [n for n in right if n not in left])


def flat_labels(x: Shape, y: Shape, left: str, right: str, result: str, conjugated: bool) -> Labels:
    """Label all elements of each operand, as if they stood in one row."""
    shapes = (math.prod(x),), (math.prod(y),)
    if left == right and shapes[0] != shapes[1]:
        raise ValueError(f"{shapes[0][0]} and {shapes[1][0]} elements")
    return labelled(shapes, (left, right), result, conjugated=(conjugated, False))


def kron_labels(x: Shape, y: Shape) -> Labels:
    """Label the axes of both in turn; those of the result are pairs of them."""
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    left, right = [("x", i) for i in range(rank)], [("y", i) for i in range(rank)]
    result = [name for pair in zip(left, right, strict=True) for name in pair]
    return labelled((x, y), (left, right), result, merged=tuple(n * m for n, m in zip(x, y, strict=True)))


dot = product(
    "dot",
    np.dot,
    lambda x, y: tensordot_labels(x, y, ((len(x) - 1,), (max(len(y) - 2, 0),)) if x and y else ((), ())),
    "a last axis on the left as long as the second to last (or only) axis on the right is needed",
    matrices=True,
)
inner = product(
    "inner",
    np.inner,
    lambda x, y: tensordot_labels(x, y, ((len(x) - 1,), (len(y) - 1,)) if x and y else ((), ())),
    "last axes of equal length are needed",
)
tensordot = product("tensordot", np.tensordot, tensordot_labels, "axes of equal lengths are needed")
vdot = product(
    "vdot",
    np.vdot,
    lambda x, y: flat_labels(x, y, "k", "k", "", True),
    "equal numbers of elements are needed",
)
outer = product("outer", np.outer, lambda x, y: flat_labels(x, y, "i", "j", "ij", False), "any two arrays fit")
kron = product("kron", np.kron, kron_labels, "any two arrays fit")


# Vectors of space


def in_space(x: Any) -> Any:
    """Return vectors of the plane as vectors of space, and the latter as they are."""
    return x if x.shape[-1] == 3 else np.concatenate([x, np.zeros((*x.shape[:-1], 1), x.dtype)], axis=-1)


def along_normal(ct: Any) -> Any:
    """Return the cotangent of a normal component as that of a vector of space."""
    zeros = np.zeros((*ct.shape, 2), ct.dtype)
    return np.concatenate([zeros, ct[..., None]], axis=-1)


NEXT = np.array([1, 2, 0])
FEW = 10_000
"""Elements up to which NumPy's `cross` takes longer than ours."""


def cross_product(x: Any, y: Any) -> Any:
    """Return the products of vectors of space: of few real ones with NumPy's bits in a sixth of its time."""
    if not (
        type(x) is type(y) is np.ndarray
        and x.dtype.kind == y.dtype.kind == "f"
        and x.shape[-1] == y.shape[-1] == 3
        and x.size <= FEW
    ):
        return np.cross(x, y)
    found = x * y.take(NEXT, -1)
    found -= x.take(NEXT, -1) * y
    return found.take(NEXT, -1)  # each product belongs to the place before


def transpose_cross_left(ct: Any, aval: Aval, right: Any) -> Any:
    """Return right x ct."""
    planar = aval.shape[-1] == 2 and right.shape[-1] == 2
    found = cross_product(in_space(right), along_normal(ct) if planar else ct)
    return found if found.shape == aval.shape else unbroadcast(found[..., : aval.shape[-1]], aval.shape)


def transpose_cross_right(ct: Any, aval: Aval, left: Any) -> Any:
    """Return ct x left."""
    planar = aval.shape[-1] == 2 and left.shape[-1] == 2
    found = cross_product(along_normal(ct) if planar else ct, in_space(left))
    return found if found.shape == aval.shape else unbroadcast(found[..., : aval.shape[-1]], aval.shape)


def cross_at(x: Any, y: Any) -> Any:
    """Return the products of vectors of space in a kernel; None of those of the plane."""
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        return None
    left, right = ([np.take(v, k) for k in range(3)] for v in (x, y))
    parts = [left[k - 2] * right[k - 1] - left[k - 1] * right[k - 2] for k in range(3)]
    first, second, third = [np.expand_dims(part, (len(part.shape),)) for part in parts]
    place: Any = np.arange(3, like=x)
    return np.where(place == 0, first, np.where(place == 1, second, third))


def cross_links(_position: int, core: Shape, out: Shape, _params: Params) -> list[BoxMap] | None:
    """Return the components of a vector that those of the product in space depend on: the others."""
    if not out:
        return None
    places, others = np.nonzero(~np.eye(3, dtype=bool)[:, : core[0]])
    return [BoxMap((len(places),), [Coordinate.from_table(0, places)], [Coordinate.from_table(0, others)])]


cross = multilinear(
    "cross",
    cross_product,
    (transpose_cross_left, transpose_cross_right),
    form=Routine("(m),(n)->(k?)", links=cross_links),
    scalar=cross_at,
)


# Convolutions: the place in the result is bound to those in the operands by an equation


def first_term(left: int, right: int, mode: str) -> int:
    """Return where in the full convolution of two lengths the result of a mode starts."""
    shorter = min(left, right)
    return {"full": 0, "same": (shorter - 1) // 2, "valid": shorter - 1}[mode]


def terms(left: int, right: int, mode: str) -> int:
    """Return the length of the convolution of two lengths."""
    return {"full": left + right - 1, "same": max(left, right), "valid": max(left, right) - min(left, right) + 1}[mode]


def convolve_labels(x: Shape, y: Shape, mode: str) -> Labels:
    """Say that a + b = c, counted from the first term."""
    (n,), (m,) = x, y
    relation = {"a": 1, "b": 1, "c": -1}, first_term(n, m, mode)
    return labelled((x, y), ("a", "b"), "c", relation=relation, lengths={"c": terms(n, m, mode)})


def correlate_labels(x: Shape, y: Shape, mode: str) -> Labels:
    """Say that a - b = c, counted from the first term; a longer right side is slid the other way."""
    (n,), (m,) = x, y
    start = min(n, m) // 2 if mode == "same" and m > n else first_term(n, m, mode)
    return labelled(
        (x, y),
        ("a", "b"),
        "c",
        conjugated=(False, True),
        relation=({"a": 1, "b": -1, "c": -1}, start - (m - 1)),
        lengths={"c": terms(n, m, mode)},
    )


convolve = product("convolve", np.convolve, convolve_labels, "sequences with elements are needed")
correlate = product("correlate", np.correlate, correlate_labels, "sequences with elements are needed")


# Einstein sums


Names = tuple[int, ...]
Subscripts = str | tuple[tuple[Any, ...], ...]


EINSUM = without_dispatch(np.einsum)
"""Of arrays."""


def call_einsum(operands: Sequence[Any], subscripts: Subscripts, optimize: Any, **options: Any) -> Any:
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


def split_terms(subscripts: Subscripts, count: int) -> tuple[list[list[Any]], list[Any] | None]:
    """Return labels and ellipses of each operand, and of the output if it was given."""
    if not isinstance(subscripts, str):
        given = [list(labels) for labels in subscripts]
        return given[:count], given[count] if len(given) > count else None
    operands, arrow, output = subscripts.replace(" ", "").partition("->")
    return [labels_of_term(term) for term in operands.split(",")], labels_of_term(output) if arrow else None


def labels_of_term(term: str) -> list[Any]:
    """Return the labels of a term as numbers, with Ellipsis for the three dots."""
    return [Ellipsis if symbol == "." else ord(symbol) for symbol in term.replace("...", ".")]


def without_ellipsis(term: Iterable[Any], count: int) -> Names:
    """Return labels with those of `count` axes in the place of an ellipsis."""
    labels: list[int] = []
    for label in term:
        labels += range(-count, 0) if label is Ellipsis else [label]
    return tuple(labels)


@lru_cache(maxsize=1024)
def parse_subscripts(subscripts: Subscripts, ndims: tuple[int, ...]) -> tuple[tuple[Names, ...], Names]:
    """Return the labels of operands with given numbers of axes, and those of the output.

    >>> parse_subscripts("ij,jk", (2, 2)) == (((105, 106), (106, 107)), (105, 107))
    True
    """
    given, output = split_terms(subscripts, len(ndims))
    hidden = [ndim - len(term) + 1 if Ellipsis in term else 0 for term, ndim in zip(given, ndims, strict=True)]
    operands = tuple(map(without_ellipsis, given, hidden))
    most = max(hidden, default=0)
    if output is not None:
        return operands, without_ellipsis(output, most)
    named = Counter(label for labels in operands for label in labels if label >= 0)
    return operands, (*range(-most, 0), *sorted(label for label, times in named.items() if times == 1))


def evaluate_einsum(*operands: Any, subscripts: Subscripts, optimize: Any, **options: Any) -> Any:
    """Evaluate an Einstein sum."""
    if 0 in [getattr(x, "size", 1) for x in operands]:  # NumPy's view of unequal axes, one empty, is of foreign memory
        require_equal_lengths(subscripts, operands)
    try:
        return call_einsum(operands, subscripts, optimize, **options)
    except ValueError as error:
        require_equal_lengths(subscripts, operands, error)
        raise


def require_equal_lengths(subscripts: Subscripts, operands: Sequence[Any], error: ValueError | None = None) -> None:
    """Raise a ShapeError if axes of one label have different lengths; other mistakes NumPy's error tells."""
    shapes = [np.shape(x) for x in operands]
    try:
        labels, _ = parse_subscripts(subscripts, tuple(map(len, shapes)))
        pairs = [pair for names, shape in zip(labels, shapes, strict=True) for pair in zip(names, shape, strict=True)]
    except ValueError:
        return
    for label in dict(pairs):
        found = sorted({length for name, length in pairs if name == label} - {1})
        if len(found) > 1:
            what = f"axes of lengths {' and '.join(map(str, found))} for {name_label(label, subscripts)}"
            given = f"{what}, in shapes {' and '.join(map(str, shapes))}"
            needed = "one length for each label is needed"
            raise ShapeError("einsum", given, needed, "Correct the subscripts, or transpose an operand") from error


def name_label(label: int, subscripts: Subscripts) -> str:
    """Return how the user wrote a label."""
    if label < 0:
        return "an axis of the ellipsis"
    return f"label {chr(label)!r}" if isinstance(subscripts, str) else f"label {label}"


@lru_cache(maxsize=MOST_KNOWN)
def einsum_labels(*shapes: tuple[int, ...], subscripts: Subscripts, optimize: Any = None, **_options: Any) -> Labels:
    """Return the labels that are written, which no other parameter changes; in kernels, the order of products may."""
    operands, result = parse_subscripts(subscripts, tuple(map(len, shapes)))
    return labelled(shapes, operands, result)


einsum_one = linear("einsum_one", evaluate_einsum, view=True, scales=(), form=Contraction(einsum_labels))
einsum = multilinear("einsum", evaluate_einsum, form=Contraction(einsum_labels, tangents=True))
