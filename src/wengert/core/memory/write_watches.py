"""Watches: which Tensors that were there before are written to while a piece of a program is traced, by whatever road.

Every write re-binds the handle that owns the memory. A watch keeps what each stood for before its first write; handles
made while it watches are nobody else's. A handle may be lost: nobody knows what it holds, so that its use raises.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NoReturn

from wengert.core.values.recording import has_ended
from wengert.core.values.tensor import WATCHES, WATCHING, Tensor, Trace, make_tensor
from wengert.errors import GraphError
from wengert.support.records import NamedTuple
from wengert.support.scopes import Restore, StateScope, calling_all


class Undo(NamedTuple):
    """Hold what a lost handle stood for before a part of it was written to: putting the part back finds it again."""

    before: Tensor
    part: weakref.ref[Tensor]
    place: Any


def snapshot(tensor: Tensor) -> Tensor:
    """Return another handle of what a Tensor that owns its memory stands for now; later writes do not reach it."""
    tensor._kept = tensor._kept or True
    found = make_tensor(tensor._value, tensor._trace, tensor._node)
    found._kept = tensor._kept
    if hasattr(tensor, "_array"):
        found._array = tensor._array
    return found


STOOD_FOR = ("_value", "_trace", "_node")


def rebinding(handle: Tensor, state: Tensor) -> Restore:
    """Return what lets a handle stand for what another stands for then, in C; see `rebind_handle`."""
    values = chain(map(getattr, repeat(state), STOOD_FOR), (True,))
    return partial(deque, map(setattr, repeat(handle), (*STOOD_FOR, "_kept"), values), 0)


def rebind_handle(handle: Tensor, state: Tensor) -> None:
    """Let a handle stand for what another stands for, which no trace hears of."""
    handle._value, handle._trace, handle._node, handle._kept = state._value, state._trace, state._node, True


class Watch(StateScope):
    """Note the first write to every handle that was there before; all stand for that again at the end.

    Attributes:
        born: the identities of handles made since; none can be that of an older one.
        log: handles that were written to or adopted, with what they stood for before.
        starts: the values that adopted handles were given.
        heap: what the piece can reach, if that is known.
        ends: what is to be called at the end.
        restores: whether handles stand for what they did before.
    """

    restores = True

    def __init__(self, heap: Any = None) -> None:
        super().__init__()
        self.heap = heap
        self.born: set[int] = set()
        self.log: dict[int, tuple[Tensor, Tensor]] = {}
        self.starts: dict[int, Any] = {}

    def undo(self) -> Restore:
        """Return what ends it."""
        around = WATCHING.stack
        self.ends: list[Restore] = [partial(setattr, WATCHING, "stack", around)]
        if around:
            self.ends.append(partial(around[-1].born.update, self.born))
        return calling_all(chain(self.ends, (self.ends.clear,)))  # which would keep it, and handles, until a collection

    def change(self) -> None:
        """Begin."""
        WATCHING.stack = [*WATCHING.stack, self]
        calling_all((partial(WATCHES.append, self), partial(self.ends.append, partial(WATCHES.remove, self))))()

    def note(self, handle: Tensor) -> None:
        """Keep what a handle stands for that is about to be written to."""
        key = id(handle)
        if key not in self.born and key not in self.log:
            self.log[key] = (handle, snapshot(handle))
            if self.restores:
                self.ends.append(rebinding(*self.log[key]))

    def adopt(self, handle: Tensor, start: Tensor) -> None:
        """Let a handle from before stand for another value, wherever the program reaches it from."""
        self.note(handle)
        self.starts[id(handle)] = start._value
        rebind_handle(handle, start)

    def written_handles(self) -> list[Tensor]:
        """Return the handles that were written to and are not lost."""
        return [
            x for key, (x, _) in self.log.items() if x._value is not self.starts.get(key) and type(x._trace) is not Lost
        ]

    def lost(self) -> dict[int, tuple[Tensor, str]]:
        """Return the handles that are lost, with the text of the error about their use."""
        return {key: (x, lost_text(x)) for key, (x, _) in self.log.items() if type(x._trace) is Lost}


class Witness(Watch):
    """Note writes as a watch does, and let them stand."""

    restores = False


def note_write(handle: Tensor) -> None:
    """Let the innermost watch of this thread know of a write that is about to happen."""
    if WATCHING.stack:
        WATCHING.stack[-1].note(handle)


def lose(handle: Tensor, text: str, undo: Undo | None = None) -> None:
    """Let every use of a handle raise: nobody knows what it holds."""
    if WATCHING.stack:
        WATCHING.stack[-1].note(handle)
    lost = Lost(text, undo)
    handle._trace, handle._node, handle._kept = lost, lost, True  # another node, so that views take their steps again


def is_over(value: Any) -> bool:
    """Tell whether a value belongs to a piece of a program, or a transformation, that has ended."""
    while type(value) is Tensor:
        if has_ended(value._trace):
            return True
        value = value._value
    return False


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
