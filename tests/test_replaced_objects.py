"""Branches and loops that replace containers and objects: by others of their class, and under which names."""

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


class Vector:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor: Any) -> Vector:
        return Vector(self.x * factor, self.y * factor)

    @property
    def norm(self) -> Any:
        return np.sqrt(self.x**2 + self.y**2)


class Body:
    __slots__ = ("log", "position", "velocity")

    def __init__(self, position: Vector, velocity: Vector) -> None:
        self.position, self.velocity, self.log = position, velocity, 0


def orbit(p: Any) -> Any:
    position, velocity, n = Vector(p[0], 0.0), Vector(0.0, p[1]), 0
    while position.y < 0.5:
        velocity = velocity + position * (-0.05 / position.norm**3)
        position = position + velocity * 0.05
        n += 1
    return position.x * velocity.y + n * p[1]


def bodies(p: Any) -> Any:
    found = [Body(Vector(p[0], 0.0), Vector(0.0, p[1])), Body(Vector(-1.0, 0.0), Vector(0.0, -p[1]))]
    t = 0 * p[0]
    while t < 0.5:
        away = found[1].position + found[0].position * -1.0
        for body, sign in zip(found, (1, -1), strict=True):
            body.velocity = body.velocity + away * (sign * 0.05 / away.norm**3)
            body.position = body.position + body.velocity * 0.05
            body.log += 1
        t = t + 0.05
    return found[0].position.x * found[1].velocity.y * found[0].log


def with_the_one_before(p: Any) -> Any:
    q = Vector(p[0], p[1])
    before = q
    while q.norm < 10.0:
        before = q
        q = q * 1.5
    before.x = before.x * 2
    return q.x * before.x + before.y


def inside_of_a_dictionary(p: Any) -> Any:
    state = {"q": Vector(p[0], p[1]), "n": 0}
    while state["q"].x < 5.0:
        state = {"q": state["q"] * 1.2, "n": state["n"] + 1}
    return state["q"].y * state["n"]


@pytest.mark.parametrize("run", [orbit, bodies, with_the_one_before, inside_of_a_dictionary])
def test_loops_replace_objects_of_any_class(run: Callable[[Any], Any]) -> None:
    p = np.array([1.1, 0.9])
    np.testing.assert_allclose(wg.jit(run)(p), run(p), rtol=1e-14)
    np.testing.assert_allclose(wg.jit(wg.grad(run))(p), wg.grad(run)(p), rtol=1e-13)
    lanes = wg.jit(wg.vmap(run))(np.stack([p, 1.1 * p]))
    np.testing.assert_allclose(lanes, [run(p), run(1.1 * p)], rtol=1e-14)


def test_a_class_is_registered_after_a_loop_has_looked_into_it() -> None:
    class Pair(Vector):
        def doubled(self) -> Pair:
            return Pair(self.x * 2, self.y)

    def run(p: Any) -> Any:
        q = Pair(p[0], p[1])
        while q.x < 5.0:
            q = q.doubled()
        return q

    p = np.array([1.0, 2.0])
    assert wg.jit(lambda p: run(p).x)(p) == 8.0
    wg.tree.register(Pair)
    assert vars(wg.jit(run)(p)) == {"x": 8.0, "y": 2.0}


def list_under_two_names(p: Any) -> Any:
    q = b = [p[0], p[1]]
    while q[0] < 10.0:
        q = [q[0] * 1.5, q[1]]
        b = q
    return q, b


def list_twice_in_another(p: Any) -> Any:
    q = [p[0], p[1]]
    box = [q, q]
    while box[0][0] < 10.0:
        n = [box[0][0] * 1.5, 2.0]
        box = [n, n]
    return box


@pytest.mark.parametrize("make", [list_under_two_names, list_twice_in_another])
def test_what_a_loop_leaves_under_two_names_is_read_and_not_written_to(make: Callable[[Any], Any]) -> None:
    def read(p: Any) -> Any:
        one, other = make(p)
        return one[0] * other[1]

    def write(p: Any) -> Any:
        one, other = make(p)
        one[0] = one[0] * 3.0  # the other one shows it, in Python
        return other[0]

    p = np.array([1.1, 0.9])
    np.testing.assert_allclose(wg.jit(wg.grad(read))(p), wg.grad(read)(p))
    with pytest.raises(GraphError, match="a write to a list that has two names"):
        wg.jit(write)(p)


