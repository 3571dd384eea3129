"""Our own functions on large arrays, where WENGERT_OWN_FUNCTIONS asks for them: their bounds, and NumPy's warnings."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.emission.external_functions import text_of
from wengert.kernel.functions import FUNCTIONS
from wengert.kernel.opcodes import OPCODES
from wengert.native.availability import MissingLLVMError
from wengert.native.threads.elementwise import LARGE, SHARING, share_ufunc

pytest.importorskip("llvmlite")
OWN = sorted(name for name, p in PRIMITIVES.items() if isinstance(p, Elementwise) and p.own)
X = np.random.default_rng(0).uniform(-20, 20, 2 * LARGE + 5)
Y = np.random.default_rng(1).uniform(-3, 3, X.size)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let our own functions be used by two threads."""
    threads = SHARING.threads
    monkeypatch.setattr(SHARING, "own", text_of)
    SHARING.set_threads(2)
    SHARING.start()
    yield
    SHARING.set_threads(threads)


def fresh(name: str) -> Callable[..., Any]:
    """Return a shared function that has no loop yet."""
    return share_ufunc(getattr(np, name), name in OWN)


@pytest.mark.parametrize("name", OWN)
def test_results_are_within_the_bounds(name: str, own: None) -> None:
    arguments = (X, Y)[: OPCODES[name].arity]
    found, exact = fresh(name)(*arguments), getattr(np, name)(*[x.astype(np.longdouble) for x in arguments])
    error = np.abs(found - exact) / np.spacing(np.abs(exact).astype(float))
    assert float(np.max(error)) <= max(FUNCTIONS[name].double) + 0.01
    ours = getattr(np, name)(*arguments)
    assert not np.array_equal(found, ours)  # they are not NumPy's
    np.testing.assert_allclose(found, ours, rtol=1e-15)


def test_a_number_and_rows_with_gaps(own: None) -> None:
    rows = np.random.default_rng(2).random((300, 600))[:, 50:550]
    for x, y in ((X, 2.0), (2.0, X), (rows, 3.0), (rows, rows)):
        np.testing.assert_allclose(fresh("hypot")(x, y), np.hypot(x, y), rtol=1e-15)


def test_what_is_no_number_is_none_without_a_warning(own: None) -> None:
    x = X.copy()
    x[3:40] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fresh("tanh")(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))


def test_other_dtypes_and_functions_are_numpys(own: None) -> None:
    x = np.abs(X) + 1.0
    np.testing.assert_array_equal(fresh("sin")(x.astype(np.float32)), np.sin(x.astype(np.float32)))
    np.testing.assert_array_equal(fresh("sqrt")(x), np.sqrt(x))


def test_without_llvm_numpy_computes(own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise MissingLLVMError("llvmlite")

    monkeypatch.setattr(SHARING, "own", absent)
    monkeypatch.setattr("wengert.native.loader.kept_object", lambda _, write: write())
    monkeypatch.setattr("wengert.native.loader.FUNCTIONS", {})
    np.testing.assert_array_equal(fresh("sin")(X), np.sin(X))


WARNED = """
import warnings
import numpy as np, wengert as wg
from wengert.native.threads.elementwise import SHARING
SHARING.set_threads(2)
SHARING.start()
for name, value in (("exp", 1000.0), ("sin", np.inf)):
    x = np.linspace(-20.0, 20.0, 100_000)
    own = getattr(np, name)(wg.asarray(x)).numpy()
    x[-1] = value
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = getattr(np, name)(wg.asarray(x)).numpy()
    with np.errstate(all="ignore"):
        numpys = getattr(np, name)(x)
    print(*[str(w.message) for w in seen], np.array_equal(own[:-1], numpys[:-1]), np.array_equal(found, numpys, True))
"""


@pytest.mark.parametrize("asked", [False, True])
def test_the_environment_decides_and_numpy_reports(asked: bool) -> None:
    """Where NumPy has something to report it has computed; a process of its own, because functions keep their loops."""
    environment = os.environ | {"WENGERT_OWN_FUNCTIONS": str(int(asked))}
    done = subprocess.run([sys.executable, "-c", WARNED], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"overflow encountered in exp {not asked} True",
        f"invalid value encountered in sin {not asked} True",
    ]
