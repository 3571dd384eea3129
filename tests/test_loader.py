"""Object code brought into the process by hand: what it computes, what is refused, and when it goes."""

from __future__ import annotations

import ctypes
import gc
import importlib
import marshal
import random
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.compile import compilation_cache
from wengert.errors import FileFormatError
from wengert.native import elf, loader
from wengert.native.availability import UnavailableError
from wengert.native.cache import ObjectCache
from wengert.native.elf import AARCH64, FORMATS, X86_64, ElfImage
from wengert.native.engine import emit_object, host, link_object, loaded_by_llvm
from wengert.native.loader import Code, address_of, load_code
from wengert.support import config
from wengert.support.machine import PROCESSOR

TEXT = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
@bytes = internal constant <16 x i8> <i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7, i8 8,
                                      i8 9, i8 10, i8 11, i8 12, i8 13, i8 14, i8 15, i8 16>, align 16
declare i64 @llabs(i64)
declare i64 @given(i64)

define i64 @twice(i64 %x) noinline {
  %y = add i64 %x, %x
  ret i64 %y
}
define i64 @thrice(i64 %x) noinline {
  %y = call i64 @twice(i64 %x)
  %z = add i64 %x, %y
  ret i64 %z
}
define i64 @looked_up(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %x = load i64, ptr %p
  ret i64 %x
}
define i64 @of_bytes(i64 %i) {
  %v = load <16 x i8>, ptr @bytes
  %n = trunc i64 %i to i32
  %b = extractelement <16 x i8> %v, i32 %n
  %x = zext i8 %b to i64
  ret i64 %x
}
define i64 @outside(i64 %x) {
  %y = call i64 @llabs(i64 %x)
  %z = call i64 @given(i64 %y)
  ret i64 %z
}
define ptr @address_outside() {
  ret ptr @given
}
define ptr @address_inside() {
  ret ptr @thrice
}
define i64 @by_cases(i32 %i, i64 %x) {
  switch i32 %i, label %other [ i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d i32 4, label %e ]
a:
  %ra = call i64 @twice(i64 %x)
  ret i64 %ra
b:
  %rb = call i64 @thrice(i64 %x)
  ret i64 %rb
c:
  %rc = call i64 @looked_up(i64 %x)
  ret i64 %rc
d:
  %rd = call i64 @of_bytes(i64 %x)
  ret i64 %rd
e:
  %re = call i64 @outside(i64 %x)
  ret i64 %re
other:
  ret i64 -1
}
"""

WORD = ctypes.c_int64
GIVEN = ctypes.CFUNCTYPE(WORD, WORD)(lambda x: x + 7)
EXTERNAL = {"given": ctypes.cast(GIVEN, ctypes.c_void_p).value or 0}


@pytest.fixture(scope="module")
def image() -> bytes:
    return emit_object(TEXT, host())


LOADERS: dict[str, Callable[[bytes], Code]] = {
    "by hand": lambda image: load_code(link_object(image), EXTERNAL),
    "by LLVM": lambda image: Code(*loaded_by_llvm(image, EXTERNAL, address_of)),
}
by_hand = pytest.mark.skipif(PROCESSOR not in FORMATS, reason="object code has another format here")


@pytest.mark.parametrize("how", LOADERS)
def test_code_computes_what_it_should(how: str, image: bytes) -> None:
    code = LOADERS[how](image)

    def called(name: str, *arguments: int) -> int:
        return int(ctypes.CFUNCTYPE(WORD, *[WORD] * len(arguments))(code.addresses[name])(*arguments))

    assert called("thrice", 14) == 42
    assert [called("looked_up", i) for i in range(4)] == [10, 20, 30, 40]
    assert [called("of_bytes", i) for i in range(16)] == list(range(1, 17))
    assert called("outside", -5) == 12
    assert called("address_outside") == EXTERNAL["given"]
    assert called("address_inside") == code.addresses["thrice"]
    assert [called("by_cases", i, 3) for i in range(6)] == [6, 9, 40, 4, 10, -1]


@by_hand
def test_code_is_executable_and_cannot_be_written_to(image: bytes) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("the system does not tell")
    code = load_code(link_object(image), EXTERNAL)
    for address in code.addresses.values():
        ranges = [line.split() for line in maps.read_text().splitlines()]
        (rights,) = [r for span, r, *_ in ranges if within(address, span)]
        assert rights == "r-xp"


def within(address: int, span: str) -> bool:
    first, last = (int(end, 16) for end in span.split("-"))
    return first <= address < last


@by_hand
def test_code_goes_with_its_owner_unless_it_stays(image: bytes) -> None:
    kept = link_object(image)

    def memory() -> int:
        if sys.platform != "linux":
            return 0
        lines = Path("/proc/self/maps").read_text().splitlines()
        spans = [line.split()[0].split("-") for line in lines if "r-xp 00000000 00:00" in line]
        return sum([int(stop, 16) - int(start, 16) for start, stop in spans])

    gc.collect()
    before = memory()
    codes = [load_code(kept, EXTERNAL) for _ in range(5)]
    assert memory() > before or sys.platform != "linux"
    del codes
    assert memory() == before
    for _ in range(2000):
        load_code(kept, EXTERNAL)
    assert memory() == before
    code = load_code(kept, EXTERNAL)
    references = sys.getrefcount(code)
    code.stay()
    assert sys.getrefcount(code) == references + 1


def test_a_function_that_the_system_lacks_is_named(image: bytes) -> None:
    with pytest.raises(UnavailableError, match="given"):
        load_code(link_object(image))


def test_ctrl_c_waits_until_llvm_has_freed_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = []
    module_class = importlib.import_module("llvmlite.binding").ModuleRef

    def interrupted(module: Any, detach: Any = module_class.detach) -> None:
        signal.raise_signal(signal.SIGINT)
        detach(module)  # which notes that it is free

    monkeypatch.setattr(module_class, "_dispose", lambda _: freed.append(1))
    monkeypatch.setattr(module_class, "detach", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            emit_object("", host())
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    gc.collect()
    assert len(freed) == 1


def test_an_empty_object_has_no_functions() -> None:
    assert "f" not in load_code(link_object(emit_object("", host()))).addresses


def test_what_is_loaded_by_hand_needs_no_llvm(image: bytes, tmp_path: Path) -> None:
    if PROCESSOR not in FORMATS:
        pytest.skip("object code has another format here")
    path = tmp_path / "kept.o"
    path.write_bytes(marshal.dumps(link_object(image)))
    program = (
        "import ctypes, marshal, pathlib, sys\n"
        "from wengert.native.loader import load_code\n"
        "code = load_code(marshal.loads(pathlib.Path(sys.argv[1]).read_bytes()), {'given': 1})\n"
        "print(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses['thrice'])(14))\n"
        "print([name for name in sys.modules if name.startswith('llvmlite') or name == 'wengert.native.elf'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("42\n[]\n", "")


# -------------------------------------------------------------------------------------------------- what is refused


def damaged(image: bytes, rng: random.Random) -> bytes:
    """Return an image of which some bytes are others, or were lost, or stand elsewhere."""
    content = bytearray(image)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(content))
        way = rng.randrange(6)
        if way == 0:
            content[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            content[at : at + 8] = struct.pack("<Q", rng.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)))
        elif way == 2:
            content[at : at + 4] = rng.randbytes(4)
        elif way == 3:
            other = rng.randrange(len(content))
            content[at : at + 16] = content[other : other + 16]
        elif way == 4:
            del content[at : at + rng.choice((1, 8, 24))]
        elif rng.random() < 0.1:
            del content[at:]
        if not content:
            break
    return bytes(content)


def heads(image: bytes) -> Iterator[int]:
    """Return where headers, sections, symbols and relocations stand, in which damage does most."""
    form = {form.machine: form for form in FORMATS.values()}[struct.unpack_from("<H", image, 18)[0]]
    whole = ElfImage(image, form)
    yield from range(elf.HEADER.size)
    (table,) = struct.unpack_from("<Q", image, 40)
    yield from range(table, table + len(whole.sections) * elf.SECTION.size)
    for section in whole.sections:
        if section.kind in (elf.SYMBOLS, elf.RELOCATIONS):
            yield from range(section.offset, section.offset + section.size)


@by_hand
@pytest.mark.parametrize("seed", range(4))
def test_damaged_images_are_refused_or_harmless(seed: int, image: bytes) -> None:
    """Ten thousand of them: loading never fails in another way. (What was loaded is not called.)"""
    rng = random.Random(seed)
    places = list(heads(image))
    refused = 0
    for _ in range(1250):
        wrong = bytearray(image)
        for _ in range(rng.choice((1, 2, 4))):
            wrong[rng.choice(places)] = rng.randrange(256)
        for content in (damaged(image, rng), bytes(wrong)):
            try:
                load_code(elf.link_image(content, PROCESSOR), others=lambda name: 1)
            except FileFormatError:
                refused += 1
    assert refused > 500


REFUSED: dict[str, tuple[str, str]] = {
    "a table of addresses": ("define void @f() { ret void }\n@x = constant ptr @f", "data that is written to"),
    "data that is written to": ("@x = global i64 1", "data that is written to"),
    "data that begins as zeros": ("@x = global i64 0", "data that is written to"),
}


@by_hand
@pytest.mark.parametrize("case", REFUSED)
def test_data_of_its_own_is_refused(case: str) -> None:
    text, found = REFUSED[case]
    with pytest.raises(FileFormatError, match=found):
        link_object(emit_object(text, host()))


RELOCATIONS = sorted(FORMATS[PROCESSOR].direct | FORMATS[PROCESSOR].through_slots) if PROCESSOR in FORMATS else []


@pytest.fixture
def _afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be compiled, as in a process that finds nothing kept."""
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)
    monkeypatch.setattr(loader, "FUNCTIONS", {})
    nothing = ObjectCache(None)
    monkeypatch.setattr(loader, "object_cache", lambda: nothing)
    monkeypatch.setattr(compilation_cache, "object_cache", lambda: nothing)


