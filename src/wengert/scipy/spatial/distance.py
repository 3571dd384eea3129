"""Distances between points with SciPy's names and signatures: `wengert.scipy.spatial.distance`.

The derivative of a distance between points at the same place is 0, as that of a norm at 0 is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from wengert.core.diagnostics.argument_checks import elements, refuse_wrong, require_flag, require_real
from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError
from wengert.support.hints import names_on_demand

__all__ = [
    "braycurtis",
    "canberra",
    "cdist",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "euclidean",
    "hamming",
    "jensenshannon",
    "mahalanobis",
    "minkowski",
    "pdist",
    "seuclidean",
    "sqeuclidean",
    "squareform",
]


Metric = Callable[..., Any]
METRICS: dict[str, Metric] = {}
"""Distances between arrays of points along their last axis, by SciPy's names."""
PAIR = "[1.0, 2.0], [3.0, 2.0]"


def metric_distance(name: str, metric: Any, points: Any, options: dict[str, Any]) -> Metric:
    """Return the distance between arrays of points by the name and options of a metric.

    `points` are all of them, whose variances and covariance are those of "seuclidean" and "mahalanobis".
    """
    if callable(metric):
        return lambda x, y: np.vectorize(lambda u, v: metric(u, v, **options), signature="(n),(n)->()")(x, y)
    if metric == "seuclidean":
        variance = options.get("V")
        options = {"V": np.var(points, axis=0, ddof=1) if variance is None else as_tensor(variance)}
    if metric == "mahalanobis":
        inverse = options.get("VI")
        if inverse is None and points.shape[0] <= points.shape[1]:
            given = f"{points.shape[0]} points with {points.shape[1]} coordinates"
            needed = f"{points.shape[1] + 1} or more are needed for a covariance that has an inverse"
            raise UsageError(name, given, needed, "Pass more, or VI=")
        options = {"VI": np.linalg.inv(np.atleast_2d(np.cov(points.T))).T if inverse is None else as_tensor(inverse)}
    if metric not in METRICS:
        known = ", ".join(METRICS)
        raise UsageError(name, f"metric {metric!r}", f"one of {known} is needed", "Or pass a function")
    checked = metric_options(name, options, points.shape[-1])
    return lambda x, y: METRICS[metric](x, y, **checked)


