"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import raw
from wengert.errors import ShapeError, UsageError, describe
from wengert.nn.functional._activations import log_softmax, softplus
from wengert.nn.functional._arguments import (
    as_floats,
    as_parameter,
    as_real,
    as_weights,
    layer,
    require_setting,
)
from wengert.nn.functional._vectors import refuse_negative_indices
from wengert.scipy import special

CERTAIN = -100.0
"""The logarithm of a probability of 0 in `binary_cross_entropy`, as in PyTorch."""


def reduce_losses(name: str, losses: Any, reduction: str) -> Any:
    """Return the mean or sum of losses, or themselves."""
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "none"):
        remedy = "Pass one of these" if isinstance(reduction, str) else "Write weight=, if that is meant"
        raise UsageError(name, f"reduction={shown(reduction)}", "'mean', 'sum' or 'none' is needed", remedy)
    if reduction == "none":
        return losses
    return np.mean(losses) if reduction == "mean" else np.sum(losses)


def pair_with_target(name: str, input: Any, target: Any, sizes: bool = False) -> tuple[Any, Any]:
    """Return input and target as Tensors; shapes (n, 1) and (n,), which would make n * n pairs, are refused.

    Complex numbers are refused but where the loss is made of their sizes.
    """
    x, wanted = map(as_tensor, (input, target)) if sizes else (as_real(name, input), as_real(name, target))
    x = as_floats(x)
    ours, theirs = x.shape, wanted.shape
    if ours != theirs and theirs:
        few, many = sorted((ours, theirs), key=len)
        both = list(zip(few, many[len(many) - len(few) :], strict=True))
        repeated = len(few) < len(many) and any(b == 1 != a for a, b in both)
        if repeated or any(a != b and 1 not in (a, b) for a, b in both):
            given = f"an input of shape {ours} and a target of shape {theirs}"
            raise ShapeError(name, given, "one shape is needed", "Write target.reshape(input.shape), say")
    return x, wanted


@layer
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the squares of differences.

    Args:
        input: an array.
        target: another.
        reduction: "mean", "sum" or "none".

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of the arguments, broadcast.

    >>> mse_loss([1.0, 3.0], [0.0, 0.0])
    tensor(5.)
    """
    x, wanted = pair_with_target("mse_loss", input, target)
    return reduce_losses("mse_loss", (x - wanted) ** 2, reduction)


@layer
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the sizes of differences; at 0 the derivative is 0.

    Args:
        input: an array.
        target: another.
        reduction: "mean", "sum" or "none".

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of the arguments, broadcast.

    >>> l1_loss([1.0, -3.0], [0.0, 0.0])
    tensor(2.)
    """
    x, wanted = pair_with_target("l1_loss", input, target, sizes=True)
    return reduce_losses("l1_loss", np.abs(x - wanted), reduction)


@layer
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: Any = 1.0) -> Any:
    """Return half the squares of differences, beyond `delta` the lines that go on from there (Huber, 1964).

    Args:
        input: an array.
        target: another.
        reduction: "mean", "sum" or "none".
        delta: the difference from which on the loss is a line.

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of the arguments, broadcast.

    >>> huber_loss([1.0, 3.0], [0.0, 0.0], "none")
    tensor([0.5, 2.5])
    """
    require_setting("huber_loss", "delta", delta)
    x, wanted = pair_with_target("huber_loss", input, target)
    return reduce_losses("huber_loss", special.huber(delta, x - wanted), reduction)


@layer
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """Return sizes of differences, below `beta` rounded off by a square: `huber_loss` divided by `beta`.

    Args:
        input: an array.
        target: another.
        reduction: "mean", "sum" or "none".
        beta: the difference up to which the loss is a square; 0 for `l1_loss`.

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of the arguments, broadcast.

    >>> smooth_l1_loss([1.0, 3.0], [0.0, 0.0], "none")
    tensor([0.5, 2.5])
    """
    require_setting("smooth_l1_loss", "beta", beta)
    if not beta:
        return l1_loss(input, target, reduction)
    x, wanted = pair_with_target("smooth_l1_loss", input, target)
    losses = special.huber(beta, x - wanted) / beta
    return reduce_losses("smooth_l1_loss", losses, reduction)


