"""Contractions: sums of products of two arrays. The cotangent of each side is a contraction again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.aval import Aval, aval_of
from wengert.core.cotangent import unbroadcast
from wengert.core.declare import bilinear
from wengert.core.form import Routine
from wengert.errors import ShapeError, describe
from wengert.primitives.product_batches import (
    batch_broadcast,
    batch_contraction,
    batch_convolution,
    batch_kron,
    batch_matmul,
    batch_matvec,
    batch_outer,
    batch_tensordot,
    batch_vdot,
    batch_vecmat,
)
from wengert.primitives.product_shapes import abstract_contraction, abstract_matmul

Axes = tuple[int, ...]
Shape = tuple[int, ...]


def conj(x: Any) -> Any:
    """Return the conjugate of a complex value, and a real one as it is."""
    return np.conjugate(x) if x.dtype.kind == "c" else x


def mismatched(name: str, x: Any, y: Any, needed: str) -> ShapeError:
    """Return the error about two shapes that cannot be contracted."""
    return ShapeError(
        describe(
            name,
            f"shapes {aval_of(x).shape} and {aval_of(y).shape}",
            needed,
            "Transpose or reshape one of them",
        )
    )


# Products of matrices


def multiply_matrices(x: Any, y: Any) -> Any:
    """Evaluate `matmul`."""
    try:
        return np.matmul(x, y)
    except ValueError as error:
        needed = "as many columns on the left as rows on the right are needed, and leading axes that broadcast"
        raise mismatched("matmul", x, y, needed) from error


def stacked_rows(x: Any) -> Any:
    """Return a stack of matrices as one matrix with all their rows."""
    shape = x.shape
    return x.reshape((math.prod(shape[:-1]), shape[-1]))


def flat_side(x: Any) -> Any:
    """Return a stack of matrices side by side: as many rows as each has, and all their columns."""
    shape = x.shape
    return np.moveaxis(x, -2, 0).reshape((shape[-2], math.prod(shape[:-2]) * shape[-1]))


def left_matrix(ct: Any, right: Any, shape: Shape) -> Any:
    """Return the cotangent, of a given shape, of the left factor of a product of (stacks of) matrices.

    A stack that met a single matrix is flattened, so that BLAS is called once.
    """
    if right.ndim == 2:
        if ct.ndim == 2:
            return ct @ right.T
        return (stacked_rows(ct) @ right.T).reshape(shape)
    if len(shape) == 2:
        return flat_side(ct) @ flat_side(right).T
    return unbroadcast(ct @ right.mT, shape)


def right_matrix(ct: Any, left: Any, shape: Shape) -> Any:
    """Return the cotangent, of a given shape, of the right factor of a product of (stacks of) matrices."""
    if len(shape) == 2:
        if ct.ndim == 2:
            return left.T @ ct
        return stacked_rows(left).T @ stacked_rows(ct)
    return unbroadcast(left.mT @ ct, shape)


def transpose_matmul_left(ct: Any, aval: Aval, right: Any) -> Any:
    """Return ct right^T; vectors take part as rows and columns."""
    shape = aval.shape
    if len(shape) == 2 and right.ndim == 2:
        return ct @ right.T
    if right.ndim == 1:
        ct, right = ct[..., None], right[:, None]
    if len(shape) == 1:
        return left_matrix(ct[..., None, :], right, (1, *shape)).reshape(shape)
    return left_matrix(ct, right, shape)


def transpose_matmul_right(ct: Any, aval: Aval, left: Any) -> Any:
    """Return left^T ct; vectors take part as rows and columns."""
    shape = aval.shape
    if len(shape) == 2 and left.ndim == 2:
        return left.T @ ct
    if len(shape) == 1:
        ct = ct[..., None]
    if left.ndim == 1:
        ct, left = ct[..., None, :], left[None, :]
    if len(shape) == 1:
        return right_matrix(ct, left, (*shape, 1)).reshape(shape)
    return right_matrix(ct, left, shape)


def multiply_vectors(x: Any, y: Any, *, axis: int = -1) -> Any:
    """Evaluate `vecdot`; axes other than the last, for operands of one rank, are counted from the back."""
    try:
        if axis == -1:
            return np.vecdot(x, y)
        return np.vecdot(x, y, axis=axis)  # type: ignore[call-overload]  # the stub lacks axis
    except ValueError as error:
        raise mismatched("vecdot", x, y, "last axes of equal length are needed, and others that broadcast") from error


def multiply_matrix_vector(x: Any, y: Any) -> Any:
    """Evaluate `matvec`."""
    try:
        return np.matvec(x, y)
    except ValueError as error:
        raise mismatched(
            "matvec", x, y, "as many columns as elements are needed, and leading axes that broadcast"
        ) from error


def multiply_vector_matrix(x: Any, y: Any) -> Any:
    """Evaluate `vecmat`."""
    try:
        return np.vecmat(x, y)
    except ValueError as error:
        raise mismatched(
            "vecmat", x, y, "as many elements as rows are needed, and leading axes that broadcast"
        ) from error


def transpose_matvec_right(ct: Any, aval: Aval, left: Any) -> Any:
    """Return left^T ct for vectors."""
    return right_matrix(ct[..., None], left, (*aval.shape, 1)).reshape(aval.shape)


def transpose_vecmat_left(ct: Any, aval: Aval, right: Any) -> Any:
    """Return conj(right ct) for vectors."""
    *stack, length = aval.shape
    return conj(left_matrix(ct[..., None, :], right, (*stack, 1, length)).reshape(aval.shape))


matmul = bilinear(
    "matmul",
    multiply_matrices,
    (transpose_matmul_left, transpose_matmul_right),
    batch=batch_matmul,
    abstract=abstract_matmul(multiply_matrices),
)
vecdot = bilinear(
    "vecdot",
    multiply_vectors,
    (
        lambda ct, aval, right, *, axis=-1: unbroadcast(conj(np.expand_dims(ct, axis) * right), aval.shape),
        lambda ct, aval, left, *, axis=-1: unbroadcast(np.expand_dims(ct, axis) * conj(left), aval.shape),
    ),
    batch=batch_broadcast,
)
matvec = bilinear(
    "matvec",
    multiply_matrix_vector,
    (lambda ct, aval, right: left_matrix(ct[..., None], right[..., None], aval.shape), transpose_matvec_right),
    batch=batch_matvec,
)
vecmat = bilinear(
    "vecmat",
    multiply_vector_matrix,
    (
        transpose_vecmat_left,
        lambda ct, aval, left: right_matrix(ct[..., None, :], conj(left)[..., None, :], aval.shape),
    ),
    batch=batch_vecmat,
)


# Contractions over given axes


def arranged(x: Any, order: Sequence[int]) -> Any:
    """Return a value whose axis i belongs at place order[i] with its axes put there."""
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return x if inverse == list(range(len(order))) else np.transpose(x, inverse)


def free_axes(ndim: int, axes: Axes) -> list[int]:
    """Return the axes that are not contracted."""
    return [axis for axis in range(ndim) if axis not in axes]


def contracted_first(own: Axes, other: Axes) -> list[int]:
    """Return one side's contracted axes in the order in which the other side has them."""
    return [own[k] for k in sorted(range(len(other)), key=other.__getitem__)]


