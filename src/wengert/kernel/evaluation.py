"""Evaluation of kernels by NumPy: slow, and hostile to programs that rely on what a native one need not do.

The rows of a kernel are carried out in a few groups, in random order; memory is full of garbage; what is read must have
been written, at that very cell, and no cell is written twice. It evaluates what `checking` has found sound, and checks
again at each cell what that concluded from index maps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from wengert.errors import GraphError
from wengert.kernel.backend import Backend, Loaded
from wengert.kernel.grammar import parse_program, text
from wengert.kernel.kernel import (
    Affine,
    Buffer,
    Copy,
    Guard,
    Invoke,
    Kernel,
    Loop,
    Operation,
    Product,
    Program,
    ProgramStep,
    Reduce,
    Run,
    Stage,
    Store,
    Switch,
)
from wengert.kernel.opcodes import OPCODES, SEARCHING, evaluate_opcode

Array = np.ndarray[Any, Any]
GROUPS = 3
"""In how many groups rows are carried out: enough for an order to matter."""


Routines = Mapping[str, Callable[..., Sequence[Any] | None]]
"""Functions by their names, of operands and fields: they return results, or None if they failed."""


class Evaluator(Backend[str, str]):
    """Carry out programs by NumPy, from their text.

    Args:
        seed: of the order of rows, and of the garbage in memory.
        routines: what computes those that are called by name.
    """

    name = "evaluator"

    def __init__(self, seed: int = 0, routines: Routines | None = None) -> None:
        self.seed, self.routines = seed, routines

    def render(self, program: Program) -> str:
        """Return a program as text."""
        return text(program)

    def build(self, code: str) -> str:
        """Return the text, which is all that is needed."""
        return code

    def load(self, image: str) -> Loaded:
        """Return what evaluates the program of a text."""
        return partial(evaluate, parse_program(image), seed=self.seed, routines=self.routines)


class Failed(Exception):
    """Say that a step could not compute what it should."""


def evaluate(
    program: Program, inputs: Sequence[Any], seed: int = 0, routines: Routines | None = None
) -> tuple[Array, ...]:
    """Return the values of a program's outputs; what it changes of the inputs is changed.

    Raises:
        GraphError: a cell is read before it was written, or written twice.
        IndexError: an index is out of bounds.
    """
    random = np.random.default_rng(seed)
    memory = {
        buffer.name: GrowingRows(buffer) if buffer.grows else BufferCells(buffer, 1, random)
        for buffer in program.buffers
        if buffer.kind != "row"
    }
    for name, value in zip(program.inputs, inputs, strict=True):
        memory[name].fill(value)
    steps = Steps(program, memory, random, routines or {})
    failed = False
    try:
        with np.errstate(all="ignore"):
            for step in program.steps:
                steps.run(step)
    except Failed:
        failed = True
    if program.is_nested and program.failing:
        memory[program.failing].fill(np.array(failed))
    for name, value in zip(program.inputs, inputs, strict=True):
        if name in program.changed_inputs and not failed:
            value.reshape(-1)[...] = memory[name].anything()
    return tuple([memory[name].anything() if failed else memory[name].result() for name in program.outputs])


class Steps:
    """Carry out the steps of a program."""

    def __init__(
        self, program: Program, memory: dict[str, BufferCells], random: np.random.Generator, routines: Routines
    ) -> None:
        self.program, self.memory, self.random, self.routines = program, memory, random, routines

    def run(self, step: ProgramStep) -> None:
        """Carry out one step."""
        match step:
            case Kernel():
                run_kernel(self.program, step, self.memory, self.random)
            case Copy():
                source, target = self.memory[step.source], self.memory[step.target]
                is_row = target.buffer.holds_rows_of(source.buffer)
                self.give(step.target, SameRows(source.result()) if is_row else source.result())
            case Product():
                self.multiply(step)
            case Run():
                own = list(map(self.value, step.arguments[: len(step.program.inputs)]))
                found = self.results(step.program, own)
                for name, value in zip(step.arguments[len(own) :], found, strict=False):
                    self.give(name, value)
            case Invoke():
                made = step.arguments[-step.results :]
                operands = list(map(self.value, step.arguments[: -step.results]))
                computed = self.routines[step.name](*operands, **dict(step.fields))
                if computed is None:
                    raise Failed
                for name, value in zip(made, computed, strict=True):
                    self.give(name, value)
            case Switch():
                index = int(self.value(step.index).item())
                self.run(step.cases[index if 0 <= index < len(step.cases) else 0])
            case Loop():
                self.repeat(step)

    def value(self, name: str) -> Array:
        """Return what a buffer holds."""
        return self.memory[name].result()

    def give(self, name: str, value: Any) -> None:
        """Write all of a buffer, which nothing has written before."""
        if self.memory[name].written.any():
            raise broken_program(name, "a buffer that is written twice", "each is written once")
        self.memory[name].fill(value)

    def multiply(self, step: Product) -> None:
        """Write what a product gives, to all of a buffer or to a part of one that holds something."""
        kept = [d for d, n in enumerate(step.sizes) if n > 1]
        dimensions = list(range(len(step.extents)))
        left = cells_at(self.value(step.left), step.left_at, step.extents)
        right = cells_at(self.value(step.right), step.right_at, step.extents)
        found = np.einsum(left, dimensions, right, dimensions, kept).reshape(step.sizes)
        if step.addend_at is not None:
            found = found + cells_at(self.value(step.addend), step.addend_at, step.sizes)
        buffer = self.memory[step.into].buffer
        made = self.value(step.into) if step.changes else np.empty(buffer.size, buffer.dtype)
        cells_at(made, step.at, step.sizes)[...] = found
        if not step.changes:
            self.give(step.into, made)

    def results(self, program: Program, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the outputs of a program that a step runs; raise Failed if it says so."""
        found = evaluate(program, inputs, int(self.random.integers(1 << 30)), self.routines)
        if program.failing and found[-1].item():
            raise Failed
        return found

    def repeat(self, loop: Loop) -> None:
        """Carry out a loop."""
        body, memory = loop.body, self.memory
        present = {x.row: self.value(x.buffer) for x in loop.constants}
        present |= {x.into: self.value(x.start).copy() for x in loop.carried}
        rounds = loop.rounds if not loop.count else self.value(loop.count).item()
        if rounds > loop.rounds:
            raise Failed
        going = not loop.starts or bool(self.value(loop.starts).item())
        for n in range(rounds if going else 0):
            where = rounds - 1 - n if loop.reverse else n
            for row in loop.rows:
                if row.row in body.inputs:
                    size = next(b.size for b in body.buffers if b.name == row.row)
                    present[row.row] = memory[row.buffer].row(where, size)
            found = dict(zip(body.outputs, self.results(body, [present[name] for name in body.inputs]), strict=True))
            for row in loop.rows:
                if row.row in body.outputs:
                    memory[row.buffer].leave(where, found[row.row])
                    memory[row.buffer].written[...] = True
            found |= {name: present[name] for name in body.changed_inputs}
            present |= {x.into: found[x.out] if x.out else self.value(x.known) for x in loop.carried}
            going = not loop.going or bool(found[loop.going].item())
            if not going:
                break
        if loop.going and going:
            raise Failed
        for x in loop.carried:
            if x.result == x.start:
                memory[x.result].fill(present[x.into])
            else:
                self.give(x.result, present[x.into])
        for row in loop.rows:
            memory[row.buffer].written[...] = True


