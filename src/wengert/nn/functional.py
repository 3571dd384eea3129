"""Layers of networks as functions, with PyTorch's names and arguments: `wengert.nn.functional`.

Images are (batch, channels, ...) and may come without the batch. What is drawn takes a key of `wengert.random`.

>>> import numpy as np
>>> import wengert as wg
>>> from wengert.nn import functional
>>> image, kernels = np.arange(16.0).reshape(1, 1, 4, 4), np.ones((1, 1, 2, 2))
>>> functional.conv2d(image, kernels, stride=2)
tensor([[[[10., 18.],
          [42., 50.]]]])
>>> wg.grad(lambda w: np.sum(functional.conv2d(image, w)))(kernels)
array([[[[45., 54.],
         [81., 90.]]]])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special

from wengert import random
from wengert.core.dispatch import apply, as_tensor
from wengert.errors import ShapeError, UsageError, describe
from wengert.primitives.convolution import correlation
from wengert.scipy import special as _special  # noqa: F401 - it gives SciPy's functions a meaning for Tensors
from wengert.transforms.reverse import stop_gradient

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
]

Lengths = tuple[int, ...]


# Convolutions


def each(name: str, what: str, value: Any, rank: int) -> Lengths:
    """Return a number for each axis of space; one alone is that of all."""
    found = tuple(map(operator.index, value)) if isinstance(value, Sequence) else (operator.index(value),) * rank
    if len(found) != rank:
        raise UsageError(describe(name, f"{what}={value!r}", f"one or {rank} integers are needed", "Correct it"))
    return found


def images(name: str, value: Any, rank: int) -> tuple[Any, bool]:
    """Return images with a batch, and whether they came with one."""
    x: Any = as_tensor(value)
    if x.ndim not in (rank + 1, rank + 2):
        needed = f"(batch, channels) or (channels,) and {rank} axes of space are needed"
        raise ShapeError(describe(name, f"shape {x.shape}", needed, "Reshape it"))
    return (x, True) if x.ndim == rank + 2 else (x[None], False)


def around(name: str, padding: Any, spans: Lengths, stride: Lengths) -> tuple[Lengths, Lengths]:
    """Return the numbers of zeros before and behind images."""
    if padding == "valid":
        return (0,) * len(spans), (0,) * len(spans)
    if padding != "same":
        found = each(name, "padding", padding, len(spans))
        return found, found
    if max(stride) > 1:
        given = f"padding='same' with stride {stride}"
        raise UsageError(describe(name, given, "a stride of 1 is needed", "Pass the padding as numbers"))
    low = tuple([(span - 1) // 2 for span in spans])
    return low, tuple([span - 1 - a for span, a in zip(spans, low, strict=True)])


def in_groups(name: str, x: Any, w: Any, groups: int, transposed: bool = False) -> tuple[Any, Any]:
    """Return images and kernels with a leading axis for the groups of channels."""
    own, wanted = x.shape[1], w.shape[0] if transposed else w.shape[1] * groups
    if own != wanted or w.shape[0] % groups or own % groups:
        given = f"images with {own} channels and kernels of shape {w.shape} in {groups} groups"
        raise ShapeError(describe(name, given, "channels that fit are needed", "Correct the kernels"))
    if groups == 1:
        return x[None], w[None]
    split = x.reshape(x.shape[0], groups, own // groups, *x.shape[2:])
    return np.swapaxes(split, 0, 1), w.reshape(groups, w.shape[0] // groups, *w.shape[1:])


def joined(found: Any, bias: Any, batched: bool) -> Any:
    """Return a result with the channels of all groups together, with a bias for each added."""
    if found.shape[0] == 1:
        found = found[0]
    else:
        found = np.swapaxes(found, 0, 1)
        found = found.reshape(found.shape[0], -1, *found.shape[3:])
    if bias is not None:
        found = found + as_tensor(bias).reshape(-1, *(1,) * (found.ndim - 2))
    return found if batched else found[0]


CONVOLUTION = """

Args:
    input: images.
    weight: kernels, of shape (channels of the result, channels / groups, ...).
    bias: a number for each channel of the result.
    stride: how far windows are apart, one number or one for each axis of space; so are the next two.
    padding: the number of zeros around images; "same" gives images as large as they came, "valid" takes none.
    dilation: how far the elements of kernels are apart.
    groups: in how many groups channels are divided, each with kernels of its own.

