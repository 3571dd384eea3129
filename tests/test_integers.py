"""Integers of every type, sign and form where they decide: ranges, indices, choices; every mode does as Python does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import OPTIONS, some_of, together
from wengert.errors import DtypeError

Program = Callable[[Any, Any], Any]
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NUMBERS = (0, 1, 2, 5, -1, -3, 100, 200)


def integers() -> Iterator[Any]:
    """Return integers of Python's, and of NumPy's as scalars, arrays without axes and arrays of one element."""
    yield from (*NUMBERS, True, False)
    for name, number in itertools.product(DTYPES, NUMBERS):
        limits = np.iinfo(name)
        if limits.min <= number <= limits.max:
            yield np.dtype(name).type(number)
    for name, number in itertools.product(DTYPES, (0, 2)):
        yield np.array(number, name)
        yield np.array([number], name)
    yield from (np.bool_(False), np.bool_(True))


def up_to(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        total = total + x * i + 1
    return total


def from_one(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(1, n):
        total = total + x * (i * 1000)
    return total


def down_from(x: Any, n: Any) -> Any:
    for i in range(n, 0, -1):
        x = x * 1.01 + i
    return x


def in_steps(x: Any, n: Any) -> Any:
    for i in range(0, 9, n):
        x = x + i
    return x


def in_steps_down(x: Any, n: Any) -> Any:
    for i in range(9, -2, n):
        x = x + i
    return x


def backwards(x: Any, n: Any) -> Any:
    for i in reversed(range(1, n, 2)):
        x = x * 1.01 + i
    return x


def until(x: Any, n: Any) -> Any:
    for i in range(n):
        if i > 3:
            break
        x = x * 1.5 + i
    return x


def of_list(x: Any, n: Any) -> Any:
    return [x, 2 * x, 3 * x][n]


def of_same(x: Any, n: Any) -> Any:
    return [x, x][n]


def of_one(x: Any, n: Any) -> Any:
    return (x,)[n]


def of_tuples(x: Any, n: Any) -> Any:
    return ((x, 1.0), (x, 1.0), (x, 1.0))[n]


def of_numbers(x: Any, n: Any) -> Any:
    return (1, 2, 3)[n] * x


def of_array(x: Any, n: Any) -> Any:
    return (np.arange(6.0) * x)[n]


def of_dictionary(x: Any, n: Any) -> Any:
    return {0: x, 2: 2 * x, 5: x}[n]


def remainders(x: Any, n: Any) -> Any:
    return x * (n % 3) + n // 2


def guarded(x: Any, n: Any) -> Any:
    return x * 3 if (n == 0 or 9 // n < 7) and 0 < n < 9 % n else x


def unread(x: Any, n: Any) -> Any:
    for k in range(2):
        if x > 0:
            found = 7 % (n - k)  # noqa: F841 - which is meant
    return x * 2


def rolled(x: Any, n: Any) -> Any:
    return np.roll(np.arange(5.0) * x, n)


def put(x: Any, n: Any) -> Any:
    row = np.arange(300.0) * x
    np.put(row, n, x)
    return row[195:205]


def repeated_writes(x: Any, n: Any) -> Any:
    row = np.arange(9.0) * x
    np.multiply.at(row, np.stack([n, n]), x)
    return row


def counted(x: Any, n: Any) -> Any:
    return wg.fori_loop(n, 3, lambda i, y: y * 1.01 + i * 100, x)


def is_truth(n: Any) -> bool:
    return np.asarray(n).dtype == bool


def has_axes(n: Any) -> bool:
    return np.ndim(n) > 0


def is_array(n: Any) -> bool:
    return isinstance(n, np.ndarray)


def is_unsigned_array(n: Any) -> bool:
    return is_array(n) and n.dtype == np.uint64


PROGRAMS: dict[Program, tuple[Callable[[Any], bool], ...]] = {
    **dict.fromkeys((up_to, from_one, down_from, in_steps, in_steps_down, backwards, until), ()),
    **dict.fromkeys((of_list, of_same, of_one, of_tuples, of_numbers, remainders), ()),
    **dict.fromkeys((guarded, unread), ()),
    of_array: (is_truth,),  # a mask
    of_dictionary: (is_array,),  # Tensors can be keys
    rolled: (has_axes,),
    put: (is_unsigned_array,),  # which NumPy alone refuses
    repeated_writes: (is_truth,),
    counted: (is_truth, has_axes),  # with errors of its own
}
"""Programs, with what of integers they are not for."""


KINDS = (TypeError, IndexError, KeyError, ZeroDivisionError, ValueError)


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or the type of Python's that its error is of."""
    try:
        with np.errstate(all="ignore"):
            return call()
    except KINDS as error:
        return next(kind for kind in KINDS if isinstance(error, kind))


