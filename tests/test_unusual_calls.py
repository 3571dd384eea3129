"""Calls that NumPy and SciPy refuse, or take in an unusual way: here they are refused in words, or do the same."""

from __future__ import annotations

import math
import signal as signals
import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.linalg
import scipy.stats

import wengert as wg
import wengert.numpy as wnp
from tests.cases import OPTIONS, some_of, together
from tools.unusual.calls import MODULES, Usual, usual_calls
from tools.unusual.listed import LISTED, reason
from tools.unusual.verdicts import MODES, of_call, stop
from wengert import optim
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.scipy import integrate, interpolate, linalg, ndimage, signal, special, stats
from wengert.scipy.spatial import distance

ROW = np.arange(8.0) + 0.5
IMAGE = np.random.default_rng(0).random((5, 6))
WITH_NAN = np.where(ROW == 2.5, np.nan, ROW)
PACKED = linalg.lu_factor(np.array([[4.0, 1.0], [2.0, 3.0]]))[0].numpy()
SPLINE = interpolate.splrep(ROW, ROW)

REFUSED: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "CubicSpline: NaN or infinity among y; finite": (UsageError, lambda: interpolate.CubicSpline(ROW, WITH_NAN)),
    "CubicHermiteSpline: NaN or infinity among dydx": (
        UsageError,
        lambda: interpolate.CubicHermiteSpline(ROW, ROW, WITH_NAN),
    ),
    "PchipInterpolator: NaN": (UsageError, lambda: interpolate.PchipInterpolator(ROW, WITH_NAN)),
    "Akima1DInterpolator: NaN": (UsageError, lambda: interpolate.Akima1DInterpolator(ROW, WITH_NAN)),
    "make_interp_spline: NaN": (UsageError, lambda: interpolate.make_interp_spline(ROW, WITH_NAN)),
    "make_lsq_spline: NaN": (UsageError, lambda: interpolate.make_lsq_spline(ROW, WITH_NAN, SPLINE[0])),
    "make_lsq_spline: method='far'": (
        UsageError,
        lambda: interpolate.make_lsq_spline(ROW, ROW, SPLINE[0], method="far"),
    ),
    "make_interp_spline: -1 for k; a whole number, 0": (
        UsageError,
        lambda: interpolate.make_interp_spline(ROW, ROW, -1),
    ),
    "splrep: k=6; a degree from 1 to 5": (UsageError, lambda: interpolate.splrep(ROW, ROW, k=6)),
    "splrep: 0 for k": (UsageError, lambda: interpolate.splrep(ROW, ROW, k=0)),
    "splev: 2.5 for der": (UsageError, lambda: interpolate.splev(ROW, SPLINE, 2.5)),
    "splint: full_output=1; 0 is needed": (UsageError, lambda: interpolate.splint(0.5, 1.5, SPLINE, 1)),
    "tck: a value of type tuple as a spline": (UsageError, lambda: interpolate.splev(ROW, SPLINE[:2])),
    "CubicSpline: places of dtype complex128; real": (
        DtypeError,
        lambda: interpolate.CubicSpline(ROW, ROW)(ROW + 0j),
    ),
    "RegularGridInterpolator: 'a' as fill_value": (
        DtypeError,
        lambda: interpolate.RegularGridInterpolator((ROW,), ROW, fill_value="a"),
    ),
    "sosfilt: .2.0. for sos.:, 3.; ones are needed. Divide": (
        UsageError,
        lambda: signal.sosfilt([[1.0, 0, 0, 2.0, 0, 0]], ROW),
    ),
    "hilbert: 0 for N": (UsageError, lambda: signal.hilbert(ROW, N=0)),
    "resample: 4.5 for num": (UsageError, lambda: signal.resample(ROW, 4.5)),
    "resample_poly: 1.5 for up": (UsageError, lambda: signal.resample_poly(ROW, 1.5, 2)),
    "csd: fs=0; more than 0": (UsageError, lambda: signal.periodogram(ROW, fs=0)),
    "csd: detrend=True": (UsageError, lambda: signal.welch(ROW, detrend=True, nperseg=4)),
    "detrend: bp=.20.; one line": (UsageError, lambda: signal.detrend(ROW, bp=[20])),
    "filtfilt: -1 for padlen": (UsageError, lambda: signal.filtfilt([1.0], [1.0, 0.5], ROW, padlen=-1)),
    "lfiltic: a that begins with 0": (UsageError, lambda: signal.lfiltic([1.0], [0.0, 1.0], [1.0])),
    "savgol_filter: -1 for polyorder": (UsageError, lambda: signal.savgol_filter(ROW, 5, -1)),
    "savgol_filter: x of dtype complex128": (DtypeError, lambda: signal.savgol_filter(ROW + 0j, 5, 1)),
    "convolve2d: fillvalue of shape .2,.": (ShapeError, lambda: signal.convolve2d(IMAGE, IMAGE, fillvalue=[1.0, 2.0])),
    "euclidean: -0.5 among w; 0 or more": (UsageError, lambda: distance.euclidean(ROW, ROW, -ROW)),
    "cosine: w of shape .. for points with 8": (ShapeError, lambda: distance.cosine(ROW, ROW, 1.0)),
    "mahalanobis: VI of shape .2, 2.": (ShapeError, lambda: distance.mahalanobis(ROW, ROW, np.eye(2))),
    "sqeuclidean: points of dtype complex128": (DtypeError, lambda: distance.sqeuclidean(ROW + 1j, ROW)),
    "pdist: 5 points with 6 coordinates; 7 or more": (UsageError, lambda: distance.pdist(IMAGE, "mahalanobis")),
    "squareform: a matrix that is none of distances": (UsageError, lambda: distance.squareform(IMAGE[:, :5])),
    "squareform: force='tovector' for shape .1,.": (UsageError, lambda: distance.squareform([1.0], "tovector")),
    "map_coordinates: coordinates of shape .2,.": (ShapeError, lambda: ndimage.map_coordinates(IMAGE, np.ones(2))),
    "map_coordinates: coordinates of dtype complex128": (
        DtypeError,
        lambda: ndimage.map_coordinates(IMAGE, np.ones((2, 1)) + 1j),
    ),
    "shift: shift of shape .3,.; a number, or 2": (ShapeError, lambda: ndimage.shift(IMAGE, (1, 2, 3))),
    "spline_filter: order=1; a degree from 2": (UsageError, lambda: ndimage.spline_filter(IMAGE, 1)),
    "zoom: output='S4'; a numeric dtype": (DtypeError, lambda: ndimage.zoom(IMAGE, 2, "S4")),
    "affine_transform: a matrix of homogeneous coordinates whose last row is .1.0, 0.0, 1.0.": (
        UsageError,
        lambda: ndimage.affine_transform(IMAGE, [[1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 1.0]]),
    ),
    "sobel: None as cval": (DtypeError, lambda: ndimage.sobel(IMAGE, cval=None)),
    "gaussian_filter: sigma=-1.0; a finite": (UsageError, lambda: wg.grad(blurred)(-1.0)),
    "uniform_filter: size=.2, 3, 4.,": (ShapeError, lambda: ndimage.uniform_filter(IMAGE, (2, 3, 4))),
    "uniform_filter1d: 2.5 for size": (UsageError, lambda: ndimage.uniform_filter1d(IMAGE, 2.5)),
    "simpson: samples of shape .0,.": (ShapeError, lambda: integrate.simpson([])),
    "simpson: dx of shape .2,.": (ShapeError, lambda: integrate.simpson(ROW, dx=np.ones(2))),
    "lu_solve: pivots .0, 2.; 2 of them, each from 0 to 1": (
        UsageError,
        lambda: linalg.lu_solve((PACKED, np.array([0, 2])), np.ones(2)),
    ),
}
"""Beginnings of what errors say, their classes and calls. Most gave numbers."""