Raises:
    ShapeError: the shapes do not fit.
    UsageError: an argument has too many numbers.
"""


def convolution(rank: int) -> Callable[..., Any]:
    """Return the convolution of images with some axes of space."""
    name = f"conv{rank}d"

    def conv(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        x, batched = images(name, input, rank)
        x, w = in_groups(name, x, as_tensor(weight), groups)
        steps, gaps = each(name, "stride", stride, rank), each(name, "dilation", dilation, rank)
        spans = tuple([(n - 1) * gap + 1 for n, gap in zip(w.shape[3:], gaps, strict=True)])
        low, high = around(name, padding, spans, steps)
        found = apply(correlation, x, w, stride=steps, dilation=gaps, spread=(1,) * rank, low=low, high=high)
        return joined(found, bias, batched)

    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"Return the correlation of images with {rank} axes with kernels.{CONVOLUTION}"
    return conv


TRANSPOSED = """

Args:
    input: images.
    weight: kernels, of shape (channels, channels of the result / groups, ...).
    bias: a number for each channel of the result.
    stride: how far the places of kernels are apart, one number or one for each axis of space; so are the others.
    padding: by how much the result is cut on each side.
    output_padding: by how much it is longer at the end.
    groups: in how many groups channels are divided, each with kernels of its own.
    dilation: how far the elements of kernels are apart.

Raises:
    ShapeError: the shapes do not fit.
    UsageError: an argument has too many numbers.
"""


def transposed_convolution(rank: int) -> Callable[..., Any]:
    """Return the transpose of the convolution of images with some axes of space."""
    name = f"conv_transpose{rank}d"

    def conv_transpose(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        x, batched = images(name, input, rank)
        x, w = in_groups(name, x, as_tensor(weight), groups, transposed=True)
        steps, gaps = each(name, "stride", stride, rank), each(name, "dilation", dilation, rank)
        cuts, more = each(name, "padding", padding, rank), each(name, "output_padding", output_padding, rank)
        low = tuple([(n - 1) * gap - cut for n, gap, cut in zip(w.shape[3:], gaps, cuts, strict=True)])
        high = tuple([a + b for a, b in zip(low, more, strict=True)])
        turned = np.flip(np.swapaxes(w, 1, 2), tuple(range(3, 3 + rank)))
        found = apply(correlation, x, turned, stride=(1,) * rank, dilation=gaps, spread=steps, low=low, high=high)
        return joined(found, bias, batched)

    conv_transpose.__name__ = conv_transpose.__qualname__ = name
    conv_transpose.__doc__ = f"Return the transpose of the convolution of images with {rank} axes.{TRANSPOSED}"
    return conv_transpose


conv1d, conv2d, conv3d = map(convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(transposed_convolution, (1, 2, 3))


# Pooling


def windows(x: Any, kernel: Lengths, steps: Lengths, gaps: Lengths) -> Any:
    """Return the windows of images along as many last axes; they are parts of the images where they do not overlap."""
    rank = len(kernel)
    lengths = x.shape[-rank:]
    if kernel == steps and max(gaps) == 1:
        whole = [n // k * k for n, k in zip(lengths, kernel, strict=True)]
        inside: Any = (..., *map(slice, whole))
        x = x[inside]
        split = [m for n, k in zip(whole, kernel, strict=True) for m in (n // k, k)]
        front = x.ndim - rank
        axes = [*range(front), *range(front, front + 2 * rank, 2), *range(front + 1, front + 2 * rank, 2)]
        return x.reshape(*x.shape[:front], *split).transpose(axes)
    spans = tuple([(k - 1) * gap + 1 for k, gap in zip(kernel, gaps, strict=True)])
    found = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(-rank, 0)))
    taken: Any = (..., *[slice(None, None, n) for n in (*steps, *gaps)])
    return found[taken]


def surrounded(x: Any, around: Lengths, value: float) -> Any:
    """Return images with a value around them."""
    if not any(around):
        return x
    return np.pad(x, [(0, 0)] * (x.ndim - len(around)) + [(n, n) for n in around], constant_values=value)


POOLING = """

