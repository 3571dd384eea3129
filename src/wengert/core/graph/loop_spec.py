"""What the operands of a loop are, by their roles: constants, carried values, sequences."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from wengert.core.graph.identity import Composite
from wengert.support.records import FieldRecord

Params = Mapping[str, Any]


class LoopSpec(FieldRecord, Composite):
    """Say what the operands of a loop are, and how its iterations follow each other.

    Attributes:
        constants: how many operands are what every iteration reads.
        carried: how many after these are what one iteration hands to the next; sequences are the others.
        length: the number of iterations; None for a `while_loop`, and for a `scan` that gets it as operand 0.
        reverse: whether sequences are read and written from their ends.
    """

    constants: int
    carried: int
    length: int | None = None
    reverse: bool = False

    def structure(self) -> Hashable:
        """Return what it is made of: whole numbers and a flag."""
        return self.constants, self.carried, self.length, self.reverse

    def check(self) -> None:
        """Raise an error if a field is not what it should be: they may come from a file."""
        counts = (self.constants, self.carried, 0 if self.length is None else self.length)
        if not all(type(n) is int and n >= 0 for n in counts) or type(self.reverse) is not bool:
            raise ValueError(f"{self!r:.80}")

    def holding(self, constants: int, carried: int) -> LoopSpec:
        """Return what is said of the same loop with other numbers of operands."""
        return self.replaced(constants=constants, carried=carried)


class Parts(NamedTuple):
    """Hold the operands of a loop, or something about each of them, by their roles; `limit` has one item or none."""

    limit: list[Any]
    constants: list[Any]
    carried: list[Any]
    sequences: list[Any]

    @property
    def inner(self) -> list[Any]:
        """What the body receives."""
        return [*self.constants, *self.carried, *self.sequences]


def parts(items: Sequence[Any], params: Params) -> Parts:
    """Sort what belongs to operands by their roles."""
    first = int(is_counted(params))
    second = first + params["spec"].constants
    third = second + params["spec"].carried
    return Parts(list(items[:first]), list(items[first:second]), list(items[second:third]), list(items[third:]))


def is_counted(params: Params) -> bool:
    """Tell whether operand 0 is the number of iterations."""
    return params["cond"] is None and params["spec"].length is None
