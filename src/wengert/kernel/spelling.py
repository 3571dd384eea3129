"""Short dimensions spelled out, along which points differ: the parts of complex numbers, and of what is stacked.

Each point along such a dimension becomes a store of its own. What all of them need is computed once, and lanes run over
a dimension that has many points. So they do where a row has but a few points, and there are many rows. Where all
stages of a kernel have but a few points, and it has one row, all are spelled out: numbers need no masks, and no memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from wengert.kernel.durations import LANES
from wengert.kernel.kernel import Affine, Buffer, Guard, Kernel, Operation, Program, Reduce, Stage, Store
from wengert.kernel.merging import guards_of
from wengert.kernel.opcodes import OPCODES
from wengert.support.machine import MACHINE


def spelled_out(program: Program) -> Program:
    """Return a program in which choices along short dimensions are made before it runs."""
    kernels = [k.replace(stages=tuple(map(decide_guards, k.stages))) for k in program.kernels]
    return program.replace(steps=tuple(map(with_rows_decided, kernels)))


def with_rows_decided(kernel: Kernel) -> Kernel:
    """Return a kernel of a few rows that something is guarded by as one row, if all that it does is to store."""
    (stage, *others) = kernel.stages
    by_rows = any(bound.dimension == 0 for guard in guards_of(stage) for bound in guard)
    if others or kernel.kept or stage.reductions or stage.updates or not by_rows or len(stage.extents) < 2:
        return kernel
    if not 1 < kernel.rows <= MACHINE.spelled_points[0] or prod(stage.extents[1:]) < MACHINE.spelled_rows:
        return kernel
    return Kernel(1, (Spelling(with_rows_last(stage, {}), len(stage.extents)).stage(),))


def with_rows_last(stage: Stage, own: Mapping[str, int]) -> Stage:
    """Return a stage of one row, in which rows are the last dimension.

    Args:
        stage: of several rows.
        own: how many elements a row has of the buffers that are the row's, by name; of numbers one, which are loaded.
    """
    last = len(stage.extents)

    def turn_axes(part: Any) -> Any:
        at, guard = part.at, tuple([bound.replace(dimension=bound.dimension or last) for bound in part.guard])
        if at is not None or part.buffer in own:
            constant, coefficients = (at.constant, at.coefficients) if at is not None else (0, (0,) * last)
            rows = own.get(part.buffer, coefficients[0])
            at = Affine(constant, (0, *coefficients[1:], rows))
        return part.replace(at=at, guard=guard)

    def turn_sum(total: Reduce) -> Reduce:
        over = tuple(sorted([dimension or last for dimension in total.over]))
        at = total.at or Affine(0, (0,) * last)
        into = Affine(at.constant, (0, *at.coefficients[1:], own.get(total.into, at.coefficients[0])))
        return total.replace(kind="nested", over=over, at=into)

    operations = [o.replace(name="load") if o.name == "number" else o for o in stage.operations]
    return Stage(
        (1, *stage.extents[1:], stage.extents[0]),
        tuple(map(turn_axes, operations)),
        tuple(map(turn_axes, stage.stores)),
        tuple(map(turn_sum, stage.reductions)),
    )


def decide_guards(stage: Stage) -> Stage:
    """Return a stage without the short dimensions that something is guarded along, if all that it does is to store."""
    if stage.reductions or stage.updates:
        return stage
    guarded = {bound.dimension for guard in guards_of(stage) for bound in guard}
    for dimension in range(len(stage.extents) - 1, 0, -1):
        if dimension in guarded and stage.extents[dimension] <= MACHINE.spelled_points[0]:
            stage = Spelling(stage, dimension).stage()
    return stage


def with_long_lanes(program: Program) -> Program:
    """Return a program in which lanes run over many rows where there are but few points within each."""
    own = frozenset([buffer.name for buffer in program.buffers if buffer.kind == "row"])
    return program.replace(steps=tuple([spell_out(kernel, own) for kernel in program.kernels]))


def spell_out(kernel: Kernel, own: frozenset[str]) -> Kernel:
    """Return a kernel of many rows with the few points of its stages spelled out, if its code stays short."""
    (stage, *others) = kernel.stages
    points = prod(stage.extents[1:])
    if others or stage.reductions:
        found = StageOfRows(kernel, own).stage() if saves_by_rows(kernel) else None
        return kernel if found is None else Kernel(kernel.rows, (found,))
    cost = sum([OPCODES[operation.name].cost for operation in stage.operations])
    if stage.updates or not 1 < points <= MACHINE.spelled_points[1]:
        return kernel
    if kernel.rows < MACHINE.spelled_rows or points * (cost + len(stage.operations)) > MACHINE.spelled:
        return kernel
    return kernel.replace(stages=(without_inner(stage),))


def without_inner(stage: Stage) -> Stage:
    """Return a stage with all points of a row spelled out."""
    while len(stage.extents) > 1:
        stage = Spelling(stage, len(stage.extents) - 1).stage()
    return stage


def saves_by_rows(kernel: Kernel) -> bool:
    """Tell whether lanes over rows take less time than those within rows of a few points, and code stays short.

    Lanes within rows are few of a vector, sums across them take long, and numbers of the row are computed one by one.
    Lanes over rows lie apart in memory.
    """
    within = spelled = 0
    apart = set[tuple[str, Affine, int]]()
    for stage in kernel.stages:
        (_, *inner), sums = stage.extents, stage.reductions
        if stage.updates or any(guards_of(stage)) or any(r.kind in ("scan", "column") for r in sums):
            return False
        if max(inner, default=1) >= LANES:
            return False
        each, points = sum([OPCODES[o.name].cost + 1 for o in stage.operations]) + len(stage.stores), prod(inner)
        spelled += points * each
        within += LANES * (prod(inner[:-1]) * each + MACHINE.across * len(sums) * bool(inner))
        maps = [(o.buffer, o.at) for o in stage.operations if o.name == "load" and o.at is not None]
        maps += [(store.buffer, store.at) for store in stage.stores]
        apart |= {(*found, points) for found in maps if found[1].coefficients[0] > 1}
    if kernel.rows < MACHINE.spelled_rows or spelled > MACHINE.spelled_stages:
        return False
    over = spelled + MACHINE.gathered[1] * sum([points for _, _, points in apart])
    return over + LANES * MACHINE.row < within


class StageOfRows:
    """Write the stages of a kernel as one, whose only dimension are the rows.

    Args:
        kernel: without guards, updates, scans and columns.
        own: the buffers of the row.

    Attributes:
        operations: of the stage.
        known: the places of these, by what they are.
        values: the places of what earlier stages have stored or summed, by buffer or number, and where.
        stores, sums: of the stage.
        written: the buffers and numbers that some stage writes.
    """

    def __init__(self, kernel: Kernel, own: frozenset[str]) -> None:
        self.kernel, self.own = kernel, own
        self.operations: list[Operation] = []
        self.known: dict[tuple[Operation, str], int] = {}
        self.values: dict[tuple[str, Affine | None], int] = {}
        self.stores: list[Store] = []
        self.sums: list[Reduce] = []
        results = [
            *[x.buffer for s in kernel.stages for x in s.stores],
            *[r.into for s in kernel.stages for r in s.reductions],
        ]
        self.written = frozenset(results)

    def stage(self) -> Stage | None:
        """Return the stage; None if it would read elsewhere what it writes, or before."""
        for stage in self.kernel.stages:
            given, places = without_inner(stage), list[int]()
            for operation in given.operations:
                place = self.put(operation, places)
                if place is None:
                    return None
                places.append(place)
            for store in given.stores:
                self.store(store.buffer, store.at, places[store.value])
            for r in given.reductions:
                if 0 in r.over:
                    self.sums.append(r.replace(value=places[r.value]))
                else:
                    self.store(r.into, r.at, places[r.value])
        for keep in self.kernel.kept:
            self.store(keep.buffer, keep.at, self.values[keep.number, None])
        return prune_stage(Stage((self.kernel.rows,), tuple(self.operations), tuple(self.stores), tuple(self.sums)))

    def put(self, operation: Operation, places: Sequence[int]) -> int | None:
        """Return the place of an operation's value, given those of the stage; None of what is not written yet."""
        if operation.name == "number" or operation.buffer in self.written:
            known = operation.name in ("number", "load")
            return self.values.get((operation.buffer, operation.at)) if known else None
        own = operation.replace(operands=tuple([places[x] for x in operation.operands]))
        key = own, repr(own.value)  # 0.0 equals -0.0
        if key not in self.known:
            self.known[key] = len(self.operations)
            self.operations.append(own)
        return self.known[key]

    def store(self, buffer: str, at: Affine | None, place: int) -> None:
        """Note a value that later stages may read, and store it if it leaves the row."""
        self.values[buffer, at] = place
        if at is not None and buffer not in self.own:
            self.stores.append(Store(buffer, at, place))


