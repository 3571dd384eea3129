"""How long programs take, about, in cycles of a processor: what decides how they are written, shared and left."""

from __future__ import annotations

import math
from collections.abc import Iterable

from wengert.kernel.kernel import Invoke, Kernel, Loop, Product, Program, ProgramStep, Run, Switch
from wengert.kernel.opcodes import OPCODES
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple


def cycles(kernel: Kernel, lanes: int) -> float:
    """Return about how long a kernel takes on vectors of so many numbers."""
    total = 0.0
    for stage in kernel.stages:
        each = sum(OPCODES[o.name].cost + (o.name == "load") for o in stage.operations)
        points = math.prod(stage.extents) * (each + len(stage.stores) + len(stage.reductions) + 4 * len(stage.updates))
        total += points / (lanes if stage.lane else 1) / MACHINE.issues
    return total


def cycles_of(program: Program, lanes: int) -> float:
    """Return about how long a program takes."""

    def cycles_of_step(step: ProgramStep) -> float:
        match step:
            case Kernel():
                return cycles(step, lanes)
            case Run():
                return cycles_of(step.program, lanes)
            case Invoke():
                return step.cycles
            case Product():
                return cycles_of_product(step, lanes)
            case Switch():
                return max([cycles_of_step(case) for case in step.cases])
            case Loop():
                return cycles_of(step.body, lanes) * rounds_of(step)
        return 0.0

    return sum(map(cycles_of_step, program.steps))


def cycles_of_product(product: Product, lanes: int) -> float:
    """Return about how long a product takes."""
    return MACHINE.routine + math.prod(product.extents) / lanes / MACHINE.products


def rounds_of(loop: Loop) -> int:
    """Return how many iterations a loop has; what is usual, if nobody knows."""
    return min(loop.rounds, MACHINE.usual_rounds) if loop.count or loop.going else loop.rounds


# What memory takes, by which lanes are chosen, and the order of loops

LANES = 8
"""Numbers of a vector, about."""


class StridedAccess(NamedTuple):
    """What the points of a loop read or write of an array.

    Attributes:
        step: how far apart in memory the numbers of lanes lie.
        size: bytes of the array.
        points: how many points do it.
    """

    step: int
    size: int
    points: int

    @property
    def cycles(self) -> float:
        """How long it takes, but for lanes that stay empty; 0 for what is the same in all lanes."""
        near, far = MACHINE.gathered
        if abs(self.step) > 2 or self.step < 0:
            lines = min(abs(self.step), LANES) / LANES if self.size > MACHINE.first_cache else 0.0
            return self.points / LANES * (near + (far - near) * lines)
        return self.points / LANES * self.step


def cycles_of_lanes(extent: int, loaded: Iterable[StridedAccess], written: Iterable[StridedAccess], sums: int) -> float:
    """Return about how long it takes with some lanes to move what a loop reads and writes, and to add up across lanes.

    Args:
        extent: of the dimension that lanes run over.
        loaded: what is read.
        written: what is written, or added to in memory.
        sums: how many sums there are of the numbers of a vector.
    """
    steps = -(-extent // LANES) * LANES / max(extent, 1)
    moved = sum([access.cycles for access in loaded]) + 2 * sum([access.cycles for access in written])
    return steps * moved + MACHINE.across * sums
