"""Watches: which Tensors that were there before are written to while a piece of a program is traced, by whatever road.

Every write re-binds the handle that owns the memory. A watch keeps what each stood for before its first write; handles
made while it watches are nobody else's.
"""

from __future__ import annotations

from typing import Any

from wengert.core.tensor import WATCHES, WATCHING, Tensor, make_tensor

__all__ = ["WATCHES", "Watch", "noted", "snapshot"]


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
        """Return the handles that were written to."""
        return [x for key, (x, _) in self.log.items() if x._value is not self.starts.get(key)]


def noted(handle: Tensor) -> None:
    """Let the innermost watch of this thread know of a write that is about to happen."""
    if WATCHING.stack:
        WATCHING.stack[-1].note(handle)
