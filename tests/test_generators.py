"""Generators and iterators of the user's under `jit`: choices and loops over traced values between what they yield."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.conversion.operations import convert
from wengert.errors import TracedTruthError, UsageError


def parts_of(x: Any) -> Any:
    """Yield from inside of choices and loops that no traced value decides about."""
    total = 0.0
    for k, v in enumerate(x):
        if k == 3:
            break
        if v < 0:
            v = -2 * v
        while v > 1:
            v = v * 0.5
        total += v
        if k % 2:
            yield v
            continue
        received = yield total
        total += 0.0 if received is None else received
    else:
        yield 7.0
    while len(x) > 3:
        for _ in range(3):
            if total > 5:
                break
        yield total
        return
    yield from (v * 2 if v > 0.5 else v for v in x)


def of_a_generator(x: Any) -> Any:
    found = 1.0
    for v in parts_of(x):
        if v > 0.7:
            found = found * v
    generator = parts_of(x[:2])
    first = next(generator)
    return found + first * generator.send(first) + sum(parts_of(x[1:])) + max(parts_of(x))


class Steps:
    """Go through values, each made smaller if it is large."""

    def __init__(self, values: Any) -> None:
        self.__values = values

    def __iter__(self) -> Iterator[Any]:
        for value in self.__values:
            if value > 1:
                value = value - 1
            yield value


class Rest:
    """Go through values, the last of which a choice has changed."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __iter__(self) -> Iterator[Any]:
        last = self.values[-1]
        if last > 1:
            last = last * 0.1
        return iter([*self.values[:-1], last])


def of_objects(x: Any) -> Any:
    def squares() -> Iterator[Any]:
        for value in Steps(x):
            if value < 0:
                value = value * 3
            yield value**2

    def all_steps() -> Iterator[Any]:
        yield from Steps(x)

    total = sum(squares()) * sum(all_steps()) + sum([v * 2 for v in Steps(x)])
    for value in Rest(x):
        total = total + value * (2 if value > 0.5 else 3)
    return total


@pytest.mark.parametrize("program", [pytest.param(of_a_generator, marks=pytest.mark.long), of_objects])
def test_generators_yield_what_they_yield_in_python(program: Callable[[Any], Any]) -> None:
    for values in ([0.5, -0.3, 2.4, 1.0], [1.5, 0.2, -1.4, 3.0], [0.1, 3.0, 0.2]):
        x = np.array(values)
        np.testing.assert_allclose(wg.jit(program)(x), program(x), rtol=1e-14)
        np.testing.assert_allclose(wg.jit(wg.grad(program))(x), wg.grad(program)(x), rtol=1e-14)
        np.testing.assert_allclose(wg.grad(wg.jit(program))(x), wg.grad(program)(x), rtol=1e-14)


def test_what_a_traced_value_would_suspend_is_refused() -> None:
    def chosen(x: Any) -> Iterator[Any]:
        for v in x:
            if v > 0:
                yield v

    def ended(x: Any) -> Iterator[Any]:
        for v in x:
            yield v
            if v > 0:
                return

    def left(x: Any) -> Iterator[Any]:
        for v in x:
            if v > 0:
                break
            yield v

    for generator in (chosen, ended, left):
        with pytest.raises(TracedTruthError, match=r"the elements of a value in `v > 0`"):
            wg.jit(lambda x, generator=generator: sum(generator(x)) if x[0] > 0 else x[1])(np.array([0.5, 2.0]))


def test_coroutines_and_generators_that_handle_errors_stay() -> None:
    async def coroutine(x: Any) -> AsyncIterator[Any]:
        yield x

    def handling(x: Any) -> Iterator[Any]:
        try:
            yield x
        finally:
            x.fill(0.0)

    for program, given in ((coroutine, "it is a coroutine"), (handling, "it yields inside of `with` or `try`")):
        with pytest.raises(UsageError) as caught:
            convert(program)
        assert str(caught.value).startswith(f"jit: {program.__qualname__} decides by a traced value, and {given}")
    assert wg.jit(lambda x: x * sum(map(np.sum, handling(np.ones(1)))) if x > 0 else x)(2.0) == 2.0


def test_functions_that_read_variables_by_their_names_stay() -> None:
    def scaled(x: Any, kind: str) -> Any:
        if kind == "linear":
            return 3 * locals()["x"]
        return x**2

    def squared(x: Any) -> Any:
        return x * locals()["x"] if x > 0 else x

    def chosen(x: Any) -> Any:
        factor = eval("2.0 * x")  # noqa: S307  # what is tested
        if x > 0:
            factor = factor + 1
        return factor * eval("x")  # noqa: S307  # what is tested

    def within(x: Any) -> Any:
        return eval("x") if x > 0 else x  # noqa: S307  # what is tested

    assert [wg.jit(chosen)(2.0), wg.grad(wg.jit(chosen))(-2.0)] == [10.0, -8.0]
    with pytest.raises(UsageError, match="within decides by a traced value, and it calls eval"):
        wg.jit(within)(2.0)
    assert wg.jit(lambda x: scaled(x, "linear") if x > 0 else x)(2.0) == 6.0
    with pytest.raises(UsageError, match="squared decides by a traced value, and it calls locals"):
        wg.jit(squared)(2.0)
    assert wg.jit(lambda x: squared(2.0) + x)(1.0) == 5.0
