"""Attempts at steps: computed once, and differentiated to any order, also where they are rejected.

An attempt that is rejected may have gone where functions overflow. Nothing of it is in the solution, but in reverse
mode a matrix that is multiplied there gets cotangents of zero times infinity. So functions are differentiated there at
the place where the attempt began. Forward mode needs no such place: a selection leaves tangents out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.control.scan import scan
from wengert.control.side_effects import Reach
from wengert.control.subgraphs import trace_within
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.graph.graph import evaluate
from wengert.core.values.dispatch import as_tensor
from wengert.scipy.integrate._methods.held_factors import NAME, moving_with
from wengert.support.records import NamedTuple
from wengert.transforms.checkpointing import checkpoint
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back, stop_gradient

Slope = Callable[[Any, Any], Any]
Attempt = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class AlongSolution:
    """Be the slope of an equation along a solution that is known.

    Attributes:
        state: gives the solution at a time.
        change: gives the slope of a time, a state of the equation, and the solution there.
        near: gives the solution at a time from that at the same time, with its derivative.
    """

    state: Callable[[Any], Any]
    change: Callable[[Any, Any, Any], Any]
    near: Callable[[Any, Any, Any], Any]

    def __call__(self, t: Any, y: Any) -> Any:
        """Return the slope."""
        return self.change(t, y, self.state(t))

    def from_known(self, t: Any, y: Any, place: Any, known: Any) -> Any:
        """Return the slope at a time that another one, of which the solution is known, is equal to."""
        return self.change(t, y, self.near(known, t, place))


class Start(NamedTuple):
    """Hold what a step is computed of.

    Attributes:
        t, y, f: the time, the state and its slope.
        h: the size of the step, with its sign.
        mass: the mass matrix, None if there is none.
        roots: of the equations of stages, if they are known.
    """

    t: Any
    y: Any
    f: Any
    h: Any
    mass: Any = None
    roots: Sequence[Any] = ()


class Stages(NamedTuple):
    """Hold what a step computes.

    Attributes:
        slopes: what its stages give.
        state: that at its end.
        last: what stands for the slope there.
        roots: of the equations of its stages, in methods that have such.
        counted: what else methods note of the search for these.
    """

    slopes: Sequence[Any]
    state: Any
    last: Any
    roots: Sequence[Any] = ()
    counted: Sequence[Any] = ()


class Visits:
    """Be a slope as a step asks for it: at places that are visited, and at that where it begins.

    Args:
        slope: that where the step begins.
        visited: that at visited places, of what `rows` has there, too.
        start: where the step begins.
        good: whether the attempt is; None if that does not matter.
        known: the values at visited places, if the attempt was made before.
        rows: arrays of what is known where the step begins, and at each visited place.

    Attributes:
        values: those at places so far.
    """

    def __init__(
        self, slope: Slope, visited: Callable[..., Any], start: Start, good: Any, known: Sequence[Any], rows: Any
    ) -> None:
        self.slope, self.visited, self.good, self.known, self.rows = slope, visited, good, iter(known), rows
        self.start = stop_gradient((*start[:2], *[row[0] for row in rows]))
        self.values: list[Any] = []

    def __call__(self, t: Any, y: Any) -> Any:
        """Return the slope where the step begins."""
        return self.slope(t, y)

    def place(self, *place: Any) -> tuple[Any, ...]:
        """Return where the slope of a place is differentiated: where the step begins, if it is not good.

        Cotangents pass as if it were that place: they are zero if it is not good.
        """
        if self.good is None:
            return place
        held = [np.where(self.good, *stop_gradient(pair)) for pair in zip(place, self.start, strict=True)]
        return tuple(map(moving_with, held, place))

    def visit(self, t: Any, y: Any) -> Any:
        """Return the slope at a place."""
        number = len(self.values) + 1
        found = self.visited(*self.place(t, y, *[row[number] for row in self.rows]))
        self.values.append(found if self.good is None else moving_with(next(self.known), found))
        return self.values[-1]


class Trial:
    """Be an attempt at a step.

    Args:
        slope: of the equation.
        stages: what is computed.
        start: of what.
        places: the parts of the step where stages are visited. Solutions that the equation is along are computed there
            by one loop: they are long programs where they have derivatives of their own.

    Attributes:
        found: what it gives, held constant.
    """

    def __init__(
        self, slope: Slope, stages: Callable[[Visits, Start], Stages], start: Start, places: Sequence[float]
    ) -> None:
        rows: tuple[Any, ...] = ()
        at_start: Callable[..., Any] = slope
        if isinstance(slope, AlongSolution):
            rows, at_start = states_along(slope, start, places), slope.from_known
        given = (*start[:2], *known_at_start(start, rows))
        graph, captured = trace_within(Reach(NAME, slope), lambda *x: [at_start(*x)], given, NAME)
        within, all_captured = graph, [captured]
        if isinstance(slope, AlongSolution):
            change = slope.change
            within, further = trace_within(Reach(NAME, change), lambda *x: [change(*x)], given[:3], NAME)
            all_captured.append(further)

        def run(good: Any, start: Start, given: Any, rows: Any, known: Sequence[Any]) -> tuple[Stages, Sequence[Any]]:
            # a constant is a Tensor, too, of which nobody is to be warned where it is differentiated
            visits = Visits(
                lambda t, y: as_tensor(evaluate(graph, (t, y, *known_at_start(start, rows), *given[0]))[0]),
                lambda *place: as_tensor(evaluate(within, (*place, *given[-1]))[0]),
                start,
                good,
                known,
                rows,
            )
            return stages(visits, start), visits.values

        self.run, self.start, self.captured, self.rows = run, start, all_captured, rows
        # one call, as what is differentiated: what either computes of captured values alone stays in it
        held = stop_gradient((start, self.captured, rows, ()))
        found: tuple[Stages, Sequence[Any]] = checkpoint(functools.partial(run, None))(*held)
        self.found, self.values = found

    def moving(self, good: Any, is_kept: bool) -> Stages:
        """Return what it gives with derivatives; those in reverse mode are as if it went nowhere, unless it is good.

        Args:
            good: whether the attempt is.
            is_kept: whether reverse mode keeps what it needs, and does not compute it again.
        """
        values, structure = flatten(self.found[:3])
        given, inside = flatten((self.start._replace(roots=self.found.roots), self.captured, self.rows, self.values))
        visited = range(len(given) - len(self.values), len(given))

        def attempt(good: Any, *leaves: Any) -> Sequence[Any]:
            found: Sequence[Any] = flatten(self.run(good, *unflatten(inside, leaves))[0][:3])[0]
            return found

        return Stages(*unflatten(structure, moving_as(attempt, values, good, given, visited, is_kept)))


def states_along(slope: AlongSolution, start: Start, places: Sequence[float]) -> tuple[Any, ...]:
    """Return an array of the solution that an equation is along: where a step begins, and at parts of it."""

    def state(_: Any, part: Any) -> Any:
        return (), slope.state(start.t + part * start.h)

    return (scan(state, (), np.array([0.0, *places]))[1],)


def known_at_start(start: Start, rows: Sequence[Any]) -> tuple[Any, ...]:
    """Return the solution that an equation is along where a step begins, and when that is; nothing if there is none."""
    return (rows[0][0], start.t) if rows else ()


def moving_as(
    attempt: Attempt, values: Sequence[Any], good: Any, given: Sequence[Any], visited: range, is_kept: bool
) -> list[Any]:
    """Return what an attempt gives, whose values are known, with its derivatives, to any order.

    Args:
        attempt: of whether it is good, None if that does not matter, and of numbers.
        values: what it gives.
        good: whether it is.
        given: the numbers.
        visited: which of them are values of functions where the attempt went.
        is_kept: as for `Trial.moving`.
    """
    moves = [x.dtype.kind in "fc" for x in given]
    count = len(values)

    def part(good: Any, xs: Sequence[Any]) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
        """Return an attempt as a function of those numbers that can move, and these."""

        def function(*moving: Any) -> Sequence[Any]:
            rest = iter(moving)
            return attempt(good, *[next(rest) if flag else x for x, flag in zip(xs, moves, strict=True)])

        return function, [x for x, flag in zip(xs, moves, strict=True) if flag]

    known = custom_rule(lambda good, *xs: list(xs[:count]))

    def forward(good: Any, *xs: Any) -> Any:
        return known(good, *xs), (good, xs[count:])

    def backward(residuals: Any, ct: Any) -> Any:
        good, xs = residuals
        function, moving = part(good, xs)
        found = iter(pull_back(NAME, function, moving)[1](ct))
        return (None, *[None] * count, *[next(found) if flag else None for flag in moves])

    def push_tangents(primals: Any, tangents: Any) -> Any:
        good, *xs = primals
        both = *xs[count:], *[x for x, flag in zip(tangents[1 + count :], moves, strict=True) if flag]

        def change(good: Any, *both: Any) -> Sequence[Any]:
            held = list(both[: len(moves)])
            for i in visited if good is not None else ():
                held[i] = np.where(good, held[i], 0.0)  # cotangents of zero are multiplied by them
            function, moving = part(good, held)
            found: Sequence[Any] = push_forward(NAME, function, moving, both[len(moves) :])[1]
            return found

        return known(good, *xs), moving_as(change, stop_gradient(change(None, *both)), good, both, visited, is_kept)

    known.defvjp(forward, backward)
    known.defjvp(push_tangents)
    return (known if is_kept else checkpoint(known))(good, *values, *given)
