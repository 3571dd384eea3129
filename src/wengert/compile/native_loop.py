"""Loops natively: where one program of kernels does all of an iteration, machine code runs it again and again.

The program is of the body, followed by the condition on what it gives. What it writes is what it reads next, so carried
values change places with those before them, and sequences are read and written row by row. Where it cannot do what is
to be done, for a place that is out of bounds or a whole number that is too large, the loop is evaluated from its start.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from wengert.compile.programs import Compiler, Kernel
from wengert.core.graph.graph import evaluate
from wengert.core.graph.loop_spec import Parts, parts
from wengert.core.graph.variable import Variable
from wengert.core.memory.memory_layout import example, lie_alike
from wengert.core.values.aval import PARTS, UNKNOWN, Aval, aval_of
from wengert.core.values.sequences import Items, sequence_aval
from wengert.core.values.tensor import raw
from wengert.emission.backend import kept_address
from wengert.lowering.iterations import ENDLESS, Iteration, behind, iteration_of, sequence_of
from wengert.lowering.layouts import as_array, as_value, overlap, side_by_side
from wengert.native.callee import address
from wengert.native.interrupts import OFTEN
from wengert.native.repeating import ENDED, FAILED, LINK, MOVE, REPEAT, REPETITION
from wengert.passes.output_aliasing import axes_in_kernels, inverse

Params = Mapping[str, Any]
Array = np.ndarray[Any, Any]
Evaluation = Callable[..., tuple[Any, ...]]

CALLING = 64
"""Cycles of an iteration around those of its program."""
FIRST_ROOM = 64
"""Rows that there is room for at first, where nobody knows how many iterations there will be."""
REPEATING = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)  # releases the lock itself


def native_loop(params: Params, compiled: Compiler, otherwise: Evaluation) -> Evaluation | None:
    """Return what evaluates a loop natively; None where kernels cannot.

    Args:
        params: of the loop.
        compiled: gives a graph as machine code; None if kernels cannot compute all of it.
        otherwise: evaluates the loop in another way.
    """
    iteration = iteration_of(params)
    kernel = None if iteration is None else compiled(iteration.graph)
    return None if iteration is None or kernel is None else NativeLoop(iteration, kernel, otherwise)


class Link(NamedTuple):
    """Say where a carried value comes from: the places of what is read and of what is written, and if they swap."""

    into: int
    out: int
    swaps: bool


class NativeLoop:
    """Run a loop natively.

    Args:
        iteration: of the loop.
        kernel: computes it.
        otherwise: evaluates the loop in another way.

    Attributes:
        inputs, carried, left: those of the iteration.
        places: among the addresses, of the variables that it gives; those of known values stand behind them.
        links: what is read next, in an order in which nothing is overwritten before it is read; and as a table.
        going, failing: the places of whether to go on, and of whether an iteration cannot be done.
        is_inner: whether it reads or leaves rows of which nobody knows how long they are, as only programs can.
        repeated: the variables that are several results.
        often: the iterations after which to look up, see `wengert.native.interrupts`.
    """

    def __init__(self, iteration: Iteration, kernel: Kernel, otherwise: Evaluation) -> None:
        self.params, self.spec, self.kernel, self.otherwise = iteration.params, iteration.spec, kernel, otherwise
        self.inputs, graph, self.is_once = iteration.inputs, iteration.graph, iteration.is_once
        self.carried, self.left = iteration.carried, iteration.left
        self.places = {v: len(self.inputs) + i for i, v in enumerate(graph.outputs)}
        self.behind = len(self.inputs) + len(kernel.made)
        self.links = sorted(self.links_of(), key=lambda link: link.swaps)
        self.table = (LINK.ctype * len(self.links))(*self.links)
        self.repeat = REPEATING(kept_address(REPEAT))
        flags = self.behind + self.spec.carried  # where those stand that say that it goes on, and that nothing failed
        self.going = self.places[iteration.going] if type(iteration.going) is Variable else flags
        self.failing = self.behind - 1 if len(kernel.made) > len(graph.outputs) else flags + 1
        self.is_inner = any(UNKNOWN in x.shape for x in (*graph.inputs, *graph.outputs))
        given = [x for x in (*self.carried, *self.left) if type(x) is Variable]
        self.repeated = {x for x in given if given.count(x) > 1}
        self.often = max(int(OFTEN / (kernel.cycles + CALLING)), 1)

    def links_of(self) -> list[Link]:
        """Return where each carried value comes from; only one can change places with what it is overwritten by."""
        found: list[Link] = []
        taken = {self.places[v] for v in self.left}
        for i, x in enumerate(self.carried):
            out = self.places[x] if type(x) is Variable else self.behind + i
            found.append(Link(self.spec.constants + i, out, out < self.behind and out not in taken))
            taken.add(out)
        return found

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Return the results of the loop."""
        given = parts(operands, self.params)
        rounds = 0 if self.is_inner else self.rounds(given)
        if rounds == 0:
            return self.otherwise(*operands)
        run = Run(self, given, rounds)
        return run.results() if run.succeeds() else self.otherwise(*operands)

    def rounds(self, given: Parts) -> int | None:
        """Return how many iterations there will be, none if it is better to evaluate them; None if nobody knows."""
        if self.params["cond"] is None:
            limit = given.limit[0] if self.spec.length is None else self.spec.length
            return 0 if np.ndim(limit) else max(int(raw(limit)), 0)
        if given.sequences or not np.all(raw(evaluate(self.params["cond"], [*given.constants, *given.carried])[0])):
            return 0
        return 1 if self.is_once else None


