"""Convolutions, their transposes, and pooling: what is computed of the windows of images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import is_staged
from wengert.errors import ShapeError, UsageError
from wengert.nn.functional._arguments import (
    Lengths,
    as_images,
    as_parameter,
    as_real,
    hinted,
    layer,
    per_axis,
    require_room,
    window_spans,
)
from wengert.primitives.signals.convolution import convolution as primitive
from wengert.primitives.signals.convolution import correlation
from wengert.traces.eager import SEVERAL, eager

correlate, convolve = eager(correlation, SEVERAL), eager(primitive, SEVERAL)


def padding_widths(name: str, padding: Any, spans: Lengths, stride: Lengths) -> tuple[Lengths, Lengths]:
    """Return the numbers of zeros before and behind images."""
    if padding == "valid":
        return (0,) * len(spans), (0,) * len(spans)
    if isinstance(padding, str) and padding != "same":
        raise UsageError(name, f"padding={padding!r}", "'same', 'valid' or numbers are needed", "Pass one of these")
    if padding != "same":
        found = per_axis(name, "padding", padding, len(spans), 0)
        return found, found
    if max(stride) > 1:
        given = f"padding='same' with stride {stride}"
        raise UsageError(name, given, "a stride of 1 is needed", "Pass the padding as numbers")
    low = tuple([(span - 1) // 2 for span in spans])
    return low, tuple([span - 1 - a for span, a in zip(spans, low, strict=True)])


def require_channels(name: str, image: Lengths, kernel: Lengths, groups: int, transposed: bool = False) -> None:
    """Raise a ShapeError unless images have the axes and channels of kernels, in groups."""
    if len(kernel) != len(image):
        needed = f"two axes of channels and {len(image) - 2} of space are needed"
        raise ShapeError(name, f"kernels of shape {kernel}", needed, "Reshape them")
    own, wanted = image[1], kernel[0] if transposed else kernel[1] * groups
    if own != wanted or kernel[0] % groups or own % groups:
        given = f"images with {own} channels and kernels of shape {kernel} in {groups} groups"
        raise ShapeError(name, given, "channels that fit are needed", "Correct the kernels")


def window_parameters(
    name: str, image: Lengths, kernel: Lengths, groups: int, stride: Any, padding: Any, dilation: Any
) -> dict[str, Lengths]:
    """Return where windows are, for which images of a shape must have room, as parameters of the correlation."""
    require_channels(name, image, kernel, groups)
    rank = len(kernel) - 2
    steps, gaps = per_axis(name, "stride", stride, rank), per_axis(name, "dilation", dilation, rank)
    spans = window_spans(kernel[2:], gaps)
    low, high = padding_widths(name, padding, spans, steps)
    require_room(name, tuple([n + a + b for n, a, b in zip(image[2:], low, high, strict=True)]), spans)
    return {"stride": steps, "dilation": gaps, "spread": (1,) * rank, "low": low, "high": high}


known_window_parameters = functools.lru_cache(maxsize=256, typed=True)(window_parameters)


def split_groups(x: Any, w: Any, groups: int) -> tuple[Any, Any]:
    """Return images and kernels with a leading axis for the groups of channels, if there are several."""
    if groups == 1:
        return x, w
    split = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return np.swapaxes(split, 0, 1), w.reshape(groups, w.shape[0] // groups, *w.shape[1:])


def correlate_with_bias(
    name: str, x: Any, w: Any, bias: Any, params: dict[str, Lengths], groups: int, batched: bool
) -> Any:
    """Return correlations with the channels of all groups together, with a number for each added."""
    rank = len(params["stride"])
    bias = as_parameter(name, "bias", bias, (groups * w.shape[-rank - 2],))
    apart = bias is None or not bias.shape or is_staged(x) or is_staged(w) or is_staged(bias)
    found: Any
    if apart:
        found = correlate((x, w), params)
    else:
        found = convolve((x, w, bias if groups == 1 else bias.reshape(groups, -1)), params)
    if groups > 1:
        found = np.swapaxes(found, 0, 1)
        found = found.reshape(found.shape[0], -1, *found.shape[3:])
    if apart and bias is not None:  # staged: kernels add it where they do what follows
        found = found + bias.reshape(-1, *(1,) * rank)
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

Returns:
    A Tensor of images with the channels of the result; with a batch if they came with one.

Raises:
    ShapeError: the shapes do not fit.
    UsageError: an argument has too many numbers.

>>> {name}(np.ones((1, 2{space})), np.ones((3, 2{kernel}))).shape
(1, 3{found})
"""


