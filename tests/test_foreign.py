"""Operands that bring their own arithmetic decide, as with ndarrays (NEP 13, NEP 18)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, GraphError

T = wg.tensor([1.0, 2.0])


class Labelled:
    """Be an array with a label, as those of xarray and pandas: NumPy hands ufuncs and functions to it."""

    def __init__(self, values: Any, label: str) -> None:
        self.values, self.label = values, label

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        values = [x.values if isinstance(x, Labelled) else x for x in inputs]
        return Labelled(getattr(ufunc, method)(*values, **kwargs), self.label)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return "decided", function.__name__


class Series(Labelled):
    """Take no option, as pandas: one that is given, though it is as usual, leaves the ufunc to others."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NotImplemented if kwargs else super().__array_ufunc__(ufunc, method, *inputs)


class Refusing:
    """Have operators of its own and no ufuncs, as `__array_ufunc__ = None` says."""

    __array_ufunc__ = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError

    def __rmul__(self, other: Any) -> Any:
        return "rmul", other

    def __mul__(self, other: Any) -> Any:
        return "mul", other

    def __rmatmul__(self, other: Any) -> Any:
        return "rmatmul", other

    def __gt__(self, other: Any) -> Any:
        return "gt", other


class Silent(np.ndarray[Any, Any]):
    """Leave all to ndarray."""


OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.matmul, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, divmod),
)


@together("operate", OPERATORS)
def test_operators_leave_the_decision_as_ndarrays_do(operate: Any) -> None:
    other = Labelled(np.array([3.0, 4.0]), "m")
    for x, y in ((T, other), (other, T)):
        plain = tuple(v.numpy() if isinstance(v, wg.Tensor) else v for v in (x, y))
        try:
            expected = operate(*plain)
        except TypeError:  # it has no operators, and ndarray is not asked
            with pytest.raises(TypeError):
                operate(x, y)
            continue
        found = operate(x, y)
        assert type(found) is type(expected)
        assert getattr(found, "label", None) == getattr(expected, "label", None)
        np.testing.assert_array_equal(found.values, expected.values)


def test_the_gradient_follows_through_other_classes() -> None:
    other = Labelled(np.array([3.0, 4.0]), "m")
    gradient = wg.grad(lambda x: (np.sin(x) * other * x).values.sum())(np.array([1.0, 2.0]))
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient, other.values * (np.cos(x) * x + np.sin(x)))
    both = wg.jit(wg.grad(lambda x: np.add(other, x).values.sum()))(x)
    np.testing.assert_array_equal(both, [1.0, 1.0])


def test_operators_of_a_class_without_ufuncs() -> None:
    other = Refusing()
    assert (T * other)[0] == "rmul"
    assert (other * T)[0] == "mul"
    assert (T @ other)[0] == "rmatmul"
    assert operator.lt(T, other)[0] == "gt"
    with pytest.raises(TypeError, match="unsupported operand"):
        T + other
    with pytest.raises(TypeError, match="does not support ufuncs"):
        np.add(T, other)
    with pytest.raises(TypeError, match="does not support ufuncs"):
        wg.numpy.add(T, other)
    x = T.copy()
    x *= other
    assert x[0] == "rmul"


def test_ufuncs_and_functions_leave_the_decision() -> None:
    other = Labelled(np.array([3.0, 4.0]), "m")
    assert np.multiply(T, other).label == "m"
    assert wg.numpy.multiply(T, other).label == "m"
    assert np.concatenate([T, other]) == ("decided", "concatenate")
    assert np.where(T > 1, other, T) == ("decided", "where")


def test_subclasses_that_leave_all_to_ndarray_are_arrays() -> None:
    found = T * np.ones(2).view(Silent)
    assert type(found) is wg.Tensor


