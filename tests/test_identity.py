"""Identity: what is told apart by caches, by common sub-expressions and by comparisons of graphs, and what is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from wengert.core.graph.identity import DIGESTS, identity, identity_of_static
from wengert.graph import trace

X = np.array([0.5, 0.6])


class Named(NamedTuple):
    number: float
    text: str


@dataclass(frozen=True)
class Setting:
    number: float
    text: str


def rule(factor: float, name: str = "same") -> Any:
    """Return a function with a rule of its own; its name says nothing."""

    def function(x: Any) -> Any:
        return x * factor

    function.__qualname__ = function.__name__ = name
    found = wg.custom_rule(function)
    found.defvjp(lambda x: (found(x), None), lambda _, ct: (ct * factor,))
    return found


TWICE, THRICE = rule(2.0), rule(3.0)

BOTH: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: (TWICE(x), THRICE(x)),
    "scans": lambda x: (
        wg.scan(lambda c, e: (c, TWICE(e)), 0.0, x)[1],
        wg.scan(lambda c, e: (c, THRICE(e)), 0.0, x)[1],
    ),
    "calls": lambda x: (wg.call(lambda y: TWICE(y), x), wg.call(lambda y: THRICE(y), x)),
    "branches": lambda x: (
        wg.cond(np.sum(x) > 0, TWICE, lambda y: y, x),
        wg.cond(np.sum(x) > 0, THRICE, lambda y: y, x),
    ),
}


@pytest.mark.parametrize("program", BOTH.values(), ids=BOTH.keys())
def test_two_rules_of_one_name_are_two(program):
    np.testing.assert_array_equal(wg.jit(program)(X), [2.0 * X, 3.0 * X])
    of_one = wg.jit(wg.grad(lambda x: np.sum(program(x)[0])))(X)
    of_other = wg.jit(wg.grad(lambda x: np.sum(program(x)[1])))(X)
    np.testing.assert_array_equal([of_one, of_other], [[2.0, 2.0], [3.0, 3.0]])


def test_graphs_of_different_rules_differ():
    assert trace(TWICE)(X) != trace(THRICE)(X)


@pytest.mark.parametrize("name", ["multiply", "add", "negative", "cond", "scan", "call", "where", "astype"])
def test_a_rule_named_like_a_primitive_is_not_one(name):
    plus_one = wg.custom_rule(lambda x: x + 1.0)
    plus_one.__qualname__ = name
    plus_one.defvjp(lambda x: (plus_one(x), None), lambda _, ct: (ct,))
    np.testing.assert_array_equal(wg.jit(lambda x: plus_one(plus_one(x)))(X), X + 2.0)
    wg.graph.check(trace(plus_one)(X))
    assert wg.taylor(plus_one, (2.0,), (1.0,), 2) == [3.0, 1.0, 0.0]


def test_static_arguments_of_different_types_are_traced_apart():
    function = wg.jit(lambda x, n: x * n, static_argnums=1)
    x = np.arange(3)
    kinds = [function(x, n).dtype.kind for n in (2, 2.0, 2, np.float64(2))]
    assert kinds == ["i", "f", "i", "f"]
    assert function.trace_count == 3
    assert np.signbit(wg.jit(lambda x, n: x * n[0], static_argnums=1)(1.0, (-0.0,)))
    both = wg.jit(lambda x, n: x * n[0], static_argnums=1)
    assert np.signbit([both(1.0, (0.0,)), both(1.0, (-0.0,))]).tolist() == [False, True]


class Loud:
    """Compares equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # as for classes that define __eq__ alone


def test_values_are_told_apart_by_type_and_content():
    values = [
        *(None, 0, 1, False, True, 0.0, -0.0, 1.0, np.nan, -np.nan, 1j, complex(0.0, -0.0), "1", b"1"),
        *((), (1,), (1.0,), (True,), [1], (1, (2, 3)), {"a": 1}, slice(1), slice(None, 1, True), slice(None, 1, 1)),
        *(np.float64(1.0), np.array(1.0), np.float32(1.0), np.ones(1), np.ones((1, 1)), np.dtype("f4"), np.dtype("f8")),
        *(TWICE, THRICE, Loud(), Loud(), np.add, np.multiply),
    ]
    kept = [identity(value) for value in values]
    assert len(set(kept)) == len(values)
    assert [identity(value) for value in values] == kept
    assert identity(np.ones(3)) == identity(np.ones(3))
    assert identity(trace(np.sin)(1.0)) == identity(trace(np.sin)(1.0))
    for kind in (Setting, Named):
        assert identity(kind(1, "a")) == identity(kind(1, "a"))
        assert len({identity(kind(*x)) for x in [(1, "a"), (1.0, "a"), (True, "a"), (1, "b")]}) == 4
    assert len({identity((1, "a")), identity(Named(1, "a")), identity(Setting(1, "a"))}) == 3
    more = [type("More", (kind,), {})(1, "a") for kind in (Setting, Named)]
    bare = list(map(identity, more))
    for value in more:
        vars(value)["factor"] = 2
    assert not set(bare) & set(map(identity, more))


