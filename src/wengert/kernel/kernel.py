"""The kernel IR: what a native function does, as loops over static spaces with affine index maps.

A program is a list of steps over named buffers: kernels, or steps that run other programs, once, again and again, or
one of several, that copy, multiply matrices, and call a function by its name. A kernel runs its stages for each row:
an outer dimension, number 0 in every index map (a kernel without rows has one). A stage is one iteration space over
the inner dimensions: operations in single static assignment, followed by stores and reductions. Views of arrays only
change index maps.

What a reduction gives depends on what it reduces over:

* all inner dimensions but not the rows: a number of the row, which later stages use by name ("row");
* some inner dimensions: a buffer of the row ("nested");
* the rows and all inner dimensions: one number in memory ("total");
* the rows but not all inner dimensions: a buffer that every row adds to ("column");
* one inner dimension, each step of which gives what has been combined so far: a buffer ("scan").

Records are frozen: a pass returns new ones. They hold no text, no address, no target and no thread count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from wengert.support.records import FieldRecord

Constant = float | int | bool
BufferKind = Literal["input", "changed", "output", "temporary", "row", "constant"]
ReductionKind = Literal["row", "nested", "total", "column", "scan"]

UNKNOWN = -1
"""The length of rows that grow: those that loops leave behind until a condition ends them, or a count."""


class Affine(FieldRecord):
    """Map an index of the iteration space to an element of a buffer: a constant plus coefficients times the index.

    Attributes:
        constant: in elements.
        coefficients: one for each dimension of the stage; 0 broadcasts, negative ones flip.
    """

    constant: int
    coefficients: tuple[int, ...]


class Bound(FieldRecord):
    """Say where along one dimension something holds: low <= index < high."""

    dimension: int
    low: int
    high: int


Guard = tuple[Bound, ...]
"""Where all bounds hold; nothing bounds what has none."""


class Operation(FieldRecord):
    """One scalar operation of a stage, named by its place there.

    Attributes:
        name: the opcode.
        operands: places of earlier operations of the stage.
        dtype: of the result.
        buffer: what `load` and `gather` read; the sorted row that `search_left` and `search_right` search for their
            operand, all of it; the number that `number` means.
        at: where in the buffer; `gather` adds its operand to it. For `index` its value.
        guard: a load or gather reads nothing where its guard does not hold, and gives zero; `pick` is its first operand
            where the guard holds, else the second.
        value: of a `constant`.
    """

    name: str
    operands: tuple[int, ...]
    dtype: np.dtype[np.generic]
    buffer: str = ""
    at: Affine | None = None
    guard: Guard = ()
    value: Constant = 0.0


class Store(FieldRecord):
    """Write the value of an operation into a buffer, where a guard holds."""

    buffer: str
    at: Affine
    value: int
    guard: Guard = ()


class Reduce(FieldRecord):
    """Combine the values of an operation over some dimensions.

    Attributes:
        combine: an opcode that is associative: add, multiply, maximum, minimum, and, or.
        value: the place of the operation.
        kind: what it gives; see the module.
        over: the dimensions, 0 being the rows.
        into: the name of the number, or the buffer.
        at: where in the buffer; the coefficients of the dimensions that it reduces over are 0, but of a scan.
        factor: the place of an operation by which a scan multiplies what it has so far before it adds.
    """

    combine: str
    value: int
    kind: ReductionKind
    over: tuple[int, ...]
    into: str
    at: Affine | None = None
    factor: int | None = None

    @property
    def values(self) -> tuple[int, ...]:
        """The places of the operations that it is of."""
        return (self.value,) if self.factor is None else (self.value, self.factor)


class Update(FieldRecord):
    """Change a buffer that is full at computed places, one point after the other in the order of the dimensions.

    Attributes:
        buffer: what is changed.
        value: the place of the operation that is written or added.
        index: the place of the operation that tells where, in elements of the buffer.
        at: where from, to which that is added.
        add: whether the value is added to what is there.
    """

    buffer: str
    value: int
    index: int
    at: Affine
    add: bool = False


class Stage(FieldRecord):
    """One iteration space and what is computed at each of its points.

    Attributes:
        extents: of the dimensions; the first is the rows.
        operations: in order of evaluation.
        stores: what is written at each point.
        reductions: what is combined over the points.
        lane: the dimension that vector lanes run over; 0 for none.
        updates: what is changed at computed places, in the only row; lanes run over other elements of these alone.
    """

    extents: tuple[int, ...]
    operations: tuple[Operation, ...] = ()
    stores: tuple[Store, ...] = ()
    reductions: tuple[Reduce, ...] = ()
    lane: int = 0
    updates: tuple[Update, ...] = ()

    @property
    def results(self) -> tuple[int, ...]:
        """The places of the operations whose values leave the stage, and of those that tell where to."""
        stored = [store.value for store in self.stores]
        reduced = [n for reduction in self.reductions for n in reduction.values]
        return (*stored, *reduced, *[n for update in self.updates for n in (update.value, update.index)])

    def has_updates_beside(self, dimension: int) -> bool:
        """Tell whether points along a dimension, the last one, change elements side by side, in any order."""
        if dimension != len(self.extents) - 1 or not all(u.at.coefficients[dimension] == 1 for u in self.updates):
            return False
        moving = set[int]()
        for n, operation in enumerate(self.operations):
            is_moved = operation.at is not None and operation.at.coefficients[dimension] != 0
            is_moved = is_moved or any(bound.dimension == dimension for bound in operation.guard)
            if is_moved or not moving.isdisjoint(operation.operands):
                moving.add(n)
        return all(update.index not in moving for update in self.updates)


class Keep(FieldRecord):
    """Write a number of the row into a buffer at the end of the row; `at` has one coefficient, that of the row."""

    number: str
    buffer: str
    at: Affine


class ProgramStep:
    """One step of a program.

    A further sort of them is a record here, its line in `grammar`, what does not fit in it in `checking`, what it
    computes in `evaluation`, and, for this processor, what writes it in `emission/driver`, or `emission/loops`; all
    else asks these members.
    """

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the buffers that it reads; of kernels their stages tell."""
        return ()

    @property
    def writes(self) -> tuple[str, ...]:
        """The names of those that it writes."""
        return ()

    @property
    def changes(self) -> tuple[str, ...]:
        """The names of those that it reads and then writes in place."""
        return ()

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs that it runs."""
        return ()

    @property
    def may_fail(self) -> bool:
        """Whether it may find that it cannot compute what it should: as a program that it runs may."""
        return any(program.failing for program in self.programs)

    def with_programs(self, change: Callable[[Program], Program]) -> ProgramStep:
        """Return it with other programs in place of those that it runs."""
        return self


class Kernel(FieldRecord, ProgramStep):
    """Stages that run one after the other for each row.

    Attributes:
        rows: how many; they are independent but for totals and columns.
        stages: in order.
        kept: numbers of the row that are written to memory.
        tile: how many rows are carried out together.
    """

    rows: int
    stages: tuple[Stage, ...]
    kept: tuple[Keep, ...] = ()
    tile: int = 1


class Buffer(FieldRecord):
    """Name memory: contiguous, of one dtype.

    Attributes:
        name: unique in the program.
        shape: of the array, or of one row's part of it; of rows that grow, the first length is `UNKNOWN`.
        dtype: of its elements; complex numbers are pairs of floating-point ones along a last axis.
        kind: an input and an output come from the caller; what is changed is an input that the program writes to; a
            temporary lives from its first to its last kernel; a row buffer during one row; constants (`contents`, in C
            order) always.
        contents: bytes of a constant.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    kind: BufferKind
    contents: bytes = b""

    @property
    def size(self) -> int:
        """How many elements it has; of rows that grow, how many one of them has."""
        return math.prod([n for n in self.shape if n != UNKNOWN])

    @property
    def grows(self) -> bool:
        """Whether it holds rows that grow, which may be of such rows again."""
        return UNKNOWN in self.shape

    def holds_rows_of(self, other: Buffer) -> bool:
        """Tell whether another buffer may be one of the rows that grow here."""
        lengths = [x.shape.count(UNKNOWN) for x in (self, other)]
        return lengths[0] == lengths[1] + 1 and (self.size, self.dtype) == (other.size, other.dtype)


