"""Entries whose calls are native: Python classes over types that have room for what native code needs.

PyType_FromSpec makes these types from Python. `calling.call` runs when an entry is called; it is set with the first
variant, so what is never compiled loads no code. What entries and variants own lies in ordinary slots of Python's:
CPython itself counts, visits and clears it, and native code finds nothing there once it is cleared.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from wengert.native.availability import UnavailableError
from wengert.native.entries.callee import GENERATION, Callee
from wengert.native.entries.kinds import (
    NOTHING,
    NUMBERS,
    ArrayKind,
    Beside,
    ContainerKind,
    Kind,
    NumberKind,
    check_leaves,
    leaves,
)
from wengert.native.entries.tables import ENTRY, VARIANT, Tables, room_for, span
from wengert.native.objects import OBJECT, TYPE, check_layout
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.function_protocol import LikeFunction

BASE_TYPE, HAS_VECTORCALL, DEFAULT = 1 << 10, 1 << 11, 1 << 18  # Py_TPFLAGS
CALL, MEMBERS = 50, 72  # Py_tp_call, Py_tp_members
SIZE_MEMBER, READ_ONLY = 19, 1  # Py_T_PYSSIZET, Py_READONLY
NUMPY_FUNCTIONS = {"PyArray_NewFromDescr": 94, "PyArray_NewCopy": 85, "PyArray_Scalar": 60}
"""Places in the table of NumPy's functions, which its header numbers."""


class Member(ctypes.Structure):
    """PyMemberDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    )


def type_with_room(name: str, size: int, vectorcall: int | None = None) -> Any:
    """Return a type whose objects have room for a structure that begins with what every object begins with.

    Args:
        name: of the type.
        size: of the structure.
        vectorcall: where in it the address of the function stands that is called; none if it cannot be called.
    """
    members = (Member * 2)()
    slots = (Slot * 3)()
    flags = DEFAULT | BASE_TYPE
    if vectorcall is not None:
        members[0] = Member(b"__vectorcalloffset__", SIZE_MEMBER, vectorcall, READ_ONLY, None)
        function = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)
        slots[0], slots[1] = Slot(CALL, function), Slot(MEMBERS, ctypes.addressof(members))
        flags |= HAS_VECTORCALL
    spec = Spec(f"wengert.{name}".encode(), size, 0, flags, slots)
    made = python_function("PyType_FromSpec", ctypes.py_object, ctypes.c_void_p)(ctypes.addressof(spec))
    KEPT.append((members, slots, spec))  # Python 3.11 refers to the name
    return made


def python_function(name: str, returns: Any, *parameters: Any) -> Callable[..., Any]:
    """Return a function of Python's own interface."""
    return ctypes.PYFUNCTYPE(returns, *parameters)((name, ctypes.pythonapi))


KEPT: list[Any] = []


def call_by_class(cls: type) -> None:
    """Let objects of a class be called through their vectorcall function, if they have one, even if it has `__call__`.

    Python does so only for types of C (3.11), or those without `__call__` (from 3.12 on).
    """
    TYPE.view(id(cls)).flags |= HAS_VECTORCALL


VariantBase: Any = type_with_room("VariantBase", VARIANT.offset("kept"))
EntryBase: Any = type_with_room("EntryBase", ENTRY.offset("fallback"), ENTRY.offset("vectorcall"))


