"""How a stage is carried out: the order of its loops, how many lanes, and what depends on which loop."""

from __future__ import annotations

import copy
import itertools
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from wengert.emission.arena import ROOM
from wengert.kernel.durations import LANES
from wengert.kernel.kernel import Affine, Buffer, Guard, Operation, Reduce, Stage, Store
from wengert.kernel.opcodes import OPCODES
from wengert.native.engine import Target
from wengert.support.caches import cached
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

TERMS = 16
"""Terms that an accumulator adds up before it is added to a total, as many as in NumPy's pairwise sums."""

SHORT = 256
"""Terms, at most, of an accumulator whose blocks are simply added up; and those of a block of a product of matrices in
lanes of its own, which BLAS adds up one by one, too."""

LONG_BLOCK = 64
"""Terms of a block of longer sums in lanes of their own that NumPy adds up one by one, since not their last axis is
summed: each block costs as much as four terms."""


class Blocks(NamedTuple):
    """Say how long sums are cut into blocks, each of which is added to a total.

    Attributes:
        depth: of the loop that is cut, in the nest.
        size: of a block, in steps of one along the dimension of the loop.
        exact: whether what the roundings of totals lose is kept beside them.
    """

    depth: int
    size: int
    exact: bool


class LoopPlan:
    """What is decided about a stage before it is written.

    Attributes:
        nest: the dimensions but for the rows, from the outermost loop to the innermost.
        depends: for each operation the dimensions that its value depends on.
        level: for each operation the number of loops that it stands in.
        wide: for each operation whether its value is a vector.
        width: how many lanes vectors have.
        units: how many vectors a step takes.
        starts: for each reduction the place in the nest from which on all loops are its own; none if there is no such.
        masked_alone: whether the loop over the lanes has no body without masks, which would take as long: code that
            is half as long is compiled in two thirds of the time.
        clean: for each dimension that something is guarded along the longest range where all guards are decided.
        pieces: the same, with another range of one dimension that is long enough for a body of its own.
        fused: products that are added to a sum at once.
        counted: conditions as numbers whose sum is one number: their bits are counted, lane by lane nothing is added.
        blocks: how long sums are cut into blocks; none where no sum is that long.
        blocked: the sums that are.
        twins: the loads of which there is another of what lies beside, as of the parts of complex numbers, by buffer
            and index map; each with its place among the two.
        stores: in blocks of what lies beside each other for each lane; most are alone.
    """

    def __init__(self, stage: Stage, buffers: dict[str, Buffer], target: Target, tile: int) -> None:
        self.stage, self.buffers, self.tile = stage, buffers, tile
        self.depends = dependences(stage, buffers)
        self.nest = nest_of(stage, self.depends)
        self.level = levels(self.nest, self.depends)
        self.lane = stage.lane
        self.wide = [bool(self.lane) and self.lane in found for found in self.depends]
        self.starts = [self.start(reduction) for reduction in stage.reductions]
        self.clean, *self.pieces = pieces(stage, self.weight)
        self.once = {n for n, uses in Counter(used_operations(stage)).items() if uses == 1}
        sums = [r for r in stage.reductions if r.combine == "add" and r.kind != "scan"]
        self.fused = {r.value for r in sums if self.is_product(r.value)}
        self.counted = {r.value for r in sums if target.masks and self.is_count(r)}
        self.width = self.lanes(target)
        loads = [(o.buffer, o.at) for o in stage.operations if o.name == "load" and not o.guard]
        self.twins = twins(stage, loads)
        self.stores = store_blocks(stage, self.width)
        self.spread = self.spread_operations()
        self.units = self.vectors_per_step()
        self.blocks = self.found_blocks()
        self.blocked = {
            n for n in range(len(stage.reductions)) if self.blocks and self.is_blocked(n, self.blocks.depth)
        }
        self.masked_alone = target.masks and not self.clean and self.has_cheap_masks()
        self.live = {clean: self.needed_operations(clean) for clean in (False, True)}

    def lanes(self, target: Target) -> int:
        """Return how many lanes vectors have: as many as a vector holds of the widest numbers."""
        if not self.lane:
            return 1
        wide = (o for n, o in enumerate(self.stage.operations) if self.wide[n] and n not in self.counted)
        sizes = [o.dtype.itemsize for o in wide if o.dtype.kind != "b"]
        return target.vector_bytes // max(sizes, default=1)

    def start(self, reduction: Reduce) -> int | None:
        """Return the place in the nest from which on all loops are a reduction's own."""
        inner = [d for d in reduction.over if d]
        place = len(self.nest) - len(inner)
        return place if inner and set(self.nest[place:]) == set(inner) else None

    def is_product(self, n: int) -> bool:
        """Whether an operation is a product that may be rounded with its sum, and is used once, in the innermost loop.

        Products that a user writes are rounded by themselves: one that is infinite, as in a sum of 10 * x, would not be
        if the sum before is as large and of the other sign. Of terms of one sign, as squares are, no sum is.
        """
        operation = self.stage.operations[n]
        if operation.dtype.kind != "f" or n not in self.once or self.level[n] != len(self.nest):
            return False
        return operation.name == "product" or (operation.name == "multiply" and self.signs[n] != 0)

    @cached
    def signs(self) -> list[int]:
        """The sign of each operation where it is not 0 or NaN, if that is the same at all points, else 0."""
        found: list[int] = []
        for operation in self.stage.operations:
            own = [found[k] for k in operation.operands]
            found.append(sign_of(operation, own))
        return found

    def is_count(self, reduction: Reduce) -> bool:
        """Whether a sum is the number of lanes where a condition holds, which nothing else needs as a number."""
        operation, n = self.stage.operations[reduction.value], reduction.value
        known = operation.name == "convert" and operation.dtype == np.int64 and n in self.once and self.wide[n]
        if not known or self.lane not in reduction.over or self.start(reduction) is None:
            return False
        return self.stage.operations[operation.operands[0]].dtype.kind == "b"

    def spread_operations(self) -> set[int]:
        """Return the numbers that are needed as vectors."""
        stage = self.stage
        found: set[int] = set()
        for operation, wide in zip(stage.operations, self.wide, strict=True):
            if wide:
                found.update(n for n in operation.operands if not self.wide[n])
        for n in stage.results if self.lane else ():  # of a product that is fused the factors are needed
            found.update(k for k in (stage.operations[n].operands if n in self.fused else (n,)) if not self.wide[k])
        return found

    @cached
    def weight(self) -> int:
        """About how many cycles the operations take for a vector."""
        return weight_of(self.stage, self.depends)

    def vectors_per_step(self) -> int:
        """Return how many vectors a step takes: more where there is little else that could run at once."""
        if not self.lane:
            return 1
        if self.nest[-1] != self.lane:
            units = 1 if None in self.starts else MACHINE.accumulators // self.tile
        else:
            weight = self.weight
            units = (4 if weight <= 4 else 2 if weight <= MACHINE.full else 1) // self.tile
        while units > 1 and self.stage.extents[self.lane] < units * self.width:
            units //= 2
        return max(units, 1)

    def found_blocks(self) -> Blocks | None:
        """Return how long sums are cut into blocks: in the innermost loop that adds up more terms than a block has."""
        within = 1
        for depth in reversed(range(len(self.nest))):
            own = [n for n in range(len(self.stage.reductions)) if self.is_blocked(n, depth)]
            extent = self.stage.extents[self.nest[depth]]
            step = self.width * self.units if self.nest[depth] == self.lane else 1
            steps = -(-extent // step)
            if own:
                terms, exact = self.terms_of_block(own, within * steps)
                if terms < within * steps:
                    return Blocks(depth, step * max(terms // within, 1), exact)
            within *= steps
        return None

    def terms_of_block(self, sums: list[int], terms: int) -> tuple[int, bool]:
        """Return how many terms a block of some sums has, and whether what roundings of totals lose is kept.

        The more numbers a sum has in the lanes, the less blocks cost, whose numbers are added up first.
        """
        reductions = [self.stage.reductions[n] for n in sums]
        short = TERMS if terms > 2 * TERMS else terms
        if not self.lane or any(self.lane in r.over for r in reductions):
            return short, terms > SHORT
        if all(self.stage.operations[r.value].name == "product" for r in reductions):
            return SHORT, True
        if terms > SHORT:
            last = len(self.stage.extents) - 1
            return (TERMS if any(last in r.over for r in reductions) else LONG_BLOCK), True
        return short, False

    def is_blocked(self, n: int, depth: int) -> bool:
        """Whether a sum has a total and is added to it in blocks, if it goes on around a loop."""
        reduction, start = self.stage.reductions[n], self.starts[n]
        real = reduction.combine == "add" and self.stage.operations[reduction.value].dtype.kind == "f"
        return real and reduction.kind != "scan" and start is not None and start <= depth

    def has_cheap_masks(self) -> bool:
        """Return whether masks, of which each vector needs one, take little of the time.

        Buffers of the row have room for steps of so many vectors, and not for longer ones. Accesses with masks make
        processors wait for what is not in their caches: four million exponentials took four times as long.
        """
        if not self.lane or self.units > ROOM or any(is_far(self.buffers[name]) for name, _ in accesses(self.stage)):
            return False
        return self.weight * self.tile > MACHINE.masking if self.nest[-1] == self.lane else None in self.starts

    @property
    def vectors(self) -> int:
        """How many vectors there are along the lanes."""
        return -(-self.stage.extents[self.lane] // self.width)

    @property
    def written_out(self) -> bool:
        """Whether all vectors along the lanes are written one after the other, their masks known.

        Not if loops within them add to memory: a load that follows a masked store to the vector beside it waits.
        """
        if self.nest[-1] != self.lane and None in self.starts:
            return False
        size = self.vectors * self.tile * (len(self.stage.operations) + len(self.stage.stores))
        return self.vectors <= MACHINE.written_vectors and size <= MACHINE.written_instructions

    def is_decided(self, guard: Guard) -> bool:
        """Return whether a guard holds in the clean ranges, where it holds for all or for none."""
        return all(b.low <= self.clean[b.dimension][0] and self.clean[b.dimension][1] <= b.high for b in guard)

    def within(self, piece: dict[int, tuple[int, int]]) -> LoopPlan:
        """Return the plan of a loop over ranges within which all guards are decided."""
        found = copy.copy(self)
        found.clean = piece
        found.live = {**self.live, True: found.needed_operations(True)}
        return found

    def bodies(self) -> Iterator[LoopPlan]:
        """Yield the plans of clean bodies: of few ranges, and of more while together they are not much longer than one.

        Where many arrays are joined each body has the operations of one of them, and the one with masks those of all.
        """
        sizes = [1 + OPCODES[operation.name].cost for operation in self.stage.operations]
        size = 0
        for n, part in enumerate((self, *map(self.within, self.pieces))):
            size += sum([sizes[k] for k in part.live[True]])
            if n >= MACHINE.pieces and size > MACHINE.piece_growth * sum(sizes):
                return
            yield part

    def needed_operations(self, clean: bool) -> set[int]:
        """Return the operations that are needed; in the clean ranges not those that guards exclude."""
        found: set[int] = set()
        waiting = list(self.stage.results)
        while waiting:
            n = waiting.pop()
            if n in found:
                continue
            found.add(n)
            operation = self.stage.operations[n]
            if operation.name == "pick" and clean:
                waiting.append(operation.operands[0 if self.is_decided(operation.guard) else 1])
            else:
                waiting.extend(operation.operands)
        return found


def sign_of(operation: Operation, signs: list[int]) -> int:
    """Return the sign of an operation's value, of whose operands the signs are known or 0."""
    if operation.dtype.kind == "b":
        return 1
    if operation.name == "constant":
        return 1 if operation.value >= 0 else -1
    if operation.name in ("multiply", "product", "divide"):
        is_square = operation.name != "divide" and len(set(operation.operands)) == 1
        return 1 if is_square else math.prod(signs)
    if operation.name == "negative":
        return -signs[0]
    if operation.name in ("add", "select", "maximum", "minimum", "convert"):
        alike = set(signs[operation.name == "select" :])
        return alike.pop() if len(alike) == 1 else 0
    return 1 if OPCODES[operation.name].never_negative else 0


def is_far(buffer: Buffer) -> bool:
    """Whether a buffer is larger than a processor's own caches."""
    return buffer.kind != "row" and buffer.size * buffer.dtype.itemsize >= MACHINE.second_cache


def weight_of(stage: Stage, depends: list[frozenset[int]]) -> int:
    """Return about how many cycles the operations of a stage take for a vector."""
    operations = zip(stage.operations, depends, strict=True)
    return sum(OPCODES[o.name].cost for o, found in operations if stage.lane in found) if stage.lane else 0


def nest_of(stage: Stage, depends: list[frozenset[int]]) -> tuple[int, ...]:
    """Return the order of the loops: what nested reductions keep, then what they reduce; lanes last in their part.

    Lanes that are kept stand outside of the sums, so that a step has sums for many of them in registers. They
    come first of all if at least half of the work then leaves the other loops. Changes at computed places are in the
    order of the dimensions.
    """
    reduced = {d for r in stage.reductions if r.kind in ("nested", "column", "scan") for d in r.over if d}
    inner = range(1, len(stage.extents))
    parts = [d for d in inner if d not in reduced], [d for d in inner if d in reduced]
    nest = tuple(d for part in parts for d in sorted(part, key=lambda d: d == stage.lane))
    first = (*(d for d in nest if d == stage.lane), *(d for d in nest if d != stage.lane))
    is_fixed = bool(stage.updates) or any(set(inner) & set(r.over) for r in stage.reductions)
    return first if not is_fixed and 2 * work(stage, first, depends) < work(stage, nest, depends) else nest


def nest_of_stage(stage: Stage, buffers: dict[str, Buffer]) -> tuple[int, ...]:
    """Return the order of a stage's loops."""
    return nest_of(stage, dependences(stage, buffers))


def levels(nest: tuple[int, ...], depends: list[frozenset[int]]) -> list[int]:
    """Return in how many loops operations stand."""
    place = {dimension: k + 1 for k, dimension in enumerate(nest)} | {0: 0}
    return [max((place[d] for d in found), default=0) for found in depends]


def work(stage: Stage, nest: tuple[int, ...], depends: list[frozenset[int]]) -> int:
    """Return about how many cycles the operations of a stage take, all vectors being one number."""
    points = list(itertools.accumulate((stage.extents[d] for d in nest), operator.mul, initial=1))
    placed = zip(stage.operations, levels(nest, depends), strict=True)
    return sum(OPCODES[operation.name].cost * points[level] for operation, level in placed)


def accesses(stage: Stage) -> Iterator[tuple[str, Affine]]:
    """Iterate over the buffers that a stage reads and writes, and where."""
    for operation in stage.operations:
        if operation.at is not None and operation.buffer:
            yield operation.buffer, operation.at
    for store in stage.stores:
        yield store.buffer, store.at
    for update in stage.updates:
        yield update.buffer, update.at
    for reduction in stage.reductions:
        if reduction.at is not None:
            yield reduction.into, reduction.at


def twins(stage: Stage, accesses: Iterable[tuple[str, Affine | None]]) -> dict[tuple[str, Affine], int]:
    """Return the accesses in pairs whose lanes are every other number of a buffer, and together all of them.

    Loads of two whole vectors take less time than two of numbers here and there.
    """
    known = set(accesses)
    found: dict[tuple[str, Affine], int] = {}
    for buffer, at in known:
        if at is None or not stage.lane or at.coefficients[stage.lane] != 2 or any(c % 2 for c in at.coefficients):
            continue
        if (buffer, at.replace(constant=at.constant ^ 1)) in known:
            found[buffer, at] = at.constant % 2
    return found


def store_blocks(stage: Stage, width: int) -> list[list[Store]]:
    """Return stores in blocks of what lies beside each other for each lane, which is stored at once.

    Blocks are powers of 2, which few shuffles sort, or 3 where lanes have no more. Stacks of 28 arrays take 0.1 to 0.6
    of the time of stores of each number, those of 3 or 4 arrays 0.2 to 0.7.
    """
    found: list[list[Store]] = []
    runs: dict[tuple[str, tuple[int, ...]], list[Store]] = defaultdict(list)
    for store in stage.stores:
        if stage.lane and store.at.coefficients[stage.lane] > 1 and not store.guard:
            runs[store.buffer, store.at.coefficients].append(store)
        else:
            found.append([store])
    for (_, coefficients), stores in runs.items():
        stores.sort(key=lambda store: store.at.constant)
        while stores:
            first, step = stores[0].at.constant, coefficients[stage.lane]
            most = min(step, width, LANES, len(stores))
            size = next(n for n in range(most, 0, -1) if stores[n - 1].at.constant == first + n - 1)
            if not size == step == 3:
                size = 1 << size.bit_length() - 1
            found.append(stores[:size])
            del stores[:size]
    return found


def used_operations(stage: Stage) -> Iterator[int]:
    """Iterate over the operations whose values are used, each as often as it is."""
    for operation in stage.operations:
        yield from operation.operands
    yield from stage.results


def dependences(stage: Stage, buffers: dict[str, Buffer]) -> list[frozenset[int]]:
    """Return for each operation the dimensions that its value depends on."""
    found: list[frozenset[int]] = []
    for operation in stage.operations:
        own = {bound.dimension for bound in operation.guard}
        if operation.at is not None:
            own |= {d for d, c in enumerate(operation.at.coefficients) if c}
        if operation.name == "number" or (operation.buffer and buffers[operation.buffer].kind == "row"):
            own.add(0)
        found.append(frozenset(own).union(*(found[n] for n in operation.operands)))
    return found


def guards(stage: Stage) -> Iterable[Guard]:
    """Return the guards of a stage."""
    return [*(o.guard for o in stage.operations if o.guard), *(s.guard for s in stage.stores if s.guard)]


def pieces(stage: Stage, weight: int) -> list[dict[int, tuple[int, int]]]:
    """Return ranges of dimensions where all guards are decided: the longest of each, then others of one dimension.

    With masks each point takes all operations of a stage, of which a range may need few.
    """
    ranges = decided_ranges(stage)
    least = min(MACHINE.piece, MACHINE.piece_cycles / max(weight, 1))
    longest = {dimension: found[0] for dimension, found in ranges.items()}
    points = math.prod(stage.extents[1:])
    found = [longest]
    for dimension, (_, *others) in ranges.items():
        extent = stage.extents[dimension]
        each = points // extent if dimension else points
        long = [
            (low, high)
            for low, high in others
            if MACHINE.piece_share * (high - low) >= extent and (high - low) * each >= least
        ]
        found += [{**longest, dimension: other} for other in long]
    return found[: MACHINE.most_pieces]


def decided_ranges(stage: Stage) -> dict[int, list[tuple[int, int]]]:
    """Return for each dimension that something is guarded along where all guards are decided, longest first."""
    cuts: dict[int, set[int]] = {}
    for guard in guards(stage):
        for bound in guard:
            cuts.setdefault(bound.dimension, set()).update((bound.low, bound.high))
    found = {}
    for dimension, places in cuts.items():
        extent = stage.extents[dimension]
        ordered = sorted({0, extent, *(place for place in places if 0 < place < extent)})
        found[dimension] = sorted(itertools.pairwise(ordered), key=lambda part: part[0] - part[1])
    return found
