"""Random programs of fixed seeds, in every mode; `python -m tools.fuzz` runs any number of others."""

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tests.cases import OPTIONS, a_third
from tools.fuzz.command import examined
from tools.fuzz.lane_modes import LANE_MODES
from tools.fuzz.modes import MODES, outcome
from tools.fuzz.statements import FEATURES
from tools.fuzz_solvers import MODES as WAYS
from tools.fuzz_solvers import draw_problem, failures
from tools.solver_list import SOLVERS
from wengert.lowering.rules import contractions
from wengert.support.machine import MACHINE

CHUNK, FEW = 8, 2
MULTIPLYING = 133, 150, 60, 165, 172, 221, 231, 261, 290
"""Programs of seed 10 that multiply matrices."""


@pytest.mark.parametrize("chunk", range(8))
def test_programs_agree_in_every_mode(chunk):
    if chunk and not OPTIONS.every:
        return
    numbers = range(chunk * CHUNK, chunk * CHUNK + a_third(CHUNK))
    modes = tuple(mode for mode in MODES if mode != "switch")
    reports = [examined(i, seed=8, features=FEATURES, modes=modes, shrink=True) for i in numbers]
    failures = [report.failure for report in reports if report.failure]
    assert not failures, "\n\n".join(failures)
    assert sum(not report.rejected for report in reports) > 0.6 * len(numbers), "few programs can be compared"


def test_programs_agree_while_they_become_native():
    pytest.importorskip("llvmlite")
    numbers = range(8 * CHUNK if OPTIONS.every else FEW)
    reports = [examined(i, seed=9, features=FEATURES, modes=("switch",), shrink=True) for i in numbers]
    failures = [report.failure for report in reports if report.failure]
    assert not failures, "\n\n".join(failures)


def test_programs_agree_where_all_products_are_steps(monkeypatch):
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(contractions, "MACHINE", MACHINE.replace(product_step=0, stacked_step=0))
    chosen = MULTIPLYING if OPTIONS.every else MULTIPLYING[:FEW]
    reports = [examined(i, seed=10, features=FEATURES, modes=("switch",), shrink=True) for i in chosen]
    failures = [report.failure for report in reports if report.failure]
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("chunk", range(8))
def test_batches_of_batches_agree_with_loops_over_calls(chunk):
    if chunk and not OPTIONS.every:
        return
    numbers, modes = range(chunk * CHUNK, chunk * CHUNK + (CHUNK if OPTIONS.every else FEW)), tuple(LANE_MODES)
    reports = [examined(i, 8, FEATURES, modes, shrink=True, name="lanes") for i in numbers]
    failures = [report.failure for report in reports if report.failure]
    assert not failures, "\n\n".join(failures)


def test_modes_leave_no_globals_of_a_program_to_the_next():
    module = ModuleType("written")
    module.kept = 1.0
    found = outcome(lambda this: vars(this.module).update(kept=2.0, made=3.0), SimpleNamespace(module=module))
    assert found.verdict == "agreed"
    assert module.kept == 1.0
    assert not hasattr(module, "made")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of SciPy's steps by Python in jitted functions, and its own
def test_solvers_agree_with_all_steps_of_an_iteration_and_errors_leave_nothing_behind():
    ways = list(WAYS)
    for index in range(len(SOLVERS)):
        problem = draw_problem(index, seed=1)
        assert not list(failures(problem, [ways[index % len(ways)]], np.random.default_rng(index))), problem


def test_what_an_error_in_the_middle_of_a_solve_leaves_behind_is_told(monkeypatch):
    problem = draw_problem(list(SOLVERS).index("scipy fixed_point"), seed=1)
    monkeypatch.setitem(SOLVERS, problem.solver, SOLVERS[problem.solver]._replace(solve=careless))
    with np.errstate():
        assert "value: an injected error left errors of NumPy" in list(failures(problem, ["value"], FirstCall()))


def careless(equations, start, a, matrix):
    np.seterr(divide="ignore")
    return equations(start, a, matrix)


class FirstCall:
    """Draw that the first call of a function fails, before a call that went well."""

    def uniform(self):
        return 1.0

    def geometric(self, _):
        return 1