@pytest.mark.parametrize("kind", ["masked", "matrix"])
def test_subclasses_that_calculate_in_their_own_way_are_refused(kind: str) -> None:
    other = np.ma.array([1.0, 2.0], mask=[0, 1]) if kind == "masked" else np.array([[1.0, 2.0]]).view(np.matrix)
    for operate in (operator.mul, operator.add, operator.lt, np.multiply):
        with pytest.raises(DtypeError, match="an ndarray is needed, because other classes calculate"):
            operate(T, other)


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
LOSING = {
    "cond": lambda: wg.jit(lambda x: wg.cond(x > 0, np.sum, lambda a: 2 * a.sum(), MASKED))(1.0),
    "switch": lambda: wg.jit(lambda i: wg.switch(i, [np.sum, lambda a: 2 * a.sum()], MASKED))(1),
    "call": lambda: wg.call(np.sum, MASKED),
    "scan": lambda: wg.scan(lambda c, x: (c + x, x), 0.0, MASKED),
    "jvp": lambda: wg.jvp(np.sin, (np.ones(3),), (MASKED,)),
    "cond: result": lambda: wg.jit(lambda x: wg.cond(x > 0, lambda: MASKED, lambda: MASKED))(1.0),
    "call: result": lambda: wg.jit(lambda x: wg.call(lambda y: MASKED, x))(1.0),
    "scan: result": lambda: wg.jit(lambda x: wg.scan(lambda c, _: (c, MASKED), x, length=2))(1.0),
    "fori_loop: result": lambda: wg.fori_loop(0, 3, lambda i, c: MASKED, np.ones(3)),
    "jit: result": lambda: wg.jit(lambda x: MASKED)(1.0),
    "vmap: result": lambda: wg.vmap(lambda x: MASKED)(np.ones(2)),
}


@pytest.mark.parametrize("case", LOSING)
def test_masks_are_refused_where_they_would_be_lost(case: str) -> None:
    with pytest.raises(DtypeError, match=rf"^{case.split(':')[0]}: an array of type MaskedArray; an ndarray is needed"):
        LOSING[case]()


@pytest.mark.parametrize("other", [object(), None, "a", {}], ids=lambda x: type(x).__name__)
def test_objects_that_are_no_arrays_are_left_to_python(other: Any) -> None:
    for x, y in ((T, other), (other, T)):
        with pytest.raises(TypeError, match="unsupported operand"):
            operator.sub(x, y)
        assert (x == y) is False
    with pytest.raises(DtypeError, match="a numeric dtype is needed"):
        wg.numpy.multiply(T, other)


def test_no_options_are_passed_to_others_that_were_not_given() -> None:
    for x, y in ((T, Series(np.array([3.0, 4.0]), "m")), (Series(np.array([3.0, 4.0]), "m"), T)):
        assert wg.numpy.multiply(x, y).values.tolist() == [3.0, 8.0]
        with pytest.raises(TypeError):
            wg.numpy.multiply(x, y, where=[True, False])


