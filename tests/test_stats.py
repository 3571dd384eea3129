"""Distributions: values are SciPy's to 1e-13, inside and outside of supports; derivatives agree with differences."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats as ss

import wengert as wg
import wengert.scipy.stats as ws
from tests.cases import some_of, together
from wengert.errors import ShapeError, UsageError
from wengert.support.hints import names_left_out
from wengert.testing import check_grads

SHAPES: dict[str, tuple[float, ...]] = {
    "beta": (2.3, 1.7),
    "chi2": (3.4,),
    "f": (5.2, 7.1),
    "gamma": (2.6,),
    "genextreme": (0.2,),
    "genpareto": (0.15,),
    "invgamma": (3.3,),
    "invgauss": (1.4,),
    "lognorm": (0.7,),
    "loguniform": (0.4, 2.9),
    "lomax": (2.4,),
    "pareto": (2.6,),
    "powerlaw": (1.7,),
    "skewnorm": (1.6,),
    "t": (4.5,),
    "truncnorm": (-0.7, 1.9),
    "vonmises": (1.3,),
    "weibull_min": (1.8,),
    "bernoulli": (0.3,),
    "binom": (7, 0.3),
    "geom": (0.3,),
    "nbinom": (3.5, 0.4),
    "poisson": (2.7,),
    "zipf": (6.5,),
}
CONTINUOUS = [name for name in ws.__all__ if hasattr(ss, name) and hasattr(getattr(ss, name), "ppf")]
DISCRETE = [name for name in CONTINUOUS if hasattr(getattr(ss, name), "pmf")]
CONTINUOUS = [name for name in CONTINUOUS if name not in DISCRETE]
POINTS = np.array([-3.0, -0.5, 0.3, 0.7, 1.0, 1.7, 2.5, 9.0, np.nan, np.inf, -np.inf])
NUMBERS = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 1.5, 6.0])
PROBABILITIES = np.array([0.0, 0.1, 0.5, 0.9, 1.0, 1.1, np.nan, 1e-12])
WITHOUT_ENTROPY = ("skewnorm",)
SIGNED = ("genextreme", "genpareto")
MOMENTS = ("entropy", "mean", "var", "std")

ROUGH = {"vonmises": 1e-12, "skewnorm": 1e-12, "zipf": 2e-9}
"""How near SciPy's values are that it integrates or sums."""

GENERATOR = np.random.default_rng(1)
ROOT, OTHER = GENERATOR.normal(size=(3, 3)), GENERATOR.normal(size=(3, 3))
MATRIX, SECOND = ROOT @ ROOT.T + np.eye(3), OTHER @ OTHER.T + np.eye(3)
SHARES, ALPHA = np.array([0.2, 0.3, 0.5]), np.array([0.7, 1.5, 2.2])


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def require_same(name: str, method: str, *args: Any, **kwds: Any) -> None:
    found = getattr(getattr(ws, name), method)(*args, **kwds)
    want = getattr(getattr(ss, name), method)(*args, **kwds)
    assert type(found) is wg.Tensor
    assert found.shape == np.shape(want)
    np.testing.assert_allclose(found.numpy(), want, rtol=ROUGH.get(name, 1e-13), err_msg=method)


SLOW = [pytest.param("vonmises", marks=pytest.mark.long)]  # SciPy integrates for its moments


@pytest.mark.parametrize("name", [*[x for x in CONTINUOUS if x != "vonmises"], *SLOW])
def test_continuous(name: str) -> None:
    shapes, where = SHAPES.get(name, ()), {"loc": 0.3, "scale": 1.4}
    for method in ("logpdf", "pdf", "logcdf", "cdf", "sf", "logsf"):
        points = POINTS[:-2] if name == "f" else POINTS  # at infinity SciPy's is NaN, the limit here
        require_same(name, method, points, *shapes, **where)
        require_same(name, method, 0.8, *shapes, 0.1, np.array([1.0, 0.0, -1.0]))
    for method in ("ppf", "isf"):
        lost = name in ("f", "halfnorm", "skewnorm")  # of 1e-12 SciPy's lose half
        probabilities = PROBABILITIES[:-1] if lost else PROBABILITIES
        require_same(name, method, probabilities, *shapes, **where)
    for method in MOMENTS[name in WITHOUT_ENTROPY :]:
        require_same(name, method, *shapes, **where)
    if shapes:
        require_same(name, "pdf", POINTS, *[np.inf if name in (*SIGNED, "skewnorm") else -9.0 for _ in shapes])


@pytest.mark.parametrize("name", SIGNED)
def test_extremes_with_shapes_of_either_sign_and_zero(name: str) -> None:
    c = np.array([-1.5, -0.3, -1e-9, 0.0, 1e-9, 0.01, 0.3, 1.0, 1.4])
    for method in ("logpdf", "pdf", "logcdf", "cdf", "sf", "logsf"):
        require_same(name, method, POINTS[:, np.newaxis], c)
    for method in ("ppf", "isf"):
        require_same(name, method, PROBABILITIES[:, np.newaxis], c)
    for method in MOMENTS:
        require_same(name, method, c[(np.abs(c) > 0.1) | (c == 0)])  # SciPy's lose half of the digits between
    distribution = getattr(ws, name)
    for value in (-0.3, 0.0, 0.3):
        point, shape = np.array(0.8), np.array(value)
        both = lambda x, c: distribution.logpdf(x, c) + distribution.cdf(x, c) + distribution.ppf(x, c)
        check_grads(both, (point, shape), order=2)
        check_grads(lambda c: distribution.mean(c) + distribution.var(c) + distribution.entropy(c), (shape,), order=2)
    assert np.all(np.isfinite(wg.grad(lambda c: np.sum(distribution.cdf(np.array([[-9.0], [9.0]]), c)))(c)))


