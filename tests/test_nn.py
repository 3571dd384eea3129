"""Layers of networks as functions: values by their definitions, gradients, lanes and traces."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.special

import wengert as wg
from tests.cases import together
from tests.derivatives import require_derivatives
from wengert import random
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.nn import functional
from wengert.primitives.signals import convolution, sliding_products
from wengert.scipy import special
from wengert.support.hints import hints
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


@together("options", [*product((1, 2), (0, 2), (1, 2), (1, 2))])
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


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_with_a_number_for_each_channel(groups: int) -> None:
    w, bias = RNG.normal(size=(4, 4 // groups, 2, 3)), RNG.normal(size=4)

    def conv(x: Any, w: Any, bias: Any) -> Any:
        return functional.conv2d(x, w, bias, 2, 1, 1, groups)

    def transposed(x: Any, w: Any, bias: Any) -> Any:
        return functional.conv_transpose2d(x, w, bias, 2, 1, 0, groups)

    turned = np.ascontiguousarray(np.swapaxes(w.reshape(groups, -1, *w.shape[1:]), 1, 2)).reshape(4, -1, 2, 3)
    for f, kernels in ((conv, w), (transposed, turned)):
        plain = f(X, kernels, None)
        np.testing.assert_allclose(f(X, kernels, bias), plain + bias[:, None, None], rtol=1e-12)
        check_grads(f, (X, kernels, bias), order=2)
        check_grads(lambda bias: f(X, kernels, bias) ** 2, (bias,), order=2)  # noqa: B023 - called here
        check_grads(lambda x: f(x, kernels, bias) ** 2, (X,), order=2)  # noqa: B023 - called here
        graph = wg.jit(f)
        np.testing.assert_allclose(graph(X, kernels, bias), f(X, kernels, bias), rtol=1e-12, atol=1e-12)
        stacks = np.stack([X, -X]), np.stack([kernels, kernels + 1]), np.stack([bias, bias * 3])
        for axes in product((0, None), repeat=3):
            if axes != (None, None, None):
                operands = [many if axis == 0 else many[0] for many, axis in zip(stacks, axes, strict=True)]
                lanes = wg.vmap(f, in_axes=axes)(*operands)
                for i in range(2):
                    own = [x[i] if axis == 0 else x for x, axis in zip(operands, axes, strict=True)]
                    np.testing.assert_allclose(lanes[i], f(*own), rtol=1e-12, atol=1e-12)


def test_one_number_for_all_channels() -> None:
    w = RNG.normal(size=(3, 4, 2, 2))
    value, gradient = wg.value_and_grad(lambda bias: np.sum(functional.conv2d(X, w, bias)))(0.5)
    np.testing.assert_allclose(value, np.sum(functional.conv2d(X, w).numpy() + 0.5))
    assert gradient == 2 * 3 * 5 * 4


@pytest.mark.parametrize("count", [1, 2])
def test_windows_of_small_images_do_not_reach_around_their_ends(count: int) -> None:
    """Runs of windows cross the ends of rows; what they give there is left out, and results are contiguous."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(count, 3, 8, 8)), rng.normal(size=(4, 3, 3, 3))
    x[:, 0, 5, -1] = np.inf
    found = functional.conv2d(x, w, padding=1).numpy()
    assert np.isfinite(found[..., 7, 0]).all()  # an end of the row that follows
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(correlated(x, w, 1, 1, 1, 1)))
    assert found.flags.c_contiguous
    assert functional.conv2d(x, w, np.zeros(4), padding=1).numpy().flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normalising_many_rows_subtracts_as_numpy_does(dtype: Any) -> None:
    x = np.random.default_rng(4).normal(size=(2, 30, 100)).astype(dtype)
    shifted = x - x.max(-1, keepdims=True)
    sums = np.exp(shifted).reshape(-1, 100).dot(np.ones(100, dtype)).reshape(2, 30, 1)
    np.testing.assert_array_equal(functional.log_softmax(x).numpy(), shifted - np.log(sums))
    np.testing.assert_array_equal(special.log_softmax(x, axis=-1).numpy(), scipy.special.log_softmax(x, axis=-1))
    across = np.swapaxes(scipy.special.log_softmax(np.swapaxes(x, 1, 2), axis=-1), 1, 2)
    np.testing.assert_allclose(functional.log_softmax(x, axis=1).numpy(), across, rtol=1e-5)


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
    "relu6": lambda x: np.clip(x, 0, 6),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "tanh": np.tanh,
    "softsign": lambda x: x / (1 + abs(x)),
    "logsigmoid": scipy.special.log_expit,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softmax": lambda x: scipy.special.softmax(x, axis=-1),
    "log_softmax": lambda x: scipy.special.log_softmax(x, axis=-1),
}


