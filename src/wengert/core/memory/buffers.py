"""Memory: who relies on the content of a buffer, and so whether it may be overwritten.

`_kept` of a Tensor says it. False: the buffer is the Tensor's own, and a write goes into it. True: somebody relies on
what it holds, and a write copies it first. `BORROWED`: it is an ndarray that its owner may write to without our
hearing of it, so that whoever relies on it copies it at once. `lend` is for those who rely on a value from now
on, `take` and `may_overwrite` for those who write, `own` for those who need memory that is nobody else's. Where the
user must not write, `forbid_writes` says so.

(What is recorded most often sets `_kept` in line, and a sweep remembers in a set which cotangents are its own.)
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import numpy as np

from wengert.core.memory.memory_layout import Handle, in_normal_form, without_repetition

H = TypeVar("H", bound=Handle)
ndarray = np.ndarray
BORROWED = "borrowed"
MUCH = 1 << 20
"""Bytes from which a copy takes longer than to find out that nobody writes, some 40 us."""


def keep(tensor: Handle) -> None:
    """Mark the buffer under a Tensor, down to the lowest level, as relied upon by somebody else."""
    value: Any = tensor
    while hasattr(value, "_kept"):  # a Tensor
        value._kept = value._kept or True
        trace = value._trace
        value = value._value if trace is None else trace.owner(value)


def forbid_writes(tensor: H) -> H:
    """Let a Tensor refuse writes, as the read-only ndarray does that it stands for; return it."""
    tensor._kept = tensor._kept or True  # which the compact paths look at
    tensor._fixed = True
    return tensor


def own_memory(tensor: Handle) -> None:
    """Replace memory that belongs to an ndarray of the user, who may write to it, by a copy."""
    if tensor._kept is BORROWED:
        tensor._value = tensor._value.copy(order="K")
        tensor._kept = True


def lend(tensor: Handle) -> Any:
    """Return the value of a Tensor for somebody who relies on it from now on."""
    if tensor._kept is not True:
        own_memory(tensor)
        tensor._kept = True
    return tensor._value


def lent(array: np.ndarray[Any, Any], tape: Any = None, order: Literal["C", "K"] = "K") -> np.ndarray[Any, Any]:
    """Return an ndarray of the user for somebody who relies on it: a copy, unless nobody can write to its memory.

    Args:
        array: the ndarray.
        tape: what relies on it, which may know that nobody will write to large ones before its sweep.
        order: the memory order of a copy.
    """
    if tape is not None and array.nbytes >= MUCH and may_change(array):
        lies_alike = array.flags.c_contiguous if order == "C" else array.flags.forc
        if lies_alike and tape.leaves_alone and owns_memory(array):
            return read_only(array)
    return array.copy(order=order) if array.flags.writeable else as_fixed(array)


def owns_memory(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether NumPy made the memory of an ndarray: others, such as files in memory, have owners who may write."""
    memory: Any = array
    while type(memory) is ndarray and memory.base is not None:
        memory = memory.base
    return type(memory) is ndarray and memory.flags.owndata


def may_overwrite(buffer: Any, kept: Any) -> bool:
    """Tell whether a write may go into a buffer, given whether somebody relies on its content."""
    return not kept and type(buffer) is ndarray and buffer.flags.writeable


def take(buffer: Any, kept: Any) -> np.ndarray[Any, Any]:
    """Return a buffer for writing: itself if it may be overwritten, else a copy."""
    return buffer if may_overwrite(buffer, kept) else np.array(buffer)


def own(value: Any) -> Any:
    """Return a copy of a Tensor, array or scalar that may be written to: an array or Tensor."""
    return value.copy() if hasattr(value, "_kept") else np.array(value)


def copy_alike(value: Any) -> Any:
    """Return a copy of a value that a Tensor holds, which lies as it does; a Python number has no memory."""
    if type(value) is ndarray and value.size and not value.flags.forc:
        return laid_alike(value)
    return value.copy(order="K") if hasattr(value, "copy") else value


def laid_alike(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy with gaps between its elements in the same places, by which NumPy chooses its loops and their bits.

    >>> laid_alike(np.arange(40.0)[::-4]).strides, laid_alike(np.broadcast_to(np.ones(3), (2, 3))).strides
    ((-16,), (0, 8))
    """
    strides = in_normal_form(array.shape, array.strides, array.itemsize) or array.strides
    reach = [(n - 1) * step for n, step in zip(array.shape, strides, strict=True)]
    low, high = sum(min(x, 0) for x in reach), sum(max(x, 0) for x in reach)
    memory = np.empty(high - low + array.itemsize, np.uint8)
    found: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, memory.data, -low, strides)
    found[...] = array
    if any(n > 1 and not step for n, step in zip(array.shape, strides, strict=True)):
        found.flags.writeable = False
    return found


def as_fixed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array that nobody can write to: itself, or a read-only copy.

    >>> import numpy as np
    >>> array = as_fixed(np.ones(2))
    >>> as_fixed(array) is array
    True
    """
    return fixed_copy(array) if may_change(array) else array


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a window on an array through which nobody writes, by which others know that it is not theirs."""
    window = array.view()
    window.flags.writeable = False
    return window


def may_change(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether somebody can write to an array: itself, or what it is a view of.

    >>> import numpy as np
    >>> array = np.ones(2)
    >>> may_change(np.broadcast_to(array, (3, 2)))
    True
    """
    memory: Any = array
    while hasattr(memory, "base"):  # as_strided puts an object between
        if isinstance(memory, np.ndarray) and memory.flags.writeable:
            return True
        memory = memory.base
    return memory is not None and not isinstance(memory, bytes)


def as_bytes(array: np.ndarray[Any, Any]) -> bytes:
    """Return the elements of an array in C order: without a copy of those that `array_of_bytes` has put in bytes.

    >>> array = array_of_bytes(np.ones((2, 3)))
    >>> as_bytes(array) is as_bytes(array.reshape(-1))
    True
    """
    memory: Any = array
    while isinstance(memory, np.ndarray):
        memory = memory.base
    is_all = isinstance(memory, bytes) and len(memory) == array.nbytes and array.flags.c_contiguous
    return memory if is_all else array.tobytes()


def array_of_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array in C order that nobody can ever write to, as an object of bytes: a copy, unless it is one."""
    if array.base is not None and array.flags.c_contiguous and not may_change(array):
        return array
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def fixed_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a read-only copy in the same order; what is repeated along axes stays one element in memory."""
    narrow = np.array(without_repetition(array), order="K")
    narrow.flags.writeable = False
    return narrow if narrow.shape == array.shape else np.broadcast_to(narrow, array.shape)
