"""Products of matrices as steps of programs: factors are read where they lie, by index maps that follow from labels."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.control.call import primitive as call
from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.forms.labels import Labels, Names
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.graph.variable import Variable
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.aval import PARTS, UNKNOWN, Aval, aval_of
from wengert.emission.product_plans import LEVELS, dimensions_of
from wengert.kernel.kernel import Affine, Product, Program
from wengert.lowering.index_maps import AxisIndex
from wengert.lowering.kernel_stages import program_of
from wengert.lowering.nodes import Nodes
from wengert.lowering.rules.contractions import is_worth_a_step
from wengert.lowering.rules.joins import Part, choice
from wengert.lowering.rules.lower import Lowered, in_memory, known_parameters, uses_of
from wengert.lowering.rules.operands import Pair
from wengert.lowering.rules.scalars import Scalar
from wengert.lowering.rules.view_index_maps import reshaped
from wengert.passes.equations import distinct_variables, unknown_parameters
from wengert.passes.output_aliasing import axes_in_kernels, inverse
from wengert.primitives.arithmetic import add
from wengert.primitives.conversion import astype
from wengert.primitives.shapes import reshape, transpose


class ProductStep:
    """Hold a product that can be a step.

    Args:
        equation: the product.
        labels: those of its operands and its result.
        addend: the variable that is added to it, if one is.

    Attributes:
        operands: the factors, and what is added.
        inputs: variables that lie as the step reads these.
        output: one that lies as the step writes the result.
        doubled: the operand, of complex ones, that is read as `ComplexFactor`.
    """

    def __init__(self, equation: Equation, labels: Labels, addend: Variable | None = None) -> None:
        (out,) = equation.outputs
        self.labels, self.operands = labels, [*equation.inputs, *[addend] * (addend is not None)]
        pairs = zip(equation.inputs, labels.operands, strict=True)
        self.inputs = [as_read(x, own, labels, out.dtype) for x, own in pairs]
        self.output = as_written(out, labels)
        if addend is not None:
            self.inputs.append(self.output if addend.shape == out.shape else addend)
        self.names = [n for n, length in enumerate(labels.lengths) if length > 1]
        self.doubled: ComplexFactor | None = None
        if out.dtype in PARTS:
            columns = int(last_label(self.output, labels) not in labels.operands[0])
            self.doubled = ComplexFactor(self.inputs[columns], columns, labels)

    def product(self, into: str, left: str, right: str, addend: str = "") -> Product:
        """Return the step, of buffers of some names: that of a factor which is doubled has been."""
        result = self.labels.result
        own = [*self.labels.operands, *[result[len(result) - len(x.shape) :] for x in self.inputs[2:]], result]
        arrays = zip((*self.inputs, self.output), own, strict=True)
        steps = [steps_of(x, names, self.labels) for x, names in arrays]
        names, lengths = list(self.names), dict(enumerate(self.labels.lengths))
        if self.doubled is not None:
            names += [TERM, PART]
            lengths |= {TERM: 2, PART: 2}
            steps = [{n: 2 * step for n, step in own.items()} for own in steps]
            steps[1 - self.doubled.place][TERM] = 1
            steps[self.doubled.place] = self.doubled.steps
            steps[2:] = [{**own, PART: 1} for own in steps[2:]]
        maps = [Affine(0, tuple([own.get(n, 0) for n in names])) for own in steps]
        added = maps[2] if len(maps) > 3 else None
        extents = tuple([lengths[n] for n in names])
        return Product(into, maps[-1], left, maps[0], right, maps[1], extents, addend, added)

    @property
    def fits(self) -> bool:
        """Whether it has no more dimensions than a step may have."""
        return len(dimensions_of(self.product("z", "x", "y")).levels) <= LEVELS


TERM, PART = -1, -2
"""The labels of the parts of complex numbers: of those that are added up, and of the result's."""


class ComplexFactor:
    """Be a complex factor as real numbers, by which the other one's parts are multiplied, as if they were terms.

    (a + b i) (c + d i) has the parts a c + b (-d) and a d + b c: the factor c + d i becomes the matrix (c, d; -d, c).
    So a product of complex matrices is one of real ones with twice as many terms and columns.

    Args:
        x: a variable that lies as the factor.
        place: 0 if it is the left one, 1 if it is the right one.
        labels: those of the product.
    """

    def __init__(self, x: Variable, place: int, labels: Labels) -> None:
        self.x, self.place, self.labels, self.own = x, place, labels, labels.operands[place]
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
        value = in_memory(nodes, "x0", self.x)
        assert isinstance(value, Pair)
        at = [AxisIndex(0, ((self.order.index(n), 1),) if self.labels.lengths[n] > 1 else ()) for n in self.own]
        halves = [reshaped(nodes, part, self.x.shape, shape).through(tuple(at)) for part in value]
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
        return program_of(Lowered(nodes, (value.real.node,), ((whole, self.space),), {}))


