"""Lists, tuples and ndarrays that traced numbers index, and `in`: under `jit` as without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import GraphError

NUMBERS, ARRAY, TRUTHS, MIXED = [1.0, 2.5, -4.0], np.array([0.5, 2.0, 8.0]), (True, False, True), [0, 1.5, 2]
MATRIX = np.arange(9.0).reshape(3, 3)
X = np.array([1.25, -0.5, 2.0])


def numbers(x: Any, k: Any) -> Any:
    return NUMBERS[k] * x[0] + (1, 2, 3)[k] * x[1]


def elements(x: Any, k: Any) -> Any:
    return ARRAY[k] * x + MATRIX[k, -1] + MATRIX[k][k] if np.ndim(x) == 0 else ARRAY[k] * x + MATRIX[k, 1]


def of_arrays(x: Any, k: Any) -> Any:
    order = np.argsort(x)
    return ARRAY[order] * x + MATRIX[order, k] + MATRIX[:, [0, 2]][order[0], 0] * x[k]


def truths(x: Any, k: Any) -> Any:
    return x if TRUTHS[k] else -x


def of_several_types(x: Any, k: Any) -> Any:
    return MIXED[k] * x


def items(x: Any, k: Any) -> Any:
    rows = [x * 1.0, np.sin(x), x * x]
    chosen = rows[k]
    chosen[0] = 5.0 * x[1]
    return rows[0] + 2 * rows[1] + 3 * rows[2]


def nested(x: Any, k: Any) -> Any:
    return [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]][-1][k] * x


def in_a_loop(x: Any, k: Any) -> Any:
    total, i = x[0], 0
    while total < 20 and i < 3:
        total, i = total + np.abs(x[i]) * NUMBERS[i] ** 2 * ARRAY[i - 1], i + 1
    return total * (k + 4)


def among(x: Any, k: Any) -> Any:
    if k in (0, -2):
        return x[0]
    return x[1] if k not in {1, 7} and x[2] in [x[0], x[2]] else x[2]


PROGRAMS = [numbers, elements, of_arrays, truths, of_several_types, items, nested, in_a_loop, among]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_traced_numbers_choose_as_others_do(program: Callable[..., Any]) -> None:
    def loss(x: Any, k: Any) -> Any:
        return np.sum(program(x, k) ** 2)

    eager, jitted = wg.grad(loss), wg.jit(program)
    ways = wg.jit(eager), wg.grad(wg.jit(loss)), wg.jit(lambda x, k: wg.jacfwd(loss)(x, k))
    places = np.arange(-3, 3)
    for k in places.tolist():
        np.testing.assert_allclose(jitted(X, k), program(X.copy(), k), rtol=1e-15)
        for run in ways:
            np.testing.assert_allclose(run(X, k), eager(X, k), rtol=1e-14)
    for lanes in (wg.jit(wg.vmap(eager, in_axes=(None, 0))), wg.vmap(wg.jit(eager), in_axes=(None, 0))):
        np.testing.assert_allclose(lanes(X, places), [eager(X, int(k)) for k in places], rtol=1e-14)
    assert jitted.trace_count == 1


@pytest.mark.parametrize("program", [numbers, elements, items, of_several_types], ids=lambda f: f.__name__)
@pytest.mark.parametrize("k", [3, -4])
def test_places_out_of_range_raise_when_the_graph_runs(program: Callable[..., Any], k: int) -> None:
    with pytest.raises(IndexError):
        program(X.copy(), k)
    with pytest.raises(IndexError):
        wg.jit(program)(X, k)


TYPES: dict[str, Callable[[Any], Any]] = {
    "floats": lambda k: NUMBERS[k],
    "integers": lambda k: (1, 2, 3)[k],
    "elements": lambda k: ARRAY[k],
    "single precision": lambda k: NUMBERS[k] * np.float32(2),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_are_those_without_tracing(name: str) -> None:
    wanted, found = TYPES[name](1), wg.jit(TYPES[name])(1)
    assert (type(found), found) == (type(wanted), wanted)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "a row, which is a view": lambda x, k: MATRIX[k] * x,
    "an array without axes, which is one, too": lambda x, k: ARRAY[k, ...] * x,
    "a dictionary without numbers": lambda x, k: {"a": 1.0}[k] * x,
    "a slice": lambda x, k: NUMBERS[k:],
    "functions": lambda x, k: [np.sin, np.cos][k](x),
    "no item": lambda x, k: [][k],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_chosen_is_refused_with_the_line(name: str) -> None:
    with pytest.raises(GraphError, match=r"test_tables\.py"):
        wg.jit(REFUSED[name])(X, 0)


KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "one object": lambda x, k: [x, x][k],
    "equal items": lambda x, k: ((x, 1.0), (x, 1.0))[k],
    "equal numbers": lambda x, k: [1.0, 1.0][k],
    "text": lambda x, k: x if ("a", "a")[k] == "a" else -x,
    "unused": lambda x, k: ([x, 2 * x][k], x)[1],
    "one item": lambda x, k: [x][k // 2],
}


@pytest.mark.parametrize("name", KEPT)
def test_places_are_looked_at_where_all_items_are_alike(name: str) -> None:
    program = KEPT[name]
    for k in (0, 1, -2):
        wg.tree.map(np.testing.assert_array_equal, wg.jit(program)(X, k), program(X, k))
    for k in (2, 5, -4):
        with pytest.raises(IndexError):
            program(X, k)
        with pytest.raises(IndexError):
            wg.jit(program)(X, k)
        with pytest.raises(IndexError):
            wg.jit(wg.vmap(program, in_axes=(None, 0)))(X, np.array([0, k]))


def test_errors_of_places_show_the_line() -> None:
    with pytest.raises(IndexError, match="list index out of range") as error:
        wg.jit(KEPT["one object"])(X, 2)
    assert "test_tables.py" in error.value.__notes__[0]


def test_dictionaries_are_looked_up_by_numbers() -> None:
    table = {1: 10.0, 2.5: 20.0, "a": 0.0, 0.1: 30.0}

    def program(x: Any, k: Any) -> Any:
        return table[k] * x

    jitted = wg.jit(program)
    for key in (1, 1.0, True, 2.5, np.uint8(1), np.float32(2.5), 0.1):
        assert jitted(2.0, key) == program(2.0, key)
        assert wg.grad(jitted)(2.0, key) == program(1.0, key)
    for key in (2, 0.0, np.float32(0.1), -1):
        with pytest.raises(KeyError):
            program(2.0, key)
        with pytest.raises(KeyError) as error:
            jitted(2.0, key)
        assert "test_tables.py" in error.value.__notes__[0]
