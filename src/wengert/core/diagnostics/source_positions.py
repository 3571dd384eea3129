"""Source positions: which line of the user's program recorded an operation.

Every recorded operation keeps the code object and instruction offset of the frame that asked for it: 0.1
microseconds and two references, with no switch to turn on first. Lines and columns are worked out only when shown.
What the library does on behalf of an operation recorded before (its vjp in a sweep, an equation of a graph) is asked
for by the line of that operation: such functions are marked with `speaks_for`, and found on the stack. Where they call
nobody but the library, they say so in `SPEAKERS`, and the stack is not searched.
"""

from __future__ import annotations

import dis
import linecache
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np

from wengert import errors
from wengert.support.caches import Cache
from wengert.support.records import NamedTuple

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE_PREFIX = os.path.dirname(os.path.abspath(errors.__file__)) + os.sep
NUMPY_PREFIX = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
LONGEST_EXPRESSION = 60
CACHE, BINARY_OPERATOR = dis.opmap.get("CACHE", 0), dis.opmap["BINARY_OP"]
ASSIGNING = frozenset(dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap)
"""Instructions of `target[index] = value`."""
COPY = dis.opmap["COPY"]
MARKS: dict[str, dict[str, str]] = {}
"""For files of the library the qualified names of functions marked by `speaks_for`, and where they hold operations."""


class Files(Cache[str, bool | dict[str, str]]):
    """Tell whether a file is the library's; where functions in it are marked, these."""

    def __missing__(self, filename: str) -> bool | dict[str, str]:
        found = self[filename] = MARKS.get(filename) or is_librarys(filename)
        return found


FILES = Files()
RECENT: list[CodeType | None] = [None]
"""The user's code that asked last: most operations come from the code of the one before, and need no look-up."""
NOBODY: tuple[Any, int] = (None, 0)
"""What stands for the place of an operation that was recorded before, where that is not worth looking for."""
SPEAKERS: dict[int, Any] = {}
"""By threads, what the library acts for there while none but its own code runs: a thing with an `origin`.

To find that on the stack takes 1 to 2 us, longer than most operations of a sweep that is recorded itself.
"""


def be_alone() -> None:
    """Forget what other threads act for, in a process that was forked, where later ones may have their numbers."""
    own = get_ident()
    for thread in [thread for thread in SPEAKERS if thread != own]:
        del SPEAKERS[thread]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=be_alone)


class Position(NamedTuple):
    """Name a line of source, with its text where the file is available."""

    filename: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        place = f'File "{self.filename}", line {self.line}, in {self.function}'
        return f"{place}: {self.text}" if self.text else place


class Origin(tuple[CodeType, int]):
    """Know besides the place of an operation, a code object and an offset, when it was asked for.

    Attributes:
        number: of the equation that was written down; those written down later have greater ones.
        node: of the recorded operation whose derivative this one belongs to; 0 if it does not.
    """

    number: int = 0
    node: int = 0


def is_librarys(filename: str) -> bool:
    """Tell whether a file belongs to the library (NumPy's dispatch code counts as such: it only passes calls on)."""
    return filename.startswith((PACKAGE_PREFIX, NUMPY_PREFIX, "<__array_function__"))


def is_own(filename: str) -> bool:
    """Tell whether a file belongs to the library, as `is_librarys` does; each is looked at once."""
    return FILES[filename] is not False


def speaks_for(local: str) -> Callable[[F], F]:
    """Mark a function that acts for an operation recorded before: what it asks for came from that operation's line.

    Nothing is stored while it runs: only when its frame is met on the way to the user's is the local variable read.

    Args:
        local: the local variable that holds the operation, a thing with an `origin`.
    """

    def mark(function: F) -> F:
        code = function.__code__
        FILES[code.co_filename] = marks = MARKS.setdefault(code.co_filename, {})
        marks[code.co_qualname] = local
        return function

    return mark


def spoken(frame: FrameType, local: str) -> tuple[CodeType, int] | None:
    """Return the line that a frame of a marked function speaks for, by the operation in a local variable."""
    origin = getattr(frame.f_locals.get(local), "origin", None)
    return origin if isinstance(origin, tuple) and not isinstance(origin, Position) else None


def caller(depth: int = 1, recorded: bool = True) -> tuple[CodeType, int]:
    """Return code object and instruction offset of the innermost frame outside the library.

    Where the library acts for an operation recorded before, these are the operation's, or without `recorded` `NOBODY`:
    to find that operation takes a seventh of the time of a Hessian times a vector. The `depth` innermost frames are
    known to be the library's, and not marked: they are not looked at, which costs 80 ns for each.
    """
    if recorded and SPEAKERS and (speaker := SPEAKERS.get(get_ident())) is not None:
        return speaker.origin  # type: ignore[no-any-return]  # as those found by `spoken`
    frame = sys._getframe(depth)
    recent = RECENT[0]
    known = FILES
    while (code := frame.f_code) is not recent:
        own = known[code.co_filename]
        if own is not True:
            if type(own) is dict:
                local = own.get(code.co_qualname)
                if local is not None and not recorded:
                    return NOBODY
                if local is not None and (origin := spoken(frame, local)) is not None:
                    return origin
            else:
                RECENT[0] = code
                break
        if (outer := frame.f_back) is None:
            break
        frame = outer
    return code, frame.f_lasti


