"""Graphs as one program whose steps are programs of kernels, loops, and routines of small matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import is_counted
from wengert.core.memory.buffers import as_bytes
from wengert.core.memory.memory_layout import is_uniform
from wengert.core.values.aval import PARTS, UNKNOWN, Aval, aval_of
from wengert.emission.arena import MOVED
from wengert.kernel.checking import DTYPES
from wengert.kernel.kernel import Buffer, Carried, Copy, Invoke, Loop, Program, ProgramStep, Row, Run, Switch
from wengert.lowering.aligned_rows import lengthen, lengthen_array
from wengert.lowering.correlation_steps import CorrelationStep
from wengert.lowering.iterations import MOST_ROUNDS, LoopIteration, behind, sequence_of
from wengert.lowering.kernel_stages import program_of
from wengert.lowering.matrix_steps import MatrixRoutine
from wengert.lowering.nodes import Nodes
from wengert.lowering.products import ProductStep, axes_of
from wengert.lowering.rules.lower import Lowered, lower
from wengert.lowering.writes import WriteStep, first_of
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import Change
from wengert.passes.inlining import splice
from wengert.passes.output_aliasing import axes_in_kernels, with_own_results
from wengert.passes.segments import array_kind, as_array
from wengert.primitives.conversion import astype
from wengert.primitives.shapes import transpose
from wengert.support.records import NamedTuple

Lent = Mapping[Variable, Variable]
EMPTY: Lent = {}


class UnfitError(Exception):
    """Say that something cannot be a step of a program."""


class Rounds(NamedTuple):
    """Hold a loop that can be a step: an iteration, its program, and that of the condition, if there is one."""

    iteration: LoopIteration
    body: Program
    condition: Program | None

    @property
    def results(self) -> dict[Variable, str]:
        """The buffers of the body that results are in: what it changes, or its outputs."""
        names = dict(zip(self.iteration.inputs, self.body.inputs, strict=True))
        found = {x: names[v] for x, v in self.iteration.lent.items() if names[v] in self.body.changed_inputs}
        others = [x for x in self.iteration.graph.outputs if x not in found]
        return {**found, **dict(zip(others, self.body.outputs, strict=False))}


class Once(NamedTuple):
    """Hold a graph that can be a step, with its program."""

    graph: Graph
    program: Program


class Choice(NamedTuple):
    """Hold graphs of which one is chosen.

    Attributes:
        cases: for each which operands it reads, of these alone, and its program.
        results: variables that lie as the results of all do.
    """

    cases: Sequence[tuple[Sequence[bool], Graph, Program]]
    results: Sequence[Variable]


class ZeroRows(NamedTuple):
    """Be rows of zeros, as many as are read, which may be such rows again.

    Attributes:
        depth: how often they are rows of rows.
    """

    depth: int


GraphStep = Once | Rounds | Choice | ZeroRows | ProductStep | MatrixRoutine | CorrelationStep | WriteStep
"""What an equation may be in a program that is no kernel."""


class StepsWriter:
    """Write the steps of a program.

    Args:
        graph: its inputs and outputs, which are variables.
        changes: what its steps may change in place, in order, with what that is then.
        lent: the outputs that may lie in the memory of inputs, and these: nobody needs what these were.

    Attributes:
        names: of the buffers of variables.
        longer: the buffers of matrices in longer rows, by these and the shapes.
        taken_over: the names of those that steps change.
        following: what is to follow the step that is being written.
        copied: the outputs that are inputs, or other outputs, too, with the buffers that they are copied to.
    """

    def __init__(self, graph: Graph, changes: Sequence[Change] = (), lent: Lent = EMPTY) -> None:
        self.graph = graph
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[ProgramStep] = []
        self.following: list[ProgramStep] = []
        before = {v: x for x, v in changes}
        returned = [first_of(before, v) if v in before else None for v in graph.outputs]
        returned = [
            x if x is not None and lent.get(v) is x else None for v, x in zip(graph.outputs, returned, strict=True)
        ]
        given = [
            self.enter(f"x{n}", shape_of(v), dtype_of(v), "changed" if v in returned else "input")
            for n, v in enumerate(graph.inputs)
        ]
        self.names: dict[Variable, str] = dict(zip(graph.inputs, given, strict=True))
        self.longer: dict[tuple[Variable, tuple[int, ...]], str] = {}
        self.copied: list[tuple[Variable, str]] = []
        for n, (v, x) in enumerate(zip(graph.outputs, returned, strict=True)):
            if x is not None:
                self.names[v] = self.names[x]
                continue
            name = self.enter(f"y{n}", shape_of(v), dtype_of(v), "output")
            if self.names.setdefault(v, name) != name:
                self.copied.append((v, name))
        self.taken_over = {self.take_over(x, v) for x, v in reversed(changes)}

    def take_over(self, x: Variable, v: Variable) -> str:
        """Let what a variable becomes by a change lie where it lies itself, unless that is fixed; return where."""
        if v not in self.names:
            self.names[v] = self.room(shape_of(v), dtype_of(v))
        self.names.setdefault(x, self.names[v])
        return self.names[v]

    def program(self) -> Program:
        """Return the program."""
        steps = (*self.steps, *[Copy(self.names[v], name) for v, name in self.copied])
        kinds = ("input", "changed"), ("output",)
        inputs, outputs = [[b.name for b in self.buffers.values() if b.kind in own] for own in kinds]
        failing = f"y{len(self.graph.outputs)}" if any(step.may_fail for step in steps) else ""
        if failing:
            outputs.append(self.enter(failing, (), np.dtype(bool), "output"))
        return Program(tuple(inputs), tuple(outputs), tuple(self.buffers.values()), steps, failing)

    def enter(self, name: str, shape: tuple[int, ...], dtype: Any, kind: Any, contents: bytes = b"") -> str:
        """Enter a buffer; return its name."""
        if 0 in shape or dtype not in DTYPES:
            raise UnfitError
        self.buffers[name] = Buffer(name, shape, dtype, kind, contents)
        return name

    def room(self, shape: tuple[int, ...], dtype: Any) -> str:
        """Enter a buffer of the program's own; return its name."""
        return self.enter(f"t{len(self.buffers)}", shape, dtype, "temporary")

    def read(self, x: Any, like: Variable) -> str:
        """Return the buffer of a variable or literal as a step reads it: in the memory order of another variable."""
        if type(x) is not Variable:
            array = as_array(like, lengthen_array(x, like) if is_longer(like, aval_of(x)) else x)
            return self.enter(f"c{len(self.buffers)}", array.shape, array.dtype, "constant", as_bytes(array))
        if UNKNOWN not in x.shape and not are_alike(x, like):
            is_shared = is_longer(like, x)  # by loops, none of which changes it
            if is_shared and (x, like.shape) in self.longer:
                return self.longer[x, like.shape]
            name = self.room(shape_of(like), dtype_of(like))
            self.steps.append(Run(conversion(x, like), (self.names[x], name)))
            if is_shared:
                self.longer[x, like.shape] = name
            return name
        return self.names[x]

    def write(self, x: Variable, like: Variable) -> str:
        """Return the buffer that a step writes, in the memory order of another variable; a copy follows the step."""
        if UNKNOWN not in x.shape and not are_alike(x, like):
            name = self.room(shape_of(like), dtype_of(like))
            self.following.append(Run(conversion(like, x), (name, self.write(x, x))))
            return name
        if x not in self.names:
            self.names[x] = self.room(shape_of(x), dtype_of(x))
        return self.names[x]

    def rows_of(self, x: Any, row: Variable, length: int | None) -> tuple[Any, Variable]:
        """Return a sequence, and a variable that lies as it has to for its rows to lie one behind the other.

        Args:
            x: all of them.
            row: what a step has as one of them.
            length: how many there are; None if nobody knows.

        Raises:
            UnfitError: they cannot lie so.
        """
        if length is None or UNKNOWN in row.shape:
            if type(x) is not Variable or long_axes(row) != sorted(long_axes(row)):
                raise UnfitError
            return x, x
        found = sequence_of(row, length)
        if axes_in_kernels(found) != tuple(behind(axes_in_kernels(row))):
            raise UnfitError
        return x, found

    def without_aliases(self, part: Graph) -> Graph:
        """Let what is only transposed be where it lies; return a graph of what else a part computes."""
        found: set[Variable] = set()
        for equation in [e for e in part.equations if e.primitive is transpose]:
            (x,), (v,) = equation.inputs, equation.outputs
            known = type(x) is Variable and self.names.get(x, "") not in {"", *self.taken_over}
            if known and v not in self.names and lies_there(equation):
                self.names[v] = self.names[x]
                found.add(v)
        return eliminate_dead(Graph(part.inputs, part.equations, [v for v in part.outputs if v not in found]))

    def add(self, part: Graph, step: Program | GraphStep) -> None:
        """Add a part of the graph: a program of kernels, or an equation that is a step of another sort."""
        if isinstance(step, Program):
            variables = (*part.inputs, *part.outputs)
            self.steps.append(Run(step, tuple([self.write(v, v) for v in variables])))
        elif isinstance(step, Once):
            self.add_run(step, part.equations[0])
        elif isinstance(step, Rounds):
            self.add_loop(step, part.equations[0])
        elif isinstance(step, Choice):
            self.add_choice(step, part.equations[0])
        elif isinstance(step, ZeroRows):
            self.add_zeros(step, part.equations[0].outputs[0])
        elif isinstance(step, ProductStep):
            self.add_product(step, part.equations[0])
        elif isinstance(step, WriteStep):
            self.add_write(step, part.equations[0])
        else:
            self.add_routine(step, part.equations[0])
        self.steps += self.following
        self.following.clear()

    def add_run(self, once: Once, equation: Equation) -> None:
        """Add a run of a graph's program."""
        read = map(self.read, equation.inputs, once.graph.inputs)
        outputs = once.graph.outputs
        results = (*equation.outputs, *outputs[len(equation.outputs) :])  # and what has to hold
        made = map(self.write, results, outputs)
        self.steps.append(Run(once.program, (*read, *made)))

    def add_write(self, step: WriteStep, equation: Equation) -> None:
        """Add a write."""
        (base, *others), (v,) = step.inputs, equation.outputs
        name = self.change(base, v)
        self.steps.append(Run(step.program, (name, *[self.read(x, x) for x in others])))

    def change(self, x: Variable, v: Variable) -> str:
        """Return the buffer in which a step changes one variable to another, behind a copy if the first has to stay."""
        before, name = self.names[x], self.write(v, v)
        if before != name:
            self.steps.append(Copy(before, name))
        return name

    def add_product(self, step: ProductStep, equation: Equation) -> None:
        """Add a product of matrices."""
        if step.base is not None:
            left, right = map(self.read, step.operands[:2], step.inputs[:2])
            into = self.change(step.base, equation.outputs[0])
            self.steps.append(step.product(into, left, right, into))
            return
        read = list(map(self.read, step.operands, step.inputs))
        if step.doubled is not None:
            own = step.doubled
            name = self.room(own.space, PARTS[own.x.dtype])
            self.steps.append(Run(own.program(), (read[own.place], name)))
            read[own.place] = name
        self.steps.append(step.product(self.write(equation.outputs[0], step.output), *read))

    def add_routine(self, routine: MatrixRoutine | CorrelationStep, equation: Equation) -> None:
        """Add a routine of matrices, or a correlation."""
        operands = routine.operands if isinstance(routine, MatrixRoutine) else equation.inputs
        read = list(map(self.read, operands, routine.inputs))
        made = list(map(self.write, equation.outputs, routine.outputs))
        fields = tuple(routine.fields.items())
        self.steps.append(Invoke(routine.name, (*read, *made), len(made), fields, routine.work, routine.cycles))

    def add_choice(self, choice: Choice, equation: Equation) -> None:
        """Add a choice between programs, which read what is given in the memory order of each."""
        index, *given = equation.inputs
        truth, number = np.dtype(bool), np.dtype(np.int64)
        kind = truth if aval_of(index).dtype == truth else number
        which = self.read(index, Variable.of(Aval((), kind)))
        read = [tuple(map(self.read, compress(given, needed), graph.inputs)) for needed, graph, _ in choice.cases]
        made = tuple(map(self.write, equation.outputs, choice.results))
        cases = [Run(program, (*own, *made)) for own, (*_, program) in zip(read, choice.cases, strict=True)]
        self.steps.append(Switch(which, tuple(cases)))

    def add_zeros(self, zeros: ZeroRows, variable: Variable) -> None:
        """Add rows of zeros, all of which are one row."""
        row, dtype = shape_of(variable)[zeros.depth :], dtype_of(variable)
        contents = np.zeros(row, dtype).tobytes()
        name = self.enter(f"c{len(self.buffers)}", row, dtype, "constant", contents)
        for depth in range(1, zeros.depth + 1):
            is_last = depth == zeros.depth
            rows = self.write(variable, variable) if is_last else self.room((UNKNOWN,) * depth + row, dtype)
            self.steps.append(Copy(name, rows))
            name = rows

    def add_loop(self, loop: Rounds, equation: Equation) -> None:
        """Add a loop; raise UnfitError if something does not lie as it wants it."""
        iteration, body, spec = loop.iteration, loop.body, loop.iteration.spec
        own, ahead = spec.constants, spec.constants + spec.carried
        given = equation.inputs[int(is_counted(iteration.params)) :]
        names = dict(zip(iteration.inputs, body.inputs, strict=True))
        outs = loop.results
        inputs = list(zip(given, iteration.inputs, strict=True))
        constants = tuple([Row(self.read(x, v), names[v]) for x, v in inputs[:own]])
        starts = [self.start(x, v, end) for (x, v), end in zip(inputs[own:ahead], equation.outputs, strict=False)]
        rows = [Row(self.read(*self.rows_of(x, v, spec.length)), names[v]) for x, v in inputs[ahead:]]
        made: dict[Variable, Variable] = {}
        for v, x in zip(iteration.left, equation.outputs[spec.carried :], strict=True):
            if v not in made:
                made[v] = x
                rows.append(Row(self.write(*self.rows_of(x, v, spec.length)), outs[v]))
        ends = zip(starts, iteration.inputs[own:ahead], iteration.carried, equation.outputs, strict=False)
        carried = tuple([self.carry_value(start, v, names[v], x, outs, end) for start, v, x, end in ends])
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

    def start(self, x: Any, like: Variable, end: Variable) -> str:
        """Return the buffer that a loop begins with: its result, filled, for one number in many places."""
        if type(x) is not np.ndarray or x.nbytes <= MOVED or not is_uniform(x) or not are_alike(end, like):
            return self.read(x, like)
        nodes, array = Nodes(), as_array(like, x)
        if not is_uniform(array):  # a complex number is two
            return self.read(x, like)
        value, name = nodes.constant(array.flat[0], array.dtype), self.write(end, end)
        self.steps.append(Run(program_of(Lowered(nodes, (), ((value, array.shape),), {})), (name,)))
        return name

    def carry_value(
        self, start: str, variable: Variable, into: str, x: Any, outs: dict[Variable, str], end: Variable
    ) -> Carried:
        """Return how a value is carried: from a buffer, as an input of the body, which gives it or it is known."""
        is_known = type(x) is not Variable
        known = self.read(x, variable) if is_known else ""
        result = self.write(end, variable)
        return Carried(start, into, "" if is_known else outs[x], known, result)

    def rounds_of(self, iteration: LoopIteration) -> int:
        """Return how many iterations there are, at most if nobody knows."""
        spec = iteration.spec
        if iteration.params["cond"] is not None and iteration.is_once:
            return 1
        return MOST_ROUNDS if spec.length is None else int(spec.length)

    def count_of(self, limit: Any) -> str:
        """Return the buffer that holds how often a loop runs; raise UnfitError if lanes differ in that."""
        if aval_of(limit).shape:
            raise UnfitError
        return self.read(limit, Variable.of(Aval((), np.dtype(np.int64))))

    def share_rows(self, iteration: LoopIteration, results: Sequence[Variable]) -> None:
        """Let sequences of the same rows be one, to which nobody writes again, and copies where several are outputs."""
        first: dict[Variable, Variable] = {}
        for v, x in zip(iteration.left, results, strict=True):
            if first.setdefault(v, x) is not x:
                name = self.read(first[v], x)
                if x in self.names or name in self.taken_over:
                    self.steps.append(Copy(name, self.write(x, x)))
                else:
                    self.names[x] = name


