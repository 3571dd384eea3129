"""Machine code in memory: what was linked is mapped into this process, and stays as long as somebody refers to it.

It is written into memory that is then made executable and never writable again. On AArch64, Linux makes new code
visible to the processor when memory becomes executable.
"""

from __future__ import annotations

import ctypes
import marshal
import struct
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from wengert.native.availability import UnavailableError
from wengert.native.lapack import PREFIX, lapack_address
from wengert.support.records import FieldRecord

MAGIC = b"Wengert code\n"
ADDRESS = struct.Struct("<Q")
READ, WRITE, EXECUTE = 1, 2, 4
PRIVATE, ANONYMOUS = 2, 0x20
NOWHERE = (1 << 8 * ctypes.sizeof(ctypes.c_void_p)) - 1


class Linked(FieldRecord):
    """Code that can lie anywhere in memory.

    Attributes:
        content: its bytes, without addresses.
        inside: the places of addresses in it, and to which places they belong.
        outside: the places of addresses of what it does not define, and what that is.
        functions: the names and places of what can be called from outside.
    """

    content: bytes
    inside: tuple[tuple[int, int], ...]
    outside: tuple[tuple[int, str], ...]
    functions: tuple[tuple[str, int], ...]

    def to_bytes(self) -> bytes:
        """Return it as bytes, to be kept where damage is noticed."""
        return MAGIC + marshal.dumps(self.values())


class CodeMemory:
    """Memory for code, given back when nobody refers to it any more.

    It is asked of Linux itself, because Python's module for that takes as long to load as all of this.

    Attributes:
        address: where it begins.

    Raises:
        UnavailableError: there is none.
    """

    def __init__(self, size: int) -> None:
        library = ctypes.pythonapi  # all that is linked into this process
        self.size, self.release, self.protect = ctypes.c_size_t(max(size, 1)), library.munmap, library.mprotect
        ask = library["mmap"]
        ask.restype = ctypes.c_void_p
        self.address: int = ask(None, self.size, READ | WRITE, PRIVATE | ANONYMOUS, -1, ctypes.c_long())
        if self.address == NOWHERE:
            raise UnavailableError("there is no memory for code")
        self.finish = partial(self.release, ctypes.c_void_p(self.address), self.size)

    def hold(self, content: bytearray) -> None:
        """Write code that nobody can change from then on, and let the processor run it."""
        ctypes.memmove(self.address, bytes(content), len(content))
        if self.protect(ctypes.c_void_p(self.address), self.size, READ | EXECUTE):
            raise UnavailableError("memory cannot be made executable")

    __del__ = property(attrgetter("finish"))
    """Give it back. No line of Python runs then: what signals raise where one begins would be lost here."""


class Code:
    """Machine code in memory, which is given back when nobody refers to it any more.

    Whoever calls the code must hold it while it runs: an entry holds what it calls, and code that threads may be in
    until the very end of the process is made to stay with `stay`.

    Attributes:
        addresses: of the functions that can be called from outside, by name.
    """

    def __init__(self, addresses: dict[str, int], memory: Any) -> None:
        self.addresses = addresses
        self.memory = memory

    def stay(self) -> None:
        """Keep the code until the process ends, also while Python ends."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


def is_linked(image: bytes) -> bool:
    """Tell whether bytes are code that was linked and packed."""
    return image.startswith(MAGIC)


def read_linked(packed: bytes) -> Linked:
    """Return what code was packed, whose places are inside of it.

    Raises:
        ValueError: these bytes are not what `Linked.to_bytes` made; or an EOFError or TypeError.
    """
    code = Linked(*marshal.loads(memoryview(packed)[len(MAGIC) :]))
    size = len(code.content)
    last = size - ADDRESS.size
    sound = all(0 <= place <= last and 0 <= target <= size for place, target in code.inside)
    sound = sound and all(0 <= place <= last and type(name) is str for place, name in code.outside)
    sound = sound and all(0 <= place <= size and type(name) is str for name, place in code.functions)
    if not sound or type(code.content) is not bytes:
        raise ValueError("a place outside of code")
    return code


def load(packed: bytes, external: Callable[[str], int]) -> Code:
    """Map code into this process.

    Raises:
        UnavailableError: there is no memory, or none may be executed.
    """
    return map_code(read_linked(packed), external)


def map_code(code: Linked, external: Callable[[str], int]) -> Code:
    """Return code in memory."""
    memory, content = CodeMemory(len(code.content)), bytearray(code.content)
    for place, target in code.inside:
        ADDRESS.pack_into(content, place, memory.address + target)
    for place, name in code.outside:
        ADDRESS.pack_into(content, place, external(name))
    memory.hold(content)
    return Code({name: memory.address + place for name, place in code.functions}, memory)


def address_of(name: str) -> int:
    """Return the address of a function of Python's or of the C library, or of BLAS or LAPACK as they are named here.

    Raises:
        UnavailableError: there is none.
    """
    if name.startswith(PREFIX):
        return lapack_address(name)
    try:  # a sixth of the time of a function of ctypes
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))
    except ValueError:
        raise UnavailableError(f"{name}: the system has no such function") from None
