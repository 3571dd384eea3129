"""Products of matrices as steps of programs: by index maps, by labels, and in jitted functions."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of, together
from tests.test_emission import HOST, TARGETS
from wengert.compile.codegen import compile_segments, plain_data
from wengert.compile.compilation_cache import restore
from wengert.compile.programs import PROCESSOR, Processor
from wengert.core.graph.graph import Graph, evaluate
from wengert.emission.products import product_plans
from wengert.graph import trace
from wengert.kernel.checking import findings
from wengert.kernel.evaluation import Evaluator
from wengert.kernel.grammar import parse_program, text
from wengert.kernel.kernel import Affine, Buffer, Copy, Product, Program
from wengert.kernel.schedule import with_schedule
from wengert.lowering.partition import partition_graph
from wengert.lowering.rules import contractions
from wengert.native.threads.team import team_of
from wengert.passes.pipeline import flatten_calls
from wengert.passes.segments import Segments, as_array, as_value
from wengert.passes.transposed_products import permute_labels
from wengert.support.machine import MACHINE, Machine

SIZES = 1, 2, 3, 7, 8, 9, 17, 31, 33, 65
"""Lengths around the edges of tiles and vectors."""


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all products steps that can be."""
    monkeypatch.setattr(contractions, "MACHINE", MACHINE.replace(product_step=0, stacked_step=0))


# By index maps


def steps_in(random: np.random.Generator, lengths: Sequence[int], moves: Sequence[bool]) -> tuple[list[int], int]:
    """Return elements from one place to the next in an array that has some of the dimensions, and its size."""
    found, step = [0] * len(lengths), 1
    for d in random.permutation(len(lengths)):
        if moves[d]:
            found[d] = step
            step *= lengths[d]
    return found, step


def random_product(seed: int, dtype: Any) -> Program:
    """Return a program of one product with random dimensions, orders in memory, starts, directions, and addends."""
    random = np.random.default_rng(seed)
    kinds = ["rows", "columns", "terms", *random.choice(["rows", "columns", "terms", "stack"], random.integers(0, 3))]
    lengths = [int(random.choice(SIZES if n < 3 else SIZES[:4])) for n in range(len(kinds))]
    there = {
        "left": ("rows", "terms", "stack"),
        "right": ("columns", "terms", "stack"),
        "into": ("rows", "columns", "stack"),
    }
    maps, buffers = {}, []
    for name, own in (*there.items(), ("addend", there["into"])):
        repeated = name != "into" and random.random() < 0.15
        moves = [kind in own and not (repeated and kind == "rows") for kind in kinds]
        steps, size = steps_in(random, lengths, moves)
        start, room = (0, 0) if name == "into" else map(int, random.integers(0, 5, 2))
        for d in range(len(kinds)):
            if name != "into" and steps[d] and random.random() < 0.1:
                start, steps[d] = start + steps[d] * (lengths[d] - 1), -steps[d]
        maps[name] = Affine(start, tuple(steps))
        kind = "output" if name == "into" else "input"
        buffers.append(Buffer(name, (size + (0 if name == "into" else max(start, 0) * 0 + 5 + room),), dtype, kind))
    adds = random.random() < 0.5
    own = {"addend": "addend", "addend_at": maps["addend"]} if adds else {}
    step = Product("into", maps["into"], "left", maps["left"], "right", maps["right"], tuple(lengths), **own)
    names = ("left", "right", "addend") if adds else ("left", "right")
    if seed % 3 == 0:
        return added_in_place(step, buffers, int(random.integers(0, 9)), int(random.integers(1, 3)))
    return Program(names, ("into",), tuple([x for x in buffers if x.name in (*names, "into")]), (step,))


def added_in_place(step: Product, buffers: Sequence[Buffer], start: int, apart: int) -> Program:
    """Return a program that adds a product to a part of a copy of an array."""
    left, right, into, _ = buffers
    at = Affine(start, tuple([n * apart for n in step.at.coefficients]))
    whole = Buffer("into", (start + into.size * apart + 3,), into.dtype, "output")
    product = Product("into", at, "left", step.left_at, "right", step.right_at, step.extents, "into", at)
    base = Buffer("base", whole.shape, whole.dtype, "input")
    return Program(("left", "right", "base"), ("into",), (left, right, base, whole), (Copy("base", "into"), product))


