"""Tests of `jacfwd`, `jacrev`, `jacobian` and `hessian`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, UsageError
from wengert.graph import trace

X = np.array([0.5, 1.5, -2.0])
M = np.arange(6.0).reshape(2, 3) / 4
A = np.array([[1.0, 0.5, -1.0], [2.0, 0.25, 0.0]])

JACOBIANS: dict[str, Callable[..., Any]] = {
    "jacfwd": wg.jacfwd,
    "jacrev": wg.jacrev,
    "jacobian": wg.jacobian,
    "jacobian forward": lambda f, argnums=0: wg.jacobian(f, argnums, mode="fwd"),
    "jacobian reverse": lambda f, argnums=0: wg.jacobian(f, argnums, mode="rev"),
}
every = pytest.mark.parametrize("jacobian", JACOBIANS.values(), ids=list(JACOBIANS))

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "vector to vector": (lambda x: A @ np.sin(x), X),
    "vector to scalar": (lambda x: np.sum(x**3), X),
    "vector to matrix": (lambda x: np.outer(x, x**2), X),
    "matrix to vector": (lambda m: m @ X * np.sum(m), M),
    "matrix to matrix": (lambda m: m @ m.T, M),
    "scalar to vector": (lambda x: x * X, 2.0),
    "scalar to scalar": (lambda x: x**3, 2.0),
    "with writes": (lambda m: written(m), M),
    "with views": (lambda m: m.T.reshape(2, 3)[::-1] * m, M),
    "constant": (lambda x: wg.asarray(X * 2), X),
    "partly constant": (lambda x: np.stack([x[0] ** 2, 5.0]), X),
    "empty output": (lambda x: x[:0] * 2, X),
    "empty argument": (lambda x: np.sum(x) * X, X[:0]),
    "solve": (lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3), x), X),
    "sorted": (lambda x: np.sort(x) * np.cumsum(x), X),
}


def written(m: Any) -> Any:
    result = wg.tensor(np.zeros((2, 2)))
    result[0] = m[:, 0] ** 2
    result[1, 0] = m[0, 1] * result[0, 1]
    return result


def by_differences(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the Jacobian by central differences."""
    x, h = np.asarray(x, float), 1e-6
    shape = np.shape(np.asarray(wg.asarray(f(wg.asarray(x)))))
    columns = []
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = h
        step = step.reshape(x.shape)
        above, below = (np.asarray(f(wg.asarray(x + s * step))) for s in (1, -1))
        columns.append((above - below) / (2 * h))
    stacked = np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0))
    return stacked.reshape(shape + x.shape)


@every
@together("name", FUNCTIONS)
def test_jacobians(name: str, jacobian: Callable[..., Any]) -> None:
    f, x = FUNCTIONS[name]
    got, want = jacobian(f)(x), by_differences(f, x)
    assert np.shape(got) == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


@every
def test_several_arguments(jacobian: Callable[..., Any]) -> None:
    f = lambda x, m, s: m @ x * s
    by_x, by_s = jacobian(f, (0, 2))(X, M, 3.0)
    np.testing.assert_allclose(by_x, 3 * M)
    np.testing.assert_allclose(by_s, M @ X)
    by_m = jacobian(f, 1)(X, M, 3.0)
    np.testing.assert_allclose(by_m, 3 * np.einsum("ij,k->ijk", np.eye(2), X))
    np.testing.assert_allclose(jacobian(f, -1)(X, M, 3.0), M @ X)


@every
def test_containers_of_arguments_and_results(jacobian: Callable[..., Any]) -> None:
    def f(tree: Any) -> Any:
        return {"product": tree["m"] @ tree["x"][0], "sum": [np.sum(tree["x"][0] ** 2)]}

    got = jacobian(f)({"m": M, "x": [X]})
    np.testing.assert_allclose(got["product"]["m"], np.einsum("ij,k->ijk", np.eye(2), X))
    np.testing.assert_allclose(got["product"]["x"][0], M)
    np.testing.assert_allclose(got["sum"][0]["m"], np.zeros((2, 3)))
    np.testing.assert_allclose(got["sum"][0]["x"][0], 2 * X)
    assert (jacobian(lambda _: {})(X), jacobian(lambda _: {"a": X})([])) == ({}, {"a": []})


@every
def test_results_are_of_the_kind_of_the_arguments(jacobian: Callable[..., Any]) -> None:
    assert type(jacobian(np.sin)(X)) is np.ndarray
    assert type(jacobian(np.sin)(wg.tensor(X))) is wg.Tensor
    assert jacobian(np.sin)(X.astype(np.float32)).dtype == np.float32


