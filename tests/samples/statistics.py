"""Samples of variances, averages, order statistics, and the functions that leave out NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import fixed, integers, normal, positive, sample, spaced
from tests.samples.reductions import MASK, options
from wengert.core.values.dispatch import apply
from wengert.primitives import quantiles

HOLES = np.array([[False, True, False, False], [True, False, False, True], [False, False, False, False]])
METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull"),
    *("linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)
PLAN = {"axis": (1,), "keepdims": False, "method": "linear", "percent": False, "skipna": False, "moving": True}


def with_holes(function: Any) -> Any:
    """Return a function of arrays of shape (3, 4), some of whose elements are replaced by NaN first."""

    def holed(x: Any, *args: Any, **kwargs: Any) -> Any:
        return function(np.where(HOLES, np.nan, x), *args, **kwargs)

    holed.__name__ = function.__name__
    return holed


def collect(t: Any, x: Any, q: Any, part: str = "value") -> Any:
    """Combine elements of t as the quantiles of x combine those of x."""
    return apply(quantiles.quantile_collect, t, x, q, part=part, **PLAN)


def distribute(ct: Any, x: Any, q: Any, part: str = "value") -> Any:
    """Bring cotangents of quantiles of x to its elements."""
    return apply(quantiles.quantile_distribute, ct, x, q, part=part, **PLAN)


SAMPLES = [
    # variances
    *options("var", np.var),
    *options("std", np.std)[:5],
    sample("var", np.var, np.array(0.7)),
    sample("var", np.var, normal(3, 4), axis=1, ddof=1),
    sample("std", np.std, normal(3, 4), axis=0, correction=1, keepdims=True),
    sample("var", np.var, normal(3, 4), axis=1, where=MASK),
    sample("std", np.std, normal(3, 4), axis=0, where=MASK),
    sample("var", lambda x, m: np.var(x, axis=0, mean=m), normal(3, 4), normal(1, 4)),
    sample("std", lambda x, m: np.std(x, axis=1, mean=m, ddof=1), normal(3, 4), normal(3, 1)),
    sample("std", lambda x: np.std(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)), normal(3, 4)),
    sample("var", np.var, np.array([1.0, 2.0, 3.0])),
    sample("var", np.var, normal(3) + 1j * normal(3, seed=1)),
    sample("std", np.std, normal(2, 3).astype(np.float32), axis=1, dtype=np.float64),
    sample("nanvar", with_holes(np.nanvar), normal(3, 4), axis=1),
    sample("nanvar", with_holes(np.nanvar), normal(3, 4), ddof=1),
    sample("nanvar", with_holes(np.nanvar), normal(3, 4), axis=0, where=fixed(HOLES | ~HOLES)),
    sample("nanstd", with_holes(np.nanstd), normal(3, 4), axis=1, keepdims=True),
    sample("nanstd", with_holes(np.nanstd), normal(3, 4), axis=0),
    sample("nanvar", lambda x, m: np.nanvar(x, axis=0, mean=m), normal(3, 4), normal(1, 4)),
    # NaN left out
    sample("replace_nan", with_holes(np.nansum), normal(3, 4)),
    sample("replace_nan", with_holes(np.nansum), normal(3, 4), axis=0, keepdims=True),
    sample("replace_nan", with_holes(np.nanprod), normal(3, 4), axis=1),
    sample("replace_nan", with_holes(np.nancumsum), normal(3, 4), axis=1),
    sample("replace_nan", with_holes(np.nancumprod), normal(3, 4), axis=0),
    sample("replace_nan", np.nansum, np.array(0.7)),
    sample("nanmean", with_holes(np.nanmean), normal(3, 4)),
    sample("nanmean", with_holes(np.nanmean), normal(3, 4), axis=1, keepdims=True),
    sample("nanmean", np.nanmean, normal(3, 4), axis=(0, 1), where=MASK),
    # order statistics
    *options("median", np.median, spaced)[:6],
    sample("median", np.median, np.array(0.7)),
    sample("median", np.median, spaced(2, 3) + 1j * normal(2, 3), axis=1),
    sample("median", np.median, spaced(4)),
    sample("median", with_holes(np.nanmedian), spaced(3, 4), axis=1),
    sample("median", with_holes(np.nanmedian), spaced(3, 4)),
    sample("quantile", np.quantile, spaced(5), 0.3),
    sample("quantile", np.quantile, spaced(5), np.array(0.3)),
    sample("quantile", np.quantile, spaced(3, 4), np.array([0.2, 0.85]), axis=0),
    sample("quantile", np.quantile, spaced(2, 3, 2), np.array([[0.2], [0.85]]), axis=(0, 2), keepdims=True),
    sample("quantile", np.percentile, spaced(3, 4), np.array([20.0, 85.0]), axis=1),
    sample("quantile", np.percentile, spaced(3, 4), 30),
    sample("quantile", with_holes(np.nanquantile), spaced(3, 4), np.array([0.2, 0.65]), axis=1),
    sample("quantile", with_holes(np.nanpercentile), spaced(3, 4), np.array(35.0)),
    sample("quantile", with_holes(np.nanpercentile), spaced(3, 4), 35.0, axis=0, keepdims=True),
    *(sample("quantile", np.quantile, spaced(5), np.array([0.17, 0.43, 0.78]), method=m) for m in METHODS),
    *(sample("quantile", np.quantile, spaced(5), fixed(np.array([0.01, 0.99])), method=m) for m in METHODS[5:9]),
    sample(
        "quantile",
        lambda x, w: np.quantile(x, [0.2, 0.7], axis=1, weights=w, method="inverted_cdf"),
        spaced(2, 3),
        fixed(positive(2, 3)),
    ),
    sample("quantile", np.quantile, spaced(1), 0.3),
    sample("quantile_collect", collect, normal(2, 4), fixed(spaced(2, 4)), np.array([0.2, 0.7])),
    sample("quantile_collect", collect, normal(2, 3), fixed(np.array([[1.0, 1, 2], [3, 4, 4]])), np.array(0.4)),
    sample("quantile_collect", collect, normal(2, 4), fixed(spaced(2, 4)), np.array(0.7), part="slope"),
    sample("quantile_distribute", distribute, normal(2, 2), fixed(spaced(2, 4)), np.array([0.2, 0.7])),
    sample("quantile_distribute", distribute, normal(2), fixed(np.array([[1.0, 1, 2], [3, 4, 4]])), np.array(0.4)),
    # averages and covariances
    sample("mean", np.average, normal(3, 4), axis=1),
    sample("sum", lambda x, w: np.average(x, weights=w), normal(3, 4), positive(3, 4)),
    sample("sum", lambda x, w: np.average(x, 0, w, keepdims=True), normal(3, 4), positive(3)),
    sample("sum", lambda x, w: np.average(x, (1, 0), w, returned=True), normal(2, 3), positive(3, 2)),
    sample("dot", np.cov, normal(2, 4)),
    sample("dot", np.cov, normal(4)),
    sample("dot", np.cov, normal(4, 2), rowvar=False, bias=True),
    sample("dot", lambda x, y: np.cov(x, y), normal(2, 4), normal(4)),
    sample("dot", lambda x, w: np.cov(x, aweights=w), normal(2, 4), positive(4)),
    sample("dot", np.cov, normal(2, 4), fweights=integers(1, 4, 4), ddof=0),
    sample("dot", np.cov, normal(2, 3) + 1j * normal(2, 3, seed=1)),
    sample("dot", np.corrcoef, normal(3, 4)),
    sample("dot", np.corrcoef, normal(4, 2), rowvar=False),
    sample("dot", lambda x, y: np.corrcoef(x, y), normal(4), normal(4, seed=1)),
]