def are_alike(x: Variable, like: Variable) -> bool:
    """Tell whether two values lie in memory alike, wherever axes of length one stand."""
    return x.dtype == like.dtype and long_axes(x) == long_axes(like) and not is_longer(like, x)


def is_longer(like: Variable, x: Any) -> bool:
    """Tell whether a variable is a matrix in longer rows than a value has."""
    return len(like.shape) == len(x.shape) == 2 and math.prod(like.shape) > math.prod(x.shape)


def with_results_like(graph: Graph, results: Sequence[Variable]) -> Graph:
    """Return a graph that writes each result to memory of its own, where it lies as a variable does."""
    graph = with_own_results(graph)
    equations, outputs = list(graph.equations), list[Variable]()
    made = {v: equation for equation in equations for v in equation.outputs}
    for x, like in zip(graph.outputs, results, strict=True):
        is_own = x in made and x not in outputs if type(x) is Variable else False
        if UNKNOWN in like.shape:
            is_again = not is_own and x in made
            outputs += splice(Graph((), (made[x],), (x,)), (), equations) if is_again else (x,)
            continue
        if not is_own or not are_alike(x, like):
            equations.append(rewriting(x, like))
            x = equations[-1].outputs[0]
        outputs.append(x)
    return Graph(graph.inputs, equations, outputs)


