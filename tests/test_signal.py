"""Convolutions and filters: SciPy's values, and gradients by signals, kernels and coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import wengert as wg
from tests.cases import some_of
from tests.derivatives import require_derivatives
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.scipy import signal
from wengert.testing import check_grads

RNG = np.random.default_rng(0)
B, A = [0.2, 0.3, 0.1], [1.5, -0.6, 0.2]


def close(found: Any, want: Any) -> None:
    np.testing.assert_allclose(found, want, rtol=1e-11, atol=1e-12)
    assert found.shape == np.shape(want)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    "shapes", [((7,), (3,)), ((3,), (6,)), ((5, 6), (2, 3)), ((2, 3), (4, 5)), ((3, 4, 3), (2, 2, 2))]
)
def test_convolutions_are_scipys(mode: str, shapes: Any) -> None:
    x, y = (RNG.normal(size=shape) for shape in shapes)
    for name in ("convolve", "correlate", "fftconvolve", "oaconvolve"):
        close(getattr(signal, name)(x, y, mode), getattr(scipy.signal, name)(x, y, mode))
    close(signal.correlate(x + 1j, y * 1j, mode), scipy.signal.correlate(x + 1j, y * 1j, mode))
    numbers = np.arange(x.size).reshape(x.shape), np.arange(y.size).reshape(y.shape)
    found, want = signal.convolve(*numbers, mode), scipy.signal.convolve(*numbers, mode)
    np.testing.assert_array_equal(found, want)
    assert found.dtype == want.dtype


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_convolutions_of_images_are_scipys(mode: str, boundary: str) -> None:
    x, y = RNG.normal(size=(5, 6)), RNG.normal(size=(3, 2))
    for name in ("convolve2d", "correlate2d"):
        close(getattr(signal, name)(x, y, mode, boundary), getattr(scipy.signal, name)(x, y, mode, boundary))
    filled = scipy.signal.convolve2d(x, y, mode, fillvalue=2.0)
    close(signal.convolve2d(x, y, mode, fillvalue=2.0), filled)


def test_convolutions_along_axes() -> None:
    x, y = RNG.normal(size=(3, 6)), RNG.normal(size=(1, 4))
    close(signal.fftconvolve(x, y, "same", axes=1), scipy.signal.fftconvolve(x, y, "same", axes=1))


@pytest.mark.parametrize(("b", "a"), [(B, A), ([0.5], [1.0, -0.9]), (B, [2.0]), ([1.0], A)])
@pytest.mark.parametrize("axis", [0, 1])
def test_filters_are_scipys(b: Any, a: Any, axis: int) -> None:
    x = RNG.normal(size=(11, 12))
    close(signal.lfilter(b, a, x, axis), scipy.signal.lfilter(b, a, x, axis))
    order = max(len(a), len(b)) - 1
    state = RNG.normal(size=(order, 12) if axis == 0 else (11, order))
    for found, want in zip(
        signal.lfilter(b, a, x, axis, state), scipy.signal.lfilter(b, a, x, axis, state), strict=True
    ):
        close(found, want)
    close(signal.lfilter_zi(b, a), scipy.signal.lfilter_zi(b, a))
    for padtype in ("odd", "even", "constant", None):
        close(
            signal.filtfilt(b, a, x, axis, padtype, 4 if padtype else None),
            scipy.signal.filtfilt(b, a, x, axis, padtype, 4 if padtype else None),
        )


def test_filters_in_sections_and_trends() -> None:
    x = RNG.normal(size=(3, 20))
    sections = scipy.signal.butter(4, 0.3, output="sos")
    close(signal.sosfilt(sections, x), scipy.signal.sosfilt(sections, x))
    state = RNG.normal(size=(2, 3, 2))
    for found, want in zip(
        signal.sosfilt(sections, x, zi=state), scipy.signal.sosfilt(sections, x, zi=state), strict=True
    ):
        close(found, want)
    for kind in ("linear", "constant"):
        close(signal.detrend(x, 0, kind), scipy.signal.detrend(x, 0, kind))


def test_gradients_and_lanes() -> None:
    x, b, a = RNG.normal(size=7), np.array(B), np.array(A)
    check_grads(signal.lfilter, (b, a, x), order=2)
    check_grads(lambda b, a, x, z: signal.lfilter(b, a, x, zi=z), (b, a, x, np.ones(2)), order=2)
    check_grads(lambda b, a, x: signal.filtfilt(b, a, x, padlen=3), (b, a, x), order=1)
    check_grads(lambda x, y: signal.convolve(x, y, "same"), (x.reshape(7, 1), a.reshape(3, 1)), order=2)
    check_grads(lambda x, y: signal.fftconvolve(x, y, "valid"), (x, a), order=2)
    square = np.stack([a + 0.1 * k for k in range(a.size)])  # as many filters as each has coefficients
    of_each = wg.vmap(wg.grad(lambda a: np.sum(signal.lfilter(b, a, x) ** 2)))
    close(wg.jit(of_each)(square), of_each(square))
    coefficients = np.stack([a, a + 0.1])
    for axes in ((0, None), (None, 0), (0, 0)):
        signals = np.stack([x, -x]) if axes[1] == 0 else x
        rows = coefficients if axes[0] == 0 else a
        gradient = wg.grad(lambda a, x: np.sum(signal.lfilter(b, a, x) ** 2), (0, 1))
        lanes = wg.vmap(gradient, in_axes=axes)(rows, signals)
        each = [gradient(rows[i] if axes[0] == 0 else rows, signals[i] if axes[1] == 0 else signals) for i in range(2)]
        for found, want in zip(lanes, zip(*each, strict=True), strict=True):
            close(found, np.stack(want))


def test_errors() -> None:
    with pytest.raises(UsageError) as caught:
        signal.convolve([1.0], [1.0], "all")
    assert str(caught.value) == "convolve: mode='all'; 'full', 'same' or 'valid' is needed. Pass one of these."
    with pytest.raises(ShapeError) as refused:
        signal.convolve(np.ones((2, 3)), np.ones((3, 2)), "valid")
    assert str(refused.value) == (
        "convolve: shapes (2, 3) and (3, 2) with mode='valid'; one as long as the other along every axis is needed. "
        "Pad one."
    )
    with pytest.raises(ShapeError) as refused:
        signal.filtfilt(B, A, np.ones(5))
    assert str(refused.value) == (
        "filtfilt: 5 elements along the axis, to be continued by 9; more are needed. Pass another padlen."
    )
    with pytest.raises(ShapeError) as refused:
        signal.lfilter(B, [A], np.ones(5))
    assert str(refused.value) == "lfilter: a of shape (1, 3); coefficients in one row are needed. Reshape."


# More filters, and other times

SIGNALS = np.random.default_rng(7).normal(size=(3, 41))
SECTIONS = scipy.signal.butter(4, 0.3, output="sos")
TOP, BOTTOM = scipy.signal.butter(3, 0.2)


def same(use: Any, rtol: float = 1e-10) -> None:
    """Require SciPy's values of what is done with the names of its module."""
    results = [found if isinstance(found, tuple) else (found,) for found in (use(signal), use(scipy.signal))]
    for found, want in zip(*results, strict=True):
        np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol)
        assert (found.shape, found.dtype) == (np.shape(want), np.asarray(want).dtype)


