"""Values that are assigned to parts: what does not fit is an error as in NumPy, in lanes and while tracing too."""

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.support import config

X = np.array([[0.5, 2.0, 1.0], [3.0, 0.1, 0.2]])
CALLS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda f: f(wg.tensor(X[0])),
    "grad": lambda f: wg.grad(lambda x: f(x)[0].sum())(X[0]),
    "jvp": lambda f: wg.jvp(f, (X[0],), (X[0],)),
    "jit": lambda f: wg.jit(f)(X[0]),
    "vmap": lambda f: wg.vmap(f)(X),
    "vmap of vmap": lambda f: wg.vmap(wg.vmap(f))(np.stack([X, X])),
    "vmap of jvp": lambda f: wg.vmap(lambda x: wg.jvp(f, (x,), (x,)))(X),
    "vmap of jit": lambda f: wg.vmap(wg.jit(f))(X),
    "jit of vmap": lambda f: wg.jit(wg.vmap(f))(X),
}
COLUMN = np.array([[10.0], [20.0]])


def put(index: Any, value_of: Any, path: Callable[[Any], Any] = lambda y: y) -> Callable[[Any], Any]:
    """Return a program that assigns to part of a vector, and one that does so to part of a matrix."""

    def program(v: Any) -> Any:
        y = v * 1
        path(y)[index] = value_of(v) if callable(value_of) else value_of
        return y, v

    return program


def put_row(index: Any, value_of: Any) -> Callable[[Any], Any]:
    """Return a program that assigns to part of a matrix with two rows."""

    def program(v: Any) -> Any:
        m = v * np.ones((2, 1))
        m[index] = value_of(v) if callable(value_of) else value_of
        return m, v

    return program


def copied_to(v: Any) -> Any:
    """Copy what has an axis too many."""
    y = v * 1
    np.copyto(y, COLUMN)
    return y, v


def flat(v: Any) -> Any:
    """Assign two numbers to one element."""
    y = v * 1
    y.flat[0] = np.array([10.0, 20.0])
    return y, v


DO_NOT_FIT = {
    "a list for an element": put(0, [10.0, 20.0]),
    "an array for an element": put(0, np.array([10.0, 20.0])),
    "one number in an array for an element": put(0, lambda v: v[:1]),
    "two numbers for an element": put(0, lambda v: v[:2]),
    "an array for an element without axes": put((0, ...), np.array([10.0, 20.0])),
    "an array for an element at a traced place": put(np.array(1), lambda v: v[:1]),
    "rows for a vector": put(slice(None), COLUMN),
    "a nested list for a vector": put(slice(None), [[1.0, 2.0, 3.0]]),
    "rows for places": put([0, 1], COLUMN),
    "rows for a reversed part": put(slice(2), COLUMN, lambda y: y[::-1]),
    "rows for a mask": put(np.array([True, False, True]), COLUMN),
    "a matrix with axes in front for a mask": put(np.array([True, False, True]), np.ones((1, 2))),
    "rows for a row": put_row(0, COLUMN),
    "a column of each lane for a row": put_row(0, lambda v: v[:2, None]),
    "rows for a column": put_row((slice(None), [0, 1]), np.ones((2, 1, 2))),
    "copyto": copied_to,
    "flat": flat,
}


@pytest.mark.parametrize("mode", CALLS)
@together("name", DO_NOT_FIT)
def test_values_that_do_not_fit_are_errors_as_in_numpy(name: str, mode: str) -> None:
    program = DO_NOT_FIT[name]
    with pytest.raises((ValueError, TypeError)):
        program(X[0])
    with pytest.raises((ValueError, TypeError), match=r"assignment|array element|broadcast|boolean array indexing"):
        CALLS[mode](program)


def test_the_error_is_about_one_lane() -> None:
    with pytest.raises(ValueError, match=r"from shape \(2,1\) into shape \(3,\)"):
        wg.vmap(put_row(0, COLUMN))(X)
    with pytest.raises(ValueError, match=r"from shape \(2,\) into shape \(3,\)"):
        wg.vmap(put_row(0, lambda v: v[:2]))(X)


FIT = {
    "axes of length one in front": put(slice(None), np.array([[[7.0, 8.0, 9.0]]])),
    "the same of each lane": put(slice(None), lambda v: 2 * v[None, None]),
    "for an element without axes": put((0, ...), lambda v: v[:1]),
    "rows of one": put_row(0, np.array([[7.0]])),
    "for places": put([0, 2], np.array([[7.0, 8.0]])),
    "for places of a column": put_row((slice(None), [0, 1]), np.array([[[7.0, 8.0], [1.0, 2.0]]])),
    "NumPy's complex zero": put(0, np.complex64(0).real),
}


@together("mode", ["plain", "jit", "vmap", "vmap of jit", "jit of vmap"])
@together("name", FIT)
def test_axes_of_length_one_in_front_are_left_out(name: str, mode: str) -> None:
    program = FIT[name]
    found, _ = CALLS[mode](program)
    np.testing.assert_array_equal(np.asarray(found) if mode in ("plain", "jit") else found[0], program(X[0])[0])