def test_an_address_that_is_used_again_is_not_the_same_object():
    kept = {identity(object()) for _ in range(100)}
    assert len(kept) == 100


def test_static_arguments_compare_as_they_say():
    assert identity_of_static(("a", frozenset({1}))) == identity_of_static(("a", frozenset({1})))
    with pytest.raises(TypeError):
        identity_of_static(([],))


PROGRAM = """
import numpy as np, wengert as wg
def step(x, w):
    y = np.einsum("ij,j->i", w, x[1:]) + np.arange(2000.0)[:2]
    y[0] = np.sum(np.where(y > 0, y, 0.5), keepdims=False)
    return wg.fori_loop(0, 3, lambda i, z: np.sin(z) * big[:2], y)
big = np.arange(3000.0)
graph = wg.graph.trace(wg.jacrev(step))(np.ones(4), np.ones((2, 3)))
"""


def test_digests_of_graphs_are_the_same_in_all_processes():
    code = PROGRAM + "print(graph.digest().hex())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x * 2, lambda x: x * 2.0),
        (lambda x: x[1:], lambda x: x[2:]),
        (lambda x: np.sum(x, keepdims=True), lambda x: np.sum(x)[None]),
        (lambda x: x + np.arange(3000.0)[0:3], lambda x: x + np.arange(1.0, 3001.0)[0:3]),
        (lambda x: np.tile(x, 1000) + np.zeros(3000), lambda x: np.tile(x, 1000) - np.zeros(3000)),
        (lambda x: np.tile(x, 1000) * np.arange(3000), lambda x: np.tile(x, 1000) * (np.arange(3000) + 1)),
    ],
)
def test_digests_tell_graphs_apart(one, other):
    graphs = [wg.graph.trace(f)(np.ones(3)) for f in (one, one, other)]
    digests = [graph.digest() for graph in graphs]
    assert digests[0] == digests[1] != digests[2]
    assert graphs[0] == graphs[1] != graphs[2]
    assert wg.graph.trace(one)(np.ones(3, np.float32)).digest() != digests[0]


def test_graphs_with_functions_of_the_user_have_no_digest():
    double = wg.custom_rule(lambda x: 2.0 * x)
    double.defvjp(lambda x: (2.0 * x, None), lambda _, ct: 2.0 * ct)
    assert wg.graph.trace(lambda x: double(x) + 1.0)(1.0).digest() is None


def test_large_arrays_are_digested_once():
    array = np.arange(3000.0)
    array.flags.writeable = False
    before = set(DIGESTS.entries)
    assert identity(array) == identity(array.copy()) != identity(array + 1.0)
    assert DIGESTS.entries.keys() - before == {id(array)}
    del array
    assert DIGESTS.entries.keys() == before
    changing = np.arange(3000.0)
    known = identity(changing)
    changing[7] = 1.0
    assert identity(changing) != known


def test_arrays_that_are_repeated_are_known_by_what_is_in_memory(monkeypatch):
    looked_at = []
    monkeypatch.setattr(
        "wengert.core.graph.identity.digest_of", lambda array: looked_at.append(array.nbytes) or array.tobytes()
    )
    row = np.arange(1_000.0)
    one, other = np.broadcast_to(row, (10_000, 1_000)), np.broadcast_to(row.copy(), (10_000, 1_000))
    assert identity(one) == identity(other) != identity(np.broadcast_to(row + 1.0, (10_000, 1_000)))
    assert identity(np.broadcast_to(row, (2, 1_000))) != identity(np.broadcast_to(row, (3, 1_000)))
    assert identity(np.broadcast_to([[1.0], [2.0]], (2, 2))) != identity(np.broadcast_to([1.0, 2.0], (2, 2)))
    assert set(looked_at) == {row.nbytes}
