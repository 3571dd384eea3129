"""Tests of `taylor`: every primitive, high orders against mpmath, cost, composition, singular points, errors."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import wengert as wg
from tests.samples import SAMPLES
from tests.samples.base import Sample, normal, positive
from tests.samples.calls import call_of, float_leaves, random_like
from tests.samples.running import over
from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply
from wengert.errors import DtypeError, EscapedValueError, ShapeError, UsageError
from wengert.traces.batch import Batch

ELEMENTWISE = [
    s
    for s in SAMPLES
    if PRIMITIVES[s.primitive].kind == "elementwise" and call_of(s).leaves and all(x.size for x in call_of(s).leaves)
]
"""All of them, in broadcasting, 0-d and Python-number forms; without the empty ones."""

KINDS = ("linear", "multilinear", "opaque")


def one_of_each(kind: str) -> list[Sample]:
    """Return the first sample of each primitive of a kind that differentiates something."""
    found: dict[str, Sample] = {}
    for s in SAMPLES:
        leaves = call_of(s).leaves
        if PRIMITIVES[s.primitive].kind == kind and leaves and all(x.size for x in leaves):
            found.setdefault(s.primitive, s)
    return list(found.values())


OTHERS = [s for kind in KINDS for s in one_of_each(kind)]


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Any:
    with np.errstate(all="ignore"):
        yield


def nested(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], order: int) -> list[Any]:
    """Return Taylor coefficients by forward mode inside forward mode."""

    def derivative(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda t: wg.jvp(g, (t,), (1.0,))[1]

    g: Callable[[Any], Any] = lambda t: f(*[x + t * v for x, v in zip(primals, tangents, strict=True)])
    found = []
    for k in range(order + 1):
        found.append([np.asarray(leaf) / math.factorial(k) for leaf in float_leaves(g(np.float64(0.0)))])
        g = derivative(g)
    return found


def check(sample: Sample, order: int) -> None:
    """Compare the series of a sample with nested forward mode."""
    call = call_of(sample)
    tangents = [random_like(leaf) for leaf in call.leaves]
    found = wg.taylor(call, call.leaves, tangents, order)
    wanted = nested(call, call.leaves, tangents, order)
    for k, (coefficient, want) in enumerate(zip(found, wanted, strict=True)):
        for a, b in zip(float_leaves(coefficient), want, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=f"coefficient {k}")


@over(ELEMENTWISE, few=True, third=True)
def test_elementwise_primitives(sample: Sample) -> None:
    check(sample, 3)


def test_every_elementwise_primitive_is_among_them() -> None:
    names = {s.primitive for s in SAMPLES if PRIMITIVES[s.primitive].kind == "elementwise"}
    assert names == {s.primitive for s in ELEMENTWISE}


@over(OTHERS)
def test_primitives_of_the_other_kinds(sample: Sample) -> None:
    check(sample, 3)


# High orders


def test_the_tenth_derivative_of_sine_of_exponential() -> None:
    found = wg.taylor(lambda x: np.sin(np.exp(x)), (0.7,), (1.0,), 10)
    with mpmath.workdps(60):
        wanted = [float(c) for c in mpmath.taylor(lambda x: mpmath.sin(mpmath.exp(x)), mpmath.mpf(0.7), 10)]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_the_tenth_derivative_of_a_network() -> None:
    inner, outer, x, v = normal(4, 3), normal(2, 4), normal(3), normal(3, seed=1)
    found = wg.taylor(lambda x: np.tanh(outer @ np.tanh(inner @ x)), (x,), (v,), 10)

    def network(t: Any) -> Any:
        hidden = [mpmath.tanh(sum(w * (a + t * b) for w, a, b in zip(row, x, v, strict=True))) for row in inner]
        return mpmath.tanh(sum(w * h for w, h in zip(outer[1], hidden, strict=True)))

    with mpmath.workdps(60):
        wanted = [float(c) for c in mpmath.taylor(network, 0, 10)]
    np.testing.assert_allclose([c[1] for c in found], wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("f", "x", "reference"),
    [
        (np.tan, 0.3, mpmath.tan),
        (np.arctan, 0.3, mpmath.atan),
        (np.arcsin, 0.3, mpmath.asin),
        (np.log, 1.3, mpmath.log),
        (np.sqrt, 1.3, mpmath.sqrt),
        (np.tanh, 0.3, mpmath.tanh),
        (np.sinc, 0.01, mpmath.sincpi),
        (np.i0, 0.4, lambda x: mpmath.besseli(0, x)),
        (lambda x: x**2.5, 1.3, lambda x: x ** mpmath.mpf(2.5)),
        (lambda x: x**x, 1.3, lambda x: x**x),
        (lambda x: 1 / (1 + x * x), 0.3, lambda x: 1 / (1 + x * x)),
    ],
)
def test_twelve_coefficients_against_mpmath(f: Any, x: float, reference: Any) -> None:
    with mpmath.workdps(60):
        wanted = [float(c) for c in mpmath.taylor(reference, mpmath.mpf(x), 12)]
    np.testing.assert_allclose(wg.taylor(f, (x,), (1.0,), 12), wanted, rtol=1e-9, atol=1e-11)


# Cost


def operations(f: Callable[[Any], Any], order: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the operations on coefficients: each is one of the batch trace that the coefficients are on."""
    count = 0
    process = Batch.process

    def counting(*args: Any) -> Any:
        nonlocal count
        count += 1
        return process(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "process", counting)
        wg.vmap(lambda x: wg.taylor(f, (x,), (np.ones(()),), order))(np.array([0.3, 0.4]))
    return count


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sin(np.exp(x)),
        lambda x: np.tanh(x) / (1 + x * x),
        lambda x: x**2.5 + 2.0**x + np.arctan2(x, 2.0) + np.logaddexp(x, 0.3),
        lambda x: np.std(np.stack([x, x + 1, x * x])),
        lambda x: np.linalg.det(np.stack([np.stack([x, x * x]), np.stack([x + 1, x])])),
    ],
)
def test_cost_grows_no_faster_than_the_square_of_the_order(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = operations(f, 8, monkeypatch), operations(f, 16, monkeypatch)
    assert 10 < small < large < 4.2 * small


@pytest.mark.parametrize("f", [np.sinc, lambda x: np.prod(np.stack([x, x + 1, x * x]))])
def test_chains_of_derivative_primitives_cost_the_cube(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = operations(f, 8, monkeypatch), operations(f, 16, monkeypatch)
    assert 10 < small < large < 8.1 * small


def test_long_chains_need_no_recursion() -> None:
    def chain(x: Any) -> Any:
        for _ in range(1500):
            x = np.sin(x)
        return x

    assert len(wg.taylor(chain, (0.5,), (1.0,), 2)) == 3


# Kinds and containers


@pytest.mark.parametrize(
    "f",
    [
        np.matmul,
        np.dot,
        np.multiply.outer,
        lambda a, b: np.einsum("ij,kj->ik", a, b),
        lambda a, b: np.convolve(a[0], b[1], "same"),
        lambda a, b: np.tensordot(a, b, 2),
    ],
)
def test_products_have_no_terms_beyond_the_second(f: Any) -> None:
    a, b, ta, tb = normal(3, 3), normal(3, 3, seed=1), normal(3, 3, seed=2), normal(3, 3, seed=3)
    found = wg.taylor(f, (a, b), (ta, tb), 3)
    for coefficient, want in zip(found, [f(a, b), f(ta, b) + f(a, tb), f(ta, tb), 0 * f(a, b)], strict=True):
        np.testing.assert_allclose(coefficient, want, atol=1e-14)


def test_linear_functions_act_on_the_direction() -> None:
    x, v = normal(2, 3), normal(2, 3, seed=1)
    f = lambda x: np.cumsum(np.concatenate([x.T[1:], x.T[:1] * 3]), axis=1)
    found = wg.taylor(f, (x,), (v,), 2)
    np.testing.assert_allclose(found[0], f(x))
    np.testing.assert_allclose(found[1], f(v))
    assert not np.any(found[2])


def written(x: Any) -> Any:
    """Write into parts of an array, through views, with repeats and masks."""
    y = x * 2
    y[0] = x[1] * x[2]
    y[1:] += x[0]
    view = y[1:]
    view *= view
    y[[0, 0]] = x[:2] ** 2
    y[y > 40] = 1.0
    return y


def test_mutation_and_indexing() -> None:
    x, v = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.5, -1.0])
    for found, (want,) in zip(wg.taylor(written, (x,), (v,), 3), nested(written, (x,), (v,), 3), strict=True):
        np.testing.assert_allclose(found, want)


