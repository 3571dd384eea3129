"""Reading and writing parts of arrays: the same programs with NumPy, and their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
import wengert.numpy as wnp
from tests.cases import a_third, together
from wengert.errors import TracedTruthError
from wengert.graph import trace

Program = Callable[..., Any]


# Any index, any program: they are linear, so their gradients follow from NumPy's results on unit vectors


@st.composite
def entries_for(draw: st.DrawFn, length: int) -> Any:
    """Draw what indexes one axis."""
    kind = draw(st.sampled_from(["int", "slice", "list", "array", "mask", "tensor"]))
    if kind == "mask":
        return np.array(draw(st.lists(st.booleans(), min_size=length, max_size=length)), bool)
    if kind == "slice":
        bound = st.none() | st.integers(-length - 2, length + 2)
        return slice(draw(bound), draw(bound), draw(st.none() | st.sampled_from([1, 2, -1, -2])))
    numbers = st.integers(-length, length - 1)
    if kind == "int" or length == 0:
        return draw(numbers) if length else slice(None)
    if kind == "list":
        return draw(st.lists(numbers, min_size=2, max_size=2))
    found = np.array(draw(st.lists(numbers, min_size=2, max_size=2)))
    found = found[:, None] if draw(st.booleans()) else found
    return wg.tensor(found) if kind == "tensor" else found


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Draw an index of an array; it need not fit."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([True, False, (), ..., None, [], np.zeros(shape, bool), np.True_]))
    count = draw(st.integers(0, len(shape)))
    before = draw(st.integers(0, count))
    entries = [draw(entries_for(n)) for n in shape[:before]]
    if before < count:
        entries.append(...)
        entries += [draw(entries_for(n)) for n in shape[len(shape) - (count - before) :]]
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), None)
    return tuple(entries)


SHAPES = st.sampled_from([(), (1,), (3,), (0,), (2, 3), (3, 1), (2, 0), (2, 3, 2), (1, 3, 2)])


def plain(index: Any) -> Any:
    """Return an index with arrays in place of Tensors."""
    if isinstance(index, tuple):
        return tuple(plain(entry) for entry in index)
    return index.numpy() if isinstance(index, wg.Tensor) else index


def gradient_of_linear(program: Program, shape: tuple[int, ...], ct: Any) -> Any:
    """Return the gradient of <ct, program(x)> of a linear program by applying it to unit vectors."""
    gradient = np.zeros(shape)
    for place in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[place] = 1
        gradient[place] = np.sum(ct * program(unit))
    return gradient


def check(program: Program, reference: Program, shape: tuple[int, ...]) -> None:
    """Check value and gradient of a linear program against NumPy's, and that errors are of the same type."""
    x = np.random.default_rng(0).normal(size=shape)
    try:
        want = reference(x.copy())
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error), match=r"."):
            wg.vjp(program, x)
        return
    y, pullback = wg.vjp(program, x)
    np.testing.assert_array_equal(y, want, strict=True)
    ct = np.asarray(np.random.default_rng(1).normal(size=np.shape(want)))
    np.testing.assert_allclose(pullback(ct)[0], gradient_of_linear(reference, shape, ct), atol=1e-14)
    _, second = wg.vjp(lambda v: wg.vjp(program, v)[1](ct)[0], x)  # the vjp of a linear program is constant
    assert not np.any(second(np.ones(shape))[0])
    _, transposed = wg.vjp(lambda v: wg.vjp(program, x)[1](v)[0], ct)
    np.testing.assert_array_equal(transposed(x)[0], want)


