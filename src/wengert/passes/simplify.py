"""Simplification: the rewrites that primitives state, literals computed beforehand, and operands before widening."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.core.forms.abstract_evaluation import avals_and_strides
from wengert.core.forms.form import is_elementwise
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, literal
from wengert.core.memory.memory_layout import is_uniform, lie_alike
from wengert.core.values.aval import aval_of
from wengert.core.values.evaluation import evaluate_primitive
from wengert.passes.equations import Known, everywhere, rename_known, with_equations
from wengert.primitives.conversion import astype, raised
from wengert.primitives.rewrites import Definitions, Rewrite, is_number_of, is_repeated
from wengert.primitives.shapes import broadcast_to

LARGEST_FOLDED = 1 << 16
"""Elements of a result up to which an operation on literals is carried out beforehand."""


@everywhere
def simplify(graph: Graph) -> Graph:
    """Apply the rewrites to each equation in turn, with those before it simplified already."""
    known: Known = {}
    definitions: dict[Variable, Equation] = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = rename_known(known, equation.inputs)
        found = rewrite_equation(equation if inputs is equation.inputs else equation.using(inputs), definitions)
        if type(found) is Equation:
            kept.append(found)
            if found.primitive.registered:
                for variable in found.outputs:
                    definitions[variable] = found
        else:
            known[equation.outputs[0]] = found
    return with_equations(graph, kept) if not known else Graph(graph.inputs, kept, rename_known(known, graph.outputs))


def rewrite_equation(equation: Equation, definitions: Definitions) -> Any:
    """Return what is left of an equation when no rewrite applies any more; each makes it simpler."""
    if len(equation.outputs) != 1 or equation.primitive.structured:
        return equation
    while True:
        found = None
        for rewrite in rewrites_of(equation):
            found = rewrite(equation, definitions)
            if found is not None and lies_as(found, equation.outputs[0]):
                break
            found = None
        if found is None:
            return equation
        if type(found) is not Equation:
            return found
        equation = found


def lies_as(found: Any, variable: Variable) -> bool:
    """Tell whether what a rewrite gives lies in memory as the result did; see above."""
    if not variable.shape:
        return True
    if type(found) is Equation:
        order = avals_and_strides(found.primitive, found.inputs, found.params)[1]
        return lie_alike(variable.shape, variable.strides, None if order is None else order[0])
    return type(found) is not Variable or lie_alike(variable.shape, variable.strides, found.strides)


def rewrites_of(equation: Equation) -> tuple[Rewrite, ...]:
    """Return the rewrites that may apply to an equation."""
    for x in equation.inputs:
        if type(x) is Variable:
            break
    else:
        return (fold,)
    own = equation.primitive.rewrites if equation.primitive.registered else ()
    return (*own, drop_widening) if len(equation.inputs) > 1 and is_elementwise(equation.primitive) else own


# Literals


def fold(equation: Equation, _definitions: Definitions) -> Any:
    """Carry out an operation on literals alone: the same evaluation on the same operands, once instead of at each call.

    What fails is left to fail when it is run, if it ever is.
    """
    variable = equation.outputs[0]
    if equation.primitive is raised:
        return None
    if math.prod(variable.shape) > LARGEST_FOLDED or min(variable.shape, default=0) < 0:
        return None
    try:
        with np.errstate(all="ignore"):
            found = evaluate_primitive(equation.primitive, equation.inputs, equation.params)
    except (ValueError, ArithmeticError, LookupError, TypeError):
        return None
    return literal(found) if aval_of(found) == variable.aval else None


def drop_widening(equation: Equation, definitions: Definitions) -> Any:
    """Give elementwise operations what was broadcast to them, or made an array of, as it was before: they do that too.

    So they do with one element in place of a literal array that holds it everywhere.
    """
    inputs = equation.inputs
    for i, x in enumerate(inputs):
        narrower = before_widening(x, definitions)
        if narrower is not x:
            operands = (*inputs[:i], narrower, *inputs[i + 1 :])
            avals = list(map(aval_of, operands))
            same_shape = np.broadcast_shapes(*[aval.shape for aval in avals]) == equation.outputs[0].shape
            if same_shape and (not avals[i].weak or any(not a.weak and a.dtype == x.dtype for a in avals)):
                inputs = operands
    return None if inputs is equation.inputs else equation.using(inputs)


def before_widening(x: Any, definitions: Definitions) -> Any:
    """Return the variable that was broadcast, or the number that was made an array, to give an operand; else itself.

    Of a literal array with one element everywhere that is the element.
    """
    if type(x) is not Variable:
        looked_at = type(x) is np.ndarray and x.ndim and (is_repeated(x) or x.size <= LARGEST_FOLDED)
        return x.flat[0] if looked_at and is_uniform(x) else x
    before = definitions.get(x)
    if before is None or (before.primitive is not broadcast_to and before.primitive is not astype):
        return x
    narrower = before.inputs[0]
    if before.primitive is astype:
        return narrower if is_number_of(narrower, x) else x
    return narrower if type(narrower) is Variable and not narrower.weak else x