@every
def test_the_function_runs_once_for_all_columns(jacobian: Callable[..., Any]) -> None:
    calls: list[int] = []
    jacobian(lambda x: calls.append(1) or A @ x)(X)
    assert len(calls) <= 2  # "auto" looks at the shape of the output first


@every
def test_jacobians_of_jacobians(jacobian: Callable[..., Any]) -> None:
    third = jacobian(jacobian(jacobian(lambda x: np.sum(x**4))))(X)
    want = np.zeros((3, 3, 3))
    want[range(3), range(3), range(3)] = 24 * X
    np.testing.assert_allclose(third, want)


@every
def test_captured_values_follow(jacobian: Callable[..., Any]) -> None:
    got = wg.grad(lambda y: np.sum(jacobian(lambda x: y * x**2)(X)))(3.0)
    np.testing.assert_allclose(got, 2 * np.sum(X))
    weight = wg.tensor(3.0, requires_grad=True)
    np.sum(wg.asarray(jacobian(lambda x: weight**2 * x)(X))).backward()
    assert weight.grad is not None
    assert weight.grad.item() == 18.0


def test_lanes_of_jacobians() -> None:
    rows = np.stack([X, 2 * X])
    got = wg.vmap(wg.jacfwd(lambda x: x**3))(rows)
    np.testing.assert_allclose(got, np.stack([np.diag(3 * row**2) for row in rows]))
    np.testing.assert_allclose(wg.vmap(wg.jacrev(lambda x: x**3))(rows), got)


# Hessians


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_hessian_is_symmetric_and_right() -> None:
    got = wg.hessian(rosenbrock)(X)
    np.testing.assert_array_equal(got, got.T)
    np.testing.assert_allclose(got, by_differences(wg.grad(rosenbrock), X), rtol=1e-7)
    for other in (wg.jacrev(wg.jacfwd(rosenbrock)), wg.jacrev(wg.grad(rosenbrock)), wg.jacfwd(wg.jacfwd(rosenbrock))):
        np.testing.assert_allclose(other(X), got, rtol=1e-13)


def test_hessian_of_matrices_and_containers() -> None:
    got = wg.hessian(lambda m: np.sum(m @ m.T))(M)
    assert got.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(got, np.einsum("ik,jl->ijkl", np.full((2, 2), 2.0), np.eye(3)))
    tree = wg.hessian(lambda t: np.sum(t["a"] ** 2) * t["b"])({"a": X, "b": 2.0})
    np.testing.assert_allclose(tree["a"]["a"], 4 * np.eye(3))
    np.testing.assert_allclose(tree["a"]["b"], 2 * X)
    np.testing.assert_allclose(tree["b"]["a"], 2 * X)
    assert tree["b"]["b"] == 0.0


def test_hessian_of_several_arguments() -> None:
    (aa, ab), (ba, bb) = wg.hessian(lambda a, b: np.sum(a**2 * b), argnums=(0, 1))(X, X + 1)
    np.testing.assert_allclose(aa, np.diag(2 * (X + 1)))
    np.testing.assert_allclose(ab, np.diag(2 * X))
    np.testing.assert_allclose(ba, ab.T)
    np.testing.assert_array_equal(bb, np.zeros((3, 3)))


# Errors


def test_mode_must_be_known() -> None:
    with pytest.raises(UsageError) as caught:
        wg.jacobian(np.sin, mode="reverse")
    assert str(caught.value) == ("jacobian: mode='reverse'; 'auto', 'fwd' or 'rev' is needed. Leave it out for 'auto'.")


@every
def test_arguments_must_have_derivatives(jacobian: Callable[..., Any]) -> None:
    with pytest.raises(DtypeError, match="a float or complex dtype is needed to differentiate"):
        jacobian(lambda x: x * 1.0)(np.arange(3))
    with pytest.raises(DtypeError, match="floats, arrays or Tensors"):
        jacobian(lambda x: 1.0)("x")


@every
def test_arguments_must_be_there(jacobian: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="argnums=1 with 1 positional arguments"):
        jacobian(lambda x: x, 1)(X)


