"""What a function captured when that was noted, to tell at each call whether it captures the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from wengert.errors import GraphError
from wengert.support.attributes import function_name
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


def captures_stay(function: Any) -> Callable[[], None]:
    """Return what raises a GraphError if what a function captures has been changed since, where that can be seen."""
    state = CapturedState(lambda: OuterValues([function], lifted=False))
    state.note()
    comparable = state.is_same()

    def require_same() -> None:
        if comparable and not state.is_same():
            given = "a function that captures what is changed after a solver is called with it"
            needed = "the same is needed, because a graph calls the solver later"
            action = "Make a new list, array or object instead of changing the one that is captured"
            raise GraphError(function_name(function), given, needed, action)

    return require_same
