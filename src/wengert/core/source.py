"""Source positions: which line of the user's program recorded an operation.

Every recorded operation keeps the code object and instruction offset of the frame that asked for it: 0.1
microseconds and two references, with no switch to turn on first. Lines and columns are worked out only when shown.
What the library does on behalf of an operation recorded before (its vjp in a sweep, an equation of a graph) is asked
for by the line of that operation: such functions are marked with `speaks_for`, and found on the stack.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from itertools import islice
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "PACKAGE_PREFIX",
    "RECENT",
    "Position",
    "caller",
    "is_own",
    "is_users",
    "position_of",
    "speaks_for",
    "user_stacklevel",
]

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE_PREFIX = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
OWN_FILES: dict[str, bool] = {}
SPEAKERS: dict[str, dict[str, str]] = {}
"""The functions that `speaks_for` marks, by file and qualified name; their files are never in OWN_FILES."""
RECENT: list[CodeType | None] = [None]
"""The user's code that asked last: most operations come from the code of the one before, and need no look-up."""


class Position(NamedTuple):
    """Name a line of source, with its text where the file is available."""

    filename: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        place = f'File "{self.filename}", line {self.line}, in {self.function}'
        return f"{place}: {self.text}" if self.text else place


def is_own(filename: str) -> bool:
    """Tell whether a file belongs to the library (NumPy's dispatch code counts as such: it only passes calls on)."""
    own = OWN_FILES.get(filename)
    if own is None:
        inside = filename.startswith(PACKAGE_PREFIX) or f"{os.sep}numpy{os.sep}" in filename
        own = inside or filename.startswith("<__array_function__")
        if filename not in SPEAKERS:
            OWN_FILES[filename] = own
    return own


def is_users(code: CodeType) -> bool:
    """Tell whether code is the user's, and remember it if it is."""
    if is_own(code.co_filename):
        return False
    RECENT[0] = code
    return True


def speaks_for(local: str) -> Callable[[F], F]:
    """Mark a function that acts for an operation recorded before: what it asks for came from that operation's line.

    Nothing is stored while it runs: only when its frame is met on the way to the user's is the local variable read.

    Args:
        local: the local variable that holds the operation, a thing with an `origin`.
    """

    def marked(function: F) -> F:
        code = function.__code__
        SPEAKERS.setdefault(code.co_filename, {})[code.co_qualname] = local
        return function

    return marked


def spoken(frame: FrameType) -> tuple[CodeType, int] | None:
    """Return the line that a frame of a file with marked functions speaks for, if it does."""
    local = SPEAKERS[frame.f_code.co_filename].get(frame.f_code.co_qualname)
    if local is None:
        return None
    origin = getattr(frame.f_locals.get(local), "origin", None)
    return origin if type(origin) is tuple else None


def caller() -> tuple[CodeType, int]:
    """Return code object and instruction offset of the innermost frame outside the library.

    Where the library acts for an operation recorded before, these are the operation's.
    """
    frame = sys._getframe(1)
    recent = RECENT[0]
    known = OWN_FILES.get
    while (code := frame.f_code) is not recent:
        filename = code.co_filename
        own = known(filename)
        if not own:
            if own is False or not is_own(filename):
                RECENT[0] = code
                break
            if filename in SPEAKERS and (origin := spoken(frame)) is not None:
                return origin
        if (outer := frame.f_back) is None:
            break
        frame = outer
    return code, frame.f_lasti


def user_stacklevel() -> int:
    """Return the `stacklevel` with which `warnings.warn` points at the innermost line outside the library.

    It is to be asked for in the call of `warn`. (`skip_file_prefixes` does the same since Python 3.12.)
    """
    level, frame = 1, sys._getframe(1)
    while is_own(frame.f_code.co_filename) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def position_of(code: CodeType, offset: int) -> Position:
    """Return the source position of an instruction."""
    lines = next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))
    line = lines[0] or code.co_firstlineno
    text = linecache.getline(code.co_filename, line).strip()
    return Position(code.co_filename, line, code.co_qualname, text)
