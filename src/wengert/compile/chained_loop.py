"""Loops of machine code as steps of chains, which lay out beforehand where all that they read and write is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wengert.compile.layouts import axes_in_kernels
from wengert.compile.passes import inlined
from wengert.compile.program_steps import Chain, Place, Unchained, bytes_of
from wengert.compile.programs import Compiler, Kernel
from wengert.core.graph.graph import Equation, Variable
from wengert.core.graph.loop_spec import USUAL, LoopSpec, is_counted
from wengert.core.memory.memory_layout import strides_of_stack
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.native.chains import COPY
from wengert.native.repeating import LINK, MOVE

__all__ = ["ENDLESS", "Link", "behind", "join", "sequence_of"]

ENDLESS = 1 << 62
"""As many at most."""


class Link(NamedTuple):
    """Say where a carried value comes from: the places of what is read and of what is written, and if they swap."""

    into: int
    out: int
    swaps: bool


class LoopIteration(Protocol):
    """Be an iteration of a loop as one program of kernels; see `wengert.compile.native_loop.NativeLoop`."""

    spec: LoopSpec
    params: Mapping[str, Any]
    kernel: Kernel
    compiled: Compiler
    inputs: tuple[Variable, ...]
    carried: list[Any]
    left: list[Any]
    places: dict[Variable, int]
    links: list[Link]
    going: int
    failing: int
    is_once: bool
    often: int


def join(loop: LoopIteration, chain: Chain, equation: Equation) -> None:
    """Add a loop to a chain.

    Args:
        loop: what can join one.
        chain: the chain.
        equation: the loop's, of which inputs and outputs are variables of the chain's graph.

    Raises:
        Unchained: something does not lie as the loop wants it.
    """
    spec, has_length = loop.spec, loop.params["cond"] is None
    places, moves = arguments(loop, chain, equation)
    starting, counted = len(places) - 2, -1  # the first of the flags says that it goes on
    if not has_length:
        starting = len(places)
        places.append(tested(loop, chain, places[: spec.constants + spec.carried]))
    elif spec.length is None:
        counted = len(places)
        places.append(count_of(chain, equation.inputs[0]))
    times = times_of(loop, chain)
    chain.step(
        loop.kernel.callee,
        places,
        loop.kernel.cycles * (spec.length or min(times, USUAL)),
        most=times,
        counted=counted,
        often=loop.often,
        sure=int(has_length or loop.is_once),
        starting=starting,
        going=loop.going,
        failing=loop.failing,
        **chain.listed("links", "link", LINK, loop.links),
        **chain.listed("moves", "move", MOVE, moves),
        **chain.listed("copies", "copy", COPY, copies(loop, chain)),
        **chain.listed("ends", "end", COPY, ends(loop, chain, equation.outputs)),
    )
    give_repeated(loop, chain, equation.outputs[spec.carried :])


def times_of(loop: LoopIteration, chain: Chain) -> int:
    """Return how often a loop runs, at most if nobody knows."""
    if loop.params["cond"] is not None and loop.is_once:
        return 1
    has_rows = len(loop.left) + len(loop.inputs) > loop.spec.constants + loop.spec.carried
    return loop.spec.length or (chain.rows if has_rows else ENDLESS)


def count_of(chain: Chain, limit: Any) -> Place:
    """Return where it stands how often a loop runs; raise Unchained if that is not one whole number of 64 bits."""
    aval = aval_of(limit)
    if aval.shape or aval.dtype != np.int64:
        raise Unchained
    return chain.place(limit, limit if type(limit) is Variable else Variable.of(aval, ""))


def arguments(loop: LoopIteration, chain: Chain, equation: Equation) -> tuple[list[Place], list[tuple[int, int]]]:
    """Return where all is that `LoopIteration.places` counts, and which of it are rows, how many bytes apart."""
    spec, first = loop.spec, len(loop.inputs)
    second = spec.constants + spec.carried
    given = equation.inputs[int(is_counted(loop.params)) :]
    places = list(map(chain.place, given[:second], loop.inputs))
    places += [
        place_of_rows(chain, x, v, spec.length, False)
        for x, v in zip(given[second:], loop.inputs[second:], strict=True)
    ]
    rows = {loop.places[v] for v in loop.left}
    places += [
        Place(-1) if i in rows else chain.room(kind.dtype.itemsize * math.prod(kind.shape))
        for i, kind in enumerate(loop.kernel.made, len(loop.inputs))
    ]
    made: dict[Variable, Variable] = {}
    for v, x in zip(loop.left, equation.outputs[spec.carried :], strict=True):
        if v not in made:
            made[v] = x
            places[loop.places[v]] = place_of_rows(chain, x, v, spec.length, True)
    for v, x in zip(loop.inputs[spec.constants : second], loop.carried, strict=True):
        places.append(Place(-1) if type(x) is Variable else chain.place(x, v))
    flags = chain.holding(bytes([1, 0]))
    moves = [(i, bytes_of(loop.inputs[i])) for i in range(second, first)]
    moves += [(loop.places[v], bytes_of(v)) for v in made]
    if spec.reverse:
        for i, step in moves:
            places[i] = places[i].after(step * ((spec.length or 1) - 1))
        moves = [(i, -step) for i, step in moves]
    return [*places, flags, flags.after(1)], moves


def place_of_rows(chain: Chain, x: Any, row: Variable, length: int | None, is_made: bool) -> Place:
    """Return where rows of a sequence lie one behind the other; raise Unchained if they do not."""
    if length is None or UNKNOWN in row.shape:
        return chain.place_of_rows(x, row, is_made, length)
    return chain.place(x, rows_in_order(row, length))


def give_repeated(loop: LoopIteration, chain: Chain, results: Sequence[Variable]) -> None:
    """Let sequences of the same rows be one, to which nobody writes again, and copies where the chain gives several."""
    first: dict[Variable, Variable] = {}
    for v, x in zip(loop.left, results, strict=True):
        if first.setdefault(v, x) is x:
            continue
        place, row, most = chain.sequences[first[v]]
        if x in chain.places:
            chain.copy(place, chain.places[x], bytes_of(x))
            place = chain.places[x]
        chain.sequences[x] = place, row, most


def copies(loop: LoopIteration, chain: Chain) -> list[tuple[int, ...]]:
    """Return what is copied before the first iteration, since it will be written to: COPYs."""
    sizes = [(link.into, bytes_of(loop.inputs[link.into])) for link in loop.links if link.swaps]
    return [(into, *chain.room(size), size) for into, size in sizes]


def ends(loop: LoopIteration, chain: Chain, results: Sequence[Variable]) -> list[tuple[int, ...]]:
    """Return where carried values are to be in the end: COPYs."""
    found: list[tuple[int, ...]] = []
    for i, (v, x) in enumerate(zip(loop.carried, results, strict=False), loop.spec.constants):
        found.append((i, *chain.place(x, v if type(v) is Variable else x), bytes_of(x)))
    return found


def tested(loop: LoopIteration, chain: Chain, places: Sequence[Place]) -> Place:
    """Add the condition before the first iteration to a chain; return where it is told."""
    graph = inlined(loop.params["cond"])
    kernel = loop.compiled(graph) if type(graph.outputs[0]) is Variable else None
    if kernel is None:
        raise Unchained
    result = chain.room(1)
    chain.step(kernel.callee, [*places, result, chain.holding(bytes(1))], kernel.cycles, failing=len(places) + 1)
    return result


def behind(axes: Sequence[int]) -> list[int]:
    """Return the axes of a sequence of arrays that have their axes in some order."""
    return [0, *[axis + 1 for axis in axes]]


def sequence_of(variable: Variable, length: int) -> Variable:
    """Return what is as a sequence of so many of what a variable is."""
    shape = length, *variable.shape
    return Variable.of(
        Aval(shape, variable.dtype), "", strides_of_stack(shape, variable.strides, variable.dtype.itemsize)
    )


def rows_in_order(variable: Variable, length: int) -> Variable:
    """Return what is as a sequence, if its rows lie in memory one behind the other; raise Unchained if they do not."""
    found = sequence_of(variable, length)
    if axes_in_kernels(found) != tuple(behind(axes_in_kernels(variable))):
        raise Unchained
    return found
