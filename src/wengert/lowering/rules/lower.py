"""Lowering: from the equations of a graph to nodes, by the forms of their primitives.

What no rule knows is refused, with the reason, and computed by NumPy between kernels. Whether an equation is refused
follows from its primitive, its parameters and the types of its operands alone, literals included; parameters that a
rule does not name are refused, not ignored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Form, Pointwise, Reduction, Scan, form_of
from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import Boxes, Region, Selection, View
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.maps.index_maps import AxisIndex
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import UNKNOWN, Aval, aval_of, is_number
from wengert.kernel.checking import DTYPES
from wengert.lowering.nodes import LONG, Access, Bounds, Nodes, PointNode, Shape
from wengert.lowering.rules.branches import are_short, branch_flags, select_branch, specialise_graph
from wengert.lowering.rules.complexes import complex_call, is_complex, joined_parts, literal_parts, parts_in_memory
from wengert.lowering.rules.contractions import contraction
from wengert.lowering.rules.joins import assign, boxes, concatenate, pad, place_windows, stack
from wengert.lowering.rules.operands import Call, Pair, Refused, Rule, Value
from wengert.lowering.rules.pointwise import (
    divides_by_zero,
    is_whole_number,
    pointwise,
    too_large,
    too_long_to_compare,
    whole_ranges,
)
from wengert.lowering.rules.reductions import extremum_partials, recurrence, reduction, scan, trace
from wengert.lowering.rules.scalars import Scalar
from wengert.lowering.rules.view_index_maps import (
    difference,
    imaginary,
    part,
    place_diagonal,
    repeat,
    tile,
    triangle,
    view,
)
from wengert.passes.equations import branches_of, keyword_parameters, unknown_parameters
from wengert.passes.inlining import of_dtype
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.primitives.shapes import inverse
from wengert.support.records import FieldRecord

UNBOUNDED: Mapping[Variable, Bounds] = {}


class Lowered(FieldRecord):
    """Hold what a graph computes as nodes.

    Attributes:
        nodes: all of them.
        inputs: a buffer for each input; None where kernels have no values of its type.
        outputs: for each output what it reads, and its shape; last whether a place was out of bounds, if one may be.
        refused: the equations that are not among the nodes, by their place, and why.
    """

    nodes: Nodes
    inputs: tuple[PointNode | None, ...]
    outputs: tuple[tuple[Access, Shape] | None, ...]
    refused: Mapping[int, Refused]


class Lowering:
    """Hold what the variables of a graph stand for, while its equations are lowered.

    Args:
        graph: the graph.
        nodes: what makes nodes.
        bounds: of those inputs whose least and greatest whole numbers are known, these.
    """

    def __init__(self, graph: Graph, nodes: Nodes, bounds: Mapping[Variable, Bounds] = UNBOUNDED) -> None:
        self.graph = graph
        self.nodes = nodes
        self.bounds = bounds
        self.known: dict[Variable, Value] = {}
        self.uses = uses_of(graph)
        self.rules: dict[Primitive, tuple[Container[str] | None, Rule]] = {}
        self.refused: dict[int, Refused] = {}

    def lower_graph(self) -> Lowered:
        """Return the graph as nodes."""
        self.give_inputs()
        for i, equation in enumerate(self.graph.equations):
            found = self.equation(equation)
            if not isinstance(found, Refused):
                self.known.update(zip(equation.outputs, found, strict=True))
                continue
            self.refused[i] = found
            for j, variable in enumerate(equation.outputs):
                self.give(variable, f"e{i}_{j}")
        inputs = tuple([self.buffer(variable) for variable in self.graph.inputs])
        outputs = tuple(map(self.output, self.graph.outputs))
        return Lowered(self.nodes, inputs, (*outputs, *self.outside()), self.refused)

    def give_inputs(self) -> None:
        """Let the inputs stand for buffers."""
        for i, variable in enumerate(self.graph.inputs):
            self.give(variable, f"x{i}")
            node, bounds = self.buffer(variable), self.bounds.get(variable)
            if node is not None and bounds is not None:
                self.nodes.bounds[node] = bounds

    def outside(self) -> list[tuple[Access, Shape]]:
        """Return whether a place was out of bounds, as one output; nothing where none can be."""
        if not self.nodes.outside:
            return []
        found, *others = self.nodes.outside
        for other in others:
            found = self.nodes.point("or", found.node.dtype, (), found, other)
        return [(found, ())]

    def give(self, variable: Variable, name: str) -> None:
        """Let a variable stand for a buffer."""
        if is_native(variable.aval):
            self.known[variable] = in_memory(self.nodes, name, variable)

    def buffer(self, variable: Variable) -> PointNode | None:
        """Return the buffer of an input."""
        value = self.known.get(variable)
        return None if value is None else value.real.node if isinstance(value, Pair) else value.node

    def value(self, x: Any) -> Value:
        """Return what stands for a variable or literal."""
        if type(x) is Variable:
            return self.known[x]
        return literal_parts(self.nodes, x) if is_complex(aval_of(x)) else literal(self.nodes, x)

    def output(self, x: Any) -> tuple[Access, Shape] | None:
        """Return what an output reads, and its shape in memory."""
        aval = aval_of(x)
        if not is_native(aval):
            return None
        value, shape = self.value(x), aval.shape
        if type(x) is Variable:
            axes = axes_in_kernels(x)
            value, shape = permute_axes(value, shape, inverse(axes)), tuple([shape[axis] for axis in axes])
        return joined_parts(self.nodes, value, shape) if isinstance(value, Pair) else (value, shape)

    def equation(self, equation: Equation) -> Sequence[Value] | Refused:
        """Return what stands for the results of an equation, or why there is nothing."""
        avals = list(map(aval_of, equation.inputs))
        refused = reason_refused(equation, avals)
        if refused is None and equation.primitive.must_run and self.uses.keys().isdisjoint(equation.outputs):
            refused = Refused("a check, whose result nobody uses")
        if refused is not None:
            return refused
        known, rule = self.rule(equation.primitive)
        if known is not None and (ignored := unknown_parameters(equation.params, known)):
            return Refused(f"the parameters {', '.join(ignored)}")
        if isinstance(equation.primitive, Structured):
            branches = branches_of(equation)
            return Refused("control flow") if branches is None else self.lower_choice(equation, branches)
        values = list(map(self.value, equation.inputs))
        results: list[Value] = []
        for k, out in enumerate(equation.outputs):
            call = self.call(equation, values, avals, k)
            with_pairs = is_complex(out.aval) or len(call.args) < len(values)
            found = complex_call(call, values, rule) if with_pairs else rule(call)
            if isinstance(found, Refused):
                return found
            results.append(found)
            if is_whole_number(equation.outputs[k]):
                self.nodes.outside += too_large(self.nodes, equation, call.args)
        args = [x for x in values if isinstance(x, Access)]
        self.nodes.outside += divides_by_zero(self.nodes, equation, args)
        self.nodes.outside += too_long_to_compare(self.nodes, equation, args)
        return results

    def rule(self, primitive: Primitive) -> tuple[Container[str] | None, Rule]:
        """Return the parameters that the rule of a primitive knows, and the rule: many equations have the same one."""
        found = self.rules.get(primitive)
        if found is None:
            found = self.rules[primitive] = known_parameters(primitive), rule_of(primitive)
        return found

    def call(self, equation: Equation, values: Sequence[Value], avals: Sequence[Aval], k: int = 0) -> Call:
        """Return what a rule is given for one of the results of an equation, whose operands stand for some values."""
        args = [value for value in values if isinstance(value, Access)]
        alone = [self.uses.get(x, 0) == 1 if type(x) is Variable else False for x in equation.inputs]
        out = equation.outputs[k].aval
        return Call(self.nodes, equation.primitive, equation.params, equation.inputs, args, avals, out, alone, k)

    def lower_choice(self, equation: Equation, graphs: Sequence[Graph]) -> Sequence[Value] | Refused:
        """Return the results of the graph that an index chooses among several; all of them are computed."""
        index, *operands = equation.inputs
        if not are_short(graphs):
            return Refused("branches that take long")
        columns = []
        flags = branch_flags(self.nodes, self.value(index), len(graphs))
        for graph, flag in zip(graphs, flags, strict=True):
            column = self.inside(graph, operands, equation.outputs, flag)
            if isinstance(column, Refused):
                return column
            columns.append(column)
        return select_branch(flags, columns, [v.shape for v in equation.outputs])

    def inside(
        self, graph: Graph, operands: Sequence[Any], results: Sequence[Variable], flag: Scalar
    ) -> Sequence[Value] | Refused:
        """Return what a graph gives for some operands; places out of bounds are told if it is the one taken."""
        operands = list(map(of_dtype, operands, graph.inputs))
        if not have_dtypes(operands, graph.inputs):
            return Refused("operands that have other dtypes in a branch")
        graph = specialise_graph(graph, operands)
        found = list(map(of_dtype, graph.outputs, results))
        if not have_dtypes(found, results):
            return Refused("results that have other dtypes in a branch")
        inner = Lowering(graph, self.nodes.apart())
        given = [x for x in operands if type(x) is Variable]
        inner.known.update(zip(graph.inputs, map(self.value, given), strict=True))
        inner.uses = dict.fromkeys(inner.uses, 2)  # what is given is read by others, too
        for equation in graph.equations:
            values = inner.equation(equation)
            if isinstance(values, Refused):
                return values
            inner.known.update(zip(equation.outputs, values, strict=True))
        self.nodes.outside += [(Scalar(self.nodes, x, ()) & flag).access for x in inner.nodes.outside]
        return list(map(inner.value, found))


def lower(graph: Graph, bounds: Mapping[Variable, Bounds] = UNBOUNDED) -> Lowered:
    """Return what a graph computes as nodes; what an equation gives that is refused is a buffer of its own."""
    return Lowering(graph, Nodes(), bounds).lower_graph()


def have_dtypes(values: Sequence[Any], variables: Sequence[Variable]) -> bool:
    """Tell whether values have the dtypes of some variables."""
    return all(aval_of(x).dtype == v.dtype for x, v in zip(values, variables, strict=True))


def in_memory(nodes: Nodes, name: str, variable: Variable) -> Value:
    """Return a variable as an input, which lies in its memory order."""
    axes = axes_in_kernels(variable)
    aval = variable.aval._replace(shape=tuple([variable.shape[axis] for axis in axes]))
    if is_complex(aval):
        return permute_axes(parts_in_memory(nodes, name, aval), aval.shape, axes)
    return permute_axes(nodes.input(name, aval.shape, aval.dtype), aval.shape, axes)


def permute_axes(value: Value, shape: Shape, axes: tuple[int, ...]) -> Value:
    """Return a value whose axes are these of its reader."""
    if axes == tuple(range(len(axes))):
        return value
    read = tuple([AxisIndex(0, () if n == 1 else ((axis, 1),)) for n, axis in zip(shape, axes, strict=True)])
    return Pair(*[x.through(read) for x in value]) if isinstance(value, Pair) else value.through(read)


def uses_of(graph: Graph) -> dict[Variable, int]:
    """Return how often each variable is used."""
    found: dict[Variable, int] = {}
    for values in (*[equation.inputs for equation in graph.equations], graph.outputs):
        for x in values:
            if type(x) is Variable:
                found[x] = found.get(x, 0) + 1
    return found


def is_native(aval: Aval) -> bool:
    """Tell whether kernels have values of a type; lengths that are not known are negative."""
    return (aval.dtype in DTYPES or is_complex(aval)) and min(aval.shape, default=1) > 0


def reason_refused(equation: Equation, given: Sequence[Aval]) -> Refused | None:
    """Return why an equation is refused whatever its rule says, for operands of these types; None if it is not."""
    if not equation.outputs and not equation.primitive.structured:
        return Refused("what only checks numbers")
    avals = [*given, *[x.aval for x in equation.outputs]]
    for aval in avals:
        if aval.dtype in DTYPES and not aval.shape:  # most, which need no further look
            continue
        if min(aval.shape, default=1) < 1:
            return Refused("rows of unknown number" if UNKNOWN in aval.shape else "arrays without elements")
        if not is_native(aval):
            return Refused(f"values of dtype {aval.dtype}")
    integers = {aval.dtype for aval in avals if aval.dtype.kind in "iu"}
    if not integers:
        return None
    counted = any(aval.weak and aval.dtype.kind in "iu" for aval in avals[len(given) :])
    if counted and not whole_ranges(equation):
        return Refused("whole numbers of Python's, which have no size")
    if any(type(x) is int and not -(1 << 63) <= x < 1 << 63 for x in equation.inputs):
        return Refused("a whole number of more than 64 bits")
    if any(map(is_whole_number, equation.inputs)) and integers != {LONG}:
        return Refused("a whole number of Python's, which an array of small integers may not hold")
    return None


def literal(nodes: Nodes, value: Any) -> Access:
    """Return a number or array of the graph."""
    if is_number(value):
        return nodes.constant(value, aval_of(value).dtype)
    return nodes.array(np.asarray(value))


# Which rule


def refusing(reason: str) -> Rule:
    """Return the rule that refuses."""
    return lambda _call: Refused(reason)


ALONG = ("axis", "keepdims")
NAMED: dict[str, tuple[Rule, tuple[str, ...]]] = {
    "getitem": (part, ("index",)),
    "imag": (imaginary, ()),
    "triangle": (triangle, ("k", "upper")),
    "place_diagonal": (place_diagonal, ("shape", "offset", "axis1", "axis2")),
    "trace": (trace, ("offset", "axis1", "axis2")),
    "difference": (difference, ("axis",)),
    "concatenate": (concatenate, ("axis", "lengths", "dtype", "casting")),
    "stack": (stack, ("axis", "dtype", "casting")),
    "tile": (tile, ("reps",)),
    "repeat": (repeat, ("repeats", "axis")),
    "pad": (pad, ("widths",)),
    "place_windows": (place_windows, ("shape", "window", "axis")),
    "assign": (assign, ("path", "index", "add")),
    "recurrence": (recurrence, ("axis", "reverse")),
    "extremum_partials": (extremum_partials, ("axis",)),
}
"""The rules of single primitives that are not pointwise, and the parameters that they know."""

OF_FORMS: tuple[tuple[type[Form], Rule], ...] = (
    (Pointwise, pointwise),
    (Reduction, reduction),
    (Contraction, contraction),
    (Boxes, boxes),
    (View, view),
    (Scan, scan),
    (Routine, refusing("a routine of NumPy")),
    (Selection, refusing("a shape that depends on elements")),
    (Region, refusing("control flow")),
    (Form, refusing("no form")),
)
"""The rules of all others, by their forms."""

KNOWN_BY_FORMS: tuple[tuple[type[Form], tuple[str, ...]], ...] = (
    (Pointwise, ()),
    (Reduction, (*ALONG, "accurate", "ufunc", "dtype", "extras", "skipna")),
    (Scan, ("axis", "reverse", "dtype", "ufunc")),
)
"""Those that the rules of all others know, by their forms."""


def known_parameters(primitive: Primitive) -> Container[str] | None:
    """Return the parameters that the rule of a primitive knows; None where the rule refuses all there is."""
    if not primitive.registered:
        return None
    if primitive.name in NAMED:
        return NAMED[primitive.name][1]
    if callable(primitive.scalar):
        return keyword_parameters(primitive.scalar)
    if primitive.scalar == "copy" and not isinstance(primitive.evaluate, np.ufunc):
        return keyword_parameters(primitive.evaluate)
    form = form_of(primitive)
    if isinstance(form, View):
        return taken_by(primitive.evaluate)
    if isinstance(form, Contraction):
        return taken_by(form.labels) if callable(form.labels) else ("labels",)
    return next((names for kind, names in KNOWN_BY_FORMS if isinstance(form, kind)), None)


@functools.cache
def taken_by(function: Callable[..., Any]) -> Container[str]:
    """Return the names of what a function takes: views are lowered by what it makes of places, products by labels."""
    return signature(function).parameters


def rule_of(primitive: Primitive) -> Rule:
    """Return the rule of a primitive."""
    if not primitive.registered:
        return refusing("a function with rules of its own")
    if primitive.name in NAMED:
        return NAMED[primitive.name][0]
    if primitive.scalar is not None:
        return pointwise
    form = form_of(primitive)
    return next(rule for kind, rule in OF_FORMS if isinstance(form, kind))
