"""From graphs to kernels: what the kernels of every sample and program compute is what its graph does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import wengert as wg
from tests.cases import OPTIONS, some_of, together
from tests.samples import SAMPLES
from tests.samples.base import Sample
from tests.samples.calls import call_of, float_leaves, leaves_of, random_like
from tests.samples.running import over
from tests.test_composition import DIRECTIONS, POINT, PROGRAMS, TRACED, by_grad, by_jvp
from tools.evaluated_kernels import Call
from tools.evaluated_kernels import evaluate_checked as checked
from tools.special_accuracy import WITHOUT_KERNEL
from wengert import random
from wengert.core.graph.graph import Equation, Graph
from wengert.core.values.aval import Aval
from wengert.errors import GraphError, RangeError
from wengert.kernel.evaluation import Evaluator
from wengert.kernel.grammar import text
from wengert.kernel.kernel import Program, Stage, Switch
from wengert.lowering import kernel_stages
from wengert.lowering.matrix_steps import matrix_routine
from wengert.lowering.partition import partition_graph
from wengert.lowering.rules.lower import is_native, lower
from wengert.passes.pipeline import flatten_calls
from wengert.passes.segments import Segments
from wengert.primitives.special.declaration import OF_SCIPY
from wengert.scipy.special import logsumexp
from wengert.support import config
from wengert.transforms.tracing import trace


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(empty slice|All-NaN|Degrees of freedom)", RuntimeWarning)
        yield


POINTS = np.linspace(0.0, 1.0, 30)


def rolled(x: Any, steps: int) -> Any:
    """Let heat flow around a ring."""
    for _ in iter(range(steps)):  # an iterator, so that it is written out
        x = x + 0.1 * (np.roll(x, 1) + np.roll(x, -1) - 2 * x)
    return np.sum(x * x)


def summed(x: Any, steps: int) -> Any:
    """Add the sum again and again."""
    for _ in iter(range(steps)):  # an iterator, so that it is written out
        x = x * 0.9 + np.sum(x) * 1e-3
    return np.sum(x * x)


def programs_of(segments: Segments) -> list[Program]:
    return [part.program for part in segments.parts if part.program is not None]


def tolerance(dtype: Any) -> float:
    return 1e-5 if dtype in (np.float32, np.complex64) else 1e-12 if dtype.kind in "fc" else 1e-3


def require_same(graph: Graph, args: Sequence[Any], call: Call = checked, least: float = 0.0) -> Segments:
    """Require kernels to compute, as somebody carries them out, what the graph does; return the segments.

    Args:
        graph: what is computed.
        args: of what.
        call: how.
        least: the size of what results are differences of; that of the largest result, if it is larger.
    """
    segments = partition_graph(flatten_calls(graph))
    want = graph(*args)
    found = segments.run(args, call)
    scale = max([least, *(np.abs(b[np.isfinite(b)]).max(initial=0.0) for b in map(np.asarray, want))])
    try:
        for a, b in zip(found, want, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            limit = tolerance(b.dtype)
            np.testing.assert_allclose(a, b, rtol=limit, atol=limit * scale)
    except AssertionError as error:
        error.add_note(str(graph))
        raise
    return segments


# Samples


def value_graph(sample: Sample) -> Graph | None:
    """Return the graph of a sample; None where it looks at elements."""
    call = call_of(sample)
    try:
        return trace(lambda *xs: leaves_of(call(*xs)))(*call.copies())
    except GraphError:
        return None


def gradient_graph(sample: Sample, graph: Graph) -> Graph | None:
    """Return the graph of a sample's gradients for random cotangents; None where it has none."""
    call = call_of(sample)
    cts = [random_like(x) for x in float_leaves(list(graph.outputs))]
    if not call.leaves or not cts:
        return None
    return trace(lambda *xs: list(wg.vjp(lambda *ys: float_leaves(call(*ys)), *xs)[1](cts)))(*call.copies())


@over(SAMPLES, few=True, third=True)
def test_samples_and_their_gradients(sample: Sample) -> None:
    graph = value_graph(sample)
    if graph is None:
        return
    args = call_of(sample).copies()
    require_same(graph, args)
    gradients = gradient_graph(sample, graph)
    if gradients is not None:
        require_same(gradients, args)


