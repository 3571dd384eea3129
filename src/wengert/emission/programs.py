"""A whole program: one module with a function for each kernel and one that runs them in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wengert.emission.arena import Arena, laid_out
from wengert.emission.instructions import in_memory
from wengert.emission.outside import declared
from wengert.emission.rows import anonymous, kernel_function, kernel_job, row_bytes
from wengert.emission.sharing import Step, steps
from wengert.emission.vectors import Module
from wengert.kernel.kernel import Buffer, Program
from wengert.native import builder
from wengert.native.builder import Builder, Function, Value
from wengert.native.engine import Target
from wengert.native.jobs import SHARED
from wengert.native.structs import I8, POINTER, VOID, Array, Pointer, Signature

__all__ = ["RUN", "Emission", "Emitted", "emitted"]

RUN = Signature(VOID, (Pointer(POINTER), Pointer(I8), Pointer(SHARED)))
"""What runs a program: the addresses of inputs and outputs, the arena, and the team's memory or nothing."""


@dataclass(frozen=True)
class Emitted:
    """A program as text, and the memory that it needs.

    Attributes:
        text: the module; its function `run` is a RUN.
        arena: where buffers lie in the arena; those of constants must hold them before the first call.
        outside: the functions that it calls and does not have; `outside.address_of` gives their addresses.
    """

    text: str
    arena: Arena
    outside: tuple[str, ...]


def emitted(program: Program, target: Target) -> Emitted:
    """Return a program in LLVM's language.

    Args:
        program: what has passed the checker, scheduled.
        target: the processor.
    """
    return Emission(program, target).emitted()


class Emission:
    """Write a program.

    Args:
        program: the program.
        target: the processor.
    """

    def __init__(self, program: Program, target: Target) -> None:
        self.target = target
        self.given = (*program.inputs, *program.outputs)
        self.steps, self.buffers = steps(program, target)
        self.module = Module(target, self.buffers)
        self.functions: dict[object, Function] = {}
        self.calls = [self.call(step) for step in self.steps]
        tiles = {
            name: step.kernel.tile for step, (_, order) in zip(self.steps, self.calls, strict=True) for name in order
        }
        uses = [self.used(step, order) for step, (_, order) in zip(self.steps, self.calls, strict=True)]
        self.arena = laid_out(uses, self.buffers, lambda buffer: bytes_of(buffer, tiles.get(buffer.name, 1)))

    def emitted(self) -> Emitted:
        """Return the text, and the memory that it needs."""
        text = builder.program(Function("run", RUN, self.run, ("addresses", "memory", "team")))
        return Emitted(text, self.arena, tuple(sorted(self.module.outside)))

    def used(self, step: Step, order: tuple[str, ...]) -> list[str]:
        """Return the buffers that must be there during a step."""
        return [
            *(name for name in order if self.buffers[name].kind != "row" or name not in step.own),
            *step.own.values(),
        ]

    def call(self, step: Step) -> tuple[Function, tuple[str, ...]]:
        """Return the function of a step, which it may share with others, and the buffers in the order of its own."""
        key, order = anonymous(step.kernel, self.buffers)
        known = key, step.parts > 1
        if known not in self.functions:
            name = f"kernel{len(self.functions)}"
            if step.parts > 1:
                self.functions[known] = kernel_job(name, step, self.module, order)
            else:
                self.functions[known] = kernel_function(name, step.kernel, self.module, order)
        return self.functions[known], order

    def outside(self, name: str) -> Function:
        """Return a function that the program does not have."""
        self.module.outside.add(name)
        return declared(name, self.target)

    def run(self, b: Builder, addresses: Value, memory: Value, team: Value) -> None:
        """Write what runs all steps."""
        given = {name: addresses.at(n).load() for n, name in enumerate(self.given)}

        def place(name: str) -> Value:
            found = given[name] if name in given else memory.at(self.arena.places[name])
            return Value(b, Pointer(in_memory(self.buffers[name].dtype)), found.text)

        for number in range(len(self.steps)):
            self.step(b, number, place, team)

    def step(self, b: Builder, number: int, place: Callable[[str], Value], team: Value) -> None:
        """Write what runs one step; `place` gives the addresses of buffers."""
        step, (function, order) = self.steps[number], self.calls[number]
        if step.parts == 1:
            b.do(function, *(place(name) for name in order))
            return
        table = b.stack(Array(POINTER, len(order)))
        for n, name in enumerate(order):
            table.at(n).store(place(step.own.get(name, name)))
        b.do(self.outside("share"), team, function, Value(b, POINTER, table.text), step.parts)
        for reduction in step.summed:
            source = self.buffers[step.own[reduction.into]]
            size, apart = self.buffers[reduction.into].size, source.shape[1]
            merge = self.outside(f"merge.{reduction.combine}.{source.dtype.name}")
            b.do(merge, place(reduction.into), place(source.name), size, apart, source.size)


def bytes_of(buffer: Buffer, tile: int) -> int:
    """Return how much memory a buffer needs."""
    return row_bytes(buffer) * tile if buffer.kind == "row" else buffer.size * buffer.dtype.itemsize
