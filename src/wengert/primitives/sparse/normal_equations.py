"""Normal equations (A^T A + d^2) z = c of any right side c, which derivatives of least squares are made of.

`lsqr` of A^T w = c gives the shortest w alone, and A z = w takes as long again. Conjugate gradients give both at once:
they are those of M. R. Hestenes and E. Stiefel (Methods of conjugate gradients for solving linear systems, 1952), whose
products w = A z are those of the method of E. J. Craig (The N-step iteration procedures, 1955). Of A^T A none is made:
p^T A^T A p is |A p|^2 (H. Calandra and others, On iterative solution of the extended normal equations, SIAM Journal on
Matrix Analysis and Applications, 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Product = Callable[[Any], Any]
MOST_CONDITION = 1e15
"""The greatest condition where nobody says it: lengths of products are not known better."""


def conjugate_gradients(
    ahead: Product, back: Product, right: Any, damp: float, atol: float, btol: float, conlim: float, most: int
) -> Any:
    """Return the z with A^T A z + damp^2 z = right, or None where the columns of A depend on each other, or nearly.

    It ends where `lsqr` of A^T w = right does: at residuals of btol |right| + atol |A| |w|. Those of `lsqr` are smaller
    than those here, as 1 / |r|^2 is the sum of 1 / |r_i|^2 until then (R. Weiss, Error-minimizing Krylov subspace
    methods, SIAM Journal on Scientific Computing, 1994), but w = A z is nearer to its solution here.

    Args:
        ahead: from a vector x to A x.
        back: from y to A^T y, an array that nobody else has.
        right: a vector.
        damp: the damping d.
        atol: how exact the elements of A are.
        btol: how exact the right side is.
        conlim: the greatest condition of A; 0 for any.
        most: the most iterations.
    """
    missed, direction = np.array(right, float), np.array(right, float)
    found, room = np.zeros_like(missed), np.empty_like(missed)
    least = 1.0 / (conlim or MOST_CONDITION) ** 2
    square, size, product, bend = float(missed @ missed), 0.0, 0.0, 0.0
    allowed, smallest = btol * np.sqrt(square), square
    for _ in range(most):
        moved, length = ahead(direction), float(direction @ direction)
        energy = float(moved @ moved) + damp**2 * length
        size += energy / square + bend  # |A|^2, as the trace of Lanczos' matrix has it
        if energy <= least * size * length:
            return None
        step, last, change = square / energy, square, back(moved)
        product += step * square  # |w|^2, since directions are conjugate
        found += np.multiply(direction, step, out=room)
        change += np.multiply(direction, damp**2, out=room) if damp else 0.0
        change *= step
        missed -= change
        square = float(missed @ missed)
        smallest = smallest * square / (smallest + square)
        if np.sqrt(smallest) <= allowed + atol * np.sqrt(size * product):
            return found
        bend = square / last / step
        direction *= square / last
        direction += missed
    return None
