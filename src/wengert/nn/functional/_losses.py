"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.dispatch import as_tensor
from wengert.errors import UsageError, describe
from wengert.nn.functional._activations import log_softmax

__all__ = ["cross_entropy", "mse_loss", "nll_loss"]


def reduced(name: str, losses: Any, reduction: str) -> Any:
    """Return the mean or sum of losses, or themselves."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        given = f"reduction={reduction!r}"
        raise UsageError(describe(name, given, "'mean', 'sum' or 'none' is needed", "Pass one of these"))
    return np.mean(losses) if reduction == "mean" else np.sum(losses)


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the squares of differences.

    Args:
        input: an array.
        target: another.
        reduction: "mean", "sum" or "none".

    >>> mse_loss([1.0, 3.0], [0.0, 0.0])
    tensor(5.)
    """
    return reduced("mse_loss", (as_tensor(input) - as_tensor(target)) ** 2, reduction)


def of_classes(x: Any, target: Any) -> Any:
    """Return the elements that classes name along the second axis, or along the only one."""
    axis = min(1, x.ndim - 1)
    return np.squeeze(np.take_along_axis(x, np.expand_dims(target, axis), axis), axis)


def nll_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the logarithms of probabilities of classes, negated.

    Args:
        input: logarithms of the probabilities of classes, which are the second axis, or the only one.
        target: the classes, as integers.
        reduction: "mean", "sum" or "none".

    >>> nll_loss(np.log([[0.25, 0.75]]), [1])
    tensor(0.28768207)
    """
    return reduced("nll_loss", -of_classes(as_tensor(input), as_tensor(target)), reduction)


def cross_entropy(input: Any, target: Any, reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """Return the cross-entropy of the softmax of logits.

    Args:
        input: logits of classes, which are the second axis, or the only one.
        target: the classes, as integers, or the probabilities of all.
        reduction: "mean" (over all but the classes), "sum" or "none".
        label_smoothing: what part of the target is spread over all classes.

    >>> cross_entropy([[0.0, 0.0]], [1])
    tensor(0.69314718)
    """
    x, wanted = as_tensor(input), as_tensor(target)
    axis = min(1, x.ndim - 1)
    logs = log_softmax(x, axis)
    losses = -of_classes(logs, wanted) if wanted.dtype.kind in "iu" else -np.sum(logs * wanted, axis=axis)
    if label_smoothing:
        losses = (1 - label_smoothing) * losses - label_smoothing * np.mean(logs, axis=axis)
    return reduced("cross_entropy", losses, reduction)
