"""Sums of cotangents: along any axes, as accurate as pairwise addition, in every mode alike."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import wengert as wg
from tests.cases import together
from wengert.core.primitives import cotangent
from wengert.core.primitives.cotangent import has_no_nan, sum_over, unbroadcast
from wengert.core.values.dispatch import apply
from wengert.primitives import reductions


def exact(x: np.ndarray[Any, Any], axis: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return sums without rounding errors."""
    kept = [n for i, n in enumerate(x.shape) if i not in axis]
    moved = np.moveaxis(x, axis, range(x.ndim - len(axis), x.ndim)).reshape(*kept, -1)
    return np.apply_along_axis(math.fsum, -1, moved.astype(np.float64))


@st.composite
def array_and_axes(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 17, 33, 70]), min_size=1, max_size=3))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    seed = draw(st.integers(0, 1_000))
    x = np.random.default_rng(seed).random(shape).astype(dtype)
    return (x if draw(st.booleans()) else np.asfortranarray(x)), tuple(sorted(axes))


@given(array_and_axes())
def test_sums_are_those_of_pairwise_addition(drawn: tuple[np.ndarray[Any, Any], tuple[int, ...]]) -> None:
    x, axis = drawn
    before = x.copy()
    total = sum_over(x, axis)
    count = math.prod(x.shape[i] for i in axis)
    assert total.dtype == x.dtype
    np.testing.assert_allclose(total, exact(x, axis), rtol=(math.log2(count) + 9) * np.finfo(x.dtype).eps)
    assert np.array_equal(x, before)


@given(arrays.arrays(np.float64, (40, 3), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_what_is_not_finite_stays_so(x: np.ndarray[Any, Any]) -> None:
    with np.errstate(all="ignore"):
        total, plain = sum_over(x, (0,)), x.sum(axis=0)
        whole = np.abs(x).sum(axis=0) < np.inf  # no order of additions overflows
    assert np.array_equal(np.isfinite(total) | ~whole, np.isfinite(plain) | ~whole)


@pytest.mark.parametrize("shape", [(100_000, 3), (3, 40_000), (200, 200, 5)])
def test_gradients_of_what_was_broadcast(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 0.1, np.float32)
    b = np.zeros(shape[-1], np.float32)

    def loss(b: Any) -> Any:
        return np.sum((x + b) * x)

    count = math.prod(shape[:-1])
    expected = np.full(shape[-1], count * float(np.float32(0.1)))
    for gradient in (wg.grad(loss)(b), wg.jit(wg.grad(loss))(b), wg.vmap(wg.grad(loss))(b[None])[0]):
        np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@together("axes", [(0, 1), (0, 2), (1,), (0, 1, 2)])
@together("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_sums_of_transposed_cotangents(axes: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random((30, 50, 20)).astype(np.float32).transpose(order)
    np.testing.assert_allclose(sum_over(x, axes), x.astype(np.float64).sum(axis=axes), rtol=2e-6)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 3, 2)])
def test_sums_over_axes_that_are_no_neighbours(order: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random((20, 3, 17, 30)).transpose(order)
    for axes in ((0, 2), (0, 2, 3), (0, 1, 3), (1, 3)):
        np.testing.assert_allclose(sum_over(x, axes), x.sum(axis=axes), rtol=1e-13)


def test_a_broadcast_cotangent_is_not_written_out() -> None:
    x = np.broadcast_to(np.ones(3), (2_000, 1_000, 3))
    tracemalloc.start()
    total = sum_over(x, (0, 1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total.tolist() == [2e6] * 3
    assert peak < 100_000


@together(
    "shape",
    [
        (0, 3),
        (40, 0),
        (9, 0, 3),
        (1, 3),
        (65, 1),
        (7, 70, 2),
        (7, 70, 1),
        (2, 130, 3, 4),
        (307, 40),
        (3, 1030),
        (2, 9, 999),
    ],
)
@together("dtype", [np.float16, np.float32, np.float64, np.complex128])
def test_sums_over_any_axes_of_any_shape(shape: tuple[int, ...], dtype: Any) -> None:
    x = np.random.default_rng(0).random(shape).astype(dtype)
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            total, expected = sum_over(x, axes), x.astype(np.complex128).sum(axis=axes)
            assert (total.shape, total.dtype) == (expected.shape, dtype)
            np.testing.assert_allclose(total, expected, rtol=30 * float(np.finfo(dtype).eps))


def test_gradients_of_what_was_broadcast_to_nothing() -> None:
    gradient = wg.grad(lambda x: np.sum(x + np.zeros((9, 0, 3))))
    assert gradient(np.zeros((1, 0, 1))).shape == (1, 0, 1)
    assert gradient(np.zeros((1, 1, 1))).tolist() == [[[0.0]]]


def test_axes_may_be_kept() -> None:
    assert apply(reductions.sum_, np.ones((40, 3)), axis=(0,), keepdims=True, accurate=True).tolist() == [[40.0] * 3]


def test_a_cotangent_that_is_broadcast_itself() -> None:
    ct = np.broadcast_to(2.0, (1_000, 4))
    assert np.array_equal(unbroadcast(ct, (4,)), np.full(4, 2_000.0))
    assert np.array_equal(unbroadcast(ct, (1, 4)), np.full((1, 4), 2_000.0))
    assert np.array_equal(unbroadcast(ct, (1, 1)), [[8_000.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 3, 20_000])
def test_arrays_are_known_to_have_no_nan_without_the_threads_of_blas(dtype, size, monkeypatch):
    def small(one: Any) -> Any:
        assert one.size <= 10_000, "BLAS has threads for more, which wait for each other"
        return np.vdot(one, one)

    monkeypatch.setattr(cotangent, "sum_of_squares", small)
    x = np.ones(size, dtype)
    assert has_no_nan(x)
    if size:
        assert has_no_nan(x[0])
        x[-1] = np.inf
        assert has_no_nan(x)
        x[size // 2] = np.nan
        assert not has_no_nan(x)
