"""How Jacobians of a pattern are held: in full, in bands or front by front, whichever takes the least time.

Bands are those in the order of rows and columns that brings elements near to the diagonal.

Source: E. Cuthill and J. McKee, Reducing the bandwidth of sparse symmetric matrices, Proc. ACM 24, 1969.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import UsageError
from wengert.scipy.integrate._methods.adaptive_steps import MISSED, Walk
from wengert.scipy.integrate._methods.element_matrices import NAME, BandedMatrices, FrontMatrices, bandwidth
from wengert.scipy.integrate._methods.jacobian_matrices import FullMatrices, Matrices, Slope
from wengert.sparse.patterns.pattern import Pattern
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient

Array = np.ndarray[Any, Any]
MISSED_PART = 1e-9
"""The part of products with a Jacobian that may be missing, as that of rounding errors."""
FEWEST = 10
"""States from which a pattern is looked for."""
NARROW = 0.6
"""The share of a row that factors, and elements, may take: of two species in a row of 4, 6 and 8 points, with 7 places
for the 8, 12 and 16 of a row, values take 1.08, 0.91 and 0.78 of the time by Rodas5P, gradients 1.2, 0.97 and 0.92."""


FEW_BANDS = 8
"""Bands below the diagonal up to which no other order is looked for."""


def banded_matrices(pattern: Pattern, packed: int | None = None) -> BandedMatrices:
    """Return how matrices of a pattern and of the diagonal are held in bands: packed ones as they are.

    Others are in the order of states with fewer bands.
    """
    diagonal = np.arange(pattern.shape[0])
    whole = Pattern.of_pairs(pattern.shape, *[np.concatenate([x, diagonal]) for x in (pattern.rows, pattern.indices)])
    rows, columns = (x.astype(np.intp) for x in (whole.rows, whole.indices))
    order = None if packed is not None else narrower_order(whole, rows, columns)
    return BandedMatrices(pattern.shape[0], rows, columns, order, packed)


def narrower_order(pattern: Pattern, rows: Array, columns: Array) -> Array | None:
    """Return the order of rows and columns in which there are fewer bands; None for that as they are."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order: Array = reverse_cuthill_mckee(pattern.to_scipy().astype(float)).astype(np.intp)
    widths = [2 * below + above for below, above in (bandwidth(rows, columns, x) for x in (None, np.argsort(order)))]
    return order if widths[1] < widths[0] else None


def matrices_for(pattern: Pattern, has_pivots: bool = True) -> Matrices:
    """Return how matrices of a pattern are held: in bands, or front by front, where that takes less time than in full.

    Args:
        pattern: the elements that may be other than zero.
        has_pivots: whether those on the diagonal can be pivots, if others of the same front cannot; bands and full
            matrices have any.
    """
    size = pattern.shape[0]
    if size < FEWEST or pattern.count > NARROW * size * size:
        return FullMatrices()
    banded = banded_matrices(pattern)
    if has_pivots and banded.below > FEW_BANDS:
        fronts = FrontMatrices(size, banded.rows, banded.columns)
        if fronts.fronts.cost < banded.cost and fronts.fronts.length <= NARROW * size * size:
            return fronts
    return banded if banded.width <= NARROW * size else FullMatrices()


# What the user says of the elements


def checked_elements(matrices: Matrices, slope: Slope, walk: Walk) -> Walk:
    """Return where an integration begins, or that it does not, as the Jacobian has further elements there."""
    t, y = stop_gradient((walk.t, walk.y))
    direction = 1.0 + np.cos(np.arange(y.shape[0]) ** 2)
    found = jvp(lambda state: slope(t, state), (y,), (direction,))[1]
    elements = matrices.jacobian(slope, t, y)
    wanted, most = (matrices.product(x, direction, False) for x in (elements, np.abs(elements)))
    missed = np.any(np.abs(stop_gradient(found - wanted)) > MISSED_PART * (np.abs(found) + stop_gradient(most)))
    return walk._replace(failure=np.where(missed, MISSED, walk.failure))


def require_elements(walk: Walk) -> None:
    """Raise if it is known that an integration did not begin as the user's pattern lacks elements."""
    if is_concrete(walk.failure) and raw(walk.failure) == MISSED:
        given = "a Jacobian with elements where jac_sparsity, or lband and uband, say that there are none"
        needed = "all that may be other than zero are needed, as steps and derivatives have no others"
        raise UsageError(NAME, given, needed, "Leave it out, or give more of them")
