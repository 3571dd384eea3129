"""Python numbers: their dtypes give way to those of arrays in every mode, as plain NumPy says (NEP 50)."""

from __future__ import annotations

import decimal
import fractions
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy
from tests.cases import together
from tests.samples.calls import same_traced
from wengert.core.values.aval import aval_of
from wengert.errors import DtypeError, RangeError, TracedTruthError, UsageError
from wengert.graph import check, load, save, trace

OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv),
    *(operator.lt, operator.ge, operator.eq, operator.ne),
)
FUNCTIONS = (np.add, np.multiply, np.divide, np.power, np.maximum, np.arctan2, np.hypot, np.less, np.logaddexp)
OF_ONE = (np.negative, np.positive, np.absolute, np.invert, np.sign, np.floor, np.isnan, np.logical_not)
DTYPES = ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "?", "c8", "c16")
NUMBERS = (2.0, 3, True, 2j)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function gives, as dtype and value; Python numbers by their type; what it raises as a name."""
    try:
        with np.errstate(all="ignore"):
            found = function(*args)
    except (TypeError, OverflowError, ZeroDivisionError, np._core._exceptions._UFuncNoLoopError):  # type: ignore[attr-defined]
        return "raises"
    kind = type(found).__name__ if aval_of(found).weak else found.dtype.str
    return kind, np.asarray(found).tolist()


def same(one: Any, other: Any) -> bool:
    """Tell whether two outcomes have one type and, up to rounding, one value."""
    if one == "raises" or other == "raises":
        return bool(one == other)
    return one[0] == other[0] and np.allclose(one[1], other[1], rtol=1e-3, equal_nan=True)


@pytest.mark.long
@together("dtype", DTYPES)
@together("compute", [*OPERATORS, *FUNCTIONS])
def test_an_array_decides_in_traced_functions(compute, dtype):
    for array in (np.array([1, 2], dtype), np.array(2).astype(dtype)[()]):
        for number in NUMBERS:
            for args in ((array, number), (number, array)):
                if type(array) is np.float64 and type(number) is complex:
                    continue  # Python's complex takes a NumPy float for a Python one
                plain = outcome(compute, *args)
                traced = outcome(wg.jit(compute), *args)
                assert same(plain, traced), (args, plain, traced)


@together("compute", [*OPERATORS, *FUNCTIONS])
def test_operators_between_python_numbers_give_one_and_functions_do_not(compute):
    probe = np.ones(2, "f4")
    for x in (2.5, 3, True):
        for y in (2.0, 3, True):
            plain = outcome(compute, x, y)
            assert same(plain, outcome(wg.jit(compute), x, y)), (x, y)
            mixed = lambda x, y: compute(x, y) * probe
            assert same(outcome(mixed, x, y), outcome(wg.jit(mixed), x, y)), (x, y)


@together("compute", [operator.neg, operator.pos, operator.abs, operator.invert, *OF_ONE])
def test_operators_of_a_python_number_give_one_and_functions_do_not(compute):
    for x in (2.5, 3, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of `~True`
            assert same(outcome(compute, x), outcome(wg.jit(compute), x)), x


def test_squares_of_truths_have_the_dtype_that_arrays_of_them_give():
    for truths in (np.array([True, False]), np.array([[True], [False]]).T, np.True_, np.array([True, False])[::-1]):
        for power in (1, 2, 3):
            compute = lambda x, power=power: x**power
            assert same(outcome(compute, truths), outcome(wg.jit(compute), truths)), (truths, power)


ARRAY = np.array([1.0, 2.0], "f4")
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda a, c: a * c,
    "numbers first": lambda a, c: (2 * c + 1) / c * a,
    "power": lambda a, c: a**c + c**2 * a,
    "negative": lambda a, c: -c * a + abs(c) * a - +c,
    "function of the number": lambda a, c: np.sin(c) * a,
    "function of two numbers": lambda a, c: np.multiply(c, 2.0) * a,
    "function of both": lambda a, c: np.maximum(a, c) + np.where(a > c, a, c),
    "clip": lambda a, c: np.clip(a, 0.5, c),
    "sum": lambda a, c: np.sum(a * c) * c * a,
    "as an array": lambda a, c: np.reshape(c, (1,)) * a,
    "stack": lambda a, c: np.stack([a[0] * c, a[1]]),
    "reflected": lambda a, c: 1 / (c * a) - c // 1 * a + c % 2 * a,
    "comparison as a factor": lambda a, c: (c > 1.0) * 2.0 * a,
    "linspace": lambda a, c: np.linspace(a[0], c, 3),
    "broadcast_arrays": lambda a, c: np.broadcast_arrays(c, a[0])[0] * a,
    "nested gradient": lambda a, c: a * wg.grad(lambda x: x * x)(c),
}
MODES: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: wg.jit(f)(ARRAY, 2.0),
    "vjp": lambda f: wg.vjp(f, ARRAY, 2.0)[0],
    "jvp": lambda f: wg.jvp(f, (ARRAY, 2.0), (ARRAY, 1.0))[0],
    "jvp of the number": lambda f: wg.jvp(lambda c: f(ARRAY, c), (2.0,), (1.0,))[1],
    "linearize": lambda f: wg.linearize(lambda c: f(ARRAY, c), 2.0)[1](1.0),
    "taylor": lambda f: wg.taylor(lambda c: f(ARRAY, c), (2.0,), (1.0,), 2)[2],
    "second derivative": lambda f: wg.jacfwd(wg.jacfwd(lambda c: f(ARRAY, c)))(2.0),
    "jit of jvp": lambda f: wg.jit(lambda c: wg.jvp(lambda c: f(ARRAY, c), (c,), (1.0,))[1])(2.0),
    "jvp of jit": lambda f: wg.jvp(wg.jit(lambda c: f(ARRAY, c)), (2.0,), (1.0,))[1],
    "vmap": lambda f: wg.vmap(f, (0, None))(ARRAY[None], 2.0)[0],
    "vmap of jit": lambda f: wg.vmap(wg.jit(f), (0, None))(ARRAY[None], 2.0)[0],
    "jit of vmap": lambda f: wg.jit(wg.vmap(f, (0, None)))(ARRAY[None], 2.0)[0],
    "call": lambda f: wg.jit(lambda a, c: wg.call(f, a, c))(ARRAY, 2.0),
    "cond": lambda f: wg.jit(lambda a, c: wg.cond(c > 0, f, lambda a, c: f(a, c), a, c))(ARRAY, 2.0),
}


@together("mode", MODES)
@together("program", PROGRAMS)
def test_results_have_the_dtypes_of_plain_programs(program, mode):
    plain = PROGRAMS[program](ARRAY, 2.0)
    assert MODES[mode](PROGRAMS[program]).dtype == plain.dtype


@together("program", PROGRAMS)
def test_gradients_are_the_same_in_every_mode(program):
    def loss(a, c):
        return np.sum(PROGRAMS[program](a, c))

    one = wg.grad(loss, (0, 1))(ARRAY, 2.0)
    for function in (wg.jit(wg.grad(loss, (0, 1))), wg.grad(wg.jit(loss), (0, 1))):
        other = function(ARRAY, 2.0)
        assert [aval_of(x) for x in one] == [aval_of(x) for x in other]
        np.testing.assert_allclose(one[0], other[0], rtol=1e-6)
        np.testing.assert_allclose(one[1], other[1], rtol=1e-6)
    value, gradient = wg.value_and_grad(loss, 1)(ARRAY, 2.0)
    assert type(value) is type(gradient) is float or value.dtype == loss(ARRAY, 2.0).dtype


def test_a_jitted_function_is_traced_for_each_kind_of_number():
    twice = wg.jit(lambda x: x * 2)
    for number in (2, 2.0, True, 2j, np.float64(2.0), np.float32(2.0)):
        plain = number * 2
        found = twice(number)
        assert type(found) is type(plain)
        assert found == plain
    assert twice.trace_count == 6


@pytest.mark.parametrize(
    ("program", "dtype"),
    [
        (lambda a: wg.scan(lambda s, x: (s + x, s * x), 0.0, a)[1], "f4"),
        (lambda a: wg.scan(lambda s, x: (s + x, x), 0, a)[0], "f4"),
        (lambda a: wg.fori_loop(0, 3, lambda i, s: s + i * a[0], 0.0), "f4"),
        (lambda a: wg.while_loop(lambda s: s < 3, lambda s: s + a[0], 0.0), "f4"),
        (lambda a: wg.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + 1, s[1] * 2.0), (0, 1.0))[1] * a, "f4"),
        (lambda a: wg.cond(a[0] > 0, lambda: 1.0, lambda: 2.0) * a, "f4"),
        (lambda a: wg.cond(a[0] > 0, lambda: 1, lambda: 2) * a, "f4"),
    ],
)
def test_loops_and_branches_of_numbers(program, dtype):
    for found in (program(ARRAY), wg.jit(program)(ARRAY), wg.jvp(wg.jit(program), (ARRAY,), (ARRAY,))[1]):
        assert np.asarray(found).dtype == np.dtype(dtype)
    traced = wg.jit(wg.grad(lambda a: np.sum(program(a))))(ARRAY)
    np.testing.assert_allclose(traced, wg.grad(lambda a: np.sum(program(a)))(ARRAY), rtol=1e-6)


def converted(a):
    total = 0.0
    for i in range(3):
        if a[0] > i:
            total = total + a[1] * i
    step = 2.0 if a[0] > 0 else 1.0
    while total < 5.0:
        total += step
    return total * a


def test_converted_control_flow_keeps_numbers_weak():
    found = wg.jit(converted)(ARRAY)
    assert found.dtype == converted(ARRAY).dtype
    np.testing.assert_allclose(found, converted(ARRAY))


def test_branches_do_not_round_numbers_to_the_dtype_of_the_other():
    def program(x, number):
        if np.sum(x) > 0:
            return number
        return np.sum(x).astype(np.float32)

    assert wg.jit(lambda x: program(x, 0.5))(np.ones(2)) == 0.5
    with pytest.raises(wg.errors.GraphError, match=r"Python number 0\.1 where the condition holds.*\n.*return number"):
        wg.jit(lambda x: program(x, 0.1))(np.ones(2))
    with pytest.raises(wg.errors.GraphError, match="must give the same containers, shapes and dtypes"):
        wg.jit(program)(np.ones(2), 0.1)


def test_numbers_that_are_not_defined_in_python_are_as_in_numpy():
    with np.errstate(all="ignore"):
        for function in (lambda x: 1.0 / x, lambda x: x**-0.5, lambda x: x % 0.0, lambda x: (x - 8.0) ** (1 / 3)):
            for run in (lambda f: wg.jit(f)(0.0), lambda f: wg.vjp(f, 0.0)[0], lambda f: wg.jvp(f, (0.0,), (1.0,))[0]):
                found = run(function)
                assert type(found) is float
                assert not math.isfinite(found)
        assert wg.grad(lambda x: x**0.5)(0.0) == math.inf
        assert wg.jit(lambda x: x * x)(1e200) == math.inf


def test_integers_calculate_exactly_or_refuse():
    assert wg.jit(lambda n: n * n - 1)(3037000499) == 3037000499**2 - 1
    with pytest.raises(OverflowError, match=r"^multiply: an integer of 64 bits; at most 63 and a sign are needed"):
        wg.jit(lambda n: n * n)(3037000500)
    with pytest.raises(
        OverflowError, match=r"^jit: an integer of 65 bits; at most 63 and a sign are needed\. Name the"
    ):
        wg.jit(lambda n: n)(2**64)
    with pytest.raises(
        OverflowError,
        match=r"^jit: a function that returned an integer of 66 bits at result\[1\]; at most 63 and a sign are needed"
        r"\. Return a float, or calculate it where it is called",
    ):
        wg.jit(lambda x: (x, 2**65))(1.0)
    with pytest.raises(OverflowError, match=r"^pow: the integer 2 to the power -1; an exponent from 0 is needed"):
        wg.jit(lambda n, k: n**k)(2, -1)
    with pytest.raises(ZeroDivisionError):
        wg.jit(lambda n, k: n // k)(2, 0)
    with pytest.raises(OverflowError):
        wg.jit(lambda a, n: a + n)(np.ones(2, "u1"), 300)


def test_a_tensor_tells_whether_it_stands_for_a_number():
    seen = []
    wg.grad(lambda x: seen.append((x.weak, (x * 2).weak, np.sin(x).weak, (x > 0).weak, x.dtype, x.shape)) or x)(2.0)
    wg.jit(lambda x: seen.append((x.weak, (x * 2).weak, np.sin(x).weak, (x > 0).weak, x.dtype, x.shape)) or x)(2.0)
    assert seen == [(True, True, False, True, np.dtype(float), ())] * 2
    assert not wg.tensor(2.0).weak
    assert wg.grad(lambda x: x.sum() * x[()] + x.reshape(1)[0] + x.astype("f4"))(2.0) == 6.0


def test_graphs_show_numbers_by_their_types():
    graph = trace(lambda x, n: (x * 2.0 + n, x * np.float64(2.0), np.float32(3.0)))(1.0, 2)
    assert (
        str(graph)
        == """\
