"""Decompositions with SciPy's signatures."""

from __future__ import annotations

from typing import Any

import scipy.linalg

from wengert.core.dispatch import apply, implements
from wengert.errors import UsageError, describe
from wengert.primitives import orthogonal
from wengert.scipy._operands import matrices

__all__: list[str] = []


@implements(scipy.linalg.qr)
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the QR decomposition; see `scipy.linalg.qr`.

    Raises:
        UsageError: of mode "raw", whose results are LAPACK's own, or with pivoting.
    """
    x = matrices("qr", a)
    if mode not in ("full", "r", "economic") or pivoting:
        given = "pivoting=True" if pivoting else f"mode={mode!r:.40}"
        raise UsageError(
            describe("qr", given, "'full', 'r' or 'economic' without pivoting is needed", "Use mode='economic'")
        )
    params = {"mode": "reduced" if mode == "economic" else "complete", "check_finite": bool(check_finite)}
    q, r = apply(orthogonal.scipy_qr, x, **params)
    return (r,) if mode == "r" else (q, r)
