"""Training: shuffled batches, each in micro-batches whose gradients add up before one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import wengert as wg
from wengert.demo.digits import Array, Digits
from wengert.demo.network import Adam, Network, cross_entropy

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
