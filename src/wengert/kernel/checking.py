"""Rules that every program keeps: each a sentence, and a function that yields where a program breaks it.

A rule may rely on those before it: `findings` asks the next only where no earlier one was broken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from wengert.errors import GraphError
from wengert.kernel.address_ranges import (
    Address,
    addresses,
    alternate,
    is_injective,
    keep_addresses,
    ranges,
    reach,
    reads,
    reduction_addresses,
    stages,
    store_addresses,
)
from wengert.kernel.kernel import UNKNOWN, Program
from wengert.kernel.opcodes import OPCODES, READING, SEARCHING
from wengert.kernel.step_checking import order_faults, step_faults
from wengert.support import config
from wengert.support.records import FieldRecord, NamedTuple

DTYPES = frozenset(map(np.dtype, ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")))


class ProgramRule(FieldRecord):
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
