"""Tests against recorded reference derivatives of NumPy functions, where these are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tools.oracle_report import Reference

DIRECTORY = Path(os.environ.get("WENGERT_ORACLES", Path(__file__).parents[2] / "shared" / "oracles"))
PRESENT = (DIRECTORY / "load_oracles.py").exists()
REFERENCE = Reference(DIRECTORY) if PRESENT else None
FUNCTIONS = REFERENCE.by_function() if REFERENCE else {}
COVERED = [name for name in FUNCTIONS if REFERENCE is not None and REFERENCE.covers(name)]
pytestmark = pytest.mark.skipif(
    not PRESENT, reason="the reference values are not here; set WENGERT_ORACLES to their directory"
)


@pytest.mark.parametrize("function", COVERED)
def test_values_and_derivatives_agree_with_the_reference(function: str) -> None:
    assert REFERENCE is not None
    with np.errstate(all="ignore"):
        disagreements = [text for entry in FUNCTIONS[function] for text in REFERENCE.failures(entry)]
    assert disagreements == []


def test_some_functions_are_covered() -> None:
    assert len(COVERED) >= 20