def product_step(equation: Equation) -> ProductStep | None:
    """Return the product of an equation as a step; None if it is another, or a small one."""
    labels = labels_of_step(equation)
    step = None if labels is None else ProductStep(equation, labels)
    return step if step is not None and step.fits else None


def sum_step(graph: Graph) -> ProductStep | None:
    """Return a graph of a product, and of what is added to it, as a step; None if it is another graph."""
    if len(graph.equations) != 2:
        return None
    product, addition = graph.equations
    labels = labels_of_step(product)
    if labels is None or addition.primitive is not add:
        return None
    addend = next((x for x in addition.inputs if x is not product.outputs[0]), None)
    if type(addend) is not Variable or not is_addend(addend, addition.outputs[0], product.outputs[0], labels):
        return None
    whole = Equation(product.primitive, product.inputs, product.params, addition.outputs)
    step = ProductStep(whole, labels, addend)
    return step if step.fits else None


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


def as_read(x: Any, own: Names, labels: Labels, dtype: np.dtype[Any]) -> Variable:
    """Return a variable that lies as a step reads an operand: where that is, if it can be."""
    aval = aval_of(x)
    if type(x) is Variable and x.dtype == dtype and x.shape == labels.lengths_of(own):
        return x
    return Variable.of(Aval(aval.shape, dtype))


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


def last_label(out: Variable, labels: Labels) -> int:
    """Return the label along which elements of a result lie side by side."""
    shape = labels.lengths_of(labels.result)
    axes = axes_in_kernels(out) if out.shape == shape else range(len(shape))
    return [labels.result[axis] for axis in axes if shape[axis] > 1][-1]


def steps_of(x: Variable, own: Names, labels: Labels) -> dict[int, int]:
    """Return how many elements of an array it is from one place to the next along each of its labels."""
    shape = labels.lengths_of(own)
    axes = axes_in_kernels(x) if x.shape == shape else range(len(shape))
    found: dict[int, int] = {}
    step = 1
    for axis in reversed(axes):
        if shape[axis] > 1:
            found[own[axis]] = found.get(own[axis], 0) + step
        step *= shape[axis]
    return found


# Factors that are views


Origins = Mapping[Equation, Sequence[Equation]]
"""The equations of a graph that others stand for."""


def with_product_steps(graph: Graph) -> tuple[Graph, Origins]:
    """Return a graph as products are steps of it, and what its equations stand for.

    Products of several factors are those of two. They read transposed and reshaped factors where they are, and add what
    is added to them. A sum that a step computes with its product is a call.
    """
    graph = Graph(graph.inputs, [own for equation in graph.equations for own in in_pairs(equation)], graph.outputs)
    made = {v: equation for equation in graph.equations for v in equation.outputs}
    origins: dict[Equation, Sequence[Equation]] = {}
    equations = [with_factors_in_place(equation, made, origins) for equation in graph.equations]
    graph = without_unused(graph, equations, {view for group in origins.values() for view in group[:-1]})
    uses = uses_of(graph)
    products = {e.outputs[0]: e for e in graph.equations if labels_of_step(e) is not None and uses[e.outputs[0]] == 1}
    sums = {e: found for e in graph.equations if (found := with_sum(e, products)) is not None}
    for addition, found in sums.items():
        product = found.params["graph"].equations[0]
        origins[found] = (*origins.get(product, (product,)), addition)
    inner = {found.params["graph"].equations[0] for found in sums.values()}
    equations = [sums.get(e, e) for e in graph.equations if e not in inner]
    return Graph(graph.inputs, equations, graph.outputs), origins


