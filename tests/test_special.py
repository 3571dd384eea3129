"""SciPy's special functions: the protocol, accuracy of derivatives against mpmath, edges of ranges.

Derivatives in all modes are tested by the samples. `python -m tools.special_accuracy --points 200` takes more points.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import wengert as wg
import wengert.scipy.special as wsp
from tools.special_accuracy import ROWS, Row, errors
from wengert.errors import DtypeError

PROGRAM = """
import sys
import numpy as np
import wengert as wg
assert "scipy" not in sys.modules
import scipy.special
assert "wengert.scipy" not in sys.modules
print(wg.grad(scipy.special.erf)(0.0) ** 2 * np.pi)
"""
LOADING = """
import sys
import wengert as wg
print(wg.graph.load(sys.argv[1])(0.5)[0])
"""


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


# The protocol


def test_scipys_ufuncs_are_known_when_they_are_first_met() -> None:
    assert float(output_of(PROGRAM)) == pytest.approx(4.0)


def test_graph_files_know_them(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    wg.graph.save(wg.graph.trace(sp.erf)(0.5), path)
    assert float(output_of(LOADING, str(path))) == sp.erf(0.5)


def output_of(program: str, *arguments: str) -> str:
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_functions_return_tensors_whatever_they_are_given() -> None:
    assert type(wsp.erf(0.5)) is type(wsp.erf(np.ones(2))) is type(sp.erf(wg.tensor(0.5))) is wg.Tensor


def test_options_of_ufuncs() -> None:
    out = wg.tensor([0.0, 0.0])
    assert sp.erf(wg.tensor([0.5, 1.0]), out=out, where=np.array([True, False])) is out
    assert out.tolist() == [sp.erf(0.5), 0.0]


def test_what_has_no_derivative_says_so() -> None:
    with pytest.raises(
        DtypeError, match=r"scipy.special.zeta: the exponent x, which is being differentiated; an operand"
    ):
        wg.grad(lambda x: sp.zeta(x, 2.0))(3.0)


# Accuracy


def label(row: Row) -> str:
    return f"{row.name}-{','.join(map(str, row.ranges[-1]))}"


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_derivatives_are_those_of_mpmath(row: Row) -> None:
    for operand, order, error, point in errors(row, points=2):
        assert error <= (row.first if order == 1 else row.second), (operand, order, point)


# Edges


def gradient(function: Any, *point: float) -> list[float]:
    return [float(x) for x in wg.grad(function, argnums=tuple(range(len(point))))(*point)]


EDGES = [
    (sp.rgamma, [0.0], [1.0]),
    (sp.rgamma, [-3.0], [-6.0]),
    (sp.erfcx, [1e8], [-1e-16 / np.sqrt(np.pi)]),
    (sp.erfc, [40.0], [0.0]),
    (sp.log_ndtr, [-1e8], [1e8]),
    (sp.log_ndtr, [50.0], [0.0]),
    (sp.ndtri, [0.0], [np.inf]),
    (sp.dawsn, [np.inf], [0.0]),
    (sp.digamma, [np.inf], [0.0]),
]


@pytest.mark.parametrize(("function", "point", "want"), EDGES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_edges(function: Any, point: list[float], want: list[float]) -> None:
    np.testing.assert_allclose(gradient(function, *point), want, rtol=1e-12)
