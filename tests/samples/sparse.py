"""Samples of products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import Sample, fixed, normal, sample
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import sparse_product

STARTS, PLACES = fixed(np.array([0, 2, 2, 5], np.int32)), fixed(np.array([0, 3, 0, 1, 2], np.int32))


def multiplied(x: Any, numbers: Any, places: Any, starts: Any, format: str) -> Any:
    """Multiply a matrix of three rows, or columns, by an array."""
    shape = (3, 4) if format == "csr" else (4, 3)
    return apply(sparse_product, x, numbers, places, starts, shape=shape, format=format)


def of(x: Any, format: str) -> Sample:
    """Return the sample of a matrix in a format."""
    return sample("sparse_product", multiplied, x, fixed(normal(5)), PLACES, STARTS, format=format)


SAMPLES = [
    of(normal(4), "csr"),
    of(normal(3), "csc"),
    of(normal(4, 2), "csr"),
    of(normal(4, 2) + 1j * normal(4, 2, seed=1), "csr"),
    of(np.asfortranarray(normal(3, 2)), "csc"),
    of(normal(4).astype(np.float32), "csr"),
]
