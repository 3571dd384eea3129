"""Native code of kernels: its values against the evaluation of kernels, for several processors."""

from __future__ import annotations

import ast
import ctypes
import gc
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import a_third, some_of, together
from tests.kernels import as_if, inputs_for, random_program
from wengert import emission, kernel
from wengert.compile.programs import Processor
from wengert.emission import parallel_split, plans, prefetch, programs, stages
from wengert.emission.external_functions import function_named
from wengert.kernel.checking import require_sound
from wengert.kernel.evaluation import evaluate
from wengert.kernel.functions import FUNCTIONS, Features, evaluate_expression, expression_of
from wengert.kernel.kernel import Affine, Bound, Buffer, Keep, Kernel, Operation, Program, Reduce, Stage, Store
from wengert.kernel.opcodes import OPCODES
from wengert.native.availability import UnavailableError
from wengert.native.engine import Target, emit_object, host
from wengert.native.threads.team import team_of
from wengert.support.machine import MACHINE

DOUBLE = np.dtype(float)
HOST = host()
X86 = HOST.triple.startswith("x86_64")
TARGETS = {"host": HOST}
if X86:
    TARGETS["avx2"] = Target(HOST.triple, "x86-64", "+avx2,+fma,+bmi,+bmi2,+f16c")
    TARGETS["sse2"] = Target(HOST.triple, "x86-64", "")
EXTENTS = (1, 2, 7, 8, 9, 15, 16, 17, 100, 1000)
ROUNDING = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


def load(buffer: str, *coefficients: int, constant: int = 0, dtype: Any = DOUBLE) -> Operation:
    return Operation("load", (), np.dtype(dtype), buffer, Affine(constant, coefficients))


def real(name: str, *operands: int, **rest: Any) -> Operation:
    return Operation(name, operands, DOUBLE, **rest)


def program(kernels: Sequence[Kernel], **buffers: tuple[str, tuple[int, ...]]) -> Program:
    """Return a program over float64 buffers, each given as its kind and its shape."""
    made = tuple(Buffer(name, shape, DOUBLE, kind) for name, (kind, shape) in buffers.items())  # type: ignore[arg-type]  # kinds are literals
    named = {kind: tuple(b.name for b in made if b.kind == kind) for kind in ("input", "output")}
    return Program(named["input"], named["output"], made, tuple(kernels))


def require_equal(made: Program, inputs: Sequence[Any], target: Target = HOST, team: int | None = None) -> None:
    """Compare native code with the evaluation, and its bits with those that a team computes."""
    require_sound(made)
    place = ctypes.c_void_p()
    run = Processor(target, place).compile_program(made)
    found = run(inputs)
    if team is not None:
        place.value = team
        assert [x.tobytes() for x in run(inputs)] == [x.tobytes() for x in found]
    for got, expected in zip(found, evaluate(made, inputs), strict=True):
        assert got.dtype == expected.dtype
        rounding = ROUNDING.get(got.dtype, 0)
        np.testing.assert_allclose(got, expected, rtol=rounding, atol=rounding)


def test_what_writes_a_program_ends_without_the_collector_of_garbage() -> None:
    """It holds all that it wrote, of which the collector would go through a hundred thousand objects."""
    square = load("x", 0, 1), real("multiply", 0, 0)
    stage = Stage((1, 1001), square, (Store("y", Affine(0, (0, 1)), 1),), lane=1)  # whole steps, and one with a mask
    made = program([Kernel(1, (stage,))], x=("input", (1001,)), y=("output", (1001,)))
    gc.disable()
    try:
        programs.Emission(made, HOST).emit()
        left = [x for x in gc.get_objects() if isinstance(x, programs.Emission | stages.StageEmitter)]
    finally:
        gc.enable()
    assert not left


# -------------------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_sum_and_its_gradient_are_one_pass(target: Target) -> None:
    random = np.random.default_rng(0)
    for n in EXTENTS:
        square = load("x", 0, 1), real("multiply", 0, 0), real("add", 0, 0)
        total = Reduce("add", 1, "total", (0, 1), "value", Affine(0, (0, 0)))
        stage = Stage((1, n), square, (Store("gradient", Affine(0, (0, 1)), 2),), (total,), lane=1)
        made = program([Kernel(1, (stage,))], x=("input", (n,)), value=("output", ()), gradient=("output", (n,)))
        require_equal(made, [random.normal(size=n)], target)


DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "?")


def squares(dtype: Any, rows: int, columns: int) -> Program:
    """Return x x, its sums over rows, columns and all, and the extremes of the rows of x in another dtype."""
    along, each, wide = Affine(0, (columns, 1)), Affine(0, (1,)), np.dtype(np.float32)
    operations = (
        Operation("load", (), dtype, "x", along),
        Operation("and" if dtype.kind == "b" else "multiply", (0, 0), dtype),
        Operation("convert", (0,), wide),
    )
    add, most = ("or", "and") if dtype.kind == "b" else ("add", "maximum")
    reductions = (
        Reduce(add, 1, "row", (1,), "sum"),
        Reduce(most, 0, "total", (0, 1), "most", Affine(0, (0, 0))),
        Reduce(add, 1, "column", (0,), "columns", Affine(0, (0, 1))),
        Reduce("minimum", 2, "row", (1,), "least"),
    )
    stage = Stage((rows, columns), operations, (Store("y", along, 1),), reductions, 1)
    keeps = Keep("sum", "sums", each), Keep("least", "leasts", each)
    shapes = {"y": (rows, columns), "most": (), "columns": (columns,), "sums": (rows,), "leasts": (rows,)}
    buffers = [Buffer(n, shape, wide if n == "leasts" else dtype, "output") for n, shape in shapes.items()]
    return Program(
        ("x",),
        tuple(shapes),
        (Buffer("x", (rows, columns), dtype, "input"), *buffers),
        (Kernel(rows, (stage,), keeps),),
    )


@pytest.mark.parametrize("code", DTYPES)
def test_all_dtypes_and_extents(code: str) -> None:
    dtype, random = np.dtype(code), np.random.default_rng(0)
    for target, extents in some_of(list(itertools.product(TARGETS.values(), ((2, 1), (3, 7), (2, 100)))), code, 3):
        require_equal(squares(dtype, *extents), [random.integers(0, 11, extents).astype(dtype)], target)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("loops", [False, True])
def test_rows_that_the_next_stage_reads_stay_in_registers(loops: bool, target: Target) -> None:
    rows, size = 12, target.vector_bytes // 4  # two vectors
    each, whole = Affine(0, (0, 1)), Affine(0, (size, 1))
    square = Stage((rows, size), (load("x", size, 1), real("multiply", 0, 0)), (Store("w", each, 1),), lane=1)
    twice = load("w", 0, 1), real("add", 0, 0)
    sums = Reduce("minimum", 1, "row", (1,), "n"), Reduce("add", 1, "column", (0,), "sums", each)
    smallest = Stage((rows, size), twice, (Store("y", whole, 1),), sums, lane=1)
    outer = load("w", 0, 1, 0), load("x", size, 0, 1), real("multiply", 0, 1)
    nested = Reduce("add", 2, "nested", (2,), "v", Affine(0, (0, 1, 0)))
    again = Stage((rows, size, size), outer, (), (nested,), lane=1)
    last = Stage((rows, size), (load("v", 0, 1),), (Store("z", whole, 0),), lane=1)
    stages, buffers = (square, smallest), {"x": ("input", (rows, size)), "y": ("output", (rows, size))}
    buffers |= {"sums": ("output", (size,)), "n_kept": ("output", (rows,)), "w": ("row", (size,))}
    if loops:
        stages += again, last
        buffers |= {"v": ("row", (size,)), "z": ("output", (rows, size))}
    for tile in (1, 4):
        made = program([Kernel(rows, stages, (Keep("n", "n_kept", Affine(0, (1,))),), tile)], **buffers)
        require_equal(made, [np.random.default_rng(0).normal(size=(rows, size))], target)
        written = ("y", "w", "z") if loops else ("y",)  # w because of the loop; sums are filled, and added to
        assert Processor(target).render(made).text.count("store <") == 2 * (2 + tile * len(written))


