"""Samples of random words, and of what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import fixed, normal, positive, sample
from wengert.core.values.dispatch import apply
from wengert.primitives import random

KEY = np.array([1, 2], np.uint64)


def scaled_units(scale: Any) -> Any:
    """Return uniform numbers times differentiated ones."""
    return scale * apply(random.units, np.random.Philox(1).random_raw(3), dtype=np.dtype(float))


SAMPLES = [
    sample("random_words", lambda key: apply(random.words, key, 2, count=5, domain=1), fixed(KEY)),
    sample("random_units", scaled_units, normal(3)),
    sample("random_normals", lambda x: apply(random.normals, x), fixed(np.random.Philox(1).random_raw(3))),
    sample("gamma_path", lambda a, x: apply(random.gamma_path, a, x), positive(3), fixed(positive(3, seed=1)), order=0),
    sample("random_draws", lambda x: apply(random.drawn, KEY, x, method="standard_gamma"), positive(3), order=0),
]
