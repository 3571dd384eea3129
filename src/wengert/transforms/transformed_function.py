"""What transformations return: functions made of functions, and bound, copied, shown and pickled as functions are.

For type checkers they have parameters and results: a gradient has the type of the argument that it is taken by.
Checkers find that where the gradient is called, so that functions without annotations, `lambda` among them, can be
differentiated, too. At run time there are no such objects.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole, require_callable, require_flag
from wengert.support.attributes import function_name, resemble
from wengert.support.function_protocol import LikeFunction
from wengert.support.functions_by_value import reduce_function
from wengert.support.records import NamedTuple
from wengert.transforms.boundary import require_positions

if TYPE_CHECKING:
    from wengert.core.values.tensor import Tensor


P = ParamSpec("P")
Q = ParamSpec("Q")
A = TypeVar("A")
D = TypeVar("D", bound=np.dtype[Any])
R = TypeVar("R")
Instance = TypeVar("Instance")
Value = TypeVar("Value", covariant=True)


class Derived(Generic[P, Value]):
    """Be a function with the parameters of another one, or a method."""

    __wrapped__: Callable[P, Any]

    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Value:
        """Be called as the function is."""

    @overload
    @abstractmethod
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    @abstractmethod
    def __get__(
        self: Derived[Concatenate[Instance, Q], R], instance: Instance, owner: Any = None
    ) -> Callable[Q, R]: ...


class Gradient(Derived[P, Any]):
    """Be called as a function is, and return what has the type of its first argument."""

    @overload
    @abstractmethod
    def __call__(self: Gradient[Concatenate[A, Q]], first: A, /, *args: Q.args, **kwargs: Q.kwargs) -> A: ...
    @overload
    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class GradientAndAux(Derived[P, tuple[Any, Value]]):
    """Be called as a function is, and return what has the type of its first argument, and an auxiliary result."""

    @overload
    @abstractmethod
    def __call__(
        self: GradientAndAux[Concatenate[A, Q], R], first: A, /, *args: Q.args, **kwargs: Q.kwargs
    ) -> tuple[A, R]: ...
    @overload
    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Any, Value]: ...


class ValueAndGradient(Derived[P, tuple[Value, Any]]):
    """Be called as a function is, and return its result, and what has the type of its first argument."""

    @overload
    @abstractmethod
    def __call__(
        self: ValueAndGradient[Concatenate[A, Q], R], first: A, /, *args: Q.args, **kwargs: Q.kwargs
    ) -> tuple[R, A]: ...
    @overload
    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Value, Any]: ...


class ArrayDerivative(Derived[P, Any]):
    """Be called as a function is, and return an array if its first argument is one, a Tensor if that is one."""

    @overload
    @abstractmethod
    def __call__(
        self: ArrayDerivative[Concatenate[np.ndarray[Any, D], Q]],
        first: np.ndarray[Any, D],
        /,
        *args: Q.args,
        **kwargs: Q.kwargs,
    ) -> np.ndarray[Any, D]: ...
    @overload
    @abstractmethod
    def __call__(
        self: ArrayDerivative[Concatenate[Tensor, Q]], first: Tensor, /, *args: Q.args, **kwargs: Q.kwargs
    ) -> Tensor: ...
    @overload
    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class Transformed(LikeFunction, functools.partial[Any]):
    """Be a function that a transformation made of another one, whose name, parameters and docstring it has.

    It calls a function of the library with the other one, the options, and what it is called with. That it is a
    partial lets it be called as fast as a function, and pickled: processes of a pool can call it.
    """

    transformation: str

    def __repr__(self) -> str:
        """Return the names of the transformation and of the function."""
        return f"<{self.transformation}({function_name(self.args[0], '__name__')})>"

    def __reduce__(self) -> Any:
        """Return the name under which a module has it, as functions do, or what it is made of."""
        return reduce_function(self, make_transformed, (self.transformation, self.func, *self.args))


def make_transformed(name: str, run: Callable[..., Any], fun: Callable[..., Any], *options: Any) -> Derived[..., Any]:
    """Return the function that calls `run(fun, *options, *args, **kwargs)` and otherwise looks like `fun`.

    >>> def doubled(fun, factor, /, *args):
    ...     return factor * fun(*args)
    >>> found = make_transformed("twice", doubled, abs, 2)
    >>> found, found(-3)
    (<twice(abs)>, 6)
    """
    made: Any = Transformed(run, fun, *options)
    resemble(made, fun)
    made.transformation = name
    return made  # type: ignore[no-any-return]  # what checkers take it for


class DerivativeOptions(NamedTuple):
    """Hold the options of a derivative.

    Attributes:
        name: the public function, for errors.
        argnums: the positions of the arguments to differentiate.
        has_aux: whether the function returns a pair (output, auxiliary result).
        holomorphic: whether the function is complex differentiable.
        captured: Tensors that the function closes over, to be differentiated, too; True for all that require grad.
        batch_size: how many rows or columns of a Jacobian are computed at once; None for all.
    """

    name: str
    argnums: int | Sequence[int] = 0
    has_aux: bool = False
    holomorphic: bool = False
    captured: Sequence[Tensor] | bool = ()
    batch_size: int | None = None

    def in_form(self, derivatives: tuple[Any, ...]) -> Any:
        """Return the derivative by the one argument that was asked for, or the tuple of those by several."""
        return derivatives[0] if isinstance(self.argnums, int) else derivatives


def make_derivative(run: Callable[..., Any], fun: Callable[..., Any], options: DerivativeOptions) -> Derived[..., Any]:
    """Return the function that calls `run(fun, options, *args, **kwargs)`; raise if the options cannot be used."""
    require_callable(options.name, fun)
    require_flag(options.name, has_aux=options.has_aux, holomorphic=options.holomorphic)
    require_positions(options.name, options.argnums)
    if options.batch_size is not None:
        size = as_whole(options.name, "batch_size", options.batch_size, least=1)
        options = options._replace(batch_size=size)
    return make_transformed(options.name, run, fun, options)
