"""Samples of sorting, searching and set operations, at points without ties."""

from __future__ import annotations

import numpy as np

from tests.samples.base import fixed, integers, normal, sample, spaced
from wengert.core.values.dispatch import apply
from wengert.primitives.sorting import ranked

SAMPLES = [
    sample("sort", np.sort, spaced(3, 4)),
    sample("sort", np.sort, spaced(3, 4), axis=0),
    sample("sort", np.sort, spaced(3, 4), axis=None),
    sample("sort", np.sort, spaced(2, 3, 2), axis=-2, kind="stable"),
    sample("sort", np.sort, spaced(0, 3), axis=0),
    sample("sort", np.sort, spaced(5), stable=True),
    sample("partition", np.partition, spaced(7), 3),
    sample("partition", np.partition, spaced(3, 4), (1, 2), axis=0),
    sample("partition", np.partition, spaced(3, 4), 5, axis=None),
    sample("argsort", np.argsort, spaced(3, 4)),
    sample("argsort", np.argsort, spaced(3, 4), axis=None),
    sample("argsort", np.argsort, spaced(3, 4), axis=0, stable=True),
    sample("ranks", lambda x: apply(ranked, x, axis=0), spaced(3, 4)),
    sample("argpartition", np.argpartition, spaced(7), 3),
    sample("argpartition", np.argpartition, spaced(3, 4), (1, 2), axis=0),
    sample("lexsort", np.lexsort, (spaced(5), spaced(5, seed=1))),
    sample("argmax", np.argmax, spaced(3, 4)),
    sample("argmax", np.argmax, spaced(3, 4), axis=0),
    sample("argmax", np.argmax, spaced(3, 4), axis=-1, keepdims=True),
    sample("argmin", np.argmin, spaced(3, 4)),
    sample("argmin", np.argmin, spaced(3, 4), axis=0, keepdims=True),
    sample("nanargmax", np.nanargmax, spaced(3, 4), axis=1),
    sample("nanargmax", np.nanargmax, fixed(np.array([np.nan, 1.0, 0.5]))),
    sample("nanargmin", np.nanargmin, spaced(3, 4), axis=1),
    sample("searchsorted", np.searchsorted, fixed(np.arange(5.0)), spaced(2, 3)),
    sample("searchsorted", np.searchsorted, fixed(np.arange(5.0)), spaced(2, 3), side="right"),
    sample("searchsorted", np.searchsorted, spaced(4), spaced(3), sorter=fixed(np.argsort(spaced(4)))),
    sample("digitize", np.digitize, spaced(2, 3), fixed(np.arange(3.0))),
    sample("digitize", np.digitize, spaced(2, 3), fixed(np.arange(3.0)), right=True),
    sample("unique", lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True)[1:], spaced(5)),
    sample("getitem", np.unique, spaced(5)),
    sample("getitem", lambda x: np.unique(np.concatenate([x, x[::-1]])), spaced(3)),
    sample("getitem", lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True), spaced(2, 3)),
    sample("getitem", lambda x: np.unique(x, axis=1), spaced(2, 3)),
    sample("getitem", lambda x: tuple(np.unique_all(x)), spaced(2, 3)),
    sample("getitem", lambda x: tuple(np.unique_counts(x)), spaced(4)),
    sample("getitem", lambda x: tuple(np.unique_inverse(x)), spaced(4)),
    sample("getitem", np.union1d, spaced(4), spaced(3, seed=1) + 0.05),
    sample("getitem", lambda x: np.intersect1d(x, x[1:3], return_indices=True), spaced(4)),
    sample("getitem", lambda x: np.setdiff1d(x, x[1:3]), spaced(4)),
    sample("isin", np.isin, spaced(2, 3), fixed(spaced(2, 3)[0])),
    sample("isin", np.isin, integers(0, 9, 5), fixed([1, 2, 3]), invert=True),
    sample("getitem", lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0), normal(3, 2)),
]