def test_python_numbers_are_told_apart_from_their_truths_as_arrays_are() -> None:
    for argnums, point in (((1, 2), (-9.5, -10.0, -9.0)), ((0, 1, 2), (0.3, -0.5, 1.5))):
        slope = wg.value_and_grad(ws.truncnorm.logpdf, argnums=argnums)
        np.testing.assert_array_equal(slope(*point)[0], slope(*map(np.array, point))[0])
        np.testing.assert_allclose(slope(*point)[1], slope(*map(np.array, point))[1], rtol=1e-15)
    value, slopes = wg.value_and_grad(ws.truncnorm.logpdf, argnums=(1, 2))(-9.5, -10.0, -9.0)
    assert value == pytest.approx(-2.41572190092385, rel=1e-14)  # it was infinite
    np.testing.assert_allclose(slopes, (0.000681835657256489, -9.10913812366967), rtol=1e-12)


def test_moments_where_formulas_cancel_or_a_location_is_nan() -> None:
    mu = np.array([1e-4, 0.03, 0.039, 0.041, 0.05, 1.0, 50.0])
    require_same("invgauss", "entropy", mu)
    require_same("t", "entropy", np.array([3.0, 150.0, 1e12, np.inf]))
    require_same("t", "var", np.array([2.5, np.inf]))
    for name in ("norm", "expon", "poisson", "geom"):
        require_same(name, "std", *([0.5] if name in ("poisson", "geom") else []), np.array([np.nan, 2.0]))
    assert np.all(np.isfinite(wg.grad(lambda mu: np.sum(ws.invgauss.entropy(mu)))(mu)))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("skewnorm", (-2.0, 0.0, 6.0)), ("invgauss", (0.05, 0.7, 9.0)), ("vonmises", (0.1, 45.0))],
)
def test_quantiles_that_scipy_finds_by_iteration(name: str, shapes: tuple[float, ...]) -> None:
    distribution, q = getattr(ws, name), np.array([1e-9, 0.02, 0.3, 0.6, 0.999])
    for shape in shapes:
        if (name, shape) != ("vonmises", 45.0):  # SciPy's of many degrees are approximations
            require_same(name, "ppf", q[1:], shape)
            require_same(name, "isf", q[1:], shape)
        for method, back in (("ppf", "cdf"), ("isf", "sf")):
            found = wg.grad(lambda q, a, m=method: np.sum(getattr(distribution, m)(q, a)))(q, shape)
            density = getattr(ss, name).pdf(getattr(distribution, method)(q, shape), shape)
            np.testing.assert_allclose(np.abs(found), 1 / density, rtol=1e-9)
            there = lambda a, m=method, b=back: getattr(distribution, b)(getattr(distribution, m)(0.02, a), a)
            assert wg.grad(there)(shape) == pytest.approx(0.0, abs=1e-8)
            assert wg.grad(wg.grad(there))(shape) == pytest.approx(0.0, abs=1e-6)
    numbers = lambda a: distribution.rvs(a, key=wg.random.key(1), size=(5,))
    assert np.all(np.isfinite(wg.jit(wg.jacfwd(numbers))(shapes[-1])))


@pytest.mark.parametrize("kappa", [0.0, 1e-3, 3.0, 40.0, 500.0, 1e5, 1e8])
def test_circular_numbers_of_any_concentration(kappa: float) -> None:
    width = 1 / np.sqrt(max(kappa, 1.0))
    exact = 1e-12 if kappa < 50 else 1e-6  # from 50 on SciPy's is an approximation; that of normal numbers, from 1e5 on
    for x in np.array([-2.9, -1.0, 0.4, 2.0]) * width:
        want = ss.vonmises.cdf(x, kappa) if kappa < 1e5 else ss.norm.cdf(x, scale=width)
        assert ws.vonmises.cdf(x, kappa).item() == pytest.approx(want, abs=exact if kappa < 1e5 else 1 / kappa)
        slope = wg.grad(ws.vonmises.cdf, argnums=(0, 1))(float(x), kappa)
        assert slope[0] == pytest.approx(ss.vonmises.pdf(x, kappa), rel=1e-12)
        if kappa >= 1e5:  # as the width of normal numbers
            assert slope[1] == pytest.approx(x * ss.norm.pdf(x, scale=width) / (2 * kappa), rel=1e-3)
    if kappa >= 1e5:
        assert ws.vonmises.var(kappa).item() == pytest.approx(1 / kappa, rel=1e-4)
    assert ws.vonmises.ppf(0.2, kappa).item() == pytest.approx(ss.vonmises.ppf(0.2, kappa), rel=exact)


FARTHEST: dict[tuple[str, str, float, float], tuple[float, float, float]] = {
    ("skewnorm", "ppf", 1e-300, 6.0): (-6.065501328188252, 4.449337664428071e297, 0.984336336146731),
    ("invgauss", "isf", 1e-300, 1.0): (1361.4454371385305, -1.99561009301785e300, 2718.901117751189),
    ("invgauss", "ppf", 1e-300, 0.05): (0.0007074329033192551, 1.0004156001921714e294, 0.0003945124088810687),
    ("vonmises", "ppf", 1e-16, 60.0): (-1.1220351809692433, 183435932062739.72, 0.01053502745884163),
    ("vonmises", "ppf", 1e-6, 1.3): (-3.1415587795798396, 33.8740099367817, 5.225633434593455e-05),
}
"""Quantiles of small probabilities, and derivatives by these and the shape, by mpmath: SciPy's may have no digit."""


@together("case", FARTHEST)
def test_quantiles_of_small_probabilities(case: tuple[str, str, float, float]) -> None:
    name, method, *point = case
    f = getattr(getattr(ws, name), method)
    value, slopes = wg.value_and_grad(f, argnums=(0, 1))(*point)
    np.testing.assert_allclose((value, *slopes), FARTHEST[case], rtol=1e-11)


