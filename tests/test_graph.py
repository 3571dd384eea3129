"""Graphs: tracing, printing, evaluating, comparing, checking, gradients and pictures."""

import functools
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import wengert as wg
import wengert.core.graph.graph_executor
import wengert.numpy as wnp
from tests.cases import together
from wengert.core.graph.loop_spec import LoopSpec
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.graph import Equation, Graph, Variable, check, gradient, render, to_dot, trace

FLOAT = np.dtype(float)


def textbook(x1, x2):
    return np.log(x1) + x1 * x2 - np.sin(x2)


# Tracing and printing


def test_a_graph_prints_as_a_wengert_list():
    assert (
        str(trace(textbook)(2.0, 5.0))
        == """\
graph(x1: float, x2: float)
  v1 = log(x1)  # float64[]
  v2 = multiply(x1, x2)  # float
  v3 = add(v1, v2)  # float64[]
  v4 = sin(x2)  # float64[]
  v5 = subtract(v3, v4)  # float64[]
  return v5"""
    )


def test_the_gradient_graph_has_the_textbook_number_of_equations():
    graph = gradient(trace(textbook)(2.0, 5.0))
    assert (
        str(graph)
        == """\
graph(x1: float, x2: float)
  v1 = log(x1)  # float64[]
  v2 = multiply(x1, x2)  # float
  v3 = add(v1, v2)  # float64[]
  v4 = sin(x2)  # float64[]
  v5 = subtract(v3, v4)  # float64[]
  v6 = cos(x2)  # float64[]
  v7 = negative(v6)  # float64[]
  v8 = add(v7, x1)  # float64[]
  v9 = divide(float64(1.0), x1)  # float64[]
  v10 = add(x2, v9)  # float64[]
  return v5, v10, v8"""
    )
    assert graph(2.0, 5.0) == (np.log(2.0) + 10.0 - np.sin(5.0), 5.5, 2.0 - np.cos(5.0))


def test_literals_parameters_and_several_results_are_printed():
    def function(x):
        y = np.sum(x * np.arange(6.0).reshape(2, 3), axis=0) + np.array([1.0, 2.0, 3.0])
        sign, size = np.linalg.slogdet(np.eye(2) * y[0])
        return sign, size, 4.0

    text = str(trace(function)(np.ones((2, 3))))
    assert "multiply(x, const float64[2,3])  # float64[2,3]" in text
    assert "sum(v1, axis=(0,), keepdims=False)  # float64[3]" in text
    assert "[1.0, 2.0, 3.0])" in text
    assert "= slogdet(" in text
    assert "# float64[], float64[]" in text
    assert text.endswith("4.0")


def test_source_lines_can_be_shown():
    def function(x):
        return np.exp(x) * 2.0  # shown

    lines = render(trace(function)(1.0), positions=True).splitlines()
    assert all("test_graph.py" in line and "return np.exp(x) * 2.0  # shown" in line for line in lines[1:3])
    assert "test_graph.py" not in str(trace(function)(1.0))


class Point(NamedTuple):
    a: float
    b: float


def test_inputs_are_called_as_the_arguments_are():
    def function(p, q, *rest, k, **options):
        return p["w"] * p["b"][0] + q.a * q.b + rest[0] + rest[1] + k + options["z"]

    graph = trace(function)({"w": 1.0, "b": [2.0]}, Point(1.0, 2.0), 1.0, 2.0, k=1.0, z=2.0)
    assert [v.name for v in graph.inputs] == ["p.b.0", "p.w", "q.a", "q.b", "rest.0", "rest.1", "k", "z"]
    assert trace(functools.partial(function, {"w": 1.0, "b": [2.0]}))(Point(1.0, 2.0), 1.0, 2.0, k=1.0, z=2.0)
    assert str(trace(np.sin)(1.0)).startswith("graph(x")


def test_examples_may_be_anything_with_shape_and_dtype():
    graph = trace(lambda x: x.sum())(Variable((2**20, 2**20), FLOAT))
    assert graph.inputs[0].shape == (2**20, 2**20)


def test_examples_that_are_no_arrays_are_refused():
    with pytest.raises(
        DtypeError, match=r"^trace: 'sum' as the example of mode; a number or a numeric array is needed"
    ):
        trace(lambda x, mode: x)(1.0, "sum")


def test_looking_at_elements_is_refused():
    with pytest.raises(GraphError, match=r"the elements of .* were asked for while the function was being traced"):
        trace(lambda x: float(x))(1.0)


def test_captured_tensors_become_inputs_only_if_they_are_differentiated():
    weight, constant = wg.tensor(3.0, requires_grad=True), wg.tensor(2.0)
    graph = trace(lambda x: x * weight * constant)(1.0)
    assert len(graph.inputs) == 2
    graph(1.0, weight)[0].backward()
    assert float(weight.grad) == 2.0


