"""Idioms of Python over traced values: supported, or refused with what to write instead, and the line."""

from __future__ import annotations

import math
import re
from numbers import Number
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import GraphError

X = np.array([0.5, 3.0, 1.5])


def sorted_items(x: Any) -> Any:
    return sorted(x)[0]


def sorted_in_place(x: Any) -> Any:
    items = [x[0], x[1]]
    items.sort()
    return items[0]


def any_of_generator(x: Any) -> Any:
    return np.sum(x) if any(v > 1 for v in x) else x[0]


def first_that_fits(x: Any) -> Any:
    return next(v for v in x if v > 1)


def filtered(x: Any) -> Any:
    return sum(filter(lambda v: v > 1, x))


def chosen(x: Any) -> Any:
    return sum([v for v in x if v > 1])


def among(x: Any) -> Any:
    return x[0] if x[0] in (0.5, 2.0) else x[1]


def formatted(x: Any) -> Any:
    return x[0] * len(f"{x[0]:.3f}")


def printed(x: Any) -> Any:
    return x[0] * len("{:.3f}".format(x[0]))  # noqa: UP032 - the older way


def zeros(x: Any) -> Any:
    return np.sum(np.abs(np.roots(x)))


def nearly_real(x: Any) -> Any:
    return np.sum(np.real_if_close(x + 0j).real)


REFUSED: dict[Any, str] = {
    zeros: "Find the eigenvalues of the companion matrix, of complex elements",
    nearly_real: "Write .real, where that is meant",
    sorted_items: "Use numpy.sort, or index with numpy.argsort",
    sorted_in_place: "Use numpy.sort, or index with numpy.argsort",
    any_of_generator: "Use .any() and .all() of an array",
    first_that_fits: "Use numpy.where, or index with numpy.argmax of the condition",
    filtered: "Use numpy.where, or index with numpy.argmax of the condition",
    chosen: "Choose with numpy.where, because how many items there are must not depend on traced values",
    formatted: "Return it, and write it into text outside of the function",
    printed: "Return it, and write it into text outside of the function",
}


TRACED = (sorted_items, any_of_generator)
"""What `jit` carries out."""


def chosen_by_any(x: Any) -> Any:
    return np.sum(x) if any(v > w for v, w in zip(x, [3.0, 1.0, 9.0], strict=True) if v < 5) else x[0]


def chosen_by_all(x: Any) -> Any:
    return x[1] if all(v * w > 0.4 for i, v in enumerate(x) if i != 1 for w in x) else -x[2]


def positive(v: Any) -> Any:
    if v <= 0:
        raise ValueError("not asked for")
    return v > 0.1


def nothing_after_the_first(x: Any) -> Any:
    return x[0] if any(positive(v) for v in [x[0], -x[0]]) else x[1]


def sorted_downwards(x: Any) -> Any:
    return sorted([x[0], 1.0, x[2]], reverse=True)[0] * sorted(v * v for v in x)[1]


def sorted_by_key(x: Any) -> Any:
    first, *_, last = sorted([(x[0], 2.0), (x[1], 3.0), (x[0], 4.0)], key=lambda pair: pair[0])
    return first[0] * first[1] + last[0] * last[1]


@pytest.mark.parametrize(
    "function",
    [
        *(*TRACED, chosen_by_any, chosen_by_all, nothing_after_the_first, sorted_downwards, sorted_by_key),
        lambda x: x[0] * any(x) + x[1] * all(x),
    ],
)
def test_any_all_and_sorted_of_traced_values_are_pythons(function: Any) -> None:
    jitted, gradient, lanes = (wg.jit(f) for f in (function, wg.grad(function), wg.vmap(wg.grad(function))))
    for x in (X, X[::-1].copy(), np.array([0.7, 0.9, 1.1]), np.array([2.0, 0.0, 1.0])):
        assert jitted(x) == function(x)
        np.testing.assert_array_equal(gradient(x), wg.grad(function)(x))
        np.testing.assert_array_equal(lanes(x[None])[0], wg.grad(function)(x))


