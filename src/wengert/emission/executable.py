"""A program as a function of arrays, called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.emission.arena import LINE, Arena
from wengert.emission.outside import address_of
from wengert.emission.programs import emitted
from wengert.emission.sharing import cycles, lanes_of
from wengert.kernel.kernel import Buffer, Program
from wengert.native.elementwise import SHARING
from wengert.native.engine import Target, emit_object, host, loaded
from wengert.native.entry import Variant
from wengert.native.kinds import Kind

__all__ = ["Executable"]

LONG = 15_000
"""Cycles from which on other threads run Python meanwhile: about 5 microseconds."""


class Executable:
    """Run a program natively.

    Args:
        program: what has passed the checker, scheduled.
        target: the processor; this one, if none is given.

    Raises:
        ImportError, RuntimeError: LLVM is absent or cannot compile it.
        NotImplementedError: an opcode has no instructions.

    >>> import numpy as np
    >>> from wengert.kernel.kernel import Affine, Buffer, Kernel, Operation, Program, Stage, Store
    >>> real, at = np.dtype(float), Affine(0, (0, 1))
    >>> load = Operation("load", (), real, buffer="x", at=at)
    >>> twice = Stage((1, 3), (load, Operation("add", (0, 0), real)), (Store("y", at, 1),), lane=1)
    >>> buffers = Buffer("x", (3,), real, "input"), Buffer("y", (3,), real, "output")
    >>> run = Executable(Program(("x",), ("y",), buffers, (Kernel(1, (twice,)),)))
    >>> run([np.array([1.0, 2.0, 3.0])])
    [array([2., 4., 6.])]
    """

    def __init__(self, program: Program, target: Target | None = None) -> None:
        code = emitted(program, target or host())
        self.program = program
        self.cycles = sum(cycles(kernel, lanes_of(target or host())) for kernel in program.kernels)
        self.text, self.arena = code.text, code.arena
        self.image = emit_object(code.text, target or host())
        self.code = loaded(self.image, {name: address_of(name, target or host()) for name in code.outside})
        self.native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(self.code.addresses["run"])
        self.lock = threading.Lock()  # the arena is for one call at a time
        buffers = {buffer.name: buffer for buffer in program.buffers}
        self.given = [buffers[name] for name in program.inputs]
        self.made = [buffers[name] for name in program.outputs]

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
        place, releases = SHARING.place, self.cycles > LONG
        options: Any = {"arena": self.memory, "team": place, "releases": releases, "owner": code}
        return Variant(arguments, result, run, names=names, **options)

    @functools.cached_property
    def memory(self) -> Any:
        """The arena, which holds the constants."""
        return filled(self.arena, self.program.buffers)

    def __call__(self, arrays: Sequence[Any], team: int | None = None) -> list[Any]:
        """Return the outputs for arrays that are the inputs.

        Args:
            arrays: of the inputs' dtypes and shapes.
            team: the address of the memory of the team that shares the work; none, if not given.
        """
        given = [checked(array, buffer) for array, buffer in zip(arrays, self.given, strict=True)]
        made = [np.empty(buffer.shape, buffer.dtype) for buffer in self.made]
        addresses = [array.ctypes.data for array in (*given, *made)]
        with self.lock:
            self.native((ctypes.c_void_p * len(addresses))(*addresses), self.memory.ctypes.data, team)
        return made


def checked(array: Any, buffer: Buffer) -> Any:
    """Return an array that must be what a buffer is, with its elements side by side."""
    if array.dtype != buffer.dtype or array.shape != buffer.shape:
        raise TypeError(f"{buffer.name} is {buffer.dtype}{buffer.shape}, {array.dtype}{array.shape} was given")
    return np.ascontiguousarray(array)


def filled(arena: Arena, buffers: tuple[Buffer, ...]) -> Any:
    """Return the memory of an arena at the beginning of a line, with the constants in their places."""
    memory = np.empty(arena.size + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    memory = memory[begin : begin + arena.size]
    for buffer in buffers:
        if buffer.kind == "constant":
            place = arena.places[buffer.name]
            memory[place : place + len(buffer.contents)] = np.frombuffer(buffer.contents, np.uint8)
    return memory
