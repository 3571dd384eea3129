"""`wengert compare`, and the modes and orders of `wengert grad`."""

import re

import numpy as np
import pytest

import wengert as wg
from wengert.cli import main
from wengert.cli.derivatives import compare, compare_formula
from wengert.cli.formula_parser import Formula
from wengert.cli.graph_expressions import expressions
from wengert.explanation import forward_explanation
from wengert.graph import trace


def classic(x1, x2):
    return np.log(x1) + x1 * x2 - np.sin(x2)


SYMBOLIC = """\
symbolic                  before sharing
  d/dx1 = x2 + 1.0 / x1   2 operations
  d/dx2 = -cos(x2) + x1   3 operations
"""
MODES = """\
modes                     value                 d/dx1   d/dx2                 adjoint
  x1                       2.0                  1.0     0.0                    5.5
  x2                       5.0                  0.0     1.0                    1.7163378145367738
  v1 = log(x1)             0.6931471805599453   0.5     0.0                    1.0
  v2 = x1 * x2             10.0                 5.0     2.0                    1.0
  v3 = v1 + v2             10.693147180559945   5.5     2.0                    1.0
  v4 = sin(x2)            -0.9589242746631385   0.0     0.28366218546322625   -1.0
  v5 = v3 - v4             11.652071455223084   5.5     1.7163378145367738     1.0
"""
END = """\
value       11.652071455223084
derivative  (5.5, 1.7163378145367738)
mode        reverse: 2 inputs, 1 output; forward mode takes 2 times as many passes
"""


