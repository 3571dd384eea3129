"""NumPy's warnings about numbers (division by zero, overflow, invalid values), at the line that they are about.

NumPy names the line that called it, which is one of the library's. While a user's function is differentiated, batched
or run as a graph, what NumPy would warn of is written to an object of ours instead, which warns at the user's line:
that of the operation, or of the equation that was traced from it. NumPy calls it only where there is something to say.

On the tape and for plain Tensors even that would cost too much. There an evaluation stops where it would warn (see
`wengert.support.deferred_warnings`), and is done once more by the same code at the user's line. ADR 0022 compares the
ways.
"""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from wengert.core.diagnostics.source_positions import PACKAGE_PREFIX, Position, caller, position_of
from wengert.support.caches import Cache
from wengert.support.deferred_warnings import UNREGISTERED, require_warning, unregister

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
unregister(globals())  # `at_users_line` meets what stops


def settings_of_numpy(module: str = "numpy._core.umath") -> ContextVar[Any] | None:
    """Return what `numpy.errstate` sets, which is private to NumPy; None if it is not where it was."""
    try:
        found = getattr(importlib.import_module(module), "_extobj_contextvar", None)
    except ImportError:
        return None
    return found if isinstance(found, ContextVar) else None


SETTINGS = settings_of_numpy()
"""What `numpy.errstate` sets: entering that takes 1.4 microseconds, setting this 0.2. Without it lines stay NumPy's."""
REGISTRIES: Cache[str, dict[Any, Any]] = Cache()
"""What has been said of files none of whose functions is running, as modules keep it in `__warningregistry__`."""


class Complaints:
    """Take what NumPy says of numbers, and warn at the user's line."""

    def write(self, message: str) -> None:
        """Warn of what NumPy writes: "Warning: overflow encountered in exp"."""
        code, offset = caller()
        place = position_of(code, offset)
        module, registry = registry_of(code)
        text = message.removeprefix("Warning: ").rstrip()
        warnings.warn_explicit(text, RuntimeWarning, place.filename, place.line, module, registry)


COMPLAINTS = Complaints()


def registry_of(code: CodeType) -> tuple[str | None, dict[Any, Any]]:
    """Return the name of the module that code is from, where it runs, and what has been said of its lines."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == code.co_filename:
            found: dict[Any, Any] = frame.f_globals.setdefault("__warningregistry__", {})
            return frame.f_globals.get("__name__"), found
        frame = frame.f_back
    known = REGISTRIES.get(code.co_filename)
    if known is None:
        known = REGISTRIES[code.co_filename] = {}
    return None, known


@functools.lru_cache(maxsize=32)
def attributing(settings: Any) -> Any:
    """Return the present settings with warnings written to `COMPLAINTS`; as they are where the user has a callback."""
    warned = {kind: "log" for kind, mode in np.geterr().items() if mode == "warn"}
    if SETTINGS is None or not warned or np.geterrcall() is not None:
        return settings
    with np.errstate(**warned, call=COMPLAINTS):  # type: ignore[arg-type]  # the keys are those of errstate
        return SETTINGS.get()


@functools.lru_cache(maxsize=32)
def kinds_raised(settings: Any) -> frozenset[str]:
    """Return the kinds of errors about numbers that the present settings, which are these, raise."""
    return frozenset(kind for kind, mode in np.geterr().items() if mode == "raise")


@functools.lru_cache(maxsize=32)
def raising(settings: Any) -> Any:
    """Return the present settings with errors in the place of warnings: for what can be done again, and warn then."""
    warned = {kind: "raise" for kind, mode in np.geterr().items() if mode == "warn"}
    if SETTINGS is None or not warned:
        return settings
    with np.errstate(**warned):  # type: ignore[arg-type]  # the keys are those of errstate
        return SETTINGS.get()


@functools.lru_cache(maxsize=32)
def ignoring(settings: Any) -> Any:
    """Return the present settings, which are these, with nothing said."""
    with np.errstate(all="ignore"):
        return cast(Any, SETTINGS).get()


def silence() -> AbstractContextManager[Any]:
    """Return a context in which NumPy says nothing of numbers: `numpy.errstate`, in half of its time."""
    return np.errstate(all="ignore") if SETTINGS is None else Silence(SETTINGS)


class Silence:
    """Be that context; see `silence`.

    Ctrl-C may come where its end begins. Then who called, by `silently` or `warn_at_users_line`, puts back what was.
    """

    __slots__ = ("settings", "token")

    def __init__(self, settings: ContextVar[Any]) -> None:
        self.settings = settings

    def __enter__(self) -> None:
        self.token = self.settings.set(ignoring(self.settings.get()))

    def __exit__(self, *_: object) -> None:
        self.settings.reset(self.token)


def warn_at_users_line(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Call a function whose warnings name the user's line; what it sets by `numpy.seterr` stays."""
    if SETTINGS is None:
        return function(*args, **kwargs)
    before = wanted = SETTINGS.get()
    try:
        wanted = attributing(before)  # which sets others for a moment, at first
        SETTINGS.set(wanted)
        return function(*args, **kwargs)
    finally:
        left = SETTINGS.set(before).old_value  # at once: Ctrl-C comes before what C does, or after it
        if left is not wanted and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            adopt(left)


