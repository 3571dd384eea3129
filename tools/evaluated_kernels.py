"""Programs of kernels evaluated by NumPy as they are scheduled, with routines of matrices natively.

The tests of lowering and the random programs of `tools.fuzz` compare with what this computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert.emission.external_functions import address_of
from wengert.emission.routines.routine_calls import contents_of, routine_of
from wengert.kernel.checking import findings
from wengert.kernel.evaluation import Evaluator
from wengert.kernel.grammar import text
from wengert.kernel.kernel import Buffer, Invoke, Program
from wengert.kernel.schedule import illegal, schedule_of, with_schedule
from wengert.native.engine import host
from wengert.native.entries.callee import Callee

__all__ = ["Call", "evaluate_checked"]

Call = Callable[[Program, Sequence[Any]], Sequence[Any]]


def evaluate_checked(program: Program, arrays: Sequence[Any]) -> Sequence[Any]:
    """Evaluate a program as it is scheduled; routines of small matrices natively."""
    assert not findings(program), text(program)
    if not program.is_nested:
        assert not illegal(program, schedule_of(program))
    found = with_schedule(program)
    assert not findings(found), text(found)
    names = {step.name for _, step in steps_of(program)}
    return Evaluator(routines={name: partial(call_routine, program, name) for name in names}).compile_program(found)(
        arrays
    )


def steps_of(program: Program) -> Iterator[tuple[Program, Invoke]]:
    """Yield the routines of a program, and of those that it runs."""
    yield from [(program, step) for step in program.steps if isinstance(step, Invoke)]
    for inner in program.programs:
        yield from steps_of(inner)


def call_routine(program: Program, name: str, *operands: Any, **fields: int) -> Sequence[Any] | None:
    """Call a routine that a program runs; return its results, or None if it failed."""
    alike = (x for x in steps_of(program) if x[1].name == name and dict(x[1].fields) == fields)
    shapes = list(map(np.shape, operands))
    step, buffers = next((step, found) for step, found in map(with_buffers, alike) if shapes_of(step, found) == shapes)
    made = [np.empty(buffers[x].shape, buffers[x].dtype) for x in step.arguments[-step.results :]]
    start, contents = contents_of(routine_of(step, {}, host()))
    arrays = [*map(np.ascontiguousarray, operands), *made, np.zeros((), bool)]
    callee = Callee(address_of(name, host()), size=start + step.work, contents=[(0, contents)])
    callee.call([x.ctypes.data for x in arrays])
    return None if arrays[-1] else made


def with_buffers(pair: tuple[Program, Invoke]) -> tuple[Invoke, dict[str, Buffer]]:
    """Return a step with the buffers of its program."""
    return pair[1], {buffer.name: buffer for buffer in pair[0].buffers}


def shapes_of(step: Invoke, buffers: dict[str, Buffer]) -> list[tuple[int, ...]]:
    """Return the shapes of a routine's operands."""
    return [buffers[x].shape for x in step.arguments[: -step.results]]
