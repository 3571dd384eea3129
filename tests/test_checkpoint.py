"""Tests of `checkpoint`: the same derivatives in every mode, less memory, and functions that change."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import math
import re
import tracemalloc
import weakref
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
import wengert.numpy
from tests.samples.base import normal
from wengert.autograd import saved_tensors_hooks
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.errors import GraphError
from wengert.extend import apply, linear

X, V = normal(3), normal(3, seed=1)
W = normal(3, 3)


def layer(x: Any) -> Any:
    y = np.tanh(W @ x) * x
    y[0] = y[1] * x[2]
    return np.sin(y)


def nested(x: Any) -> Any:
    inner = wg.checkpoint(lambda x: wg.checkpoint(np.sin)(x) * x)
    return inner(np.tanh(x)) + wg.checkpoint(np.exp)(x)


def containers(x: Any) -> Any:
    out = wg.checkpoint(lambda d, *, power: {"a": d["x"] ** power, "b": [d["y"] * d["x"]]})({"x": x, "y": V}, power=3)
    return out["a"] * out["b"][0]


def with_own_sweep(x: Any) -> Any:
    return wg.grad(lambda y: np.sum(np.sin(y) ** 3 * x))(x) * x


def with_own_pushes(x: Any) -> Any:
    return wg.jvp(lambda y: np.sin(y) * x, (x,), (V,))[1] + wg.vmap(lambda y: y * y)(x)


def unwrapped(x: Any) -> Any:
    return np.sin(np.tanh(x)) * np.tanh(x) + np.exp(x)


PROGRAMS = {
    "sin": (wg.checkpoint(np.sin), np.sin),
    "layer": (wg.checkpoint(layer), layer),
    "two layers": (lambda x: wg.checkpoint(layer)(wg.checkpoint(layer)(x)), lambda x: layer(layer(x))),
    "nested": (wg.checkpoint(nested), unwrapped),
    "containers": (containers, lambda x: x**4 * V),
    "own sweep": (wg.checkpoint(with_own_sweep), with_own_sweep),
    "own pushes": (wg.checkpoint(with_own_pushes), with_own_pushes),
    "captured": (lambda x: wg.checkpoint(lambda y: np.sin(x * y))(x + 1), lambda x: np.sin(x * (x + 1))),
}
PAIRS = pytest.mark.parametrize(("f", "plain"), PROGRAMS.values(), ids=PROGRAMS)


@PAIRS
def test_values_and_first_derivatives(f: Any, plain: Any) -> None:
    np.testing.assert_allclose(f(X), plain(X), rtol=1e-15)
    np.testing.assert_allclose(wg.jacrev(f)(X), wg.jacrev(plain)(X))
    np.testing.assert_allclose(wg.jacfwd(f)(X), wg.jacrev(plain)(X))
    np.testing.assert_allclose(wg.jvp(f, (X,), (V,)), wg.jvp(plain, (X,), (V,)))
    np.testing.assert_allclose(wg.linearize(f, X)[1](V), wg.jvp(plain, (X,), (V,))[1])


@PAIRS
def test_higher_derivatives(f: Any, plain: Any) -> None:
    g, h = lambda x: np.sum(f(x) ** 2), lambda x: np.sum(plain(x) ** 2)
    wanted = wg.hessian(h)(X)
    np.testing.assert_allclose(wg.hessian(g)(X), wanted)
    np.testing.assert_allclose(wg.jacrev(wg.grad(g))(X), wanted)
    np.testing.assert_allclose(wg.jacrev(wg.jacfwd(g))(X), wanted)
    np.testing.assert_allclose(wg.jacfwd(wg.hessian(g))(X), wg.jacfwd(wg.hessian(h))(X))
    np.testing.assert_allclose(wg.taylor(g, (X,), (V,), 3), wg.taylor(h, (X,), (V,), 3))


@PAIRS
def test_vmap(f: Any, plain: Any) -> None:
    lanes = np.stack([X, V])
    np.testing.assert_allclose(wg.vmap(f)(lanes), wg.vmap(plain)(lanes))
    slope = lambda f: wg.vmap(wg.grad(lambda x: np.sum(f(x) ** 2)))
    np.testing.assert_allclose(slope(f)(lanes), slope(plain)(lanes))
    outer = lambda f: wg.grad(lambda xs: np.sum(wg.vmap(f)(xs) ** 2))
    np.testing.assert_allclose(outer(f)(lanes), outer(plain)(lanes))


@PAIRS
def test_the_tape(f: Any, plain: Any) -> None:
    found = []
    for function in (f, plain):
        x = wg.tensor(X, requires_grad=True)
        y = np.sum(function(x) ** 2)
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
        (slope,) = wg.autograd.grad(y, x, create_graph=True)
        (slope * slope).sum().backward()
        found.append([x.grad.numpy(), slope.detach().numpy()])
        assert x.requires_grad
    np.testing.assert_allclose(found[0], found[1])


def test_a_pullback_can_be_called_several_times() -> None:
    _, pullback = wg.vjp(PROGRAMS["two layers"][0], X)
    _, wanted = wg.vjp(PROGRAMS["two layers"][1], X)
    for ct in (X, V, X):
        np.testing.assert_allclose(pullback(ct), wanted(ct))


def test_a_released_graph_cannot_be_swept_again() -> None:
    x = wg.tensor(X, requires_grad=True)
    y = wg.checkpoint(layer)(x).sum()
    y.backward()
    with pytest.raises(GraphError, match="released by an earlier sweep"):
        y.backward()


def test_the_function_runs_twice_for_each_sweep() -> None:
    runs = []

    def noting(x: Any) -> Any:
        runs.append(1)
        return np.sin(np.exp(x) * x)

    x = wg.tensor(X, requires_grad=True)
    y = wg.checkpoint(noting)(x).sum()
    assert len(runs) == 1
    y.backward(retain_graph=True)
    assert len(runs) == 2
    y.backward()
    assert len(runs) == 3


def test_captured_tensors_get_gradients() -> None:
    weights = wg.tensor(W, requires_grad=True)
    x = wg.tensor(X, requires_grad=True)
    wg.checkpoint(lambda x: np.tanh(weights @ x))(x).sum().backward()
    wanted = wg.grad(lambda w, x: np.sum(np.tanh(w @ x)), (0, 1))(W, X)
    np.testing.assert_allclose(weights.grad, wanted[0])
    np.testing.assert_allclose(x.grad, wanted[1])
    found = wg.grad(lambda w: np.sum(wg.checkpoint(lambda x: np.tanh(w @ x))(X)))(W)
    np.testing.assert_allclose(found, wanted[0])


def test_arguments_written_to_after_the_call() -> None:
    given = X.copy()
    x = wg.tensor(X, requires_grad=True)
    y = x * 1.0
    z = wg.checkpoint(lambda a, b: np.sin(a) * b)(y, given)
    y += 5.0
    given[:] = 0.0
    z.sum().backward()
    np.testing.assert_allclose(x.grad, np.cos(X) * X)


def test_a_function_that_writes_to_its_argument() -> None:
    def f(x: Any) -> Any:
        x[0] = x[1] ** 2
        return np.sin(x)

    def g(x: Any, wrap: Any) -> Any:
        y = x * 2.0
        return np.sum(wrap(f)(y) * y)

    np.testing.assert_allclose(wg.grad(g)(X, wg.checkpoint), wg.grad(g)(X, lambda f: f))


# Modes and hooks


def test_the_second_run_records_what_the_first_did() -> None:
    def inside_no_grad(x: Any, f: Any) -> Any:
        with wg.no_grad():
            return wg.grad(lambda y: np.sum(f(y) * x))(x)

    for f in (layer, wg.checkpoint(layer)):
        assert inside_no_grad(wg.tensor(X, requires_grad=True), f).grad_fn is None
        found = wg.grad(lambda x, f=f: np.sum(inside_no_grad(x, f) * x))(X)
        np.testing.assert_allclose(found, inside_no_grad(X, layer))
    with wg.no_grad():
        assert wg.checkpoint(layer)(wg.tensor(X, requires_grad=True)).grad_fn is None


def test_no_grad_inside() -> None:
    def f(x: Any) -> Any:
        with wg.no_grad():
            scale = np.exp(x)
        return np.sin(x) * scale

    np.testing.assert_allclose(wg.jacrev(wg.checkpoint(f))(X), wg.jacrev(f)(X))


class Noting:
    """Be a pair of saved-tensor hooks that note the bytes they see."""

    def __init__(self) -> None:
        self.packed = 0
        self.unpacked = 0
        self.hooks = saved_tensors_hooks(self.pack, self.unpack)

    def pack(self, tensor: Any) -> Any:
        self.packed += tensor.nbytes
        return tensor.numpy().copy()

    def unpack(self, array: Any) -> Any:
        self.unpacked += array.nbytes
        return wg.tensor(array)


def chain(x: Any) -> Any:
    for _ in range(10):
        x = np.sin(x) * np.cos(x)
    return x


def test_hooks_around_see_the_arguments_alone() -> None:
    plain, around = Noting(), Noting()
    for noting, f in ((plain, chain), (around, wg.checkpoint(chain))):
        x = wg.tensor(X, requires_grad=True)
        with noting.hooks:
            y = f(x)
        y.sum().backward()
        np.testing.assert_allclose(x.grad, np.diag(wg.jacfwd(chain)(X)))
        assert noting.packed == noting.unpacked
    assert around.packed == X.nbytes
    assert plain.packed > 20 * X.nbytes


def test_hooks_inside_see_what_is_saved_there() -> None:
    noting = Noting()

    def f(x: Any) -> Any:
        y = np.sin(x)
        with noting.hooks:
            y = y * y
        return np.exp(y)

    found = wg.jacrev(wg.checkpoint(f))(X)
    np.testing.assert_allclose(found, wg.jacfwd(f)(X))
    assert noting.packed > 0


def test_tensor_hooks_inside_fire_once() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = np.sin(x)
        y.register_hook(lambda ct: seen.append(ct.shape))
        return np.exp(y)

    x = wg.tensor(X, requires_grad=True)
    wg.checkpoint(f)(x).sum().backward()
    assert seen == [(3,)]


# Memory


@pytest.fixture
def _no_collection() -> Any:
    """Let memory be freed by reference counts alone: garbage in cycles would hide that nothing is kept."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live_bytes(wrap: Any) -> tuple[int, int]:
    """Return the bytes alive after the forward pass of eight segments, and the peak of both passes."""
    x = wg.tensor(np.linspace(0.1, 1.0, 50_000), requires_grad=True)
    tracemalloc.start()
    y = x
    for _ in range(8):
        y = wrap(chain)(y)
    alive = tracemalloc.get_traced_memory()[0]
    y.sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return alive, peak


