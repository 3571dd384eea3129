"""Tests against recorded reference derivatives of NumPy functions, where these are at hand.

`pytest --every` also compares native code of all of them, and kernels, with what NumPy computes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import OPTIONS, Failures, together
from tests.test_executables import EXECUTABLES, call
from tests.test_lowering import checked, require_same
from tools.oracle_report import NAMESPACES, Reference
from wengert.core.containers.tree_leaves import flatten
from wengert.errors import GraphError
from wengert.transforms.tracing import trace

__all__ = ["call"]  # a fixture

DIRECTORY = Path(os.environ.get("WENGERT_ORACLES", Path(__file__).parents[2] / "shared" / "oracles"))
PRESENT = (DIRECTORY / "load_oracles.py").exists()
REFERENCE = Reference(DIRECTORY) if PRESENT else None
FUNCTIONS = REFERENCE.by_function() if REFERENCE else {}
COVERED = [name for name in FUNCTIONS if REFERENCE is not None and REFERENCE.covers(name)]
pytestmark = pytest.mark.skipif(
    not PRESENT, reason="the reference values are not here; set WENGERT_ORACLES to their directory"
)


@together("function", COVERED)
def test_values_and_derivatives_agree_with_the_reference(function: str) -> None:
    assert REFERENCE is not None
    with np.errstate(all="ignore"):
        disagreements = [text for entry in FUNCTIONS[function] for text in REFERENCE.failures(entry)]
    assert disagreements == []


def graph_of(entry: Any) -> tuple[Any, list[Any]] | None:
    """Return the graph of all that is recorded of a call, and its arguments; None where elements decide."""
    assert REFERENCE is not None
    computed, given = REFERENCE.derivatives(entry, NAMESPACES["numpy"])
    try:
        return trace(lambda *xs: flatten(computed(*xs))[0])(*given), flatten(given)[0]
    except GraphError:
        return None


@pytest.mark.parametrize("executable", ["evaluation", *EXECUTABLES])
@pytest.mark.parametrize("function", COVERED if OPTIONS.every else [])
def test_kernels_give_what_numpy_does(function: str, executable: str, request: pytest.FixtureRequest) -> None:
    run = checked if executable == "evaluation" else request.getfixturevalue("call")
    failures = Failures()
    with np.errstate(all="ignore"):
        for entry in [entry for entry in FUNCTIONS[function] if entry["layout"] is None]:
            with failures.of(entry["id"]):
                found = graph_of(entry)
                if found is not None:
                    require_same(*found, run, least=1.0)  # as 1 - y**2 is, where y is nearly 1
    failures.tell()


def test_some_functions_are_covered() -> None:
    assert len(COVERED) >= 20
