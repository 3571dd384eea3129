"""Tests of `jit`: traced once for each kind of argument, equal to the eager function, differentiable by halves."""

from __future__ import annotations

import functools
import gc
import warnings
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
import wengert.transforms.jit as jit_module
from tests.samples.calls import same_traced
from wengert.core.graph.graph import evaluate
from wengert.core.values.frozen import READERS
from wengert.passes.gradient_split import cut
from wengert.transforms import tracing
from wengert.transforms.form_graphs import joint_graph


def steps(x: Any) -> Any:
    """Write into an array step by step, through a view too."""
    v = x * np.arange(1.0, 5.0)
    v[1] = np.sin(x[0])
    w = v[1:]
    w *= 2.0
    return (v * v).sum()


class Pair(NamedTuple):
    left: Any
    right: Any


def test_a_kind_of_argument_is_traced_once() -> None:
    square = wg.jit(lambda x: x * x)
    assert square(3.0) == 9.0
    assert square(4.0) == 16.0
    assert square.trace_count == 1
    np.testing.assert_array_equal(square(np.arange(3.0)), [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(square(np.arange(3.0) + 1), [1.0, 4.0, 9.0])
    square(np.arange(3))
    square([np.arange(3.0)][0].astype(np.float32))
    assert square.trace_count == 4  # a scalar; float64, int64 and float32 arrays


def test_the_function_runs_only_while_it_is_traced() -> None:
    calls = []

    @wg.jit
    def f(x: Any) -> Any:
        calls.append(x)
        return np.exp(x)

    assert same_traced(f(1.0), np.exp(1.0))
    assert same_traced(f(2.0), np.exp(2.0))
    assert len(calls) == 1


def test_containers_and_forms_come_back_as_given() -> None:
    f = wg.jit(lambda p, scale: {"sum": p.left + p.right, "both": Pair(p.left * scale, p.right)})
    found = f(Pair(1.0, 2.0), scale=3.0)
    assert found == {"sum": 3.0, "both": Pair(3.0, 2.0)}
    assert type(found["sum"]) is float
    arrays = f(Pair(np.ones(2), np.ones(2)), scale=3.0)
    assert isinstance(arrays["both"].left, np.ndarray)
    tensors = f(Pair(wg.tensor([1.0]), wg.tensor([2.0])), scale=3.0)
    assert isinstance(tensors["sum"], wg.Tensor)


def test_static_arguments_choose_the_traced_form() -> None:
    f = wg.jit(lambda x, power, name="": x**power if name == "" else x, static_argnums=1, static_argnames="name")
    assert f(3.0, 2) == 9.0
    assert f(3.0, 3) == 27.0
    assert f(2.0, 3) == 8.0
    assert f(2.0, 3, name="same") == 2.0
    assert f.trace_count == 3
    with pytest.raises(wg.errors.UsageError, match="a static argument that cannot be hashed"):
        f(3.0, [2])
    with pytest.raises(wg.errors.UsageError, match="a frozen dataclass in place of a dictionary"):
        f(3.0, {"power": 2})
    with pytest.raises(wg.errors.DtypeError, match="an argument of type str at name; numbers, arrays, Tensors"):
        wg.jit(lambda x, name: x)(1.0, "name")


def test_writes_stay_inside_unless_donated() -> None:
    x = np.ones(4)

    def f(x: Any) -> Any:
        x[0] = 7.0
        return x.sum()

    assert wg.jit(f)(x) == 10.0
    np.testing.assert_array_equal(x, np.ones(4))
    assert wg.jit(f, donate_argnums=0)(x) == 10.0
    np.testing.assert_array_equal(x, [7.0, 1.0, 1.0, 1.0])


def test_results_share_no_memory_with_arguments_or_constants() -> None:
    constant = np.arange(3.0)
    f = wg.jit(lambda x: (x, x[1:], constant, x * 1.0))
    x = np.ones(3)
    for result in f(x):
        result[...] = 9.0
    np.testing.assert_array_equal(x, np.ones(3))
    np.testing.assert_array_equal(f(x)[2], constant)


def test_mutation_is_made_functional() -> None:
    x = np.array([0.3, 0.5, -1.0, 2.0])
    f = wg.jit(steps)
    eager = wg.asarray(x)
    assert f(x) == steps(eager).item()
    np.testing.assert_array_equal(wg.grad(f)(x), wg.grad(steps)(x))
    np.testing.assert_array_equal(wg.jit(wg.grad(steps))(x), wg.grad(steps)(x))
    np.testing.assert_allclose(wg.hessian(f)(x), wg.hessian(steps)(x), rtol=1e-14)


def leaf() -> Any:
    return wg.tensor([1.0, 2.0], requires_grad=True)


def test_captured_tensors_are_read_anew_and_get_gradients() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True)
    f = wg.jit(lambda x: (w * x).sum())
    y = f(2.0)
    y.backward()
    assert y.item() == 6.0
    np.testing.assert_array_equal(w.grad.numpy(), [2.0, 2.0])
    with wg.no_grad():
        w += 1.0
    assert f(2.0).item() == 10.0
    assert f.trace_count == 1


@pytest.mark.parametrize("compared", [False, True])
def test_what_no_result_depends_on_receives_nothing(compared: bool) -> None:
    w, others = leaf(), leaf()
    recorded = others * others  # whose residuals the first sweep would release

    def f(x: Any) -> Any:
        chosen = np.where(recorded > 2.0, x, 2 * x) if compared else x * recorded.shape[0]
        return np.sum(w * chosen)

    jitted = wg.jit(f)
    for _ in range(2):
        w.grad = None
        jitted(np.ones(2)).backward()
        np.testing.assert_array_equal(w.grad.numpy(), [2.0, 1.0] if compared else [2.0, 2.0])
    assert others.grad is None


def jitted_in_jitted(w: Any) -> Any:
    inner = wg.jit(lambda x: np.sum(w * w * x))
    return wg.jit(lambda x: inner(x))


def hidden(reference: Any) -> Any:
    return wg.jit(lambda x: np.sum(reference() * (x * reference())))


def jitted_loop(w: Any) -> Any:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(2):
            if x[i] > 0:
                total = total + w[i] ** 2 * x[i]
        return total

    return wg.jit(f)


class Holding:
    def __init__(self, w: Any) -> None:
        self.w = w

    @wg.jit
    def method(self, x: Any) -> Any:
        return np.sum(self.w * self.w * x)

    def __call__(self, x: Any) -> Any:
        return np.sum(self.w * self.w * x)


@pytest.mark.parametrize(
    "made",
    [
        lambda w: wg.jit(lambda x: np.sum(w * w * x)),
        lambda w: wg.jit(lambda x, v=w[:]: np.sum(v * v * x)),
        lambda w: hidden(weakref.ref(w)),
        lambda w: functools.partial(wg.jit(lambda held, x: held(x), static_argnums=0), Holding(w)),
        lambda w: wg.jit(lambda x: np.sum(wg.vmap(lambda s: Holding(w)(x * s))(np.array([0.25, 0.75])))),
        lambda w: wg.jit(lambda x: wg.scan(lambda s, row: (s + row[0] ** 2 * row[1], s), 0.0, (w, x))[0]),
        lambda w: Holding(w).method,
        lambda w: wg.jit(Holding(w)),
        jitted_in_jitted,
        jitted_loop,
    ],
    ids=["w", "view", "hidden", "static", "vmap", "scan", "method", "object", "jitted", "loop"],
)
def test_tensors_that_are_unfrozen_are_constants_no_more(made: Any) -> None:
    w, x = wg.tensor([1.0, 2.0]), np.array([3.0, 4.0])
    f = made(w)
    for _ in range(3):  # the last calls are native code's alone
        assert f(x) == 19.0
    w.requires_grad_()
    f(x).backward()
    np.testing.assert_array_equal(w.grad.numpy(), [6.0, 16.0])
    with wg.no_grad():
        w += 1.0
    assert f(x).item() == 48.0
    w.requires_grad_(False)
    assert f(x) == 48.0


def test_parameters_that_are_frozen_are_read_anew() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True).requires_grad_(False)
    f = wg.jit(lambda x: (w * x).sum())
    assert f(2.0) == 6.0
    for step in range(3):
        w.requires_grad_()
        f(2.0).backward()
        w.requires_grad_(False)
        w += 1.0
        assert f(2.0) == 10.0 + 4.0 * step
    w.grad = None
    assert f(2.0) == 18.0
    assert f.trace_count == 1