def test_what_is_too_deep_is_named() -> None:
    y = wg.tensor([1.0, 2.0])
    with pytest.raises(wg.errors.ShapeError) as caught:
        y[0:1] = [[2.0]]
    assert str(caught.value) == (
        "assignment: nested lists of shape (1, 1) for a part with 1 axes; lists no deeper than the part are needed. "
        "Make them an array first, or leave out the outer brackets."
    )
    with pytest.raises(wg.errors.ShapeError) as caught:
        y.fill([1.0, 2.0])
    assert str(caught.value) == ("fill: a value of shape (2,); one number is needed. Assign it: x[...] = value.")


COMPLEX = {
    "a number": put(0, 1j),
    "a number for a slice": put(slice(1), 1j),
    "a list": put(slice(1), [1j]),
    "at places": put([0, 1], [1.0, 1j]),
    "an array of objects": put(slice(1), np.array([1j], dtype=object)),
}
WRITES = {
    "fill": lambda y: y.fill(1j),
    "put": lambda y: np.put(y, [0], [[1j]]),
    "place": lambda y: np.place(y, [True, False, True], [1j]),
    "putmask": lambda y: np.putmask(y, [True, False, True], 1j),
    "put_along_axis": lambda y: np.put_along_axis(y, np.array([0]), 1j, 0),
}


def by_function(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a program that lets a function of NumPy's write."""

    def program(v: Any) -> Any:
        y = v * 1
        write(y)
        return y, v

    return program


@pytest.mark.parametrize("mode", CALLS)
@together("name", [*COMPLEX, *WRITES])
def test_pythons_complex_numbers_do_not_fit_real_arrays(name: str, mode: str) -> None:
    program = COMPLEX[name] if name in COMPLEX else by_function(WRITES[name])
    with pytest.raises(TypeError):
        program(X[0])
    with pytest.raises(wg.errors.DtypeError) as caught:
        CALLS[mode](program)
    assert str(caught.value) == (
        "assignment: a complex number for a Tensor of dtype float64; a real number is needed. "
        "Take its .real, or convert the Tensor with .astype(complex) first."
    )


def test_a_traced_complex_number_does_not_fit_either() -> None:
    def program(v: Any, c: Any) -> Any:
        y = v * 1
        y[0] = c
        return y

    with pytest.raises(TypeError, match="a complex number for a Tensor of dtype float64"):
        wg.jit(program)(X[0], 1j)


def test_numpys_complex_numbers_lose_their_imaginary_part_with_a_warning() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        found, _ = put(slice(1), np.array([5 + 1j]))(wg.tensor(X[0]))
    assert found[0].item() == 5.0


# Numbers for which whole ones have no room


def changed(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a program that writes to a copy of an array."""

    def program(y: Any, n: Any) -> Any:
        copy = y.copy()
        write(copy, n)
        return copy

    return program


NARROW: dict[str, Callable[[Any, Any], Any]] = {
    "element": changed(lambda y, n: operator.setitem(y, 0, n)),
    "slice": changed(lambda y, n: operator.setitem(y, slice(None), n)),
    "mask": changed(lambda y, n: operator.setitem(y, y > 0, n)),
    "fill": changed(lambda y, n: y.fill(n)),
    "put": changed(lambda y, n: np.put(y, [0, 1], n)),
    "copyto": changed(lambda y, n: np.copyto(y, n)),
    "copyto in any case": changed(lambda y, n: np.copyto(y, n, casting="unsafe")),
    "full": lambda y, n: (wg.numpy if type(y) is wg.Tensor else np).full(3, n, y.dtype),
    "array": lambda y, n: (wg.numpy if type(y) is wg.Tensor else np).array(n, y.dtype),
    "array of a list": lambda y, n: (wg.numpy if type(y) is wg.Tensor else np).array([[n, 1]], y.dtype),
    "full_like": lambda y, n: np.full_like(y, n),
    "insert": lambda y, n: np.insert(y, 1, n),
    "pad": lambda y, n: np.pad(y, 1, constant_values=n),
    "where": lambda y, n: np.where(y > 0, y, n),
    "choices": lambda y, n: np.select([y > 0], [y], n),
    "numbered choices": lambda y, n: np.choose([1, 0, 1], [y, n]),
    "dtype of a ufunc": lambda y, n: np.add(y, n, dtype=y.dtype),
}


def taken(program: Callable[[Any, Any], Any], y: Any, n: Any) -> Any:
    """Return what a program gives, or whether it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what NumPy converts to anything
            found = np.asarray(program(y, n))
    except (TypeError, OverflowError, ValueError):
        return "raises"
    return found.dtype, repr(found.tolist())


@pytest.mark.parametrize("natively", [False, True])
@together("name", NARROW)
def test_numbers_that_whole_ones_have_no_room_for_are_taken_or_refused_as_by_numpy(name, natively, monkeypatch):
    monkeypatch.setattr(config, "NATIVE", natively)
    monkeypatch.setattr(config, "AT_ONCE", natively)
    program = NARROW[name]
    jitted = wg.jit(program)
    for dtype in (np.int8, np.uint8, np.int64, np.uint64):
        y = np.array([1, 0, 1], dtype)
        for n in (5, True, 300, -1, 2.5, 1e30 if dtype != np.uint64 else 3.5, np.nan if dtype != np.uint64 else 1.5):
            want = taken(program, y, n)
            assert taken(lambda y, n: program(wg.tensor(y), n), y, n) == want, (dtype, n)
            assert taken(jitted, y, n) == want, (dtype, n)