@settings(max_examples=a_third(200), deadline=None)
@given(st.data())
def test_reads_are_those_of_numpy(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(indices(shape))
    check(
        lambda x: np.asarray(x[plain(index)]) if isinstance(x, np.ndarray) else x[index],
        lambda x: x[plain(index)],
        shape,
    )


@settings(max_examples=a_third(200), deadline=None)
@given(st.data())
def test_programs_that_write_are_those_of_numpy(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    steps = [
        (data.draw(st.sampled_from(["set", "add", "scale", "view", "at"])), data.draw(indices(shape)))
        for _ in range(data.draw(st.integers(1, 3)))
    ]

    def run(x: Any, find: Callable[[Any], Any]) -> Any:
        target = np.copy(x * 2.0)
        for number, (kind, index) in enumerate(steps):
            key = find(index)
            if kind == "set":
                target[key] = target[key] * 3.0 - number * x.sum()
            elif kind == "add":
                target[key] += x.sum()
            elif kind == "scale":
                target[key] *= 0.5
            elif kind == "at":
                np.add.at(target, key, 2.0 * x.sum())
            else:
                part = target[key]
                part[...] = part * 2.0 + x.sum()
        return target

    def views_of_scalars() -> bool:
        """Tell whether a step writes through a view of, or into, a value without axes: that is a scalar, not a view."""
        for index in [index for kind, index in steps if kind == "view"]:
            try:
                part = np.zeros(shape)[plain(index)]
            except IndexError:
                return False
            if not shape or not isinstance(part, np.ndarray):
                return True
        return False

    if not views_of_scalars():
        check(lambda x: run(x, lambda i: i), lambda x: run(x, plain), shape)


@settings(max_examples=a_third(100), deadline=None)
@given(st.data())
def test_assigned_values_broadcast_and_receive_gradients(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(indices(shape))
    try:
        part = np.zeros(shape)[plain(index)].shape
    except IndexError:
        return
    kept = part[data.draw(st.integers(0, len(part))) :]
    lengths = tuple(1 if n != 1 and data.draw(st.booleans()) else n for n in kept)

    def program(value: Any, find: Callable[[Any], Any]) -> Any:
        target = wnp.ones(shape) if isinstance(value, wg.Tensor) else np.ones(shape)
        target = np.copy(target * value.sum())
        target[find(index)] = value
        return target

    check(lambda v: program(v, lambda i: i), lambda v: program(v, plain), lengths)


# Examples


def test_an_index_may_be_a_list_of_tensors() -> None:
    x = wg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x[[wg.tensor(1), 0]].tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert x[wg.tensor([1, 0]), wg.tensor(1)].tolist() == [4.0, 2.0]


def test_a_list_with_tensors_may_be_assigned() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y[:] = [x[1] * 3, 7.0]
    y.sum().backward()
    assert y.tolist() == [6.0, 7.0]
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 3.0]


def test_the_last_of_repeated_writes_receives_the_gradient() -> None:
    def program(v: Any) -> Any:
        y = wnp.zeros(3)
        y[[1, 1, 2]] = v
        return np.sum(y)

    assert wg.grad(program)(np.array([1.0, 2.0, 3.0])).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (5, "index 5 is out of bounds for axis 0 with size 2"),
        ((0, 7), "index 7 is out of bounds for axis 1 with size 3"),
        ((0, 0, 0), "too many indices for array"),
        (1.5, "only integers, slices"),
        ([0.5], "arrays used as indices must be of integer"),
        (wg.tensor([0.5]), "arrays used as indices must be of integer"),
        (np.array([True, False, True]), "boolean index did not match"),
        ("a", "only integers, slices"),
        ((..., ...), "single ellipsis"),
    ],
)
def test_wrong_indices_are_index_errors(index: Any, text: str) -> None:
    for x in (wg.tensor(np.zeros((2, 3))), wg.tensor(np.zeros((2, 3)), requires_grad=True) * 1):
        with pytest.raises(IndexError, match=text):
            x[index]
        with pytest.raises(IndexError, match=text):
            x[index] = 1.0


def test_out_of_range_flat_indices_are_index_errors() -> None:
    x = wg.tensor([1.0, 2.0])
    with pytest.raises(IndexError, match=r"^put: index 2 for 2 elements; indices inside the array are needed"):
        np.put(x, [0, 2], 1.0)
    with pytest.raises(IndexError, match=r"^choose: index -1 for 2 elements"):
        np.choose(wg.tensor([0, -1]), [x, x])
    with pytest.raises(IndexError, match=r"^take: indices of dtype float64; integers are needed"):
        np.take(x, [0.5])