class NativeVariant(VariantBase):  # type: ignore[misc]  # its base is made at run time
    """Be one way to call a kernel: what arguments it is for, and what its result is.

    Args:
        arguments: their kinds; those given by name come last.
        result: the kind of the result.
        callee: the kernel; several variants may share it.
        names: of the arguments given by name, in their order.
        beside: what else it reads and writes.
        more: the kinds of its outputs that are no part of the result.

    Raises:
        ValueError: there are too many arrays and numbers, or numbers of another type.
    """

    __slots__ = ("kept", "next", "plan")

    def __init__(
        self,
        arguments: Sequence[Kind],
        result: Kind,
        callee: Callee,
        names: Sequence[str] = (),
        beside: Beside = NOTHING,
        more: Sequence[ArrayKind] = (),
    ) -> None:
        given = [*arguments, *[kind for _, kind in beside.captured]]
        check_leaves(given, (result, *more))
        tables = Tables(beside.written)
        view = VARIANT.view(id(self))
        view.kernel, view.nodes, view.names = callee.address, tables.arguments(given), tables.names(names)
        view.result, view.made = tables.result(result, more)
        view.arguments, view.positional = len(arguments), len(arguments) - len(names)
        view.inputs, view.outputs = len(list(leaves(given))), len(list(leaves((result, *more))))
        view.captured = tables.words([tables.address(x) for x, _ in beside.captured])
        view.others, view.spans = len(beside.captured), tables.spans(given)
        view.written, view.writes = tables.words(beside.written), len(beside.written)
        first = view.outputs - len(more)
        donated = [(place, view.inputs + first + k, span(more[k])[1]) for place, k in beside.donated]
        view.donated, view.donations = tables.words([x for triple in donated for x in triple]), len(donated)
        view.room = room_for(view.inputs + view.outputs)
        view.arena = None if callee.arena is None else callee.arena.ctypes.data
        pieces = callee.pieces()
        view.size, view.pieces, view.count = callee.size, tables.pieces(pieces), len(pieces)
        view.busy = ctypes.addressof(callee.busy) if callee.is_left else None
        view.generation = ctypes.addressof(GENERATION)
        view.team, view.releases = None if callee.team is None else ctypes.addressof(callee.team), callee.releases
        view.copied, view.copies = tables.words(tables.copied), len(tables.copied)
        view.holds = bool(tables.copied) or any(isinstance(kind, ContainerKind) for kind in given)
        self.kept = tables.kept, callee

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied: the addresses hold in this process only."""
        raise TypeError("native code cannot be pickled or copied")


class NativeEntry(EntryBase, LikeFunction):  # type: ignore[misc]  # its base is made at run time
    """Be something to call that runs a kernel where the arguments suit one of its variants.

    A class that derives from it has a `__call__` for arguments that suit none.
    """

    __slots__ = ("fallback", "first")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make a class be called natively."""
        super().__init_subclass__(**kwargs)
        call_by_class(cls)

    def add(self, variant: NativeVariant) -> None:
        """Try a variant from now on, before the others; one that was not used for long may be forgotten.

        Raises:
            UnavailableError: native code cannot be had here.
        """
        code = native_code()
        self.fallback = type(self).__call__
        code.insert(self, variant)
        ENTRY.view(id(self)).vectorcall = code.call

    def variants(self) -> list[NativeVariant]:
        """Return the variants, in the order in which they are tried."""
        found, variant = [], getattr(self, "first", None)
        while variant is not None:
            found.append(variant)
            variant = getattr(variant, "next", None)
        return found

    def forget(self) -> None:
        """Forget all variants."""
        if hasattr(self, "first"):
            del self.first

    def __getstate__(self) -> Any:
        """Return what a copy in another process has: no variants."""
        return getattr(self, "__dict__", None)


class NativeCode:
    """The functions of `calling`, loaded.

    Attributes:
        call: the address of what runs when an entry is called.
        insert: puts a variant into an entry.
    """

    def __init__(self) -> None:
        with UNSTOPPED:
            from wengert.native.loader import kept_object, load_code

        key = f"the entry of {sys.implementation.cache_tag}, NumPy {np.__version__}"
        code = load_code(kept_object(key, program_text), {name: numpy_function(name) for name in NUMPY_FUNCTIONS})
        code.stay()  # entries are called until the very end of the process
        self.call = code.addresses["call"]
        entry = ctypes.py_object
        self.insert = ctypes.PYFUNCTYPE(ctypes.c_int, entry, entry)(code.addresses["insert"])


native_code = functools.cache(NativeCode)


