"""Programs of machine code: what is kept of one, as plain data, and one in memory as a function of arrays."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.native.elementwise import SHARING
from wengert.native.engine import kept_object, loaded
from wengert.native.entry import Variant
from wengert.native.kinds import Kind
from wengert.native.memory import room

__all__ = ["Executable", "Image", "kept_function"]

Shape = tuple[int, ...]
LONG = 15_000
"""Cycles from which on other threads run Python meanwhile: about 5 microseconds."""


class Image(NamedTuple):
    """A program as machine code, with all that is needed to call it: numbers, strings and bytes alone.

    Attributes:
        code: object code; its function `run` is given the addresses of inputs and outputs, the arena, and the memory of
            the team or nothing.
        outside: the names of the functions that it calls and does not have.
        inputs, outputs: the dtype and the shape of each.
        size: bytes of the arena.
        constants: what it holds at first: places, and bytes.
        cycles: about how long it takes.
    """

    code: bytes
    outside: tuple[str, ...]
    inputs: tuple[tuple[str, Shape], ...]
    outputs: tuple[tuple[str, Shape], ...]
    size: int
    constants: tuple[tuple[int, bytes], ...]
    cycles: float


class Executable:
    """Run a program natively.

    Args:
        image: the program.
        address_of: gives the addresses of functions that it calls and does not have.

    Attributes:
        memory: the arena.

    Raises:
        AttributeError, ImportError, OSError, RuntimeError: it cannot be brought into memory here.
    """

    def __init__(self, image: Image, address_of: Callable[[str], int]) -> None:
        self.image = image
        self.code = loaded(image.code, {name: address_of(name) for name in image.outside})
        self.native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(self.code.addresses["run"])
        self.memory = self.room()
        self.lock = threading.Lock()  # the arena is for one call at a time
        self.given = [(np.dtype(dtype), shape) for dtype, shape in image.inputs]
        self.made = [(np.dtype(dtype), shape) for dtype, shape in image.outputs]

    def variant(self, arguments: Sequence[Kind], result: Kind, names: Sequence[str]) -> Variant:
        """Return the way for an entry to call the program.

        Args:
            arguments: kinds whose arrays and numbers are the inputs.
            result: the kind whose arrays and numbers are the outputs.
            names: of the arguments that are given by name.

        Raises:
            ValueError: there are too many inputs and outputs.
        """
        run, code = self.code.addresses["run"], self.code
        place, releases = SHARING.place, self.image.cycles > LONG
        options: Any = {"arena": self.memory, "team": place, "releases": releases, "owner": code}
        return Variant(arguments, result, run, names=names, **options)

    def room(self) -> Any:
        """Return an arena, which holds the constants."""
        memory = room(self.image.size)
        for place, contents in self.image.constants:
            memory[place : place + len(contents)] = np.frombuffer(contents, np.uint8)
        return memory

    def __call__(self, arrays: Sequence[Any], team: int | None = None) -> list[Any]:
        """Return the outputs for arrays that are the inputs.

        Args:
            arrays: of the inputs' dtypes and shapes.
            team: the address of the memory of the team that shares the work; none, if not given.
        """
        given = [checked(array, *kind) for array, kind in zip(arrays, self.given, strict=True)]
        made = [np.empty(shape, dtype) for dtype, shape in self.made]
        addresses = [array.ctypes.data for array in (*given, *made)]
        own = self.lock.acquire(blocking=False)  # a thread that has it may not exist in a forked process
        memory = self.memory if own else self.room()
        try:
            self.native((ctypes.c_void_p * len(addresses))(*addresses), memory.ctypes.data, team)
        finally:
            if own:
                self.lock.release()
        return made


def checked(array: Any, dtype: np.dtype[Any], shape: Shape) -> Any:
    """Return an array that must be of a dtype and a shape, with its elements side by side."""
    if array.dtype != dtype or array.shape != shape:
        raise TypeError(f"an input is {dtype}{shape}, {array.dtype}{array.shape} was given")
    return np.ascontiguousarray(array)


FUNCTIONS: dict[str, int] = {}
"""The addresses of functions that programs call and do not have, by their names."""


def kept_function(name: str, write: Callable[[str], str]) -> int:
    """Return the address of a function that programs call and do not have; it is compiled once, or found in the cache.

    Args:
        name: of the function.
        write: gives the text of a module that has the function of a name.

    Raises:
        AttributeError, ImportError, OSError, RuntimeError: it cannot be had here.
    """
    address = FUNCTIONS.get(name)
    if address is None:
        code = loaded(kept_object(f"function {name}", lambda: write(name)))
        code.stay()  # programs that call it may run until the very end of the process
        address = FUNCTIONS[name] = code.addresses[name]
    return address
