"""Arrays of dtype object that hold Tensors, filled item by item: read as what they hold, or refused."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, GraphError, ShapeError

X = np.array([0.5, 0.6])


def items(x: Any) -> Any:
    """Return a matrix filled item by item, as codes do that know nothing of derivatives."""
    e = np.empty((2, 2), dtype=object)
    for i in range(2):
        for j in range(2):
            e[i, j] = x[0] ** (i + 1) * x[1] if i or j else 1.0
    return e


def stacked(x: Any) -> Any:
    """Return the same matrix as a Tensor."""
    return np.stack([np.stack([x[0] * 0 + 1.0, x[0] * x[1]]), np.stack([x[0] ** 2 * x[1], x[0] ** 2 * x[1]])])


USES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda e, x: np.sum(e),
    "matmul with itself": lambda e, x: np.sum(e @ e),
    "matmul from the left": lambda e, x: np.sum(x @ e),
    "matmul from the right": lambda e, x: np.sum(e @ x),
    "operator": lambda e, x: np.sum(x * e) + np.sum(e / x),
    "ufunc": lambda e, x: np.sum(np.hypot(x, e)),
    "wengert.numpy": lambda e, x: wg.numpy.sum(wg.numpy.sin(wg.numpy.array(e))),
    "array with like": lambda e, x: np.array(e, like=x)[1, 1] ** 2,
    "linear algebra": lambda e, x: np.sum(wg.numpy.linalg.inv(e)),
    "stored": lambda e, x: np.sum(stored(e, x) ** 2),
    "joined": lambda e, x: np.sum(np.concatenate([e, np.ones((2, 2), like=x)]) ** 2),
    "where": lambda e, x: np.sum(np.where(x > 0.55, e, 0.0)),
    "nested list": lambda e, x: np.sum(wg.numpy.array([e, e]) ** 2),
    "einsum": lambda e, x: np.einsum("ij,j->", e, x),
    "norm": lambda e, x: np.sum(wg.numpy.linalg.norm(e)),
}


def stored(e: Any, x: Any) -> Any:
    """Return a Tensor into which the matrix was written."""
    kept = np.zeros((2, 2), like=x)
    kept[...] = e
    return kept


@together("use", USES)
@together("jitted", [False, True])
def test_functions_read_what_is_held(use: str, jitted: bool) -> None:
    wrap = wg.jit if jitted else lambda f: f
    found, expected = ((lambda x, e=e: USES[use](e(x), x)) for e in (items, stacked))
    np.testing.assert_allclose(wrap(wg.grad(found))(X), wg.grad(expected)(X), rtol=1e-14)
    np.testing.assert_allclose(wrap(lambda x: wg.jvp(found, (x,), (X,))[1])(X), wg.grad(expected)(X) @ X, rtol=1e-14)
    leaf = wg.tensor(X, requires_grad=True)
    found(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), wg.grad(expected)(X), rtol=1e-14)


RETURNED: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jacobian": lambda f: wg.jacobian(f)(X),
    "jacrev": lambda f: wg.jacrev(f)(X),
    "jacfwd": lambda f: wg.jacfwd(f)(X),
    "jvp": lambda f: np.stack(wg.jvp(f, (X,), (X,))),
    "vjp": lambda f: wg.vjp(f, X)[1](np.ones((2, 2)))[0],
    "elementwise_grad": lambda f: wg.elementwise_grad(f)(X),
    "vmap": lambda f: wg.vmap(f)(np.stack([X, 2 * X])),
    "jit": lambda f: wg.jit(f)(X),
    "grad of jit": lambda f: wg.grad(lambda x: wg.jit(f)(x).sum())(X),
    "jit of jacobian": lambda f: wg.jit(wg.jacobian(f))(X),
    "linearize": lambda f: wg.linearize(f, X)[1](X),
    "taylor": lambda f: np.stack(wg.taylor(f, (X,), (X,), 2)),
    "hessian": lambda f: wg.hessian(lambda x: f(x)[1, 1])(X),
    "checkpoint": lambda f: wg.grad(lambda x: np.sum(wg.checkpoint(f)(x)))(X),
    "cond": lambda f: wg.jacobian(wg.jit(lambda x: wg.cond(x[0] > 0, f, lambda x: stacked(x) * 2, x)))(X),
    "scan": lambda f: wg.jacobian(lambda x: wg.scan(lambda c, _: (c, f(c)), x, None, 2)[1])(X),
    "custom_rule": lambda f: wg.jacobian(wg.custom_rule(f))(X),
    "trace": lambda f: wg.graph.trace(f)(X)(X)[0],
}


@together("transformation", RETURNED)
def test_what_is_returned_is_read_as_what_it_holds(transformation: str) -> None:
    found, expected = (RETURNED[transformation](f) for f in (items, stacked))
    assert np.asarray(found).dtype == float
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_items_with_axes_come_last() -> None:
    def rows(x: Any) -> Any:
        e = np.empty(2, dtype=object)
        e[0], e[1] = x * x, x
        return e

    np.testing.assert_array_equal(wg.jacobian(rows)(X)[0], np.diag(2 * X))


def test_arrays_of_objects_in_arrays_of_objects_are_read() -> None:
    def nested(x: Any) -> Any:
        e = np.empty(2, dtype=object)
        for i in range(2):
            e[i] = np.empty(2, dtype=object)
            e[i][:] = items(x)[i]
        return e

    for transform in (wg.jacobian, lambda f: wg.jit(wg.jacfwd(f))):
        np.testing.assert_allclose(transform(nested)(X), wg.jacobian(stacked)(X), rtol=1e-14)


def test_objects_that_are_all_numbers_are_numbers() -> None:
    assert str(wg.asarray(np.array([1.0, 2], dtype=object))) == "tensor([1., 2.])"
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(x * np.array([1.0, 2], dtype=object)))(X), [1.0, 2.0])


def test_what_is_not_all_numbers_is_refused() -> None:
    e = np.empty(2, dtype=object)
    e[0] = wg.tensor(1.0)
    text = r"^asarray: an array of dtype object that holds a NoneType; numbers or Tensors as items are needed\. Fill it"
    with pytest.raises(DtypeError, match=text):
        wg.asarray(e)
    with pytest.raises(DtypeError, match=r"^multiply: an array of dtype object that holds a NoneType"):
        wg.tensor(1.0) * e
    e[1] = e
    with pytest.raises(DtypeError, match="holds a ndarray"):
        wg.asarray(e)
    e[1] = wg.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"whose items have the shapes \(\) and \(2,\); items of one shape are needed"):
        wg.asarray(e)


@wg.tree.register(static=["unit"])
class Length:
    def __init__(self, value: Any, unit: int) -> None:
        self.value, self.unit = value, unit


def test_branches_leave_the_same_static_data() -> None:
    def alike(x: Any) -> Any:
        return Length(x, 1) if x > 0 else Length(-x, 1)

    def another(x: Any) -> Any:
        found = Length(x, 1) if x > 0 else Length(-x, 2)
        return found.value

    assert wg.jit(alike)(-2.0).value == 2.0
    with pytest.raises(GraphError, match=r"is a Length .* and one with other static data where it does not"):
        wg.jit(another)(2.0)


class Located(abc.ABC):
    def __init__(self, location: Any) -> None:
        if location > 10:
            raise ValueError("too far")
        self.location = location if location > 0 else -location

    @abc.abstractmethod
    def at(self, x: Any) -> Any: ...


class Scaled(Located):
    def __init__(self, scale: Any, location: Any = 0.0) -> None:
        super().__init__(location)
        assert scale > 0, "no scale"
        self.scale = scale

    def at(self, x: Any) -> Any:
        return (x - self.location) ** 2 / self.scale


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: Any
    location: Any = 0.0
    sign: dataclasses.InitVar[float] = -1.0

    def __post_init__(self, sign: float) -> None:
        if self.location > 10:
            raise ValueError("too far")
        assert self.scale > 0, "no scale"
        if self.location < 0:
            object.__setattr__(self, "location", sign * self.location)

    def at(self, x: Any) -> Any:
        return (x - self.location) ** 2 / self.scale


@pytest.mark.parametrize("kind", [Scaled, Frozen])
def test_constructors_check_traced_values(kind: Any) -> None:
    def function(scale: Any, location: Any) -> Any:
        return kind(scale, location).at(1.5)

    for scale, location in [(2.0, 1.0), (2.0, -1.0)]:
        assert wg.jit(function)(scale, location) == function(scale, location)
        expected = wg.grad(function, (0, 1))(scale, location)
        assert wg.jit(wg.grad(function, (0, 1)))(scale, location) == expected
        assert wg.grad(wg.jit(function), (0, 1))(scale, location) == expected
    scales, locations = np.array([1.0, 2.0]), np.array([-1.0, 1.0])
    lanes = wg.jit(wg.vmap(function))(scales, locations)
    np.testing.assert_allclose(lanes, [function(s, x) for s, x in zip(scales, locations, strict=True)])
    with pytest.raises(ValueError, match="too far"):
        wg.jit(function)(2.0, 11.0)
    with pytest.raises(AssertionError, match="no scale"):
        wg.jit(function)(-2.0, 1.0)
    made = wg.jit(lambda scale: kind(scale))(2.0) if kind is Frozen else Frozen(2.0)
    assert vars(made) == {"scale": 2.0, "location": 0.0}


def test_constructors_say_what_they_need_in_their_own_words() -> None:
    with pytest.raises(TypeError, match=r"Scaled\.__init__\(\) missing 1 required positional argument: 'scale'"):
        wg.jit(lambda x: Scaled().at(x))(1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="instantiate abstract class Located"):
        wg.jit(lambda x: Located(x).at(x))(1.0)  # type: ignore[abstract]
