"""Normalisation and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert import random
from wengert.core.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError, describe

__all__ = ["batch_norm", "dropout", "layer_norm"]


def standardised(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Return elements less a mean, over a standard deviation, times weights plus a bias."""
    found = (x - mean) / np.sqrt(variance + eps)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Return elements standardised over the last axes.

    Args:
        input: an array.
        normalized_shape: the lengths of these axes.
        weight: what the result is multiplied by.
        bias: what is added to that.
        eps: what is added to variances.

    Raises:
        ShapeError: the array has other last axes.

    >>> layer_norm([[1.0, 3.0]], (2,), eps=0.0)
    tensor([[-1.,  1.]])
    """
    x: Any = as_tensor(input)
    shape = tuple(normalized_shape) if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    if x.shape[x.ndim - len(shape) :] != shape:
        given = f"shape {x.shape} for normalized_shape={shape}"
        raise ShapeError(describe("layer_norm", given, "last axes of these lengths are needed", "Correct one of them"))
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean, variance = np.mean(x, axis=axes, keepdims=True), np.var(x, axis=axes, keepdims=True)
    return standardised(x, mean, variance, weight, bias, eps)


def batch_norm(
    input: Any, mean: Any = None, var: Any = None, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Return images standardised for each channel, the second axis.

    Args:
        input: images.
        mean: the means of the channels; those of these images if it is not given.
        var: the variances of the channels, likewise.
        weight: a factor for each channel.
        bias: what is added to that.
        eps: what is added to variances.

    >>> batch_norm([[1.0, 5.0], [3.0, 5.0]], eps=1e-9)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """
    x: Any = as_tensor(input)
    axes = tuple(i for i in range(x.ndim) if i != 1)

    def by_channel(value: Any) -> Any:
        return None if value is None else as_tensor(value).reshape(-1, *(1,) * (x.ndim - 2))

    mean = np.mean(x, axis=axes) if mean is None else mean
    var = np.var(x, axis=axes) if var is None else var
    return standardised(x, by_channel(mean), by_channel(var), by_channel(weight), by_channel(bias), eps)


def dropout(input: Any, p: float = 0.5, training: bool = True, *, key: Any) -> Any:
    """Return elements of which some, drawn at random, are 0, and the others larger, so that the mean stays.

    Args:
        input: an array.
        p: the probability of 0.
        training: False to return the array as it is.
        key: a key of `wengert.random`.

    Raises:
        UsageError: p is no probability, or 1.

    >>> from wengert import random
    >>> dropout(np.ones(6), 0.5, key=random.key(0))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    x: Any = as_tensor(input)
    if not 0 <= p < 1:
        raise UsageError(describe("dropout", f"p={p}", "a probability less than 1 is needed", "Correct it"))
    return np.where(random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0) if training and p else x
