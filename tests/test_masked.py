"""Selections by masks that are traced, or differ between lanes: `y[mask] *= s` means what it means in NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.scipy.interpolate as splines
from tests.cases import together
from tests.samples.calls import same_bits
from wengert.errors import DtypeError

X = np.array([0.3, -1.2, 2.0, 0.7])


def scaled(x: Any, s: Any) -> Any:
    y = np.sin(x)
    mask = y > 0
    y[mask] *= s
    y[y < 0.2] += np.exp(s)
    return y


def of_two_arrays(x: Any, s: Any) -> Any:
    y, mask = np.cos(x) * s, x > 0.5
    y[mask] = np.log(x[mask]) * y[mask] + 1.0
    return y


def rows(x: Any, s: Any) -> Any:
    y = np.stack([x, x * s, s - x], 1)
    mask = y[:, 1] > 0
    y[mask] *= np.array([1.0, 2.0, 3.0])
    y[1:][y[1:] > 1] -= s
    return y


def named(x: Any, s: Any) -> Any:
    y = x * s
    mask = y < 0.5
    part = y[mask]
    part += 1.0
    part /= s
    y[mask] = part * 2.0
    y[mask] = np.where(y[mask] > 1.0, y[mask], 0.25)
    return y


def in_a_loop(x: Any, s: Any) -> Any:
    y = np.abs(x * s)
    while np.sum(y) < 9.0:
        mask = y < 2.0
        y[mask] *= 1.5
        if np.any(y > 3.0):
            y[y > 3.0] -= 0.75
        y[mask] += 0.5
    return y


def integers(x: Any, s: Any) -> Any:
    y = np.array([2**60 + 1, 3, 5, 7]) * np.ones_like(x).astype(int)
    mask = x > 0.5
    y[mask] = y[mask] * 2.5
    return y * s


def asked_twice(x: Any, s: Any) -> Any:
    y = x * s
    y[y < 0.5] = np.sin(y[y < 0.5])
    z, w = np.cos(y), y + 1.0
    mask = y > 0
    z[mask], w[mask] = w[mask] * s, z[y > 0]
    return np.stack([y, z, w])


def along_axes(x: Any, s: Any) -> Any:
    a, mask = np.stack([np.outer(x, x), np.outer(x, x + s)]), x < 0.5
    a[:, mask] *= x
    a[:, mask, 1] += s
    a[0, mask, :] = x
    a[..., mask, 2] = 3.0
    a[1, mask] = a[0, mask] - s
    square = a[0] < 0.5
    a[:, square] = np.tanh(a[:, square]) * np.array([[1.0], [2.0]])
    return a


def by_places(x: Any, s: Any) -> Any:
    y, a = x * s, np.outer(x, x)
    places = np.flatnonzero(y < 0.5)
    y[places] = np.sin(y[places])
    a[np.where(a < 0.5)] *= s
    i, j = np.nonzero(a > 0.1)
    a[i, j] -= a[i, j] ** 2
    a[:, places] += 1.0
    np.putmask(a, a > 1, 0.5)
    np.putmask(y, y > 1, x)
    np.place(y, y < -1, [s])
    return np.concatenate([y, a.reshape(-1)])


def by_pieces(x: Any, s: Any) -> Any:
    y = np.piecewise(x, [x > 0.5, x < 0], [np.log, lambda v: np.sqrt(3 - v) / v * s, 2.0])
    return np.piecewise(np.outer(x, y), [np.outer(x, y) > 0.2], [lambda v: np.log(v) / s])


PROGRAMS = [scaled, of_two_arrays, rows, named, in_a_loop, integers, asked_twice, along_axes, by_places, by_pieces]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_selections_are_written_back_in_every_mode(program: Callable[..., Any]) -> None:
    def loss(x: Any, s: Any) -> Any:
        return np.sum(program(x, s) ** 2)

    lanes = np.stack([X, -X, X * 0.0])
    eager, jitted = wg.grad(loss, argnums=(0, 1)), wg.jit(program)
    gradients = wg.jit(eager), wg.grad(wg.jit(loss), argnums=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in lanes:
            np.testing.assert_allclose(jitted(x, 1.7), program(x, 1.7), rtol=1e-14, atol=0)
            expected = eager(x, 1.7)
            for gradient in gradients:
                for one, other in zip(gradient(x, 1.7), expected, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-13)
    found = wg.jit(wg.vmap(wg.grad(loss), in_axes=(0, None)))(lanes, 1.7)
    np.testing.assert_allclose(found, np.stack([eager(x, 1.7)[0] for x in lanes]), rtol=1e-13)
    if program is in_a_loop:  # which vmap alone cannot follow
        return
    assert same_bits(wg.vmap(program, in_axes=(0, None))(lanes, 1.7), np.stack([program(x, 1.7) for x in lanes]))


def test_numbers_are_assigned_where_masks_of_lanes_hold() -> None:
    def clipped(x: Any) -> Any:
        y = x * 2.0
        y[y > 1] = 0.25
        y[x < -1] = np.float32(3.0)
        return y

    lanes = np.stack([X, -X])
    assert same_bits(wg.vmap(clipped)(lanes), np.stack([clipped(x) for x in lanes]))
    np.testing.assert_array_equal(wg.vmap(wg.grad(lambda x: np.sum(clipped(x))))(lanes)[0], [2.0, 0.0, 0.0, 0.0])


def slow_root(x: Any) -> Any:
    return np.sqrt(np.log1p(-1.0 / (1.0 + x)) + 10.0)


def by_a_mask(x: Any) -> Any:
    y, mask = x * 1.0, x > 0
    y[mask] = slow_root(x[mask])
    return y


TABLE = np.array([3.0, 1.0, 2.5, 0.5])
KNOTS = np.array([-1.0, 0.0, 1.5, 3.0])
jitted_square = wg.jit(lambda v: v * v)


def by_tables(x: Any) -> Any:
    """Look elements up by themselves: in polygons, splines, by places found, counted and computed; and polynomials."""
    y, mask = x * 0.5, x > 0
    v, rows = x[mask], wg.asarray(np.outer(TABLE, KNOTS))
    place = np.clip(np.searchsorted(KNOTS, v) - 1, 0, 2)
    found = np.interp(v, KNOTS, TABLE * x[0], left=0.0, right=x[1]) + splines.CubicSpline(KNOTS, TABLE)(v)
    found = found + wg.asarray(TABLE)[place] * (v - wg.asarray(KNOTS)[place]) + np.sum(rows[place] * x[1], axis=1)
    found = found + wg.asarray(TABLE)[(v * 1.2).astype(int)] * rows[..., place][2] + np.digitize(v, KNOTS) * v
    found = found + np.polyval([1.0, x[1], 2.0], v) * np.zeros_like(v) + np.full_like(v, 2.0) * jitted_square(v)
    y[mask] = found + np.select([v < 0.5, v < 1.0], [v**2, v], default=3.0 * v) + np.nan_to_num(v)
    return y


def by_pieces(x: Any) -> Any:
    """Mix elements of pieces, and take pieces apart."""
    inner = lambda v: np.piecewise(v, [v < 1], [lambda u: u - u.mean(), lambda u: u * np.sum(u)])
    return np.piecewise(x, [x > 0], [inner, lambda v: v / np.linalg.norm(v)])


@pytest.mark.parametrize("function", [by_tables, by_pieces])
def test_elements_are_looked_up_as_those_are_that_numpy_selects(function: Callable[[Any], Any]) -> None:
    total = lambda x: np.sum(function(x) * np.arange(1.0, 1.0 + len(x)))
    x = np.array([0.7, -1.2, 0.4, 2.3])
    lanes = np.stack([x, x[::-1], x * [1, 1, -1, 1]])
    expected = np.stack([wg.grad(total)(row) for row in lanes])
    np.testing.assert_allclose(wg.jit(function)(x), function(x), rtol=1e-14)
    np.testing.assert_allclose(wg.vmap(wg.grad(total))(lanes), expected, rtol=1e-13)
    for way in (wg.jit(wg.grad(total)), wg.grad(wg.jit(total))):
        np.testing.assert_allclose(np.stack([way(row) for row in lanes]), expected, rtol=1e-13)


def test_tables_are_not_asked_for_what_no_element_needs() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[x > 5] = wg.asarray(np.array([2.0]))[(x[x > 5] * 3).astype(int)]
        return y

    np.testing.assert_array_equal(wg.jit(f)(np.array([0.5, 1.5])), [0.5, 1.5])


def as_a_piece(x: Any) -> Any:
    return np.piecewise(x, [x > 0], [slow_root, lambda v: v])


@pytest.mark.parametrize("function", [by_a_mask, as_a_piece])
def test_what_was_not_selected_is_not_computed(function: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (np.array([-1.0, 2.0, -0.5]), np.array([-1.0, -2.0]), np.zeros(0)):
            assert same_bits(wg.jit(function)(x), function(x))


USES: dict[str, Callable[[Any], Any]] = {
    "returned": lambda x: x[x > 0],
    "summed from each": lambda x: np.sum(x, where=x > 0, initial=x[x > 0]),
    "summed beside another mask": lambda x: x[x > 0] @ x[x < 0],
    "median": lambda x: np.median(x[x > 0]),
    "another mask of as many": lambda x: put(x, x > 0, x[x < 0.5]),
    "places counted from another": lambda x: x[np.flatnonzero(x > 0) - 1],
    "shape": lambda x: x[x > 0].shape,
    "size": lambda x: x[x > 0].size,
    "length": lambda x: len(x[x > 0]),
    "iterated": lambda x: [part for part in x[x > 0]],  # noqa: C416 - iterating is the point
    "with an array": lambda x: x[x > 0] + np.ones(2),
    "with another mask": lambda x: x[x > 0] + x[x < 0],
    "with what is not selected": lambda x: x + x[x > 0],
    "indexed": lambda x: x[x > 0][0],
    "joined": lambda x: np.concatenate([x, x[x > 0]]),
    "shown": lambda x: f"{x[x > 0]}",
    "sorted": lambda x: np.sort(x[x > 0]),
    "put elsewhere": lambda x: put(x, slice(0, 2), x[x > 0]),
    "put by another mask": lambda x: put(x, x > 1, x[x > 0]),
    "written to": lambda x: put(x[x > 0], 0, 1.0),
    "an array by a mask": lambda x: put(x, x > 0, np.ones(2)),
}


def put(x: Any, index: Any, value: Any) -> Any:
    y = x if value is not None and not np.ndim(value) else np.copy(x)
    y[index] = value
    return y


@together("name", USES)
def test_other_uses_are_refused_with_the_line_of_the_selection(name: str) -> None:
    with pytest.raises(Exception, match="mask") as caught:
        wg.jit(USES[name])(X)
    staged = "getitem: a mask of shape (4,) whose elements are unknown while tracing; a result whose shape does not"
    if name != "an array by a mask":
        assert str(caught.value).startswith(staged)
        assert __file__ in str(caught.value)
    with pytest.raises(Exception, match="a boolean mask that differs from lane to lane as an index; ") as caught:
        wg.vmap(USES[name])(np.stack([X, -X]))
    assert __file__ in str(caught.value)


SUMMED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x[x > 0].sum() + np.sum(np.exp(x[x > 0]) * x[x > 0]) + x[x > 9].sum(),
    "initial": lambda x: np.sum(x[x > 0], initial=2.0) * np.max(x[x > 9], initial=-3.0),
    "mean": lambda x: x[x > 0].mean() * np.mean(x[x < 1] ** 2, dtype=np.float32),
    "product": lambda x: np.prod(x[x != 0]),
    "extrema": lambda x: x[x > 0].max() * np.min(x[x > -2]) + np.max(np.outer(x, x)[x > 0], axis=0),
    "tied": lambda x: np.max(np.abs(x)[np.abs(x) > 0.1].round()),
    "deviations": lambda x: np.std(x[x < 1]) * x[x < 1].var(ddof=1),
    "truths": lambda x: np.sum(x) * (np.any(x[x > 0] > 1) + 2 * np.all(x[x > 0] > 1)),
    "count": lambda x: np.sum(x) * np.count_nonzero(x[x > 0] > 0.5),
    "length": lambda x: np.linalg.norm(x[x > 0]),
    "products": lambda x: x[x > 0] @ x[x > 0] + np.outer(x, x)[:, x > 0] @ np.sin(x)[x > 0],
    "products of rows": lambda x: np.dot(x[x < 1], np.outer(x, x)[x < 1]) + np.inner(x[x > 0], x[x > 0]),
    "other axes": lambda x: x[x > 0] @ np.outer(x, x)[x > 0].sum(axis=1) + np.outer(x, x)[:, x > 0].max(axis=1),
    "kept axes": lambda x: np.outer(x, x)[np.outer(x, x) > 0.2].sum(keepdims=True),
    "behind": lambda x: np.stack([np.outer(x, x)] * 2)[:, np.outer(x, x) > 0.2].mean(axis=1, keepdims=True),
    "chosen otherwise": lambda x: np.extract(x > 0, x).sum() + np.compress(x > 0, np.outer(x, x), axis=1).sum(),
    "places": lambda x: np.sum(x) * np.flatnonzero(x > 0).sum(),
}


@pytest.mark.parametrize("name", SUMMED)
def test_sums_and_the_like_of_selections_are_computed_in_every_mode(name: str) -> None:
    function = SUMMED[name]
    lanes = np.stack([X, X[::-1] + 0.1, X * X])

    def loss(x: Any) -> Any:
        return np.sum(function(x) ** 2)

    eager, jitted = wg.grad(loss), wg.jit(function)
    gradients, hessian = (wg.jit(eager), wg.grad(wg.jit(loss))), wg.jit(wg.hessian(loss))
    for x in lanes:
        np.testing.assert_allclose(jitted(x), function(x), rtol=1e-13)
        for gradient in gradients:
            np.testing.assert_allclose(gradient(x), eager(x), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(hessian(x), wg.hessian(loss)(x), rtol=1e-12, atol=1e-12)
    for found in (wg.vmap(eager)(lanes), wg.jit(wg.vmap(eager))(lanes)):
        np.testing.assert_allclose(found, np.stack([eager(x) for x in lanes]), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(wg.vmap(function)(lanes), np.stack([function(x) for x in lanes]), rtol=1e-13)


def test_extrema_of_nothing_raise_when_the_graph_runs() -> None:
    greatest = wg.jit(lambda x: np.max(x[x > 0]))
    assert greatest(X) == 2.0
    assert np.isnan(greatest(np.array([np.nan, 1.0])[::-1])) == np.isnan(np.max(np.array([1.0])))
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        greatest(-np.abs(X))


def test_masks_that_were_written_between_are_not_the_same() -> None:
    def function(x: Any) -> Any:
        y = x * 1.0
        part = y[y > 0]
        y[0] = -5.0
        y[y > 0] = part
        return y

    with pytest.raises(Exception, match="a mask of shape"):
        wg.jit(function)(X)


def test_selections_keep_their_dtype_in_place() -> None:
    def function(x: Any) -> Any:
        y = (x * 4).astype(int)
        y[x > 0] *= 0.5
        return y

    with pytest.raises(DtypeError, match="a result of dtype float64 for a Tensor of dtype int64"):
        wg.jit(function)(X)
