"""Sharing: which memory a handle may stand for, where values that are not there yet decide which.

After `y = a if c else b`, `y` is the memory of `a` where `c` holds, and that of `b` where it does not. Such handles
hold their memories, each with the truth that it is theirs. A write to a handle reaches every other one that has a
memory in common with it, where both truths hold; where nobody knows whether they do, or only a part is shared, the
other is lost: its use raises. What may be an ndarray, which no traced write reaches, is not written to at all.

Handles are forgotten by garbage collections, which happen in the middle of anything, in any thread: between the line
that finds a memory and the one that lets another handle hold it, say.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NoReturn

import numpy as np

from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.memory.memory_layout import may_be_scalar
from wengert.core.memory.write_watches import Lost, Undo, is_over, lose, rebind_handle, snapshot
from wengert.core.values.tensor import WATCHING, Tensor, Trace
from wengert.errors import GraphError, describe
from wengert.support.fork_safety import hold_in_forks
from wengert.support.records import NamedTuple


class PartPlace(NamedTuple):
    """Hold where a part is: by steps to a view and a static index there, and by the indices that stand in it."""

    steps: Any
    indices: Sequence[Any]

    def is_same(self, other: PartPlace) -> bool:
        """Tell whether two places are the same for sure."""
        pairs = zip(self.indices, other.indices, strict=False)
        return self.steps == other.steps and all(one is another for one, another in pairs)


class Share(NamedTuple):
    """Hold how a handle has a memory.

    Attributes:
        truth: whether it is all of the handle's memory; None if nobody knows, or if it is only partly.
        text: what the error about the use of a handle says that is lost for that reason.
        place: which part of the memory the handle is, if it is one.
    """

    truth: Any = True
    text: str = ""
    place: PartPlace | None = None


class SharedMemory:
    """Be memory that several handles may stand for.

    Attributes:
        holders: these, by identity, with how each has it; one that is left alone stays, for who may hold it later.
    """

    __slots__ = ("holders",)

    def __init__(self) -> None:
        self.holders: dict[int, MemoryHolder] = {}

    def is_left(self) -> bool:
        """Tell whether all but one of several handles that had it are no more."""
        return len(self.living_holders()) == 1 < len(self.holders)

    def living_holders(self) -> list[tuple[Tensor, Share]]:
        """Return the handles that have it, with how each does."""
        holders = list(self.holders.values())  # in one step, as nothing is that a collection can interrupt
        return [(handle, share) for reference, share in holders if (handle := reference()) is not None]


class MemoryHolder(NamedTuple):
    """Hold a handle that has a memory, and how."""

    reference: weakref.ref[Tensor]
    share: Share


class Plain(Trace):
    """Be the trace of a handle that stands for an ndarray which a Tensor may be, as a traced value decides.

    Attributes:
        text: what the error about a write to such a Tensor says.
        late_text: what the error about a later write to the ndarray says.
        changed: tells whether it has been written to.
    """

    __slots__ = ("changed", "late_text", "text")

    def __init__(self, text: str, late_text: str, changed: Callable[[], bool]) -> None:
        super().__init__(0)
        self.text = text
        self.late_text = late_text
        self.changed = changed

    def refuse(self) -> NoReturn:
        """Raise because what may be the ndarray is written to."""
        raise GraphError(f"{self.text}\n  {position_of(*caller())}")

    def require_unwritten(self) -> None:
        """Raise if the ndarray has been written to, which those who may be it have not seen."""
        if self.changed():
            raise GraphError(self.late_text)


SHARES: dict[int, dict[SharedMemory, Share]] = {}
"""The memories of the handles that may share some, by the handle's identity.

