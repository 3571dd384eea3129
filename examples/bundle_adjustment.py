"""Compute the sparse Jacobian of bundle adjustment: cameras and points such that each is seen where it was measured.

    python -m examples.bundle_adjustment [FILE ...] [--jit]

Each residual depends on one camera, one point and one weight, so its derivative is a dense block of 2 x 15. A function
of one observation is written; `wengert.vmap` of its Jacobian gives all blocks, which are the data of a sparse matrix.
The problem is that of ADBench (Srajer, Kukelova and Fitzgibbon 2018, "A benchmark of selected algorithmic
differentiation tools on some problems in computer vision and machine learning", OMS 33); files have its inputs and
expected values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import wengert as wg
from examples._program import PUBLISHED, on_files, timed

DATA = [PUBLISHED / "ba_mixed.npz"]
Array = np.ndarray[Any, Any]


def rotated(r: Any, v: Any) -> Any:
    """Return a vector turned about `r` by the length of `r` (Rodrigues's formula), which may be 0."""
    squared = np.sum(r**2)
    angle = np.sqrt(np.where(squared > 0, squared, 1.0))
    axis = r / angle
    turned = v * np.cos(angle) + np.cross(axis, v) * np.sin(angle) + axis * np.sum(axis * v) * (1 - np.cos(angle))
    return np.where(squared > 0, turned, v + np.cross(r, v))


def residual(camera: Any, point: Any, weight: Any, measured: Any) -> Any:
    """Return how far from where it was measured a camera sees a point, times a weight.

    Args:
        camera: rotation, centre, focal length, principal point, and two coefficients of distortion: 11 numbers.
        point: where the point is, 3 numbers.
        weight: of the observation.
        measured: where in its picture the camera saw the point, 2 numbers.
    """
    seen = rotated(camera[:3], point - camera[3:6])
    plane = seen[:2] / seen[2]
    radius = np.sum(plane**2)
    distortion = 1 + camera[9] * radius + camera[10] * radius**2
    return weight * (camera[6] * distortion * plane + camera[7:9] - measured)


def weight_residual(weight: Any) -> Any:
    """Return what keeps a weight from vanishing."""
    return 1 - weight**2


def sparse(blocks: Sequence[Array], slopes: Array, seen: Array, cameras: int, points: int) -> Any:
    """Return the Jacobian of all residuals: two rows for each observation, and then one for each weight."""
    count, at = len(seen), 11 * cameras + 3 * points + np.arange(len(seen))
    of_camera, of_point = 11 * seen[:, :1] + np.arange(11), 11 * cameras + 3 * seen[:, 1:] + np.arange(3)
    columns = np.concatenate([of_camera, of_point, at[:, None]], axis=1)
    data = np.concatenate([*blocks[:2], blocks[2][..., None]], axis=2)
    starts = np.concatenate([15 * np.arange(2 * count), 30 * count + np.arange(count + 1)])
    entries = np.concatenate([data.ravel(), slopes])
    indices = np.concatenate([np.repeat(columns, 2, axis=0).ravel(), at])
    return scipy.sparse.csr_array((entries, indices, starts), shape=(3 * count, 11 * cameras + 3 * points + count))


def problem(data: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return cameras, points, weights, measurements, and who saw what; some files have one of each, to be repeated."""
    if "cams" in data:
        return data["cams"], data["X"], data["w"], data["feats"], data["obs"]
    n, m, p = (int(data[name]) for name in "nmp")
    seen = np.stack([np.arange(p) % n, np.arange(p) % m], axis=1)
    copied = zip(("cam", "point", "weight", "feature"), (n, m, p, p), strict=True)
    return *(np.repeat(data[name][None], count, axis=0) for name, count in copied), seen


def main(paths: Sequence[Path] = DATA, jit: bool = False) -> dict[str, tuple[Array, Any]]:
    """Compute residuals and their Jacobian for each file, print how long it takes, and return them."""
    transformed = wg.jit if jit else lambda function: function
    values = transformed(wg.vmap(residual))
    jacobians = transformed(wg.vmap(wg.jacfwd(residual, argnums=(0, 1, 2))))
    slope = transformed(wg.elementwise_grad(weight_residual))

    def evaluate(cameras: Array, points: Array, weights: Array, measured: Array, seen: Array) -> tuple[Array, Any]:
        arguments = cameras[seen[:, 0]], points[seen[:, 1]], weights, measured
        residuals = np.concatenate([values(*arguments).ravel(), weight_residual(weights)])
        return residuals, sparse(jacobians(*arguments), slope(weights), seen, len(cameras), len(points))

    found = {}
    for path in paths:
        (residuals, jacobian), spent = timed(evaluate, *problem(np.load(path)))
        print(f"{path.stem:9} {jacobian.shape} with {jacobian.nnz:,} entries {spent:9.2f} ms")
        found[path.stem] = residuals, jacobian
    return found


if __name__ == "__main__":
    on_files(main)
