"""Mutation and views: programs that write into arrays mean what they mean in NumPy, and are differentiated."""

from __future__ import annotations

import operator
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wengert as wg
import wengert.numpy as wnp
from tests.cases import a_third, together
from wengert.errors import DtypeError, GraphError
from wengert.testing import check_grads

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
relaxed = settings(max_examples=a_third(150), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


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


@settings(relaxed, max_examples=a_third(60))
@given(programs.map(recorded_throughout), points)
def test_second_order_of_random_programs(program: list[Instruction], x: Array) -> None:
    weights = np.linspace(-1, 1, SIZE)

    def directional(z: Array) -> Array:
        return (wg.grad(lambda y: run_program(program, y, Tensors())[1])(z) * weights).sum()

    step = 1e-6
    columns = np.eye(SIZE) * step
    expected = [weights @ (complex_step(program, x + e) - complex_step(program, x - e)) / (2 * step) for e in columns]
    assert_close(wg.grad(directional)(x), np.array(expected), 1e-5)
    leaf = wg.tensor(x, requires_grad=True)
    _, loss = run_program(program, leaf * 1.0, Tensors())
    if not loss.requires_grad:
        return
    (first,) = wg.autograd.grad(loss, leaf, create_graph=True, materialize_grads=True)
    if first.requires_grad:
        (second,) = wg.autograd.grad((first * weights).sum(), leaf, materialize_grads=True)
        assert_close(second.numpy(), np.array(expected), 1e-5)


@settings(relaxed, max_examples=a_third(60))
@given(programs.map(recorded_throughout), points)
def test_random_programs_in_other_modes(program: list[Instruction], x: Array) -> None:
    def function(z: Any) -> Any:
        return run_program(program, z, Tensors())[1]

    direction = np.linspace(-1, 1, SIZE)
    _, slope = wg.jvp(function, (x,), (direction,))
    assert_close(slope, complex_step(program, x) @ direction)
    lanes = np.stack([x, 1.1 * x[::-1]])
    expected = np.stack([complex_step(program, lane) for lane in lanes])
    assert_close(wg.vmap(wg.grad(function))(lanes), expected)
    assert_close(wg.grad(lambda many: wg.vmap(function)(many).sum())(lanes), expected)


def test_writing_into_a_cotangent_that_is_a_view_one_level_below() -> None:
    def program(x: Any) -> Any:
        wide = x.reshape(1, 4)
        wide[:, 1:] *= wide[0, 0]
        return (wide * wide).sum()

    def twice(x: Any) -> Any:
        return (wg.grad(program)(x) * np.array([1.0, 2.0, 3.0, 4.0])).sum()

    step = 1e-6
    differences = [(twice(X + e) - twice(X - e)) / (2 * step) for e in np.eye(4) * step]
    np.testing.assert_allclose(wg.grad(twice)(X), differences, rtol=1e-6)


# Writes of each form


def grad_by(function: Callable[[Any], Any], x: Array) -> Array:
    """Return the gradient of a scalar program by the tape, after checking that `grad` gives the same."""
    leaf = wg.tensor(x, requires_grad=True)
    function(leaf).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(wg.grad(function)(x), leaf.grad.numpy(), rtol=1e-13)
    return leaf.grad.numpy()


X = np.array([0.3, -0.7, 1.1, 0.9])
ROWS = np.arange(12.0).reshape(3, 4) / 10
MASK = np.array([[True, False, False, True], [False] * 4, [True, True, False, False]])

KEYS: list[Any] = [
    0,
    -1,
    (1, 2),
    slice(1, 3),
    slice(None, None, -2),
    (slice(None), 1),
    (Ellipsis, slice(1, None)),
    (None, slice(0, 2)),
    (slice(None), None, 2),
    MASK,
    (MASK[:, 0],),
    (slice(None), MASK[0]),
    [0, 2],
    [1, 1],
    ([0, 1, 0], [2, 2, 2]),
    (np.array([[0, 2], [2, 0]]), 1),
    (slice(1, None), [3, 0, 3]),
    (0, MASK[0]),
    (np.int64(1), slice(None)),
    True,
    (),
    Ellipsis,
    np.array([], dtype=int),
    (slice(2, 2),),
]


@together("key", KEYS)
@pytest.mark.parametrize("form", ["set", "set scalar", "add", "multiply", "read"])
def test_every_form_of_index(key: Any, form: str) -> None:
    """Base and value are both differentiated; the complex step is the judge."""
    shape = ROWS[key].shape

    def program(x: Any, like: Any) -> Any:
        base = like(ROWS) * x[0] + x[1]
        value = like(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)) * x[2]
        if form == "set":
            base[key] = value
        elif form == "set scalar":
            base[key] = x[3] * x[2]
        elif form == "add":
            base[key] += value
        elif form == "multiply":
            base[key] *= value + 1.0
        else:
            base = base[key] * value
        return (base * base).sum()

    gradient = grad_by(lambda x: program(x, wg.asarray), X)
    np.testing.assert_allclose(gradient, differentiated_by_complex_step(lambda x: program(x, np.asarray), X))