def test_slopes_of_f_by_small_places_and_many_degrees_of_freedom_keep_their_digits() -> None:
    x = np.array([1e-200, 1e-50, 1e-10, 1e-5, 0.029, 0.031])
    for n, m in ((100.0, 3.0), (1e6, 10.0), (100.0, 150.0)):
        slope = lambda x, n=n, m=m: wg.jvp(lambda m: ws.f.logpdf(x, n, m), (m,), (1.0,))[1]
        want = n * n * (1 - x) / (2 * (m + n * x) ** 2)
        np.testing.assert_allclose(wg.grad(lambda x, slope=slope: np.sum(slope(x)))(x), want, rtol=1e-11)


def test_the_tails_of_circular_numbers_keep_their_digits() -> None:
    value, slopes = wg.value_and_grad(ws.vonmises.logcdf, argnums=(0, 1))(-3.0, 100.0)
    np.testing.assert_allclose(value, -200.1915968985542, rtol=1e-13)  # by mpmath
    np.testing.assert_allclose(slopes, (np.exp(ws.vonmises.logpdf(-3.0, 100.0) - value), -1.99068854711185), rtol=1e-10)
    assert wg.value_and_grad(ws.vonmises.logsf, argnums=(0, 1))(3.0, 100.0) == (value, (-slopes[0], slopes[1]))


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str) -> None:
    shapes = SHAPES[name]
    for method in ("logpmf", "pmf", "logcdf", "cdf", "sf", "logsf"):
        require_same(name, method, NUMBERS, *shapes, loc=1)
    require_same(name, "pmf", NUMBERS, *[-9.0 for _ in shapes])
    require_same(name, "ppf", PROBABILITIES, *shapes)
    for method in MOMENTS:
        require_same(name, method, *shapes)


@pytest.mark.parametrize("name", some_of([*CONTINUOUS, *DISCRETE], "derivatives"))
def test_derivatives(name: str) -> None:
    distribution, shapes = getattr(ws, name), [np.array(float(s)) for s in SHAPES.get(name, ())]
    if name == "binom":
        check_grads(lambda p: distribution.logpmf(2.0, 7, p) + distribution.cdf(2.0, 7, p), (shapes[1],), order=2)
    elif name in DISCRETE:
        check_grads(lambda *s: distribution.logpmf(1.0, *s) + distribution.cdf(1.0, *s), tuple(shapes), order=2)
    else:
        point, inside = (np.array(0.9), np.array(1.3)), np.array(1.9 if name == "pareto" else 0.7)
        moment = distribution.var if name in WITHOUT_ENTROPY else distribution.entropy
        both = lambda x, *p: distribution.logpdf(x, *p) + distribution.cdf(x, *p) + moment(*p)
        check_grads(both, (inside + 1.0, *shapes, *point), order=2)
        check_grads(distribution.ppf, (np.array(0.4), *shapes, *point), order=2)


def test_outside_of_the_support_nothing_follows() -> None:
    cts = wg.grad(lambda x, a, b: np.sum(ws.beta.pdf(x, a, b)), argnums=(0, 1, 2))(np.array([-1.0, 2.0]), 0.5, 0.5)
    assert [np.all(ct == 0) for ct in cts] == [True, True, True]
    inside = wg.grad(lambda s: np.sum(ws.lognorm.logpdf(np.array([0.0, 2.0]), s)))(0.7)
    assert inside == pytest.approx(float(wg.grad(lambda s: ws.lognorm.logpdf(2.0, s))(0.7)))


def test_lanes_and_traces() -> None:
    x = np.array([0.2, 0.9, -0.4])
    slope = wg.grad(lambda x, a: ws.gamma.logpdf(x, a) + ws.gamma.cdf(x, a), argnums=(0, 1))
    found = wg.vmap(slope, in_axes=(0, None))(np.abs(x), 2.5)
    want = [slope(value, 2.5) for value in np.abs(x)]
    np.testing.assert_allclose(np.stack(found, axis=1), want, rtol=1e-13)
    np.testing.assert_allclose(wg.jit(lambda x: ws.gamma.logpdf(x, 2.5))(x), ss.gamma.logpdf(x, 2.5), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.vmap(ws.t.sf, in_axes=(0, None)))(x, 3.0), ss.t.sf(x, 3.0), rtol=1e-13)


def test_frozen_distributions() -> None:
    frozen = ws.norm(1.0, scale=2.0)
    assert (frozen.logpdf(0.3).item(), frozen.mean().item()) == (ss.norm(1.0, 2.0).logpdf(0.3), 1.0)


def test_parameters_are_checked() -> None:
    with pytest.raises(
        UsageError, match=r"gamma.logpdf: 0 parameters; a, loc, scale are needed. Pass them in this order"
    ):
        ws.gamma.logpdf(1.0)
    with pytest.raises(UsageError, match=r"norm.logpdf: 1 parameters, loc=; loc, scale are needed"):
        ws.norm.logpdf(1.0, 0.0, loc=1.0)
    with pytest.raises(UsageError, match=r"gamma.logpdf: 0 parameters, shape=; a, loc, scale are needed"):
        ws.gamma.logpdf(1.0, shape=2.0)
    with pytest.raises(UsageError, match=r"skewnorm.entropy: a method without a formula; one that can be differentiat"):
        ws.skewnorm.entropy(1.0)


@pytest.mark.parametrize(
    ("name", "method", "written"),
    [
        ("norm", "moment", "mean"),
        ("norm", "support", "ppf"),
        ("norm", "logpmf", "logpdf"),
        ("binom", "logpdf", "logpmf"),
        ("binom", "pdf", "pmf"),
        ("norm", "pmf", "pdf"),
    ],
)
def test_methods_of_scipys_that_are_not_here_say_what_to_write(name: str, method: str, written: str) -> None:
    with pytest.raises(AttributeError, match=f"^the distribution {name} has no attribute '{method}'; write {written}"):
        getattr(getattr(ws, name), method)
    assert hasattr(getattr(ws, name), written)


# Random numbers

KEY = wg.random.key(3)