graph(x: float, n: int)
  v1 = multiply(x, 2.0)  # float
  v2 = add(v1, n)  # float
  v3 = multiply(x, float64(2.0))  # float64[]
  return v2, v3, float32(3.0)"""
    )
    assert graph != trace(lambda x, n: (x * 2.0 + n, x * 2.0, np.float32(3.0)))(1.0, 2)
    assert graph != trace(lambda x, n: (x * 2.0 + n, x * np.float64(2.0), np.float32(3.0)))(np.float64(1.0), 2)


def test_files_keep_what_is_a_number(tmp_path):
    graph = trace(lambda x, n, a: (x * n * a, x > 0, 2.0, np.float64(2.0)))(1.0, 2, ARRAY)
    check(graph)
    save(graph, tmp_path / "numbers.graph")
    back = load(tmp_path / "numbers.graph")
    assert back == graph
    assert [v.aval for v in back.inputs] == [v.aval for v in graph.inputs]
    assert [type(x) for x in back(1.0, 2, ARRAY)] == [np.ndarray, bool, float, np.float64]


def test_arguments_of_graphs_have_the_dtypes_they_were_traced_for():
    graph = trace(lambda x, y: x * y)(ARRAY, 1.0)
    with pytest.raises(
        DtypeError, match=r"^graph: float64\[2\] for input x: float32\[2\]; the dtype float32 is needed"
    ):
        graph(np.ones(2), 1.0)
    with pytest.raises(DtypeError, match=r"^graph: complex for input y: float; the dtype float64 is needed"):
        graph(ARRAY, 1j)
    for number in (2, 2.0, np.float64(2.0)):
        assert graph(ARRAY, number)[0].dtype == np.float32
    assert type(trace(lambda x: x + 1)(np.float64(1.0))(1.0)[0]) is np.float64


def test_complex_numbers_of_python_calculate_with_scalars_as_python_does():
    """A float64 scalar is a float of Python's, so that what they give is a complex number, which gives way."""
    x, r = np.float32([0.5, 0.25]), np.float64(0.7)
    for compute in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow):

        def program(x, r, compute=compute):
            return x + compute(1j, r) / 3

        plain = program(x, r)
        assert plain.dtype == np.complex64
        leaf = wg.tensor(np.array([0.7]), requires_grad=True)
        for found in (
            program(wg.tensor(x), wg.tensor([0.7])[0]),
            program(wg.tensor(x), leaf[0]).detach(),
            wg.jit(program)(x, r),
        ):
            assert found.dtype == np.complex64
            np.testing.assert_array_equal(np.asarray(found), plain)
        assert program(wg.tensor(x), wg.tensor(0.7)).dtype == np.complex128  # of an array without axes NumPy decides


