"""Switches, read from the environment once: what is logged and what is checked.

`WENGERT_LOG=passes` prints the graph after each pass; several topics are separated by commas. `WENGERT_DEBUG=1` checks
it after each pass.
"""

from __future__ import annotations

import os

__all__ = ["DEBUG", "LOGGED"]

DEBUG = os.environ.get("WENGERT_DEBUG", "0") not in ("", "0")
LOGGED = frozenset(topic.strip() for topic in os.environ.get("WENGERT_LOG", "").split(",")) - {""}
