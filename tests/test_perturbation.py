"""Perturbation confusion: derivatives inside of derivatives never mix, whatever captures whatever (issue of Siskind
and Pearlmutter, Perturbation Confusion and Referential Transparency, 2005).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together

Derivative = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


def by_jvp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.jvp(f, (x,), (1.0,))[1]


def by_tape(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the derivative by the tape API; at the outermost place only, for it takes a number."""

    def differentiated(x: Any) -> Any:
        leaf = wg.tensor(x, requires_grad=True)
        return wg.autograd.grad(f(leaf), leaf)[0].item()

    return differentiated


def by_lane(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.vmap(wg.grad(f))(np.stack([x, x + 1.0]))[0]


def by_jacfwd(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return wg.jacfwd(f)


def by_linearize(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.linearize(f, x)[1](1.0)


def by_vjp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.vjp(f, x)[1](1.0)[0]


def by_taylor(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.taylor(f, (x,), (1.0,), 1)[1]


INNER: dict[str, Derivative] = {
    "grad": wg.grad,
    "jvp": by_jvp,
    "vmap of grad": by_lane,
    "jacfwd": by_jacfwd,
    "linearize": by_linearize,
    "vjp": by_vjp,
    "taylor": by_taylor,
}
OUTER: dict[str, Derivative] = {**INNER, "tape": by_tape}


def constant_inside(outer: Derivative, inner: Derivative) -> tuple[Any, float]:
    """d/dx of x * d/dy (x + y), where the inner derivative is 1 whatever x is."""
    return outer(lambda x: x * inner(lambda y: x + y)(1.0))(3.0), 1.0


def product_inside(outer: Derivative, inner: Derivative) -> tuple[Any, float]:
    """d/dx of x * d/dy (x * y) = x**2."""
    return outer(lambda x: x * inner(lambda y: x * y)(2.0))(3.0), 6.0


def inner_variable_unused(outer: Derivative, inner: Derivative) -> tuple[Any, float]:
    """d/dx of x * d/dy (x * x + 0 * y), where the inner derivative is 0."""
    return outer(lambda x: x * inner(lambda y: x * x + 0.0 * y)(2.0))(3.0), 0.0


def at_the_captured_value(outer: Derivative, inner: Derivative) -> tuple[Any, float]:
    """d/dx of (d/dy (x * y**2) at y = x) = 2 x**2."""
    return outer(lambda x: inner(lambda y: x * y * y)(x))(3.0), 12.0


def same_name(outer: Derivative, inner: Derivative) -> tuple[Any, float]:
    """d/dx of (d/dx x**3) with one name for both."""
    return outer(lambda x: inner(lambda x: x**3)(x))(2.0), 12.0


def kept_in_a_cell(outer: Derivative, inner: Derivative) -> tuple[Any, float]:
    """The inner function reads the outer value from a list that it does not own."""
    cell: list[Any] = []

    def f(x: Any) -> Any:
        cell.append(x * x)
        return inner(lambda y: cell[-1] * y * y)(x)

    return outer(f)(2.0), 24.0


def derivative_as_argument(outer: Derivative, inner: Derivative) -> tuple[Any, float]:
    """A curried function, differentiated in its first argument, then applied (Siskind and Pearlmutter's D of s)."""

    def shifted(x: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        return lambda g: lambda y: g(x + y)

    twice = outer(lambda x: shifted(x)(inner(lambda y: shifted(x)(np.exp)(y)))(0.0))
    return twice(0.25), 2.0 * np.exp(0.5)


CASES = [
    constant_inside,
    product_inside,
    inner_variable_unused,
    at_the_captured_value,
    same_name,
    kept_in_a_cell,
    derivative_as_argument,
]


@together("case", CASES)
@together("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_perturbations_do_not_mix(outer: str, inner: str, case: Callable[..., tuple[Any, float]]) -> None:
    got, want = case(OUTER[outer], INNER[inner])
    np.testing.assert_allclose(got, want, rtol=1e-14)


TRIPLES = list(itertools.product(("grad", "jvp", "vmap of grad"), repeat=3))


@together("names", TRIPLES)
def test_three_levels_that_capture_each_other(names: tuple[str, ...]) -> None:
    a, b, c = (INNER[name] for name in names)

    def f(x: Any) -> Any:
        return x * b(lambda y: x * y * y * c(lambda z: x * y * z * z)(y))(x)

    # c: 2 x y y; b: d/dy (2 x**2 y**4) at y = x is 8 x**5; a: d/dx 8 x**6
    np.testing.assert_allclose(a(f)(1.5), 48 * 1.5**5, rtol=1e-14)


@together("names", TRIPLES)
def test_nothing_flows_from_an_inner_constant(names: tuple[str, ...]) -> None:
    a, b, c = (INNER[name] for name in names)
    got = a(lambda x: x * b(lambda y: y * c(lambda z: x + y + z)(1.0))(2.0))(3.0)
    np.testing.assert_allclose(got, 1.0)


def test_writes_into_captured_values_belong_to_the_outer_derivative() -> None:
    def f(x: Any) -> Any:
        buffer = x * np.ones(2)
        slope = wg.grad(lambda y: np.sum(buffer * y * y))(2.0)  # 4 sum of buffer
        buffer[0] = x**3
        return slope * np.sum(buffer)  # 8 x (x**3 + x)

    for derivative in (wg.grad, by_jvp):
        np.testing.assert_allclose(derivative(f)(1.5), 32 * 1.5**3 + 16 * 1.5)


@pytest.mark.parametrize("inner", ["grad", "jvp"])
def test_inner_functions_may_write_into_captured_values(inner: str) -> None:
    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            buffer = x * np.ones(2)
            buffer[0] = y * x
            buffer[1] *= y
            return np.sum(buffer * buffer)  # 2 x**2 y**2

        return INNER[inner](g)(x)  # 4 x**3

    for derivative in (wg.grad, by_jvp):
        np.testing.assert_allclose(derivative(f)(1.5), 12 * 1.5**2)


def test_gradients_with_respect_to_captured_tensors_in_every_mode() -> None:
    for inner in INNER.values():
        weight = wg.tensor(2.0, requires_grad=True)
        slope = wg.asarray(inner(lambda x, weight=weight: weight**2 * x**3)(2.0))  # 12 weight**2
        slope.backward()
        assert weight.grad is not None
        assert weight.grad.item() == 48.0


def test_derivatives_in_two_threads_at_once_do_not_mix() -> None:
    """Both threads are held in the middle of their nests until the other is there too."""
    barrier = threading.Barrier(2, timeout=20)
    results: dict[int, list[float]] = {0: [], 1: []}

    def work(number: int) -> None:
        names = TRIPLES if number == 0 else TRIPLES[::-1]
        for triple in names:
            a, b, c = (INNER[name] for name in triple)

            def f(x: Any, a: Any = a, b: Any = b, c: Any = c) -> Any:
                barrier.wait()
                inner = b(lambda y: x * y * y * c(lambda z: pause(x * y * z * z))(y))(x)
                barrier.wait()
                return x * inner

            results[number].append(float(a(f)(1.5 + number)))

    def pause(value: Any) -> Any:
        barrier.wait()
        return value

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for number in (0, 1):
        np.testing.assert_allclose(results[number], [48 * (1.5 + number) ** 5] * len(TRIPLES), rtol=1e-14)


def test_values_shared_by_threads_are_constants_to_the_other_thread() -> None:
    shared: dict[str, Any] = {}
    ready, done = threading.Event(), threading.Event()

    def lend(x: Any) -> Any:
        shared["value"] = x * x
        ready.set()
        done.wait(20)
        return shared["result"] * x

    def borrow() -> None:
        ready.wait(20)
        shared["slope"] = wg.grad(lambda y: y * y * wg.stop_gradient(shared["value"]))(1.0)
        shared["result"] = shared["value"] * 3.0
        done.set()

    thread = threading.Thread(target=borrow)
    thread.start()
    slope = wg.grad(lend)(2.0)
    thread.join(20)
    assert slope == 36.0
    assert float(shared["slope"]) == 8.0
