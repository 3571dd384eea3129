"""NumPy's warnings about numbers (division by zero, overflow, invalid values), at the line that they are about.

NumPy names the line that called it, which is one of the library's. While a user's function is differentiated, batched
or run as a graph, what NumPy would warn of is written to an object of ours instead, which warns at the user's line:
that of the operation, or of the equation that was traced from it. NumPy calls it only where there is something to say.
"""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from contextvars import ContextVar, Token
from types import CodeType, FrameType
from typing import Any

import numpy as np

from wengert.core.cache import Cache
from wengert.core.source import caller, position_of

__all__ = ["attributed", "returned"]


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


def attributed() -> tuple[Token[Any], Any] | None:
    """Let warnings name the user's line from now on; `returned` ends it."""
    if SETTINGS is None:
        return None
    present = SETTINGS.get()
    wanted = attributing(present)
    return None if wanted is present else (SETTINGS.set(wanted), wanted)


def returned(entered: tuple[Token[Any], Any] | None) -> None:
    """Return to the settings before; what the user has set since with `numpy.seterr` stays."""
    if entered is None or SETTINGS is None:
        return
    token, ours = entered
    if SETTINGS.get() is ours:
        SETTINGS.reset(token)
        return
    modes, call = np.geterr(), np.geterrcall()
    SETTINGS.reset(token)
    np.seterr(**{kind: "warn" if mode == "log" else mode for kind, mode in modes.items()})  # type: ignore[arg-type]  # as above
    if call is not COMPLAINTS:
        np.seterrcall(call)
