"""Linear layers; lengths, directions and distances of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError
from wengert.nn.functional._arguments import as_parameter, as_real, hinted, layer, require_setting


@hinted
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return `input @ weight.T + bias`.

    Args:
        input: an array whose last axis are features.
        weight: a matrix with a row for each feature of the result, as PyTorch keeps it.
        bias: a number for each feature of the result.

    Returns:
        A Tensor of shape (..., rows of the matrix).

    Raises:
        ShapeError: the weight is no matrix, or the bias does not fit.

    >>> linear([1.0, 2.0], [[1.0, 1.0], [0.0, 3.0]], [0.5, 0.0])
    tensor([3.5, 6. ])
    """
    rows: Any = as_tensor(weight)
    if rows.ndim != 2:
        given = f"weight of shape {rows.shape}"
        raise ShapeError("linear", given, "a matrix is needed", "Call vmap for several, or numpy.matmul")
    found: Any = np.matmul(as_tensor(input), rows.T)
    return found if bias is None else found + as_parameter("linear", "bias", bias, found.shape[-1:])


@layer
def normalize(input: Any, p: Any = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    """Return vectors over their lengths.

    Args:
        input: an array.
        p: which norm is the length.
        axis: the axis of the vectors.
        eps: the least that they are divided by.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> normalize([[3.0, 4.0], [0.0, 0.0]])
    tensor([[0.6, 0.8],
            [0. , 0. ]])
    """
    require_setting("normalize", "eps", eps, 0)
    x: Any = as_tensor(input)
    return x / np.maximum(np.linalg.norm(x, p, axis, keepdims=True), eps)


@layer
def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    """Return the cosines of the angles between vectors.

    Args:
        x1: an array.
        x2: another.
        axis: the axis of the vectors.
        eps: the least that counts as a length.

    Returns:
        A Tensor of the shape of both, broadcast, without the axis.

    >>> cosine_similarity([[1.0, 0.0]], [[1.0, 1.0]])
    tensor([0.70710678])
    """
    name = "cosine_similarity"
    a, b = normalize(as_real(name, x1), axis=axis, eps=eps), normalize(as_real(name, x2), axis=axis, eps=eps)
    return np.sum(a * b, axis=axis)


@layer
def pairwise_distance(x1: Any, x2: Any, p: Any = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Any:
    """Return the distances between vectors, the last axis.

    Args:
        x1: an array.
        x2: another.
        p: which norm is the distance.
        eps: what is added to differences.
        keepdims: whether the result keeps that axis.

    Returns:
        A Tensor of the shape of both, broadcast, without the last axis.

    >>> pairwise_distance([0.0, 0.0], [3.0, 4.0], eps=0.0)
    tensor(5.)
    """
    difference: Any = as_tensor(x1) - as_tensor(x2) + eps
    return np.linalg.norm(difference, p, -1, keepdims=keepdims)
