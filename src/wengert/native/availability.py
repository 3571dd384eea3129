"""What is raised where a machine, an interpreter or an installation lacks what native code needs; NumPy computes then.

Any other error on the way to native code is one of ours, and reaches the user.
"""

from __future__ import annotations

from typing import Any


class UnavailableError(RuntimeError):
    """Say what is not there: a function of the system, memory for code, a layout of objects, a sort of processor."""


class MissingLLVMError(UnavailableError, ImportError):
    """Say that LLVM is not there."""


def load_llvm() -> Any:
    """Return the module of LLVM's functions.

    Raises:
        MissingLLVMError: there is none, or its library cannot be loaded.
    """
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError) as error:
        raise MissingLLVMError(f"there is no LLVM: {error}") from error
    return llvm
