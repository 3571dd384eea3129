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

from wengert.core.aval import Aval
from wengert.core.dispatch import apply, as_tensor
from wengert.core.primitive import Constant, Primitive
from wengert.core.tensor import Tensor, constant_tensor, innermost_trace, raw, settled
from wengert.core.views import current
from wengert.errors import GraphError, ShapeError, UsageError, describe
from wengert.primitives.indexing import rebind
from wengert.traces.modes import no_grad

__all__ = ["Context", "Function", "once_differentiable"]

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

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `forward` saved, as Tensors."""
        return self._saved


class Function:
    """Be the base of operations with their own derivative; call them with `apply`.

    Subclasses define static methods: `forward(ctx, *args, **kwargs)`, which returns a Tensor or a tuple of them,
    `backward(ctx, *cts)`, which takes a cotangent for each output and returns one for each argument of `forward`
    (None for arguments without), and optionally `jvp(ctx, *tangents)`.

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
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Context, *cts: Any) -> Any:
        """Compute a cotangent for each argument of `forward`."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` on these arguments, recording the call if a Tensor among them is being differentiated.

        Raises:
            UsageError: a marked or returned value does not belong to the call.
            GraphError: a leaf that requires grad was marked dirty while recording.
        """
        call = Call(cls, args, kwargs)
        results = apply(call, *call.operands)
        outs: list[Any] = list(results) if call.outputs > 1 else [results]
        if not call.operands:
            outs = [as_tensor(out) for out in outs]
        for index in call.constant:
            outs[index] = apply(_as_constant, outs[index])
        for argument, index in call.dirty.items():
            rebind(args[argument], outs[index])
            outs[index] = args[argument]
        return tuple(outs) if call.returns_tuple else outs[0]


