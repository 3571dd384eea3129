"""Random numbers with keys: NumPy's words, the same numbers in every mode, and gradients of what they are scaled by."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import wengert as wg
from tests.cases import together
from wengert import random
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.extend import apply
from wengert.primitives import random as primitives
from wengert.support import config

KEY = random.key(3)
LOGITS = np.array([[0.1, 2.0, -1.0], [0.0, -0.5, 0.5]])

CALLS: dict[str, Callable[[Any], Any]] = {
    "bits": lambda key: random.bits(key, (2, 3)),
    "bernoulli": lambda key: random.bernoulli(key, np.array([0.1, 0.5, 0.9])),
    "categorical": lambda key: random.categorical(key, LOGITS),
    "categorical, sized": lambda key: random.categorical(key, LOGITS, axis=0, size=(4, 3)),
    "choice": lambda key: random.choice(key, 10, (2, 4)),
    "choice by weights": lambda key: random.choice(key, np.arange(3.0), 4, p=np.array([0.2, 0.5, 0.3])),
    "choice without replacement": lambda key: random.choice(key, 10, 4, replace=False),
    "choice by weights without replacement": lambda key: random.choice(key, 3, 2, replace=False, p=[0.2, 0.5, 0.3]),
    "beta": lambda key: random.beta(key, np.array([0.5, 2.0]), 1.5),
    "dirichlet": lambda key: random.dirichlet(key, np.array([0.5, 2.0, 1.0]), 2),
    "gamma": lambda key: random.gamma(key, np.array([0.5, 2.0]), 3.0, size=(3, 2)),
    "exponential": lambda key: random.exponential(key, 2.0, size=3),
    "fold_in": lambda key: random.fold_in(key, 7),
    "integers": lambda key: random.integers(key, -2, 5, size=6),
    "normal": lambda key: random.normal(key, 1.0, 2.0, size=(2, 2)),
    "permutation": lambda key: random.permutation(key, np.arange(6.0).reshape(2, 3), axis=1),
    "poisson": lambda key: random.poisson(key, np.array([1.0, 2.0, 30.0])),
    "split": lambda key: random.split(key, 3),
    "uniform": lambda key: random.uniform(key, -1.0, 1.0, size=3),
    "uniform, single": lambda key: random.uniform(key, size=5, dtype=np.float32),
}


def numpys(seed: int) -> Any:
    return np.random.Generator(np.random.Philox(seed))


def test_words_and_uniform_numbers_are_numpys() -> None:
    np.testing.assert_array_equal(random.bits(random.key(3), 9), np.random.Philox(3).random_raw(9))
    np.testing.assert_array_equal(random.uniform(KEY, size=9), numpys(3).random(9))
    np.testing.assert_array_equal(random.uniform(KEY, -2.0, 3.0, size=9), numpys(3).uniform(-2.0, 3.0, 9))
    single = random.uniform(KEY, size=9, dtype=np.float32)
    np.testing.assert_array_equal(single, numpys(3).random(9, dtype=np.float32))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(random.poisson(KEY, 4.0, size=9), numpys(3).poisson(4.0, 9))
    weights = [0.2, 0.5, 0.3]
    np.testing.assert_array_equal(random.choice(KEY, 3, 9, p=weights), numpys(3).choice(3, 9, p=weights))


@together("name", CALLS)
def test_numbers_are_the_same_in_every_mode(name: str) -> None:
    call = CALLS[name]
    keys = random.split(KEY, 3)
    want = np.stack([np.asarray(call(key)) for key in keys])
    np.testing.assert_array_equal(wg.vmap(call)(keys), want)
    rounding = 4e-15 if config.NATIVE and name != "normal" else 0.0
    for mode in (wg.jit(wg.vmap(call)), wg.vmap(wg.jit(call))):
        found = np.asarray(mode(keys))
        np.testing.assert_allclose(found, want, rounding)
        assert found.dtype == want.dtype
    jitted = wg.jit(call)
    for key, row in zip(keys, want, strict=True):
        np.testing.assert_allclose(jitted(key), row, rounding)
    assert jitted.trace_count == 1
    np.testing.assert_array_equal(wg.jit(lambda x: x * call(KEY))(1), call(KEY))


def test_keys_are_ndarrays_so_that_steps_of_ndarrays_return_ndarrays() -> None:
    @wg.jit
    def step(w: Any, key: Any) -> Any:
        key, used = random.split(key)
        return w + random.normal(used, size=2), key

    w, key = step(np.zeros(2), KEY)
    assert type(w) is type(key) is np.ndarray
    np.testing.assert_array_equal(key, random.split(KEY)[0])
    for made in (KEY, random.split(KEY), random.fold_in(KEY, 3), wg.jit(lambda i: random.fold_in(KEY, i))(3)):
        assert type(made) is np.ndarray
    for made in (KEY, random.split(KEY), random.fold_in(KEY, 3)):
        assert not made.flags.writeable
    for made in (random.split(wg.asarray(KEY)), random.fold_in(wg.asarray(KEY), 3), random.normal(KEY)):
        assert isinstance(made, wg.Tensor)


def test_keys_of_a_key_differ_from_each_other_and_from_its_numbers() -> None:
    made = [random.split(KEY, 100), *[random.fold_in(KEY, i)[None] for i in range(-50, 50)]]
    found = {tuple(key) for key in np.concatenate(made).tolist()}
    assert len(found) == 200
    assert found.isdisjoint({tuple(pair) for pair in random.bits(KEY, (100, 2)).tolist()})
    folded = wg.vmap(random.fold_in, in_axes=(None, 0))(KEY, np.arange(3))
    np.testing.assert_array_equal(folded, np.stack([random.fold_in(KEY, i) for i in range(3)]))
    np.testing.assert_array_equal(wg.jit(random.fold_in)(KEY, 5), random.fold_in(KEY, 5))


def test_normals_are_quantiles_with_the_same_bits_in_kernels() -> None:
    tails = [round(0.15 * 2**52) + k for k in range(-9, 10)] + [2**k + i for k in range(1, 52) for i in (-1, 0, 1)]
    places = np.array([0, *tails, *[2**52 - 1 - k for k in tails], 2**52 - 1], np.uint64)
    words = np.concatenate([places << np.uint64(12), random.bits(KEY, 100_000)])
    found = primitives.evaluate_normals(words)
    want = scipy.special.ndtri(((words >> np.uint64(12)) + 0.5) * 2.0**-52)
    np.testing.assert_allclose(found, want, 12 * 2.0**-53)  # 5 are ours, 7 SciPy's
    jitted = wg.jit(lambda x: apply(primitives.normals, x))
    for count in (len(words), 1000, 7, 3, 1):
        np.testing.assert_array_equal(jitted(words[:count]), found[:count])
    np.testing.assert_array_equal([primitives.evaluate_normals(x) for x in words[:200]], found[:200])
    turned, want = (x[:200].reshape(10, 20).T for x in (words, found))
    np.testing.assert_array_equal(primitives.evaluate_normals(turned), want)


def test_distributions() -> None:
    n = 20_000
    x = random.normal(KEY, size=n).numpy()
    np.testing.assert_allclose([x.mean(), x.var(), (x**3).mean(), (x**4).mean()], [0, 1, 0, 3], atol=0.1)
    assert abs(random.normal(KEY, size=n, dtype=np.float32).numpy() - x).max() < 1e-6
    np.testing.assert_allclose(random.exponential(KEY, 2.0, size=n).mean().item(), 2.0, rtol=0.03)
    np.testing.assert_allclose(random.bernoulli(KEY, 0.3, size=n).mean().item(), 0.3, atol=0.01)
    probabilities = np.exp(LOGITS[0]) / np.exp(LOGITS[0]).sum()
    found = np.bincount(random.categorical(KEY, LOGITS[0], size=n).numpy()) / n
    np.testing.assert_allclose(found, probabilities, atol=0.01)
    assert set(random.integers(KEY, -2, 2, size=200).tolist()) == {-2, -1, 0, 1}
    first = [random.choice(random.fold_in(KEY, i), 3, 2, replace=False, p=[0.7, 0.2, 0.1]).tolist() for i in range(500)]
    assert all(a != b for a, b in first)
    np.testing.assert_allclose(np.mean([a == 0 for a, _ in first]), 0.7, atol=0.06)


def test_gradients_follow_parameters_and_what_is_chosen_from() -> None:
    x = np.array([0.5, 2.0])
    noise = random.normal(KEY, size=2).numpy()
    low, scale = wg.grad(lambda a, b: np.sum(random.normal(KEY, a, b)), (0, 1))(x, x)
    np.testing.assert_allclose((low, scale), ([1.0, 1.0], noise))
    units = random.uniform(KEY, size=2).numpy()
    np.testing.assert_allclose(wg.grad(lambda a: np.sum(random.uniform(KEY, a, 5.0)))(x), 1 - units)
    np.testing.assert_allclose(
        wg.grad(lambda a: np.sum(random.exponential(KEY, a)))(x), random.exponential(KEY, size=2)
    )
    order = random.permutation(KEY, 3).numpy()
    weights = np.arange(1.0, 4.0)
    permuted = wg.grad(lambda a: np.sum(random.permutation(KEY, a) * weights))(np.ones(3))
    np.testing.assert_array_equal(permuted[order], weights)
    counts = np.bincount(random.choice(KEY, 3, 10).numpy(), minlength=3)
    np.testing.assert_array_equal(wg.grad(lambda a: np.sum(random.choice(KEY, a, 10)))(np.ones(3)), counts)


def test_gamma_draws_move_with_their_shape() -> None:
    n = 20_000
    for a in (0.3, 4.0):
        shapes = np.full(n, a)
        value, pullback = wg.vjp(lambda a: np.log(random.gamma(KEY, a)), shapes)
        np.testing.assert_allclose(value.mean(), scipy.special.digamma(a), rtol=0.05)
        np.testing.assert_allclose(pullback(np.ones(n))[0].mean(), scipy.special.polygamma(1, a), rtol=0.05)
        (slopes,) = wg.vjp(lambda a: random.gamma(KEY, a), shapes)[1](np.ones(n))
        np.testing.assert_allclose(slopes.mean(), 1.0, rtol=0.05)  # the mean is the shape
    a, x = np.array([0.5, 2.0, 30.0]), np.array([0.1, 3.0, 25.0])
    slope = wg.grad(lambda a: np.sum(apply(primitives.gamma_path, a, x)))(a)
    at, h = scipy.special.gammainc(a, x), 1e-5
    moved = (scipy.special.gammaincinv(a + h, at) - scipy.special.gammaincinv(a - h, at)) / (2 * h)
    np.testing.assert_allclose(slope, moved, rtol=1e-6)
    small = wg.jacobian(lambda a: random.dirichlet(KEY, a))(np.array([1e-4, 1e-3]))
    assert np.all(np.isfinite(small))


def test_beta_and_dirichlet_draws_move_with_their_parameters() -> None:
    n = 8_000
    a, b = np.full(n, 0.7), np.full(n, 2.0)
    value, pullback = wg.vjp(lambda a, b: random.beta(KEY, a, b), a, b)
    np.testing.assert_allclose(value.mean(), 0.7 / 2.7, rtol=0.03)
    by_a, by_b = (x.mean() for x in pullback(np.ones(n)))
    np.testing.assert_allclose((by_a, by_b), (2.0 / 2.7**2, -0.7 / 2.7**2), rtol=0.05)
    alpha = np.array([0.5, 1.5, 3.0])
    draws = random.dirichlet(KEY, alpha, n).numpy()
    np.testing.assert_allclose(draws.sum(axis=1), 1.0)
    np.testing.assert_allclose(draws.mean(axis=0), alpha / 5, rtol=0.05)
    jacobian = wg.jacobian(lambda a: np.mean(random.dirichlet(KEY, a, n), axis=0))(alpha)
    np.testing.assert_allclose(jacobian, (np.eye(3) * 5 - alpha[:, None]) / 25, atol=0.01)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.key(-1), UsageError, "key: -1 for seed; a whole number, 0 or more, is needed. Pass an int."),
        (
            lambda: random.normal(7),
            DtypeError,
            "normal: 7, of shape () and dtype int64, as the key; two words of dtype uint64 are needed. Make one with "
            "wengert.random.key or split; use vmap for one call for each of several keys.",
        ),
        (
            lambda: random.fold_in(KEY, 0.5),
            DtypeError,
            "fold_in: 0.5 of shape () and dtype float64; an integer is needed. Use vmap for several.",
        ),
        (
            lambda: random.uniform(KEY, dtype=int),
            DtypeError,
            "uniform: dtype int64; float64 or float32 is needed. Convert with .astype.",
        ),
        (
            lambda: random.integers(KEY, 3, 3),
            UsageError,
            "integers: bounds 3 and 3; a lower one below is needed. Swap them.",
        ),
        (
            lambda: random.choice(KEY, 3, 4, replace=False),
            UsageError,
            "choice: 4 of 3 without replacement; as many as there are, or fewer, are needed. Pass replace=True.",
        ),
        (
            lambda: random.choice(KEY, 3, p=[1.0]),
            ShapeError,
            "choice: p of shape (1,) for 3 slices; one for each is needed. Correct p.",
        ),
        (
            lambda: random.normal(KEY, (3,)),
            UsageError,
            "normal: the tuple (3,) for loc; a number or an array is needed there. Write size=(3,) if it is the shape, "
            "or make it a list.",
        ),
        (
            lambda: random.uniform(KEY, ()),
            UsageError,
            "uniform: the tuple () for low; a number or an array is needed there. Write size=() if it is the shape, or "
            "make it a list.",
        ),
        (
            lambda: random.exponential(KEY, (2, 3)),
            UsageError,
            "exponential: the tuple (2, 3) for scale; a number or an array is needed there. Write size=(2, 3) if it is "
            "the shape, or make it a list.",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda k: random.normal(k, np.zeros((4, 1)), size=2), ShapeError, r"size=2 for parameters of shape \(4, 1\)"),
        (lambda k: random.poisson(k, np.ones(3), size=(1,)), ShapeError, r"size=\(1,\) for parameters"),
        (lambda k: random.normal(k, 0.0, -1.0), UsageError, "-1.0 for scale"),
        (lambda k: random.exponential(k, -1.0), UsageError, "-1.0 for scale"),
        (lambda k: random.bernoulli(k, 2.0), UsageError, "0 to 1 is needed"),
        (lambda k: random.bernoulli(k, np.nan), UsageError, "nan for p"),
        (lambda k: random.integers(k, 0, 1000, dtype=np.int8), UsageError, "a dtype that holds them"),
        (lambda k: random.integers(k, -3, 3, dtype=np.uint8), UsageError, "a dtype that holds them"),
        (lambda k: random.integers(k, 0, 3, dtype=float), DtypeError, "a dtype of integers"),
    ],
)
def test_parameters_out_of_range_and_sizes_that_lack_axes(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(random.key(0))
    assert random.integers(random.key(0), 0, 256, size=3, dtype=np.uint8).dtype == np.uint8


ONES = np.ones(2)
REFUSED: list[tuple[Any, str]] = [
    (
        lambda k, x: random.choice(k, 2, p=0.6 * x),
        "choice: p with the sum 1.2; probabilities with the sum 1 are",
    ),
    (lambda k, x: random.choice(k, 2, p=x * [1.5, -0.5]), "choice: -0.5 among p; probabilities are needed"),
    (lambda k, x: random.choice(k, 2, p=x * [1.0, np.nan]), "choice: nan among p; probabilities are needed"),
    (lambda k, x: random.choice(k, 2, 2, False, p=x * [1.0, 0.0]), "choice: 2 without replacement of 1 with a"),
    (lambda k, x: random.categorical(k, x * np.nan), "categorical: nan among logits; logarithms of probabilities are"),
    (lambda k, x: random.categorical(k, x * -np.inf), "categorical: -inf among the largest logits; some alternative"),
    (lambda k, x: random.normal(k, 0.0, x * [1.0, -1.0]), "normal: -1.0 among scale; 0 or more is needed"),
    (lambda k, x: random.exponential(k, -x), "exponential: -1.0 among scale; 0 or more is needed. Correct it."),
    (lambda k, x: random.gamma(k, -0.5 * x), "gamma: -0.5 among shape; 0 or more is needed"),
    (lambda k, x: random.gamma(k, 1.0, -x), "gamma: -1.0 among scale; 0 or more is needed"),
    (lambda k, x: random.beta(k, 0.0 * x, 1.0), "beta: 0.0 among a; more than 0 is needed"),
    (lambda k, x: random.beta(k, 1.0, -x), "beta: -1.0 among b; more than 0 is needed"),
    (lambda k, x: random.dirichlet(k, x * [1.0, -1.0]), "dirichlet: -1.0 among alpha; 0 or more is needed"),
    (lambda k, x: random.poisson(k, -x), "poisson: -1.0 among lam; 0 or more is needed"),
    (lambda k, x: random.bernoulli(k, 1.5 * x), "bernoulli: 1.5 among p; 0 to 1 is needed"),
    (lambda k, x: random.uniform(k, x, 0.0), "uniform: -1.0 among high - low; 0 or more, and finite, is needed"),
    (lambda k, x: random.uniform(k, x, np.inf), "uniform: inf among high - low; 0 or more, and finite, is needed"),
    (lambda k, x: random.integers(k, (x * [1, 5]).astype(int), 3), "integers: bounds 5 and 3; a lower one below is"),
]


@together("call, text", REFUSED)
def test_arrays_of_parameters_that_numpy_refuses_are_refused(call: Any, text: str) -> None:
    for x in (ONES, wg.tensor(ONES), wg.tensor(ONES, requires_grad=True)):
        with pytest.raises(UsageError, match="^" + re.escape(text)):
            call(KEY, x)
    with pytest.raises(UsageError, match="^" + re.escape(text)):
        wg.jvp(lambda x: np.sum(1.0 * call(KEY, x)), (ONES,), (ONES,))


UNKNOWN = [
    lambda k, x: random.normal(k, 0.0, x),
    lambda k, x: random.exponential(k, x),
    lambda k, x: random.gamma(k, x),
    lambda k, x: random.gamma(k, 1.0, x),
    lambda k, x: random.beta(k, x, 1.0),
]


@together("call", UNKNOWN)
def test_draws_of_parameters_that_are_wrong_only_at_run_time_are_nan(call: Any) -> None:
    given = np.array([1.0, -1.0])
    for found in (wg.jit(call)(KEY, given), wg.vmap(lambda x: call(KEY, x))(given)):
        np.testing.assert_array_equal(np.isnan(found), [False, True])
    right = np.array([1.0, 2.0])
    np.testing.assert_allclose(wg.jit(call)(KEY, right), call(KEY, right).numpy())


def test_what_numpys_generators_take_is_taken() -> None:
    assert np.isnan(random.normal(KEY, 0.0, np.array([np.nan]))).all()
    assert random.choice(KEY, 3, p=np.array([0.1, 0.2, 0.7], np.float32)).shape == ()
    assert random.dirichlet(KEY, [1.0, 0.0])[1] == 0.0
    assert random.categorical(KEY, [0.0, -np.inf]) == 0
    assert random.split(KEY, 0).shape == (0, 2)


def test_seeds_are_plain_numbers() -> None:
    text = "random.key: a seed that is traced, or one for each lane; a plain number is needed. Fold it into a key: "
    text += "fold_in(key(0), seed)."
    for transform in (wg.jit, lambda f: wg.vmap(f, in_axes=0)):
        with pytest.raises(GraphError, match="^" + re.escape(text) + "$"):
            transform(random.key)(np.arange(3))
    assert np.array_equal(random.key(wg.asarray(3)), random.key(3))  # type: ignore[arg-type]
