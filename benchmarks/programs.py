"""Whole programs: the time of a gradient in every library.

One thread for every library, and processor time. Nothing is compiled but the column `jax-jit`. Results must agree.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.agreement import check_agreement
from benchmarks.libraries import LIBRARIES, Library
from benchmarks.measure import Case, Program, timed
from benchmarks.program_list import HAMILTONIAN, PROGRAMS, Example, log_density, trajectory

__all__ = ["cases", "sampler_step", "step"]

Step = Callable[[], Sequence[Any]]


def cases(_threads: int) -> Iterator[Case]:
    """Yield the cases."""

    @functools.cache
    def library(name: str) -> Library:
        return LIBRARIES[name](1)

    for example in PROGRAMS:
        yield program_case(library, example.name, example.libraries, functools.partial(step, example))
    yield program_case(library, "Hamiltonian Monte Carlo, 21 gradients", tuple(LIBRARIES), sampler_step)


def program_case(
    library: Callable[[str], Library], name: str, libraries: Sequence[str], prepare: Callable[[Library], Step]
) -> Case:
    """Return the case of a program, prepared by each of the libraries that can do it."""
    expected: list[Any] = []

    def make(peer: str) -> Program | None:
        if peer not in libraries:
            return None
        run = prepare(library(peer))
        found = run()
        expected.extend(() if expected else found)  # Wengert is asked first
        check_agreement(found, expected, f"{peer}: {name}")
        return timed(run, time.process_time)

    return Case(name, 1, make, rounds=21, budget=8.0)


def step(example: Example, library: Library) -> Step:
    """Return the function that computes the gradient of a program."""
    loss = functools.partial(example.loss, library.numpy)
    parameters = [library.array(values, differentiated=True) for values in example.parameters]
    return library.step(loss, parameters, [library.data(values) for values in example.data])


def sampler_step(library: Library) -> Step:
    """Return the function that follows a trajectory with the library's own gradient function."""
    start, momentum, features, labels = map(library.data, HAMILTONIAN)

    def density(weights: Any) -> Any:
        return log_density(library.numpy, weights, features, labels)

    follow = library.finish(functools.partial(trajectory, library.gradient(density)))
    return lambda: follow(start, momentum)
