"""Normalisation and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert import random
from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.nn.functional._arguments import as_parameter, hinted, in_single, layer, require_setting
from wengert.primitives.half_precision import HALF, widen
from wengert.transforms.reverse import stop_gradient


def standardise(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Return elements less a mean, over a standard deviation, times weights plus a bias."""
    found = (x - mean) / np.sqrt(variance + eps)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def last_axes(name: str, x: Any, normalized_shape: Any) -> tuple[int, ...]:
    """Return the last axes of an array, which have given lengths."""
    shape = tuple(normalized_shape) if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    if not shape or x.shape[x.ndim - len(shape) :] != shape:
        given = f"shape {x.shape} for normalized_shape={shape}"
        raise ShapeError(name, given, "last axes of these lengths are needed", "Correct one of them")
    return tuple(range(x.ndim - len(shape), x.ndim))


@layer
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Return elements standardised over the last axes.

    Args:
        input: an array.
        normalized_shape: the lengths of these axes.
        weight: what the result is multiplied by.
        bias: what is added to that.
        eps: what is added to variances.

    Returns:
        A Tensor of the shape of `input`.

    Raises:
        ShapeError: the array has other last axes.

    >>> layer_norm([[1.0, 3.0]], (2,), eps=0.0)
    tensor([[-1.,  1.]])
    """
    x: Any = as_tensor(input)
    axes = last_axes("layer_norm", x, normalized_shape)
    shape = x.shape[axes[0] :]
    weight, bias = as_parameter("layer_norm", "weight", weight, shape), as_parameter("layer_norm", "bias", bias, shape)
    mean, variance = np.mean(x, axis=axes, keepdims=True), np.var(x, axis=axes, keepdims=True)
    return standardise(x, mean, variance, weight, bias, eps)


@hinted
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Return elements over the root of the mean of squares over the last axes (Zhang and Sennrich, 2019).

    Args:
        input: an array.
        normalized_shape: the lengths of these axes.
        weight: what the result is multiplied by.
        eps: what is added to the mean of squares; the precision of the dtype if it is not given.

    Returns:
        A Tensor of the shape of `input`.

    Raises:
        ShapeError: the array has other last axes.

    >>> rms_norm([[1.0, 7.0]], (2,))
    tensor([[0.2, 1.4]])
    """
    x: Any = as_tensor(input)
    axes = last_axes("rms_norm", x, normalized_shape)
    weight = as_parameter("rms_norm", "weight", weight, x.shape[axes[0] :])
    least = float(np.finfo(x.dtype).eps) if eps is None else eps
    return scale_by_root(x, weight, axes, least)


@in_single
def scale_by_root(x: Any, weight: Any, axes: tuple[int, ...], least: float) -> Any:
    """Return elements over the root of the mean of squares, times weights."""
    found = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + least)
    return found if weight is None else found * weight


