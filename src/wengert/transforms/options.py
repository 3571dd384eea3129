"""What is differentiated of a function, and how: the options that `grad`, `jacobian` and their kin have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert.core.diagnostics.argument_checks import require_callable, require_flag
from wengert.transforms.boundary import require_positions
from wengert.transforms.transformed_function import make_transformed

if TYPE_CHECKING:
    from wengert.core.values.tensor import Tensor
    from wengert.transforms.derivative_types import Derived


class Options(NamedTuple):
    """Hold the options of a derivative.

    Attributes:
        name: the public function, for errors.
        argnums: the positions of the arguments to differentiate.
        has_aux: whether the function returns a pair (output, auxiliary result).
        holomorphic: whether the function is complex differentiable.
        captured: Tensors that the function closes over, to be differentiated, too; True for all that require grad.
    """

    name: str
    argnums: int | Sequence[int] = 0
    has_aux: bool = False
    holomorphic: bool = False
    captured: Sequence[Tensor] | bool = ()

    def in_form(self, derivatives: tuple[Any, ...]) -> Any:
        """Return the derivative by the one argument that was asked for, or the tuple of those by several."""
        return derivatives[0] if isinstance(self.argnums, int) else derivatives


def make_derivative(run: Callable[..., Any], fun: Callable[..., Any], options: Options) -> Derived[..., Any]:
    """Return the function that calls `run(fun, options, *args, **kwargs)`; raise if the options cannot be used."""
    require_callable(options.name, fun)
    require_flag(options.name, has_aux=options.has_aux, holomorphic=options.holomorphic)
    require_positions(options.name, options.argnums)
    return make_transformed(options.name, run, fun, options)
