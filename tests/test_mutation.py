"""Mutation and views: programs that write into arrays mean what they mean in NumPy, and are differentiated."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wengert as wg
import wengert.numpy as wnp

Array = Any
Instruction = tuple[int, int, int, int, int]
SIZE = 6
SHAPES = ((6,), (2, 3), (3, 2), (4,), (2, 2), (1, 6))


# Random programs. One program runs on float ndarrays (values), on complex ndarrays (complex step) and on Tensors.


class Plain:
    """Run on float ndarrays."""

    dtype: type = float

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape, self.dtype)

    def constant(self, value: Array) -> Array:
        return value

    def quietly_set(self, target: Array, key: Any, value: Array) -> None:
        target[key] = value


class Complex(Plain):
    """Run on complex ndarrays, whose imaginary parts are tangents; what is not recorded leaves tangents alone."""

    dtype = complex

    def constant(self, value: Array) -> Array:
        return np.real(value) + 0j

    def quietly_set(self, target: Array, key: Any, value: Array) -> None:
        target[key] = np.real(value) + 1j * np.imag(target[key])


class Tensors(Plain):
    """Run on Tensors."""

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return wnp.asarray(np.zeros(shape))

    def constant(self, value: Array) -> Array:
        return value.detach() if isinstance(value, wg.Tensor) else value

    def quietly_set(self, target: Array, key: Any, value: Array) -> None:
        with wg.no_grad():
            target[key] = value


def basic_key(shape: tuple[int, ...], a: int, b: int) -> Any:
    """Return a basic index that leaves at least one axis."""
    keys = [slice(a % 2, None), slice(None, None, -1), slice(None, None, 2), Ellipsis, slice(0, max(1, shape[0] - 1))]
    key = keys[a % len(keys)]
    if len(shape) == 1:
        return key
    others = [slice(None), slice(b % 2, None), slice(None, None, -1), b % shape[1], None]
    second = others[b % len(others)]
    if key is Ellipsis:
        return (Ellipsis, b % shape[-1]) if b % 2 else key
    if a % 7 == 6:
        return a % shape[0]
    return (key, second)


def write_key(shape: tuple[int, ...], a: int, b: int) -> Any:
    """Return any index to write to: basic, one element, mask, integer arrays with repeats, and mixtures."""
    length = shape[0]
    kind = a % 7
    if kind <= 2:
        return basic_key(shape, b, a)
    if kind == 3:
        return tuple((b + i) % n for i, n in enumerate(shape))
    if kind == 4:
        return (np.arange(np.prod(shape)) * (b + 3) % 5 < 2).reshape(shape)
    picks = [b % length, (b + 1) % length, b % length]
    if kind == 5:
        return picks if b % 2 else np.array(picks)
    return (picks, b % shape[1]) if len(shape) > 1 else picks[:2]


def fits(value: Array, window: Array) -> bool:
    try:
        return np.broadcast_shapes(np.shape(value), np.shape(window)) == np.shape(window)
    except ValueError:
        return False


def run_program(program: list[Instruction], x: Array, how: Plain) -> tuple[list[Array], Array]:
    """Return all variables of a program after its last instruction, and a scalar that depends on all."""
    variables: list[Array] = [x, x * 1.0]
    saved: list[Array] = []

    def element(i: int, j: int) -> Array:
        source = variables[i % len(variables)]
        return np.sin(source[tuple(j % n for n in source.shape)]) * 0.7

    def operand(i: int, j: int, window: Array) -> Array:
        if j % 5 == 0:
            return 0.25 * (j % 3) - 0.3
        source = variables[i % len(variables)]
        if j % 5 <= 2 and fits(source, window):
            return np.sin(source) if j % 2 else source
        return element(i, j)

    for code, a, b, c, d in program:
        target = variables[a % len(variables)]
        quiet = d % 6 == 5
        if code == 0:
            view = target[basic_key(target.shape, b, c)]
            variables.append(view if view.size else target)
        elif code == 1:
            size = int(np.prod(target.shape))
            shapes = [(size,), (1, size), (size // 2, 2) if size % 2 == 0 else (size, 1)]
            variables.append(target.reshape(shapes[b % 3]))
        elif code == 2:
            variables.append(target.T)
        elif code == 3:
            value = np.sin(target) if b % 2 else target * 1.5 + 0.25
            variables.append(how.constant(value) if quiet else value)
        elif code == 4:
            variables.append(how.zeros(SHAPES[b % len(SHAPES)]))
        elif code == 5:
            saved.append(target * target)
        elif code == 6:
            key = write_key(target.shape, b, c)
            value = operand(c, d, target[key])
            if isinstance(key, np.ndarray):
                value = value * 1.0  # NumPy does not handle overlap through a mask; see the test on that
            if quiet:
                how.quietly_set(target, key, value)
            else:
                target[key] = value
        elif code == 7:
            key = write_key(target.shape, b, c)
            value = operand(c, d, target[key])
            if quiet:
                how.quietly_set(target, key, how.constant(target[key]) + how.constant(value))
            elif d % 2:
                target[key] += value
            else:
                target[key] *= value
        else:
            value = operand(c, d, target)
            if quiet:
                how.quietly_set(target, Ellipsis, how.constant(target) * how.constant(value))
            elif d % 3 == 0:
                target += value
            elif d % 3 == 1:
                target *= value
            else:
                target -= value
        if len(variables) > 12:
            del variables[2]
    loss = 0.0
    for i, variable in enumerate([*variables, *saved]):
        loss = loss + (np.sin(variable) * (0.5 + 0.25 * i)).sum()
    return variables, loss


numbers = st.integers(0, 59)
instructions = st.tuples(st.integers(0, 8), numbers, numbers, numbers, numbers)
programs = st.lists(instructions, min_size=1, max_size=12)
points = st.lists(st.integers(-20, 20), min_size=SIZE, max_size=SIZE).map(lambda xs: np.array(xs) / 10 + 0.05)
relaxed = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def complex_step(program: list[Instruction], x: Array) -> Array:
    """Return the gradient of a program's result, exact to rounding."""
    step = 1e-30
    gradient = np.zeros(SIZE)
    for i in range(SIZE):
        z = x.astype(complex)
        z[i] += 1j * step
        gradient[i] = np.imag(run_program(program, z, Complex())[1]) / step
    return gradient


