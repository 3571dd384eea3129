"""Layers of networks as functions: values by their definitions, gradients, lanes and traces."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.special

import wengert as wg
from wengert import random
from wengert.errors import ShapeError, UsageError
from wengert.nn import functional
from wengert.testing import check_grads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 6, 5))


def correlated(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    """Return what `conv2d` is by its definition."""
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    outs, ins = w.shape[0] // groups, w.shape[1]
    rows, columns = ((n - (k - 1) * dilation - 1) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:], strict=True))
    found = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for o, i, j, a, b in product(range(w.shape[0]), range(rows), range(columns), *map(range, w.shape[2:])):
        g = o // outs
        part = x[:, g * ins : (g + 1) * ins, i * stride + a * dilation, j * stride + b * dilation]
        found[:, o, i, j] += part @ w[o, :, a, b]
    return found


@pytest.mark.parametrize("options", [*product((1, 2), (0, 2), (1, 2), (1, 2))])
def test_convolutions_and_their_transposes(options: tuple[int, ...]) -> None:
    stride, padding, dilation, groups = options
    w = RNG.normal(size=(6, 4 // groups, 3, 2))
    want = correlated(X, w, *options)
    found = functional.conv2d(X, w, None, *options)
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(functional.conv2d(X[0], w, np.ones(6), *options), want[0] + 1, rtol=1e-12, atol=1e-12)
    ct = RNG.normal(size=want.shape)
    (pulled,) = wg.vjp(lambda x: functional.conv2d(x, w, None, *options), X)[1](ct)
    extra = tuple(
        n - (m - 1) * stride + 2 * padding - (k - 1) * dilation - 1
        for n, m, k in zip(X.shape[2:], want.shape[2:], w.shape[2:], strict=True)
    )
    back = functional.conv_transpose2d(ct, w, None, stride, padding, extra, groups, dilation)
    np.testing.assert_allclose(back, pulled, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.sum(want * ct), np.sum(pulled * X))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_of_any_rank(rank: int) -> None:
    conv, transposed = (getattr(functional, f"{name}{rank}d") for name in ("conv", "conv_transpose"))
    x, w = RNG.normal(size=(2, 2, *(4, 3, 3)[:rank])), RNG.normal(size=(2, 2, *(2, 3, 2)[:rank]))
    check_grads(lambda x, w: conv(x, w, stride=2, padding=1), (x, w), order=2)
    check_grads(lambda x, w: transposed(x, w, stride=2, padding=1), (x, w), order=2)
    assert conv(x, w, padding="same").shape == x.shape
    lanes = wg.vmap(lambda x, w: conv(x, w))(np.stack([x, -x]), np.stack([w, w + 1]))
    np.testing.assert_allclose(lanes, np.stack([conv(x, w).numpy(), conv(-x, w + 1).numpy()]), rtol=1e-12)
    for_each_image = wg.vmap(conv, in_axes=(0, None))(np.stack([x, -x]), w)
    np.testing.assert_allclose(for_each_image, np.stack([conv(x, w).numpy(), conv(-x, w).numpy()]), rtol=1e-12)
    for_each_kernel = wg.vmap(conv, in_axes=(None, 0))(x, np.stack([w, -w]))
    np.testing.assert_allclose(for_each_kernel, np.stack([conv(x, w).numpy(), conv(x, -w).numpy()]), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(conv)(x, w), conv(x, w), rtol=1e-12)


@pytest.mark.parametrize("options", [(2, None, 0), (3, 2, 1), ((2, 3), 1, 0)])
def test_pooling(options: Any) -> None:
    size, stride, padding = options
    rows, columns = (size, size) if isinstance(size, int) else size
    steps = (rows, columns) if stride is None else (stride, stride)
    for name, reduce, value in (("max_pool2d", np.max, -np.inf), ("avg_pool2d", np.mean, 0.0)):
        padded = np.pad(X, [(0, 0), (0, 0), (padding, padding), (padding, padding)], constant_values=value)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (rows, columns), (2, 3))
        want = reduce(windows[:, :, :: steps[0], :: steps[1]], axis=(-2, -1))
        pool = getattr(functional, name)
        np.testing.assert_allclose(pool(X, *options), want, rtol=1e-14)
        check_grads(lambda x, pool=pool: pool(x, *options), (X[0, :1],), order=2)
    inside = functional.avg_pool2d(np.ones((1, 4, 4)), 3, 1, 1, count_include_pad=False)
    np.testing.assert_allclose(inside, np.ones((1, 4, 4)))


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "sigmoid": scipy.special.expit,
    "silu": lambda x: x * scipy.special.expit(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "softmax": lambda x: scipy.special.softmax(x, axis=-1),
    "log_softmax": lambda x: scipy.special.log_softmax(x, axis=-1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    function = getattr(functional, name)
    np.testing.assert_allclose(function(X), ACTIVATIONS[name](X), rtol=1e-12)
    check_grads(function, (X[0, 0],), order=2)
    extreme = np.array([-800.0, 800.0])
    assert np.all(np.isfinite(wg.grad(lambda x: np.sum(function(x)))(extreme)))


def test_relu_has_the_derivative_zero_at_zero() -> None:
    assert wg.grad(lambda x: functional.relu(x))(0.0) == 0.0


def test_normalisation() -> None:
    found = functional.layer_norm(X, (6, 5), eps=0.0).numpy()
    np.testing.assert_allclose([found.mean(axis=(2, 3)), found.var(axis=(2, 3)) - 1], np.zeros((2, 2, 4)), atol=1e-12)
    weight = np.arange(4.0)
    found = functional.batch_norm(X, weight=weight, bias=weight, eps=0.0).numpy()
    np.testing.assert_allclose(found.mean(axis=(0, 2, 3)), weight, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=(0, 2, 3)), weight, atol=1e-12)
    given = functional.batch_norm(X, weight, weight + 1, eps=0.0)
    shape = (4, 1, 1)
    np.testing.assert_allclose(given, (X - weight.reshape(shape)) / np.sqrt(weight + 1).reshape(shape))


def test_losses() -> None:
    logits, classes = X[:, :, 0, 0], np.array([3, 1])
    logs = scipy.special.log_softmax(logits, axis=1)
    want = -logs[[0, 1], classes]
    np.testing.assert_allclose(functional.cross_entropy(logits, classes, "none"), want)
    np.testing.assert_allclose(functional.nll_loss(logs, classes, "sum"), want.sum())
    np.testing.assert_allclose(functional.cross_entropy(logits, functional.one_hot(classes, 4)), want.mean())
    smooth = functional.cross_entropy(logits, classes, label_smoothing=0.1)
    np.testing.assert_allclose(smooth, np.mean(0.9 * want - 0.1 * logs.mean(axis=1)))
    np.testing.assert_allclose(functional.mse_loss(logits, 0.0), np.mean(logits**2))
    images = functional.cross_entropy(X, np.zeros((2, 6, 5), int), "none")
    np.testing.assert_allclose(images, -scipy.special.log_softmax(X, axis=1)[:, 0])
    check_grads(lambda x: functional.cross_entropy(x, classes), (logits,), order=2)


def test_dropout_takes_a_key() -> None:
    key = random.key(0)
    found = functional.dropout(np.ones(1000), 0.25, key=key).numpy()
    assert set(np.unique(found)) == {0.0, 1 / 0.75}
    assert abs(found.mean() - 1) < 0.1
    np.testing.assert_array_equal(
        wg.jit(lambda x, key: functional.dropout(x, 0.25, key=key))(np.ones(1000), key), found
    )
    np.testing.assert_array_equal(functional.dropout(X, training=False, key=key), X)


def test_attention() -> None:
    q, k, v = RNG.normal(size=(2, 5, 4)), RNG.normal(size=(2, 5, 4)), RNG.normal(size=(2, 5, 3))
    scores = q @ k.swapaxes(1, 2) / 2
    causal = np.where(np.tri(5, dtype=bool), scores, -np.inf)
    attend = functional.scaled_dot_product_attention
    np.testing.assert_allclose(attend(q, k, v), scipy.special.softmax(scores, -1) @ v)
    np.testing.assert_allclose(attend(q, k, v, is_causal=True), scipy.special.softmax(causal, -1) @ v)
    np.testing.assert_allclose(attend(q, k, v, scores), scipy.special.softmax(2 * scores, -1) @ v)
    check_grads(lambda q, k, v: attend(q, k, v, is_causal=True), (q[0], k[0], v[0]), order=2)
    table = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(functional.embedding([[2], [0]], table), table[[[2], [0]]])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: functional.conv2d(X, np.ones((2, 3, 1, 1))),
            ShapeError,
            "conv2d: images with 4 channels and kernels of shape (2, 3, 1, 1) in 1 groups; channels that fit are "
            "needed. Correct the kernels.",
        ),
        (
            lambda: functional.conv1d(X, np.ones((2, 4, 1))),
            ShapeError,
            "conv1d: shape (2, 4, 6, 5); (batch, channels) or (channels,) and 1 axes of space are needed. Reshape it.",
        ),
        (
            lambda: functional.max_pool2d(X, (2, 2, 2)),
            UsageError,
            "max_pool2d: kernel_size=(2, 2, 2); one or 2 integers are needed. Correct it.",
        ),
        (
            lambda: functional.conv2d(X, np.ones((2, 4, 2, 2)), stride=2, padding="same"),
            UsageError,
            "conv2d: padding='same' with stride (2, 2); a stride of 1 is needed. Pass the padding as numbers.",
        ),
        (
            lambda: functional.mse_loss(X, X, "all"),
            UsageError,
            "mse_loss: reduction='all'; 'mean', 'sum' or 'none' is needed. Pass one of these.",
        ),
        (
            lambda: functional.gelu(X, "sigmoid"),
            UsageError,
            "gelu: approximate='sigmoid'; 'none' or 'tanh' is needed. Leave it out.",
        ),
        (
            lambda: functional.dropout(X, 1.0, key=random.key(0)),
            UsageError,
            "dropout: p=1.0; a probability less than 1 is needed. Correct it.",
        ),
        (
            lambda: functional.layer_norm(X, (4, 5)),
            ShapeError,
            "layer_norm: shape (2, 4, 6, 5) for normalized_shape=(4, 5); last axes of these lengths are needed. "
            "Correct one of them.",
        ),
        (
            lambda: functional.scaled_dot_product_attention(X, X, X, True, True),
            UsageError,
            "scaled_dot_product_attention: a mask and is_causal=True; one of them is needed. Leave one out.",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text
