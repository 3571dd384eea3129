"""What Ctrl-C raises, held back while a library of C++ works that does not survive it, or loses it."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class HeldInterrupts:
    """Note Ctrl-C while the block runs, and have it handled as ever at its end.

    Where Python code would be interrupted is between any two of its steps: between freeing what a library made and
    noting that, say, after which it is freed once more. Only the main thread handles signals; in others nothing is
    done, nor where the program handles this one otherwise.

    >>> with HeldInterrupts() as held:
    ...     held.came is None
    True

    Attributes:
        before: what handles it otherwise.
        came: the arguments of the handler, when it has come.
    """

    before: Any = None
    came: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> HeldInterrupts:
        before = signal.getsignal(signal.SIGINT)
        if callable(before) and threading.current_thread() is threading.main_thread():
            self.before = before
            signal.signal(signal.SIGINT, self.handle)
        return self

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Note that it came."""
        self.came = number, frame

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)  # until then `handle` is what runs, which raises nothing
            if self.came is not None:
                self.before(*self.came)
