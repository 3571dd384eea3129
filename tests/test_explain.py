"""Explanations: the list, its adjoints, and its three forms."""

import collections
import io
from dataclasses import dataclass

import numpy as np
import pytest
from rich.console import Console

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import DtypeError, EscapedValueError, ShapeError, UsageError


def classic(x1, x2):
    return np.log(x1) + x1 * x2 - np.sin(x2)


def test_steps_and_adjoints_of_the_classic_example():
    found = wg.explain(classic, 2.0, 5.0)
    assert [(s.name, s.formula) for s in found.inputs] == [("x1", ""), ("x2", "")]
    assert [f"{s.name} = {s.formula}" for s in found.forward] == [
        "v1 = log(x1)",
        "v2 = x1 * x2",
        "v3 = v1 + v2",
        "v4 = sin(x2)",
        "v5 = v3 - v4",
    ]
    assert [s.value for s in found.forward] == [np.log(2.0), 10.0, np.log(2.0) + 10.0, np.sin(5.0), 11.652071455223084]
    assert [f"{a.name} = {a.formula}" for a in found.reverse] == [
        "v5' = 1",
        "v4' = v5' * dv5/dv4",
        "v3' = v5' * dv5/dv3",
        "v2' = v3' * dv3/dv2",
        "v1' = v3' * dv3/dv1",
        "x2' = v4' * dv4/dx2 + v2' * dv2/dx2",
        "x1' = v2' * dv2/dx1 + v1' * dv1/dx1",
    ]
    assert [a.value for a in found.reverse] == [1.0, -1.0, 1.0, 1.0, 1.0, 1.7163378145367738, 5.5]
    assert found.value == 11.652071455223084
    assert found.gradient == (5.5, 1.7163378145367738)


def test_it_prints_as_a_list():
    assert (
        repr(wg.explain(lambda x, y: -x * np.exp(y), 3.0, 0.0))
        == """\
lambda x, y

forward
  x                      3.0
  y                      0.0
  v1 = -x               -3.0
  v2 = exp(y)            1.0
  v3 = v1 * v2          -3.0

reverse
  v3' = 1                1.0
  v2' = v3' * dv3/dv2   -3.0
  v1' = v3' * dv3/dv1    1.0
  y' = v2' * dv2/dy     -3.0
  x' = v1' * dv1/dx     -1.0

value     -3.0
gradient  (-1.0, -3.0)"""
    )


def test_value_and_gradient_are_those_of_value_and_grad():
    def f(p, x):
        return np.sum(np.tanh(p["w"] * x + p["b"]) ** 2)

    args = {"w": np.arange(6.0).reshape(2, 3), "b": 0.1}, np.array([1.0, 2.0, -1.0])
    value, gradient = wg.value_and_grad(f, argnums=(0, 1))(*args)
    found = wg.explain(f, *args)
    assert found.value == value
    assert list(found.gradient[0]) == ["w", "b"]
    np.testing.assert_array_equal(found.gradient[0]["w"], gradient[0]["w"])
    assert found.gradient[0]["b"] == gradient[0]["b"]
    np.testing.assert_array_equal(found.gradient[1], gradient[1])


def test_one_argument_gives_its_gradient_itself():
    assert wg.explain(lambda x: x**3, 2.0).gradient == 12.0


Point = collections.namedtuple("Point", "x y")


@dataclass
class Rates:
    fast: float
    slow: float


def test_leaves_are_named_as_one_writes_them():
    found = wg.explain(
        lambda p, r, *rest: p["w"][1] * p["q"].x + r.fast * rest[0] * rest[1],
        {"w": [1.0, 2.0], "q": Point(3.0, 4.0)},
        Rates(5.0, 6.0),
        7.0,
        8.0,
    )
    names = [step.name for step in found.inputs]
    assert sorted(names) == sorted(
        ["p['q'].x", "p['q'].y", "p['w'][0]", "p['w'][1]", "r.fast", "r.slow", "rest[0]", "rest[1]"]
    )
    assert {a.name: a.value for a in found.reverse}["r.fast'"] == 56.0


