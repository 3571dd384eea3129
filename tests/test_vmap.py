"""Tests of `vmap`: each lane is as the function by itself, wherever the lanes are, and whatever it writes."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.core.forms.form import Form, form_of
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.errors import DtypeError, EscapedValueError, GraphError, ShapeError, UsageError, WengertError

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [3.0, 1.0, 0.5], [-2.0, 0.125, 1.0]])
Y = np.linspace(0.1, 1.2, 12).reshape(4, 3)
M = np.arange(24.0).reshape(4, 2, 3) / 10
K = np.array([[0, 2], [1, 1], [2, 0], [0, 0]])
N = np.array([2, 0, 1, 2])
SHARED = np.array([1.0, 2.0, 3.0])
TABLE = wg.tensor(np.arange(12.0).reshape(4, 3))  # lanes can index Tensors, not ndarrays
TABLES = wg.tensor(M)


def writing(base: Any, index: Any, value: Any) -> Any:
    """Return a copy of a base with a part replaced."""
    result = np.copy(wg.asarray(base))
    result[index] = value
    return result


def adding(base: Any, index: Any, value: Any) -> Any:
    """Return a copy of a base with something added to a part."""
    result = np.copy(wg.asarray(base))
    result[index] += value
    return result


def accumulating(base: Any, index: Any, value: Any) -> Any:
    """Return a copy of a base with something added at every place of an index."""
    result = np.copy(wg.asarray(base))
    np.add.at(result, index, value)
    return result


def through_views(x: Any, y: Any) -> Any:
    block = np.outer(x, y)
    row, column = block[1], block.T[2]
    row *= column
    block[:, 0] = y
    flat = block.reshape(9)
    flat[::2] += x[0]
    return block + column


def through_one_view_of_shared_memory(x: Any) -> Any:
    buffer = wg.tensor(np.arange(6.0))
    left, right = buffer[:3], buffer[3:]
    left[...] = x
    right += left
    return np.concatenate([buffer, left * right])


WINDOWS: list[Callable[[Any], Any]] = [
    lambda m: m[:, ::-1],
    lambda m: m.T,
    lambda m: m.reshape(3, 2),
    lambda m: np.flip(m, 1),
    lambda m: np.einsum("ij->ji", m),
    lambda m: np.einsum("ii->i", m[:, :2]),
    lambda m: np.einsum(m[:, 1:], [5, ..., 5], [..., 5]),
    lambda m: np.einsum("i...->...i", m).T[0],
]


def through_windows(m: Any, x: Any) -> Any:
    results = []
    for window in WINDOWS:
        block = np.copy(wg.asarray(m))
        part = window(block)
        part[...] = np.sum(part) * x[0]
        part += x[1]
        results.append(block * part.ravel()[0])
    return np.stack(results)


def in_turn(x: Any, k: Any) -> Any:
    buffer = wg.tensor(np.zeros(3))
    for i in range(2):
        buffer[k[i]] += x[i] * (i + 1)
    return buffer


def around_a_write(x: Any) -> Any:
    buffer = np.copy(wg.asarray(x))
    number, window = buffer[1], buffer[1, ...]  # a scalar is a copy, an array of no axes a view
    buffer[1] = x[0] * 5.0
    buffer[2:] *= buffer[0]
    return np.stack([number * x[0], window * x[0], buffer[2] * number])


# Functions of lanes of the arguments named by their axes

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x, y: np.sin(x) * y - x / (1 + y), (X, Y)),
    "shared operand": (lambda x: x * SHARED + 2.0, (X,)),
    "operands of different rank": (lambda m, x: m * x - x[0], (M, X)),
    "rank of a lane is lower": (lambda x, n: TABLE * x * n, (X, N)),
    "reductions": (lambda m: (m.sum(axis=0), m.max(axis=-1), np.mean(m), m.min(), np.prod(m, axis=(0, 1))), (M,)),
    "statistics": (lambda m: (np.var(m, axis=1), np.std(m), np.median(m, axis=0), np.ptp(m)), (M,)),
    "sorting": (lambda x: (np.sort(x), np.argsort(x), np.argmax(x), np.partition(x, 1)[1]), (X,)),
    "sorting along an axis": (lambda m: (np.sort(m, axis=0), np.argmin(m, axis=0), np.argsort(m, axis=None)), (M,)),
    "cumulative": (lambda m: (np.cumsum(m, axis=0), np.cumprod(m), np.diff(m, axis=1)), (M,)),
    "products": (lambda m, x: (m @ x, np.outer(x, x), np.dot(x, x), np.einsum("ij,j->i", m, x), x @ m.T), (M, X)),
    "products with shared matrices": (lambda x: (TABLE @ x, x @ TABLE.T, np.tensordot(TABLE, x, 1)), (X,)),
    "linear algebra": (lambda x: (np.linalg.norm(x), np.linalg.det(np.outer(x, x) + np.eye(3))), (X,)),
    "solve": (lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3), x), (X,)),
    "inverse": (lambda x: np.linalg.inv(np.outer(x, x) + np.eye(3)), (X,)),
    "shapes": (lambda m: (m.T, m.reshape(3, 2), m[None], np.ravel(m), np.swapaxes(m, 0, 1), np.flip(m, 0)), (M,)),
    "moved axes": (lambda m: np.moveaxis(m[:, None, :], -1, 0), (M,)),
    "joined": (lambda x, y: (np.concatenate([x, SHARED, y]), np.stack([y, SHARED], axis=1), np.tile(x, 2)), (X, Y)),
    "split": (lambda x: np.split(x, 3)[1] + np.array_split(x, 2)[1], (X,)),
    "padded": (lambda x: (np.pad(x, 1), np.roll(x, 1), np.repeat(x, 2), np.broadcast_to(x, (2, 3))), (X,)),
    "choice": (lambda x, y: (np.where(x > 0, x, y), np.maximum(x, 0.5), np.clip(x, -1, y)), (X, Y)),
    "triangle": (lambda m: (np.triu(m), np.tril(m, -1), np.diagonal(m), np.trace(m)), (M,)),
    "basic index": (lambda m: (m[0], m[..., 1], m[::-1, None], m[1, 1:]), (M,)),
    "shared fancy index": (lambda m: (m[[1, 0, 1]], m[:, [2, 0]], m[[0, 1], [1, 2]], m[..., [[0], [1]]]), (M,)),
    "shared mask": (lambda x: (x[np.array([True, False, True])], x[SHARED > 1]), (X,)),
    "number of a lane as index": (lambda x, n: (x[n], TABLE[n], TABLE[:, n], TABLES[:, 1, n]), (X, N)),
    "index of a lane": (lambda x, k: (x[k], TABLE[k], TABLE[:, k], TABLES[:, 0][..., k]), (X, K)),
    "index of a lane behind a slice": (lambda m, k: (m[:, k], m[::-1, k, None], m[1, k]), (M, K)),
    "two indices of a lane": (lambda m, k, n: (m[k % 2, k], m[n % 2, k], m[k % 2, 1], m[0, n]), (M, K, N)),
    "separated indices": (lambda k: (TABLES[k, :, k], TABLES[k, :, [0, 1]], TABLES[1, :, k]), (K,)),
    "take": (lambda x, k: (np.take(x, k), np.take(TABLE, k, axis=1), np.take_along_axis(x, k, 0)), (X, K)),
    "searched": (lambda x: (np.searchsorted(SHARED, x), np.interp(x, SHARED, SHARED**2)), (X,)),
    "true as an index": (lambda m: (m[np.True_], m[:, np.True_], np.multiply(m[True], 2.0)), (M,)),
    "piecewise": (lambda x: np.piecewise(x, [SHARED > 2, x > 0], [np.sin, 2.0]), (X,)),
    "piecewise of a number": (lambda x: np.piecewise(SHARED[0] * x[0], [SHARED[0] > 0], [lambda v: v * v, 2.0]), (X,)),
    "computed index": (lambda x: x[np.argsort(x)][::-1] * SHARED, (X,)),
    "written into own value": (lambda x: writing(x, slice(1), 7.0), (X,)),
    "value of a lane into own value": (lambda x, y: writing(x, slice(1, None), y[:2] * x[0]), (X, Y)),
    "value of a lane into shared memory": (lambda x: writing(TABLE, (1, slice(None)), x), (X,)),
    "number of a lane into shared memory": (lambda x: writing(TABLE, (slice(None), 1), x[0]), (X,)),
    "value of lower rank": (lambda x: writing(TABLE, slice(1, 3), x), (X,)),
    "shared value at an index of a lane": (lambda k: writing(TABLE, k, SHARED), (K,)),
    "shared number at a number of a lane": (lambda n: writing(SHARED, n, 9.0), (N,)),
    "value of a lane at an index of a lane": (lambda x, k: writing(TABLE, k, x), (X, K)),
    "behind a slice at an index of a lane": (lambda x, k: writing(TABLE, (slice(None), k), x[:2]), (X, K)),
    "behind a slice, shared value": (lambda k: writing(TABLE, (slice(None), k), np.ones((4, 2))), (K,)),
    "two indices of a lane, written": (lambda x, k: writing(TABLE, (k, k), x[1:]), (X, K)),
    "separated indices, written": (lambda x, k: writing(M, (k, slice(None), k), x[0]), (X, K)),
    "shared mask, written": (lambda x: writing(x, np.array([True, False, True]), x[:2]), (X,)),
    "added to a part": (lambda x, k: adding(TABLE, (slice(1, 3), 0), x[1:]) * x[0], (X, K)),
    "added at an index of a lane": (lambda x, n: adding(x, n, 10.0), (X, N)),
    "accumulated at repeated places": (lambda x, k: accumulating(x, k, x[:2]), (X, K)),
    "accumulated in shared memory": (lambda x, k: accumulating(SHARED, k, x[:2]), (X, K)),
    "accumulated at shared places": (lambda x: accumulating(SHARED, [0, 0, 2], x), (X,)),
    "views": (through_views, (X, Y)),
    "views of shared memory": (through_one_view_of_shared_memory, (X,)),
    "views of every kind": (through_windows, (M, X)),
    "in turn": (in_turn, (X, K)),
    "around a write": (around_a_write, (X,)),
    "result that all lanes share": (lambda x: (x, SHARED * 2, 3.0), (X,)),
    "integers": (lambda n: (n * 2, n**2, n // 2, n % 2 == 0), (N,)),
}


def loop(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return what vmap should."""
    lanes = [f(*(arg[i] for arg in args)) for i in range(len(args[0]))]
    if isinstance(lanes[0], tuple):
        return tuple(np.stack([np.asarray(part) for part in parts]) for parts in zip(*lanes, strict=True))
    return np.stack([np.asarray(lane) for lane in lanes])


