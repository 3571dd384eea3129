"""The short ways of recording: what is saved, who sees writes, and sweeps that take only some paths."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert import autograd
from wengert.errors import GraphError, ShapeError


def leaf(values):
    return wg.tensor(np.asarray(values, float), requires_grad=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, a: x * a,
        lambda x, a: a * x,
        lambda x, a: a / x,
        lambda x, a: x / a,
        lambda x, a: np.multiply(a, x),
        lambda x, a: np.maximum(x, a),
        lambda x, a: np.where(a > 2.0, x, a),
        lambda x, a: np.clip(x, a - 3.0, a),
        lambda x, a: np.einsum("i,i->i", x, a),
    ],
)
def test_writes_to_an_ndarray_that_was_an_operand_do_not_reach_the_gradient(function):
    gradients = []
    for later in (False, True):
        x, a = leaf([1.5, 2.5, 0.5]), np.array([1.0, 2.0, 3.0])
        y = function(x, a)
        if later:
            a[...] = 7.0
        y.backward(np.array([1.0, 2.0, 3.0]))
        gradients.append(x.grad.numpy())
    np.testing.assert_array_equal(*gradients)


@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "slogdet"])
def test_functions_of_several_results_record_one_operation(name):
    function, a = getattr(np.linalg, name), np.diag([3.0, 1.0, 2.0]) + 0.25
    x = leaf(a)
    y = x * 1.0
    results = function(y)
    y[...] = np.nan  # the operand was saved, and is not overwritten
    assert type(results) is type(function(a))
    used = results[1]
    used.retain_grad()
    seen = []
    used.register_hook(lambda ct: seen.append(ct))
    autograd.backward(list(results[1:]), [np.ones(r.shape) for r in results[1:]])
    expected = wg.vjp(function, a)[1](
        type(results)(np.zeros(results[0].shape), *[np.ones(r.shape) for r in results[1:]])
    )
    np.testing.assert_allclose(x.grad, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(used.grad, np.ones(used.shape))
    assert len(seen) == 1
    with wg.no_grad():
        assert not function(x)[1].requires_grad


@pytest.mark.parametrize("index", [np.array([2, 0, 2]), np.array([True, False, True])])
def test_writes_to_an_index_do_not_reach_the_gradient(index):
    x, places = leaf([1.0, 2.0, 3.0]), index.copy()
    y = x[places]
    places[...] = 1
    y.backward(np.arange(1.0, 1.0 + len(y)))
    expected = np.zeros(3)
    np.add.at(expected, index, np.arange(1.0, 1.0 + len(y)))
    np.testing.assert_array_equal(x.grad, expected)


@pytest.mark.parametrize("join", [np.stack, np.concatenate])
def test_joining_takes_ndarrays_that_are_written_to_later(join):
    x, a = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    y = join((x, wg.asarray(a), a))
    a[...] = 9.0
    np.testing.assert_array_equal(y.detach(), join(([1.0, 2.0], [3.0, 4.0], [3.0, 4.0])))
    y.backward(np.ones(y.shape))
    np.testing.assert_array_equal(x.grad, [1.0, 1.0])


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, None],
        lambda x: x[None, ...],
        lambda x: np.expand_dims(x, 0),
        lambda x: x.reshape(2, 2),
        lambda x: np.flip(x, 0),
        lambda x: x.reshape(2, 2).T[1:],
        lambda x: np.ravel(x),
    ],
)
def test_writes_through_views_reach_their_base_and_the_gradient(view):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 2.0
    part = view(y)
    part *= 3.0
    plain = np.array([2.0, 4.0, 6.0, 8.0])
    window = view(plain)
    window *= 3.0
    np.testing.assert_array_equal(y.detach(), plain)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, plain / np.array([1.0, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize("requested", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_gradients_of_some_inputs_are_those_of_all(requested):
    leaves = [leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])]

    def f(x, y, z):
        return np.sum(np.where(x > 1.0, x * y, z)) + np.mean(np.concatenate((y, z[:1], x[None][0])) ** 2)

    every = autograd.grad(f(*leaves), leaves)
    some = autograd.grad(f(*leaves), [leaves[i] for i in requested])
    for i, found in zip(requested, some, strict=True):
        np.testing.assert_array_equal(found, every[i])


def test_inner_values_are_inputs_beside_leaves():
    x = leaf([1.0, 2.0])
    y = np.reshape(x * x, (2, 1))
    z = np.sum(y * y)
    inner, outer = autograd.grad(z, [y, x])
    np.testing.assert_array_equal(inner, [[2.0], [8.0]])
    np.testing.assert_array_equal(outer, [4.0, 32.0])


def test_a_graph_is_swept_once_unless_it_is_retained():
    x = leaf([1.0, 2.0, 3.0])
    for y in (np.sum(x), np.max(x), np.reshape(x, (3, 1)), x[np.array([0, 1])], np.stack((x, x))):
        total = y * 1.0
        total.backward(np.ones(total.shape), retain_graph=True)
        total.backward(np.ones(total.shape))
        with pytest.raises(GraphError, match="released by an earlier sweep"):
            total.backward(np.ones(total.shape))


@together(
    "function",
    [
        lambda x: x[1:] * x[:-1],
        lambda x: x.reshape(2, 3)[:, 1:] ** 2,
        lambda x: x[2] * x[1:4],
        lambda x: np.sum(np.sin(x)[None, :], axis=0) * x,
        lambda x: np.max(x * x) * np.sort(x),
        lambda x: np.tril(np.outer(x, x)),
        lambda x: np.diff(x) ** 3,
        lambda x: x[np.array([0, 3, 3])] ** 2,
        lambda x: x[-1] * x[0] * x[-1],
        lambda x: x.reshape(2, 3)[1, :2] * x.reshape(3, 2)[-2],
        lambda x: x.reshape(2, 3)[:, np.array([2, 0])] ** 2,
        lambda x: np.prod(x) * np.var(x) * x,
        lambda x: np.cross(x[:3], x[3:]) * np.dot(x, x),
    ],
)
def test_sweeps_that_are_recorded_give_the_second_derivatives_of_transformations(function):
    data, direction = np.array([0.3, 0.7, -0.2, 1.1, 0.5, -0.9]), np.arange(6.0)

    def total(x):
        return np.sum(function(x) * 1.5)

    x = leaf(data)
    (first,) = autograd.grad(total(x), x, create_graph=True)
    (second,) = autograd.grad(first, x, wg.tensor(direction))
    np.testing.assert_allclose(first.detach(), wg.grad(total)(data), rtol=1e-12)
    np.testing.assert_allclose(second, wg.hvp(total, data, direction), rtol=1e-11, atol=1e-13)


def test_hooks_see_operations_recorded_in_short_ways():
    x = leaf([1.0, 2.0, 3.0])
    seen = []
    y = x[np.array([0, 2])]
    y.register_hook(lambda ct: seen.append(np.asarray(ct)) or ct * 2.0)
    z = np.sum(y)
    z.register_hook(lambda ct: seen.append(np.asarray(ct)))
    z.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 0.0, 2.0])
    assert [list(np.atleast_1d(s)) for s in seen] == [[1.0], [1.0, 1.0]]


@together(
    "function",
    [
        lambda x: x[1:],
        lambda x: x[:, None],
        lambda x: x[0],
        lambda x: x.T,
        lambda x: x.T[1],
        lambda x: np.sum(x, axis=0),
        lambda x: np.cumsum(x, axis=1),
        lambda x: np.flip(x, 1).reshape(-1),
        lambda x: np.max(x),
        lambda x: np.copy(x, order="F"),
        lambda x: np.tril(x),
        lambda x: np.einsum("ij->ji", x),
        lambda x: x @ x.T,
        lambda x: x[np.array([0, 1, 1])],
        lambda x: x[:, np.array([1, 0])],
        lambda x: x[np.array([0, 1]), np.array([1, 0])],
        lambda x: x[np.array([[0, 1], [1, 0]]), None],
        lambda x: x[0, np.array([1, 0])],
        lambda x: x[:1, np.array([[1, 0], [0, 1]])],
        lambda x: x[np.array([True, False, True, False])[: len(x)]],
    ],
)
def test_lanes_lie_as_numpy_has_each_result(function):
    data = np.arange(24.0).reshape(2, 3, 4)
    for lanes in (data, data.transpose(0, 2, 1), data[:, ::2]):
        found = wg.vmap(function)(lanes)
        as_they_lie = wg.vmap(lambda x: wnp.ravel(function(x), "K"))(lanes)
        for i, lane in enumerate(lanes):
            np.testing.assert_array_equal(found[i], function(lane))
            np.testing.assert_array_equal(as_they_lie[i], np.ravel(function(lane), "K"))


def test_no_lanes_have_elements():
    assert wg.vmap(lambda x: x[:, np.array([1, 0, 0])])(np.ones((0, 3, 2))).shape == (0, 3, 3)


def test_what_is_added_to_a_part_is_one_assignment():
    def added(x, y):
        z = x * 1.0
        z[::2] += y
        z[1, :2] *= 2.0
        return z

    x, y = np.arange(24.0).reshape(2, 4, 3), np.ones((2, 2, 3))
    np.testing.assert_array_equal(wg.vmap(added)(x, y), np.stack([added(*lane) for lane in zip(x, y, strict=True)]))
    node, names = added(leaf(x[0]), y[0])._node, []
    while node.inputs:
        names.append(node.name)
        node = node.inputs[0]
    assert names == ["assign", "assign", "multiply"]


def test_products_of_plain_arrays_take_the_short_way_with_the_same_results_and_errors() -> None:
    x, y = wg.tensor([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0])
    for function in (np.matmul, np.dot, np.inner, np.outer):
        public = getattr(wnp, function.__name__)
        expected = function(np.asarray(x), y)
        assert public(x, y).tolist() == public(x, wg.tensor(y)).tolist() == expected.tolist()
    assert (x @ y).tolist() == [17.0, 39.0]
    with pytest.raises(ShapeError, match=r"^matmul: shapes \(2, 2\) and \(3,\); "):
        x @ wg.tensor(np.ones(3))
    assert wnp.dot(x, 2.0).tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_functions_of_ufuncs_without_operands_say_how_many_are_needed() -> None:
    for name in ("exp", "add"):
        with pytest.raises(TypeError, match=rf"^{name}: 0 operands; "):
            getattr(wnp, name)()
    with pytest.raises(TypeError, match=r"^add: 1 operands; "):
        wnp.add(wg.tensor(1.0))
