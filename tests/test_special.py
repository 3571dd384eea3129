"""SciPy's special functions: the protocol, accuracy of derivatives against mpmath, edges of ranges.

Derivatives in all modes are tested by the samples. `python -m tools.special_accuracy --points 200` takes more points.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import wengert as wg
import wengert.scipy.special as wsp
from tests.cases import OPTIONS, together
from tools.special_accuracy import APART, PAGE, ROWS, Row, errors, page
from wengert.errors import DetachedWarning, DtypeError
from wengert.support.hints import names_left_out

PROGRAM = """
import sys
import numpy as np
import wengert as wg
assert "scipy" not in sys.modules
import scipy.special
assert "wengert.scipy" not in sys.modules
print(wg.grad(scipy.special.erf)(0.0) ** 2 * np.pi)
"""
LOADING = """
import sys
import wengert as wg
print(wg.graph.load(sys.argv[1])(0.5)[0])
"""


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


# The protocol


def test_scipys_ufuncs_are_known_when_they_are_first_met() -> None:
    assert float(output_of(PROGRAM)) == pytest.approx(4.0)


def test_graph_files_know_them(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    wg.graph.save(wg.graph.trace(sp.erf)(0.5), path)
    assert float(output_of(LOADING, str(path))) == sp.erf(0.5)


def output_of(program: str, *arguments: str) -> str:
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_functions_return_tensors_whatever_they_are_given() -> None:
    assert type(wsp.erf(0.5)) is type(wsp.erf(np.ones(2))) is type(sp.erf(wg.tensor(0.5))) is wg.Tensor


def test_options_of_ufuncs() -> None:
    out = wg.tensor([0.0, 0.0])
    assert sp.erf(wg.tensor([0.5, 1.0]), out=out, where=np.array([True, False])) is out
    assert out.tolist() == [sp.erf(0.5), 0.0]


def test_derivatives_where_parts_of_formulas_have_poles_or_overflow() -> None:
    slope = wg.grad(sp.zeta)
    assert slope(0.0) == pytest.approx(-np.log(2 * np.pi) / 2, rel=1e-13)
    assert wg.grad(slope)(0.0) == pytest.approx(-2.006356455908585, rel=1e-13)
    slope = wg.grad(sp.log_ndtr)
    for x in (29.0, 37.0, 39.0):
        assert wg.grad(slope)(x) == pytest.approx(-x * slope(x), rel=1e-12)
    slope = wg.grad(lambda x: sp.shichi(x)[0])
    assert wg.grad(slope)(1e-9) == pytest.approx(1e-9 / 3, rel=1e-12)


def test_what_has_no_derivative_says_so() -> None:
    with pytest.raises(DtypeError, match=r"scipy.special.jv: the order v, which is being differentiated; an operand"):
        wg.grad(lambda v: sp.jv(v, 2.0))(3.0)
    with pytest.raises(DtypeError, match=r"scipy.special.ive: a complex argument, .* a real one is needed"):
        wg.grad(lambda z: sp.ive(1.0, z), holomorphic=True)(1.0 + 1.0j)


def test_every_name_is_there_or_left_out_for_a_reason() -> None:
    names = {name for name in dir(sp) if not name.startswith("_")}
    assert names - set(wsp.__all__) - set(names_left_out("scipy.special")) == set()
    assert not set(wsp.__all__) & set(names_left_out("scipy.special"))
    with pytest.raises(AttributeError, match=r"^scipy.special.jvp has no derivative in Wengert; use wengert.grad or"):
        wsp.jvp  # noqa: B018 - asking is the test


# Accuracy


def test_every_function_has_stated_bounds() -> None:
    assert set(wsp.__all__) == {row.name for row in ROWS} | set(APART)
    assert PAGE.read_text() == page()


@pytest.mark.long
@together("row", [row for row in ROWS if OPTIONS.every or not row.slow])
def test_values_and_derivatives_are_those_of_mpmath(row: Row) -> None:
    for operand, order, error, point in errors(row, points=10 if OPTIONS.every else 1):
        assert error <= row.bounds[order], (row.ranges, operand, order, point, error)


@together("name, sign", [("struve", -1.0), ("modstruve", 1.0)])
def test_derivatives_of_struves_functions_near_zero(name: str, sign: float) -> None:
    function, scale = getattr(sp, name), 2 / np.pi  # H_0(x) = (2 / pi) (x - x^3 / 9 + ...), H_1(x) = (2 / pi) x^2 / 3
    orders = {0.0: (scale, 0.0, sign * 2 / 3 * scale), 1.0: (0.0, 2 / 3 * scale, 0.0), 2.0: (0.0, 0.0, 0.4 * scale)}
    for v, wanted in orders.items():
        slope = lambda x, v=v: function(v, x)
        for want in wanted:
            slope = wg.grad(slope)
            assert slope(0.0) == pytest.approx(want, rel=1e-14)
    second = wg.grad(wg.grad(lambda x: function(0, x)))
    for x in (1e-100, 1e-5, -1e-5):
        assert second(x) == pytest.approx(sign * 2 / 3 * scale * x, rel=1e-9)  # neighbours in the order cancelled


HUGE = 1e8 + 1e7j


@together(
    "function, place, right",
    [
        (lambda a: sp.gammainc(a, 1.0), 1e-12, [-0.219383934395969224, -0.448950081554678503]),
        (lambda a: sp.betainc(a, 2.0, 0.5), 1e-12, [-0.193147180560158004, -0.21269416664135623]),
        (sp.logit, 1e-200, [1e200, -np.inf]),
        (sp.spence, 1e-10, [-23.025850932243042, 9999999977.974149]),
        (sp.spence, 1e-17, [np.log(1e-17), 1e17]),
        (sp.spence, 1e-300, [np.log(1e-300), 1e300]),
        (sp.wrightomega, 1e15, [1.0, 1e-30]),
        (sp.wrightomega, -300.0, [5.148200222412013e-131, 5.148200222412013e-131]),
        (sp.k0, 700.0, [-4.6731107967079664e-306, 4.676452304252102e-306]),
        (lambda x: sp.yv(2.5, x), 1e-300, [np.inf, -np.inf]),
        (lambda x: sp.kve(1.5, x), 1e-300, [-np.inf, np.inf]),
        (sp.wofz, HUGE, [-1j / np.sqrt(np.pi) / HUGE**2, 2j / np.sqrt(np.pi) / HUGE**3]),
        (sp.erfcx, HUGE, [-1 / np.sqrt(np.pi) / HUGE**2, 2 / np.sqrt(np.pi) / HUGE**3]),
        (sp.dawsn, HUGE, [-0.5 / HUGE**2, 1 / HUGE**3]),
    ],
)
def test_nothing_cancels_at_tiny_shapes_or_huge_arguments(function: Any, place: Any, right: list[Any]) -> None:
    holomorphic = isinstance(place, complex)
    first = wg.grad(function, holomorphic=holomorphic)
    found = first(place), wg.grad(first, holomorphic=holomorphic)(place)
    np.testing.assert_allclose(found, right, rtol=1e-12)


# Edges


def gradient(function: Any, *point: float) -> list[float]:
    return [float(x) for x in wg.grad(function, argnums=tuple(range(len(point))))(*point)]


EDGES = [
    (sp.xlogy, [0.0, 0.0], [0.0, 0.0]),
    (sp.xlogy, [0.0, 2.0], [np.log(2.0), 0.0]),
    (sp.xlogy, [3.0, 0.0], [-np.inf, np.inf]),
    (sp.xlog1py, [0.0, -1.0], [0.0, 0.0]),
    (sp.entr, [0.0], [np.inf]),
    (sp.rel_entr, [1e-300, 1.0], [np.log(1e-300) + 1, -1e-300]),
    (sp.kl_div, [1.0, 1.0], [0.0, 0.0]),
    (sp.huber, [1.0, 1.0], [0.0, 1.0]),
    (sp.expit, [-800.0], [0.0]),
    (sp.log_expit, [-800.0], [1.0]),
    (sp.exprel, [0.0], [0.5]),
    (sp.boxcox, [2.0, 0.0], [0.5, np.log(2.0) ** 2 / 2]),
    (sp.inv_boxcox, [2.0, 0.0], [np.exp(2.0), -2 * np.exp(2.0)]),
    (sp.gammainc, [0.5, 0.0], [0.0, np.inf]),
    (sp.gammainc, [1.0, 0.0], [0.0, 1.0]),
    (sp.gammainc, [2.0, np.inf], [0.0, 0.0]),
    (sp.betainc, [2.0, 3.0, 0.0], [0.0, 0.0, 0.0]),
    (sp.betainc, [1.0, 3.0, 0.0], [0.0, 0.0, 3.0]),
    (sp.betainc, [2.0, 1.0, 1.0], [0.0, 0.0, 2.0]),
    (sp.ellipk, [0.0], [np.pi / 8]),
    (sp.ellipe, [0.0], [-np.pi / 8]),
    (sp.spence, [1.0], [-1.0]),
    (sp.i0e, [1e12], [-0.5e-12 * sp.i0e(1e12)]),
    (sp.dawsn, [1e8], [-0.5e-16]),
    (sp.rgamma, [0.0], [1.0]),
    (sp.rgamma, [-3.0], [-6.0]),
    (sp.erfcx, [1e8], [-1e-16 / np.sqrt(np.pi)]),
    (sp.erfc, [40.0], [0.0]),
    (sp.log_ndtr, [-1e8], [1e8]),
    (sp.log_ndtr, [50.0], [0.0]),
    (sp.ndtri, [0.0], [np.inf]),
    (sp.dawsn, [np.inf], [0.0]),
    (sp.digamma, [np.inf], [0.0]),
]


@pytest.mark.parametrize(("function", "point", "want"), EDGES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_edges(function: Any, point: list[float], want: list[float]) -> None:
    np.testing.assert_allclose(gradient(function, *point), want, rtol=1e-12)


# Functions that are no ufuncs

CALLS = [
    (wsp.comb, sp.comb, (np.array([5.5, 3.0]), np.array([2.0, 4.0])), {}),
    (wsp.comb, sp.comb, (np.array([5.0, 0.0]), np.array([2.0, 0.0])), {"repetition": True}),
    (wsp.factorial, sp.factorial, (np.array([-1.0, 0.5, 4.0]),), {}),
    (wsp.softplus, sp.softplus, (np.array([-1.0, 0.5]),), {}),
    (wsp.zeta, sp.zeta, (np.array([1.5, 4.0]),), {}),
    (wsp.polygamma, sp.polygamma, (2, np.array([1.5, 4.0])), {}),
    (wsp.multigammaln, sp.multigammaln, (np.array([1.5, 4.0]), 3), {}),
    (wsp.lambertw, sp.lambertw, (np.array([1.5, -0.4]), 1), {}),
    (wsp.spherical_jn, sp.spherical_jn, (2, np.array([1.5, 4.0])), {"derivative": True}),
    (wsp.logsumexp, sp.logsumexp, (np.array([[1.5, 4.0], [np.inf, 1.0], [-np.inf, -np.inf]]),), {"axis": 1}),
    (wsp.logsumexp, sp.logsumexp, (np.array([[1.5, 4.0], [2.5, 4.0]]),), {"keepdims": True}),
    (wsp.logsumexp, sp.logsumexp, (np.array([1.5, np.nan]),), {}),
    (wsp.logsumexp, sp.logsumexp, (np.array([]),), {}),
    (wsp.logsumexp, sp.logsumexp, (2.5,), {}),
    (wsp.logsumexp, sp.logsumexp, (np.array([1.5, 4.0]),), {"b": np.array([[2.0, -1.0], [0.0, 1.0]]), "axis": 1}),
    (wsp.softmax, sp.softmax, (np.array([[1.5, 4.0], [2.5, 4.0]]),), {}),
    (wsp.softmax, sp.softmax, (np.array([[1.5, 4.0], [2.5, 4.0]]),), {"axis": 0}),
    (wsp.log_softmax, sp.log_softmax, (np.array([[1.5, 4.0], [np.inf, 4.0]]),), {"axis": -1}),
    (wsp.log_softmax, sp.log_softmax, (np.array([[1.5, 4.0], [2.5, 4.0]]),), {}),
]


@pytest.mark.parametrize(("mine", "scipys", "args", "kwargs"), CALLS, ids=lambda x: getattr(x, "__name__", ""))
def test_values_are_those_of_scipy(mine: Any, scipys: Any, args: Any, kwargs: Any) -> None:
    found, want = mine(*args, **kwargs).numpy(), scipys(*args, **kwargs)
    assert found.dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(found, want)


def test_graphs_do_not_warn_of_the_way_to_an_integral() -> None:
    found = wg.jit(wg.grad(lambda a: sp.gammainc(a, 5.0)))(2.0)  # tests make errors of warnings
    assert found == pytest.approx(wg.grad(lambda a: sp.gammainc(a, 5.0))(2.0))


def test_weights_and_signs_of_sums() -> None:
    a, b = np.array([0.3, 1.2, -np.inf]), np.array([-2.0, 0.5, 0.0])
    found, sign = wsp.logsumexp(a, b=b, return_sign=True)
    assert (found.item(), sign.item()) == sp.logsumexp(a, b=b, return_sign=True)
    cts = wg.grad(lambda a, b: wsp.logsumexp(a, b=b, return_sign=True)[0], argnums=(0, 1))(a, b)
    total = np.sum(b * np.exp(a))
    np.testing.assert_allclose(cts[0], b * np.exp(a) / total, rtol=1e-14)
    np.testing.assert_allclose(cts[1], np.exp(a) / total, rtol=1e-14)


def test_dimensions_of_the_gamma_function_are_checked() -> None:
    with pytest.raises(ValueError, match="condition a"):
        wsp.multigammaln(wg.tensor(0.5), 3)


def test_the_ufunc_that_scipys_lambertw_calls_takes_tensors() -> None:
    assert wg.grad(lambda x: sp.lambertw(x).real)(1.3) == wg.grad(lambda x: wsp.lambertw(x).real)(1.3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
def test_exponentials_of_many_rows_have_scipys_bits(name: str, dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=(60, 50)).astype(dtype)
    found = {"as they are": x, "axis 0": x.T, "columns": np.asfortranarray(x)}
    found["ties"] = x.round(1)
    for what, value in (("NaN", np.nan), ("infinite", np.inf), ("minus infinite", -np.inf)):
        found[what] = x.copy()
        found[what][3, 7], found[what][5, :2] = value, x[5].max()  # a tie, so that the largest are as many as rows
    for what, rows in found.items():
        axis = 0 if what == "axis 0" else 1
        with np.errstate(invalid="ignore"):
            want = getattr(sp, name)(rows, axis=axis)
            np.testing.assert_array_equal(getattr(wsp, name)(rows, axis=axis), want, err_msg=what)
    ct = np.cos(np.arange(3000.0)).reshape(60, 50).astype(dtype)
    for rows in (x, np.asfortranarray(x)):
        pull = wg.vjp(lambda rows: getattr(wsp, name)(rows, axis=1), rows)[1]
        p = sp.softmax(x, axis=1)
        want = {
            "logsumexp": p * ct[:, :1],
            "softmax": p * (ct - np.sum(p * ct, axis=1, keepdims=True)),
            "log_softmax": ct - p * np.sum(ct, axis=1, keepdims=True),
        }[name]
        (found_ct,) = pull(ct[:, 0] if name == "logsumexp" else ct)
        np.testing.assert_allclose(found_ct, want, rtol=1e-4, atol=10 * np.finfo(dtype).eps)


# Ends of domains, given as Python numbers, which divide by 0 otherwise than NumPy's


AT_ENDS: dict[str, tuple[Any, int, tuple[float, ...], float]] = {
    "boxcox by x": (sp.boxcox, 0, (0.0, 0.5), np.inf),
    "boxcox by lambda": (sp.boxcox, 1, (0.0, 0.5), 4.0),
    "boxcox by lambda at infinity": (sp.boxcox, 1, (np.inf, -0.5), 4.0),
    "boxcox1p": (sp.boxcox1p, 0, (-1.0, 1.0), 1.0),
    "powm1": (sp.powm1, 0, (0.0, -1.0), -np.inf),
    "rel_entr": (sp.rel_entr, 1, (1.0, 0.0), -np.inf),
    "stdtr": (sp.stdtr, 1, (0.0, 1.0), np.nan),
    "betaincinv": (sp.betaincinv, 0, (0.0, 1.0, 0.5), np.nan),
    "beta": (sp.beta, 0, (1.0, np.inf), 0.0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", AT_ENDS)
def test_ends_given_as_numbers_have_the_slopes_of_arrays(name: str) -> None:
    function, by, point, want = AT_ENDS[name]
    slope = wg.grad(function, argnums=by)
    for found in (slope(*point), slope(*map(np.array, point)), wg.jit(slope)(*point)):
        np.testing.assert_allclose(found, want, rtol=1e-12)
    wg.grad(slope, argnums=by)(*point)  # it was ZeroDivisionError


def test_the_tolerance_of_lamberts_function_has_no_derivative() -> None:
    with pytest.warns(DetachedWarning):
        assert wg.grad(lambda tol: sp.lambertw(0.5, 0, tol).real)(1e-8) == 0.0  # it was RecursionError


def test_operands_beside_those_that_are_differentiated_may_be_truth_values_and_zero() -> None:
    truth = np.array([True, False])
    for name in ("huber", "pseudo_huber", "owens_t", "stdtr"):
        function = getattr(wsp, name)
        for place in (0, 1):

            def value(x: Any, other: Any, function: Any = function, place: int = place) -> Any:
                return np.sum(function(*((x, other) if place else (other, x))))

            found, want = (wg.grad(value)(np.array([0.5, 0.7]), other) for other in (truth, truth.astype(float)))
            np.testing.assert_allclose(found, want, rtol=1e-6)
    assert wg.grad(lambda x: wsp.hyp1f1(1.0, 0, x))(0.5) == np.inf  # it divided Python's numbers
    assert wg.grad(lambda x: wsp.hyp2f1(1.0, 2.0, 0, x))(0.5) == np.inf


def test_gamma_functions_of_no_dimension_are_scipys() -> None:
    for d in (0, -1):
        assert wsp.multigammaln(2.5, d).item() == sp.multigammaln(2.5, d)
        assert wg.grad(wsp.multigammaln)(2.5, d) == 0.0


def polynomial(z: Any, count: int) -> Any:
    """Return (z)_m for whole m: products, or one over them."""
    found = z * 0 + 1
    for k in range(abs(count)):
        found = found * (z + k) if count > 0 else found / (z - 1 - k)
    return found


@together("z, m", [(0.0, 2), (-1.0, 1), (-1.0, 3), (-3.0, 5), (-1.0, -1), (0.0, -1), (-4.0, 2), (-2.0, 4), (-1.0, 0)])
def test_pochhammers_symbol_has_derivatives_where_gamma_functions_are_infinite(z: float, m: int) -> None:
    for mode in (wg.grad, lambda f: lambda x, *rest: wg.jvp(lambda y: f(y, *rest), (x,), (1.0,))[1]):
        first, second = mode(wsp.poch), mode(mode(wsp.poch))
        products = (mode(polynomial), mode(mode(polynomial)))
        np.testing.assert_allclose(first(z, float(m)), products[0](z, m), rtol=1e-13, atol=1e-13)  # it was NaN
        np.testing.assert_allclose(second(z, float(m)), products[1](z, m), rtol=1e-12, atol=1e-13)


def test_pochhammers_symbol_beside_its_poles() -> None:
    slope = 4 * sp.gamma(0.5) * 6  # gamma(z + m) over the residue of gamma at -4, 4!
    np.testing.assert_allclose(wg.grad(wsp.poch)(-4.0, 4.5), slope, rtol=1e-13)
    assert wg.grad(wsp.poch, 1)(-4.0, 4.5) == 0.0  # 1 / gamma(z) is 0 for every m
    for z, m, sign in ((1.0, -1.0, -1), (2.0, -3.0, 1), (-2.5, 1.5, -1), (200.0, -200.0, -1)):  # 1 / gamma(200) is 0
        for place in (0, 1):
            assert wg.grad(wsp.poch, place)(z, m) == sign * np.inf
    assert np.isnan(wg.grad(wsp.poch, 1)(-1.0, 1.0))  # it jumps there


INFINITE = float("inf")
ENDS = [
    (-2.0, 0.5, 0.0, 0.0),
    (-1.0, 1.0, 1.0, -1.0),
    (-0.5, 2.0, INFINITE, -INFINITE),
    (2.0, -0.5, INFINITE, -INFINITE),
    (-INFINITE, 0.0, 0.0, 0.0),
    (INFINITE, 0.5, INFINITE, -INFINITE),
]
"""Arguments of Box and Cox's inverse at its ends, and both derivatives there."""