def test_unused_arguments_have_adjoint_zero():
    found = wg.explain(lambda x, y: x * 2, 1.0, np.ones(3))
    by_name = {a.name: a for a in found.reverse}
    assert by_name["y'"].formula == "0"
    np.testing.assert_array_equal(by_name["y'"].value, np.zeros(3))


def test_steps_get_another_letter_where_an_argument_is_called_v1():
    assert wg.explain(lambda v1: v1 * v1, 3.0).forward[0].name == "w1"


def test_operations_without_a_derivative_are_listed():
    found = wg.explain(lambda x: np.sum(np.where(x > 1, x, 0.0) * np.floor(x)), np.array([0.5, 1.5]))
    assert [s.formula for s in found.forward] == ["x > 1", "where(v1, x, 0.0)", "floor(x)", "v2 * v3", "sum(v4)"]
    assert [a.name for a in found.reverse] == ["v5'", "v4'", "v2'", "x'"]


def test_operations_with_several_results_have_a_step_for_each():
    found = wg.explain(lambda x: np.modf(x)[0] * x, 2.5)
    assert [(s.name, s.formula) for s in found.forward][:2] == [("v1", "modf(x)[0]"), ("v2", "modf(x)[1]")]
    assert found.reverse[-1].formula == "v3' * dv3/dx + v1' * dv1/dx"
    assert found.gradient == 3.0


def test_indices_and_assignments_are_written_out():
    def f(x):
        y = x * 2
        y[0] = x[-1]
        y[1:] += x[None, :2][0, ...]
        return y[[0, 0]].sum()

    found = wg.explain(f, np.array([1.0, 2.0, 3.0]))
    formulas = [s.formula for s in found.forward]
    assert "x[-1]" in formulas
    assert "v1 with [0] = v2" in formulas
    assert "x[None, :2]" in formulas
    assert any(text.endswith("[[0, 0]]") for text in formulas)
    np.testing.assert_array_equal(found.gradient, [0.0, 0.0, 2.0])


def test_values_are_those_of_their_time():
    def f(x):
        y = x * 1.0
        y[0] = 9.0
        return y.sum()

    x = np.array([1.0, 2.0])
    found = wg.explain(f, x)
    x[:] = 0
    np.testing.assert_array_equal(found.inputs[0].value, [1.0, 2.0])
    np.testing.assert_array_equal(found.forward[0].value, [1.0, 2.0])
    np.testing.assert_array_equal(found.forward[1].value, [9.0, 2.0])


def test_large_arrays_are_summarised():
    text = repr(wg.explain(lambda x: np.sum(x * np.ones((100, 64))), np.full((100, 64), 0.5)))
    assert "v1 = x * <100x64 array>" in text
    assert "(100, 64) [0.5, 0.5, 0.5, ..., 0.5]" in text
    assert len(text) < 1000


def test_the_middle_of_a_very_long_list_is_left_out():
    def f(x):
        for _ in range(5000):
            x = x + 0.5
        return x

    found = wg.explain(f, 1.0)
    assert len(found.forward) == 5000
    assert repr(found).count("\n") < 450
    assert "... 4801 more steps ..." in repr(found)


def test_long_sums_are_shortened():
    found = wg.explain(lambda x: wnp.sum(wnp.stack([x * i for i in range(20)])), 1.0)
    assert found.reverse[-1].formula.endswith("(16 more)")
    assert "... (14 more)" in found.forward[20].formula


def test_other_dtypes_are_told():
    assert "float32 [1.0, 2.0]" in repr(wg.explain(lambda x: np.sum(x * x), np.array([1, 2], np.float32)))


def test_source_lines_are_shown_where_there_are_several():
    def f(x):
        a = np.sin(x)
        return a * x

    found = wg.explain(f, 1.0)
    assert [step.position.text for step in found.forward] == ["a = np.sin(x)", "return a * x"]
    assert "test_explain.py:" in repr(found)
    assert "a = np.sin(x)" in repr(found)


def test_tensors_and_transformations_inside():
    found = wg.explain(lambda x: wg.grad(lambda z: z**3)(x), wg.tensor(2.0))
    assert float(found.value) == 12.0
    assert float(found.gradient) == 12.0
    assert "wengert" not in repr(found.gradient)


