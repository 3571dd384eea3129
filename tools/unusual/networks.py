"""Functions of `wengert.nn.functional` written with NumPy and SciPy, to compare unusual calls with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal
import scipy.special as sp


def relu(input: Any) -> Any:
    """Return what is positive."""
    return np.maximum(input, 0)


def relu6(input: Any) -> Any:
    """Return what lies between 0 and 6."""
    return np.clip(input, 0, 6)


def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Any:
    """Return what lies between two numbers."""
    return np.clip(input, min_val, max_val)


def leaky_relu(input: Any, negative_slope: Any = 0.01) -> Any:
    """Return x, and a part of it where it is negative."""
    return np.where(np.asarray(input) > 0, input, negative_slope * np.asarray(input))


def elu(input: Any, alpha: Any = 1.0) -> Any:
    """Return x, and alpha (exp(x) - 1) where it is negative."""
    x = np.asarray(input)
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def tanh(input: Any) -> Any:
    """Return the hyperbolic tangent."""
    return np.tanh(input)


def softsign(input: Any) -> Any:
    """Return x / (1 + |x|)."""
    return np.asarray(input) / (1 + np.abs(input))


def sigmoid(input: Any) -> Any:
    """Return the logistic function."""
    return sp.expit(input)


def logsigmoid(input: Any) -> Any:
    """Return its logarithm."""
    return sp.log_expit(input)


def silu(input: Any) -> Any:
    """Return x times the logistic function."""
    return np.asarray(input) * sp.expit(input)


def softplus(input: Any, beta: Any = 1.0) -> Any:
    """Return log(1 + exp(beta x)) / beta."""
    return np.logaddexp(0, np.multiply(beta, input)) / beta


def gelu(input: Any) -> Any:
    """Return x times the normal distribution."""
    return np.asarray(input) * sp.ndtr(input)


def softmax(input: Any, axis: int = -1) -> Any:
    """Return shares of exponentials."""
    return sp.softmax(input, axis)


def log_softmax(input: Any, axis: int = -1) -> Any:
    """Return their logarithms."""
    return sp.log_softmax(input, axis)


def reduced(losses: Any, reduction: str) -> Any:
    """Return the mean, the sum, or all."""
    ways: dict[str, Callable[[Any], Any]] = {"mean": np.mean, "sum": np.sum, "none": np.asarray}
    return ways[reduction](losses)


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return squares of differences."""
    return reduced(np.subtract(input, target) ** 2, reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return sizes of differences."""
    return reduced(np.abs(np.subtract(input, target)), reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: Any = 1.0) -> Any:
    """Return squares of differences, and sizes of large ones."""
    return reduced(sp.huber(delta, np.subtract(input, target)), reduction)


def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """Return target (log(target) - input)."""
    wanted, x = np.asarray(target), np.asarray(input)
    return reduced(np.exp(wanted) * (wanted - x) if log_target else sp.xlogy(wanted, wanted) - wanted * x, reduction)


def binary_cross_entropy(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return minus the logarithms of probabilities, at least -100."""
    logs = [np.maximum(np.log(x), -100) for x in (np.asarray(input), 1 - np.asarray(input))]
    return reduced(-(np.asarray(target) * logs[0] + (1 - np.asarray(target)) * logs[1]), reduction)


def binary_cross_entropy_with_logits(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the same of the logistic function."""
    return reduced(np.logaddexp(0, input) - np.multiply(input, target), reduction)


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return x W^T + b."""
    found = np.asarray(input) @ np.asarray(weight).T
    return found if bias is None else found + bias


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Return x less its mean, divided by its deviation, along the last axes."""
    x = np.asarray(input)
    axes = tuple(range(-np.size(normalized_shape), 0))
    if x.shape[axes[0] :] != tuple(np.atleast_1d(normalized_shape)):
        raise ValueError("these are not the last axes")
    found = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def normalize(input: Any, p: Any = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    """Return x divided by its norm."""
    return input / np.maximum(np.linalg.norm(input, p, axis, keepdims=True), eps)


def correlation(rank: int) -> Callable[..., Any]:
    """Return the correlation of images of so many axes with kernels."""

    def conv(input: Any, weight: Any, bias: Any = None) -> Any:
        x, w = np.asarray(input), np.asarray(weight)
        if w.ndim != rank + 2 or x.ndim not in (rank + 1, rank + 2) or x.shape[-rank - 1] != w.shape[1]:
            raise ValueError("images and kernels do not fit")
        if x.ndim == rank + 1:
            return conv(x[np.newaxis], w, bias)[0]
        if any(n < k for n, k in zip(x.shape[2:], w.shape[2:], strict=True)):
            raise ValueError("kernels are larger than images")
        rows = [[sum(map(valid, image, kernel)) for kernel in w] for image in x]
        lengths = [n - k + 1 for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
        found = np.reshape(rows, (len(x), len(w), *lengths)).astype(np.result_type(x, w))
        return found if bias is None else found + np.reshape(bias, (-1, *(1,) * rank))

    def valid(image: Any, kernel: Any) -> Any:
        return scipy.signal.correlate(image, np.conjugate(kernel), "valid", "direct")

    return conv


conv1d, conv2d, conv3d = map(correlation, (1, 2, 3))
