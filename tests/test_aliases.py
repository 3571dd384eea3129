"""Random programs in which traced decisions choose what variables, items and attributes stand for, and write to it.

Each must give what plain NumPy gives, in every mode, or be refused with the line that the user can change.
"""

import importlib.util
import random
import sys

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of
from wengert.errors import GraphError

POINTS = [np.array(p) for p in ([0.5, 0.6, 0.7], [-0.6, 0.6, 0.2], [0.4, -0.8, 0.9], [-0.7, -0.2, -0.9])]
HOLDERS = {"l[0]": 4.0, "l[1]": 5.0, "d['k']": 6.0, "o.v": 7.0}
HEAD = "import numpy as np\n\n\nclass Box:\n    def __init__(self, v):\n        self.v = v\n\n\n"
FRESH = 1.5


class Writer:
    """Write a random program."""

    spaces = ("range(2)", "range(int(x[0] + 2.0))", "x")
    start = ("a, b, c = x * 1.0, x * 2.0, x * 3.0", "l, d, o = [x * 4.0, x * 5.0], {'k': x * 6.0}, Box(x * 7.0)")

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = ["a", "b", "c", *self.random.sample(sorted(HOLDERS), self.random.randrange(4))]
        self.loops = 0

    def name(self):
        return self.random.choice(self.names)

    def condition(self):
        k, number = self.random.randrange(3), self.random.choice([-0.5, 0.0, 0.3, 2.0])
        return self.random.choice(
            [f"x[{k}] > {number}", f"np.sum({self.name()}) > {number}", f"{self.name()}[{k}] < {number}"]
        )

    def simple(self):
        one, other, k = self.name(), self.name(), self.random.randrange(3)
        forms = {
            f"{one} = {other}": 8,
            f"{one} = {other} * {FRESH}": 2,
            f"{one} = {other} if {self.condition()} else {self.name()}": 3,
            f"{one}, {other} = {other}, {one}": 1,
            f"{one} = {other}[::-1]": 1,
            f"{one} += {other}": 3,
            f"{one}[{k}] = x[{k}]": 2,
            f"{one}[:2] *= x[1:]": 2,
            f"np.add({one}, 1.0, out={other})": 1,
        }
        return self.random.choices(list(forms), list(forms.values()))[0]

    def block(self, depth, indent):
        lines = []
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random() if depth else 0.0
            if kind < 0.6:
                lines.append(indent + self.simple())
            elif kind < 0.88:
                lines += [f"{indent}if {self.condition()}:", *self.block(depth - 1, indent + "    ")]
                if self.random.random() < 0.5:
                    lines += [f"{indent}else:", *self.block(depth - 1, indent + "    ")]
            else:
                self.loops += 1
                item = f"i{self.loops}"
                space = self.random.choice(self.spaces)
                lines += [f"{indent}for {item} in {space}:", *self.block(depth - 1, indent + "    ")]
                if space == "x" and self.random.random() < 0.5:
                    lines.append(f"{indent}    if {item} > 0.4:\n{indent}        break")
        return lines

    def program(self):
        lines = ["def program(x):", *(f"    {line}" for line in self.start)]
        lines += [line for _ in range(2) for line in self.block(2, "    ")]
        total = " + ".join(f"{name} * {10.0**k}" for k, name in enumerate(["a", "b", "c", *HOLDERS]))
        return "\n".join([*lines, f"    return np.sum(({total}) * np.array([1.0, 1.1, 1.3]))", ""])


class PlainWriter(Writer):
    """Write a random program in which ndarrays take part that NumPy makes: only numbers can be written to them."""

    spaces = ("range(2)", "range(int(x[0] + 2.0))")
    start = (
        "x = x * 1.0",
        "a, b, c = np.zeros(3), np.ones(3), x * 3.0",
        "l, d, o = [a, np.zeros(3)], {'k': np.ones(3)}, Box(b)",
    )

    def simple(self):
        one, other, k = self.name(), self.name(), self.random.randrange(3)
        forms = {
            f"{one} = {other}": 8,
            f"{one} = {other} * {FRESH}": 2,
            f"{one} = np.ones(3)": 2,
            f"{one} = {other} = np.full(3, 2.5)": 2,
            f"{one} = x": 1,
            f"{one} = {other} if {self.condition()} else {self.name()}": 3,
            f"{one}, {other} = {other}, {one}": 1,
            f"{one} = {other}[::-1]": 1,
            f"{one} += {self.random.choice('12')}": 3,
            f"{one}[{k}] = {self.random.choice('345')}": 4,
            f"{one}[:2] *= 2.0": 2,
        }
        return self.random.choices(list(forms), list(forms.values()))[0]