def assert_alike(got: Any, want: Any, **tolerance: float) -> None:
    """Assert that results agree, in containers."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_alike(one, other, **tolerance)
        return
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, **(tolerance or {"rtol": 1e-13, "atol": 1e-13}))


named = together("name", CASES)


@named
def test_lanes_are_as_the_function_by_itself(name: str) -> None:
    f, args = CASES[name]
    before = copy.deepcopy(args)
    assert_alike(wg.vmap(f)(*args), loop(f, args))
    assert_alike(args, before)


@named
def test_nested_lanes(name: str) -> None:
    f, args = CASES[name]
    doubled = tuple(np.stack([arg, arg[::-1]]) for arg in args)
    once = [wg.vmap(f)(*(arg[i] for arg in doubled)) for i in (0, 1)]
    want = tuple(map(np.stack, zip(*once, strict=True))) if isinstance(once[0], tuple) else np.stack(once)
    assert_alike(wg.vmap(wg.vmap(f))(*doubled), want)


@named
def test_nested_lanes_of_different_arguments(name: str) -> None:
    f, args = CASES[name]
    if len(args) < 2:
        return
    rest = (None,) * (len(args) - 1)
    got = wg.vmap(wg.vmap(f, in_axes=(None, *[0] * len(rest))), in_axes=(0, *rest))(*args)
    rows = [loop(lambda *others, x=x: f(x, *others), args[1:]) for x in args[0]]
    want = tuple(map(np.stack, zip(*rows, strict=True))) if isinstance(rows[0], tuple) else np.stack(rows)
    assert_alike(got, want)


def scalar_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sum of squares of all results of floats."""

    def scalar(*args: Any) -> Any:
        result = f(*args)
        parts = result if isinstance(result, tuple) else (result,)
        return sum(np.sum(part * part * 0.5) for part in parts if wg.asarray(part).dtype.kind == "f")

    return scalar


