"""What a traced function becomes on the way to machine code, to be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

from wengert.compile.programs import PROCESSOR
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.graph.working_memory import BufferUse, evaluation_memory, peak_of, size_in_bytes
from wengert.emission.costs import KernelCost, cost_of_kernel, cost_of_product
from wengert.emission.programs import Emitted
from wengert.errors import RangeError
from wengert.kernel.grammar import text
from wengert.kernel.kernel import Invoke, Kernel, Loop, Product, Program, ProgramStep, Run
from wengert.kernel.schedule import with_schedule
from wengert.lowering.costs import is_worthwhile
from wengert.lowering.partition import partition_graph
from wengert.native.availability import MissingLLVMError
from wengert.native.engine import emit_assembly, host
from wengert.passes.equations import distinct_variables, may_be_step
from wengert.passes.pipeline import flatten_calls
from wengert.passes.segments import Segment, Segments
from wengert.support.caches import cached
from wengert.support.hints import hint_attributes
from wengert.support.records import NamedTuple

if TYPE_CHECKING:
    from wengert.compile.profiling import Profile

INDENTATION = "  "
DIGITS = 64
"""Hexadecimal digits of constants that are shown."""


class Listing(str):
    """Be text that shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Cost(NamedTuple):
    """Hold what a call costs, as counted from the kernels; shows as a table.

    Attributes:
        kernels: what each kernel costs.
        memory: bytes that a call needs besides its arguments and results.
        left: how many equations NumPy computes, which are not counted.
        loops: how many loops run natively, round by round, which are not counted either.
        matrices: how many routines of matrices do, likewise.
        products: what each product of matrices costs.
    """

    kernels: tuple[KernelCost, ...]
    memory: int
    left: int
    loops: int = 0
    matrices: int = 0
    products: tuple[KernelCost, ...] = ()

    @property
    def total(self) -> KernelCost:
        """The sums over all kernels and products."""
        return KernelCost(*map(sum, zip(KernelCost(0, 0, 0, 0), *self.kernels, *self.products, strict=True)))

    def __repr__(self) -> str:
        rows = [(f"kernel {n}", cost) for n, cost in enumerate(self.kernels)]
        rows += [(f"product {n}", cost) for n, cost in enumerate(self.products)]
        numbers = [[name, *[f"{count:,}" for count in cost]] for name, cost in [*rows, ("all", self.total)]]
        texts = [["", *KernelCost._fields], *numbers]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in texts]
        lines.append(f"memory besides arguments and results: {self.memory:,} bytes")
        if self.left:
            lines.append(f"not counted: {self.left} equations that NumPy computes")
        if self.loops:
            lines.append(f"not counted: {self.loops} loops of machine code, however often they run")
        if self.matrices:
            lines.append(f"not counted: {self.matrices} routines of matrices, of machine code")
        return "\n".join(lines)


