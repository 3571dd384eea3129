"""Errors that a program raises as traced values decide: under `jit` they are raised when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import GraphError

GOOD = np.array([0.5, 1.0, 2.0])
FAR, NEGATIVE, HOLES = np.array([50.0, 1.0, 2.0]), np.array([0.5, -1.0, 2.0]), np.array([np.nan, 1.0, 2.0])


class NotFinite(Exception):
    def __init__(self, what: str, count: int) -> None:
        super().__init__(f"{what}: {count}")


def guard(x: Any) -> Any:
    if x[0] > 10:
        raise ValueError("too far")
    return np.sum(x * x)


def asserted(x: Any) -> Any:
    assert x[0] < 10, "too far"
    assert np.isfinite(x).all()
    return np.sum(np.sin(x))


def in_a_loop_over_rows(x: Any) -> Any:
    for value in x:
        if value < 0:
            raise ValueError("negative")
    return np.sum(np.sqrt(np.abs(x)))


def in_a_function(x: Any) -> Any:
    def checked(value: Any) -> Any:
        if not value < 10:
            raise NotFinite("not small", 2)
        return value

    return checked(x[0]) * x[1]


def in_a_chain(x: Any) -> Any:
    if x[0] > 10:
        raise ValueError("too far")
    elif x[1] < 0:  # noqa: RET506 - as users write it
        raise KeyError("negative")
    else:
        y = x * 2
    return np.sum(y)


def beneath(x: Any) -> Any:
    if x[0] > 10:
        if x[1] > 0:
            raise ArithmeticError("far and positive")
        y = x * 3
    else:
        y = x
    return np.sum(y)


def while_running(x: Any) -> Any:
    total = x[0]
    while total < 30:
        total = total * 2 + 1
        if x[1] < 0:
            raise RuntimeError("no way")
    return total


def without_convergence(x: Any) -> Any:
    root = np.abs(x[0]) + 1
    for _ in range(6):
        new = 0.5 * (root + 2 / root)
        if np.abs(new - root) < 1e-4:
            break
        root = new
    else:
        raise RuntimeError("no convergence")
    return root * x[1]


def in_an_expression(x: Any) -> Any:
    def refuse(value: Any) -> Any:
        raise TypeError(f"one of {len(value)}")

    return x[0] if x[0] < 10 else refuse(x)


def before_a_loop_without_end(x: Any) -> Any:
    n = x[1]
    if n < 0:
        raise ValueError("negative")
    while n != 0.0:
        n = n - 1.0
    return n + x[0]


def before_an_index_out_of_bounds(x: Any) -> Any:
    k = np.floor(np.nan_to_num(x[2] if x[0] < 10 else x[0])).astype(int)
    if k >= 3:
        raise ValueError("out of bounds")
    return x[k] * 2


def at_each_index(x: Any) -> Any:
    k, total = np.floor(np.nan_to_num(x[0])).astype(int), 0.0
    for i in range(3):
        if k + i >= 3:
            raise ValueError(f"out of bounds at {i}")
        total = total + x[k + i]
    return total


def late_before_a_loop_without_end(x: Any) -> Any:
    n = np.floor(np.nan_to_num(x[0]))
    if np.sum(np.sort(np.exp(x))[::-1]) > 1e9:
        raise ValueError("far")
    while n != 0.0:
        n = n - 1.0 if n < 9 else n + 1.0
    return n + x[1]


def cleaning_up(x: Any) -> Any:
    try:
        if x[0] > 10:
            raise ValueError("too far")
    finally:
        x = x * 2
    return np.sum(x)


def after_another(x: Any) -> Any:
    if x[0] > 10:
        if x[1] > 0:
            raise ValueError("far and positive")
        raise KeyError("far")
    return x[0]


def before_another(x: Any) -> Any:
    y = x * 3
    if x[0] > 10:
        y = x * 2
        if x[1] < 0:
            raise ValueError("far and negative")
        else:  # noqa: RET506 - both raise
            raise KeyError("far")
    elif x[1] < 0:
        assert x[2] < 0, "negative"
        raise KeyError("negative")
    return np.sum(y)


def in_a_loop_either_way(x: Any) -> Any:
    total = x[0]
    while total < 9:
        total = total * 2 + 1
        if x[1] < 0:
            if total > 4:
                raise RuntimeError("large")
            else:  # noqa: RET506 - both raise
                raise KeyError("small")
    return total


def where_the_rest_is_known(x: Any) -> Any:
    if x[0] > 10:
        if x[1] < 0 or not len(GOOD) > 5:
            raise KeyError("far")
        raise ValueError("far")
    return np.sum(x * x)


PROGRAMS = [
    *(guard, asserted, in_a_loop_over_rows, in_a_function, in_a_chain, beneath, while_running, without_convergence),
    *(in_an_expression, before_a_loop_without_end, before_an_index_out_of_bounds, cleaning_up),
    *(at_each_index, late_before_a_loop_without_end, after_another, before_another, in_a_loop_either_way),
    where_the_rest_is_known,
]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function gives, or the kind and text of the error that it raises."""
    try:
        return np.asarray(function(*args))
    except (ValueError, KeyError, RuntimeError, ArithmeticError, TypeError, AssertionError, NotFinite) as error:
        return type(error), str(error).split("\n", 1)[0]  # pytest adds what it saw of an assertion


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple) or isinstance(found, tuple):
        return bool(found == wanted)
    return np.allclose(found, wanted, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_program_raises_is_raised_when_its_graph_runs(program: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        return np.sum(program(x))

    jitted, reverse, forward = wg.jit(program), wg.jit(wg.grad(loss)), wg.jit(wg.jacfwd(loss))
    in_lanes = wg.jit(wg.vmap(program)), wg.vmap(jitted)
    points = [x for x in (GOOD, FAR, NEGATIVE, HOLES) if program is not before_a_loop_without_end or x is not HOLES]
    wanted = [outcome(program, x) for x in points]
    assert any(isinstance(x, tuple) for x in wanted)
    for x, value in zip(points, wanted, strict=True):
        assert same(outcome(jitted, x), value)
        slope = outcome(wg.grad(loss), x)
        assert same(outcome(reverse, x), slope)
        assert same(outcome(wg.grad(lambda x: np.sum(jitted(x))), x), slope)
        if x is not HOLES:
            assert same(outcome(forward, x), slope)
        for lanes in in_lanes:
            found = outcome(lanes, np.stack([GOOD, x]))
            assert same(found, value if isinstance(value, tuple) else np.stack([wanted[0], value]))
    assert jitted.trace_count == 1


def test_patterns_of_branches_that_raise_are_found_where_they_are_not_taken() -> None:
    def checked(x: Any) -> Any:
        if x[1] < -9 or not len(GOOD) > 5:
            raise KeyError("far")
        return np.sum(x * x)

    pattern = wg.sparse.hessian_pattern(lambda x: wg.cond(x[0] > 10, checked, lambda x: np.sum(x * x), x), GOOD)
    np.testing.assert_array_equal(pattern.toarray(), np.eye(3, dtype=bool))


def test_the_error_tells_the_line_that_raises_it() -> None:
    with pytest.raises(ValueError, match="too far") as caught:
        wg.jit(guard)(FAR)
    assert str(caught.value) == "too far"
    (note,) = caught.value.__notes__
    assert note.startswith(f'  File "{__file__}", line ')
    assert note.endswith('in guard: raise ValueError("too far")')


def handled(x: Any) -> Any:
    try:
        guard(x)
    except ValueError:
        return x[1]
    return x[0]


def in_a_context(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return guard(x)


def handled_either_way(x: Any) -> Any:
    try:
        either(x)
    except ValueError:
        return x[1]


def not_by_a_raise(x: Any) -> Any:
    if x[0] > 10:
        return np.sum(x) + len(None)  # type: ignore[arg-type]  # what tracing may bring about
    return np.sum(x)


def at_each_iteration(x: Any) -> Any:
    total = x[0]
    while total < 10:
        raise ValueError("at once")
    return total


REFUSED = [handled, handled_either_way, in_a_context, not_by_a_raise, at_each_iteration]


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_other_errors_in_traced_pieces_are_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(GraphError, match=r"was raised while .* of a traced decision were traced; ") as caught:
        wg.jit(program)(GOOD)
    assert __file__ in str(caught.value)
    assert "by a `raise` or `assert` in one of its branches, outside of `try` and `with`" in str(caught.value)


def test_checks_in_branches_without_results_are_carried_out() -> None:
    seen = []

    def program(x: Any) -> Any:
        seen.append(1)
        if x[0] > 1:
            assert x[1] > 0
        return np.sum(x)

    run = wg.jit(program)
    assert run(GOOD) == 3.5
    assert run(NEGATIVE) == 1.5
    with pytest.raises(AssertionError):
        run(-NEGATIVE * np.array([-4.0, -1.0, 1.0]))


def test_simplified_graphs_keep_what_they_raise() -> None:
    def program(x: Any, limit: Any) -> Any:
        if limit > 1:
            raise ValueError("limit")
        return x * 2

    outer = wg.jit(lambda x: wg.jit(program)(x, 2.0) if x > 0 else x)
    assert outer(-1.0) == -1.0
    with pytest.raises(ValueError, match="limit"):
        outer(1.0)


def either(x: Any) -> Any:
    if x[0] > 10:
        raise ValueError("too far")
    else:  # noqa: RET506 - both raise
        raise KeyError("too near")


def either_after_a_write(x: Any) -> Any:
    y = x * 2
    if x[0] > 10:
        y[0] = 1.0
        if x[1] < 0:
            raise KeyError("negative")
        raise ValueError("too far")
    elif x[1] < 0:  # noqa: RET506 - all raise
        raise KeyError("negative")
    else:
        y += 1
        raise KeyError("too near")


def then_another(x: Any) -> Any:
    if x[0] > 10:
        raise ValueError("too far")
    raise KeyError("near")


def then_a_mistake(x: Any) -> Any:
    if x[0] > 10:
        raise ValueError("too far")
    return x @ np.ones(7)


def within_another(x: Any) -> Any:
    return wg.jit(then_a_mistake)(x * 1.0)


ENDING = [either, either_after_a_write, then_another, then_a_mistake, within_another]
WAYS = {
    "jit": wg.jit,
    "grad(jit)": lambda f: wg.grad(wg.jit(f)),
    "jit(grad)": lambda f: wg.jit(wg.grad(f)),
    "jvp(jit)": lambda f: lambda x: wg.jvp(wg.jit(f), (x,), (x,)),
    "vmap(jit)": lambda f: lambda x: wg.vmap(wg.jit(f))(np.stack([GOOD, x])),
    "jit(vmap)": lambda f: lambda x: wg.jit(wg.vmap(f))(np.stack([GOOD, x])),
}


@together("program", [either, either_after_a_write, then_another, then_a_mistake, within_another])
@together("way", WAYS)
def test_what_is_raised_first_comes_before_what_ends_the_tracing(program: Callable[..., Any], way: str) -> None:
    for x in (GOOD, FAR):
        with pytest.raises((ValueError, KeyError)) as plain:
            program(x)
        run = WAYS[way](program)
        for _ in range(2):
            with pytest.raises(plain.type) as caught:
                run(x)
            assert ("too far" in str(caught.value)) == ("too far" in str(plain.value))


def with_a_jitter(x: Any) -> Any:
    matrix = np.outer(x, x) + np.eye(len(x)) * 0.5 - np.eye(len(x))
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.linalg.cholesky(matrix + np.eye(len(x)))


def test_what_numpy_raises_when_the_graph_runs_says_where_and_what_does_not_catch_it() -> None:
    assert np.isfinite(with_a_jitter(GOOD)).all()
    for run in (wg.jit(with_a_jitter), wg.jit(wg.jacobian(with_a_jitter)), lambda x: wg.fori_loop(0, 2, looped, x)):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            run(GOOD)
        (note,) = caught.value.__notes__
        assert "in with_a_jitter: return np.linalg.cholesky(matrix). To catch it, call the function under try" in note


@wg.jit
def looped(_: Any, x: Any) -> Any:
    return x + np.sum(with_a_jitter(x))
