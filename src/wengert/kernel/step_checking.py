"""Rules of the steps of a program: what they run must fit, and what they read must have been written."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from wengert.kernel.address_ranges import is_injective, ranges, reach
from wengert.kernel.kernel import UNKNOWN, Buffer, Copy, Kernel, Loop, Product, Program, ProgramStep, Run, Switch


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
