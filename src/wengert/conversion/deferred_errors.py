"""Errors that the user's program raises in a branch of a traced decision, which the graph raises when it is taken.

Only what a `raise` or `assert` of the user's raises is meant to happen there: other errors may come of the tracing.
A `try` or `with` around it might handle the error, and would have to decide by a traced value, too: that is refused.
"""

from __future__ import annotations

import dis
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wengert.control.code_owners import is_library
from wengert.core.diagnostics.source_positions import position_of
from wengert.core.values.dispatch import apply
from wengert.primitives.checks import raised, require_none

RAISE = dis.opmap["RAISE_VARARGS"]


class Ending:
    """Keep the error of the user's that a piece of a program ends with; None if it ends without.

    Attributes:
        raised: the error.
    """

    raised: Exception | None = None


class Handlers(threading.local):
    """Count the statements that run in this thread and might handle an error."""

    count = 0


HANDLERS = Handlers()


@contextmanager
def handle_errors() -> Iterator[None]:
    """Run statements the errors of which the user's program may handle."""
    HANDLERS.count += 1
    try:
        yield
    finally:
        HANDLERS.count -= 1


def may_wait(error: Exception) -> bool:
    """Tell whether an error may be raised later, when the graph runs; note where it came from."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or HANDLERS.count:
        return False
    code = place.tb_frame.f_code
    if code is require_none.__code__:  # of a graph that has been traced already
        return True
    if code.co_code[place.tb_lasti] != RAISE or is_library(code):
        return False
    origin = f"  {position_of(code, place.tb_lasti)}"
    if origin not in getattr(error, "__notes__", ()):
        error.add_note(origin)
    return True


def raise_where(failed: Any, error: Exception) -> None:
    """Let the graph raise an error where a traced truth holds."""
    apply(raised, failed, error=error.with_traceback(None))