NEVER = {name for names in WITHOUT_KERNEL.values() for name in names.split()} | {
    *("laid_as", "log_softmax_product"),
    *(p.name for p in OF_SCIPY.values() if p.outputs > 1),
}
"""Pointwise primitives without kernels, as `docs/special-functions.md` says why, and others of NumPy's."""
ROUTINES = {
    *("partition", "argpartition", "lexsort"),
    "unwrap",
    *("relative_eigh", "relative_eigvalsh", "by_relative_eigenvalues"),
    "in_support",
    *("lu", "scipy_eigh"),
    *("scipy_norm", "logm", "sqrtm", "fractional_matrix_power"),
    *("solve_sylvester", "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_banded", "solve_toeplitz"),
    *("solve_continuous_are", "solve_discrete_are"),
    *("scipy_qr", "fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "real_fourier"),
    "reduceat",
    *("converged", "iterative_solve", "normal_solve", "sparse_lsmr", "sparse_lsqr", "sparse_solve"),
    *("bordered_solve", "sparse_eigh", "sparse_eigvalsh", "exponential_elements", "exponential_product"),
    *("packbits", "unpackbits"),
    *("unravel_index", "array_equal", "array_equiv"),
    *("nonzero", "argwhere", "unique", "bincount", "occurrences"),
    *("random_draws", "convolution", "feedback"),
    "extremes_at",
    *("call", "cond", "while_loop", "scan", "zero_sequence"),
}
"""Primitives that are no loops of independent elements, and what has several results or decides by elements."""


@pytest.mark.long
def test_all_other_primitives_are_lowered() -> None:
    names, lowered = set(), set()
    for sample in SAMPLES:
        if sample.primitive in lowered or (graph := value_graph(sample)) is None:
            continue
        for part in partition_graph(flatten_calls(graph)).parts:
            found = {e.primitive.name for e in part.graph.equations}
            names |= found
            lowered |= found if part.program is not None else set()
    assert names - lowered == (NEVER | ROUTINES) & names


# Programs

WAYS = {
    "value": lambda f: f,
    "gradient": lambda f: wg.grad(f),
    "second derivative": lambda f: wg.grad(by_grad(f, DIRECTIONS[0])),
    "tangent of gradient": lambda f: by_jvp(by_grad(f, DIRECTIONS[0]), DIRECTIONS[1]),
    "lanes": lambda f: lambda x: wg.vmap(f)(x * np.array([[1.0], [0.8]])),
}


@pytest.mark.parametrize("way", WAYS)
def test_programs(way: str) -> None:
    for program in some_of(list(PROGRAMS.values()), way, 2):
        graph = trace(WAYS[way](lambda x, program=program: program(x, TRACED)))(POINT)
        require_same(graph, [POINT])


# Size


def stages_of(segments: Segments) -> list[Stage]:
    return [stage for program in programs_of(segments) for kernel in program.kernels for stage in kernel.stages]


@pytest.mark.parametrize("gradient", [False, True])
def test_long_chains_are_cut_into_stages_of_one_kernel(gradient: bool) -> None:
    def chain(x: Any) -> Any:
        y = x
        for _ in iter(range(300)):  # an iterator, so that it is written out
            y = np.sin(y) * 0.5 + x
        return np.sum(y)

    x = np.linspace(0.0, 1.0, 7)
    segments = require_same(trace(wg.grad(chain) if gradient else chain)(x), [x])
    assert max(len(stage.operations) for stage in stages_of(segments)) < 1500
    (program,) = programs_of(segments)
    assert len(program.kernels) == 1
    assert {buffer.kind for buffer in program.buffers} <= {"input", "output", "row"}


@pytest.mark.parametrize("function", [rolled, summed], ids=["kernels", "stages"])
def test_long_graphs_have_no_kernels_that_grow(function: Callable[[Any, int], Any]) -> None:
    """What each of many kernels, or stages, reads further along a chain is not computed from its beginning by all."""

    def operations(steps: int) -> int:
        gradient = wg.grad(lambda x: function(x, steps))
        programs = programs_of(require_same(flatten_calls(trace(gradient)(POINTS)), [POINTS]))
        return sum(len(s.operations) for p in programs for k in p.kernels for s in k.stages)

    assert operations(40) < 2.5 * operations(20)


def test_what_loops_of_one_stage_share_is_not_stored() -> None:
    """Many loops would each compute it again, but stand in one stage: it is in a register."""
    shared = trace(lambda x: [np.sin(x) * np.cos(x) * k for k in range(2, 20)])(POINTS)
    (program,) = programs_of(require_same(shared, [POINTS]))
    assert {buffer.kind for buffer in program.buffers} == {"input", "output"}


def test_costly_numbers_of_rows_are_computed_a_vector_at_a_time() -> None:
    """The tanh of a layer's sums; not what stages of the row read, nor what costs little, nor few rows."""

    def layer(weights: Any, x: Any) -> Any:
        return np.tanh(weights @ x + 1.0)

    def kernels(function: Callable[..., Any], *xs: Any) -> list[list[tuple[int, ...]]]:
        programs = programs_of(require_same(trace(function)(*xs), list(xs)))
        return [[stage.extents for stage in k.stages] for p in programs for k in p.kernels]

    weights, x = np.linspace(-1.0, 1.0, 144).reshape(16, 9), np.linspace(0.0, 1.0, 9)
    assert kernels(layer, weights, x) == [[(16, 9)], [(1, 16)]]
    assert len(kernels(wg.value_and_grad(lambda w, x: np.sum(layer(w, x)), argnums=(0, 1)), weights, x)) == 1
    assert kernels(lambda w, x: 2.0 * (w @ x), weights, x) == [[(16, 9), (16,)]]
    assert kernels(layer, weights[:7], x) == [[(7, 9), (7,)]]
    assert len(kernels(lambda w: w - np.log(np.sum(np.exp(w), 1, keepdims=True)), weights)) == 1


def test_constants_that_are_equal_are_one() -> None:
    def mixed(x: Any) -> Any:
        for _ in range(5):
            x = x + 0.1 * (x[np.arange(7, 37) % 30] + x[np.arange(30) ** 2 % 30])
        return np.sum(x * x)

    (program,) = programs_of(partition_graph(flatten_calls(trace(mixed)(POINTS))))
    assert len([buffer for buffer in program.buffers if buffer.kind == "constant"]) == 2


def test_rolls_read_boxes_without_tables() -> None:
    def turned(x: Any) -> Any:
        y = np.roll(x, (1, -3), (0, 2)) + np.roll(x, 5) * np.roll(x * 1j, -8, 1).imag
        return np.roll(y, (2, 1, 1), (1, 1, 0)) + np.roll(y[:, :1], 1, 1) - np.roll(y[:1], 7, 0)

    x = np.linspace(0.0, 1.0, 4 * 7 * 5).reshape(4, 7, 5)
    for program in programs_of(require_same(trace(turned)(x), [x])):
        assert not [buffer for buffer in program.buffers if buffer.kind == "constant"]


def test_copies_side_by_side_read_no_tables() -> None:
    x = np.arange(24.0).reshape(4, 6)

    def copied(x: Any) -> Any:
        return np.tile(np.sin(x).T, (2, 3)), np.repeat(x, 3, 1) + np.repeat(x * 1j, 3, 1).imag, np.tile(x, 2) * 2.0

    for program in programs_of(require_same(trace(copied)(x), [x])):
        assert not [buffer for buffer in program.buffers if buffer.kind == "constant"]


def sum_alone(x: Any) -> Any:
    return np.einsum("abc,ad->bda", x, np.ones((2, 30)))


def gradient_of_long_window(x: Any) -> Any:
    return wg.grad(lambda w: np.sum(np.convolve(np.sin(np.arange(60.0)), w.reshape(-1), "valid") ** 2))(x)


@pytest.mark.parametrize("function", [sum_alone, gradient_of_long_window])
def test_sums_multiply_no_more_than_they_must(function: Callable[[Any], Any]) -> None:
    x = np.linspace(-1.0, 1.0, 56).reshape(2, 4, 7)
    found = require_same(flatten_calls(trace(function)(x)), [x])
    assert max([math.prod(stage.extents) for stage in stages_of(found)]) <= 60 * 5


def test_what_is_read_under_several_maps_is_computed_once() -> None:
    def smoothed(x: Any) -> Any:
        for _ in range(20):
            x = x + 0.1 * np.concatenate([x[1:], x[:1]])
        return np.sum(x * x)

    x = np.linspace(0.0, 1.0, 9)
    segments = require_same(trace(wg.grad(smoothed))(x), [x])
    assert sum(len(stage.operations) for stage in stages_of(segments)) < 600


MANY = np.linspace(0.1, 2.0, 70)
SOME = np.array([0, 7, 419, 63, 7])


def waves(x: Any) -> list[Any]:
    return [np.sin(x) + 1.0, x * np.sin(x), x, np.exp(x), 2.0 * x, np.sin(x) - x]


def interleaved(x: Any) -> Any:
    return np.stack(waves(x), axis=1).reshape(-1)


STORED: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: np.stack(waves(x)),
    "columns": lambda x: np.stack(waves(x), axis=1),
    "two columns": lambda x: np.stack([np.sin(x), x], axis=1),
    "two rows": lambda x: np.stack([np.sin(x), x[::-1]]),
    "joined": lambda x: np.concatenate(waves(x)),
    "a part that parts fill": lambda x: np.concatenate([interleaved(x), x * x]),
    "gaps": lambda x: np.stack([x, 0 * MANY, np.sin(x), 0 * MANY, x, 0 * MANY, -x], axis=1),
    "a part that others read": lambda x: [np.concatenate([x, interleaved(x)]), interleaved(x)[SOME]],
    "a part of two": lambda x: [np.concatenate([interleaved(x), x]), np.concatenate([-x, interleaved(x)])],
    "a part that is a result": lambda x: [np.stack(waves(x), axis=1), np.concatenate([x, interleaved(x), -x])],
    "a part twice": lambda x: np.concatenate([interleaved(x), interleaved(x), x])[SOME],
    "read": lambda x: np.concatenate([x, interleaved(x)])[SOME] + np.sum(np.stack(waves(x), axis=1), axis=0)[0],
    "lengths": lambda x: np.concatenate([x, x[:64], np.sin(x), x[:65] ** 2, np.cos(x), 3.0 * x[2:]]),
    "written": lambda x: np.concatenate([interleaved(x), np.cumsum(x), np.sin(x), x, -x, 1.0 + x]),
}


@together("name", STORED)
def test_parts_of_arrays_are_stored_where_they_go(name: str) -> None:
    segments = require_same(trace(STORED[name])(MANY), [MANY])
    if name in ("rows", "columns", "two columns", "two rows", "joined", "a part that parts fill"):
        (stage,) = stages_of(segments)
        assert {store.buffer for store in stage.stores} == {"y0"}
        assert "pick" not in [operation.name for operation in stage.operations]
    require_same(trace(wg.grad(lambda x: sum(np.sum(part**2) for part in flattened(STORED[name](x)))))(MANY), [MANY])