def test_what_is_not_needed_is_left_out_and_nothing_is_computed_twice():
    def function(x):
        np.exp(x)
        return np.sin(x) + np.sin(x) * (2.0 * 3.0)

    assert [e.primitive.name for e in trace(function)(1.0).equations] == ["sin", "multiply", "add"]


# Evaluation


def test_a_graph_is_called_like_a_function_and_gives_the_same_bits():
    def function(x, y):
        return np.tanh(x @ y), {"norm": np.linalg.norm(x)}

    x, y = np.random.default_rng(0).normal(size=(3, 4)), np.random.default_rng(1).normal(size=(4, 2))
    graph = trace(function)(x, y)
    check(graph)
    product, norm = graph(x, y)
    np.testing.assert_array_equal(product, np.tanh(x @ y), strict=True)
    assert norm == np.linalg.norm(x)


def test_evaluation_drops_values_after_their_last_use(monkeypatch):
    graph = trace(lambda x: np.sum(np.exp(np.sin(np.cos(x)))))(np.ones(1000))
    made, alive = [], []
    original = wengert.core.graph.graph_executor.step_of

    def step_of(equation, operands, results):
        step = original(equation, operands, results)

        def noting(values):
            alive.append(sum(value() is not None for value in made))
            step(values)
            if isinstance(values[results[0]], np.ndarray):
                made.append(weakref.ref(values[results[0]]))

        return noting

    monkeypatch.setattr(wengert.core.graph.graph_executor, "step_of", step_of)
    graph(np.ones(1000))
    assert alive == [0, 1, 1, 1]


def test_a_graph_is_differentiated_like_any_function():
    graph = trace(textbook)(2.0, 5.0)
    assert wg.grad(lambda x: graph(x, 5.0)[0])(2.0) == 5.5
    np.testing.assert_array_equal(
        wg.vmap(lambda x: graph(x, 5.0)[0])(np.array([2.0, 3.0])), textbook(np.array([2.0, 3.0]), 5.0)
    )


def test_wrong_arguments_are_refused():
    graph = trace(lambda x, y: x + y)(np.ones(2), 1.0)
    with pytest.raises(ShapeError, match=r"^graph: 1 arguments for 2 inputs; one for each is needed\. Pass as many\.$"):
        graph(np.ones(2))
    with pytest.raises(ShapeError, match=r"^graph: shape \(3,\) for input x: float64\[2\]; shape \(2,\) is needed"):
        graph(np.ones(3), 1.0)


# Equality


def test_equal_graphs_are_equal_and_hash_alike():
    one, other = trace(textbook)(2.0, 5.0), trace(lambda a, b: np.log(a) + a * b - np.sin(b))(1.0, 1.0)
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other, gradient(one)}) == 2
    assert one != "graph"


@together(
    "one, other",
    [
        (lambda x: x + 1.0, lambda x: x + 2.0),
        (lambda x: x + 0.0, lambda x: x + -0.0),
        (lambda x: x + 1, lambda x: x + 1.0),
        (lambda x: x + 1, lambda x: x + True),
        (lambda x: x * np.nan, lambda x: x * 1.0),
        (lambda x: x + complex(0.0, -0.0), lambda x: x + complex(0.0, 0.0)),
        (lambda x: x + np.arange(3.0), lambda x: x + np.arange(3.0)[::-1]),
        (lambda x: x.sum(axis=0, keepdims=True), lambda x: x.sum(keepdims=False)),
        (lambda x: x[1:], lambda x: x[:-1]),
        (lambda x: (x, x + 1), lambda x: (x + 1, x)),
        (lambda x: x.astype("f4"), lambda x: x.astype("f2")),
        (np.sin, np.cos),
    ],
)
def test_different_graphs_differ(one, other):
    x = np.ones(3)
    assert trace(one)(x) == trace(one)(x)
    assert trace(one)(x) != trace(other)(x)
    assert trace(one)(x) != trace(one)(np.ones(3, "f4"))


def test_not_a_number_equals_itself():
    assert trace(lambda x: x * np.nan)(1.0) == trace(lambda x: x * np.nan)(1.0)


# Checking


def variable(*shape, dtype=FLOAT, name=""):
    return Variable(shape, np.dtype(dtype), name)


def equation(name, inputs, outputs, **params):
    return Equation(PRIMITIVES[name], tuple(inputs), params, tuple(outputs))


X, Y, Z = variable(name="x"), variable(name="y"), variable(3, name="z")
INNER = Graph([X], [], [Y])
STAYS = Graph([W := variable()], [], [W])
GOES_ON = Graph([W := variable()], [], [True])

