"""Training: shuffled batches, each in micro-batches whose gradients add up before one step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wengert.demo.digits import Array, Digits
from wengert.demo.network import Adam, Network, cross_entropy

__all__ = ["epoch_losses"]

BATCH = 64
MICRO_BATCH = 32
NOISE = 0.15  # standard deviation of what is added to pixels, so that images are not learned by heart


def epoch_losses(network: Network, data: Digits, epochs: int, random: np.random.Generator) -> Iterator[float]:
    """Train a network, yielding the mean loss of each pass over the images."""
    optimizer = Adam(network.parameters)
    for _ in range(epochs):
        order = random.permutation(len(data.labels))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        yield sum(train_batch(network, optimizer, data, batch, random) for batch in batches) / len(order)


def train_batch(network: Network, optimizer: Adam, data: Digits, batch: Array, random: np.random.Generator) -> float:
    """Take one step for a batch of images, given by their positions; return the summed loss before it."""
    total = 0.0
    for start in range(0, len(batch), MICRO_BATCH):
        part = batch[start : start + MICRO_BATCH]
        images = data.images[part] + random.normal(0, NOISE, (len(part), data.images.shape[1]))
        loss = cross_entropy(network(images), data.labels[part])
        (loss / len(batch)).backward()  # adds to the gradients of the micro-batches before it
        total += loss.item()
    optimizer.step()
    return total
