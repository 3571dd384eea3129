"""What a traced statement leaves undefined: whatever asks for it is refused by the line, and answers nothing."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import GraphError

X = np.array([0.5, 3.6])


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 2


class Length(float):
    unit = "m"


def chosen(x: Any) -> Any:
    mode = None
    if np.sum(x) > 0:
        mode = "fast"
    return mode


def asked_whether_none(x: Any) -> Any:
    mode = chosen(x)
    if mode is None:
        return x * 2.0
    return x * 3.0


def asked_whether_not_none(x: Any) -> Any:
    mode = chosen(x)
    return x * 2.0 if mode is not None else x * 3.0


def asked_in_a_chain(x: Any) -> Any:
    mode = chosen(x)
    return x * (2.0 if None is mode is None else 3.0)


def a_key(x: Any) -> Any:
    return x * {None: 2.0, "fast": 3.0}[chosen(x)]


def in_a_set(x: Any) -> Any:
    return x * (2.0 if chosen(x) in {None} else 3.0)


def printed(x: Any) -> Any:
    return x * len(str(chosen(x)))


def of_a_class(x: Any) -> Any:
    return x * (2.0 if isinstance(chosen(x), str) else 3.0)


def of_a_type(x: Any) -> Any:
    return x * (2.0 if type(chosen(x)) is str else 3.0)


def rounded(x: Any) -> Any:
    return x * round(chosen(x))


def that_can_be_called(x: Any) -> Any:
    return x * (2.0 if callable(chosen(x)) else 3.0)


def a_number_that_is_more(x: Any) -> Any:
    mode = Mode.SLOW
    if np.sum(x) > 0:
        mode = Mode.FAST
    return x * 2.0 if mode is Mode.FAST else x * 3.0


def a_number_that_is_more_in_a_loop(x: Any) -> Any:
    mode, i = Mode.SLOW, 0.0
    while i < x[1]:
        mode = Mode.FAST if mode is Mode.SLOW else Mode.SLOW
        i += 1.0
    return x * mode


def a_number_with_attributes(x: Any) -> Any:
    length = Length(2.0)
    if np.sum(x) > 0:
        length = Length(3.0)
    return x * len(length.unit)


PROGRAMS: list[Callable[[Any], Any]] = [
    asked_whether_none,
    asked_whether_not_none,
    asked_in_a_chain,
    a_key,
    in_a_set,
    printed,
    of_a_class,
    of_a_type,
    that_can_be_called,
    rounded,
    a_number_that_is_more,
    a_number_that_is_more_in_a_loop,
    a_number_with_attributes,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("x", [X, -X], ids=["holds", "does not hold"])
def test_it_is_right_or_refused_by_its_line(program: Any, x: Any) -> None:
    with pytest.raises(GraphError, match=r"(?s)^(if|loop): .*(Make them alike| in place of )") as error:
        wg.jit(program)(x)
    assert '  File "' in str(error.value)


def test_what_is_defined_is_asked_as_before() -> None:
    def f(x: Any, y: Any = None) -> Any:
        best = None
        for value in x:
            if best is None or value > best:
                best = value
        assert isinstance(1.0, float)
        assert type("Kind", (), {"n": 2}).n == len([type(X), type(X)])
        return best if y is None is not x else y

    assert wg.jit(f)(X) == 3.6
    assert wg.jit(f)(X, 2.0) == 2.0