MALFORMED = {
    "an input twice": (Graph([X, X], [], [X]), "is bound twice"),
    "a result that is an input": (Graph([X], [equation("sin", [X], [X])], [X]), "is bound twice"),
    "a result twice": (Graph([X], [equation("sin", [X], [Y]), equation("cos", [X], [Y])], [Y]), "is bound twice"),
    "used before bound": (
        Graph([X], [equation("sin", [Y], [Z]), equation("cos", [X], [Y])], [Z]),
        "before it is bound",
    ),
    "a cycle": (Graph([X], [equation("add", [X, Y], [Y])], [Y]), "used before it is bound"),
    "an unbound output": (Graph([X], [], [Y]), "used before it is bound"),
    "an input that is a number": (Graph([1.0], [], []), "in the place of a variable"),
    "a result that is a number": (Graph([X], [equation("sin", [X], [1.0])], []), "in the place of a variable|bound to"),
    "a literal that is text": (Graph([X], [equation("add", [X, "1"], [Y])], [Y]), "a literal of type str"),
    "a literal that is a list": (Graph([], [], [[1.0]]), "a literal of type list"),
    "a literal of objects": (Graph([], [], [np.array([None])]), "a literal of dtype object"),
    "a literal of dates": (Graph([], [], [np.datetime64("2020-01-01")]), "a literal of dtype datetime64"),
    "another shape": (
        Graph([X], [equation("sin", [X], [Z])], [Z]),
        r"sin bound to float64\[3\]; float64\[\] is what it gives",
    ),
    "another dtype": (Graph([X], [equation("sin", [X], [variable(dtype="f4")])], []), r"sin bound to .*float32"),
    "too few results": (Graph([X], [equation("sin", [X], [])], []), r"sin bound to nothing"),
    "too many results": (Graph([X], [equation("sin", [X], [Y, variable()])], []), "sin bound to"),
    "too few operands": (Graph([X], [equation("add", [X], [Y])], [Y]), "add that cannot be evaluated"),
    "too many operands": (Graph([X], [equation("sin", [X, X, X, X], [Y])], [Y]), "sin that cannot be evaluated"),
    "shapes that do not broadcast": (
        Graph([Z, v := variable(2)], [equation("add", [Z, v], [Y])], [Y]),
        "add that cannot be evaluated .*shapes that broadcast are needed",
    ),
    "a missing parameter": (Graph([Z], [equation("sum", [Z], [Y])], [Y]), "sum that cannot be evaluated"),
    "an unknown parameter": (Graph([X], [equation("sin", [X], [Y], colour=1)], [Y]), "sin that cannot be evaluated"),
    "a malformed sub-graph": (
        Graph([X], [equation("sin", [X], [Y], body=INNER)], [Y]),
        "used before it is bound",
    ),
    "a malformed sub-graph in a tuple": (
        Graph([X], [equation("sin", [X], [Y], branches=(INNER,))], [Y]),
        "used before it is bound",
    ),
    "a loop with two ends": (
        Graph([X], [equation("scan", [X], [Y], body=STAYS, cond=GOES_ON, spec=LoopSpec(0, 1, 3))], [Y]),
        "a loop of 3 iterations with a condition; one of both is needed",
    ),
}


@together("case", MALFORMED)
def test_malformed_graphs_are_refused(case):
    graph, message = MALFORMED[case]
    with pytest.raises(GraphError, match=rf"^graph: .*({message}).*\. Build graphs by tracing, or mend the pass"):
        check(graph)


def test_well_formed_graphs_pass():
    check(Graph([], [], []))
    check(Graph([X], [], [X, X, 1.0, np.arange(3.0)]))
    check(gradient(trace(textbook)(2.0, 5.0)))


# Gradients


def test_three_gradients_give_the_third_derivative():
    graph = trace(lambda x: np.exp(x) * np.sin(x))(1.0)
    third = gradient(gradient(gradient(graph)))
    check(third)
    values = [float(y) for y in third(0.7)]
    e, s, c = np.exp(0.7), np.sin(0.7), np.cos(0.7)
    np.testing.assert_allclose(values, [e * s, e * (s + c), 2 * e * c, 2 * e * (c - s)], rtol=1e-14)