def make_convolution(rank: int) -> Callable[..., Any]:
    """Return the convolution of images with some axes of space."""
    name = f"conv{rank}d"

    def conv(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        x, batched = as_images(name, input, rank)
        w: Any = as_tensor(weight)
        try:
            params = known_window_parameters(name, x.shape, w.shape, groups, stride, padding, dilation)
        except TypeError:  # lists have no hash
            params = window_parameters(name, x.shape, w.shape, groups, stride, padding, dilation)
        return correlate_with_bias(name, *split_groups(x, w, groups), bias, params, groups, batched)

    conv.__name__ = conv.__qualname__ = name
    axes = {"name": name, "space": ", 6" * rank, "kernel": ", 3" * rank, "found": ", 4" * rank}
    conv.__doc__ = f"Return the correlation of images with {rank} axes with kernels.{CONVOLUTION.format(**axes)}"
    return layer(conv)


TRANSPOSED = """

Args:
    input: images.
    weight: kernels, of shape (channels, channels of the result / groups, ...).
    bias: a number for each channel of the result.
    stride: how far the places of kernels are apart, one number or one for each axis of space; so are the others.
    padding: by how much the result is cut on each side.
    output_padding: by how much it is longer at the end, less than the stride or the dilation.
    groups: in how many groups channels are divided, each with kernels of its own.
    dilation: how far the elements of kernels are apart.

Returns:
    A Tensor of images with the channels of the result; with a batch if they came with one.

Raises:
    ShapeError: the shapes do not fit, or nothing is left of the result.
    UsageError: an argument has too many numbers, or too small or large ones.

>>> {name}(np.ones((1, 2{space})), np.ones((2, 3{kernel}))).shape
(1, 3{found})
"""


def make_transposed_convolution(rank: int) -> Callable[..., Any]:
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
        x, batched = as_images(name, input, rank)
        w: Any = as_tensor(weight)
        require_channels(name, x.shape, w.shape, groups, transposed=True)
        x, w = split_groups(x, w, groups)
        steps, gaps = per_axis(name, "stride", stride, rank), per_axis(name, "dilation", dilation, rank)
        cuts, more = (
            per_axis(name, "padding", padding, rank, 0),
            per_axis(name, "output_padding", output_padding, rank, 0),
        )
        if any(n >= max(step, gap) for n, step, gap in zip(more, steps, gaps, strict=True)):
            given = f"output_padding={output_padding!r} with stride {steps} and dilation {gaps}"
            raise UsageError(name, given, "less than one of these is needed", "Pad the result instead")
        low = tuple([(n - 1) * gap - cut for n, gap, cut in zip(w.shape[-rank:], gaps, cuts, strict=True)])
        high = tuple([a + b for a, b in zip(low, more, strict=True)])
        lengths = tuple([(n - 1) * step + 1 for n, step in zip(x.shape[-rank:], steps, strict=True)])
        whole = tuple([n + a + b for n, a, b in zip(lengths, low, high, strict=True)])
        require_room(name, whole, window_spans(w.shape[-rank:], gaps))
        turned = np.flip(np.swapaxes(w, -rank - 2, -rank - 1), tuple(range(-rank, 0)))
        params = {"stride": (1,) * rank, "dilation": gaps, "spread": steps, "low": low, "high": high}
        return correlate_with_bias(name, x, turned, bias, params, groups, batched)

    conv_transpose.__name__ = conv_transpose.__qualname__ = name
    axes = {"name": name, "space": ", 4" * rank, "kernel": ", 3" * rank, "found": ", 6" * rank}
    text = TRANSPOSED.format(**axes)
    conv_transpose.__doc__ = f"Return the transpose of the convolution of images with {rank} axes.{text}"
    return layer(conv_transpose)


conv1d, conv2d, conv3d = map(make_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(make_transposed_convolution, (1, 2, 3))


def windows(name: str, x: Any, kernel: Lengths, steps: Lengths, gaps: Lengths) -> Any:
    """Return the windows of images along as many last axes; they are parts of the images where they do not overlap."""
    rank = len(kernel)
    lengths, spans = x.shape[-rank:], window_spans(kernel, gaps)
    require_room(name, lengths, spans)
    if kernel == steps and max(gaps) == 1:
        whole = [n // k * k for n, k in zip(lengths, kernel, strict=True)]
        inside: Any = (..., *map(slice, whole))
        x = x[inside]
        split = [m for n, k in zip(whole, kernel, strict=True) for m in (n // k, k)]
        front = x.ndim - rank
        axes = [*range(front), *range(front, front + 2 * rank, 2), *range(front + 1, front + 2 * rank, 2)]
        return x.reshape(*x.shape[:front], *split).transpose(axes)
    found = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(-rank, 0)))
    taken: Any = (..., *[slice(None, None, n) for n in (*steps, *gaps)])
    return found[taken]


def surround(x: Any, around: Lengths, value: float) -> Any:
    """Return images with a value around them."""
    if not any(around):
        return x
    return np.pad(x, [(0, 0)] * (x.ndim - len(around)) + [(n, n) for n in around], constant_values=value)


def padding_lengths(name: str, padding: Any, kernel: Lengths) -> Lengths:
    """Return by how much images are made longer, at most half a window: others would see nothing of them."""
    found = per_axis(name, "padding", padding, len(kernel), 0)
    if any(2 * n > k for n, k in zip(found, kernel, strict=True)):
        given = f"padding={padding!r} for windows of {kernel}"
        raise UsageError(name, given, "at most half a window is needed", "Pad the images with numpy.pad")
    return found


POOLING = """

Args:
    input: images.
    kernel_size: the lengths of windows, one number or one for each axis of space; so are the others.
    stride: how far windows are apart; as they are long, if it is not given.
    padding: by how much images are made longer on each side, {padded}.
    {last}

Returns:
    A Tensor of images; with a batch if they came with one.

Raises:
    ShapeError: the images have too few axes, or a window is longer than an image.
    UsageError: an argument has too many numbers.

>>> {name}(np.ones((1, 2{space})), 2).shape
(1, 2{found})
"""


def docstring_example(name: str, rank: int) -> dict[str, str]:
    """Return the fields of the example in a docstring, for a number of axes."""
    return {"name": name, "space": ", 6" * rank, "found": ", 3" * rank}


def make_max_pooling(rank: int) -> Callable[..., Any]:
    """Return the pooling by the greatest element."""
    name = f"max_pool{rank}d"

    def max_pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Any:
        x, batched = as_images(name, as_real(name, input), rank)
        kernel = per_axis(name, "kernel_size", kernel_size, rank)
        steps = kernel if stride is None else per_axis(name, "stride", stride, rank)
        x = surround(x, padding_lengths(name, padding, kernel), -np.inf)
        found = windows(name, x, kernel, steps, per_axis(name, "dilation", dilation, rank))
        found = np.max(found, axis=tuple(range(-rank, 0)))
        return found if batched else found[0]

    max_pool.__name__ = max_pool.__qualname__ = name
    last = "dilation: how far the elements of windows are apart."
    text = POOLING.format(**docstring_example(name, rank), padded="with what is less than all elements", last=last)
    max_pool.__doc__ = f"Return the greatest element of each window; those that are equal share the gradient.{text}"
    return hinted(max_pool)


def make_average_pooling(rank: int) -> Callable[..., Any]:
    """Return the pooling by the mean."""
    name = f"avg_pool{rank}d"

    def avg_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = True
    ) -> Any:
        x, batched = as_images(name, input, rank)
        kernel = per_axis(name, "kernel_size", kernel_size, rank)
        steps = kernel if stride is None else per_axis(name, "stride", stride, rank)
        zeros = padding_lengths(name, padding, kernel)
        axes = tuple(range(-rank, 0))
        found = np.mean(windows(name, surround(x, zeros, 0.0), kernel, steps, (1,) * rank), axis=axes)
        if any(zeros) and not count_include_pad:
            inside = surround(np.ones(x.shape[2:]), zeros, 0.0)
            found = found / np.mean(windows(name, inside, kernel, steps, (1,) * rank), axis=axes).astype(x.dtype)
        return found if batched else found[0]

    avg_pool.__name__ = avg_pool.__qualname__ = name
    last = "count_include_pad: whether the zeros around images count."
    text = POOLING.format(**docstring_example(name, rank), padded="with zeros", last=last)
    avg_pool.__doc__ = f"Return the mean of each window.{text}"
    return layer(avg_pool)


max_pool1d, max_pool2d, max_pool3d = map(make_max_pooling, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(make_average_pooling, (1, 2, 3))
