"""A program of kernels as machine code."""

from __future__ import annotations

import ctypes
from functools import partial

from wengert.emission.driver import emitted
from wengert.emission.external_functions import address_of
from wengert.emission.programs import Emitted
from wengert.kernel.kernel import Buffer, Program
from wengert.native import executable
from wengert.native.elementwise import SHARING
from wengert.native.engine import Target, emit_object, host, linked
from wengert.native.executable import Image


class Executable(executable.Executable):
    """Compile a program of kernels, and run it natively.

    Args:
        program: what has passed the checker, scheduled.
        target: the processor; this one, if none is given.
        team: where the address of a team's memory stands; that of this process, if none is given.

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

    def __init__(self, program: Program, target: Target | None = None, team: ctypes.c_void_p = SHARING.place) -> None:
        target = target or host()
        code = emitted(program, target)
        self.text = code.text
        super().__init__(image_of(program, code, target), partial(address_of, target=target), team)


def image_of(program: Program, code: Emitted, target: Target) -> Image:
    """Return a program, of which there is the text, as machine code.

    Raises:
        ImportError, RuntimeError: LLVM is absent or cannot compile it.
    """
    buffers = {buffer.name: buffer for buffer in program.buffers}
    return Image(
        code=linked(emit_object(code.text, target)) if code.text else b"",
        outside=code.outside,
        inputs=tuple([kind_of(buffers[name]) for name in program.inputs]),
        outputs=tuple([kind_of(buffers[name]) for name in program.outputs]),
        size=code.size,
        constants=code.constants,
        cycles=code.cycles,
        looks=program.repeats,
    )


def kind_of(buffer: Buffer) -> tuple[str, tuple[int, ...]]:
    """Return the dtype and the shape of a buffer as plain data."""
    return buffer.dtype.str, buffer.shape
