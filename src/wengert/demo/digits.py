"""The data: handwritten digits of 8x8 pixels, and how they are divided.

E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998,
https://doi.org/10.24432/C50P49, CC BY 4.0.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]
WHITE = 16  # the value of a pixel that ink covers wholly
TESTED = 360  # images that are kept for the test


class Digits(NamedTuple):
    """Hold images with what they show.

    Attributes:
        images: shape (n, 64), from 0 (paper) to 1 (ink).
        labels: shape (n,), whole numbers from 0 to 9.
    """

    images: Array
    labels: Array


def load() -> tuple[Digits, Digits]:
    """Return the images to train on and those to test with.

    >>> train, test = load()
    >>> train.images.shape, test.images.shape
    ((1437, 64), (360, 64))
    """
    with files("wengert.demo").joinpath("data", "digits.npz").open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        images, labels = stored["images"].reshape(-1, 64) / WHITE, stored["labels"].astype(np.int64)
    order = np.random.RandomState(0).permutation(len(labels))  # NumPy keeps this generator's numbers for ever
    test, train = order[:TESTED], order[TESTED:]
    return Digits(images[train], labels[train]), Digits(images[test], labels[test])
