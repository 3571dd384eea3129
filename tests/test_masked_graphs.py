"""Tests that what branches, loops and calls of graphs compute behind a mask never turns into NaN.

Each source has an infinite partial at 0, and each mask leaves it out there, by a selection, by a branch not taken, or
by nobody's using it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import OPTIONS, some_of

inf = np.inf
Source = Callable[[Any], Any]
Mask = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def logarithm(x: Any) -> Any:
    return x * np.log(x)


def infinite(x: Any) -> Any:
    return inf * (x + 1.0) * x


def loop(x: Any) -> Any:
    t = x + 0.0
    for _ in range(40):
        t = t * np.log(x)
    return t


def open_loop(x: Any) -> Any:
    t, n = x + 0.0, 0.0 * x
    while n < 3:
        t, n = t * np.log(x), n + 1
    return t


def branch(x: Any) -> Any:
    if x < 1:
        return inf * (x + 1.0)
    return x * 2


def scan_with_branch(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        return wg.cond(c > x - 1, lambda c, t: c + x, lambda c, t: t * c, c, x * np.log(x)), None

    return wg.scan(step, x + 0.0, None, 3)[0]


def scan_with_selection(x: Any) -> Any:
    start = x * np.log(x + 1)
    return wg.scan(lambda c, _: (np.where(c > x - 1, c + x, c * np.log(x)), None), start, None, 3)[0]


SOURCES: dict[str, Source] = {
    "logarithm": logarithm,
    "infinite": infinite,
    "jit": wg.jit(logarithm),
    "jit of a product": wg.jit(infinite),
    "call": lambda x: wg.call(logarithm, x),
    "checkpoint": wg.checkpoint(logarithm),
    "scan": lambda x: wg.scan(lambda c, _: (c * np.log(x), None), x + 0.0, None, 3)[0],
    "what a scan leaves": lambda x: wg.scan(lambda c, _: (c, c * np.log(x)), x + 0.0, None, 3)[1][1],
    "while_loop": lambda x: wg.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * np.log(x)), (0, x + 0.0))[1],
    "cond": lambda x: wg.cond(x < 1, infinite, lambda x: x * 2, x),
    "for": loop,
    "while": open_loop,
    "if": branch,
    "scan with a branch": scan_with_branch,
    "scan with a selection": scan_with_selection,
}


def not_taken(x: Any, t: Any) -> Any:
    best = x * x
    if x > 0:
        best = t
    return best


def never_taken(x: Any, t: Any) -> Any:
    r = x * x
    for _ in range(40):
        r = r + x
        if r > 1e9:
            r = t
    return r


def not_entered(x: Any, t: Any) -> Any:
    r = x * x
    while r > 1e9:
        r = t * r
    return r


def replaced(x: Any, t: Any) -> Any:
    r = x * x
    for _ in range(40):
        t = x * 3
        r = r + x
    return r + t


MASKS: dict[str, Mask] = {
    "where": lambda x, t: np.where(x > 0, t, x * x),
    "cond": lambda x, t: wg.cond(x > 0, lambda a, b: a + 0.0, lambda a, b: b * b, t, x),
    "index": lambda x, t: np.stack([t, x * x])[np.array([False, True])][0],
    "not taken": not_taken,
    "never taken": never_taken,
    "not entered": not_entered,
    "replaced": replaced,
    "replaced in scan": lambda x, t: wg.scan(lambda c, _: ((c[0] + x, x * 2.0), None), (x * x, t), None, 4)[0][0],
    "result of a call": lambda x, t: wg.call(lambda a, b: (a * a, b * a), x, t)[0],
    "result of jit": lambda x, t: wg.jit(lambda a, b: (a * a, b * a))(x, t)[0],
}


def both_lanes(f: Source) -> Source:
    run = wg.jit(wg.vmap(wg.grad(f)))
    return lambda x: run(np.stack([x, x + 3.0]))[0]


FIRST: dict[str, Callable[[Source], Source]] = {
    "jit of grad": lambda f: wg.jit(wg.grad(f)),
    "grad of jit": lambda f: wg.grad(wg.jit(f)),
    "jit of vmap of grad": both_lanes,
}
SECOND: dict[str, Callable[[Source], Source]] = {
    "jit of grad of grad": lambda f: wg.jit(wg.grad(wg.grad(f))),
    "jit of hessian": lambda f: wg.jit(wg.hessian(f)),
    "grad of jit of grad": lambda f: wg.grad(lambda x: wg.jit(wg.grad(f))(x)),
    "grad of grad of jit": lambda f: wg.grad(wg.grad(wg.jit(f))),
}
CASES = list(itertools.product(SOURCES, MASKS))


def modes_of(place: int, every: bool) -> list[tuple[int, Callable[[Source], Source]]]:
    """Return ways to a derivative with its order: all, or one of each order."""
    both = [list(FIRST.values()), list(SECOND.values())]
    chosen = both if every else [[modes[place % len(modes)]] for modes in both]
    return [(order, mode) for order, modes in enumerate(chosen, 1) for mode in modes]


@pytest.mark.parametrize(("place", "names"), some_of(list(enumerate(CASES)), "masks"))
def test_masks_hide_what_graphs_compute(place: int, names: tuple[str, str]) -> None:
    source, mask = SOURCES[names[0]], MASKS[names[1]]
    x = np.float64(0.0)

    def f(x: Any) -> Any:
        return mask(x, source(x))

    eager = [wg.grad(f), wg.grad(wg.grad(f))]
    for order, mode in modes_of(place, OPTIONS.every):
        want = eager[order - 1](x)
        assert np.isfinite(want)
        run = mode(f)
        for _ in range(2):
            np.testing.assert_array_equal(run(x), want)


def used_for_nothing(x: Any) -> Any:
    y = x + 1.0
    t = wg.cond(x < 1.0, lambda a, b: a * np.log(a), lambda a, b: b * b, x, y)
    r = y
    if x > 1.0:
        wg.cond(r > -1.0, lambda a, b: a, lambda a, b: b * b, t, y)
        r = np.sqrt(y) * y
    else:
        s = r
        if x < 0.5:
            s = y / t
            s = y
        r = s
    return r + x * 0.5


def test_operands_that_no_result_depends_on_receive_nothing() -> None:
    assert wg.grad(used_for_nothing)(0.0) == wg.jit(wg.grad(used_for_nothing))(0.0) == 1.5


def test_a_loop_that_nothing_hides_has_no_guards() -> None:
    def run(x: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            return (state[0] + 0.1 * state[1], state[1] - 0.1 * state[0] * state[1]), state[0]

        return np.sum(wg.scan(step, (x, x * x), None, 5)[1])

    text = str(wg.graph.trace(wg.grad(run))(1.0))
    assert "scan" in text
    assert "guarded" not in text
    hidden = str(wg.graph.trace(wg.grad(lambda x: np.where(x > 0, run(x), x)))(1.0))
    assert "guarded" in hidden


def squared(state: Any, x: Any) -> Any:
    """Return what is used, and what grows beyond all bounds beside it and is not."""
    return np.sin(state[0] * x), state[1] * state[1] * x * 1e30


def while_loop_of(x: Any) -> Any:
    used, beside, n = x + 0.0, x * 2.0, 0
    while abs(used) < 8.0 and n < 12:
        used, beside, n = np.sin(used * x), beside * beside * 1e30, n + 1
    return used


def nested_loops(x: Any) -> Any:
    def outer(_: Any, state: Any) -> Any:
        used, beside = wg.fori_loop(0, 3, lambda _, inner: squared(inner, x), state)
        return used, beside * 2.0

    return wg.fori_loop(0, 4, outer, (x, x * 2.0))[0]


def scan_of_products(x: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        return (state[0] * np.sum(row), (state[1] @ state[1]) * x), state[1]

    return wg.scan(step, (x, np.full((2, 2), 1e30) * x), np.ones((9, 2)) * x)[0][0]


BESIDE = {
    "counted": lambda x: wg.fori_loop(0, 12, lambda _, state: squared(state, x), (x, x * 2.0))[0],
    "while": while_loop_of,
    "nested": nested_loops,
    "scan": scan_of_products,
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_a_loop_carries_for_nobody_sends_back_nothing(name: str) -> None:
    f, points = BESIDE[name], np.array([1.5, 1.25])
    gradients = [wg.grad(f)(x) for x in points]
    assert np.all(np.isfinite(gradients))
    np.testing.assert_allclose(wg.jit(wg.grad(f))(1.5), gradients[0], rtol=1e-13)
    np.testing.assert_allclose(wg.grad(wg.jit(f))(1.5), gradients[0], rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(f)))(points), gradients, rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.value_and_grad(f))(1.5), (f(1.5), gradients[0]), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.grad(wg.grad(f)))(1.5), wg.grad(wg.grad(f))(1.5), rtol=1e-12)


@functools.cache
def helper() -> Source:
    return wg.jit(infinite)


def test_a_call_behind_a_mask_changes_nothing_for_others() -> None:
    f = wg.grad(lambda x: np.where(x > 0, helper()(x), x))
    assert [f(0.0), f(0.0), f(0.0)] == [1.0, 1.0, 1.0]
    assert np.isnan(wg.grad(helper())(0.0))
    assert np.isnan(wg.grad(infinite)(0.0))


def test_results_that_are_constants_are_no_mask() -> None:
    run = wg.jit(lambda x, w: (infinite(x), w * 2.0))
    assert np.isnan(wg.grad(lambda x: run(x, 3.0)[0])(0.0))  # as without `jit`: 0 times infinity, and nothing is hidden
