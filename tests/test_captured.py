"""Tensors from outside that a traced function captures: read anew at each call, so they must stay as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.errors import GraphError

X = np.array([0.5, 3.6])
TEXT = (
    "a Tensor from outside that is written to after it has been used; what a traced function captures must stay as it "
    "is. Pass it as an argument, or write to it outside of the function."
)


def leaf() -> Any:
    return wg.tensor([1.0, 2.0], requires_grad=True)


def read_then_written(w: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * w
        with wg.no_grad():
            w[0] = 10.0
        return y

    return f


def read_then_written_with_what_is_traced(w: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * w
        with wg.no_grad():
            w[...] = w - 0.1 * x
        return y

    return f


def read_between_writes(w: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for k in range(5):
            with wg.no_grad():
                w[0] = float(k)
            y = x * w
        return y

    return f


@pytest.mark.parametrize("program", [read_then_written, read_then_written_with_what_is_traced, read_between_writes])
@pytest.mark.parametrize("wrap", [wg.jit, lambda f: wg.grad(lambda x: np.sum(wg.jit(f)(x)))])
def test_a_write_after_the_use_is_refused_by_the_line_of_the_use(program: Any, wrap: Any) -> None:
    with pytest.raises(GraphError, match=re.escape(TEXT)) as error:
        wrap(program(leaf()))(X)
    assert str(error.value).endswith(("y = x * w", "w[0] = float(k)"))


def test_a_write_after_the_use_is_refused_under_an_outer_transformation() -> None:
    def f(c: Any) -> Any:
        c = c * 1.0

        def inner(x: Any) -> Any:
            y = x * c
            c[0] = 10.0
            return y

        return wg.jit(inner)(X)

    with pytest.raises(GraphError, match=re.escape(TEXT)):
        wg.jvp(f, (X,), (X,))


def test_a_write_before_the_use_and_one_between_calls_are_seen() -> None:
    w = leaf()

    def f(x: Any) -> Any:
        return x * w

    compiled = wg.jit(f)
    for value in (1.0, 7.0, 9.0):
        with wg.no_grad():
            w[0] = value
        np.testing.assert_array_equal(compiled(X).detach().numpy(), [0.5 * value, 7.2])
    assert compiled.trace_count == 1


def test_memory_that_a_leaf_shares_is_taken_over_once() -> None:
    w = wg.asarray(np.array([1.0, 2.0])).requires_grad_()

    def f(x: Any) -> Any:
        y = x * w
        return y + np.sum(w * w)  # recorded eagerly: the tape takes the memory over if nobody has

    found = wg.jit(f)(X)
    np.testing.assert_array_equal(found.detach().numpy(), f(X).detach().numpy())


ALONE: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda w, x: w * w * x,
    "function": lambda w, x: np.sin(w) * x,
    "reduction": lambda w, x: np.sum(w) * x,
    "view": lambda w, x: w[::-1].reshape(2) * x,
    "gradient": lambda w, x: wg.grad(lambda v: np.sum(v**3 * x))(w),
    "pullback": lambda w, x: wg.vjp(lambda v: v**2 * x, w)[1](x)[0],
    "tangents": lambda w, x: wg.jvp(lambda v: v**2 * x, (w,), (x,))[1],
    "lanes": lambda w, x: wg.vmap(lambda v: v**2)(w) * x,
    "captured": lambda w, x: wg.grad(lambda y: np.sum(w**2 * y), captured=[w])(x)[1][0],
    "without arguments": lambda w, _: np.sum(np.exp(w)),
}


@pytest.mark.parametrize("program", ALONE.values(), ids=ALONE)
def test_what_is_computed_of_captured_tensors_alone_is_computed_anew(program: Callable[[Any, Any], Any]) -> None:
    w = leaf()
    jitted = wg.jit(lambda x: program(w, x))
    for _ in range(3):
        found, expected = jitted(X), program(w, X)
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-15)
        gradients = [wg.autograd.grad(np.sum(y), w)[0] for y in (found, expected)]
        np.testing.assert_allclose(*(np.asarray(g.detach()) for g in gradients), rtol=1e-12)  # type: ignore[union-attr]
        with wg.no_grad():
            w[...] = w * 1.5 + 0.25


def test_results_of_jitted_functions_that_no_captured_tensor_enters_are_arrays() -> None:
    weights = {"w": wg.tensor([2.0, 3.0], requires_grad=True)}

    def with_others(w: Any, x: Any) -> Any:
        own = dict(weights)
        weights["w"] = w
        try:
            return weights["w"] * x
        finally:
            weights.update(own)

    x = np.array([1.0, 2.0])
    assert type(wg.jit(with_others)(x, x)) is np.ndarray
    plain, product = wg.jit(lambda x: (x * 2.0, x * weights["w"]))(x)
    assert type(plain) is np.ndarray
    product.sum().backward()
    assert weights["w"].grad.tolist() == [1.0, 2.0]
    assert wg.grad(wg.jit(lambda x: np.sum(with_others(x, x))))(x).tolist() == [2.0, 4.0]