def test_the_classic_example(capsys):
    assert main(["compare", "log(x1) + x1*x2 - sin(x2)", "x1=2", "x2=5"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("log(x1) + x1*x2 - sin(x2)\n\nnumeric ")
    assert SYMBOLIC in text
    assert MODES in text
    assert text.endswith(END)
    rows = [line.split() for line in text.splitlines() if line.startswith("  h = ")]
    assert [row[2] for row in rows] == [f"1e-{k:02}" for k in range(1, 13)]
    central = [float(row[4]) for row in rows]
    assert min(central) < 1e-9 < max(central[0], central[-1])
    assert central.index(min(central)) in (4, 5)


def test_one_number_shows_the_values_of_differences(capsys):
    assert main(["compare", "x**3", "x=2"]) == 0
    text = capsys.readouterr().out
    row = next(line for line in text.splitlines() if line.startswith("  h = 1e-01"))
    assert [float(word) for word in row.split()[3:]] == pytest.approx([12.61, 0.61, 12.01, 0.01], rel=0.02)
    assert "mode        either: 1 input, 1 output" in text


CASES = {
    "numbers": ("exp(x) * sin(y) / x", {"x": 2.0, "y": 3.0}),
    "vectors": ("sum(w * x) ** 2 + w[0]", {"w": np.ones(2), "x": np.arange(2.0)}),
    "one to many": ("sin(x) * [1, 2, 3][0] * y", {"x": 2.0, "y": np.arange(3.0)}),
    "many to many": ("sin(x) * y", {"x": np.arange(3.0), "y": 2.0}),
    "matrix": ("exp(outer(x, x))", {"x": np.array([0.1, 0.2])}),
    "constant": ("x * 0 + where(y > 0, y, 0)", {"x": 1.0, "y": 2.0}),
    "singular": ("sqrt(x)", {"x": 0.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_ways_agree(name):
    text, variables = CASES[name]
    formula = Formula(text, [f"{key}={np.asarray(value).tolist()}" for key, value in variables.items()])
    found = compare_formula(formula)
    assert found.counts[0] > 0
    exact = found.blocks(found.reverse)
    for ways in (found.blocks(found.forward), found.evaluated):
        for way, block, value in zip(ways, exact, variables.values(), strict=True):
            assert np.shape(way) == np.shape(block) == (*np.shape(found.reverse.value), *np.shape(value))
            np.testing.assert_allclose(way, block, rtol=1e-14)
    if name != "singular":
        assert min(d.errors[1] for d in found.differences) < 1e-8
    assert repr(found).count("\n") > 20


def test_operations_are_counted_before_and_after_sharing():
    found = compare(lambda x: np.exp(x) * np.sin(x), [1.0], ["x"], "product")
    (expression,) = found.symbolic
    assert expression.text == "exp(x) * cos(x) + sin(x) * exp(x)"
    assert expression.operations == 7
    assert found.counts[:2] == (3, 6)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x, y: (x + y) * x, "(x + y) * x"),
        (lambda x, y: x - (y - x), "x - (y - x)"),
        (lambda x, y: x - y - x, "x - y - x"),
        (lambda x, y: x / (y * x), "x / (y * x)"),
        (lambda x, y: (-x) ** y, "(-x) ** y"),
        (lambda x, y: -(x**y), "-x ** y"),
        (lambda x, y: (x**y) ** y, "(x ** y) ** y"),
        (lambda x, y: -(x + y), "-(x + y)"),
        (lambda x, y: x * -2.5, "x * (-2.5)"),
        (lambda x, y: np.sin(x + y), "sin(x + y)"),
    ],
)
def test_expressions_have_the_parentheses_that_they_need(function, text):
    (found,) = expressions(trace(function)(np.float64(2.0), np.float64(3.0)))
    assert found.text == text
    assert eval(text, {"x": 2.0, "y": 3.0, "sin": np.sin}) == pytest.approx(function(2.0, 3.0))  # noqa: S307 - ours


def test_expressions_of_shared_parts_do_not_take_long():
    def doubled(x):
        for _ in iter(range(100)):  # an iterator, so that it is written out
            x = x + x
        return x

    (found,) = expressions(trace(doubled)(np.float64(1.0)))
    assert found.operations == 2**100 - 1
    assert found.text.endswith("...")


def test_directions_have_names_that_are_free(capsys):
    assert main(["compare", "x * dx", "x=[1, 2]", "dx=3"]) == 0
    assert "d/dx along dx = dx_ * dx" in re.sub(" +", " ", capsys.readouterr().out)


def test_forward_mode_prints_tangents(capsys):
    assert main(["grad", "-x**3*y", "x=2", "y=3", "--mode", "forward", "--order=2"]) == 0
    assert (
        capsys.readouterr().out
        == """\
-x**3*y

forward         value   d/dx    d/dy
  x              2.0     1.0     0.0
  y              3.0     0.0     1.0
  v1 = x ** 3    8.0     12.0    0.0
  v2 = -v1      -8.0    -12.0   -0.0
  v3 = v2 * y   -24.0   -36.0   -8.0

value     -24.0
gradient  (-36.0, -8.0)
order 2   ((-36.0, -12.0), (-12.0, -0.0))
"""
    )


def test_forward_mode_in_a_notebook_and_on_a_terminal():
    found = forward_explanation(classic, [2.0, 5.0], ["x1", "x2"], "classic")
    assert '<th style="text-align: left">d/dx2</th>' in found._repr_html_()
    assert found.gradient == wg.grad(classic, (0, 1))(2.0, 5.0)
    assert [step.value for step in found.forward] == [step.value for step in wg.explain(classic, 2.0, 5.0).forward]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_orders(mode, capsys):
    assert main(["grad", "--order", "4", "-x**3", "x=2", "--mode", mode]) == 0
    assert capsys.readouterr().out.endswith("gradient  -12.0\norder 2   -12.0\norder 3   -6.0\norder 4   0.0\n")
    assert main(["grad", "sum(x**3)", "x=[1,2]", "--order", "2", "--mode", mode]) == 0
    assert capsys.readouterr().out.endswith("order 2   [[6.0, 0.0], [0.0, 12.0]]\n")


def test_pictures_of_derivatives(capsys, tmp_path):
    for name in ("picture.svg", "page.html"):
        path = tmp_path / name
        assert main(["grad", "log(x1) + x1*x2 - sin(x2)", "x1=2", "x2=5", "--picture", str(path)]) == 0
        assert "v1 = log(x1)" in path.read_text()
    assert capsys.readouterr().err == ""


NEEDED = "a name that ends in .html or .svg is needed. Rename it."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "x", "y=1"], "wengert compare: no value for the variable x; a value for each is needed. Add x=1, "
         "for instance."),
        (["compare", "x*", "x=1"], None),
        (["compare", "x + modf(x)", "x=1"], None),
        (["compare", "modf(x)", "x=1"], "wengert compare: a formula that gives several values; one number is needed. "
         "Choose one, as in modf(x)[0], or add them up."),
        (["compare", "x * 1j", "x=[1,2]"], "wengert compare: a formula that gives a complex number; a real one is "
         "needed. Take its real(...) or abs(...)."),
        (["compare", "abs(x)", "x=1j"], "wengert compare: complex x; real variables are needed here. Take real and "
         "imaginary part apart."),
        (["compare", "sum(x)", "x=" + str([1] * 101)], "wengert compare: variables of 101 elements, with 101 "
         "derivatives; at most 100 are needed. Take smaller arrays, or use wengert.grad in Python."),
        (["compare", "outer(x, x)", "x=" + str([1] * 11)], "wengert compare: a formula that gives 121 numbers; 1 to "
         "100 are needed. Take smaller arrays."),
        (["compare", "x[:0]", "x=[1]"], "wengert compare: a formula that gives 0 numbers; 1 to 100 are needed. Take "
         "smaller arrays."),
        (["compare"], "wengert compare: the following arguments are required: formula, name=value; a valid command "
         "line is needed. See wengert compare --help."),
        (["grad", "abs(x)", "x=1j", "--mode", "forward"], "wengert grad: complex x; real variables are needed here. "
         "Take real and imaginary part apart."),
        (["grad", "x", "x=1", "--order", "0"], "wengert grad: argument --order: '0' is not a positive whole number; a "
         "valid command line is needed. See wengert grad --help."),
        (["grad", "x", "x=1", "--order", "9"], "wengert grad: --order 9; at most 8 is needed. Use wengert.taylor in "
         "Python, whose time grows with the square of the order."),
        (["grad", "sum(x)", "x=" + str([1] * 22), "--order=3"], "wengert grad: variables of 22 elements, with 10648 "
         "derivatives of order 3; at most 10000 are needed. Take smaller arrays, or use wengert.grad in Python."),
        (["grad", "x", "x=1", "--mode", "sideways"], None),
        (["grad", "x", "x=1", "--picture"], None),
        (["grad", "x", "x=1", "--picture", "x.png"], f"wengert grad: --picture 'x.png'; {NEEDED}"),
    ],
)  # fmt: skip
def test_mistakes(capsys, arguments, message):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    if message is not None:
        assert error == f"{message}\n"
