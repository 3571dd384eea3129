"""`Function`: operations whose forward and backward passes the user writes.

Each call is a primitive of its own. What `forward` saves is remembered as "input 2" or "output 0" rather than as a
value, so at whatever level the backward pass runs, it sees the saved Tensors of that level and is differentiable.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._tree import flatten
from wengert.core.aval import Aval, aval_of, is_differentiable, strong
from wengert.core.dispatch import apply, as_tensor
from wengert.core.examples import example_of
from wengert.core.form import Region
from wengert.core.primitive import Constant, Primitive
from wengert.core.requirements import require_callable
from wengert.core.tensor import Tensor, constant_tensor, innermost_trace, raw, settled
from wengert.core.views import current
from wengert.errors import GraphError, ShapeError, UsageError, describe
from wengert.primitives.indexing import rebind
from wengert.traces.modes import no_grad

__all__ = ["Context", "Function", "once_differentiable", "readable", "unshared"]

_as_constant = Constant("as_constant", lambda x: x.copy() if isinstance(x, np.ndarray) else x)


class Context:
    """Carry what `forward` wants to tell `backward`; further attributes may be set freely.

    Attributes:
        needs_input_grad: for each argument of `forward`, whether its cotangent is wanted.

    >>> import wengert as wg
    >>> class Square(wg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx: Context, x: Tensor) -> Tensor:
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx: Context, ct: Tensor) -> Tensor:
    ...         (x,) = ctx.saved_tensors
    ...         return ct * 2 * x
    >>> x = wg.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._to_save: tuple[Any, ...] = ()
        self._saved: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Save Tensors (inputs, outputs or others; None is allowed) for `saved_tensors`."""
        self._to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Tell which inputs `forward` has written to; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Tell which outputs are constants."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether outputs that received no cotangent give `backward` zeros (the default) or None."""
        self._materialize = value

    def _let_go(self) -> None:
        """Forget the values of the call: those that were saved are residuals of its record."""
        self._to_save = self._dirty = self._constant = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `forward` saved, as Tensors."""
        return self._saved


class Function:
    """Be the base of operations with their own derivative; call them with `apply`.

    Subclasses define static methods: `forward(ctx, *args, **kwargs)`, which returns a Tensor or a tuple of them,
    `backward(ctx, *cts)`, which takes a cotangent for each output and returns one for each argument of `forward`
    (None for arguments without), and optionally `jvp(ctx, *tangents)`. With a static method
    `setup_context(ctx, inputs, output)`, which saves and marks, `forward(*args, **kwargs)` gets no context.

    Calls work in every transformation. In a traced function a call is one equation, which runs `forward` anew on the
    values of each evaluation; what depends on values must then be saved with `save_for_backward`.

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

    @staticmethod
    def forward(ctx: Context, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs."""
        raise UsageError(
            describe("Function", "a subclass without forward", "a static method forward is needed", "Define it")
        )

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Any) -> None:
        """Save and mark what `backward` needs of the arguments and results, where `forward` gets no context."""

    @staticmethod
    def backward(ctx: Context, *cts: Any) -> Any:
        """Compute a cotangent for each argument of `forward`."""
        raise UsageError(
            describe("Function", "a subclass without backward", "a static method backward is needed", "Define it")
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` on these arguments, recording the call if a Tensor among them is being differentiated.

        Raises:
            UsageError: a marked or returned value does not belong to the call.
            GraphError: a leaf that requires grad was marked dirty while recording, or a Tensor that is being
                differentiated is inside a container or passed by keyword.
        """
        refuse_hidden_tensors(cls.__name__, args, kwargs)
        call = Call(cls, args, kwargs)
        outs = call.results()[: call.shown]
        if not call.places:
            outs = [as_tensor(out) for out in outs]
        for argument, index in call.dirty.items():
            rebind(args[argument], outs[index])
            outs[index] = args[argument]
        return tuple(outs) if call.returns_tuple else outs[0]


class Call(Primitive):
    """Be one call of a Function: a primitive whose operands are the Tensors among the arguments.

    Other values that `forward` saved are further outputs, which are not shown: so they are residuals like any other,
    and have their lanes under `vmap`.
    """

    kind = "opaque"
    firm = False
    given_by_user = True

    def __init__(
        self, cls: type[Function], args: tuple[Any, ...], kwargs: Mapping[str, Any], places: Sequence[int] | None = None
    ) -> None:
        super().__init__(cls.__name__, self.run)
        self.cls = cls
        self.args = args
        self.kwargs = kwargs
        self.count = len(args)
        self.places = [i for i, x in enumerate(args) if type(x) is Tensor] if places is None else places
        self.operands = [args[i] for i in self.places]
        self.needs_input_grad = tuple(type(x) is Tensor and innermost_trace(x) is not None for x in args)
        self.used = False
        self.depending: list[str] = []
        self.context: Context | None = None
        self.shown = 0
        self.returns_tuple = False
        self.constant: list[int] = []
        self.dirty: dict[int, int] = {}
        self.sources: list[tuple[str, Any]] = []
        self.out_avals: list[Aval] = []
        if hasattr(cls, "jvp"):
            self.jvp = self.push

    def results(self) -> list[Any]:
        """Make the call: return its results, then what it saved besides."""
        found = apply(self, *self.operands)
        self.forget_arguments()
        outs = list(found) if isinstance(found, tuple) else [found]
        for index in self.constant:
            outs[index] = apply(_as_constant, outs[index])
        return outs

    def lasting(self, avals: Sequence[Aval]) -> Primitive:
        """Return what stands for the call in a graph."""
        if self.context is not None and len(public_attributes(self.context)) > 1:
            self.compare_examples()
        return CallInGraph(self, avals)

    def compare_examples(self) -> None:
        """Find out whether attributes of the context depend on values, which are examples here: try others."""
        examples = [strong(example_of(x)) for x in self.operands]
        halved = [x * x.dtype.type(0.5) if is_differentiable(x.dtype) else x for x in examples]
        other = Call(self.cls, self.args, self.kwargs, self.places)
        other.needs_input_grad = self.needs_input_grad
        other.run(*halved)
        assert self.context is not None
        assert other.context is not None
        self.depending = different_attributes(self.context, other.context)

    def forget_arguments(self) -> None:
        """Let the arguments go: what is needed of them is saved where it was recorded."""
        self.args, self.kwargs, self.operands = (), {}, []

    def run(self, *values: Any) -> Any:
        """Call `forward` on plain Tensors; return its results, noting which of them it saved or marked."""
        arguments = list(self.args)
        for place, value in zip(self.places, values, strict=True):
            tensor = constant_tensor(value)
            arguments[place] = tensor
            tensor._kept = True
        context = Context(self.needs_input_grad)
        with no_grad():
            if self.cls.setup_context is Function.setup_context:
                result = self.cls.forward(context, *arguments, **self.kwargs)
            else:
                result = self.cls.forward(*arguments, **self.kwargs)
                self.cls.setup_context(context, tuple(arguments), result)
        outs = list(result) if isinstance(result, tuple) else [result]
        self.note(context, arguments, outs, isinstance(result, tuple))
        taken = [x for x in arguments if type(x) is Tensor]
        values_out = [own_value(self.name, out, taken) for out in outs]
        self.out_avals = [aval_of(value).firm for value in values_out]
        hidden = [own_value(self.name, x, taken) for x in self.hidden(context, arguments, outs)]
        context._let_go()
        self.outputs = len(values_out) + len(hidden)
        return (*values_out, *hidden) if self.outputs > 1 else values_out[0]

    def note(self, context: Context, arguments: Sequence[Any], outs: Sequence[Any], returns_tuple: bool) -> None:
        """Note what `forward` marked."""
        if not outs:
            raise UsageError(
                describe(
                    f"{self.name}.forward",
                    "an empty tuple of results",
                    "a Tensor or a tuple of Tensors is needed",
                    "Return one at least",
                )
            )
        if self.context is not None:
            require_same_attributes(self.name, self.context, context, LANES)
        self.context = context
        self.shown, self.returns_tuple = len(outs), returns_tuple
        self.constant = [self.index("mark_non_differentiable", x, outs) for x in context._constant]
        self.dirty = {
            self.index("mark_dirty", x, arguments): self.index("mark_dirty (returned values)", x, outs)
            for x in context._dirty
        }

    def hidden(self, context: Context, arguments: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """Note where the saved values come from; return those that are neither arguments nor results."""
        found: list[Any] = []
        self.sources = []
        self.savings.clear()
        for saved in context._to_save:
            operand = next((i for i, place in enumerate(self.places) if arguments[place] is saved), None)
            output = next((i for i, out in enumerate(outs) if out is saved), None)
            if operand is not None:
                self.sources.append(("operand", operand))
            elif output is not None:
                self.sources.append(("output", output))
            elif saved is None or innermost_trace(saved) is not None:
                self.sources.append(("value", saved))
            else:
                self.sources.append(("output", self.shown + len(found)))
                found.append(saved)
        return found

    def index(self, what: str, tensor: Any, among: Sequence[Any]) -> int:
        """Return the position of a marked Tensor among arguments or outputs."""
        for i, candidate in enumerate(among):
            if candidate is tensor:
                return i
        raise UsageError(
            describe(
                f"{self.name}.forward",
                f"{what} of a value that is not one of the call",
                "the very Tensor that was passed in or is returned is needed",
                "Mark that Tensor itself",
            )
        )

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save the operands and outputs that `forward` saved."""
        operands = {i for kind, i in self.sources if kind == "operand"}
        return any(kind == "output" for kind, _ in self.sources), lambda operand: operand in operands

    def kept_output(self, out: Any) -> Any:
        """Save those outputs alone that `forward` saved."""
        if self.outputs == 1:
            return out
        needed = {i for kind, i in self.sources if kind == "output"}
        return tuple(value if i in needed else None for i, value in enumerate(out))

    def restored(self, out: Any, operands: Sequence[Any]) -> Context:
        """Return the context with the saved Tensors of the level where it is needed."""
        context = copy.copy(self.context)
        assert context is not None
        if self.depending:
            raise attribute_error(self.name, self.depending[0], TRACED)
        self.used = True
        found = {"operand": operands, "output": out if self.outputs > 1 else (out,)}
        context._saved = tuple(x if kind == "value" else readable(found[kind][x]) for kind, x in self.sources)
        return context

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Call `backward` with the saved Tensors of this level, and check what it returns.

        As everywhere in the tape API, its cotangents are conjugates of the engine's where they are complex.
        """
        if self.cls.backward is Function.backward:
            raise self.lacking("backward")
        context = self.restored(out, operands)
        wanted = dict(zip(self.places, avals, strict=True))
        context.needs_input_grad = tuple(wanted.get(i) is not None for i in range(self.count))
        cts = ct[: self.shown] if self.outputs > 1 else [ct]
        lifted = any(type(c) is Tensor for c in cts)
        given = [self.given(None if i in self.constant else c, i, context._materialize) for i, c in enumerate(cts)]
        results = self.cls.backward(context, *given)
        results = results if isinstance(results, tuple) else (results,)
        return self.checked(results, avals, lifted)

    def push(self, tangents: Sequence[Any], out: Any, *operands: Any) -> Any:
        """Call the user's `jvp` with the saved Tensors of this level."""
        given: list[Any] = [None] * self.count
        for place, tangent in zip(self.places, tangents, strict=True):
            given[place] = None if tangent is None else readable(tangent)
        results = self.cls.jvp(self.restored(out, operands), *given)  # type: ignore[attr-defined]  # looked for above
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != self.shown:
            raise GraphError(
                describe(
                    f"{self.name}.jvp",
                    f"{len(results)} tangents",
                    f"{self.shown} are needed, one for each result of forward",
                    "Return None for results without one",
                )
            )
        moved = [
            None if r is None else settled(self.fitting("jvp", f"result {i}", current(as_tensor(r)), aval.shape))
            for i, (r, aval) in enumerate(zip(results, self.out_avals, strict=True))
        ]
        return (*moved, *[None] * (self.outputs - self.shown)) if self.outputs > 1 else moved[0]

    def given(self, ct: Any, index: int, materialize: bool) -> Any:
        """Return a cotangent as `backward` receives it."""
        if ct is None:
            aval = self.out_avals[index]
            return constant_tensor(np.zeros(aval.shape, aval.dtype)[()]) if materialize else None
        return readable(ct.conj() if ct.dtype.kind == "c" else ct)

    def checked(self, results: Sequence[Any], avals: Sequence[Aval | None], lifted: bool) -> list[Any]:
        """Return the cotangents of the operands, checking their number and shapes."""
        surplus = results[self.count :]
        if len(results) < self.count or any(x is not None for x in surplus):
            raise GraphError(
                describe(
                    f"{self.name}.backward",
                    f"{len(results)} cotangents",
                    f"{self.count} are needed, one for each argument of forward",
                    "Return None for arguments without one",
                )
            )
        cts: list[Any] = []
        for place, aval in zip(self.places, avals, strict=True):
            ct = results[place]
            if aval is None or ct is None:
                cts.append(None)
                continue
            tensor = self.fitting("backward", f"argument {place}", current(as_tensor(ct)), aval.shape)
            if tensor.dtype.kind == "c":
                tensor = tensor.conj()
            cts.append(tensor if lifted or tensor._trace is not None else tensor._value)
        return cts

    def fitting(self, method: str, of: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Return what a method of the user's gave, checking its shape."""
        if tensor.shape == shape:
            return tensor
        what = "cotangent" if method == "backward" else "tangent"
        raise ShapeError(
            describe(
                f"{self.name}.{method}",
                f"a {what} of shape {tensor.shape} for {of}",
                f"the shape {shape} of that {of.split()[0]} is needed",
                "Sum over what forward broadcast" if method == "backward" else "Broadcast it as forward does",
            )
        )

    def lacking(self, method: str) -> UsageError:
        """Return the error about a method that is not there."""
        return UsageError(
            describe(
                self.name,
                f"a Function without {method}",
                f"a static method {method} is needed to differentiate it",
                "Define it",
            )
        )


class CallInGraph(Primitive):
    """Stand for a call of a Function in a graph: each evaluation is a call of its own, with its own context.

    Args:
        traced: the call that was traced, on examples.
        avals: those of its results.
    """

    kind = "opaque"
    structured = True
    unfolds = True
    firm = False

    def __init__(self, traced: Call, avals: Sequence[Aval]) -> None:
        super().__init__(traced.name, self.call, form=Region(lambda _inputs, _params: avals))
        self.traced = traced
        self.outputs = len(avals)
        self.places = traced.places
        self.args = tuple(None if i in set(traced.places) else x for i, x in enumerate(traced.args))
        self.kwargs = traced.kwargs

    def call(self, *values: Any) -> Any:
        """Call the function on values of any kind."""
        arguments = list(self.args)
        for place, value in zip(self.places, values, strict=True):
            arguments[place] = value
        traced = self.traced
        again = Call(traced.cls, tuple(arguments), self.kwargs, self.places)
        needs = zip(again.needs_input_grad, traced.needs_input_grad, strict=True)
        again.needs_input_grad = tuple(now or then for now, then in needs)
        results = again.results()
        if traced.used and traced.context is not None and again.context is not None:
            require_same_attributes(self.name, traced.context, again.context, TRACED)
        if len(results) != self.outputs:
            raise GraphError(
                describe(
                    f"{self.name}.forward",
                    f"{len(results)} results and saved Tensors where {self.outputs} were traced",
                    "as many in every call are needed in a traced function",
                    "Return and save the same whatever the values are",
                )
            )
        return tuple(results) if self.outputs > 1 else results[0]


LANES = "which differs from lane to lane under vmap", "attributes of ctx must be the same for all lanes"
TRACED = "which depends on values that are being traced", "attributes of ctx must not while a gradient is traced"


def refuse_hidden_tensors(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise a GraphError for Tensors where no cotangent could be returned for them."""
    containers = [x for x in args if isinstance(x, list | tuple | dict)]
    for leaf in [leaf for tree in (*containers, *kwargs.values()) for leaf in flatten(tree)[0]]:
        if type(leaf) is Tensor and innermost_trace(leaf) is not None:
            raise GraphError(
                describe(
                    f"{name}.apply",
                    "a Tensor that is being differentiated, in a container or passed by keyword",
                    "it is needed as a positional argument, because backward returns a cotangent for each of those",
                    "Pass it by position, or .detach() it",
                )
            )


def require_same_attributes(name: str, before: Context, after: Context, why: tuple[str, str]) -> None:
    """Raise a GraphError if `forward` stored different attributes on its context in calls that share a backward."""
    different = different_attributes(before, after)
    if different:
        raise attribute_error(name, different[0], why)


def attribute_error(name: str, attribute: str, why: tuple[str, str]) -> GraphError:
    """Return the error about an attribute of a context that differs between calls."""
    action = "Pass what depends on values to ctx.save_for_backward"
    return GraphError(describe(f"{name}.forward", f"ctx.{attribute}, {why[0]}", why[1], action))


def different_attributes(one: Context, other: Context) -> list[str]:
    """Return the names of what a user stored differently on two contexts."""
    old, new = public_attributes(one), public_attributes(other)
    return [key for key in {**old, **new} if key not in old or key not in new or not alike(old[key], new[key])]


def public_attributes(context: Context) -> dict[str, Any]:
    """Return what a user stored on a context."""
    return {key: value for key, value in vars(context).items() if not key.startswith("_")}


def alike(a: Any, b: Any) -> bool:
    """Tell whether two attributes are the same or have equal elements."""
    if isinstance(a, Tensor | np.ndarray) or isinstance(b, Tensor | np.ndarray):
        return bool(np.array_equal(np.asarray(raw(a)), np.asarray(raw(b)), equal_nan=True))
    return a is b or (type(a) is type(b) and bool(a == b))


def readable(value: Any) -> Tensor:
    """Return a value as a Tensor whose memory is left alone by writes."""
    tensor = constant_tensor(value)
    tensor._kept = True
    return tensor


def own_value(name: str, out: Any, taken: Sequence[Tensor]) -> Any:
    """Return the array of a result of `forward`, in memory that neither its arguments nor the user may write to."""
    if type(out) is not Tensor and not isinstance(out, np.ndarray | np.generic | float | int | complex):
        raise UsageError(
            describe(
                f"{name}.forward",
                f"a result of type {type(out).__name__}",
                "a Tensor or a tuple of Tensors is needed",
                "Store other results on ctx",
            )
        )
    tensor = as_tensor(out)
    if innermost_trace(tensor) is not None and not any(tensor is x for x in taken):
        raise GraphError(
            describe(
                f"{name}.forward",
                "a result that depends on a captured value which is being differentiated",
                "forward must take such values as arguments",
                "Add it to the arguments, or .detach() it",
            )
        )
    return unshared(tensor, taken)


def unshared(tensor: Tensor, taken: Sequence[Tensor]) -> Any:
    """Return the array of a Tensor; a copy unless its memory is its own, and not that of the Tensors in `taken`."""
    value = raw(tensor)
    if not isinstance(value, np.ndarray):
        return value
    borrowed = tensor._kept or tensor is not current(tensor)
    return value.copy() if borrowed or any(np.may_share_memory(raw(x), value) for x in taken) else value


class _OnceOnly(Primitive):
    """Stand behind the results of a `backward` that cannot be differentiated."""

    kind = "opaque"

    def saved(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save nothing."""
        return False, lambda operand: False

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Refuse."""
        raise GraphError(
            describe(
                self.name,
                "a second differentiation, or one in forward mode",
                "a backward that is not marked once_differentiable is needed",
                "Write backward in operations on Tensors and remove the mark",
            )
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose operations are not recorded: differentiating its result is an error.

    Args:
        backward: the static method's function; it receives plain Tensors.

    Returns:
        The function to use in its place.

    >>> import wengert as wg
    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, ct):
    ...         return ct * 2 * ctx.saved_tensors[0]
    >>> wg.grad(Square.apply)(3.0)
    6.0
    """
    require_callable("once_differentiable", backward)

    @functools.wraps(backward)
    def once(ctx: Context, *cts: Any) -> Any:
        traced = [x for x in (*cts, *ctx._saved) if type(x) is Tensor and innermost_trace(x) is not None]
        plain = copy.copy(ctx)
        plain._saved = tuple(x.detach() if type(x) is Tensor else x for x in ctx._saved)
        with no_grad():
            results = backward(plain, *(x.detach() if type(x) is Tensor else x for x in cts))
        if not traced:
            return results
        found = results if isinstance(results, tuple) else (results,)
        guard = _OnceOnly(backward.__qualname__, lambda value, *_: value)
        return tuple(x if x is None else apply(guard, as_tensor(x), *traced) for x in found)

    return once