def test_a_constant_written_to_between_two_equal_calls() -> None:
    def f(x: Any) -> Any:
        other = np.zeros(1)
        first = np.hypot(x, other)
        other[0] = 2.0
        return first + np.hypot(x, other)

    found = wg.taylor(f, (np.ones(1),), (np.ones(1),), 2)
    wanted = wg.taylor(lambda x: np.hypot(x, 0.0) + np.hypot(x, 2.0), (np.ones(1),), (np.ones(1),), 2)
    np.testing.assert_allclose(found, wanted)


def test_containers() -> None:
    found = wg.taylor(
        lambda d, c: {"y": [d["a"] * d["b"], wg.asarray(3.0)], "n": c > 0},
        ({"a": 2.0, "b": np.ones(2)}, 1.0),
        ({"a": 1.0, "b": np.array([1.0, 0.0])}, 0.0),
        2,
    )
    assert [sorted(c) for c in found] == [["n", "y"]] * 3
    np.testing.assert_array_equal([c["y"][0] for c in found], [[2, 2], [3, 1], [1, 0]])
    assert [c["y"][1] for c in found] == [3.0, 0.0, 0.0]
    assert found[0]["n"]


def test_results_have_the_form_of_the_arguments() -> None:
    assert [type(c) for c in wg.taylor(np.sin, (1.0,), (1.0,), 1)] == [float, float]
    assert [type(c) for c in wg.taylor(np.sin, (np.ones(2),), (np.ones(2),), 1)] == [np.ndarray, np.ndarray]
    assert [type(c) for c in wg.taylor(np.sin, (wg.tensor(1.0),), (1.0,), 1)] == [wg.Tensor, wg.Tensor]
    single = wg.taylor(lambda x: np.sinc(x) + np.hypot(x, 1) ** 2.5, (np.float32(1),), (np.float32(1),), 3)
    assert {c.dtype for c in single} == {np.dtype(np.float32)}


