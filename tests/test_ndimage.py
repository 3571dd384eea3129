"""Filters of images: SciPy's values, and gradients by images, weights, widths and coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import wengert as wg
from tests.cases import some_of, together
from tests.derivatives import require_derivatives
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
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
        *[("gaussian_filter", (sigma,), {}) for sigma in (0, 0.0, (1.0, 0.0), (0.0, 1.0))],
        ("uniform_filter1d", (3,), {}),
        ("uniform_filter", ((2, 3),), {}),
        *[("sobel", (), {"axis": 0}), ("prewitt", (), {}), ("laplace", (), {})],
        *[("gaussian_laplace", (0.8,), more) for more in ({}, {"axes": (1,), "truncate": 2.0})],
        *[("gaussian_gradient_magnitude", ((0.6, 1.1),), more) for more in ({}, {"axes": (1,)})],
    ]
    for name, arguments, more in calls:
        want = getattr(scipy.ndimage, name)(X, *arguments, **options, **more)
        close(getattr(ndimage, name)(X, *arguments, **options, **more), want)


def test_an_axis_that_is_not_smoothed_is_copied() -> None:
    image = np.eye(3)
    found: Any = ndimage.gaussian_filter(image, 0.0)
    found[0, 0] = 5.0
    assert image[0, 0] == 1.0
    slope = wg.grad(lambda x, s: np.sum(ndimage.gaussian_filter(x, [s, 0.0]) ** 2), argnums=(0, 1))
    for f in (slope, wg.jit(slope, static_argnums=1)):
        np.testing.assert_array_equal(f(image, 0.0)[0], 2 * image)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ndimage.gaussian_filter(X, 1.0, order=-1), "gaussian_filter: -1 for order; a whole number, 0 or more"),
        (lambda: ndimage.gaussian_filter(X, 1.0, radius=1.5), "gaussian_filter: 1.5 for radius; a whole number"),
        (lambda: wg.jit(ndimage.gaussian_filter)(X, 1.0), "gaussian_filter: a sigma .* without a radius; .*radius=int"),
        (lambda: ndimage.zoom(X, -1.0), "zoom: zoom=.* numbers, 0 or more, are needed"),
    ],
)
def test_numbers_that_scipy_refuses_are_refused(call: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()


MODES = ["reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "wrap", "grid-wrap"]
LARGE = RNG.normal(size=(19, 17))
PLACES = np.concatenate([RNG.uniform(-30, 40, (2, 20, 2)), RNG.uniform(0, 16, (2, 20, 2))], axis=1)

Use = Callable[[Any], Any]


def same(use: Use, rtol: float = 1e-11) -> None:
    """Require SciPy's values. Its filters for "reflect" are exact for images that are large enough alone."""
    found, want = use(ndimage), use(scipy.ndimage)
    np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol)
    assert (found.shape, found.dtype) == (want.shape, want.dtype)


@together("mode, order", [(mode, order) for mode in MODES for order in range(6)])
def test_images_between_their_elements_are_scipys(mode: str, order: int) -> None:
    options: dict[str, Any] = {"order": order, "mode": mode, "cval": 0.5}
    same(lambda names: names.map_coordinates(LARGE, PLACES, **options))
    same(lambda names: names.map_coordinates(LARGE, PLACES, **options, prefilter=False))
    same(lambda names: names.map_coordinates(LARGE + 1j * LARGE[::-1], PLACES, **options))
    same(lambda names: names.map_coordinates((LARGE * 100).astype(int), PLACES, **options | {"cval": 3}))
    same(lambda names: names.map_coordinates(LARGE, PLACES, np.float32, **options), 1e-6)
    same(lambda names: names.shift(LARGE, (1.3, -2.7), **options))
    same(lambda names: names.affine_transform(LARGE, [[1.1, 0.2], [-0.3, 0.9]], (0.317, -0.21), **options))
    same(lambda names: names.affine_transform(LARGE, [1.1, 0.8], (0.317, -0.21), (8, 9), **options))
    same(lambda names: names.rotate(LARGE, 33.0, **options))
    same(lambda names: names.rotate(LARGE.reshape(19, 1, 17), 33.0, axes=(0, 2), reshape=False, **options))
    with warnings.catch_warnings(action="ignore"):  # of the modes, as SciPy does
        for grid_mode in (False, True):
            same(lambda names, g=grid_mode: names.zoom(LARGE, (1.7, 0.6), grid_mode=g, **options))
    if order > 1:
        same(lambda names: names.spline_filter(LARGE, order, mode=mode))
        same(lambda names: names.spline_filter1d(LARGE, order, 0, np.float32, mode=mode), 1e-6)