def summed(x: Any) -> Any:
    return wg.fori_loop(0, 3, lambda i, c: np.sum(np.exp(c) * x) * 0.1 + np.sin(x) * np.power(np.abs(c), x), x)


@by_hand
@pytest.mark.usefixtures("_afresh")
@pytest.mark.parametrize("kind", RELOCATIONS)
def test_code_with_a_relocation_that_is_not_known_is_loaded_by_llvm(
    kind: int, image: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = FORMATS[PROCESSOR]
    direct, through_slots = dict(known.direct), dict(known.through_slots)
    direct.pop(kind, None)
    through_slots.pop(kind, None)
    form = elf.Format(known.machine, known.jump, known.absolute, direct, through_slots)
    monkeypatch.setitem(FORMATS, PROCESSOR, form)
    found = load_code(link_object(image), EXTERNAL)
    assert ctypes.CFUNCTYPE(WORD, WORD)(found.addresses["outside"])(-5) == 12
    x = np.linspace(0.1, 1.0, 5)
    jitted = wg.jit(summed)
    for _ in range(3):
        np.testing.assert_allclose(jitted(x), summed(x), rtol=1e-12)


@pytest.mark.usefixtures("_afresh")
def test_code_that_cannot_be_linked_is_not_the_users_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(image: bytes, machine: str) -> Any:
        raise elf.damage_error("something new")

    monkeypatch.setattr(elf, "link_image", refusing)
    x = np.linspace(0.1, 1.0, 5)
    np.testing.assert_array_equal(wg.jit(summed)(x), summed(x))


@by_hand
def test_the_text_of_a_refusal() -> None:
    other = next(name for name, form in FORMATS.items() if name != PROCESSOR)
    with pytest.raises(FileFormatError) as caught:
        elf.link_image(emit_object(TEXT, host()), other)
    assert str(caught.value) == (
        f"object code: code of another processor ({FORMATS[PROCESSOR].machine}); "
        "code of this processor as LLVM writes it is needed. Remove it from where it was kept."
    )


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_what_is_no_object_is_refused(content: bytes) -> None:
    with pytest.raises(FileFormatError, match="object code: "):
        elf.link_image(content, "x86_64")
    with pytest.raises(FileFormatError, match="object code: "):
        elf.undefined_names(content, "x86_64")


# -------------------------------------------------------------------------------------------------- relocations


def written(form: Any, kind: int, before: int, target: int, own: int) -> int:
    """Return what a relocation makes of 8 bytes."""
    memory = bytearray(struct.pack("<Q", before))
    write = form.direct.get(kind) or form.through_slots[kind]
    write(memory, 0, target, own)
    return int(struct.unpack("<Q", memory)[0])


ARM_INSTRUCTIONS = {  # kind: before, target, own address, after, as an assembler has it
    "bl forward": (283, 0x94000000, 0x1008, 0x1000, 0x94000002),
    "b backward": (282, 0x14000000, 0x1000, 0x1004, 0x17FFFFFF),
    "adrp": (275, 0x90000000, 0x3FF8, 0x1FFC, 0xD0000000),
    "adrp backward": (275, 0x90000000, 0x0FF8, 0x1FFC, 0xF0FFFFE0),
    "adr": (274, 0x10000000, 0x1005, 0x1000, 0x30000020),
    "add": (277, 0x91000000, 0x5123, 0x1000, 0x91048C00),
    "ldrb": (278, 0x39400000, 0x5003, 0x1000, 0x39400C00),
    "ldrh": (284, 0x79400000, 0x5006, 0x1000, 0x79400C00),
    "ldr w": (285, 0xB9400000, 0x500C, 0x1000, 0xB9400C00),
    "ldr x": (286, 0xF9400000, 0x5008, 0x1000, 0xF9400400),
    "ldr q": (299, 0x3DC00000, 0x5020, 0x1000, 0x3DC00800),
    "adrp of a slot": (311, 0x90000000, 0x3FF8, 0x1FFC, 0xD0000000),
    "ldr of a slot": (312, 0xF9400000, 0x5008, 0x1000, 0xF9400400),
}


@together("case", ARM_INSTRUCTIONS)
def test_instructions_of_aarch64(case: str) -> None:
    kind, before, target, own, after = ARM_INSTRUCTIONS[case]
    assert written(AARCH64, kind, before, target, own) == after, hex(written(AARCH64, kind, before, target, own))


def test_addresses_and_distances() -> None:
    for form, half, long in ((X86_64, 2, 24), (AARCH64, 261, 260)):
        assert written(form, half, 0, 0x1234, 0x1000) == 0x234
        assert written(form, long, 0, 0x1000, 0x1001) == 2**64 - 1


@pytest.mark.parametrize(
    ("kind", "target", "found"),
    [
        (283, 0x1000_0000, "a branch that is too far"),
        (283, 0x1002, "a branch that is too far"),
        (275, 1 << 40, "an address that is too far"),
        (286, 0x1004, "an address between two numbers"),
    ],
)
def test_targets_that_an_instruction_cannot_reach_are_refused(kind: int, target: int, found: str) -> None:
    with pytest.raises(FileFormatError, match=found):
        written(AARCH64, kind, 0, target, 0)


def test_code_of_another_processor_can_be_relocated() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for triple, form in (("aarch64-unknown-linux-gnu", AARCH64), ("x86_64-unknown-linux-gnu", X86_64)):
        try:
            target = llvm.Target.from_triple(triple)
        except RuntimeError:
            continue
        machine = target.create_target_machine(reloc="pic", codemodel="small")
        text = f'target triple = "{triple}"\n{TEXT}'
        content, _, outside, _ = ElfImage(machine.emit_object(llvm.parse_assembly(text)), form).link()
        assert sorted(name for _, name in outside) == ["given", "llabs"]
        assert content.count(form.jump) >= len(outside)
