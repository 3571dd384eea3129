"""`Function`: operations whose forward and backward passes the user writes.

What `forward` saves is remembered as "input 2" or "output 0" rather than as a value, so at whatever level the backward
pass runs, it sees the saved Tensors of that level and is differentiable.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.forms.form import Pointwise
from wengert.core.primitives.declaration_checks import in_form
from wengert.core.primitives.opaque_kinds import Constant
from wengert.core.primitives.signatures import NONE, called_with
from wengert.core.values.aval import Aval, aval_of, is_differentiable
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import Tensor, constant_tensor, innermost_trace, unwrap_plain
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.primitives.indexing.parts import rebind
from wengert.support.records import NamedTuple
from wengert.traces.grad_modes import in_forward
from wengert.traces.rules.calls import InLanes, UserCall, belongs_to, numeric, readable, require_unwritten, traces_of
from wengert.traces.rules.context import (
    LANES,
    TRACED,
    Context,
    attribute_error,
    different_attributes,
    public_attributes,
    require_same_attributes,
    unknown_attributes,
)
from wengert.traces.rules.once_differentiable import FirstOnly

_as_constant = Constant(
    "as_constant", lambda x: x.copy(order="K") if isinstance(x, np.ndarray) else x, form=Pointwise()
)


class Function:
    """Be the base of operations with their own derivative; call them with `apply`.

    Subclasses define static methods: `forward(ctx, *args, **kwargs)`, which returns a Tensor or a tuple of them,
    `backward(ctx, *cts)`, which takes a cotangent for each output and returns one for each argument of `forward`
    (None for arguments without), and optionally `jvp(ctx, *tangents)`. With a static method
    `setup_context(ctx, inputs, output)`, which saves and marks, `forward(*args, **kwargs)` gets no context.

    Values that `forward` saves are differentiated where they are arguments or results; through others only first
    derivatives are known, and further ones are refused, unless `ctx.mark_non_differentiable` calls them constant.

    `vmap` calls `forward` once for all lanes, or lane by lane where it looks at elements. With a static method
    `vmap(info, in_dims, *args)` it calls that in place of `forward`, which must then leave the context to
    `setup_context`: it gets the number of lanes as `info.batch_size`, for each argument the axis that counts lanes or
    None, and arguments of all lanes, and returns the results and, in the same form, their axes. (`generate_vmap_rule`,
    which PyTorch needs to be told, is what happens without it.)

    What is differentiated must be an argument: `forward` refuses captured values that are, unless it detaches them.

    Calls work in every transformation. In a traced function a call is one equation, with the values of a graph that
    `forward` is traced to, as any function there. A `forward` that looks at elements runs anew on the values of each
    evaluation. What depends on values must be saved with `save_for_backward`.

    >>> import wengert as wg, numpy as np
    >>> class Cube(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, ct):
    ...         (x,) = ctx.saved_tensors
    ...         return ct * 3 * x * x
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule: ClassVar[bool] = False

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Refuse: there are no instances."""
        given = "the Function itself was called, or given to a transformation"
        needed = "its method apply is needed"
        raise UsageError(cls.__name__, given, needed, f"Call {cls.__name__}.apply, or pass that to grad, vmap or jit")

    @staticmethod
    def forward(ctx: Context, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs."""
        raise UsageError("Function", "a subclass without forward", "a static method forward is needed", "Define it")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Any) -> None:
        """Save and mark what `backward` needs of the arguments and results, where `forward` gets no context."""

    @staticmethod
    def backward(ctx: Context, *cts: Any, **_: Any) -> Any:  # type checkers let those be overridden by any parameters
        """Compute a cotangent for each argument of `forward`."""
        raise UsageError("Function", "a subclass without backward", "a static method backward is needed", "Define it")

    @staticmethod
    def vmap(info: VmapInfo, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Compute the outputs of all lanes, and tell which of their axes count lanes; None for those that have none."""
        raise UsageError("Function", "a subclass without vmap", "nothing is needed", "Call apply under vmap")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` on these arguments, recording the call if a Tensor among them is being differentiated.

        Raises:
            UsageError: a marked or returned value does not belong to the call.
            GraphError: a leaf that requires grad was marked dirty while recording, or a Tensor that is being
                differentiated is inside a container or passed by keyword.
        """
        refuse_hidden_tensors(cls.__name__, args, kwargs)
        places = [i for i, x in enumerate(args) if type(x) is Tensor]
        fixed = tuple(None if type(x) is Tensor else x for x in args)
        needs_input_grad = tuple(type(x) is Tensor and innermost_trace(x) is not None for x in args)
        call = FunctionCall(cls, fixed, kwargs, places, needs_input_grad)
        found = apply(call, *(args[i] for i in places))
        call.forget_arguments()
        outs = list(found[: call.shown]) if isinstance(found, tuple) else [found]
        if not places:
            outs = list(map(as_tensor, outs))
        for index in call.constant:
            if index < call.shown:
                outs[index] = apply(_as_constant, outs[index])
        for argument, index in call.dirty.items():
            rebind(args[argument], outs[index])
            outs[index] = args[argument]
        return tuple(outs) if call.returns_tuple else outs[0]


class VmapInfo(NamedTuple):
    """Say what a static `vmap` of a `Function` is called for.

    Attributes:
        batch_size: the number of lanes.
        randomness: "error": numbers of NumPy's generators are drawn once for all lanes.
    """

    batch_size: int
    randomness: str = "error"


class Reading:
    """Tell whether a traced backward has read the attributes of a call, or of one that it is made again from."""

    __slots__ = ("happened",)

    def __init__(self) -> None:
        self.happened = False


class FunctionCall(UserCall):
    """Be one call of a Function.

    Other values that `forward` saved are further outputs, which are not shown: so they are residuals like any other,
    and have their lanes under `vmap`.

    Args:
        cls: the Function.
        args: the arguments, None for those that are operands.
        kwargs: those passed by keyword.
        places: where the operands stand among the arguments.
        needs_input_grad: what the context says so.
    """

    given_by_user = True
    results = "results and saved Tensors"

    def __init__(
        self,
        cls: type[Function],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        places: Sequence[int],
        needs_input_grad: tuple[bool, ...],
    ) -> None:
        super().__init__(cls, cls.__name__, places, hasattr(cls, "jvp"))
        self.cls = cls
        self.args = args
        self.kwargs = kwargs
        self.count = len(args)
        self.needs_input_grad = needs_input_grad
        self.reading = Reading()
        self.unfollowed: list[str] = []
        self.depending: list[str] = []
        self.context: Context | None = None
        self.shown = 0
        self.returns_tuple = False
        self.constant: set[int] = set()
        self.attributes: list[str] = []
        self.dirty: dict[int, int] = {}
        self.sources: list[tuple[str, Any]] = []
        self.pushed: int | None = None  # how many of these, the last, are for `jvp` alone
        self.out_avals: list[Aval] = []

    def user_functions(self) -> Sequence[Any]:
        """Return the methods that the user has defined."""
        return self.cls.forward, self.cls.setup_context, self.cls.backward

    def anew(self, operands: Sequence[Any]) -> FunctionCall:
        """Return the same call, not made yet, for other operands."""
        needs = list(self.needs_input_grad)
        for place, operand in zip(self.places, operands, strict=False):
            needs[place] = needs[place] or innermost_trace(operand) is not None
        return FunctionCall(self.cls, self.args, self.kwargs, self.places, tuple(needs))

    def forget_arguments(self) -> None:
        """Let the arguments go: what is needed of them is saved where it was recorded."""
        self.args, self.kwargs = (), {}

    @property
    def has_state(self) -> bool:
        """Whether `forward` stored attributes on the context."""
        return self.context is not None and len(public_attributes(self.context)) > 1

    @property
    def is_relied_upon(self) -> bool:
        """Whether a traced backward has read the attributes."""
        return self.reading.happened and self.has_state

    def follow(self, traced: UserCall) -> None:
        """Share with the call in a graph that this one makes again whether a traced backward has read attributes."""
        assert isinstance(traced, FunctionCall)
        self.reading = traced.reading

    def compare(self, other: UserCall) -> None:
        """Take note of attributes that depend on values."""
        assert isinstance(other, FunctionCall)
        assert self.context is not None
        assert other.context is not None
        self.depending = different_attributes(self.context, other.context)

    @property
    def depends_on_values(self) -> bool:
        """Whether attributes depend on values."""
        return bool(self.depending)

    def require_like(self, traced: UserCall) -> None:
        """Raise a GraphError if a traced backward has read other attributes than those of this call."""
        assert isinstance(traced, FunctionCall)
        if traced.reading.happened and traced.context is not None and self.context is not None:
            require_same_attributes(self.name, traced.context, self.context, TRACED)

    def compute_lanes(self, lanes: InLanes, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Call the user's `vmap`, if there is one, and let every lane save what it needs."""
        if self.cls.vmap is Function.vmap:
            return super().compute_lanes(lanes, operands)
        count = len(operands)
        outs, returns_tuple = self.apply_vmap(lanes, operands)

        def lane(values: Sequence[Any]) -> Sequence[Tensor]:
            given = list(map(readable, values))
            found = self.compute(given[:count], tuple(given[count:]) if returns_tuple else given[count])
            self.remember(found)
            return found

        return lanes.together(lane, [*operands, *outs], [*lanes.flags, *[True] * len(outs)])

    def apply_vmap(self, lanes: InLanes, operands: Sequence[Tensor]) -> tuple[list[Tensor], bool]:
        """Return the results of the user's `vmap`, lanes in front, and whether they are a tuple."""
        if self.cls.generate_vmap_rule or self.cls.setup_context is Function.setup_context:
            what, needed, action = (
                ("generate_vmap_rule and a static vmap", "one of the two is needed", "Take generate_vmap_rule away")
                if self.cls.generate_vmap_rule
                else (
                    "a static vmap, and a forward that fills the context",
                    "a static method setup_context is needed, which saves what backward needs for each lane",
                    "Let forward take no ctx, and save in setup_context",
                )
            )
            raise UsageError(self.name, what, needed, action)
        arguments = list(self.args)
        in_dims: list[int | None] = [None] * self.count
        for place, operand, flag in zip(self.places, operands, lanes.flags, strict=True):
            arguments[place] = operand
            in_dims[place] = 0 if flag else None
        with in_forward(self.name):
            given = (VmapInfo(lanes.size), tuple(in_dims), *arguments)
            result = self.call("vmap", "info, in_dims, *args", given, self.kwargs)
        if not isinstance(result, tuple) or len(result) != 2:
            shown = f"a tuple of {len(result)}" if isinstance(result, tuple) else f"a {type(result).__name__}"
            needed = "a pair (results, the axes of theirs that count lanes) is needed"
            raise UsageError(f"{self.name}.vmap", shown, needed, "Return a tuple of two")
        output, out_dims = result
        outs = output if isinstance(output, tuple) else (output,)
        dims = out_dims if isinstance(out_dims, tuple | list) else (out_dims,) * len(outs)
        if len(dims) != len(outs):
            shown = f"{len(dims)} axes for {len(outs)} results"
            raise UsageError(f"{self.name}.vmap", shown, "one for each is needed", "Build both alike")
        found = [self.in_front(out, dim, lanes.size) for out, dim in zip(outs, dims, strict=True)]
        return found, isinstance(output, tuple)

    def in_front(self, out: Any, axis: Any, size: int) -> Tensor:
        """Return a result of the user's `vmap` with its lanes in front, repeated if it has none."""
        tensor: Any = numeric(f"{self.name}.vmap", "a result", out)
        if axis is None:
            return as_tensor(np.broadcast_to(tensor, (size, *tensor.shape)).copy())
        axis = as_whole(f"{self.name}.vmap", "an axis of a result", axis)
        if not -tensor.ndim <= axis < tensor.ndim or tensor.shape[axis] != size:
            given = f"a result of shape {tensor.shape} whose axis {axis} is to count {size} lanes"
            action = "Return its place as the second of the pair, or None if all lanes have the same"
            raise ShapeError(f"{self.name}.vmap", given, f"an axis of length {size} is needed", action)
        return as_tensor(np.moveaxis(tensor, axis, 0))

    def compute(self, operands: Sequence[Tensor], known: Any = None) -> Sequence[Tensor]:
        """Call `forward`; return its results and what it saved besides, noting which of them it saved or marked.

        Args:
            operands: what it is called with.
            known: its result, if that is known already.
        """
        arguments = list(self.args)
        for place, operand in zip(self.places, operands, strict=True):
            arguments[place] = operand
        context = Context(self.needs_input_grad)
        taken = [x for x in arguments if type(x) is Tensor]
        before = [x._value for x in taken]
        with in_forward(self.name):
            if self.cls.setup_context is Function.setup_context:
                result = self.call("forward", "ctx, *args", (context, *arguments), self.kwargs, operands)
            else:
                result = self.call("forward", "*args", arguments, self.kwargs, operands) if known is None else known
                given = (context, tuple(arguments), result)
                self.call("setup_context", "ctx, inputs, output", given)
        outs = list(result) if isinstance(result, tuple) else [result]
        self.attributes = context._save_attributes()
        self.keep(context, operands)
        rest = [x for i, x in enumerate(arguments) if i not in self.places]
        filling = (self.cls.forward, self.cls.setup_context)
        self.unfollowed = unknown_attributes(context, [*rest, *self.kwargs.values(), *vars(self.cls).values()], filling)
        self.shown, self.returns_tuple = len(outs), isinstance(result, tuple)
        hidden = self.hidden_values(context, arguments, outs, operands)
        self.note(context, arguments, outs, hidden)
        action = "Mark it dirty and return it, or write into a copy"
        clean = [i for i, x in enumerate(taken) if not any(x is dirty for dirty in context._dirty)]
        require_unwritten(f"{self.name}.forward", [taken[i] for i in clean], [before[i] for i in clean], action)
        tensors = [self.as_result(x, operands) for x in (*outs, *hidden)]
        avals = [aval_of(tensor).firm for tensor in tensors]
        self.out_avals = avals[: self.shown]
        self.only_saved = self.varying(hidden, [*arguments, *self.kwargs.values()])
        context._let_go()
        return tensors

    def call(
        self,
        method: str,
        parameters: str,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any] = NONE,
        near: Sequence[Any] = (),
    ) -> Any:
        """Call a method of the user's; `near` are the values that it computes with, of which some may be traced."""
        name, function = f"{self.name}.{method}", getattr(self.cls, method)
        return in_form(near, function, lambda form: called_with(name, form, parameters, arguments, keywords))

    def as_result(self, out: Any, operands: Sequence[Tensor]) -> Tensor:
        """Return a result of `forward` as a Tensor, which must not depend on what it captured."""
        if type(out) is not Tensor and not isinstance(out, np.ndarray | np.generic | float | int | complex):
            given = f"a result of type {type(out).__name__}"
            needed = "a Tensor or a tuple of Tensors is needed"
            raise UsageError(f"{self.name}.forward", given, needed, "Store other results on ctx")
        if not belongs_to(out, operands):
            given = "a result that depends on a captured value which is being differentiated"
            needed = "forward must take such values as arguments"
            raise GraphError(f"{self.name}.forward", given, needed, "Add it to the arguments, or .detach() it")
        return as_tensor(out)

    def keep(self, context: Context, operands: Sequence[Tensor]) -> None:
        """Keep the context of the call; what `forward` stored there is the same for all lanes."""
        lanes = {trace for x in operands if x._trace is not None for trace in traces_of(x)}
        if lanes:
            for key, value in public_attributes(context).items():
                if any(lanes & traces_of(leaf) for leaf in flatten(value)[0]):
                    raise attribute_error(self.name, key, LANES)
        if self.context is not None:
            require_same_attributes(self.name, self.context, context, LANES)
        self.context = context

    def note(self, context: Context, arguments: Sequence[Any], outs: Sequence[Any], hidden: Sequence[Any]) -> None:
        """Note what `forward` marked."""
        if not outs:
            needed = "a Tensor or a tuple of Tensors is needed"
            raise UsageError(f"{self.name}.forward", "an empty tuple of results", needed, "Return one at least")
        results = [*outs, *hidden]
        self.constant = {self.index("mark_non_differentiable", x, results) for x in context._constant}
        self.dirty = {
            self.index("mark_dirty", x, arguments): self.index("mark_dirty (returned values)", x, outs)
            for x in context._dirty
        }

    def hidden_values(
        self, context: Context, arguments: Sequence[Any], outs: Sequence[Any], operands: Sequence[Tensor]
    ) -> list[Any]:
        """Note where the saved values come from; return those that are neither arguments nor results."""
        found: list[Any] = []
        self.sources = []
        self.savings.clear()
        pushed = context._to_push
        self.pushed = None if pushed is None else len(pushed)
        for saved in (*context._to_save, *(pushed or ())):
            operand = next((i for i, place in enumerate(self.places) if arguments[place] is saved), None)
            output = next((i for i, out in enumerate(outs) if out is saved), None)
            if operand is not None:
                self.sources.append(("operand", operand))
            elif output is not None:
                self.sources.append(("output", output))
            elif saved is None or (innermost_trace(saved) is not None and not any(map(innermost_trace, operands))):
                self.sources.append(("value", saved))
            else:
                self.sources.append(("output", self.shown + len(found)))
                found.append(saved)
        return found

    def varying(self, hidden: Sequence[Any], arguments: Sequence[Any]) -> list[int]:
        """Return which values that were saved besides may vary: they are not marked, and no arguments either."""
        if not hidden:
            return []
        fixed = {id(leaf) for leaf in flatten(arguments)[0]}
        return [
            i
            for i, x in enumerate(hidden, self.shown)
            if i not in self.constant and id(x) not in fixed and is_differentiable(aval_of(x).dtype)
        ]

    def index(self, what: str, tensor: Any, among: Sequence[Any]) -> int:
        """Return the position of a marked Tensor among arguments or outputs."""
        for i, candidate in enumerate(among):
            if candidate is tensor:
                return i
        given = f"{what} of a value that is not one of the call"
        needed = "the very Tensor that was passed in or is returned is needed"
        raise UsageError(f"{self.name}.forward", given, needed, "Mark that Tensor itself")

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save the operands and outputs that `forward` saved."""
        operands = {i for kind, i in self.sources if kind == "operand"}
        if self.unfollowed:
            operands |= {*range(len(self.places))}
        return any(kind == "output" for kind, _ in self.sources), lambda operand: operand in operands

    def kept_output(self, out: Any) -> Any:
        """Save those outputs alone that `forward` saved."""
        if self.outputs == 1:
            return out
        needed = {i for kind, i in self.sources if kind == "output"}
        return tuple(value if i in needed else None for i, value in enumerate(out))

    def restore_context(self, out: Any, operands: Sequence[Any], along: bool = False) -> Context:
        """Return the context with the saved Tensors of the level where it is needed, by `jvp` if `along` is set."""
        context = copy.copy(self.context)
        assert context is not None
        if self.depending:
            raise attribute_error(self.name, self.depending[0], TRACED)
        self.reading.happened = True
        found = {"operand": operands, "output": out if self.outputs > 1 else (out,)}
        back = len(self.sources) - (self.pushed or 0)
        sources = self.sources[:back]
        if along and self.pushed is not None:  # attributes come last
            sources = [*self.sources[back:], *sources[back - len(self.attributes) :]]
        saved = tuple(x if kind == "value" else readable(found[kind][x]) for kind, x in sources)
        context._restore(saved, self.attributes)
        return context

    def pull(self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None]) -> Sequence[Any]:
        """Call `backward` with the saved Tensors of this level, and check what it returns.

        As everywhere in the tape API, its cotangents are conjugates of the engine's where they are complex.
        """
        if self.cls.backward is Function.backward:
            raise self.lacking("backward")
        context = self.restore_context(out, operands)
        wanted = dict(zip(self.places, avals, strict=True))
        context.needs_input_grad = tuple(wanted.get(i) is not None for i in range(self.count))
        cts = ct[: self.shown] if self.outputs > 1 else [ct]
        lifted = any(type(c) is Tensor for c in cts)
        given = [
            self.backward_cotangent(None if i in self.constant else c, i, context._materialize)
            for i, c in enumerate(cts)
        ]
        results = self.call("backward", "ctx, *cts", (context, *given), near=(*operands, *cts))
        results = results if isinstance(results, tuple) else (results,)
        followed = [x for x in operands if innermost_trace(x) is not None] if self.unfollowed else []
        if followed:
            guard = FirstOnly(self.name, self.unfollowed[0])
            results = tuple([x if x is None else apply(guard, as_tensor(x), *followed) for x in results])
        return self.check_cotangents(results, avals, lifted)

    def push(self, tangents: Sequence[Any], out: Any, operands: Sequence[Any]) -> Any:
        """Call the user's `jvp` with the saved Tensors of this level."""
        given: list[Any] = [None] * self.count
        for place, tangent in zip(self.places, tangents, strict=True):
            given[place] = None if tangent is None else readable(tangent)
        context = self.restore_context(out, operands, along=True)
        results = self.call("jvp", "ctx, *tangents", (context, *given), near=(*operands, *tangents))
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != self.shown:
            needed = f"{self.shown} are needed, one for each result of forward"
            action = "Return None for results without one"
            raise GraphError(f"{self.name}.jvp", f"{len(results)} tangents", needed, action)
        moved = [
            None if r is None else unwrap_plain(self.fitting("jvp", f"result {i}", r, aval.shape))
            for i, (r, aval) in enumerate(zip(results, self.out_avals, strict=True))
        ]
        return (*moved, *[None] * (self.outputs - self.shown)) if self.outputs > 1 else moved[0]

    def backward_cotangent(self, ct: Any, index: int, materialize: bool) -> Any:
        """Return a cotangent as `backward` receives it."""
        if ct is None:
            aval = self.out_avals[index]
            return constant_tensor(np.zeros(aval.shape, aval.dtype)[()]) if materialize else None
        return readable(ct.conj() if ct.dtype.kind == "c" else ct)

    def check_cotangents(self, results: Sequence[Any], avals: Sequence[Aval | None], lifted: bool) -> list[Any]:
        """Return the cotangents of the operands, checking their number and shapes."""
        surplus = results[self.count :]
        if len(results) < self.count or any(x is not None for x in surplus):
            given = f"{len(results)} cotangents"
            needed = f"{self.count} are needed, one for each argument of forward"
            raise GraphError(f"{self.name}.backward", given, needed, "Return None for arguments without one")
        cts: list[Any] = []
        for place, aval in zip(self.places, avals, strict=True):
            ct = results[place]
            if aval is None or ct is None:
                cts.append(None)
                continue
            tensor = self.fitting("backward", f"argument {place}", ct, aval.shape)
            if tensor.dtype.kind == "c":
                tensor = tensor.conj()
            cts.append(tensor if lifted or tensor._trace is not None else tensor._value)
        return cts

    def fitting(self, method: str, of: str, given: Any, shape: tuple[int, ...]) -> Tensor:
        """Return what a method of the user's gave as a Tensor, checking its type and shape."""
        what = "cotangent" if method == "backward" else "tangent"
        tensor = numeric(f"{self.name}.{method}", f"a {what} for {of}", given)
        if tensor.shape == shape:
            return tensor
        needed = f"the shape {shape} of that {of.split()[0]} is needed"
        action = "Sum over what forward broadcast" if method == "backward" else "Broadcast it as forward does"
        raise ShapeError(f"{self.name}.{method}", f"a {what} of shape {tensor.shape} for {of}", needed, action)

    def lacking(self, method: str) -> UsageError:
        """Return the error about a method that is not there."""
        given = f"a Function without {method}"
        return UsageError(self.name, given, f"a static method {method} is needed to differentiate it", "Define it")


def refuse_hidden_tensors(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise a GraphError for Tensors where no cotangent could be returned for them."""
    containers = [x for x in args if isinstance(x, list | tuple | dict)]
    for leaf in [leaf for tree in (*containers, *kwargs.values()) for leaf in flatten(tree)[0]]:
        if type(leaf) is Tensor and innermost_trace(leaf) is not None:
            given = "a Tensor that is being differentiated, in a container or passed by keyword"
            needed = "it is needed as a positional argument, because backward returns a cotangent for each of those"
            raise GraphError(f"{name}.apply", given, needed, "Pass it by position, or .detach() it")
