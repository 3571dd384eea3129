"""What a function captured when that was noted, to tell at each call whether it captures the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from wengert.transforms.outer_values import OuterValues


class CapturedState:
    """Remember what a function captures, to tell whether it has changed since.

    Args:
        look: finds what it captures now.

    Attributes:
        key: the key of what it captured when that was noted, None before: the same object as long as it is equal.
    """

    def __init__(self, look: Callable[[], OuterValues]) -> None:
        self.look = look
        self.key: Hashable = None
        self.noted: tuple[OuterValues | None, Any] = None, None

    def is_same(self) -> bool:
        """Tell whether the function captures what it did when that was noted."""
        outer, key = self.noted
        if outer is not None and outer.are_same(key):
            return True
        now = self.look()
        if now.key != key:
            return False
        self.noted = now, key  # other objects that are equal
        return True

    def note(self) -> None:
        """Remember what it captures now."""
        outer = self.look()
        key = outer.lasting_key
        self.noted = outer, key
        if key != self.key:
            self.key = key