def blurred(sigma: float) -> Any:
    return np.sum(ndimage.gaussian_filter1d(IMAGE, sigma))


@together("text", REFUSED)
def test_what_scipy_refuses_is_refused_in_words(text: str) -> None:
    kind, call = REFUSED[text]
    with pytest.raises(kind, match=f"^{text}"):
        call()


def test_weights_of_the_largest_difference_choose_coordinates() -> None:
    found = distance.minkowski([1.0, 5.0], [0.0, 0.0], np.inf, [1.0, 0.0])
    assert float(found) == 1.0  # it was 5: every weight to the power of 0 is 1


def test_rows_of_distances_keep_their_dtype() -> None:
    assert distance.squareform([True]).dtype == bool
    assert distance.squareform(np.zeros(0)).tolist() == [[0.0]]
    assert distance.pdist(IMAGE.astype(np.float32)).dtype == float  # as SciPy computes


def test_filters_keep_the_dtype_of_images() -> None:
    assert ndimage.uniform_filter(IMAGE.astype(np.complex64), 3).dtype == np.complex64
    assert ndimage.gaussian_gradient_magnitude((10 * IMAGE).astype(int), 1.0).dtype == int
    np.testing.assert_array_equal(ndimage.sobel(IMAGE, mode="grid-mirror"), ndimage.sobel(IMAGE))
    assert np.all(signal.detrend([3.0]) == 0.0)


