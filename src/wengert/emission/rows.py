"""One kernel: a function that runs its stages for a range of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.emission.arena import padded_size
from wengert.emission.external_functions import TOTAL, declaration_of
from wengert.emission.instructions import in_memory, literal
from wengert.emission.parallel_split import WITH_TOTAL, KernelStep
from wengert.emission.prefetch import brought_ahead
from wengert.emission.registers import Registers
from wengert.emission.stages import Span, neutral, write_stage
from wengert.emission.vectors import Index, KernelFrame, Module, move_address
from wengert.kernel.kernel import Affine, Buffer, Kernel, Reduce, Stage
from wengert.native.builder import Builder
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, I8, POINTER, VOID, Pointer, Signature, vector_of
from wengert.native.threads.job_tables import JOB
from wengert.native.values import Value
from wengert.support.machine import MACHINE

Blocks = Sequence[tuple[int, frozenset[str]]]
"""The blocks of a step that stand one in the other."""

Found = Callable[[Builder, Value], Sequence[Value]]
"""Write what finds the addresses of a job's buffers in the table that it is given."""


def kernel_function(name: str, step: KernelStep, module: Module, order: tuple[str, ...]) -> NativeFunction:
    """Return the function of a kernel, which takes the addresses of its buffers."""
    kinds = kinds_of(module, order)

    def body(b: Builder, *addresses: Value) -> None:
        write_kernel(b, step, module, order, addresses)

    return NativeFunction(name, Signature(VOID, kinds), body, tuple(f"b{n}" for n in range(len(order))))


def write_kernel(
    b: Builder, step: KernelStep, module: Module, order: tuple[str, ...], addresses: Sequence[Value]
) -> None:
    """Write all of a kernel, whose buffers have some addresses."""
    rows = step.kernel.rows
    write_rows(frame_of(b, module, step.kernel, order, addresses), step, Span(0, rows, rows))


def write_numbers(b: Builder, step: KernelStep, module: Module, order: tuple[str, ...], registers: Registers) -> None:
    """Write all of a kernel that computes number by number, with numbers in registers."""
    in_memory = [name for name in order if name not in registers.names]
    frame = frame_of(b, module, step.kernel, tuple(in_memory), list(map(registers.address, in_memory)))
    frame.registers = registers
    write_rows(frame, step, Span(0, 1, 1))


def kernel_job(name: str, step: KernelStep, module: Module, order: tuple[str, ...], found: Found) -> NativeFunction:
    """Return the job that does one part of a kernel: of its rows, or of the outermost loop of its only stage."""
    apart = [module.buffers[step.own[name]].shape[1] if name in step.own else 0 for name in order]

    def body(b: Builder, table: Value, part: Value, _next: Value) -> None:
        places = found(b, table.to(POINTER))
        offsets = {far: part * far for far in dict.fromkeys(apart) if far}
        own = [place.at(offsets[far]) if far else place for place, far in zip(places, apart, strict=True)]
        start = part * step.each
        end = start + step.each
        if step.extent % step.each:
            end = b.least(end, step.extent)
        write_rows(frame_of(b, module, step.kernel, order, own), step, Span(start, end, step.each))

    return NativeFunction(name, JOB, body)


def kinds_of(module: Module, order: tuple[str, ...]) -> tuple[Pointer, ...]:
    """Return the types of the addresses of buffers."""
    return tuple(Pointer(in_memory(module.buffers[name].dtype)) for name in order)


def frame_of(
    b: Builder, module: Module, kernel: Kernel, order: tuple[str, ...], addresses: Sequence[Value]
) -> KernelFrame:
    """Return what the stages of a kernel share, whose buffers have some addresses."""
    apart = {name: elements_apart(module.buffers[name]) for name in order}
    return KernelFrame(
        b, module, dict(zip(order, addresses, strict=True)), apart, brought_ahead(kernel, module.buffers)
    )


def write_rows(frame: KernelFrame, step: KernelStep, span: Span) -> None:
    """Write the loop over the rows of a part."""
    for stage, reduction in shared_by_rows(step.kernel):
        clear(frame, stage, reduction, reduction.into in step.own, room_of(frame, step, reduction.into))
    write_blocks(frame, step, span, step.blocks)


def shared_by_rows(kernel: Kernel) -> list[tuple[Stage, Reduce]]:
    """Return what rows add to in memory, each with its stage."""
    return [(s, r) for s in kernel.stages for r in s.reductions if r.kind in ("total", "column")]


def write_blocks(frame: KernelFrame, step: KernelStep, span: Span, blocks: Blocks) -> None:
    """Write the loop over some rows, in blocks after each of which sums are added to their totals."""
    if not blocks:
        write_range(frame, step.kernel, span)
        return
    ((rows, totals), *others), (first, stop, _), b = blocks, span, frame.b
    is_whole = isinstance(stop, int) and stop % rows == 0
    with b.loop(stop, first, step=rows, certain=True) as loop:
        end = loop.index + rows
        write_blocks(frame, step, Span(loop.index, end if is_whole else b.least(end, stop), rows), others)
        for name in sorted(totals):
            buffer = frame.module.buffers[name]
            add = f"{TOTAL}.add.{buffer.dtype.name}"
            frame.module.outside.add(add)
            b.do(declaration_of(add, frame.module.target), frame.bases[name], buffer.size, room_of(frame, step, name))


