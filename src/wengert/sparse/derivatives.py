"""Sparse derivatives as functions of the same arguments: planned once for arguments of one kind, then called."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.memory.memory_layout import order_of_argument
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.primitives.sparse.storage_pattern import pattern_of
from wengert.sparse.block_layout import MatrixBlock
from wengert.sparse.derivative_arguments import ARRAYS, DerivativeCall, describe_inputs, kind_of_leaf
from wengert.sparse.derivative_program import DerivativeProgram, make_program
from wengert.sparse.plans.plan import Plan
from wengert.sparse.plans.plan_choice import Request, warn_of_many
from wengert.support.attributes import function_name, resemble
from wengert.support.caches import Recent
from wengert.support.function_protocol import LikeFunction
from wengert.transforms.boundary import resolve_positions
from wengert.transforms.captured_state import CapturedState
from wengert.transforms.outer_values import OuterValues

Function = Callable[..., Any]

MOST_KINDS = 128
"""By how many keys a function remembers plans for kinds of arguments, of which most have two: see `kind_of_arrays`."""
OFTEN = 16
"""How often a plan is made anew, as what the function captures has changed, before that is told."""
MOST_STATES = 4
"""Of how many of the states in which it was called last: of what the function that is differentiated captured."""


class SparseDerivative(LikeFunction):
    """Be a function that returns sparse matrices of derivatives of another one; made by `wengert.sparse.jacobian`.

    Attributes:
        programs: what computes them: for what the function captures, by kinds of arguments.
        captured: what the function captured at the last call.
        latest: the state of the last call, and its programs.
        is_fixed: whether what the function captures stays as it is, and is not looked at in calls.
        again: how often it was planned anew for what the function captures.
    """

    def __init__(self, fun: Function, request: Request) -> None:
        resemble(self, fun)
        self.fun: Function = fun
        self.request = request
        self.programs: Recent[Hashable, Recent[Any, DerivativeProgram]] = Recent(MOST_STATES)
        self.prepared: Any = None
        self.is_fixed = False
        self.captured = CapturedState(self.outer_values)
        self.again = 0
        self.latest: tuple[Hashable, Any] = (self, None)

    def __repr__(self) -> str:
        """Return the names of the derivative and of the function."""
        return f"<{self.request.options.name}({function_name(self.fun, '__name__')})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the derivative at arguments, planned first if they are of a new kind."""
        state, latest = self.state(), self.latest
        kind = None if kwargs else kind_of_arrays(args)
        programs = latest[1] if latest[0] is state else self.programs.get(state)
        program = None if programs is None else programs.get(kind)
        if program is None or programs is None:
            call = self.take_apart(args, kwargs)
            program = None if programs is None else programs.get(call.key)
            if program is None or programs is None:
                if self.prepared is not None and call.key[:2] != self.prepared.key[:2]:
                    raise self.kind_error(call)
                program, programs = self.make(call, state)
            if kind is not None:
                programs[kind] = program
            self.latest = state, programs
        if self.request.reuse:
            data, *more = program.run_again(kind is not None, args, kwargs)
        else:
            data, *more = program.run(*args, **kwargs)
        if not more and program.is_bare and type(data) is np.ndarray:
            return program.layout.blocks[0].fill(data)
        return self.finish(program, data, *more)

    def prepare(self, *args: Any, **kwargs: Any) -> SparseDerivative:
        """Find the pattern and the plan for examples of arguments, so that calls need not; return the function itself.

        From then on it is called with arguments of that kind alone: of the same containers, shapes and dtypes.

        Args:
            *args: examples, of which only shapes and dtypes matter unless the pattern is checked.
            **kwargs: likewise, by name.
        """
        call, state = self.take_apart(args, kwargs), self.state()
        if call.key not in self.programs.get(state, {}):
            self.make(call, state)
        self.prepared = call
        return self

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Return what is done for arguments, of which only shapes and dtypes matter: a `Plan`, which prints."""
        return self.program(*args, **kwargs).plan

    def program(self, *args: Any, **kwargs: Any) -> DerivativeProgram:
        """Return what computes elements for arguments of the kind of these, with what the function captures now."""
        call, state = self.take_apart(args, kwargs), self.state()
        return self.programs.get(state, {}).get(call.key) or self.make(call, state)[0]

    def state(self) -> Hashable:
        """Return what tells whether the function captures what it did."""
        if self.is_fixed:
            return None
        if not self.captured.is_same():
            self.captured.note()
        return self.captured.key

    def outer_values(self) -> OuterValues:
        """Return what the function captures."""
        return OuterValues((self.fun,), lifted=False)

    def take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DerivativeCall:
        """Return the arguments of a call with what tells their kind."""
        options = self.request.options
        chosen = resolve_positions(options.name, options.argnums, len(args))
        leaves, structure = flatten((args, kwargs))
        kinds = tuple([kind_of_leaf(options.name, leaf) for leaf in leaves])
        orders = tuple([order_of_argument(leaf) if isinstance(leaf, ARRAYS) else None for leaf in leaves])
        return DerivativeCall(args, kwargs, chosen, (structure, kinds, orders))

    def kind_error(self, call: DerivativeCall) -> ShapeError:
        """Return the error about arguments of another kind than the function was prepared for."""
        name = self.request.options.name
        was, now = (describe_inputs(one) for one in (self.prepared, call))
        action = "Call prepare with such arguments, or make another function for them"
        return ShapeError(name, f"arguments {now}", f"{was} is needed, as it was prepared for", action)

    def make(self, call: DerivativeCall, state: Hashable) -> tuple[DerivativeProgram, Recent[Any, DerivativeProgram]]:
        """Plan the derivative for arguments of a kind, and remember the program; return those of the same state, too.

        A function that counts its calls, say, has changed its state itself, which has no other programs.
        """
        self.again += any(call.key in programs for programs in self.programs.values())
        if self.again == OFTEN:
            text = f"{self.request.options.name}: planned anew {OFTEN} times, since what the function captures changes"
            warnings.warn(f"{text}. Pass it as an argument.", stacklevel=user_stacklevel())
        program = make_program(self.fun, self.request, call)
        warn_of_many(self.request.options.name, program.plan)
        programs = self.programs.pop(state, Recent(MOST_KINDS))
        programs[call.key] = program
        self.captured.note()
        self.programs[None if self.is_fixed else self.captured.key] = programs
        return program, programs

    def keep_fixed(self, call: DerivativeCall, program: DerivativeProgram) -> None:
        """Remember a program, whatever the function that is differentiated captures from now on."""
        self.is_fixed, self.programs[None] = True, Recent(MOST_KINDS)
        self.programs[None][call.key] = program

    def finish(self, program: DerivativeProgram, data: Any, *more: Any) -> Any:
        """Return matrices of elements, in the containers of results and arguments, beside what else is returned."""
        request = self.request
        blocks = [matrix_of(block, data) for block in program.layout.blocks]
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
        found += [x.shape, x.dtype, order_of_argument(x)]
    return tuple(found)


def matrix_of(block: MatrixBlock, data: Any) -> Any:
    """Return a matrix with its elements, which are Tensors where they are differentiated, batched or traced."""
    if not isinstance(data, Tensor):
        return block.fill(data)
    if data._trace is None:
        return block.fill(data.numpy())
    return SparseTensor(pattern_of(block.matrix), data[block.start : block.stop])
