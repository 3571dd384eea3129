"""Distances between points: SciPy's values, and gradients by the points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.spatial.distance

import wengert as wg
from wengert.errors import ShapeError, UsageError
from wengert.scipy.spatial import distance
from wengert.testing import check_grads

RNG = np.random.default_rng(0)
A, B, W = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3)), RNG.uniform(size=3)
METRICS = (
    *("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "cosine", "correlation", "canberra"),
    *("braycurtis", "hamming"),
)
CALLS = [
    *((metric, {}) for metric in (*METRICS, "seuclidean", "mahalanobis")),
    *((metric, {"w": W}) for metric in METRICS),
    *[("minkowski", {"p": 3}), ("seuclidean", {"V": W}), ("mahalanobis", {"VI": np.diag(W)})],
    (lambda u, v: np.sum(np.abs(u - v)), {}),
]


@pytest.mark.parametrize(("metric", "options"), CALLS)
def test_distances_are_scipys(metric, options) -> None:
    want = scipy.spatial.distance.cdist(A, B, metric, **options)
    np.testing.assert_allclose(distance.cdist(A, B, metric, **options), want, rtol=1e-12)
    want = scipy.spatial.distance.pdist(B, metric, **options)
    np.testing.assert_allclose(distance.pdist(B, metric, **options), want, rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "canberra", "minkowski", "seuclidean"])
def test_gradients(metric: str) -> None:
    check_grads(lambda x, y: distance.cdist(x, y, metric), (A[:2], B[:2]), order=2)


def test_distances_of_equal_points_have_the_derivative_zero() -> None:
    gradient = wg.grad(lambda x: np.sum(distance.cdist(x, x)))(A)
    assert np.all(np.isfinite(gradient))


def test_distances_as_a_matrix() -> None:
    row = scipy.spatial.distance.pdist(B)
    matrix = distance.squareform(row)
    np.testing.assert_array_equal(matrix, scipy.spatial.distance.squareform(row))
    np.testing.assert_array_equal(distance.squareform(matrix), row)


def test_errors() -> None:
    with pytest.raises(UsageError, match=r"cdist: metric 'far'; one of euclidean, .* is needed\. Or pass a function\."):
        distance.cdist(A, B, "far")
    with pytest.raises(ShapeError) as caught:
        distance.cdist(A, B[:, :2])
    assert str(caught.value) == ("cdist: points with 3 and 2 coordinates; as many are needed. Correct one of the sets.")
    with pytest.raises(ShapeError) as caught:
        distance.pdist(W)
    assert str(caught.value) == "pdist: points of shape (3,); rows, one a point, are needed. Reshape them."
