"""Gradients with respect to what a function closes over, in every mode; `GradOperation` and `Jvp`."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, GraphError, UsageError
from wengert.functional import GradOperation, Jvp
from wengert.support.function_contents import reach
from wengert.transforms.captured_gradients import parts_of

X = np.array([0.5, 0.7])


class Model:
    def __init__(self) -> None:
        self.layers = [{"w": wg.tensor([1.0, 2.0], requires_grad=True)}]
        self.bias = wg.tensor(0.5, requires_grad=True)

    def __call__(self, x: Any) -> Any:
        return np.sum(np.sin(self.layers[0]["w"] * x)) + self.bias * x[0]


def by_arguments(x: Any) -> tuple[Any, Any, Any]:
    """The gradients of a model by x, w and b, as arguments."""
    w, b = np.array([1.0, 2.0]), 0.5
    found = wg.grad(lambda x, w, b: np.sum(np.sin(w * x)) + b * x[0], argnums=(0, 1, 2))(x, w, b)
    return found[0], found[1], found[2]


def numbers(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, wg.Tensor) else value


MODES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda f: f,
    "jit": wg.jit,
    "vmap": lambda f: lambda x: wg.tree.map(lambda t: t[1], wg.vmap(f)(np.stack([2 * x, x]))),
    "jvp": lambda f: lambda x: wg.jvp(f, (x,), (np.ones_like(x),))[0],
    "vjp": lambda f: lambda x: wg.vjp(f, x)[0],
    "jit(vmap)": lambda f: lambda x: wg.tree.map(lambda t: t[1], wg.jit(wg.vmap(f))(np.stack([2 * x, x]))),
}


@together("inner", [lambda f: f, wg.jit, wg.checkpoint])
@together("mode", MODES.values())
def test_captured_gradients_are_those_of_arguments(mode: Any, inner: Any) -> None:
    model = Model()
    w, b = model.layers[0]["w"], model.bias
    expected = by_arguments(X)
    function = inner(lambda x: model(x))
    for _ in range(2):  # a function that has been traced before, too
        gx, (gw, gb) = mode(wg.grad(function, captured=[w, b]))(X)
        for found, right in zip((gx, gw, gb), expected, strict=True):
            np.testing.assert_allclose(numbers(found), right, rtol=1e-12)
    if inner is wg.checkpoint:
        return
    value, (gx, named) = mode(wg.value_and_grad(lambda x: model(x), captured=True))(X)
    assert list(named) == ["model.bias", "model.layers[0]['w']"]
    np.testing.assert_allclose(numbers(value), numbers(model(X)))
    np.testing.assert_allclose(numbers(named["model.layers[0]['w']"]), expected[1])
    assert w.grad is None


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_what_was_a_constant_of_a_jitted_function_has_a_gradient(mode: Any) -> None:
    model = Model()
    w, b = model.layers[0]["w"].requires_grad_(False), model.bias.requires_grad_(False)
    function = wg.jit(lambda x: model(x))
    for _ in range(3):  # the last calls are native code's alone
        value = function(X)
    gx, (gw, gb) = mode(wg.grad(function, captured=[w, b]))(X)
    for found, right in zip((gx, gw, gb), by_arguments(X), strict=True):
        np.testing.assert_allclose(numbers(found), right, rtol=1e-12)
    assert function(X) == value
    assert not w.requires_grad


def test_methods_and_attributes_have_their_names() -> None:
    model = Model()
    assert list(wg.grad(model.__call__, captured=True)(X)[1]) == ["self.bias", "self.layers[0]['w']"]


def test_second_order_mixes_arguments_and_what_is_captured() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True)

    def loss(x: Any) -> Any:
        return np.sum(np.sin(w * x))

    for wrap in (lambda f: f, wg.jit):
        mixed = wrap(wg.grad(lambda x: np.sum(wg.grad(loss, captured=[w])(x)[1][0]), captured=[w]))
        gx, (gw,) = mixed(X)
        values = np.array([1.0, 2.0])
        np.testing.assert_allclose(numbers(gx), np.cos(values * X) - X * values * np.sin(values * X))
        np.testing.assert_allclose(numbers(gw), -(X**2) * np.sin(values * X))


def test_traced_branches_and_loops() -> None:
    w = wg.tensor(1.5, requires_grad=True)

    def program(x: Any) -> Any:
        total = x * 0.0
        for _ in range(3):
            if total < 4.0:
                total = total + w * x
        return total

    expected = wg.grad(program, captured=[w])(2.0)
    found = wg.jit(wg.grad(program, captured=[w]))(2.0)
    assert [float(numbers(x)) for x in (found[0], found[1][0])] == [
        float(numbers(x)) for x in (expected[0], expected[1][0])
    ]
    assert float(numbers(expected[1][0])) == 4.0


def test_leaves_stand_for_what_they_did_afterwards_also_after_an_error() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True)

    def fails(x: Any) -> Any:
        raise ZeroDivisionError

    def writes(x: Any) -> Any:
        w[0] = x[0]
        return np.sum(w)

    for function, error in ((fails, ZeroDivisionError), (writes, GraphError)):
        with pytest.raises(error):
            wg.grad(function, captured=[w])(X)
        assert w.is_leaf
        assert w.requires_grad
        assert w.tolist() == [1.0, 2.0]
    plain = wg.tensor([1.0, 2.0])
    with pytest.raises(
        GraphError, match=r"grad: a write to captured\[0\], of shape \(2,\); what is differentiated must"
    ):
        wg.grad(lambda x: (plain.fill(0.0), np.sum(plain * x))[1], captured=[plain])(X)
    assert plain.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("captured", "text"),
    [
        (3, "grad: 3 in captured; a list of Tensors, or True, is needed"),
        ([1.0], "grad: 1.0 in captured; a list of Tensors, or True, is needed"),
        (True, "grad: captured=True for a function that captures no Tensor that requires grad"),
        ([wg.tensor(1.0)] * 2, "grad: a Tensor that is listed twice in captured; each once is needed"),
    ],
)
def test_errors(captured: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        wg.grad(lambda x: x * 1.0, captured=captured)(1.0)


def test_grad_operation() -> None:
    model = Model()
    weights = [model.layers[0]["w"], model.bias]
    expected = by_arguments(X)

    def close(found: Any, *right: Any) -> None:
        assert len(found) == len(right)
        for one, other in zip(found, right, strict=True):
            np.testing.assert_allclose(numbers(one), other, rtol=1e-12)

    for wrap in (lambda f: f, wg.jit):
        np.testing.assert_allclose(numbers(wrap(GradOperation()(model))(X)), expected[0])
        close(wrap(GradOperation(get_all=True)(lambda x, y: x * y))(3.0, 4.0), 4.0, 3.0)
        close(wrap(GradOperation(get_by_list=True)(model, weights))(X), *expected[1:])
        inputs, listed = wrap(GradOperation(get_all=True, get_by_list=True)(model, weights))(X)
        close(inputs, expected[0])
        close(listed, *expected[1:])
        found = wrap(GradOperation(sens_param=True)(lambda x: x**2))(X, np.array([1.0, 10.0]))
        np.testing.assert_allclose(numbers(found), 2 * X * [1.0, 10.0])
        found = wrap(GradOperation(sens_param=True)(lambda x: (x**2, x * 3.0)))(2.0, (1.0, 10.0))
        assert float(numbers(found)) == 34.0
    assert float(GradOperation()(GradOperation()(lambda x: x**3))(2.0)) == 12.0
    np.testing.assert_allclose(GradOperation()(lambda x: x**2)(X), 2 * X)  # the sum, as sensitivities of one
    text = (
        "GradOperation: get_by_list without weights; a list of Tensors, or an object with a method parameters, is "
        "needed. Pass the list after the function."
    )
    with pytest.raises(UsageError, match="^" + re.escape(text) + "$"):
        GradOperation(get_by_list=True)(lambda x: x)
    with pytest.raises(UsageError, match="GradOperation: no input to differentiate; one at least is needed"):
        GradOperation()(lambda: 1.0)()


@pytest.mark.parametrize("name", ["parameters", "trainable_params"])
def test_parameters_of_objects_are_found_by_their_method(name: str) -> None:
    class Scaled:
        def __init__(self) -> None:
            self.scale = wg.tensor(3.0)

        def __call__(self, x: Any) -> Any:
            return self.scale * x

    setattr(Scaled, name, lambda self: iter([self.scale]))
    inputs, found = GradOperation(get_all=True, get_by_list=True)(Scaled())(2.0)
    assert (inputs, [x.item() for x in found]) == ((3.0,), [2.0])


def test_jvp_operation() -> None:
    assert Jvp(lambda x: x**3)(2.0, 1.0) == (8.0, 12.0)
    value, tangent = Jvp(lambda x, y: x * y)((3.0, 4.0), (1.0, 10.0))
    assert (value, tangent) == (12.0, 34.0)
    rule = wg.custom_rule(lambda x: x * 2.0)
    rule.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 2.0,))
    assert Jvp(rule)(3.0, 1.0) == (6.0, 2.0)  # from the reverse rule alone
    assert wg.grad(lambda x: Jvp(lambda y: y**3)(x, 1.0)[1])(2.0) == 12.0


def test_integers_among_what_is_captured_are_named() -> None:
    counts, scale = wg.tensor([1, 2]), wg.tensor([1.0, 2.0])
    with pytest.raises(DtypeError) as error:
        wg.grad(lambda x: np.sum(counts * scale * x), captured=[scale, counts])(1.0)
    assert str(error.value) == (
        "grad: dtype int64 at captured[1]; a float or complex dtype is needed to differentiate. "
        "Convert it with .astype(float)."
    )
    assert wg.grad(lambda x: np.sum(counts * scale * x), captured=[scale])(1.0)[0] == 5.0


def test_captured_tensors_are_looked_for_in_what_users_wrote_alone() -> None:
    w = wg.tensor(2.0, requires_grad=True)
    layers = [w] * 20
    found = [value for _, value in reach([("", wg.grad(wg.grad(lambda x: x * layers[0])))], parts_of, itemgetter(1))]
    assert any(value is w for value in found)
    assert len(found) < 20  # the tables of this library are thousands


def test_captured_tensors_are_found_in_jitted_functions_and_defaults() -> None:
    value = np.array([1.0, 2.0])
    w, model = wg.tensor(value, requires_grad=True), Model()
    jitted = wg.jit(lambda x: np.sum((w * x) ** 2))

    def with_defaults(x: Any, s: Any = w, *, k: Any = model.bias) -> Any:
        return np.sum(s * x) * k

    for function, want in (
        (jitted, {"w": 2 * X**2 * value}),
        (lambda x: jitted(x) * model.bias, {"w": X**2 * value, "model.bias": np.sum((value * X) ** 2)}),
        (wg.checkpoint(wg.jit(model.__call__)), {"self.bias": X[0]}),
        (with_defaults, {"s": 0.5 * X, "k": np.sum(value * X)}),
    ):
        found = wg.grad(function, captured=True)(X)[1]
        for name, slope in want.items():
            np.testing.assert_allclose(found[name].detach().numpy(), slope, rtol=1e-12)
