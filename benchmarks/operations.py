"""Single operations: what each costs in every library, at several sizes, however it is differentiated.

One thread for every library, and processor time. A program does the operation many times, as a longer computation
would; what the program costs without it is measured beside it and does not count.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.agreement import check_agreement
from benchmarks.measure import Case, Program, net
from benchmarks.operation_list import OPERATIONS, Operation, identity
from benchmarks.variants import VARIANTS, Problem, Run, programs

__all__ = ["Cell", "cases"]

SIZES = (0, 10, 1_000, 100_000)
FEW, MANY, MIDDLE = 2, 20, 10_000  # repetitions in a program, for arrays that are larger or smaller than the last
UNABLE = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What peers raise for what they cannot do."""


def cases(_threads: int) -> Iterator[Case]:
    """Yield the cases: every operation at every size in every variant that makes sense."""
    for variant in VARIANTS:
        for operation in OPERATIONS:
            for size in SIZES:
                cell = Cell(operation, size, variant)
                if cell.exists():
                    yield Case(
                        cell.name,
                        1,
                        cell.make,
                        rounds=15,
                        budget=0.4,
                        labels=cell.labels | {"steps": str(operation.steps)},
                    )


class Cell:
    """Hold one operation at one size in one variant, and make the programs of the libraries, which must agree."""

    def __init__(self, operation: Operation, size: int, variant: str, repeats: int | None = None) -> None:
        self.operation, self.size, self.variant = operation, size, variant
        self.smallest = max(operand.smallest for operand in operation.operands)
        self.repeats = repeats or (FEW if size > MIDDLE else MANY)

    @property
    def labels(self) -> dict[str, str]:
        """What the cell is called by each criterion."""
        size = str(self.size) if self.size else "0-d"
        return {"operation": self.operation.name, "size": size, "variant": self.variant}

    @property
    def name(self) -> str:
        """What the cell is called as a whole."""
        return ", ".join(self.labels.values())

    def exists(self) -> bool:
        """Tell whether the operation can be done like this."""
        possible = self.variant in ("plain", "vmap") or self.operation.differentiable
        possible = possible and (self.variant != "vmap" or self.operation.batched)
        return possible and self.smallest <= self.size <= self.operation.largest

    @functools.cached_property
    def problem(self) -> Problem:
        """The operation with its operands."""
        generator = np.random.default_rng(0)
        made = [(operand, operand.make(generator, self.size)) for operand in self.operation.operands]
        operands = tuple(values for operand, values in made if operand.differentiated)
        constants = tuple(values for operand, values in made if not operand.differentiated)
        return Problem(self.operation.function, operands, constants, self.repeats)

    @functools.cached_property
    def frame(self) -> Problem:
        """A problem that does nothing to the first operand: its programs are what is around the operation.

        Where gradients are added to those of leaves that depends on the number of elements; elsewhere the fewest do,
        lest copies that nothing but this problem makes count.
        """
        size = self.size if self.variant == "backward" else self.smallest
        operand = self.operation.operands[0].make(np.random.default_rng(0), size)
        return Problem(identity, (operand,), (), self.repeats)

    @functools.cached_property
    def expected(self) -> Sequence[Any]:
        """What every library must find: NumPy's values, Wengert's derivatives."""
        return [self.problem.value] if self.variant == "plain" else self.run("wengert", self.problem)()

    def run(self, library: str, problem: Problem) -> Run:
        """Return a library's program for a problem."""
        make = getattr(programs(library), self.variant.replace(" ", "_"))
        return make(problem)  # type: ignore[no-any-return]  # found by name

    def make(self, library: str) -> Program | None:
        """Return a library's program, once its result has been found to agree."""
        if not hasattr(programs(library), self.variant.replace(" ", "_")):
            return None
        if library == "wengert":
            return self.checked(library)
        try:
            return self.checked(library)
        except UNABLE:
            return None

    def checked(self, library: str) -> Program:
        """Return the timed program of a library that can do it."""
        run = self.run(library, self.problem)
        check_agreement(run(), self.expected, f"{library}: {self.name}")
        return net(run, self.run(library, self.frame), programs(library).repeats(self.frame))