def test_functions_that_took_a_tensor_for_a_constant_are_not_kept_for_that() -> None:
    w = wg.tensor([1.0, 2.0])
    f = jitted_loop(w)
    f(np.ones(2))
    before, gone = len(READERS), weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    del w
    gc.collect()
    assert len(READERS) < before


def test_values_of_outer_transformations_may_be_captured() -> None:
    def outer(a: Any) -> Any:
        return wg.jit(lambda x: x * a * a)(3.0)

    assert wg.grad(outer)(2.0) == 12.0
    assert wg.jvp(outer, (2.0,), (1.0,)) == (12.0, 12.0)
    np.testing.assert_array_equal(wg.vmap(outer)(np.array([1.0, 2.0])), [3.0, 12.0])


@pytest.mark.usefixtures("evaluated")  # to see equations run
def test_the_backward_half_runs_on_residuals(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def spy(graph: Any, args: Any) -> Any:
        names.extend(equation.primitive.name for equation in graph.equations)
        return evaluate(graph, args)

    monkeypatch.setattr(tracing, "evaluate", spy)
    f = wg.jit(lambda x: np.exp(np.sin(x)))
    wg.grad(f)(0.1)  # traces
    names.clear()
    assert wg.grad(f)(0.5) == wg.grad(lambda x: np.exp(np.sin(x)))(0.5)
    assert names.count("sin") == 1
    assert names.count("exp") == 1
    assert names.count("cos") == 1


def test_a_call_is_one_node_that_can_be_differentiated_again() -> None:
    f = wg.jit(steps)
    x = wg.tensor([0.3, 0.5, -1.0, 2.0], requires_grad=True)
    y = f(x)
    assert y.grad_fn.name == "steps"
    (first,) = wg.autograd.grad(y, x, create_graph=True)
    first.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), wg.hessian(steps)(x.detach().numpy()).sum(0), rtol=1e-13)


