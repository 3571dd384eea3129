"""Modes of recording, per thread and task: grad mode, saved-tensor hooks, anomaly detection."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Generator
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from wengert.core.diagnostics.argument_checks import require_callable, require_flag
from wengert.core.values.recording import (
    ANOMALY,
    BUDGET,
    FLOOR,
    FORWARD,
    PACKING,
    READERS,
    REVIVING,
    floor_at,
    next_level,
    packing_of,
)
from wengert.core.values.tensor import Trace
from wengert.errors import RangeError, UsageError
from wengert.support.scopes import Restore, StateScope, calling_all, turn

F = TypeVar("F", bound=Callable[..., Any])


def recording(trace: Trace) -> bool:
    """Tell whether a trace records in this thread now.

    A trace that is newer than the innermost `no_grad` does: a transformation inside `no_grad` differentiates, while
    `no_grad` inside the function being transformed switches its tape off.
    """
    return trace.level >= FLOOR.get()


def is_stopped(trace: Trace) -> bool:
    """Tell whether `no_grad` stops a trace that is no tape; `forward` of a Function refuses its values instead."""
    return FORWARD.get()[0] <= trace.level < FLOOR.get()


def is_grad_enabled() -> bool:
    """Tell whether operations on Tensors that require grad are recorded in this thread.

    Returns:
        Whether they are.

    >>> with no_grad():
    ...     is_grad_enabled()
    False
    """
    return FLOOR.get() <= 0


def refuse_to_leave() -> None:
    """Raise an error of an exit that no entry came before."""
    given = "the exit of a mode that has not been entered"
    raise UsageError("grad mode", given, "one entry before each is needed", "Write `with no_grad():`, for instance")


class Mode(StateScope):
    """Be a context manager and a decorator; generators and coroutines run in the mode whenever they run."""

    not_entered = turn(refuse_to_leave)

    def again(self) -> Mode:
        """Return a mode like this one that has not been entered."""
        raise NotImplementedError

    def __call__(self, function: F) -> F:
        """Return a function, generator function or coroutine function that runs in this mode."""
        require_callable(type(self).__name__, function)
        again = self.again
        wrapper: Any
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                steps = function(*args, **kwargs)
                step = steps.asend(None)
                while True:
                    try:
                        produced = await _Driven(again, step)
                    except StopAsyncIteration:
                        return
                    try:
                        step = steps.asend((yield produced))
                    except GeneratorExit:
                        await _Driven(again, steps.aclose())
                        raise
                    except BaseException as error:  # noqa: BLE001 - as in `drive`
                        step = steps.athrow(error)

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                return await _Driven(again, function(*args, **kwargs))

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return (yield from drive(again, function(*args, **kwargs)))

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with again():
                    return function(*args, **kwargs)

        return wrapper  # type: ignore[no-any-return]  # as the function was


class _Driven:
    """Await a coroutine with a mode around each of its steps."""

    def __init__(self, again: Callable[[], Mode], coroutine: Any) -> None:
        self.again, self.coroutine = again, coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return drive(self.again, self.coroutine)


def drive(again: Callable[[], Mode], steps: Any) -> Generator[Any, Any, Any]:
    """Run a generator or coroutine with a mode around each step, so that the mode never leaks at a yield."""
    resume, argument = steps.send, None
    while True:
        try:
            with again():
                produced = resume(argument)
        except StopIteration as stop:
            return stop.value
        try:
            resume, argument = steps.send, (yield produced)
        except GeneratorExit:
            with again():
                steps.close()
            raise
        except BaseException as error:  # noqa: BLE001 - what is thrown in, whatever it is, belongs to the inner one
            resume, argument = steps.throw, error


class _Setting(Mode):
    """Set one of the modes of this context, and restore it; a mode may be entered again inside itself."""

    variable: ClassVar[ContextVar[Any]]

    def value(self) -> Any:
        """Return what to set."""
        raise NotImplementedError

    def undo(self) -> Restore:
        """Return what sets what is set now."""
        return partial(self.variable.set, self.variable.get())

    def change(self) -> None:
        """Set it."""
        self.variable.set(self.value())

    def again(self) -> Mode:
        """Return a fresh one."""
        return type(self)()


class _GradMode(_Setting):
    """Set the level from which on traces record."""

    variable = FLOOR

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Return a mode, or, where the decorator was written without parentheses, the function in it."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self, function: None = None) -> None:
        super().__init__()


class no_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Stop recording in this thread, as a context manager or decorator.

    In a function that is differentiated, traced or pushed forward it does the same in every mode: what is computed is
    a constant, and what is written keeps the derivatives of what was there before, as in PyTorch.

    >>> import wengert as wg
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> with wg.no_grad():
    ...     (x * x).requires_grad
    False
    """

    def value(self) -> float:
        """Every trace that exists now stops recording."""
        return floor_at(next_level())