def test_products_with_a_complex_number_on_the_left_have_the_bits_of_numbers():
    rng = np.random.default_rng(0)
    for real, imaginary, other in rng.normal(size=(50, 3)):
        number, scalar = complex(real, imaginary), np.complex128(complex(other, real))
        assert (number * wg.tensor(scalar)).numpy() == number * scalar


def test_integer_scalars_repeat_lists_and_arrays_multiply_them():
    count = wg.tensor([1, 2])[1]
    assert [0.5] * count == [0.5, 0.5]
    assert count * (1, 2) == (1, 2, 1, 2)
    np.testing.assert_array_equal(([0.5, 1.5] * wg.tensor(2)).numpy(), [1.0, 3.0])
    with pytest.raises(TracedTruthError, match=r"\[x\] \* n"):
        wg.jit(lambda x, n: np.stack([x] * n))(np.ones(2), np.int64(2))


def test_conj_of_a_real_array_is_the_array_itself():
    def program(x):
        y = x * 1.0
        y.conj()[0] = 5.0
        y.conjugate()[1] = 7.0
        np.conjugate(y)[0] = 9.0
        return y

    x = np.array([1.0, 2.0])
    for found in (program(wg.tensor(x)), wg.jit(program)(x), wg.vmap(program)(x[None])[0]):
        np.testing.assert_array_equal(np.asarray(found), program(x))