@together("x, y, by_x, by_y", ENDS)
def test_box_and_coxs_inverse_has_derivatives_at_its_ends(x: float, y: float, by_x: float, by_y: float) -> None:
    for function in (wsp.inv_boxcox, wsp.inv_boxcox1p):
        assert [wg.grad(function, i)(x, y) for i in (0, 1)] == [by_x, by_y]  # they were NaN
    assert wg.grad(wg.grad(wsp.inv_boxcox))(-2.0, 0.5) == 0.5  # (1 + x / 2)^2 is a square


@together("x", [1e-3, 0.5, 2.0, 30.0])
def test_incomplete_gamma_functions_of_shapes_0_and_infinity(x: float) -> None:
    np.testing.assert_allclose(wg.grad(wsp.gammainc)(0.0, x), -sp.exp1(x), rtol=1e-12)  # it was 0
    np.testing.assert_allclose(wg.grad(wsp.gammaincc)(0.0, x), sp.exp1(x), rtol=1e-12)
    assert wg.grad(wsp.gammainc, 1)(0.0, x) == 0.0
    assert [wg.grad(wsp.gammainc, i)(np.inf, x) for i in (0, 1)] == [0.0, 0.0]  # they were NaN
    assert np.isnan(wg.grad(wsp.gammainc)(0.0, 0.0))
    assert np.isnan(wg.grad(wsp.gammainc)(np.inf, np.inf))