SMOOTH = [name for name, (_, args) in CASES.items() if args[0].dtype.kind == "f"]


@together("name", SMOOTH)
def test_gradients_in_lanes(name: str) -> None:
    f, args = CASES[name]
    gradient = wg.grad(scalar_of(f))
    assert_alike(wg.vmap(gradient)(*args), loop(gradient, args), rtol=1e-11, atol=1e-11)


@together("name", SMOOTH)
def test_gradients_of_lanes(name: str) -> None:
    f, args = CASES[name]
    gradient = wg.grad(lambda x: np.sum(wg.vmap(scalar_of(f))(x, *args[1:])))(args[0])
    assert_alike(gradient, loop(wg.grad(scalar_of(f)), args), rtol=1e-11, atol=1e-11)


@together("name", SMOOTH)
def test_tangents_in_and_of_lanes(name: str) -> None:
    f, args = CASES[name]
    tangents = np.cos(args[0])

    def along(x: Any, t: Any, *others: Any) -> Any:
        return wg.jvp(lambda x: scalar_of(f)(x, *others), (x,), (t,))[1]

    want = loop(along, (args[0], tangents, *args[1:]))
    assert_alike(wg.vmap(along)(args[0], tangents, *args[1:]), want, rtol=1e-11, atol=1e-11)
    got = wg.jvp(lambda x: wg.vmap(scalar_of(f))(x, *args[1:]), (args[0],), (tangents,))[1]
    assert_alike(got, want, rtol=1e-11, atol=1e-11)


# Axes and containers


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class State:
    position: Any
    speed: Any


def test_in_axes_of_arguments() -> None:
    def f(x: Any, y: Any) -> Any:
        return x.sum() * y

    want = np.stack([X[i].sum() * SHARED for i in range(4)])
    for in_axes in ((0, None), [0, None], (-2, None)):
        np.testing.assert_allclose(wg.vmap(f, in_axes)(X, SHARED), want)
    np.testing.assert_allclose(wg.vmap(f, (1, None))(X.T, SHARED), want)
    np.testing.assert_allclose(wg.vmap(f, (-1, None))(X.T, SHARED), want)
    np.testing.assert_allclose(wg.vmap(f, -1)(X.T, Y.T), np.stack([X[i].sum() * Y[i] for i in range(4)]))
    np.testing.assert_allclose(wg.vmap(lambda m: m, 1)(M), np.moveaxis(M, 1, 0))


def test_in_axes_of_containers() -> None:
    def f(tree: Any, pair: Any) -> Any:
        return {"sum": tree["a"] * tree["b"][0] + pair.left, "rest": [tree["b"][1], pair.right]}

    tree = {"a": X, "b": [Y.T, SHARED]}
    got = wg.vmap(f, in_axes=({"a": 0, "b": [1, None]}, Pair(None, 0)))(tree, Pair(2.0, N))
    np.testing.assert_allclose(got["sum"], X * Y + 2.0)
    np.testing.assert_array_equal(got["rest"][0], np.tile(SHARED, (4, 1)))
    np.testing.assert_array_equal(got["rest"][1], N)
    everywhere = wg.vmap(lambda tree: tree["a"] + tree["b"][0], in_axes=({"a": 0, "b": 0},))({"a": X, "b": [Y]})
    np.testing.assert_array_equal(everywhere, X + Y)


def test_containers_come_back_as_they_went_in() -> None:
    got = wg.vmap(lambda state: State(state.position + state.speed, state.speed))(State(X, Y))
    assert type(got) is State
    np.testing.assert_array_equal(got.position, X + Y)
    assert type(wg.vmap(lambda pair: Pair(pair.right, pair.left))(Pair(X, Y))) is Pair
    assert wg.vmap(lambda x: (x, None, {"y": [x]}))(X)[1] is None


def test_keyword_arguments_have_their_lanes_in_front() -> None:
    np.testing.assert_array_equal(wg.vmap(lambda x, y: x - y, in_axes=(1,))(X.T, y=Y), X - Y)


@pytest.mark.parametrize("place", [0, 1, 2, -1, -2, -3])
def test_out_axes(place: int) -> None:
    got = wg.vmap(lambda m: m * 2, out_axes=place)(M)
    np.testing.assert_array_equal(got, np.moveaxis(M * 2, 0, place))


def test_out_axes_of_containers() -> None:
    def f(x: Any) -> Any:
        return {"x": x, "both": (x * 2, x.sum()), "shared": SHARED}

    got = wg.vmap(f, out_axes={"x": 1, "both": (-1, 0), "shared": None})(X)
    np.testing.assert_array_equal(got["x"], X.T)
    np.testing.assert_array_equal(got["both"][0], 2 * X.T)
    np.testing.assert_allclose(got["both"][1], X.sum(axis=1))
    np.testing.assert_array_equal(got["shared"], SHARED)
    prefix = wg.vmap(lambda x: (x, (x, x)), out_axes=(0, 1))(X)
    assert [part.shape for part in (prefix[0], *prefix[1])] == [(4, 3), (3, 4), (3, 4)]


def test_results_are_of_the_kind_of_the_arguments() -> None:
    assert type(wg.vmap(np.sin)(X)) is np.ndarray
    assert type(wg.vmap(np.sin)(wg.tensor(X))) is wg.Tensor
    assert wg.vmap(np.sin)(X.astype(np.float32)).dtype == np.float32


def test_no_lanes_are_lanes_too() -> None:
    assert wg.vmap(lambda x: x.sum())(np.ones((0, 3))).shape == (0,)
    assert wg.vmap(wg.grad(lambda x: np.sum(x**2)))(np.ones((0, 3))).shape == (0, 3)


def test_one_lane() -> None:
    np.testing.assert_array_equal(wg.vmap(lambda x: x * 2)(X[:1]), X[:1] * 2)