@together("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    function = getattr(functional, name)
    np.testing.assert_allclose(function(X), ACTIVATIONS[name](X), rtol=1e-12)
    check_grads(function, (X[0, 0],), order=2)
    extreme = np.array([-800.0, 800.0])
    assert np.all(np.isfinite(wg.grad(lambda x: np.sum(function(x)))(extreme)))
    with np.errstate(invalid="ignore"):  # of which NumPy's logaddexp warns
        assert np.all(np.isnan(function(np.array([np.nan, np.nan]))))


def test_elu_and_selu_have_the_derivatives_of_the_exponential_at_zero() -> None:
    for f, at_zero in (
        (functional.elu, 1.0),
        (lambda x: functional.elu(x, 0.5), 0.5),
        (functional.selu, 1.0507009873554805 * 1.6732632423543772),
    ):
        slope: Any = wg.elementwise_grad(f)
        for x in (np.zeros(2), np.array([-0.0, 0.0])):
            for first in (slope, wg.jit(slope), wg.vmap(wg.grad(f)), lambda x, f=f: wg.jvp(f, (x,), (np.ones(2),))[1]):
                np.testing.assert_array_equal(first(x), at_zero)
            np.testing.assert_array_equal(wg.elementwise_grad(slope)(x), at_zero)
    assert functional.elu(np.array([1e4, -np.inf, np.nan])).tolist()[:2] == [1e4, -1.0]


def test_relu_has_the_derivative_zero_at_zero() -> None:
    assert wg.grad(lambda x: functional.relu(x))(0.0) == 0.0
    assert wg.grad(lambda x: functional.relu6(x))(6.0) == 0.0
    np.testing.assert_allclose(functional.glu(X, 1), X[:, :2] * scipy.special.expit(X[:, 2:]))


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


def test_normalisation_of_groups_and_by_roots_of_squares() -> None:
    groups = X.reshape(2, 2, -1)
    weight = np.arange(1.0, 5.0)
    want = (groups - groups.mean(axis=2, keepdims=True)) / groups.std(axis=2, keepdims=True)
    found = functional.group_norm(X, 2, weight, weight, eps=0.0)
    by_channel = weight.reshape(4, 1, 1)
    np.testing.assert_allclose(found, want.reshape(X.shape) * by_channel + by_channel)
    np.testing.assert_allclose(functional.group_norm(X, 1, eps=0.0), functional.layer_norm(X, X.shape[1:], eps=0.0))
    squares = np.mean(X**2, axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(functional.rms_norm(X, (6, 5), 2.0, eps=0.5), 2 * X / np.sqrt(squares + 0.5))
    check_grads(lambda x, w: functional.group_norm(x, 2, w, w), (X[:, :, :2, 0], weight), order=2)


def test_linear_layers_and_vectors() -> None:
    x, w, b = X[0, 0], RNG.normal(size=(3, 5)), RNG.normal(size=3)
    np.testing.assert_allclose(functional.linear(x, w, b), x @ w.T + b)
    np.testing.assert_allclose(functional.normalize(x, 1.0, axis=0), x / np.sum(abs(x), axis=0))
    cosines = np.sum(x * X[1, 0], 1) / np.linalg.norm(x, axis=1) / np.linalg.norm(X[1, 0], axis=1)
    np.testing.assert_allclose(functional.cosine_similarity(x, X[1, 0]), cosines)
    np.testing.assert_allclose(functional.pairwise_distance(x, 0.0, eps=0.0), np.linalg.norm(x, axis=1))
    check_grads(functional.cosine_similarity, (x, X[1, 0]), order=2)
    assert np.all(np.isfinite(wg.grad(lambda x: np.sum(functional.normalize(x)))(np.zeros((1, 3)))))


def test_losses_of_differences_and_of_two_classes() -> None:
    x, y = X[0, 0], X[1, 0]
    np.testing.assert_allclose(functional.l1_loss(x, y), np.mean(abs(x - y)))
    np.testing.assert_allclose(functional.huber_loss(x, y, "sum", 0.5), np.sum(scipy.special.huber(0.5, x - y)))
    np.testing.assert_allclose(functional.smooth_l1_loss(x, y, beta=0.5), np.mean(scipy.special.huber(0.5, x - y)) * 2)
    assert functional.smooth_l1_loss(x, y, beta=0.0).item() == functional.l1_loss(x, y).item()
    p, wanted = scipy.special.expit(x), (y > 0) * 1.0
    want = -np.where(y > 0, np.log(p), np.log1p(-p))
    np.testing.assert_allclose(functional.binary_cross_entropy(p, wanted, "none"), want)
    np.testing.assert_allclose(functional.binary_cross_entropy_with_logits(x, wanted, "none"), want)
    weighted = functional.binary_cross_entropy_with_logits(x, wanted, "none", pos_weight=3.0)
    np.testing.assert_allclose(weighted, want * np.where(y > 0, 3.0, 1.0))
    certain = functional.binary_cross_entropy(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0]), "none")
    assert certain.tolist() == [100.0, 0.0, 100.0]
    assert np.all(np.isfinite(wg.grad(functional.binary_cross_entropy)(np.array([0.0, 1.0]), np.array([0.0, 1.0]))))
    single = np.float32([0.5])
    assert functional.binary_cross_entropy(single, single).dtype == np.float32
    logs, target = scipy.special.log_softmax(x, axis=1), scipy.special.softmax(y, axis=1)
    divergence = np.sum(scipy.special.rel_entr(target, np.exp(logs)))
    np.testing.assert_allclose(functional.kl_div(logs, target, "batchmean"), divergence / len(x))
    np.testing.assert_allclose(functional.kl_div(logs, np.log(target), "sum", log_target=True), divergence)
    check_grads(functional.binary_cross_entropy, (p, scipy.special.expit(y)), order=2)
    check_grads(lambda x, t: functional.kl_div(x, t), (logs, target), order=2)


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


def test_classes_that_count_differently_or_not_at_all() -> None:
    logits, classes, weight = (
        X[:, :, 0],
        np.array([[3, 1, -100, 0, 3], [2, -100, 1, 1, 0]]),
        np.array([1.0, 2.0, 0.5, 3.0]),
    )
    logs = np.moveaxis(scipy.special.log_softmax(logits, axis=1), 1, -1)
    seen = classes >= 0
    counts = weight[classes[seen]]
    want = -logs[seen][np.arange(8), classes[seen]] * counts
    found = functional.cross_entropy(logits, classes, "none", weight=weight, ignore_index=-100).numpy()
    np.testing.assert_allclose(found[seen], want)
    np.testing.assert_array_equal(found[~seen], 0.0)
    options: Any = {"weight": weight, "ignore_index": -100}
    np.testing.assert_allclose(functional.cross_entropy(logits, classes, **options), want.sum() / counts.sum())
    by_class = np.moveaxis(logs, -1, 1)
    np.testing.assert_allclose(functional.nll_loss(by_class, classes, **options), want.sum() / counts.sum())
    smooth = functional.cross_entropy(logits, classes, "sum", 0.1, **options)
    np.testing.assert_allclose(smooth, np.sum(0.9 * want) - 0.1 * np.sum(np.mean(logs[seen] * weight, axis=-1)))
    shares = scipy.special.softmax(logits[::-1], axis=1)
    found = functional.cross_entropy(logits, shares, weight=weight)
    np.testing.assert_allclose(found, -np.mean(np.sum(logs * np.moveaxis(shares, 1, -1) * weight, axis=-1)))
    check_grads(lambda x: functional.cross_entropy(x, classes, **options), (logits,), order=2)
    for loss, of in ((functional.cross_entropy, logits), (functional.nll_loss, by_class)):
        one = loss(of, classes, "sum", weight=2.0, ignore_index=-100)  # for all classes alike
        np.testing.assert_allclose(one, 2.0 * loss(of, classes, "sum", ignore_index=-100))


def test_names_of_pytorch_say_what_is_written_here() -> None:
    with pytest.raises(AttributeError) as error:
        functional.instance_norm  # type: ignore[attr-defined]  # noqa: B018 - it raises
    text = "module 'wengert.nn.functional' has no attribute 'instance_norm'; write group_norm(x, x.shape[1])"
    assert str(error.value) == text
    written = functional.group_norm(X, X.shape[1])
    np.testing.assert_allclose(written.numpy().mean(axis=(2, 3)), np.zeros((2, 4)), atol=1e-12)
    with pytest.raises(AttributeError, match=r"^module 'wengert\.nn\.functional' has no attribute 'nothing'$"):
        functional.nothing  # type: ignore[attr-defined]  # noqa: B018 - it raises


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