def function_called() -> str:
    """Return the name of the library's function that the user called, of those that run now."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and is_own(frame.f_code.co_filename):
        if "<" not in frame.f_code.co_qualname:
            name = frame.f_code.co_qualname
        frame = frame.f_back
    return name


def user_stacklevel() -> int:
    """Return the `stacklevel` with which `warnings.warn` points at the innermost line outside the library.

    It is to be asked for in the call of `warn`. (`skip_file_prefixes` does the same since Python 3.12.)
    """
    level, frame = 1, sys._getframe(1)
    while is_own(frame.f_code.co_filename) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def writes_at(code: CodeType, offset: int) -> bool:
    """Tell whether an instruction is of `target[index] = value`, or `target[index] += value`, which reads it first."""
    return code.co_code[offset] in ASSIGNING or code.co_code[max(offset - 2, 0)] == COPY


def position_of(code: CodeType, offset: int) -> Position:
    """Return the source position of an instruction."""
    lines = next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))
    line = lines[0] or code.co_firstlineno
    text = linecache.getline(code.co_filename, line).strip()
    return Position(code.co_filename, line, code.co_qualname, text)


def expression_at(code: CodeType, offset: int) -> str:
    """Return the source of what an instruction computes, or decides by; nothing if it is not to be had, or long."""
    name = dis.opname[code.co_code[offset]]
    decides = "JUMP" in name or name == "TO_BOOL"  # by what the instruction before it computed
    positions = islice(code.co_positions(), offset // 2 - decides, None)
    line, end_line, start, end = next(positions, (None, None, None, None))
    if line is None or line != end_line or start is None or end is None:
        return ""
    text = linecache.getline(code.co_filename, line).encode()[start:end].decode(errors="ignore")  # columns count bytes
    return text if len(text) <= LONGEST_EXPRESSION else ""


class Use(NamedTuple):
    """Describe what an instruction does: index something, call something of a name, or neither."""

    indexes: bool = False
    called: str = ""


@lru_cache(maxsize=256)
def is_operator(code: CodeType, offset: int) -> bool:
    """Tell whether an instruction is a binary operator, not a call.

    >>> code = compile("a ** b", "", "eval")
    >>> [is_operator(code, offset) for offset in range(0, len(code.co_code), 2)].count(True) > 0
    True
    """
    instructions = code.co_code
    while offset > 0 and instructions[offset] == CACHE:
        offset -= 2
    return instructions[offset] == BINARY_OPERATOR


def names_beside(code: CodeType, offset: int) -> set[str]:
    r"""Return the names that the lines of an instruction load; those of all the code where nobody knows its lines.

    >>> code = compile("n = float(2)\nlist(map(f, xs))", "", "exec")
    >>> sorted(names_beside(code, len(code.co_code) - 2)), "float" in code.co_names
    (['f', 'list', 'map', 'xs'], True)
    """
    instructions = list(dis.get_instructions(code))
    place = next((x.positions for x in reversed(instructions) if x.offset <= offset), None)
    if place is None or place.lineno is None or place.end_lineno is None:
        return set(code.co_names)
    lines = range(place.lineno, place.end_lineno + 1)
    loads = (x for x in instructions if x.opname.startswith("LOAD_") and isinstance(x.argval, str))
    return {x.argval for x in loads if x.positions is not None and x.positions.lineno in lines}


def use_at(code: CodeType, offset: int) -> Use:
    """Return what an instruction does with the values that it asks for numbers.

    The name of what it calls is the last that was loaded where the expression begins: arguments begin later.

    >>> code = compile("a.fill(b.sum())", "", "eval")
    >>> list(dict.fromkeys(use_at(code, offset).called for offset in range(0, len(code.co_code), 2)))
    ['', 'sum', 'fill']
    """
    names: dict[tuple[Any, Any], str] = {}
    found = Use()
    for instruction in dis.get_instructions(code):
        if instruction.offset > offset:  # while a call of a Python function runs, the offset is that of its last cache
            break
        name, place = instruction.opname, instruction.positions
        start = (place.lineno, place.col_offset) if place is not None else (None, None)
        indexes = name.endswith(("SUBSCR", "_SLICE")) or instruction.argrepr == "[]"
        found = Use(indexes, names.get(start, "") if "CALL" in name else "")  # PRECALL calls in 3.11
        if name.startswith("LOAD_") and isinstance(instruction.argval, str) and start[1] is not None:
            names[start] = instruction.argval
    return found
