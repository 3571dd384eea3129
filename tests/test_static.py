"""The static style: expressions of placeholders, gradients as expressions, evaluation of what was asked for."""

import numpy as np
import pytest

import wengert as wg
import wengert.core.graph.graph_executor
import wengert.numpy as wnp
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.graph import Executor, check, gradients, placeholder, to_dot


@pytest.fixture
def evaluated(monkeypatch):
    """The primitives that evaluation applies, in order."""
    names = []
    original = wengert.core.graph.graph_executor.step_of

    def step_of(equation, operands, results):
        step = original(equation, operands, results)

        def noting(values):
            names.append(equation.primitive.name)
            step(values)

        return noting

    monkeypatch.setattr(wengert.core.graph.graph_executor, "step_of", step_of)
    return names


def run(expression, **feeds):
    return Executor(expression).run(feeds)


# Expressions


def test_placeholders_made_apart_combine():
    def one():
        return placeholder("x", 3) * 2.0

    def other():
        return placeholder("y")

    both = one() + other()
    assert (both.shape, both.dtype) == ((3,), np.dtype(float))
    np.testing.assert_array_equal(run(both, x=np.arange(3.0), y=1.0), [1.0, 3.0, 5.0])


def test_operators_methods_and_functions_of_both_namespaces():
    x, y = placeholder("x", (2, 3)), placeholder("y", 3)
    made = [
        *(x + y, 2.0 - x, x @ y, -x, x**2, x[1:, ::-1], x > y, abs(x)),
        *(x.sum(axis=0), x.T, x.reshape(3, 2), x.mean()),
        *(np.exp(x), np.concatenate([x, y[None]]), np.linalg.norm(y), wnp.where(x > 0, x, 0.0), wnp.stack([y, y])),
    ]
    a, b = np.random.default_rng(0).normal(size=(2, 3)), np.arange(3.0)
    want = [
        *(a + b, 2.0 - a, a @ b, -a, a**2, a[1:, ::-1], a > b, abs(a)),
        *(a.sum(axis=0), a.T, a.reshape(3, 2), a.mean()),
        *(np.exp(a), np.concatenate([a, b[None]]), np.linalg.norm(b), np.where(a > 0, a, 0.0), np.stack([b, b])),
    ]
    for found, value in zip(Executor(made).run({x: a, y: b}), want, strict=True):
        np.testing.assert_array_equal(found, value, strict=True)


def test_writing_to_part_of_an_expression():
    x = placeholder("x", 4)
    y = x * 1.0
    y[1:3] = 7.0
    y[::2] += x[::2]
    np.testing.assert_array_equal(run(y, x=np.arange(4.0)), [0.0, 7.0, 9.0, 3.0])
    np.testing.assert_array_equal(run(gradients(y.sum(), x), x=np.arange(4.0)), [2.0, 0.0, 1.0, 1.0])


def test_captured_arrays_are_constants_and_keep_their_values():
    constant = np.ones(2)
    y = placeholder("x", 2) * constant
    constant[:] = 5.0
    np.testing.assert_array_equal(run(y, x=np.array([1.0, 2.0])), [1.0, 2.0])


def test_the_printed_form_says_what_it_is():
    x = placeholder("x", (2, 3), "f4")
    assert repr(x) == "tensor(shape=(2, 3), dtype=float32, placeholder x)"
    assert repr(x * 2) == "tensor(shape=(2, 3), dtype=float32, expression)"


@pytest.mark.parametrize("look", [bool, float, int, np.asarray, lambda x: x.item()])
def test_expressions_have_no_elements(look):
    with pytest.raises(GraphError, match=r"^(expression|asarray|float|bool|int|index|item): "):
        look(placeholder("x"))


def test_long_chains_need_no_recursion():
    x = placeholder("x")
    y = x
    for _ in range(5_000):
        y = y * 1.0001
    slope = gradients(y, x)
    assert float(run(slope, x=1.0)) == pytest.approx(1.0001**5_000)
    del y, slope


def test_names_and_shapes_are_checked():
    with pytest.raises(UsageError, match=r"^placeholder: the name ''; a string is needed, not empty\. Name it\.$"):
        placeholder("")
    with pytest.raises(UsageError, match=r"^placeholder: shape \(-1, 2\) of x; lengths from 0 are needed"):
        placeholder("x", (-1, 2))
    with pytest.raises(DtypeError, match=r"^placeholder: dtype object of x; a numeric dtype is needed"):
        placeholder("x", (), object)