def contraction_left(ct: Any, aval: Aval, right: Any, *, axes: tuple[Axes, Axes]) -> Any:
    """Contract the cotangent with the free axes of the right side."""
    mine, others = axes
    free = free_axes(right.ndim, others)
    product = np.tensordot(ct, right, (range(ct.ndim - len(free), ct.ndim), free))
    return arranged(product, free_axes(len(aval.shape), mine) + contracted_first(mine, others))


def contraction_right(ct: Any, aval: Aval, left: Any, *, axes: tuple[Axes, Axes]) -> Any:
    """Contract the cotangent with the free axes of the left side."""
    others, mine = axes
    free = free_axes(left.ndim, others)
    product = np.tensordot(left, ct, (free, range(len(free))))
    return arranged(product, contracted_first(mine, others) + free_axes(len(aval.shape), mine))


def dot_axes(left: int, right: int) -> tuple[Axes, Axes]:
    """Return the axes that `dot` contracts, for the numbers of axes of its operands."""
    if not left or not right:
        return (), ()
    return (left - 1,), (max(right - 2, 0),)


def inner_axes(left: int, right: int) -> tuple[Axes, Axes]:
    """Return the axes that `inner` contracts, for the numbers of axes of its operands."""
    if not left or not right:
        return (), ()
    return (left - 1,), (right - 1,)


