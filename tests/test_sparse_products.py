"""Products with sparse matrices natively: bits of SciPy's in every format, layout and dtype, and loops around them."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import wengert as wg
from tests.cases import together
from tests.guarded_memory import guarded
from tests.test_emission import TARGETS
from wengert.compile.programs import Processor
from wengert.lowering import sparse_steps
from wengert.lowering.partition import partition_graph
from wengert.native.entries import callee
from wengert.native.entries.entry import PythonEntry
from wengert.native.threads.team import team_of
from wengert.passes.pipeline import flatten_calls
from wengert.passes.segments import as_array, as_value
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.primitives.sparse.storage_pattern import NAMES, pattern_of
from wengert.support import config
from wengert.transforms.tracing import trace

RNG = np.random.default_rng(5)
COLUMNS = None, 3, 37
"""Vectors, and matrices whose columns are parts of vectors, tiles of them, and some behind."""


@pytest.fixture
def natively(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile jitted functions at their first call."""
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)


def numbers(shape: Any, dtype: Any) -> Any:
    """Return random numbers of a dtype."""
    found = RNG.normal(size=shape) * 3
    return (found + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else found).astype(dtype)


def random_matrix(format: str, dtype: Any, shape: tuple[int, int] = (23, 17)) -> Any:
    """Return a matrix with empty rows and columns, full ones, and places that are not in order."""
    full = numbers(shape, dtype) * (RNG.uniform(size=shape) < 0.3)
    full[3], full[:, 5], full[7], full[:, 2] = 0, 0, numbers(shape[1], dtype), numbers(shape[0], dtype)
    found = scipy.sparse.coo_array(full)
    order = RNG.permutation(found.nnz)
    if format == "dia":
        offsets = [-4, 2, 0, shape[1] - 1, -3]
        return scipy.sparse.dia_array((numbers((5, shape[1]), dtype), offsets), shape=shape)
    found = scipy.sparse.coo_array((found.data[order], (found.row[order], found.col[order])), shape=shape)
    return found.asformat(format)


def product(a: Any, x: Any) -> Any:
    return a @ x


def transposed(a: Any, x: Any) -> Any:
    return a.T @ x


def carried_out(function: Any, a: Any, x: Any, backend: Processor) -> Any:
    """Return what a program that is all of a function gives."""
    graph = flatten_calls(trace(function)(a, x))
    program = partition_graph(graph).whole
    assert program is not None
    found = backend.compile_program(program)(list(map(as_array, graph.inputs, (a.data, x))))
    assert not any(found[1:])
    return as_value(graph.outputs[0], found[0])


def gradients(a: Any, x: Any) -> Any:
    """Return the gradients of a function of a product by the elements and by the other factor."""
    slope, both = wg.grad(lambda a, x: np.sum(np.abs(a @ x) ** 2), argnums=(0, 1))(a, x)
    return slope.data, both


@pytest.mark.long
@together("format", ["csr", "csc", "coo", "bsr", "dia"])
def test_bits_are_scipys(format: str) -> None:
    for dtype in (np.float64, np.complex64, np.int64):
        a = random_matrix(format, dtype)
        for columns, order in ((None, "C"), (3, "C"), (37, "F")):
            for function, rows in ((product, 17), (transposed, 23)):
                x = np.asarray(numbers((rows, *[columns] * (columns is not None)), dtype), order=order)
                found = carried_out(function, a, x, Processor())
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, function(a, x))


@together("target", TARGETS)
def test_every_processor_and_every_width(target: str) -> None:
    backend = Processor(TARGETS[target])
    for dtype in ("float64", "complex64") if target == "sse2" else ("float32", "complex128"):
        a = random_matrix("csr", dtype)
        for columns in COLUMNS:
            for function, rows in ((product, 17), (transposed, 23)):
                x = numbers((rows, *[columns] * (columns is not None)), dtype)
                np.testing.assert_array_equal(carried_out(function, a, x, backend), function(a, x))


@together("format", ["csr", "csc", "coo", "dia"])
def test_gradients(format: str, natively: None) -> None:
    for dtype, columns in ((np.float64, None), (np.complex128, 5), (np.float32, 19)):
        a = random_matrix(format, dtype)
        x = numbers((17, *[columns] * (columns is not None)), dtype)
        tolerance = 1e-5 if dtype is np.float32 else 1e-13
        for found, want in zip(wg.jit(gradients)(a, x), gradients(a, x), strict=True):
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance * 100)