def loaded(source, path):
    """Return the program, from a file: its source is read."""
    path.write_text(HEAD + source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def outcome(function, expected, path):
    """Return what is wrong with a transformed program; empty if it is right or refused by its line."""
    try:
        found = function()
    except GraphError as error:
        text = str(error)
        known = "shares memory, or not" in text or "the ndarray " in text
        return "" if known and f'File "{path}", line ' in text.split("\n")[-1] else text
    return "" if np.allclose(found, expected) else f"{found} instead of {expected}"


@pytest.mark.parametrize("seed", range(0, 80, 20))
def test_random_programs_with_aliases_are_right_or_refused(seed, tmp_path):
    for number in some_of(range(seed, seed + 20), "aliases"):
        path = tmp_path / f"aliases_{number}.py"
        source = Writer(number).program()
        program = loaded(source, path)
        values = [program(x) for x in POINTS]
        gradients = [wg.grad(program)(x) for x in POINTS]
        jitted = wg.jit(program)
        assert not outcome(lambda: [jitted(x) for x in POINTS], values, path), source  # noqa: B023 - called at once
        if number % 5 == 0:
            modes = [wg.jit(wg.grad(program)), wg.grad(jitted), wg.jit(wg.vmap(wg.grad(program)))]
            for mode, points in zip(modes, (POINTS, POINTS, [np.stack(POINTS)]), strict=True):
                wanted = gradients if len(points) > 1 else [gradients]
                assert not outcome(lambda: [mode(x) for x in points], wanted, path), source  # noqa: B023 - called at once


@pytest.mark.parametrize("seed", range(0, 80, 40))
def test_random_programs_with_ndarrays_that_have_aliases_are_right_or_refused(seed, tmp_path):
    for number in some_of(range(seed, seed + 40), "ndarrays"):
        path = tmp_path / f"plain_{number}.py"
        source = PlainWriter(number).program()
        program = loaded(source, path)
        values = [program(x) for x in POINTS]
        jitted = wg.jit(program)
        assert not outcome(lambda: [jitted(x) for x in POINTS], values, path), source  # noqa: B023 - called at once


def test_loops_end_that_leave_what_they_computed_from_constants_alone() -> None:
    constant = wg.tensor([[1.0, 2.0], [3.0, 4.0]])

    def program(x):
        n, v, row = 0, x, x
        while np.sum(x) > -5.0 and n < 3:
            n += 1
            v = 2.0 * (constant * 2.0)[0] + 1.0
            v[1] = 7.0
            row = constant[1]
        return v * x + row

    x = np.array([0.5, 0.6])
    np.testing.assert_array_equal(wg.jit(program)(x), program(x))


def chosen_name(x, s):
    array = np.zeros((), like=x)
    found = array
    if x[0] > 0.5:
        found = s
    array[()] = x[1]
    return found


def chosen_item(x, s):
    array = np.zeros((), like=x)
    items = [array, s]
    if x[0] > 0.5:
        items[0] = s
    items[0] += 1.0
    return array, items[0]


def in_place_under_one_name(x, s):
    array = found = np.zeros((), like=x)
    if x[0] > 0.5:
        found = s
    for _ in range(2):
        found += x[1]
        if x[0] > 0.3:
            found *= 3.0
    return array * 1.0, found, s


def the_scalar_that_was_chosen(x, s):
    scalar = s
    if x[0] > 0.5:
        s = np.zeros_like(s)
    s += 1.0
    return scalar, s


def two_scalars_and_an_array(x, s):
    array, scalar = np.zeros((), like=x), x[1]
    found = array if x[0] > 0.5 else s
    if x[1] > 0.5:
        found = scalar
    found += 2.0
    return array * 1.0, scalar, s, found


@pytest.mark.parametrize(
    "program",
    [chosen_name, chosen_item, in_place_under_one_name, the_scalar_that_was_chosen, two_scalars_and_an_array],
)
def test_what_may_be_a_scalar_or_an_array_without_axes_is_written_to_as_such(program):
    for first in (0.4, 0.6):
        x = np.array([first, 0.3])
        expected = program(x, np.float64(0.7))
        np.testing.assert_array_equal(wg.jit(program)(x, np.float64(0.7)), expected)


def another_name(x, s):
    if x[0] > 0.5:
        s = np.zeros_like(s)
    other = s
    s += 1.0
    return other * 1.0


def another_item(x, s):
    items = [s, s] if x[0] > 0.5 else [np.zeros_like(s)] * 2
    items[1] *= 3.0
    return items[0] * 1.0


def another_name_in_a_branch(x, s):
    other = s = s if x[0] > 0.5 else np.zeros_like(s)
    if x[1] > 0.2:
        s -= 2.0
    return other * 1.0


def another_name_in_a_loop(x, s):
    other = s = s if x[0] > 0.5 else np.zeros_like(s)
    for i in range(2):
        if x[i] > 0.2:
            s -= 2.0
    return other * 1.0


def what_is_chosen_again(x, s):
    other = found = s if x[0] > 0.5 else np.zeros_like(s)
    if x[1] > 0.5:
        found = x[1]
    found /= 2.0
    return other * 1.0


def another_name_of_what_a_loop_made_an_array(x, s):
    for i in range(2):
        if x[i] < 0.0:
            break
        s = np.zeros_like(s)
    other = s
    s += 1.0
    return other * 1.0


def another_name_of_what_a_loop_made_a_scalar(x, s):
    array, k = np.zeros_like(s), 0
    while k < x[0] * 2.0:
        array = s
        k += 1
    other = array
    array += 1.0
    return other * 1.0


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (another_name, "s += 1.0"),
        (another_item, "items[1] *= 3.0"),
        (another_name_in_a_branch, "s -= 2.0"),
        (another_name_in_a_loop, "s -= 2.0"),
        (what_is_chosen_again, "if x[1] > 0.5:"),
        (another_name_of_what_a_loop_made_an_array, "s += 1.0"),
        (another_name_of_what_a_loop_made_a_scalar, "array += 1.0"),
    ],
)
def test_in_place_operators_on_what_may_be_a_scalar_or_an_array_are_lost_to_other_names(program, line):
    with pytest.raises(GraphError) as caught:
        wg.jit(program)(np.array([0.6, 0.3]), np.float64(0.7))
    text, place = str(caught.value).split("\n")
    assert text == (
        "in-place operator: a scalar or an array without axes, as a traced value decides, that has got another value "
        "since; it must be known which, because scalars do not change. Use it under one name only, or make an array of "
        "it before, as by numpy.copy."
    )
    assert place.endswith(line)