def differentiated_by_complex_step(function: Callable[[Array], Any], x: Array) -> Array:
    step = 1e-30
    return np.array([function(x + 1j * step * e).imag / step for e in np.eye(len(x))])


def test_the_last_write_to_a_repeated_place_wins() -> None:
    def program(x: Any) -> Any:
        base = wnp.zeros(3)
        base[[0, 1, 0]] = x[:3]
        return (base * np.array([1.0, 10.0, 100.0])).sum()

    np.testing.assert_array_equal(grad_by(program, X), [0.0, 10.0, 1.0, 0.0])


def test_a_broadcast_value_gets_the_sum() -> None:
    def program(x: Any) -> Any:
        base = wnp.zeros((3, 4))
        base[1:] = x
        base[:, 0] = x[1]
        return base.sum()

    np.testing.assert_array_equal(grad_by(program, X), [0.0, 5.0, 2.0, 2.0])


def test_a_mask_reads_a_reversed_view_of_itself_before_it_writes() -> None:
    t = wg.tensor([1.0, 2.0, 3.0, 4.0])
    t[np.ones(4, bool)] = t[::-1]
    assert t.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_overlapping_slices() -> None:
    def program(x: Any) -> Any:
        base = x * 1.0
        base[1:] = base[:-1]
        base[::-1] += base
        return (base * np.array([1.0, 2.0, 3.0, 4.0])).sum()

    np.testing.assert_allclose(grad_by(program, X), differentiated_by_complex_step(program, X))


def test_masks_that_depend_on_values() -> None:
    def program(x: Any) -> Any:
        base = np.sin(x) * 1.0
        base[base > 0] *= 10.0
        base[np.abs(base) < 0.7] = 0.0
        return base.sum()

    np.testing.assert_allclose(
        grad_by(program, X), np.where(X > 0, 10 * np.cos(X), np.where(abs(np.sin(X)) < 0.7, 0, 1))
    )


def put_where_small(b: Any, x: Any) -> None:
    b[b < 0.3] = x[2]


def put_zeros_behind(b: Any, x: Any) -> None:
    rest = b[1:]
    rest[rest < 0.3] = 0.0


def put_rows(b: Any, x: Any) -> None:
    b[:2][x[:2] < 0.3] = x * 2.0


@pytest.mark.parametrize("write", [put_where_small, put_zeros_behind, put_rows])
def test_writes_by_computed_masks_in_every_order_of_transformations(write: Any) -> None:
    def program(x: Any) -> Any:
        base = np.outer(x, x)
        write(base, x)
        return np.sum(base**3)

    rows = np.array([[0.1, 0.5, 0.7], [0.9, 0.2, 0.6]])
    values, slopes = [program(x) for x in rows], [wg.grad(program)(x) for x in rows]
    np.testing.assert_allclose([wg.jit(wg.grad(program))(x) for x in rows], slopes)
    np.testing.assert_allclose(wg.vmap(wg.jit(program))(rows), values)
    for gradient in (wg.vmap(wg.jit(wg.grad(program))), wg.vmap(wg.grad(wg.jit(program)))):
        np.testing.assert_allclose(gradient(rows), slopes)


@pytest.mark.parametrize(
    "write",
    [
        lambda b, x: np.multiply(b, x, out=b),
        lambda b, x: np.add(b, x, out=b, where=MASK[0]),
        lambda b, x: np.exp(x, out=b[::-1]),
        lambda b, x: np.copyto(b, x * 2, where=MASK[0]),
        lambda b, x: np.put(b, [0, 2], x[:2]),
        lambda b, x: np.putmask(b, MASK[0], x * 3),
        lambda b, x: np.place(b, MASK[0], x[:2]),
        lambda b, x: np.add.at(b, [0, 0, 1], x[:3]),
        lambda b, x: b.put([1, 3], x[2:]),
        lambda b, x: b.__setitem__(slice(1, 3), [x[0], 2.0] if isinstance(x, wg.Tensor) else np.array([x[0], 2.0])),
    ],
)
def test_numpys_functions_that_write(write: Any) -> None:
    def program(x: Any) -> Any:
        base = x * x
        write(base, x)
        return (base * base * np.array([1.0, 2.0, 3.0, 4.0])).sum()

    np.testing.assert_allclose(grad_by(program, X), differentiated_by_complex_step(program, X))


