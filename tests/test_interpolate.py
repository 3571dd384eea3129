"""Interpolation: SciPy's values, gradients by samples, places and knots, in lanes and traced."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import wengert as wg
from tests.cases import some_of, together
from tests.derivatives import require_derivatives
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.scipy import interpolate
from wengert.support.hints import names_left_out

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 5, 8))
Y = RNG.normal(size=(8, 2, 3))
LOOP = np.concatenate([Y[:-1], Y[:1]])
INSIDE = RNG.uniform(X[0], X[-1], (4, 3))
ANYWHERE = RNG.uniform(-1, 6, (4, 3))
GRID = (X, np.sort(RNG.uniform(0, 3, 7)), np.sort(RNG.uniform(0, 3, 6)))
VALUES = RNG.normal(size=(8, 7, 6, 2))
AMONG = np.stack([RNG.uniform(p[0], p[-1], (5, 2)) for p in GRID], -1)
AROUND = np.stack([RNG.uniform(p[0] - 0.2, p[-1] + 0.2, (5, 2)) for p in GRID], -1)

Use = Callable[[Any], Any]
"""What is done with the names of SciPy's module, or ours."""


def same_bits(use: Use) -> None:
    found, want = use(interpolate), np.asarray(use(scipy.interpolate))
    np.testing.assert_array_equal(np.asarray(found.detach()), want)
    assert (found.shape, found.dtype) == (want.shape, want.dtype)


def close(use: Use, rtol: float = 1e-13) -> None:
    found, want = use(interpolate), np.asarray(use(scipy.interpolate))
    np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol * np.nanmax(np.abs(want)))
    assert (found.shape, found.dtype) == (want.shape, want.dtype)


ENDS = ["not-a-knot", "clamped", "natural", "periodic", ((1, Y[0]), (2, Y[1])), ("natural", "not-a-knot")]


@together("ends, count", [(ends, count) for ends in ENDS for count in (2, 3, 4, 8)])
def test_cubic_splines_have_scipys_bits(ends: Any, count: int) -> None:
    y = np.concatenate([Y[: count - 1], Y[:1]]) if ends == "periodic" else Y[:count]

    def coefficients(names: Any) -> Any:
        return names.CubicSpline(X[:count], y, bc_type=ends).c

    def values(names: Any) -> Any:
        return names.CubicSpline(X[:count], y, bc_type=ends)(ANYWHERE)

    if count == 3:  # SciPy has a dense system there
        close(coefficients)
        close(values)
    else:
        same_bits(coefficients)
        same_bits(values)


def test_other_cubic_interpolants_have_scipys_bits() -> None:
    for count in (2, 3, 8):
        x, y = X[:count], Y[:count]
        same_bits(lambda names, x=x, y=y: names.PchipInterpolator(x, y)(ANYWHERE))
        same_bits(lambda names, x=x, y=y: names.Akima1DInterpolator(x, y)(ANYWHERE))
        same_bits(lambda names, x=x, y=y: names.Akima1DInterpolator(x, y, method="makima", extrapolate=True)(ANYWHERE))
    flat = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 0.5])
    same_bits(lambda names: names.PchipInterpolator(X, flat)(ANYWHERE))
    same_bits(lambda names: names.Akima1DInterpolator(X, flat)(INSIDE))
    same_bits(lambda names: names.CubicHermiteSpline(X, Y, Y**2)(ANYWHERE))
    same_bits(lambda names: names.CubicSpline(X, np.moveaxis(Y + 1j * Y**2, 0, 1), axis=1)(ANYWHERE))
    same_bits(lambda names: names.pchip_interpolate(X, Y, INSIDE, der=1))


def test_derivatives_and_integrals_are_scipys() -> None:
    def through(names: Any, **options: Any) -> Any:
        return names.CubicSpline(X, LOOP, bc_type="periodic", **options)

    for nu in range(5):
        same_bits(lambda names, nu=nu: through(names)(ANYWHERE, nu))
        same_bits(lambda names, nu=nu: through(names).derivative(nu)(ANYWHERE))
    close(lambda names: through(names).antiderivative(2)(INSIDE))
    for extrapolate in ("periodic", True):
        for a, b in ((-1.3, 7.2), (3.3, 0.2), (1.0, 1.5)):
            close(lambda names, a=a, b=b, e=extrapolate: through(names, extrapolate=e).integrate(a, b))
    assert np.isnan(through(interpolate).integrate(0.0, 9.0, extrapolate=False)).all()
    assert np.isnan(interpolate.PPoly([[1.0, 2.0]], [0.0, 1.0, 2.0])(np.nan))
    assert np.isnan(interpolate.CubicSpline(X, Y, extrapolate=False)(X[-1] + 1)).all()