def with_numbers_alone(program: Program) -> Program:
    """Return a program whose kernels of few rows and few points compute number by number, sums included."""
    buffers = {buffer.name: buffer for buffer in program.buffers}
    steps = [
        in_numbers(with_rows_inside(kernel, buffers), buffers) if has_few_points(kernel) else kernel
        for kernel in program.kernels
    ]
    return program.replace(buffers=tuple(buffers.values()), steps=tuple(steps))


def has_few_points(kernel: Kernel) -> bool:
    """Tell whether a kernel has few rows, and stages of few points whose code stays short."""
    size, most = 0, 1
    for stage in kernel.stages:
        points = kernel.rows * prod(stage.extents[1:])
        functions = sum([cost for o in stage.operations if (cost := OPCODES[o.name].cost) >= MACHINE.function])
        is_apart = stage.updates or any(r.kind == "scan" for r in stage.reductions)
        is_apart = is_apart or (kernel.rows > 1 and any(o.name.startswith("search") for o in stage.operations))
        is_long = prod(stage.extents[1:]) > MACHINE.spelled_points[0]
        if is_apart or is_long or (points > 1 and points * functions > MACHINE.spelled):
            return False
        size, most = size + points * len(stage.operations), max(most, points)
    return kernel.rows <= MACHINE.spelled_points[0] and size <= MACHINE.quick and most > 1