def metric_options(name: str, options: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the options of a metric of points with so many coordinates, those with a number for each as arrays."""
    shapes = {"w": (count,), "V": (count,), "VI": (count, count)}
    found = dict(options)
    for key in shapes.keys() & options.keys():
        if options[key] is None:
            continue
        x = found[key] = as_floats(name, options[key], key)
        if x.shape != shapes[key]:
            given = f"{key} of shape {x.shape} for points with {count} coordinates"
            raise ShapeError(name, given, f"shape {shapes[key]} is needed", "Reshape it")
        known = elements(x) if key != "VI" else None
        if known is not None:
            refuse_wrong(name, key, known, np.less(known, 0), "0 or more is needed")
    return found


def as_points(name: str, value: Any) -> Any:
    """Return points as rows of floats."""
    x = as_floats(name, value)
    if x.ndim != 2:
        raise ShapeError(name, f"points of shape {x.shape}", "rows, one a point, are needed", "Reshape them")
    return x.astype(float)


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
    x, y = as_points("cdist", XA), as_points("cdist", XB)
    require_equal(x, y)
    refuse_out("cdist", out)
    distance = metric_distance("cdist", metric, np.concatenate([x, y]), kwargs)
    return distance(x[:, None], y[None])


def require_equal(x: Any, y: Any) -> None:
    """Raise a ShapeError unless points have as many coordinates."""
    if x.shape[1] != y.shape[1]:
        given = f"points with {x.shape[1]} and {y.shape[1]} coordinates"
        raise ShapeError("cdist", given, "as many are needed", "Correct one of the sets")


def refuse_out(name: str, out: Any) -> None:
    """Raise a UsageError if a place for the result is given."""
    if out is not None:
        raise UsageError(name, "out=", "None is needed", "Assign the result")


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
    x = as_points("pdist", X)
    refuse_out("pdist", out)
    first, second = np.triu_indices(x.shape[0], 1)
    return metric_distance("pdist", metric, x, kwargs)(x[first], x[second])


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:  # noqa: N803 - SciPy's name
    """Return distances in one row as a symmetric matrix, and the other way; see `scipy.spatial.distance.squareform`.

    Args:
        X: distances as `pdist` gives them, or a symmetric matrix with zeros on its diagonal.
        force: "tomatrix" or "tovector", to refuse the other way; "no" to take both.
        checks: whether it is looked whether a matrix is symmetric, and its diagonal zero, where that is known.

    Raises:
        ShapeError: it is neither.
        UsageError: the matrix is not symmetric, or distances of points to themselves are not 0.

    >>> squareform([5.0, 1.0, 4.0])
    tensor([[0., 5., 1.],
            [5., 0., 4.],
            [1., 4., 0.]])
    """
    x: Any = as_tensor(X)
    ranks = {"no": x.ndim, "tomatrix": 1, "tovector": 2}
    if force not in ranks or x.ndim != ranks[force]:
        needed = "'tomatrix' is needed for a row, 'tovector' for a matrix"
        raise UsageError("squareform", f"force={force!r:.40} for shape {x.shape}", needed, "Leave it out")
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        if checks:
            require_distances(x)
        return x[np.triu_indices(x.shape[0], 1)]
    count = max(int(np.ceil(np.sqrt(2 * x.size))), 1)
    if x.ndim != 1 or count * (count - 1) != 2 * x.size:
        needed = "n (n - 1) / 2 distances, or a square matrix, are needed"
        raise ShapeError("squareform", f"shape {x.shape}", needed, "Correct it")
    places = np.zeros((count, count), int)
    places[np.triu_indices(count, 1)] = np.arange(x.size)
    if not x.size:
        return as_tensor(np.zeros((1, 1), x.dtype))
    matrix = x[places + places.T]
    return np.where(np.eye(count, dtype=bool), np.zeros((), x.dtype), matrix)


def require_distances(x: Any) -> None:
    """Raise a UsageError unless a matrix is one of distances, where its elements are known."""
    known = elements(x)
    if known is not None and not (np.array_equal(known, known.T) and not np.any(np.diagonal(known))):
        needed = "a symmetric one with zeros on its diagonal is needed"
        action = "Pass (x + x.T) / 2 if rounding is all it lacks, or checks=False"
        raise UsageError("squareform", "a matrix that is none of distances", needed, action)


def as_floats(name: str, value: Any, what: str = "points") -> Any:
    """Return an array of floats."""
    x: Any = as_tensor(value)
    require_real(name, what, x.dtype)
    return x if x.dtype.kind == "f" else x.astype(float)


# Of two points


def of_two_points(value: str, example: str = PAIR) -> Callable[[Metric], Metric]:
    """Return a decorator of a metric, which enters it and makes the function for two points, with an example."""

    def enter(metric: Metric) -> Metric:
        name = metric.__name__
        METRICS[name] = metric
        names = tuple(inspect.signature(metric).parameters)[2:]

        @functools.wraps(metric)
        def distance(u: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
            x, y = as_floats(name, u), as_floats(name, v)
            if x.ndim != 1 or x.shape != y.shape:
                given = f"points of shapes {x.shape} and {y.shape}"
                raise ShapeError(name, given, "rows of as many coordinates are needed", "Use cdist for several")
            by_place = dict(zip(names, args, strict=False))
            if len(args) > len(names) or not by_place.keys().isdisjoint(kwargs):
                metric(x, y, *args, **kwargs)  # which Python refuses
            return as_tensor(metric(x, y, **metric_options(name, by_place | kwargs, x.shape[0])))

        summary = (metric.__doc__ or "").removesuffix(".")
        distance.__doc__ = f"""{summary} of two points; see `scipy.spatial.distance.{name}`.

    >>> round(float({name}({example})), 6)
    {value}
    """
        return distance

    return enter


def root(square: Any) -> Any:
    """Return the square root, with the derivative 0 at 0."""
    nothing = square == 0
    return np.where(nothing, 0.0, np.sqrt(np.where(nothing, 1.0, square)))


def weigh_terms(x: Any, w: Any) -> Any:
    """Return terms times their weights, if there are some."""
    return x if w is None else x * w


@of_two_points("2.0")
def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    """Return the length of the difference."""
    return np.linalg.norm(weigh_terms(u - v, None if w is None else np.sqrt(w)), axis=-1)


@of_two_points("4.0")
def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """Return the square of the length of the difference."""
    return np.sum(weigh_terms((u - v) ** 2, w), axis=-1)


@of_two_points("2.0")
def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """Return the sum of differences."""
    return np.sum(weigh_terms(np.abs(u - v), w), axis=-1)


@of_two_points("2.0")
def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    """Return the largest difference."""
    difference = np.abs(u - v)
    return np.max(difference if w is None else np.where(w > 0, difference, 0.0), axis=-1)


@of_two_points("2.0", f"{PAIR}, 3")
def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """Return the norm of an order of the difference."""
    if not isinstance(p, int | float | np.integer) or not p > 0:
        raise UsageError("minkowski", f"p={p!r:.40}", "an order above 0 is needed", "Pass 1 or 2, for instance")
    difference = u - v if w is None else (u - v) * (w != 0 if p == np.inf else w ** (1 / p))
    return np.linalg.norm(difference, ord=float(p), axis=-1)


@of_two_points("0.131757")
def cosine(u: Any, v: Any, w: Any = None) -> Any:
    """Return 1 less the cosine of the angle."""
    size = np.sqrt(np.sum(weigh_terms(u * u, w), axis=-1) * np.sum(weigh_terms(v * v, w), axis=-1))
    return 1.0 - np.sum(weigh_terms(u * v, w), axis=-1) / size


@of_two_points("2.0")
def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """Return 1 less the correlation."""
    if not centered:
        return METRICS["cosine"](u, v, w)
    share = None if w is None else w / np.sum(w)

    def center_points(z: Any) -> Any:
        center = np.mean(z, axis=-1) if share is None else np.sum(z * share, axis=-1)
        return z - center[..., None]

    return METRICS["cosine"](center_points(u), center_points(v), w)


@of_two_points("0.5")
def canberra(u: Any, v: Any, w: Any = None) -> Any:
    """Return the sum of differences, each over the sum of sizes."""
    total = np.abs(u) + np.abs(v)
    return np.sum(weigh_terms(np.where(total > 0, np.abs(u - v) / np.where(total > 0, total, 1.0), 0.0), w), axis=-1)


@of_two_points("0.25")
def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    """Return the sum of differences over that of sums."""
    return METRICS["cityblock"](u, v, w) / np.sum(weigh_terms(np.abs(u + v), w), axis=-1)


@of_two_points("0.5")
def hamming(u: Any, v: Any, w: Any = None) -> Any:
    """Return the share of coordinates that differ."""
    share = weigh_terms((u != v) * 1.0, w)
    return np.mean(share, axis=-1) if w is None else np.sum(share, axis=-1) / np.sum(w)


@of_two_points("1.0", f"{PAIR}, [4.0, 1.0]")
def seuclidean(u: Any, v: Any, V: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the length of the difference over standard deviations."""
    """Return the length of the difference over standard deviations."""
    return METRICS["euclidean"](u / np.sqrt(V), v / np.sqrt(V))


@of_two_points("4.0", f"{PAIR}, [[4.0, 0.0], [0.0, 1.0]]")
def mahalanobis(u: Any, v: Any, VI: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the length of the difference by the inverse of a covariance."""
    """Return the length of the difference by the inverse of a covariance."""
    return root(np.sum(((u - v) @ VI) * (u - v), axis=-1))


def jensenshannon(p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """Return the distance of two distributions by their entropies; see `scipy.spatial.distance.jensenshannon`.

    Args:
        p: probabilities, or numbers in proportion to them.
        q: others.
        base: of the logarithm; that of the natural one if it is not given.
        axis: the axis they are along.
        keepdims: whether it stays, of length one.

    >>> round(float(jensenshannon([1.0, 0.0], [0.0, 1.0], 2)), 6)
    1.0
    """
    x, y = as_floats("jensenshannon", p), as_floats("jensenshannon", q)
    require_flag("jensenshannon", keepdims=keepdims)
    x, y = x / np.sum(x, axis=axis, keepdims=True), y / np.sum(y, axis=axis, keepdims=True)
    middle = (x + y) / 2.0
    left, right = (np.sum(scipy.special.rel_entr(z, middle), axis=axis, keepdims=keepdims) for z in (x, y))
    total = left + right
    return root((total if base is None else total / np.log(base)) / 2.0)


if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.spatial.distance")
