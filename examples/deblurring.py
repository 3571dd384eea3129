"""Deblurring: a sharp image from a blurred and noisy one.

A camera out of focus sees y = k * x + noise, where k is a bell and * the convolution. Dividing by k in Fourier's space
blows the noise up; so the image x is sought that minimises

    |k * x - y|^2 / (2 s^2) + w sum_ij sqrt((x_(i+1)j - x_ij)^2 + (x_i(j+1) - x_ij)^2 + e^2),

where the second term, the total variation, is small for areas of one colour with sharp edges; e makes it
differentiable. L-BFGS goes downhill with one gradient for all pixels. What is improved is measured by the peak signal
to noise ratio, -10 log10 of the mean squared error.

Source: L. I. Rudin, S. Osher and E. Fatemi, Nonlinear total variation based noise removal algorithms, Physica D 60,
1992; C. R. Vogel and M. E. Oman, Fast, robust total variation-based reconstruction, IEEE Transactions on image
processing 7, 1998.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from examples._program import Array, command, figure
from wengert import optim
from wengert.scipy.signal import fftconvolve

EDGE = 1e-3
"""The e of the total variation."""


class Result(NamedTuple):
    """Hold the images."""

    sharp: Array  # shape (size, size), from 0 to 1
    seen: Array  # shape (size, size), blurred and noisy
    found: Array  # shape (size, size)
    ratio_before: float  # the peak signal to noise ratio of what was seen, in decibels
    ratio_after: float  # that of what was found


def scene(size: int) -> Array:
    """Return an image of a disc, a square and bars."""
    y, x = np.mgrid[:size, :size] / size
    image = np.where((x - 0.35) ** 2 + (y - 0.35) ** 2 < 0.05, 0.9, 0.2)
    image[(x > 0.55) & (x < 0.9) & (y > 0.55) & (y < 0.9)] = 0.6
    image[(y > 0.7) & (x < 0.45) & (np.floor(x * 24) % 2 == 1)] = 1.0
    return image


def bell(radius: int, width: float) -> Array:
    """Return a blur of sum 1."""
    place = np.arange(-radius, radius + 1)
    weights = np.exp(-(place**2) / (2 * width**2))
    square: Array = np.outer(weights, weights)
    return square / np.sum(square)


def blurred(image: Any, kernel: Array) -> Any:
    """Return the convolution of an image, continued by its border, with a kernel."""
    wide = np.pad(image, len(kernel) // 2, mode="edge")
    return fftconvolve(wide, kernel, mode="valid")


def variation(image: Any) -> Any:
    """Return the total variation."""
    down, right = np.diff(image, axis=0)[:, :-1], np.diff(image, axis=1)[:-1]
    return np.sum(np.sqrt(down**2 + right**2 + EDGE**2))


def ratio(image: Array, sharp: Array) -> float:
    """Return the peak signal to noise ratio."""
    return float(-10 * np.log10(np.mean((image - sharp) ** 2)))


def main(
    size: int = 64, width: float = 1.5, noise: float = 0.01, weight: float = 20.0, iterations: int = 200
) -> Result:
    """Blur an image, and make it sharp again."""
    sharp, kernel = scene(size), bell(4, width)
    seen = blurred(sharp, kernel) + noise * np.random.default_rng(0).standard_normal(sharp.shape)

    def loss(image: Any) -> Any:
        errors = blurred(image, kernel) - seen
        return np.sum(errors**2) / (2 * noise**2) + weight * variation(image)

    found = optim.minimize(loss, seen, method="L-BFGS-B", options={"maxiter": iterations}).x
    return Result(sharp, seen, found, ratio(seen, sharp), ratio(found, sharp))


def draw(result: Result) -> object:
    """Draw the three images."""
    drawn, axes = figure(1, 3)
    names = "sharp", f"seen, {result.ratio_before:.1f} dB", f"found, {result.ratio_after:.1f} dB"
    for ax, image, name in zip(axes, result[:3], names, strict=True):
        ax.imshow(image, cmap="gray", vmin=0, vmax=1)
        ax.set_title(name)
        ax.axis("off")
    return drawn


if __name__ == "__main__":
    command(main, draw)
