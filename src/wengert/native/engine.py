"""Machine code from LLVM: the only module that talks to the code generator."""

from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import dataclass
from typing import Any

__all__ = ["CONDITIONS", "MACHINE", "MACHINES", "Target", "emit_object", "host", "loaded", "machine_code"]

MACHINE = os.uname().machine if os.name == "posix" else ""
MACHINES = ("x86_64", "aarch64", "arm64")
"""Processors whose bits of floating-point conditions are known."""

INVALID, DIVIDE, OVERFLOW, UNDERFLOW = (1, 4, 8, 16) if MACHINE == "x86_64" else (1, 2, 4, 8)
CONDITIONS = {"invalid": INVALID, "divide": DIVIDE, "over": OVERFLOW, "under": UNDERFLOW}
"""The C library's bits of the floating-point conditions, by NumPy's names for them."""


@dataclass(frozen=True)
class Target:
    """The processor that code is made for.

    Attributes:
        triple: LLVM's name of the system.
        processor: LLVM's name of it.
        features: what it can do, as LLVM lists it: "+avx2,+fma".
    """

    triple: str
    processor: str
    features: str

    def has(self, feature: str) -> bool:
        """Whether it has a feature."""
        return f"+{feature}" in self.features.split(",")

    @functools.cached_property
    def vector_bytes(self) -> int:
        """How many bytes its vectors hold."""
        return 64 if self.has("avx512dq") else 32 if self.has("avx2") else 16

    @functools.cached_property
    def fuses(self) -> bool:
        """Whether it multiplies and adds in one instruction."""
        return self.has("fma") or self.has("avx512f") or not self.triple.startswith("x86_64")

    @functools.cached_property
    def rounds(self) -> bool:
        """Whether it has instructions that round to whole numbers."""
        return self.has("sse4.1") or self.has("avx2") or not self.triple.startswith("x86_64")


@functools.cache
def host() -> Target:
    """Return this processor, vectors of full width included.

    Raises:
        ImportError: there is no LLVM.
    """
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return Target(llvm.get_default_triple(), llvm.get_host_cpu_name(), f"{features},-prefer-256-bit")


@functools.cache
def machine(target: Target) -> Any:
    """Return LLVM's code generator for a processor; it keeps no state from one module to the next."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    made = llvm.Target.from_triple(target.triple)
    return made.create_target_machine(
        cpu=target.processor, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


def emit_object(text: str, target: Target) -> bytes:
    """Return a module in LLVM's language as object code.

    Args:
        text: the module, for which no pass is run: it is as good as it was written.
        target: what it is for.

    Raises:
        ImportError, RuntimeError: there is no LLVM, or it refuses the text.
    """
    import llvmlite.binding as llvm

    return bytes(machine(target).emit_object(llvm.parse_assembly(text)))


def loaded(image: bytes, functions: tuple[str, ...]) -> dict[str, int]:
    """Put object code for this machine into memory, where it stays until the process ends.

    Args:
        image: the object code.
        functions: the functions wanted.

    Returns:
        Their addresses.
    """
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine()
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(image))
    engine.finalize_object()
    addresses = {function: int(engine.get_function_address(function)) for function in functions}
    engine.detach()
    return addresses


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
