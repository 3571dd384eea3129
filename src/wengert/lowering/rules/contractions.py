"""Sums of products, by their labels; products of large matrices are steps of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.forms.labels import Labels
from wengert.core.maps.index_maps import AxisIndex, identity_map, span
from wengert.lowering.nodes import Access, Nodes, Shape
from wengert.lowering.rules.joins import Part, add_parts, whole_box
from wengert.lowering.rules.operands import Call, DType, Found, Refused
from wengert.lowering.rules.scalars import Scalar, operate, reduce_axes, select
from wengert.lowering.rules.view_index_maps import reshape_access
from wengert.support.machine import MACHINE

STEPS = frozenset(map(np.dtype, ("f8", "f4", "c16", "c8")))
"""The dtypes of products that can be steps."""


def contraction(call: Call) -> Found:
    """Lower a sum of products by its labels."""
    form = form_of(call.primitive)
    assert isinstance(form, Contraction)
    labels = form.record(call.shapes, call.params)
    reason = unfit(call, labels)
    if reason:
        return Refused(reason)
    bound = moving_label(labels)
    kept = list(dict.fromkeys(labels.result))
    names = [*kept, *dict.fromkeys(n for own in labels.operands for n in own if n not in kept and n != bound)]
    space = labels.lengths_of(tuple(names))
    is_truth = call.out.dtype.kind == "b"
    written_out = bound is not None and not is_truth and are_few_terms(bound, labels, names, len(kept))
    around = not written_out
    terms = [
        Scalar(call.nodes, read_by_labels(call, labels, i, names, space, around), space)
        for i in range(len(labels.operands))
    ]
    name = "and" if is_truth else "product" if len(names) > len(kept) else "multiply"
    if bound is not None and written_out:
        found = sum_of_terms(terms, bound, labels, names, len(kept))
    else:
        product = product_of(name, terms)
        product = product if bound is None else within(product, bound, labels, names)
        combine = "or" if is_truth else "add"
        found = reduce_axes(call.nodes, combine, product.access, space, range(len(kept), len(names)))
    if len(kept) < len(labels.result):
        found = on_diagonals(call.nodes, found, kept, labels)
    return reshape_access(call.nodes, found, labels.lengths_of(labels.result), call.out.shape)


def product_of(name: str, factors: Sequence[Scalar]) -> Scalar:
    """Return the product of some factors, by an opcode."""
    product = factors[0]
    for factor in factors[1:]:
        product = operate(name, product, factor)
    return product


def read_by_labels(call: Call, labels: Labels, i: int, names: Sequence[int], space: Shape, around: bool) -> Access:
    """Return what a space with some labels reads of an operand.

    Where a label moves along it there is zero beyond its ends, if there is to be something around it.
    """
    own = labels.operands[i]
    shape = labels.lengths_of(own)
    x = reshape_access(call.nodes, call.convert_operand(i, call.out.dtype), call.shapes[i], shape)
    read = []
    for axis, n in enumerate(own):
        if n in names:
            read.append(AxisIndex(0, ((names.index(n), 1),) if labels.lengths[n] > 1 else ()))
            continue
        index = bound_index(n, labels, names)
        low, high = span(index, space)
        if around and (low < 0 or high >= shape[axis]):
            before = max(0, -low)
            x, shape = pad_axis(call.nodes, x, shape, axis, before, max(high + 1, shape[axis]) + before)
            index = index._replace(offset=index.offset + before)
        read.append(index)
    return x.through(tuple(read))


def moving_label(labels: Labels) -> int | None:
    """Return the label that an equation binds to others, the longer one of two operands; None without an equation."""
    if labels.relation is None:
        return None
    own = [n for operand in labels.operands for n in operand if n in labels.relation.labels]
    return max(own, key=lambda n: labels.lengths[n])


def bound_index(label: int, labels: Labels, names: Sequence[int]) -> AxisIndex:
    """Return where along a bound label the point of a space is."""
    assert labels.relation is not None
    start, steps = labels.relation.solve_for(label)
    long = [(names.index(n), step) for n, step in steps.items() if labels.lengths[n] > 1]
    return AxisIndex(start, tuple(sorted(long)))


def pad_axis(nodes: Nodes, x: Access, shape: Shape, axis: int, before: int, length: int) -> tuple[Access, Shape]:
    """Return an array with zeros around it along an axis, and its shape."""
    wide = (*shape[:axis], length, *shape[axis + 1 :])
    box = [(0, n) for n in shape]
    box[axis] = before, before + shape[axis]
    shift = [*identity_map(shape)]
    shift[axis] = AxisIndex(-before, ((axis, 1),))
    return add_parts(nodes, wide, x.node.dtype, None, [Part(x.through(tuple(shift)), tuple(box), False)], False), wide


def are_few_terms(bound: int, labels: Labels, names: Sequence[int], kept: int) -> bool:
    """Tell whether sums with a bound label have so few terms that each is written out where it has a first factor.

    There the bound label must move along one label of the result.
    """
    moving = [d for d, _ in bound_index(bound, labels, names).terms if d < kept]
    return len(moving) == 1 and math.prod(labels.lengths_of(tuple(names[kept:]))) <= MACHINE.written_terms


def sum_of_terms(factors: Sequence[Scalar], bound: int, labels: Labels, names: Sequence[int], kept: int) -> Access:
    """Return the sum of products along labels behind some, each in the places where the bound label has a number."""
    nodes, shape, index = factors[0].nodes, factors[0].shape, bound_index(bound, labels, names)
    ((axis, step),) = [own for own in index.terms if own[0] < kept]
    length, parts = labels.lengths[bound], []
    for point in np.ndindex(shape[kept:]):
        first = index.offset + sum([far * point[d - kept] for d, far in index.terms if d >= kept])
        low, high = (-first, length - first) if step > 0 else (first - length + 1, first + 1)
        low, high = max(low, 0), min(high, shape[axis])
        if low < high:
            box, read = [*whole_box(shape[:kept])], [*identity_map(shape[:kept])]
            box[axis], read[axis] = (low, high), AxisIndex(low, ((axis, 1),) if high - low > 1 else ())
            own, around = tuple([stop - start for start, stop in box]), [*identity_map(shape[:kept])]
            around[axis] = AxisIndex(-low, ((axis, 1),))
            at = (*read, *[AxisIndex(n) for n in point])
            product = product_of("product", [Scalar(nodes, x.access.through(at), own) for x in factors])
            parts.append(Part(product.access.through(tuple(around)), tuple(box), False))
    return add_parts(nodes, shape[:kept], factors[0].dtype, None, parts, False)


def within(product: Scalar, label: int, labels: Labels, names: Sequence[int]) -> Scalar:
    """Return products that have a first factor, and zero for others, whatever the second one is."""
    index = bound_index(label, labels, names)
    low, high = span(index, product.shape)
    length = labels.lengths[label]
    place = Scalar(product.nodes, product.nodes.index(index, length), product.shape)
    if low < 0:
        product = select(place >= 0, product, 0)
    return select(place < length, product, 0) if high >= length else product


def on_diagonals(nodes: Nodes, x: Access, kept: Sequence[int], labels: Labels) -> Access:
    """Return an array on the diagonals that repeated labels of the result tell, and zeros beside them."""
    shape = labels.lengths_of(labels.result)
    first = [labels.result.index(n) for n in kept]
    read = tuple([AxisIndex(0, ((d, 1),)) if shape[d] > 1 else AxisIndex(0) for d in first])
    found = Scalar(nodes, x.through(read), shape)
    for d, n in enumerate(labels.result):
        own = labels.result.index(n)
        if own != d and shape[d] > 1:
            difference = nodes.index(AxisIndex(0, ((own, 1), (d, -1))), shape[d])
            found = select(Scalar(nodes, difference, shape) == 0, found, 0)
    return found.access


def unfit(call: Call, labels: Labels) -> str:
    """Return why a sum of products is not one for kernels; nothing if it is."""
    if is_worth_a_step(labels, call.out.dtype):
        return "a product of matrices"
    if labels.relation is not None:
        work, shortest = multiplications(labels), min([labels.lengths[n] for n in labels.relation.labels])
        return "a long convolution" if work > MACHINE.convolved[0] and shortest > MACHINE.convolved[1] else ""
    return ""


def is_worth_a_step(labels: Labels, dtype: DType) -> bool:
    """Tell whether a sum of products is one of matrices that is a step of its own, not a part of a kernel."""
    if len(labels.operands) != 2 or labels.relation is not None or dtype not in STEPS:
        return False
    if len(set(labels.result)) < len(labels.result) or multiplications(labels) < MACHINE.product_step:
        return False
    sides = sides_of(labels)
    return min(sides) > 1 and math.prod(sides) >= MACHINE.stacked_step


def multiplications(labels: Labels) -> int:
    """Return how many multiplications a sum of products is."""
    bound = moving_label(labels)
    names = {n for own in (*labels.operands, labels.result) for n in own if n != bound}
    return math.prod([labels.lengths[n] for n in names])


def sides_of(labels: Labels) -> list[int]:
    """Return how many rows, columns and terms the matrices of a product have."""
    (left, right), result = map(set, labels.operands), set(labels.result)
    groups = (result & left) - right, (result & right) - left, (left | right) - result
    return [math.prod([labels.lengths[n] for n in group]) for group in groups]
