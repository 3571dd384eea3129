"""Files that appear whole or not at all: written beside their place, made to last, and renamed.

Whoever is ended between two steps, or has no more room, leaves the file that was there before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable
from itertools import pairwise
from typing import BinaryIO

PREFIX = ".wengert-"
"""How files begin that somebody has begun to write."""
ABANDONED = 3600.0
"""Seconds without a byte after which nobody will finish one of them."""


def write_whole(path: str | bytes | os.PathLike[str], write: Callable[[BinaryIO], object], count: int = 1) -> None:
    """Let a function write a file, which then takes the place of the one that has this name.

    A link stays, and the file that it leads to is replaced; its permissions stay, too. Devices and pipes, of which
    nothing can be kept, are written to as they are.

    Args:
        path: the file.
        write: is given the file, open for bytes.
        count: how many files there may be afterwards: those before become `path.1`, `path.2` and so on.

    Raises:
        OSError: it cannot be written; then all is as before.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for content in (b"one", b"two"):
    ...         write_whole(f"{folder}/x", lambda file: file.write(content), count=2)
    ...     sorted(os.listdir(folder))
    ['x', 'x.1']
    """
    target = os.path.realpath(os.fsdecode(path))
    before = status_of(target)
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(target, "wb") as device:
            write(device)
        return
    begun = os.path.join(os.path.dirname(target), f"{PREFIX}{os.urandom(8).hex()}")
    try:
        with open(begun, "xb") as file:
            if before is not None:
                os.chmod(begun, stat.S_IMODE(before.st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            keep_older(target, count)
        os.replace(begun, target)
    except OSError as error:
        # a name that nobody has heard of; none, where a disk is full
        if error.errno is not None and error.filename in (begun, None):
            raise OSError(error.errno, error.strerror, os.fsdecode(path)) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(begun)
    settle(os.path.dirname(target))


def status_of(path: str) -> os.stat_result | None:
    """Return the status of a file; None if there is none."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def keep_older(path: str, count: int) -> None:
    """Give a file that is to be replaced, and those before it, the names of older ones, of which `count - 1` stay."""
    names = [path, *(f"{path}.{number}" for number in range(1, count))]
    for newer, older in reversed(list(pairwise(names[1:]))):
        with contextlib.suppress(FileNotFoundError):
            os.replace(newer, older)
    if count > 1:  # the file itself keeps its name until the new one takes it
        with contextlib.suppress(FileNotFoundError):
            os.unlink(names[1])
        try:
            os.link(path, names[1])
        except OSError:  # there are file systems without further names
            shutil.copyfile(path, names[1])


def settle(folder: str) -> None:
    """Make names in a folder last where the system can, and remove what others began and will not finish."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and time.time() - entry.stat().st_mtime > ABANDONED:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    with contextlib.suppress(OSError):  # Windows opens no folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