def lies_there(equation: Equation) -> bool:
    """Tell whether a value lies in memory as what it is transposed from does."""
    (x,), (v,) = equation.inputs, equation.outputs
    if UNKNOWN in x.shape or x.dtype != v.dtype:
        return False
    own = axes_of(equation.params, len(x.shape))
    return [own[axis] for axis in long_axes(v)] == long_axes(x) and shape_of(x) == shape_of(v)


def conversion(x: Variable, like: Variable) -> Program:
    """Return the program that writes a value as another one lies in memory, in its dtype."""
    given = Variable(x.shape, x.dtype, "", x.strides)
    equation = lengthen(given, like) if is_longer(like, given) else rewriting(given, like)
    lowered = lower(Graph((given,), (equation,), equation.outputs))
    if lowered.refused:
        raise UnfitError
    return program_of(lowered)


def rewriting(x: Any, like: Variable) -> Equation:
    """Return the equation that writes a value as another one lies in memory, in its dtype."""
    made = Variable(like.shape, like.dtype, "", like.strides)
    return Equation(astype, (x,), {"dtype": made.dtype}, (made,))


def long_axes(variable: Variable) -> list[int]:
    """Return the axes along which there is more than one element, in the order in which kernels have them."""
    return [axis for axis in axes_in_kernels(variable) if variable.shape[axis] != 1]


def shape_of(variable: Variable) -> tuple[int, ...]:
    """Return the shape of a variable's buffer."""
    return array_kind(variable).shape


def dtype_of(variable: Variable) -> Any:
    """Return the dtype of a variable's buffer."""
    return array_kind(variable).dtype