Args:
    input: images.
    kernel_size: the lengths of windows, one number or one for each axis of space; so are the others.
    stride: how far windows are apart; as they are long, if it is not given.
    padding: by how much images are made longer on each side, {padded}.
    {last}

Raises:
    ShapeError: the images have too few axes.
    UsageError: an argument has too many numbers.
"""


def max_pooling(rank: int) -> Callable[..., Any]:
    """Return the pooling by the greatest element."""
    name = f"max_pool{rank}d"

    def max_pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Any:
        x, batched = images(name, input, rank)
        kernel = each(name, "kernel_size", kernel_size, rank)
        steps = kernel if stride is None else each(name, "stride", stride, rank)
        x = surrounded(x, each(name, "padding", padding, rank), -np.inf)
        found = windows(x, kernel, steps, each(name, "dilation", dilation, rank))
        found = np.max(found, axis=tuple(range(-rank, 0)))
        return found if batched else found[0]

    max_pool.__name__ = max_pool.__qualname__ = name
    last = "dilation: how far the elements of windows are apart."
    text = POOLING.format(padded="with what is less than all elements", last=last)
    max_pool.__doc__ = f"Return the greatest element of each window; those that are equal share the gradient.{text}"
    return max_pool


def average_pooling(rank: int) -> Callable[..., Any]:
    """Return the pooling by the mean."""
    name = f"avg_pool{rank}d"

    def avg_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = True
    ) -> Any:
        x, batched = images(name, input, rank)
        kernel = each(name, "kernel_size", kernel_size, rank)
        steps = kernel if stride is None else each(name, "stride", stride, rank)
        zeros = each(name, "padding", padding, rank)
        axes = tuple(range(-rank, 0))
        found = np.mean(windows(surrounded(x, zeros, 0.0), kernel, steps, (1,) * rank), axis=axes)
        if any(zeros) and not count_include_pad:
            inside = surrounded(np.ones(x.shape[2:]), zeros, 0.0)
            found = found / np.mean(windows(inside, kernel, steps, (1,) * rank), axis=axes).astype(x.dtype)
        return found if batched else found[0]

    avg_pool.__name__ = avg_pool.__qualname__ = name
    last = "count_include_pad: whether the zeros around images count."
    avg_pool.__doc__ = f"Return the mean of each window.{POOLING.format(padded='with zeros', last=last)}"
    return avg_pool


max_pool1d, max_pool2d, max_pool3d = map(max_pooling, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(average_pooling, (1, 2, 3))


# Activations


def relu(input: Any) -> Any:
    """Return what is positive, and 0 for the rest, where its derivative is 0, too.

    >>> relu([-1.0, 2.0])
    tensor([0., 2.])
    """
    x: Any = as_tensor(input)
    return np.where(x > 0, x, 0)


def leaky_relu(input: Any, negative_slope: Any = 0.01) -> Any:
    """Return what is positive, and the rest times a slope.

    >>> leaky_relu([-1.0, 2.0])
    tensor([-0.01,  2.  ])
    """
    x: Any = as_tensor(input)
    return np.where(x > 0, x, negative_slope * x)


def elu(input: Any, alpha: Any = 1.0) -> Any:
    """Return what is positive, and alpha (exp(x) - 1) for the rest.

    >>> elu([0.0, 2.0])
    tensor([0., 2.])
    """
    x: Any = as_tensor(input)
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def sigmoid(input: Any) -> Any:
    """Return 1 / (1 + exp(-x)).

    >>> sigmoid(0.0)
    tensor(0.5)
    """
    x: Any = as_tensor(input)
    return 0.5 * (1 + np.tanh(0.5 * x))


def silu(input: Any) -> Any:
    """Return x times its sigmoid.

    >>> silu(0.0)
    tensor(0.)
    """
    x: Any = as_tensor(input)
    return x * sigmoid(x)


def softplus(input: Any, beta: Any = 1.0) -> Any:
    """Return log(1 + exp(beta x)) / beta.

    >>> softplus(1000.0)
    tensor(1000.)
    """
    x: Any = as_tensor(input)
    return np.logaddexp(x, 0) if type(beta) is float and beta == 1 else np.logaddexp(beta * x, 0) / beta


def gelu(input: Any, approximate: str = "none") -> Any:
    """Return x times the normal distribution function of x (Hendrycks and Gimpel, *Gaussian error linear units*, 2016).

    Args:
        input: an array.
        approximate: "tanh" for the approximation of that paper.

    Raises:
        UsageError: the approximation is unknown.

    >>> gelu(0.0)
    tensor(0.)
    """
    x: Any = as_tensor(input)
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    if approximate != "none":
        given = f"approximate={approximate!r}"
        raise UsageError(describe("gelu", given, "'none' or 'tanh' is needed", "Leave it out"))
    return 0.5 * x * (1 + scipy.special.erf(x * math.sqrt(0.5)))


def log_softmax(input: Any, axis: int = -1) -> Any:
    """Return the logarithms of exp(x) divided by their sum along an axis.

    >>> log_softmax([0.0, 0.0])
    tensor([-0.69314718, -0.69314718])
    """
    x: Any = as_tensor(input)
    shifted = x - stop_gradient(np.max(x, axis=axis, keepdims=True))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def softmax(input: Any, axis: int = -1) -> Any:
    """Return exp(x) divided by their sum along an axis.

    >>> softmax([0.0, 0.0])
    tensor([0.5, 0.5])
    """
    x: Any = as_tensor(input)
    terms = np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))
    return terms / np.sum(terms, axis=axis, keepdims=True)


# Normalisation


def standardised(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Return elements less a mean, over a standard deviation, times weights plus a bias."""
    found = (x - mean) / np.sqrt(variance + eps)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Return elements standardised over the last axes.

    Args:
        input: an array.
        normalized_shape: the lengths of these axes.
        weight: what the result is multiplied by.
        bias: what is added to that.
        eps: what is added to variances.

    Raises:
        ShapeError: the array has other last axes.

    >>> layer_norm([[1.0, 3.0]], (2,), eps=0.0)
    tensor([[-1.,  1.]])
    """
    x: Any = as_tensor(input)
    shape = tuple(normalized_shape) if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    if x.shape[x.ndim - len(shape) :] != shape:
        given = f"shape {x.shape} for normalized_shape={shape}"
        raise ShapeError(describe("layer_norm", given, "last axes of these lengths are needed", "Correct one of them"))
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean, variance = np.mean(x, axis=axes, keepdims=True), np.var(x, axis=axes, keepdims=True)
    return standardised(x, mean, variance, weight, bias, eps)


def batch_norm(
    input: Any, mean: Any = None, var: Any = None, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Return images standardised for each channel, the second axis.

    Args:
        input: images.
        mean: the means of the channels; those of these images if it is not given.
        var: the variances of the channels, likewise.
        weight: a factor for each channel.
        bias: what is added to that.
        eps: what is added to variances.

    >>> batch_norm([[1.0, 5.0], [3.0, 5.0]], eps=1e-9)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """
    x: Any = as_tensor(input)
    axes = tuple(i for i in range(x.ndim) if i != 1)

    def by_channel(value: Any) -> Any:
        return None if value is None else as_tensor(value).reshape(-1, *(1,) * (x.ndim - 2))

    mean = np.mean(x, axis=axes) if mean is None else mean
    var = np.var(x, axis=axes) if var is None else var
    return standardised(x, by_channel(mean), by_channel(var), by_channel(weight), by_channel(bias), eps)


