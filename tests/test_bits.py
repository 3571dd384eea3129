"""One evaluation for each operation: operators, functions and methods give NumPy's bits in every mode.

What a user writes decides, not the mode: `x**2` is a square and `numpy.power(x, 2)` is not, and NumPy computes numbers
by scalar arithmetic where arrays run its loops. Lanes are arrays to `vmap`, so lanes of numbers have those bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of
from tests.samples.calls import same_bits, same_traced

Function = Callable[..., Any]

DTYPES = ("f8", "f4", "f2", "c16", "c8")
SHAPES = ((), (7,), (2, 3))
NUMBERS = (2, 3, 0.5, -1.0, 1, 0, 2.0, 1.7, np.float64(2), np.float32(3))

BINARY: dict[str, Function] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "//": operator.floordiv,
    "**": operator.pow,
    "divmod": lambda x, y: divmod(x, y)[1],
    **{name: getattr(np, name) for name in ("add", "multiply", "divide", "remainder", "power", "float_power")},
    "maximum": np.maximum,
}
IN_PLACE: dict[str, Function] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "%=": operator.imod,
    "**=": operator.ipow,
}
UNARY: dict[str, Function] = {
    "-x": operator.neg,
    "+x": operator.pos,
    "abs": abs,
    **{name: getattr(np, name) for name in ("absolute", "sqrt", "reciprocal", "exp", "tanh", "cbrt", "sort")},
    **{
        name: operator.methodcaller(name)
        for name in ("sum", "mean", "prod", "std", "var", "max", "min", "cumsum", "cumprod", "ravel", "conj", "copy")
    },
    "sum of rows": lambda x: np.sum(x, axis=0),
    "mean of rows": lambda x: x.mean(axis=0),
    "round": lambda x: x.round(2),
    "clip": lambda x: x.clip(-1, 1),
    "dot": lambda x: x.dot(x.T) if x.ndim else x,
    "parts": lambda x: x.real * 2 + x.imag,
}


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


MODES: dict[str, Callable[[Function, Any], Any]] = {
    "plain": lambda f, x: f(wg.asarray(x)),
    "tape": lambda f, x: f(wg.tensor(x, requires_grad=True)),
    "vjp": lambda f, x: wg.vjp(f, x)[0],
    "jvp": lambda f, x: wg.jvp(f, (x,), (np.ones_like(x),))[0],
    "taylor": lambda f, x: wg.taylor(f, (x,), (np.ones_like(x),), 1)[0],
    "jit": lambda f, x: wg.jit(f)(x),
    "jit of vjp": lambda f, x: wg.jit(lambda x: wg.vjp(f, x)[0])(x),
    "jit of jvp": lambda f, x: wg.jit(lambda x: wg.jvp(f, (x,), (np.ones_like(x),))[0])(x),
    "vjp of jit": lambda f, x: wg.vjp(wg.jit(f), x)[0],
    "vmap": lambda f, x: wg.vmap(f)(np.stack([x, x]))[1],
}


def operands(dtype: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return two arrays of random numbers, positive if they are real; NumPy scalars for the shape ()."""
    rng = np.random.default_rng(0)
    x, y = (np.abs(rng.normal(size=(2, *shape))) * 3).astype(dtype)
    if dtype.startswith("c"):
        x, y = x + 1j * rng.normal(size=shape).astype("f4"), y - 1j * rng.normal(size=shape).astype("f4")
    return x.astype(dtype), y.astype(dtype)


def check(f: Function, x: Any, label: Any, modes: Any = MODES) -> None:
    """Assert that a function gives the bits of plain NumPy in every mode, if NumPy takes this operand at all."""
    try:
        want = f(x.copy())
    except (TypeError, np.exceptions.AxisError):
        return
    for mode in some_of(list(modes), f"{label} {x.dtype} {x.shape}"):
        found = MODES[mode](f, x)
        found = found.detach().numpy()[()] if isinstance(found, wg.Tensor) else found
        same = same_traced if "jit" in mode else same_bits
        assert same(found, want), f"{label} {mode}: {found!r} instead of {want!r}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_and_functions_of_two(dtype: str, shape: tuple[int, ...]) -> None:
    x, y = operands(dtype, shape)
    modes = [mode for mode in MODES if shape or mode != "vmap"]
    for name, f in BINARY.items():
        check(lambda v, f=f: f(v, y), x, name, modes)
        if shape:  # a NumPy scalar on the left calls the ufunc
            check(lambda v, f=f: f(y, v), x, name, modes)
        check(lambda v, f=f: f(v, v), x, name, modes)
    for name in ("**", "power", "%", "/"):  # of which NumPy evaluates some with numbers in other ways
        f = BINARY[name]
        for number in NUMBERS:
            check(lambda v, f=f, number=number: f(v, number), x, (name, number), modes)
            if shape or not isinstance(number, np.generic):
                check(lambda v, f=f, number=number: f(number, v), x, (number, name), modes)


