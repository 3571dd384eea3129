"""Activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.core.dispatch import as_tensor
from wengert.errors import UsageError, describe
from wengert.scipy import special

__all__ = ["elu", "gelu", "leaky_relu", "log_softmax", "relu", "sigmoid", "silu", "softmax", "softplus"]


def relu(input: Any) -> Any:
    """Return what is positive, and 0 for the rest, where its derivative is 0, too.

    >>> relu([-1.0, 2.0])
    tensor([0., 2.])
    """
    x: Any = as_tensor(input)
    return np.where(x > 0, x, 0)


def leaky_relu(input: Any, negative_slope: Any = 0.01) -> Any:
    """Return what is positive, and the rest times a slope.

    >>> leaky_relu([-1.0, 2.0])
    tensor([-0.01,  2.  ])
    """
    x: Any = as_tensor(input)
    return np.where(x > 0, x, negative_slope * x)


def elu(input: Any, alpha: Any = 1.0) -> Any:
    """Return what is positive, and alpha (exp(x) - 1) for the rest.

    >>> elu([0.0, 2.0])
    tensor([0., 2.])
    """
    x: Any = as_tensor(input)
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def sigmoid(input: Any) -> Any:
    """Return 1 / (1 + exp(-x)).

    >>> sigmoid(0.0)
    tensor(0.5)
    """
    x: Any = as_tensor(input)
    return 0.5 * (1 + np.tanh(0.5 * x))


def silu(input: Any) -> Any:
    """Return x times its sigmoid.

    >>> silu(0.0)
    tensor(0.)
    """
    x: Any = as_tensor(input)
    return x * sigmoid(x)


def softplus(input: Any, beta: Any = 1.0) -> Any:
    """Return log(1 + exp(beta x)) / beta.

    >>> softplus(1000.0)
    tensor(1000.)
    """
    x: Any = as_tensor(input)
    return np.logaddexp(x, 0) if type(beta) is float and beta == 1 else np.logaddexp(beta * x, 0) / beta


def gelu(input: Any, approximate: str = "none") -> Any:
    """Return x times the normal distribution function of x (Hendrycks and Gimpel, *Gaussian error linear units*, 2016).

    Args:
        input: an array.
        approximate: "tanh" for the approximation of that paper.

    Raises:
        UsageError: the approximation is unknown.

    >>> gelu(0.0)
    tensor(0.)
    """
    x: Any = as_tensor(input)
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    if approximate != "none":
        given = f"approximate={approximate!r}"
        raise UsageError(describe("gelu", given, "'none' or 'tanh' is needed", "Leave it out"))
    return 0.5 * x * (1 + special.erf(x * math.sqrt(0.5)))


def log_softmax(input: Any, axis: int = -1) -> Any:
    """Return the logarithms of exp(x) divided by their sum along an axis.

    >>> log_softmax([0.0, 0.0])
    tensor([-0.69314718, -0.69314718])
    """
    return special.log_softmax(as_tensor(input), axis=axis)


def softmax(input: Any, axis: int = -1) -> Any:
    """Return exp(x) divided by their sum along an axis.

    >>> softmax([0.0, 0.0])
    tensor([0.5, 0.5])
    """
    return special.softmax(as_tensor(input), axis=axis)
