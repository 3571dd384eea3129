"""The programs of `python -m benchmarks jit` that spend their time in products, routines and convolutions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.compiled_list import Array, Example, cross_entropy, filtered, long_short_term, loops_of, normals, rng

__all__ = ["NETWORKS"]

HEADS = 4


def relu(xp: Any, x: Any) -> Any:
    """Return what is positive of some numbers, and zeros."""
    return xp.where(x > 0.0, x, 0.0)


def softmax(xp: Any, x: Any) -> Any:
    """Return the shares of exponentials along the last axis."""
    shares = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return shares / xp.sum(shares, axis=-1, keepdims=True)


def perceptron(xp: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> Any:
    """Return the cross-entropy of a perceptron with two hidden layers."""
    hidden = xp.tanh(xp.tanh(x @ w1 + b1) @ w2 + b2)
    return cross_entropy(xp, hidden @ w3 + b3, y)


def normalised(xp: Any, x: Any, gain: Any) -> Any:
    """Return rows of mean 0 and variance 1, times a gain."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * gain


def transformer(xp: Any, gains: Any, attention: Any, inner: Any, outer: Any, x: Any) -> Any:
    """Return the mean square of what two blocks of a transformer give (Vaswani et al. 2017)."""
    batch, length, size = x.shape
    split, joined = (batch, length, HEADS, size // HEADS), (batch, length, size)
    for block in range(2):
        own = normalised(xp, x, gains[block, 0])
        query, key, value = (xp.transpose(xp.reshape(own @ attention[block, n], split), (0, 2, 1, 3)) for n in range(3))
        scores = softmax(xp, query @ xp.transpose(key, (0, 1, 3, 2)) / (size // HEADS) ** 0.5)
        x = x + xp.reshape(xp.transpose(scores @ value, (0, 2, 1, 3)), joined) @ attention[block, 3]
        x = x + relu(xp, normalised(xp, x, gains[block, 1]) @ inner[block]) @ outer[block]
    return xp.mean(x * x)


def drawn_transformer(size: int, length: int, batch: int) -> Callable[[], list[Array]]:
    """Return what draws the weights of a transformer, and rows for it."""
    scale = size**-0.5
    shapes = (2, 4, size, size), (2, size, 4 * size), (2, 4 * size, size)
    return lambda: [
        np.ones((2, 2, size)),
        *[scale * rng.normal(size=shape) for shape in shapes],
        rng.normal(size=(batch, length, size)),
    ]


def recurrent_batch(xp: Any, weights: Any, inward: Any, bias: Any, inputs: Any) -> Any:
    """Return the mean square of what a recurrent network gives for a batch of sequences."""

    def step(state: Any, rows: Any) -> Any:
        state = xp.tanh(state @ weights + rows @ inward + bias)
        return state, state

    start = xp.zeros((inputs.shape[1], len(bias)))
    return xp.mean(loops_of(xp).scan(step, start, inputs)[1] ** 2)


def gaussian_process(xp: Any, theta: Any, x: Any, y: Any) -> Any:
    """Return the negative log-likelihood of a Gaussian process with a squared exponential kernel."""
    length, height, noise = xp.exp(theta[0]), xp.exp(theta[1]), xp.exp(theta[2])
    squares = xp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)
    kernel = height**2 * xp.exp(-0.5 * squares / length**2) + (noise**2 + 1e-8) * xp.eye(len(y))
    factor = xp.linalg.cholesky(kernel)
    return 0.5 * y @ xp.linalg.solve(kernel, y) + xp.sum(xp.log(xp.diagonal(factor)))


def mixture(xp: Any, weights: Any, means: Any, factors: Any, x: Any) -> Any:
    """Return the log-likelihood of a mixture of Gaussians, but for constants."""
    moved = xp.einsum("nkd,kde->nke", x[:, None, :] - means, factors)
    terms = weights - 0.5 * xp.sum(moved * moved, axis=2)
    top = xp.max(terms, axis=1, keepdims=True)
    return xp.sum(top[:, 0] + xp.log(xp.sum(xp.exp(terms - top), axis=1)))


def product(_xp: Any, left: Any, right: Any) -> Any:
    """Return a product of matrices, of stacks of them, or with a vector."""
    return left @ right


def product_of(name: str, *shapes: tuple[int, ...]) -> Example:
    """Return a product, of matrices of these shapes."""
    return Example(f"product, {name}", product, normals(*shapes), "value", (), np.matmul)


def energy(xp: Any, p: Any) -> Any:
    """Return the energy of bodies that attract each other."""
    apart = p[:, None, :] - p[None, :, :]
    return xp.sum(1 / xp.sqrt(xp.sum(apart**2, axis=2) + xp.eye(len(p))))


def weighted_gram(xp: Any, x: Any, w: Any) -> Any:
    """Return the sum of squares of a Gram matrix of weighted rows."""
    return xp.sum(xp.einsum("ij,i,ik->jk", x, w, x) ** 2)


def solutions(xp: Any, matrices: Any, rights: Any) -> Any:
    """Return the sum of squares of the solutions of many systems."""
    return xp.sum(xp.linalg.solve(matrices, rights[:, :, None]) ** 2)


def systems(size: int) -> Callable[[], list[Array]]:
    """Return what draws 1,000 systems of a size."""
    return lambda: [rng.normal(size=(1_000, size, size)) + size * np.eye(size), rng.normal(size=(1_000, size))]


def convolved(xp: Any, x: Any, w: Any, stride: int = 1) -> Any:
    """Return the correlation of images with kernels of three by three, with one zero around them."""
    library = getattr(xp, "__name__", "torch")
    if library.startswith("jax"):
        return importlib.import_module("jax.lax").conv_general_dilated(x, w, (stride, stride), ((1, 1), (1, 1)))
    functions = xp if library == "torch" else importlib.import_module("wengert.nn.functional")
    return functions.conv2d(x, w, None, stride, 1)


def convolution(xp: Any, x: Any, w: Any) -> Any:
    """Return the sum of squares of images that are correlated with kernels."""
    found = convolved(xp, x, w)
    return xp.sum(found * found)


def convolutional(xp: Any, first: Any, second: Any, third: Any, weights: Any, x: Any, y: Any) -> Any:
    """Return the cross-entropy of a network of three convolutions and one layer."""
    hidden = relu(xp, convolved(xp, relu(xp, convolved(xp, x, first)), second, 2))
    hidden = relu(xp, convolved(xp, hidden, third, 2))
    return cross_entropy(xp, xp.mean(xp.mean(hidden, axis=3), axis=2) @ weights, y)


def scaled(scale: float, *shapes: Any) -> Callable[[], list[Array]]:
    """Return what draws arrays of these shapes from the normal distribution, times a number."""
    return lambda: [scale * rng.normal(size=shape) for shape in shapes]


def points(count: int) -> Callable[[], list[Array]]:
    """Return what draws points in three dimensions, numbers seen there, and where the search for a process begins."""
    return lambda: [np.array([0.1, 0.2, -1.0]), rng.normal(size=(count, 3)), rng.normal(size=count)]


def single(draw: Callable[[], list[Array]]) -> Callable[[], list[Array]]:
    """Return what draws the same in single precision."""
    return lambda: [x.astype(np.float32) for x in draw()]


def images_of_classes() -> list[Array]:
    """Draw the weights of a convolutional network, 64 images of 32 x 32, and their classes."""
    shapes = (16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (64, 10)
    weights = [0.1 * rng.normal(size=shape) for shape in shapes]
    return [*weights, rng.normal(size=(64, 3, 32, 32)), np.eye(10)[rng.integers(0, 10, 64)]]


def chain(xp: Any, w: Any, x: Any) -> Any:
    """Return a sum of twelve steps for each row behind a product."""
    z = x @ w
    for _ in range(4):
        z = xp.tanh(z) * 0.9 + xp.sin(z)
    return xp.sum(z)


def shares(xp: Any, weights: Any, start: Any) -> Any:
    """Return the sum of squares of shares that follow from each other for 500 rounds."""
    own = importlib.import_module("jax.nn" if xp.__name__.startswith("jax") else "wengert.nn.functional").softmax

    def step(state: Any, _row: Any) -> Any:
        state = own(weights @ state, -1)
        return state, state

    return xp.sum(loops_of(xp).scan(step, start, None, length=500)[1] ** 2)


def observed_states(size: int) -> Callable[[], list[Array]]:
    """Return what draws a system of as many states as observations, at each of 100 steps."""
    return lambda: [
        np.linalg.qr(rng.normal(size=(size, size)))[0] * 0.95,
        0.3 * np.eye(size),
        0.5 * np.eye(size),
        rng.normal(size=(size, size)),
        rng.normal(size=(100, size)),
    ]


def layers(batch: int, hidden: int) -> Callable[[], list[Array]]:
    """Return what draws a perceptron, and examples in ten classes."""
    shapes = (784, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden, 10), (10,)
    return lambda: [
        *[rng.normal(size=shape) * 0.05 for shape in shapes],
        rng.normal(size=(batch, 784)),
        np.eye(10)[rng.integers(0, 10, batch)],
    ]


LAYERS = ((32, 64), (128, 256), (512, 512))
TRANSFORMERS = ((128, 16, 1), (64, 64, 8))
MIXTURES = ((5, 2), (100, 2), (25, 10), (50, 20), (5, 32), (25, 32), (10, 64))
PRODUCTS = (
    *[(f"{n} x {n}", (n, n), (n, n)) for n in (16, 64, 256, 512, 1_024)],
    ("32 x 784 x 64", (32, 784), (784, 64)),
    ("16 x 128 x 512", (16, 128), (128, 512)),
    ("32 of 64 x 16 x 64", (32, 64, 16), (32, 16, 64)),
    *[(f"vector times matrix of {n:,}", (n,), (n, n)) for n in (256, 2_000)],
    *[(f"matrix of {n:,} times vector", (n, n), (n,)) for n in (256, 2_000)],
)
IMAGES = normals((64, 16, 32, 32), (32, 16, 3, 3))

NETWORKS = [
    *[
        Example(f"perceptron, batch {b}, {h} hidden", perceptron, layers(b, h), "gradient", (0, 1, 2, 3, 4, 5))
        for b, h in LAYERS
    ],
    *[
        Example(f"transformer, {d} x {t}, batch {b}", transformer, drawn_transformer(d, t, b), "gradient", (0, 1, 2, 3))
        for d, t, b in TRANSFORMERS
    ],
    Example(
        "RNN, 128 cells, batch 32",
        recurrent_batch,
        scaled(0.1, (128, 128), (16, 128), 128, (50, 32, 16)),
        "gradient",
        (0, 1, 2),
        loops=True,
    ),
    *[
        Example(
            f"LSTM, {n} cells, 50 steps",
            long_short_term,
            scaled(0.1, (4 * n, n + 3), 4 * n, (50, 3)),
            over=(0, 1),
            loops=True,
        )
        for n in (64, 128)
    ],
    *[
        Example(
            f"Gaussian process, {n} points",
            gaussian_process,
            points(n),
        )
        for n in (30, 100, 400)
    ],
    *[
        Example(
            f"mixture of {k} Gaussians, {d} dimensions",
            mixture,
            scaled(0.3, k, (k, d), (k, d, d), (1_000, d)),
            over=(0, 1, 2),
        )
        for k, d in MIXTURES
    ],
    *[product_of(*sizes) for sizes in PRODUCTS],
    Example("energy of 300 bodies", energy, normals((300, 3))),
    Example("weighted Gram matrix, 2,000 x 50", weighted_gram, normals((2_000, 50), 2_000), over=(0, 1)),
    *[Example(f"1,000 systems of {n} x {n}", solutions, systems(n), over=(0, 1)) for n in (10, 32)],
    Example("conv2d, 64 x 16 x 32 x 32", convolution, IMAGES, "gradient", (0, 1)),
    Example("conv2d, 64 x 16 x 32 x 32, float32", convolution, single(IMAGES), "gradient", (0, 1)),
    Example("convolutional network, float32", convolutional, single(images_of_classes), "gradient", (0, 1, 2, 3)),
    Example("chain behind a product, 20,000 x 50", chain, normals(50, (20_000, 50))),
    Example("Kalman filter, 34 states, 100 steps", filtered, observed_states(34), over=(0, 1, 2), loops=True),
    Example("scan with softmax, 500 rounds", shares, normals((10, 10), 10), loops=True),
]