# Gradients


def test_gradients_of_several_inputs_in_containers():
    x, y = placeholder("x"), placeholder("y")
    f = np.log(x) + x * y - np.sin(y)
    found = gradients(f, {"x": x, "y": [y]})
    values = Executor(found).run({x: 2.0, y: 5.0})
    assert values == {"x": 5.5, "y": [2.0 - np.cos(5.0)]}


def test_gradients_of_gradients():
    x = placeholder("x")
    orders = [np.sin(x)]
    for _ in range(4):
        orders.append(gradients(orders[-1], x))
    np.testing.assert_allclose(run(orders, x=0.3), [np.sin(0.3 + k * np.pi / 2) for k in range(5)], rtol=4e-15)


def test_second_order_of_arrays_against_the_transformation():
    x = placeholder("x", 3)
    energy = np.sum(np.exp(x) * x[::-1])
    (slope,) = gradients(energy, [x])
    curvature = gradients(np.sum(slope**2), x)
    at = np.array([0.1, -0.4, 0.7])
    first = wg.grad(lambda x: np.sum(np.exp(x) * x[::-1]))
    np.testing.assert_array_equal(run(slope, x=at), first(at))
    np.testing.assert_allclose(run(curvature, x=at), wg.grad(lambda x: np.sum(first(x) ** 2))(at), rtol=1e-14)


def test_gradients_in_intermediate_results():
    x = placeholder("x")
    middle = x * x
    output = np.exp(middle) * x
    assert run(gradients(output, middle), x=0.5) == np.exp(0.25) * 0.5
    at_middle, at_x = run(gradients(output, [middle, x]), x=0.5)
    assert at_middle == np.exp(0.25) * 0.5
    assert at_x == np.exp(0.25)


def test_inputs_that_the_output_does_not_depend_on_get_zeros():
    x, y = placeholder("x", 2), placeholder("y")
    np.testing.assert_array_equal(run(gradients(y * 1.0, x), y=2.0), [0.0, 0.0])


def test_an_input_twice():
    x = placeholder("x")
    assert run(gradients(x**2, [x, x]), x=3.0) == [6.0, 6.0]


def test_transformations_apply_to_functions_of_expressions():
    x = placeholder("x", 3)
    slope = wg.grad(lambda v: np.sum(np.tanh(v) ** 2))(x)
    _, tangent = wg.jvp(np.sin, (x,), (np.ones(3),))
    at = np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(run(slope, x=at), wg.grad(lambda v: np.sum(np.tanh(v) ** 2))(at))
    np.testing.assert_array_equal(run(tangent, x=at), np.cos(at))


def test_what_cannot_be_differentiated_is_refused():
    x, n = placeholder("x", 2), placeholder("n", (), int)
    with pytest.raises(ShapeError, match=r"^gradients: an output of shape \(2,\); a scalar, of shape \(\), is needed"):
        gradients(x * 2, x)
    with pytest.raises(DtypeError, match=r"^gradients: an output of dtype int64; a real float is needed"):
        gradients(n * 2, x)
    with pytest.raises(DtypeError, match=r"^gradients: the input n: int64\[\]; float or complex inputs are needed"):
        gradients(x.sum() * n, n)
    with pytest.raises(UsageError, match=r"^gradients: a float that is not an expression; expressions are needed"):
        gradients(x.sum(), 2.0)
    with pytest.raises(UsageError, match=r"^gradients: a Tensor that is not an expression"):
        gradients(wg.tensor(2.0), x)


# Execution


def test_only_what_was_asked_for_is_evaluated(evaluated):
    x, y = placeholder("x"), placeholder("y")
    f = np.log(x) + np.exp(y)
    g = np.sin(x)
    assert run(g, x=1.0) == np.sin(1.0)
    assert evaluated == ["sin"]
    del evaluated[:]
    run([f, g], x=1.0, y=2.0)
    assert sorted(evaluated) == ["add", "exp", "log", "sin"]


def test_value_and_gradient_share_their_partial_results(evaluated):
    x1, x2 = placeholder("x1"), placeholder("x2")
    f = np.log(x1) + x1 * x2 - np.sin(x2)
    executor = Executor([f, *gradients(f, [x1, x2])])
    check(executor.graph)
    del evaluated[:]
    executor.run({x1: 2.0, x2: 5.0})
    assert len(evaluated) == 10
    assert evaluated.count("log") == 1
    slope = Executor(gradients(f, x2))
    del evaluated[:]
    slope.run({x1: 2.0, x2: 5.0})
    assert evaluated == ["cos", "negative", "add"]