@together("k", range(6))
def test_splines_through_samples_have_scipys_bits(k: int) -> None:
    def through(names: Any) -> Any:
        return names.make_interp_spline(X, Y, k)

    same_bits(lambda names: through(names)(ANYWHERE))
    same_bits(lambda names: through(names).c)
    close(lambda names: through(names).integrate(-1.0, 6.0))
    close(lambda names: through(names).antiderivative(2)(ANYWHERE))
    same_bits(lambda names: through(names)(INSIDE, extrapolate="periodic"))
    if k:
        close(lambda names: through(names).integrate(6.0, -1.0, extrapolate=False))
        close(lambda names: through(names).derivative()(ANYWHERE))
        same_bits(lambda names: through(names)(ANYWHERE, nu=1))
    if k > 1:
        for count in (4, 8):
            x, y = X[:count], np.concatenate([Y[: count - 1], Y[:1]])
            close(lambda names, x=x, y=y: names.make_interp_spline(x, y, k, bc_type="periodic")(ANYWHERE))


def test_splines_with_conditions_or_knots_are_scipys() -> None:
    pairs = ([(1, Y[0])], [(2, Y[1])])
    for ends in ("natural", "clamped", ("natural", "clamped"), pairs, ([(1, Y[0]), (2, Y[1])], None)):
        close(lambda names, ends=ends: names.make_interp_spline(X, Y, bc_type=ends)(ANYWHERE))
    knots = np.concatenate([[X[0]] * 4, X[2:-2] + 0.01, [X[-1]] * 4])
    close(lambda names: names.make_interp_spline(X, Y, t=knots)(ANYWHERE))
    few = np.concatenate([[X[0]] * 4, X[3:5] + 0.01, [X[-1]] * 4])
    close(lambda names: names.make_lsq_spline(X, Y, few)(ANYWHERE), 1e-12)
    close(lambda names: names.make_lsq_spline(X, np.moveaxis(Y, 0, 1), few, w=X + 1, axis=1)(ANYWHERE), 1e-12)
    twice = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0])
    same_bits(lambda names: names.BSpline(twice, Y[:6], 2)(ANYWHERE))
    same_bits(lambda names: names.BSpline(twice, np.moveaxis(Y[:6], 0, 2) * 1j, 2, axis=2)(ANYWHERE, 1))
    same_bits(lambda names: names.BSpline.basis_element([0.0, 1.0, 2.0, 4.0])(ANYWHERE))


@together("k", range(1, 6))
def test_fitpacks_names(k: int) -> None:
    y = Y[:, 0, 0]
    for i in (0, 1):
        close(lambda names, i=i: names.splrep(X, y, k=k)[i])
    for ext in (0, 1, 3):
        close(lambda names, ext=ext: names.splev(ANYWHERE, names.splrep(X, y, k=k), ext=ext))
    close(lambda names: names.splint(-1.0, 3.0, names.splrep(X, y, k=k)))
    close(lambda names: names.splev(INSIDE, names.splder(names.splrep(X, y, k=k))))
    close(lambda names: names.splev(INSIDE, names.splantider(names.splrep(X, y, k=k), 2)))

    def through(names: Any) -> Any:
        return names.InterpolatedUnivariateSpline(X, y, k=k)

    close(lambda names: through(names)(ANYWHERE))
    close(lambda names: through(names)(ANYWHERE, ext="const"))
    close(lambda names: through(names).derivatives(2.0))
    close(lambda names: through(names).integral(0.5, 9.0))
    close(lambda names: through(names).derivative()(INSIDE))
    close(lambda names: through(names).get_knots())


KINDS = ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 5]


