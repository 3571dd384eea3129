"""The order of loops: rows run over what is contiguous in what is largest, and what is broadcast is computed once.

Programs of arrays that lie in memory in every way, of broadcast values and sums over some axes, are what NumPy makes of
them: as kernels that somebody evaluates, natively, in lanes, in loops, and differentiated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.test_executables import EXECUTABLES, call_of_executable
from tests.test_lowering import Call, checked, programs_of, require_same
from wengert.kernel.opcodes import OPCODES
from wengert.kernel.schedule import with_schedule
from wengert.lowering.partition import partition_graph
from wengert.passes.pipeline import flatten_calls
from wengert.transforms.tracing import trace

Function = Callable[..., Any]
SHAPES = [(3, 40, 9), (40, 3, 17), (2, 3, 33), (70, 20), (20, 70), (1, 50), (64, 1), (5, 4)]
DTYPES = [np.float64, np.float32, np.complex128, np.int32, np.int64, np.bool_]


class Expression:
    """Write an expression of factors over some of the dimensions of a space, and sum it over some.

    Attributes:
        arrays: the arguments.
    """

    def __init__(self, seed: int, dtype: Any = None) -> None:
        self.random = np.random.default_rng(seed)
        self.space = self.choose(SHAPES)
        self.dtype = np.dtype(dtype or self.choose([*DTYPES[:3], np.float64, *DTYPES]))
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.reads = [self.factor() for _ in range(int(self.random.integers(1, 4)))]
        self.axes = tuple([d for d in range(len(self.space)) if self.random.random() < 0.5])
        self.reduce = self.choose(["sum", "sum", "mean", "max", "none"])
        self.text = (
            f"{self.space} {self.dtype} {self.reduce} over {self.axes} of {[read.__doc__ for read in self.reads]}"
        )

    def choose(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def factor(self) -> Function:
        """Enter an array over some of the dimensions; return what reads it, broadcast to the space."""
        rank = len(self.space)
        own = tuple([d for d in range(rank) if self.random.random() < 0.6]) or (int(self.random.integers(rank)),)
        order = tuple([int(k) for k in self.random.permutation(len(own))])
        reversed_ = tuple([slice(None, None, -1) if self.random.random() < 0.3 else slice(None) for _ in own])
        flat = self.random.normal(size=[self.space[own[k]] for k in order])
        array = (flat * 3).astype(self.dtype) if self.dtype.kind in "iu" else (flat > 0) if self.dtype == bool else flat
        self.arrays.append(np.asarray(array, self.dtype, order=self.choose("CF")))
        number, back = len(self.arrays) - 1, tuple(np.argsort(order))
        name = self.choose(["exp", "tanh", "sin", "plain", "plain"]) if self.dtype.kind in "fc" else "plain"
        places = tuple([slice(None) if d in own else None for d in range(rank)])

        def read(arrays: Any) -> Any:
            x = np.transpose(arrays[number], back)[reversed_]
            return (x if name == "plain" else getattr(np, name)(x * 0.5))[places]

        return read

    def __call__(self, *arrays: Any) -> Any:
        found = self.reads[0](arrays)
        for read in self.reads[1:]:
            found = found * read(arrays)
        found = np.broadcast_to(found, self.space) if self.reduce != "none" else found
        if self.reduce == "none" or not self.axes:
            return found
        if self.reduce == "max" and self.dtype.kind == "c":
            return np.sum(found, self.axes)
        return getattr(np, self.reduce)(found, self.axes)

    def scalar(self, *arrays: Any) -> Any:
        """Return a number, for gradients."""
        value = self(*arrays)
        return np.sum(np.real(value * np.conj(value)) if self.dtype.kind == "c" else value * value)

    @property
    def gradient(self) -> Function:
        return wg.grad(self.scalar, tuple(range(len(self.arrays))))


def in_lanes(expression: Expression) -> tuple[Function, list[Any]]:
    """Return an expression for a batch, along the first axis or the last one."""
    axes = [0 if k % 2 else -1 for k in range(len(expression.arrays))]
    arrays = [np.stack([x, x[::-1], x], axis) for x, axis in zip(expression.arrays, axes, strict=True)]
    return wg.vmap(expression, in_axes=tuple(axes)), arrays


def in_a_loop(expression: Expression) -> tuple[Function, list[Any]]:
    """Return an expression of rows, summed up over them, and all its values."""

    def step(total: Any, rows: Any) -> Any:
        return total + expression.scalar(*rows), expression(*rows)

    start = np.real(expression.scalar(*expression.arrays)) * 0
    return lambda *rows: wg.scan(step, start, rows), [np.stack([x, x[::-1]]) for x in expression.arrays]


WAYS: dict[str, Callable[[Expression], tuple[Function, list[Any]]]] = {
    "values": lambda expression: (expression, expression.arrays),
    "gradients": lambda expression: (expression.gradient, expression.arrays),
    "lanes": in_lanes,
    "loops": in_a_loop,
}


def require_kernels(way: str, seed: int, call: Call) -> None:
    """Require what carries out the kernels of a random expression to give what its graph does."""
    expression = Expression(seed, np.float64 if way == "gradients" and seed % 2 else None)
    if way == "gradients" and expression.dtype.kind not in "fc":
        return
    function, arrays = WAYS[way](expression)
    require_same(trace(function)(*arrays), arrays, call, least=1.0)


@pytest.mark.long
@together("way, seed", itertools.product(WAYS, range(30)))
def test_kernels_compute_what_graphs_do(way: str, seed: int) -> None:
    require_kernels(way, seed, checked)


@pytest.mark.parametrize("executable", EXECUTABLES)
@together("way, seed", itertools.product(WAYS, range(2)))
def test_native_code_computes_what_graphs_do(
    way: str, seed: int, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = call_of_executable(executable, monkeypatch)
    require_kernels(way, 100 * list(EXECUTABLES).index(executable) + seed, call)


N, M = 90, 70
A, U, V = (np.random.default_rng(k).normal(size=size) for k, size in enumerate([(N, M), N, M]))


def stages_of(function: Function, *arrays: Any) -> list[Any]:
    """Return the stages of all kernels of a function, as they are scheduled."""
    programs = programs_of(partition_graph(flatten_calls(trace(function)(*arrays))))
    return [stage for program in programs for kernel in with_schedule(program).kernels for stage in kernel.stages]


IN_ORDER: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "vector times matrix": (lambda a, u, v: u @ a, (A, U, V)),
    "matrix times vector": (lambda a, u, v: a @ v, (A, U, V)),
    "transposed": (lambda a, u, v: a.T @ u, (A, U, V)),
    "vector times transposed": (lambda a, u, v: v @ a.T, (A, U, V)),
    "labels": (lambda a, u, v: np.einsum("ij,i->j", a, u), (A, U, V)),
    "Fortran's order": (lambda a, u, v: a @ u + a.sum(1), (np.asfortranarray(A), V, U)),
    "sums of columns": (lambda a, u, v: np.sum(np.exp(a.T) * v[:, None], 1), (A, U, V)),
    "one after the other": (lambda a, u, v: np.tanh(u @ a) @ a.T, (A, U, V)),
    "weights": (wg.grad(lambda a, u, v: np.sum(np.tanh(u @ a) * v)), (A, U, V)),
    "vectors": (wg.grad(lambda u, a, v: np.sum(np.tanh(u @ a) * v)), (U, A, V)),
    "pages": (lambda a, u, v: np.sum(np.exp(a) * 0.5, -1), (np.stack([A, A, A]), U, V)),
    "pairs": (lambda a, u, v: np.diff(a, axis=0), (np.ones((5000, 2)), U, V)),
    "batches": (lambda a, u, v: np.einsum("bij,bi->bj", a, u), (np.stack([A, A]), np.stack([U, U]), V)),
}


@together("case", IN_ORDER)
def test_lanes_lie_side_by_side_in_what_is_largest(case: str) -> None:
    function, arrays = IN_ORDER[case]
    for stage in stages_of(function, *arrays):
        loads = [operation.at.coefficients for operation in stage.operations if operation.name == "load"]
        largest = max([sum(c != 0 for c in own) for own in loads], default=0)
        assert largest < 2 or {own[stage.lane] for own in loads if sum(c != 0 for c in own) == largest} == {1}, stage


def long_chain(w: Any, x: Any) -> Any:
    y = x @ w
    for _ in range(6):
        y = np.tanh(y) + np.sin(y)
    return np.sum(y)


ONCE: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "sums of rows": (lambda a, u, v: np.sum(np.exp(u)[:, None] * np.sin(v), 1), (A, U, V)),
    "sums of columns": (lambda a, u, v: np.sum(np.exp(u)[:, None] * np.sin(v), 0), (A, U, V)),
    "all": (lambda a, u, v: np.exp(u)[:, None] * np.sin(v) + a, (A, U, V)),
    "pieces": (lambda a, u, v: np.concatenate([np.exp(u[:40]), np.sin(u[40:])])[:, None] * a, (A, U, V)),
    "layers": (lambda a, u, v: np.tanh(a.T @ np.tanh(a @ v)), (np.tile(A, (4, 1)), U, V)),
    "gradient of layers": (wg.grad(lambda v, a: np.sum(np.tanh(a.T @ np.tanh(a @ v)))), (V, np.tile(A, (4, 1)))),
    "a chain behind a product": (wg.value_and_grad(long_chain), (V, np.tile(A, (40, 1)))),
}


@together("case", ONCE)
def test_what_is_costly_is_computed_once_and_a_vector_at_a_time(case: str) -> None:
    function, arrays = ONCE[case]
    for stage in stages_of(function, *arrays):
        if any(OPCODES[operation.name].cost >= 20 for operation in stage.operations):
            assert len(stage.extents) == 2, (case, stage)
            assert stage.extents[0] == stage.lane == 1, (case, stage)


def test_what_pairs_of_points_share_is_computed_once_in_vectors() -> None:
    def energy(p: Any) -> Any:
        return np.sum(1 / np.sqrt(np.sum((p[:, None] - p[None]) ** 2, 2) + 1))

    points = A[:, :3].copy()
    for stage in stages_of(wg.grad(energy), points):
        if any(operation.name == "divide" for operation in stage.operations):
            assert len(stage.extents) == 2, stage
            assert stage.extents[stage.lane] == N, stage
    want = wg.grad(energy)(points)
    np.testing.assert_allclose(wg.jit(wg.grad(energy))(points), want, rtol=1e-11)


def test_rows_stay_together_where_that_is_cheaper() -> None:
    """What is costly of a row alone does not make two kernels of one that would read all of a matrix again."""

    def softmax(a: Any) -> Any:
        moved = a - np.max(a, 1, keepdims=True)
        return moved - np.log(np.sum(np.exp(moved), 1, keepdims=True))

    for function in (softmax, wg.grad(lambda a: np.sum(softmax(a)[:, 3]))):
        (program,) = programs_of(partition_graph(flatten_calls(trace(function)(np.tile(A, (1, 40))))))
        assert len(program.kernels) == 1