def test_low_orders() -> None:
    assert wg.taylor(np.sin, (0.5,), (1.0,), 0) == [np.sin(0.5)]
    assert wg.taylor(np.sin, (0.5,), (2.0,), np.int64(1)) == [np.sin(0.5), 2 * np.cos(0.5)]


def test_values_are_those_of_numpy() -> None:
    x, y = positive(5), -positive(5, seed=1)
    for f in (np.power, np.float_power, np.divide, np.arctan2):
        np.testing.assert_array_equal(wg.taylor(f, (x, y), (y, x), 2)[0], f(x, y))


# Composition


def third(x: Any) -> Any:
    """Return the third coefficient of sine at x: -cos(x) / 6."""
    return wg.taylor(np.sin, (x,), (np.ones(x.shape),), 3)[3]


def test_derivatives_of_taylor() -> None:
    x = np.float64(0.5)
    assert wg.grad(third)(x) == pytest.approx(np.sin(0.5) / 6)
    assert wg.grad(wg.grad(third))(x) == pytest.approx(np.cos(0.5) / 6)
    assert wg.jvp(third, (x,), (2.0,)) == pytest.approx((-np.cos(0.5) / 6, np.sin(0.5) / 3))
    np.testing.assert_allclose(wg.jacobian(third)(normal(2)), np.diag(np.sin(normal(2)) / 6))


def test_derivatives_by_captured_values() -> None:
    def f(w: Any) -> Any:
        return wg.taylor(lambda x: np.sin(w * x), (0.5,), (1.0,), 2)[2]

    assert wg.grad(f)(2.0) == pytest.approx(-2 * np.sin(1.0) - np.cos(1.0))


def test_taylor_of_recorded_tensors() -> None:
    x = wg.tensor(0.5, requires_grad=True)
    third(x).backward()
    assert x.grad.item() == pytest.approx(np.sin(0.5) / 6)


def test_vmap_of_taylor() -> None:
    x = normal(4)
    np.testing.assert_allclose(wg.vmap(third)(x), -np.cos(x) / 6)


@pytest.mark.parametrize(
    "derivative", [wg.grad, lambda f: lambda x: wg.jvp(f, (x,), (1.0,))[1], lambda f: wg.jacobian(f, mode="rev")]
)
def test_taylor_of_derivatives(derivative: Any) -> None:
    f = lambda x: np.sin(x) * np.exp(x)
    above = wg.taylor(f, (0.5,), (1.0,), 4)
    np.testing.assert_allclose(wg.taylor(derivative(f), (0.5,), (1.0,), 3), [k * above[k] for k in range(1, 5)])


def test_taylor_of_a_hessian() -> None:
    found = wg.taylor(wg.hessian(lambda x: np.sum(np.sin(x))), (np.ones(2),), (np.ones(2),), 2)
    for coefficient, want in zip(found, [-np.sin(1), -np.cos(1), np.sin(1) / 2], strict=True):
        np.testing.assert_allclose(coefficient, np.eye(2) * want)


