"""Products of what each round of a loop begins with, by what the round before it gave: a loop leaves one of these.

The gradient of a recurrent network by the matrix of its states multiplies these as they were before each round. Of 128
cells, batch 32, 50 steps, they are 1.6 MB, all but the first of which the loop leaves behind as those after each round.
Sums over rounds are rounded in another order.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from wengert.core.forms.labels import Labels, labelled
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import holds_graphs, throughout
from wengert.passes.products_after_loops import LEAST, bytes_of, labels_of_product, lies_plainly
from wengert.passes.rows_in_loops import is_loop_of_known_length
from wengert.primitives.arithmetic import add
from wengert.primitives.indexing.parts import getitem
from wengert.primitives.shapes import transpose
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple


class StatesBefore(NamedTuple):
    """Hold a sequence of what rounds begin with, whose axes are permuted.

    Attributes:
        start: what the first round begins with.
        after: the sequence of what rounds give.
        axes: for each axis of a row of the sequence, that of a state.
        is_reverse: whether the last row belongs to the first round.
    """

    start: Any
    after: Variable
    axes: tuple[int, ...]
    is_reverse: bool


@throughout
def multiply_states_after_rounds(graph: Graph) -> Graph:
    """Return a graph whose products read states before rounds, which nobody else does, among those after rounds."""
    if not holds_graphs(graph):
        return graph
    readers = defaultdict[Any, list[Equation]](list)
    for equation in graph.equations:
        for x in equation.inputs:
            if type(x) is Variable:
                readers[x].append(equation)
    given = {x for x in graph.outputs if type(x) is Variable}
    changed: dict[Equation, list[Equation]] = {}
    for loop in filter(is_loop_of_known_length, graph.equations):
        for x, states in states_before(loop).items():
            found = {e: by_states_after(e, x, states) for e in readers[x] if e not in changed}
            split = {e: own for e, own in found.items() if own}
            if x not in given and len(split) == len(readers[x]):
                changed |= split
    if not changed:
        return graph
    return eliminate_dead(
        Graph(graph.inputs, [own for e in graph.equations for own in changed.get(e, [e])], graph.outputs)
    )


def states_before(loop: Equation) -> dict[Variable, StatesBefore]:
    """Return the large sequences that a loop leaves behind of what its rounds begin with, besides what these give."""
    spec, body, found = loop.params["spec"], loop.params["body"], dict[Variable, StatesBefore]()
    pairs = zip(body.inputs[spec.constants :], body.outputs[: spec.carried], strict=False)
    carried = {before: after for before, after in pairs if type(after) is Variable}
    starts = dict(zip(body.inputs, loop.inputs, strict=True))
    left = list(zip(body.outputs, loop.outputs, strict=True))[spec.carried :]
    sequences = {v: x for v, x in left if type(v) is Variable}
    makers = {e.outputs[0]: e for e in body.equations if e.primitive is transpose}
    for v, x in left:
        axes = tuple(range(len(x.shape) - 1))
        while type(v) is Variable and v in makers:
            own = makers[v].params["axes"]
            v, axes = makers[v].inputs[0], tuple([own[axis] for axis in axes])
        after = sequences.get(carried[v]) if type(v) is Variable and v in carried else None
        is_large = UNKNOWN not in x.shape and x.shape[0] >= LEAST and bytes_of(x) >= MACHINE.second_cache // 4
        if after is not None and after is not x and is_large and lies_plainly(after):
            found[x] = StatesBefore(starts[v], after, axes, spec.reverse)
    return found


def by_states_after(product: Equation, x: Variable, states: StatesBefore) -> list[Equation]:
    """Return the sum of a product by the start, and one by what all rounds but the last give; [] of what is none.

    Args:
        product: any equation that reads the states before rounds.
        x: these.
        states: where they are besides.
    """
    labels, (out, *others) = labels_of_product(product), product.outputs
    places = [n for n, factor in enumerate(product.inputs) if factor is x]
    if labels is None or others or len(places) != 1 or len(product.inputs) != 2 or is_unusual(labels):
        return []
    (place,) = places
    other, names = product.inputs[1 - place], labels.operands[place]
    rounds, own = names[0], labels.operands[1 - place]
    if type(other) is not Variable or not (lies_plainly(other) and lies_plainly(out)):
        return []
    if rounds in (*labels.result, *names[1:]) or own.count(rounds) != 1:
        return []
    axis, found = own.index(rounds), list[Equation]()
    if other.shape[axis] != x.shape[0] or {out.dtype, other.dtype, aval_of(states.start).dtype} != {x.dtype}:
        return []

    def append(primitive: Primitive, inputs: tuple[Any, ...], params: dict[str, Any], shape: Any) -> Variable:
        v = Variable.of(Aval(shape, out.dtype))
        found.append(Equation(primitive, inputs, params, (v,), product.origin))
        return v

    def part(sequence: Variable, axis: int, index: Any) -> Variable:
        shape = [n - 1 if d == axis else n for d, n in enumerate(sequence.shape)]
        shape = shape if isinstance(index, slice) else [n for d, n in enumerate(shape) if d != axis]
        return append(getitem, (sequence,), {"index": (*[slice(None)] * axis, index)}, tuple(shape))

    def multiply(states_there: Any, rows: Variable, ahead: tuple[int, ...]) -> Variable:
        axes = dict(zip(states.axes, names[1:], strict=True))
        left = (*ahead, *[axes[d] for d in range(len(axes))])
        right = tuple([n for n in own if n in ahead or n != rounds])
        pairs = [(states_there, left), (rows, right)]
        factors, operands = zip(*(pairs if place == 0 else pairs[::-1]), strict=True)
        shapes = [aval_of(factor).shape for factor in factors]
        product_labels = labelled(shapes, operands, labels.result)
        return append(PRIMITIVES["contract"], factors, {"labels": product_labels}, out.shape)

    first, after, since = -1, slice(1, None), slice(None, -1)
    if not states.is_reverse:
        first, after, since = 0, since, after
    one = multiply(states.start, part(other, axis, first), ())
    rest = multiply(part(states.after, 0, after), part(other, axis, since), (rounds,))
    found.append(Equation(add, (one, rest), {}, (out,), product.origin))
    return found


def is_unusual(labels: Labels) -> bool:
    """Tell whether labels say more of a product than which axes are multiplied and summed."""
    return labels.relation is not None or labels.merged is not None or any(labels.conjugated)
