"""Loops of machine code as steps of chains, which lay out beforehand where all that they read and write is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wengert.compile.chaining import Chain, Place, Unchained
from wengert.compile.layouts import axes_in_kernels
from wengert.compile.passes import inlined
from wengert.core.aval import Aval
from wengert.core.graph import Equation, Variable
from wengert.core.order import strides_of_stack
from wengert.native.chains import COPY
from wengert.native.repeating import LINK, MOVE

if TYPE_CHECKING:
    from wengert.control.native_loop import NativeLoop

__all__ = ["USUAL", "behind", "join", "sequence_of"]

USUAL = 128
"""Iterations of a loop of which nobody knows how many there are."""


def join(loop: NativeLoop, chain: Chain, equation: Equation) -> None:
    """Add a loop to a chain.

    Args:
        loop: what can join one.
        chain: the chain.
        equation: the loop's, of which inputs and outputs are variables of the chain's graph.

    Raises:
        Unchained: something does not lie as the loop wants it.
    """
    spec, is_counted = loop.spec, loop.params["cond"] is None
    places, moves = arguments(loop, chain, equation)
    starting = len(places) - 2  # of the flags the one that says that it goes on
    if not is_counted:
        starting = len(places)
        places.append(tested(loop, chain, places[: spec.constants + spec.carried]))
    times = spec.length if is_counted else 1 if loop.is_once else loop.most
    chain.step(
        loop.kernel.callee,
        places,
        most=times,
        sure=int(is_counted or loop.is_once),
        starting=starting,
        going=loop.going,
        failing=loop.failing,
        **chain.listed("links", "link", LINK, loop.links),
        **chain.listed("moves", "move", MOVE, moves),
        **chain.listed("copies", "copy", COPY, copies(loop, chain)),
        **chain.listed("ends", "end", COPY, ends(loop, chain, equation.outputs)),
    )
    chain.cycles += loop.kernel.cycles * min(times, USUAL if not is_counted else times)


def arguments(loop: NativeLoop, chain: Chain, equation: Equation) -> tuple[list[Place], list[tuple[int, int]]]:
    """Return where all is that `NativeLoop.places` counts, and which of it are rows, how many bytes apart."""
    spec, first = loop.spec, len(loop.inputs)
    second = spec.constants + spec.carried
    places = list(map(chain.place, equation.inputs[:second], loop.inputs))
    rows = zip(equation.inputs[second:], loop.inputs[second:], strict=True)
    places += [chain.place(x, rows_in_order(v, spec.length)) for x, v in rows]
    places += [chain.room(kind.dtype.itemsize * math.prod(kind.shape)) for kind in loop.kernel.made]
    for v, x in zip(loop.left, equation.outputs[spec.carried :], strict=True):
        places[loop.places[v]] = chain.place(x, rows_in_order(v, spec.length))
    for v, x in zip(loop.inputs[spec.constants : second], loop.carried, strict=True):
        places.append(Place(-1) if type(x) is Variable else chain.place(x, v))
    flags = chain.holding(bytes([1, 0]))
    moves = [(i, bytes_of(loop.inputs[i])) for i in range(second, first)]
    moves += [(loop.places[v], bytes_of(v)) for v in loop.left]
    if spec.reverse:
        for i, step in moves:
            places[i] = places[i].after(step * (spec.length - 1))
        moves = [(i, -step) for i, step in moves]
    return [*places, flags, flags.after(1)], moves


def copies(loop: NativeLoop, chain: Chain) -> list[tuple[int, ...]]:
    """Return what is copied before the first iteration, since it will be written to: COPYs."""
    sizes = [(link.into, bytes_of(loop.inputs[link.into])) for link in loop.links if link.swaps]
    return [(into, *chain.room(size), size) for into, size in sizes]


def ends(loop: NativeLoop, chain: Chain, results: Sequence[Variable]) -> list[tuple[int, ...]]:
    """Return where carried values are to be in the end: COPYs."""
    found: list[tuple[int, ...]] = []
    for i, (v, x) in enumerate(zip(loop.carried, results, strict=False), loop.spec.constants):
        found.append((i, *chain.place(x, v if type(v) is Variable else x), bytes_of(x)))
    return found


def tested(loop: NativeLoop, chain: Chain, places: Sequence[Place]) -> Place:
    """Add the condition before the first iteration to a chain; return where it is told."""
    graph = inlined(loop.params["cond"])
    kernel = loop.compiled(graph) if type(graph.outputs[0]) is Variable else None
    if kernel is None:
        raise Unchained
    result = chain.room(1)
    chain.step(kernel.callee, [*places, result, chain.holding(bytes(1))], failing=len(places) + 1)
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


def bytes_of(variable: Variable) -> int:
    """Return how many bytes a value takes."""
    return variable.dtype.itemsize * math.prod(variable.shape)