def test_taylor_of_vmap_and_of_taylor() -> None:
    x = normal(2, 3)
    one = wg.taylor(lambda x: np.sin(x) * x.sum(), (x[1],), (np.ones(3),), 2)[2]
    all_lanes = wg.taylor(wg.vmap(lambda x: np.sin(x) * x.sum()), (x,), (np.ones((2, 3)),), 2)[2]
    np.testing.assert_allclose(all_lanes[1], one)
    assert wg.taylor(third, (np.float64(0.5),), (1.0,), 2)[2] == pytest.approx(np.cos(0.5) / 12)


def test_taylor_of_own_rules_and_of_checkpoints() -> None:
    rule = wg.custom_rule(np.sin)
    rule.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * np.cos(x),))
    forward = wg.custom_rule(np.sin)
    forward.defjvp(lambda primals, tangents: (np.sin(primals[0]), tangents[0] * np.cos(primals[0])))
    for f in (rule, forward, wg.custom_rule(np.sin), wg.checkpoint(np.sin)):
        np.testing.assert_allclose(wg.taylor(f, (0.5,), (1.0,), 4), wg.taylor(np.sin, (0.5,), (1.0,), 4))


def test_a_primitive_whose_derivatives_never_end() -> None:
    fall = elementwise(
        "test_taylor.inverse_power",
        lambda x, *, n: x ** -float(n),
        d=lambda t, _out, x, *, n: t * (-n * apply(fall, x, n=n + 1)),
    )
    np.testing.assert_allclose(
        wg.taylor(lambda x: apply(fall, x, n=1), (1.0,), (1.0,), 6), [(-1) ** k for k in range(7)]
    )


def test_several_results() -> None:
    x = 2 * np.eye(2) + 0.3 * normal(2, 2)
    found = wg.taylor(lambda x: list(np.linalg.slogdet(x)), (x,), (np.eye(2),), 3)
    wanted = wg.taylor(lambda x: np.log(np.linalg.det(x)), (x,), (np.eye(2),), 3)
    np.testing.assert_allclose([c[1] for c in found], wanted)


# Singular points


@pytest.mark.parametrize(
    ("f", "x", "wanted"),
    [
        (lambda x: x**3, 0.0, [0, 0, 0, 1, 0]),
        (lambda x: x**3.0, -1.0, [-1, 3, -3, 1, 0]),
        (lambda x: x**100, 0.0, [0, 0, 0, 0, 0]),
        (lambda x: x**0, 0.0, [1, 0, 0, 0, 0]),
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0), -1.0, [0, 0, 0, 0, 0]),
        (lambda x: np.where(x > 0, 1 / x, 2 * x), 0.0, [0, 2, 0, 0, 0]),
        (np.sinc, 0.0, [1, 0, -(np.pi**2) / 6, 0, np.pi**4 / 120]),
        (np.sinc, 1e-9, [1, 0, -(np.pi**2) / 6, 0, np.pi**4 / 120]),
        (np.abs, 0.0, [0, 0, 0, 0, 0]),
        (lambda x: np.maximum(x, 0), 0.0, [0, 0.5, 0, 0, 0]),
        (lambda x: x * np.abs(x), 2.0, [4, 4, 1, 0, 0]),
        (lambda x: x ** (0 * x + 2), 0.0, [0, 0, 1, 0, 0]),
        (lambda x: x ** (0 * x + 2), -1.0, [1, -2, 1, 0, 0]),
        (lambda x: 0.0 * np.sqrt(0.0 * x), 1.0, [0, 0, 0, 0, 0]),
        (lambda x: np.logaddexp(x, -np.inf), 2.0, [2, 1, 0, 0, 0]),
        (lambda x: np.hypot(x, 0.0), 2.0, [2, 1, 0, 0, 0]),
        (lambda x: np.prod(np.stack([x, x, x + 1])), 0.0, [0, 0, 1, 1, 0]),
    ],
)
def test_singular_points_give_the_derivatives_that_exist(f: Any, x: float, wanted: list[float]) -> None:
    np.testing.assert_allclose(wg.taylor(f, (x,), (1.0,), 4), wanted, atol=1e-7)


def test_powers_at_zero_with_different_exponents() -> None:
    found = wg.taylor(lambda x: x ** np.array([0.0, 1.0, 2.0, 7.0, 2.5]), (np.zeros(5),), (np.full(5, 2.0),), 3)
    wanted = [[1, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 4, 0, 0], [0, 0, 0, 0, np.inf]]
    np.testing.assert_array_equal(found, wanted)


# Errors