def test_shape_and_names_are_those_of_a_lane() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.extend([x.shape, x.ndim, x.size, len(x), [v.shape for v in x], repr(x).endswith("batch of 4)")])
        return x

    assert wg.vmap(f).__name__ == "f"
    wg.vmap(f)(X)
    assert seen == [(3,), 1, 3, 3, [(), (), ()], True]


def test_lanes_that_the_tape_records() -> None:
    weight = wg.tensor(SHARED, requires_grad=True)
    data = wg.tensor(X, requires_grad=True)
    np.sum(wg.vmap(lambda x: np.sum((x * weight) ** 2))(data)).backward()
    assert weight.grad is not None
    assert data.grad is not None
    np.testing.assert_allclose(weight.grad.numpy(), 2 * SHARED * np.sum(X**2, axis=0))
    np.testing.assert_allclose(data.grad.numpy(), 2 * X * SHARED**2)


def test_detach_in_lanes_keeps_the_lanes() -> None:
    np.testing.assert_array_equal(wg.vmap(lambda x: x * x.detach())(X), X * X)
    gradient = wg.grad(lambda x: np.sum(wg.vmap(lambda row: row * wg.stop_gradient(row))(x)))(X)
    np.testing.assert_array_equal(gradient, X)


def test_arguments_are_not_written_to() -> None:
    x, shared = X.copy(), wg.tensor(SHARED)

    def f(row: Any) -> Any:
        row *= 2
        own = np.copy(shared)
        own[0] = row[0]
        return own

    wg.vmap(f)(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(shared.numpy(), SHARED)


def test_writes_to_what_lanes_share_are_the_same_in_batches() -> None:
    def f(row: Any, shared: Any) -> Any:
        shared *= 2.0
        return row - shared

    rows, found = np.arange(10.0).reshape(5, 2), []
    for batch_size in (None, 1, 2):
        shared = np.ones(2)
        found.append((wg.vmap(f, (0, None), batch_size=batch_size)(rows, shared), shared))
    for result, shared in found:
        np.testing.assert_array_equal(result, rows - 2.0)
        np.testing.assert_array_equal(shared, [2.0, 2.0])


def test_evaluated_once_for_all_lanes() -> None:
    calls: list[int] = []
    wg.vmap(lambda x: calls.append(1) or x)(X)
    assert calls == [1]


# Errors

LANES = r"vmap\(.*, File \".*test_vmap.py\", line \d+\)"


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: wg.vmap(lambda x: x, in_axes=None)(X),
            UsageError,
            "vmap: no argument with lanes; at least one is needed. Pass an axis for it in in_axes.",
        ),
        (lambda: wg.vmap(lambda: 1.0)(), UsageError, "vmap: no argument with lanes; at least one is needed. "),
        (
            lambda: wg.vmap(lambda x, y: x)(X, Y[:3]),
            ShapeError,
            "vmap: arguments with 3 and 4 lanes; the same number in all is needed. Check in_axes.",
        ),
        (
            lambda: wg.vmap(lambda x: x, in_axes=2)(X),
            ShapeError,
            "vmap: an argument of shape (4, 3) with in_axes 2; an argument that has that axis is needed. "
            "Pass in_axes=None for arguments shared by all lanes.",
        ),
        (
            lambda: wg.vmap(lambda x: x)(1.0),
            ShapeError,
            "vmap: an argument of shape () with in_axes 0; an argument that has that axis is needed. ",
        ),
        (
            lambda: wg.vmap(lambda x: x, in_axes=(0, 0))(X),
            UsageError,
            "vmap: in_axes of length 2 for 1 arguments; one entry for each is needed. "
            "Pass None for arguments shared by all lanes.",
        ),
        (
            lambda: wg.vmap(lambda x: x, in_axes=({"b": 0},))({"a": X}),
            UsageError,
            "vmap: in_axes with the keys ['b'] where there are ['a']; the containers of the values, or an int or None "
            "in the place of some of them, are needed. Build it like the values.",
        ),
        (
            lambda: wg.vmap(lambda x: x, in_axes=({"a": [0, None, 0]},))({"a": [X, X]}),
            UsageError,
            "vmap: in_axes with length 3 where there is 2 at ['a']; the containers of the values, ",
        ),
        (
            lambda: wg.vmap(lambda x: x, in_axes=([0, 0],))((X, X)),
            UsageError,
            "vmap: in_axes with a list where there is a tuple; the containers of the values, ",
        ),
        (
            lambda: wg.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X),
            UsageError,
            "vmap: out_axes with length 3 where there is 2; the containers of the values, ",
        ),
        (
            lambda: wg.vmap(lambda x: x, out_axes=None)(X),
            UsageError,
            "vmap: out_axes=None for a result that differs from lane to lane; an axis for it is needed. "
            "Pass an int in out_axes.",
        ),
        (
            lambda: wg.vmap(np.sum, out_axes=1)(X),
            ShapeError,
            "vmap: out_axes 1 for a result of shape () in each lane; an axis from -1 to 0 is needed. "
            "Count the axis of the lanes among the result's axes.",
        ),
        (
            lambda: wg.vmap(lambda x: x[x > 0])(X),
            UsageError,
            "vmap: a boolean mask that differs from lane to lane as an index; an index that selects as many elements "
            "in every lane is needed. Use wengert.numpy.where.",
        ),
        (
            lambda: wg.vmap(lambda x: x[np.False_])(X),
            UsageError,
            "vmap: a single boolean as an index, which is False or beside other indices; an array or None is needed. "
            "Write None for True.",
        ),
        (
            lambda: wg.vmap(lambda x: writing(x, (x > 0, 0), 0.0))(X.reshape(*X.shape, 1)),
            UsageError,
            "vmap: a boolean mask that differs from lane to lane as an index; ",
        ),
    ],
)
def test_errors_about_arguments(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


def stored(x: Any) -> Any:
    buffer = np.zeros(3)
    buffer[0] = x[0]
    return buffer


LOOKING: dict[str, tuple[Callable[[Any], Any], str]] = {
    "bool": (lambda x: x if x[0] > 0 else -x, "bool"),
    "bool of one lane at least": (lambda x: x if np.all(x > 0) else -x, "bool"),
    "float": (lambda x: float(x[0]), "float"),
    "complex": (lambda x: complex(x[0]), "complex"),
    "int": (lambda x: int(x[0]), "int"),
    "index": (lambda x: range(x.astype(int)[0]), "index"),
    "item": (lambda x: x[0].item(), "item"),
    "item of one": (lambda x: x.item(1), "item"),
    "tolist": (lambda x: x.tolist(), "tolist"),
    "tobytes": (lambda x: x.tobytes(), "tobytes"),
    "numpy": (lambda x: x.numpy(), "numpy"),
    "asarray": (lambda x: np.asarray(x), "asarray"),
    "array of Tensors": (lambda x: np.array([x[0], 1.0]), "array"),
    "in": (lambda x: 1.0 in x, "in"),
    "format": (lambda x: f"{x[0]:.1f}", "format"),
    "tensor": (lambda x: wg.tensor(x), "tensor"),
    "place": (lambda x: np.place(x, x > 0, [0.0, 1.0]), "place"),
    "dlpack": (lambda x: np.from_dlpack(x), "__dlpack__"),
}


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("name", LOOKING)
def test_programs_cannot_look_at_what_differs_between_lanes(name: str, rows: int) -> None:
    f, public = LOOKING[name]
    for transformed in (f, wg.grad(f), lambda x: wg.jvp(f, (x,), (x,))):
        with pytest.raises(GraphError, match=r"lane to lane|that is being differentiated|is differentiating") as caught:
            wg.vmap(transformed)(X[:rows])
        if transformed is f:
            assert str(caught.value).startswith(f"{public}: a value that differs from lane to lane of vmap(")
            assert "; one value for all lanes is needed where a program looks at numbers. " in str(caught.value)


def test_storing_a_lane_into_an_ndarray_is_refused() -> None:
    with pytest.raises(GraphError) as caught:
        wg.vmap(stored)(X)
    assert "stored into an ndarray" in str(caught.value)


def test_indexing_an_ndarray_by_lanes_is_refused() -> None:
    with pytest.raises(GraphError, match=r"or wengert\.asarray\(array\)\[index\] to index an array"):
        wg.vmap(lambda n: SHARED[n])(N)


def test_what_all_lanes_share_can_be_looked_at() -> None:
    def f(x: Any) -> Any:
        total = np.sum(wg.asarray(SHARED))
        return x * 2 if total > 5 else x

    np.testing.assert_array_equal(wg.vmap(f)(X), 2 * X)


def test_results_must_have_one_shape() -> None:
    with pytest.raises(ShapeError, match=rf"{LANES}: results of argwhere of shapes .* in different lanes; "):
        wg.vmap(lambda x: np.argwhere(x > 0))(X)
    with pytest.raises(UsageError, match="a boolean mask that differs from lane to lane"):
        wg.vmap(lambda x: np.nonzero(x > 0)[0])(X)


def test_as_many_elements_may_be_chosen_in_every_lane() -> None:
    def chosen(x: Any) -> Any:
        return x[np.flatnonzero(x > 0)] ** 2

    lanes = np.array([[0.7, -1.2, 0.4, 2.2], [-3.0, 1.5, 0.3, 2.0], [0.5, 0.6, 0.7, -0.8]])
    functions: list[Callable[[Any], Any]] = [
        chosen,
        lambda x: np.nonzero(x < 0)[0],
        lambda x: np.argwhere(np.outer(x, x) > 0),
        lambda x: np.nonzero(np.outer(x, x) > 0)[1],
        lambda x: np.unique(x),
        lambda x: np.bincount((x > 0).astype(int)),
    ]
    for function in functions:
        np.testing.assert_array_equal(wg.vmap(function)(lanes), np.stack([function(x) for x in lanes]))
    np.testing.assert_array_equal(wg.vmap(wg.grad(lambda x: np.sum(chosen(x))))(lanes), np.maximum(2 * lanes, 0.0))


@pytest.mark.parametrize(
    "counted",
    [
        lambda w, x: np.bincount((x > 0).astype(int), weights=w * x, minlength=3),
        lambda w, x: np.histogram(x, bins=3, weights=w * x)[0],
    ],
)
def test_weights_of_what_differs_between_lanes_have_constant_cotangents(counted: Callable[[Any, Any], Any]) -> None:
    def total(w: Any, x: Any) -> Any:
        return np.sum(counted(w, x) * np.arange(3.0))

    lanes, w = np.array([[0.7, -1.2, 0.4, 2.2], [-3.0, 1.5, 0.3, 2.0]]), np.array([1.0, -2.0, 0.5, 3.0])
    wanted = np.stack([wg.grad(total)(w, x) for x in lanes])
    for mode in (wg.vmap(wg.grad(total), (None, 0)), wg.jit(wg.vmap(wg.grad(total), (None, 0)))):
        np.testing.assert_allclose(mode(w, lanes), wanted, rtol=1e-15)


def test_choices_by_what_is_traced_or_differs_between_lanes() -> None:
    def total(x: Any, k: Any) -> Any:
        return np.sum(np.choose(k, [x, x**2, -x]))

    x, lanes = np.array([1.0, 2.0, 3.0]), np.array([[0, 1, 2], [1, 1, 0]])
    wanted = np.stack([wg.grad(total)(x, k) for k in lanes])
    for mode in (wg.vmap(wg.grad(total), (None, 0)), wg.jit(wg.vmap(wg.grad(total), (None, 0)))):
        np.testing.assert_array_equal(mode(x, lanes), wanted)
        with pytest.raises(IndexError, match="choose: an index for 3 elements; indices inside the array are needed"):
            mode(x, lanes + 1)
    np.testing.assert_array_equal(wg.jit(wg.grad(total))(x, lanes[0]), wanted[0])


def test_lanes_are_no_leaves() -> None:
    with pytest.raises(GraphError, match="requires_grad_: a Tensor of vmap"):
        wg.vmap(lambda x: x.requires_grad_())(X)
    with pytest.raises(GraphError, match="pickle: a Tensor of vmap"):
        wg.vmap(pickle.dumps)(X)


ESCAPED: list[Any] = []


def leaky(x: Any) -> Any:
    ESCAPED.append(x * 2)  # the line that the error names
    return x


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1,
        lambda t: np.sin(t),
        lambda t: t[0],
        lambda t: t.__setitem__(0, 1.0),
        lambda t: t.sum().item(),
        lambda t: wg.grad(lambda x: x * np.sum(t))(1.0),
        lambda t: wg.vmap(lambda x: x * t)(X),
    ],
)
@pytest.mark.parametrize("name", ["vmap", "jvp", "taylor"])
def test_values_that_escape(name: str, use: Callable[[Any], Any]) -> None:
    if name == "vmap":
        wg.vmap(leaky)(X)
    elif name == "jvp":
        wg.jvp(leaky, (X,), (X,))
    else:
        wg.taylor(leaky, (X,), (X,), 2)
    with pytest.raises(EscapedValueError) as caught:
        use(ESCAPED.pop())
    text = str(caught.value)
    assert text.startswith(f'{name}(leaky, File "{__file__}", line ')
    assert "created at File" in text
    assert "ESCAPED.append(x * 2)  # the line that the error names" in text
    assert "; values of a transformation may be used only until it ends. " in text


