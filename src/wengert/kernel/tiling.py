"""Tiling: programs as schedules say that they are carried out."""

from __future__ import annotations

import math
from dataclasses import replace

from wengert.kernel.checking import checked
from wengert.kernel.kernel import Affine, Buffer, Kernel, Loop, Operation, Program, Run, Stage, Store
from wengert.kernel.schedule import Pack, Schedule, schedule_of

Copies = dict[tuple[str, Affine, int, tuple[int, ...]], Operation]


def scheduled(program: Program, schedule: Schedule) -> Program:
    """Return a program with the lanes, tiles and copies of a schedule, which must be legal."""
    buffers = list(program.buffers)
    kernels: list[Kernel] = []
    for k, (kernel, lanes, tile) in enumerate(zip(program.kernels, schedule.lanes, schedule.tiles, strict=True)):
        stages = [replace(stage, lane=lane) for stage, lane in zip(kernel.stages, lanes, strict=True)]
        copies: Copies = {}
        for pack in schedule.packs:
            if pack.kernel == k:
                stages[pack.stage] = packed(stages[pack.stage], pack, copies, buffers, kernels)
        kernels.append(replace(kernel, stages=tuple(stages), tile=tile))
    return checked("scheduled", replace(program, buffers=tuple(buffers), steps=tuple(kernels)))


def with_schedule(program: Program) -> Program:
    """Return a program as it is carried out: it, and those that its steps run, by the schedules that are chosen."""
    if not program.is_nested:
        return scheduled(program, schedule_of(program))
    steps = [
        replace(s, program=with_schedule(s.program))
        if isinstance(s, Run)
        else replace(s, body=with_schedule(s.body))
        if isinstance(s, Loop)
        else s
        for s in program.steps
    ]
    return replace(program, steps=tuple(steps))


def packed(stage: Stage, pack: Pack, copies: Copies, buffers: list[Buffer], kernels: list[Kernel]) -> Stage:
    """Return a stage with a load of a copy, lanes side by side; enter the copy and its kernel, if they are new."""
    load = stage.operations[pack.place]
    assert load.at is not None
    key = load.buffer, load.at, stage.lane, stage.extents
    if key not in copies:
        copies[key] = copied(stage, load, buffers, kernels)
    operations = [*stage.operations]
    operations[pack.place] = copies[key]
    return replace(stage, operations=tuple(operations))


def copied(stage: Stage, load: Operation, buffers: list[Buffer], kernels: list[Kernel]) -> Operation:
    """Enter the kernel that copies what a load reads; return the load of the copy."""
    assert load.at is not None
    moving = [d for d in range(1, len(stage.extents)) if load.at.coefficients[d] and d != stage.lane]
    order = [*moving, *([stage.lane] if load.at.coefficients[stage.lane] else [])]
    shape = tuple([stage.extents[d] for d in order])
    name = f"p{len(buffers)}"
    buffers.append(Buffer(name, shape, load.dtype, "temporary"))
    steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    read = Affine(load.at.constant, (0, *[load.at.coefficients[d] for d in order]))
    copy = Stage((1, *shape), (replace(load, at=read),), (Store(name, Affine(0, (0, *steps)), 0),), lane=len(shape))
    kernels.append(Kernel(1, (copy,)))
    along = dict(zip(order, steps, strict=True))
    at = Affine(0, tuple([along.get(d, 0) for d in range(len(stage.extents))]))
    return replace(load, buffer=name, at=at)