def test_explaining_inside_a_transformation_gives_plain_values():
    seen = []

    def f(x):
        seen.append(wg.explain(lambda y: y * x, 5.0))
        return x * x

    assert wg.grad(f)(3.0) == 6.0
    assert repr(seen[0]).count("15.0") == 2


def test_numpy_functions_can_be_explained():
    assert wg.explain(np.sin, 0.0).forward[0].formula == "sin(x)"
    assert wg.explain(np.sin, 0.0).gradient == 1.0


def test_keyword_arguments_are_constants():
    assert wg.explain(lambda x, power: x**power, 2.0, power=3).gradient == 12.0


def test_notebook_form_is_escaped():
    found = wg.explain(lambda x: np.where(x < 1, x, 0.0), 0.5)
    page = found._repr_html_()
    assert "x &lt; 1" in page
    assert "x < 1" not in page
    assert page.startswith("<table>")
    assert page.endswith("</table>")
    assert 'title="File &quot;' in page


@pytest.mark.parametrize("width", [20, 60, 100])
def test_terminal_form(width):
    console = Console(width=width, force_terminal=True, record=True, file=io.StringIO())
    console.print(wg.explain(classic, 2.0, 5.0))
    text = console.export_text()
    assert "classic(x1, x2)" in text
    if width > 60:
        assert "v4' * dv4/dx2 + v2' * dv2/dx2" in text
        assert "11.652071455223084" in text


def test_arrays_are_not_accepted_as_results():
    with pytest.raises(ShapeError, match=r"^explain: a function that returned shape \(2,\); a scalar"):
        wg.explain(lambda x: x * 2, np.ones(2))


def test_integers_are_not_differentiated():
    with pytest.raises(DtypeError) as error:
        wg.explain(lambda x, n: x**n, 2.0, 3)
    assert str(error.value) == (
        "explain: an argument n of type int; floats, arrays or Tensors of floats (or containers of them) are needed to "
        "differentiate. Convert it to float, or pass it by keyword."
    )


def test_values_that_escape_are_noticed():
    kept = []
    wg.explain(lambda x: kept.append(x) or x * x, 2.0)
    with pytest.raises(EscapedValueError, match="explain"):
        kept[0] * 2


def test_the_export_is_the_function():
    assert callable(wg.explain)
    assert "explain" in wg.__all__


def test_numbers_taken_for_arrays_are_no_steps():
    found = wg.explain(lambda x: np.maximum(abs(x), 1) * x, -2.0)
    assert [step.formula for step in found.forward] == ["abs(x)", "maximum(v1, 1)", "v2 * x"]
    assert [(a.name, a.formula, float(a.value)) for a in found.reverse] == [
        ("v3'", "1", 1.0),
        ("v2'", "v3' * dv3/dv2", -2.0),
        ("v1'", "v2' * dv2/dv1", -2.0),
        ("x'", "v3' * dv3/dx + v1' * dv1/dx", 4.0),
    ]
    jitted = wg.explain(wg.jit(lambda x: x**2 + 1), 2.0)
    assert [step.formula for step in jitted.forward] == ["x ** 2", "v1 + 1"]


def test_forward_mode_lists_derivatives_of_each_step():
    found = wg.explain(lambda x, y, k: k * x * np.exp(y), 3.0, wg.tensor(0.0), mode="forward", k=2.0)
    assert found.gradient == (2.0, 6.0)
    assert "  v3 = v1 * v2   6.0     2.0    6.0" in str(found)
    assert wg.explain(lambda w: np.sum(w**2), np.array([1.0, 2.0]), mode="forward").gradient.tolist() == [2.0, 4.0]
    with pytest.raises(UsageError, match=r"^explain: mode='fwd'; a mode is needed. Pass mode=\"forward\" or"):
        wg.explain(np.sin, 1.0, mode="fwd")
    with pytest.raises(UsageError, match=r"^explain: containers as d with mode=\"forward\"; numbers and arrays are"):
        wg.explain(lambda d: d["a"], {"a": 1.0}, mode="forward")
