"""What a function does besides computing: once, as in plain Python, or refused."""

from __future__ import annotations

import functools
import gc
import io
import random
import weakref

import numpy as np
import pytest

import wengert as wg
from wengert.support import config


def test_what_a_function_did_before_it_is_converted_is_undone():
    count, taken, rng = [0], [], np.random.default_rng(0)

    def f(x):
        count[0] += 1
        taken.append(rng.random())
        return x * count[0] if x > 0 else -x

    assert wg.jit(f)(3.0) == 3.0
    assert count == [1]
    assert taken == [np.random.default_rng(0).random()]


def drawn_in_a_branch(rng, draw, x):
    s = 0.0
    if x[0] > 0:
        s = s + draw(rng)
    return s + draw(rng) * x[1]


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda: np.random.default_rng(0), lambda rng: rng.random()),
        (lambda: np.random.RandomState(0), lambda rng: rng.rand()),
        (lambda: random.Random(0), lambda rng: rng.random()),
        (lambda: io.StringIO("1.5\n2.5\n3.5\n"), lambda file: float(file.readline())),
    ],
)
def test_state_that_is_advanced_where_a_traced_value_decides_is_refused(make, draw):
    with pytest.raises(wg.errors.GraphError, match=r"if x\[0\] > 0:"):
        wg.jit(functools.partial(drawn_in_a_branch, make(), draw))(np.array([0.5, 0.6]))


def test_random_numbers_drawn_alike_in_both_branches_are_the_plain_ones():
    def f(x):
        rng = np.random.default_rng(0)
        s = rng.random() if x[0] > 0 else 2 * rng.random()
        return s * np.sum(x) + rng.random()

    for x in (np.array([0.5, 0.6]), np.array([-0.5, 0.6])):
        np.testing.assert_allclose(wg.jit(f)(x), f(x), rtol=1e-15)


class Layer:
    def __init__(self, weight):
        self.weight = weight

    @wg.jit
    def scaled(self, x, times=1.0):
        return self.weight * x * times

    @functools.partial(wg.jit, static_argnums=2)
    def power(self, x, n):
        return self.weight * x**n


def test_methods_are_jitted_for_each_instance():
    one, other = Layer(2.0), Layer(3.0)
    assert (one.scaled(3.0), other.scaled(3.0), one.scaled(3.0, times=2.0)) == (6.0, 9.0, 12.0)
    np.testing.assert_array_equal(other.power(np.ones(2) * 2, 3), [24.0, 24.0])
    assert wg.grad(one.scaled)(1.0) == 2.0
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_the_order_of_keys_is_part_of_what_a_function_is_traced_for():
    f = wg.jit(lambda d: [v * (i + 1) for i, v in enumerate(d.values())])
    assert f({"a": 1.0, "b": 2.0}) == [1.0, 4.0]
    assert f({"b": 2.0, "a": 1.0}) == [2.0, 2.0]


def writes(a, b):
    a[0] = 5.0
    return a + b


@pytest.mark.parametrize("call", [wg.vjp, wg.linearize, lambda f, *xs: wg.cond(True, f, f, *xs)])
def test_an_array_passed_twice_must_not_be_written_to(call):
    x = np.array([0.7, -1.3])
    for other in (x, x[::-1]):
        with pytest.raises(wg.errors.GraphError, match="share memory"):
            call(writes, x, other)


@pytest.mark.parametrize("transform", [lambda f: f, wg.jit])
def test_what_a_scan_leaves_behind_is_not_written_to_by_the_next_step(transform):
    def body(carried, v):
        carried += v
        return carried, (carried, carried[:1])

    _, (whole, part) = transform(lambda a, b: wg.scan(body, a, b))(np.zeros(2), np.ones(3))
    np.testing.assert_array_equal(whole, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    np.testing.assert_array_equal(part, [[1.0], [2.0], [3.0]])


def logarithm_or_zeros(x):
    try:
        with np.errstate(all="raise"):
            return np.log(x.reshape(-1))
    except FloatingPointError:
        return np.zeros_like(x)


def test_errors_about_elements_that_are_not_there_yet_are_refused():
    for x in (np.array([-1.0, 2.0]), np.array([1.0, 2.0])):
        for transformed in (wg.jit(logarithm_or_zeros), wg.jit(wg.vmap(logarithm_or_zeros))):
            with pytest.raises(
                wg.errors.GraphError,
                match=r"numpy\.errstate with 'raise' around an operation that is being traced; errors about elements "
                r"cannot be raised before these are there\. Ask with numpy\.isfinite, or use errstate around the call "
                r"of the traced function\.\n.*in logarithm_or_zeros: return np\.log",
            ):
                transformed(x[None])
        np.testing.assert_array_equal(wg.vjp(logarithm_or_zeros, x)[0], logarithm_or_zeros(x))


@pytest.mark.skipif(config.NATIVE, reason="native code does not raise")
def test_errors_about_elements_are_raised_by_calls_of_traced_functions():
    logarithm = wg.jit(lambda x: np.log(x))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(logarithm(np.ones(2)), [0.0, 0.0])
        with pytest.raises(FloatingPointError):
            logarithm(-np.ones(2))