def test_small_images() -> None:
    for mode in ("constant", "mirror", "nearest", "grid-wrap", "wrap", "grid-constant"):
        for order in range(6):
            same(lambda names, o=order, m=mode: names.map_coordinates(LARGE[:2, :1], PLACES, order=o, mode=m))
    for n in (2, 3, 5):  # the splines that SciPy's filters for "reflect" miss go through the elements
        for order in (2, 3, 4, 5):
            found = ndimage.map_coordinates(LARGE[0, :n], [np.arange(n)], order=order, mode="reflect")
            np.testing.assert_allclose(found, LARGE[0, :n], rtol=1e-12)
    same(lambda names: names.zoom(LARGE, 1.0))
    homogeneous = np.array([[1.1, 0.2, 0.3], [-0.3, 0.9, 0.4], [0.0, 0.0, 1.0]])
    same(lambda names: names.affine_transform(LARGE, homogeneous))


INNER = RNG.uniform(0.1, 3.9, (2, 4))
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{
        f"{mode} {order}": (
            lambda x, p, mode=mode, order=order: ndimage.map_coordinates(x, p, order=order, mode=mode),
            (X, INNER * 2 - 1.3),
        )
        for mode, order in (
            ("mirror", 1),
            ("reflect", 2),
            ("wrap", 3),
            ("grid-wrap", 3),
            ("nearest", 4),
            ("constant", 5),
        )
    },
    "shift": (lambda x, s: ndimage.shift(x, s, order=3, mode="mirror"), (X, np.array([0.3, -0.4]))),
    "affine": (
        lambda x, m, b: ndimage.affine_transform(x, m, b, order=3, mode="grid-constant"),
        (X, np.array([[1.1, 0.2], [-0.3, 0.9]]), np.array([0.31, -0.22])),
    ),
    "rotate": (lambda x, a: ndimage.rotate(x, a, reshape=False, order=2, mode="nearest"), (X, 12.0)),
    "zoom": (lambda x: ndimage.zoom(x, 1.6), (X,)),
}


@together("name", FUNCTIONS)
def test_derivatives_between_elements(name: str) -> None:
    require_derivatives(*FUNCTIONS[name], rtol=1e-5)