def room_of(frame: KernelFrame, step: KernelStep, name: str) -> int:
    """Return for how many elements each kind of numbers of a sum with totals has room; 0 for one without."""
    numbers = step.numbers(name)
    return frame.module.buffers[step.own[name]].shape[1] // numbers if numbers > 1 else 0


def write_range(frame: KernelFrame, kernel: Kernel, span: Span) -> None:
    """Write the loop over some rows: so many together, and one at a time what is left."""
    if kernel.rows == 1:
        write_tile(frame, kernel, [0], None if isinstance(span.stop, int) else span)
        return
    first, stop, _ = span
    b, tile = frame.b, kernel.tile
    last = stop if kernel.rows % tile == 0 else stop - (stop - first) % tile
    with b.loop(last, first, step=tile, certain=last is stop and isinstance(stop, Value)) as loop:  # no part is empty
        write_tile(frame, kernel, [loop.index, *(loop.index + row for row in range(1, tile))])
    if last is not stop:
        with b.loop(stop, last) as loop:
            write_tile(frame, kernel, [loop.index])


def write_tile(frame: KernelFrame, kernel: Kernel, rows: list[Index], span: Span | None = None) -> None:
    """Write all stages for some rows, and keep numbers of theirs."""
    frame.numbers, frame.results, frame.waiting = {}, {}, {}
    for stage, ahead in zip(kernel.stages, frame.ahead, strict=True):
        write_stage(frame, stage, rows, span, ahead)
    for keep in kernel.kept:
        store_numbers(frame, keep.buffer, keep.at, rows[0], frame.numbers[keep.number])


def store_numbers(frame: KernelFrame, buffer: str, at: Affine, first: Index, values: Sequence[Value]) -> None:
    """Store a number of each row of a tile."""
    step = at.coefficients[0] if at.coefficients else 0
    place = move_address(frame.bases[buffer], first, step)
    for row, value in enumerate(values):
        offset = at.constant + step * (row + (first if isinstance(first, int) else 0))
        own = place.at(offset) if offset else place
        own.store(frame.b.convert("zext", value, I8) if value.type is BOOL else value)


def clear(frame: KernelFrame, stage: Stage, reduction: Reduce, is_own: bool, room: int) -> None:
    """Fill what rows add to with what changes nothing; what belongs to a part has room for whole vectors, and totals.

    Args:
        frame: of the kernel.
        stage: of the reduction.
        reduction: what rows are combined by.
        is_own: whether the buffer belongs to a part.
        room: how many elements the numbers of one kind have room for if there are totals, else none.
    """
    dtype = stage.operations[reduction.value].dtype
    place = frame.bases[reduction.into]
    start = literal(dtype, neutral(reduction.combine, dtype))
    size = frame.module.buffers[reduction.into].size
    width = frame.module.target.vector_bytes // dtype.itemsize
    if size == 1:
        for first in range(0, WITH_TOTAL * room, room) if room else (0,):
            (place.at(first) if first else place).store(start)
        return
    whole = WITH_TOTAL * room or (-(-size // width) * width if is_own else size - size % width)
    kind = vector_of(in_memory(dtype), width)
    if whole <= MACHINE.written_vectors * width:
        for first in range(0, whole, width):
            place.at(first).to(kind).store(start)
    else:
        with frame.b.loop(whole, step=width) as cells:
            place.at(cells.index).to(kind).store(start)
    for cell in range(whole, size):
        place.at(cell).store(start)


def elements_apart(buffer: Buffer) -> int:
    """Return how many elements apart the copies of a buffer lie that rows of a tile have: none, if they share it."""
    return row_bytes(buffer) // buffer.dtype.itemsize if buffer.kind == "row" else 0


def row_bytes(buffer: Buffer) -> int:
    """Return how far apart the copies of a buffer lie that rows of a tile have: whole lines, and so whole vectors."""
    return padded_size(buffer.size * buffer.dtype.itemsize)


def anonymous(kernel: Kernel, buffers: dict[str, Buffer]) -> tuple[object, tuple[str, ...]]:
    """Return what a kernel computes, whatever its buffers and numbers are called, and its buffers in order.

    Kernels that differ in names alone share a function, so that unrolled loops cost code generation once.
    """
    order: dict[str, int] = {}
    numbers: dict[str, int] = {}

    def key_of(name: str) -> object:
        if name not in buffers:
            return numbers.setdefault(name, len(numbers))
        buffer = buffers[name]
        return order.setdefault(name, len(order)), buffer.dtype, buffer.size if buffer.kind == "row" else None

    key: list[object] = [kernel.rows, kernel.tile]
    for stage in kernel.stages:
        key.append((stage.extents, stage.lane))
        key += [
            (o.name, o.operands, o.dtype, key_of(o.buffer) if o.buffer else None, o.at, o.guard, repr(o.value))
            for o in stage.operations
        ]
        key += [(s.value, s.at, s.guard, key_of(s.buffer)) for s in stage.stores]
        key += [(u.value, u.index, u.at, u.add, key_of(u.buffer)) for u in stage.updates]
        key += [
            (r.combine, r.values, r.kind, r.over, r.at, key_of(r.into), buffers[r.into].size if r.at else None)
            for r in stage.reductions
        ]
    key += [(key_of(k.number), key_of(k.buffer), k.at) for k in kernel.kept]
    return tuple(key), tuple(order)
