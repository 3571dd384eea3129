"""Plain Tensors: what NumPy computes of them itself, in memory of its own, and what goes the general way."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.core.values.plain_functions import BY_NUMPY
from wengert.core.values.tensor import Tensor
from wengert.errors import WengertError

MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]])
VECTOR = np.array([0.3, -1.2, 2.0, 0.7])

CALLS: dict[str, Callable[..., Any]] = {
    "corrcoef": lambda xp, x, _v: xp.corrcoef(x),
    "cov": lambda xp, x, _v: xp.cov(x, rowvar=False),
    "quantile": lambda xp, _x, v: xp.quantile(v, 0.3),
    "trapezoid": lambda xp, _x, v: xp.trapezoid(v, dx=0.5),
    "trapezoid with steps of one": lambda xp, x, _v: xp.trapezoid(x),
    "diff": lambda xp, _x, v: xp.diff(v),
    "diff, axis 0": lambda xp, x, _v: xp.diff(x, axis=0),
    "sort of all": lambda xp, x, _v: xp.sort(x, None),
    "slogdet": lambda xp, x, _v: xp.linalg.slogdet(x)[1],
    "solve": lambda xp, x, v: xp.linalg.solve(x, v[:3]),
    "svd": lambda xp, x, _v: xp.linalg.svd(x)[1],
    "tensordot": lambda xp, x, _v: xp.tensordot(x, x, 1),
    "einsum": lambda xp, x, _v: xp.einsum("ij,kj->ik", x, x),
    "kron": lambda xp, x, v: xp.kron(x, v),
    "norm": lambda xp, x, _v: xp.linalg.norm(x, axis=1),
    "convolve": lambda xp, _x, v: xp.convolve(v, v, "same"),
    "unique": lambda xp, _x, v: xp.unique(v, return_counts=True)[1],
    "insert": lambda xp, _x, v: xp.insert(v, 2, 0.5),
    "concatenate": lambda xp, _x, v: xp.concatenate([v, v[1:]]),
    "stack": lambda xp, _x, v: xp.stack((v, v), axis=-1),
    "hstack": lambda xp, x, _v: xp.hstack((x, x)),
    "where": lambda xp, _x, v: xp.where(v > 0.0, v, 0.0),
    "sort": lambda xp, x, _v: xp.sort(x, 0),
    "take": lambda xp, _x, v: xp.take(v, np.array([2, 0])),
    "repeat": lambda xp, x, _v: xp.repeat(x, 2, 1),
    "tile": lambda xp, x, _v: xp.tile(x, (2, 1)),
    "trace": lambda xp, x, _v: xp.trace(x, 1),
    "any": lambda xp, x, _v: xp.any(x > 4.0, axis=0),
    "rfft": lambda _xp, _x, v: np.fft.rfft(v),
    "interp": lambda xp, _x, v: xp.interp(v, xp.asarray([-2.0, 0.0, 3.0]), xp.asarray([1.0, 2.0, 0.0])),
}


@together("name", sorted(CALLS))
def test_values_are_numpys_whether_or_not_something_is_differentiated(name: str) -> None:
    call = CALLS[name]
    expected = call(np, MATRIX, VECTOR)
    for grads in (False, True):
        x, v = (wg.tensor(a.copy(), requires_grad=grads) for a in (MATRIX, VECTOR))
        found = call(wnp, x, v)
        assert type(found) is Tensor
        assert found.dtype == expected.dtype
        assert found.shape == np.shape(expected)
        np.testing.assert_array_equal(found.detach(), expected)
    plain = call(wnp, wg.tensor(MATRIX), wg.tensor(VECTOR)[...])  # a view
    np.testing.assert_array_equal(plain, expected)
    if plain.ndim:
        plain[...] = 0  # in memory of its own


@together("name", sorted(CALLS))
def test_operands_stay_as_they_are(name: str) -> None:
    x, v = wg.tensor(MATRIX), wg.tensor(VECTOR)
    result = CALLS[name](wnp, x, v)
    if result.ndim:
        result[...] = 7
    np.testing.assert_array_equal(x, MATRIX)
    np.testing.assert_array_equal(v, VECTOR)


def test_numpys_own_names_and_those_of_the_library_give_the_same_types() -> None:
    x = wg.tensor(MATRIX)
    for found in (np.linalg.eigh(x), wnp.linalg.eigh(x)):
        assert type(found).__name__ == "EighResult"
        assert all(type(item) is Tensor for item in found)
    assert type(np.corrcoef(MATRIX)) is np.ndarray
    assert type(wnp.corrcoef(MATRIX)) is Tensor


def test_what_may_be_a_view_of_an_operand_goes_the_general_way() -> None:
    x = wg.tensor(MATRIX)
    turned = wnp.einsum("ij->ji", x)
    grids = wnp.meshgrid(x[0], x[1], copy=False)
    x[0, 1] = 9.0
    assert turned[1, 0] == 9.0
    assert grids[0][0, 1] == 9.0


def test_operands_are_not_overwritten_where_numpy_would_do_so() -> None:
    v = wg.tensor(VECTOR)
    assert wnp.median(v, overwrite_input=True) == wnp.quantile(v, 0.5, None, None, True) == np.median(VECTOR)
    np.testing.assert_array_equal(v, VECTOR)


def test_results_are_written_to_out() -> None:
    v, out = wg.tensor(VECTOR), wg.tensor(np.zeros(()))
    assert wnp.median(v, None, out) is out
    assert out == np.median(VECTOR)


def test_an_operand_that_is_differentiated_is_found_at_any_place() -> None:
    x, y = wg.tensor(VECTOR), wg.tensor(VECTOR, requires_grad=True)
    for found in (wnp.convolve(x, y), wnp.concatenate([x, y]), wnp.where(VECTOR > 0, x, y), wnp.stack([x, y])):
        assert found.requires_grad


@together(
    "call",
    [
        lambda x: wnp.trapezoid(x * 1e308, dx=1e10),
        lambda x: wnp.corrcoef(wnp.zeros((2, 3)) * x[:3]),
        lambda x: wnp.sum(x * 1e308 + 1e308),
        lambda x: wnp.diff(wnp.asarray([-1.7e308, 1.7e308]) * x[:2] / x[:2]),
        lambda x: wnp.trapezoid(x * 1e308),
    ],
)
def test_warnings_name_the_users_line(call: Callable[..., Any]) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(wg.tensor(np.abs(VECTOR)))
    assert found
    assert all(warning.filename == __file__ for warning in found)


def test_operators_with_many_elements_on_the_right() -> None:
    a = np.linspace(0.5, 2.0, 90_000).reshape(300, 300)
    x = wg.tensor(a)
    for found, expected in ((2.0 * x, 2.0 * a), (a[::-1] - x, a[::-1] - a), (a[0] / x, a[0] / a), (1 - x, 1 - a)):
        assert type(found) is Tensor
        np.testing.assert_array_equal(found, expected)


def test_errors_are_those_of_the_general_way() -> None:
    x = wg.tensor(VECTOR)
    with pytest.raises(WengertError, match=r"tensordot: shapes \(4,\) and \(3,\)"):
        wnp.tensordot(x, x[1:], 1)
    with pytest.raises(np.linalg.LinAlgError):
        wnp.linalg.inv(wg.tensor(np.zeros((2, 2))))


@together("dtype", ["float64", "float32", "int64", "bool"])
def test_ufuncs_that_numpy_hands_over_have_its_values_and_types(dtype: str) -> None:
    a, b = np.array([[1.5, -2.0, 3.0]]).astype(dtype), VECTOR[:3]
    x, y = wg.tensor(a), wg.tensor(b)
    for ufunc in (np.multiply, np.add, np.arctan2, np.less, np.maximum, np.hypot):
        expected = ufunc(a, b)
        for found in (ufunc(a, y), ufunc(x, b), ufunc(x, y)):
            assert type(found) is Tensor
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    for ufunc in (np.exp, np.isfinite, np.sign):
        np.testing.assert_array_equal(ufunc(y), ufunc(b))
    np.testing.assert_array_equal(MATRIX @ y, MATRIX @ b)
    np.testing.assert_array_equal(np.matmul(MATRIX, y), MATRIX @ b)


def test_ufuncs_that_numpy_hands_over_warn_and_refuse_at_the_users_line() -> None:
    x = wg.tensor(np.array([0.0, -1.0]))
    for call in (lambda: np.log(x), lambda: np.ones(2) / x, lambda: np.divide(x, x)):
        with pytest.warns(RuntimeWarning) as found:
            call()
        assert {warning.filename for warning in found} == {__file__}
    with pytest.raises(WengertError, match="multiply"):
        np.ones(3) * x
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        np.ones(2) / x


def test_arrays_without_axes_are_computed_as_numpy_does() -> None:
    z = wg.tensor(np.array(-0.0))
    assert not np.signbit(wnp.sum(z).item())
    assert z.sum(keepdims=True).shape == ()
    chosen, copy = wnp.where(np.array(True), z, 1.0), wnp.copy(z)
    chosen += 1.0
    copy += 2.0
    assert (z.item(), chosen.item(), copy.item()) == (0.0, 1.0, 2.0)
    assert wnp.where(wg.tensor(np.array(False)), z, wg.tensor(np.array(3.0))).item() == 3.0


def test_views_of_an_array_without_axes_follow_it() -> None:
    z = wg.tensor(np.array(1.5))
    row, repeated = z[None], wnp.broadcast_to(z, (2,))
    z[...] = 7.0
    assert (row.tolist(), repeated.tolist()) == ([7.0], [7.0, 7.0])
    row[0] = 9.0
    assert (z.item(), repeated.tolist()) == (9.0, [9.0, 9.0])
    with pytest.raises(ValueError, match="read-only"):
        repeated[0] = 1.0


def test_those_that_numpy_computes_have_a_meaning() -> None:
    assert BY_NUMPY.keys() <= FUNCTIONS.keys()


# Views whose Tensors are made when they are asked for


def test_a_view_that_nobody_has_looked_at_follows_its_base() -> None:
    base = wg.tensor(np.zeros(4))
    views = base[1:], base.reshape(2, 2), base[:, None], base[1:][1:], base.reshape(2, 2).T
    assert views[4].shape == (2, 2)
    base[2] = 1.0
    base *= 2.0  # another buffer
    base[3] = 5.0
    expected = np.array([0.0, 0.0, 2.0, 5.0])
    for view, wanted in zip(
        views,
        (expected[1:], expected.reshape(2, 2), expected[:, None], expected[2:], expected.reshape(2, 2).T),
        strict=True,
    ):
        np.testing.assert_array_equal(view, wanted)


def test_gradients_follow_a_view_that_was_taken_before_anything_was_differentiated() -> None:
    base, w = wg.tensor(np.zeros(4)), wg.tensor(np.array([1.0, 2.0]), requires_grad=True)
    part, column = base[1:3], base[:, None]
    base[1:3] = w * 3.0
    (part.sum() + 10.0 * column.sum()).backward()
    np.testing.assert_array_equal(w.grad, [33.0, 33.0])


def test_axes_may_be_tensors_that_change() -> None:
    x, first, second = wg.tensor(np.zeros((2, 3))), wg.tensor(np.array(0)), wg.tensor(np.array(1))
    assert wnp.transpose(x, (first, second)).shape == (2, 3)
    first += 1
    second -= 1
    assert wnp.transpose(x, (first, second)).shape == (3, 2)
    assert wnp.transpose(x, (-1, np.int64(0))).shape == (3, 2)
    cube = wg.tensor(np.zeros((2, 3, 4)))
    assert wnp.swapaxes(cube, first, second).shape == (3, 2, 4)
    second += 2
    assert wnp.swapaxes(cube, first, second).shape == (2, 4, 3)
    assert wnp.sum(cube, axis=(-1, 0)).shape == (3,)
    assert wnp.sum(cube, axis=(first, second)).shape == (2,)


def test_long_chains_of_views_are_views_of_the_base() -> None:
    base = wg.tensor(np.arange(200.0))
    view = base
    for _ in range(150):
        view = view[1:]
    view[0] = -1.0
    assert base[150] == -1.0
    assert view.shape == (50,)


def test_in_place_operators_on_plain_arrays_reach_views_and_respect_those_who_rely_on_them() -> None:
    x, w = wg.tensor(np.ones(3)), wg.tensor(np.full(3, 2.0), requires_grad=True)
    view, other = x[1:], x.detach()
    y = (x * w).sum()
    x *= 5.0
    x[::2] += 1.0
    view -= 0.5
    np.testing.assert_array_equal(x, [6.0, 4.5, 5.5])
    np.testing.assert_array_equal(other, np.ones(3))
    y.backward()
    np.testing.assert_array_equal(w.grad, np.ones(3))


# In-place operators, computed where the elements lie


IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "**": operator.ipow,
    "%": operator.imod,
    "//": operator.ifloordiv,
}


@together("name", sorted(IN_PLACE))
def test_in_place_operators_do_what_numpys_do(name: str) -> None:
    operate = IN_PLACE[name]
    generator = np.random.default_rng(0)
    for size in (6, 5_000, 90_000):  # computed before a copy of what was there, with warnings set, by several threads
        a, b = generator.uniform(0.5, 2.0, size), generator.uniform(0.5, 2.0, size)
        narrow = a.astype(np.float32)
        for start, other in ((a, b), (a, 2.0), (a, 3), (narrow, b), (narrow, 1.5), (a, b[0])):
            expected, x = start.copy(), wg.tensor(start.copy())
            operand = other if type(other) in (int, float, np.float64) else wg.tensor(other.copy())
            buffer = operate(expected, other)
            found = operate(x, operand)
            assert buffer is expected
            assert found is x
            assert x.dtype == expected.dtype
            np.testing.assert_array_equal(x, expected)
        for part in (slice(1, None, 2), slice(None, None, -1)):
            expected, x = a.copy(), wg.tensor(a.copy())
            window, view = expected[part], x[part]
            operate(window, 0.25)
            operate(window, window[::-1])
            assert operate(view, 0.25) is view
            operate(view, view[::-1])  # which overlaps with what is written to
            if name == "**":  # NumPy takes another loop, with other last bits, where buffers happen to be neighbours
                np.testing.assert_array_max_ulp(x, expected, 4)
                continue
            np.testing.assert_array_equal(x, expected)
            np.testing.assert_array_equal(view, window)


@together("size", [3, 5_000])
def test_in_place_operators_warn_at_the_users_line_and_hold_results_then(size: int) -> None:
    for enter in (lambda x: x, lambda x: x[::2]):
        x = wg.tensor(np.full(size, 3.0))
        target = enter(x)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            target /= 0.0
        assert [str(warning.message) for warning in found] == ["divide by zero encountered in divide"]
        assert found[0].filename == __file__
        assert np.isinf(x[0])
        x = wg.tensor(np.full(size, 3.0))
        target = enter(x)
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            target *= wnp.full(target.shape, 1e308)
        assert np.isinf(x[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="invalid value"):
                target -= np.inf
        assert np.isnan(x[0])


def test_in_place_operators_that_numpy_refuses_leave_all_as_it_was() -> None:
    numbers, x = wg.tensor(np.arange(4)), wg.tensor(np.ones(3))
    with pytest.raises(WengertError, match="a dtype that casts within its kind is needed"):
        numbers += 0.5
    with pytest.raises(ValueError, match="shape"):
        x += wg.tensor(np.ones((2, 3)))
    with pytest.raises(ValueError, match="read-only"):
        wnp.broadcast_to(x, (2, 3)).__iadd__(1.0)
    np.testing.assert_array_equal(numbers, np.arange(4))
    np.testing.assert_array_equal(x, np.ones(3))


def test_in_place_operators_write_into_no_memory_that_somebody_relies_on() -> None:
    given = np.ones(3)
    x, w = wg.asarray(given), wg.tensor(np.full(3, 2.0), requires_grad=True)
    x += 1.0
    np.testing.assert_array_equal(given, np.ones(3))
    y = w * x
    shown, part = x.numpy(), x[1:]
    z = (w[1:] * part).sum()
    x *= 3.0
    part -= 1.0
    (y.sum() + z).backward()
    np.testing.assert_array_equal(shown, np.full(3, 2.0))
    np.testing.assert_array_equal(x, [6.0, 5.0, 5.0])
    np.testing.assert_array_equal(w.grad, [2.0, 4.0, 4.0])


def test_parts_without_axes_are_written_to_in_place() -> None:
    x = wg.tensor(np.ones(3))
    part = x[..., 0]
    part += 1.0
    shown = x.numpy()  # so that the next write takes another buffer
    x *= 3.0
    part += 1.0
    part *= x[1]
    np.testing.assert_array_equal(shown, [2.0, 1.0, 1.0])
    np.testing.assert_array_equal(x, [21.0, 3.0, 3.0])
    assert part == 21.0


def test_numbers_are_written_at_any_index() -> None:
    given = np.zeros((3, 4))
    x, views = wg.tensor(given), []
    for index in (1, (0, 1), slice(None, None, 2), (..., 3), np.array([2, 0]), np.eye(3, 4) > 0, (slice(1), None)):
        views.append(x[1:])
        x[index] = given[index] = len(views)
        np.testing.assert_array_equal(x, given)
        for view in views:
            np.testing.assert_array_equal(view, given[1:])
    x[0] = x[1] * 2.0
    np.testing.assert_array_equal(x[0], given[1] * 2.0)
    with pytest.raises(IndexError):
        x[7] = 1.0
    with pytest.raises(ValueError, match="broadcast"):
        x[0] = wg.tensor(np.ones(3))


def test_arrays_without_axes_stay_arrays() -> None:
    x = wg.tensor(np.array(2.0))
    view, other = x[...], wnp.copy(x)
    x += 1.0
    other *= x
    assert (x, view, other) == (3.0, 3.0, 6.0)
    turned = wnp.astype(x, np.float32)
    same = turned
    turned += 1.0
    assert same is turned
    assert same == 4.0
    assert turned.dtype == np.float32
