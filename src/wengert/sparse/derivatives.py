"""Sparse derivatives as functions of the same arguments: planned once for arguments of one kind, then called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.primitives.sparse.storage_pattern import pattern_of
from wengert.sparse.block_layout import Block
from wengert.sparse.derivative_arguments import Call, describe_inputs, kind_of_leaf
from wengert.sparse.derivative_program import Program, make_program
from wengert.sparse.plan_choice import Request, warn_of_many
from wengert.sparse.plans import Plan
from wengert.support.attributes import function_name, resemble
from wengert.support.function_protocol import LikeFunction
from wengert.transforms.boundary import resolve_positions

Function = Callable[..., Any]

MOST_KINDS = 64
"""Kinds of arguments whose plans a function remembers."""


class SparseDerivative(LikeFunction):
    """Be a function that returns sparse matrices of derivatives of another one; made by `wengert.sparse.jacobian`."""

    def __init__(self, fun: Function, request: Request) -> None:
        resemble(self, fun)
        self.fun: Function = fun
        self.request = request
        self.programs: dict[Any, Program] = {}
        self.prepared: Any = None

    def __repr__(self) -> str:
        """Return the names of the derivative and of the function."""
        return f"<{self.request.options.name}({function_name(self.fun, '__name__')})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the derivative at arguments, planned first if they are of a new kind."""
        kind = None if kwargs else kind_of_arrays(args)
        program = self.programs.get(kind)
        if program is None:
            call = self.take_apart(args, kwargs)
            program = self.programs.get(call.key)
            if program is None:
                if self.prepared is not None:
                    raise self.changed(call)
                program = self.make(call)
            if kind is not None:
                self.programs[kind] = program
        data, *more = program.run(*args, **kwargs)
        if self.request.reuse and isinstance(data, np.ndarray):
            data = program.in_memory(data)
        return self.finish(program, data, *more)

    def prepare(self, *args: Any, **kwargs: Any) -> SparseDerivative:
        """Find the pattern and the plan for examples of arguments, so that calls need not; return the function itself.

        From then on it is called with arguments of that kind alone: of the same containers, shapes and dtypes.

        Args:
            *args: examples, of which only shapes and dtypes matter unless the pattern is checked.
            **kwargs: likewise, by name.
        """
        call = self.take_apart(args, kwargs)
        if call.key not in self.programs:
            self.make(call)
        self.prepared = call
        return self

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Return what is done for arguments, of which only shapes and dtypes matter: a `Plan`, which prints."""
        call = self.take_apart(args, kwargs)
        return (self.programs.get(call.key) or self.make(call)).plan

    def take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return the arguments of a call with what tells their kind."""
        options = self.request.options
        chosen = resolve_positions(options.name, options.argnums, len(args))
        leaves, structure = flatten((args, kwargs))
        return Call(args, kwargs, chosen, (structure, tuple([kind_of_leaf(options.name, leaf) for leaf in leaves])))

    def changed(self, call: Call) -> ShapeError:
        """Return the error about arguments of another kind than the function was prepared for."""
        name = self.request.options.name
        was, now = (describe_inputs(one) for one in (self.prepared, call))
        action = "Call prepare with such arguments, or make another function for them"
        return ShapeError(name, f"arguments {now}", f"{was} is needed, as it was prepared for", action)

    def make(self, call: Call) -> Program:
        """Plan the derivative for arguments of a kind, and remember the program."""
        request = self.request
        if len(self.programs) >= MOST_KINDS:
            self.programs.pop(next(iter(self.programs)))
        program = make_program(self.fun, request, call)
        warn_of_many(request.options.name, program.plan)
        self.programs[call.key] = program
        return program

    def finish(self, program: Program, data: Any, *more: Any) -> Any:
        """Return matrices of elements, in the containers of results and arguments, beside what else is returned."""
        request = self.request
        blocks = [filled(block, data) for block in program.layout.blocks]
        if request.format == "flat":
            matrices: Any = blocks[0]
        else:
            height, width = program.layout.shape
            starts = [row * width for row in range(height)]
            rows = [request.options.in_form(unflatten(program.inner, blocks[i : i + width])) for i in starts]
            matrices = unflatten(program.outer, rows)
        rest = list(more)
        parts = [rest.pop(0)] if request.with_value else []
        parts += [matrices, *rest]
        return parts[0] if len(parts) == 1 else tuple(parts)


def kind_of_arrays(args: tuple[Any, ...]) -> Any:
    """Return what tells the kind of arguments that all are arrays, which most are; None for others."""
    found = []
    for x in args:
        if type(x) is not np.ndarray:
            return None
        found += [x.shape, x.dtype]
    return tuple(found)


def filled(block: Block, data: Any) -> Any:
    """Return a matrix with its elements, which are Tensors where they are differentiated, batched or traced."""
    if not isinstance(data, Tensor):
        return block.filled(data)
    if data._trace is None:
        return block.filled(data.numpy())
    return SparseTensor(pattern_of(block.matrix), data[block.start : block.stop])