@pytest.mark.parametrize("dtype", ["u8", "f4", "c16", "u4", "i1", "?"])
def test_numbers_of_choices_are_of_dtypes_that_numpy_takes(dtype: str) -> None:
    numbers, choices = np.array([1, 0, 1]).astype(dtype), [np.arange(3.0), -np.arange(3.0)]
    for mode, how in itertools.product(("raise", "wrap", "clip"), (lambda f: f, wg.jit, wg.vmap)):

        def choose(k: Any, mode: Any = mode) -> Any:
            return np.choose(k, choices, mode=mode)

        given = wg.tensor(numbers[None] if how is wg.vmap else numbers)
        if np.can_cast(dtype, np.intp, "safe"):
            np.testing.assert_array_equal(how(choose)(given), choose(numbers[None] if how is wg.vmap else numbers))
        else:
            with pytest.raises(TypeError, match=f"numbers of dtype {numbers.dtype}"):
                how(choose)(given)


@pytest.mark.parametrize(
    "write",
    [
        lambda a, x: np.copyto(a, x),
        lambda a, x: np.put(a, [0, 1], x),
        lambda a, x: np.place(a, [True, True], x),
        lambda a, x: np.putmask(a, [True, True], x),
        lambda a, x: np.add.at(a, [0, 1], x),
        lambda a, x: a.__setitem__(slice(2), x),
    ],
)
def test_writing_a_recorded_tensor_into_an_ndarray_is_an_error(write: Callable[[Any, Any], Any]) -> None:
    array = np.zeros(2)
    with pytest.raises(wg.errors.GraphError, match="detach"):
        write(array, wg.tensor([1.0, 2.0], requires_grad=True))
    assert not array.any()


# Filling an array element by element is linear in its length: counted in bytes that are copied