RESULTS: dict[str, Callable[..., Any]] = {
    "vector": lambda x: x**3,
    "one": lambda x: np.sum(x**3, keepdims=True),
    "none": lambda x: x[:0] ** 2,
    "matrix": lambda x: np.outer(x, np.sin(x)),
    "pair": lambda x: (np.sum(x**3), x[0] * x),
    "tuple of one": lambda x: (np.prod(x),),
    "dictionary": lambda x: {"a": x * x, "b": [np.prod(x), np.cos(x)]},
    "single": lambda x: (x * x).astype(np.float32),
    "loop": lambda x: wg.scan(lambda c, row: (c * row, c + row**2), 1.0, x),
    "not all depend": lambda x: (x * x, np.ones(2) * 3.0),
}


@pytest.mark.filterwarnings("ignore")
@together("name", RESULTS)
def test_hessian_of_several_results_is_the_stack(name: str) -> None:
    f = RESULTS[name]
    wanted = wg.jacfwd(wg.jacrev(f))(X)
    for hessian in (wg.hessian(f), wg.jit(wg.hessian(f)), wg.hessian(wg.jit(f))):
        got = hessian(X)
        assert wg.tree.structure(got) == wg.tree.structure(wanted)
        for one, other in zip(wg.tree.leaves(got), wg.tree.leaves(wanted), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    lanes = wg.vmap(wg.hessian(f))(np.stack([X, X + 1]))
    for one, other in zip(wg.tree.leaves(lanes), wg.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one[0], other, rtol=1e-6, atol=1e-12)


def test_hessian_of_several_results_by_several_arguments() -> None:
    f = lambda p, b: {"y": p["w"] * b, "z": np.sum(p["w"]) ** 2 * b}
    p = {"w": X}
    for argnums in (0, (0, 1)):
        got, wanted = wg.hessian(f, argnums)(p, 2.0), wg.jacfwd(wg.jacrev(f, argnums), argnums)(p, 2.0)
        assert wg.tree.structure(got) == wg.tree.structure(wanted)
        wg.tree.map(np.testing.assert_allclose, got, wanted)
    got, aux = wg.hessian(lambda x: (x**2, x), has_aux=True)(X)
    np.testing.assert_array_equal(got, wg.hessian(lambda x: x**2)(X))
    np.testing.assert_array_equal(aux, X)
    np.testing.assert_allclose(wg.hessian(lambda z: z**3, holomorphic=True)(X + 1j)[1, 1, 1], 6 * (X[1] + 1j))
    third = wg.jacfwd(wg.hessian(np.sin))(X)
    np.testing.assert_allclose(third[0, 0, 0, 0], -np.cos(X[0]))


def test_hessian_of_what_has_no_derivative() -> None:
    with pytest.raises(DtypeError, match=r"^hessian: .*jacfwd twice"):
        wg.hessian(lambda x: x * (1 + 1j))(X)


@every
def test_numbers_give_numbers(jacobian: Callable[..., Any]) -> None:
    assert type(jacobian(lambda x: x**3)(2.0)) is float
    assert type(wg.hessian(lambda x: x**3)(2.0)) is float
    assert type(jacobian(lambda x: x * X)(2.0)) is np.ndarray
    assert type(jacobian(lambda x: x**3)(np.float32(2.0))) is np.float32


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_both_modes_give_the_dtype_of_the_output(kind: Any) -> None:
    x = np.ones(2, kind)
    for f in (lambda x: x.astype(np.float64) * 2, lambda x: x * np.array([1.0, 2.0]), lambda x: x.astype("f4")):
        assert wg.jacrev(f)(x).dtype == wg.jacfwd(f)(x).dtype == f(x).dtype


def test_square_jacobians_in_graphs_are_forward_unless_a_rule_is_for_reverse_mode_alone() -> None:
    @wg.custom_rule
    def clipped(x):
        return np.sin(x)

    clipped.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (np.maximum(ct, 0.0) * np.cos(x),))
    x = np.linspace(0.1, 1.0, 5)
    found = wg.jit(wg.jacobian(clipped))
    for _ in range(2):
        np.testing.assert_allclose(found(x), np.diag(np.cos(x)))
    mixed = np.linspace(-1.0, 1.0, 25).reshape(5, 5)
    square, complexes = wg.jit(wg.jacobian(lambda x: mixed @ np.tanh(x))), wg.jit(wg.jacobian(lambda x: x * (1 + 2j)))
    np.testing.assert_allclose(square(x), mixed * (1 - np.tanh(x) ** 2))
    np.testing.assert_allclose(complexes(x), np.eye(5) * (1 + 2j))
    names = [e.primitive.name for e in trace(wg.jacobian(lambda x: mixed @ np.tanh(x)))(x).equations]
    assert names.count("tanh") == 1
