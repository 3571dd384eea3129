"""Paths of views: steps are composed as they are taken, and lead to NumPy's elements."""

import numpy as np
import pytest

import wengert as wg
from wengert.core.memory.memory_layout import example
from wengert.core.memory.views import base_and_path, extend_path
from wengert.primitives.indexing.index_layout import composed_index
from wengert.primitives.indexing.parts import getitem
from wengert.primitives.shapes import reshape

SHAPES = [(5,), (4, 3), (2, 5, 3), (1, 4, 1), (3, 0)]
RANDOM_VIEWS = 120


def random_slice(rng):
    def bound():
        return None if rng.random() < 0.4 else int(rng.integers(-6, 7))

    return slice(bound(), bound(), int(rng.choice([-3, -2, -1, 1, 1, 2])))


def random_index(rng, shape):
    entries = [int(rng.integers(-n, n)) if n and rng.random() < 0.2 else random_slice(rng) for n in shape]
    del entries[rng.integers(0, len(entries) + 1) :]
    if rng.random() < 0.3:
        entries.insert(int(rng.integers(0, len(entries) + 1)), None)
    if rng.random() < 0.3 or len(entries) - entries.count(None) == 0:
        entries.append(Ellipsis)
    return tuple(entries)


def random_view(rng, x):
    return x[random_index(rng, x.shape)] if rng.random() < 0.6 else x.transpose(rng.permutation(x.ndim).tolist())


@pytest.mark.parametrize("shape", SHAPES)
def test_indices_and_permutations_are_at_most_two_steps_from_the_array(shape):
    for seed in range(RANDOM_VIEWS):
        array = np.arange(float(np.prod(shape))).reshape(shape)
        x = wg.tensor(array)
        plain, view = array, x
        for step in range(5):
            if not isinstance(plain, np.ndarray) or not plain.ndim:
                break
            plain = random_view(np.random.default_rng([seed, step]), plain)
            view = random_view(np.random.default_rng([seed, step]), view)
        plain, view = plain[...], view[...]
        assert view.tolist() == plain.tolist()
        base, path = base_and_path(view)
        if base is x:
            assert len(path) <= 2 or not plain.size, seed
            before = x.numpy()
            for primitive, params in path:
                before = primitive.evaluate(before, **dict(params))
            assert before.shape == plain.shape
            assert np.asarray(x.numpy()).size == 0 or plain.size == 0 or np.may_share_memory(before, x.numpy())
            view[...] = -1.0
            plain[...] = -1.0
            assert x.tolist() == array.tolist(), seed


def test_strides_are_those_of_the_steps():
    for seed in range(RANDOM_VIEWS):
        rng = np.random.default_rng(seed)
        array = np.empty((5, 4, 3))
        first = random_index(rng, array.shape)
        part = array[first]
        second = random_index(rng, part.shape) if part.ndim else (Ellipsis,)
        index = composed_index(array.shape, first, second)
        if index is not None:
            assert array[index].shape == part[second].shape
            if part[second].size:
                assert array[index].strides == part[second].strides, (first, second, index)
                assert array[index].ctypes.data == part[second].ctypes.data


@pytest.mark.parametrize("second", [(7,), (0, 0, 0), (..., ...), (slice(None, None, 0),), (1.5,)])
def test_indices_that_numpy_refuses_are_not_composed(second):
    assert composed_index((5, 6), (slice(1, 4),), second) is None


@pytest.mark.parametrize(
    ("strides", "shape"), [((24, 8), (4, 3)), ((8, 32), (4, 3)), ((48, 8), (4, 3)), ((8, 8), (4, 3)), ((0, 8), (4, 3))]
)
def test_a_reshape_of_a_reshape_that_is_a_view_is_a_view_at_once(strides, shape):
    array = example(shape, tuple(strides), np.dtype(float))
    for middle in [(12,), (2, 2, 3), (4, 1, 3), (2, 6), (6, 2)]:
        for last in [(12,), (3, 4), (2, 2, 3), (4, 3, 1), (2, 2, 3, 1), (1, 12)]:
            first = array.reshape(middle)
            second = first.reshape(last)
            if np.may_share_memory(first, array) and np.may_share_memory(second, array):
                direct = array.reshape(last)
                assert np.may_share_memory(direct, array)
                assert direct.strides == second.strides


def test_reshapes_and_indices_behind_them_are_composed():
    reshaped = extend_path((4, 3), (), reshape, {"shape": (2, 6), "order": "C"})
    again = extend_path((4, 3), reshaped, reshape, {"shape": (12,), "order": "C"})
    assert again == ((reshape, (("shape", (12,)), ("order", "C"))),)
    part = extend_path((4, 3), again, getitem, {"index": (slice(2, None),)})
    assert len(part) == 2
    assert extend_path((4, 3), part, getitem, {"index": (slice(None, None, 3),)})[1] == (
        getitem,
        (("index", (slice(2, None, 3),)),),
    )


def test_a_chain_of_views_is_written_through_in_one_step():
    def function(x):
        y = x * 1.0
        view = y
        for i in range(20):
            view = view[1:] if i % 2 else view[:-1]
        view[3] = view[4] ** 2
        view[::2] += 1.0
        return y

    x = np.linspace(1.0, 2.0, 40)
    graph = wg.graph.trace(function)(x)
    assigns = [equation for equation in graph.equations if equation.primitive.name == "assign"]
    assert [equation.params["path"] for equation in assigns] == [()] * 2
    assert [equation.params["index"] for equation in assigns] == [(13,), (slice(10, 30, 2),)]
    plain = np.array(x)
    function_value = np.asarray(function(wg.asarray(plain)))
    assert np.array_equal(wg.jit(function)(x), function_value)
    assert np.array_equal(wg.jacobian(function)(x), wg.jacobian(wg.jit(function))(x))
    tape = wg.tensor(x, requires_grad=True)
    function(tape).sum().backward()
    expected = np.ones(40)
    expected[13], expected[14] = 0.0, 1.0 + 2 * x[14]
    assert np.array_equal(tape.grad.numpy(), expected)


def test_writes_through_transposed_rows_in_lanes():
    def function(x):
        y = x * 1.0
        y.T[1:][0][::-1][1] = 7.0
        y[1:].T[0, :] = x[0, 0]
        return y

    xs = np.arange(24.0).reshape(2, 4, 3)
    expected = np.array(xs)
    for x, y in zip(xs, expected, strict=True):
        y.T[1:][0][::-1][1] = 7.0
        y[1:].T[0, :] = x[0, 0]
    assert np.array_equal(np.stack([wg.asarray(x) * 1.0 for x in xs]).numpy(), xs)
    assert np.array_equal(wg.vmap(function)(xs), expected)
    assert np.array_equal(wg.jit(wg.vmap(function))(xs), expected)
    assert np.array_equal(np.stack([function(wg.asarray(x)).numpy() for x in xs]), expected)
