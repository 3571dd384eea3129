"""Which outputs of a program may lie in the memory of an input: each point reads there what it writes there."""

from __future__ import annotations

from wengert.kernel.kernel import Program, Stage


def overwritten(program: Program) -> tuple[tuple[int, int], ...]:
    """Return the places of inputs, each with that of an output that may have its memory.

    No program that may fail has such ones: its inputs are needed again.
    """
    if program.is_nested or program.failing:
        return ()
    buffers = program.named
    alike = [
        (i, k)
        for i, given in enumerate(program.inputs)
        for k, output in enumerate(program.outputs)
        if (buffers[given].shape, buffers[given].dtype) == (buffers[output].shape, buffers[output].dtype)
    ]
    return tuple([(i, k) for i, k in alike if may_overwrite(program, program.inputs[i], program.outputs[k])])


def may_overwrite(program: Program, given: str, output: str) -> bool:
    """Tell whether an output may lie in an input's memory.

    That is so where stores of one stage are all that writes the output, no later kernel reads the input, and in that
    kernel the stage alone does, at each point the cells that it writes there.
    """
    stages = [(k, stage) for k, kernel in enumerate(program.kernels) for stage in kernel.stages]
    writers = [(k, stage) for k, stage in stages if output in {store.buffer for store in stage.stores}]
    kept = {keep.buffer for kernel in program.kernels for keep in kernel.kept}
    if len(writers) != 1 or output in kept or any(output in combined_into(stage) for _, stage in stages):
        return False
    last, writer = writers[0]
    written = {(store.at, store.guard) for store in writer.stores if store.buffer == output}
    for k, stage in stages:
        for operation in stage.operations:
            if k < last or operation.buffer != given:
                continue
            cells = {(operation.at, operation.guard), (operation.at, ())}
            if stage is not writer or operation.name != "load" or cells.isdisjoint(written):
                return False
    return True


def combined_into(stage: Stage) -> set[str]:
    """Return the names of what the reductions and the updates of a stage write."""
    return {reduction.into for reduction in stage.reductions} | {update.buffer for update in stage.updates}