def dropout(input: Any, p: float = 0.5, training: bool = True, *, key: Any) -> Any:
    """Return elements of which some, drawn at random, are 0, and the others larger, so that the mean stays.

    Args:
        input: an array.
        p: the probability of 0.
        training: False to return the array as it is.
        key: a key of `wengert.random`.

    Raises:
        UsageError: p is no probability, or 1.

    >>> from wengert import random
    >>> dropout(np.ones(6), 0.5, key=random.key(0))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    x: Any = as_tensor(input)
    if not 0 <= p < 1:
        raise UsageError(describe("dropout", f"p={p}", "a probability less than 1 is needed", "Correct it"))
    return np.where(random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0) if training and p else x


# Losses


def reduced(name: str, losses: Any, reduction: str) -> Any:
    """Return the mean or sum of losses, or themselves."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        given = f"reduction={reduction!r}"
        raise UsageError(describe(name, given, "'mean', 'sum' or 'none' is needed", "Pass one of these"))
    return np.mean(losses) if reduction == "mean" else np.sum(losses)


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the squares of differences.

    Args:
        input: an array.
        target: another.
        reduction: "mean", "sum" or "none".

    >>> mse_loss([1.0, 3.0], [0.0, 0.0])
    tensor(5.)
    """
    return reduced("mse_loss", (as_tensor(input) - as_tensor(target)) ** 2, reduction)


def of_classes(x: Any, target: Any) -> Any:
    """Return the elements that classes name along the second axis, or along the only one."""
    axis = min(1, x.ndim - 1)
    return np.squeeze(np.take_along_axis(x, np.expand_dims(target, axis), axis), axis)


def nll_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the logarithms of probabilities of classes, negated.

    Args:
        input: logarithms of the probabilities of classes, which are the second axis, or the only one.
        target: the classes, as integers.
        reduction: "mean", "sum" or "none".

    >>> nll_loss(np.log([[0.25, 0.75]]), [1])
    tensor(0.28768207)
    """
    return reduced("nll_loss", -of_classes(as_tensor(input), as_tensor(target)), reduction)