def test_polynomials_of_windows_are_scipys() -> None:
    for mode in ("interp", "mirror", "constant", "nearest", "wrap"):
        for window, order, deriv in ((5, 2, 0), (7, 3, 1), (6, 2, 0)):
            settings = (window, order, deriv, 0.3)
            same(lambda names, m=mode, s=settings: names.savgol_filter(SIGNALS, *s, mode=m, cval=0.2))
            same(lambda names, m=mode, s=settings: names.savgol_filter(SIGNALS.T, *s, axis=0, mode=m))
    same(lambda names: names.savgol_filter(SIGNALS.astype(np.float32), 5, 2), 1e-5)
    same(lambda names: names.savgol_coeffs(5, 2, deriv=1, use="dot"))


def test_medians_of_windows_are_scipys() -> None:
    for size in (None, 3, (1, 3)):
        same(lambda names, s=size: names.medfilt(SIGNALS, s))


def test_filters_forwards_and_backwards_are_scipys() -> None:
    for padtype in ("odd", "even", "constant", None):
        same(lambda names, p=padtype: names.sosfiltfilt(SECTIONS, SIGNALS, padtype=p))
        same(lambda names, p=padtype: names.sosfiltfilt(SECTIONS, SIGNALS.T, axis=0, padtype=p))
    same(lambda names: names.sosfilt_zi(SECTIONS))
    same(lambda names: names.lfiltic(TOP, BOTTOM * 2, [1.0, 2.0, 3.0], [4.0, 5.0]))
    same(lambda names: names.lfiltic([1.0, 2.0], [1.0], [1.0], [3.0]))
    same(lambda names: names.deconvolve(SIGNALS[0, :9], [1.0, 0.5, 0.2]))
    same(lambda names: names.deconvolve([1.0], [1.0, 2.0]))


