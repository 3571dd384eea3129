"""How long programs take, about, in cycles of a processor: what decides how they are written, shared and left."""

from __future__ import annotations

import math

from wengert.kernel.kernel import Invoke, Kernel, Loop, Product, Program, ProgramStep, Run
from wengert.kernel.opcodes import OPCODES
from wengert.support.machine import MACHINE


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

    def taken(step: ProgramStep) -> float:
        match step:
            case Kernel():
                return cycles(step, lanes)
            case Run():
                return cycles_of(step.program, lanes)
            case Invoke():
                return step.cycles
            case Product():
                return cycles_of_product(step, lanes)
            case Loop():
                return cycles_of(step.body, lanes) * rounds_of(step)
        return 0.0

    return sum(map(taken, program.steps))


def cycles_of_product(product: Product, lanes: int) -> float:
    """Return about how long a product takes."""
    return MACHINE.routine + math.prod(product.extents) / lanes / MACHINE.products


def rounds_of(loop: Loop) -> int:
    """Return how many iterations a loop has; what is usual, if nobody knows."""
    return min(loop.rounds, MACHINE.usual_rounds) if loop.count or loop.going else loop.rounds
