"""Samples of selection: conditions, masks, bounds, counts."""

from __future__ import annotations

import numpy as np

from tests.samples.base import fixed, integers, normal, positive, sample, spaced
from wengert.core.primitives.cotangent import guard
from wengert.core.values.dispatch import apply
from wengert.primitives.selection import required

MASK = fixed(np.array([[True, False, True], [False, False, True]]))
LINE = fixed(np.array([True, False, True]))
LOW, HIGH = normal(3, seed=1) - 0.7, normal(3, seed=2) + 0.9

SAMPLES = [
    sample("where", np.where, MASK, normal(2, 3), normal(3, seed=1)),
    sample("where", np.where, LINE, normal(2, 1), 2.0),
    sample("where", np.where, fixed(True), normal(), normal(seed=1)),
    sample("where", np.where, fixed(np.zeros((0, 3), bool)), normal(3), normal(0, 3)),
    sample("where", lambda x: np.where(x > 0)[0] * 1.0 + x.sum(), spaced(5)),
    sample("guarded", guard, normal(2, 3), fixed(np.array([np.nan, np.nan, 1.0])), fixed(np.array([[0.0], [1.0]]))),
    sample("required", lambda x, holds: x * apply(required, holds), normal(3), fixed(np.ones(3, bool))),
    sample("clip", np.clip, normal(2, 3), LOW, HIGH),
    sample("clip", np.clip, normal(2, 1), LOW, HIGH),
    sample("clip", np.clip, normal(2, 3), -0.5, 0.5),
    sample("clip", np.clip, normal(2, 3), HIGH, LOW),
    sample("clip", np.clip, normal(), -0.1, 0.1),
    sample("clip", np.clip, normal(0), -0.1, 0.1),
    sample("maximum", np.clip, normal(5), -0.5, None),
    sample("minimum", np.clip, normal(5), None, 0.5),
    sample("positive", np.clip, normal(5), None, None),
    sample("clip", lambda x: np.clip(x, min=-0.5, max=0.5), normal(5)),
    sample("where", np.select, [MASK, LINE], [normal(2, 3), normal(3, seed=1)], normal(seed=2)),
    sample("where", np.select, [LINE], [normal(3)]),
    sample("getitem", lambda x: np.piecewise(x, [x < 0, x > 0.5], [np.exp, 2.0, lambda v: v * v]), spaced(6)),
    sample("getitem", lambda x: np.piecewise(x, x < 0, [np.exp, np.sin]), spaced(6)),
    sample("getitem", np.choose, integers(0, 2, 2, 3), [normal(2, 3), normal(3, seed=1)]),
    sample("getitem", np.choose, fixed(np.array([0, 3, -1])), [normal(3), normal(3, seed=1)], mode="wrap"),
    sample("getitem", np.choose, fixed(np.array([0, 3, -1])), [normal(3), normal(3, seed=1)], mode="clip"),
    sample("getitem", np.extract, MASK, normal(2, 3)),
    sample("getitem", np.compress, LINE, normal(2, 3), axis=1),
    sample("getitem", np.compress, fixed([True, False, True]), normal(2, 3)),
    sample("nonzero", np.nonzero, fixed(np.array([[0.0, 1.0], [2.0, 0.0]]))),
    sample("nonzero", np.flatnonzero, spaced(2, 2), order=0),
    sample("nonzero", np.nonzero, spaced(2, 2), order=0),
    sample("argwhere", np.argwhere, spaced(2, 2), order=0),
    sample("bincount", np.bincount, integers(0, 5, 7), normal(7)),
    sample("bincount", np.bincount, integers(0, 5, 7), normal(7), minlength=9),
    sample("bincount", np.bincount, fixed(np.array([True, False, True])), normal(3)),
    sample("bincount", np.bincount, fixed(np.zeros(0, int)), normal(0), minlength=2),
    sample("occurrences", np.bincount, integers(0, 5, 7)),
    sample("histogram", lambda w, x: np.histogram(x, 4, weights=w)[0], normal(8), fixed(spaced(8))),
    sample("histogram", lambda w, x: np.histogram(x, 3, (-1, 1), weights=w)[0], normal(8), fixed(spaced(8))),
    sample("histogram", lambda w, x: np.histogram(x, [-1, 0, 0.5], weights=w)[0], normal(8), fixed(spaced(8))),
    sample(
        "histogram", lambda w, x: np.histogram(x, 4, density=True, weights=w)[0], positive(2, 4), fixed(spaced(2, 4))
    ),
    sample("histogram_counts", lambda x: np.histogram(x, 4, (-2.05, 2.07))[0], spaced(8), order=0),
    sample("histogram_bin_edges", np.histogram_bin_edges, fixed(spaced(8)), 4),
    sample("unravel_index", np.unravel_index, integers(0, 12, 5), fixed((3, 4))),
    sample("ravel_multi_index", np.ravel_multi_index, [integers(0, 3, 5), integers(0, 4, 5)], fixed((3, 4))),
]