@pytest.mark.usefixtures("_no_collection")
def test_memory_is_lower() -> None:
    plain, checkpointed = live_bytes(lambda f: f), live_bytes(wg.checkpoint)
    array = 50_000 * 8
    assert plain[0] > 8 * 10 * 2 * array
    assert checkpointed[0] < 12 * array
    assert checkpointed[1] < plain[1] / 3


@pytest.mark.usefixtures("_no_collection")
def test_nothing_is_kept_after_the_sweep() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = np.sin(x)
        seen.append(weakref.ref(y))
        return y * y

    x = wg.tensor(X, requires_grad=True)
    argument = x * 2.0
    alive = weakref.ref(argument)
    y = wg.checkpoint(f)(argument).sum()
    assert seen[0]() is None
    y.backward()
    del argument
    assert seen[1]() is None
    assert alive() is None


# Functions that do something else


def test_random_functions_are_detected() -> None:
    generator = np.random.default_rng(0)
    noisy = wg.checkpoint(lambda x: np.sin(x) * generator.normal(size=3))
    text = (
        "checkpoint: a function that returned something else when run again; a function that does the same each time "
        "is needed. Pass random numbers and other state as arguments, and change captured values after the sweep."
    )
    with pytest.raises(GraphError, match=re.escape(text)):
        wg.grad(lambda x: np.sum(noisy(x)))(X)