@pytest.mark.long
def test_any_and_sorted_of_many_and_of_what_has_no_place() -> None:
    def any_of_first(x: Any, n: Any) -> Any:
        return any(x[i] > 1 for i in range(n))

    row = np.zeros(1000)
    assert wg.jit(lambda x: (any(x), any(v > 1 for v in x), all(list(x < 1))))(row) == (False, False, True)
    assert [bool(wg.jit(any_of_first)(X, n)) for n in range(4)] == [any_of_first(X, n) for n in range(4)]
    with pytest.raises(ValueError, match="sorted: NaN among traced values, which has no place"):
        wg.jit(sorted_items)(np.array([1.0, np.nan, 0.0]))
    with pytest.raises(GraphError) as error:
        wg.jit(lambda n: sorted([n, 3])[0])(np.uint8(2))
    assert "numbers of one type are needed to order them while tracing. Write numpy.sort(x), or x[" in str(error.value)


@together("function", list(REFUSED))
def test_what_needs_numbers_is_refused_with_what_to_write(function: Any) -> None:
    leaf = wg.tensor(X, requires_grad=True)
    function(leaf).backward()
    np.testing.assert_array_equal(wg.grad(function)(X), leaf.grad.numpy())  # where there are numbers it works
    name, remedy = function.__name__, re.escape(REFUSED[function])
    for run in (wg.jit(function), wg.jit(wg.grad(function))) if function not in TRACED else ():
        with pytest.raises(GraphError, match=rf"(?s)test_idioms.py.*in {name}.*operations on the .* {remedy}\.$"):
            run(X)
    for run in (wg.vmap(function), wg.jit(wg.vmap(function)))[: 1 if function in TRACED else 2]:
        with pytest.raises(GraphError, match=rf"lane to lane of vmap\({name}, .*; one value for .* {remedy}\.$"):
            run(np.stack([X, X]))


def by_math(x: Any) -> Any:
    return math.sin(x[0]) * x[1]


def by_item(x: Any) -> Any:
    return x[0].item() * x[1]


def by_list(x: Any) -> Any:
    return sum(x.tolist()) * x[1]


def by_float(x: Any) -> Any:
    return float(x[0]) * x[1]


def by_scalar(x: Any) -> Any:
    return np.float64(x[0]) * x[1]


def beside_a_list(x: Any) -> Any:
    return np.sum(np.eye(2) @ [x[0], 1.0])


def with_a_list_first(x: Any) -> Any:
    return np.sum([x[0], x[1]] - np.ones(2))


def added_to_an_array(x: Any) -> Any:
    y = np.ones(2)
    y = y - [x[0], 2.0]
    return np.sum(y)


NUMBERS: dict[Any, str] = {
    beside_a_list: "Make one array of the list with np.stack",
    with_a_list_first: "Make one array of the list with np.stack",
    added_to_an_array: "Make one array of the list with np.stack",
    by_math: "Write NumPy's function in place of math.sin",
    by_item: "Leave .item() out, and compute with the Tensor itself",
    by_list: "Leave .tolist() out, and compute with the Tensor itself",
    by_float: "Leave float() out, and compute with the Tensor itself",
    by_scalar: "Write x.astype(numpy.float64)",
}


@together("function", list(NUMBERS))
def test_what_makes_a_number_of_a_value_is_refused_with_what_to_write(function: Any) -> None:
    remedy = re.escape(NUMBERS[function])
    for run in (wg.jit(function), wg.jit(wg.grad(function))):
        with pytest.raises(GraphError, match=rf"(?s)traced \(File .*test_idioms.py.* {remedy}\.$"):
            run(X)
    with pytest.raises(GraphError, match=rf"silently lose the gradient\. {remedy}, or (apply|call) "):
        wg.grad(function)(X)
    with pytest.raises(GraphError, match=rf"one value for all lanes .* {remedy}\.$"):
        wg.vmap(function)(np.stack([X, X]))


def to_cents(x: float) -> float:
    return x * round(x, 2)


def test_digits_of_a_traced_number_are_refused_with_what_to_write() -> None:
    assert wg.grad(to_cents)(1.234) == 1.23
    with pytest.raises(GraphError, match=r"Write numpy\.round in place of round\.$"):
        wg.jit(to_cents)(1.234)


def by_key(x: Any) -> Any:
    return {0: 2.0, 1: 3.0}[int(x[0])] * x[1]


def test_a_list_that_may_be_repeated_is_refused_as_one_where_an_array_is_asked_for() -> None:
    with pytest.raises(GraphError, match=r"silently lose the gradient\. Make one array of the list with np\.stack, or"):
        wg.grad(lambda x: np.sum([x[0], x[1]] * np.ones(2)))(X)
    with pytest.raises(GraphError, match=r"Pass in static_argnums how often"):
        wg.jit(lambda n: [1.0] * n)(3)


