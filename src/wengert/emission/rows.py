"""One kernel: a function that runs its stages for a range of its rows."""

from __future__ import annotations

import numpy as np

from wengert.emission.arena import LINE
from wengert.emission.instructions import Case, in_memory, instructions_of, literal
from wengert.emission.stages import Span, identity, write_stage
from wengert.emission.vectors import Frame, Index, Module, moved, registered
from wengert.kernel.kernel import Affine, Buffer, Kernel, Reduction, Stage
from wengert.native.builder import Builder, Function, Value
from wengert.native.engine import Target
from wengert.native.structs import BOOL, I8, I64, VOID, Pointer, Signature, vector_of

__all__ = ["anonymous", "kernel_function", "merge_function", "row_bytes"]


def kernel_function(name: str, kernel: Kernel, module: Module, order: tuple[str, ...], whole: bool) -> Function:
    """Return the function of a kernel: its buffers' addresses, where to start and where to stop.

    These are rows; for a kernel of one row, places in the outermost loop of its only stage.

    Args:
        name: of the function.
        kernel: the kernel.
        module: what the program's kernels share.
        order: the names of its buffers.
        whole: whether it is always carried out as a whole.
    """
    buffers = module.buffers
    kinds = [Pointer(in_memory(buffers[buffer].dtype)) for buffer in order]
    names = [f"b{n}" for n in range(len(order))]

    def body(b: Builder, *parameters: Value) -> None:
        *addresses, first, stop = parameters
        bases = {
            buffer: copies(address, buffers[buffer], kernel.tile)
            for buffer, address in zip(order, addresses, strict=True)
        }
        write_rows(Frame(b, module, bases, {}), kernel, first, stop, whole)

    return Function(name, Signature(VOID, (*kinds, I64, I64)), body, (*names, "first", "stop"))


def write_rows(frame: Frame, kernel: Kernel, first: Value, stop: Value, whole: bool) -> None:
    """Write the loop over the rows: so many together, and one at a time what is left."""
    for stage in kernel.stages:
        for reduction in stage.reductions:
            if reduction.kind in ("total", "column"):
                clear(frame, stage, reduction)
    if kernel.rows == 1:
        write_tile(frame, kernel, [0], None if whole else (first, stop))
        return
    b, tile = frame.b, kernel.tile
    last = stop if kernel.rows % tile == 0 else stop - (stop - first) % tile
    with b.loop(last, first, step=tile) as loop:
        write_tile(frame, kernel, [loop.index, *(loop.index + row for row in range(1, tile))])
    if last is not stop:
        with b.loop(stop, last) as loop:
            write_tile(frame, kernel, [loop.index])


def write_tile(frame: Frame, kernel: Kernel, rows: list[Index], span: Span | None = None) -> None:
    """Write all stages for some rows, and keep numbers of theirs."""
    frame.numbers = {}
    for stage in kernel.stages:
        write_stage(frame, stage, rows, span)
    for keep in kernel.kept:
        for row, value in zip(rows, frame.numbers[keep.number], strict=True):
            store_number(frame, keep.buffer, keep.at, row, value)


def store_number(frame: Frame, buffer: str, at: Affine, row: Index, value: Value) -> None:
    """Store a number of a row."""
    (place,) = frame.bases[buffer]
    step = at.coefficients[0] if at.coefficients else 0
    place = moved(place, row, step).at(at.constant + (step * row if isinstance(row, int) else 0))
    place.store(frame.b.convert("zext", value, I8) if value.type is BOOL else value)


def clear(frame: Frame, stage: Stage, reduction: Reduction) -> None:
    """Fill what rows add to with what changes nothing."""
    dtype = stage.operations[reduction.value].dtype
    (place,) = frame.bases[reduction.into]
    start = literal(dtype, identity(reduction.combine, dtype))
    size = frame.module.buffers[reduction.into].size
    width = frame.module.target.vector_bytes // dtype.itemsize
    whole = size - size % width
    if whole:
        with frame.b.loop(whole, step=width) as cells:
            place.at(cells.index).to(vector_of(in_memory(dtype), width)).store(start)
    if size - whole:
        with frame.b.loop(size, whole) as cells:
            place.at(cells.index).store(start)


def merge_function(name: str, combine: str, dtype: np.dtype[np.generic], target: Target) -> Function:
    """Return the function that combines what parts have given, in their order: whole vectors, as parts have room for.

    Its arguments are the address of the result, that of the first part's numbers, how many numbers there are, how far
    parts lie apart, and where parts stop.
    """
    scalar = in_memory(dtype)
    width = target.vector_bytes // dtype.itemsize

    def body(b: Builder, target_place: Value, parts: Value, size: Value, apart: Value, stop: Value) -> None:
        with b.loop(stop, apart, step=1) as others:
            others.step = apart
            with b.loop(size, step=width) as cells:
                kind = vector_of(scalar, width)
                sums, more = (p.at(cells.index).to(kind) for p in (parts, parts.at(others.index)))
                found = [registered(x.load(), dtype) for x in (sums, more)]
                new = instructions_of(combine)(b, Case(dtype, dtype, target), *reversed(found))
                sums.store(b.convert("zext", new, I8) if dtype.kind == "b" else new)
        with b.loop(size) as cells:
            target_place.at(cells.index).store(parts.at(cells.index).load())

    return Function(name, Signature(VOID, (Pointer(scalar), Pointer(scalar), I64, I64, I64)), body)


def copies(address: Value, buffer: Buffer, tile: int) -> list[Value]:
    """Return the addresses of a buffer: one for each row of a tile, if it is one of the row."""
    if buffer.kind != "row" or tile == 1:
        return [address]
    step = row_bytes(buffer) // buffer.dtype.itemsize
    return [address, *(address.at(row * step) for row in range(1, tile))]


def row_bytes(buffer: Buffer) -> int:
    """Return how far apart the copies of a buffer lie that rows of a tile have: whole lines, and so whole vectors."""
    return -(-buffer.size * buffer.dtype.itemsize // LINE) * LINE


def anonymous(kernel: Kernel, buffers: dict[str, Buffer]) -> tuple[object, tuple[str, ...]]:
    """Return what a kernel computes, whatever its buffers and numbers are called, and its buffers in order.

    Kernels that differ in names alone share a function, so that unrolled loops cost code generation once.
    """
    order: dict[str, int] = {}
    numbers: dict[str, int] = {}

    def known(name: str) -> object:
        if name not in buffers:
            return numbers.setdefault(name, len(numbers))
        buffer = buffers[name]
        return order.setdefault(name, len(order)), buffer.dtype, buffer.size if buffer.kind == "row" else None

    key: list[object] = [kernel.rows, kernel.tile]
    for stage in kernel.stages:
        key.append((stage.extents, stage.lane))
        key += [
            (o.name, o.operands, o.dtype, known(o.buffer) if o.buffer else None, o.at, o.guard, repr(o.value))
            for o in stage.operations
        ]
        key += [(s.value, s.at, s.guard, known(s.buffer)) for s in stage.stores]
        key += [
            (r.combine, r.value, r.kind, r.over, r.at, known(r.into), buffers[r.into].size if r.at else None)
            for r in stage.reductions
        ]
    key += [(known(k.number), known(k.buffer), k.at) for k in kernel.kept]
    return tuple(key), tuple(order)