@pytest.mark.parametrize("name", ["norm", "gamma", "beta", "t", "weibull_min"])
def test_random_numbers_follow_their_distribution(name: str) -> None:
    shapes = SHAPES.get(name, ())
    found = getattr(ws, name).rvs(*shapes, loc=0.5, scale=2.0, key=KEY, size=400).numpy()
    assert ss.kstest(found, getattr(ss, name).cdf, (*shapes, 0.5, 2.0)).pvalue > 0.01


def test_random_numbers_are_differentiated_implicitly() -> None:
    alpha = np.array([0.7, 2.5])
    draw = ws.gamma.rvs(alpha, key=KEY)
    slope = wg.grad(lambda a: np.sum(ws.gamma.rvs(a, key=KEY)))(alpha)
    by_shape = wg.grad(lambda a: np.sum(ws.gamma.cdf(draw.numpy(), a)))(alpha)
    np.testing.assert_allclose(slope, -by_shape / ss.gamma.pdf(draw, alpha), rtol=1e-12)
    check_grads(lambda a: ws.dirichlet.rvs(a, key=KEY), (alpha,), order=1)
    check_grads(lambda a, b: ws.beta.rvs(a, b, key=KEY, size=2), (alpha, alpha[::-1].copy()), order=1)


def test_random_vectors() -> None:
    shares = ws.dirichlet(np.array([0.7, 2.5, 3.0])).rvs(key=KEY, size=500)
    np.testing.assert_allclose(shares.numpy().mean(axis=0), np.array([0.7, 2.5, 3.0]) / 6.2, atol=0.05)
    normal = ws.multivariate_normal.rvs(SHARES, MATRIX, key=KEY, size=(4, 500))
    assert normal.shape == (4, 500, 3)
    np.testing.assert_allclose(np.cov(normal.numpy().reshape(-1, 3).T), MATRIX, rtol=0.2, atol=0.2)
    assert ws.multivariate_t.rvs(SHARES, MATRIX, 3.5, key=KEY).shape == (3,)


# Vectors and matrices

CALLS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("dirichlet", "logpdf", (SHARES, ALPHA)),
    ("dirichlet", "logpdf", (SHARES[:2], ALPHA)),
    ("dirichlet", "pdf", (np.stack([SHARES, SHARES[::-1]], 1), ALPHA)),
    *(("dirichlet", method, (ALPHA,)) for method in ("entropy", "mean", "var", "cov")),
    ("multinomial", "logpmf", (np.array([[1, 2, 3], [2, 2, 1]]), 6, SHARES)),
    ("multinomial", "pmf", (np.array([1, 2, 3]), np.array([6, -1]), SHARES)),
    ("multinomial", "cov", (6, SHARES)),
    ("multivariate_normal", "logpdf", (OTHER, SHARES, MATRIX)),
    ("multivariate_normal", "pdf", (OTHER[0], None, MATRIX)),
    ("multivariate_normal", "logpdf", (np.array([0.3, 0.2]),)),
    ("multivariate_normal", "entropy", (SHARES, MATRIX)),
    ("multivariate_t", "logpdf", (OTHER, SHARES, MATRIX, 3.5)),
    ("multivariate_t", "entropy", (SHARES, MATRIX, 3.5)),
    ("wishart", "logpdf", (np.stack([SECOND, MATRIX], -1), 4.5, MATRIX)),
    *(("wishart", method, (4.5, MATRIX)) for method in ("entropy", "mean", "var")),
]


@pytest.mark.parametrize(("name", "method", "args"), CALLS, ids=lambda x: x if isinstance(x, str) else "")
def test_multivariate(name: str, method: str, args: tuple[Any, ...]) -> None:
    require_same(name, method, *args)


def test_derivatives_of_multivariate() -> None:
    def spread(root: Any) -> Any:
        return root @ root.T + np.eye(3)

    df = np.array(4.5)
    check_grads(lambda m, c: ws.multivariate_normal.logpdf(OTHER, m, spread(c)), (SHARES, ROOT), order=1)
    check_grads(lambda m, c, d: ws.multivariate_t.logpdf(OTHER, m, spread(c), d), (SHARES, ROOT, df), order=1)
    check_grads(lambda x, d, c: ws.wishart.logpdf(spread(x), d, spread(c)), (OTHER, df, ROOT), order=1)
    check_grads(lambda a: ws.dirichlet.logpdf(SHARES, a), (ALPHA,), order=2)
    check_grads(lambda p: ws.multinomial.logpmf(np.array([1, 2, 3]), 6, p), (SHARES,), order=2)
    check_grads(lambda p: ws.categorical.logpmf(np.array([1, 2]), p), (SHARES,), order=2)


def test_normal_distributions_on_subspaces() -> None:
    for rank in (1, 2, 3):
        root = np.array([[1.0, 0.5, 0.2], [2.0, -1.0, 0.4], [0.5, 0.3, 1.5]])[:, :rank]
        singular = root @ root.T
        points = SHARES + np.array([[1.0, -2.0, 0.3], [0.1, 0.2, 0.7]])[:, :rank] @ root.T
        outside = np.concatenate([points, SHARES + np.array([[0.3, 0.1, -2.0]])])
        for x in (points, points[0], outside):
            found = ws.multivariate_normal.logpdf(x, SHARES, singular, allow_singular=True)
            right = ss.multivariate_normal.logpdf(x, SHARES, singular, allow_singular=True)
            np.testing.assert_allclose(found, right, rtol=1e-9)

        def loss(root: Any, points: Any = points, rank: int = rank) -> Any:
            x = SHARES + np.linalg.lstsq(ROOT[:, :rank], (points - SHARES).T)[0].T @ root.T
            return np.sum(ws.multivariate_normal.logpdf(x, SHARES, root @ root.T, allow_singular=True))

        check_grads(loss, (root,), order=1)
        for run in (wg.jit, lambda f: lambda r: wg.vmap(f)(r[None])[0]):
            np.testing.assert_allclose(run(wg.grad(loss))(root), wg.grad(loss)(root), rtol=1e-9, atol=1e-12)
        by_point = wg.grad(lambda x, c=singular: ws.multivariate_normal.logpdf(x, SHARES, c, allow_singular=True))
        np.testing.assert_allclose(by_point(points[0]), -np.linalg.pinv(singular) @ (points[0] - SHARES), rtol=1e-9)
    with pytest.raises(ValueError, match="positive semidefinite"):
        ws.multivariate_normal.logpdf(OTHER, SHARES, -MATRIX, allow_singular=True)