def test_several_outputs_some_without_derivative() -> None:
    f = wg.jit(lambda x: (x * x, np.argmax(x), x.sum()))
    x = np.array([1.0, 3.0, 2.0])
    value, pullback = wg.vjp(f, x)
    assert value[1] == 1
    (ct,) = pullback((np.ones(3), np.zeros((), int), 1.0))
    np.testing.assert_array_equal(ct, 2 * x + 1)
    (ct,) = pullback((np.zeros(3), np.zeros((), int), 1.0))
    np.testing.assert_array_equal(ct, np.ones(3))


def test_runaway_tracing_is_reported_once() -> None:
    f = wg.jit(lambda x: x.sum())
    for n in range(1, jit_module.MANY_TRACES):
        f(np.ones(n))
    with pytest.warns(UserWarning, match=f"traced {jit_module.MANY_TRACES} times"):
        f(np.ones(jit_module.MANY_TRACES))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.ones(jit_module.MANY_TRACES + 1))


def test_a_failure_while_tracing_leaves_nothing_behind() -> None:
    broken = True

    def f(x: Any) -> Any:
        if broken:
            raise ValueError("not yet")
        return x + 1.0

    g = wg.jit(f)
    with pytest.raises(ValueError, match="not yet"):
        g(1.0)
    broken = False
    assert g(1.0) == 2.0


def test_escaped_values_are_refused() -> None:
    kept = []
    wg.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(wg.errors.EscapedValueError):
        kept[0] + 1.0


