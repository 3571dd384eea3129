"""Membrane: the soap film in a bent frame, by finite elements and Newton's method with a sparse Hessian.

A film of height u over a square has the area

    A(u) = integral of sqrt(1 + u_x^2 + u_y^2),

which a film in a fixed frame makes as small as it can. On triangles the height is linear, so its slopes are constant
there, and the area is a sum over triangles of a function of three heights each. Its Hessian has seven elements a row;
where they are is found in the program, and each is computed once. Newton's method solves a sparse system at a time,
with half the step where the area would grow.

Scherk's surface u = log(cos y / cos x) is such a film, so the frame has its heights, and the error is known.

Source: S. C. Brenner and L. R. Scott, The mathematical theory of finite element methods, 2008, chapter 3; H. F. Scherk,
Bemerkungen ueber die kleinste Flaeche innerhalb gegebener Grenzen, 1835.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import spsolve

import wengert as wg
from examples._program import Array, command, figure
from wengert import sparse

HALF = 1.2  # half the side of the square, below pi / 2, where Scherk's surface is infinite


class Result(NamedTuple):
    """Hold the film, and what it took."""

    heights: Array  # shape (points, points)
    unknowns: int
    elements: int  # of the Hessian
    area: float
    largest_error: float  # of the heights, by Scherk's surface
    gradients: Array  # the largest element of the gradient in each step


def area(heights: Any, spacing: float) -> Any:
    """Return the area of a film over squares that are cut into two triangles each."""
    right, up = np.diff(heights, axis=0) / spacing, np.diff(heights, axis=1) / spacing
    lower = np.sqrt(1.0 + right[:, :-1] ** 2 + up[:-1] ** 2)
    upper = np.sqrt(1.0 + right[:, 1:] ** 2 + up[1:] ** 2)
    return spacing**2 / 2 * (np.sum(lower) + np.sum(upper))


def main(points: int = 65, steps: int = 20) -> Result:
    """Find the film in Scherk's frame, from a flat one."""
    x = np.linspace(-HALF, HALF, points)
    exact = np.log(np.cos(x) / np.cos(x)[:, None])
    spacing = x[1] - x[0]

    def area_of(inner: Any) -> Any:
        heights = np.array(exact, like=inner)
        heights[1:-1, 1:-1] = np.reshape(inner, (points - 2, points - 2))
        return area(heights, spacing)

    value_and_gradient, hessian = wg.jit(wg.value_and_grad(area_of)), sparse.hessian(area_of, format="csc")
    inner, largest = np.zeros((points - 2) ** 2), []
    for _ in range(steps):
        value, gradient = value_and_gradient(inner)
        largest.append(np.max(np.abs(gradient)))
        if largest[-1] < 1e-12:
            break
        step = -spsolve(hessian(inner), gradient)
        while value_and_gradient(inner + step)[0] > value + 1e-13:
            step = step / 2
        inner = inner + step
    film = exact.copy()
    film[1:-1, 1:-1] = inner.reshape(points - 2, points - 2)
    error = float(np.max(np.abs(film - exact)))
    return Result(film, inner.size, hessian(inner).nnz, float(value_and_gradient(inner)[0]), error, np.array(largest))


def draw(result: Result) -> object:
    """Draw the film, and how fast Newton's method found it."""
    drawn, (left, right) = figure(1, 2)
    every = max(1, len(result.heights) // 32)  # a smaller file
    shown = left.contourf(
        result.heights[::every, ::every].T, levels=9, cmap="coolwarm", extent=(-HALF, HALF, -HALF, HALF)
    )
    left.set(xlabel="x", ylabel="y", aspect="equal")
    drawn.colorbar(shown, ax=left, label="height")
    right.semilogy(result.gradients, "o-", markersize=3)
    right.set(xlabel="step of Newton's method", ylabel="largest element of the gradient")
    return drawn


if __name__ == "__main__":
    command(main, draw)
