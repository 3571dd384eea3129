"""Kinds of programs: how they are made, what is right for them, and the modes that are compared with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.fuzz.lane_modes import LANE_MODES, lane_subject
from tools.fuzz.lanes import random_lanes
from tools.fuzz.modes import MODES, Outcome, outcome, subject
from tools.fuzz.programs import Program, random_program, released

__all__ = ["KINDS", "Kind", "outcomes"]


@dataclass(frozen=True)
class Kind:
    """Hold what a kind of programs needs.

    Attributes:
        make: a program for a seed, its number, and features.
        subject: what is right for a program; raises Rejected if it cannot be compared.
        modes: what compares a mode, by its name.
        few: how many of the modes each program runs in, besides the first two; None for all.
    """

    make: Callable[[int, int, frozenset[str]], Program]
    subject: Callable[[Program], Any]
    modes: Mapping[str, Callable[[Any], None]]
    few: int | None = None

    def chosen(self, program: Program, modes: Sequence[str]) -> Sequence[str]:
        """Return those of some modes that a program is run in."""
        if self.few is None or len(modes) <= self.few + 2:
            return modes
        return [*modes[:2], *random.Random(program.name).sample(modes[2:], self.few)]


KINDS = {
    "programs": Kind(random_program, subject, MODES),
    "lanes": Kind(random_lanes, lane_subject, LANE_MODES, few=5),
}


def outcomes(kind: Kind, program: Program, modes: Sequence[str]) -> dict[str, Outcome]:
    """Return how modes compare.

    Raises:
        Rejected: the program cannot be compared.
    """
    try:
        this = kind.subject(program)
        return {mode: outcome(kind.modes[mode], this) for mode in modes}
    finally:
        released(program)
