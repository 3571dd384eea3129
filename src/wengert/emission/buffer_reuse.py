"""Values in the memory of others that are read for the last time where they are stored, point by point.

Caches then hold one of two, and memory that will be written anyway serves what is kept until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from wengert.emission.plans import accesses
from wengert.kernel.checking import alike
from wengert.kernel.kernel import Affine, Buffer, Guard, Kernel, Program, Stage

Place = tuple[int, int]
"""The numbers of a kernel and of a stage of it; kernels keep numbers of the row after all stages."""
Cell = tuple[Affine | None, Guard]
"""Where each point of a stage reads or writes, and at which points it does."""


class Lives(NamedTuple):
    """Say where buffers are accessed first and last, by name."""

    first: dict[str, Place]
    last: dict[str, Place]


def in_place(kernels: Iterable[Kernel], buffers: dict[str, Buffer]) -> list[Kernel]:
    """Return kernels in which a buffer that another can take the place of has its name from the beginning.

    A cell of both is then read, for the last time, and written, for the first time, at one point of one stage; so
    whatever the order of points is, each reads what it read before. What lies in memory that rows share is left alone
    where there are rows, which bring it into the caches ahead.
    """
    found = list(kernels)
    lives = lives_of(found)
    names: dict[str, str] = {}
    for k, kernel in enumerate(found):
        for s, stage in enumerate(kernel.stages):
            for old, new in pairs(stage):
                ends = lives.last[old] == (k, s) == lives.first[new]
                if ends and new not in names.values() and fits(buffers[old], buffers[new], kernel):
                    names[old] = new
    return [renamed(kernel, names) for kernel in found] if names else found


def overwritten(program: Program, kernels: Sequence[Kernel]) -> tuple[tuple[int, int], ...]:
    """Return the places of inputs, each with that of an output that may have its memory while some kernels run.

    These are what the program has become: parts of its kernels, whose buffers may lie in the memory of others. What may
    fail has no such inputs, since they are needed again. What nobody reads may have the memory of any output.
    """
    if program.failing:
        return ()
    known, lives = program.named, lives_of(kernels)
    unread = [(i, old) for i, old in enumerate(program.inputs) if old not in lives.last]
    outputs = [(k, new) for k, new in enumerate(program.outputs) if new in lives.last]
    found = [(i, k) for i, old in unread for k, new in outputs if alike(known[old]) == alike(known[new])]
    for k, kernel in enumerate(kernels):
        several = [name for stage in kernel.stages for name in {name for name, _ in accesses(stage)}]
        for s, stage in enumerate(kernel.stages):
            for old, new in pairs(stage, guarded=True):
                is_outside = old in program.inputs and new in program.outputs
                ends = lives.last[old] == (k, s) == lives.first[new]
                is_alone = kernel.rows == 1 or several.count(new) == 1  # not to write what later rows read
                if is_outside and ends and is_alone and alike(known[old]) == alike(known[new]):
                    found.append((program.inputs.index(old), program.outputs.index(new)))
    return tuple(found)


def lives_of(kernels: Sequence[Kernel]) -> Lives:
    """Return where each buffer is accessed first and last."""
    lives = Lives({}, {})
    for k, kernel in enumerate(kernels):
        used = [(s, name) for s, stage in enumerate(kernel.stages) for name, _ in accesses(stage)]
        used += [(len(kernel.stages), keep.buffer) for keep in kernel.kept]
        for s, name in used:
            lives.first.setdefault(name, (k, s))
            lives.last[name] = k, s
    return lives


def pairs(stage: Stage, guarded: bool = False) -> Iterator[tuple[str, str]]:
    """Iterate over buffers of which a stage only reads one and only writes another, each point both in the same cells.

    Args:
        stage: the stage.
        guarded: whether it may do so where guards hold, as it does in arrays of which parts are written.
    """
    loads: dict[str, set[Cell]] = {}
    stores: dict[str, set[Cell]] = {}
    others = {r.into for r in stage.reductions} | {update.buffer for update in stage.updates}
    for operation in stage.operations:
        if operation.name == "load":
            loads.setdefault(operation.buffer, set()).add((operation.at, operation.guard))
        else:
            others.add(operation.buffer)
    for store in stage.stores:
        stores.setdefault(store.buffer, set()).add((store.at, store.guard))
    for new, written in stores.items():
        for old, read in loads.items():
            is_free = {old, new}.isdisjoint(others) and new not in loads and old not in stores
            is_whole = all(not guard for _, guard in (*read, *written))
            same = all((at, guard) in written or (at, ()) in written for at, guard in read)
            if is_free and same and (is_whole or guarded):
                yield old, new


def fits(old: Buffer, new: Buffer, kernel: Kernel) -> bool:
    """Tell whether a buffer has room for another where a kernel reads the first and writes the second."""
    if (old.dtype, old.size) != (new.dtype, new.size):
        return False
    if old.kind == "row":
        return new.kind == "row"
    return old.kind == "temporary" and new.kind in ("temporary", "output") and kernel.rows == 1


def renamed(kernel: Kernel, names: dict[str, str]) -> Kernel:
    """Return a kernel whose buffers have other names; those that others take the place of in turn have the last one."""

    def name(old: str) -> str:
        while old in names:
            old = names[old]
        return old

    stages = [
        replace(
            stage,
            operations=tuple([replace(o, buffer=name(o.buffer)) if o.buffer in names else o for o in stage.operations]),
            stores=tuple([replace(s, buffer=name(s.buffer)) for s in stage.stores]),
            reductions=tuple([replace(r, into=name(r.into)) for r in stage.reductions]),
            updates=tuple([replace(u, buffer=name(u.buffer)) for u in stage.updates]),
        )
        for stage in kernel.stages
    ]
    kept = tuple([replace(keep, buffer=name(keep.buffer)) for keep in kernel.kept])
    return replace(kernel, stages=tuple(stages), kept=kept)
