"""How long the parts of a call of a compiled graph take: each kernel, and each equation that NumPy computes."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from wengert.compile.programs import PROCESSOR
from wengert.core.graph.graph import Graph, evaluate
from wengert.emission.costs import KernelCost, cost_of_kernel, cost_of_product
from wengert.emission.parallel_split import steps
from wengert.emission.programs import AddressWriter, Emission
from wengert.kernel.kernel import Buffer, Invoke, Product, Program, ProgramStep, Run
from wengert.kernel.schedule import apply_schedule, schedule_of, with_schedule
from wengert.native.builder import Builder
from wengert.native.engine import host
from wengert.native.functions import external
from wengert.native.structs import I32, I64, Pointer
from wengert.native.values import Value
from wengert.passes.equations import distinct_variables
from wengert.passes.segments import Segment, Segments, with_programs
from wengert.support.records import NamedTuple

CLOCK = "clock"
read_clock = external("clock_gettime", I32, I32, Pointer(I64))
"""POSIX's: it writes seconds and nanoseconds, on the systems whose processors have 64 bits."""


class TimeSpan(NamedTuple):
    """What one part of a call takes.

    Attributes:
        name: "kernel 3", the primitive that NumPy computes, or what a step is: "product", "loop", a routine's name.
        seconds: the median over calls.
        cost: what a kernel or a product costs by its records; None for all else.
    """

    name: str
    seconds: float
    cost: KernelCost | None


class Profile(NamedTuple):
    """Hold what the parts of a call take; shows as a table.

    Attributes:
        spans: the parts, in the order in which they run.
        between: the median time of what Python does between them.
    """

    spans: tuple[TimeSpan, ...]
    between: float

    @property
    def seconds(self) -> float:
        """What a call takes: the sum of the parts, and of what Python does between them."""
        return sum([span.seconds for span in self.spans], self.between)

    def __repr__(self) -> str:
        rows = list(map(self.row, [*self.spans, TimeSpan("between them", self.between, None)]))
        texts = [("", "time", "share", "Gflop/s", "GB/s"), *rows, self.row(TimeSpan("all", self.seconds, None))]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in texts]
        return "\n".join(map(str.rstrip, lines))

    def row(self, span: TimeSpan) -> tuple[str, ...]:
        """Return the cells of the table's row for a part: name, time, share, and rates where its cost is known."""
        time = max(span.seconds, 1e-9)
        rates = ["", ""]
        if span.cost is not None:
            rates = [f"{count / time / 1e9:.3g}" for count in (span.cost.flops, span.cost.read + span.cost.written)]
        return (span.name, f"{1e6 * span.seconds:,.1f} us", f"{span.seconds / self.seconds:.0%}", *rates)


def profile_segments(segments: Segments, values: Sequence[Any], calls: int) -> Profile:
    """Run a graph some times, with a look at the clock after each part, and return what the parts take.

    Args:
        segments: the graph; its programs are not scheduled yet.
        values: an array or number for each input.
        calls: how often it is run, besides once before.

    Raises:
        MissingLLVMError: there is no LLVM.
    """
    timed = with_programs(one_by_one(segments), timed_program)
    runs = [timed_run(timed, values) for _ in range(calls + 1)][1:]
    known = [span for part in timed.parts for span in spans_of(part)]
    *medians, between = map(statistics.median, zip(*runs, strict=True))
    counter = itertools.count()
    spans = [
        TimeSpan(name or f"kernel {next(counter)}", seconds, cost)
        for (name, cost), seconds in zip(known, medians, strict=True)
    ]
    return Profile(tuple(spans), between)


def timed_program(program: Program) -> Timed:
    """Return a program that tells what its parts take; one with rows that grow is one part."""
    if not program.is_nested:
        return TimedKernels(program)
    return TimedWhole(program, "steps") if any(x.grows for x in program.buffers) else TimedSteps(program)


def timed_run(segments: Segments, values: Sequence[Any]) -> list[float]:
    """Run a graph once, and return the seconds of each part, and of what is between them."""
    taken: list[float] = []

    def run(program: Timed, arrays: Sequence[Any]) -> list[Any]:
        outputs, times = program(arrays)
        taken.extend(times)
        return outputs

    def evaluate_timed(graph: Graph, given: Sequence[Any]) -> Sequence[Any]:
        start = time.perf_counter()
        found = evaluate(graph, given)
        taken.append(time.perf_counter() - start)
        return found

    start = time.perf_counter()
    segments.run(values, run, evaluate_timed)
    return [*taken, time.perf_counter() - start - sum(taken)]


def spans_of(part: Segment) -> list[tuple[str, KernelCost | None]]:
    """Return the name and the cost of each part of a segment."""
    if part.program is None:
        return [(f"NumPy: {equation.primitive.name}", None) for equation in part.graph.equations]
    program: Timed = part.program
    return program.parts


def one_by_one(segments: Segments) -> Segments:
    """Return segments of which each that NumPy computes is one equation."""
    parts: list[Segment] = []
    for part in segments.parts:
        parts += [part] if part.program is not None else alone(part)
    return Segments(segments.graph, tuple(parts))


