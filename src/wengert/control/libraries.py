"""Whose code it is: the user's, this library's, or that of Python and installed packages."""

from __future__ import annotations

import os
import sys
from types import CodeType

from wengert.core.source import PACKAGE_PREFIX

__all__ = ["is_library", "is_library_file", "is_wengerts"]

PACKAGES = "site-packages", "dist-packages"
LIBRARIES = tuple(
    {
        os.path.normcase(folder) + os.sep
        for folder in (os.path.dirname(os.__file__), *sys.path)
        if folder == os.path.dirname(os.__file__) or os.path.basename(folder) in PACKAGES
    }
)
"""The folders of Python and of installed packages; `sysconfig` knows them, too, but takes 2 ms to load."""


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
