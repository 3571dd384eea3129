"""Tests of `wengert.testing`: it accepts right derivatives, says where one is wrong, and refuses bad arguments."""

from __future__ import annotations

import re
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import DtypeError, UsageError
from wengert.testing import check_grads, check_rule


@dataclass
class Layer:
    weights: Any
    bias: Any


Pair = namedtuple("Pair", "left right")


def half_stopped(x: Any) -> Any:
    """Have the value x**2 and a gradient that misses half of it."""
    return x * wg.stop_gradient(x)


def late(x: Any) -> Any:
    """Have the value and first derivative of x**3, and a wrong second derivative."""
    return x**3 + half_curvature(x - wg.stop_gradient(x))


def half_curvature(zero: Any) -> Any:
    """Return zero times itself: nothing in value and slope, two in curvature."""
    return zero * zero


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (np.sin, (0.5,)),
        (np.sin, (np.float64(0.5),)),
        (np.sin, (np.array([[0.5, 1.0]]),)),
        (np.sin, (wg.tensor([0.5, 1.0]),)),
        (np.sin, (np.array(0.5),)),
        (np.sqrt, (np.float32([0.5, 1.0]),)),
        (np.log, (np.array([1e-3, 1.0]),)),
        (np.sin, (np.zeros((0, 2)),)),
        (lambda d: {"y": [np.exp(d["a"][0]) * d["b"]], "n": 3}, ({"a": (np.array([0.5]),), "b": 2.0},)),
        (lambda p: Pair(p.left * p.right, p.left), (Pair(1.5, np.array([2.0, 3.0])),)),
        (lambda layer: np.tanh(layer.weights) + layer.bias, (Layer(np.array([0.5, 1.0]), 0.25),)),
        (lambda z: np.exp(z) * z, (np.array([0.5 + 1j, 1.0]),)),
        (lambda x, z: np.abs(z * x) + np.real(z), (np.array([0.5, 2.0]), np.array([0.5 + 1j, 1.0]))),
        (lambda x: (np.floor(x), x > 1), (np.array([0.5, 2.2]),)),
        (np.abs, (np.array([1e-3, -1.0]),)),
        (lambda x: x * 1e200, (2.0,)),
        (lambda x: np.where(np.isfinite(x), 3.0 * x, 0.0), (np.array([np.nan, 2.0, np.inf]),)),
    ],
)
def test_right_derivatives_pass(f: Any, args: Any) -> None:
    check_grads(f, args)


def test_the_third_order_can_be_checked() -> None:
    check_grads(lambda x, y: np.sin(x * y) / y, (np.array([0.3, 1.0]), 2.0), order=3)


def test_the_complex_step_decides_where_differences_are_too_rough() -> None:
    check_grads(lambda x: np.exp(np.sin(x)), (np.array([0.3, 1.0]),), rtol=1e-14, order=1)


def test_a_function_that_refuses_complex_arguments_is_differenced() -> None:
    def real_only(x: Any) -> Any:
        if x.dtype.kind == "c":
            raise TypeError("real arguments only")
        return np.sin(x)

    with pytest.raises(AssertionError):  # no differences are that good
        check_grads(real_only, (np.array([0.3, 1.0]),), rtol=1e-17, order=1)
    check_grads(real_only, (np.array([0.3, 1.0]),))


def test_a_function_that_is_not_analytic_is_differenced() -> None:
    check_grads(lambda x: np.abs(x) * np.exp(x), (np.array([-1.0, 0.5]),), order=1, rtol=1e-12)


def test_the_text_about_a_wrong_first_derivative() -> None:
    with pytest.raises(AssertionError) as caught:
        check_grads(half_stopped, (np.array([[1.0, 2.0]]),))
    number = r"(-?[\d.e+-]+)"
    found = re.fullmatch(
        r'check_grads\(half_stopped, File ".*test_testing.py", line \d+\): a derivative of order 1 in argument 0 '
        rf"\(mode 'rev'\) is {number} along a random direction \({number} along element \[0, 1\]\); {number} is "
        rf"needed by differences good to {number} \({number} along that element\). Correct the rule of an operation "
        r"it uses, or avoid kinks and jumps.",
        str(caught.value),
    )
    assert found is not None
    got, element, needed, _, needed_element = map(float, found.groups())
    assert got == pytest.approx(needed / 2)
    assert element == pytest.approx(needed_element / 2)


