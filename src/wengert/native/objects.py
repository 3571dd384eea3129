"""Python's and NumPy's objects as native code sees them: their structures in the public headers."""

from __future__ import annotations

import ctypes

import numpy as np

from wengert.native.availability import UnavailableError
from wengert.native.structs import I8, I32, I64, POINTER, Array, Pointer, Struct

HEAD = Array(I64, object.__basicsize__ // 8)
"""What every Python object begins with."""

OBJECT = Struct("Object", references=I64, type=POINTER)
"""What it is where it is known."""

TYPE = Struct(
    "Type",
    head=HEAD,
    length=I64,
    title=POINTER,
    basicsize=I64,
    itemsize=I64,
    dealloc=POINTER,
    vectorcall_offset=I64,
    getattr=POINTER,
    setattr=POINTER,
    as_async=POINTER,
    repr=POINTER,
    as_number=POINTER,
    as_sequence=POINTER,
    as_mapping=POINTER,
    hash=POINTER,
    call=POINTER,
    str=POINTER,
    getattro=POINTER,
    setattro=POINTER,
    as_buffer=POINTER,
    flags=I64,
)
"""A type, up to its flags."""

ARRAY = Struct(
    "Array",
    head=HEAD,
    data=Pointer(I8),
    rank=I32,
    shape=Pointer(I64),
    strides=Pointer(I64),
    base=POINTER,
    dtype=POINTER,
    flags=I32,
)
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

DTYPE = Struct("Dtype", head=HEAD, type=POINTER, characters=I32, number=I32)
"""A dtype, up to its number: the type of its scalars; its characters for kind, type and byte order. These say all of a
number's dtype; arrays that were unpickled have dtypes of their own, which say the same as NumPy's."""


def check_layout() -> None:
    """Raise an UnavailableError unless arrays are as ARRAY has them."""
    array = np.zeros((2, 3))
    view = ARRAY.view(id(array))
    flags = CONTIGUOUS | ALIGNED | WRITEABLE
    found = view.data, view.rank, view.dtype, view.flags & flags
    if found != (array.ctypes.data, array.ndim, id(array.dtype), flags):
        raise UnavailableError("the layout of arrays is unknown")
    known = array.dtype
    for dtype in (known, known.newbyteorder("="), known.newbyteorder("S")):
        seen, one = DTYPE.view(id(dtype)), DTYPE.view(id(known))
        if (seen.type, seen.number) != (id(dtype.type), dtype.num) or (
            seen.characters == one.characters
        ) != dtype.isnative:
            raise UnavailableError("the layout of dtypes is unknown")
    for address, expected in ((view.shape, array.shape), (view.strides, array.strides)):
        if tuple((ctypes.c_int64 * array.ndim).from_address(address)) != expected:
            raise UnavailableError("the layout of arrays is unknown")
