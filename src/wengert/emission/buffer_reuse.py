"""Values in the memory of others that are read for the last time where they are stored, point by point.

Caches then hold one of two, and memory that will be written anyway serves what is kept until then.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from wengert.emission.plans import accesses
from wengert.kernel.kernel import Affine, Buffer, Guard, Kernel, Program, Stage
from wengert.kernel.step_checking import alike
from wengert.support.records import NamedTuple

Place = tuple[int, int]
"""The numbers of a kernel and of a stage of it; kernels keep numbers of the row after all stages."""
Cell = tuple[Affine | None, Guard]
"""Where each point of a stage reads or writes, and at which points it does."""


class Lives(NamedTuple):
    """Say where buffers are accessed first and last, by name, and which are so at a place."""

    first: dict[str, Place]
    last: dict[str, Place]
    begun: dict[Place, set[str]]
    ended: dict[Place, set[str]]

    def at(self, place: Place) -> tuple[set[str], set[str]]:
        """Return the buffers that are accessed for the last time at a place, and those for the first time."""
        return self.ended.get(place, set()), self.begun.get(place, set())


def in_place(kernels: Iterable[Kernel], buffers: dict[str, Buffer]) -> list[Kernel]:
    """Return kernels in which a buffer that another can take the place of has its name from the beginning.

    A cell of both is then read, for the last time, and written, for the first time, at one point of one stage; so
    whatever the order of points is, each reads what it read before. What lies in memory that rows share is left alone
    where there are rows, which bring it into the caches ahead.
    """
    found = list(kernels)
    lives = lives_of(found)
    names: dict[str, str] = {}
    taken: set[str] = set()
    for k, kernel in enumerate(found):
        for s, stage in enumerate(kernel.stages):
            for old, new in pairs(stage, *lives.at((k, s))):
                if new not in taken and fits(buffers[old], buffers[new], kernel):
                    if old in names:
                        taken.remove(names[old])
                    names[old] = new
                    taken.add(new)
    return [rename_buffers(kernel, names) for kernel in found] if names else found


def find_overwritten(program: Program, kernels: Sequence[Kernel]) -> tuple[tuple[int, int], ...]:
    """Return the places of inputs, each with that of an output that may have its memory while some kernels run.

    These are what the program has become: parts of its kernels, whose buffers may lie in the memory of others. What may
    fail has no such inputs, since they are needed again. What nobody reads may have the memory of any output.
    """
    if program.failing:
        return ()
    known, lives = program.buffers_by_name, lives_of(kernels)
    unread = [(i, old) for i, old in enumerate(program.inputs) if old not in lives.last]
    written = [(k, new) for k, new in enumerate(program.outputs) if new in lives.last]
    found = [(i, k) for i, old in unread for k, new in written if alike(known[old]) == alike(known[new])]
    inputs, outputs = [{name: k for k, name in enumerate(names)} for names in (program.inputs, program.outputs)]
    for k, kernel in enumerate(kernels):
        several = Counter([name for stage in kernel.stages for name in {name for name, _ in accesses(stage)}])
        for s, stage in enumerate(kernel.stages):
            ended, begun = lives.at((k, s))
            for old, new in pairs(stage, ended & inputs.keys(), begun & outputs.keys(), guarded=True):
                is_alone = kernel.rows == 1 or several[new] == 1  # not to write what later rows read
                if is_alone and alike(known[old]) == alike(known[new]):
                    found.append((inputs[old], outputs[new]))
    return tuple(found)


def lives_of(kernels: Sequence[Kernel]) -> Lives:
    """Return where each buffer is accessed first and last."""
    first: dict[str, Place] = {}
    last: dict[str, Place] = {}
    for k, kernel in enumerate(kernels):
        used = [(s, name) for s, stage in enumerate(kernel.stages) for name, _ in accesses(stage)]
        used += [(len(kernel.stages), keep.buffer) for keep in kernel.kept]
        for s, name in used:
            first.setdefault(name, (k, s))
            last[name] = k, s
    begun, ended = defaultdict[Place, set[str]](set), defaultdict[Place, set[str]](set)
    for name in first:
        begun[first[name]].add(name)
        ended[last[name]].add(name)
    return Lives(first, last, begun, ended)


def pairs(
    stage: Stage, olds: Collection[str], news: Collection[str], guarded: bool = False
) -> Iterator[tuple[str, str]]:
    """Iterate over buffers of which a stage only reads one and only writes another, each point both in the same cells.

    Args:
        stage: the stage.
        olds: the buffers that are asked for of those that it reads.
        news: those of those that it writes.
        guarded: whether it may do so where guards hold, as it does in arrays of which parts are written.
    """
    if not olds or not news:
        return
    loads, stores = dict[str, set[Cell]](), dict[str, set[Cell]]()
    read = {operation.buffer for operation in stage.operations if operation.name == "load"}
    stored = {store.buffer for store in stage.stores}
    others = {r.into for r in stage.reductions} | {update.buffer for update in stage.updates}
    others |= {operation.buffer for operation in stage.operations if operation.name != "load"}
    for o in stage.operations:
        if o.name == "load" and o.buffer in olds and o.buffer not in others and o.buffer not in stored:
            loads.setdefault(o.buffer, set()).add((o.at, o.guard))
    for store in stage.stores:
        if store.buffer in news and store.buffer not in others and store.buffer not in read:
            stores.setdefault(store.buffer, set()).add((store.at, store.guard))
    if not guarded:
        loads, stores = [{name: own for name, own in x.items() if not any(g for _, g in own)} for x in (loads, stores)]
    for new, written in stores.items():
        for old, seen in loads.items():
            if seen <= written or (guarded and all((at, g) in written or (at, ()) in written for at, g in seen)):
                yield old, new


def fits(old: Buffer, new: Buffer, kernel: Kernel) -> bool:
    """Tell whether a buffer has room for another where a kernel reads the first and writes the second."""
    if (old.dtype, old.size) != (new.dtype, new.size):
        return False
    if old.kind == "row":
        return new.kind == "row"
    return old.kind == "temporary" and new.kind in ("temporary", "output") and kernel.rows == 1


def rename_buffers(kernel: Kernel, names: dict[str, str]) -> Kernel:
    """Return a kernel whose buffers have other names; those that others take the place of in turn have the last one."""

    def name(old: str) -> str:
        while old in names:
            old = names[old]
        return old

    stages = [
        stage.replace(
            operations=tuple([o.replace(buffer=name(o.buffer)) if o.buffer in names else o for o in stage.operations]),
            stores=tuple([s.replace(buffer=name(s.buffer)) for s in stage.stores]),
            reductions=tuple([r.replace(into=name(r.into)) for r in stage.reductions]),
            updates=tuple([u.replace(buffer=name(u.buffer)) for u in stage.updates]),
        )
        for stage in kernel.stages
    ]
    kept = tuple([keep.replace(buffer=name(keep.buffer)) for keep in kernel.kept])
    return kernel.replace(stages=tuple(stages), kept=kept)
