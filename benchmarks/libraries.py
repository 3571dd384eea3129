"""The libraries compared, each behind the same few words: arrays, leaves, and one gradient of a scalar function."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert as wg

__all__ = ["LIBRARIES", "PEERS", "Library", "distribution", "installed"]

PEERS = ("torch", "autograd", "jax")
Loss = Callable[..., Any]


class Library:
    """Do in one library what the benchmarks need: make arrays and run a forward and backward pass."""

    def __init__(self, threads: int) -> None:
        """Load the library and let it use a number of threads."""

    @property
    def numpy(self) -> Any:
        """The library's namespace of NumPy-like functions."""
        raise NotImplementedError

    def array(self, values: np.ndarray[Any, Any] | float, differentiated: bool) -> Any:
        """Return an array, as a leaf if it is differentiated."""
        raise NotImplementedError

    def step(self, loss: Loss, differentiated: Sequence[Any], constants: Sequence[Any]) -> Callable[[], Any]:
        """Return a function that computes `loss(*differentiated, *constants)` and its gradients."""
        raise NotImplementedError


class TapeLibrary(Library):
    """Be a library with leaves, `.backward()` and `.grad`."""

    def step(self, loss: Loss, differentiated: Sequence[Any], constants: Sequence[Any]) -> Callable[[], Any]:
        """Return a function that runs forward and backward and returns the gradients."""

        def run() -> Any:
            for leaf in differentiated:
                leaf.grad = None
            loss(*differentiated, *constants).backward()
            return [leaf.grad for leaf in differentiated]

        return run


class Wengert(TapeLibrary):
    """Wengert's tape."""

    @property
    def numpy(self) -> Any:
        """Its mirror of NumPy."""
        return wg.numpy

    def array(self, values: np.ndarray[Any, Any] | float, differentiated: bool) -> Any:
        """Return a Tensor."""
        return wg.tensor(values, requires_grad=differentiated)


class Torch(TapeLibrary):
    """PyTorch, eager."""

    def __init__(self, threads: int) -> None:
        self.torch = importlib.import_module("torch")
        self.torch.set_num_threads(threads)

    @property
    def numpy(self) -> Any:
        """Its functions, many of which have NumPy's names."""
        return self.torch

    def array(self, values: np.ndarray[Any, Any] | float, differentiated: bool) -> Any:
        """Return a float64 tensor."""
        return self.torch.tensor(values, dtype=self.torch.float64, requires_grad=differentiated)


class FunctionalLibrary(Library):
    """Be a library that differentiates functions; constants are arguments without gradient."""

    grad: Callable[..., Any]

    def array(self, values: np.ndarray[Any, Any] | float, differentiated: bool) -> Any:
        """Return an array; what is differentiated is told by position."""
        return self.numpy.array(values)

    def step(self, loss: Loss, differentiated: Sequence[Any], constants: Sequence[Any]) -> Callable[[], Any]:
        """Return a function that computes the gradients."""
        gradient = self.grad(loss, tuple(range(len(differentiated))))
        arguments = (*differentiated, *constants)
        return lambda: gradient(*arguments)


class Autograd(FunctionalLibrary):
    """HIPS autograd."""

    def __init__(self, threads: int) -> None:
        self.grad = importlib.import_module("autograd").grad

    @property
    def numpy(self) -> Any:
        """Its wrapped NumPy."""
        return importlib.import_module("autograd.numpy")


class Jax(FunctionalLibrary):
    """JAX without jit, in double precision."""

    def __init__(self, threads: int) -> None:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        self.block = jax.block_until_ready
        self.transform = jax.grad

    def grad(self, loss: Loss, argnums: Sequence[int]) -> Callable[..., Any]:
        """Return the gradient function; it waits for its result."""
        gradient = self.transform(loss, argnums)
        return lambda *args: self.block(gradient(*args))

    @property
    def numpy(self) -> Any:
        """Its NumPy-like namespace."""
        return importlib.import_module("jax.numpy")


LIBRARIES: dict[str, type[Library]] = {"wengert": Wengert, "torch": Torch, "autograd": Autograd, "jax": Jax}


def distribution(peer: str) -> str:
    """Return the package that a peer is: `jax-jit` is JAX used in another way."""
    return peer.removesuffix("-jit")


def installed(peers: Sequence[str]) -> list[str]:
    """Return those of the peers that are installed."""
    return [peer for peer in peers if importlib.util.find_spec(distribution(peer)) is not None]