@pytest.mark.parametrize(
    "item", [lambda p: [p[0]], lambda p: {0: p[0]}, lambda _: np.zeros(1), lambda _: (np.ones(1),)]
)
@pytest.mark.parametrize("chosen", [True, False])
def test_items_that_a_traced_value_chooses_are_read_and_not_written_to(item: Any, chosen: bool) -> None:
    def run(p: Any, writes: bool) -> Any:
        items = [item(p), item(p * 2.0)]
        found = items[0 if p[0] > 1.0 else 1]
        if writes:
            changed = found if chosen else items[0]
            changed = changed[0] if type(changed) is tuple else changed
            changed[0] = 5.0  # both show it, in Python
        return found[0]

    p = np.array([1.1, 0.9])
    np.testing.assert_array_equal(wg.jit(run, static_argnums=1)(p, False), run(p, False))
    with pytest.raises(
        GraphError, match=r"a write to (a (list|dict) that has two names|the ndarray|what is the ndarray)"
    ):
        wg.jit(run, static_argnums=1)(p, True)


def test_an_iteration_does_not_write_to_what_the_one_before_left_under_two_names() -> None:
    def run(p: Any) -> Any:
        q = b = [p[0], p[1]]
        while q[0] < 10.0:
            b[0] = b[0] + 1.0
            q = [q[0] * 1.5, q[1]]
            b = q
        return q[0]

    with pytest.raises(GraphError, match="a write to a list that has two names"):
        wg.jit(run)(np.array([1.1, 0.9]))


def test_a_write_to_what_only_one_branch_makes_is_refused_with_its_line() -> None:
    def run(p: Any) -> Any:
        if p[0] > 1.0:
            q = Vector(p[0], p[1])
        q.x = 2.0
        return q.y

    with pytest.raises(GraphError, match="q gets a value only where the condition holds"):
        wg.jit(run)(np.array([1.1, 0.9]))


def nested(p: Any) -> Any:
    return Vector([p[0], p[1]], Vector(p[0], 2))


def first_of_the_others(p: Any) -> Any:
    u = nested(p)
    w, t = u, 0.0 * p[0]
    while t < 4.0:
        u.y.y = u.x[1] + 0.2  # which w shows in the first iteration alone
        u = Vector([u.x[0] * 1.1, u.x[1]], u.y * 1.05)
        t = t + 1.0
    return u.x[0] + 3.0 * w.y.y


def through_another_name(p: Any) -> Any:
    u = nested(p)
    v, t = u, 0.0 * p[0]
    while t < 3.0:
        v.y.y = v.y.y + 1
        if v.x[1] > p[0] * 1.2:
            u = Vector([u.x[0] * 1.1, u.x[1]], u.y * 1.05)
        t = t + 1.0
    return v.x[1] * u.y.y


@pytest.mark.parametrize("point", [[1.1, 0.9], [1.1, 2.9]])
def test_writes_inside_of_objects_that_a_loop_replaces_are_seen_or_refused(point: list[float]) -> None:
    p = np.array(point)
    np.testing.assert_allclose(wg.jit(first_of_the_others)(p), first_of_the_others(p), rtol=1e-14)
    with pytest.raises(GraphError, match="a write to a Vector that has two names"):
        wg.jit(through_another_name)(p)


def replaced_twice(x: Any) -> Any:
    v = w = {"a": x + 1.0}
    if x > 1.5:
        w = {"a": w["a"] * 1.1}
    if x > 2.0:
        w = {"a": w["a"] * 1.1}
    return v, w


def replaced_in_a_branch_of_a_branch(x: Any) -> Any:
    v = w = {"a": x + 1.0}
    if x > 1.5:
        if x > 2.0:
            w = {"a": w["a"] * 1.1}
    else:
        w = {"a": w["a"] * 1.3}
    return v, w


def replaced_in_a_list(x: Any) -> Any:
    v = {"a": x + 1.0}
    box = [v, 0.0]
    if x > 1.5:
        box = [{"a": x}, 1.0]
    return v, box[0]


def replaced_in_a_loop(x: Any) -> Any:
    v = w = {"a": x + 1.0}
    for _ in range(6):
        if x > 1.5:
            w = {"a": w["a"] * 1.1}
        if x > 2.0:
            break
    return v, w


@pytest.mark.parametrize(
    "make", [replaced_twice, replaced_in_a_branch_of_a_branch, replaced_in_a_list, replaced_in_a_loop]
)
def test_what_may_be_one_with_another_name_is_read_and_not_written_to(make: Callable[[Any], Any]) -> None:
    def read(x: Any) -> Any:
        v, w = make(x)
        return v["a"] * w["a"]

    def write(x: Any) -> Any:
        v, w = make(x)
        w["a"] = x * 0.5  # where it was not replaced, v shows it
        return v["a"]

    for x in (1.3, 1.7, 2.5):
        np.testing.assert_allclose(wg.jit(wg.grad(read))(x), wg.grad(read)(x))
        with pytest.raises(GraphError, match="a write to a dict that has two names"):
            wg.jit(write)(x)
