"""Containers and objects that a traced value makes one of two: a new one, or one that was there and has another name.

Python would let a write to one of its names be seen by the other where it is that one. Which it is nobody knows while
tracing, so what the names stand for must stay as it is until the trace ends.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from wengert.control.heap import Heap
from wengert.control.holders import Bytes, Holder, Randomness, holder_of
from wengert.control.places import HIDDEN, Place
from wengert.core.source import is_own
from wengert.core.tensor import Tensor
from wengert.errors import GraphError, describe
from wengert.traces.staging import Staging

__all__ = ["has_other_name", "holders_in", "keep", "keep_apart", "refused"]


def keep_apart(old: Any, new: Any, heaps: Sequence[Heap], test: Any, note: tuple[str, str, Any]) -> None:
    """Let neither of two be changed until the trace ends, if the old one has another name.

    Args:
        old: what was there before.
        new: what stands for it, or for one that a piece of the program made.
        heaps: what the program can reach.
        test: a traced value of the trace.
        note: the statement that decides, for errors.
    """
    holders = [x for x in (holder_of(old, ""), holder_of(new, "")) if x is not None]
    if len(holders) == 2 and has_other_name(old, heaps):
        keep(holders, test, note)


def keep(holders: Sequence[Holder], test: Any, note: tuple[str, str, Any]) -> None:
    """Let nobody change containers and objects until the trace of a value ends."""
    kept = [(holder, holder.contents()) for holder in holders]

    def require_unchanged() -> None:
        for holder, contents in kept:
            if holder.differs(contents, holder.contents()):
                raise refused(holder.target, note)

    value = test
    while type(value) is Tensor:
        if isinstance(value._trace, Staging):
            value._trace.steady.append(require_unchanged)
        value = value._value


def holders_in(value: Any, *, within: bool = False) -> Iterator[Holder]:
    """Return the containers and objects that a value consists of, each as often as it is there.

    With `within` the value itself is left out.
    """
    pending, seen = [value], set()
    while pending:
        x = pending.pop()
        holder = None if type(x) is Tensor else holder_of(x, "")
        if holder is not None and not (within and x is value):
            yield holder
        if id(x) not in seen:
            seen.add(id(x))
            pending += x if type(x) is tuple else () if holder is None else holder.contents().values()


def refused(old: Any, note: tuple[str, str, Any]) -> GraphError:
    """Return the error about a write to what is one of two."""
    kind = type(old).__name__
    return GraphError(
        describe(
            note[0],
            f"a write to a {kind} that has two names, or is another {kind}, as a traced value decides",
            "it must be known which one a write changes",
            "Copy it before, or write to it under one name",
        )
        + f"\n  {note[2]}"
    )


def has_other_name(value: Any, heaps: Sequence[Heap], place: Place | None = None) -> bool:
    """Tell whether a variable, a container or an attribute of the program holds a value, besides one place."""
    holders: dict[int, Holder] = {key: holder for heap in heaps for key, holder in heap.holders.items()}
    found = any(
        x is value and (place is None or (id(holder.target), key) != place.identity)
        for holder in holders.values()
        if not isinstance(holder, Bytes | Randomness)
        for key, x in holder.contents().items()
    )
    return found or any(x is value for x in held_by_frames(sys._getframe(1), place))


def held_by_frames(frame: FrameType | None, place: Place | None) -> Iterator[Any]:
    """Return what the variables of the user's functions that are running hold, and what is in their containers."""
    while frame is not None:
        code = frame.f_code
        if not is_own(code.co_filename):
            space = frame.f_locals
            mine = {place.spelled} & {*code.co_cellvars, *code.co_freevars} if place is not None else ()
            found = [x for name, x in space.items() if not name.startswith(HIDDEN) and name not in mine]
            if type(space) is dict and code.co_flags & inspect.CO_OPTIMIZED:
                space.clear()  # a copy, which the frame would keep
            for value in found:
                yield value
                if type(value) in (list, tuple):
                    yield from value
                elif type(value) is dict:
                    yield from value.values()
        frame = frame.f_back
