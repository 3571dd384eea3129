"""Correlations of images with kernels, by whichever products they are computed, are what the definition says."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import wengert as wg
from tests.kernels import as_if
from tests.test_emission import TARGETS
from wengert.emission.external_functions import address_of
from wengert.emission.products.correlation_plans import native_plan
from wengert.emission.routines.routine_calls import KernelCall, contents_of
from wengert.kernel.kernel import Invoke
from wengert.lowering.partition import partition_graph
from wengert.native.engine import Target, host
from wengert.native.entries.callee import Callee
from wengert.native.threads.team import team_of
from wengert.nn import functional
from wengert.passes.pipeline import flatten_calls
from wengert.primitives.signals import convolution, sliding_products
from wengert.primitives.signals.convolution import evaluate_correlation as correlated
from wengert.primitives.signals.windows import Geometry, result_lengths, spread_lengths
from wengert.support import config
from wengert.transforms.tracing import trace

CASES = 130


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


# Natively: by one function a dtype, whose windows are addresses


def natively(x: Any, w: Any, space: Geometry, target: Target, team: Any = None, kinds: set[str] | None = None) -> Any:
    """Return a correlation by the function that programs call, which must write to nothing else; None if none does.

    The kind of its tiles is entered among `kinds`.
    """
    rank, lengths = len(space.stride), result_lengths(x.shape[3:], w.shape[3:], space)
    steps = [tuple([step // z.itemsize for step in z.strides[:-rank]]) for z in (x, w)]
    own = {name: value for name, value in space._asdict().items() if name != "high"}
    plan = native_plan(x.shape, w.shape, lengths, x.dtype, *steps, **own)
    if plan is None:
        return None
    if kinds is not None:
        kinds.add(plan.name.split(".")[1])
    start, contents = contents_of(KernelCall(plan.name, (), plan.fields, plan.work, may_fail=True))
    place = None if team is None else ctypes.c_void_p(team.address)
    callee = Callee(address_of(plan.name, target), size=start + plan.work, contents=[(0, contents)], team=place)
    memory = np.full(x.shape[0] * x.shape[1] * w.shape[1] * math.prod(lengths) + 16, 7.0, x.dtype)
    failed = np.ones(1, bool)
    callee.call([x.ctypes.data, w.ctypes.data, memory[8:].ctypes.data, failed.ctypes.data])
    assert not failed[0]
    assert (memory[:8] == 7).all()
    assert (memory[-8:] == 7).all()
    return memory[8:-8].reshape(*x.shape[:2], w.shape[1], *lengths)


@pytest.mark.parametrize(
    "target", [pytest.param(TARGETS[x], marks=[pytest.mark.long] * (x != "host"), id=x) for x in TARGETS]
)
def test_correlations_natively(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    if target is not TARGETS["host"]:  # blocks of few channels, and strips of few rows
        as_if(monkeypatch, panel=1000, second_cache=5000)
    rng, kinds = np.random.default_rng(5), set[str]()
    for case in range(CASES):
        as_if(monkeypatch, turned=(-1e3, 1e3, 1.2)[case // 4 % 3])  # lanes along channels, or not
        x, w, space = drawn(rng)
        if case % 3 == 0:  # rows of several vectors
            x = rng.normal(size=(*x.shape[:-1], int(rng.integers(20, 70))))
        if case % 3 == 1:  # kernels as large as images
            w = rng.normal(size=(*w.shape[:3], *[max(n - int(rng.integers(3)), 1) for n in x.shape[3:]]))
        dtype = np.float32 if case % 4 == 0 and target is not TARGETS["sse2"] else np.float64
        x, w = (np.ascontiguousarray(z.astype(dtype).swapaxes(1, 2)).swapaxes(1, 2) for z in (x, w))
        found = natively(x, w, space, target, team_of(2) if case % 2 else None, kinds)
        if found is not None:
            limit = 1e-11 if dtype is np.float64 else 2e-5 * math.sqrt(w[0, 0].size)
            np.testing.assert_allclose(found, defined(x, w, space), rtol=limit, atol=limit)
    assert kinds == {"places", "kernels", "channels"}


def test_what_has_no_native_function() -> None:
    ones = np.ones((1, 2, 3, 8, 8)), np.ones((1, 2, 3, 3, 3))
    plain = Geometry((1, 1), (1, 1), (1, 1), (0, 0), (0, 0))
    assert natively(*ones, plain, host()) is not None
    assert natively(*(z.astype(complex) for z in ones), plain, host()) is None
    assert natively(*(z.astype(np.float16) for z in ones), plain, host()) is None
    assert natively(*(z[:, :, :0] for z in ones), plain, host()) is None


IMAGES_OF_ROWS = np.random.default_rng(8).normal(size=(3, 4, 9, 20))
KERNELS_OF_LAYERS = {
    "plain": ({}, (6, 4, 3, 3)),
    "padded": ({"padding": 1, "stride": (2, 1)}, (6, 4, 3, 3)),
    "dilated": ({"dilation": (1, 2), "padding": "same"}, (5, 4, 3, 5)),
    "in groups": ({"groups": 2, "stride": 2}, (6, 2, 3, 2)),
    "points": ({}, (6, 4, 1, 1)),
    "as large as images": ({"padding": (1, 0)}, (2, 4, 9, 20)),
}


@pytest.mark.parametrize(("options", "shape"), KERNELS_OF_LAYERS.values(), ids=KERNELS_OF_LAYERS)
@pytest.mark.parametrize("transposed", [False, True])
def test_layers_are_programs_of_their_own(options: Any, shape: Any, transposed: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)
    x, kernels = IMAGES_OF_ROWS, np.random.default_rng(9).normal(size=shape)

    def layer(x: Any, w: Any) -> Any:
        if not transposed:
            return np.tanh(functional.conv2d(x, w, **options))
        own = {name: value for name, value in options.items() if name != "padding"}
        return np.tanh(functional.conv_transpose2d(x, np.concatenate([w, w])[:4], **own))

    gradient = wg.grad(lambda x, w: np.sum(layer(x, w) ** 2), argnums=(0, 1))
    compiled = wg.jit(gradient)
    for found, expected in zip(compiled(x, kernels), gradient(x, kernels), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    lowered = compiled.lower(x, kernels)
    assert all(part.program is not None for part in lowered.segments.parts)


@pytest.mark.parametrize(
    "layer",
    [
        lambda x, w: functional.conv_transpose2d(x, w, stride=(1, 3)),
        lambda x, w: wg.grad(lambda x: np.sum(functional.conv2d(x, w.swapaxes(0, 1), dilation=2) * np.arange(21.0)))(x),
    ],
)
def test_infinite_taps_times_zeros_beside_elements_are_what_they_are_eagerly(
    layer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)
    rng = np.random.default_rng(9)
    images, kernels = rng.normal(size=(2, 4, 17, 25)), rng.normal(size=(4, 2, 3, 3))
    kernels[1, 0, 1, 0] = np.inf
    with np.errstate(invalid="ignore"):
        expected = np.asarray(layer(images, kernels))
        assert np.isnan(expected).any()
        np.testing.assert_allclose(wg.jit(layer)(images, kernels), expected, rtol=1e-10, atol=1e-10)


def test_what_is_only_transposed_is_not_copied() -> None:
    arrays = np.ones((64, 3, 8, 8)), np.ones((4, 3, 3, 3)), np.ones((64, 4, 6, 6))
    graph = trace(lambda x, w, ct: wg.vjp(lambda w: functional.conv2d(x, w), w)[1](ct)[0])(*arrays)
    (part,) = partition_graph(flatten_calls(graph)).parts
    assert part.program is not None
    (step,) = [step for step in part.program.steps if isinstance(step, Invoke)]
    assert step.name == "correlation.kernels.float64"
    assert set(step.reads) < set(part.program.inputs)


@pytest.mark.parametrize("taps", [40, 3])  # as correlations of channels, and term by term
def test_convolutions_of_sequences_are_native(taps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, y: Any) -> Any:
        found = np.convolve(x, y), np.correlate(x, y, "valid")
        return [*found, *wg.grad(lambda *xs: np.sum(np.convolve(*xs, "same") ** 2), argnums=(0, 1))(x, y)]

    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=1003), rng.normal(size=taps)
    run, special = wg.jit(function), np.where(y == y[1], np.inf, y)
    for case in ((x, y), (np.where(x == x[500], np.inf, x), y), (x, special)):  # beside which there are zeros
        with np.errstate(invalid="ignore"):
            wanted = function(*case)
        for found, want in zip(run(*case), wanted, strict=True):
            scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
            np.testing.assert_allclose(found, want, rtol=1e-10, atol=scale * 1e-14)
    assert run.lower(x, y).segments.whole is not None
