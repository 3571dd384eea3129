"""A whole program: one module with a function for each kernel and one that runs them in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wengert.emission.arena import constant_entry, laid_out, lies_outside
from wengert.emission.buffer_reuse import find_overwritten
from wengert.emission.external_functions import declaration_of
from wengert.emission.instructions import in_memory
from wengert.emission.parallel_split import KernelStep, lanes_of, steps
from wengert.emission.registers import Registers, names_in_registers
from wengert.emission.rows import Found, anonymous, kernel_function, kernel_job, row_bytes, write_kernel, write_numbers
from wengert.emission.vectors import Module
from wengert.kernel.durations import cycles
from wengert.kernel.kernel import Buffer, Program
from wengert.native.builder import Builder
from wengert.native.builder import program as written
from wengert.native.engine import Target
from wengert.native.executable import Image
from wengert.native.functions import NativeFunction
from wengert.native.structs import I8, POINTER, VOID, Array, Pointer, Signature
from wengert.native.threads.job_tables import SHARED
from wengert.native.values import Instructions, Value
from wengert.support.caches import cached
from wengert.support.records import NamedTuple

RUN = Signature(VOID, (Pointer(POINTER), Pointer(I8), Pointer(SHARED)))
"""What runs a program: the addresses of inputs and outputs, the arena, and the team's memory or nothing."""

FEW = 8
"""Steps of a program up to which those that are no job, and the only ones of their kind, are no functions of their own:
each function takes LLVM a third of a millisecond, however short it is."""

LITTLE = 1 / 1000
"""The share of a program's cycles up to which LLVM writes `run` without its passes, in 0.4 to 0.8 of the time."""


class Emitted(NamedTuple):
    """A program as text.

    Attributes:
        text: the module; its function `run` is a RUN. None, if the one function outside does all.
        image: all that is needed to call it, but for its code.
    """

    text: str
    image: Image


Constants = tuple[tuple[int, bytes, bool], ...]
"""What an arena must hold before the first call: places, bytes, and whether these lie outside: their address, then."""


def without_code(
    program: Program,
    size: int,
    constants: Constants,
    cycles: float,
    outside: Sequence[str],
    overwritten: tuple[tuple[int, int], ...] = (),
) -> Image:
    """Return all that is needed to call a program, but for its code; the first function outside may be that code."""
    buffers = program.buffers_by_name
    inputs, outputs = (
        tuple([(buffers[name].dtype.str, buffers[name].shape) for name in names])
        for names in (program.inputs, program.outputs)
    )
    return Image(b"", tuple(outside), inputs, outputs, size, constants, cycles, program.repeats, overwritten)


