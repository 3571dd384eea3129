"""Writes in loops: natively they change memory in place, and give what they give evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of
from wengert.support import config
from wengert.transforms.tracing import trace

LONG = 600
U = np.random.default_rng(3).normal(size=LONG)
M = U.reshape(20, 30)
Body = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)


def element(i: Any, u: Any) -> Any:
    u[i] = u[i - 1] * 0.5 + np.sin(u[i])
    return u


def product(i: Any, u: Any) -> Any:
    u[i] = u[i - 1] * u[i + 1]
    return u


def counted(i: Any, u: Any) -> Any:
    u[i] = u[i - 1] + u[i + 1]
    return u


def read_before_and_after(i: Any, u: Any) -> Any:
    before = u[i] * 1.0
    u[i] = 0.25
    u[i + 2] += before * u[i] + u[i + 5]
    return u


def window(i: Any, u: Any) -> Any:
    u[2:8] += u[10:16] * u[i]
    u[-1:-7:-1] = u[2:8]
    u[20:60:8] = u[i] * 0.5
    return u


def table(i: Any, u: Any) -> Any:
    places = (np.arange(4) * 7 + i) % 23
    u[places] = u[places + 1] * 0.9
    u[np.array([5, 9, 5])] += u[3:6]
    return u


def twice(i: Any, u: Any) -> Any:
    def inner(j: Any, u: Any) -> Any:
        u[i + j] += u[j] * 0.5
        return u

    return wg.fori_loop(0, 3, inner, u)


def copied(i: Any, u: Any) -> Any:
    old = u.copy()
    u[i] = np.sum(u[:5])
    return u + old * 0.01


def column(i: Any, m: Any) -> Any:
    m[:, i] = m[:, i - 1] * 0.5
    m[i] += m[i - 1]
    return m


IN_PLACE: dict[str, tuple[Body, Any]] = {
    "an element": (element, U),
    "a product": (product, U),
    "reads before and after": (read_before_and_after, U),
    "windows": (window, U),
    "tables": (table, U),
    "a loop inside": (twice, U),
    "negative strides": (element, U[::-1]),
    "columns and rows": (column, M),
    "integers": (counted, (U * 100).astype(np.int64)),
}
CASES = {**IN_PLACE, "all of what it was": (copied, U), "in Fortran's order": (column, np.asfortranarray(M))}


def repeated(body: Body) -> Callable[[Any], Any]:
    return lambda u: wg.fori_loop(1, 9, lambda i, u: body(i, u), u * 1)


def summed(body: Body) -> Callable[[Any], Any]:
    return lambda u: np.sum(np.cos(repeated(body)(u)) * np.arange(u.size).reshape(u.shape))


def agree(function: Callable[..., Any], *args: Any) -> None:
    kept = [x.copy() for x in args]
    jitted, want = wg.jit(function), wg.tree.leaves(function(*args))
    for _ in range(2):
        for a, b in zip(wg.tree.leaves(jitted(*args)), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    for x, y in zip(args, kept, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("case", CASES)
def test_writes_give_natively_what_they_give_evaluated(case: str) -> None:
    body, u = CASES[case]
    agree(repeated(body), u)
    if u.dtype.kind == "f":
        slope = wg.grad(summed(body))
        derivatives = [
            (slope, u),
            (lambda u, t: wg.jvp(slope, (u,), (t,))[1], u, u[::-1] * 0.5),
            (wg.vmap(slope), np.stack([u, 0.5 * u])),
        ]
        for function, *args in some_of(derivatives, case):
            agree(function, *args)


@pytest.mark.parametrize("case", IN_PLACE)
def test_iterations_change_what_they_write_to(case: str) -> None:
    body, u = IN_PLACE[case]
    functions = [repeated(body), wg.grad(summed(body))] if u.dtype.kind == "f" else [repeated(body)]
    for function in functions:
        shown = str(wg.jit(function).lower(u).kernels)
        loops = shown.split("loop rounds")[1:]
        assert any("from x0 to" in loop and f"x0: changed {u.dtype}" in loop for loop in loops), shown


def test_what_is_carried_twice_or_left_behind_stays_as_it_was() -> None:
    def two(i: Any, pair: Any) -> Any:
        a, b = pair
        a[i] = b[i + 1] * 0.5
        return b, a

    def step(u: Any, i: Any) -> Any:
        u[i] = u[i - 1] * 0.5
        return u, u * 1.0

    agree(lambda u: wg.fori_loop(1, 6, two, (u * 2.0, u * 2.0)), U)
    agree(lambda u: wg.scan(step, u * 1.0, np.arange(1, 5)), U)
    agree(lambda u: (wg.fori_loop(1, 6, element, u * 1.0), np.sum(u)), U)


def test_loops_that_begin_with_one_number_everywhere_fill_their_result() -> None:
    for start in (0.25, 1.5 + 0.5j):
        agree(lambda u: wg.fori_loop(1, 6, lambda i, v: element(i, v), np.full(LONG, start, like=u)) + u[0], U)  # noqa: B023
    gradient = wg.grad(lambda u: np.sum(repeated(element)(u)))
    agree(gradient, U)
    assert f"constant float64[{LONG}]" not in str(wg.jit(gradient).lower(U).kernels)


def test_what_is_carried_may_become_known() -> None:
    known = np.array([1.0, 2.0, 3.0])
    agree(lambda u: wg.scan(lambda s, x: ((known, s[1] * x), s[0][1] * x), (u[:3], u[0]), u[:4]), U)


def test_a_place_out_of_bounds_raises_and_changes_nothing() -> None:
    function = wg.jit(lambda u, first: wg.fori_loop(0, 4, lambda i, u: element(i + first, u), u))
    u = U.copy()
    for _ in range(2):
        function(u, 3)
    with pytest.raises(IndexError):
        function(u, LONG - 2)
    np.testing.assert_array_equal(u, U)


def test_writes_one_after_the_other_change_one_array() -> None:
    def recorded(u: Any) -> Any:
        found = np.zeros((40, 50), like=u)
        for k in iter(range(40)):  # an iterator, so that it is written out
            u = np.sin(u)
            found[k] = u
        return found

    u = U[:50]
    agree(recorded, u)
    agree(wg.grad(lambda u: np.sum(recorded(u) ** 2)), u)
    assert str(wg.jit(recorded).lower(u).kernels).count("changed") >= 38
    assert len(trace(recorded)(u).equations) < 100
