"""The libraries compared, each behind the same few words: arrays, leaves, and one gradient of a scalar function."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert as wg
from benchmarks.namespaces import namespace

__all__ = ["LIBRARIES", "PEERS", "Library", "distribution", "installed"]

PEERS = ("torch", "autograd", "jax")
Loss = Callable[..., Any]


class Library:
    """Do in one library what the benchmarks need: make arrays and run a forward and backward pass."""

    name = ""

    def __init__(self, threads: int) -> None:
        """Load the library and let it use a number of threads."""

    @property
    def numpy(self) -> Any:
        """The library's functions under NumPy's names."""
        return namespace(self.name)

    def array(self, values: np.ndarray[Any, Any] | float, differentiated: bool) -> Any:
        """Return an array, as a leaf if it is differentiated."""
        raise NotImplementedError

    def data(self, values: np.ndarray[Any, Any]) -> Any:
        """Return an array that is not differentiated, as the library's users hold it."""
        return self.array(values, differentiated=False)

    def step(self, loss: Loss, differentiated: Sequence[Any], constants: Sequence[Any]) -> Callable[[], Any]:
        """Return a function that computes `loss(*differentiated, *constants)` and its gradients."""
        raise NotImplementedError

    def gradient(self, loss: Loss) -> Callable[..., Any]:
        """Return the function that computes the gradient of a function of an array."""
        raise NotImplementedError

    def finish(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does everything that a computation of arrays does, and waits for it."""
        return function


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

    name = "wengert"

    def array(self, values: np.ndarray[Any, Any] | float, differentiated: bool) -> Any:
        """Return a Tensor."""
        return wg.tensor(values, requires_grad=differentiated)

    def data(self, values: np.ndarray[Any, Any]) -> Any:
        """Return the ndarray itself."""
        return values

    def gradient(self, loss: Loss) -> Callable[..., Any]:
        """Return the gradient function: of ndarrays, as NumPy's users write it."""
        return wg.grad(loss)


class Torch(TapeLibrary):
    """PyTorch, eager."""

    name = "torch"

    def __init__(self, threads: int) -> None:
        self.torch = importlib.import_module("torch")
        self.torch.set_num_threads(threads)

    def array(self, values: np.ndarray[Any, Any] | float, differentiated: bool) -> Any:
        """Return a float64 tensor."""
        return self.torch.tensor(values, dtype=self.torch.float64, requires_grad=differentiated)

    def gradient(self, loss: Loss) -> Callable[..., Any]:
        """Return a function that makes a leaf and runs forward and backward."""

        def gradient(x: Any) -> Any:
            leaf = x.detach().requires_grad_()
            loss(leaf).backward()
            return leaf.grad

        return gradient


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

    def gradient(self, loss: Loss) -> Callable[..., Any]:
        """Return the library's gradient function."""
        return self.grad(loss)  # type: ignore[no-any-return]  # of a module without types


class Autograd(FunctionalLibrary):
    """HIPS autograd."""

    name = "autograd"

    def __init__(self, threads: int) -> None:
        self.grad = importlib.import_module("autograd").grad


class Jax(FunctionalLibrary):
    """JAX without jit, in double precision."""

    name = "jax"

    def __init__(self, threads: int) -> None:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        self.block = jax.block_until_ready
        self.transform, self.jit = jax.grad, jax.jit

    def grad(self, loss: Loss, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
        """Return the gradient function; it waits for its result."""
        return self.finish(self.transform(loss, argnums))

    def gradient(self, loss: Loss) -> Callable[..., Any]:
        """Return JAX's gradient function."""
        return self.transform(loss)  # type: ignore[no-any-return]  # of a module without types

    def finish(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that waits for its result."""
        return lambda *arguments: self.block(function(*arguments))


class JaxJit(Jax):
    """JAX with everything compiled beforehand."""

    def finish(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a compiled function that waits for its result."""
        return super().finish(self.jit(function))


LIBRARIES: dict[str, type[Library]] = {
    "wengert": Wengert,
    "torch": Torch,
    "autograd": Autograd,
    "jax": Jax,
    "jax-jit": JaxJit,
}


def distribution(peer: str) -> str:
    """Return the package that a peer is: `jax-jit` is JAX used in another way, `torch-compile` PyTorch."""
    if peer.startswith("wengert-"):  # another way to compute it
        return "wengert"
    return peer.removesuffix("-jit").removesuffix("-compile").removesuffix("-eager")


def installed(peers: Sequence[str]) -> list[str]:
    """Return those of the peers that are installed; C is if there is a compiler."""
    return [peer for peer in peers if is_installed(peer)]


def is_installed(peer: str) -> bool:
    """Tell whether a peer is there."""
    return bool(shutil.which("cc") if peer == "c" else importlib.util.find_spec(distribution(peer)))
