"""Cutting a joint graph of values and cotangents into a forward and a backward graph."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.values.aval import Aval
from wengert.passes.common_subexpressions import merge_equal
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import Known, distinct_variables, is_view, rename_known, variables
from wengert.passes.inlining import inline_calls
from wengert.primitives.arithmetic import divide
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

Flags = Sequence[bool]
MOST_AGAIN = 4
"""Cheap operations in a row that take no longer than to keep and read what they give."""
FEW = 8
"""How many times as many bytes something must take for what it is cheaply computed from to be kept in its place."""


class Halves(NamedTuple):
    """Hold a graph cut in two for reverse mode.

    Attributes:
        forward: inputs to (outputs, residuals).
        backward: (inputs read, residuals, cotangents of the outputs, sums) to (cotangents of inputs, sums).
        read: the positions of the inputs that the backward half reads directly.
        residuals: the avals of the residuals.
    """

    forward: Graph
    backward: Graph
    read: tuple[int, ...]
    residuals: tuple[Aval, ...]


def cut(joint: Graph, known: int, outputs: int, at_hand: Flags = (), fixed: Flags | None = None) -> Halves:
    """Cut a graph of values and cotangents where equations begin to depend on the cotangents.

    What depends on none belongs to the forward half; its values that the other half uses are the residuals. One that is
    a view of others, or a few cheap operations away from them and from much smaller values, is computed again instead
    of being kept, if it is not small, or if this is the body of a loop, which would keep one for each iteration.

    Args:
        joint: a graph whose first inputs are values and the others cotangents, and whose first outputs are those of
            the forward half.
        known: the number of inputs that are values.
        outputs: the number of outputs of the forward half.
        at_hand: the values that the backward half can read without their being saved; none by default.
        fixed: those among them from which, and from literals, it may compute again what it needs; by default nothing.
    """
    values = joint.inputs[:known]
    late = set(joint.inputs[known:])
    direct = {v for v, flag in zip(values, at_hand, strict=False) if flag}
    steady = {v for v, flag in zip(values, fixed or (), strict=False) if flag}  # what can be computed again
    early: list[Equation] = []
    rest: list[Equation] = []
    for equation in joint.equations:
        used = variables(equation.inputs)
        if not used.isdisjoint(late):
            late.update(equation.outputs)
            rest.append(equation)
            continue
        early.append(equation)
        if fixed is not None and used <= steady:
            steady.update(equation.outputs)
    results = joint.outputs[outputs:]
    outside = [
        v
        for v in distinct_variables(x for items in (*(e.inputs for e in rest), results) for x in items)
        if v not in late
    ]
    least = MACHINE.small_residual if fixed is None else 0
    steady |= near(early, {v for v in outside if v not in steady}, steady | direct, least)
    again = [equation for equation in early if equation.outputs and steady.issuperset(equation.outputs)]
    recomputed = eliminate_dead(Graph((), again, [v for v in outside if v in steady])).equations
    needed = distinct_variables([*outside, *(x for e in recomputed for x in e.inputs)])
    saved = [v for v in needed if v not in direct and v not in steady]
    direct &= set(needed)
    read = tuple(i for i, v in enumerate(values) if v in direct)
    forward = eliminate_dead(Graph(values, early, (*joint.outputs[:outputs], *saved)))
    backward = Graph((*(values[i] for i in read), *saved, *joint.inputs[known:]), (*recomputed, *rest), results)
    return Halves(forward, eliminate_dead(backward), read, tuple(v.aval for v in saved))


def residual_places(forward: Graph, own: Graph, outputs: int) -> list[int] | None:
    """Return where a forward half has the residuals of another one of the same graph; None if it lacks some.

    Args:
        forward: the half that may have them.
        own: the other one.
        outputs: the number of outputs of both that are no residuals.
    """
    known: Known = dict(zip(own.inputs, forward.inputs, strict=True))
    equations = [equation.using(rename_known(known, equation.inputs)) for equation in own.equations]
    residuals = (*forward.outputs[outputs:], *rename_known(known, own.outputs[outputs:]))
    joint = Graph(forward.inputs, (*forward.equations, *equations), residuals)
    merged = merge_equal(inline_calls(joint)).outputs  # of functions with rules that are traced anew, too
    count = len(forward.outputs) - outputs
    places = {v: i for i, v in enumerate(merged[:count])}
    found = [places[v] for v in merged[count:] if v in places]
    return found if len(set(found)) == len(merged) - count else None


def near(equations: Sequence[Equation], needed: set[Variable], given: set[Variable], least: int) -> set[Variable]:
    """Return those of the needed values, of so many bytes at least, that are cheap to compute from others or given.

    They may be computed from values that nobody else reads, too, if these are much smaller: from means of rows, say.
    With them come the values between, so that a few cheap operations in a row are one step, too.
    """
    known = needed | given
    steps, made = dict.fromkeys(known, 0), dict[Variable, set[Variable]]()
    found: list[Variable] = []
    for equation in equations:
        value, used = equation.outputs[0] if equation.outputs else None, variables(equation.inputs)  # or a check alone
        if value is None or not is_cheap(equation) or (least == 0 and is_dear_quotient(equation)):
            continue
        more, is_asked_for = used - steps.keys(), value in needed and size_of(value) >= least
        count = 1 + sum([steps[x] for x in used - more])
        if count > MOST_AGAIN or (more and not (is_asked_for and all(is_smaller(x, value) for x in more))):
            continue
        if is_asked_for:
            steps.update(dict.fromkeys(more, 0))
            known.update(more)
            made[value] = used
            found.append(value)
        elif value not in known:
            steps[value], made[value] = count, used
    again = set[Variable]()
    while found:
        value = found.pop()
        again.add(value)
        found += [x for x in made[value] if x not in known and x not in again]
    return again


def is_smaller(value: Variable, other: Variable) -> bool:
    """Tell whether a value takes so few bytes that it is kept in the place of another; not if it has unknown rows."""
    return 0 <= FEW * size_of(value) <= size_of(other)


def size_of(variable: Variable) -> int:
    """Return how many bytes the elements of a variable take."""
    return math.prod(variable.shape) * variable.dtype.itemsize


def is_dear_quotient(equation: Equation) -> bool:
    """Tell whether an equation divides so few numbers that what rounds keep of it is read from a near cache.

    Eight take 16 cycles; from there they come in 2 to 4, from memory in as many.
    """
    return equation.primitive is divide and 0 <= size_of(equation.outputs[0]) <= MACHINE.first_cache // 8


def is_cheap(equation: Equation) -> bool:
    """Tell whether what an equation gives takes about as long to compute as to read from memory."""
    primitive = equation.primitive
    return is_view(equation) if primitive.view else primitive.cheap