@together("kind", KINDS)
def test_interp1d_has_scipys_bits(kind: Any) -> None:
    outside: dict[str, Any]
    for outside in ({}, {"bounds_error": False}, {"fill_value": "extrapolate"}, {"fill_value": (1.0, 2.0)}):
        places = INSIDE if outside.get("bounds_error") is None and "fill_value" not in outside else ANYWHERE
        options = {"bounds_error": False} | outside if outside else {}
        same_bits(lambda names, o=options, p=places: names.interp1d(X, Y, kind, axis=0, **o)(p))
        same_bits(lambda names, o=options, p=places: names.interp1d(X[::-1], Y[::-1, 0, 0], kind, **o)(p))
    same_bits(lambda names: names.interp1d(X, Y.astype(np.float32), kind, axis=0)(INSIDE))
    same_bits(lambda names: names.interp1d(X, Y * 1j, kind, axis=0)(INSIDE))
    same_bits(lambda names: names.interp1d(np.arange(8), np.arange(8) ** 2, kind)([1, 2, 7]))


def test_polynomials_are_scipys() -> None:
    places = np.concatenate([INSIDE.ravel(), X])
    repeated = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 3.0])
    for name, x in (("BarycentricInterpolator", X), ("KroghInterpolator", X), ("KroghInterpolator", repeated)):
        close(lambda names, n=name, x=x: getattr(names, n)(x, Y)(places), 1e-11)
        close(lambda names, n=name, x=x: getattr(names, n)(x, Y)(1.5), 1e-11)
        close(lambda names, n=name, x=x: getattr(names, n)(x, Y).derivative(places, 2), 1e-9)
        close(lambda names, n=name, x=x: getattr(names, n)(x, Y).derivatives(places, 3), 1e-9)
        close(lambda names, n=name, x=x: getattr(names, n)(x, np.moveaxis(Y, 0, 2), axis=2)(INSIDE), 1e-11)
    close(lambda names: names.barycentric_interpolate(X, Y, INSIDE, der=1), 1e-9)
    close(lambda names: names.krogh_interpolate(X, Y, INSIDE, der=[0, 2]), 1e-9)
    found = interpolate.BarycentricInterpolator(X, Y)(X)
    np.testing.assert_array_equal(found.detach(), Y)


METHODS = ["linear", "nearest", "slinear", "cubic_legacy", "quintic_legacy", "pchip"]


@together("method", METHODS)
def test_grids_are_scipys(method: str) -> None:
    ours = method if method != "cubic_legacy" else "cubic"  # SciPy's own "cubic" solves by iteration, to 1e-6

    def through(names: Any, **options: Any) -> Any:
        chosen = ours if names is interpolate else method
        return names.RegularGridInterpolator(GRID, VALUES, chosen, **options)

    close(lambda names: through(names)(AMONG), 1e-12)
    for fill_value in (np.nan, None):
        close(lambda names, f=fill_value: through(names, bounds_error=False, fill_value=f)(AROUND), 1e-11)


def test_other_grids_are_scipys() -> None:
    plane = VALUES[:, :, 0, 0]
    close(lambda names: names.RegularGridInterpolator((X[::-1],), Y * 1j)(INSIDE.reshape(-1, 1)))
    close(lambda names: names.RegularGridInterpolator(GRID, VALUES, "slinear")(AMONG, nu=(1, 0, 1)))
    close(lambda names: names.interpn(GRID[:2], plane, (AMONG[..., 0], AMONG[..., 1])))
    close(lambda names: names.interpn(GRID[:2], plane, AMONG[0, :, :2], "splinef2d", bounds_error=False))
    x, y = np.sort(AROUND[:, 0, 0]), np.sort(AROUND[:, 0, 1])
    u, v = np.sort(AMONG[:, 0, 0]), np.sort(AMONG[:, 0, 1])
    for kx, ky in ((3, 3), (2, 4), (1, 5)):

        def through(names: Any, kx: int = kx, ky: int = ky) -> Any:
            return names.RectBivariateSpline(*GRID[:2], plane, kx=kx, ky=ky)

        close(lambda names: through(names)(x, y), 1e-12)
        close(lambda names: through(names).ev(x, y), 1e-12)
        close(lambda names: through(names)(u, v, dy=1), 1e-12)
        close(lambda names: through(names).ev(u, v, dy=1), 1e-12)
        close(lambda names: through(names).integral(0.5, 2.0, 0.5, 9.0), 1e-12)
        close(lambda names: through(names).tck[2], 1e-12)