def alone(part: Segment) -> list[Segment]:
    """Return each equation of a segment as a segment; the last one drops what nothing reads later."""
    found = []
    for equation, reason in zip(part.graph.equations, part.reasons, strict=True):
        graph = Graph(distinct_variables(equation.inputs), (equation,), equation.outputs)
        dropped = part.dropped if equation is part.graph.equations[-1] else ()
        found.append(Segment(graph, None, (reason,), dropped))
    return found


class Timed(Protocol):
    """Be a program that tells what its parts take.

    Attributes:
        parts: their names and costs.
    """

    parts: list[tuple[str, KernelCost | None]]

    def __call__(self, arrays: Sequence[Any]) -> tuple[list[Any], list[float]]:
        """Return the outputs, and the seconds of each part."""
        ...


class TimedWhole(Timed):
    """Run a program that is one part.

    Args:
        program: the program.
        name: of the part.
        cost: what it costs, if that is known.
    """

    def __init__(self, program: Program, name: str, cost: KernelCost | None = None) -> None:
        self.run = PROCESSOR.compile_program(with_schedule(program))
        self.parts = [(name, cost)]

    def __call__(self, arrays: Sequence[Any]) -> tuple[list[Any], list[float]]:
        """Return the outputs, and the seconds."""
        start = time.perf_counter()
        return list(self.run(arrays)), [time.perf_counter() - start]


class TimedSteps(Timed):
    """Run the steps of a program one by one, with arrays between them; one that fails ends it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = [(step, read_by(step), timed_step(step, program)) for step in program.steps]
        self.parts = [part for _, _, timed in self.steps for part in timed.parts]
        constants = [buffer for buffer in program.buffers if buffer.kind == "constant"]
        self.known = {x.name: np.frombuffer(x.contents, x.dtype).reshape(x.shape) for x in constants}

    def __call__(self, arrays: Sequence[Any]) -> tuple[list[Any], list[float]]:
        """Return the outputs, and the seconds of each part."""
        values = {**self.known, **dict(zip(self.program.inputs, arrays, strict=True))}
        seconds: list[float] = []
        failed = False
        for step, reads, timed in self.steps:
            outputs, taken = timed([values[name] for name in reads])
            seconds += taken
            failed |= step.may_fail and bool(outputs[-1])
            values.update(zip(step.writes, outputs, strict=False))
        values[self.program.failing] = np.array(failed)
        return [values[name] for name in self.program.outputs], seconds


def read_by(step: ProgramStep) -> tuple[str, ...]:
    """Return the buffers that a step is given as a program of its own: of a run those of its inputs, else each once."""
    return step.reads if isinstance(step, Run) else tuple(dict.fromkeys(step.reads))


def timed_step(step: ProgramStep, program: Program) -> Timed:
    """Return a step as a program of its own that tells what its parts take."""
    if isinstance(step, Run):
        return timed_program(step.program)
    failing = program.failing if step.may_fail else ""
    outputs = (*step.writes, *[failing] * bool(failing))
    buffers, reads = program.buffers_by_name, read_by(step)
    given = [buffers[name].replace(kind="input", contents=b"") for name in reads]
    made = [buffers[name].replace(kind="output") for name in outputs]
    cost = cost_of_product(step, program) if isinstance(step, Product) else None
    name = step.name if isinstance(step, Invoke) else type(step).__name__.lower()
    return TimedWhole(Program(reads, outputs, (*given, *made), (step,), failing), name, cost)


class TimedKernels(Timed):
    """Run a program of kernels that looks at the clock after each step.

    Attributes:
        kernels: for each step the kernel that it is a part of.
    """

    def __init__(self, program: Program) -> None:
        target = host()
        program = apply_schedule(program, schedule_of(program))
        self.parts = [("", cost_of_kernel(kernel, program, target)) for kernel in program.kernels]
        self.kernels = [step.number for step in steps(program, target)[0]]
        clock = Buffer(CLOCK, (len(self.kernels) + 1, 2), np.dtype(np.int64), "output")
        program = program.replace(outputs=(*program.outputs, CLOCK), buffers=(*program.buffers, clock))
        self.run = PROCESSOR.load(PROCESSOR.build(TimedEmission(program, target).emit()))

    def __call__(self, arrays: Sequence[Any]) -> tuple[list[Any], list[float]]:
        """Return the outputs, and the seconds of each kernel."""
        *outputs, clock = self.run(arrays)
        seconds = np.diff(clock @ (1_000_000_000, 1)) * 1e-9
        return outputs, np.bincount(self.kernels, seconds, len(self.parts)).tolist()


class TimedEmission(Emission):
    """Write a program that looks at the clock before and after each step."""

    @property
    def numbers(self) -> frozenset[str] | None:
        """No buffers are held in registers, in which steps are not apart."""
        return None

    def step(self, b: Builder, number: int, place: AddressWriter, team: Value) -> None:
        """Write what runs one step."""
        if number == 0:
            b.do(read_clock, time.CLOCK_MONOTONIC, place(CLOCK))
        super().step(b, number, place, team)
        b.do(read_clock, time.CLOCK_MONOTONIC, place(CLOCK).at(2 * (number + 1)))