def program_text() -> str:
    """Return the text of the native functions; what it is written with is loaded only if it is needed."""
    with UNSTOPPED:
        from wengert.native.builder import program
        from wengert.native.entries.calling import call, insert

    return program(call, insert)


def numpy_function(name: str) -> int:
    """Return the address of one of NumPy's functions."""
    table = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API  # what NumPy's own header reads
    pointer = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    place = NUMPY_FUNCTIONS[name] * ctypes.sizeof(ctypes.c_void_p)
    return ctypes.c_void_p.from_address(pointer(table, None) + place).value or 0


# ------------------------------------------------------------------------------------------------ the probe


def probe() -> None:
    """Raise an UnavailableError unless Python's and NumPy's objects and functions are as native code needs them.

    What it looks at is all that `calling` and `tables` rely on beside functions that Python exports.
    """
    if sys.implementation.name != "cpython" or object.__basicsize__ != OBJECT.size:
        raise UnavailableError("this is not CPython with an interpreter lock")
    if os.name != "posix":
        raise UnavailableError("the C library is none of POSIX")
    check_layout()
    check_numbers()
    check_types()
    check_numpy_functions()


def check_numbers() -> None:
    """Raise an UnavailableError unless numbers lie where objects have nothing else."""
    for number in [kind(1) for kind in NUMBERS - {int, bool}]:
        data = np.array(number).tobytes()
        if (
            OBJECT.view(id(number)).type != id(type(number))
            or ctypes.string_at(id(number) + OBJECT.size, len(data)) != data
        ):
            raise UnavailableError(f"the layout of {type(number).__name__} is unknown")


def check_types() -> None:
    """Raise an UnavailableError unless the slots of entries and variants lie where native code looks for them."""

    class Probed(NativeEntry):
        __slots__ = ()

        def __call__(self) -> str:
            return "called"

    view = TYPE.view(id(Probed))
    entry: Any = Probed()
    variant, value = NativeVariant((), NumberKind(float), Callee(0)), object()
    if (view.basicsize, view.flags & 0xFFFFFFFF) != (Probed.__basicsize__, Probed.__flags__ & 0xFFFFFFFF):
        raise UnavailableError("the layout of types is unknown")
    entry.fallback, entry.first, variant.next = value, variant, entry
    seen = ENTRY.view(id(entry))
    if (seen.fallback, seen.first) != (id(value), id(variant)) or entry() != "called":
        raise UnavailableError("the layout of entries is unknown")
    seen = VARIANT.view(id(variant))
    if (seen.next, seen.kept) != (id(entry), id(variant.kept)):
        raise UnavailableError("the layout of variants is unknown")
    del variant.next


def check_numpy_functions() -> None:
    """Raise an UnavailableError unless NumPy's functions make what they should."""
    dtype, shape = np.dtype(np.float32), (ctypes.c_int64 * 2)(2, 3)
    thing, address, number = ctypes.py_object, ctypes.c_void_p, ctypes.c_int
    signature = (thing, thing, thing, number, address, address, address, number, address)
    new_array = ctypes.PYFUNCTYPE(*signature)(numpy_function("PyArray_NewFromDescr"))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))
    array = new_array(np.ndarray, dtype, 2, ctypes.addressof(shape), None, None, 0, None)
    new_scalar = ctypes.PYFUNCTYPE(thing, address, thing, address)(numpy_function("PyArray_Scalar"))
    scalar = new_scalar(ctypes.addressof(ctypes.c_float(2.5)), dtype, None)
    new_copy = ctypes.PYFUNCTYPE(thing, thing, number)(numpy_function("PyArray_NewCopy"))
    array[...] = np.arange(6).reshape(2, 3)
    copy = new_copy(array.T, 0)
    if (array.shape, array.dtype, array.flags.owndata, scalar) != ((2, 3), dtype, True, np.float32(2.5)):
        raise UnavailableError("NumPy's functions are unknown")
    if not copy.flags.c_contiguous or not np.array_equal(copy, [[0, 3], [1, 4], [2, 5]]):
        raise UnavailableError("NumPy's functions are unknown")