# In every mode

Q = np.array([0.3, 1.8, 2.2, 0.9])
Z = np.random.default_rng(3).normal(size=(6, 2))
P = np.array([0.0, 0.4, 1.1, 1.5, 2.3, 3.0])
PLANE = np.random.default_rng(4).normal(size=(6, 5))
S = np.array([0.0, 0.6, 1.0, 1.7, 3.0])

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "not-a-knot": (lambda x, y, q: interpolate.CubicSpline(x, y)(q), (P, Z, Q)),
    "natural": (lambda x, y, q: interpolate.CubicSpline(x, y, bc_type="natural")(q), (P, Z, Q)),
    "slopes at the ends": (
        lambda x, y, q, d: interpolate.CubicSpline(x, y, bc_type=((1, d), (2, -d)))(q),
        (P, Z[:, 0], Q, 0.7),
    ),
    "periodic": (
        lambda x, y, q: interpolate.CubicSpline(x, np.concatenate([y, y[:1]]), bc_type="periodic")(q + 4.0),
        (P, Z[:5], Q),
    ),
    "complex": (lambda x, y, q: np.abs(interpolate.CubicSpline(x, y[:, 0] + 1j * y[:, 1])(q)), (P, Z, Q)),
    "integral": (lambda x, y, a, b: interpolate.CubicSpline(x, y).integrate(a, b), (P, Z, 0.2, 2.1)),
    "derivative": (lambda x, y, q: interpolate.CubicSpline(x, y).derivative()(q), (P, Z, Q)),
    "pchip": (lambda x, y, q: interpolate.PchipInterpolator(x, y)(q), (P, Z, Q)),
    "akima": (lambda x, y, q: interpolate.Akima1DInterpolator(x, y)(q), (P, Z, Q)),
    "makima": (lambda x, y, q: interpolate.Akima1DInterpolator(x, y, method="makima")(q), (P, Z, Q)),
    "hermite": (lambda x, y, s, q: interpolate.CubicHermiteSpline(x, y, s)(q), (P, Z, Z**2, Q)),
    "quintic": (lambda x, y, q: interpolate.make_interp_spline(x, y, 5)(q), (P, Z, Q)),
    "quadratic": (lambda x, y, q: interpolate.make_interp_spline(x, y, 2)(q), (P, Z, Q)),
    "clamped": (lambda x, y, q: interpolate.make_interp_spline(x, y, bc_type="clamped")(q), (P, Z, Q)),
    "periodic splines": (
        lambda x, y, q: interpolate.make_interp_spline(x, np.concatenate([y, y[:1]]), bc_type="periodic")(q),
        (P, Z[:5], Q),
    ),
    "knots": (
        lambda t, c, q: interpolate.BSpline(t, c, 2)(q),
        (np.array([-1.1, -0.5, 0.0, 1.0, 1.5, 2.4, 3.0, 3.5, 4.3]), Z, Q),
    ),
    "integral of a spline": (
        lambda x, y, a, b: interpolate.make_interp_spline(x, y).integrate(a, b, extrapolate=False),
        (P, Z, 0.2, 2.1),
    ),
    "least squares": (
        lambda x, y, w, t, q: interpolate.make_lsq_spline(x, y, t, 2, w)(q),
        (P, Z, P + 1, np.array([-0.3, -0.2, -0.1, 1.7, 3.1, 3.2, 3.3]), Q),
    ),
    "splev": (lambda x, y, q: interpolate.splev(q, interpolate.splrep(x, y), der=1), (P, Z[:, 0], Q)),
    "barycentric": (lambda x, y, q: interpolate.BarycentricInterpolator(x, y)(q), (P, Z, Q)),
    "barycentric slopes": (lambda x, y, q: interpolate.BarycentricInterpolator(x, y).derivative(q), (P, Z, Q)),
    "krogh": (lambda x, y, q: interpolate.KroghInterpolator(x, y)(q), (P, Z, Q)),
    "linear": (lambda x, y, q: interpolate.interp1d(x, y, axis=0)(q), (P, Z, Q)),
    "lines": (lambda x, y, q: interpolate.interp1d(x, y)(q), (P, Z[:, 0], Q)),
    "cubic": (lambda x, y, q: interpolate.interp1d(x, y, "cubic", axis=0, fill_value="extrapolate")(q), (P, Z, Q)),
    "nearest": (lambda x, y, q: interpolate.interp1d(x, y, "nearest", axis=0)(q), (P, Z, Q)),
    "filled": (
        lambda x, y, q, v: interpolate.interp1d(x, y, bounds_error=False, fill_value=v)(q * 3),
        (P, Z[:, 0], Q, 0.4),
    ),
    "grid": (
        lambda x, y, v, q: interpolate.interpn((x, y), v, (q, q[::-1])),
        (P, S, PLANE, Q),
    ),
    "grid of splines": (
        lambda x, y, v, q: interpolate.RegularGridInterpolator((x, y), v, "cubic")((q, q[::-1])),
        (P, S, PLANE, Q),
    ),
    "grid of pchips": (
        lambda x, y, v, q: interpolate.RegularGridInterpolator((x, y), v, "pchip")((q, q[::-1])),
        (P, S, PLANE, Q),
    ),
    "bivariate": (
        lambda x, y, v, q: interpolate.RectBivariateSpline(x, y, v, kx=2)(q, q[::-1], grid=False),
        (P, S, PLANE, Q),
    ),
    "bivariate integral": (
        lambda x, y, v, q: interpolate.RectBivariateSpline(x, y, v).integral(q[0], q[1], q[0], q[2]),
        (P, S, PLANE, Q),
    ),
}