def alike(one: Any, other: Any) -> bool:
    """Tell whether two outcomes are the same error, or the same numbers."""
    if isinstance(one, type) or isinstance(other, type):
        return one is other
    pairs = zip(wg.tree.leaves(one), wg.tree.leaves(other), strict=True)
    return all(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-13, atol=0) for a, b in pairs)


MODES: dict[str, Callable[[Program, Any, Any], Any]] = {
    "jit": lambda f, x, n: wg.jit(f)(x, n),
    "vjp": lambda f, x, n: wg.vjp(lambda x: f(x, n), x)[0],
    "jit of jvp": lambda f, x, n: wg.jit(lambda x, n: wg.jvp(lambda x: f(x, n), (x,), (1.0,))[0])(x, n),
}


CASES = [
    (program, n) for program, others in PROGRAMS.items() for n in integers() if not any(other(n) for other in others)
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::wengert.errors.DetachedWarning")
@together("program, n", some_of(CASES, "integers"))
def test_integers_decide_as_in_python(program: Program, n: Any) -> None:
    wanted = outcome(lambda: program(2.5, n))
    for name, run in MODES.items():
        found = outcome(lambda run=run: run(program, 2.5, n))
        assert alike(found, wanted), f"{name}: {found} for {wanted}"


def larger_times(n: Any) -> Any:
    return max(n, 3) * 100


def smaller_times(n: Any) -> Any:
    return 100 * min(n, 3) + 1


def by_expression(n: Any) -> Any:
    return ~(n if n > 2 else 3) << 6


def by_statement(n: Any) -> Any:
    if n > 2:  # noqa: SIM108 - a statement is meant
        found = n
    else:
        found = 3
    found *= 100
    return -found % 97


def of_three(n: Any) -> Any:
    return abs(max(n, -2, min(n, 1))) ** 5


def divided(n: Any) -> Any:
    return 10 // min(n, 5)


def by_or(n: Any) -> Any:
    return (n or 5) * 100 + np.float32(0.5)


TYPED = [larger_times, smaller_times, by_expression, by_statement, of_three, divided, by_or]


@together("program", TYPED)
def test_operators_wrap_where_the_number_chosen_does(program: Callable[[Any], Any]) -> None:
    for name in DTYPES[: 7 if OPTIONS.every else 2]:  # of uint64, what has no room in 64 bits is refused
        jitted, lanes = wg.jit(program), wg.jit(wg.vmap(program))
        for number in NUMBERS:
            if np.iinfo(name).min <= number <= np.iinfo(name).max:
                n = np.dtype(name).type(number)
                with np.errstate(all="ignore"):
                    wanted = program(n)
                    assert jitted(n) == wanted
                    if program is not of_three:  # in lanes, integers of Python's are arrays, and so refused there
                        assert lanes(np.array([n]))[0] == wanted


def subtracted_at(y: Any, v: Any) -> Any:
    np.subtract.at(y, [0, 0, 2], v)


def placed(y: Any, v: Any) -> Any:
    np.place(y, [True, False, True], v)


def put_where(y: Any, v: Any) -> Any:
    np.putmask(y, [True, False, True], v)


@together("write", [subtracted_at, placed, put_where])
def test_writes_of_integers_wrap_and_are_refused_as_in_numpy(write: Callable[[Any, Any], Any]) -> None:
    def program(x: Any, v: Any) -> Any:
        y = np.copy(x)
        write(y, v)
        return y

    values = [np.array([1, 200, 3], "u1"), np.array([-128, 3, 0], "i1"), np.uint8(7), np.array([True, False, True])]
    for target in ("f8", "f4", "i8", "i2", "u1", "?"):
        x = np.array([3, 2, 5]).astype(target)
        for value in values:
            wanted = outcome(lambda x=x, value=value: program(x, value))
            found = outcome(lambda x=x, value=value: wg.jit(program)(x, value))
            assert alike(found, wanted), f"{target}, {value!r}: {found} for {wanted}"


def test_integers_that_masks_leave_out_of_reductions_are_no_numbers() -> None:
    mask = np.array([True, True, False])
    for dtype in ("u8", "i4", "u1", "?"):
        x = np.array([[3, 2, 1], [5, 0, 6]]).astype(dtype)
        for ufunc in (np.logaddexp, np.logaddexp2):
            wanted = ufunc.reduce(x, where=mask)
            found = wg.jit(lambda x, ufunc=ufunc: ufunc.reduce(x, where=mask))(x)
            np.testing.assert_allclose(found, wanted, rtol=1e-3 if wanted.dtype == np.float16 else 1e-12)
    with pytest.raises(IndexError, match=r"multiply\.reduceat: index 0 for 0 elements"):
        wg.jit(lambda x: np.multiply.reduceat(x, [0]))(np.ones(0))


@pytest.mark.parametrize("narrow", [np.int8(3), np.uint8(1), np.int32(0)])
def test_truths_of_python_beside_narrow_integers_are_calculated_with_as_python_does(narrow: Any) -> None:
    def chosen(x: Any, truth: Any, number: Any) -> Any:
        found = truth if x > 0 else number
        return found << 7, -found, ~found, min(truth, number) + 200 * (number == 3), max(number, truth) * 1

    for x, truth in itertools.product((1.0, -1.0), (True, False)):
        with np.errstate(all="ignore"):
            wanted = chosen(x, truth, narrow)
            found = wg.jit(chosen)(x, truth, narrow)
        assert list(map(int, found)) == list(map(int, wanted)), (x, truth)


def test_a_step_of_zero_raises_python_s_error_with_the_line() -> None:
    with pytest.raises(ValueError, match=r"range\(\) arg 3 must not be zero") as error:
        wg.jit(in_steps)(1.0, 0)
    assert "in in_steps: for i in range(0, 9, n):" in error.value.__notes__[0]


def test_ends_of_ranges_are_integers() -> None:
    def program(x: Any, n: Any) -> Any:
        if x > 0:  # which lets the function be converted
            x = x + 1
        for i in range(n):
            x = x + i
        return x

    for end in (2.0, np.float32(2), np.array([2]), np.True_):
        text = f"{np.asarray(end).dtype}[{'1' * np.ndim(end)}]"
        with pytest.raises(TypeError):
            program(1.0, end)
        with pytest.raises(DtypeError) as error:
            wg.jit(program)(1.0, end)
        assert f"range: an end that is {text}; whole numbers are needed. Convert it with int()." in str(error.value)


def test_loops_count_beyond_what_their_bounds_have_room_for() -> None:
    """And branches of `switch`, whose index is 8 bits wide."""

    def program(x: Any, low: Any, high: Any) -> Any:
        return wg.fori_loop(low, high, lambda i, y: y + i * x, 0.0)

    wanted = program(2.0, 250, 260)
    low = np.uint8(250)
    assert wg.jit(program)(2.0, low, 260) == wg.jit(lambda x, n: program(x, low, n))(2.0, 260) == wanted
    assert wg.vmap(program, in_axes=(None, 0, None))(2.0, np.array([low]), 260) == [wanted]
    branches = [lambda x, k=k: x * k for k in range(140)]
    assert wg.jit(lambda k, x: wg.switch(k, branches, x))(np.int8(100), 2.0) == 200.0
    row = np.arange(300.0)
    for index in (np.int8(-3), np.uint8(200)):
        for mode in ("raise", "wrap", "clip"):
            wanted = np.take(row, index, mode=mode)
            assert wg.jit(lambda k, mode=mode: np.take(wg.numpy.asarray(row), k, mode=mode))(index) == wanted