@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_in_place(dtype: str, shape: tuple[int, ...]) -> None:
    x, y = operands(dtype, shape)
    for name, f in IN_PLACE.items():
        for other in (y, 2, 0.5):
            check(lambda v, f=f, other=other: f(np.copy(v), other), x, (name, other))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_and_methods_of_one(dtype: str, shape: tuple[int, ...]) -> None:
    x, _ = operands(dtype, shape)
    for name, f in UNARY.items():
        if name != "sort" or shape:
            check(f, x, name, [mode for mode in MODES if shape or mode != "vmap"])


def test_operators_of_scalars_on_the_left() -> None:
    one, other = np.float64(2.341), np.complex128(1.3 + 0.2j)
    for value in np.random.default_rng(0).normal(size=200):
        number = np.complex128(complex(value, 0.3))
        for mode in (lambda f: f, wg.jit):
            same = same_bits if mode is not wg.jit else same_traced
            found = mode(lambda s: (one ** (s * 1.0), np.power(one, s * 1.0)))(wg.tensor(value))
            assert same([float(x) for x in found], [float(one**value), float(np.power(one, value))])
            found = mode(lambda z: (other * (z * 1.0), np.multiply(other, z * 1.0)))(wg.tensor(number))
            assert same([complex(x) for x in found], [complex(other * number), complex(np.multiply(other, number))])


def test_sums_of_what_is_repeated_and_was_written_to() -> None:
    def program(x: Any) -> Any:
        written = x * 1.0
        np.copyto(written, x)
        wide = np.broadcast_to(written, (3, 3))
        return np.mean(wide), np.sum(wide.T), np.add.reduce(wide, axis=None)

    for x in np.random.default_rng(1).normal(size=(50, 3)):
        found = program(wg.tensor(x, requires_grad=True))
        assert [part.item() for part in found] == [float(part) for part in program(x)]


@pytest.mark.parametrize("part", [np.s_[::-1], np.s_[::-2], np.s_[1::3]], ids=["backwards", "both", "steps"])
def test_functions_of_parts_of_what_was_written_to(part: slice) -> None:
    """NumPy has other loops, with other last bits, for elements that lie backwards."""

    def program(x: Any) -> Any:
        written = x * 1.0
        written[0] = x[1]
        return [f(written[part]) for f in (np.arcsinh, np.exp, np.log1p, np.cbrt)]

    for x in np.random.default_rng(1).uniform(0.1, 2.0, size=(20, 9)):
        for given in (wg.tensor(x), wg.tensor(x, requires_grad=True)):
            for one, other in zip(program(given), program(x), strict=True):
                np.testing.assert_array_equal(one.detach().numpy(), other)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "i8"])
def test_selections_of_many_elements_have_numpys_bits(dtype: str) -> None:
    """They go by the bits of a mask, without branches: infinities, NaN, negative zeros and dtypes included."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(2, 5000)) * 3).astype(dtype)
    if x.dtype.kind == "f":
        x[:3] = y[-3:] = [np.nan, -0.0, np.inf]
    for mask in (rng.random(5000) < 0.5, rng.integers(0, 2, 5000), np.array([True])):
        for pair in [(x, y), *((x, number) for number in (0, 0.0, -0.0, 1.5, False, np.float64(0)))]:
            for a, b in (pair, pair[::-1]):
                found, wanted = np.where(mask, *(wg.tensor(v) if v is x else v for v in (a, b))), np.where(mask, a, b)
                assert found.dtype == wanted.dtype
                assert found.numpy().tobytes() == wanted.tobytes()


@pytest.mark.parametrize("function", [np.maximum, np.fmin, np.logaddexp])
def test_gradients_of_large_arrays_have_the_bits_of_their_parts(function: Function) -> None:
    """Rules get large arrays as Tensors, which are shared by threads, and choose what they choose for small ones."""
    x, y, ct = np.random.default_rng(0).normal(size=(3, 40_000))
    x[:2], y[1:3], x[-2:] = np.inf, np.inf, y[-2:]
    gradients = wg.vjp(function, x, y)[1](ct)
    for part in (slice(0, 3), slice(100, 120), slice(-4, None)):
        parts = wg.vjp(function, x[part], y[part])[1](ct[part])
        assert [g[part].tobytes() for g in gradients] == [g.tobytes() for g in parts]
