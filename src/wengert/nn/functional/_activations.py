"""Activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import positive
from wengert.core.values.aval import is_number
from wengert.core.values.dispatch import apply, as_tensor
from wengert.errors import UsageError
from wengert.nn.functional._arguments import as_floats, as_real, as_slope, hinted
from wengert.primitives import exponentials, kinks
from wengert.scipy import _special, special

SATURATED = 32.0
"""From there on the approximation of `gelu` is x or 0, whatever the cube of x is, which may overflow."""


@hinted
def relu(input: Any) -> Any:
    """Return what is positive, and 0 for the rest, where its derivative is 0, too.

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> relu([-1.0, 2.0])
    tensor([0., 2.])
    """
    x: Any = as_real("relu", input)
    return np.where(~(x <= 0), x, 0)  # NaN stays


@hinted
def relu6(input: Any) -> Any:
    """Return what lies between 0 and 6, and these beyond and at them, where the derivative is 0.

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> relu6([-1.0, 2.0, 7.0])
    tensor([0., 2., 6.])
    """
    return hardtanh(as_real("relu6", input), 0.0, 6.0)


@hinted
def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Any:
    """Return what lies between two bounds, and these beyond and at them, where the derivative is 0.

    Args:
        input: an array.
        min_val: the lower bound.
        max_val: the upper bound.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> hardtanh([-2.0, 0.5, 2.0])
    tensor([-1. ,  0.5,  1. ])
    """
    x: Any = as_real("hardtanh", input)
    low, high = as_slope("hardtanh", "min_val", min_val, x.shape), as_slope("hardtanh", "max_val", max_val, x.shape)
    if is_number(low) and is_number(high) and not low <= high:
        raise UsageError("hardtanh", f"bounds {low} and {high}", "a lower one first is needed", "Swap them")
    return np.where(x <= low, low, np.where(x >= high, high, x))


@hinted
def leaky_relu(input: Any, negative_slope: Any = 0.01) -> Any:
    """Return what is positive, and the rest times a slope.

    Args:
        input: an array.
        negative_slope: the slope.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> leaky_relu([-1.0, 2.0])
    tensor([-0.01,  2.  ])
    """
    x: Any = as_real("leaky_relu", input)
    return np.where(x > 0, x, as_slope("leaky_relu", "negative_slope", negative_slope, x.shape) * x)


@hinted
def elu(input: Any, alpha: Any = 1.0) -> Any:
    """Return what is positive, and alpha (exp(x) - 1) for the rest; at 0 the derivative is alpha, that of the rest.

    Args:
        input: an array.
        alpha: how far below zero it goes.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> elu([0.0, 2.0])
    tensor([0., 2.])
    """
    x: Any = as_floats(as_real("elu", input))
    rest = np.where(x > 0, 0.0, x)  # not the lesser of x and 0, whose tie halves the derivative at 0
    return np.where(x > 0, x, as_slope("elu", "alpha", alpha, x.shape) * np.expm1(rest))


@hinted
def selu(input: Any) -> Any:
    """Return `elu`, scaled so that layers keep means and variances (Klambauer et al., 2017).

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> selu([0.0, 2.0])
    tensor([0.        , 2.10140197])
    """
    return 1.0507009873554805 * elu(as_real("selu", input), 1.6732632423543772)


@hinted
def tanh(input: Any) -> Any:
    """Return the hyperbolic tangent.

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> tanh(0.0)
    tensor(0.)
    """
    return np.tanh(as_tensor(input))


@hinted
def softsign(input: Any) -> Any:
    """Return x / (1 + |x|).

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> softsign([-1.0, 3.0])
    tensor([-0.5 ,  0.75])
    """
    x: Any = as_floats(as_tensor(input))
    return apply(kinks.softsign, x) if x.dtype.kind == "f" else x / (1 + np.abs(x))


@hinted
def sigmoid(input: Any) -> Any:
    """Return 1 / (1 + exp(-x)).

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> sigmoid(0.0)
    tensor(0.5)
    """
    x: Any = as_floats(as_tensor(input))
    return apply(exponentials.logistic, x, base=1, sign=1) if x.dtype.kind == "f" else 0.5 * (1 + np.tanh(0.5 * x))


@hinted
def logsigmoid(input: Any) -> Any:
    """Return the logarithm of the sigmoid, also where that is 0.

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> logsigmoid(-1000.0)
    tensor(-1000.)
    """
    x: Any = as_floats(as_real("logsigmoid", input))
    return -np.logaddexp(-x, 0)


@hinted
def glu(input: Any, axis: int = -1) -> Any:
    """Return the first half along an axis times the sigmoid of the second (Dauphin et al., 2017).

    Args:
        input: an array.
        axis: the axis whose length is halved.

    Returns:
        A Tensor with half as many elements.

    Raises:
        ValueError: the length is odd.

    >>> glu([2.0, 0.0])
    tensor([1.])
    """
    x, gate = np.split(as_tensor(input), 2, axis)
    return x * sigmoid(gate)


@hinted
def silu(input: Any) -> Any:
    """Return x times its sigmoid.

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> silu(0.0)
    tensor(0.)
    """
    x: Any = as_tensor(input)
    return x * sigmoid(x)


@hinted
def softplus(input: Any, beta: Any = 1.0) -> Any:
    """Return log(1 + exp(beta x)) / beta.

    Args:
        input: an array.
        beta: how sharp the bend at zero is, more than 0.

    Returns:
        A Tensor of the shape and dtype of `input`.

    Raises:
        UsageError: `beta` is not positive; where that is not known, under `jit`, the result is NaN.

    >>> softplus(1000.0)
    tensor(1000.)
    """
    x: Any = as_floats(as_real("softplus", input))
    if type(beta) is float and beta == 1:
        return np.logaddexp(x, 0)
    sharp = positive("softplus", "beta", as_slope("softplus", "beta", beta, x.shape), zero=False)
    return np.logaddexp(sharp * x, 0) / sharp


@hinted
def mish(input: Any) -> Any:
    """Return x tanh(log(1 + exp(x))) (Misra, *Mish*, 2019).

    Args:
        input: an array.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> mish(0.0)
    tensor(0.)
    """
    x: Any = as_floats(as_real("mish", input))
    return x * np.tanh(softplus(x))


@hinted
def gelu(input: Any, approximate: str = "none") -> Any:
    """Return x times the normal distribution function of x (Hendrycks and Gimpel, *Gaussian error linear units*, 2016).

    Args:
        input: an array.
        approximate: "tanh" for the approximation of that paper.

    Returns:
        A Tensor of the shape and dtype of `input`.

    Raises:
        UsageError: the approximation is unknown.

    >>> gelu(0.0)
    tensor(0.)
    """
    x: Any = as_real("gelu", input)
    if approximate == "tanh":
        near = np.clip(x, -SATURATED, SATURATED)
        return x * sigmoid(math.sqrt(8 / math.pi) * near * (1 + 0.044715 * (near * near)))  # (1 + tanh) / 2 of half
    if approximate != "none":
        raise UsageError("gelu", f"approximate={approximate!r}", "'none' or 'tanh' is needed", "Leave it out")
    return 0.5 * x * special.erfc(x * -math.sqrt(0.5))


def normalise_along(normalise: Callable[..., Any], general: Callable[..., Any], input: Any, axis: Any) -> Any:
    """Return the softmax, or its logarithm, of an array along one axis in one pass, or along several as SciPy does."""
    x = as_tensor(input)
    rank = x.ndim
    if type(axis) is int and -rank <= axis < rank:
        return normalise(x, {"axis": axis % rank, "quick": True})
    return general(x, axis)


@hinted
def log_softmax(input: Any, axis: int = -1) -> Any:
    """Return the logarithms of exp(x) divided by their sum along an axis.

    Args:
        input: an array.
        axis: the axis.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> log_softmax([0.0, 0.0])
    tensor([-0.69314718, -0.69314718])
    """
    return normalise_along(_special.normalise_log, _special.log_softmax, input, axis)


@hinted
def softmax(input: Any, axis: int = -1) -> Any:
    """Return exp(x) divided by their sum along an axis.

    Args:
        input: an array.
        axis: the axis.

    Returns:
        A Tensor of the shape and dtype of `input`.

    >>> softmax([0.0, 0.0])
    tensor([0.5, 0.5])
    """
    return normalise_along(_special.normalise, _special.softmax, input, axis)
