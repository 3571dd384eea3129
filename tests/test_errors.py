"""Errors: their form, their classes, and that a user's mistake is explained where it is made."""

from __future__ import annotations

import enum
import math
import pickle
import re
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert import autograd, errors
from wengert.errors import describe
from wengert.scipy import integrate
from wengert.support.hints import hints
from wengert.transforms.tracing import trace_function

FORM = re.compile(r"^[^;]+: .+; .+\. .+\.$", re.DOTALL)


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(values, requires_grad=True)


# Classes

BUILT_IN = {
    "ShapeError": ValueError,
    "DtypeError": TypeError,
    "GraphError": RuntimeError,
    "EscapedValueError": RuntimeError,
    "UsageError": ValueError,
    "NumericalError": FloatingPointError,
    "RangeError": OverflowError,
    "RegistrationError": TypeError,
}


@pytest.mark.parametrize(("name", "base"), BUILT_IN.items())
def test_each_error_is_also_a_built_in_one(name: str, base: type[Exception]) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.WengertError)
    assert issubclass(error, base)
    assert issubclass(errors.EscapedValueError, errors.GraphError)
    made = pickle.loads(pickle.dumps(error("text")))
    assert type(made) is error
    assert str(made) == "text"


def test_describe() -> None:
    assert describe("f", "given", "needed", "Do this") == "f: given; needed. Do this."


# The form of every text. Each entry makes one mistake, and names the public name that the text must begin with.


def released() -> None:
    y = (leaf(1.0) * leaf(2.0)).sum()
    y.backward()
    y.backward()


def escaped() -> None:
    kept: list[Any] = []
    wg.grad(lambda x: (kept.append(x), x)[1])(1.0)
    kept[0] + 1


def hook_of_wrong_shape() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda ct: np.ones(3))
    x.sum().backward()


def prehook_of_wrong_number() -> None:
    y = leaf(1.0) * 2
    y.grad_fn.register_prehook(lambda cts: (1.0, 2.0))
    y.backward()


def unpack_of_wrong_shape() -> None:
    with autograd.saved_tensors_hooks(lambda t: t, lambda t: t[0]):
        y = np.exp(leaf(1.0))
    y.backward()


def anomaly() -> None:
    y = np.sqrt(leaf(0.0))
    with autograd.detect_anomaly():
        y.backward()


def writing(function: Any) -> Any:
    def write() -> None:
        function(wg.tensor([1.0, 2.0]))

    return write