@pytest.mark.parametrize(
    ("f", "args", "place"),
    [
        (late, (np.array([1.0, 2.0]),), "of order 2 in argument 0 "),
        (lambda x, y: x + half_stopped(y), (1.0, 2.0), "of order 1 in argument 1 "),
        (lambda d, y: y * half_stopped(d["a"][0]), ({"a": [2.0]}, 1.0), "of order 1 in argument 0['a'][0] "),
        (lambda p: half_stopped(p.right) + p.left, (Pair(1.0, 2.0),), "of order 1 in argument 0.right "),
        (lambda x: np.sqrt(x - 1), (1.0,), "inf; nan is needed"),
    ],
)
def test_the_text_says_where_a_derivative_is_wrong(f: Any, args: Any, place: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(place)):
        check_grads(f, args)


def test_a_derivative_that_is_nan_does_not_pass() -> None:
    with np.errstate(invalid="ignore"), pytest.raises(AssertionError, match="nan"):
        check_grads(lambda x: x * np.nan, (1.0,))


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (
            (3, (1.0,)),
            {},
            "check_grads: f=3; a function is needed. Pass the function first, then its arguments.",
        ),
        (
            (np.sin, ()),
            {},
            "check_grads: no argument that holds an array; something to differentiate is needed. Pass one.",
        ),
        (
            (np.sin,),
            {},
            "check_grads: no argument that holds an array; something to differentiate is needed. Pass one.",
        ),
        (
            (np.sin, (1.0,)),
            {"order": 0},
            "check_grads: order=0; an integer of 1 or more is needed. Pass order=1 or order=2.",
        ),
        (
            (np.sin, (1.0,)),
            {"order": 1.5},
            "check_grads: order=1.5; an integer of 1 or more is needed. Pass order=1 or order=2.",
        ),
        ((np.sin, (1.0,)), {"modes": ("sideways",)}, "check_grads: mode 'sideways'; one of "),
        ((np.sin, (1.0,)), {"modes": "rev"}, "check_grads: modes='rev'; a tuple of modes is needed, of 'rev'"),
        ((np.sin, (1.0,)), {"modes": ()}, "check_grads: modes=(); a tuple of modes is needed, of 'rev'"),
        (
            (np.sin, (1.0,)),
            {"rtol": -1.0},
            "check_grads: rtol=-1.0; a positive number is needed. Leave rtol out.",
        ),
        (
            (np.sin, (1.0,)),
            {"step": None},
            "check_grads: step=None; a positive number is needed. Leave step out.",
        ),
        (
            (lambda x: x > 0, (np.ones(2),)),
            {},
            "check_grads: a function that returned no float or complex array; a result that has derivatives is "
            "needed. Return the float results of the function.",
        ),
    ],
)
def test_bad_arguments(arguments: Any, options: Any, text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(text)):
        check_grads(*arguments, **options)


@pytest.mark.parametrize(
    ("args", "given"),
    [
        ((1.0, 2), "argument 1 has dtype int64"),
        ((1.0, {"n": np.array([True])}), "argument 1['n'] has dtype bool"),
        ((1.0, object()), "argument 1 has type object"),
        (("text", 1.0), "argument 0 has type str"),
    ],
)
def test_arguments_without_derivatives(args: Any, given: str) -> None:
    text = (
        f"check_grads: {given}; floats, arrays or Tensors of a float or complex dtype are needed. "
        "Fix other arguments in a lambda around the function."
    )
    with pytest.raises(DtypeError, match=re.escape(text)):
        check_grads(lambda x, _y: x, args)


def test_arguments_come_one_by_one_or_as_a_tuple() -> None:
    rule = wg.custom_rule(lambda x, y: x * y)
    rule.defvjp(lambda x, y: (x * y, (x, y)), lambda xy, ct: (ct * xy[1], ct * xy[0]))
    for check, function in ((check_grads, lambda x, y: x * y), (check_rule, rule)):
        check(function, 2.0, 3.0)
        check(function, (2.0, 3.0))
    check_grads(lambda pair: pair[0] * pair[1], ((2.0, 3.0),))
    check_grads(lambda items: items[0] * items[1], [2.0, 3.0], order=3, modes=("rev", "fwd"))
