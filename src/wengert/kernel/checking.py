"""Rules that every program keeps: each a sentence, and a function that yields where a program breaks it.

A rule may rely on those before it: `findings` asks the next only where no earlier one was broken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wengert.errors import GraphError
from wengert.kernel.kernel import (
    UNKNOWN,
    Affine,
    Buffer,
    Copy,
    Guard,
    Kernel,
    Loop,
    Product,
    Program,
    ProgramStep,
    Reduce,
    Run,
    Stage,
    Switch,
)
from wengert.kernel.opcodes import OPCODES, READING, SEARCHING
from wengert.support import config

DTYPES = frozenset(map(np.dtype, ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")))


@dataclass(frozen=True)
class ProgramRule:
    """Say what holds in every program.

    Attributes:
        sentence: what holds.
        broken: yields the places where it does not.
    """

    sentence: str
    broken: Callable[[Program], Iterator[str]]


class Finding(NamedTuple):
    """Say that a rule is broken, and where."""

    place: str
    rule: ProgramRule


def findings(program: Program) -> list[Finding]:
    """Return where a program, or one that its steps run, breaks the first rule that it breaks; nothing otherwise."""
    for n, inner in enumerate(program.programs):
        if found := findings(inner):
            return [Finding(f"program {n}, {place}", rule) for place, rule in found]
    for rule in RULES:
        found = [Finding(place, rule) for place in rule.broken(program)]
        if found:
            return found
    return []


def require_sound(program: Program) -> None:
    """Raise a GraphError if a program breaks a rule."""
    for place, rule in findings(program):
        raise GraphError("kernel", place, rule.sentence, "Mend the pass that made it")


def check_step(step: str, program: Program) -> Program:
    """Return a program that a step of lowering or scheduling made; with `WENGERT_DEBUG=1` it must be sound.

    Raises:
        GraphError: it breaks a rule, and this is being checked.
    """
    if config.DEBUG:
        try:
            require_sound(program)
        except GraphError as error:
            given, needed = f"a program with a mistake ({error})", "a program that keeps all rules is needed"
            raise GraphError(f"step {step}", given, needed, "Mend the step") from error
    return program


# Walking


class Address(NamedTuple):
    """An index map into a buffer where a guard holds, in a space of some extents."""

    place: str
    buffer: str
    at: Affine
    guard: Guard
    extents: tuple[int, ...]


def stages(program: Program) -> Iterator[tuple[str, Kernel, Stage]]:
    """Yield each stage with its kernel and where it stands."""
    for k, kernel in enumerate(program.kernels):
        for s, stage in enumerate(kernel.stages):
            yield f"kernel {k}, stage {s}", kernel, stage


def reads(place: str, stage: Stage) -> Iterator[Address]:
    """Yield what the loads and gathers of a stage read."""
    for i, op in enumerate(stage.operations):
        if op.name in READING and op.at is not None:
            yield Address(f"{place}, %{i}", op.buffer, op.at, op.guard, stage.extents)


def store_addresses(place: str, stage: Stage) -> Iterator[Address]:
    """Yield where the stores of a stage write."""
    for store in stage.stores:
        yield Address(f"{place}, store {store.buffer}", store.buffer, store.at, store.guard, stage.extents)


def reduction_addresses(place: str, stage: Stage) -> Iterator[Address]:
    """Yield where the reductions of a stage write."""
    for reduction in stage.reductions:
        if reduction.at is not None:
            where = f"{place}, reduce {reduction.into}"
            extents = stage.extents if reduction.kind == "scan" else kept_extents(stage, reduction)
            yield Address(where, reduction.into, reduction.at, (), extents)


def keep_addresses(place: str, kernel: Kernel) -> Iterator[Address]:
    """Yield where a kernel keeps its numbers."""
    for keep in kernel.kept:
        yield Address(f"{place}, keep {keep.number}", keep.buffer, keep.at, (), (kernel.rows,))


def kept_extents(stage: Stage, reduction: Reduce) -> tuple[int, ...]:
    """Return the extents of what is left of a space when it is reduced."""
    return tuple([1 if d in reduction.over else n for d, n in enumerate(stage.extents)])


def addresses(program: Program) -> Iterator[Address]:
    """Yield all index maps into buffers."""
    for place, _, stage in stages(program):
        yield from reads(place, stage)
        yield from store_addresses(place, stage)
        yield from reduction_addresses(place, stage)
    for k, kernel in enumerate(program.kernels):
        yield from keep_addresses(f"kernel {k}", kernel)


def reach(at: Affine, extents: tuple[int, ...], guard: Guard = ()) -> tuple[int, int] | None:
    """Return the least and the greatest value of an index map where a guard holds; None where it never does.

    >>> reach(Affine(-1, (0, 1)), (1, 8), ())
    (-1, 6)
    """
    low = high = at.constant
    for (start, stop), coefficient in zip(ranges(extents, guard), at.coefficients, strict=True):
        if start >= stop:
            return None
        ends = coefficient * start, coefficient * (stop - 1)
        low, high = low + min(ends), high + max(ends)
    return low, high


def ranges(extents: tuple[int, ...], guard: Guard) -> list[tuple[int, int]]:
    """Return from where to where each dimension runs within a guard."""
    found = [(0, n) for n in extents]
    for bound in guard:
        low, high = found[bound.dimension]
        found[bound.dimension] = max(low, bound.low), min(high, bound.high)
    return found


# Rules


def name_faults(program: Program) -> Iterator[str]:
    """Find buffers with one name, and inputs and outputs that are none."""
    names = [buffer.name for buffer in program.buffers]
    yield from (f"two buffers {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1)
    for kinds, listed in ((("input", "changed"), program.inputs), (("output",), program.outputs)):
        own = [buffer.name for buffer in program.buffers if buffer.kind in kinds]
        if sorted(own) != sorted(listed):
            yield f"the {kinds[0]}s {list(listed)} where buffers {own} are"
    if program.failing and program.failing != (program.outputs or ("",))[-1]:
        yield f"the output {program.failing} that says that it failed, and is not the last one"


def shape_faults(program: Program) -> Iterator[str]:
    """Find buffers without elements, of other dtypes, and constants whose contents do not fill them."""
    for buffer in program.buffers:
        if buffer.dtype not in DTYPES or not all(n > 0 or n == UNKNOWN for n in buffer.shape):
            yield f"{buffer.name}: {buffer.dtype}{list(buffer.shape)}"
        if buffer.grows and (not program.is_nested or buffer.kind in ("row", "constant")):
            yield f"rows of {buffer.name} that grow"
        if len(buffer.contents) != (buffer.size * buffer.dtype.itemsize if buffer.kind == "constant" else 0):
            yield f"{buffer.name} with {len(buffer.contents)} bytes of contents"


def space_faults(program: Program) -> Iterator[str]:
    """Find stages whose space does not fit their kernel."""
    for place, kernel, stage in stages(program):
        if stage.extents[:1] != (kernel.rows,) or min(stage.extents) < 1:
            yield f"{place}: extents {stage.extents} in a kernel of {kernel.rows} rows"
        if stage.lane not in range(len(stage.extents)):
            yield f"{place}: lane {stage.lane}"
    for k, kernel in enumerate(program.kernels):
        if not 1 <= kernel.tile <= kernel.rows:
            yield f"kernel {k}: tile {kernel.tile} of {kernel.rows} rows"


def operand_faults(program: Program) -> Iterator[str]:
    """Find unknown opcodes, and operands that do not stand before their use."""
    for place, _, stage in stages(program):
        for i, op in enumerate(stage.operations):
            if op.name not in OPCODES:
                yield f"{place}, %{i}: opcode {op.name!r}"
            elif len(op.operands) != OPCODES[op.name].arity:
                yield f"{place}, %{i}: {len(op.operands)} operands of {op.name}"
            if not all(0 <= operand < i for operand in op.operands):
                yield f"{place}, %{i}: operands {op.operands}"
            if (op.name in (*READING, "index")) != (op.at is not None):
                yield f"{place}, %{i}: {op.name} with the index map {op.at}"
        for value in stage.results:
            if not 0 <= value < len(stage.operations):
                yield f"{place}: %{value} of {len(stage.operations)} operations"


def dtype_faults(program: Program) -> Iterator[str]:
    """Find operations whose dtypes do not follow from those of their operands."""
    for place, _, stage in stages(program):
        dtypes = [op.dtype for op in stage.operations]
        for update in stage.updates:
            if dtypes[update.index].char not in "lq" or (update.add and dtypes[update.value].kind == "b"):
                yield f"{place}, update {update.buffer}: {dtypes[update.value]} at {dtypes[update.index]}"
        for i, op in enumerate(stage.operations):
            given = [dtypes[operand] for operand in op.operands]
            if not is_typed(op.name, given, op.dtype):
                yield f"{place}, %{i}: {op.name} of {list(map(str, given))} as {op.dtype}"
        for reduction in stage.reductions:
            dtype = dtypes[reduction.value]
            whole = reduction.factor is None or (reduction.combine == "add" and dtypes[reduction.factor] == dtype)
            if (
                reduction.combine not in OPCODES
                or not OPCODES[reduction.combine].combines
                or not whole
                or not is_typed(reduction.combine, [dtype, dtype], dtype)
            ):
                yield f"{place}, reduce {reduction.into}: {reduction.combine} of {dtype}"


def is_typed(name: str, given: list[np.dtype[np.generic]], dtype: np.dtype[np.generic]) -> bool:
    """Tell whether an opcode gives a dtype for operands of some dtypes."""
    if dtype not in DTYPES:
        return False
    if name in SEARCHING:
        return dtype.char in "lq"
    if name in ("gather", "index"):
        return all(x.char in "lq" for x in given) and (name == "gather" or dtype.char in "lq")
    if name == "select":
        return given[0].kind == "b" and given[1] == given[2] == dtype
    if len(set(given)) > 1:
        return False
    kind = given[0].kind if given else dtype.kind
    opcode = OPCODES[name]
    fits = kind in "biu" if opcode.takes == "bits" else kind != "b" or opcode.takes == "any" or not given
    return fits and (opcode.gives == "stated" or dtype == (np.dtype(bool) if opcode.gives == "bool" else given[-1]))


def address_faults(program: Program) -> Iterator[str]:
    """Find index maps and guards that do not fit their space, buffers that are not there, and rows in row buffers."""
    known = program.buffers_by_name
    for place, buffer, at, guard, extents in addresses(program):
        if buffer not in known:
            yield f"{place}: the buffer {buffer!r}"
        elif len(at.coefficients) != len(extents):
            yield f"{place}: {len(at.coefficients)} coefficients in {len(extents)} dimensions"
        elif not all(bound.dimension in range(len(extents)) for bound in guard):
            yield f"{place}: a bound of another dimension"
        elif known[buffer].kind == "row" and at.coefficients[0]:
            yield f"{place}: a row buffer read or written by rows"
    for place, kernel, stage in stages(program):
        for update in stage.updates:
            if update.buffer not in known:
                yield f"{place}: the buffer {update.buffer!r}"
            elif len(update.at.coefficients) != len(stage.extents):
                yield f"{place}, update {update.buffer}: {len(update.at.coefficients)} coefficients"
            elif kernel.rows > 1 or (stage.lane and not stage.has_updates_beside(stage.lane)):
                yield f"{place}, update {update.buffer}: {kernel.rows} rows and lane {stage.lane}"
        for i, op in enumerate(stage.operations):
            if not all(bound.dimension in range(len(stage.extents)) for bound in op.guard):
                yield f"{place}, %{i}: a bound of another dimension"
            if op.name == "index" and op.at is not None and len(op.at.coefficients) != len(stage.extents):
                yield f"{place}, %{i}: {len(op.at.coefficients)} coefficients"


def outside(program: Program) -> Iterator[str]:
    """Find index maps that leave their buffers where their guards hold."""
    known = program.buffers_by_name
    for place, buffer, at, guard, extents in addresses(program):
        reached = reach(at, extents, guard)
        if reached is not None and not (reached[0] >= 0 and reached[1] < known[buffer].size):
            yield f"{place}: {buffer} of {known[buffer].size} elements from {reached[0]} to {reached[1]}"


def access_faults(program: Program) -> Iterator[str]:
    """Find loads of and writes to buffers of another dtype."""
    known = program.buffers_by_name
    for place, _, stage in stages(program):
        dtypes = [op.dtype for op in stage.operations]
        reading = [op for op in stage.operations if op.name in READING and op.operands[:1] <= (len(dtypes) - 1,)]
        loads = [(op.buffer, dtypes[op.operands[0]] if op.name in SEARCHING else op.dtype) for op in reading]
        stores = [(store.buffer, dtypes[store.value]) for store in stage.stores]
        reductions = [(r.into, dtypes[r.value]) for r in stage.reductions if r.at is not None]
        updates = [(update.buffer, dtypes[update.value]) for update in stage.updates]
        for buffer, dtype in (*loads, *stores, *reductions, *updates):
            if known[buffer].dtype != dtype:
                yield f"{place}: {dtype} for {buffer} of {known[buffer].dtype}"


def reduction_faults(program: Program) -> Iterator[str]:
    """Find reductions that are not of the kind that follows from what they reduce over."""
    for place, _, stage in stages(program):
        inner = set(range(1, len(stage.extents)))
        for reduction in stage.reductions:
            over = set(reduction.over)
            where = f"{place}, reduce {reduction.into}"
            if not over or not over <= inner | {0} or len(over) < len(reduction.over):
                yield f"{where}: over {reduction.over}"
                continue
            if reduction.kind == "scan":
                if len(over) > 1 or 0 in over or reduction.at is None or not reduction.at.coefficients[min(over)]:
                    yield f"{where}: a scan over {reduction.over}"
                elif stage.lane in over:
                    yield f"{where}: a scan along the lanes"
                elif any((r.kind, r.over) != ("scan", reduction.over) for r in stage.reductions):
                    yield f"{where}: a scan beside other reductions"
                continue
            whole = inner <= over
            kind = ("total" if whole else "column") if 0 in over else ("row" if whole else "nested")
            if reduction.kind != kind or (reduction.at is None) != (kind == "row"):
                yield f"{where}: {reduction.kind} where {kind} is"
            elif reduction.at is not None and any(reduction.at.coefficients[d] for d in over):
                yield f"{where}: its place moves along what is reduced"


def unknown_numbers(program: Program) -> Iterator[str]:
    """Find numbers of the row that are used before the stage that gives them has ended, or given twice."""
    for k, kernel in enumerate(program.kernels):
        known: dict[str, np.dtype[np.generic]] = {}
        for s, stage in enumerate(kernel.stages):
            for i, op in enumerate(stage.operations):
                if op.name == "number" and (op.buffer not in known or known[op.buffer] != op.dtype):
                    yield f"kernel {k}, stage {s}, %{i}: the number {op.buffer!r}"
            for reduction in stage.reductions:
                if reduction.kind == "row":
                    if reduction.into in known:
                        yield f"kernel {k}, stage {s}: the number {reduction.into!r} again"
                    known[reduction.into] = stage.operations[reduction.value].dtype
        buffers = program.buffers_by_name
        for keep in kernel.kept:
            if keep.number not in known or known[keep.number] != buffers[keep.buffer].dtype:
                yield f"kernel {k}: the number {keep.number!r} kept in {keep.buffer}"


def step_faults(program: Program) -> Iterator[str]:
    """Find kernels beside other steps, steps of buffers that are not there, and programs that do not fit theirs."""
    if not program.is_nested:
        return
    known = program.buffers_by_name
    if any(buffer.kind == "row" for buffer in program.buffers):
        yield "buffers of rows where there are none"
    for n, step in enumerate(program.steps):
        place = f"step {n}"
        if isinstance(step, Kernel):
            yield f"{place}: a kernel beside other steps"
            continue
        missing = [name for name in (*step.reads, *step.writes) if name not in known]
        if missing:
            yield f"{place}: the buffers {missing}"
        else:
            yield from [f"{place}: {finding}" for finding in unfit(program, known, step)]


def unfit(program: Program, known: dict[str, Buffer], step: ProgramStep) -> Iterator[str]:
    """Find what does not fit in a step that is no kernel, of buffers that are there."""
    if isinstance(step, Copy):
        source, target = known[step.source], known[step.target]
        if alike(source) != alike(target) and not target.holds_rows_of(source):
            yield f"{step.source} copied to {step.target}"
    if step.may_fail and not program.failing:
        yield "what may fail, in a program that does not say so"
    if isinstance(step, Run):
        own = step.program.buffers_by_name
        if len(step.arguments) != len(step.program.arguments):
            yield f"{len(step.arguments)} arguments of {len(step.program.arguments)}"
        elif any(alike(known[a]) != alike(own[b]) for a, b in zip(step.arguments, step.program.arguments, strict=True)):
            yield f"arguments {step.arguments} for {step.program.arguments}"
    if isinstance(step, Switch):
        yield from switch_faults(program, known, step)
    if isinstance(step, Product):
        yield from product_faults(known, step)
    if isinstance(step, Loop):
        yield from loop_faults(known, step)


def switch_faults(program: Program, known: dict[str, Buffer], step: Switch) -> Iterator[str]:
    """Find what does not fit in a choice of programs."""
    if not step.cases:
        yield "no cases"
    index = known[step.index]
    if index.size != 1 or index.dtype not in (np.dtype(bool), np.dtype(np.int64)):
        yield f"the index {step.index} of {index.size} {index.dtype}"
    for case in step.cases:
        if set(case.writes) != set(step.writes):
            yield f"{case.writes} written in place of {step.writes}"
        yield from unfit(program, known, case)


def product_faults(known: dict[str, Buffer], product: Product) -> Iterator[str]:
    """Find what does not fit in a product."""
    dtypes = {known[name].dtype for name in (*product.reads, product.into)}
    if len(dtypes) > 1 or next(iter(dtypes)).kind != "f":
        yield f"a product of {sorted(map(str, dtypes))}"
    if min(product.extents, default=1) < 1:
        yield f"a product over {product.extents}"
        return
    if any(len(at.coefficients) != len(product.extents) for at in product.maps):
        yield f"index maps of other dimensions than {product.extents}"
        return
    if bool(product.addend) != (product.addend_at is not None):
        yield f"{product.addend!r} at {product.addend_at}"
        return
    names = (*product.reads, product.into)
    for n, (name, at) in enumerate(zip(names, product.maps, strict=True)):
        reached = reach(at, product.extents if n < 2 else product.sizes)
        if reached is None or not (reached[0] >= 0 and reached[1] < known[name].size):
            yield f"{name} of {known[name].size} elements at {reached}"
    if product.into in (product.left, product.right):
        yield f"factors in {product.into}, which is changed"
    if product.changes and product.addend_at != product.at:
        yield f"{product.addend} at {product.addend_at} added at {product.at}"
    if not product.changes and math.prod(product.sizes) != known[product.into].size:
        yield f"{math.prod(product.sizes)} results for {product.into} of {known[product.into].size} elements"
    elif not is_injective(product.at, ranges(product.sizes, ()), own=False):
        yield f"results that share cells of {product.into}"


def loop_faults(known: dict[str, Buffer], loop: Loop) -> Iterator[str]:
    """Find what does not fit in a loop."""
    own, body = loop.body.buffers_by_name, loop.body
    into = [*[x.row for x in loop.constants], *[x.into for x in loop.carried]]
    into += [x.row for x in loop.rows if x.row in body.inputs]
    if sorted(into) != sorted(body.inputs):
        yield f"{into} for the inputs {body.inputs}"
    pairs = [(x.buffer, x.row) for x in loop.constants]
    pairs += [(name, x.into) for x in loop.carried for name in (x.start, x.known, x.result) if name]
    yield from (f"{a} for {b}" for a, b in pairs if b not in own or alike(known[a]) != alike(own[b]))
    outs = [(x.out, x.into) for x in loop.carried if x.out]
    outs += [(name, name) for name in (loop.going,) if name]
    known_outs = {*body.outputs, *body.changed_inputs}
    yield from (f"{a} from {b}" for a, b in outs if a not in known_outs or alike(own[a]) != alike(own[b]))
    changed = [x.into for x in loop.carried if x.out == x.into]
    if sorted(changed) != sorted(body.changed_inputs):
        yield f"{changed} for what the body changes, {sorted(body.changed_inputs)}"
    others = [*[x.buffer for x in loop.constants], *[x.buffer for x in loop.rows]]
    others += [name for x in loop.carried for name in (x.start, x.known)]
    yield from (f"{name} changed and read" for name in loop.changes if others.count(name) > 1)
    for row in loop.rows:
        if row.row not in own or known[row.buffer].dtype != own[row.row].dtype:
            yield f"rows {row.row} of {row.buffer}"
        elif known[row.buffer].grows:
            if not known[row.buffer].holds_rows_of(own[row.row]):
                yield f"rows {row.row} in {row.buffer}, which are others"
        elif own[row.row].grows or known[row.buffer].size < loop.rounds * own[row.row].size:
            yield f"{loop.rounds} rows {row.row} in {row.buffer}"


def alike(buffer: Buffer) -> tuple[int, int, np.dtype[np.generic]]:
    """Return what two buffers share of which one may stand for the other."""
    return buffer.shape.count(UNKNOWN), buffer.size, buffer.dtype


def order_faults(program: Program) -> Iterator[str]:
    """Find buffers that a step reads before another wrote them, or writes again, and outputs that none writes."""
    if not program.is_nested:
        return
    fixed = {buffer.name for buffer in program.buffers if buffer.kind in ("input", "constant")}
    full = fixed | program.changed_inputs
    for n, step in enumerate(program.steps):
        yield from (f"step {n} reads {name}" for name in step.reads if name not in full)
        again = [name for name in step.writes if name in full]
        yield from (f"step {n} writes {name} again" for name in again if name in fixed or name not in step.changes)
        full |= set(step.writes)
    yield from (f"the output {name}" for name in program.outputs if name not in {*full, program.failing})


def unwritten_faults(program: Program) -> Iterator[str]:
    """Find what is read before anything was written there, and outputs that nothing is written to."""
    if program.is_nested:
        return
    known = program.buffers_by_name
    full = {buffer.name for buffer in program.buffers if buffer.kind in ("input", "changed", "constant")}
    for k, kernel in enumerate(program.kernels):
        late: set[str] = set()
        own: set[str] = set()
        for s, stage in enumerate(kernel.stages):
            place = f"kernel {k}, stage {s}"
            for address in reads(place, stage):
                if address.buffer not in full | own:
                    yield f"{address.place}: {address.buffer}"
            for update in stage.updates:
                if update.buffer not in full | own or known[update.buffer].kind in ("input", "constant"):
                    yield f"{place}, update {update.buffer}: of kind {known[update.buffer].kind}"
            for address in store_addresses(place, stage):
                (own if known[address.buffer].kind == "row" else full).add(address.buffer)
            for reduction in stage.reductions:
                if reduction.kind != "row":
                    here = own if known[reduction.into].kind == "row" else full
                    {"nested": here, "scan": here}.get(reduction.kind, late).add(reduction.into)
        full |= late | {keep.buffer for keep in kernel.kept}
    yield from (f"the output {name}" for name in program.outputs if name not in full)


def rewriting_faults(program: Program) -> Iterator[str]:
    """Find cells that may be written twice, and writes to inputs and constants."""
    known = program.buffers_by_name
    before: dict[tuple[str, int], list[tuple[tuple[int, int], Address]]] = {}
    for k, kernel in enumerate(program.kernels):
        places = [f"kernel {k}, stage {s}" for s in range(len(kernel.stages))]
        writes = itertools.chain(
            *[(*store_addresses(p, s), *reduction_addresses(p, s)) for p, s in zip(places, kernel.stages, strict=True)],
            keep_addresses(f"kernel {k}", kernel),
        )
        for write in writes:
            place, buffer, at, guard, extents = write
            kind, reached = known[buffer].kind, reach(at, extents, guard)
            if kind in ("input", "constant"):
                yield f"{place}: {buffer} of kind {kind}"
            elif reached is not None:
                if not is_injective(at, ranges(extents, guard), kind == "row"):
                    yield f"{place}: points of the space share cells"
                others = before.setdefault((buffer, k if kind == "row" else -1), [])
                for (low, high), other in others:
                    if reached[0] <= high and low <= reached[1] and not alternate(write, other, kind == "row"):
                        yield f"{place}: {buffer} was written by {other.place}"
                others.append((reached, write))


def reading_faults(program: Program) -> Iterator[str]:
    """Find reads of what is changed after it may have been, but for those of a cell that the same point writes."""
    if program.is_nested or not program.changed_inputs:
        return
    begun: set[str] = set()
    for place, kernel, stage in stages(program):
        stored = {(address.buffer, address.at) for address in store_addresses(place, stage)}
        updated = {update.buffer for update in stage.updates}
        here = (updated | {buffer for buffer, _ in stored}) & program.changed_inputs
        is_one = math.prod(stage.extents) == 1
        for operation, address in zip(
            [o for o in stage.operations if o.name in READING], reads(place, stage), strict=True
        ):
            own = operation.name == "load" and (address.buffer, address.at) in stored and address.buffer not in updated
            if address.buffer in begun or (address.buffer in here and not (is_one or own)):
                yield f"{address.place}: {address.buffer}"
        yield from (f"{place}: {name} changed again" for name in here & begun)
        if here and len(kernel.stages) > 1 and kernel.rows > 1:
            yield f"{place}: {sorted(here)} changed in one of several stages of rows"
        begun |= here


def alternate(one: Address, other: Address, own: bool) -> bool:
    """Tell whether two writes of a space share no cell, as of parts of complex numbers: they are a dimension more."""
    spans = ranges(one.extents, one.guard)
    if one.at.coefficients != other.at.coefficients or spans != ranges(other.extents, other.guard):
        return False
    apart = Affine(0, (*one.at.coefficients, other.at.constant - one.at.constant))
    return apart.coefficients[-1] != 0 and is_injective(apart, (*spans, (0, 2)), own)


def is_injective(at: Affine, spans: Iterable[tuple[int, int]], own: bool) -> bool:
    """Tell whether different points have different cells: every step goes further than all smaller ones together.

    Args:
        at: the index map.
        spans: from where to where each dimension runs.
        own: whether each row has cells of its own.
    """
    covered = 0
    steps = [(abs(c), stop - start) for c, (start, stop) in zip(at.coefficients, spans, strict=True)]
    for step, count in sorted(steps[own:]):
        if count > 1 and step <= covered:
            return False
        covered += step * (count - 1)
    return True


RULES = (
    ProgramRule("each buffer is named once, and inputs and outputs are buffers of their kind", name_faults),
    ProgramRule("buffers have elements, of a dtype of kernels, and contents if they are constants", shape_faults),
    ProgramRule("steps are kernels alone, or what runs programs that fit, and says so if they may fail", step_faults),
    ProgramRule("a step reads what others wrote, and writes what none wrote", order_faults),
    ProgramRule("the space of a stage begins with its kernel's rows, and no tile has more", space_faults),
    ProgramRule("opcodes are known, and operands stand before their use", operand_faults),
    ProgramRule("dtypes follow from those of operands", dtype_faults),
    ProgramRule("index maps and guards have the dimensions of their stage, and updates its only row", address_faults),
    ProgramRule("indices stay in their buffers where guards hold", outside),
    ProgramRule("buffers hold what is read from and written to them", access_faults),
    ProgramRule("the kind of a reduction follows from what it reduces over, and scans stand alone", reduction_faults),
    ProgramRule("a number of the row is given once, by a stage before those that use it", unknown_numbers),
    ProgramRule("what is read or changed was written, and every output is", unwritten_faults),
    ProgramRule("each cell is written once, and inputs and constants never", rewriting_faults),
    ProgramRule("what is changed is read before, or by the point that changes it", reading_faults),
)
"""What holds in every program, in an order in which each rule may rely on those before it."""
