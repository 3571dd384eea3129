"""Kernels: their text, the rules that they keep, and their evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cases import a_third, together
from tests.kernels import inputs_for, random_program
from wengert.compile.programs import Processor
from wengert.errors import FileFormatError, GraphError
from wengert.kernel.checking import RULES, findings, require_sound
from wengert.kernel.evaluation import evaluate
from wengert.kernel.grammar import parse_program, text
from wengert.kernel.kernel import (
    UNKNOWN,
    Affine,
    Bound,
    Buffer,
    Carried,
    Copy,
    Invoke,
    Keep,
    Kernel,
    Loop,
    Operation,
    Program,
    Reduce,
    Row,
    Run,
    Stage,
    Store,
    Switch,
    Update,
)
from wengert.kernel.schedule import Schedule, illegal

DOUBLE, BOOL, LONG = np.dtype(float), np.dtype(bool), np.dtype(np.int64)
ROWS, COLUMNS = 4, 3
ALONG = Affine(0, (COLUMNS, 1))
NOWHERE = Affine(0, (0, 0))
SEEDS = range(a_third(150))


def changed(record: Any, **fields: Any) -> Any:
    return record.replace(**fields)


# A program with some of everything: y = x / sum(x, axis=1), s = sum(x, axis=0), m = max(x), and c = x - y[:, 0]

LOAD = Operation("load", (), DOUBLE, "x", ALONG)
SUMS = Stage(
    (ROWS, COLUMNS),
    (LOAD,),
    (),
    (
        Reduce("add", 0, "row", (1,), "n"),
        Reduce("add", 0, "column", (0,), "s", Affine(0, (0, 1))),
        Reduce("maximum", 0, "total", (0, 1), "m", Affine(0, (0, 0))),
    ),
    1,
)
QUOTIENTS = Stage(
    (ROWS, COLUMNS),
    (LOAD, Operation("number", (), DOUBLE, "n"), Operation("divide", (0, 1), DOUBLE)),
    (Store("y", ALONG, 2), Store("w", Affine(0, (0, 1)), 2)),
    (),
    1,
)
SHIFTED = [Store("y", Affine(k, (COLUMNS, 1)), 2, (Bound(1, 0, 2),)) for k in (0, 1)]
DIFFERENCES = Stage(
    (ROWS, COLUMNS),
    (LOAD, Operation("load", (), DOUBLE, "w", Affine(0, (0, 0))), Operation("subtract", (0, 1), DOUBLE)),
    (Store("c", ALONG, 2, (Bound(0, 0, ROWS),)),),
    (),
    1,
)
BUFFERS = (
    Buffer("x", (ROWS, COLUMNS), DOUBLE, "input"),
    Buffer("y", (ROWS, COLUMNS), DOUBLE, "output"),
    Buffer("s", (COLUMNS,), DOUBLE, "output"),
    Buffer("m", (), DOUBLE, "output"),
    Buffer("c", (ROWS, COLUMNS), DOUBLE, "output"),
    Buffer("r", (ROWS,), DOUBLE, "output"),
    Buffer("w", (COLUMNS,), DOUBLE, "row"),
)
KERNEL = Kernel(ROWS, (SUMS, QUOTIENTS, DIFFERENCES), (Keep("n", "r", Affine(0, (1,))),))
WHOLE = Program(("x",), ("y", "s", "m", "c", "r"), BUFFERS, (KERNEL,))


def with_stage(number: int, **fields: Any) -> Program:
    stages = list(KERNEL.stages)
    stages[number] = changed(stages[number], **fields)
    return changed(WHOLE, steps=(changed(KERNEL, stages=tuple(stages)),))


def with_operation(operation: Operation) -> Program:
    """The program with another last operation of its second stage."""
    return with_stage(1, operations=(*QUOTIENTS.operations[:2], operation))


def with_reduction(**fields: Any) -> Program:
    return with_stage(0, reductions=(*SUMS.reductions[:2], changed(SUMS.reductions[2], **fields)))


SCAN = Reduce("add", 2, "scan", (1,), "y", ALONG)


def with_scan(**fields: Any) -> Program:
    """The program whose second stage gives running sums in place of quotients."""
    return with_stage(1, **{"stores": QUOTIENTS.stores[1:], "reductions": (SCAN,), "lane": 0, **fields})


def with_update(**fields: Any) -> Program:
    """The program whose third stage changes what it has written, which only a kernel of one row may."""
    place = Operation("index", (), LONG, at=ALONG)
    update = changed(Update("c", 2, 3, NOWHERE), **fields)
    return with_stage(2, operations=(*DIFFERENCES.operations, place), updates=(update,))


def with_buffer(number: int, **fields: Any) -> Program:
    buffers = list(BUFFERS)
    buffers[number] = changed(buffers[number], **fields)
    return changed(WHOLE, buffers=tuple(buffers))


def test_the_program_is_evaluated() -> None:
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    require_sound(WHOLE)
    y = x / x.sum(1, keepdims=True)
    for found, wanted in zip(evaluate(WHOLE, [x]), (y, x.sum(0), x.max(), x - y[:, :1], x.sum(1)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


# Random programs


@together("seed", SEEDS)
def test_random_programs_are_sound_and_their_text_reads_back(seed: int) -> None:
    program = random_program(seed)
    assert not findings(program), f"seed {seed}\n{text(program)}"
    again = parse_program(text(program))
    assert text(again) == text(program)
    assert again == program


@together("seed", SEEDS)
def test_random_programs_do_not_depend_on_the_order_of_rows(seed: int) -> None:
    program = random_program(seed)
    inputs = inputs_for(program, seed)
    one, other = evaluate(program, inputs, seed=1), evaluate(program, inputs, seed=2)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4 if a.dtype == np.float32 else 1e-12, atol=1e-3)


def test_text_tells_apart_what_differs_in_the_sign_of_zero() -> None:
    plus, minus = (with_operation(Operation("constant", (), DOUBLE, value=zero)) for zero in (0.0, -0.0))
    assert text(plus) != text(minus)


def test_text_holds_constants_to_the_bit() -> None:
    for value in (0.1, -0.0, float("inf"), 5e-324):
        program = with_operation(Operation("constant", (), DOUBLE, value=value))
        found = parse_program(text(program)).kernels[0].stages[1].operations[2].value
        assert float(found).hex() == value.hex()


@pytest.mark.parametrize("damage", ["progam x -> y", "kernel rows 4 tile 1", "    %0 = load float64 x[j1]", "   "])
def test_text_that_is_none_is_refused(damage: str) -> None:
    lines = text(WHOLE).split("\n")
    lines[{"progam x -> y": 0, "kernel rows 4 tile 1": 3}.get(damage, 10)] = damage
    with pytest.raises(FileFormatError, match=r"kernel text: line \d+.*; a line as .* is needed"):
        parse_program("\n".join(lines))


# The rules: a program that breaks each, and only it first

BROKEN = {
    "each buffer is named once, and inputs and outputs are buffers of their kind": [
        (changed(WHOLE, buffers=(*BUFFERS, BUFFERS[0])), "two buffers 'x'"),
        (changed(WHOLE, outputs=("y", "s", "m", "c")), "the outputs"),
        (changed(WHOLE, inputs=("x", "q")), "the inputs"),
    ],
    "buffers have elements, of a dtype of kernels, and contents if they are constants": [
        (with_buffer(1, dtype=np.dtype(complex)), "y: complex128[4, 3]"),
        (with_buffer(1, shape=(0, 3)), "y: float64[0, 3]"),
        (changed(WHOLE, buffers=(*BUFFERS, Buffer("k", (2,), DOUBLE, "constant", bytes(8)))), "k with 8 bytes"),
    ],
    "the space of a stage begins with its kernel's rows, and no tile has more": [
        (with_stage(1, extents=(3, COLUMNS)), "kernel 0, stage 1: extents"),
        (with_stage(1, lane=2), "kernel 0, stage 1: lane 2"),
        (changed(WHOLE, steps=(changed(KERNEL, tile=5),)), "kernel 0: tile 5"),
    ],
    "opcodes are known, and operands stand before their use": [
        (with_operation(Operation("frobnicate", (0, 1), DOUBLE)), "kernel 0, stage 1, %2: opcode"),
        (with_operation(Operation("divide", (0,), DOUBLE)), "kernel 0, stage 1, %2: 1 operands"),
        (with_operation(Operation("divide", (0, 2), DOUBLE)), "kernel 0, stage 1, %2: operands"),
        (with_operation(Operation("load", (), DOUBLE, "x")), "kernel 0, stage 1, %2: load"),
        (with_stage(1, stores=(Store("y", ALONG, 3),)), "kernel 0, stage 1: %3"),
    ],
    "dtypes follow from those of operands": [
        (with_operation(Operation("divide", (0, 1), LONG)), "kernel 0, stage 1, %2: divide"),
        (with_operation(Operation("less", (0, 1), DOUBLE)), "kernel 0, stage 1, %2: less"),
        (with_operation(Operation("and", (0, 1), DOUBLE)), "kernel 0, stage 1, %2: and"),
        (with_operation(Operation("select", (0, 1, 1), DOUBLE)), "kernel 0, stage 1, %2: select"),
        (with_operation(Operation("gather", (0,), DOUBLE, "x", ALONG)), "kernel 0, stage 1, %2: gather"),
        (with_reduction(combine="divide"), "kernel 0, stage 0, reduce m: divide"),
    ],
    "index maps and guards have the dimensions of their stage, and updates its only row": [
        (with_update(buffer="q"), "kernel 0, stage 2: the buffer 'q'"),
        (with_update(), "kernel 0, stage 2, update c: 4 rows and lane 1"),
        (with_operation(changed(LOAD, buffer="q")), "kernel 0, stage 1, %2: the buffer 'q'"),
        (with_operation(changed(LOAD, at=Affine(0, (1,)))), "kernel 0, stage 1, %2: 1 coefficients"),
        (with_operation(changed(LOAD, guard=(Bound(2, 0, 1),))), "kernel 0, stage 1, %2: a bound"),
        (with_operation(Operation("pick", (0, 1), DOUBLE, guard=(Bound(5, 0, 1),))), "kernel 0, stage 1, %2: a bound"),
        (with_operation(Operation("index", (), LONG, at=Affine(0, (1,)))), "kernel 0, stage 1, %2: 1 coefficients"),
        (with_stage(1, stores=(QUOTIENTS.stores[0], Store("w", ALONG, 2))), "kernel 0, stage 1, store w: a row"),
    ],
    "indices stay in their buffers where guards hold": [
        (with_operation(changed(LOAD, at=Affine(1, (COLUMNS, 1)))), "kernel 0, stage 1, %2: x of 12 elements from 1"),
        (with_operation(changed(LOAD, at=Affine(-1, (COLUMNS, 1)), guard=(Bound(0, 0, 3),))), "from -1 to 7"),
        (with_stage(1, stores=(Store("y", Affine(0, (4, 1)), 2),)), "kernel 0, stage 1, store y: y of 12"),
        (with_reduction(at=Affine(1, (0, 0))), "kernel 0, stage 0, reduce m: m of 1"),
    ],
    "buffers hold what is read from and written to them": [
        (with_buffer(1, dtype=LONG), "kernel 0, stage 1: float64 for y of int64"),
        (with_operation(changed(LOAD, dtype=LONG)), "kernel 0, stage 1: int64 for x"),
    ],
    "the kind of a reduction follows from what it reduces over, and scans stand alone": [
        (with_reduction(kind="column"), "kernel 0, stage 0, reduce m: column where total is"),
        (with_reduction(over=()), "kernel 0, stage 0, reduce m: over ()"),
        (with_reduction(over=(0, 2)), "kernel 0, stage 0, reduce m: over (0, 2)"),
        (with_reduction(kind="column", over=(0,), at=None), "kernel 0, stage 0, reduce m: column where column is"),
        (with_reduction(over=(0, 1), at=Affine(0, (0, 1))), "kernel 0, stage 0, reduce m: its place moves"),
        (with_reduction(kind="scan"), "kernel 0, stage 0, reduce m: a scan over (0, 1)"),
        (with_reduction(kind="scan", over=(1,), at=None), "kernel 0, stage 0, reduce m: a scan over (1,)"),
        (with_scan(lane=1), "kernel 0, stage 1, reduce y: a scan along the lanes"),
        (with_scan(reductions=(SCAN, Reduce("add", 2, "row", (1,), "q"))), "reduce y: a scan beside"),
    ],
    "a number of the row is given once, by a stage before those that use it": [
        (with_operation(Operation("number", (), DOUBLE, "q")), "kernel 0, stage 1, %2: the number 'q'"),
        (with_buffer(5, dtype=LONG), "kernel 0: the number 'n' kept in r"),
        (with_stage(0, reductions=(*SUMS.reductions, SUMS.reductions[0])), "the number 'n' again"),
        (with_stage(0, reductions=SUMS.reductions[1:]), "kernel 0, stage 1, %1: the number 'n'"),
    ],
    "what is read or changed was written, and every output is": [
        (with_operation(Operation("load", (), DOUBLE, "c", ALONG)), "kernel 0, stage 1, %2: c"),
        (with_operation(Operation("load", (), DOUBLE, "m", Affine(0, (0, 0)))), "kernel 0, stage 1, %2: m"),
        (with_stage(2, stores=()), "the output c"),
    ],
    "each cell is written once, and inputs and constants never": [
        (with_stage(1, stores=(*QUOTIENTS.stores, Store("x", ALONG, 2))), "kernel 0, stage 1, store x: x of kind"),
        (with_stage(1, stores=(*QUOTIENTS.stores, Store("y", ALONG, 2))), "store y: y was written by"),
        (with_stage(1, stores=(Store("y", Affine(0, (1, 1)), 2), QUOTIENTS.stores[1])), "points of the space share"),
        (
            with_stage(1, stores=(*SHIFTED, QUOTIENTS.stores[1])),
            "store y: y was written by",
        ),
    ],
}


ROW = Buffer("a", (2,), DOUBLE, "input"), Buffer("b", (2,), DOUBLE, "output")
GROWN = Buffer("g", (UNKNOWN, 2), DOUBLE, "temporary")
FLAG = Buffer("f", (), np.dtype(bool), "output")
DOUBLED = Program(
    ("a",),
    ("b",),
    ROW,
    (
        Kernel(
            1,
            (
                Stage(
                    (1, 2),
                    (Operation("load", (), DOUBLE, "a", Affine(0, (0, 1))), Operation("add", (0, 0), DOUBLE)),
                    (Store("b", Affine(0, (0, 1)), 1),),
                ),
            ),
        ),
    ),
)
LOOP = Loop(DOUBLED, (), (Carried("t", "a", "b", "", "z"),), (Row("r", "b"),), 3, reverse=True)
STEPS = Program(
    ("x",),
    ("y", "z", "r", "f"),
    (
        Buffer("x", (2,), DOUBLE, "input"),
        Buffer("s", (2,), DOUBLE, "temporary"),
        Buffer("t", (2,), DOUBLE, "temporary"),
        Buffer("y", (2,), DOUBLE, "output"),
        Buffer("z", (2,), DOUBLE, "output"),
        Buffer("r", (3, 2), DOUBLE, "output"),
        FLAG,
    ),
    (Run(DOUBLED, ("x", "s")), Invoke("small.own", ("x", "s", "t"), 1, (("size", 2),), 8, 3.5), LOOP, Copy("t", "y")),
    "f",
)
"""A program of steps: it doubles, calls a routine, doubles three times, and copies."""


def with_step(number: int, step: Any) -> Program:
    return changed(STEPS, steps=tuple([step if n == number else s for n, s in enumerate(STEPS.steps)]))


CASES = Run(DOUBLED, ("x", "y")), Run(Program(("a",), ("b",), ROW, (Copy("a", "b"),)), ("x", "y"))
CHOICE = Program(
    ("i", "x"),
    ("y",),
    (
        Buffer("i", (), LONG, "input"),
        Buffer("x", (2,), DOUBLE, "input"),
        Buffer("y", (2,), DOUBLE, "output"),
    ),
    (Switch("i", CASES),),
)
"""A program that doubles, or copies, as an index says."""


BROKEN |= {
    "steps are kernels alone, or what runs programs that fit, and says so if they may fail": [
        (with_step(0, KERNEL), "step 0: a kernel beside other steps"),
        (with_step(0, Copy("q", "s")), "step 0: the buffers ['q']"),
        (with_step(0, Run(DOUBLED, ("x",))), "step 0: 1 arguments of 2"),
        (with_step(0, Run(DOUBLED, ("x", "f"))), "step 0: arguments ('x', 'f')"),
        (with_step(3, Copy("t", "r")), "step 3: t copied to r"),
        (
            changed(STEPS, buffers=(*STEPS.buffers, GROWN), steps=(*STEPS.steps, Copy("r", "g"))),
            "step 4: r copied to g",
        ),
        (with_step(2, changed(LOOP, rounds=4)), "step 2: 4 rows b in r"),
        (with_step(2, changed(LOOP, carried=())), "step 2: [] for the inputs ('a',)"),
        (with_step(2, changed(LOOP, carried=(Carried("t", "a", "q", "", "z"),))), "step 2: q from a"),
        (with_step(2, changed(LOOP, rows=(Row("r", "q"),))), "step 2: rows q of r"),
        (changed(STEPS, failing="", steps=STEPS.steps), "step 1: what may fail"),
        (changed(CHOICE, steps=(Switch("x", CASES),)), "step 0: the index x of 2 float64"),
        (
            changed(CHOICE, steps=(Switch("i", (*CASES, Run(DOUBLED, ("x",)))),)),
            "step 0: () written in place of ('y',)",
        ),
        (changed(CHOICE, steps=(Switch("i", (CASES[0], Run(DOUBLED, ("i", "y")))),)), "step 0: arguments ('i', 'y')"),
        (changed(CHOICE, steps=(Switch("i", ()),)), "step 0: no cases"),
    ],
    "a step reads what others wrote, and writes what none wrote": [
        (with_step(0, Copy("t", "s")), "step 0 reads t"),
        (with_step(3, Copy("t", "z")), "step 3 writes z again"),
        (changed(STEPS, steps=STEPS.steps[:3]), "the output y"),
    ],
}


def changing(read: Affine, *more: Stage) -> Program:
    """Return a program that adds to each number of an input another one of it, in place."""
    whole = Affine(0, (0, 1))
    loads = [Operation("load", (), DOUBLE, "a", at) for at in (read, whole)]
    stage = Stage((1, 2), (*loads, Operation("add", (0, 1), DOUBLE)), (Store("a", whole, 2),))
    return Program(("a",), (), (Buffer("a", (2,), DOUBLE, "changed"),), (Kernel(1, (stage, *more)),))


def in_place(body: Program, result: str) -> Program:
    """Return a program that runs another three times on a copy of its input."""
    buffers = [Buffer(n, (2,), DOUBLE, kind) for n, kind in (("x", "input"), ("t", "temporary"), ("y", "output"))]
    steps = Copy("x", "t"), Run(body, ("t",)), Loop(body, (), (Carried("t", "a", "a", "", result),), (), 3)
    steps = (*steps, *[Copy("t", "y")] * (result == "t"))
    return Program(("x",), ("y", "f"), (*buffers, FLAG), steps, "f")


TWICE = changing(Affine(0, (0, 1)))
BROKEN["what is changed is read before, or by the point that changes it"] = [
    (changing(Affine(1, (0, -1))), "kernel 0, stage 0, %0: a"),
    (
        changing(Affine(0, (0, 1)), Stage((1,), (Operation("load", (), DOUBLE, "a", Affine(0, (0,))),))),
        "stage 1, %0: a",
    ),
]
BROKEN["a step reads what others wrote, and writes what none wrote"] += [
    (changed(in_place(TWICE, "t"), steps=(Run(TWICE, ("x",)), *in_place(TWICE, "t").steps)), "step 0 writes x again"),
]
BROKEN["steps are kernels alone, or what runs programs that fit, and says so if they may fail"] += [
    (
        changed(in_place(TWICE, "t"), steps=(Loop(TWICE, (), (Carried("x", "a", "", "x", "y"),), (), 3),)),
        "the body changes",
    ),
]


@pytest.mark.parametrize("result", ["t", "y"])
def test_what_is_changed_in_place_is_printed_read_back_and_evaluated(result: str) -> None:
    program = in_place(TWICE, result)
    require_sound(program)
    assert parse_program(text(program)) == program
    x = np.array([1.0, -2.0])
    for found in (evaluate(program, [x])[0], Processor().compile_program(program)([x])[0]):
        np.testing.assert_array_equal(found, [16.0, -32.0])
    np.testing.assert_array_equal(x, [1.0, -2.0])


def test_steps_are_printed_read_back_and_evaluated() -> None:
    require_sound(STEPS)
    assert parse_program(text(STEPS)) == STEPS
    x = np.array([1.0, -2.0])
    y, z, r, failed = evaluate(STEPS, [x], routines={"small.own": lambda a, b, size: (a + b + size,)})
    np.testing.assert_array_equal(y, 3 * x + 2)
    np.testing.assert_array_equal(z, 8 * y)
    np.testing.assert_array_equal(r, [8 * y, 4 * y, 2 * y])
    assert not failed
    assert evaluate(STEPS, [x], routines={"small.own": lambda a, b, size: None})[-1]


def test_a_choice_is_printed_read_back_and_evaluated() -> None:
    require_sound(CHOICE)
    assert parse_program(text(CHOICE)) == CHOICE
    followed = changed(CHOICE, outputs=("y", "z"), buffers=(*CHOICE.buffers, Buffer("z", (2,), DOUBLE, "output")))
    followed = changed(followed, steps=(*CHOICE.steps, Run(DOUBLED, ("y", "z"))))
    assert parse_program(text(followed)) == followed  # a program that runs after it is none of it
    x = np.array([1.0, -2.0])
    for index, times in ((0, 2), (1, 1), (2, 2), (-1, 2)):
        np.testing.assert_array_equal(evaluate(CHOICE, [np.array(index), x])[0], times * x)


@together("rule", RULES)
def test_each_rule_finds_what_breaks_it(rule: Any) -> None:
    for program, where in BROKEN[rule.sentence]:
        found = findings(program)
        assert found
        assert {finding.rule for finding in found} == {rule}, found
        assert any(where in place for place, _ in found), found


def test_running_sums_are_evaluated() -> None:
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    require_sound(with_scan())
    np.testing.assert_allclose(evaluate(with_scan(), [x])[0], np.cumsum(x / x.sum(1, keepdims=True), 1))
    found = evaluate(with_scan(reductions=(changed(SCAN, value=2, factor=0),)), [x])[0]
    q = x / x.sum(1, keepdims=True)
    np.testing.assert_allclose(found[:, 1], q[:, 0] * x[:, 1] + q[:, 1])


def counting(**fields: Any) -> Program:
    """A program that adds 1 to the bins of places, which are zero at first."""
    at = Affine(0, (0, 1))
    zero, one = (Operation("constant", (), DOUBLE, value=value) for value in (0.0, 1.0))
    fill = Stage((1, 3), (zero,), (Store("y", at, 0),))
    load = Operation("load", (), LONG, "i", at)
    count = changed(Stage((1, 5), (load, one), updates=(Update("y", 1, 0, NOWHERE, add=True),)), **fields)
    buffers = Buffer("i", (5,), LONG, "input"), Buffer("y", (3,), DOUBLE, "output")
    return Program(("i",), ("y",), buffers, (Kernel(1, (fill, count)),))


def test_updates_are_carried_out_one_after_the_other() -> None:
    places = np.array([2, 0, 2, 2, 0])
    require_sound(counting())
    assert parse_program(text(counting())) == counting()
    assert list(evaluate(counting(), [places])[0]) == [2, 0, 3]
    assert list(evaluate(counting(updates=(Update("y", 1, 0, NOWHERE),)), [places])[0]) == [1, 0, 1]
    with pytest.raises(IndexError, match="y: 0 to 3 of 3 elements"):
        evaluate(counting(), [places // 2 * 3])
    for update, rule in (
        (Update("i", 1, 0, NOWHERE), "buffers hold"),
        (Update("y", 1, 1, NOWHERE), "dtypes"),
        (Update("y", 2, 0, NOWHERE), "opcodes"),
    ):
        assert findings(counting(updates=(update,)))[0].rule.sentence.startswith(rule)
    unfilled = changed(counting(), steps=(Kernel(1, counting().kernels[0].stages[1:]),))
    assert findings(unfilled)[0].rule.sentence.startswith("what is read or changed was written")
    assert "one after the other" in illegal(counting(), Schedule(((1, 1),), (1,)))


def test_lanes_of_updates_run_over_what_lies_side_by_side() -> None:
    def beside(*steps: int) -> Program:
        load, one = counting().kernels[0].stages[1].operations
        update = Update("y", 1, 0, Affine(0, (0, 0, 1)), add=True)
        given = changed(load, at=Affine(0, (0, *steps))), one
        return counting(extents=(1, 5, 2), lane=2, operations=given, updates=(update,))

    require_sound(beside(1, 0))
    assert parse_program(text(beside(1, 0))) == beside(1, 0)
    assert list(evaluate(beside(1, 0), [np.array([1, 0, 1, 1, 0])])[0]) == [2, 5, 3]
    assert findings(beside(0, 1))[0].place == "kernel 0, stage 1, update y: 1 rows and lane 2"
    short = changed(beside(1, 0).kernels[0].stages[1], updates=(Update("y", 1, 0, NOWHERE),))
    assert findings(counting(**vars(short)))[0].place == "kernel 0, stage 1, update y: 2 coefficients"


def test_a_broken_program_is_refused() -> None:
    with pytest.raises(
        GraphError, match=r"kernel: the output c; what is read was written.* is needed|.* Mend the pass"
    ):
        require_sound(with_stage(2, stores=()))


# What the evaluation finds at the cells, where index maps hid it


def test_reading_what_another_row_writes_is_found() -> None:
    shifted = Operation("load", (), DOUBLE, "y", Affine(COLUMNS, (COLUMNS, 1)), (Bound(0, 0, ROWS - 1),))
    program = with_stage(2, operations=(LOAD, shifted, Operation("subtract", (0, 1), DOUBLE)))
    assert not findings(program)
    with pytest.raises(GraphError, match="a cell that is read and was not written"):
        [evaluate(program, [np.ones((ROWS, COLUMNS))], seed) for seed in range(5)]


def test_indices_out_of_bounds_are_found() -> None:
    place = Operation("index", (), LONG, at=Affine(0, (1, 1)))
    gather = Operation("gather", (2,), DOUBLE, "x", Affine(8, (0, 0)))
    program = with_stage(
        1,
        operations=(*QUOTIENTS.operations[:2], place, gather),
        stores=(Store("y", ALONG, 3), Store("w", Affine(0, (0, 1)), 3)),
    )
    assert not findings(program)
    with pytest.raises(IndexError, match=r"x: .* of 12 elements"):
        evaluate(program, [np.ones((ROWS, COLUMNS))])


def test_what_was_not_written_is_found() -> None:
    program = with_stage(1, stores=(Store("y", ALONG, 2, (Bound(1, 0, 2),)), QUOTIENTS.stores[1]))
    assert not findings(program)
    with pytest.raises(GraphError, match="an output that was not written"):
        evaluate(program, [np.ones((ROWS, COLUMNS))])