def assert_close(given: Array, expected: Array, tolerance: float = 1e-10) -> None:
    scale = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(given, expected, rtol=tolerance, atol=tolerance * scale)


@relaxed
@given(programs, points)
def test_random_programs_on_the_tape(program: list[Instruction], x: Array) -> None:
    expected, value = run_program(program, x.copy(), Plain())
    leaf = wg.tensor(x, requires_grad=True)
    variables, loss = run_program(program, leaf * 1.0, Tensors())
    for got, wanted in zip(variables, expected, strict=True):
        np.testing.assert_array_equal(got.detach().numpy(), wanted)
    assert_close(loss.item(), value)
    if loss.requires_grad:
        loss.backward()
    gradient = np.zeros(SIZE) if leaf.grad is None else leaf.grad.numpy()
    assert_close(gradient, complex_step(program, x))
    np.testing.assert_array_equal(leaf.detach().numpy(), x)


@relaxed
@given(programs, points)
def test_random_programs_under_grad(program: list[Instruction], x: Array) -> None:
    given_array = x.copy()
    gradient = wg.grad(lambda z: run_program(program, z, Tensors())[1])(given_array)
    assert_close(gradient, complex_step(program, x))
    np.testing.assert_array_equal(given_array, x)


def recorded_throughout(program: list[Instruction]) -> list[Instruction]:
    """Return a program without `no_grad`, which cuts every order at once as differences cannot."""
    return [(*instruction[:4], instruction[4] - (instruction[4] % 6 == 5)) for instruction in program]


@settings(relaxed, max_examples=60)
@given(programs.map(recorded_throughout), points)
def test_second_order_of_random_programs(program: list[Instruction], x: Array) -> None:
    weights = np.linspace(-1, 1, SIZE)

    def directional(z: Array) -> Array:
        return (wg.grad(lambda y: run_program(program, y, Tensors())[1])(z) * weights).sum()

    step = 1e-6
    columns = np.eye(SIZE) * step
    expected = [
        weights @ (complex_step(program, x + e) - complex_step(program, x - e)) / (2 * step) for e in columns
    ]
    assert_close(wg.grad(directional)(x), np.array(expected), 1e-5)
    leaf = wg.tensor(x, requires_grad=True)
    _, loss = run_program(program, leaf * 1.0, Tensors())
    if not loss.requires_grad:
        return
    (first,) = wg.autograd.grad(loss, leaf, create_graph=True, materialize_grads=True)
    if first.requires_grad:
        (second,) = wg.autograd.grad((first * weights).sum(), leaf, materialize_grads=True)
        assert_close(second.numpy(), np.array(expected), 1e-5)
