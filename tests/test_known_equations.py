"""Equations whose solutions, or derivatives, others have published; `python -m tools.known_equations` has more."""

from __future__ import annotations

import pytest

from tools import known_equations


@pytest.mark.long
def test_a_solution_is_that_of_the_test_set() -> None:
    assert known_equations.solution_error(known_equations.PROBLEMS["Akzo Nobel"], "BDF") < 1e-10


@pytest.mark.long
def test_a_hessian_is_that_which_another_program_prints() -> None:
    derivative = known_equations.DERIVATIVES["three numbers, Hessian"]
    assert known_equations.derivative_error(derivative) < derivative.rtol