STEPS: dict[str, Callable[[Any], Any]] = {
    "roll": lambda x: x - 0.1 * np.roll(x, 1, 0) * x,
    "edges": lambda x: np.concatenate([x[:1], x[1:-1] + 0.1 * (x[2:] - x[:-2]), x[-1:]]),
    "product": lambda x: x * np.concatenate([x[1:], x[:1]]),
    "rows": lambda x: x / np.sqrt(1.0 + np.sum(x * x, axis=1, keepdims=True)),
}


def recorded(x: Any, step: Callable[[Any], Any], steps: int) -> Any:
    rows = []
    for _ in range(steps):
        x = step(x)
        rows.append(x[3])
    return np.sum(np.stack(rows) ** 2) + np.sum(x)


def last_squared(x: Any, step: Callable[[Any], Any], steps: int) -> Any:
    for _ in range(steps):
        x = step(x)
    return np.sum(x * x)


def written_and_read(x: Any, step: Callable[[Any], Any], steps: int) -> Any:
    rows = wg.numpy.zeros((steps, *x.shape))
    for i in range(steps):
        x = step(x) + 1e-3 * np.sum(rows)
        rows[i] = x
    return np.sum(rows**2)


def pushed(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.jvp(wg.grad(f), (x,), (np.cos(x),))[1]


@pytest.mark.parametrize(
    ("name", "height", "program", "derivative"),
    [
        ("roll", 64, recorded, wg.grad),
        ("edges", 6, recorded, wg.grad),
        ("product", 6, recorded, wg.grad),
        ("rows", 6, last_squared, pushed),
        ("roll", 6, written_and_read, wg.grad),
    ],
)
def test_steps_read_and_compute_no_more_of_those_before_than_a_few(
    name: str, height: int, program: Callable[..., Any], derivative: Callable[..., Any]
) -> None:
    """Neither all rows of a stack to have one, nor again what those before have computed, added or written.

    Otherwise what long loops of Python cost grows with the square of the number of their steps.
    """
    x = 0.1 * np.outer(MANY[:height], MANY[:64])
    few, many = [trace(derivative(partial(program, step=STEPS[name], steps=steps)))(x) for steps in (5, 10)]
    counts = [
        sum([math.prod(stage.extents) * len(stage.operations) for stage in stages_of(segments)])
        for segments in (require_same(few, [x], least=1e-3), partition_graph(flatten_calls(many)))
    ]
    assert counts[1] < 2.4 * counts[0]


def test_parts_may_be_numbers_of_rows() -> None:
    """Many are computed apart, a vector at a time, and stand in the array that they fill all the same."""

    def columns(x: Any) -> Any:
        rows = []
        for _ in range(6):
            x = STEPS["rows"](x)
            rows.append(x[:, 3])
        return np.sum(np.stack(rows) ** 2)

    x = np.outer(MANY[:64], MANY[:64])
    require_same(trace(wg.grad(columns))(x), [x])


def flattened(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def test_pieces_of_another_shape_are_no_pieces_of_a_sum() -> None:
    x = np.array([[0.3], [1.2], [-0.7]])
    require_same(trace(wg.grad(lambda x: np.sum(x[1:] ** 2) + np.sum(x.reshape(3)[:2] ** 2)))(x), [x])


def test_sums_of_what_does_not_vary_are_products() -> None:
    x = np.linspace(0.0, 1.0, 9)
    graph = trace(lambda x: np.sum(np.broadcast_to(x[:, None], (9, 1000)) * 2.0, axis=1))(x)
    assert not [r for stage in stages_of(require_same(graph, [x])) for r in stage.reductions]


def test_factors_leave_sums_only_where_no_special_value_can_change() -> None:
    """0 * inf is NaN in a sum of products; a product with the sum of no infinity would be 0."""
    tiny, x = np.array(0.0), np.array([1.0, np.inf])
    require_same(trace(lambda s, x: [np.sum(s * x), np.sum(x / s), np.sum(-x), np.sum(3.0 * x)])(tiny, x), [tiny, x])
    large = np.full(4, 1e308)
    require_same(trace(lambda x: np.sum(x * 0.25))(large), [large])


# Dtypes

INTEGERS, SMALL = np.array([[3, -1, 0], [2, 7, -5]]), np.array([100, 27, -128], np.int8)
FLAGS, SINGLE = np.array([True, False, True]), np.array([0.1, -2.5, 7.0], np.float32)
DOUBLE, NAMELESS = np.array([0.5, -0.0, np.inf]), np.array([np.nan, 1.0, -np.inf])
OF_SCIPY = sp.expit, sp.log_expit, sp.logit, sp.entr, sp.exp2, sp.exp10, sp.expm1, sp.log1p, sp.cbrt, sp.round, sp.psi
KNOTS = np.concatenate([np.arange(60.0), np.full(40, 60.0), [63.5, np.inf, np.nan, np.nan]])
ORDER, DOWN = partial(np.argsort, kind="stable"), np.array([2.0, 0.5, -1.0])
OF_DTYPES = {
    "bits": lambda i, s, b, f, d: [i & 3, i | s, i ^ 1, ~i, b & (i > 0), b ^ b, ~b],
    "small integers": lambda i, s, b, f, d: [s + s, s * s, -s, abs(s), s + 1, np.maximum(s, 3), s < 50],
    "unsigned": lambda i, s, b, f, d: [s.astype(np.uint8) + np.uint8(200), i.astype(np.uint32) * 3, s.astype(bool)],
    "bools": lambda i, s, b, f, d: [
        b + b,
        b * b,
        np.maximum(b, ~b),
        b == ~b,
        b < ~b,
        b >= b,
        b != b,
        np.logical_not(b),
    ],
    "products of bools": lambda i, s, b, f, d: [
        b @ ~b,
        np.outer(b, ~b),
        np.outer(b, b) @ np.outer(~b, b),
        np.einsum("ij,jk,j->k", i > 0, np.outer(b, b), b),
        *(g(b, b[1:], mode) for g in (np.convolve, np.correlate) for mode in ("full", "same", "valid")),
    ],
    "mixed": lambda i, s, b, f, d: [i + b, i * f, f + d, s + f, i / s, b / 2, f * 2.5, i * 2.5, b + 1, f > i],
    "logic": lambda i, s, b, f, d: [np.logical_and(i, b), np.logical_or(f, d), np.logical_xor(s, b)],
    "sums": lambda i, s, b, f, d: [
        i.sum(),
        s.sum(),
        b.sum(),
        f.sum(),
        d.sum(),
        i.mean(),
        f.mean(),
        b.mean(),
        i.prod(0),
    ],
    "extrema of numbers": lambda i, s, b, f, d: [
        np.nanmax(d),
        np.nanmin(f),
        np.fmax.reduce(np.stack([d, d * np.nan]), axis=1),
        np.fmin.reduce(np.stack([d, -d]), axis=0, keepdims=True),
        np.nanmax(i),
        np.sinc(d),
        np.sinc(f),
    ],
    "of all": lambda i, s, b, f, d: [b.all(), b.any(), i.any(1), np.count_nonzero(f), d.max(), s.min(), i.max(0)],
    "running": lambda i, s, b, f, d: [
        *(np.cumsum(x, axis=-1) for x in (i, s, b, f, d)),
        *(np.cumprod(x, axis=0) for x in (i, s, f, d)),
        *(function.accumulate(x) for function in (np.maximum, np.minimum) for x in (i, s, b, f, d)),
        np.cumsum(i, 0)[::-1] * 2,
        np.cumsum(np.exp(f) * d) + np.cumsum(f[::-1])[::-1],
        np.cumsum(-0.0 * abs(f)),
        np.cumsum(np.cumsum(np.outer(f, d), 0), 1),
        np.cumsum(np.outer(f, d).reshape(3, 1, 3) * i[:, None, :].reshape(1, 2, 3), axis=0),
        np.logical_and.accumulate(b),
        np.bitwise_or.accumulate(i, 1),
    ],
    "slopes of running": lambda i, s, b, f, d: [
        wg.grad(lambda x, g=g: np.sum(g(x * f) * f[::-1]))(d * 0.5)
        for g in (np.cumsum, np.cumprod, np.maximum.accumulate, np.minimum.accumulate)
    ],
    "sorts": lambda i, s, b, f, d: [
        *(g(x) for g in (np.sort, ORDER) for x in (i, s, b, f, d, np.concatenate([d, d[::-1], -d, 0 * d]), s[:1])),
        *(g(np.outer(i[0], f).T[::-1], axis=0) for g in (np.sort, ORDER)),
        np.sort(i, axis=None),
    ],
    "slopes of sorts": lambda i, s, b, f, d: [
        wg.grad(lambda x: np.sum(np.sort(x) * f))(f * 2.0),
        wg.jvp(np.sort, (i * 1.5,), (i * d,))[1],
        wg.vmap(wg.grad(lambda x: np.sum(np.sort(x) ** 2 * s)))(i * 1.5),
    ],
    "searches": lambda i, s, b, f, d: [
        *(np.searchsorted(np.sort(x), v, side) for x in (i[0], f, d) for v in (i, d, 0) for side in ("left", "right")),
        np.searchsorted(f, d, sorter=ORDER(f)),
        *(np.interp(x, np.sort(y), d) for x in (i, f, d, 0.3) for y in (f, i[1], s)),
        np.interp(d, f[:1], d[:1]),
        *(
            np.searchsorted((KNOTS * (1 + 0 * i[0, 0])).astype(t), x.astype(t), side)
            for x in (KNOTS[7:], KNOTS[::-1], KNOTS[::11] + 0.3, np.linspace(0, 31, 400) % 7 * 9)
            for side in ("left", "right")
            for t in (np.float64, np.float32)
        ),
        np.interp(np.linspace(-2, 70, 300), np.unique(KNOTS)[:50] + 0 * i[0, 0], np.unique(KNOTS)[:50] ** 2),
    ],
    "slopes of searches": lambda i, s, b, f, d: [
        wg.grad(lambda x: np.sum(np.interp(x, np.sort(f), f) ** 2))(d[:2]),
        *wg.grad(lambda *xs: np.sum(np.interp(d[:2], *xs) ** 2), argnums=(0, 1))(np.sort(f), f * 2),
    ],
    "order statistics": lambda i, s, b, f, d: [
        *(g(x) for g in (np.median, np.nanmedian) for x in (i, s, f, d, f[:2])),
        *(g(x, axis=1, keepdims=True) for g in (np.median, np.nanmedian) for x in (i, np.outer(d, i[0]))),
        *(g(x, q) for g in (np.quantile, np.nanquantile) for x in (i, d, i * d) for q in (0.3, [0.0, 0.75])),
        np.quantile(d, 1),
        np.percentile(i * d, d[1] * d[1] * 0 + 60, axis=0),
    ],
    "slopes of order statistics": lambda i, s, b, f, d: [
        wg.grad(lambda x: np.sum(np.median(x, axis=1)))(i * 1.5),
        wg.jvp(lambda x: np.nanpercentile(x, [20.0, 90.0], axis=0), (i * d,), (i * 0.5,))[1],
        wg.grad(lambda q: np.sum(np.quantile(i * 1.5, q, axis=1)))(np.array([0.1, 0.6])),
    ],
    "NaN left out": lambda i, s, b, f, d: [
        *(
            g(x)
            for g in (np.nanmean, np.nanvar, np.nanstd, np.nansum, np.nanargmax, np.nanargmin)
            for x in (i, f, d[1:])
        ),
        *(g(i * d, axis=0, keepdims=True) for g in (np.nanmean, np.nanvar, np.nanstd)),
        *(g(i * d, axis=1, where=i > 0) for g in (np.nanmean, np.nanvar, np.nanstd, np.var)),
        np.nanvar(d, ddof=2),
        np.std(i, axis=1, mean=i[:, :1]),
    ],
    "places of extrema": lambda i, s, b, f, d: [
        *(g(x, axis) for g in (np.argmax, np.argmin) for x in (i, s, b, ~b & b, f, d) for axis in (None, -1)),
        np.argmax(i * d, axis=0, keepdims=True),
    ],
    "bins": lambda i, s, b, f, d: [
        *(
            np.digitize(x, bins, right)
            for x in (i, d)
            for bins in (d[1:] * 0 + 1, DOWN, DOWN[::-1])
            for right in (0, 1)
        ),
        *(np.histogram(x, bins, (-3, 3))[0] for x in (i * d, d) for bins in (4, DOWN[::-1])),
        np.histogram(i * 1.5, 4, (-3, 3), weights=i * 0.1)[0],
        wg.grad(lambda w: np.sum(np.histogram(i * 1.5, DOWN[::-1], weights=w)[0] ** 2))(i * 0.5),
        np.isin(i, [2, 7]),
        np.isin(d, DOWN, invert=True),
    ],
    "vectors": lambda i, s, b, f, d: [
        *(g(x, y) for g in (np.cross, np.linalg.cross) for x in (i, s, f, d) for y in (f, d[::-1])),
        wg.grad(lambda x: np.sum(np.cross(x, i) ** 2))(f * 2.0),
        *(np.linalg.norm(i + 0.5, order, axis=1) for order in (3, 2.5, -1)),
        wg.grad(lambda x: np.sum(np.linalg.norm(x, 3, axis=0)))(i + 0.5),
    ],
    "evenly spaced": lambda i, s, b, f, d: [
        *(np.linspace(x, y, 4, endpoint=end) for x in (i, f, 0.5) for y in (d[2], i[0]) for end in (True, False)),
        np.linspace(d[0], d[0], 3),
        np.linspace(i, 2, 1),
        wg.grad(lambda x: np.sum(np.linspace(x, i, 3, axis=1) ** 2))(i[0] * 0.5),
    ],
    "rounded": lambda i, s, b, f, d: [np.round(x, n) for x in (f, d, i * 1.235, 1e5 * f) for n in (2, 1, -2)],
    "weighted logarithms": lambda i, s, b, f, d: [
        *logsumexp(i * 0.5, b=i, axis=1, return_sign=True),
        logsumexp(d, b=b),
        logsumexp(i * d, b=b * 2.0, axis=0, keepdims=True),
        wg.grad(lambda x: np.sum(logsumexp(x, b=i * i, axis=0)))(i * 0.5),
    ],
    "random numbers": lambda i, s, b, f, d: [
        draw(key)
        for key in [i[:2, 0].astype(np.uint64)]
        for draw in (
            lambda key: random.bits(key, 9),
            lambda key: random.uniform(key, -1.0, d[:, None], size=(3, 2)),
            lambda key: random.uniform(key, size=5, dtype=np.float32),
            lambda key: random.normal(random.fold_in(key, i[1, 2]), size=(2, 3)),
            lambda key: random.integers(random.split(key)[1], -2, 7, size=4),
            lambda key: random.choice(key, f, size=2, replace=False),
            lambda key: random.categorical(key, f, size=6),
            lambda key: random.permutation(key, 7),
            lambda key: wg.vmap(lambda n: random.bits(random.fold_in(key, n), 3))(i[0] - 5),
        )
    ],
    "masked sums": lambda i, s, b, f, d: [f.sum(where=b), i.sum(0, where=b), d.mean(where=b), i.prod(1, where=b)],
    "starting values": lambda i, s, b, f, d: [
        i.sum(initial=2),
        d.max(initial=0.5),
        f.min(where=b, initial=9),
        s.prod(initial=2),
    ],
    "convolutions": lambda i, s, b, f, d: (
        [np.convolve(d, f, m) for m in ("full", "same", "valid")] + [np.correlate(f, d, "full")]
    ),
    "norms": lambda i, s, b, f, d: [
        np.linalg.norm(f),
        np.linalg.norm(i, axis=1),
        np.linalg.norm(i, "fro", keepdims=True),
    ],
    "dtypes": lambda i, s, b, f, d: [i.sum(dtype=float), f.sum(dtype=float), s.sum(dtype=np.int8), f.mean(dtype=float)],
    "products": lambda i, s, b, f, d: [i @ i.T, s @ s, f @ f, i @ d, np.outer(s, f), np.einsum("ij,j->i", i, s)],
    "choices": lambda i, s, b, f, d: [np.where(b, i, f), np.where(i, 1.5, f), np.clip(i, -1, 2), np.clip(f, -1, 2.0)],
    "quotients": lambda i, s, b, f, d: [
        *(x // y for x in (i, s, f, d) for y in (s, f, d, 3, 2.5)),
        *(x % y for x in (i, s, f, d) for y in (s, f, d, 3, -2.5)),
        *(np.fmod(x, y) for x in (i, s, f, d) for y in (s, f, d, -3)),
        *divmod(d, f),
        s.astype(np.uint8) % np.uint8(7),
        d % 1e-300,
    ],
    "digits": lambda i, s, b, f, d: [
        *(y for x in (f, d) for function in (np.modf, np.frexp) for y in function(x)),
        *(np.nextafter(x, f) for x in (f, d)),
        *(np.ldexp(x, s) for x in (f, d)),
        np.spacing(f),
        np.spacing(d),
        *(function(i, y) for function in (np.left_shift, np.right_shift) for y in (2, 70, -1, abs(s))),
        s.astype(np.uint8) >> np.uint8(9),
    ],
    "of SciPy": lambda i, s, b, f, d: [
        *(function(x) for function in OF_SCIPY for x in (f, d)),
        *(function(f, x) for function in (sp.xlogy, sp.xlog1py, sp.huber) for x in (f, d)),
    ],
    "powers": lambda i, s, b, f, d: [i**2, f**3, d**0, s**1, d**-1, f**0.5, abs(f) ** f, np.power(i, 4)],
    "whole": lambda i, s, b, f, d: [
        np.floor(i),
        np.rint(f),
        np.trunc(d),
        np.ceil(s),
        np.round(f),
        np.sign(i),
        np.sign(d),
    ],
    "angles": lambda i, s, b, f, d: [np.angle(i), np.angle(i, deg=True), np.angle(f), np.angle(d)],
    "nearly equal": lambda i, s, b, f, d: [np.isclose(i, 3), np.isclose(s, d), np.isclose(d, 5, equal_nan=True)],
    "with and without a sign": lambda i, s, b, f, d: [
        compare(*pair)
        for compare in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
        for own in (i[0].astype(np.uint64), i[0].astype(np.uint64) - np.uint64(1))
        for pair in ((own, i), (s, own))
    ],
    "roots": lambda i, s, b, f, d: [(-d) ** 0.5, np.power(-d, 0.5), f**-0.5],
    "special": lambda i, s, b, f, d: [np.isnan(d), np.isinf(f), np.isfinite(i), np.signbit(d), np.nan_to_num(d)],
    "conversions": lambda i, s, b, f, d: [
        i.astype(np.float32),
        f.astype(int),
        b.astype(np.int8),
        d.astype(bool),
        f * True,
    ],
    "parts": lambda i, s, b, f, d: [
        np.real(f),
        np.imag(d),
        np.conjugate(i),
        np.conjugate(b),
        np.copy(b),
        +i,
        np.isreal(d),
        np.iscomplex(f),
    ],
    "joins": lambda i, s, b, f, d: [np.concatenate([i[0], s]), np.stack([f, d]), np.append(b, i), np.pad(s, 1)],
    "writes": lambda i, s, b, f, d: [written(i, (0, slice(1)), 2.7), written(s, [0, 2], 5), written(b, 1, 3)],
    "extrema": lambda i, s, b, f, d: [
        np.fmax(d, f),
        np.fmin(f, d),
        np.maximum(f, d),
        np.minimum(d, f),
        np.heaviside(d, f),
    ],
}


def written(x: Any, index: Any, value: Any) -> Any:
    y = x.copy()
    y[index] = value
    return y


@together("case", OF_DTYPES)
@pytest.mark.parametrize("double", [DOUBLE, pytest.param(NAMELESS, marks=pytest.mark.long)])
def test_dtypes_are_those_of_numpy(case: str, double: Any) -> None:
    args = [INTEGERS, SMALL, FLAGS, SINGLE, double]
    segments = require_same(trace(OF_DTYPES[case])(*args), args)
    assert not [part.reasons for part in segments.parts if part.program is None]


def test_numbers_take_the_dtype_of_arrays() -> None:
    args = [SINGLE, 0.1, 3, True]
    segments = require_same(trace(lambda x, a, n, b: [x * a, x + n, x * b, a * 2.0, a / 3, a > n])(*args), args)
    assert len(programs_of(segments)) == 1


def test_results_lie_in_memory_as_the_graph_says() -> None:
    x = np.ones((3, 4))
    graph = trace(lambda x: [np.exp(x), x.T * 2.0, np.exp(x).sum(), np.copy(x[0, 0])])(x)
    found = partition_graph(flatten_calls(graph)).run(
        [x], lambda program, arrays: Evaluator().compile_program(program)(arrays)
    )
    assert [np.asarray(a).flags.fnc for a in found] == [False, True, False, False]
    assert list(map(type, found)) == list(map(type, graph(x)))


# Complex numbers

INVERSES = np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh
PARTS = [0.0, -0.0, 1.5, -2.0, 3e200, np.inf, -np.inf, np.nan]
PLANE = np.array([complex(a, b) for a in PARTS for b in PARTS])
OF_COMPLEX = {
    "sums": lambda z, w, x: [z + w, z - w, z + x, -z, z - 2.0, z + 1j, np.sum(w), np.mean(w, keepdims=True)],
    "quotients": lambda z, w, x: [w / z, w / x, 1.0 / w],
    "parts": lambda z, w, x: [z.real, z.imag, np.conj(z), abs(w), z == w, z != w, np.isreal(z), np.iscomplex(z)],
    "predicates": lambda z, w, x: [
        np.isnan(z),
        np.isinf(z),
        np.isfinite(z),
        np.where(x > 0, z, w),
        np.where(x > 0, z, x),
        np.where(z, x, 2.0),
        np.where(z, z, x),
    ],
    "means": lambda z, w, x: [
        np.mean(z.reshape(8, 8), 1),
        np.mean(z),
        np.mean(z.astype(np.complex64).reshape(8, 8), 0),
    ],
    "arrangements": lambda z, w, x: [z[::-1], np.concatenate([z, x]), np.stack([z, w]), written(z, 3, 1 + 2j), z[:4]],
    "conversions": lambda z, w, x: [x.astype(complex), w.astype(np.complex64), z.astype(bool), np.pad(w, 1), +z],
    "products": lambda z, w, x: [w * w, w @ w, np.vdot(w, w), np.outer(w[:3], x[:2]), np.einsum("i,i", w, x), w * 1j],
    "single": lambda z, w, x: [x.astype(np.float32) * 1j, w.astype(np.complex64) / 2.0, abs(w.astype(np.complex64))],
    "exponentials": lambda z, w, x: [np.exp(w), np.exp(1j * x), np.exp(700.0 + w), np.exp(z), np.exp2(z), np.expm1(w)],
    "logarithms": lambda z, w, x: [f(y) for f in (np.log, np.log2, np.log10, np.log1p, np.sqrt) for y in (z, w)],
    "waves": lambda z, w, x: [f(y) for f in (np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh) for y in (z, w)],
    "inverses": lambda z, w, x: [f(y) for f in INVERSES for y in (z, w)],
    "powers": lambda z, w, x: [w**2, z**3, w**-3, w**7, np.reciprocal(z), np.sign(z), np.angle(z), np.angle(x)],
    "slopes": lambda z, w, x: [wg.grad(lambda w, f=f: np.sum(abs(f(w))))(w) for f in (np.sqrt, np.sin, *INVERSES)],
    "sums of powers": lambda z, w, x: [np.sum(w.astype(np.complex64) ** 2), np.log(w.astype(np.complex64))],
}


@pytest.mark.parametrize("case", OF_COMPLEX)
def test_complex_numbers_are_pairs(case: str) -> None:
    drawn = np.random.default_rng(1)
    pairs = drawn.normal(size=(64, 2))
    args = [PLANE, pairs[:, 0] + 1j * pairs[:, 1], drawn.normal(size=64)]
    segments = require_same(trace(OF_COMPLEX[case])(*args), args)
    assert not [part.reasons for part in segments.parts if part.program is None]


# What is refused, and what runs around it


def test_what_is_refused_runs_between_kernels() -> None:
    x = np.random.default_rng(0).normal(size=(4, 4))
    graph = trace(lambda x: np.linalg.inv(np.exp(x) + np.eye(4)).sum(0) * np.partition(x[0], 0))(x)
    segments = require_same(graph, [x])
    assert [part.program is None for part in segments.parts] == [False, True, False]
    assert [r for part in segments.parts for r in part.reasons] == ["a routine of NumPy"]
    dropped = [v for part in segments.parts for v in part.dropped]
    assert len(dropped) == len(set(dropped))
    assert set(dropped) == {v for part in segments.parts for v in part.graph.inputs}


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "several results": (lambda x: np.linalg.qr(x, "complete"), (np.eye(3),), "a routine of NumPy"),
    "complex": (lambda x: np.sinc(x * 1j), (SINGLE,), "values of dtype complex64, of which no opcode knows"),
    "powers": (lambda x: (x * 1j) ** 2.5, (SINGLE,), "operands that no opcode takes"),
    "infinite powers": (lambda x: [(x * 1j) ** p for p in (np.inf, -np.inf, np.nan)], (SINGLE,), "operands that no"),
    "half": (lambda x: x.astype(np.float16) + 1, (SINGLE,), "values of dtype float16"),
    "no room": (lambda x: [x > -1, x == 300, np.clip(x, -5, 2)], (np.array([1, 44], np.uint8),), "a number that the"),
    "empty": (lambda x: x[:0] + 1, (SINGLE,), "arrays without elements"),
    "Python's integers": (lambda n: n**n, (3,), "whole numbers of Python's, which have no size"),
    "small integers": (
        lambda x, n: x + n,
        (SMALL, 3),
        "a whole number of Python's, which an array",
    ),
    "running": (np.logaddexp.accumulate, (SINGLE,), "steps that no opcode takes"),
    "NaN left out": (
        lambda x: np.nanmax(x, where=x > 0, initial=0),
        (SINGLE,),
        "reductions that leave NaN out, of elements that a mask tells",
    ),
    "decimals": (lambda x: np.round(x, 30), (SINGLE,), "operands that no opcode takes"),
    "no opcodes": (sp.dawsn, (SINGLE,), "no opcodes for it yet"),
}


def added_at(x: Any, index: Any, value: Any = 1.0) -> Any:
    y = x * 1
    np.add.at(y, index, value)
    return y


# Computed places

TABLE = np.random.default_rng(0).normal(size=(4, 5, 8))
PLACES, ROW, WIDE = np.array([3, -1, 0, 3]), np.array([2, 1, -4, 0], np.int8), np.array([[0], [4], [-5]])
OF_PLACES = {
    "numbers": lambda x, i, j, w: [x[i], x[i, 1], x[1:, i], x[..., i], x[i][:, i[0]], x[i - 1]],
    "pairs": lambda x, i, j, w: [x[i, j], x[i, :, j], x[i, w], x[:, i, w], x[None, i, ..., w], x[2, i], x[2, :, i]],
    "slices": lambda x, i, j, w: [x[::-1, i, ::2], x[i, ::2, ::-1], x[i, 1:3], x[i, None, 4], x[0, i, None, 1:]],
    "known beside": lambda x, i, j, w: [x[i, [0, 1, 2, -1]], x[[0, 1, 2, 2], i], x[i, np.arange(4)]],
    "take": lambda x, i, j, w: [np.take(x, i, 2), np.take_along_axis(x, j[:, None, None], 1), np.exp(x)[i] * 2],
    "writes": lambda x, i, j, w: [
        written(x, i, 2.0),
        written(x, (i, j), x[0, :4]),
        written(x, (slice(None), w), x[:, None, :1]),
        written(x, (i, slice(None, None, -1)), x[i] * 2),
        written(x.astype(int), (1, i), 2.7),
    ],
    "additions": lambda x, i, j, w: [
        added_at(x, i),
        added_at(x, (i, j), x[:, 0]),
        added_at(x, (i, slice(1, 4)), x[i, 1:4] * 2),
        added_at(x[..., :7], i, x[:, 1:2, :7]),
        added_at(x[0], ([1, 1], i[1:3]), x[0, 1:3, 2]),
        added_at(x, (Ellipsis, i), 3),
        added_at(x, [0, 0]),
        added_at(added_at(x, i), j)[i],
        added_at(x.astype(np.int8), (i, w, 1), 100),
    ],
    "gradients": lambda x, i, j, w: [
        wg.grad(lambda x: np.sum(x[i] ** 2))(x),
        wg.grad(lambda x: np.sum(x[i, j] * x[0, :4]))(x),
        wg.grad(lambda y: np.sum(written(x * 1, (i, j), y) ** 2))(x[0, :4]),
        wg.grad(lambda x: np.sum(np.sin(x[:, w]) * x[:, None, :1]))(x),
    ],
    "complex": lambda x, i, j, w: [(x * 1j)[i], written(x * 1j, i, 2.0 + 1j), added_at(x * 1j, i)],
}


@pytest.mark.parametrize("case", OF_PLACES)
def test_computed_places(case: str) -> None:
    args = [TABLE, PLACES, ROW, WIDE]
    segments = require_same(trace(OF_PLACES[case])(*args), args)
    assert not [part.reasons for part in segments.parts if part.program is None]
    assert segments.whole is not None


def test_places_out_of_bounds_raise_numpys_error() -> None:
    x = np.arange(4.0)
    for function in (lambda x, i: x[i] * 2, lambda x, i: written(x, i, 1.0), lambda x, i: added_at(x * 2, i)):
        segments = partition_graph(flatten_calls(trace(function)(x, PLACES)))
        assert [part.program is None for part in segments.parts] == [False]
        for place in (4, -5, 1 << 40):
            with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis 0 with size 4"):
                segments.run([x, np.array([0, 1, place, 2])], checked)


def test_places_in_rows_of_loops_are_looked_at_before() -> None:
    def add_rows(x: Any, rows: Any) -> Any:
        def add(sums: Any, row: Any) -> Any:
            inner = wg.scan(lambda c, at: (c + x[at], None), 0.0, row[1])[0]
            return added_at(sums, row[0], x[row[0]] * inner), None

        return wg.scan(add, x * 0, rows)[0]

    x, rows = np.arange(1.0, 5), np.array([[[0, 3], [1, 1]], [[3, 0], [-4, 2]]])
    for least, most, fails in ((-4, 3, False), (-5, 3, True), (-4, 4, True)):
        rows[0, 0, 1], rows[1, 1, 0] = most, least
        graph = trace(partial(add_rows, rows=rows.copy()))(x)
        program = partition_graph(flatten_calls(graph)).whole
        assert program is not None
        assert ("greater_equal" in text(program)) == fails
        if not fails:
            require_same(graph, [x])
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        partition_graph(flatten_calls(graph)).run([x], checked)


def test_sums_of_places_are_not_between_their_bounds() -> None:
    def add_rows(x: Any, rows: Any) -> Any:
        add = lambda sums, row: (added_at(sums, np.einsum("ij->i", row)), None)
        return wg.scan(add, x, rows)[0]

    graph = trace(partial(add_rows, rows=np.full((2, 3, 2), 999)))(np.zeros(1000))
    with pytest.raises(IndexError, match="index 1998 is out of bounds for axis 0 with size 1000"):
        partition_graph(flatten_calls(graph)).run([np.zeros(1000)], checked)


def test_numbers_that_come_out_while_lowering_do_not_cut_programs() -> None:
    graph = trace(lambda t, x: (np.sin(x * (3.0 * t**0.0)) + np.divmod(7.0 * t**0.0, 2.0)[1], t**0.0 * 2))(
        1.5, np.ones(3)
    )
    assert require_same(graph, (1.5, np.ones(3))).whole is not None
    warned = trace(lambda t, x: x + t**0.0 / 0.0)(1.5, np.ones(3))
    assert partition_graph(flatten_calls(warned)).whole is None


# Branches

OF_BRANCHES = {
    "numbers": lambda t, x: wg.cond(t > 0, lambda: t * 2, lambda: -t) + 1,
    "arrays": lambda t, x: wg.cond(t > np.sum(x), lambda: x[::-1] * t, lambda: np.sin(x)),
    "several results": lambda t, x: wg.cond(t > 0, lambda: (x, t, 1), lambda: (x * 2, -t, 2)),
    "the same result": lambda t, x: wg.cond(t > 0, lambda: (x, t), lambda: (x, -t)),
    "of single precision": lambda t, x: wg.cond(t > 0, lambda y: y * 2, lambda y: y + 1, np.float32(1) * t),
    "numbers that are known": lambda t, x: wg.cond(t > 0, lambda y: np.exp(y) + t, lambda y: y / 0.0, 2.0),
    "arrays of one number": lambda t, x: (
        np.var(wg.cond(t > 0, lambda: np.zeros((2, 3)), lambda: np.zeros((2, 3))), axis=1)
        + np.std(wg.cond(t > 0, lambda: np.full((2, 3), 0.5), lambda: np.full((2, 3), 0.5)))
    ),
    "complex": lambda t, x: wg.cond(t > 0, lambda: np.exp(1j * x), lambda: x + 0j),
    "by numbers": lambda t, x: wg.switch((t > 0) + 1, [lambda: t, lambda: t**2, lambda: np.exp(t)]),
    "by a whole number": lambda t, x: wg.switch(x.shape[0] * (t > 0) - 3, [lambda: x, lambda: x**2, lambda: np.exp(x)]),
    "inside of another": lambda t, x: wg.cond(
        t > 0, lambda: wg.cond(t > 1, lambda: t, lambda: t**2), lambda: wg.cond(t < -1, lambda: -t, lambda: 0.0)
    ),
    "gradients": wg.grad(lambda t, x: np.sum(wg.cond(t > 0, lambda: np.sqrt(np.abs(t)) * x, lambda: x**2)), (0, 1)),
    "gradients of roots": wg.grad(lambda t, x: wg.cond(t > 0, lambda: np.sqrt(t), lambda: 0.0 * t)),
    "directions": lambda t, x: wg.jvp(lambda t: wg.cond(t > 0, lambda: t**3, lambda: t * 2), (t,), (1.0,)),
}


@together("case", OF_BRANCHES)
def test_short_branches_are_selected_from(case: str) -> None:
    graph = trace(OF_BRANCHES[case])(1.5, np.linspace(-1.0, 1.0, 5))
    for t in (1.5, 0.5, 0.0, -0.5, -2.5):
        segments = require_same(graph, (t, np.linspace(-1.0, 1.0, 5)))
        assert segments.whole is not None, [part.reasons for part in segments.parts]


def test_places_are_out_of_bounds_in_the_branch_alone_that_is_taken() -> None:
    x, places = np.arange(5.0), np.array([0, 4])
    graph = trace(lambda x, i, t: wg.cond(t > 0, lambda: x[i] * 2, lambda: x[i * 0]))(x, places, 1.0)
    segments = require_same(graph, (x, places, 1.0))
    assert segments.whole is not None
    require_same(graph, (x, places - 9, -1.0))
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        segments.run([x, places + 1, 1.0], checked)


def test_branches_with_what_is_refused_are_refused() -> None:
    args = 1.0, np.linspace(-1.0, 1.0, 5)
    function = lambda t, x: wg.cond(t > 0, lambda: np.partition(x, 0), lambda: x)
    segments = require_same(trace(function)(*args), args)
    reasons = [r for part in segments.parts for r in part.reasons]
    assert any(found.startswith("a routine of NumPy") for found in reasons), reasons


def test_one_of_several_branches_that_take_long_is_run() -> None:
    def switched(t: Any, x: Any) -> Any:
        long = np.tile(x, 10**4)
        return wg.switch((t > 0) + (t > 1) * 1, [lambda: (np.exp(long), 1), lambda: (long, 2), lambda: (long * 0, 3)])

    x = np.linspace(-1.0, 1.0, 5)
    for t in (-1.0, 0.5, 1.5):
        segments = require_same(trace(switched)(1.0, x), (t, x))
        assert segments.whole is not None
        assert any(isinstance(step, Switch) for step in segments.whole.steps)


# Whole numbers

RAISED_BY: tuple[Callable[[Any], Any], ...] = (
    lambda n: [1 << n, 7 >> n],
    lambda n: [-5 << n, n >> n],
    lambda n: n << n,
    lambda n: 2**n,
    lambda n: 8**n,
)


OF_WHOLE_NUMBERS: tuple[Callable[[Any], Any], ...] = (
    lambda n: n + 1,
    lambda n: [-n, abs(n), n - 3, max(n, 7)],
    lambda n: n * n,
    lambda n: 3 * n + 2,
    lambda n: n + n,
    lambda n: [n - -n, -n - n, n + (n - 1)],
    lambda n: wg.cond(n > 5, lambda: n - 5, lambda: n * 2),
    lambda n: [n % 7, n // 7, n % -5, n // -1, n & 12, n | 3, n ^ -6],
    lambda n: 5 % n,
    lambda n: -7 // n,
    lambda n: (n, 7 % (n - 3), 7 // (n > 3))[0],
    lambda n: (1 / n > 0) * 3,
    lambda n: n**2,
    lambda n: [n**1, n**3],
    lambda n: n**4,
    lambda n: [~n, n >> 3, n >> 32],
    lambda n: n << 2,
    lambda n: n << 32,
    lambda n: (n > 3) * n + (n > 2),
)


@cache
def lowered_for_numbers(function: Callable[[Any], Any]) -> tuple[Graph, Segments]:
    """Return the graph of a function of a whole number, and its segments."""
    graph = trace(function)(3)
    return graph, partition_graph(flatten_calls(graph))


@pytest.mark.parametrize(
    "n",
    [
        3,
        -7,
        0,
        20,
        21,
        31,
        60,
        61,
        62,
        63,
        64,
        2**31,
        2**31 + 1,
        2**32,
        -(2**33),
        -(2**31) - 1,
        2**21 - 1,
        -(2**21),
        2**21,
        2**60 + 5,
        -(2**62),
        2**62 - 1,
        2**62,
        2**62 + 1,
        2**63 - 1,
        -(2**63),
    ],
)
def test_whole_numbers_of_pythons_are_those_of_python_or_told_as_too_large(n: int) -> None:
    raised = RAISED_BY if 0 <= n < 100 else ()  # longer ones take gigabytes
    for function in (*OF_WHOLE_NUMBERS, *raised):
        graph, segments = lowered_for_numbers(function)
        assert segments.whole is not None, [part.reasons for part in segments.parts]
        want = outcome(lambda graph=graph: graph(n))
        assert repr(outcome(lambda segments=segments: segments.run([n], checked))) == repr(want)
        if not isinstance(want, Exception):
            expected = function(n)
            assert list(map(int, want)) == (expected if isinstance(expected, list) else [expected])


def test_diagonals_of_large_matrices_are_placed_by_kernels() -> None:
    def gradient(x: Any, **params: Any) -> Any:
        return wg.grad(lambda x: np.sum(np.square(np.diagonal(x, **params))))(x)

    for shape, params in (((300, 280), {"offset": -2}), ((2, 280, 300), {"offset": 3, "axis1": 1, "axis2": 2})):
        x = np.random.default_rng(0).normal(size=shape)
        segments = partition_graph(flatten_calls(trace(partial(gradient, **params))(x)))
        assert segments.whole is not None
        (found,) = segments.run([x], checked)
        np.testing.assert_array_equal(found, gradient(x, **params))


def test_values_that_are_kept_for_a_row_are_not_read_on_a_diagonal() -> None:
    gradient = wg.grad(lambda x: np.sum(np.nanstd(np.diag(x), axis=1) * np.arange(1.0, 4.0)))
    x = np.array([0.4, -1.0, 2.0])
    (found,) = partition_graph(flatten_calls(trace(gradient)(x))).run([x], checked)
    np.testing.assert_allclose(found, gradient(x), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1])
def test_whole_numbers_of_pythons_are_compared_with_floats_exactly(n: int) -> None:
    def function(n: Any, x: Any) -> Any:
        return [n > x, n >= x, x < n, n == x, x != n, n > 2.5, n < 2.0**53, n >= 2**53 + 1, x == 2**53 + 1]

    segments = partition_graph(flatten_calls(trace(function)(3, 0.5)))
    assert segments.whole is not None, [part.reasons for part in segments.parts]
    for x in (3.0, float(n), math.nextafter(n, math.inf), math.inf, math.nan):
        assert list(map(bool, segments.run([n, x], checked))) == function(n, x)


def outcome(function: Callable[[], Any]) -> Any:
    """Return what a function returns, numbers as whole ones, or the error it ends with."""
    try:
        return list(map(int, function()))
    except (RangeError, ZeroDivisionError) as error:
        return error


def test_places_that_are_known_are_looked_at_once() -> None:
    x = np.random.default_rng(0).normal(size=(300, 300))
    places = np.arange(300)[::-1]
    graph = trace(lambda x: [x[places] * 2, added_at(x, places)])(x)
    assert require_same(graph, [x]).whole is not None


def test_numpy_warns_of_imaginary_parts_that_are_lost() -> None:
    args = [DOUBLE, np.complex128(1 + 2j)]
    with pytest.warns(np.exceptions.ComplexWarning):
        segments = require_same(trace(lambda x, z: written(x, 0, z))(*args), args)
    assert segments.parts[0].reasons == ("imaginary parts that are lost, of which NumPy warns",)


@together("case", REFUSED)
def test_what_kernels_do_not_know_is_refused_with_a_reason(case: str) -> None:
    function, args, reason = REFUSED[case]
    segments = require_same(trace(function)(*args), args)
    reasons = [r for part in segments.parts for r in part.reasons]
    assert any(found.startswith(reason) for found in reasons), reasons


@pytest.mark.parametrize("shape", [(0,), (-1, 2), (3, -1)])
def test_what_has_no_elements_or_no_known_length_is_not_native(shape: tuple[int, ...]) -> None:
    assert not is_native(Aval(shape, np.dtype(float)))


# Parameters that a rule does not know, and steps that make a mistake


def lowered_equations() -> Iterator[tuple[Graph, int]]:
    """Yield the graphs of samples with the places of the equations that are lowered, one for each primitive."""
    known, tried = set(), set()
    for sample in SAMPLES:
        if sample.primitive in tried and not OPTIONS.every:
            continue
        tried.add(sample.primitive)
        try:
            graph = value_graph(sample)
        except wg.errors.WengertError:
            continue
        graphs = [] if graph is None else [flatten_calls(graph)]
        if graph is not None and OPTIONS.every:
            gradient = gradient_graph(sample, graph)
            graphs += [] if gradient is None else [flatten_calls(gradient)]
        for found in graphs:
            refused = lower(found).refused
            for i, equation in enumerate(found.equations):
                if i not in refused and equation.primitive.name not in known:
                    known.add(equation.primitive.name)
                    yield found, i


def with_a_parameter(graph: Graph, place: int, value: Any) -> Graph:
    """Return a graph one of whose equations has a parameter that nobody has heard of."""
    equations = list(graph.equations)
    known = equations[place]
    equations[place] = Equation(known.primitive, known.inputs, {**known.params, "unheard_of": value}, known.outputs)
    return Graph(graph.inputs, equations, graph.outputs)


@pytest.mark.long
def test_parameters_that_a_rule_does_not_know_are_refused() -> None:
    count = 0
    for graph, i in lowered_equations():
        for value in (True, 0, "text", (1,), np.zeros(2)) if OPTIONS.every else (0, np.zeros(2)):
            refused = lower(with_a_parameter(graph, i, value)).refused
            assert refused[i].reason == "the parameters unheard_of", graph.equations[i].primitive.name
        count += 1
    assert count > (150 if OPTIONS.every else 100)


def test_parameters_that_a_routine_of_small_matrices_does_not_know_are_numpys() -> None:
    a = np.eye(3) * 2
    for call in (lambda x: np.linalg.solve(x, x[0]), np.linalg.inv, np.linalg.cholesky, wg.scipy.linalg.inv):
        graph = flatten_calls(wg.graph.trace(call)(a))
        (place,) = [i for i, equation in enumerate(graph.equations) if matrix_routine(equation)]
        assert matrix_routine(with_a_parameter(graph, place, True).equations[place]) is None


@pytest.mark.parametrize("step", ["spelled_out", "with_long_lanes", "with_merged_dimensions"])
def test_kernels_are_checked_after_each_step(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = flatten_calls(wg.graph.trace(lambda x: np.sum(np.sin(x) * x, 0))(np.ones((2, 3))))
    monkeypatch.setattr(config, "DEBUG", True)
    assert partition_graph(graph).parts

    def mistaken(program: Program) -> Program:
        return program.replace(buffers=program.buffers[1:])

    mistaken.__name__ = step
    monkeypatch.setattr(kernel_stages, step, mistaken)
    with pytest.raises(GraphError) as caught:
        partition_graph(graph)
    text = str(caught.value)
    assert text.startswith(f"step {step}: a program with a mistake (kernel: ")
    assert text.endswith("; a program that keeps all rules is needed. Mend the step.")
    monkeypatch.setattr(config, "DEBUG", False)
    assert partition_graph(graph).parts