@together(
    "write, same",
    [
        (lambda b, x: b.add_(x), lambda b, x: b + x),
        (lambda b, x: b.add_(x, alpha=-2), lambda b, x: b - 2 * x),
        (lambda b, x: b.sub_(x, alpha=2), lambda b, x: b - 2 * x),
        (lambda b, x: b.mul_(x), lambda b, x: b * x),
        (lambda b, x: b.div_(x), lambda b, x: b / x),
        (lambda b, x: b.pow_(3), lambda b, x: b**3),
        (lambda b, x: b.addcmul_(x, x, value=0.5), lambda b, x: b + 0.5 * x * x),
        (lambda b, x: b.addcdiv_(b, x, value=0.5), lambda b, x: b + 0.5 * b / x),
        (lambda b, x: b.lerp_(x, 0.25), lambda b, x: b + 0.25 * (x - b)),
        (lambda b, x: b.exp_().sin_().neg_(), lambda b, x: -np.sin(np.exp(b))),
        (lambda b, x: b.abs_().sqrt_().square_(), lambda b, x: np.abs(b)),
        (lambda b, x: b.clamp_(0.2, 1.0), lambda b, x: np.clip(b, 0.2, 1.0)),
        (lambda b, x: b.clip_(min=0.2), lambda b, x: np.maximum(b, 0.2)),
        (lambda b, x: b.zero_(), lambda b, x: b * 0),
        (lambda b, x: b.fill_(x[0]), lambda b, x: b * 0 + x[0]),
        (lambda b, x: b.copy_(x), lambda b, x: x * 1),
        (lambda b, x: b.masked_fill_(MASK[0], x[1]), lambda b, x: np.where(MASK[0], x[1], b)),
        (lambda b, x: b.round_(), lambda b, x: np.round(b)),
    ],
)
def test_methods_that_end_in_an_underscore(write: Any, same: Any) -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0])

    def program(x: Any) -> Any:
        base = x * x
        view = base[1:]
        assert write(base, x) is base
        return (base * weights).sum() + (view**2).sum()

    def expected(x: Any) -> Any:
        result = same(x * x, x)
        return (result * weights).sum() + (result[1:] ** 2).sum()

    leaf = wg.tensor(X, requires_grad=True)
    given = program(leaf)
    assert given.item() == pytest.approx(expected(leaf).item())
    np.testing.assert_allclose(wg.grad(program)(X), wg.grad(expected)(X), rtol=1e-12)


def test_sort_and_fill_in_place() -> None:
    def program(x: Any) -> Any:
        base = x * 2
        base.sort()
        base[1:3].fill(x[0])
        return (base * np.array([1.0, 10.0, 100.0, 1000.0])).sum()

    np.testing.assert_array_equal(grad_by(program, X), [110.0, 2.0, 2000.0, 0.0])


# Views


@together(
    "view",
    [
        lambda b: b[1:],
        lambda b: b[0],
        lambda b: b[:, ::-1],
        lambda b: b.T,
        lambda b: b.T[1:].T,
        lambda b: b.reshape(4, 3),
        lambda b: b.reshape(-1)[2:7],
        lambda b: b.ravel(),
        lambda b: b[None],
        lambda b: b.reshape(2, 6)[:, :4],
        lambda b: b.swapaxes(0, 1),
        lambda b: np.squeeze(b[:1]),
        lambda b: np.moveaxis(b, 0, 1),
        lambda b: np.split(b, 2, axis=1)[1],
        lambda b: np.unstack(b)[2],
        lambda b: list(b)[1],
        lambda b: np.expand_dims(b, 1),
        lambda b: np.flip(b, 0),
        lambda b: b.reshape(12)[::-1].reshape(3, 4)[1:, ::2].T[0],
    ],
)
def test_views_and_bases_see_each_others_writes(view: Any) -> None:
    def program(x: Any, like: Any) -> Any:
        base = like(ROWS) * x[0] + x[1]
        window, other = view(base), base[:, 1:3]
        before = (window * x[3]).sum()
        window *= x[2]
        window += 1.5
        after = (other**2).sum()
        base[1] = x[3]
        other[...] = other * window.reshape(-1)[0]
        return before + after + (window**3).sum() + (base**2).sum()

    expected = program(X, np.asarray)
    leaf = wg.tensor(X, requires_grad=True)
    assert program(leaf, wg.asarray).item() == pytest.approx(expected, rel=1e-14)
    given = grad_by(lambda x: program(x, wg.asarray), X)
    np.testing.assert_allclose(given, differentiated_by_complex_step(lambda x: program(x, np.asarray), X))


def test_views_of_views_made_before_and_after_a_write() -> None:
    x = wg.tensor(X, requires_grad=True)
    base = wnp.zeros((2, 4))
    first = base[1]
    base[1] = x
    second = first[1:]
    third = second[::2]
    third += 1.0
    assert base.tolist()[1] == [0.3, -0.7 + 1, 1.1, 0.9 + 1]
    assert first.requires_grad
    assert second.requires_grad
    (third * second[1]).sum().backward()
    v = X.copy()
    v[[1, 3]] += 1
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [0.0, v[2], v[1] + v[3], v[2]])


def test_a_plain_buffer_starts_to_require_grad_when_written_to() -> None:
    x = wg.tensor(X, requires_grad=True)
    base = wg.asarray(np.zeros(6))
    view = base[2:]
    assert not view.requires_grad
    base[2:4] = x[:2]
    assert base.requires_grad
    assert view.requires_grad
    view.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0, 0.0, 0.0])


