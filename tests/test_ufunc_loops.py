"""NumPy's inner loops on operands and results with gaps: those that go wrong are known, and nothing here meets them."""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import OPTIONS, Failures
from wengert.primitives.accumulations import FAULTY, compute_into

SOURCE = Path(wg.__file__).parent
LENGTHS = (1, 2, 3, 7, 8, 9, 17, 40)
UFUNCS = sorted(
    {u.__name__: u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None}.values(),
    key=lambda u: u.__name__,
)
TOLERANCE = {"e": 2e-2, "f": 1e-4, "F": 1e-4}
"""Loops for operands with gaps may differ in last places."""


def strides_tried(operands: int) -> Iterator[tuple[int, ...]]:
    """Yield elements from one to the next of operands and the result: some, or all to 33."""
    every = OPTIONS.every
    most, few = (33, (0, 1, 4, 8, -1)) if every else (8, (1, 8))
    whole = range(-most, most + 1) if every else (1, 2, 4, 8, -1, -8)
    if operands == 1:
        yield from itertools.product(whole, (s for s in (whole if every else (1, 2, -1, 8)) if s))
        return
    for place in range(operands + 1):
        for rest in itertools.product(few, repeat=operands) if operands == 2 else [(s,) * operands for s in few]:
            for stride in whole:
                strides = (*rest[:place], stride, *rest[place:])
                if strides[-1]:
                    yield strides


def laid(values: np.ndarray, stride: int) -> np.ndarray:
    """Return values with gaps between them, which hold other numbers."""
    if stride == 0:
        return np.broadcast_to(values[:1], values.shape)
    memory = np.resize(values[::-1], len(values) * abs(stride) + 2)
    window = memory[: len(values) * abs(stride) : abs(stride)]
    window = window[::-1] if stride < 0 else window
    window[...] = values
    return window