MATRIX = np.arange(8.0).reshape(2, 4) ** 2
TRACED: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "poisson.entropy: a distribution over more than 1e8": (UsageError, lambda: stats.poisson.entropy(np.inf)),
    "norm.logpdf: a parameter or point of dtype complex128; real": (DtypeError, lambda: stats.norm.logpdf(1.0, loc=1j)),
    "splrep: s of shape .2,.": (ShapeError, lambda: interpolate.splrep(ROW, ROW, s=np.ones(2))),
    "BarycentricInterpolator: wi of shape ..": (
        ShapeError,
        lambda: interpolate.BarycentricInterpolator(ROW, ROW, wi=1.0),
    ),
    "arctan2: options .'x1'.; out, where": (UsageError, lambda: wnp.arctan2(ROW, ROW, x1=ROW)),
    "linspace: 0.0 for axis; a whole number": (UsageError, lambda: wnp.linspace(ROW, ROW, 3, axis=0.0)),
    "std: ddof of dtype complex128; real": (DtypeError, lambda: wnp.std(ROW, ddof=1j)),
    "array_split: .* as sections; a number, or a list": (UsageError, lambda: wnp.split(ROW, [None])),
    "normal: a Tensor of .* Draw with wengert.random": (GraphError, lambda: wg.grad(drawn)(0.5)),
    "normal: a Tensor of shape .. that is being traced.* Draw with": (GraphError, lambda: wg.jit(drawn)(0.5)),
    "ndenumerate: .* Write wengert.numpy.ndenumerate": (GraphError, lambda: wg.grad(enumerated)(ROW)),
    "fold_in: 'a' as data": (DtypeError, lambda: wg.random.fold_in(wg.random.key(0), "a")),
    "norm.rvs: no key; a key of wengert.random is needed": (UsageError, lambda: stats.norm.rvs()),
    "multivariate_normal.rvs: no key": (UsageError, lambda: stats.multivariate_normal.rvs(np.zeros(2))),
    r".* 'replacement'; write replace=": (
        TypeError,
        lambda: wg.random.choice(wg.random.key(0), 3, replacement=False),  # type: ignore[call-arg]
    ),
    "vjp: 2 arguments of a pullback; one cotangent": (UsageError, lambda: wg.vjp(np.sin, 1.0)[1](1.0, 2.0)),
    r".* 'lr'; write it into the rule": (
        TypeError,
        lambda: optim.Optimizer([wg.tensor(1.0, requires_grad=True)], lr=0.1),  # type: ignore[call-arg]
    ),
    "cumsum: True for dtype; a dtype": (DtypeError, lambda: wnp.cumsum(ROW, 0, True)),
    "where: None; truth values": (UsageError, lambda: wnp.nansum(ROW, where=None)),
    "clip: min or max beside": (UsageError, lambda: wnp.clip(ROW, 1.0, max=2.0)),
    "cov: dtype=int64; a dtype of floats": (DtypeError, lambda: wnp.cov(MATRIX, dtype=int)),
    "full: .* dtype object": (DtypeError, lambda: wnp.full(3, 1.0, dtype=object)),
    "norm: a parameter or point of dtype complex128": (DtypeError, lambda: stats.norm.logpdf(np.array([1j]))),
    "zscore: a of dtype complex128": (DtypeError, lambda: stats.zscore(ROW + 1j)),
    "matmul: dtype=int64 for an operand of float64": (DtypeError, lambda: wnp.matmul(ROW, ROW, dtype=int)),
    "split: 2.5 sections for an axis of length 8": (ShapeError, lambda: wnp.split(ROW, 2.5)),
    "histogramdd: coordinates, or weights, of shapes": (ShapeError, lambda: wnp.histogram2d(ROW[:1], ROW)),
    "histogramdd: coordinates, or weights, of shapes .*8": (
        ShapeError,
        lambda: wnp.histogram2d(ROW, ROW, weights=1.0),
    ),
    r"axis: True; whole numbers are needed. Write int\(True\), or keep": (DtypeError, lambda: wnp.sum(MATRIX, True)),
    r"axis: False; whole numbers are needed. Write int\(False": (
        DtypeError,
        lambda: np.transpose(wnp.asarray(MATRIX), (False, True)),
    ),
    r"axis: True; whole numbers are needed. Write int\(True": (
        DtypeError,
        lambda: np.squeeze(wnp.asarray(MATRIX)[:, :1], True),
    ),
    "axes should be a list": (
        TypeError,
        lambda: np.matmul(wnp.asarray(MATRIX), wnp.asarray(MATRIX), axes=((0, 1), (0, 1), (0, 1))),
    ),
    r"Tensor.__pow__\(\) takes 2 positional arguments": (TypeError, lambda: pow(wnp.asarray(5), 2, 7)),
    r"trunc: an array of shape \(\) and dtype float64; a real scalar": (
        DtypeError,
        lambda: math.trunc(wnp.asarray(2.5)),
    ),
    r".*no attribute 'bit_length'; write np.frexp": (AttributeError, lambda: wnp.asarray(5).bit_length()),
    "as_integer_ratio: a Tensor that a transf": (GraphError, lambda: wg.grad(statistics.mean)(ROW)),
    "axis: False; whole numbers are needed. Write": (DtypeError, lambda: wnp.concatenate([MATRIX, MATRIX], False)),
    r"shape: \(-1, True\) as a shape; whole numbers are needed": (DtypeError, lambda: wnp.reshape(MATRIX, (-1, True))),
    "'str' object cannot be interpreted as an integer": (TypeError, lambda: wnp.mean(MATRIX, keepdims="a")),
    "'list' object cannot be interpreted": (TypeError, lambda: wnp.max(MATRIX, axis=[0])),
    "less: dtype=float64 for operands of dtype float64, float64": (
        DtypeError,
        lambda: wnp.less(ROW, ROW, dtype=float),
    ),
    "frexp: dtype=float64": (DtypeError, lambda: wnp.frexp(ROW, dtype=float)),
    "divmod: 5 operands": (TypeError, lambda: wnp.divmod(ROW, ROW, None, None, None)),
    "asarray: .*of dtype object": (DtypeError, lambda: wnp.diff(ROW, prepend=None)),
    "correlate: an operand of shape ..; sequences": (ShapeError, lambda: wnp.correlate(1.0, ROW)),
    "convolve: an operand of shape .0,.; sequences": (
        ShapeError,
        lambda: wg.vmap(np.convolve)(np.ones((2, 0)), np.ones((2, 3))),
    ),
    "order: 'wrong'; 'C', 'F', 'A' or 'K' is": (UsageError, lambda: wnp.full(3, 1.0, order="wrong")),
    "order: '': 'C'|order: ''; 'C'": (UsageError, lambda: wnp.asarray(wg.tensor(ROW, requires_grad=True), order="")),
    "histogram: weights of shape .3,.": (ShapeError, lambda: wnp.histogram_bin_edges(ROW, weights=ROW[:3])),
    "histogram: bins='auto'": (UsageError, lambda: wnp.histogram(ROW, "auto", weights=ROW)),
    "bincount: -1 for minlength": (
        UsageError,
        lambda: wg.vmap(lambda w: np.bincount(np.array([0, 1]), w, -1))(np.ones((2, 2))),
    ),
    "choose: numbers of dtype float64": (DtypeError, lambda: np.choose(wg.tensor([0.0, 1.0]), [ROW[:2], ROW[:2]])),
    "bincount: weights of shape .1, 2.": (
        ShapeError,
        lambda: wg.vmap(lambda w: np.bincount(np.array([0, 1]), w))(np.ones((2, 1, 2))),
    ),
    "rot90: 2.5 for k": (UsageError, lambda: wnp.rot90(MATRIX, 2.5)),
    "gradient: truth values": (DtypeError, lambda: wnp.gradient(ROW > 2)),
    "take_along_axis: truth values": (IndexError, lambda: wnp.take_along_axis(ROW, ROW > 2, 0)),
    "lexsort: shapes": (ShapeError, lambda: wnp.lexsort((1.0, ROW))),
    "kaiser: beta of shape": (ShapeError, lambda: wnp.kaiser(4, wg.tensor(ROW))),
    "where: None; truth values are needed,": (UsageError, lambda: wnp.nanvar(ROW, where=None)),
    "norm: NaN or infinity among a": (UsageError, lambda: linalg.norm(WITH_NAN)),
    "tree.register: static=.'typo'. for a Layer without it": (UsageError, lambda: wg.tree.leaves(Layer(1.0))),
}
"""The same of names that belong to the library, and of traced values."""