def with_rows_inside(kernel: Kernel, buffers: dict[str, Buffer]) -> Kernel:
    """Return a kernel as one of a single row: rows are the last dimension of its stages, whose numbers are arrays.

    Args:
        kernel: without scans and updates.
        buffers: by name; those of the row become as many as there are rows, and numbers of rows are entered.
    """
    rows = kernel.rows
    if rows == 1:
        return kernel
    own = {o.buffer for s in kernel.stages for o in s.operations} | {x.buffer for s in kernel.stages for x in s.stores}
    own |= {r.into for s in kernel.stages for r in s.reductions}
    steps = {}
    for name in own & buffers.keys():
        if buffers[name].kind == "row":
            steps[name] = prod(buffers[name].shape)
            buffers[name] = buffers[name].replace(shape=(rows, *buffers[name].shape))
    for stage in kernel.stages:
        for r in stage.reductions:
            if r.kind == "row":
                buffers[r.into] = Buffer(r.into, (rows,), stage.operations[r.value].dtype, "row")
                steps[r.into] = 1
    keeps = []
    for keep in kernel.kept:
        load = Operation("number", (), buffers[keep.number].dtype, keep.number)
        keeps.append(Stage((rows,), (load,), (Store(keep.buffer, keep.at, 0),)))
    return Kernel(1, tuple([with_rows_last(stage, steps) for stage in (*kernel.stages, *keeps)]))


def in_numbers(kernel: Kernel, buffers: dict[str, Buffer]) -> Kernel:
    """Return a kernel of one row with all points spelled out; its sums are entered as buffers of the row."""
    stages = []
    for stage in kernel.stages:
        while len(stage.extents) > 1:
            stage = Spelling(stage, len(stage.extents) - 1).stage()
        for r in stage.reductions:
            if r.kind == "row":
                buffers.setdefault(r.into, Buffer(r.into, (), stage.operations[r.value].dtype, "row"))
        sums = [Store(r.into, r.at or NOWHERE, r.value) for r in stage.reductions]
        operations = [o.replace(name="load", at=NOWHERE) if o.name == "number" else o for o in stage.operations]
        stages.append(stage.replace(operations=tuple(operations), stores=(*stage.stores, *sums), reductions=()))
    for keep in kernel.kept:
        load = Operation("load", (), buffers[keep.number].dtype, keep.number, NOWHERE)
        stages.append(Stage((1,), (load,), (Store(keep.buffer, Affine(keep.at.constant, (0,)), 0),)))
    return kernel.replace(stages=tuple(stages), kept=())


NOWHERE = Affine(0, (0,))
"""The place of a number."""


