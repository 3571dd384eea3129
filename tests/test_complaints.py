"""Tests of NumPy's warnings about numbers: they name the user's line, and users' own settings hold."""

from __future__ import annotations

import inspect
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.core import complaints
from wengert.core.complaints import COMPLAINTS

X = np.array([-1.0, 0.5])


def logarithm(x: Any) -> Any:
    x = x * 1.0
    return np.sum(np.log(x))  # the line


def looped(x: Any) -> Any:
    return wg.while_loop(lambda s: s < 1.0, lambda s: s + 1.0 + np.sqrt(s - 3.0) * 0.0, x[1])


THE_LINE = inspect.getsourcelines(logarithm)[1] + 2
LOOP_LINE = inspect.getsourcelines(looped)[1] + 1

CALLS = {
    "grad": lambda: wg.grad(logarithm)(X),
    "vjp": lambda: wg.vjp(logarithm, X),
    "jvp": lambda: wg.jvp(logarithm, (X,), (X,)),
    "hessian": lambda: wg.hessian(logarithm)(X),
    "vmap": lambda: wg.vmap(logarithm)(X[None]),
    "vmap(grad)": lambda: wg.vmap(wg.grad(logarithm))(X[None]),
    "jit": lambda: wg.jit(logarithm)(X),
    "jit(grad)": lambda: wg.jit(wg.grad(lambda x: logarithm(x) ** 2))(X),
    "grad(jit)": lambda: wg.grad(wg.jit(logarithm))(X),
    "jit on the tape": lambda: wg.jit(logarithm)(wg.tensor(X, requires_grad=True)),
    "graph": lambda: wg.graph.trace(logarithm)(X)(X),
    "taylor": lambda: wg.taylor(logarithm, (X,), (X,), 2),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_warnings_name_the_users_line(call: Any) -> None:
    before = np.geterr(), np.geterrcall()
    with pytest.warns(RuntimeWarning) as caught:
        call()
    assert {(str(w.message), w.filename, w.lineno) for w in caught} == {
        ("invalid value encountered in log", __file__, THE_LINE)
    }
    assert (np.geterr(), np.geterrcall()) == before


def test_loops_of_graphs() -> None:
    with pytest.warns(RuntimeWarning, match="^invalid value encountered in sqrt$") as caught:
        wg.jit(looped)(X)
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, LOOP_LINE)}


def test_a_warning_is_given_once_for_a_line() -> None:
    step = wg.jit(logarithm)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            step(X)
    assert len(caught) == 1


def test_filters_make_errors_of_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for transform in (wg.jit, wg.grad):
            with pytest.raises(RuntimeWarning, match="invalid value encountered in log"):
                transform(logarithm)(X)
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        wg.jit(logarithm)(X)


@pytest.mark.parametrize("transform", [wg.jit, wg.grad])
def test_settings_of_the_user_hold(transform: Any) -> None:
    function, said = transform(logarithm), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(invalid="ignore"):
            function(X)
        with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid value encountered in log"):
            function(X)
        with np.errstate(invalid="call", call=lambda kind, _: said.append(kind)):
            function(X)
    assert said == ["invalid value"]


def test_settings_inside_hold_inside_and_those_that_stay_stay() -> None:
    def quiet(x: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return logarithm(x)

    def sets(x: Any) -> Any:
        np.seterr(over="raise")
        return np.sum(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wg.grad(quiet)(X)
    with np.errstate(all="warn"):
        wg.grad(sets)(X)
        assert np.geterr() == {"divide": "warn", "over": "raise", "under": "warn", "invalid": "warn"}
        assert np.geterrcall() is not COMPLAINTS


def test_other_threads_keep_their_settings() -> None:
    found: list[Any] = []

    def look(x: Any) -> Any:
        thread = threading.Thread(target=lambda: found.append((np.geterr(), np.geterrcall())))
        thread.start()
        thread.join()
        return np.sum(x)

    wg.grad(look)(X)
    assert found[0][1] is not COMPLAINTS
    assert "log" not in found[0][0].values()


def test_warnings_stay_numpys_where_its_settings_cannot_be_reached(monkeypatch: Any) -> None:
    assert complaints.settings_of_numpy() is complaints.SETTINGS is not None
    assert complaints.settings_of_numpy("numpy.moved_away") is None
    assert complaints.settings_of_numpy("numpy") is None
    monkeypatch.setattr(complaints, "SETTINGS", None)
    with pytest.warns(RuntimeWarning, match="^invalid value encountered in log$") as caught:
        wg.grad(logarithm)(X)
    assert caught[0].filename != __file__
