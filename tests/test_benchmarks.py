"""The cases of the benchmarks run for Wengert, and find what NumPy finds."""

import functools

import numpy as np
import pytest

from benchmarks import compiled, routines
from benchmarks.agreement import check_agreement
from benchmarks.compiled_list import EXAMPLES
from benchmarks.compiled_networks import NETWORKS
from benchmarks.libraries import LIBRARIES, installed
from benchmarks.operation_list import OPERATIONS
from benchmarks.operations import Cell
from benchmarks.program_list import HAMILTONIAN, PROGRAMS, log_density
from benchmarks.programs import sampler_step, step
from benchmarks.routine_list import ROUTINES
from benchmarks.summary import summary
from benchmarks.variants import LANES, VARIANTS
from tests.cases import together
from tools.benchmark_page import section

LARGE = 1_000  # elements of a routine that is not looked at


def test_names_of_operations_are_unique():
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS) >= 100


@together("operation", OPERATIONS)
def test_operations(operation):
    smallest = max(operand.smallest for operand in operation.operands)
    cells = {variant: Cell(operation, smallest, variant, repeats=1) for variant in VARIANTS}
    problem = cells["plain"].problem
    found = {variant: cell.run("wengert", cell.problem)() for variant, cell in cells.items() if cell.exists()}
    assert_bits(found["plain"][0], problem.value)
    if "jvp" in found:
        assert_bits(found["jvp"][0], problem.value)
        assert [gradient.shape for gradient in found["backward"]] == [operand.shape for operand in problem.operands]
    if "vmap" in found:
        lanes = [problem.evaluate([values[lane] for values in problem.lanes]) for lane in range(LANES)]
        np.testing.assert_allclose(found["vmap"][0], np.stack(lanes), rtol=1e-12)


def assert_bits(found, value):
    """Assert equality; of numbers but for the last bit, in which powers of scalars and of 0-d arrays differ."""
    if np.ndim(value):
        np.testing.assert_array_equal(found, value)
    else:
        np.testing.assert_allclose(found, value, rtol=3e-16)


@together("routine", ROUTINES)
def test_routines(routine):
    if sum(operand.size for operand in routine.operands) > LARGE:
        return
    arrays = routine.operands
    gradients = [np.asarray(found) for found in routines.gradients("wengert", routine, "float64")()]
    directions = [routines.comparable(np.cos(values), routine.symmetric) for values in arrays]
    slope = sum(np.vdot(g, d) for g, d in zip(gradients, directions, strict=True))
    function = routine.functions["wengert"]()
    weights = [routines.weight(np.asarray(value)) for value in routines.flat(function(*arrays))]

    def loss(step):
        found = function(*[values + step * d for values, d in zip(arrays, directions, strict=True)])
        return (
            sum(
                np.sum(w * np.abs(np.asarray(value)) ** 2)
                for w, value in zip(weights, routines.flat(found), strict=True)
            )
            / 2
        )

    assert abs((loss(1e-6) - loss(-1e-6)) / 2e-6 - slope) < 1e-5 * max(1.0, abs(slope))


def row(operation, variant, wengert, **peers):
    labels = {"operation": operation, "variant": variant, "size": "10"}
    seconds = {"wengert": wengert, **peers}
    ratio = {peer: wengert / time for peer, time in peers.items()}
    return {"labels": labels, "seconds_per_operation": seconds, "least_per_operation": seconds, "ratio": ratio}


def test_summary():
    results = [
        row("add", "plain", 4e-6, torch=2e-6, numpy=1e-6),
        row("add", "backward", 8e-6, torch=1e-6),
        row("sin", "plain", 4e-6, torch=2e-6, numpy=3e-6),
        row("sin", "backward", 8e-6, torch=4e-6),
    ]
    means, plain, backward = summary(results)
    assert means.columns == ["variant", "elements", "/ torch", "/ numpy", "high", "by NumPy", "over NumPy"]
    assert means.rows == [
        ["plain", "10", "2.00", "2.31", "2", "", "2 µs"],
        ["backward", "10", "4.00", "", "1", "0", ""],
    ]
    assert plain.rows[0] == ["add", "10", "4 µs", "2.00", "4.00", "3 µs"]
    assert backward.columns[-2:] == ["NumPy / torch, forward", "NumPy, forward / torch, whole"]
    assert backward.rows == [
        ["add", "10", "8 µs", "8.00", "", "0.50", "1.00"],
        ["sin", "10", "8 µs", "2.00", "", "1.50", "0.75"],
    ]
    of_two = row("write", "plain", 4e-6, numpy=1e-6)
    of_two["labels"]["steps"] = "2"
    assert summary([of_two])[1].rows[0][-1] == "1.5 µs"
    many = [row(str(n), "backward", 4e-6, torch=1e-6) for n in range(15)]
    assert len(summary(many)[-1].rows) == 15  # all that are high


@pytest.mark.parametrize("example", PROGRAMS, ids=lambda example: example.name)
def test_programs(example):
    library = LIBRARIES["wengert"](1)
    gradients = step(example, library)()
    value = functools.partial(example.loss, np)
    slope = sum(np.vdot(gradient, values) for gradient, values in zip(gradients, example.parameters, strict=True))
    low, high = (value(*[p * (1 + h) for p in example.parameters], *example.data) for h in (-1e-5, 1e-5))
    assert abs((high - low) / 2e-5 - slope) < 1e-6 * max(1.0, abs(slope))


def test_sampler():
    position, momentum = sampler_step(LIBRARIES["wengert"](1))()
    start, push, features, labels = HAMILTONIAN
    before, after = (
        log_density(np, q, features, labels) - 0.5 * p @ p for q, p in ((start, push), (position, momentum))
    )
    assert abs(after - before) < 0.01 * abs(before)


def test_page():
    results = [row("x | y", "plain", 4e-6, torch=2e-6, numpy=1e-6)]
    text = section({"suite": "operations", "results": results})
    assert text.startswith(
        "## Operations\n\n### Geometric means of ratios\n\n| variant | elements | / torch | / numpy |"
    )
    assert "| x \\| y | 10 | 4 µs | 2.00 | 4.00 | 3 µs |" in text
    results = [{"case": "tree", "phase": "", "labels": {}, "seconds_per_operation": {"wengert": 1e-3}, "ratio": {}}]
    assert "| | Wengert |\n|---|--:|\n| tree | 1 ms |" in section({"suite": "programs", "results": results})


WITH_HAND = [example for example in (*EXAMPLES, *NETWORKS) if example.by_hand is not None]


@pytest.mark.parametrize("example", WITH_HAND, ids=lambda example: example.name)
def test_compiled_functions(example):
    (ours, arguments), (by_hand, _) = (compiled.compiled(example, 1, name) for name in ("wengert", "numpy"))
    check_agreement(compiled.flat(ours(*arguments)), compiled.flat(by_hand(*arguments)), example.name)


def test_every_run_adds_to_a_gradient_of_its_own_memory():
    [reshape] = [operation for operation in OPERATIONS if operation.name == "reshape"]
    for library in installed(["wengert", "torch"]):  # a view of the cotangent as `.grad` would be added to itself
        cell = Cell(reshape, 10, "backward", repeats=1)
        run = cell.run(library, cell.problem)
        for times in range(1, 4):
            np.testing.assert_allclose(np.asarray(run()[0]), times * cell.problem.cotangent.reshape(-1), rtol=1e-15)
