"""Digits: a small convolutional network learns to read handwriting.

Images of 8x8 pixels pass through kernels of 3x3 pixels, a rectifier and the greatest of 2x2 neighbours, twice, and a
linear map gives the logits z of the ten digits. The loss for an image of digit y is the cross-entropy log sum_j
exp(z_j) - z_y; Adam follows its gradient over shuffled batches, with a rate that goes down as half a cosine.

Source: Y. LeCun et al., Gradient-based learning applied to document recognition, Proceedings of the IEEE 86, 1998.
Data: E. Alpaydin and C. Kaynak, Optical recognition of handwritten digits, UCI Machine Learning Repository, 1998, which
the library's demonstration has, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, Integers, command, figure
from wengert import optim, random
from wengert.demo.digits import load
from wengert.nn import functional


class Result(NamedTuple):
    """Hold how well it reads."""

    accuracy: float  # the share of test images that are read right
    losses: Array  # shape (steps,), the mean loss of each batch
    kernels: Array  # shape (channels, 3, 3), of the first layer
    mistakes: Array  # shape (n, 8, 8), the test images that are read wrong
    labels: Integers  # shape (n,), what they show
    answers: Integers  # shape (n,), what they were taken for


def started(key: Any, channels: int) -> dict[str, Any]:
    """Return parameters to begin with, of variance 2 / inputs (He et al., 2015)."""
    keys = random.split(key, 3)
    return {
        "first": random.normal(keys[0], 0.0, (2 / 9) ** 0.5, (channels, 1, 3, 3)),
        "second": random.normal(keys[1], 0.0, (2 / (9 * channels)) ** 0.5, (2 * channels, channels, 3, 3)),
        "linear": random.normal(keys[2], 0.0, (1 / (8 * channels)) ** 0.5, (8 * channels, 10)),
        "biases": [np.zeros(channels), np.zeros(2 * channels), np.zeros(10)],
    }


def logits(parameters: dict[str, Any], images: Any) -> Any:
    """Return the logits of images of shape (n, 1, 8, 8)."""
    x, biases = images, parameters["biases"]
    for kernels, bias in ((parameters["first"], biases[0]), (parameters["second"], biases[1])):
        x = functional.relu(functional.conv2d(x, kernels, bias, padding=1))
        x = functional.max_pool2d(x, 2)
    return x.reshape(len(x), -1) @ parameters["linear"] + biases[2]


def loss(parameters: dict[str, Any], images: Array, labels: Integers) -> Any:
    """Return the mean loss of a batch."""
    return functional.cross_entropy(logits(parameters, images), labels)


def main(channels: int = 8, epochs: int = 20, batch: int = 64, seed: int = 0) -> Result:
    """Train on 1,437 images, and test with 360 others."""
    train, test = load()
    images = train.images.reshape(-1, 1, 8, 8)
    parameters = started(random.key(seed), channels)
    count = len(images) // batch * batch
    init, update = optim.adam(optim.cosine(0.01, epochs * count // batch))

    @wg.jit
    def step(parameters: Any, state: Any, images: Array, labels: Integers) -> Any:
        value, gradient = wg.value_and_grad(loss)(parameters, images, labels)
        return value, *update(gradient, state, parameters)

    order = np.random.default_rng(seed)
    state, losses = init(parameters), []
    for _ in range(epochs):
        for rows in order.permutation(len(images))[:count].reshape(-1, batch):
            value, parameters, state = step(parameters, state, images[rows], train.labels[rows])
            losses.append(float(value))
    answers = np.argmax(logits(parameters, test.images.reshape(-1, 1, 8, 8)).numpy(), axis=1)
    wrong = answers != test.labels
    return Result(
        float(1 - np.mean(wrong)),
        np.array(losses),
        np.array(parameters["first"])[:, 0],
        test.images[wrong].reshape(-1, 8, 8),
        test.labels[wrong],
        answers[wrong],
    )


def draw(result: Result) -> object:
    """Draw the loss, the kernels of the first layer, and some mistakes."""
    drawn, axes = figure(1, 3)
    axes[0].semilogy(result.losses, linewidth=0.8)
    axes[0].set(xlabel="step", ylabel="loss")
    axes[1].imshow(np.hstack([np.pad(k, 1, constant_values=np.nan) for k in result.kernels[:4]]), cmap="coolwarm")
    axes[1].set_title("kernels")
    shown = [np.pad(image, 1, constant_values=np.nan) for image in result.mistakes[:4]]
    axes[2].imshow(np.hstack(shown or [np.zeros((8, 8))]), cmap="gray_r")
    named = zip(result.labels[:4], result.answers[:4], strict=True)
    axes[2].set_title("mistakes: " + ", ".join(f"{label} taken for {answer}" for label, answer in named), fontsize=8)
    for ax in axes[1:]:
        ax.axis("off")
    return drawn


if __name__ == "__main__":
    command(main, draw)