class in_forward(Mode):  # noqa: N801 - named like the modes around it
    """Stop recording while the `forward` of a Function runs, which must not read what older traces differentiate."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def undo(self) -> Restore:
        """Return what sets what records now."""
        return calling_all((partial(FORWARD.set, FORWARD.get()), partial(FLOOR.set, FLOOR.get())))

    def change(self) -> None:
        """Every trace that exists now stops recording."""
        level = next_level()
        FLOOR.set(floor_at(level))
        FORWARD.set((level, self.name))

    def again(self) -> Mode:
        """Return a fresh one."""
        return in_forward(self.name)


class inference_mode(no_grad):  # noqa: N801 - PyTorch's name
    """Stop recording in this thread, as `no_grad` does; PyTorch's users know it as a stricter mode.

    >>> with inference_mode():
    ...     is_grad_enabled()
    False
    """


class enable_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Record in this thread, also inside `no_grad`.

    >>> with no_grad(), enable_grad():
    ...     is_grad_enabled()
    True
    """

    def value(self) -> float:
        """Every trace records."""
        return -math.inf


class set_grad_enabled(Mode):  # noqa: N801 - PyTorch's name
    """Switch recording on or off in this thread: at once, and until the end of the block if used in a `with`.

    Args:
        mode: whether to record.

    >>> with set_grad_enabled(False):
    ...     is_grad_enabled()
    False
    >>> is_grad_enabled()
    True
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        require_flag("set_grad_enabled", mode=mode)
        self.mode = mode
        self.before = FLOOR.get()
        self.change()

    def undo(self) -> Restore:
        """Return what sets what was set before it was made."""
        return partial(FLOOR.set, self.before)

    def change(self) -> None:
        """Set the mode."""
        FLOOR.set(-math.inf if self.mode else floor_at(next_level()))

    def again(self) -> Mode:
        """Return a fresh one."""
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        """Return a function that runs in this mode; the switch made on construction is undone."""
        FLOOR.set(self.before)
        return super().__call__(function)


class saved_tensors_hooks(_Setting):  # noqa: N801 - PyTorch's name
    """Pass what is saved for the sweep through a pair of functions.

    Args:
        pack: called with each Tensor as it is saved; its result is kept in the Tensor's place.
        unpack: called with that result during the sweep; it must return a Tensor or ndarray of the same shape.

    >>> import wengert as wg
    >>> x = wg.tensor(3.0, requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.tolist(), lambda kept: wg.tensor(kept)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor(6.)
    """

    variable = PACKING

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        super().__init__()
        require_callable("saved_tensors_hooks", pack, "pack")
        require_callable("saved_tensors_hooks", unpack, "unpack")
        self.pair = (pack, unpack)

    def value(self) -> Any:
        """Return the pairs around this one, and this one."""
        return packing_of((*PACKING.get(), self.pair))

    def again(self) -> Mode:
        """Return a fresh one."""
        return saved_tensors_hooks(*self.pair)


class without_hooks(_Setting):  # noqa: N801 - named like the modes above
    """Let saved-tensor hooks alone: what is traced once and kept for later calls must not know those of the first."""

    variable = PACKING

    def value(self) -> tuple[Any, ...]:
        """None."""
        return ()


class reviving(_Setting):  # noqa: N801 - named like the modes above
    """Let traces below a level that have ended work again, for functions that are run once more during a sweep."""

    variable = REVIVING

    def __init__(self, level: float) -> None:
        super().__init__()
        self.level = level

    def value(self) -> float:
        """Return the level below which traces work again."""
        return self.level

    def again(self) -> Mode:
        """Return a fresh one."""
        return reviving(self.level)


class memory_budget(_Setting):  # noqa: N801 - named like the modes around it
    """Let the reverse of each loop keep at most so many bytes, and compute again what else it needs.

    This holds for `scan`, `fori_loop` and `while_loop`, in functions that `jit` traces, to another graph for each
    budget, and eagerly, where these loops trace their functions, too, so that they cannot branch on values by `if`. A
    loop that would keep more is cut into segments: states at their beginnings are kept, all else is computed again,
    segment by segment, by as few further forward steps as fit; where few states fit, these are snapshots at the places
    of the fewest steps (A. Griewank and A. Walther, 2000), and the reverse of such a reverse needs more. The same
    operations run in the same order, so values and gradients are the same but for rounding. A loop inside of another
    may keep half of what that may.

    A loop that a condition ends is cut for a million steps, or the most that fit with three levels of segments; each
    segment that it takes beyond keeps a state more. Its reverse, differentiated in reverse mode again, and Python's own
    loops outside of `jit` keep what they keep without a budget: `checkpoint` is for these.

    Args:
        size: a number of bytes, or a text such as `"500MB"` or `"2GiB"`.

    Raises:
        RangeError: the size is no positive number of bytes; while tracing: it is too small for a loop.

    >>> import numpy as np, wengert as wg
    >>> def loss(x):
    ...     return np.sum(wg.fori_loop(0, 1000, lambda i, x: np.sin(x), x))
    >>> with memory_budget("4 kB"):
    ...     slope = wg.jit(wg.grad(loss))(np.ones(4))
    >>> bool(np.all(slope == wg.jit(wg.grad(loss))(np.ones(4))))
    True
    """

    variable = BUDGET

    def __init__(self, size: int | str) -> None:
        super().__init__()
        self.size = byte_count(size)

    def value(self) -> tuple[float, bool]:
        """Return the size; it is no share of another."""
        return self.size, False

    def __enter__(self) -> Self:
        READERS.forget()
        return super().__enter__()

    def again(self) -> Mode:
        """Return a fresh one."""
        return memory_budget(self.size)


UNITS = {"": 1, **{f"{unit}B": 1000**n for n, unit in enumerate(("", "k", "M", "G", "T"))}}
UNITS |= {f"{unit}iB": 1024**n for n, unit in enumerate(("K", "M", "G", "T"), 1)}


def byte_count(
    size: int | str, name: str = "memory_budget", argument: str = "", use: str = "the reverse of a loop may keep"
) -> int:
    """Return how many bytes a number or a text says.

    Args:
        size: the number or text.
        name: who wants to know, for errors.
        argument: the name of the argument that it is, if the function has others.
        use: what is done with so many bytes.

    >>> byte_count("500MB"), byte_count("2 GiB"), byte_count(64)
    (500000000, 2147483648, 64)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    units = {unit.lower(): count for unit, count in UNITS.items()}
    whole = isinstance(size, str | int | np.integer) and type(size) is not bool
    known = match is not None and whole and match[2].lower() in units
    count = int(float(match[1]) * units[match[2].lower()]) if match is not None and known else 0
    if count < 1:
        needed = "a positive number of bytes, or a text such as '500MB' or '2GiB', is needed"
        given = f"{argument}={size!r:.40}" if argument else repr(size)
        raise RangeError(name, given, needed, f"Pass how much {use}")
    return count


class detect_anomaly(_Setting):  # noqa: N801 - PyTorch's name
    """Stop a sweep at the first cotangent that is NaN or infinite, naming the operation and its source line.

    It needs to be on during the sweep only: source lines are always recorded. Functions that `jit` has traced are not
    looked into; call them without `jit` to find an operation.

    >>> import wengert as wg, wengert.numpy as wnp
    >>> x = wg.tensor(0.0, requires_grad=True)
    >>> y = wnp.sqrt(x)
    >>> with detect_anomaly():
    ...     y.backward()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    wengert.errors.NumericalError: sqrt: ...
    """

    variable = ANOMALY

    def value(self) -> bool:
        """On."""
        return True
