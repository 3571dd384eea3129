"""Text of kernels: one line for each record, names as they are, numbers to the bit. `parsing` reads it back.

Equal programs have equal text and different ones different text, so it is what caches and reproducers go by.
"""

from __future__ import annotations

from collections.abc import Iterator

from wengert.kernel.kernel import (
    Affine,
    Buffer,
    Copy,
    Guard,
    Kernel,
    Loop,
    Operation,
    Program,
    Routine,
    Run,
    Stage,
    Step,
)

TOLD = "count", "starts", "going"
"""The words for what tells how often a loop runs: its fields of these names."""


def text(program: Program, digits: int | None = None) -> str:
    """Return a program as text.

    Args:
        program: the program.
        digits: how many of each constant array are shown; all, if not given, so that the text can be read back.

    >>> import numpy as np
    >>> from wengert.kernel.kernel import Store
    >>> at, double = Affine(0, (0, 1)), np.dtype(float)
    >>> load = Operation("load", (), double, "x", at)
    >>> stage = Stage((1, 8), (load, Operation("negative", (0,), double)), (Store("y", at, 1),), lane=1)
    >>> buffers = Buffer("x", (8,), double, "input"), Buffer("y", (8,), double, "output")
    >>> print(text(Program(("x",), ("y",), buffers, (Kernel(1, (stage,)),))))
    program x -> y
    buffer x: input float64[8]
    buffer y: output float64[8]
    kernel rows 1 tile 1
      stage 1, 8 lane 1
        %0 = load float64 x[i1]
        %1 = negative float64 %0
        store y[i1] = %1
    """
    return "\n".join(program_lines(program, digits))


def program_lines(program: Program, digits: int | None) -> Iterator[str]:
    """Yield the lines of a program."""
    failing = f" failing {program.failing}" if program.failing else ""
    yield f"program {', '.join(program.inputs)} -> {', '.join(program.outputs)}{failing}"
    yield from [buffer_text(buffer, digits) for buffer in program.buffers]
    for step in program.steps:
        yield from step_lines(step, digits)


def step_lines(step: Step, digits: int | None) -> Iterator[str]:
    """Yield the lines of a step; those of a program that it runs are indented."""
    match step:
        case Kernel():
            yield from kernel_lines(step)
        case Copy():
            yield f"copy {step.source} to {step.target}"
        case Routine():
            fields = ", ".join([f"{name} {value}" for name, value in step.fields])
            yield (
                f"routine {step.name} of {', '.join(step.arguments)} results {step.results} work {step.work} "
                f"cycles {float(step.cycles).hex()} with {fields}"
            )
        case Run():
            yield f"run {', '.join(step.arguments)}"
            yield from [f"  {line}" for line in program_lines(step.program, digits)]
        case Loop():
            yield from loop_lines(step, digits)


def loop_lines(loop: Loop, digits: int | None) -> Iterator[str]:
    """Yield the lines of a loop."""
    told = [(word, name) for word, name in zip(TOLD, (loop.count, loop.starts, loop.going), strict=True) if name]
    parts = [f"loop rounds {loop.rounds}", *[f"{word} {name}" for word, name in told], *["reverse"] * loop.reverse]
    yield " ".join(parts)
    yield from [f"  constant {constant.buffer} as {constant.row}" for constant in loop.constants]
    for x in loop.carried:
        after = f"from {x.out}" if x.out else f"known {x.known}"
        yield f"  carry {x.start} as {x.into} {after} to {x.result}"
    yield from [f"  row {row.buffer} as {row.row}" for row in loop.rows]
    yield from [f"  {line}" for line in program_lines(loop.body, digits)]


def kernel_text(kernel: Kernel) -> str:
    """Return one kernel as text, without its buffers."""
    return "\n".join(kernel_lines(kernel))


def buffer_text(buffer: Buffer, digits: int | None) -> str:
    """Return the line of a buffer; the contents of a constant are in hexadecimal digits."""
    shown = buffer.contents.hex()
    if digits is not None and len(shown) > digits:
        shown = f"{shown[:digits]}..."
    contents = f" = {shown}" if buffer.kind == "constant" else ""
    return f"buffer {buffer.name}: {buffer.kind} {buffer.dtype}[{', '.join(map(str, buffer.shape))}]{contents}"


def kernel_lines(kernel: Kernel) -> Iterator[str]:
    """Yield the lines of a kernel."""
    yield f"kernel rows {kernel.rows} tile {kernel.tile}"
    for stage in kernel.stages:
        yield from stage_lines(stage)
    for kept in kernel.kept:
        yield f"  keep {kept.buffer}[{affine_text(kept.at)}] = {kept.number}"


def stage_lines(stage: Stage) -> Iterator[str]:
    """Yield the lines of a stage."""
    yield f"  stage {', '.join(map(str, stage.extents))} lane {stage.lane}"
    for place, operation in enumerate(stage.operations):
        yield f"    %{place} = {operation_text(operation)}"
    for store in stage.stores:
        yield f"    store {store.buffer}[{affine_text(store.at)}] = %{store.value}{guard_text(store.guard)}"
    for update in stage.updates:
        yield f"    update {update.buffer}[%{update.index}] {'+=' if update.add else '='} %{update.value}"
    for reduction in stage.reductions:
        at = "" if reduction.at is None else f"[{affine_text(reduction.at)}]"
        over = ", ".join(f"i{dimension}" for dimension in reduction.over)
        factor = "" if reduction.factor is None else f" times %{reduction.factor}"
        yield (
            f"    reduce {reduction.into}{at} = {reduction.combine} %{reduction.value}{factor} over {over} "
            f"({reduction.kind})"
        )


def operation_text(operation: Operation) -> str:
    """Return an operation as it stands behind its place."""
    parts = [operation.name, str(operation.dtype), *[f"%{place}" for place in operation.operands]]
    if operation.buffer or operation.at is not None:
        at = "" if operation.at is None else f"[{affine_text(operation.at)}]"
        parts.append(operation.buffer + at)
    if operation.name == "constant":
        parts.append(constant_text(operation.value))
    return " ".join(parts) + guard_text(operation.guard)


def constant_text(value: float | int | bool) -> str:
    """Return a number to the bit: floats in hexadecimal digits."""
    return value.hex() if isinstance(value, float) else str(value)


def affine_text(at: Affine) -> str:
    """Return an index map as a sum.

    >>> affine_text(Affine(3, (0, 1, -2)))
    'i1 + i2*-2 + 3'
    """
    terms = [f"i{d}" if c == 1 else f"i{d}*{c}" for d, c in enumerate(at.coefficients) if c]
    return " + ".join([*terms, *([str(at.constant)] if at.constant or not terms else [])])


def guard_text(guard: Guard) -> str:
    """Return where something holds, with a word in front; nothing where it holds everywhere."""
    bounds = " and ".join(f"{bound.low} <= i{bound.dimension} < {bound.high}" for bound in guard)
    return f" where {bounds}" if bounds else ""
