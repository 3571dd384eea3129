"""Machine code from LLVM: the only module that talks to the code generator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wengert.native.availability import UnavailableError, load_llvm
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.held_interrupts import HeldInterrupts
from wengert.support.machine import PROCESSOR
from wengert.support.records import Record

if TYPE_CHECKING:
    from wengert.native.elf import Linked


class Target(Record):
    """The processor that code is made for.

    Attributes:
        triple: LLVM's name of the system.
        processor: LLVM's name of it.
        features: what it can do, as LLVM lists it: "+avx2,+fma".
        vector_bytes: how many bytes its vectors hold.
        fuses: whether it multiplies and adds in one instruction.
        scales: whether it takes floating-point numbers apart and puts them together in one instruction each.
        masks: whether loads and stores of a part of a vector take no longer than those of a whole one.
        rounds: whether it has instructions that round to whole numbers.
        is_x86: whether it is one of x86-64.
    """

    def __init__(self, triple: str, processor: str, features: str) -> None:
        self.triple, self.processor, self.features = triple, processor, features
        has = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
        self.is_x86 = triple.startswith("x86_64")
        self.vector_bytes = 64 if "avx512dq" in has else 32 if "avx2" in has else 16
        self.fuses = bool(has & {"fma", "avx512f"}) or not self.is_x86
        self.scales = {"avx512dq", "avx512vl"} <= has
        self.masks = self.vector_bytes == 64
        self.rounds = bool(has & {"sse4.1", "avx2"}) or not self.is_x86


LONGEST = 6_000
"""Instructions without a jump for which LLVM takes about half a second (ADR 0026); its time grows with their square."""


@functools.cache
def host() -> Target:
    """Return this processor, vectors of full width included.

    Raises:
        MissingLLVMError: there is no LLVM.
    """
    with UNSTOPPED, HeldInterrupts():
        llvm = load_llvm()
        features = llvm.get_host_cpu_features().flatten()
        return Target(llvm.get_default_triple(), llvm.get_host_cpu_name(), f"{features},-prefer-256-bit")


@functools.cache
def machine(target: Target, is_quick: bool = False) -> Any:
    """Return LLVM's code generator for a processor; it keeps no state from one module to the next.

    Args:
        target: the processor.
        is_quick: whether to take little time, whatever the code will take.

    Raises:
        UnavailableError: there is no LLVM, or it was built without this sort of processor.
    """
    llvm = load_llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        made = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise UnavailableError(str(error)) from error
    return made.create_target_machine(
        cpu=target.processor, features=target.features, opt=0 if is_quick else 2, reloc="pic", codemodel="small"
    )


def is_quick_module(text: str) -> bool:
    """Tell whether LLVM is to take little time for a module, whatever its code will take.

    That is one with more than `LONGEST` instructions without a jump, as an unrolled loop of numbers has, and one whose
    functions are all to be written quickly, which LLVM goes through all of its passes for otherwise (twice the time).
    """
    length, are_brief = 0, True
    for line in text.splitlines():
        length = length + 1 if line.startswith("  ") else 0
        are_brief &= not line.startswith("define ") or "optnone" in line
        if length > LONGEST:
            return True
    return are_brief


def emit_object(text: str, target: Target) -> bytes:
    """Return a module in LLVM's language as object code.

    Raises:
        UnavailableError: there is no LLVM, or it was built without this sort of processor.
        RuntimeError: the text is no module.
    """
    with UNSTOPPED, HeldInterrupts():
        llvm = load_llvm()
        module = llvm.parse_assembly(text)
        module.verify()
        found = bytes(machine(target, is_quick_module(text)).emit_object(module))
        del module  # whose release locks LLVM, too
        return found


def emit_assembly(text: str, target: Target) -> str:
    """Return a module in LLVM's language as instructions of a processor, to be read."""
    with UNSTOPPED, HeldInterrupts():
        module = load_llvm().parse_assembly(text)
        found = str(machine(target, is_quick_module(text)).emit_assembly(module))
        del module
        return found


def link_object(image: bytes) -> Linked | bytes:
    """Return object code as it is kept: where its format is known, only what needs to be known when it is loaded.

    Returns:
        It linked; as it is where only LLVM knows how to do that.

    Raises:
        ObjectCodeError: the image is damaged, or holds what code must not have.
    """
    with UNSTOPPED:
        from wengert.native import elf  # which code that was kept has no need of

    try:
        return elf.link_image(image, PROCESSOR) if is_elf(image) else image
    except elf.UnknownRelocationError:
        return image


def is_elf(image: bytes) -> bool:
    """Tell whether object code is of a format that is known here."""
    from wengert.native import elf

    return sys.platform == "linux" and image.startswith(elf.MAGIC) and PROCESSOR in elf.FORMATS


def loaded_by_llvm(
    image: bytes, external: Mapping[str, int], others: Callable[[str], int]
) -> tuple[dict[str, int], Any]:
    """Bring object code of any format into memory.

    Args:
        image: object code.
        external: addresses of functions that it calls, by name.
        others: gives those of others, as far as it is known which these are: LLVM finds those of the system by itself.

    Returns:
        The addresses of its functions, and what keeps it in memory.

    Raises:
        UnavailableError: there is no such function, or no LLVM, or it refuses the code.
    """
    with UNSTOPPED:
        llvm = load_llvm()
        from wengert.native import elf

    names = elf.undefined_names(image, PROCESSOR) if is_elf(image) else []
    found = {**{name: others(name) for name in names if name not in external}, **external}
    with UNSTOPPED, HeldInterrupts():
        llvm.initialize_native_target()
        for name, address in found.items():
            llvm.add_symbol(name, address)
        generator = llvm.Target.from_default_triple().create_target_machine()  # the engine's from now on
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), generator)
        try:
            engine.add_object_file(llvm.ObjectFileRef.from_data(image))
        except RuntimeError as error:
            raise elf.damage_error(f"what LLVM does not load ({error})") from error
        engine.finalize_object()
        return Addresses(engine), engine


class Addresses(dict[str, int]):
    """The addresses of functions that LLVM has loaded, which it tells one at a time."""

    def __init__(self, engine: Any) -> None:
        super().__init__()
        self.engine = engine

    def __missing__(self, name: str) -> int:
        return int(self.engine.get_function_address(name))