@layer
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Return images standardised over groups of channels, the second axis, each image by itself (Wu and He, 2018).

    Args:
        input: images.
        num_groups: the number of groups: 1 to standardise over all channels, or as many as there are.
        weight: a factor for each channel.
        bias: what is added to that.
        eps: what is added to variances.

    Returns:
        A Tensor of the shape of `input`.

    Raises:
        ShapeError: the channels do not make so many groups.

    >>> group_norm([[1.0, 3.0, 5.0, 9.0]], 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    x: Any = as_tensor(input)
    as_whole("group_norm", "num_groups", num_groups, 1)
    if x.ndim < 2 or x.shape[1] % num_groups:
        needed = "channels, the second axis, that make them are needed"
        raise ShapeError("group_norm", f"shape {x.shape} for {num_groups} groups", needed, "Correct it")
    weight, bias = (
        as_parameter("group_norm", what, value, x.shape[1:2]) for what, value in (("weight", weight), ("bias", bias))
    )
    grouped = x.reshape(x.shape[0], num_groups, -1)
    mean, variance = np.mean(grouped, axis=2, keepdims=True), np.var(grouped, axis=2, keepdims=True)
    found = standardise(grouped, mean, variance, None, None, eps).reshape(x.shape)
    found = found if weight is None else found * per_channel(weight, x.ndim)
    return found if bias is None else found + per_channel(bias, x.ndim)


def per_channel(value: Any, rank: int) -> Any:
    """Return a number for each channel, the second axis, in the form in which images are multiplied by them."""
    return None if value is None else as_tensor(value).reshape(-1, *(1,) * (rank - 2))


def move_running(running: Any, found: Any, momentum: float) -> None:
    """Let means or variances that are kept, if they are, move towards those of a batch."""
    if running is not None:
        if not isinstance(running, np.ndarray | Tensor):
            given, needed = f"running statistics of type {type(running).__name__}", "arrays that can be written to"
            raise DtypeError("batch_norm", given, f"{needed} are needed", "Make them with np.zeros(channels)")
        if running.dtype.kind not in "fc":  # writing would round every step away
            given = f"running statistics of dtype {running.dtype}"
            raise DtypeError("batch_norm", given, "floats are needed", "Convert them with .astype(float)")
        running[...] = (1 - momentum) * running + momentum * stop_gradient(found)


@hinted
def batch_norm(
    input: Any,
    mean: Any = None,
    var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Return images standardised for each channel, the second axis.

    Args:
        input: images.
        mean: the means of the channels; those of these images if it is not given.
        var: the variances of the channels, likewise.
        weight: a factor for each channel.
        bias: what is added to that.
        training: whether these images' means and variances are taken in any case; what is given, arrays that can be
            written to, then moves towards them.
        momentum: how far it moves, from 0 to 1.
        eps: what is added to variances.

    Returns:
        A Tensor of the shape of `input`.

    >>> batch_norm([[1.0, 5.0], [3.0, 5.0]], eps=1e-9)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    >>> running = np.zeros(2)
    >>> _ = batch_norm([[1.0, 5.0], [3.0, 5.0]], running, np.ones(2), training=True)
    >>> running
    array([0.2, 0.5])
    """
    x: Any = as_tensor(input)
    if x.ndim < 2:
        raise ShapeError("batch_norm", f"shape {x.shape}", "channels, the second axis, are needed", "Reshape it")
    require_setting("batch_norm", "momentum", momentum, 1)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    for what, value in {"mean": mean, "var": var, "weight": weight, "bias": bias}.items():
        as_parameter("batch_norm", what, value, x.shape[1:2])
    dtype, x = x.dtype, widen(x)
    own_mean = np.mean(x, axis=axes) if training or mean is None else mean
    own_var = np.var(x, axis=axes) if training or var is None else var
    if training:
        count = x.size // x.shape[1]
        move_running(mean, own_mean, momentum)
        move_running(var, own_var * (count / max(count - 1, 1)), momentum)
    mean, var = own_mean, own_var
    mean, var, weight, bias = (per_channel(value, x.ndim) for value in (mean, var, weight, bias))
    found = standardise(x, mean, var, weight, bias, eps)
    return found.astype(dtype) if dtype == HALF else found


@hinted
def dropout(input: Any, p: float = 0.5, training: bool = True, *, key: Any = None) -> Any:
    """Return elements of which some, drawn at random, are 0, and the others larger, so that the mean stays.

    Args:
        input: an array.
        p: the probability of 0.
        training: False to return the array as it is.
        key: a key of `wengert.random`, needed while training.

    Returns:
        A Tensor of the shape and dtype of `input`.

    Raises:
        UsageError: p is no probability, or 1; or there is no key.

    >>> from wengert import random
    >>> dropout(np.ones(6), 0.5, key=random.key(0))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    x: Any = as_tensor(input)
    if not 0 <= p < 1:
        raise UsageError("dropout", f"p={p}", "a probability less than 1 is needed", "Correct it")
    if not training or not p:
        return x
    if key is None:
        action = "Pass key=wengert.random.key(seed), another one for each step"
        raise UsageError("dropout", "no key", "a key of wengert.random is needed while training", action)
    return np.where(random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0)
