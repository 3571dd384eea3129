"""Code that was kept, brought into this process without LLVM; what is not kept is made, which loads LLVM.

What was linked is mapped into memory, which is then made executable and never writable again, and stays as long as
somebody refers to it. On AArch64, Linux makes new code visible to the processor when memory becomes executable.
"""

from __future__ import annotations

import ctypes
import functools
import marshal
import struct
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from wengert.native.availability import UnavailableError
from wengert.native.cache import object_cache
from wengert.native.lapack import PREFIX, lapack_address
from wengert.support.fork_safety import UNSTOPPED

if TYPE_CHECKING:  # what was kept is loaded without it
    from wengert.native.elf import Linked

ADDRESS = struct.Struct("<Q")
SORT = "numpy_"
"""What the names of NumPy's sorts begin with in native code: "numpy_argsort_stable_float64"."""
READ, WRITE, EXECUTE = 1, 2, 4
PRIVATE, ANONYMOUS = 2, 0x20
NOWHERE = (1 << 8 * ctypes.sizeof(ctypes.c_void_p)) - 1


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
        self.finish = functools.partial(self.release, ctypes.c_void_p(self.address), self.size)

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


def load_code(
    image: Linked | bytes, external: Mapping[str, int] | None = None, others: Callable[[str], int] | None = None
) -> Code:
    """Bring code for this machine into memory.

    Args:
        image: the code, linked, or as object code that LLVM alone can load.
        external: the addresses of functions that it calls, by name.
        others: gives those of the others; of Python and the C library, unless told otherwise.

    Raises:
        UnavailableError: the system lacks a function that the code calls, there is no memory for code, or LLVM is
            needed and absent.
    """
    known, others = external or {}, others or address_of
    if isinstance(image, bytes):
        from wengert.native.engine import loaded_by_llvm

        return Code(*loaded_by_llvm(image, known, others))
    content, inside, outside, functions = image
    memory, filled = CodeMemory(len(content)), bytearray(content)
    for place, target in inside:
        ADDRESS.pack_into(filled, place, memory.address + target)
    for place, name in outside:
        ADDRESS.pack_into(filled, place, known[name] if name in known else others(name))
    memory.hold(filled)
    return Code({name: memory.address + place for name, place in functions}, memory)


def read_code(data: bytes) -> Linked | bytes:
    """Return code that was kept as bytes; what cannot be such is one of `cache.UNREADABLE`."""
    return check_code(marshal.loads(data))


def check_code(image: Any) -> Linked | bytes:
    """Return code that was kept, whose places are inside of it; what cannot be code is an error of `cache.UNREADABLE`.

    Raises:
        ValueError: nobody linked that; or another error of those.
    """
    if type(image) is bytes:
        return image
    content, inside, outside, functions = image
    size, last = len(content), len(content) - ADDRESS.size
    sound = all(0 <= place <= last and 0 <= target <= size for place, target in inside)
    sound = sound and all(0 <= place <= last and type(name) is str for place, name in outside)
    sound = sound and all(0 <= place <= size and type(name) is str for name, place in functions)
    if not sound or type(content) is not bytes:
        raise ValueError("a place outside of code")
    found: Linked = image
    return found


def address_of(name: str) -> int:
    """Return the address of a function of Python's or of the C library, or of LAPACK's or NumPy's as named here.

    Raises:
        UnavailableError: there is none.
    """
    if name.startswith(PREFIX):
        return lapack_address(name)
    if name.startswith(SORT):
        with UNSTOPPED:
            from wengert.native.numpy_sorts import sort_address

        return sort_address(name)
    try:  # a sixth of the time of a function of ctypes
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))
    except ValueError:
        raise UnavailableError(f"{name}: the system has no such function") from None


def kept_object(key: str, write: Callable[[], str]) -> Linked | bytes:
    """Return code for this machine that is known by a key: from the cache, or made now and kept there.

    Raises:
        UnavailableError: there is no LLVM.
    """
    cache = object_cache()
    image: Linked | bytes | None = cache.get(key, read=read_code)
    if image is None:
        with UNSTOPPED:
            from wengert.native.cache_writing import put
            from wengert.native.engine import emit_object, host, link_object

        image = link_object(emit_object(write(), host()))
        put(cache, key, marshal.dumps(image))
    return image


FUNCTIONS: dict[str, int] = {}
"""The addresses of functions that programs call and do not have, by their names."""


def kept_function(name: str, write: Callable[[str], str]) -> int:
    """Return the address of a function that programs call and do not have; it is compiled once, or found in the cache.

    Raises:
        UnavailableError: it cannot be had here.
    """
    address = FUNCTIONS.get(name)
    if address is None:
        image = kept_object(f"function {name}", lambda: write(name))
        code = load_code(image, others=lambda other: kept_function(other, write) if "." in other else address_of(other))
        code.stay()  # programs that call it may run until the very end of the process
        address = FUNCTIONS[name] = code.addresses[name]
    return address


@functools.cache
def kept_code(key: str, write: Callable[[], str] | None = None) -> Code:
    """Return code that is known by a key, from the cache or compiled now; it stays until the process ends.

    Args:
        key: what it is known by, or the text itself.
        write: gives the text, if the key is not the text.

    Raises:
        UnavailableError: the system lacks a function that the text calls, or LLVM is absent.
    """
    code = load_code(kept_object(key, write or (lambda: key)))
    code.stay()  # threads may be in it until the very end of the process
    return code
