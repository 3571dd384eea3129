"""Correlations of images with kernels as steps of programs: they are read where they lie, and no windows are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.forms.form import form_of
from wengert.core.graph.equation import Equation, Variable
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.emission.products.correlation_plans import Lengths, native_plan
from wengert.lowering.convolution_graphs import convolution_graph
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.primitives.signals.convolution import Sliding
from wengert.support.records import NamedTuple


class CorrelationStep(NamedTuple):
    """Hold a correlation that can be a step.

    Attributes:
        inputs, outputs: variables that lie as it reads operands, and writes the result.
        name: of the kernel.
        fields: CORRELATION.
        work: bytes of memory that it needs.
        cycles: about how long it takes.
    """

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    name: str
    fields: dict[str, int]
    work: int
    cycles: float


def correlation_step(equation: Equation, taps_are_finite: bool) -> CorrelationStep | None:
    """Return the correlation of an equation as a step; None if it is another, or NumPy's."""
    (out, *others), params = equation.outputs, equation.params
    if not isinstance(form_of(equation.primitive), Sliding) or len(equation.inputs) != 2 or type(out) is not Variable:
        return None
    if (
        others
        or convolution_graph(equation, taps_are_finite)
        or any(UNKNOWN in aval_of(x).shape for x in (*equation.inputs, out))
    ):
        return None
    rank = len(params["stride"])
    x, w = (as_images(operand, rank, out.dtype) for operand in equation.inputs)
    space = {name: params[name] for name in ("stride", "dilation", "spread", "low")}
    steps = steps_of(x, rank), steps_of(w, rank)
    plan = native_plan(x.shape, w.shape, out.shape[-rank:], out.dtype, *steps, **space)
    return None if plan is None else CorrelationStep((x, w), (Variable.of(out.aval),), *plan)


def as_images(x: Any, rank: int, dtype: np.dtype[Any]) -> Variable:
    """Return a variable that lies as a step reads images: where that is, if each of them lies in C order."""
    aval = aval_of(x)
    if type(x) is Variable and x.dtype == dtype:
        axes = axes_in_kernels(x)
        if axes[-rank:] == tuple(range(len(x.shape) - rank, len(x.shape))):
            return x
    return Variable.of(Aval(aval.shape, dtype))


def steps_of(x: Variable, rank: int) -> Lengths:
    """Return how many elements it is from one group, image and channel to the next."""
    steps = dict.fromkeys(range(-len(x.shape), 0), 0)
    step = 1
    for axis in reversed(axes_in_kernels(x)):
        steps[axis - len(x.shape)] = step
        step *= x.shape[axis]
    return tuple([steps.get(-rank - n, 0) for n in (3, 2, 1)])
