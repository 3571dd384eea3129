"""Filters of images: SciPy's values, and gradients by images, weights, widths and coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

from wengert.errors import ShapeError, UsageError
from wengert.scipy import ndimage
from wengert.testing import check_grads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 6))


def close(found: Any, want: Any) -> None:
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-13)
    assert (found.shape, found.dtype) == (want.shape, want.dtype)


@pytest.mark.parametrize("mode", ["reflect", "constant", "nearest", "mirror", "wrap"])
def test_filters_are_scipys(mode: str) -> None:
    w, row = RNG.normal(size=(3, 2)), RNG.normal(size=4)
    options = {"mode": mode, "cval": 0.5}
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("correlate", (w,), {}),
        ("convolve", (w,), {"origin": (1, 0)}),
        ("correlate1d", (row,), {"axis": 0}),
        ("convolve1d", (row,), {"origin": 1}),
        ("gaussian_filter1d", (0.8,), {"axis": 0, "order": 2}),
        ("gaussian_filter", ((0.6, 1.1),), {"order": (1, 0)}),
        ("gaussian_filter", (1.0,), {"radius": 2, "axes": (1,)}),
        ("uniform_filter1d", (3,), {}),
        ("uniform_filter", ((2, 3),), {}),
        *[("sobel", (), {"axis": 0}), ("prewitt", (), {}), ("laplace", (), {})],
    ]
    for name, arguments, more in calls:
        want = getattr(scipy.ndimage, name)(X, *arguments, **options, **more)
        close(getattr(ndimage, name)(X, *arguments, **options, **more), want)


@pytest.mark.parametrize("mode", ["constant", "nearest"])
@pytest.mark.parametrize("order", [0, 1])
def test_images_between_their_elements_are_scipys(order: int, mode: str) -> None:
    places = RNG.uniform(-2, 7, (2, 3, 20))
    want = scipy.ndimage.map_coordinates(X, places, order=order, mode=mode, cval=0.5)
    close(ndimage.map_coordinates(X, places, order, mode, 0.5), want)


def test_gradients() -> None:
    w = RNG.normal(size=(3, 2))
    check_grads(lambda x, w: ndimage.correlate(x, w), (X, w), order=2)
    check_grads(lambda x, s: ndimage.gaussian_filter(x, s, radius=2), (X, 0.8), order=2)
    check_grads(lambda x, p: ndimage.map_coordinates(x, p), (X, RNG.uniform(0.1, 3.9, (2, 4))), order=2)


def test_errors() -> None:
    with pytest.raises(UsageError) as caught:
        ndimage.correlate(X, X, mode="far")
    assert str(caught.value) == (
        "correlate: mode='far'; one of reflect, constant, nearest, mirror, wrap is needed. Pass one of them."
    )
    with pytest.raises(ShapeError) as refused:
        ndimage.correlate(X, [1.0])
    assert str(refused.value) == (
        "correlate: weights with 1 axes for an image with 2; as many axes are needed. Reshape the weights."
    )
    with pytest.raises(UsageError) as caught:
        ndimage.map_coordinates(X, X, order=3)
    assert str(caught.value) == (
        "map_coordinates: order=3 and mode='constant'; order 0 or 1, and mode 'constant' or 'nearest', are needed. "
        "Pass these."
    )