class Bytes:
    """Stand for NumPy in a module, and count the bytes of the arrays that it makes."""

    def __init__(self) -> None:
        self.made = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name not in ("array", "zeros", "where", "full", "copy"):
            return found

        def counting(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            self.made += result.nbytes
            return result

        return counting


def bytes_of(program: Program, n: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the bytes that recording and sweeping a program copies."""
    counter = Bytes()
    with monkeypatch.context() as patch:
        patch.setattr("wengert.primitives.indexing.parts.np", counter)
        patch.setattr("wengert.traces.cotangents.np", counter)
        program(n)
    return counter.made


def fill(n: int) -> None:
    x = wg.tensor(np.arange(n) * 1.0, requires_grad=True)
    y = wnp.zeros(n)
    for i in range(n):
        y[i] = x[i] * 2
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0] * n


def recur(n: int) -> None:
    x = wg.tensor(1.0, requires_grad=True)
    y = wnp.zeros(n)
    y[0] = x
    for i in range(1, n):
        y[i] = y[i - 1] * 1.0 + x
    y[-1].backward()
    assert x.grad is not None
    assert x.grad.item() == n


def scatter(n: int) -> None:
    x = wg.tensor(np.ones(n), requires_grad=True)
    y = wnp.zeros(n)
    for i in range(n):
        np.add.at(y, [i, i], x[[i, i]])
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0] * n


def fill_in_grad(n: int) -> None:
    def program(x: Any) -> Any:
        y = wnp.zeros(n)
        for i in range(n):
            y[i] = x[i] * x[i]
        return y.sum()

    assert wg.grad(program)(np.ones(n)).tolist() == [2.0] * n


def fill_twice_differentiated(n: int) -> None:
    def program(x: Any) -> Any:
        y = wnp.zeros(n)
        for i in range(n):
            y[i] = x[i] * x[i]
        return y.sum()

    assert wg.grad(lambda x: wg.grad(program)(x).sum())(np.ones(n)).tolist() == [2.0] * n


@pytest.mark.parametrize("program", [fill, recur, scatter, fill_in_grad, fill_twice_differentiated])
def test_filling_element_by_element_is_linear(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = (bytes_of(program, n, monkeypatch) for n in (100, 400))
    assert long <= 5 * max(short, 1000)


# Ties, choices and creation


@pytest.mark.parametrize(
    ("x", "low", "high", "gradients"),
    [
        (0.0, 0.0, 1.0, (0.5, 0.5, 0.0)),
        (1.0, 0.0, 1.0, (0.5, 0.0, 0.5)),
        (0.5, 0.0, 1.0, (1.0, 0.0, 0.0)),
        (-1.0, 0.0, 1.0, (0.0, 1.0, 0.0)),
        (2.0, 0.0, 1.0, (0.0, 0.0, 1.0)),
        (0.5, 1.0, 0.0, (0.0, 0.0, 1.0)),
    ],
)
def test_clip_shares_ties(x: float, low: float, high: float, gradients: tuple[float, ...]) -> None:
    assert wg.grad(np.clip, (0, 1, 2))(x, low, high) == gradients
    composed = wg.grad(lambda x, low, high: np.minimum(np.maximum(x, low), high), (0, 1, 2))(x, low, high)
    assert composed == gradients


@together("dtype", [np.uint8, np.int16, np.uint64, np.int64])
def test_rows_get_their_terms_in_order_whatever_the_places_are(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    places, ct = rng.integers(0, 200, 700).astype(dtype), rng.normal(size=(700, 40))
    expected = np.zeros((200, 40))
    np.add.at(expected, places, ct)
    np.testing.assert_array_equal(wg.vjp(lambda x: x[places], np.zeros((200, 40)))[1](ct)[0], expected)


@together("axis", [0, 1])
@together("equal", [False, True])
def test_many_elements_send_back_what_they_got_by_a_sort(equal: bool, axis: int) -> None:
    x = np.random.default_rng(0).normal(size=(60, 70))
    if equal:
        x = np.round(x, 1)
        x[3, 5:9] = np.nan
    ct, u = np.random.default_rng(1).normal(size=(2, *x.shape))
    order = np.argsort(x, axis=axis, kind="stable")
    expected = np.empty(x.shape)
    np.put_along_axis(expected, order, ct, axis)
    sort = lambda x: np.sort(x, axis=axis)
    np.testing.assert_array_equal(wg.vjp(sort, x)[1](ct)[0], expected)
    moved = wg.jvp(sort, (x,), (u,))[1]
    np.testing.assert_array_equal(wg.grad(lambda ct: np.sum(wg.vjp(sort, x)[1](ct)[0] * u))(ct), moved)
    np.testing.assert_array_equal(moved, np.take_along_axis(u, order, axis))
    t = wg.tensor(x, requires_grad=True)
    (found,) = wg.autograd.grad(np.sort(t, axis=axis), t, wg.tensor(ct), create_graph=True)
    np.testing.assert_array_equal(found, expected)
    largest = wg.grad(lambda row: np.sort(row)[5:].sum())
    np.testing.assert_array_equal(wg.vmap(largest)(x), np.stack(list(map(largest, x))))


def test_equal_elements_keep_their_order_in_a_sort() -> None:
    _, pullback = wg.vjp(np.sort, np.array([1.0, 0.0, 1.0]))
    assert pullback(np.array([1.0, 10.0, 100.0]))[0].tolist() == [10.0, 1.0, 100.0]


def test_arrays_keep_the_gradients_of_tensors_in_nested_lists() -> None:
    def program(x: Any, y: Any) -> Any:
        return wnp.sum(wnp.array([[x, y * 2], [1.0, x * y]]) * wnp.array([[1.0, 10.0], [100.0, 1000.0]]))

    assert wg.grad(program, (0, 1))(2.0, 3.0) == (3001.0, 2020.0)


def test_array_copies_and_asarray_does_not_write_back() -> None:
    data = np.arange(3.0)
    for make in (wnp.array, wnp.asarray):
        made = make(data)
        made[0] = 9.0
        assert made.tolist() == [9.0, 1.0, 2.0]
    assert data[0] == 0.0


@together(
    "make",
    [
        lambda np_: np_.zeros((2, 3)),
        lambda np_: np_.ones(2, dtype=np.float32),
        lambda np_: np_.full((2, 2), 3),
        lambda np_: np_.eye(3, k=1),
        lambda np_: np_.identity(2),
        lambda np_: np_.tri(3),
        lambda np_: np_.arange(1, 7, 2),
        lambda np_: np_.arange(0.1, 1.0, 0.3),
        lambda np_: np_.linspace(0, 1, 7),
        lambda np_: np_.linspace(0, 10, 4, dtype=int),
        lambda np_: np_.logspace(0, 1, 4),
        lambda np_: np_.geomspace(1, 100, 4),
        lambda np_: np_.geomspace(-1, -100, 4, endpoint=False),
        lambda np_: np_.array([[1, 2], [3, 4]], dtype=float, ndmin=3),
        lambda np_: np_.asarray([1.0, 2.0]),
        lambda np_: np_.fromfunction(lambda i, j: i + 2 * j, (2, 3)),
        lambda np_: np_.indices((2, 3)),
        lambda np_: np_.ix_([0, 2], [1])[0],
        lambda np_: np_.tril_indices(3)[1],
        lambda np_: np_.diag_indices(3)[0],
    ],
)
def test_created_arrays_are_those_of_numpy(make: Callable[[Any], Any]) -> None:
    made, want = make(wnp), make(np)
    assert isinstance(made, wg.Tensor)
    assert made.dtype == want.dtype
    np.testing.assert_array_equal(made.numpy(), want, strict=True)


def test_evenly_spaced_numbers_are_differentiable_in_their_ends() -> None:
    start, stop, step = (wg.tensor(v, requires_grad=True) for v in (0.5, 2.0, 0.25))
    np.testing.assert_array_equal(wnp.arange(start, stop, step).detach().numpy(), np.arange(0.5, 2.0, 0.25))
    assert [g.item() for g in wg.autograd.grad(wnp.arange(start, 2.0, step).sum(), [start, step])] == [6.0, 15.0]
    found = wg.autograd.grad(wnp.geomspace(start, stop, 3)[1], [start, stop])
    np.testing.assert_allclose([g.item() for g in found], [1.0, 0.25])


def test_gradients_follow_distinct_elements_to_where_they_occur_first() -> None:
    gradient = wg.grad(lambda x: np.sum(np.unique(x) * np.array([1.0, 10.0])))(np.array([2.0, 1.0, 2.0]))
    assert gradient.tolist() == [10.0, 1.0, 0.0]


def test_masked_second_derivatives_are_not_nan() -> None:
    def second(function: Program) -> Any:
        return wg.elementwise_grad(wg.elementwise_grad(function))(np.array([0.0, 1.0, -1.0]))

    with np.errstate(all="ignore"):
        assert second(lambda x: np.where(x > 0, np.sqrt(x), 0)).tolist() == [0.0, -0.25, 0.0]
        assert second(lambda x: np.where(x > 0, np.log(x), 0)).tolist() == [0.0, -1.0, 0.0]
        assert second(lambda x: np.where(x != 0, 1 / x, 0)).tolist() == [0.0, 2.0, -2.0]
        assert second(lambda x: x**2).tolist() == [2.0, 2.0, 2.0]
        assert second(lambda x: x ** np.array([2.0, 3.0, 1.0])).tolist() == [2.0, 6.0, 0.0]
        np.testing.assert_allclose(second(np.sinc), [-(np.pi**2) / 3, 2.0, 2.0])


@together(
    "shape, axis, count",
    [
        *(((90, 40), 0, 70), ((3, 50, 30), 1, 40), ((5, 6, 90), 2, 80), ((70, 40), 0, 1), ((4, 900), 0, 9)),
        *(((6, 700), 0, 200), ((9, 2, 3), 0, 300), ((40, 1), 0, 900)),
    ],
)
def test_gradients_of_picked_rows_have_the_bits_of_adding_element_by_element(shape, axis, count):
    rng = np.random.default_rng(count)
    places = rng.integers(-shape[axis], shape[axis], count)
    for chosen in (places, np.arange(count), np.full(count, -1)):
        key = (slice(None),) * axis + (chosen % shape[axis] - shape[axis],)
        ct = rng.normal(size=np.empty(shape)[key].shape) * 10.0 ** rng.integers(-9, 9, shape[-1] if axis < 2 else 1)
        wanted = np.zeros(shape)
        np.add.at(wanted, key, ct)
        np.testing.assert_array_equal(wg.vjp(lambda x, key=key: x[key], np.ones(shape))[1](ct)[0], wanted)
        x = wg.tensor(np.ones(shape), requires_grad=True)
        x[key].backward(ct)
        np.testing.assert_array_equal(x.grad, wanted)
        total = wg.tensor(np.zeros(shape))
        np.add.at(total, key, wg.tensor(ct))
        np.testing.assert_array_equal(total, wanted)


@together("rest", [(), (slice(None),), (slice(2, 9),), (slice(None, None, -1),), (slice(None, None, 3),)])
@together("kind", ["int8", "uint8", "uint64", "int64"])
@together("dtype", ["float32", "complex128"])
def test_rows_are_added_whatever_the_index_and_the_rest_of_it_are(rest: Any, kind: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    places = rng.integers(0, 120, 300).astype(kind)
    if kind.startswith("int"):
        places -= np.array(100, kind)
    shape, key = (201, 20), (places, *rest)
    for base in (np.ones(shape, dtype), np.asfortranarray(np.ones(shape, dtype)), np.ones((402, 20), dtype)[::2]):
        ct = rng.normal(size=base[key].shape).astype(dtype)
        wanted = np.zeros(shape, dtype)
        np.add.at(wanted, key, ct)
        np.testing.assert_array_equal(wg.vjp(lambda x: x[key], base)[1](ct)[0], wanted)
        total = wg.tensor(base * 0)
        np.add.at(total, key, wg.tensor(ct))
        np.testing.assert_array_equal(total, wanted)
        with pytest.raises(IndexError):
            np.add.at(total, (np.full(300, 201), *rest), wg.tensor(ct))


def test_one_index_that_is_traced_or_differs_between_lanes() -> None:
    x = np.arange(12.0).reshape(3, 4) ** 2
    for axis in (None, 0, 1, -1):
        want = np.take(x, 2, axis)

        def taken(x: Any, i: Any, axis: Any = axis) -> Any:
            return np.take(x, i, axis)

        assert np.array_equal(wg.jit(taken)(x, 2), want)
        assert np.array_equal(wg.vmap(taken, in_axes=(None, 0))(wg.asarray(x), np.array([0, 2]))[1], want)
        slope = wg.grad(lambda x, i, taken=taken: np.sum(taken(x, i) ** 2))
        assert np.array_equal(wg.jit(slope)(x, 2), slope(x, 2))
    assert wg.jit(lambda x, i: x.take(i, mode="wrap"))(x, -13) == x.take(-13, mode="wrap")


@together("axis", [None, 0, 1, -1])
@together("shift", [2, -5, 0, 13])
def test_rolls_by_a_shift_that_is_traced_or_differs_between_lanes(shift: int, axis: int | None) -> None:
    x = np.arange(12.0).reshape(3, 4)
    want = np.roll(x, shift, axis)

    def moved(x: Any, by: Any) -> Any:
        return np.roll(x, by, axis)

    assert np.array_equal(wg.jit(moved)(x, shift), want)
    assert np.array_equal(wg.vmap(moved, in_axes=(None, 0))(wg.asarray(x), np.array([1, shift]))[1], want)
    slope = wg.jit(wg.grad(lambda x, by: np.sum(moved(x, by) * x)))(x, shift)
    assert np.array_equal(slope, want + np.roll(x, -shift, axis))
    assert wg.jit(moved)(np.zeros((0, 0)), shift).shape == (0, 0)


@pytest.mark.parametrize(
    ("axis", "values"), [(None, 7.0), (0, [1.0, 2.0, 3.0, 4.0]), (1, 7.0), (-1, [[1.0] * 3, [2.0] * 3])]
)
def test_inserts_and_deletes_at_a_place_that_is_traced_or_differs_between_lanes(axis: Any, values: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    length = x.size if axis is None else x.shape[axis]

    def inserted(x: Any, i: Any) -> Any:
        return np.insert(x, i, values, axis)

    def deleted(x: Any, i: Any) -> Any:
        return np.delete(x, i, axis)

    for function, places in ((inserted, range(-length, length + 1)), (deleted, range(-length, length))):
        jitted, slope = wg.jit(function), wg.grad(lambda x, i, f=function: np.sum(f(x, i) ** 2 * f(x, i)))
        for i in places:
            assert np.array_equal(jitted(x, i), function(x, i))
        assert np.array_equal(wg.jit(slope)(x, 2), slope(x, 2))
        lanes = wg.vmap(function, in_axes=(None, 0))(wg.asarray(x), np.array([0, -1]))
        assert np.array_equal(lanes[1], function(x, -1))
        for outside in (places[-1] + 1, -length - 1, 3 * length):
            with pytest.raises(IndexError):
                jitted(x, outside)


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
@pytest.mark.parametrize(
    ("shape", "picked"), [((5,), (8,)), ((4, 3), (8, 3)), ((4, 3), (8, 1)), ((4,), ()), ((4,), (0,))]
)
def test_greatest_at_places_that_are_traced_or_differ_between_lanes(ufunc: Any, shape: Any, picked: Any) -> None:
    rng = np.random.default_rng(0)
    a, places, values = rng.normal(size=shape), rng.integers(0, 4, picked[:1] or 3), rng.normal(size=picked)
    weights = rng.normal(size=shape)

    def found(a: Any, places: Any, values: Any) -> Any:
        a = wg.numpy.array(a)
        ufunc.at(a[::-1], places, values)
        return a

    def f(a: Any, places: Any, values: Any) -> Any:
        return np.sum(found(a, places, values) ** 2 * weights)

    want, slopes = a.copy(), wg.grad(f, argnums=(0, 2))
    ufunc.at(want[::-1], places, values)
    np.testing.assert_array_equal(wg.jit(found)(a, places, values), want)
    both = np.stack([places, places[::-1]])
    np.testing.assert_array_equal(wg.vmap(found, in_axes=(None, 0, None))(a, both, values)[0], want)
    for traced in (
        wg.jit(slopes),
        lambda *x: [y[0] for y in wg.vmap(slopes, in_axes=(None, 0, None))(x[0], both, x[2])],
    ):
        for one, other in zip(traced(a, places, values), slopes(a, places, values), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_])
def test_greatest_at_traced_places_of_integers_and_beside_nan(dtype: Any) -> None:
    places = np.array([0, 1, 1, 2])
    for ufunc in (np.maximum, np.minimum):
        cases = [(np.array([1, 0, 1], dtype), np.array([0, 5, 1, 0], dtype))]
        cases.append((np.zeros(3), np.array([1.0, np.nan, 2.0, np.nan])))
        for a, values in cases:
            want = a.copy()
            with np.errstate(invalid="ignore"):
                ufunc.at(want, places, values)
                found = wg.jit(lambda a, i, x, at=ufunc.at: (at(a, i, x), a)[1])(a, places, values)
            np.testing.assert_array_equal(found, want, strict=True)


def test_ties_of_greatest_at_places_share_the_derivative_in_every_mode() -> None:
    places = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    a, x = np.array([-np.inf, 2.0, 0.0, 5.0]), np.array([1.0, 3, 3, 3, 2, 2, np.nan, 0.0])
    wanted = [0.0, 1.0, 0.0, 1.0], [0.0, 1 / 3, 1 / 3, 1 / 3, 0.0, 0.0, 0.0, 0.0]
    wanted[0][1] = wanted[1][4] = wanted[1][5] = 1 / 3

    def f(a: Any, x: Any, places: Any) -> Any:
        found = wg.numpy.array(a)
        np.maximum.at(found, places, x)
        return np.sum(found[[0, 1, 3]])

    with np.errstate(invalid="ignore"):  # of NaN, as NumPy warns
        slope: Any = wg.grad(f, (0, 1))
        lanes = wg.vmap(slope, (0, 0, None))(a[None], x[None], places)
        each = wg.vmap(slope, (0, 0, 0))(a[None], x[None], places[None])
        for found in (
            slope(a, x, places),
            wg.jit(slope)(a, x, places),
            wg.jit(lambda a, x: slope(a, x, places))(a, x),
            [y[0] for y in lanes],
            [y[0] for y in each],
            [wg.jacfwd(lambda a: f(a, x, places))(a), wg.jacfwd(lambda x: f(a, x, places))(x)],
        ):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-15)
        negated = wg.grad(lambda x: (lambda y: (np.minimum.at(y, places, x), y[0] ** 2)[1])(wg.numpy.zeros(4)))
        np.testing.assert_allclose(negated(-x), [0, -2, -2, -2, 0, 0, 0, 0])


def test_greatest_at_one_place_of_many_is_one_operation() -> None:
    def f(x: Any) -> Any:
        found = wg.numpy.full((2,), -np.inf)
        np.maximum.at(found, np.zeros(1000, int), x)
        return found[0]

    assert len(trace(f)(np.ones(1000)).equations) < 10


def test_greatest_at_places_takes_dtypes_as_numpy_does() -> None:
    x = wg.tensor(np.ones(2, np.float32), requires_grad=True)
    y = x * 1
    np.maximum.at(y, [0, 0], wg.tensor([2.1, 0.1], requires_grad=True))
    y.sum().backward()
    assert y.dtype == np.float32
    assert x.grad is not None
    assert x.grad.numpy().tolist() == [0.0, 1.0]
    whole, wanted = wg.tensor([1, -2]), np.array([1, -2])
    for target in (whole, wanted):
        np.maximum.at(target, [0, 0, 1], np.array([2.7, 0.5, -1.5]))
    np.testing.assert_array_equal(whole, wanted, strict=True)


def test_several_traced_places_are_refused() -> None:
    with pytest.raises(TracedTruthError, match="static_argnums"):
        wg.jit(lambda x, i: np.delete(x, i))(np.ones(4), np.array([0, 2]))


def test_rolls_of_arrays_in_another_order_need_a_shift_that_is_known() -> None:
    with pytest.raises(TracedTruthError, match="static_argnums"):
        wg.jit(lambda x, by: np.roll(x, by, 0))(np.ones((2, 3), order="F"), 1)


def test_put_leaves_a_scalar_as_it_is() -> None:
    for found in (wg.tensor([1.0, 2.0], requires_grad=True) @ np.ones(2), wg.tensor([1.0, 2.0]).sum()):
        np.put(found, 0, 0.5)
        assert found.item() == 3.0  # as NumPy's, which is no array
    array = wg.tensor(3.0)
    np.put(array, 0, 0.5)
    assert array.item() == 0.5


def test_long_tables_of_places_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compile import codegen

    generator = np.random.default_rng(0)
    x, at = generator.normal(size=5000), generator.integers(-5000, 5000, 9000)

    def picked(x: Any) -> Any:
        return np.sum(np.sin(x[at]) * x[at])

    kept: list[str] = []
    monkeypatch.setattr(codegen, "put", lambda _cache, text, *_: kept.append(text))
    monkeypatch.setattr(codegen, "MOST_CONSTANT", at.nbytes - 1)
    compiled = wg.jit(wg.value_and_grad(picked), native=True)
    for point in (x, 2.0 * x):
        value, gradient = compiled(point)
        whole = np.zeros_like(x)
        np.add.at(whole, at, np.cos(point[at]) * point[at] + np.sin(point[at]))
        np.testing.assert_allclose(value, picked(point), rtol=1e-12)
        np.testing.assert_allclose(gradient, whole, rtol=1e-12, atol=1e-12)
    assert not [text for text in kept if "graph" in text]  # which are two copies of so many constants
