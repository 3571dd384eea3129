"""Tests of static and donated arguments of `jit`: by position and by name, however they are passed."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import DtypeError, UsageError


def powered(x: Any, n: Any = 2, *, scale: Any = 1) -> Any:
    assert type(n) is int
    assert type(scale) is int
    return x**n * scale


@pytest.mark.parametrize(
    "static",
    [
        {"static_argnums": 1, "static_argnames": "scale"},
        {"static_argnames": ("n", "scale")},
        {"static_argnames": ["scale", "n"], "static_argnums": (1,)},
    ],
)
def test_static_arguments_passed_either_way(static: Any) -> None:
    x = np.array([1.0, 2.0])
    f = wg.jit(powered, **static)
    np.testing.assert_array_equal(f(x, 3, scale=2), 2 * x**3)
    np.testing.assert_array_equal(f(x, n=3, scale=2), 2 * x**3)
    np.testing.assert_array_equal(f(x, 4), x**4)
    np.testing.assert_array_equal(f(x), x**2)
    np.testing.assert_array_equal(f(n=3, x=x), x**3)
    count = f.trace_count
    f(x, 3, scale=2)
    assert f.trace_count == count


def test_static_arguments_of_partial_functions() -> None:
    partial = functools.partial(powered, scale=3)
    assert wg.jit(partial, static_argnames=("n", "scale"))(2.0, 2) == 12.0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"static_argnums": 2},
            "2 in static_argnums of a function of 2 arguments by position; the position of one of them, from 0, is "
            "needed. Correct it, or name the argument in static_argnames.",
        ),
        ({"static_argnums": (0, -3)}, "-3 in static_argnums of a function of 2 arguments by position; the position"),
        ({"donate_argnums": 5}, "5 in donate_argnums of a function of 2 arguments by position; the position"),
        (
            {"static_argnames": "m"},
            "'m' in static_argnames of a function of (x, n, scale); the name of one of its arguments is needed. "
            "Correct it.",
        ),
    ],
)
def test_arguments_that_the_function_does_not_have(options: Any, text: str) -> None:
    with pytest.raises(UsageError, match="^" + re.escape(f"jit: {text}")):
        wg.jit(powered, **options)


def test_functions_of_any_arguments() -> None:
    f = wg.jit(lambda *args, **kwargs: args[0] * len(kwargs["mode"]), static_argnums=5, static_argnames="mode")
    assert f(2.0, mode="abc") == 6.0


@pytest.mark.parametrize(("argument", "place"), [("abc", " at options"), ({"name": "abc"}, " at options['name']")])
def test_text_among_the_arguments_says_how_it_becomes_static(argument: Any, place: str) -> None:
    def f(x: Any, options: Any) -> Any:
        return x

    needed = "numbers, arrays, Tensors or containers of them are needed"
    action = "Name the argument in static_argnums or static_argnames, or hold it in a dataclass, in a field that is "
    with pytest.raises(DtypeError) as error:
        wg.jit(f)(1.0, argument)
    assert str(error.value) == f"jit: an argument of type str{place}; {needed}. {action}wengert.tree.static()."
