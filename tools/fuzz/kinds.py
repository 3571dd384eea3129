"""Kinds of programs: how they are made, what is right for them, and the modes that are compared with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.fuzz.lane_modes import LANE_MODES, lane_subject
from tools.fuzz.lanes import random_lanes
from tools.fuzz.modes import EVALUATED, MODES, Outcome, outcome, subject
from tools.fuzz.programs import Program, random_program, released

__all__ = ["KINDS", "Kind", "outcomes"]


@dataclass(frozen=True)
class Kind:
    """Hold what a kind of programs needs.

    Attributes:
        make: a program for a seed, its number, and features.
        subject: what is right for a program; raises Rejected if it cannot be compared.
        modes: what compares a mode, by its name.
        always: how many of the modes, from the first on, each program runs in.
        few: how many of the others it runs in, chosen at random.
    """

    make: Callable[[int, int, frozenset[str]], Program]
    subject: Callable[[Program], Any]
    modes: Mapping[str, Callable[[Any], None]]
    always: int
    few: int

    def chosen(self, program: Program, modes: Sequence[str]) -> Sequence[str]:
        """Return those of some modes that a program is run in: all that somebody named, else a few of all.

        Traces and kernels take nearly all of the time: more programs in fewer modes each find more.
        """
        if len(modes) <= self.few or set(modes) != set(self.modes):
            return modes
        return [*modes[: self.always], *random.Random(program.name).sample(modes[self.always :], self.few)]


KINDS = {
    "programs": Kind(random_program, subject, MODES, always=EVALUATED, few=4),
    "lanes": Kind(random_lanes, lane_subject, LANE_MODES, always=1, few=3),
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