def test_gradients_of_chosen_inputs_and_outputs():
    graph = trace(lambda x, n, y: (x * n + y**2, x**3))(2.0, 3, 5.0)
    assert graph == trace(lambda x, n, y: (x * n + y**2, x**3))(1.0, 1, 1.0)
    for wrt in (None, [0, 2], ["x", "y"], [0, -1]):
        assert gradient(graph, wrt, output=0)(2.0, 3, 5.0) == (31.0, 8.0, 3.0, 10.0)
    assert gradient(graph, "y", output=0)(2.0, 3, 5.0) == (31.0, 8.0, 10.0)
    assert gradient(graph, 0)(2.0, 3, 5.0) == (31.0, 8.0, 12.0)
    assert [v.name for v in gradient(graph).inputs] == ["x", "n", "y"]


def test_gradients_agree_with_the_transformation_bit_for_bit():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(4,))

    def function(x, y):
        return np.sum(np.tanh(x @ y) ** 2) + np.max(x) * wnp.std(y)

    found = gradient(trace(function)(x, y))(x, y)
    want = (function(x, y), *wg.grad(function, argnums=(0, 1))(x, y))
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_residuals_that_nothing_needs_are_left_out():
    graph = gradient(trace(lambda x: 3.0 * x)(1.0))
    assert [e.primitive.name for e in graph.equations] == ["multiply"]
    assert graph.outputs[1] == 3.0
    names = [e.primitive.name for e in gradient(trace(lambda x: np.exp(np.tanh(x)))(1.0)).equations]
    assert names.count("exp") == names.count("tanh") == 1


def test_a_gradient_that_is_zero():
    assert gradient(trace(lambda x, y: x * 2.0)(1.0, np.ones(2)), "y")(1.0, np.ones(2))[1].tolist() == [0.0, 0.0]
    assert gradient(trace(lambda x: 4.0)(1.0))(1.0) == (4.0, 0.0)


def test_what_cannot_be_differentiated_is_refused():
    graph = trace(lambda x, n: (x * 2.0, n * 2, x * 1j, np.sum(x)))(np.ones(2), 3)
    with pytest.raises(ShapeError, match=r"^gradient: an output of shape \(2,\); a scalar, of shape \(\), is needed"):
        gradient(graph, output=0)
    with pytest.raises(DtypeError, match=r"^gradient: an output of dtype int64; a real float is needed"):
        gradient(graph, output=1)
    with pytest.raises(DtypeError, match="an output of dtype complex128"):
        gradient(trace(lambda x: x * 1j)(1.0))
    with pytest.raises(DtypeError, match=r"^gradient: the input n: int; float or complex inputs are needed"):
        gradient(graph, "n")
    with pytest.raises(UsageError, match=r"^gradient: wrt='z' for a graph of 2 inputs \(x, n\); positions or names"):
        gradient(graph, ["z"])
    with pytest.raises(UsageError, match=r"^gradient: wrt=2 for a graph of 2 inputs"):
        gradient(graph, 2)
    with pytest.raises(UsageError, match=r"^gradient: output=4 of a graph with 4 outputs; one of them is needed"):
        gradient(graph, output=4)


# Pictures


def test_the_dot_text_shows_nodes_edges_and_escapes():
    x = Variable((), FLOAT, 'a"b')
    text = to_dot(Graph([x], [equation("add", [x, 1.0], [Y])], [Y, 2.0]))
    assert '[label="a\\"b: float64[]", shape=box]' in text
    assert text.count("->") == 4


def test_sub_graphs_are_drawn_in_frames():
    inner = trace(lambda x: x * 2.0)(1.0)
    text = to_dot(Graph([X], [equation("sin", [X], [Y], body=inner)], [Y]))
    assert "subgraph cluster_g_e0_0 {" in text
    assert 'label="sin body"' in text


def test_zeros_that_parts_are_added_to_are_one_element_in_memory():
    def f(x):
        return wg.grad(lambda y: np.sum(np.sin(y[1:, ::-2]) * y[:-1, :3]))(x)

    x = np.arange(20.0).reshape(4, 5)
    for argument in (x, np.asfortranarray(x)):
        graph = trace(f)(argument)
        text = str(graph)
        assert "full 0.0 float64[4,5]" in text
        assert "const" not in text
        (found,) = graph(argument)
        assert found.tobytes() == f(argument).tobytes()
        assert found.strides == f(argument).strides


def test_each_call_gives_constants_of_its_own() -> None:
    captured = np.arange(4.0)
    graph = wg.graph.trace(lambda x: (x * 2, np.zeros((0, 3)), captured, captured.reshape(2, 2)[1:]))(np.ones(3))
    for _ in range(2):
        _, empty, whole, part = graph(np.ones(3))
        assert (whole.tolist(), part.tolist()) == ([0, 1, 2, 3], [[2, 3]])
        assert empty.flags.writeable
        whole[:], part[:] = 7, 7
    given = np.ones(3)
    given.flags.writeable = False
    assert wg.graph.trace(lambda x: x)(given)(given)[0] is given
