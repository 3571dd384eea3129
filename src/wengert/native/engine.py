"""Machine code from LLVM: the only module that talks to the code generator."""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["CONDITIONS", "MACHINE", "PAUSES", "machine_code"]

MACHINE = os.uname().machine if os.name == "posix" else ""
INVALID, DIVIDE, OVERFLOW, UNDERFLOW = (1, 4, 8, 16) if MACHINE == "x86_64" else (1, 2, 4, 8)
CONDITIONS = {"invalid": INVALID, "divide": DIVIDE, "over": OVERFLOW, "under": UNDERFLOW}
"""The C library's bits of the floating-point conditions, by NumPy's names for them."""

PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def machine_code(name: str, functions: Iterable[str]) -> dict[str, int]:
    """Compile a file of LLVM's language for this machine; the code stays until the process ends.

    Args:
        name: a file beside this module.
        functions: the functions wanted.

    Returns:
        Their addresses.

    Raises:
        ImportError, OSError, RuntimeError: LLVM is absent or cannot compile it here.
    """
    from importlib.resources import files

    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    module = llvm.parse_assembly(for_this_machine(text))
    module.verify()
    target = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    addresses = {function: int(engine.get_function_address(function)) for function in functions}
    engine.detach()  # threads may be in the code until the very end of the process
    return addresses


def for_this_machine(text: str) -> str:
    """Fill in what differs between processors: the bits of floating-point conditions, and how to wait politely."""
    declaration, call = PAUSES.get(MACHINE, ("", ""))
    pause = f"{declaration}\ndefine internal void @pause() {{\n  {call}\n  ret void\n}}\n"
    return text.replace("{conditions}", str(sum(CONDITIONS.values()))).replace("declare void @pause()", pause)