class Run:
    """Be one run of a loop.

    Args:
        loop: the loop.
        given: its operands.
        rounds: how many iterations there are; None if the condition tells.

    Attributes:
        done: how many there have been.
        room: how many rows there is room for.
        read: the arrays that the first iteration reads, and whole sequences.
        made: what iterations write, where they do so first: arrays, and sequences where they leave rows behind.
        known: the carried values that are the same after each iteration.
        table: the addresses that an iteration finds its arguments at, and further ones; see `NativeLoop.places`.
    """

    def __init__(self, loop: NativeLoop, given: Parts, rounds: int | None) -> None:
        self.loop, self.rounds, self.done = loop, rounds, 0
        self.room = FIRST_ROOM if rounds is None else rounds
        first, second = loop.spec.constants, loop.spec.constants + loop.spec.carried
        self.read = list(map(as_array, loop.inputs[:second], [*given.constants, *given.carried]))
        for link in loop.links:
            if link.swaps:
                self.read[link.into] = self.read[link.into].copy()  # it is written to
        self.read += [rows_of(v, x, self.room) for v, x in zip(loop.inputs[second:], given.sequences, strict=True)]
        self.rows = {loop.places[v] - len(self.read) for v in loop.left}
        self.made = [
            np.empty((self.room, *kind.shape) if i in self.rows else kind.shape, kind.dtype)
            for i, kind in enumerate(loop.kernel.made)
        ]
        self.known = [
            None if type(x) is Variable else as_array(v, x)
            for v, x in zip(loop.inputs[first:second], loop.carried, strict=True)
        ]
        self.flags = np.array([1, 0], np.uint8)
        arrays = [*self.read, *self.made, *self.known, self.flags[:1], self.flags[1:]]
        self.table = (ctypes.c_void_p * len(arrays))(*[None if x is None else address(x) for x in arrays])
        self.moves = [(i, self.read[i].strides[0]) for i in range(second, len(self.read))]
        self.moves += [(len(self.read) + i, self.made[i].strides[0]) for i in self.rows]
        if loop.spec.reverse:
            for place, step in self.moves:
                self.table[place] = (self.table[place] or 0) + step * (self.room - 1)
            self.moves = [(place, -step) for place, step in self.moves]

    def succeeds(self) -> bool:
        """Run all iterations; return whether that was possible."""
        loop, callee = self.loop, self.loop.kernel.callee
        arena = callee.new_arena()
        state = REPETITION.ctype(
            run=callee.address,
            addresses=ctypes.addressof(self.table),
            memory=address(arena),
            team=None if callee.team is None else callee.team.value,
            going=loop.going,
            failing=loop.failing,
            links=len(loop.links),
            link=ctypes.addressof(loop.table),
            moves=len(self.moves),
            move=ctypes.addressof(moves := (MOVE.ctype * len(self.moves))(*self.moves)),
            often=loop.often,
        )
        kept = [self.made]
        while state.state != ENDED and self.done != self.rounds:
            if self.done == self.room and self.rows:
                self.grow()
                kept.append(self.made)
            end = self.rounds if self.rounds is not None else self.room if self.rows else ENDLESS
            self.done += loop.repeat(ctypes.byref(state), end - self.done)
            if state.state == FAILED:
                return False
        del moves, kept
        return True

    def grow(self) -> None:
        """Make room for twice as many rows."""
        self.room *= 2
        self.made = list(self.made)
        for i in self.rows:
            before = self.made[i]
            self.made[i] = after = np.empty((self.room, *before.shape[1:]), before.dtype)
            after[: self.done] = before
            self.table[len(self.read) + i] = address(after) + self.done * after.strides[0]

    def results(self) -> tuple[Any, ...]:
        """Return what is carried at the end, and what has been left behind."""
        carried = [self.last(x) if type(x) is Variable else x for x in self.loop.carried]
        avals = map(aval_of, self.loop.params["body"].outputs[len(carried) :])
        left = [self.sequence(x, aval) for x, aval in zip(self.loop.left, avals, strict=True)]
        return (*carried, *left)

    def last(self, x: Variable) -> Any:
        """Return what has been written last of what is carried."""
        loop = self.loop
        place = loop.places[x]
        array = self.made[place - len(self.read)]
        if x in loop.left:
            array = array[0 if loop.spec.reverse else self.done - 1]
        else:
            into = next(link.into for link in loop.links if link.out == place and link.swaps)
            array = array if self.table[into] == address(array) else self.read[into]
        return as_value(x, array.copy() if x in loop.repeated else array)

    def sequence(self, x: Variable, aval: Aval) -> Any:
        """Return what iterations have left behind."""
        array = self.made[self.loop.places[x] - len(self.read)][: self.done]
        if x.dtype in PARTS:
            array = array.reshape(-1).view(x.dtype).reshape(array.shape[:-1])
        if x.strides is not None:
            array = np.transpose(array, behind(inverse(axes_in_kernels(x))))
        full = sequence_aval(aval, self.loop.spec.length)
        if UNKNOWN in full.shape:
            return Items(full, array)
        whole = sequence_of(x, self.done)
        strides = None if overlap(whole) else whole.strides
        if self.loop.left.count(x) == 1 and lie_alike(array.shape, array.strides, strides):
            return array
        found = example(array.shape, strides, array.dtype)
        found[...] = array
        return found


def rows_of(variable: Variable, sequence: Any, count: int) -> Array:
    """Return a sequence as kernels read its rows; zeros of which nobody knows how many there are as one, repeated."""
    if isinstance(sequence, Items):
        if sequence.arrays is None:
            zeros = as_array(variable, np.zeros(variable.shape, variable.dtype))
            return np.broadcast_to(zeros, (count, *zeros.shape))
        sequence = sequence.arrays if isinstance(sequence.arrays, np.ndarray) else np.stack(sequence.arrays)
    array = np.asarray(sequence[:count], variable.dtype)
    return side_by_side(array if variable.strides is None else np.transpose(array, behind(axes_in_kernels(variable))))
