"""The routines that `python -m benchmarks routines` differentiates: larger functions than those of `operation_list`.

A routine is a function for each library that has it, at operands of some shapes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.namespaces import namespace

__all__ = ["ROUTINES", "Routine"]

Array = np.ndarray[Any, Any]
Load = Callable[[], Callable[..., Any]]
"""Imports what is needed and returns the function."""


@dataclass(frozen=True)
class Routine:
    """Hold one routine at one size.

    Attributes:
        name: what is printed.
        functions: for each library that has it, what loads the function.
        operands: in double precision, all of them differentiated.
        repeats: the number of calls in one program.
        symmetric: whether operands are, of which some libraries take one triangle and others the mean of both.
    """

    name: str
    functions: Mapping[str, Load]
    operands: Sequence[Array]
    repeats: int
    symmetric: bool = False


LIBRARIES = ("wengert", "torch", "autograd")


def everywhere(function: Callable[..., Any], libraries: Sequence[str] = LIBRARIES) -> dict[str, Load]:
    """Return a function of a namespace and operands for the libraries that have NumPy's names."""

    def load(library: str) -> Load:
        return lambda: lambda *operands: function(namespace(library), *operands)

    return {library: load(library) for library in libraries}


def found(module: str, name: str) -> Load:
    """Return what loads a function of a module."""
    return lambda: getattr(importlib.import_module(module), name)


def normal_of_torch() -> Callable[..., Any]:
    """Return the log-density of the normal distribution without checks of arguments."""
    distribution = importlib.import_module("torch.distributions").Normal
    return lambda x, loc, scale: distribution(loc, scale, validate_args=False).log_prob(x)


def softmax_of(module: str, name: str) -> Load:
    """Return what loads a softmax of PyTorch, for the last axis."""

    def loaded() -> Callable[..., Any]:
        function = getattr(importlib.import_module(module), name)
        return lambda x: function(x, -1)

    return loaded


def over_rows(load: Load, axis: str = "axis") -> Load:
    """Return what loads a reduction of the last axis."""

    def loaded() -> Callable[..., Any]:
        function, options = load(), {axis: -1}
        return lambda x: function(x, **options)

    return loaded


def convolution(library: str, stride: int, padding: int) -> Load:
    """Return what loads a convolution of images."""
    module = {"wengert": "wengert.nn.functional", "torch": "torch.nn.functional"}[library]

    def loaded() -> Callable[..., Any]:
        conv2d = importlib.import_module(module).conv2d
        return lambda x, w, b: conv2d(x, w, b, stride=stride, padding=padding)

    return loaded


rng = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    """Return normally distributed numbers."""
    return np.asarray(rng.normal(size=shape))


def definite(n: int) -> Array:
    """Return a positive definite matrix."""
    root = normal(n, n)
    return np.asarray(root @ root.T / n + np.eye(n))


def spread(n: int) -> Array:
    """Return a matrix whose singular values differ, in single precision, too."""
    left, right = (np.linalg.qr(normal(n, n))[0] for _ in range(2))
    return np.asarray((left * np.arange(1, n + 1)) @ right)


def symmetric(n: int) -> Array:
    """Return a symmetric matrix whose eigenvalues differ."""
    vectors = np.linalg.qr(normal(n, n))[0]
    return np.asarray((vectors * np.arange(1, n + 1)) @ vectors.T)


CHOLESKY = everywhere(lambda xp, a: xp.linalg.cholesky(a))
EIGH = everywhere(lambda xp, a: xp.linalg.eigh(a))
SVD = everywhere(lambda xp, a: xp.linalg.svd(a, full_matrices=False))
QR = everywhere(lambda xp, a: xp.linalg.qr(a), ("wengert", "torch"))
FFT = everywhere(lambda xp, x: xp.fft.fft(x))
FFT2 = everywhere(lambda xp, x: xp.fft.fft2(x))
RFFT = everywhere(lambda xp, x: xp.fft.rfft(x))
SPECIAL = {"wengert": "wengert.scipy.special", "torch": "torch", "autograd": "autograd.scipy.special"}
LOGSUMEXP = {
    library: over_rows(found(module, "logsumexp"), "dim" if library == "torch" else "axis")
    for library, module in SPECIAL.items()
}
SOFTMAX = {library: softmax_of(f"{library}.nn.functional", "softmax") for library in ("wengert", "torch")}
LOG_SOFTMAX = {library: softmax_of(f"{library}.nn.functional", "log_softmax") for library in ("wengert", "torch")}
LOGPDF = {
    "wengert": lambda: importlib.import_module("wengert.scipy.stats").norm.logpdf,
    "torch": normal_of_torch,
    "autograd": found("autograd.scipy.stats.norm", "logpdf"),
}