@together("b", [1.0, 2.0, 3.0])
def test_incomplete_beta_functions_of_shapes_0_and_infinity(b: float) -> None:
    x = 0.3
    partial = -np.log(x) - sum((1 - x) ** k / k for k in range(1, int(b)))  # the integral of t^(b-1) / (1 - t)
    np.testing.assert_allclose(wg.grad(wsp.betainc)(0.0, b, x), -partial, rtol=1e-12)  # it was 0
    np.testing.assert_allclose(wg.grad(wsp.betainc, 1)(b, 0.0, 1 - x), partial, rtol=1e-12)
    for a, c in ((np.inf, b), (b, np.inf)):
        assert [wg.grad(wsp.betainc, i)(a, c, x) for i in (0, 1, 2)] == [0.0, 0.0, 0.0]  # they were NaN
    assert wg.grad(wsp.betainc, 2)(0.0, b, x) == wg.grad(wsp.betainc, 2)(b, 0.0, x) == 0.0
    assert np.isnan(wg.grad(wsp.betainc)(np.inf, np.inf, x))


def test_unsigned_parameters_do_not_wrap_round() -> None:
    powers = np.array([0, 1], np.uint8)
    found = wg.grad(lambda x: np.sum(wsp.boxcox(x, powers)))(np.array([0.25, 0.4]))
    np.testing.assert_allclose(found, [4.0, 1.0])
    widths = np.array([1, 2], np.uint8)
    found = wg.grad(lambda r: np.sum(wsp.huber(widths, r)))(np.array([-3.0, 0.5]))
    np.testing.assert_allclose(found, [-1.0, 0.5])


@together("x", [-2.0, 0.0, 0.7])
def test_students_distribution_of_infinite_degrees_of_freedom_is_the_normal_one(x: float) -> None:
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    slopes = [wg.grad(wsp.stdtr, i)(np.inf, x) for i in (0, 1)]
    np.testing.assert_allclose(slopes, [0.0, density], rtol=1e-14)  # they were NaN
    np.testing.assert_allclose(wg.grad(wg.grad(wsp.stdtr, 1), 1)(np.inf, x), -x * density, rtol=1e-14)
    np.testing.assert_allclose(wg.grad(wsp.stdtrit, 1)(np.inf, sp.ndtr(x)), 1 / density, rtol=1e-12)


def test_densities_do_not_warn_of_ends_that_are_not_asked_for() -> None:
    slope = wg.grad(lambda x: np.sum(wsp.betainc(0.5, 0.5, x)))
    x = np.array([0.2, 0.7])
    with np.errstate(divide="warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(wg.jit(lambda x: wg.jvp(slope, (x,), (x,)))(x)).all()
