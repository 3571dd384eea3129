"""Which command runs: what its errors begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from wengert.errors import UsageError

COMMAND = ContextVar("COMMAND", default="wengert grad")


@contextmanager
def errors_begin_with(command: str) -> Iterator[None]:
    """Let errors begin with a command meanwhile."""
    token = COMMAND.set(f"wengert {command}")
    try:
        yield
    finally:
        COMMAND.reset(token)


def unusable(given: str, needed: str, action: str) -> UsageError:
    """Return an error of the command."""
    return UsageError(COMMAND.get(), given, needed, action)