def test_a_dictionary_looked_up_by_a_traced_value_is_refused_with_what_to_write() -> None:
    np.testing.assert_array_equal(wg.grad(by_key)(X), [0.0, 2.0, 0.0])
    np.testing.assert_array_equal(wg.jit(wg.grad(by_key))(X), [0.0, 2.0, 0.0])
    with pytest.raises(GraphError, match=r"Index an array of the values, or choose with numpy\.where\.$"):
        wg.jit(lambda x: {}[x[0]])(X)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_what_there_is_in_place_of_a_matrix_is_named() -> None:
    with pytest.raises(GraphError, match=r"Write wengert\.numpy\.asarray, which"):
        wg.grad(lambda x: np.sum(np.asmatrix(x)))(X)


def bound_within(x: Any) -> Any:
    return (y := x[0] * 2) * y if x[1] > 0 else x[0]


def by_case(x: Any) -> Any:
    match [x[0]]:
        case [1 | 2]:
            return x[0]
        case _:
            return x[0] * 2


def test_what_is_not_converted_is_refused_with_the_statement_that_is() -> None:
    for function, remedy in (
        (bound_within, "Write an if statement, because := is not"),
        (by_case, "Write if and elif"),
    ):
        assert wg.grad(function)(X)[0] > 0
        with pytest.raises(GraphError, match=remedy):
            wg.jit(function)(X)


def guarded(x: Any) -> Any:
    if x[0] < 0:
        raise ValueError(f"negative: {x[0]}")
    return np.sum(x * x)


def test_guards_that_raise() -> None:
    with pytest.raises(ValueError, match="negative"):
        wg.grad(guarded)(-X)
    np.testing.assert_array_equal(wg.grad(guarded)(X), 2 * X)
    for run in (wg.jit(guarded), wg.jit(wg.grad(guarded)), wg.grad(wg.jit(guarded))):
        with pytest.raises(ValueError, match=r"negative: tensor.*being traced"):  # the text is made while tracing
            run(-X)
    np.testing.assert_array_equal(wg.grad(wg.jit(guarded))(X), 2 * X)


def exchanged(A: Any) -> Any:
    A = A.copy()
    k, p = 0, np.argmax(np.abs(A[:, 0]))
    A[[k, p]] = A[[p, k]]
    return np.sum(A * np.arange(A.size).reshape(A.shape))


def exchanged_by_one(A: Any) -> Any:
    A = A.copy()
    p = np.argmin(A[0])
    A[:, [0, p]] = A[:, (p, 0)]
    A[[[0, p]]] *= 2.0
    return np.sum(A * np.arange(A.size).reshape(A.shape))


def listed(x: Any) -> Any:
    return np.sum(x) if any([v > 1 for v in x[0]]) and all([v > -9 for v in x[1]]) else x[0, 0]  # noqa: C419 - lists


def best(x: Any) -> Any:
    return max(x[0]) + min(x[1], key=lambda v: v * v) + sum(v * i for i, v in enumerate(reversed(x[2])))


def collected(x: Any) -> Any:
    table = {i: [v * v for v in row] for i, row in enumerate(x)}
    return table[0][1] * sum(table[2]) * len(f"{'a'}") + np.sum(
        np.stack([a * b for a, b in zip(x[0], x[1], strict=True)])
    )


def filled(items: list[Any]) -> Any:
    """Return an array of numbers, or of objects where they are something else, as pyrometheus does."""
    kind = np.float64 if all(isinstance(item, Number) for item in items) else object
    array = np.empty((len(items),), dtype=kind)
    for i, item in enumerate(items):
        array[i] = item
    return array


def reactions(x: Any) -> Any:
    """Return the rates of three species by reactions of one step, of falloff and of a third body."""
    temperature, c = 1000.0 + x[0], filled([x[1] * 0.5, x[2] * 2.0, x[1] + x[2]])
    ones = 0 * temperature + 1.0
    forward = [4.0 * temperature**-1.0 * ones, np.exp(3.0 - 200.0 / temperature) * ones, 0 * temperature]
    low, high = filled([2.0 * temperature**0.0, temperature**0.5])
    forward[2] = low * c[0] / (1 + low * c[0] / high) * 10 ** (np.log10(0.6 * ones) / (1 + np.log10(low) ** 2)) * ones
    forward[0] *= (0 + 0.83 * c[2] + 3.0 * c[1]) * ones
    balance = filled([np.where(np.greater(temperature, 1000.25), t + 2.0, t - 2.0) for t in (c[0], c[1], c[2])])
    net = filled([forward[i] * (c[i] ** 1.0 + -1 * np.exp(balance[i] * 0.1) * c[i - 1] ** 2.0) for i in range(3)])
    return filled([net[0] - net[1], net[1] - net[2], 0 + 1.0 * net[2]])