@together(
    "call, error, text",
    [
        (
            lambda: functional.conv2d(X, np.ones((2, 3, 1, 1))),
            ShapeError,
            "conv2d: images with 4 channels and kernels of shape (2, 3, 1, 1) in 1 groups; channels that fit are "
            "needed. Correct the kernels.",
        ),
        (
            lambda: functional.conv2d(X, np.ones((2, 4, 1))),
            ShapeError,
            "conv2d: kernels of shape (2, 4, 1); two axes of channels and 2 of space are needed. Reshape them.",
        ),
        (
            lambda: functional.conv1d(X, np.ones((2, 4, 1))),
            ShapeError,
            "conv1d: shape (2, 4, 6, 5); (batch, channels) or (channels,) and 1 axes of space are needed. Reshape it.",
        ),
        (
            lambda: functional.max_pool2d(X, (2, 2, 2)),
            UsageError,
            "max_pool2d: kernel_size=(2, 2, 2); one or 2 integers, 1 or more, are needed. Correct it.",
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
            lambda: functional.rms_norm(X, 4),
            ShapeError,
            "rms_norm: shape (2, 4, 6, 5) for normalized_shape=(4,); last axes of these lengths are needed. "
            "Correct one of them.",
        ),
        (
            lambda: functional.group_norm(X, 3),
            ShapeError,
            "group_norm: shape (2, 4, 6, 5) for 3 groups; channels, the second axis, that make them are needed. "
            "Correct it.",
        ),
        (
            lambda: functional.scaled_dot_product_attention(X, X, X, True, True),
            UsageError,
            "scaled_dot_product_attention: a mask and is_causal=True; one of them is needed. Leave one out.",
        ),
        (
            lambda: functional.scaled_dot_product_attention(X, X, X, None, 0.0, True),  # as PyTorch has them
            UsageError,
            "scaled_dot_product_attention: is_causal=0.0 and scale=True; truth and a number are needed; there is no "
            "dropout_p before them. Write is_causal= and scale= by their names.",
        ),
        (
            lambda: functional.cross_entropy(np.ones((4, 3)), np.zeros(4, int), np.ones(3)),  # type: ignore[arg-type]
            UsageError,
            "cross_entropy: reduction=a value of type ndarray; 'mean', 'sum' or 'none' is needed. Write weight=, if "
            "that is meant.",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


PAIRED = [
    functional.mse_loss,
    functional.l1_loss,
    functional.huber_loss,
    functional.smooth_l1_loss,
    functional.binary_cross_entropy,
    functional.binary_cross_entropy_with_logits,
    functional.kl_div,
]


@pytest.mark.parametrize("loss", PAIRED)
def test_a_column_beside_a_row_is_no_pair(loss: Any) -> None:
    column, row = np.full((3, 1), 0.25), np.full(3, 0.5)
    for given, target in ((column, row), (row, column), (row, np.ones(4))):
        text = f"{loss.__name__}: an input of shape {given.shape} and a target of shape {target.shape}; one shape"
        for f in (loss, wg.grad(loss), wg.jit(loss)):
            with pytest.raises(ShapeError, match=re.escape(text)):
                f(given, target)
    for target in (0.5, row[0], np.full((1, 3), 0.5), np.full((2, 3), 0.5), row):
        np.testing.assert_array_equal(
            loss(row, target, "none"), loss(row, np.broadcast_to(target, np.shape(target) or 3), "none")
        )
    assert loss(column, row[None], "none").shape == (3, 3)


def test_targets_are_classes_or_probabilities() -> None:
    logits, text = RNG.normal(size=(3, 3)), "; integers are classes, other numbers the probabilities of all classes"
    for target in (np.arange(3.0), np.ones((3, 1)), np.ones((3, 4))):
        with pytest.raises(
            ShapeError, match=re.escape(f"cross_entropy: a target of shape {target.shape}") + f".*{text}"
        ):
            functional.cross_entropy(logits, target)
    for loss in (functional.cross_entropy, functional.nll_loss):
        for f in (loss, wg.jit(loss)):
            with pytest.raises(
                ShapeError, match=r"a target of shape \(3, 1\) and dtype int64; classes of shape \(3,\)"
            ):
                f(logits, np.ones((3, 1), int))
            for target in (np.array([0, -1, 2]), np.array([0, 1, -3], np.int8), np.array([0, 1, 3], np.uint8)):
                told = "classes from 0 to 2 are needed" if f is loss else "out of bounds for axis 1 with size 3"
                with pytest.raises(IndexError, match=told):
                    f(logits, target)
        found = loss(logits, np.array([0, -1, 2]), ignore_index=-1)
        np.testing.assert_array_equal(found, loss(logits[[0, 2]], np.array([0, 2], np.int8)))


@pytest.mark.parametrize("f", [functional.max_pool2d, functional.avg_pool2d])
def test_windows_fit_into_images(f: Any) -> None:
    image, kernel = np.ones((1, 2, 2)), np.ones((1, 1, 3, 3))
    text = re.escape("windows of (3, 3) in images of (2, 2), with what is around them; windows that fit are needed")
    for call in (lambda: f(image, 3), lambda: f(image, 3, 1), lambda: functional.conv2d(image, kernel)):
        with pytest.raises(ShapeError, match=text):
            call()
    with pytest.raises(ShapeError, match=r"windows of \(5, 5\) in images of \(4, 4\)"):
        functional.conv2d(image, kernel, padding=1, dilation=2)
    assert functional.conv2d(image, kernel, padding=(1, 1)).shape == (1, 2, 2)
    assert f(image, 2).shape == f(image, 3, 3, padding=1).shape == (1, 1, 1)


# At other places, and in other sizes

IMAGES = RNG.normal(size=(2, 3, 4, 5))
GRID = RNG.uniform(-2.3, 2.3, (2, 6, 7, 2))
SOLIDS = RNG.normal(size=(2, 3, 4, 5, 3))
BEYOND = {
    ("zeros", False): "grid-constant",
    ("zeros", True): "grid-constant",
    ("border", False): "nearest",
    ("border", True): "nearest",
    ("reflection", True): "mirror",
    ("reflection", False): "reflect",
}


def by_scipy(x: Any, grid: Any, order: int, padding_mode: str, align_corners: bool) -> Any:
    """Return what `grid_sample` does as SciPy computes it."""
    lengths = np.array(x.shape[:1:-1])
    places = (grid + 1) / 2 * (lengths - 1) if align_corners else ((grid + 1) * lengths - 1) / 2
    rows = [np.moveaxis(place, -1, 0)[::-1] for place in places]
    mode = BEYOND[padding_mode, align_corners]
    return np.array(
        [
            [scipy.ndimage.map_coordinates(channel, row, order=order, mode=mode) for channel in image]
            for image, row in zip(x, rows, strict=True)
        ]
    )


@together("padding_mode, align_corners", list(BEYOND))
def test_images_at_places_are_scipys(padding_mode: str, align_corners: bool) -> None:
    for x, rank in ((IMAGES, 2), (SOLIDS, 3)):
        grid = GRID if rank == 2 else RNG.uniform(-1.3, 1.3, (2, 2, 6, 3, 3))
        for mode, order in (("bilinear", 1), ("nearest", 0)):
            found = functional.grid_sample(x, grid, mode, padding_mode, align_corners)
            want = by_scipy(x, grid, order, padding_mode, align_corners)
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


@together("align_corners", [False, True])
def test_cubic_images_at_places(align_corners: bool) -> None:
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    grid = np.stack([columns, rows], -1)[None]
    grid = grid if align_corners else grid * (1 - 1 / np.array([5, 4]))
    for padding_mode in ("zeros", "border", "reflection"):  # at the elements
        found = functional.grid_sample(IMAGES[:1], grid, "bicubic", padding_mode, align_corners)
        np.testing.assert_allclose(found, IMAGES[:1], rtol=1e-12, atol=1e-12)
    sizes = functional.interpolate(IMAGES, (7, 9), mode="bicubic", align_corners=align_corners)
    rows, columns = (np.linspace(-1, 1, n) if align_corners else (np.arange(n) + 0.5) * 2 / n - 1 for n in (7, 9))
    grid = np.stack(np.meshgrid(columns, rows), -1)
    found = functional.grid_sample(IMAGES, np.stack([grid, grid]), "bicubic", "border", align_corners)
    np.testing.assert_allclose(sizes, found, rtol=1e-12, atol=1e-12)
    at = np.array([[[[(1 + 0.25) / 1.5 - 1, 0.0]]]])
    for i, weight in enumerate((-0.10546875, 0.87890625, 0.26171875, -0.03515625)):  # of the kernel of slope -3/4
        unit = 1.0 * (np.arange(4) == i).reshape(1, 1, 1, 4)
        np.testing.assert_allclose(functional.grid_sample(unit, at, "bicubic", "border", True), weight, atol=1e-15)


def test_images_in_other_sizes() -> None:
    x = np.array([[[1.0, 3.0, 2.0]]])
    steps = np.interp((np.arange(5) + 0.5) / 1.7 - 0.5, np.arange(3), x[0, 0]).tolist()
    calls: list[tuple[dict[str, Any], list[float]]] = [
        ({"size": 5}, [1, 1, 3, 3, 2]),
        ({"size": 5, "mode": "nearest-exact"}, [1, 1, 3, 2, 2]),
        ({"size": 2}, [1, 3]),
        ({"scale_factor": 2}, [1, 1, 3, 3, 2, 2]),
        ({"size": 5, "mode": "linear", "align_corners": True}, [1, 2, 3, 2.5, 2]),
        ({"size": 6, "mode": "linear"}, [1, 1.5, 2.5, 2.75, 2.25, 2]),
        ({"scale_factor": 1.7, "mode": "linear"}, steps),
        ({"size": 1, "mode": "linear", "align_corners": True}, [1]),
    ]
    for options, want in calls:
        np.testing.assert_allclose(functional.interpolate(x, **options)[0, 0].detach(), want, rtol=1e-12)
    np.testing.assert_allclose(functional.upsample(x, 5), functional.interpolate(x, 5))
    assert functional.interpolate(IMAGES, scale_factor=(2.0, 0.5), mode="bilinear").shape == (2, 3, 8, 2)
    assert functional.interpolate(SOLIDS, 3, mode="trilinear").shape == (2, 3, 3, 3, 3)


def test_derivatives_of_images_at_places() -> None:
    for mode in ("bilinear", "bicubic"):
        require_derivatives(
            lambda x, g, m=mode: functional.grid_sample(x, g, m), (IMAGES[:, :1], GRID[:, :2, :3]), 1e-5
        )
    require_derivatives(lambda x: functional.interpolate(x, (3, 7), mode="bicubic"), (IMAGES,))
    lanes = wg.vmap(functional.grid_sample)(np.stack([IMAGES] * 2), np.stack([GRID, GRID * 0.5]))
    np.testing.assert_allclose(lanes[1], functional.grid_sample(IMAGES, GRID * 0.5).detach(), rtol=1e-12)
    traced = wg.jit(lambda x, g: functional.grid_sample(x, g, "bicubic", "reflection"))(IMAGES, GRID)
    np.testing.assert_allclose(traced, functional.grid_sample(IMAGES, GRID, "bicubic", "reflection"), rtol=1e-12)
    single = functional.grid_sample(IMAGES.astype(np.float32), GRID.astype(np.float32), "bicubic")
    assert single.dtype == np.float32
    assert functional.interpolate(IMAGES.astype(np.float32), 3, mode="bicubic").dtype == np.float32


def test_refusals_of_sampling() -> None:
    with pytest.raises(ShapeError) as caught:
        functional.grid_sample(IMAGES, GRID[:1])
    assert str(caught.value) == (
        "grid_sample: images of shape (2, 3, 4, 5) and a grid of shape (1, 6, 7, 2); (batch, channels, ...) and "
        "(batch, ..., axes of space), 2 or 3, are needed. Correct the grid."
    )
    with pytest.raises(UsageError) as refused:
        functional.grid_sample(IMAGES, GRID, padding_mode="wrap")
    assert str(refused.value) == (
        "grid_sample: padding_mode='wrap'; 'zeros', 'border' or 'reflection' is needed. Pass one of these."
    )
    with pytest.raises(UsageError) as refused:
        functional.interpolate(IMAGES)
    assert str(refused.value) == "interpolate: size=None and scale_factor=None; one of them is needed. Pass one."
    with pytest.raises(ShapeError) as caught:
        functional.interpolate(IMAGES, 3, mode="linear")
    assert str(caught.value) == (
        "interpolate: images of shape (2, 3, 4, 5) with mode='linear'; (batch, channels) and 1 axes of space are "
        "needed. Reshape them."
    )


@pytest.mark.parametrize("options", [*product((1, 2), (0, 2), (1, 2), (1, 2))])
def test_convolutions_in_pieces(monkeypatch: pytest.MonkeyPatch, options: tuple[int, ...]) -> None:
    """What is multiplied in pieces, so that windows stay in a cache, is what is multiplied at once."""
    w = RNG.normal(size=(6, 4 // options[3], 3, 2))

    def convolved(x: Any, w: Any) -> Any:
        return functional.conv2d(x, w, None, *options)

    value, pull = wg.vjp(convolved, X, w)
    ct = RNG.normal(size=value.shape)
    want = [value, *pull(ct)]
    monkeypatch.setattr(convolution, "FEW_WINDOWS", 1)
    for name in ("SMALL", "NARROW", "WIDE", "SHORT"):
        monkeypatch.setattr(sliding_products, name, 1)
    for many in (1, 64, 500):
        monkeypatch.setattr(sliding_products, "MANY", many)
        convolution.plan_correlation.cache_clear()
        value, pull = wg.vjp(convolved, X, w)
        for found, whole in zip([value, *pull(ct)], want, strict=True):
            np.testing.assert_allclose(found, whole, rtol=1e-11, atol=1e-12)
    convolution.plan_correlation.cache_clear()


@together("axis", [-1, 0, 1])
@together("dtype", [np.float64, np.float32, np.float16, np.complex128])
def test_shares_of_many_rows(axis: int, dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=(6, 20, 30)).astype(dtype)
    ct = np.cos(np.arange(3600.0)).reshape(x.shape).astype(dtype)
    tolerance = 20 * np.finfo(dtype).eps
    for name in ("softmax", "log_softmax"):
        for rows in (x, np.asfortranarray(x)):
            value, pull = wg.vjp(lambda rows: getattr(functional, name)(rows, axis), rows)  # noqa: B023 - called here
            want, exact = wg.vjp(lambda rows: getattr(wg.scipy.special, name)(rows, axis), rows)  # noqa: B023 - likewise
            assert value.dtype == dtype
            np.testing.assert_allclose(value, want, rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(pull(ct)[0], exact(ct)[0], rtol=tolerance, atol=30 * tolerance)
    masked = np.where(x.real > 1, -np.inf, x)
    masked[0] = -np.inf
    with np.errstate(invalid="ignore"):
        want = wg.scipy.special.softmax(masked, axis)
        np.testing.assert_allclose(functional.softmax(masked, axis), want, rtol=tolerance, atol=tolerance)


@together("dtype", [np.float64, np.float32, np.float16, np.complex128])
@together("shape", [(1, 7), (7, 1), (1, 7, 1), (7,), (1,), (1, 300)])
def test_shares_of_one_row(dtype: Any, shape: tuple[int, ...]) -> None:
    row = np.random.default_rng(1).normal(size=shape).astype(dtype)
    axis = int(np.argmax(shape))
    rows = [row]
    for number in (np.inf, -np.inf, np.nan):
        rows.append(row.copy())
        rows[-1].flat[0] = number
    rows.append(np.full_like(row, -np.inf))
    rows.append(row * 1e4)
    for name in ("softmax", "log_softmax"):
        for x in rows if dtype is not np.complex128 else rows[:1]:
            with np.errstate(all="ignore"):
                want = getattr(scipy.special, name)(x, axis)
                found = getattr(functional, name)(x, axis).numpy()
            assert found.dtype == dtype
            np.testing.assert_allclose(found, want, rtol=20 * np.finfo(dtype).eps)
        ct = np.cos(np.arange(row.size)).reshape(shape).astype(dtype)
        pulled = wg.vjp(lambda x: getattr(functional, name)(x, axis), row)[1](ct)[0]  # noqa: B023 - called here
        exact = wg.vjp(lambda x: getattr(special, name)(x, axis), row)[1](ct)[0]  # noqa: B023 - likewise
        np.testing.assert_allclose(pulled, exact, rtol=1e-12, atol=50 * np.finfo(dtype).eps)


def test_softmax_of_integers_is_of_floats() -> None:
    for name in ("softmax", "log_softmax"):
        want = getattr(scipy.special, name)([1, 2, 4])
        np.testing.assert_array_equal(getattr(functional, name)([1, 2, 4]), want)
        np.testing.assert_array_equal(getattr(special, name)(np.array([1, 2, 4])), want)


def test_batch_norm_keeps_running_means_and_variances() -> None:
    images = np.random.default_rng(0).normal(size=(4, 2, 3, 3)) + 2.0
    for make in (np.array, wg.tensor):
        mean, var = make([0.0, 1.0]), make([1.0, 2.0])
        weight = wg.tensor([1.0, 2.0], requires_grad=True)
        found = functional.batch_norm(images, mean, var, weight, training=True, momentum=0.25)
        np.sum(found**2).backward()
        axes = (0, 2, 3)
        assert np.allclose(mean, 0.75 * np.array([0.0, 1.0]) + 0.25 * images.mean(axes))
        assert np.allclose(var, 0.75 * np.array([1.0, 2.0]) + 0.25 * images.var(axes, ddof=1))
        assert np.array_equal(found.detach(), functional.batch_norm(images, weight=weight).detach())
    tensor = wg.tensor(images, requires_grad=True)
    functional.batch_norm(tensor, mean, var, training=True)
    assert not mean.requires_grad


@pytest.mark.parametrize("images", [(), (2,), (40,)])
def test_sums_over_images_keep_their_digits(images: tuple[int, ...]) -> None:
    x, w, tenths = np.zeros((*images, 1, 200, 100), np.float32), np.zeros((3, 1, 1, 1), np.float32), np.float32(0.1)
    bias = wg.tensor(np.zeros(3, np.float32), requires_grad=True)
    (functional.conv2d(x, w, bias) * tenths).sum().backward()
    assert bias.grad is not None
    np.testing.assert_allclose(bias.grad.numpy(), x.size * float(tenths), rtol=5e-7)


@together(
    "call, written",
    [
        (lambda x: functional.softmax(x, dim=-1), "axis="),
        (lambda x: functional.softmax(x, -1, dtype=np.float32), "input.astype"),
        (lambda x: functional.log_softmax(x, dim=1), "axis="),
        (lambda x: functional.glu(x, dim=1), "axis="),
        (lambda x: functional.normalize(x, dim=1), "axis="),
        (lambda x: functional.cosine_similarity(x, x, dim=1), "axis="),
        (lambda x: functional.pairwise_distance(x, x, keepdim=True), "keepdims="),
        (lambda x: functional.relu(x, inplace=True), "nothing: results are new arrays"),
        (lambda x: functional.max_pool1d(x, 2, return_indices=True), "np.argmax"),
        (lambda x: functional.avg_pool1d(x, 2, ceil_mode=True), "padding="),
        (lambda x: functional.mse_loss(x, x, size_average=False), "reduction="),
        (lambda x: functional.mse_loss(x, x, weight=x), "reduction='none'"),
        (lambda x: functional.batch_norm(x, running_mean=x[0]), "mean="),
    ],
)
def test_parameters_of_pytorch_say_what_is_written_here(call: Callable[[Any], Any], written: str) -> None:
    with pytest.raises(TypeError, match=r"keyword argument '\w+'; write " + written):
        call(np.ones((2, 4)))
    with pytest.raises(TypeError, match="; write " + written) as caught:
        wg.grad(call)(np.ones((2, 4)))
    assert not hasattr(caught.value, "__notes__")


def test_own_parameters_are_no_concern_of_what_is_written_otherwise() -> None:
    assert functional.one_hot([1], 2, dtype=np.float32).dtype == np.float32
    assert float(functional.nll_loss(np.log([[0.25, 0.75]]), [1], weight=[1.0, 2.0])) == pytest.approx(-np.log(0.75))


P, L, Y = np.array([0.2, 0.5, 0.9]), np.array([-1.0, 0.0, 2.0]), np.array([0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("loss", "at"), [(functional.binary_cross_entropy, P), (functional.binary_cross_entropy_with_logits, L)]
)
def test_binary_cross_entropy_is_weighted(loss: Any, at: Any) -> None:
    weights = np.array([1.0, 0.0, 3.0])
    found = loss(at, Y, weight=weights)
    assert float(found) == pytest.approx(float(np.mean(loss(at, Y, "none") * weights)), rel=1e-15)


def test_dropout_needs_a_key_only_while_training() -> None:
    assert np.array_equal(functional.dropout(P, 0.5, training=False), P)
    with pytest.raises(wg.errors.UsageError, match=r"no key; a key of wengert.random is needed .*Pass key=") as error:
        functional.dropout(P)
    assert "random.key(seed)" in str(error.value)


@pytest.mark.parametrize("module", [functional, wg.optim])
def test_what_is_written_for_other_names_is_here(module: Any) -> None:
    table = hints("modules", module.__name__)
    assert not table.keys() & {*module.__all__}
    for name, text in table.items():
        with pytest.raises(AttributeError, match=f"no attribute {name!r}; write " + re.escape(text) + "$"):
            getattr(module, name)
        for start, path in re.findall(r"\b(np|wengert)((?:\.\w+)+)", text):
            assert operator.attrgetter(path[1:])({"np": np, "wengert": wg}[start])
        for called in re.findall(r"(?<![.\w])(\w+)\(", text):
            assert hasattr(module, called) or called in ("distance", "f", "len")


FLAT, LABELS = RNG.normal(size=(4, 3)), np.array([0, 1, 2, 0])


@together(
    "call, error, text",
    [
        (lambda: functional.batch_norm(FLAT, np.zeros(1), np.ones(3)), ShapeError, "mean of shape (1,)"),
        (lambda: functional.batch_norm(FLAT, weight=np.ones((4, 3))), ShapeError, "weight of shape (4, 3)"),
        (lambda: functional.batch_norm(FLAT[0]), ShapeError, "channels, the second axis"),
        (lambda: functional.batch_norm(FLAT, np.zeros(3, int), training=True), DtypeError, "dtype int64"),
        (lambda: functional.batch_norm(FLAT, momentum=5), UsageError, "5 for momentum"),
        (lambda: functional.layer_norm(FLAT, 3, np.ones((4, 3))), ShapeError, "shape (3,), or one number"),
        (lambda: functional.layer_norm(FLAT, 3, None, np.ones((5, 1, 1))), ShapeError, "bias of shape (5, 1, 1)"),
        (lambda: functional.layer_norm(FLAT, ()), ShapeError, "normalized_shape=()"),
        (lambda: functional.rms_norm(FLAT, 3, np.ones(1)), ShapeError, "weight of shape (1,)"),
        (lambda: functional.group_norm(X, 2, np.ones(1)), ShapeError, "weight of shape (1,)"),
        (lambda: functional.group_norm(X, 0), UsageError, "0 for num_groups"),
        (lambda: functional.linear(FLAT, np.ones((5, 3)), np.ones((4, 1))), ShapeError, "bias of shape (4, 1)"),
        (lambda: functional.conv2d(X, np.ones((5, 4, 3, 3)), np.ones(1)), ShapeError, "bias of shape (1,)"),
        (lambda: functional.conv2d(X, np.ones((5, 4, 3, 3)), stride=0), UsageError, "stride=0"),
        (lambda: functional.conv2d(X, np.ones((5, 4, 3, 3)), padding=-1), UsageError, "padding=-1"),
        (lambda: functional.conv2d(X, np.ones((5, 4, 3, 3)), dilation=0), UsageError, "dilation=0"),
        (lambda: functional.max_pool2d(X, 2, padding=2), UsageError, "at most half a window"),
        (lambda: functional.avg_pool2d(X, 2, padding=2), UsageError, "at most half a window"),
        (lambda: functional.cross_entropy(FLAT, LABELS, label_smoothing=1.5), UsageError, "0 to 1 is needed"),
        (lambda: functional.cross_entropy(FLAT, LABELS, weight=np.ones(1)), ShapeError, "weight of shape (1,)"),
        (lambda: functional.cross_entropy(FLAT, FLAT, ignore_index=0), UsageError, "classes, as integers"),
        (lambda: functional.nll_loss(FLAT, LABELS, weight=np.ones(5)), ShapeError, "weight of shape (5,)"),
        (lambda: functional.nll_loss(1.0, 0), ShapeError, "an axis of classes is needed"),
        (lambda: functional.huber_loss(FLAT, FLAT, delta=-1.0), UsageError, "-1.0 for delta"),
        (lambda: functional.smooth_l1_loss(FLAT, FLAT, beta=-1.0), UsageError, "-1.0 for beta"),
        (
            lambda: functional.binary_cross_entropy(np.ones((4, 3)), FLAT, weight=np.ones((2, 4, 3))),
            ShapeError,
            "weight of shape (2, 4, 3)",
        ),
        (
            lambda: functional.binary_cross_entropy_with_logits(FLAT, FLAT, pos_weight=np.ones((2, 4, 3))),
            ShapeError,
            "pos_weight of shape (2, 4, 3)",
        ),
        (lambda: functional.one_hot([0.5, 1.0], 3), DtypeError, "integers are needed"),
        (lambda: functional.one_hot([0, 1], -1), UsageError, "-1 for num_classes"),
        (lambda: functional.embedding([True, False], FLAT), DtypeError, "integers are needed"),
        (
            lambda: functional.scaled_dot_product_attention(FLAT, FLAT, FLAT, np.tri(4, dtype=int)),
            DtypeError,
            "truth values or floats",
        ),
        (
            lambda: functional.scaled_dot_product_attention(FLAT, FLAT, FLAT, np.ones((2, 4, 4), bool)),
            ShapeError,
            "broadcasts to shape (4, 4)",
        ),
    ],
)
def test_what_would_broadcast_to_nonsense(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_what_is_no_probability_gives_nan() -> None:
    loss = lambda p: functional.binary_cross_entropy(p, np.ones(4), "none")
    for found in (loss, wg.jit(loss), wg.vmap(lambda p: functional.binary_cross_entropy(p, 1.0))):
        with np.errstate(invalid="ignore"):
            values = np.asarray(found(np.array([np.nan, 1.5, -0.5, 0.0])))
        np.testing.assert_array_equal(values, [np.nan, np.nan, np.nan, 100.0])


COMPLEX = np.array([[1.0 + 1.0j, -2.0, 3.0]])
SQUARE = np.ones((1, 1, 4, 4))
WRONG_NUMBERS: list[tuple[Any, type[Exception], str]] = [
    *(
        (
            lambda name=name: getattr(functional, name)(COMPLEX),
            DtypeError,
            f"{name}: an array of dtype complex128; real",
        )
        for name in ["elu", "gelu", "hardtanh", "leaky_relu", "logsigmoid", "mish", "relu", "relu6", "selu", "softplus"]
    ),
    *(
        (lambda name=name: getattr(functional, name)(COMPLEX, COMPLEX.real), DtypeError, f"{name}: an array of dtype c")
        for name in (
            [
                "mse_loss",
                "huber_loss",
                "smooth_l1_loss",
                "binary_cross_entropy",
                "binary_cross_entropy_with_logits",
                "kl_div",
            ]
        )
    ),
    (lambda: functional.binary_cross_entropy(COMPLEX, 0.5), DtypeError, "binary_cross_entropy: an array of dtype"),
    (
        lambda: functional.binary_cross_entropy_with_logits(COMPLEX, 0.5),
        DtypeError,
        "binary_cross_entropy_with_logits: ",
    ),
    (lambda: functional.mse_loss(COMPLEX.real, COMPLEX), DtypeError, "mse_loss: an array of dtype complex128"),
    (lambda: functional.cross_entropy(COMPLEX, [1]), DtypeError, "cross_entropy: an array of dtype complex128"),
    (lambda: functional.nll_loss(COMPLEX, [1]), DtypeError, "nll_loss: an array of dtype complex128"),
    (lambda: functional.cosine_similarity(COMPLEX, COMPLEX), DtypeError, "cosine_similarity: an array of dtype"),
    (lambda: functional.max_pool2d(SQUARE + 1j, 2), DtypeError, "max_pool2d: an array of dtype complex128"),
    (lambda: functional.linear(np.ones((2, 3)), np.ones((2, 5, 3))), ShapeError, "weight of shape (2, 5, 3); a matrix"),
    (
        lambda: functional.leaky_relu(np.ones(3), np.ones((2, 3))),
        ShapeError,
        "negative_slope of shape (2, 3); one",
    ),
    (lambda: functional.elu(np.ones(3), np.ones((4, 3))), ShapeError, "alpha of shape (4, 3); one that broadcasts"),
    (lambda: functional.hardtanh(np.ones(3), np.ones((4, 3))), ShapeError, "min_val of shape (4, 3); one that"),
    (lambda: functional.softplus(np.ones(3), np.ones((4, 3))), ShapeError, "beta of shape (4, 3); one that"),
    (lambda: functional.softplus(1.0, 0.0), UsageError, "softplus: 0.0 for beta; more than 0 is needed"),
    (
        lambda: functional.softplus(np.ones(2), np.array([1.0, -1.0])),
        UsageError,
        "softplus: -1.0 among beta; more",
    ),
    (lambda: functional.hardtanh(np.ones(3), 1, -1), UsageError, "bounds 1 and -1; a lower one first is needed"),
    (lambda: functional.normalize(np.ones((1, 3)), eps=-1), UsageError, "normalize: -1 for eps; a number, 0 or more"),
    (lambda: functional.interpolate(SQUARE, scale_factor=-1), UsageError, "scale_factor=-1 for axes of lengths (4, 4)"),
    (lambda: functional.interpolate(SQUARE, scale_factor=0.1), UsageError, "scale_factor=0.1 for axes of lengths"),
    (lambda: functional.interpolate(SQUARE, scale_factor=(2, 2, 2)), UsageError, "one or 2 factors that leave an"),
    (lambda: functional.conv2d(SQUARE, SQUARE, stride=1.5), UsageError, "stride=1.5; one or 2 integers, 1 or more"),
    (
        lambda: functional.conv_transpose2d(SQUARE, SQUARE, stride=2, output_padding=2),
        UsageError,
        "output_padding=2 with stride (2, 2) and dilation (1, 1); less than one of these is needed",
    ),
    (lambda: functional.conv_transpose2d(SQUARE, SQUARE, padding=9), ShapeError, "windows that fit are needed"),
    (lambda: functional.one_hot([0, 5], 3), UsageError, "one_hot: 5 among indices; less than num_classes=3 is needed"),
    (lambda: functional.embedding([-1], np.ones((3, 2))), IndexError, "out of bounds"),
    (lambda: functional.conv2d(SQUARE, SQUARE, padding="SAME"), UsageError, "'SAME'; 'same', 'valid' or numbers are"),
    (
        lambda: functional.batch_norm(np.ones((2, 1)), [0.0], [1.0], training=True),
        DtypeError,
        "running statistics of type list; arrays that can be written to are needed",
    ),
]


@together("call, error, text", WRONG_NUMBERS)
def test_numbers_and_shapes_that_would_give_nonsense_are_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_what_is_near_to_what_is_refused_is_right() -> None:
    assert functional.l1_loss(COMPLEX, np.zeros((1, 3))) == pytest.approx(np.mean(np.abs(COMPLEX)))
    np.testing.assert_array_equal(functional.one_hot([-1, 0], 2), [[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(wg.jit(lambda i: functional.one_hot(i, 2))(np.array([5])), [[0.0, 0.0]])
    with np.errstate(invalid="ignore"):  # as logaddexp says of NaN
        assert np.isnan(wg.jit(functional.softplus)(1.0, -1.0))
    with pytest.raises(IndexError):
        wg.jit(lambda i: functional.embedding(i, np.ones((3, 2))))(np.array([-1]))
    assert functional.conv_transpose2d(SQUARE, SQUARE, stride=1, dilation=2, output_padding=1).shape == (1, 1, 11, 11)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool])
def test_activations_and_losses_of_integers_are_those_of_floats(dtype: Any) -> None:
    numbers = np.array([0, 1, 100], dtype)
    for name in ("elu", "logsigmoid", "mish", "softplus"):
        function = getattr(functional, name)
        np.testing.assert_array_equal(function(numbers), function(numbers.astype(float)))
    target = np.array([0.0, 1.0, 0.5])
    for name in ("binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "huber_loss"):
        function = getattr(functional, name)
        np.testing.assert_array_equal(function(numbers, target), function(numbers.astype(float), target))
        other = np.array([1, 0, 1], dtype)
        np.testing.assert_array_equal(function(numbers, other), function(numbers.astype(float), other.astype(float)))


TAILS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
    "sigmoid": (functional.sigmoid, lambda x: 1 / (1 + np.exp(-x)), -80.0),
    "silu": (functional.silu, lambda x: x / (1 + np.exp(-x)), -80.0),
    "glu": (
        lambda x: functional.glu(np.stack([x * 0 + 3, x]), 0).reshape(x.shape),
        lambda x: 3 / (1 + np.exp(-x)),
        -80.0,
    ),
    "gelu": (functional.gelu, lambda x: x * scipy.special.ndtr(x), -12.0),
    "gelu by tanh": (
        lambda x: functional.gelu(x, "tanh"),
        lambda x: x / (1 + np.exp(-np.sqrt(8 / np.pi) * (x + 0.044715 * x**3))),
        -9.0,
    ),
}
"""Functions that decay to the left, by formulas that keep their digits, down to where single precision has room."""


@together("name", TAILS)
def test_what_decays_keeps_its_digits(name: str) -> None:
    f, formula, least = TAILS[name]
    for dtype, most in ((np.float64, 1e-13), (np.float32, 3e-5)):
        x = np.linspace(least, 20, 61).astype(dtype)
        want = formula(x.astype(np.float64))
        for way in (f, wg.jit(f), wg.vmap(lambda x: f(x.reshape(1))[0])):
            found = np.asarray(way(x))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, want, rtol=most)


def attended(q: Any, k: Any, v: Any, left: Any, added: Any) -> Any:
    """Return attention query by query, from the keys that are left to each."""
    found = np.zeros((*q.shape[:-1], v.shape[-1]))
    for i in np.ndindex(*q.shape[:-1]):
        keys = np.nonzero(left[i])[0]
        if len(keys):
            scores = k[(*i[:-1], keys)] @ q[i] / np.sqrt(q.shape[-1]) + added[i][keys]
            found[i] = scipy.special.softmax(scores) @ v[(*i[:-1], keys)]
    return found


def ways_to_differentiate(f: Callable[[Any], Any], *others: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the gradient of a function of one array in every mode; lanes have another array beside it."""

    def on_tape(x: Any) -> Any:
        t = wg.tensor(x, requires_grad=True)
        f(t).backward()
        return t.grad

    def forward(x: Any) -> Any:
        unit = np.eye(x.size).reshape(-1, *x.shape)
        return wg.vmap(lambda t: wg.jvp(f, (x,), (t,))[1])(unit).reshape(x.shape)

    return {
        "grad": wg.grad(f),
        "tape": on_tape,
        "jvp": forward,
        "jit": wg.jit(wg.grad(f)),
        "grad of jit": wg.grad(wg.jit(f)),
        "vmap": lambda x: wg.vmap(wg.grad(f))(np.stack([x + 1, x]))[1],
    }


MASKS = {
    "truths": np.array([[True, False, True], [False, False, False], [True, True, True], [False, True, False]]),
    "truths of all heads": np.array([[[True, False, True]] * 4, [[False] * 3] * 4]),
    "one row for all": np.zeros((1, 3), bool),
    "numbers": np.array([[0.5, -np.inf, -1.0], [-np.inf] * 3, [0.0, 2.0, 0.0], [-np.inf, 1.0, -np.inf]]),
}


@together("name", MASKS)
def test_a_query_to_which_nothing_is_left_gives_zeros_and_finite_gradients(name: str) -> None:
    mask, rng = MASKS[name], np.random.default_rng(1)
    q, k, v = rng.normal(size=(2, 4, 5)), rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 3, 2))
    whole = np.broadcast_to(mask, (2, 4, 3))
    left = whole if mask.dtype == bool else whole > -np.inf
    want = attended(q, k, v, left, np.zeros(whole.shape) if mask.dtype == bool else whole)
    attention = functional.scaled_dot_product_attention
    lanes = wg.vmap(attention)(np.stack([q, q]), np.stack([k, k]), np.stack([v, v]), np.stack([whole, whole]))
    ways = attention(q, k, v, mask), wg.jit(attention)(q, k, v, mask), lanes[1]
    for found in ways:
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-15)
    for place, x in enumerate((q, k, v)):

        def loss(x: Any, place: int = place, mask: Any = mask) -> Any:
            operands = [x if i == place else other for i, other in enumerate((q, k, v))]
            return np.sum(attention(*operands, mask) ** 2)

        def loss_of_masks(x: Any, loss: Any = loss) -> Any:
            return loss(x, mask=wg.stop_gradient(np.sum(x) * 0) + mask if mask.dtype == float else mask)

        steps = np.eye(x.size).reshape(-1, *x.shape) * 1e-6
        exact = np.reshape([(loss(x + step) - loss(x - step)) / 2e-6 for step in steps], x.shape)
        for f in (loss, loss_of_masks):
            for way, gradient in ways_to_differentiate(f).items():
                np.testing.assert_allclose(gradient(x), exact, rtol=1e-6, atol=1e-8, err_msg=way)
        assert np.isfinite(wg.hessian(loss)(x)).all()
    if mask.dtype == float:
        finite = wg.grad(lambda mask: np.sum(attention(q, k, v, mask) ** 2))(mask)
        assert np.isfinite(finite).all()
        assert not finite[1].any()


def test_attention_in_half_precision_multiplies_in_single() -> None:
    rng = np.random.default_rng(2)
    q, k, v = (rng.normal(size=(30, 400)) * 30 for _ in range(3))  # whose products are up to a million
    half = [x.astype(np.float16) for x in (q, k, v)]
    want = functional.scaled_dot_product_attention(*[x.astype(float) for x in half])
    found = functional.scaled_dot_product_attention(*half)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-2)


ROWS_OF_NOTHING = np.array([[-np.inf, -np.inf, -np.inf], [1.0, 2.0, -np.inf], [0.5, -1.0, 2.0]])
OF_ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: functional.softmax(x, 1),
    "log_softmax": lambda x: np.where(x == -np.inf, 0, functional.log_softmax(x, 1)),
    "softmax of SciPy": lambda x: special.softmax(x, axis=1),
    "log_softmax of SciPy": lambda x: np.where(x == -np.inf, 0, special.log_softmax(x, axis=1)),
    "logsumexp": lambda x: special.logsumexp(x, axis=1, keepdims=True),
    "logaddexp": lambda x: np.logaddexp.reduce(x, axis=1, keepdims=True),
    "cross_entropy": lambda x: functional.cross_entropy(x, np.array([0, 1, 2]), "none")[:, None],
}


@together("name", OF_ROWS)
def test_rows_of_nothing_that_are_masked_away_pass_on_zeros(name: str) -> None:
    f, keep, rng = OF_ROWS[name], np.array([[False], [True], [True]]), np.random.default_rng(0)
    with np.errstate(all="ignore"):
        weights = rng.normal(size=f(ROWS_OF_NOTHING).shape)

        def loss(x: Any) -> Any:
            return np.sum(np.where(keep, f(x), 0) * weights)

        gradients = {way: gradient(ROWS_OF_NOTHING) for way, gradient in ways_to_differentiate(loss).items()}
        twice = wg.jvp(wg.grad(loss), (ROWS_OF_NOTHING,), (np.ones((3, 3)),))[1]
        beside = np.concatenate([np.zeros((1, 3)), ROWS_OF_NOTHING[1:]])  # the same, and something in the first row
        want = np.concatenate([np.zeros((1, 3)), wg.grad(loss)(beside)[1:]])
    for way, found in gradients.items():
        np.testing.assert_allclose(found, want, rtol=1e-12, err_msg=way)
    assert np.isfinite(twice).all()


def test_the_mean_of_losses_of_which_none_counts_is_that_of_none() -> None:
    logits = np.zeros((2, 3))
    with np.errstate(all="ignore"):
        assert np.isnan(functional.cross_entropy(logits, np.array([1, 1]), ignore_index=1).item())  # as in PyTorch
    assert not wg.grad(lambda x: functional.cross_entropy(x, np.array([1, 1]), "sum", ignore_index=1))(logits).any()


MANY_HALVES = 70_000
"""More than the largest number of half precision, of elements whose count and sum of squares have no room."""
OF_MANY: dict[str, Callable[[Any], Any]] = {
    "mean": np.mean,
    "mean of columns": lambda x: np.mean(x.reshape(-1, 1), axis=0),
    "nanmean": np.nanmean,
    "var": lambda x: np.var(x, ddof=1),
    "std": np.std,
    "nanstd": np.nanstd,
    "norm": np.linalg.norm,
    "norm of order 3": lambda x: np.linalg.norm(x, 3),
    "logaddexp": lambda x: np.logaddexp.reduce(x[:3000]),
    "logsumexp": special.logsumexp,
    "cumsum": lambda x: np.cumsum(x * 2.0**-6),
    "picked": lambda x: np.take(x[:2], np.zeros(MANY_HALVES, int)),
    "repeated": lambda x: np.broadcast_to(x[:2], (MANY_HALVES, 2)) + 0.5,
    "spaced": lambda x: np.linspace(x[0], x[1], 2000),
    "softmax": lambda x: functional.softmax(x) * 300.0,
    "log_softmax": functional.log_softmax,
    "mse_loss": lambda x: functional.mse_loss(x, x[::-1] * 0.5),
    "cross_entropy": lambda x: functional.cross_entropy(x.reshape(-1, 2), np.arange(MANY_HALVES // 2) % 2),
    "layer_norm": lambda x: functional.layer_norm(x, (MANY_HALVES,)),
    "rms_norm": lambda x: functional.rms_norm(x * 200, (MANY_HALVES,)),
    "batch_norm": lambda x: functional.batch_norm(x.reshape(-1, 1)),
    "normalize": lambda x: functional.normalize(x, axis=0) * 200,
    "avg_pool2d": lambda x: functional.avg_pool2d(x.reshape(1, 1, 280, 250), (280, 250)),
    "conv1d": lambda x: functional.conv1d(x.reshape(1, 1, -1), x[:3].reshape(1, 1, 3)),
}


@together("name", OF_MANY)
def test_gradients_of_many_halves_are_those_of_doubles(name: str) -> None:
    f, rng = OF_MANY[name], np.random.default_rng(3)
    x = rng.normal(size=MANY_HALVES).astype(np.float16)
    with np.errstate(all="ignore"):
        value, pull = wg.vjp(lambda x: f(x), x)
        assert value.dtype == np.float16
        pull_exact = wg.vjp(lambda x: f(x), x.astype(float))[1]
        ct = rng.normal(size=value.shape).astype(np.float16)
        want = pull_exact(ct.astype(float))[0]
        compiled = wg.jit(lambda x, ct: wg.vjp(f, x)[1](ct)[0])(x, ct)
        moved = wg.jvp(f, (x,), (x[::-1].copy(),))[1]
        moved_exact = wg.jvp(f, (x.astype(float),), (x[::-1].astype(float),))[1]
    least = float(np.finfo(np.float16).smallest_subnormal)
    for found in (pull(ct)[0], compiled):
        assert found.dtype == np.float16
        np.testing.assert_allclose(found.astype(float), want, rtol=0.02, atol=4 * least + 4e-3 * np.abs(want).max())
    if name != "cumsum":  # NumPy's own, of tangents as of values
        np.testing.assert_allclose(moved.astype(float), moved_exact, rtol=0.05, atol=0.02 * np.abs(moved_exact).max())


def test_many_equal_terms_of_an_element_keep_their_digits() -> None:
    x = np.ones(2, np.float32)
    found = wg.grad(lambda x: np.sum(np.take(x, np.zeros(1_000_000, int)) * np.float32(0.1)))(x)
    np.testing.assert_allclose(found, [1e6 * np.float64(np.float32(0.1)), 0.0], rtol=1e-7)


@together("dtype", [np.float64, np.float32])
def test_logarithms_of_large_shares_keep_their_digits(dtype: Any) -> None:
    rest = np.array([1e-3, 1e-7, 1e-20, 1e-30])
    x = np.stack([np.zeros(4), np.log(rest), np.full(4, -80.0)], 1).astype(dtype)
    want = -np.log1p(np.sum(np.exp(x[:, 1:].astype(float)), 1))
    few = 1e-5 if dtype == np.float32 else 1e-12
    for f in (functional.log_softmax, wg.jit(functional.log_softmax), wg.vmap(functional.log_softmax)):
        np.testing.assert_allclose(f(x)[:, 0], want, rtol=few)
    np.testing.assert_allclose(functional.log_softmax(x.T, 0)[0], want, rtol=few)
    np.testing.assert_allclose(functional.log_softmax(x[2])[0], want[2], rtol=few)
    losses = functional.cross_entropy(x, np.zeros(4, int), "none")
    np.testing.assert_allclose(losses, -want, rtol=few)
