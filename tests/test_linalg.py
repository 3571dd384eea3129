"""Linear algebra: what single samples do not show."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.testing import check_grads


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


RANKS = [(1, 0), (2, 1), (3, 3), (3, 2), (3, 1), (3, 0), (4, 3), (4, 2), (4, 1)]


@pytest.mark.parametrize(("size", "rank"), RANKS)
def test_determinants_have_derivatives_of_every_order_at_matrices_of_every_rank(size: int, rank: int) -> None:
    rng = np.random.default_rng(size)
    a = rng.normal(size=(size, rank)) @ rng.normal(size=(rank, size))
    check_grads(np.linalg.det, (a,), order=3, modes=("rev", "fwd"))
    hessian = wg.hessian(np.linalg.det)
    np.testing.assert_allclose(wg.jit(hessian)(a), hessian(a), atol=1e-14)
    np.testing.assert_allclose(wg.vmap(hessian)(np.stack([a, np.eye(size)]))[0], hessian(a), atol=1e-14)


def test_determinants_of_nearly_singular_matrices_lose_nothing() -> None:
    a = np.arange(1.0, 10.0).reshape(3, 3)  # singular, but its determinant comes out as 6.7e-16
    third = wg.hessian(np.linalg.det)(a)[0, 0]
    np.testing.assert_allclose(third, [[0, 0, 0], [0, 9, -8], [0, -6, 5]], atol=1e-13)


def test_determinants_of_what_is_not_finite_are_no_error_in_other_lanes() -> None:
    with np.errstate(invalid="ignore"):
        found = wg.vmap(wg.hessian(np.linalg.det))(np.stack([np.full((2, 2), np.nan), np.zeros((2, 2))]))
    assert np.isnan(found[0]).all()
    assert found[1].ravel()[[3, 6, 9, 12]].tolist() == [1.0, -1.0, -1.0, 1.0]