@pytest.mark.parametrize(
    ("primals", "tangents", "order", "error", "text"),
    [
        (
            (1.0,),
            (1.0,),
            -1,
            UsageError,
            "taylor: order=-1; a whole number, 0 or more, is needed. Pass the highest order.",
        ),
        ((1.0,), (1.0,), 1.5, UsageError, "taylor: order=1.5; a whole number, 0 or more, is needed. Pass the"),
        ((1.0,), (1.0,), True, UsageError, "taylor: order=True; a whole number, 0 or more, is needed. Pass the"),
        (
            (np.ones(2),),
            (1.0,),
            1,
            ShapeError,
            "taylor: a tangent of shape () for a primal of shape (2,); the same shape is needed. Build",
        ),
        ((1.0,), (1.0, 2.0), 1, ShapeError, "taylor: tangents of structure"),
        ((1,), (1.0,), 1, DtypeError, "taylor: the integer 1; a float or complex number is needed to differentiate."),
    ],
)
def test_errors(primals: Any, tangents: Any, order: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        wg.taylor(np.sin, primals, tangents, order)


def test_writes_into_memory_that_belongs_to_an_ndarray() -> None:
    memory = np.array([5.0, 1.0, 7.0])

    def program(x: Any) -> Any:
        y = wg.asarray(memory)
        y[1:] = x
        memory[0] = 100.0  # after it was written to, y has memory of its own
        return np.median(y * 1.0) + y[0]

    value, slope, _ = wg.taylor(program, (np.array([2.0, 3.0]),), (np.array([1.0, 2.0]),), 2)
    assert (value, slope) == (8.0, 2.0)
    kept = wg.taylor(lambda x: np.median(np.piecewise(x, [x > 0.5], [np.sin, np.cos])), (np.ones(3),), (np.ones(3),), 1)
    np.testing.assert_allclose(kept, [np.sin(1.0), np.cos(1.0)])


def test_values_that_escape() -> None:
    kept: list[Any] = []
    wg.taylor(lambda x: kept.append(x) or x, (1.0,), (1.0,), 1)
    text = (
        r"taylor\(test_values_that_escape.<locals>.<lambda>, File .*\): a value that escaped.*; values of a "
        r"transformation may be used only until it ends. Return it from the function."
    )
    with pytest.raises(EscapedValueError, match=text):
        kept[0] * 2


POWERS = {
    "a fraction": lambda v: v**2.5,
    "whole": lambda v: v ** np.array(3),
    "negative": lambda v: v**-2,
    "itself": lambda v: v**v,
    "np.power": lambda v: np.power(v, np.sin(v)),
    "np.float_power": lambda v: np.float_power(v, 0.5 * v + 1.0),
    "in a loop": lambda v: wg.fori_loop(0, 2, lambda _, y: y**1.5 + 0.1, v),
    "in a branch": lambda v: wg.cond(v > 1.0, lambda y: y**2.5, lambda y: y**y, v),
}


@pytest.mark.parametrize("function", POWERS.values(), ids=list(POWERS))
def test_powers_of_traced_values_have_the_series_of_those_at_hand(function):
    def series(x):
        return wg.taylor(function, (x,), (1.0,), 2)

    points, traced = np.array([0.5, 2.0]), wg.jit(series)
    wanted = np.array([wg.taylor(function, (x,), (1.0,), 3) for x in points])
    np.testing.assert_allclose([traced(x) for x in points], wanted[:, :3], rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(series))(points), wanted[:, :3].T, rtol=1e-12)
    np.testing.assert_allclose(wg.taylor(wg.jit(function), (2.0,), (1.0,), 2), wanted[1, :3], rtol=1e-12)
    last = wg.jit(wg.grad(lambda x: series(x)[2]))(2.0)
    np.testing.assert_allclose(last, 3 * wanted[1, 3], rtol=1e-9, atol=1e-12)


def test_a_power_that_varies_has_the_series_of_each_element():
    point, direction = np.array([1.0, 2.0, -1.0]), np.ones(3)
    found = wg.taylor(lambda v: v**v, (point,), (direction,), 4)
    alone = [wg.taylor(lambda v: v**v, (x,), (1.0,), 4) for x in (1.0, 2.0)]
    np.testing.assert_allclose(np.array(found)[:, :2], np.transpose(alone), rtol=1e-12)
    np.testing.assert_allclose(np.array(found)[:, 0], [1.0, 1.0, 1.0, 0.5, 1 / 3], rtol=1e-12)


def test_rules_are_looked_at_before_anything_else_of_the_library_was_used() -> None:
    program = (
        "import numpy as np, wengert as wg\n"
        "rule = wg.custom_rule(np.sin)\n"
        "rule.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * np.cos(x),))\n"
        "print(wg.taylor(rule, (0.5,), (1.0,), 2)[1])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert abs(float(found.stdout) - np.cos(0.5)) < 1e-15