MISTAKES: dict[str, tuple[Any, str, type[Exception]]] = {
    "integer leaf": (lambda: wg.tensor([1], requires_grad=True), "tensor", errors.DtypeError),
    "objects": (lambda: wg.tensor(["a"]), "tensor", errors.DtypeError),
    "subclass": (lambda: type("S", (wg.Tensor,), {}), "Tensor", TypeError),
    "len of a scalar": (lambda: len(wg.tensor(1.0)), "len", TypeError),
    "truth of many": (lambda: bool(wg.tensor([1.0, 2.0])), "bool", errors.DtypeError),
    "ndarray of a tracked one": (lambda: np.asarray(leaf(1.0)), "asarray", errors.GraphError),
    "numpy of a tracked one": (lambda: leaf(1.0).numpy(), "numpy", errors.GraphError),
    "math of a traced one": (lambda: wg.grad(lambda x: float(x) * x)(1.0), "float", errors.GraphError),
    "pickle of a computed one": (lambda: pickle.dumps(leaf(1.0) * 2), "pickle", errors.GraphError),
    "shapes": (lambda: leaf(1.0, 2.0) + np.ones(3), "add", errors.ShapeError),
    "in-place shape": (writing(lambda t: t.__iadd__(np.ones((2, 2)))), "add", errors.ShapeError),
    "in-place dtype": (lambda: wg.tensor([1]).__iadd__(0.5), "add", errors.DtypeError),
    "in-place method shape": (writing(lambda t: t.add_(np.ones((2, 2)))), "add_", errors.ShapeError),
    "out=": (lambda: np.sin(leaf(1.0), out=np.zeros(1)), "sin", errors.DtypeError),
    "where= without out=": (lambda: np.sin(leaf(1.0), where=[True]), "sin", errors.UsageError),
    "leaf written to": (lambda: leaf(1.0).__setitem__(0, 2.0), "assignment", errors.GraphError),
    "no gradient": (lambda: (leaf(1.0, 2.0) * 2).backward(), "backward", errors.ShapeError),
    "wrong gradient": (lambda: (leaf(1.0) * 2).backward(np.ones(2)), "backward", errors.ShapeError),
    "complex output": (lambda: (leaf(1.0) * 1j).backward(), "backward", errors.DtypeError),
    "plain output": (lambda: wg.tensor(1.0).backward(), "backward", errors.GraphError),
    "no Tensor": (lambda: autograd.grad(1.0, leaf(1.0)), "grad", errors.UsageError),
    "numbers of gradients": (lambda: autograd.backward([leaf(1.0)] * 2, [1.0]), "backward", errors.UsageError),
    "unused input": (lambda: autograd.grad(leaf(1.0), leaf(1.0)), "grad", errors.GraphError),
    "released": (released, "backward", errors.GraphError),
    "assigned grad": (lambda: setattr(leaf(1.0), "grad", np.ones(2)), "grad", errors.ShapeError),
    "grad of a plain one": (lambda: setattr(wg.tensor(1.0), "grad", 1.0), "grad", errors.GraphError),
    "requires_grad_ off": (lambda: (leaf(1.0) * 2).requires_grad_(False), "requires_grad_", errors.GraphError),
    "hook of a plain one": (lambda: wg.tensor(1.0).register_hook(print), "register_hook", errors.GraphError),
    "retain_grad of a plain one": (lambda: wg.tensor(1.0).retain_grad(), "retain_grad", errors.GraphError),
    "hook shape": (hook_of_wrong_shape, "register_hook", errors.ShapeError),
    "prehook number": (prehook_of_wrong_number, "register_prehook", errors.UsageError),
    "unpack": (unpack_of_wrong_shape, "saved_tensors_hooks", errors.UsageError),
    "anomaly": (anomaly, "sqrt", errors.NumericalError),
    "escaped": (escaped, "grad(escaped.<locals>.<lambda>, File", errors.EscapedValueError),
    "argnums": (lambda: wg.grad(lambda x: x, argnums=3)(1.0), "grad", errors.UsageError),
    "argnums twice": (lambda: wg.grad(lambda x: x, argnums=(0, 0))(1.0), "grad", errors.UsageError),
    "integer argument": (lambda: wg.grad(lambda x: x)(1), "grad", errors.DtypeError),
    "argument of another kind": (lambda: wg.grad(lambda x: x)("a"), "grad", errors.DtypeError),
    "no scalar": (lambda: wg.grad(lambda x: x)(np.ones(2)), "grad", errors.ShapeError),
    "a container": (lambda: wg.value_and_grad(lambda x: [x])(1.0), "value_and_grad", errors.ShapeError),
    "several arrays": (lambda: wg.elementwise_grad(lambda x: [x])(1.0), "elementwise_grad", errors.ShapeError),
    "no pair": (lambda: wg.grad(lambda x: x, has_aux=True)(1.0), "grad", errors.UsageError),
    "complex result": (lambda: wg.grad(lambda x: x * 1j)(1.0), "grad", errors.DtypeError),
    "cotangent structure": (lambda: wg.vjp(lambda x: x, 1.0)[1]([1.0]), "vjp", errors.ShapeError),
    "cotangent shape": (lambda: wg.vjp(lambda x: x, 1.0)[1](np.ones(2)), "vjp", errors.ShapeError),
    "integer primal": (lambda: wg.vjp(lambda x: x, 1), "vjp", errors.DtypeError),
    "unknown function": (lambda: np.busday_offset(leaf(1.0), 1), "numpy.busday_offset", errors.DtypeError),
    "objects as an operand": (lambda: leaf(1.0) * np.array([None], object), "multiply", errors.DtypeError),
}


@together("mistake", MISTAKES)
def test_form_of_texts(mistake: str) -> None:
    make, name, kind = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        make()
    text = str(caught.value)
    assert text.startswith(name), text
    assert FORM.match(text), text
    assert "  " not in text
    assert "None is needed" not in text


# NumPy's own errors come through where they are clear


