"""Graphs as one program whose steps are programs of kernels, loops, and routines of small matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import is_counted
from wengert.core.graph.variable import Variable
from wengert.core.primitives.primitive import Structured, StructuredLowering
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.kernel.checking import checked
from wengert.kernel.kernel import Buffer, Carried, Copy, Loop, Program, Routine, Row, Run, Step
from wengert.lowering.iterations import ENDLESS, Iteration, behind, iteration_of, sequence_of
from wengert.lowering.layouts import array_kind, as_array
from wengert.lowering.partition import segmented
from wengert.lowering.segments import Segment, without_numbers
from wengert.lowering.small_matrices import SmallMatrices, small_matrices
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.passes.pipeline import inlined

MOST = 1 << 24
"""Bytes of an arena up to which it is worth while to keep them for the next call."""
ROWS = 1024, 256, 64
"""Rows that a program has room for where nobody knows how many there will be; fewer if they would take too much."""
HANDED = 128
"""Such rows that there is room for where a loop leaves them behind in a round of another loop."""


class UnfitError(Exception):
    """Say that something cannot be a step of a program."""


def whole_program(graph: Graph, *, is_round: bool = False) -> Program | None:
    """Return all of a graph as one program; None if NumPy has to compute some of it.

    Args:
        graph: that has been through all passes.
        is_round: whether a loop runs it, which has room for the rows that loops inside leave behind.
    """
    segments = segmented(graph)
    if segments.whole is not None:
        return segments.whole
    outputs = graph.outputs if is_round else without_numbers(graph.outputs)
    written = {v for part in segments.parts for v in part.graph.outputs if type(v) is Variable}.union(graph.inputs)
    if len(set(map(id, outputs))) < len(outputs) or not all(type(x) is Variable and x in written for x in outputs):
        return None
    has_rows = any(UNKNOWN in x.shape for x in (*graph.inputs, *outputs))
    if has_rows and not is_round:
        return None
    try:
        known = {id(e): stepping(e) for part in segments.parts if part.program is None for e in part.graph.equations}
        for rows in (HANDED,) if has_rows else ROWS:
            writer = StepsWriter(Graph(graph.inputs, (), outputs), rows)
            for part in segments.parts:
                writer.add(part, known)
            program = writer.program()
            if memory_of(program) <= MOST:
                return checked("steps", program)
    except UnfitError:
        pass
    return None


class Rounds(NamedTuple):
    """Hold a loop that can be a step: an iteration, its program, and that of the condition, if there is one."""

    iteration: Iteration
    body: Program
    condition: Program | None


class Iterations(StructuredLowering):
    """Lower a loop to the programs of its iterations."""

    def loop(self, params: Any) -> Rounds:
        """Return the programs; raise UnfitError if kernels cannot compute all of an iteration."""
        iteration = iteration_of(params)
        if iteration is None or not can_be_a_step(iteration):
            raise UnfitError
        condition = None if params["cond"] is None else inlined(params["cond"])
        if condition is not None and type(condition.outputs[0]) is not Variable:
            raise UnfitError
        programs = [None if x is None else whole_program(x, is_round=True) for x in (iteration.graph, condition)]
        if programs[0] is None or (condition is not None and programs[1] is None):
            raise UnfitError
        return Rounds(iteration, programs[0], programs[1])


ITERATIONS = Iterations()


def can_be_a_step(iteration: Iteration) -> bool:
    """Tell whether a loop can be a step, as far as its parameters tell: no result is an array twice."""
    spec = iteration.spec
    if iteration.params["cond"] is not None:
        return len(iteration.inputs) == int(spec.constants + spec.carried)
    return spec.length is None or (spec.length > 0 and len(set(iteration.left)) == len(iteration.left))


def stepping(equation: Equation) -> Rounds | SmallMatrices:
    """Return what an equation that no kernel computes is as a step; raise UnfitError if it is none."""
    found: Any = None
    if isinstance(equation.primitive, Structured):
        found = equation.primitive.lower(equation.params, ITERATIONS)
    elif (routine := small_matrices(equation)) is not None:
        return routine
    if not isinstance(found, Rounds):
        raise UnfitError
    return found


class StepsWriter:
    """Write the steps of a program.

    Args:
        graph: its inputs and outputs, which are variables.
        rows: how many there is room for of what loops leave behind whose rounds nobody knows.

    Attributes:
        names: of the buffers of variables.
        sequences: those of such rows, with what one is as, and how many there is room for.
        unchanged: the outputs that are inputs, with the buffers that they are copied to.
    """

    def __init__(self, graph: Graph, rows: int) -> None:
        self.graph, self.rows = graph, rows
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[Step] = []
        given = [self.enter(f"x{n}", shape_of(v), dtype_of(v), "input") for n, v in enumerate(graph.inputs)]
        made = [self.enter(f"y{n}", shape_of(v), dtype_of(v), "output") for n, v in enumerate(graph.outputs)]
        inputs, outputs = dict(zip(graph.inputs, given, strict=True)), dict(zip(graph.outputs, made, strict=True))
        self.names: dict[Variable, str] = {**outputs, **inputs}
        self.unchanged = {v: name for v, name in outputs.items() if v in inputs}
        self.sequences: dict[Variable, tuple[str, Variable, int]] = {
            v: (self.names[v], row_of(v), HANDED) for v in graph.inputs if UNKNOWN in v.shape
        }

    def program(self) -> Program:
        """Return the program."""
        steps = (*self.steps, *[Copy(self.names[v], name) for v, name in self.unchanged.items()])
        inputs, outputs = [[b.name for b in self.buffers.values() if b.kind == k] for k in ("input", "output")]
        may_fail = any(isinstance(s, Loop | Routine) or (isinstance(s, Run) and s.program.failing) for s in steps)
        failing = f"y{len(outputs)}" if may_fail else ""
        if failing:
            outputs.append(self.enter(failing, (), np.dtype(bool), "output"))
        return Program(tuple(inputs), tuple(outputs), tuple(self.buffers.values()), steps, failing)

    def enter(self, name: str, shape: tuple[int, ...], dtype: Any, kind: Any, contents: bytes = b"") -> str:
        """Enter a buffer; return its name."""
        if 0 in shape:
            raise UnfitError
        self.buffers[name] = Buffer(name, shape, dtype, kind, contents)
        return name

    def room(self, shape: tuple[int, ...], dtype: Any) -> str:
        """Enter a buffer of the program's own; return its name."""
        return self.enter(f"t{len(self.buffers)}", shape, dtype, "temporary")

    def place(self, x: Any, like: Variable) -> str:
        """Return the buffer of what is read for a variable of a part, or written: another variable, or a literal.

        Raises:
            UnfitError: it does not lie as the part wants it.
        """
        if type(x) is not Variable:
            array = as_array(like, x)
            return self.enter(f"c{len(self.buffers)}", array.shape, array.dtype, "constant", array.tobytes())
        require_alike(x, like)
        if UNKNOWN in x.shape:
            raise UnfitError
        name = self.names.get(x)
        if name is None:
            name = self.names[x] = self.room(shape_of(x), dtype_of(x))
        return name

    def place_of_rows(self, x: Any, row: Variable, length: int | None, is_made: bool) -> str:
        """Return the buffer of a sequence whose rows lie one behind the other.

        Args:
            x: all of them.
            row: what a part has as one of them.
            length: how many there are; None if nobody knows.
            is_made: whether the part writes them.

        Raises:
            UnfitError: they do not lie so, or no part has written them.
        """
        if length is not None and UNKNOWN not in row.shape:
            return self.place(x, rows_in_order(row, length))
        if type(x) is not Variable or (x in self.sequences) == is_made:
            raise UnfitError
        if is_made:
            most = HANDED if x in self.names else length or self.rows
            name = self.names.get(x) or self.room((most, *shape_of(row)), dtype_of(row))
            self.sequences[x] = name, row, most
        found, own, most = self.sequences[x]
        require_alike(own, row)
        if length is not None and length > most:
            raise UnfitError
        return found

    def add(self, part: Segment[Program], known: dict[int, Rounds | SmallMatrices]) -> None:
        """Add a part of the graph: a program of kernels, or equations that are steps of other sorts."""
        if part.program is not None:
            variables = (*part.graph.inputs, *part.graph.outputs)
            if not all(type(v) is Variable for v in variables):
                raise UnfitError  # an array that is known, which somebody has to write
            self.steps.append(Run(part.program, tuple([self.place(v, v) for v in variables])))
            return
        for equation in part.graph.equations:
            found = known[id(equation)]
            if isinstance(found, Rounds):
                self.add_loop(found, equation)
            else:
                self.add_routine(found, equation)

    def add_routine(self, routine: SmallMatrices, equation: Equation) -> None:
        """Add a routine of small matrices."""
        places = map(self.place, (*equation.inputs, *equation.outputs), (*routine.inputs, *routine.outputs))
        fields, results = tuple(routine.fields.items()), len(routine.outputs)
        self.steps.append(Routine(routine.name, tuple(places), results, fields, routine.work, routine.cycles))

    def add_loop(self, loop: Rounds, equation: Equation) -> None:
        """Add a loop; raise UnfitError if something does not lie as it wants it."""
        iteration, body, spec = loop.iteration, loop.body, loop.iteration.spec
        own, ahead = spec.constants, spec.constants + spec.carried
        given = equation.inputs[int(is_counted(iteration.params)) :]
        names = dict(zip(iteration.inputs, body.inputs, strict=True))
        outs = dict(zip(iteration.graph.outputs, body.outputs, strict=False))
        inputs = list(zip(given, iteration.inputs, strict=True))
        constants = tuple([Row(self.place(x, v), names[v]) for x, v in inputs[:own]])
        starts = [self.place(x, v) for x, v in inputs[own:ahead]]
        rows = [Row(self.place_of_rows(x, v, spec.length, False), names[v]) for x, v in inputs[ahead:]]
        made: dict[Variable, Variable] = {}
        for v, x in zip(iteration.left, equation.outputs[spec.carried :], strict=True):
            if v not in made:
                made[v] = x
                rows.append(Row(self.place_of_rows(x, v, spec.length, True), outs[v]))
        ends = zip(starts, iteration.inputs[own:ahead], iteration.carried, equation.outputs, strict=False)
        carried = tuple([self.carried(start, v, names[v], x, outs, end) for start, v, x, end in ends])
        counted, first = is_counted(iteration.params), ""
        if loop.condition is not None:
            first = self.room((), np.dtype(bool))
            arguments = (*[constant.buffer for constant in constants], *starts, first)
            self.steps.append(Run(loop.condition, arguments))
        count = self.count_of(equation.inputs[0]) if counted else ""
        going = outs[iteration.going] if type(iteration.going) is Variable else ""
        most = self.rounds_of(iteration)
        self.steps.append(Loop(body, constants, carried, tuple(rows), most, count, first, going, reverse=spec.reverse))
        self.share_rows(iteration, equation.outputs[spec.carried :])

    def carried(
        self, start: str, variable: Variable, into: str, x: Any, outs: dict[Variable, str], end: Variable
    ) -> Carried:
        """Return how a value is carried: from a buffer, as an input of the body, which gives it or it is known."""
        is_known = type(x) is not Variable
        known = self.place(x, variable) if is_known else ""
        result = self.place(end, end if is_known else x)
        return Carried(start, into, "" if is_known else outs[x], known, result)

    def rounds_of(self, iteration: Iteration) -> int:
        """Return how many iterations there are, at most if nobody knows."""
        spec = iteration.spec
        if iteration.params["cond"] is not None and iteration.is_once:
            return 1
        has_rows = len(iteration.left) + len(iteration.inputs) > spec.constants + spec.carried
        return int(spec.length or (self.rows if has_rows else ENDLESS))

    def count_of(self, limit: Any) -> str:
        """Return the buffer that holds how often a loop runs; raise UnfitError if that has not 64 bits."""
        aval = aval_of(limit)
        if aval.shape or aval.dtype != np.int64:
            raise UnfitError
        return self.place(limit, limit if type(limit) is Variable else Variable.of(aval, ""))

    def share_rows(self, iteration: Iteration, results: Sequence[Variable]) -> None:
        """Let sequences of the same rows be one, to which nobody writes again, and copies where several are outputs."""
        first: dict[Variable, Variable] = {}
        for v, x in zip(iteration.left, results, strict=True):
            if first.setdefault(v, x) is x:
                continue
            name, row, most = self.sequences[first[v]]
            if x in self.names:
                self.steps.append(Copy(name, self.names[x]))
                name = self.names[x]
            self.sequences[x] = name, row, most


