"""Pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.errors import UsageError
from wengert.nn.functional._arguments import (
    Lengths,
    as_images,
    as_real,
    hinted,
    layer,
    per_axis,
    require_room,
    window_spans,
)


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
