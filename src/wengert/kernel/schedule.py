"""Schedules: how the kernels of a program are carried out, as values that one function chooses and another applies.

A schedule changes no value but by the order of sums, so that any that is not illegal can be tried.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Any

from wengert.kernel.checking import check_step
from wengert.kernel.durations import LANES, StridedAccess, cycles_of_lanes
from wengert.kernel.kernel import Affine, Buffer, Kernel, Operation, Program, Reduce, Stage, Store
from wengert.kernel.opcodes import OPCODES
from wengert.support.machine import MACHINE
from wengert.support.records import FieldRecord


class Pack(FieldRecord):
    """Name a load whose elements are copied before its kernel runs, so that lanes lie side by side.

    Attributes:
        kernel, stage, place: of the load.
    """

    kernel: int
    stage: int
    place: int


class Unpack(FieldRecord):
    """Name a column that rows add up side by side, and that is copied to where it belongs after its kernel.

    Attributes:
        kernel, stage: of the reduction.
        number: which one of the stage it is.
    """

    kernel: int
    stage: int
    number: int


class Schedule(FieldRecord):
    """Say how kernels are carried out.

    Attributes:
        lanes: for each kernel the dimension of each stage that vector lanes run over; 0 for none.
        tiles: for each kernel how many rows are carried out together.
        packs: what is copied first.
        unpacks: what is copied last.
    """

    lanes: tuple[tuple[int, ...], ...]
    tiles: tuple[int, ...]
    packs: tuple[Pack, ...] = ()
    unpacks: tuple[Unpack, ...] = ()


def illegal(program: Program, schedule: Schedule) -> str:
    """Return why a schedule is none for a program; nothing if it is."""
    if [len(kernel.stages) for kernel in program.kernels] != list(map(len, schedule.lanes)):
        return "lanes for other stages"
    if len(schedule.tiles) != len(program.kernels):
        return "tiles for other kernels"
    for kernel, lanes, tile in zip(program.kernels, schedule.lanes, schedule.tiles, strict=True):
        if not 1 <= tile <= kernel.rows:
            return f"a tile of {tile} of {kernel.rows} rows"
        for stage, lane in zip(kernel.stages, lanes, strict=True):
            if lane not in range(len(stage.extents)):
                return f"lanes along dimension {lane} of {len(stage.extents)}"
            if lane and stage.updates and not stage.has_updates_beside(lane):
                return f"lanes along dimension {lane}, of which changes at computed places take one after the other"
            if lane in scanned_dimensions(stage):
                return f"lanes along dimension {lane}, whose steps follow one from the other"
    for pack in schedule.packs:
        kernel = program.kernels[pack.kernel]
        stage = kernel.stages[pack.stage]
        if not can_pack(program, kernel, stage, stage.operations[pack.place]):
            return f"{pack}: rows read other elements, or write them"
    for unpack in schedule.unpacks:
        stage = program.kernels[unpack.kernel].stages[unpack.stage]
        if not can_unpack(program, stage, stage.reductions[unpack.number]):
            return f"{unpack}: no column, or something else writes there"
    return ""


def can_pack(program: Program, kernel: Kernel, stage: Stage, load: Operation) -> bool:
    """Tell whether what a load reads can be copied before its kernel: the same in each row, and written by none."""
    if load.name != "load" or load.at is None or load.guard or load.at.coefficients[0] or len(stage.extents) < 2:
        return False
    if any(buffer.name == load.buffer and buffer.kind == "row" for buffer in program.buffers):
        return False
    written = {store.buffer for s in kernel.stages for store in s.stores}
    written |= {reduction.into for s in kernel.stages for reduction in s.reductions}
    return load.buffer not in written


def can_unpack(program: Program, stage: Stage, reduction: Reduce) -> bool:
    """Tell whether rows can add up a column elsewhere: it is all of a buffer, and nothing else writes there."""
    if reduction.kind != "column" or reduction.at is None:
        return False
    size = math.prod([n for d, n in enumerate(stage.extents) if d not in reduction.over])
    stages = [own for kernel in program.kernels for own in kernel.stages]
    written = [x.buffer for own in stages for x in own.stores] + [x.buffer for own in stages for x in own.updates]
    written += [r.into for own in stages for r in own.reductions]
    kept = {keep.buffer for kernel in program.kernels for keep in kernel.kept}
    is_alone = written.count(reduction.into) == 1 and reduction.into not in kept
    return is_alone and size == program.buffers_by_name[reduction.into].size


# The choice


def schedule_of(program: Program) -> Schedule:
    """Return a schedule that makes lanes read side by side, and rows share what they read."""
    kernels, buffers = program.kernels, program.buffers_by_name
    lanes = tuple([tuple([lane_of(program, buffers, kernel, stage) for stage in kernel.stages]) for kernel in kernels])
    tiles = tuple([tile_of(kernel, own) for kernel, own in zip(program.kernels, lanes, strict=True)])
    return Schedule(lanes, tiles, tuple(packs_of(program, lanes)), tuple(unpacks_of(program, lanes)))


def lane_of(program: Program, buffers: dict[str, Buffer], kernel: Kernel, stage: Stage) -> int:
    """Return the dimension along which memory takes least time, the last of those that take as long.

    Where steps follow one from the other, none if lanes would have gaps.
    """
    own = scanned_dimensions(stage)
    free = [d for d in reversed(range(1, len(stage.extents))) if d not in own]
    if stage.updates or not free:
        return lane_of_updates(stage)
    if len(free) == 1 and not own:
        return free[0]
    loads = [
        (o.at, bytes_of(buffers[o.buffer]), kernel.rows >= MACHINE.packed_rows and can_pack(program, kernel, stage, o))
        for o in stage.operations
        if o.name == "load" and o.at is not None
    ]
    moved = [r for r in stage.reductions if kernel.rows >= MACHINE.packed_rows and can_unpack(program, stage, r)]
    lane = min(free, key=lambda d: cycles_along(stage, buffers, loads, moved, d))
    is_apart = any(r.at is not None and r.at.coefficients[lane] != 1 for r in stage.reductions if r.kind == "scan")
    return 0 if is_apart else lane


def lane_of_updates(stage: Stage) -> int:
    """Return the dimension along which what is changed at computed places lies side by side, if vectors are full.

    A part of a vector that is added to memory waits for what was added there just before: sums of 4,000 sorted rows of
    10 numbers take 33 us for 18 number by number, and whole vectors, of 16 numbers, 12 for 26.
    """
    last, extent = len(stage.extents) - 1, stage.extents[-1]
    is_full = extent % LANES == 0 or extent >= 4 * LANES
    return last if stage.updates and is_full and stage.has_updates_beside(last) else 0


def scanned_dimensions(stage: Stage) -> set[int]:
    """Return the dimensions whose steps follow one from the other."""
    return {d for reduction in stage.reductions if reduction.kind == "scan" for d in reduction.over}


def cycles_along(
    stage: Stage,
    buffers: dict[str, Buffer],
    loads: Sequence[tuple[Affine, int, bool]],
    moved: Container[Reduce],
    lane: int,
) -> float:
    """Return how long memory takes with lanes along a dimension; what can be copied, first or last, is side by side."""
    points = math.prod(stage.extents)
    loaded = []
    for at, size, is_copied in loads:
        step = at.coefficients[lane]
        loaded.append(StridedAccess(int(step != 0) if is_copied else step, size, points))
    written = [
        StridedAccess(store.at.coefficients[lane], bytes_of(buffers[store.buffer]), points) for store in stage.stores
    ]
    sums = 0
    for r in stage.reductions:
        if r.at is not None:
            kept = math.prod([n for d, n in enumerate(stage.extents) if d not in r.over])
            count = kept if r.kind == "nested" else points
            step = r.at.coefficients[lane]
            written.append(StridedAccess(int(step != 0) if r in moved else step, bytes_of(buffers[r.into]), count))
            sums += kept * (lane in r.over and r.kind != "total")
    return cycles_of_lanes(stage.extents[lane], loaded, written, sums)


def bytes_of(buffer: Buffer) -> int:
    """Return how many bytes a buffer has."""
    return buffer.size * buffer.dtype.itemsize


def tile_of(kernel: Kernel, lanes: tuple[int, ...]) -> int:
    """Return how many rows are carried out together: a divisor, so that none are left over, but for some sums.

    Sums of rows that all read the same, and those that all rows add to, read and write less then: a matrix of 512 x 131
    times a vector takes 5.4 us for 8.4. Sums of columns wait for each other: of 20,000 x 7 numbers eight rows together
    take 37 us for 55 of four, variances of the columns of 200 x 64 3.4 for 4.0. Of long rows too many come to lie in
    the same lines of the nearest cache: three arrays of 512 x 2,048 take 1.5 of the time.
    """
    stages = kernel.stages
    if any(operation.guard for stage in stages for operation in stage.operations):
        return 1
    if max([len(stage.operations) for stage in stages], default=0) > MACHINE.tiled_operations or is_costly(kernel):
        return 1
    if sum([math.prod(stage.extents) * len(stage.operations) for stage in stages]) <= MACHINE.quick:
        return 1
    if any(scanned_dimensions(stage) and not lane for stage, lane in zip(stages, lanes, strict=True)):
        return next((n for n in MACHINE.tiles if kernel.rows % n == 0), 1)  # each row waits for its own sum alone
    longest = max([s.extents[lane] for s, lane in zip(stages, lanes, strict=True) if lane], default=1)
    sums = sum([sums_that_share(stage, lane) for stage, lane in zip(stages, lanes, strict=True)])
    if sums and kernel.rows < LANES and any(map(reads_side_by_side, stages, lanes)):
        return kernel.rows
    if sums or (len(stages) == 1 and any(r.kind == "column" for r in stages[0].reductions)):
        together = MACHINE.summed_rows * (2 if not sums and longest <= MACHINE.tiled_lanes[0] else 1)
        return min(max(together // max(sums, 1), 1), kernel.rows)
    shared = any(r.kind in ("column", "nested") for stage in stages for r in stage.reductions)
    if longest > MACHINE.tiled_lanes[not shared]:
        return 1
    return next((n for n in MACHINE.tiles if kernel.rows % n == 0), 1)


def sums_that_share(stage: Stage, lane: int) -> int:
    """Return how many sums along the lanes a row has, if it reads there what all rows read."""
    loads = [o.at.coefficients for o in stage.operations if o.name == "load" and o.at is not None]
    is_shared = lane > 0 and any(not steps[0] and steps[lane] for steps in loads)
    return sum([r.kind == "row" and r.over == (lane,) for r in stage.reductions]) if is_shared else 0


def reads_side_by_side(stage: Stage, lane: int) -> bool:
    """Tell whether all rows read beside each other where lanes lie as far apart as there are rows."""
    loads = [o.at.coefficients for o in stage.operations if o.name == "load" and o.at is not None]
    return lane > 0 and any(steps[0] == 1 and steps[lane] == stage.extents[0] for steps in loads)


def is_costly(kernel: Kernel) -> bool:
    """Tell whether a kernel has functions, which have enough to do at once by themselves."""
    return any(OPCODES[operation.name].cost >= 20 for stage in kernel.stages for operation in stage.operations)


def packs_of(program: Program, lanes: tuple[tuple[int, ...], ...]) -> Iterator[Pack]:
    """Yield the loads that every row of many does with gaps between lanes."""
    for k, kernel in enumerate(program.kernels):
        if kernel.rows < MACHINE.packed_rows:
            continue
        for s, (stage, lane) in enumerate(zip(kernel.stages, lanes[k], strict=True)):
            for place, operation in enumerate(stage.operations):
                if lane and has_gaps(operation.at, lane) and can_pack(program, kernel, stage, operation):
                    yield Pack(k, s, place)


def unpacks_of(program: Program, lanes: tuple[tuple[int, ...], ...]) -> Iterator[Unpack]:
    """Yield the columns that many rows add up with gaps between lanes."""
    for k, kernel in enumerate(program.kernels):
        for s, (stage, lane) in enumerate(zip(kernel.stages, lanes[k], strict=True)):
            for n, reduction in enumerate(stage.reductions if lane and kernel.rows >= MACHINE.packed_rows else ()):
                if has_gaps(reduction.at, lane) and can_unpack(program, stage, reduction):
                    yield Unpack(k, s, n)


def has_gaps(at: Affine | None, lane: int) -> bool:
    """Tell whether lanes that are read at an index do not lie side by side."""
    return at is not None and at.coefficients[lane] not in (0, 1)


# The program that is carried out

Copies = dict[tuple[str, Affine, int, tuple[int, ...]], Operation]


def apply_schedule(program: Program, schedule: Schedule) -> Program:
    """Return a program with the lanes, tiles and copies of a schedule, which must be legal."""
    buffers = list(program.buffers)
    kernels: list[Kernel] = []
    for k, (kernel, lanes, tile) in enumerate(zip(program.kernels, schedule.lanes, schedule.tiles, strict=True)):
        stages = [stage.replace(lane=lane) for stage, lane in zip(kernel.stages, lanes, strict=True)]
        copies: Copies = {}
        for pack in schedule.packs:
            if pack.kernel == k:
                stages[pack.stage] = pack_load(stages[pack.stage], pack, copies, buffers, kernels)
        last: list[Kernel] = []
        for unpack in schedule.unpacks:
            if unpack.kernel == k:
                stages[unpack.stage] = unpack_column(stages[unpack.stage], unpack, buffers, last)
        kernels += [kernel.replace(stages=tuple(stages), tile=tile), *last]
    return check_step("scheduled", program.replace(buffers=tuple(buffers), steps=tuple(kernels)))


def with_schedule(program: Program) -> Program:
    """Return a program as it is carried out: it, and those that its steps run, by the schedules that are chosen."""
    if not program.is_nested:
        return apply_schedule(program, schedule_of(program))
    return program.replace(steps=tuple([step.with_programs(with_schedule) for step in program.steps]))


def pack_load(stage: Stage, pack: Pack, copies: Copies, buffers: list[Buffer], kernels: list[Kernel]) -> Stage:
    """Return a stage with a load of a copy, lanes side by side; enter the copy and its kernel, if they are new."""
    load = stage.operations[pack.place]
    assert load.at is not None
    key = load.buffer, load.at, stage.lane, stage.extents
    if key not in copies:
        copies[key] = copy_load(stage, load, buffers, kernels)
    operations = [*stage.operations]
    operations[pack.place] = copies[key]
    return stage.replace(operations=tuple(operations))


def unpack_column(stage: Stage, unpack: Unpack, buffers: list[Buffer], kernels: list[Kernel]) -> Stage:
    """Return a stage that adds up a column in memory of its own, lanes side by side; enter that and what copies it."""
    reduction = stage.reductions[unpack.number]
    assert reduction.at is not None
    dtype = next(buffer.dtype for buffer in buffers if buffer.name == reduction.into)
    own, at, order = side_by_side(stage, reduction.at, dtype, buffers)
    steps = [at.coefficients[d] for d in order]
    load = Operation("load", (), dtype, own.name, Affine(0, (0, *steps)))
    store = Store(reduction.into, Affine(reduction.at.constant, (0, *[reduction.at.coefficients[d] for d in order])), 0)
    kernels.append(Kernel(1, (Stage((1, *own.shape), (load,), (store,), lane=len(order)),)))
    reductions = [*stage.reductions]
    reductions[unpack.number] = reduction.replace(into=own.name, at=at)
    return stage.replace(reductions=tuple(reductions))


def side_by_side(stage: Stage, given: Affine, dtype: Any, buffers: list[Buffer]) -> tuple[Buffer, Affine, list[int]]:
    """Enter a buffer for what an index map reaches, lanes last; return it, where in it, and the order of dimensions."""
    moving = [d for d in range(1, len(stage.extents)) if given.coefficients[d] and d != stage.lane]
    order = [*moving, *([stage.lane] if given.coefficients[stage.lane] else [])]
    shape = tuple([stage.extents[d] for d in order])
    buffers.append(Buffer(f"p{len(buffers)}", shape, dtype, "temporary"))
    along = dict(zip(order, [math.prod(shape[i + 1 :]) for i in range(len(shape))], strict=True))
    return buffers[-1], Affine(0, tuple([along.get(d, 0) for d in range(len(stage.extents))])), order


def copy_load(stage: Stage, load: Operation, buffers: list[Buffer], kernels: list[Kernel]) -> Operation:
    """Enter the kernel that copies the elements that a load reads; return the load of the copy."""
    assert load.at is not None
    own, at, order = side_by_side(stage, load.at, load.dtype, buffers)
    read = Affine(load.at.constant, (0, *[load.at.coefficients[d] for d in order]))
    store = Store(own.name, Affine(0, (0, *[at.coefficients[d] for d in order])), 0)
    kernels.append(Kernel(1, (Stage((1, *own.shape), (load.replace(at=read),), (store,), lane=len(order)),)))
    return load.replace(buffer=own.name, at=at)