def cross_entropy(input: Any, target: Any, reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """Return the cross-entropy of the softmax of logits.

    Args:
        input: logits of classes, which are the second axis, or the only one.
        target: the classes, as integers, or the probabilities of all.
        reduction: "mean" (over all but the classes), "sum" or "none".
        label_smoothing: what part of the target is spread over all classes.

    >>> cross_entropy([[0.0, 0.0]], [1])
    tensor(0.69314718)
    """
    x, wanted = as_tensor(input), as_tensor(target)
    axis = min(1, x.ndim - 1)
    logs = log_softmax(x, axis)
    losses = -of_classes(logs, wanted) if wanted.dtype.kind in "iu" else -np.sum(logs * wanted, axis=axis)
    if label_smoothing:
        losses = (1 - label_smoothing) * losses - label_smoothing * np.mean(logs, axis=axis)
    return reduced("cross_entropy", losses, reduction)


# Classes and attention


def one_hot(indices: Any, num_classes: int, dtype: Any = float) -> Any:
    """Return rows that are 1 at the class that each index names, and 0 elsewhere.

    Args:
        indices: integers.
        num_classes: how many classes there are.
        dtype: the dtype of the result.

    >>> one_hot([1, 0], 3)
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    x: Any = as_tensor(indices)
    return (x[..., None] == np.arange(num_classes)).astype(dtype)


def embedding(indices: Any, weight: Any) -> Any:
    """Return the rows of a table that indices name.

    >>> embedding([1, 1], [[1.0, 2.0], [3.0, 4.0]])
    tensor([[3., 4.],
            [3., 4.]])
    """
    return np.take(as_tensor(weight), as_tensor(indices), axis=0)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    is_causal: bool = False,
    scale: Any = None,
) -> Any:
    """Return sums of values weighted by the softmax of the products of queries and keys (Vaswani et al., 2017).

    Args:
        query: an array of shape (..., queries, features).
        key: an array of shape (..., keys, features).
        value: an array of shape (..., keys, features of the result).
        attn_mask: truth values that say what is attended to, or numbers to add to the products.
        is_causal: whether query i attends to the keys up to i alone.
        scale: the factor of products; one over the square root of the number of features if it is not given.

    Raises:
        UsageError: there is a mask besides `is_causal`.

    >>> scaled_dot_product_attention(np.zeros((1, 2)), np.ones((3, 2)), [[1.0], [2.0], [6.0]])
    tensor([[3.]])
    """
    q, k, v = map(as_tensor, (query, key, value))
    scores: Any = np.matmul(q, np.swapaxes(k, -1, -2))
    scores = scores * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal and attn_mask is not None:
        given = "a mask and is_causal=True"
        raise UsageError(describe("scaled_dot_product_attention", given, "one of them is needed", "Leave one out"))
    mask = np.tri(*scores.shape[-2:]).astype(bool) if is_causal else attn_mask
    if mask is not None:
        mask = as_tensor(mask)
        scores = np.where(mask, scores, -np.inf) if mask.dtype.kind == "b" else scores + mask
    return np.matmul(softmax(scores), v)
