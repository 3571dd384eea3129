"""Coefficients of polynomials, lowest power first: data that tools/coefficients.py computes.

They are in `polynomial_coefficients.json`, by their names, and read when one is first asked for.
"""

from __future__ import annotations

import functools


@functools.cache
def polynomials() -> dict[str, list[float]]:
    """Return the coefficients of all polynomials."""
    import json
    from pathlib import Path

    found: dict[str, list[float]] = json.loads(Path(__file__).with_suffix(".json").read_bytes())["polynomials"]
    return found


def __getattr__(name: str) -> list[float]:
    found = polynomials().get(name) if name.isupper() else None  # Python itself asks for names of its own
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
