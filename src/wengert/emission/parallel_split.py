"""How kernels are shared among threads: static parts whose results are combined in order.

A kernel of more than some 20 microseconds is cut into parts, as many for one thread as for several. Each part has sums
and buffers of the row of its own; a kernel that follows combines the sums in the order of the parts. So results have
the same bits whoever does which part. Sums of many rows have totals in such memory, too, also where there is one part.
"""

from __future__ import annotations

from collections.abc import Iterator

from wengert.emission.arena import padded_size
from wengert.emission.buffer_reuse import in_place
from wengert.emission.plans import TERMS, nest_of_stage
from wengert.kernel.durations import cycles
from wengert.kernel.kernel import (
    Affine,
    Buffer,
    Keep,
    Kernel,
    Operation,
    Program,
    Reduce,
    Stage,
    Store,
)
from wengert.native.engine import Target
from wengert.support.machine import MACHINE
from wengert.support.records import FieldRecord

WITH_TOTAL = 3
"""Numbers of a sum that has a total: what is being added up, the total, and what its roundings lost."""

ROWS = 256
"""Rows whose contributions to columns are added up before they are added to totals, which takes some per cent of the
time of 64 rows: NumPy adds up all of them. Those to a number are `plans.TERMS`, as NumPy's are then."""


class KernelStep(FieldRecord):
    """A kernel, or the parts of one.

    Attributes:
        number: of the kernel of the program that it carries out, or a stage of.
        kernel: the kernel.
        extent: how long what is cut is: the rows, or the outermost loop of a kernel that has none.
        each: how much of it a part has.
        own: the buffers of which each part has one of its own, and where those are instead.
        summed: the reductions of which each part gives a part.
        blocks: how many rows are added up before which sums, by their buffers, are added to their totals, most rows
            first. Beside what is being added up, in memory of their own, lie the totals and what their roundings lost.
    """

    number: int
    kernel: Kernel
    extent: int
    each: int
    own: dict[str, str]
    summed: tuple[Reduce, ...] = ()
    blocks: tuple[tuple[int, frozenset[str]], ...] = ()

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.extent // self.each)

    def numbers(self, name: str) -> int:
        """Return how many numbers a part has for each of a buffer."""
        return WITH_TOTAL if any(name in totals for _, totals in self.blocks) else 1


def steps(program: Program, target: Target) -> tuple[list[KernelStep], dict[str, Buffer]]:
    """Return a program's kernels as steps, and its buffers with those that steps need besides."""
    sharing = Sharing(program, target)
    parts = [
        (number, part) for number, kernel in enumerate(program.kernels) for part in sharing.separate_kernel(kernel)
    ]
    kernels = in_place([part for _, part in parts], sharing.buffers)
    for (number, _), kernel in zip(parts, kernels, strict=True):
        sharing.add(number, kernel)
    return sharing.steps, sharing.buffers