def test_dtypes_of_functions_that_sort_and_choose():
    for x in (np.float32([2, 1]), np.array([2, 1], np.int8), np.complex64([2, 1]), np.float16([1])):
        assert np.sort_complex(wg.tensor(x)).dtype == np.sort_complex(x).dtype
    x, y = np.float32([1, 2]), np.array([2.0, 3.0])
    assert np.intersect1d(wg.tensor(x), wg.tensor(y)).dtype == np.intersect1d(x, y).dtype
    x = np.array([0.5, 1.5])
    np.testing.assert_array_equal(np.choose(True, wg.tensor(x)).numpy(), np.choose(True, x))


@pytest.mark.parametrize("part", [np.real, np.imag, lambda z: z.real, lambda z: z.imag])
@pytest.mark.parametrize("transform", [lambda f: f, wg.jit])
def test_parts_of_python_numbers_are_python_numbers(part: Any, transform: Any) -> None:
    single = np.array([-1.139, 0.083], np.float32)

    def f(s: Any) -> Any:
        part_of_number = part(3.0 + 1j + s * 1.0)  # Python's complex numbers calculate with float scalars themselves
        return single + part_of_number

    expected = f(np.float64(0.848))
    for s in (np.float64(0.848), wg.tensor(0.848)):
        found = np.asarray(transform(f)(s))
        assert found.dtype == expected.dtype == np.float32
        np.testing.assert_array_equal(found, expected)