def cells_at(array: Array, at: Affine, extents: Sequence[int]) -> Array:
    """Return the cells of a buffer at the points of a space, in its memory."""
    cells = array.reshape(-1)[at.constant :]
    return as_strided(cells, extents, [step * array.itemsize for step in at.coefficients])


class BufferCells:
    """Hold the cells of a buffer, one line of them for each row that has its own, and which have been written."""

    def __init__(self, buffer: Buffer, rows: int, random: np.random.Generator) -> None:
        self.buffer = buffer
        self.cells = random.integers(0, 256, (rows, buffer.size * buffer.dtype.itemsize), np.uint8).view(buffer.dtype)
        if buffer.dtype.kind == "f":
            self.cells[...] = np.nan
        elif buffer.dtype.kind == "b":
            self.cells[...] = random.integers(0, 2, self.cells.shape)
        self.written, self.rewritten = (np.zeros(self.cells.shape, bool) for _ in range(2))
        if buffer.kind == "constant":
            self.fill(np.frombuffer(buffer.contents, buffer.dtype))

    def fill(self, value: Any) -> None:
        """Write all cells."""
        self.cells[...] = np.asarray(value).reshape(1, -1)
        self.written[...] = True

    def row(self, n: int, size: int) -> Any:
        """Return one of rows of some size."""
        return self.cells[0, n * size : (n + 1) * size].copy()

    def leave(self, n: int, value: Any) -> None:
        """Write one of rows."""
        self.cells[0, n * value.size : (n + 1) * value.size] = value.reshape(-1)

    def anything(self) -> Any:
        """Return the cells, whatever they hold."""
        return self.cells[0]

    def result(self) -> Array:
        """Return the cells as an array, all of which must have been written."""
        if not self.written.all():
            raise broken_program(self.buffer.name, "a cell of an output that was not written", "all must be")
        return self.cells.reshape(self.buffer.shape)

    def read(self, rows: Array, at: Array, holds: Array) -> Array:
        """Return the cells at some indices, and zero where a guard does not hold."""
        rows, at, holds = np.broadcast_arrays(rows if len(self.cells) > 1 else rows * 0, at, holds)
        self.require_inside(at, holds)
        if not self.written[rows[holds], at[holds]].all():
            raise broken_program(self.buffer.name, "a cell that is read and was not written", "reads follow writes")
        if self.rewritten[rows[holds], at[holds]].any():
            raise broken_program(self.buffer.name, "a cell that is read and has been changed", "changes follow reads")
        found = np.zeros(at.shape, self.cells.dtype)
        found[holds] = self.cells[rows[holds], at[holds]]
        return found

    def write(self, rows: Array, at: Array, holds: Array, value: Array) -> None:
        """Write the cells at some indices where a guard holds."""
        rows, at, holds, value = np.broadcast_arrays(rows if len(self.cells) > 1 else rows * 0, at, holds, value)
        self.require_inside(at, holds)
        rows, at = rows[holds], at[holds]
        times = np.zeros(self.cells.shape, np.intp)
        np.add.at(times, (rows, at), 1)
        done = self.rewritten if self.buffer.kind == "changed" else self.written
        if (times > 1).any() or done[rows, at].any():
            raise broken_program(self.buffer.name, "a cell that is written twice", "each cell is written once")
        done[rows, at] = True
        self.cells[rows, at] = value[holds]

    def change(self, at: Array, value: Array, add: bool) -> None:
        """Change the cells at some indices one after the other; all must have been written."""
        self.require_inside(at, np.ones(at.shape, bool))
        if not self.written[0, at].all():
            raise broken_program(
                self.buffer.name, "a cell that is changed and was not written", "changes follow writes"
            )
        for i, x in zip(at, value, strict=True):
            self.cells[0, i] = self.cells[0, i] + x if add else x
        self.rewritten[0, at] = self.buffer.kind == "changed"

    def require_inside(self, at: Array, holds: Array) -> None:
        """Raise an IndexError if an index is out of bounds, negative ones included."""
        at = at[holds]
        if at.size and not (at.min() >= 0 and at.max() < self.buffer.size):
            raise IndexError(f"{self.buffer.name}: {at.min()} to {at.max()} of {self.buffer.size} elements")