def test_captured_values_that_change_are_detected() -> None:
    weights = wg.tensor(W, requires_grad=True)
    y = wg.checkpoint(lambda x: np.tanh(weights @ x))(wg.tensor(X)).sum()
    with wg.no_grad():
        weights += 0.01
    with pytest.raises(GraphError, match="checkpoint: a function that returned something else when run again;"):
        y.backward()
    assert weights.grad is None


def test_functions_that_save_another_number_of_values_are_detected() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return np.sin(x) if len(calls) == 1 else np.sin(x) * np.cos(x)

    text = r"checkpoint: a function that saved 1 values at first and \d when run again; a function that does the same"
    with pytest.raises(GraphError, match=text):
        wg.grad(lambda x: np.sum(wg.checkpoint(f)(x)))(X)


def test_results_without_numbers_and_not_finite_ones() -> None:
    f = wg.checkpoint(lambda x: {"y": np.log(x) * x, "name": "text", "none": None, "n": x > 0})
    with np.errstate(all="ignore"):
        found = wg.jacrev(lambda x: f(x)["y"])(np.array([0.0, 1.0, np.nan, np.inf]))
    assert found[1, 1] == 1.0


def test_an_error_in_the_function_passes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        wg.checkpoint(lambda x: 1 / 0)(wg.tensor(X, requires_grad=True))