def test_real_and_imaginary_parts_are_views() -> None:
    def program(x: Any) -> Any:
        z = x[:2] * (1 + 2j)
        z.real[...] = x[2:]
        z.imag += x[1] * z.real
        z.real[0] *= x[3]
        z.real = z.real * 1.5
        return (z * np.conjugate(z)).real.sum() + (z.imag**3).sum()

    step = 1e-6
    differences = [(program(X + e) - program(X - e)) / (2 * step) for e in np.eye(4) * step]
    np.testing.assert_allclose(grad_by(program, X), differences, rtol=1e-7)
    with pytest.raises(DtypeError) as error:
        wg.tensor(X).imag = 1.0
    assert str(error.value) == ("imag: dtype float64; a complex dtype is needed to set it. Use .astype(complex).")


@together("function", [lambda x, *outs: np.divmod(x, 2.0, *outs), np.modf])
@together(
    "call",
    [
        lambda f, x, q, r: f(x, q, r),
        lambda f, x, q, r: f(x, q),
        lambda f, x, q, r: f(x, None, r),
        lambda f, x, q, r: np.divmod(x, 2.0, out=(q, r)),
        lambda f, x, q, r: np.modf(x, out=(None, r)),
        lambda f, x, q, r: np.divmod(x, 2.0, out=(r, q), where=MASK[0]),
        lambda f, x, q, r: np.divmod(x[0], 2.0, out=(q, r)),
    ],
)
def test_functions_with_two_results_write_into_both(function: Any, call: Any) -> None:
    def program(x: Any) -> Any:
        first, second = x * 0.0 + 7.0, x * 0.0 + 8.0
        return np.stack([*call(function, x * 1.0, first, second), first, second])

    want = program(X)
    for found in (program(wg.tensor(X)).numpy(), wg.vjp(program, X)[0], wg.jit(program)(X)):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("indices", [[0], [0, 0], []])
def test_numbers_are_put_into_arrays_without_axes(indices: list[int]) -> None:
    def program(y: Any, s: Any) -> Any:
        y.put(indices, s)
        return y * 1.0

    want = program(np.array(1.5), 2.5)
    for found in (
        program(wg.tensor(1.5), 2.5),
        wg.jit(program)(np.array(1.5), 2.5),
        wg.vjp(program, np.array(1.5), 2.5)[0],
        wg.jvp(program, (np.array(1.5), 2.5), (np.array(1.0), 1.0))[0],
    ):
        assert found == want


def test_what_nan_to_num_gives_for_an_array_without_axes_is_a_number() -> None:
    def program(y: Any) -> Any:
        found = np.nan_to_num(y, copy=False)
        y[...] = 7.0
        return found + 10 * y

    want = program(np.array(np.nan))
    for found in (program(wg.tensor(np.nan)), wg.vjp(program, np.array(np.nan))[0], wg.jit(program)(np.array(np.nan))):
        assert found == want


def test_scalars_can_be_written_to() -> None:
    def program(x: Any) -> Any:
        value = x * 1.0
        value[...] = value * x
        value[()] += x
        value += 1.0
        value.fill(value * x)
        return value

    assert wg.grad(program)(2.0) == 3 * 4 + 2 * 2 + 1
    buffer = wnp.zeros(())
    buffer[...] = wg.tensor(2.0, requires_grad=True)
    assert buffer.requires_grad
    assert buffer.shape == ()


def test_an_array_without_dimensions_may_be_written_to_last() -> None:
    def program(x: Any) -> Any:
        value = np.array(x[0] * 3.0, like=x)
        value[()] -= x[1]
        return value * 2.0  # its cotangent is a scalar, which cannot be written to

    np.testing.assert_array_equal(wg.grad(program)(np.array([2.0, 5.0])), [6.0, -2.0])


def test_in_place_operators_of_each_kind() -> None:
    a, b = wg.tensor(np.arange(4) + 1), np.arange(4) + 1
    for name in ("iadd", "isub", "imul", "ifloordiv", "imod", "ior", "ixor", "iand", "ilshift", "irshift", "ipow"):
        a = getattr(operator, name)(a, 3)
        b = getattr(operator, name)(b, 3)
        np.testing.assert_array_equal(a.numpy(), b)
        assert a.dtype == b.dtype

    def program(x: Any) -> Any:
        base = x * 1.0
        base *= base
        base += base
        square = base.reshape(2, 2)
        square @= square
        square /= 1 + x[0]
        square **= 2
        return square.sum()

    np.testing.assert_allclose(grad_by(program, X), differentiated_by_complex_step(program, X))


def test_copies_are_no_views() -> None:
    for duplicate in (lambda b: b.copy(), lambda b: b[[0, 1]], lambda b: b[b > -10], lambda b: b * 1.0, np.array):
        base = wg.tensor(X) if duplicate is np.array else wg.tensor(X, requires_grad=True) * 1.0
        other = wg.asarray(duplicate(base))
        other[0] = 100.0
        base[1] = 50.0
        assert base.tolist()[0] == X[0]
        assert other.tolist()[1] == X[1]


