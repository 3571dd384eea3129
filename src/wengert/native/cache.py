"""Object code kept on disk, so that what was compiled once is not compiled again by any process of the user.

An entry is a file named by a hash of what its content was made from: a text given by the caller, Wengert's version and
sources, the versions of Python, NumPy and LLVM, and the processor with its features. It begins with a digest of its
name and content, and what was damaged is not used. Large arrays that whoever asks has, too, come last: they are
compared, which takes a tenth of the time of a digest, and tell entries apart, so that a text need not say what they
are. A folder in which others could place code is not used at all, nor one that they could put another in the place of,
by what they may write to above it, nor an entry that is a link. `cache_writing` writes entries.

`WENGERT_CACHE` is the folder; `0`, `off` or nothing keeps no code. `WENGERT_LOG=cache` says what was found and kept.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import stat
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.native.availability import load_llvm
from wengert.support import config
from wengert.support.digests import DIGEST, digest_of

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
MAGIC = b"Wengert object 1\n"
PIECE = 1 << 16  # bytes that are compared at once
SUFFIX = ".object"
LIMIT = 256 << 20  # bytes in all
USED_AGAIN = 3600.0  # seconds until the use of an entry is noted again
MAKERS = ("compile", "control", "core", "emission", "kernel", "lowering", "native", "passes", "primitives")
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
PLAINLY = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""How to open what may be a link, which is refused, or a pipe, which nobody may write to."""
UNREADABLE = (ValueError, TypeError, EOFError, LookupError, ArithmeticError, MemoryError)
"""What `marshal` and those who use its values raise of bytes that nobody wrote so."""
MOST_LINKS = 40
"""Links on the way to a folder, as many as Linux follows."""