def numbers(kind: str, n: int) -> np.ndarray:
    """Return numbers that differ, where a dtype has as many, in the domain of most functions, and special ones."""
    generator = np.random.default_rng(n)
    if kind == "?":
        return generator.random(n) < 0.5
    whole = generator.permutation(np.arange(1, n + 1))
    found = whole if kind in "bBhHiIlLqQ" else whole / (n + 3) + (1j * whole[::-1] / n if kind in "FDG" else 0)
    if kind in "efdg" and n > 3:
        found[1::4] *= -1
        found[n // 2], found[0] = np.nan, np.inf
    return found.astype(kind)


def require_right(ufunc: np.ufunc, signature: str) -> None:
    """Fail if a loop gives something else for operands and results with gaps than for those without."""
    kinds, results = signature.split("->")
    layouts = list(dict.fromkeys(strides_tried(len(kinds))))
    for n in LENGTHS if OPTIONS.every else (2, 17):
        values = [numbers(kind, n) for kind in kinds]
        cached = {(i, s): laid(v, s) for i, v in enumerate(values) for s in {k[i] for k in layouts}}
        references: dict[tuple[bool, ...], tuple[np.ndarray, ...]] = {}
        outs: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        for strides in layouts:
            operands = [cached[place] for place in enumerate(strides[:-1])]
            repeated = tuple(s == 0 for s in strides[:-1])
            if repeated not in references:
                expected = ufunc(*(np.array(x) for x in operands), sig=signature)
                references[repeated] = expected if type(expected) is tuple else (expected,)
            step = strides[-1]
            if step not in outs:
                memories = [np.zeros(n * abs(step) + 2, kind) for kind in results]
                outs[step] = [(m, m[: n * abs(step) : abs(step)][:: 1 if step > 0 else -1]) for m in memories]
            ufunc(*operands, out=tuple(window for _, window in outs[step]), sig=signature)
            for (memory, window), reference in zip(outs[step], references[repeated], strict=True):
                if window.tobytes() != reference.tobytes():
                    tolerance = TOLERANCE.get(reference.dtype.char, 1e-9)
                    assert reference.dtype.kind not in "?iu", (strides, n)
                    np.testing.assert_allclose(window, reference, tolerance, tolerance, err_msg=f"{strides} {n}")
                window[...] = 0
                assert not memory.any(), f"{strides} {n}: written where nothing was asked for"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_numpys_loops_are_right_but_for_those_that_are_known() -> None:
    """If this fails, NumPy has another faulty loop: enter it in `FAULTY`, and in the guide about writing."""
    failures = Failures()
    for ufunc in UFUNCS:
        for signature in () if ufunc in FAULTY else ufunc.types:
            if not set(signature) & set("OMm"):
                with failures.of(f"{ufunc.__name__} {signature}"):
                    require_right(ufunc, signature)
    failures.tell()


def test_the_search_finds_what_is_known() -> None:
    """On an operand 4 elements of 32 bits apart, say; a NumPy that has mended it is welcome."""
    x = np.arange(16, dtype="f4")[::4]
    out = np.zeros(8, "f4")
    np.negative(x, out=out[::2])
    if not np.array_equal(out[::2], -x):
        with pytest.raises(AssertionError, match=r"4, 2"):
            require_right(np.negative, "f->f")


@pytest.mark.parametrize("ufunc", sorted(FAULTY, key=lambda u: u.__name__), ids=lambda u: u.__name__)
def test_results_with_gaps_are_right_where_numpy_is_not(ufunc: np.ufunc) -> None:
    """Of `compute_into`, and of NumPy's function and ours where Tensors are written to."""
    for kind, stride, n in itertools.product("fd", (1, 2, 4, 8, 16, 33), (1, 2, 17)):
        base = np.resize(np.array([1.0, -2.0, np.nan, 3.0, -np.inf], kind), (n, stride))
        expected = ufunc(base[:, 0].copy())
        out = np.zeros((n, 2 * stride), expected.dtype)
        compute_into(out[:, :1], ufunc, base[:, :1])
        np.testing.assert_array_equal(out[:, 0], expected)
        for function in (ufunc, getattr(wnp, ufunc.__name__)):
            for x in (wg.tensor(base), 1.0 * wg.tensor(base, requires_grad=True)):
                y = wg.tensor(np.zeros((n, 2 * stride), expected.dtype))
                function(x[:, :1], out=y[:, :1])
                np.testing.assert_array_equal(y.detach().numpy()[:, 0], expected)


@pytest.mark.long
def test_nothing_here_gives_them_results_with_gaps() -> None:
    """All calls with `out=` of those that are faulty go through `compute_into`."""
    has_one = re.compile("|".join(rf"\b{ufunc.__name__}\b" for ufunc in FAULTY)).search
    found = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        calls = [x for x in ast.walk(ast.parse(text)) if isinstance(x, ast.Call)] if has_one(text) else []
        for call in calls:
            writes = len(call.args) > 1 or any(k.arg == "out" for k in call.keywords)
            if isinstance(call.func, ast.Attribute) and has_one(call.func.attr) and writes:
                found.append((path.relative_to(SOURCE).as_posix(), ast.unparse(call)))
    assert found == []


@pytest.mark.parametrize("axis", [0, 1])
def test_diff_is_differentiated_by_lines_of_every_length(axis: int) -> None:
    """NumPy's fault made it wrong at 5 and 9 elements, by when lines lie 4 and 8 apart."""
    for kind, n, lines in itertools.product("fd", range(2, 35), (1, 2, 9)):
        shape = (lines, n) if axis else (n, lines)
        weights = np.arange(1, 1 + lines * (n - 1), dtype=kind).reshape((lines, n - 1) if axis else (n - 1, lines))
        zeros = np.zeros_like(np.take(weights, [0], axis))
        expected = np.concatenate([zeros, weights], axis) - np.concatenate([weights, zeros], axis)
        found = wg.grad(lambda x, w=weights: np.sum(np.diff(x, axis=axis) * w))(np.zeros(shape, kind))
        np.testing.assert_array_equal(found, expected)


def test_running_products_are_differentiated_by_elements_with_gaps() -> None:
    """Their gradient solves a recurrence, whose long lanes are a band matrix that is written to with gaps."""
    generator = np.random.default_rng(0)
    for stride in (*range(1, 10), 16, -4, -8):
        x = generator.uniform(0.9, 1.1, 60 * abs(stride))
        expected = wg.grad(lambda x: np.sum(np.cumprod(x)))(x[::stride].copy())
        found = wg.grad(lambda x, s=stride: np.sum(np.cumprod(x[::s])))(x)[::stride]
        np.testing.assert_allclose(found, expected, 1e-13)