def a_row_chosen_among_rows(x):
    rows = list(x * 1.0)
    row = rows[0] if x[0, 0] > 0 else rows[1]
    row += 10.0
    return row, rows[1]


def rows_that_change_places(x):
    p, q = x * 1.0
    first = p
    if x[0, 0] > 0:
        p, q = q, p
    p *= 2.0
    return p, first


def a_view_behind_another(x):
    array = found = (x * 0.7).T
    if x[0, 0] > 0:
        found = found.real[::-1]
    found += 1.0
    return found, array


def a_view_of_what_a_loop_turns_round(x):
    array = found = (x * 0.7).T
    k = 0
    while k < x[0, 0] * 4:
        found = found[:, ::-1]
        k += 1
    found[1, 0] = 7.0
    return found, array


def a_row_written_to_in_a_branch(x):
    p, q = x * 1.0
    found = p * 1.0
    if x[0, 0] > 0:
        row = q if x[0, 1] > 0 else p
        row *= 2.0
        found = row * 1.0
    return found, q


def a_column_beside_a_row(x):
    array = x * 1.0
    row, column, found = array[0], array[:, 0], array[1]
    if x[0, 0] > 0:
        found = row
    found *= 2.0
    return found, column


def the_other_name(x):
    first = array = x * 1.0
    if x[0, 0] < 0:
        array = array[:, ::-1]
    flat = array.ravel()
    flat *= 10.0
    return flat, first


def the_other_name_of_what_is_in_memory_order(x):
    first = array = x * 1.0
    if x[0, 0] < 0:
        array = array[:, ::-1]
    flat = np.ravel(array, order="K")
    flat[0] = 10.0
    return flat, first


def a_row_of_the_other_name(x):
    array = x * 1.0
    row = array[0]
    if x[0, 0] < 0:
        array = (array * 2.0).T.copy().T
    flat = array.reshape(-1)
    flat *= 10.0
    return flat, row


