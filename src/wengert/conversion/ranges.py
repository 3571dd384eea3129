"""Ranges of which an end is traced."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from wengert.control.places import shown
from wengert.conversion.regions import is_array
from wengert.core.aval import is_number
from wengert.core.source import caller, position_of
from wengert.core.tensor import is_staged
from wengert.errors import TracedTruthError, UsageError, describe

__all__ = ["StagedRange"]


class StagedRange:
    """Be a range of which an end is traced."""

    def __init__(self, *ends: Any) -> None:
        self.start, self.stop, self.step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
        for end in ends:
            if is_array(end) and (end.shape != () or end.dtype.kind not in "iu"):
                raise UsageError(
                    describe(
                        "range",
                        f"an end that is {shown(end)}",
                        "whole numbers are needed",
                        "Convert it with .astype(int)",
                    )
                )
        if is_number(self.step) and self.step == 0:
            raise ValueError("range() arg 3 must not be zero")

    def count(self) -> Any:
        """Return how many numbers there are."""
        step = self.step
        if is_staged(step):
            up = np.maximum((self.stop - self.start + step - 1) // np.where(step == 0, 1, step), 0)
            down = np.maximum((self.start - self.stop - step - 1) // np.where(step == 0, 1, -step), 0)
            return np.where(step > 0, up, down)
        if step > 0:
            return np.maximum((self.stop - self.start + (step - 1)) // step, 0)
        return np.maximum((self.start - self.stop + (-step - 1)) // -step, 0)

    def item(self, k: Any) -> Any:
        """Return the number after k others."""
        return self.start + k * self.step if not (is_number(self.step) and self.step == 1) else self.start + k

    def __iter__(self) -> NoReturn:
        raise TracedTruthError(
            describe(
                "range",
                f"a traced number of items, iterated over outside of a `for` statement ({position_of(*caller())})",
                "a number that is known while the function is traced is needed",
                "Write a `for` statement, use wengert.fori_loop or wengert.scan, or pass the number in static_argnums",
            )
        )

    __len__ = __getitem__ = __reversed__ = __iter__