def in_pairs(equation: Equation) -> list[Equation]:
    """Return a sum of products of several factors as those of two, in its dtype; other equations as they are."""
    labels = labels_of(equation) if len(equation.inputs) > 2 else None
    if labels is None:
        return [equation]
    (out,), found = equation.outputs, list[Equation]()

    def new(primitive: Any, inputs: Sequence[Any], params: Mapping[str, Any], v: Variable) -> Variable:
        found.append(Equation(primitive, tuple(inputs), params, (v,), equation.origin))
        return v

    factors = [
        x if aval_of(x).dtype == out.dtype else new(astype, [x], {"dtype": out.dtype}, like(out, aval_of(x).shape))
        for x in equation.inputs
    ]
    for n, (left, right, own) in enumerate(labels.pairs, 1):
        v = out if n == len(labels.pairs) else like(out, own.shape)
        made = new(PRIMITIVES["contract"], [factors[left], factors[right]], {"labels": own}, v)
        factors = [made, *[x for i, x in enumerate(factors) if i not in (left, right)]]
    return found


def like(x: Variable, shape: tuple[int, ...]) -> Variable:
    """Return a variable of the dtype of another one, and a shape."""
    return Variable.of(Aval(shape, x.dtype))


def without_unused(graph: Graph, equations: Sequence[Equation], views: Container[Equation]) -> Graph:
    """Return a graph of other equations, without those among some views whose results nothing reads."""
    live = {x for x in graph.outputs if type(x) is Variable}
    kept: list[Equation] = []
    for equation in reversed(equations):
        if equation not in views or not live.isdisjoint(equation.outputs):
            live.update([x for x in equation.inputs if type(x) is Variable])
            kept.append(equation)
    return Graph(graph.inputs, kept[::-1], graph.outputs)


def originals(part: Graph, origins: Origins) -> Graph:
    """Return a part of a graph of products as steps in the equations of the graph that this was made of."""
    given = set(part.inputs)
    found = [own for equation in part.equations for own in origins.get(equation, (equation,))]
    distinct = [equation for equation in dict.fromkeys(found) if given.isdisjoint(equation.outputs)]
    return Graph(part.inputs, distinct, part.outputs)


def with_sum(addition: Equation, products: Mapping[Variable, Equation]) -> Equation | None:
    """Return a sum with a product as the call of both; None if no step computes them."""
    if addition.primitive is not add:
        return None
    for x in reversed(addition.inputs):
        product = products.get(x) if type(x) is Variable else None
        if product is not None:
            inputs = tuple(distinct_variables([*product.inputs, *[y for y in addition.inputs if y is not x]]))
            body = Graph(inputs, (product, addition), addition.outputs)
            if sum_step(body) is not None:
                return Equation(call, inputs, {"graph": body, "name": "sum"}, addition.outputs, addition.origin)
    return None


def with_factors_in_place(
    equation: Equation, made: Mapping[Variable, Equation], origins: dict[Equation, Sequence[Equation]]
) -> Equation:
    """Return a product of what its factors are views of, and note what it stands for; other equations as they are."""
    labels = labels_of_step(equation)
    if labels is None:
        return equation
    views: list[Equation] = []
    pairs = [source_of(x, own, labels, made, views) for x, own in zip(equation.inputs, labels.operands, strict=True)]
    inputs, operands = tuple([x for x, _ in pairs]), tuple([own for _, own in pairs])
    if all(new is old for new, old in zip(inputs, equation.inputs, strict=True)):
        return equation
    shape = equation.outputs[0].shape
    merged = None if labels.lengths_of(labels.result) == shape else shape
    labels = labels.replaced(operands=operands, merged=merged)
    found = Equation(PRIMITIVES["contract"], inputs, {"labels": labels}, equation.outputs, equation.origin)
    if product_step(found) is None:
        return equation
    origins[found] = (*reversed(views), equation)
    return found


def source_of(
    x: Any, own: Names, labels: Labels, made: Mapping[Variable, Equation], views: list[Equation]
) -> tuple[Any, Names]:
    """Return what an operand is a view of, and the labels of its elements there; add the equations of the views."""
    while type(x) is Variable and x in made and made[x].primitive in (transpose, reshape):
        (source,), params = made[x].inputs, made[x].params
        lies_in_order = type(source) is Variable and axes_in_kernels(source) == tuple(range(len(source.shape)))
        if made[x].primitive is transpose:
            if labels.lengths_of(own) != x.shape:
                break
            own = tuple([own[axis] for axis in inverse(axes_of(params, len(own)))])
        elif not lies_in_order or params.get("order", "C") != "C":
            break
        views.append(made[x])
        x = source
    return x, own


def axes_of(params: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """Return the axes of a transposition, all of which are reversed if none are given."""
    axes = params.get("axes")
    return tuple(reversed(range(rank))) if axes is None else tuple([axis % rank for axis in axes])
