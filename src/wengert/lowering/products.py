"""Products of matrices as steps of programs: factors are read where they lie, by index maps that follow from labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.forms.labels import Labels, Names
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.graph.variable import Variable
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.emission.product_plans import LEVELS, dimensions_of
from wengert.kernel.kernel import Affine, Product
from wengert.lowering.rules.contractions import is_worth_a_step
from wengert.lowering.rules.lower import known_parameters
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import unknown_parameters
from wengert.passes.output_aliasing import axes_in_kernels, inverse
from wengert.primitives.shapes import reshape, transpose

Steps = Mapping[int, int]
"""Elements of an array from one place to the next along labels."""


class ProductStep:
    """Hold a product that can be a step.

    Args:
        equation: the product.
        labels: those of its operands and its result.

    Attributes:
        inputs: variables that lie as the step reads operands.
        output: one that lies as the step writes the result.
    """

    def __init__(self, equation: Equation, labels: Labels) -> None:
        (out,) = equation.outputs
        self.labels = labels
        self.inputs = [
            as_read(x, own, labels, out.dtype) for x, own in zip(equation.inputs, labels.operands, strict=True)
        ]
        self.output = as_written(out, labels)

    def product(self, left: str, right: str, into: str) -> Product:
        """Return the step, of buffers of some names."""
        names = [n for n, length in enumerate(self.labels.lengths) if n in self.known]
        extents = tuple([self.labels.lengths[n] for n in names])
        maps = [Affine(0, tuple([steps.get(n, 0) for n in names])) for steps in self.steps]
        return Product(into, maps[2], left, maps[0], right, maps[1], extents)

    @property
    def known(self) -> set[int]:
        """The labels of operands and result along which there is more than one element."""
        names = {n for own in (*self.labels.operands, self.labels.result) for n in own}
        return {n for n in names if self.labels.lengths[n] > 1}

    @property
    def steps(self) -> list[Steps]:
        """Elements from one place to the next, of both factors and the result."""
        arrays = (*self.inputs, self.output)
        return [
            steps_of(x, own, self.labels)
            for x, own in zip(arrays, (*self.labels.operands, self.labels.result), strict=True)
        ]

    @property
    def fits(self) -> bool:
        """Whether it has no more dimensions than a step may have."""
        return len(dimensions_of(self.product("x", "y", "z")).levels) <= LEVELS


def product_step(equation: Equation) -> ProductStep | None:
    """Return the product of an equation as a step; None if it is another, or a small one."""
    labels = labels_of_step(equation)
    step = None if labels is None else ProductStep(equation, labels)
    return step if step is not None and step.fits else None


def labels_of_step(equation: Equation) -> Labels | None:
    """Return the labels of a product that is to be a step; None of all else."""
    form, params = form_of(equation.primitive), equation.params
    if not isinstance(form, Contraction) or not isinstance(equation.outputs[0], Variable):
        return None
    known = known_parameters(equation.primitive)
    if known is None or unknown_parameters(params, known):
        return None
    avals = [aval_of(x) for x in (*equation.inputs, *equation.outputs)]
    if any(UNKNOWN in x.shape or 0 in x.shape for x in avals):
        return None
    labels = form.record([x.shape for x in avals[:-1]], params)
    return labels if is_worth_a_step(labels, avals[-1].dtype) else None


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
    long = [axis for axis in axes_in_kernels(out) if shape[axis] > 1]
    left, right = map(set, labels.operands)
    if not long or (labels.result[long[-1]] in left) != (labels.result[long[-1]] in right):
        return out
    sides = [axis for axis in long if (labels.result[axis] in left) != (labels.result[axis] in right)]
    last = max(sides, key=lambda axis: shape[axis], default=None)
    if last is None:
        return out
    axes = [axis for axis in range(len(shape)) if axis != last]
    strides, step = [0] * len(shape), out.dtype.itemsize
    for axis in (last, *reversed(axes)):
        strides[axis] = step
        step *= shape[axis]
    return Variable.of(out.aval, strides=tuple(strides))


def steps_of(x: Variable, own: Names, labels: Labels) -> Steps:
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


def reading_in_place(graph: Graph) -> Graph:
    """Return a graph whose products read what is transposed or reshaped where it is, if steps compute them."""
    made = {v: equation for equation in graph.equations for v in equation.outputs}
    equations = [with_factors_in_place(equation, made) for equation in graph.equations]
    if all(new is old for new, old in zip(equations, graph.equations, strict=True)):
        return graph
    return eliminate_dead(Graph(graph.inputs, equations, graph.outputs))


def with_factors_in_place(equation: Equation, made: Mapping[Variable, Equation]) -> Equation:
    """Return a product of what its factors are views of; other equations as they are."""
    labels = labels_of_step(equation)
    if labels is None:
        return equation
    pairs = [source_of(x, own, labels, made) for x, own in zip(equation.inputs, labels.operands, strict=True)]
    inputs, operands = tuple([x for x, _ in pairs]), tuple([own for _, own in pairs])
    if all(new is old for new, old in zip(inputs, equation.inputs, strict=True)):
        return equation
    shape = equation.outputs[0].shape
    merged = None if labels.lengths_of(labels.result) == shape else shape
    labels = labels.replaced(operands=operands, merged=merged)
    return Equation(PRIMITIVES["contract"], inputs, {"labels": labels}, equation.outputs, equation.origin)


def source_of(x: Any, own: Names, labels: Labels, made: Mapping[Variable, Equation]) -> tuple[Any, Names]:
    """Return what an operand is a view of, and the labels of its elements there."""
    while type(x) is Variable and x in made and made[x].primitive in (transpose, reshape):
        (source,), params = made[x].inputs, made[x].params
        lies_in_order = type(source) is Variable and axes_in_kernels(source) == tuple(range(len(source.shape)))
        if made[x].primitive is transpose:
            if labels.lengths_of(own) != x.shape:
                break
            own = tuple([own[axis] for axis in inverse(axes_of(params, len(own)))])
        elif not lies_in_order or params.get("order", "C") != "C":
            break
        x = source
    return x, own


def axes_of(params: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """Return the axes of a transposition, all of which are reversed if none are given."""
    axes = params.get("axes")
    return tuple(reversed(range(rank))) if axes is None else tuple([axis % rank for axis in axes])
