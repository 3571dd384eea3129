"""Machine code from LLVM: the only module that talks to the code generator."""

from __future__ import annotations

import ctypes
import functools
import os

__all__ = ["CONDITIONS", "MACHINE", "MACHINES", "machine_code"]

MACHINE = os.uname().machine if os.name == "posix" else ""
MACHINES = ("x86_64", "aarch64", "arm64")
"""Processors whose bits of floating-point conditions are known."""

INVALID, DIVIDE, OVERFLOW, UNDERFLOW = (1, 4, 8, 16) if MACHINE == "x86_64" else (1, 2, 4, 8)
CONDITIONS = {"invalid": INVALID, "divide": DIVIDE, "over": OVERFLOW, "under": UNDERFLOW}
"""The C library's bits of the floating-point conditions, by NumPy's names for them."""


@functools.cache
def machine_code(text: str, functions: tuple[str, ...]) -> dict[str, int]:
    """Compile LLVM's language for this machine, once; the code stays until the process ends.

    Args:
        text: a module.
        functions: the functions wanted.

    Returns:
        Their addresses.

    Raises:
        AttributeError, ImportError, OSError, RuntimeError: the system lacks a function that the text calls, or LLVM is
            absent or cannot compile it here.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    library = ctypes.CDLL(None)
    for function in module.functions:
        if function.is_declaration and not function.name.startswith("llvm."):
            getattr(library, function.name)  # LLVM would end the process for the lack of it
    target = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    addresses = {function: int(engine.get_function_address(function)) for function in functions}
    engine.detach()  # threads may be in the code until the very end of the process
    return addresses
