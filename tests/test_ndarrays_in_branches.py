"""ndarrays that traced branches and loops choose: what is written to them afterwards is seen by all, or refused."""

# ruff: noqa: SIM102, SIM108 - the programs use each form of statement on purpose

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import GraphError

POINTS = np.array([0.5, 0.6, 0.7]), np.array([-0.5, -0.6, 0.7])
TABLE = np.array([1.0, 2.0, 3.0])
RIGHT = []
REFUSED = []


def right(function):
    """Enter a program that gives what NumPy gives."""
    RIGHT.append(pytest.param(function, id=function.__name__))
    return function


def refused(text, line):
    """Enter a program that is refused with an error that begins with a text and ends with a line."""

    def enter(function):
        REFUSED.append(pytest.param(function, text, line, id=function.__name__))
        return function

    return enter


@right
def a_write_to_what_was_chosen(x):
    a, found = np.zeros(3), x * 1.0
    if x[0] > 0:
        found = a
    found *= x
    return a + x, found


@right
def a_later_write_to_the_ndarray(x):
    a, found = np.zeros(3), x
    if x[0] > 0:
        found = a
    a[0] = 5.0
    return a + x, found * x


@right
def a_write_in_a_branch_in_a_branch(x):
    a = np.zeros(3)
    if x[0] > 0:
        if x[1] > 0:
            a[0] = 1.0
    return a + x


@right
def one_of_two_equal_ndarrays(x):
    a, b = np.zeros(3), np.zeros(3)
    if x[0] > 0:
        found = a
    else:
        found = b
    found[0] = 1.0
    return a + x, b + x


@right
def an_item_of_a_list(x):
    items = [np.zeros(3), np.ones(3)]
    found = items[0] if x[0] > 0 else items[1]
    found[0] = 4.0
    return items[0] + x, items[1] + x


@right
def two_names_for_what_a_branch_made(x):
    if x[0] > 0:
        a = b = np.zeros(3)
    else:
        a, b = x, x * 2
    a[0] = 3.0
    return b * 1.0


@right
def two_names_in_one_branch_only(x):
    if x[0] > 0:
        a = b = np.zeros(3)
    else:
        a, b = np.zeros(3), np.zeros(3)
    a[0] = 3.0
    return b + x


@right
def an_ndarray_that_gives_way(x):
    found = np.zeros(3)
    if x[0] > 0:
        found = x * 2
    found[0] = 7.0
    found[1] += x[0]
    return found


@right
def a_table_that_is_read(x):
    found = TABLE if x[0] > 0 else x
    return found * x, (TABLE[1:] if x[0] > 0 else x[1:]) * 2.0


@right
def equal_ndarrays_before_and_in_a_loop(x):
    a, items = np.ones(3), [np.ones(3)]
    k = 0
    while k < 2 and x[2] > -k:
        items[0] = a
        k += 1
    items[0] = items[0] * 1.0
    return a + x, items[0] + x


WRITE = (
    "what is the ndarray {}, or not, as a traced value decides; an array that can hold what is traced is needed. "
    "Make it with wengert.numpy, or copy what is written to."
)
LATE = (
    "if: a write to the ndarray {} after a traced value has decided what else it is; an array that can hold what is "
    "traced is needed. Make it with wengert.numpy, or copy what is written to."
)


@refused("conditional expression: a write to " + WRITE.format("TABLE"), "found *= x")
def a_table_that_is_written_to(x):
    found = TABLE if x[0] > 0 else x
    found *= x
    return found + x


@refused("if: a write to " + WRITE.format("row"), "row[1] = 7.0")
def a_row(x):
    table = np.zeros((2, 3))
    row = table[0]
    if x[0] < 0:
        row = x
    row[1] = 7.0
    return table + x


@refused(LATE.format("row"), "if x[0] < 0:")
def what_a_row_is_of(x):
    table = np.zeros((2, 3))
    row = table[0]
    if x[0] < 0:
        row = x
    table[0] = 7.0
    return row + x


@refused("for: a write to " + WRITE.format("found"), "found[0] = 5.0")
def a_loop_without_an_iteration_perhaps(x):
    a = np.ones(3)
    found = a
    for _ in range(np.sum(x > 10)):
        found = found * x
    found[0] = 5.0
    return a + x


@pytest.mark.parametrize("program", RIGHT)
def test_what_traced_values_choose_is_written_to_as_in_numpy(program):
    traced = wg.jit(program)
    for x in POINTS:
        for found, expected in zip(traced(x.copy()), program(x.copy()), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("program", "text", "line"), REFUSED)
def test_writes_that_cannot_be_seen_by_all_are_refused(program, text, line):
    with pytest.raises(GraphError) as caught:
        wg.jit(program)(POINTS[0])
    assert str(caught.value).startswith(text)
    assert str(caught.value).endswith(line)
    np.testing.assert_array_equal(TABLE, [1.0, 2.0, 3.0])


def test_a_loop_whose_body_makes_the_ndarray_that_a_branch_chooses_ends() -> None:
    def program(x: Any) -> Any:
        total = x[0] * 1.0
        for i in range(2):
            total = total * i
            made = np.ones((2, 3)) * 1.0
            chosen = made[...]
            if np.all(np.diff(x) <= 0.3):
                chosen = chosen[::-1]
            total = total + np.sum(made) + np.sum(chosen)
            if total > x[1]:
                break
        return total

    x = np.array([-0.6, -0.4, 0.5])
    assert wg.jit(program)(x) == program(x)