def test_values_of_an_inner_vmap_escape_to_the_outer_one() -> None:
    def outer(m: Any) -> Any:
        wg.vmap(leaky)(m)
        return ESCAPED.pop() * m

    with pytest.raises(EscapedValueError, match=r"^vmap\(leaky"):
        wg.vmap(outer)(M)


def test_errors_are_of_the_house() -> None:
    for kind in (EscapedValueError, GraphError, ShapeError, UsageError):
        assert issubclass(kind, WengertError)


def test_every_view_can_be_written_through_in_lanes() -> None:
    assert [
        primitive.name
        for primitive in PRIMITIVES.values()
        if primitive.view and type(form_of(primitive)).batch is Form.batch
    ] == []


BESIDE_LENGTH_ONE: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda c: c[:, None], lambda w: w[::-1]),
    (lambda c: c[:, None], lambda w: w[::2]),
    (lambda c: c[None], lambda w: w[:, ::-1]),
    (lambda c: c[None], lambda w: w[..., ::2]),
    (lambda c: c[None], lambda w: w[::-1, ::-1]),
    (lambda c: c[None].T, lambda w: w.T[:, ::-1]),
    (lambda c: c[None], lambda w: w.T[::-1]),
    (lambda c: c[:, None, None], lambda w: np.flip(w, 0)),
    (lambda c: c.reshape(1, 3, 1), lambda w: w[:, ::-2]),
]


