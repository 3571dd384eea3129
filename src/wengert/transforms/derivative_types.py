"""What type checkers know of the functions that transformations return: their parameters, and what comes back.

A gradient has the type of the argument that it is taken by. Checkers find that where the gradient is called, so that
functions without annotations, `lambda` among them, can be differentiated, too. At run time there are no such objects.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

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
