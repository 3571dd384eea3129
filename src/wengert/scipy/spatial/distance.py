"""Distances between points with SciPy's names and signatures: `wengert.scipy.spatial.distance`.

The derivative of a distance between points at the same place is 0, as that of a norm at 0 is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError, describe

__all__ = ["cdist", "pdist", "squareform"]

Metric = Callable[[Any, Any], Any]


def weighted(x: Any, w: Any) -> Any:
    """Return terms times their weights, if there are some."""
    return x if w is None else x * w


def euclidean(x: Any, y: Any, w: Any = None) -> Any:
    return np.linalg.norm(weighted(x - y, None if w is None else np.sqrt(w)), axis=-1)


def sqeuclidean(x: Any, y: Any, w: Any = None) -> Any:
    return np.sum(weighted((x - y) ** 2, w), axis=-1)


def cityblock(x: Any, y: Any, w: Any = None) -> Any:
    return np.sum(weighted(np.abs(x - y), w), axis=-1)


def chebyshev(x: Any, y: Any, w: Any = None) -> Any:
    difference = np.abs(x - y)
    return np.max(difference if w is None else np.where(np.asarray(w) > 0, difference, 0.0), axis=-1)


def minkowski(x: Any, y: Any, p: Any = 2, w: Any = None) -> Any:
    difference = x - y if w is None else (x - y) * w ** (1 / p)
    return np.linalg.norm(difference, ord=p, axis=-1)


def cosine(x: Any, y: Any, w: Any = None) -> Any:
    """Return 1 less the cosine of the angle."""
    size = np.sqrt(np.sum(weighted(x * x, w), axis=-1) * np.sum(weighted(y * y, w), axis=-1))
    return 1.0 - np.sum(weighted(x * y, w), axis=-1) / size


def correlation(x: Any, y: Any, w: Any = None) -> Any:
    """Return 1 less the correlation of the coordinates."""
    share = None if w is None else w / np.sum(w)

    def centered(z: Any) -> Any:
        center = np.mean(z, axis=-1) if share is None else np.sum(z * share, axis=-1)
        return z - center[..., None]

    return cosine(centered(x), centered(y), w)


def canberra(x: Any, y: Any, w: Any = None) -> Any:
    total = np.abs(x) + np.abs(y)
    return np.sum(weighted(np.where(total > 0, np.abs(x - y) / np.where(total > 0, total, 1.0), 0.0), w), axis=-1)


def braycurtis(x: Any, y: Any, w: Any = None) -> Any:
    return cityblock(x, y, w) / np.sum(weighted(np.abs(x + y), w), axis=-1)


def hamming(x: Any, y: Any, w: Any = None) -> Any:
    """Return the share of coordinates that differ; its derivative is 0."""
    share = weighted((x != y) * 1.0, w)
    return np.mean(share, axis=-1) if w is None else np.sum(share, axis=-1) / np.sum(w)


METRICS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(euclidean, sqeuclidean, cityblock, chebyshev, minkowski, cosine, correlation, canberra),
        *(braycurtis, hamming),
    )
}


def metric_of(name: str, metric: Any, points: Any, options: dict[str, Any]) -> Metric:
    """Return the distance between arrays of points by the name and options of a metric.

    `points` are all of them, whose variances and covariance are those of "seuclidean" and "mahalanobis".
    """
    if callable(metric):
        return lambda x, y: np.vectorize(lambda u, v: metric(u, v, **options), signature="(n),(n)->()")(x, y)
    if metric == "seuclidean":
        variance = options.get("V")
        scale = np.var(points, axis=0, ddof=1) if variance is None else as_tensor(variance)
        return lambda x, y: euclidean(x / np.sqrt(scale), y / np.sqrt(scale))
    if metric == "mahalanobis":
        inverse = options.get("VI")
        matrix = np.linalg.inv(np.atleast_2d(np.cov(points.T))).T if inverse is None else as_tensor(inverse)
        return lambda x, y: np.sqrt(np.sum(((x - y) @ matrix) * (x - y), axis=-1))
    if metric not in METRICS:
        known = ", ".join([*METRICS, "seuclidean", "mahalanobis"])
        raise UsageError(describe(name, f"metric {metric!r}", f"one of {known} is needed", "Or pass a function"))
    return lambda x, y: METRICS[metric](x, y, **options)


def points_of(name: str, value: Any) -> Any:
    """Return points as rows of floats."""
    x: Any = as_tensor(value)
    if x.ndim != 2:
        raise ShapeError(describe(name, f"points of shape {x.shape}", "rows, one a point, are needed", "Reshape them"))
    return x if x.dtype.kind == "f" else x.astype(float)


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:  # noqa: N803 - SciPy's names
    """Return the distances of each point of one set from each of another; see `scipy.spatial.distance.cdist`.

    Args:
        XA: points, as rows.
        XB: other points.
        metric: the name of a metric, or a function of two points.
        out: not supported.
        **kwargs: options of the metric.

    Returns:
        A matrix with a row for each point of XA.

    Raises:
        ShapeError: the points are no rows of equal length.
        UsageError: the metric is unknown, or `out` is given.

    >>> cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]])
    tensor([[5., 1.]])
    """
    x, y = points_of("cdist", XA), points_of("cdist", XB)
    require_equal(x, y)
    refuse_out("cdist", out)
    distance = metric_of("cdist", metric, np.concatenate([x, y]), kwargs)
    return distance(x[:, None], y[None])


def require_equal(x: Any, y: Any) -> None:
    """Raise a ShapeError unless points have as many coordinates."""
    if x.shape[1] != y.shape[1]:
        given = f"points with {x.shape[1]} and {y.shape[1]} coordinates"
        raise ShapeError(describe("cdist", given, "as many are needed", "Correct one of the sets"))


def refuse_out(name: str, out: Any) -> None:
    """Raise a UsageError if a place for the result is given."""
    if out is not None:
        raise UsageError(describe(name, "out=", "None is needed", "Assign the result"))


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the distances between the points of a set, in one row; see `scipy.spatial.distance.pdist`.

    Args:
        X: points, as rows.
        metric: the name of a metric, or a function of two points.
        out: not supported.
        **kwargs: options of the metric.

    Raises:
        ShapeError: the points are no rows.
        UsageError: the metric is unknown, or `out` is given.

    >>> pdist([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    tensor([5.        , 1.        , 4.24264069])
    """
    x = points_of("pdist", X)
    refuse_out("pdist", out)
    first, second = np.triu_indices(x.shape[0], 1)
    return metric_of("pdist", metric, x, kwargs)(x[first], x[second])


def squareform(X: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return distances in one row as a symmetric matrix, and the other way; see `scipy.spatial.distance.squareform`.

    Args:
        X: distances as `pdist` gives them, or a square matrix, of which the upper triangle is taken.

    Raises:
        ShapeError: it is neither.

    >>> squareform([5.0, 1.0, 4.0])
    tensor([[0., 5., 1.],
            [5., 0., 4.],
            [1., 4., 0.]])
    """
    x: Any = as_tensor(X)
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        return x[np.triu_indices(x.shape[0], 1)]
    count = int(np.ceil(np.sqrt(2 * x.size)))
    if x.ndim != 1 or count * (count - 1) != 2 * x.size:
        needed = "n (n - 1) / 2 distances, or a square matrix, are needed"
        raise ShapeError(describe("squareform", f"shape {x.shape}", needed, "Correct it"))
    places = np.zeros((count, count), int)
    places[np.triu_indices(count, 1)] = np.arange(x.size)
    matrix = x[places + places.T]
    return np.where(np.eye(count, dtype=bool), 0, matrix)
