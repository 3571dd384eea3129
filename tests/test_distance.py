"""Distances between points: SciPy's values, and gradients by the points."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.spatial.distance

import wengert as wg
from tests.cases import together
from wengert.errors import ShapeError, UsageError
from wengert.scipy.spatial import distance
from wengert.support.hints import names_left_out
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


@together("metric, options", CALLS)
def test_distances_are_scipys(metric, options) -> None:
    want = scipy.spatial.distance.cdist(A, B, metric, **options)
    np.testing.assert_allclose(distance.cdist(A, B, metric, **options), want, rtol=1e-12)
    want = scipy.spatial.distance.pdist(B, metric, **options)
    np.testing.assert_allclose(distance.pdist(B, metric, **options), want, rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "canberra", "minkowski", "seuclidean"])
def test_gradients(metric: str) -> None:
    check_grads(lambda x, y: distance.cdist(x, y, metric), (A[:2], B[:2]), order=2)


def test_distances_of_two_points_are_scipys() -> None:
    calls = [
        *((metric, (), {}) for metric in METRICS),
        *((metric, (), {"w": W}) for metric in METRICS),
        *[("minkowski", (3,), {}), ("correlation", (None, False), {}), ("seuclidean", (W,), {})],
        *[("mahalanobis", (np.diag(W),), {}), ("hamming", (list(W),), {})],
    ]
    for name, options, more in calls:
        want = getattr(scipy.spatial.distance, name)(A[0], B[1], *options, **more)
        found = getattr(distance, name)(A[0], list(B[1]), *options, **more)
        assert type(found) is wg.Tensor
        np.testing.assert_allclose(found, want, rtol=1e-12, err_msg=name)
        if name != "hamming":
            check_grads(lambda x, y, n=name, o=options, m=more: getattr(distance, n)(x, y, *o, **m), (A[0], B[1]))
    p, q = np.abs(A), np.abs(B[:4])
    for more in ({}, {"base": 2.0}, {"axis": 1}, {"axis": 1, "keepdims": True}):
        want = scipy.spatial.distance.jensenshannon(p, q, **more)
        np.testing.assert_allclose(distance.jensenshannon(p, q, **more), want, rtol=1e-12)
        check_grads(lambda p, q, m=more: distance.jensenshannon(p, q, **m), (p, q))
    for call in (distance.euclidean, distance.jensenshannon, lambda u, v: distance.mahalanobis(u, v, np.eye(3))):
        np.testing.assert_array_equal(wg.grad(call)(p[0], p[0]), np.zeros(3))
    with pytest.raises(ShapeError) as caught:
        distance.cosine(A, B)
    assert str(caught.value) == (
        "cosine: points of shapes (4, 3) and (5, 3); rows of as many coordinates are needed. Use cdist for several."
    )


@pytest.mark.parametrize("module", ["integrate", "ndimage", "signal", "spatial", "spatial.distance"])
def test_every_name_of_scipy_is_there_or_left_out_for_a_reason(module: str) -> None:
    scipys, ours = (importlib.import_module(f"{base}.{module}") for base in ("scipy", "wengert.scipy"))
    hidden = {"CDistMetricWrapper", "MetricInfo", "PDistMetricWrapper", "Callable", "dataclasses", "math", "norm"}
    hidden |= {"np", "partial", "rel_entr", "warnings", "xpx"}  # of `distance`, which has no list for `dir`
    names = {name for name in dir(scipys) if not name.startswith("_")} - hidden
    left_out = names_left_out(f"scipy.{module}")
    assert names - set(ours.__all__) - set(left_out) == set()
    assert not set(ours.__all__) & set(left_out)
    for name, reason in left_out.items():
        with pytest.raises(AttributeError) as caught:
            getattr(ours, name)
        assert str(caught.value) == f"scipy.{module}.{name} has no derivative in Wengert; {reason}."


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


@pytest.mark.parametrize("p", [0, -1.0])
def test_orders_of_minkowski_are_above_0(p: float) -> None:
    with pytest.raises(ValueError, match=f"minkowski: p={p}; an order above 0 is needed"):
        distance.minkowski([1.0, 2.0], [0.0, 1.0], p)
    with pytest.raises(ValueError, match="an order above 0"):
        distance.cdist(np.eye(2), np.eye(2), "minkowski", p=p)
