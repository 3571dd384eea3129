"""Native loops of few numbers, which stay in registers: what they give is what evaluating them does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.support import config

START = np.array([0.3, -0.8])


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)


def spiral(y: Any) -> Any:
    """Return the next point, whose elements depend on both."""
    return np.stack([y[0] - 0.1 * np.sin(y[1]), y[1] + 0.1 * y[0] + np.sum(y * y) * 0.01])


def until_far(y: Any, bound: Any) -> Any:
    """Return where rounds that a condition ends get to, how many there are, and the rows that they leave behind."""

    def step(carried: Any) -> Any:
        point, count, _ = carried
        after = spiral(point)
        return (after, count + 1, after[1] > 0), (after, count)

    carried, rows, count = wg.while_loop(
        lambda carried: np.sum(np.abs(carried[0])) < bound,
        step,
        (y, np.zeros((), int), False),
        rows=True,
        max_rounds=1000,
    )
    return (*carried, np.sum(np.where(np.arange(1000)[:, None] < count, rows[0], 0.0)), count)


def counted(y: Any, count: Any) -> Any:
    """Return where so many rounds get to."""
    return wg.fori_loop(0, count.astype(int), lambda i, carried: (spiral(carried[0]) + i * 0.01, carried[0]), (y, y))


def backward(y: Any, scale: Any) -> Any:
    """Return what rounds over rows, the last one first, leave behind, and which they change in place."""
    rows = np.arange(14.0).reshape(7, 2) * scale

    def step(carried: Any, row: Any) -> Any:
        after = spiral(carried) + row * 0.1
        return after, (after[0] > 0, np.max(after), carried[::-1])

    return wg.scan(step, y, rows, reverse=True)


def at_computed_places(y: Any, scale: Any) -> Any:
    """Return numbers of which each round reads one at a place that it computes."""

    def step(i: Any, carried: Any) -> Any:
        return carried * 0.5 + carried[i % 2] * scale

    return wg.fori_loop(0, 5, step, y)


CASES: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "until_far": (until_far, [0.5, 3.0, 9.0]),
    "counted": (counted, [0.0, 1.0, 40.0]),
    "backward": (backward, [0.2]),
    "at_computed_places": (at_computed_places, [0.7]),
}


@pytest.mark.parametrize("name", CASES)
def test_rounds_give_what_evaluated_ones_do(name: str) -> None:
    function, scales = CASES[name]
    plain, native = wg.jit(function, native=False), wg.jit(function, native=True)
    assert "phi double" in str(native.lower(START, np.float64(scales[0])).llvm) or name == "at_computed_places"
    for scale in map(np.float64, scales):
        for mine, known in zip(*map(wg.tree.leaves, (native(START, scale), plain(START, scale))), strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-13, atol=1e-15)


def written_to(y: Any, scale: Any) -> Any:
    """Return what rounds leave that write to what they carry, at places that arrays and masks tell."""

    def step(carried: Any, factor: Any) -> Any:
        after = np.array(carried, like=carried)
        after[np.array([2])] = after[np.array([2])] * factor
        np.add.at(after, np.array([0, 0]), 0.1 * factor)
        after[np.array([True, False, False, True])] *= scale
        return after, after[0]

    return wg.scan(step, np.concatenate([y, y + 0.1]), np.linspace(0.5, 1.0, 4))


@pytest.mark.parametrize("function", [until_far, backward, written_to])
def test_gradients_go_back_through_them(function: Callable[..., Any]) -> None:
    def total(y: Any) -> Any:
        first, second = wg.tree.leaves(function(y, np.float64(3.0)))[:2]
        return np.sum(first * first) + np.sum(second)

    found, known = (wg.jit(wg.grad(total), native=native)(START) for native in (True, False))
    np.testing.assert_allclose(found, known, rtol=1e-12)


def sums_of_all(x: Any) -> Any:
    """Return sums of all numbers, and what is computed of these."""
    size = np.sum(x * x)
    return size, np.max(x) * x, np.prod(x), x / size


def sums_of_rows(x: Any) -> Any:
    """Return sums within rows, over these, and what each row computes of its own."""
    rows = np.stack([x, x * x, np.where(x > 0, x, -2.0)])
    own = np.sum(rows * rows, axis=1)
    product = rows @ np.stack([x[0] * x[1], x[1] / x[2], x[3], x[0] - x[3]])
    return rows / own[:, None], np.sum(rows * np.max(rows, axis=1)[:, None], axis=0), product * own, rows[:, :1] - own


@pytest.mark.parametrize("function", [sums_of_all, sums_of_rows])
def test_sums_of_few_points_are_spelled_out(function: Callable[[Any], Any]) -> None:
    x = np.array([1.5, -2.0, 0.25, 4.0])
    native = wg.jit(function, native=True)
    for mine, known in zip(native(x), function(x), strict=True):
        np.testing.assert_allclose(mine, known, rtol=1e-14)
    lowered = native.lower(x)
    assert "masked" not in str(lowered.llvm)
    assert "rows 3" not in str(lowered.kernels)


def test_functions_of_alternatives_are_evaluated_where_they_are_known() -> None:
    def function(x: Any) -> Any:
        known, is_first = np.sin(x[0]), x[2] > 0
        either = np.where(is_first, x[0], x[1])
        return known, np.cos(either), np.sin(np.where(x[2] > 2, x[1], x[0])), np.sin(either) * np.where(is_first, 1, 2)

    native = wg.jit(function, native=True)
    for x in ([0.3, -0.0, 1.0], [0.3, 1e6, -1.0], [2.0, np.inf, 3.0], [-2.0, np.nan, 1.0], [0.1, 1e30, np.nan]):
        with np.errstate(invalid="ignore"):
            want = function(np.array(x))
        for mine, known in zip(native(np.array(x)), want, strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-15)
    assert str(native.lower(np.ones(3)).llvm).count("@sin.rare0.float64x0(double %") == 2
