"""What computes a sparse derivative for arguments of one kind: a plan, and the jitted function that carries it out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.memory.memory_layout import order_of_argument
from wengert.core.values.aval import Aval, aval_of, count_elements
from wengert.errors import ShapeError
from wengert.passes.dead_code import narrow_graph
from wengert.sparse.block_layout import BlockLayout
from wengert.sparse.derivative_arguments import DerivativeCall, Positional, containers_of, describe_inputs
from wengert.sparse.patterns.pattern_check import require_every_element
from wengert.sparse.plans.lanes import lane_elements
from wengert.sparse.plans.plan import Plan
from wengert.sparse.plans.plan_choice import Means, Request, Wanted, choose_plan
from wengert.support.records import NamedTuple
from wengert.transforms.boundary import Narrowed, name_of, require_real, selected_arguments, split_aux
from wengert.transforms.jit import Jitted
from wengert.transforms.reverse import gradient_at
from wengert.transforms.tracing import Traced, trace_converting, trace_function
from wengert.transforms.transformed_function import DerivativeOptions, make_derivative

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


INSTEAD = "Use wengert.jacobian with holomorphic=True, or hold real and imaginary parts in two arrays"


class DerivativeProgram(NamedTuple):
    """Hold what computes a derivative for arguments of one kind.

    Attributes:
        plan: what it does.
        run: the jitted function of all arguments that gives elements, perhaps the value, and the auxiliary result.
        layout: the matrices that elements are put into.
        outer: the containers of the results by which matrices come.
        inner: the containers of the arguments.
        is_bare: whether there is one matrix, in no container.
        fill: likewise of an array for all elements and all arguments, which it writes to; None for new memory.
        memory: where elements are written to again, once there are some: for each thread its own.
    """

    plan: Plan
    run: Function
    layout: BlockLayout
    outer: Any
    inner: Any
    is_bare: bool
    fill: Function | None
    memory: threading.local

    def run_again(self, are_arrays: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what `run` does, with elements in the memory of those before.

        Args:
            are_arrays: whether there are arguments by position alone, all of them arrays.
            args: the arguments.
            kwargs: those by name.
        """
        own: Array | None = getattr(self.memory, "elements", None)
        is_apart = are_arrays and own is not None and not any(np.may_share_memory(own, x) for x in args)
        if is_apart and self.fill is not None:
            return (own, *self.fill(own, *args))
        data, *more = self.run(*args, **kwargs)
        if not isinstance(data, np.ndarray):
            return data, *more
        if own is None:
            self.memory.elements = own = data
        if own is not data:
            np.copyto(own, data)
        return own, *more


def make_program(fun: Function, request: Request, call: DerivativeCall) -> DerivativeProgram:
    """Return the program for arguments of a kind."""
    name = request.options.name
    leaves = selected_arguments(name, fun, call.chosen, call.selection)
    require_real(name, "an argument", leaves, INSTEAD)
    inputs = [aval_of(leaf) for leaf in leaves]
    traced, form = trace_call(name, fun, call)
    outputs, structure = output_of(request, traced)
    rows = inputs if request.second else outputs
    positional = Positional(function_to_differentiate(form, request, call), call)
    graph = traced.graph
    value = narrow_graph(graph, [True] * len(graph.inputs), [i < len(outputs) for i in range(len(graph.outputs))])
    shape = count_elements(rows), count_elements(inputs)
    wanted = Wanted(name, describe_inputs(call), request.second, shape, graph, value)
    plan, means = choose_plan(wanted, positional, request)
    if request.check and plan.coloring is not None and means is None:
        require_every_element(name, positional, plan.coloring, graph)
    is_flat = request.format == "flat"
    sides = [[avals] if is_flat else [[x] for x in avals] for avals in (rows, inputs)]
    heights, widths = (list(map(count_elements, side)) for side in sides)
    layout = BlockLayout(plan.sparsity, heights, widths, "csr" if is_flat else request.format, request.lower)
    by_one = containers_of(request.options.in_form(call.selection))
    outer = by_one if request.second else structure
    dtype = np.result_type(np.float16, *[aval.dtype for aval in rows])
    run = jitted_elements(form, request, call, elements_of(form, request, call, plan, means, dtype), layout)
    is_bare = layout.shape == (1, 1) and outer is None and by_one is None
    fill = filling(run, call) if request.reuse else None
    inner = containers_of(call.selection)
    return DerivativeProgram(plan, run, layout, outer, inner, is_bare, fill, threading.local())


