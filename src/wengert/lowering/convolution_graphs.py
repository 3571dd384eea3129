"""Convolutions as other operations that take less time.

Long ones of sequences are correlations of several channels, which tiles of the native function need. Correlations with
kernels of one point, and those that have one place, as the derivative by such kernels does, are products of matrices.
Where images have zeros between their elements, as in derivatives by images of what is strided, each phase of places is
a correlation with the taps that do not meet these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.forms.label_products import Sequences
from wengert.core.graph.equation import Equation
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply
from wengert.emission.products.tiled_functions import SCALARS
from wengert.primitives.signals.convolution import correlation
from wengert.primitives.signals.windows import Geometry, Lengths, result_lengths

CHANNELS = 8
"""Of the result: as many as tiles have. One channel takes three times as long, since each number is loaded for it; of
fewer places than terms lanes run along the terms."""

Computation = Callable[..., tuple[Any, Any]]
"""What computes a result, and perhaps whether something holds that has to."""


def convolution_graph(equation: Equation, taps_are_finite: bool) -> Computation | None:
    """Return what computes a convolution or correlation by other operations; None if it is none, or better as it is.

    Taps may be known to be finite.
    """
    if equation.primitive is not correlation:
        return long_convolution(equation)
    if is_product(equation):
        return product_of_points
    if is_spread(**equation.params):
        return correlate_by_phases
    return None if taps_are_finite or not has_zeros(**equation.params) else correlate_finite


def has_zeros(*, spread: Lengths, low: Lengths, high: Lengths, **_windows: Lengths) -> bool:
    """Tell whether there are zeros between elements of images, or around them."""
    return max(spread) > 1 or max(*low, *high) > 0


def correlate_finite(x: Any, w: Any, **space: Lengths) -> tuple[Any, Any]:
    """Return a correlation, and whether all taps are finite: else NumPy says by which of them zeros are multiplied."""
    return apply(correlation, x, w, **space), is_finite(w)


def is_spread(*, stride: Lengths, dilation: Lengths, spread: Lengths, **_around: Lengths) -> bool:
    """Tell whether there are zeros between elements of images, along axes whose places and taps are side by side."""
    simple = all(step == gap == 1 for step, gap, far in zip(stride, dilation, spread, strict=True) if far > 1)
    return simple and max(spread) > 1


def correlate_by_phases(x: Any, w: Any, **space: Lengths) -> tuple[Any, Any]:
    """Return a correlation of images with zeros between elements, phase by phase of the last axis that has them.

    Beside it is whether all taps are finite: others times these zeros are no numbers.
    """
    return by_phases(x, w, Geometry(**space)), is_finite(w)


def by_phases(x: Any, w: Any, space: Geometry) -> Any:
    """Return a correlation, phase by phase of the last axis with zeros between elements, if there is one.

    The place s q + r meets elements where s divides r + k - low, k = k0 + s m: those are q + m - (low - r - k0) / s.
    """
    rank = len(space.spread)
    axis = max([n for n in range(rank) if space.spread[n] > 1], default=None)
    if axis is None:
        return apply(correlation, x, w, **space._asdict())
    far, low = space.spread[axis], space.low[axis]
    length = result_lengths(x.shape[-rank:], w.shape[-rank:], space)[axis]
    count, phases = -(-length // far), dict[int, Any]()
    for r in range(far):
        first = (low - r) % far
        taps = along_axis(w, axis - rank, slice(first, None, far))
        if 0 in taps.shape:
            continue  # no tap meets an element
        before = (low - r - first) // far
        behind = count - 1 + taps.shape[axis - rank] - x.shape[axis - rank] - before
        changes = {"spread": 1, "low": before, "high": behind}
        inner = space._replace(**{name: with_entry(getattr(space, name), axis, n) for name, n in changes.items()})
        phases[r] = by_phases(x, taps, inner)
    zeros = np.zeros_like(next(iter(phases.values())))
    found = np.stack([phases.get(r, zeros) for r in range(far)], axis - rank)  # behind the axis
    shape = found.shape
    found = found.reshape(*shape[: axis - rank - 1], count * far, *shape[len(shape) + axis - rank + 1 :])
    return along_axis(found, axis - rank, slice(length))


def along_axis(x: Any, axis: int, part: slice) -> Any:
    """Return a part of an array along an axis that is counted from the end."""
    index: Any = (..., part, *[slice(None)] * (-1 - axis))
    return x[index]


def with_entry(numbers: Lengths, place: int, number: int) -> Lengths:
    """Return numbers with another one at a place."""
    return (*numbers[:place], number, *numbers[place + 1 :])


def is_product(equation: Equation) -> bool:
    """Tell whether an equation is a correlation with kernels of one point, or with one place, and nothing around."""
    params, avals = equation.params, [aval_of(x) for x in (*equation.inputs, *equation.outputs)]
    if any(x.dtype.name not in SCALARS for x in avals):
        return False
    rank = len(params["stride"])
    size, kernel, places = (x.shape[-rank:] for x in avals)
    one, none = (1,) * rank, (0,) * rank
    if params["low"] != none or params["high"] != none or params["spread"] != one or len({x.dtype for x in avals}) > 1:
        return False
    if kernel == one:
        return bool(places == size)
    return bool(places == one and kernel == size)


def product_of_points(x: Any, w: Any, **space: Any) -> tuple[Any, None]:
    """Return a correlation with kernels of one point, or with one place: a product of matrices, or of their stacks."""
    rank = len(space["stride"])
    of_space = "xyz"[-rank:]
    if math.prod(w.shape[-rank:]) > 1:
        return np.einsum(f"...nc{of_space},...oc{of_space}->...no", x, w)[(..., *[None] * rank)], None
    return np.einsum(f"...nc{of_space},...oc->...no{of_space}", x, w[(..., *[0] * rank)]), None


def long_convolution(equation: Equation) -> Computation | None:
    """Return what computes the convolution of two sequences of an equation; None if it is something else.

    Beside the result it gives whether all numbers are finite: others are not to be multiplied with zeros around them.
    """
    form = form_of(equation.primitive)
    if not isinstance(form, Contraction) or len(equation.inputs) != 2:
        return None
    avals = [*map(aval_of, equation.inputs), aval_of(equation.outputs[0])]
    if any(x.dtype.name not in SCALARS for x in avals):
        return None
    labels = form.record([x.shape for x in avals[:2]], equation.params)
    sequences = None if labels.relation is None else labels.sequences
    if sequences is None or len({x.dtype for x in avals}) > 1:
        return None
    return lambda x, y, **_: (convolve_in_channels(x, y, sequences), np.logical_and(is_finite(x), is_finite(y)))


def is_finite(x: Any) -> Any:
    """Tell whether all numbers of an array are finite."""
    return np.all(np.isfinite(x))


def convolve_in_channels(x: Any, y: Any, sequences: Sequences) -> Any:
    """Return the convolution of two sequences: of eight channels each has every eighth place of the result."""
    x, y = (own[flip] for own, flip in zip((x, y), sequences.flips, strict=True))
    if len(y) > len(x):
        x, y = y, x
    start, stop = sequences.part.start, sequences.part.stop
    first = start - (len(y) - 1 if sequences.mode == "full" else 0)  # the place in x of the first term
    channels = CHANNELS if stop - start >= len(y) else 1
    places = -(-(stop - start) // channels)
    end = first + places * channels + len(y) - 1
    kernels = y[None, ::-1] if channels == 1 else shifted_rows(y[::-1], channels)
    images = x[max(first, 0) : min(end, len(x))][None, None]
    space = {"stride": (channels,), "dilation": (1,), "spread": (1,)}
    space |= {"low": (max(-first, 0),), "high": (max(end - len(x), 0),)}
    (found,) = apply(correlation, images, kernels[:, None], **space)
    found = found.T.reshape(-1)[: stop - start]
    if sequences.filled is None:
        return found
    count, filled = sequences.filled
    before, behind = (np.zeros(n, y.dtype) for n in (filled.start, count - filled.stop))
    return np.concatenate([before, found, behind])


def shifted_rows(y: Any, count: int) -> Any:
    """Return rows with a sequence, which begins one place later in each, and zeros around it."""
    zeros = np.zeros(count - 1, y.dtype)
    around = np.concatenate([zeros, y, zeros])
    return np.stack([around[k : k + len(y) + count - 1] for k in reversed(range(count))])
