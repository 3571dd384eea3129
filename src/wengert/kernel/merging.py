"""Merging dimensions that everything walks through as if they were one, so that vectors are full and loops long."""

from __future__ import annotations

from collections.abc import Iterator

from wengert.kernel.kernel import Affine, Bound, Guard, Kernel, Program, Stage


def merge_loops(program: Program) -> Program:
    """Return a program whose loops are as few as its index maps allow; every point of them is what it was."""
    own = frozenset([buffer.name for buffer in program.buffers if buffer.kind == "row"])
    return program.replace(steps=tuple([without_rows(merged_inside(kernel), own) for kernel in program.kernels]))


def merged_inside(kernel: Kernel) -> Kernel:
    """Return a kernel whose stages have merged dimensions within the row."""
    stages = []
    for stage in kernel.stages:
        for dimension in range(len(stage.extents) - 2, 0, -1):
            if are_one(stage, dimension):
                stage = without(stage, dimension)
        stages.append(stage)
    return kernel.replace(stages=tuple(stages))


def without_rows(kernel: Kernel, own: frozenset[str]) -> Kernel:
    """Return a kernel of one row if its only stage has no dimension within the row, or one of which the rows go on."""
    (first, *others) = kernel.stages
    alone = len(first.extents) == 1 < kernel.rows
    if others or kernel.kept or not (alone or (len(first.extents) == 2 and are_one(first, 0))):
        return kernel
    if any(r.kind == "row" for r in first.reductions) or not own.isdisjoint(buffers_of(first)):
        return kernel
    flat = first if alone else without(first, 0)
    (extent,) = flat.extents
    return Kernel(1, (remap_stage(flat, (1, extent), (1,)),))


def buffers_of(stage: Stage) -> Iterator[str]:
    """Iterate over the names of what a stage reads and writes."""
    yield from [operation.buffer for operation in stage.operations]
    yield from [store.buffer for store in stage.stores]
    yield from [update.buffer for update in stage.updates]


def are_one(stage: Stage, dimension: int) -> bool:
    """Tell whether a step along a dimension is as long, everywhere, as all of the next one."""
    extent = stage.extents[dimension + 1]
    pair = {dimension, dimension + 1}
    return (
        all(at.coefficients[dimension] == extent * at.coefficients[dimension + 1] for at in maps_of(stage))
        and all(bound.dimension not in pair for guard in guards_of(stage) for bound in guard)
        and all(len(pair.intersection(reduction.over)) != 1 for reduction in stage.reductions)
    )


def maps_of(stage: Stage) -> Iterator[Affine]:
    """Iterate over the index maps of a stage."""
    written = [*[s.at for s in stage.stores], *[u.at for u in stage.updates], *[r.at for r in stage.reductions]]
    yield from [at for at in (*[o.at for o in stage.operations], *written) if at is not None]


def guards_of(stage: Stage) -> Iterator[Guard]:
    """Iterate over the guards of a stage."""
    yield from [operation.guard for operation in stage.operations]
    yield from [store.guard for store in stage.stores]


def without(stage: Stage, dimension: int) -> Stage:
    """Return a stage in which the next dimension goes on where one ends."""
    extents = stage.extents
    longer = (*extents[:dimension], extents[dimension] * extents[dimension + 1], *extents[dimension + 2 :])
    places = [*range(dimension + 1), *range(dimension, len(extents) - 1)]
    return remap_stage(stage, longer, tuple(places))


def remap_stage(stage: Stage, extents: tuple[int, ...], places: tuple[int, ...]) -> Stage:
    """Return a stage of other extents; of dimensions that go to one place the last one is what steps there are."""

    def at(found: Affine) -> Affine:
        coefficients = [0] * len(extents)
        for place, coefficient in zip(places, found.coefficients, strict=True):
            coefficients[place] = coefficient
        return Affine(found.constant, tuple(coefficients))

    def guard(found: Guard) -> Guard:
        return tuple([Bound(places[b.dimension], b.low, b.high) for b in found])

    def over(found: tuple[int, ...]) -> tuple[int, ...]:
        moved = {places[d] for d in found}
        return tuple(sorted(moved | {0} if extents[0] == 1 and 0 in found else moved))

    return Stage(
        extents,
        tuple([o.replace(at=o.at and at(o.at), guard=guard(o.guard)) for o in stage.operations]),
        tuple([s.replace(at=at(s.at), guard=guard(s.guard)) for s in stage.stores]),
        tuple([r.replace(at=r.at and at(r.at), over=over(r.over)) for r in stage.reductions]),
        updates=tuple([u.replace(at=at(u.at)) for u in stage.updates]),
    )
