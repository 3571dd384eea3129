"""What carries out graphs: this processor, if no other back end was chosen.

What was kept is loaded without LLVM, and without what renders programs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from wengert.native.availability import UnavailableError
from wengert.native.executable import Executable, Image
from wengert.native.loader import check_code, kept_function, kept_object
from wengert.native.threads.elementwise import SHARING
from wengert.passes.segments import Segments, with_programs
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.records import values_of
from wengert.support.scopes import Meanwhile

if TYPE_CHECKING:
    from wengert.emission.programs import Emitted
    from wengert.kernel.backend import Backend
    from wengert.kernel.kernel import Program
    from wengert.native.engine import Target

REFUSALS = (UnavailableError, NotImplementedError)
"""What a back end raises for what it cannot carry out here: NumPy does. Any other error is one of ours, and is seen."""


class Processor:
    """Carry out programs by machine code.

    Args:
        target: the processor; this one, if none is given.
        team: where the address of a team's memory stands; that of this process, if none is given.

    >>> import numpy as np
    >>> from wengert.kernel.kernel import Affine, Buffer, Kernel, Operation, Program, Stage, Store
    >>> real, at = np.dtype(float), Affine(0, (0, 1))
    >>> load = Operation("load", (), real, buffer="x", at=at)
    >>> twice = Stage((1, 3), (load, Operation("add", (0, 0), real)), (Store("y", at, 1),), lane=1)
    >>> buffers = Buffer("x", (3,), real, "input"), Buffer("y", (3,), real, "output")
    >>> run = Processor().compile_program(Program(("x",), ("y",), buffers, (Kernel(1, (twice,)),)))
    >>> run([np.array([1.0, 2.0, 3.0])])
    [array([2., 4., 6.])]
    """

    name = "processor"

    def __init__(self, target: Target | None = None, team: ctypes.c_void_p = SHARING.place) -> None:
        self.given, self.team = target, team

    @property
    def target(self) -> Target:
        """The processor that code is made for."""
        with UNSTOPPED:
            from wengert.native.engine import host

        return self.given or host()

    def render(self, program: Program) -> Emitted:
        """Return a program in LLVM's language, and the memory that it needs."""
        with UNSTOPPED:
            from wengert.emission.rendering import emit_program

        return emit_program(program, self.target)

    def build(self, code: Emitted) -> Image:
        """Return object code; of a text that some graph had before, what was kept then."""
        if not code.text:
            return code.image
        if self.given is None:
            return code.image.replace(code=kept_object(code.text, lambda: code.text))
        with UNSTOPPED:
            from wengert.native.engine import emit_object, link_object

        return code.image.replace(code=link_object(emit_object(code.text, self.target)))

    def pack(self, image: Image, beside: Mapping[bytes, int]) -> Any:
        """Return object code, and what is needed to call it, as plain data; of what is kept beside, the number."""
        constants = [(place, bytes(content), is_far) for place, content, is_far in image.constants]
        left = tuple([(place, beside.get(content, content), is_far) for place, content, is_far in constants])
        return values_of(image.replace(constants=left))

    def unpack(self, data: Any, beside: Sequence[Any] = ()) -> Image:
        """Return what plain data describe, and the bytes that lie beside."""
        image = Image(*data)
        check_code(image.code)
        image.check()
        kept: tuple[tuple[int, Any, bool], ...] = image.constants
        constants = tuple([(place, beside[x] if type(x) is int else x, is_far) for place, x, is_far in kept])
        return image.replace(constants=constants)

    def load(self, image: Image) -> Executable:
        """Bring object code into memory."""
        return Executable(image, kept_address if self.given is None else self.address_of, self.team)

    def compile_program(self, program: Program) -> Executable:
        """Return a program, which is scheduled, as a function."""
        return self.load(self.build(self.render(program)))

    def address_of(self, name: str) -> int:
        """Return the address of a function that programs for a processor call and do not have."""
        with UNSTOPPED:
            from wengert.emission.external_functions import address_of

        return address_of(name, self.target)


def kept_address(name: str) -> int:
    """Return the address of a function that programs for this processor call and do not have."""
    return kept_function(name, module_of)


def module_of(name: str) -> str:
    """Return the module of such a function, if it was not kept."""
    with UNSTOPPED:
        from wengert.emission.external_functions import text_of

    return text_of(name)


PROCESSOR = Processor()
"""This processor, all of it."""
BACKEND: ContextVar[Backend[Any, Any]] = ContextVar("BACKEND", default=PROCESSOR)
"""What carries out the graphs that are compiled from now on."""


def using(backend: Backend[Any, Any]) -> Meanwhile:
    """Return a context in which a back end carries out the graphs that are compiled."""
    return Meanwhile(BACKEND, backend)


def in_memory(segments: Segments) -> Segments:
    """Return a graph in segments that a back end has built as one that can be called."""
    return with_programs(segments, BACKEND.get().load)
