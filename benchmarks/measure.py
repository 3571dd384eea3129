"""Measuring: programs that take turns, and medians of ratios pair by pair."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Case", "Program", "Result", "Times", "measure", "net", "timed"]

Times = dict[str, float]
"""Seconds that each phase of a run took; a phase without a name is the whole."""

Program = Callable[[], Times]

ENOUGH = 5e-4
"""Seconds for which a short program is repeated: its difference to another would be lost in what other programs do to
the caches."""

LONG = 2e-2
"""Seconds from which on a program is run once a round. Shorter ones are run three times, of which the least counts, in
every library: the first run after another library's finds the caches cold, in which adding 100,000 numbers takes twice
as long, and no library must be measured so because its program is a little longer than another's."""

LEAST = 0.1
"""The least share of a run that counts as its operations: what is less is lost in noise."""


@dataclass(frozen=True)
class Case:
    """Hold one comparison.

    Attributes:
        name: what is printed.
        operations: the number of operations in one run; times are reported per operation.
        make: `make(library)` returns a program, or None if the library cannot do this.
        subject: the library whose times are divided by those of the others.
        rounds: how often each program runs at most.
        budget: seconds after which no further round begins.
        labels: what the case is by several criteria, for instance the number of elements, for choices and summaries.
    """

    name: str
    operations: int
    make: Callable[[str], Program | None]
    subject: str = "wengert"
    rounds: int = 31
    budget: float = 4.0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Result:
    """Hold the times of one phase of a case, by library, one for each round."""

    case: str
    phase: str
    operations: int
    subject: str
    labels: Mapping[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def per_operation(self, library: str) -> float:
        """Return the median time of an operation in seconds."""
        return statistics.median(self.seconds[library]) / self.operations

    def least_per_operation(self, library: str) -> float:
        """Return the least time of an operation in seconds: of it, medians show what else the machine does."""
        return min(self.seconds[library]) / self.operations

    def ratio(self, library: str) -> float:
        """Return the median of the subject's time divided by the library's, round by round."""
        pairs = zip(self.seconds[self.subject], self.seconds[library], strict=True)
        return statistics.median(own / other for own, other in pairs)

    def as_json(self) -> dict[str, object]:
        """Return what is written with `--json`."""
        return {
            "case": self.case,
            "phase": self.phase,
            "labels": dict(self.labels),
            "operations": self.operations,
            "rounds": len(self.seconds[self.subject]),
            "seconds_per_operation": {library: self.per_operation(library) for library in self.seconds},
            "least_per_operation": {library: self.least_per_operation(library) for library in self.seconds},
            "ratio": {library: self.ratio(library) for library in self.seconds if library != self.subject},
        }


def timed(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Program:
    """Return a program that runs a function and takes its time, by the wall or by `time.process_time`."""

    def program() -> Times:
        start = clock()
        function()
        return {"": clock() - start}

    return program


def net(run: Callable[[], object], frame: Callable[[], object], operations: int) -> Program:
    """Return a program that takes the processor time of an operation: that of a run without that of its frame.

    Args:
        run: does the operation a number of times.
        frame: does everything else that `run` does, so that what is around the operations does not count.
        operations: the number of operations in a run.
    """
    once = processor_time(run, 2)
    times = max(1, min(1_000, math.ceil(ENOUGH / once)))
    batches = range(3 if once < LONG else 1)

    def program() -> Times:
        whole, around = (min(processor_time(part, times) for _ in batches) for part in (run, frame))
        return {"": max(whole - around, whole * LEAST) / operations}

    return program


def processor_time(function: Callable[[], object], times: int) -> float:
    """Return the mean processor time, of all threads, that calls of a function take."""
    start = time.process_time()
    for _ in range(times):
        function()
    return (time.process_time() - start) / times


def measure(case: Case, libraries: Sequence[str], *, scale: float = 1.0) -> list[Result]:
    """Run a case's programs in turns; return one result for each phase.

    Args:
        case: what to run.
        libraries: the libraries to compare, as far as the case knows them.
        scale: a factor on the rounds and the time.
    """
    programs = {library: program for library in libraries if (program := case.make(library)) is not None}
    if case.subject not in programs:
        return []
    results: dict[str, Result] = {}
    rounds = max(3, round(case.rounds * scale))
    for program in programs.values():
        program()  # caches and compiled parts are made before the first round
    gc.collect()
    gc.freeze()  # the libraries themselves need not be looked at again in each round
    start = time.perf_counter()
    for number in range(rounds):
        for library, times in one_round(programs, number).items():
            for phase, seconds in times.items():
                found = results.setdefault(phase, new_result(case, phase))
                found.seconds.setdefault(library, []).append(seconds)
        if number >= 2 and time.perf_counter() - start > case.budget * scale:
            break
    return list(results.values())


def new_result(case: Case, phase: str) -> Result:
    """Return the result of a phase, still without times."""
    return Result(case.name, phase, case.operations, case.subject, case.labels)


def one_round(programs: Mapping[str, Program], number: int) -> dict[str, Times]:
    """Run each program once; who begins changes from round to round."""
    order = list(programs)
    first = number % len(order)
    times = {}
    for library in order[first:] + order[:first]:
        gc.collect()
        times[library] = programs[library]()
    return times
