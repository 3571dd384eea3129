"""Classes with operators of their own get the decision from Tensors as they do from Python's numbers and ndarrays."""

from __future__ import annotations

import operator
from collections import UserList, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import GraphError


class Vector(NamedTuple):
    """Be a tuple whose product with a number is no repetition, as in programs about geometry."""

    x: Any
    y: Any

    def __mul__(self, factor: Any) -> Vector:  # type: ignore[override]
        return Vector(self.x * factor, self.y * factor)

    __rmul__ = __mul__  # type: ignore[assignment]

    def __rsub__(self, other: Any) -> Vector:
        return Vector(other - self.x, other - self.y)


class Free(Vector):
    """Have no ufuncs, so that arrays of every kind leave the decision."""

    __array_ufunc__ = None


class Polynomial:
    """Be a sequence that is no tuple."""

    def __init__(self, *coefficients: Any) -> None:
        self.coefficients = coefficients

    def __len__(self) -> int:
        return len(self.coefficients)

    def __getitem__(self, index: int) -> Any:
        return self.coefficients[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.coefficients)

    def __rmul__(self, factor: Any) -> Polynomial:
        return type(self)(*(factor * c for c in self))

    def __rmatmul__(self, other: Any) -> Polynomial:
        return type(self)(other)

    def __gt__(self, other: Any) -> str:
        return "greater"

    def __rfloordiv__(self, other: Any) -> str:
        return "divided"


class High(Polynomial):
    """Come before arrays."""

    __array_priority__ = 10.0


class Even(Polynomial):
    """Come before NumPy's scalars."""

    __array_priority__ = 0.0


class Boxed:
    """Hold a value, and give it to NumPy, which makes an array of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.value, dtype)

    def __rmul__(self, factor: Any) -> Boxed:
        return type(self)(factor * self.value)


class HighBox(Boxed):
    """Come before arrays."""

    __array_priority__ = 10.0


class Exported(Boxed):
    """Be an array of another library, which Tensors are not left to."""

    def __dlpack__(self) -> None:
        raise AssertionError


def test_a_python_number_leaves_a_product_to_what_holds_a_value() -> None:
    for kind in (Boxed, HighBox):
        gradient = wg.grad(lambda s, v, kind=kind: (s * kind(v)).value, (0, 1))
        assert gradient(2.0, 3.0) == (3.0, 2.0)
        assert wg.jit(gradient)(2.0, 3.0) == (3.0, 2.0)
    assert wg.grad(lambda s: s * Exported(3.0))(2.0) == 3.0


def test_arrays_leave_a_product_to_what_holds_a_value_and_comes_first() -> None:
    gradient = wg.grad(lambda x: np.sum((x * HighBox(x)).value))(np.array([2.0, 3.0]))
    np.testing.assert_array_equal(gradient, [4.0, 6.0])


def test_a_python_number_leaves_a_product_to_a_sequence() -> None:
    def f(s: float, v: Vector) -> Any:
        return (s * v).x ** 2 + (s - v).y

    found = wg.grad(f, (0, 1))(1.5, Vector(2.0, 3.0))
    assert found == (2 * 1.5 * 4.0 + 1.0, Vector(2 * 1.5**2 * 2.0, -1.0))
    assert wg.jit(wg.grad(f, (0, 1)))(1.5, Vector(2.0, 3.0)) == found
    assert wg.jvp(f, (1.5, Vector(2.0, 3.0)), (1.0, Vector(0.0, 0.0)))[1] == found[0]


@pytest.mark.parametrize("function", [operator.matmul, operator.floordiv, operator.lt, operator.mul])
def test_a_python_number_leaves_other_operators_too(function: Callable[[Any, Any], Any]) -> None:
    plain = function(2.0, Polynomial(1.0, 2.0))
    kinds = []
    wg.grad(lambda s: kinds.append(function(s, Polynomial(1.0, 2.0))) or s)(2.0)
    assert type(kinds[0]) is type(plain)


@together("kind", [Vector, Free, Polynomial, High, Even, Boxed, HighBox])
@together("number", [np.float64(2.0), np.array(2.0), np.array([2.0, 3.0])])
def test_arrays_leave_the_decision_as_those_of_numpy(kind: type, number: Any) -> None:
    other = kind(np.array([1.0, 2.0])) if issubclass(kind, Boxed) else kind(1.0, 2.0)
    plain, found = number * other, wg.asarray(number) * other
    assert type(found) is (wg.Tensor if isinstance(plain, np.ndarray) else type(plain))


class Convertible(Polynomial):
    """Give NumPy an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.coefficients, dtype)


@pytest.mark.parametrize("kind", [Polynomial, Convertible])
@pytest.mark.parametrize("number", [2.0, [2.0, 3.0]])
def test_what_numpy_can_make_no_array_of_decides(number: Any, kind: type) -> None:
    w = wg.tensor([5.0, 7.0], requires_grad=True)
    product = wg.tensor(number) * kind(w[0], 3 * w[1])
    assert type(product) is kind
    (np.sum(product[0]) + np.sum(product[1])).backward()
    assert w.grad is not None
    np.testing.assert_array_equal(w.grad.numpy(), np.sum(number) * np.array([1.0, 3.0]))


class Comparing(Polynomial):
    """Be different from all that is no polynomial."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparing) and other.coefficients == self.coefficients


def test_comparisons_with_what_numpy_can_make_no_array_of_are_refused() -> None:
    w = wg.tensor([5.0, 7.0], requires_grad=True)
    for compare in (operator.eq, operator.ne):
        with pytest.raises(GraphError, match="a plain value is needed"):
            compare(w, Comparing(w[0], w[1]))
    assert wg.grad(lambda s: s if s == Comparing(2.0) else 3 * s)(2.0) == 3.0  # as a Python number


@pytest.mark.parametrize("other", [[1.0, 2.0], (1.0, 2.0), deque([1.0, 2.0]), UserList([1.0, 2.0])])
def test_sequences_of_python_are_arrays(other: Any) -> None:
    gradient = wg.grad(lambda s: (s * other).sum())(2.0)
    assert gradient == 3.0
