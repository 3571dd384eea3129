"""Whose code it is: the user's, this library's, or that of Python and installed packages."""

from __future__ import annotations

import os
import sysconfig
from types import CodeType

from wengert.core.source import PACKAGE_PREFIX

__all__ = ["is_library", "is_library_file", "is_wengerts"]

LIBRARIES = tuple(
    {os.path.normcase(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def is_wengerts(code: CodeType) -> bool:
    """Tell whether code belongs to this library."""
    return code.co_filename.startswith(PACKAGE_PREFIX)


def is_library(code: CodeType) -> bool:
    """Tell whether code belongs to Python or to an installed package, which is called as it is."""
    return is_library_file(code.co_filename)


def is_library_file(filename: str) -> bool:
    """Tell whether a file belongs to Python or to an installed package."""
    if filename.startswith(PACKAGE_PREFIX):
        return True
    return os.path.normcase(filename).startswith((*LIBRARIES, "<frozen"))
