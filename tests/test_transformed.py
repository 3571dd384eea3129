"""Tests of what transformations return: it looks like the function, is bound, copied and pickled as functions are."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
import pydoc
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.typing import fits, program
from wengert.errors import DtypeError
from wengert.functional import GradOperation


def area(x: float, y: float = 2.0, *, scale: float = 1.0) -> float:
    """Return an area."""
    return scale * x * y


def polar(x: Any) -> Any:
    return np.stack([x[0] * np.cos(x[1]), x[0] * np.sin(x[1])])


def with_aux(x: Any, factor: float = 1.0) -> Any:
    return factor * np.sin(x), {"twice": 2 * x, "text": "kept"}


@wg.jit
def jitted(x: Any) -> Any:
    return x * x


@wg.grad
def decorated(x: Any) -> Any:
    return x**3


@wg.custom_rule
def ruled(x: Any) -> Any:
    return x * x


ruled.defjvp(lambda primals, tangents: (primals[0] ** 2, 10 * tangents[0]))


class Model:
    def __init__(self, w: float) -> None:
        self.w = w

    @wg.jit
    def step(self, x: Any) -> Any:
        return self.w * x

    @partial(wg.grad, argnums=1)
    def slope(self, x: Any) -> Any:
        return self.w * x * x

    @wg.vmap
    def lanes(self: Any) -> Any:
        return self


TRANSFORMATIONS: dict[str, Any] = {
    "grad": wg.grad,
    "value_and_grad": wg.value_and_grad,
    "elementwise_grad": wg.elementwise_grad,
    "jit": wg.jit,
    "vmap": wg.vmap,
    "checkpoint": wg.checkpoint,
    "jacobian": wg.jacobian,
    "jacfwd": wg.jacfwd,
    "jacrev": wg.jacrev,
    "hessian": wg.hessian,
    "GradOperation": GradOperation(),
}


@together("name", TRANSFORMATIONS)
def test_they_look_like_the_function(name: str) -> None:
    made = TRANSFORMATIONS[name](area)
    assert inspect.signature(made) == inspect.signature(area)
    assert (made.__name__, made.__doc__, made.__module__) == ("area", "Return an area.", __name__)
    shown = pydoc.plain(pydoc.render_doc(made))
    if sys.version_info[:2] != (3, 13) or not isinstance(made, partial):  # which takes partial objects for no routines
        assert "area(x: 'float', y: 'float' = 2.0, *, scale: 'float' = 1.0) -> 'float'" in shown
    assert "Return an area." in shown
    assert re.match(rf"<{name}\(area\)", repr(made))
    assert copy.copy(made) is made
    assert copy.deepcopy({"f": made})["f"] is made


@together("name", TRANSFORMATIONS)
def test_they_are_pickled_with_the_function(name: str) -> None:
    function, x = (polar, np.array([2.0, 0.5])) if name in ("jacobian", "jacfwd", "jacrev") else (area, 3.0)
    for made in (TRANSFORMATIONS[name](function), wg.jit(TRANSFORMATIONS[name](function))):
        given = np.array([x, x]) if name == "vmap" else x
        found = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(found(given), made(given))
        assert inspect.signature(found) == inspect.signature(function)


def test_options_are_pickled() -> None:
    made = wg.value_and_grad(with_aux, has_aux=True)
    assert pickle.loads(pickle.dumps(made))(0.0) == made(0.0)
    nested = wg.vmap(wg.grad(area, argnums=(0, 1)), in_axes=(0, None))
    assert repr(pickle.loads(pickle.dumps(nested))(np.ones(2), 3.0)) == repr(nested(np.ones(2), 3.0))
    static = wg.jit(area, static_argnames="scale")
    assert pickle.loads(pickle.dumps(static))(2.0, scale=4.0) == 16.0


def test_decorated_functions_are_pickled_by_name() -> None:
    for made in (jitted, decorated, ruled):
        assert pickle.loads(pickle.dumps(made)) is made
    again = pickle.loads(pickle.dumps(wg.grad(ruled)))
    assert again(1.0) == 10.0


def test_methods_are_bound_and_pickled() -> None:
    model = Model(3.0)
    assert (model.step(2.0), model.slope(2.0)) == (6.0, 12.0)
    for method, expected in ((model.step, 6.0), (model.slope, 12.0), (wg.grad(model.step), 3.0)):
        assert pickle.loads(pickle.dumps(method))(2.0) == expected


def test_functions_that_no_module_has_are_refused_as_python_does() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(wg.grad(lambda x: x))


@pytest.mark.long
def test_gradients_come_through_a_pool_of_processes() -> None:
    step = wg.jit(wg.value_and_grad(area))
    step(1.0)  # its graphs stay here
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(step, [2.0, 3.0])) == [(4.0, 2.0), (6.0, 2.0)]
        assert pool.submit(wg.grad(area), 3.0, y=4.0).result() == 4.0
        assert pool.submit(Model(3.0).step, 2.0).result() == 6.0


def test_keywords_reach_functions_whose_jacobians_are_taken() -> None:
    for transformation in (wg.jacobian, wg.jacfwd, wg.jacrev, partial(wg.jacobian, mode="fwd")):
        assert transformation(area)(3.0, scale=4.0) == 8.0
    assert wg.hessian(lambda x, power: x**power)(2.0, power=3) == 12.0


@together("name", ["jacobian", "jacfwd", "jacrev", "hessian", "jacobian rev", "jacobian fwd"])
def test_auxiliary_results_of_jacobians(name: str) -> None:
    name, _, mode = name.partition(" ")
    options = {"mode": mode} if mode else {}
    transformation = partial(getattr(wg, name), has_aux=True, **options)
    found, aux = transformation(with_aux)(0.5, factor=2.0)
    np.testing.assert_allclose(found, -2 * np.sin(0.5) if name == "hessian" else 2 * np.cos(0.5))
    assert aux == {"twice": 1.0, "text": "kept"}
    assert type(aux["twice"]) is float
    x = wg.tensor(0.5)
    assert type(transformation(with_aux)(x)[1]["twice"]) is wg.Tensor

    def numbers(x: Any) -> Any:
        found, aux = transformation(with_aux)(x)
        return found + aux["twice"]

    expected = numbers(0.5)
    for run in (wg.jit(numbers), lambda x: wg.vmap(numbers)(np.array([x, x]))[1]):
        np.testing.assert_allclose(run(0.5), expected)
    wider = transformation(lambda x: (np.sum(x**2) if name == "hessian" else x**2, x[0]))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(wider[0], 2 * np.eye(2) if name == "hessian" else np.diag([2.0, 4.0]))
    assert wider[1] == 1.0


def test_functions_with_aux_that_return_no_pair() -> None:
    text = "jacobian: has_aux=True and a function that returned a ndarray; a pair (output, auxiliary) is needed. "
    text = text.replace("a ndarray", "a Tensor") + "Return a tuple of two."
    with pytest.raises(ValueError, match="^" + re.escape(text) + "$"):
        wg.jacobian(np.sin, has_aux=True)(np.ones(2))


def test_complex_derivatives_element_by_element() -> None:
    z = np.array([1j, 2.0 + 1j])
    np.testing.assert_array_equal(wg.elementwise_grad(np.square, holomorphic=True)(z), 2 * z)
    text = "elementwise_grad: a function that returned dtype complex128 with holomorphic=False; a real result is "
    text += "needed. Pass holomorphic=True for a complex differentiable function."
    with pytest.raises(DtypeError, match="^" + re.escape(text) + "$"):
        wg.elementwise_grad(np.square)(z)
    text = "elementwise_grad: an argument of dtype float64 with holomorphic=True; a complex one is needed. Convert it "
    with pytest.raises(DtypeError, match="^" + re.escape(text)):
        wg.elementwise_grad(np.square, holomorphic=True)(np.ones(2))


def test_places_in_arguments_of_jacobians() -> None:
    def f(x: Any, parameters: Any) -> Any:
        return x * parameters["layers"][1]

    given = {"layers": [1.0, 2]}
    for name in ("jacobian", "jacrev", "jacfwd"):
        text = f"{name}: the integer 2 at parameters['layers'][1]; a float or complex number is needed"
        with pytest.raises(DtypeError, match="^" + re.escape(text)):
            getattr(wg, name)(f, argnums=1)(1.0, given)


def test_branches_are_converted_and_captured_tensors_found_through_transformations() -> None:
    w = wg.tensor(2.0, requires_grad=True)

    def f(x: Any) -> Any:
        if x > 0:
            x = x * w
        return x * x

    made = [wg.grad(f), wg.checkpoint(wg.grad(f)), wg.vmap(wg.grad(f)), wg.jacobian(wg.grad(f)), partial(wg.grad(f))]
    for function in made:
        expected = 24.0 if function is not made[3] else 8.0
        found = wg.jit(function)(np.full(2, 3.0) if function is made[2] else 3.0)
        np.testing.assert_array_equal(found.detach().numpy(), np.full(found.shape, expected))
    _, found = wg.grad(wg.grad(f), captured=True)(3.0)
    assert found["w"] == 24.0
    _, found = wg.grad(partial(f), captured=True)(3.0)
    assert found["w"] == 36.0


def test_the_typed_programs_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program.main()
    assert "0.7071067811865" in capsys.readouterr().out
    fits.main(tmp_path)
    assert "1.41421356" in capsys.readouterr().out


def test_functions_with_rules_of_their_own_are_named_like_others() -> None:
    def softplus(x: Any) -> Any:
        return np.logaddexp(0.0, x)

    assert (repr(wg.custom_rule(softplus)), repr(wg.grad(softplus))) == ("<custom_rule(softplus)>", "<grad(softplus)>")