def test_categorical() -> None:
    assert ws.categorical.pmf(np.array([0, 2, 3]), SHARES).tolist() == pytest.approx([0.2, 0.5, 0.0])
    assert ws.categorical.entropy(SHARES).item() == pytest.approx(ss.entropy(SHARES))


def test_arguments_of_multivariate_are_checked() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        ws.multivariate_normal.logpdf(OTHER, SHARES, -MATRIX)
    with pytest.raises(ShapeError, match=r"multivariate_normal.logpdf: points of shape \(1, 2\) in 3 dimensions"):
        ws.multivariate_normal.logpdf(np.ones(2), SHARES, MATRIX)
    with pytest.raises(ValueError, match="greater than or equal"):
        ws.dirichlet.logpdf(np.array([-0.2, 0.7, 0.5]), ALPHA)
    with pytest.raises(UsageError, match="degrees of freedom; more than 2 are needed"):
        ws.wishart.mean(1.5, MATRIX)
    with pytest.raises(ShapeError, match="as many counts as probabilities are needed"):
        ws.multinomial.logpmf(np.ones(2), 2, SHARES)
    with pytest.raises(ShapeError, match="a vector of probabilities is needed"):
        ws.categorical.pmf(0, 0.5)


def test_distributions_have_the_methods_that_scipy_gives_them() -> None:
    for name, missing in (("multinomial", "pdf"), ("dirichlet", "pmf"), ("wishart", "pmf")):
        assert not hasattr(getattr(ws, name), missing)
        assert not hasattr(getattr(ss, name), missing)


# Samples


@pytest.mark.parametrize("axis", [0, 1, None])
def test_statistics_of_samples(axis: Any) -> None:
    shares, others = np.abs(ROOT), np.abs(OTHER)
    pairs: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("zscore", (ROOT,), {"axis": axis}),
        ("zscore", (ROOT,), {"axis": axis, "ddof": 1}),
        ("entropy", (shares,), {"axis": axis}),
        ("entropy", (shares, others, 2), {"axis": axis, "keepdims": True}),
    ]
    for name, args, options in pairs:
        function = getattr(ws, name)
        found = function(*args, **options)
        assert type(found) is wg.Tensor
        np.testing.assert_allclose(found.numpy(), getattr(ss, name)(*args, **options), rtol=1e-13, atol=1e-15)
        of = [x for x in args if type(x) is np.ndarray]
        check_grads(lambda *x, f=function, a=args, o=options: f(*x, *a[len(x) :], **o), tuple(of), order=2)
    assert np.all(np.isnan(ws.zscore(np.full(3, 2.5))))
    with pytest.raises(UsageError, match=r"zscore: nan_policy='omit'; 'propagate' is needed\. Leave NaN out first"):
        ws.zscore(ROOT, nan_policy="omit")
    with pytest.raises(UsageError, match=r"entropy: base=-2; a positive number is needed\. Pass 2 for bits"):
        ws.entropy(shares, base=-2)


def test_every_name_is_there_or_left_out_for_a_reason() -> None:
    assert set(ss.__all__) - set(ws.__all__) - set(names_left_out("scipy.stats")) == set()
    assert not set(ws.__all__) & set(names_left_out("scipy.stats"))
    with pytest.raises(AttributeError, match=r"^scipy.stats.gaussian_kde has no derivative in Wengert; write the mean"):
        ws.gaussian_kde  # noqa: B018 - asking is the test


@together("name", CONTINUOUS)
@together("method", ["cdf", "sf", "logcdf", "logsf"])
def test_infinite_points_have_no_derivative_of_any_order(name: str, method: str) -> None:
    shapes = SHAPES.get(name, ())
    points = np.array([-np.inf, np.inf])

    def weighed(parameters: Any) -> Any:
        found = getattr(getattr(ws, name), method)(points, *parameters[2:], parameters[0], parameters[1])
        return np.sum(np.where(np.isfinite(found), found, 0.0))

    parameters = np.array([0.1, 1.2, *shapes])
    plain = getattr(getattr(ss, name), method)(points, *shapes, 0.1, 1.2)
    assert np.array_equal(getattr(getattr(ws, name), method)(points, *shapes, 0.1, 1.2), plain)
    for found in wg.jvp(wg.grad(weighed), (parameters,), (np.linspace(0.3, 1.0, len(parameters)),)):
        assert not found.any()


BAD = [(name, method) for name in CONTINUOUS for method in ("logpdf", "pdf", "cdf", "logcdf", "sf", "ppf", "std")]
BAD += [(name, method) for name in DISCRETE for method in ("logpmf", "cdf", "sf", "var")]


@together("case", some_of(BAD, "undefined"))
def test_undefined_values_have_undefined_derivatives_and_leave_others_alone(case: tuple[str, str]) -> None:
    name, method = case
    first = () if method in MOMENTS else (0.3,) if method == "ppf" else (2.0,) if name in DISCRETE else (0.9,)
    point = [*first, *SHAPES.get(name, ()), 0.0, *([] if name in DISCRETE else [1.3])]
    slopes = wg.grad(lambda *x: np.sum(getattr(getattr(ws, name), method)(*x)), argnums=tuple(range(len(point))))
    good = np.array(slopes(*map(float, point)))
    for rest in (np.ones((0, len(point))), np.array([point])):  # alone, and beside one that is defined
        for i in range(len(first + SHAPES.get(name, ()))):  # a location is added, with the slope 1
            arguments = np.array([point, *rest])
            arguments[0, i] = np.nan
            found = np.array(slopes(*arguments.T))
            assert np.isnan(found[good != 0, 0]).all(), (i, found)
            np.testing.assert_allclose(found[:, 1:], good[:, np.newaxis][:, : len(rest)], rtol=1e-12)