class Sharing:
    """Cut kernels into parts."""

    def __init__(self, program: Program, target: Target) -> None:
        self.buffers = program.buffers_by_name
        self.lanes = lanes_of(target)
        self.steps: list[KernelStep] = []
        self.cells: dict[str, str] = {}  # numbers of the present kernel that are in memory

    def separate_kernel(self, kernel: Kernel) -> Iterator[Kernel]:
        """Return a kernel as those that are cut one by one."""
        kernel = kernel.replace(stages=tuple(s for stage in kernel.stages for s in separate_stage(stage)))
        whole = kernel.rows > 1 or cycles(kernel, self.lanes) < MACHINE.moment
        yield from [kernel] if whole else self.by_stages(kernel)

    def add(self, number: int, kernel: Kernel) -> None:
        """Add a kernel, or what was separated of the one of this number, in parts if it takes long."""
        extent, each = self.cut(kernel)
        summed = [r for stage in kernel.stages for r in stage.reductions if r.kind in ("total", "column")]
        short = [r for r in summed if WITH_TOTAL * self.bytes_of_one(r.into, 1) <= MACHINE.shared_memory]
        blocks = tuple(blocks_of(kernel, short, each))
        if each == extent:
            summed = [r for r in summed if any(r.into in totals for _, totals in blocks)]
        own = {r.into for r in summed} | {b for b in names(kernel) if each < extent and self.is_own(b)}
        step = KernelStep(number, kernel, extent, each, {}, tuple(summed), blocks)
        parts_of = {name: self.parts_of(name, step) for name in own}
        self.steps.append(step.replace(own=parts_of))

    def cut(self, kernel: Kernel) -> tuple[int, int]:
        """Return how long is what is cut of a kernel, and how much of it a part has: all if it is not cut."""
        whole = max(kernel.rows, 1), max(kernel.rows, 1)
        duration = cycles(kernel, self.lanes)
        if duration < MACHINE.moment:
            return whole
        (first, *others) = kernel.stages
        grain, extent = kernel.tile, kernel.rows
        if kernel.rows == 1:
            nest = nest_of_stage(first, self.buffers)
            if others or not nest:
                return whole
            if first.updates or any(r.kind == "scan" and nest[0] in r.over for r in first.reductions):
                return whole
            extent, grain = first.extents[nest[0]], MACHINE.part_lanes if nest[0] == first.lane else 1
        own = {r.into for stage in kernel.stages for r in stage.reductions if r.kind in ("total", "column")}
        own |= {b for b in names(kernel) if self.is_own(b)}
        memory = max(1, sum(self.bytes_of_one(name, kernel.tile) for name in own))
        most = int(duration / max(MACHINE.short, memory * MACHINE.filling))
        parts = min(extent // grain, most, max(MACHINE.shared_memory // memory, 1))
        each = -(-extent // max(parts, 1))
        each = -(-each // grain) * grain
        return (extent, each) if -(-extent // each) >= MACHINE.fewest_parts else whole

    def is_own(self, name: str) -> bool:
        """Whether a buffer is one of the row."""
        return name in self.buffers and self.buffers[name].kind == "row"

    def bytes_of_one(self, name: str, tile: int) -> int:
        """Return the bytes of one part's own buffer: whole lines, and one that parts before it do not write."""
        buffer = self.buffers[name]
        each = padded_size(buffer.size * buffer.dtype.itemsize)
        return each * (tile if buffer.kind == "row" else 1) + MACHINE.line

    def parts_of(self, name: str, step: KernelStep) -> str:
        """Add the memory that the parts of a step have instead of a buffer."""
        buffer = self.buffers[name]
        size = step.numbers(name) * self.bytes_of_one(name, step.kernel.tile) // buffer.dtype.itemsize
        found = f"{name}.parts{len(self.steps)}"
        self.buffers[found] = Buffer(found, (step.parts, size), buffer.dtype, "temporary")
        return found

    def by_stages(self, kernel: Kernel) -> Iterator[Kernel]:
        """Return a kernel of one row as one kernel a stage, numbers and buffers of the row being in memory."""
        for name in names(kernel):
            if self.is_own(name):
                self.buffers[name] = self.buffers[name].replace(kind="temporary")
        self.cells = {}
        for stage in kernel.stages:
            yield Kernel(1, (self.alone(stage),))
        for keep in kernel.kept:
            yield Kernel(1, (self.copy_number(keep),))

    def alone(self, stage: Stage) -> Stage:
        """Return a stage whose numbers are in memory."""
        nowhere = Affine(0, (0,) * len(stage.extents))
        operations = tuple(
            o.replace(name="load", buffer=self.cell(o.buffer, o), at=nowhere) if o.name == "number" else o
            for o in stage.operations
        )
        stores, reductions = list(stage.stores), []
        for r in stage.reductions:
            inner = tuple(d for d in r.over if d)
            if r.kind == "row":
                into = self.cell(r.into, stage.operations[r.value])
                reductions.append(r.replace(kind="total", over=(0, *r.over), into=into, at=nowhere))
            elif r.kind == "column" and r.at is not None:
                if inner:
                    reductions.append(r.replace(kind="nested", over=inner))
                else:
                    stores.append(Store(r.into, r.at, r.value))
            else:
                reductions.append(r)
        return stage.replace(operations=operations, stores=tuple(stores), reductions=tuple(reductions))

    def cell(self, number: str, like: Operation) -> str:
        """Return the buffer of a number."""
        if number not in self.cells:
            name = self.cells[number] = f"{number}.cell{len(self.buffers)}"
            self.buffers[name] = Buffer(name, (), like.dtype, "temporary")
        return self.cells[number]

    def copy_number(self, keep: Keep) -> Stage:
        """Return a stage that keeps a number which is in memory."""
        cell = self.buffers[self.cells[keep.number]]
        load = Operation("load", (), cell.dtype, cell.name, Affine(0, (0,)))
        return Stage((1,), (load,), (Store(keep.buffer, Affine(keep.at.constant, (0,)), 0),))


def blocks_of(kernel: Kernel, summed: list[Reduce], each: int) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield how many rows are added up before which sums are added to totals, if a part has more rows."""
    totals: dict[int, set[str]] = {ROWS: set(), TERMS: set()}
    for stage in kernel.stages:
        for r in stage.reductions:
            if r in summed and r.combine == "add" and stage.operations[r.value].dtype.kind == "f":
                totals[ROWS if r.kind == "column" and not is_along_memory(stage) else TERMS].add(r.into)
    for most, own in totals.items():
        rows = max(most // kernel.tile, 1) * kernel.tile
        if own and kernel.rows > 1 and rows < each:
            yield rows, frozenset(own)


def is_along_memory(stage: Stage) -> bool:
    """Tell whether rows go on where what they read lies side by side, so that NumPy would sum it pairwise."""
    moving = [o.at.coefficients for o in stage.operations if o.at is not None and any(o.at.coefficients[1:])]
    steps = {at[0] for at in moving if at[0]}
    return steps == {1}


def lanes_of(target: Target) -> int:
    """Return how many numbers of double precision a vector has."""
    return target.vector_bytes // 8


def separate_stage(stage: Stage) -> Iterator[Stage]:
    """Return a stage as several, each of whose nested sums go over the same dimensions."""
    nested = [r for r in stage.reductions if r.kind in ("nested", "column") and set(r.over) - {0}]
    groups = {frozenset(r.over) - {0} for r in nested}
    if len(groups) < 2:
        yield stage
        return
    rest = tuple(r for r in stage.reductions if r not in nested)
    for over in groups:
        own = tuple(r for r in nested if frozenset(r.over) - {0} == over)
        yield stage.replace(stores=(), reductions=own)
    if rest or stage.stores:
        yield stage.replace(reductions=rest)


def names(kernel: Kernel) -> set[str]:
    """Return the names of the buffers and numbers of a kernel."""
    found: set[str] = set()
    for stage in kernel.stages:
        found.update(operation.buffer for operation in stage.operations if operation.buffer)
        found.update(store.buffer for store in stage.stores)
        found.update(update.buffer for update in stage.updates)
        found.update(reduction.into for reduction in stage.reductions)
    return found | {keep.buffer for keep in kernel.kept}
