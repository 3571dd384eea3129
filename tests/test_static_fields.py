"""Loops over dataclasses of which an iteration makes others, in whose static fields there are other numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import GraphError, UsageError


@dataclasses.dataclass(frozen=True)
class Inside:
    count: int
    done: bool
    name: str
    y: Any


@dataclasses.dataclass(frozen=True)
class Progress:
    x: Any
    steps: int
    inside: Inside
    tag: str = "a"

    def halved(self) -> Progress:
        inside = Inside(self.inside.count + 2, self.x < 0.1, self.inside.name, self.inside.y * 0.9)
        return dataclasses.replace(self, x=self.x / 2, steps=self.steps + 1, inside=inside)


def begun(x: Any, steps: int = 0) -> Progress:
    return Progress(x, steps, Inside(1, False, "q", np.ones(3) * x))


def until_done(x: Any) -> Any:
    state = begun(x)
    while not state.inside.done and state.steps < 50:
        state = state.halved()
    return state


def both_halved(x: Any) -> Any:
    states = [begun(x), begun(2 * x, 3)]
    while states[0].x > 0.05:
        states = [state.halved() for state in states]
    return states


def halved_to_the_end(x: Any) -> Any:
    state = begun(x)
    for _ in range(60):
        state = state.halved()
        if state.x < 0.01:
            break
    return state


@pytest.mark.parametrize("run", [until_done, both_halved, halved_to_the_end])
def test_loops_change_numbers_in_static_fields(run: Callable[[Any], Any]) -> None:
    def total(x: Any) -> Any:
        states = run(x)
        states = states if isinstance(states, list) else [states]
        return sum(s.x * s.steps + np.sum(s.inside.y) * s.inside.count for s in states)

    want = run(1.7)
    assert repr(wg.jit(run)(1.7)) == repr(want)
    np.testing.assert_allclose(wg.jit(wg.grad(total))(1.7), wg.grad(total)(1.7), rtol=1e-14)
    lanes = wg.jit(wg.vmap(wg.grad(total)))(np.array([1.7, 4.7]))
    np.testing.assert_allclose(lanes, [wg.grad(total)(1.7), wg.grad(total)(4.7)], rtol=1e-14)


def test_text_in_static_fields_stays_the_same_in_a_loop() -> None:
    def run(x: Any) -> Any:
        state = begun(x)
        while state.x > 0.1:
            state = dataclasses.replace(state.halved(), tag="b")
        return state.x

    with pytest.raises(GraphError, match="must keep containers"):
        wg.jit(run)(1.7)


def test_loops_of_functions_say_that_whole_numbers_in_dataclasses_are_static() -> None:
    with pytest.raises(UsageError, match="annotate a field that changes as float"):
        wg.while_loop(lambda s: s.x > 0.1, Progress.halved, begun(1.7))