def require_alike(x: Variable, like: Variable) -> None:
    """Raise UnfitError if two values do not lie in memory alike, wherever axes of length one stand."""
    if x.dtype != like.dtype or x.shape != like.shape or long_axes(x) != long_axes(like):
        raise UnfitError


def long_axes(variable: Variable) -> list[int]:
    """Return the axes along which there is more than one element, in the order in which kernels have them."""
    return [axis for axis in axes_in_kernels(variable) if variable.shape[axis] != 1]


def shape_of(variable: Variable) -> tuple[int, ...]:
    """Return the shape of a variable's buffer, with room for so many rows where nobody knows how many there are."""
    return tuple([HANDED if n == UNKNOWN else n for n in array_kind(variable).shape])


def dtype_of(variable: Variable) -> Any:
    """Return the dtype of a variable's buffer."""
    return array_kind(variable).dtype


def row_of(variable: Variable) -> Variable:
    """Return a variable for one of the rows of a sequence of which nobody knows how many there are."""
    return Variable.of(Aval(variable.shape[1:], variable.dtype), "")


def rows_in_order(variable: Variable, length: int) -> Variable:
    """Return a variable for a sequence; raise UnfitError if its rows do not lie in memory one behind the other."""
    found = sequence_of(variable, length)
    if axes_in_kernels(found) != tuple(behind(axes_in_kernels(variable))):
        raise UnfitError
    return found


def memory_of(program: Program) -> int:
    """Return about how many bytes of memory a program needs besides inputs and outputs."""
    own = [b.size * b.dtype.itemsize for b in program.buffers if b.kind not in ("input", "output")]
    loops = [s.body for s in program.steps if isinstance(s, Loop)]
    copies = [b.size * b.dtype.itemsize for body in loops for b in body.buffers if b.kind in ("input", "output")]
    programs = {id(inner): inner for inner in program.programs}
    return sum(own) + sum(copies) + sum(map(memory_of, programs.values()))