def test_ndarrays_given_to_tensors_are_never_written_to() -> None:
    array = X.copy()
    shared = wg.asarray(array)
    shared[1:][0] = 9.0
    shared += 1.0
    wnp.reshape(array, (2, 2))[0] = 7.0
    np.add(wg.asarray(array), 1.0, out=wg.asarray(array))
    np.testing.assert_array_equal(array, X)


def read_only(array: Array) -> Array:
    view = array[:]
    view.flags.writeable = False
    return view


READ_ONLY_VIEWS: dict[str, Callable[[Array], Array]] = {
    "view": read_only,
    "repeated": lambda a: np.broadcast_to(a, (2, 2)),
    "window": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2),
    "numpy": lambda a: wg.asarray(a).numpy(),
    "tensor": lambda a: wg.asarray(read_only(a)),
}
USES_OF_ARRAYS: dict[str, Callable[[Array, Array], Array]] = {
    "x * v": lambda x, v: x * v,
    "v * x": lambda x, v: v * x,
    "x ** v": lambda x, v: x**v,
    "x @ v.T": lambda x, v: x @ v.T,
    "multiply": np.multiply,
    "where": lambda x, v: np.where(v > 0, x, 2 * x),
    "index": lambda x, v: x[v.astype(int)] if type(v) is wg.Tensor else x[np.asarray(v, int)],
    "einsum": lambda x, v: np.einsum("ij,...j->i...", x, v),
}


@together("use", USES_OF_ARRAYS.values())
@together("view", READ_ONLY_VIEWS.values())
def test_writes_to_memory_under_a_read_only_view_leave_gradients_alone(view: Any, use: Any) -> None:
    point = np.array([[1.5, 2.0], [3.0, 0.5]])

    def gradients(write: bool) -> list[Array]:
        memory = np.array([0.0, 1.0])
        seen = view(memory)
        x = wg.tensor(point, requires_grad=True)
        y = use(x, seen).sum()
        _, pullback = wg.vjp(lambda x: use(x, seen).sum(), point)
        _, pushforward = wg.linearize(lambda x: use(x, seen).sum(), point)
        if write:
            memory -= 1.0
        y.backward()
        return [x.grad.numpy(), pullback(1.0)[0], pushforward(point)]

    for found, expected in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("key", [np.array([0, 1]), np.array([True, False])], ids=["integers", "mask"])
def test_writes_to_memory_under_a_read_only_index_leave_gradients_alone(key: Array) -> None:
    x = wg.tensor([2.0, 3.0], requires_grad=True)
    y = (x[read_only(key)] * np.arange(1.0, 1 + len(x[key]))).sum()
    expected = np.array([1.0, 2.0]) if key.dtype == int else np.array([1.0, 0.0])
    key[:] = key[::-1].copy()
    y.backward()
    np.testing.assert_array_equal(x.grad, expected)


def test_a_file_mapped_to_memory_may_change(tmp_path: Any) -> None:
    np.save(tmp_path / "a.npy", np.array([2.0, 3.0]))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    x = wg.tensor([1.0, 1.0], requires_grad=True)
    y = (x * mapped).sum()
    np.load(tmp_path / "a.npy", mmap_mode="r+")[:] = 20.0
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 3.0])


def test_writing_through_a_reshape_of_another_memory_order() -> None:
    base = wg.tensor(np.zeros((2, 3)))
    flat = base.reshape(6)
    np.add(wg.tensor(np.arange(6.0).reshape(3, 2)).T, 0.0, out=base)
    flat[1] = 50.0
    assert base.tolist() == [[0.0, 50.0, 4.0], [1.0, 3.0, 5.0]]
    assert flat.tolist() == [0.0, 50.0, 4.0, 1.0, 3.0, 5.0]


def test_cotangents_of_another_memory_order() -> None:
    def program(x: Any) -> Any:
        base = (x * 1.0).reshape(2, 2) * 1.0
        base.reshape(4)[1] = 3.0
        return (base.T * np.array([[1.0, 2.0], [3.0, 4.0]]) * np.ones((2, 2), order="F")).sum()

    np.testing.assert_array_equal(grad_by(program, X), [1.0, 0.0, 2.0, 4.0])


# What writes do not do


def test_writing_into_a_leaf_while_recording_is_an_error() -> None:
    text = (
        "assignment: a leaf Tensor that requires grad; a Tensor that is not a leaf is needed while recording. "
        "Write into a copy (x.copy()), or write under no_grad."
    )
    x = wg.tensor(X, requires_grad=True)
    writes: list[Callable[[], Any]] = [
        lambda: x.__setitem__(0, 1.0),
        lambda: x[1:].__setitem__(0, 1.0),
        lambda: x.__iadd__(1.0),
        lambda: x[1:].__imul__(2.0),
        lambda: x.sort(),
        lambda: x.fill(0.0),
        lambda: x.zero_(),
        lambda: np.sin(x, out=x),
        lambda: x.__setitem__(0, x[1]),
    ]
    for write in writes:
        with pytest.raises(GraphError) as error:
            write()
        assert str(error.value) == text
    np.testing.assert_array_equal(x.detach().numpy(), X)
    with wg.no_grad():
        for write in writes:
            write()


