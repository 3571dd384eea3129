"""Loops: what does not change from iteration to iteration is computed once, before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import is_counted
from wengert.passes.equations import (
    Known,
    distinct_variables,
    everywhere,
    loop_parameters,
    rename_known,
    variables,
    with_extra_inputs,
)


@everywhere
def hoist_invariants(graph: Graph) -> Graph:
    """Let loops carry only what changes, and compute before them what depends on nothing that does.

    The same operations are evaluated on the same values, once. What is only lowered to a loop stays as it is: it has
    parameters, and perhaps derivatives, of its own.
    """
    known: Known = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = rename_known(known, equation.inputs)
        if inputs is not equation.inputs:
            equation = equation.using(inputs)
        found = hoist(equation) if loop_parameters(equation) is equation.params else None
        if found is None:
            kept.append(equation)
        else:
            equations, results = found
            kept += equations
            known.update(results)
    if len(kept) == len(graph.equations) and not known:
        return graph
    return Graph(graph.inputs, kept, rename_known(known, graph.outputs))


def hoist(equation: Equation, is_safe: bool = False) -> tuple[list[Equation], dict[Variable, Any]] | None:
    """Return the equations in place of a loop, and values in place of some of its results.

    None if everything in the loop changes. `is_safe` says that what is evaluated although no iteration would have may
    fail, and be infinite.
    """
    params, limit = equation.params, int(is_counted(equation.params))
    body, spec = params["body"], params["spec"]
    own, carried = spec.constants, spec.carried
    steady = [body.outputs[i] is body.inputs[own + i] for i in range(carried)]
    constant = {*body.inputs[:own], *(body.inputs[own + i] for i in range(carried) if steady[i])}
    first, kept = separate_invariants(body, constant, is_safe or bool(spec.length))
    if not first and not any(steady):
        return None
    outside: dict[Variable, Any] = dict(zip(body.inputs, equation.inputs[limit:], strict=True))
    before = [move_out(inner, outside) for inner in first]
    made = {v for inner in first for v in inner.outputs}
    used = distinct_variables(x for values in (*(e.inputs for e in kept), body.outputs) for x in values)
    needed = [v for v in used if v in made]
    fixed = [i for i in range(carried) if steady[i]]
    moving = [i for i in range(carried) if not steady[i]]
    places = [*range(own), *(own + i for i in fixed)]
    rest = [*(own + i for i in moving), *range(own + carried, len(body.inputs))]
    inner_body = Graph(
        [*(body.inputs[i] for i in places), *needed, *(body.inputs[i] for i in rest)],
        kept,
        [*(body.outputs[i] for i in moving), *body.outputs[carried:]],
    )
    operands = equation.inputs[limit:]
    inputs = (
        *equation.inputs[:limit],
        *(operands[i] for i in places),
        *(outside[v] for v in needed),
        *(operands[i] for i in rest),
    )
    cond = params["cond"]
    if cond is not None:
        cond = with_extra_inputs(cond, [*places, *(v.aval for v in needed), *(own + i for i in moving)])
    changed = {
        **params,
        "body": inner_body,
        "cond": cond,
        "spec": spec.holding(len(places) + len(needed), len(moving)),
    }
    outputs = (*(equation.outputs[i] for i in moving), *equation.outputs[carried:])
    loop = Equation(equation.primitive, inputs, changed, outputs, equation.origin)
    return [*before, loop], {equation.outputs[i]: operands[own + i] for i in fixed}


def separate_invariants(
    body: Graph, constant: set[Variable], certain: bool
) -> tuple[list[Equation], Sequence[Equation]]:
    """Return the equations that can be evaluated before the loop, and the others.

    They depend on constants alone. If the loop may have no iteration at all, they must also be linear in a single
    operand: others could fail (an index out of bounds, say), or be infinite and so spoil a zero cotangent, where they
    would not have been carried out.
    """
    known = set(constant)
    first, kept = [], []
    for equation in body.equations:
        used = variables(equation.inputs)
        harmless = equation.primitive.kind == "linear" and len(equation.inputs) == 1
        if used and used <= known and (certain or harmless):
            known.update(equation.outputs)
            first.append(equation)
        else:
            kept.append(equation)
    return first, kept


def move_out(equation: Equation, outside: dict[Variable, Any]) -> Equation:
    """Return an equation of a body with operands and results that stand outside of the loop."""
    inputs = tuple(outside[x] if type(x) is Variable else x for x in equation.inputs)
    outputs = tuple(Variable.of(v.aval, v.name, v.strides) for v in equation.outputs)
    outside.update(zip(equation.outputs, outputs, strict=True))
    return Equation(equation.primitive, inputs, equation.params, outputs, equation.origin)
