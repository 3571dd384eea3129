"""Correlations of images with kernels, by whichever products they are computed, are what the definition says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from wengert.primitives.signals import convolution, sliding_products
from wengert.primitives.signals.convolution import evaluate_correlation as correlated
from wengert.primitives.signals.windows import Geometry, result_lengths, spread_lengths

CASES = 150


def defined(x: Any, w: Any, space: Geometry) -> Any:
    """Return the correlation from windows of images that are spread and surrounded."""
    rank = len(space.stride)
    images = np.zeros(x.shape[:-rank] + spread_lengths(x.shape[-rank:], space.spread), x.dtype)
    images[(..., *[slice(None, None, step) for step in space.spread])] = x
    around = [(max(a, 0), max(b, 0)) for a, b in zip(space.low, space.high, strict=True)]
    images = np.pad(images, [(0, 0)] * (x.ndim - rank) + around)
    cuts = zip(images.shape[-rank:], space.low, space.high, strict=True)
    images = images[(..., *[slice(max(-a, 0), n + min(b, 0)) for n, a, b in cuts])]
    spans = spread_lengths(w.shape[-rank:], space.dilation)
    windows = sliding_window_view(images, spans, tuple(range(-rank, 0)))
    steps = [slice(None, None, step) for step in (*space.stride, *space.dilation)]
    places, taps = "abd"[:rank], "ijk"[:rank]
    return np.einsum(f"gnc{places}{taps},goc{taps}->gno{places}", windows[(..., *steps)], w, optimize=True)


def drawn(rng: np.random.Generator) -> tuple[Any, Any, Geometry]:
    """Return images, kernels and where windows are."""
    rank = int(rng.choice([1, 2, 2, 2, 3]))
    groups, count, outs, channels = (int(rng.choice(n)) for n in ([1, 2], [1, 3, 17], [1, 2, 16], [1, 2, 4, 20]))
    x = rng.normal(size=(groups, count, channels, *rng.integers(1, 8, rank)))
    w = rng.normal(size=(groups, outs, channels, *rng.integers(1, rng.choice([4, 8]), rank)))
    numbers = ([1, 1, 2, 3], [1, 1, 2], [1, 1, 1, 2, 3], [0, 0, 1, 2, -1, 4], [0, 0, 1, 2, -1, 4])
    return x, w, Geometry(*[tuple(map(int, rng.choice(few, rank))) for few in numbers])


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(("few", "many"), [(1 << 13, 1 << 18), (0, 1 << 18), (0, 400), (0, 60)])
def test_correlations(monkeypatch: pytest.MonkeyPatch, few: int, many: int, apart: bool) -> None:
    monkeypatch.setattr(convolution, "FEW_WINDOWS", few)
    if apart:
        monkeypatch.setattr(sliding_products, "LONG", 0)
        monkeypatch.setattr(sliding_products, "TILE", 1)
    for module in (convolution, sliding_products):
        monkeypatch.setattr(module, "MANY", many)
    monkeypatch.setattr(sliding_products, "SHORT", many // 1000)
    convolution.plan_correlation.cache_clear()
    rng = np.random.default_rng(few + many)
    for _ in range(CASES):
        x, w, space = drawn(rng)
        found = correlated(x, w, **space._asdict())
        lengths = result_lengths(x.shape[3:], w.shape[3:], space)
        assert found.shape == (*x.shape[:2], w.shape[1], *lengths)
        assert found.flags.c_contiguous
        if found.size:
            np.testing.assert_allclose(found, defined(x, w, space), rtol=1e-11, atol=1e-11)
    convolution.plan_correlation.cache_clear()


def test_infinite_elements_count_only_in_windows_that_hold_them() -> None:
    x, w = np.ones((1, 16, 2, 40, 40)), np.ones((1, 4, 2, 38, 38))
    x[0, 3, 1, 20, 39] = np.inf
    space = Geometry((1, 1), (1, 1), (1, 1), (0, 0), (0, 0))
    found = correlated(x, w, **space._asdict())
    np.testing.assert_array_equal(found, defined(x, w, space))
    assert np.isinf(found).sum() == 4 * 3
    finite = correlated(np.ones_like(x), w, **space._asdict())
    np.testing.assert_array_equal(finite, np.full(found.shape, 2.0 * 38 * 38))


@pytest.mark.parametrize("many", [100, 1 << 18])
def test_products_with_taps_are_added(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(sliding_products, "MANY", many)
    monkeypatch.setattr(sliding_products, "SMALL", many)
    monkeypatch.setattr(sliding_products, "LOW", 1)
    rng = np.random.default_rng(many)
    for _ in range(CASES):
        rank = int(rng.integers(1, 4))
        groups, count, outs = (int(rng.integers(1, 4)) for _ in range(3))
        x = rng.normal(size=(groups, count, 7, *rng.integers(1, 6, rank)))
        w = rng.normal(size=(groups, outs, 7, *rng.integers(1, 5, rank)))
        apart = rng.choice([1, 1, 2, 3], (2, rank))
        apart[rng.integers(2, size=rank), np.arange(rank)] = 1  # along each axis either is spread
        dilation, spread = (tuple(map(int, each)) for each in apart)
        low, high = (tuple(map(int, rng.integers(-1, 3, rank))) for _ in range(2))
        space = Geometry((1,) * rank, dilation, spread, low, high)
        lengths = result_lengths(x.shape[3:], w.shape[3:], space)
        if 0 not in lengths:
            found = sliding_products.fold_taps(x, w, lengths, space)
            np.testing.assert_allclose(found, defined(x, w, space), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("of_kernels", [False, True])
def test_infinite_elements_reach_no_other_rows_where_products_with_taps_are_added(of_kernels: bool) -> None:
    x, w = np.ones((1, 2, 8, 40, 40)), np.ones((1, 1, 8, 3, 3))
    if of_kernels:
        w[0, 0, 3, 1, 2] = np.inf
    else:
        x[0, 1, 3, 20, 39] = np.inf
    space = Geometry((1, 1), (1, 1), (1, 1), (0, 0), (0, 0))
    np.testing.assert_array_equal(correlated(x, w, **space._asdict()), defined(x, w, space))


def test_kinds_of_numbers() -> None:
    none = Geometry((1, 1), (1, 1), (1, 1), (0, 0), (0, 0))._asdict()
    x, w = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4), np.ones((3, 2, 2, 2))
    assert correlated(x, w, **none).dtype == np.float64
    assert correlated(x, w.astype(np.float32), **none).dtype == np.float32
    np.testing.assert_array_equal(correlated(x.astype(int), w.astype(int), **none), correlated(x, w, **none))
    np.testing.assert_allclose(correlated(x * 1j, w * 2j, **none), -2 * correlated(x, w, **none), rtol=1e-6)