@together(
    "function, error, text",
    [
        (lambda x: np.sum(x, axis=3), np.exceptions.AxisError, "axis 3 is out of bounds"),
        (lambda x: x.reshape(7), ValueError, "cannot reshape array of size 2 into shape"),
        (lambda x: x[5], IndexError, "index 5 is out of bounds"),
        (lambda x: x[0, 0], IndexError, "too many indices"),
        (lambda x: x["name"], IndexError, "only integers, slices"),
        (lambda x: x[1.0], IndexError, "only integers, slices"),
        (lambda x: np.transpose(x, (0, 1)), np.exceptions.AxisError, "axis 1 is out of bounds"),
    ],
)
@together("make", [leaf, lambda *v: wg.tensor(v)])
def test_errors_of_numpy(make: Any, function: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function(make(1.0, 2.0))


def test_numpy_warns_as_it_does_for_arrays() -> None:
    x = leaf(0.0)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        y = np.log(x)
    y.backward()
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        1.0 / x


# Points where the derivative is a choice


@together(
    "function, point, expected",
    [
        (np.abs, 0.0, 0.0),
        (np.sign, 0.0, 0.0),
        (np.floor, 1.0, 0.0),
        (np.round, 0.5, 0.0),
        (lambda x: (x > 0) * 1.0, 0.0, 0.0),
        (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
        (lambda x: np.minimum(x, 0.0), 0.0, 0.5),
        (lambda x: np.where(x > 0, x, 0.0), 0.0, 0.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**0, 3.0, 0.0),
        (lambda x: x**0.0, 0.0, 0.0),
        (lambda x: x**1, 0.0, 1.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: np.sqrt(x) * 0.0, 0.0, 0.0),
        (lambda x: np.sqrt(x), 0.0, np.inf),
        (lambda x: np.hypot(x, 0.0), 0.0, 0.0),
        (lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0), 0.0, 0.0),
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
        (lambda x: np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x)), 0.0, 0.0),
    ],
)
def test_choices(function: Any, point: float, expected: float) -> None:
    assert wg.grad(function)(point) == expected
    x = wg.tensor(point, requires_grad=True)
    y = function(x)
    if y.requires_grad:
        y.backward()
        assert x.grad is not None
        assert x.grad.item() == expected
    else:
        assert expected == 0.0


@pytest.mark.parametrize("reduce", [np.max, np.min])
def test_ties_share_equally(reduce: Any) -> None:
    np.testing.assert_array_equal(wg.grad(reduce)(np.array([2.0, 2.0, 2.0, 2.0])), [0.25] * 4)
    x = np.array([[1.0, 1.0], [3.0, 1.0]])
    gradient = wg.grad(lambda t: reduce(t, axis=0).sum())(x)
    tied = [[0.0, 0.5], [1.0, 0.5]] if reduce is np.max else [[1.0, 0.5], [0.0, 0.5]]
    np.testing.assert_array_equal(gradient, tied)


def test_ties_of_two_operands_share_equally() -> None:
    for choose in (np.maximum, np.minimum, np.fmax, np.fmin):
        assert wg.grad(choose, argnums=(0, 1))(1.0, 1.0) == (0.5, 0.5)


def test_no_nan_from_branches_that_are_not_taken() -> None:
    x = np.array([0.0, 4.0, -1.0])

    def safe(t: Any) -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(t > 0, np.sqrt(t), t * 2).sum() + np.where(t > 0, np.log(t), 0.0).sum()

    np.testing.assert_array_equal(wg.grad(safe)(x), [2.0, 0.5, 2.0])


