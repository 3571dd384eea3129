"""Convolutions as other operations that take less time.

Long ones of sequences are correlations of several channels, which tiles of the native function need. Correlations with
kernels of one point, and those that have one place, as the derivative by such kernels does, are products of matrices.
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

CHANNELS = 8
"""Of the result: as many as tiles have. One channel takes three times as long, since each number is loaded for it; of
fewer places than terms lanes run along the terms."""


Computed = Callable[..., tuple[Any, Any]]
"""What computes a result, and perhaps whether something holds that has to."""


def convolution_graph(equation: Equation) -> Computed | None:
    """Return what computes a convolution or correlation by other operations; None if it is none, or better as it is."""
    return product_of_points if is_product(equation) else long_convolution(equation)


def is_product(equation: Equation) -> bool:
    """Tell whether an equation is a correlation with kernels of one point, or with one place, and nothing around."""
    params, avals = equation.params, [aval_of(x) for x in (*equation.inputs, *equation.outputs)]
    if equation.primitive is not correlation or any(x.dtype.name not in SCALARS for x in avals):
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


def long_convolution(equation: Equation) -> Computed | None:
    """Return what computes the convolution of two sequences of an equation; None if it is something else.

    Beside the result it gives whether all numbers are finite: others are not to be multiplied with zeros around them.
    """
    form = form_of(equation.primitive)
    avals = [*map(aval_of, equation.inputs), aval_of(equation.outputs[0])]
    if not isinstance(form, Contraction) or len(avals) != 3 or any(x.dtype.name not in SCALARS for x in avals):
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
    kernels = y[None, ::-1] if channels == 1 else one_behind_the_other(y[::-1], channels)
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


def one_behind_the_other(y: Any, count: int) -> Any:
    """Return rows with a sequence, which begins one place later in each, and zeros around it."""
    zeros = np.zeros(count - 1, y.dtype)
    around = np.concatenate([zeros, y, zeros])
    return np.stack([around[k : k + len(y) + count - 1] for k in reversed(range(count))])
