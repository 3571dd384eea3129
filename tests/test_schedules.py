"""Schedules: any legal one leaves programs sound and their values as they are; the chosen one reads side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cases import a_third, together
from tests.kernels import as_if, inputs_for, random_program
from wengert.kernel.checking import findings
from wengert.kernel.evaluation import evaluate
from wengert.kernel.grammar import text
from wengert.kernel.kernel import Affine, Buffer, Kernel, Operation, Program, Reduce, Stage, Store
from wengert.kernel.schedule import Pack, Schedule, Unpack, apply_schedule, illegal, scanned_dimensions, schedule_of

DOUBLE = np.dtype(float)
ROWS, TERMS, COLUMNS = 32, 3, 5


def product() -> Program:
    """x @ y.T: rows of y, which all rows of x need, lie with gaps between neighbouring lanes."""
    load_x = Operation("load", (), DOUBLE, "x", Affine(0, (TERMS, 0, 1)))
    load_y = Operation("load", (), DOUBLE, "y", Affine(0, (0, TERMS, 1)))
    times = Operation("multiply", (0, 1), DOUBLE)
    nested = Reduce("add", 2, "nested", (2,), "z", Affine(0, (COLUMNS, 1, 0)))
    stage = Stage((ROWS, COLUMNS, TERMS), (load_x, load_y, times), (), (nested,))
    buffers = (
        Buffer("x", (ROWS, TERMS), DOUBLE, "input"),
        Buffer("y", (COLUMNS, TERMS), DOUBLE, "input"),
        Buffer("z", (ROWS, COLUMNS), DOUBLE, "output"),
    )
    return Program(("x", "y"), ("z",), buffers, (Kernel(ROWS, (stage,)),))


PRODUCT = product()
PLAIN = Schedule(((0,),), (1,))


def random_schedule(program: Program, seed: int) -> Schedule:
    random = np.random.default_rng(seed)
    free = [
        [[d for d in range(len(s.extents)) if d not in scanned_dimensions(s)] for s in k.stages]
        for k in program.kernels
    ]
    lanes = tuple(tuple(int(random.choice(own)) for own in kernel) for kernel in free)
    tiles = tuple(int(random.choice([n for n in range(1, k.rows + 1) if k.rows % n == 0])) for k in program.kernels)
    packs: list[Pack] = []
    for k, kernel in enumerate(program.kernels):
        for s, stage in enumerate(kernel.stages):
            tried = [Pack(k, s, place) for place in range(len(stage.operations))]
            packs += [p for p in tried if random.random() < 0.7 and not illegal(program, Schedule(lanes, tiles, (p,)))]
    unpacks: list[Unpack] = []
    for k, kernel in enumerate(program.kernels):
        for s, stage in enumerate(kernel.stages):
            columns = [Unpack(k, s, n) for n in range(len(stage.reductions))]
            unpacks += [u for u in columns if not illegal(program, Schedule(lanes, tiles, (), (u,)))][: seed % 3]
    return Schedule(lanes, tiles, tuple(packs), tuple(unpacks))


@together("seed", range(a_third(60)))
def test_random_schedules_change_no_value(seed: int) -> None:
    program = random_program(seed)
    inputs = inputs_for(program, seed)
    want = evaluate(program, inputs)
    for schedule in (schedule_of(program), random_schedule(program, seed)):
        assert not illegal(program, schedule)
        found = apply_schedule(program, schedule)
        assert not findings(found), f"{schedule}\n{text(found)}"
        for a, b in zip(evaluate(found, inputs), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4 if a.dtype == np.float32 else 1e-12, atol=1e-3)


def test_a_product_is_carried_out_along_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert schedule_of(PRODUCT).tiles == (1,)  # it is too little for long code
    as_if(monkeypatch, quick=0)
    schedule = schedule_of(PRODUCT)
    assert schedule == Schedule(((1,),), (4,), (Pack(0, 0, 1),))
    copy, kernel = apply_schedule(PRODUCT, schedule).kernels
    assert copy.stages[0].extents == (1, TERMS, COLUMNS)
    loads = [op.at.coefficients for op in kernel.stages[0].operations if op.at is not None]
    assert [coefficients[1] for coefficients in loads] == [0, 1]
    x, y = np.random.default_rng(0).normal(size=(2, ROWS, TERMS))
    np.testing.assert_allclose(evaluate(apply_schedule(PRODUCT, schedule), [x, y[:COLUMNS]])[0], x @ y[:COLUMNS].T)


def test_columns_of_few_numbers_are_added_up_side_by_side() -> None:
    load = Operation("load", (), DOUBLE, "x", Affine(0, (40 * TERMS, TERMS, 1)))
    column = Reduce("add", 0, "column", (0,), "y", Affine(0, (0, TERMS, 1)))
    stage = Stage((ROWS, 40, 3), (load,), (), (column,))
    buffers = Buffer("x", (ROWS * 40, 3), DOUBLE, "input"), Buffer("y", (40, 3), DOUBLE, "output")
    program = Program(("x",), ("y",), buffers, (Kernel(ROWS, (stage,)),))
    found = Schedule(((1,),), (1,), (), (Unpack(0, 0, 0),))
    assert not illegal(program, found)
    kernel, copy = apply_schedule(program, found).kernels
    assert kernel.stages[0].reductions[0].at == Affine(0, (0, 1, 40))
    assert copy.stages[0].stores[0] == Store("y", Affine(0, (0, 1, TERMS)), 0)
    x = np.random.default_rng(0).normal(size=(ROWS * 40, 3))
    for schedule in (found, schedule_of(program)):
        (y,) = evaluate(apply_schedule(program, schedule), [x])
        np.testing.assert_allclose(y, evaluate(program, [x])[0], rtol=1e-12)
    twice = program.replace(steps=(program.kernels[0], program.kernels[0]))
    assert "something else writes there" in illegal(twice, Schedule(((1,), (1,)), (1, 1), (), (Unpack(0, 0, 0),)))


ILLEGAL: dict[str, tuple[Any, str]] = {
    "stages": (PLAIN.replace(lanes=((0, 0),)), "lanes for other stages"),
    "kernels": (PLAIN.replace(tiles=(1, 1)), "tiles for other kernels"),
    "tile": (PLAIN.replace(tiles=(33,)), "a tile of 33 of 32 rows"),
    "lane": (PLAIN.replace(lanes=((3,),)), "lanes along dimension 3 of 3"),
    "pack": (PLAIN.replace(packs=(Pack(0, 0, 0),)), "rows read other elements, or write them"),
    "unpack": (PLAIN.replace(unpacks=(Unpack(0, 0, 0),)), "no column, or something else writes there"),
}


def test_lanes_do_not_run_along_what_follows_one_from_the_other() -> None:
    at = Affine(0, (0, 8, 1))
    load = Operation("load", (), DOUBLE, "x", at)
    for over, lane in ((1, 2), (2, 0)):
        stage = Stage((1, 8, 8), (load,), (), (Reduce("add", 0, "scan", (over,), "y", at),))
        buffers = Buffer("x", (8, 8), DOUBLE, "input"), Buffer("y", (8, 8), DOUBLE, "output")
        program = Program(("x",), ("y",), buffers, (Kernel(1, (stage,)),))
        assert schedule_of(program).lanes == ((lane,),)
        assert "follow one from the other" in illegal(program, Schedule(((over,),), (1,)))


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal_schedules_are_told_why(case: str) -> None:
    schedule, reason = ILLEGAL[case]
    assert reason in illegal(PRODUCT, schedule)