@layer
def binary_cross_entropy(input: Any, target: Any, reduction: str = "mean", *, weight: Any = None) -> Any:
    """Return the cross-entropy of probabilities of one of two classes.

    Args:
        input: probabilities, of others the loss is NaN; of logits `binary_cross_entropy_with_logits` keeps the digits.
        target: the class, as 0 or 1, or its probability.
        reduction: "mean", "sum" or "none".
        weight: what losses are multiplied by.

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of the arguments, broadcast.

    >>> binary_cross_entropy([0.5, 1.0], [1.0, 1.0])
    tensor(0.34657359)
    """
    p, wanted = pair_with_target("binary_cross_entropy", input, target)
    of_one = np.where(p != 0, np.log(np.where(p != 0, p, 1)), CERTAIN)  # NaN of NaN and of what is no probability
    of_zero = np.where(p != 1, np.log1p(-np.where(p != 1, p, 0)), CERTAIN)
    losses = -(wanted * of_one + (1 - wanted) * of_zero)
    return reduce_losses("binary_cross_entropy", weigh_losses("binary_cross_entropy", losses, weight), reduction)


def weigh_losses(name: str, losses: Any, weight: Any) -> Any:
    """Return losses times weights, if there are some."""
    return losses if weight is None else losses * as_weights(name, "weight", weight, losses.shape)


@layer
def binary_cross_entropy_with_logits(
    input: Any, target: Any, reduction: str = "mean", pos_weight: Any = None, *, weight: Any = None
) -> Any:
    """Return the cross-entropy of the sigmoid of logits.

    Args:
        input: logits of one of two classes.
        target: the class, as 0 or 1, or its probability.
        reduction: "mean", "sum" or "none".
        pos_weight: how much more class 1 counts.
        weight: what losses are multiplied by.

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of the arguments, broadcast.

    >>> binary_cross_entropy_with_logits([0.0, 1000.0], [1.0, 1.0])
    tensor(0.34657359)
    """
    x, wanted = pair_with_target("binary_cross_entropy_with_logits", input, target)
    name = "binary_cross_entropy_with_logits"
    more = 1 if pos_weight is None else as_weights(name, "pos_weight", pos_weight, x.shape)
    losses = more * wanted * softplus(-x) + (1 - wanted) * softplus(x)
    return reduce_losses(name, weigh_losses(name, losses, weight), reduction)


@layer
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """Return the parts of the Kullback-Leibler divergence of the target from the input.

    Args:
        input: logarithms of probabilities.
        target: probabilities.
        reduction: "mean" (over all elements), "batchmean" (the sum over the length of the first axis: the divergence),
            "sum" or "none".
        log_target: whether the target are logarithms, too.

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of the arguments, broadcast.

    >>> kl_div(np.log([0.5, 0.5]), [1.0, 0.0], "sum")
    tensor(0.69314718)
    """
    logs, wanted = pair_with_target("kl_div", input, target)
    parts = np.exp(wanted) * (wanted - logs) if log_target else special.xlogy(wanted, wanted) - wanted * logs
    if reduction == "batchmean":
        return np.sum(parts) / parts.shape[0]
    return reduce_losses("kl_div", parts, reduction)


def pick_classes(name: str, x: Any, target: Any) -> Any:
    """Return the elements that classes name along the second axis, or along the only one; none counts from the end."""
    if not x.ndim:
        given = "an input without axes"
        raise ShapeError(name, given, "an axis of classes is needed", "Give all classes, along the last axis or alone")
    axis = min(1, x.ndim - 1)
    require_target(name, target, (*x.shape[:axis], *x.shape[axis + 1 :]), "classes")
    count = x.shape[axis]
    others = np.indices(target.shape, sparse=True) if target.ndim > 1 else tuple(map(np.arange, target.shape))
    try:
        return x[(*others[:axis], refuse_negative_indices(target, count), *others[axis:])]
    except IndexError:
        classes = raw(target)
        wrong = classes[(classes < 0) | (classes >= count)][0]
        given = f"a target with the class {wrong} for an input of {count} classes"
        needed = f"classes from 0 to {count - 1} are needed"
        remedy = "Correct it, or pass as ignore_index the one that does not count"
        raise IndexError(describe(name, given, needed, remedy)) from None


def require_target(name: str, target: Any, shape: tuple[int, ...], what: str) -> None:
    """Raise a ShapeError unless a target has a shape."""
    if target.shape != shape:
        given = f"a target of shape {target.shape} and dtype {target.dtype}"
        remedy = "Reshape it; integers are classes, other numbers the probabilities of all classes"
        raise ShapeError(name, given, f"{what} of shape {shape} are needed", remedy)


