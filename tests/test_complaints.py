"""Tests of NumPy's warnings about numbers: they name the user's line, and users' own settings hold."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import unittest
import warnings
from types import FrameType
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.core.diagnostics import numpy_warnings
from wengert.core.diagnostics.argument_checks import require_finite
from wengert.core.diagnostics.numpy_warnings import COMPLAINTS

pytestmark = pytest.mark.usefixtures("evaluated")  # native code does not look at floating-point conditions
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


@together("call", CALLS.values())
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
    assert numpy_warnings.settings_of_numpy() is numpy_warnings.SETTINGS is not None
    assert numpy_warnings.settings_of_numpy("numpy.moved_away") is None
    assert numpy_warnings.settings_of_numpy("numpy") is None
    monkeypatch.setattr(numpy_warnings, "SETTINGS", None)
    with pytest.warns(RuntimeWarning, match="^invalid value encountered in log$") as caught:
        wg.jit(logarithm)(X)
    assert caught[0].filename != __file__


# On the tape, for plain Tensors, and of what is no number: the line at which an operation stops is the user's

EDGES = np.array([-1.0, 0.0, 2.0, 1e308])
COMPLEX = np.array([1 + 2j, 3.0, 0.0, 1.0])

OPERATIONS: dict[str, Any] = {
    "function": lambda x: np.log(x),
    "operator": lambda x: x / 0.0,
    "reflected": lambda x: 1.0 / x,
    "of two Tensors": lambda x: x * x,
    "scalar": lambda x: np.exp(x[3]),
    "scalar operator": lambda x: np.float64(2.0) ** x[3],
    "in place": lambda x: (x * 1.0).__itruediv__(0.0),
    "out": lambda x: np.divide(x, 0.0, out=x * 1.0),
    "without derivatives": lambda x: x // 0.0,
    "integers": lambda x: x.astype(bool).astype(int) // 0,
    "reduction": lambda x: np.add.reduce(x[[3, 3]]),
    "product": lambda x: np.multiply.reduce(x + 1e200),
    "running": lambda x: np.multiply.accumulate(x + 1e200),
    "dot": lambda x: np.dot(x, x),
    "empty mean": lambda x: x[:0].mean(),
    "variance": lambda x: x[:1].var(ddof=1),
    "without NaN": lambda x: np.nanmean(x * np.nan),
    "all NaN": lambda x: np.nanmax(x * np.nan),
    "median": lambda x: np.nanmedian(x * np.nan),
    "cast": lambda x: x.astype(np.float32),
    "to integers": lambda x: x.astype(np.int8),
    "complex cast": lambda x: (x * 1j).astype(float),
    "complex assignment": lambda x: (x * 1.0).__setitem__(slice(None), COMPLEX),
    "masked assignment": lambda x: (x * 1.0).__setitem__(np.array([True] * 4), COMPLEX),
    "number stored": lambda x: x[:3].astype(np.float32).__setitem__(0, 1e300),
    "added in place": lambda x: np.add.at(x * 1.0, [3, 3], 1e308),
    "through a view": lambda x: (x * 1.0)[1:].__imul__(x[1:]),
    "large": lambda x: np.log(np.tile(x, 10_000)),
    "large power": lambda x: np.tile(x, 10_000) ** 2.5,
}


def warnings_of(operation: Any, x: Any) -> list[tuple[str, type[Warning]]]:
    """Return what is warned of at the operation's own line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        operation(x)
    place = __file__, operation.__code__.co_firstlineno
    assert not [w for w in caught if "wengert" in w.filename]
    return [(str(w.message).replace("scalar ", ""), w.category) for w in caught if (w.filename, w.lineno) == place]


@together("operation", OPERATIONS.values())
def test_operations_warn_at_the_users_line(operation: Any) -> None:
    expected = warnings_of(operation, EDGES)
    assert expected
    assert warnings_of(operation, wg.tensor(EDGES)) == expected
    assert warnings_of(operation, wg.tensor(EDGES, requires_grad=True)) == expected


def cast(x: Any) -> Any:
    return (x * 1j).astype(float)  # the line of the cast


CAST_LINE = inspect.getsourcelines(cast)[1] + 1


MODES = [
    wg.jit,
    wg.vmap,
    lambda f: wg.vmap(wg.jit(f)),
    lambda f: lambda x: wg.vjp(f, x),
    lambda f: lambda x: wg.jvp(f, (x,), (x,)),
]


