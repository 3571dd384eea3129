"""grad, value_and_grad, elementwise_grad, vjp, stop_gradient: values, containers, nesting, captures, escapes."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert.errors import DtypeError, EscapedValueError, GraphError, ShapeError, UsageError


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Model:
    weights: Any
    bias: Any


@dataclass(frozen=True, slots=True)
class Frozen:
    scale: Any


X = np.array([0.5, -1.5, 2.0])


# What you pass is what you get


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (2.0, float),
        (np.float64(2.0), np.float64),
        (np.float32(2.0), np.float32),
        (np.array(2.0), np.ndarray),
        (np.array([2.0, 3.0]), np.ndarray),
        (np.array([2.0, 3.0], np.float32), np.ndarray),
        (wg.tensor(2.0), wg.Tensor),
        (wg.tensor([2.0, 3.0]), wg.Tensor),
    ],
)
def test_results_have_the_type_of_the_arguments(given: Any, kind: type) -> None:
    def f(x: Any) -> Any:
        return (x * x).sum() if np.ndim(x) else x * x

    gradient = wg.grad(f)(given)
    assert type(gradient) is kind
    if kind is not float:
        assert gradient.dtype == given.dtype
        assert gradient.shape == given.shape
    value, again = wg.value_and_grad(f)(given)
    assert type(again) is kind
    assert type(value) is (wg.Tensor if kind is wg.Tensor else float if kind is float else type(np.square(given).sum()))
    slopes = wg.elementwise_grad(lambda x: x**3)(given)
    assert type(slopes) is kind
    output, pullback = wg.vjp(lambda x: x * 2, given)
    (ct,) = pullback(output)
    assert type(ct) is kind


def test_values_are_right() -> None:
    value, gradient = wg.value_and_grad(lambda x: np.sum(np.sin(x) * x))(X)
    assert value == np.sum(np.sin(X) * X)
    np.testing.assert_allclose(gradient, np.cos(X) * X + np.sin(X))
    np.testing.assert_allclose(wg.elementwise_grad(np.tanh)(X), 1 - np.tanh(X) ** 2)


@pytest.mark.parametrize(
    "container",
    [
        lambda a, b: {"a": a, "b": b},
        lambda a, b: [a, b],
        lambda a, b: (a, b),
        Pair,
        Model,
        lambda a, b: {"deep": [Pair(a, {"x": (b,)})]},
        lambda a, b: OrderedDict(z=a, y=b),
        lambda a, b: defaultdict(float, {1: a, 2: b}),
        lambda a, b: [Frozen(a), None, (Frozen(scale=b), [])],
        lambda a, b: Model(weights=Pair(a, None), bias={"b": [b]}),
    ],
)
def test_containers(container: Any) -> None:
    from wengert.core.containers.tree_leaves import flatten

    tree = container(X, 3.0)

    def f(t: Any) -> Any:
        (a, b), structure = flatten(t)
        assert structure == flatten(tree)[1]
        return np.sum(a * a) * b

    leaves, structure = flatten(wg.grad(f)(tree))
    assert structure == flatten(tree)[1]
    assert type(wg.grad(f)(tree)) is type(tree)
    np.testing.assert_array_equal(leaves[0], 2 * X * 3)
    assert leaves[1] == np.sum(X * X)
    assert type(leaves[1]) is float


def test_containers_of_results() -> None:
    output, pullback = wg.vjp(lambda m: {"w": m.weights * 2, "rest": (m.bias, wg.asarray(5.0))}, Model(X, 1.0))
    np.testing.assert_array_equal(output["w"], 2 * X)
    assert output["rest"] == (1.0, 5.0)
    (ct,) = pullback({"w": np.ones(3), "rest": (10.0, 100.0)})
    assert type(ct) is Model
    np.testing.assert_array_equal(ct.weights, [2.0, 2.0, 2.0])
    assert ct.bias == 10.0


def test_structure_does_not_depend_on_values() -> None:
    def f(x: Any, y: Any) -> Any:
        return x if x > 0 else y * 0 + x

    for x in (1.0, -1.0):
        gradients = wg.grad(f, argnums=(0, 1))(x, 2.0)
        assert gradients == (1.0, 0.0)
        assert [type(g) for g in gradients] == [float, float]


def test_mixed_arguments() -> None:
    gradient, other = wg.grad(lambda x, t: (x * t).sum(), argnums=(0, 1))(X, wg.tensor(X))
    assert type(gradient) is np.ndarray
    assert type(other) is wg.Tensor


# argnums, has_aux, holomorphic


def test_argnums() -> None:
    def f(x: Any, y: Any, z: Any = 1.0) -> Any:
        return x * y**2 * z

    assert wg.grad(f)(2.0, 3.0) == 9.0
    assert wg.grad(f, argnums=1)(2.0, 3.0) == 12.0
    assert wg.grad(f, argnums=-1)(2.0, 3.0, 5.0) == 18.0
    assert wg.grad(f, argnums=(1, 0))(2.0, 3.0) == (12.0, 9.0)
    assert wg.grad(f, argnums=[0])(2.0, 3.0) == (9.0,)
    assert wg.grad(f)(2.0, 3.0, z=10.0) == 90.0


@pytest.mark.parametrize(
    "transform", [wg.grad, wg.value_and_grad, wg.elementwise_grad, wg.jacobian, wg.jacfwd, wg.jacrev, wg.hessian]
)
@pytest.mark.parametrize("point", [2.0, X, wg.tensor(X), "x", None])
def test_points_in_the_place_of_argnums_are_refused_before_the_call(transform: Any, point: Any) -> None:
    with pytest.raises(UsageError, match=rf"{transform.__name__}\(f\) is a function, to be called with arguments"):
        transform(np.sum, point)


@pytest.mark.parametrize("transform", [wg.grad, wg.value_and_grad, wg.elementwise_grad])
def test_argnums_must_name_positional_arguments(transform: Any) -> None:
    with pytest.raises(UsageError) as error:
        transform(lambda x: x, argnums=1)(2.0)
    assert str(error.value) == (
        f"{transform.__name__}: argnums=1 with 1 positional arguments; positions of arguments that were passed are "
        "needed. Pass the differentiated arguments by position."
    )
    with pytest.raises(UsageError) as error:
        transform(lambda x, y: x, argnums=(0, -2))(2.0, 1.0)
    assert str(error.value) == (
        f"{transform.__name__}: argnums=(0, -2); each position once is needed. Leave out the repeated one."
    )
    for name in ("x", (0, "x"), None):
        with pytest.raises(UsageError) as error:
            transform(lambda x: x, argnums=name)(2.0)
        assert str(error.value) == (
            f"{transform.__name__}: argnums={name!r}; the position of an argument, or several of them, is needed. "
            f"Pass argnums=0 or argnums=(0, 1), for instance; {transform.__name__}(f) is a function, to be called with "
            "arguments."
        )
    with pytest.raises(UsageError):
        transform(lambda x: x)(x=2.0)


def test_auxiliary_results() -> None:
    def f(x: Any) -> Any:
        y = x * x
        return y.sum(), {"y": y, "text": "kept", "n": 3}

    gradient, aux = wg.grad(f, has_aux=True)(X)
    np.testing.assert_array_equal(gradient, 2 * X)
    np.testing.assert_array_equal(aux["y"], X * X)
    assert type(aux["y"]) is np.ndarray
    assert (aux["text"], aux["n"]) == ("kept", 3)
    (value, aux), gradient = wg.value_and_grad(f, has_aux=True)(wg.tensor(X))
    assert type(value) is type(aux["y"]) is wg.Tensor
    _, pullback, aux = wg.vjp(f, X, has_aux=True)
    np.testing.assert_array_equal(aux["y"], X * X)
    np.testing.assert_array_equal(pullback(1.0)[0], 2 * X)


@pytest.mark.parametrize("result", [lambda x: x, lambda x: (x, x, x), lambda x: [x, x]])
def test_auxiliary_results_need_a_pair(result: Any) -> None:
    with pytest.raises(UsageError) as error:
        wg.grad(result, has_aux=True)(1.0)
    kind = type(result(1.0)).__name__.replace("float", "Tensor")
    assert str(error.value) == (
        f"grad: has_aux=True and a function that returned a {kind}; a pair (output, auxiliary) is needed. "
        "Return a tuple of two."
    )


def test_auxiliary_results_of_inner_transformations_are_differentiated() -> None:
    def inner(x: Any) -> Any:
        return x**2, x**3

    assert wg.grad(lambda x: wg.grad(inner, has_aux=True)(x)[1])(2.0) == 12.0
    assert wg.grad(lambda x: wg.grad(inner, has_aux=True)(x)[0])(2.0) == 2.0


def test_holomorphic() -> None:
    z = 1.0 + 2.0j
    assert wg.grad(lambda z: z**3, holomorphic=True)(z) == pytest.approx(3 * z**2)
    assert type(wg.grad(lambda z: z * z, holomorphic=True)(z)) is complex
    second = wg.grad(wg.grad(lambda z: np.exp(2 * z), holomorphic=True), holomorphic=True)(z)
    assert second == pytest.approx(4 * np.exp(2 * z))
    with pytest.raises(DtypeError) as error:
        wg.grad(lambda z: z * z)(z)
    assert str(error.value) == (
        "grad: a function that returned dtype complex128 with holomorphic=False; a real result is needed. "
        "Pass holomorphic=True for a complex differentiable function."
    )
    with pytest.raises(DtypeError) as error:
        wg.grad(lambda x: x * x, holomorphic=True)(1.0)
    assert str(error.value) == (
        "grad: an argument of dtype float64 with holomorphic=True; a complex one is needed. "
        "Convert it with .astype(complex)."
    )
    with pytest.raises(DtypeError) as error:
        wg.grad(lambda z: z.real, holomorphic=True)(z)
    assert str(error.value) == (
        "grad: a function that returned dtype float64 with holomorphic=True; a complex result is needed. "
        "Leave holomorphic out, or pass complex arguments."
    )


# What cannot be differentiated


@pytest.mark.parametrize("argument", [1, True, np.array([1, 2]), np.int64(3), wg.tensor([1])])
def test_arguments_need_a_dtype_with_derivatives(argument: Any) -> None:
    with pytest.raises(DtypeError, match=r"^grad: "):
        wg.grad(lambda x: x * 1.0)(argument)


def test_error_about_integers() -> None:
    with pytest.raises(DtypeError) as error:
        wg.grad(lambda x: x * 1.0)(np.array([1, 2]))
    assert str(error.value) == (
        "grad: dtype int64; a float or complex dtype is needed to differentiate. Convert it with .astype(float)."
    )
    with pytest.raises(DtypeError) as error:
        wg.grad(lambda x: x["a"] * 1.0)({"a": 3})
    assert str(error.value) == (
        "grad: the integer 3 at x['a']; a float or complex number is needed to differentiate. "
        "Write 3.0, or leave it out of argnums."
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: wg.jvp(f, (2.0, 3), (1.0, 0)), "jvp: the integer 3; .* Write 3.0, or give None for its tangent."),
        (lambda f: wg.vjp(f, 2.0, 3), "vjp: the integer 3; .* Write 3.0, or fix it in a lambda around the function."),
        (lambda f: wg.vjp(f, 2.0, "n"), "vjp: an argument of type str; .* Fix it in a lambda around the function."),
        (lambda f: wg.linearize(f, 2.0, 3), "linearize: the integer 3; .* or fix it in a lambda around the function."),
        (lambda f: wg.hvp(f, (2.0, 3), (1.0, 0)), "hvp: the integer 3; .* or fix it in a lambda around the function."),
        (lambda f: wg.taylor(f, (2.0, 3), (1.0, 0), 2), "taylor: the integer 3; .* or fix it in a lambda around the"),
    ],
)
def test_errors_say_how_an_argument_is_left_out_where_there_are_no_argnums(call: Any, text: str) -> None:
    with pytest.raises(DtypeError, match=f"^{text}"):
        call(lambda x, n: x**n)
    assert wg.jvp(lambda x, n: x**n, (2.0, 3), (1.0, None)) == (8.0, 12.0)


@pytest.mark.parametrize("argument", ["text", object(), {1.0}])
def test_arguments_need_a_suitable_type(argument: Any) -> None:
    with pytest.raises(DtypeError) as error:
        wg.grad(lambda x: 1.0)(argument)
    assert str(error.value) == (
        f"grad: an argument of type {type(argument).__name__}; floats, arrays or Tensors (or containers of them) are "
        "needed to differentiate. Leave it out of argnums."
    )


def test_arguments_of_classes_that_are_no_containers_say_how_they_become_some() -> None:
    class Line:
        slope = 1.0

    with pytest.raises(DtypeError) as error:
        wg.grad(lambda line: line.slope)(Line())
    assert str(error.value) == (
        "grad: an argument of type Line; floats, arrays or Tensors (or containers of them) are needed to "
        "differentiate. Make its class a container by wengert.tree.register, or leave it out of argnums."
    )


def test_results_must_be_scalars() -> None:
    with pytest.raises(ShapeError) as error:
        wg.grad(lambda x: x * 2)(X)
    assert str(error.value) == (
        "grad: a function that returned shape (3,); a scalar, of shape (), is needed. "
        "Reduce it, for instance with .sum(), or use wengert.elementwise_grad, wengert.vjp or wengert.jacobian."
    )
    with pytest.raises(ShapeError) as error:
        wg.value_and_grad(lambda x: (x.sum(), x))(X)
    assert str(error.value) == (
        "value_and_grad: a function that returned a container of 2 values; one array is needed. "
        "Return further results through has_aux=True, or use wengert.vjp."
    )
    with pytest.raises(ShapeError, match=r"^elementwise_grad: a function that returned a container"):
        wg.elementwise_grad(lambda x: [x, x])(X)


def test_functions_that_do_not_depend_on_their_argument() -> None:
    assert wg.grad(lambda x: wg.asarray(5.0))(2.0) == 0.0
    np.testing.assert_array_equal(wg.grad(lambda x: (x > 0).sum() * 1.0)(X), np.zeros(3))
    np.testing.assert_array_equal(wg.grad(lambda x: np.floor(x).sum())(X), np.zeros(3))
    np.testing.assert_array_equal(wg.grad(wg.jit(lambda x: np.floor(x).sum()))(X), np.zeros(3))


def test_errors_of_the_function_pass_through_and_end_the_trace() -> None:
    leaked: list[Any] = []

    def f(x: Any) -> Any:
        leaked.append(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        wg.grad(f)(1.0)
    with pytest.raises(EscapedValueError):
        leaked[0] * 2


# vjp


def test_pullbacks_can_be_called_again() -> None:
    output, pullback = wg.vjp(lambda x, y: x * y, X, 2.0)
    np.testing.assert_array_equal(output, 2 * X)
    for _ in range(3):
        ct_x, ct_y = pullback(np.array([1.0, 10.0, 100.0]))
        np.testing.assert_array_equal(ct_x, [2.0, 20.0, 200.0])
        assert ct_y == X @ [1.0, 10.0, 100.0]


def test_pullbacks_do_not_see_later_writes() -> None:
    x = X.copy()
    output, pullback = wg.vjp(lambda x: np.exp(x) * x, x)
    expected = pullback(np.ones(3))[0].copy()
    x[:] = 0.0
    output[:] = 0.0
    np.testing.assert_array_equal(pullback(np.ones(3))[0], expected)
    t = wg.tensor(X)
    output, pullback, aux = wg.vjp(lambda x: (np.exp(x) * x, np.exp(x)), t, has_aux=True)
    t[0] = output[0] = aux[0] = 0.0
    np.testing.assert_array_equal(pullback(np.ones(3))[0].numpy(), expected)


def test_pullbacks_are_linear_functions_that_can_be_differentiated() -> None:
    def f(x: Any, ct: Any) -> Any:
        _, pullback = wg.vjp(lambda x: np.sin(x), x)
        return (pullback(ct)[0] * np.array([1.0, 2.0, 3.0])).sum()

    weights, ct = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, -1.0])
    by_x, by_ct = wg.grad(f, argnums=(0, 1))(X, ct)
    np.testing.assert_allclose(by_x, -np.sin(X) * ct * weights)
    np.testing.assert_allclose(by_ct, np.cos(X) * weights)


def test_cotangents_must_be_like_the_output() -> None:
    _, pullback = wg.vjp(lambda x: (x, x), X)
    with pytest.raises(ShapeError, match=r"^vjp: a cotangent of structure one array; "):
        pullback(np.ones(3))
    _, pullback = wg.vjp(lambda x: x * 2, X)
    with pytest.raises(ShapeError) as error:
        pullback(np.ones(2))
    assert str(error.value) == (
        "vjp: a cotangent of shape (2,) for an output of shape (3,); the same shape is needed. "
        "Broadcast or reshape the cotangent."
    )
    with pytest.raises(ShapeError, match="that of the output, one array, is needed"):
        pullback([np.ones(3)])


def test_integer_cotangents_and_integer_outputs() -> None:
    output, pullback = wg.vjp(lambda x: (x * 2, np.argmax(x)), X)
    assert output[1] == 2
    np.testing.assert_array_equal(pullback((np.array([1, 0, 1]), 0))[0], [2.0, 0.0, 2.0])


# stop_gradient


def test_stop_gradient_cuts_at_every_order() -> None:
    f = lambda x: x * wg.stop_gradient(x**2)
    assert wg.grad(f)(3.0) == 9.0
    assert wg.grad(wg.grad(f))(3.0) == 0.0
    assert wg.grad(lambda t: wg.stop_gradient({"a": t})["a"] * t)(3.0) == 3.0
    assert wg.stop_gradient(5.0) == 5.0
    assert wg.stop_gradient([X, "text"])[0] is X


def test_stop_gradient_of_an_outer_value() -> None:
    def outer(x: Any) -> Any:
        return wg.grad(lambda y: wg.stop_gradient(x) * y * x)(x)

    assert wg.grad(outer)(3.0) == 3.0


def test_stop_gradient_on_the_tape() -> None:
    x = wg.tensor([2.0], requires_grad=True)
    kept = wg.stop_gradient(x)
    assert not kept.requires_grad
    kept[0] = 50.0
    assert x.tolist() == [2.0]


# Nesting


def test_nesting_to_any_order() -> None:
    f, expected = (lambda x: np.exp(2 * x) * x), 0.7
    slopes = []
    for order in range(1, 7):
        f = wg.grad(f)
        value = f(expected)
        slopes.append(value)
        exact = 2**order * np.exp(2 * expected) * expected + order * 2 ** (order - 1) * np.exp(2 * expected)
        assert value == pytest.approx(exact, rel=1e-12)
    assert len(slopes) == 6


@pytest.mark.parametrize("x", [0.7, np.float64(0.7), wg.tensor(0.7)])
def test_perturbations_are_not_confused(x: Any) -> None:
    d = wg.grad
    assert float(d(lambda x: x * d(lambda y: x + y)(1.0))(x)) == pytest.approx(1.0)
    assert float(d(lambda x: x * d(lambda y: x * y)(2.0))(x)) == pytest.approx(1.4)
    assert float(d(lambda x: x * d(lambda y: y * d(lambda z: x * y * z)(1.0))(x))(x)) == pytest.approx(6 * 0.7**2)
    assert float(d(lambda x: d(lambda y: x * y * y)(x) * x)(x)) == pytest.approx(6 * 0.7**2)


def test_perturbations_through_a_shared_closure() -> None:
    """The amplifier of Manzyuk, Pearlmutter, Radul, Rush, Siskind (2019): a curried derivative, applied to itself."""

    def shift(u: Any) -> Any:
        return lambda f: lambda x: f(x + u)

    def derivative(f: Any) -> Any:
        """Differentiate a function from numbers to functions at 0: one level for each application."""
        return lambda g: lambda x: wg.grad(lambda u: f(u)(g)(x))(0.0)

    twice = derivative(shift)(derivative(shift)(np.exp))
    assert twice(1.0) == pytest.approx(np.e)


def test_a_captured_outer_value_is_a_constant_inside() -> None:
    def outer(x: Any) -> Any:
        return wg.grad(lambda y: np.sin(x) * y**2)(x)

    assert wg.grad(outer)(0.5) == pytest.approx(2 * np.cos(0.5) * 0.5 + 2 * np.sin(0.5))


def test_nesting_through_containers_and_vjp() -> None:
    def energy(state: Any) -> Any:
        return (state["q"] ** 4).sum() / 4 + (state["p"] ** 2).sum() / 2

    def work(state: Any) -> Any:
        _, pullback = wg.vjp(wg.grad(energy), state)
        (ct,) = pullback({"q": np.ones(3), "p": np.ones(3)})
        return ct["q"].sum() + ct["p"].sum()

    result = wg.grad(work)({"q": X, "p": X})
    np.testing.assert_allclose(result["q"], 6 * X)
    np.testing.assert_array_equal(result["p"], np.zeros(3))


def test_hessian_by_hand() -> None:
    def f(x: Any) -> Any:
        return (x[0] * x[1] ** 2 * np.exp(x[2])).sum()

    rows = [wg.grad(lambda x, i=i: wg.grad(f)(x)[i])(X) for i in range(3)]
    a, b, c = X
    e = np.exp(c)
    expected = [
        [0, 2 * b * e, b * b * e],
        [2 * b * e, 2 * a * e, 2 * a * b * e],
        [b * b * e, 2 * a * b * e, a * b * b * e],
    ]
    np.testing.assert_allclose(rows, expected)


def test_third_order_of_a_program_that_writes() -> None:
    def program(x: Any) -> Any:
        buffer = wnp.zeros(3)
        buffer[0] = x
        buffer[1:] = buffer[0] ** 2
        view = buffer[1:]
        view *= x
        buffer[2] += view[0] * buffer[0]
        return buffer.sum()  # x + 2 x^3 + x^4

    x = 1.3
    assert program(x).item() == pytest.approx(x + 2 * x**3 + x**4)
    assert wg.grad(program)(x) == pytest.approx(1 + 6 * x**2 + 4 * x**3)
    assert wg.grad(wg.grad(program))(x) == pytest.approx(12 * x + 12 * x**2)
    assert wg.grad(wg.grad(wg.grad(program)))(x) == pytest.approx(12 + 24 * x)


# Arguments are not written to


def test_functions_may_write_into_their_arguments_without_changing_the_callers() -> None:
    def f(x: Any) -> Any:
        x[0] = x[1] * 10
        x *= 2.0
        return x.sum()

    array, tensor = X.copy(), wg.tensor(X)
    np.testing.assert_array_equal(wg.grad(f)(array), [0.0, 22.0, 2.0])
    np.testing.assert_array_equal(wg.grad(f)(tensor).numpy(), [0.0, 22.0, 2.0])
    np.testing.assert_array_equal(array, X)
    np.testing.assert_array_equal(tensor.numpy(), X)


def test_results_do_not_share_memory_with_tensors_of_the_caller() -> None:
    t = wg.tensor(X)
    _, aux = wg.grad(lambda x: (x.sum(), x), has_aux=True)(t)
    aux[0] = 100.0
    output, _ = wg.vjp(lambda x: x, t)
    output[1] = 100.0
    np.testing.assert_array_equal(t.numpy(), X)


# Captured Tensors


def test_gradients_reach_captured_tensors() -> None:
    w = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    gradient = wg.grad(lambda x: (w * x * x).sum())(X)
    assert type(gradient) is wg.Tensor
    np.testing.assert_array_equal(gradient.detach().numpy(), 2 * w.detach().numpy() * X)
    gradient.sum().backward()
    assert w.grad is not None
    np.testing.assert_array_equal(w.grad.numpy(), 2 * X)


def test_the_argument_of_a_transformation_may_require_grad() -> None:
    x = wg.tensor(X, requires_grad=True)
    slope = wg.grad(lambda y: (y**3).sum())(x)
    assert slope.requires_grad
    slope.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 6 * X)


def test_parameters_in_an_object_are_free_variables() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w = wg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

        def __call__(self, x: Any) -> Any:
            return np.tanh(self.w @ x)

    layer, x = Layer(), np.array([0.1, 0.2])
    penalty = (wg.grad(lambda x: layer(x).sum())(x) ** 2).sum()
    penalty.backward()
    step, expected = 1e-6, np.zeros((2, 2))
    w = layer.w.detach().numpy().copy()

    def by_hand(w: Any) -> Any:
        return (((1 - np.tanh(w @ x) ** 2) @ w) ** 2).sum()

    for i in np.ndindex(2, 2):
        e = np.zeros((2, 2))
        e[i] = step
        expected[i] = (by_hand(w + e) - by_hand(w - e)) / (2 * step)
    assert layer.w.grad is not None
    np.testing.assert_allclose(layer.w.grad.numpy(), expected, rtol=1e-6)


def test_captured_buffers_of_the_function_are_its_own() -> None:
    def f(x: Any) -> Any:
        total = wnp.zeros(())

        def add(value: Any) -> None:
            nonlocal total
            total = total + value

        for i in range(3):
            add(x * i)
        return total

    assert wg.grad(f)(2.0) == 3.0


# Escapes


def escape(kind: str) -> Any:
    kept: list[Any] = []

    def leaky(x: Any) -> Any:
        y = x * 3  # the line that made it
        kept.append({"leaf": x, "computed": y, "view": y[1:], "saved": y}[kind])
        return y.sum()

    wg.grad(leaky)(X)
    return kept[0]


@pytest.mark.parametrize("kind", ["computed", "view"])
@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1,
        lambda t: 1 + t,
        lambda t: np.sin(t),
        lambda t: t.sum(),
        lambda t: t[0],
        lambda t: t.reshape(-1, 1),
        lambda t: wg.tensor(np.ones(t.shape)) * t,
        lambda t: wg.tensor(np.ones(t.shape), requires_grad=True) * t,
        lambda t: t.__setitem__(0, 1.0),
        lambda t: t.__iadd__(1.0),
        lambda t: wg.asarray(np.zeros(t.shape)).__setitem__(Ellipsis, t),
        lambda t: wg.grad(lambda x: (x * t).sum())(np.ones(t.shape)),
        lambda t: wg.grad(lambda x: (x * x).sum())(t),
        lambda t: np.stack([t, t]),
        lambda t: t @ t,
    ],
)
def test_escaped_values_name_function_and_line(kind: str, use: Any) -> None:
    value = escape(kind)
    with pytest.raises(EscapedValueError) as error:
        use(value)
    text = str(error.value)
    leaky = next(code for code in escape.__code__.co_consts if getattr(code, "co_name", "") == "leaky")
    first = leaky.co_firstlineno
    assert text.startswith(f'grad(escape.<locals>.leaky, File "{__file__}", line {first}): a value (')
    lines = [first + 1] if kind == "computed" else [first + 1, first + 2]  # a write through a view concerns its base
    places = [f' that escaped, created at File "{__file__}", line {n}, in escape.<locals>.leaky: ' for n in lines]
    assert any(place in text for place in places)
    assert text.endswith(
        "; values of a transformation may be used only until it ends. "
        "Return it from the function (has_aux=True), or store wengert.stop_gradient(value)."
    )


def test_escaped_values_can_still_be_looked_at() -> None:
    value = escape("computed")
    assert "1.5" in repr(value)
    assert value.shape == (3,)
    assert value.tolist() == (3 * X).tolist()
    np.testing.assert_array_equal(value.detach().numpy(), 3 * X)


def test_values_that_escape_an_inner_transformation() -> None:
    kept: list[Any] = []

    def inner(y: Any) -> Any:
        kept.append(y * 2)
        return y * y

    def outer(x: Any) -> Any:
        slope = wg.grad(inner)(x)
        return slope * kept[-1]

    with pytest.raises(EscapedValueError, match=r"^grad\(test_values_that_escape_an_inner.*<locals>\.inner, "):
        wg.grad(outer)(2.0)


def test_writing_into_an_outer_buffer_is_an_escape() -> None:
    buffer = wnp.zeros(2)

    def f(x: Any) -> Any:
        buffer[0] = x
        return x * 1

    wg.grad(f)(2.0)
    with pytest.raises(EscapedValueError):
        buffer + 1


def test_stored_constants_do_not_escape() -> None:
    kept: list[Any] = []
    wg.grad(lambda x: (kept.append(wg.stop_gradient(x * 2)), x)[1])(3.0)
    assert (kept[0] + 1).item() == 7.0


# Names


def test_transformed_functions_keep_their_names() -> None:
    def energy(x: Any) -> Any:
        """Return the energy."""
        return x * x

    for transform in (wg.grad, wg.value_and_grad, wg.elementwise_grad):
        assert transform(energy).__name__ == "energy"
        assert transform(energy).__doc__ == "Return the energy."


def test_callables_of_any_kind_can_be_transformed() -> None:
    import functools

    class Square:
        def __call__(self, x: Any) -> Any:
            return x * x

        def method(self, x: Any) -> Any:
            return x**3

    assert wg.grad(Square())(3.0) == 6.0
    assert wg.grad(Square().method)(2.0) == 12.0
    assert wg.grad(functools.partial(lambda a, x: a * x, 5.0))(1.0) == 5.0
    assert wg.grad(np.sin)(0.0) == 1.0
    assert wg.grad(wg.grad(np.sin))(0.5) == -np.sin(0.5)


# The tape API inside transformations


def test_the_tape_api_is_for_tensors_outside_of_transformations() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True)

    def own_graph(x: Any) -> Any:
        (slope,) = wg.autograd.grad((w * w).sum(), w)
        return (slope * x).sum()

    np.testing.assert_array_equal(wg.grad(own_graph)(np.ones(2)), [2.0, 4.0])
    inside = "Use wengert.grad or wengert.vjp inside the function that is transformed."
    for use, name, action in (
        (lambda x: wg.autograd.grad((w * x).sum(), w), "grad", inside),
        (lambda x: x.sum().backward(), "backward", inside),
        (
            lambda x: x.requires_grad_(False),
            "requires_grad_",
            "Use wengert.stop_gradient to cut it, or differentiate it with wengert.grad.",
        ),
    ):
        with pytest.raises(GraphError) as error:
            wg.grad(use)(np.ones(2))
        place = f'File "{__file__}", line {use.__code__.co_firstlineno}'
        assert str(error.value) == (
            f"{name}: a Tensor of grad({use.__qualname__}, {place}); a Tensor outside of transformations is needed. "
            f"{action}"
        )


W = wg.tensor([1.0, 2.0], requires_grad=True)
OPTIMIZER = wg.optim.Optimizer([W], wg.optim.adam(0.1))


def written_off(tensor: Any) -> None:
    tensor.grad = None


@together(
    "name, use",
    [
        ("backward", lambda x: (W * x).sum().backward()),
        ("grad", lambda x: wg.autograd.grad((W * x).sum(), W)),
        ("requires_grad_", lambda x: x.requires_grad_()),
        (".grad", lambda x: W.grad),
        (".grad", lambda x: written_off(W)),
        (".grad", lambda x: OPTIMIZER.zero_grad()),
        (".grad", lambda x: OPTIMIZER.step()),
    ],
)
def test_steps_of_training_that_are_traced_say_what_is_jitted_instead(name: str, use: Callable[[Any], Any]) -> None:
    with pytest.raises(GraphError) as error:
        wg.jit(lambda x: (use(x), x)[1])(np.ones(2))
    assert str(error.value).startswith(f"{name}: a Tensor of jit(")
    assert str(error.value).endswith(
        "; a Tensor outside of transformations is needed. Jit the loss alone, and call .backward() and change "
        "parameters outside, or take gradients inside by wengert.grad(loss, captured=[w])."
    )
    assert W.tolist() == [1.0, 2.0]
    assert W.grad is None


def test_whether_a_tensor_requires_grad_can_be_asked_while_it_is_traced() -> None:
    assert wg.jit(lambda x: x * (1 + x.requires_grad))(2.0) == 2.0


def test_what_tensors_say_of_themselves_inside_transformations() -> None:
    said: list[Any] = []

    def look(x: Any) -> Any:
        y = x * 2
        said.append((x.requires_grad, x.is_leaf, y.requires_grad, y.is_leaf, y.grad_fn is None, y.grad))
        return y.sum()

    wg.grad(look)(np.ones(2))
    wg.jvp(look, (np.ones(2),), (np.ones(2),))
    wg.vmap(look)(np.ones((2, 2)))
    wg.grad(lambda x: wg.jvp(look, (x,), (x,))[1])(np.ones(2))
    assert said == [
        (True, True, True, False, False, None),
        (False, True, False, True, True, None),
        (False, True, False, True, True, None),
        (True, True, True, True, True, None),
    ]


def test_hooks_inside_transformations() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda ct: ct * 10)
        return (y * y).sum()

    np.testing.assert_array_equal(wg.grad(f)(X), 80 * X)
    np.testing.assert_array_equal(wg.elementwise_grad(wg.grad(f))(X), np.full(3, 80.0))
