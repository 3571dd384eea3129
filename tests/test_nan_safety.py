"""Tests of points where the derivative is a choice, and of masks: what is masked out never turns into NaN.

Every case gives a function, a point, its gradient, and the gradient of its gradient's sum.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of, together
from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply
from wengert.scipy import special

inf = np.inf
HYPERBOLIC = np.array([-np.tanh(0.7), np.tanh(0.7) ** 2 - np.cosh(0.7) ** -2]) / np.cosh(0.7)
"""The first two derivatives of 1 / cosh(x) at 0.7."""


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def first(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of the sum of a function."""
    return wg.grad(lambda v: np.sum(f(v)))(np.array(x))


def second(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of the sum of the gradient."""
    return first(lambda v: wg.grad(lambda u: np.sum(f(u)))(v), x)


def masked_log(x: Any) -> Any:
    return np.where(x > 0, np.log(x), 0.0)


def sinc_by_hand(x: Any) -> Any:
    return np.where(x != 0, np.sin(x) / x, 1.0)


def safe_norm(x: Any) -> Any:
    return np.sqrt(np.sum(x * x))


def log_sum_exp(x: Any) -> Any:
    top = np.max(x)
    return np.log(np.sum(np.exp(x - top))) + top


def pairwise_log_sum_exp(x: Any) -> Any:
    return np.logaddexp(x[0], np.logaddexp(x[1], x[2]))


def of_which_one_is_infinite(x: Any) -> Any:
    found = np.full(3, inf, like=x)
    found[1:] = x
    return 1 / np.cosh(found)


MASKS = {
    "infinite constant": (
        lambda x: 1 / np.cosh(np.where(x > 0, x, inf)),
        [-1.0, 0.7],
        [0.0, HYPERBOLIC[0]],
        [0.0, HYPERBOLIC[1]],
    ),
    "infinite constant, written": (of_which_one_is_infinite, [0.7, 0.7], HYPERBOLIC[[0, 0]], HYPERBOLIC[[1, 1]]),
    "infinite start": (
        lambda x: 1 / np.cosh(np.max(x[:, np.newaxis], axis=1, initial=inf)),
        [0.7, -1.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ),
    "sqrt": (lambda x: np.where(x > 0, np.sqrt(x), 0.0), [-1.0, 0.0, 4.0], [0.0, 0.0, 0.25], [0.0, 0.0, -1 / 32]),
    "sqrt, mask first": (
        lambda x: np.sqrt(np.where(x > 0, x, 0.0)),
        [-1.0, 4.0],
        [0.0, 0.25],
        [0.0, -1 / 32],
    ),
    "log": (masked_log, [-1.0, 0.0, 2.0], [0.0, 0.0, 0.5], [0.0, 0.0, -0.25]),
    "log2": (lambda x: np.where(x > 0, np.log2(x), 0.0) * np.log(2), [0.0, 2.0], [0.0, 0.5], [0.0, -0.25]),
    "log10": (lambda x: np.where(x > 0, np.log10(x), 0.0) * np.log(10), [0.0, 2.0], [0.0, 0.5], [0.0, -0.25]),
    "log1p": (lambda x: np.where(x > -1, np.log1p(x), 0.0), [-1.0, 1.0], [0.0, 0.5], [0.0, -0.25]),
    "log by product": (lambda x: np.log(x) * (x > 0), [0.5, 2.0], [2.0, 0.5], [-4.0, -0.25]),
    "sin(x)/x": (
        sinc_by_hand,
        [0.0, np.pi],
        [0.0, -1 / np.pi],
        [0.0, 2 / np.pi**2],
    ),
    "1/x": (lambda x: np.where(x == 0, 0.0, 1 / x), [0.0, 2.0], [0.0, -0.25], [0.0, 0.25]),
    "reciprocal": (lambda x: np.where(x == 0, 0.0, np.reciprocal(x)), [0.0, 2.0], [0.0, -0.25], [0.0, 0.25]),
    "power": (lambda x: np.where(x > 0, x**-0.5, 0.0), [0.0, 4.0], [0.0, -1 / 16], [0.0, 3 / 128]),
    "cbrt": (lambda x: np.where(x > 0, np.cbrt(x), 0.0), [0.0, 8.0], [0.0, 1 / 12], [0.0, -1 / 144]),
    "arccos": (lambda x: np.where(np.abs(x) < 1, np.arccos(x), 0.0), [-1.0, 0.0, 1.0], [0.0, -1.0, 0.0], [0.0] * 3),
    "arcsin": (lambda x: np.where(np.abs(x) < 1, np.arcsin(x), 0.0), [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0] * 3),
    "arctanh": (lambda x: np.where(np.abs(x) < 1, np.arctanh(x), 0.0), [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0] * 3),
    "arccosh": (
        lambda x: np.where(x > 1, np.arccosh(x), 0.0),
        [1.0, np.sqrt(2.0)],
        [0.0, 1.0],
        [0.0, -np.sqrt(2.0)],
    ),
    "x log x, mask first": (
        lambda x: x * np.log(np.where(x > 0, x, 1.0)),
        [0.0, 1.0],
        [0.0, 1.0],
        [0.0, 1.0],
    ),
    "x log x, away from 0": (lambda x: np.where(x > 0, x * np.log(x), 0.0), [2.0, 1.0], [np.log(2) + 1, 1], [0.5, 1]),
    "x log x": (lambda x: np.where(x > 0, x * np.log(x), 0.0), [0.0, 1.0, 2.0], [0.0, 1.0, np.log(2) + 1], [0, 1, 0.5]),
    "x log x by a boolean index": (lambda x: (x * np.log(x))[x > 0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]),
    "overflow": (lambda x: np.where(x < 100, np.exp(x) * x, 0.0), [0.0, 1000.0], [1.0, 0.0], [2.0, 0.0]),
    "log of masked sum": (
        lambda x: np.where(np.sum(x) > 0, np.log(np.sum(x)), 0.0),
        [0.0, 0.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ),
    "an index instead of a mask": (lambda x: np.log(x)[1:], [0.0, 2.0], [0.0, 0.5], [0.0, -0.25]),
    "a boolean index": (lambda x: np.sqrt(x)[x > 0], [0.0, 4.0], [0.0, 0.25], [0.0, -1 / 32]),
}

CHOICES = {
    "sqrt at 0": (np.sqrt, [0.0], [inf], None),
    "zero times sqrt at 0": (lambda x: 0.0 * np.sqrt(x), [0.0], [0.0], [0.0]),
    "abs": (np.abs, [-2.0, -0.0, 0.0, 3.0], [-1.0, 0.0, 0.0, 1.0], [0.0] * 4),
    "fabs": (np.fabs, [-2.0, 0.0], [-1.0, 0.0], [0.0] * 2),
    "sign": (np.sign, [-2.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    "relu by maximum": (lambda x: np.maximum(x, 0.0), [-1.0, 2.0], [0.0, 1.0], [0.0, 0.0]),
    "maximum tie": (lambda x: np.maximum(x, 1.0), [1.0], [0.5], [0.0]),
    "minimum tie": (lambda x: np.minimum(x, 1.0), [1.0], [0.5], [0.0]),
    "fmax tie": (lambda x: np.fmax(x, 1.0), [1.0], [0.5], [0.0]),
    "fmin tie": (lambda x: np.fmin(x, 1.0), [1.0], [0.5], [0.0]),
    "maximum with itself": (lambda x: np.maximum(x, x), [1.0], [1.0], [0.0]),
    "maximum of functions": (lambda x: np.maximum(x**2, 2 * x - 1), [1.0], [2.0], [1.0]),
    "fmax of NaN": (lambda x: np.fmax(x, np.nan), [1.0], [1.0], [0.0]),
    "max reduction": (np.max, [1.0, 3.0, 3.0], [0.0, 0.5, 0.5], [0.0] * 3),
    "min reduction": (np.min, [1.0, 1.0, 3.0, 1.0], [1 / 3, 1 / 3, 0.0, 1 / 3], [0.0] * 4),
    "median tie": (np.median, [2.0, 1.0, 2.0], [0.5, 0.0, 0.5], [0.0] * 3),
    "x**0": (lambda x: x**0, [-1.0, 0.0, 2.0], [0.0] * 3, [0.0] * 3),
    "x**0.0": (lambda x: x**0.0, [-1.0, 0.0, 2.0], [0.0] * 3, [0.0] * 3),
    "x**array of 0": (lambda x: x ** np.zeros(3), [-1.0, 0.0, 2.0], [0.0] * 3, [0.0] * 3),
    "x**1": (lambda x: x**1, [-1.0, 0.0], [1.0, 1.0], [0.0, 0.0]),
    "x**2 at 0": (lambda x: x**2, [0.0], [0.0], [2.0]),
    "x**array of 2 at 0": (lambda x: x ** np.array([2.0]), [0.0], [0.0], [2.0]),
    "x**3 at 0": (lambda x: x**3, [0.0], [0.0], [0.0]),
    "0**0 by the exponent's side": (lambda x: x ** np.array([0.0, 1.0, 2.0]), [0.0] * 3, [0.0, 1.0, 0.0], [0, 0, 2]),
    "0**y": (lambda y: np.zeros(2) ** y, [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]),
    "1**y": (lambda y: np.ones(2) ** y, [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]),
    "hypot at the origin": (lambda x: np.hypot(x, 0.0), [0.0], [0.0], None),
    "norm at the origin, by hand": (
        lambda x: np.where(np.sum(x) != 0, safe_norm(x), 0.0),
        [0.0, 0.0],
        [0.0, 0.0],
        None,
    ),
    "floor": (np.floor, [0.0, 1.5], [0.0, 0.0], [0.0, 0.0]),
    "rint": (np.rint, [0.5, 1.5], [0.0, 0.0], [0.0, 0.0]),
    "comparison": (lambda x: (x > 0) * 1.0, [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]),
    "sinc at 0": (np.sinc, [0.0], [0.0], [-(np.pi**2) / 3]),
    "clip at its bounds": (lambda x: np.clip(x, -1.0, 1.0), [-2.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.0] * 3),
}

HALF = np.array([0.5, 0.5])
LOG_SUM_EXP = {
    "-inf among numbers": (log_sum_exp, [-inf, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0] * 3),
    "-inf in logaddexp": (pairwise_log_sum_exp, [-inf, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0] * 3),
    "logaddexp of one -inf": (lambda x: np.logaddexp(x, -inf), [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]),
    "logaddexp2 of one -inf": (lambda x: np.logaddexp2(x, -inf), [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]),
    "logaddexp of two -inf": (lambda x: np.logaddexp(x, -inf), [-inf], [0.5], None),
    "large numbers": (log_sum_exp, [1000.0, 1000.0, 0.0], [0.5, 0.5, 0.0], [0.0] * 3),
    "large numbers in logaddexp": (pairwise_log_sum_exp, [1000.0, 1000.0, 0.0], [0.5, 0.5, 0.0], [0.0] * 3),
}

CASES = {**MASKS, **CHOICES, **LOG_SUM_EXP}


@together("name", CASES)
def test_gradient(name: str) -> None:
    f, x, want, _ = CASES[name]
    np.testing.assert_allclose(first(f, x), want, rtol=1e-12, atol=1e-14)


@together("name", [name for name, case in CASES.items() if case[3] is not None])
def test_second_derivative(name: str) -> None:
    f, x, _, want = CASES[name]
    np.testing.assert_allclose(second(f, x), want, rtol=1e-12, atol=1e-12)


def test_ties_of_two_arguments_share_equally() -> None:
    for f in (np.maximum, np.minimum, np.fmax, np.fmin):
        left, right = wg.grad(lambda x, y, f=f: np.sum(f(x, y)), argnums=(0, 1))(np.ones(2), np.ones(2))
        np.testing.assert_array_equal(left, HALF)
        np.testing.assert_array_equal(right, HALF)


def test_power_at_zero_in_both_arguments() -> None:
    x, y = np.array([0.0, 0.0, 2.0, 0.0]), np.array([0.0, 2.0, 0.0, 0.5])
    by_base, by_exponent = wg.grad(lambda a, b: np.sum(a**b), argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(by_base, [0.0, 0.0, 0.0, inf])
    np.testing.assert_allclose(by_exponent, [0.0, 0.0, np.log(2.0), 0.0])


def test_sqrt_at_zero_passes_no_nan_on_for_a_zero_cotangent() -> None:
    _, pullback = wg.vjp(np.sqrt, np.array([0.0, 0.0, 4.0]))
    np.testing.assert_array_equal(pullback(np.array([0.0, 1.0, 0.0]))[0], [0.0, inf, 0.0])


def test_where_sends_nothing_to_the_branch_not_taken() -> None:
    condition = np.array([True, False])
    taken, other = wg.grad(lambda x, y: np.sum(np.where(condition, x, y)), argnums=(0, 1))(np.ones(2), np.ones(2))
    np.testing.assert_array_equal(taken, [1.0, 0.0])
    np.testing.assert_array_equal(other, [0.0, 1.0])


@pytest.mark.parametrize(
    "condition", [0, 0.0, False, np.int64(0), np.array(0), np.array([0, 0]), np.zeros(2)], ids=repr
)
def test_conditions_that_are_numbers_hide_what_was_not_taken(condition: Any) -> None:
    def chosen(x: Any, condition: Any = condition) -> Any:
        large = np.exp(1e4 * x)
        return np.sum(np.where(condition, large / large, x**2))

    x = np.array([0.0, 4.0])
    with np.errstate(all="ignore"):
        for transformation in (wg.grad, lambda f: wg.jit(wg.grad(f)), lambda f: wg.grad(wg.jit(f))):
            np.testing.assert_array_equal(transformation(chosen)(x), 2 * x)
            np.testing.assert_array_equal(transformation(chosen)(x, condition), 2 * x)
        np.testing.assert_array_equal(wg.hessian(chosen)(x), 2 * np.eye(2))
        leaf = wg.tensor(x, requires_grad=True)
        chosen(leaf, wg.tensor(condition)).backward()
    assert leaf.grad is not None
    np.testing.assert_array_equal(leaf.grad, 2 * x)


@together("name", MASKS)
def test_single_precision_and_scalars_are_as_safe(name: str) -> None:
    f, x, want, _ = MASKS[name]
    narrow = wg.grad(lambda v: np.sum(f(v)))(np.array(x, np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, want, rtol=1e-5, atol=1e-6)


# Forward mode, second order in every combination of modes, and lanes


MORE = {
    "norm at the origin": (np.linalg.norm, [0.0, 0.0], [0.0, 0.0], None),
    "norms of rows": (
        lambda x: np.linalg.norm(np.stack([0.0 * x, x]), axis=-1),
        [3.0, 4.0],
        [0.6, 0.8],
        None,
    ),
    "masked norm": (lambda x: np.where(np.sum(x * x) > 0, np.linalg.norm(x), 0.0), [0.0, 0.0], [0.0] * 2, [0.0] * 2),
    "norm of order 1": (lambda x: np.linalg.norm(x, ord=1), [0.0, -2.0], [0.0, -1.0], [0.0, 0.0]),
    "norm of order 3 at the origin": (lambda x: np.linalg.norm(x, ord=3), [0.0, 0.0], [0.0, 0.0], None),
    "spread of a constant": (np.std, [1.0, 1.0, 1.0], [0.0] * 3, None),
    "product with one zero": (np.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0], [5.0, 3.0, 2.0]),
    "product with two zeros": (np.prod, [0.0, 0.0, 3.0], [0.0] * 3, [3.0, 3.0, 0.0]),
    "logarithm under where=": (
        lambda x: np.log(x, where=x > 0, out=wg.tensor([0.0, 0.0])),
        [0.0, 2.0],
        [0.0, 0.5],
        [0.0, -0.25],
    ),
    "sum under where=": (lambda x: np.sum(np.log(x), where=x > 0), [0.0, 2.0], [0.0, 0.5], [0.0, -0.25]),
    "softmax of masked logits": (
        lambda x: np.exp(np.where(np.array([True, False]), x, -inf) - x[0]),
        [0.5, 1.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ),
    "logaddexp of rows, with -inf": (
        lambda x: np.logaddexp.reduce(np.stack([x, x[::-1]]), axis=1),
        [-inf, 0.0],
        [0.0, 2.0],
        [0.0, 0.0],
    ),
    "a row of -inf behind a mask": (
        lambda x: np.where(np.isfinite(x).any(), log_sum_exp(np.where(np.isfinite(x), x, -1e300)), 0.0),
        [-inf, -inf],
        [0.0, 0.0],
        [0.0, 0.0],
    ),
}

LOOKED_AT = {"a boolean index", "x log x by a boolean index"}  # programs that look at numbers, which lanes cannot
UNBOUNDED = {"zero times sqrt at 0"}  # forward mode meets an infinite tangent before the factor zero

EVERYWHERE = {**{name: case for name, case in CASES.items() if name not in UNBOUNDED}, **MORE}


def along(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the derivative along ones, by forward mode."""
    return lambda x: wg.jvp(lambda v: np.sum(f(v)), (x,), (np.ones(np.shape(x)),))[1]


def against(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the same by reverse mode."""
    return lambda x: np.sum(wg.grad(lambda v: np.sum(f(v)))(x))


def in_lanes(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the mean over two equal lanes."""
    return lambda x: np.mean(wg.vmap(f)(np.stack([x, x])))


FIRST: dict[str, Callable[[Any], Any]] = {
    "jvp": along,
    "linearize": lambda f: lambda x: wg.linearize(lambda v: np.sum(f(v)), x)[1](np.ones(x.shape)),
    "jacfwd": lambda f: lambda x: np.sum(wg.jacfwd(lambda v: np.sum(f(v)))(x)),
    "jacrev": lambda f: lambda x: np.sum(wg.jacrev(lambda v: np.sum(f(v)))(x)),
    "vmap of grad": lambda f: in_lanes(against(f)),
    "vmap of jvp": lambda f: in_lanes(along(f)),
    "grad of vmap": lambda f: against(in_lanes(lambda x: np.sum(f(x)))),
    "jvp of vmap": lambda f: along(in_lanes(lambda x: np.sum(f(x)))),
}

SECOND: dict[str, Callable[[Any], Any]] = {
    "jvp of grad": lambda f: along(against(f)),
    "grad of jvp": lambda f: against(along(f)),
    "jvp of jvp": lambda f: along(along(f)),
    "hessian": lambda f: lambda x: np.sum(wg.hessian(lambda v: np.sum(f(v)))(x)),
    "vmap of grad of grad": lambda f: in_lanes(against(against(f))),
    "vmap of jvp of grad": lambda f: in_lanes(along(against(f))),
    "vmap of grad of jvp": lambda f: in_lanes(against(along(f))),
    "vmap of jvp of jvp": lambda f: in_lanes(along(along(f))),
    "grad of jvp of vmap": lambda f: against(along(in_lanes(lambda x: np.sum(f(x))))),
}


@pytest.mark.parametrize("mode", FIRST)
@together("name", EVERYWHERE)
def test_gradient_in_every_mode(name: str, mode: str) -> None:
    f, x, want, _ = EVERYWHERE[name]
    if "vmap" in mode and name in LOOKED_AT:
        return
    np.testing.assert_allclose(FIRST[mode](f)(np.array(x)), np.sum(want), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", SECOND)
@together("name", [name for name, case in EVERYWHERE.items() if case[3] is not None])
def test_second_derivative_in_every_mode(name: str, mode: str) -> None:
    f, x, _, want = EVERYWHERE[name]
    if "vmap" in mode and name in LOOKED_AT:
        return
    np.testing.assert_allclose(SECOND[mode](f)(np.array(x)), np.sum(want), rtol=1e-12, atol=1e-12)


def guards_of(f: Callable[..., Any], *args: Any) -> list[str]:
    """Return the operations of the traced gradient of a sum, if there are guards among them."""
    names = [e.primitive.name for e in wg.graph.trace(wg.elementwise_grad(f))(*map(np.array, args)).equations]
    return names if "guarded" in names else []


def test_guards_are_one_equation_each_of_graphs() -> None:
    assert guards_of(lambda x: np.exp(np.sqrt(x)), [1.0, 2.0]).count("guarded") == 1
    assert "where" not in guards_of(lambda x: np.exp(np.sqrt(x)), [1.0, 2.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.exp(x**2),
        lambda x: np.exp(x**3.5),
        lambda x: np.exp(np.power(x, 1)),
        lambda x: np.sqrt(x),  # which a cotangent without zeros reaches
        lambda x: np.sin(x / 3.0),
        lambda x: np.where(x > 1, -x + 1.0, x),
    ],
)
def test_guards_that_cannot_act_are_not_made(f: Callable[..., Any]) -> None:
    assert guards_of(f, [1.0, 2.0]) == []


@pytest.mark.parametrize("exponent", [0.5, -1, 0.999])
def test_powers_that_are_singular_at_zero_keep_their_guard(exponent: float) -> None:
    assert guards_of(lambda x: np.exp(x**exponent), [1.0, 2.0])
    masked = wg.grad(lambda x: np.sum(x**exponent * 0.0))
    assert masked(np.zeros(2)).tolist() == wg.jit(masked)(np.zeros(2)).tolist() == [0.0, 0.0]


def test_squares_behind_a_mask_are_guarded() -> None:
    masked = wg.grad(lambda x: np.sum(np.where(x < 9, x**2, 0.0)))
    for f in (masked, wg.jit(masked)):
        assert f(np.array([2.0, inf])).tolist() == [4.0, 0.0]


def test_guards_are_not_differentiated_into_guards_of_everything_before() -> None:
    def f(x: Any) -> Any:
        for _ in range(10):
            x = np.exp(x) * x
        return np.log(x)

    second = wg.graph.trace(wg.elementwise_grad(wg.elementwise_grad(f)))(np.ones(2)).equations
    assert sum(e.primitive.name == "guarded" for e in second) < 10


def test_a_guard_acts_in_every_mode_and_order() -> None:
    def slope(x: Any, t: Any) -> Any:
        return wg.jvp(np.sqrt, (x,), (t,))[1]

    x, t = np.zeros(2), np.array([0.0, 1.0])
    for f in (slope, wg.jit(slope), wg.vmap(slope), wg.jit(wg.vmap(slope))):
        assert f(x, t).tolist() == [0.0, inf]
    for f in (slope, wg.jit(slope)):
        assert wg.grad(lambda t, f=f: np.sum(f(x, t)))(t).tolist() == [0.0, inf]


@together("shape, axis", [((4099,), 0), ((3, 1001), 0), ((45, 50), 1), ((2, 1500, 1), None)])
def test_products_of_many_factors_do_not_divide_by_them(shape: tuple[int, ...], axis: int | None) -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape)
    gradient = wg.elementwise_grad(lambda x: np.prod(x, axis=axis, keepdims=True))
    np.testing.assert_allclose(gradient(x), np.prod(x, axis=axis, keepdims=True) / x, rtol=1e-12)
    place = tuple(n // 2 for n in shape)
    x[place] = 1.0
    others = np.prod(x, axis=axis, keepdims=True)
    x[place] = 0.0
    wanted = np.where(x == 0.0, others, np.where(np.any(x == 0.0, axis=axis, keepdims=True), 0.0, others / x))
    np.testing.assert_allclose(gradient(x), wanted, rtol=1e-12)


# Missing data: what a function of NumPy leaves out gets nothing back, not even the NaN that its partial is


HOLES = np.array([1.0, np.nan, 3.0, 2.0])
SKIPPING = {
    "sum": lambda a: np.nansum((HOLES - a) ** 2 / a + np.log(HOLES * a)),
    "prod": lambda a: np.nanprod(HOLES * a),
    "cumsum": lambda a: np.nancumsum(HOLES * a)[2],
    "cumprod": lambda a: np.nancumprod(HOLES * a)[2],
    "mean": lambda a: np.nanmean(HOLES * a),
    "mean along an axis": lambda a: np.nanmean(np.stack([HOLES * a, HOLES[::-1] * a**2]), axis=0)[1],
    "var": lambda a: np.nanvar(HOLES * a),
    "std": lambda a: np.nanstd(HOLES * a),
    "max": lambda a: np.nanmax(HOLES * a),
    "min": lambda a: np.nanmin(HOLES * a),
    "median": lambda a: np.nanmedian(HOLES * a),
    "quantile": lambda a: np.nanquantile(HOLES * a, 0.3),
    "percentile": lambda a: np.nanpercentile(HOLES * a, 30),
}


@together("f", list(SKIPPING.values()))
def test_what_is_left_out_sends_nothing_back(f: Callable[[Any], Any]) -> None:
    expected = (float(f(2.0 + 1e-6)) - float(f(2.0 - 1e-6))) / 2e-6
    found = [wg.grad(f)(2.0), wg.jit(wg.grad(f))(2.0), wg.grad(wg.jit(f))(2.0), wg.vmap(wg.grad(f))(np.array([2.0]))[0]]
    found.append(wg.jvp(f, (2.0,), (1.0,))[1])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isfinite(wg.hessian(f)(2.0))


@together("make", [float, np.float64, np.array])
@together(
    "f",
    [
        lambda x: np.where(x > 0, x * np.log(x), 0.0),
        lambda x: np.where(bool(x > 0), x * np.log(x), 0.0),
        lambda x: np.nan_to_num(x * np.log(x)),
        lambda x: np.where(np.isfinite(np.exp(1 / x) * x), np.exp(1 / x) * x, 0.0),
    ],
)
def test_masks_of_numbers_are_masks(make: Any, f: Any) -> None:
    x = make(0.0)
    leaf = wg.tensor(0.0, requires_grad=True)
    f(leaf).backward()
    found = [wg.grad(f)(x), wg.grad(wg.grad(f))(x), wg.hessian(f)(x), wg.jvp(f, (x,), (1.0,))[1], wg.jit(wg.grad(f))(x)]
    assert not np.any(found)
    assert leaf.grad is not None
    assert leaf.grad.item() == 0.0


def test_nan_to_num_sends_nothing_back_to_what_it_replaces() -> None:
    x = np.array([0.0, 2.0])
    for f in (lambda x: np.nan_to_num(x * np.log(x)), lambda x: np.nan_to_num(x / x) * x):
        assert np.isfinite(first(f, x)).all()


# Masks at every order: what is finite where a mask hides it, but has slopes that are not


HIDDEN = np.array([0.0, inf, -inf, np.nan, -1.0, 1.0, 1e300])
SEEN = np.full(2, 0.7)
KEPT = np.array([True, *[False] * len(HIDDEN), True])
STEEP = {
    "exp(-x x)": lambda x: np.exp(-x * x),
    "x^1.5": lambda x: x**1.5,
    "x^x": lambda x: x**x,
    "cbrt": np.cbrt,
    "arctanh": np.arctanh,
    "log(exp(x) + exp(-x))": lambda x: np.log(np.exp(x) + np.exp(-x)),
    "logaddexp": lambda x: np.logaddexp(x, -1 / x),
    "gammainc": lambda x: special.gammainc(x, x),
    "x log x": lambda x: x * np.log(x),
    "exp(-1 / x^2)": lambda x: np.exp(-1 / (x * x)),
}


def written(f: Callable[[Any], Any], x: Any) -> Any:
    y = f(x) * 1.0
    y[~KEPT] = 0.25
    return y


def written_through_a_view(f: Callable[[Any], Any], x: Any) -> Any:
    y = f(x) * 1.0
    back = y[::-1]
    back[~KEPT[::-1]] = 0.25
    return y


HIDING = {
    "where": lambda f: lambda x: np.where(KEPT, f(x), 0.25),
    "where of integers": lambda f: lambda x: np.where(KEPT.astype(int), f(x), 0.25),
    "where twice": lambda f: lambda x: np.where(KEPT, np.where(x > -5, f(x), np.log(x)), 0.25),
    "where before and after": lambda f: lambda x: np.where(KEPT, f(np.where(KEPT, x, 0.7)), 0.25),
    "select": lambda f: lambda x: wg.numpy.select([~KEPT], [0.25], f(x)),
    "product of two": lambda f: lambda x: np.where(KEPT, f(x) * x, 0.25) * np.where(KEPT, x, 2.0),
    "written": lambda f: lambda x: written(f, x),
    "written through a view": lambda f: lambda x: written_through_a_view(f, x),
    "a part": lambda f: lambda x: f(x)[KEPT],
    "choose": lambda f: lambda x: np.choose(KEPT.astype(int), [0.25, f(x)]),
    "compress": lambda f: lambda x: np.compress(KEPT, f(x)),
    "extract": lambda f: lambda x: np.extract(KEPT, f(x)),
    "putmask": lambda f: lambda x: overwritten(np.putmask, f, x),
    "place": lambda f: lambda x: overwritten(np.place, f, x),
}


def overwritten(write: Callable[..., None], f: Callable[[Any], Any], x: Any) -> Any:
    """Return the elements of a function, a constant being written over what is hidden."""
    y = f(x) * 1.0
    write(y, ~KEPT, np.array([0.25, 0.25]))
    return y


def pushed(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the derivative of all elements along ones, by forward mode."""
    return lambda x: wg.jvp(f, (x,), (np.ones(KEPT.shape),))[1]


def pulled(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the gradient of the sum."""
    return wg.grad(lambda x: np.sum(f(x)))


def on_the_tape(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the second derivative by sweeps of sweeps of a tape."""

    def second(x: Any) -> Any:
        leaf = wg.tensor(x, requires_grad=True)
        (slope,) = wg.autograd.grad(np.sum(f(leaf)), leaf, create_graph=True)
        return wg.autograd.grad(slope.sum(), leaf)[0].numpy()

    return second


ORDERS: dict[str, Callable[[Any], Any]] = {
    "grad": pulled,
    "grad of grad": lambda f: pulled(pulled(f)),
    "jvp of grad": lambda f: pushed(pulled(f)),
    "grad of jvp": lambda f: pulled(pushed(f)),
    "third": lambda f: pushed(pulled(pulled(f))),
    "third, forward in between": lambda f: pulled(pushed(pulled(f))),
    "tape": on_the_tape,
    "checkpoint": lambda f: pushed(pulled(wg.checkpoint(f))),
    "lanes": lambda f: lambda x: wg.vmap(pushed(pulled(f)))(np.stack([x, x]))[1],
    "jit, reverse": lambda f: wg.jit(pulled(pulled(f))),
    "jit, forward": lambda f: wg.jit(pushed(pulled(f))),
}


@pytest.mark.parametrize("order", ORDERS)
@together("hide, f", some_of([(hide, f) for hide in HIDING for f in STEEP], "steep"))
def test_what_a_mask_hides_has_no_slope_of_any_order(hide: str, f: str, order: str) -> None:
    if order == "third" and hide == "product of two":
        return  # its infinite second slopes meet zeros of another factor (ADR 0006)
    found = ORDERS[order](HIDING[hide](STEEP[f]))
    x = np.array([SEEN[0], *HIDDEN, SEEN[1]])
    want = found(np.full(KEPT.shape, SEEN[0]))
    with np.errstate(all="ignore"):
        result = found(x)
    if result.shape == KEPT.shape:
        want = np.where(KEPT, want, 0.0)
    np.testing.assert_allclose(result, want, rtol=1e-12, atol=1e-12)


@together("name", ["fmax", "fmin"])
def test_nan_that_is_left_out_reaches_no_gradient_of_a_product(name: str) -> None:
    choose = getattr(np, name)

    def loss(x: Any, y: Any, z: Any) -> Any:
        return np.sum(choose(np.sqrt(x) * y, z) + choose(z, y * x * np.inf * 0.0))

    for shape in ((), (3,), (70_000,)):  # scalars, arrays, and such that are shared among threads
        arguments = [np.full(shape, value) for value in (-1.0, 2.0, 3.0)]
        want = [np.zeros(shape), np.zeros(shape), np.full(shape, 2.0)]
        with np.errstate(all="ignore"):
            for function in (loss, wg.jit(loss)):
                found = wg.grad(function, argnums=(0, 1, 2))(*arguments)
                for a, b in zip(found, want, strict=True):
                    np.testing.assert_array_equal(a, b)
            leaves = [wg.tensor(x, requires_grad=True) for x in arguments]
            loss(*leaves).backward()
            for leaf, b in zip(leaves, want, strict=True):
                np.testing.assert_array_equal(leaf.grad, b)
            x, y, z = arguments
            bent = wg.grad(lambda y, x=x, z=z: np.sum(wg.grad(loss, 1)(x, y, z)))(y)
            np.testing.assert_array_equal(bent, np.zeros(shape))


PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "product": lambda s: s @ s,
    "complex product": lambda s: ((s + 1j) @ s).real,
    "norm": np.linalg.norm,
    "call": wg.jit(lambda s: s @ s),
    "loop": lambda s: wg.fori_loop(0, 2, lambda _i, s: s @ s, s),
    "part of a loop": lambda s: s @ s,
}


@together("name", PRODUCTS)
def test_branches_that_are_not_taken_send_nothing_to_products_before_them(name: str) -> None:
    made = PRODUCTS[name]

    def f(x: Any) -> Any:
        if name == "part of a loop":
            x = wg.fori_loop(0, 2, lambda _i, x: chosen(x, made(np.outer(x, 1 / x))), x)
            return np.sum(x * x)
        return np.sum(chosen(x, made(np.outer(x, 1 / x))) ** 2)

    x = np.array([-1.0, 0.0])
    first, second = (10.125, 10.125) if name == "part of a loop" else (4.5, 4.5)
    with np.errstate(all="ignore"):
        for gradient in (wg.grad(f), wg.jit(wg.grad(f)), wg.grad(wg.jit(f))):
            np.testing.assert_allclose(gradient(x), first * x)
        np.testing.assert_allclose(wg.jit(wg.hessian(f))(x), second * np.eye(2))


def chosen(x: Any, made: Any) -> Any:
    return wg.cond(x[0] > 0, lambda x, made: x * np.sum(made), lambda x, _made: 1.5 * x, x, made)


def test_deviations_of_nan_have_no_tangents() -> None:
    x = np.array([np.nan, 1.0, 2.0])
    assert np.isnan(wg.jvp(np.std, (x,), (np.ones(3),))[1])  # it was 0, and NaN in reverse mode
    assert np.isnan(wg.grad(np.std)(x)).all()


def carried(x: Any) -> Any:
    """Return 1 + x by a loop that begins at infinity."""
    return wg.fori_loop(0, 2, lambda _i, c: np.where(x > 9, x * c, 1 / np.cosh(c) * 0 + 1 + x), inf)


@together("made", [lambda x: np.append(x + 1, inf), carried])
def test_infinite_constants_that_were_chosen_do_not_move_series_and_loops(made: Callable[[Any], Any]) -> None:
    root, t = 1 / np.cosh(1.7), np.tanh(1.7)
    f = lambda x: np.sum(1 / np.cosh(made(x)))
    want = root, -root * t, root * (t * t - root * root) / 2
    np.testing.assert_allclose(wg.taylor(wg.jit(f), (0.7,), (1.0,), 2), want, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(lambda x: wg.jvp(f, (x,), (1.0,)))(0.7), want[:2], rtol=1e-12)


def infinite_partials() -> Iterator[tuple[Elementwise, int, list[float]]]:
    """Yield the elementwise primitives that have an infinite partial, by which operand, and one place of such."""
    points = np.array([-0.5, 0.0, 0.3, 1.0, 2.0])
    for primitive in PRIMITIVES.values():
        if not isinstance(primitive, Elementwise) or len(primitive.rules) > 3 or not primitive.singular:
            continue
        operands = [x.ravel() for x in np.meshgrid(*[points] * len(primitive.rules))]
        with contextlib.suppress(TypeError):  # it has parameters, or an order that is no whole number
            out = primitive.evaluate(*operands)
            for i, rule in enumerate(primitive.declared):
                if rule is not None and not hasattr(rule, "refuses"):
                    found = np.flatnonzero(np.isfinite(out) & np.isinf(rule(np.ones(operands[0].size), out, *operands)))
                    if found.size:
                        yield primitive, i, [float(x[found[-1]]) for x in operands]


def check_still(primitive: Elementwise, i: int, place: list[float]) -> None:
    """Compare with 0 what an infinite partial times 0 gives, in all modes."""

    def product(x: Any, y: Any) -> Any:
        return apply(primitive, *place[:i], x, *place[i + 1 :]) * y

    def moved(u: Any, w: Any) -> Any:
        return apply(primitive, *place[:i], place[i] + u * w, *place[i + 1 :])

    for f, at in ((product, (place[i], 0.0)), (moved, (1.0, 0.0))):
        pushed = lambda x, y, f=f: wg.jvp(f, (x, y), (1.0, 0.0))[1]
        for derivative in (pushed, wg.grad(f), wg.jit(pushed), wg.jit(wg.grad(f))):
            assert derivative(*at) == 0, (primitive.name, i, place)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:floating point number truncated")
def test_infinite_partials_times_zero_are_zero_of_every_function() -> None:
    cases = list(infinite_partials())
    assert len(cases) > 45
    for primitive, i, place in cases:
        assert primitive.steep, primitive.name
        check_still(primitive, i, place)


@together(
    "case",
    [
        ("gammainc", 1, [0.3, 0.0]),
        ("betainc", 2, [0.3, 2.0, 0.0]),
        ("entr", 0, [0.0]),
        ("eval_sh_chebyt", 1, [0.3, 0.0]),
    ],
)
def test_infinite_partials_of_special_functions_times_zero_are_zero(case: Any) -> None:
    name, i, place = case
    check_still(PRIMITIVES[name], i, place)  # type: ignore[arg-type]