class Call(Primitive):
    """Be one call of a Function: a primitive whose operands are the Tensors among the arguments."""

    kind = "opaque"

    def __init__(self, cls: type[Function], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        super().__init__(cls.__name__, self.run)
        self.cls = cls
        self.args = args
        self.kwargs = kwargs
        self.places = [i for i, x in enumerate(args) if type(x) is Tensor]
        self.operands = [args[i] for i in self.places]
        self.context = Context(tuple(type(x) is Tensor and innermost_trace(x) is not None for x in args))
        self.returns_tuple = False
        self.constant: list[int] = []
        self.dirty: dict[int, int] = {}
        self.sources: list[tuple[str, Any]] = []
        self.out_avals: list[Aval] = []
        if hasattr(cls, "jvp"):
            self.jvp = self.push

    def run(self, *values: Any) -> Any:
        """Call `forward` on plain Tensors; return its results, noting which of them it saved or marked."""
        arguments = list(self.args)
        for place, value in zip(self.places, values, strict=True):
            tensor = constant_tensor(value)
            arguments[place] = tensor
            tensor._kept = True
        with no_grad():
            result = self.cls.forward(self.context, *arguments, **self.kwargs)
        self.returns_tuple = isinstance(result, tuple)
        outs = list(result) if self.returns_tuple else [result]
        self.outputs = len(outs)
        self.sources = [self.source(x, arguments, outs) for x in self.context._to_save]
        self.constant = [self.index("mark_non_differentiable", x, outs) for x in self.context._constant]
        self.dirty = {
            self.index("mark_dirty", x, arguments): self.index("mark_dirty (returned values)", x, outs)
            for x in self.context._dirty
        }
        values_out = tuple(own_value(self.name, out, arguments) for out in outs)
        self.out_avals = [Aval(value.shape, value.dtype) for value in values_out]
        return values_out if self.outputs > 1 else values_out[0]

    def source(self, saved: Any, arguments: Sequence[Any], outs: Sequence[Any]) -> tuple[str, Any]:
        """Return where a saved value came from: an operand, an output, or neither."""
        for i, place in enumerate(self.places):
            if arguments[place] is saved:
                return "operand", i
        for i, out in enumerate(outs):
            if out is saved:
                return "output", i
        return "value", saved

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

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Call `backward` with the saved Tensors of this level, and check what it returns."""
        context = copy.copy(self.context)
        outs = out if self.outputs > 1 else (out,)
        found = {"operand": operands, "output": outs}
        context._saved = tuple(x if kind == "value" else constant_tensor(found[kind][x]) for kind, x in self.sources)
        wanted = dict(zip(self.places, avals, strict=True))
        context.needs_input_grad = tuple(wanted.get(i) is not None for i in range(len(self.args)))
        cts = ct if self.outputs > 1 else [ct]
        lifted = any(type(c) is Tensor for c in cts)
        given = [self.given(c, i, context._materialize) for i, c in enumerate(cts)]
        results = self.cls.backward(context, *given)
        results = results if isinstance(results, tuple) else (results,)
        return self.checked(results, avals, lifted)

    def push(self, tangents: Sequence[Any], out: Any, *operands: Any) -> Any:
        """Call the user's `jvp` with the saved Tensors of this level."""
        context = copy.copy(self.context)
        found = {"operand": operands, "output": out if self.outputs > 1 else (out,)}
        context._saved = tuple(x if kind == "value" else constant_tensor(found[kind][x]) for kind, x in self.sources)
        given: list[Any] = [None] * len(self.args)
        for place, tangent in zip(self.places, tangents, strict=True):
            given[place] = None if tangent is None else constant_tensor(tangent)
        results = self.cls.jvp(context, *given)  # type: ignore[attr-defined]  # optional, looked for above
        results = results if isinstance(results, tuple) else (results,)
        moved = tuple(None if r is None else settled(current(as_tensor(r))) for r in results)
        return moved if self.outputs > 1 else moved[0]

    def given(self, ct: Any, index: int, materialize: bool) -> Any:
        """Return a cotangent as `backward` receives it."""
        if ct is None:
            aval = self.out_avals[index]
            return constant_tensor(np.zeros(aval.shape, aval.dtype)[()]) if materialize else None
        tensor = constant_tensor(ct)
        tensor._kept = True
        return tensor

    def checked(self, results: Sequence[Any], avals: Sequence[Aval | None], lifted: bool) -> list[Any]:
        """Return the cotangents of the operands, checking their number and shapes."""
        surplus = results[len(self.args) :]
        if len(results) < len(self.args) or any(x is not None for x in surplus):
            raise GraphError(
                describe(
                    f"{self.name}.backward",
                    f"{len(results)} cotangents",
                    f"{len(self.args)} are needed, one for each argument of forward",
                    "Return None for arguments without one",
                )
            )
        cts: list[Any] = []
        for place, aval in zip(self.places, avals, strict=True):
            ct = results[place]
            if aval is None or ct is None:
                cts.append(None)
                continue
            tensor = current(as_tensor(ct))
            if tensor.shape != aval.shape:
                raise ShapeError(
                    describe(
                        f"{self.name}.backward",
                        f"a cotangent of shape {tensor.shape} for argument {place}",
                        f"the shape {aval.shape} of that argument is needed",
                        "Sum over what forward broadcast",
                    )
                )
            cts.append(tensor if lifted or tensor._trace is not None else tensor._value)
        return cts


def own_value(name: str, out: Any, arguments: Sequence[Any]) -> Any:
    """Return the array of a result of `forward`."""
    if type(out) is not Tensor and not isinstance(out, np.ndarray | np.generic | float | int | complex):
        raise UsageError(
            describe(
                f"{name}.forward",
                f"a result of type {type(out).__name__}",
                "a Tensor or a tuple of Tensors is needed",
                "Store other results on ctx",
            )
        )
    value = raw(as_tensor(out))
    shared = any(type(x) is Tensor and raw(x) is value for x in arguments)
    return value.copy() if shared else value


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
                "a second differentiation",
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
