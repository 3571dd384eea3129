"""Compute the dense Jacobian of hand tracking: a model with bones, such that it goes through measured points.

    python -m examples.hand_tracking [FILE ...] [--jit]

26 numbers bend the fingers, turn and move the hand. The vertices of its surface follow the bones, each by its weights,
and every measured point has a vertex or a place in a triangle. The problem is that of ADBench (Srajer, Kukelova and
Fitzgibbon 2018, "A benchmark of selected algorithmic differentiation tools on some problems in computer vision and
machine learning", OMS 33); files have its inputs and expected values, and `model_small.npz` beside them the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from examples._program import PUBLISHED, error, on_files, timed
from wengert.scipy.linalg import expm

DATA = [PUBLISHED / "simple_small_hand1.npz", PUBLISHED / "complicated_small_hand1.npz"]
Array = np.ndarray[Any, Any]
FINGERS, BONES = np.repeat(np.arange(5), 4), np.array([2, 2, 3, 4])
"""Which bones of a finger the four numbers of each turn, about x but for the second, which is about z."""


def turned(angles: Any) -> Any:
    """Return the matrices that turn about x and then about z, with shape (bones, 4, 4), for angles (bones, 2)."""
    (cx, cz), (sx, sz) = np.cos(angles).T, np.sin(angles).T
    zero, one = np.zeros_like(cx), np.ones_like(cx)
    rows = [[cz, -sz * cx, sz * sx, zero], [sz, cz * cx, -cz * sx, zero], [zero, sx, cx, zero], [zero, zero, zero, one]]
    return np.moveaxis(np.array(rows, like=cx), -1, 0)


def rotation(r: Any) -> Any:
    """Return the matrix that turns about `r` by the length of `r`."""
    x, y, z = r
    return expm(np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], like=r))


def vertices(theta: Any, model: Mapping[str, Array]) -> Any:
    """Return where the vertices of the model are, with shape (vertices, 3)."""
    angles = np.zeros((len(model["parents"]), 2), like=theta)
    angles[4 * FINGERS + np.tile(BONES, 5), np.tile([0, 1, 0, 0], 5)] = theta[6:]
    relative = model["base_relatives"] @ turned(angles)
    absolute: list[Any] = []
    for bone, parent in enumerate(model["parents"]):
        absolute.append(relative[bone] if parent < 0 else absolute[parent] @ relative[bone])
    moves = (np.stack(absolute) @ model["inverse_base_absolutes"])[:, :3]
    blended = np.einsum("vb,bij,vj->vi", model["weights"], moves, model["base_positions"], optimize=True)
    return blended @ rotation(theta[:3]).T + theta[3:6]


def on_vertices(theta: Any, data: Mapping[str, Array], model: Mapping[str, Array]) -> Any:
    """Return how far the measured points are from their vertices."""
    return (data["points"] - vertices(theta, model)[data["correspondences"]]).ravel()


def on_triangles(shifted: Any, data: Mapping[str, Array], model: Mapping[str, Array]) -> Any:
    """Return how far the measured points are from their places in triangles, which all move by `shifted[:2]`."""
    place = data["us"] + shifted[:2]
    a, b, c = np.moveaxis(vertices(shifted[2:], model)[model["triangles"][data["correspondences"]]], 1, 0)
    along, across = place[:, :1], place[:, 1:]
    return (data["points"] - (along * a + across * b + (1 - along - across) * c)).ravel()


def main(paths: Sequence[Path] = DATA, jit: bool = False) -> dict[str, float]:
    """Compute residuals and Jacobian for each file, print time and error, and return the errors."""
    errors = {}
    for path in paths:
        model, data = dict(np.load(path.parent / "model_small.npz")), dict(np.load(path))
        function = on_triangles if "us" in data else on_vertices
        parameters = np.concatenate([np.zeros(2 * ("us" in data)), data["theta"]])
        derivative = wg.jacfwd(lambda x, f=function, d=data, m=model: f(x, d, m))
        evaluate = wg.jit(derivative) if jit else derivative
        jacobian, spent = timed(evaluate, parameters)
        residuals = function(parameters, data, model)
        errors[path.stem] = max(error(residuals, data["residuals"]), error(jacobian, data["jacobian"]))
        print(f"{path.stem:23} {jacobian.shape} {spent:9.2f} ms   error {errors[path.stem]:.1e}")
    return errors


if __name__ == "__main__":
    on_files(main)
