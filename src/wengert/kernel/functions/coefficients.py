"""Coefficients of polynomials, lowest power first, and tables of numbers: data that tools/coefficients.py computes.

They are in `coefficients.json`, by their names, and read when the first program is rendered.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA: dict[str, dict[str, list[Any]]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""Numbers by name and dtype, hexadecimal ones of polynomials; under "says", what they are."""


def __getattr__(name: str) -> dict[str, list[Any]]:
    if name not in DATA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return DATA[name]