def test_logarithms_of_densities_where_zeros_meet_infinities() -> None:
    require_same("skewnorm", "logpdf", np.array([np.inf, -np.inf]), 0.0)
    require_same("genpareto", "logpdf", 1.0, -1.0)
    for argnum, right in enumerate((0.0, 0.0, 0.0, -1.0)):  # of even distribution at its end
        for mode in (wg.jacrev, wg.jacfwd):
            assert mode(ws.genpareto.logpdf, argnum)(1.0, -1.0, 0.0, 1.0) == right, (argnum, mode)


def test_cut_points_at_infinity() -> None:
    cuts, places = np.array([-np.inf, -0.4, 0.8, np.inf]), np.array([0, 1, 2, 1])

    def surprise(shift: Any) -> Any:
        upper, lower = cuts[places + 1] - shift, cuts[places] - shift
        return -np.sum(np.log(ws.norm.cdf(upper) - ws.norm.cdf(lower)))

    check_grads(surprise, 0.3)
    assert np.isclose(wg.jit(wg.hessian(surprise))(0.3), wg.hessian(surprise)(0.3))


def test_methods_that_are_not_there_say_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"^the distribution norm has no attribute 'fit'; write wengert.optim"):
        ws.norm.fit([1.0])
    with pytest.raises(AttributeError, match=r"^the distribution poisson has no attribute 'rubbish'$"):
        ws.poisson.rubbish  # noqa: B018 - asking is the test
    with pytest.raises(TypeError, match=r"^rvs\(\) got an unexpected keyword argument 'random_state'; write key=$"):
        ws.norm.rvs(size=3, random_state=0)


ENDS = {
    "gamma, 2": (ws.gamma, (2.0,), 0.0, 1.0, -2.0),
    "gamma, 3": (ws.gamma, (3.0,), 0.0, 0.0, 1.0),
    "chi2, 4": (ws.chi2, (4.0,), 0.0, 0.25, -0.25),
    "beta, 0": (ws.beta, (2.0, 3.0), 0.0, 12.0, -48.0),
    "beta, 1": (ws.beta, (2.0, 3.0), 1.0, 0.0, 24.0),
    "f": (ws.f, (4.0, 5.0), 0.0, 5.6, -40.32),
    "weibull, 2": (ws.weibull_min, (2.0,), 0.0, 2.0, 0.0),
    "weibull, 3": (ws.weibull_min, (3.0,), 0.0, 0.0, 6.0),
    "maxwell": (ws.maxwell, (), 0.0, 0.0, 2 * np.sqrt(2 / np.pi)),
    "rayleigh": (ws.rayleigh, (), 0.0, 1.0, 0.0),
    "genpareto": (ws.genpareto, (-0.5,), 2.0, -0.5, 0.0),
}
"""Densities that vanish at an end of their support as a whole power: the first two derivatives there, from inside."""


def forward(f: Any) -> Any:
    """Return the derivative by forward mode."""
    return lambda x: wg.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("name", ENDS)
def test_densities_have_derivatives_at_the_ends_of_their_supports(name: str) -> None:
    distribution, shapes, end, first, second = ENDS[name]
    x = 1.0 + 2.0 * end

    def density(x: Any) -> Any:
        return distribution.pdf(x, *shapes, 1.0, 2.0)

    with np.errstate(all="ignore"):
        assert float(density(x)) == 0.0
        for once in (wg.grad, forward):
            slope = once(density)
            found = [slope(x), wg.jit(slope)(x), wg.vmap(slope)(np.array([x, x]))[1]]
            np.testing.assert_allclose(found, first / 4, rtol=1e-12, atol=1e-12)
            for again in (wg.grad, forward):
                np.testing.assert_allclose(again(slope)(x), second / 8, rtol=1e-12, atol=1e-12)


def test_densities_near_an_end_keep_their_digits() -> None:
    x = 1e-8
    for distribution, shapes, second in (
        (ws.rayleigh, (), x**3 - 3 * x),
        (ws.beta, (2.0, 3.0), 12 * (6 * x - 4)),
        (ws.gamma, (3.0,), 1 - 3 * x),
    ):
        for once, again in itertools.product((wg.grad, forward), repeat=2):
            found = again(once(functools.partial(call_density, distribution, shapes)))(x)
            np.testing.assert_allclose(found, second, rtol=1e-14)


def test_laplaces_distribution_function_keeps_the_digits_of_its_tails() -> None:
    x = np.array([-300.0, -30.0, 0.0, 30.0, 300.0])
    for f, sign in ((ws.laplace.cdf, 1), (ws.laplace.sf, -1)):
        for found in (wg.grad(lambda x, f=f: np.sum(f(x)))(x), wg.jvp(f, (x,), (np.ones(5),))[1]):
            np.testing.assert_allclose(found, sign * ss.laplace.pdf(x), rtol=1e-15)


def test_densities_of_pareto_keep_the_digits_of_slopes_by_their_shape_near_0() -> None:
    slope = wg.grad(lambda c: ws.genpareto.pdf(1e-8, c))
    np.testing.assert_allclose((slope(0.15), wg.grad(slope)(0.15)), (-9.99999982e-9, 2e-16), rtol=1e-7)


