"""Distances between arrays of points, along their last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.errors import UsageError

Metric = Callable[[Any, Any], Any]


def root(square: Any) -> Any:
    """Return the square root, with the derivative 0 at 0."""
    nothing = square == 0
    return np.where(nothing, 0.0, np.sqrt(np.where(nothing, 1.0, square)))


def weigh_terms(x: Any, w: Any) -> Any:
    """Return terms times their weights, if there are some."""
    return x if w is None else x * w


def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    return np.linalg.norm(weigh_terms(u - v, None if w is None else np.sqrt(w)), axis=-1)


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(weigh_terms((u - v) ** 2, w), axis=-1)


def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(weigh_terms(np.abs(u - v), w), axis=-1)


def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    difference = np.abs(u - v)
    return np.max(difference if w is None else np.where(w > 0, difference, 0.0), axis=-1)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    if not isinstance(p, int | float | np.integer) or not p > 0:
        raise UsageError("minkowski", f"p={p!r:.40}", "an order above 0 is needed", "Pass 1 or 2, for instance")
    difference = u - v if w is None else (u - v) * (w != 0 if p == np.inf else w ** (1 / p))
    return np.linalg.norm(difference, ord=float(p), axis=-1)


def cosine(u: Any, v: Any, w: Any = None) -> Any:
    """Return 1 less the cosine of the angle."""
    size = np.sqrt(np.sum(weigh_terms(u * u, w), axis=-1) * np.sum(weigh_terms(v * v, w), axis=-1))
    return 1.0 - np.sum(weigh_terms(u * v, w), axis=-1) / size


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """Return 1 less the correlation of the coordinates."""
    if not centered:
        return cosine(u, v, w)
    share = None if w is None else w / np.sum(w)

    def moved(z: Any) -> Any:
        center = np.mean(z, axis=-1) if share is None else np.sum(z * share, axis=-1)
        return z - center[..., None]

    return cosine(moved(u), moved(v), w)


def canberra(u: Any, v: Any, w: Any = None) -> Any:
    total = np.abs(u) + np.abs(v)
    return np.sum(weigh_terms(np.where(total > 0, np.abs(u - v) / np.where(total > 0, total, 1.0), 0.0), w), axis=-1)


def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    return cityblock(u, v, w) / np.sum(weigh_terms(np.abs(u + v), w), axis=-1)


def hamming(u: Any, v: Any, w: Any = None) -> Any:
    """Return the share of coordinates that differ; its derivative is 0."""
    share = weigh_terms((u != v) * 1.0, w)
    return np.mean(share, axis=-1) if w is None else np.sum(share, axis=-1) / np.sum(w)


def seuclidean(u: Any, v: Any, V: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the distance of coordinates over their standard deviations."""
    return euclidean(u / np.sqrt(V), v / np.sqrt(V))


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the distance by the inverse of a covariance."""
    return root(np.sum(((u - v) @ VI) * (u - v), axis=-1))


METRICS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(euclidean, sqeuclidean, cityblock, chebyshev, minkowski, cosine, correlation, canberra),
        *(braycurtis, hamming, seuclidean, mahalanobis),
    )
}
