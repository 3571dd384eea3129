"""Linear algebra: what single samples do not show."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import wengert.numpy as wnp


@pytest.mark.parametrize("count", [3, 4, 7, 120])
def test_multi_dot_multiplies_in_numpys_order_however_many_factors(count: int) -> None:
    rng = np.random.default_rng(count)
    lengths = rng.integers(1, 6, count + 1)
    factors = [rng.standard_normal(shape) for shape in pairwise(lengths)]
    np.testing.assert_array_equal(wnp.linalg.multi_dot(factors).numpy(), np.linalg.multi_dot(factors))


def test_slogdet_gives_a_named_tuple_as_numpy_does() -> None:
    found, expected = wnp.linalg.slogdet(np.diag([2.0, -3.0])), np.linalg.slogdet(np.diag([2.0, -3.0]))
    assert type(found) is type(expected)
    assert (float(found.sign), float(found.logabsdet)) == (float(expected.sign), float(expected.logabsdet))
