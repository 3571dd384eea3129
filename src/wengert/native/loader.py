"""Code that was kept, brought into this process without LLVM; what is not kept is made, which loads LLVM."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from wengert.native.cache import object_cache
from wengert.native.code_memory import Code, address_of, is_linked, load, read_linked
from wengert.support.fork_safety import UNSTOPPED


def load_code(
    image: bytes, external: Mapping[str, int] | None = None, others: Callable[[str], int] = address_of
) -> Code:
    """Bring object code for this machine into memory.

    Raises:
        UnavailableError: the system lacks a function that the code calls, there is no memory for code, or LLVM is
            needed and absent.
    """
    known = external or {}
    if is_linked(image):
        return load(image, lambda name: known[name] if name in known else others(name))
    from wengert.native.engine import loaded_by_llvm

    return loaded_by_llvm(image, known, others)


def check_code(image: bytes) -> bytes:
    """Return object code that was kept; an error of `cache.UNREADABLE` is raised if it cannot have been written so."""
    if is_linked(image):
        read_linked(image)
    return image


def kept_object(key: str, write: Callable[[], str]) -> bytes:
    """Return object code for this machine that is known by a key: from the cache, or made now and kept there.

    Raises:
        UnavailableError: there is no LLVM.
    """
    cache = object_cache()
    image: bytes | None = cache.get(key, read=check_code)
    if image is None:
        with UNSTOPPED:
            from wengert.native.engine import emit_object, host, link_object

        image = link_object(emit_object(write(), host()))
        cache.put(key, image)
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