@wg.tree.register(static=["typo"])
class Layer:
    def __init__(self, weight: float) -> None:
        self.weight = weight


def drawn(x: Any) -> Any:
    return np.random.normal(x, 1.0)


def enumerated(x: Any) -> Any:
    return sum(value for _, value in np.ndenumerate(x))


@together("text", TRACED)
def test_errors_tell_what_to_write(text: str) -> None:
    kind, call = TRACED[text]
    with pytest.raises(kind, match=f"(?s)^{text}"):
        call()


def test_covariances_have_the_dtype_that_is_asked_for() -> None:
    for name in ("cov", "corrcoef"):
        found, want = (getattr(module, name)(MATRIX, dtype=np.float32) for module in (wnp, np))
        assert found.dtype == want.dtype == np.float32
        np.testing.assert_array_equal(found, want)
    edges = wnp.histogram2d(ROW.astype(np.float32), ROW)[1]
    np.testing.assert_array_equal(edges, np.histogram2d(ROW.astype(np.float32), ROW)[1])
    assert edges.dtype == float


def test_ufuncs_calculate_in_the_dtypes_of_the_loop_that_gives_the_one_asked_for() -> None:
    numbers = np.array([1.5, -2.0])
    for name, args, dtype in (
        ("less", (numbers, 0.0), bool),
        ("isfinite", (numbers,), bool),
        ("ldexp", (numbers, np.array([2, 3])), float),
        ("add", (1, numbers), np.float32),
        ("sqrt", (np.array([4, 9]),), np.float32),
    ):
        found, want = (getattr(module, name)(*args, dtype=dtype) for module in (wnp, np))
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)


