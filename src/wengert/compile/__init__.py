"""Graphs as functions of arrays: compiled to machine code, kept, loaded and run. It knows nothing of tapes."""

import sys
from types import ModuleType
from typing import Any, NoReturn


class Package(ModuleType):
    """Be this package, which `torch.compile` lets one take for a function."""

    def __call__(self, *_args: Any, **_options: Any) -> NoReturn:
        """Say which function it is."""
        raise TypeError("'module' object is not callable; write wengert.jit(f)")


sys.modules[__name__].__class__ = Package