@together("target", TARGETS.values())
@together("code", ["f4", "f8"])
@together("lane", [0, 1])
def test_the_strong_zero_is_zero_wherever_the_cotangent_is(lane: int, code: str, target: Target) -> None:
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -2.0, 1e-310, 1e-40], code)
    x, t = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(special, special))
    loads = [load(name, 0, 1, dtype=code) for name in "xt"]
    stage = Stage((1, x.size), (*loads, Operation("guarded", (0, 1), x.dtype)), (Store("y", Affine(0, (0, 1)), 2),))
    kinds = ("x", "input"), ("t", "input"), ("y", "output")
    buffers = tuple(Buffer(name, x.shape, x.dtype, kind) for name, kind in kinds)  # type: ignore[arg-type]  # as above
    made = Program(("x", "t"), ("y",), buffers, (Kernel(1, (stage.replace(lane=lane),)),))
    require_sound(made)
    (found,) = Processor(target).compile_program(made)([x, t])
    expected = np.where(t == 0, 0, x)  # which a multiple of t is there, unless it is NaN
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(expected)]))
    np.testing.assert_array_equal(evaluate(made, [x, t])[0], expected)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("code", ["i1", "f4", "f8"])
@pytest.mark.parametrize("rows", [1, 8])
def test_how_often_something_holds_is_exact(rows: int, code: str, target: Target) -> None:
    whole, each = np.dtype(np.int64), Affine(0, (1,))
    tiles = (1, False), (rows, False), (1, True)  # of a value that sums of all need, too, none is one
    for n, (tile, total) in some_of(list(itertools.product(EXTENTS, tiles)), f"{rows}, {code}, {target.masks}"):
        zero = Operation("constant", (), np.dtype(code), value=0)
        positive = Operation("greater", (0, 1), np.dtype(bool))
        operations = load("x", n, 1, dtype=code), zero, positive, Operation("convert", (2,), whole)
        counts = Reduce("add", 3, "row", (1,), "n"), Reduce("add", 3, "total", (0, 1), "total", Affine(0, (0, 0)))
        shapes = {"x": ("input", (rows, n)), "y": ("output", (rows,)), "total": ("output", ())}
        dtypes = {"x": np.dtype(code), "y": whole, "total": whole}
        buffers = tuple(Buffer(name, shape, dtypes[name], kind) for name, (kind, shape) in shapes.items())  # type: ignore[arg-type]  # as above
        own = counts if total else counts[:1]
        stage = Stage((rows, n), operations, (), own, lane=1)
        kept = (Keep("n", "y", each),)
        given = buffers if len(own) > 1 else buffers[:2]
        outputs = tuple(b.name for b in given if b.kind == "output")
        made = Program(("x",), outputs, given, (Kernel(rows, (stage,), kept, tile),))
        x = np.random.default_rng(n).integers(-3, 4, (rows, n)).astype(code)
        require_equal(made, [x], target)
        assert "ctpop" in Processor(target).render(made).text or not target.masks or len(own) > 1


def test_sums_of_nothing_are_zero() -> None:
    _, _, columns, sums, _ = Processor().compile_program(squares(DOUBLE, 0, 3))([np.zeros((0, 3))])
    assert (columns.tolist(), sums.tolist()) == ([0, 0, 0], [])
    _, _, columns, sums, _ = Processor().compile_program(squares(DOUBLE, 2, 0))([np.zeros((2, 0))])
    assert (columns.tolist(), sums.tolist()) == ([], [0, 0])