def test_options_mean_what_they_mean_to_numpy() -> None:
    np.testing.assert_array_equal(wnp.logspace(0.0, 1.0, 3, base=[1, 2]), np.logspace(0.0, 1.0, 3, base=[1, 2]))
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert wg.jvp(lambda x: np.nanquantile(x, [0.1, 0.2]), (ROW[:0],), (ROW[:0],))[1].shape == ()
    slopes = wg.grad(lambda y: np.interp(0.5, np.array([False, True]), y))(np.array([1.0, 3.0]))
    np.testing.assert_array_equal(slopes, [0.5, 0.5])
    heights = np.array([250, 3, 255], np.uint8)  # whose differences wrapped round
    slopes = wg.grad(lambda x: np.sum(np.interp(x, [0.0, 1.0, 2.0], heights)))(np.array([0.5, 1.5]))
    np.testing.assert_array_equal(slopes, [-247.0, 252.0])
    assert wnp.asfortranarray(2.0).shape == (1,)
    only = wg.tensor([1.0, 2.0])
    np.choose(np.array([0, 0]), [only])[0] = 5.0
    assert only.tolist() == [1.0, 2.0]
    beta = np.float32(2.5)
    np.testing.assert_allclose(wnp.kaiser(4, wg.tensor(beta)), np.kaiser(4, beta), rtol=1e-14)
    assert wnp.median(MATRIX, axis=[0], keepdims="yes").shape == (1, 4)  # for which more is true
    for empty in (np.zeros(0), []):
        jacobian = wg.jacfwd(lambda x, q=empty: np.quantile(x, np.asarray(q)))(ROW)
        assert jacobian.shape == (0, 8)
    chosen = wg.vmap(lambda c: np.sum(np.compress(c, ROW[:3])))(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]))
    np.testing.assert_array_equal(chosen, [3.0, 4.0])


def test_nothing_is_known_of_densities_around_nan() -> None:
    for name in ("expon.pdf", "gamma.cdf", "poisson.pmf", "beta.logpdf"):
        distribution, method = name.split(".")
        shapes = {"gamma": (2.0,), "poisson": (2.0,), "beta": (2.0, 3.0)}.get(distribution, ())
        found = getattr(getattr(stats, distribution), method)(np.array([0.0, 0.5]), *shapes, loc=np.nan)
        assert np.all(np.isnan(found))  # it was 0, as outside