def test_a_failed_write_changes_nothing() -> None:
    x = wg.tensor(X, requires_grad=True)
    base = x * 2
    node = base.grad_fn
    with pytest.raises(ValueError, match="could not broadcast"):
        base[1:] = np.ones(2)
    with pytest.raises(IndexError):
        base[10] = x[0]
    assert base.grad_fn == node
    np.testing.assert_array_equal(base.detach().numpy(), 2 * X)


def test_broadcast_views_are_read_only_as_in_numpy() -> None:
    base = wg.tensor(X)
    with pytest.raises(ValueError, match="read-only"):
        np.broadcast_to(base, (2, 4))[0] = 1.0


def test_floats_written_into_integers_are_cut_as_their_digits_are() -> None:
    x = wg.tensor([2.7], requires_grad=True)
    base = wnp.zeros(2, dtype=int)
    base[:1] = x
    assert base.tolist() == [2, 0]
    assert not base.requires_grad


def test_writes_keep_the_dtype_of_the_base() -> None:
    x = wg.tensor(X, requires_grad=True)
    base = wnp.zeros(4, dtype=np.float32)
    base[...] = x * x
    assert base.dtype == np.float32
    base.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == np.float64
    np.testing.assert_allclose(x.grad.numpy(), 2 * X)


def test_deletion_is_refused() -> None:
    with pytest.raises((TypeError, AttributeError)):
        del wg.tensor(X)[0]


# Cost


class Meter:
    """Count the bytes of large arrays that are allocated while it is on."""

    def __init__(self) -> None:
        self.bytes = 0

    def __enter__(self) -> Meter:
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


def fill_elements(x: Any, n: int) -> Any:
    base = wg.asarray(np.zeros(n))
    base[0] = x
    for i in range(1, n):
        base[i] = base[i - 1] * 0.5 + x
    return base.sum()


def fill_rows(x: Any, n: int) -> Any:
    base = wg.asarray(np.zeros((n, 2)))
    base[0] = x
    for i in range(1, n):
        base[i] = base[i - 1] * 0.5
        base[i] += x
        base[i, 1] *= 0.5
    return base.sum()


