"""Values in the memory of others: which can be, and that programs compute what they did."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.kernels import as_if, inputs_for, random_program
from wengert.compile.programs import Processor
from wengert.emission import parallel_split
from wengert.emission.buffer_reuse import in_place
from wengert.emission.parallel_split import Sharing
from wengert.kernel.checking import require_sound
from wengert.kernel.evaluation import evaluate
from wengert.kernel.kernel import (
    Affine,
    Bound,
    Buffer,
    Keep,
    Kernel,
    Operation,
    Program,
    Reduce,
    Stage,
    Store,
    Update,
)
from wengert.native.engine import host
from wengert.native.threads.team import team_of
from wengert.support import config

DOUBLE = np.dtype(float)
SIZE = 40


def chain(rows: int, n: int, tile: int = 1) -> Program:
    """Return a program of rows that keep a value, then another, and give a third, each of the sum before it."""
    outside, inside = Affine(0, (n * (rows > 1), 1)), Affine(0, (0, 1))

    def stage(source: str, read: Affine, name: str, into: str, write: Affine, before: str, after: str) -> Stage:
        operations = [Operation("load", (), DOUBLE, source, read)]
        operations += [Operation("number", (), DOUBLE, before)] if before else [operations[0]]
        operations.append(Operation(name, (0, 1), DOUBLE))
        sums = (Reduce("add", 2, "row", (1,), after),) if after else ()
        return Stage((rows, n), tuple(operations), (Store(into, write, 2),), sums, 1)

    stages = (
        stage("x", outside, "multiply", "a", inside, "", "first"),
        stage("a", inside, "add", "b", inside, "first", "second"),
        stage("b", inside, "subtract", "y", outside, "second", ""),
    )
    buffers = (
        Buffer("x", (rows, n), DOUBLE, "input"),
        Buffer("a", (n,), DOUBLE, "row"),
        Buffer("b", (n,), DOUBLE, "row"),
        Buffer("y", (rows, n), DOUBLE, "output"),
    )
    return Program(("x",), ("y",), buffers, (Kernel(rows, stages, tile=tile),))


def names_of(kernels: Any) -> list[list[str]]:
    """Return the buffers that each stage reads and writes, sorted."""
    stages = [stage for kernel in kernels for stage in kernel.stages]
    return [sorted({*[o.buffer for o in s.operations if o.at], *[store.buffer for store in s.stores]}) for s in stages]


def placed(program: Program) -> list[list[str]]:
    """Return the buffers of each stage, values being in the memory of others."""
    return names_of(in_place(program.kernels, program.buffers_by_name))


def as_steps(program: Program) -> list[list[str]]:
    """Return the buffers of each stage of a program whose only row is cut into stages, but for its sums."""
    found = names_of([step.kernel for step in parallel_split.steps(program, host())[0]])
    return [[name for name in names if "cell" not in name] for names in found]


@pytest.mark.parametrize("rows", [1, 6])
def test_rows_hold_values_in_turn_in_one_buffer(rows: int) -> None:
    assert placed(chain(rows, SIZE)) == [["b", "x"], ["b"], ["b", "y"]]


def test_the_only_row_holds_values_where_its_result_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    as_if(monkeypatch, clock=1e-9)
    assert as_steps(chain(1, SIZE)) == [["x", "y"], ["y"], ["y"]]


@pytest.mark.parametrize("tile", [1, 2])
@pytest.mark.parametrize("rows", [1, 6])
def test_values_are_those_of_memory_of_their_own(rows: int, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    as_if(monkeypatch, clock=1e-9)
    for n in (1, 7, 8, 15, 32, 33, 1000, 10_000):
        made = chain(rows, n, tile if rows % tile == 0 else 1)
        require_sound(made)
        x = np.round(np.random.default_rng(n).normal(size=(rows, n)) * 4)  # whole numbers: sums are exact
        for place in (ctypes.c_void_p(), ctypes.c_void_p(team_of(2).address)):
            (found,) = Processor(team=place).compile_program(made)([x])
            assert found.tobytes() == evaluate(made, [x])[0].tobytes()


def changed(made: Program, number: int, **fields: Any) -> Program:
    """Return a program with another stage in the place of one."""
    (kernel,) = made.kernels
    stages = list(kernel.stages)
    stages[number] = stages[number].replace(**fields)
    return made.replace(steps=(kernel.replace(stages=tuple(stages)),))


def other_buffer(made: Program, name: str, **fields: Any) -> Program:
    """Return a program with another buffer of a name."""
    return made.replace(buffers=tuple([b.replace(**fields) if b.name == name else b for b in made.buffers]))


WHERE = (Bound(1, 0, SIZE - 1),)
INSIDE, FLIPPED = Affine(0, (0, 1)), Affine(SIZE - 1, (0, -1))
BASE = chain(6, SIZE)
SECOND, THIRD = BASE.kernels[0].stages[1:]
AGAIN = Operation("load", (), DOUBLE, "a", INSIDE)
APART = {
    "read in a later stage": changed(BASE, 2, operations=(*THIRD.operations, AGAIN)),
    "read at another place": changed(BASE, 1, operations=(AGAIN.replace(at=FLIPPED), *SECOND.operations[1:])),
    "read at two places": changed(BASE, 1, operations=(*SECOND.operations, AGAIN.replace(at=FLIPPED))),
    "read at computed places": changed(BASE, 1, operations=(*SECOND.operations, AGAIN.replace(name="gather"))),
    "read where a guard holds": changed(BASE, 1, operations=(AGAIN.replace(guard=WHERE), *SECOND.operations[1:])),
    "written where a guard holds": changed(BASE, 1, stores=(Store("b", INSIDE, 2, WHERE),)),
    "written before": changed(BASE, 0, stores=(*BASE.kernels[0].stages[0].stores, Store("b", INSIDE, 2))),
    "read before": changed(BASE, 1, operations=(*SECOND.operations, AGAIN.replace(buffer="b"))),
    "summed besides": changed(BASE, 1, reductions=(Reduce("add", 2, "column", (0,), "b", INSIDE),)),
    "changed besides": changed(BASE, 1, updates=(Update("a", 2, 2, INSIDE),)),
    "of another dtype": other_buffer(BASE, "b", dtype=np.dtype(np.int64)),
    "of another size": other_buffer(BASE, "b", shape=(SIZE + 1,)),
    "in memory of all rows": other_buffer(other_buffer(BASE, "b", kind="temporary"), "a", kind="temporary"),
    "of another kind": other_buffer(BASE, "b", kind="temporary"),
    "of the caller": other_buffer(other_buffer(BASE, "a", kind="input"), "b", kind="output"),
    "kept for later": BASE.replace(steps=(BASE.kernels[0].replace(kept=(Keep("first", "a", Affine(0, (0,))),)),)),
}


@together("case", APART)
def test_what_is_needed_has_memory_of_its_own(case: str) -> None:
    assert "a" in placed(APART[case])[0]


def test_one_buffer_takes_the_place_of_one() -> None:
    both = (AGAIN, AGAIN.replace(buffer="x", at=INSIDE), *SECOND.operations[2:])
    stores = (Store("a", INSIDE, 2), Store("x", INSIDE, 2))
    made = changed(changed(BASE, 0, stores=stores, operations=SECOND.operations[1:] * 3), 1, operations=both)
    made = other_buffer(made, "x", kind="row", shape=(SIZE,))
    assert placed(made)[1] == ["b", "x"]


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    as_if(monkeypatch, clock=1e-9)
    tried = 0
    for seed in range(300):
        made = random_program(seed)
        cut = Sharing(made, host())
        kernels = [part for kernel in made.kernels for part in cut.separate_kernel(kernel)]
        if in_place(kernels, cut.buffers) != kernels:
            tried += 1
            inputs = inputs_for(made, seed)
            with np.errstate(all="ignore"):
                pairs = list(zip(Processor().compile_program(made)(inputs), evaluate(made, inputs), strict=True))
            for found, expected in pairs:
                np.testing.assert_allclose(found, expected, rtol=1e-5 if found.itemsize < 8 else 1e-9)
    assert tried > 10


# -------------------------------------------------------------------------------------------- what is kept there


def log_sum_exp(x: Any) -> Any:
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def test_long_rows_keep_what_is_costly_where_the_result_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "AT_ONCE", True)
    x = np.random.default_rng(0).normal(size=50_000)
    text = str(wg.jit(wg.value_and_grad(log_sum_exp)).lower(x).kernels)
    assert text.count("= exp ") == 1
    value, gradient = wg.jit(wg.value_and_grad(log_sum_exp))(x)
    assert np.isclose(value, log_sum_exp(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, np.exp(x - value), rtol=1e-12)


def test_each_long_result_has_room_for_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "AT_ONCE", True)

    def function(x: Any) -> Any:
        y, z = np.exp(x), np.sin(x)
        return y * np.sum(y), z / np.sum(z), y + np.max(z)

    x = np.random.default_rng(0).normal(size=50_000)
    compiled = wg.jit(function)
    text = str(compiled.lower(x).kernels)
    assert text.count("= exp ") + text.count("= sin ") <= 4
    for found, expected in zip(compiled(x), function(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)
