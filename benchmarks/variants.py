"""What can be done with an operation, in each library: `plain`, `backward`, `second order`, `jvp` and `vmap`.

Each makes a function without arguments that does the operation many times in one program, as a part of a longer
computation would, and returns what is to be compared between the libraries.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import wengert as wg
from benchmarks.namespaces import namespace

__all__ = ["LANES", "VARIANTS", "Problem", "programs"]

Array = np.ndarray[Any, Any]
Run = Callable[[], Sequence[Any]]
LANES = 8
VARIANTS = ("plain", "backward", "second order", "jvp", "vmap")


@dataclass(frozen=True)
class Problem:
    """Hold an operation at a point: operands to be differentiated, others, and what is multiplied with the Jacobian."""

    function: Callable[..., Any]
    operands: tuple[Array, ...]
    constants: tuple[Array, ...]
    repeats: int

    @functools.cached_property
    def value(self) -> Array:
        """The result according to NumPy."""
        return self.evaluate(self.operands)

    def evaluate(self, operands: Sequence[Array]) -> Array:
        """Return the result for other operands, according to NumPy."""
        return np.asarray(self.function(namespace("numpy"), *operands, *self.constants))

    @functools.cached_property
    def cotangent(self) -> Array:
        """What is multiplied from the left."""
        return direction(self.value)

    @functools.cached_property
    def tangents(self) -> tuple[Array, ...]:
        """What is multiplied from the right."""
        return tuple(map(direction, self.operands))

    @functools.cached_property
    def lanes(self) -> tuple[Array, ...]:
        """The operands of all lanes of a batch; in each they differ a little."""
        factors = np.linspace(0.9, 1.0, LANES)
        return tuple(np.multiply.outer(factors, operand) for operand in self.operands)


def direction(like: Array) -> Array:
    """Return numbers of either sign in the shape and dtype of an array."""
    return np.asarray(np.cos(np.arange(like.size, dtype=float)).reshape(like.shape), dtype=like.dtype)


class Programs:
    """Make the programs of one library; a method that is missing says that the library has no such thing."""

    name = ""
    slowness = 1
    """By how much repetitions are reduced so that a program takes as long as those of the other libraries."""

    def constant(self, values: Array) -> Any:
        """Return data as the library's users hold it."""
        return values

    def array(self, values: Array) -> Any:
        """Return an array of which nothing is known to be differentiated."""
        return self.constant(values)

    def finish(self, run: Run) -> Run:
        """Return a program that waits for its results."""
        return run

    def repeats(self, problem: Problem) -> int:
        """Return how often the operation is done in one run."""
        return max(1, problem.repeats // self.slowness)

    def repeated(self, problem: Problem) -> Callable[..., Any]:
        """Return a function of the operands that does the operation many times and returns the last result."""
        xp, function, times = namespace(self.name), problem.function, range(self.repeats(problem))
        constants = tuple(map(self.constant, problem.constants))

        def f(*operands: Any) -> Any:
            for _ in times:
                result = function(xp, *operands, *constants)
            return result

        return f

    def plain(self, problem: Problem) -> Run:
        """Compute the operation where nothing differentiates."""
        f, operands = self.repeated(problem), tuple(map(self.array, problem.operands))
        return self.finish(lambda: (f(*operands),))


class Numpy(Programs):
    """NumPy itself, which differentiates nothing."""

    name = "numpy"


class Tape(Programs):
    """A library with leaves, each repetition with its own so that cotangents need not be added."""

    autograd: Any

    def leaf(self, values: Array) -> Any:
        """Return an array that is differentiated."""
        raise NotImplementedError

    def leaves(self, problem: Problem) -> list[list[Any]]:
        """Return the operands of every repetition."""
        return [[self.leaf(values) for values in problem.operands] for _ in range(self.repeats(problem))]

    def calls(self, problem: Problem, leaves: list[list[Any]]) -> list[tuple[Any, ...]]:
        """Return the arguments of every repetition."""
        xp, constants = namespace(self.name), tuple(map(self.constant, problem.constants))
        return [(xp, *operands, *constants) for operands in leaves]

    def backward(self, problem: Problem) -> Run:
        """Compute forward and backward, all repetitions in one sweep; every run adds to what is in `.grad`.

        That has memory of its own from the beginning: a library that hands a view of the cotangent over as the first
        `.grad` would add it to itself in later runs, half of the memory that others go over.
        """
        function, backward, leaves = problem.function, self.autograd.backward, self.leaves(problem)
        for operands in leaves:
            for leaf, values in zip(operands, problem.operands, strict=True):
                leaf.grad = self.array(np.zeros_like(values))
        calls = self.calls(problem, leaves)
        cotangents = [self.array(problem.cotangent) for _ in leaves]

        def run() -> Sequence[Any]:
            backward([function(*call) for call in calls], cotangents)
            return [leaf.grad for leaf in leaves[0]]

        return run

    def second_order(self, problem: Problem) -> Run:
        """Compute the gradients of gradients, with respect to the operands and the first cotangents."""
        function, grad, leaves = problem.function, self.autograd.grad, self.leaves(problem)
        calls = self.calls(problem, leaves)
        every = [leaf for operands in leaves for leaf in operands]
        cotangents = [self.leaf(problem.cotangent) for _ in leaves]
        directions = [self.array(values) for _ in leaves for values in problem.tangents]
        inputs = [*every, *cotangents]

        def run() -> Sequence[Any]:
            first = grad([function(*call) for call in calls], every, cotangents, create_graph=True)
            return list(grad(first, inputs, directions, allow_unused=True)[: len(problem.operands)])

        return run


class Wengert(Tape):
    """Wengert: Tensors of the tape, and transformations of functions of ndarrays."""

    name = "wengert"
    autograd = wg.autograd

    def array(self, values: Array) -> Any:
        """Return a Tensor."""
        return wg.tensor(values)

    def leaf(self, values: Array) -> Any:
        """Return a leaf."""
        return wg.tensor(values, requires_grad=True)

    def jvp(self, problem: Problem) -> Run:
        """Compute values and their derivatives along a direction."""
        f = self.repeated(problem)
        return lambda: wg.jvp(f, problem.operands, problem.tangents)

    def vmap(self, problem: Problem) -> Run:
        """Compute a batch."""
        f = wg.vmap(self.repeated(problem))
        return lambda: (f(*problem.lanes),)


class Torch(Tape):
    """PyTorch: its tape, and torch.func."""

    name = "torch"

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        self.autograd = self.torch.autograd

    def constant(self, values: Array) -> Any:
        """Return a tensor."""
        return self.torch.tensor(values)

    def leaf(self, values: Array) -> Any:
        """Return a leaf."""
        return self.torch.tensor(values, requires_grad=True)

    def jvp(self, problem: Problem) -> Run:
        """Compute values and their derivatives along a direction."""
        f = self.repeated(problem)
        operands, tangents = (tuple(map(self.constant, arrays)) for arrays in (problem.operands, problem.tangents))
        jvp = self.torch.func.jvp
        return lambda: jvp(f, operands, tangents)

    def vmap(self, problem: Problem) -> Run:
        """Compute a batch."""
        f, lanes = self.torch.func.vmap(self.repeated(problem)), tuple(map(self.constant, problem.lanes))
        return lambda: (f(*lanes),)


class Jax(Programs):
    """JAX without jit."""

    name = "jax"
    slowness = 20

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")

    def constant(self, values: Array) -> Any:
        """Return an array."""
        return namespace("jax").asarray(values)

    def finish(self, run: Run) -> Run:
        """Return a program that waits for its results."""
        wait = self.jax.block_until_ready
        return lambda: wait(run())

    def pulled(self, problem: Problem) -> Callable[..., Any]:
        """Return the function that pulls cotangents back through all repetitions, each with its own operands."""
        xp, function, vjp = namespace("jax"), problem.function, self.jax.vjp
        constants = tuple(map(self.constant, problem.constants))

        def every(leaves: Any) -> Any:
            return [function(xp, *operands, *constants) for operands in leaves]

        return lambda leaves, cotangents: vjp(every, leaves)[1](cotangents)[0]

    def places(self, problem: Problem) -> tuple[Any, Any, Any]:
        """Return the operands, the cotangents and the directions of all repetitions."""
        times = range(self.repeats(problem))
        leaves = [[self.constant(values) for values in problem.operands] for _ in times]
        directions = [[self.constant(values) for values in problem.tangents] for _ in times]
        return leaves, [self.constant(problem.cotangent) for _ in times], directions

    def backward(self, problem: Problem) -> Run:
        """Compute forward and backward."""
        pull = self.pulled(problem)
        leaves, cotangents, _ = self.places(problem)
        return self.finish(lambda: pull(leaves, cotangents)[0])

    def second_order(self, problem: Problem) -> Run:
        """Compute the gradients of gradients, with respect to the operands and the first cotangents."""
        pull, vjp = self.pulled(problem), self.jax.vjp
        leaves, cotangents, directions = self.places(problem)
        return self.finish(lambda: vjp(pull, leaves, cotangents)[1](directions)[0][0])

    def jvp(self, problem: Problem) -> Run:
        """Compute values and their derivatives along a direction."""
        f, jvp = self.repeated(problem), self.jax.jvp
        operands, tangents = (tuple(map(self.constant, arrays)) for arrays in (problem.operands, problem.tangents))
        return self.finish(lambda: jvp(f, operands, tangents))

    def vmap(self, problem: Problem) -> Run:
        """Compute a batch."""
        f, lanes = self.jax.vmap(self.repeated(problem)), tuple(map(self.constant, problem.lanes))
        return self.finish(lambda: (f(*lanes),))


class Autograd(Programs):
    """HIPS autograd; its forward mode knows too few operations to be compared."""

    name = "autograd"
    slowness = 2

    def __init__(self) -> None:
        self.extend = importlib.import_module("autograd.extend")
        self.make_vjp = importlib.import_module("autograd.core").make_vjp

    def pulled(self, problem: Problem) -> Callable[..., Any]:
        """Return the function that pulls a cotangent back through all repetitions at the same operands."""
        xp, function, make_vjp = namespace("autograd"), problem.function, self.make_vjp
        times = range(self.repeats(problem))

        def pull(leaves: Any, cotangent: Any) -> Any:
            gather = self.gathering([cotangent] * len(times))

            def every(leaves: Any) -> Any:
                operands = tuple(leaves[position] for position in range(len(problem.operands)))
                return gather(*[function(xp, *operands, *problem.constants) for _ in times])

            return make_vjp(every, leaves)[0](1.0)

        return pull

    def gathering(self, cotangents: Sequence[Any]) -> Callable[..., Any]:
        """Return an operation of many operands that sends a cotangent back to each of them."""
        gather = self.extend.primitive(lambda *_operands: 0.0)
        self.extend.defvjp_argnums(gather, lambda argnums, *_: lambda _ct: [cotangents[i] for i in argnums])
        return gather  # type: ignore[no-any-return]  # of a module without types

    def backward(self, problem: Problem) -> Run:
        """Compute forward and backward; cotangents are added, since the operands are the same."""
        pull, times = self.pulled(problem), self.repeats(problem)
        return lambda: [gradient / times for gradient in pull(problem.operands, problem.cotangent)]

    def second_order(self, problem: Problem) -> Run:
        """Compute the gradients of gradients, with respect to the operands and the first cotangent."""
        pull, times = self.pulled(problem), self.repeats(problem)
        gather = self.gathering(problem.tangents)

        def inner(places: Any) -> Any:
            gradients = pull(places[0], places[1])
            return gather(*[gradients[position] for position in range(len(problem.operands))])

        places = (problem.operands, problem.cotangent)
        return lambda: [gradient / times for gradient in self.make_vjp(inner, places)[0](1.0)[0]]


PROGRAMS: dict[str, type[Programs]] = {kind.name: kind for kind in (Wengert, Numpy, Torch, Autograd, Jax)}


@functools.cache
def programs(library: str) -> Programs:
    """Return the programs of a library."""
    return PROGRAMS[library]()