class ObjectCache:
    """Have object code, or whatever else was made from a text, in a folder.

    Args:
        folder: where; made if it does not exist; nothing is kept if there is none.
        limit: how many bytes to keep.
    """

    def __init__(self, folder: str | None, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.unseen = limit  # bytes written by this process since it last looked how much there is
        self.refusal = "it is switched off" if folder is None else refusal_of(folder)
        if folder is not None and self.refusal:
            log_line(f"{folder} is not used, because {self.refusal}")

    def get(self, text: str, beside: Sequence[Bytes] = (), read: Callable[[bytes], Any] = bytes) -> Any:
        """Return what was kept for a text and the arrays beside it; None if there is nothing, or if it is damaged.

        Args:
            text: what it was made from.
            beside: the arrays.
            read: makes of the bytes what is wanted, or raises one of `UNREADABLE`.
        """
        path = self.path_of(text)
        if path is None:
            return None
        content, status = read_trusted(path, beside)
        name = os.path.basename(path)
        data = unseal(name, content)
        found = None if data is None else read_or_pass(data, read)
        if found is None:
            log_line(f"{name}: {'not found' if status is None else 'damaged or of other arrays, and not used'}")
            return None
        log_line(f"{name}: found")
        if status is not None and time.time() - status.st_mtime > USED_AGAIN:
            with contextlib.suppress(OSError):  # another process removed it, or it cannot be written to
                os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
        return found

    def path_of(self, text: str) -> str | None:
        """Return where the entry of a text lies, whether or not it is there; None if nothing is kept."""
        if self.folder is None or self.refusal:
            return None
        key = digest_of(text.encode(), b"\0", surroundings()).hex()
        return os.path.join(self.folder, key + SUFFIX)


def read_or_pass(data: bytes, read: Callable[[bytes], Any]) -> Any:
    """Return the object that `read` makes of bytes; None where they cannot be read, though their digest is right."""
    try:
        return read(data)
    except UNREADABLE:
        return None


def read_trusted(path: str, beside: Sequence[Bytes] = ()) -> tuple[bytes, os.stat_result | None]:
    """Return the content of a file that nobody else can have written, and its status; nothing of others.

    Nor of one that does not end with the arrays beside it, which are left out.

    Python's own files take three times as long.
    """
    try:
        file = os.open(path, os.O_RDONLY | PLAINLY)
    except OSError:
        return b"", None
    try:
        status = os.fstat(file)
        is_ours = stat.S_ISREG(status.st_mode) and is_trusted(status)
        content = os.read(file, max(status.st_size - size_of(beside), 0)) if is_ours else b""
        return content if all(follows(file, array) for array in beside) else b"", status
    except OSError:
        return b"", None
    finally:
        os.close(file)


def follows(file: int, array: Bytes) -> bool:
    """Tell whether the bytes that come next in a file are those of an array; pieces of them stay in the cache."""
    starts = range(0, array.nbytes, PIECE)
    return all(os.read(file, len(piece)) == piece for piece in (array[i : i + PIECE].tobytes() for i in starts))


def size_of(beside: Sequence[Bytes]) -> int:
    """Return how many bytes arrays have."""
    return sum([array.nbytes for array in beside])


def refusal_of(folder: str) -> str:
    """Make a folder if it is not there, and say why it must not be used; nothing if it may be."""
    try:
        if os.name != "posix":
            os.makedirs(folder, exist_ok=True)
            return ""
        return refusal_on_the_way(folder)
    except OSError as error:
        return f"it cannot be made ({error.strerror})"


def refusal_on_the_way(folder: str) -> str:
    """Go down to a folder from the root, and make what is missing; say why it must not be used, if that is so.

    Nobody else must be able to put something in the place of a folder on the way, or of a link. Where everybody may
    write but only remove what is theirs, as in `/tmp`, that holds for what is ours.
    """
    place, links = "/", 0
    owners = {0, os.geteuid(), os.stat("/").st_uid}  # where root has another number, it owns all of the system
    names = os.path.abspath(folder).split("/")[::-1]
    while names:
        name = names.pop()
        if not name or name == ".":
            continue
        if name == "..":
            place = os.path.dirname(place)
            continue
        found = os.path.join(place, name)
        with contextlib.suppress(FileExistsError):
            if not os.path.lexists(found):
                os.mkdir(found, 0o700)
        status = os.lstat(found)
        if status.st_uid not in owners:
            return f"{found} is another user's" if names else "others can write to it"
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                return "there are too many links on the way to it"
            target = os.readlink(found)
            place = "/" if target.startswith("/") else place
            names += target.split("/")[::-1]
            continue
        if not stat.S_ISDIR(status.st_mode):
            return f"{found} is no folder" if names else "it is no folder"
        if names and status.st_mode & OTHERS_MAY_WRITE and not status.st_mode & stat.S_ISVTX:
            return f"others can write to {found}"
        place = found
    return "" if is_trusted(os.stat(place)) else "others can write to it"


def is_trusted(status: os.stat_result) -> bool:
    """Whether a file or folder is the user's, and nobody else can write to it."""
    if os.name != "posix":
        return True  # there, the folder lies where other users have no rights
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_MAY_WRITE


def seal_of(name: str, data: bytes) -> bytes:
    """Return what a file with some data begins with."""
    return MAGIC + digest_of(name.encode(), b"\0", data)


def unseal(name: str, content: bytes) -> bytes | None:
    """Return the data in a file; None if the file is damaged, or was made under another name."""
    data = content[len(MAGIC) + DIGEST :]
    return data if content.startswith(seal_of(name, data)) else None


def log_line(line: str) -> None:
    """Print a line about the cache, if that is wanted."""
    if "cache" in config.LOGGED:
        from wengert.support.logs import say

        say("cache", f"cache: {line}")


@functools.cache
def surroundings() -> bytes:
    """Return a digest of what code depends on beside the text it is made from."""
    return digest_of(marshal.dumps(dependencies(), 0))


def dependencies() -> tuple[Any, ...]:
    """Return versions: Wengert, Python, NumPy, LLVM, SciPy (whose BLAS and LAPACK native code calls), the processor."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    libraries = library("llvmlite/_version.py"), library("scipy/version.py")
    return installation_record(folder) or sources(folder), sys.version, np.__version__, *libraries, processor()


def installation_record(folder: str) -> tuple[str, int, int] | None:
    """Return the record of an installer about the package in a folder, with size and time; None without one.

    Nobody edits what was installed, and to look at all its files takes a quarter of the time of starting.
    """
    beside = os.path.dirname(folder)
    if os.path.basename(beside) not in ("site-packages", "dist-packages"):
        return None
    with contextlib.suppress(OSError), os.scandir(beside) as entries:
        for entry in entries:
            if entry.name.startswith("wengert-") and entry.name.endswith(".dist-info"):
                status = os.stat(os.path.join(entry.path, "RECORD"))
                return entry.name, status.st_size, status.st_mtime_ns
    return None


def sources(folder: str) -> list[Any]:
    """Return folders, names, sizes and times of what makes code of graphs: whoever changes one begins anew.

    To look at 180 of them takes more than all else that starting needs, so this is written for that.
    """
    found: list[Any] = []
    folders = [f"{folder}/{name}" for name in MAKERS]
    for place in folders:
        found.append(place)
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(place)):
                if name.endswith((".py", ".json")):
                    status = os.stat(f"{place}/{name}")
                    found += name, status.st_size, status.st_mtime_ns
                elif "." not in name and name != "__pycache__":
                    folders.append(f"{place}/{name}")
    return found


def library(module: str) -> str:
    """Return the beginning of a module that tells a library's version, without loading it or what would look for it."""
    for place in sys.path:
        found = beginning(f"{place}/{module}", 1 << 12)
        if found:
            return found
    return "none"


def processor() -> str:
    """Return the processor's model and features: Linux says them in its first lines, elsewhere LLVM knows them."""
    kept = ("vendor_id", "cpu family", "model", "stepping", "flags", "features", "cpu ")
    first, _, _ = beginning("/proc/cpuinfo", 1 << 14).partition("\n\n")
    if first:
        return "\n".join([line for line in first.splitlines() if line.lower().startswith(kept) and "MHz" not in line])
    llvm = load_llvm()
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def beginning(path: str, size: int) -> str:
    """Return so many bytes of a file as text; nothing if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(file, size).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)


@functools.cache
def object_cache() -> ObjectCache:
    """Return the cache of this user; warn if it cannot be where it was wanted."""
    cache = ObjectCache(config.default_folder())
    if config.CACHE and cache.folder is not None and cache.refusal:
        needed = "a folder in which nobody else can put files is needed. Set another; nothing is kept meanwhile."
        warnings.warn(f"WENGERT_CACHE: {cache.folder}, not used because {cache.refusal}; {needed}", stacklevel=2)
    return cache
