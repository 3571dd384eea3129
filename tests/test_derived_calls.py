"""Calls of jitted functions with loops, by lanes, tangents and tapes of tapes: programs that are derived once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.control.loop import LoopPrimitive
from wengert.support import config
from wengert.transforms import traced_form
from wengert.transforms.traced_form import MOST_PARTITIONS, TracedForm

SCALES = np.array([0.5, 1.0, 1.5])
FREE = wg.tensor(np.array([0.3, 0.5, 0.7]), requires_grad=True)
X, T = np.array([0.4, 0.8, 1.1]), np.array([1.0, -0.5, 0.3])
LANES = np.stack([X * 0.5, X * 1.3, X * 2.2])


def grown(x: Any) -> Any:
    """Return what a loop whose rounds depend on x leaves, with a loop, a branch, a write and captured values in it."""

    def inner(i: Any, y: Any) -> Any:
        y[i % 3] = y[(i + 1) % 3] * 0.5 + np.sin(y[i % 3]) * FREE[1]
        return y

    def body(state: Any) -> Any:
        y, n = wg.fori_loop(0, 4, inner, state[0]), state[1]
        return wg.cond(np.sum(y) > 2.0, lambda y: y * 1.1, lambda y: y + SCALES * 0.2, y) + x * x * 0.3, n + 1

    return wg.while_loop(lambda state: (np.sum(state[0]) < 6.0) & (state[1] < 20), body, (x, 0))[0]


def total(f: Any) -> Any:
    return lambda x: np.sum(f(x) * SCALES)


MODES: dict[str, Callable[[Any], Any]] = {
    "lanes": lambda f: wg.vmap(f)(LANES),
    "lanes of lanes": lambda f: wg.vmap(wg.vmap(f))(np.stack([LANES, LANES * 0.7])),
    "gradients in lanes": lambda f: wg.vmap(wg.grad(total(f)))(LANES),
    "gradient of lanes": lambda f: wg.grad(lambda x: np.sum(wg.vmap(f)(x) ** 2))(LANES),
    "tangents": lambda f: wg.jvp(f, (X,), (T,)),
    "jacobian": lambda f: wg.jacobian(f)(X),
    "second gradient": lambda f: wg.grad(lambda x: np.sum(wg.grad(total(f))(x) ** 2))(X),
    "hessian and third": lambda f: wg.jvp(wg.hessian(total(f)), (X,), (T,)),
    "series": lambda f: wg.taylor(f, (X,), (T,), 3),
    "no lanes": lambda f: (wg.vmap(f)(LANES[:0]), wg.vmap(wg.grad(total(f)))(LANES[:0])),
    "tapes": lambda f: gradient_twice(f),
}


def gradient_twice(f: Any) -> Any:
    x = wg.tensor(X, requires_grad=True)
    (first,) = wg.autograd.grad(total(f)(x * 1.0), x, create_graph=True)
    return first.detach(), wg.autograd.grad(np.sum(first**2), (x, FREE))


def assert_same(found: Any, wanted: Any) -> None:
    for ours, theirs in zip(wg.tree.leaves(found), wg.tree.leaves(wanted), strict=True):
        x, y = (wg.asarray(one).detach().numpy() for one in (ours, theirs))
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


@pytest.mark.long
@together("name", MODES)
def test_what_is_derived_of_a_loop_is_what_its_rounds_give(name: str) -> None:
    run, jitted = MODES[name], wg.jit(grown)
    wanted = run(grown)
    for _ in range(2):
        assert_same(run(jitted), wanted)


@pytest.mark.parametrize("name", ["gradients in lanes", pytest.param("hessian and third", marks=pytest.mark.long)])
def test_no_round_is_taken_in_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = MODES[name]
    wanted = run(grown)
    jitted = wg.jit(grown, native=True)
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(LoopPrimitive, "iteration", lambda *_: pytest.fail("a round in Python"))
    assert_same(run(jitted), wanted)


def test_forms_are_derived_once_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(traced_form, "batched_graph", lambda *args: made.append(args) or BATCHED(*args))
    jitted = wg.jit(lambda x: wg.fori_loop(0, 3, lambda _, y: y * x, x))
    for _ in range(3):
        wg.vmap(jitted)(np.ones(4))
    assert len(made) == 1
    for size in range(5, 5 + MOST_PARTITIONS):
        wg.vmap(jitted)(np.ones(size))
    (form,) = jitted.forms.values()
    assert isinstance(form, TracedForm)
    assert len(form.derivations) == MOST_PARTITIONS


BATCHED = traced_form.batched_graph


@pytest.mark.parametrize("budget", [None, 1000])
def test_lanes_that_are_not_active_end(budget: int | None) -> None:
    halves = lambda x: wg.while_loop(lambda y: y != 1.0, lambda y: y / 2, x)
    for loop in (halves, wg.jit(halves)):
        total = lambda x, loop=loop: wg.cond(x > 0, loop, lambda x: x * 2, x)
        with nullcontext() if budget is None else wg.memory_budget(budget):
            found = wg.vmap(wg.value_and_grad(total))(np.array([8.0, -1.0, 2.0]))
        np.testing.assert_array_equal(found, [[1.0, -2.0, 1.0], [0.125, 2.0, 0.5]])


def test_results_in_lanes_share_no_memory() -> None:
    found = wg.vmap(wg.jit(lambda x: wg.fori_loop(0, 2, lambda _, y: (y[0] * 2, y[0] * 2), (x, x))))(np.ones((2, 3)))
    found[0][0] = 7.0
    np.testing.assert_array_equal(found[1], np.full((2, 3), 4.0))


def test_errors_of_lanes_name_the_line() -> None:
    @wg.jit
    def checked(x: Any) -> Any:
        while x < 5.0:
            if x < 0.0:
                raise ValueError("negative")
            x = x * 2.0 + 0.1
        return x

    with pytest.raises(ValueError, match="negative") as caught:
        wg.vmap(wg.grad(checked))(np.array([1.0, -1.0]))
    assert 'checked: raise ValueError("negative")' in "".join(caught.value.__notes__)


def test_gradients_in_lanes_share_the_byte_budget() -> None:
    def loop(x: Any) -> Any:
        return np.sum(wg.fori_loop(0, 40, lambda _, y: np.sin(y) + 0.1 * x, x))

    limited = wg.jit(loop, memory_budget=2_000)
    for _ in range(2):
        assert_same(wg.vmap(wg.grad(limited))(LANES), wg.vmap(wg.grad(loop))(LANES))
