"""What is known of the processor without asking LLVM."""

from __future__ import annotations

import os

MACHINE = os.uname().machine if os.name == "posix" else ""
MACHINES = ("x86_64", "aarch64", "arm64")
"""Processors whose bits of floating-point conditions are known."""

LINE = 128
"""Bytes that processors move between their caches at once, or twice that; what threads write lies this far apart."""

INVALID, DIVIDE, OVERFLOW, UNDERFLOW = (1, 4, 8, 16) if MACHINE == "x86_64" else (1, 2, 4, 8)
CONDITIONS = {"invalid": INVALID, "divide": DIVIDE, "over": OVERFLOW, "under": UNDERFLOW}
"""The C library's bits of the floating-point conditions, by NumPy's names for them."""
