"""Linear layers, embeddings and attention; lengths, directions and distances of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole, elements, refuse_wrong, require_flag
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.nn.functional._activations import softmax
from wengert.nn.functional._arguments import as_parameter, as_real, as_weights, hinted, layer, require_setting


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
    require_setting("normalize", "eps", eps)
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


@hinted
def one_hot(indices: Any, num_classes: int, dtype: Any = float) -> Any:
    """Return rows that are 1 at the class that each index names, and 0 elsewhere.

    Args:
        indices: integers; negative ones, such as -1 for padding, give a row of zeros.
        num_classes: how many classes there are.
        dtype: the dtype of the result.

    Returns:
        A Tensor of shape (*shape of the indices, num_classes).

    Raises:
        UsageError: an index is `num_classes` or more; where that is not known, under `jit`, its row is zeros, too.

    >>> one_hot([1, 0], 3)
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    x, count = as_classes("one_hot", indices), as_whole("one_hot", "num_classes", num_classes, 1)
    known = elements(x)
    if known is not None:
        refuse_wrong("one_hot", "indices", known, known >= count, f"less than num_classes={count} is needed")
    return (x[..., None] == np.arange(count)).astype(dtype)


def as_classes(name: str, indices: Any) -> Any:
    """Return integers as a Tensor; truth values or floats are what somebody mistook for classes."""
    x: Any = as_tensor(indices)
    if x.dtype.kind not in "iu":
        raise DtypeError(name, f"indices of dtype {x.dtype}", "integers are needed", "Convert them with .astype(int)")
    return x


@hinted
def embedding(indices: Any, weight: Any) -> Any:
    """Return the rows of a table that indices name.

    Args:
        indices: integers, of any shape; none counts from the end.
        weight: the table.

    Returns:
        A Tensor of shape (*shape of the indices, *shape of a row).

    Raises:
        IndexError: an index names no row.

    >>> embedding([1, 1], [[1.0, 2.0], [3.0, 4.0]])
    tensor([[3., 4.],
            [3., 4.]])
    """
    table: Any = as_tensor(weight)
    return np.take(table, refuse_negative_indices(as_classes("embedding", indices), len(table)), axis=0)


def refuse_negative_indices(indices: Any, length: int) -> Any:
    """Return indices of which none counts from the end: negative ones are out of bounds, so that they are refused."""
    if indices.dtype.kind != "i" or (is_concrete(indices) and not np.any(raw(indices) < 0)):
        return indices
    return np.where(indices < 0, np.int64(-1 - length), indices)


@layer
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: bool = False, scale: Any = None
) -> Any:
    """Return sums of values weighted by the softmax of the products of queries and keys (Vaswani et al., 2017).

    Args:
        query: an array of shape (..., queries, features).
        key: an array of shape (..., keys, features).
        value: an array of shape (..., keys, features of the result).
        attn_mask: truth values that say what is attended to, or numbers to add to the products; where nothing is left
            to a query its result is 0.
        is_causal: whether query i attends to the keys up to i alone.
        scale: the factor of products; one over the square root of the number of features if it is not given.

    Returns:
        A Tensor of shape (..., queries, features of the result).

    Raises:
        UsageError: there is a mask besides `is_causal`.

    >>> scaled_dot_product_attention(np.zeros((1, 2)), np.ones((3, 2)), [[1.0], [2.0], [6.0]])
    tensor([[3.]])
    """
    name = "scaled_dot_product_attention"
    if isinstance(is_causal, float) or isinstance(scale, bool):  # what PyTorch has in these places
        given = f"is_causal={is_causal!r} and scale={scale!r}"
        needed = "truth and a number are needed; there is no dropout_p before them"
        raise UsageError(name, given, needed, "Write is_causal= and scale= by their names")
    require_flag(name, is_causal=is_causal)
    q, k, v = (as_real(name, x) for x in (query, key, value))
    scores: Any = np.matmul(q, np.swapaxes(k, -1, -2))
    scores = scores * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal and attn_mask is not None:
        raise UsageError(name, "a mask and is_causal=True", "one of them is needed", "Leave one out")
    mask = np.tri(*scores.shape[-2:]).astype(bool) if is_causal else attn_mask
    if mask is not None:
        mask = as_weights(name, "attn_mask", mask, scores.shape)
        if mask.dtype.kind in "iu":  # zeros and ones of integers are meant as truth values, and would be added
            given = f"attn_mask of dtype {mask.dtype}"
            raise DtypeError(name, given, "truth values or floats are needed", "Convert it")
    return np.matmul(softmax(scores) if mask is None else masked_softmax(scores, mask), v)


def masked_softmax(scores: Any, mask: Any) -> Any:
    """Return the shares of what a mask leaves of scores, (..., queries, keys), and zeros where it leaves nothing."""
    left = mask if mask.dtype.kind == "b" else mask != -np.inf
    some = np.any(left, axis=-1, keepdims=True) if left.ndim else left
    known = elements(some)
    if known is not None and known.all():
        return softmax(np.where(mask, scores, -np.inf) if mask.dtype.kind == "b" else scores + mask)
    added = 0.0 if mask.dtype.kind == "b" else np.where(left, mask, 0.0)
    return np.where(some, softmax(np.where(left | ~some, scores + added, -np.inf)), 0.0)
