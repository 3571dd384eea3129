"""Watches: which Tensors that were there before are written to while a piece of a program is traced, by whatever road.

Every write re-binds the handle that owns the memory. A watch keeps what each stood for before its first write; handles
made while it watches are nobody else's. Handles that share memory, or not, as a traced value decides are kin: a write
to one changes the other as that value says, or leaves it lost, so that its use raises.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

from wengert.core.tensor import WATCHES, WATCHING, Tensor, make_tensor
from wengert.core.trace import Trace
from wengert.errors import GraphError

__all__ = [
    "KIN",
    "WATCHES",
    "Lost",
    "PartPlace",
    "Watch",
    "found_again",
    "kin",
    "kin_written",
    "lose",
    "lost_text",
    "noted",
    "part_of",
    "snapshot",
]

Choice: TypeAlias = Callable[[Any, Any], Any]


class Kin(NamedTuple):
    """Hold a handle that shares memory with another, or not, as a traced value decides.

    Attributes:
        handle: it.
        identity: its identity, also when it is no more.
        chosen: what it stands for when the other has been written to, of (itself, the other); None if nobody knows.
        text: what the error about its use says then.
        place: which part of it the other is, if it is one.
        held: the handle itself where the other was made from it: what the other shares with older ones, it shares
            by way of this one, which must therefore live as long.
    """

    handle: weakref.ref[Tensor]
    identity: int
    chosen: Choice | None
    text: str
    place: PartPlace | None = None
    held: Tensor | None = None


class PartPlace(NamedTuple):
    """Hold where a part is: by steps to a view and a static index there, and by the indices that stand in it."""

    steps: Any
    indices: Sequence[Any]

    def is_same(self, other: PartPlace) -> bool:
        """Tell whether two places are the same for sure."""
        pairs = zip(self.indices, other.indices, strict=False)
        return self.steps == other.steps and all(one is another for one, another in pairs)


class Undo(NamedTuple):
    """Hold what a lost handle stood for before a part of it was written to: putting the part back finds it again."""

    before: Tensor
    part: weakref.ref[Tensor]
    place: PartPlace


KIN: dict[int, list[Kin]] = {}
"""The kin of a handle, by its identity."""


def snapshot(tensor: Tensor) -> Tensor:
    """Return another handle of what a Tensor that owns its memory stands for now; later writes do not reach it."""
    tensor._kept = tensor._kept or True
    found = make_tensor(tensor._value, tensor._trace, tensor._node)
    found._kept = tensor._kept
    if hasattr(tensor, "_array"):
        found._array = True
    return found


def rebound(handle: Tensor, state: Tensor) -> None:
    """Let a handle stand for what another stands for, which no trace hears of."""
    handle._value, handle._trace, handle._node, handle._kept = state._value, state._trace, state._node, True


class Watch:
    """Note the first write to every handle that was there before.

    Attributes:
        born: the identities of handles made since; none can be that of an older one.
        log: handles that were written to or adopted, with what they stood for before.
        starts: the values that adopted handles were given.
    """

    __slots__ = ("born", "log", "starts")

    def __init__(self) -> None:
        self.born: set[int] = set()
        self.log: dict[int, tuple[Tensor, Tensor]] = {}
        self.starts: dict[int, Any] = {}

    def __enter__(self) -> Watch:
        WATCHES.append(self)
        WATCHING.stack.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        """Let all handles stand again for what they did before."""
        WATCHES.remove(self)
        WATCHING.stack.pop()
        for handle, before in self.log.values():
            rebound(handle, before)
        if WATCHING.stack:
            WATCHING.stack[-1].born |= self.born

    def note(self, handle: Tensor) -> None:
        """Keep what a handle stands for that is about to be written to."""
        key = id(handle)
        if key not in self.born and key not in self.log:
            self.log[key] = (handle, snapshot(handle))

    def adopt(self, handle: Tensor, start: Tensor) -> None:
        """Let a handle from before stand for another value, wherever the program reaches it from."""
        self.note(handle)
        self.starts[id(handle)] = start._value
        rebound(handle, start)

    def written(self) -> list[Tensor]:
        """Return the handles that were written to and are not lost."""
        return [
            x for key, (x, _) in self.log.items() if x._value is not self.starts.get(key) and type(x._trace) is not Lost
        ]

    def lost(self) -> dict[int, tuple[Tensor, str]]:
        """Return the handles that are lost, with the text of the error about their use."""
        return {key: (x, lost_text(x)) for key, (x, _) in self.log.items() if type(x._trace) is Lost}


def noted(handle: Tensor) -> None:
    """Let the innermost watch of this thread know of a write that is about to happen."""
    if WATCHING.stack:
        WATCHING.stack[-1].note(handle)


def kin(one: Tensor, other: Tensor, text: str, chosen: Choice | None = None) -> None:
    """Enter two handles that may share memory, of which the other was made from the one."""
    if one is not other and not getattr(one._trace, "ended", False):  # what a branch made is in nobody's hands
        enter(one, other, chosen, text)
        enter(other, one, chosen, text, held=one)


def enter(handle: Tensor, relative: Tensor, chosen: Choice | None, text: str, **more: Any) -> None:
    """Enter the kin of a handle."""
    found = weakref.ref(relative, partial(forget, id(relative)))  # a collection here calls `forget`
    known = Kin(found, id(relative), chosen, text, **more)
    KIN.setdefault(id(handle), []).append(known)


def part_of(base: Tensor, part: Tensor, place: PartPlace, text: str) -> None:
    """Enter that a handle stands for the part of another at a place that only a traced value tells."""
    enter(base, part, None, text)
    enter(part, base, None, text, place=place, held=base)


def found_again(base: Tensor, part: Any, place: PartPlace) -> None:
    """Let a handle that is lost because a part was written to stand for what it did, if that part is put back."""
    assert isinstance(base._trace, Lost)
    undo = base._trace.undo
    if undo is not None and undo.part() is part and undo.place.is_same(place):
        rebound(base, undo.before)


def kin_written(handle: Tensor, rebind: Callable[[Tensor, Any], None]) -> None:
    """Let the kin of a handle that has been written to hold what they share with it, or be lost."""
    if WATCHING.kin:  # this is what is going on
        return
    WATCHING.kin = True
    try:
        spread(handle, rebind)
    finally:
        WATCHING.kin = False


def spread(handle: Tensor, rebind: Callable[[Tensor, Any], None]) -> None:
    """Hand a write on to the kin of a handle, and to theirs; what it reaches by two roads is lost.

    Which of the roads it takes, values decide, and so does which of two handles then holds what was written last.
    """
    reached_from: dict[int, Tensor | None] = {id(handle): None}
    queue = [handle]
    while queue:
        written = queue.pop()
        for known in KIN.get(id(written), ()):
            other = known.handle()
            if other is None or other is reached_from[id(written)] or lost_text(other):
                continue
            again = id(other) in reached_from
            if again or known.chosen is None or lost_text(written):
                place = known.place
                undo = None if place is None or again else Undo(snapshot(other), weakref.ref(written), place)
                lose(other, known.text, undo)
            else:
                rebind(other, known.chosen(other, written))
            if not again:
                reached_from[id(other)] = written
            queue.append(other)


def forget(identity: int, _: weakref.ref[Tensor]) -> None:
    """Take out a handle that is no more."""
    for known in KIN.pop(identity, ()):
        alive = [x for x in KIN.pop(known.identity, ()) if x.handle() is not None]
        if alive:
            KIN[known.identity] = alive


def lose(handle: Tensor, text: str, undo: Undo | None = None) -> None:
    """Let every use of a handle raise: nobody knows what it holds."""
    if WATCHING.stack:
        WATCHING.stack[-1].note(handle)
    handle._trace, handle._node, handle._kept = Lost(text, undo), None, True


def lost_text(handle: Tensor) -> str:
    """Return what the error about a lost handle says; empty if it is not lost."""
    return handle._trace.text if type(handle._trace) is Lost else ""


class Lost(Trace):
    """Be the trace of handles of which nobody knows what they hold.

    Attributes:
        ended: that they are no inputs of pieces that are traced.
        undo: how the handle may be found again.
    """

    __slots__ = ("ended", "text", "undo")

    def __init__(self, text: str, undo: Undo | None = None) -> None:
        super().__init__(0)
        self.level = float("inf")
        self.ended = True
        self.text = text
        self.undo = undo

    def process(self, primitive: Any, operands: Sequence[Any], params: Mapping[str, Any]) -> NoReturn:
        """Raise the error."""
        raise GraphError(self.text)

    def assign(self, handle: Tensor, primitive: Any, operands: Sequence[Any], params: dict[str, Any]) -> NoReturn:
        """Raise the error."""
        raise GraphError(self.text)

    def below(self, tensor: Tensor) -> NoReturn:
        """Raise the error."""
        raise GraphError(self.text)

    def require_writable(self, handle: Tensor) -> NoReturn:
        """Raise the error."""
        raise GraphError(self.text)
