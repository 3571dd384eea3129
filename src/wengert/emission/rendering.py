"""Programs in LLVM's language, whatever steps they have."""

from __future__ import annotations

from wengert.emission.driver import Assembly
from wengert.emission.loops import loop_writer
from wengert.emission.parallel_split import lanes_of
from wengert.emission.programs import Emission, Emitted, without_code
from wengert.emission.routines.routine_calls import contents_of, routine_of
from wengert.kernel.durations import cycles_of
from wengert.kernel.kernel import Invoke, Product, Program
from wengert.native.builder import program as written
from wengert.native.engine import Target
from wengert.native.threads.jobs import SHARE


def emit_program(program: Program, target: Target) -> Emitted:
    """Return a program in LLVM's language."""
    if not program.is_nested:
        return Emission(program, target).emit()
    (first, *others), taken = program.steps, cycles_of(program, lanes_of(target))
    if not others and isinstance(first, Invoke | Product):
        routine = routine_of(first, program.buffers_by_name, target)
        start, contents = contents_of(routine)
        size, outside = start + routine.work, (routine.name, *[SHARE] * routine.is_shared)
        if routine.arguments == program.arguments:
            return Emitted("", without_code(program, size, ((0, contents, False),), taken, outside))
    module = Assembly(target, loop_writer)
    text, given = written(module.entry(program)), module.contents()
    return Emitted(text, without_code(program, module.size, given, taken, sorted(module.outside)))