def test_a_captured_value_that_is_written_to_before_the_sweep_is_refused_and_read_before_when_traced():
    def loss(x):
        captured = x * 1.0
        result = wg.checkpoint(lambda v: np.sum((captured + v) ** 2))(x)
        captured[0] = 7.0
        return result

    x = np.array([0.5, 0.6])
    with pytest.raises(GraphError, match="change captured values after the sweep"):
        wg.grad(loss)(x)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(x), 8 * x, rtol=1e-15)


def test_a_traced_checkpoint_in_a_loop_recomputes_what_it_computed():
    def loss(x):
        for _ in range(3):
            x = wg.checkpoint(lambda v: np.sin(v) * v + np.array([1.0, 2.0]))(x)
        return np.sum(x)

    x = np.array([0.5, 0.6])
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(x), wg.grad(loss)(x), rtol=1e-14)


def test_a_function_that_writes_to_what_it_captured_is_refused_and_undone():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    kept = x * 1.0

    def layer(p):
        kept[0] *= p[1]
        return p * 3.0

    with pytest.raises(GraphError, match=r"captured; a function that does the same each time is needed"):
        wg.checkpoint(layer)(x)
    np.testing.assert_array_equal(kept.detach(), [1.0, 2.0])

    def own(p):
        p = p * 1.0
        p[0] *= p[1]
        return p

    wg.checkpoint(own)(x).sum().backward()
    np.testing.assert_array_equal(x.grad, [2.0, 2.0])


class Scaled(wg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * factor

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * 2.0 * ctx.saved_tensors[0] * ctx.factor, None


def test_traced_calls_of_functions_with_rules_are_checkpointed():
    cube = wg.custom_rule(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))
    for function in (cube, lambda x: Scaled.apply(x, 2.0)):
        checked = wg.checkpoint(function)
        np.testing.assert_allclose(wg.jit(wg.grad(checked))(1.5), wg.grad(function)(1.5))
        lanes = wg.jit(wg.vmap(wg.grad(checked)))(np.array([1.5, 2.5]))
        np.testing.assert_allclose(lanes, wg.vmap(wg.grad(function))(np.array([1.5, 2.5])))
    factors = iter([2.0, 3.0])
    assert wg.jit(wg.grad(wg.checkpoint(lambda x: Scaled.apply(x, next(factors)))))(1.5) == 6.0  # it runs once


class Power:
    def __init__(self, n: float) -> None:
        self.n = n

    def value(self, x: Any) -> Any:
        return x**self.n

    def ruled(self) -> Any:
        rule = wg.custom_rule(self.value)
        rule.defvjp(lambda x: (rule(x), x), lambda x, ct: (ct * self.n * x ** (self.n - 1),))
        return rule


class Of(Scaled):
    @staticmethod
    def forward(ctx: Any, x: Any, power: Any) -> Any:
        return Scaled.forward(ctx, x, power.n)