@together("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    require_derivatives(*FUNCTIONS[name])


@together("name", some_of([*FUNCTIONS], "traced"))
def test_traced(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    every = tuple(range(len(arguments)))
    both = wg.value_and_grad(lambda *xs: np.sum(function(*xs) ** 2), every)
    (found, slopes), (want, wanted) = wg.jit(both)(*arguments), both(*arguments)
    np.testing.assert_allclose(found, want, rtol=1e-12)
    for a, b in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@together("name", some_of([*FUNCTIONS], "lanes"))
def test_lanes(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    for which in range(len(arguments)):
        lanes = [np.stack([x, x * 1.01]) if i == which else x for i, x in enumerate(arguments)]
        axes = tuple(0 if i == which else None for i in range(len(arguments)))
        with warnings.catch_warnings(action="ignore"):  # knots of each lane are searched by themselves
            found = wg.vmap(function, axes)(*lanes)
        for i in range(2):
            own = [x[i] if j == which else x for j, x in enumerate(lanes)]
            np.testing.assert_allclose(found[i], function(*own).detach(), rtol=1e-11, atol=1e-12)


def test_derivatives_at_the_places_of_samples() -> None:
    """The barycentric formula divides by the distance; there the polynomial has derivatives like anywhere."""
    for make in (interpolate.BarycentricInterpolator, interpolate.KroghInterpolator):
        slope = wg.elementwise_grad(lambda q, make=make: make(P, P**3)(q))
        np.testing.assert_allclose(slope(P), 3 * P**2, atol=1e-10)
        np.testing.assert_allclose(wg.elementwise_grad(slope)(P), 6 * P, atol=1e-8)


@pytest.mark.skipif(not scipy.__version__.startswith("1.17."), reason="the list is of the names of SciPy 1.17")
def test_every_name_of_scipy_is_there_or_left_out_for_a_reason() -> None:
    names = {name for name in dir(scipy.interpolate) if not name.startswith("_")}
    assert names - set(interpolate.__all__) - set(names_left_out("scipy.interpolate")) == set()
    assert not set(interpolate.__all__) & set(names_left_out("scipy.interpolate"))


# Errors


def test_places_outside_are_an_error_also_of_jitted_functions() -> None:
    through = interpolate.interp1d(P, Z, axis=0)
    text = (
        "interp1d: a place outside of them; places among the samples are needed. Say what is outside, or leave it out."
    )
    for call in (through, wg.jit(through), wg.grad(lambda q: through(q).sum()), wg.vmap(through)):
        with pytest.raises(ValueError, match="a place outside") as caught:
            call(np.array([1.0, 9.0]))
        assert str(caught.value) == text
    with pytest.raises(ValueError, match="a place outside"):
        interpolate.interpn((P, S), PLANE, (Q, Q + 3))
    with pytest.raises(ValueError, match="a place outside"):
        interpolate.splev(9.0, interpolate.splrep(P, Z[:, 0]), ext=2)


def refused(kind: type[Exception], text: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert str(caught.value) == text


def test_errors() -> None:
    one = np.ones(6)
    refused(
        ValueError,
        "CubicSpline: places that do not increase; finite ones, each greater than the last, are needed. Sort them.",
        interpolate.CubicSpline,
        P[::-1],
        Z,
    )
    refused(
        ShapeError,
        "CubicSpline: 6 places for samples of shape (5,); as many samples along axis 0 are needed. "
        "Correct one of them.",
        interpolate.CubicSpline,
        P,
        one[:5],
    )
    refused(
        ShapeError,
        "CubicSpline: places of shape (2, 3) and dtype float64; a row of 2 real numbers or more is needed. "
        "Correct them.",
        interpolate.CubicSpline,
        P.reshape(2, 3),
        one,
    )
    needed = "'not-a-knot', 'periodic', 'clamped', 'natural' or (1 or 2, value) is needed for each end"
    refused(
        UsageError,
        f"CubicSpline: bc_type with 'free'; {needed}. Pass one of them.",
        interpolate.CubicSpline,
        P,
        one,
        bc_type="free",
    )
    refused(
        ValueError,
        "CubicSpline: samples of a periodic spline; a last one that is the first is needed. Make them equal.",
        interpolate.CubicSpline,
        P,
        P,
        bc_type="periodic",
    )
    refused(
        UsageError,
        "CubicSpline: bc_type=('periodic', 'periodic'); a condition for each end, or 'periodic' for both, is needed. "
        "Pass bc_type='periodic'.",
        interpolate.CubicSpline,
        P,
        P,
        bc_type=("periodic", "periodic"),
    )
    refused(
        DtypeError,
        "PchipInterpolator: complex samples; real ones are needed. Pass the real and imaginary parts.",
        interpolate.PchipInterpolator,
        P,
        one * 1j,
    )
    refused(
        ShapeError,
        "make_interp_spline: 3 samples for degree 3; 4 are needed. Choose a lower degree.",
        interpolate.make_interp_spline,
        P[:3],
        one[:3],
    )
    refused(
        ShapeError,
        "BSpline: 2 coefficients for 6 knots and degree 1; 4 are needed. Correct them.",
        interpolate.BSpline,
        P,
        one[:2],
        1,
    )
    refused(
        UsageError,
        "splrep: s=0.5; its default is needed. Use make_interp_spline.",
        interpolate.splrep,
        P,
        one,
        s=0.5,
    )
    refused(
        UsageError,
        "interp1d: bounds_error=True and fill_value='extrapolate'; one of them is needed. Leave one out.",
        interpolate.interp1d,
        P,
        one,
        bounds_error=True,
        fill_value="extrapolate",
    )
    refused(
        ShapeError,
        "RegularGridInterpolator: places of shapes [(6,), (6,)] for samples of shape (6, 5); a row for each axis is "
        "needed. Correct them.",
        interpolate.RegularGridInterpolator,
        (P, P),
        PLANE,
    )
    refused(
        ValueError,
        "KroghInterpolator: equal places apart; those that are equal side by side are needed. Sort them.",
        interpolate.KroghInterpolator,
        [0.0, 1.0, 0.0],
        [1.0, 2.0, 3.0],
    )


@pytest.mark.parametrize(("first", "last"), [(4, 4), (5, 4), (4, 5), (5, 5)])
def test_knots_more_than_needed_at_the_ends_are_scipys(first: int, last: int) -> None:
    t = np.concatenate([np.zeros(first), [1.0, 1.5, 1.5], np.full(last, 3.0)])
    c, x = np.arange(len(t) - 4.0) ** 2, np.array([-0.5, 0.0, 0.5, 1.5, 2.5, 3.0, 3.5])
    for nu in range(4):
        want = scipy.interpolate.BSpline(t, c, 3)(x, nu)
        np.testing.assert_allclose(interpolate.BSpline(t, c, 3)(x, nu), want, rtol=1e-13, atol=1e-13)
        traced = wg.jit(lambda t, nu=nu: interpolate.BSpline(t, c, 3)(x, nu))
        np.testing.assert_allclose(traced(t), want, rtol=1e-13, atol=1e-13)


def test_splines_of_plain_tensors_are_computed_as_those_that_are_recorded() -> None:
    x, y, z = np.linspace(0, 1, 7), np.cos(np.arange(7.0)), np.array([[-0.5, 0.3], [np.nan, 2.0]])
    makers = [
        lambda y: interpolate.make_interp_spline(x, y)(z),
        lambda y: interpolate.make_interp_spline(x, y, 2)(z, 1),
        lambda y: interpolate.make_interp_spline(x, y, bc_type=([(1, 0.5)], [(2, 0.0)]))(z, 5),
        lambda y: interpolate.make_lsq_spline(x, y, x[[0, 0, 3, 6, 6]], 1)(0.25),
        lambda y: interpolate.CubicSpline(x, y, bc_type=((1, wg.tensor(0.5)), "natural"))(z, 1),
        lambda y: interpolate.PchipInterpolator(x, y)(z),
        lambda y: interpolate.Akima1DInterpolator(x, y)(z),
    ]
    for make in makers:
        recorded = make(wg.tensor(y, requires_grad=True))
        assert recorded.requires_grad
        found = make(wg.tensor(y))
        assert type(found) is wg.Tensor
        assert not found.requires_grad
        np.testing.assert_array_equal(found.numpy(), recorded.detach().numpy())


def test_division_by_zero_in_splines_is_told_at_the_users_line() -> None:
    with pytest.warns(RuntimeWarning) as told:
        interpolate.BSpline([0.0, 0.0, 1.0, 1.0], wg.tensor([1.0, np.inf]), 1)(wg.tensor([0.0, 0.5]))
    assert told[0].filename == __file__


@together("places", [[3.0, 2.0, 2.0, 0.5], [0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0], [4.0, 3.0, 1.0, 0.0]])
def test_breaks_of_piecewise_polynomials_may_go_down_and_be_equal(places: list[float]) -> None:
    c, v = RNG.normal(size=(3, 3, 2)), np.array([-1.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, np.nan])
    for extrapolate in (True, False, 0):
        theirs = scipy.interpolate.PPoly(c, np.array(places), extrapolate)
        for nu in (0, 1, 3):

            def value(c: Any, x: Any, nu: int = nu, extrapolate: Any = extrapolate) -> Any:
                return interpolate.PPoly(c, x, extrapolate)(v, nu)

            want, arguments = theirs(v, nu), (c, np.array(places))
            for found in (value(*arguments), wg.jit(value)(*arguments)):
                np.testing.assert_allclose(found, want, rtol=1e-12)
            lanes = wg.vmap(value)(*(np.stack([x, x]) for x in arguments))
            np.testing.assert_allclose(lanes[1], want, rtol=1e-12)
        ours = interpolate.PPoly(c, np.array(places), extrapolate)
        np.testing.assert_allclose(ours.antiderivative()(v), theirs.antiderivative()(v), rtol=1e-12)
        np.testing.assert_allclose(ours.integrate(0.7, 1.8), theirs.integrate(0.7, 1.8), rtol=1e-12)


def test_whether_interpolants_go_on_is_a_truth() -> None:
    x, y = np.arange(5.0), np.cos(np.arange(5.0))
    for name in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
        assert np.isnan(getattr(interpolate, name)(x, y, extrapolate=0)(9.0).item())  # it went on
        with pytest.raises(DtypeError, match="bool: a Tensor of shape"):
            getattr(interpolate, name)(x, y, extrapolate=wg.tensor([1.0, 2.0]))
    found = interpolate.RectBivariateSpline(x, x, y[:, None] * y)(np.array([[0.5, 1.5]]), 0.7)
    np.testing.assert_allclose(found, scipy.interpolate.RectBivariateSpline(x, x, y[:, None] * y)([[0.5, 1.5]], 0.7))
