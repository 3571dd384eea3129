"""Containers and objects that a traced value makes one of two: a new one, or one that was there and has another name.

Python would let a write to one of its names be seen by the other where it is that one. Which it is nobody knows while
tracing, so what the names stand for must stay as it is until the trace ends.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

from wengert.control.mutable_state import BytesHolder, RandomHolder, holder_of
from wengert.control.reachable_state import ReachableState
from wengert.control.variable_places import HIDDEN, Holder, VariablePlace
from wengert.core.diagnostics.source_positions import is_own
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError
from wengert.traces.staging import Staging


def keep_apart(
    old: Any,
    new: Any,
    heaps: Sequence[ReachableState],
    test: Any,
    note: tuple[str, str, Any],
    inner: Sequence[Staging] = (),
) -> None:
    """Let neither of two be changed until the trace ends, if the old one, or what is in it, has another name.

    Args:
        old: what was there before.
        new: what stands for it, or for one that a piece of the program made.
        heaps: what the program can reach.
        test: a traced value of the trace.
        note: the statement that decides, for errors.
        inner: traces of pieces of the program where the old one may have been made.
    """
    olds, stages = list(holders_in(old)), [*stages_of(test), *inner]
    own = frozenset(id(holder.target) for holder in olds)
    if not olds:
        return
    if has_other_name(old, heaps) or is_unchangeable(old, stages):
        forbid_changes([*olds, *holders_in(new)], test, note)
        return
    others = [x for x in olds if has_other_name(x.target, heaps, ignored=own) or is_unchangeable(x.target, stages)]
    if others:
        forbid_changes([*others, *holders_in(new, within=True)], test, note)


class UnchangedCheck:
    """Require that containers and objects are as they were, when a trace ends."""

    def __init__(self, holders: Sequence[Holder], note: tuple[str, str, Any]) -> None:
        self.contents = [(holder, holder.contents()) for holder in holders]
        self.note = note

    def __call__(self) -> None:
        """Raise if one is not."""
        for holder, contents in self.contents:
            if holder.differs(contents, holder.contents()):
                raise identity_error(holder.target, self.note)


def forbid_changes(holders: Sequence[Holder], test: Any, note: tuple[str, str, Any]) -> None:
    """Let nobody change containers and objects until the trace of a value ends."""
    kept = UnchangedCheck(holders, note)
    for stage in stages_of(test):
        stage.steady.append(kept)


def is_unchangeable(value: Any, stages: Iterable[Staging]) -> bool:
    """Tell whether a container or object is kept as it is: it may be one with other names."""
    found = (check for stage in stages for check in stage.steady if isinstance(check, UnchangedCheck))
    return any(holder.target is value for check in found for holder, _ in check.contents)


def stages_of(value: Any) -> Iterator[Staging]:
    """Return the traces of a traced value."""
    while type(value) is Tensor:
        if isinstance(value._trace, Staging):
            yield value._trace
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


def identity_error(old: Any, note: tuple[str, str, Any]) -> GraphError:
    """Return the error about a write to what is one of two."""
    kind = type(old).__name__
    return GraphError(
        note[0],
        f"a write to a {kind} that has two names, or is another {kind}, as a traced value decides",
        "it must be known which one a write changes",
        "Copy it before, or write to it under one name",
        place=note[2],
    )


def has_other_name(
    value: Any, heaps: Sequence[ReachableState], place: VariablePlace | None = None, ignored: Container[int] = ()
) -> bool:
    """Tell whether a variable, a container or an attribute of the program holds a value, besides one place.

    Containers and objects of which the identities are ignored do not count.
    """
    holders: dict[int, Holder] = {key: holder for heap in heaps for key, holder in heap.holders.items()}
    found = any(
        x is value and (place is None or (id(holder.target), key) != place.identity)
        for holder in holders.values()
        if not isinstance(holder, BytesHolder | RandomHolder) and id(holder.target) not in ignored
        for key, x in holder.contents().items()
    )
    return found or any(x is value for x in values_in_frames(sys._getframe(1), place, ignored))


def values_in_frames(frame: FrameType | None, place: VariablePlace | None, ignored: Container[int]) -> Iterator[Any]:
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
                if id(value) in ignored:
                    continue
                if type(value) in (list, tuple):
                    yield from value
                elif type(value) is dict:
                    yield from value.values()
        frame = frame.f_back