@hint_attributes("as_text", "compile", "cost_analysis", "memory_analysis")
class Translation:
    """Show a traced function in all its forms; each is made when it is asked for, and prints.

    Made by `jit(f).lower(*args)`. There is nothing to see of what NumPy computes between kernels but its equations.

    Attributes:
        graph: the graph that is compiled, without calls.
        kernels: the kernels as they are scheduled, also of loops, and the equations that NumPy computes, each with the
            reason.
        llvm: the kernels in LLVM's language.
        asm: the instructions for this processor.
        cost: operations, flops, and bytes read and written, of each kernel.
        memory: how many bytes a call takes at most at once besides its arguments.
        natively: whether it is known that native code computes it: `jit(f, native=True)`.
    """

    def __init__(self, graph: Graph, values: Sequence[Any], natively: bool = False) -> None:
        self.graph, self.natively = flatten_calls(graph), natively
        self.values = tuple(values)

    def __repr__(self) -> str:
        native = [len(part.graph.equations) for part in self.segments.parts if part.program is not None]
        count, kernels = len(self.graph.equations), len(self.cost.kernels)
        return f"<{sum(native)} of {count} equations in {kernels} kernels; print .graph, .kernels, .llvm, .asm, .cost>"

    @cached
    def segments(self) -> Segments:
        """The graph in programs of kernels, and what NumPy computes."""
        return partition_graph(self.graph, is_worthwhile)

    @cached
    def programs(self) -> list[Program]:
        """The programs of kernels, in order."""
        found = [part.program for part in self.segments.parts if part.program is not None]
        return list(map(with_schedule, found))

    @cached
    def rendered_programs(self) -> list[Emitted]:
        """The programs as text and memory."""
        return list(map(PROCESSOR.render, self.programs))

    @cached
    def kernels(self) -> Listing:
        """The kernels as they are scheduled, and the equations that NumPy computes, each with the reason."""
        programs = iter(self.programs)
        parts = [
            refused_text(part) if part.program is None else text(next(programs), DIGITS) for part in self.segments.parts
        ]
        return Listing("\n\n".join(parts))

    @cached
    def llvm(self) -> Listing:
        """The kernels in LLVM's language."""
        return Listing("\n".join([code.text for code in self.rendered_programs]))

    @cached
    def asm(self) -> Listing:
        """The instructions for this processor."""
        return Listing("\n".join([emit_assembly(code.text, host()) for code in self.rendered_programs]))

    @cached
    def cost(self) -> Cost:
        """What each kernel costs."""
        steps = [pair for program in self.programs for pair in run_once(program)]
        kernels = [cost_of_kernel(step, program, host()) for program, step in steps if isinstance(step, Kernel)]
        products = [cost_of_product(step, program) for program, step in steps if isinstance(step, Product)]
        left = sum(len(part.graph.equations) for part in self.segments.parts if part.program is None)
        loops, matrices = [sum(isinstance(step, sort) for _, step in steps) for sort in (Loop, Invoke)]
        return Cost(tuple(kernels), self.working_memory, left, loops, matrices, tuple(products))

    @cached
    def working_memory(self) -> int:
        """How many bytes a call needs at most at once besides its arguments and results, natively."""
        codes = iter(self.rendered_programs)
        uses = [
            BufferUse(
                part.graph.inputs,
                distinct_variables(part.graph.outputs),
                evaluation_memory(part.graph) if part.program is None else next(codes).image.size,
            )
            for part in self.segments.parts
        ]
        return peak_of(uses, self.graph.inputs, self.graph.outputs)

    @cached
    def memory(self) -> int:
        """How many bytes a call takes at most at once besides its arguments.

        These are results and what is computed on the way, residuals among them: what machine code needs with
        `native=True`, else the larger of this and what NumPy needs. Not known, and not counted, are what functions of
        NumPy take for themselves, and rows of loops that a condition ends.

        >>> import numpy as np
        >>> from types import SimpleNamespace
        >>> from wengert import grad, jit
        >>> rows = SimpleNamespace(shape=(1000, 10), dtype=np.dtype(float))
        >>> step = jit(grad(lambda w, x: np.sum(np.sort(x @ w, axis=0) ** 2)))
        >>> step.lower(np.ones(10), rows).memory > 1000 * 8
        True
        """
        evaluated = evaluation_memory(self.graph)
        try:
            working = self.working_memory if self.natively else max(evaluated, self.working_memory)
        except MissingLLVMError:  # without LLVM NumPy computes all of it
            working = evaluated
        return working + size_in_bytes(distinct_variables(self.graph.outputs))

    def profile(self, calls: int = 20) -> Profile:
        """Run the graph for these arguments, and return how long each kernel takes, and what NumPy computes.

        Nothing is written to the arguments, donated ones included.

        Args:
            calls: how often, besides once before; what is returned are medians.

        Raises:
            ImportError: there is no LLVM.
            RangeError: there is nothing to take the median of.

        >>> import numpy as np
        >>> from wengert import jit
        >>> profile = jit(lambda x: np.partition(np.exp(x), 9).sum()).lower(np.linspace(0.0, 1.0, 100_000)).profile()
        >>> [span.name for span in profile.spans], profile.seconds > 0
        (['kernel 0', 'NumPy: partition', 'kernel 1'], True)
        """
        if calls < 1:
            raise RangeError("profile", f"calls={calls}", "a positive number is needed", "Pass 20, or more")
        from wengert.compile.profiling import profile_segments

        return profile_segments(self.segments, self.values, calls)


def run_once(program: Program) -> Iterator[tuple[Program, ProgramStep]]:
    """Yield the steps of a program, and of those that it runs once, each with the program that it is of."""
    for step in program.steps:
        if isinstance(step, Run):
            yield from run_once(step.program)
        else:
            yield program, step


def refused_text(part: Segment) -> str:
    """Return the equations of a segment that is no program as text."""
    pairs = zip(part.graph.equations, part.reasons, strict=True)
    return "\n".join([equation_text(equation, reason) for equation, reason in pairs])


def equation_text(equation: Equation, reason: str) -> str:
    """Return an equation that NumPy computes as text, with what is native inside of it."""
    inner = [e for _, graph in subgraphs(equation.params) for e in graph.equations]
    found = [inner_text(e, reason) for e in inner if e.primitive.structured or may_be_step(e)]
    return "\n".join([f"by NumPy: {equation.primitive.name}, {reason}", *[indent(x, INDENTATION) for x in found]])


def inner_text(equation: Equation, reason: str) -> str:
    """Return an equation inside of one that NumPy computes as text: as a program, if it is one."""
    graph = Graph(distinct_variables(equation.inputs), (equation,), equation.outputs)
    program = partition_graph(graph, is_apart=True).whole if may_be_step(equation) else None
    if program is None:
        return equation_text(equation, reason)
    return f"natively: {equation.primitive.name}\n{indent(text(with_schedule(program), DIGITS), INDENTATION)}"
