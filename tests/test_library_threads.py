"""How many threads NumPy's and SciPy's libraries use: one around routines, and in the end as many as before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import linalg

import wengert as wg
from wengert.core.forms.routine import ALONE, Routine
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply
from wengert.native.lapack import OFFERED, ROUTINES, library_of
from wengert.support import config

LIBRARIES = [library_of(name) for name in (ROUTINES, OFFERED[0])]


@pytest.fixture(autouse=True)
def _several() -> Iterator[None]:
    """Let the libraries use two threads, as they would on a machine with two processors."""
    before = [library.count() for library in LIBRARIES]
    if not all(before):
        pytest.skip("what NumPy or SciPy call does not tell how many threads it uses")
    for library in LIBRARIES:
        library.use(2)
    yield
    assert counts() == [2, 2]
    for library, count in zip(LIBRARIES, before, strict=True):
        library.use(count)


def counts() -> list[int]:
    return [library.count() for library in LIBRARIES]


def seen_by(rows: int, form: Routine, change: int = 0) -> list[int]:
    """Return how many threads libraries use while a routine on so many rows runs, which may change that."""
    found: list[list[int]] = []

    def look(a: Any) -> Any:
        found.append(counts())
        for library in LIBRARIES:
            library.use(change or library.count())
        return a

    form.evaluation(look)(np.eye(rows))
    return found[0]


def test_routines_on_matrices_of_some_size_have_one_thread() -> None:
    matrices, rows = Routine("(n,n)->(n,n)"), Routine("(n)->(n)")
    assert seen_by(ALONE[0], matrices) == seen_by(ALONE[1] + 1, matrices) == seen_by(100, rows) == [2, 2]
    assert seen_by(ALONE[0] + 1, matrices) == seen_by(ALONE[1], matrices) == [1, 1]
    for library in LIBRARIES:
        library.use(1)
    assert seen_by(100, matrices) == [1, 1] == counts()
    for library in LIBRARIES:
        library.use(2)


def test_rules_of_routines_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    found, solve = [], np.linalg.solve

    def look(*matrices: Any) -> Any:
        found.append(counts())
        return solve(*matrices)

    monkeypatch.setattr(np.linalg, "solve", look)
    for rows in (ALONE[0], 100):
        a = np.eye(rows) + np.ones((rows, rows)) / rows
        wg.grad(lambda a, own=apply: np.sum(own(PRIMITIVES["solve"], a, a)))(a)
        wg.grad(lambda a, own=apply: np.sum(own(PRIMITIVES["scipy_solve"], a, a, check_finite=False)))(a)
    assert [x for x in found if x != [1, 1]] == [[2, 2]] * 3  # the evaluation and two rules of few rows
    assert len(found) == 6


def test_what_somebody_sets_meanwhile_stays() -> None:
    assert seen_by(100, Routine("(n,n)->(n,n)"), change=3) == [1, 1]
    assert counts() == [3, 3]
    for library in LIBRARIES:
        library.use(2)


def test_numbers_are_put_back_after_errors_and_by_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(np.linalg.LinAlgError):
        wg.grad(lambda a: np.sum(np.linalg.inv(a)))(np.zeros((40, 40)))
    assert counts() == [2, 2]
    monkeypatch.setattr(config, "AT_ONCE", True)
    monkeypatch.setattr(config, "NATIVE", True)
    a = np.random.default_rng(0).normal(size=(50, 50)) + 10 * np.eye(50)
    run, want = wg.jit(np.linalg.inv), linalg.inv(a)
    for _ in range(3):
        run(a)
    with pytest.raises(np.linalg.LinAlgError):
        run(np.zeros_like(a))
    assert counts() == [2, 2]
    wrong: list[Any] = []

    def work(call: Any) -> None:
        wrong.extend(i for i in range(50) if not np.allclose(call(a), want))

    calls = (run, PRIMITIVES["inv"].evaluate, PRIMITIVES["scipy_inv"].evaluate)
    threads = [threading.Thread(target=work, args=(call,)) for call in calls * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
