"""Whose code it is: the user's, this library's, or that of Python and installed packages.

An installed package that is written with Wengert is the user's, too: what it computes is to be differentiated.
"""

from __future__ import annotations

import functools
import os
import sys
from types import CodeType, FunctionType
from typing import Any

from wengert.core.diagnostics.source_positions import PACKAGE_PREFIX
from wengert.support.attributes import attribute, own_attributes

ORDERING = frozenset(id(made.__code__) for found in vars(functools).get("_convert", {}).values() for _, made in found)
"""The identities of the code of the comparisons that `functools.total_ordering` adds."""
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
    """Tell whether code belongs to Python or to an installed package, which is called as it is.

    The comparisons that `functools.total_ordering` gives to a class are the class's, as they call its own.
    """
    return is_library_file(code.co_filename) and id(code) not in ORDERING


def is_library_file(filename: str) -> bool:
    """Tell whether a file belongs to Python or to an installed package that does not use Wengert."""
    if filename.startswith(PACKAGE_PREFIX):
        return True
    path = os.path.normcase(filename)
    return path.startswith((*LIBRARIES, "<frozen")) and not is_written_with_wengert(package_of(path))


@functools.cache
def package_of(path: str) -> str:
    """Return the package or module that a file of Python's or of an installed package belongs to; "" if to none.

    Of a namespace that several packages share it is the one in it.
    """
    folder = max([x for x in LIBRARIES if path.startswith(x)], key=len, default="")
    if not folder or os.path.basename(folder[:-1]) not in PACKAGES:
        return ""
    parts = os.path.splitext(path[len(folder) :])[0].split(os.sep)
    name = parts[0]
    for part in parts[1:]:
        if attribute(sys.modules.get(name), "__file__") is not None:
            break
        name += f".{part}"
    return name


BELOW = frozenset({"", "numpy", "scipy", "optree", "llvmlite"})
"""Packages that Wengert is written with, and which therefore are not written with it."""

FOUND: dict[str, tuple[int, int, bool]] = {}
"""Whether packages use Wengert, and how many modules there were, of all and of theirs, when they were looked at."""


def is_written_with_wengert(package: str) -> bool:
    """Tell whether a module of an installed package has imported something of Wengert's."""
    if package in BELOW:
        return False
    known = FOUND.get(package)
    if known is not None and (known[2] or known[0] == len(sys.modules)):
        return known[2]
    own = [m for name, m in sys.modules.copy().items() if name == package or name.startswith(f"{package}.")]
    uses = known[2] if known is not None and known[1] == len(own) else any(map(uses_wengert, own))
    FOUND[package] = len(sys.modules), len(own), uses
    return uses


def uses_wengert(module: Any) -> bool:
    """Tell whether Wengert, a part of it, or something of its own is among the global variables of a module."""
    parts = {id(m) for name, m in sys.modules.copy().items() if name.partition(".")[0] == "wengert"}
    return any(id(x) in parts or is_of_wengert(x) for x in list(own_attributes(module).values()))


def is_of_wengert(value: Any) -> bool:
    """Tell whether a value is a function or class of Wengert's, or an instance of one; attributes might be loaded."""
    kind = type(value)
    if kind is FunctionType:
        return is_wengerts(value.__code__)
    made_by = value if issubclass(kind, type) else kind
    return str(type.__getattribute__(made_by, "__module__")).partition(".")[0] == "wengert"