def transpose_dot_left(ct: Any, aval: Aval, right: Any) -> Any:
    """Return the cotangent of the left side of `dot`."""
    ndim = len(aval.shape)
    if ndim == 2 and right.ndim == 2:
        return ct @ right.T
    return contraction_left(ct, aval, right, axes=dot_axes(ndim, right.ndim))


def transpose_dot_right(ct: Any, aval: Aval, left: Any) -> Any:
    """Return the cotangent of the right side of `dot`."""
    ndim = len(aval.shape)
    if ndim == 2 and left.ndim == 2:
        return left.T @ ct
    return contraction_right(ct, aval, left, axes=dot_axes(left.ndim, ndim))


def evaluate_dot(x: Any, y: Any) -> Any:
    """Evaluate `dot`."""
    try:
        return np.dot(x, y)
    except ValueError as error:
        needed = "a last axis on the left as long as the second to last (or only) axis on the right is needed"
        raise mismatched("dot", x, y, needed) from error


def evaluate_inner(x: Any, y: Any) -> Any:
    """Evaluate `inner`."""
    try:
        return np.inner(x, y)
    except ValueError as error:
        raise mismatched("inner", x, y, "last axes of equal length are needed") from error


def evaluate_vdot(x: Any, y: Any) -> Any:
    """Evaluate `vdot`."""
    try:
        return np.vdot(x, y)
    except ValueError as error:
        raise mismatched("vdot", x, y, "equal numbers of elements are needed") from error


def evaluate_tensordot(x: Any, y: Any, *, axes: tuple[Axes, Axes]) -> Any:
    """Evaluate `tensordot`."""
    return np.tensordot(x, y, axes)


dot = bilinear(
    "dot",
    evaluate_dot,
    (transpose_dot_left, transpose_dot_right),
    batch=batch_contraction(dot_axes),
    abstract=abstract_contraction(evaluate_dot, dot_axes),
)
inner = bilinear(
    "inner",
    evaluate_inner,
    (
        lambda ct, aval, right: contraction_left(ct, aval, right, axes=inner_axes(len(aval.shape), right.ndim)),
        lambda ct, aval, left: contraction_right(ct, aval, left, axes=inner_axes(left.ndim, len(aval.shape))),
    ),
    batch=batch_contraction(inner_axes),
    abstract=abstract_contraction(evaluate_inner, inner_axes),
)
tensordot = bilinear(
    "tensordot",
    evaluate_tensordot,
    (contraction_left, contraction_right),
    batch=batch_tensordot,
    abstract=abstract_contraction(evaluate_tensordot, None),
)
vdot = bilinear(
    "vdot",
    evaluate_vdot,
    (
        lambda ct, aval, right: conj(ct * right).reshape(aval.shape),
        lambda ct, aval, left: (ct * conj(left)).reshape(aval.shape),
    ),
    batch=batch_vdot,
)


# Products of every element with every element


def kron_shapes(left: Shape, right: Shape) -> tuple[Shape, Shape]:
    """Return the shapes of both sides with equally many axes."""
    ndim = max(len(left), len(right))
    return (1,) * (ndim - len(left)) + left, (1,) * (ndim - len(right)) + right


def interleaved(left: Shape, right: Shape) -> Shape:
    """Return the lengths of both sides in turn."""
    return tuple(length for pair in zip(left, right, strict=True) for length in pair)


def transpose_kron_left(ct: Any, aval: Aval, right: Any) -> Any:
    """Contract the blocks of the cotangent with the right side."""
    mine, others = kron_shapes(aval.shape, right.shape)
    blocks, axes = ct.reshape(interleaved(mine, others)), range(len(mine))
    return np.tensordot(blocks, right.reshape(others), ([2 * i + 1 for i in axes], axes)).reshape(aval.shape)


def transpose_kron_right(ct: Any, aval: Aval, left: Any) -> Any:
    """Contract the cotangent with the left side, block by block."""
    others, mine = kron_shapes(left.shape, aval.shape)
    blocks, axes = ct.reshape(interleaved(others, mine)), range(len(mine))
    return np.tensordot(blocks, left.reshape(others), ([2 * i for i in axes], axes)).reshape(aval.shape)


outer = bilinear(
    "outer",
    np.outer,
    (
        lambda ct, aval, right: (ct @ right.reshape(ct.shape[1])).reshape(aval.shape),
        lambda ct, aval, left: (left.reshape(ct.shape[0]) @ ct).reshape(aval.shape),
    ),
    batch=batch_outer,
)
kron = bilinear("kron", np.kron, (transpose_kron_left, transpose_kron_right), batch=batch_kron)


