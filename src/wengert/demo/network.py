"""The network, one hidden layer, and its training, written with the tape API as a user would write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import wengert as wg
from wengert.demo.digits import Array, Digits

PIXELS, HIDDEN, CLASSES = 64, 128, 10


class Network:
    """Map images to scores of the ten digits: a linear map, a rectifier, a linear map."""

    def __init__(self, random: np.random.Generator) -> None:
        self.parameters = [
            wg.tensor(random.normal(0, np.sqrt(2 / PIXELS), (PIXELS, HIDDEN)), requires_grad=True),
            wg.tensor(np.zeros(HIDDEN), requires_grad=True),
            wg.tensor(random.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, CLASSES)), requires_grad=True),
            wg.tensor(np.zeros(CLASSES), requires_grad=True),
        ]

    def __call__(self, images: Array) -> wg.Tensor:
        """Return the scores, of shape (n, 10), of images of shape (n, 64)."""
        weights, bias, weights_out, bias_out = self.parameters
        hidden: wg.Tensor = np.maximum(images @ weights + bias, 0)
        return hidden @ weights_out + bias_out

    def classify(self, images: Array) -> Array:
        """Return the digit with the highest score for each image."""
        with wg.no_grad():
            answers: Array = self(images).numpy().argmax(axis=1)
        return answers


def cross_entropy(scores: wg.Tensor, labels: Array) -> wg.Tensor:
    """Return the summed negative logarithms of the probabilities that scores give to the right labels."""
    scores = scores - scores.detach().max(axis=1, keepdims=True)
    normalisers: wg.Tensor = np.log(np.exp(scores).sum(axis=1))
    return (normalisers - scores[np.arange(len(labels)), labels]).sum()


class Adam:
    """Follow gradients with steps scaled by running means of the gradient and of its square.

    D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015, algorithm 1.
    """

    def __init__(self, parameters: list[wg.Tensor], rate: float = 4e-3) -> None:
        self.parameters, self.rate, self.steps = parameters, rate, 0
        self.means: list[Any] = [0.0] * len(parameters)
        self.squares: list[Any] = [0.0] * len(parameters)

    @wg.no_grad()
    def step(self) -> None:
        """Move each parameter against its `.grad`, and clear that."""
        self.steps += 1
        for i, parameter in enumerate(self.parameters):
            gradient = parameter.grad
            assert gradient is not None  # every parameter takes part in every loss
            self.means[i] = 0.9 * self.means[i] + 0.1 * gradient
            self.squares[i] = 0.999 * self.squares[i] + 0.001 * gradient**2
            mean = self.means[i] / (1 - 0.9**self.steps)
            square = self.squares[i] / (1 - 0.999**self.steps)
            parameter -= self.rate * mean / (np.sqrt(square) + 1e-8)
            parameter.grad = None


BATCH = 64
MICRO_BATCH = 32
NOISE = 0.15  # standard deviation of what is added to pixels, so that images are not learned by heart


Loss = Callable[[Array, Array], wg.Tensor]
"""The summed loss of a network for images and their labels."""


def epoch_losses(
    network: Network, data: Digits, epochs: int, random: np.random.Generator, jit: bool = False
) -> Iterator[float]:
    """Train a network, yielding the mean loss of each pass over the images.

    With `jit` the loss and its gradient are traced once, and run as graphs.
    """

    def loss(images: Array, labels: Array) -> wg.Tensor:
        return cross_entropy(network(images), labels)

    optimizer = Adam(network.parameters)
    step = partial(train_batch, wg.jit(loss) if jit else loss, optimizer, data, random)
    for _ in range(epochs):
        order = random.permutation(len(data.labels))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        yield sum(map(step, batches)) / len(order)


def train_batch(loss_of: Loss, optimizer: Adam, data: Digits, random: np.random.Generator, batch: Array) -> float:
    """Take one step for a batch of images, given by their positions; return the summed loss before it."""
    total = 0.0
    for start in range(0, len(batch), MICRO_BATCH):
        part = batch[start : start + MICRO_BATCH]
        images = data.images[part] + random.normal(0, NOISE, (len(part), data.images.shape[1]))
        loss = loss_of(images, data.labels[part])
        (loss / len(batch)).backward()  # adds to the gradients of the micro-batches before it
        total += loss.item()
    optimizer.step()
    return total