def arrays_for(program: Program, seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    buffers = program.buffers_by_name
    return [random.standard_normal(buffers[name].shape).astype(buffers[name].dtype) for name in program.inputs]


@pytest.mark.long
@together("target", TARGETS)
def test_any_product_gives_the_same_on_each_processor(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in some_of(range(240), target):
        monkeypatch.setattr(product_plans, "MACHINE", packing(seed, block=(7, 16, 20)) if seed % 3 else MACHINE)
        require_evaluated(random_product(seed, np.dtype((np.float64, np.float32)[seed % 2])), target, seed)


@pytest.mark.long
@together("target", TARGETS)
def test_panels_that_are_packed_give_the_same_on_each_processor(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, (rows, columns) in enumerate([(37, 39), (41, 39), (25, 53), (26, 7)]):
        maps = Affine(0, (columns, 1, 0)), Affine(0, (11, 0, 1)), Affine(0, (0, 1, columns))
        sizes = {"into": rows * columns, "left": rows * 11, "right": 11 * columns}
        for dtype, own in itertools.product(map(np.dtype, ("float64", "float32")), (0, 1)):
            monkeypatch.setattr(product_plans, "MACHINE", packing(own, block=(7, 40, 40)))
            step = Product("into", maps[0], "left", maps[1], "right", maps[2], (rows, columns, 11))
            kinds = {"into": "output"}
            buffers = [Buffer(name, (size,), dtype, kinds.get(name, "input")) for name, size in sizes.items()]
            require_evaluated(Program(("left", "right"), ("into",), tuple(buffers), (step,)), target, seed)


@together("target", TARGETS)
@pytest.mark.long
def test_products_of_a_matrix_with_its_transpose_are_those_of_two_matrices(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(product_plans, "MIRRORED", 1)
    for seed, (size, terms, count) in enumerate([(61, 9, 2), (100, 33, 1), (53, 5, 3), (130, 21, 1)]):
        monkeypatch.setattr(product_plans, "MACHINE", packing(seed % 2, block=(7, 24, 50)))
        dtype, stack = np.dtype(("float64", "float32")[seed // 2]), size * terms
        line, term = ((terms, 1), (1, size))[seed % 2]
        at, left, right = (stack * size // terms, size, 1, 0), (stack, line, 0, term), (stack, 0, line, term)
        maps = [Affine(0, own) for own in (at, left, right)]
        sizes = {"into": count * size * size, "one": count * stack, "other": count * stack}
        buffers = [Buffer(n, (own,), dtype, "output" if n == "into" else "input") for n, own in sizes.items()]
        found = []
        for name in ("one", "other"):
            step = Product("into", maps[0], "one", maps[1], name, maps[2], (count, size, size, terms))
            program = Program(("one", "other"), ("into",), tuple(buffers), (step,))
            one = arrays_for(program, seed)[0]
            found += Processor(TARGETS[target]).compile_program(program)([one, one.copy()])
            plan = product_plans.ProductPlan(step, dtype.itemsize, TARGETS[target])
            assert plan.fields["mirrors"] == (name == "one")
        np.testing.assert_array_equal(found[0], found[1])


def product_of_few_rows(seed: int) -> Program:
    """Return a program of products with transposes, or their sum, whose rows fill vectors of eight, or nearly."""
    rows, columns, terms, stack = [(15, 37, 67, 1), (16, 50, 80, 3), (32, 81, 130, 2)][seed % 3]
    dtype, is_sum, line = np.dtype(("float64", "float32")[seed % 3 == 2]), seed % 2, ((terms, 1), (1, rows))[seed % 2]
    at = Affine(0, (0 if is_sum else rows * columns, columns, 1, 0))
    left, right = Affine(0, (rows * terms, line[0], 0, line[1])), Affine(0, (columns * terms, 0, terms, 1))
    sizes = {"left": stack * rows * terms, "right": stack * columns * terms, "addend": columns}
    sizes["into"] = rows * columns * (1 if is_sum else stack)
    buffers = [Buffer(n, (own,), dtype, "output" if n == "into" else "input") for n, own in sizes.items()]
    factors = "left", left, "right", right, (stack, rows, columns, terms)
    step = Product("into", at, *factors, "addend", Affine(0, (0, 0, 1, 0)))
    return Program(("left", "right", "addend"), ("into",), tuple(buffers), (step,))


@pytest.mark.long
@together("target", TARGETS)
def test_products_of_few_rows_with_a_transpose_are_those_of_its_transpose(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(6):
        monkeypatch.setattr(product_plans, "MACHINE", MACHINE.replace(transposed=(2, 9), block=(33, 24, 50)))
        program = product_of_few_rows(seed)
        (step,), itemsize = program.steps, program.buffers[0].dtype.itemsize
        plan = product_plans.ProductPlan(step, itemsize, TARGETS[target])
        assert plan.fields["transposed_row"] == step.extents[1]
        require_evaluated(program, target, seed)


def test_constants_whose_axes_are_permuted_are_no_products() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    graph = trace(lambda x, y: np.transpose(x) * y)(matrix, matrix.T)
    first, *rest = graph.equations
    constant = Graph(graph.inputs[1:], [first.using((matrix,)), *rest], graph.outputs)
    assert permute_labels(constant) is constant


@pytest.mark.long
@together("target", TARGETS)
def test_sums_across_lanes_give_the_same_on_each_processor(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(rows, columns, terms) for rows in range(1, 6) for columns in range(1, 6) for terms in (3, 16, 37)]
    for seed, (rows, columns, terms) in enumerate(some_of(sizes, target)):
        own = {"dots": (0, 0, 9), "dots_block": (20, 1024)[seed % 2]}
        monkeypatch.setattr(product_plans, "MACHINE", MACHINE.replace(**own))
        dtype, into = np.dtype(("float64", "float32")[seed % 2]), Affine(0, (columns, 1, 0))
        factors = "left", Affine(0, (terms, 0, 1)), "right", Affine(0, (0, terms, 1))
        step = Product("into", into, *factors, (rows, columns, terms), "addend", Affine(0, (0, 1, 0)))
        lengths = {"left": rows * terms, "right": columns * terms, "addend": columns, "into": rows * columns}
        kinds = [Buffer(name, (n,), dtype, "output" if name == "into" else "input") for name, n in lengths.items()]
        require_evaluated(Program(("left", "right", "addend"), ("into",), tuple(kinds), (step,)), target, seed)


def require_evaluated(program: Program, target: str, seed: int) -> None:
    """Require a program of a product to give on a processor what it gives by its records."""
    assert not findings(program), text(program)
    assert parse_program(text(program)) == program
    arrays = arrays_for(program, seed)
    (want,) = Evaluator().compile_program(program)(arrays)
    (found,) = Processor(TARGETS[target]).compile_program(program)(arrays)
    bound = (1e-13 if want.dtype == np.float64 else 1e-5) * max(np.abs(want).max(), 10)
    np.testing.assert_allclose(found, want, rtol=0, atol=bound, err_msg=f"seed {seed}\n{text(program)}")


def packing(seed: int, **fields: Any) -> Machine:
    """Return the machine as if its caches were so small that small factors are packed, in one way or the other."""
    small = {"second_cache": 1 << seed % 14, "packed_sides": (2, 9), "packed_once": (1000 * (seed % 2), 8)}
    small["transposed"] = (1, 9 * (seed % 2))
    return MACHINE.replace(**small, **{"block": (256, 16, 20), "dots": (0, 0, 9 * (seed % 4)), **fields})


def test_threads_can_share_all_products_that_take_long() -> None:
    for rows, columns, terms in ((128, 128, 1600), (200, 500, 300), (257, 256, 784), (288, 96, 900)):
        for left in ((terms, 0, 1), (1, 0, rows)):
            maps = Affine(0, left), Affine(0, (0, 1, columns)), Affine(0, (columns, 1, 0))
            step = Product("z", maps[2], "x", maps[0], "y", maps[1], (rows, columns, terms))
            plan = product_plans.ProductPlan(step, 8, HOST)
            assert plan.fields["blocks"] >= MACHINE.fewest_parts, (rows, columns, terms, left)


def test_threads_that_share_a_product_give_its_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    team = ctypes.c_void_p(team_of(2).address)
    programs = {n: random_product(n, np.dtype((np.float64, np.float32)[n % 2])) for n in some_of(range(120), "threads")}
    for seed, program in (programs | {n: product_of_few_rows(n) for n in (121, 123, 125)}).items():
        arrays = arrays_for(program, seed)
        (want,) = PROCESSOR.compile_program(program)(arrays)
        with monkeypatch.context() as patched:
            patched.setattr(product_plans, "MACHINE", packing(seed, clock=0.1, dots=MACHINE.dots))
            for place in (ctypes.c_void_p(), team):
                (found,) = Processor(HOST, place).compile_program(program)(arrays)
                np.testing.assert_array_equal(found, want, err_msg=f"seed {seed}\n{text(program)}")


X, Y, Z = (
    Buffer(name, (4,), np.dtype(float), kind) for name, kind in (("x", "input"), ("y", "input"), ("z", "output"))
)
AT = Affine(0, (2, 1, 0)), Affine(0, (2, 0, 1)), Affine(0, (0, 1, 2))


def of_two(**fields: Any) -> Program:
    """Return the program of a product of two by two, some fields of which are others."""
    own = {
        "into": "z",
        "at": AT[0],
        "left": "x",
        "left_at": AT[1],
        "right": "y",
        "right_at": AT[2],
        "extents": (2, 2, 2),
    }
    return Program(("x", "y"), ("z",), (X, Y, Z), (Product(**{**own, **fields}),))


@together(
    "fields, where",
    [
        ({"extents": (2, 2)}, "index maps of other dimensions"),
        ({"extents": (2, 2, 0)}, "a product over"),
        ({"left_at": Affine(1, (2, 0, 1))}, "x of 4 elements at (1, 4)"),
        ({"at": Affine(0, (1, 1, 0))}, "results that share cells of z"),
        ({"at": Affine(0, (1, 0, 0))}, "2 results for z of 4 elements"),
        ({"addend": "x"}, "'x' at None"),
        ({"addend": "z", "addend_at": AT[0]}, "step 0 reads z"),
        ({"addend": "z", "addend_at": Affine(3, (-2, -1, 0))}, "z at Affine(constant=3,"),
        ({"left": "z"}, "factors in z, which is changed"),
    ],
)
def test_what_does_not_fit_in_a_product_is_found(fields: dict[str, Any], where: str) -> None:
    assert not findings(of_two())
    assert any(where in place for place, _ in findings(of_two(**fields)))


# By labels


def products_of(program: Program) -> Iterator[Product]:
    """Yield the products of a program and of those that it runs."""
    yield from [step for step in program.steps if isinstance(step, Product)]
    for inner in program.programs:
        yield from products_of(inner)


def require_products(graph: Graph, args: Sequence[Any], count: int | None, bound: float = 1e-12) -> None:
    """Require the programs of a graph to have so many products, which each back end computes as NumPy does."""
    segments = partition_graph(flatten_calls(graph))
    programs = [with_schedule(part.program) for part in segments.parts if part.program is not None]
    assert not [finding for program in programs for finding in findings(program)]
    steps = [step for program in programs for step in products_of(program)]
    assert len(steps) == count or count is None, "\n".join(map(text, programs))
    with np.errstate(all="ignore"):
        want = graph(*args)
    for backend in (Evaluator(), PROCESSOR):
        found = segments.run(
            args, lambda one, arrays, backend=backend: backend.compile_program(with_schedule(one))(arrays)
        )
        for a, b in zip(found, want, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            finite = np.isfinite(b)
            np.testing.assert_array_equal(np.isfinite(a), finite)
            np.testing.assert_array_equal(a[~finite], b[~finite])
            scale = np.abs(b[finite]).max(initial=1.0)
            np.testing.assert_allclose(a[finite], b[finite], rtol=0, atol=bound * scale)


LABELS = [
    "ij,jk->ik",
    "ji,jk->ik",
    "ij,kj->ik",
    "ji,kj->ki",
    "aij,ajk->aik",
    "aij,jk->aik",
    "ij,ajk->aik",
    "aij,ajk->iak",
    "iaj,jak->aik",
    "ijk,jkl->il",
    "ijk,lkj->il",
    "abij,abjk->abik",
    "abij,bjk->aibk",
    "ijj,jk->ik",
    "ijc,jkc->ikc",
    "ija,kja->ika",
    "bthd,bshd->bhts",
    "bhts,bshd->bthd",
    "ijab,jk->ikab",
]


def in_layout(x: Any, how: str) -> Any:
    """Return an array in another memory order."""
    if how == "F":
        return np.asfortranarray(x)
    if how == "strided":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return np.flip(np.flip(x, 0).copy(), 0) if how == "flipped" else x


def drawn(random: np.random.Generator, shape: Sequence[int], dtype: Any) -> Any:
    """Return random numbers, complex ones if the dtype is."""
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


@together("labels", some_of(LABELS, "steps", 3))
def test_products_by_labels_are_steps(labels: str, small_steps: None) -> None:
    random = np.random.default_rng(len(labels))
    left, right = labels.split("->")[0].split(",")
    dtypes, layouts = (np.float64, np.float32, np.complex128, np.complex64), ("C", "F", "strided", "flipped")
    for dtype, how in some_of(list(itertools.product(dtypes, layouts)), labels):
        lengths = {
            name: int(random.choice(SIZES[1:8] if len(left) < 4 else SIZES[1:4])) for name in sorted(left + right)
        }
        own = [in_layout(drawn(random, [lengths[name] for name in names], dtype), how) for names in (left, right)]
        graph = wg.graph.trace(lambda x, y: np.einsum(labels, np.conj(x), y) * 2)(*own)
        require_products(graph, own, 1, 1e-12 if np.dtype(dtype).char in "dD" else 1e-4)


@pytest.mark.parametrize("labels", ["abc,dbec->dae", "dbec,abc->dae", "abc,bdce->ade", "sabc,sdbec->sdae"])
def test_columns_of_several_axes_lie_side_by_side(labels: str) -> None:
    lengths, random = dict(zip("sabcde", (2, 9, 23, 4, 8, 3), strict=True)), np.random.default_rng(len(labels))
    own = [random.standard_normal([lengths[name] for name in names]) for names in labels.split("->")[0].split(",")]
    graph = wg.graph.trace(lambda x, y: np.einsum(labels, x, y) * 2)(*own)
    require_products(graph, own, 1)
    segments = partition_graph(flatten_calls(graph))
    (product,) = [step for part in segments.parts for step in products_of(part.program)]
    assert product_plans.dimensions_of(product).columns.length == 24


SEVERAL: dict[str, int | None] = {
    "ij,i,ik->jk": 1,
    "ij,jk,kl->il": 2,
    "nd,kde,ne->nk": None,
    "ij,ij,ij->": 0,
    "ii,ij,jk,kl,l->k": None,
    "a,b,c,abc->c": None,
    "nk,nki,nkj->kij": None,
}
"""Products of several factors, and how many products of two they have that become steps, if lengths do not say."""


@together("labels", list(SEVERAL))
def test_products_of_several_factors_are_those_of_two(labels: str, small_steps: None) -> None:
    random = np.random.default_rng(len(labels))
    names = labels.split("->")[0].split(",")
    for dtypes in ((np.float64,), (np.float32, np.int8), (np.complex128, np.float64)):
        lengths = {name: int(random.choice(SIZES[1:6])) for name in sorted("".join({*"".join(names)}))}
        args = [drawn(random, [lengths[n] for n in own], dtypes[i % len(dtypes)]) for i, own in enumerate(names)]
        bound = 1e-4 if np.float32 in dtypes else 1e-12
        require_products(wg.graph.trace(lambda *xs: np.einsum(labels, *xs))(*args), args, SEVERAL[labels], bound)
        is_real = np.result_type(*args).kind == "f"
        gradient = wg.grad(lambda *xs: np.sum(np.einsum(labels, *xs) ** 2)) if is_real else None
        if gradient is not None:
            segments = partition_graph(flatten_calls(wg.graph.trace(gradient)(*args)))
            assert not [reason for part in segments.parts for reason in part.reasons]
            np.testing.assert_allclose(wg.jit(gradient)(*args), gradient(*args), rtol=bound, atol=bound)


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "matmul": (lambda x, y: x @ y, 1),
    "same twice": (lambda x, y: x @ x.T, 1),
    "transposed": (lambda x, y: y.T @ x.T, 1),
    "reshaped": (lambda x, y: np.reshape(x, (3, 4, 20)) @ y[:20], 1),
    "heads": (lambda x, y: np.einsum("thd,shd->hts", x.reshape(12, 4, 5), np.sin(x).reshape(12, 4, 5)), 1),
    "results twice": (lambda x, y: (x @ y, x @ y), 1),
    "result and argument": (lambda x, y: (x @ y, x, (x @ y).T), 1),
    "chain": (lambda x, y: np.exp(-np.tanh(x @ y) @ y.T) @ x.T, 3),
    "sum": (lambda x, y: np.sum(x @ y, axis=0) + y[0], 1),
    "integers beside": (lambda x, y: x @ np.arange(60).reshape(20, 3), 1),
    "real and complex": (lambda x, y: (x * 1j) @ y, 1),
    "conjugated": (lambda x, y: wg.grad(lambda a: np.sum(abs(a @ (y + 2j * y)) ** 2))(x + 1j * x), 2),
    "constant": (lambda x, y: np.ones((5, 12)) @ x @ y, 2),
    "written": (lambda x, y: added(x @ y), 1),
    "tensordot": (lambda x, y: np.tensordot(x.reshape(3, 4, 20), y.reshape(4, 5, 7), ((1,), (0,))), 1),
}


def added(x: Any) -> Any:
    x[1:3] += x[0]
    return x


SUMS: dict[str, Callable[..., Any]] = {
    "of products": lambda x, y: np.sin(x @ y + x @ np.sin(y)),
    "of rows": lambda x, y: x @ y + y[0],
    "with rows in front": lambda x, y: np.exp(y[0] + x @ y),
    "with a sum": lambda x, y: (x @ y + x[:, :7]) * 2,
    "with itself": lambda x, y: np.tanh(x[:, :7]) + x @ y,
    "turned": lambda x, y: (y.T @ x.T) + x.T[:7] * 2,
    "complex": lambda x, y: (x * 1j) @ y + x[:, :7] * 2j,
    "complex rows": lambda x, y: (x * 1j) @ y + y[0] * 2j,
    "with a factor that is a view": lambda x, y: x[:7, :7] @ y[:7].T + y[:7].T,
    "with what a factor is a view of": lambda x, y: x[:7, :7] @ y[:7].T + y[:7],
}


@together("name", SUMS)
def test_sums_with_a_product_are_one_step(name: str, small_steps: None) -> None:
    random = np.random.default_rng(7)
    args = random.standard_normal((12, 20)), random.standard_normal((20, 7))
    graph = wg.graph.trace(SUMS[name])(*args)
    require_products(graph, args, 2 if name == "of products" else 1)
    programs = [part.program for part in partition_graph(flatten_calls(graph)).parts if part.program is not None]
    assert [step for program in programs for step in products_of(program) if step.addend]


def test_what_is_read_twice_is_no_part_of_a_sum(small_steps: None) -> None:
    args = np.ones((9, 9)), np.arange(81.0).reshape(9, 9)
    graph = wg.graph.trace(lambda x, y: ((x @ y) + x, (x @ y) * 2))(*args)
    require_products(graph, args, 1)
    require_products(wg.graph.trace(lambda x, y: (x @ y) + (x @ y))(*args), args, 1)
    require_products(wg.graph.trace(lambda x, y: (x @ y) + y[:, :1])(*args), args, 1)
    require_products(wg.graph.trace(lambda x, y: np.arange(81.0).reshape(9, 9) + x @ y)(*args), args, 1)


PARTS: dict[str, Callable[..., Any]] = {
    "rows": lambda x, y: x[2:9] @ y,
    "columns": lambda x, y: x[:, 3:] @ y[3:],
    "backwards": lambda x, y: x[::-1, ::-2] @ y[9::-1],
    "of both": lambda x, y: x[:, :7] @ np.transpose(x[1::2, 7:14]),
    "one of several": lambda x, y: x[:, :10] @ np.reshape(y, (2, 10, 7))[1],
    "reshaped part": lambda x, y: np.reshape(x[3:9], (2, 3, 20)) @ y,
    "diagonal": lambda x, y: np.einsum("ij,jjk->ik", x[:, :7], np.reshape(y[:7], (7, 7, 1)) + np.zeros((7, 7, 7))),
    "of a product": lambda x, y: (x @ y)[:, :5] @ y[:5],
    "of a sum": lambda x, y: (x @ y + y[0])[2:] @ y[:7],
    "complex": lambda x, y: (x * 1j)[:, 4:] @ (y - 1j)[4:],
    "complex of a product": lambda x, y: (x @ (y * 1j))[:, ::-1] @ (x @ (y + 1j))[:7, 1:],
    "with a sum": lambda x, y: x[:, 5:] @ y[5:] + y[1],
    "read besides": lambda x, y: (x[:, 5:] @ y[5:], x[:, 5:] * 2),
    "repeated": lambda x, y: np.broadcast_to(x[0], (9, 20)) @ y,
}
"""Functions of parts of arrays that products read, some where they lie."""


@together("name, order", [(name, order) for name in PARTS for order in "CF"])
def test_parts_are_read_where_they_lie(name: str, order: Any, small_steps: None) -> None:
    random = np.random.default_rng(8)
    args = [np.array(random.standard_normal(shape), order=order) for shape in ((12, 20), (20, 7))]
    require_products(wg.graph.trace(PARTS[name])(*args), args, None)
    np.testing.assert_allclose(wg.jit(PARTS[name])(*args)[0], PARTS[name](*args)[0], rtol=1e-12)


def of_flat(w: Any, x: Any) -> Any:
    p = np.reshape(w, -1)
    return np.tanh(x @ np.reshape(p[:64], (8, 8)) + p[64:72]) @ np.reshape(p[72:136], (8, 8)).T + p[136:144]


FILLED: dict[str, tuple[Callable[..., Any], int]] = {
    "matrices of a stack": (lambda w, x: np.tanh(x @ w[0]) @ w[2] @ w[1], 2),
    "transposed": (lambda w, x: np.tanh(x @ w[1].T) @ w[0], 1),
    "of a flat array": (of_flat, 2),
    "overlapping": (lambda w, x: np.tanh(x @ w[0, :, 2:]) @ w[0, :6, :6] @ w[1, 2:], 2),
    "the same twice": (lambda w, x: np.tanh(x @ w[0]) @ w[0], 1),
    "columns": (lambda w, x: np.tanh(x @ w[0, :, :3]) @ w[0, :3, 3:], 1),
    "every other": (lambda w, x: np.tanh(x @ w[1]) @ w[0, ::2].T @ w[2, ::2], 2),
    "backwards": (lambda w, x: np.tanh(x @ w[1]) @ w[0, ::-1] @ w[2, :, ::-1], 1),
    "apart": (lambda w, x: np.tanh(np.tanh(x @ w[1]) @ w[:, :, 3].T) @ w[:, :, 5], 1),
    "at computed places": (lambda w, x: np.tanh(x @ w[np.array([2, 0])]) @ w[1], 0),
    "and all of it": (lambda w, x: np.tanh(x @ w[0]) @ w[2] + np.sum(w**3), 2),
    "and numbers": (lambda w, x: np.tanh(x @ w[0] * w[1, 0, 0]) @ w[2] * w[1, 7, 7], 2),
    "broadcast": (lambda w, x: np.tanh(x @ w[0]) @ w[1:] @ w[2], 2),
}
"""Functions of parts of an array, and how many products their gradients add to parts of one."""


@together("name", list(FILLED))
def test_products_are_added_to_parts_in_place(name: str, small_steps: None) -> None:
    function, count = FILLED[name]
    random = np.random.default_rng(3)
    gradient = wg.grad(lambda w, x: np.sum(function(w, x) ** 2))
    args = random.standard_normal((3, 8, 8)) / 3, random.standard_normal((5, 8))
    tangent = random.standard_normal((3, 8, 8))
    graph = wg.graph.trace(gradient)(*args)
    require_products(graph, args, None)
    steps = [
        s for part in partition_graph(flatten_calls(graph)).parts if part.program for s in products_of(part.program)
    ]
    assert len([step for step in steps if step.changes]) == count
    in_columns, single = (np.asfortranarray(args[0]), args[1]), [x.astype(np.float32) for x in args]
    variants: list[tuple[Callable[..., Any], Sequence[Any], float]] = [
        (lambda w, x: wg.jvp(lambda v: gradient(v, x), (w,), (tangent,))[1], args, 1e-12),
        (wg.vmap(gradient, (0, None)), (np.stack([args[0], tangent]), args[1]), 1e-12),
        (gradient, single, 1e-4),
        (gradient, in_columns, 1e-12),
    ]
    number = list(FILLED).index(name)
    if name in some_of(list(FILLED), "variants") or number < len(variants):
        varied, own, bound = variants[number % len(variants)]
        require_products(wg.graph.trace(varied)(*own), own, None, bound)
    if name not in some_of(list(FILLED), "values"):
        return
    changed = args[0].copy(), np.where(args[1] > 1.0, -0.0, args[1])
    changed[0][0, 1, 2], changed[0][2, 2, :] = np.nan, -0.0
    with np.errstate(all="ignore"):
        want, found = gradient(*changed), wg.jit(gradient, native=True)(*changed)
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(np.signbit(found[want == 0]), np.signbit(want[want == 0]))


def test_what_is_added_to_parts_leaves_others_alone(small_steps: None) -> None:
    def rounds(w: Any, x: Any) -> Any:
        return np.sum(wg.scan(lambda h, row: (np.tanh(h @ w[1] + row @ w[0]), None), x, np.ones((4, 5, 8)))[0])

    def written(w: Any, x: Any) -> tuple[Any, ...]:
        total = w * 2
        before = total.copy()
        np.add.at(total, 1, x.T @ x)
        after = total.copy()
        np.add.at(total, 0, np.sin(x).T @ total[1, :5])
        return before, after, total, w

    def read_later(w: Any, x: Any) -> tuple[Any, ...]:
        total = np.sin(w)
        before = total.copy()
        np.add.at(total, 1, x.T @ x)
        return total, np.tanh(x @ total[1]) @ np.reshape(before, (8, 24))

    def of_an_argument(w: Any, x: Any) -> tuple[Any, ...]:
        total = w.copy()
        np.add.at(total, 1, x.T @ x)
        return (total,)

    def of_a_row(w: Any, x: Any) -> tuple[Any, ...]:
        total = np.sin(w)
        np.add.at(total, (0, 1), np.reshape((x.T @ x)[2:3], 8))
        return (total,)

    weights, x = np.arange(192.0).reshape(3, 8, 8) / 999, np.arange(40.0).reshape(5, 8) / 99
    kept = weights.copy()
    for function in (written, read_later, of_an_argument, of_a_row, wg.grad(rounds)):
        found, want = wg.jit(function, native=True)(weights, x), function(weights, x)
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        require_products(wg.graph.trace(function)(weights, x), (weights, x), None)
        np.testing.assert_array_equal(weights, kept)


def test_no_part_of_an_argument_is_copied(small_steps: None) -> None:
    weights, x = np.arange(192.0).reshape(3, 8, 8) / 99, np.ones((5, 8))

    def once(w: Any, x: Any) -> Any:
        return x @ w[1] @ w[2, ::-1].T

    def rounds(w: Any, x: Any) -> Any:
        return wg.scan(lambda h, row: (np.tanh(h @ w[1] + row @ w[2, ::-1].T), None), x, np.ones((4, 5, 8)))[0]

    def permuted(w: Any, x: Any) -> Any:
        return np.swapaxes(np.einsum("ab,dbc->dac", x, w), 1, 2) + np.einsum("dab,cb->dac", w, x)

    for function, copies in ((once, 0), (rounds, 1), (permuted, 0)):
        (part,) = partition_graph(flatten_calls(wg.graph.trace(function)(weights, x))).parts
        assert part.program is not None
        step = part.program.programs[-1] if function is rounds else part.program
        assert len(list(products_of(step))) == 2
        assert len([own for own in step.steps if not isinstance(own, Product)]) == copies, text(step)
        np.testing.assert_allclose(wg.jit(function)(weights, x), function(weights, x), rtol=1e-12)


@together("name", FUNCTIONS)
def test_functions_of_products_are_programs(name: str, small_steps: None) -> None:
    function, count = FUNCTIONS[name]
    random = np.random.default_rng(1)
    args = random.standard_normal((12, 20)), random.standard_normal((20, 7))
    require_products(wg.graph.trace(function)(*args), args, count)


def test_what_is_not_finite_stays_what_numpy_makes_of_it(small_steps: None) -> None:
    random = np.random.default_rng(2)
    x, y = random.standard_normal((9, 17)), random.standard_normal((17, 10))
    for value, place in ((np.nan, (2, 3)), (np.inf, (8, 16)), (-np.inf, (0, 0))):
        for array in (x, y):
            changed = [one.copy() for one in (x, y)]
            changed[array is y][place[0], min(place[1], 9)] = value
            changed[array is x][:, 1] = 0.0
            require_products(wg.graph.trace(lambda a, b: a @ b)(*changed), changed, 1)


def test_sums_over_nothing_are_numpys(small_steps: None) -> None:
    for shapes in (((3, 0), (0, 4)), ((0, 3), (3, 4))):
        args = [np.ones(shape) for shape in shapes]
        np.testing.assert_array_equal(wg.jit(lambda x, y: x @ y + 1.0)(*args), args[0] @ args[1] + 1.0)


# In jitted functions


def network(parameters: Any, x: Any) -> Any:
    for weights, bias in parameters:
        x = np.tanh(x @ weights + bias)
    return np.sum(x**2)


def recurrent(weights: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h @ weights["h"] + x @ weights["x"])
        return h, h

    return np.sum(wg.scan(step, np.zeros((4, 12)), xs)[1] ** 2)


def growing(x: Any) -> Any:
    while np.sum(x) < 1e3:
        x = x @ x.T @ x * 0.3
    return x


PARAMETERS = [
    (np.random.default_rng(n).standard_normal((16, 16)) / 4, np.random.default_rng(n).standard_normal(16))
    for n in range(3)
]
NETWORK = PARAMETERS, np.random.default_rng(9).standard_normal((12, 16))
RECURRENT = (
    {
        "h": np.random.default_rng(3).standard_normal((12, 12)) / 4,
        "x": np.random.default_rng(4).standard_normal((5, 12)),
    },
    np.random.default_rng(5).standard_normal((6, 4, 5)),
)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "network": (wg.grad(network), NETWORK),
    "lanes": (wg.vmap(wg.grad(network), in_axes=(None, 0)), (PARAMETERS, np.stack([NETWORK[1]] * 3))),
    "second order": (lambda p, x: wg.jvp(wg.grad(network), (p, x), (p, x))[1], NETWORK),
    "recurrent": (wg.grad(recurrent), RECURRENT),
    "until": (growing, (np.random.default_rng(6).random((11, 11)) + 0.1,)),
}


@together("name", PROGRAMS)
def test_jitted_programs_of_products_run_natively(
    name: str, small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WENGERT_NATIVE", "1")
    function, args = PROGRAMS[name]
    lowered = wg.jit(function).lower(*args)
    assert lowered.segments.whole is not None, lowered.kernels
    assert list(products_of(lowered.segments.whole))
    want = wg.tree.leaves(function(*args))
    for found, expected in zip(wg.tree.leaves(wg.jit(function)(*args)), want, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


OF_THREE: dict[str, Callable[..., Any]] = {
    "three factors": lambda x, y: np.einsum("ij,jk,lk->il", x, y, np.sort(x @ y)),
    "cut in three": lambda x, y: np.einsum("ij,jk,ik->k", x, np.tanh(y), np.linalg.qr(x @ y)[0][:, :7]),
}


@together("name", [*some_of([*FUNCTIONS, *SUMS, *PARTS], "kept", 3), *OF_THREE])
def test_graphs_with_products_are_kept_and_found_again(name: str, small_steps: None) -> None:
    """Segments are kept by the numbers of equations and variables."""
    function = FUNCTIONS[name][0] if name in FUNCTIONS else {**SUMS, **PARTS, **OF_THREE}[name]
    args = np.random.default_rng(1).standard_normal((12, 20)), np.random.default_rng(2).standard_normal((20, 7))
    graph = flatten_calls(wg.graph.trace(lambda x, y: (function(x, y), np.sort(y.T @ x.T), x.T * 2))(*args))
    segments = compile_segments(graph)
    described = plain_data(segments, PROCESSOR, {})
    again = Segments(graph, restore(graph, described, PROCESSOR))
    for part, found in zip(segments.parts, again.parts, strict=True):
        assert part.graph.equations == found.graph.equations
        assert (part.graph.inputs, part.graph.outputs) == (found.graph.inputs, found.graph.outputs)
        if part.program is not None:  # what NumPy computes of a part is what its program does
            given = [
                np.random.default_rng(n).standard_normal(v.shape).astype(v.dtype)
                for n, v in enumerate(part.graph.inputs)
            ]
            own = PROCESSOR.load(part.program)(list(map(as_array, part.graph.inputs, given)))
            for v, a, b in zip(part.graph.outputs, own, evaluate(part.graph, given), strict=False):
                np.testing.assert_allclose(as_value(v, a), b, rtol=1e-9, atol=1e-9)


def test_what_is_read_no_more_gives_its_memory_to_others() -> None:
    def chain(x: Any) -> Any:
        y = x
        for _ in range(8):
            y = np.tanh(y @ x)
        return y

    x = np.random.default_rng(8).standard_normal((64, 64)) / 8
    lowered = wg.jit(chain).lower(x)
    assert len(lowered.cost.products) == 8
    assert lowered.cost.memory < 4 * x.nbytes
    require_products(wg.graph.trace(chain)(x), (x,), 8)
