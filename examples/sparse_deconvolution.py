"""Sparse deconvolution: when a few sudden things happened, from a record in which each left a slow trace.

A record y = k * x + noise is the convolution of a few spikes x, at unknown times and of unknown heights, with a known
pulse k. The spikes minimise |k * x - y|^2 / 2 + w sum |x_i|, whose second term makes most of them exactly 0. The fast
iterative shrinkage-thresholding algorithm repeats, with L the greatest curvature of the first term, g its gradient, and
t_1 = 1,

    x_n = S(z_n - g(z_n) / L, w / L),
    t_(n+1) = (1 + sqrt(1 + 4 t_n^2)) / 2,
    z_(n+1) = x_n + (t_n - 1) / t_(n+1) (x_n - x_(n-1)),

where S moves every number towards 0 by w / L; it ends when x rests. At the minimum |g_i| <= w everywhere, and g_i = -w
sign(x_i) at spikes. L is found by power iteration with products of the Hessian and a vector.

Source: A. Beck and M. Teboulle, A fast iterative shrinkage-thresholding algorithm for linear inverse problems, SIAM
journal on imaging sciences 2, 2009, section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert.scipy.signal import convolve


class Result(NamedTuple):
    """Hold what was found."""

    record: Array  # shape (samples,)
    true: Array  # shape (samples,), the spikes
    found: Array  # shape (samples,)
    iterations: int  # how many it took
    largest_slope: float  # the greatest |g_i| / w, which is 1 at a minimum with spikes
    spike_error: float  # how far g_i / w is from -sign(x_i) at spikes


def misfit(x: Any, record: Array, pulse: Array) -> Any:
    """Return |k * x - y|^2 / 2."""
    return np.sum((convolve(x, pulse)[: len(record)] - record) ** 2) / 2


def curvature(record: Array, pulse: Array) -> Any:
    """Return the greatest eigenvalue of the Hessian of the misfit."""
    point = np.zeros(len(record))
    product = wg.jit(lambda v: wg.hvp(lambda x: misfit(x, record, pulse), (point,), (v,))[0])
    v = np.sin(np.arange(len(record)) + 1.0)
    for _ in range(50):
        v = product(v / np.linalg.norm(v))
    return np.linalg.norm(v)


@wg.jit
def spikes(record: Array, pulse: Array, weight: float, curved: float) -> Any:
    """Return the minimum, and how many iterations it took."""
    slope = wg.grad(misfit)
    x = z = np.zeros_like(record)
    t, moved, count = 1.0, 1.0, 0
    while moved > 1e-8 and count < 20_000:
        step = z - slope(z, record, pulse) / curved
        new = np.sign(step) * np.maximum(np.abs(step) - weight / curved, 0)
        following = (1 + np.sqrt(1 + 4 * t**2)) / 2
        z = new + (t - 1) / following * (new - x)
        moved = np.max(np.abs(new - x))
        x, t, count = new, following, count + 1
    return x, count


def main(samples: int = 200, number: int = 8, noise: float = 0.02, weight: float = 0.1, seed: int = 1) -> Result:
    """Find spikes in a simulated record."""
    random = np.random.default_rng(seed)
    true = np.zeros(samples)
    true[random.choice(samples - 20, number, replace=False)] = random.uniform(0.5, 1.5, number)
    time = np.arange(40.0)
    pulse = np.exp(-time / 8) - np.exp(-time / 2)
    record = convolve(true, pulse)[:samples] + noise * random.standard_normal(samples)
    found, iterations = spikes(record, pulse, weight, curvature(record, pulse))
    slope = wg.grad(misfit)(found, record, pulse) / weight
    at_spikes = np.abs(slope + np.sign(found))[found != 0]
    return Result(record, true, found, int(iterations), float(np.max(np.abs(slope))), float(np.max(at_spikes)))


def draw(result: Result) -> object:
    """Draw the record, and the spikes."""
    drawn, (left, right) = figure(1, 2)
    left.plot(result.record, "k", linewidth=0.8)
    left.set(xlabel="sample", ylabel="record")
    places = np.flatnonzero(result.true)
    right.plot(places, result.true[places], "ko", markerfacecolor="none", label="true")
    right.vlines(np.flatnonzero(result.found), 0, result.found[result.found != 0], color="C0", label="found")
    right.set(xlabel="sample", ylabel="spikes")
    right.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