The dictionary of a handle is replaced, and never changed: what goes through one goes on to its end.
"""

HOLDING = threading.RLock()
"""Held while a handle gets a memory."""

hold_in_forks(HOLDING)


def hold(handle: Tensor, memory: SharedMemory, share: Share) -> None:
    """Let a handle have a memory, and one that was left alone with it have it again; those that are no more lose it.

    Handles lose the memories that nobody else is left to have. The last of them goes when the handle does, which runs
    no code of Python's: what a signal raises there would be lost.
    """
    identity = id(handle)
    holder = MemoryHolder(weakref.ref(handle, partial(SHARES.pop, identity)), share)
    with HOLDING:
        memory.holders[identity] = holder
        held = memory.living_holders()
        memory.holders = {id(one): memory.holders[id(one)] for one, _ in held}
        for one, its in held if len(held) == 2 else [(handle, share)]:
            SHARES[id(one)] = {**shares_of(one), memory: its}


def shares_of(handle: Tensor) -> dict[SharedMemory, Share]:
    """Return the memories that a handle has, without those that nobody else is left to have."""
    return {memory: share for memory, share in SHARES.get(id(handle), {}).items() if not memory.is_left()}


def memories_of(handle: Tensor) -> dict[SharedMemory, Share]:
    """Return the memories of a handle that owns its memory, among them its own, which it has not if it is a scalar.

    It may be left alone with them at any time, and has them again as soon as another handle holds them.
    """
    own = Share(None, scalar_text()) if may_be_scalar(handle) else Share()
    found = shares_of(handle)
    if any(share.truth is own.truth for share in found.values()):
        return found
    memory = SharedMemory()
    hold(handle, memory, own)
    return {**found, memory: own}


def scalar_text() -> str:
    """Return the text of the error about a scalar or an array after an in-place operator, which changes arrays."""
    given = "a scalar or an array without axes, as a traced value decides, that has got another value since"
    needed = "it must be known which, because scalars do not change"
    action = "Use it under one name only, or make an array of it before, as by numpy.copy"
    return describe("in-place operator", given, needed, action) + f"\n  {position_of(*caller())}"


def after(handle: Tensor) -> Tensor:
    """Return what an in-place operator leaves of a scalar or an array: another scalar, or the array."""
    found = snapshot(handle)
    for memory, share in memories_of(handle).items():
        hold(found, memory, share)
    return found


def may_share(one: Tensor, other: Tensor) -> bool:
    """Tell whether two handles that own their memory may have some in common."""
    return one is other or not SHARES.get(id(one), {}).keys().isdisjoint(SHARES.get(id(other), {}))


def shared_with(one: Tensor, other: Tensor, text: str) -> None:
    """Enter that nobody knows whether two handles share memory."""
    memory = SharedMemory()
    hold(one, memory, Share(None, text))
    hold(other, memory, Share(None, text))


def part_of(base: Tensor, part: Tensor, place: PartPlace | None, text: str) -> None:
    """Enter that a handle stands for part of another, whose other holders hear of it too.

    `place` is where the part is, if a traced value tells; None if nobody knows whether it is one. The text is what the
    error about the use of either says after a write to the other.
    """
    for memory in memories_of(base):
        hold(part, memory, Share(None, text, place))


def found_again(base: Tensor, part: Any, place: PartPlace) -> None:
    """Let a handle that is lost because a part was written to stand for what it did, if that part is put back."""
    assert isinstance(base._trace, Lost)
    undo = base._trace.undo
    if undo is not None and undo.part() is part and undo.place.is_same(place):
        rebind_handle(base, undo.before)


def reach_sharers(handle: Tensor, rebind: Callable[[Tensor, Any], None]) -> None:
    """Let those who share memory with a handle that has been written to hold what it does, or be lost."""
    if WATCHING.sharing:  # this is what is going on
        return
    WATCHING.sharing = True
    try:
        for other, pairs in sharers(handle):
            reach(other, handle, pairs, rebind)
    finally:
        WATCHING.sharing = False


def sharers(handle: Tensor) -> list[tuple[Tensor, list[tuple[Share, Share]]]]:
    """Return the handles that share memory with one, each with how both have each of the memories."""
    found: dict[int, tuple[Tensor, list[tuple[Share, Share]]]] = {}
    for memory, mine in SHARES.get(id(handle), {}).items():
        for other, theirs in memory.living_holders():
            if other is handle or is_over(other):
                continue
            if not is_over(mine.truth) and not is_over(theirs.truth):
                found.setdefault(id(other), (other, []))[1].append((mine, theirs))
    return list(found.values())


def reach(
    other: Tensor, written: Tensor, pairs: Sequence[tuple[Share, Share]], rebind: Callable[[Tensor, Any], None]
) -> None:
    """Let a handle hold what one does that has been written to, where the two share memory."""
    if type(other._trace) is Plain:
        other._trace.refuse()
    unknown = [share for pair in pairs for share in pair if share.truth is None]
    if unknown:
        place = next((mine.place for mine, _ in pairs if mine.place is not None), None)
        undo = None if place is None else Undo(snapshot(other), weakref.ref(written), place)
        lose(other, unknown[0].text, undo)
        return
    truth = reduce(either, [both(mine.truth, theirs.truth) for mine, theirs in pairs])
    rebind(other, written if truth is True else np.where(truth, written, other))


def both(one: Any, other: Any) -> Any:
    """Return whether two truths hold."""
    if one is True or one is other:
        return other
    return one if other is True else np.logical_and(one, other)


def either(one: Any, other: Any) -> Any:
    """Return whether one of two truths holds."""
    if other is True or one is other:
        return other
    return True if one is True else np.logical_or(one, other)