def test_parts_of_traced_python_numbers_are_python_numbers() -> None:
    seen = []

    def f(x: Any, s: Any) -> Any:
        found = x * np.real(s) + np.imag(s) * x
        seen.append(found.dtype)
        return found

    assert wg.jit(f)(np.ones(2, np.float32), 2.5).dtype == np.float32
    assert seen == [np.float32]


SINGLE = np.float32(0.1)


def steps_to_zero(x: Any) -> Any:
    count, left = 0, int(x)
    while left > 0:
        left -= 1
        count += left
    return count


WEAK: dict[str, Callable[[Any, Any], Any]] = {
    "scalar": lambda x, y: x * SINGLE,
    "function": lambda x, y: np.floor(x),
    "int": lambda x, y: int(x) // 2,
    "int of a truth": lambda x, y: int(x > 1),
    "int of a scalar": lambda x, y: int(np.float32(0.5) * x),
    "round": lambda x, y: round(x),
    "bool": lambda x, y: bool(x) + bool(y),
    "not": lambda x, y: (not x > 1) + (not y > 1),
    "and": lambda x, y: (x > 1 and y > 1) + (x > 2 and y > 2),
    "or": lambda x, y: (x > 1 or y > 1) + (x > 2 or y > 2),
    "chain": lambda x, y: (0 < x < 9) + (0 < y < 9),
    "invert": lambda x, y: ~(x > 1),
    "conjugate": lambda x, y: (x > 1).conjugate(),
    "complex conjugate": lambda x, y: ((x + 1j * y).conjugate() * x).imag,
    "loop": lambda x, y: steps_to_zero(x),
}


