"""The programs of `python -m benchmarks jit` whose Jacobians are wanted, and decompositions of many small matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compiled_list import Array, Example, Wanted, rng

__all__ = ["JACOBIANS"]

PUBLISHED = Path(__file__).parent.parent / "examples/data/published"
FINGERS, BONES = np.repeat(np.arange(5), 4), np.array([2, 2, 3, 4])
"""Which bones of a finger the four numbers of each turn, about x but for the second, which is about z."""


@functools.cache
def arrays_of(name: str) -> Mapping[str, Array]:
    """Return the arrays of a file of ADBench (Srajer, Kukelova and Fitzgibbon 2018)."""
    return dict(np.load(PUBLISHED / f"{name}.npz"))


def rotated(xp: Any, r: Any, v: Any) -> Any:
    """Return a vector turned about `r` by the length of `r`, which may be 0."""
    squared = xp.sum(r**2)
    angle = xp.sqrt(xp.where(squared > 0, squared, 1.0))
    axis = r / angle
    turned = v * xp.cos(angle) + xp.cross(axis, v) * xp.sin(angle) + axis * xp.sum(axis * v) * (1 - xp.cos(angle))
    return xp.where(squared > 0, turned, v + xp.cross(r, v))


def seen_from(xp: Any, camera: Any, point: Any, weight: Any, measured: Any) -> Any:
    """Return how far from where it was measured a camera sees a point, times a weight."""
    seen = rotated(xp, camera[:3], point - camera[3:6])
    plane = seen[:2] / seen[2]
    radius = xp.sum(plane**2)
    distortion = 1 + camera[9] * radius + camera[10] * radius**2
    return weight * (camera[6] * distortion * plane + camera[7:9] - measured)


def observations() -> list[Array]:
    """Return camera, point, weight and measurement of each observation."""
    data = arrays_of("ba_mixed")
    seen = data["obs"]
    return [data["cams"][seen[:, 0]], data["X"][seen[:, 1]], data["w"], data["feats"]]


def turned(xp: Any, angles: Any) -> Any:
    """Return the matrices that turn about x and then about z."""
    (cx, cz), (sx, sz) = xp.cos(angles).T, xp.sin(angles).T
    zero, one = xp.zeros_like(cx), xp.ones_like(cx)
    rows = [[cz, -sz * cx, sz * sx, zero], [sz, cz * cx, -cz * sx, zero], [zero, sx, cx, zero], [zero, zero, zero, one]]
    return xp.moveaxis(xp.stack([xp.stack(row) for row in rows]), -1, 0)


def hand(
    xp: Any, theta: Any, points: Any, at: Any, relatives: Any, inverses: Any, weights: Any, positions: Any, bends: Any
) -> Any:
    """Return how far measured points are from the vertices of a hand whose fingers 20 of 26 numbers bend."""
    relative = relatives @ turned(xp, xp.reshape(bends @ theta[6:], (-1, 2)))
    absolute: list[Any] = []
    for bone, parent in enumerate(arrays_of("model_small")["parents"].tolist()):
        absolute.append(relative[bone] if parent < 0 else absolute[parent] @ relative[bone])
    moves = (xp.stack(absolute) @ inverses)[:, :3]
    blended = xp.sum(weights[:, :, None] * xp.einsum("bij,vj->vbi", moves, positions), axis=1)
    x, y, z = theta[0], theta[1], theta[2]
    angle = xp.sqrt(x * x + y * y + z * z)
    cross = xp.stack([xp.stack([0 * x, -z, y]), xp.stack([z, 0 * x, -x]), xp.stack([-y, x, 0 * x])]) / angle
    rotation = xp.eye(3) + xp.sin(angle) * cross + (1 - xp.cos(angle)) * (cross @ cross)
    return xp.ravel(points - (blended @ rotation.T + theta[3:6])[at])


def measured_hand() -> list[Array]:
    """Return 26 numbers of a hand, measured points with their vertices, and the model."""
    data, model = arrays_of("simple_small_hand1"), arrays_of("model_small")
    bends = np.zeros((len(model["parents"]), 2, 20))
    bends[4 * FINGERS + np.tile(BONES, 5), np.tile([0, 1, 0, 0], 5), np.arange(20)] = 1.0
    names = "base_relatives", "inverse_base_absolutes", "weights", "base_positions"
    own = [data["theta"], data["points"], data["correspondences"], *[model[name] for name in names]]
    return [*own, np.reshape(bends, (-1, 20))]


def tied(xp: Any, weights: Any, x: Any) -> Any:
    """Return what a perceptron gives whose second layer is the transpose of the first."""
    return xp.tanh(xp.tanh(x @ weights) @ weights.T)


def definite(count: int, size: int) -> Callable[[], list[Array]]:
    """Return what draws positive definite matrices."""

    def draw() -> list[Array]:
        roots = rng.normal(size=(count, size, size))
        return [roots @ roots.mT + size * np.eye(size)]

    return draw


def even(a: Any) -> Any:
    """Return the symmetric part of matrices: libraries differ in which triangle gets the gradient."""
    return (a + a.mT) / 2


DECOMPOSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Cholesky factors": lambda xp, a: xp.sum(xp.linalg.cholesky(even(a)) ** 4),
    "inverses": lambda xp, a: xp.sum(xp.linalg.inv(a) ** 2),
    "determinants": lambda xp, a: xp.sum(xp.linalg.slogdet(a)[1]),
    "QR factors": lambda xp, a: xp.sum(xp.linalg.qr(a)[1] ** 4),
    "eigenvalues": lambda xp, a: xp.sum(xp.linalg.eigvalsh(even(a)) ** 3),
    "eigenvectors": lambda xp, a: xp.sum(xp.linalg.eigh(even(a))[1] ** 4),
    "singular values": lambda xp, a: xp.sum(xp.linalg.svdvals(a) ** 3),
}
SIZES: Sequence[int] = (4, 10)
ROWS: Wanted = "rows of the Jacobian"

JACOBIANS = [
    Example("bundle adjustment", seen_from, observations, "each element's Jacobian", (0, 1, 2)),
    Example("hand tracking", hand, measured_hand, "Jacobian"),
    Example(
        "Jacobian of a perceptron", tied, lambda: [0.2 * rng.normal(size=(20, 20)), rng.normal(size=(5, 20))], ROWS
    ),
    *[
        Example(f"1,000 {name} of {n} x {n}", function, definite(1_000, n), over=(0,))
        for name, function in DECOMPOSITIONS.items()
        for n in SIZES
    ],
]
"""All of them; names are unique."""