@pytest.mark.parametrize("program", [fill_elements, fill_rows])
def test_filling_element_by_element_copies_a_linear_number_of_bytes(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the writes nor the sweep copy the whole array for one element of it."""
    copied = {"bytes": 0}
    original = np.array
    full = np.zeros

    def counting(data: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(data, *args, **kwargs)
        copied["bytes"] += made.nbytes
        return made

    def counting_zeros(*args: Any, **kwargs: Any) -> Any:
        made = full(*args, **kwargs)
        copied["bytes"] += made.nbytes
        return made

    monkeypatch.setattr(np, "array", counting)
    monkeypatch.setattr(np, "zeros", counting_zeros)

    def cost(n: int) -> int:
        copied["bytes"] = 0
        x = wg.tensor(0.5, requires_grad=True)
        y = program(x, n)
        y.backward()
        return copied["bytes"]

    small, large = cost(200), cost(800)
    assert large < 5 * small


def test_filling_element_by_element_keeps_a_linear_amount_of_memory() -> None:
    def peak(n: int) -> int:
        x = wg.tensor(0.5, requires_grad=True)
        with Meter() as meter:
            y = fill_elements(x, n)
            y.backward()
        return meter.bytes

    peak(50)
    assert peak(1600) < 6.0 * peak(400)  # small tuples come from memory that Python keeps for them, uncounted


def test_filling_inside_a_transformation_is_differentiated() -> None:
    n, x = 50, 0.3
    slope = wg.grad(lambda z: fill_elements(z, n))(x)
    assert slope == pytest.approx((fill_elements(x + 1.0, n) - fill_elements(x, n)).item())
    assert wg.grad(wg.grad(lambda z: fill_elements(z * z, n)))(x) == pytest.approx(2 * slope)


@together("key", [slice(0, 3), slice(None, None, 2), [0, 2, 1], (None, slice(3))])
@together("shape", [(1,), (1, 1), (1, 1, 1), (1, 3), (1, 1, 3)])
def test_values_with_axes_of_length_one_in_front_get_their_gradient(key: Any, shape: tuple[int, ...]) -> None:
    x = np.array([0.5, 0.6, -0.3])

    def f(x: Any) -> Any:
        y = np.ones(5, like=x) * x[0]
        y[key] = x[: shape[-1]].reshape(shape) * 2.0
        return np.sum(y**2 * np.arange(1.0, 6.0))

    check_grads(f, (x,), order=2, modes=("rev", "fwd"))
    slope = wg.grad(f)(x)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), slope)
    np.testing.assert_allclose(wg.grad(wg.jit(f))(x), slope)
    np.testing.assert_allclose(wg.vmap(wg.grad(f))(x[None]), slope[None])


# Parts at an index that only a traced value tells


def read_before(x, a, k):
    row = a[k]
    used = np.sum(row * row)
    a *= 2.0
    return used + np.sum(a)


def put_back(x, a, k):
    a[k] += x
    row = a[k]
    row *= 3.0
    a[k] = row
    return np.sum(a * a)


def stale(x, a, k):
    row = a[k]
    a *= 2.0
    return np.sum(row * row)


def written(x, a, k):
    row = a[k]
    row += x
    return np.sum(a * a)


def of_a_part(x, a, k):
    a[k][0] = 5.0
    return np.sum(a * a)


def put_elsewhere(x, a, k):
    row = a[k]
    row += x
    a[0] = row
    return np.sum(a * a)


@pytest.mark.parametrize("program", [read_before, put_back, stale, written, of_a_part, put_elsewhere])
def test_parts_at_a_traced_index_are_right_or_refused_by_line(program):
    def loss(x):
        return program(x, x * np.ones((3, 2)), np.argmax(x))

    x = np.array([0.5, 0.6])
    gradient = wg.grad(loss)(x)
    for mode in (wg.jit(wg.grad(loss)), wg.grad(wg.jit(loss)), lambda v: wg.vmap(wg.grad(loss))(np.stack([v, -v]))[0]):
        if program in (read_before, put_back):
            np.testing.assert_array_equal(mode(x), gradient)
        else:
            with pytest.raises(GraphError, match=r"getitem: a part at a traced index(.|\n)*, in \w+: (row = )?a\[k\]"):
                mode(x)


def divide_at(a):
    np.divide.at(a, [0, 0, 1], 0.0)


RAISING = {
    "a /= 0": lambda a: operator.itruediv(a, 0.0),
    "view /= 0": lambda a: operator.itruediv(a[:2], 0.0),
    "a[1:] /= 0": lambda a: operator.setitem(a, slice(1, None), operator.itruediv(a[1:], np.zeros(2))),
    "a %= 0": lambda a: operator.imod(a, 0.0),
    "out=": lambda a: np.log(a, out=a),
    "out= and where=": lambda a: np.divide(a, 0.0, out=a, where=np.array([True, False, True])),
    "out= of a reduction": lambda a: np.sum(np.full((2, 3), 1e308), 0, None, a),
    "out= of a method": lambda a: (a.reshape(1, 3) * 1.7e308 * np.array([[1.0], [1.0]])).sum(0, out=a),
    "divide.at": divide_at,
    "add.at": lambda a: np.add.at(a, [0, 0], 1.7e308),
    "a[...] = a / 0, which does not write": lambda a: operator.setitem(a, ..., a / 0.0),
}


@together("write", RAISING.values())
@together("raised", [FloatingPointError, RuntimeWarning])
def test_an_operation_in_place_writes_before_it_raises_as_numpy_does(write, raised):
    def after(a):
        error = None
        with np.errstate(all="raise" if raised is FloatingPointError else "warn"), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                write(a)
            except raised as found:
                error = str(found)
        return error, a

    start = np.array([1.0, 0.0, -2.0])
    error, wanted = after(start.copy())
    assert error is not None
    for a in (wg.tensor(start), wg.tensor(start, requires_grad=True) * 1.0):
        message, found = after(a)
        assert message == error
        np.testing.assert_array_equal(found.detach(), wanted)


LEFT_OUT = {
    "divide": lambda x, out: np.divide(1.0, x, out=out, where=x != 0),
    "divide by constants": lambda x, out: np.divide(x, [1, 0, 2], out=out, where=[True, False, True]),
    "divide by truths": lambda x, out: np.divide(x, x != 0, out=out, where=x != 0),
    "log": lambda x, out: np.log(x, out=out, where=x > 0),
    "power": lambda x, out: np.power(x - 0.5, 1.5, out=out, where=x > 0.5),
    "floor_divide of integers": lambda x, out: np.floor_divide(
        [3, 1, 2], [1, 0, 2], out=out, where=[True, False, True]
    ),
    "divmod": lambda x, out: np.divmod(x, [1.0, 0.0, 2.0], out=(None, out), where=[True, False, True])[1],
}


@pytest.mark.parametrize("function", LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_nothing_warns_of_elements_that_where_leaves_out(function):
    def total(x):
        return np.sum(function(x, np.zeros(3, like=x)) * x)

    x = np.array([1.25, 0.0, 3.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mode in (lambda f: f, wg.jit, lambda f: lambda x: wg.vmap(f)(x[None])[0]):
            np.testing.assert_allclose(mode(total)(x), total(x), rtol=1e-15)
        gradient, curvature = wg.grad(total)(x), wg.hessian(total)(x)
        np.testing.assert_allclose(wg.jit(wg.grad(total))(x), gradient, rtol=1e-14)
        np.testing.assert_allclose(wg.jit(wg.hessian(total))(x), curvature, rtol=1e-14)
    wg.testing.check_grads(total, np.array([1.25, 0.75, 3.5]), order=2)


# Shapes set in place


def test_a_shape_is_set_in_place() -> None:
    x = wg.tensor(np.arange(6.0))
    part, copy = x[1:3], x.copy()
    x.shape = (2, -1)
    assert x.shape == (2, 3)
    x[0, 1] = 10.0
    np.testing.assert_array_equal(part, [10.0, 2.0])
    part[1] = 20.0
    np.testing.assert_array_equal(x, [[0.0, 10.0, 20.0], [3.0, 4.0, 5.0]])
    row = x[1]
    x.shape = 6
    row += 1
    part *= 2
    np.testing.assert_array_equal(x, [0.0, 20.0, 40.0, 4.0, 5.0, 6.0])
    np.testing.assert_array_equal(copy, np.arange(6.0))
    x.shape = x.shape
    x.shape = (1, 6)
    assert part.shape == (2,)
    one = wg.tensor(3.0)
    one.shape = (1, 1)
    one[0] = 4.0
    one.shape = ()
    assert float(one) == 4.0


def shaped(x: Any, make: Any = np.array) -> Any:
    """Compute with arrays whose shape is set: what was made before, views and the base see each other's writes."""
    y = make(x, like=x) * 2 if make is np.array else make(x) * 2
    first, turned = y[:2], y[::-1]
    y.shape = (3, 2)
    y[0] = y[1] * y[2]
    first[1] = first[1] * 3
    z = y.T
    turned[0] = turned[1] * turned[5]
    flat = y[1:]
    flat.shape = 4
    flat[0] *= first[0]
    y.shape = (6,)
    y[5] += np.sum(z)
    return np.sum(y * np.arange(6.0)) + np.sum(flat**2) + np.sum(first) + np.sum(turned * np.arange(6.0) ** 2)


def test_shapes_are_set_in_every_mode() -> None:
    x = np.linspace(0.5, 1.5, 6)
    want = shaped(x, np.copy)
    np.testing.assert_allclose(shaped(wg.tensor(x)), want, rtol=1e-14)
    leaf = wg.tensor(x, requires_grad=True)
    shaped(leaf).backward()
    gradient = np.array([(shaped(x + d, np.copy) - shaped(x - d, np.copy)) / 2e-6 for d in 1e-6 * np.eye(6)])
    np.testing.assert_allclose(leaf.grad, gradient, rtol=1e-7)
    for found in (wg.grad(shaped)(x), wg.jit(wg.grad(shaped))(x), wg.jacfwd(shaped)(x), wg.grad(wg.jit(shaped))(x)):
        np.testing.assert_allclose(found, leaf.grad, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(shaped)(x), want, rtol=1e-14)
    lanes = np.stack([x, x**2])
    np.testing.assert_allclose(wg.vmap(shaped)(lanes), [shaped(row, np.copy) for row in lanes], rtol=1e-13)
    np.testing.assert_allclose(wg.vmap(wg.grad(shaped))(lanes)[0], leaf.grad, rtol=1e-12)


def test_shapes_that_need_a_copy_are_refused_as_in_numpy() -> None:
    x = wg.tensor(np.arange(6.0).reshape(2, 3))
    turned = x.T
    with pytest.raises(AttributeError) as caught:
        turned.shape = 6
    assert str(caught.value) == (
        "shape: a Tensor of shape (3, 2) whose elements lie apart or in another order; elements side by side are "
        "needed. Use reshape, which copies."
    )
    with pytest.raises(ValueError, match="reshape"):
        x.shape = (4, 2)
    leaf = wg.tensor(x.numpy().copy(), requires_grad=True)
    with pytest.raises(GraphError) as refused:
        leaf.shape = 6
    assert str(refused.value) == (
        "shape: a leaf Tensor that requires grad; one that is not a leaf is needed. Use reshape, or set it before."
    )


def test_a_traced_piece_does_not_set_the_shape_of_what_was_there_before() -> None:
    kept = wg.tensor(np.arange(6.0))

    def of_captured(x: Any) -> Any:
        kept.shape = (2, 3)
        return x * kept[1, 1]

    def in_a_branch(x: Any) -> Any:
        y = x * 2
        if np.sum(y) > 0:
            y.shape = (3, 2)
        return np.sum(y * y)

    with pytest.raises(GraphError, match="a function that writes to a Tensor of shape"):
        wg.jit(of_captured)(np.arange(6.0))
    with pytest.raises(GraphError, match="one made there is needed, because its shape would change"):
        wg.jit(in_a_branch)(np.arange(6.0))
    assert wg.grad(in_a_branch)(np.arange(6.0)).shape == (6,)