@pytest.mark.parametrize(("widened", "stepped"), BESIDE_LENGTH_ONE)
def test_steps_beside_an_axis_of_length_one_are_views(
    widened: Callable[[Any], Any], stepped: Callable[[Any], Any]
) -> None:
    def both_ways(x: Any) -> Any:
        c = x * 1.0
        w = stepped(widened(c))
        c[0] = 9.0
        seen = w * 1
        w[...] = w * x[1]
        return seen.sum() * 1.0, c * 1

    def one_lane(x: Any) -> Any:
        return wg.jvp(both_ways, (x,), (x,))[0]

    rows = np.array([[0.7, -1.3, 2.1], [1.0, 2.0, 3.0]])
    assert_alike(wg.vmap(both_ways)(rows), loop(both_ways, (rows,)))
    assert_alike(wg.vmap(one_lane)(rows), loop(both_ways, (rows,)))
    jacobians = wg.vmap(wg.jacobian(lambda x: both_ways(x)[1]))(rows)
    assert_alike(jacobians, np.stack([wg.jacobian(lambda x: both_ways(x)[1])(row) for row in rows]))


def test_keys_that_are_scalars_in_each_lane_sort_nothing():
    x = np.array([[0.5, 0.25], [0.1, 0.7]])
    np.testing.assert_array_equal(wg.vmap(np.lexsort)(x), [np.lexsort(row) for row in x])


def test_results_of_one_axis_are_contiguous_in_every_lane():
    def f(x):
        total = np.cumsum(np.array(x, order="F", like=x))
        total.ravel()[0] = 9.0
        return total

    x = np.array([[0.5, 0.25], [0.1, 0.7]])
    np.testing.assert_array_equal(wg.vmap(f)(x), [f(row) for row in x])


# Batches of lanes


def joined_up(p: Any, x: Any, *, scale: Any) -> Any:
    return {"out": np.tanh(p["w"] @ x) * scale, "shared": [p["w"].sum()], "norm": np.sqrt(np.sum(x * x))}


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 7])
def test_batches_of_lanes_give_what_all_lanes_give(batch_size: int) -> None:
    p = {"w": np.array([[1.0, 2.0], [3.0, -1.0]])}
    x, scale = np.arange(1.0, 11.0).reshape(2, 5) / 7, np.arange(1.0, 6.0)
    options: Any = {"in_axes": (None, 1), "out_axes": {"out": -1, "shared": None, "norm": 0}}
    expected = wg.vmap(joined_up, **options)(p, x, scale=scale)
    batched = wg.vmap(joined_up, **options, batch_size=batch_size)
    for run in (batched, wg.jit(batched)):
        found = run(p, x, scale=scale)
        assert sorted(found) == sorted(expected)
        for name in ("out", "norm"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-15)
        assert found["shared"][0] == expected["shared"][0]

    def total(run: Any) -> Any:
        return lambda x: np.sum(run(p, x, scale=scale)["out"] ** 2)

    slope = wg.grad(total(wg.vmap(joined_up, **options)))(x)
    for derivative in (wg.grad(total(batched)), wg.jit(wg.grad(total(batched))), wg.jacfwd(total(batched))):
        np.testing.assert_allclose(derivative(x), slope, rtol=1e-13)
    np.testing.assert_allclose(wg.vmap(total(batched))(np.stack([x, x])), [total(batched)(x)] * 2, rtol=1e-14)
    leaf = wg.tensor(x, requires_grad=True)
    total(batched)(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=1e-13)


def test_batches_of_lanes_are_a_loop_in_a_graph() -> None:
    def equations(count: int) -> list[str]:
        batched = wg.vmap(lambda x: np.sin(x) * 2.0, batch_size=4)
        return [equation.primitive.name for equation in wg.graph.trace(batched)(np.zeros(count)).equations]

    assert equations(1000) == equations(8)
    assert equations(8).count("scan") == 1
    assert equations(10).count("sin") == 1  # the last two


