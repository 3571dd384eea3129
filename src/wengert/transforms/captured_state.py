"""What a function captured when that was noted, to tell at each call whether it captures the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from wengert.transforms.outer_values import OuterValues


class CapturedState:
    """Remember what a function captures, to tell whether it has changed since.

    Args:
        look: finds what it captures now.
    """

    def __init__(self, look: Callable[[], OuterValues]) -> None:
        self.look = look
        self.noted: tuple[OuterValues | None, Hashable] = (None, None)

    @property
    def key(self) -> Hashable:
        """The key of what it captured when that was noted, None before."""
        return self.noted[1]

    def is_same(self) -> bool:
        """Tell whether the function captures what it did when that was noted."""
        outer, key = self.noted
        return (outer is not None and outer.are_same(key)) or self.look().key == key

    def note(self) -> None:
        """Remember what it captures now."""
        outer = self.look()
        self.noted = outer if outer.is_plain else None, outer.lasting_key
