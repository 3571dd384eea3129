"""Elements and slices of one-dimensional arrays, which have compact paths: the same as what the general way gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import GraphError

X = np.array([0.5, -1.5, 2.0, 3.0])


def elements(x: Any) -> Any:
    """Fill a vector element by element, overwriting some."""
    v = wg.numpy.zeros(4)
    for i in range(4):
        v[i] = x[i] * x[-1]
    v[0] = v[2] * 2.0
    v[1] = 7.0
    return (v * v).sum()


def slices(x: Any) -> Any:
    """Write and read slices, one of them broadcast, through a view too."""
    v = wg.numpy.zeros(4)
    v[:2] = x[1:3]
    v[2:] = x[:1]
    v[1:3] = v[::-1][:2] * x[0]
    return (v * v * v).sum()


def rows(x: Any) -> Any:
    """Read and write rows and single elements of a matrix."""
    m = wg.numpy.zeros((2, 4))
    m[0] = x
    m[1, 2] = x[1] * x[2]
    m[1, :2] = m[0, 2:]
    return (m[0] * m[1]).sum() + m[1, 2] ** 2


def scattered(x: Any) -> Any:
    """Write numbers where arrays say: places that repeat, with a slice beside them, and where a mask holds."""
    v = x * x[::-1]
    v[np.array([2, 0, 2])] = 0.5
    m = wg.numpy.zeros((3, 4))
    m[:] = v * x
    m[np.array([0, 1]), 1:3] = 2
    m[np.array([[False, False, True, True]] * 3)] = 1.5
    return (v * v).sum() + (m * m).sum() + (m[1] * m[2]).sum()


FUNCTIONS = [elements, slices, rows, scattered]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients(function: Callable[[Any], Any]) -> None:
    """They are those of differences, on the tape and by `grad`, to second order."""
    step = 1e-6
    value = np.array([(function(X + e) - function(X - e)).item() / (2 * step) for e in np.eye(4) * step])
    np.testing.assert_allclose(wg.grad(function)(X), value, rtol=1e-7)
    leaf = wg.tensor(X, requires_grad=True)
    function(leaf).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), wg.grad(function)(X))  # type: ignore[union-attr]
    np.testing.assert_allclose(wg.jacrev(wg.grad(function))(X), wg.hessian(function)(X), rtol=1e-12)
    np.testing.assert_allclose(wg.vmap(wg.grad(function))(X[None]), wg.grad(function)(X)[None], rtol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_create_graph(function: Callable[[Any], Any]) -> None:
    """A sweep that is recorded can be swept."""
    leaf = wg.tensor(X, requires_grad=True)
    gradient: Any = wg.autograd.grad(function(leaf), [leaf], create_graph=True)[0]
    gradient.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), wg.hessian(function)(X).sum(axis=0))  # type: ignore[union-attr]


@pytest.mark.parametrize("use", [lambda x: x[1], lambda x: x[:2].sum()])
def test_a_released_graph(use: Callable[[Any], Any]) -> None:
    """Sweeping twice is an error unless the graph is retained, though a part saves nothing."""
    leaf = wg.tensor(X, requires_grad=True)
    part = use(leaf)
    part.backward(retain_graph=True)
    part.backward()
    np.testing.assert_array_equal(leaf.grad.numpy()[:2].max(), 2.0)  # type: ignore[union-attr]
    with pytest.raises(GraphError, match="retain_graph=True"):
        part.backward()


def test_places_may_be_changed_once_a_number_has_been_written_there() -> None:
    """The sweep reads the places that were written to; a second one is an error; masks choose, as with `where`."""
    leaf, places = wg.tensor(X, requires_grad=True), np.array([1, 2])
    copy = leaf * 3.0
    copy[places] = 0.0
    places[:] = 0
    copy.backward(np.ones(4), retain_graph=True)
    np.testing.assert_array_equal(leaf.grad.numpy(), [3.0, 0.0, 0.0, 3.0])  # type: ignore[union-attr]
    copy.backward(np.ones(4))
    with pytest.raises(GraphError, match="retain_graph=True"):
        copy.backward(np.ones(4))
    with pytest.raises(IndexError):
        copy[np.array([4])] = 1.0
    with np.errstate(all="ignore"):
        root = np.sqrt(leaf := wg.tensor([0.0, 4.0], requires_grad=True))
    root[np.array([True, False])] = 0.0
    root.backward(np.ones(2))
    np.testing.assert_array_equal(leaf.grad.numpy(), [0.0, 0.25])  # type: ignore[union-attr]


def test_hooks_and_names() -> None:
    """A part has a `grad_fn`, whose hooks run, and a write has one as well."""
    leaf = wg.tensor(X, requires_grad=True)
    part = leaf[2]
    seen: list[Any] = []
    part.register_hook(seen.append)
    target = wg.numpy.zeros(3)
    target[1] = part
    assert (part.grad_fn.name, target.grad_fn.name) == ("getitem", "assign")
    (target * 3.0).sum().backward()
    assert [ct.item() for ct in seen] == [3.0]


def test_what_must_not_be_written() -> None:
    """A leaf refuses; a saved value is copied first; integers stay integers; wrong shapes and places raise."""
    leaf = wg.tensor(X, requires_grad=True)
    with pytest.raises(GraphError, match="leaf"):
        leaf[0] = 1.0
    doubled = leaf * 2.0
    square = doubled * doubled
    doubled[0] = 100.0
    square.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), 8 * X)  # type: ignore[union-attr]
    whole = wg.tensor([1, 2, 3])
    whole[0] = leaf[3]
    assert (whole.tolist(), whole.requires_grad) == ([3, 2, 3], False)
    with pytest.raises(ValueError, match="broadcast"):
        whole[:2] = wg.tensor([1, 2, 3])
    with pytest.raises(IndexError):
        whole[3]