def test_no_nan_from_masks() -> None:
    leaf_ = leaf(0.0, 4.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = wnp.sqrt(leaf_) * np.array([0.0, 1.0]) + (1 / leaf_) * 0.0
    (y[1] + 0 * y[1]).backward()
    assert leaf_.grad is not None
    np.testing.assert_array_equal(leaf_.grad.numpy(), [0.0, 0.25])


# What NumPy would put its own words around


def element(x: Any) -> Any:
    array = np.zeros(3)
    array[0] = x[0]
    return array


def elements(x: Any) -> Any:
    array = np.zeros(2)
    array[:] = x
    return array


def filled(x: Any) -> Any:
    array = np.zeros(3)
    array.fill((x * x).sum())
    return array


def flat(x: Any) -> Any:
    array = np.zeros(3)
    array.flat[0] = x[0]
    return array


def from_objects(x: Any) -> Any:
    array = np.empty(2, dtype=object)
    array[0], array[1] = x
    return array.astype(float)


def from_iterator(x: Any) -> Any:
    return np.fromiter(iter(x), float)


def vectorized(x: Any) -> Any:
    return np.vectorize(lambda y: y * x[0])(np.ones(2))


def from_list(x: Any) -> Any:
    return np.array([x, x])


STORES = [element, elements, filled, flat, from_objects, from_iterator, vectorized, from_list]
HELD = (element, elements, filled, from_iterator, from_list)
"""Those of which conversion makes Tensors."""
CONVERTING = ("jit", "grad of jit", "trace", "cond")
TRANSFORMATIONS: dict[str, Any] = {
    "grad": lambda function, x: wg.grad(lambda y: function(y).sum())(x),
    "jit": lambda function, x: wg.jit(function)(x),
    "grad of jit": lambda function, x: wg.grad(lambda y: wg.jit(function)(y).sum())(x),
    "jvp": lambda function, x: wg.jvp(function, (x,), (x,)),
    "vjp": lambda function, x: wg.vjp(function, x),
    "vmap": lambda function, x: wg.vmap(function)(np.stack([x, x])),
    "taylor": lambda function, x: wg.taylor(function, (x,), (x,), 1),
    "trace": lambda function, x: wg.graph.trace(function)(x),
    "checkpoint": lambda function, x: wg.grad(lambda y: wg.checkpoint(function)(y).sum())(x),
    "cond": lambda function, x: wg.jit(lambda y: wg.cond(y[0] > 0, function, function, y))(x),
}


@together("transformation", TRANSFORMATIONS)
@together("function", STORES)
def test_the_last_line_is_ours_and_names_the_users(function: Any, transformation: str) -> None:
    if function in HELD and transformation in CONVERTING:
        TRANSFORMATIONS[transformation](function, np.array([0.5, 0.6]))
        return
    with pytest.raises(errors.WengertError) as caught:
        TRANSFORMATIONS[transformation](function, np.array([0.5, 0.6]))
    assert FORM.match(str(caught.value))
    assert caught.value.__cause__ is None
    assert any(entry.name == function.__name__ for entry in caught.traceback)


@pytest.mark.parametrize("function", STORES)
def test_the_tape_does_not_lose_a_gradient_in_an_ndarray(function: Any) -> None:
    plain, x = np.array([0.5, 0.6]), wg.tensor([0.5, 0.6], requires_grad=True)
    for _ in range(20):  # the interpreter calls by other instructions when it has seen a line often
        np.testing.assert_array_equal(function(wg.tensor(plain)), function(plain))
        with pytest.raises((errors.GraphError, ValueError)) as caught:
            function(x)
    if function is not flat:  # there NumPy drops what it was told
        explained = caught.value if isinstance(caught.value, errors.GraphError) else caught.value.__cause__
        assert isinstance(explained, errors.GraphError)
    assert any(entry.name == function.__name__ for entry in caught.traceback)


def test_what_numpy_drops() -> None:
    with pytest.raises(errors.GraphError) as caught:
        wg.grad(lambda x: flat(x).sum())(np.array([0.5, 0.6]))
    assert str(caught.value) == (
        "assignment: a value that is not a number, stored into an ndarray; a Tensor is needed to hold it, because an "
        "ndarray would silently lose the gradient. Make the array with wengert.numpy (zeros, empty, or asarray for one "
        "that exists), or store .detach()."
    )


def test_errors_that_are_not_ours_stay() -> None:
    def wrong(x: Any) -> Any:
        np.zeros(2)[0] = np.ones(3)
        return x

    with pytest.raises(ValueError, match="setting an array element with a sequence"):
        wg.grad(wrong)(1.0)


def test_numbers_that_are_asked_for_by_name_leave_the_tape() -> None:
    x = wg.tensor(0.5, requires_grad=True)
    assert (float(x), complex(x), x.item(), "%.1f" % x) == (0.5, 0.5 + 0j, 0.5, "0.5")  # noqa: UP031  # %f asks too


# What asks for elements while a function is being traced


ASKED: dict[str, tuple[Any, Any, str, str]] = {
    "shape": (lambda n: np.zeros(n), 3, "a value in `np.zeros(n)` (int)", "Pass it in static_argnums, because shapes"),
    "list": (
        lambda i: [][i],
        0,
        "a value in `[][i]` (int)",
        "Index with wengert.asarray(array)[index]",
    ),
    "slice": (
        lambda i: [1.0, 2.0][:i],
        1,
        "a value in `[1.0, 2.0][:i]` (int)",
        "or the ends of a slice, in static_argnum",
    ),
    "slice of an array": (
        lambda i: wnp.ones(5)[i : i + 2],
        1,
        "a value in `wnp.ones(5)[i : i + 2]` (int)",
        "Write x[i + np.arange(n)] for x[i:i + n], choose with np.where(",
    ),
    "number": (lambda x: float(x), 1.0, "a value in `float(x)` (float)", "Use wengert.numpy functions"),
    "list of indices": (
        lambda i: np.ones(3)[[i, 0]],
        1,
        "a value in `np.ones(3)[[i, 0]]` (int)",
        "where a list is wengert.asarray([i, j])",
    ),
    "method": (
        lambda n: wnp.ones(4).reshape(n, -1),
        2,
        "a value in `wnp.ones(4).reshape(n, -1)` (int)",
        "in static_arg",
    ),
    "creation": (lambda n: wnp.eye(n), 2, "a value in `wnp.eye(n)` (int)", "in static_argnums, because shapes, axes"),
    "axis": (lambda n: wnp.ones(4).sum(axis=n), 0, "a value in `wnp.ones(4).sum(axis=n)` (int)", "in static_argnums"),
    "keyword": (lambda n: np.zeros(shape=(n, 2)), 3, "a value in `np.zeros(shape=(n, 2))` (int)", "static_argnums"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_asked_for_elements_is_named(name: str) -> None:
    function, argument, asked, cure = ASKED[name]
    with pytest.raises(errors.TracedTruthError) as caught:
        wg.jit(function)(argument)
    assert f": the elements of {asked} were asked for while the function was being traced (File " in str(caught.value)
    assert f'test_errors.py", line {function.__code__.co_firstlineno}, in ' in str(caught.value)
    assert cure in str(caught.value)
    assert FORM.match(str(caught.value))


def asserted(x: Any) -> Any:
    small = x < 1.0
    assert small, "large"
    return x


def chosen(x: Any) -> Any:
    small = x < 1.0
    return x if small else -x


def branched(x: Any) -> Any:
    small = x < 1.0
    if small:
        return -x
    return x


@pytest.mark.parametrize("function", [asserted, chosen, branched])
def test_a_value_is_called_by_its_name(function: Any) -> None:
    with pytest.raises(errors.TracedTruthError, match=r": the elements of small \(bool\) were asked for"):
        trace_function(function, "trace", [0.5], lambda xs: (xs, {}))  # which does not rewrite it


def test_what_the_library_traces_for_a_function_has_that_functions_name() -> None:
    with pytest.raises(errors.TracedTruthError, match=r"^solve_ivp: the elements of .*<lambda>: "):
        wg.grad(lambda y: integrate.solve_ivp(lambda t, y: -y * math.exp(t), (0.0, 1.0), y).y[0, -1])(np.ones(1))
    with pytest.raises(errors.TracedTruthError, match=r"^sparse\.jacobian\(.*<lambda>, File "):
        wg.sparse.jacobian(lambda x: x * math.exp(x[0]))(np.ones(1))


def test_an_index_into_an_ndarray_is_named() -> None:
    table, rows = np.arange(3.0), np.ones((3, 2))
    for indexed in (lambda i: rows[i], lambda i: table[i, ...]):  # which are views
        with pytest.raises(errors.TracedTruthError, match=r"in `\w+\[i.*\]` .*Index with wengert\.asarray\(array\)"):
            wg.jit(indexed)(1)


# What is no data


def endless() -> list[Any]:
    inside: list[Any] = [1.0]
    inside.append(inside)
    return inside


ENDLESS = {
    "grad": lambda: wg.grad(lambda q: 1.0)(endless()),
    "grad of a result": lambda: wg.grad(lambda x: endless())(1.0),
    "jvp": lambda: wg.jvp(lambda q: 1.0, (endless(),), (endless(),)),
    "jit": lambda: wg.jit(lambda q: 1.0)(endless()),
    "vmap": lambda: wg.vmap(lambda q: 1.0)(endless()),
    "scan": lambda: wg.scan(lambda c, x: (c, x), endless(), np.ones(2)),
    "stop_gradient": lambda: wg.stop_gradient(endless()),
    "trace": lambda: wg.graph.trace(lambda q: 1.0)(endless()),
    "tensor": lambda: wg.asarray(endless()),
    "operand": lambda: wg.tensor([1.0, 2.0]) * endless(),
    "assigned": lambda: wg.tensor([1.0, 2.0]).__setitem__(0, endless()),
    "array": lambda: wg.numpy.array(endless()),
    "full": lambda: wg.numpy.full(2, endless()),
    "linspace": lambda: wg.numpy.linspace(0.0, endless()),
    "dictionary": lambda: wg.grad(lambda q: 1.0)({"a": endless()}),
}


@together("call", ENDLESS.values())
def test_containers_that_contain_themselves_are_refused(call: Any) -> None:
    with pytest.raises(errors.UsageError, match="that contains itself, or is nested very deeply; containers that end"):
        call()


@pytest.mark.parametrize("name", ["tensor", "operand", "assigned", "array", "full", "linspace"])
def test_lists_that_contain_themselves_are_not_walked_until_python_stops(name: str) -> None:
    with pytest.raises(errors.UsageError) as caught:  # finalizers that run meanwhile would fail, too
        ENDLESS[name]()
    assert caught.value.__context__ is None


@pytest.mark.parametrize("data", [[[1.0], [1.0, 2.0]], ([[[1.0]]], [2.0])])
@pytest.mark.parametrize("make", [wg.tensor, wg.asarray])
def test_ragged_lists_are_refused(make: Any, data: Any) -> None:
    with pytest.raises(errors.ShapeError, match=r"nested lists that make no array .*; rows of one length"):
        make(data)


@pytest.mark.parametrize("transformation", [wg.grad, wg.value_and_grad, wg.jacrev, wg.elementwise_grad])
def test_nothing_cannot_be_differentiated_by(transformation: Any) -> None:
    with pytest.raises(errors.DtypeError, match="an argument of type NoneType; floats, arrays or Tensors"):
        transformation(lambda _: pytest.fail("it ran"))(None)


def test_integers_that_no_array_can_hold() -> None:
    with pytest.raises(errors.RangeError, match=r"^integer: one of 71 bits; at most 63 and a sign are needed"):
        wg.tensor(2**70)


def test_round_is_that_of_numpys_scalars() -> None:
    assert round(wg.asarray(np.float64(2.5))) == 2
    assert type(round(wg.asarray(np.float64(2.5)))) is int
    assert round(wg.asarray(np.float32(2.56)), 1).dtype == np.float32
    assert wg.grad(lambda x: round(x) * x)(2.64) == 3.0
    assert wg.grad(lambda x: round(x, 2) * x)(2.675) == 2.67
    assert wg.jit(lambda x: round(x) * x)(2.5) == 5.0
    with pytest.raises(errors.DtypeError, match=r"^round: an array of shape \(1,\); a scalar is needed"):
        round(wg.tensor([2.5]))


def stored(x: Any) -> Any:
    memory = np.zeros(2)
    memory[0] = x[0]
    return x


MEMORY = np.zeros(2)


def stored_outside(x: Any) -> Any:
    MEMORY[0] = x[0]
    return x


@pytest.mark.parametrize(
    ("mode", "what", "function"),
    [("vmap", "differs from lane to lane", stored), ("jit", "is being traced", stored_outside)],
)
def test_what_an_ndarray_cannot_hold_is_named_as_what_it_is(mode: str, what: str, function: Any) -> None:
    with pytest.raises(errors.GraphError) as caught:
        TRANSFORMATIONS[mode](function, np.array([0.5, 0.6]))
    text = (
        f"a Tensor of shape () that {what}, stored into an ndarray; a Tensor is needed to hold it, because an ndarray "
    )
    assert text + "holds numbers." in str(caught.value)


def marked(x: Any) -> Any:
    memory = np.zeros(3, bool)
    memory[:2] = x[:2] > 0
    return np.where(memory, x, 0.0)


def marked_one(x: Any) -> Any:
    memory = np.zeros(3)
    memory[np.argmax(x)] = 1.0
    return memory * x


def ranked(x: Any) -> Any:
    memory = np.zeros(3, int)
    for i in range(3):
        memory[i] = np.sum(x < x[i])
    return memory


def counted(x: Any) -> Any:
    counts = np.zeros(3, int)
    counts[x > 0] += 1
    return counts


@pytest.mark.parametrize("function", [marked, marked_one, ranked])
def test_masks_and_whole_numbers_that_an_ndarray_cannot_hold_say_what_can(function: Any) -> None:
    with pytest.raises(errors.WengertError, match=r" Make the array that is written to with wengert\.numpy \(zeros"):
        wg.vmap(function)(np.ones((2, 3)))


@pytest.mark.parametrize("function", [marked, marked_one, ranked, counted])
def test_masks_and_whole_numbers_are_held_by_arrays_that_a_jitted_function_makes(function: Any) -> None:
    x = np.array([0.3, -0.2, 0.9])
    found, expected = wg.jit(function)(x), function(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_masks_that_an_ndarray_is_indexed_by_say_how_to() -> None:
    def function(x: Any) -> Any:
        MEMORY[x > 0] += 1
        return x

    with pytest.raises(errors.TracedTruthError, match=r"Index with wengert\.asarray\(array\)\[index\]"):
        wg.jit(function)(np.ones(2))


class Mode(enum.Enum):
    OFF = 0
    HEAT = 1


def regime(x: Any) -> Any:
    return "laminar" if x < 2300 else "turbulent"


def heated(x: Any) -> Any:
    mode = Mode.OFF
    if x < 20:
        mode = Mode.HEAT
    return x + 1 if mode is Mode.HEAT else x


def doubled_until(x: Any) -> Any:
    state = "waiting"
    while x < 5:
        x, state = x * 2, "done"
    return x if state == "done" else -x


def chosen_function(x: Any) -> Any:
    function = np.sin if x > 0 else np.cos
    return function(x)


def first_above(x: Any) -> Any:
    found = None
    for value in (x, 2 * x):
        if value > 1:
            found = value
            break
    return 0.0 if found is None else found * 2


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (regime, "Write truths or whole numbers in place of text and of members of enumerations"),
        (heated, "Write truths or whole numbers in place of text and of members of enumerations"),
        (doubled_until, "Write truths or whole numbers in place of text and of members of enumerations"),
        (chosen_function, "Call each in its branch, and choose between what they return"),
        (first_above, "Write a value of the same kind in place of None, and beside it a truth that says whether"),
    ],
)
def test_values_that_no_traced_condition_chooses_say_what_to_write_in_their_place(function: Any, remedy: str) -> None:
    with pytest.raises(errors.GraphError, match=f"{remedy}.*\n  File"):
        wg.jit(function)(3.0)


WRITES = {
    "add.at": lambda array, x: np.add.at(array, [0, 0], x),
    "maximum.at": lambda array, x: np.maximum.at(array, [0, 1], x),
    "put": lambda array, x: np.put(array, [0, 1], x),
    "copyto": np.copyto,
}


@together("write", WRITES.values())
@together("transformation", [wg.jit, wg.vmap, wg.jacobian])
def test_functions_that_write_into_ndarrays_say_how_to_make_them(write: Any, transformation: Any) -> None:
    def function(x: Any) -> Any:
        array = np.zeros(2)
        write(array, x)
        return array

    if transformation is wg.jit:
        np.testing.assert_array_equal(wg.jit(function)(np.ones(2)), function(np.ones(2)))
        return
    with pytest.raises(errors.GraphError, match=r"stored into an ndarray; .* Make the array with wengert\.numpy"):
        transformation(function)(np.ones((2, 2) if transformation is wg.vmap else 2))


def test_a_decision_in_lanes_says_what_converts_it() -> None:
    function = wg.vmap(lambda x: x if x > 0 else -x)
    with pytest.raises(errors.GraphError, match=r"use wengert\.jit\(wengert\.vmap\(function\)\), which converts"):
        function(np.array([2.0, -1.0]))
    np.testing.assert_array_equal(wg.jit(function)(np.array([2.0, -1.0])), [2.0, 1.0])


@pytest.mark.parametrize("transformation", [wg.jit, wg.vmap, wg.graph.trace, lambda f: lambda x: wg.vjp(f, x)])
def test_what_is_no_number_in_a_result_is_said_with_its_place(transformation: Any) -> None:
    with pytest.raises(wg.errors.DtypeError, match=r"a function that returned a .*str at result\[1\]\['name'\]; "):
        transformation(lambda x: [x, {"twice": 2 * x, "name": "x"}])(np.ones(2))
    with pytest.raises(wg.errors.DtypeError, match=r"a function that returned a .*str; "):
        transformation(lambda x: "x")(np.ones(2))


HOSTILE = {
    "polyval: one number as coefficients; a row of them is needed. Write [p].": lambda: wnp.polyval(1, 2),
    "polyder: 'a' for m; a whole number is needed. Pass an int.": lambda: wnp.polyder([1.0, 2.0], "a"),
    "cross: 'a' for an axis; a whole number is needed. Pass an int.": lambda: wnp.cross(np.ones(3), np.ones(3), "a"),
    "cross: shapes (2, 3) and (4, 3); shapes that broadcast are needed, but for the axes of the vectors. "
    "Transpose or reshape one of them.": lambda: wnp.cross(np.ones((2, 3)), np.ones((4, 3))),
    "tensordot: axes=2 for arrays of 0 and 0 axes; as many axes are needed in both. Pass fewer axes.": (
        lambda: wnp.tensordot(1, 2)
    ),
    "tensordot: axes=None; a number of axes, or two lists of axes are needed. Pass one of these.": (
        lambda: wnp.tensordot(np.ones((2, 2)), np.ones((2, 2)), None)
    ),
    "tensordot: 1.5 for an axis; a whole number is needed. Pass an int.": (
        lambda: wnp.tensordot(np.ones((2, 2)), np.ones((2, 2)), ([1.5], [0]))
    ),
    "check_grads: 'a' for seed; a whole number, 0 or more, is needed. Pass an int.": (
        lambda: wg.testing.check_grads(np.sin, 1.0, seed="a")
    ),
    "check_grads: no argument that holds an array; something to differentiate is needed. Pass one.": (
        lambda: wg.testing.check_grads(type)
    ),
    "shift: 'a' as axes; an axis, a tuple of them, or None is needed. Pass whole numbers.": (
        lambda: wg.extend.shift("a")
    ),
    "aligned: None, None, None; a list of arrays, and as many truths and numbers of axes, are needed. "
    "Pass one of each for every operand.": lambda: wg.extend.aligned(None, None),
    "labelled: labels ('i',) of shapes ((2, 3),), and 'i' of the result; a hashable name for each axis of each operand "
    "is needed, and those of the result among them. Name all axes, or pass lengths.": (
        lambda: wg.extend.labelled(((2, 3),), ("i",), "i")
    ),
}


@together("text", HOSTILE)
def test_unusable_arguments_are_told_in_one_sentence(text: str) -> None:
    with pytest.raises(errors.WengertError) as caught:
        HOSTILE[text]()
    assert str(caught.value) == text


# Where, and what to do


CAPTURED = np.zeros(3)


def writing_by_index(x: Any) -> Any:
    y = x * 2
    CAPTURED[0] = 1.0  # here
    return y


def writing_by_out(x: Any) -> Any:
    def write() -> None:
        np.add(CAPTURED, 1.0, out=CAPTURED)  # here

    write()
    return x


def writing_by_method(x: Any) -> Any:
    CAPTURED.fill(2.0)  # here
    return x


@pytest.mark.parametrize("function", [writing_by_index, writing_by_out, writing_by_method])
def test_writes_to_captured_arrays_are_told_by_their_line(function: Any) -> None:
    with pytest.raises(errors.GraphError, match=r"writes to the ndarray CAPTURED from outside") as caught:
        wg.jit(function)(2.0)
    assert str(caught.value).endswith("# here")
    assert not CAPTURED.any()


@pytest.mark.parametrize("line", ["case 1:", "case (a, b):  # two", "case Point(x=0):", "case _ if x > 0: return x"])
def test_what_python_converts_of_match_is_not_converted(line: str) -> None:
    assert re.search(hints("statements")["case"]["pattern"], line)


@pytest.mark.parametrize("line", ["case(x)", "case = x[1:2]", "case(x)[1:]", "case.append(x)", "case, y = f(x)"])
def test_a_name_that_python_has_as_a_soft_word_is_a_name(line: str) -> None:
    assert not re.search(hints("statements")["case"]["pattern"], line)


def counted_up(n: Any) -> Any:
    return np.arange(n)


def counted_twice(n: Any) -> Any:
    return np.repeat(np.ones(2), n)


def below(n: Any) -> Any:
    return np.tri(n)


@pytest.mark.parametrize("function", [counted_up, counted_twice, below])
def test_lengths_that_are_traced_are_not_sent_to_functions_that_ask_as_well(function: Any) -> None:
    with pytest.raises(errors.GraphError) as caught:
        wg.jit(function)(3)
    assert "static_argnums" in str(caught.value)
    assert "Write wengert.numpy" not in str(caught.value)
    if function is counted_up:
        with pytest.raises(errors.GraphError, match=r"Write wengert\.numpy\.arange"):
            wg.grad(lambda x: np.sum(counted_up(x)))(3.0)
        with pytest.raises(errors.GraphError, match=r"Make the longest array that there may be"):
            wg.vmap(counted_up)(np.array([2, 3]))


def test_arguments_that_cannot_be_traced_are_named() -> None:
    with pytest.raises(errors.DtypeError, match=r"^jit: an argument of type str at mode; numbers"):
        wg.jit(lambda x, mode: x)(1.0, "fast")
    with pytest.raises(errors.DtypeError, match=r"^jit: an argument of type str; numbers"):
        wg.jit(lambda mode: mode)("fast")


def test_classes_out_of_range_are_named() -> None:
    text = "^cross_entropy: a target with the class 7 for an input of 3 classes; classes from 0 to 2 are needed"
    with pytest.raises(IndexError, match=text):
        wg.nn.functional.cross_entropy(np.ones((2, 3)), np.array([1, 7]))


def test_devices_are_no_parameter() -> None:
    with pytest.raises(TypeError, match=r"argument 'device'; write nothing: there is one device"):
        wg.tensor([1.0], device="cpu")  # type: ignore[call-arg]
