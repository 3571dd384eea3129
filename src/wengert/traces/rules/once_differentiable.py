"""`once_differentiable`: backward passes that cannot be differentiated themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.forms.batching import lead
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import Tensor, innermost_trace
from wengert.errors import GraphError
from wengert.traces.grad_modes import no_grad
from wengert.traces.rules.context import Context, public_attributes


class _OnceOnly(Primitive):
    """Stand behind the results of a `backward` that cannot be differentiated, and depend on all it was given."""

    kind = "opaque"

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda value, *_: value, batch=self.run_batched)

    def run_batched(
        self, _primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], _params: Any
    ) -> Any:
        """Give the result of all lanes."""
        return apply(self, lead(operands[0], batched[0], size), *operands[1:])

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save nothing."""
        return False, lambda operand: False

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Refuse."""
        given = "a second differentiation, or one in forward mode"
        needed = "a backward that is not marked once_differentiable is needed"
        raise GraphError(self.name, given, needed, "Write backward in operations on Tensors and remove the mark")


class FirstOnly(_OnceOnly):
    """Stand behind the results of a `backward` that read attributes of which nobody knows how they depend on operands.

    It passes what is linear in the cotangents, operand 0, and refuses derivatives by the other operands.
    """

    def __init__(self, name: str, attribute: str) -> None:
        super().__init__(name)
        self.attribute = attribute

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save the operands that the attribute may depend on: what is transposed depends on it as well."""
        return False, lambda operand: operand > 0

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Pass the cotangent, and refuse what would need the derivative of the attribute."""
        if any(aval is not None for aval in avals[1:]):
            raise GraphError(
                f"{self.name}.backward",
                f"a second differentiation where forward stored ctx.{self.attribute}, numbers that may depend on"
                " the arguments",
                "Tensors are needed, whose derivatives can be followed",
                "Pass them to ctx.save_for_backward, or compute them in backward",
            )
        return [apply(self, ct, *operands[1:]), *(None for _ in avals[1:])]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose operations are not recorded: differentiating its result is an error.

    Args:
        backward: the static method's function; it receives plain Tensors.

    Returns:
        The function to use in its place.

    Raises:
        DtypeError: it cannot be called.

    >>> import wengert as wg
    >>> class Square(wg.autograd.Function):
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
        kept = (*cts, *ctx._saved, *public_attributes(ctx).values())
        traced = [x for x in kept if type(x) is Tensor and innermost_trace(x) is not None]
        with no_grad():
            results = backward(ctx._detached_copy(), *(x.detach() if type(x) is Tensor else x for x in cts))
        if not traced:
            return results
        found = results if isinstance(results, tuple) else (results,)
        guard = _OnceOnly(backward.__qualname__)
        return tuple(x if x is None else apply(guard, as_tensor(x), *traced) for x in found)

    return once
