"""The functions of plain Tensors that NumPy computes itself, since what leads to their primitives would take longer."""

from __future__ import annotations

import numpy as np

from wengert.core.values.plain_functions import enter_by_numpy

MANY = np.iinfo(np.int32).max


def enter() -> None:
    """Enter them, once all functions have a meaning for Tensors."""
    enter_by_numpy(
        *(np.append, np.argpartition, np.argwhere, np.bincount, np.block, np.choose, np.column_stack),
        *(np.compress, np.convolve, np.correlate, np.count_nonzero, np.delete, np.diagflat, np.digitize, np.dstack),
        *(np.extract, np.flatnonzero, np.kron, np.lexsort, np.median, np.nonzero, np.packbits, np.partition),
        *(np.percentile, np.quantile, np.resize, np.searchsorted, np.tensordot, np.union1d, np.unique, np.unpackbits),
        np.vdot,
    )
    enter_by_numpy(np.corrcoef, np.cov, composed=True, inside=True)
    enter_by_numpy(np.insert, np.interp, most=3)
    enter_by_numpy(np.meshgrid, most=MANY)
    enter_by_numpy(np.einsum, most=MANY, least=3)  # of one array it may be a view
    composed = (np.average, np.ediff1d, np.geomspace, np.isclose, np.linspace, np.logspace, np.polyval)
    enter_by_numpy(*composed, composed=True)
    enter_by_numpy(np.angle, np.cumulative_prod, np.cumulative_sum, np.ptp, most=1, composed=True)