@layer
def nll_loss(
    input: Any, target: Any, reduction: str = "mean", *, weight: Any = None, ignore_index: int | None = None
) -> Any:
    """Return the logarithms of probabilities of classes, negated.

    Args:
        input: logarithms of the probabilities of classes, which are the second axis, or the only one.
        target: the classes, as integers.
        reduction: "mean", "sum" or "none".
        weight: how much each class counts, of losses and of their number.
        ignore_index: the class of what does not count.

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of `input` without the classes.

    >>> nll_loss(np.log([[0.25, 0.75]]), [1])
    tensor(0.28768207)
    """
    x, wanted = as_real("nll_loss", input), as_tensor(target)
    weight = class_weights("nll_loss", weight, x.shape[min(1, x.ndim - 1) :][:1])
    counts = class_counts(wanted, weight, ignore_index)
    losses = -pick_classes("nll_loss", x, replace_ignored(wanted, ignore_index))
    return average_losses("nll_loss", losses if counts is None else losses * counts, counts, reduction)


def replace_ignored(target: Any, ignore_index: int | None) -> Any:
    """Return classes, some class in place of the one that is left out."""
    return target if ignore_index is None else np.where(target == ignore_index, 0, target)


def class_weights(name: str, weight: Any, classes: tuple[int, ...]) -> Any:
    """Return a weight for each class, also if one number was given for all; None if there is none."""
    found = as_parameter(name, "weight", weight, classes)
    return found if found is None or found.shape else np.broadcast_to(found, classes)


def class_counts(target: Any, weight: Any, ignore_index: int | None) -> Any:
    """Return how much each of some classes counts; None where all count alike."""
    if weight is None and ignore_index is None:
        return None
    counts: Any = 1 if weight is None else np.take(weight, replace_ignored(target, ignore_index))
    return counts if ignore_index is None else np.where(target == ignore_index, 0, counts)


def average_losses(name: str, losses: Any, counts: Any, reduction: str) -> Any:
    """Return losses, 0 where nothing counts, or their sum, over the sum of counts for a mean."""
    if counts is None:
        return reduce_losses(name, losses, reduction)
    found = np.where(counts == 0, 0, losses)
    return np.sum(found) / np.sum(counts) if reduction == "mean" else reduce_losses(name, found, reduction)


@layer
def cross_entropy(
    input: Any,
    target: Any,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
) -> Any:
    """Return the cross-entropy of the softmax of logits.

    Args:
        input: logits of classes, which are the second axis, or the only one.
        target: the classes, as integers, or the probabilities of all.
        reduction: "mean" (over all but the classes), "sum" or "none".
        label_smoothing: what part of the target is spread over all classes.
        weight: how much each class counts.
        ignore_index: the class of what does not count, where classes are integers.

    Returns:
        A Tensor without axes; with the reduction "none" one of the shape of `input` without the classes.

    >>> cross_entropy([[0.0, 0.0]], [1])
    tensor(0.69314718)
    """
    require_setting("cross_entropy", "label_smoothing", label_smoothing, 1)
    x, wanted = as_real("cross_entropy", input), as_tensor(target)
    axis = min(1, x.ndim - 1)
    weight = class_weights("cross_entropy", weight, x.shape[axis : axis + 1])
    logs = log_softmax(x, axis)
    by_class = logs if weight is None else logs * np.reshape(weight, (-1, *(1,) * (x.ndim - axis - 1)))
    if wanted.dtype.kind in "iu":
        counts = class_counts(wanted, weight, ignore_index)
        losses = -pick_classes("cross_entropy", by_class, replace_ignored(wanted, ignore_index))
    else:
        if ignore_index is not None:
            given = f"ignore_index={ignore_index} with a target of dtype {wanted.dtype}"
            raise UsageError("cross_entropy", given, "classes, as integers, are needed", "Leave it out")
        require_target("cross_entropy", wanted, x.shape, "probabilities")
        counts, losses = None, -np.sum(by_class * wanted, axis=axis)
    if label_smoothing:
        losses = (1 - label_smoothing) * losses - label_smoothing * np.mean(by_class, axis=axis)
    return average_losses("cross_entropy", losses, counts, reduction)