class Emission:
    """Write a program of kernels.

    Args:
        program: the program.
        target: the processor.
        outside: the names of functions that the module does not have, to which those are added that it calls.
        prefix: what the names of its functions begin with.
    """

    def __init__(self, program: Program, target: Target, outside: set[str] | None = None, prefix: str = "") -> None:
        self.program, self.target, self.prefix = program, target, prefix
        self.given = (*program.inputs, *program.outputs)
        self.taken = sum([cycles(kernel, lanes_of(target)) for kernel in program.kernels])
        self.steps, self.buffers = steps(program, target)
        self.module = Module(target, self.buffers, set() if outside is None else outside)
        self.functions: dict[object, NativeFunction] = {}
        self.kernels = [anonymous(step.kernel, self.buffers) for step in self.steps]
        self.uses = Counter([key for key, _ in self.kernels])
        lanes = lanes_of(target)
        self.cycles = [cycles(step.kernel, lanes) for step in self.steps]
        self.calls = [self.call(step, *kernel) for step, kernel in zip(self.steps, self.kernels, strict=True)]
        tiles = {
            name: step.kernel.tile for step, (_, order) in zip(self.steps, self.kernels, strict=True) for name in order
        }
        uses = [self.used_buffers(step, order) for step, (_, order) in zip(self.steps, self.kernels, strict=True)]
        self.arena = laid_out(uses, self.buffers, lambda buffer: bytes_of(buffer, tiles.get(buffer.name, 1)))

    def emit(self) -> Emitted:
        """Return the text, and the memory that it needs."""
        text = written(self.entry())
        places = find_overwritten(self.program, [step.kernel for step in self.steps])
        outside = sorted(self.module.outside)
        return Emitted(text, without_code(self.program, self.arena.size, self.constants, self.taken, outside, places))

    @cached
    def function(self) -> NativeFunction:
        """The function that runs it, which others call."""
        return self.entry()

    def entry(self) -> NativeFunction:
        """Return a function that runs it; nothing holds it here, so that both end without the collector of garbage."""
        own = sum(taken for taken, function in zip(self.cycles, self.calls, strict=True) if function is None)
        parameters = "addresses", "memory", "team"
        return NativeFunction(f"{self.prefix}run", RUN, self.run, parameters, brief=self.is_little(own))

    @property
    def constants(self) -> Constants:
        """What the arena must hold before the first call."""
        found = [buffer for buffer in self.buffers.values() if buffer.kind == "constant"]
        return tuple([constant_entry(buffer, self.arena.places[buffer.name]) for buffer in found])

    @cached
    def numbers(self) -> frozenset[str] | None:
        """The buffers that may be held in registers; None where not all is computed number by number, in `run`."""
        is_alone = all(call is None and step.parts == 1 for call, step in zip(self.calls, self.steps, strict=True))
        return names_in_registers([step.kernel for step in self.steps]) if is_alone else None

    def are_held(self, names: Sequence[str]) -> bool:
        """Tell whether buffers are in registers wherever kernels access them."""
        used = {name for _, order in self.kernels for name in order}
        return self.numbers is not None and used.intersection(names) <= self.numbers

    def is_little(self, taken: float) -> bool:
        """Whether some cycles are a small part of those of the program."""
        return taken < LITTLE * sum(self.cycles)

    def used_buffers(self, step: KernelStep, order: tuple[str, ...]) -> list[str]:
        """Return the buffers that must be there during a step."""
        return [
            *(name for name in order if self.buffers[name].kind != "row" or name not in step.own),
            *step.own.values(),
        ]

    def call(self, step: KernelStep, key: object, order: tuple[str, ...]) -> NativeFunction | None:
        """Return the function of a step, which it may share with others; none for one that `run` does itself."""
        alone = self.uses[key] == 1
        if alone and step.parts == 1 and len(self.steps) <= FEW:
            return None
        known = key, step.parts > 1, tuple(rows for rows, _ in step.blocks)
        if known not in self.functions:
            name = f"{self.prefix}kernel{len(self.functions)}"
            if step.parts > 1:
                self.functions[known] = kernel_job(
                    name, step, self.module, order, self.buffer_finder(step, order, alone)
                )
            else:
                self.functions[known] = kernel_function(name, step, self.module, order)
        return self.functions[known]

    def buffer_finder(self, step: KernelStep, order: tuple[str, ...], alone: bool) -> Found:
        """Return the function that finds a job's buffers: by itself, or, if steps share it, in a table of theirs."""

        def by_itself(_b: Builder, table: Value) -> list[Value]:
            place = AddressWriter(self, table.at(0).load().to(POINTER), table.at(1).load().to(I8))
            return [place(step.own.get(name, name)) for name in order]

        def in_table(_b: Builder, table: Value) -> list[Value]:
            return [typed_address(self.buffers[name], table.at(n).load()) for n, name in enumerate(order)]

        return by_itself if alone else in_table

    def outside(self, name: str) -> NativeFunction:
        """Return a function that the program does not have."""
        self.module.outside.add(name)
        return declaration_of(name, self.target)

    def run(self, b: Builder, addresses: Value, memory: Value, team: Value) -> None:
        """Write what runs all steps."""
        places = AddressWriter(self, addresses, memory)
        if self.numbers is not None:
            registers = Registers(b, self.buffers, self.numbers, places)
            self.run_in(registers)
            registers.write_back([*self.program.outputs, *self.program.changed_inputs])
            return
        for number in range(len(self.steps)):
            self.step(b, number, places, team)

    def run_in(self, registers: Registers) -> None:
        """Write what runs all steps with numbers in registers, and leaves results there."""
        for step, (_, order) in zip(self.steps, self.kernels, strict=True):
            write_numbers(registers.b, step, self.module, order, registers)

    def step(self, b: Builder, number: int, place: AddressWriter, team: Value) -> None:
        """Write what runs one step."""
        step, function, (key, order) = self.steps[number], self.calls[number], self.kernels[number]
        own = [step.own.get(name, name) for name in order]
        if function is None:
            write_kernel(b, step, self.module, order, list(map(place, own)))
        elif step.parts == 1:
            b.do(function, *map(place, own))
        else:
            table = place.everything if self.uses[key] == 1 else table_of(b, list(map(place, own)))
            b.do(self.outside("share"), team, function, Value(b, POINTER, table.text), step.parts)
        for reduction in step.summed:
            source = self.buffers[step.own[reduction.into]]
            size, apart = self.buffers[reduction.into].size, source.shape[1] // step.numbers(reduction.into)
            merge = self.outside(f"merge.{reduction.combine}.{source.dtype.name}")
            b.do(merge, place(reduction.into), place(source.name), size, apart, source.size)


class AddressWriter:
    """Write what gives the addresses of buffers in one function."""

    def __init__(self, emission: Emission, addresses: Value, memory: Value) -> None:
        self.emission, self.addresses, self.memory = emission, addresses, memory
        self.loaded: dict[str, Value] = {}

    def __call__(self, name: str) -> Value:
        """Return the address of a buffer; that of one outside the arena is loaded once."""
        given, buffer = self.emission.given, self.emission.buffers[name]
        is_given = name in given
        place = self.addresses.at(given.index(name)) if is_given else self.memory.at(self.emission.arena.places[name])
        if not is_given and not lies_outside(buffer):
            return typed_address(buffer, place)
        if name not in self.loaded:
            self.loaded[name] = place.to(POINTER).load()
        return typed_address(buffer, self.loaded[name])

    @cached
    def everything(self) -> Value:
        """The address of a table in which jobs find their buffers by themselves."""
        return table_of(self.memory.b, [self.addresses, self.memory])


def table_of(b: Instructions, addresses: Sequence[Value]) -> Value:
    """Write what stores addresses in a table; return its own."""
    table = b.stack(Array(POINTER, len(addresses)))
    for n, address in enumerate(addresses):
        table.at(n).store(Value(b, POINTER, address.text))
    return table


def typed_address(buffer: Buffer, address: Value) -> Value:
    """Return the address of a buffer as that of its elements."""
    return Value(address.b, Pointer(in_memory(buffer.dtype)), address.text)


def bytes_of(buffer: Buffer, tile: int) -> int:
    """Return how much memory a buffer needs."""
    return row_bytes(buffer) * tile if buffer.kind == "row" else buffer.size * buffer.dtype.itemsize