@together("name", WEAK)
def test_traced_functions_give_numbers_of_the_types_that_they_give_as_they_are(name: str) -> None:
    program = WEAK[name]
    for x, y in ((2.5, 3.5), (3, 2), (np.float64(2.5), np.float32(1.5)), (-1.5, 0.5)):
        for f in (program, lambda x, y: program(x, y) * SINGLE, lambda x, y: program(x, y) * np.ones(2, np.int8)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # ~True
                plain = f(x, y)
            found = wg.jit(f)(x, y)
            assert type(found) is type(plain), (x, y)
            assert getattr(found, "dtype", None) == getattr(plain, "dtype", None)
            np.testing.assert_array_equal(found, plain)


def test_what_a_jitted_function_gives_inside_of_a_transformation_has_its_own_dtype() -> None:
    def f(x: Any) -> Any:
        return np.sum(wg.jit(np.sin)(x) * np.full(3, 0.1, "f4"))  # in float64, since NumPy's functions give scalars

    assert same_traced(wg.vjp(f, 2.5)[0], f(2.5))


def test_numbers_without_room_and_complex_ones_are_no_integers() -> None:
    with pytest.raises(UsageError, match=r"^int: NaN; a whole number of 64 bits is needed where values are traced\. "):
        wg.jit(lambda x: int(x))(math.nan)  # a ValueError, as Python's
    for value in (1e30, -math.inf):
        with pytest.raises(
            RangeError,
            match=r"^int: a number that is not finite, or has more than 64 bits; a whole number of 64 bits is needed "
            r"where values are traced\. Convert it before, or use numpy\.floor\.",
        ):
            wg.jit(lambda x: int(x))(value)
    with pytest.raises(
        DtypeError, match=r"^int: a Tensor of dtype complex128; a real number is needed\. Take its \.real first\."
    ):
        wg.jit(lambda x: int(x))(1j)
    with pytest.raises(DtypeError, match=r"^int: a Tensor of shape \(2,\)"):
        wg.jit(lambda x: int(x))(np.ones(2))


def two_truths(a, b):
    return (not a) + (not b)


def signs_of_truths(a, b):
    return -(not a) + 2 * (not b) - (~(not a)), (not a) - (not b), (not a) ** (not b), np.add(not a, not b)


def truth_of_two(a, b):
    both = (not a) and (not b)
    return both + both + ((not a) == (not b))


def truth_out_of_a_branch(a, b):
    truth = not a
    if b > 0.5:
        truth = not truth
    return truth + truth


def truth_out_of_a_loop(a, b):
    truth = bool(a)
    for i in range(2):
        if a + i > 1:
            truth = not truth
    return -truth


def truth_that_ends_a_loop(a, b):
    truth = not a
    while truth + truth > 1:
        truth = not truth
    return truth + (not b)


TRUTHS = (
    *(two_truths, signs_of_truths, truth_of_two, truth_out_of_a_branch, truth_out_of_a_loop),
    truth_that_ends_a_loop,
)


@pytest.mark.parametrize("program", TRUTHS, ids=lambda f: f.__name__)
def test_truths_of_python_count_as_integers_in_lanes_too(program):
    a, b = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of ~ on Python's truths
        wanted = np.array([program(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)], float).T
    for mode in (wg.vmap(wg.jit(program)), wg.jit(wg.vmap(program))):
        np.testing.assert_array_equal(np.array(mode(a, b), float), wanted)


# Numbers without room in what they are written to


@pytest.mark.parametrize("value", [300, -1, 1e3, [1, 300], [[-1], [2]], float("nan")])
def test_numbers_without_room_are_refused_where_they_are_written_as_numpy_does(value):
    def written(x):
        y = x.copy()
        y[:2] = value
        return y

    given = np.ones((2, 2), np.uint8)
    with pytest.raises((OverflowError, ValueError)) as expected:
        written(given)
    for function in (wg.jit(written), lambda x: written(wg.asarray(x))):
        with pytest.raises(expected.type, match=str(expected.value)):
            function(given)
    assert wg.jit(lambda x: written(x * 1.0))(given).tolist() == written(given * 1.0).tolist() or value != value


def in_a_row(xp: Any, x: Any, n: Any) -> Any:
    y = xp.zeros(3, np.uint8)
    y[0] = n
    return np.sum(x * x)


def in_a_branch(xp: Any, x: Any, n: Any) -> Any:
    y = xp.zeros(3, np.uint8)
    if x[0] > 0:
        y[0] = n
    return np.sum(x * x)


def in_a_loop(xp: Any, x: Any, n: Any) -> Any:
    i = 0
    while i < x[0]:
        xp.full(2, n, dtype=np.uint8)
        i = i + 1
    return np.sum(x * x)


@pytest.mark.parametrize("function", [in_a_row, in_a_branch, in_a_loop])
@pytest.mark.parametrize("native", ["0", "1"])
def test_what_has_no_room_is_refused_though_nobody_uses_the_result(
    function: Any, native: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wengert.support.config.AT_ONCE", native == "1")

    def loss(x: Any, n: Any) -> Any:
        return function(wengert.numpy, x, n)

    x = np.array([1.0, 2.0])
    for mode in (wg.jit(loss), wg.jit(wg.grad(loss)), wg.grad(wg.jit(loss)), wg.jit(wg.hessian(loss))):
        with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
            mode(x, 300)
    np.testing.assert_array_equal(wg.grad(wg.jit(loss))(x, 30), 2 * x)
    np.testing.assert_array_equal(wg.jit(wg.grad(loss))(x, 30), 2 * x)


def test_a_whole_number_of_nan_is_refused_though_nobody_uses_it() -> None:
    def loss(x: Any) -> Any:
        int(x[1])
        return np.sum(x * x)

    assert wg.jit(loss)(np.array([1.0, 2.0])) == 5.0
    with pytest.raises(UsageError, match="int: NaN"):
        wg.jit(loss)(np.array([1.0, np.nan]))


def test_a_number_is_taken_as_one_element():
    for axis in (None, 0, -1):
        for mode in ("raise", "clip"):
            for x in (2.5, np.float64(2.5), np.array(2.5)):
                expected = np.take(x, [0, 0], axis=axis, mode=mode)
                traced = wg.jit(lambda x, axis=axis, mode=mode: np.take(x, [0, 0], axis=axis, mode=mode))
                np.testing.assert_array_equal(traced(x), expected)
                np.testing.assert_array_equal(np.take(wg.asarray(x), [0, 0], axis=axis, mode=mode), expected)
    with pytest.raises(np.exceptions.AxisError):
        np.take(wg.asarray(2.5), [0, 0], axis=1)


FRACTION = fractions.Fraction(1, 6)


@pytest.mark.parametrize(
    "f",
    [
        lambda h: h * FRACTION,
        lambda h: FRACTION * h,
        lambda h: h - FRACTION + FRACTION / h,
        lambda h: h**FRACTION,
        lambda h: h % FRACTION,
        lambda h: h if h > FRACTION else 0.0 * h,
    ],
)
def test_fractions_beside_numbers_are_floats(f: Any) -> None:
    assert wg.value_and_grad(f)(1.3)[0] == f(1.3)
    assert wg.jit(f)(1.3) == f(1.3)
    assert np.isclose(wg.grad(f)(1.3), (f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6)


def test_fractions_beside_arrays_are_refused() -> None:
    text = (
        r"^multiply: a Fraction and a Tensor of shape \(2,\) and dtype float64; a float is needed, as NumPy would make "
        r"an array of objects\. Write float\(fraction\)\.$"
    )
    for f in (lambda x: np.sum(x * FRACTION), lambda x: np.sum(FRACTION * x)):
        with pytest.raises(DtypeError, match=text):
            wg.grad(f)(np.ones(2))
    with pytest.raises(TypeError, match="unsupported operand"):
        wg.grad(lambda x: x * decimal.Decimal("0.1"))(1.0)  # as Python's floats


STARTS = (300, -1, 2.5, 1j, 1e300, 2**70, -0.0, True, np.float64(2.5))
REDUCING = (np.sum, np.prod, np.max, np.add.reduce, np.logical_and.reduce, np.maximum.reduce, np.hypot.reduce)


@together("dtype", ("u1", "i4", "?", "f4", "f8", "c16"))
def test_numbers_that_reductions_start_from_are_taken_or_refused_as_numpy_does(dtype: str) -> None:
    """A number is taken into the dtype of the result: nothing wraps, no imaginary part is lost, none is cut off."""
    x = np.ones(3, dtype)
    for reduce in REDUCING:
        for start in STARTS:

            def function(x: Any, reduce: Any = reduce, start: Any = start) -> Any:
                return reduce(x, initial=start)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                expected = started(function, x)
                assert started(function, wg.tensor(x)) == expected, (reduce, start)
                assert started(wg.jit(function), x) == expected, (reduce, start)


def started(function: Callable[..., Any], x: Any) -> str:
    """Return what a reduction gives, as text, or the name of the error."""
    try:
        found = np.asarray(function(x))
    except (TypeError, OverflowError, ValueError) as error:
        return type(error).__name__
    return f"{found.dtype} {found}"


def test_functions_of_wengert_numpy_give_tensors_of_numbers() -> None:
    """Whatever the function; operators give numbers."""
    with np.errstate(all="ignore"):
        for name, ufunc in vars(np).items():
            function = getattr(wg.numpy, name, None)
            if not isinstance(ufunc, np.ufunc) or function is None or ufunc.nout > 1 or ufunc.signature is not None:
                continue
            for number in (0.5, -1.0, 2, True, 1j):
                numbers = (number,) * ufunc.nin
                try:
                    wanted = ufunc(*numbers)
                except TypeError:
                    continue
                found = function(*numbers)
                assert type(found) is wg.Tensor, (name, number)
                assert found.dtype == wanted.dtype
                np.testing.assert_array_equal(found.numpy(), wanted)
    for call in (lambda x: wg.numpy.clip(x), lambda x: wg.numpy.round(x), lambda x: wg.numpy.sum(x)):
        assert type(call(0.5)) is type(call(2)) is wg.Tensor