def test_maxima_keep_what_is_no_number() -> None:
    for n in EXTENTS:
        for place in {0, n // 2, n - 1}:
            x = np.random.default_rng(n).normal(size=(1, n))
            x[0, place] = np.nan
            y, most, *_, leasts = Processor().compile_program(squares(DOUBLE, 1, n))([x])
            assert np.isnan(most)
            assert np.isnan(leasts).all()
            assert np.isnan(y).sum() == 1


def rosenbrock(n: int) -> Program:
    """Sum 100 (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2 and its gradient, which reads its neighbours under guards."""
    one, hundred, two = (real("constant", value=value) for value in (1.0, 100.0, 2.0))

    def difference(x: int, y: int) -> tuple[Operation, ...]:
        return real("multiply", x, x), real("subtract", y, -1)

    value = (load("x", 0, 1), load("x", 0, 1, constant=1), real("multiply", 0, 0), real("subtract", 1, 2))
    value += (hundred, real("multiply", 3, 3), real("multiply", 4, 5), one, real("subtract", 7, 0))
    value += (real("multiply", 8, 8), real("add", 6, 9))
    total = Reduce("add", 10, "total", (0, 1), "value", Affine(0, (0, 0)))
    right = kernel.kernel.Bound(1, 0, n - 1)
    left = kernel.kernel.Bound(1, 1, n)
    gradient = (
        load("x", 0, 1),
        load("x", 0, 1, constant=1).replace(guard=(right,)),
        load("x", 0, 1, constant=-1).replace(guard=(left,)),
        *(real("multiply", 0, 0), real("subtract", 1, 3), real("multiply", 2, 2), real("subtract", 0, 5)),  # 3 to 6
        *(real("constant", value=-400.0), real("multiply", 0, 4), real("multiply", 7, 8)),  # 7 to 9
        *(one, real("subtract", 0, 10), two, real("multiply", 11, 12), real("add", 9, 13)),  # 10 to 14
        *(real("constant", value=200.0), real("multiply", 15, 6), real("constant", value=0.0)),  # 15 to 17
        *(real("pick", 14, 17, guard=(right,)), real("pick", 16, 17, guard=(left,)), real("add", 18, 19)),  # 18 to 20
    )
    stages = (
        Stage((1, n - 1), value, (), (total,), 1),
        Stage((1, n), gradient, (Store("gradient", Affine(0, (0, 1)), 20),), (), 1),
    )
    buffers = {"x": ("input", (n,)), "value": ("output", ()), "gradient": ("output", (n,))}
    return program([Kernel(1, stages)], **buffers)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("n", [2, 10, 200])
def test_rosenbrock_reads_its_neighbours(n: int, target: Target) -> None:
    require_equal(rosenbrock(n), [np.random.default_rng(n).normal(size=n)], target)


# -------------------------------------------------------------------------------------------------- at random


def without_functions(made: Program) -> Program:
    """Return a program of opcodes alone."""

    def of(stage: Stage) -> Stage:
        changed = (o.replace(name="ceil") if o.name == "sin" else o for o in stage.operations)
        return stage.replace(operations=tuple(changed))

    kernels = (k.replace(stages=tuple(map(of, k.stages))) for k in made.kernels)
    return made.replace(steps=tuple(kernels))


def halves(arrays: Sequence[Any]) -> list[Any]:
    """Return numbers near others that can be added and multiplied without rounding, so that comparisons agree."""
    return [(np.round(2 * x) / 2).astype(x.dtype) if x.dtype.kind == "f" else x for x in arrays]


def short_blocks(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sums of a few terms have blocks: of one term, of two, or in lanes without what roundings lose."""
    if part:
        constants = {"TERMS": part, "SHORT": 100 if part == 2 else 1, "LONG_BLOCK": 1}
        for module, name, value in (*[(plans, *item) for item in constants.items()], (parallel_split, "TERMS", part)):
            monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(parallel_split, "ROWS", 2)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("part", range(3))
def test_random_programs(part: int, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    as_if(monkeypatch, written_vectors=(0, 1, 4)[part], piece=(1, 8, 512)[part])  # so that short loops are loops, too
    if part == 1:  # everything is far away
        as_if(monkeypatch, prefetched=0, idle=1e-9)
        for module in (plans, prefetch):
            monkeypatch.setattr(module, "is_far", lambda buffer: buffer.kind != "row")
    short_blocks(part, monkeypatch)
    for seed in range(part, a_third(45), 3):
        made = without_functions(random_program(seed))
        require_equal(made, halves(inputs_for(made, seed)), target)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_what_is_written_quickly_has_the_same_bits(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(200, 200 + a_third(15)):
        made = random_program(seed)
        inputs = inputs_for(made, seed)
        with np.errstate(all="ignore"):
            expected = Processor(target).compile_program(made)(inputs)
            monkeypatch.setattr(programs, "LITTLE", 2)
            brief = Processor(target).render(made)
            monkeypatch.undo()
            found = Processor(target).load(Processor(target).build(brief))(inputs)
        assert "optnone" in brief.text
        assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]


def test_what_runs_beside_long_kernels_is_written_quickly() -> None:
    n = 1_000_000
    square = load("x", 0, 1), real("multiply", 0, 0)
    total = Reduce("add", 1, "total", (0, 1), "value", Affine(0, (0, 0)))
    long = Kernel(1, (Stage((1, n), square, (), (total,), 1),))
    root = load("value", 0), real("sqrt", 0)
    short = Kernel(1, (Stage((1,), root, (Store("root", Affine(0, (0,)), 1),)),))
    buffers = {"x": ("input", (n,)), "value": ("output", ()), "root": ("output", ())}
    together, alone = program([long, short], **buffers), program([short], value=("input", ()), root=("output", ()))
    assert Processor().render(together).text.count("optnone") == 1
    assert "optnone" not in Processor().render(alone).text
    value, found = Processor().compile_program(together)([np.ones(n)])
    assert (value, found) == (n, 1e3)


@pytest.mark.parametrize("part", range(2))
def test_parts_have_the_same_bits_for_every_number_of_threads(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    as_if(monkeypatch, clock=1e-9, part_lanes=16, fewest_parts=2, written_vectors=(0, 4)[part], piece=1)
    short_blocks(2 - part, monkeypatch)
    team = team_of(2).address
    for seed in range(100 + part, 100 + a_third(30), 2):
        made = without_functions(random_program(seed))
        require_equal(made, halves(inputs_for(made, seed)), team=team)


def test_long_sums_are_accurate_and_shared() -> None:
    n = 1_000_003
    x = np.random.default_rng(0).normal(size=n) + 1
    square = load("x", 0, 1), real("multiply", 0, 0)
    total = Reduce("add", 1, "total", (0, 1), "value", Affine(0, (0, 0)))
    made = program([Kernel(1, (Stage((1, n), square, (), (total,), 1),))], x=("input", (n,)), value=("output", ()))
    places = ctypes.c_void_p(), ctypes.c_void_p(team_of(2).address)
    (found,), (shared,) = (Processor(team=place).compile_program(made)([x]) for place in places)
    assert found.tobytes() == shared.tobytes()
    assert abs(float(found) / float(np.sum(x.astype(np.longdouble) ** 2)) - 1) < 1e-15


# -------------------------------------------------------------------------------------------------- functions

SPECIAL = (0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-310, -1e-40, 1e300, -1e30, 1e22, 0.5, 2.5, 710, -746, 88, 3e15)


def functions_of(names: Sequence[str], dtype: Any, size: int, lane: int) -> Program:
    """Return a program that computes each function of x, or of x and y."""
    at = Affine(0, (0, 1))
    operations = [Operation("load", (), dtype, name, at) for name in "xy"]
    operations += [Operation(name, (0, 1)[: OPCODES[name].arity], dtype) for name in names]
    stores = tuple(Store(name, at, 2 + n) for n, name in enumerate(names))
    buffers = [Buffer(name, (size,), dtype, "input") for name in "xy"]
    buffers += [Buffer(name, (size,), dtype, "output") for name in names]
    return Program(
        ("x", "y"), tuple(names), tuple(buffers), (Kernel(1, (Stage((1, size), tuple(operations), stores, (), lane),)),)
    )


@pytest.mark.parametrize("lane", [1, 0])
@pytest.mark.parametrize("dtype", [np.dtype(np.float64), np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_functions_have_the_bits_of_their_expressions(target: Target, dtype: Any, lane: int) -> None:
    every = target is HOST and lane
    names = tuple(FUNCTIONS) if every else ("sin", "cos", "power", "log", "expit")
    random = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        x = np.concatenate([SPECIAL, random.normal(size=63) * 5, random.normal(size=20) * 1e3]).astype(dtype)
    y = random.permutation(x)
    found = Processor(target).compile_program(functions_of(names, dtype, len(x), lane))([x, y])
    features = Features(fma=target.fuses, scaling=target.scales, numbers=not lane)
    for name, got in zip(names, found, strict=True):
        (expected,) = evaluate_expression(expression_of(name, dtype, features), *(x, y)[: OPCODES[name].arity])
        np.testing.assert_array_equal(got, expected, name)


@pytest.mark.skipif(not HOST.masks, reason="masks cost here")
@pytest.mark.parametrize("size", [100_096, 100_003])
def test_what_takes_long_at_a_point_has_one_body(size: int) -> None:
    made = functions_of(("power",), DOUBLE, size, 1)
    assert Processor().render(made).text.count("> @power.rare0.float64x8(<8 x double> %") == 1
    x, y = np.random.default_rng(0).random((2, size))
    np.testing.assert_allclose(Processor().compile_program(made)([x, y])[0], x**y, rtol=1e-14)


@pytest.mark.parametrize("rows", [1, 3])
def test_what_is_far_away_is_reached_without_masks(rows: int) -> None:
    columns = MACHINE.second_cache // 8 // rows + 5
    made = halved_exponentials(rows, columns)
    text = Processor().render(made).text
    assert "= load <" in text
    assert " store <" in text
    (x,) = np.random.default_rng(0).random((1, rows, columns))
    require_equal(made, [x])


def halved_exponentials(rows: int, columns: int) -> Program:
    """Return the exponentials of half of each number."""
    along = Affine(0, (columns, 1))
    half = real("constant", value=0.5), load("x", columns, 1), real("multiply", 0, 1), real("exp", 2)
    stage = Stage((rows, columns), half, (Store("y", along, 3),), lane=1)
    return program([Kernel(rows, (stage,))], x=("input", (rows, columns)), y=("output", (rows, columns)))


@pytest.mark.parametrize("columns", [61, 192, 600])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_rows_to_come_and_results_are_brought_into_the_caches(target: Target, columns: int) -> None:
    rows = MACHINE.second_cache // 8 // columns + 3
    along, each = Affine(0, (columns, 1)), Affine(0, (0, 1))
    largest = Reduce("maximum", 0, "row", (1,), "n")
    first = Stage((rows, columns), (load("x", columns, 1),), (), (largest,), lane=1)
    moved = load("x", columns, 1), real("number", buffer="n"), real("subtract", 0, 1), real("exp", 2)
    second = Stage((rows, columns), moved, (Store("w", each, 3),), (Reduce("add", 3, "row", (1,), "s"),), lane=1)
    quotient = load("w", 0, 1), real("number", buffer="s"), real("divide", 0, 1)
    third = Stage((rows, columns), quotient, (Store("y", along, 2),), lane=1)
    shapes: dict[str, Any] = {
        "x": ("input", (rows, columns)),
        "y": ("output", (rows, columns)),
        "w": ("row", (columns,)),
    }
    made = program([Kernel(rows, (first, second, third))], **shapes)
    (of_first, of_second, of_third) = prefetch.brought_ahead(made.kernels[0], made.buffers_by_name)
    assert of_first == of_third == []
    long = 8 * columns >= MACHINE.prefetched
    assert of_second == [prefetch.Ahead("x", along, 1, False), prefetch.Ahead("y", along, 0, True)] * long
    assert ("@llvm.prefetch" in Processor(target).render(made).text) == long
    require_equal(made, [np.random.default_rng(0).normal(size=(rows, columns))], target, team_of(2).address)


@pytest.mark.parametrize(("size", "first"), [(64, "exp"), (100, ""), (600, ""), (40_003, "")])
@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_long_pieces_of_what_is_joined_have_bodies_of_their_own(
    target: Target, along: int, size: int, first: str
) -> None:
    """The squares or exponentials of an array, three times the array, and its sums with 1, one after the other."""
    extents = (3 * 5, size) if along == 0 else (1, 3 * size)
    each = 5 if along == 0 else size
    steps = (size, 1) if along == 0 else (0, 1)
    guards = [(Bound(along, k * each, (k + 1) * each),) for k in range(3)]
    loads = [
        Operation("load", (), DOUBLE, "x", Affine(-k * each * steps[along], steps), guard)
        for k, guard in enumerate(guards)
    ]
    ones = real("constant", value=3.0), real("constant", value=1.0)
    values = real("exp", 0) if first else real("multiply", 0, 0), real("multiply", 1, 3), real("add", 2, 4)
    picks = real("pick", 6, 7, guard=guards[1]), real("pick", 5, 8, guard=guards[0])
    stage = Stage(extents, (*loads, *ones, *values, *picks), (Store("y", Affine(0, steps), 9),), lane=1)
    shape = (each, size) if along == 0 else (size,)
    made = program([Kernel(extents[0], (stage,))], x=("input", shape), y=("output", (3 * math.prod(shape),)))
    require_equal(made, [np.random.default_rng(0).normal(size=shape)], target, team_of(2).address)
    plan = plans.LoopPlan(stage, made.buffers_by_name, target, 1)
    bodies = len(re.findall(r"\n *store <\d+ x double>", Processor(target).render(made).text)) / plan.units
    assert bodies == (3 if math.prod(shape) >= min(MACHINE.piece, MACHINE.piece_cycles / plan.weight) else 1)


def test_what_computes_little_brings_nothing_ahead() -> None:
    rows, columns = 600, 600
    total = Reduce("add", 0, "row", (1,), "n")
    first = Stage((rows, columns), (load("x", columns, 1),), (), (total,), lane=1)
    twice = load("x", columns, 1), real("number", buffer="n"), real("subtract", 0, 1)
    second = Stage((rows, columns), twice, (Store("y", Affine(0, (columns, 1)), 2),), lane=1)
    made = program([Kernel(rows, (first, second))], x=("input", (rows, columns)), y=("output", (rows, columns)))
    assert prefetch.brought_ahead(made.kernels[0], made.buffers_by_name) == [[], []]


@together("lane", [0, 1])
@together("code", ["f4", "f8"])
@together("target", TARGETS.values())
def test_numbers_beyond_64_bits_become_what_numpy_makes_of_them(target: Target, code: str, lane: int) -> None:
    x = np.array([1e30, -1e30, np.nan, np.inf, -np.inf, -1.5, 2.0**63, 2.0**64, 1e19, 0.7, 1e3], code)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.uint64)
    kind, unsigned = np.dtype(code), np.dtype(np.uint64)
    operations = load("x", 0, 1, dtype=kind), Operation("convert", (0,), unsigned)
    stage = Stage((1, len(x)), operations, (Store("y", Affine(0, (0, 1)), 1),), lane=lane)
    buffers = Buffer("x", x.shape, kind, "input"), Buffer("y", x.shape, unsigned, "output")
    made = Program(("x",), ("y",), buffers, (Kernel(1, (stage,)),))
    np.testing.assert_array_equal(Processor(target).compile_program(made)([x])[0], expected)


def test_sine_and_cosine_of_one_argument_are_one_evaluation() -> None:
    def lines(*names: str) -> int:
        return len(Processor().render(functions_of(names, DOUBLE, 8, 1)).text.splitlines())

    assert lines("sin", "cos") < lines("sin") + 10


@together("size", [5, 67, 40_003])
@together("target", TARGETS.values())
def test_parts_of_complex_numbers_are_read_and_written_together(target: Target, size: int) -> None:
    parts = [Affine(k, (0, 2)) for k in (0, 1)]
    operations = [Operation("load", (), DOUBLE, "x", at) for at in parts]
    operations += [Operation(name, (0, 1), DOUBLE) for name in ("multiply", "subtract")]
    stage = Stage((1, size), tuple(operations), tuple([Store("o", at, 2 + k) for k, at in enumerate(parts)]), lane=1)
    made = program([Kernel(1, (stage,))], x=("input", (size, 2)), o=("output", (size, 2)))
    require_sound(made)
    assert not re.search(r"masked\.(gather|scatter)", Processor(target).render(made).text)
    x = np.random.default_rng(0).random((size, 2))
    np.testing.assert_array_equal(Processor(target).compile_program(made)([x])[0], evaluate(made, [x])[0])


@together("size", [19, 1003])
@together("target", TARGETS.values())
@together("step, code", [(3, "f8"), (4, "?"), (9, "f4")])
def test_numbers_that_lie_beside_each_other_for_each_lane_are_written_together(
    step: int, code: str, target: Target, size: int
) -> None:
    dtype, guard = np.dtype(code), (Bound(1, 0, size),)
    change = Operation("xor", (0, 1), dtype) if code == "?" else Operation("sqrt", (0,), dtype)  # with cheap masks
    values = load("x", 0, 1, dtype=dtype), Operation("constant", (), dtype, value=True), change
    stores = [Store("o", Affine(k, (0, step)), k % 3, guard if k == 5 else ()) for k in range(step)]
    stage = Stage((1, size), values, tuple(reversed(stores)), lane=1)
    buffers = Buffer("x", (size,), dtype, "input"), Buffer("o", (size, step), dtype, "output")
    made = Program(("x",), ("o",), buffers, (Kernel(1, (stage,)),))
    require_sound(made)
    blocks = [len(block) for block in plans.store_blocks(stage, 4)]
    assert sorted(blocks) == {3: [3], 4: [4], 9: [1, 1, 1, 2, 4]}[step]
    x = (np.random.default_rng(0).normal(size=size).clip(min=0)).astype(dtype)
    np.testing.assert_array_equal(Processor(target).compile_program(made)([x])[0], evaluate(made, [x])[0])


def test_calls_of_what_is_computed_rarely_leave_vectors_in_their_registers() -> None:
    """Sums and constants of a loop stay in the upper half of the registers: none is stored at each step."""
    text = Processor().render(functions_of(("sin",), DOUBLE, 100_096, 1)).text
    assert ("call intel_ocl_bicc" in text) == X86
    arm = Target("aarch64-unknown-linux-gnu", "generic", "+neon")
    assert not function_named("sin.rare0.float64x2", arm).convention


# -------------------------------------------------------------------------------------------------- the house


def test_only_the_builder_writes_llvm() -> None:
    """Kernels know nothing of native code, and emission writes none of its text."""
    for module in Path(kernel.__file__).parent.rglob("*.py"):
        assert "wengert.native" not in module.read_text(), module
    text = re.compile(r"[%@]\w|\b(ptr|double|label|getelementptr|phi|fadd|i64)\b")
    for module in Path(emission.__file__).parent.rglob("*.py"):
        tree = ast.parse(module.read_text())
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        found = [n.value for n in strings if id(n) not in documentation and text.search(n.value)]
        assert not found, (module, found)


def test_other_processors_compile() -> None:
    arm = Target("aarch64-unknown-linux-gnu", "generic", "+neon")
    from wengert.emission.rendering import emit_program

    text = emit_program(rosenbrock(200), arm).text
    assert "<2 x double>" in text
    try:
        assert emit_object(text, arm)[18] == 183  # AArch64
    except UnavailableError as error:
        pytest.skip(str(error))  # LLVM was built without it


@together("columns", [2, 3, 7])
@together("target", TARGETS.values())
def test_few_columns_that_lie_side_by_side_are_loaded_together(target: Target, columns: int) -> None:
    size = 131
    operations = load("x", 1, columns), load("v", 0, 1), real("product", 1, 0)
    stage = Stage((columns, size), operations, reductions=(Reduce("add", 2, "row", (1,), "s"),), lane=1)
    kept = Keep("s", "o", Affine(0, (1,)))
    buffers: dict[str, Any] = {"x": ("input", (size, columns)), "v": ("input", (size,)), "o": ("output", (columns,))}
    made = program([Kernel(columns, (stage,), (kept,), tile=columns)], **buffers)
    random = np.random.default_rng(columns)
    require_equal(made, [random.random((size, columns)), random.random(size)], target)


@together("name", ["search_left", "search_right"])
@together("target", TARGETS.values())
def test_searches_find_the_same_wherever_they_begin(target: Target, name: str) -> None:
    knots = np.concatenate([np.repeat(np.arange(40.0), 1 + np.arange(40) % 5), [90.0, np.inf, np.nan, np.nan]])
    for size in (5, 13, len(knots)):
        row = knots[-size:]
        near = np.linspace(row[0] - 1, 95, 301).round(1)
        x = np.concatenate([near, near[::-1], np.random.default_rng(size).permutation(np.tile(row, 4))])
        found = Operation(name, (0,), np.dtype(np.int64), "row", Affine(0, (0, 0)))
        stage = Stage((1, x.size), (load("x", 0, 1), found), (Store("o", Affine(0, (0, 1)), 1),), lane=1)
        made = program([Kernel(1, (stage,))], x=("input", x.shape), row=("input", row.shape), o=("output", x.shape))
        counts = Buffer("o", x.shape, np.dtype(np.int64), "output")
        require_equal(made.replace(buffers=(*made.buffers[:-1], counts)), [x, row], target)
