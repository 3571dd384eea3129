"""Archives of arrays and a text, as NumPy writes them, whose digest tells whether all is as it was saved.

No code in a file runs, and what is read lies in memory that the file has enough bytes to fill.
"""

from __future__ import annotations

import ast
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from wengert.support.digests import digest_of
from wengert.support.whole_files import write_whole

CONTENT = "content"
"""The name of the entry that has the text."""
DIGEST = "digest"
"""The name of the entry that tells whether the others are as they were saved."""
MAGIC = b"\x93NUMPY"
"""What arrays of NumPy begin with in files."""
CHUNK = 1 << 20
"""Bytes that are read at once."""
DAMAGED = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    RuntimeError,
    SyntaxError,
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged archive may raise."""
NAMED = 5
"""How many entries of an archive an error names."""


class ChangedError(ValueError):
    """Say that an archive does not hold what was saved."""


class OtherArchiveError(ValueError):
    """Say that an archive is of somebody else, with the names of some entries."""


def write_arrays(
    file: str | os.PathLike[str] | BinaryIO, text: str, arrays: Sequence[np.ndarray[Any, Any]], count: int = 1
) -> None:
    """Write an archive; one given by its path appears whole or not at all, and `count` files are there afterwards."""
    entries = {CONTENT: np.array(text), DIGEST: np.array(fingerprint(text, arrays))}
    entries |= {str(i): array for i, array in enumerate(arrays)}
    if isinstance(file, str | os.PathLike):
        write_whole(file, lambda opened: np.savez(opened, **entries), count)  # type: ignore[arg-type]  # an option's
    else:
        np.savez(file, **entries)  # type: ignore[arg-type]  # its stub has an option among the names


def read_arrays(file: str | os.PathLike[str] | BinaryIO) -> tuple[str, list[np.ndarray[Any, Any]]]:
    """Return the text and the arrays of an archive.

    Raises:
        OtherArchiveError: `write_arrays` did not write it.
        ChangedError: it holds something else than what was written.
        OSError: it cannot be read.
        Exception: one of DAMAGED, if it is damaged.
    """
    with zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if CONTENT not in names and DIGEST not in names:
            shown = ", ".join(map(repr, names[:NAMED])) or "nothing"
            raise OtherArchiveError(shown + (", ..." if names[NAMED:] else ""))
        text = str(read_entry(archive, CONTENT))
        arrays = [read_entry(archive, str(i)) for i in range(len(names) - 2)]
        if str(read_entry(archive, DIGEST)) != fingerprint(text, arrays):
            raise ChangedError("the digest is another")
    return text, arrays


def fingerprint(text: str, arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """Return the digest of what is in a file: of its text, and of types, shapes and elements of its arrays."""
    parts: list[Any] = [text.encode()]
    for array in arrays:
        rows = array.T if array.flags.fnc else array
        parts += repr((np.lib.format.dtype_to_descr(array.dtype), array.shape)).encode(), as_bytes(rows)
    return digest_of(*parts).hex()


def as_bytes(array: np.ndarray[Any, Any]) -> Any:
    """Return the elements of an array, in C order, as what can be read byte by byte, without a copy if they lie so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else b""


def read_entry(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    """Return an array of an archive, in memory that the file has enough bytes to fill."""
    info = archive.getinfo(f"{name}.npy")
    entry: Any
    with archive.open(info) as entry:
        if info.compress_type != zipfile.ZIP_STORED or entry.read(len(MAGIC)) != MAGIC:
            raise ValueError("no array as it lies in memory")
        width = 2 if entry.read(2)[0] == 1 else 4  # the version, of which later ones have longer headers
        header = ast.literal_eval(entry.read(int.from_bytes(entry.read(width), "little")).decode())
        dtype = np.lib.format.descr_to_dtype(header["descr"])
        shape = header["shape"]
        if dtype.hasobject or math.prod(shape) * dtype.itemsize > archive.start_dir:
            raise ValueError("more elements than bytes")
        array = np.empty(shape, dtype, "F" if header["fortran_order"] else "C")
        space = as_bytes(array.T if header["fortran_order"] else array)
        count = sum(entry.readinto(space[start : start + CHUNK]) for start in range(0, len(space), CHUNK))
        if count != array.nbytes or entry.read(1):
            raise ValueError("another number of elements")
        return array
