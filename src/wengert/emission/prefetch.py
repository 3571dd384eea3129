"""What is brought into the caches ahead: rows to come while one is computed, and what will be written.

The first stage of a row reads what no cache has, and the last one waits for memory to write to, while the stages
between them compute and leave memory idle: processors look ahead along a row, and at the end of a page not even that.
So a stage that computes also asks for what the next row reads, place by place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from wengert.emission.plans import accesses, dependences, is_far, nest_of, weight_of
from wengert.kernel.kernel import Affine, Buffer, Kernel, Stage
from wengert.support.machine import MACHINE
from wengert.support.records import FieldRecord


class Ahead(FieldRecord):
    """What a stage brings ahead at each of its points.

    Attributes:
        buffer: whose memory it is.
        at: where in it.
        rows: how many rows ahead.
        written: whether it will be written, or read.
    """

    buffer: str
    at: Affine
    rows: int
    written: bool


def brought_ahead(kernel: Kernel, buffers: dict[str, Buffer]) -> list[list[Ahead]]:
    """Return what each stage of a kernel brings ahead: the stage that computes most for what it has to move already."""
    found: list[list[Ahead]] = [[] for _ in kernel.stages]
    if sum(stage.lane > 0 for stage in kernel.stages) < 2 or bytes_of_row(kernel, buffers) > MACHINE.second_cache // 4:
        return found
    for number, buffer, at, written in streams(kernel, buffers):
        extents = kernel.stages[number].extents
        idle = [
            idleness(s, buffers, ahead) * (s.extents == extents) for s, ahead in zip(kernel.stages, found, strict=True)
        ]
        most = max(range(len(idle)), key=idle.__getitem__)
        if idle[most] >= MACHINE.idle:
            rows = 0 if written and most < number else kernel.tile
            found[most].insert(0, Ahead(buffer, at, rows, written))  # what is read is waited for sooner
    return found


def idleness(stage: Stage, buffers: dict[str, Buffer], ahead: list[Ahead]) -> float:
    """Return how much a stage computes for what it moves itself and brings ahead; 0 where lanes are not innermost.

    What it moves counts by its square, since that fills the first-level cache as well: so were the best stages found.
    """
    depends = dependences(stage, buffers)
    if not stage.lane or nest_of(stage, depends)[-1] != stage.lane:
        return 0.0
    loads = sum(o.name == "load" and stage.lane in found for o, found in zip(stage.operations, depends, strict=True))
    columns = sum(r.kind == "column" for r in stage.reductions)
    return weight_of(stage, depends) / max(loads + len(stage.stores) + 2 * columns + len(ahead), 1) ** 2


def streams(kernel: Kernel, buffers: dict[str, Buffer]) -> Iterator[tuple[int, str, Affine, bool]]:
    """Iterate over what rows read and write far away, one after the other: first what they write, with its stage."""
    writes = [(k, s.buffer, s.at, True) for k, stage in enumerate(kernel.stages) for s in stage.stores if not s.guard]
    reads = [
        (k, o.buffer, o.at, False)
        for k, stage in enumerate(kernel.stages)
        for o in stage.operations
        if o.name == "load" and not o.guard and o.at is not None
    ]
    known = set()
    for number, name, at, written in (*writes, *reads):
        if name not in known and is_stream(buffers[name], at, kernel.stages[number]):
            known.add(name)
            yield number, name, at, written


def bytes_of_row(kernel: Kernel, buffers: dict[str, Buffer]) -> int:
    """Return how many bytes of memory a row reads and writes, at most."""
    longest: dict[str, int] = {}
    for stage in kernel.stages:
        for name, at in accesses(stage):
            parts = (n for n, step in zip(stage.extents[1:], at.coefficients[1:], strict=True) if step)
            longest[name] = max(longest.get(name, 0), math.prod(parts))
    return sum(points * buffers[name].dtype.itemsize for name, points in longest.items())


def is_stream(buffer: Buffer, at: Affine, stage: Stage) -> bool:
    """Whether each row has its own part of a buffer that is far away, side by side along the lanes."""
    size = buffer.dtype.itemsize
    if not is_far(buffer) or not stage.lane or at.coefficients[stage.lane] != 1:
        return False
    if at.coefficients[0] * size < MACHINE.prefetched:
        return False
    return all(step or extent == 1 for step, extent in zip(at.coefficients, stage.extents, strict=True))
