"""Grad mode: context managers, decorators, generators, coroutines, threads, and transformations."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import operator
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert.compile.programs import BACKEND, using
from wengert.conversion.traced_regions import HANDLERS, handle_errors
from wengert.core.memory.write_watches import Watch
from wengert.core.values.execution_state import ACTIVE, COUNTING, RoundCounter
from wengert.core.values.recording import ANOMALY, BUDGET, FLOOR, FORWARD, PACKING, REVIVING
from wengert.core.values.tensor import WATCHES, WATCHING
from wengert.errors import DtypeError, GraphError, UsageError
from wengert.kernel.evaluation import Evaluator
from wengert.native.lapack import ONE_THREAD
from wengert.support.collector_pause import LoadingPause
from wengert.support.scopes import OtherAttributes
from wengert.traces.grad_modes import in_forward, reviving
from wengert.traces.written_out import ROLLING, RollingScope, strictly
from wengert.transforms.captured_gradients import CapturedSubstitution


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(values, requires_grad=True)


OFF = [wg.no_grad, wg.inference_mode, lambda: wg.set_grad_enabled(False)]


# requires_grad


@pytest.mark.parametrize("dtype", [int, bool, np.uint8])
def test_requires_grad_needs_a_dtype_with_derivatives(dtype: Any) -> None:
    needed = f"dtype {np.dtype(dtype)}; a float or complex dtype is needed to differentiate"
    with pytest.raises(DtypeError) as error:
        wg.tensor(np.array([1, 0], dtype), requires_grad=True)
    assert str(error.value) == f"tensor: {needed}. Write 3.0 in place of 3, or pass dtype=float."
    t = wg.tensor([1, 0], dtype=dtype)
    with pytest.raises(DtypeError) as error:
        t.requires_grad_()
    assert str(error.value) == f"requires_grad: {needed}. Convert it with .astype(float)."
    with pytest.raises(DtypeError):
        t.requires_grad = True
    assert not t.requires_grad


def test_requires_grad_can_be_switched() -> None:
    t = wg.tensor([1.0])
    assert t.requires_grad_() is t
    assert t.requires_grad
    t.requires_grad = False
    assert not t.requires_grad
    assert not (t * 2).requires_grad


def test_gradients_are_kept_while_a_leaf_requires_none() -> None:
    t = wg.tensor([1.0, 2.0], requires_grad=True)
    (t * t).sum().backward()
    t.requires_grad_(False)
    assert not (t * 2).requires_grad
    assert t.grad is not None
    assert t.grad.tolist() == [2.0, 4.0]
    t.requires_grad_()
    (t * t).sum().backward()
    assert t.grad.tolist() == [4.0, 8.0]
    t.requires_grad = False
    t.grad = None
    assert t.grad is None
    assert t.requires_grad_().grad is None
    assert t.requires_grad_(False).requires_grad_().grad is None


def test_a_leaf_that_requires_no_more_gradients_stands_beside_others_that_do() -> None:
    for operate in (operator.mul, operator.matmul, np.hypot, np.dot, lambda x, y: np.stack((x, y))):
        for stops_first in (True, False):
            t = wg.tensor([1.0, 2.0], requires_grad=True)
            (t * t).sum().backward()
            t.requires_grad_(False)
            x, y = wg.tensor([3.0, 4.0], requires_grad=True), wg.tensor([3.0, 4.0], requires_grad=True)
            plain = wg.tensor([1.0, 2.0])
            operate(*((t, x) if stops_first else (x, t))).sum().backward()
            operate(*((plain, y) if stops_first else (y, plain))).sum().backward()
            assert (t.grad.tolist(), x.grad.tolist()) == ([2.0, 4.0], y.grad.tolist())


def test_what_was_computed_cannot_stop_requiring_grad() -> None:
    y = leaf(1.0) * 2
    assert y.requires_grad_() is y
    with pytest.raises(GraphError) as error:
        y.requires_grad_(False)
    assert str(error.value) == (
        "requires_grad_: a Tensor that multiply computed; a leaf is needed to stop differentiating. Use .detach()."
    )


def test_making_a_view_a_leaf_cuts_it_from_its_base() -> None:
    base = wg.tensor([1.0, 2.0, 3.0])
    view = base[1:].requires_grad_()
    y = (view * view).sum()
    base[1] = 100.0
    y.backward()
    assert view.tolist() == [2.0, 3.0]
    assert view.grad is not None
    assert view.grad.tolist() == [4.0, 6.0]


def test_a_leaf_made_from_an_array_does_not_follow_it() -> None:
    array = np.array([1.0, 2.0])
    x = wg.asarray(array).requires_grad_()
    y = (x * x).sum()
    array[:] = 100.0
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


def test_views_of_a_base_follow_it_when_it_becomes_a_leaf() -> None:
    base = wg.tensor([1.0, 2.0, 3.0])
    view = base[1:]
    base.requires_grad_()
    (view * view).sum().backward()
    assert base.grad is not None
    assert base.grad.tolist() == [0.0, 4.0, 6.0]


def test_detach_cuts_and_shares_until_a_write() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    cut = y.detach()
    assert not cut.requires_grad
    assert np.shares_memory(cut.numpy(), y.detach().numpy())
    cut[0] = 100.0
    assert y.tolist() == [2.0, 4.0]
    part = y[:1].detach()
    y[0] = 50.0
    assert part.tolist() == [2.0]


# The modes


@pytest.mark.parametrize("off", OFF)
def test_off_as_context(off: Any) -> None:
    x = leaf(1.0)
    assert wg.is_grad_enabled()
    with off():
        assert not wg.is_grad_enabled()
        assert not (x * 2).requires_grad
        with wg.enable_grad():
            assert wg.is_grad_enabled()
            assert (x * 2).requires_grad
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()


@pytest.mark.parametrize("off", OFF)
def test_modes_are_restored_after_errors(off: Any) -> None:
    with pytest.raises(ZeroDivisionError), off():
        raise ZeroDivisionError
    assert wg.is_grad_enabled()


@pytest.mark.parametrize("off", OFF)
def test_off_as_decorator(off: Any) -> None:
    @off()
    def compute(x: wg.Tensor) -> wg.Tensor:
        """Keep the docstring."""
        return x * 2

    assert wg.is_grad_enabled()
    assert compute.__name__ == "compute"
    assert compute.__doc__ == "Keep the docstring."
    assert not compute(leaf(1.0)).requires_grad
    assert wg.is_grad_enabled()


@pytest.mark.parametrize("mode", [wg.no_grad, wg.inference_mode])
def test_decorators_need_no_parentheses(mode: Any) -> None:
    @mode
    def compute(x: wg.Tensor) -> wg.Tensor:
        return x * 2

    assert not compute(leaf(1.0)).requires_grad
    with wg.no_grad():
        assert wg.enable_grad(lambda x: x * 2)(leaf(1.0)).requires_grad


def test_decorated_functions_may_recurse() -> None:
    @wg.no_grad()
    def countdown(n: int) -> list[bool]:
        return [wg.is_grad_enabled()] + (countdown(n - 1) if n else [])

    assert countdown(3) == [False] * 4
    assert wg.is_grad_enabled()


def test_set_grad_enabled_acts_at_once() -> None:
    wg.set_grad_enabled(False)
    try:
        assert not wg.is_grad_enabled()
        with wg.set_grad_enabled(True):
            assert wg.is_grad_enabled()
        assert not wg.is_grad_enabled()
    finally:
        wg.set_grad_enabled(True)
    assert wg.is_grad_enabled()


def test_a_mode_object_may_be_entered_again() -> None:
    for kind in OFF:
        mode = kind()
        with mode:
            pass
        assert wg.is_grad_enabled()
        with mode:
            assert not wg.is_grad_enabled()
        assert wg.is_grad_enabled()
    mode = wg.no_grad()
    with mode, wg.enable_grad(), mode:
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()
    for _ in range(3):
        with pytest.raises(UsageError, match=r"^grad mode: the exit of a mode that has not been entered; one entry"):
            mode.__exit__(None, None, None)
    for _ in range(2):
        with mode:
            assert not wg.is_grad_enabled()
        assert wg.is_grad_enabled()


def test_generators_run_in_the_mode_and_do_not_leak_it() -> None:
    @wg.no_grad()
    def steps() -> Iterator[Any]:
        received = yield wg.is_grad_enabled()
        try:
            yield (received, wg.is_grad_enabled())
        except KeyError:
            yield ("caught", wg.is_grad_enabled())
        return "result"

    running = steps()
    assert next(running) is False
    assert wg.is_grad_enabled()
    assert running.send("sent") == ("sent", False)
    assert wg.is_grad_enabled()
    assert running.throw(KeyError()) == ("caught", False)
    assert wg.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "result"
    assert wg.is_grad_enabled()


def test_closing_a_generator_runs_its_cleanup_in_the_mode() -> None:
    seen: list[bool] = []

    @wg.no_grad()
    def steps() -> Iterator[int]:
        try:
            yield 1
        finally:
            seen.append(wg.is_grad_enabled())

    running = steps()
    next(running)
    running.close()
    assert seen == [False]
    assert wg.is_grad_enabled()


def test_coroutines_run_in_the_mode_and_do_not_leak_it() -> None:
    log: list[tuple[str, bool]] = []

    @wg.no_grad()
    async def quiet() -> str:
        log.append(("quiet", wg.is_grad_enabled()))
        await asyncio.sleep(0)
        log.append(("quiet", wg.is_grad_enabled()))
        try:
            await asyncio.wait_for(asyncio.sleep(10), 0.001)
        except TimeoutError:
            log.append(("timeout", wg.is_grad_enabled()))
        return "done"

    async def loud() -> None:
        for _ in range(3):
            log.append(("loud", wg.is_grad_enabled()))
            await asyncio.sleep(0)

    async def both() -> Any:
        return await asyncio.gather(quiet(), loud())

    assert asyncio.run(both())[0] == "done"
    assert set(log) == {("quiet", False), ("loud", True), ("timeout", False)}


def test_asynchronous_generators_run_in_the_mode() -> None:
    @wg.no_grad()
    async def steps() -> AsyncIterator[bool]:
        yield wg.is_grad_enabled()
        await asyncio.sleep(0)
        yield wg.is_grad_enabled()

    async def collect() -> list[tuple[bool, bool]]:
        return [(inside, wg.is_grad_enabled()) async for inside in steps()]

    assert asyncio.run(collect()) == [(False, True), (False, True)]


def test_modes_belong_to_their_thread() -> None:
    x = leaf(1.0)
    inside, go_on = threading.Event(), threading.Event()
    seen: list[bool] = []

    def quiet() -> None:
        with wg.no_grad():
            seen.append((x * 2).requires_grad)
            inside.set()
            go_on.wait(10)
            seen.append((x * 2).requires_grad)

    thread = threading.Thread(target=quiet)
    thread.start()
    inside.wait(10)
    assert wg.is_grad_enabled()
    assert (x * 2).requires_grad
    with wg.no_grad():
        go_on.set()
        thread.join()
    assert seen == [False, False]
    assert (x * 2).requires_grad


# Writing while not recording


def test_updates_of_leaves() -> None:
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x * x).sum().backward()
        with wg.no_grad():
            x -= 0.25 * x.grad
        x.grad = None
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == [0.125, 0.25]


def test_writes_into_what_was_computed_change_values_only() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    with wg.no_grad():
        y[0] = 100.0
        y[1:] += 1.0
    assert y.tolist() == [100.0, 7.0]
    (y * y).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [600.0, 42.0]


def test_views_made_without_recording_stay_constants() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    with wg.no_grad():
        view = y[1:]
    assert not view.requires_grad
    y[1] = x[0] * 5
    assert view.tolist() == [5.0, 6.0]
    assert not view.requires_grad


def test_views_looked_at_without_recording_keep_their_gradient() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    view = y[1:]
    y[1] = x[0] * 5
    with wg.no_grad():
        assert view.sum().item() == 11.0
    view.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5.0, 0.0, 2.0]


# Transformations


def test_a_transformation_inside_no_grad_differentiates() -> None:
    with wg.no_grad():
        assert wg.grad(lambda x: x * x)(3.0) == 6.0
        assert wg.grad(wg.grad(lambda x: x**3))(2.0) == 12.0


def test_no_grad_inside_a_transformation_cuts() -> None:
    def f(x: Any) -> Any:
        with wg.no_grad():
            y = x * x
        return y * x

    assert wg.grad(f)(3.0) == 9.0


def test_a_transformation_inside_no_grad_inside_a_transformation() -> None:
    def outer(x: Any) -> Any:
        with wg.no_grad():
            slope = wg.grad(lambda y: y**3)(x)
        return slope * x

    assert wg.grad(outer)(2.0) == 12.0


def test_enable_grad_inside_no_grad_inside_a_transformation() -> None:
    def f(x: Any) -> Any:
        with wg.no_grad(), wg.enable_grad():
            return x * x

    assert wg.grad(f)(3.0) == 6.0


def test_writes_inside_no_grad_inside_a_transformation() -> None:
    w = leaf(1.0, 2.0)

    def f(x: Any) -> Any:
        buffer = w * 1.0
        with wg.no_grad():
            buffer[0] = x
        return (buffer * x).sum()

    result = wg.grad(f)(3.0)
    assert result.item() == 5.0
    result.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [1.0, 1.0]


def test_detect_anomaly_does_not_look_into_what_is_being_traced() -> None:
    with wg.autograd.detect_anomaly():
        gradient = wg.jit(wg.grad(lambda x: np.sum(x * x)))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [2.0, 4.0])


# In every mode


def scaled_in_place(x):
    y = x * 2.0
    with wg.no_grad():
        y *= 3.0
    return np.sum(y)


def constant_written(x):
    y = x * 2.0
    with wg.no_grad():
        y[0] = 5.0
    return np.sum(y * y)


def computed(x):
    with wg.no_grad():
        y = x * 2.0
    return np.sum(y + x)


def written_into_a_constant(x):
    y = np.zeros_like(x)
    with wg.no_grad():
        y[0] = x[1] * 7.0
        y += x
    return np.sum(y * y) + np.sum(x)


def written_through_a_view(x):
    y = x * 1.0
    with wg.no_grad():
        z = y[:1]
        z *= 2.0
    return np.sum(y * y)


def chosen(x):
    with wg.no_grad():
        y = wg.cond(x[0] > 0, lambda x: x * 2.0, lambda x: x * 3.0, x)
    return np.sum(y * x)


def repeated(x):
    def body(_, c):
        with wg.no_grad():
            t = c * 2.0
        return c + t

    return np.sum(wg.fori_loop(0, 2, body, x))


def viewed(x):
    y = x * 1.0
    with wg.no_grad():
        v = y[:1]
    y[0] = x[1] * 3.0
    return np.sum(v * x[0]) + np.sum(y)


def view_written(x):
    y = x * 1.0
    with wg.no_grad():
        v = y[:1]
        w = v.reshape(1, 1)
    v[0] = x[0] * 5.0
    return np.sum(w * x[1]) + np.sum(y)


def constant_viewed(x):
    with wg.no_grad():
        y = x * 2.0
        v = y[1:]
    y[1] = x[0] * 5.0
    return np.sum(v * x[1:])


def view_read_first_under_no_grad(x):
    y = x * 1.0
    v = y[:1]
    y[0] = x[1] * 3.0
    with wg.no_grad():
        v * 2.0
    return np.sum(v * x[0])


def along_axes(f):
    return lambda x: np.array([wg.taylor(f, (x,), (d,), 1)[1] for d in np.eye(2)])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (scaled_in_place, [2.0, 2.0]),
        (constant_written, [20.0, 16.0]),
        (computed, [1.0, 1.0]),
        (written_into_a_constant, [1.0, 1.0]),
        (written_through_a_view, [4.0, 4.0]),
        (chosen, [2.0, 4.0]),
        (repeated, [1.0, 1.0]),
        (viewed, [6.0, 4.0]),
        (view_written, [5.0, 6.0]),
        (constant_viewed, [0.0, 5.0]),
        (view_read_first_under_no_grad, [6.0, 3.0]),
    ],
)
def test_no_grad_stops_derivatives_in_every_mode(function, expected):
    x = np.array([1.0, 2.0])
    value = function(x.copy())
    for mode in (wg.grad, wg.jacfwd, wg.jacrev, along_axes, lambda f: lambda x: wg.vmap(wg.grad(f))(x[None])[0]):
        np.testing.assert_array_equal(mode(function)(x), expected)
    for mode in (wg.grad, wg.jacfwd):
        np.testing.assert_array_equal(mode(wg.jit(function))(x), expected)
        np.testing.assert_array_equal(wg.jit(mode(function))(x), expected)
    assert wg.jit(function)(x) == value


def test_tasks_that_take_turns_have_modes_of_their_own() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)

    async def quiet() -> list[bool]:
        found = []
        with wg.no_grad():
            for _ in range(3):
                found.append((x * 2).requires_grad)
                await asyncio.sleep(0)
        return [*found, not (x * 2).requires_grad]

    async def loud() -> list[bool]:
        found = []
        for _ in range(4):
            found.append(not (x * 2).requires_grad)
            with wg.no_grad():
                found.append((x * 2).requires_grad)
            await asyncio.sleep(0)
        return found

    async def together() -> list[list[bool]]:
        return await asyncio.gather(quiet(), loud(), quiet())

    assert not any(map(any, asyncio.run(together())))
    assert (x * 2).requires_grad


def states_of_thread() -> list[Any]:
    """Return all that scopes of the library change for a while."""
    modes = [x.get() for x in (FLOOR, FORWARD, PACKING, ANOMALY, REVIVING, BUDGET, BACKEND)]
    tracing = ROLLING.strict, ROLLING.allowed, HANDLERS.count, COUNTING.counter, ACTIVE.mask, list(WATCHING.stack)
    captured = X_CAPTURED._trace is None, len(WATCHES), len(ONE_THREAD.undos)
    return [*modes, *tracing, *captured, np.geterr(), np.geterrcall(), gc.isenabled()]


def interrupt_anywhere(make: Callable[[], Callable[[], Any]], apart: int) -> int:
    """Interrupt calls where Python handles signals, one at each of so many such places; return how many there are.

    That is where functions of Python begin, and behind those of C.
    """
    left, place = 0, 1

    def interrupt(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_return")
        if left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    outer, states = sys.getprofile(), states_of_thread()
    while left <= 0:  # until there are no more places
        call, left = make(), place
        place += apart
        sys.setprofile(interrupt)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(outer)
        assert states_of_thread() == states, place
    return place


def differentiated(x: Any) -> Any:
    return np.sum(np.arcsin(x / 4) ** 2)


def enter(*scopes: Any) -> None:
    for scope in scopes:
        with scope:
            if type(scope) is Watch:
                scope.adopt(X_CAPTURED, wg.tensor(X, requires_grad=True))
            if type(scope) is CapturedSubstitution:
                scope.begin([wg.tensor(X, requires_grad=True)])


def make_modes() -> tuple[Any, ...]:
    identity: Any = lambda t: t
    hooks = wg.autograd.saved_tensors_hooks(identity, identity)
    return wg.no_grad(), in_forward("f"), hooks, wg.autograd.detect_anomaly(), wg.memory_budget("1MB"), reviving(5.0)


def make_inner_scopes() -> tuple[Any, ...]:
    substitution = CapturedSubstitution("grad", np.sum, [X_CAPTURED])
    counting = OtherAttributes(COUNTING, counter=RoundCounter(1.0, {}))
    tracing = RollingScope(allowed=True), strictly(True), handle_errors(), counting
    return ONE_THREAD, using(Evaluator()), Watch(), substitution, *tracing


X = np.array([1.0, 2.0])
X_CAPTURED = wg.tensor(X)
JITTED = wg.jit(differentiated, native=False)
INTERRUPTED: dict[str, tuple[Callable[[], Callable[[], Any]], int]] = {
    "sweep": (lambda: wg.tensor(X, requires_grad=True).square().sum().backward, 1),
    "call": (lambda: partial(JITTED, X), 1),
    "plain": (lambda: partial(wnp.average, wg.tensor(X)), 1),
    "trace": (lambda: partial(wg.jit(lambda x: np.sum(x * x), native=False), X), 11),
    "modes": (lambda: partial(enter, *make_modes()), 1),
    "inner scopes": (lambda: partial(enter, *make_inner_scopes()), 1),
    "loading": (lambda: partial(enter, LoadingPause()), 7),
    "tangents": (lambda: partial(wg.jvp, differentiated, (X,), (X,)), 5),
}


def test_modes_are_left_by_stacks_of_contexts_and_by_errors_within_themselves() -> None:
    mode = wg.no_grad()
    with contextlib.ExitStack() as stack, contextlib.suppress(ZeroDivisionError):
        stack.enter_context(mode)
        with mode:
            raise ZeroDivisionError
    assert wg.is_grad_enabled()
    mode.__enter__()
    assert not wg.is_grad_enabled()
    mode.__exit__(None, None, None)
    assert wg.is_grad_enabled()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@together("name", INTERRUPTED)
def test_what_is_interrupted_anywhere_leaves_modes_and_errors_as_they_were(name: str) -> None:
    make, apart = INTERRUPTED[name]
    make()()  # imports
    with np.errstate(all="warn"):  # whatever that left
        assert interrupt_anywhere(make, apart) > 10
