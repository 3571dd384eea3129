"""A whole program: one module with a function for each kernel and one that runs them in order."""

from __future__ import annotations

from dataclasses import dataclass

from wengert.emission.arena import Arena, laid_out
from wengert.emission.instructions import in_memory
from wengert.emission.rows import anonymous, kernel_function, row_bytes
from wengert.kernel.kernel import Buffer, Kernel, Program
from wengert.native import builder
from wengert.native.builder import Builder, Function, Value
from wengert.native.engine import Target
from wengert.native.structs import I8, POINTER, VOID, Pointer, Signature

__all__ = ["RUN", "Emitted", "emitted"]

RUN = Signature(VOID, (Pointer(POINTER), Pointer(I8), POINTER))
"""What runs a program: the addresses of inputs and outputs, the arena, and the team's memory or nothing."""


@dataclass(frozen=True)
class Emitted:
    """A program as text, and the memory that it needs.

    Attributes:
        text: the module; its function `run` is a RUN.
        arena: where buffers lie in the arena; those of constants must hold them before the first call.
    """

    text: str
    arena: Arena


def emitted(program: Program, target: Target) -> Emitted:
    """Return a program in LLVM's language.

    Args:
        program: what has passed the checker, scheduled.
        target: the processor.
    """
    buffers = {buffer.name: buffer for buffer in program.buffers}
    tiles = {name: kernel.tile for kernel in program.kernels for name in row_buffers(kernel, buffers)}
    arena = laid_out(program.kernels, buffers, lambda buffer: bytes_of(buffer, tiles))
    functions: dict[object, Function] = {}
    calls: list[tuple[Function, tuple[str, ...], int]] = []
    for kernel in program.kernels:
        key, order = anonymous(kernel, buffers)
        if key not in functions:
            functions[key] = kernel_function(f"kernel{len(functions)}", kernel, buffers, order, target)
        calls.append((functions[key], order, kernel.rows))

    def run(b: Builder, addresses: Value, memory: Value, team: Value) -> None:
        given = {name: addresses.at(n).load() for n, name in enumerate((*program.inputs, *program.outputs))}
        for function, order, rows in calls:
            places = []
            for name in order:
                place = given[name] if name in given else memory.at(arena.places[name])
                places.append(Value(b, Pointer(in_memory(buffers[name].dtype)), place.text))
            b.do(function, *places, 0, rows)

    return Emitted(builder.program(Function("run", RUN, run)), arena)


def row_buffers(kernel: Kernel, buffers: dict[str, Buffer]) -> set[str]:
    """Return the buffers of the row that a kernel has."""
    _, order = anonymous(kernel, buffers)
    return {name for name in order if buffers[name].kind == "row"}


def bytes_of(buffer: Buffer, tiles: dict[str, int]) -> int:
    """Return how much memory a buffer needs."""
    if buffer.kind == "row":
        return row_bytes(buffer) * tiles.get(buffer.name, 1)
    return buffer.size * buffer.dtype.itemsize