def test_entropies_of_a_number_for_all_are_relative_to_equal_shares() -> None:
    shares = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stats.entropy(shares, 2.0), scipy.stats.entropy(shares, 2.0))


# Made from usual calls; `python -m tools.unusual` prints what differs from NumPy and SciPy


KINDS = {"accepted", "other", "refused", "raw"}
EVERY = 1 if OPTIONS.every else 120


@pytest.fixture
def stopped() -> Iterator[None]:
    before = signals.signal(signals.SIGPROF, stop)
    yield
    signals.signal(signals.SIGPROF, before)


@cache
def calls_of(module: str) -> list[Usual]:
    """Return the calls of a module, which are looked for in a tenth of a second."""
    return list(usual_calls((module,)))


VERSIONS = [version.split(".")[:2] for version in (np.__version__, scipy.__version__)]
tabled = pytest.mark.skipif(VERSIONS != [["2", "4"], ["1", "17"]], reason="the table is of NumPy 2.4 and SciPy 1.17")


def unlisted(calls: Iterable[Usual], modes: list[str], every: int) -> list[str]:
    """Return in what calls of functions differ, but for what the table says."""
    found = [x for call in calls for x in of_call(call, modes, every)]
    meant = [x for x in found if x.kind in KINDS]
    return [str(x) for x in meant if reason(x.kind, x.call, x.what) is None]


@tabled
@pytest.mark.usefixtures("stopped")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES)
def test_unusual_calls_do_what_numpys_and_scipys_do_or_are_listed(module: str) -> None:
    assert not unlisted(calls_of(module), ["plain"], EVERY)


@tabled
@pytest.mark.usefixtures("stopped", "evaluated")  # native code adds in another order, so what overflows differs
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "plain"])
@pytest.mark.parametrize("module", MODULES)
def test_unusual_calls_in_transformations_do_what_theirs_do_or_are_listed(module: str, mode: str) -> None:
    calls = some_of(calls_of(module), f"{module}, {mode}")
    assert not unlisted(calls, [mode], 3 * EVERY)


def test_rows_of_the_table_say_why() -> None:
    assert all(set(row.kinds.split()) <= KINDS and row.why and row.functions for row in LISTED)
    assert reason("other", "scipy.ndimage.zoom", "mode='reflect'")
    assert reason("other", "scipy.ndimage.zoom", "as usual") is None


def test_lu_decompositions_read_numbers_in_any_order_of_bytes() -> None:
    matrix = np.array([[4.0, 1.0], [2.0, 3.0]])
    for found, want in zip(linalg.lu(matrix.astype(">f8")), scipy.linalg.lu(matrix), strict=True):
        np.testing.assert_array_equal(found, want)


def test_gradients_are_the_same_traced_and_in_lanes() -> None:
    x = np.array([1.0, 2.0, 4.0])
    for transformed in (wg.grad, lambda f: wg.jit(wg.grad(f)), lambda f: lambda x: wg.vmap(wg.grad(f))(x[None])[0]):
        with pytest.raises(GraphError, match="dtype: dtype object for a Tensor that is being differentiated or traced"):
            transformed(lambda x: np.sum(x, dtype=object))(x)  # lanes had gradients of 0
        branches = [transformed(lambda z, k=k: np.sum(special.lambertw(z, k).real)) for k in ([0, 1], 0, 1)]
        both, zero, one = (g(x[:1]) for g in branches)
        np.testing.assert_allclose(both, zero + one, rtol=1e-14)  # it had the shape of the branches
    matrix = np.ones((4, 2))
    with pytest.raises(np.linalg.LinAlgError, match="lstsq: a matrix without full rank"):  # nobody had looked
        wg.jit(wg.grad(lambda b: np.sum(np.linalg.lstsq(matrix, b)[1])))(np.arange(4.0))


def test_lists_of_traced_numbers_are_arrays() -> None:
    at, samples = np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.7, 0.1])
    for function in (
        lambda q: wnp.quantile(samples, q),
        lambda q: wnp.nanpercentile(samples, q),
        lambda x: wnp.gradient(samples, x),
        lambda w: wnp.histogram(samples, 2, weights=w)[0],
    ):
        expected = wg.jacobian(function)(at)
        assert np.any(expected)
        np.testing.assert_array_equal(wg.jacobian(lambda x, f=function: f([x[0], *x[1:]]))(at), expected)