@pytest.mark.parametrize("transform", MODES)
def test_complex_numbers_that_become_real_name_the_users_line(transform: Any) -> None:
    with pytest.warns(np.exceptions.ComplexWarning) as caught:
        transform(cast)(np.ones((3, 2)))
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, CAST_LINE)}


def test_values_and_gradients_are_those_of_operations_that_did_not_warn() -> None:
    x = wg.tensor(EDGES, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x * x + 1.0 / x
        expected = EDGES * EDGES + 1.0 / EDGES
        y[2].backward()
        z = x * 0.0
        np.add.at(z, [3, 3], np.array([1e308, 1e308]))
    assert y.tolist() == expected.tolist()
    assert x.grad is not None
    assert np.array_equal(x.grad.numpy(), [0.0, 0.0, 3.75, 0.0])
    assert z.tolist() == [-0.0, 0.0, 0.0, np.inf]


def test_nothing_is_said_of_large_numbers_that_are_looked_at() -> None:
    large = np.array([1e200, 1.0])
    with np.errstate(all="raise"):
        require_finite("f", "x", large)
        assert wg.jvp(lambda x: np.where(x > 0, x, large), (X,), (X,))[1].tolist() == [0.0, 0.5]
        for many in (np.tile(large, (rows, 1)) for rows in (1, 40)):
            found = wg.jvp(lambda x, many: np.minimum(x, many), (X, many), (X, None))[1]
            assert np.array_equal(found, np.broadcast_to([-1.0, 0.5], many.shape))
    with np.errstate(over="raise", invalid="raise"):
        assert wg.jit(wg.grad(lambda x: np.sum(np.arctan(x) + np.arcsinh(x))))(large)[0] == 1e-200


def test_each_line_warns_once_by_default_and_filters_find_the_users_module() -> None:
    x = wg.tensor(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            np.log(x)
        np.log(x)
    assert len(caught) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        np.log(x)


def test_warnings_that_are_errors_end_at_the_users_line_and_have_no_other_cause() -> None:
    x = wg.tensor(X, requires_grad=True)
    for operation in (lambda: np.log(x), lambda: x / 0.0, lambda: x[:0].mean(), lambda: (x * 1j).astype(float)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(Warning, match=r"encountered|empty|imaginary") as info:
                operation()
        assert __file__ in (str(info.traceback[-1].path), str(info.traceback[-2].path))  # NumPy's own lines may be last
        assert info.value.__suppress_context__


def test_unittest_leaves_alone_what_stops_operations() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unittest looks at all modules, some of which warn of that
        watching = unittest.TestCase().assertWarns(RuntimeWarning)
        with watching as caught:
            np.log(wg.tensor(X))
    assert caught.filename == __file__


def test_collecting_starts_no_function_where_an_interrupt_would_be_lost() -> None:
    """What a handler of signals raises where a function starts is only printed in the middle of collecting."""
    started: list[str] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and "wengert" in frame.f_globals.get("__name__", ""):
            started.append(frame.f_code.co_name)

    gc.collect()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        gc.collect()
    finally:
        sys.setprofile(before)
    assert started == []


async def never_awaited() -> None:
    """Be a coroutine."""


class Finalized:
    def __del__(self) -> None:
        warnings.warn("finalized", UserWarning, stacklevel=2)


def test_warnings_of_what_the_garbage_collector_finalizes_in_the_middle_of_an_operation_are_given(
    monkeypatch: Any,
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    x = wg.tensor(X, requires_grad=True)
    count = 40
    threshold = gc.get_threshold()
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.set_threshold(20)
        try:
            for _ in range(count):
                for item in (never_awaited(), Finalized()):
                    cycle = [item]
                    cycle.append(cycle)  # type: ignore[arg-type]  # on purpose
                del cycle, item
                y = x
                for _ in range(30):
                    y = np.stack([y * 1.01, y])[0]
        finally:
            gc.set_threshold(*threshold)
        gc.collect()
    kinds = [w.category for w in caught]
    assert (kinds.count(RuntimeWarning), kinds.count(UserWarning), unraisable) == (count, count, [])
    assert any(w.filename != __file__ for w in caught), "none was in the middle of an operation"