@pytest.mark.parametrize("lanes", [4, 5])
def test_batches_in_a_graph_may_write_to_what_lanes_share(lanes: int) -> None:
    def scaled(p: Any, x: Any) -> Any:
        p[0] = p[0] * 3.0
        x[1] = p[0] * x[0]
        return p * x

    def program(p: Any, x: Any) -> Any:
        return wg.vmap(scaled, in_axes=(None, 0), batch_size=2)(p, x), p * 1.0

    def total(p: Any, x: Any) -> Any:
        return sum(np.sum(y**2) for y in program(p, x))

    p, x = np.array([1.0, 2.0, 3.0]), np.arange(3.0 * lanes).reshape(lanes, 3)
    rows = np.stack([3.0 * x[:, 0], 6.0 * x[:, 0], 3.0 * x[:, 2]], axis=1)
    for found in (program(p.copy(), x), wg.jit(program)(p, x)):
        np.testing.assert_array_equal(found[0], rows)
        np.testing.assert_array_equal(found[1], [3.0, 2.0, 3.0])
    for ours, theirs in zip(wg.jit(wg.grad(total, (0, 1)))(p, x), wg.grad(total, (0, 1))(p, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_only_a_batch_of_lanes_is_computed_at_once() -> None:
    sizes = []

    def f(x: Any) -> Any:
        sizes.append(x._trace.size)
        return x * 2.0

    np.testing.assert_array_equal(wg.vmap(f, batch_size=3)(np.arange(8.0)), 2 * np.arange(8.0))
    assert sizes == [3, 3, 2]
    for wrong in (0, -1, 2.5, True):
        text = f"vmap: {wrong!r} for batch_size; a whole number, 1 or more, is needed. Pass an int."
        with pytest.raises(UsageError, match="^" + re.escape(text) + "$"):
            wg.vmap(f, batch_size=wrong)


def test_errors_say_where_a_leaf_stands() -> None:
    def f(parameters: Any, x: Any) -> Any:
        return x

    given = {"layers": [np.ones(2), {"width": "text"}]}
    text = "vmap: 'text' as an argument at parameters['layers'][1]['width']; a number, a numeric array or a Tensor is "
    with pytest.raises(DtypeError, match="^" + re.escape(text)):
        wg.vmap(f)(given, np.ones(2))
    text = "jit: an argument of type str at parameters['layers'][1]['width']; numbers, arrays, Tensors or containers "
    with pytest.raises(DtypeError, match="^" + re.escape(text)):
        wg.jit(f)(given, np.ones(2))
    text = "vmap: an argument of shape () with in_axes 0 at parameters['layers'][1]; an argument that has that axis is "
    with pytest.raises(ShapeError, match="^" + re.escape(text)):
        wg.vmap(f)({"layers": [np.ones(2), 3.0]}, np.ones(2))
    text = "jit: an integer of 81 bits at parameters['n']; at most 63 and a sign are needed. "
    with pytest.raises(OverflowError, match="^" + re.escape(text)):
        wg.jit(f)({"n": 2**80}, 1.0)
    with pytest.raises(DtypeError, match=r"^jit: an argument of type str at parameters; numbers"):
        wg.jit(f)("text", 1.0)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 3, 2)])
@pytest.mark.parametrize("q", [[0.3, 0.5, 0.7], [[0.1, 0.2]]])
@pytest.mark.filterwarnings("ignore:.*(empty|All-NaN).*:RuntimeWarning")
def test_several_quantiles_have_the_axes_of_numpy(shape, q) -> None:
    """Where there are no elements NumPy leaves out the axes of q; it mixes two of them with others that remain."""
    x = np.random.default_rng(0).normal(size=(3, *shape))
    for axis, keepdims in itertools.product((None, 0, -1, *([(0, 1)] if len(shape) > 1 else [])), (False, True)):

        def quantiles(x, axis=axis, keepdims=keepdims):
            return np.nanquantile(x, q, axis=axis, keepdims=keepdims)

        try:
            want = np.stack([quantiles(lane) for lane in x])
        except IndexError:  # of NumPy, where there are no elements
            continue
        weights = np.random.default_rng(1).normal(size=want.shape[1:])
        np.testing.assert_array_equal(wg.vmap(quantiles)(x), want)
        if axis is None:
            np.testing.assert_array_equal(wg.jit(wg.vmap(quantiles))(x), want)
        if x.size and axis == (0, 1):
            wg.testing.check_grads(lambda x, f=quantiles, w=weights: np.sum(f(x) * w), x[0], modes=["rev"])


def test_weighted_quantiles_of_lanes() -> None:
    """Weights along some axes of a lane are the same along the others, also beside the axis of the lanes."""
    x = np.random.default_rng(8).normal(size=(6, 3))
    lanes = np.stack([x, x[::-1]])
    for shape, axis in (((6,), 0), ((3,), -1), ((6, 3), None), ((6, 3), (0, 1))):
        weights = np.random.default_rng(9).uniform(0.1, 2.0, (2, *shape))

        def quantiles(x, w, axis=axis):
            return np.quantile(x, [0.2, 0.5], axis=axis, weights=w, method="inverted_cdf")

        want = quantiles(lanes[1], weights[1])
        np.testing.assert_array_equal(wg.vmap(quantiles)(lanes, weights)[1], want)
        np.testing.assert_array_equal(wg.vmap(quantiles, (0, None))(lanes, weights[1])[1], want)
        np.testing.assert_array_equal(wg.vmap(quantiles, (None, 0))(lanes[1], weights)[1], want)
        gradient = wg.grad(lambda x, w, f=quantiles: np.sum(f(x, w) ** 2))
        found = wg.vmap(gradient, (0, None))(lanes, weights[1])
        np.testing.assert_allclose(found[1], gradient(lanes[1], weights[1]), rtol=1e-14)