def adopt(settings: Any) -> None:
    """Let settings of the user's hold from now on, with NumPy's own warnings in the place of ours."""
    found = cast(ContextVar[Any], SETTINGS)
    before = found.set(settings)
    modes, call = np.geterr(), np.geterrcall()
    found.reset(before)
    np.seterr(**{kind: "warn" if mode == "log" else mode for kind, mode in modes.items()})  # type: ignore[arg-type]  # as above
    if call is not COMPLAINTS:
        np.seterrcall(call)


def silently(function: Callable[..., R], *args: Any) -> R:
    """Call a function while NumPy says nothing of numbers."""
    if SETTINGS is None:
        with np.errstate(all="ignore"):
            return function(*args)
    before = SETTINGS.get()
    try:
        SETTINGS.set(ignoring(before))
        return function(*args)
    finally:
        SETTINGS.set(before)  # at once, as above


# Without a cost where there is nothing to say


SCOPES: dict[str, dict[str, Any]] = {}
"""The global names of `strict` functions, for each module that they are from."""


def strict(function: F) -> F:
    """Return a function of the library that stops where one of its lines would warn; whoever calls it has to meet that.

    Those of modules that are unregistered do so, and functions in C warn of the line that calls them.
    """
    if type(function) is not FunctionType or not function.__code__.co_filename.startswith(PACKAGE_PREFIX):
        return function
    known = function.__globals__
    if known.get("__warningregistry__") is UNREGISTERED:
        return function
    names = SCOPES.get(function.__module__)
    if names is None:
        names = SCOPES[function.__module__] = {}
        unregister(names)
    names.update(known, __warningregistry__=UNREGISTERED)
    return cast(F, replace_code(cast(FunctionType, function), function.__code__, names))


def replace_code(function: FunctionType, code: CodeType, names: dict[str, Any]) -> FunctionType:
    """Return a function with other code and global names."""
    found = FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    found.__kwdefaults__ = function.__kwdefaults__
    return found


def at_users_line(function: Callable[..., Any], *values: Any, **params: Any) -> Any:
    """Call a function that is `strict`, or of C, so that what its lines warn of names the user's line."""
    try:
        return function(*values, **params)
    except TypeError as error:
        require_warning(error)
        return call_with_warnings(function, values, params)


def call_with_warnings(function: Callable[..., Any], values: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Return what a function gives that was stopped; its lines, and C's, warn at the user's line."""
    code, offset = caller()
    place = position_of(code, offset)
    module, registry = registry_of(code)
    named = {"__name__": module or place.filename.removesuffix(".py"), "__warningregistry__": registry}

    def move(function: FunctionType) -> FunctionType:
        return replace_code(function, at_line(function.__code__, place), {**function.__globals__, **named})

    again = move(function) if type(function) is FunctionType else function
    return move(cast(FunctionType, call_unchained))(again, values, params)


def at_line(code: CodeType, place: Position) -> CodeType:
    """Return code all of which is at one line.

    Its table of lines has an entry for each eight units: no column (13), and no line further.
    """
    eights, rest = divmod(len(code.co_code) // 2, 8)
    table = b"\xef\x00" * eights + (bytes([0xE8 | rest - 1, 0]) if rest else b"")
    return code.replace(co_filename=place.filename, co_firstlineno=place.line, co_linetable=table)


def call_unchained(function: Callable[..., Any], values: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Call a function; what a filter makes an error is one of its own, and not from the one that stopped it."""
    try:
        return function(*values, **params)
    except Warning as warning:
        raise warning from None