@together("name", some_of([*FUNCTIONS], "images"))
def test_lanes_and_traces(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    np.testing.assert_allclose(wg.jit(function)(*arguments), function(*arguments), rtol=1e-12, atol=1e-13)
    lanes = [np.stack([x, x * 1.01]) for x in arguments]
    found = wg.vmap(function)(*lanes)
    for i in range(2):
        want = function(*[x[i] for x in lanes])
        np.testing.assert_allclose(found[i], wg.stop_gradient(want), rtol=1e-11, atol=1e-12)


def test_rotated_shapes_need_a_known_angle() -> None:
    same(lambda names: names.rotate(LARGE, 12.0))
    np.testing.assert_allclose(
        wg.grad(lambda a: ndimage.rotate(X, a).sum())(12.0),
        wg.jvp(lambda a: ndimage.rotate(X, a).sum(), (12.0,), (1.0,))[1],
        rtol=1e-10,
    )
    with pytest.raises(GraphError) as caught:
        wg.jit(lambda a: ndimage.rotate(X, a))(12.0)
    assert str(caught.value) == (
        "rotate: an angle that is unknown in a trace or differs between lanes; a known one is needed, on which the "
        "shape depends. Pass reshape=False."
    )


def test_gradients() -> None:
    w = RNG.normal(size=(3, 2))
    check_grads(lambda x, w: ndimage.correlate(x, w), (X, w), order=2)
    check_grads(lambda x, s: ndimage.gaussian_filter(x, s, radius=2), (X, 0.8), order=2)
    check_grads(lambda x, s: ndimage.gaussian_gradient_magnitude(x, s, radius=2), (X, 0.8))
    flat = wg.grad(lambda x: np.sum(ndimage.gaussian_gradient_magnitude(x, 1.0)))(np.zeros((3, 3)))
    np.testing.assert_array_equal(flat, np.zeros((3, 3)))


def test_errors() -> None:
    with pytest.raises(UsageError) as caught:
        ndimage.correlate(X, X, mode="far")
    assert str(caught.value) == (
        "correlate: mode='far'; one of reflect, grid-mirror, constant, grid-constant, nearest, mirror, wrap, grid-wrap "
        "is needed. Pass one of them."
    )
    with pytest.raises(ShapeError) as refused:
        ndimage.correlate(X, [1.0])
    assert str(refused.value) == (
        "correlate: weights with 1 axes for an image with 2; as many axes are needed. Reshape the weights."
    )
    with pytest.raises(UsageError) as caught:
        ndimage.map_coordinates(X, X, order=6)
    assert str(caught.value) == "map_coordinates: order=6; a degree from 0 to 5 is needed. Pass one of them."
    with pytest.raises(UsageError) as caught:
        ndimage.shift(X, 1.0, mode="far")
    assert str(caught.value) == (
        "shift: mode='far'; one of reflect, grid-mirror, constant, grid-constant, nearest, mirror, wrap, grid-wrap is "
        "needed. Pass one of them."
    )
    with pytest.raises(ShapeError) as refused:
        ndimage.affine_transform(X, np.ones((3, 2)))
    assert str(refused.value) == (
        "affine_transform: a matrix of shape (3, 2) from results with 2 axes to an image with 2; a row for each axis "
        "is needed. Transpose it."
    )
    with pytest.raises(ShapeError) as refused:
        ndimage.rotate(X, 10.0, axes=(0, 0))
    assert str(refused.value) == "rotate: axes=(0, 0); two different axes are needed. Correct them."


def test_images_without_rows_in_lanes_have_none() -> None:
    assert wg.vmap(lambda x: ndimage.correlate1d(x, [1.0, 2.0, 3.0]))(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    weights = np.ones((2, 3))
    found = wg.vmap(lambda x, w: ndimage.correlate1d(x, w))(np.zeros((2, 0, 3)), weights)
    assert found.shape == (2, 0, 3)


def test_what_is_no_image_or_dtype_is_refused() -> None:
    with pytest.raises(ShapeError, match="laplace: an image without axes"):
        ndimage.laplace(2.0)
    with pytest.raises(ShapeError, match=r"map_coordinates: an image of shape \(0, 3\); one element at least"):
        ndimage.map_coordinates(np.zeros((0, 3)), np.ones((2, 4)))
    with pytest.raises(DtypeError, match="shift: a Tensor for output; a dtype is needed"):
        ndimage.shift(X, 1, output=wg.tensor(np.zeros_like(X)))  # nothing was written to it


def test_complex_weights_are_conjugated_by_correlations_alone() -> None:
    weights = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    for image in (X, X + 1j * X[::-1]):
        for name in ("correlate", "convolve"):
            close(getattr(ndimage, name)(image, weights), getattr(scipy.ndimage, name)(image, weights))
            name = f"{name}1d"
            close(getattr(ndimage, name)(image, weights[0]), getattr(scipy.ndimage, name)(image, weights[0]))
    image = X + 1j * X[::-1]
    want = scipy.ndimage.gaussian_gradient_magnitude(image, 1.0)
    close(ndimage.gaussian_gradient_magnitude(image, 1.0), want)