def test_a_jitted_function_keeps_a_bounded_number_of_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wengert.transforms.jit.MOST_FORMS", 3)
    f = wg.jit(lambda x: x * 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(8):
            np.testing.assert_array_equal(f(np.ones(n)), np.full(n, 2.0))
            assert 0 < len(f.forms) <= 3
    assert f.trace_count == 8


def test_as_a_decorator_with_options():
    @wg.jit(static_argnums=1)
    def power(x, n):
        return x**n

    assert power(3.0, 2) == 9.0
    assert power(3.0, n=3) == 27.0
    assert power.trace_count == 2


def test_the_text_tells_what_it_was_traced_for():
    def scaled(x, factor):
        return x * factor

    jitted = wg.jit(scaled)
    assert repr(jitted) == "<jit(scaled), traced for nothing yet>"
    jitted(np.zeros((2, 3)), 2.0)
    jitted(np.zeros(4, np.float32), 1)
    assert repr(jitted) == "<jit(scaled), traced for (float64[2,3], float) and (float32[4], int)>"


@pytest.mark.parametrize("view", [lambda c: c, lambda c: c[::-1], lambda c: c.T[::-1][..., ::1], lambda c: c * 2.0])
def test_what_is_written_to_after_a_call_is_as_it_was(view: Any) -> None:
    f = wg.jit(lambda w, c: np.sum(w * view(c) * w))
    plain, strided = np.arange(3.0), np.arange(6.0)
    tensor, base = wg.tensor(np.arange(3.0)), wg.tensor(np.arange(6.0))
    for given, written in [(plain, plain), (strided[::2], strided), (tensor, tensor), (base[::2], base)]:
        w = wg.tensor(np.ones(3), requires_grad=True)
        expected = 2.0 * np.array(view(np.array(given)))
        y = f(w, given)
        written[:] = -1.0
        y.backward()
        np.testing.assert_array_equal(w.grad.numpy(), expected)


def test_what_is_cheaply_made_of_much_smaller_values_is_computed_again() -> None:
    def spread(x: Any, w: Any) -> Any:
        return np.sum(np.exp(w) * (x - np.mean(x, axis=1, keepdims=True)))

    x, w = np.linspace(1.0, 2.0, 400).reshape(4, 100) ** 2, np.linspace(0.0, 1.0, 100)
    halves = cut(joint_graph(wg.graph.trace(spread)(x, w), [False, True]).graph, 2, 1, at_hand=[True, True])
    assert sorted(v.shape for v in halves.residuals) == [(4, 1), (100,)]  # means, not differences from them; exp
    np.testing.assert_allclose(wg.grad(wg.jit(spread), 1)(x, w), wg.grad(spread, 1)(x, w), rtol=1e-13)


def test_large_residuals_that_are_few_cheap_operations_from_others_are_computed_again() -> None:
    def softplus(x: Any, w: Any) -> Any:
        return np.sum(x[1:] * np.log(2.0 * (1.0 + np.exp(w)) - 0.5))

    x, w = np.linspace(1.0, 2.0, 101), np.linspace(-1.0, 1.0, 100)
    joint = joint_graph(wg.graph.trace(softplus)(x, w), [True, True]).graph
    halves = cut(joint, 2, 1, at_hand=[True, True])
    made = [equation.primitive.name for equation in halves.forward.equations]
    assert made == ["getitem", "exp", "add", "multiply", "subtract", "log", "multiply", "sum"]
    assert len(halves.residuals) == 2  # exp and log: neither the part of x nor what the logarithm is of
    expected = wg.grad(softplus, (0, 1))(x, w)
    for found, want in zip(wg.grad(wg.jit(softplus), (0, 1))(x, w), expected, strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-15)


@pytest.mark.parametrize(("size", "quotients"), [(100, 2), (4_000, 3)])
def test_rounds_keep_quotients_of_few_numbers(size: int, quotients: int) -> None:
    def decay(x: Any) -> Any:
        return np.sum(wg.fori_loop(0, 50, lambda _, x: 1.0 / (1.0 + np.exp(-x)), x))

    text = str(wg.graph.trace(wg.grad(decay))(np.linspace(-1.0, 1.0, size)))
    assert text.count("divide(") == quotients  # of the value, of its derivative, and again of the value


def test_results_that_are_equal_have_memory_of_their_own_and_views_share_it():
    a, b, c = wg.jit(lambda x: (x * 2.0, np.copy(x * 2.0), (x * 2.0)[:1]))(np.ones(2))
    a[:] = 99.0
    np.testing.assert_array_equal(b, [2.0, 2.0])
    np.testing.assert_array_equal(c, [2.0])

    def shared(x):
        y = x * 2.0
        return y, y[:1], y

    a, b, c = wg.jit(shared)(np.ones(2))
    a[0] = 99.0
    assert b[0] == c[0] == 99.0


def test_static_arguments_cannot_be_donated():
    for static in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": -1}):
        for donated in (1, -1):
            with pytest.raises(wg.errors.UsageError, match="donate_argnums, which is static"):
                wg.jit(lambda x, n: x * n, donate_argnums=donated, **static)


def test_the_collector_rests_while_a_function_is_traced():
    seen = []

    def looking(x):
        seen.append(gc.isenabled())
        return x * 2

    def failing(x):
        looking(x)
        raise OSError("full")

    wg.jit(looking)(1.0)
    with pytest.raises(OSError, match="full"):
        wg.jit(failing)(1.0)
    assert (seen, gc.isenabled()) == ([False, False], True)
