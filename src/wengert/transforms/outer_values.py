"""What functions use besides their arguments, as arguments: so that programs are kept for functions made anew.

`solve_ivp(lambda t, y: -k * y, ...)` in a loop has another function each time, of the same code, and another `k`. What
is compiled for the first serves all, with `k` as an argument, as `wengert.transforms.outer_walk` finds it; everything
else is compared by what it holds whenever a program is looked up. For what holds something that nobody can look at no
program is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import nesting_error
from wengert.core.graph.identity import Elements
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError
from wengert.transforms.outer_replacement import Replacement, zeros_like
from wengert.transforms.outer_walk import OuterWalk
from wengert.transforms.repeated_walks import UNTRACKED, RepeatedWalk


class OutdatedProgram(Exception):
    """Tell, as a program is traced for other shapes, that the user has rebound variables of the functions it keeps."""


class OuterValues(OuterWalk):
    """Hold the arguments that values and functions hold, and what tells these apart from others otherwise.

    Args:
        values: functions and arguments of theirs, in any containers.
        lifted: whether floats become arguments at all.
        by_identity: whether what may change is compared by its identity, too, as what was made goes on to refer to it.

    Attributes:
        key: what is equal for values that a program serves with other arguments; to be kept only as `lasting_key`.
    """

    def __init__(self, values: Sequence[Any], lifted: bool = True, by_identity: bool = False) -> None:
        super().__init__(lifted, by_identity, len(values))
        self.values = values
        self.key_kept: tuple[Hashable, ...] | None = None
        try:
            self.templates = [self.enter(x, lifted, i if lifted else UNTRACKED) for i, x in enumerate(values)]
            self.enter_modules()
        except RecursionError:
            raise nesting_error("what functions capture", values[0]) from None
        self.key: Hashable = tuple(self.parts)

    def are_same(self, key: Any) -> bool:
        """Tell whether all variables hold what they held: in some microseconds where that is easily told, else False.

        Args:
            key: the `lasting_key` of that time, which has the elements of arrays.
        """
        return self.reads.are_same(key)

    @property
    def lasting_key(self) -> tuple[Hashable, ...]:
        """The key with copies of arrays that may change."""
        return tuple([part.copy() if type(part) is Elements else part for part in self.parts])

    def as_repeated(self) -> RepeatedWalk | None:
        """Return what finds the arguments of other values that hold the same; None where that cannot be."""
        if not (self.lifted and self.is_complete and self.record.is_whole and self.reads.is_whole):
            return None
        return RepeatedWalk(self.record, self.reads, self.lasting_key, len(self.leaves))

    def arrays(self) -> list[Any]:
        """Return the arrays that are held."""
        return [value for _, _, value in self.known.values() if isinstance(value, np.ndarray | Tensor)]

    def with_zeros(self) -> OuterValues:
        """Return the same of values with zeros for the arguments, which a program keeps."""
        kept = OuterValues(self.replace_values(self.values, list(map(zeros_like, self.leaves)))[0], self.lifted)
        if kept.is_complete:  # else no other functions are served
            kept.key_kept = kept.lasting_key
        return kept

    def replace_values(self, values: Sequence[Any], leaves: Sequence[Any]) -> tuple[list[Any], Replacement]:
        """Return values like those given at first, which may have been converted, with others for the arguments.

        And what tells, after they were called, whether they wrote to what would be lost.

        Raises:
            OutdatedProgram: what a program keeps has been changed.
            GraphError: an argument has no place in what was converted.
        """
        if self.key_kept is not None and OuterValues(self.values, self.lifted).key != self.key_kept:
            raise OutdatedProgram
        made = Replacement(leaves)
        found = [made.of(value, template) for value, template in zip(values, self.templates, strict=True)]
        if len(made.placed) < len(leaves):
            given = "a converted function that holds something in another place than it did"
            raise GraphError("captured values", given, "the same places are needed", "Pass them as arguments")
        return found, made
