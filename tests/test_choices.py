"""Each row of the table of kinks and ties in `docs/choices.md` holds, in both modes: a test reads it.

`CHECKS` says of each row, by how it begins, what is to be tried. A row without a check fails, and one of no row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.nn import functional
from wengert.scipy import special, stats

PAGE = Path(__file__).resolve().parent.parent / "docs" / "choices.md"
Check = tuple[Callable[..., Any], Any, Any]
"""A function of one argument, the argument, and its derivative (the gradient of its sum) there."""

nan, inf = np.nan, np.inf
ones, zeros = np.ones(2), np.zeros(2)
NOTHING = np.array([[True, False], [False, False]])
QUERY = np.array([[1.0, 2.0], [3.0, 4.0]])
ROUNDED = np.arange(1.0, 8.0)[:, None] / 10.0
"""Of three of them the mean is not what each of them is."""
INFINITE = np.array([-inf, -inf])


def slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the derivative of a function of a number, to be differentiated once more."""
    return wg.grad(f)


def greatest_at(x: Any) -> Any:
    found = np.full(2, 1.0, like=x)
    np.maximum.at(found, np.array([0, 0]), x)
    return np.sum(found)


CHECKS: dict[str, list[Check]] = {
    "`abs(x)`, `np.sign(x)`": [
        (abs, 0.0, 0.0),
        (lambda x: np.sign(x) * 1.0, 0.0, 0.0),
        (np.linalg.norm, zeros, zeros),
        (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
    ],
    "`np.sqrt(x)` at 0": [
        (np.sqrt, 0.0, inf),
        (lambda x: np.sqrt(x) * 0.0, 0.0, 0.0),
        (lambda x: np.sqrt(x * x * 1.0), 0.0, 0.0),
    ],
    "`np.linalg.norm(x)**2`": [
        (lambda x: np.linalg.norm(x) ** 2, zeros, zeros),
        (slope(lambda x: abs(x) ** 2), 0.0, 2.0),
        (slope(lambda x: np.hypot(x, 0.0) ** 2), 0.0, 2.0),
        (slope(lambda x: np.std(np.stack([x, -x])) ** 2), 0.0, 2.0),
        (slope(lambda x: (abs(x) / 3.0) ** 2), 0.0, 2 / 9),
        (slope(slope(slope(lambda x: abs(x) ** 4))), 0.0, 24.0),
    ],
    "`np.std` of equal elements": [
        (lambda x: np.std(np.broadcast_to(x, (7, 3)), axis=1), ROUNDED, np.zeros((7, 1))),
        (lambda x: np.nanstd(np.broadcast_to(x, (7, 3)), axis=1), ROUNDED, np.zeros((7, 1))),
        (lambda x: np.std(x, axis=1), np.broadcast_to(ROUNDED, (7, 3)), np.zeros((7, 3))),
    ],
    "the same with anything else": [
        (slope(lambda x: np.sqrt(x**4 + x**4)), 0.0, 0.0),
        (slope(lambda x: abs(x) * abs(x)), 0.0, 0.0),
        (lambda x: np.sqrt(x) * np.sqrt(x), 0.0, 0.0),
    ],
    "chains of at most six powers": [
        (slope(lambda x: np.sqrt(4 * x**4)), 0.0, 4.0),
        (lambda x: np.cbrt(8 * x**3) + np.cbrt(x**2), 0.0, 2.0),
        (lambda x: np.sqrt(x**2), 0.0, 0.0),
    ],
    "`np.maximum(x, y)`": [
        (lambda x: np.maximum(x, 1.0), 1.0, 0.5),
        (lambda x: np.minimum(2.0, x), 2.0, 0.5),
    ],
    "`np.max`, `np.min`, `np.median`": [
        (np.max, np.array([2.0, 5.0, 5.0]), [0.0, 0.5, 0.5]),
        (np.min, np.array([2.0, 2.0, 5.0]), [0.5, 0.5, 0.0]),
        (np.median, np.array([1.0, 3.0, 3.0, 3.0]), [0.0, 1 / 3, 1 / 3, 1 / 3]),
        (greatest_at, np.array([1.0, 0.5]), [0.5, 0.0]),
    ],
    "`np.mean`, `np.var`": [
        check
        for f in (np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd)
        for check in (
            (lambda x, f=f: f(x, where=False), ones, zeros),
            (lambda x, f=f: f(np.stack([x, x]), axis=1, where=NOTHING)[1] + x[0], ones, np.array([1.0, 0.0])),
            (lambda x, f=f: f(x[None, :0], axis=1) + x[0], ones, np.array([1.0, 0.0])),
            (lambda x, f=f: f(x[x > 9.0]), ones, zeros),
        )
    ],
    "`np.where(c, x, y)`, masks": [
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
        (lambda x: np.sum(np.log(x)[x > 0]), np.array([0.0, 2.0]), [0.0, 0.5]),
        (lambda x: 1 / np.cosh(np.where(x > 0, x, inf)), -1.0, 0.0),
        (slope(lambda x: np.sum(1 / np.cosh(np.stack([x, inf])))), 0.0, -1.0),
    ],
    "`x**0`": [
        (lambda x: x**0, 0.0, 0.0),
        (slope(lambda x: x**0), 0.0, 0.0),
    ],
    "`x**y` for `x < 0`": [
        (lambda y: np.power(-2.0, y), 2.0, nan),
        (slope(lambda x: x**2.0), -2.0, 2.0),
    ],
    "`x**y` at `x == 0`": [(lambda y: np.power(0.0, y), 2.0, 0.0)],
    "`np.heaviside(x, y)`": [
        (lambda x: np.heaviside(x, 0.5), 0.0, 0.0),
        (lambda y: np.heaviside(0.0, y), 0.5, 1.0),
    ],
    "`np.floor`, `np.round`": [
        (np.floor, 2.0, 0.0),
        (np.round, 2.5, 0.0),
        (lambda x: (x > 1.0) * 1.0, 1.0, 0.0),
        (lambda x: np.argmax(x) * 1.0, ones, zeros),
    ],
    "`scipy.special.xlogy(x, y)`": [
        (lambda x: special.xlogy(x, 2.0), 0.0, np.log(2.0)),
        (lambda x: special.xlogy(x, 0.0), 0.0, 0.0),
        (lambda y: special.xlogy(0.0, y), 0.0, 0.0),
    ],
    "`scipy.special.huber(delta, r)`": [(lambda r: special.huber(1.0, r), 1.0, 1.0)],
    "distributions outside": [
        (lambda x: stats.uniform.logpdf(x), 2.0, 0.0),
        (lambda x: stats.gamma.pdf(x, 2.0), -1.0, 0.0),
        (lambda x: stats.chi2.sf(x, 3.0), 1e4, 0.0),
        (lambda x: stats.gamma.logpdf(x, 2.0), 0.0, 0.0),
        (slope(lambda scale: stats.weibull_min.logpdf(0.0, 1.8, 0.0, scale)), 1.0, 0.0),
        (lambda x: stats.beta.pdf(x, 0.5, 0.5), 0.0, 0.0),
    ],
    "densities at an end": [
        (slope(lambda x: stats.weibull_min.logpdf(x, np.array(1.0))), 0.0, 0.0),
        (slope(lambda x: stats.gamma.pdf(x, np.array(1.0))), 0.0, 1.0),
        (lambda x: wg.jvp(wg.jacfwd(lambda v: stats.weibull_min.pdf(v, np.array(1.0))), (x,), (1.0,))[1], 0.0, -1.0),
    ],
    "an end of `scipy.stats.truncnorm`": [
        (lambda a: stats.truncnorm.logpdf(0.5, a, 1.0) + stats.truncnorm.ppf(0.5, a, 1.0), -inf, 0.0),
        (slope(lambda b: stats.truncnorm.cdf(0.5, -1.0, b)), inf, 0.0),
    ],
    "distributions of a NaN": [
        (lambda x: stats.gamma.cdf(x, np.array([2.0, 2.0])), np.array([nan, 0.0]), np.array([nan, 0.0])),
        (lambda scale: stats.norm.logpdf(1.0, 0.0, scale), -1.0, nan),
        (slope(lambda p: stats.binom.logpmf(1.0, 2.0, p)), 3.0, nan),
    ],
    "`scipy.special.poch(x, m)`": [(lambda m: special.poch(-3.0, m), -3.0, nan)],
    "`scipy.special.i0e`, `i1e`": [
        (special.i0e, 0.0, 0.0),
        (slope(special.i0e), 0.0, 0.5),
        (lambda x: wg.jvp(special.i0e, (x,), (1.0,))[1], 0.0, 0.5),
        (slope(special.i1e), 0.0, 0.0),
        (slope(slope(special.i1e)), 0.0, 0.375),
        (slope(lambda x: special.ive(2, x)), 0.0, 0.25),
        (slope(functional.softsign), 0.0, 0.0),
        (slope(slope(functional.softsign)), 0.0, 0.0),
    ],
    "`scipy.stats.laplace`": [
        (lambda x: stats.laplace.logpdf(x), 0.0, 0.0),
        (lambda x: stats.laplace.cdf(x), 0.0, 0.5),
        (slope(lambda x: stats.laplace.cdf(x)), 0.0, 0.0),
    ],
    "`softmax`, `log_softmax`": [
        (lambda x: np.where(x > -inf, special.softmax(x), 0.0), INFINITE, zeros),
        (lambda x: special.softmax(x)[0], INFINITE, [nan, nan]),
    ],
    "`logsumexp`, `np.logaddexp.reduce`": [
        (special.logsumexp, INFINITE, [0.5, 0.5]),
        (np.logaddexp.reduce, INFINITE, [0.5, 0.5]),
    ],
    "`scaled_dot_product_attention`": [
        (lambda q: functional.scaled_dot_product_attention(q, QUERY, QUERY, NOTHING)[1], QUERY, np.zeros((2, 2))),
    ],
    "`np.arcsin` and others": [
        (np.arcsin, 1.0, inf),
        (np.arccosh, 1.0, inf),
        (np.arccos, -1.0, -inf),
    ],
}


def rows() -> list[str]:
    """Return the first cells of the table of kinks and ties."""
    section = PAGE.read_text().partition("## Kinks and ties")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \| .* \|$", section, flags=re.MULTILINE)
    assert cells[0] == "at"
    return cells[1:]


def row_of(check: str) -> list[str]:
    return [row for row in rows() if row.startswith(check)]


def test_each_row_of_the_table_has_a_check() -> None:
    assert [row for row in rows() if not any(row.startswith(check) for check in CHECKS)] == []


def summed(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(f(x))


def forward(f: Callable[[Any], Any], x: Any) -> Any:
    basis = np.eye(np.size(x)).reshape(-1, *np.shape(x))
    along = [wg.jvp(f, (x,), (float(e) if isinstance(x, float) else e,))[1] for e in basis]
    return np.reshape(along, np.shape(x))


MODES: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "reverse": lambda f, x: wg.grad(f)(x),
    "forward": forward,
    "jit": lambda f, x: wg.jit(wg.grad(f))(x),
    "jitted forward": lambda f, x: wg.jit(lambda v: wg.jacfwd(f)(v))(x),
}


@pytest.mark.filterwarnings("ignore")
@together("mode", MODES)
def test_the_table_of_kinks_and_ties_holds(mode: str) -> None:
    for start, checks in CHECKS.items():
        assert len(row_of(start)) == 1, start
        for i, (f, x, want) in enumerate(checks):
            found = MODES[mode](summed(f), x)
            np.testing.assert_allclose(np.asarray(found), want, atol=1e-15, err_msg=f"{start}, {i}")
