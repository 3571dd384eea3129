"""Samples of correlations of images with kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import normal, sample
from wengert.core.values.dispatch import apply
from wengert.primitives.accumulations import feedback
from wengert.primitives.signals.convolution import convolution, correlation

PLAIN = {"stride": (1, 1), "dilation": (1, 1), "spread": (1, 1), "low": (0, 0), "high": (0, 0)}
STRIDED = {"stride": (2, 1), "dilation": (1, 2), "spread": (1, 1), "low": (1, 2), "high": (0, 2)}
SPREAD = {"stride": (1, 1), "dilation": (1, 2), "spread": (2, 1), "low": (1, -1), "high": (0, 1)}


def correlate(x: Any, w: Any, **options: Any) -> Any:
    """Correlate images with kernels."""
    return apply(correlation, x, w, **options)


def convolve(x: Any, w: Any, bias: Any, **options: Any) -> Any:
    """Correlate images with kernels and add numbers."""
    return apply(convolution, x, w, bias, **options)


POLES = np.array([1.5, -0.6, 0.2])

SAMPLES = [
    sample("feedback", lambda a, x: apply(feedback, a, x), POLES, normal(2, 5)),
    sample("correlation", correlate, normal(1, 2, 2, 4, 3), normal(1, 3, 2, 2, 2), **PLAIN),
    sample("correlation", correlate, normal(2, 2, 4, 3), normal(3, 2, 2, 2), **PLAIN),
    sample("convolution", convolve, normal(2, 2, 4, 3), normal(3, 2, 2, 2), normal(3), **PLAIN),
    sample("convolution", convolve, normal(2, 1, 2, 4, 3), normal(2, 2, 2, 2, 2), normal(2, 2), **STRIDED),
    sample("correlation", correlate, normal(2, 1, 2, 4, 3), normal(2, 2, 2, 2, 2), **STRIDED),
    sample("correlation", correlate, normal(2, 2, 1, 3, 4), normal(2, 1, 1, 2, 2), **SPREAD),
]
