"""Products of matrices as steps of programs: factors are read where they lie, by index maps that follow from labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.forms.labels import Labels, Names
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.maps.index_maps import AxisIndex, window_map
from wengert.core.memory.memory_layout import lie_alike
from wengert.core.values.aval import PARTS, UNKNOWN, Aval, aval_of
from wengert.emission.products.product_plans import LEVELS, dimensions_of
from wengert.kernel.durations import LANES
from wengert.kernel.kernel import Affine, Product, Program
from wengert.lowering.kernel_stages import program_of
from wengert.lowering.nodes import Nodes
from wengert.lowering.rules.contractions import is_worth_a_step
from wengert.lowering.rules.joins import Part, choice
from wengert.lowering.rules.lower import Lowered, Lowering, known_parameters
from wengert.lowering.rules.operands import Pair
from wengert.lowering.rules.scalars import Scalar
from wengert.lowering.rules.view_index_maps import reshape_access
from wengert.passes.equations import unknown_parameters
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.primitives.indexing.parts import assign
from wengert.primitives.shapes import inverse, reshape, transpose
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

Views = Mapping[Variable, Equation]
"""The equations by which factors are views of arrays in memory, by their results."""


class LabelMap(NamedTuple):
    """Hold where points lie in a buffer: the first one, and how many elements apart they lie along labels."""

    start: int
    steps: dict[int, int]


class ProductStep:
    """Hold a product that can be a step.

    Args:
        product: the equation.
        labels: those of its operands and its result.
        views: the equations of what its factors are views of, by their results.
        addend: the variable that is added to it, if one is.
        out: the result, of which the product is a part if something is added.
        part: where in the addend the product goes, if the result is that but for a part.

    Attributes:
        operands: the factors, or what they are views of, and what is added.
        inputs: variables that lie as the step reads these.
        maps: where points lie in each.
        output: one that lies as the step writes the result.
        is_readable: whether index maps tell where.
        doubled: the operand, of complex ones, that is read as `ComplexFactor`.
        base: the variable to a part of which it is added in place; None if the result is a variable of its own.
    """

    def __init__(
        self,
        product: Equation,
        labels: Labels,
        views: Views,
        addend: Variable | None,
        out: Variable,
        part: AxisIndex | None = None,
    ) -> None:
        wide = wide_columns(out, labels) if addend is None else ()
        self.labels = labels
        self.output = with_labels_last(out, labels.result, wide) if wide else as_written(out, labels)
        self.base = None if part is None else addend
        self.operands: list[Any] = []
        self.inputs: list[Variable] = []
        self.maps: list[LabelMap] = []
        self.is_readable = True
        chains = [views_behind(x, views) for x in product.inputs]
        for x, chain, own in zip(product.inputs, chains, labels.operands, strict=True):
            source = chain[0].inputs[0] if chain else x
            like, found = as_read(source, chain, labels.lengths_of(own), out.dtype)
            if not chain and not set(wide).isdisjoint(own):
                like = with_labels_last(like, own, wide)
                found = index_of_view(like, (), labels.lengths_of(own))
            self.enter(source, like, found, own)
        if part is not None:
            self.enter(addend, out, part, labels.result)
        elif addend is not None:
            is_whole = addend.shape == out.shape
            like, own = self.output if is_whole else addend, labels.result if is_whole else labels.result[-1:]
            self.enter(addend, like, index_of_view(like, (), labels.lengths_of(own)), own)
        self.names = [n for n, length in enumerate(labels.lengths) if length > 1]
        self.doubled: ComplexFactor | None = None
        if out.dtype in PARTS:
            columns = int(last_label(self.output, labels) not in labels.operands[0])
            self.doubled = ComplexFactor(self.inputs[columns], chains[columns], columns, labels)

    def enter(self, operand: Any, like: Variable, index: AxisIndex | None, own: Names) -> None:
        """Enter an operand, a variable that lies as it is read, where that is, and the labels of its axes."""
        self.operands.append(operand)
        self.inputs.append(like)
        if index is None:
            self.is_readable = False
        else:
            self.maps.append(labelled_map(index, own))

    def product(self, into: str, left: str, right: str, addend: str = "") -> Product:
        """Return the step, of buffers of some names: that of a factor which is doubled has been."""
        found = [*self.maps, self.maps[-1]]
        if self.base is None:
            result = self.labels.result
            index = index_of_view(self.output, (), self.labels.lengths_of(result))
            assert index is not None
            found[-1] = labelled_map(index, result)
        names, lengths = list(self.names), dict(enumerate(self.labels.lengths))
        if self.doubled is not None:
            names += [TERM, PART]
            lengths |= {TERM: 2, PART: 2}
            found = [LabelMap(2 * start, {n: 2 * step for n, step in own.items()}) for start, own in found]
            found[1 - self.doubled.place].steps[TERM] = 1
            found[self.doubled.place] = LabelMap(0, self.doubled.steps)
            found[2:] = [LabelMap(start, {**own, PART: 1}) for start, own in found[2:]]
        maps = [Affine(start, tuple([own.get(n, 0) for n in names])) for start, own in found]
        added = maps[2] if len(maps) > 3 else None
        extents = tuple([lengths[n] for n in names])
        return Product(into, maps[-1], left, maps[0], right, maps[1], extents, addend, added)

    @property
    def fits(self) -> bool:
        """Whether it has no more dimensions than a step may have, and index maps tell where its factors are."""
        return self.is_readable and len(dimensions_of(self.product("z", "x", "y")).levels) <= LEVELS


TERM, PART = -1, -2
"""The labels of the parts of complex numbers: of those that are added up, and of the result's."""


