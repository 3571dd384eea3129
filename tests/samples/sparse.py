"""Samples of products with sparse matrices, and of products that are sampled where one has elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tests.samples.base import Sample, normal, sample
from wengert.core.values.dispatch import apply
from wengert.primitives.sparse.products import sampled_product, sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern, pattern_of

FULL = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 4.0, 0.0, 5.0]])


def pattern(format: str) -> StoragePattern:
    """Return the pattern of a matrix of three rows and four columns, one row empty."""
    return pattern_of(scipy.sparse.csr_array(FULL).asformat(format))


def multiplied(data: Any, x: Any, format: str, transposed: bool) -> Any:
    """Multiply a matrix of three rows, or columns, by an array."""
    return apply(sparse_product, data, x, pattern=pattern(format), transposed=transposed)


def sampled(left: Any, right: Any, format: str) -> Any:
    """Multiply two arrays where a matrix has elements."""
    return apply(sampled_product, left, right, pattern=pattern(format))


def product_of(x: Any, format: str = "csr", transposed: bool = False, dtype: Any = float) -> Sample:
    """Return the sample of a product of a matrix in a format."""
    data = normal(*pattern(format).data_shape).astype(dtype)
    return sample("sparse_product", multiplied, data, x, format=format, transposed=transposed)


SAMPLES = [
    product_of(normal(4)),
    product_of(normal(3), transposed=True),
    product_of(normal(4, 2)),
    product_of(normal(4, 2) + 1j * normal(4, 2, seed=1), dtype=complex),
    product_of(np.asfortranarray(normal(3, 2)), "csc", transposed=True),
    product_of(normal(4).astype(np.float32), dtype=np.float32),
    product_of(normal(4), "coo"),
    product_of(normal(4), "dia"),
    product_of(normal(3, 2), "dia", transposed=True),
    product_of(normal(4), "bsr"),
    sample("sampled_product", sampled, normal(3), normal(4), format="csr"),
    sample("sampled_product", sampled, normal(3, 2), normal(4, 2), format="csc"),
    sample("sampled_product", sampled, normal(3), normal(4), format="dia"),
    sample("sampled_product", sampled, normal(3) + 1j, normal(4) - 2j, format="coo"),
]