def test_signals_at_other_times_are_scipys() -> None:
    both = SIGNALS + 1j * SIGNALS[::-1]
    for count, num in ((c, n) for c in (40, 41) for n in (20, 21, 40, 41, 61, 80)):
        same(lambda names, c=count, n=num: names.resample(SIGNALS[:, :c], n, axis=1))
        same(lambda names, c=count, n=num: names.resample(both[:, :c], n, axis=1))
    same(lambda names: names.resample(SIGNALS[0], 20, t=np.arange(41) * 0.1))
    for up, down in ((1, 1), (2, 1), (3, 2), (1, 3), (5, 7)):
        same(lambda names, u=up, d=down: names.upfirdn([1.0, 2.0, -0.5, 0.3], SIGNALS.T, u, d, axis=0))
        same(lambda names, u=up, d=down: names.resample_poly(both, u, d, axis=1))
        same(lambda names, u=up, d=down: names.resample_poly(SIGNALS, u, d, axis=1, window=np.ones(7)))
    for count in (None, 40, 50):
        same(lambda names, n=count: names.hilbert(SIGNALS.T, n, axis=0))


def test_derivatives_of_these() -> None:
    x = SIGNALS[0, :24]
    cases: list[tuple[Any, tuple[Any, ...]]] = [
        (lambda x: signal.savgol_filter(x, 5, 2), (x,)),
        (lambda x: signal.medfilt(x, 3), (x,)),
        (lambda s, x: signal.sosfiltfilt(s, x, padlen=6), (SECTIONS[:1], x)),
        (lambda h, x: signal.upfirdn(h, x, 3, 2), (x[:4], x)),
        (lambda x: signal.resample(x, 17), (x,)),
        (lambda x: np.abs(signal.hilbert(x)), (x,)),
        (lambda x, d: signal.deconvolve(x, d)[0], (x[:6], np.array([1.0, 0.5]))),
        (lambda b, a, y: signal.lfiltic(b, a, y), (TOP, BOTTOM, x[:3])),
    ]
    for function, arguments in some_of(cases, "signals"):
        require_derivatives(function, arguments, rtol=1e-5)
        np.testing.assert_allclose(wg.jit(function)(*arguments), function(*arguments), rtol=1e-9, atol=1e-10)
        lanes = wg.vmap(function)(*[np.stack([z, z * 1.1]) for z in arguments])
        np.testing.assert_allclose(lanes[0], wg.stop_gradient(function(*arguments)), rtol=1e-9, atol=1e-10)


def test_refusals_of_these() -> None:
    with pytest.raises(GraphError) as caught:
        wg.jit(signal.sosfiltfilt)(SECTIONS, SIGNALS)
    assert str(caught.value) == (
        "sosfiltfilt: coefficients that are unknown in a trace or differ between lanes; known ones are needed, because "
        "how many are zero says how far the signal goes on. Pass padlen."
    )
    with pytest.raises(UsageError) as refused:
        signal.medfilt(SIGNALS, 4)
    assert str(refused.value) == "medfilt: kernel_size=4; odd lengths are needed. Add one."
    with pytest.raises(ShapeError) as short:
        signal.savgol_filter(SIGNALS[0, :3], 5, 2)
    assert str(short.value) == (
        "savgol_filter: 3 elements along the axis for windows of 5; a window at least is needed. Pass another mode."
    )


@pytest.mark.parametrize(("up", "down", "text"), [(0, 1, "0 for up"), (1, -1, "-1 for down"), (1.5, 1, "1.5 for up")])
def test_rates_of_upfirdn_are_whole_numbers_above_0(up: Any, down: Any, text: str) -> None:
    with pytest.raises(UsageError, match=f"upfirdn: {text}; a whole number, 1 or more, is needed"):
        signal.upfirdn([1.0, 2.0], np.ones(4), up, down)


def test_signals_without_elements_are_scipys() -> None:
    nothing = np.zeros(0)
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("lfilter", ([1.0, 0.5], [1.0, 0.2], nothing)),
        ("upfirdn", (np.ones(3), nothing)),
        ("resample_poly", (nothing, 3, 2)),
        ("resample_poly", (np.ones(5), 3, 2, 0, 2.5)),  # with the parameter of Kaiser's window
    ]
    for name, arguments in calls:
        np.testing.assert_allclose(getattr(signal, name)(*arguments), getattr(scipy.signal, name)(*arguments))
        lanes = [np.stack([x, x]) if isinstance(x, np.ndarray) else x for x in arguments]
        axes = tuple(0 if isinstance(x, np.ndarray) else None for x in arguments)
        if name != "upfirdn":
            wg.vmap(getattr(signal, name), axes)(*lanes)
    assert signal.medfilt(nothing).shape == (0,)