class ComplexFactor:
    """Be a complex factor as real numbers, by which the other one's parts are multiplied, as if they were terms.

    (a + b i) (c + d i) has the parts a c + b (-d) and a d + b c: the factor c + d i becomes the matrix (c, d; -d, c).
    So a product of complex matrices is one of real ones with twice as many terms and columns.

    Args:
        x: a variable that lies as the factor, or as what it is a view of.
        views: the equations of the factor, from that on.
        place: 0 if it is the left one, 1 if it is the right one.
        labels: those of the product.
    """

    def __init__(self, x: Variable, views: Sequence[Equation], place: int, labels: Labels) -> None:
        self.x, self.views, self.place, self.labels, self.own = x, views, place, labels, labels.operands[place]
        other, result = set(labels.operands[1 - place]), labels.result
        distinct = list(dict.fromkeys(self.own))
        columns = sorted([n for n in distinct if n in result and n not in other], key=result.index)
        terms = [n for n in distinct if n not in result]
        stacks = [n for n in distinct if n not in columns and n not in terms]
        self.order = [*stacks, *terms, TERM, *columns, PART]

    @property
    def space(self) -> tuple[int, ...]:
        """The shape of the real numbers."""
        return tuple([2 if n < 0 else self.labels.lengths[n] for n in self.order])

    @property
    def steps(self) -> dict[int, int]:
        """Elements from one of the real numbers to the next along each label."""
        return {n: math.prod(self.space[d + 1 :]) for d, n in enumerate(self.order)}

    def program(self) -> Program:
        """Return the program that writes the real numbers."""
        nodes, shape = Nodes(), self.labels.lengths_of(self.own)
        factor = self.views[-1].outputs[0] if self.views else self.x
        lowering = Lowering(Graph((self.x,), self.views, (factor,)), nodes)
        lowered = lowering.lower_graph()
        value = lowering.value(factor)
        assert isinstance(value, Pair)
        at = [AxisIndex(0, ((self.order.index(n), 1),) if self.labels.lengths[n] > 1 else ()) for n in self.own]
        halves = [reshape_access(nodes, part, factor.shape, shape).through(tuple(at)) for part in value]
        ends = self.order.index(TERM), self.order.index(PART)
        conjugated = self.labels.conjugated[self.place], self.labels.conjugated[1 - self.place]
        parts = []
        for term, part in np.ndindex(2, 2):
            x = Scalar(nodes, halves[term != part], self.space)
            flips = (term != part and conjugated[0]) + (term and conjugated[1]) + (term > part)
            box = [(0, n) for n in self.space]
            box[ends[0]], box[ends[1]] = (term, term + 1), (part, part + 1)
            parts.append(Part((-x if flips % 2 else x).access, tuple(box), False))
        whole = choice(nodes, self.space, PARTS[self.x.dtype], parts)
        return program_of(Lowered(nodes, lowered.inputs, ((whole, self.space),), {}))


