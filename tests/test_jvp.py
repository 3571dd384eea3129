"""Tests of forward mode: `jvp`, `linearize`, `hvp`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.traces.dual import Dual

X, Y = np.array([0.5, 1.5, -2.0]), np.array([1.0, -0.25, 0.75])
T, U = np.array([1.0, -0.5, 0.25]), np.array([-2.0, 1.0, 0.5])


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class State:
    position: Any
    speed: Any


# Values and containers


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (2.0, float),
        (np.float32(2.0), np.float32),
        (np.array(2.0), np.float64),
        (np.array([2.0]), np.ndarray),
        (wg.tensor([2.0]), wg.Tensor),
        (1j, complex),
    ],
)
def test_results_have_the_type_of_the_arguments(given: Any, kind: type) -> None:
    value, tangent = wg.jvp(lambda x: x * x, (given,), (given,))
    assert type(value) is kind
    assert type(tangent) is kind
    np.testing.assert_allclose(np.asarray(tangent), 2 * np.asarray(value))


def test_tangents_of_several_primals_add_up() -> None:
    value, tangent = wg.jvp(lambda x, y: x * np.sin(y), (X, Y), (T, U))
    np.testing.assert_array_equal(value, X * np.sin(Y))
    np.testing.assert_allclose(tangent, T * np.sin(Y) + X * np.cos(Y) * U)


def test_none_is_a_zero_tangent() -> None:
    seen: list[type] = []

    def f(x: Any, y: Any) -> Any:
        seen.append(type(y))
        return x * y

    _, tangent = wg.jvp(f, (X, Y), (T, None))
    np.testing.assert_array_equal(tangent, T * Y)
    assert seen == [np.ndarray]
    np.testing.assert_array_equal(wg.jvp(lambda n, x: x**n, (3, X), (None, T))[1], 3 * X**2 * T)


@pytest.mark.parametrize("make", [Pair, State, lambda a, b: {"a": a, "b": [b]}, lambda a, b: [a, (b,)]])
def test_containers(make: Callable[[Any, Any], Any]) -> None:
    def f(tree: Any) -> Any:
        leaves = list(vars(tree).values()) if isinstance(tree, State) else tree
        leaves = list(leaves.values()) if isinstance(leaves, dict) else leaves
        first, second = leaves
        second = second[0] if isinstance(second, list | tuple) else second
        return make(first * second, first + second)

    value, tangent = wg.jvp(f, (make(X, Y),), (make(T, U),))
    assert repr(value) == repr(make(X * Y, X + Y))
    assert repr(tangent) == repr(make(T * Y + X * U, T + U))


def test_auxiliary_results_are_values() -> None:
    value, tangent, aux = wg.jvp(lambda x: (x * 2, {"seen": x + 1, "name": "f"}), (3.0,), (1.0,), has_aux=True)
    assert (value, tangent, aux) == (6.0, 2.0, {"seen": 4.0, "name": "f"})


def test_constant_results_have_zero_tangents() -> None:
    value, tangent = wg.jvp(
        lambda x: (x > 1, np.argmax(x), wg.asarray(5.0), x.shape[0], wg.stop_gradient(x)), (X,), (T,)
    )
    np.testing.assert_array_equal(value[0], X > 1)
    assert [np.sum(t) for t in tangent] == [0, 0, 0, 0, 0]
    np.testing.assert_array_equal(tangent[4], np.zeros(3))


def test_integer_tangents_are_converted() -> None:
    assert wg.jvp(lambda x: x * x, (3.0,), (2,)) == (9.0, 12.0)


def test_single_precision_stays_single() -> None:
    value, tangent = wg.jvp(lambda x: np.sin(x) * 2.0, (X.astype(np.float32),), (T,))
    assert value.dtype == tangent.dtype == np.float32


def test_evaluates_once() -> None:
    calls: list[int] = []
    wg.jvp(lambda x: calls.append(1) or x * 2, (X,), (T,))
    assert calls == [1]


def test_control_flow_looks_at_values() -> None:
    assert wg.jvp(lambda x: x * 3 if x > 0 else -x, (-2.0,), (1.0,)) == (2.0, -1.0)


# Writes


def test_writes_carry_tangents_along() -> None:
    def f(x: Any, y: Any) -> Any:
        buffer = wg.tensor(np.zeros((2, 3)))
        buffer[0] = x
        buffer[1] = buffer[0] * y
        row = buffer[0]
        row *= 2.0
        buffer[:, 1] = 7.0
        buffer[1, [0, 0]] = y[1:]
        return buffer

    value, tangent = wg.jvp(f, (X, Y), (T, U))
    want = np.array([2 * T, T * Y + X * U])
    want[:, 1] = 0.0
    want[1, 0] = U[2]
    np.testing.assert_allclose(tangent, want)
    np.testing.assert_array_equal(value, f(wg.asarray(X), wg.asarray(Y)).numpy())


def test_arguments_and_tangents_are_not_written_to() -> None:
    x, t = X.copy(), T.copy()

    def f(x: Any) -> Any:
        x *= 2
        x[0] = 0.0
        return x

    value, tangent = wg.jvp(f, (x,), (t,))
    np.testing.assert_array_equal(value, [0.0, *2 * X[1:]])
    np.testing.assert_array_equal(tangent, [0.0, *2 * T[1:]])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(t, T)


def test_a_tangent_that_two_values_share_is_not_written_to() -> None:
    def f(x: Any) -> Any:
        kept = x + 1.0  # its tangent is that of x
        moved = x.reshape(3)
        moved[0] = 5.0
        return kept, x

    _, (kept, x) = wg.jvp(f, (X,), (T,))
    np.testing.assert_array_equal(kept, T)
    np.testing.assert_array_equal(x, [0.0, *T[1:]])


def test_constants_that_receive_a_differentiated_part() -> None:
    constant = wg.tensor([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        local = np.copy(constant)
        view = local[1:]
        local[1] = x[0] ** 2
        return local * view[0]

    _, tangent = wg.jvp(f, (X,), (T,))
    square, moved = X[0] ** 2, 2 * X[0] * T[0]
    np.testing.assert_allclose(tangent, [moved, 2 * square * moved, 3 * moved])
    np.testing.assert_array_equal(constant.numpy(), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("dtype", [int, bool])
def test_what_is_rounded_as_it_is_written_has_no_tangent(dtype: Any) -> None:
    def f(x: Any) -> Any:
        whole = wg.numpy.zeros(4, dtype)
        view = whole[1:]
        whole[1] = x[0]
        view[1:] = x[:2]
        return np.stack([view * x, (whole * np.stack([x[0], *x]))[1:]])

    _, tangent = wg.jvp(f, (X,), (T,))
    view = np.array([X[0], *X[:2]]).astype(dtype)
    np.testing.assert_allclose(tangent, [view * T, view * T])
    hessian = wg.jit(wg.hessian(lambda x: f(x).sum()))
    np.testing.assert_array_equal(hessian(X), np.zeros((3, 3)))


# Errors


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: wg.jvp(np.sin, (X,), (T, T)),
            ShapeError,
            "jvp: 2 tangents for 1 primals; one for each primal is needed. Build the tangents like the primals.",
        ),
        (
            lambda: wg.jvp(np.sin, X, (T,)),
            UsageError,
            "jvp: primals of type ndarray; a tuple with an entry for each argument of the function is needed. "
            "Write jvp(fun, (x,), (direction,)) for a function of one argument.",
        ),
        (
            lambda: wg.taylor(np.sin, (1.0,), 1.0, 2),
            UsageError,
            "taylor: tangents of type float; a tuple with an entry for each argument of the function is needed. "
            "Write taylor(fun, (x,), (direction,)) for a function of one argument.",
        ),
        (
            lambda: wg.jvp(np.sin, (X,), (T[:2],)),
            ShapeError,
            "jvp: a tangent of shape (2,) for a primal of shape (3,); the same shape is needed. "
            "Build the tangents like the primals.",
        ),
        (
            lambda: wg.jvp(lambda d: d["a"], ({"a": X},), ([T],)),
            ShapeError,
            "jvp: a tangent of structure ",
        ),
        (
            lambda: wg.jvp(np.sin, (np.arange(3),), (T,)),
            DtypeError,
            "jvp: dtype int64; a float or complex dtype is needed to differentiate. Convert it with .astype(float).",
        ),
        (lambda: wg.jvp(np.sin, ("x",), (1.0,)), DtypeError, "jvp: an argument of type str; "),
        (
            lambda: wg.jvp(lambda x: x, (X,), (T,), has_aux=True),
            UsageError,
            "jvp: has_aux=True and a function that returned a Tensor; a pair (output, auxiliary) is needed. "
            "Return a tuple of two.",
        ),
        (
            lambda: wg.jvp(lambda x: float(x), (1.0,), (1.0,)),
            GraphError,
            "float: a Tensor that a transformation is differentiating; a plain value is needed, because a Python "
            "number would silently lose the gradient. Leave float() out, and compute with the Tensor itself, or apply "
            "wengert.stop_gradient first.",
        ),
        (
            lambda: wg.jvp(lambda x: np.asarray(x), (X,), (T,)),
            GraphError,
            "asarray: a Tensor of shape (3,) that is being differentiated; a plain value is needed, ",
        ),
        (
            lambda: wg.jvp(lambda x: x.requires_grad_(), (X,), (T,)),
            GraphError,
            "requires_grad_: a Tensor of jvp(",
        ),
    ],
)
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_errors_of_the_function_end_the_trace() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        wg.jvp(f, (X,), (T,))
    with pytest.raises(GraphError, match="a value that escaped"):
        _ = kept[0] + 1


# Captured values and the tape


def test_the_tape_records_primal_and_tangent() -> None:
    weight = wg.tensor(3.0, requires_grad=True)
    value, tangent = wg.jvp(lambda x: weight * weight * x, (wg.tensor(2.0),), (wg.tensor(1.0),))
    (value + tangent).backward()
    assert weight.grad is not None
    assert weight.grad.item() == 2 * 3.0 * 2.0 + 2 * 3.0
    x = wg.tensor(2.0, requires_grad=True)
    wg.jvp(lambda x: x**3, (x,), (wg.tensor(1.0),))[1].backward()
    assert x.grad is not None
    assert x.grad.item() == 12.0


def test_tangents_can_be_differentiated_too() -> None:
    assert wg.grad(lambda t: wg.jvp(lambda x: x**3, (2.0,), (t,))[1])(1.0) == 12.0


# linearize and hvp


def test_linearize_evaluates_once_and_can_be_applied_again() -> None:
    calls: list[int] = []

    def f(x: Any, y: Any) -> Any:
        calls.append(1)
        return {"product": x * y, "sum": np.sum(x**2)}

    value, push = wg.linearize(f, X, Y)
    np.testing.assert_array_equal(value["product"], X * Y)
    for t, u in ((T, U), (U, T), (0 * T, U)):
        moved = push(t, u)
        np.testing.assert_allclose(moved["product"], t * Y + X * u)
        np.testing.assert_allclose(moved["sum"], 2 * X @ t)
    assert calls == [1]


@pytest.mark.parametrize(
    ("tangents", "text"),
    [
        ((1.0,), r"a tangent of shape \(\) for a primal of shape \(3,\); the same shape is needed"),
        ((X, X), r"2 tangents for 1 primals; one for each primal is needed"),
        (([X],), r"a tangent of structure \[\*\]; that of its primal, one array, is needed"),
        ((X * 1j,), r"a tangent of dtype complex128 for a primal of dtype float64; a real tangent is needed"),
    ],
    ids=["shape", "number", "containers", "dtype"],
)
def test_errors_about_tangents_of_linearize_speak_of_tangents(tangents: Any, text: str) -> None:
    _, push = wg.linearize(np.sin, X)
    with pytest.raises((ShapeError, DtypeError), match="^linearize: " + text):
        push(*tangents)
    np.testing.assert_allclose(push(X), np.cos(X) * X)


def test_linearize_does_not_see_later_writes() -> None:
    x = X.copy()
    _, push = wg.linearize(lambda x: x * x, x)
    x[:] = 0.0
    np.testing.assert_array_equal(push(T), 2 * X * T)


def test_linearize_of_constants() -> None:
    value, push = wg.linearize(lambda x: (x, wg.asarray(5.0)), X)
    assert value[1] == 5.0
    np.testing.assert_array_equal(push(T)[0], T)
    assert push(T)[1] == 0.0


def test_linearize_checks_tangents() -> None:
    _, push = wg.linearize(np.sin, X)
    with pytest.raises(ShapeError):
        push(T[:2])
    with pytest.raises(ShapeError):
        push(T, T)


@pytest.mark.parametrize("wrap", [lambda *xs: xs, lambda *xs: list(xs)])
def test_hvp_of_several_arguments(wrap: Callable[..., Any]) -> None:
    got = wg.hvp(lambda x, y: np.sum(x**3 * y), wrap(X, Y), wrap(T, U))
    np.testing.assert_allclose(got[0], 6 * X * Y * T + 3 * X**2 * U)
    np.testing.assert_allclose(got[1], 3 * X**2 * T)


def test_hvp_of_one_argument_and_of_containers() -> None:
    np.testing.assert_allclose(wg.hvp(lambda x: np.sum(x**3), X, T), 6 * X * T)
    got = wg.hvp(lambda tree: np.sum(tree["x"] ** 2 * tree["y"]), {"x": X, "y": Y}, {"x": T, "y": U})
    np.testing.assert_allclose(got["x"], 2 * Y * T + 2 * X * U)
    np.testing.assert_allclose(got["y"], 2 * X * T)
    pair = wg.hvp(lambda pair: np.sum(pair.left * pair.right), Pair(X, Y), Pair(T, U))
    np.testing.assert_array_equal(pair.left, U)


def test_hvp_needs_a_scalar() -> None:
    with pytest.raises(ShapeError, match=r"^hvp: a function that returned shape \(3,\); a scalar"):
        wg.hvp(np.sin, X, T)


def test_linear_functions_of_one_array_do_without_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    x, t = np.arange(6.0).reshape(2, 3), np.cos(np.arange(6.0)).reshape(2, 3)

    def refused(*_: Any) -> Any:
        raise AssertionError

    functions: list[Callable[[Any], Any]] = [
        lambda x: x.sum(),
        lambda x: x.sum(0),
        lambda x: np.cumsum(x, 1),
        lambda x: x.T,
        lambda x: x.reshape(3, 2),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(Dual, "process", refused)
        for f in functions:
            value, tangent = wg.jvp(f, (x,), (t,))
            np.testing.assert_array_equal(value, f(x))
            np.testing.assert_array_equal(tangent, f(t))

    def written(x: Any) -> Any:
        x = x * 1.0
        y = x.reshape(3, 2)
        y[0] = y[1] ** 2
        return x + x.T.reshape(2, 3)

    wanted = np.einsum("ijkl,kl->ij", wg.jacrev(written)(x), t)
    np.testing.assert_allclose(wg.jvp(written, (x,), (t,))[1], wanted)
