"""Agreement: before libraries are compared they must have computed the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["DisagreementError", "check_agreement"]

TOLERANCE = 1e-9


class DisagreementError(Exception):
    """Report a library whose result is not that of the others."""


def check_agreement(found: Sequence[Any], expected: Sequence[Any], what: str, tolerance: float = TOLERANCE) -> None:
    """Raise an error unless results are the same but for rounding."""
    pairs = zip(found, expected, strict=False)
    if len(found) != len(expected) or not all(agree(ours, theirs, tolerance) for ours, theirs in pairs):
        raise DisagreementError(what)


def agree(found: Any, expected: Any, tolerance: float) -> bool:
    """Tell whether two arrays are the same but for rounding; None is a gradient that is zero."""
    ours, theirs = (np.zeros(()) if values is None else plain(values) for values in (expected, found))
    scale = max(1.0, float(np.max(np.abs(ours), initial=0.0)))
    same_shape = found is None or expected is None or ours.shape == theirs.shape
    return same_shape and np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale)


def plain(values: Any) -> np.ndarray[Any, Any]:
    """Return an ndarray of a result of any library."""
    return np.asarray(values.numpy(force=True) if hasattr(values, "resolve_conj") else values)