class Spelling:
    """Write a stage without one of its dimensions.

    Attributes:
        given: the stage.
        dimension: the dimension.
        operations: of the new stage.
        places: of the operations that each one of the old stage has become, for each point along the dimension.
    """

    def __init__(self, stage: Stage, dimension: int) -> None:
        self.given, self.dimension = stage, dimension
        self.operations: list[Operation] = []
        self.known: dict[tuple[Operation, str], int] = {}

    def stage(self) -> Stage:
        """Return the stage."""
        stores, points = [], list[list[int]]()
        for point in range(self.given.extents[self.dimension]):
            places: list[int] = []
            for operation in self.given.operations:
                places.append(self.write_operation(operation, places, point))
            for store in self.given.stores:
                guard = self.remaining_guard(store.guard, point)
                if guard is not None:
                    stores.append(store.replace(at=self.at(store.at, point), value=places[store.value], guard=guard))
            points.append(places)
        extents = (*self.given.extents[: self.dimension], *self.given.extents[self.dimension + 1 :])
        reductions = [
            own for r in self.given.reductions for own in self.spell_reduction(r, [x[r.value] for x in points])
        ]
        return prune_stage(Stage(extents, tuple(self.operations), tuple(stores), tuple(reductions)))

    def spell_reduction(self, given: Reduce, values: list[int]) -> list[Reduce]:
        """Return the reductions of the other dimensions, given a value for each point along this one."""
        over = tuple([d - (d > self.dimension) for d in given.over if d != self.dimension])
        ats = [None if given.at is None else self.at(given.at, point) for point in range(len(values))]
        if self.dimension not in given.over:
            return [given.replace(value=x, over=over, at=at) for x, at in zip(values, ats, strict=True)]
        found, dtype = values[0], self.operations[values[0]].dtype
        for x in values[1:]:
            found = self.put(Operation(given.combine, (found, x), dtype))
        return [given.replace(value=found, over=over, at=ats[0])]

    def write_operation(self, operation: Operation, places: list[int], point: int) -> int:
        """Write an operation for a point along the dimension, unless there is one like it; return its place."""
        guard = self.remaining_guard(operation.guard, point)
        operands = tuple([places[x] for x in operation.operands])
        if operation.name == "pick" and not guard:
            return operands[0 if guard == () else 1]
        if guard is None:  # what is not read is zero
            operation = Operation("constant", (), operation.dtype, value=operation.dtype.type(0).item())
        else:
            at = None if operation.at is None else self.at(operation.at, point)
            if (operands, at, guard) != (operation.operands, operation.at, operation.guard):
                operation = operation.replace(operands=operands, at=at, guard=guard)
        return self.put(operation)

    def put(self, operation: Operation) -> int:
        """Write an operation, unless there is one like it; return its place."""
        key = operation, repr(operation.value)  # 0.0 equals -0.0
        if key not in self.known:
            self.known[key] = len(self.operations)
            self.operations.append(operation)
        return self.known[key]

    def at(self, given: Affine, point: int) -> Affine:
        """Return an index map at a point along the dimension."""
        coefficients, own = given.coefficients, self.dimension
        return Affine(given.constant + point * coefficients[own], (*coefficients[:own], *coefficients[own + 1 :]))

    def remaining_guard(self, guard: Guard, point: int) -> Guard | None:
        """Return a guard's bounds along other dimensions, at a point along this one; None where it does not hold."""
        if not guard:
            return ()
        own = [bound for bound in guard if bound.dimension == self.dimension]
        if any(not bound.low <= point < bound.high for bound in own):
            return None
        others = [bound for bound in guard if bound.dimension != self.dimension]
        return tuple([b.replace(dimension=b.dimension - (b.dimension > self.dimension)) for b in others])


def without_unread(program: Program) -> Program:
    """Return a program without stores to buffers of the row that no later stage reads: their own has the values."""
    own = {buffer.name for buffer in program.buffers if buffer.kind == "row"}
    kernels, needed = [], set[str]()
    for kernel in program.kernels:
        stages: list[Stage] = []
        for stage in reversed(kernel.stages):
            kept = tuple([store for store in stage.stores if store.buffer not in own or store.buffer in needed])
            stage = stage if len(kept) == len(stage.stores) else prune_stage(stage.replace(stores=kept))
            if stage.results:
                stages.insert(0, stage)
            needed |= {o.buffer for o in stage.operations} | {u.buffer for u in stage.updates}
            needed |= {r.into for r in stage.reductions}
        kernels.append(kernel.replace(stages=tuple(stages)))
    buffers = [buffer for buffer in program.buffers if buffer.name not in own or buffer.name in needed]
    return program.replace(buffers=tuple(buffers), steps=tuple(kernels))


def prune_stage(stage: Stage) -> Stage:
    """Return a stage without operations that nothing uses."""
    used: set[int] = set()
    todo = list(stage.results)
    while todo:
        place = todo.pop()
        if place not in used:
            used.add(place)
            todo += stage.operations[place].operands
    if len(used) == len(stage.operations):
        return stage
    places = {old: new for new, old in enumerate(sorted(used))}
    operations = [
        stage.operations[old].replace(operands=tuple([places[x] for x in stage.operations[old].operands]))
        for old in places
    ]
    stores = [store.replace(value=places[store.value]) for store in stage.stores]
    reductions = [
        r.replace(value=places[r.value], factor=None if r.factor is None else places[r.factor])
        for r in stage.reductions
    ]
    updates = tuple([u.replace(value=places[u.value], index=places[u.index]) for u in stage.updates])
    return stage.replace(
        operations=tuple(operations), stores=tuple(stores), reductions=tuple(reductions), updates=updates
    )