def test_densities_of_many_degrees_of_freedom_keep_their_digits() -> None:
    x = 1.25
    for df in (1e6, 1e9, 1e12):
        slope = wg.grad(ws.f.logpdf, argnums=(0, 2))(x, 2.0, df)
        np.testing.assert_allclose(ws.f.logpdf(x, 2.0, df), -(df / 2 + 1) * np.log1p(2 * x / df), rtol=1e-14)
        np.testing.assert_allclose(slope, (-(df + 2) / (df + 2 * x), (2 * x - x * x) / df**2), rtol=1e-4)
        np.testing.assert_allclose(ws.f.pdf(1 / x, df, 2.0), x * x * ws.f.pdf(x, 2.0, df), rtol=1e-13)
        slope = wg.grad(ws.t.logpdf, argnums=1)(x, df)
        np.testing.assert_allclose(slope, -(x**4 - 2 * x**2 - 1) / 4 / df**2, rtol=1e-5)
    for x in (0.0, 1e-14, -0.5):
        slope = wg.grad(ws.logistic.logpdf)(x)
        np.testing.assert_allclose(slope, -np.tanh(x / 2), rtol=1e-15)


def test_slopes_of_students_t_have_all_digits_where_squares_overflow() -> None:
    x, df = 1e160, 0.1
    found = wg.grad(ws.t.sf, argnums=(0, 1))(x, df)
    assert wg.grad(ws.t.cdf, argnums=1)(x, 4.5) == 0.0  # it was NaN
    with mpmath.workdps(30):
        by_df = mpmath.diff(lambda df: t_integral(mpmath.mpf(x), df), df)
    np.testing.assert_allclose(found, (-ws.t.pdf(x, df), float(by_df)), rtol=1e-12)


@pytest.mark.parametrize(("name", "shapes"), [("poisson", (2.7,)), ("binom", (500, 0.9)), ("nbinom", (3.5, 0.4))])
def test_summed_entropies_have_slopes_also_of_parameters_not_known_yet(name: str, shapes: tuple[float, ...]) -> None:
    def entropy(last: Any) -> Any:
        return getattr(ws, name).entropy(*shapes[:-1], last)

    value, slope = wg.value_and_grad(entropy)(shapes[-1])
    np.testing.assert_allclose(wg.jit(wg.value_and_grad(entropy))(shapes[-1]), (value, slope), rtol=1e-11)
    around = [entropy(shapes[-1] + step) for step in (-1e-4, 1e-4)]
    np.testing.assert_allclose(slope, (around[1] - around[0]) / 2e-4, rtol=1e-5)


@together(
    "quantile, q, probability",
    [
        (lambda q: ws.f.isf(q, 1.4, 2.2), 1e-12, lambda x: beta_integral(2.2 / (2.2 + 1.4 * x), 1.1, 0.7)),
        (ws.halfnorm.ppf, 1e-12, lambda x: mpmath.erf(x / mpmath.sqrt(2))),
        (lambda q: ws.beta.ppf(q, 4.25, 1.25), 1e-183, lambda x: beta_integral(x, 4.25, 1.25)),
        (lambda q: ws.t.isf(q, 0.625), 1e-100, lambda x: t_integral(x, 0.625)),
    ],
)
def test_quantiles_of_small_probabilities_have_all_digits(quantile: Any, q: float, probability: Any) -> None:
    value, slope = wg.value_and_grad(quantile)(q)
    with mpmath.workdps(40):
        found = probability(mpmath.mpf(value)) / q
        np.testing.assert_allclose(float(found), 1.0, rtol=1e-13)
        growth = mpmath.diff(lambda u: probability(value * (1 + u)), 0) / value
        np.testing.assert_allclose(slope * float(growth), 1.0, rtol=1e-12)


def call_density(distribution: Any, shapes: Any, x: Any) -> Any:
    return distribution.pdf(x, *shapes)


@together(
    "f, x",
    [
        (lambda x: ws.chi2.sf(x, 3.0), 1e4),
        (lambda x: ws.t.sf(x, 4.0), 1e160),
        (ws.gumbel_l.cdf, 1e4),
        (ws.gumbel_r.sf, -1e4),
        (lambda x: ws.genextreme.cdf(x, 0.2), -1e160),
        (lambda x: ws.invgamma.pdf(x, 2.0), 1e-300),
        (lambda x: ws.invgauss.sf(x, 1.0), 1e-300),
        (ws.maxwell.pdf, 1e300),
        (lambda x: ws.weibull_min.pdf(x, 20.0), 1e80),
        (lambda x: ws.weibull_min.sf(x, 20.0), 1e80),
    ],
)
def test_probabilities_that_vanish_have_no_slopes(f: Any, x: float) -> None:
    with np.errstate(all="ignore"):
        for once in (wg.grad(f), forward(f), wg.jit(wg.grad(f))):
            assert once(x) == 0
        assert not np.isnan(f(wg.tensor(x, requires_grad=True)).detach())


def beta_integral(x: Any, a: Any, b: Any) -> Any:
    """Return the incomplete beta function of small x, by a series of positive terms."""
    return x**a * (1 - x) ** b / a / mpmath.beta(a, b) * mpmath.hyp2f1(1, a + b, a + 1, x)


def t_integral(x: Any, df: Any) -> Any:
    return beta_integral(df / (df + x * x), df / 2, 0.5) / 2