class Run(FieldRecord, ProgramStep):
    """Run a program.

    Attributes:
        program: it fails where this one does.
        arguments: the buffers that are its inputs, then its outputs, but for the one that tells that it failed.
    """

    program: Program
    arguments: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """The inputs."""
        return self.arguments[: len(self.program.inputs)]

    @property
    def writes(self) -> tuple[str, ...]:
        """The outputs, and what is changed."""
        return (*self.arguments[len(self.program.inputs) :], *self.changes)

    @property
    def changes(self) -> tuple[str, ...]:
        """The inputs that the program changes."""
        changed = self.program.changed_inputs
        return tuple([x for x, name in zip(self.arguments, self.program.inputs, strict=False) if name in changed])

    @property
    def programs(self) -> tuple[Program, ...]:
        """The one that it runs."""
        return (self.program,)

    def with_programs(self, change: Callable[[Program], Program]) -> Run:
        """Return a run of another program."""
        return self.replace(program=change(self.program))


class Switch(FieldRecord, ProgramStep):
    """Run one of several programs.

    Attributes:
        index: the buffer that says which one: a truth, or a whole number; the first for a number that none has.
        cases: what is run; all of them write the same buffers.
    """

    index: str
    cases: tuple[Run, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """The index, and what any of them reads."""
        return (self.index, *dict.fromkeys(name for case in self.cases for name in case.reads))

    @property
    def writes(self) -> tuple[str, ...]:
        """What each of them writes."""
        return self.cases[0].writes if self.cases else ()

    @property
    def programs(self) -> tuple[Program, ...]:
        """All of them."""
        return tuple([case.program for case in self.cases])

    def with_programs(self, change: Callable[[Program], Program]) -> Switch:
        """Return a choice of other programs."""
        return self.replace(cases=tuple([case.with_programs(change) for case in self.cases]))


class Copy(FieldRecord, ProgramStep):
    """Copy all of a buffer into another of its size and dtype; in rows of what it holds it stands for each of them."""

    source: str
    target: str

    @property
    def reads(self) -> tuple[str, ...]:
        """What is copied."""
        return (self.source,)

    @property
    def writes(self) -> tuple[str, ...]:
        """Where to."""
        return (self.target,)


class Invoke(FieldRecord, ProgramStep):
    """Call a function that is known by a name.

    Attributes:
        name: of the function, which gets the addresses of the arguments and of a byte that says that it failed.
        arguments: buffers: operands, then results.
        results: how many of these there are.
        fields: whole numbers that it is given, by their names.
        work: bytes of memory that it needs.
        cycles: about how long it takes.
    """

    name: str
    arguments: tuple[str, ...]
    results: int
    fields: tuple[tuple[str, int], ...]
    work: int
    cycles: float

    @property
    def may_fail(self) -> bool:
        """That it may."""
        return True

    @property
    def reads(self) -> tuple[str, ...]:
        """The operands."""
        return self.arguments[: -self.results]

    @property
    def writes(self) -> tuple[str, ...]:
        """The results."""
        return self.arguments[-self.results :]


class Product(FieldRecord, ProgramStep):
    """Multiply two buffers at each point of a space, and add up along the dimensions along which the result stays.

    A product of matrices has three dimensions, stacks of them more; transposes only change index maps. In which order
    terms are added is left open.

    Attributes:
        into: the buffer of the results, each cell of which is written, or a part of it to which they are added.
        at: which cell a point is added to; it stays along the dimensions that are added up.
        left, right: the buffers of the factors.
        left_at, right_at: where in them.
        extents: of the dimensions.
        addend: the buffer of what is added to sums, if anything is.
        addend_at: where in it, for the point of a sum: it stays along what is added up, too.
    """

    into: str
    at: Affine
    left: str
    left_at: Affine
    right: str
    right_at: Affine
    extents: tuple[int, ...]
    addend: str = ""
    addend_at: Affine | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """The factors, and what is added."""
        return (self.left, self.right, self.addend) if self.addend else (self.left, self.right)

    @property
    def writes(self) -> tuple[str, ...]:
        """The result."""
        return (self.into,)

    @property
    def changes(self) -> tuple[str, ...]:
        """The result, if the product is added to what is there."""
        return (self.into,) if self.addend == self.into else ()

    @property
    def maps(self) -> tuple[Affine, ...]:
        """Where points lie in the buffers that it reads, and in the one that it writes."""
        return tuple([at for at in (self.left_at, self.right_at, self.addend_at, self.at) if at is not None])

    @property
    def sizes(self) -> tuple[int, ...]:
        """How long dimensions are for the result: 1 along what is added up."""
        return tuple([n if step else 1 for n, step in zip(self.extents, self.at.coefficients, strict=True)])


class Carried(FieldRecord):
    """Say what one iteration of a loop hands to the next.

    Attributes:
        start: the buffer that the first one reads.
        into: the input of the body.
        out: the output of the body that is the next input, or that input, which the body changes; none for a value that
            is known.
        known: the buffer of such a value.
        result: the buffer that holds it in the end; it may be the first one.
    """

    start: str
    into: str
    out: str
    known: str
    result: str


class Row(FieldRecord):
    """Say that each iteration of a loop has a row of a buffer, one after the other.

    Attributes:
        buffer: of the rows.
        row: the input or output of the body.
    """

    buffer: str
    row: str


class Loop(FieldRecord, ProgramStep):
    """Run a program again and again.

    Attributes:
        body: the program of an iteration. The loop fails where it does, and where `rounds` are too few.
        constants: buffers, and the inputs of the body that they are in each iteration.
        carried: what changes from one to the next.
        rows: what is read and left behind; from the last row to the first, if it is `reverse`.
        rounds: how many iterations there are; at most, if there is a `count`, or a condition.
        count: the buffer that says how many, if that is not known.
        starts: the buffer that says whether there is a first one, if a condition tells.
        going: the output of the body that says whether there is a next one, if a condition tells.
        reverse: whether rows are read and written from their ends.
    """

    body: Program
    constants: tuple[Row, ...]
    carried: tuple[Carried, ...]
    rows: tuple[Row, ...]
    rounds: int
    count: str = ""
    starts: str = ""
    going: str = ""
    reverse: bool = False

    @property
    def may_fail(self) -> bool:
        """That it may."""
        return True

    @property
    def reads(self) -> tuple[str, ...]:
        """What iterations read, and what tells how many there are."""
        starts = [name for x in self.carried for name in (x.start, x.known) if name]
        rows = [row.buffer for row in self.rows if row.row in self.body.inputs]
        told = [name for name in (self.count, self.starts) if name]
        return (*[x.buffer for x in self.constants], *starts, *rows, *told)

    @property
    def writes(self) -> tuple[str, ...]:
        """What is carried at the end, and what iterations leave behind."""
        return (*[x.result for x in self.carried], *[x.buffer for x in self.rows if x.row in self.body.outputs])

    @property
    def changes(self) -> tuple[str, ...]:
        """What is carried at the end where it was at first."""
        return tuple([x.result for x in self.carried if x.result == x.start])

    @property
    def programs(self) -> tuple[Program, ...]:
        """That of an iteration."""
        return (self.body,)

    def with_programs(self, change: Callable[[Program], Program]) -> Loop:
        """Return a loop of another program."""
        return self.replace(body=change(self.body))


class Program(FieldRecord):
    """Steps over buffers, run in order: kernels alone, or steps of which each may run a program.

    Attributes:
        inputs: names of the buffers that the caller gives, in order.
        outputs: names of those that it receives.
        buffers: all of them.
        steps: in order.
        failing: the output, the last one, that says that the program could not compute the others, if that may be.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[ProgramStep, ...]
    failing: str = ""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Those steps that are kernels."""
        return tuple([step for step in self.steps if isinstance(step, Kernel)])

    @property
    def buffers_by_name(self) -> dict[str, Buffer]:
        """Its buffers by their names."""
        return {buffer.name: buffer for buffer in self.buffers}

    @property
    def changed_inputs(self) -> frozenset[str]:
        """The names of the inputs that it changes."""
        return frozenset([buffer.name for buffer in self.buffers if buffer.kind == "changed"])

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of inputs and outputs, but for the one that says that it failed."""
        return (*self.inputs, *[name for name in self.outputs if name != self.failing])

    @property
    def programs(self) -> tuple[Program, ...]:
        """Those that its steps run."""
        return tuple([program for step in self.steps for program in step.programs])

    @property
    def repeats(self) -> bool:
        """Whether it has a loop."""
        return any(isinstance(step, Loop) for step in self.steps) or any(inner.repeats for inner in self.programs)

    @property
    def is_nested(self) -> bool:
        """Whether it has steps that are no kernels."""
        return not all(isinstance(step, Kernel) for step in self.steps)