ENDLESS = 1 << 36
"""The length of rows that are all the same, as whoever runs programs natively tells it."""


class SameRows:
    """Be rows that are all the same, as many as are read."""

    def __init__(self, row: Any) -> None:
        self.row = row

    def __getitem__(self, _n: int) -> Any:
        return self.row

    def __len__(self) -> int:
        return ENDLESS


class GrowingRows(BufferCells):
    """Hold rows that grow: arrays, or lists of such rows again."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer, self.written = buffer, np.zeros(1, bool)
        self.rows: Sequence[Any] = ()
        self.left: dict[int, Any] = {}

    def fill(self, value: Any) -> None:
        """Hold these rows."""
        self.rows = value
        self.written[...] = True

    def result(self) -> Any:
        """Return the rows, which must have been written."""
        if not self.written.all():
            raise broken_program(self.buffer.name, "rows that were not written", "all must be")
        return self.anything()

    def row(self, n: int, size: int) -> Any:
        """Return one of the rows."""
        return self.anything()[n]

    def leave(self, n: int, value: Any) -> None:
        """Write one of the rows."""
        self.left[n] = value

    def anything(self) -> Any:
        """Return the rows that there are."""
        return [self.left[n] for n in sorted(self.left)] if self.left else self.rows


def broken_program(name: str, given: str, needed: str) -> GraphError:
    """Return the error about a program that does what it must not."""
    return GraphError(f"kernel buffer {name}", given, needed, "Mend the pass that made the program")


def run_kernel(program: Program, kernel: Kernel, memory: dict[str, BufferCells], random: np.random.Generator) -> None:
    """Carry out a kernel, its rows in groups in random order."""
    started: set[str] = set()
    order = random.permutation(kernel.rows)
    for rows in filter(len, np.array_split(order, GROUPS)):
        own = {b.name: BufferCells(b, len(rows), random) for b in program.buffers if b.kind == "row"}
        group = RowGroup(kernel, rows, {**memory, **own}, started)
        for stage in kernel.stages:
            group.run(stage)
        for keep in kernel.kept:
            where = keep.at.constant + keep.at.coefficients[0] * rows
            memory[keep.buffer].write(np.zeros(1, np.intp), where, np.ones(1, bool), group.numbers[keep.number])


class RowGroup:
    """Carry out stages for some rows at once.

    Attributes:
        numbers: those of the rows so far, an element for each row.
        started: the totals and columns that have been added to.
    """

    def __init__(self, kernel: Kernel, rows: Array, memory: dict[str, BufferCells], started: set[str]) -> None:
        self.kernel = kernel
        self.rows = rows
        self.memory = memory
        self.started = started
        self.numbers: dict[str, Array] = {}

    def run(self, stage: Stage) -> None:
        """Carry out a stage."""
        space = Space(self.rows, stage.extents)
        values: list[Array] = []
        for operation in stage.operations:
            found = self.value(operation, [values[i] for i in operation.operands], space)
            if found.dtype != operation.dtype:
                raise broken_program(operation.name, f"{found.dtype} for {operation.dtype}", "dtypes must be as stated")
            values.append(found)
        for store in stage.stores:
            self.store(store, values[store.value], space)
        for update in stage.updates:
            places = values[update.index] + space.at(update.at)
            where, value = [np.broadcast_to(x, space.shape) for x in (places, values[update.value])]
            self.memory[update.buffer].change(where.reshape(-1), value.reshape(-1), update.add)
        for reduction in stage.reductions:
            (self.scan if reduction.kind == "scan" else self.reduce)(
                reduction, [values[n] for n in reduction.values], space
            )

    def value(self, operation: Operation, operands: Sequence[Array], space: Space) -> Array:
        """Return the values of an operation at the points of a space, of length one where they do not vary."""
        name, at = operation.name, operation.at
        if name == "constant":
            return np.full(space.ones, operation.value, operation.dtype)
        if name == "number":
            return self.numbers[operation.buffer].reshape(-1, *space.ones[1:])
        if name == "pick":
            return np.where(space.holds(operation.guard), *operands)
        if at is not None:
            where = space.at(at)
            if name == "index":
                return where.astype(operation.dtype)
            if name in SEARCHING:
                row = self.memory[operation.buffer].row(0, self.memory[operation.buffer].buffer.size)
                return np.searchsorted(row, operands[0], "right" if name == "search_right" else "left")
            if name == "gather":
                where = where + operands[0]
            return self.memory[operation.buffer].read(space.own_rows, where, space.holds(operation.guard))
        return np.asarray(evaluate_opcode(name, operation.dtype, operands))

    def store(self, store: Store, value: Array, space: Space) -> None:
        """Write the values of a store."""
        whole = np.broadcast_to(value, space.shape)
        self.memory[store.buffer].write(space.own_rows, space.at(store.at), space.holds(store.guard), whole)

    def scan(self, reduction: Reduce, values: Sequence[Array], space: Space) -> None:
        """Combine values one after the other, and write what there is after each."""
        combine: Any = OPCODES[reduction.combine].evaluate
        (axis,) = reduction.over
        value, *factors = [np.moveaxis(np.broadcast_to(x, space.shape), axis, 0) for x in values]
        found = np.array(value)
        for i in range(1, len(found)):
            before = found[i - 1] * factors[0][i] if factors else found[i - 1]
            found[i] = combine(before, value[i])
        assert reduction.at is not None
        where, everywhere = space.at(reduction.at), np.ones(space.ones, bool)
        self.memory[reduction.into].write(space.own_rows, where, everywhere, np.moveaxis(found, 0, axis))

    def reduce(self, reduction: Reduce, values: Sequence[Array], space: Space) -> None:
        """Combine values, with what other rows have given where rows are combined."""
        combine: Any = OPCODES[reduction.combine].evaluate
        whole = np.broadcast_to(values[0], space.shape)
        found = combine.reduce(whole, axis=reduction.over, keepdims=True, **same_dtype(combine, whole))
        if reduction.at is None:
            self.numbers[reduction.into] = found.reshape(-1)
            return
        memory = self.memory[reduction.into]
        where = space.at(reduction.at)
        everywhere = np.ones(space.ones, bool)
        if 0 in reduction.over and reduction.into in self.started:
            rows = np.zeros(space.ones, np.intp)
            found = combine(found, memory.read(rows, where, everywhere))
            memory.written[0, where.reshape(-1)] = False
        self.started.add(reduction.into)
        memory.write(space.own_rows if 0 not in reduction.over else space.first_row, where, everywhere, found)


def same_dtype(combine: np.ufunc, values: Array) -> dict[str, Any]:
    """Return the option that keeps small integers from being added as large ones."""
    return {"dtype": values.dtype} if combine in (np.add, np.multiply) else {}


class Space:
    """Hold the points of a stage for some rows, as arrays that broadcast together.

    Attributes:
        shape: how many points there are along each dimension.
        own_rows: for each row its place in memory that rows have of their own.
    """

    def __init__(self, rows: Array, extents: tuple[int, ...]) -> None:
        self.shape = (len(rows), *extents[1:])
        self.ones = (1,) * len(extents)
        along = [rows, *[np.arange(n) for n in extents[1:]]]
        self.indices = [index.reshape(self.beside(d)) for d, index in enumerate(along)]
        self.own_rows = np.arange(len(rows)).reshape(self.beside(0))
        self.first_row = np.zeros(self.ones, np.intp)

    def beside(self, dimension: int) -> tuple[int, ...]:
        """Return the shape of an array along one dimension."""
        return tuple([-1 if d == dimension else 1 for d in range(len(self.ones))])

    def at(self, at: Affine) -> Array:
        """Return the values of an index map."""
        found = np.full(self.ones, at.constant, np.int64)
        for coefficient, index in zip(at.coefficients, self.indices, strict=True):
            if coefficient:
                found = found + coefficient * index
        return found

    def holds(self, guard: Guard) -> Array:
        """Return where a guard holds."""
        found = np.ones(self.ones, bool)
        for bound in guard:
            index = self.indices[bound.dimension]
            found = found & (index >= bound.low) & (index < bound.high)
        return found