@together("format", ["csr", "csc", "coo", "bsr", "dia"])
def test_native_calls_compare_index_arrays(format: str, natively: None) -> None:
    functions = lambda a, x: a @ x, wg.grad(lambda a, x: np.sum((a @ x) ** 2))
    product, slope = (wg.jit(function) for function in functions)
    matrix = scipy.sparse.csr_array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 3.0, 0.0]]).asformat(format)
    x = np.array([1.0, 10.0, 100.0])
    found = [(product(a, x), slope(a, x)) for a in (matrix, matrix.copy(), 2.0 * matrix)]
    np.testing.assert_allclose(found[2][0], 2 * found[0][0])
    assert (found[2][1].toarray() == 2 * found[0][1].toarray()).all()
    assert vars(found[2][1]).keys() == vars(found[0][1]).keys()
    assert isinstance(product, PythonEntry) or (product.variants() and slope.variants())
    places = matrix.coords[1] if format == "coo" else getattr(matrix, NAMES[format][0])
    places[0] = 0 if format == "dia" else 2 - places[0]  # the same array, with other places
    for _ in range(3):
        np.testing.assert_allclose(product(matrix, x), matrix @ x)


def test_threads_share_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_steps, "MACHINE", SimpleNamespace(short=50.0))
    a, x = random_matrix("csr", float, (301, 17)), numbers((17, 5), float)
    assert ", parts 16" in str(wg.jit(product).lower(a, x).kernels)
    team = ctypes.c_void_p(team_of(2).address)
    np.testing.assert_array_equal(carried_out(product, a, x, Processor(team=team)), a @ x)


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected by other functions there")
def test_what_lies_beside_arrays_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    a = random_matrix("csr", np.float32)
    for function, rows, columns in ((product, 17, 19), (transposed, 23, 5), (product, 17, 1)):
        x = numbers((rows, columns), np.float32)
        program = partition_graph(flatten_calls(trace(function)(a, x))).whole
        assert program is not None
        want = function(a, x)
        for at_end in (False, True):
            monkeypatch.setattr(callee, "room", lambda size, at_end=at_end: guarded(size, at_end))
            memory = [guarded(y.nbytes, at_end) for y in (a.data, x, want, np.ones(1, bool))]
            for place, y in zip(memory, (a.data, x), strict=False):
                place[...] = y.ravel().view(np.uint8)
            Processor().compile_program(program).callee.call([place.ctypes.data for place in memory])
            assert not memory[3][0]
            np.testing.assert_array_equal(memory[2].view(np.float32).reshape(want.shape), want)


def power(a: Any, x: Any) -> Any:
    """Return the largest eigenvalue by thirty steps of power iteration."""
    for _ in range(30):
        x = a @ x
        x = x / np.sqrt(x @ x)
    return x @ (a @ x)


def conjugate(a: Any, x: Any) -> Any:
    """Return the length of the solution of a system of normal equations, by conjugate gradients."""
    found, r = np.zeros(17), x
    p, size = r, r @ r
    while size > 1e-12:
        q = a.T @ (a @ p) + 100 * p
        step = size / (p @ q)
        found, r = found + step * p, r - step * q
        size, before = r @ r, size
        p = r + size / before * p
    return found @ found


def test_loops_are_native_as_a_whole(natively: None) -> None:
    for function, shape, format in ((power, (17, 17), "dia"), (conjugate, (23, 17), "csc")):
        a, x = random_matrix(format, float, shape), RNG.normal(size=17)
        compiled = wg.jit(wg.value_and_grad(function, argnums=(0, 1)))
        (value, (slope, both)), (want, (first, second)) = (
            compiled(a, x),
            wg.value_and_grad(function, argnums=(0, 1))(a, x),
        )
        np.testing.assert_allclose(value, want, rtol=1e-10)
        for one, other in ((slope.data, first.data), (both, second)):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * np.abs(other).max())
        assert "NumPy" not in str(compiled.lower(a, x).kernels)


def test_lanes_tangents_and_second_gradients(natively: None) -> None:
    a, xs, t = random_matrix("csr", float), RNG.normal(size=(6, 17)), RNG.normal(size=17)
    stack = np.stack([a.data, 2 * a.data, np.sin(a.data)])
    for function, args in (
        (wg.vmap(lambda x: a @ np.sin(x)), (xs,)),
        (wg.vmap(lambda data, x: SparseTensor(pattern_of(a), data) @ x), (stack, xs[:3])),
        (lambda x: wg.jvp(lambda x: np.sum(np.tanh(a @ x)), (x,), (t,))[1], (xs[0],)),
        (wg.hessian(lambda x: np.sum(np.tanh(a @ x))), (xs[0],)),
    ):
        np.testing.assert_allclose(wg.jit(function)(*args), function(*args), rtol=1e-12, atol=1e-12)


def test_indices_outside_are_left_to_scipy() -> None:
    a = random_matrix("csr", float)
    assert pattern_of(a).line_table is not None
    for places in (-1, 17):
        wrong = a.copy()
        wrong.indices[4] = places
        assert pattern_of(wrong).line_table is None
    assert pattern_of(scipy.sparse.csr_array(([1.0], ([1], [1 << 32])), shape=(2, 1 << 33))).line_table is None