TAILS: dict[str, tuple[Any, Any, tuple[float, ...], float]] = {
    "gamma, upper": (ws.gamma.logsf, lambda x, a: mpmath.gammainc(a, x, regularized=True), (2e3, 3.4), 1e-13),
    "gamma, many": (ws.gamma.logcdf, lambda x, a: mpmath.gammainc(a, 0, x, regularized=True), (20.0, 400.5), 1e-12),
    "gamma, lower": (ws.gamma.logcdf, lambda x, a: mpmath.gammainc(a, 0, x, regularized=True), (1.3, 300.5), 1e-13),
    "gamma, power": (ws.gamma.logcdf, lambda x, a: mpmath.gammainc(a, 0, x, regularized=True), (1e-40, 0.4), 1e-13),
    "beta, lower": (ws.beta.logcdf, beta_integral, (1e-4, 99.5, 20.5), 1e-12),
    "beta, power": (ws.beta.logcdf, beta_integral, (1e-50, 0.7, 3.5), 1e-13),
    "beta, upper": (ws.beta.logsf, lambda x, a, b: beta_integral(1 - x, b, a), (0.999, 3.5, 150.5), 1e-12),
    "t": (ws.t.logsf, t_integral, (1e200, 2.5), 1e-13),
    "t, many": (ws.t.logsf, t_integral, (900.0, 150.0), 1e-12),
    "f, lower": (
        ws.f.logcdf,
        lambda x, n, m: beta_integral(n * x / (n * x + m), n / 2, m / 2),
        (1e-9, 80.0, 3.0),
        1e-12,
    ),
    "f, upper": (ws.f.logsf, lambda x, n, m: beta_integral(m / (n * x + m), m / 2, n / 2), (1e20, 3.0, 40.0), 1e-12),
    "skewnorm": (lambda x: ws.skewnorm.logcdf(x, 1.0), lambda x: mpmath.ncdf(x) ** 2, (-45.0,), 1e-12),
    "poisson": (
        lambda mu: ws.poisson.logsf(200.0, mu),
        lambda mu: mpmath.gammainc(201, 0, mu, regularized=True),
        (1e-3,),
        1e-13,
    ),
    "binom": (lambda p: ws.binom.logcdf(3.0, 500, p), lambda p: beta_integral(1 - p, 497, 4), (0.9,), 1e-12),
    "weibull": (ws.weibull_min.logcdf, lambda x, c: -mpmath.expm1(-(x**c)), (1e-200, 3.0), 1e-13),
    "gumbel": (ws.gumbel_r.logsf, lambda x: -mpmath.expm1(-mpmath.exp(-x)), (800.0,), 1e-13),
    "pareto": (ws.pareto.logcdf, lambda x, b: -mpmath.expm1(-b * mpmath.log(x)), (1 + 1e-9, 2.5), 1e-12),
    "halfnorm": (ws.halfnorm.logsf, lambda x: mpmath.erfc(x / mpmath.sqrt(2)), (1e-20,), 1e-13),
}
"""Logarithms of probabilities near 0, or near 1, what they are the logarithms of, a point, and how exact they are."""


@pytest.mark.parametrize("name", TAILS)
def test_logarithms_of_probabilities_have_all_digits_in_tails(name: str) -> None:
    f, probability, point, exact = TAILS[name]
    indices = range(len(point))
    value, slopes = wg.value_and_grad(f, argnums=tuple(indices))(*point)
    curvature = wg.hessian(lambda x: f(*x))(np.array(point))
    with mpmath.workdps(60):
        at = list(map(mpmath.mpf, point))
        scaled = lambda *u: mpmath.log(probability(*[x * (1 + y) for x, y in zip(at, u, strict=True)]))
        zero = (0,) * len(point)
        np.testing.assert_allclose(value, float(scaled(*zero)), rtol=exact)
        assert float(f(*point)) == value
        for i in indices:
            order = [int(k == i) for k in indices]
            np.testing.assert_allclose(slopes[i], float(mpmath.diff(scaled, zero, order) / at[i]), rtol=exact)
            order[0] += 1
            want = float(mpmath.diff(scaled, zero, order) / at[i] / at[0])
            np.testing.assert_allclose((curvature[0, i], curvature[i, 0]), want, rtol=100 * exact)


@pytest.mark.parametrize("name", [name for name in ENDS if name not in ("maxwell", "rayleigh", "genpareto")])
def test_densities_at_fixed_ends_do_not_depend_on_shapes(name: str) -> None:
    distribution, shapes, end, _, _ = ENDS[name]

    def density(shapes: Any) -> Any:
        return distribution.pdf(end, *shapes)

    with np.errstate(all="ignore"):
        for found in (wg.jacrev(density)(np.array(shapes)), wg.jacfwd(density)(np.array(shapes))):
            assert not np.any(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "rest"), [("multivariate_normal", ()), ("multivariate_t", (3.0,))])
def test_points_that_are_not_finite_leave_others_alone(name: str, rest: tuple[float, ...]) -> None:
    points, mean = np.array([[0.3, -0.2], [np.nan, 1.0], [np.inf, 0.0]]), np.zeros(2)

    def densities(x: Any) -> Any:
        return getattr(ws, name).logpdf(x, mean, np.eye(2), *rest)

    want = getattr(ss, name).logpdf(points, mean, np.eye(2), *rest)
    np.testing.assert_allclose(densities(points), want)
    np.testing.assert_allclose(wg.jit(densities)(points), want)
    slopes = wg.grad(lambda x: np.sum(np.where(np.isfinite(want), densities(x), 0.0)))(points)
    np.testing.assert_allclose(slopes[0], wg.grad(densities)(points[0]))


def test_probabilities_of_poissons_distribution_begin_at_a_mean_of_0() -> None:
    k = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(wg.jvp(lambda mean: ws.poisson.pmf(k, mean), (0.0,), (1.0,))[1], [-1.0, 1.0, 0.0])
    np.testing.assert_array_equal(wg.jacrev(lambda mean: ws.poisson.pmf(k, mean))(0.0), [-1.0, 1.0, 0.0])


def test_jitted_derivatives_of_students_t_by_its_degrees_of_freedom_warn_of_nothing() -> None:
    def surprise(v: Any) -> Any:
        return np.sum(ws.t.logpdf(v[0] * np.array([0.5, 1.0]), v[1]))

    for derivative in (wg.grad(surprise), wg.hessian(surprise)):
        jitted = wg.jit(derivative)
        for at in np.array([[1.5, 2.5], [1.5, 4.0], [1.5, 1e3], [1.5, 1e160]]):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                np.testing.assert_allclose(jitted(at), derivative(at), rtol=1e-13, atol=1e-300)
