"""Writing to the cache of object code, and what is asked of all of it: no process that finds its code there does.

Entries are written under another name and then renamed, so readers see whole ones or none. Those used least recently go
when there is too much.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence

from wengert.native.cache import SUFFIX, Bytes, ObjectCache, log_line, seal_of, size_of
from wengert.support.records import FieldRecord

SHARE = 16  # a process looks for what to remove after having written this part of the limit
ABANDONED = 3600.0  # seconds after which nobody will finish a file that was begun


class Usage(FieldRecord):
    """What a cache holds: how many entries, and how many bytes."""

    entries: int
    size: int


def put(cache: ObjectCache, text: str, data: bytes, beside: Sequence[Bytes] = ()) -> None:
    """Keep what was made from a text and the arrays beside it; do nothing where that is not possible."""
    path = cache.path_of(text)
    if path is None:
        return
    name, begun = os.path.basename(path), f"{path}.{os.getpid()}-{os.urandom(6).hex()}"
    try:
        with open(begun, "xb", opener=for_me_alone) as file:
            file.write(seal(name, data))
            for array in beside:
                file.write(array.data)
        os.replace(begun, path)
    except FileNotFoundError:  # another process cleared the cache meanwhile
        return
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(begun)
        cache.refusal = f"nothing can be written to it ({error.strerror})"
        log_line(f"{cache.folder} is not used any more, because {cache.refusal}")
        return
    size = len(data) + size_of(beside)
    log_line(f"{name}: kept, {size} bytes")
    cache.unseen += size
    if cache.unseen >= cache.limit // SHARE:
        cache.unseen = 0
        shrink(cache)


def shrink(cache: ObjectCache) -> None:
    """Remove the entries used least recently until the others fit, and what was never finished."""
    found = sorted(files(cache), key=lambda entry: -entry[1].st_mtime)
    size, now = 0, time.time()
    for path, status in found:
        finished = path.endswith(SUFFIX)
        size += status.st_size if finished else 0
        if size > cache.limit or (not finished and now - status.st_mtime > ABANDONED):
            with contextlib.suppress(OSError):  # another process was faster
                os.unlink(path)
            log_line(f"{os.path.basename(path)}: removed")


def usage_of(cache: ObjectCache) -> Usage:
    """Return how much is kept."""
    sizes = [status.st_size for path, status in files(cache) if path.endswith(SUFFIX)]
    return Usage(len(sizes), sum(sizes))


def clear(cache: ObjectCache) -> Usage:
    """Remove all entries, and nothing else that may lie in the folder; return what was there."""
    before = usage_of(cache)
    for path, _ in files(cache):
        with contextlib.suppress(OSError):
            os.unlink(path)
    return before


def files(cache: ObjectCache) -> Iterator[tuple[str, os.stat_result]]:
    """Return the entries, and those that somebody has begun to write, with their status."""
    if cache.folder is None or cache.refusal:
        return
    with contextlib.suppress(OSError), os.scandir(cache.folder) as entries:
        for entry in entries:
            if SUFFIX in entry.name:
                with contextlib.suppress(OSError):
                    yield entry.path, entry.stat(follow_symlinks=False)


def for_me_alone(path: str, flags: int) -> int:
    """Open a file that only the user may read and write, if it is made."""
    return os.open(path, flags, 0o600)


def seal(name: str, data: bytes) -> bytes:
    """Return the content of a file with some data: a digest of name and data comes first."""
    return seal_of(name, data) + data