def test_results_come_in_the_containers_of_the_expressions():
    x = placeholder("x")
    found = Executor({"a": (x + 1.0, [x * 2.0]), "b": x}).run({"x": 3.0})
    assert found == {"a": (4.0, [6.0]), "b": 3.0}


def test_feeding_by_placeholder_or_name():
    x, y = placeholder("x"), placeholder("y")
    executor = Executor(x - y)
    assert (
        executor.run({x: 3.0, y: 1.0}) == executor.run({"x": 3.0, "y": 1.0}) == executor.run({x: 3.0, "y": 1.0}) == 2.0
    )


def test_an_executor_runs_again_and_again():
    x = placeholder("x")
    executor = Executor(x**2)
    assert [executor.run({x: float(i)}) for i in range(4)] == [0.0, 1.0, 4.0, 9.0]


def test_values_are_converted_to_the_dtype_if_the_kind_allows_it():
    x = placeholder("x", 2, "f4")
    assert run(x * 2, x=[1, 2]).dtype == np.float32
    assert run(x * 2, x=np.ones(2)).dtype == np.float32
    with pytest.raises(
        DtypeError, match=r"^run: dtype complex128 for x; dtype float32 is needed\. Convert the value\.$"
    ):
        run(x, x=np.ones(2) * 1j)
    with pytest.raises(DtypeError, match=r"^run: dtype float64 for n; dtype int64 is needed"):
        run(placeholder("n", (), int) + 1, n=1.5)


def test_wrong_feeds_name_the_placeholder():
    x, y, z = placeholder("x", 2), placeholder("y"), placeholder("z")
    executor = Executor(x * y)
    ones = np.ones(2)
    with pytest.raises(UsageError, match=r"^run: no value for y; one for each is needed\. Feed it\.$"):
        executor.run({x: ones})
    with pytest.raises(UsageError, match=r"^run: no value for x, y; "):
        executor.run({})
    with pytest.raises(UsageError, match=r"^run: a value for z, which is no placeholder of these .*; values for x, y"):
        executor.run({x: ones, y: 1.0, z: 1.0})
    with pytest.raises(UsageError, match=r"^run: a value for w, which is no placeholder"):
        executor.run({x: ones, y: 1.0, "w": 1.0})
    with pytest.raises(UsageError, match=r"^run: a value for an intermediate expression, which is no placeholder"):
        executor.run({x: ones, y: 1.0, x * y: 1.0})
    with pytest.raises(UsageError, match=r"^run: y twice; one value is needed"):
        executor.run({x: ones, y: 1.0, "y": 1.0})
    with pytest.raises(ShapeError, match=r"^run: shape \(3,\) for x; shape \(2,\) is needed\. Reshape it, or make a"):
        executor.run({x: np.ones(3), y: 1.0})


def test_another_placeholder_of_the_same_name_is_another():
    x = placeholder("x")
    with pytest.raises(UsageError, match="a value for x, which is no placeholder of these expressions"):
        Executor(x * 2).run({placeholder("x"): 1.0})
    with pytest.raises(UsageError, match=r"^Executor: two placeholders called x; different names are needed\. Rename"):
        Executor(x * placeholder("x"))


def test_a_gradient_accepts_the_placeholders_of_its_output_whether_it_needs_them_or_not():
    x, y = placeholder("x"), placeholder("y")
    slope = gradients(3 * x + y, x)
    assert run(slope, x=1.0, y=2.0) == run(slope) == 3.0


def test_outputs_must_be_expressions():
    with pytest.raises(UsageError, match=r"^Executor: a float that is not an expression; expressions are needed\."):
        Executor([placeholder("x"), 1.0])


def test_tensors_that_are_differentiated_may_be_used_and_fed():
    weight = wg.tensor(3.0, requires_grad=True)
    x = placeholder("x")
    executor = Executor(x * weight)
    executor.run({x: 2.0}).backward()
    assert float(weight.grad) == 2.0
    assert wg.grad(lambda v: Executor(x**3).run({x: v}))(2.0) == 12.0


def test_the_graph_is_an_ordinary_one():
    x = placeholder("x")
    graph = Executor(np.exp(x) * 2.0).graph
    assert str(graph).splitlines()[0] == "graph(x: float64[])"
    assert "exp" in to_dot(graph)
