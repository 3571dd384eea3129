"""Jacobians and Hessians some rows or columns at a time: the same as all at once, in the memory of a batch."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of, together
from wengert.errors import UsageError

X = np.array([0.3, -0.7, 1.1, 0.2, -0.4])


def into_containers(p: Any, y: Any) -> Any:
    return {"a": np.outer(np.sin(p["u"]), p["v"]), "b": (np.sum(p["u"] ** 3) * y, np.prod(p["v"]))}


def vector(x: Any) -> Any:
    return np.concatenate([np.sin(x) * np.sum(x**2), x[:2] * x[1:3]])


def number(x: Any) -> Any:
    return np.sum(np.exp(x) * np.sin(np.cumsum(x)))


TRANSFORMS = {
    "jacrev": wg.jacrev,
    "jacfwd": wg.jacfwd,
    "jacobian": wg.jacobian,
    "jacobian fwd": lambda f, **options: wg.jacobian(f, mode="fwd", **options),
    "jacobian rev": lambda f, **options: wg.jacobian(f, mode="rev", **options),
    "hessian": wg.hessian,
}
COSTLY = ("jacrev", "jacfwd", "hessian")
AROUND = {
    "alone": lambda f: f,
    "jit": lambda f: wg.jit(f),
    "vmap": lambda f: lambda x: wg.vmap(f)(np.stack([x, x + 0.1])),
    "vmap in batches, jit": lambda f: wg.jit(lambda x: wg.vmap(f, batch_size=2)(np.stack([x, x + 0.1, x - 0.2]))),
    "grad": lambda f: wg.grad(lambda x: np.sum(np.sin(f(x)))),
    "jit, grad": lambda f: wg.jit(wg.grad(lambda x: np.sum(np.sin(f(x))))),
    "jvp": lambda f: lambda x: wg.jvp(f, (x,), (np.cos(x),))[1],
    "jit, jvp of grad": lambda f: wg.jit(
        lambda x: wg.jvp(wg.grad(lambda x: np.sum(np.sin(f(x)))), (x,), (np.cos(x),))[1]
    ),
}


def check_batches(name: str, around: str, sizes: tuple[int, ...], f: Any) -> None:
    want = AROUND[around](TRANSFORMS[name](f))(X)
    for size in sizes:
        got = AROUND[around](TRANSFORMS[name](f, batch_size=size))(X)
        assert type(got) is type(want)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@together("name, f", [(name, f) for name in TRANSFORMS for f in (vector, number)[: 2 if name == "hessian" else 1]])
def test_batches_give_what_all_at_once_give(name: str, f: Any) -> None:
    check_batches(name, "alone", (1, 2, 3, 5, 100), f)


@together("name, around", some_of([(n, a) for n in COSTLY for a in list(AROUND)[1:]], "batches of jacobians"))
def test_batches_compose(name: str, around: str) -> None:
    check_batches(name, around, (2,), number if name == "hessian" else vector)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", COSTLY)
def test_containers_and_auxiliary_results(name: str, jitted: bool) -> None:
    p = {"u": X[:3], "v": np.float32([0.5, 2.0])}

    def both(p: Any, y: Any) -> Any:
        return into_containers(p, y), {"doubled": 2.0 * y}

    run = wg.jit if jitted else (lambda f: f)
    for options in ({}, {"argnums": (0, 1)})[jitted:]:
        want = run(TRANSFORMS[name](into_containers, **options))(p, 1.5)
        got, aux = run(TRANSFORMS[name](both, has_aux=True, batch_size=2, **options))(p, 1.5)
        assert wg.tree.structure(got) == wg.tree.structure(want)
        for one, other in zip(wg.tree.leaves(got), wg.tree.leaves(want), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
        assert aux["doubled"] == 3.0


def test_complex_numbers_empty_arrays_and_tensors() -> None:
    z = np.array([1 + 2j, 0.5 - 1j, 2.0])
    for transform in (wg.jacrev, wg.jacfwd):
        want = transform(lambda z: z**2 * z[0], holomorphic=True)(z)
        np.testing.assert_allclose(transform(lambda z: z**2 * z[0], holomorphic=True, batch_size=2)(z), want)
        assert transform(lambda x: x[:0] * 2.0, batch_size=2)(X).shape == (0, 5)
        assert transform(lambda x: np.sum(x) * X, batch_size=2)(X[:0]).shape == (5, 0)
        assert type(transform(np.sin, batch_size=2)(wg.tensor(X))) is wg.Tensor
        np.testing.assert_allclose(transform(lambda x: x[0] * X, batch_size=3)(X)[:, 0], X)


@pytest.mark.parametrize("transform", [wg.jacrev, wg.jacfwd, lambda f, **o: wg.hessian(lambda x: np.sum(f(x)), **o)])
def test_memory_is_that_of_a_batch_and_the_result(transform: Any) -> None:
    x = np.linspace(0.0, 1.0, 60)

    def wide(x: Any) -> Any:
        return np.sum(np.sin(np.outer(x, x)), axis=0)

    def peak(**options: Any) -> int:
        function = transform(wide, **options)
        tracemalloc.start()
        try:
            assert function(x).shape == (60, 60)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    lane = result = 60 * 60 * 8
    assert peak() > 60 * lane
    assert peak(batch_size=4) < 5 * 4 * lane + 2 * result


def test_results_of_batches_are_never_there_twice() -> None:
    x = np.ones((400, 1000))
    tracemalloc.start()
    wg.vmap(lambda row: np.sin(row) * 2.0, batch_size=10)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * x.nbytes


def test_code_does_not_grow_with_the_number_of_batches() -> None:
    def equations(n: int) -> int:
        jacobian = wg.jacrev(lambda x: np.sin(x) * np.sum(x), batch_size=2)
        return len(wg.graph.trace(jacobian)(np.ones(n)).equations)

    assert equations(6) == equations(12)


def test_wrong_sizes_are_refused() -> None:
    for name, transform in (("jacrev", wg.jacrev), ("jacobian", wg.jacobian), ("hessian", wg.hessian)):
        for wrong in (0, -1, 2.5, True, "3"):
            text = f"^{name}: {wrong!r} for batch_size; a whole number, 1 or more, is needed. Pass an int.$"
            with pytest.raises(UsageError, match=text):
                transform(vector, batch_size=wrong)