# Vectors of space


def in_space(x: Any) -> Any:
    """Return vectors of the plane as vectors of space, and the latter as they are."""
    return x if x.shape[-1] == 3 else np.concatenate([x, np.zeros((*x.shape[:-1], 1), x.dtype)], axis=-1)


def along_normal(ct: Any) -> Any:
    """Return the cotangent of a normal component as that of a vector of space."""
    zeros = np.zeros((*ct.shape, 2), ct.dtype)
    return np.concatenate([zeros, ct[..., None]], axis=-1)


def transpose_cross_left(ct: Any, aval: Aval, right: Any) -> Any:
    """Return right x ct."""
    planar = aval.shape[-1] == 2 and right.shape[-1] == 2
    found = np.cross(in_space(right), along_normal(ct) if planar else ct)
    return unbroadcast(found[..., : aval.shape[-1]], aval.shape)


def transpose_cross_right(ct: Any, aval: Aval, left: Any) -> Any:
    """Return ct x left."""
    planar = aval.shape[-1] == 2 and left.shape[-1] == 2
    found = np.cross(along_normal(ct) if planar else ct, in_space(left))
    return unbroadcast(found[..., : aval.shape[-1]], aval.shape)


def evaluate_cross(x: Any, y: Any) -> Any:
    """Evaluate `cross` of the vectors along the last axes."""
    return np.cross(x, y)


cross = bilinear("cross", evaluate_cross, (transpose_cross_left, transpose_cross_right), form=Routine("(m),(n)->(k?)"))


# Convolutions


def first_term(left: int, right: int, mode: str) -> int:
    """Return where in the full convolution of two lengths the result of a mode starts."""
    shorter = min(left, right)
    return {"full": 0, "same": (shorter - 1) // 2, "valid": shorter - 1}[mode]


def convolution_side(ct: Any, length: int, other: Any, start: int, mode: str) -> Any:
    """Return the cotangent of one side of a convolution whose result starts at a term of the full one."""
    reversed_other = other[::-1]
    if mode == "full":
        return np.convolve(ct, reversed_other, "valid")
    first = other.shape[0] - 1 - start
    return np.convolve(ct, reversed_other)[first : first + length]


def transpose_convolve(ct: Any, aval: Aval, other: Any, *, mode: str) -> Any:
    """Return the cotangent of either side of `convolve`."""
    length = aval.shape[0]
    return convolution_side(ct, length, other, first_term(length, other.shape[0], mode), mode)


def correlation_start(left: int, right: int, mode: str) -> int:
    """Return where in the full correlation the result starts; a longer right side is slid the other way."""
    start = first_term(left, right, mode)
    return min(left, right) // 2 if mode == "same" and right > left else start


def transpose_correlate_left(ct: Any, aval: Aval, right: Any, *, mode: str) -> Any:
    """Return the cotangent of the left side: correlation is convolution with the reversed conjugate."""
    length = aval.shape[0]
    start = correlation_start(length, right.shape[0], mode)
    return convolution_side(ct, length, conj(right)[::-1], start, mode)


def transpose_correlate_right(ct: Any, aval: Aval, left: Any, *, mode: str) -> Any:
    """Return the cotangent of the right side."""
    length = aval.shape[0]
    start = correlation_start(left.shape[0], length, mode)
    return conj(convolution_side(ct, length, left, start, mode)[::-1])


def evaluate_convolve(x: Any, y: Any, *, mode: str) -> Any:
    """Evaluate `convolve`."""
    return np.convolve(x, y, mode)  # type: ignore[call-overload]  # the stub wants literals


def evaluate_correlate(x: Any, y: Any, *, mode: str) -> Any:
    """Evaluate `correlate`."""
    return np.correlate(x, y, mode)  # type: ignore[call-overload]  # the stub wants literals


convolve = bilinear(
    "convolve",
    evaluate_convolve,
    (transpose_convolve, transpose_convolve),
    batch=batch_convolution(first_term, lambda y: y),
)
correlate = bilinear(
    "correlate",
    evaluate_correlate,
    (transpose_correlate_left, transpose_correlate_right),
    batch=batch_convolution(correlation_start, lambda y: conj(y)[..., ::-1]),
)