def temperature_of(x: Any) -> Any:
    """Return where a cubic has a value, by Newton's method, whose steps are numbers or 0-d arrays."""
    found = 1.0 * (0 * x[0] + 1.0)
    for _ in range(50):
        step = -(found**3 + x[1] * found - x[2]) / (3 * found**2 + x[1])
        found += step
        if (np.abs(step) if isinstance(step, Number) else np.linalg.norm(step, np.inf)) < 1e-12:
            return found
    raise RuntimeError("no convergence")


def test_programs_of_pyrometheus_run_as_they_are_written() -> None:
    for function in (reactions, lambda x: filled([temperature_of(x)])):
        exact = wg.jacobian(lambda x, f=function: np.stack(list(f(x))))(X)
        along = [(function(X + h) - function(X - h)).astype(float) / 2e-6 for h in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(exact, np.stack(along, axis=1), rtol=1e-6, atol=1e-7)
        for derivative in (wg.jacobian(function), wg.jit(wg.jacobian(function)), wg.jit(wg.jacfwd(function))):
            np.testing.assert_allclose(derivative(X), exact, rtol=1e-12)
        in_lanes = wg.jit(wg.vmap(wg.jacobian(function)))(np.stack([X, X]))
        np.testing.assert_allclose(in_lanes, [exact, exact], rtol=1e-12)
        np.testing.assert_allclose(wg.jit(function)(X), function(X).astype(float), rtol=1e-14)


@together("function", [exchanged, exchanged_by_one, listed, best, collected])
def test_idioms_that_work_in_every_mode(function: Any) -> None:
    A = np.array([[1.0, -2.0], [3.0, 4.0], [-5.0, 9.0]])
    value = function(A)
    leaf = wg.tensor(A, requires_grad=True)
    function(leaf).backward()
    slope = leaf.grad.numpy()
    np.testing.assert_array_equal(wg.grad(function)(A), slope)
    np.testing.assert_allclose(wg.jit(function)(A), value)
    np.testing.assert_allclose(wg.jit(wg.grad(function))(A), slope)
    np.testing.assert_allclose(wg.jit(wg.vmap(function))(np.stack([A, A])), [value, value])
    if function in (exchanged, collected):
        np.testing.assert_allclose(wg.vmap(wg.grad(function))(np.stack([A, A])), [slope, slope])


@together(
    "call, text",
    [
        (lambda x: x.mean(-1, True), "Cannot interpret 'True' as a data type; write keepdims=True"),
        (lambda x: x.sum(-1, True), "Cannot interpret 'True' as a data type; write keepdims=True"),
        (lambda x: np.std(x, -1, True), "Cannot interpret 'True' as a data type; write keepdims=True"),
        (lambda x: x.max(-1, True), "max: out=True; a Tensor is needed. Write keepdims=True, if that is meant."),
        (lambda x: x * "a", "unsupported operand type(s) for *: 'Tensor' and 'str'"),
        (lambda x: b"a" * x, "unsupported operand type(s) for *: 'bytes' and 'Tensor'"),
        (lambda x: x[0] * "a", "unsupported operand type(s) for *: 'Tensor' and 'str'"),
    ],
)
def test_what_is_passed_by_position_elsewhere_and_strings_as_factors(call: Any, text: str) -> None:
    for x in (wg.tensor([1.0, 2.0]), wg.tensor([1.0, 2.0], requires_grad=True)):
        with pytest.raises(TypeError, match="^" + re.escape(text)):
            call(x)
    with pytest.raises(TypeError, match="^" + re.escape(text)):
        wg.jit(call)(np.ones(2))


def test_integers_repeat_strings_as_numpys_do() -> None:
    assert wg.tensor(2) * "ab" == np.int64(2) * "ab" == "abab" == "ab" * wg.tensor(2)
