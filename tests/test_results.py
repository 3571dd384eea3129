"""What a function returns to a transformation: floats; what is no number is refused, what is detached warns."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DetachedWarning, DtypeError

X = np.array([0.5, 0.6])
TRANSFORMATIONS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: wg.grad(f)(X),
    "value_and_grad": lambda f: wg.value_and_grad(f)(X),
    "elementwise_grad": lambda f: wg.elementwise_grad(f)(X),
    "vjp": lambda f: wg.vjp(f, X),
    "jvp": lambda f: wg.jvp(f, (X,), (X,)),
    "jacrev": lambda f: wg.jacrev(f)(X),
    "jacfwd": lambda f: wg.jacfwd(f)(X),
    "jacobian": lambda f: wg.jacobian(f)(X),
    "hessian": lambda f: wg.hessian(f)(X),
    "hvp": lambda f: wg.hvp(f, X, X),
    "linearize": lambda f: wg.linearize(f, X),
    "taylor": lambda f: wg.taylor(f, (X,), (X,), 2),
}
NO_NUMBERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "function": (lambda x: np.sum, "a value of type _ArrayFunctionDispatcher"),
    "string": (lambda x: "loss", "a value of type str"),
    "boolean": (lambda x: True, "dtype bool"),
    "integer": (lambda x: 3, "dtype int64"),
    "NumPy integer": (lambda x: np.int32(3), "dtype int32"),
    "object": (lambda x: object(), "a value of type object"),
    "array of objects": (lambda x: np.array(None, dtype=object), "dtype object"),
    "array of strings": (lambda x: np.array("a"), "dtype <U1"),
    "None": (lambda x: None, "None"),
    "comparison": (lambda x: x[0] > 0, "dtype bool"),
    "count": (lambda x: np.sum(x > 0), "dtype int64"),
    "class": (lambda x: float, "a value of type type"),
}


@together("name", TRANSFORMATIONS)
@together("what", NO_NUMBERS)
def test_what_is_no_number_is_refused(name: str, what: str) -> None:
    function, given = NO_NUMBERS[what]
    needed = "a float or complex number, or an array of them, is needed to differentiate. Return what was computed,"
    with pytest.raises(DtypeError, match=f"^{name}: a function that returned {re.escape(given)}; {needed}"):
        TRANSFORMATIONS[name](function)


@together("name", TRANSFORMATIONS)
@together("constant", [2.0, np.float64(2.0), np.array(2.0)])
def test_a_detached_result_warns_at_the_users_line(name: str, constant: Any) -> None:
    with pytest.warns(DetachedWarning, match=f"^{name}: a function that returned a plain ") as caught:
        TRANSFORMATIONS[name](lambda x: constant)
    assert caught[0].filename == __file__


@together("name", TRANSFORMATIONS)
def test_zero_derivatives_do_not_warn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (
            lambda x: np.floor(x).sum(),
            lambda x: np.sum(x**0),
            lambda x: wg.stop_gradient(x[0]),
            lambda x: wg.asarray(2.0),
            lambda x: np.sum(np.where(x > 5, x, 0.0)),
        ):
            TRANSFORMATIONS[name](function)


def test_a_number_beside_results_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wg.jvp(lambda x: (x, 5.0), (2.0,), (1.0,)) == ((2.0, 5.0), (1.0, 0.0))
        assert wg.vjp(lambda x: (x, 5.0), 2.0)[1]((1.0, 1.0)) == (1.0,)


def test_integers_beside_floats_have_zero_derivatives() -> None:
    value, tangent = wg.jvp(lambda x: (x * x, np.argmax(x), x.shape[0]), (X,), (np.ones(2),))
    assert value[1:] == (1, 2)
    np.testing.assert_array_equal(tangent[0], 2 * X)
    assert tangent[1:] == (0, 0)


def test_without_arguments_to_differentiate_nothing_is_detached() -> None:
    assert wg.grad(lambda parameters, x: 2.0 * x)({}, 1.0) == {}


def test_auxiliary_results_may_be_anything() -> None:
    assert wg.grad(lambda x: (x * x, "done"), has_aux=True)(3.0) == (6.0, "done")