def failing(x: Any) -> Any:
    y = x * x
    if y > 100.0:
        raise ValueError("too much", {"y": y * 2})
    while y < 10.0:
        y = y * 2
        if y > 50.0:
            raise ValueError("too much", y)
    return y


def ruled_in_loop(x: Any) -> Any:
    y = x
    while y < 10.0:
        y = wg.custom_rule(lambda y: y * x0)(y)
    return y * x


x0 = 2.0
MADE_ANEW = {
    "rule": lambda x, n: Power(n).ruled()(x),
    "argument": lambda x, n: Of.apply(x, Power(n)),
    "closure": lambda x, n: wg.custom_rule(lambda y: y**n)(x),
    "error": lambda x, n: failing(x) * n,
    "in a loop": lambda x, n: ruled_in_loop(x) * n,
}


@pytest.mark.parametrize("function", MADE_ANEW.values(), ids=MADE_ANEW)
def test_a_traced_function_that_makes_rules_and_arguments_runs_once(function: Any) -> None:
    gradient = wg.grad(lambda x: function(x, 3.0))(1.5)
    checked = wg.checkpoint(lambda x: function(x, 3.0))
    np.testing.assert_allclose(wg.jit(wg.grad(checked))(1.5), gradient, rtol=1e-14)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(checked)))(np.array([1.5, 1.5])), [gradient] * 2, rtol=1e-14)
    numbers = itertools.count(2.0)  # one for each time that it is traced, with control flow as functions or without
    found = wg.jit(wg.grad(wg.checkpoint(lambda x: function(x, next(numbers)))))(1.5)
    np.testing.assert_allclose(found, wg.grad(lambda x: function(x, next(numbers) - 1.0))(1.5), rtol=1e-14)


def test_empty_arrays_are_the_same_each_time():
    def loss(x):
        (np.ones((3, 3)) * np.nan).sum()  # leaves memory that is not zero to whoever asks next
        rows = np.empty((3, 3), like=x)
        columns = np.empty_like(x * x)
        for i in range(3):
            rows[i] = x * i
            columns[i] = x[i] ** 2
        return np.sum(rows**2) + np.sum(columns * x)

    x = np.array([0.5, 0.6, 0.7])
    np.testing.assert_allclose(wg.jit(wg.grad(wg.checkpoint(loss)))(x), wg.grad(loss)(x), rtol=1e-14)


def test_filled_arrays_are_the_same_each_time():
    def loss(x, n):
        (np.ones(2) * np.nan).sum()  # leaves memory that is not zero to whoever asks next
        return np.sum(x * wg.checkpoint(lambda x: np.sin(x) * wengert.numpy.full(2, n, np.uint8))(x))

    x = np.array([0.5, 0.6])
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(x, 3), wg.grad(loss)(x, 3), rtol=1e-14)


def test_control_flow_over_traced_values_runs_again_alike():
    def loss(x):
        a, rounds = np.outer(x, x), 0
        while rounds < 30:
            if np.sum(a) < 0.1:
                break
            a[1] = a[0] * a[1]
            if a[2, 2] > 0.1:
                a[2] *= 0.5
            rounds += 1
        return np.sum(a * a)

    x = np.array([0.9, 0.5, 0.7])
    np.testing.assert_allclose(wg.jit(wg.grad(wg.checkpoint(loss)))(x), wg.grad(loss)(x), rtol=1e-13)


def test_what_a_jitted_function_computes_while_it_is_traced_is_not_counted():
    inner = wg.jit(lambda x: np.sum(wg.grad(lambda y: np.sum(np.sin(y) * np.exp(y)))(x) ** 2))
    loss = lambda x: inner(x * x) * x[0]
    x = np.array([0.9, 0.5])
    np.testing.assert_allclose(wg.grad(wg.checkpoint(loss))(x), wg.grad(loss)(x), rtol=1e-14)


def rows_in_lanes(x):
    return np.sum(wg.vmap(wg.checkpoint(lambda row: np.sum(np.sin(row) * row)))(np.outer(x, x)))


def two_deep(x):
    def middle(y):
        factor = np.exp(y[1:])
        inner = wg.checkpoint(lambda both: np.sum(both["a"] * both["b"][0] * factor))
        return inner({"a": y[1:] * 2.0, "b": [y[:1]]})

    return wg.checkpoint(middle)(x * x)