def what_is_flat_after_the_other_name(x):
    first = array = x * 1.0
    if x[0, 0] < 0:
        array = array[:, ::-1]
    flat = array.ravel()
    first *= 10.0
    return first, flat


def two_that_are_flat(x):
    array = x * 1.0
    if x[0, 0] < 0:
        array = array[:, ::-1]
    one, other = array.ravel(), array.reshape(-1)
    one *= 10.0
    return one, other


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (a_row_chosen_among_rows, "row = rows[0] if x[0, 0] > 0 else rows[1]"),
        (rows_that_change_places, "if x[0, 0] > 0:"),
        (a_view_behind_another, "if x[0, 0] > 0:"),
        (a_view_of_what_a_loop_turns_round, "while k < x[0, 0] * 4:"),
        (a_row_written_to_in_a_branch, "row = q if x[0, 1] > 0 else p"),
        (a_column_beside_a_row, "if x[0, 0] > 0:"),
        (the_other_name, "flat = array.ravel()"),
        (the_other_name_of_what_is_in_memory_order, 'flat = np.ravel(array, order="K")'),
        (a_row_of_the_other_name, "flat = array.reshape(-1)"),
        (what_is_flat_after_the_other_name, "flat = array.ravel()"),
        (two_that_are_flat, "one, other = array.ravel(), array.reshape(-1)"),
    ],
)
def test_a_write_to_what_may_be_one_of_several_views_is_lost_to_the_others_and_to_all_names(program, line):
    point = np.array([[0.4, -0.3, 0.2], [0.1, 0.5, -0.6]])
    written, other = (wg.jit(lambda x, k=k: program(x)[k] * 1.0) for k in range(2))
    np.testing.assert_array_equal(written(point), program(point)[0])
    for function in (other, wg.grad(lambda x: np.sum(other(x)))):
        with pytest.raises(GraphError, match="has been written to since") as caught:
            function(point)
        assert str(caught.value).split("\n")[-1].endswith(line)


def changed_twice(r):
    s = np.copy(r * 1.0)
    before = s
    s -= 0.5
    between = s
    s *= before
    return before, between, s


def zeroed(r):
    s = np.where(r, r, r)
    before = s
    s *= 2.0
    s -= s
    return before, s


@pytest.mark.parametrize("f", [changed_twice, zeroed])
def test_an_array_without_axes_of_a_lane_stays_one_when_all_of_it_is_written(f):
    points = np.array([0.3, -0.054])
    expected = np.array([f(r) for r in points]).T
    for found in (wg.vmap(f)(points), wg.vmap(wg.vmap(f))(points[:, None])):
        np.testing.assert_array_equal(np.array([np.asarray(x).ravel() for x in found]), expected)


def from_copy(m):
    """Return part of a new array, and that array."""
    own = m * 1.0
    return own[0], own


def under_budget(u, m):
    """Repeat a step that hands on part of what it was given."""
    with wg.memory_budget("1 MB"):
        return wg.fori_loop(0, 1, lambda i, c: (c[1][0], c[1]), (u, m))


@pytest.mark.parametrize(
    "call",
    [
        under_budget,
        lambda u, m: wg.cond(np.sum(u) > 0, lambda u, m: (m[0], m), lambda u, m: (u, m), u, m),
        lambda u, m: wg.cond(np.sum(u) > 0, lambda u: (m[0], m), lambda u: (u, m), u),
        lambda u, m: wg.switch(1, [lambda u, m: (u, m), lambda u, m: from_copy(m)], u, m),
        lambda u, m: wg.checkpoint(lambda u, m: from_copy(m))(u, m),
        lambda u, m: wg.checkpoint(lambda u, m: (m[0], m))(u, m),
        lambda u, m: (wg.vmap(lambda x: x)(m)[0], m),
        lambda u, m: (wg.jvp(lambda x: x, (m,), (m,))[0][0], m),
    ],
)
def test_results_of_functions_share_no_memory_in_any_mode(call):
    def f(u, m):
        m = m * 1.0
        part, whole = call(u, m)
        part[0] = 9.0
        return np.sum(whole) + np.sum(m) + np.sum(u)

    u, m = np.ones(2), np.ones((2, 2))
    assert f(u, m) == 10.0
    assert wg.jit(f, native=False)(u, m) == wg.jit(f, native=True)(u, m) == 10.0
    assert wg.value_and_grad(f)(u, m)[0] == 10.0
    assert wg.vmap(f)(u[None], m[None])[0] == 10.0