class ForeignArray:
    """Stand for the arrays of PyTorch and JAX, which NumPy makes ndarrays of."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1.0, 2.0], dtype)


ForeignArray.__name__, ForeignArray.__module__ = "Array", "jaxlib._jax"


def test_arrays_of_other_libraries_are_operands() -> None:
    x = wg.tensor([3.0, 4.0], requires_grad=True)
    for found in (x * ForeignArray(), ForeignArray() * x, np.multiply(x, wg.tensor(ForeignArray()))):
        assert str(found) == "tensor([3., 8.], grad_fn=<multiply>)"
    assert str(wg.numpy.sqrt(ForeignArray())) == str(wg.tensor(np.sqrt([1.0, 2.0])))
    assert wg.jit(lambda y: (y * ForeignArray()).sum())(np.ones(2)) == 3.0
    assert wg.grad(lambda y, z: (y * z).sum())(np.ones(2), ForeignArray()).tolist() == [1.0, 2.0]


@together(
    "call, name, needed",
    [
        (lambda x: wg.grad(np.sum)(x), "grad: an argument of type", "floats, arrays or Tensors"),
        (lambda x: wg.jvp(np.sum, (x,), (x,)), "jvp: an argument of type", "floats, arrays or Tensors"),
        (lambda x: wg.vjp(np.sum, x), "vjp: an argument of type", "floats, arrays or Tensors"),
        (lambda x: wg.jit(np.sum)(x), "jit: an argument of type", "numbers, arrays, Tensors"),
        (lambda x: wg.jit(lambda y: x)(1.0), "jit: a function that returned a", "numbers, arrays and Tensors"),
        (lambda x: wg.optim.minimize(np.sum, x), "optim.minimize: a leaf of type", "floats"),
    ],
)
def test_arguments_of_other_libraries_say_how_to_convert_them(
    call: Callable[[Any], Any], name: str, needed: str
) -> None:
    with pytest.raises(DtypeError) as error:
        call(ForeignArray())
    assert str(error.value).startswith(f"{name} jaxlib.Array; {needed}")
    assert str(error.value).endswith(". Convert it first, by numpy.asarray(x).")


def test_results_of_other_libraries_say_what_to_compute_them_with() -> None:
    with pytest.raises(DtypeError, match=r"returned a value of type jaxlib\.Array; .*Compute it with NumPy's"):
        wg.grad(lambda x: ForeignArray())(1.0)


@together("name, write", [("sin", "np.sin"), ("relu", "it with NumPy's functions")])
def test_functions_of_pytorch_say_what_they_are_here(name: str, write: str) -> None:
    def function(x: Any) -> Any:
        return type(x).__torch_function__(function, (type(x),), (x,), {})

    function.__name__ = name
    with pytest.raises(DtypeError) as error:
        function(T)
    assert str(error.value) == (
        f"torch.{name}: a Tensor of Wengert; one of PyTorch is needed. Write {write}, or convert the Tensor first, by "
        "torch.tensor(x.numpy())."
    )


class Column:
    """Be what NumPy can make an array of, and refuse to be true or false, as pandas' columns and indices do."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)

    def __eq__(self, other: object) -> Any:
        return Column(self.values == other)

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("index", [Column([0, 1, 1, 4]), Column([True, False, True, False, True]), range(1, 4)])
@pytest.mark.parametrize("columns", [False, True])
def test_an_index_is_what_numpy_makes_an_array_of(index: Any, columns: bool) -> None:
    key: Any = (slice(None), index) if columns else index

    def read(x: Any) -> Any:
        return x[key]

    def written(x: Any) -> Any:
        y = x * 2.0
        y[key] *= y[key]
        return y

    x = np.arange(25.0).reshape(5, 5) if columns else np.arange(5.0)
    for function in (read, written):
        expected = function(x)
        np.testing.assert_array_equal(function(wg.asarray(x)).numpy(), expected)
        np.testing.assert_array_equal(wg.jit(function)(x), expected)
        np.testing.assert_array_equal(wg.vmap(function)(np.stack([x, x]))[1], expected)
    slope = wg.grad(lambda x: np.sum(written(x)))(x)
    expected = np.full_like(x, 2.0)
    expected[key] = 8.0 * x[key]
    np.testing.assert_array_equal(slope, expected)
    np.add.at(counts := np.zeros_like(x), key, 1.0)
    lanes = wg.vmap(wg.grad(lambda x: np.sum(read(x) ** 2)))(x[None])
    np.testing.assert_array_equal(lanes[0], 2.0 * counts * x)


def test_an_index_is_read_when_it_is_used() -> None:
    column = Column([0, 1])
    jitted = wg.jit(lambda x, k: x[column] * k)
    assert jitted(np.arange(3.0), 2.0).tolist() == [0.0, 2.0]
    column.values[:] = 2
    assert jitted(np.arange(3.0), 2.0).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("first", [False, True])
def test_columns_of_pandas_beside_what_is_differentiated_are_told_to_be_taken_out(first: bool) -> None:
    members = {"__module__": "pandas.core.series", "__array_ufunc__": lambda *_, **__: NotImplemented}
    column = type("Series", (Labelled,), members)([1.0, 3.0], "a")

    def function(x: Any) -> Any:
        return np.maximum(column, x) if first else np.maximum(x, column)

    for differentiated in (wg.grad(function), wg.jit(function)):
        with pytest.raises(GraphError, match=r"maximum: a Series of pandas; .*\.to_numpy\(\)"):
            differentiated(np.array([2.0, 2.0]))
