"""Logistic regression of many classes: the answer of scikit-learn, by writing the loss down.

The logits of an image x are W x + b, a row of W and an element of b for each of ten digits; what is minimised is the
cross-entropy of all images and a penalty for large weights,

    sum_i (log sum_j exp(z_ij) - z_(i y_i)) + |W|^2 / (2 C),   z_i = W x_i + b.

It is convex, so that all who find the minimum agree: L-BFGS with gradients of ours, and scikit-learn's
`LogisticRegression(C=0.1)` on the same images, whose loss is 897.8365. The Hessian would have 650 rows; its product
with a vector costs twice a gradient, and the method Newton-CG, which needs no more, finds the same.

Source: C. M. Bishop, Pattern recognition and machine learning, 2006, section 4.3.4; D. C. Liu and J. Nocedal, On the
limited memory BFGS method, Mathematical programming 45, 1989.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from examples._program import Array, Integers, command, figure
from wengert import optim
from wengert.demo.digits import load
from wengert.scipy.special import logsumexp


class Model(NamedTuple):
    """Hold the parameters."""

    weights: Array  # shape (10, pixels)
    biases: Array  # shape (10,)


class Result(NamedTuple):
    """Hold what was found."""

    model: Model  # the parameters
    loss: float  # at the minimum
    largest_slope: float  # the greatest element of the gradient there
    accuracy: float  # the share of other images that are read right
    losses: Array  # shape (iterations,), on the way


def logits(model: Model, images: Array) -> Any:
    """Return the logits, of shape (n, 10)."""
    return images @ model.weights.T + model.biases


def loss(model: Model, images: Array, labels: Integers, c: float) -> Any:
    """Return the cross-entropy with the penalty."""
    z = logits(model, images)
    return np.sum(logsumexp(z, axis=1) - z[np.arange(len(labels)), labels]) + np.sum(model.weights**2) / (2 * c)


def main(images: int = 1437, c: float = 0.1, newton: int = 0) -> Result:
    """Train on some images, with L-BFGS or Newton's method, and test with 360 others."""
    train, test = load()
    x, y = train.images[:images], train.labels[:images]
    losses: list[float] = []
    found = optim.minimize(
        loss,
        Model(np.zeros((10, 64)), np.zeros(10)),
        (x, y, c),
        method="Newton-CG" if newton else "L-BFGS-B",
        callback=lambda intermediate_result: losses.append(float(intermediate_result.fun)),
        options={} if newton else {"ftol": 0.0, "gtol": 1e-6, "maxiter": 1000},
    )
    slope = max(float(np.max(np.abs(part))) for part in found.jac)
    accuracy = float(np.mean(np.argmax(logits(found.x, test.images), axis=1) == test.labels))
    return Result(found.x, float(found.fun), slope, accuracy, np.array(losses))


def draw(result: Result) -> object:
    """Draw the weights of each digit, and the loss."""
    drawn, (left, right) = figure(1, 2)
    digits = result.model.weights.reshape(2, 5, 8, 8)
    left.imshow(np.swapaxes(digits, 1, 2).reshape(16, 40), cmap="coolwarm")
    left.set_title("weights of the digits 0 to 9")
    left.axis("off")
    right.semilogy(result.losses - result.loss + 1e-12)
    right.set(xlabel="iteration", ylabel="loss above the minimum", ylim=(1e-9, None))
    return drawn


if __name__ == "__main__":
    command(main, draw)