def trace_call(name: str, fun: Function, call: DerivativeCall) -> tuple[Traced, Function]:
    """Return the graph of a function for the arguments of a call, and the form of the function that was traced.

    That is its converted form where control flow follows traced values.
    """

    def run(form: Function, reach: Any) -> Traced:
        positional = Positional(form, call)
        leaves, structure = flatten(positional.values)
        orders = list(map(order_of_argument, leaves))
        return trace_function(
            positional, name, leaves, lambda xs: (unflatten(structure, xs), {}), reach=reach, orders=orders
        )

    return trace_converting(name_of(name, fun), fun, run, by_elements=True)


def output_of(request: Request, traced: Traced) -> tuple[list[Aval], Any]:
    """Return what a function gives, without the auxiliary result: leaves that are real, and their containers.

    Raises:
        DtypeError: they are complex.
        ShapeError: a Hessian is asked of something else than a number.
    """
    name = request.options.name
    output = unflatten(traced.structure, range(len(traced.graph.outputs)))
    if request.options.has_aux:
        output = split_aux(name, output)[0]
    structure = containers_of(output)
    leaves = [traced.graph.outputs[i] for i in flatten(output)[0]]
    require_real(name, "an output", leaves, INSTEAD)
    avals = [aval_of(leaf) for leaf in leaves]
    if request.second and (structure is not None or avals[0].shape != ()):
        given = f"a function that returned shape {avals[0].shape}" if structure is None else "a function of containers"
        needed = "one number is needed"
        raise ShapeError(name, given, needed, "Sum what it returns, or use wengert.sparse.jacobian of its gradient")
    return avals, structure


def function_to_differentiate(form: Function, request: Request, call: DerivativeCall) -> Function:
    """Return the function of all arguments whose Jacobian is wanted: without the auxiliary result, or the gradient."""
    options = request.options

    def main(*args: Any, **kwargs: Any) -> Any:
        found = form(*args, **kwargs)
        return split_aux(options.name, found)[0] if options.has_aux else found

    return make_derivative(gradient_at, main, DerivativeOptions(options.name, call.chosen)) if request.second else main


def elements_of(
    form: Function, request: Request, call: DerivativeCall, plan: Plan, means: Means | None, dtype: np.dtype[Any]
) -> Function:
    """Return the function of all arguments that gives the elements of a Jacobian in the order of its pattern.

    Args:
        form: the function whose derivative is wanted.
        request: what is asked for.
        call: the arguments.
        plan: what is done.
        means: what carries a plan by maps or elements out, in which constants are of double precision.
        dtype: of the elements.
    """
    if means is not None:
        taken, positional = means, Positional(form, call)

        def of_means(args: tuple[Any, ...], kwargs: dict[str, Any], order: Array | None) -> Any:
            found = taken.elements(*positional.traced_arguments(args, kwargs))
            found = found if order is None else found[order]
            return found if found.dtype == dtype else found.astype(dtype)

        return of_means
    coloring = plan.coloring
    assert coloring is not None
    places, fun, name = coloring.lane_places, function_to_differentiate(form, request, call), request.options.name

    def of_lanes(args: tuple[Any, ...], kwargs: dict[str, Any], order: Array | None) -> Any:
        chosen = tuple(args[i] for i in call.chosen)
        own = places if order is None else places[order]
        return lane_elements(name, Narrowed(fun, args, call.chosen, kwargs), chosen, coloring, own)

    return of_lanes


def jitted_elements(
    form: Function, request: Request, call: DerivativeCall, of: Function, layout: BlockLayout
) -> Jitted[..., Any]:
    """Return the jitted function of all arguments that gives the elements of matrices and what else is returned."""
    options, order = request.options, layout.order

    def elements(*args: Any, **kwargs: Any) -> Any:
        data = of(args, kwargs, order)
        if not (request.with_value or options.has_aux):
            return (data,)
        found = form(*args, **kwargs)
        value, *aux = split_aux(options.name, found) if options.has_aux else (found,)
        return (data, *([value] if request.with_value else []), *aux)

    return Jitted(elements, *call.static, ())


def filling(run: Function, call: DerivativeCall) -> Jitted[..., Any]:
    """Return the jitted function of an array and all arguments that writes elements there, and gives the rest."""

    def fill_memory(memory: Any, *args: Any) -> Any:
        data, *rest = run(*args)
        memory[...] = data
        return tuple(rest)

    return Jitted(fill_memory, tuple(i + 1 for i in call.static[0]), (), (0,))