def square(
    name: str, functions: Mapping[str, Load], make: Callable[[int], Array], symmetric: bool = False
) -> list[Routine]:
    """Return a routine on square matrices of several sizes."""
    sizes = (3, 16, 64, 256)
    return [Routine(f"{name}, {n} x {n}", functions, [make(n)], 20 if n < 50 else 1, symmetric) for n in sizes]


def rows(name: str, functions: Mapping[str, Load]) -> list[Routine]:
    """Return a reduction or normalisation of rows."""
    return [
        Routine(f"{name}, {n} x {m}", functions, [normal(n, m)], 20 if n < 500 else 1)
        for n, m in ((1, 10), (100, 10), (1000, 100))
    ]


def lines(name: str, functions: Mapping[str, Load], lengths: Sequence[int]) -> list[Routine]:
    """Return a transform of vectors."""
    return [Routine(f"{name}, {n}", functions, [normal(n)], 20 if n < 10_000 else 1) for n in lengths]


def images(name: str, x: Array, w: Array, stride: int = 1, padding: int = 0) -> Routine:
    """Return a convolution."""
    functions = {library: convolution(library, stride, padding) for library in ("wengert", "torch")}
    return Routine(f"conv2d, {name}", functions, [x, w, normal(len(w))], 20 if x.size < 5_000 else 1)


ROUTINES = [
    *square("cholesky", CHOLESKY, definite, symmetric=True),
    *square("eigh", EIGH, symmetric, symmetric=True),
    *square("svd", SVD, spread),
    Routine("svd, 100 x 20", SVD, [normal(100, 20)], 1),
    *square("qr", QR, lambda n: normal(n, n)),
    Routine("qr, 100 x 20", QR, [normal(100, 20)], 1),
    *lines("fft", FFT, (16, 1_000, 1 << 16)),
    *lines("rfft", RFFT, (16, 1_000, 1 << 16)),
    *square("fft2", FFT2, lambda n: normal(n, n)),
    *rows("logsumexp", LOGSUMEXP),
    *rows("softmax", SOFTMAX),
    *rows("log_softmax", LOG_SOFTMAX),
    *[
        Routine(f"normal log-density, {n}", LOGPDF, [normal(n), normal(n), np.exp(normal(n))], 20 if n < 10_000 else 1)
        for n in (10, 1_000, 100_000)
    ],
    images("1 image of 5 x 5, 1 kernel of 3 x 3", normal(1, 1, 5, 5), normal(1, 1, 3, 3)),
    images("2 of 3 x 8 x 8, 4 of 3 x 3, padded", normal(2, 3, 8, 8), normal(4, 3, 3, 3), padding=1),
    images("32 of 28 x 28, 8 of 5 x 5", normal(32, 1, 28, 28), normal(8, 1, 5, 5)),
    images("32 of 8 x 12 x 12, 16 of 5 x 5", normal(32, 8, 12, 12), normal(16, 8, 5, 5)),
    images("8 of 16 x 28 x 28, 32 of 3 x 3, padded", normal(8, 16, 28, 28), normal(32, 16, 3, 3), padding=1),
    images("4 of 3 x 64 x 64, 16 of 5 x 5, stride 2", normal(4, 3, 64, 64), normal(16, 3, 5, 5), stride=2, padding=2),
    images("4 of 64 x 32 x 32, 64 of 3 x 3, padded", normal(4, 64, 32, 32), normal(64, 64, 3, 3), padding=1),
    images("8 of 64 x 16 x 16, 128 of 1 x 1", normal(8, 64, 16, 16), normal(128, 64, 1, 1)),
    images("1 of 3 x 224 x 224, 8 of 3 x 3, padded", normal(1, 3, 224, 224), normal(8, 3, 3, 3), padding=1),
]
"""All of them; names are unique."""