def test_counts_of_all_lanes_are_taken_at_once() -> None:
    rng = np.random.default_rng(0)
    numbers, weights = rng.integers(0, 5, (6, 9)), rng.normal(size=(6, 9))
    numbers[:, 0] = 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none says that it runs lane by lane
        found = wg.vmap(wg.numpy.bincount)(numbers, weights)
        shared = wg.vmap(wg.numpy.bincount, in_axes=(0, None))(numbers, weights[0])
        fixed = wg.vmap(wg.numpy.bincount, in_axes=(None, 0))(numbers[0], weights)
        times = wg.vmap(lambda n: wg.numpy.bincount(n, minlength=7))(numbers)
        slopes = wg.vmap(wg.grad(lambda w, n: np.sum(wg.numpy.bincount(n, w) ** 3)))(weights, numbers)
    np.testing.assert_array_equal(found, [np.bincount(n, w) for n, w in zip(numbers, weights, strict=True)])
    np.testing.assert_array_equal(shared, [np.bincount(n, weights[0]) for n in numbers])
    np.testing.assert_array_equal(fixed, [np.bincount(numbers[0], w) for w in weights])
    np.testing.assert_array_equal(times, [np.bincount(n, minlength=7) for n in numbers])
    np.testing.assert_allclose(slopes, [3 * row[n] ** 2 for n, row in zip(numbers, found, strict=True)])


def test_counts_of_lanes_in_lanes_are_taken_at_once() -> None:
    rng = np.random.default_rng(0)
    numbers, weights = rng.integers(0, 5, (2, 3, 9)), rng.normal(size=(2, 3, 9))

    def counts(n: Any, w: Any = None) -> Any:
        return wg.numpy.bincount(n, w, 5)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none says that it runs lane by lane
        found = wg.vmap(wg.vmap(counts))(numbers, weights)
        times = wg.vmap(wg.vmap(counts))(numbers)
        slopes = wg.vmap(wg.vmap(wg.grad(lambda w, n: np.sum(counts(n, w) ** 3))))(weights, numbers)
        outer = wg.vmap(lambda n: wg.vmap(lambda w: counts(n, w))(weights[0]))(numbers[:, 0])
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(found[i, j], np.bincount(numbers[i, j], weights[i, j], 5))
        np.testing.assert_array_equal(times[i, j], np.bincount(numbers[i, j], None, 5))
        np.testing.assert_allclose(slopes[i, j], 3 * found[i, j][numbers[i, j]] ** 2)
        np.testing.assert_array_equal(outer[i, j], np.bincount(numbers[i, 0], weights[0, j], 5))


def counts_of_five(numbers: Any, weights: Any = None) -> Any:
    return np.bincount(numbers, weights, 5)


def squares_of_counts(weights: Any, numbers: Any) -> Any:
    return np.sum(counts_of_five(numbers, weights) ** 2)


def counts_where(chosen: Any, numbers: Any) -> Any:
    if chosen > 0:
        return np.bincount(numbers, minlength=5)
    return np.zeros(5, int)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32])
def test_counts_of_traced_numbers_are_as_many_as_are_asked_for(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    numbers, weights = rng.integers(0, 5, (3, 9)).astype(dtype), rng.normal(size=(3, 9))
    found, times = wg.jit(counts_of_five)(numbers[0], weights[0]), wg.jit(counts_of_five)(numbers[0])
    assert (found.dtype, times.dtype) == (np.float64, np.intp)
    np.testing.assert_array_equal(found, np.bincount(numbers[0], weights[0], 5))
    np.testing.assert_array_equal(times, np.bincount(numbers[0], None, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none says that it runs lane by lane
        lanes = wg.jit(wg.vmap(counts_of_five))(numbers, weights)
    np.testing.assert_array_equal(lanes, [counts_of_five(n, w) for n, w in zip(numbers, weights, strict=True)])
    for transform in (wg.grad, wg.hessian, lambda f: wg.grad(wg.checkpoint(f))):
        expected = transform(squares_of_counts)(weights[0], numbers[0])
        np.testing.assert_allclose(wg.jit(transform(squares_of_counts))(weights[0], numbers[0]), expected)


def test_traced_numbers_that_are_not_counted_are_an_error_when_the_graph_runs() -> None:
    text = "bincount: a number that is not counted; numbers from 0 to 4 are needed, as minlength is 5 and they are not "
    text += "known while tracing. Pass a larger minlength."
    jitted = wg.jit(counts_of_five)
    for numbers in ([0, 5], [-1, 0]):
        with pytest.raises(ValueError, match=re.escape(text)):
            jitted(np.array(numbers))
    assert jitted(np.array([0, 4])).tolist() == [1, 0, 0, 0, 1]
    lanes = wg.jit(wg.vmap(counts_where))(np.array([1.0, -1.0]), np.array([[0, 1], [7, 8]]))
    assert lanes.tolist() == [[1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    for bad in (np.zeros(2), np.zeros((1, 2), int)):
        for function in (counts_of_five, jitted):
            with pytest.raises((TypeError, ValueError), match=r"Cannot cast|too deep"):
                function(bad)


def test_counts_of_lanes_refuse_what_numpy_refuses() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="negative"):  # and does not count it in the lane before
            wg.vmap(lambda n: wg.numpy.bincount(n, minlength=3))(np.array([[0, 1], [1, -1]]))
        with pytest.raises(ShapeError, match="in different lanes; one shape for all lanes is needed"):
            wg.vmap(wg.numpy.bincount)(np.array([[0, 1], [2, 1]]))


@pytest.mark.parametrize(
    ("product", "left", "right"),
    [
        (np.matmul, (1,), (3,)),
        (np.matmul, (2, 3), (1,)),
        (np.matmul, (2, 1), (3, 2)),
        (np.vecdot, (1,), (3,)),
        (np.matvec, (2, 1), (3,)),
        (np.vecmat, (1,), (3, 2)),
    ],
)
def test_products_repeat_no_axis_that_they_sum_over(
    product: Any, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    x, y = np.ones((2, *left)), np.ones((2, *right))
    for transform in (wg.vmap, lambda f: wg.jit(wg.vmap(f)), lambda f: wg.jvp(wg.vmap(f), (x, y), (x, y))):
        with pytest.raises(ValueError, match="needed"):
            transform(product)(x, y)


def test_lanes_of_several_results_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    form = type(form_of(PRIMITIVES["slogdet"]))
    batch, asked = form.batch, []
    monkeypatch.setattr(form, "batch", lambda *args: asked.append(args) or batch(*args))
    wg.vmap(np.linalg.slogdet)(M[:, :2, :2] + np.eye(2))
    assert len(asked) == 1