def product_step(equations: Sequence[Equation]) -> ProductStep | None:
    """Return a product as a step, with views that its factors are, and what is added; None if they are something else.

    Args:
        equations: of the views, the product, and the sum, or the addition to a part of an array, behind views.
    """
    place = next((n for n, equation in enumerate(equations) if not equation.primitive.view), 0)
    views, product, behind = equations[:place], equations[place], equations[place + 1 :]
    labels, (out, *others) = labels_of_step(product), equations[-1].outputs
    if labels is None or type(out) is not Variable or others:
        return None
    addend, part = None, None
    if behind and behind[-1].primitive is assign:
        part, addend = part_of_addition(behind, labels.lengths_of(labels.result)), behind[-1].inputs[0]
        if part is None:
            return None
    elif behind:
        addend = next((x for x in behind[0].inputs if x is not product.outputs[0]), None)
        if type(addend) is not Variable or not is_addend(addend, out, product.outputs[0], labels):
            return None
    step = ProductStep(product, labels, {view.outputs[0]: view for view in views}, addend, out, part)
    return step if step.fits else None


def part_of_addition(behind: Sequence[Equation], shape: tuple[int, ...]) -> AxisIndex | None:
    """Return where in an array a value goes that is added to a part of it; None if no step can add it there.

    Args:
        behind: the views that it is added as, and the addition.
        shape: of the value.
    """
    *views, addition = behind
    base, value = addition.inputs[:2]
    (out,), index = addition.outputs, addition.params["index"]
    if len(addition.inputs) > 2 or addition.params["path"] or not addition.params["add"] or type(base) is not Variable:
        return None
    if UNKNOWN in base.shape or not lie_alike(base.shape, base.strides, out.strides):
        return None
    if base.dtype in PARTS or {value.dtype, out.dtype} != {base.dtype}:
        return None
    axes = axes_in_kernels(base)

    def part(whole: Any) -> Any:
        found = whole.transpose(inverse(axes))[index if Ellipsis in index else (*index, ...)]
        undone = undo_views(found, views) if found.shape == value.shape else np.empty(0)
        return undone.reshape(shape) if undone.size == math.prod(shape) else undone

    found = window_map(tuple([base.shape[axis] for axis in axes]), part)
    steps = () if found is None else [step for _, step in found[0].terms]
    return found[0] if found is not None and min(steps, default=0) == 1 else None


def undo_views(x: Any, views: Sequence[Equation]) -> Any:
    """Return what some reshapes and transpositions make an array of, or a copy."""
    for view in reversed(views):
        if view.primitive is reshape and view.params["order"] == "C":
            x = x.reshape(view.inputs[0].shape)
        elif view.primitive is transpose:
            x = x.transpose(inverse(axes_of(view.params, x.ndim)))
        else:
            return np.empty(0, x.dtype)
    return x


def is_addend(x: Variable, out: Variable, product: Variable, labels: Labels) -> bool:
    """Tell whether a step can add a variable to a product: one of its shape, or one for all its rows."""
    if x.dtype != out.dtype or out.dtype != product.dtype or out.shape != product.shape:
        return False
    if x.shape == out.shape:
        return True
    names = labels.result[-1:]
    lies_along = len(x.shape) == 1 and x.shape == labels.lengths_of(names) == out.shape[-1:] and x.shape != (1,)
    return lies_along and last_label(as_written(out, labels), labels) == names[0]


def labels_of_step(equation: Equation) -> Labels | None:
    """Return the labels of a product that is to be a step; None of all else."""
    labels = labels_of(equation)
    return labels if labels is not None and is_worth_a_step(labels, equation.outputs[0].dtype) else None


def labels_of(equation: Equation) -> Labels | None:
    """Return the labels of a sum of products; None of all else, and of arrays without elements, or of unknown sizes."""
    form, params = form_of(equation.primitive), equation.params
    if not isinstance(form, Contraction) or not isinstance(equation.outputs[0], Variable):
        return None
    known = known_parameters(equation.primitive)
    if known is None or unknown_parameters(params, known):
        return None
    avals = [aval_of(x) for x in (*equation.inputs, *equation.outputs)]
    if any(UNKNOWN in x.shape or 0 in x.shape for x in avals):
        return None
    return form.record([x.shape for x in avals[:-1]], params)


def as_read(x: Any, views: Sequence[Equation], shape: tuple[int, ...], dtype: Any) -> tuple[Variable, AxisIndex | None]:
    """Return a variable that lies as a step reads what is a view of an operand, and where: there, if that can be."""
    if type(x) is Variable and x.dtype == dtype and (found := index_of_view(x, views, shape)) is not None:
        return x, found
    like = Variable.of(Aval(aval_of(x).shape, dtype))
    return like, index_of_view(like, views, shape)