def written_inside(x):
    def inner(y):
        y[0] = y[1] * y[0]
        return np.sum(y * y)

    return wg.checkpoint(inner)(np.sin(x))


@pytest.mark.parametrize("function", [rows_in_lanes, two_deep, written_inside])
def test_traced_checkpoints_inside_of_checkpoints(function):
    x, v = np.array([0.5, 0.7, 0.2]), np.array([1.0, -0.5, 0.3])
    slope = wg.grad(wg.checkpoint(function))
    np.testing.assert_allclose(wg.jit(slope)(x), wg.grad(function)(x), rtol=1e-14)
    curvature = wg.jvp(wg.grad(function), (x,), (v,))[1]
    np.testing.assert_allclose(wg.jit(lambda x: wg.jvp(slope, (x,), (v,))[1])(x), curvature, rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.grad(lambda x: np.sum(slope(x) * v)))(x), curvature, rtol=1e-13)


def test_errors_that_wait_for_the_graph_to_run_are_the_same_when_run_again() -> None:
    def cube(x: Any) -> Any:
        if x[0] > 5.0:
            raise ValueError("large")
        return np.sum(x**3)

    slope = wg.jit(wg.grad(wg.checkpoint(cube)))
    np.testing.assert_allclose(slope(np.array([1.0, 2.0])), [3.0, 12.0])
    with pytest.raises(ValueError, match="large"):
        slope(np.array([6.0, 2.0]))


class Pair(NamedTuple):
    one: int
    other: int


@dataclasses.dataclass(frozen=True)
class Pattern:
    places: tuple[int, ...]


def test_parameters_of_primitives_that_are_made_anew_are_the_same_each_time() -> None:
    PRIMITIVES.pop("test_checkpoint.gather", None)
    gather = linear(
        "test_checkpoint.gather",
        lambda x, *, at, pair: x[list(at.places)] * pair.one,
        transpose=lambda ct, aval, *, at, pair: pair.one * np.bincount(np.array(at.places), ct, aval.shape[0]),
    )
    del PRIMITIVES["test_checkpoint.gather"]

    def function(x: Any) -> Any:
        return np.sum(apply(gather, x, at=Pattern((1, 1, 2)), pair=Pair(2, 3)) ** 2)

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(wg.jit(wg.grad(wg.checkpoint(function)))(x), [0.0, 32.0, 24.0])


def kept(graph: Any) -> int:
    """Return how many elements the loops of a graph leave behind for others."""
    return sum(
        math.prod(v.shape) for e in graph.equations if e.primitive.name == "scan" for v in e.outputs if len(v.shape) > 1
    )


@pytest.mark.usefixtures("evaluated")
@pytest.mark.parametrize("inside", ["loop", "branch", "while", "calls"])
def test_a_traced_checkpoint_keeps_its_arguments_alone(inside: str) -> None:
    """In loops, branches, loops that a condition ends, and calls; evaluated in less memory, to the same bits."""
    layers = {
        "loop": chain,
        "branch": lambda x: wg.cond(x[0] < 9.0, chain, np.sin, x),
        "while": lambda x: wg.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, chain(s[1])), (0, x))[1],
        "calls": lambda x: wg.call(chain, x),
    }
    x, found = np.linspace(0.1, 1.0, 4000), []

    def loss(x: Any, layer: Any, length: int) -> Any:
        return np.sum(wg.scan(lambda c, _: (layer(c), None), x, length=length)[0])

    for wrap in (wg.checkpoint, lambda f: f):
        layer = wrap(layers[inside])
        slope = wg.jit(wg.grad(partial(loss, layer=layer, length=20)))
        lanes = wg.jit(wg.vmap(wg.grad(partial(loss, layer=layer, length=3))))
        graph = slope.lower(x).graph
        tracemalloc.start()
        value = slope(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        found.append((value, lanes(np.stack([x, x[::-1]])), kept(graph), peak))
    for one, other in zip(found[0][:2], found[1][:2], strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0][2] == 20 * x.size
    assert found[0][3] < found[1][3] / 3