def index_of_view(x: Variable, views: Sequence[Equation], shape: tuple[int, ...]) -> AxisIndex | None:
    """Return where a view of an array that lies as a variable, in another shape, is; None if NumPy copies."""
    axes = axes_in_kernels(x)

    def view(whole: Any) -> Any:
        found = whole.transpose(inverse(axes))
        for equation in views:
            found = equation.primitive.evaluate(found, **equation.params)
        return found.reshape(shape)

    found = window_map(tuple([x.shape[axis] for axis in axes]), view)
    return None if found is None else found[0]


def labelled_map(index: AxisIndex, own: Names) -> LabelMap:
    """Return where labels of an operand are, along whose axes an index moves."""
    steps: dict[int, int] = {}
    for axis, step in index.terms:
        steps[own[axis]] = steps.get(own[axis], 0) + step
    return LabelMap(index.offset, steps)


def as_written(out: Variable, labels: Labels) -> Variable:
    """Return a variable that lies as a step writes the result: columns or rows of matrices side by side."""
    shape = labels.lengths_of(labels.result)
    if out.shape != shape:
        return Variable.of(out.aval)
    left, right = map(set, labels.operands)
    long = [axis for axis in axes_in_kernels(out) if shape[axis] > 1]
    last = last_label(out, labels)
    if (last in left) != (last in right):
        return out
    sides = [axis for axis in long if (labels.result[axis] in left) != (labels.result[axis] in right)]
    inner = max(sides, key=lambda axis: shape[axis])
    axes = [axis for axis in range(len(shape)) if axis != inner]
    strides, step = [0] * len(shape), out.dtype.itemsize
    for axis in (inner, *reversed(axes)):
        strides[axis] = step
        step *= shape[axis]
    return Variable.of(out.aval, strides=tuple(strides))


def wide_columns(out: Variable, labels: Labels) -> Names:
    """Return the columns that are to lie side by side, with copies: those whose last axis alone is short; () if none.

    Vectors along an axis of three numbers are mostly empty: with many terms two copies take less than these products.
    """
    shape, result, (left, right) = labels.lengths_of(labels.result), labels.result, map(set, labels.operands)
    if out.shape != shape or out.dtype in PARTS or len(set(result)) < len(result):
        return ()
    last = last_label(out, labels)
    own = left - right if last in left else right - left
    columns = tuple([result[axis] for axis in axes_in_kernels(out) if result[axis] in own])
    terms = math.prod([labels.lengths[n] for n in (left & right) - set(result)])
    least, count = labels.lengths[columns[-1]] if columns else 0, math.prod([labels.lengths[n] for n in columns])
    is_last = bool(columns) and columns[-1] == last and len(columns) > 1
    saved = terms * (1 / least - 1 / LANES) if is_last else 0.0
    return columns if saved > MACHINE.turned_terms and count >= 2 * LANES else ()


def with_labels_last(x: Variable, own: Names, last: Names) -> Variable:
    """Return a variable of the same aval that lies with some labels last, in their order."""
    order = [axis for axis in axes_in_kernels(x) if own[axis] not in last] + [own.index(n) for n in last]
    strides, step = [0] * len(order), x.dtype.itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= x.shape[axis]
    return Variable.of(x.aval, strides=tuple(strides))


def last_label(out: Variable, labels: Labels) -> int:
    """Return the label along which elements of a result lie side by side."""
    shape = labels.lengths_of(labels.result)
    axes = axes_in_kernels(out) if out.shape == shape else range(len(shape))
    return [labels.result[axis] for axis in axes if shape[axis] > 1][-1]


def views_behind(x: Any, made: Views) -> list[Equation]:
    """Return the equations by which a value is a view of another one, from that on."""
    found: list[Equation] = []
    while type(x) is Variable and x in made and made[x].primitive.view and len(made[x].inputs) == 1:
        found.insert(0, made[x])
        (x,) = made[x].inputs
    return found


def axes_of(params: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """Return the axes of a transposition, all of which are reversed if none are given."""
    axes = params.get("axes")
    return tuple(reversed(range(rank))) if axes is None else tuple([axis % rank for axis in axes])
